//! [`FaultyStore`]: a store that fails once, at a chosen operation.
//!
//! Wrap a store, let a test run with [`Faults::none`] to [count](Faults::count) its operations, then run it again for each of them and
//! each [`Mode`]. What must hold afterwards is the test's to say.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use demur_ledger::entry::Position;
use demur_ledger::store::{Found, Row, Store, VisitAnswer, VisitEntry, Wanted};
use demur_ledger::{Ledger, LedgerError, Location, Options};

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is refused, and nothing was done.
    Before,
    /// It was done, and failure is reported: a commit is on disk and nobody knows.
    After,
    /// Half of it was done: an append leaves half of its rows, a read shows half of the entries.
    Half,
    /// Somebody else is said to hold the store, and nothing was done.
    Busy,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Before, Self::After, Self::Half, Self::Busy];
}

/// Which operation fails and how, shared with the store that fails.
#[derive(Clone, Debug)]
pub struct Faults {
    at: u64,
    mode: Mode,
    count: Arc<AtomicU64>,
    struck: Arc<AtomicBool>,
}

impl Faults {
    /// The operation number `at` fails; the first is 0.
    pub fn at(at: u64, mode: Mode) -> Self {
        Self { at, mode, count: Arc::default(), struck: Arc::default() }
    }

    /// Nothing fails, and operations are counted.
    pub fn none() -> Self {
        Self::at(u64::MAX, Mode::Before)
    }

    /// How many operations there were.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Whether the fault has happened.
    pub fn struck(&self) -> bool {
        self.struck.load(Ordering::SeqCst)
    }

    fn next(&self) -> Option<Mode> {
        let now = self.count.fetch_add(1, Ordering::SeqCst);
        let strikes = now == self.at;
        if strikes {
            self.struck.store(true, Ordering::SeqCst);
        }
        strikes.then_some(self.mode)
    }
}

/// A store that fails as its [`Faults`] say, and otherwise does what the one inside it does.
pub struct FaultyStore {
    inner: Box<dyn Store>,
    faults: Faults,
}

impl FaultyStore {
    /// Wraps a store.
    pub fn new(inner: Box<dyn Store>, faults: Faults) -> Self {
        Self { inner, faults }
    }

    /// The ledger at a place, as [`Ledger::open`] opens it, with faults under it.
    pub fn open(location: &Location, options: Options, faults: Faults) -> Result<Ledger, LedgerError> {
        let memory = demur_ledger::anchor::Anchor::recall(&location.anchor())?;
        let memory = memory.ok_or_else(|| LedgerError::broken("test", "there is no anchor"))?;
        let store = location.open(options.patience, options.on_wait.clone())?;
        Ledger::over(Box::new(Self::new(store, faults)), &location.anchor(), memory, options)
    }

    fn attempt<T>(
        &mut self,
        half: impl FnOnce(&mut dyn Store) -> Result<(), LedgerError>,
        whole: impl FnOnce(&mut dyn Store) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        match self.faults.next() {
            None => return whole(self.inner.as_mut()),
            Some(Mode::Before) => {}
            Some(Mode::After) => drop(whole(self.inner.as_mut())?),
            Some(Mode::Half) => half(self.inner.as_mut())?,
            Some(Mode::Busy) => return Err(LedgerError::busy("somebody holds it, says the test")),
        }
        Err(LedgerError::broken("ledger.store", "the disk failed, says the test"))
    }
}

impl Store for FaultyStore {
    fn begin(&mut self) -> Result<Option<Position>, LedgerError> {
        self.attempt(|_| Ok(()), |store| store.begin())
    }

    fn read(&mut self, sequence: u64, visit: &mut VisitEntry<'_>) -> Result<(), LedgerError> {
        let mut entries = Vec::new();
        self.inner.read(sequence, &mut |sealed| {
            entries.push(sealed);
            Ok(())
        })?;
        let count = entries.len();
        let struck = self.faults.next();
        let shown = match struck {
            None | Some(Mode::After) => count,
            Some(Mode::Half) => count / 2,
            Some(Mode::Before | Mode::Busy) => 0,
        };
        entries.into_iter().take(shown).try_for_each(visit)?;
        match struck {
            None => Ok(()),
            Some(Mode::Busy) => Err(LedgerError::busy("somebody holds it, says the test")),
            Some(_) => Err(LedgerError::broken("ledger.store", "the disk failed, says the test")),
        }
    }

    fn find(&mut self, wanted: &[Wanted<'_>]) -> Result<Vec<Found>, LedgerError> {
        self.attempt(|_| Ok(()), |store| store.find(wanted))
    }

    fn answers(&mut self, charges: Range<u64>, visit: &mut VisitAnswer<'_>) -> Result<(), LedgerError> {
        self.attempt(|_| Ok(()), |store| store.answers(charges, visit))
    }

    fn append(&mut self, rows: &[Row]) -> Result<(), LedgerError> {
        self.attempt(|store| store.append(&rows[..rows.len() / 2]), |store| store.append(rows))
    }

    fn commit(&mut self) -> Result<(), LedgerError> {
        self.attempt(|_| Ok(()), |store| store.commit())
    }

    fn abandon(&mut self) -> Result<(), LedgerError> {
        self.attempt(|_| Ok(()), |store| store.abandon())
    }
}
