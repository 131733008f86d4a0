//! `torture`: workers charge one ledger and are killed; nothing they were told may turn out wrong.
//!
//! ```text
//! torture --rounds N [--ledger URL] [--seed S]   the whole thing; exit 0 only without a violation; with
//!                                                `--ledger postgres` on a server of its own
//! torture work URL NAME SEED ROUND STEPS BUDGET  one worker, as the rounds start it
//! torture script URL BYTES                       one worker that does everything once, for faulty disks
//! ```
//!
//! `cargo xtask torture` runs it.

#![expect(clippy::print_stderr, reason = "progress is for people")]

mod rounds;
mod site;

use std::process::ExitCode;

use demur_testkit::Worker;
use rounds::Rounds;
use site::{Site, place};

const HELP: &str = "torture --rounds N [--ledger URL] [--seed S]";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<(), String> {
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("`{text}` is not a number\n{HELP}"));
    match words {
        ["script", url, bytes] => {
            let size = usize::try_from(number(bytes)?).unwrap_or_default();
            Worker::new(place(url)?, "script").with_answers(size).script();
        }
        ["work", url, name, seed, round, steps, budget] => {
            let worker = Worker::new(place(url)?, name);
            worker.roam(number(seed)?, number(round)?, number(steps)?, number(budget)?);
        }
        _ => {
            let (mut rounds, mut url, mut seed) = (None, None, 1);
            for pair in words.chunks(2) {
                match pair {
                    ["--rounds", text] => rounds = Some(number(text)?),
                    ["--ledger", text] => url = Some(*text),
                    ["--seed", text] => seed = number(text)?,
                    _ => return Err(HELP.to_owned()),
                }
            }
            let rounds = rounds.ok_or(HELP)?;
            let site = match url {
                None => Site::files()?,
                Some("postgres") => Site::server()?,
                Some(url) => Site::given(url)?,
            };
            return Rounds::new(rounds, site, seed)?.run();
        }
    }
    Ok(())
}
