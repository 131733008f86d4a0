//! Two kinds of units in one guarantee: patients and hospitals.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use demur_core::Adjacency;
use demur_engine::{Embedded, Table, verify};
use demur_plan::{Bounded, Catalog, declared_schema, plan};

use crate::folder::Folder;
use crate::near::{Dice, groups};

/// patient, hospital, key, x.
type Row = (Option<i64>, Option<i64>, &'static str, Option<i64>);

fn catalog(unit: &str, adjacency: &str, rows: u64, hospital_rows: u64) -> String {
    let limit = if unit == "row" { String::new() } else { format!("max_rows_per_group = {rows}\n") };
    format!(
        "[budget]\nname = \"t\"\nepsilon = 1000000\ndelta = 0.001\nmax_epsilon_per_question = 500000\n[tables.t]\nfiles = \"t.csv\"\n\
         unit = \"{unit}\"\nsecond_unit = {{ column = \"hospital\", max_rows_per_group = {hospital_rows} }}\nadjacency = \"{adjacency}\"\n{limit}\
         [tables.t.columns]\npatient = {{ type = \"int64\" }}\nhospital = {{ type = \"int64\" }}\nsecret = {{ type = \"string\" }}\n\
         k = {{ type = \"string\", values = [\"a\", \"b\"] }}\nx = {{ type = \"int64\", low = -3, high = 9 }}\n"
    )
}

fn row(dice: &mut Dice) -> Row {
    let small = |dice: &mut Dice, n: u64| match dice.below(n + 1) {
        0 => None,
        some => Some(some as i64),
    };
    let x = small(dice, 14).map(|x| x - 5);
    (small(dice, 4), small(dice, 3), dice.pick(&["a", "b", "c"]), x)
}

fn counted(bounded: &Bounded, rows: &[Row], catalog: &Catalog) -> HashMap<String, Vec<i128>> {
    let numbers =
        |pick: fn(&Row) -> Option<i64>| Arc::new(rows.iter().map(pick).collect::<Int64Array>()) as ArrayRef;
    let words = Arc::new(StringViewArray::from_iter_values(rows.iter().map(|row| row.2))) as ArrayRef;
    let columns: HashMap<&str, ArrayRef> = HashMap::from([
        ("patient", numbers(|row| row.0)),
        ("hospital", numbers(|row| row.1)),
        ("x", numbers(|row| row.3)),
        ("k", Arc::clone(&words)),
        ("secret", words),
    ]);
    let schema = declared_schema(&catalog.tables["t"]);
    let columns = schema.fields().iter().map(|field| Arc::clone(&columns[field.name().as_str()])).collect();
    let batch = RecordBatch::try_new(schema, columns).unwrap();
    let backend = Embedded::in_memory(HashMap::from([("t".to_owned(), vec![batch])])).unwrap();
    let tally = backend.tally(bounded, [7, 11]).unwrap();
    groups(&tally).into_iter().map(|(key, (_, cells))| (key, cells.concat())).collect()
}

/// 600 random tables and questions, all tables without one patient or one hospital, and with one replaced: no number of any group moves by
/// more than its declared sensitivity.
#[test]
fn neither_a_patient_nor_a_hospital_moves_more_than_it_may() {
    let mut moved = 0;
    for case in 0..600 {
        let mut dice = Dice(case);
        let unit = if dice.below(4) == 0 { "row" } else { "patient" };
        let adjacency = if dice.below(4) == 0 { "replace" } else { "add-remove" };
        let catalog = catalog(unit, adjacency, 1 + dice.below(2), 1 + dice.below(4));
        let catalog = Catalog::read(&catalog).unwrap();
        let filter = dice.pick(&["", " WHERE x > 0", " WHERE hospital <> 2"]);
        let text =
            format!("SELECT k, COUNT(*), COUNT(x), SUM(x), AVG(x), VAR_POP(x) FROM t{filter} GROUP BY k");
        let bounded = plan(&catalog, &text).unwrap();
        let rows: Vec<Row> = (0..dice.below(16)).map(|_| row(&mut dice)).collect();
        let here = counted(&bounded, &rows, &catalog);
        let keep =
            |unit: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| !unit(row)).copied().collect::<Vec<_>>();
        let patients: BTreeSet<_> = rows.iter().map(|row| row.0).collect();
        let hospitals: BTreeSet<_> = rows.iter().map(|row| row.1).collect();
        let mut others: Vec<Vec<Row>> = Vec::new();
        match unit {
            "row" => others.extend((0..rows.len()).map(|left| {
                rows.iter().enumerate().filter(|(at, _)| *at != left).map(|(_, row)| *row).collect()
            })),
            _ => others.extend(patients.iter().map(|unit| keep(&|row| row.0 == *unit))),
        }
        others.extend(hospitals.iter().map(|unit| keep(&|row| row.1 == *unit)));
        if bounded.adjacency() == Adjacency::Replace {
            // Somebody new in the place of who is gone.
            for (at, other) in others.iter_mut().enumerate() {
                let new = (0..1 + dice.below(5)).map(|_| row(&mut dice));
                let first = if unit == "row" { rows.len() } else { patients.len() };
                let gone =
                    (patients.iter().nth(at).copied(), hospitals.iter().nth(at.wrapping_sub(first)).copied());
                let new: Vec<Row> = new
                    .map(|row| match (at < first, gone) {
                        (true, (Some(patient), _)) => (patient, row.1, row.2, row.3),
                        (false, (_, Some(hospital))) => (row.0, hospital, row.2, row.3),
                        _ => row,
                    })
                    .collect();
                other.extend(if unit == "row" && at < first { &new[..1] } else { &new[..] });
            }
        }
        for other in others {
            let there = counted(&bounded, &other, &catalog);
            let nothing = vec![0; bounded.spec.measures.len()];
            for key in here.keys().chain(there.keys()) {
                let (a, b) = (here.get(key).unwrap_or(&nothing), there.get(key).unwrap_or(&nothing));
                for (index, measure) in bounded.spec.measures.iter().enumerate() {
                    let most = bounded.sensitivity(measure).unwrap();
                    let most = most.linf().to_string().parse::<i128>().unwrap();
                    let most = if bounded.adjacency() == Adjacency::Replace { 2 * most } else { most };
                    moved += u64::from(a != b);
                    assert!(
                        (a[index] - b[index]).abs() <= most,
                        "case {case}: {measure:?} of {key} moved from {} to {}, which is more than {most}\n{rows:?}\n{other:?}",
                        a[index],
                        b[index]
                    );
                }
            }
        }
    }
    assert!(moved > 10_000, "hardly anything moved, so nothing was tested: {moved}");
}

fn folder(catalog: &str) -> Folder {
    let mut csv = "patient,hospital,secret,k,x\n".to_owned();
    // Hospital 0 has 60 patients, hospitals 1 to 20 have 2 each; everybody comes once.
    (0..60).for_each(|patient| csv.push_str(&format!("{patient},0,s,a,4\n")));
    (60..100).for_each(|patient| csv.push_str(&format!("{patient},{},s,b,2\n", 1 + patient % 20)));
    Folder::new(catalog, &csv)
}

#[test]
fn answers_are_those_of_limited_hospitals_and_the_certificate_names_both() {
    let folder = folder(&catalog("patient", "add-remove", 1, 5));
    let sql = "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY k";
    let answer = folder.answer(sql, "100000").unwrap();
    let table = Table::read(&answer.certificate.columns, &answer.certificate.released).unwrap();
    let numbers: Vec<Vec<i64>> = table
        .rows
        .iter()
        .map(|row| row[1..].iter().map(|cell| cell.value.as_i64().unwrap()).collect())
        .collect();
    // The large hospital counts for 5 of its 60, and for 5 times the largest value at most.
    assert_eq!(numbers, [vec![5, 45], vec![40, 80]]);
    assert_eq!(answer.certificate.unit, "patient and hospital");
    let verdict =
        verify(answer.certificate.text().unwrap().as_bytes(), Some(&folder.location()), None).unwrap();
    assert!(verdict.is_good(), "{verdict:?}");
}

#[test]
fn what_cannot_be_shared_out_is_refused() {
    let folder = folder(&catalog("patient", "add-remove", 1, 5));
    for sql in [
        "SELECT secret, COUNT(*) FROM t GROUP BY secret",
        "SELECT COUNT(DISTINCT patient) FROM t",
        "SELECT COUNT(DISTINCT x) FROM t",
        "SELECT MEDIAN(x) FROM t",
        "SELECT MAX(x) FROM t",
        "SELECT k, COUNT(*) FROM t GROUP BY ROLLUP(k)",
        "SELECT COUNT(*) FROM (SELECT patient, COUNT(*) AS n FROM t GROUP BY patient) AS s",
        "SELECT COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY patient ORDER BY x) AS r FROM t) AS s WHERE r = 1",
        "SELECT COUNT(*) FROM t AS a JOIN t AS b ON a.patient = b.patient",
        "SELECT COUNT(*) FROM t WHERE patient IN (SELECT patient FROM t WHERE x > 2)",
    ] {
        assert_eq!(
            folder.answer(sql, "1").err().map(|error| error.code()),
            Some("plan.second_unit"),
            "{sql}"
        );
    }
}

#[test]
fn a_budget_for_one_kind_does_not_pay_for_two() {
    let two = catalog("patient", "add-remove", 1, 5);
    let one: String =
        two.lines().filter(|line| !line.starts_with("second_unit")).collect::<Vec<_>>().join("\n");
    let folder = folder(&one);
    folder.answer("SELECT COUNT(*) FROM t", "1").unwrap();
    folder.declare(&two);
    assert_eq!(
        folder.answer("SELECT COUNT(*) FROM t", "1").err().map(|error| error.code()),
        Some("engine.unit")
    );
}

#[test]
fn catalogs_that_contradict_themselves_are_refused() {
    let good = catalog("patient", "add-remove", 1, 5);
    let wrong = |text: &str| Catalog::read(text).err().map(|error| error.code().to_owned());
    assert_eq!(wrong(&good), None);
    assert!(wrong(&good.replace("column = \"hospital\"", "column = \"nobody\"")).is_some());
    assert!(wrong(&good.replace("column = \"hospital\"", "column = \"patient\"")).is_some());
    assert!(wrong(&good.replace("max_rows_per_group = 5", "max_rows_per_group = 0")).is_some());
    let other =
        "[tables.u]\nfiles = \"u.csv\"\nunit = \"row\"\n[tables.u.columns]\nx = { type = \"int64\" }\n";
    assert_eq!(wrong(&format!("{good}{other}")).as_deref(), Some("catalog.second_unit"));
}
