//! [`Facts`]: what the catalog says about an expression, carried through the query.
//!
//! **Use.** Facts choose clamps and offer public keys. These are never trusted: every clamp is applied again to the very value that is
//! added up, and rows with other keys are left out. A wrong one costs accuracy, not privacy. What is trusted is which expressions name the unit, so that is carried through
//! renaming and casts that keep values apart, and through nothing else.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{BinaryExpr, Case, Cast, ScalarFunction, TryCast};
use datafusion::logical_expr::{Expr, ExprSchemable, Operator};
use demur_exact::Rational;

use crate::relation::{Reference, Relation};
use crate::total;

/// What is known of the values of an expression, without looking at any.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Facts {
    /// From where to where they lie.
    pub(crate) range: Option<(Rational, Rational)>,
    /// The values that are public.
    pub(crate) values: Option<Vec<ScalarValue>>,
    /// Whether they name the privacy unit, and different ones differently: rows that are paired by them are one unit's. This one is trusted.
    pub(crate) is_unit: bool,
    /// The row that they name, if they are a key of a table.
    pub(crate) refers: Option<Reference>,
}

impl Facts {
    fn between(low: Rational, high: Rational) -> Self {
        Self { range: Some((low, high)), ..Self::default() }
    }

    /// What is known of values that are from here or from there.
    pub(crate) fn either(self, other: Self) -> Self {
        let range = self.range.zip(other.range).map(|((a, b), (c, d))| (a.min(c), b.max(d)));
        let values = self.values.zip(other.values).map(|(mut values, more)| {
            let new: Vec<_> = more.into_iter().filter(|value| !values.contains(value)).collect();
            values.extend(new);
            values
        });
        let refers = self.refers.filter(|refers| other.refers.as_ref() == Some(refers));
        Self { range, values, is_unit: self.is_unit && other.is_unit, refers }
    }
}

/// What is known of an expression over a relation.
pub(crate) fn of(expr: &Expr, relation: &Relation) -> Facts {
    match expr {
        Expr::Alias(alias) => of(&alias.expr, relation),
        Expr::Column(column) => relation.facts(column),
        Expr::Literal(value, _) => {
            number(value).map_or_else(Facts::default, |x| Facts::between(x.clone(), x))
        }
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
            cast_facts(expr, field.data_type(), relation)
        }
        Expr::Negative(inner) => {
            let range = of(inner, relation).range.map(|(low, high)| (-&high, -&low));
            Facts { range, ..Facts::default() }
        }
        Expr::BinaryExpr(binary) => binary_facts(binary, relation),
        Expr::Case(case) => case_facts(case, relation),
        Expr::ScalarFunction(function) => function_facts(function, relation),
        _ => Facts::default(),
    }
}

/// Rounding to whole numbers may leave the range by less than 1; clamping mends that. A unit stays one where different ones stay different.
fn cast_facts(expr: &Expr, to: &DataType, relation: &Relation) -> Facts {
    let Facts { range, is_unit, .. } = of(expr, relation);
    let from = expr.get_type(relation.plan.schema());
    let is_unit = is_unit && from.is_ok_and(|from| keeps_apart(&from, to));
    Facts { range: range.filter(|_| to.is_numeric()), is_unit, ..Facts::default() }
}

/// Whether different values stay different when they are cast.
fn keeps_apart(from: &DataType, to: &DataType) -> bool {
    let is_text = |t: &DataType| matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    from == to || is_text(from) && is_text(to) || total::holds_integers(from, to)
}

fn binary_facts(binary: &BinaryExpr, relation: &Relation) -> Facts {
    let (left, right) = (of(&binary.left, relation).range, of(&binary.right, relation).range);
    let (Some(left), Some(right)) = (left, right) else { return Facts::default() };
    match operate(binary.op, &left, &right) {
        Some((low, high)) => Facts::between(low, high),
        None => Facts::default(),
    }
}

/// Where left ∘ right lies.
fn operate(
    operator: Operator,
    left: &(Rational, Rational),
    right: &(Rational, Rational),
) -> Option<(Rational, Rational)> {
    let corners = |f: fn(&Rational, &Rational) -> Rational| {
        let all = [f(&left.0, &right.0), f(&left.0, &right.1), f(&left.1, &right.0), f(&left.1, &right.1)];
        let low = all.iter().min()?.clone();
        let high = all.iter().max()?.clone();
        Some((low, high))
    };
    let zero = Rational::zero();
    match operator {
        Operator::Plus => corners(|a, b| a + b),
        Operator::Minus => corners(|a, b| a - b),
        Operator::Multiply => corners(|a, b| a * b),
        Operator::Divide if right.0 > zero || right.1 < zero => corners(|a, b| a / b),
        _ => None,
    }
}

/// The union over all outcomes. Where every outcome is written in the query, everybody may know which there are.
fn case_facts(case: &Case, relation: &Relation) -> Facts {
    let outcomes =
        || case.when_then_expr.iter().map(|(_, then)| then.as_ref()).chain(case.else_expr.as_deref());
    let written = |outcome: &Expr| match outcome {
        Expr::Literal(value, _) if !value.is_null() => Some(value.clone()),
        _ => None,
    };
    let mut values: Option<Vec<ScalarValue>> = outcomes().map(written).collect();
    if let Some(values) = &mut values {
        let mut seen = std::collections::HashSet::new();
        values.retain(|value| seen.insert(value.clone()));
    }
    Facts { values: values.filter(|_| case.else_expr.is_some()), ..union(outcomes(), relation) }
}

fn union<'a>(outcomes: impl Iterator<Item = &'a Expr>, relation: &Relation) -> Facts {
    let mut range: Option<(Rational, Rational)> = None;
    for outcome in outcomes {
        if matches!(outcome, Expr::Literal(value, _) if value.is_null()) {
            continue;
        }
        let Some((low, high)) = of(outcome, relation).range else { return Facts::default() };
        range = Some(match range {
            Some((l, h)) => (l.min(low), h.max(high)),
            None => (low, high),
        });
    }
    Facts { range, ..Facts::default() }
}

fn function_facts(function: &ScalarFunction, relation: &Relation) -> Facts {
    if let Some((expr, to)) = total::conversion(function) {
        return cast_facts(expr, to, relation);
    }
    let first = || function.args.first().and_then(|arg| of(arg, relation).range);
    match function.func.name() {
        "coalesce" | "nvl" | "greatest" | "least" => union(function.args.iter(), relation),
        "nullif" | "round" | "trunc" | "ceil" | "floor" => Facts { range: first(), ..Facts::default() },
        "abs" => Facts {
            range: first().map(|(low, high)| {
                let far = (-&low).max(high.clone());
                let near = if low > Rational::zero() {
                    low
                } else if high < Rational::zero() {
                    -&high
                } else {
                    Rational::zero()
                };
                (near, far)
            }),
            ..Facts::default()
        },
        name => match name.strip_prefix("total ").and_then(operator) {
            Some(operator) => match function.args.as_slice() {
                [left, right] => {
                    let plain = BinaryExpr::new(Box::new(left.clone()), operator, Box::new(right.clone()));
                    binary_facts(&plain, relation)
                }
                _ => Facts::default(),
            },
            None => Facts::default(),
        },
    }
}

fn operator(sign: &str) -> Option<Operator> {
    use Operator::{Divide, Minus, Multiply, Plus};
    [Plus, Minus, Multiply, Divide].into_iter().find(|operator| operator.to_string() == sign)
}

/// A literal as a number.
pub(crate) fn number(value: &ScalarValue) -> Option<Rational> {
    if value.is_null() {
        return None;
    }
    match value {
        ScalarValue::Float64(Some(x)) => Rational::try_from(*x).ok(),
        ScalarValue::Float32(Some(x)) => Rational::try_from(f64::from(*x)).ok(),
        value if value.data_type().is_integer() || matches!(value, ScalarValue::Decimal128(..)) => {
            value.to_string().parse().ok()
        }
        _ => None,
    }
}
