//! Window functions over the rows of one unit, or of a public table.
//!
//! **Why.** Partitioned by the unit, a window has rows of one unit alone. Where the order of rows decides, all columns are added to it: rows that are
//! still equal cannot be told apart, so it does not matter which comes first. Ranks look at the written order alone, and aggregates over ranges at
//! all rows that are equal in it.

use std::sync::Arc;

use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::expr::{Sort, WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    Expr, LogicalPlan, Projection, Window, WindowFrame, WindowFrameBound, WindowFrameUnits,
    WindowFunctionDefinition,
};
use demur_exact::Rational;

use super::{Lift, Owner, Relation};
use crate::PlanError;
use crate::error_of;
use crate::facts::{self, Facts};
use crate::order_free::OrderFree;

/// What may be computed over a window besides aggregates.
pub(crate) const FUNCTIONS: [&str; 9] = [
    "row_number",
    "rank",
    "dense_rank",
    "percent_rank",
    "cume_dist",
    "lag",
    "lead",
    "first_value",
    "last_value",
];

/// The furthest row that a window may name.
const FAR: u64 = 1 << 31;

/// Those of them that are the same for rows which the written order does not tell apart.
const RANKS: [&str; 4] = ["rank", "dense_rank", "percent_rank", "cume_dist"];

impl Lift<'_> {
    pub(super) fn window(&mut self, window: &Window) -> Result<Relation, PlanError> {
        let input = self.relation(&window.input)?;
        let input = self.settle(input)?;
        let below = window.input.schema().fields().len();
        let mut known = input.facts.clone();
        let mut calls = Vec::new();
        let mut shown: Vec<_> = input.plan.schema().columns().into_iter().map(Expr::Column).collect();
        for (place, expr) in window.window_expr.iter().enumerate() {
            let (value, facts) = self.call(expr, &input, &mut calls)?;
            let (qualifier, field) = window.schema.qualified_field(below + place);
            known.insert(Column::new(qualifier.cloned(), field.name()), facts);
            shown.push(value.alias_qualified(qualifier.cloned(), field.name()));
        }
        let one_more = |plan, call| Window::try_new(vec![call], Arc::new(plan)).map(LogicalPlan::Window);
        let plan = calls
            .into_iter()
            .try_fold(input.plan, one_more)
            .and_then(|windows| Projection::try_new(shown, Arc::new(windows)))
            .map(LogicalPlan::Projection)
            .map_err(error_of)?;
        Ok(Relation { plan, second: None, facts: known, ..input })
    }

    /// A window function as it is computed, and what its value is.
    fn call(
        &mut self,
        expr: &Expr,
        input: &Relation,
        calls: &mut Vec<Expr>,
    ) -> Result<(Expr, Facts), PlanError> {
        let Expr::WindowFunction(function) = expr.clone().unalias() else {
            return Err(PlanError::refused("plan.window", format!("`{expr}` cannot be used here")));
        };
        let WindowFunction { fun, params } = *function;
        check(&params, input)?;
        let totals = |exprs: &[Expr]| {
            exprs.iter().map(|expr| input.total(expr).map(Expr::unalias)).collect::<Result<Vec<_>, _>>()
        };
        let mut order_by = Vec::new();
        for sort in &params.order_by {
            order_by.push(Sort { expr: input.total(&sort.expr)?.unalias(), ..sort.clone() });
        }
        let name_is = |names: &[&str]| names.contains(&fun.name());
        let by_place = match &fun {
            WindowFunctionDefinition::WindowUDF(_) => !name_is(&RANKS),
            WindowFunctionDefinition::AggregateUDF(_) => params.window_frame.units == WindowFrameUnits::Rows,
        };
        if by_place {
            let columns = input.plan.schema().columns().into_iter().map(Expr::Column);
            order_by.extend(columns.map(|column| column.sort(true, false)));
        }
        let common = WindowFunctionParams {
            args: Vec::new(),
            partition_by: totals(&params.partition_by)?,
            order_by,
            window_frame: params.window_frame.clone(),
            filter: None,
            null_treatment: params.null_treatment,
            distinct: false,
        };
        let mut add = |fun, args, filter: Option<Expr>| {
            let name = self.name("window");
            let params = WindowFunctionParams { args, filter: filter.map(Box::new), ..common.clone() };
            calls.push(Expr::from(WindowFunction { fun, params }).alias(&name));
            Expr::Column(Column::new_unqualified(name))
        };
        if let WindowFunctionDefinition::AggregateUDF(function) = &fun {
            let asked =
                OrderFree::call(function, &params.args, params.filter.as_deref(), params.distinct, input)?;
            let results = asked.calls.iter().map(|call| {
                let fun = WindowFunctionDefinition::AggregateUDF(Arc::clone(&call.function));
                add(fun, vec![asked.arguments[call.argument].clone()], asked.filter.clone())
            });
            let results: Vec<_> = results.collect();
            return Ok((asked.value(&results)?, asked.facts(input.rows_per_unit)));
        }
        if !name_is(&FUNCTIONS) {
            let text = format!("the window function {} is not on the list", fun.name());
            return Err(
                PlanError::refused("plan.window", text).hint(format!("there are: {}", FUNCTIONS.join(", ")))
            );
        }
        let args = totals(&params.args)?;
        let far = |arg: &Expr| matches!(arg, Expr::Literal(value, _) if is_far(value));
        if name_is(&["lag", "lead"]) && args.get(1).is_some_and(far) {
            return Err(too_far());
        }
        if !args.iter().skip(1).all(|arg| matches!(arg, Expr::Literal(..))) {
            let text = format!("{} takes a distance and a default that stand in the query", fun.name());
            return Err(
                PlanError::refused("plan.window", text).hint("write them as literals, as in LAG(x, 1)")
            );
        }
        let moves = name_is(&["lag", "lead", "first_value", "last_value"]);
        let facts = match args.as_slice() {
            [first] if moves => Facts { is_unit: false, ..facts::of(first, input) },
            _ => Facts::default(),
        };
        Ok((add(fun.clone(), args, None), facts))
    }
}

/// A window must not have rows of several units, nor fail on some.
fn check(params: &WindowFunctionParams, input: &Relation) -> Result<(), PlanError> {
    let names_unit = |key: &Expr| matches!(key, Expr::Column(column) if input.facts(column).is_unit);
    let units: Vec<_> = input.private_tables().map(|table| format!("`{}`", table.unit_name())).collect();
    match input.owner {
        Owner::Nobody => {}
        Owner::Unit(_) if params.partition_by.iter().any(names_unit) => {}
        Owner::Unit(_) => {
            let text = "a window function would look at rows of different people";
            return Err(PlanError::refused("plan.window", text)
                .hint(format!("write OVER (PARTITION BY {} …)", units.join(" or "))));
        }
        _ => {
            let text = "a window function would look at several rows, and each row is a unit of its own";
            return Err(PlanError::refused("plan.window", text).hint("use GROUP BY"));
        }
    }
    let frame = &params.window_frame;
    let far = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => false,
        WindowFrameBound::Preceding(rows) | WindowFrameBound::Following(rows) => is_far(rows),
    };
    if far(&frame.start_bound) || far(&frame.end_bound) {
        return Err(too_far());
    }
    if params.window_frame.units != WindowFrameUnits::Rows && has_distance(&params.window_frame) {
        return Err(PlanError::refused(
            "plan.window",
            "RANGE and GROUPS with a distance cannot be used here",
        )
        .hint("count rows: ROWS BETWEEN 3 PRECEDING AND CURRENT ROW"));
    }
    Ok(())
}

/// Rows that are further away than any: what counts them below us would overflow, where a row comes to it.
fn is_far(rows: &ScalarValue) -> bool {
    facts::number(rows).is_some_and(|rows| rows.abs() > Rational::from(FAR))
}

fn too_far() -> PlanError {
    let text = format!("a window reaches at most {FAR} rows");
    PlanError::refused("plan.window", text).hint("UNBOUNDED reaches all of them")
}

/// Whether a frame ends at a distance rather than at the row itself or at the edge.
fn has_distance(frame: &WindowFrame) -> bool {
    let is_distance = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => false,
        WindowFrameBound::Preceding(value) | WindowFrameBound::Following(value) => {
            !ScalarValue::is_null(value)
        }
    };
    is_distance(&frame.start_bound) || is_distance(&frame.end_bound)
}
