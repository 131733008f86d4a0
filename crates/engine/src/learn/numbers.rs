//! [`Numbers`]: the rows of a table as numbers, and whose they are.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use demur_learn::Points;
use demur_plan::catalog::{ColumnType, PrivacyUnit, Table};

use crate::EngineError;
use crate::backend::{Backend, Failed};
use crate::synth::{CodedColumn, Coder, unit_hashes};

/// How a column becomes numbers.
#[derive(Clone, Debug)]
pub(crate) enum Reader {
    /// The number itself; a day as days, a moment as microseconds. What is missing is no number.
    Number(String),
    /// The code of a value; what is missing is no number.
    Code(CodedColumn),
}

impl Reader {
    fn name(&self) -> &str {
        match self {
            Self::Number(name) => name,
            Self::Code(column) => &column.name,
        }
    }
}

/// Rows of numbers, one after the other.
pub(crate) struct Numbers {
    pub(crate) width: usize,
    pub(crate) values: Vec<f64>,
    /// Whose each row is, where rows are not units of their own.
    pub(crate) people: Option<Vec<u64>>,
}

#[derive(Default)]
struct Gathered {
    values: Vec<f64>,
    units: Vec<u128>,
}

impl Numbers {
    /// Reads a table.
    pub(crate) fn read(table: &Table, readers: &[Reader], backend: &dyn Backend) -> Result<Self, Failed> {
        let unit = table.unit_column().map_err(|_| Failed)?;
        let coders = readers
            .iter()
            .map(|reader| match reader {
                Reader::Number(_) => Ok(None),
                Reader::Code(column) => column.coder().map(Some),
            })
            .collect::<Result<Vec<_>, EngineError>>()
            .map_err(|_| Failed)?;
        let names: Vec<&str> = readers.iter().map(Reader::name).chain(unit).collect();
        let keys = [RandomState::new(), RandomState::new()];
        let all = Mutex::new(Gathered::default());
        backend.rows(table, &names, &|batch| {
            let mut columns = Vec::new();
            for (coder, values) in coders.iter().zip(batch.columns()) {
                columns.push(numbers(coder.as_ref(), values)?);
            }
            let units = match unit {
                None => Vec::new(),
                Some(_) => unit_hashes(batch.column(coders.len()), &keys)?,
            };
            let rows = (0..batch.num_rows()).flat_map(|row| columns.iter().map(move |column| column[row]));
            let mut all = all.lock().map_err(|_| Failed)?;
            all.values.extend(rows);
            all.units.extend(units);
            Ok(())
        })?;
        let all = all.into_inner().map_err(|_| Failed)?;
        let people = unit.map(|_| dense(&all.units));
        Ok(Self { width: readers.len(), values: all.values, people })
    }

    /// As points of people.
    pub(crate) fn points(self) -> Result<Points, EngineError> {
        let points = Points::new(self.width, self.values)?;
        Ok(match self.people {
            Some(people) => points.of_people(people)?,
            None => points,
        })
    }

    /// One row of each person, chosen by a keyed hash of the row itself, so that no other person has a say.
    pub(crate) fn one_each(self) -> Self {
        let Some(people) = self.people else { return self };
        let key = RandomState::new();
        let bits = |row: &[f64]| row.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        let mut best: HashMap<u64, (u64, usize)> = HashMap::new();
        for (place, (person, row)) in people.iter().zip(self.values.chunks(self.width)).enumerate() {
            let rank = (key.hash_one(bits(row)), place);
            best.entry(*person).and_modify(|best| *best = rank.min(*best)).or_insert(rank);
        }
        let mut kept: Vec<usize> = best.into_values().map(|(_, place)| place).collect();
        kept.sort_unstable();
        let rows = kept.iter().flat_map(|place| &self.values[place * self.width..(place + 1) * self.width]);
        Self { width: self.width, values: rows.copied().collect(), people: None }
    }
}

/// Names from 0 on.
fn dense(units: &[u128]) -> Vec<u64> {
    let mut names = HashMap::new();
    let mut name = |unit: &u128| {
        let next = names.len() as u64;
        *names.entry(*unit).or_insert(next)
    };
    units.iter().map(&mut name).collect()
}

pub(crate) fn numbers(coder: Option<&Coder<'_>>, values: &ArrayRef) -> Result<Vec<f64>, Failed> {
    if let Some(coder) = coder {
        let mut codes = Vec::new();
        coder.encode(values, &mut codes).map_err(|_| Failed)?;
        let number =
            |(place, code): (usize, &u32)| if values.is_null(place) { f64::NAN } else { f64::from(*code) };
        return Ok(codes.iter().enumerate().map(number).collect());
    }
    let whole = match values.data_type() {
        DataType::Date32 => cast(values, &DataType::Int32),
        DataType::Timestamp(..) => cast(values, &DataType::Int64),
        _ => Ok(values.clone()),
    };
    let numbers = whole.and_then(|values| cast(&values, &DataType::Float64)).map_err(|_| Failed)?;
    Ok(numbers.as_primitive::<Float64Type>().iter().map(|number| number.unwrap_or(f64::NAN)).collect())
}

/// The declared bounds of a numeric column.
pub(crate) fn bounds(table: &Table, name: &str) -> Result<(f64, f64), EngineError> {
    let column = declared(table, name)?;
    if matches!(column.column_type, ColumnType::String | ColumnType::Boolean) {
        let text = format!("`{name}` is no number but a {}", column.column_type);
        return Err(EngineError::new("engine.learn.column", text));
    }
    match (&column.low, &column.high) {
        (Some(low), Some(high)) => Ok((low.to_f64(), high.to_f64())),
        _ => Err(EngineError::new(
            "engine.learn.bounds",
            format!("the catalog does not say between which bounds `{name}` lies"),
        )
        .hint("write low and high for it in demur.toml, or let `demur init --private-bounds 0.5` find them")),
    }
}

/// A column of the table that is not the one that names the unit.
pub(crate) fn declared<'a>(
    table: &'a Table,
    name: &str,
) -> Result<&'a demur_plan::catalog::Column, EngineError> {
    let names_unit = matches!(&table.unit, PrivacyUnit::Column(unit) if unit == name);
    match table.columns.get(name) {
        Some(column) if !names_unit => Ok(column),
        found => {
            let all: Vec<_> = table.columns.keys().map(String::as_str).collect();
            let text = match found {
                Some(_) => format!("`{name}` names whose data a row is, and nothing is learned from it"),
                None => format!("the table `{}` has no column `{name}`", table.name),
            };
            Err(EngineError::new("engine.learn.column", text).hint(format!("there are: {}", all.join(", "))))
        }
    }
}
