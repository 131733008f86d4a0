//! The rules of the house that a program can check.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which rooms a room may use. What is not listed is forbidden.
const ARROWS: &[(&str, &[&str])] = &[
    ("demur-exact", &[]),
    ("demur-core", &["demur-exact"]),
    ("demur-noise", &["demur-core", "demur-exact"]),
    ("demur-accounting", &["demur-core", "demur-exact"]),
    ("demur-ledger", &["demur-accounting", "demur-core", "demur-exact"]),
    ("demur-tally", &["demur-exact"]),
    ("demur-plan", &["demur-core", "demur-exact", "demur-tally"]),
    (
        "demur-engine",
        &[
            "demur-accounting",
            "demur-core",
            "demur-exact",
            "demur-learn",
            "demur-ledger",
            "demur-noise",
            "demur-plan",
            "demur-synth",
            "demur-tally",
        ],
    ),
    ("demur-learn", &["demur-accounting", "demur-core", "demur-exact", "demur-noise"]),
    ("demur-synth", &["demur-accounting", "demur-core", "demur-exact", "demur-noise"]),
    (
        "demur",
        &[
            "demur-accounting",
            "demur-core",
            "demur-engine",
            "demur-exact",
            "demur-ledger",
            "demur-noise",
            "demur-plan",
        ],
    ),
    ("demur-testkit", &["demur-accounting", "demur-core", "demur-exact", "demur-ledger", "demur-noise"]),
    ("xtask", &[]),
];

/// Rooms that only tests may use.
const TEST_ONLY: &str = "demur-testkit";

/// Licences our dependencies may have, one of them for each.
const LICENCES: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unlicense",
    "Unicode-3.0",
    "0BSD",
    "BSL-1.0",
    "CC0-1.0",
    "MPL-2.0",
];

/// Every rule; the error lists all that are broken.
pub(crate) fn check() -> Result<(), String> {
    let mut broken = Vec::new();
    let metadata = metadata()?;
    arrows(&metadata, &mut broken);
    licences(&metadata, &mut broken);
    let files = source_files(Path::new("crates"));
    for file in &files {
        let Ok(text) = fs::read_to_string(file) else { continue };
        words_only_from_entropy(file, &text, &mut broken);
        no_mod_rs(file, &mut broken);
    }
    samplers_forbid_floats(&mut broken);
    references_exist(&files, &mut broken);
    theory_is_linked(&mut broken);
    if broken.is_empty() {
        return Ok(());
    }
    Err(format!("tidy: {} rule(s) broken\n  {}", broken.len(), broken.join("\n  ")))
}

fn metadata() -> Result<serde_json::Value, String> {
    let program = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(program).args(["metadata", "--format-version", "1", "--locked"]).output();
    let output = output.map_err(|error| format!("cargo metadata could not be started: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata gave no JSON: {error}"))
}

/// Dependencies between rooms follow the arrows.
fn arrows(metadata: &serde_json::Value, broken: &mut Vec<String>) {
    let allowed: BTreeMap<_, _> = ARROWS.iter().copied().collect();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        if !package["source"].is_null() {
            continue; // not one of ours
        }
        let name = package["name"].as_str().unwrap_or("");
        let Some(rooms) = allowed.get(name) else {
            broken.push(format!("the room {name} has no place in the arrows (xtask/src/tidy.rs)"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let used = dependency["name"].as_str().unwrap_or("");
            let in_tests = dependency["kind"] == "dev";
            let ours = used.starts_with("demur");
            if ours && !rooms.contains(&used) && !(in_tests && used == TEST_ONLY) {
                broken.push(format!("{name} must not depend on {used}"));
            }
        }
    }
}

/// Every dependency has a licence we accept.
fn licences(metadata: &serde_json::Value, broken: &mut Vec<String>) {
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let licence = package["license"].as_str().unwrap_or("none");
        let accepted = licence
            .split(" OR ")
            .flat_map(|part| part.split('/'))
            .map(|part| part.trim_matches(['(', ')', ' ']))
            .any(|part| part.split(" AND ").all(|one| LICENCES.contains(&one.trim_matches(['(', ')', ' ']))));
        if !accepted {
            broken.push(format!("{} has the licence {licence}", package["name"]));
        }
    }
}

/// Random words come from `Entropy` alone; other sources live in tests.
fn words_only_from_entropy(file: &Path, text: &str, broken: &mut Vec<String>) {
    let allowed = file.ends_with("noise/src/entropy.rs") || file.starts_with("crates/testkit");
    let shipped = text.split("#[cfg(test)]").next().unwrap_or("");
    if !allowed && !is_test(file) && shipped.contains("Words for ") {
        broken.push(format!("{} implements Words outside of tests", file.display()));
    }
}

fn is_test(file: &Path) -> bool {
    file.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "benches")
}

fn no_mod_rs(file: &Path, broken: &mut Vec<String>) {
    if file.ends_with("mod.rs") && !is_test(file) {
        broken.push(format!("{}: write room.rs and room/, not mod.rs", file.display()));
    }
}

/// The lint stands at the head of the samplers' module and is nowhere lifted in it.
fn samplers_forbid_floats(broken: &mut Vec<String>) {
    let head = fs::read_to_string("crates/noise/src/sampler.rs").unwrap_or_default();
    if !head.contains("#![deny(clippy::float_arithmetic)]") {
        broken.push("crates/noise/src/sampler.rs must deny clippy::float_arithmetic".to_owned());
    }
    for file in source_files(Path::new("crates/noise/src/sampler")) {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let shipped = text.split("#[cfg(test)]").next().unwrap_or("");
        if shipped.contains("clippy::float_arithmetic") {
            broken.push(format!("{} lifts the ban on floats", file.display()));
        }
    }
}

/// Every key such as `Dwork2006` that stands in brackets in the code is an entry of docs/references.md.
fn references_exist(files: &[PathBuf], broken: &mut Vec<String>) {
    let known = fs::read_to_string("docs/references.md").unwrap_or_default();
    let mut missing = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(file).unwrap_or_default();
        missing.extend(keys(&text).filter(|key| !known.contains(&format!("[{key}]"))).map(str::to_owned));
    }
    broken.extend(missing.into_iter().map(|key| format!("docs/references.md has no entry [{key}]")));
}

/// `Dwork2006` and the like, where they stand in brackets.
fn keys(text: &str) -> impl Iterator<Item = &str> {
    text.split('[')
        .skip(1)
        .filter_map(|rest| rest.split_once(']'))
        .map(|(key, _)| key.trim_end_matches('\\'))
        .filter(|key| {
            let (name, year) = key.split_at_checked(key.len().saturating_sub(4)).unwrap_or(("", ""));
            let named = name.len() > 2 && name.starts_with(|c: char| c.is_ascii_uppercase());
            named && name.chars().all(|c| c.is_ascii_alphabetic()) && year.chars().all(|c| c.is_ascii_digit())
        })
}

/// Each row of docs/theory.md names files that exist and tests they contain.
fn theory_is_linked(broken: &mut Vec<String>) {
    let text = fs::read_to_string("docs/theory.md").unwrap_or_default();
    for link in text.split("](../").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link) {
        let (path, test) = link.split_once('#').unwrap_or((link, ""));
        match fs::read_to_string(path) {
            Err(_) => broken.push(format!("docs/theory.md links to {path}, which is not there")),
            Ok(code) if !test.is_empty() && !code.contains(&format!("fn {test}(")) => {
                broken.push(format!("docs/theory.md names the test {test}, which {path} does not contain"));
            }
            Ok(_) => {}
        }
    }
}

/// All Rust files below a folder.
fn source_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => source_files(&path),
            false if path.extension().is_some_and(|ending| ending == "rs") => vec![path],
            false => Vec::new(),
        })
        .collect()
}
