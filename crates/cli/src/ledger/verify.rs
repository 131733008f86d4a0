//! `demur ledger verify`: every entry, the anchor and the stored answers, all computed anew.

use std::io::Write;

use demur_ledger::Report;
use serde_json::json;

use crate::args::account::Form;
use crate::args::ledger::Verify;
use crate::failure::Failure;
use crate::output::Facts;
use crate::place::Place;

pub(crate) fn verify(args: &Verify, out: &mut impl Write) -> Result<(), Failure> {
    let place = Place::find(args.at.ledger.as_deref())?;
    let report = demur_ledger::verify(&place.location).map_err(|error| place.failure(error))?;
    match args.format {
        Form::Table => facts(&place, &report).print(out)?,
        Form::Json => {
            let Report { book, charges, releases, findings } = &report;
            let report = json!({
                "ledger": place.to_string(),
                "verified": findings.is_empty(),
                "findings": findings,
                "entries": book.head().sequence + 1,
                "budgets": book.budgets().count(),
                "charges": charges,
                "releases": releases,
                "head": book.head().hash.to_string(),
                "time": book.time().to_string(),
            });
            writeln!(out, "{report:#}")?;
        }
    }
    match report.findings.len() {
        0 => Ok(()),
        count => Err(Failure::new(
            "ledger.findings",
            format!("{count} thing(s) in {place} are not as they should be"),
        )),
    }
}

fn facts(place: &Place, report: &Report) -> Facts {
    let Report { book, charges, releases, findings } = report;
    let mut facts = Facts::default();
    facts.add(if findings.is_empty() { "verified" } else { "not verified" }, place.to_string());
    facts.add("chain", format!("{} entries, each follows the one before it", book.head().sequence + 1));
    facts.add("anchor", "remembers an entry of this chain");
    facts.add("budgets", format!("{}, none overspent", book.budgets().count()));
    facts.add("charges", format!("{charges}, priced anew; {releases} of them have an answer"));
    facts.add("last entry", book.time().strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
    facts.add("head", book.head().hash.to_string());
    findings.iter().for_each(|finding| {
        facts.add("wrong", finding);
    });
    facts
}
