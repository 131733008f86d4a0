//! `demur synth`: a table like the private one, about nobody.

mod fit;
mod growth;
mod report;

use std::io::Write;
use std::path::Path;

use demur_engine::synth::{CsvRows, RowsFile, Synthetic, write_rows};
use demur_engine::{Certificate, Table};
use demur_noise::Entropy;

use crate::args::synth::{Query, Sample, Synth};
use crate::failure::Failure;
use crate::query::print;

pub(crate) fn run(command: Synth, out: &mut impl Write) -> Result<(), Failure> {
    match command {
        Synth::Fit(args) => fit::run(&args, out),
        Synth::Sample(args) => sample(&args, out).map_err(Failure::without_note),
        Synth::Query(args) => query(&args, out).map_err(Failure::without_note),
        Synth::Report(args) => report::run(&args),
        Synth::Growth(args) => growth::run(&args, out).map_err(Failure::without_note),
    }
}

/// The model of a file, and the certificate it is.
fn model(path: &Path) -> Result<(Synthetic, Certificate), Failure> {
    let bytes = std::fs::read(path).map_err(|error| {
        Failure::new("cli.read", format!("`{}` cannot be read: {error}", path.display()))
            .hint("a model is made by `demur synth fit TABLE --epsilon 1 -o FILE`")
    })?;
    let certificate = Certificate::read(&bytes)?;
    Ok((Synthetic::read(&certificate.released)?, certificate))
}

fn sample(args: &Sample, out: &mut impl Write) -> Result<(), Failure> {
    let (synthetic, _) = model(&args.model)?;
    let rows = args.rows.unwrap_or(synthetic.model.rows().round().max(0.0) as u64);
    let mut entropy = Entropy::from_os()?;
    let mut parts = synthetic.sample_in_parts(rows, &mut entropy).peekable();
    let Some(Ok(first)) = parts.peek() else {
        return parts.next().map_or(Ok(()), |part| Ok(part.map(drop)?));
    };
    let schema = first.schema();
    if args.output.as_os_str() == "-" {
        let mut to = CsvRows::new(out, &schema)?;
        parts.try_for_each(|part| Ok::<_, Failure>(to.write(&part?)?))?;
        return Ok(to.finish()?);
    }
    let mut file = RowsFile::create(&args.output, schema)?;
    parts.try_for_each(|part| file.write(&part?))?;
    file.finish()?;
    let _ = writeln!(std::io::stderr(), "{rows} rows about nobody are in {}", args.output.display());
    Ok(())
}

fn query(args: &Query, out: &mut impl Write) -> Result<(), Failure> {
    let (synthetic, _) = model(&args.model)?;
    let Some(output) = &args.output else {
        let table: Table = synthetic.query(&args.sql)?;
        return print::table(&table, args.format, out);
    };
    Ok(write_rows(&synthetic.contingency(&args.sql)?, output)?)
}
