//! `demur ledger`: the record itself.

mod adopt;
mod export;
mod line;
mod log;
mod verify;

use std::io::Write;

use crate::args::ledger::Ledger;
use crate::failure::Failure;

pub(crate) fn run(command: Ledger, out: &mut impl Write) -> Result<(), Failure> {
    match command {
        Ledger::Log(args) => log::log(&args, out),
        Ledger::Verify(args) => verify::verify(&args, out),
        Ledger::Export(args) => export::export(&args, out),
        Ledger::Adopt(args) => adopt::adopt(&args, out),
    }
}

/// CSV fails only when what is beneath it does.
pub(crate) fn csv_failure(error: csv::Error) -> Failure {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error.into(),
        other => Failure::new("cli.write", format!("the answer could not be written: {other:?}")),
    }
}
