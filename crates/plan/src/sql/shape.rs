//! Which clauses a query may have.
//!
//! The planner below us leaves out some clauses without a word, and an answer to another question is no answer. Every part of
//! the syntax tree is named here, so that a parser that learns more does not compile until somebody has looked.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Distinct, GroupByExpr, Query, Select, TableFactor, Visit, Visitor};

use crate::PlanError;

/// Refuses clauses that have no meaning here.
pub(super) fn check(query: &Query) -> Result<(), PlanError> {
    match query.visit(&mut Shape) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(clause) => {
            Err(PlanError::refused("plan.clause", format!("{clause} cannot be used here"))
                .hint("see docs/sql.md for what can be asked"))
        }
    }
}

struct Shape;

/// The first clause that is there.
fn first(clauses: &[(bool, &'static str)]) -> ControlFlow<&'static str> {
    match clauses.iter().find(|(there, _)| *there) {
        Some((_, name)) => ControlFlow::Break(name),
        None => ControlFlow::Continue(()),
    }
}

impl Visitor for Shape {
    type Break = &'static str;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        // WITH, ORDER BY and LIMIT are looked at in the plan.
        let Query {
            with: _,
            body: _,
            order_by,
            limit_clause: _,
            fetch,
            locks,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = query;
        first(&[
            (order_by.as_ref().is_some_and(|order| order.interpolate.is_some()), "INTERPOLATE"),
            (fetch.is_some(), "FETCH"),
            (!locks.is_empty() || for_clause.is_some(), "FOR"),
            (settings.is_some(), "SETTINGS"),
            (format_clause.is_some(), "FORMAT"),
            (!pipe_operators.is_empty(), "|>"),
        ])
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Self::Break> {
        // The others are looked at in the plan.
        let Select {
            select_token: _,
            optimizer_hints: _,
            distinct,
            select_modifiers,
            top,
            top_before_distinct: _,
            projection: _,
            exclude,
            into,
            from: _,
            lateral_views,
            prewhere,
            selection: _,
            connect_by,
            group_by,
            cluster_by,
            distribute_by,
            sort_by,
            having: _,
            named_window,
            qualify,
            window_before_qualify: _,
            value_table_mode,
            flavor: _,
        } = select;
        let (GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)) = group_by;
        first(&[
            (matches!(distinct, Some(Distinct::On(_))), "DISTINCT ON"),
            (select_modifiers.is_some(), "a modifier of SELECT"),
            (top.is_some(), "TOP"),
            (exclude.is_some(), "EXCLUDE"),
            (into.is_some(), "INTO"),
            (!lateral_views.is_empty(), "LATERAL VIEW"),
            (prewhere.is_some(), "PREWHERE"),
            (!connect_by.is_empty(), "CONNECT BY"),
            (!modifiers.is_empty(), "a modifier of GROUP BY"),
            (!cluster_by.is_empty(), "CLUSTER BY"),
            (!distribute_by.is_empty(), "DISTRIBUTE BY"),
            (!sort_by.is_empty(), "SORT BY"),
            (!named_window.is_empty(), "WINDOW"),
            (qualify.is_some(), "QUALIFY"),
            (value_table_mode.is_some(), "SELECT AS"),
        ])
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<Self::Break> {
        match table {
            TableFactor::Table {
                name: _,
                alias: _,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_hints,
            } => first(&[
                (args.is_some(), "a function instead of a table"),
                (!with_hints.is_empty() || !index_hints.is_empty(), "a hint"),
                (version.is_some(), "a version of a table"),
                (*with_ordinality, "WITH ORDINALITY"),
                (!partitions.is_empty(), "PARTITION"),
                (json_path.is_some(), "a path into a table"),
                (sample.is_some(), "TABLESAMPLE"),
            ]),
            TableFactor::Derived { lateral, subquery: _, alias: _, sample } => {
                first(&[(*lateral, "LATERAL"), (sample.is_some(), "TABLESAMPLE")])
            }
            TableFactor::NestedJoin { .. } => ControlFlow::Continue(()),
            _ => ControlFlow::Break("anything but a table in FROM"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::read;

    #[test]
    fn clauses_that_would_be_left_out_are_refused_by_name() {
        for (text, name) in [
            ("SELECT COUNT(*) FROM t TABLESAMPLE BERNOULLI (10)", "TABLESAMPLE"),
            ("SELECT COUNT(*) FROM (SELECT * FROM t TABLESAMPLE BERNOULLI (10)) AS x", "TABLESAMPLE"),
            ("SELECT COUNT(*) FROM t FOR UPDATE", "FOR"),
            ("SELECT COUNT(*) FROM t WINDOW w AS (ORDER BY a)", "WINDOW"),
            ("SELECT TOP 5 COUNT(*) FROM t", "TOP"),
            ("SELECT COUNT(*) INTO x FROM t", "INTO"),
            ("SELECT COUNT(*) FROM t QUALIFY a > 1", "QUALIFY"),
            ("SELECT COUNT(*) FROM (SELECT DISTINCT ON (a) * FROM t) AS x", "DISTINCT ON"),
            ("SELECT COUNT(*) FROM LATERAL (SELECT * FROM t)", "LATERAL"),
            ("SELECT COUNT(*) FROM read_csv('x')", "a function instead of a table"),
            ("SELECT COUNT(*) FROM unnest([1, 2])", "anything but a table in FROM"),
            ("SELECT a, COUNT(*) FROM t GROUP BY a FETCH FIRST 3 ROWS ONLY", "FETCH"),
        ] {
            let refusal = read(text).err().map(|error| (error.code(), error.to_string()));
            assert_eq!(refusal, Some(("plan.clause", format!("{name} cannot be used here"))), "{text}");
        }
    }
}
