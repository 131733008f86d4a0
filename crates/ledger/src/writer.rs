//! [`Writer`]: the one hand that writes.
//!
//! It takes a batch of work, locks the store, reads what other processes have written meanwhile, decides each piece by the
//! [`Book`], appends the entries and commits once. Only then does the [`Desk`](crate::desk::Desk) tell anybody.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;

use crate::anchor::{Anchor, Memory};
use crate::book::Book;
use crate::entry::{Budget, Charge, Event, Position, Release, Sealed};
use crate::names::Names;
use crate::quotes::Quotes;
use crate::receipt::{Charged, Receipt, Replay};
use crate::request::{Asked, Request};
use crate::store::{AnswerRow, Found, Row, Store, StoredAnswer, Wanted};
use crate::{Hash, LedgerError};

/// What is asked of the writer.
pub(crate) enum Work {
    /// Charge a request.
    Charge(Box<Asked>),
    /// Find the charge of a request that was charged and never answered.
    Resume(Box<Asked>),
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

pub(crate) struct Writer {
    pub(crate) store: Box<dyn Store>,
    pub(crate) anchor: Anchor,
    pub(crate) book: Book,
    pub(crate) names: Names,
    pub(crate) software: String,
    pub(crate) clock: fn() -> Timestamp,
    pub(crate) checkpoint_every: u64,
    pub(crate) quotes: Quotes,
}

impl Writer {
    /// Decides all work under one lock and one commit.
    pub(crate) fn batch(&mut self, work: Vec<Work>) -> Result<Vec<Result<Done, LedgerError>>, LedgerError> {
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
        let mut page = Page::default();
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
        if self.book.is_due(self.checkpoint_every) {
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
        let (book, names) = (&mut self.book, &mut self.names);
        self.store.read(known.sequence + 1, &mut |sealed| {
            book.apply(&sealed)?;
            names.add(&sealed)
        })?;
        if Some(self.book.head()) == head {
            return Ok(());
        }
        let text =
            format!("entry {} is no longer the ledger's; an older copy was put in its place", known.sequence);
        Err(LedgerError::broken("ledger.rollback", text))
    }

    /// What is known about each request whose name was charged or that asks about a version of the data.
    fn look_up(&mut self, work: &[Work]) -> Result<Vec<Found>, LedgerError> {
        let mut found = vec![Found::default(); work.len()];
        let asked = work.iter().enumerate().filter_map(|(place, work)| match work {
            Work::Charge(asked) | Work::Resume(asked) => Some((place, self.wanted(asked)?)),
            Work::Record(receipt, _) => Some((place, paid(receipt)?)),
            _ => None,
        });
        let (places, wanted): (Vec<usize>, Vec<Wanted<'_>>) = asked.unzip();
        if !wanted.is_empty() {
            for ((place, wanted), known) in places.into_iter().zip(&wanted).zip(self.store.find(&wanted)?) {
                if let (Some(sequence), None) = (wanted.charge, &known.charge) {
                    let text = format!("entry {sequence} is no longer in the ledger");
                    return Err(LedgerError::broken("ledger.chain", text));
                }
                found[place] = known;
            }
        }
        Ok(found)
    }

    fn wanted<'a>(&self, asked: &'a Asked) -> Option<Wanted<'a>> {
        let Asked { request, hash, .. } = asked;
        let (charge, hash) = (self.named(request), request.data_version.is_some().then_some(*hash));
        let only_own = self.book.named(&request.budget, Some(&request.requester)).is_some();
        (charge.is_some() || hash.is_some()).then(|| Wanted {
            requester: &request.requester,
            charge,
            request: hash,
            only_own,
        })
    }

    /// The charge that carries a request's name.
    fn named(&self, request: &Request) -> Option<u64> {
        request.id.as_deref().and_then(|id| self.names.charge(&request.requester, id))
    }

    fn decide(&mut self, work: Work, found: Found, page: &mut Page) -> Result<Done, LedgerError> {
        match work {
            Work::Charge(asked) => self.charge(*asked, found, page).map(Done::Charged),
            Work::Resume(asked) => self.resume(&asked, found, page).map(Done::Charged),
            Work::Record(receipt, answer) => self.record(receipt, answer, found, page).map(Done::Written),
            Work::Change(draft) => {
                let event = draft(&self.book)?;
                self.write(event, page).map(Done::Written)
            }
            Work::Look => Ok(Done::Book(Box::new(self.book.clone()))),
        }
    }

    fn charge(&mut self, asked: Asked, found: Found, page: &mut Page) -> Result<Charged, LedgerError> {
        let now = self.named(&asked.request).and_then(|charge| page.sealed(charge));
        if let Some(sealed) = found.charge.as_ref().or(now) {
            charge_of(&asked, sealed)?;
            return match found.answer {
                Some(answer) => replay(answer, Some(sealed.position.sequence)).map(Charged::Before),
                None => Err(unanswered(&asked, sealed.position.sequence)),
            };
        }
        if let Some(answer) = found.answer {
            return replay(answer, None).map(Charged::Before);
        }
        let (charge, text) = self.book.charge(asked, &mut self.quotes)?;
        let sealed = self.book.write_charge(&charge, text, (self.clock)(), &self.software)?;
        let position = sealed.position;
        self.names.add_charge(&charge, position.sequence);
        page.rows.push(Row { sealed, answer: None });
        self.receipt(position, charge, page)
    }

    /// The receipt of a charge that nothing was released for, or what was.
    fn resume(&self, asked: &Asked, found: Found, page: &mut Page) -> Result<Charged, LedgerError> {
        let Some(sealed) = found.charge else {
            if let Some(sequence) = self.named(&asked.request) {
                return Err(unanswered(asked, sequence));
            }
            let text =
                "this request was never charged, so there is nothing to go on with; nothing was charged";
            return Err(LedgerError::refusal("ledger.request.unknown", text));
        };
        let charge = charge_of(asked, &sealed)?;
        match found.answer {
            Some(answer) => replay(answer, Some(sealed.position.sequence)).map(Charged::Before),
            None => self.receipt(sealed.position, charge, page),
        }
    }

    fn receipt(&self, position: Position, charge: Charge, page: &mut Page) -> Result<Charged, LedgerError> {
        let budget = self.book.named(&charge.budget, None);
        let budget = budget.ok_or_else(|| LedgerError::ours("a budget was lost while it was charged"))?;
        Ok(Charged::Now(Receipt::new(self.book.ledger(), position, charge, page.budget(budget))))
    }

    fn record(
        &mut self,
        receipt: Receipt,
        answer: Vec<u8>,
        found: Found,
        page: &mut Page,
    ) -> Result<Position, LedgerError> {
        if receipt.ledger() != self.book.ledger() {
            return Err(LedgerError::misuse("ledger.receipt", "the receipt is from another ledger"));
        }
        let paid = receipt.position().sequence;
        // Of several who go on with a named charge one releases.
        if found.answer.is_some() || (receipt.charge().id.is_some() && !page.answered.insert(paid)) {
            let text = format!("what entry {paid} paid for was released meanwhile; ask again to see it");
            return Err(LedgerError::refusal("ledger.request.answered", text));
        }
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
        page.rows.push(Row { sealed, answer: None });
        Ok(position)
    }
}

/// What one commit will write, and what its charges have in common.
#[derive(Default)]
struct Page {
    rows: Vec<Row>,
    /// Named charges that are answered.
    answered: HashSet<u64>,
    budgets: Vec<Arc<Budget>>,
}

impl Page {
    /// The entry of this number, if it is one of these.
    fn sealed(&self, sequence: u64) -> Option<&Sealed> {
        let first = self.rows.first()?.sealed.position.sequence;
        let place = usize::try_from(sequence.checked_sub(first)?).ok()?;
        self.rows.get(place).map(|row| &row.sealed)
    }

    /// A copy of the budget for the receipts of all who pay from it under the same filter.
    fn budget(&mut self, budget: &Budget) -> Arc<Budget> {
        let same = |known: &&Arc<Budget>| known.name == budget.name && known.filter == budget.filter;
        if let Some(known) = self.budgets.iter().find(same) {
            return known.clone();
        }
        let copy = Arc::new(budget.clone());
        self.budgets.push(copy.clone());
        copy
    }

    fn last_row(&mut self) -> Result<&mut Row, LedgerError> {
        self.rows.last_mut().ok_or_else(|| LedgerError::ours("an entry was lost before it was written"))
    }
}

/// What is asked before an answer is kept: whether there is one. Only a charge with a name can have several receipts.
fn paid(receipt: &Receipt) -> Option<Wanted<'_>> {
    let (Charge { requester, id, .. }, charge) = (receipt.charge(), receipt.position().sequence);
    id.is_some().then_some(Wanted { requester, charge: Some(charge), request: None, only_own: true })
}

/// The charge that a request's name leads to, if it is that of this very request.
fn charge_of(asked: &Asked, sealed: &Sealed) -> Result<Charge, LedgerError> {
    let Event::Charge(charge) = sealed.read()?.event else {
        return Err(LedgerError::broken("ledger.index", "a request's name does not lead to its charge"));
    };
    if (&charge.requester, &charge.id) != (&asked.request.requester, &asked.request.id) {
        return Err(LedgerError::broken("ledger.index", "a request's name leads to the charge of another"));
    }
    same_request(asked, &charge.request, sealed.position.sequence)?;
    Ok(charge)
}

fn same_request(asked: &Asked, charged: &Hash, sequence: u64) -> Result<(), LedgerError> {
    if asked.hash == *charged {
        return Ok(());
    }
    let id = asked.request.id.as_deref().unwrap_or_default();
    let text = format!(
        "the request id `{id}` was used for another request (entry {sequence}); give every request its own; \
         nothing was charged"
    );
    Err(LedgerError::refusal("ledger.request.other", text))
}

fn unanswered(asked: &Asked, sequence: u64) -> LedgerError {
    let id = asked.request.id.as_deref().unwrap_or_default();
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
