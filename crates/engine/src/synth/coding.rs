//! [`Coding`]: the values of a column as few small numbers, and back.
//!
//! **Definition.** Code 0, 1, … stands for the first, second, … value or range of numbers; then, where a column can hold anything else, one code for all of that; the last code is
//! NULL. Numbers outside the first and last range count as the nearest one, as in questions.
//!
//! **Privacy.** A coding is made from what the owner declared, or from what a charged question released. It never sees a row before it is complete.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int64Array, StringArray, UInt64Array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type,
};
use demur_plan::catalog::ColumnType;
use serde::{Deserialize, Serialize};

use crate::EngineError;

/// What is written where a text was none of the coded ones.
const OTHER: &str = "(other)";

/// How a column is coded; see the module text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coding {
    /// Each of these values, as text, has a code.
    Values {
        /// The values.
        values: Vec<String>,
        /// Whether there may be others.
        others: bool,
    },
    /// Whole numbers (of days, microseconds, last decimals) from one cut up to the next have a code.
    Whole {
        /// The cuts, rising.
        cuts: Vec<i128>,
    },
    /// Numbers from one cut up to the next have a code.
    Real {
        /// The cuts, rising.
        cuts: Vec<f64>,
    },
}

/// A column with its type and coding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CodedColumn {
    /// Its name.
    pub name: String,
    /// Its type, as the catalog writes it.
    #[serde(rename = "type")]
    pub kind: String,
    /// How it is coded.
    pub coding: Coding,
}

impl CodedColumn {
    pub(crate) fn column_type(&self) -> Result<ColumnType, EngineError> {
        Ok(self.kind.parse::<ColumnType>()?)
    }

    /// Whether cuts rise and values are few enough to have codes; a file may say anything.
    pub(crate) fn is_sound(&self) -> bool {
        let few = self.codes() <= demur_synth::MAX_VALUES;
        few && self.column_type().is_ok()
            && match &self.coding {
                Coding::Values { .. } => true,
                Coding::Whole { cuts } => {
                    let within = cuts.iter().all(|cut| cut.unsigned_abs() < 1 << 120);
                    within && cuts.len() > 1 && cuts.is_sorted_by(|one, two| one < two)
                }
                Coding::Real { cuts } => {
                    let within = cuts.iter().all(|cut| cut.is_finite());
                    // Bounds that are one number make one range without width.
                    within && cuts.len() > 1 && cuts.is_sorted()
                }
            }
    }

    /// How many codes there are.
    pub fn codes(&self) -> usize {
        1 + match &self.coding {
            Coding::Values { values, others } => values.len() + usize::from(*others),
            Coding::Whole { cuts } => cuts.len().saturating_sub(1),
            Coding::Real { cuts } => cuts.len().saturating_sub(1),
        }
    }

    /// The code of NULL.
    pub(crate) fn null(&self) -> u32 {
        self.codes() as u32 - 1
    }

    /// What a code stands for, in words.
    pub fn label(&self, code: usize) -> String {
        if code + 1 >= self.codes() {
            return "NULL".to_owned();
        }
        let between = |low: String, high: String| if low == high { low } else { format!("{low} … {high}") };
        match &self.coding {
            Coding::Values { values, .. } => values.get(code).cloned().unwrap_or_else(|| OTHER.to_owned()),
            Coding::Whole { cuts } => between(self.written(cuts[code]), self.written(cuts[code + 1] - 1)),
            Coding::Real { cuts } => between(cuts[code].to_string(), cuts[code + 1].to_string()),
        }
    }

    /// A whole number as the column would write it.
    fn written(&self, place: i128) -> String {
        let array = self.column_type().ok().and_then(|kind| whole_array(&[Some(place)], kind).ok());
        let text = array.and_then(|array| cast(&array, &DataType::Utf8).ok());
        text.map_or_else(|| place.to_string(), |text| text.as_string::<i32>().value(0).to_owned())
    }

    /// Ready to code values.
    pub(crate) fn coder(&self) -> Result<Coder<'_>, EngineError> {
        let places = match &self.coding {
            Coding::Values { values, .. } => {
                values.iter().zip(0..).map(|(value, code)| (value.as_str(), code)).collect()
            }
            _ => HashMap::new(),
        };
        Ok(Coder { column: self, places })
    }

    /// The column that codes stand for; `uniform` gives numbers from 0 up to but not including 1, for places within ranges.
    pub(crate) fn decode(
        &self,
        codes: &[u32],
        mut uniform: impl FnMut() -> f64,
    ) -> Result<ArrayRef, EngineError> {
        let kind = self.column_type()?;
        let null = self.null();
        match &self.coding {
            Coding::Values { values, .. } => {
                let text = |code: &u32| match values.get(*code as usize) {
                    Some(value) => Some(value.as_str()),
                    None => (kind == ColumnType::String && *code < null).then_some(OTHER),
                };
                let texts: StringArray = codes.iter().map(text).collect();
                let target = if kind == ColumnType::String { DataType::Utf8 } else { kind.arrow() };
                cast(&texts, &target).map_err(unreadable)
            }
            Coding::Whole { cuts } => {
                let place = |code: &u32| {
                    let range = cuts.get(*code as usize..*code as usize + 2).filter(|_| *code < null)?;
                    let step = ((range[1] - range[0]) as f64 * uniform()) as i128;
                    Some(range[0] + step.min(range[1] - range[0] - 1))
                };
                whole_array(&codes.iter().map(place).collect::<Vec<_>>(), kind)
            }
            Coding::Real { cuts } => {
                let value = |code: &u32| {
                    let range = cuts.get(*code as usize..*code as usize + 2).filter(|_| *code < null)?;
                    Some(range[0] + (range[1] - range[0]) * uniform())
                };
                let values: Float64Array = codes.iter().map(value).collect();
                cast(&values, &kind.arrow()).map_err(unreadable)
            }
        }
    }
}

fn unreadable(error: datafusion::arrow::error::ArrowError) -> EngineError {
    EngineError::new("engine.synth.coding", format!("a coded value does not fit its column: {error}"))
}

/// Whole numbers as a column of this type.
fn whole_array(places: &[Option<i128>], kind: ColumnType) -> Result<ArrayRef, EngineError> {
    let long = |place: &Option<i128>| place.and_then(|place| i64::try_from(place).ok());
    let array: ArrayRef = match kind {
        ColumnType::Decimal(precision, scale) => {
            let digits = places.iter().copied().collect::<Decimal128Array>();
            Arc::new(digits.with_precision_and_scale(precision, scale).map_err(unreadable)?)
        }
        ColumnType::UInt(_) => {
            let unsigned = |place: &Option<i128>| place.and_then(|place| u64::try_from(place).ok());
            Arc::new(places.iter().map(unsigned).collect::<UInt64Array>())
        }
        ColumnType::Date => {
            let days: Int64Array = places.iter().map(long).collect();
            cast(&days, &DataType::Int32).map_err(unreadable)?
        }
        _ => Arc::new(places.iter().map(long).collect::<Int64Array>()),
    };
    cast(&array, &kind.arrow()).map_err(unreadable)
}

/// Codes the values of one column.
pub(crate) struct Coder<'a> {
    column: &'a CodedColumn,
    places: HashMap<&'a str, u32>,
}

impl Coder<'_> {
    /// Appends the codes of values, which have the column's type.
    pub(crate) fn encode(&self, values: &ArrayRef, codes: &mut Vec<u32>) -> Result<(), EngineError> {
        let null = self.column.null();
        match &self.column.coding {
            Coding::Values { others, .. } => {
                let other = if *others { null - 1 } else { null };
                let texts = cast(values, &DataType::Utf8).map_err(unreadable)?;
                let code = |text: Option<&str>| {
                    text.map_or(null, |text| self.places.get(text).copied().unwrap_or(other))
                };
                codes.extend(texts.as_string::<i32>().iter().map(code));
            }
            Coding::Whole { cuts } => {
                let last = cuts.len().saturating_sub(2);
                let code = |place: Option<i128>| {
                    place.map_or(null, |place| {
                        let above = cuts.partition_point(|cut| *cut <= place);
                        above.saturating_sub(1).min(last) as u32
                    })
                };
                whole_places(values, |place| codes.push(code(place)))?;
            }
            Coding::Real { cuts } => {
                let last = cuts.len().saturating_sub(2);
                let values = cast(values, &DataType::Float64).map_err(unreadable)?;
                let code = |value: Option<f64>| match value {
                    Some(value) if !value.is_nan() => {
                        let above = cuts.partition_point(|cut| *cut <= value);
                        above.saturating_sub(1).min(last) as u32
                    }
                    _ => null,
                };
                codes.extend(values.as_primitive::<Float64Type>().iter().map(code));
            }
        }
        Ok(())
    }
}

/// The whole numbers of a column, one after the other.
fn whole_places(values: &ArrayRef, mut each: impl FnMut(Option<i128>)) -> Result<(), EngineError> {
    match values.data_type() {
        DataType::Decimal128(..) => values.as_primitive::<Decimal128Type>().iter().for_each(each),
        DataType::Date32 => {
            values.as_primitive::<Date32Type>().iter().for_each(|place| each(place.map(i128::from)));
        }
        DataType::Timestamp(..) => {
            let places = values.as_primitive::<TimestampMicrosecondType>();
            places.iter().for_each(|place| each(place.map(i128::from)));
        }
        DataType::UInt64 => {
            values.as_primitive::<UInt64Type>().iter().for_each(|place| each(place.map(i128::from)));
        }
        _ => {
            let places = cast(values, &DataType::Int64).map_err(unreadable)?;
            places.as_primitive::<Int64Type>().iter().for_each(|place| each(place.map(i128::from)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(kind: &str, coding: Coding) -> CodedColumn {
        CodedColumn { name: "c".to_owned(), kind: kind.to_owned(), coding }
    }

    /// Values as text become codes; codes become text again, in the middle of their range.
    fn both_ways(column: &CodedColumn, texts: &[Option<&str>]) -> (Vec<u32>, Vec<Option<String>>) {
        let kind = column.column_type().unwrap();
        let array = cast(&StringArray::from(texts.to_vec()), &kind.arrow()).unwrap();
        let mut codes = Vec::new();
        column.coder().unwrap().encode(&array, &mut codes).unwrap();
        let back = column.decode(&codes, || 0.5).unwrap();
        let back = cast(&back, &DataType::Utf8).unwrap();
        (codes, back.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect())
    }

    #[test]
    fn listed_values_come_back_and_others_are_others() {
        let strings = column("string", Coding::Values { values: vec!["a".into(), "b".into()], others: true });
        let (codes, back) = both_ways(&strings, &[Some("b"), Some("zorro"), None, Some("a")]);
        assert_eq!(codes, [1, 2, 3, 0]);
        assert_eq!(back, [Some("b".into()), Some(OTHER.into()), None, Some("a".into())]);
        let whole = column("int16", Coding::Values { values: vec!["7".into()], others: true });
        let (codes, back) = both_ways(&whole, &[Some("7"), Some("8"), None]);
        assert_eq!((codes, back), (vec![0, 1, 2], vec![Some("7".into()), None, None]));
        let truth = Coding::Values { values: vec!["false".into(), "true".into()], others: false };
        let (codes, back) = both_ways(&column("boolean", truth), &[Some("true"), None]);
        assert_eq!((codes, back), (vec![1, 2], vec![Some("true".into()), None]));
    }

    #[test]
    fn numbers_fall_into_ranges_and_come_back_in_their_own_type() {
        let cases = [
            (
                "int64",
                vec![0, 10, 20],
                vec!["-5", "0", "9", "10", "19", "99"],
                vec![0, 0, 0, 1, 1, 1],
                "5",
                "15",
            ),
            ("uint8", vec![0, 1, 2], vec!["0", "1", "200"], vec![0, 1, 1], "0", "1"),
            (
                "decimal(6, 2)",
                vec![100, 200, 300],
                vec!["1.00", "1.99", "2.00"],
                vec![0, 0, 1],
                "1.50",
                "2.50",
            ),
            (
                "date",
                vec![0, 31, 59],
                vec!["1970-01-31", "1970-02-01"],
                vec![0, 1],
                "1970-01-16",
                "1970-02-15",
            ),
        ];
        for (kind, cuts, texts, expected, first, second) in cases {
            let column = column(kind, Coding::Whole { cuts });
            let texts: Vec<_> = texts.into_iter().map(Some).chain([None]).collect();
            let (codes, back) = both_ways(&column, &texts);
            assert_eq!(codes[..codes.len() - 1], expected, "{kind}");
            assert_eq!(codes.last(), Some(&2));
            let shown: Vec<_> = expected
                .iter()
                .map(|code| Some(if *code == 0 { first } else { second }.to_owned()))
                .chain([None])
                .collect();
            assert_eq!(back, shown, "{kind}");
        }
    }

    #[test]
    fn reals_that_are_no_numbers_are_null() {
        let column = column("float64", Coding::Real { cuts: vec![0.0, 1.0, 3.0] });
        let (codes, back) = both_ways(&column, &[Some("NaN"), Some("-inf"), Some("1"), Some("inf"), None]);
        assert_eq!(codes, [2, 0, 1, 1, 2]);
        assert_eq!(back, [None, Some("0.5".into()), Some("2.0".into()), Some("2.0".into()), None]);
    }

    #[test]
    fn labels_say_what_a_code_means() {
        let date = column("date", Coding::Whole { cuts: vec![0, 1, 31] });
        assert_eq!([0, 1, 2].map(|code| date.label(code)), ["1970-01-01", "1970-01-02 … 1970-01-31", "NULL"]);
        let strings = column("string", Coding::Values { values: vec!["a".into()], others: true });
        assert_eq!([0, 1, 2].map(|code| strings.label(code)), ["a", OTHER, "NULL"]);
    }
}
