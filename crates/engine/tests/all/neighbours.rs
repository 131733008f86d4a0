//! Neighbouring tables, random questions, equal secrets: counts move by no more than their sensitivity.
//!
//! What is decided before rows are read (plan, noise, price, columns, refusals) is a function of the query and the catalog, since nothing
//! else is given to it. What is left to test is what rows can do: whether they can make counting fail, and how far they move it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::near::{Dice, cases, groups, near};
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, RecordBatch,
    StringViewArray,
};
use demur_core::Adjacency;
use demur_engine::Embedded;
use demur_plan::{Bounded, Catalog, Keys, declared_schema, plan};
use demur_tally::Tally;

#[derive(Clone, Debug)]
struct Row {
    id: Option<i64>,
    region: Option<&'static str>,
    whole: Option<i64>,
    real: Option<f64>,
    price: Option<i128>,
    day: Option<i32>,
    flag: Option<bool>,
}

fn row(dice: &mut Dice) -> Row {
    let wholes = [0, 1, -1, 5, 17, 99, 1000, i64::MAX, i64::MIN, 4711];
    let reals = [0.0, -0.0, 0.5, 3.25, 99.9, -7.5, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let prices = [0, 1, 1999, 250_000, -5, 99_999_999_999];
    let there = |dice: &mut Dice| dice.below(6) > 0;
    Row {
        id: there(dice).then(|| dice.below(4) as i64),
        region: there(dice).then(|| dice.pick(&["a", "b", "A", "", "ünï", "c"])),
        whole: there(dice).then(|| wholes[dice.below(10) as usize]),
        real: there(dice).then(|| reals[dice.below(10) as usize]),
        price: there(dice).then(|| prices[dice.below(6) as usize]),
        day: there(dice).then(|| dice.below(40_000) as i32 - 10_000),
        flag: there(dice).then(|| dice.below(2) == 0),
    }
}

fn batch(rows: &[Row], catalog: &Catalog) -> RecordBatch {
    let price = Decimal128Array::from_iter(rows.iter().map(|row| row.price));
    let mut columns: BTreeMap<&str, ArrayRef> = BTreeMap::new();
    columns.insert("day", Arc::new(Date32Array::from_iter(rows.iter().map(|row| row.day))));
    columns.insert("flag", Arc::new(BooleanArray::from_iter(rows.iter().map(|row| row.flag))));
    columns.insert("id", Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.id))));
    columns.insert("price", Arc::new(price.with_precision_and_scale(12, 2).unwrap()));
    columns.insert("real", Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.real))));
    columns.insert("region", Arc::new(StringViewArray::from_iter(rows.iter().map(|row| row.region))));
    columns.insert("whole", Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.whole))));
    let table = &catalog.tables["t"];
    RecordBatch::try_new(declared_schema(table), columns.into_values().collect()).unwrap()
}

/// A catalog with this unit, adjacency and limits.
fn catalog(unit: &str, adjacency: &str, groups: u64, rows: u64, public: bool) -> Catalog {
    let limits = match unit {
        "row" => String::new(),
        _ => format!("max_groups_per_unit = {groups}\nmax_rows_per_group = {rows}\n"),
    };
    let values = if public { ", values = [\"a\", \"b\", \"nowhere\"]" } else { "" };
    let text = format!(
        "[budget]\nname = \"t\"\n[tables.t]\nfiles = \"t.parquet\"\nunit = \"{unit}\"\nadjacency = \"{adjacency}\"\n{limits}\
         [tables.t.columns]\nid = {{ type = \"int64\" }}\nregion = {{ type = \"string\"{values} }}\n\
         whole = {{ type = \"int64\", low = -10, high = 100 }}\nreal = {{ type = \"float64\", low = -5, high = 50.5 }}\n\
         price = {{ type = \"decimal(12, 2)\", low = 0, high = 5000 }}\nday = {{ type = \"date\" }}\nflag = {{ type = \"boolean\" }}\n"
    );
    Catalog::read(&text).unwrap()
}

fn number(dice: &mut Dice, depth: u32) -> String {
    let leaf = depth == 0 || dice.below(3) == 0;
    if leaf {
        return dice.pick(&["whole", "real", "price", "1", "0", "-3", "2.5", "id"]).to_owned();
    }
    let (a, b) = (number(dice, depth - 1), number(dice, depth - 1));
    match dice.below(12) {
        0 => format!("({a} + {b})"),
        1 => format!("({a} - {b})"),
        2 => format!("({a} * {b})"),
        3 => format!("({a} / {b})"),
        4 => format!("({a} % {b})"),
        5 => format!("(CASE WHEN {} THEN {a} ELSE {b} END)", condition(dice, depth - 1)),
        6 => format!("COALESCE({a}, {b})"),
        7 => format!("ABS({a})"),
        8 => format!("CAST({a} AS {})", dice.pick(&["BIGINT", "DOUBLE", "DECIMAL(12,2)", "INT"])),
        9 => format!("SQRT({a})"),
        10 => format!("ROUND({a})"),
        _ => format!("EXTRACT(YEAR FROM day) + {a}"),
    }
}

fn condition(dice: &mut Dice, depth: u32) -> String {
    if depth > 0 && dice.below(3) == 0 {
        let (a, b) = (condition(dice, depth - 1), condition(dice, depth - 1));
        return format!("({a} {} {b})", dice.pick(&["AND", "OR"]));
    }
    match dice.below(7) {
        0 => format!("{} {} {}", number(dice, depth), dice.pick(&["<", ">=", "=", "<>"]), number(dice, 0)),
        1 => "region LIKE 'a%'".to_owned(),
        2 => "flag".to_owned(),
        3 => "region IN ('a', 'b')".to_owned(),
        4 => format!("{} IS NOT NULL", number(dice, 1)),
        5 => "CAST(region AS INT) > 0".to_owned(),
        _ => "day BETWEEN DATE '2000-01-01' AND DATE '2030-01-01'".to_owned(),
    }
}

fn query(dice: &mut Dice) -> String {
    let aggregate = |dice: &mut Dice| {
        let argument = number(dice, 2);
        match dice.below(18) {
            0 => "COUNT(*)".to_owned(),
            1 => format!("COUNT({argument})"),
            2 => format!("COUNT(DISTINCT {argument})"),
            3 => "COUNT(DISTINCT id)".to_owned(),
            4 => format!("SUM({argument}, contribution_bounds_per_row => (-4, 20))"),
            5 => format!("SUM({argument}, contribution_bounds_per_group => (-30, 9.5))"),
            6 => format!("AVG({argument}, contribution_bounds_per_row => (0, 12.5))"),
            7 => format!("SUM(real) FILTER (WHERE {})", condition(dice, 1)),
            8 => format!("CLIPPED({argument}, contribution_bounds_per_row => (-4, 20))"),
            9 => format!("COUNT_IF({})", condition(dice, 2)),
            10 => format!("APPROX_COUNT_DISTINCT({argument})"),
            11 => format!(
                "{}({argument}, contribution_bounds_per_row => (-2, 9.5))",
                dice.pick(&["VAR_POP", "VAR_SAMP", "STDDEV", "STDDEV_POP"])
            ),
            12 => format!(
                "{}({argument}, {}, contribution_bounds_per_row => (-3, 12))",
                dice.pick(&["COVAR_POP", "COVAR_SAMP", "CORR"]),
                number(dice, 1)
            ),
            13 => {
                format!("{}({argument}, contribution_bounds_per_row => (0, 40))", dice.pick(&["MIN", "MAX"]))
            }
            14 => format!("{}(real, {})", dice.pick(&["HISTOGRAM", "CDF"]), 1 + dice.below(20)),
            15 => format!("CORR(whole, real) FILTER (WHERE {})", condition(dice, 1)),
            16 => "VARIANCE(price)".to_owned(),
            _ => format!("MEDIAN({argument}, contribution_bounds_per_row => (0, 100))"),
        }
    };
    let aggregates: Vec<_> =
        (0..1 + dice.below(3)).map(|index| format!("{} AS a{index}", aggregate(dice))).collect();
    let flag = "CASE WHEN flag THEN 'yes' ELSE 'no' END";
    let keys = match dice.below(10) {
        0 => None,
        6 => Some("ROLLUP(region, flag)".to_owned()),
        7 => Some(format!("ROLLUP({flag}, region, {})", number(dice, 0))),
        8 => Some(format!("CUBE(region, {flag})")),
        9 => Some(format!("GROUPING SETS ((region), ({flag}), ())")),
        1 => Some("flag, region".to_owned()),
        2 => Some(number(dice, 1)),
        3 => Some("UPPER(region)".to_owned()),
        _ => Some("region".to_owned()),
    };
    let filter = if dice.below(2) == 0 { format!(" WHERE {}", condition(dice, 2)) } else { String::new() };
    let source = if dice.below(4) == 0 { "(SELECT *, 1 AS one FROM t) AS s" } else { "t" };
    let aggregates = aggregates.join(", ");
    match keys {
        None => format!("SELECT {aggregates} FROM {source}{filter}"),
        Some(keys) => format!("SELECT {aggregates} FROM {source}{filter} GROUP BY {keys}"),
    }
}

fn tally(bounded: &Bounded, rows: &[Row], catalog: &Catalog) -> Option<Tally> {
    let tables = HashMap::from([("t".to_owned(), vec![batch(rows, catalog)])]);
    Embedded::in_memory(tables).unwrap().tally(bounded, [7, 11]).ok()
}

/// The tables that lack one unit.
fn smaller(rows: &[Row], bounded: &Bounded) -> Vec<Vec<Row>> {
    if bounded.spec.has_unit {
        let units: BTreeSet<_> = rows.iter().map(|row| row.id).collect();
        units.into_iter().map(|unit| rows.iter().filter(|row| row.id != unit).cloned().collect()).collect()
    } else {
        let without = |left: usize| {
            rows.iter().enumerate().filter(|(index, _)| *index != left).map(|(_, row)| row.clone()).collect()
        };
        (0..rows.len()).map(without).collect()
    }
}

/// The tables in which one unit is another.
fn replaced(rows: &[Row], bounded: &Bounded, dice: &mut Dice) -> Vec<Vec<Row>> {
    if bounded.spec.has_unit {
        let units: BTreeSet<_> = rows.iter().map(|row| row.id).collect();
        let other = |unit: Option<i64>| {
            let kept = rows.iter().filter(|row| row.id != unit).cloned();
            let new = (0..1 + dice.below(4)).map(|_| Row { id: unit, ..row(dice) }).collect::<Vec<_>>();
            kept.chain(new).collect()
        };
        units.into_iter().map(other).collect()
    } else {
        let other = |at: usize| {
            let mut rows = rows.to_vec();
            rows[at] = row(dice);
            rows
        };
        (0..rows.len()).map(other).collect()
    }
}

#[test]
fn neighbours_are_as_near_as_the_sensitivity_says() {
    let (mut answered, mut refused) = (0, 0);
    for case in 0..cases(1_500) {
        let mut dice = Dice(case);
        let unit = if dice.below(3) == 0 { "row" } else { "id" };
        let adjacency = if dice.below(4) == 0 { "replace" } else { "add-remove" };
        let catalog = catalog(unit, adjacency, 1 + dice.below(3), 1 + dice.below(3), dice.below(3) == 0);
        let text = query(&mut dice);
        let Ok(bounded) = plan(&catalog, &text) else {
            refused += 1;
            continue;
        };
        answered += 1;
        let rows: Vec<Row> = (0..dice.below(9)).map(|_| row(&mut dice)).collect();
        let told = format!("case {case}: {text}\n{rows:?}");
        let here =
            tally(&bounded, &rows, &catalog).unwrap_or_else(|| unreachable!("counting failed\n{told}"));
        let others = match bounded.adjacency() {
            Adjacency::AddRemove => smaller(&rows, &bounded),
            Adjacency::Replace => replaced(&rows, &bounded, &mut dice),
        };
        for other in others {
            let there =
                tally(&bounded, &other, &catalog).unwrap_or_else(|| unreachable!("counting failed\n{told}"));
            near(&bounded, &here, &there, &told);
        }
    }
    assert!(
        answered > 3 * refused,
        "{answered} questions were answered, {refused} refused: the grammar is no longer that of the planner"
    );
}

#[test]
fn public_keys_are_all_there_and_no_others() {
    let catalog = catalog("id", "add-remove", 2, 2, true);
    let bounded = plan(&catalog, "SELECT region, COUNT(*) FROM t GROUP BY region").unwrap();
    let Keys::Public(keys) = &bounded.keys else { unreachable!("the keys are public") };
    assert_eq!(keys.len(), 3);
    let mut dice = Dice(1);
    let rows: Vec<Row> = (0..50).map(|_| row(&mut dice)).collect();
    let counted = tally(&bounded, &rows, &catalog).unwrap();
    assert!(groups(&counted).keys().all(|key| key.contains('a') || key.contains('b')));
}
