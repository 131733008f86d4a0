//! `demur init --private-bounds` asks for bounds, pays for them, and writes them down.

#![expect(clippy::unwrap_used, reason = "a failing test may fail anywhere")]

use std::path::Path;
use std::process::{Command, Output};

fn demur(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_demur")).args(words).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A folder with the example's visits and a catalog without bounds.
fn visits() -> tempfile::TempDir {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/visits");
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(example.join("visits.csv"), folder.path().join("visits.csv")).unwrap();
    let catalog = "# mine\n[budget]\nname = \"visits\"\nepsilon = 10\ndelta = 1e-6\nfilter = \"renyi\"\n\n[tables.visits]\nfiles = \"visits.csv\"\nunit = \"patient_id\"\n\n\
                   [tables.visits.columns]\npatient_id = { type = \"int64\" }\nage = { type = \"int64\" } # years\ncost = { type = \"decimal(9, 2)\" }\n\
                   nights = { type = \"int64\", low = 0, high = 14 }\n";
    std::fs::write(folder.path().join("demur.toml"), catalog).unwrap();
    folder
}

/// Noise is taken for people with a probability of at most 1e-6 for each column; a cell of hundreds is missed with one below e^−100.
#[test]
fn bounds_are_found_and_paid_for() {
    let folder = visits();
    let refused = demur(folder.path(), &["query", "SELECT SUM(age) FROM visits", "--epsilon", "1"]);
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused.stderr));
    let found = demur(folder.path(), &["init", "--private-bounds", "4"]);
    assert_eq!(found.status.code(), Some(0), "{}", text(&found.stderr));
    let catalog = std::fs::read_to_string(folder.path().join("demur.toml")).unwrap();
    assert!(catalog.contains("age = { type = \"int64\", low = 0, high = 128 } # years"), "{catalog}");
    assert!(catalog.contains("cost = { type = \"decimal(9, 2)\", low = 0.0, high = "), "{catalog}");
    assert!(
        catalog.starts_with("# mine\n")
            && catalog.contains("nights = { type = \"int64\", low = 0, high = 14 }")
    );
    let log = text(&demur(folder.path(), &["ledger", "log"]).stdout);
    assert_eq!(log.matches("release").count(), 2, "{log}");
    let answered = demur(folder.path(), &["query", "SELECT SUM(age) FROM visits", "--epsilon", "1"]);
    assert_eq!(answered.status.code(), Some(0), "{}", text(&answered.stderr));
}

#[test]
fn nothing_is_asked_where_nothing_is_missing() {
    let folder = visits();
    let path = folder.path().join("demur.toml");
    let catalog = std::fs::read_to_string(&path).unwrap();
    let full = catalog
        .replace("\"int64\" } # years", "\"int64\", low = 0, high = 99 }")
        .replace("(9, 2)\" }", "(9, 2)\", low = 0, high = 9 }");
    std::fs::write(&path, full).unwrap();
    let done = demur(folder.path(), &["init", "--private-bounds", "1"]);
    assert_eq!(done.status.code(), Some(2), "{}", text(&done.stdout));
    assert!(text(&done.stderr).contains("every column of numbers has bounds already"));
    let wrong = demur(folder.path(), &["init", "--private-bounds", "-1"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(!folder.path().join(".demur").exists());
}

/// 1 500 people with one to six visits: nearly everybody has at most so many rows, and pays for what was found. With ε = 8 a count is off by more
/// than 40 with probability below e^−40.
#[test]
fn limits_are_found_and_paid_for() {
    let folder = visits();
    let path = folder.path().join("demur.toml");
    let catalog = std::fs::read_to_string(&path).unwrap();
    let catalog = catalog
        .replace("unit = \"patient_id\"\n", "unit = \"patient_id\"\nmax_rows_per_group = 1 # to be found\n")
        .replace("nights =", "region = { type = \"string\" }\nnights =");
    std::fs::write(&path, catalog).unwrap();
    let found = demur(folder.path(), &["init", "--private-limits", "8"]);
    assert_eq!(found.status.code(), Some(0), "{}", text(&found.stderr));
    let catalog = std::fs::read_to_string(&path).unwrap();
    let limit = |name: &str| -> u32 {
        let line = catalog.lines().find(|line| line.starts_with(name)).unwrap();
        line.split(['=', '#']).nth(1).unwrap().trim().parse().unwrap()
    };
    let mut visits: std::collections::HashMap<String, u32> = std::collections::HashMap::new();
    let csv = std::fs::read_to_string(folder.path().join("visits.csv")).unwrap();
    let column = csv.lines().next().unwrap().split(',').position(|name| name == "patient_id").unwrap();
    csv.lines()
        .skip(1)
        .for_each(|line| *visits.entry(line.split(',').nth(column).unwrap().to_owned()).or_default() += 1);
    let whole = visits.values().filter(|count| **count <= limit("max_rows_per_group")).count() as f64;
    assert!(whole / visits.len() as f64 > 0.9, "{catalog}");
    assert!(
        limit("max_groups_per_unit") <= limit("max_rows_per_group") && limit("max_rows_per_group") <= 16,
        "{catalog}"
    );
    assert!(catalog.contains(" # to be found") && catalog.starts_with("# mine\n"), "{catalog}");
    let log = text(&demur(folder.path(), &["ledger", "log"]).stdout);
    assert_eq!(log.matches("release").count(), 2, "{log}");
    let wrong = demur(folder.path(), &["init", "--private-limits", "-1"]);
    assert_eq!(wrong.status.code(), Some(2));
}
