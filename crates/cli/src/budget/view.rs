//! [`View`]: where one budget stands, as people and programs read it.

use std::collections::BTreeMap;
use std::io::Write;

use demur_accounting::{Amounts, Measure};
use demur_exact::Rational;
use demur_ledger::{Book, Budget, BudgetName};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::account::figure::unwritable;
use crate::amount::{self, Round};
use crate::failure::Failure;
use crate::output::Facts;
use crate::place::Place;

/// Cells in a bar.
const BAR: usize = 20;

/// A budget with its figures.
#[derive(Clone, Debug)]
pub(crate) struct View {
    budget: Budget,
    epsilon: Rational,
    delta: Rational,
    spent: Rational,
    remaining: Rational,
    parts: Vec<View>,
    ledger: String,
    entry: u64,
    head: String,
}

impl View {
    /// The budget with the parts of its requesters.
    pub(crate) fn of(book: &Book, budget: &Budget, place: &Place) -> Result<Self, Failure> {
        let whole = budget.name.requester.is_none();
        let part = |other: &&Budget| {
            whole && other.name.requester.is_some() && other.name.budget == budget.name.budget
        };
        let parts = book.budgets().filter(part).map(|part| Self::of(book, part, place));
        let (epsilon, delta) = budget.filter.guarantee();
        Ok(Self {
            parts: parts.collect::<Result<_, _>>()?,
            spent: budget.filter.spent_epsilon(&budget.spent)?,
            remaining: budget.filter.remaining_epsilon(&budget.spent)?,
            budget: budget.clone(),
            epsilon,
            delta,
            ledger: place.to_string(),
            entry: book.head().sequence,
            head: book.head().hash.to_string(),
        })
    }

    /// What is promised to whom.
    pub(crate) fn promise(&self, facts: &mut Facts) {
        let epsilon = amount::shown(&self.epsilon, Round::Up);
        let delta = match self.delta.is_zero() {
            true => String::new(),
            false => format!(", δ = {}", amount::shown(&self.delta, Round::Up)),
        };
        facts.add("budget", format!("ε = {epsilon}{delta}, filter {}", self.budget.filter.rule().name()));
        let (unit, dataset) = (&self.budget.unit, &self.budget.dataset);
        facts.add("protects", format!("every {unit} of {dataset}"));
    }

    /// What was spent and what is left.
    pub(crate) fn standing(&self, facts: &mut Facts) {
        facts.add("spent", format!("ε = {}  {}", amount::shown(&self.spent, Round::Up), self.bar()));
        facts.add("left", format!("ε = {}", amount::shown(&self.remaining, Round::Down)));
        let filter = &self.budget.filter;
        if self.budget.filter.rule().name() != "pure" {
            let (spent, all) = (filter.spent(&self.budget.spent), filter.capacity());
            facts.add("counted", counted(&spent, &all));
        }
        facts.add("charges", format!("{}, {} answered", self.budget.charges, self.budget.releases));
        if self.budget.closed {
            facts.add("state", "closed for good");
        }
    }

    /// Everything, in two columns.
    pub(crate) fn print(&self, out: &mut impl Write) -> Result<(), Failure> {
        let mut facts = Facts::default();
        facts.add("name", about(&self.budget.name));
        self.promise(&mut facts);
        self.standing(&mut facts);
        for part in &self.parts {
            let who = part.budget.name.requester.as_deref().unwrap_or_default();
            let (spent, all) =
                (amount::shown(&part.spent, Round::Up), amount::shown(&part.epsilon, Round::Up));
            let closed = if part.budget.closed { ", closed" } else { "" };
            facts.add("part", format!("{who}: ε = {spent} of {all}  {}{closed}", part.bar()));
        }
        let head: String = self.head.chars().take(12).collect();
        facts.add("ledger", format!("{}, entry {}, head {head}…", self.ledger, self.entry));
        Ok(facts.print(out)?)
    }

    /// One line of a list, and one for each part.
    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        let name = match &self.budget.name.requester {
            None => self.budget.name.budget.clone(),
            Some(requester) => format!("  {requester}"),
        };
        let row = vec![
            name,
            self.budget.filter.rule().name().to_owned(),
            amount::shown(&self.epsilon, Round::Up),
            amount::shown(&self.delta, Round::Up),
            amount::shown(&self.spent, Round::Up),
            amount::shown(&self.remaining, Round::Down),
            self.bar(),
            self.budget.releases.to_string(),
            if self.budget.closed { "closed" } else { "open" }.to_owned(),
        ];
        std::iter::once(row).chain(self.parts.iter().flat_map(Self::rows)).collect()
    }

    /// One object.
    pub(crate) fn json(&self, out: &mut impl Write) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(&self.record()?).map_err(unwritable)?;
        Ok(writeln!(out, "{text}")?)
    }

    pub(crate) fn record(&self) -> Result<Record<'_>, Failure> {
        let (budget, filter) = (&self.budget, &self.budget.filter);
        let whole = budget.name.requester.is_none();
        let parts = self.parts.iter().map(Self::record).collect::<Result<Vec<_>, _>>()?;
        Ok(Record {
            name: &budget.name.budget,
            requester: budget.name.requester.as_deref(),
            dataset: &budget.dataset,
            unit: &budget.unit,
            filter: filter.rule().name(),
            epsilon: amount::json(&self.epsilon, Round::Up)?,
            delta: amount::json(&self.delta, Round::Up)?,
            spent_epsilon: amount::json(&self.spent, Round::Up)?,
            remaining_epsilon: amount::json(&self.remaining, Round::Down)?,
            spent: measured(&filter.spent(&budget.spent), Round::Up)?,
            remaining: measured(&filter.remaining(&budget.spent), Round::Down)?,
            charges: budget.charges,
            releases: budget.releases,
            closed: budget.closed,
            parts: whole.then_some(parts),
            ledger: &self.ledger,
            entry: self.entry,
            head: &self.head,
        })
    }

    /// The same as [`record`](Self::record) in one line of CSV, and one for each part.
    pub(crate) fn csv(&self) -> Vec<Vec<String>> {
        let budget = &self.budget;
        let row = vec![
            budget.name.budget.clone(),
            budget.name.requester.clone().unwrap_or_default(),
            budget.dataset.clone(),
            budget.unit.clone(),
            budget.filter.rule().name().to_owned(),
            amount::number(&self.epsilon, Round::Up),
            amount::number(&self.delta, Round::Up),
            amount::number(&self.spent, Round::Up),
            amount::number(&self.remaining, Round::Down),
            budget.charges.to_string(),
            budget.releases.to_string(),
            budget.closed.to_string(),
            self.entry.to_string(),
            self.head.clone(),
        ];
        std::iter::once(row).chain(self.parts.iter().flat_map(Self::csv)).collect()
    }

    fn bar(&self) -> String {
        bar(amount::part(&self.spent, &self.epsilon))
    }
}

/// A budget as JSON.
#[derive(Serialize)]
pub(crate) struct Record<'a> {
    name: &'a str,
    requester: Option<&'a str>,
    dataset: &'a str,
    unit: &'a str,
    filter: &'static str,
    epsilon: Box<RawValue>,
    delta: Box<RawValue>,
    spent_epsilon: Box<RawValue>,
    remaining_epsilon: Box<RawValue>,
    spent: BTreeMap<String, Box<RawValue>>,
    remaining: BTreeMap<String, Box<RawValue>>,
    charges: u64,
    releases: u64,
    closed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<Record<'a>>>,
    ledger: &'a str,
    entry: u64,
    head: &'a str,
}

/// The names of the columns of [`View::csv`].
pub(crate) const CSV: [&str; 14] = [
    "name",
    "requester",
    "dataset",
    "unit",
    "filter",
    "epsilon",
    "delta",
    "spent_epsilon",
    "remaining_epsilon",
    "charges",
    "releases",
    "closed",
    "entry",
    "head",
];

/// A budget's name for people.
pub(crate) fn about(name: &BudgetName) -> String {
    match &name.requester {
        None => name.budget.clone(),
        Some(requester) => format!("{}, the part of {requester}", name.budget),
    }
}

/// Amounts in the filter's own measures.
pub(crate) fn measured(amounts: &Amounts, round: Round) -> Result<BTreeMap<String, Box<RawValue>>, Failure> {
    let own = amounts.values.iter().map(|(measure, value)| {
        let name = match measure {
            Measure::Epsilon => "epsilon".to_owned(),
            Measure::Rho => "rho".to_owned(),
            Measure::MuSquared => "mu_squared".to_owned(),
            Measure::Renyi(order) => format!("renyi_{order}"),
            other => other.to_string(),
        };
        Ok((name, amount::json(value, round)?))
    });
    let delta = amount::json(&amounts.delta, round).map(|delta| ("delta".to_owned(), delta));
    own.chain([delta]).collect()
}

/// The measure that is used up least, which decides.
fn counted(spent: &Amounts, all: &Amounts) -> String {
    let used = |((measure, spent), (_, all)): (&(Measure, Rational), &(Measure, Rational))| {
        let words =
            format!("{measure} = {} of {}", amount::shown(spent, Round::Up), amount::shown(all, Round::Down));
        (amount::part(spent, all), words)
    };
    let pairs = spent.values.iter().zip(&all.values).filter(|(_, (_, all))| all.is_positive());
    let least = pairs.map(used).min_by(|a, b| a.0.total_cmp(&b.0));
    let mut text = least.map_or_else(String::new, |(part, words)| format!("{words} ({})", percent(part)));
    if !spent.delta.is_zero() {
        let (spent, all) = (amount::shown(&spent.delta, Round::Up), amount::shown(&all.delta, Round::Down));
        text.push_str(&format!(", δ of charges = {spent} of {all}"));
    }
    text
}

/// A part of a whole, drawn and as a percentage.
fn bar(part: f64) -> String {
    let full = ((part * BAR as f64).round() as usize).min(BAR);
    format!("{}{} {}", "█".repeat(full), "░".repeat(BAR - full), percent(part))
}

/// Rounded up: what is not nothing is not called nothing.
fn percent(part: f64) -> String {
    format!("{} %", (part * 100.0 * (1.0 - 1e-12)).ceil())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_show_parts() {
        assert_eq!(bar(0.0), "░░░░░░░░░░░░░░░░░░░░ 0 %");
        assert_eq!(bar(0.3), "██████░░░░░░░░░░░░░░ 30 %");
        assert_eq!(bar(1e-9), "░░░░░░░░░░░░░░░░░░░░ 1 %");
        assert_eq!(bar(1.0), "████████████████████ 100 %");
    }
}
