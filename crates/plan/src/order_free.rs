//! [`OrderFree`]: an aggregate of the rows of one unit that does not depend on their order.
//!
//! **Why.** Which row of a unit comes first, and which are added up together, depends on where rows lie among those of others. A sum of
//! doubles would change in its last digits when somebody else is taken away, and with it the whole number of steps it is rounded to:
//! units that have nothing to do with it would move. So whole numbers and decimals are added up exactly, and doubles as decimals with a
//! fixed number of places: about 10⁻¹⁸ of their declared bounds, or 10⁻¹² where none are known. Sums beyond 64 bits, and doubles beyond
//! 10¹⁶ without bounds, are NULL.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::functions::core::expr_fn::nullif;
use datafusion::functions_aggregate::{count, median, min_max, sum};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{AggregateUDF, Expr, ExprSchemable, cast, lit, try_cast};
use demur_exact::Rational;

use crate::PlanError;
use crate::aggregate::{self, Kind};
use crate::allow;
use crate::bounding::{as_contribution, is_everything};
use crate::error_of;
use crate::facts::{self, Facts};
use crate::relation::Relation;
use crate::total;

/// The digits of doubles that are added up; a sum of ten thousand million of them has ten more.
const DIGITS: u8 = 28;
/// Places of doubles whose bounds are not known.
const PLACES: i8 = 12;

/// How an aggregate is computed.
pub(crate) struct OrderFree {
    /// What is aggregated.
    pub(crate) arguments: Vec<Expr>,
    /// Which rows count.
    pub(crate) filter: Option<Expr>,
    /// What is computed of them.
    pub(crate) calls: Vec<Call>,
    kind: Kind,
    result: DataType,
    argument: Facts,
}

/// A function of one of the arguments.
pub(crate) struct Call {
    pub(crate) function: Arc<AggregateUDF>,
    pub(crate) argument: usize,
    pub(crate) distinct: bool,
}

impl OrderFree {
    /// For an aggregate over these rows.
    pub(crate) fn of(expr: &Expr, input: &Relation) -> Result<Self, PlanError> {
        let Expr::AggregateFunction(AggregateFunction { func, params }) = expr.clone().unalias() else {
            return Err(PlanError::refused("plan.aggregate", format!("`{expr}` cannot be asked for")));
        };
        if !params.order_by.is_empty() {
            return Err(PlanError::refused("plan.aggregate", "ORDER BY in an aggregate cannot be used here"));
        }
        Self::call(&func, &params.args, params.filter.as_deref(), params.distinct, input)
    }

    /// For a function over these rows.
    pub(crate) fn call(
        function: &AggregateUDF,
        args: &[Expr],
        filter: Option<&Expr>,
        distinct: bool,
        input: &Relation,
    ) -> Result<Self, PlanError> {
        let name = function.name().to_uppercase();
        let refuse = |text: &str| PlanError::refused("plan.aggregate", format!("{name}: {text}"));
        let kind = aggregate::kind(function).ok_or_else(|| refuse("it is not on the list of aggregates"))?;
        if args.last().is_some_and(|last| as_contribution(last).is_some()) {
            return Err(refuse("bounds belong to the private aggregate, which is the outermost"));
        }
        if distinct && kind != Kind::Count {
            return Err(refuse("DISTINCT works with COUNT alone"));
        }
        let filter = filter.map(|filter| total(filter, input)).transpose()?;
        let first = args.first().filter(|first| kind != Kind::Count || !is_everything(first));
        let Some(first) = first else {
            let calls = vec![Call { function: count::count_udaf(), argument: 0, distinct }];
            let (arguments, argument) = (vec![lit(1i64)], Facts::default());
            return Ok(Self { arguments, filter, calls, kind, result: DataType::Int64, argument });
        };
        let value = total(first, input)?;
        let known = facts::of(first, input);
        let data_type = value.get_type(input.plan.schema()).map_err(error_of)?;
        let one = |function| vec![Call { function, argument: 0, distinct }];
        let (arguments, calls, result) = match kind {
            Kind::Count => (vec![value], one(count::count_udaf()), DataType::Int64),
            Kind::Least => (vec![value], one(min_max::min_udaf()), as_asked(data_type)),
            Kind::Largest => (vec![value], one(min_max::max_udaf()), as_asked(data_type)),
            Kind::Median if data_type.is_numeric() => {
                (vec![cast(value, DataType::Float64)], one(median::median_udaf()), DataType::Float64)
            }
            Kind::Sum | Kind::Average => {
                let added = exact(value.clone(), &data_type, &known)
                    .ok_or_else(|| refuse("it works on numbers, and this is none"))?;
                let result = match (kind, &data_type) {
                    (Kind::Average, _) => DataType::Float64,
                    (_, DataType::Decimal128(_, scale)) => DataType::Decimal128(38, *scale),
                    (_, whole) if whole.is_integer() => DataType::Int64,
                    _ => DataType::Float64,
                };
                let mut calls = one(sum::sum_udaf());
                if kind == Kind::Average {
                    calls.push(Call { function: count::count_udaf(), argument: 1, distinct });
                }
                // What has no place among the decimals is not counted either.
                (vec![added.clone(), added], calls, result)
            }
            _ => return Err(refuse("it cannot be used below the private aggregate")),
        };
        let arguments = arguments.into_iter().take(calls.len()).collect();
        Ok(Self { arguments, filter, calls, kind, result, argument: known })
    }

    /// The aggregate from what its calls gave.
    pub(crate) fn value(&self, results: &[Expr]) -> Result<Expr, PlanError> {
        let short = || PlanError::mistake("plan.meaning", "an aggregate has no result");
        let first = results.first().cloned().ok_or_else(short)?;
        Ok(match self.kind {
            Kind::Sum | Kind::Least | Kind::Largest => try_cast(first, self.result.clone()),
            Kind::Average => {
                let many = results.get(1).cloned().ok_or_else(short)?;
                let many = nullif(many, lit(0i64));
                cast(first, DataType::Float64) / cast(many, DataType::Float64)
            }
            _ => first,
        })
    }

    /// What is known of the aggregate, over so many rows at most.
    pub(crate) fn facts(&self, rows: Option<u64>) -> Facts {
        let zero = Rational::zero;
        let range = self.argument.range.clone();
        let range = match self.kind {
            Kind::Count => rows.map(|rows| (zero(), Rational::from(rows))),
            Kind::Sum => rows.zip(range).map(|(rows, (low, high))| {
                let rows = Rational::from(rows);
                ((&low * &rows).min(zero()), (&high * &rows).max(zero()))
            }),
            _ => range,
        };
        let values = match self.kind {
            Kind::Least | Kind::Largest if self.result != DataType::Float64 => self.argument.values.clone(),
            _ => None,
        };
        Facts { range, values, ..Facts::default() }
    }
}

fn total(expr: &Expr, input: &Relation) -> Result<Expr, PlanError> {
    allow::on_rows(expr)?;
    Ok(total::rewrite(expr.clone(), input.plan.schema()).map_err(error_of)?.unalias())
}

/// The type of the least or largest value: of numbers it is a double.
fn as_asked(data_type: DataType) -> DataType {
    if data_type.is_numeric() { DataType::Float64 } else { data_type }
}

/// A number as a decimal that can be added up exactly.
fn exact(value: Expr, data_type: &DataType, known: &Facts) -> Option<Expr> {
    match data_type {
        DataType::Decimal128(..) => Some(value),
        whole if whole.is_integer() => Some(cast(value, DataType::Decimal128(20, 0))),
        DataType::Float32 | DataType::Float64 => {
            Some(try_cast(cast(value, DataType::Float64), DataType::Decimal128(DIGITS, places(known))))
        }
        _ => None,
    }
}

/// So many places that 18 digits hold the bounds.
fn places(known: &Facts) -> i8 {
    let Some((low, high)) = &known.range else { return PLACES };
    let far = low.to_f64().abs().max(high.to_f64().abs());
    if !(far > 0.0 && far.is_finite()) {
        return PLACES;
    }
    (18.0 - far.log10().ceil()).clamp(0.0, 27.0) as i8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_have_18_digits() {
        let places = |low: &str, high: &str| {
            let range = low.parse().ok().zip(high.parse().ok());
            super::places(&Facts { range, ..Facts::default() })
        };
        assert_eq!(places("0", "500"), 15);
        assert_eq!(places("-1", "1"), 18);
        assert_eq!(places("0", "1e-5"), 23);
        assert_eq!(places("0", "1e30"), 0);
        assert_eq!(places("0", "0"), PLACES);
        assert_eq!(super::places(&Facts::default()), PLACES);
    }
}
