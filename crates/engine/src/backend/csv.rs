//! Comma-separated values, read so that no cell can make reading fail.
//!
//! **Definition.** The first line names the columns. A cell that is no value of its column's declared type is NULL; so is one that its line does
//! not have. Cells beyond the header are ignored, bytes that are no UTF-8 are replaced.
//!
//! **Why not the reader of the library below.** It fails at the first bad cell and quotes it.

use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::Arc;

use csv::{ByteRecord, Reader, ReaderBuilder};
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringViewBuilder};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::stream;

/// Rows in a batch.
const ROWS: usize = 8192;

/// The columns a file names, all of them text.
pub(super) fn header(file: File) -> std::io::Result<Schema> {
    let mut reader = reader(file);
    let names = reader.byte_headers()?.clone();
    let field = |name: &[u8]| Field::new(String::from_utf8_lossy(name).trim(), DataType::Utf8View, true);
    Ok(Schema::new(names.iter().map(field).collect::<Vec<_>>()))
}

fn reader(file: File) -> Reader<BufReader<File>> {
    ReaderBuilder::new().flexible(true).from_reader(BufReader::with_capacity(1 << 18, file))
}

/// One file of a table.
#[derive(Clone)]
pub(super) struct CsvFile {
    pub(super) path: PathBuf,
    pub(super) schema: SchemaRef,
}

impl fmt::Debug for CsvFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CsvFile({})", self.path.display())
    }
}

impl PartitionStream for CsvFile {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batches = Batches::open(self);
        let stream: Box<dyn Iterator<Item = Result<RecordBatch>> + Send> = match batches {
            Ok(batches) => Box::new(batches),
            Err(error) => Box::new(std::iter::once(Err(error))),
        };
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), stream::iter(stream)))
    }
}

/// The rows of a file, batch by batch.
struct Batches {
    reader: Reader<BufReader<File>>,
    /// For each declared column, where in a line it stands.
    places: Vec<Option<usize>>,
    schema: SchemaRef,
    done: bool,
}

impl Batches {
    fn open(file: &CsvFile) -> Result<Self> {
        let mut reader = reader(File::open(&file.path)?);
        let names = reader.byte_headers().map_err(failed)?.clone();
        let place = |field: &Arc<Field>| {
            names.iter().position(|name| String::from_utf8_lossy(name).trim() == field.name().as_str())
        };
        let places = file.schema.fields().iter().map(place).collect();
        Ok(Self { reader, places, schema: file.schema.clone(), done: false })
    }

    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        let mut columns: Vec<_> = self.places.iter().map(|_| StringViewBuilder::new()).collect();
        let (mut record, mut rows) = (ByteRecord::new(), 0);
        while rows < ROWS {
            if !self.reader.read_byte_record(&mut record).map_err(failed)? {
                self.done = true;
                break;
            }
            for (place, column) in self.places.iter().zip(&mut columns) {
                match place.and_then(|place| record.get(place)) {
                    Some(cell) => column.append_value(String::from_utf8_lossy(cell)),
                    None => column.append_null(),
                }
            }
            rows += 1;
        }
        if rows == 0 {
            return Ok(None);
        }
        let typed = columns.into_iter().zip(self.schema.fields()).map(|(mut column, field)| {
            let text: ArrayRef = Arc::new(column.finish());
            let options = CastOptions { safe: true, ..CastOptions::default() };
            Ok(cast_with_options(&text, field.data_type(), &options)?)
        });
        let typed = typed.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(Some(RecordBatch::try_new_with_options(self.schema.clone(), typed, &options)?))
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.batch().transpose();
        self.done |= matches!(next, None | Some(Err(_)));
        next
    }
}

fn failed(error: csv::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
