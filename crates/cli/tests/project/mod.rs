//! `demur` as it is typed in the folder of a project.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The command with these words, nothing of this machine's settings around it.
pub(crate) fn demur(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_demur"));
    command.args(words).current_dir(folder).stdin(Stdio::null());
    command.env("NO_COLOR", "1").env("COLUMNS", "100").env("USER", "analyst").env_remove("DEMUR_LEDGER");
    command
}

/// How it ended, and what it said.
pub(crate) fn output(folder: &Path, words: &[&str]) -> Output {
    demur(folder, words).output().unwrap()
}

/// What it said; it must have ended well.
pub(crate) fn run(folder: &Path, words: &[&str]) -> String {
    let output = output(folder, words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The same for programs.
pub(crate) fn json(folder: &Path, words: &[&str]) -> Value {
    serde_json::from_str(&run(folder, &[words, &["--format", "json"]].concat())).unwrap()
}

/// Settings for snapshots in which what differs from run to run is replaced; the rest is pinned.
pub(crate) fn hiding(what: &[(&str, &str)]) -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"\b[0-9a-f]{64}\b", "[HASH]");
    what.iter().for_each(|(found, shown)| settings.add_filter(found, *shown));
    settings
}
