//! Expressions that have a value, or NULL, for every row.
//!
//! **Definition.** [`rewrite`] replaces arithmetic, casts and functions that can fail by ones that return NULL instead: a division by zero, a
//! sum beyond 64 bits, a text that is no number, [texts that become too long](crate::concat), a function that fails. They are functions of ours, which no optimiser takes apart: DataFusion's would compare `x` itself where
//! `CAST(x AS TINYINT) > 0` is written, and count what is too large for a TINYINT.
//!
//! **Guarantee.** Evaluating a rewritten expression never fails because of a value. Whether a query fails is otherwise a bit about the
//! rows: one that divides by `salary - 4711` fails only if somebody earns that.
//!
//! **Why.** A kernel that succeeds on a batch is used as it is. One that fails is asked about halves, and so on until each row that fails by itself is found, and is NULL;
//! kernels work element by element, so the other rows get what they would have got. One row that fails among n takes 2·log₂ n further calls: little, so that time hardly tells of it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, new_null_array};
use datafusion::arrow::compute::kernels::{cmp, numeric};
use datafusion::arrow::compute::{CastOptions, can_cast_types, concat, nullif};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::format::DEFAULT_FORMAT_OPTIONS;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::expr::{BinaryExpr, Cast, ScalarFunction, TryCast};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};

use crate::concat::Concat;
use crate::names::in_words;

/// The same expression, with a value or NULL for every row.
pub(crate) fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let named = expr.schema_name().to_string();
    let total = expr.transform_up(|expr| one(expr, schema))?.data;
    // What is above refers to columns by the name they had.
    Ok(if total.schema_name().to_string() == named { total } else { total.alias_if_changed(named)? })
}

fn one(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(binary) if is_arithmetic(binary.op) => arithmetic(binary, schema)?,
        Expr::Negative(inner) => {
            let zero = ScalarValue::new_zero(&inner.get_type(schema)?)?;
            let minus = BinaryExpr::new(Box::new(Expr::Literal(zero, None)), Operator::Minus, inner);
            arithmetic(minus, schema)?
        }
        Expr::Cast(Cast { field, .. }) | Expr::TryCast(TryCast { field, .. })
            if matches!(field.data_type(), DataType::Decimal128(_, ..0) | DataType::Decimal256(_, ..0)) =>
        {
            return plan_err!("a DECIMAL has no fewer than 0 digits behind the point");
        }
        Expr::Cast(Cast { expr: inner, field }) | Expr::TryCast(TryCast { expr: inner, field })
            if !can_cast_types(&type_of(&inner, schema)?, field.data_type()) =>
        {
            let (from, to) = (in_words(&type_of(&inner, schema)?), in_words(field.data_type()));
            return plan_err!("CAST cannot turn {from} into {to}");
        }
        Expr::Cast(Cast { expr: inner, field }) | Expr::TryCast(TryCast { expr: inner, field })
            if may_fail(&type_of(&inner, schema)?, field.data_type()) =>
        {
            let func = Arc::new(ScalarUDF::from(Conversion::new(field.data_type().clone())));
            Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args: vec![*inner] }))
        }
        Expr::ScalarFunction(function) if !is_total(&function.func) => {
            let result = Expr::ScalarFunction(function.clone()).get_type(schema)?;
            let func = Arc::new(match function.func.name() {
                "concat" => ScalarUDF::from(Concat::new(false, result)),
                _ => ScalarUDF::from(Total::new(function.func, result)),
            });
            Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args: function.args }))
        }
        other => Transformed::no(other),
    })
}

fn is_arithmetic(operator: Operator) -> bool {
    use Operator::{Divide, Minus, Modulo, Multiply, Plus, StringConcat};
    matches!(operator, Plus | Minus | Multiply | Divide | Modulo | StringConcat)
}

/// The type of an expression. What was rewritten knows it without asking its parts, each of which would ask its own: long sums would take for ever.
fn type_of(expr: &Expr, schema: &DFSchema) -> Result<DataType> {
    if let Expr::ScalarFunction(ScalarFunction { func, .. }) = expr {
        if let Some(total) = func.inner().downcast_ref::<Total>() {
            return Ok(total.result.clone());
        }
        if let Some(arithmetic) = func.inner().downcast_ref::<Arithmetic>() {
            return Ok(arithmetic.result.clone());
        }
        if let Some(conversion) = func.inner().downcast_ref::<Conversion>() {
            return Ok(conversion.to.clone());
        }
        if let Some(concat) = func.inner().downcast_ref::<Concat>() {
            return Ok(concat.result.clone());
        }
    }
    expr.get_type(schema)
}

fn arithmetic(binary: BinaryExpr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (left, right) = (type_of(&binary.left, schema)?, type_of(&binary.right, schema)?);
    let result = BinaryTypeCoercer::new(&left, &binary.op, &right).get_result_type()?;
    if is_date(&left) && is_date(&right) {
        return plan_err!(
            "the time between two dates cannot be used here; compare the dates themselves, or their parts"
        );
    }
    // Doubles have a value for everything.
    if result.is_floating() {
        return Ok(Transformed::no(Expr::BinaryExpr(binary)));
    }
    let function = Arc::new(match binary.op {
        Operator::StringConcat => ScalarUDF::from(Concat::new(true, result)),
        operator => ScalarUDF::from(Arithmetic::new(operator, result)),
    });
    let args = vec![*binary.left, *binary.right];
    Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction { func: function, args })))
}

fn is_date(data_type: &DataType) -> bool {
    use DataType::{Date32, Date64, Time32, Time64, Timestamp};
    matches!(data_type, Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..))
}

/// Whether there are values of one type that another cannot represent.
fn may_fail(from: &DataType, to: &DataType) -> bool {
    let is_text = |t: &DataType| matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let widens = from == to
        || *from == DataType::Null
        || is_text(from) && is_text(to)
        || from.is_integer() && *to == DataType::Float64
        || *from == DataType::Float32 && *to == DataType::Float64
        || holds_integers(from, to)
        || holds_in_decimals(from, to);
    !widens
}

/// Whether all values of a type have a place among decimals: as many digits before the point, and behind it.
fn holds_in_decimals(from: &DataType, to: &DataType) -> bool {
    let before = |digits: u8, behind: i8| i16::from(digits) - i16::from(behind);
    match (from, to) {
        (DataType::Decimal128(digits, behind), DataType::Decimal128(more, further)) => {
            further >= behind && before(*more, *further) >= before(*digits, *behind)
        }
        (whole, DataType::Decimal128(digits, behind)) if whole.is_integer() => {
            let longest = match whole.primitive_width() {
                Some(1) => 3,
                Some(2) => 5,
                Some(4) => 10,
                _ => 20,
            };
            *behind >= 0 && before(*digits, *behind) >= longest
        }
        _ => false,
    }
}

/// Whether all values of one type of whole numbers are values of another.
pub(crate) fn holds_integers(from: &DataType, to: &DataType) -> bool {
    let (narrow, wide) = (from.primitive_width(), to.primitive_width());
    from.is_signed_integer() && to.is_signed_integer() && wide >= narrow
        || from.is_unsigned_integer() && to.is_unsigned_integer() && wide >= narrow
        || from.is_unsigned_integer() && to.is_signed_integer() && wide > narrow
}

/// Functions that have no failing values, and whose laziness wrapping would lose.
fn is_total(function: &ScalarUDF) -> bool {
    let plain = ["coalesce", "nvl", "nullif", crate::interval::LOW, crate::interval::HIGH];
    let inner = function.inner();
    plain.contains(&function.name())
        || inner.is::<Total>()
        || inner.is::<Arithmetic>()
        || inner.is::<Conversion>()
        || inner.is::<Concat>()
}

/// A function that returns NULL where another would fail.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Total {
    inner: Arc<ScalarUDF>,
    /// The type it had when the question was planned. The type of `ROUND(cost, 1)` depends on the 1, which may become known only later; what is counted must have the type that was planned.
    result: DataType,
    signature: Signature,
}

impl Total {
    fn new(inner: Arc<ScalarUDF>, result: DataType) -> Self {
        Self { signature: Signature::variadic_any(inner.signature().volatility), inner, result }
    }
}

impl ScalarUDFImpl for Total {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(short_name(self.name(), args))
    }

    fn signature(&self) -> &Signature {
        // Arguments have been coerced before this wrapper was put around.
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.result.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let field = self.inner.return_field_from_args(args)?;
        Ok(Arc::new(field.as_ref().clone().with_data_type(self.result.clone()).with_nullable(true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        or_null(args, |args| self.inner.invoke_with_args(args))
    }
}

/// +, −, ·, / and % of whole numbers, decimals and times.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Arithmetic {
    operator: Operator,
    result: DataType,
    name: String,
    signature: Signature,
}

impl Arithmetic {
    fn new(operator: Operator, result: DataType) -> Self {
        let name = format!("total {operator}");
        Self { operator, result, name, signature: Signature::any(2, Volatility::Immutable) }
    }

    fn compute(&self, args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else {
            return exec_err!("{} takes two arguments", self.name);
        };
        let left = left.clone().into_array(args.number_rows)?;
        let right = right.clone().into_array(args.number_rows)?;
        let value = match self.operator {
            Operator::Plus => numeric::add(&left, &right)?,
            Operator::Minus => numeric::sub(&left, &right)?,
            Operator::Multiply => numeric::mul(&left, &right)?,
            Operator::Divide => numeric::div(&left, &not_zero(&right)?)?,
            Operator::Modulo => numeric::rem(&left, &not_zero(&right)?)?,
            other => return exec_err!("{other} is no arithmetic"),
        };
        Ok(ColumnarValue::Array(value))
    }
}

/// The divisors, NULL where they are zero.
fn not_zero(divisors: &ArrayRef) -> Result<ArrayRef> {
    let zero = ScalarValue::new_zero(divisors.data_type())?.to_scalar()?;
    Ok(nullif(divisors, &cmp::eq(divisors, &zero)?)?)
}

impl ScalarUDFImpl for Arithmetic {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(short_name(&self.name, args))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.result.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        or_null(args, |args| self.compute(&args))
    }
}

/// A cast that is NULL where the value has no place in the type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Conversion {
    to: DataType,
    name: String,
    signature: Signature,
}

impl Conversion {
    fn new(to: DataType) -> Self {
        Self { name: format!("cast to {to}"), to, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Conversion {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(short_name(&self.name, args))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let safely = CastOptions { safe: true, format_options: DEFAULT_FORMAT_OPTIONS };
        or_null(args, |args| match args.args.as_slice() {
            [value] => value.cast_to(&self.to, Some(&safely)),
            _ => exec_err!("a cast takes one argument"),
        })
    }
}

/// What is cast to which type, if a function of this module does it.
pub(crate) fn conversion(function: &ScalarFunction) -> Option<(&Expr, &DataType)> {
    let conversion = function.func.inner().downcast_ref::<Conversion>()?;
    Some((function.args.first()?, &conversion.to))
}

/// A name for a function of these arguments that is as short as its own: with all of them in it, names of long sums would grow with their cube.
pub(crate) fn short_name(function: &str, args: &[Expr]) -> String {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, args).hash(&mut hasher);
        hasher.finish()
    };
    format!("{function} {:016x}{:016x}", half(0), half(1))
}

/// The values of a batch at once. Where that fails those of its halves, and so on: with NULL for each row that fails by itself.
pub(crate) fn or_null(
    args: ScalarFunctionArgs,
    compute: impl Fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Result<ColumnarValue> {
    if args.number_rows == 0 {
        return Ok(ColumnarValue::Array(new_null_array(args.return_field.data_type(), 0)));
    }
    match compute(args.clone()) {
        Ok(value) => Ok(value),
        Err(_) => Ok(ColumnarValue::Array(of_halves(&args, &compute)?)),
    }
}

/// The values of a batch that failed as a whole.
fn of_halves(
    args: &ScalarFunctionArgs,
    compute: &impl Fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Result<ArrayRef> {
    let rows = args.number_rows;
    if rows == 1 {
        return Ok(new_null_array(args.return_field.data_type(), 1));
    }
    let half = |start: usize, end: usize| {
        let part = |value: &ColumnarValue| match value {
            ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(start, end - start)),
            scalar => scalar.clone(),
        };
        let args = ScalarFunctionArgs {
            args: args.args.iter().map(part).collect(),
            number_rows: end - start,
            ..args.clone()
        };
        match compute(args.clone()) {
            Ok(value) => value.into_array(end - start),
            Err(_) => of_halves(&args, compute),
        }
    };
    let (one, other) = (half(0, rows / 2)?, half(rows / 2, rows)?);
    Ok(concat(&[one.as_ref(), other.as_ref()])?)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{AsArray, Int64Array};
    use datafusion::arrow::datatypes::{Field, Int64Type};
    use datafusion::common::config::ConfigOptions;

    use super::*;

    #[test]
    fn only_rows_that_fail_by_themselves_are_null() {
        for failing in [vec![], vec![0], vec![6], vec![2, 3], vec![1, 4, 5], (0..7).collect::<Vec<i64>>()] {
            let rows: ArrayRef = Arc::new(Int64Array::from_iter_values(0..7));
            let args = ScalarFunctionArgs {
                args: vec![ColumnarValue::Array(rows)],
                arg_fields: Vec::new(),
                number_rows: 7,
                return_field: Arc::new(Field::new("x", DataType::Int64, true)),
                config_options: Arc::new(ConfigOptions::default()),
            };
            let compute = |args: ScalarFunctionArgs| {
                let rows = args.args[0].to_array(args.number_rows)?;
                let fails = rows.as_primitive::<Int64Type>().values().iter().any(|row| failing.contains(row));
                if fails { exec_err!("a row that fails") } else { Ok(ColumnarValue::Array(rows)) }
            };
            let found = or_null(args, compute).unwrap().to_array(7).unwrap();
            let expected = (0..7).map(|row| (!failing.contains(&row)).then_some(row));
            assert_eq!(found.as_primitive::<Int64Type>(), &Int64Array::from_iter(expected));
        }
    }

    /// What may fail must not be left to others, who would leave a cast out beside a comparison.
    #[test]
    fn a_cast_is_plain_only_if_it_holds_every_value() {
        use DataType::{Decimal128, Float32, Float64, Int8, Int16, Int64, UInt8, UInt64, Utf8, Utf8View};
        for (from, to) in [
            (Int8, Int16),
            (UInt8, Int16),
            (Int64, Float64),
            (Utf8, Utf8View),
            (Decimal128(9, 2), Decimal128(10, 2)),
            (Decimal128(9, 2), Decimal128(12, 5)),
            (Int64, Decimal128(22, 2)),
            (UInt8, Decimal128(3, 0)),
        ] {
            assert!(!may_fail(&from, &to), "{from} to {to}");
        }
        for (from, to) in [
            (Int16, Int8),
            (UInt8, Int8),
            (Int8, UInt8),
            (UInt64, Int64),
            (Float64, Float32),
            (Float64, Int64),
            (Int64, Utf8),
            (Utf8, Int64),
            (Decimal128(9, 2), Decimal128(9, 3)),
            (Decimal128(9, 2), Decimal128(10, 1)),
            (Int64, Decimal128(20, 2)),
            (UInt8, Decimal128(2, 0)),
            (Decimal128(9, 2), Int64),
        ] {
            assert!(may_fail(&from, &to), "{from} to {to}");
        }
    }
}
