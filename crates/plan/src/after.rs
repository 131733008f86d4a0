//! [`After`]: what is done with noisy answers before they are shown.
//!
//! **Definition.** The part of the plan above the aggregate, over a table of released answers: arithmetic, HAVING, ORDER BY, LIMIT. It reads
//! nothing private, so it costs nothing.
//!
//! **Intervals.** The ends of each answer's interval are columns of that table. They follow an answer wherever it is shown as it is, and
//! `DP_INTERVAL_LOW(alias)` names them.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchemaRef};
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, Projection, SubqueryAlias, builder::LogicalTableSource,
};

use crate::PlanError;
use crate::allow;
use crate::error_of;
use crate::interval;
use crate::total;

/// The name of the table of released answers.
pub const RELEASED: &str = "released";

/// What is done with noisy answers.
#[derive(Clone)]
pub struct After {
    /// Over a table named [`RELEASED`].
    pub plan: LogicalPlan,
    /// Its columns: keys, statistics, then the lower and upper end of each statistic.
    pub released: SchemaRef,
    /// What is shown, in order.
    pub shown: Vec<Shown>,
}

/// A column that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Its heading.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// Which columns of the result hold the ends of its interval.
    pub interval: Option<(usize, usize)>,
}

/// An answer's interval, as columns.
type Ends = Option<(Column, Column)>;

/// Rebuilds the plan above the aggregate over released answers.
pub(crate) fn rebuild(plan: &LogicalPlan, aggregate: &DFSchemaRef, keys: usize) -> Result<After, PlanError> {
    let statistics = aggregate.fields().len() - keys;
    let mut fields: Vec<Field> = aggregate
        .fields()
        .iter()
        .enumerate()
        .map(|(index, field)| Field::new(format!("column {index}"), field.data_type().clone(), true))
        .collect();
    let end = |side: &str, index: usize| Field::new(format!("{side} {index}"), DataType::Float64, true);
    fields.extend((0..statistics).map(|index| end("low", index)));
    fields.extend((0..statistics).map(|index| end("high", index)));
    let released = Arc::new(Schema::new(fields));
    let (plan, ends) = Rebuild { aggregate, released: &released, keys, made: 0 }.node(plan)?;
    let shown = plan.schema().iter().zip(&ends).map(|((_, field), ends)| {
        let place = |column: &Column| plan.schema().index_of_column(column);
        let ends = ends.as_ref().filter(|_| !field.data_type().is_list());
        let interval =
            ends.map(|(low, high)| Ok((place(low)?, place(high)?))).transpose().map_err(error_of)?;
        Ok(Shown { name: field.name().clone(), data_type: field.data_type().clone(), interval })
    });
    let shown = shown.collect::<Result<_, PlanError>>()?;
    Ok(After { plan, released, shown })
}

struct Rebuild<'a> {
    aggregate: &'a DFSchemaRef,
    released: &'a SchemaRef,
    keys: usize,
    made: usize,
}

impl Rebuild<'_> {
    /// The node over released answers, and the interval of each of its columns.
    fn node(&mut self, plan: &LogicalPlan) -> Result<(LogicalPlan, Vec<Ends>), PlanError> {
        match plan {
            LogicalPlan::Aggregate(_) => self.scan(),
            LogicalPlan::Projection(projection) => {
                let (input, ends) = self.node(&projection.input)?;
                self.project(projection, input, &ends)
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let (input, ends) = self.node(&alias.input)?;
                let rename = |column: Column| Column::new(Some(alias.alias.clone()), column.name);
                let ends = ends
                    .into_iter()
                    .map(|ends| ends.map(|(low, high)| (rename(low), rename(high))))
                    .collect();
                let plan = SubqueryAlias::try_new(Arc::new(input), alias.alias.clone()).map_err(error_of)?;
                Ok((LogicalPlan::SubqueryAlias(plan), ends))
            }
            LogicalPlan::Filter(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_) => {
                let below = plan.inputs();
                let (input, ends) = self.node(below.first().ok_or_else(|| allow::refused_node(plan))?)?;
                let exprs = plan.expressions().into_iter().map(|expr| self.expression(expr, &input, &ends));
                let exprs = exprs.collect::<Result<_, _>>()?;
                Ok((plan.with_new_exprs(exprs, vec![input]).map_err(error_of)?, ends))
            }
            other => Err(allow::refused_node(other)),
        }
    }

    /// The table of released answers, under the names the aggregate gave them.
    fn scan(&self) -> Result<(LogicalPlan, Vec<Ends>), PlanError> {
        let source = Arc::new(LogicalTableSource::new(Arc::clone(self.released)));
        let table = LogicalPlanBuilder::scan(RELEASED, source, None).map_err(error_of)?;
        let column = |name: &str| Expr::Column(Column::new(Some(RELEASED), name));
        let mut exprs = Vec::new();
        for (index, (qualifier, field)) in self.aggregate.iter().enumerate() {
            exprs.push(column(&format!("column {index}")).alias_qualified(qualifier.cloned(), field.name()));
        }
        let statistics = self.aggregate.fields().len() - self.keys;
        let mut ends: Vec<Ends> = vec![None; self.keys];
        for index in 0..statistics {
            let [low, high] = [format!("low {index}"), format!("high {index}")];
            exprs.push(column(&low).alias(&low));
            exprs.push(column(&high).alias(&high));
            ends.push(Some((Column::new_unqualified(low), Column::new_unqualified(high))));
        }
        let plan = table.project(exprs).and_then(|builder| builder.build()).map_err(error_of)?;
        Ok((plan, ends))
    }

    fn project(
        &mut self,
        projection: &Projection,
        input: LogicalPlan,
        ends: &[Ends],
    ) -> Result<(LogicalPlan, Vec<Ends>), PlanError> {
        let mut exprs = Vec::new();
        let mut extra = Vec::new();
        let mut kept = Vec::new();
        for expr in &projection.expr {
            let interval = ends_of(expr, &input, ends)?;
            exprs.push(self.expression(expr.clone(), &input, ends)?);
            kept.push(interval.map(|(low, high)| {
                self.made += 1;
                let [low_name, high_name] = ["low", "high"].map(|side| format!("{side} of {}", self.made));
                extra.push(Expr::Column(low).alias(&low_name));
                extra.push(Expr::Column(high).alias(&high_name));
                (Column::new_unqualified(low_name), Column::new_unqualified(high_name))
            }));
        }
        exprs.append(&mut extra);
        let plan = Projection::try_new(exprs, Arc::new(input)).map_err(error_of)?;
        Ok((LogicalPlan::Projection(plan), kept))
    }

    /// An expression over answers: on the list, total, and with intervals looked up.
    fn expression(&self, expr: Expr, input: &LogicalPlan, ends: &[Ends]) -> Result<Expr, PlanError> {
        allow::on_answers(&expr)?;
        let name = expr.schema_name().to_string();
        let mut wrong = None;
        let looked_up = expr.transform_up(|expr| {
            let Expr::ScalarFunction(function) = &expr else { return Ok(Transformed::no(expr)) };
            let side = function.func.name();
            if side != interval::LOW && side != interval::HIGH {
                return Ok(Transformed::no(expr));
            }
            let found = function.args.first().map(|arg| ends_of(arg, input, ends));
            match found {
                Some(Ok(Some((low, high)))) => {
                    Ok(Transformed::yes(Expr::Column(if side == interval::LOW { low } else { high })))
                }
                _ => {
                    let text = format!("{side} needs the name of one answer");
                    wrong = Some(
                        PlanError::mistake("plan.interval", text)
                            .hint("give the aggregate an alias, and name that"),
                    );
                    Ok(Transformed::no(expr))
                }
            }
        });
        if let Some(error) = wrong {
            return Err(error);
        }
        let expr = looked_up.map_err(error_of)?.data;
        let total = total::rewrite(expr, input.schema()).map_err(error_of)?;
        total.alias_if_changed(name).map_err(error_of)
    }
}

/// The interval of an expression that is one answer as it is.
fn ends_of(expr: &Expr, input: &LogicalPlan, ends: &[Ends]) -> Result<Ends, PlanError> {
    match expr {
        Expr::Alias(alias) => ends_of(&alias.expr, input, ends),
        Expr::Column(column) => {
            let index = input.schema().index_of_column(column).map_err(error_of)?;
            Ok(ends.get(index).cloned().flatten())
        }
        _ => Ok(None),
    }
}
