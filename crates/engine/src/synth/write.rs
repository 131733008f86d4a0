//! Rows drawn from a model, as files.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::EngineError;

/// Writes rows to a file whose name says how.
pub fn write_rows(batch: &RecordBatch, path: &Path) -> Result<(), EngineError> {
    let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    let wrong = |error: &dyn std::fmt::Display| {
        EngineError::new("engine.synth.write", format!("`{}` could not be written: {error}", path.display()))
    };
    let create = || File::create(path).map_err(|error| wrong(&error));
    match ending.as_deref() {
        Some("parquet") => {
            let properties =
                WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
            let mut writer = ArrowWriter::try_new(create()?, batch.schema(), Some(properties.build()))
                .map_err(|error| wrong(&error))?;
            writer.write(batch).and_then(|()| writer.close()).map_err(|error| wrong(&error))?;
            Ok(())
        }
        Some("csv") => write_csv(batch, create()?),
        _ => Err(EngineError::new(
            "engine.synth.write",
            format!("`{}` is neither a .parquet nor a .csv file", path.display()),
        )),
    }
}

/// Writes rows as comma-separated values, the first line naming the columns.
pub fn write_csv(batch: &RecordBatch, to: impl Write) -> Result<(), EngineError> {
    let wrong = |error: &dyn std::fmt::Display| {
        EngineError::new("engine.synth.write", format!("the rows could not be written: {error}"))
    };
    let mut writer = csv::Writer::from_writer(to);
    let schema = batch.schema();
    let names = schema.fields().iter().map(|field| field.name());
    writer.write_record(names).map_err(|error| wrong(&error))?;
    let options = FormatOptions::default();
    let formatters = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
    let formatters = formatters.collect::<Result<Vec<_>, _>>().map_err(|error| wrong(&error))?;
    for row in 0..batch.num_rows() {
        for (column, formatter) in batch.columns().iter().zip(&formatters) {
            let text = if column.is_null(row) { String::new() } else { formatter.value(row).to_string() };
            writer.write_field(text).map_err(|error| wrong(&error))?;
        }
        writer.write_record(None::<&[u8]>).map_err(|error| wrong(&error))?;
    }
    writer.flush().map_err(|error| wrong(&error))
}
