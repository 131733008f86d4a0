//! `demur account` as people and programs use it.

#![expect(clippy::unwrap_used, reason = "a failing test may fail anywhere")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};

use insta_cmd::assert_cmd_snapshot;
use serde_json::Value;

/// A composition that is known to many digits, and its ε at δ = 1e-6.
const SAMPLED: (&str, f64) = ("subsampled(0.01, gaussian(sigma=1))*1000", 2.124_515_171);
const GAUSSIAN: (&str, f64) = ("gaussian(sigma=5)*100", 10.997_151_214_22);

fn demur(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_demur"));
    command.arg("account").args(arguments).env("NO_COLOR", "1").env("COLUMNS", "100");
    command
}

fn run(arguments: &[&str]) -> String {
    let output: Output = demur(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&run(&[arguments, &["--format", "json"]].concat())).unwrap()
}

/// What a batch answers to these lines.
fn batch(questions: &str) -> Vec<Value> {
    let mut child = demur(&["batch"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(questions.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn double(value: &Value) -> f64 {
    value.as_f64().or_else(|| value.as_str()?.parse().ok()).unwrap()
}

/// Both bounds enclose the known value, and closely.
fn assert_encloses(answer: &Value, name: &str, known: f64) {
    let (lower, upper) = (double(&answer[&format!("{name}_lower")]), double(&answer[name]));
    assert!(lower <= upper && (upper - known).abs() < 1e-8 && (lower - known).abs() < 1e-8, "{answer}");
}

macro_rules! snapshot {
    ($name:expr, $arguments:expr) => {
        assert_cmd_snapshot!($name, demur(&$arguments).stdin(Stdio::null()))
    };
}

#[test]
fn known_compositions_have_their_known_cost() {
    for (losses, known) in [SAMPLED, GAUSSIAN] {
        let answer = json(&["compose", losses, "--delta", "1e-6"]);
        assert_encloses(&answer, "epsilon", known);
        assert_eq!((double(&answer["delta"]), double(&answer["delta_lower"])), (1e-6, 1e-6));
        assert!(!answer["method"].as_str().unwrap().is_empty());
        let epsilon = answer["epsilon"].to_string();
        let back = json(&["compose", losses, "--epsilon", &epsilon]);
        assert!((double(&back["delta"]) / 1e-6 - 1.0).abs() < 1e-6);
        assert_eq!(back["epsilon"], answer["epsilon"]);
    }
}

#[test]
fn tables_round_the_cost_up() {
    let table = run(&["compose", GAUSSIAN.0, "--delta", "1e-6"]);
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(rows[0], "epsilon  10.99716");
    assert_eq!(rows[1], "delta    1e-6");
    assert!(rows[2].starts_with("method   ") && rows[3].starts_with("proven   ε "));
    assert_eq!(rows[4], "losses   gaussian(variance=25, sensitivity=1)*100");
}

#[test]
fn what_was_given_comes_back_unchanged() {
    let text = run(&["compose", GAUSSIAN.0, "--delta", "0.000001000", "--format", "json"]);
    assert!(text.contains("\"delta\": 0.000001000,") && text.contains("\"delta_lower\": 0.000001000,"));
}

#[test]
fn losses_come_from_files_and_from_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let loss = r#"{"mechanism":"composed","parts":[{"loss":{"mechanism":"gaussian","variance":"25","l2_squared":"1"},"count":100}]}"#;
    for (name, text) in [("loss.json", loss), ("loss.txt", "gaussian(sigma=5)\n  * 100\n")] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let answer = json(&["compose", "--file", path.to_str().unwrap(), "--delta", "1e-6"]);
        assert_encloses(&answer, "epsilon", GAUSSIAN.1);
    }
    let mut child = demur(&["compose", "--file", "-", "--delta", "1e-6", "--format", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(loss.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_encloses(&serde_json::from_slice(&output.stdout).unwrap(), "epsilon", GAUSSIAN.1);
}

#[test]
fn bad_input_is_answered_with_a_sentence_and_exit_code_2() {
    snapshot!("sigma_zero", ["compose", "gaussian(sigma=0)", "--delta", "1e-6"]);
    snapshot!("rate_large", ["compose", "subsampled(1.5, gaussian(5))", "--delta", "1e-6"]);
    snapshot!("count_huge", ["compose", "gaussian(5)*1e30", "--delta", "1e-6"]);
    snapshot!("unbalanced", ["compose", "gaussian(5", "--delta", "1e-6"]);
    snapshot!("both", ["compose", "gaussian(5)", "--delta", "1e-6", "--epsilon", "1"]);
    snapshot!("neither", ["compose", "gaussian(5)"]);
    snapshot!("no_losses", ["compose", "--delta", "1e-6"]);
    snapshot!("no_method", ["compose", "gaussian(5)", "--delta", "1e-6", "--method", "best"]);
    snapshot!("no_file", ["compose", "--file", "nowhere.json", "--delta", "1e-6"]);
    snapshot!("delta_one", ["compose", "gaussian(5)", "--delta", "1"]);
    snapshot!("delta_word", ["compose", "gaussian(5)", "--delta", "tiny"]);
    snapshot!("epsilon_negative", ["compose", "gaussian(5)", "--epsilon", "-1"]);
    snapshot!("calibrate_sigma", ["calibrate", "gaussian", "--epsilon", "1", "--sigma", "2"]);
    snapshot!("calibrate_no_sigma", ["calibrate", "steps", "--epsilon", "1", "--delta", "1e-6"]);
    snapshot!("calibrate_steps", ["calibrate", "gaussian", "--epsilon", "1", "--steps", "1e30"]);
    snapshot!("calibrate_rate", ["calibrate", "gaussian", "--epsilon", "1", "--sampling-rate", "0"]);
    snapshot!("plot_ending", ["plot", "size", "--out", "size.jpg"]);
    snapshot!("plot_losses", ["plot", "size", "pure(1)"]);
    snapshot!("plot_nothing", ["plot", "profile"]);
}

#[test]
fn no_delta_means_no_epsilon_for_gaussian_noise() {
    let output = demur(&["compose", GAUSSIAN.0, "--delta", "0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("error[") && text.contains("hint: only pure losses"), "{text}");
}

#[test]
fn a_loss_is_worth_something_in_every_currency() {
    let worth = json(&["convert", "gdp(2)", "--delta", "1e-6"]);
    assert_eq!((double(&worth["rho"]), double(&worth["mu"])), (2.0, 2.0));
    assert!(worth.get("pure_epsilon").is_none());
    let orders: Vec<_> = worth["renyi"].as_array().unwrap().iter().map(|row| double(&row["order"])).collect();
    assert_eq!(orders, [2.0, 4.0, 8.0, 16.0, 32.0]);
    for row in worth["renyi"].as_array().unwrap() {
        assert!((double(&row["epsilon"]) / (2.0 * double(&row["order"])) - 1.0).abs() < 1e-9, "{row}");
    }
    let pure = json(&["convert", "laplace(scale=2)*3", "--delta", "1e-6"]);
    assert_eq!(double(&pure["pure_epsilon"]), 1.5);
}

#[test]
fn explanations_show_every_method() {
    let text = run(&["explain", SAMPLED.0, "--delta", "1e-6"]);
    for name in ["closed-form", "inversion", "grid", "renyi", "zcdp", "advanced", "basic"] {
        assert!(text.lines().any(|line| line.trim_start().starts_with(name)), "{name} in {text}");
    }
    assert!(text.contains("tightness") && text.contains("with a person removed"));
    let text = run(&["explain", "group(3, gaussian(sigma=5))*10", "--epsilon", "1"]);
    assert!(text.contains("beside the textbook") && text.contains("the formula says δ = 0.0202"), "{text}");
}

#[test]
fn batches_answer_every_line() {
    let answers = batch(concat!(
        "{\"losses\":\"subsampled(0.01, gaussian(sigma=1))*1000\",\"delta\":\"1e-6\",\"id\":\"a\"}\n",
        "{\"losses\":\"gaussian(sigma=5)*100\",\"delta\":1e-6,\"id\":2}\r\n",
        "\n",
        "{\"losses\":\"gaussian(sigma=5)*100\",\"epsilon\":\"1\"}\n",
        "nonsense\n",
        "{\"losses\":\"gaussian(sigma=5)*100\",\"order\":\"8\"}\n",
        "{\"losses\":\"gaussian(sigma=0)\",\"delta\":\"1e-6\"}\n",
        "{\"losses\":{\"mechanism\":\"composed\",\"parts\":[{\"loss\":{\"mechanism\":\"gaussian\",",
        "\"variance\":\"25\",\"l2_squared\":\"1\"},\"count\":100}]},\"delta\":\"0.000001\"}",
    ));
    assert_eq!(answers.len(), 7);
    assert_encloses(&answers[0], "epsilon", SAMPLED.1);
    assert_eq!((&answers[0]["id"], &answers[1]["id"]), (&Value::from("a"), &Value::from(2)));
    assert_encloses(&answers[1], "epsilon", GAUSSIAN.1);
    assert_encloses(&answers[2], "delta", 0.509_861_660_05);
    assert_eq!(answers[3]["code"], "cli.json");
    let renyi = &answers[4];
    assert_encloses(renyi, "renyi", 16.0);
    assert_eq!(renyi["renyi"], renyi["renyi_remove"]);
    assert_eq!(renyi["renyi"], renyi["renyi_add"]);
    assert_eq!(answers[5]["code"], "core.loss.parameter");
    assert_encloses(&answers[6], "epsilon", GAUSSIAN.1);
    assert!(answers[0]["epsilon"].is_string() && renyi["renyi_lower"].is_string());
}

#[test]
fn a_batch_answers_before_the_next_question() {
    let mut child = demur(&["batch"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for id in 0..3 {
        writeln!(input, "{{\"losses\":\"gaussian(sigma=5)*100\",\"delta\":\"1e-6\",\"id\":{id}}}").unwrap();
        input.flush().unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["id"], id);
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn pictures_are_pictures() {
    let folder = tempfile::tempdir().unwrap();
    for picture in ["profile", "tradeoff", "size"] {
        let losses: &[&str] = if picture == "size" { &[] } else { &[GAUSSIAN.0] };
        for (ending, start) in [("svg", &b"<"[..]), ("png", &b"\x89PNG"[..])] {
            let path = folder.path().join(format!("{picture}.{ending}"));
            let out = ["--out", path.to_str().unwrap()];
            assert_eq!(run(&[&["plot", picture][..], losses, &out].concat()), "");
            let drawn = std::fs::read(&path).unwrap();
            assert!(drawn.starts_with(start) && drawn.len() > 1000, "{picture}");
        }
    }
    snapshot!("plot_size", ["plot", "size"]);
    assert!(run(&["plot", "profile", GAUSSIAN.0]).contains("Privacy profile"));
}

#[test]
fn help_is_a_manual() {
    for command in ["compose", "calibrate", "convert", "explain", "plot", "batch"] {
        let text = run(&[command, "--help"]);
        assert!(text.contains("Example") && text.contains(&format!("demur account {command}")), "{command}");
    }
    assert!(run(&["--help"]).contains("subsampled(rate, loss)"));
}
