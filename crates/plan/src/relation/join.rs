//! Joins: with public tables, and of private ones by the unit.
//!
//! **With a public table.** A row is paired with what everybody knows, and keeps its unit. Rows of the public table that find nobody are not shown: whether
//! they are there depends on everybody. Where each row is a unit, it is paired with at most one row: of those that agree on the joined columns
//! the first counts.
//!
//! **Of private tables.** Among what is compared there must be the units of both sides; then the rows of a pair, and all rows whose absence
//! leaves a row without a partner, belong to one unit. Where both sides name the same row of a table ([`Reference`](super::Reference)), the same holds once
//! the units are compared too, which changes nothing as long as keys are keys. `NOT IN` is refused: one NULL among the rows of anybody would empty it
//! for all.
//!
//! **How often.** Rows of a unit that are paired with its own again and again take all time and memory, and whether they do tells that somebody has so many. So only [a few](PAIRED) joins may
//! multiply the rows of a unit; those with one row on a side do not. (What is a key of a table is the catalog's word, and its files need not keep it.) How many public rows one is paired with is
//! [counted](crate::Partners) before the charge.
//!
//! **Cast units.** Units are compared as columns, or after a cast that keeps different ones different; else 257 of one table
//! could meet 1 of the other.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{Column, JoinType};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Expr, ExprFunctionExt, Join, LogicalPlan, LogicalPlanBuilder, lit};

use super::owner::both;
use super::{Lift, Owner, Relation};
use crate::PlanError;
use crate::allow;
use crate::error_of;
use crate::facts::{self, Facts};
use crate::partners::Partners;
use crate::total;

type Pairs = Vec<(Expr, Expr)>;

/// So often the rows of a unit may be paired with its own: n of them make n² the first time, and n⁴ the third.
const PAIRED: usize = 3;

impl Lift<'_> {
    pub(super) fn join(&mut self, join: &Join) -> Result<Relation, PlanError> {
        let (left, right) = (self.relation(&join.left)?, self.relation(&join.right)?);
        let pair = |(l, r): &(Expr, Expr)| Ok((left.total(l)?.unalias(), right.total(r)?.unalias()));
        let mut on = join.on.iter().map(pair).collect::<Result<Pairs, PlanError>>()?;
        let (left, right) = match (&left.owner, &right.owner) {
            (Owner::Nobody, _) | (_, Owner::Nobody) => self.with_public(left, right, &on, join.join_type)?,
            _ => self.by_unit(left, right, &mut on, join)?,
        };
        let rows_per_unit = rows_per_unit(&left, &right, join.join_type);
        let facts = known(&left, &right, join.join_type);
        let tables = both(left.tables, right.tables);
        let plan = rebuilt(join, left.plan, right.plan, on)?;
        if let (Owner::Nobody, Owner::Nobody) = (&left.owner, &right.owner) {
            self.meets(&plan, &[], false)?;
        }
        let joined = |owner| Relation { plan, owner, tables, rows_per_unit, second: None, facts };
        match (join.join_type, left.owner, right.owner) {
            (_, owner, Owner::Nobody) | (_, Owner::Nobody, owner) => Ok(joined(owner)),
            (JoinType::Full, Owner::Unit(left), Owner::Unit(right)) => {
                self.whose_is_there(joined(Owner::Nobody), left, right)
            }
            (kind, _, owner) if keeps_right(kind) => Ok(joined(owner)),
            (_, owner, _) => Ok(joined(owner)),
        }
    }

    /// Both sides of a join of which at least one is public.
    fn with_public(
        &mut self,
        left: Relation,
        right: Relation,
        on: &Pairs,
        kind: JoinType,
    ) -> Result<(Relation, Relation), PlanError> {
        use JoinType::{Inner, Left, LeftAnti, LeftMark, LeftSemi, Right, RightAnti, RightMark, RightSemi};
        let (mut left, mut right) = (self.settle(left)?, self.settle(right)?);
        let allowed = match (&left.owner, &right.owner) {
            (Owner::Nobody, Owner::Nobody) => true,
            (_, Owner::Nobody) => matches!(kind, Inner | Left | LeftSemi | LeftAnti | LeftMark),
            _ => matches!(kind, Inner | Right | RightSemi | RightAnti | RightMark),
        };
        if !allowed {
            let text = "a JOIN that keeps rows of a public table would tell which of them find nobody";
            return Err(PlanError::refused("plan.join", text)
                .hint("keep the rows of the private table: private LEFT JOIN public"));
        }
        let (ours, theirs): (Vec<_>, Vec<_>) = on.iter().cloned().unzip();
        let multiplies =
            |owner: &Owner| matches!(owner, Owner::Unit(_)) && matches!(kind, Inner | Left | Right);
        match (&left.owner, &right.owner) {
            (Owner::Nobody, Owner::Nobody) => {}
            (owner, Owner::Nobody) => self.meets(&right.plan, &theirs, multiplies(owner))?,
            (_, owner) => self.meets(&left.plan, &ours, multiplies(owner))?,
        }
        if left.owner == Owner::Row && matches!(kind, Inner | Left) {
            right = self.one_each(right, on.iter().map(|(_, right)| right.clone()).collect())?;
        }
        if right.owner == Owner::Row && matches!(kind, Inner | Right) {
            left = self.one_each(left, on.iter().map(|(left, _)| left.clone()).collect())?;
        }
        Ok((left, right))
    }

    /// Has public rows counted before the charge: those of a side of a join, or what a join of two such sides gives.
    fn meets(&mut self, public: &LogicalPlan, keys: &[Expr], multiplies: bool) -> Result<(), PlanError> {
        self.partners.push(Partners::new(public.clone(), keys, multiplies)?);
        Ok(())
    }

    /// One row for each combination of the keys.
    fn one_each(&mut self, relation: Relation, keys: Vec<Expr>) -> Result<Relation, PlanError> {
        if relation.rows_per_unit.is_some_and(|rows| rows <= 1) {
            return Ok(relation);
        }
        if keys.is_empty() {
            let text = "this JOIN could pair a row with several, and each row is a unit of its own";
            return Err(PlanError::refused("plan.join", text).hint("compare columns of both tables with ="));
        }
        let columns: Vec<_> = relation.plan.schema().columns().into_iter().map(Expr::Column).collect();
        let order = columns.iter().map(|column| column.clone().sort(true, false)).collect();
        let name = self.name("place");
        let place = row_number().partition_by(keys).order_by(order).build().map_err(error_of)?.alias(&name);
        let first = Expr::Column(Column::new_unqualified(name)).eq(lit(1u64));
        let plan = LogicalPlanBuilder::from(relation.plan)
            .window([place])
            .and_then(|builder| builder.filter(first)?.project(columns)?.build())
            .map_err(error_of)?;
        Ok(Relation { plan, second: None, ..relation })
    }

    /// Both sides of a join of private tables, with their units compared.
    fn by_unit(
        &mut self,
        mut left: Relation,
        mut right: Relation,
        on: &mut Pairs,
        join: &Join,
    ) -> Result<(Relation, Relation), PlanError> {
        same_people(&left, &right, "JOIN")?;
        if join.null_aware {
            let text = "NOT IN with a private table cannot be used here: one NULL in anybody's rows would empty the answer";
            return Err(
                PlanError::refused("plan.join", text).hint("write NOT EXISTS, with the units compared")
            );
        }
        if join.join_type == JoinType::Inner {
            if owed_to(&left, &right, on.iter().map(|(left, right)| (left, right))) {
                right = self.settle(right)?;
                left.owner = right.owner.clone();
                self.pair(&left, &right, join.join_type)?;
                return Ok((left, right));
            }
            if owed_to(&right, &left, on.iter().map(|(left, right)| (right, left))) {
                left = self.settle(left)?;
                right.owner = left.owner.clone();
                self.pair(&left, &right, join.join_type)?;
                return Ok((left, right));
            }
        }
        let (left, right) = (self.settle(left)?, self.settle(right)?);
        let (Owner::Unit(one), Owner::Unit(other)) = (&left.owner, &right.owner) else {
            let text = "this JOIN would pair rows of different units: each row of a table is one of its own";
            return Err(PlanError::refused("plan.join", text).hint(
                "join with public tables, or name the person by a column: unit = \"…\" in demur.toml",
            ));
        };
        let units = |(l, r): &(Expr, Expr)| facts::of(l, &left).is_unit && facts::of(r, &right).is_unit;
        if on.iter().any(units) {
            self.pair(&left, &right, join.join_type)?;
            return Ok((left, right));
        }
        let same_row = |(l, r): &(Expr, Expr)| {
            let (l, r) = (facts::of(l, &left).refers, facts::of(r, &right).refers);
            l.is_some() && l == r
        };
        if on.iter().any(same_row) {
            on.push((Expr::Column(one.clone()), Expr::Column(other.clone())));
            self.pair(&left, &right, join.join_type)?;
            return Ok((left, right));
        }
        let columns = |relation: &Relation| {
            let names: Vec<_> = relation
                .private_tables()
                .map(|table| format!("{}.{}", table.name, table.unit_name()))
                .collect();
            names.join(" or ")
        };
        let text = "this JOIN would pair rows of different people";
        let hint = format!("compare the units too, as in ON … AND {} = {}", columns(&left), columns(&right));
        Err(PlanError::refused("plan.join", text).hint(hint))
    }

    /// Counts a join that pairs each row of a unit with each of its rows on the other side.
    fn pair(&mut self, left: &Relation, right: &Relation, kind: JoinType) -> Result<(), PlanError> {
        let is_one = |relation: &Relation| relation.rows_per_unit.is_some_and(|rows| rows <= 1);
        let multiplies = matches!(kind, JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full);
        self.paired += usize::from(multiplies && !is_one(left) && !is_one(right));
        if self.paired <= PAIRED {
            return Ok(());
        }
        let text =
            format!("this question pairs the rows of a person with each other more than {PAIRED} times");
        Err(PlanError::refused("plan.join", text).hint(
            "group the rows of each person first: (SELECT person, COUNT(*) AS n FROM … GROUP BY person)",
        ))
    }

    /// A full join's rows belong to whoever is there.
    fn whose_is_there(
        &mut self,
        joined: Relation,
        left: Column,
        right: Column,
    ) -> Result<Relation, PlanError> {
        let name = self.name("unit");
        let mut exprs: Vec<_> = joined.plan.schema().columns().into_iter().map(Expr::Column).collect();
        exprs.push(coalesce(vec![Expr::Column(left), Expr::Column(right)]).alias(&name));
        let plan = LogicalPlanBuilder::from(joined.plan).project(exprs).and_then(|builder| builder.build());
        let owner = Owner::Unit(Column::new_unqualified(name));
        Ok(Relation { plan: plan.map_err(error_of)?, owner, second: None, ..joined })
    }
}

/// Whether the units of two relations are the same people.
pub(super) fn same_people(one: &Relation, other: &Relation, what: &str) -> Result<(), PlanError> {
    for a in one.private_tables() {
        if let Some(b) = other.private_tables().find(|b| a.people != b.people) {
            let text = format!(
                "{what} of `{}` and `{}` cannot be used here: the catalog does not say that they are about the same people",
                a.name, b.name
            );
            return Err(PlanError::refused("plan.people", text)
                .hint("if their units are the same people, write people = \"…\" with one name at both in demur.toml"));
        }
    }
    Ok(())
}

/// Whether rows are owed to those of the other side that they are paired with.
fn owed_to<'e>(
    child: &Relation,
    parent: &Relation,
    mut on: impl Iterator<Item = (&'e Expr, &'e Expr)>,
) -> bool {
    let Owner::Owed(column, reference) = &child.owner else { return false };
    let is_owed = |expr: &Expr| match expr {
        Expr::Column(found) => found == column || child.facts(found).refers.as_ref() == Some(reference),
        _ => false,
    };
    on.any(|(child, other)| is_owed(child) && facts::of(other, parent).refers.as_ref() == Some(reference))
}

fn keeps_right(kind: JoinType) -> bool {
    matches!(kind, JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark)
}

/// How many rows of the joined relation a unit has at most; of public rows, how many there are at all.
fn rows_per_unit(left: &Relation, right: &Relation, kind: JoinType) -> Option<u64> {
    use JoinType::{Full, LeftAnti, LeftMark, LeftSemi, RightAnti, RightMark, RightSemi};
    let (one, other) = (left.rows_per_unit, right.rows_per_unit);
    match kind {
        LeftSemi | LeftAnti | LeftMark => one,
        RightSemi | RightAnti | RightMark => other,
        Full => one?.max(1).checked_mul(other?.max(1))?.checked_mul(3),
        _ => one?.max(1).checked_mul(other?.max(1)),
    }
}

/// What is known of both sides' columns. Where rows may lack a partner, its unit says nothing.
fn known(left: &Relation, right: &Relation, kind: JoinType) -> HashMap<Column, Facts> {
    let side = |relation: &Relation, may_lack: bool| {
        let known = |(column, facts): (&Column, &Facts)| {
            (column.clone(), Facts { is_unit: facts.is_unit && !may_lack, ..facts.clone() })
        };
        relation.facts.iter().map(known).collect::<Vec<_>>()
    };
    let lacks_left = matches!(kind, JoinType::Right | JoinType::Full);
    let lacks_right = matches!(kind, JoinType::Left | JoinType::Full);
    side(left, lacks_left).into_iter().chain(side(right, lacks_right)).collect()
}

/// The join over rebuilt sides.
fn rebuilt(join: &Join, left: LogicalPlan, right: LogicalPlan, on: Pairs) -> Result<LogicalPlan, PlanError> {
    let filter = match &join.filter {
        Some(filter) => {
            allow::on_rows(filter)?;
            let both = left.schema().join(right.schema()).map_err(error_of)?;
            Some(total::rewrite(filter.clone(), &both).map_err(error_of)?.unalias())
        }
        None => None,
    };
    let Join { join_type, join_constraint, null_equality, null_aware, .. } = *join;
    Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        filter,
        join_type,
        join_constraint,
        null_equality,
        null_aware,
    )
    .map(LogicalPlan::Join)
    .map_err(error_of)
}
