//! [`Concat`]: texts one after the other, if they do not become too long.
//!
//! **Why.** A text that is joined with itself in each of thirty subqueries is 2³⁰ times as long. If only the rows of one person get there, whether memory suffices says whether that person is
//! among the rows. So what would pass [`MOST`] bytes is NULL, and not even made.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, BooleanArray};
use datafusion::arrow::compute::kernels::length::length;
use datafusion::arrow::compute::{cast, is_null, nullif, or};
use datafusion::arrow::datatypes::{DataType, UInt64Type};
use datafusion::common::{Result, exec_err};
use datafusion::functions::string;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::total::{or_null, short_name};

/// A text that is joined has at most so many bytes.
const MOST: usize = 1 << 14;

/// `CONCAT`, which leaves out what is NULL, or `||`, which is NULL then.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Concat {
    is_operator: bool,
    inner: Arc<ScalarUDF>,
    pub(crate) result: DataType,
    signature: Signature,
}

impl Concat {
    pub(crate) fn new(is_operator: bool, result: DataType) -> Self {
        let signature = Signature::variadic_any(Volatility::Immutable);
        Self { is_operator, inner: string::concat(), result, signature }
    }

    fn compute(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (rows, texts) = (args.number_rows, args.args.clone());
        if longest(&texts, rows)? > MOST {
            return exec_err!("a text would be too long");
        }
        let joined = self.inner.invoke_with_args(args)?;
        if !self.is_operator {
            return Ok(joined);
        }
        let mut missing = BooleanArray::from(vec![texts.iter().any(is_missing); rows]);
        for text in &texts {
            if let ColumnarValue::Array(text) = text {
                missing = or(&missing, &is_null(text)?)?;
            }
        }
        Ok(ColumnarValue::Array(nullif(&joined.into_array(rows)?, &missing)?))
    }
}

/// Whether it is NULL in every row.
fn is_missing(text: &ColumnarValue) -> bool {
    matches!(text, ColumnarValue::Scalar(text) if text.is_null())
}

/// How many bytes the longest row would have.
fn longest(texts: &[ColumnarValue], rows: usize) -> Result<usize> {
    let (mut everywhere, mut lengths) = (0, vec![0; rows]);
    for text in texts.iter().filter(|text| !is_missing(text)) {
        match text {
            ColumnarValue::Scalar(text) => {
                everywhere += text.try_as_str().flatten().map_or(0, str::len);
            }
            ColumnarValue::Array(text) => {
                let bytes = cast(&length(text)?, &DataType::UInt64)?;
                let bytes = bytes.as_primitive::<UInt64Type>().iter().map(Option::unwrap_or_default);
                lengths.iter_mut().zip(bytes).for_each(|(sum, more)| *sum += more as usize);
            }
        }
    }
    Ok(everywhere + lengths.into_iter().max().unwrap_or(0))
}

impl ScalarUDFImpl for Concat {
    fn name(&self) -> &str {
        if self.is_operator { "total ||" } else { self.inner.name() }
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(short_name(self.name(), args))
    }

    fn signature(&self) -> &Signature {
        // Arguments have been coerced before this stands in their function's place.
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.result.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        or_null(args, |args| self.compute(args))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{ArrayRef, StringArray, StringViewArray};
    use datafusion::arrow::datatypes::Field;
    use datafusion::common::ScalarValue;
    use datafusion::common::config::ConfigOptions;

    type Text = Option<String>;

    fn joined(is_operator: bool, args: Vec<ColumnarValue>, result: &DataType) -> Vec<Text> {
        let fields = args.iter().map(|arg| Arc::new(Field::new("", arg.data_type(), true)));
        let args = ScalarFunctionArgs {
            arg_fields: fields.collect(),
            args,
            number_rows: 3,
            return_field: Arc::new(Field::new("", result.clone(), true)),
            config_options: Arc::new(ConfigOptions::default()),
        };
        let joined = Concat::new(is_operator, result.clone()).invoke_with_args(args).unwrap();
        let joined = cast(&joined.into_array(3).unwrap(), &DataType::Utf8).unwrap();
        joined.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
    }

    fn texts(kind: &DataType, texts: [Option<&str>; 3]) -> ColumnarValue {
        let array: ArrayRef = match kind {
            DataType::Utf8 => Arc::new(StringArray::from(texts.to_vec())),
            _ => Arc::new(StringViewArray::from(texts.to_vec())),
        };
        ColumnarValue::Array(array)
    }

    fn one(text: Option<&str>) -> ColumnarValue {
        ColumnarValue::Scalar(ScalarValue::Utf8(text.map(str::to_owned)))
    }

    /// The longest text that is made, and one byte more; each row by itself.
    #[test]
    fn a_text_that_would_be_too_long_is_null() {
        let (half, more) = ("ä".repeat(MOST / 4), "x".repeat(MOST / 2 + 1));
        for kind in [DataType::Utf8, DataType::Utf8View] {
            let left = || texts(&kind, [Some("a"), Some(&half), Some(&half)]);
            let right = || texts(&kind, [Some("b"), Some(&half), Some(&more)]);
            let expected = [Some("ab".to_owned()), Some(half.repeat(2)), None];
            for is_operator in [false, true] {
                assert_eq!(joined(is_operator, vec![left(), right()], &kind), expected);
            }
        }
        let all = |text: &str| joined(true, vec![one(Some(text)), one(Some(text))], &DataType::Utf8);
        assert_eq!(all(&half), [half.repeat(2), half.repeat(2), half.repeat(2)].map(Some));
        assert_eq!(all(&more), [None, None, None]);
        let long = "x".repeat(MOST - 1);
        let beside = vec![texts(&DataType::Utf8View, [Some("a"), Some("bc"), None]), one(Some(&long))];
        assert_eq!(
            joined(false, beside, &DataType::Utf8View),
            [Some(format!("a{long}")), None, Some(long.clone())]
        );
    }

    #[test]
    fn the_operator_is_null_where_a_text_is_and_the_function_leaves_it_out() {
        let kind = DataType::Utf8View;
        let left = || texts(&kind, [Some("a"), None, Some("c")]);
        let owned = |texts: [Option<&str>; 3]| texts.map(|text| text.map(str::to_owned));
        for (is_operator, right, expected) in [
            (true, texts(&kind, [Some("x"), Some("y"), None]), [Some("ax"), None, None]),
            (false, texts(&kind, [Some("x"), Some("y"), None]), [Some("ax"), Some("y"), Some("c")]),
            (true, one(Some("-")), [Some("a-"), None, Some("c-")]),
            (false, one(Some("-")), [Some("a-"), Some("-"), Some("c-")]),
            (true, one(None), [None, None, None]),
            (false, one(None), [Some("a"), Some(""), Some("c")]),
        ] {
            assert_eq!(joined(is_operator, vec![left(), right], &kind), owned(expected), "{is_operator}");
        }
    }
}
