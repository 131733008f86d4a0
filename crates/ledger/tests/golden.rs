//! Ledgers that earlier versions wrote are read by this one, for ever.
//!
//! `golden/1.db` and its anchor hold every event of format 1; `golden/1.jsonl` is what stands in it, entry by entry, and
//! `golden/1.json` where it leads. They are written once: `DEMUR_GOLDEN=2 cargo test -p demur-ledger --test golden` writes those of a
//! new format. Nobody rewrites the old ones.

#![expect(clippy::unwrap_used, reason = "a failing test may fail anywhere")]

use std::fs;
use std::path::{Path, PathBuf};

use demur_accounting::Filter;
use demur_exact::Rational;
use demur_ledger::{BudgetName, Charged, Hash, Ledger, Location, Options, Request, verify};
use jiff::Timestamp;
use serde_json::{Value, json};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// A copy, since opening a ledger may write.
fn copy(format: &str) -> (tempfile::TempDir, Location) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["db", "db.anchor"] {
        fs::copy(golden(&format!("{format}.{name}")), folder.path().join(format!("ledger.{name}"))).unwrap();
    }
    let location = Location::Sqlite(folder.path().join("ledger.db"));
    (folder, location)
}

fn formats() -> Vec<String> {
    let names =
        fs::read_dir(golden("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let formats: Vec<String> = names.filter_map(|name| name.strip_suffix(".db").map(str::to_owned)).collect();
    assert!(!formats.is_empty(), "no golden ledger is there");
    formats
}

/// Each entry as a line, as `demur ledger export` writes it.
fn entries(location: &Location) -> String {
    let mut lines = String::new();
    Ledger::entries(location, 0, &mut |sealed| {
        let body = String::from_utf8(sealed.body).unwrap();
        let (sequence, hash) = (sealed.position.sequence, sealed.position.hash);
        lines.push_str(&format!("{{\"sequence\":{sequence},\"hash\":\"{hash}\",\"entry\":{body}}}\n"));
        Ok(())
    })
    .unwrap();
    lines
}

/// Where a ledger leads, in words that do not depend on how this version keeps it.
fn meaning(location: &Location) -> Value {
    let book = Ledger::look(location).unwrap();
    let budgets: Vec<Value> = book
        .budgets()
        .map(|budget| {
            json!({
                "name": budget.name.to_string(), "dataset": budget.dataset, "unit": budget.unit,
                "epsilon": budget.filter.guarantee().0.to_string(), "delta": budget.filter.guarantee().1.to_string(),
                "spent": budget.filter.spent(&budget.spent).to_string(),
                "charges": budget.charges, "releases": budget.releases, "closed": budget.closed,
            })
        })
        .collect();
    json!({"ledger": book.ledger(), "head": book.head(), "time": book.time(), "keys": book.keys(), "budgets": budgets})
}

#[test]
fn ledgers_of_every_format_are_read_to_the_same_state() {
    for format in formats() {
        let (_folder, location) = copy(&format);
        assert_eq!(entries(&location), fs::read_to_string(golden(&format!("{format}.jsonl"))).unwrap());
        let written: Value =
            serde_json::from_slice(&fs::read(golden(&format!("{format}.json"))).unwrap()).unwrap();
        assert_eq!(meaning(&location), written);
        let report = verify(&location).unwrap();
        assert_eq!(report.findings, Vec::<String>::new());
    }
}

/// What was answered then is answered now, and what was spent then is still spent.
#[test]
fn ledgers_of_every_format_go_on() {
    for format in formats() {
        let (_folder, location) = copy(&format);
        let ledger = Ledger::open(&location, Options::default()).unwrap();
        let Charged::Before(replay) = ledger.charge(request("visits", "first")).unwrap() else {
            unreachable!("a request that was charged is charged again")
        };
        assert_eq!(replay.answer, b"42");
        let head = ledger.book().unwrap().head();
        let Charged::Now(receipt) = ledger.charge(request("visits", "new").data_version("2026-12")).unwrap()
        else {
            unreachable!()
        };
        assert_eq!(receipt.position().sequence, head.sequence + 1);
        ledger.record(receipt, b"43").unwrap();
        drop(ledger);
        assert_eq!(verify(&location).unwrap().findings, Vec::<String>::new());
    }
}

/// The specification, followed by hand: SHA-256 of the hash before, the number, and the body.
#[test]
fn hashes_follow_the_specification() {
    for format in formats() {
        let mut previous = Hash::START;
        for (number, line) in
            fs::read_to_string(golden(&format!("{format}.jsonl"))).unwrap().lines().enumerate()
        {
            let (_, body) = line.split_once("\"entry\":").unwrap();
            let body = body.strip_suffix('}').unwrap();
            let row = [previous.bytes().as_slice(), &(number as u64).to_be_bytes(), body.as_bytes()].concat();
            previous = Hash::of(&row);
            assert!(line.contains(&format!("\"hash\":\"{previous}\"")), "entry {number}");
        }
    }
}

fn request(budget: &str, id: &str) -> Request {
    Request::new(budget, "ann", "SELECT COUNT(*) FROM visits", "discrete_laplace(scale=20)".parse().unwrap())
        .id(id)
        .data_version("2026-11")
}

/// Writes a golden ledger, when asked to and where there is none.
#[test]
fn golden_ledgers_are_written_once() {
    let Ok(format) = std::env::var("DEMUR_GOLDEN") else { return };
    let path = golden(&format!("{format}.db"));
    assert!(!path.exists(), "{} is there, and stays as it is", path.display());
    let folder = tempfile::tempdir().unwrap();
    let location = Location::Sqlite(folder.path().join("ledger.db"));
    let number = |text: &str| text.parse::<Rational>().unwrap();
    let clock = || "2026-11-16T04:00:00Z".parse::<Timestamp>().unwrap();
    let options = Options { clock, checkpoint_every: 12, ..Options::default() };
    let ledger = Ledger::create(&location, options.clone()).unwrap();
    let create = |name: BudgetName, filter: Filter| {
        ledger.create_budget(name, "visits", "user_id", filter, "for the record").unwrap();
    };
    create(BudgetName::whole("visits"), Filter::pure(number("1")).unwrap());
    create(BudgetName::part("visits", "ann"), Filter::pure(number("0.5")).unwrap());
    create(BudgetName::whole("zcdp"), Filter::zcdp(number("1"), number("1e-6")).unwrap());
    create(BudgetName::whole("gaussian"), Filter::gaussian(number("1"), number("1e-6")).unwrap());
    create(BudgetName::whole("renyi"), Filter::renyi(number("1"), number("1e-6")).unwrap());
    ledger.introduce_key(Hash::of(b"not a key anybody has"), "signs from here on").unwrap();
    for budget in ["visits", "zcdp", "gaussian", "renyi"] {
        let Charged::Now(receipt) =
            ledger.charge(request(budget, if budget == "visits" { "first" } else { budget })).unwrap()
        else {
            unreachable!()
        };
        ledger.record(receipt, b"42").unwrap();
    }
    let Charged::Now(_lost) = ledger.charge(request("visits", "unanswered").data_version("old")).unwrap()
    else {
        unreachable!()
    };
    ledger
        .raise_budget(BudgetName::whole("visits"), Filter::pure(number("2")).unwrap(), "another year")
        .unwrap();
    ledger.close_budget(BudgetName::whole("gaussian"), "the project is over").unwrap();
    drop(ledger);
    fs::remove_file(location.anchor()).unwrap();
    drop(Ledger::adopt(&location, "moved to another machine", options).unwrap());
    for name in ["db", "db.anchor"] {
        let to = golden(&format!("{format}.{name}"));
        fs::copy(folder.path().join(format!("ledger.{name}")), to).unwrap();
    }
    fs::write(golden(&format!("{format}.jsonl")), entries(&location)).unwrap();
    let meaning = serde_json::to_string_pretty(&meaning(&location)).unwrap();
    fs::write(golden(&format!("{format}.json")), meaning + "\n").unwrap();
}
