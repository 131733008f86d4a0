//! Answers as Arrow data: each column in its own type, the ends of intervals as columns of their own.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, Float64Array, ListArray, RecordBatch, StringArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::writer::FileWriter;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde_json::Value;

use crate::EngineError;
use crate::sql_type;
use crate::table::{Cell, Table};

/// Something that is said beside a table, by its name.
pub type Note = (String, String);

impl Table {
    /// The answers as one batch, with notes in its schema.
    pub fn to_arrow(&self, notes: &[Note]) -> Result<RecordBatch, EngineError> {
        self.batch(notes).map_err(|error| wrong(&error))
    }

    /// The answers as a Parquet file.
    pub fn to_parquet(&self, notes: &[Note]) -> Result<Vec<u8>, EngineError> {
        let batch = self.to_arrow(notes)?;
        let properties =
            WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties))
            .map_err(|error| wrong(&error))?;
        writer.write(&batch).and_then(|()| writer.close()).map_err(|error| wrong(&error))?;
        Ok(bytes)
    }

    /// The answers as a file in Arrow's own format (IPC, also known as Feather).
    pub fn to_arrow_file(&self, notes: &[Note]) -> Result<Vec<u8>, EngineError> {
        let batch = self.to_arrow(notes)?;
        let mut bytes = Vec::new();
        let write = |bytes: &mut Vec<u8>| {
            let mut writer = FileWriter::try_new(bytes, &batch.schema())?;
            writer.write(&batch)?;
            writer.finish()
        };
        write(&mut bytes).map_err(|error| wrong(&error))?;
        Ok(bytes)
    }

    fn batch(&self, notes: &[Note]) -> Result<RecordBatch, ArrowError> {
        let mut columns: Vec<ArrayRef> = Vec::new();
        for (index, heading) in self.headings.iter().enumerate() {
            let values: Vec<&Value> = self.rows.iter().map(|row| &row[index].value).collect();
            columns.push(array(&sql_type::of_name(&heading.kind), &values)?);
            if heading.interval {
                let end = |pick: fn((f64, f64)) -> f64| -> ArrayRef {
                    let end = |row: &Vec<Cell>| row[index].interval.map(pick);
                    Arc::new(self.rows.iter().map(end).collect::<Float64Array>())
                };
                columns.extend([end(|ends| ends.0), end(|ends| ends.1)]);
            }
        }
        let names = self.names();
        let fields = names.iter().zip(&columns);
        let fields = fields.map(|(name, column)| Field::new(name, column.data_type().clone(), true));
        let notes = notes.iter().cloned().collect();
        let schema = Schema::new(fields.collect::<Vec<_>>()).with_metadata(notes);
        RecordBatch::try_new(Arc::new(schema), columns)
    }
}

fn wrong(error: &dyn std::fmt::Display) -> EngineError {
    EngineError::new("engine.export", format!("the answer cannot be written as Arrow data: {error}"))
}

/// Values of a column in their own type.
fn array(data_type: &DataType, values: &[&Value]) -> Result<ArrayRef, ArrowError> {
    if let DataType::List(field) = data_type {
        let lists = values.iter().map(|value| value.as_array());
        let inside: Vec<&Value> = lists.clone().flatten().flatten().collect();
        let inside = array(field.data_type(), &inside)?;
        let lengths = lists.map(|list| list.map_or(0, Vec::len));
        let present = NullBuffer::from(values.iter().map(|value| !value.is_null()).collect::<Vec<_>>());
        let offsets = OffsetBuffer::from_lengths(lengths);
        return Ok(Arc::new(ListArray::try_new(Arc::clone(field), offsets, inside, Some(present))?));
    }
    let texts: StringArray = values.iter().map(|value| text(value, data_type)).collect();
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(&texts, data_type, &strict)
}

/// A value as the text that is read.
fn text(value: &Value, data_type: &DataType) -> Option<String> {
    match (value, data_type) {
        (Value::Null, _) => None,
        (Value::String(text), _) => Some(text.clone()),
        // A double such as 1e20 has an exponent in its text, a decimal has none.
        (Value::Number(number), DataType::Decimal128(_, scale)) if number.is_f64() => {
            let places = usize::try_from(*scale).unwrap_or(0);
            number.as_f64().map(|number| format!("{number:.places$}"))
        }
        (other, _) => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::{Date32Type, Decimal128Type, Float64Type, Int64Type, TimeUnit};
    use datafusion::arrow::ipc::reader::FileReader;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use serde_json::json;

    use super::*;
    use crate::table::Heading;

    fn heading(name: &str, kind: &str, interval: bool) -> Heading {
        Heading { name: name.to_owned(), kind: kind.to_owned(), interval }
    }

    fn table() -> Table {
        let cell = |value: Value| Cell { value, interval: None };
        let answer = |value: Value, ends| Cell { value, interval: ends };
        let row = |day: Value, region: Value, n, cost: Value, shares: Value| {
            vec![
                cell(day),
                cell(region),
                answer(json!(n), Some((n as f64 - 2.5, n as f64 + 2.5))),
                answer(cost, None),
                cell(shares),
            ]
        };
        Table {
            headings: vec![
                heading("day", "DATE", false),
                heading("region", "VARCHAR", false),
                heading("n", "BIGINT", true),
                heading("cost", "DECIMAL(38, 2)", true),
                heading("quartiles", "DOUBLE[]", false),
            ],
            rows: vec![
                row(json!("2025-01-31"), json!("north"), 7i64, json!(1234.5), json!([0.0, 0.25, 1.0])),
                row(json!(null), json!(null), -3, json!("12345678901234567890.12"), json!(null)),
            ],
        }
    }

    #[test]
    fn every_column_has_its_own_type() {
        let batch = table().to_arrow(&[]).unwrap();
        let schema = batch.schema();
        let fields: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(
            fields,
            ["day", "region", "n", "n_low", "n_high", "cost", "cost_low", "cost_high", "quartiles"]
        );
        assert_eq!(batch.column(0).as_primitive::<Date32Type>().value(0), 20119);
        assert!(batch.column(0).is_null(1) && batch.column(1).is_null(1) && batch.column(8).is_null(1));
        assert_eq!(batch.column(2).as_primitive::<Int64Type>().values(), &[7, -3]);
        assert_eq!(batch.column(3).as_primitive::<Float64Type>().values(), &[4.5, -5.5]);
        let cost = batch.column(5).as_primitive::<Decimal128Type>();
        assert_eq!(cost.values(), &[123_450, 1_234_567_890_123_456_789_012]);
        assert_eq!((cost.precision(), cost.scale()), (38, 2));
        assert_eq!(batch.column(6).null_count(), 2);
        let quartiles = batch.column(8).as_list::<i32>().value(0);
        assert_eq!(quartiles.as_primitive::<Float64Type>().values(), &[0.0, 0.25, 1.0]);
    }

    #[test]
    fn files_read_back_to_the_same_batch_with_its_notes() {
        let notes = [("demur.epsilon".to_owned(), "0.5".to_owned())];
        let batch = table().to_arrow(&notes).unwrap();
        let file = table().to_arrow_file(&notes).unwrap();
        let read: Vec<_> = FileReader::try_new(std::io::Cursor::new(file), None).unwrap().collect();
        assert_eq!(read.into_iter().collect::<Result<Vec<_>, _>>().unwrap(), std::slice::from_ref(&batch));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("answer.parquet");
        std::fs::write(&path, table().to_parquet(&notes).unwrap()).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(path).unwrap()).unwrap();
        assert_eq!(reader.schema().metadata().get("demur.epsilon").map(String::as_str), Some("0.5"));
        let read = reader.build().unwrap().collect::<Result<Vec<_>, _>>().unwrap();
        assert_eq!(read[0].columns(), batch.columns());
    }

    #[test]
    fn an_answer_without_rows_keeps_its_columns() {
        let empty = Table { rows: Vec::new(), ..table() };
        let batch = empty.to_arrow(&[]).unwrap();
        assert_eq!((batch.num_rows(), batch.num_columns()), (0, 9));
        assert!(!empty.to_parquet(&[]).unwrap().is_empty());
    }

    #[test]
    fn a_value_that_does_not_fit_its_type_is_an_error() {
        let table = Table {
            headings: vec![heading("n", "BIGINT", false)],
            rows: vec![vec![Cell { value: json!("seven"), interval: None }]],
        };
        assert_eq!(table.to_arrow(&[]).unwrap_err().code(), "engine.export");
    }

    #[test]
    fn moments_keep_their_microseconds() {
        let table = Table {
            headings: vec![heading("at", "TIMESTAMP", false)],
            rows: vec![vec![Cell { value: json!("2025-03-01T12:30:00.000001"), interval: None }]],
        };
        let batch = table.to_arrow(&[]).unwrap();
        assert_eq!(batch.schema().field(0).data_type(), &DataType::Timestamp(TimeUnit::Microsecond, None));
        let column = batch.column(0).as_primitive::<datafusion::arrow::datatypes::TimestampMicrosecondType>();
        assert_eq!(column.value(0) % 1_000_000, 1);
    }
}
