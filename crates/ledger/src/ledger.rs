//! [`Ledger`]: a handle to the durable record of a privacy budget.
//!
//! **Guarantee.** When [`charge`](Ledger::charge) returns a [`Receipt`], the charge is on disk. What was charged never
//! exceeds a budget, however many threads and processes charge, whatever fails, whenever one is killed.
//!
//! **Why.** Deciding and appending are one critical section ([`Writer`], [`Store`]): a decision is made under the store's lock
//! on the book folded from all entries, and the entry is durable before anyone hears of it. After any doubt the handle is
//! poisoned; opening it again starts from what is on disk.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use demur_accounting::Filter;
use jiff::Timestamp;

use crate::anchor::{Anchor, Memory};
use crate::book::Book;
use crate::chain;
use crate::desk::Desk;
use crate::entry::{Adopt, BudgetName, Entry, Event, Key, Position};
use crate::location::Location;
use crate::names::Names;
use crate::quotes::Quotes;
use crate::receipt::{Charged, Receipt};
use crate::request::{Asked, Request};
use crate::store::{OnWait, Row, Store};
use crate::writer::{Done, Draft, Work, Writer};
use crate::{Hash, LedgerError};

/// How often an anchor is looked for, every 5 ms, before it is called missing.
const CREATION: usize = 100;

/// How a ledger is opened.
#[derive(Clone)]
pub struct Options {
    /// How long to wait for another writer before giving up.
    pub patience: Duration,
    /// Told who holds the ledger, when a wait becomes noticeable.
    pub on_wait: OnWait,
    /// The name and version that is written into entries.
    pub software: String,
    /// What the time is. Nothing is decided by it.
    pub clock: fn() -> Timestamp,
    /// How many entries are written between two checkpoints, about: more, if there are more budgets and keys.
    pub checkpoint_every: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(60),
            on_wait: Arc::new(|_| {}),
            software: concat!("demur ", env!("CARGO_PKG_VERSION")).to_owned(),
            clock: Timestamp::now,
            checkpoint_every: 256,
        }
    }
}

/// A handle to a ledger; threads may share it.
///
/// ```
/// use demur_accounting::Filter;
/// use demur_ledger::{BudgetName, Charged, Ledger, Location, Options, Request};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("ledger.db");
/// let ledger = Ledger::create(&Location::Sqlite(path), Options::default())?;
/// ledger.create_budget(BudgetName::whole("visits"), "visits", "user_id", Filter::pure("1".parse()?)?, "")?;
///
/// let request = Request::new("visits", "analyst", "count of all rows", "laplace(epsilon=0.6)".parse()?);
/// let Charged::Now(receipt) = ledger.charge(request.clone())? else { unreachable!() };
/// ledger.record(receipt, b"42")?;
///
/// let refusal = ledger.charge(request).unwrap_err();
/// assert_eq!(refusal.code(), "accounting.filter.exhausted");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Ledger {
    desk: Desk,
}

impl Ledger {
    /// A new ledger, where there is none and never was one.
    ///
    /// A creation that was cut short before the anchor was written is finished.
    pub fn create(location: &Location, options: Options) -> Result<Self, LedgerError> {
        let path = location.anchor();
        let memory = Anchor::recall(&path)?;
        match (location.exists()?, memory) {
            (true, Some(_)) => return Err(exists(location)),
            (false, Some(memory)) => return Err(missing(location, &path, memory)),
            (_, None) => {}
        }
        make_folder(location)?;
        location.create(options.patience, options.on_wait.clone())?;
        let mut store = location.open(options.patience, options.on_wait.clone())?;
        let (book, names) = match store.begin()? {
            None => (first_entry(store.as_mut(), &options)?, Names::default()),
            Some(head) => {
                store.abandon()?;
                if head.sequence > 0 {
                    return Err(exists(location));
                }
                chain::fold(store.as_mut(), None)?
            }
        };
        let anchor = Anchor::create(&path, Memory { ledger: book.ledger(), position: book.head() })?;
        Ok(Self::start(store, anchor, (book, names), options))
    }

    /// The ledger at this place; its whole chain is verified first.
    pub fn open(location: &Location, options: Options) -> Result<Self, LedgerError> {
        let path = location.anchor();
        let memory = present(location)?;
        let store = location.open(options.patience, options.on_wait.clone())?;
        Self::over(store, &path, memory, options)
    }

    /// A ledger over any store, with its anchor and what that remembers.
    pub fn over(
        mut store: Box<dyn Store>,
        anchor: &Path,
        memory: Memory,
        options: Options,
    ) -> Result<Self, LedgerError> {
        let (book, names) = chain::fold(store.as_mut(), Some(memory))?;
        let memory = Memory { ledger: book.ledger(), position: book.head() };
        Ok(Self::start(store, Anchor::hold(anchor, memory)?, (book, names), options))
    }

    /// Where everything stands, without a handle and without writing anything.
    pub fn look(location: &Location) -> Result<Book, LedgerError> {
        let memory = present(location)?;
        chain::fold(location.open_to_read()?.as_mut(), Some(memory)).map(|(book, _)| book)
    }

    /// The answer that was paid for by this entry, if one is stored.
    pub fn answer(location: &Location, charge: u64) -> Result<Option<Vec<u8>>, LedgerError> {
        present(location)?;
        let mut found = None;
        location.open_to_read()?.answers(charge..charge.saturating_add(1), &mut |_, bytes| {
            found = Some(bytes.to_owned());
            Ok(())
        })?;
        Ok(found)
    }

    /// Accepts a ledger whose anchor is missing or remembers more than the ledger has, by the owner's word.
    ///
    /// What was spent in entries that are lost is not known: in that case every budget is closed. The anchor forgets them
    /// only after that is durable.
    pub fn adopt(location: &Location, reason: &str, options: Options) -> Result<Self, LedgerError> {
        crate::book::check_reason(reason)?;
        let path = location.anchor();
        if !location.exists()? {
            return Err(no_ledger(location));
        }
        let mut store = location.open(options.patience, options.on_wait.clone())?;
        store.begin()?;
        let (mut book, names) = chain::fold(store.as_mut(), None)?;
        // A damaged anchor remembers nothing.
        let memory = Anchor::recall(&path).unwrap_or_default();
        let lost = match memory.map(|memory| chain::fold(store.as_mut(), Some(memory))) {
            None | Some(Ok(_)) => None,
            Some(Err(error)) if error.code() == "ledger.rollback" => memory.map(|memory| memory.position),
            Some(Err(error)) => return Err(error),
        };
        // The entry first: what the old anchor knows must not be forgotten before the budgets are closed.
        let event = Adopt { lost, reason: reason.to_owned() };
        let sealed = book.write(Event::Adopt(event), (options.clock)(), &options.software)?;
        store.append(&[Row { sealed, answer: None }])?;
        store.commit()?;
        make_folder(location)?;
        let anchor = Anchor::replace(&path, Memory { ledger: book.ledger(), position: book.head() })?;
        Ok(Self::start(store, anchor, (book, names), options))
    }

    fn start(store: Box<dyn Store>, anchor: Anchor, (book, names): (Book, Names), options: Options) -> Self {
        let Options { software, clock, checkpoint_every, .. } = options;
        let quotes = Quotes::default();
        let writer = Writer { store, anchor, book, names, software, clock, checkpoint_every, quotes };
        Self { desk: Desk::new(writer) }
    }

    /// Charges a request, durably, or refuses it and charges nothing.
    pub fn charge(&self, request: Request) -> Result<Charged, LedgerError> {
        match self.desk.ask(Work::Charge(Box::new(Asked::new(request)?)))? {
            Done::Charged(charged) => Ok(charged),
            _ => Err(LedgerError::ours("the ledger answered something else")),
        }
    }

    /// The receipt of a request that was charged under this id and never answered, so that its work can go on; nothing is charged.
    ///
    /// The charge pays for one release still: of several who go on only the first can [`record`](Self::record). Whoever goes on must be sure that nothing of what
    /// was done before was seen, or go on from exactly what was.
    pub fn resume(&self, request: Request) -> Result<Charged, LedgerError> {
        match self.desk.ask(Work::Resume(Box::new(Asked::new(request)?)))? {
            Done::Charged(charged) => Ok(charged),
            _ => Err(LedgerError::ours("the ledger answered something else")),
        }
    }

    /// Keeps the answer that a receipt paid for, durably; only then may it be shown.
    pub fn record(&self, receipt: Receipt, answer: &[u8]) -> Result<Position, LedgerError> {
        self.written(Work::Record(receipt, answer.to_owned()))
    }

    /// Creates a budget.
    pub fn create_budget(
        &self,
        name: BudgetName,
        dataset: &str,
        unit: &str,
        filter: Filter,
        reason: &str,
    ) -> Result<Position, LedgerError> {
        let (dataset, unit, reason) = (dataset.to_owned(), unit.to_owned(), reason.to_owned());
        self.change(Box::new(move |book| book.create(name, &dataset, &unit, filter, &reason)))
    }

    /// Raises a budget to a larger one of the same kind.
    pub fn raise_budget(
        &self,
        name: BudgetName,
        filter: Filter,
        reason: &str,
    ) -> Result<Position, LedgerError> {
        let reason = reason.to_owned();
        self.change(Box::new(move |book| book.raise(name, filter, &reason)))
    }

    /// Closes a budget for good.
    pub fn close_budget(&self, name: BudgetName, reason: &str) -> Result<Position, LedgerError> {
        let reason = reason.to_owned();
        self.change(Box::new(move |book| book.close(name, &reason)))
    }

    /// Introduces the key that signs certificates from here on.
    pub fn introduce_key(&self, public: Hash, reason: &str) -> Result<Position, LedgerError> {
        let reason = reason.to_owned();
        self.change(Box::new(move |_| Ok(Event::Key(Key { public, reason }))))
    }

    /// Where everything stands, what other processes wrote included.
    pub fn book(&self) -> Result<Book, LedgerError> {
        match self.desk.ask(Work::Look)? {
            Done::Book(book) => Ok(*book),
            _ => Err(LedgerError::ours("the ledger answered something else")),
        }
    }

    fn change(&self, draft: Draft) -> Result<Position, LedgerError> {
        self.written(Work::Change(draft))
    }

    fn written(&self, work: Work) -> Result<Position, LedgerError> {
        match self.desk.ask(work)? {
            Done::Written(position) => Ok(position),
            _ => Err(LedgerError::ours("the ledger answered something else")),
        }
    }
}

fn make_folder(location: &Location) -> Result<(), LedgerError> {
    location.folder().map_or(Ok(()), crate::folder::make).map_err(|error| {
        LedgerError::broken("ledger.store", format!("the folder of {location} cannot be made: {error}"))
    })
}

/// Writes the entry that opens a ledger, under the lock that is held.
fn first_entry(store: &mut dyn Store, options: &Options) -> Result<Book, LedgerError> {
    let mut name = [0; 32];
    getrandom::fill(&mut name).map_err(|error| {
        LedgerError::broken("ledger.entropy", format!("no random name for the ledger: {error}"))
    })?;
    let event = Book::opening(Hash::of(&name));
    let first = Entry { event, software: options.software.clone(), time: (options.clock)() }.seal(None)?;
    let book = Book::start(&first)?;
    store.append(&[Row { sealed: first, answer: None }])?;
    store.commit()?;
    Ok(book)
}

/// What the anchor of an existing ledger remembers.
pub(crate) fn present(location: &Location) -> Result<Memory, LedgerError> {
    let anchor = location.anchor();
    let mut found = (location.exists()?, Anchor::recall(&anchor)?);
    // Somebody may just be creating it: the anchor comes last.
    for _ in 0..CREATION {
        if !matches!(found, (true, None)) {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
        found = (location.exists()?, Anchor::recall(&anchor)?);
    }
    match found {
        (true, Some(memory)) => Ok(memory),
        (false, Some(memory)) => Err(missing(location, &anchor, memory)),
        (false, None) => Err(no_ledger(location)),
        (true, None) => {
            // A file that is no ledger needs no anchor.
            location.open_to_read()?;
            let text = format!(
                "the anchor {} of the ledger {location} is missing, so an older copy would not be noticed; put it back, or \
                 see `demur ledger adopt`",
                anchor.display()
            );
            Err(LedgerError::broken("ledger.anchor.missing", text))
        }
    }
}

fn missing(location: &Location, anchor: &Path, memory: Memory) -> LedgerError {
    let text = format!(
        "the ledger {location} is missing, but its anchor {} remembers entry {}; put the ledger back: a new one would \
         forget what was spent",
        anchor.display(),
        memory.position.sequence
    );
    LedgerError::broken("ledger.missing", text)
}

fn exists(location: &Location) -> LedgerError {
    LedgerError::misuse("ledger.exists", format!("there is a ledger at {location} already"))
}

fn no_ledger(location: &Location) -> LedgerError {
    let text = format!("there is no ledger at {location}; `demur budget create` makes one");
    LedgerError::misuse("ledger.none", text)
}
