//! What was written is read again as it was, or not at all.

use demur_ledger::entry::Event;
use demur_ledger::{BudgetName, Hash, Ledger, Location, Options, verify};

use crate::place::{EXHAUSTED, Place, answer, code, pure, replayed, request, spend, spent, with_budget};

crate::on_every_store!(
    reopening_gives_an_equal_book,
    a_ledger_is_created_once,
    a_creation_that_was_cut_short_is_finished,
    where_there_is_no_ledger_nothing_opens,
    a_changed_byte_is_found,
    entries_that_change_places_are_found,
    a_missing_entry_is_found,
    entries_removed_at_the_end_are_found,
    an_older_copy_is_found_while_the_ledger_is_in_use,
    another_ledger_in_its_place_is_found,
    a_changed_answer_is_not_given,
    an_answer_is_found_by_its_charge,
    everything_is_verified_on_request,
    a_reader_sees_one_moment,
    without_its_anchor_a_ledger_does_not_open,
    an_anchor_without_its_ledger_is_not_forgotten,
    adopting_closes_budgets_when_entries_were_lost,
    adopting_keeps_budgets_open_when_nothing_was_lost,
    adopting_needs_a_reason_before_the_anchor_forgets,
    a_book_from_a_checkpoint_equals_the_whole_count,
    checkpoints_come_no_more_often_than_there_are_budgets,
);

/// Seven entries, two of them charges with answers.
fn seven(place: &Place) -> Ledger {
    let ledger = with_budget(place, "1");
    answer(&ledger, request("0.1").id("monday"), b"1");
    ledger.introduce_key(Hash::of(b"key"), "the first").unwrap();
    answer(&ledger, request("0.2").data_version("1"), b"2");
    ledger
}

fn reopening_gives_an_equal_book(place: &Place) {
    let ledger = seven(place);
    ledger.create_budget(BudgetName::part("visits", "bob"), "visits", "user_id", pure("0.5"), "").unwrap();
    ledger.raise_budget(BudgetName::whole("visits"), pure("2"), "more").unwrap();
    ledger.close_budget(BudgetName::part("visits", "bob"), "he left").unwrap();
    let book = ledger.book().unwrap();
    assert_eq!(Ledger::look(&place.location).unwrap(), book);
    drop(ledger);
    assert_eq!(place.open().book().unwrap(), book);
    assert_eq!(Ledger::look(&place.location).unwrap(), book);
}

fn a_ledger_is_created_once(place: &Place) {
    let ledger = seven(place);
    let again = |location: &Location| Ledger::create(location, Options::default()).err().unwrap();
    assert_eq!(again(&place.location).code(), "ledger.exists");
    drop(ledger);
    assert_eq!(again(&place.location).code(), "ledger.exists");
    std::fs::remove_file(place.anchor()).unwrap();
    assert_eq!(again(&place.location).code(), "ledger.exists");
    assert!(!place.anchor().exists());
}

fn a_creation_that_was_cut_short_is_finished(place: &Place) {
    let name = place.create().book().unwrap().ledger();
    std::fs::remove_file(place.anchor()).unwrap();
    assert_eq!(place.create().book().unwrap().ledger(), name);
    std::fs::remove_file(place.anchor()).unwrap();
    place.cut(0);
    assert_ne!(place.create().book().unwrap().ledger(), name);
    assert!(place.try_open().is_ok());
}

fn where_there_is_no_ledger_nothing_opens(place: &Place) {
    assert_eq!(place.refusal(), "ledger.none");
    assert_eq!(Ledger::look(&place.location).unwrap_err().code(), "ledger.none");
    assert_eq!(
        Ledger::adopt(&place.location, "why", Options::default()).err().unwrap().code(),
        "ledger.none"
    );
    assert!(!place.anchor().exists());
}

fn a_changed_byte_is_found(place: &Place) {
    let book = seven(place).book().unwrap();
    for sequence in 0..=book.head().sequence {
        for (column, byte) in [("body", 0), ("body", 57), ("hash", 0), ("hash", 31)] {
            let text = place.sql(&format!("SELECT hex({column}) FROM {{entry}} WHERE sequence = {sequence}"));
            place.flip(sequence, column, byte);
            assert_eq!(place.refusal(), "ledger.chain", "{column} of entry {sequence}");
            place.sql(&format!("UPDATE {{entry}} SET {column} = x'{text}' WHERE sequence = {sequence}"));
        }
    }
    assert_eq!(place.open().book().unwrap(), book);
}

fn entries_that_change_places_are_found(place: &Place) {
    drop(seven(place));
    for (from, to) in [(2, 99), (4, 2), (99, 4)] {
        place.sql(&format!("UPDATE {{entry}} SET sequence = {to} WHERE sequence = {from}"));
    }
    assert_eq!(place.refusal(), "ledger.chain");
}

fn a_missing_entry_is_found(place: &Place) {
    drop(seven(place));
    place.sql("DELETE FROM {entry} WHERE sequence = 3");
    assert_eq!(place.refusal(), "ledger.chain");
    place.sql("DELETE FROM {entry}");
    assert_eq!(place.refusal(), "ledger.chain");
}

fn entries_removed_at_the_end_are_found(place: &Place) {
    let head = seven(place).book().unwrap().head().sequence;
    for sequence in (1..=head).rev() {
        place.cut(sequence);
        assert_eq!(place.refusal(), "ledger.rollback", "without {sequence}");
        assert_eq!(Ledger::look(&place.location).unwrap_err().code(), "ledger.rollback");
    }
}

fn an_older_copy_is_found_while_the_ledger_is_in_use(place: &Place) {
    let ledger = seven(place);
    place.cut(5);
    assert_eq!(code(&ledger, request("0.1")), "ledger.rollback");
    assert_eq!(code(&ledger, request("0.1")), "ledger.poisoned");
    assert_eq!(place.refusal(), "ledger.rollback");
}

fn another_ledger_in_its_place_is_found(place: &Place) {
    drop(seven(place));
    let memory = std::fs::read(place.anchor()).unwrap();
    std::fs::remove_file(place.anchor()).unwrap();
    place.cut(0);
    drop(seven(place));
    std::fs::write(place.anchor(), memory).unwrap();
    assert_eq!(place.refusal(), "ledger.rollback");
}

fn a_changed_answer_is_not_given(place: &Place) {
    let ledger = seven(place);
    place.sql("UPDATE {answer} SET body = x'00' WHERE charge = 2");
    let error = ledger.charge(request("0.1").id("monday")).unwrap_err();
    assert!(error.is_broken() && error.code() == "ledger.answer", "{error}");
}

fn an_answer_is_found_by_its_charge(place: &Place) {
    drop(seven(place));
    for (charge, answer) in [(2, Some(b"1".to_vec())), (5, Some(b"2".to_vec())), (3, None), (u64::MAX, None)]
    {
        assert_eq!(Ledger::answer(&place.location, charge).unwrap(), answer);
    }
}

fn everything_is_verified_on_request(place: &Place) {
    let book = seven(place).book().unwrap();
    let report = verify(&place.location).unwrap();
    assert_eq!((report.book, report.charges, report.releases), (book, 2, 2));
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    place.sql("UPDATE {answer} SET body = x'00' WHERE charge = 5");
    let report = verify(&place.location).unwrap();
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
}

/// Otherwise an answer that is recorded in the middle of a verification would belong to no release that was seen.
fn a_reader_sees_one_moment(place: &Place) {
    let ledger = seven(place);
    let mut reader = place.reader();
    let mut entries = 0;
    let mut count = |_| {
        entries += 1;
        Ok(())
    };
    reader.read(0, &mut count).unwrap();
    answer(&ledger, request("0.1"), b"later");
    reader.read(0, &mut count).unwrap();
    let mut answers = Vec::new();
    let mut list = |charge, _: &[u8]| {
        answers.push(charge);
        Ok(())
    };
    reader.answers(0..u64::MAX, &mut list).unwrap();
    assert_eq!((entries, answers), (14, vec![2, 5]));
    assert!(reader.begin().is_err());
}

fn without_its_anchor_a_ledger_does_not_open(place: &Place) {
    drop(seven(place));
    std::fs::remove_file(place.anchor()).unwrap();
    assert_eq!(place.refusal(), "ledger.anchor.missing");
    assert_eq!(Ledger::look(&place.location).unwrap_err().code(), "ledger.anchor.missing");
    // Less than a line is what a creation that was cut short leaves behind.
    std::fs::write(place.anchor(), "").unwrap();
    assert_eq!(place.refusal(), "ledger.anchor.missing");
    std::fs::write(place.anchor(), "not an anchor ".repeat(40)).unwrap();
    assert_eq!(place.refusal(), "ledger.anchor.damaged");
}

fn an_anchor_without_its_ledger_is_not_forgotten(place: &Place) {
    drop(seven(place));
    place.destroy();
    assert_eq!(place.refusal(), "ledger.missing");
    let again = Ledger::create(&place.location, Options::default()).err().unwrap();
    assert_eq!(again.code(), "ledger.missing");
    assert!(again.to_string().contains("entry 6"), "{again}");
}

fn adopting_closes_budgets_when_entries_were_lost(place: &Place) {
    drop(seven(place));
    place.cut(5);
    let ledger = Ledger::adopt(&place.location, "the disk failed", Options::default()).unwrap();
    assert_eq!(code(&ledger, request("0.1")), "ledger.budget.closed");
    assert_eq!(replayed(&ledger, request("0.1").id("monday")).1, b"1");
    let Event::Adopt(adopt) = &place.entries()[5].1.event else { panic!("entry 5 should say so") };
    assert_eq!(adopt.lost.unwrap().sequence, 6);
    let book = ledger.book().unwrap();
    drop(ledger);
    assert_eq!(place.open().book().unwrap(), book);
}

fn adopting_keeps_budgets_open_when_nothing_was_lost(place: &Place) {
    drop(seven(place));
    for damage in [None, Some("nothing of use")] {
        match damage {
            None => std::fs::remove_file(place.anchor()).unwrap(),
            Some(text) => std::fs::write(place.anchor(), text).unwrap(),
        }
        drop(Ledger::adopt(&place.location, "the anchor was lost", Options::default()).unwrap());
    }
    drop(Ledger::adopt(&place.location, "for no reason", Options::default()).unwrap());
    let ledger = place.open();
    assert_eq!(spent(&ledger, BudgetName::whole("visits")), "ε = 0.3");
    assert_eq!(code(&ledger, request("0.8")), EXHAUSTED);
    spend(&ledger, request("0.7"));
}

/// The anchor was once written anew before the reason was looked at: a refusal made it forget what was lost.
fn adopting_needs_a_reason_before_the_anchor_forgets(place: &Place) {
    drop(seven(place));
    place.cut(5);
    let refusal = Ledger::adopt(&place.location, "  ", Options::default()).err().unwrap();
    assert_eq!(refusal.code(), "ledger.reason");
    assert_eq!(place.refusal(), "ledger.rollback");
}

/// A checkpoint names every budget: one after every five entries would be most of a ledger of many budgets.
fn checkpoints_come_no_more_often_than_there_are_budgets(place: &Place) {
    let options = Options { checkpoint_every: 5, ..Options::default() };
    let ledger = Ledger::create(&place.location, options).unwrap();
    ledger.create_budget(BudgetName::whole("visits"), "visits", "user_id", pure("10"), "").unwrap();
    for n in 0..29 {
        let name = BudgetName::part("visits", &format!("analyst {n}"));
        ledger.create_budget(name, "visits", "user_id", pure("1"), "").unwrap();
    }
    for n in 0..50 {
        let _charged = ledger.charge(request("0.01").id(&format!("{n}"))).unwrap();
    }
    let entries = place.entries();
    let places = entries.iter().enumerate();
    let places = places.filter(|(_, (_, entry))| matches!(entry.event, Event::Checkpoint(_)));
    let places: Vec<usize> = places.map(|(place, _)| place).collect();
    assert!(places.len() >= 2, "{places:?}");
    assert!(places.windows(2).all(|pair| pair[1] - pair[0] > 30), "{places:?}");
    assert!(entries.len() - places[places.len() - 1] <= 31, "{places:?} of {}", entries.len());
}

fn a_book_from_a_checkpoint_equals_the_whole_count(place: &Place) {
    let options = Options { checkpoint_every: 25, ..Options::default() };
    let ledger = Ledger::create(&place.location, options.clone()).unwrap();
    ledger.introduce_key(Hash::of(b"key"), "the first").unwrap();
    for name in [BudgetName::whole("visits"), BudgetName::part("visits", "alice")] {
        ledger.create_budget(name, "visits", "user_id", pure("10"), "").unwrap();
    }
    let behind = place.open();
    let mut checkpoints = 0;
    for n in 0..8 {
        for m in 0..10 {
            answer(&ledger, request("0.01").id(&format!("{n}.{m}")), b"1");
        }
        // This handle has counted from the beginning; the others begin at a checkpoint.
        let counted = ledger.book().unwrap();
        assert_eq!(Ledger::look(&place.location).unwrap(), counted);
        assert_eq!(Ledger::open(&place.location, options.clone()).unwrap().book().unwrap(), counted);
        let is_checkpoint = |entry: &demur_ledger::entry::Entry| matches!(entry.event, Event::Checkpoint(_));
        checkpoints = place.entries().iter().filter(|(_, entry)| is_checkpoint(entry)).count();
    }
    assert_eq!(checkpoints, 6);
    // Names are found across checkpoints, by who wrote them, who was there and who comes anew.
    for ledger in [ledger, behind, place.open()] {
        assert_eq!(replayed(&ledger, request("0.01").id("0.0")).1, b"1");
        assert_eq!(replayed(&ledger, request("0.01").id("7.9")).1, b"1");
    }
    place.flip(1, "body", 3);
    assert_eq!(place.refusal(), "ledger.chain", "what lies before a checkpoint is verified too");
}
