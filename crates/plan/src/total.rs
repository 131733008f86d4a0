//! Expressions that have a value, or NULL, for every row.
//!
//! **Definition.** [`rewrite`] replaces arithmetic, casts and functions that can fail by ones that return NULL instead: a division by zero, a
//! sum beyond 64 bits, a text that is no number, a function that fails.
//!
//! **Guarantee.** Evaluating a rewritten expression never fails because of a value. Whether a query fails is otherwise a bit about the
//! rows: one that divides by `salary - 4711` fails only if somebody earns that.
//!
//! **Why.** A kernel that succeeds on a batch is used as it is. One that fails is evaluated row by row, each failing row being NULL;
//! kernels work element by element, so the other rows get what they would have got.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, new_null_array};
use datafusion::arrow::compute::kernels::{cmp, numeric};
use datafusion::arrow::compute::{can_cast_types, nullif};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::expr::{BinaryExpr, Cast, ScalarFunction, TryCast};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};

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
        Expr::Cast(Cast { expr: inner, field }) | Expr::TryCast(TryCast { expr: inner, field })
            if !can_cast_types(&type_of(&inner, schema)?, field.data_type()) =>
        {
            let (from, to) = (type_of(&inner, schema)?, field.data_type());
            return plan_err!("a value of type {from} cannot be made one of type {to}");
        }
        Expr::Cast(cast) if may_fail(&cast, schema)? => {
            Transformed::yes(Expr::TryCast(TryCast { expr: cast.expr, field: cast.field }))
        }
        Expr::ScalarFunction(function) if !is_total(&function.func) => {
            let expr = Expr::ScalarFunction(function.clone());
            let total = Total::new(function.func, expr.get_type(schema)?);
            let func = Arc::new(ScalarUDF::from(total));
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
    // Doubles have a value for everything; texts are joined without fail.
    if result.is_floating() || binary.op == Operator::StringConcat {
        return Ok(Transformed::no(Expr::BinaryExpr(binary)));
    }
    let function = Arc::new(ScalarUDF::from(Arithmetic::new(binary.op, result)));
    let args = vec![*binary.left, *binary.right];
    Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction { func: function, args })))
}

fn is_date(data_type: &DataType) -> bool {
    use DataType::{Date32, Date64, Time32, Time64, Timestamp};
    matches!(data_type, Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..))
}

/// Whether a cast has values it cannot represent.
fn may_fail(cast: &Cast, schema: &DFSchema) -> Result<bool> {
    let (from, to) = (type_of(&cast.expr, schema)?, cast.field.data_type().clone());
    let is_text = |t: &DataType| matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let widens = from == to
        || from == DataType::Null
        || is_text(&from) && is_text(&to)
        || from.is_integer() && to == DataType::Float64
        || from == DataType::Float32 && to == DataType::Float64
        || from.is_signed_integer() && to == DataType::Int64
        || matches!(from, DataType::UInt8 | DataType::UInt16 | DataType::UInt32) && to == DataType::Int64;
    Ok(!widens)
}

/// Functions that have no failing values, and whose laziness wrapping would lose.
fn is_total(function: &ScalarUDF) -> bool {
    let plain = ["coalesce", "nvl", "nullif", crate::interval::LOW, crate::interval::HIGH];
    plain.contains(&function.name()) || function.inner().is::<Total>() || function.inner().is::<Arithmetic>()
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

/// The values of a batch at once, or of each row by itself, with NULL where there is none.
fn or_null(
    args: ScalarFunctionArgs,
    compute: impl Fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Result<ColumnarValue> {
    if let Ok(value) = compute(args.clone()) {
        return Ok(value);
    }
    let kind = args.return_field.data_type();
    let null = ScalarValue::try_from(kind)?;
    let row = |index: usize| {
        let slice = |value: &ColumnarValue| match value {
            ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(index, 1)),
            scalar => scalar.clone(),
        };
        let one = ScalarFunctionArgs {
            args: args.args.iter().map(slice).collect(),
            number_rows: 1,
            ..args.clone()
        };
        let value = compute(one).and_then(|value| match value {
            ColumnarValue::Array(array) => ScalarValue::try_from_array(&array, 0),
            ColumnarValue::Scalar(scalar) => Ok(scalar),
        });
        value.unwrap_or_else(|_| null.clone())
    };
    if args.number_rows == 0 {
        return Ok(ColumnarValue::Array(new_null_array(kind, 0)));
    }
    let values = ScalarValue::iter_to_array((0..args.number_rows).map(row))?;
    Ok(ColumnarValue::Array(values))
}
