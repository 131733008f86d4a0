//! `demur init --private-bounds`: bounds of columns, found by questions that are charged like any other.
//!
//! **Way.** Each column gets an equal part of ε and one question: how many people have a value between neighbouring powers of two? A person
//! counts once, so each count needs noise of scale 1/ε. Counts that could be noise alone are passed over: all of them together are
//! mistaken for people with a probability of at most [`CHANCE`]. The bounds are the outermost powers of two around what is left.
//!
//! What is found is a release like any other. A few people with extreme values are missed, and clamped later: that is the point.

use std::io::Write;
use std::path::Path;

use demur_engine::{Ask, Embedded, Engine, Project, Quote, Table};
use demur_plan::catalog::{ColumnType, PrivacyUnit};

use crate::failure::Failure;
use crate::place::{self, Place};
use crate::rewrite::rewrite;

/// The chance that some bound is wider than anybody's value.
const CHANCE: f64 = 1e-6;

/// A column without bounds.
struct Open {
    table: String,
    column: String,
    kind: ColumnType,
}

/// Asks for the bounds of all columns of numbers that have none, and writes them into demur.toml.
pub(crate) fn find(
    folder: &Path,
    ledger: Option<&str>,
    epsilon: f64,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let project = Project::open(folder)?;
    let columns = open_columns(&project);
    if columns.is_empty() {
        return Err(Failure::new("cli.bounds", "every column of numbers has bounds already").hint(
            "a column of a CSV file is a string until demur.toml says int64, float64 or decimal(p, s)",
        ));
    }
    if !(epsilon > 0.0 && epsilon.is_finite()) {
        let message = format!("--private-bounds must be an ε above 0, but it is {epsilon}");
        return Err(Failure::new("cli.bounds", message));
    }
    let place = Place::of_project(ledger, &project.folder)?;
    let engine = place.engine(&project)?;
    let share = epsilon / columns.len() as f64;
    for open in &columns {
        let name = format!("{}.{}", open.table, open.column);
        match ask(&project, &engine, open, share)? {
            Some([low, high]) => {
                write_down(&project, open, [low, high])?;
                writeln!(out, "{name} lies between {low} and {high} for nearly everybody")?;
            }
            None => writeln!(out, "{name}: too few people to tell; write low and high yourself")?,
        }
    }
    writeln!(out, "this cost ε = {epsilon}, charged to the budget `{}`", project.catalog.budget.name)?;
    Ok(())
}

fn open_columns(project: &Project) -> Vec<Open> {
    let tables = project.catalog.tables.values().filter(|table| !table.public);
    let columns = tables.flat_map(|table| {
        let is_open = |name: &String, column: &demur_plan::catalog::Column| {
            column.column_type.is_ordered_number()
                && column.low.is_none()
                && table.unit != PrivacyUnit::Column(name.clone())
        };
        let open = table.columns.iter().filter(move |(name, column)| is_open(name, column));
        open.map(|(name, column)| Open {
            table: table.name.clone(),
            column: name.clone(),
            kind: column.column_type,
        })
    });
    columns.collect()
}

/// The bounds of one column, if enough people have a value.
fn ask(project: &Project, engine: &Engine, open: &Open, epsilon: f64) -> Result<Option<[f64; 2]>, Failure> {
    let edges = edges(open.kind);
    let ask = Ask {
        sql: question(open, &edges),
        epsilon: Some(epsilon.to_string()),
        delta: Some("0".to_owned()),
        requester: place::user(),
        ..Ask::default()
    };
    let quote = Quote::make(project, &ask)?;
    let deviation = quote.explain().items.iter().map(|item| item.standard_deviation).fold(0.0, f64::max);
    let answer = engine.query(project, &ask, &quote, &Embedded::new(&project.folder)?)?;
    let table = Table::read(&answer.certificate.columns, &answer.certificate.released)?;
    // Pr[noise > t] ≤ e^(−t/scale), for each of the counts.
    let noise = deviation / f64::sqrt(2.0) * f64::ln((edges.len() + 1) as f64 / CHANCE);
    let seen = table.rows.iter().filter_map(|row| {
        let (cell, count) = (row.first()?.value.as_u64()? as usize, row.get(1)?.value.as_f64()?);
        // What lies beyond the outermost edges, or is no number, has no bounds.
        ((1..edges.len()).contains(&cell) && count > noise).then_some(cell)
    });
    let seen: Vec<usize> = seen.collect();
    Ok(seen
        .iter()
        .min()
        .zip(seen.iter().max())
        .map(|(&first, &last)| with_zero(edges[first - 1], edges[last])))
}

/// From 0 where that is close: people in small cells are few, and what a person adds is at most the larger bound anyway.
fn with_zero(low: f64, high: f64) -> [f64; 2] {
    match (low, high) {
        (low, high) if low > 0.0 && low < high / 2.0 => [0.0, high],
        (low, high) if high < 0.0 && high > low / 2.0 => [low, 0.0],
        _ => [low, high],
    }
}

/// 0 and powers of two of both signs, as far as the type and doubles go.
fn edges(kind: ColumnType) -> Vec<f64> {
    let powers = match kind {
        ColumnType::Int(_) | ColumnType::UInt(_) => 0..=53,
        _ => -10..=53,
    };
    let upper: Vec<f64> = powers.map(|power| f64::exp2(f64::from(power))).collect();
    let lower = upper.iter().rev().map(|edge| -edge);
    match kind {
        ColumnType::UInt(_) => std::iter::once(0.0).chain(upper).collect(),
        _ => lower.chain([0.0]).chain(upper.iter().copied()).collect(),
    }
}

/// How many people have a value in each cell: cell i ends before edge i.
fn question(open: &Open, edges: &[f64]) -> String {
    let value = format!("CAST({} AS DOUBLE)", quoted(&open.column));
    let cells = edges.iter().enumerate().map(|(cell, edge)| format!("WHEN {value} < {edge:?} THEN {cell} "));
    format!(
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed = 1, max_rows_contributed = 1) \
         CASE {}ELSE {} END AS cell, COUNT(*) AS people FROM {} GROUP BY 1",
        cells.collect::<String>(),
        edges.len(),
        quoted(&open.table),
    )
}

/// An SQL name.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Writes bounds into demur.toml.
fn write_down(project: &Project, open: &Open, [low, high]: [f64; 2]) -> Result<(), Failure> {
    let number = |bound: f64| match open.kind {
        ColumnType::Int(_) | ColumnType::UInt(_) => toml_edit::value(bound as i64),
        _ => toml_edit::value(bound),
    };
    let yourself = format!("low = {low}, high = {high} for {}.{}", open.table, open.column);
    rewrite(project, &["tables", &open.table, "columns", &open.column], &yourself, |column| {
        column.insert("low", number(low));
        column.insert("high", number(high));
        column.fmt();
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_a_bound_where_it_is_close() {
        assert_eq!(with_zero(2.0, 128.0), [0.0, 128.0]);
        assert_eq!(with_zero(64.0, 128.0), [64.0, 128.0]);
        assert_eq!(with_zero(-128.0, -2.0), [-128.0, 0.0]);
        assert_eq!(with_zero(-4.0, 2.0), [-4.0, 2.0]);
    }

    #[test]
    fn edges_are_in_order_and_hold_zero() {
        for kind in
            [ColumnType::Int(64), ColumnType::UInt(8), ColumnType::Float(64), ColumnType::Decimal(9, 2)]
        {
            let edges = edges(kind);
            assert!(edges.windows(2).all(|two| two[0] < two[1]), "{kind}");
            assert!(edges.contains(&0.0));
        }
    }
}
