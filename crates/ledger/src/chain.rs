//! From a store to a [`Book`]: every hash is checked, and entries since the last checkpoint are read.

use crate::LedgerError;
use crate::anchor::Memory;
use crate::book::Book;
use crate::entry::{Position, Sealed};
use crate::store::Store;

/// The book of a store, if its chain is whole and contains what the anchor remembers.
pub(crate) fn fold(store: &mut dyn Store, anchor: Option<Memory>) -> Result<Book, LedgerError> {
    let mut chain = Chain { head: None, start: None, tail: Vec::new(), anchor, held: anchor.is_none() };
    store.read(0, &mut |sealed| chain.add(sealed))?;
    chain.finish()
}

struct Chain {
    head: Option<Position>,
    /// The first entry or the last checkpoint, and what came after it.
    start: Option<Sealed>,
    tail: Vec<Sealed>,
    anchor: Option<Memory>,
    held: bool,
}

impl Chain {
    fn add(&mut self, sealed: Sealed) -> Result<(), LedgerError> {
        if !sealed.follows(self.head) {
            let text = format!(
                "the chain breaks at entry {}: it was changed, or entries before it are missing",
                sealed.position.sequence
            );
            return Err(LedgerError::broken("ledger.chain", text));
        }
        self.head = Some(sealed.position);
        self.held |= self.anchor.is_some_and(|anchor| anchor.position == sealed.position);
        if self.start.is_none() || sealed.is_checkpoint() {
            self.start = Some(sealed);
            self.tail.clear();
        } else {
            self.tail.push(sealed);
        }
        Ok(())
    }

    fn finish(self) -> Result<Book, LedgerError> {
        let Some(start) = self.start else {
            let text = "the ledger is empty: its first entry is missing";
            return Err(LedgerError::broken("ledger.chain", text));
        };
        let mut book = Book::start(&start)?;
        self.tail.iter().try_for_each(|sealed| book.apply(sealed))?;
        if self.held && self.anchor.is_none_or(|anchor| anchor.ledger == book.ledger()) {
            return Ok(book);
        }
        let remembered = self.anchor.map_or(0, |anchor| anchor.position.sequence);
        let text = format!(
            "the anchor remembers entry {remembered}, which is not in this ledger of {} entries: an older copy or another \
             ledger was put in its place; put the right one back, or see `demur ledger adopt`",
            book.head().sequence + 1
        );
        Err(LedgerError::broken("ledger.rollback", text))
    }
}
