//! [`Witness`]: hears what a ledger acknowledged, and later holds it to its word.
//!
//! A worker says a line for each thing the ledger acknowledged, after it did; the witness lives in another process and
//! outlives it. [`Witness::check`] reads the entries itself, without the ledger's own [`Book`](demur_ledger::Book), so a
//! wrong book is noticed too.
//!
//! **What is held.**
//! * Every entry follows the one before it.
//! * What was charged never exceeds the budget as it stood then.
//! * A request with a name is charged at most once; a charge has at most one release, and that comes after it.
//! * Every acknowledged entry stands where it was said to stand; every answer shown is the one that was released.
//! * The anchor remembers the last acknowledged entry or a later one.
//! * The ledger opens, and its book says the same.

use std::collections::{BTreeMap, BTreeSet};

use demur_ledger::anchor::Anchor;
use demur_ledger::entry::{Charge, Event, Position, Release, Sealed};
use demur_ledger::{BudgetName, Hash, Ledger, LedgerError, Location, Options};

/// The name of the one budget.
pub const BUDGET: &str = "budget";

/// What was acknowledged so far.
#[derive(Clone, Debug, Default)]
pub struct Witness {
    entries: BTreeMap<u64, (Hash, &'static str, String)>,
    answers: BTreeMap<String, String>,
    shown: Vec<(String, String)>,
    /// Words of workers about things that must not happen.
    pub complaints: Vec<String>,
    /// How many charges were acknowledged.
    pub charges: u64,
    /// How many releases were acknowledged.
    pub releases: u64,
    /// How often the budget said no.
    pub refused: u64,
    /// What broke, in the ledger's words.
    pub failed: Vec<String>,
}

/// What stands in a ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Entries of all kinds.
    pub entries: u64,
    /// Charges.
    pub charges: u64,
    /// Releases.
    pub releases: u64,
    /// What was spent, in eighths.
    pub spent: u64,
}

impl Witness {
    /// Hears a line; half a line, cut off by the end of its writer, was not said.
    pub fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let place = |sequence: &str, hash: &str| Some((sequence.parse().ok()?, hash.parse().ok()?));
        let heard = match words.as_slice() {
            ["created", sequence, hash] => self.entry(place(sequence, hash), "created", ""),
            ["raised", sequence, hash] => self.entry(place(sequence, hash), "raised", ""),
            ["charged", name, sequence, hash] => {
                self.charges += 1;
                self.entry(place(sequence, hash), "charged", name)
            }
            ["released", name, answer, sequence, hash] => {
                self.releases += 1;
                self.shown.push(((*name).to_owned(), (*answer).to_owned()));
                self.entry(place(sequence, hash), "released", answer)
            }
            ["replayed", name, answer] => {
                self.shown.push(((*name).to_owned(), (*answer).to_owned()));
                true
            }
            ["refused", ..] => {
                self.refused += 1;
                true
            }
            ["failed", ..] => {
                self.failed.push(line.to_owned());
                true
            }
            ["done"] => true,
            _ => false,
        };
        if !heard {
            self.complaints.push(line.to_owned());
        }
    }

    fn entry(&mut self, place: Option<(u64, Hash)>, what: &'static str, name: &str) -> bool {
        let Some((sequence, hash)) = place else { return false };
        self.entries.insert(sequence, (hash, what, name.to_owned())).is_none()
    }

    /// Whether anything was acknowledged at all.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What was shown under a name, as hashes of the answers; known after a check.
    pub fn answers(&self) -> &BTreeMap<String, String> {
        &self.answers
    }

    /// Compares what was acknowledged with what stands at this place.
    pub fn check(&mut self, location: &Location, options: &Options) -> Result<Tally, String> {
        if let Some(complaint) = self.complaints.first() {
            return Err(format!("a worker said: {complaint}"));
        }
        let memory = Anchor::recall(&location.anchor()).map_err(told("the anchor cannot be read"))?;
        let remembered = memory.map(|memory| memory.position.sequence);
        if let Some((last, _)) = self.entries.last_key_value()
            && remembered < Some(*last)
        {
            return Err(format!("entry {last} was acknowledged, and the anchor remembers {remembered:?}"));
        }
        self.check_entries(location, options)
    }

    /// The same, where the anchor may remember less: the machine lost its power.
    pub fn check_entries(&mut self, location: &Location, options: &Options) -> Result<Tally, String> {
        let opened = Ledger::open(location, options.clone()).map_err(told("the ledger does not open"))?;
        let book = opened.book().map_err(told("the ledger has no book"))?;
        drop(opened);
        let mut walk = Walk::default();
        let read = Ledger::entries(location, 0, &mut |sealed| {
            walk.step(&sealed).map_err(|text| LedgerError::broken("witness", text))
        });
        read.map_err(told("the entries are wrong"))?;
        for (sequence, (hash, what, name)) in &self.entries {
            match walk.said.get(sequence) {
                Some(said) if *said == (*hash, *what, name.clone()) => {}
                Some(said) => return Err(format!("entry {sequence} was {what} {name}, and now is {said:?}")),
                None => {
                    return Err(format!("entry {sequence} ({what} {name}) was acknowledged and is missing"));
                }
            }
        }
        for (name, answer) in &self.shown {
            if !walk.answers.get(name).is_some_and(|known| known.contains(answer)) {
                return Err(format!("the answer {answer} to {name} was shown and is not in the ledger"));
            }
            // What was asked under a name of its own has one answer for ever.
            if named(name)
                && self.answers.insert(name.clone(), answer.clone()).is_some_and(|old| old != *answer)
            {
                return Err(format!("{name} was answered twice"));
            }
        }
        let tally = walk.tally;
        let budget = book.budget(&BudgetName::whole(BUDGET));
        let said = budget.map_or((0, 0), |budget| (budget.charges, budget.releases));
        if said != (tally.charges, tally.releases) || book.head().sequence + 1 != tally.entries {
            return Err(format!("the book says {said:?} charges and releases, the entries {tally:?}"));
        }
        Ok(tally)
    }
}

/// Whether a question is asked under a name of its own; others are about a version of the data.
pub(crate) fn named(question: &str) -> bool {
    !question.starts_with("version")
}

/// The entries as they are read, one after the other.
#[derive(Default)]
struct Walk {
    head: Option<Position>,
    tally: Tally,
    capacity: u64,
    names: BTreeSet<(String, String)>,
    unreleased: BTreeMap<u64, Charge>,
    answers: BTreeMap<String, BTreeSet<String>>,
    said: BTreeMap<u64, (Hash, &'static str, String)>,
}

impl Walk {
    fn step(&mut self, sealed: &Sealed) -> Result<(), String> {
        let sequence = sealed.position.sequence;
        if !sealed.follows(self.head) {
            return Err(format!("entry {sequence} does not follow the one before it"));
        }
        self.head = Some(sealed.position);
        self.tally.entries += 1;
        let entry = sealed.read().map_err(|error| error.to_string())?;
        let (what, name) = match entry.event {
            Event::Create(create) => {
                self.capacity = eighths_of(&create.filter.guarantee().0)?;
                ("created", String::new())
            }
            Event::Raise(raise) => {
                self.capacity = eighths_of(&raise.filter.guarantee().0)?;
                ("raised", String::new())
            }
            Event::Charge(charge) => ("charged", self.charge(sequence, charge)?),
            Event::Release(release) => ("released", self.release(sequence, &release)?),
            _ => ("other", String::new()),
        };
        self.said.insert(sequence, (sealed.position.hash, what, name));
        Ok(())
    }

    fn charge(&mut self, sequence: u64, charge: Charge) -> Result<String, String> {
        self.tally.charges += 1;
        self.tally.spent += price(&charge)?;
        if self.tally.spent > self.capacity {
            return Err(format!("entry {sequence} spends {} of {} eighths", self.tally.spent, self.capacity));
        }
        if let Some(id) = &charge.id
            && !self.names.insert((charge.requester.clone(), id.clone()))
        {
            return Err(format!("entry {sequence} charges {id} again"));
        }
        let question = charge.question.clone();
        self.unreleased.insert(sequence, charge);
        Ok(question)
    }

    fn release(&mut self, sequence: u64, release: &Release) -> Result<String, String> {
        self.tally.releases += 1;
        let charge = self.unreleased.remove(&release.charge);
        let charge = charge.ok_or_else(|| format!("entry {sequence} releases what was not paid for"))?;
        if (&charge.budget, &charge.requester) != (&release.budget, &release.requester) {
            return Err(format!("entry {sequence} releases for somebody else"));
        }
        let answer = release.answer.to_string();
        self.answers.entry(charge.question).or_default().insert(answer.clone());
        Ok(answer)
    }
}

/// What a charge costs, in eighths: workers pay ε = 1/8 or 1/4.
fn price(charge: &Charge) -> Result<u64, String> {
    match charge.loss.to_string().as_str() {
        "pure(0.125)" => Ok(1),
        "pure(0.25)" => Ok(2),
        other => Err(format!("somebody charged {other}")),
    }
}

fn eighths_of(epsilon: &demur_exact::Rational) -> Result<u64, String> {
    let eighths = epsilon * &demur_exact::Rational::from(8u32);
    eighths.to_string().parse().map_err(|_| format!("a budget of {epsilon} is not in eighths"))
}

fn told(what: &str) -> impl Fn(LedgerError) -> String {
    move |error| format!("{what}: [{}] {error}", error.code())
}
