//! What an owner may do to a budget.

use demur_accounting::Filter;
use demur_ledger::BudgetName;

use crate::place::{
    EXHAUSTED, Place, answer, charge, code, pure, replayed, request, spend, spent, with_budget,
};

crate::on_every_store!(
    a_budget_is_created_once,
    a_part_needs_a_whole,
    a_raise_keeps_what_was_spent,
    a_budget_is_never_lowered_and_never_counted_otherwise,
    a_closed_budget_charges_no_more_but_answers_what_was_paid,
    an_answer_may_be_recorded_after_its_budget_was_closed,
    a_change_needs_a_reason,
    keys_are_remembered_in_order,
);

fn visits() -> BudgetName {
    BudgetName::whole("visits")
}

fn a_budget_is_created_once(place: &Place) {
    let ledger = with_budget(place, "1");
    let again = || ledger.create_budget(visits(), "visits", "user_id", pure("5"), "").unwrap_err().code();
    assert_eq!(again(), "ledger.budget.exists");
    ledger.close_budget(visits(), "done").unwrap();
    assert_eq!(again(), "ledger.budget.exists");
    assert_eq!(ledger.book().unwrap().budgets().count(), 1);
}

fn a_part_needs_a_whole(place: &Place) {
    let ledger = with_budget(place, "1");
    let part = BudgetName::part("sales", "alice");
    let refusal = ledger.create_budget(part, "sales", "user_id", pure("1"), "").unwrap_err();
    assert_eq!(refusal.code(), "ledger.budget.unknown");
}

fn a_raise_keeps_what_was_spent(place: &Place) {
    let ledger = with_budget(place, "1");
    spend(&ledger, request("0.9"));
    ledger.raise_budget(visits(), pure("1.5"), "a new year").unwrap();
    assert_eq!(spent(&ledger, visits()), "ε = 0.9");
    assert_eq!(code(&ledger, request("0.7")), EXHAUSTED);
    spend(&ledger, request("0.6"));
    assert_eq!(spent(&place.open(), visits()), "ε = 1.5");
}

fn a_budget_is_never_lowered_and_never_counted_otherwise(place: &Place) {
    let ledger = with_budget(place, "1");
    spend(&ledger, request("0.5"));
    let before = ledger.book().unwrap();
    let zcdp = Filter::zcdp("10".parse().unwrap(), "1e-6".parse().unwrap()).unwrap();
    for filter in [pure("0.99"), pure("0.4"), zcdp] {
        let refusal = ledger.raise_budget(visits(), filter, "why not").unwrap_err();
        assert!(refusal.is_refusal() && refusal.code() == "ledger.budget.lowered", "{refusal}");
    }
    assert_eq!(ledger.book().unwrap(), before);
}

fn a_closed_budget_charges_no_more_but_answers_what_was_paid(place: &Place) {
    let ledger = with_budget(place, "1");
    answer(&ledger, request("0.1").id("monday"), b"named");
    answer(&ledger, request("0.1").data_version("1"), b"versioned");
    ledger.close_budget(visits(), "the project ended").unwrap();
    let closed = ledger.book().unwrap();
    assert_eq!(code(&ledger, request("0.1")), "ledger.budget.closed");
    assert_eq!(replayed(&ledger, request("0.1").id("monday")).1, b"named");
    assert_eq!(replayed(&ledger, request("0.1").data_version("1")).1, b"versioned");
    let raise = ledger.raise_budget(visits(), pure("9"), "again").unwrap_err();
    assert_eq!(raise.code(), "ledger.budget.closed");
    assert_eq!(ledger.close_budget(visits(), "again").unwrap_err().code(), "ledger.budget.closed");
    assert_eq!(ledger.book().unwrap(), closed);
}

fn an_answer_may_be_recorded_after_its_budget_was_closed(place: &Place) {
    let ledger = with_budget(place, "1");
    let receipt = charge(&ledger, request("0.1").id("monday"));
    ledger.close_budget(visits(), "the project ended").unwrap();
    ledger.record(receipt, b"paid before").unwrap();
    drop(ledger);
    assert_eq!(replayed(&place.open(), request("0.1").id("monday")).1, b"paid before");
}

fn a_change_needs_a_reason(place: &Place) {
    let ledger = with_budget(place, "1");
    let before = ledger.book().unwrap();
    assert_eq!(ledger.raise_budget(visits(), pure("2"), " ").unwrap_err().code(), "ledger.reason");
    assert_eq!(ledger.close_budget(visits(), "").unwrap_err().code(), "ledger.reason");
    assert_eq!(ledger.book().unwrap(), before);
}

fn keys_are_remembered_in_order(place: &Place) {
    let ledger = with_budget(place, "1");
    let keys: Vec<demur_ledger::Hash> = (0..3).map(|n| demur_ledger::Hash::of(&[n])).collect();
    for key in &keys {
        ledger.introduce_key(*key, "a new key").unwrap();
    }
    assert_eq!(place.open().book().unwrap().keys(), keys);
}
