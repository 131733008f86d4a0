//! `demur ledger export`: all entries as they are stored, one after the other.

use std::fs::OpenOptions;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;

use demur_ledger::entry::Sealed;
use demur_ledger::{Hash, Ledger, LedgerError};
use serde::Serialize;
use serde_json::value::RawValue;

use super::csv_failure;
use crate::account::figure::unwritable;
use crate::args::ledger::{Export, Lines};
use crate::failure::Failure;
use crate::place::Place;

pub(crate) fn export(args: &Export, out: &mut impl Write) -> Result<(), Failure> {
    let place = Place::find(args.at.ledger.as_deref())?;
    match &args.out {
        None => entries(&place, args.format, out),
        Some(path) => {
            // Asked before a file is made for nothing.
            if !place.location.exists().map_err(|error| place.failure(error))? {
                return Ledger::look(&place.location).map(|_| ()).map_err(|error| place.failure(error));
            }
            let mut file = new_file(path)?;
            entries(&place, args.format, &mut file)?;
            file.flush().and_then(|()| file.get_ref().sync_all()).map_err(|error| unwritten(path, &error))
        }
    }
}

fn entries(place: &Place, format: Lines, out: &mut impl Write) -> Result<(), Failure> {
    match format {
        Lines::Json => each(place, |previous, sealed| Ok(writeln!(out, "{}", line(previous, sealed)?)?)),
        Lines::Csv => {
            let mut writer = csv::Writer::from_writer(out);
            writer.write_record(["sequence", "previous", "hash", "entry"]).map_err(csv_failure)?;
            each(place, |previous, sealed| {
                let Sealed { position, body } = sealed;
                let (number, hash) = (position.sequence.to_string(), position.hash.to_string());
                let cells = [number.as_bytes(), previous.to_string().as_bytes(), hash.as_bytes(), body]
                    .map(<[u8]>::to_owned);
                writer.write_record(cells).map_err(csv_failure)
            })?;
            Ok(writer.flush()?)
        }
    }
}

/// Shows every entry with the hash before it, and stops at the first failure to write.
fn each(place: &Place, mut write: impl FnMut(Hash, &Sealed) -> Result<(), Failure>) -> Result<(), Failure> {
    let (mut previous, mut failed) = (Hash::START, None);
    let read = Ledger::entries(&place.location, 0, &mut |sealed| {
        write(previous, &sealed).map_err(|failure| {
            failed = Some(failure);
            LedgerError::broken("cli.write", "the reader went away")
        })?;
        previous = sealed.position.hash;
        Ok(())
    });
    match failed {
        Some(failure) => Err(failure),
        None => read.map_err(|error| place.failure(error)),
    }
}

/// An entry as JSON, with its own text untouched.
#[derive(Serialize)]
struct Line<'a> {
    sequence: u64,
    previous: Hash,
    hash: Hash,
    entry: &'a RawValue,
}

fn line(previous: Hash, sealed: &Sealed) -> Result<String, Failure> {
    let entry: &RawValue = serde_json::from_slice(&sealed.body).map_err(unwritable)?;
    let line = Line { sequence: sealed.position.sequence, previous, hash: sealed.position.hash, entry };
    serde_json::to_string(&line).map_err(unwritable)
}

fn new_file(path: &Path) -> Result<BufWriter<std::fs::File>, Failure> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    file.map(BufWriter::new).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            let message = format!("`{}` is there already, and an export overwrites nothing", path.display());
            Failure::new("cli.out", message).hint("name a new file")
        }
        _ => unwritten(path, &error),
    })
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new("cli.out", format!("cannot write `{}`: {error}", path.display()))
}
