//! Auditors: answers about neighbouring tables are drawn many times, and no event tells them apart by more than is promised.
//!
//! **Test.** With p and q the probabilities of an event on two neighbours, (ε, δ)-privacy says p ≤ e^ε·q + δ. Of `DRAWS` answers on each side one
//! half picks the event, the other counts it: bounds on p and q by Hoeffding's inequality, each wrong with probability at most [`ALARM`],
//! contradict the promise only if it is broken.
//!
//! **Power.** A count with noise for twice the ε it promises (the last test) is caught nearly always.

use std::collections::HashMap;
use std::path::Path;

use demur_engine::{Ask, Embedded, Engine, Project, Quote, SCRATCH};
use demur_ledger::{Location, Options};

const DRAWS: u64 = 40_000;
const ALARM: f64 = 1e-9;

fn folder(csv: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.csv"), csv).unwrap();
    let catalog = "[budget]\nname = \"t\"\n[tables.t]\nfiles = \"t.csv\"\nunit = \"id\"\nmax_groups_per_unit = 2\n\
                   max_rows_per_group = 2\n[tables.t.columns]\nid = { type = \"int64\" }\nk = { type = \"string\" }\n\
                   p = { type = \"string\", values = [\"a\", \"b\"] }\nx = { type = \"int64\", low = 0, high = 3 }\n";
    std::fs::write(folder.path().join("demur.toml"), catalog).unwrap();
    folder
}

/// So many answers, each as one text.
fn answers(folder: &Path, sql: &str, epsilon: &str) -> Vec<String> {
    let project = Project::open(folder).unwrap();
    let location = Location::Sqlite(folder.join(".demur/ledger.db"));
    let ask = Ask {
        sql: sql.to_owned(),
        epsilon: Some(epsilon.to_owned()),
        delta: Some("0.001".to_owned()),
        ..Ask::default()
    };
    let quote = Quote::make(&project, &ask).unwrap();
    let ledger = match demur_ledger::Ledger::create(&location, Options::default()) {
        Ok(ledger) => ledger,
        Err(_) => demur_ledger::Ledger::open(&location, Options::default()).unwrap(),
    };
    let name = demur_ledger::BudgetName::whole("t");
    if ledger.book().unwrap().budget(&name).is_none() {
        let filter = demur_accounting::Filter::pure("1000000".parse().unwrap()).unwrap();
        ledger.create_budget(name, &format!("{SCRATCH}t"), "id", filter, "an audit").unwrap();
    }
    drop(ledger);
    let engine = Engine::open(&location, Options::default()).unwrap();
    let backend = Embedded::new(folder).unwrap();
    let mut all = Vec::new();
    engine
        .rehearse(&project, &quote, &backend, DRAWS, |table| {
            let values = table.rows.iter().flatten().map(|cell| cell.value.to_string());
            all.push(values.collect::<Vec<_>>().join(" "));
            Ok(())
        })
        .unwrap();
    all
}

/// The least ε that the draws allow, given δ.
fn least_epsilon(here: &[String], there: &[String], delta: f64) -> f64 {
    let half = here.len() / 2;
    let count = |answers: &[String]| {
        let mut counts: HashMap<String, f64> = HashMap::new();
        answers.iter().for_each(|answer| *counts.entry(answer.clone()).or_default() += 1.0);
        counts
    };
    let mut least = f64::NEG_INFINITY;
    for (here, there) in [(here, there), (there, here)] {
        let (seen, other) = (count(&here[..half]), count(&there[..half]));
        for ratio in [0.5, 1.0, 1.5, 2.5] {
            // All answers that looked so much likelier here.
            let event = |answer: &String| {
                seen.get(answer).copied().unwrap_or(0.0) + 0.5
                    > f64::exp(ratio) * (other.get(answer).copied().unwrap_or(0.0) + 0.5)
            };
            let rate = |answers: &[String]| {
                answers[half..].iter().filter(|answer| event(answer)).count() as f64 / half as f64
            };
            let slack = (f64::ln(1.0 / ALARM) / (2.0 * half as f64)).sqrt();
            least = least.max(f64::ln((rate(here) - slack - delta) / (rate(there) + slack)));
        }
    }
    least
}

const TABLE: &str = "id,k,p,x\n1,u,a,3\n1,u,a,2\n2,u,a,1\n3,u,b,0\n3,v,b,3\n4,v,a,2\n5,u,a,\n6,w,b,1\n7,u,b,2\n8,u,a,3\n9,v,b,1\n";

fn audited(sql: &str, epsilon: &str) -> f64 {
    // Without person 1, the one with most rows; without person 6, the only one with key w.
    let without = |id: &str| {
        let kept: Vec<_> = TABLE.lines().filter(|line| !line.starts_with(id)).collect();
        kept.join("\n") + "\n"
    };
    let whole = folder(TABLE);
    let drawn = answers(whole.path(), sql, epsilon);
    let neighbours = ["1,", "6,"].map(|id| folder(&without(id)));
    let found = neighbours
        .iter()
        .map(|neighbour| least_epsilon(&drawn, &answers(neighbour.path(), sql, epsilon), 0.001));
    found.fold(f64::NEG_INFINITY, f64::max)
}

#[test]
fn no_query_tells_neighbours_apart() {
    for sql in [
        "SELECT COUNT(*) FROM t",
        "SELECT COUNT(x) FROM t WHERE x > 0",
        "SELECT COUNT(DISTINCT id) FROM t",
        "SELECT SUM(x) FROM t",
        "SELECT p, COUNT(*) FROM t GROUP BY p",
        "SELECT k, COUNT(DISTINCT id) FROM t GROUP BY k",
        "SELECT k FROM t GROUP BY k",
        "SELECT COUNT(*) > 8 FROM t",
    ] {
        let found = audited(sql, "1");
        assert!(found <= 1.0, "{sql}: the draws show ε ≥ {found}");
    }
}

/// What a query for ε = 3 shows is more than ε = 1.2 would allow.
#[test]
fn the_auditor_sees() {
    let found = audited("SELECT COUNT(*) FROM t", "3");
    assert!(found > 1.2, "only ε ≥ {found}");
}
