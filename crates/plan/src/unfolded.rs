//! How large expressions are when what they stand on is written in their place.
//!
//! **Why.** `s + s` over a subquery whose `s` is `s + s`, and so on, is a short query; what runs below puts each of them in the place of its name, and thirty subqueries make
//! 2³⁰ terms. So the size that would result is found first, node by node, without writing it down.

use std::collections::HashMap;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DataFusionError};
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::PlanError;

/// The most terms of a node with all names replaced; a text has room for no more.
const MOST: usize = 5_000;

/// How large the columns are that a node gives.
type Sizes = HashMap<Column, usize>;

/// Refuses a plan in which some expression would become too large.
pub(crate) fn check(plan: &LogicalPlan) -> Result<(), PlanError> {
    sizes(plan).map(|_| ())
}

fn sizes(plan: &LogicalPlan) -> Result<Sizes, PlanError> {
    let mut below = Sizes::new();
    for input in plan.inputs() {
        for (column, size) in sizes(input)? {
            let known = below.entry(column).or_insert(size);
            *known = size.max(*known);
        }
    }
    let made = plan.expressions().iter().map(|expr| size(expr, &below)).collect::<Result<Vec<_>, _>>()?;
    // What is only named costs nothing.
    let whole = made.iter().fold(0usize, |whole, size| whole.saturating_add(size - 1));
    if whole > MOST {
        let text = "with all names of subqueries replaced by what they stand for, this question is too long";
        return Err(PlanError::refused("plan.size", text)
            .hint("a column that each of many subqueries names twice doubles each time: name it once"));
    }
    let inner =
        |input: &LogicalPlan, place: usize| below.get(&Column::from(input.schema().qualified_field(place)));
    let of = |(place, column): (usize, Column)| {
        let size = match plan {
            // Computed in the order in which they are named.
            LogicalPlan::Projection(_) => made.get(place),
            LogicalPlan::SubqueryAlias(alias) => inner(&alias.input, place),
            LogicalPlan::Union(union) => union.inputs.iter().filter_map(|input| inner(input, place)).max(),
            _ => below.get(&column),
        };
        // What an aggregate or a window gives is computed once, whatever it stands on.
        let size = size.copied().unwrap_or(1);
        (column, size)
    };
    Ok(plan.schema().columns().into_iter().enumerate().map(of).collect())
}

/// The number of terms of an expression, each column as large as what it stands for.
fn size(expr: &Expr, columns: &Sizes) -> Result<usize, PlanError> {
    if let Expr::Column(column) = expr {
        return Ok(columns.get(column).copied().unwrap_or(1));
    }
    let mut parts = 0usize;
    let walked = expr.apply_children(|part| {
        let part = size(part, columns).map_err(|error| DataFusionError::Plan(error.to_string()))?;
        parts = parts.saturating_add(part);
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(crate::error_of)?;
    Ok(parts.saturating_mul(times(expr)).saturating_add(1))
}

/// How often what runs below writes down the parts of an expression, where it writes another in its place: two comparisons for BETWEEN and for a short IN several, a CASE for COALESCE.
fn times(expr: &Expr) -> usize {
    match expr {
        Expr::Between(_) => 2,
        Expr::InList(list) if list.list.len() <= 3 => list.list.len().max(1),
        Expr::ScalarFunction(call) if ["coalesce", "nvl", "nullif"].contains(&call.name()) => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::logical_expr::{LogicalPlanBuilder, col, lit, table_scan};
    use datafusion::logical_expr::{Operator, binary_expr};

    use super::*;

    /// x, computed by so many subqueries, each of which names it so often.
    fn nested(levels: usize, often: usize) -> Result<(), PlanError> {
        let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
        let mut plan = table_scan(Some("t"), &schema, None).unwrap();
        for level in 0..levels {
            let sum = (1..often).fold(col("x"), |sum, _| binary_expr(sum, Operator::Plus, col("x")));
            let plus = binary_expr(sum, Operator::Plus, lit(1));
            plan = plan.project(vec![plus.alias("x")]).unwrap().alias(format!("t{level}")).unwrap();
        }
        let both = LogicalPlanBuilder::from(plan.clone().build().unwrap()).union(plan.build().unwrap());
        check(&both.unwrap().filter(col("x").gt(lit(3))).unwrap().build().unwrap())
    }

    #[test]
    fn what_doubles_at_each_level_is_refused_and_what_grows_by_one_is_not() {
        assert_eq!(nested(30, 1), Ok(()));
        assert_eq!(nested(5, 2), Ok(()));
        assert_eq!(nested(30, 2).unwrap_err().code(), "plan.size");
        assert_eq!(nested(200, 2).unwrap_err().code(), "plan.size");
    }

    /// Each of them becomes an expression that names its argument more than once.
    #[test]
    fn what_is_written_out_below_counts_as_it_is_written_out() {
        let deep = |levels: usize, wrap: &dyn Fn(Expr) -> Expr| {
            let known = Sizes::new();
            size(&(0..levels).fold(col("x"), |inner, _| wrap(inner)), &known).unwrap()
        };
        let between = |inner: Expr| inner.between(lit(0), lit(1));
        let short = |inner: Expr| inner.in_list(vec![lit(0), lit(1)], false);
        let long = |inner: Expr| inner.in_list(vec![lit(0); 9], false);
        let first = |inner: Expr| datafusion::functions::core::expr_fn::coalesce(vec![inner, lit(1)]);
        assert!(deep(30, &between) > 1 << 30 && deep(30, &short) > 1 << 30 && deep(30, &first) > 1 << 30);
        assert!(deep(30, &long) < 1000);
    }

    #[test]
    fn columns_that_are_only_named_cost_nothing() {
        let fields: Vec<_> =
            (0..2 * MOST).map(|at| Field::new(format!("c{at}"), DataType::Int64, true)).collect();
        let plan = table_scan(Some("t"), &Schema::new(fields), None).unwrap();
        let columns: Vec<_> = (0..2 * MOST).map(|at| col(format!("c{at}"))).collect();
        assert_eq!(check(&plan.project(columns).unwrap().build().unwrap()), Ok(()));
    }
}
