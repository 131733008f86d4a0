//! [`Line`]: one entry of the log, as people and programs read it.

use std::collections::BTreeMap;
use std::rc::Rc;

use demur_accounting::{Filter, State};
use demur_exact::Rational;
use demur_ledger::BudgetName;
use demur_ledger::LedgerError;
use demur_ledger::entry::{Adopt, Charge, Close, Create, Entry, Event, Key, Open, Position, Raise, Release};
use serde_json::{Map, Value, json};

use crate::account::figure::unwritable;
use crate::amount::{self, Round};
use crate::budget::measured;
use crate::failure::Failure;
use crate::table::one_line;

/// The filters of all budgets, as they were at the entry that is read.
#[derive(Default)]
pub(crate) struct Filters {
    known: BTreeMap<BudgetName, Rc<Filter>>,
    /// Request ids of charges that are not answered yet.
    asked: BTreeMap<u64, String>,
}

/// An entry with all that is said about it.
pub(crate) struct Line {
    position: Position,
    /// In UTC, with all its digits.
    time: String,
    event: &'static str,
    pub(crate) name: Option<BudgetName>,
    request_id: Option<String>,
    /// In a few words.
    detail: String,
    /// What programs want to know beside the above.
    more: Map<String, Value>,
    /// What was spent after it, under which filter.
    spent: Option<(Rc<Filter>, State)>,
    /// The same for the requester's part.
    part: Option<(Rc<Filter>, State)>,
}

impl Filters {
    /// Whether a budget was seen.
    pub(crate) fn knows(&self, budget: &str) -> bool {
        self.known.contains_key(&BudgetName::whole(budget))
    }

    pub(crate) fn line(&mut self, position: Position, entry: Entry) -> Result<Line, LedgerError> {
        let time = entry.time.to_string();
        let line = |event: &'static str, detail: String| Line {
            position,
            time,
            event,
            name: None,
            request_id: None,
            detail,
            more: Map::new(),
            spent: None,
            part: None,
        };
        let mut line = match entry.event {
            Event::Open(Open { format, ledger }) => line("open", format!("format {format}"))
                .with("ledger", ledger.to_string())
                .with("format", format),
            Event::Create(Create { name, dataset, unit, filter, reason }) => {
                let spent = filter.start();
                let line = line("create", because(promise(&filter), &reason)).of(&filter).reason(reason);
                self.budget(line.with("dataset", dataset).with("unit", unit), name, filter, spent)
            }
            Event::Raise(Raise { name, filter, after, reason }) => {
                let detail = because(format!("to {}", promise(&filter)), &reason);
                self.budget(line("raise", detail).of(&filter).reason(reason), name, filter, after)
            }
            Event::Close(Close { name, reason }) => {
                Line { name: Some(name), ..line("close", reason.clone()).reason(reason) }
            }
            Event::Charge(charge) => self.charge(line("charge", charge.loss.to_string()), charge),
            Event::Release(Release { charge, budget, requester, answer }) => {
                let line = line("release", format!("answer to entry {charge}"));
                let line = line.with("charge", charge).with("answer", answer.to_string());
                let request_id = self.asked.remove(&charge);
                Line { name: Some(BudgetName::part(&budget, &requester)), request_id, ..line }
            }
            Event::Key(Key { public, reason }) => {
                line("key", because("signs from here on".to_owned(), &reason))
                    .with("public", public.to_string())
                    .reason(reason)
            }
            Event::Adopt(Adopt { lost, reason }) => {
                let detail = match lost {
                    None => "taken over".to_owned(),
                    Some(lost) => format!("entries up to {} are lost, all budgets closed", lost.sequence),
                };
                let line = line("adopt", because(detail, &reason)).reason(reason);
                line.with("lost", lost.map(|lost| lost.sequence))
            }
            Event::Checkpoint(_) => line("checkpoint", "all budgets as they stand".to_owned()),
        };
        line.more.insert("software".into(), entry.software.into());
        Ok(line)
    }

    fn budget(&mut self, line: Line, name: BudgetName, filter: Filter, spent: State) -> Line {
        let filter = Rc::new(filter);
        self.known.insert(name.clone(), filter.clone());
        Line { name: Some(name), spent: Some((filter, spent)), ..line }
    }

    fn charge(&mut self, line: Line, charge: Charge) -> Line {
        let filter = self.known.get(&BudgetName::whole(&charge.budget)).cloned();
        let id = charge.id.clone();
        if let Some(id) = &id {
            self.asked.insert(line.position.sequence, id.clone());
        }
        let line = line
            .with("loss", charge.loss.to_string())
            .with("question", charge.question)
            .with("data_version", charge.data_version)
            .with("request", charge.request.to_string());
        let name = BudgetName::part(&charge.budget, &charge.requester);
        let part = self.known.get(&name).cloned().zip(charge.part_after);
        let spent = filter.map(|filter| (filter, charge.after));
        Line { name: Some(name), request_id: id, spent, part, ..line }
    }
}

impl Line {
    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    fn reason(self, reason: String) -> Self {
        self.with("reason", reason)
    }

    fn of(self, filter: &Filter) -> Self {
        let (epsilon, delta) = filter.guarantee();
        self.with("filter", filter.rule().name())
            .with("epsilon", number(&epsilon))
            .with("delta", number(&delta))
    }

    /// The cells of a table or of CSV.
    pub(crate) fn cells(&self, for_people: bool) -> Result<Vec<String>, Failure> {
        let budget = self.name.as_ref().map(|name| name.budget.clone());
        let requester = self.name.as_ref().and_then(|name| name.requester.clone());
        let spent = match &self.spent {
            None => String::new(),
            Some((filter, state)) if for_people => {
                let (spent, all) = (filter.spent_epsilon(state)?, filter.guarantee().0);
                format!("{} of {}", amount::shown(&spent, Round::Up), amount::shown(&all, Round::Up))
            }
            Some((filter, state)) => amount::number(&filter.spent_epsilon(state)?, Round::Up),
        };
        let time = match (for_people, self.time.split_once('T')) {
            // Seconds are enough to read.
            (true, Some((day, time))) => format!("{day} {}", time.get(..8).unwrap_or(time)),
            _ => self.time.clone(),
        };
        let cells = [
            self.position.sequence.to_string(),
            time,
            self.event.to_owned(),
            budget.unwrap_or_default(),
            requester.unwrap_or_default(),
            self.request_id.clone().unwrap_or_default(),
            self.detail.clone(),
            spent,
        ];
        Ok(cells.into_iter().map(|cell| if for_people { one_line(&cell, 60) } else { cell }).collect())
    }

    /// The entry as one object.
    pub(crate) fn object(&self) -> Result<Value, Failure> {
        let mut object = Map::new();
        object.insert("entry".into(), self.position.sequence.into());
        object.insert("time".into(), self.time.clone().into());
        object.insert("event".into(), self.event.into());
        if let Some(name) = &self.name {
            object.insert("budget".into(), name.budget.clone().into());
            object.insert("requester".into(), json!(name.requester));
        }
        if matches!(self.event, "charge" | "release") {
            object.insert("request_id".into(), json!(self.request_id));
        }
        object.extend(self.more.clone());
        for (name, after) in [("spent_epsilon", &self.spent), ("part_spent_epsilon", &self.part)] {
            if let Some((filter, state)) = after {
                object.insert(name.into(), number(&filter.spent_epsilon(state)?));
            }
        }
        if let Some((filter, state)) = &self.spent {
            let own = measured(&filter.spent(state), Round::Up)?;
            object.insert("spent".into(), serde_json::to_value(own).map_err(unwritable)?);
        }
        object.insert("hash".into(), self.position.hash.to_string().into());
        Ok(Value::Object(object))
    }
}

/// The double, rounded up.
fn number(value: &Rational) -> Value {
    let text = amount::number(value, Round::Up);
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

/// The ε and δ of a filter, in a few words.
fn promise(filter: &Filter) -> String {
    let (epsilon, delta) = filter.guarantee();
    let epsilon = amount::shown(&epsilon, Round::Up);
    match delta.is_zero() {
        true => format!("ε = {epsilon}, {}", filter.rule().name()),
        false => format!("ε = {epsilon}, δ = {}, {}", amount::shown(&delta, Round::Up), filter.rule().name()),
    }
}

fn because(what: String, reason: &str) -> String {
    if reason.is_empty() { what } else { format!("{what}: {reason}") }
}
