//! `demur ledger adopt`: the owner's word for a ledger whose anchor cannot vouch for it.

use std::io::Write;

use demur_ledger::Ledger;
use serde_json::json;

use crate::args::account::Form;
use crate::args::ledger::Adopt;
use crate::failure::Failure;
use crate::output::Facts;
use crate::place::{Place, options};

pub(crate) fn adopt(args: &Adopt, out: &mut impl Write) -> Result<(), Failure> {
    let place = Place::find(args.at.ledger.as_deref())?;
    let ledger =
        Ledger::adopt(&place.location, &args.reason, options()).map_err(|error| place.failure(error))?;
    let book = ledger.book()?;
    let closed = book.budgets().filter(|budget| budget.closed).count();
    let budgets = book.budgets().count();
    match args.format {
        Form::Json => {
            let report = json!({
                "ledger": place.to_string(),
                "entry": book.head().sequence,
                "head": book.head().hash.to_string(),
                "budgets": budgets,
                "closed": closed,
            });
            Ok(writeln!(out, "{report:#}")?)
        }
        Form::Table => {
            let mut facts = Facts::default();
            facts.add("adopted", place.to_string());
            facts.add("entry", book.head().sequence.to_string());
            facts.add("budgets", format!("{budgets}, of which {closed} closed"));
            Ok(facts.print(out)?)
        }
    }
}
