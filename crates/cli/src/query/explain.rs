//! `demur explain`: what would be done, what it would cost, how far off the answer would be, whether that much is left. Free, and without reading a row.

use std::io::Write;

use demur_core::PrivacyLoss;
use demur_engine::{ExplainedItem, ExplainedStatistic, Project, Quote, first_filter};
use demur_exact::Rational;
use demur_ledger::{BudgetName, Ledger};
use serde_json::{Value, json};

use crate::amount::{self, Round};
use crate::args::query::Shape;
use crate::failure::Failure;
use crate::output::Facts;
use crate::place::Place;

/// The plan of a question, its price, and what the ledger says to that.
pub(crate) fn show(
    quote: &Quote,
    project: &Project,
    place: &Place,
    shape: Shape,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let left = Left::of(project, place, &quote.pricing.loss());
    if shape != Shape::Table {
        let mut document = document(quote, project);
        document["left"] = left.document()?;
        return Ok(writeln!(out, "{document:#}")?);
    }
    let mut facts = plan(quote, project);
    facts.add("left", left.words());
    Ok(facts.print(out)?)
}

/// What is left of a project's budget.
pub(super) enum Left {
    /// So much, and why that does not suffice, if it does not.
    Some { epsilon: Rational, of: Rational, unspent: bool, refusal: Option<String> },
    /// There is no such budget, and none is opened.
    None,
    /// Why nobody knows.
    Unknown(String),
}

impl Left {
    /// Looks into the ledger, and asks whether it would pay for this.
    pub(super) fn of(project: &Project, place: &Place, loss: &PrivacyLoss) -> Self {
        Self::look(project, place, loss).unwrap_or_else(|failure| Self::Unknown(failure.message().to_owned()))
    }

    fn look(project: &Project, place: &Place, loss: &PrivacyLoss) -> Result<Self, Failure> {
        let catalog = &project.catalog;
        // Of a ledger that is missing its anchor knows.
        let is_there = place.location.exists()? || place.location.anchor().exists();
        let book = is_there.then(|| Ledger::look(&place.location)).transpose()?;
        let budget = book.as_ref().and_then(|book| book.budget(&BudgetName::whole(&catalog.budget.name)));
        let (filter, spent) = match (budget, first_filter(catalog)?) {
            (Some(budget), _) => (budget.filter.clone(), budget.spent.clone()),
            (None, Some(filter)) => (filter.clone(), filter.start()),
            (None, None) => return Ok(Self::None),
        };
        let refusal = match budget {
            Some(budget) if budget.closed => Some("the budget is closed".to_owned()),
            _ => filter.admit(&spent, loss).err().map(|refusal| refusal.to_string()),
        };
        let (epsilon, of) = (filter.remaining_epsilon(&spent)?, filter.guarantee().0);
        Ok(Self::Some { epsilon, of, unspent: budget.is_none_or(|budget| budget.charges == 0), refusal })
    }

    pub(super) fn words(&self) -> String {
        let (epsilon, of, unspent, refusal) = match self {
            Self::Some { epsilon, of, unspent, refusal } => (epsilon, of, unspent, refusal),
            Self::None => {
                return "nothing: the ledger has no such budget, and demur.toml opens none".to_owned();
            }
            Self::Unknown(why) => return format!("unknown: {why}"),
        };
        let shown = |value: &Rational| amount::shown(value, Round::Down);
        let spent = if *unspent { ": nothing was spent yet" } else { "" };
        let refusal = refusal.as_ref().map_or_else(String::new, |why| {
            format!("; this would be refused, unless it was answered before: {why}")
        });
        format!("ε = {} of {}{spent}{refusal}", shown(epsilon), shown(of))
    }

    /// The same for programs; null where nobody knows.
    fn document(&self) -> Result<Value, Failure> {
        let number = |value: &Rational| amount::json(value, Round::Down);
        Ok(match self {
            Self::Some { epsilon, of, refusal, .. } => {
                json!({ "epsilon": number(epsilon)?, "of": number(of)?, "suffices": refusal.is_none() })
            }
            Self::None | Self::Unknown(_) => Value::Null,
        })
    }
}

/// The plan and its price, for people.
pub(super) fn plan(quote: &Quote, project: &Project) -> Facts {
    let explained = quote.explain();
    let mut facts = Facts::default();
    facts
        .add("table", &explained.table)
        .add("hidden", &explained.unit)
        .add("neighbours", &explained.adjacency);
    facts.add("keys", &explained.keys);
    for item in &explained.items {
        facts.add("measure", &item.what);
        facts.add("  bounds", &item.bounds);
        facts.add("  moves by", &item.sensitivity);
        facts.add("  noise", &item.noise);
    }
    for statistic in &explained.statistics {
        facts.add("answer", &statistic.name);
        facts.add("  error", &statistic.error_text);
    }
    facts.add(
        "cost",
        format!(
            "ε = {}, δ = {} of budget `{}`",
            quote.guarantee.epsilon.value(),
            quote.guarantee.delta.value(),
            project.catalog.budget.name
        ),
    );
    facts
}

/// The plan for programs.
pub(super) fn document(quote: &Quote, project: &Project) -> Value {
    let explained = quote.explain();
    let item = |item: &ExplainedItem| {
        json!({
            "what": item.what, "bounds": item.bounds, "sensitivity": item.sensitivity,
            "noise": item.noise, "standard_deviation": item.standard_deviation,
        })
    };
    let statistic = |statistic: &ExplainedStatistic| json!({ "name": statistic.name, "error_95": statistic.error, "made_from": statistic.made_from });
    json!({
        "table": explained.table, "unit": explained.unit, "adjacency": explained.adjacency,
        "keys": explained.keys,
        "items": explained.items.iter().map(item).collect::<Vec<_>>(),
        "statistics": explained.statistics.iter().map(statistic).collect::<Vec<_>>(),
        "epsilon": quote.guarantee.epsilon.value(), "delta": quote.guarantee.delta.value(),
        "budget": project.catalog.budget.name, "loss": quote.pricing.loss().to_string(),
    })
}
