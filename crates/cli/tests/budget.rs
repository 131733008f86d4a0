//! `demur budget` as owners and programs use it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failing test may fail anywhere")]

mod project;

use std::path::Path;
use std::process::{Command, Stdio};

use demur_ledger::{Charged, Ledger, Location, Options, Request};
use insta_cmd::assert_cmd_snapshot;
use project::{demur, hiding, json, run};
use serde_json::Value;
use tempfile::TempDir;

/// A folder that is gone when it is dropped.
fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Charges these losses, one after the other, and records an answer to each.
fn charge(folder: &Path, budget: &str, requester: &str, losses: &[&str]) {
    let place = Location::Sqlite(folder.join(".demur/ledger.db"));
    let ledger = Ledger::open(&place, Options::default()).unwrap();
    for loss in losses {
        let request = Request::new(budget, requester, "how many?", loss.parse().unwrap());
        let Charged::Now(receipt) = ledger.charge(request).unwrap() else { panic!("asked before") };
        ledger.record(receipt, b"42").unwrap();
    }
}

/// A budget of each kind, with some spending.
fn household() -> TempDir {
    let folder = folder();
    let at = folder.path();
    run(at, &["budget", "create", "visits", "--epsilon", "1", "--unit", "user_id"]);
    run(at, &["budget", "create", "images", "--epsilon", "1", "--delta", "1e-6", "--reason", "approved"]);
    run(at, &["budget", "create", "images", "--epsilon", "0.2", "--requester", "alice"]);
    charge(at, "visits", "bob", &["pure(0.1)", "pure(0.1)", "pure(0.1)"]);
    charge(at, "images", "alice", &["pure(0.05)"]);
    charge(at, "images", "bob", &["gaussian(sigma=50)", "approx(epsilon=0.01, delta=1e-9)"]);
    folder
}

/// Hashes, times and places.
macro_rules! snapshot {
    ($name:expr, $command:expr) => {
        let places = r"(?:/[^/\s:`]+)+/(nowhere|notes|\.demur|demur\.toml)";
        let days = r"\b20\d\d-\d\d-\d\d\b";
        hiding(&[(r"\b[0-9a-f]{12}…", "[HASH]…"), (days, "[DAY]"), (places, "[FOLDER]/$1")])
            .bind(|| assert_cmd_snapshot!($name, $command));
    };
}

#[test]
fn budgets_are_created_shown_raised_and_closed() {
    let folder = folder();
    let at = folder.path();
    snapshot!("create", demur(at, &["budget", "create", "visits", "--epsilon", "1"]));
    snapshot!(
        "create_zcdp",
        demur(at, &["budget", "create", "images", "--epsilon", "2", "--delta", "1e-6", "--unit", "user_id"])
    );
    snapshot!(
        "create_part",
        demur(
            at,
            &[
                "budget",
                "create",
                "images",
                "--epsilon",
                "1/3",
                "--requester",
                "alice",
                "--reason",
                "a trial"
            ]
        )
    );
    charge(at, "visits", "alice", &["pure(0.25)"]);
    snapshot!(
        "raise",
        demur(at, &["budget", "raise", "visits", "--epsilon", "2", "--reason", "a second study"])
    );
    snapshot!("close", demur(at, &["budget", "close", "visits", "--reason", "the study is over"]));
    snapshot!(
        "close_part",
        demur(
            at,
            &["budget", "close", "images", "--requester", "alice", "--reason", "left", "--format", "json"]
        )
    );
}

#[test]
fn tables_are_short_and_show_what_is_spent() {
    let household = household();
    let at = household.path();
    snapshot!("show_all", demur(at, &["budget", "show"]));
    snapshot!("show_pure", demur(at, &["budget", "show", "visits"]));
    snapshot!("show_zcdp", demur(at, &["budget", "show", "images"]));
    snapshot!("show_part", demur(at, &["budget", "show", "images", "--requester", "alice"]));
    snapshot!("show_csv", demur(at, &["budget", "show", "--format", "csv"]));
    snapshot!("show_json", demur(at, &["budget", "show", "images", "--format", "json"]));
    snapshot!("show_plot", demur(at, &["budget", "show", "visits", "--plot"]));
}

#[test]
fn ten_tenths_are_one_and_the_eleventh_is_too_much() {
    let folder = folder();
    let at = folder.path();
    run(at, &["budget", "create", "visits", "--epsilon", "1"]);
    charge(at, "visits", "alice", &["pure(0.1)"; 10]);
    let text = run(at, &["budget", "show", "visits", "--format", "json"]);
    assert!(text.contains("\"spent_epsilon\": 1,") && text.contains("\"remaining_epsilon\": 0,"), "{text}");
    let budget = json(at, &["budget", "show", "visits"]);
    assert_eq!((&budget["releases"], &budget["charges"]), (&Value::from(10), &Value::from(10)));
    let list = json(at, &["budget", "show"]);
    assert_eq!(list.as_array().unwrap(), &[budget]);
}

/// What the figures of a budget with a δ mean: spent is rounded up, what remains down, and both make the whole.
#[test]
fn every_filter_has_figures() {
    let folder = folder();
    let at = folder.path();
    for filter in ["zcdp", "gaussian", "renyi"] {
        run(at, &["budget", "create", filter, "--epsilon", "1", "--delta", "1e-6", "--filter", filter]);
        let before = json(at, &["budget", "show", filter]);
        assert_eq!(
            (&before["spent_epsilon"], &before["remaining_epsilon"]),
            (&Value::from(0), &Value::from(1))
        );
        charge(at, filter, "alice", &["gaussian(sigma=50)"; 20]);
        let after = json(at, &["budget", "show", filter]);
        let double = |name: &str| after[name].as_f64().unwrap();
        let (spent, left) = (double("spent_epsilon"), double("remaining_epsilon"));
        assert!(0.3 < spent && spent < 0.6, "{filter}: {spent}");
        assert!((spent + left - 1.0).abs() < 1e-12 && spent + left <= 1.0, "{filter}");
        assert_eq!(after["filter"], filter);
        assert!(after["head"].as_str().unwrap().len() == 64 && !after["closed"].as_bool().unwrap());
    }
}

#[test]
fn refusals_exit_with_1_and_mistakes_with_2() {
    let household = household();
    let at = household.path();
    let because = ["--reason", "why not"];
    let with = |words: &[&'static str]| [words, &because].concat();
    snapshot!("lowered", demur(at, &with(&["budget", "raise", "visits", "--epsilon", "0.5"])));
    snapshot!("raise_same", demur(at, &with(&["budget", "raise", "visits", "--epsilon", "1"])));
    snapshot!(
        "raise_delta",
        demur(at, &with(&["budget", "raise", "visits", "--epsilon", "2", "--delta", "1e-6"]))
    );
    snapshot!("raise_no_reason", demur(at, &["budget", "raise", "visits", "--epsilon", "2"]));
    snapshot!(
        "raise_empty_reason",
        demur(at, &["budget", "raise", "visits", "--epsilon", "2", "--reason", " "])
    );
    snapshot!("raise_unknown", demur(at, &with(&["budget", "raise", "visit", "--epsilon", "2"])));
    run(at, &with(&["budget", "close", "visits"]));
    snapshot!("closed_twice", demur(at, &with(&["budget", "close", "visits"])));
    snapshot!("raise_closed", demur(at, &with(&["budget", "raise", "visits", "--epsilon", "2"])));
    snapshot!("create_closed", demur(at, &["budget", "create", "visits", "--epsilon", "2"]));
    snapshot!("create_again", demur(at, &["budget", "create", "images", "--epsilon", "2"]));
    snapshot!(
        "part_of_nothing",
        demur(at, &["budget", "create", "logs", "--epsilon", "1", "--requester", "alice"])
    );
    snapshot!("unknown", demur(at, &["budget", "show", "visit"]));
    snapshot!("unknown_part", demur(at, &["budget", "show", "images", "--requester", "carol"]));
    snapshot!("plot_which", demur(at, &["budget", "show", "--plot"]));
    snapshot!("plot_ending", demur(at, &["budget", "show", "images", "--plot=images.jpg"]));
}

#[test]
fn numbers_nobody_can_mean_are_refused_and_make_no_ledger() {
    let folder = folder();
    let at = folder.path();
    for (name, epsilon) in [("zero", "0"), ("nan", "nan"), ("negative", "-1"), ("huge", "1e20")] {
        snapshot!(
            format!("epsilon_{name}"),
            demur(at, &["budget", "create", "visits", "--epsilon", epsilon])
        );
    }
    for (name, delta) in [("zero", "0"), ("one", "1"), ("word", "tiny")] {
        let arguments = ["budget", "create", "visits", "--epsilon", "1", "--delta", delta];
        snapshot!(format!("delta_{name}"), demur(at, &arguments));
    }
    let pure = ["budget", "create", "visits", "--epsilon", "1", "--delta", "1e-6", "--filter", "pure"];
    snapshot!("pure_with_delta", demur(at, &pure));
    snapshot!(
        "zcdp_without_delta",
        demur(at, &["budget", "create", "visits", "--epsilon", "1", "--filter", "zcdp"])
    );
    snapshot!("no_epsilon", demur(at, &["budget", "create", "visits"]));
    snapshot!("no_name", demur(at, &["budget", "create", "", "--epsilon", "1"]));
    assert_eq!(std::fs::read_dir(at).unwrap().count(), 0);
}

#[test]
fn places_without_a_ledger_are_named() {
    let folder = folder();
    let at = folder.path();
    std::fs::write(at.join("notes.txt"), "remember the milk").unwrap();
    snapshot!("no_ledger", demur(at, &["budget", "show"]));
    snapshot!("nowhere", demur(at, &["budget", "show"]).env("DEMUR_LEDGER", at.join("nowhere.db")));
    snapshot!("bad_url", demur(at, &["budget", "show", "--ledger", "mysql://server/ledger"]));
    snapshot!("bad_variable", demur(at, &["budget", "show"]).env("DEMUR_LEDGER", "sqlite:"));
    snapshot!("not_a_ledger", demur(at, &["budget", "show", "--ledger", "notes.txt"]));
    snapshot!(
        "create_in_notes",
        demur(at, &["budget", "create", "a", "--epsilon", "1", "--ledger", "notes.txt"])
    );
    assert_eq!(std::fs::read_to_string(at.join("notes.txt")).unwrap(), "remember the milk");
    assert_eq!(std::fs::read_dir(at).unwrap().count(), 1);
    std::fs::write(at.join("demur.toml"), "").unwrap();
    std::fs::create_dir_all(at.join("deep")).unwrap();
    snapshot!("no_ledger_in_project", demur(&at.join("deep"), &["budget", "show"]));
}

/// It may say whose privacy counts, and that must not be missed.
#[test]
fn a_project_that_cannot_be_read_makes_no_budget() {
    let folder = folder();
    let at = folder.path();
    std::fs::write(at.join("demur.toml"), "[budget]\nname = \"visits\nepsilon = 1\n").unwrap();
    snapshot!("create-unreadable-project", demur(at, &["budget", "create", "visits", "--epsilon", "1"]));
    assert!(!at.join(".demur").exists());
    let said = ["budget", "create", "visits", "--epsilon", "1", "--dataset", "visits", "--unit", "user_id"];
    assert!(run(at, &said).contains("every user_id of visits"));
}

#[test]
fn the_ledger_is_found_from_any_folder_of_a_project() {
    let folder = folder();
    let at = folder.path();
    let deep = at.join("a").join("b");
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(at.join("demur.toml"), "[budget]\nname = \"visits\"\n").unwrap();
    run(&deep, &["budget", "create", "visits", "--epsilon", "1"]);
    assert!(at.join(".demur/ledger.db").exists());
    assert_eq!(json(at, &["budget", "show", "visits"])["epsilon"], 1);
    let other = at.join("other.db");
    run(&deep, &["budget", "create", "visits", "--epsilon", "2", "--ledger", other.to_str().unwrap()]);
    let shown =
        demur(at, &["budget", "show", "visits", "--format", "json"]).env("DEMUR_LEDGER", &other).output();
    let shown: Value = serde_json::from_slice(&shown.unwrap().stdout).unwrap();
    assert_eq!(shown["epsilon"], 2);
}

#[test]
fn a_lost_ledger_is_not_made_anew() {
    let household = household();
    let at = household.path();
    std::fs::remove_file(at.join(".demur/ledger.db")).unwrap();
    snapshot!("lost", demur(at, &["budget", "create", "visits", "--epsilon", "1"]));
}

#[test]
fn pictures_are_pictures() {
    let household = household();
    let at = household.path();
    run(
        at,
        &["budget", "raise", "images", "--epsilon", "1.5", "--delta", "1e-5", "--reason", "a second study"],
    );
    for (name, start) in [("spending.svg", &b"<"[..]), ("spending.png", &b"\x89PNG"[..])] {
        run(at, &["budget", "show", "images", &format!("--plot={name}")]);
        let picture = std::fs::read(at.join(name)).unwrap();
        assert!(picture.starts_with(start) && picture.len() > 1000);
    }
    run(at, &["budget", "show", "images", "--requester", "alice", "--plot=alice.svg"]);
}

#[test]
fn many_creations_at_once_make_one_ledger_with_all_budgets() {
    let folder = folder();
    let at = folder.path();
    let children: Vec<_> = (0..16)
        .map(|n| {
            let name = format!("budget-{n}");
            let mut command = demur(at, &["budget", "create", &name, "--epsilon", "1"]);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(json(at, &["budget", "show"]).as_array().unwrap().len(), 16);
}

/// Every command of the README's section on budgets works, in its order.
#[test]
fn the_readme_can_be_typed() {
    let readme = include_str!("../../../README.md");
    let (_, section) = readme.split_once("## Budgets").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let commands: Vec<&str> = section.split('`').filter(|text| text.starts_with("demur ")).collect();
    assert_eq!(commands.len(), 12);
    let folder = folder();
    for command in commands {
        let words: Vec<&str> = command.split('\'').collect();
        let (plain, quoted) = (words[0].split_whitespace().skip(1), words.get(1));
        let mut typed = Command::new(env!("CARGO_BIN_EXE_demur"));
        typed.args(plain).args(quoted).current_dir(folder.path()).env_remove("DEMUR_LEDGER");
        let output = typed.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn help_is_a_manual() {
    let folder = folder();
    for command in ["create", "show", "raise", "close"] {
        let text = run(folder.path(), &["budget", command, "--help"]);
        assert!(text.contains("Example") && text.contains(&format!("demur budget {command}")), "{command}");
    }
    assert!(run(folder.path(), &["budget", "--help"]).contains("never refills"));
}
