//! `demur noise` as people and programs use it.

#![expect(clippy::unwrap_used, reason = "a failing test may fail anywhere")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

use insta_cmd::assert_cmd_snapshot;

fn demur(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_demur"));
    command.arg("noise").args(arguments).env("NO_COLOR", "1").env("COLUMNS", "100");
    command
}

fn run(arguments: &[&str]) -> String {
    let output: Output = demur(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A folder with one file in it, gone when it is dropped.
fn file(name: &str, text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), text).unwrap();
    folder
}

/// Released numbers differ from run to run; everything else is pinned.
fn released_hidden(settings: &mut insta::Settings) {
    settings.add_filter(r"(?m)^(released|answer|chosen)(\s+).*$", "$1$2[RANDOM]");
}

macro_rules! snapshot {
    ($name:expr, $arguments:expr) => {
        let mut settings = insta::Settings::clone_current();
        released_hidden(&mut settings);
        settings.bind(|| assert_cmd_snapshot!($name, demur(&$arguments)));
    };
}

#[test]
fn tables_say_what_was_done_and_what_it_cost() {
    snapshot!("laplace", ["laplace", "--value", "42", "--sensitivity", "1", "--epsilon", "0.5"]);
    snapshot!(
        "laplace_real",
        ["laplace", "--value", "42.5", "--sensitivity", "1", "--epsilon", "0.5", "--count", "3"]
    );
    snapshot!("laplace_vector", ["laplace", "--values", "1,-2,3", "--sensitivity", "1", "--epsilon", "0.1"]);
    snapshot!(
        "gaussian",
        ["gaussian", "--value", "42", "--sensitivity", "1", "--epsilon", "0.5", "--delta", "1e-6"]
    );
    snapshot!(
        "gaussian_classic",
        [
            "gaussian",
            "--value",
            "4.2",
            "--sensitivity",
            "1",
            "--epsilon",
            "0.5",
            "--delta",
            "1e-6",
            "--calibration",
            "classic"
        ]
    );
    snapshot!(
        "truncated",
        ["truncated-laplace", "--value", "42", "--sensitivity", "1", "--epsilon", "1", "--delta", "1e-6"]
    );
    snapshot!("response", ["randomized-response", "--truth", "yes", "--epsilon", "1"]);
    snapshot!("response_k", ["randomized-response", "--truth", "3 of 5", "--epsilon", "1", "--count", "2"]);
    snapshot!("two_coins", ["randomized-response", "--truth", "no", "--two-coins"]);
    snapshot!("estimate", ["estimate", "--seen", "400", "--total", "1000", "--two-coins"]);
    snapshot!(
        "compare",
        ["compare", "--dimensions", "1,10,100", "--epsilon", "1", "--delta", "1e-6", "--plot"]
    );
}

#[test]
fn bad_input_is_answered_with_a_sentence_and_exit_code_2() {
    let laplace = |rest: [&'static str; 6]| [&["laplace"], rest.as_slice()].concat();
    for (name, epsilon) in
        [("nan", "nan"), ("negative", "-1"), ("zero", "0"), ("infinite", "inf"), ("huge", "1e20")]
    {
        snapshot!(
            format!("epsilon_{name}"),
            laplace(["--value", "42", "--sensitivity", "1", "--epsilon", epsilon])
        );
    }
    for (name, sensitivity) in [("overflow", "1e400"), ("negative", "-3"), ("word", "many")] {
        let arguments = laplace(["--value", "42", "--epsilon", "1", "--sensitivity", sensitivity]);
        snapshot!(format!("sensitivity_{name}"), arguments);
    }
    snapshot!("value_nan", laplace(["--value", "nan", "--sensitivity", "1", "--epsilon", "1"]));
    snapshot!("value_huge", laplace(["--value", "1e30", "--sensitivity", "1", "--epsilon", "1"]));
    snapshot!("scale_huge", laplace(["--value", "1", "--sensitivity", "1", "--epsilon", "1e-30"]));
    snapshot!(
        "count_zero",
        ["laplace", "--value", "1", "--sensitivity", "1", "--epsilon", "1", "--count", "0"]
    );
    snapshot!("no_value", ["laplace", "--sensitivity", "1", "--epsilon", "1"]);
    snapshot!(
        "delta_large",
        ["truncated-laplace", "--value", "1", "--sensitivity", "1", "--epsilon", "1", "--delta", "0.6"]
    );
    snapshot!(
        "classic_range",
        [
            "gaussian",
            "--value",
            "1",
            "--sensitivity",
            "1",
            "--epsilon",
            "2",
            "--delta",
            "1e-6",
            "--calibration",
            "classic"
        ]
    );
    snapshot!(
        "no_calibration",
        [
            "gaussian",
            "--value",
            "1",
            "--sensitivity",
            "1",
            "--epsilon",
            "2",
            "--delta",
            "1e-6",
            "--calibration",
            "best"
        ]
    );
    snapshot!(
        "no_file",
        ["exponential", "--scores", "no-such-file.csv", "--sensitivity", "1", "--epsilon", "1"]
    );
    snapshot!("no_answer", ["randomized-response", "--truth", "6 of 5", "--epsilon", "1"]);
    snapshot!(
        "plot_ending",
        [
            "compare",
            "--dimensions",
            "1",
            "--epsilon",
            "1",
            "--delta",
            "1e-6",
            "--plot",
            "errors.jpg",
            "--format",
            "csv"
        ]
    );
}

#[test]
fn malformed_files_are_refused_by_line_without_showing_it() {
    let refused = |name: &str, text: &str, arguments: &[&str]| {
        let folder = file("data.csv", text);
        assert_cmd_snapshot!(name, demur(arguments).current_dir(folder.path()));
    };
    for (name, text) in [
        ("scores_one_field", "red,12\nblue\n"),
        ("scores_no_number", "red,12\nblue,secret\n"),
        ("scores_not_finite", "red,inf\n"),
        ("scores_empty", "candidate,score\n"),
    ] {
        refused(name, text, &["exponential", "--scores", "data.csv", "--sensitivity", "1", "--epsilon", "1"]);
    }
    let visits = "day,visits\nmonday,10\ntuesday,eleven\n";
    let laplace = |column| {
        ["laplace", "--values-file", "data.csv", "--column", column, "--sensitivity", "1", "--epsilon", "1"]
    };
    refused("column_missing", visits, &laplace("guests"));
    refused("column_text", visits, &laplace("visits"));
}

#[test]
fn lines_hold_one_number_each_and_nothing_else() {
    let text = run(&[
        "laplace",
        "--value",
        "7",
        "--sensitivity",
        "1",
        "--epsilon",
        "1",
        "--count",
        "5000",
        "--format",
        "lines",
    ]);
    let values: Vec<i64> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(values.len(), 5000);
    // Mean of 5000 draws of standard deviation 1.36: off by 0.2 once in 10²⁴ runs.
    let mean = values.iter().sum::<i64>() as f64 / 5000.0;
    assert!((mean - 7.0).abs() < 0.2, "{mean}");
}

#[test]
fn csv_reads_back() {
    let folder = file("visits.csv", "day,visits\nmonday,10\ntuesday,20\n");
    let path = folder.path().join("visits.csv").display().to_string();
    let text = run(&[
        "laplace",
        "--values-file",
        &path,
        "--column",
        "visits",
        "--sensitivity",
        "1",
        "--epsilon",
        "1",
        "--format",
        "csv",
    ]);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    assert_eq!(reader.headers().unwrap(), vec!["index", "released"]);
    let rows: Vec<(u32, i64)> = reader.deserialize().map(Result::unwrap).collect();
    assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn json_says_everything_and_rounds_nothing() {
    let text = run(&[
        "gaussian",
        "--values",
        "1,2.5",
        "--sensitivity",
        "1",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        "--count",
        "2",
        "--format",
        "json",
    ]);
    let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["released"].as_array().unwrap().len(), 4);
    assert_eq!(answer["total_epsilon"], 2.0);
    // Multiples of 2^exponent, exactly: the released decimals must divide by the step.
    let step = 2f64.powi(answer["lattice_exponent"].as_i64().unwrap() as i32);
    for released in answer["released"].as_array().unwrap() {
        assert_eq!((released.as_f64().unwrap() / step).fract(), 0.0);
    }
    let loss: demur_core::PrivacyLoss = serde_json::from_value(answer["loss"].clone()).unwrap();
    assert!(loss.to_string().ends_with("*2"), "{loss}");
}

#[test]
fn scores_are_read_from_standard_input() {
    let mut child = demur(&[
        "exponential",
        "--scores",
        "-",
        "--sensitivity",
        "1",
        "--epsilon",
        "50",
        "--format",
        "lines",
    ])
    .stdin(Stdio::piped())
    .stdout(Stdio::piped())
    .spawn()
    .unwrap();
    child.stdin.take().unwrap().write_all(b"candidate,score\nred,1000\nblue,1\n").unwrap();
    let output = child.wait_with_output().unwrap();
    // blue has probability e^(−25·999).
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "red\n");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child = demur(&[
        "laplace",
        "--value",
        "1",
        "--sensitivity",
        "1",
        "--epsilon",
        "1",
        "--count",
        "3000000",
        "--format",
        "lines",
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn pictures_are_pictures() {
    let folder = tempfile::tempdir().unwrap();
    for (name, start) in [("errors.svg", &b"<"[..]), ("errors.png", &b"\x89PNG"[..])] {
        let path = folder.path().join(name);
        let shown = path.display().to_string();
        run(&["compare", "--dimensions", "1,10,100", "--epsilon", "1", "--delta", "1e-6", "--plot", &shown]);
        let picture = std::fs::read(path).unwrap();
        assert!(picture.starts_with(start) && picture.len() > 1000);
    }
}

#[test]
fn every_shell_gets_its_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = Command::new(env!("CARGO_BIN_EXE_demur")).args(["completions", shell]).output().unwrap();
        assert!(output.status.success());
        assert!(String::from_utf8(output.stdout).unwrap().contains("laplace"));
    }
}

#[test]
fn help_is_a_manual() {
    for command in [
        "laplace",
        "gaussian",
        "truncated-laplace",
        "randomized-response",
        "estimate",
        "exponential",
        "compare",
    ] {
        let text = run(&[command, "--help"]);
        assert!(text.contains("Example") && text.contains(&format!("demur noise {command}")), "{command}");
    }
}
