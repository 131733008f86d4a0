//! From a store to a [`Book`] and the [`Names`] of charges: every hash is checked, and entries since the last checkpoint are read.

use crate::LedgerError;
use crate::anchor::Memory;
use crate::book::Book;
use crate::entry::{Position, Sealed};
use crate::names::Names;
use crate::store::Store;

/// The book and the names of a store, if its chain is whole and contains what the anchor remembers.
pub(crate) fn fold(store: &mut dyn Store, anchor: Option<Memory>) -> Result<(Book, Names), LedgerError> {
    let (links, names) = Default::default();
    let mut chain = Chain { links, names, start: None, tail: Vec::new(), anchor, held: anchor.is_none() };
    store.read(0, &mut |sealed| chain.add(sealed))?;
    chain.finish()
}

/// Entries that follow one another, as far as they were seen.
#[derive(Default)]
pub(crate) struct Links {
    head: Option<Position>,
}

impl Links {
    /// The next entry, if it follows.
    pub(crate) fn add(&mut self, sealed: &Sealed) -> Result<(), LedgerError> {
        if !sealed.follows(self.head) {
            let text = format!(
                "the chain breaks at entry {}: it was changed, or entries before it are missing",
                sealed.position.sequence
            );
            return Err(LedgerError::broken("ledger.chain", text));
        }
        self.head = Some(sealed.position);
        Ok(())
    }

    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.head.map_or(0, |head| head.sequence + 1)
    }
}

struct Chain {
    links: Links,
    names: Names,
    /// The first entry or the last checkpoint, and what came after it.
    start: Option<Sealed>,
    tail: Vec<Sealed>,
    anchor: Option<Memory>,
    held: bool,
}

impl Chain {
    fn add(&mut self, sealed: Sealed) -> Result<(), LedgerError> {
        self.links.add(&sealed)?;
        self.names.add(&sealed)?;
        self.held |= self.anchor.is_some_and(|anchor| anchor.position == sealed.position);
        if self.start.is_none() || sealed.is_checkpoint() {
            self.start = Some(sealed);
            self.tail.clear();
        } else {
            self.tail.push(sealed);
        }
        Ok(())
    }

    fn finish(self) -> Result<(Book, Names), LedgerError> {
        let Some(start) = self.start else {
            let text = "the ledger is empty: its first entry is missing";
            return Err(LedgerError::broken("ledger.chain", text));
        };
        let mut book = Book::start(&start)?;
        self.tail.iter().try_for_each(|sealed| book.apply(sealed))?;
        if self.held && self.anchor.is_none_or(|anchor| anchor.ledger == book.ledger()) {
            return Ok((book, self.names));
        }
        let remembered = self.anchor.map_or(0, |anchor| anchor.position.sequence);
        Err(rollback(remembered, book.head().sequence + 1))
    }
}

/// The anchor remembers an entry that is not among these.
pub(crate) fn rollback(remembered: u64, entries: u64) -> LedgerError {
    let text = format!(
        "the anchor remembers entry {remembered}, which is not in this ledger of {entries} entries: an older copy or another \
         ledger was put in its place; put the right one back, or see `demur ledger adopt`"
    );
    LedgerError::broken("ledger.rollback", text)
}
