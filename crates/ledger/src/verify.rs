//! [`verify`]: every entry read and recomputed, nothing believed.
//!
//! Opening a ledger checks every hash and folds the entries since the last checkpoint. This goes through all of
//! them from the first one: each charge is priced anew, each request hashed anew, each checkpoint compared with
//! the book, each stored answer with the hash that was released.

use std::collections::HashMap;

use crate::book::Book;
use crate::chain;
use crate::entry::{BudgetName, Charge, Event, Release, Sealed};
use crate::ledger::present;
use crate::location::Location;
use crate::request::Request;
use crate::{Hash, LedgerError};

/// Findings that are told; a broken ledger could have millions.
const MOST_FINDINGS: usize = 100;

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Where everything stands.
    pub book: Book,
    /// How many charges there are.
    pub charges: u64,
    /// How many answers were released.
    pub releases: u64,
    /// What is wrong, one sentence each; empty when all is well.
    pub findings: Vec<String>,
}

/// Recomputes everything a ledger says. An error means that the chain itself does not hold.
pub fn verify(location: &Location) -> Result<Report, LedgerError> {
    let memory = present(location)?;
    let mut store = location.open_to_read()?;
    let (mut check, mut anchored) = (Check::default(), false);
    store.read(0, &mut |sealed| {
        anchored |= sealed.position == memory.position;
        check.entry(&sealed)
    })?;
    let Some(book) = check.book.take() else {
        return Err(LedgerError::broken("ledger.chain", "the ledger is empty: its first entry is missing"));
    };
    if !anchored || memory.ledger != book.ledger() {
        return Err(chain::rollback(memory.position.sequence, book.head().sequence + 1));
    }
    store.answers(0..u64::MAX, &mut |charge, bytes| {
        check.answer(charge, bytes);
        Ok(())
    })?;
    for charge in std::mem::take(&mut check.released).into_keys() {
        check.find(format!("the answer that was released for entry {charge} is not stored any more"));
    }
    let Check { charges, releases, findings, .. } = check;
    Ok(Report { book, charges, releases, findings })
}

#[derive(Default)]
struct Check {
    book: Option<Book>,
    charges: u64,
    releases: u64,
    /// Budgets and requesters; charges have their numbers.
    payers: Payers,
    /// Charges without a release, and whose it may be.
    unreleased: HashMap<u64, u32>,
    /// Charges with a release, and the hash of the answer.
    released: HashMap<u64, Hash>,
    findings: Vec<String>,
}

impl Check {
    fn entry(&mut self, sealed: &Sealed) -> Result<(), LedgerError> {
        let Some(mut book) = self.book.take() else {
            if !sealed.follows(None) {
                return Err(LedgerError::broken("ledger.chain", "the first entry was changed or is missing"));
            }
            self.book = Some(Book::start(sealed)?);
            return Ok(());
        };
        let sequence = sealed.position.sequence;
        let event = sealed.read()?.event;
        match &event {
            Event::Charge(charge) => self.charge(sequence, charge, &book),
            Event::Release(release) => self.release(sequence, release),
            _ => {}
        }
        book.apply(sealed)?;
        self.book = Some(book);
        Ok(())
    }

    /// The price is what this version would charge, or more.
    fn charge(&mut self, sequence: u64, charge: &Charge, book: &Book) {
        self.charges += 1;
        self.unreleased.insert(sequence, self.payers.number(&charge.budget, &charge.requester));
        let Charge { budget, requester, id, question, data_version, loss, request, after, part_after } =
            charge;
        let asked = Request {
            budget: budget.clone(),
            requester: requester.clone(),
            id: id.clone(),
            question: question.clone(),
            data_version: data_version.clone(),
            loss: loss.clone(),
        };
        if asked.hash() != *request {
            self.find(format!("entry {sequence} names a hash that is not the one of its request"));
        }
        let part = BudgetName::part(budget, requester);
        for (name, after) in [(BudgetName::whole(budget), Some(after)), (part, part_after.as_ref())] {
            let (Some(budget), Some(after)) = (book.budget(&name), after) else { continue };
            let enough = match budget.filter.admit(&budget.spent, loss) {
                Ok(least) => budget.filter.follows(&least, after),
                Err(_) => false,
            };
            if !enough {
                self.find(format!("entry {sequence} charged {name} less than this version would charge"));
            }
        }
    }

    fn release(&mut self, sequence: u64, release: &Release) {
        self.releases += 1;
        let payer = self.payers.number(&release.budget, &release.requester);
        if self.unreleased.remove(&release.charge) != Some(payer) {
            self.find(format!(
                "entry {sequence} releases an answer for entry {}, which did not pay for it or has one already",
                release.charge
            ));
        }
        self.released.insert(release.charge, release.answer);
    }

    fn answer(&mut self, charge: u64, bytes: &[u8]) {
        if self.released.remove(&charge) != Some(Hash::of(bytes)) {
            self.find(format!("the answer stored for entry {charge} is not the one that was released"));
        }
    }

    fn find(&mut self, text: String) {
        if self.findings.len() < MOST_FINDINGS {
            self.findings.push(text);
        }
    }
}

/// A number for every budget and requester: there are few of them, and very many charges.
#[derive(Default)]
struct Payers {
    known: HashMap<String, HashMap<String, u32>>,
    count: u32,
}

impl Payers {
    fn number(&mut self, budget: &str, requester: &str) -> u32 {
        if let Some(number) = self.known.get(budget).and_then(|requesters| requesters.get(requester)) {
            return *number;
        }
        self.count += 1;
        self.known.entry(budget.to_owned()).or_default().insert(requester.to_owned(), self.count);
        self.count
    }
}
