//! `demur synth fit`.

use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use demur_core::{Delta, Epsilon, Guarantee};
use demur_engine::synth::{Made, Method, Progress, Shape, Shares, Wanted};
use demur_engine::{Embedded, Project};

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
    let engine = place.engine(&project)?;
    let reached = Reached::listen()?;
    let mut shown = false;
    let made = engine.synthesise(&project, &wanted, &backend, &mut |progress| {
        reached.note(progress);
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
    told(&made, &shares, output)
}

/// How far a run has come, for what Ctrl-C has to say.
#[derive(Clone)]
struct Reached(Arc<AtomicU8>);

impl Reached {
    const ASKING: u8 = 1;
    const MODEL: u8 = 2;

    fn listen() -> Result<Self, Failure> {
        let reached = Self(Arc::new(AtomicU8::new(0)));
        let heard = reached.clone();
        waiting::on_interrupt(move || heard.words())?;
        Ok(reached)
    }

    /// The first thing said about a model is said right after its charge is on disk.
    fn note(&self, progress: &Progress) {
        let now = if progress.stage == "asking about columns" { Self::ASKING } else { Self::MODEL };
        self.0.fetch_max(now, Ordering::Relaxed);
    }

    fn words(&self) -> &'static str {
        match self.0.load(Ordering::Relaxed) {
            0 => "nothing was released; `demur budget show` says whether the model was charged already",
            Self::ASKING => {
                "no model was released; what was answered about columns is in the ledger, and costs nothing the next time"
            }
            _ => {
                "the model was charged and the charge stands; nothing was released. Fit again: the model costs again"
            }
        }
    }
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
        workload: args.workload.as_deref().map(str::parse).transpose()?,
        records: args.records,
        impossible: args.impossible.clone(),
        requester: args.requester.clone().unwrap_or_else(place::user),
    })
}

/// What each stage costs.
fn stages(wanted: &Wanted, shares: &Shares, out: &mut impl Write) -> Result<(), Failure> {
    let row = |stage: &str, guarantee: &Guarantee| {
        vec![stage.to_owned(), digits(guarantee.epsilon.value()), digits(guarantee.delta.value())]
    };
    let mut rows: Vec<_> =
        shares.asked.iter().map(|(name, guarantee)| row(&asked(name), guarantee)).collect();
    rows.push(row(&format!("the model, by {}", wanted.method.name()), &shares.model));
    rows.push(row("all together, at most", &wanted.guarantee));
    let columns = [("stage", Side::Left), ("ε", Side::Right), ("δ", Side::Right)];
    Table::new(&columns).print(out, &rows)?;
    let parts = shares.within.iter().map(|stage| format!("{:.0} % on {}", 100.0 * stage.part, stage.name));
    Ok(writeln!(out, "the model spends {}", parts.collect::<Vec<_>>().join(", "))?)
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

/// What each stage did cost, and what to do next.
fn told(made: &Made, shares: &Shares, output: &Path) -> Result<(), Failure> {
    let to = &mut std::io::stderr();
    let row = |stage: String, guarantee: &Guarantee, entry: u64, replayed: bool| {
        let cost = if replayed {
            "nothing: it was there".to_owned()
        } else {
            format!("ε = {}", digits(guarantee.epsilon.value()))
        };
        vec![stage, entry.to_string(), cost]
    };
    let mut rows: Vec<_> = made
        .asked
        .iter()
        .zip(&shares.asked)
        .map(|((name, entry, replayed), (_, guarantee))| row(asked(name), guarantee, *entry, *replayed))
        .collect();
    rows.push(row("the model".to_owned(), &shares.model, made.certificate.charge.sequence, made.replayed));
    let columns = [("done", Side::Left), ("ledger entry", Side::Right), ("charged", Side::Left)];
    Table::new(&columns).print(to, &rows)?;
    let columns = made.model.header.columns.len();
    writeln!(
        to,
        "a model of {columns} columns and about {:.0} rows is in {path}\nrows of it: demur synth sample {path} -o synthetic.parquet",
        made.model.model.rows(),
        path = output.display(),
    )?;
    Ok(())
}

fn asked(column: &str) -> String {
    format!("what values `{column}` has")
}

/// Five digits are enough for people, and small numbers are easier to read with an exponent.
fn digits(number: f64) -> String {
    let number = format!("{number:.4e}").parse::<f64>().unwrap_or(number);
    if number > 0.0 && number < 1e-3 { format!("{number:e}") } else { number.to_string() }
}
