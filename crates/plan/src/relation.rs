//! [`Relation`]: a private table on its way through a query, with its unit and what is known of its columns.
//!
//! **Definition.** [`lift`] rebuilds the part of a plan that reads rows. Each node is on the list or refused by name; expressions are
//! checked and made total; the column that names the unit is carried along under a name of its own, whatever the query
//! selects.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{Column, TableReference};
use datafusion::logical_expr::{
    Expr, Filter, LogicalPlan, LogicalPlanBuilder, Projection, SubqueryAlias, TableScan,
};

use crate::PlanError;
use crate::allow;
use crate::catalog::{PrivacyUnit, Table};
use crate::error_of;
use crate::facts::{self, Facts};
use crate::names::Declared;
use crate::total;

/// The name under which the unit travels.
const UNIT: &str = "demur unit";

/// A part of the plan that reads rows.
pub(crate) struct Relation {
    /// How the rows come about.
    pub(crate) plan: LogicalPlan,
    /// The table they are from.
    pub(crate) table: Table,
    /// The column that names the unit; without, each row is one.
    pub(crate) unit: Option<Column>,
    facts: HashMap<Column, Facts>,
}

impl Relation {
    /// What is known of a column.
    pub(crate) fn facts(&self, column: &Column) -> Facts {
        self.facts.get(column).cloned().unwrap_or_default()
    }
}

/// Rebuilds the private part of a plan.
pub(crate) fn lift(plan: &LogicalPlan) -> Result<Relation, PlanError> {
    match plan {
        LogicalPlan::TableScan(scan) => table(scan),
        LogicalPlan::Filter(filter) => self::filter(filter),
        LogicalPlan::Projection(projection) => project(projection),
        LogicalPlan::SubqueryAlias(alias) => rename(alias),
        other => Err(allow::refused_node(other)),
    }
}

fn table(scan: &TableScan) -> Result<Relation, PlanError> {
    let Some(declared) = scan.source.downcast_ref::<Declared>() else {
        return Err(PlanError::refused(
            "plan.table",
            format!("`{}` is no table of the catalog", scan.table_name),
        ));
    };
    let table = declared.table.clone();
    if table.public {
        let text = format!("`{}` is public and about nobody, so there is nothing to protect", table.name);
        return Err(PlanError::refused("plan.public", text).hint("ask about a private table"));
    }
    let qualified = |name: &str| Column::new(Some(scan.table_name.clone()), name);
    let unit = match &table.unit {
        PrivacyUnit::Row => None,
        PrivacyUnit::Column(name) => Some(qualified(name)),
    };
    let mut known = HashMap::new();
    for (name, column) in &table.columns {
        let facts = Facts {
            range: column.low.clone().zip(column.high.clone()),
            values: column.values.clone(),
            is_unit: table.unit == PrivacyUnit::Column(name.clone()),
        };
        known.insert(qualified(name), facts);
    }
    Ok(Relation { plan: LogicalPlan::TableScan(scan.clone()), table, unit, facts: known })
}

fn filter(filter: &Filter) -> Result<Relation, PlanError> {
    let input = lift(&filter.input)?;
    allow::on_rows(&filter.predicate)?;
    let predicate = total::rewrite(filter.predicate.clone(), input.plan.schema()).map_err(error_of)?;
    let plan =
        LogicalPlanBuilder::from(input.plan).filter(predicate).and_then(|b| b.build()).map_err(error_of)?;
    Ok(Relation { plan, ..input })
}

fn project(projection: &Projection) -> Result<Relation, PlanError> {
    let input = lift(&projection.input)?;
    let mut exprs = Vec::new();
    let mut known = HashMap::new();
    for (expr, (qualifier, field)) in projection.expr.iter().zip(projection.schema.iter()) {
        allow::on_rows(expr)?;
        known.insert(Column::new(qualifier.cloned(), field.name()), facts::of(expr, &input));
        exprs.push(total::rewrite(expr.clone(), input.plan.schema()).map_err(error_of)?);
    }
    let unit = input.unit.as_ref().map(|_| Column::new_unqualified(UNIT));
    exprs.extend(input.unit.clone().map(|column| Expr::Column(column).alias(UNIT)));
    let plan =
        Projection::try_new(exprs, Arc::new(input.plan)).map(LogicalPlan::Projection).map_err(error_of)?;
    Ok(Relation { plan, table: input.table, unit, facts: known })
}

fn rename(alias: &SubqueryAlias) -> Result<Relation, PlanError> {
    let input = lift(&alias.input)?;
    let rename = |column: &Column| Column::new(Some(TableReference::clone(&alias.alias)), &column.name);
    let known = input.facts.iter().map(|(column, facts)| (rename(column), facts.clone())).collect();
    let unit = input.unit.as_ref().map(rename);
    let plan =
        SubqueryAlias::try_new(Arc::new(input.plan), alias.alias.clone()).map(LogicalPlan::SubqueryAlias);
    Ok(Relation { plan: plan.map_err(error_of)?, table: input.table, unit, facts: known })
}
