//! `demur init --private-limits`: how many rows and groups of a person count, found by questions that are charged like any other.
//!
//! **Way.** Each table gets an equal part of ε, and each of its questions an equal part of that. One question asks how many rows people have; one for each column that may be grouped by asks
//! in how many of its groups they are. A person is one row of these questions, so each count needs noise of scale 1/ε. The limit is the least with which all but
//! [`LEFT_OUT`] of people lose nothing: larger ones need more noise for everybody.
//!
//! What is found is a release like any other.

use std::io::Write;
use std::path::Path;

use demur_engine::{Ask, Embedded, Engine, Project, Quote, Table as Answer};
use demur_plan::catalog::{ColumnType, PrivacyUnit, Table};
use toml_edit::Item;

use crate::bounds::quoted;
use crate::failure::Failure;
use crate::place::{self, Place};
use crate::rewrite::rewrite;

/// The part of all people who may lose something.
const LEFT_OUT: f64 = 0.05;
/// The limits that are tried.
const LIMITS: [u32; 24] =
    [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096];

/// Asks for the limits of all tables about people, and writes them into demur.toml.
pub(crate) fn find(
    folder: &Path,
    ledger: Option<&str>,
    epsilon: f64,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let project = Project::open(folder)?;
    let named = |table: &&Table| !table.public && matches!(table.unit, PrivacyUnit::Column(_));
    let tables: Vec<&Table> =
        project.catalog.tables.values().filter(named).filter(|table| table.second_unit.is_none()).collect();
    if tables.is_empty() {
        let text = "no table says which column names the person, so there are no limits to find";
        return Err(
            Failure::new("cli.limits", text).hint("where each row is somebody's, a person has one row")
        );
    }
    if !(epsilon > 0.0 && epsilon.is_finite()) {
        let message = format!("--private-limits must be an ε above 0, but it is {epsilon}");
        return Err(Failure::new("cli.limits", message));
    }
    let place = Place::of_project(ledger, &project.folder)?;
    let engine = place.engine(&project)?;
    for table in &tables {
        let keys = keys(table);
        let share = epsilon / tables.len() as f64 / (1 + keys.len()) as f64;
        let ask = |key: Option<&str>| ask(&project, &engine, &question(table, key), share);
        let rows = ask(None)?;
        let mut groups = Some(1);
        for key in keys {
            groups = groups.max(ask(Some(key))?);
        }
        match rows.zip(groups) {
            Some((rows, groups)) => {
                // Nobody is in more groups than they have rows.
                let groups = groups.min(rows);
                write_down(&project, &table.name, groups, rows)?;
                writeln!(
                    out,
                    "{}: nearly everybody has at most {rows} rows, in at most {groups} groups",
                    table.name
                )?;
            }
            None => writeln!(
                out,
                "{}: too few people to tell; write max_groups_per_unit and max_rows_per_group yourself",
                table.name
            )?,
        }
    }
    writeln!(out, "this cost ε = {epsilon}, charged to the budget `{}`", project.catalog.budget.name)?;
    Ok(())
}

/// The columns that may be grouped by: texts, truths, and whatever has public values.
fn keys(table: &Table) -> Vec<&str> {
    let is_key = |(_, column): &(&String, &demur_plan::catalog::Column)| {
        column.values.is_some() || matches!(column.column_type, ColumnType::String | ColumnType::Boolean)
    };
    let named = |name: &&String| table.unit_name() != name.as_str();
    table.columns.iter().filter(is_key).map(|(name, _)| name).filter(named).map(String::as_str).collect()
}

/// How many people have up to so many rows, or are in up to so many groups of a key.
fn question(table: &Table, key: Option<&str>) -> String {
    let (name, unit) = (quoted(&table.name), quoted(table.unit_name()));
    let counted = match key {
        None => name,
        Some(key) => {
            format!("(SELECT {unit}, {key} FROM {name} GROUP BY {unit}, {key}) AS pairs", key = quoted(key))
        }
    };
    let cells = LIMITS.iter().enumerate().map(|(cell, limit)| format!("WHEN n <= {limit} THEN {cell} "));
    format!(
        "SELECT CASE {}ELSE {} END AS cell, COUNT(*) AS people FROM (SELECT {unit}, COUNT(*) AS n FROM {counted} GROUP BY {unit}) AS people GROUP BY 1",
        cells.collect::<String>(),
        LIMITS.len(),
    )
}

/// The least limit that leaves nearly everybody whole, if there are enough people to tell.
fn ask(project: &Project, engine: &Engine, sql: &str, epsilon: f64) -> Result<Option<u32>, Failure> {
    let ask = Ask {
        sql: sql.to_owned(),
        epsilon: Some(epsilon.to_string()),
        delta: Some("0".to_owned()),
        requester: place::user(),
        ..Ask::default()
    };
    let quote = Quote::make(project, &ask)?;
    let deviation = quote.explain().items.iter().map(|item| item.standard_deviation).fold(0.0, f64::max);
    let answer = engine.query(project, &ask, &quote, &Embedded::new(&project.folder)?)?;
    let table = Answer::read(&answer.certificate.columns, &answer.certificate.released)?;
    let mut people = [0.0; LIMITS.len() + 1];
    for row in &table.rows {
        let cell = row.first().and_then(|cell| cell.value.as_u64()).map(|cell| cell as usize);
        let count = row.get(1).and_then(|cell| cell.value.as_f64());
        if let Some((place, count)) = cell.and_then(|cell| people.get_mut(cell)).zip(count) {
            *place = count;
        }
    }
    Ok(least(&people, deviation))
}

/// The least limit beyond which only few are; none if all could be noise.
fn least(people: &[f64], deviation: f64) -> Option<u32> {
    let all: f64 = people.iter().sum();
    // The noise of all cells together.
    let noise = deviation * (people.len() as f64).sqrt();
    if all * LEFT_OUT < 2.0 * noise {
        return None;
    }
    let beyond = |cell: usize| people[cell + 1..].iter().sum::<f64>();
    LIMITS.iter().enumerate().find(|(cell, _)| beyond(*cell) <= all * LEFT_OUT).map(|(_, limit)| *limit)
}

/// Writes limits into demur.toml.
fn write_down(project: &Project, table: &str, groups: u32, rows: u32) -> Result<(), Failure> {
    let yourself = format!("max_groups_per_unit = {groups}, max_rows_per_group = {rows} for {table}");
    rewrite(project, &["tables", table], &yourself, |written| {
        for (name, limit) in [("max_groups_per_unit", groups), ("max_rows_per_group", rows)] {
            match written.get_mut(name).and_then(Item::as_value_mut) {
                // What is said beside it stays.
                Some(value) => {
                    let around = value.decor().clone();
                    *value = toml_edit::Value::from(i64::from(limit));
                    *value.decor_mut() = around;
                }
                None => {
                    written.insert(name, toml_edit::value(i64::from(limit)));
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_leaves_out_one_of_twenty() {
        let mut people = [0.0; LIMITS.len() + 1];
        (people[0], people[2], people[5], people[20]) = (500.0, 400.0, 60.0, 40.0);
        assert_eq!(least(&people, 0.1), Some(6));
        people[20] = 60.0;
        assert_eq!(least(&people, 0.1), Some(512));
    }

    #[test]
    fn noise_is_not_taken_for_people() {
        assert_eq!(least(&[30.0, -20.0, 10.0], 15.0), None);
        assert_eq!(least(&[0.0; LIMITS.len() + 1], 1.0), None);
    }
}
