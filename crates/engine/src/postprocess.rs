//! What is done with answers once they are noisy: the upper part of the query, over the released table.
//!
//! Reads nothing but released numbers, so it costs nothing. The steps are few (project, filter, sort, limit) and tables are small, so they are taken one after the other
//! on one batch; expressions are DataFusion's.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt64Array};
use datafusion::arrow::compute::{
    SortColumn, SortOptions, filter_record_batch, lexsort_to_indices, take_record_batch,
};
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Int64Type, SchemaRef};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, FetchType, LogicalPlan, SkipType};
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use demur_plan::{After, Shown};
use serde_json::{Number, Value};

use crate::sql_type;
use crate::table::{Cell, Heading, Table};

/// How shown columns are named and typed.
pub(crate) fn headings(after: &After) -> Vec<Heading> {
    let heading = |shown: &Shown| Heading {
        name: shown.name.clone(),
        kind: sql_type::name(&shown.data_type),
        interval: shown.interval.is_some(),
    };
    after.shown.iter().map(heading).collect()
}

/// The upper part of a query, ready to be run.
pub(crate) struct Postprocess<'a> {
    after: &'a After,
    steps: Vec<Step>,
}

type Evaluated = Arc<dyn PhysicalExpr>;

enum Step {
    Project(Vec<Evaluated>, SchemaRef),
    Filter(Evaluated),
    Sort(Vec<(Evaluated, SortOptions)>),
    Limit { skip: usize, fetch: Option<usize> },
}

impl<'a> Postprocess<'a> {
    /// Prepares the steps.
    pub(crate) fn new(after: &'a After) -> Result<Self> {
        let mut steps = Vec::new();
        prepare(&after.plan, &mut steps)?;
        Ok(Self { after, steps })
    }

    /// Runs them over released columns.
    pub(crate) fn run(&self, released: Vec<ArrayRef>) -> Result<Table> {
        let rows = released.first().map_or(0, |column| column.len());
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.after.released), released, &options)?;
        let batch = self.steps.iter().try_fold(batch, |batch, step| step.take(&batch))?;
        shown(self.after, &batch)
    }
}

/// The steps of a plan, the lowest first.
fn prepare(plan: &LogicalPlan, steps: &mut Vec<Step>) -> Result<()> {
    if let Some(input) = plan.inputs().first() {
        prepare(input, steps)?;
    }
    let below = plan.inputs().first().map(|input| Arc::clone(input.schema()));
    let below: &DFSchema = below.as_deref().unwrap_or(plan.schema());
    let (properties, context) = (ExecutionProps::new(), PhysicalPlanningContext::default());
    let ready = |expr: &Expr| create_physical_expr(expr, below, &properties, &context);
    match plan {
        LogicalPlan::TableScan(_) | LogicalPlan::SubqueryAlias(_) => {}
        LogicalPlan::Projection(projection) => {
            let exprs =
                projection.expr.iter().map(|expr| ready(&expr.clone().unalias())).collect::<Result<_>>()?;
            steps.push(Step::Project(exprs, Arc::clone(projection.schema.inner())));
        }
        LogicalPlan::Filter(filter) => steps.push(Step::Filter(ready(&filter.predicate)?)),
        LogicalPlan::Sort(sort) => {
            let by = sort.expr.iter().map(|by| {
                let options = SortOptions { descending: !by.asc, nulls_first: by.nulls_first };
                Ok((ready(&by.expr)?, options))
            });
            steps.push(Step::Sort(by.collect::<Result<_>>()?));
            steps.extend(sort.fetch.map(|fetch| Step::Limit { skip: 0, fetch: Some(fetch) }));
        }
        LogicalPlan::Limit(limit) => match (limit.get_skip_type()?, limit.get_fetch_type()?) {
            (SkipType::Literal(skip), FetchType::Literal(fetch)) => steps.push(Step::Limit { skip, fetch }),
            _ => return plan_err!("LIMIT needs a plain number"),
        },
        other => return plan_err!("{} cannot be done with answers", other.display()),
    }
    Ok(())
}

impl Step {
    fn take(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let value = |expr: &Evaluated| expr.evaluate(batch)?.into_array(batch.num_rows());
        match self {
            Self::Project(exprs, schema) => {
                let columns = exprs.iter().map(value).collect::<Result<_>>()?;
                let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
            }
            Self::Filter(predicate) => Ok(filter_record_batch(batch, value(predicate)?.as_boolean())?),
            Self::Sort(by) => {
                let mut columns = by
                    .iter()
                    .map(|(expr, options)| Ok(SortColumn { values: value(expr)?, options: Some(*options) }))
                    .collect::<Result<Vec<_>>>()?;
                // Rows that are equal stay in the order of their keys.
                let order: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..batch.num_rows() as u64));
                columns.push(SortColumn { values: order, options: None });
                Ok(take_record_batch(batch, &lexsort_to_indices(&columns, None)?)?)
            }
            Self::Limit { skip, fetch } => {
                let skip = (*skip).min(batch.num_rows());
                let left = batch.num_rows() - skip;
                Ok(batch.slice(skip, fetch.map_or(left, |fetch| fetch.min(left))))
            }
        }
    }
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

/// Batches as they are, without intervals.
pub(crate) fn plain_table(batches: &[RecordBatch]) -> Result<Table> {
    let mut table = Table { headings: Vec::new(), rows: Vec::new() };
    for batch in batches {
        let schema = batch.schema();
        let heading = |field: &Arc<Field>| Heading {
            name: field.name().clone(),
            kind: sql_type::name(field.data_type()),
            interval: false,
        };
        table.headings = schema.fields().iter().map(heading).collect();
        let columns = batch.columns().iter().map(json).collect::<Result<Vec<_>>>()?;
        let cell = |row: usize, column: &Vec<Value>| Cell { value: column[row].clone(), interval: None };
        table.rows.extend(
            (0..batch.num_rows()).map(|row| columns.iter().map(|column| cell(row, column)).collect()),
        );
    }
    Ok(table)
}

/// The number of a text, unless it has more digits than a double keeps: then it stays a text.
fn number(text: &str, data_type: &DataType) -> Option<Number> {
    let number = serde_json::from_str::<Number>(text).ok().filter(|_| data_type.is_numeric())?;
    match data_type {
        DataType::Decimal128(_, scale) if number.is_f64() => {
            let places = usize::try_from(*scale).ok()?;
            (format!("{:.places$}", number.as_f64()?) == text).then_some(number)
        }
        _ => Some(number),
    }
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
            // A date beyond all calendars has no text.
            other => match formatter.value(row).try_to_string() {
                Ok(text) => number(&text, other).map_or(Value::String(text), Value::Number),
                Err(_) => Value::Null,
            },
        })
    };
    (0..array.len()).map(value).collect()
}
