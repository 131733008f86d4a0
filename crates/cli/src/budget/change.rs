//! `demur budget raise` and `demur budget close`: the owner's word, kept with its reason.

use std::io::Write;

use demur_ledger::{BudgetName, Ledger};

use super::view::{View, about};
use super::{figure, name};
use crate::amount::{Round, shown};
use crate::args::account::Form;
use crate::args::budget::{Close, Raise};
use crate::failure::Failure;
use crate::output::Facts;
use crate::place::Place;

pub(crate) fn raise(args: &Raise, out: &mut impl Write) -> Result<(), Failure> {
    let place = Place::find(args.at.ledger.as_deref())?;
    let epsilon = figure("cli.epsilon", &args.epsilon)?;
    let delta = args.delta.as_deref().map(|text| figure("cli.delta", text)).transpose()?;
    let name = name(&args.name, args.requester.as_deref());
    let ledger = place.open()?;
    let book = ledger.book()?;
    let old = &book.find(&name)?.filter;
    let new = old.with_budget(epsilon, delta)?;
    let same = new.guarantee() == old.guarantee();
    if same && !book.find(&name)?.closed {
        let message = format!("the budget {name} has this epsilon and delta already");
        return Err(
            Failure::new("cli.budget.same", message).hint("--epsilon is the new total, not what is added")
        );
    }
    let before = shown(&old.guarantee().0, Round::Up);
    ledger.raise_budget(name.clone(), new, &args.reason).map_err(|error| {
        let lowered = error.code() == "ledger.budget.lowered";
        let failure = Failure::from(error);
        match lowered {
            true => failure.hint(format!(
                "--epsilon is the new total, and it has ε = {before} now; to spend less, close it"
            )),
            false => failure,
        }
    })?;
    tell("raised", &ledger, &name, &place, args.format, out)
}

pub(crate) fn close(args: &Close, out: &mut impl Write) -> Result<(), Failure> {
    let place = Place::find(args.at.ledger.as_deref())?;
    let name = name(&args.name, args.requester.as_deref());
    let ledger = place.open()?;
    ledger.close_budget(name.clone(), &args.reason)?;
    tell("closed", &ledger, &name, &place, args.format, out)
}

/// What was done, and where the budget stands now.
fn tell(
    done: &str,
    ledger: &Ledger,
    name: &BudgetName,
    place: &Place,
    format: Form,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let book = ledger.book()?;
    let view = View::of(&book, book.find(name)?, place)?;
    match format {
        Form::Json => view.json(out),
        Form::Table => {
            let mut facts = Facts::default();
            facts.add(done, about(name));
            view.promise(&mut facts);
            view.standing(&mut facts);
            Ok(facts.print(out)?)
        }
    }
}
