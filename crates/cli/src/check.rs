//! `demur check`: is demur.toml in order, and what does it promise?

use std::io::Write;
use std::path::Path;

use demur_engine::{Project, check_budget, check_files};
use demur_ledger::{BudgetName, Ledger};
use demur_plan::catalog::{Column, PrivacyUnit, Table};

use crate::args::query::Check;
use crate::failure::Failure;
use crate::place::Place;

pub(crate) fn run(args: &Check, out: &mut impl Write) -> Result<(), Failure> {
    let project = match &args.project {
        Some(folder) => Project::open(folder)?,
        None => Project::find(Path::new("."))?,
    };
    check_budget(&project.catalog)?;
    for table in project.catalog.tables.values() {
        check_files(table, &project.folder)?;
    }
    for table in project.catalog.tables.values() {
        describe(table, out)?;
    }
    promise(&project, out)
}

/// What all answers together cost at most: what the ledger says, once the budget was opened there.
fn promise(project: &Project, out: &mut impl Write) -> Result<(), Failure> {
    let (budget, place) = (&project.catalog.budget, Place::of_project(None, &project.folder)?);
    let book = match place.location.exists()? {
        true => Some(Ledger::look(&place.location).map_err(|error| place.failure(error))?),
        false => None,
    };
    let opened = book.as_ref().and_then(|book| book.budget(&BudgetName::whole(&budget.name)));
    let opened = opened.map(|opened| opened.filter.guarantee());
    let opens = budget.opens_with.as_ref().map(|(epsilon, delta, _)| (epsilon.exact(), delta.exact()));
    match opened.or(opens) {
        Some((epsilon, delta)) => writeln!(
            out,
            "All answers together cost at most ε = {}, δ = {} (budget `{}`): whatever is answered, for ever, is hardly more likely with \
             anybody's data than without it.",
            epsilon.to_f64(),
            delta.to_f64(),
            budget.name
        )?,
        None => writeln!(
            out,
            "Answers are paid by the budget `{}`; `demur budget show {}` says how much it has.",
            budget.name, budget.name
        )?,
    }
    if let Some(remark) = book.and_then(|book| demur_engine::remark(&book, &project.catalog)) {
        writeln!(out, "Note: {remark}.")?;
    }
    Ok(())
}

fn describe(table: &Table, out: &mut impl Write) -> Result<(), Failure> {
    let name = &table.name;
    if table.public {
        writeln!(out, "`{name}` is public: it is about nobody.\n")?;
        return Ok(());
    }
    match &table.unit {
        PrivacyUnit::Row => writeln!(
            out,
            "`{name}`: every row is somebody's. Whether a row is there, and what it says, stays hidden."
        )?,
        unit => {
            let whose = match unit {
                PrivacyUnit::Through(through) => format!(
                    "a row belongs to whom the row of `{}` belongs to that its `{}` names (there `{}`); rows that name none are not counted",
                    through.table, through.column, through.key
                ),
                _ => format!("all rows with the same `{}` are one person's", table.unit_name()),
            };
            writeln!(
                out,
                "`{name}`: {whose}. Whether somebody is there at all, and with what, stays hidden."
            )?;
            if table.people != *name {
                writeln!(
                    out,
                    "  Its people are `{}`; tables about them may be joined by the person.",
                    table.people
                )?;
            }
            let many = |n: u64, what: &str| {
                if n == 1 { format!("one {what}") } else { format!("at most {n} {what}s") }
            };
            let (groups, rows) = (u64::from(table.max_groups_per_unit), table.max_rows_per_group);
            writeln!(
                out,
                "  A person counts in {} of an answer, and for {} in each.",
                many(groups, "group"),
                many(rows, "row")
            )?;
        }
    }
    if let Some(second) = &table.second_unit {
        writeln!(
            out,
            "  The same is promised to each `{}`: all rows with the same one are hidden too. It counts in every group of an answer, for at most {} rows in each.",
            second.column, second.max_rows_per_group
        )?;
    }
    let bounded = |column: &Column| column.low.is_some() && column.high.is_some();
    let numbers = table.columns.iter().filter(|(_, column)| column.column_type.is_numeric());
    let (with, without): (Vec<_>, Vec<_>) = numbers.partition(|(_, column)| bounded(column));
    list(out, "  Can be summed and averaged:", &with)?;
    list(out, "  Have no bounds, so they need contribution_bounds_per_row => (low, high):", &without)?;
    let public: Vec<_> = table.columns.iter().filter(|(_, column)| column.values.is_some()).collect();
    list(out, "  Have public values, so that groups of them always answer:", &public)?;
    Ok(writeln!(out)?)
}

fn list(out: &mut impl Write, what: &str, columns: &[(&String, &Column)]) -> Result<(), Failure> {
    if columns.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = columns.iter().map(|(name, _)| name.as_str()).collect();
    Ok(writeln!(out, "{what} {}.", names.join(", "))?)
}
