//! From the text of a `demur.toml` to a checked [`Catalog`].

use std::collections::{BTreeMap, HashSet};
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use demur_core::{Adjacency, Delta, Epsilon};
use demur_exact::Rational;
use serde::Deserialize;
use toml::Value;

use super::{
    Budget, Catalog, Column, ColumnType, FILE, Format, NoisePreference, PrivacyUnit, SecondUnit, Table,
    Through, people,
};
use crate::PlanError;

/// In how many groups a unit may appear when the catalog does not say.
const GROUPS_PER_UNIT: u32 = 1;
/// For how many rows of a group a unit may count when the catalog does not say.
const ROWS_PER_GROUP: u64 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "the settings of a project")]
struct Written {
    budget: WrittenBudget,
    #[serde(default)]
    tables: BTreeMap<String, WrittenTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a budget, as in `[budget]` with its `name`")]
struct WrittenBudget {
    name: String,
    epsilon: Option<f64>,
    delta: Option<f64>,
    filter: Option<String>,
    delta_per_question: Option<f64>,
    max_epsilon_per_question: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, as in `[tables.visits]` with its `files`")]
struct WrittenTable {
    files: OneOrMany,
    format: Option<String>,
    #[serde(default)]
    public: bool,
    unit: Option<WrittenUnit>,
    second_unit: Option<WrittenSecond>,
    people: Option<String>,
    #[serde(default = "add_remove")]
    adjacency: Adjacency,
    max_groups_per_unit: Option<u32>,
    max_rows_per_group: Option<u64>,
    noise: Option<String>,
    version: Option<String>,
    columns: BTreeMap<String, WrittenColumn>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a column, as in `{ type = \"int64\" }`")]
struct WrittenColumn {
    #[serde(rename = "type")]
    column_type: String,
    low: Option<Value>,
    high: Option<Value>,
    values: Option<Vec<Value>>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a unit is \"row\", a column, or `{ column = …, table = …, key = … }`")]
enum WrittenUnit {
    Named(String),
    Through(WrittenThrough),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenThrough {
    column: String,
    table: String,
    key: String,
}

#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a second unit, as in `{ column = \"doctor\", max_rows_per_group = 10 }`"
)]
struct WrittenSecond {
    column: String,
    max_rows_per_group: u64,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected the name of a file, or a list of such names")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

fn add_remove() -> Adjacency {
    Adjacency::AddRemove
}

/// How programs and people name numbers.
const NUMBERS: [(&str, &str); 3] = [
    ("expected u32", "expected a whole number from 0 on"),
    ("expected u64", "expected a whole number from 0 on"),
    ("expected f64", "expected a number"),
];

pub(super) fn catalog(text: &str) -> Result<Catalog, PlanError> {
    let written: Written = toml::from_str(text).map_err(|error| {
        let text = NUMBERS.iter().fold(error.to_string(), |text, (one, other)| text.replace(one, other));
        PlanError::mistake("catalog.form", format!("{FILE}: {}", text.trim()))
    })?;
    let budget = budget(written.budget)?;
    let mut tables = BTreeMap::new();
    for (name, table) in written.tables {
        tables.insert(name.clone(), self::table(name, table)?);
    }
    one_or_the_other(&tables)?;
    people::settle(&mut tables)?;
    Ok(Catalog { budget, tables })
}

/// A file of a private table is not written down for a public one as well, however it is written: `t.csv`, `./t.csv`, `a/../t.csv`.
fn one_or_the_other(tables: &BTreeMap<String, Table>) -> Result<(), PlanError> {
    for public in tables.values().filter(|table| table.public) {
        let files: Vec<_> = public.files.iter().map(|file| plain(file)).collect();
        let shares =
            |table: &&Table| !table.public && table.files.iter().any(|file| files.contains(&plain(file)));
        if let Some(private) = tables.values().find(shares) {
            let text = format!(
                "{FILE}, table `{}`: it is public, and has a file of the private table `{}`",
                public.name, private.name
            );
            return Err(PlanError::mistake("catalog.table", text));
        }
    }
    Ok(())
}

/// A path without detours.
fn plain(file: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in Path::new(file).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(path.components().next_back(), Some(Component::Normal(_))) => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    path
}

/// The part of the budget's δ that a question has which names none, where the owner says nothing.
const SHARE: f64 = 0.01;

fn budget(written: WrittenBudget) -> Result<Budget, PlanError> {
    let wrong =
        |error: demur_core::Error| PlanError::mistake("catalog.budget", format!("{FILE}, budget: {error}"));
    let delta = |value: Option<f64>| value.map(Delta::new).transpose().map_err(wrong);
    let epsilon = |value: Option<f64>| value.map(Epsilon::new).transpose().map_err(wrong);
    let of_all = delta(written.delta)?;
    let of_one = match written.delta_per_question {
        Some(written) => Some(Delta::new(written).map_err(wrong)?),
        None => of_all.and_then(|delta| Delta::new(delta.value() * SHARE).ok()),
    };
    let opens_with =
        epsilon(written.epsilon)?.map(|epsilon| (epsilon, of_all.unwrap_or(Delta::ZERO), written.filter));
    Ok(Budget {
        name: written.name,
        opens_with,
        delta: of_one,
        most_per_question: epsilon(written.max_epsilon_per_question)?,
    })
}

fn table(name: String, written: WrittenTable) -> Result<Table, PlanError> {
    let wrong = |text: String| PlanError::mistake("catalog.table", format!("{FILE}, table `{name}`: {text}"));
    let files = match written.files {
        OneOrMany::One(file) => vec![file],
        OneOrMany::Many(files) => files,
    };
    let format = format_of(written.format.as_deref(), &files).map_err(&wrong)?;
    let mut columns = BTreeMap::new();
    for (column, text) in written.columns {
        let checked = self::column(text).map_err(|text| wrong(format!("column `{column}`: {text}")))?;
        columns.insert(column, checked);
    }
    if written.public && (written.unit.is_some() || written.second_unit.is_some()) {
        let text = "it is public, so it is about nobody, and it has a unit; leave out one of the two";
        return Err(wrong(text.to_owned()));
    }
    let unit = match written.unit {
        Some(WrittenUnit::Named(name)) if name == "row" => PrivacyUnit::Row,
        Some(WrittenUnit::Named(column)) if columns.contains_key(&column) => PrivacyUnit::Column(column),
        Some(WrittenUnit::Named(column)) => {
            return Err(wrong(format!("the unit is `{column}`, but there is no such column")));
        }
        Some(WrittenUnit::Through(WrittenThrough { column, table, key })) => {
            PrivacyUnit::Through(Through { column, table, key })
        }
        None if written.public => PrivacyUnit::Row,
        None => {
            let text =
                "it says not whose privacy counts; write unit = \"row\", or the column that names the person";
            return Err(wrong(text.to_owned()));
        }
    };
    let second_unit =
        written.second_unit.map(|second| second_unit(second, &unit, &columns)).transpose().map_err(&wrong)?;
    let per_row = unit == PrivacyUnit::Row;
    if per_row
        && (written.max_groups_per_unit.is_some_and(|n| n != 1)
            || written.max_rows_per_group.is_some_and(|n| n != 1))
    {
        return Err(wrong(
            "a row is in one group and is one row; leave out max_groups_per_unit and max_rows_per_group"
                .to_owned(),
        ));
    }
    let max_groups_per_unit = written.max_groups_per_unit.unwrap_or(GROUPS_PER_UNIT);
    let max_rows_per_group = written.max_rows_per_group.unwrap_or(ROWS_PER_GROUP);
    if max_groups_per_unit == 0
        || max_rows_per_group == 0
        || max_rows_per_group > 1 << 32
        || max_groups_per_unit > 1 << 20
    {
        return Err(wrong(
            "max_groups_per_unit must lie between 1 and 2^20, max_rows_per_group between 1 and 2^32"
                .to_owned(),
        ));
    }
    let noise = written.noise.as_deref().map_or(Ok(NoisePreference::Any), NoisePreference::from_str)?;
    Ok(Table {
        files,
        format,
        public: written.public,
        unit,
        second_unit,
        people: written.people.unwrap_or_else(|| name.clone()),
        adjacency: written.adjacency,
        max_groups_per_unit,
        max_rows_per_group,
        noise,
        version: written.version,
        columns,
        name,
    })
}

fn second_unit(
    written: WrittenSecond,
    unit: &PrivacyUnit,
    columns: &BTreeMap<String, Column>,
) -> Result<SecondUnit, String> {
    let WrittenSecond { column, max_rows_per_group } = written;
    if !columns.contains_key(&column) {
        return Err(format!("the second unit is `{column}`, but there is no such column"));
    }
    if *unit == PrivacyUnit::Column(column.clone()) {
        return Err(format!("`{column}` is the unit already; a second one must be somebody else"));
    }
    if !(1..=1 << 32).contains(&max_rows_per_group) {
        return Err("max_rows_per_group of the second unit must lie between 1 and 2^32".to_owned());
    }
    Ok(SecondUnit { column, max_rows_per_group })
}

fn format_of(written: Option<&str>, files: &[String]) -> Result<Format, String> {
    let ending = |ending: &str| files.iter().all(|file| file.to_ascii_lowercase().ends_with(ending));
    match written {
        Some("parquet") => Ok(Format::Parquet),
        Some("csv") => Ok(Format::Csv),
        Some(other) => Err(format!("`{other}` is no format; there are parquet and csv")),
        None if files.is_empty() => Err("it names no files".to_owned()),
        None if ending(".parquet") => Ok(Format::Parquet),
        None if ending(".csv") => Ok(Format::Csv),
        None => Err("the names of its files do not tell their format; write format = \"parquet\" or \"csv\""
            .to_owned()),
    }
}

fn column(written: WrittenColumn) -> Result<Column, String> {
    let column_type = ColumnType::from_str(&written.column_type)
        .map_err(|error| format!("{error}; {}", error.advice().unwrap_or_default()))?;
    let bound = |value: Option<Value>| value.map(|value| place(&value, column_type)).transpose();
    let (low, high) = (bound(written.low)?, bound(written.high)?);
    if let (Some(low), Some(high)) = (&low, &high)
        && low > high
    {
        return Err("its low is above its high".to_owned());
    }
    let values = written.values.map(|values| public(&values, column_type)).transpose()?;
    Ok(Column { column_type, low, high, values })
}

/// Values that everybody may know: each makes one group.
fn public(values: &[Value], column_type: ColumnType) -> Result<Vec<ScalarValue>, String> {
    if values.is_empty() {
        return Err("its list of values is empty; leave `values` out if they are not public".to_owned());
    }
    let mut seen = HashSet::new();
    let one = |value: &Value| {
        if matches!(value, Value::Float(number) if !number.is_finite()) {
            return Err(format!("`{value}` cannot be one of its values: it is no number"));
        }
        let one = scalar(value, column_type)?;
        match seen.insert(one.clone()) {
            true => Ok(one),
            false => Err(format!("{value} stands twice among its values")),
        }
    };
    values.iter().map(one).collect()
}

/// A bound as a number: of days for dates, of microseconds for timestamps.
fn place(value: &Value, column_type: ColumnType) -> Result<Rational, String> {
    if !column_type.is_ordered_number() {
        return Err(format!("values of type {column_type} have no low and high"));
    }
    let number = |text: String| Rational::from_str(&text).map_err(|_| format!("`{text}` is no number"));
    match (value, column_type) {
        (Value::Integer(whole), _) => number(whole.to_string()),
        (Value::Float(real), _) if real.is_finite() => number(format!("{real:?}")),
        (Value::String(text), ColumnType::Date | ColumnType::Timestamp) => {
            match scalar(value, column_type)? {
                ScalarValue::Date32(Some(days)) => number(days.to_string()),
                ScalarValue::TimestampMicrosecond(Some(micros), _) => number(micros.to_string()),
                _ => Err(format!("`{text}` is no {column_type}")),
            }
        }
        (Value::String(text), _) => number(text.clone()),
        (other, _) => Err(format!("`{other}` is no bound of a {column_type}")),
    }
}

/// A public value in the column's own type.
fn scalar(value: &Value, column_type: ColumnType) -> Result<ScalarValue, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Datetime(moment) => moment.to_string(),
        other => other.to_string(),
    };
    let target = column_type.arrow();
    if target == DataType::Utf8View && !value.is_str() {
        return Err(format!("`{text}` is no string; write it in quotes"));
    }
    match ScalarValue::try_from_string(text.clone(), &target) {
        Ok(scalar) if !scalar.is_null() => Ok(scalar),
        _ => Err(format!("`{text}` is no {column_type}")),
    }
}
