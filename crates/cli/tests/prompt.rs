//! The prompt at a terminal that is none: typed lines, completion, history, Ctrl-C.
//!
//! Every wait is bounded by [`PATIENCE`]; a machine that needs longer is broken.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a failing test may fail anywhere")]

use std::path::Path;
use std::process::Command;

use rexpect::session::{Options, PtySession, spawn_with_options};

/// How long anything may take, in milliseconds.
const PATIENCE: u64 = 60_000;

fn example() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/visits");
    for name in ["demur.toml", "visits.csv"] {
        std::fs::copy(example.join(name), folder.path().join(name)).unwrap();
    }
    folder
}

fn open(folder: &Path) -> PtySession {
    let mut command = Command::new(env!("CARGO_BIN_EXE_demur"));
    command.arg("query").current_dir(folder).env("XDG_STATE_HOME", folder.join("state")).env("TERM", "xterm");
    let options = Options::new().timeout_ms(Some(PATIENCE)).strip_ansi_escape_codes(true);
    let mut prompt = spawn_with_options(command, options).unwrap();
    prompt.exp_string("tables: visits.").unwrap();
    prompt.exp_string("demur> ").unwrap();
    prompt
}

fn leave(mut prompt: PtySession) {
    prompt.send_line("\\q").unwrap();
    prompt.exp_eof().unwrap();
}

#[test]
fn a_question_of_several_lines_is_asked_and_remembered() {
    let folder = example();
    let mut prompt = open(folder.path());
    prompt.send_line("\\epsilon 0.5").unwrap();
    prompt.exp_string("=0.5> ").unwrap();
    prompt.send_line("SELECT COUNT(*) AS visits_there_were").unwrap();
    prompt.send_line("FROM visits;").unwrap();
    prompt.exp_string(" = 0.5, ").unwrap();
    leave(prompt);
    let history = std::fs::read_to_string(folder.path().join("state/demur/history")).unwrap();
    assert!(history.contains("visits_there_were") && history.contains("FROM visits;"), "{history}");
    let files: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(!files.iter().any(|name| name.to_string_lossy().contains("history")), "{files:?}");
    let mut again = open(folder.path());
    again.send("\u{1b}[A").unwrap();
    again.flush().unwrap();
    again.exp_string("\\q").unwrap();
    again.send_control('c').unwrap();
    again.exp_string("demur> ").unwrap();
    leave(again);
}

#[test]
fn names_are_completed_and_ctrl_c_clears_the_line() {
    let folder = example();
    let mut prompt = open(folder.path());
    prompt.send("\\d vis\t").unwrap();
    prompt.flush().unwrap();
    prompt.exp_string("visits").unwrap();
    prompt.send_line("").unwrap();
    prompt.exp_string("names the person").unwrap();
    prompt.exp_string("demur> ").unwrap();
    prompt.send("SELECT nonsense FROM nowhere").unwrap();
    prompt.send_control('c').unwrap();
    prompt.exp_string("demur> ").unwrap();
    prompt.send_line("\\budget").unwrap();
    prompt.exp_string("nothing was asked yet").unwrap();
    leave(prompt);
}

#[test]
fn ctrl_c_during_a_question_leaves_a_charge_and_the_prompt() {
    let folder = example();
    // So many rows and so much work on each that it takes seconds, whatever the machine.
    let rows = std::fs::read_to_string(folder.path().join("visits.csv")).unwrap();
    let (header, rows) = rows.split_once('\n').unwrap();
    std::fs::write(folder.path().join("visits.csv"), format!("{header}\n{}", rows.repeat(50))).unwrap();
    let work = |index: usize| {
        format!("{}concat(department, '{index}'){} = 'X'", "upper(lower(".repeat(15), "))".repeat(15))
    };
    let work: Vec<String> = (0..10).map(work).collect();
    let mut prompt = open(folder.path());
    prompt.send_line("\\epsilon 0.5").unwrap();
    prompt.exp_string("=0.5> ").unwrap();
    prompt.send_line(&format!("SELECT COUNT(*) AS n FROM visits WHERE {};", work.join(" OR "))).unwrap();
    // A terminal says that rows are read once a second has passed.
    prompt.exp_string("charged; reading rows").unwrap();
    prompt.send_control('c').unwrap();
    prompt.exp_string("error[cli.interrupted]: the question was charged and the charge stands").unwrap();
    prompt.exp_string("=0.5> ").unwrap();
    leave(prompt);
    let log = Command::new(env!("CARGO_BIN_EXE_demur"))
        .args(["ledger", "log"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let log = String::from_utf8(log.stdout).unwrap();
    let count =
        |event: &str| log.lines().filter(|line| line.split_whitespace().nth(3) == Some(event)).count();
    assert_eq!((count("charge"), count("release")), (1, 0), "{log}");
}
