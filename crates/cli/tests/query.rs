//! Answers in files, as pictures and in pipes; mistakes that cost nothing.

#![expect(clippy::unwrap_used, reason = "a failing test may fail anywhere")]

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const REGIONS: &str = "SELECT region, COUNT(*) AS n, AVG(cost) AS mean_cost FROM visits GROUP BY region";

fn example() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/visits");
    for name in ["demur.toml", "visits.csv"] {
        std::fs::copy(example.join(name), folder.path().join(name)).unwrap();
    }
    folder
}

fn demur(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_demur"));
    command.current_dir(folder).args(words).stdin(Stdio::null());
    command
}

fn run(folder: &Path, words: &[&str]) -> Output {
    demur(folder, words).output().unwrap()
}

fn ask(folder: &Path, sql: &str, more: &[&str]) -> Output {
    run(folder, &[&["query", sql, "--epsilon", "0.1"], more].concat())
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn charges(folder: &Path) -> usize {
    let log = run(folder, &["ledger", "log"]);
    String::from_utf8(log.stdout)
        .unwrap()
        .lines()
        .filter(|line| line.split_whitespace().nth(3) == Some("charge"))
        .count()
}

#[test]
fn one_answer_is_written_in_every_form_and_charged_once() {
    let folder = example();
    let folder = folder.path();
    let files = ["a.parquet", "a.arrow", "a.feather", "a.csv", "a.json", "a.jsonl", "a.txt"];
    for name in files {
        let output = ask(folder, REGIONS, &["-o", name]);
        assert!(output.status.success() && output.stdout.is_empty(), "{name}: {}", told(&output));
        assert!(told(&output).starts_with(&format!("wrote {name}; ")), "{}", told(&output));
    }
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    assert_eq!((&read("a.parquet")[..4], &read("a.arrow")[..6]), (&b"PAR1"[..], &b"ARROW1"[..]));
    assert_eq!(read("a.arrow"), read("a.feather"));
    let csv = String::from_utf8(read("a.csv")).unwrap();
    assert!(csv.starts_with("region,n,n_low,n_high,mean_cost,mean_cost_low,mean_cost_high\n"), "{csv}");
    assert_eq!((csv.lines().count(), String::from_utf8(read("a.jsonl")).unwrap().lines().count()), (7, 6));
    let document: serde_json::Value = serde_json::from_slice(&read("a.json")).unwrap();
    let first: Vec<&str> = csv.lines().nth(1).unwrap().split(',').collect();
    assert_eq!(
        (document["rows"][0]["region"].as_str(), document["rows"][0]["n"].to_string()),
        (Some(first[0]), first[1].to_owned())
    );
    assert_eq!(charges(folder), 1, "the others were answered from the ledger");
    let drafts = std::fs::read_dir(folder)
        .unwrap()
        .filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().ends_with(".draft"));
    assert_eq!(drafts.count(), 0);
}

#[test]
fn binary_forms_go_into_a_pipe() {
    let folder = example();
    for (form, magic) in [("parquet", &b"PAR1"[..]), ("arrow", b"ARROW1")] {
        let output = ask(folder.path(), REGIONS, &["--format", form]);
        assert!(
            output.stdout.starts_with(magic) && output.stdout.ends_with(magic),
            "{form}: {}",
            told(&output)
        );
    }
}

#[test]
fn what_cannot_be_written_or_drawn_costs_nothing() {
    let folder = example();
    let folder = folder.path();
    std::fs::create_dir(folder.join("taken.csv")).unwrap();
    for (more, code) in [
        (&["-o", "nowhere/a.csv"][..], "cli.file"),
        (&["-o", "taken.csv"], "cli.file"),
        (&["-o", "a.xls"], "cli.format"),
        (&["-o", "a.svg"], "cli.format"),
        (&["--plot", "bar", "-o", "a.pdf"], "cli.plot"),
        (&["--plot", "heat"], "cli.plot"),
        (&["--plot", "bar", "--plot-column", "age"], "cli.plot"),
    ] {
        let output = ask(folder, REGIONS, more);
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        assert!(told(&output).starts_with(&format!("error[{code}]")), "{more:?}: {}", told(&output));
        assert!(told(&output).contains("nothing was charged"), "{}", told(&output));
    }
    assert!(!folder.join(".demur").exists(), "not even a ledger was made");
}

#[test]
fn without_a_project_nothing_is_charged() {
    let folder = tempfile::tempdir().unwrap();
    for place in [&[][..], &["--project", "nowhere"]] {
        for verb in ["query", "explain"] {
            let words = [&[verb, "SELECT COUNT(*) FROM visits", "--epsilon", "0.1"], place].concat();
            let output = run(folder.path(), &words);
            let said = told(&output);
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(
                said.starts_with("error[engine.project]: ") && said.contains("demur init FILE"),
                "{said}"
            );
            // Who explains charges nothing anyway.
            assert_eq!(said.ends_with("  nothing was charged\n"), verb == "query", "{said}");
        }
    }
}

/// Before there is a ledger, after a charge, and where the budget is too small; and nothing of it charges anything or makes a ledger.
#[test]
fn who_explains_says_what_is_left() {
    let folder = example();
    let folder = folder.path();
    let catalog = std::fs::read_to_string(folder.join("demur.toml")).unwrap();
    std::fs::write(folder.join("demur.toml"), catalog.replace("epsilon = 10 ", "epsilon = 0.5 ")).unwrap();
    let explain = |epsilon: &str, form: &str| {
        let sql = "SELECT COUNT(*) FROM visits";
        let output = run(folder, &["explain", sql, "--epsilon", epsilon, "--format", form]);
        assert!(output.status.success(), "{}", told(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let left = |epsilon: &str| explain(epsilon, "table").lines().last().unwrap().to_owned();
    assert_eq!(
        left("0.1").split_whitespace().collect::<Vec<_>>().join(" "),
        "left ε = 0.5 of 0.5: nothing was spent yet"
    );
    assert!(left("2").contains("ε = 0.5 of 0.5: nothing was spent yet; this would be refused"));
    let refused = run(folder, &["query", "SELECT COUNT(*) FROM visits", "--epsilon", "2"]);
    assert_eq!(refused.status.code(), Some(1), "{}", told(&refused));
    assert!(told(&refused).contains("nothing was charged"), "{}", told(&refused));
    assert!(!folder.join(".demur").exists(), "no ledger is made for what is refused");
    assert!(ask(folder, REGIONS, &[]).status.success());
    let enough = left("0.01");
    assert!(enough.starts_with("left ") && enough.ends_with(" of 0.5"), "{enough}");
    let refused = left("0.5");
    assert!(refused.contains(" of 0.5; this would be refused, unless it was answered before: "), "{refused}");
    for (epsilon, suffices) in [("0.01", true), ("0.5", false)] {
        let document: serde_json::Value = serde_json::from_str(&explain(epsilon, "json")).unwrap();
        assert_eq!(document["left"]["suffices"], suffices, "{document}");
        let number = |name: &str| document["left"][name].as_f64().unwrap();
        assert!(number("epsilon") < number("of") && number("of") == 0.5, "{document}");
    }
    assert_eq!(charges(folder), 1);
    assert_eq!(
        run(folder, &["query", "SELECT COUNT(*) FROM visits", "--epsilon", "0.5"]).status.code(),
        Some(1)
    );
}

#[test]
fn pictures_are_drawn_to_files_and_in_characters() {
    let folder = example();
    let folder = folder.path();
    let two = "SELECT region, CASE WHEN age < 18 THEN 'child' ELSE 'grown' END AS life, COUNT(*) AS n FROM visits GROUP BY 1, 2";
    for kind in ["bar", "line", "heat"] {
        for name in ["a.svg", "a.png"] {
            let output = ask(folder, two, &["--plot", kind, "-o", name]);
            assert!(output.status.success(), "{}", told(&output));
            assert!(
                String::from_utf8_lossy(&output.stdout).starts_with("region"),
                "the table is shown as well"
            );
            assert!(std::fs::metadata(folder.join(name)).unwrap().len() > 1000);
        }
        let output = ask(folder, two, &["--plot", kind]);
        let drawn = String::from_utf8(output.stdout).unwrap();
        assert!(drawn.contains("n by region and life") && !drawn.contains('\u{1b}'), "{drawn}");
    }
    let svg = std::fs::read_to_string(folder.join("a.svg")).unwrap();
    assert!(svg.contains("islands") && svg.contains("grown") && svg.contains("95 % interval"), "{svg}");
}

#[test]
fn mistakes_show_their_place_in_the_question() {
    let folder = example();
    let output =
        ask(folder.path(), "SELECT region,\n       AVG(nigths) AS stay\nFROM visits GROUP BY region", &[]);
    let expected = "\
error[plan.meaning]: there is no column `nigths`
  2 |        AVG(nigths) AS stay
    |            ^^^^^^
  hint: did you mean `nights`? There are: age, cost, day, department, nights, patient_id, region
";
    assert!(told(&output).starts_with(expected), "{}", told(&output));
    let output = ask(folder.path(), "SELECT COUNT(name) FROM visits", &[]);
    assert!(told(&output).contains("  hint: there are: age, "), "`age` is not meant: {}", told(&output));
    let output = run(folder.path(), &["explain", "SELECT COUNT(* FROM visits", "--epsilon", "1"]);
    assert!(
        told(&output).contains("  1 | SELECT COUNT(* FROM visits\n    |                ^^^^\n"),
        "{}",
        told(&output)
    );
    let output = ask(folder.path(), "SELECT COUNT(*) FROM visits TABLESAMPLE BERNOULLI (10)", &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!folder.path().join(".demur").exists(), "a ledger is made for a question that can be asked");
}

#[test]
fn without_a_question_and_a_terminal_there_is_a_clear_error() {
    let folder = example();
    let output = run(folder.path(), &["query"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        told(&output).starts_with("error[cli.sql]: there is no question, and a prompt needs a terminal"),
        "{}",
        told(&output)
    );
    let output = run(folder.path(), &["explain"]);
    assert!(told(&output).starts_with("error[cli.sql]: there is no question\n"), "{}", told(&output));
}

#[test]
fn a_question_comes_from_standard_input() {
    let folder = example();
    let mut asked =
        demur(folder.path(), &["query", "--sql-file", "-", "--epsilon", "0.1", "--format", "csv"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
    asked.stdin.take().unwrap().write_all(b"SELECT COUNT(*) AS n FROM visits").unwrap();
    let output = asked.wait_with_output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("n,n_low,n_high\n"));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let folder = example();
    for form in ["table", "csv", "lines", "json", "parquet"] {
        let mut asked = demur(folder.path(), &["query", REGIONS, "--epsilon", "0.1", "--format", form])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(asked.stdout.take());
        let status = asked.wait().unwrap();
        let mut said = String::new();
        asked.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(status.success() && !said.contains("error"), "{form}: {said}");
    }
}

#[test]
fn a_table_without_rows_is_answered_about() {
    let folder = example();
    let header = "patient_id,day,region,department,age,nights,cost\n";
    std::fs::write(folder.path().join("visits.csv"), header).unwrap();
    let output = ask(folder.path(), REGIONS, &["--plot", "bar", "-o", "a.png"]);
    assert!(output.status.success(), "{}", told(&output));
    let output = ask(
        folder.path(),
        "SELECT department, COUNT(*) AS n FROM visits GROUP BY department",
        &["-o", "a.parquet"],
    );
    assert!(output.status.success(), "{}", told(&output));
}

#[test]
fn metadata_of_smartnoise_becomes_a_project() {
    let folder = example();
    let folder = folder.path();
    std::fs::remove_file(folder.join("demur.toml")).unwrap();
    let yaml = "\"\":\n  hospital:\n    visits:\n      max_ids: 2\n      rows: 6460\n      patient_id: {type: int, private_id: True}\n      \
                region: {type: string, cardinality: 6}\n      age: {type: int, lower: 0, upper: 105}\n      cost: {type: float, lower: 0, upper: 6000}\n";
    std::fs::write(folder.join("meta.yaml"), yaml).unwrap();
    let output = run(folder, &["init", "--smartnoise-yaml", "meta.yaml", "visits.csv"]);
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(
        output.status.success()
            && said.contains("1 table carried over")
            && said.contains("2 things were not"),
        "{said}{}",
        told(&output)
    );
    assert!(run(folder, &["check"]).status.success());
    let output =
        ask(folder, "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY region", &[]);
    assert!(output.status.success(), "{}", told(&output));
    let output = run(folder, &["init", "--smartnoise-yaml", "none.yaml"]);
    assert!(
        told(&output).starts_with("error[cli.smartnoise]: `none.yaml` cannot be read"),
        "{}",
        told(&output)
    );
}

/// A budget that could never be opened, and a certificate that could never be written, are told before anything is paid.
#[test]
fn what_cannot_work_is_told_before_the_charge() {
    let folder = example();
    let folder = folder.path();
    let catalog = folder.join("demur.toml");
    let text = std::fs::read_to_string(&catalog).unwrap();
    for filter in ["x", "pure"] {
        let wrong = text.replace("filter = \"renyi\"", &format!("filter = \"{filter}\""));
        std::fs::write(&catalog, wrong).unwrap();
        let output = run(folder, &["check"]);
        assert!(
            told(&output).contains(&format!("the filter `{filter}` does not go with")),
            "{}",
            told(&output)
        );
        assert_eq!(output.status.code(), Some(2));
    }
    std::fs::write(&catalog, text).unwrap();
    let output = ask(folder, "SELECT COUNT(*) FROM visits", &["--certificate", "none/c.json"]);
    assert!(
        told(&output).starts_with("error[cli.file]: `none/c.json` cannot be written"),
        "{}",
        told(&output)
    );
    assert!(!folder.join(".demur").exists());
    let output = ask(folder, "SELECT COUNT(*) FROM visits", &["--certificate", "c.json"]);
    assert!(output.status.success() && folder.join("c.json").is_file(), "{}", told(&output));
    let drafts = std::fs::read_dir(folder)
        .unwrap()
        .filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().ends_with(".draft"));
    assert_eq!(drafts.count(), 0);
}

/// A batch is one charge; each answer says what it got, and a mistake in one question is shown with its place and costs nothing.
#[test]
fn a_batch_is_answered_for_one_price() {
    let folder = example();
    let file = folder.path().join("questions.sql");
    std::fs::write(
        &file,
        "-- how many\nSELECT COUNT(*) AS n FROM visits;\nSELECT region, AVG(cost) AS mean FROM visits GROUP BY region;\n-- the end\n",
    )
    .unwrap();
    let words = |more: &[&'static str]| {
        [["query", "--batch", "questions.sql", "--epsilon", "1"].as_slice(), more].concat()
    };
    let explained = run(folder.path(), &["explain", "--batch", "questions.sql", "--epsilon", "1"]);
    assert_eq!(explained.status.code(), Some(0), "{}", told(&explained));
    let output = run(folder.path(), &words(&[]));
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let shown = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(shown.starts_with("1: -- how many SELECT COUNT(*) AS n FROM visits (ε = 0."), "{shown}");
    assert!(shown.contains("\n2: SELECT region") && shown.contains("islands"), "{shown}");
    assert!(told(&output).contains("charged ε = 1, δ = "), "{}", told(&output));
    let json = run(folder.path(), &words(&["--format", "json"]));
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((json["answers"].as_array().unwrap().len(), &json["replayed"]), (2, &serde_json::json!(true)));
    let sum: f64 =
        json["answers"].as_array().unwrap().iter().map(|answer| answer["epsilon"].as_f64().unwrap()).sum();
    assert!(sum >= 0.99, "{sum}");
    for (more, code) in
        [(["-o", "a.csv"], "cli.batch"), (["--format", "csv"], "cli.batch"), (["--plot", "bar"], "cli.batch")]
    {
        let output = run(folder.path(), &words(&more));
        assert!(
            output.status.code() == Some(2) && told(&output).starts_with(&format!("error[{code}]")),
            "{}",
            told(&output)
        );
    }
    std::fs::write(&file, "SELECT COUNT(*) FROM visits; SELECT AVG(nigths) FROM visits;").unwrap();
    let output = run(folder.path(), &words(&[]));
    assert_eq!(output.status.code(), Some(2));
    let expected = "error[plan.meaning]: question 2: there is no column `nigths`\n  1 | SELECT AVG(nigths) FROM visits\n";
    assert!(told(&output).starts_with(expected), "{}", told(&output));
}
