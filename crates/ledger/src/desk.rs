//! [`Desk`]: where all who wait share a commit.
//!
//! Whoever comes puts their work on the pile. Who finds that nobody leads, leads: they take the pile to the [`Writer`], have it decided and
//! committed, and go on with what was piled up meanwhile; only after its commit anybody hears of a piece of work. So a charge by itself costs no
//! change of threads, a hundred of them cost one sync, and an answer that is not refused is on disk.
//!
//! **Turns.** A leader whose own work is done serves a few piles more, because the next commit then begins at once, without waiting until
//! another thread has been woken. What came of such a pile is told to its first, who tells the others while the leader is at the next one.
//! Then the first of the pile that waits leads, so that nobody leads for ever.
//!
//! **Faults.** Whatever goes wrong between locking and the end of the commit, there is no writer any more: nobody knows what is on
//! disk until the chain has been read and verified again. All who wait are told so, and all who come.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::LedgerError;
use crate::writer::{Done, Work, Writer};

/// How many piles of others a leader serves.
const ROUNDS: usize = 8;

pub(crate) struct Desk {
    pile: Mutex<Pile>,
    /// The leader's; not here while they are at it, and never again after a fault.
    writer: Mutex<Option<Writer>>,
    fault: OnceLock<LedgerError>,
}

/// Work that nobody has taken yet, and where its results will be.
#[derive(Default)]
struct Pile {
    work: Vec<Work>,
    results: Arc<Results>,
    /// Where its first waits for their turn, if somebody leads.
    first: Option<Sender<Turn>>,
    /// Whether somebody leads.
    led: bool,
}

/// What came of a piece of work.
type Outcome = Result<Done, LedgerError>;

/// Of each piece of work what came of it, to be taken once.
type Results = OnceLock<Vec<Mutex<Option<Outcome>>>>;

/// What the first of a pile hears.
enum Turn {
    /// Nobody leads any more.
    Lead,
    /// The work of the pile is done.
    Tell(Vec<Outcome>),
}

/// What becomes of whoever comes.
enum Role {
    Leads,
    IsFirst(Receiver<Turn>),
    Waits,
}

impl Desk {
    pub(crate) fn new(writer: Writer) -> Self {
        Self { pile: Mutex::default(), writer: Mutex::new(Some(writer)), fault: OnceLock::new() }
    }

    /// Has the work done, together with that of others.
    pub(crate) fn ask(&self, work: Work) -> Outcome {
        let (place, results, role) = hold(&self.pile).add(work);
        match role {
            Role::Leads => self.lead(&results),
            Role::IsFirst(turn) => match turn.recv() {
                Ok(Turn::Lead) => self.lead(&results),
                Ok(Turn::Tell(outcomes)) => tell(&results, outcomes),
                // Whoever led has fallen, and the writer with them.
                Err(_) => tell(&results, Vec::new()),
            },
            Role::Waits => {}
        }
        let result = results.wait().get(place).and_then(|result| hold(result).take());
        result.unwrap_or_else(|| Err(self.poisoned()))
    }

    /// Has all work on our own pile done, then that of some more.
    fn lead(&self, results: &Results) {
        let mut leading = Leading { desk: self, results, done: false };
        let own = hold(&self.pile).take();
        tell(results, self.work(own.work));
        for _ in 0..ROUNDS {
            let Some(Pile { work, first: Some(first), .. }) = leading.next() else { return };
            let outcomes = self.work(work);
            // The first waits for it, unless they have fallen.
            let _ = first.send(Turn::Tell(outcomes));
        }
        leading.step_down();
    }

    fn work(&self, work: Vec<Work>) -> Vec<Outcome> {
        let mut desk = hold(&self.writer);
        // If we fall, the writer falls with us, and lets go of the store.
        let Some(mut writer) = desk.take() else { return Vec::new() };
        let count = work.len();
        let done = writer.batch(work);
        match &done {
            Err(error) if error.is_broken() => drop(self.fault.set(error.clone())),
            _ => *desk = Some(writer),
        }
        done.unwrap_or_else(|error| (0..count).map(|_| Err(error.clone())).collect())
    }

    fn poisoned(&self) -> LedgerError {
        let why = self.fault.get().map_or_else(|| "its writer is gone".to_owned(), LedgerError::to_string);
        let text = format!("the ledger takes no more charges until it is opened and verified again: {why}");
        LedgerError::broken("ledger.poisoned", text)
    }
}

impl Pile {
    fn add(&mut self, work: Work) -> (usize, Arc<Results>, Role) {
        let place = self.work.len();
        self.work.push(work);
        let role = match (self.led, place) {
            (false, _) => Role::Leads,
            (true, 0) => {
                let (sender, receiver) = channel();
                self.first = Some(sender);
                Role::IsFirst(receiver)
            }
            (true, _) => Role::Waits,
        };
        self.led = true;
        (place, self.results.clone(), role)
    }

    /// All that is on the pile; the leader is at it.
    fn take(&mut self) -> Self {
        std::mem::replace(self, Self { led: true, ..Self::default() })
    }
}

/// Somebody leads. However that ends, nobody waits in vain.
struct Leading<'a> {
    desk: &'a Desk,
    /// Those of our own pile.
    results: &'a Results,
    done: bool,
}

impl Leading<'_> {
    /// The pile that was made meanwhile; without one, nobody leads any more.
    fn next(&mut self) -> Option<Pile> {
        let mut pile = hold(&self.desk.pile);
        self.done = pile.work.is_empty();
        pile.led = !self.done;
        (!self.done).then(|| pile.take())
    }

    /// Leaves it to the first of those who wait.
    fn step_down(mut self) {
        let mut pile = hold(&self.desk.pile);
        self.done = true;
        // They are gone only with their thread, which waits for this.
        pile.led = pile.first.take().is_some_and(|first| first.send(Turn::Lead).is_ok());
    }
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        tell(self.results, Vec::new());
        if !self.done {
            // We fall: the first of the pile hears it, because nobody can call them any more.
            *hold(&self.desk.pile) = Pile::default();
        }
    }
}

/// Tells all who wait for these results, unless they were told before. Nothing at all means that there is nothing to hear.
fn tell(results: &Results, outcomes: Vec<Outcome>) {
    let _ = results.set(outcomes.into_iter().map(|outcome| Mutex::new(Some(outcome))).collect());
}

/// What is behind a lock is whole, even if somebody fell while holding it.
fn hold<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use demur_accounting::Filter;
    use jiff::Timestamp;

    use crate::{BudgetName, Charged, Ledger, LedgerError, Location, Options, Request};

    const THREADS: usize = 32;
    /// Far more than a leader serves.
    const CHARGES: usize = 50;

    fn ledger(folder: &tempfile::TempDir, clock: fn() -> Timestamp) -> Ledger {
        let place = Location::Sqlite(folder.path().join("ledger.db"));
        // No checkpoints: who counts entries counts charges.
        let options = Options { clock, checkpoint_every: u64::MAX, ..Options::default() };
        let ledger = Ledger::create(&place, options).unwrap();
        let filter = Filter::pure("1000000".parse().unwrap()).unwrap();
        ledger.create_budget(BudgetName::whole("visits"), "visits", "row", filter, "").unwrap();
        ledger
    }

    fn charge(ledger: &Ledger) -> Result<u64, LedgerError> {
        let loss = "pure(0.5)".parse().unwrap();
        match ledger.charge(Request::new("visits", "analyst", "how many?", loss))? {
            Charged::Now(receipt) => Ok(receipt.position().sequence),
            Charged::Before(_) => Err(LedgerError::ours("there is no answer to give again")),
        }
    }

    #[test]
    fn everybody_hears_of_their_own_charge_whoever_leads() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = ledger(&folder, Timestamp::now);
        let all: Vec<u64> = thread::scope(|scope| {
            let work = || (0..CHARGES).map(|_| charge(&ledger).unwrap()).collect::<Vec<_>>();
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), THREADS * CHARGES);
        assert_eq!(ledger.book().unwrap().head().sequence, 1 + (THREADS * CHARGES) as u64);
    }

    /// Wherever a leader is: at their own pile, at that of others, after some rounds.
    #[test]
    fn nobody_waits_in_vain_for_a_leader_who_falls() {
        static LEFT: AtomicUsize = AtomicUsize::new(0);
        fn clock() -> Timestamp {
            assert!(LEFT.fetch_sub(1, Ordering::SeqCst) > 1, "the clock falls, says the test");
            Timestamp::now()
        }
        for charges in [1, 2, 20, 90, 300, 700] {
            // The first entry and the budget need a time too.
            LEFT.store(charges + 2, Ordering::SeqCst);
            let folder = tempfile::tempdir().unwrap();
            let ledger = ledger(&folder, clock);
            let ends: Vec<_> = thread::scope(|scope| {
                let work = || (0..CHARGES).find_map(|_| charge(&ledger).err());
                let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
                threads.into_iter().map(|thread| thread.join()).collect()
            });
            assert_eq!(ends.iter().filter(|end| end.is_err()).count(), 1, "one fell");
            let told = ends.iter().flatten().flatten().filter(|error| error.code() == "ledger.poisoned");
            assert_eq!(told.count(), THREADS - 1);
            assert_eq!(charge(&ledger).unwrap_err().code(), "ledger.poisoned");
        }
    }
}
