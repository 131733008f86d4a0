//! Every operation of the store fails once, in every way, under everything a ledger does.
//!
//! Whatever failed, afterwards: nothing acknowledged is missing, nothing is overspent, the chain verifies, the handle was
//! poisoned, and asking again under the same name leads to exactly one charge.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failing test may fail anywhere")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use demur_accounting::Filter;
use demur_ledger::{
    Book, BudgetName, Charged, Ledger, LedgerError, Location, Options, Position, Receipt, Request,
};
use demur_testkit::{Faults, FaultyStore, Mode};

struct Bench {
    _folder: tempfile::TempDir,
    location: Location,
}

/// What was acknowledged, under faults.
#[derive(Default)]
struct Heard {
    positions: Vec<Position>,
    answered: bool,
    error: Option<LedgerError>,
}

fn options() -> Options {
    Options { patience: Duration::from_secs(5), ..Options::default() }
}

fn request(id: &str) -> Request {
    Request::new("budget", "analyst", id, "pure(0.25)".parse().unwrap()).id(id)
}

fn versioned(id: &str) -> Request {
    Request::new("budget", "analyst", "versioned", "pure(0.25)".parse().unwrap()).data_version("1").id(id)
}

fn receipt(charged: Charged) -> Receipt {
    match charged {
        Charged::Now(receipt) => receipt,
        Charged::Before(replay) => panic!("was paid for before: {replay:?}"),
    }
}

impl Bench {
    /// A ledger whose budget pays for four charges, with one that is answered and one that is not.
    fn new() -> Self {
        let memory = std::path::Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let folder = folder.unwrap();
        let location = Location::Sqlite(folder.path().join("ledger.db"));
        let ledger = Ledger::create(&location, options()).unwrap();
        let filter = Filter::pure("1".parse().unwrap()).unwrap();
        ledger.create_budget(BudgetName::whole("budget"), "data", "row", filter, "").unwrap();
        let paid = receipt(ledger.charge(versioned("answered")).unwrap());
        ledger.record(paid, b"forty-two").unwrap();
        let _unanswered = receipt(ledger.charge(request("unanswered")).unwrap());
        drop(ledger);
        Self { _folder: folder, location }
    }

    fn open(&self, faults: Faults) -> Result<Ledger, LedgerError> {
        FaultyStore::open(&self.location, options(), faults)
    }

    fn book(&self) -> Book {
        Ledger::open(&self.location, options()).unwrap().book().unwrap()
    }

    fn counts(&self) -> (u64, u64) {
        let book = self.book();
        let budget = book.budget(&BudgetName::whole("budget")).unwrap();
        assert!(budget.charges <= 4 && budget.releases <= budget.charges);
        (budget.charges, budget.releases)
    }

    /// Every entry: its place, and its text.
    fn entries(&self) -> Vec<(Position, String)> {
        let mut entries = Vec::new();
        let read = Ledger::entries(&self.location, 0, &mut |sealed| {
            entries.push((sealed.position, String::from_utf8_lossy(&sealed.body).into_owned()));
            Ok(())
        });
        read.unwrap();
        entries
    }
}

impl Heard {
    fn note<T>(&mut self, result: Result<T, LedgerError>) -> Option<T> {
        result.map_err(|error| self.error = Some(error)).ok()
    }
}

/// One thing a ledger does.
type Scenario = fn(&Ledger, &mut Heard);

fn charge(ledger: &Ledger, heard: &mut Heard) {
    if let Some(charged) = heard.note(ledger.charge(request("new"))) {
        heard.positions.push(receipt(charged).position());
    }
}

fn charge_and_record(ledger: &Ledger, heard: &mut Heard) {
    let Some(charged) = heard.note(ledger.charge(request("new"))) else { return };
    let paid = receipt(charged);
    heard.positions.push(paid.position());
    if let Some(position) = heard.note(ledger.record(paid, b"an answer")) {
        heard.positions.push(position);
        heard.answered = true;
    }
}

fn replay_by_id(ledger: &Ledger, heard: &mut Heard) {
    replay(ledger, heard, versioned("answered"));
}

fn replay_by_version(ledger: &Ledger, heard: &mut Heard) {
    replay(ledger, heard, versioned("another"));
}

fn replay(ledger: &Ledger, heard: &mut Heard, request: Request) {
    match heard.note(ledger.charge(request)) {
        Some(Charged::Before(replay)) => assert_eq!(replay.answer, b"forty-two"),
        Some(Charged::Now(receipt)) => panic!("paid again: {receipt:?}"),
        None => {}
    }
}

fn raise(ledger: &Ledger, heard: &mut Heard) {
    let filter = Filter::pure("2".parse().unwrap()).unwrap();
    let raised = heard.note(ledger.raise_budget(BudgetName::whole("budget"), filter, "more"));
    heard.positions.extend(raised);
}

fn look(ledger: &Ledger, heard: &mut Heard) {
    heard.note(ledger.book());
}

fn refused(ledger: &Ledger, heard: &mut Heard) {
    match ledger.charge(request("unanswered")) {
        Err(error) if error.is_refusal() => assert_eq!(error.code(), "ledger.request.unanswered"),
        Err(error) => heard.error = Some(error),
        Ok(charged) => panic!("paid again: {charged:?}"),
    }
}

/// What holds after a fault at one operation; whether the fault came at all.
fn one_fault(scenario: Scenario, at: u64, mode: Mode) -> bool {
    let place = format!("operation {at}, {mode:?}");
    let bench = Bench::new();
    let (before, faults, mut heard) = (bench.counts(), Faults::at(at, mode), Heard::default());
    let opened = bench.open(faults.clone());
    assert!(opened.is_ok() || at == 0, "opening reads once");
    if let Some(ledger) = heard.note(opened) {
        scenario(&ledger, &mut heard);
        match &heard.error {
            None => {}
            // Only before anything was locked may somebody else be in the way.
            Some(error) if error.is_busy() => {
                assert_eq!(mode, Mode::Busy, "{place}");
                ledger.book().unwrap();
            }
            Some(error) => {
                assert!(error.is_broken(), "{place}: {error}");
                for _ in 0..2 {
                    assert_eq!(ledger.book().unwrap_err().code(), "ledger.poisoned", "{place}");
                    let charged = ledger.charge(request("poisoned"));
                    assert_eq!(charged.unwrap_err().code(), "ledger.poisoned", "{place}");
                }
            }
        }
    }
    assert_eq!(faults.struck(), heard.error.is_some(), "{place}: every fault is heard of");
    let entries = bench.entries();
    for position in &heard.positions {
        assert_eq!(entries[position.sequence as usize].0, *position, "{place}");
    }
    let after = bench.counts();
    assert!(after.0 - before.0 <= 1 && after.1 - before.1 <= 1, "{place}");
    converges(&bench, &heard);
    faults.struck()
}

/// Asking again under the same name is paid once in all, and what was answered stays answered.
fn converges(bench: &Bench, heard: &Heard) {
    let ledger = Ledger::open(&bench.location, options()).unwrap();
    let charged = heard.positions.len() + usize::from(heard.error.is_some());
    for attempt in 0..3 {
        match ledger.charge(request("new")) {
            Ok(Charged::Now(_)) => assert!(attempt == 0 && charged < 2),
            Ok(Charged::Before(replay)) => assert_eq!(replay.answer, b"an answer"),
            Err(error) => {
                assert_eq!(error.code(), "ledger.request.unanswered");
                assert!(!heard.answered, "the answer is lost");
            }
        }
    }
    drop(ledger);
    let named = bench.entries().iter().filter(|(_, body)| body.contains(r#""id":"new""#)).count();
    assert_eq!(named, 1);
}

fn every_fault(scenario: Scenario, expected: u64) {
    let bench = Bench::new();
    let (faults, mut heard) = (Faults::none(), Heard::default());
    let ledger = bench.open(faults.clone()).unwrap();
    scenario(&ledger, &mut heard);
    drop(ledger);
    assert_eq!(heard.error, None);
    assert_eq!(faults.count(), expected, "operations");
    for at in 0..expected {
        for mode in Mode::ALL {
            assert!(one_fault(scenario, at, mode), "operation {at} was not reached");
        }
    }
    assert!(!one_fault(scenario, expected, Mode::Before), "there are more than {expected} operations");
}

/// Opening reads, names too; a charge begins, appends and commits.
#[test]
fn a_charge_survives_every_fault() {
    every_fault(charge, 4);
}

/// A record begins, appends and commits.
#[test]
fn a_record_survives_every_fault() {
    // Of a charge with a name it is looked whether somebody else has recorded an answer meanwhile.
    every_fault(charge_and_record, 8);
}

/// What changes nothing begins, looks up and leaves.
#[test]
fn a_replay_by_its_name_survives_every_fault() {
    every_fault(replay_by_id, 4);
}

#[test]
fn a_replay_by_the_version_of_the_data_survives_every_fault() {
    every_fault(replay_by_version, 4);
}

#[test]
fn a_raise_survives_every_fault() {
    every_fault(raise, 4);
}

#[test]
fn a_look_survives_every_fault() {
    every_fault(look, 3);
}

#[test]
fn a_refusal_survives_every_fault() {
    every_fault(refused, 4);
}

/// What others wrote meanwhile is read under the lock: half of it, or none, is a fault like any other.
#[test]
fn catching_up_survives_every_fault() {
    for at in 1..5 {
        for mode in Mode::ALL {
            let bench = Bench::new();
            let faults = Faults::at(at, mode);
            let behind = bench.open(faults.clone()).unwrap();
            let other = Ledger::open(&bench.location, options()).unwrap();
            let _paid = receipt(other.charge(request("first")).unwrap());
            let _paid = receipt(other.charge(request("second")).unwrap());
            // The budget is spent now, and who is behind must not sell it once more.
            let refusal = behind.charge(request("third")).unwrap_err();
            assert_eq!(refusal.is_refusal(), !faults.struck(), "operation {at}, {mode:?}: {refusal}");
            assert!(faults.struck() || at == 4, "operation {at} was not reached");
            assert_eq!(bench.counts(), (4, 1));
        }
    }
}

/// None of the charges that share a broken commit is acknowledged.
#[test]
fn charges_that_share_a_commit_share_its_fault() {
    let ask = |ledger: &Ledger, id: u32| {
        let request = Request { loss: "pure(0.001)".parse().unwrap(), ..request(&format!("id{id}")) };
        ledger.charge(request).map(|charged| receipt(charged).position())
    };
    let all = |faults: Faults| {
        let bench = Bench::new();
        let ledger = bench.open(faults.clone()).unwrap();
        let results: Vec<Result<Position, LedgerError>> = std::thread::scope(|scope| {
            let asked = (0..20).map(|id| {
                scope.spawn({
                    let ledger = &ledger;
                    move || ask(ledger, id)
                })
            });
            let threads: Vec<_> = asked.collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        drop(ledger);
        let entries = bench.entries();
        for position in results.iter().flatten() {
            assert_eq!(entries[position.sequence as usize].0, *position);
        }
        (results.iter().flatten().count(), faults.struck())
    };
    assert_eq!(all(Faults::none()), (20, false));
    for at in 1..12 {
        for mode in [Mode::Before, Mode::After, Mode::Half] {
            let (acknowledged, struck) = all(Faults::at(at, mode));
            assert_eq!(acknowledged < 20, struck, "operation {at}, {mode:?}");
        }
    }
}

/// Those who come while somebody waits for the disk are served by the next commit, all of them.
#[test]
fn who_waits_together_is_served_by_one_commit() {
    let bench = Bench::new();
    let faults = Faults::none();
    let ledger = bench.open(faults.clone()).unwrap();
    let before = faults.count();
    let mut other = bench.location.open(options().patience, options().on_wait).unwrap();
    other.begin().unwrap();
    std::thread::scope(|scope| {
        for id in 0..20 {
            let request = Request { loss: "pure(0.001)".parse().unwrap(), ..request(&format!("id{id}")) };
            let ledger = &ledger;
            scope.spawn(move || receipt(ledger.charge(request).unwrap()).position());
        }
        std::thread::sleep(Duration::from_millis(300));
        other.abandon().unwrap();
    });
    // The first batch has who came first; the second all others, unless a thread was very late.
    let operations = faults.count() - before;
    assert!(operations <= 3 * 4, "{operations} operations for 20 charges");
}

/// Whoever leads may fall. All who wait are told, nothing was charged, and others can go on.
#[test]
fn who_leads_and_falls_leaves_nobody_waiting() {
    static FALLING: AtomicBool = AtomicBool::new(false);
    fn clock() -> jiff::Timestamp {
        assert!(!FALLING.load(Ordering::SeqCst), "the clock fell, says the test");
        jiff::Timestamp::now()
    }
    let bench = Bench::new();
    let ledger = Ledger::open(&bench.location, Options { clock, ..options() }).unwrap();
    let _paid = receipt(ledger.charge(request("before")).unwrap());
    let before = bench.counts();
    FALLING.store(true, Ordering::SeqCst);
    let results: Vec<Option<LedgerError>> = std::thread::scope(|scope| {
        let ask = |id: usize| {
            let ledger = &ledger;
            scope.spawn(move || ledger.charge(request(&format!("id{id}"))).unwrap_err())
        };
        let threads: Vec<_> = (0..20).map(ask).collect();
        threads.into_iter().map(|thread| thread.join().ok()).collect()
    });
    assert_eq!(results.iter().filter(|result| result.is_none()).count(), 1, "one leads and falls");
    assert!(results.iter().flatten().all(|error| error.code() == "ledger.poisoned"));
    assert_eq!(ledger.book().unwrap_err().code(), "ledger.poisoned");
    assert_eq!(bench.counts(), before);
    let other = Ledger::open(&bench.location, options()).unwrap();
    let _paid = receipt(other.charge(request("after")).unwrap());
}
