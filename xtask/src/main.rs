//! `cargo xtask`: what the project does to itself.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a chore tells people what it does")]

mod tidy;

use std::process::{Command, ExitCode};
use std::time::Instant;

const HELP: &str = "\
cargo xtask test        every test: unit, integration, documentation, tidy
cargo xtask test long   the same with ten million draws per statistical test
cargo xtask tidy        only the rules of the house
cargo xtask torture --rounds N [--ledger URL] [--seed S]
                        processes charge one ledger and are killed; docs/reliability.md. With
                        `--ledger postgres` on a PostgreSQL server of its own
cargo xtask ci          what CI runs: format, lints, every test, documentation";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["test"] => test(false),
        ["test", "long"] => test(true),
        ["tidy"] => tidy::check(),
        ["torture", arguments @ ..] => torture(arguments),
        ["ci"] => ci(),
        _ => Err(HELP.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn test(long: bool) -> Result<(), String> {
    tidy::check()?;
    let environment: &[_] = if long { &[("DEMUR_LONG_TESTS", "1")] } else { &[] };
    cargo(&["test", "--workspace", "--locked", "--no-fail-fast"], environment)
}

fn ci() -> Result<(), String> {
    cargo(&["fmt", "--all", "--check"], &[])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"], &[])?;
    test(false)?;
    torture(&["--rounds", "300"])?;
    let strict = [("RUSTDOCFLAGS", "-D warnings")];
    cargo(&["doc", "--workspace", "--no-deps", "--document-private-items", "--locked"], &strict)
}

/// Runs the program of that name in `testkit`, built as the tests are: this room knows no other.
fn torture(arguments: &[&str]) -> Result<(), String> {
    let program = ["run", "--profile", "test", "--package", "demur-testkit", "--bin", "torture", "--locked"];
    let server = arguments.iter().any(|word| word.starts_with("postgres"));
    let features: &[&str] = if server { &["--features", "postgres"] } else { &[] };
    cargo(&[program.as_slice(), features, &["--"], arguments].concat(), &[])
}

/// Runs cargo and says how long it took.
fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    let name = format!("cargo {}", arguments.join(" "));
    println!("── {name}");
    let start = Instant::now();
    let program = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let status = Command::new(program).args(arguments).envs(environment.iter().copied()).status();
    let status = status.map_err(|error| format!("{name} could not be started: {error}"))?;
    println!("── {} s", start.elapsed().as_secs());
    if status.success() { Ok(()) } else { Err(format!("{name} failed")) }
}
