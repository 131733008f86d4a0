//! `demur ledger log`: what happened, entry by entry.
//!
//! Entries are printed as they are read, in portions, so a long ledger needs no more memory than a short one.

use std::collections::VecDeque;
use std::io::Write;

use demur_ledger::{Ledger, LedgerError};

use super::csv_failure;
use super::line::{Filters, Line};
use crate::account::figure::unwritable;
use crate::args::ledger::{Listing, Log};
use crate::failure::Failure;
use crate::place::Place;
use crate::table::{Side, Table};

/// Rows whose widths are measured together.
const PORTION: usize = 1000;

const COLUMNS: [(&str, Side); 8] = [
    ("entry", Side::Right),
    ("time (UTC)", Side::Left),
    ("event", Side::Left),
    ("budget", Side::Left),
    ("requester", Side::Left),
    ("request", Side::Left),
    ("detail", Side::Left),
    ("spent ε", Side::Left),
];
const CSV: [&str; 8] =
    ["entry", "time", "event", "budget", "requester", "request_id", "detail", "spent_epsilon"];

pub(crate) fn log(args: &Log, out: &mut impl Write) -> Result<(), Failure> {
    let place = Place::find(args.at.ledger.as_deref())?;
    let mut printer = Printer::new(args.format, out);
    let (mut filters, mut kept, mut failed) = (Filters::default(), VecDeque::new(), None);
    let read = Ledger::entries(&place.location, 0, &mut |sealed| {
        let line = filters.line(sealed.position, sealed.read()?)?;
        if args.budget.as_ref().is_some_and(|budget| !line.is_about(budget)) {
            return Ok(());
        }
        match args.last {
            None => printer.add(line).map_err(|failure| {
                failed = Some(failure);
                LedgerError::broken("cli.write", "the reader went away")
            })?,
            Some(most) => {
                kept.push_back(line);
                kept.drain(..kept.len().saturating_sub(most));
            }
        }
        Ok(())
    });
    if let Some(failure) = failed {
        return Err(failure);
    }
    kept.into_iter().try_for_each(|line| printer.add(line))?;
    let unknown = args.budget.as_ref().filter(|budget| !filters.knows(budget));
    match (read, unknown) {
        (Ok(()), Some(budget)) => Err(Failure::new(
            "ledger.budget.unknown",
            format!("there is no budget `{budget}` in the ledger {place}"),
        )
        .hint("`demur budget show` lists the budgets")),
        (read, _) => printer.end().and(read.map_err(|error| place.failure(error))),
    }
}

impl Line {
    fn is_about(&self, budget: &str) -> bool {
        self.name.as_ref().is_some_and(|name| name.budget == budget)
    }
}

/// Prints lines in one of three ways.
struct Printer<'a, W: Write> {
    format: Listing,
    out: &'a mut W,
    table: Table<'static>,
    waiting: Vec<Vec<String>>,
    printed: u64,
}

impl<'a, W: Write> Printer<'a, W> {
    fn new(format: Listing, out: &'a mut W) -> Self {
        Self { format, out, table: Table::new(&COLUMNS), waiting: Vec::new(), printed: 0 }
    }

    fn add(&mut self, line: Line) -> Result<(), Failure> {
        self.printed += 1;
        match self.format {
            Listing::Json => {
                let text = serde_json::to_string_pretty(&line.object()?).map_err(unwritable)?;
                let before = if self.printed == 1 { "[\n" } else { ",\n" };
                return Ok(write!(self.out, "{before}{text}")?);
            }
            Listing::Table => self.waiting.push(line.cells(true)?),
            Listing::Csv => self.waiting.push(line.cells(false)?),
        }
        if self.waiting.len() < PORTION { Ok(()) } else { self.flush() }
    }

    fn end(&mut self) -> Result<(), Failure> {
        match (self.format, self.printed) {
            (Listing::Json, 0) => Ok(writeln!(self.out, "[]")?),
            (Listing::Json, _) => Ok(writeln!(self.out, "\n]")?),
            (Listing::Table, printed) if printed == self.waiting.len() as u64 => {
                Ok(Table::new(&COLUMNS).print_all(self.out, &self.waiting)?)
            }
            _ => self.flush(),
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let rows = std::mem::take(&mut self.waiting);
        if self.format == Listing::Table {
            return Ok(self.table.print(self.out, &rows)?);
        }
        let first = self.printed as usize == rows.len();
        let mut writer = csv::Writer::from_writer(&mut *self.out);
        if first {
            writer.write_record(CSV).map_err(csv_failure)?;
        }
        rows.iter().try_for_each(|row| writer.write_record(row)).map_err(csv_failure)?;
        Ok(writer.flush()?)
    }
}
