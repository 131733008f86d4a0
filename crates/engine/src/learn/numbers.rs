//! [`Numbers`]: the rows of a table as numbers, and whose they are.
//!
//! **Guarantee.** A person's name here is a keyed hash of the one in the table, so no other person's rows change it: which of a person's rows count depends on
//! the person's rows and on keys alone. Were people numbered as they appear, whoever comes first would rename all others, and with that choose anew which rows of theirs count.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
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
    pub(crate) people: Option<Vec<u128>>,
}

#[derive(Default)]
struct Gathered {
    values: Vec<f64>,
    units: Vec<u128>,
}

impl Numbers {
    /// Reads a table.
    pub(crate) fn read(table: &Table, readers: &[Reader], backend: &dyn Backend) -> Result<Self, Failed> {
        Self::read_by(&[RandomState::new(), RandomState::new()], table, readers, backend)
    }

    fn read_by(
        keys: &[RandomState; 2],
        table: &Table,
        readers: &[Reader],
        backend: &dyn Backend,
    ) -> Result<Self, Failed> {
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
        let all = Mutex::new(Gathered::default());
        backend.rows(table, &names, &|batch| {
            let mut columns = Vec::new();
            for (coder, values) in coders.iter().zip(batch.columns()) {
                columns.push(numbers(coder.as_ref(), values)?);
            }
            let units = match unit {
                None => Vec::new(),
                Some(_) => unit_hashes(batch.column(coders.len()), keys)?,
            };
            let rows = (0..batch.num_rows()).flat_map(|row| columns.iter().map(move |column| column[row]));
            let mut all = all.lock().map_err(|_| Failed)?;
            all.values.extend(rows);
            all.units.extend(units);
            Ok(())
        })?;
        let all = all.into_inner().map_err(|_| Failed)?;
        let people = unit.map(|_| all.units);
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

    /// One row of each person. Every row has a rank, a keyed hash of its person, its numbers and how many rows of that person are like it; the smallest stays.
    pub(crate) fn one_each(self) -> Self {
        self.one_each_by(&RandomState::new())
    }

    fn one_each_by(self, key: &RandomState) -> Self {
        let Some(people) = &self.people else { return self };
        let row = |place: usize| &self.values[place * self.width..][..self.width];
        let alike = |place: usize| {
            let mut hasher = key.build_hasher();
            people[place].hash(&mut hasher);
            row(place).iter().for_each(|value| value.to_bits().hash(&mut hasher));
            hasher.finish()
        };
        let mut order: Vec<(u128, u64, usize)> =
            people.iter().enumerate().map(|(place, &person)| (person, alike(place), place)).collect();
        order.sort_unstable();
        let first = |person: &[(u128, u64, usize)]| {
            let copies = person.chunk_by(|one, two| one.1 == two.1).flat_map(|same| same.iter().enumerate());
            copies.map(|(copy, (_, alike, place))| (key.hash_one((alike, copy)), *place)).min()
        };
        let kept = order.chunk_by(|one, two| one.0 == two.0).filter_map(first);
        let values = kept.flat_map(|(_, place)| row(place)).copied().collect();
        Self { width: self.width, values, people: None }
    }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use demur_plan::Catalog;

    use super::*;
    use crate::Embedded;

    const CATALOG: &str = "[budget]\nname = \"t\"\n[tables.t]\nfiles = \"t.csv\"\nunit = \"who\"\n[tables.t.columns]\n\
        who = { type = \"string\" }\nx = { type = \"int64\", low = 0, high = 999 }\n";

    /// Ten people with ten rows each, the tenth without a name, row by row; of those who are here and in that order.
    fn rows(people: &[u32]) -> String {
        let name = |who: u32| if who == 9 { String::new() } else { format!("p{who}") };
        let row = |row: u32, who: u32| format!("{},{}\n", name(who), who * 10 + row);
        let rows = (0..10).flat_map(|place| people.iter().map(move |who| row(place, *who)));
        "who,x\n".to_owned() + &rows.collect::<String>()
    }

    /// From a file, with equal keys: what every person is called, and which row stays.
    fn found(people: &[u32], keys: &[RandomState; 2]) -> (BTreeMap<u32, u128>, BTreeMap<u32, f64>) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("t.csv"), rows(people)).unwrap();
        let table = &Catalog::read(CATALOG).unwrap().tables["t"];
        let backend = Embedded::new(folder.path()).unwrap();
        let readers = [Reader::Number("x".to_owned())];
        let numbers = Numbers::read_by(keys, table, &readers, &backend).unwrap();
        let who = |value: &f64| *value as u32 / 10;
        let names = numbers.values.iter().map(who).zip(numbers.people.clone().unwrap()).collect();
        let kept = numbers.one_each_by(&keys[0]).values;
        (names, kept.iter().map(|value| (who(value), *value)).collect())
    }

    /// Whoever comes, goes, or stands elsewhere in the file.
    #[test]
    fn nobody_else_has_a_say_in_what_a_person_is_called_and_which_row_counts() {
        let keys = [RandomState::new(), RandomState::new()];
        let everyone: Vec<u32> = (0..10).collect();
        let (names, kept) = found(&everyone, &keys);
        assert_eq!((names.len(), kept.len()), (10, 10));
        for gone in everyone.iter().copied() {
            let others: Vec<u32> = everyone.iter().copied().filter(|who| *who != gone).rev().collect();
            let (mut all_names, mut all_kept) = (names.clone(), kept.clone());
            all_names.remove(&gone);
            all_kept.remove(&gone);
            assert_eq!(found(&others, &keys), (all_names, all_kept), "without {gone}");
        }
    }

    /// 3000 people with two rows of one kind and one of another. The number of those who keep the rare kind has mean 1000 and deviation 25.9; a false alarm beyond 6
    /// deviations has a chance of 2·10⁻⁹. Were rows ranked by their numbers alone, all would agree.
    #[test]
    fn people_choose_independently_and_by_the_number_of_rows() {
        let people = Some((0..9000).map(|row| row / 3).collect());
        let values = (0..9000).map(|row| f64::from(u8::from(row % 3 == 0))).collect();
        let kept = Numbers { width: 1, values, people }.one_each().values;
        let rare: f64 = kept.iter().sum();
        assert!(kept.len() == 3000 && (rare - 1000.0).abs() < 156.0, "{rare}");
    }
}
