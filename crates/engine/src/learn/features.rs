//! [`Features`]: which columns a model learns from, as the catalog declares them, and what it shall tell.
//!
//! Numbers with bounds become curves of a few knots, listed and truth values become categories. What is missing or was not declared counts for nothing. Nothing here is learned
//! from rows.

use demur_learn::train::{Cell, Column, Columns, Targets, Task};
use demur_plan::catalog::{ColumnType, PrivacyUnit, Table};
use serde::{Deserialize, Serialize};

use super::numbers::{Reader, bounds, declared};
use crate::EngineError;
use crate::synth::{CodedColumn, Coding};

/// Places at which the effect of a number may bend.
const KNOTS: u32 = 8;

/// One column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Feature {
    Number {
        name: String,
        #[serde(rename = "type")]
        kind: String,
        low: f64,
        high: f64,
    },
    Category(CodedColumn),
}

/// See the module text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Features {
    pub(crate) label: Feature,
    pub(crate) columns: Vec<Feature>,
    /// Numbers are taken as they are, without knots: the pixels of an image.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    straight: bool,
}

impl Feature {
    fn of(table: &Table, name: &str) -> Result<Self, EngineError> {
        let column = declared(table, name)?;
        let kind = column.column_type.to_string();
        let values = match (&column.values, column.column_type) {
            (Some(values), _) => Some(values.iter().map(ToString::to_string).collect()),
            (None, ColumnType::Boolean) => Some(["false", "true"].map(str::to_owned).to_vec()),
            (None, ColumnType::String) => {
                let text = format!("the catalog does not say which values `{name}` has");
                return Err(EngineError::new("engine.learn.values", text)
                    .hint("write values = […] for it in demur.toml, or leave it out with --columns"));
            }
            _ => None,
        };
        if let Some(values) = values {
            let coding = Coding::Values { values, others: true };
            return Ok(Self::Category(CodedColumn { name: name.to_owned(), kind, coding }));
        }
        let (low, high) = bounds(table, name)?;
        Ok(Self::Number { name: name.to_owned(), kind, low, high })
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Number { name, .. } => name,
            Self::Category(column) => &column.name,
        }
    }

    /// Its type, as the catalog writes it.
    pub(crate) fn kind(&self) -> &str {
        match self {
            Self::Number { kind, .. } => kind,
            Self::Category(column) => &column.kind,
        }
    }

    pub(crate) fn reader(&self) -> Reader {
        match self {
            Self::Number { name, .. } => Reader::Number(name.clone()),
            Self::Category(column) => Reader::Code(column.clone()),
        }
    }

    /// The values of a category.
    pub(crate) fn values(&self) -> &[String] {
        match self {
            Self::Category(CodedColumn { coding: Coding::Values { values, .. }, .. }) => values,
            _ => &[],
        }
    }

    fn column(&self, straight: bool) -> Column {
        match self {
            Self::Number { low, high, .. } if straight => Column::Number { low: *low, high: *high },
            Self::Number { low, high, .. } => Column::Curve { low: *low, high: *high, knots: KNOTS },
            Self::Category(_) => Column::Category { values: self.values().len() as u32 },
        }
    }

    fn cell(&self, number: f64) -> Cell {
        match self {
            _ if number.is_nan() => Cell::Missing,
            Self::Number { .. } => Cell::Number(number),
            Self::Category(_) => Cell::Category(number as u32),
        }
    }
}

impl Features {
    /// Those columns of a table, or all that are declared well enough; as pixels if an image is given.
    pub(crate) fn of(
        table: &Table,
        label: &str,
        columns: Option<&[String]>,
        image: Option<[usize; 2]>,
    ) -> Result<Self, EngineError> {
        let named = Feature::of(table, label)?;
        if let (Feature::Category(_), values @ ([] | [_])) = (&named, named.values()) {
            let text = format!(
                "`{label}` shall be told, but the catalog declares {} for it, so there is nothing to tell apart",
                values.first().map_or("no value".to_owned(), |value| format!("only the value `{value}`"))
            );
            return Err(EngineError::new("engine.learn.label", text)
                .hint("write all its values = […] in demur.toml, or choose another column with --label"));
        }
        let unit = |name: &&String| matches!(&table.unit, PrivacyUnit::Column(unit) if unit == *name);
        let columns = match columns {
            Some(columns) => {
                columns.iter().map(|name| Feature::of(table, name)).collect::<Result<Vec<_>, _>>()?
            }
            None => {
                let others = table.columns.keys().filter(|name| *name != label && !unit(name));
                others.filter_map(|name| Feature::of(table, name).ok()).collect()
            }
        };
        if columns.iter().any(|column| column.name() == label) {
            let text = format!("`{label}` shall be told, so a model cannot learn from it");
            return Err(EngineError::new("engine.learn.label", text));
        }
        if let Some([height, width]) = image {
            let numbers = columns.iter().filter(|column| matches!(column, Feature::Number { .. })).count();
            if height.checked_mul(width) != Some(numbers) || numbers < columns.len() {
                let text = format!(
                    "an image of {height}x{width} has one number for each pixel, but there are {numbers} columns of numbers, and {} of other kinds",
                    columns.len() - numbers
                );
                return Err(EngineError::new("engine.learn.image", text)
                    .hint("name the columns of the pixels with --columns, row by row from the top"));
            }
        }
        Ok(Self { label: named, columns, straight: image.is_some() })
    }

    /// What the model tells.
    pub(crate) fn task(&self) -> Task {
        match &self.label {
            Feature::Number { .. } => Task::Number,
            Feature::Category(_) => Task::Classes(self.label.values().len()),
        }
    }

    pub(crate) fn description(&self) -> Result<Columns, EngineError> {
        Ok(Columns::new(self.columns.iter().map(|column| column.column(self.straight)).collect())?)
    }

    /// How rows are read: all columns, then the label.
    pub(crate) fn readers(&self) -> Vec<Reader> {
        self.columns.iter().chain([&self.label]).map(Feature::reader).collect()
    }

    /// Rows of numbers, one for each column, as a model sees them.
    pub(crate) fn encode<'a>(
        &self,
        description: &Columns,
        rows: impl Iterator<Item = &'a [f64]>,
    ) -> Vec<f32> {
        let mut features = Vec::new();
        for row in rows {
            let cells: Vec<Cell> =
                self.columns.iter().zip(row).map(|(column, number)| column.cell(*number)).collect();
            description.encode(&cells, &mut features);
        }
        features
    }

    /// What 1 stands for in a label that is a number.
    pub(crate) fn unit(&self) -> f64 {
        match &self.label {
            Feature::Number { low, high, .. } => (high - low) / 2.0,
            Feature::Category(_) => 1.0,
        }
    }

    /// What is to be told about each row; numbers from −1 to 1.
    pub(crate) fn targets(&self, labels: impl Iterator<Item = f64>) -> Targets {
        match &self.label {
            Feature::Category(_) => {
                let class = |label: f64| if label.is_nan() { u32::MAX } else { label as u32 };
                Targets::Classes(labels.map(class).collect())
            }
            Feature::Number { low, high, .. } => {
                let part = |label: f64| (2.0 * (label.clamp(*low, *high) - low) / (high - low) - 1.0) as f32;
                Targets::Numbers(labels.map(part).collect())
            }
        }
    }
}
