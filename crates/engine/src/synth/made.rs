//! [`Synthetic`]: a public model of a private table, and what can be made of it for nothing.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{Field, Schema};
use demur_core::Guarantee;
use demur_noise::{Entropy, Words};
use demur_plan::catalog::Table;
use demur_synth::{ColumnSet, Model, Rounding};
use serde::{Deserialize, Serialize};

use super::asked;
use super::coding::CodedColumn;
use super::wanted::{Method, Wanted};
use crate::table::Table as AnswerTable;
use crate::{EngineError, postprocess};

/// The form of models that this version writes.
const FORMAT: &str = "demur model 1";

/// So many rows are drawn at once.
const PART: u64 = 1 << 20;

/// What a model is of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Which form of model this is.
    pub format: String,
    /// The table that is imitated.
    pub table: String,
    /// How the model was fitted.
    pub method: String,
    /// Which columns the model was to know together.
    pub workload: String,
    /// How many records BLR drew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// Conditions that no row fulfils.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub impossible: Vec<String>,
    /// Whose data is hidden: `row`, or a column.
    pub unit: String,
    /// For how many rows one unit may count.
    pub rows_per_unit: u32,
    /// What fitting it cost: ε and δ.
    pub cost: (f64, f64),
    /// The columns and their codes.
    pub columns: Vec<CodedColumn>,
}

impl Header {
    pub(crate) fn new(wanted: &Wanted, table: &Table, columns: Vec<CodedColumn>, cost: Guarantee) -> Self {
        let unit = table.unit_name();
        Self {
            format: FORMAT.to_owned(),
            table: table.name.clone(),
            method: wanted.method.name().to_owned(),
            workload: wanted.workload_of(columns.len()).to_string(),
            records: (wanted.method == Method::Blr).then_some(wanted.records),
            impossible: wanted.impossible.clone(),
            unit: unit.to_owned(),
            rows_per_unit: wanted.rows_per_unit,
            cost: (cost.epsilon.value(), cost.delta.value()),
            columns,
        }
    }

    /// As one line.
    pub(crate) fn text(&self) -> Result<String, EngineError> {
        serde_json::to_string(self).map_err(|error| unreadable(&error.to_string()))
    }
}

/// A model with what its codes mean.
#[derive(Clone, Debug)]
pub struct Synthetic {
    /// What it is of.
    pub header: Header,
    /// The law of its rows.
    pub model: Model,
}

impl Synthetic {
    /// What a certificate stores.
    pub(crate) fn texts(&self) -> Result<Vec<String>, EngineError> {
        Ok(vec![self.header.text()?, hexadecimal(&self.model.to_bytes())])
    }

    /// Reads what a certificate stores.
    pub fn read(released: &[String]) -> Result<Self, EngineError> {
        let [header, model] = released else { return Err(unreadable("it has not two parts")) };
        let header: Header = serde_json::from_str(header).map_err(|error| unreadable(&error.to_string()))?;
        if header.format != FORMAT {
            return Err(unreadable(&format!(
                "it has the form `{}`, and this version reads `{FORMAT}`",
                header.format
            )));
        }
        if let Some(column) = header.columns.iter().find(|column| !column.is_sound()) {
            return Err(unreadable(&format!("the codes of `{}` make no sense", column.name)));
        }
        let bytes = bytes(model).ok_or_else(|| unreadable("its numbers are no hexadecimal digits"))?;
        let model = Model::from_bytes(&bytes)?;
        let sizes: Vec<usize> = header.columns.iter().map(CodedColumn::codes).collect();
        if model.columns().sizes() != sizes {
            return Err(unreadable("its numbers do not fit its columns"));
        }
        Ok(Self { header, model })
    }

    /// So many rows, as a table.
    pub fn sample(&self, rows: usize, entropy: &mut Entropy) -> Result<RecordBatch, EngineError> {
        let codes = self.model.sample(rows, Rounding::Systematic, entropy)?;
        let mut fields = Vec::new();
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for (column, codes) in self.header.columns.iter().zip(&codes) {
            // 53 random bits.
            let array = column.decode(codes, || (entropy.word() >> 11) as f64 * 0.5f64.powi(53))?;
            fields.push(Field::new(&column.name, array.data_type().clone(), true));
            arrays.push(array);
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
            .map_err(|error| unreadable(&error.to_string()))
    }

    /// So many rows, some at a time: there may be more of them than memory holds. At least one table comes, if an empty one.
    pub fn sample_in_parts<'a>(
        &'a self,
        rows: u64,
        entropy: &'a mut Entropy,
    ) -> impl Iterator<Item = Result<RecordBatch, EngineError>> + 'a {
        let mut left = Some(rows);
        std::iter::from_fn(move || {
            let now = left?.min(PART);
            left = left.map(|left| left - now).filter(|left| *left > 0);
            Some(self.sample(now as usize, entropy))
        })
    }

    /// The share of each code of a column.
    pub fn share_of(&self, column: usize) -> Result<Vec<f64>, EngineError> {
        Ok(self.model.marginal(&ColumnSet::new([column]))?)
    }

    /// The answer of infinitely many rows to a question in SQL.
    pub fn query(&self, sql: &str) -> Result<AnswerTable, EngineError> {
        postprocess::plain_table(&self.answer(sql)?).map_err(|error| unreadable(&error.to_string()))
    }

    /// The same as columns, to be written to a file.
    pub fn contingency(&self, sql: &str) -> Result<RecordBatch, EngineError> {
        let batches = self.answer(sql)?;
        let schema = batches.first().map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
        concat_batches(&schema, &batches).map_err(|error| unreadable(&error.to_string()))
    }

    fn answer(&self, sql: &str) -> Result<Vec<RecordBatch>, EngineError> {
        let marginal = |places: &[usize]| {
            let shares = self.model.marginal(&ColumnSet::new(places.iter().copied()))?;
            Ok(shares.into_iter().map(|share| share * self.model.rows()).collect())
        };
        asked::answer(&self.header.columns, &marginal, sql)
    }
}

fn unreadable(text: &str) -> EngineError {
    EngineError::new("engine.synth.model", format!("this is not a model of demur: {text}"))
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

pub(crate) fn bytes(text: &str) -> Option<Vec<u8>> {
    let digit = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}
