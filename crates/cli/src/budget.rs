//! `demur budget`: how much may be spent, and how much was.

mod change;
mod create;
mod show;
mod spending;
mod view;

use std::io::Write;

use demur_exact::Rational;
use demur_ledger::BudgetName;

use crate::args::budget::Budget;
use crate::failure::Failure;

pub(crate) use show::one as show_one;
pub(crate) use view::measured;

pub(crate) fn run(command: Budget, out: &mut impl Write) -> Result<(), Failure> {
    match command {
        Budget::Create(args) => create::create(&args, out),
        Budget::Show(args) => show::show(&args, out),
        Budget::Raise(args) => change::raise(&args, out),
        Budget::Close(args) => change::close(&args, out),
    }
}

/// The whole budget, or the part of a requester.
fn name(budget: &str, requester: Option<&str>) -> BudgetName {
    match requester {
        None => BudgetName::whole(budget),
        Some(requester) => BudgetName::part(budget, requester),
    }
}

/// A number of a budget; whether a budget can have it, its filter says.
fn figure(code: &'static str, text: &str) -> Result<Rational, Failure> {
    text.parse().map_err(|error| Failure::new(code, format!("{error}")))
}
