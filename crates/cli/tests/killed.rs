//! Queries that are killed at any moment leave a ledger that is whole, and no answer that was not charged.

#![expect(clippy::unwrap_used, reason = "a failing test may fail anywhere")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn demur(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_demur"));
    command.current_dir(folder).stdin(Stdio::null());
    command
}

/// Lines of the ledger's log that tell of this event.
fn events(folder: &Path, event: &str) -> usize {
    let log = demur(folder).args(["ledger", "log"]).output().unwrap();
    let log = String::from_utf8(log.stdout).unwrap();
    log.lines().filter(|line| line.split_whitespace().nth(3) == Some(event)).count()
}

#[test]
fn a_query_that_is_killed_loses_nothing() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/visits");
    let folder = tempfile::tempdir().unwrap();
    for name in ["demur.toml", "visits.csv"] {
        std::fs::copy(example.join(name), folder.path().join(name)).unwrap();
    }
    let folder = folder.path();
    let ask = |number: usize| {
        let sql = format!("SELECT COUNT(*) AS n FROM visits WHERE age > {number}");
        let mut command = demur(folder);
        command.args(["query", &sql, "--epsilon", "0.01", "--format", "csv"]);
        command
    };
    assert!(ask(0).output().unwrap().status.success());
    let mut answered = 1;
    for round in 1..=40 {
        let mut asked = ask(round).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        // From before the charge to after the answer, whatever the machine.
        std::thread::sleep(Duration::from_micros(2000 * (round as u64 * 7 % 40)));
        asked.kill().unwrap();
        let told = asked.wait_with_output().unwrap();
        answered += usize::from(String::from_utf8(told.stdout).unwrap().lines().count() > 1);
        let (charges, releases) = (events(folder, "charge"), events(folder, "release"));
        assert!(
            answered <= releases && releases <= charges,
            "{answered} answers, {releases} releases, {charges} charges"
        );
        assert!(charges <= round + 1, "{charges} charges after {round} questions");
    }
    let verified = demur(folder).args(["ledger", "verify"]).output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    assert!(ask(99).output().unwrap().status.success());
}
