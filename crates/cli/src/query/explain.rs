//! `demur explain`: what would be done, what it would cost, how far off the answer would be, whether that much is left. Free, and without reading a row.

use std::io::Write;

use demur_engine::{ExplainedItem, ExplainedStatistic, Project, Quote};
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
    let left = Left::of(project, place, Some(quote));
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
    Some { epsilon: Rational, of: Rational, refusal: Option<String> },
    /// There is no such budget yet; it would begin with so much.
    All(Option<Rational>),
    /// Why nobody knows.
    Unknown(String),
}

impl Left {
    /// Looks into the ledger; whether it suffices is asked for this quote alone.
    pub(super) fn of(project: &Project, place: &Place, quote: Option<&Quote>) -> Self {
        Self::look(project, place, quote)
            .unwrap_or_else(|failure| Self::Unknown(failure.message().to_owned()))
    }

    fn look(project: &Project, place: &Place, quote: Option<&Quote>) -> Result<Self, Failure> {
        let opens_with = project.catalog.budget.opens_with.as_ref();
        let all = || Ok(Self::All(opens_with.map(|(epsilon, ..)| epsilon.exact())));
        if !place.location.exists()? {
            return all();
        }
        let book = Ledger::look(&place.location)?;
        let Some(budget) = book.budget(&BudgetName::whole(&project.catalog.budget.name)) else {
            return all();
        };
        let (filter, spent) = (&budget.filter, &budget.spent);
        let refusal = match quote {
            _ if budget.closed => Some("the budget is closed".to_owned()),
            Some(quote) => {
                filter.admit(spent, &quote.pricing.loss()).err().map(|refusal| refusal.to_string())
            }
            None => None,
        };
        let (epsilon, of) = (filter.remaining_epsilon(spent)?, filter.guarantee().0);
        Ok(Self::Some { epsilon, of, refusal })
    }

    pub(super) fn words(&self) -> String {
        let shown = |value: &Rational| amount::shown(value, Round::Down);
        match self {
            Self::Some { epsilon, of, refusal: None } => format!("ε = {} of {}", shown(epsilon), shown(of)),
            Self::Some { epsilon, of, refusal: Some(why) } => {
                format!("ε = {} of {}, and this would be refused: {why}", shown(epsilon), shown(of))
            }
            Self::All(Some(epsilon)) => format!("ε = {0} of {0}: nothing was spent yet", shown(epsilon)),
            Self::All(None) => {
                "nothing: the ledger has no such budget yet, and demur.toml opens none".to_owned()
            }
            Self::Unknown(why) => format!("unknown: {why}"),
        }
    }

    /// The same for programs; null where nobody knows.
    fn document(&self) -> Result<Value, Failure> {
        let number = |value: &Rational| amount::json(value, Round::Down);
        Ok(match self {
            Self::Some { epsilon, of, refusal } => {
                json!({ "epsilon": number(epsilon)?, "of": number(of)?, "suffices": refusal.is_none() })
            }
            Self::All(Some(epsilon)) => {
                json!({ "epsilon": number(epsilon)?, "of": number(epsilon)?, "suffices": null })
            }
            Self::All(None) | Self::Unknown(_) => Value::Null,
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
