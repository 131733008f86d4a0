//! [`Predictor`]: a public model, and what it says about rows of any file. It costs nothing.
//!
//! What it says about a private row is as private as the row: predictions are not protected by the promise about the model.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use demur_learn::train::{Model, Scattering, Targets};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::features::{Feature, Features};
use super::numbers::numbers;
use super::score::Score;
use super::training::{FORMAT, Header};
use crate::EngineError;

/// See the module text.
#[derive(Clone, Debug)]
pub struct Predictor {
    pub(crate) header: Header,
    model: Model,
}

impl Predictor {
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
        let bytes =
            crate::synth::bytes(model).ok_or_else(|| unreadable("its numbers are no hexadecimal digits"))?;
        let model = Model::from_bytes(&bytes)?;
        let outputs = header.features.label.values().len().max(1);
        let width = match header.scattering {
            Some([height, width]) => Scattering::new(height, width)?.shape().size(),
            None => header.features.description()?.width(),
        };
        if model.network().input().size() != width || model.network().outputs() != outputs {
            return Err(unreadable("its numbers do not fit its columns"));
        }
        Ok(Self { header, model })
    }

    /// The column it tells.
    pub fn label(&self) -> &str {
        self.header.features.label.name()
    }

    /// How good it is on a file of public rows that have the label too.
    pub fn score(&self, file: &Path) -> Result<Score, EngineError> {
        Ok(PublicRows::read(&self.header, file)?.score(&self.model))
    }

    /// The weights as a safetensors file.
    pub fn safetensors(&self) -> Result<Vec<u8>, EngineError> {
        Ok(self.model.to_bytes()?)
    }

    /// What it says about each row of a CSV or Parquet file, in the file's order.
    pub fn predict(&self, file: &Path) -> Result<RecordBatch, EngineError> {
        let features = &self.header.features;
        let columns = read(file, &features.columns)?;
        let inputs = self.header.inputs(encoded(features, &columns)?)?;
        let said = self.model.predict(&inputs)?;
        let outputs = self.model.network().outputs();
        let mut fields = Vec::new();
        let mut arrays: Vec<ArrayRef> = Vec::new();
        let mut push = |name: String, array: ArrayRef| {
            fields.push(Field::new(name, array.data_type().clone(), true));
            arrays.push(array);
        };
        let output = |place: usize| said.iter().skip(place).step_by(outputs).map(|p| f64::from(*p));
        match &features.label {
            Feature::Number { low, high, .. } => {
                let number = |part: f64| low + (part + 1.0) / 2.0 * (high - low);
                push(self.label().to_owned(), Arc::new(output(0).map(number).collect::<Float64Array>()));
            }
            label => {
                let classes = self.model.classify(&inputs)?;
                let name = |class: &u32| label.values().get(*class as usize).map(String::as_str);
                push(self.label().to_owned(), Arc::new(classes.iter().map(name).collect::<StringArray>()));
                for (place, value) in label.values().iter().enumerate() {
                    push(
                        format!("probability of {value}"),
                        Arc::new(output(place).collect::<Float64Array>()),
                    );
                }
            }
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
            .map_err(|error| unreadable(&error.to_string()))
    }
}

/// Rows of a public file, with their labels.
pub(crate) struct PublicRows {
    inputs: Vec<f32>,
    targets: Targets,
    unit: f64,
}

impl PublicRows {
    pub(crate) fn read(header: &Header, file: &Path) -> Result<Self, EngineError> {
        let features = &header.features;
        let all: Vec<Feature> = features.columns.iter().chain([&features.label]).cloned().collect();
        let mut columns = read(file, &all)?;
        let labels = columns.pop().unwrap_or_default();
        if labels.is_empty() {
            let text = format!("`{}` has no rows, so nothing can be measured on it", file.display());
            return Err(EngineError::new("engine.learn.file", text));
        }
        let inputs = header.inputs(encoded(features, &columns)?)?;
        Ok(Self { inputs, targets: features.targets(labels.into_iter()), unit: features.unit() })
    }

    /// How good a model is on them.
    pub(crate) fn score(&self, model: &Model) -> Score {
        let said = model.predict(&self.inputs).unwrap_or_default();
        Score::of(&said, model.network().outputs(), &self.targets, self.unit)
    }
}

/// Columns of a file as the numbers that features are made of.
fn read(file: &Path, features: &[Feature]) -> Result<Vec<Vec<f64>>, EngineError> {
    let names: Vec<&str> = features.iter().map(Feature::name).collect();
    let number = |(feature, texts): (&Feature, &ArrayRef)| {
        let kind = feature.kind().parse::<demur_plan::catalog::ColumnType>()?;
        let values = cast(texts, &kind.arrow()).map_err(|error| unreadable(&error.to_string()))?;
        let wrong = |_| unreadable(&format!("`{}` could not be read", feature.name()));
        match feature {
            Feature::Number { .. } => numbers(None, &values).map_err(wrong),
            Feature::Category(column) => numbers(Some(&column.coder()?), &values).map_err(wrong),
        }
    };
    features.iter().zip(&texts(file, &names)?).map(number).collect()
}

/// Rows as a model sees them, from their columns.
fn encoded(features: &Features, columns: &[Vec<f64>]) -> Result<Vec<f32>, EngineError> {
    let rows = columns.first().map_or(0, Vec::len);
    let table: Vec<Vec<f64>> =
        (0..rows).map(|row| columns.iter().map(|column| column[row]).collect()).collect();
    Ok(features.encode(&features.description()?, table.iter().map(Vec::as_slice)))
}

fn unreadable(text: &str) -> EngineError {
    EngineError::new("engine.learn.model", format!("this is not a model of demur: {text}"))
}

/// Columns of a file as texts.
fn texts(file: &Path, names: &[&str]) -> Result<Vec<ArrayRef>, EngineError> {
    let wrong = |error: &dyn std::fmt::Display| {
        EngineError::new("engine.learn.file", format!("`{}` cannot be read: {error}", file.display()))
    };
    let missing = |name: &str| {
        wrong(&format!("it has no column `{name}`")).hint("a model needs the columns it was trained on")
    };
    let ending = file.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    if ending.as_deref() == Some("parquet") {
        let opened = File::open(file).map_err(|error| wrong(&error))?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(opened)
            .and_then(|builder| builder.build())
            .map_err(|error| wrong(&error))?;
        let schema = datafusion::arrow::array::RecordBatchReader::schema(&reader);
        let batches = reader.collect::<Result<Vec<_>, _>>().map_err(|error| wrong(&error))?;
        let batch = concat_batches(&schema, &batches).map_err(|error| wrong(&error))?;
        let text = |name: &&str| {
            let column = batch.column_by_name(name).ok_or_else(|| missing(name))?;
            cast(column, &DataType::Utf8).map_err(|error| wrong(&error))
        };
        return names.iter().map(text).collect();
    }
    let mut reader = csv::Reader::from_path(file).map_err(|error| wrong(&error))?;
    let header = reader.headers().map_err(|error| wrong(&error))?.clone();
    let place = |name: &&str| header.iter().position(|own| own == *name).ok_or_else(|| missing(name));
    let places = names.iter().map(place).collect::<Result<Vec<_>, _>>()?;
    let mut columns: Vec<Vec<Option<String>>> = vec![Vec::new(); names.len()];
    for record in reader.records() {
        let record = record.map_err(|error| wrong(&error))?;
        for (column, place) in columns.iter_mut().zip(&places) {
            column.push(record.get(*place).filter(|text| !text.is_empty()).map(str::to_owned));
        }
    }
    Ok(columns.into_iter().map(|column| Arc::new(StringArray::from(column)) as ArrayRef).collect())
}
