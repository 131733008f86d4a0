//! [`Rounds`]: workers are started and killed; after a few rounds the ledger is held to its word.
//!
//! A ledger lives for some rounds, from before it exists until its budget is spent, and then another one begins: so creation is killed
//! too, budgets run dry, and a round stays cheap however many there are.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use demur_ledger::{Charged, Hash, Location};
use demur_noise::Words;
use demur_testkit::{Seeded, Tally, Witness, create_or_open, options, request};

use crate::site::Site;

/// Rounds in the life of a ledger.
const LIFE: u64 = 20;
/// Workers at a time.
const WORKERS: u64 = 3;
/// What a worker does before it ends by itself.
const STEPS: u64 = 40;
/// The budget, in prices: spent in about half of a life.
const BUDGET: u64 = 400;
/// No worker takes longer than this, or it hangs.
const LONGEST: Duration = Duration::from_secs(60);

pub(crate) struct Rounds {
    rounds: u64,
    site: Site,
    program: PathBuf,
    words: Seeded,
    kills: u64,
    done: Witness,
    stands: Tally,
    violations: Vec<String>,
}

impl Rounds {
    pub(crate) fn new(rounds: u64, site: Site, seed: u64) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| format!("who am I? {error}"))?;
        let words = Seeded::new(seed);
        let (kills, done, stands) = (0, Witness::default(), Tally::default());
        Ok(Self { rounds, site, program, words, kills, done, stands, violations: Vec::new() })
    }

    /// All rounds; the last line on standard error is the result.
    pub(crate) fn run(mut self) -> Result<(), String> {
        let (start, mut told) = (Instant::now(), Instant::now());
        let mut first = 0;
        // A place that was given has one ledger.
        let life = if self.site.has_one_ledger() { self.rounds } else { LIFE };
        while first < self.rounds && self.violations.is_empty() {
            let last = self.rounds.min(first + life);
            self.life(first, last)?;
            first = last;
            if told.elapsed() > Duration::from_secs(10) {
                eprintln!("torture: {first} of {} rounds, {}", self.rounds, self.figures());
                told = Instant::now();
            }
        }
        eprintln!("torture: {first} rounds in {} s, {}", start.elapsed().as_secs(), self.figures());
        match self.violations.is_empty() {
            true => Ok(()),
            false => Err(format!("torture: violations\n  {}", self.violations.join("\n  "))),
        }
    }

    fn figures(&self) -> String {
        let (heard, stands) = (&self.done, &self.stands);
        format!(
            "{} kills, {} charges ({} acknowledged), {} releases ({} acknowledged), {} refused, {} failed, {} violations",
            self.kills,
            stands.charges,
            heard.charges,
            stands.releases,
            heard.releases,
            heard.refused,
            heard.failed.len(),
            self.violations.len()
        )
    }

    /// One ledger, from before it exists.
    fn life(&mut self, first: u64, last: u64) -> Result<(), String> {
        let place = self.site.place(first)?;
        let mut witness = Witness::default();
        for round in first..last {
            self.round(&place, round - first, BUDGET * (last - first).div_ceil(LIFE), &mut witness)?;
            // Not after every round: a ledger must also survive workers that find what killed ones left behind.
            if round + 1 == last || self.words.word().is_multiple_of(4) {
                match self.check(&place, &mut witness) {
                    Ok(tally) if round + 1 == last => {
                        self.stands.charges += tally.charges;
                        self.stands.releases += tally.releases;
                    }
                    Ok(_) => {}
                    Err(text) => {
                        self.violations.push(format!("round {round} at {place}: {text}"));
                        break;
                    }
                }
            }
        }
        self.done.charges += witness.charges;
        self.done.releases += witness.releases;
        self.done.refused += witness.refused;
        for line in &witness.failed {
            eprintln!("torture: a worker of rounds {first} to {last} {line}");
        }
        self.done.failed.append(&mut witness.failed);
        if self.violations.is_empty() {
            self.site.clear(first);
        }
        Ok(())
    }

    /// Workers start, most of them are killed, and what they said is heard.
    fn round(
        &mut self,
        place: &Location,
        round: u64,
        budget: u64,
        witness: &mut Witness,
    ) -> Result<(), String> {
        let mut workers = Vec::new();
        let start = Instant::now();
        for name in 0..WORKERS {
            let seed = self.words.word();
            let numbers = [seed, round, STEPS, budget].map(|number| number.to_string());
            let child = Command::new(&self.program)
                .args(["work", &place.to_string(), &format!("w{name}")])
                .args(numbers)
                .envs(self.site.environment())
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::inherit())
                .spawn();
            let child = child.map_err(|error| format!("a worker could not be started: {error}"))?;
            // Seven of eight are killed, at any moment from their start to their usual end.
            let spared = self.words.word().is_multiple_of(8);
            let end = if spared { LONGEST } else { self.before(self.site.usual()) };
            workers.push((start + end, child));
        }
        workers.sort_by_key(|(end, _)| *end);
        for (end, mut child) in workers {
            if wait(&mut child, end)? {
                self.kills += 1;
                if end >= start + LONGEST {
                    self.violations.push(format!("round {round} at {place}: a worker hangs"));
                }
            }
            let mut text = String::new();
            let heard = child.stdout.take().map(|mut said| said.read_to_string(&mut text));
            heard.transpose().map_err(|error| format!("a worker's words were lost: {error}"))?;
            // A line without an end was not said.
            text.split_inclusive('\n')
                .filter_map(|line| line.strip_suffix('\n'))
                .for_each(|line| witness.hear(line));
        }
        Ok(())
    }

    /// Any time that is shorter.
    fn before(&mut self, time: Duration) -> Duration {
        Duration::from_micros(self.words.word() % u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
    }

    fn check(&mut self, place: &Location, witness: &mut Witness) -> Result<Tally, String> {
        if witness.is_empty() {
            // Perhaps it was not even made; then it is made now, whatever was left of it.
            create_or_open(place)
                .map_err(|error| format!("the ledger cannot be made: [{}] {error}", error.code()))?;
        }
        let tally = witness.check(place, &options())?;
        // Whatever was shown under a name is shown again, byte for byte, and costs nothing.
        let ledger = create_or_open(place).map_err(|error| error.to_string())?;
        for (question, answer) in witness.answers().iter().rev().take(3) {
            let requester = question.split('-').next().unwrap_or_default();
            let request = request(requester, question).map_err(|error| error.to_string())?;
            match ledger.charge(request) {
                Ok(Charged::Before(replay)) if Hash::of(&replay.answer).to_string() == *answer => {}
                other => return Err(format!("{question} was answered {answer}, and now {other:?}")),
            }
        }
        Ok(tally)
    }
}

/// Waits until a moment, then kills; whether it was still there to be killed.
fn wait(child: &mut Child, end: Instant) -> Result<bool, String> {
    let told = |error: std::io::Error| format!("a worker could not be awaited: {error}");
    while Instant::now() < end {
        if child.try_wait().map_err(told)?.is_some() {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_micros(200).min(end.saturating_duration_since(Instant::now())));
    }
    let gone = child.try_wait().map_err(told)?.is_some();
    child.kill().map_err(told)?;
    child.wait().map_err(told)?;
    Ok(!gone)
}
