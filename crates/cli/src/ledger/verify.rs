//! `demur ledger verify`: the chain, the anchor and the budgets, all counted anew.

use std::io::Write;

use demur_ledger::{Book, Ledger};
use serde_json::json;

use crate::args::account::Form;
use crate::args::ledger::Verify;
use crate::failure::Failure;
use crate::output::Facts;
use crate::place::Place;

pub(crate) fn verify(args: &Verify, out: &mut impl Write) -> Result<(), Failure> {
    let place = Place::find(args.at.ledger.as_deref())?;
    // Every hash, the anchor, and every charge since the last checkpoint against its budget.
    let book = Ledger::look(&place.location).map_err(|error| place.failure(error))?;
    match args.format {
        Form::Table => Ok(facts(&place, &book).print(out)?),
        Form::Json => {
            let report = json!({
                "ledger": place.to_string(),
                "verified": true,
                "entries": book.head().sequence + 1,
                "budgets": book.budgets().count(),
                "head": book.head().hash.to_string(),
                "time": book.time().to_string(),
            });
            Ok(writeln!(out, "{report:#}")?)
        }
    }
}

fn facts(place: &Place, book: &Book) -> Facts {
    let mut facts = Facts::default();
    facts.add("verified", place.to_string());
    facts.add("chain", format!("{} entries, each follows the one before it", book.head().sequence + 1));
    facts.add("anchor", "remembers an entry of this chain");
    facts.add("budgets", format!("{}, none overspent", book.budgets().count()));
    facts.add("last entry", book.time().strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
    facts.add("head", book.head().hash.to_string());
    facts
}
