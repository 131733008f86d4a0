//! `demur budget show`: where budgets stand.

use std::io::Write;

use demur_ledger::Ledger;

use super::name;
use super::spending;
use super::view::{CSV, View};
use crate::account::figure::unwritable;
use crate::args::budget::Show;
use crate::args::ledger::Listing;
use crate::failure::Failure;
use crate::place::Place;
use crate::table::{Side, Table};

const COLUMNS: [(&str, Side); 9] = [
    ("budget", Side::Left),
    ("filter", Side::Left),
    ("ε", Side::Right),
    ("δ", Side::Right),
    ("spent ε", Side::Right),
    ("left ε", Side::Right),
    ("", Side::Left),
    ("releases", Side::Right),
    ("state", Side::Left),
];

pub(crate) fn show(args: &Show, out: &mut impl Write) -> Result<(), Failure> {
    let place = Place::find(args.at.ledger.as_deref())?;
    let book = Ledger::look(&place.location).map_err(|error| place.failure(error))?;
    let views = match &args.name {
        Some(budget) => {
            let budget = book.find(&name(budget, args.requester.as_deref()))?;
            vec![View::of(&book, budget, &place)?]
        }
        None => {
            let whole = book.budgets().filter(|budget| budget.name.requester.is_none());
            whole.map(|budget| View::of(&book, budget, &place)).collect::<Result<Vec<_>, _>>()?
        }
    };
    let picture = args.plot.as_ref().map(|path| Ok::<_, Failure>((path, spending::subject(args, &book)?)));
    let picture = picture.transpose()?;
    let (terminal, file) = picture.into_iter().partition::<Vec<_>, _>(|(path, _)| path.as_os_str() == "-");
    for (path, name) in file {
        spending::chart(&place, &name)?.draw(path, out)?;
    }
    match (args.format, views.as_slice()) {
        (Listing::Json, [view]) if args.name.is_some() => view.json(out)?,
        (Listing::Json, views) => {
            let records = views.iter().map(View::record).collect::<Result<Vec<_>, _>>()?;
            writeln!(out, "{}", serde_json::to_string_pretty(&records).map_err(unwritable)?)?;
        }
        (Listing::Csv, views) => csv(views, out)?,
        (Listing::Table, [view]) if args.name.is_some() => view.print(out)?,
        (Listing::Table, []) => {
            writeln!(out, "there are no budgets in {place} yet; `demur budget create` makes one")?;
        }
        (Listing::Table, views) => {
            let rows: Vec<_> = views.iter().flat_map(View::rows).collect();
            Table::new(&COLUMNS).print(out, &rows)?;
        }
    }
    for (path, name) in terminal {
        writeln!(out)?;
        spending::chart(&place, &name)?.draw(path, out)?;
    }
    Ok(())
}

/// Where one budget stands, for people.
pub(crate) fn one(place: &Place, budget: &str, out: &mut impl Write) -> Result<(), Failure> {
    let book = Ledger::look(&place.location).map_err(|error| place.failure(error))?;
    View::of(&book, book.find(&name(budget, None))?, place)?.print(out)
}

fn csv(views: &[View], out: &mut impl Write) -> Result<(), Failure> {
    let mut writer = csv::Writer::from_writer(out);
    let rows = std::iter::once(CSV.map(str::to_owned).to_vec());
    for row in rows.chain(views.iter().flat_map(View::csv)) {
        writer.write_record(row).map_err(crate::ledger::csv_failure)?;
    }
    Ok(writer.flush()?)
}
