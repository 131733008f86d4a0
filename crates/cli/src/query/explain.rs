//! `demur explain`: what would be done, what it would cost, how far off the answer would be. Free, and without reading a row.

use std::io::Write;

use demur_engine::{Project, Quote};
use serde_json::json;

use crate::args::query::Shape;
use crate::failure::Failure;
use crate::output::Facts;

pub(super) fn show(
    quote: &Quote,
    project: &Project,
    shape: Shape,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let explained = quote.explain();
    if shape != Shape::Table {
        let items: Vec<_> = explained
            .items
            .iter()
            .map(|item| {
                json!({
                    "what": item.what, "bounds": item.bounds, "sensitivity": item.sensitivity,
                    "noise": item.noise, "standard_deviation": item.standard_deviation,
                })
            })
            .collect();
        let statistics: Vec<_> = explained
            .statistics
            .iter()
            .map(|statistic| json!({ "name": statistic.name, "error_95": statistic.error, "made_from": statistic.made_from }))
            .collect();
        let document = json!({
            "table": explained.table, "unit": explained.unit, "adjacency": explained.adjacency,
            "keys": explained.keys, "items": items, "statistics": statistics,
            "epsilon": quote.guarantee.epsilon.value(), "delta": quote.guarantee.delta.value(),
            "budget": project.catalog.budget.name, "loss": quote.pricing.loss().to_string(),
        });
        return Ok(writeln!(out, "{document:#}")?);
    }
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
