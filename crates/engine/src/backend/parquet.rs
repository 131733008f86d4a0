//! Parquet files, one row group after the other, by several readers with about equally many rows each.
//!
//! **Strings.** A column that is asked for as a dictionary is read as one: the file's own numbers for its strings, without the strings.
//!
//! **Bytes that are no text.** Not all that write files look whether strings are texts, and one that is none must not make the question fail: then the rows after the
//! last that could be read are read with strings as bytes, and those that are no texts are NULL.
//!
//! **Why not the reader of the library below.** It has no way to ask for that, and skips row groups by what their values are: then the time
//! a query takes would depend on them more than it must.

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use datafusion::arrow::array::{
    ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringArray, new_null_array,
};
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
use parquet::file::metadata::{FileMetaData, ParquetMetaData};
use parquet::schema::types::{SchemaDescriptor, Type};

/// Rows in a batch.
const ROWS: usize = 8192;

/// Fewer rows than these are not divided.
const FEW: usize = 8 * ROWS;

/// The names and types a file states about itself.
pub(super) fn stored(file: &File) -> Result<Schema, ParquetError> {
    let metadata = ArrowReaderMetadata::load(file, ArrowReaderOptions::new())?;
    Ok(metadata.schema().as_ref().clone())
}

/// Some rows of a file.
#[derive(Clone)]
pub(super) struct ParquetPart {
    path: PathBuf,
    metadata: ArrowReaderMetadata,
    pieces: Vec<Piece>,
    /// What is wanted of them.
    schema: SchemaRef,
}

/// Some rows of a row group.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    group: usize,
    rows: Range<usize>,
}

impl fmt::Debug for ParquetPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ParquetPart({}, {:?})", self.path.display(), self.pieces)
    }
}

impl ParquetPart {
    /// At most so many parts of a file.
    pub(super) fn of(path: &Path, schema: &SchemaRef, parts: usize) -> Result<Vec<Self>> {
        let file = File::open(path)?;
        let stored = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(failed)?;
        let wanted: Vec<_> = stored.schema().fields().iter().map(|field| hint(field, schema)).collect();
        let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(wanted)));
        let metadata =
            ArrowReaderMetadata::try_new(Arc::clone(stored.metadata()), options).map_err(failed)?;
        let groups = metadata.metadata().row_groups().iter();
        let rows = groups.map(|group| {
            let negative = |_| failed(ParquetError::General("a row group has less than no rows".to_owned()));
            usize::try_from(group.num_rows()).map_err(negative)
        });
        let rows: Vec<usize> = rows.collect::<Result<_>>()?;
        let part = |pieces| Self {
            path: path.to_owned(),
            metadata: metadata.clone(),
            pieces,
            schema: schema.clone(),
        };
        Ok(shares(&rows, parts).into_iter().map(part).collect())
    }

    /// How many rows it has.
    pub(super) fn rows(&self) -> usize {
        self.pieces.iter().fold(0, |rows, piece| rows.saturating_add(piece.rows.len()))
    }

    /// The rows of a piece, as the file's description says that they are to be read.
    fn read(&self, piece: &Piece, description: &ArrowReaderMetadata) -> Result<ParquetRecordBatchReader> {
        keep_freed_memory();
        let stored = description.schema().fields();
        let roots = stored.iter().enumerate().filter(|(_, field)| self.schema.index_of(field.name()).is_ok());
        let mask = ProjectionMask::roots(description.parquet_schema(), roots.map(|(index, _)| index));
        let file = File::open(&self.path)?;
        let mut reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, description.clone())
            .with_projection(mask)
            .with_row_groups(vec![piece.group])
            .with_batch_size(ROWS);
        if piece.rows.len() as i64 != self.metadata.metadata().row_group(piece.group).num_rows() {
            reader = reader.with_offset(piece.rows.start).with_limit(piece.rows.len());
        }
        reader.build().map_err(failed)
    }

    /// The rows of a piece. From where they cannot be read with strings as texts, they are read with strings as bytes.
    fn batches(&self, piece: &Piece) -> impl Iterator<Item = Result<RecordBatch>> + use<> {
        let (part, mut left) = (self.clone(), piece.clone());
        let mut reader = Some(part.read(&left, &part.metadata));
        let mut is_careful = false;
        std::iter::from_fn(move || {
            loop {
                let batch = match reader.as_mut()? {
                    Ok(rows) => rows.next().map(|batch| batch.map_err(DataFusionError::from)),
                    Err(_) => reader.take().and_then(Result::err).map(Err),
                };
                match batch {
                    Some(Ok(batch)) => {
                        left.rows.start += batch.num_rows();
                        return Some(as_declared(&batch, &part.schema));
                    }
                    Some(Err(_)) if !is_careful => {
                        is_careful = true;
                        reader =
                            Some(bytes_for_texts(&part.metadata).and_then(|bytes| part.read(&left, &bytes)));
                    }
                    other => {
                        reader = None;
                        return other;
                    }
                }
            }
        })
    }
}

fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// The description of a file with its strings as bytes, which need not be texts.
fn bytes_for_texts(described: &ArrowReaderMetadata) -> Result<ArrowReaderMetadata> {
    let (metadata, fields) = (described.metadata(), described.schema().fields());
    let file = metadata.file_metadata();
    let schema = file.schema_descr();
    let stored = schema.root_schema().get_fields().iter().zip(fields).map(|(stored, field)| {
        match stored.is_primitive() && is_text(field.data_type()) {
            false => Ok(Arc::clone(stored)),
            true => Type::primitive_type_builder(stored.name(), stored.get_physical_type())
                .with_repetition(stored.get_basic_info().repetition())
                .build()
                .map(Arc::new),
        }
    });
    let stored = stored.collect::<Result<_, _>>().map_err(failed)?;
    let root = Type::group_type_builder(schema.name()).with_fields(stored).build().map_err(failed)?;
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        file.key_value_metadata().cloned(),
        Arc::new(SchemaDescriptor::new(Arc::new(root))),
        file.column_orders().cloned(),
    );
    let metadata = Arc::new(ParquetMetaData::new(file, metadata.row_groups().to_vec()));
    let field = |field: &Arc<Field>| match is_text(field.data_type()) {
        true => Arc::new(field.as_ref().clone().with_data_type(DataType::Binary)),
        false => Arc::clone(field),
    };
    let options = ArrowReaderOptions::new()
        .with_schema(Arc::new(Schema::new(fields.iter().map(field).collect::<Vec<_>>())));
    ArrowReaderMetadata::try_new(metadata, options).map_err(failed)
}

/// Divides the rows of row groups that have so many: every row is in one piece. A group is divided between two batches, so that no batch is smaller for it but the last.
///
/// In 128 bits: how many rows there are is what the file says.
fn shares(groups: &[usize], parts: usize) -> Vec<Vec<Piece>> {
    let all: u128 = groups.iter().map(|&rows| rows as u128).sum();
    let parts = all.div_ceil(FEW as u128).min(parts as u128);
    let mut shares = vec![Vec::new(); parts as usize];
    let mut before = 0;
    for (group, &rows) in groups.iter().enumerate() {
        let mut start = 0;
        while start < rows {
            let share = (before + start as u128) * parts / all;
            // From here on it would be the next one's.
            let next = ((share + 1) * all).div_ceil(parts) - before;
            let end = next.next_multiple_of(ROWS as u128).min(rows as u128) as usize;
            shares[share as usize].push(Piece { group, rows: start..end });
            start = end;
        }
        before += rows as u128;
    }
    shares
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
        let part = self.clone();
        let batches = (0..self.pieces.len()).flat_map(move |piece| part.batches(&part.pieces[piece]));
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
        let texts: ArrayRef = match stored.data_type() {
            DataType::Binary => {
                let text = |bytes: Option<&[u8]>| {
                    bytes.and_then(|bytes| str::from_utf8(bytes).ok()).map(str::to_owned)
                };
                Arc::new(StringArray::from_iter(stored.as_binary::<i32>().iter().map(text)))
            }
            _ => Arc::clone(stored),
        };
        Ok(cast_with_options(&texts, field.data_type(), &options)?)
    };
    let columns = schema.fields().iter().map(column).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

fn failed(error: ParquetError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_row_is_in_one_part_and_parts_are_alike(
            groups in prop::collection::vec(prop_oneof![0usize..3, 0usize..5 * FEW], 0..20),
            // As a damaged file may say.
            huge in prop::collection::vec(Just(i64::MAX as usize), 0..3),
            parts in 1usize..9,
        ) {
            let groups = [groups, huge].concat();
            let shares = shares(&groups, parts);
            let pieces: Vec<&Piece> = shares.iter().flatten().collect();
            let mut next = pieces.iter();
            for (group, &rows) in groups.iter().enumerate() {
                let mut start = 0;
                while start < rows {
                    let piece = next.next().unwrap();
                    prop_assert_eq!((piece.group, piece.rows.start), (group, start));
                    prop_assert!(piece.rows.end > start);
                    start = piece.rows.end;
                }
                prop_assert_eq!(start, rows);
            }
            prop_assert!(next.next().is_none());
            prop_assert!(shares.len() <= parts);
            let all: u128 = groups.iter().map(|&rows| rows as u128).sum();
            for share in &shares {
                let rows: u128 = share.iter().map(|piece| piece.rows.len() as u128).sum();
                let most = all.div_ceil(shares.len() as u128) + ROWS as u128;
                prop_assert!(rows <= most, "{} of {} in {}", rows, all, shares.len());
            }
        }
    }
}
