//! [`Names`]: what the words of a query may mean.
//!
//! The SQL planner asks here for every table and function. What is not here does not exist: no files, no settings, no functions
//! but the listed ones.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::utils::datafusion_strsim::levenshtein;
use datafusion::common::{Column, DataFusionError, Result, SchemaError, TableReference};
use datafusion::functions_window::all_default_window_functions;
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner};
use datafusion::logical_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, TableSource, WindowUDF};

use crate::PlanError;
use crate::aggregate;
use crate::catalog::{Catalog, PrivacyUnit, Table};
use crate::functions;
use crate::relation::{Reference, WINDOW_FUNCTIONS};

/// A table as the planner sees it: names and types.
#[derive(Debug)]
pub struct Declared {
    /// What the owner says about it.
    pub table: Table,
    schema: SchemaRef,
}

impl Declared {
    fn new(table: &Table) -> Self {
        Self { schema: schema(table), table: table.clone() }
    }
}

impl TableSource for Declared {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// The declared columns; any of them may be missing in a row, whatever is said of them.
pub fn schema(table: &Table) -> SchemaRef {
    let field = |(name, column): (&String, &crate::catalog::Column)| {
        Field::new(name, column.column_type.arrow(), true)
    };
    Arc::new(Schema::new(table.columns.iter().map(field).collect::<Vec<_>>()))
}

/// The tables of a catalog and the functions on the list.
pub(crate) struct Names {
    tables: HashMap<String, Arc<Declared>>,
    scalars: HashMap<String, Arc<ScalarUDF>>,
    aggregates: HashMap<String, Arc<AggregateUDF>>,
    windows: HashMap<String, Arc<WindowUDF>>,
    planners: Vec<Arc<dyn ExprPlanner>>,
    options: ConfigOptions,
}

impl Names {
    pub(crate) fn of(catalog: &Catalog) -> Self {
        let tables =
            catalog.tables.values().map(|table| (table.name.clone(), Arc::new(Declared::new(table))));
        Self {
            tables: tables.collect(),
            scalars: functions::allowed(),
            aggregates: aggregate::functions(),
            windows: windows(),
            planners: functions::planners(),
            options: ConfigOptions::default(),
        }
    }

    /// A table as something to scan.
    pub(crate) fn source(&self, name: &str) -> Option<Arc<dyn TableSource>> {
        self.tables.get(name).map(|table| Arc::clone(table) as Arc<dyn TableSource>)
    }

    /// The row that a column of a table names, where it is a way to somebody.
    pub(crate) fn reference(&self, table: &Table, column: &str) -> Option<Reference> {
        if let PrivacyUnit::Through(through) = &table.unit
            && through.column == column
        {
            return Some(Reference::to(&through.table, &through.key));
        }
        let leads_here = |other: &Arc<Declared>| match &other.table.unit {
            PrivacyUnit::Through(through) => through.table == table.name && through.key == column,
            _ => false,
        };
        self.tables.values().any(leads_here).then(|| Reference::to(&table.name, column))
    }
}

/// The window functions on the list.
fn windows() -> HashMap<String, Arc<WindowUDF>> {
    all_default_window_functions()
        .into_iter()
        .filter(|function| WINDOW_FUNCTIONS.contains(&function.name()))
        .map(|function| (function.name().to_owned(), function))
        .collect()
}

impl ContextProvider for Names {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        let plain = match &name {
            TableReference::Bare { table } => self.tables.get(table.as_ref()),
            _ => None,
        };
        match plain {
            Some(table) => Ok(Arc::clone(table) as Arc<dyn TableSource>),
            None => {
                let mut names: Vec<_> = self.tables.keys().map(String::as_str).collect();
                names.sort_unstable();
                let meant = near(name.table(), &names).map(|near| format!("did you mean `{near}`? "));
                let meant = meant.unwrap_or_default();
                let names = names.join(", ");
                Err(DataFusionError::Plan(format!("there is no table `{name}`; {meant}there are: {names}")))
            }
        }
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.planners
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.scalars.get(name).cloned()
    }

    fn get_higher_order_meta(&self, _: &str) -> Option<Arc<HigherOrderUDF>> {
        None
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.aggregates.get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.windows.get(name).cloned()
    }

    fn get_variable_type(&self, _: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        &self.options
    }

    fn udf_names(&self) -> Vec<String> {
        self.scalars.keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.aggregates.keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.windows.keys().cloned().collect()
    }
}

/// Every function that a query may call, in order.
pub fn function_names() -> Vec<String> {
    let mut names: Vec<_> =
        functions::allowed().into_keys().chain(aggregate::functions().into_keys()).collect();
    names.sort_unstable();
    names
}

/// What is said of a column that is not there, if that is the mistake.
pub(crate) fn no_column(error: &DataFusionError) -> Option<PlanError> {
    let DataFusionError::SchemaError(mistake, _) = error.find_root() else { return None };
    let SchemaError::FieldNotFound { field, valid_fields } = mistake.as_ref() else { return None };
    let mut names: Vec<&str> = valid_fields.iter().map(Column::name).collect();
    names.sort_unstable();
    names.dedup();
    let asked = field.name();
    let text = match &field.relation {
        Some(table) => format!("there is no column `{asked}` in `{table}`"),
        None => format!("there is no column `{asked}`"),
    };
    let hint = match near(asked, &names) {
        Some(near) => format!("did you mean `{near}`? There are: {}", names.join(", ")),
        None => format!("there are: {}", names.join(", ")),
    };
    Some(PlanError::mistake("plan.meaning", text).hint(hint))
}

/// What was probably meant by a name that is not there.
pub(crate) fn near<'a>(asked: &str, names: &[&'a str]) -> Option<&'a str> {
    let far = |name: &&str| levenshtein(&name.to_lowercase(), &asked.to_lowercase());
    // A slip in each three letters, and something must be left.
    let is_near = |name: &&str| {
        let shorter = name.len().min(asked.len());
        far(name) <= (shorter / 3).max(1) && far(name) < shorter
    };
    names.iter().copied().filter(is_near).min_by_key(far)
}

/// A type, as the catalog calls it where it can.
pub(crate) fn in_words(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => "a string",
        DataType::Boolean => "true or false",
        DataType::Date32 | DataType::Date64 => "a date",
        DataType::Timestamp(..) => "a timestamp",
        DataType::Null => "NULL",
        DataType::Interval(_) => "a length of time",
        DataType::Time32(_) | DataType::Time64(_) => "a time of day",
        nested if nested.is_nested() => "a list",
        whole if whole.is_integer() => "a whole number",
        number if number.is_numeric() => "a number",
        _ => "of another type",
    }
}
