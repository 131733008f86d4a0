//! [`Enclosure`]: where an expression over answers lies, given where the answers do.
//!
//! **Definition.** Ends are carried through +, −, ×, ÷ and through functions that only rise. The ends of an answer come in several widths: the k-th
//! holds but for a chance of β/k. An expression of m different answers uses the m-th of each: all of them hold together but for a chance of β, and then
//! the expression lies between its ends.
//!
//! What falls and rises (%, CASE, abs) has no ends here.

use std::collections::BTreeSet;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema};
use datafusion::functions::core::expr_fn::{greatest, least};
use datafusion::functions::math::expr_fn::trunc;
use datafusion::logical_expr::expr::{BinaryExpr, Cast, ScalarFunction, TryCast};
use datafusion::logical_expr::{Expr, ExprSchemable, Operator, cast, lit, when};

use crate::facts::number;

/// So many answers may share the chance of an error.
pub(crate) const MOST: usize = 4;

/// Functions that never fall, of their first argument.
const RISING: [&str; 9] = ["ceil", "exp", "floor", "ln", "log10", "log2", "round", "sqrt", "trunc"];

/// Between which ends something lies; see the module text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Enclosure {
    /// The answers it is made of.
    pub(crate) answers: BTreeSet<usize>,
    /// Its ends when 1, 2, … answers share the chance of an error.
    pub(crate) ends: Vec<(Expr, Expr)>,
}

impl Enclosure {
    /// The ends that hold as often as is said, where there are any.
    pub(crate) fn shown(&self) -> Option<&(Expr, Expr)> {
        self.answers.len().checked_sub(1).and_then(|others| self.ends.get(others))
    }

    /// The same under a function that is applied to both ends.
    pub(crate) fn map(self, f: impl Fn(Expr) -> Expr) -> Self {
        let ends = self.ends.into_iter().map(|(low, high)| (f(low), f(high))).collect();
        Self { ends, ..self }
    }

    fn with(self, other: Self, f: impl Fn((Expr, Expr), (Expr, Expr)) -> (Expr, Expr)) -> Self {
        let ends = self.ends.into_iter().zip(other.ends).map(|(a, b)| f(a, b)).collect();
        Self { answers: self.answers.union(&other.answers).copied().collect(), ends }
    }
}

/// The ends of an expression over answers, whose own ends `of` knows.
pub(crate) fn of(
    expr: &Expr,
    schema: &DFSchema,
    of: &dyn Fn(&Column) -> Option<Enclosure>,
) -> Option<Enclosure> {
    match expr {
        Expr::Alias(alias) => self::of(&alias.expr, schema, of),
        Expr::Column(column) => of(column),
        Expr::Literal(value, _) => {
            let value = lit(number(value)?.to_f64());
            Some(Enclosure { answers: BTreeSet::new(), ends: vec![(value.clone(), value); MOST] })
        }
        Expr::Cast(Cast { expr: inner, field }) | Expr::TryCast(TryCast { expr: inner, field }) => {
            let inner = self::of(inner, schema, of)?;
            match field.data_type() {
                DataType::Float64 | DataType::Float32 | DataType::Decimal128(..) => Some(inner),
                whole if whole.is_integer() => Some(inner.map(|end| trunc(vec![end]))),
                _ => None,
            }
        }
        Expr::Negative(inner) => {
            let inner = self::of(inner, schema, of)?;
            let turned = |(low, high): (Expr, Expr)| (lit(0.0) - high, lit(0.0) - low);
            Some(Enclosure { ends: inner.ends.into_iter().map(turned).collect(), ..inner })
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (left, right) = (self::of(left, schema, of)?, self::of(right, schema, of)?);
            let whole = expr.get_type(schema).is_ok_and(|found| found.is_integer());
            match op {
                Operator::Plus => Some(left.with(right, |a, b| (a.0 + b.0, a.1 + b.1))),
                Operator::Minus => Some(left.with(right, |a, b| (a.0 - b.1, a.1 - b.0))),
                Operator::Multiply => Some(left.with(right, |a, b| corners(a, b, |x, y| x * y))),
                // Whole numbers are divided without a rest.
                Operator::Divide if whole => Some(left.with(right, quotient).map(|end| trunc(vec![end]))),
                Operator::Divide => Some(left.with(right, quotient)),
                _ => None,
            }
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if RISING.contains(&func.name()) => {
            let (first, rest) = args.split_first()?;
            if rest.iter().any(|arg| !arg.column_refs().is_empty()) {
                return None;
            }
            let call = |end: Expr| {
                let args = std::iter::once(end).chain(rest.iter().cloned()).collect();
                Expr::ScalarFunction(ScalarFunction { func: func.clone(), args })
            };
            Some(self::of(first, schema, of)?.map(|end| cast(call(end), DataType::Float64)))
        }
        _ => None,
    }
}

/// The least and the largest of a function at the corners.
fn corners(a: (Expr, Expr), b: (Expr, Expr), f: impl Fn(Expr, Expr) -> Expr) -> (Expr, Expr) {
    let all = || {
        vec![
            f(a.0.clone(), b.0.clone()),
            f(a.0.clone(), b.1.clone()),
            f(a.1.clone(), b.0.clone()),
            f(a.1.clone(), b.1.clone()),
        ]
    };
    (least(all()), greatest(all()))
}

/// NULL where the divisor may be 0.
fn quotient(a: (Expr, Expr), b: (Expr, Expr)) -> (Expr, Expr) {
    let apart = b.0.clone().gt(lit(0.0)).or(b.1.clone().lt(lit(0.0)));
    let (low, high) = corners(a, b, |x, y| x / y);
    let only = |end: Expr| when(apart.clone(), end.clone()).end().unwrap_or(end);
    (only(low), only(high))
}
