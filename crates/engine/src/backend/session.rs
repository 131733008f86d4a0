//! How DataFusion is set up: with what running a checked plan takes, and nothing else.
//!
//! **What may rewrite a plan.** A list of rules, as there is one of functions. They leave alone who is joined with whom and in which order: with how many public rows a row is paired
//! was found out join by join, so joins must not be taken apart and put together anew. Subqueries, crossed tables and DISTINCTs became joins and groups when the question was planned.
//!
//! No catalog, no file formats, no functions by name: a checked plan carries what it needs.

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::optimizer::OptimizerRule;
use datafusion::optimizer::common_subexpr_eliminate::CommonSubexprEliminate;
use datafusion::optimizer::eliminate_duplicated_expr::EliminateDuplicatedExpr;
use datafusion::optimizer::eliminate_filter::EliminateFilter;
use datafusion::optimizer::eliminate_group_by_constant::EliminateGroupByConstant;
use datafusion::optimizer::eliminate_join::EliminateJoin;
use datafusion::optimizer::eliminate_limit::EliminateLimit;
use datafusion::optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion::optimizer::filter_null_join_keys::FilterNullJoinKeys;
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::optimize_unions::OptimizeUnions;
use datafusion::optimizer::propagate_empty_relation::PropagateEmptyRelation;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::push_down_limit::PushDownLimit;
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;
use datafusion::optimizer::single_distinct_to_groupby::SingleDistinctToGroupBy;
use datafusion::prelude::{SessionConfig, SessionContext};

/// A session whose plans run in so many parts.
pub(super) fn session(parts: usize) -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(parts);
    // Nothing is known of values, so a filter may leave all rows: a join makes its table of the smaller file.
    config.options_mut().optimizer.default_filter_selectivity = 100;
    let state = SessionStateBuilder::new().with_config(config).with_optimizer_rules(rules());
    SessionContext::new_with_state(state.build())
}

/// What may rewrite a plan, in this order.
fn rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    vec![
        Arc::new(OptimizeUnions::new()),
        Arc::new(SimplifyExpressions::new()),
        Arc::new(EliminateJoin::new()),
        Arc::new(ExtractEquijoinPredicate::new()),
        Arc::new(EliminateDuplicatedExpr::new()),
        Arc::new(EliminateFilter::new()),
        Arc::new(EliminateLimit::new()),
        Arc::new(PropagateEmptyRelation::new()),
        Arc::new(FilterNullJoinKeys::default()),
        Arc::new(PushDownLimit::new()),
        Arc::new(PushDownFilter::new()),
        Arc::new(SingleDistinctToGroupBy::new()),
        Arc::new(EliminateGroupByConstant::new()),
        Arc::new(CommonSubexprEliminate::new()),
        Arc::new(OptimizeProjections::new()),
    ]
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
    use datafusion::logical_expr::{JoinType, LogicalPlan, LogicalPlanBuilder, col, table_scan};

    use super::*;

    fn table(name: &str) -> LogicalPlanBuilder {
        let field = |name: &str| Field::new(name, DataType::Int64, true);
        let schema = Schema::new(vec![field("k"), field("x")]);
        table_scan(Some(name), &schema, None).unwrap()
    }

    /// Joins and tables, from the root on.
    fn joined(plan: &LogicalPlan) -> Vec<String> {
        let mut found = Vec::new();
        let seen = plan.apply(|node| {
            match node {
                LogicalPlan::Join(join) => found.push(join.join_type.to_string()),
                LogicalPlan::TableScan(scan) => found.push(scan.table_name.to_string()),
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        });
        seen.unwrap();
        found
    }

    /// A filter that no missing row passes makes a LEFT JOIN an INNER one for DataFusion, which then joins the three tables in another order.
    #[test]
    fn joins_stay_as_they_were_counted() {
        let (a, b, c) = (table("a"), table("b"), table("c"));
        let both = b.join(c.build().unwrap(), JoinType::Inner, (vec!["b.x"], vec!["c.x"]), None).unwrap();
        let all = a.join(both.build().unwrap(), JoinType::Left, (vec!["a.k"], vec!["b.k"]), None).unwrap();
        let plan = all.filter(col("c.x").is_not_null().and(col("a.x").eq(col("c.k")))).unwrap();
        let plan = plan.build().unwrap();
        let ours = session(2).state().optimize(&plan).unwrap();
        assert_eq!(joined(&ours), joined(&plan));
        let theirs = SessionContext::new().state().optimize(&plan).unwrap();
        assert_ne!(joined(&theirs), joined(&plan));
    }
}
