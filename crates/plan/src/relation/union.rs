//! UNION ALL: rows beside each other.
//!
//! **Why.** The rows of a unit in the union are its rows in the parts. Where each row is a unit, no table may be in two parts: one of its rows
//! would make two.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Union};

use super::owner::both;
use super::{Lift, Owner, Relation};
use crate::PlanError;
use crate::error_of;
use crate::facts::Facts;

impl Lift<'_> {
    pub(super) fn union(&mut self, union: &Union) -> Result<Relation, PlanError> {
        let mut parts = Vec::new();
        for input in &union.inputs {
            let part = self.relation(input)?;
            parts.push(self.settle(part)?);
        }
        check(&parts)?;
        let width = union.schema.fields().len();
        let known = (0..width).map(|place| {
            let (qualifier, field) = union.schema.qualified_field(place);
            let of_part = |(part, input): (&Relation, &Arc<LogicalPlan>)| part.facts(&at(input, place));
            let all = parts.iter().zip(&union.inputs).map(of_part).reduce(Facts::either).unwrap_or_default();
            (Column::new(qualifier.cloned(), field.name()), all)
        });
        let known: HashMap<_, _> = known.collect();
        let rows_per_unit = parts.iter().map(|part| part.rows_per_unit).sum();
        let with_unit = parts.iter().any(|part| part.unit().is_some());
        let (unit, mut plans, mut tables) = (self.name("unit"), Vec::new(), Vec::new());
        for (part, input) in parts.into_iter().zip(&union.inputs) {
            plans.push(Arc::new(in_order(&part, input, width, &unit)?));
            tables = both(tables, part.tables);
        }
        let plan = Union::try_new_with_loose_types(plans).map(LogicalPlan::Union).map_err(error_of)?;
        let mut exprs: Vec<Expr> = (0..width)
            .map(|place| {
                let (qualifier, field) = union.schema.qualified_field(place);
                column(place).alias_qualified(qualifier.cloned(), field.name())
            })
            .collect();
        let mut owner = if tables.iter().all(|table| table.public) { Owner::Nobody } else { Owner::Row };
        if with_unit {
            exprs.push(Expr::Column(Column::new_unqualified(&unit)));
            owner = Owner::Unit(Column::new_unqualified(unit));
        }
        let plan = LogicalPlanBuilder::from(plan).project(exprs).and_then(|builder| builder.build());
        Ok(Relation {
            plan: plan.map_err(error_of)?,
            owner,
            tables,
            rows_per_unit,
            second: None,
            facts: known,
        })
    }
}

/// Whether parts may stand beside each other.
fn check(parts: &[Relation]) -> Result<(), PlanError> {
    let refuse = |text: String, hint: &str| Err(PlanError::refused("plan.union", text).hint(hint));
    let mut seen: Vec<&str> = Vec::new();
    for pair in parts.windows(2) {
        let [one, other] = pair else { continue };
        match (&one.owner, &other.owner) {
            (Owner::Nobody, Owner::Nobody) | (Owner::Row, Owner::Row) => {}
            (Owner::Unit(_), Owner::Unit(_)) => super::join::same_people(one, other, "UNION")?,
            _ => {
                return refuse(
                    "UNION puts rows together that are not hidden in the same way".to_owned(),
                    "the parts must be about the same people, or each row of them a unit of its own",
                );
            }
        }
    }
    for part in parts.iter().filter(|part| part.owner == Owner::Row) {
        for table in part.private_tables() {
            if seen.contains(&table.name.as_str()) {
                let text = format!(
                    "UNION would count rows of `{}` twice, and each of them is a unit of its own",
                    table.name
                );
                return refuse(text, "use each table once, or OR in WHERE");
            }
            seen.push(&table.name);
        }
    }
    Ok(())
}

/// The name of a column by its place.
fn column(place: usize) -> Expr {
    Expr::Column(Column::new_unqualified(format!("column {place}")))
}

/// The column at a place, as it was written.
fn at(input: &LogicalPlan, place: usize) -> Column {
    let (qualifier, field) = input.schema().qualified_field(place);
    Column::new(qualifier.cloned(), field.name())
}

/// The columns as they were written, by their places, and the unit.
fn in_order(
    part: &Relation,
    written: &LogicalPlan,
    width: usize,
    unit: &str,
) -> Result<LogicalPlan, PlanError> {
    let mut exprs: Vec<Expr> =
        (0..width).map(|place| Expr::Column(at(written, place)).alias(format!("column {place}"))).collect();
    exprs.extend(part.unit().map(|column| Expr::Column(column.clone()).alias(unit)));
    LogicalPlanBuilder::from(part.plan.clone())
        .project(exprs)
        .and_then(|builder| builder.build())
        .map_err(error_of)
}
