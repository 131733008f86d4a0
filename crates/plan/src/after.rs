//! [`After`]: what is done with noisy answers before they are shown.
//!
//! **Definition.** The part of the plan above the aggregate, over a table of released answers: arithmetic, HAVING, ORDER BY, LIMIT. It reads
//! nothing private, so it costs nothing.
//!
//! **Intervals.** The ends of each answer's interval are columns of that table, in several widths. They follow an answer through projections and
//! [arithmetic](enclosure), and `DP_INTERVAL_LOW(alias)` names them.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchemaRef, ScalarValue};
use datafusion::logical_expr::{
    Expr, Limit, LogicalPlan, LogicalPlanBuilder, Projection, SubqueryAlias, builder::LogicalTableSource,
};

use crate::PlanError;
use crate::allow;
use crate::enclosure::{self, Enclosure};
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
    /// Its columns: keys, statistics, then the lower ends of all statistics and the upper ends, width by width.
    pub released: SchemaRef,
    /// How many widths there are: the ends of the k-th hold but for the k-th part of the chance of an error.
    pub widths: usize,
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

/// Where the values of a column lie, by other columns.
type Ends = Option<Enclosure>;

/// Rebuilds the plan above the aggregate over released answers.
pub(crate) fn rebuild(plan: &LogicalPlan, aggregate: &DFSchemaRef, keys: usize) -> Result<After, PlanError> {
    let statistics = aggregate.fields().len() - keys;
    let mut fields: Vec<Field> = aggregate
        .fields()
        .iter()
        .enumerate()
        .map(|(index, field)| Field::new(format!("column {index}"), field.data_type().clone(), true))
        .collect();
    let widths = if combines(plan) { statistics.min(enclosure::MOST) } else { 1 };
    for width in 0..widths {
        for side in ["low", "high"] {
            let end = |index| Field::new(end_name(side, index, width), DataType::Float64, true);
            fields.extend((0..statistics).map(end));
        }
    }
    let released = Arc::new(Schema::new(fields));
    let (plan, ends) = Rebuild { aggregate, released: &released, keys, widths, made: 0 }.node(plan)?;
    let shown = plan.schema().iter().zip(&ends).map(|((_, field), ends)| {
        let place = |end: &Expr| match end {
            Expr::Column(column) => plan.schema().index_of_column(column).ok(),
            _ => None,
        };
        let ends = ends.as_ref().filter(|_| !field.data_type().is_list()).and_then(Enclosure::shown);
        let interval = ends.and_then(|(low, high)| place(low).zip(place(high)));
        Shown { name: field.name().clone(), data_type: field.data_type().clone(), interval }
    });
    let shown = shown.collect();
    Ok(After { plan, released, widths, shown })
}

/// The name of an end of a statistic.
fn end_name(side: &str, statistic: usize, width: usize) -> String {
    format!("{side} {statistic} {width}")
}

/// How many rows are left out, and how many are shown.
fn check_limit(limit: &Limit) -> Result<(), PlanError> {
    for (name, expr) in [("OFFSET", &limit.skip), ("LIMIT", &limit.fetch)] {
        let found = match expr.as_deref() {
            None | Some(Expr::Literal(ScalarValue::Int64(Some(0..) | None), _)) => continue,
            Some(Expr::Literal(rows, _)) => rows.to_string(),
            Some(_) => "something to be computed".to_owned(),
        };
        let text = format!("{name} must be a whole number from 0 on, but it is {found}");
        return Err(PlanError::mistake("plan.limit", text));
    }
    Ok(())
}

/// Whether answers are worked on together anywhere.
fn combines(plan: &LogicalPlan) -> bool {
    let here = match plan {
        LogicalPlan::Aggregate(_) => return false,
        LogicalPlan::Projection(projection) => {
            projection.expr.iter().any(|expr| expr.column_refs().len() > 1)
        }
        _ => false,
    };
    here || plan.inputs().into_iter().any(combines)
}

struct Rebuild<'a> {
    aggregate: &'a DFSchemaRef,
    released: &'a SchemaRef,
    keys: usize,
    widths: usize,
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
                let rename = |end: Expr| match end {
                    Expr::Column(column) => Expr::Column(Column::new(Some(alias.alias.clone()), column.name)),
                    other => other,
                };
                let ends = ends.into_iter().map(|ends| ends.map(|ends| ends.map(rename))).collect();
                let plan = SubqueryAlias::try_new(Arc::new(input), alias.alias.clone()).map_err(error_of)?;
                Ok((LogicalPlan::SubqueryAlias(plan), ends))
            }
            LogicalPlan::Filter(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_) => {
                if let LogicalPlan::Limit(limit) = plan {
                    check_limit(limit)?;
                }
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
            let mut widths = Vec::new();
            for width in 0..self.widths {
                let [low, high] = ["low", "high"].map(|side| end_name(side, index, width));
                exprs.push(column(&low).alias(&low));
                exprs.push(column(&high).alias(&high));
                widths.push((plain(low), plain(high)));
            }
            ends.push(Some(Enclosure { answers: BTreeSet::from([index]), ends: widths }));
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
            let enclosure = ends_of(expr, &input, ends).filter(|found| found.shown().is_some());
            exprs.push(self.expression(expr.clone(), &input, ends)?);
            let mut keep = |end: Expr| {
                self.made += 1;
                let name = format!("end {}", self.made);
                let total = total::rewrite(end, input.schema()).map_err(error_of)?;
                extra.push(total.unalias().alias(&name));
                Ok(plain(name))
            };
            let named = |enclosure: Enclosure| {
                let ends = enclosure.ends.into_iter().map(|(low, high)| Ok((keep(low)?, keep(high)?)));
                Ok(Enclosure { ends: ends.collect::<Result<_, PlanError>>()?, ..enclosure })
            };
            kept.push(enclosure.map(named).transpose()?);
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
            let found = function.args.first().and_then(|arg| ends_of(arg, input, ends));
            match found.as_ref().and_then(Enclosure::shown) {
                Some((low, high)) => {
                    Ok(Transformed::yes(if side == interval::LOW { low.clone() } else { high.clone() }))
                }
                None => {
                    let text = format!(
                        "{side} needs an answer, or arithmetic of at most {} of them",
                        enclosure::MOST
                    );
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

/// Where an expression over the columns of a plan lies.
fn ends_of(expr: &Expr, input: &LogicalPlan, ends: &[Ends]) -> Ends {
    let of = |column: &Column| {
        let index = input.schema().index_of_column(column).ok()?;
        ends.get(index).cloned().flatten()
    };
    enclosure::of(expr, input.schema(), &of)
}

fn plain(name: impl Into<String>) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}
