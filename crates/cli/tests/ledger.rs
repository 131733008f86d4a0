//! `demur ledger` as owners and auditors use it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failing test may fail anywhere")]

mod project;

use std::path::Path;
use std::process::Stdio;

use demur_ledger::entry::Position;
use demur_ledger::{Charged, Hash, Ledger, Location, Options, Request};
use insta_cmd::assert_cmd_snapshot;
use project::{demur, hiding, json, output, run};
use serde_json::Value;
use tempfile::TempDir;

fn place(folder: &Path) -> Location {
    Location::Sqlite(folder.join(".demur/ledger.db"))
}

fn charge(folder: &Path, request: Request) {
    let ledger = Ledger::open(&place(folder), Options::default()).unwrap();
    let Charged::Now(receipt) = ledger.charge(request).unwrap() else { panic!("asked before") };
    ledger.record(receipt, b"42").unwrap();
}

/// A ledger in which everything happened once.
fn story() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    run(at, &["budget", "create", "visits", "--epsilon", "1"]);
    run(at, &["budget", "create", "images", "--epsilon", "1", "--delta", "1e-6", "--reason", "approved"]);
    run(at, &["budget", "create", "images", "--epsilon", "0.2", "--requester", "alice"]);
    let loss = |text: &str| text.parse().unwrap();
    charge(at, Request::new("visits", "bob", "count", loss("discrete_laplace(scale=10)")).id("monday-1"));
    charge(at, Request::new("images", "alice", "mean\u{1b}[2J", loss("pure(0.05)")).data_version("7"));
    run(at, &["budget", "raise", "visits", "--epsilon", "2", "--reason", "a second\nstudy"]);
    run(at, &["budget", "close", "visits", "--reason", "the study is over"]);
    folder
}

/// Takes the last entries away, as if an older copy had been put back.
fn roll_back(folder: &Path) {
    let (older, newer) = (folder.join("older"), folder.join(".demur"));
    for name in ["ledger.db", "ledger.db.lock"] {
        std::fs::copy(older.join(name), newer.join(name)).unwrap();
    }
}

/// Hashes, times and processes.
macro_rules! snapshot {
    ($name:expr, $command:expr) => {
        let times = r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?";
        hiding(&[(times, "[TIME]"), (r"process \d+", "process [ID]")])
            .bind(|| assert_cmd_snapshot!($name, $command));
    };
}

#[test]
fn the_log_says_what_happened() {
    let story = story();
    let at = story.path();
    snapshot!("log", demur(at, &["ledger", "log"]));
    snapshot!("log_last", demur(at, &["ledger", "log", "--last", "2"]));
    snapshot!("log_budget", demur(at, &["ledger", "log", "--budget", "images"]));
    snapshot!("log_csv", demur(at, &["ledger", "log", "--format", "csv"]));
    snapshot!("log_json", demur(at, &["ledger", "log", "--format", "json"]));
    snapshot!("log_unknown", demur(at, &["ledger", "log", "--budget", "visit"]));
    assert_eq!(json(at, &["ledger", "log", "--last", "0"]), Value::Array(Vec::new()));
}

/// Whoever has the export can check the chain without us.
#[test]
fn an_export_can_be_verified_by_anybody() {
    let story = story();
    let at = story.path();
    let text = run(at, &["ledger", "export"]);
    let mut previous: Option<Position> = None;
    for (number, line) in text.lines().enumerate() {
        let object: Value = serde_json::from_str(line).unwrap();
        let (_, entry) = line.split_once("\"entry\":").unwrap();
        let before = previous.map_or(Hash::START, |previous| previous.hash);
        let hash = Hash::of_entry(&before, number as u64, &entry.as_bytes()[..entry.len() - 1]);
        assert_eq!(object["sequence"], number as u64);
        assert_eq!(object["previous"], before.to_string());
        assert_eq!(object["hash"], hash.to_string());
        previous = Some(Position { sequence: number as u64, hash });
    }
    assert_eq!(previous, Some(Ledger::look(&place(at)).unwrap().head()));

    assert_eq!(run(at, &["ledger", "export", "--out", "all.jsonl"]), "");
    assert_eq!(std::fs::read_to_string(at.join("all.jsonl")).unwrap(), text);
    snapshot!("export_exists", demur(at, &["ledger", "export", "--out", "all.jsonl"]));
    let csv = run(at, &["ledger", "export", "--format", "csv"]);
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    assert_eq!(reader.headers().unwrap(), vec!["sequence", "previous", "hash", "entry"]);
    assert_eq!(reader.records().count(), text.lines().count());
}

#[test]
fn a_whole_ledger_is_verified() {
    let story = story();
    snapshot!("verify", demur(story.path(), &["ledger", "verify"]));
    snapshot!("verify_json", demur(story.path(), &["ledger", "verify", "--format", "json"]));
}

#[test]
fn an_older_copy_is_noticed_and_adopting_it_closes_all_budgets() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    run(at, &["budget", "create", "visits", "--epsilon", "1"]);
    std::fs::create_dir(at.join("older")).unwrap();
    for name in ["ledger.db", "ledger.db.lock"] {
        std::fs::copy(at.join(".demur").join(name), at.join("older").join(name)).unwrap();
    }
    charge(at, Request::new("visits", "bob", "count", "pure(0.5)".parse().unwrap()));
    roll_back(at);
    snapshot!("rollback_verify", demur(at, &["ledger", "verify"]));
    snapshot!("rollback_log", demur(at, &["ledger", "log"]));
    snapshot!("rollback_show", demur(at, &["budget", "show"]));
    snapshot!("adopt_no_reason", demur(at, &["ledger", "adopt", "--reason", ""]));
    snapshot!("adopt", demur(at, &["ledger", "adopt", "--reason", "the disk failed"]));
    snapshot!("adopted_log", demur(at, &["ledger", "log"]));
    run(at, &["ledger", "verify"]);
}

#[test]
fn a_lost_anchor_is_named_and_adopting_goes_on() {
    let story = story();
    let at = story.path();
    std::fs::remove_file(at.join(".demur/ledger.db.anchor")).unwrap();
    snapshot!("anchor_lost", demur(at, &["ledger", "verify"]));
    snapshot!("anchor_adopt", demur(at, &["ledger", "adopt", "--reason", "moved house", "--format", "json"]));
    run(at, &["ledger", "verify"]);
}

#[test]
fn every_command_but_create_wants_a_ledger() {
    let folder = tempfile::tempdir().unwrap();
    for command in [
        vec!["ledger", "log"],
        vec!["ledger", "verify"],
        vec!["ledger", "export"],
        vec!["ledger", "export", "--out", "all.jsonl"],
        vec!["ledger", "adopt", "--reason", "why"],
        vec!["budget", "show"],
        vec!["budget", "close", "visits", "--reason", "why"],
        vec!["budget", "raise", "visits", "--epsilon", "1", "--reason", "why"],
    ] {
        let output = output(folder.path(), &command);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        assert!(text.starts_with("error[ledger.none]: there is no ledger at"), "{command:?}: {text}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{command:?}");
    }
}

/// Whoever waits is told for whom.
#[test]
fn a_wait_is_announced() {
    let story = story();
    let at = story.path();
    let lock =
        std::fs::File::options().read(true).write(true).open(at.join(".demur/ledger.db.lock")).unwrap();
    std::fs::write(at.join(".demur/ledger.db.lock"), "process 7 (demur)\n").unwrap();
    lock.lock().unwrap();
    let command = ["budget", "close", "images", "--reason", "over"];
    let child = demur(at, &command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    lock.unlock().unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text, "waiting: the ledger is in use by process 7 (demur)\n");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let story = story();
    for command in [["ledger", "log"], ["ledger", "export"]] {
        let mut child =
            demur(story.path(), &command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    }
}

#[test]
fn help_is_a_manual() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["log", "verify", "export", "adopt"] {
        let text = run(folder.path(), &["ledger", command, "--help"]);
        assert!(text.contains("Example") && text.contains(&format!("demur ledger {command}")), "{command}");
    }
    assert!(run(folder.path(), &["ledger", "--help"]).contains("anchor"));
}
