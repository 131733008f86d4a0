//! How fast a ledger is, beside the bare disk in the same run: `cargo bench -p demur-ledger`.
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
use demur_ledger::{BudgetName, Charged, Ledger, Location, Options, Request};

/// Rounds that are compared pairwise, because the disk is not the same from one second to the next.
const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(1500);

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

fn request(number: usize) -> Request {
    let loss = "discrete_gaussian(variance=1000000)".parse().unwrap();
    Request::new("visits", "analyst", "SELECT COUNT(*) FROM visits", loss).id(&format!("request-{number}"))
}

/// Deciding alone: the filter, without the disk.
fn admission() {
    let filter = Filter::zcdp("1000000".parse().unwrap(), "1e-6".parse().unwrap()).unwrap();
    let loss = "discrete_gaussian(variance=1000000)".parse().unwrap();
    let (mut state, start) = (filter.start(), Instant::now());
    let times = 100_000;
    for _ in 0..times {
        state = filter.admit(&state, &loss).unwrap();
    }
    println!("admission by the filter: {:.2} µs", start.elapsed().as_secs_f64() * 1e6 / f64::from(times));
}

/// Charges per second with 1 and 64 threads, and the syncs per second of the bare disk between them.
fn throughput(folder: &Path, location: &Location) {
    let ledger = ledger(location);
    let mut rows: Vec<[f64; 3]> = Vec::new();
    let mut number = 0;
    for round in 0..ROUNDS {
        let syncs = raw_syncs(&folder.join("raw"));
        let one = charges(&ledger, 1, &mut number);
        let many = charges(&ledger, 64, &mut number);
        println!("round {round}: {syncs:8.0} syncs/s {one:8.0} charges/s by 1 {many:8.0} charges/s by 64");
        rows.push([syncs, one, many]);
    }
    let median = |of: &dyn Fn(&[f64; 3]) -> f64| {
        let mut values: Vec<f64> = rows.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    println!("one writer: {:.2} of the disk's syncs (median of {ROUNDS})", median(&|row| row[1] / row[0]));
    println!("64 writers: {:.1} times the disk's syncs (median of {ROUNDS})", median(&|row| row[2] / row[0]));
}

/// One page written and synced at a time, in a file that is already there.
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

fn charges(ledger: &Ledger, writers: usize, number: &mut usize) -> f64 {
    let (start, base) = (Instant::now(), *number);
    let done: Vec<usize> = std::thread::scope(|scope| {
        let work = |writer: usize| {
            move || {
                let mut done = 0;
                while start.elapsed() < ROUND {
                    let request = request(base + writer + done * writers);
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
    let start = Instant::now();
    let writers = 512;
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let ledger = &ledger;
            scope.spawn(move || {
                for number in (writer..entries).step_by(writers) {
                    let Charged::Now(_receipt) = ledger.charge(request(number)).unwrap() else {
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
}
