//! The true numbers, from flags or a file.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use demur_core::Lattice;
use demur_exact::Rational;

use crate::args;
use crate::failure::Failure;

/// The true answers, and whether all of them are whole.
pub(crate) struct Numbers {
    values: Vec<Rational>,
    pub(crate) whole: bool,
}

impl Numbers {
    /// Reads them from wherever the flags say.
    pub(crate) fn read(args: &args::Numbers) -> Result<Self, Failure> {
        let source = &args.source;
        let texts = match (&source.value, &source.values, &source.values_file, &args.column) {
            (Some(value), ..) => vec![value.clone()],
            (_, Some(values), ..) => values.clone(),
            (_, _, Some(file), Some(column)) => read_column(file, column)?,
            _ => {
                return Err(Failure::new("cli.values", "no number was given").hint("use --value or --values"));
            }
        };
        let values = texts.iter().enumerate().map(|(index, text)| parse(index, text));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        if values.is_empty() {
            return Err(Failure::new("cli.values", "there are no numbers to publish"));
        }
        Ok(Self { values, whole: texts.iter().all(|text| is_whole(text)) })
    }

    pub(crate) fn len(&self) -> u64 {
        self.values.len() as u64
    }

    /// In steps of the lattice the mechanism chose.
    pub(crate) fn on(&self, lattice: Lattice) -> Result<Vec<i64>, Failure> {
        let steps = |value: &Rational| {
            let code = "cli.values";
            lattice.quantise_exact(value).map_err(|error| Failure::new(code, error.to_string()))
        };
        self.values.iter().map(steps).collect()
    }
}

/// Speaks of the place and not of the text, which may be somebody's data.
fn parse(index: usize, text: &str) -> Result<Rational, Failure> {
    text.parse().map_err(|_| {
        let message = format!("value {} is not a number", index + 1);
        Failure::new("cli.values", message).hint("write numbers like 42, -0.5, 1e-6 or 1/3")
    })
}

/// 42 and -7 are whole; 42.0 and 4e1 ask for lattice noise.
fn is_whole(text: &str) -> bool {
    let digits = text.trim().trim_start_matches(['-', '+']);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Opens a file, or standard input for `-`.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    match File::open(path) {
        Ok(file) => Ok(Box::new(file)),
        Err(error) => {
            let message = format!("cannot read `{}`: {error}", path.display());
            Err(Failure::new("cli.file", message).hint("check the path, or use - for standard input"))
        }
    }
}

fn read_column(path: &Path, column: &str) -> Result<Vec<String>, Failure> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(open(path)?);
    let bad = |error: csv::Error| {
        Failure::new("cli.csv", format!("`{}` is not a CSV file we can read: {error}", path.display()))
    };
    let header = reader.headers().map_err(bad)?.clone();
    let index = header.iter().position(|name| name == column).ok_or_else(|| {
        let names = header.iter().collect::<Vec<_>>().join(", ");
        let message = format!("`{}` has no column `{column}`", path.display());
        Failure::new("cli.csv", message).hint(format!("its columns are: {names}"))
    })?;
    let cell =
        |record: csv::Result<csv::StringRecord>| Ok(record.map_err(bad)?.get(index).unwrap_or("").to_owned());
    reader.records().map(cell).collect()
}
