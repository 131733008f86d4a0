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

    /// The texts a certificate stores.
    pub(crate) fn texts(&self) -> Vec<String> {
        let mut texts = Vec::new();
        for row in &self.rows {
            for (cell, heading) in row.iter().zip(&self.headings) {
                texts.push(cell.value.to_string());
                if heading.interval {
                    let end = |pick: fn((f64, f64)) -> f64| {
                        cell.interval.map_or(Value::Null, |ends| Value::from(pick(ends)))
                    };
                    texts.push(end(|ends| ends.0).to_string());
                    texts.push(end(|ends| ends.1).to_string());
                }
            }
        }
        texts
    }
}

fn width(heading: &Heading) -> usize {
    if heading.interval { 3 } else { 1 }
}
