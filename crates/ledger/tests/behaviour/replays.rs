//! What is asked again is not paid again.

use std::sync::Barrier;

use demur_ledger::{BudgetName, Charged, Request};

use crate::place::{Place, answer, charge, code, pure, replayed, request, spend, spent, with_budget};

crate::on_every_store!(
    the_same_name_and_request_gets_the_same_bytes_for_free,
    the_same_name_for_another_request_is_refused,
    a_name_that_was_charged_but_not_answered_is_refused,
    work_that_was_paid_for_goes_on_under_its_charge,
    of_many_who_go_on_one_releases,
    names_belong_to_their_requester,
    an_identical_request_on_the_same_data_is_free,
    without_a_version_of_the_data_everything_is_paid,
    answers_to_others_are_free_only_for_who_has_no_part,
    the_first_answer_counts,
    one_name_asked_by_many_at_once_is_charged_once,
);

fn bob(request: Request) -> Request {
    Request { requester: "bob".into(), ..request }
}

fn the_same_name_and_request_gets_the_same_bytes_for_free(place: &Place) {
    let ledger = with_budget(place, "1");
    let bytes: Vec<u8> = (0..=255).collect();
    let paid = answer(&ledger, request("0.6").id("monday"), &bytes);
    let before = ledger.book().unwrap();
    assert_eq!(replayed(&ledger, request("0.6").id("monday")), (paid, bytes.clone()));
    assert_eq!(ledger.book().unwrap(), before);
    drop(ledger);
    let ledger = place.open();
    assert_eq!(replayed(&ledger, request("0.6").id("monday")), (paid, bytes));
    assert_eq!(ledger.book().unwrap(), before);
}

fn the_same_name_for_another_request_is_refused(place: &Place) {
    let ledger = with_budget(place, "1");
    answer(&ledger, request("0.1").id("monday"), b"1");
    spend(&ledger, request("0.1").id("tuesday"));
    let before = ledger.book().unwrap();
    for name in ["monday", "tuesday"] {
        let other = Request { question: "how much?".into(), ..request("0.1") };
        assert_eq!(code(&ledger, other.id(name)), "ledger.request.other");
        assert_eq!(code(&ledger, request("0.2").id(name)), "ledger.request.other");
        assert_eq!(code(&ledger, request("0.1").data_version("2").id(name)), "ledger.request.other");
    }
    assert_eq!(ledger.book().unwrap(), before);
}

fn a_name_that_was_charged_but_not_answered_is_refused(place: &Place) {
    let ledger = with_budget(place, "1");
    let receipt = charge(&ledger, request("0.1").id("monday"));
    let before = ledger.book().unwrap();
    let refusal = ledger.charge(request("0.1").id("monday")).unwrap_err();
    assert!(refusal.is_refusal() && refusal.code() == "ledger.request.unanswered", "{refusal}");
    assert_eq!(ledger.book().unwrap(), before);
    ledger.record(receipt, b"late").unwrap();
    assert_eq!(replayed(&ledger, request("0.1").id("monday")).1, b"late");
}

fn work_that_was_paid_for_goes_on_under_its_charge(place: &Place) {
    let ledger = with_budget(place, "1");
    let asked = || request("0.6").id("monday").data_version("1");
    let never = ledger.resume(asked()).unwrap_err();
    assert!(never.is_refusal() && never.code() == "ledger.request.unknown", "{never}");
    let paid = charge(&ledger, asked()).position();
    drop(ledger);
    let ledger = place.open();
    let before = ledger.book().unwrap();
    let other = ledger.resume(request("0.5").id("monday").data_version("1")).unwrap_err();
    assert_eq!(other.code(), "ledger.request.other");
    let Ok(Charged::Now(receipt)) = ledger.resume(asked()) else { panic!("there is a charge to go on with") };
    assert_eq!((receipt.position(), receipt.loss()), (paid, &asked().loss));
    assert_eq!(ledger.book().unwrap(), before, "nothing was charged");
    ledger.record(receipt, b"late").unwrap();
    assert_eq!(replayed(&ledger, asked()), (paid.sequence, b"late".to_vec()));
    let Ok(Charged::Before(replay)) = ledger.resume(asked()) else { panic!("there is an answer") };
    assert_eq!((replay.charge, replay.answer), (paid.sequence, b"late".to_vec()));
}

fn of_many_who_go_on_one_releases(place: &Place) {
    let ledger = with_budget(place, "1");
    let slow = charge(&ledger, request("0.6").id("monday"));
    let resume = || match ledger.resume(request("0.6").id("monday")) {
        Ok(Charged::Now(receipt)) => receipt,
        other => panic!("{other:?}"),
    };
    let receipts: Vec<_> = (0..7).map(|_| resume()).chain([slow]).collect();
    let start = Barrier::new(receipts.len());
    let record = |receipt| {
        start.wait();
        ledger.record(receipt, b"one").map_err(|refused| {
            assert!(refused.is_refusal() && refused.code() == "ledger.request.answered", "{refused}");
        })
    };
    let released = std::thread::scope(|scope| {
        let threads: Vec<_> = receipts.into_iter().map(|receipt| scope.spawn(|| record(receipt))).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap().ok()).count()
    });
    assert_eq!(released, 1);
    assert_eq!(replayed(&ledger, request("0.6").id("monday")).1, b"one");
    spend(&ledger, request("0.1"));
}

fn names_belong_to_their_requester(place: &Place) {
    let ledger = with_budget(place, "1");
    answer(&ledger, request("0.1").id("monday"), b"for alice");
    answer(&ledger, bob(request("0.2")).id("monday"), b"for bob");
    assert_eq!(replayed(&ledger, request("0.1").id("monday")).1, b"for alice");
    assert_eq!(spent(&ledger, BudgetName::whole("visits")), "ε = 0.3");
}

fn an_identical_request_on_the_same_data_is_free(place: &Place) {
    let ledger = with_budget(place, "1");
    let paid = answer(&ledger, request("0.3").data_version("1"), b"first");
    let before = ledger.book().unwrap();
    assert_eq!(replayed(&ledger, request("0.3").data_version("1")), (paid, b"first".to_vec()));
    assert_eq!(replayed(&ledger, request("0.3").data_version("1").id("named")), (paid, b"first".to_vec()));
    assert_eq!(ledger.book().unwrap(), before);
    answer(&ledger, request("0.3").data_version("2"), b"second");
    answer(&ledger, Request { question: "how much?".into(), ..request("0.3").data_version("1") }, b"other");
    assert_eq!(spent(&ledger, BudgetName::whole("visits")), "ε = 0.9");
}

fn without_a_version_of_the_data_everything_is_paid(place: &Place) {
    let ledger = with_budget(place, "1");
    answer(&ledger, request("0.5"), b"1");
    answer(&ledger, request("0.5"), b"2");
    assert_eq!(spent(&ledger, BudgetName::whole("visits")), "ε = 1");
}

fn answers_to_others_are_free_only_for_who_has_no_part(place: &Place) {
    let ledger = with_budget(place, "1");
    let asked = || request("0.25").data_version("1");
    answer(&ledger, asked(), b"for alice");
    assert_eq!(replayed(&ledger, bob(asked())).1, b"for alice");

    ledger.create_budget(BudgetName::part("visits", "bob"), "visits", "user_id", pure("0.5"), "").unwrap();
    answer(&ledger, bob(asked()), b"for bob");
    assert_eq!(spent(&ledger, BudgetName::part("visits", "bob")), "ε = 0.25");
    assert_eq!(replayed(&ledger, bob(asked())).1, b"for bob");
    assert_eq!(replayed(&ledger, asked()).1, b"for alice");
    assert_eq!(spent(&ledger, BudgetName::whole("visits")), "ε = 0.5");
}

fn the_first_answer_counts(place: &Place) {
    let ledger = with_budget(place, "1");
    let asked = || request("0.25").data_version("1");
    let (first, second) = (charge(&ledger, asked()), charge(&ledger, bob(asked())));
    ledger.record(second, b"charged second").unwrap();
    assert_eq!(replayed(&ledger, asked()).1, b"charged second");
    ledger.record(first, b"charged first").unwrap();
    assert_eq!(replayed(&ledger, asked()).1, b"charged first");
}

fn one_name_asked_by_many_at_once_is_charged_once(place: &Place) {
    let ledger = with_budget(place, "100");
    let codes: Vec<&str> = std::thread::scope(|scope| {
        let ask = |_| {
            scope.spawn(|| {
                ledger.charge(request("1").id("once")).map_or_else(|error| error.code(), |_| "charged")
            })
        };
        let threads: Vec<_> = (0..64).map(ask).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(codes.iter().filter(|code| **code == "charged").count(), 1);
    assert_eq!(codes.iter().filter(|code| **code == "ledger.request.unanswered").count(), 63);
    assert_eq!(spent(&ledger, BudgetName::whole("visits")), "ε = 1");
}
