//! 95 % intervals of every aggregate hold as often as they say, and so does `max_error`.
//!
//! The same tables are answered about again and again on a scratch ledger. `DEMUR_LONG_TESTS` draws 10 000 answers for each, else 1500 are drawn: if an
//! interval holds with probability 0.95, fewer than 92.2 % of 1500 hold by chance with probability below 1e-6 (of 10 000 fewer than 93.9 %), and if it holds with probability 0.968
//! more than 98.5 % (97.5 %) do with probability below 1e-4; one that holds in 90 of 100 cases is caught with probability 0.999. `cargo test -p demur-engine --test all coverage -- --nocapture` prints the shares.

use crate::folder::ask;
use demur_accounting::Filter;
use demur_engine::{Ask, Embedded, Engine, Project, Quote, SCRATCH};
use demur_exact::Rational;
use demur_ledger::{BudgetName, Ledger, Location, Options};
use serde_json::Value;

const CATALOG: &str = "[budget]\nname = \"t\"\nepsilon = 10\ndelta = 0.001\n[tables.t]\nfiles = \"t.csv\"\nunit = \"id\"\n\
    max_groups_per_unit = 2\nmax_rows_per_group = 1\n[tables.t.columns]\nid = { type = \"int64\" }\np = { type = \"string\", values = [\"a\", \"b\", \"c\"] }\n\
    x = { type = \"int64\", low = 0, high = 1000000 }\ny = { type = \"float64\", low = -5, high = 5 }\n";

/// One row of each of so many people. Values hardly repeat: an interval of quantiles is never less than one value, so it holds more often where many share one.
fn rows(people: usize) -> Vec<(usize, f64, f64)> {
    let row = |id: usize| {
        (
            id % 3,
            (100_000 + id * 618_033 % 750_000) as f64,
            (id * 30_011 % people) as f64 * 5.0 / people as f64 - 2.5,
        )
    };
    (0..people).map(row).collect()
}

struct Folder {
    folder: tempfile::TempDir,
    project: Project,
    engine: Engine,
}

impl Folder {
    fn new(people: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut csv = "id,p,x,y\n".to_owned();
        for (id, (p, x, y)) in rows(people).into_iter().enumerate() {
            csv.push_str(&format!("{id},{},{x},{y}\n", ["a", "b", "c"][p]));
        }
        std::fs::write(folder.path().join("t.csv"), csv).unwrap();
        std::fs::write(folder.path().join("demur.toml"), CATALOG).unwrap();
        let location = Location::Sqlite(folder.path().join("ledger.db"));
        let ledger = Ledger::create(&location, Options::default()).unwrap();
        let filter = Filter::pure(Rational::new(1, 1)).unwrap();
        ledger.create_budget(BudgetName::whole("t"), &format!("{SCRATCH}t"), "id", filter, "a test").unwrap();
        drop(ledger);
        let engine = Engine::open(&location, Options::default()).unwrap();
        let project = Project::open(folder.path()).unwrap();
        Self { folder, project, engine }
    }

    /// For each cell of the answer, how often it passed.
    fn passes(&self, ask: &Ask, pass: impl Fn(usize, usize, &demur_engine::Cell) -> bool) -> Vec<f64> {
        let quote = Quote::make(&self.project, ask).unwrap_or_else(|error| unreachable!("{error}"));
        let backend = Embedded::new(self.folder.path()).unwrap();
        let mut passed = Vec::new();
        self.engine
            .rehearse(&self.project, &quote, &backend, count(), |table| {
                let mut at = 0;
                for (row, cells) in table.rows.iter().enumerate() {
                    for (column, cell) in cells.iter().enumerate() {
                        if passed.len() == at {
                            passed.push(0);
                        }
                        passed[at] += u64::from(pass(row, column, cell));
                        at += 1;
                    }
                }
                Ok(())
            })
            .unwrap();
        passed.into_iter().map(|passed| passed as f64 / count() as f64).collect()
    }
}

fn count() -> u64 {
    if std::env::var_os("DEMUR_LONG_TESTS").is_some() { 10_000 } else { 1500 }
}

/// The least share that counts as 95 %, and the largest that is not called wasteful.
fn limits() -> (f64, f64) {
    if count() == 10_000 { (0.939, 0.975) } else { (0.922, 0.985) }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn intervals_of_every_aggregate_hold_as_often_as_they_say() {
    let settings = [(40_000, "0.2"), (40_000, "0.05"), (3000, "0.5")];
    let asked = if std::env::var_os("DEMUR_LONG_TESTS").is_some() { settings.len() } else { 1 };
    let mut wrong = Vec::new();
    for (people, epsilon) in settings.into_iter().take(asked) {
        let folder = Folder::new(people);
        for (aggregate, truth) in truths(&rows(people)) {
            let sql = format!("SELECT {aggregate} AS a FROM t");
            let shares = folder.passes(&ask(&sql, epsilon), |_, _, cell| {
                cell.interval.is_some_and(|(low, high)| low <= truth && truth <= high)
            });
            println!("{people} people, ε = {epsilon}, {aggregate}: {:.4}", shares[0]);
            let (least, most) = limits();
            if shares[0] < least || shares[0] > most {
                wrong.push((people, epsilon, aggregate, shares[0]));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?} are not within {:?}", limits());
}

/// Every aggregate, with what it is without noise.
fn truths(rows: &[(usize, f64, f64)]) -> Vec<(&'static str, f64)> {
    let (xs, ys): (Vec<f64>, Vec<f64>) = rows.iter().map(|(_, x, y)| (*x, *y)).unzip();
    let products = |a: &[f64], b: &[f64]| {
        let (ma, mb) = (mean(a), mean(b));
        a.iter().zip(b).map(|(a, b)| (a - ma) * (b - mb)).sum::<f64>()
    };
    let n = xs.len() as f64;
    let mut sorted = xs.clone();
    sorted.sort_by(f64::total_cmp);
    let quantile = |share: f64| sorted[(share * (n - 1.0)) as usize];
    let clipped = xs.iter().filter(|x| **x < 200_000.0 || **x > 800_000.0).count() as f64;
    vec![
        ("COUNT(*)", n),
        ("COUNT(x)", n),
        ("COUNT(DISTINCT id)", n),
        ("COUNT(DISTINCT x)", n),
        ("APPROX_COUNT_DISTINCT(x)", n),
        ("COUNT_IF(x < 500000)", xs.iter().filter(|x| **x < 500_000.0).count() as f64),
        ("CLIPPED(x, contribution_bounds_per_row => (200000, 800000))", clipped),
        ("SUM(x)", xs.iter().sum()),
        ("SUM(y)", ys.iter().sum()),
        ("AVG(x)", mean(&xs)),
        ("AVG(y)", mean(&ys)),
        ("VAR_POP(x)", products(&xs, &xs) / n),
        ("VAR_SAMP(y)", products(&ys, &ys) / (n - 1.0)),
        ("STDDEV_POP(y)", (products(&ys, &ys) / n).sqrt()),
        ("STDDEV_SAMP(x)", (products(&xs, &xs) / (n - 1.0)).sqrt()),
        ("COVAR_POP(x, y)", products(&xs, &ys) / n),
        ("COVAR_SAMP(x, y)", products(&xs, &ys) / (n - 1.0)),
        ("CORR(x, y)", products(&xs, &ys) / (products(&xs, &xs) * products(&ys, &ys)).sqrt()),
        ("MEDIAN(x)", quantile(0.5)),
        ("PERCENTILE_CONT(x, 0.9)", quantile(0.9)),
        ("MIN(y)", ys.iter().copied().fold(f64::INFINITY, f64::min)),
        ("MAX(y)", ys.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
    ]
}

#[test]
fn intervals_of_totals_and_of_groups_hold_as_often_as_they_say() {
    let folder = Folder::new(40_000);
    let of = |p: Option<usize>| {
        rows(40_000).into_iter().filter(|row| p.is_none_or(|p| row.0 == p)).collect::<Vec<_>>()
    };
    for (keys, groups) in
        [("p", vec![Some(0), Some(1), Some(2)]), ("ROLLUP(p)", vec![Some(0), Some(1), Some(2), None])]
    {
        let sql = format!("SELECT p, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m FROM t GROUP BY {keys}");
        let truth = |row: usize, column: usize| {
            let rows = of(groups[row]);
            let sum: f64 = rows.iter().map(|row| row.1).sum();
            [0.0, rows.len() as f64, sum, sum / rows.len() as f64][column]
        };
        let shares = folder.passes(&ask(&sql, "0.3"), |row, column, cell| {
            let held = |(low, high)| (low..=high).contains(&truth(row, column));
            column == 0 || cell.interval.is_some_and(held)
        });
        println!("{keys}: {shares:.4?}");
        let (least, most) = limits();
        for (at, share) in shares.iter().enumerate().filter(|(at, _)| at % 4 != 0) {
            assert!((least..=most).contains(share), "{keys}, answer {at}: {share}");
        }
    }
}

/// `--error 200@90%` is met in 90 of 100 cases, for every answer.
#[test]
fn an_error_that_was_asked_for_is_kept_as_often_as_asked() {
    let folder = Folder::new(40_000);
    let sum: f64 = rows(40_000).iter().map(|row| row.1).sum();
    for (sql, error, share, truth) in [
        ("SELECT COUNT(*) AS n FROM t", 30.0, 0.9, 40_000.0),
        ("SELECT COUNT(*) AS n FROM t", 60.0, 0.99, 40_000.0),
        ("SELECT SUM(x) AS s FROM t", 20_000_000.0, 0.95, sum),
    ] {
        let ask = Ask { epsilon: None, error: Some(format!("{error}@{share}")), ..ask(sql, "1") };
        let far = |value: &Value| (value.as_f64().unwrap() - truth).abs();
        let kept = folder.passes(&ask, |_, _, cell| far(&cell.value) <= error)[0];
        println!("{sql} within {error} at {share}: {kept:.4}");
        // Four standard deviations below; not far above either, since ε is the least.
        let spread = (share * (1.0 - share) / count() as f64).sqrt();
        assert!(kept > share - 4.0 * spread, "{sql}: {kept}");
        assert!(kept < share + 4.0 * spread + 0.015, "{sql}: {kept}, so less ε would have been enough");
    }
}
