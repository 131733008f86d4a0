//! `demur account explain`: which method answered, why, and what the others say.

use std::io::Write;

use demur_accounting::{Account, Answer, Method};
use demur_core::PrivacyLoss;
use demur_exact::Rational;

use super::compose::by;
use super::losses::shown;
use super::question::{Question, tightness};
use super::textbook;
use crate::args::account::Explain;
use crate::failure::Failure;
use crate::output::Facts;
use crate::words::up;

/// Rényi orders at which both directions are compared.
const ORDERS: [u32; 2] = [2, 8];

pub(crate) fn explain(args: &Explain, out: &mut impl Write) -> Result<(), Failure> {
    let question = Question::of(&args.asked)?;
    let losses = args.losses.read()?;
    let account = Account::of(&losses)?;
    let best = question.ask(&account, None)?;
    answer(&question, &best, &losses).print(out)?;
    writeln!(out, "\n{} by every method, at {}", question.symbol(), question.given())?;
    every_method(&question, &account, &best).print(out)?;
    section(out, "both directions", &directions(&account))?;
    section(out, "beside the textbook", &textbook::beside(&question, &losses))
}

fn section(out: &mut impl Write, title: &str, rows: &[(String, String)]) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{title}")?;
    let mut facts = Facts::default();
    for (what, text) in rows {
        facts.add(format!("  {what}"), text);
    }
    Ok(facts.print(out)?)
}

fn answer(question: &Question, best: &Answer, losses: &PrivacyLoss) -> Facts {
    let mut facts = Facts::default();
    for (name, number) in question.rows(best.bounds) {
        facts.add(name, number);
    }
    facts.add("method", by(best));
    facts.add("tightness", format!("{} {}", question.symbol(), tightness(best.bounds)));
    facts.add("losses", shown(losses));
    facts
}

/// One row for each method: its bound, or why it has none.
fn every_method(question: &Question, account: &Account, best: &Answer) -> Facts {
    let mut facts = Facts::default();
    for method in Method::ALL {
        let text = match question.ask(account, Some(method)) {
            Ok(answer) => format!("{:<12}  {}", up(answer.bounds.upper, 7), compared(&answer, best)),
            Err(failure) => format!("does not apply: {}", failure.message()),
        };
        facts.add(format!("  {method}"), text);
    }
    facts
}

/// How a bound compares to the best one.
fn compared(answer: &Answer, best: &Answer) -> String {
    let ratio = answer.bounds.upper / best.bounds.upper;
    match () {
        () if answer.method == best.method => "the answer".to_owned(),
        () if ratio.is_nan() || (ratio - 1.0).abs() < 1e-9 => "the same".to_owned(),
        () if ratio < 2.0 => format!("{} % more", up((ratio - 1.0) * 100.0, 2)),
        () => format!("{} times as much", up(ratio, 3)),
    }
}

/// Rényi divergences with a person removed and added, where they differ.
fn directions(account: &Account) -> Vec<(String, String)> {
    let row = |order: u32| {
        let [remove, add] = account.renyi(&Rational::from(order)).ok()?;
        let differ = (remove.upper - add.upper).abs() > 1e-6 * remove.upper.max(add.upper);
        let text = format!("{} with a person removed, {} added", up(remove.upper, 7), up(add.upper, 7));
        (differ && remove.upper.max(add.upper).is_finite()).then(|| (format!("Rényi, order {order}"), text))
    };
    ORDERS.into_iter().filter_map(row).collect()
}
