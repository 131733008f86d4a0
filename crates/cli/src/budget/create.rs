//! `demur budget create`: a new budget, and a ledger if there is none.

use std::io::Write;
use std::path::Path;

use demur_accounting::Filter;
use demur_engine::{ANY_UNIT, Project, SCRATCH};
use demur_ledger::{Book, BudgetName};

use super::view::{View, about};
use super::{figure, name};
use crate::args::account::Form;
use crate::args::budget::{Create, Kind};
use crate::failure::Failure;
use crate::output::Facts;
use crate::place::{self, Place};

pub(crate) fn create(args: &Create, out: &mut impl Write) -> Result<(), Failure> {
    let place = Place::find(args.at.ledger.as_deref())?;
    let filter = filter(args)?;
    let name = name(&args.name, args.requester.as_deref());
    // Before a ledger is made for it.
    name.check()?;
    let project = project(args)?;
    // A part needs its whole, so its ledger is there already.
    let (ledger, new) = match args.requester {
        None => place.open_or_create()?,
        Some(_) => (place.open()?, false),
    };
    let (dataset, unit) = protected(args, project, &ledger.book()?);
    if args.scratch {
        let _ = writeln!(
            std::io::stderr(),
            "NOT PROTECTED: answers of this budget may be repeated without end; use it for tests alone"
        );
    }
    ledger.create_budget(name.clone(), &dataset, &unit, filter, &args.reason)?;
    let book = ledger.book()?;
    let view = View::of(&book, book.find(&name)?, &place)?;
    match args.format {
        Form::Json => view.json(out),
        Form::Table => {
            let mut facts = Facts::default();
            facts.add("created", about(&name));
            view.promise(&mut facts);
            let made = if new { " (new: keep it, and its .anchor, in your backups)" } else { "" };
            facts.add("ledger", format!("{place}{made}"));
            Ok(facts.print(out)?)
        }
    }
}

/// The project here, if the budget is its own and it has something to say. One that cannot be read might have: whose privacy counts stands in it.
fn project(args: &Create) -> Result<Option<Project>, Failure> {
    let said = args.requester.is_some() || (args.dataset.is_some() && args.unit.is_some());
    let Some(folder) = place::project(Path::new(".")).filter(|_| !said) else { return Ok(None) };
    let project = Project::open(&folder)?;
    let private = project.catalog.tables.values().any(|table| !table.public);
    Ok(Some(project).filter(|project| private && project.catalog.budget.name == args.name))
}

/// The data and whose it is: a part protects what its whole does, the budget of the project here what demur.toml says.
fn protected(args: &Create, project: Option<Project>, book: &Book) -> (String, String) {
    let whole = args.requester.as_ref().and_then(|_| book.budget(&BudgetName::whole(&args.name)));
    let (dataset, unit) = match (whole, project) {
        (Some(whole), _) => (whole.dataset.clone(), whole.unit.clone()),
        (None, Some(project)) => demur_engine::protected(&project.catalog),
        (None, None) => (args.name.clone(), ANY_UNIT.to_owned()),
    };
    let dataset = if args.scratch { format!("{SCRATCH}{dataset}") } else { dataset };
    (args.dataset.clone().unwrap_or(dataset), args.unit.clone().unwrap_or(unit))
}

fn filter(args: &Create) -> Result<Filter, Failure> {
    let epsilon = figure("cli.epsilon", &args.epsilon)?;
    let delta = args.delta.as_deref().map(|text| figure("cli.delta", text)).transpose()?;
    let make = match args.filter {
        None if delta.is_none() => return Ok(Filter::pure(epsilon)?),
        Some(Kind::Pure) if delta.is_none() => return Ok(Filter::pure(epsilon)?),
        Some(Kind::Pure) => {
            let failure = Failure::new("cli.filter", "a pure budget has no delta, but --delta was given");
            return Err(failure.hint("leave --delta away, or --filter: with a delta it is zcdp"));
        }
        None | Some(Kind::Zcdp) => Filter::zcdp,
        Some(Kind::Gaussian) => Filter::gaussian,
        Some(Kind::Renyi) => Filter::renyi,
    };
    let delta = delta.ok_or_else(|| {
        let failure = Failure::new("cli.filter", "this filter needs a delta, but no --delta was given");
        failure.hint("add one, such as --delta 1e-6, or take --filter pure")
    })?;
    Ok(make(epsilon, delta)?)
}
