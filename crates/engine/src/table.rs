//! [`Table`]: released answers in rows and columns.
//!
//! A certificate stores them as one list of texts, row by row, each a JSON value; [`Heading`]s say how the list is to be read.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::EngineError;

/// One column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heading {
    /// Its name.
    pub name: String,
    /// Its type, as SQL knows it.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether each value is followed by the ends of its 95 % interval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interval: bool,
}

/// One value, with its interval where it has one.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// What is shown.
    pub value: Value,
    /// Where the truth lies, with 95 % confidence.
    pub interval: Option<(f64, f64)>,
}

/// Released answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The columns.
    pub headings: Vec<Heading>,
    /// The rows, with a cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Reads the texts of a certificate.
    pub fn read(headings: &[Heading], released: &[String]) -> Result<Self, EngineError> {
        let wrong = || EngineError::new("engine.table", "the released values do not fill the columns");
        let width: usize = headings.iter().map(width).sum();
        if width == 0 || !released.len().is_multiple_of(width) {
            return Err(wrong());
        }
        let rows = released.chunks(width).map(|row| {
            let mut texts = row.iter().map(|text| serde_json::from_str::<Value>(text));
            let mut next = || texts.next().and_then(Result::ok).ok_or_else(wrong);
            let cell = |heading: &Heading| {
                let value = next()?;
                let interval = match heading.interval {
                    true => next()?.as_f64().zip(next()?.as_f64()),
                    false => None,
                };
                Ok::<_, EngineError>(Cell { value, interval })
            };
            headings.iter().map(cell).collect::<Result<Vec<_>, _>>()
        });
        Ok(Self { headings: headings.to_vec(), rows: rows.collect::<Result<_, _>>()? })
    }

    /// The names of all columns as programs read them: an interval has columns of its own after its answer.
    ///
    /// No two are the same, whatever the query calls its columns.
    pub fn names(&self) -> Vec<String> {
        let taken = |name: &str| self.headings.iter().any(|heading| heading.name == name);
        let mut names: Vec<String> = Vec::new();
        for heading in &self.headings {
            names.push(heading.name.clone());
            for side in ["low", "high"].iter().filter(|_| heading.interval) {
                let mut name = format!("{}_{side}", heading.name);
                while taken(&name) || names.contains(&name) {
                    name.push('_');
                }
                names.push(name);
            }
        }
        names
    }

    /// The values of a row, in the order of [`names`](Self::names).
    pub fn values(&self, row: &[Cell]) -> Vec<Value> {
        let mut values = Vec::new();
        for (cell, heading) in row.iter().zip(&self.headings) {
            values.push(cell.value.clone());
            if heading.interval {
                let end = |end: Option<f64>| end.map_or(Value::Null, Value::from);
                values.push(end(cell.interval.map(|ends| ends.0)));
                values.push(end(cell.interval.map(|ends| ends.1)));
            }
        }
        values
    }

    /// The texts a certificate stores.
    pub(crate) fn texts(&self) -> Vec<String> {
        let texts = |row: &Vec<Cell>| self.values(row).into_iter().map(|value| value.to_string());
        self.rows.iter().flat_map(texts).collect()
    }
}

fn width(heading: &Heading) -> usize {
    if heading.interval { 3 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_columns_have_the_same_name() {
        let heading =
            |name: &str, interval| Heading { name: name.to_owned(), kind: "BIGINT".to_owned(), interval };
        let headings = vec![heading("n", true), heading("n_low", true), heading("n_low_", false)];
        let names = Table { headings, rows: Vec::new() }.names();
        assert_eq!(names, ["n", "n_low__", "n_high", "n_low", "n_low_low", "n_low_high", "n_low_"]);
    }
}
