//! How fast a ledger is, beside the bare disk and bare SQLite in the same run: `cargo bench -p demur-ledger`.
//!
//! `cargo bench -p demur-ledger -- FOLDER` uses a folder on another disk; `-- FOLDER ENTRIES` another size for the
//! ledger that is opened. With `--features postgres` the same is measured on a server of our own, which keeps its
//! files in the folder for temporary ones.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark stops at the first surprise and tells people"
)]

use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use demur_accounting::Filter;
use demur_core::PrivacyLoss;
use demur_ledger::{BudgetName, Charged, Ledger, Location, Options, Request};
use rusqlite::Connection;

/// Rounds that are compared pairwise, because the disk is not the same from one second to the next.
const ROUNDS: usize = 15;
const ROUND: Duration = Duration::from_millis(800);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let base = words.first().map_or_else(std::env::temp_dir, Into::into);
    let entries = words.get(1).map_or(1_000_000, |word| word.parse().unwrap());
    let folder = tempfile::tempdir_in(base).unwrap();
    admission();
    let sqlite = |name| Location::Sqlite(folder.path().join(name));
    throughput(folder.path(), &sqlite("throughput.db"));
    opening(&sqlite("opening.db"), entries);
    #[cfg(feature = "postgres")]
    {
        let server = demur_testkit::PostgresServer::start().unwrap();
        let postgres = || {
            let url: demur_ledger::store::PostgresUrl = server.database().parse().unwrap();
            Location::Postgres(url.keep_in(folder.path()))
        };
        throughput(folder.path(), &postgres());
        opening(&postgres(), entries);
    }
}

fn ledger(location: &Location) -> Ledger {
    println!("{location}");
    let ledger = Ledger::create(location, Options::default()).unwrap();
    let filter = Filter::zcdp("1000000".parse().unwrap(), "1e-6".parse().unwrap()).unwrap();
    ledger.create_budget(BudgetName::whole("visits"), "visits", "row", filter, "").unwrap();
    ledger
}

fn loss() -> PrivacyLoss {
    "discrete_gaussian(variance=1000000)".parse().unwrap()
}

fn request(loss: &PrivacyLoss, number: usize) -> Request {
    Request::new("visits", "analyst", "SELECT COUNT(*) FROM visits", loss.clone())
        .id(&format!("request-{number}"))
}

/// Deciding alone: the filter, without the disk.
fn admission() {
    let filter = Filter::zcdp("1000000".parse().unwrap(), "1e-6".parse().unwrap()).unwrap();
    let loss = loss();
    let (mut state, start) = (filter.start(), Instant::now());
    let times = 100_000;
    for _ in 0..times {
        state = filter.admit(&state, &loss).unwrap();
    }
    println!("admission by the filter: {:.2} µs", start.elapsed().as_secs_f64() * 1e6 / f64::from(times));
}

/// Charges per second with 1 and 64 threads, and between them the syncs of the bare disk and the commits of bare SQLite.
fn throughput(folder: &Path, location: &Location) {
    let ledger = ledger(location);
    let mut bare = bare_sqlite(&folder.join("bare.db"));
    let mut rows: Vec<[f64; 5]> = Vec::new();
    let mut number = 0;
    for round in 0..ROUNDS {
        // On threads of their own, as charges are: on which processor one is, beside that of the disk, decides on much.
        let [syncs, growing] = [raw_syncs, growing_syncs].map(|syncs| {
            std::thread::scope(|scope| scope.spawn(|| syncs(&folder.join("raw"))).join().unwrap())
        });
        let commits = std::thread::scope(|scope| scope.spawn(|| commits(&mut bare)).join().unwrap());
        let one = charges(&ledger, 1, &mut number);
        let many = charges(&ledger, 64, &mut number);
        println!(
            "round {round}: {syncs:8.0} syncs/s {growing:8.0} of a file that grows {commits:8.0} bare commits/s \
             {one:8.0} charges/s by 1 {many:8.0} charges/s by 64"
        );
        rows.push([syncs, commits, one, many, growing]);
    }
    let median = |above: usize, below: usize| {
        let mut ratios: Vec<f64> = rows.iter().map(|row| row[above] / row[below]).collect();
        ratios.sort_by(f64::total_cmp);
        ratios[ratios.len() / 2]
    };
    println!("medians of {ROUNDS} rounds:");
    println!("bare SQLite: {:.2} of the disk's syncs", median(1, 0));
    println!("one writer: {:.2} of the disk's syncs, {:.2} of bare SQLite", median(2, 0), median(2, 1));
    println!("64 writers: {:.1} times the disk's syncs, {:.1} times bare SQLite", median(3, 0), median(3, 1));
    println!(
        "beside a file that grows: one writer {:.2}, 64 writers {:.1} times its syncs",
        median(2, 4),
        median(3, 4)
    );
}

/// A table like that of entries, as durable as ours, and nothing around it.
fn bare_sqlite(path: &Path) -> Connection {
    let _ = std::fs::remove_file(path);
    let bare = Connection::open(path).unwrap();
    bare.pragma_update(None, "journal_mode", "wal").unwrap();
    bare.pragma_update(None, "synchronous", "full").unwrap();
    bare.execute_batch("CREATE TABLE entry (sequence INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT")
        .unwrap();
    bare
}

/// Commits of one row per second: what SQLite's own format costs on this disk.
fn commits(bare: &mut Connection) -> f64 {
    let mut insert = bare.prepare("INSERT INTO entry (body) VALUES (?1)").unwrap();
    let (start, mut done, body) = (Instant::now(), 0u32, [7u8; 600]);
    while start.elapsed() < ROUND {
        insert.execute([body.as_slice()]).unwrap();
        done += 1;
    }
    f64::from(done) / start.elapsed().as_secs_f64()
}

/// One page written and synced at a time, in a file that is already there: the least that a durable append needs. A file that grows
/// would be slower, since its size has to be written too.
fn raw_syncs(path: &Path) -> f64 {
    let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(path).unwrap();
    file.write_all(&vec![0; 4 << 20]).unwrap();
    file.sync_all().unwrap();
    let (start, mut syncs) = (Instant::now(), 0u32);
    while start.elapsed() < ROUND {
        file.seek(SeekFrom::Start(u64::from(syncs % 1024) * 4096)).unwrap();
        file.write_all(&[syncs as u8; 4096]).unwrap();
        file.sync_all().unwrap();
        syncs += 1;
    }
    f64::from(syncs) / start.elapsed().as_secs_f64()
}

/// The same at the end of a file, as a plain log would be written: its size has to be durable too.
fn growing_syncs(path: &Path) -> f64 {
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).open(path).unwrap();
    file.sync_all().unwrap();
    let (start, mut syncs) = (Instant::now(), 0u32);
    while start.elapsed() < ROUND {
        file.write_all(&[syncs as u8; 4096]).unwrap();
        file.sync_all().unwrap();
        syncs += 1;
    }
    f64::from(syncs) / start.elapsed().as_secs_f64()
}

fn charges(ledger: &Ledger, writers: usize, number: &mut usize) -> f64 {
    let (start, base, loss) = (Instant::now(), *number, &loss());
    let done: Vec<usize> = std::thread::scope(|scope| {
        let work = |writer: usize| {
            move || {
                let mut done = 0;
                while start.elapsed() < ROUND {
                    let request = request(loss, base + writer + done * writers);
                    let Charged::Now(_receipt) = ledger.charge(request).unwrap() else { unreachable!() };
                    done += 1;
                }
                done
            }
        };
        let threads: Vec<_> = (0..writers).map(|writer| scope.spawn(work(writer))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    *number += done.iter().max().unwrap() * writers;
    done.iter().sum::<usize>() as f64 / start.elapsed().as_secs_f64()
}

/// How long it takes to open, and so to verify, a large ledger.
fn opening(location: &Location, entries: usize) {
    let ledger = ledger(location);
    let (start, loss) = (Instant::now(), &loss());
    let writers = 512;
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let ledger = &ledger;
            scope.spawn(move || {
                for number in (writer..entries).step_by(writers) {
                    let Charged::Now(_receipt) = ledger.charge(request(loss, number)).unwrap() else {
                        unreachable!()
                    };
                }
            });
        }
    });
    let rate = entries as f64 / start.elapsed().as_secs_f64();
    println!("{entries} charges written by {writers} threads: {rate:.0} charges/s");
    drop(ledger);
    let times: Vec<Duration> = (0..5)
        .map(|_| {
            let start = Instant::now();
            drop(Ledger::open(location, Options::default()).unwrap());
            start.elapsed()
        })
        .collect();
    println!("opening {entries} entries: {:?} (best of 5: {:?})", times, times.iter().min().unwrap());
    verifying(location);
}

/// How long it takes to recompute a large ledger, and how much memory.
fn verifying(location: &Location) {
    // Where the system lets us, the peak is that of what follows.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let before = memory("VmRSS:");
    let start = Instant::now();
    let report = demur_ledger::verify(location).unwrap();
    let (time, more) = (start.elapsed(), memory("VmHWM:").saturating_sub(before) / 1024);
    assert!(report.findings.is_empty());
    println!("verifying {} charges: {time:?}, {more} MB at most", report.charges);
}

/// A line of what Linux says about this process, in kilobytes; 0 elsewhere.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or_default()
}
