//! [`Desk`]: where all who wait share a commit.
//!
//! Whoever comes puts their work on the pile. Who comes first leads: they wait for the [`Writer`], take the pile to it as it is by
//! then, and have it decided and committed; only then anybody hears of it. So a charge by itself costs no change
//! of threads, a hundred of them cost one sync, and an answer that is not refused is on disk.
//!
//! **Faults.** Whatever goes wrong between locking and the end of the commit, there is no writer any more: nobody knows what is on
//! disk until the chain has been read and verified again. All who wait are told so, and all who come.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::LedgerError;
use crate::writer::{Done, Work, Writer};

pub(crate) struct Desk {
    pile: Mutex<Pile>,
    /// Not here while somebody leads, and never again after a fault.
    writer: Mutex<Option<Writer>>,
    fault: OnceLock<LedgerError>,
}

/// Work that nobody has taken yet, and where its results will be.
#[derive(Default)]
struct Pile {
    work: Vec<Work>,
    results: Arc<Results>,
}

/// Of each piece of work what came of it, to be taken once.
type Results = OnceLock<Vec<Mutex<Option<Result<Done, LedgerError>>>>>;

impl Desk {
    pub(crate) fn new(writer: Writer) -> Self {
        Self { pile: Mutex::default(), writer: Mutex::new(Some(writer)), fault: OnceLock::new() }
    }

    /// Has the work done, together with that of others.
    pub(crate) fn ask(&self, work: Work) -> Result<Done, LedgerError> {
        let (place, results) = {
            let mut pile = hold(&self.pile);
            pile.work.push(work);
            (pile.work.len() - 1, pile.results.clone())
        };
        if place == 0 {
            self.lead(&results);
        }
        let result = results.wait().get(place).and_then(|result| hold(result).take());
        result.unwrap_or_else(|| Err(self.poisoned()))
    }

    /// Has all work on the pile done, and tells those who wait for these results.
    fn lead(&self, results: &Results) {
        let _told = Told(results);
        let mut desk = hold(&self.writer);
        let Pile { work, .. } = std::mem::take(&mut *hold(&self.pile));
        // If we fall, the writer falls with us, and lets go of the store.
        let Some(mut writer) = desk.take() else { return };
        let count = work.len();
        let done = writer.batch(work);
        match &done {
            Err(error) if error.is_broken() => drop(self.fault.set(error.clone())),
            _ => *desk = Some(writer),
        }
        // The next commit begins while we tell of this one.
        drop(desk);
        let done = done.unwrap_or_else(|error| (0..count).map(|_| Err(error.clone())).collect());
        let _ = results.set(done.into_iter().map(|done| Mutex::new(Some(done))).collect());
    }

    fn poisoned(&self) -> LedgerError {
        let why = self.fault.get().map_or_else(|| "its writer is gone".to_owned(), LedgerError::to_string);
        let text = format!("the ledger takes no more charges until it is opened and verified again: {why}");
        LedgerError::broken("ledger.poisoned", text)
    }
}

/// Tells all who wait that there is nothing to hear, unless they were told before.
struct Told<'a>(&'a Results);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        let _ = self.0.set(Vec::new());
    }
}

/// What is behind a lock is whole, even if somebody fell while holding it.
fn hold<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
