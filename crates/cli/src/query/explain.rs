//! `demur explain`: what would be done, what it would cost, how far off the answer would be. Free, and without reading a row.

use std::io::Write;

use demur_engine::{ExplainedItem, ExplainedStatistic, Project, Quote};
use serde_json::{Value, json};

use crate::args::query::Shape;
use crate::failure::Failure;
use crate::output::Facts;

pub(crate) fn show(
    quote: &Quote,
    project: &Project,
    shape: Shape,
    out: &mut impl Write,
) -> Result<(), Failure> {
    if shape != Shape::Table {
        return Ok(writeln!(out, "{:#}", document(quote, project))?);
    }
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
    facts.print(out)?;
    Ok(())
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
