//! Joins, subqueries, aggregates per person, windows and unions over several tables: with one person taken away, counts move by no more than
//! their sensitivity.
//!
//! Tables are small and dirty on purpose: keys that are not unique, rows that name nobody, NULL everywhere, doubles whose sum depends on
//! their order. The grammar also makes what must be refused; were it answered, neighbours would tell.

#![expect(clippy::unwrap_used, reason = "tests say what they expect")]

#[path = "relations/grammar.rs"]
mod grammar;
mod near;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::arrow::array::{Float64Array, Int64Array, RecordBatch, StringViewArray};
use demur_engine::{Backend, Embedded};
use demur_plan::{Bounded, Catalog, declared_schema, plan};
use demur_tally::Tally;
use grammar::{CATALOG, query};
use near::{Dice, near};

/// A row of any table: two keys, a text, a whole number, a double.
#[derive(Clone, Debug)]
struct Row {
    key: Option<i64>,
    who: Option<i64>,
    region: Option<&'static str>,
    x: Option<i64>,
    y: Option<f64>,
}

#[derive(Clone, Debug)]
struct Tables {
    visits: Vec<Row>,
    orders: Vec<Row>,
    lines: Vec<Row>,
    readings: Vec<Row>,
}

fn rows(dice: &mut Dice, most: u64, keys: u64) -> Vec<Row> {
    let wholes = [0, 1, -1, 5, 5, 17, i64::MAX, i64::MIN];
    let reals = [0.1, 0.2, 0.3, -0.7, 1e15, 1e-9, f64::NAN, f64::INFINITY, 1e300, 0.5];
    let there = |dice: &mut Dice| dice.below(7) > 0;
    let row = |dice: &mut Dice| Row {
        key: there(dice).then(|| dice.below(keys) as i64),
        who: there(dice).then(|| dice.below(3) as i64),
        region: there(dice).then(|| dice.pick(&["a", "b", "c"])),
        x: there(dice).then(|| wholes[dice.below(8) as usize]),
        y: there(dice).then(|| reals[dice.below(10) as usize]),
    };
    (0..dice.below(most)).map(|_| row(dice)).collect()
}

fn tables(dice: &mut Dice) -> Tables {
    Tables {
        visits: rows(dice, 8, 3),
        orders: rows(dice, 6, 3),
        lines: rows(dice, 8, 4),
        readings: rows(dice, 5, 3),
    }
}

fn batch(rows: &[Row], keys: &[&str], catalog: &Catalog, table: &str) -> RecordBatch {
    let schema = declared_schema(&catalog.tables[table]);
    let columns = schema.fields().iter().map(|field| -> datafusion::arrow::array::ArrayRef {
        match field.name().as_str() {
            "region" => Arc::new(StringViewArray::from_iter(rows.iter().map(|row| row.region))),
            "x" => Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.x))),
            "y" => Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.y))),
            name if keys.contains(&name) => Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.key))),
            _ => Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.who))),
        }
    });
    RecordBatch::try_new(schema.clone(), columns.collect()).unwrap()
}

fn tally(bounded: &Bounded, tables: &Tables, catalog: &Catalog) -> Option<Tally> {
    let names = StringViewArray::from(vec![Some("a"), Some("b"), Some("b"), None]);
    let continents = StringViewArray::from(vec![Some("north"), Some("south"), Some("north"), Some("south")]);
    let weights = Float64Array::from(vec![1.0, 2.5, 3.0, 4.0]);
    let schema = declared_schema(&catalog.tables["places"]);
    let places =
        RecordBatch::try_new(schema, vec![Arc::new(continents), Arc::new(names), Arc::new(weights)]).unwrap();
    let data = HashMap::from([
        ("visits".to_owned(), vec![batch(&tables.visits, &[], catalog, "visits")]),
        ("orders".to_owned(), vec![batch(&tables.orders, &["number"], catalog, "orders")]),
        ("lines".to_owned(), vec![batch(&tables.lines, &["of"], catalog, "lines")]),
        ("readings".to_owned(), vec![batch(&tables.readings, &[], catalog, "readings")]),
        ("places".to_owned(), vec![places]),
    ]);
    Embedded::in_memory(data).unwrap().tally(bounded, [7, 11]).ok()
}

/// All tables without one person, or without one row of `readings`.
fn smaller(tables: &Tables, bounded: &Bounded) -> Vec<Tables> {
    if !bounded.spec.has_unit {
        let without = |left: usize| {
            let mut smaller = tables.clone();
            smaller.readings.remove(left);
            smaller
        };
        return (0..tables.readings.len()).map(without).collect();
    }
    let people: BTreeSet<_> = tables.visits.iter().chain(&tables.orders).map(|row| row.who).collect();
    let without = |person: Option<i64>| {
        let mut smaller = tables.clone();
        smaller.visits.retain(|row| row.who != person);
        smaller.orders.retain(|row| row.who != person);
        // What belongs to somebody else too stays until the last of them goes.
        let has = |orders: &[Row], line: &Row| {
            orders.iter().any(|order| order.key.is_some() && order.key == line.key)
        };
        smaller.lines.retain(|line| has(&smaller.orders, line) || !has(&tables.orders, line));
        smaller
    };
    people.into_iter().map(without).collect()
}

/// How many random questions are asked.
fn cases() -> u64 {
    std::env::var("DEMUR_CASES").ok().and_then(|many| many.parse().ok()).unwrap_or(600)
}

#[test]
fn neighbours_are_near_through_joins_subqueries_windows_and_unions() {
    let catalog = Catalog::read(CATALOG).unwrap();
    let (mut answered, mut refused) = (0, 0);
    for case in 0..cases() {
        let mut dice = Dice(case);
        let text = query(&mut dice);
        let bounded = match plan(&catalog, &text) {
            Ok(bounded) => bounded,
            Err(error) => {
                assert!(error.is_refusal(), "case {case}: {text}\n{error}");
                refused += 1;
                continue;
            }
        };
        answered += 1;
        let data = tables(&mut dice);
        let told = format!("case {case}: {text}\n{data:?}");
        let here =
            tally(&bounded, &data, &catalog).unwrap_or_else(|| unreachable!("counting failed\n{told}"));
        for other in smaller(&data, &bounded) {
            let there =
                tally(&bounded, &other, &catalog).unwrap_or_else(|| unreachable!("counting failed\n{told}"));
            near(&bounded, &here, &there, &told);
        }
    }
    assert!(
        answered > refused,
        "{answered} questions were answered, {refused} refused: the grammar is no longer that of the planner"
    );
}
