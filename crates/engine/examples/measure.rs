//! One query, once, with its time and memory: what `bench/queries.py` runs in fresh processes.
//!
//! ```text
//! measure raw PROJECT SQL          DataFusion over the project's files, without privacy
//! measure private PROJECT SQL [ε]  charge, read, noise, release, with a ledger in PROJECT/.demur
//! measure tally PROJECT SQL        only planning and reading: no ledger, no noise
//! ```
//!
//! Prints a line of JSON: seconds by the wall clock from the SQL to the answer, the peak of memory in KiB, the rows of the answer.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints, and stops at the first surprise"
)]

use std::path::{Path, PathBuf};
use std::time::Instant;

use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use demur_engine::{Ask, Embedded, Opening, Project, Quote, Table};
use demur_ledger::{Location, Options};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [mode, folder, sql, rest @ ..] = words.as_slice() else {
        println!("measure raw|private|tally PROJECT SQL [ε]");
        return;
    };
    let epsilon = rest.first().map_or("1", String::as_str);
    let folder = PathBuf::from(folder);
    let start = Instant::now();
    let rows = match mode.as_str() {
        "raw" => raw(&folder, sql),
        "private" => private(&folder, sql, epsilon),
        _ => tally(&folder, sql),
    };
    let seconds = start.elapsed().as_secs_f64();
    println!("{{\"seconds\": {seconds}, \"peak_kib\": {}, \"rows\": {rows}}}", peak());
}

/// The peak of resident memory.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn raw(folder: &Path, sql: &str) -> usize {
    let project = Project::open(folder).unwrap();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(cores).build().unwrap();
    runtime.block_on(async {
        let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(cores));
        for table in project.catalog.tables.values() {
            let file = folder.join(&table.files[0]);
            context
                .register_parquet(&table.name, file.to_str().unwrap(), ParquetReadOptions::default())
                .await
                .unwrap();
        }
        let batches = context.sql(sql).await.unwrap().collect().await.unwrap();
        batches.iter().map(|batch| batch.num_rows()).sum()
    })
}

fn quote(project: &Project, sql: &str, epsilon: &str) -> (Ask, Quote) {
    let ask = Ask {
        sql: sql.to_owned(),
        epsilon: Some(epsilon.to_owned()),
        delta: Some("1e-6".to_owned()),
        requester: "bench".to_owned(),
        ..Ask::default()
    };
    let quote = Quote::make(project, &ask).unwrap();
    (ask, quote)
}

/// As `demur query` does it.
fn private(folder: &Path, sql: &str, epsilon: &str) -> usize {
    let project = Project::open(folder).unwrap();
    let location = Location::Sqlite(folder.join(".demur").join("ledger.db"));
    let opening = Opening::start(&location, Options::default());
    let (ask, quote) = quote(&project, sql, epsilon);
    let backend = Embedded::new(folder).unwrap();
    let ready = quote.prepare(&backend).unwrap();
    let engine = opening.engine(&project).unwrap();
    let answer = engine.query_ready(&project, &ask, ready).unwrap();
    Table::read(&answer.certificate.columns, &answer.certificate.released).unwrap().rows.len()
}

fn tally(folder: &Path, sql: &str) -> usize {
    let project = Project::open(folder).unwrap();
    let (_, quote) = quote(&project, sql, "1");
    let tally = Embedded::new(folder).unwrap().tally(&quote.bounded, [1, 2]).unwrap();
    tally.units.len()
}
