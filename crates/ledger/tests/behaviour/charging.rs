//! Charging and recording.

use std::sync::atomic::{AtomicI64, Ordering};

use demur_ledger::{BudgetName, Ledger, Options};
use jiff::Timestamp;

use crate::place::{EXHAUSTED, Place, answer, charge, code, pure, request, spend, spent, with_budget};

crate::on_every_store!(
    a_charge_and_its_answer_are_two_entries,
    an_exhausted_budget_refuses_and_nothing_is_written,
    a_budget_can_be_spent_to_the_last_unit,
    the_budget_and_the_part_must_both_admit,
    a_refused_request_in_a_batch_does_not_hurt_the_others,
    a_receipt_pays_only_in_its_own_ledger,
    an_unknown_budget_is_refused,
    large_answers_are_kept_whole,
    names_of_any_letters_are_kept_apart,
    a_clock_that_is_set_back_changes_nothing,
);

fn a_charge_and_its_answer_are_two_entries(place: &Place) {
    let ledger = with_budget(place, "1");
    let receipt = charge(&ledger, request("0.25"));
    assert_eq!(receipt.position().sequence, 2);
    assert_eq!(receipt.position(), ledger.book().unwrap().head());
    let released = ledger.record(receipt, b"42").unwrap();
    let book = ledger.book().unwrap();
    assert_eq!((book.head(), released.sequence), (released, 3));
    let budget = book.budget(&BudgetName::whole("visits")).unwrap();
    assert_eq!((budget.charges, budget.releases), (1, 1));
    assert_eq!(spent(&ledger, BudgetName::whole("visits")), "ε = 0.25");
    assert_eq!(place.entries().len(), 4);
}

fn an_exhausted_budget_refuses_and_nothing_is_written(place: &Place) {
    let ledger = with_budget(place, "1");
    answer(&ledger, request("0.75"), b"1");
    let before = ledger.book().unwrap();
    let refusal = ledger.charge(request("0.26").id("too much")).unwrap_err();
    assert!(refusal.is_refusal() && refusal.code() == EXHAUSTED, "{refusal}");
    assert_eq!(ledger.book().unwrap(), before);
    assert_eq!(place.entries().len() as u64, before.head().sequence + 1);
    // The refused name is free for a request that fits.
    spend(&ledger, request("0.25").id("too much"));
}

fn a_budget_can_be_spent_to_the_last_unit(place: &Place) {
    let ledger = with_budget(place, "1");
    for _ in 0..10 {
        spend(&ledger, request("0.1"));
    }
    assert_eq!(code(&ledger, request("1e-9")), EXHAUSTED);
    spend(&ledger, request("0"));
}

fn the_budget_and_the_part_must_both_admit(place: &Place) {
    let ledger = with_budget(place, "1");
    let (whole, part) = (BudgetName::whole("visits"), BudgetName::part("visits", "alice"));
    ledger.create_budget(part.clone(), "visits", "user_id", pure("0.5"), "").unwrap();
    let bob = |epsilon| demur_ledger::Request { requester: "bob".into(), ..request(epsilon) };

    spend(&ledger, request("0.25"));
    assert_eq!(spent(&ledger, whole.clone()), "ε = 0.25");
    assert_eq!(spent(&ledger, part.clone()), "ε = 0.25");

    // The part says no, the budget would not.
    assert_eq!(code(&ledger, request("0.3")), EXHAUSTED);
    assert_eq!(spent(&ledger, whole.clone()), "ε = 0.25");

    // The budget says no, the part would not.
    spend(&ledger, bob("0.6"));
    assert_eq!(spent(&ledger, part.clone()), "ε = 0.25");
    assert_eq!(code(&ledger, request("0.2")), EXHAUSTED);
    assert_eq!(spent(&ledger, part.clone()), "ε = 0.25");

    spend(&ledger, request("0.15"));
    assert_eq!(spent(&ledger, whole), "ε = 1");
    assert_eq!(spent(&ledger, part), "ε = 0.4");
}

fn a_refused_request_in_a_batch_does_not_hurt_the_others(place: &Place) {
    let ledger = with_budget(place, "1");
    let admitted = std::thread::scope(|scope| {
        let ledger = &ledger;
        let ask = |epsilon| scope.spawn(move || ledger.charge(request(epsilon)).is_ok());
        let threads: Vec<_> = (0..40).map(|n| ask(if n % 2 == 0 { "0.05" } else { "2" })).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|admitted| *admitted).count()
    });
    assert_eq!(admitted, 20);
    assert_eq!(spent(&ledger, BudgetName::whole("visits")), "ε = 1");
}

fn a_receipt_pays_only_in_its_own_ledger(place: &Place) {
    let elsewhere = place.another();
    let (ledger, other) = (with_budget(place, "1"), with_budget(&elsewhere, "1"));
    let receipt = charge(&other, request("0.5"));
    assert_eq!(ledger.record(receipt, b"1").unwrap_err().code(), "ledger.receipt");
    spend(&ledger, request("0.5"));
}

fn an_unknown_budget_is_refused(place: &Place) {
    let ledger = with_budget(place, "1");
    let other = demur_ledger::Request { budget: "sales".into(), ..request("0.5") };
    assert_eq!(code(&ledger, other), "ledger.budget.unknown");
    assert_eq!(
        code(&ledger, demur_ledger::Request { requester: "".into(), ..request("0.5") }),
        "ledger.name"
    );
    spend(&ledger, request("0.5"));
}

/// More than one statement's worth on PostgreSQL, in one batch or several.
fn large_answers_are_kept_whole(place: &Place) {
    let ledger = with_budget(place, "1");
    let large: Vec<u8> = (0..10_000_000u32).map(|n| (n % 251) as u8).collect();
    std::thread::scope(|scope| {
        for name in ["a", "b", "c"] {
            let (ledger, large) = (&ledger, &large);
            scope.spawn(move || answer(ledger, request("0.1").id(name), large));
        }
    });
    for name in ["a", "b", "c"] {
        assert!(crate::place::replayed(&ledger, request("0.1").id(name)).1 == large);
    }
}

fn names_of_any_letters_are_kept_apart(place: &Place) {
    let ledger = with_budget(place, "1");
    let names = ["a", "A", "ä", "a\u{308}", "é ", "é", "'; DROP TABLE entry; --", "\\x00", "日本語", "🦀"];
    for name in names {
        answer(&ledger, request("0.1").id(name), name.as_bytes());
    }
    for name in names {
        assert_eq!(crate::place::replayed(&ledger, request("0.1").id(name)).1, name.as_bytes());
    }
}

/// Each time it is asked it is an hour earlier.
fn backwards() -> Timestamp {
    static NOW: AtomicI64 = AtomicI64::new(1_800_000_000);
    Timestamp::from_second(NOW.fetch_sub(3600, Ordering::Relaxed)).unwrap()
}

fn a_clock_that_is_set_back_changes_nothing(place: &Place) {
    let options = Options { clock: backwards, ..Options::default() };
    let ledger = Ledger::create(&place.location, options.clone()).unwrap();
    ledger.create_budget(BudgetName::whole("visits"), "visits", "user_id", pure("1"), "").unwrap();
    for _ in 0..5 {
        answer(&ledger, request("0.1"), b"1");
    }
    drop(ledger);
    let ledger = Ledger::open(&place.location, options).unwrap();
    assert_eq!(code(&ledger, request("0.51")), EXHAUSTED);
    spend(&ledger, request("0.5"));
    let times: Vec<Timestamp> = place.entries().into_iter().map(|(_, entry)| entry.time).collect();
    assert!(times.is_sorted(), "{times:?}");
}
