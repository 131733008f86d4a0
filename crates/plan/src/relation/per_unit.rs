//! Aggregates below the private one: over the rows of one unit, or of a public table.
//!
//! **Why.** With the unit among its keys, a group has rows of one unit alone. What is computed of it does not depend on the order in which rows
//! come ([`OrderFree`]), because what other units have may change that.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder, Projection};

use super::{Lift, Owner, Relation};
use crate::PlanError;
use crate::error_of;
use crate::facts;
use crate::order_free::OrderFree;

impl Lift<'_> {
    pub(super) fn aggregate(&mut self, aggregate: &Aggregate) -> Result<Relation, PlanError> {
        let input = self.relation(&aggregate.input)?;
        let input = self.settle(input)?;
        check(&input, &aggregate.group_expr)?;
        let mut computed = Vec::new();
        let mut shown = Vec::new();
        let mut known = HashMap::new();
        let mut named = aggregate.schema.iter();
        let mut show = |value: Expr, facts: facts::Facts| {
            let (qualifier, field) = named.next().ok_or_else(|| {
                PlanError::mistake("plan.meaning", "an aggregate has fewer names than columns")
            })?;
            known.insert(Column::new(qualifier.cloned(), field.name()), facts);
            shown.push(value.alias_qualified(qualifier.cloned(), field.name()));
            Ok::<_, PlanError>(())
        };
        let mut keys = Vec::new();
        for key in &aggregate.group_expr {
            let name = self.name("key");
            computed.push(input.total(key)?.unalias().alias(&name));
            keys.push(plain(&name));
            show(plain(&name), facts::of(key, &input))?;
        }
        let mut owner = input.owner.clone();
        if let Owner::Unit(unit) = &mut owner {
            let name = self.name("unit");
            computed.push(Expr::Column(unit.clone()).alias(&name));
            keys.push(plain(&name));
            *unit = Column::new_unqualified(name);
        }
        let mut calls = Vec::new();
        for expr in &aggregate.aggr_expr {
            let asked = OrderFree::of(expr, &input)?;
            let arguments = asked.arguments.iter().map(|argument| {
                let name = self.name("argument");
                computed.push(argument.clone().alias(&name));
                plain(&name)
            });
            let arguments: Vec<_> = arguments.collect();
            let filter = asked.filter.clone().map(|filter| {
                let name = self.name("filter");
                computed.push(filter.alias(&name));
                Box::new(plain(&name))
            });
            let results = asked.calls.iter().map(|call| {
                let name = self.name("result");
                let argument = arguments[call.argument].clone();
                let function = AggregateFunction::new_udf(
                    Arc::clone(&call.function),
                    vec![argument],
                    call.distinct,
                    filter.clone(),
                    Vec::new(),
                    None,
                );
                calls.push(Expr::AggregateFunction(function).alias(&name));
                plain(&name)
            });
            let results: Vec<_> = results.collect();
            show(asked.value(&results)?, asked.facts(input.rows_per_unit))?;
        }
        shown.extend(input.unit().and(match &owner {
            Owner::Unit(unit) => Some(Expr::Column(unit.clone())),
            _ => None,
        }));
        let rows_per_unit = match aggregate.group_expr.iter().all(|key| is_one(key, &input)) {
            true => Some(1),
            false => input.rows_per_unit,
        };
        let plan = LogicalPlanBuilder::from(input.plan)
            .project(computed)
            .and_then(|builder| builder.aggregate(keys, calls)?.build())
            .and_then(|grouped| Projection::try_new(shown, Arc::new(grouped)))
            .map(LogicalPlan::Projection)
            .map_err(error_of)?;
        Ok(Relation { plan, owner, rows_per_unit, second: None, facts: known, tables: input.tables })
    }
}

fn plain(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

/// Whether a key is the same for all rows of a unit.
fn is_one(key: &Expr, input: &Relation) -> bool {
    match key {
        Expr::Alias(alias) => is_one(&alias.expr, input),
        Expr::Column(column) => input.facts(column).is_unit,
        Expr::Literal(..) => true,
        _ => false,
    }
}

/// Groups must not have rows of several units.
fn check(input: &Relation, keys: &[Expr]) -> Result<(), PlanError> {
    let names_unit = |key: &Expr| match key {
        Expr::Alias(alias) => {
            matches!(alias.expr.as_ref(), Expr::Column(column) if input.facts(column).is_unit)
        }
        Expr::Column(column) => input.facts(column).is_unit,
        _ => false,
    };
    match input.owner {
        Owner::Nobody => Ok(()),
        Owner::Unit(_) if keys.iter().any(names_unit) => Ok(()),
        Owner::Unit(_) => {
            let units: Vec<_> =
                input.private_tables().map(|table| format!("`{}`", table.unit_name())).collect();
            let text = "an aggregate below the private one would mix rows of different people";
            Err(PlanError::refused("plan.group", text)
                .hint(format!("aggregate once, or put {} into its GROUP BY", units.join(" or "))))
        }
        _ => {
            let text = "an aggregate below the private one would mix rows, and each row is a unit of its own";
            Err(PlanError::refused("plan.group", text).hint("aggregate once"))
        }
    }
}
