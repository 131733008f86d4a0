//! Every call that changes the disk fails once, in every way; or it is the last one before a kill or a power cut.
//!
//! A worker makes a ledger and does everything with it, on a disk that fails at its n-th call (`faulty_disk.c`), for every n. Then, without
//! faults: everything acknowledged is there, nothing is overspent, the chain verifies, the anchor holds, and a second
//! worker that asks the same under the same names is neither refused nor charged twice. The same holds for the disk
//! that a power cut would leave, which has only what was synced.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failing test may fail anywhere")]
#![expect(clippy::print_stdout, reason = "how many faults there were is worth knowing")]

mod disk;

use std::collections::BTreeSet;

use disk::{Disk, Fault};

const NOTHING: Fault = Fault { at: 0, mode: "", lasting: false, only: None, end: 0, answers: 0 };
/// With answers of this size the log is long enough to be moved while it is in use.
const LARGE: usize = 900_000;

/// Runs with a fault at each call until no call is left; the kinds of calls, and how many there were.
fn every_call(mode: &'static str, lasting: bool) -> (BTreeSet<String>, u64) {
    calls(Fault { mode, lasting, ..NOTHING }, 1)
}

/// The same with a fault of this kind at one of `step` calls.
fn calls(fault: Fault, step: usize) -> (BTreeSet<String>, u64) {
    let (mut kinds, mut violations) = (BTreeSet::new(), Vec::new());
    let (mode, large) = (fault.mode, Fault { answers: fault.answers, ..NOTHING });
    for at in (1..100_000).step_by(step) {
        let fault = Fault { at, ..fault };
        let mut disk = Disk::new();
        let run = disk.run(fault);
        let Some(struck) = run.struck else {
            assert!(run.done, "{fault:?}: a worker without faults does not end");
            assert!(violations.is_empty(), "{} violations\n{}", violations.len(), violations.join("\n"));
            return (kinds, at - 1);
        };
        let kills = matches!(mode, "before" | "after" | "cut");
        let mut holds = |what: &str, result: Result<(), String>| {
            violations.extend(result.err().map(|text| format!("{struck}, {mode}, {what}: {text}")));
        };
        if run.done && kills {
            holds("worker", Err("it was not killed".to_owned()));
        }
        holds("power cut", disk.holds_without_power());
        holds("disk", disk.holds());
        let failures = disk.witness.failed.len();
        let again = disk.run(large);
        if !again.done || disk.witness.failed.len() > failures {
            holds("again", Err(format!("a worker without faults fails: {:?}", disk.witness.failed.last())));
        }
        holds("again", disk.holds());
        // What the first worker had not synced when it ended, nobody will write any more, unless the second one did.
        holds("power cut after all", disk.holds_without_power());
        kinds.extend(struck.split_once(' ').map(|(_, kind)| kind.to_owned()));
    }
    panic!("a worker calls for ever");
}

/// A worker makes a few hundred calls of every kind; else nothing was tested.
fn expect_many((kinds, calls): (BTreeSet<String>, u64)) {
    println!("{calls} calls: {kinds:?}");
    assert!((100..2_000).contains(&calls), "{calls} calls");
    for kind in ["open", "write", "sync", "rename"] {
        assert!(kinds.contains(kind), "no {kind} among {kinds:?}");
    }
}

#[test]
fn a_kill_before_any_call_breaks_nothing() {
    expect_many(every_call("before", false));
}

#[test]
fn a_kill_after_any_call_breaks_nothing() {
    expect_many(every_call("after", false));
}

#[test]
fn a_kill_in_the_middle_of_any_write_breaks_nothing() {
    expect_many(every_call("cut", false));
}

#[test]
fn an_input_output_error_at_any_call_breaks_nothing() {
    expect_many(every_call("EIO", false));
}

#[test]
fn a_disk_that_breaks_for_good_breaks_nothing() {
    expect_many(every_call("EIO", true));
}

#[test]
fn a_full_disk_at_any_call_breaks_nothing() {
    expect_many(every_call("ENOSPC", false));
}

#[test]
fn a_disk_that_stays_full_breaks_nothing() {
    expect_many(every_call("ENOSPC", true));
}

#[test]
fn a_disk_that_becomes_read_only_breaks_nothing() {
    expect_many(every_call("EROFS", true));
}

#[test]
fn a_short_write_breaks_nothing() {
    expect_many(every_call("short", false));
}

#[test]
fn a_torn_write_breaks_nothing() {
    expect_many(every_call("torn", false));
}

/// The log moves into the file while the ledger is in use: SQLite does that by itself, after a commit.
#[test]
fn a_log_that_is_moved_survives_every_failing_sync() {
    for (mode, lasting) in [("EIO", false), ("EIO", true), ("before", false)] {
        let fault = Fault { mode, lasting, only: Some("sync"), answers: LARGE, ..NOTHING };
        let (_, syncs) = calls(fault, 1);
        println!("{syncs} syncs");
        assert!((30..200).contains(&syncs), "{syncs} syncs");
    }
}

#[test]
fn a_log_that_is_moved_survives_failing_writes() {
    for (mode, step) in [("before", 211), ("EIO", 223), ("torn", 227)] {
        let fault = Fault { mode, only: Some("write"), answers: LARGE, ..NOTHING };
        let (_, writes) = calls(fault, step);
        println!("{writes} writes");
        // More than the pages of all answers, which are written to the log in two calls each: some were moved.
        assert!((6_000..20_000).contains(&writes), "{writes} writes");
    }
}

/// What holds after two crashes in a row: how many runs there were.
fn twice(faults: impl Iterator<Item = Vec<Fault>>) -> u64 {
    let (mut runs, mut violations) = (0, Vec::new());
    for faults in faults {
        let mut disk = Disk::new();
        for fault in &faults {
            disk.run(*fault);
        }
        for (what, result) in [("power cut", disk.holds_without_power()), ("disk", disk.holds())] {
            violations.extend(result.err().map(|text| format!("{faults:?}, {what}: {text}")));
        }
        runs += 1;
    }
    assert!(violations.is_empty(), "{} violations\n{}", violations.len(), violations.join("\n"));
    runs
}

/// The second worker finds what the first had not synced, goes on from there, and then the power fails: what it
/// was told must not rest on what only seemed to be there.
#[test]
fn a_power_cut_after_a_kill_breaks_nothing() {
    let fault = |at| Fault { at, mode: "before", ..NOTHING };
    let runs = twice((1..238).map(|at| vec![fault(at), fault(2 + at * 7 % 130)]));
    assert_eq!(runs, 237);
}

/// A sync fails, the worker opens the ledger again and goes on, and then the power fails.
#[test]
fn a_power_cut_after_a_failed_sync_breaks_nothing() {
    let fault = |at, later| Fault { at, mode: "EIO", only: Some("sync"), end: at + later, ..NOTHING };
    let runs = twice((1..42).flat_map(|at| (1..8).map(move |later| vec![fault(at, later)])));
    assert_eq!(runs, 287);
}
