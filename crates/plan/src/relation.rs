//! [`Relation`]: rows on their way through a query, with whose they are and what is known of their columns.
//!
//! **Definition.** [`Lift::relation`] rebuilds the part of a plan that reads rows. Each node is on the list or refused by name; expressions are
//! checked and made total; the column that names the unit is carried along under a name of its own, whatever the query
//! selects.
//!
//! **Guarantee.** Where a column names the unit, the rows it gives to somebody are made of this unit's own rows and of public tables, of
//! nothing else: with all rows of one unit taken away, the rows of all others stay what they were, as a multiset. Where each row is a unit, every row is
//! made of one row of a table and of public tables, and no row of a table makes two.
//!
//! **Why.** Node by node. A filter and a projection look at one row. A join of two private tables pairs only rows of one unit ([`join`]); one with a public
//! table pairs a row with what everybody knows. An aggregate below the private one has the unit among its keys ([`per_unit`]), a window among what it is
//! partitioned by ([`window`]), and neither depends on the order of rows. A union puts rows beside each other. How many rows a unit has in the end does not
//! matter: the tally counts no more of them than it may.

mod join;
mod owner;
mod per_unit;
mod union;
mod window;

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
use crate::names::{Declared, Names};
use crate::partners::Partners;
use crate::total;
pub(crate) use owner::{Owner, Reference};
pub(crate) use window::FUNCTIONS as WINDOW_FUNCTIONS;

/// So often private tables may be read: each copy of a row that a union makes is paired with each of another.
const READ: usize = 16;

/// A part of the plan that reads rows.
pub(crate) struct Relation {
    /// How the rows come about.
    pub(crate) plan: LogicalPlan,
    /// Whose they are.
    pub(crate) owner: Owner,
    /// The tables they are from.
    pub(crate) tables: Vec<Table>,
    /// How many rows a unit has at most, where the plan itself makes sure; of public rows, how many there are.
    pub(crate) rows_per_unit: Option<u64>,
    /// The column that names the second unit, where rows still are what they were.
    pub(crate) second: Option<Column>,
    facts: HashMap<Column, Facts>,
}

impl Relation {
    /// What is known of a column.
    pub(crate) fn facts(&self, column: &Column) -> Facts {
        self.facts.get(column).cloned().unwrap_or_default()
    }

    /// The column that names the unit, if one does.
    pub(crate) fn unit(&self) -> Option<&Column> {
        match &self.owner {
            Owner::Unit(column) => Some(column),
            _ => None,
        }
    }

    /// The private tables among those it is made of.
    pub(crate) fn private_tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.iter().filter(|table| !table.public)
    }

    /// The expression, checked and with a value for every row.
    fn total(&self, expr: &Expr) -> Result<Expr, PlanError> {
        allow::on_rows(expr)?;
        total::rewrite(expr.clone(), self.plan.schema()).map_err(error_of)
    }
}

/// Rebuilds the parts of a plan that read rows.
pub(crate) struct Lift<'a> {
    names: &'a Names,
    made: usize,
    /// How often rows of a unit are paired with rows of the same unit.
    paired: usize,
    /// How many private tables were read.
    read: usize,
    /// With how many public rows one is paired, join by join.
    pub(crate) partners: Vec<Partners>,
}

impl<'a> Lift<'a> {
    pub(crate) fn new(names: &'a Names) -> Self {
        Self { names, made: 0, paired: 0, read: 0, partners: Vec::new() }
    }

    /// The private part of a plan, with whose its rows are settled.
    pub(crate) fn private(&mut self, plan: &LogicalPlan) -> Result<Relation, PlanError> {
        let relation = self.relation(plan)?;
        let relation = self.settle(relation)?;
        let two = relation.private_tables().find(|table| table.second_unit.is_some());
        if let (Some(table), None) = (two, &relation.second) {
            let text = format!(
                "`{}` hides two kinds of units, and rows of it can be filtered and counted, but not joined or grouped before",
                table.name
            );
            return Err(PlanError::refused("plan.second_unit", text).hint("ask of the table itself"));
        }
        if relation.owner != Owner::Nobody {
            return Ok(relation);
        }
        let names: Vec<_> = relation.tables.iter().map(|table| format!("`{}`", table.name)).collect();
        if names.is_empty() {
            return Err(PlanError::refused("plan.node", "a query without a table cannot be used here")
                .hint("write FROM and a table"));
        }
        let are = if names.len() == 1 { "is" } else { "are" };
        let text =
            format!("{} {are} public and about nobody, so there is nothing to protect", names.join(" and "));
        Err(PlanError::refused("plan.public", text).hint("ask about a private table"))
    }

    fn relation(&mut self, plan: &LogicalPlan) -> Result<Relation, PlanError> {
        match plan {
            LogicalPlan::TableScan(scan) => self.table(scan),
            LogicalPlan::Filter(filter) => self.filter(filter),
            LogicalPlan::Projection(projection) => self.project(projection),
            LogicalPlan::SubqueryAlias(alias) => self.rename(alias),
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate),
            LogicalPlan::Window(window) => self.window(window),
            LogicalPlan::Union(union) => self.union(union),
            LogicalPlan::Values(_) | LogicalPlan::EmptyRelation(_) => written(plan),
            other => Err(allow::refused_node(other)),
        }
    }

    /// A name that no column has.
    fn name(&mut self, what: &str) -> String {
        self.made += 1;
        format!("demur {what} {}", self.made)
    }

    fn table(&mut self, scan: &TableScan) -> Result<Relation, PlanError> {
        let Some(declared) = scan.source.downcast_ref::<Declared>() else {
            return Err(PlanError::refused(
                "plan.table",
                format!("`{}` is no table of the catalog", scan.table_name),
            ));
        };
        let table = declared.table.clone();
        self.read += usize::from(!table.public);
        if self.read > READ {
            let text = format!("this question reads private tables more than {READ} times");
            return Err(PlanError::refused("plan.size", text)
                .hint("a name of WITH counts as often as it is mentioned"));
        }
        let qualified = |name: &str| Column::new(Some(scan.table_name.clone()), name);
        let owner = match &table.unit {
            _ if table.public => Owner::Nobody,
            PrivacyUnit::Row => Owner::Row,
            PrivacyUnit::Column(name) => Owner::Unit(qualified(name)),
            PrivacyUnit::Through(through) => {
                Owner::Owed(qualified(&through.column), Reference::to(&through.table, &through.key))
            }
        };
        let mut known = HashMap::new();
        for (name, column) in &table.columns {
            let facts = Facts {
                range: column.low.clone().zip(column.high.clone()),
                values: column.values.clone(),
                is_unit: !table.public && table.unit == PrivacyUnit::Column(name.clone()),
                refers: self.names.reference(&table, name),
            };
            known.insert(qualified(name), facts);
        }
        let plan = LogicalPlan::TableScan(scan.clone());
        let second =
            table.second_unit.as_ref().filter(|_| !table.public).map(|second| qualified(&second.column));
        Ok(Relation { plan, owner, tables: vec![table], rows_per_unit: None, second, facts: known })
    }

    fn filter(&mut self, filter: &Filter) -> Result<Relation, PlanError> {
        let input = self.relation(&filter.input)?;
        let predicate = input.total(&filter.predicate)?;
        let plan = LogicalPlanBuilder::from(input.plan)
            .filter(predicate)
            .and_then(|builder| builder.build())
            .map_err(error_of)?;
        Ok(Relation { plan, ..input })
    }

    fn project(&mut self, projection: &Projection) -> Result<Relation, PlanError> {
        let input = self.relation(&projection.input)?;
        let mut exprs = Vec::new();
        let mut known = HashMap::new();
        for (expr, (qualifier, field)) in projection.expr.iter().zip(projection.schema.iter()) {
            known.insert(Column::new(qualifier.cloned(), field.name()), facts::of(expr, &input));
            exprs.push(input.total(expr)?);
        }
        self.select(input, exprs, known)
    }

    /// These expressions of the rows, and whose they are.
    fn select(
        &mut self,
        input: Relation,
        mut exprs: Vec<Expr>,
        facts: HashMap<Column, Facts>,
    ) -> Result<Relation, PlanError> {
        let mut owner = input.owner;
        if let Owner::Unit(column) | Owner::Owed(column, _) = &mut owner {
            let name = self.name("unit");
            exprs.push(Expr::Column(column.clone()).alias(&name));
            *column = Column::new_unqualified(name);
        }
        let mut second = input.second;
        if let Some(column) = &mut second {
            let name = self.name("second unit");
            exprs.push(Expr::Column(column.clone()).alias(&name));
            *column = Column::new_unqualified(name);
        }
        let plan = Projection::try_new(exprs, Arc::new(input.plan)).map(LogicalPlan::Projection);
        Ok(Relation { plan: plan.map_err(error_of)?, owner, second, facts, ..input })
    }

    fn rename(&mut self, alias: &SubqueryAlias) -> Result<Relation, PlanError> {
        let input = self.relation(&alias.input)?;
        let rename = |column: &Column| Column::new(Some(TableReference::clone(&alias.alias)), &column.name);
        let facts = input.facts.iter().map(|(column, facts)| (rename(column), facts.clone())).collect();
        let mut owner = input.owner;
        if let Owner::Unit(column) | Owner::Owed(column, _) = &mut owner {
            *column = rename(column);
        }
        let second = input.second.as_ref().map(rename);
        let plan = SubqueryAlias::try_new(Arc::new(input.plan), alias.alias.clone());
        let plan = plan.map(LogicalPlan::SubqueryAlias).map_err(error_of)?;
        Ok(Relation { plan, owner, second, facts, ..input })
    }
}

/// Rows that stand in the query: everybody knows them.
fn written(plan: &LogicalPlan) -> Result<Relation, PlanError> {
    plan.expressions().iter().try_for_each(allow::on_rows)?;
    let rows = match plan {
        LogicalPlan::Values(values) => values.values.len() as u64,
        _ => 1,
    };
    Ok(Relation {
        plan: plan.clone(),
        owner: Owner::Nobody,
        tables: Vec::new(),
        rows_per_unit: Some(rows),
        second: None,
        facts: HashMap::new(),
    })
}
