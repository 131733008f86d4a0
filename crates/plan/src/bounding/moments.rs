//! Variances, covariances and correlations as sums of deviations and of their products.
//!
//! **Definition.** With c the middle of a column's bounds, d = x − c and |d| ≤ H, a variance is made of the count N, of Σ d and of
//! Σ (d² − H²/2); a covariance of N, both Σ d and Σ d·e; a correlation of all of them. Rows count where both columns are there.
//!
//! **Why from the middle.** One value moves Σ d² by up to H², but Σ (d² − H²/2) by H²/2 at most, and Var = Σ(d² − H²/2)/N + H²/2 − (Σd/N)² needs no more.
//! Sums of the values themselves would move by the largest value and cancel.
//!
//! **Bounds.** The value is clamped before it is squared, so that what is added up belongs to the same number as Σ d. What the promise
//! rests on is the clamp of the tally, on the square or product itself.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::functions::math::expr_fn::isnan;
use datafusion::logical_expr::{Expr, cast, lit, not, when};
use demur_exact::Rational;
use demur_tally::{Bounds, Measure, Step};

use super::{Call, Measures, argument, error_of, in_steps, only_where, size, step_of, too_far};
use crate::PlanError;
use crate::allow;
use crate::bounded::{Axis, Moment, Product, Recipe};
use crate::total;

/// A column on its way to an [`Axis`].
struct Column {
    value: Expr,
    axis: Axis,
    row: Bounds,
    centre: i64,
}

impl Measures<'_> {
    pub(super) fn moments(&mut self, call: &Call, which: Moment) -> Result<Recipe, PlanError> {
        if call.contribution.per_group.is_some() {
            let text = format!("{}: it has bounds per row, not per group", call.name);
            return Err(PlanError::refused("plan.argument", text)
                .hint("write contribution_bounds_per_row => (low, high)"));
        }
        let first = argument(call)?.clone();
        let values = match (which.columns(), call.others.as_slice()) {
            (1, []) => vec![first],
            (2, [second]) => self.both(&first, second)?,
            (wanted, others) => {
                let text =
                    format!("{} takes {wanted} columns, but {} were given", call.name, 1 + others.len());
                return Err(PlanError::mistake("plan.argument", text));
            }
        };
        let mut columns = Vec::new();
        // Where one column is there, so is the other: one count is enough.
        let count = self.number_of(&values[0]);
        for value in values {
            let (step, row) = self.bounds(call, &value)?;
            let (deviation, centre) = self.deviation(&value, step, row);
            let reach = (row.high - centre).max(centre - row.low);
            columns.push(Column { value, axis: Axis { deviation, step, reach }, row, centre });
        }
        let mut products = Vec::new();
        if which.columns() == 1 || which == Moment::Corr {
            for column in &columns {
                products.push(self.product(call, column, column, true)?);
            }
        }
        if let [x, y] = columns.as_slice() {
            products.push(self.product(call, x, y, false)?);
        }
        Ok(Recipe::Moments {
            which,
            count,
            axes: columns.iter().map(|column| column.axis).collect(),
            products,
        })
    }

    /// Both columns, each where the other is there too.
    fn both(&self, first: &Expr, second: &Expr) -> Result<Vec<Expr>, PlanError> {
        allow::on_rows(second)?;
        let second = self.total(second.clone())?;
        let there = |value: &Expr| {
            let number = cast(value.clone(), DataType::Float64);
            value.clone().is_not_null().and(not(isnan(number)))
        };
        let pairs = [(first, &second), (&second, first)];
        pairs
            .into_iter()
            .map(|(value, other)| self.total(only_where(&there(other), value.clone())?))
            .collect()
    }

    /// Products of deviations, less their middle; squares are never below 0.
    fn product(&mut self, call: &Call, x: &Column, y: &Column, square: bool) -> Result<Product, PlanError> {
        let far = |column: &Column| &Rational::from(column.axis.reach) * &size(column.axis.step);
        let most = &far(x) * &far(y);
        let least = if square { Rational::zero() } else { -&most };
        let step = step_of(&DataType::Float64, &least, &most).unwrap_or(Step::One);
        let row = in_steps(step, &least, &most).ok_or_else(|| too_far(call))?;
        let middle = row.low.midpoint(row.high);
        let value = self.total(deviation(x)? * deviation(y)?)?;
        let (input, most) = (self.input(value), self.rows_per_group);
        let measure = self.measure(Measure::Deviation { input, step, row, centre: middle, most });
        Ok(Product { measure, step, middle })
    }

    fn total(&self, expr: Expr) -> Result<Expr, PlanError> {
        total::rewrite(expr, self.relation.plan.schema()).map(Expr::unalias).map_err(error_of)
    }
}

/// The clamped value less the middle of its bounds; NULL where it is no number.
fn deviation(column: &Column) -> Result<Expr, PlanError> {
    let value = cast(column.value.clone(), DataType::Float64);
    let real = |steps: i64| lit((&Rational::from(steps) * &size(column.axis.step)).to_f64());
    let (low, high) = (real(column.row.low), real(column.row.high));
    let clamped = when(isnan(value.clone()), Expr::Literal(ScalarValue::Float64(None), None))
        .when(value.clone().lt(low.clone()), low)
        .when(value.clone().gt(high.clone()), high)
        .otherwise(value)
        .map_err(error_of)?;
    Ok(clamped - real(column.centre))
}
