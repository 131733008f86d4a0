//! [`Writer`]: the one hand that writes, and lets all who wait share a commit.
//!
//! Every handle has one writer thread. It takes all jobs that are waiting, locks the store, reads what other
//! processes have written meanwhile, decides each job by the [`Book`], appends the entries, commits once, and only
//! then tells anybody. So a hundred charges cost one sync, and an answer that is not refused is on disk.
//!
//! **Faults.** Whatever goes wrong between locking and the end of the commit, the writer stops and takes no more jobs: nobody knows what
//! is on disk until the chain has been read and verified again. All who wait are told so.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;

use crate::anchor::{Anchor, Memory};
use crate::book::Book;
use crate::entry::{BudgetName, Charge, Event, Position, Release};
use crate::receipt::{Charged, Receipt, Replay};
use crate::request::Request;
use crate::store::{AnswerRow, Found, Row, Store, StoredAnswer, Wanted};
use crate::{Hash, LedgerError};

/// Jobs that share a commit, at most.
const LARGEST_BATCH: usize = 1024;

/// What is asked of the writer.
pub(crate) enum Work {
    /// Charge a request.
    Charge(Box<Request>),
    /// Keep the answer that a receipt paid for.
    Record(Receipt, Vec<u8>),
    /// Write an event of the owner's, if the book allows it.
    Change(Draft),
    /// Say where everything stands.
    Look,
}

/// An event drafted from the book as it is.
pub(crate) type Draft = Box<dyn FnOnce(&Book) -> Result<Event, LedgerError> + Send>;

/// What came of it.
pub(crate) enum Done {
    Charged(Charged),
    Written(Position),
    Book(Box<Book>),
}

/// One piece of work and where to answer.
pub(crate) struct Job {
    pub(crate) work: Work,
    pub(crate) reply: SyncSender<Result<Done, LedgerError>>,
}

/// Why a ledger takes no more jobs, once it does not.
pub(crate) type Poison = Arc<OnceLock<LedgerError>>;

pub(crate) struct Writer {
    pub(crate) store: Box<dyn Store>,
    pub(crate) anchor: Anchor,
    pub(crate) book: Book,
    pub(crate) software: String,
    pub(crate) clock: fn() -> Timestamp,
    pub(crate) checkpoint_every: u64,
    pub(crate) poison: Poison,
}

impl Writer {
    /// Works until every handle is gone or something breaks.
    pub(crate) fn run(mut self, jobs: &Receiver<Job>) {
        while let Ok(first) = jobs.recv() {
            let mut work = vec![first.work];
            let mut replies = vec![first.reply];
            for job in jobs.try_iter().take(LARGEST_BATCH - 1) {
                work.push(job.work);
                replies.push(job.reply);
            }
            let results = match self.batch(work) {
                Ok(results) => results,
                Err(error) => {
                    if error.is_broken() {
                        let _ = self.poison.set(error.clone());
                    }
                    replies.iter().map(|_| Err(error.clone())).collect()
                }
            };
            for (reply, result) in replies.iter().zip(results) {
                // Whoever asked may have gone; the charge stands.
                let _ = reply.send(result);
            }
            if self.poison.get().is_some() {
                return;
            }
        }
    }

    /// Decides all work under one lock and one commit.
    fn batch(&mut self, work: Vec<Work>) -> Result<Vec<Result<Done, LedgerError>>, LedgerError> {
        let head = self.store.begin()?;
        self.locked(head, work).map_err(|error| {
            // What the store holds is unknown now, whatever the error was.
            let _ = self.store.abandon();
            match error.is_broken() {
                true => error,
                false => LedgerError::broken("ledger.store", error.to_string()),
            }
        })
    }

    fn locked(
        &mut self,
        head: Option<Position>,
        work: Vec<Work>,
    ) -> Result<Vec<Result<Done, LedgerError>>, LedgerError> {
        self.catch_up(head)?;
        let found = self.look_up(&work)?;
        let mut page = Page { rows: Vec::new(), named: HashMap::new() };
        let mut results = Vec::with_capacity(work.len());
        for (work, found) in work.into_iter().zip(found) {
            match self.decide(work, found, &mut page) {
                Err(error) if error.is_broken() => return Err(error),
                result => results.push(result),
            }
        }
        if page.rows.is_empty() {
            self.store.abandon()?;
            return Ok(results);
        }
        if self.book.since_checkpoint() >= self.checkpoint_every {
            let checkpoint = Event::Checkpoint(self.book.checkpoint());
            self.write(checkpoint, &mut page)?;
        }
        self.store.append(&page.rows)?;
        self.store.commit()?;
        self.anchor.remember(Memory { ledger: self.book.ledger(), position: self.book.head() })?;
        Ok(results)
    }

    /// Reads what others have written since we last looked.
    fn catch_up(&mut self, head: Option<Position>) -> Result<(), LedgerError> {
        let known = self.book.head();
        if head == Some(known) {
            return Ok(());
        }
        let book = &mut self.book;
        self.store.read(known.sequence + 1, &mut |sealed| book.apply(&sealed))?;
        if Some(self.book.head()) == head {
            return Ok(());
        }
        let text =
            format!("entry {} is no longer the ledger's; an older copy was put in its place", known.sequence);
        Err(LedgerError::broken("ledger.rollback", text))
    }

    /// What is known about each request that has a name or asks about a version of the data.
    fn look_up(&mut self, work: &[Work]) -> Result<Vec<Found>, LedgerError> {
        let book = &self.book;
        let wanted: Vec<Option<Wanted<'_>>> = work
            .iter()
            .map(|work| match work {
                Work::Charge(request) if request.id.is_some() || request.data_version.is_some() => {
                    Some(Wanted {
                        requester: &request.requester,
                        id: request.id.as_deref(),
                        request: request.data_version.is_some().then(|| request.hash()),
                        only_own: book.has_part(&request.budget, &request.requester),
                    })
                }
                _ => None,
            })
            .collect();
        let asked: Vec<Wanted<'_>> = wanted.iter().flatten().cloned().collect();
        let mut found = if asked.is_empty() { Vec::new() } else { self.store.find(&asked)? }.into_iter();
        let known =
            |wanted: &Option<Wanted<'_>>| wanted.as_ref().and_then(|_| found.next()).unwrap_or_default();
        Ok(wanted.iter().map(known).collect())
    }

    fn decide(&mut self, work: Work, found: Found, page: &mut Page) -> Result<Done, LedgerError> {
        match work {
            Work::Charge(request) => self.charge(&request, found, page).map(Done::Charged),
            Work::Record(receipt, answer) => self.record(receipt, answer, page).map(Done::Written),
            Work::Change(draft) => {
                let event = draft(&self.book)?;
                self.write(event, page).map(Done::Written)
            }
            Work::Look => Ok(Done::Book(Box::new(self.book.clone()))),
        }
    }

    fn charge(&mut self, request: &Request, found: Found, page: &mut Page) -> Result<Charged, LedgerError> {
        let name = request.id.as_ref().map(|id| (request.requester.clone(), id.clone()));
        if let Some(sealed) = found.charge {
            let Event::Charge(charge) = sealed.read()?.event else {
                return Err(LedgerError::broken(
                    "ledger.index",
                    "a request's name does not lead to its charge",
                ));
            };
            if (&charge.requester, &charge.id) != (&request.requester, &request.id) {
                return Err(LedgerError::broken(
                    "ledger.index",
                    "a request's name leads to the charge of another",
                ));
            }
            same_request(request, &charge.request, sealed.position.sequence)?;
            return match found.answer {
                Some(answer) => replay(answer, Some(sealed.position.sequence)).map(Charged::Before),
                None => Err(unanswered(request, sealed.position.sequence)),
            };
        }
        if let Some((sequence, hash)) = name.as_ref().and_then(|name| page.named.get(name)) {
            same_request(request, hash, *sequence)?;
            return Err(unanswered(request, *sequence));
        }
        if let Some(answer) = found.answer {
            return replay(answer, None).map(Charged::Before);
        }
        let charge = self.book.charge(request)?;
        let position = self.write(Event::Charge(charge.clone()), page)?;
        if let Some(name) = name {
            page.named.insert(name.clone(), (position.sequence, charge.request));
            page.last_row()?.named = Some(name);
        }
        let budget = self.book.budget(&BudgetName::whole(&charge.budget)).cloned();
        let budget = budget.ok_or_else(|| LedgerError::ours("a budget was lost while it was charged"))?;
        Ok(Charged::Now(Receipt::new(self.book.ledger(), position, charge, budget)))
    }

    fn record(
        &mut self,
        receipt: Receipt,
        answer: Vec<u8>,
        page: &mut Page,
    ) -> Result<Position, LedgerError> {
        if receipt.ledger() != self.book.ledger() {
            return Err(LedgerError::misuse("ledger.receipt", "the receipt is from another ledger"));
        }
        let paid = receipt.position().sequence;
        let Charge { budget, requester, request, data_version, .. } = receipt.into_charge();
        let hash = Hash::of(&answer);
        let release = Release { charge: paid, budget, requester: requester.clone(), answer: hash };
        let position = self.write(Event::Release(release), page)?;
        let request = data_version.map(|_| request);
        page.last_row()?.answer = Some(AnswerRow { charge: paid, requester, request, bytes: answer });
        Ok(position)
    }

    fn write(&mut self, event: Event, page: &mut Page) -> Result<Position, LedgerError> {
        let sealed = self.book.write(event, (self.clock)(), &self.software)?;
        let position = sealed.position;
        page.rows.push(Row { sealed, named: None, answer: None });
        Ok(position)
    }
}

/// What one commit will write, and the names of requests in it.
struct Page {
    rows: Vec<Row>,
    named: HashMap<(String, String), (u64, Hash)>,
}

impl Page {
    fn last_row(&mut self) -> Result<&mut Row, LedgerError> {
        self.rows.last_mut().ok_or_else(|| LedgerError::ours("an entry was lost before it was written"))
    }
}

fn same_request(request: &Request, charged: &Hash, sequence: u64) -> Result<(), LedgerError> {
    if request.hash() == *charged {
        return Ok(());
    }
    let id = request.id.as_deref().unwrap_or_default();
    let text = format!(
        "the request id `{id}` was used for another request (entry {sequence}); give every request its own; \
         nothing was charged"
    );
    Err(LedgerError::refusal("ledger.request.other", text))
}

fn unanswered(request: &Request, sequence: u64) -> LedgerError {
    let id = request.id.as_deref().unwrap_or_default();
    let text = format!(
        "the request `{id}` was charged (entry {sequence}) but has no stored answer: it is still being worked on, or \
         it failed; the charge stands, and nothing new was charged; to pay again use another request id"
    );
    LedgerError::refusal("ledger.request.unanswered", text)
}

/// The stored answer, if it is what was released; and for this charge, if that is known.
fn replay(answer: StoredAnswer, paid: Option<u64>) -> Result<Replay, LedgerError> {
    match answer.release.read()?.event {
        Event::Release(Release { charge, answer: hash, .. })
            if Hash::of(&answer.bytes) == hash && paid.is_none_or(|paid| paid == charge) =>
        {
            Ok(Replay { charge, release: answer.release.position, answer: answer.bytes })
        }
        _ => {
            let sequence = answer.release.position.sequence;
            let text = format!("the stored answer of entry {sequence} is not the one that was released");
            Err(LedgerError::broken("ledger.answer", text))
        }
    }
}
