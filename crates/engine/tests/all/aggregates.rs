//! Aggregates and totals from SQL to release.

use std::collections::BTreeMap;

use crate::folder::Folder;
use serde_json::Value;

/// A folder with these rows, whose table has this unit and limits.
fn folder(csv: &str, unit: &str, limits: &str) -> Folder {
    let catalog = format!(
        "[budget]\nname = \"t\"\nepsilon = 1000000\ndelta = 0.001\nmax_epsilon_per_question = 500000\n\
         [tables.t]\nfiles = \"t.csv\"\nunit = \"{unit}\"\n{limits}\n[tables.t.columns]\nid = {{ type = \"int64\" }}\n\
         k = {{ type = \"string\" }}\nl = {{ type = \"string\" }}\n\
         p = {{ type = \"string\", values = [\"a\", \"b\", \"c\"] }}\nq = {{ type = \"string\", values = [\"u\", \"v\"] }}\n\
         x = {{ type = \"int64\", low = 0, high = 100 }}\ny = {{ type = \"float64\", low = -10, high = 10 }}\n"
    );
    Folder::new(&catalog, csv)
}

/// 240 rows of 80 people; x runs through 0, 5, …, y through −3, …, 3, with holes.
fn csv() -> String {
    let mut text = "id,k,l,p,q,x,y\n".to_owned();
    for row in 0..240i64 {
        let (id, key) = (row % 80, ["r", "s", "t"][(row % 3) as usize]);
        let (p, q) = (["a", "b", "c"][(row % 80 % 3) as usize], ["u", "v"][(row % 80 / 3 % 2) as usize]);
        let y = if row % 10 == 0 { String::new() } else { (row % 7 - 3).to_string() };
        text.push_str(&format!("{id},{key},m{},{p},{q},{},{y}\n", row % 5, row * 5 % 100));
    }
    text
}

fn numbers(rows: &[Vec<Value>]) -> Vec<f64> {
    rows[0].iter().map(|value| value.as_f64().unwrap()).collect()
}

#[test]
fn variances_covariances_and_correlations_are_those_of_the_textbook() {
    let folder = folder(&csv(), "row", "");
    let (mut xs, mut pairs) = (Vec::new(), Vec::new());
    for row in 0..240i64 {
        let x = (row * 5 % 100) as f64;
        xs.push(x);
        if row % 10 != 0 {
            pairs.push((x, (row % 7 - 3) as f64));
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let covariance = |pairs: &[(f64, f64)]| {
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let (ma, mb) = (mean(&a), mean(&b));
        mean(&pairs.iter().map(|(a, b)| (a - ma) * (b - mb)).collect::<Vec<_>>())
    };
    let var = covariance(&xs.iter().map(|x| (*x, *x)).collect::<Vec<_>>());
    let cov = covariance(&pairs);
    let both = |pick: fn(&(f64, f64)) -> f64| {
        covariance(&pairs.iter().map(|pair| (pick(pair), pick(pair))).collect::<Vec<_>>())
    };
    let corr = cov / (both(|pair| pair.0) * both(|pair| pair.1)).sqrt();
    let (n, m) = (240.0 / 239.0, 216.0 / 215.0);
    let expected =
        [var, var * n, var * n, var.sqrt(), (var * n).sqrt(), (var * n).sqrt(), cov, cov * m, corr];
    let sql = "SELECT VAR_POP(x), VAR_SAMP(x), VARIANCE(x), STDDEV_POP(x), STDDEV_SAMP(x), STDDEV(x), COVAR_POP(x, y), \
               COVAR_SAMP(x, y), CORR(x, y) FROM t";
    // Nine numbers share ε = 100 000: a variance then is off by 5e-4, a covariance by 2e-4, a correlation by 4e-6; by forty times as
    // much once in e^40.
    let allowed = [0.03, 0.03, 0.03, 0.001, 0.001, 0.001, 0.01, 0.01, 2e-4];
    for ((found, expected), allowed) in numbers(&folder.nearly_exact(sql)).iter().zip(expected).zip(allowed) {
        assert!((found - expected).abs() < allowed, "{found} {expected}");
    }
}

/// The clamp is on the value, before it is squared: 1000 counts as 100, wherever it came from.
#[test]
fn squares_are_those_of_clamped_values() {
    let folder = folder("id,k,l,p,q,x,y\n1,a,a,a,u,1000,NaN\n2,a,a,a,u,-7,inf\n3,a,a,a,u,50,2\n", "row", "");
    let found = numbers(
        &folder.nearly_exact("SELECT VAR_POP(x), VAR_POP(y), COVAR_POP(x, y), VAR_POP(x * 3) FROM t"),
    );
    // 100, 0, 50; 10, 2; (0, 10), (50, 2); 300, 0, 150.
    // Of two or three rows noise is felt even at ε = 100 000; each is allowed more than twenty times its scale.
    let expected = [(5000.0 / 3.0, 1.5), (16.0, 0.3), (-100.0, 1.0), (15000.0, 12.0)];
    for (found, (expected, allowed)) in found.iter().zip(expected) {
        assert!((found - expected).abs() < allowed, "{found} {expected}");
    }
}

/// Bounds that a query asks for hold for sums too, where 0 lies outside: rows without a value still add nothing.
#[test]
fn sums_keep_the_bounds_they_were_asked_with() {
    let rows = "id,k,l,p,q,x,y\n1,a,a,a,u,10,\n2,a,a,a,u,55,-9\n3,a,a,a,u,90,4\n4,a,a,a,u,,-3\n";
    for unit in ["row", "id"] {
        let folder = folder(rows, unit, "");
        let sql = "SELECT SUM(x, contribution_bounds_per_row => (50, 60)), \
                   SUM(y, contribution_bounds_per_row => (-8, -2)), SUM(x) FROM t";
        // 50 + 55 + 60; −8 − 2 − 3; noise of a scale below 0.01, of which less than e^-40 is further than 0.5.
        for (found, expected) in numbers(&folder.nearly_exact(sql)).iter().zip([165.0, -13.0, 155.0]) {
            assert!((found - expected).abs() < 0.5, "{unit}: {found} {expected}");
        }
    }
}

#[test]
fn filters_count_for_every_aggregate() {
    for aggregate in [
        "COUNT(*)",
        "COUNT(x)",
        "SUM(x)",
        "AVG(x)",
        "VAR_POP(x)",
        "STDDEV(x)",
        "COVAR_POP(x, y)",
        "CORR(x, y)",
        "MEDIAN(x)",
        "MIN(x)",
        "MAX(x)",
        "HISTOGRAM(x, 5)",
        "CDF(x, 5)",
        "COUNT_IF(y > 0)",
        "CLIPPED(x)",
        "COUNT(DISTINCT x)",
        "APPROX_COUNT_DISTINCT(x)",
    ] {
        let folder = folder(&csv(), "row", "");
        let filtered = folder.nearly_exact(&format!("SELECT {aggregate} FILTER (WHERE x < 50) AS f FROM t"));
        let meant = folder.nearly_exact(&format!("SELECT {aggregate} AS f FROM t WHERE x < 50"));
        let close = |a: &Value, b: &Value| match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => (a - b).abs() < 0.01 * (1.0 + b.abs()),
            _ => a == b,
        };
        assert!(close(&filtered[0][0], &meant[0][0]), "{aggregate}: {filtered:?} {meant:?}");
    }
}

#[test]
fn extremes_histograms_and_shares_of_all_values() {
    let folder = folder(&csv(), "row", "");
    let rows = folder.nearly_exact(
        "SELECT MIN(x), MAX(x), MIN(y), MAX(y), HISTOGRAM(x, 4), CDF(x, 4), COUNT_IF(x >= 50) FROM t",
    );
    assert_eq!(rows[0][0].as_f64(), Some(0.0), "{rows:?}");
    assert_eq!(rows[0][1].as_f64(), Some(95.0), "{rows:?}");
    assert!(
        (rows[0][2].as_f64().unwrap() + 3.0).abs() < 0.02
            && (rows[0][3].as_f64().unwrap() - 3.0).abs() < 0.02,
        "{rows:?}"
    );
    // Cells of 101 values: 0 to 25, 26 to 50, 51 to 75, 76 to 100.
    assert_eq!(rows[0][4], serde_json::json!([72, 60, 60, 48]));
    assert_eq!(rows[0][5], serde_json::json!([0.3, 0.55, 0.8, 1.0]));
    assert_eq!(rows[0][6].as_i64(), Some(120));
}

#[test]
fn what_is_undefined_is_null() {
    let folder = folder("id,k,l,p,q,x,y\n1,a,a,a,u,5,1\n", "row", "");
    let rows = folder.nearly_exact("SELECT VAR_SAMP(x), STDDEV(x), CORR(x, y), VAR_POP(x) FROM t");
    assert_eq!(rows[0][..3], [Value::Null, Value::Null, Value::Null]);
    // One row has no variance; its noise is about 0.5 here, and 2500 the most a variance can be.
    assert!(rows[0][3].as_f64().is_some_and(|found| found.abs() < 15.0), "{rows:?}");
    let none = folder
        .nearly_exact("SELECT VAR_POP(x), MIN(x), MAX(x), CDF(x, 3), HISTOGRAM(x, 3) FROM t WHERE x > 50");
    assert_eq!(none[0][..4], [Value::Null, Value::Null, Value::Null, Value::Null]);
    assert_eq!(none[0][4], serde_json::json!([0, 0, 0]));
}

/// Everybody has eight values in common with neighbours and may bring one: all 30 can be brought, but hardly by picking at random (a chance
/// of about (3/8)^30).
#[test]
fn matching_finds_more_values_than_picking() {
    let mut text = "id,k,l,p,q,x,y\n".to_owned();
    for id in 0..30i64 {
        for value in (id - 7).max(0)..=id {
            text.push_str(&format!("{id},k,l,a,u,{value},0\n"));
        }
    }
    let folder = folder(&text, "id", "max_groups_per_unit = 1\nmax_rows_per_group = 1");
    let rows = folder.nearly_exact("SELECT APPROX_COUNT_DISTINCT(x), COUNT(DISTINCT x) FROM t");
    let (matched, picked) = (rows[0][0].as_i64().unwrap(), rows[0][1].as_i64().unwrap());
    assert!(matched == 30 && picked < 30, "{matched} {picked}");
}

/// Totals by their keys, GROUPING and values.
fn totals(rows: &[Vec<Value>]) -> BTreeMap<(String, String, i64), Vec<f64>> {
    let text = |value: &Value| value.as_str().unwrap_or("NULL").to_owned();
    let entry = |row: &Vec<Value>| {
        let numbers = row[3..].iter().map(|value| value.as_f64().unwrap()).collect();
        ((text(&row[0]), text(&row[1]), row[2].as_i64().unwrap()), numbers)
    };
    rows.iter().map(entry).collect()
}

#[test]
fn totals_are_those_of_sql() {
    let folder = folder(&csv(), "row", "");
    let sql = "SELECT p, q, GROUPING(p, q) AS g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY CUBE(p, q)";
    let found = totals(&folder.nearly_exact(sql));
    let mut expected: BTreeMap<(String, String, i64), Vec<f64>> = BTreeMap::new();
    for row in 0..240i64 {
        let (p, q) = (["a", "b", "c"][(row % 80 % 3) as usize], ["u", "v"][(row % 80 / 3 % 2) as usize]);
        for (p, q, g) in [(p, q, 0), (p, "NULL", 1), ("NULL", q, 2), ("NULL", "NULL", 3)] {
            let sums = expected.entry((p.to_owned(), q.to_owned(), g)).or_insert_with(|| vec![0.0; 2]);
            sums[0] += 1.0;
            sums[1] += (row * 5 % 100) as f64;
        }
    }
    assert_eq!(found, expected);
}

/// With real noise, whatever keys and statistics: every total is the sum of its parts, to the last digit.
#[test]
fn every_total_is_the_sum_of_its_parts() {
    for (unit, limits) in [("row", ""), ("id", "max_groups_per_unit = 2\nmax_rows_per_group = 2")] {
        let folder = folder(&csv(), unit, limits);
        for (keys, epsilon) in [
            ("CUBE(p, q)", "0.3"),
            ("ROLLUP(p, q)", "0.1"),
            ("ROLLUP(q, p)", "1"),
            ("GROUPING SETS ((p), (q), ())", "0.5"),
        ] {
            let sql = format!(
                "SELECT p, q, GROUPING(p, q) AS g, COUNT(*) AS n, COUNT_IF(x > 20) AS m, SUM(x) AS s FROM t GROUP BY {keys}"
            );
            let found = totals(&folder.rows(&sql, epsilon));
            for number in 0..3 {
                let sum = |pick: &dyn Fn(&(String, String, i64)) -> bool| -> f64 {
                    found.iter().filter(|(key, _)| pick(key)).map(|(_, numbers)| numbers[number]).sum()
                };
                let total = sum(&|key| key.2 == 3);
                for level in [0, 1, 2] {
                    if found.keys().any(|key| key.2 == level) {
                        assert_eq!(sum(&|key| key.2 == level), total, "{keys} {number}");
                    }
                }
                for (key, numbers) in &found {
                    assert!(number == 2 || numbers[number] >= 0.0, "{keys} {key:?} is negative");
                    if key.2 == 1 && found.keys().any(|key| key.2 == 0) {
                        assert_eq!(sum(&|other| other.2 == 0 && other.0 == key.0), numbers[number], "{keys}");
                    }
                    if key.2 == 2 && found.keys().any(|key| key.2 == 0) {
                        assert_eq!(sum(&|other| other.2 == 0 && other.1 == key.1), numbers[number], "{keys}");
                    }
                }
            }
        }
    }
}

/// Keys that too few have are others: under what they begin with, and with NULL. Totals are about all rows.
#[test]
fn secret_keys_that_are_not_shown_count_among_others() {
    let mut text = csv();
    for row in 0..6 {
        text.push_str(&format!("{},r,rare{row},a,u,1,1\n", 1000 + row));
        text.push_str(&format!("{},only{row},z,a,u,1,1\n", 2000 + row));
        text.push_str(&format!("{},,z,a,u,1,1\n", 3000 + row));
    }
    let folder = folder(&text, "row", "");
    let sql = "SELECT nullif(k, '') AS k, l, GROUPING(nullif(k, ''), l) AS g, COUNT(*) AS n FROM t GROUP BY ROLLUP(nullif(k, ''), l)";
    // A key of one row is shown with probability below 1e-6; one of 16 nearly always.
    let found = totals(&folder.rows(sql, "20"));
    let near = |key: (&str, &str, i64), expected: f64| {
        let found = found[&(key.0.to_owned(), key.1.to_owned(), key.2)][0];
        assert!((found - expected).abs() < 6.0, "{key:?}: {found} {expected}");
    };
    near(("NULL", "NULL", 3), 258.0);
    near(("NULL", "NULL", 0), 12.0);
    near(("NULL", "NULL", 1), 12.0);
    near(("r", "NULL", 1), 86.0);
    near(("r", "NULL", 0), 6.0);
    near(("r", "m0", 0), 16.0);
    near(("s", "NULL", 0), 0.0);
    assert!(found.keys().all(|key| !key.0.starts_with("only") && !key.1.starts_with("rare")));
    let sum = |level: i64| -> f64 { found.iter().filter(|(key, _)| key.2 == level).map(|(_, n)| n[0]).sum() };
    assert_eq!(sum(0), sum(3));
    assert_eq!(sum(1), sum(3));
}

#[test]
fn means_and_quantiles_of_totals_are_shown_with_intervals() {
    let folder = folder(&csv(), "id", "max_groups_per_unit = 2\nmax_rows_per_group = 3");
    let table = folder.table("SELECT p, GROUPING(p) AS g, AVG(x) AS mean, MEDIAN(x) AS middle, STDDEV(x) AS s FROM t GROUP BY ROLLUP(p)", "50").unwrap();
    assert_eq!(table.rows.len(), 4);
    for row in &table.rows {
        for cell in &row[2..] {
            let (value, (low, high)) = (cell.value.as_f64().unwrap(), cell.interval.unwrap());
            assert!(low <= value && value <= high, "{row:?}");
        }
        assert!((row[2].value.as_f64().unwrap() - 47.5).abs() < 15.0, "{row:?}");
    }
}
