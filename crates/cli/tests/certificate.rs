//! Noise that charges a budget, and certificates, as newcomers and auditors use them.

#![expect(clippy::unwrap_used, reason = "a failing test may fail anywhere")]

mod project;

use std::path::Path;

use insta_cmd::assert_cmd_snapshot;
use project::{demur, hiding, json, output, run};
use tempfile::TempDir;

/// A folder with a budget of ε = 1.
fn house() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &["budget", "create", "visits", "--epsilon", "1", "--unit", "user_id"]);
    folder
}

/// The command that publishes a number at ε, with further flags.
fn noise<'a>(epsilon: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["noise", "laplace", "--value", "42", "--sensitivity", "1", "--epsilon", epsilon];
    words.extend(["--budget", "visits"]);
    words.extend(more);
    words
}

/// Hashes, and what was released.
macro_rules! snapshot {
    ($name:expr, $command:expr) => {
        hiding(&[(r"\b[0-9a-f]{16}\b", "[SHORT]"), (r"released   -?\d+", "released   [N]")])
            .bind(|| assert_cmd_snapshot!($name, $command));
    };
}

#[test]
fn ten_answers_at_a_tenth_fit_into_one_and_the_eleventh_does_not() {
    let folder = house();
    let at = folder.path();
    snapshot!("charged", demur(at, &noise("0.1", &[])));
    for _ in 1..10 {
        run(at, &noise("0.1", &[]));
    }
    let before = json(at, &["budget", "show", "visits"]);
    assert_eq!((&before["spent_epsilon"], &before["remaining_epsilon"]), (&1.into(), &0.into()));
    assert_eq!((&before["releases"], &before["charges"]), (&10.into(), &10.into()));
    snapshot!("exhausted", demur(at, &noise("0.1", &[])));
    assert_eq!(json(at, &["budget", "show", "visits"]), before);
}

#[test]
fn a_request_with_a_name_is_paid_once_and_printed_the_same() {
    let folder = house();
    let at = folder.path();
    let named = noise("0.5", &["--request-id", "monday"]);
    let first = json(at, &named);
    let again = json(at, &named);
    assert_eq!(first["released"], again["released"]);
    assert_eq!((&first["charge"]["replayed"], &again["charge"]["replayed"]), (&false.into(), &true.into()));
    snapshot!("other_request", demur(at, &noise("0.25", &["--request-id", "monday"])));
    // Another person may use the same name.
    run(at, &noise("0.5", &["--request-id", "monday", "--requester", "bob"]));
    let versioned = noise("0.5", &["--data-version", "may", "--requester", "carol"]);
    assert_eq!(output(at, &versioned).status.code(), Some(1), "the budget is spent");
}

#[test]
fn every_kind_of_noise_can_pay() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    run(at, &["budget", "create", "visits", "--epsilon", "5", "--delta", "1e-5"]);
    std::fs::write(at.join("votes.csv"), "red,12\nblue,9\n").unwrap();
    for words in [
        "noise laplace --values 1,2,3 --sensitivity 1 --epsilon 0.1 --count 2 --format csv",
        "noise gaussian --value 3.5 --sensitivity 1 --epsilon 0.5 --delta 1e-6 --format lines",
        "noise truncated-laplace --value 3 --sensitivity 1 --epsilon 0.5 --delta 1e-7",
        "noise exponential --scores votes.csv --sensitivity 1 --epsilon 0.1 --format json",
        "noise randomized-response --truth yes --epsilon 0.1",
        "noise randomized-response --truth 3_of_5 --epsilon 0.1 --format csv",
    ] {
        let words: Vec<String> = words.split(' ').map(|word| word.replace('_', " ")).collect();
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        words.extend(["--budget", "visits", "--certificate", "release.json"]);
        run(at, &words);
        run(at, &["certificate", "verify", "release.json", "--ledger", ".demur/ledger.db"]);
    }
    let shown = json(at, &["budget", "show", "visits"]);
    assert_eq!(shown["releases"], 6);
}

#[test]
fn a_certificate_says_what_is_promised_and_holds() {
    let folder = house();
    let at = folder.path();
    run(at, &noise("0.25", &["--certificate", "release.json"]));
    snapshot!("verify", demur(at, &["certificate", "verify", "release.json"]));
    snapshot!(
        "verify_with_ledger",
        demur(at, &["certificate", "verify", "release.json", "--ledger", ".demur/ledger.db"])
    );
    let verdict = json(at, &["certificate", "verify", "release.json"]);
    assert_eq!((&verdict["valid"], &verdict["epsilon"]), (&true.into(), &0.25.into()));
    let key = run(at, &["certificate", "key"]);
    run(at, &["certificate", "verify", "release.json", "--key", key.trim()]);
    let entry = verdict["entry"].to_string();
    assert_eq!(
        run(at, &["certificate", "show", &entry]),
        std::fs::read_to_string(at.join("release.json")).unwrap()
    );
    let new = run(at, &["certificate", "key", "--rotate", "--reason", "a new machine"]);
    assert_ne!(new, key);
    run(at, &["certificate", "verify", "release.json", "--ledger", ".demur/ledger.db"]);
    assert_eq!(
        output(at, &["certificate", "verify", "release.json", "--key", new.trim()]).status.code(),
        Some(2)
    );
}

#[test]
fn a_certificate_that_was_changed_does_not_hold() {
    let folder = house();
    let at = folder.path();
    run(at, &noise("0.25", &["--certificate", "release.json"]));
    let text = std::fs::read_to_string(at.join("release.json")).unwrap();
    let changed = text.replace(
        r#""guarantee":{"delta":"0","epsilon":"0.25"}"#,
        r#""guarantee":{"delta":"0","epsilon":"0.2"}"#,
    );
    assert_ne!(changed, text);
    std::fs::write(at.join("changed.json"), changed).unwrap();
    snapshot!("changed", demur(at, &["certificate", "verify", "changed.json"]));
    std::fs::write(at.join("other.json"), "{}").unwrap();
    snapshot!("not_a_certificate", demur(at, &["certificate", "verify", "other.json"]));
    snapshot!("no_certificate", demur(at, &["certificate", "show", "0"]));
}

#[test]
fn what_cannot_be_charged_is_refused_with_a_sentence() {
    let folder = house();
    let at = folder.path();
    let head = |at: &Path| json(at, &["budget", "show", "visits"])["head"].clone();
    let before = head(at);
    let mut unknown = noise("0.1", &[]);
    unknown[9] = "nobody";
    snapshot!("unknown_budget", demur(at, &unknown));
    snapshot!(
        "no_price",
        demur(
            at,
            &[
                "noise",
                "gaussian",
                "--value",
                "1",
                "--sensitivity",
                "1",
                "--epsilon",
                "0.1",
                "--delta",
                "1e-6",
                "--budget",
                "visits",
            ]
        )
    );
    snapshot!(
        "ledger_without_budget",
        demur(
            at,
            &[
                "noise",
                "laplace",
                "--value",
                "1",
                "--sensitivity",
                "1",
                "--epsilon",
                "0.1",
                "--ledger",
                "x.db",
            ]
        )
    );
    snapshot!("no_ledger", demur(at, &noise("0.1", &["--ledger", "elsewhere.db"])));
    assert_eq!(head(at), before, "a refusal writes nothing");
}
