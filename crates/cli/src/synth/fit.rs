//! `demur synth fit`.

use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::Path;

use demur_core::{Delta, Epsilon, Guarantee};
use demur_engine::synth::{Made, Method, Progress, Shape, Shares, Wanted};
use demur_engine::{Embedded, Engine, Project};

use crate::args::synth::{Fit, Method as Named};
use crate::failure::Failure;
use crate::place::{self, Place};
use crate::query;
use crate::query::waiting;
use crate::table::{Side, Table};

pub(super) fn run(args: &Fit, out: &mut impl Write) -> Result<(), Failure> {
    let project = query::project(args.project.as_deref())?;
    let wanted = wanted(args, &project)?;
    let shares = wanted.shares(&project)?;
    let Some(output) = args.output.as_deref().filter(|_| !args.dry_run) else {
        return stages(&wanted, &shares, out);
    };
    writable(output)?;
    stages(&wanted, &shares, &mut std::io::stderr())?;
    let place = Place::of_project(args.ledger.as_deref(), &project.folder)?;
    let backend = Embedded::new(&project.folder)?;
    let engine = Engine::for_project(&project, &place.location, place::options())?;
    waiting::listen(backend.reading())?;
    let mut shown = false;
    let made = engine.synthesise(&project, &wanted, &backend, &mut |progress| {
        shown |= show(progress);
        ControlFlow::Continue(())
    });
    if shown {
        let _ = write!(std::io::stderr(), "\r{:79}\r", "");
    }
    let made = made?;
    std::fs::write(output, made.certificate.text()? + "\n").map_err(|error| {
        let message = format!("the model could not be written to `{}`: {error}", output.display());
        let entry = made.certificate.charge.sequence;
        Failure::new("cli.file", message)
            .hint(format!("it is kept in the ledger: demur certificate show {entry} > {}", output.display()))
    })?;
    told(&made, output);
    Ok(())
}

fn wanted(args: &Fit, project: &Project) -> Result<Wanted, Failure> {
    let wrong = |error: demur_core::Error| Failure::new("cli.guarantee", error.to_string());
    let epsilon = Epsilon::new(args.epsilon).map_err(wrong)?;
    let delta = match args.delta {
        Some(0.0) => Delta::ZERO,
        Some(delta) => Delta::new(delta).map_err(wrong)?,
        None => project.catalog.budget.delta.unwrap_or(Delta::ZERO),
    };
    Ok(Wanted {
        table: args.table.clone(),
        guarantee: Guarantee::new(epsilon, delta),
        method: match args.method {
            Named::Aim => Method::Aim,
            Named::Mst => Method::Mst,
            Named::Mwem => Method::Mwem,
            Named::Blr => Method::Blr,
        },
        shape: Shape { bins: args.bins, quantiles: args.quantile_bins, columns: args.columns.clone() },
        rows_per_unit: args.rows_per_unit,
        workload: args.workload.parse()?,
        records: args.records,
        impossible: args.impossible.clone(),
        requester: args.requester.clone().unwrap_or_else(place::user),
    })
}

/// What each stage costs.
fn stages(wanted: &Wanted, shares: &Shares, out: &mut impl Write) -> Result<(), Failure> {
    let row = |stage: &str, guarantee: &Guarantee| {
        let digits = |number: f64| format!("{number:.4e}").parse::<f64>().unwrap_or(number).to_string();
        vec![stage.to_owned(), digits(guarantee.epsilon.value()), digits(guarantee.delta.value())]
    };
    let mut rows: Vec<_> = shares
        .asked
        .iter()
        .map(|(name, guarantee)| row(&format!("what values `{name}` has"), guarantee))
        .collect();
    rows.push(row(&format!("the model, by {}", wanted.method.name()), &shares.model));
    let columns = [("stage", Side::Left), ("ε", Side::Right), ("δ", Side::Right)];
    Ok(Table::new(&columns).print(out, &rows)?)
}

/// A file that cannot be written is better known before anything is charged.
fn writable(path: &Path) -> Result<(), Failure> {
    let was_there = path.exists();
    std::fs::OpenOptions::new().append(true).create(true).open(path).map_err(|error| {
        Failure::new(
            "cli.file",
            format!("`{}` cannot be written: {error}; nothing was charged", path.display()),
        )
    })?;
    if !was_there {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// One line for people at a terminal; whether there is one.
fn show(progress: &Progress) -> bool {
    let mut to = std::io::stderr();
    if !to.is_terminal() {
        return false;
    }
    let step = match progress.steps {
        Some(steps) => format!("{} of {steps}", progress.step),
        None => progress.step.to_string(),
    };
    let filled = (progress.spent.clamp(0.0, 1.0) * 20.0) as usize;
    let bar = format!("{}{}", "█".repeat(filled), "░".repeat(20 - filled));
    let error =
        progress.expected_error.map_or(String::new(), |error| format!(", error of a marginal ≈ {error:.4}"));
    let left = 100.0 * (1.0 - progress.spent.clamp(0.0, 1.0));
    let _ = write!(to, "\r{bar} {} {step}, {left:.0} % of the budget left{error}   ", progress.stage);
    let _ = to.flush();
    true
}

fn told(made: &Made, output: &Path) {
    let model = &made.model.model;
    let cost = match made.replayed {
        true => "it was in the ledger, and nothing was charged for it".to_owned(),
        false => format!(
            "charged to `{}`, entry {}",
            made.certificate.budget.name, made.certificate.charge.sequence
        ),
    };
    let columns = made.model.header.columns.len();
    let _ = writeln!(
        std::io::stderr(),
        "a model of {columns} columns and about {:.0} rows is in {path}; {cost}\nrows of it: demur synth sample {path} -o synthetic.parquet",
        model.rows(),
        path = output.display(),
    );
}
