//! [`Worker`]: charges and records, says what was acknowledged, and expects to be killed.
//!
//! It says a line on its standard output after each thing the ledger acknowledged, for a [`Witness`](crate::Witness) to
//! hear. After a failure it makes sure that the handle is poisoned, opens the ledger again and asks for the
//! same under the same name, as a careful client would.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use demur_accounting::Filter;
use demur_exact::Rational;
use demur_ledger::entry::Position;
use demur_ledger::{BudgetName, Charged, Hash, Ledger, LedgerError, Location, Options, Request};
use demur_noise::Words;

use crate::Seeded;
use crate::witness::{BUDGET, named};

/// How often a worker opens the ledger again before it gives up.
const REOPENINGS: u32 = 4;

/// Somebody who uses a ledger.
pub struct Worker {
    location: Location,
    name: String,
    ledger: Option<Ledger>,
    reopenings: u32,
    /// Bytes in an answer, at least.
    size: usize,
}

/// How workers open a ledger: nothing takes long in a test.
pub fn options() -> Options {
    Options { patience: Duration::from_secs(20), ..Options::default() }
}

/// A ledger that is there, or was only half made, or is made now.
pub fn create_or_open(location: &Location) -> Result<Ledger, LedgerError> {
    match Ledger::create(location, options()) {
        Err(error) if error.code() == "ledger.exists" => Ledger::open(location, options()),
        done => done,
    }
}

/// The budget of ε = `eighths`/8.
pub fn budget_of(eighths: u64) -> Result<Filter, LedgerError> {
    let epsilon = Rational::new(i128::from(eighths), 8);
    Filter::pure(epsilon).map_err(|error| LedgerError::broken("worker", error.to_string()))
}

/// A request whose price and name follow from its question, so that anybody can repeat it.
pub fn request(requester: &str, question: &str) -> Result<Request, LedgerError> {
    let loss = if question.ends_with(['0', '5']) { "pure(0.25)" } else { "pure(0.125)" };
    let loss = loss.parse().map_err(|_| LedgerError::broken("worker", "the price cannot be read"))?;
    let request = Request::new(BUDGET, requester, question, loss);
    Ok(if named(question) { request.id(question) } else { request.data_version("1") })
}

impl Worker {
    /// A worker with a name.
    pub fn new(location: Location, name: &str) -> Self {
        Self { location, name: name.to_owned(), ledger: None, reopenings: 0, size: 0 }
    }

    /// With answers of this size: a few large ones, and the log moves into the file.
    pub fn with_answers(self, size: usize) -> Self {
        Self { size, ..self }
    }

    /// Everything a ledger does, once: made for faults at each step of it.
    ///
    /// The budget pays for eight eighths, then for twelve; the last question is refused.
    pub fn script(mut self) {
        self.create(8);
        for question in ["a1", "a2", "a5", "version1"] {
            self.ask(question);
        }
        for question in ["a1", "version1"] {
            self.ask(question);
        }
        self.raise(12);
        self.ledger = None;
        for question in ["a2", "b0", "b1", "b2", "b3", "b4", "b6"] {
            self.ask(question);
        }
        self.ledger = None;
        say("done");
    }

    /// Asks at random, in two threads that share commits, until `steps` are done.
    pub fn roam(mut self, seed: u64, round: u64, steps: u64, budget: u64) {
        self.create(budget);
        let mut words = Seeded::new(seed);
        let both = words.word().is_multiple_of(2);
        for step in 0..steps {
            match words.word() % 16 {
                0 => self.raise(budget + words.word() % 8),
                1 => self.ask(&format!("version{}", words.word() % 4)),
                // Perhaps asked before, by a worker of this name that was killed.
                2 | 3 => {
                    let old = words.word() % (round + 1);
                    let question = format!("{}-{old}-{}", self.name, words.word() % steps);
                    self.ask(&question);
                }
                4 => self.ledger = None,
                _ => {
                    let question = format!("{}-{round}-{step}", self.name);
                    match both {
                        true => self.ask_both([&question, &format!("{}-both-{round}-{step}", self.name)]),
                        false => self.ask(&question),
                    }
                }
            }
        }
        say("done");
    }

    /// Two questions at the same time through one handle.
    fn ask_both(&mut self, questions: [&str; 2]) {
        let Some(ledger) = self.open() else { return };
        let (name, size) = (&self.name, self.size);
        let answers = std::thread::scope(|scope| {
            let asked = questions.map(|question| scope.spawn(|| answer(&ledger, name, question, size)));
            asked
                .map(|thread| thread.join().unwrap_or_else(|_| Err(LedgerError::broken("worker", "a panic"))))
        });
        self.ledger = Some(ledger);
        for error in answers.iter().filter_map(|answer| answer.as_ref().err()) {
            match error.is_broken() {
                true => {
                    self.tell(error);
                    self.ledger = None;
                }
                false => say(&format!("refused {}", error.code())),
            }
        }
    }

    fn create(&mut self, eighths: u64) {
        self.attempt(|ledger, _| {
            let (name, filter) = (BudgetName::whole(BUDGET), budget_of(eighths)?);
            match ledger.create_budget(name, "data", "row", filter, "") {
                Ok(position) => say(&format!("created {}", place(position))),
                Err(error) if error.code() == "ledger.budget.exists" => {}
                Err(error) => return Err(error),
            }
            Ok(())
        });
    }

    fn raise(&mut self, eighths: u64) {
        self.attempt(|ledger, _| {
            let position = ledger.raise_budget(BudgetName::whole(BUDGET), budget_of(eighths)?, "more")?;
            say(&format!("raised {}", place(position)));
            Ok(())
        });
    }

    fn ask(&mut self, question: &str) {
        let size = self.size;
        self.attempt(|ledger, name| answer(ledger, name, question, size));
    }

    /// Does something until it is done or refused, opening the ledger again after failures.
    fn attempt(&mut self, work: impl Fn(&Ledger, &str) -> Result<(), LedgerError>) {
        loop {
            let Some(ledger) = self.open() else { return };
            match work(&ledger, &self.name) {
                Err(error) if error.is_busy() => say(&format!("failed {}", error.code())),
                Err(error) if error.is_broken() => {
                    self.tell(&error);
                    match ledger.book().map_err(|error| error.code()) {
                        Err("ledger.poisoned") => {}
                        other => say(&format!("VIOLATION: after {error} the ledger answers {other:?}")),
                    }
                    continue;
                }
                Err(error) => say(&format!("refused {}", error.code())),
                Ok(()) => {}
            }
            self.ledger = Some(ledger);
            return;
        }
    }

    fn open(&mut self) -> Option<Ledger> {
        while self.ledger.is_none() && self.reopenings < REOPENINGS {
            match create_or_open(&self.location) {
                Ok(ledger) => self.ledger = Some(ledger),
                Err(error) => self.tell(&error),
            }
        }
        self.ledger.take()
    }

    fn tell(&mut self, error: &LedgerError) {
        self.reopenings += 1;
        say(&format!("failed {} {error}", error.code()));
    }
}

/// Charges and releases, or shows what was released before.
fn answer(ledger: &Ledger, name: &str, question: &str, size: usize) -> Result<(), LedgerError> {
    match ledger.charge(request(name, question)?)? {
        Charged::Before(replay) => say(&format!("replayed {question} {}", Hash::of(&replay.answer))),
        Charged::Now(receipt) => {
            say(&format!("charged {question} {}", place(receipt.position())));
            // Fresh noise at every attempt: no two answers are ever the same.
            static NOISE: AtomicU64 = AtomicU64::new(0);
            let noise =
                (std::process::id(), std::time::SystemTime::now(), NOISE.fetch_add(1, Ordering::Relaxed));
            let answer = format!("{noise:?}{}", ".".repeat(size));
            let position = ledger.record(receipt, answer.as_bytes())?;
            say(&format!("released {question} {} {}", Hash::of(answer.as_bytes()), place(position)));
        }
    }
    Ok(())
}

fn place(position: Position) -> String {
    format!("{} {}", position.sequence, position.hash)
}

/// One line in one write, so that it is said whole or not at all. Who does not listen is dead, or wants us dead.
fn say(line: &str) {
    let _ = std::io::stdout().lock().write_all(format!("{line}\n").as_bytes());
}
