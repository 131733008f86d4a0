//! [`Owner`]: whose the rows of a relation are.
//!
//! **Through another table.** A row of `lines` that names an order belongs to everybody who has an order of that name, and it is taken away with
//! the last of them. Where the key of `orders` is one, as it should be, that is the one who ordered. A row that names no order there is
//! belongs to nobody and is not counted.
//!
//! **Why that can be counted.** A row is paired with each order that it names, and the pair is given to whoever has that order. So the pairs of a
//! unit are made of its orders and of rows that belong to it, whatever the orders of others are.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{Column, JoinType, NullEquality};
use datafusion::logical_expr::{Expr, Join, JoinConstraint, LogicalPlan, LogicalPlanBuilder};

use super::{Lift, Relation};
use crate::PlanError;
use crate::catalog::Table;
use crate::error_of;

/// Whose rows are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Everybody knows them.
    Nobody,
    /// Each row is a unit of its own.
    Row,
    /// This column names the unit.
    Unit(Column),
    /// The unit is that of the row which this column names.
    Owed(Column, Reference),
}

/// A row of a table, by a column that identifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    table: String,
    key: String,
}

impl Reference {
    pub(crate) fn to(table: &str, key: &str) -> Self {
        Self { table: table.to_owned(), key: key.to_owned() }
    }
}

impl Lift<'_> {
    /// Pairs rows that are owed with the rows that say whose they are.
    pub(super) fn settle(&mut self, relation: Relation) -> Result<Relation, PlanError> {
        let Owner::Owed(column, reference) = &relation.owner else { return Ok(relation) };
        let parent = self.scan(&reference.table)?;
        let parent = self.settle(parent)?;
        let Owner::Unit(unit) = &parent.owner else {
            let text = format!("whose the rows of `{}` are is not known", reference.table);
            return Err(PlanError::mistake("plan.unit", text));
        };
        let (key_name, unit_name) = (self.name("key"), self.name("unit"));
        let key = Expr::Column(Column::new(Some(reference.table.as_str()), &reference.key));
        let sides = [key.alias(&key_name), Expr::Column(unit.clone()).alias(&unit_name)];
        let right = LogicalPlanBuilder::from(parent.plan)
            .project(sides)
            .and_then(|builder| builder.build())
            .map_err(error_of)?;
        let on = vec![(Expr::Column(column.clone()), Expr::Column(Column::new_unqualified(key_name)))];
        let plan = inner(relation.plan, right, on)?;
        let tables = both(relation.tables, parent.tables);
        let owner = Owner::Unit(Column::new_unqualified(unit_name));
        Ok(Relation { plan, owner, tables, rows_per_unit: None, second: None, facts: relation.facts })
    }

    /// All rows of a table.
    fn scan(&mut self, table: &str) -> Result<Relation, PlanError> {
        let source = self.names.source(table).ok_or_else(|| {
            PlanError::mistake("plan.table", format!("there is no table `{table}` in the catalog"))
        })?;
        let plan = LogicalPlanBuilder::scan(table, source, None).and_then(|builder| builder.build());
        self.relation(&plan.map_err(error_of)?)
    }
}

/// Rows of both sides that agree.
fn inner(left: LogicalPlan, right: LogicalPlan, on: Vec<(Expr, Expr)>) -> Result<LogicalPlan, PlanError> {
    let (left, right) = (Arc::new(left), Arc::new(right));
    let nulls = NullEquality::NullEqualsNothing;
    Join::try_new(left, right, on, None, JoinType::Inner, JoinConstraint::On, nulls, false)
        .map(LogicalPlan::Join)
        .map_err(error_of)
}

/// The tables of two relations, each once.
pub(super) fn both(left: Vec<Table>, right: Vec<Table>) -> Vec<Table> {
    let mut seen = HashMap::new();
    let all = left.into_iter().chain(right);
    all.filter(|table| seen.insert(table.name.clone(), ()).is_none()).collect()
}
