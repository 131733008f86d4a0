//! Parquet files, a few row groups at a time.
//!
//! **Strings.** A column that is asked for as a dictionary is read as one: the file's own numbers for its strings, without the strings.
//!
//! **Why not the reader of the library below.** It has no way to ask for that, and skips row groups by what their values are: then the time
//! a query takes would depend on them more than it must.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::stream;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;

/// Rows in a batch.
const ROWS: usize = 8192;

/// The names and types a file states about itself.
pub(super) fn stored(file: &File) -> Result<Schema, ParquetError> {
    let metadata = ArrowReaderMetadata::load(file, ArrowReaderOptions::new())?;
    Ok(metadata.schema().as_ref().clone())
}

/// Some row groups of a file.
#[derive(Clone)]
pub(super) struct ParquetPart {
    path: PathBuf,
    metadata: ArrowReaderMetadata,
    groups: Vec<usize>,
    /// What is wanted of them.
    schema: SchemaRef,
}

impl fmt::Debug for ParquetPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ParquetPart({}, {:?})", self.path.display(), self.groups)
    }
}

impl ParquetPart {
    /// At most so many parts of a file, with about equally many rows.
    pub(super) fn of(path: &Path, schema: &SchemaRef, parts: usize) -> Result<Vec<Self>> {
        let file = File::open(path)?;
        let stored = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(failed)?;
        let wanted: Vec<_> = stored.schema().fields().iter().map(|field| hint(field, schema)).collect();
        let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(wanted)));
        let metadata =
            ArrowReaderMetadata::try_new(Arc::clone(stored.metadata()), options).map_err(failed)?;
        let groups = metadata.metadata().row_groups();
        let all: i64 = groups.iter().map(|group| group.num_rows()).sum();
        let mut shares = vec![Vec::new(); parts.max(1)];
        let mut before = 0;
        for (index, group) in groups.iter().enumerate() {
            let share = (before * shares.len() as i64 / all.max(1)) as usize;
            before += group.num_rows();
            let last = shares.len() - 1;
            shares[share.min(last)].push(index);
        }
        let part = |groups| Self {
            path: path.to_owned(),
            metadata: metadata.clone(),
            groups,
            schema: schema.clone(),
        };
        Ok(shares.into_iter().filter(|groups| !groups.is_empty()).map(part).collect())
    }

    /// How many rows it has.
    pub(super) fn rows(&self) -> usize {
        let groups = self.metadata.metadata().row_groups();
        self.groups.iter().map(|&group| groups[group].num_rows() as usize).sum()
    }

    fn open(&self) -> Result<ParquetRecordBatchReader> {
        keep_freed_memory();
        let stored = self.metadata.schema().fields();
        let roots = stored.iter().enumerate().filter(|(_, field)| self.schema.index_of(field.name()).is_ok());
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), roots.map(|(index, _)| index));
        ParquetRecordBatchReaderBuilder::new_with_metadata(File::open(&self.path)?, self.metadata.clone())
            .with_projection(mask)
            .with_row_groups(self.groups.clone())
            .with_batch_size(ROWS)
            .build()
            .map_err(failed)
    }
}

/// Lets the allocator keep what is freed for whoever asks next. Pages of a file are unpacked one after the other, a megabyte each; glibc gives so much back to the system each time, and
/// gets it again empty, page by page. Once a greater block was freed it takes blocks up to that size for ordinary ones, and keeps twice as much (mallopt(3), the dynamic threshold).
/// Other allocators do not mind.
fn keep_freed_memory() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| drop(std::hint::black_box(Vec::<u8>::with_capacity(16 << 20))));
}

/// How a stored column is to be read: strings as they are declared, all else as it is.
fn hint(stored: &Arc<Field>, declared: &Schema) -> Arc<Field> {
    let is_text = |kind: &DataType| matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    match declared.field_with_name(stored.name()) {
        Ok(field) if is_text(stored.data_type()) => {
            Arc::new(stored.as_ref().clone().with_data_type(field.data_type().clone()))
        }
        _ => Arc::clone(stored),
    }
}

impl PartitionStream for ParquetPart {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let schema = self.schema.clone();
        let batches: Box<dyn Iterator<Item = Result<RecordBatch>> + Send> = match self.open() {
            Ok(reader) => Box::new(reader.map(move |batch| as_declared(&batch?, &schema))),
            Err(error) => Box::new(std::iter::once(Err(error))),
        };
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), stream::iter(batches)))
    }
}

/// The declared columns of a batch; what cannot be one of their values is NULL.
fn as_declared(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let column = |field: &Arc<Field>| -> Result<ArrayRef> {
        let Some(stored) = batch.column_by_name(field.name()) else {
            return Ok(new_null_array(field.data_type(), batch.num_rows()));
        };
        if stored.data_type() == field.data_type() {
            return Ok(Arc::clone(stored));
        }
        let options = CastOptions { safe: true, ..CastOptions::default() };
        Ok(cast_with_options(stored, field.data_type(), &options)?)
    };
    let columns = schema.fields().iter().map(column).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

fn failed(error: ParquetError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
