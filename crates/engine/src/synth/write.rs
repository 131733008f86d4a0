//! Rows as files, some at a time, so that there may be more of them than memory holds.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::EngineError;

/// A file of rows that is being written.
pub struct RowsFile(Kind);

enum Kind {
    Parquet(Box<ArrowWriter<File>>),
    Csv(Box<CsvRows<File>>),
}

impl RowsFile {
    /// A new file; its name says how it is written.
    pub fn create(path: &Path, schema: SchemaRef) -> Result<Self, EngineError> {
        let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
        let wrong =
            |error: &dyn Display| failed(&format!("`{}` could not be written: {error}", path.display()));
        let create = || File::create(path).map_err(|error| wrong(&error));
        match ending.as_deref() {
            Some("parquet") => {
                let zstd = Compression::ZSTD(ZstdLevel::default());
                let properties = WriterProperties::builder().set_compression(zstd).build();
                let writer = ArrowWriter::try_new(create()?, schema, Some(properties));
                Ok(Self(Kind::Parquet(Box::new(writer.map_err(|error| wrong(&error))?))))
            }
            Some("csv") => {
                Ok(Self(Kind::Csv(Box::new(CsvRows::new(create()?, &schema).map_err(unwritten)?))))
            }
            _ => Err(failed(&format!("`{}` is neither a .parquet nor a .csv file", path.display()))),
        }
    }

    /// More rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), EngineError> {
        match &mut self.0 {
            Kind::Parquet(writer) => writer.write(batch).map_err(unwritten),
            Kind::Csv(writer) => writer.write(batch).map_err(unwritten),
        }
    }

    /// No more rows; only now the file is whole.
    pub fn finish(self) -> Result<(), EngineError> {
        match self.0 {
            Kind::Parquet(writer) => writer.close().map(drop).map_err(unwritten),
            Kind::Csv(writer) => writer.finish().map_err(unwritten),
        }
    }
}

/// Rows as comma-separated values, the first line naming the columns.
pub struct CsvRows<W: Write>(csv::Writer<W>);

impl<W: Write> CsvRows<W> {
    /// Writes the first line.
    pub fn new(to: W, schema: &SchemaRef) -> io::Result<Self> {
        let mut writer = csv::Writer::from_writer(to);
        writer.write_record(schema.fields().iter().map(|field| field.name()))?;
        Ok(Self(writer))
    }

    /// More rows.
    pub fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let options = FormatOptions::default();
        let formatters = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
        let formatters = formatters.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
        for row in 0..batch.num_rows() {
            for (column, formatter) in batch.columns().iter().zip(&formatters) {
                let text = if column.is_null(row) { String::new() } else { formatter.value(row).to_string() };
                self.0.write_field(text)?;
            }
            self.0.write_record(None::<&[u8]>)?;
        }
        Ok(())
    }

    /// No more rows.
    pub fn finish(mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes rows to a file whose name says how.
pub fn write_rows(batch: &RecordBatch, path: &Path) -> Result<(), EngineError> {
    let mut file = RowsFile::create(path, batch.schema())?;
    file.write(batch)?;
    file.finish()
}

/// Writes rows as comma-separated values, the first line naming the columns.
pub fn write_csv(batch: &RecordBatch, to: impl Write) -> io::Result<()> {
    let mut rows = CsvRows::new(to, &batch.schema())?;
    rows.write(batch)?;
    rows.finish()
}

fn failed(text: &str) -> EngineError {
    EngineError::new("engine.synth.write", text)
}

fn unwritten(error: impl Display) -> EngineError {
    failed(&format!("the rows could not be written: {error}"))
}
