//! Synthetic data as newcomers make it, in a copy of the example project.

#![expect(clippy::unwrap_used, reason = "a failing test may fail anywhere")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

fn house() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/visits");
    for name in ["demur.toml", "visits.csv"] {
        std::fs::copy(example.join(name), folder.path().join(name)).unwrap();
    }
    folder
}

fn output(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_demur"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command.env("NO_COLOR", "1").env("USER", "analyst").env_remove("DEMUR_LEDGER").output().unwrap()
}

fn run(folder: &Path, arguments: &[&str]) -> String {
    let output = output(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What a wrong command says, after its exit code was seen.
fn complaint(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = output(folder, arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty() && said.starts_with("error"), "{arguments:?}: {said}");
    said
}

fn spent(folder: &Path) -> f64 {
    let shown = output(folder, &["budget", "show", "visits", "--format", "json"]);
    let Ok(value) = serde_json::from_slice::<Value>(&shown.stdout) else { return 0.0 };
    let budget = value.as_array().map_or(&value, |all| &all[0]);
    match &budget["spent_epsilon"] {
        Value::String(text) => text.parse().unwrap(),
        number => number.as_f64().unwrap(),
    }
}

#[test]
fn a_model_is_paid_for_once_and_everything_made_of_it_is_free() {
    let house = house();
    let folder = house.path();
    let dry = run(folder, &["synth", "fit", "visits", "--epsilon", "2", "--dry-run"]);
    assert!(dry.contains("what values `department` has") && dry.contains("the model, by aim"), "{dry}");
    assert_eq!(spent(folder), 0.0);

    let fit = ["synth", "fit", "visits", "--epsilon", "2", "--method", "mst", "-o", "visits.model"];
    run(folder, &fit);
    let paid = spent(folder);
    assert!(paid > 0.0);
    run(folder, &fit);
    assert!(run(folder, &["certificate", "verify", "visits.model"]).contains("visits"));

    let csv = run(folder, &["synth", "sample", "visits.model", "-n", "500", "-o", "-"]);
    assert_eq!(csv.lines().next(), Some("day,region,department,age,nights,cost"));
    assert_eq!(csv.lines().count(), 501);
    run(folder, &["synth", "sample", "visits.model", "-n", "500", "-o", "rows.parquet"]);
    assert!(std::fs::read(folder.join("rows.parquet")).unwrap().starts_with(b"PAR1"));

    let sql = "SELECT region, COUNT(*) AS visits FROM visits GROUP BY region ORDER BY region";
    let told: Value =
        serde_json::from_str(&run(folder, &["synth", "query", "visits.model", sql, "--format", "json"]))
            .unwrap();
    let rows = told["rows"].as_array().unwrap();
    assert!(
        rows.iter().any(|row| row["region"] == "north" && row["visits"].as_f64().unwrap() > 0.0),
        "{told}"
    );
    run(folder, &["synth", "query", "visits.model", sql, "-o", "table.csv"]);
    assert!(std::fs::read_to_string(folder.join("table.csv")).unwrap().starts_with("region,visits\n"));

    run(folder, &["synth", "report", "visits.model", "-o", "free.html"]);
    assert_eq!(spent(folder), paid, "nothing after the model may cost anything");

    let report =
        ["synth", "report", "visits.model", "--epsilon", "1", "--guess", "region", "-o", "paid.html"];
    run(folder, &report);
    assert!(spent(folder) > paid);
    let page = std::fs::read_to_string(folder.join("paid.html")).unwrap();
    assert!(page.contains("triples, mean") && page.contains("guesses right"), "{page}");
}

#[test]
fn mistakes_get_a_sentence_and_cost_nothing() {
    let house = house();
    let folder = house.path();
    std::fs::write(folder.join("noise.model"), "not a model").unwrap();
    let fit = |more: &[&'static str]| {
        let mut words = vec!["synth", "fit", "visits", "--epsilon", "1", "-o", "x.model"];
        words.extend(more);
        words
    };
    for (arguments, code, words) in [
        (vec!["synth", "fit", "visit", "--epsilon", "1", "-o", "x.model"], 2, "visit"),
        (vec!["synth", "fit", "visits", "--epsilon", "0", "-o", "x.model"], 2, "epsilon"),
        (vec!["synth", "fit", "visits", "--epsilon", "50", "-o", "x.model"], 1, "at most ε = 2"),
        (fit(&["--columns", "agee"]), 2, "agee"),
        (fit(&["--bins", "1"]), 2, "ranges"),
        (fit(&["--workload", "age,agee"]), 2, "agee"),
        (fit(&["--workload", "age:x"]), 2, "weight"),
        (fit(&["--delta", "0"]), 2, "δ"),
        (fit(&["--rows-per-unit", "0"]), 2, "at least one row"),
        (fit(&["--method", "blr", "--columns", "region"]), 2, "public number of rows"),
        (fit(&["--impossible", "age <"]), 2, "cannot be asked"),
        (vec!["synth", "sample", "none.model", "-o", "-"], 2, "none.model"),
        (vec!["synth", "sample", "noise.model", "-o", "-"], 2, "error"),
        (vec!["synth", "query", "noise.model", "SELECT COUNT(*) FROM t"], 2, "error"),
        (vec!["synth", "growth", "--epsilon", "-1"], 2, "error"),
    ] {
        let said = complaint(folder, &arguments, code);
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    assert_eq!(spent(folder), 0.0);
    assert!(!folder.join("x.model").exists());
}

#[test]
fn growth_is_shown_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["synth", "growth", "--rows", "100,1000", "--runs", "2", "--plot", "growth.svg"];
    let shown = run(folder.path(), &words);
    assert!(shown.lines().count() == 3 && shown.contains("noisy histogram"), "{shown}");
    assert!(std::fs::read_to_string(folder.path().join("growth.svg")).unwrap().contains("<svg"));
}
