//! The list of what a query may use. What is not on it is refused by name.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Operator};

use crate::PlanError;
use crate::functions;

/// Checks an expression over rows.
pub(crate) fn on_rows(expr: &Expr) -> Result<(), PlanError> {
    check(expr, false)
}

/// Checks an expression over answers.
pub(crate) fn on_answers(expr: &Expr) -> Result<(), PlanError> {
    check(expr, true)
}

fn check(expr: &Expr, answers: bool) -> Result<(), PlanError> {
    let mut found = None;
    let walked = expr.apply(|node| {
        found = refused(node, answers);
        Ok(if found.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    match (walked, found) {
        (_, Some(error)) => Err(error),
        (Err(error), None) => Err(crate::error_of(error)),
        (Ok(_), None) => Ok(()),
    }
}

/// Why one node of an expression is refused, if it is.
fn refused(expr: &Expr, answers: bool) -> Option<PlanError> {
    let no = |what: &str, hint: &str| {
        Some(
            PlanError::refused("plan.expression", format!("{what} cannot be used here"))
                .hint(hint.to_owned()),
        )
    };
    match expr {
        Expr::Alias(_)
        | Expr::Column(_)
        | Expr::Literal(..)
        | Expr::Not(_)
        | Expr::IsNotNull(_)
        | Expr::IsNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_)
        | Expr::Negative(_)
        | Expr::Between(_)
        | Expr::Case(_)
        | Expr::Cast(_)
        | Expr::TryCast(_)
        | Expr::InList(_) => None,
        Expr::BinaryExpr(binary) if is_allowed(binary.op) => None,
        // What GROUPING is made of.
        Expr::BinaryExpr(binary) if answers && is_of_bits(binary.op) => None,
        Expr::BinaryExpr(binary) => {
            no(&format!("the operator {}", binary.op), "arithmetic, comparisons, AND, OR and || can be used")
        }
        Expr::Like(like) if like.escape_char.is_some() => {
            no("LIKE … ESCAPE", "use CONTAINS, STARTS_WITH or STRPOS for signs that LIKE reads otherwise")
        }
        Expr::Like(like) => match length(&like.pattern) {
            Some(letters) if letters <= PATTERN => None,
            Some(letters) => Some(
                PlanError::refused(
                    "plan.size",
                    format!(
                        "a pattern of LIKE has {letters} letters, and {PATTERN} are the most that is read"
                    ),
                )
                .hint("CONTAINS, STARTS_WITH and ENDS_WITH look for longer texts"),
            ),
            None => no("LIKE with a pattern that is not written as a text", "write it as one: LIKE '…%'"),
        },
        Expr::ScalarFunction(function) => {
            let name = function.func.name();
            let is_end = name == crate::interval::LOW || name == crate::interval::HIGH;
            match functions::is_allowed(name) && (answers || !is_end) {
                true => functions::unknown_part(name, &function.args)
                    .and_then(|(part, parts)| no(&format!("the part `{part}` of a date"), parts)),
                false => no(&format!("the function {name}"), "the list of functions is in docs/sql.md"),
            }
        }
        Expr::AggregateFunction(_) => {
            no("an aggregate inside this expression", "aggregate once, in SELECT or HAVING")
        }
        Expr::WindowFunction(_) => no("a window function (OVER)", "use GROUP BY"),
        Expr::Exists(_) | Expr::InSubquery(_) | Expr::ScalarSubquery(_) | Expr::SetComparison(_) => {
            no("a subquery in an expression", "ask it as a question of its own")
        }
        Expr::GroupingSet(_) => {
            no("GROUPING SETS, ROLLUP or CUBE", "ask each grouping as a question of its own")
        }
        Expr::Placeholder(_) => no("a placeholder", "write the value itself"),
        Expr::SimilarTo(_) => no("SIMILAR TO", "use LIKE"),
        other => no(&format!("`{other}`"), "see docs/sql.md for what can be used"),
    }
}

/// The longest pattern. One that is much longer cannot be made ready for comparing, which happens only where a row comes to it, so that failing would tell that there is one.
const PATTERN: usize = 1000;

/// How many letters a literal has.
fn length(pattern: &Expr) -> Option<usize> {
    match pattern {
        Expr::Alias(alias) => length(&alias.expr),
        Expr::Cast(cast) => length(&cast.expr),
        Expr::TryCast(cast) => length(&cast.expr),
        Expr::Literal(value, _) => Some(
            value.try_as_str().flatten().map_or_else(|| value.to_string().len(), |text| text.chars().count()),
        ),
        _ => None,
    }
}

fn is_allowed(operator: Operator) -> bool {
    use Operator::{
        And, Divide, Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, Minus, Modulo, Multiply,
        NotEq, Or, Plus, StringConcat,
    };
    matches!(
        operator,
        And | Or
            | Eq
            | NotEq
            | Lt
            | LtEq
            | Gt
            | GtEq
            | Plus
            | Minus
            | Multiply
            | Divide
            | Modulo
            | IsDistinctFrom
            | IsNotDistinctFrom
            | StringConcat
    )
}

fn is_of_bits(operator: Operator) -> bool {
    use Operator::{BitwiseAnd, BitwiseOr, BitwiseShiftLeft, BitwiseShiftRight};
    matches!(operator, BitwiseAnd | BitwiseOr | BitwiseShiftLeft | BitwiseShiftRight)
}

/// Why a node of a plan is refused.
pub(crate) fn refused_node(plan: &LogicalPlan) -> PlanError {
    let (what, hint) = match plan {
        LogicalPlan::Join(_) => ("JOIN", "ask about one table"),
        LogicalPlan::Union(_) => ("UNION", "ask each part as a question of its own"),
        LogicalPlan::Window(_) => ("a window function (OVER)", "use GROUP BY"),
        LogicalPlan::Aggregate(_) => ("an aggregate of an aggregate", "aggregate once"),
        LogicalPlan::Distinct(_) => ("DISTINCT", "use GROUP BY, or COUNT(DISTINCT …)"),
        LogicalPlan::Limit(_) => {
            ("LIMIT before an aggregate", "which rows it keeps depends on their order; filter with WHERE")
        }
        LogicalPlan::Sort(_) => ("ORDER BY before an aggregate", "order the answers instead"),
        LogicalPlan::EmptyRelation(_) | LogicalPlan::Values(_) => {
            ("a query without a table", "write FROM and a table")
        }
        LogicalPlan::Unnest(_) => ("UNNEST", "ask about plain columns"),
        LogicalPlan::RecursiveQuery(_) => ("WITH RECURSIVE", "ask without it"),
        LogicalPlan::Subquery(_) => ("a subquery in an expression", "ask it as a question of its own"),
        _ => ("this form of query", "see docs/sql.md for what can be asked"),
    };
    PlanError::refused("plan.node", format!("{what} cannot be used here")).hint(hint)
}
