//! What is done with answers once they are noisy: the upper part of the query, run over the released table.
//!
//! Reads nothing but released numbers, so it costs nothing.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::{LogicalPlan, TableScan};
use datafusion::physical_plan::collect;
use datafusion::prelude::{SessionConfig, SessionContext};
use demur_plan::{After, RELEASED, Shown};
use serde_json::{Number, Value};

use crate::table::{Cell, Heading, Table};

/// How shown columns are named and typed.
pub(crate) fn headings(after: &After) -> Vec<Heading> {
    let heading = |shown: &Shown| Heading {
        name: shown.name.clone(),
        kind: sql_type(&shown.data_type),
        interval: shown.interval.is_some(),
    };
    after.shown.iter().map(heading).collect()
}

/// Runs the upper part over released columns.
pub(crate) async fn run(after: &After, released: Vec<ArrayRef>) -> Result<Table> {
    let batch = RecordBatch::try_new(Arc::clone(&after.released), released)?;
    let table = Arc::new(MemTable::try_new(Arc::clone(&after.released), vec![vec![batch]])?);
    // One partition: rows stay in the order of their keys.
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    let plan = after.plan.clone().transform_up(|node| match node {
        LogicalPlan::TableScan(scan) if scan.table_name.table() == RELEASED => {
            let source = provider_as_source(Arc::clone(&table) as _);
            Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })))
        }
        other => Ok(Transformed::no(other)),
    });
    let physical = context.state().create_physical_plan(&plan?.data).await?;
    let schema = physical.schema();
    let batches = collect(physical, context.task_ctx()).await?;
    shown(after, &concat_batches(&schema, &batches)?)
}

fn shown(after: &After, batch: &RecordBatch) -> Result<Table> {
    let values = (0..after.shown.len()).map(|index| json(batch.column(index))).collect::<Result<Vec<_>>>()?;
    let end = |place: usize| batch.column(place).as_primitive_opt::<Float64Type>();
    let cell = |row: usize, column: usize| {
        let interval = after.shown[column].interval.and_then(|(low, high)| {
            let (low, high) = (end(low)?, end(high)?);
            (low.is_valid(row) && high.is_valid(row)).then(|| (low.value(row), high.value(row)))
        });
        Cell { value: values[column][row].clone(), interval }
    };
    let rows = (0..batch.num_rows()).map(|row| (0..values.len()).map(|column| cell(row, column)).collect());
    Ok(Table { headings: headings(after), rows: rows.collect() })
}

/// The values of a column.
fn json(array: &ArrayRef) -> Result<Vec<Value>> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(array.as_ref(), &options)?;
    let value = |row: usize| -> Result<Value> {
        if array.is_null(row) {
            return Ok(Value::Null);
        }
        Ok(match array.data_type() {
            DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
            DataType::Int64 => Value::from(array.as_primitive::<Int64Type>().value(row)),
            DataType::Float64 => {
                let number = array.as_primitive::<Float64Type>().value(row);
                Number::from_f64(number).map_or(Value::Null, Value::Number)
            }
            DataType::List(_) => Value::Array(json(&array.as_list::<i32>().value(row))?),
            other => {
                let text = formatter.value(row).try_to_string()?;
                let number = (other.is_numeric()).then(|| serde_json::from_str::<Number>(&text).ok()).flatten();
                number.map_or(Value::String(text), Value::Number)
            }
        })
    };
    (0..array.len()).map(value).collect()
}

/// The type as SQL knows it.
fn sql_type(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Float32 | DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Decimal128(precision, scale) => format!("DECIMAL({precision}, {scale})"),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR".to_owned(),
        DataType::Date32 | DataType::Date64 => "DATE".to_owned(),
        DataType::Timestamp(..) => "TIMESTAMP".to_owned(),
        DataType::List(field) => format!("{}[]", sql_type(field.data_type())),
        other if other.is_integer() => "BIGINT".to_owned(),
        other => other.to_string(),
    }
}

/// A failure below us, whose words are not repeated.
pub(crate) fn silent(_: DataFusionError) -> crate::EngineError {
    crate::EngineError::after_the_charge()
}
