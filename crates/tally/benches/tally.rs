//! Nanoseconds per row of a tally, on columns that are already in memory.
//!
//! ```text
//! cargo bench -p demur-tally                    # 10^6 and 10^7 rows
//! cargo bench -p demur-tally -- 1000000         # another number of rows
//! cargo bench -p demur-tally -- user: view      # only lines with these words
//! ```
//!
//! The table is seeded: user_id uniform over 10⁶ users, 50 regions uniform, 5000 cities with weight 1/rank, age 18 to 90, spend in cents up to 500.00 as a
//! double with every tenth NULL, in batches of 8192 rows. Two feeds on two threads. The best of five runs counts; processor time (of both
//! threads together, where `/proc` tells it) says more on a busy machine.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    StringViewArray,
};
use arrow::datatypes::Int32Type;
use demur_tally::{Bounds, Limits, Measure, Spec, Step, Tallier};

const BATCH: usize = 8192;
const FEEDS: usize = 2;
const RUNS: usize = 5;

fn main() {
    let asked: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if asked.is_empty() { vec![1_000_000, 10_000_000] } else { asked };
    for rows in sizes {
        println!("{rows:>8} rows, {FEEDS} threads {:>42} {:>8} {:>8}", "seconds", "ns/row", "cpu ns");
        for (name, strings) in
            [("Utf8View", Strings::View), ("dictionary", Strings::Dictionary), ("Utf8", Strings::Plain)]
        {
            let table = table(rows, strings);
            run(&format!("row: count, sum, avg by region, {name}"), &table, &["region", "spend"], per_row());
            run(
                &format!("user: count, sum, avg by region, k = 5, {name}"),
                &table,
                &["user", "region", "spend"],
                per_user(),
            );
            run(
                &format!("user: distinct users by city, k = 5, {name}"),
                &table,
                &["user", "city"],
                distinct_users(),
            );
            run(
                &format!("row: 1000 cells of age by region, {name}"),
                &table,
                &["region", "age"],
                cells(false, 1000),
            );
            run(
                &format!("row: 4096 cells of spend by region, {name}"),
                &table,
                &["region", "spend"],
                cells_of_spend(),
            );
        }
        let table = table(rows, Strings::View);
        run(
            "user: 1000 cells of age by region, k = 5",
            &table,
            &["user", "region", "age"],
            cells(true, 1000),
        );
        run("row: count by region and city", &table, &["region", "city"], counts(2));
        run("row: count by user", &table, &["user"], counts(1));
        run(
            "user: count, sum, avg by region, k = 5, user Utf8View",
            &table,
            &["name", "region", "spend"],
            per_user(),
        );
    }
}

fn run(name: &str, table: &[RecordBatch], columns: &[&str], spec: Spec) {
    let mut wanted =
        std::env::args().skip(1).filter(|word| !word.starts_with('-') && word.parse::<usize>().is_err());
    if !wanted.all(|word| name.to_lowercase().contains(&word)) {
        return;
    }
    let batches: Vec<RecordBatch> = table.iter().map(|batch| project(batch, columns)).collect();
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let [mut best, mut least] = [f64::INFINITY; 2];
    for _ in 0..RUNS {
        let before = cpu_seconds();
        best = best.min(once(&batches, &spec));
        least = least.min(cpu_seconds() - before);
    }
    let nanoseconds = 1e9 / rows as f64;
    println!("{name:<58} {best:>8.4} {:>8.1} {:>8.1}", best * nanoseconds, least * nanoseconds);
}

/// Processor time of this process so far, in steps of 10 ms.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn once(batches: &[RecordBatch], spec: &Spec) -> f64 {
    let start = Instant::now();
    let tallier = Tallier::new(
        spec.clone(),
        batches[0].schema_ref(),
        [0x9216_D5D9_8979_FB1B, 0xD131_0BA6_98DF_B5AC],
        Limits { workers: FEEDS, ..Limits::default() },
    )
    .unwrap();
    std::thread::scope(|scope| {
        for part in batches.chunks(batches.len().div_ceil(FEEDS)) {
            let mut feed = tallier.feed().unwrap();
            scope.spawn(move || {
                part.iter().for_each(|batch| feed.push(batch).unwrap());
                feed.finish().unwrap();
            });
        }
    });
    let tally = tallier.finish().unwrap();
    assert!(!tally.units.is_empty());
    start.elapsed().as_secs_f64()
}

fn project(batch: &RecordBatch, columns: &[&str]) -> RecordBatch {
    let at: Vec<usize> = columns.iter().map(|name| batch.schema().index_of(name).unwrap()).collect();
    batch.project(&at).unwrap()
}

fn per_row() -> Spec {
    let row = Bounds { low: 0, high: 500 << 20 };
    let measures = vec![
        Measure::Count { input: None, most: 1 },
        Measure::Sum { input: 0, step: Step::Binary(-20), row, unit: row },
        Measure::Deviation { input: 0, step: Step::Binary(-20), row, centre: 250 << 20, most: 1 },
    ];
    Spec { has_unit: false, keys: 1, inputs: 1, groups_per_unit: 1, measures }
}

fn per_user() -> Spec {
    let row = Bounds { low: 0, high: 500 << 20 };
    let unit = Bounds { low: 0, high: 2000 << 20 };
    let measures = vec![
        Measure::Count { input: None, most: 10 },
        Measure::Sum { input: 0, step: Step::Binary(-20), row, unit },
        Measure::Deviation { input: 0, step: Step::Binary(-20), row, centre: 250 << 20, most: 10 },
    ];
    Spec { has_unit: true, keys: 1, inputs: 1, groups_per_unit: 5, measures }
}

fn distinct_users() -> Spec {
    Spec { has_unit: true, keys: 1, inputs: 0, groups_per_unit: 5, measures: Vec::new() }
}

fn cells(has_unit: bool, cells: u32) -> Spec {
    let row = Bounds { low: 18, high: 90 };
    let measures = vec![Measure::Histogram { input: 0, step: Step::One, row, cells, most: 5 }];
    Spec { has_unit, keys: 1, inputs: 1, groups_per_unit: 5, measures }
}

fn cells_of_spend() -> Spec {
    let row = Bounds { low: 0, high: 500 << 20 };
    let measures = vec![Measure::Histogram { input: 0, step: Step::Binary(-20), row, cells: 4096, most: 1 }];
    Spec { has_unit: false, keys: 1, inputs: 1, groups_per_unit: 1, measures }
}

fn counts(keys: usize) -> Spec {
    let measures = vec![Measure::Count { input: None, most: 1 }];
    Spec { has_unit: false, keys, inputs: 0, groups_per_unit: 1, measures }
}

#[derive(Clone, Copy)]
enum Strings {
    View,
    Dictionary,
    Plain,
}

fn table(rows: usize, strings: Strings) -> Vec<RecordBatch> {
    let mut random = Random(42);
    let regions: Vec<String> = (0..50).map(|region| format!("region {region:02}")).collect();
    let cities: Vec<String> = (0..5000).map(|city| format!("city {city:04}")).collect();
    let [region_names, city_names] =
        [&regions, &cities].map(|names| Arc::new(StringArray::from(names.clone())) as ArrayRef);
    let weights = Zipf::new(cities.len());
    let mut batches = Vec::new();
    for start in (0..rows).step_by(BATCH) {
        let size = BATCH.min(rows - start);
        let mut draw = |below: u64| (0..size).map(|_| random.below(below)).collect::<Vec<u64>>();
        let [users, region, age, spend] = [draw(1_000_000), draw(50), draw(73), draw(50_000)];
        let city: Vec<u64> = (0..size).map(|_| weights.draw(&mut random)).collect();
        let spend = spend.iter().map(|&cents| (cents % 10 != 3).then_some(cents as f64 / 100.0));
        let names: Vec<String> = users.iter().map(|user| format!("user-{user:032}")).collect();
        let text = |picks: &[u64], names: &[String], dictionary: &ArrayRef| -> ArrayRef {
            let chosen = picks.iter().map(|&pick| Some(names[pick as usize].as_str()));
            match strings {
                Strings::View => Arc::new(chosen.collect::<StringViewArray>()),
                Strings::Plain => Arc::new(chosen.collect::<StringArray>()),
                Strings::Dictionary => {
                    let keys = picks.iter().map(|&pick| pick as i32).collect::<Int32Array>();
                    Arc::new(DictionaryArray::<Int32Type>::new(keys, dictionary.clone()))
                }
            }
        };
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("user", Arc::new(users.iter().map(|&user| user as i64).collect::<Int64Array>())),
            ("name", Arc::new(StringViewArray::from_iter_values(names))),
            ("region", text(&region, &regions, &region_names)),
            ("city", text(&city, &cities, &city_names)),
            ("age", Arc::new(age.iter().map(|&age| age as i64 + 18).collect::<Int64Array>())),
            ("spend", Arc::new(spend.collect::<Float64Array>())),
        ];
        assert!(columns.iter().all(|(_, column)| column.len() == size));
        batches.push(RecordBatch::try_from_iter(columns).unwrap());
    }
    batches
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}

/// Place i with weight 1/(i + 1).
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(places: usize) -> Self {
        let mut total = 0.0;
        Self(
            (1..=places)
                .map(|rank| {
                    total += 1.0 / rank as f64;
                    total
                })
                .collect(),
        )
    }

    fn draw(&self, random: &mut Random) -> u64 {
        let at = random.next() as f64 / u64::MAX as f64 * self.0[self.0.len() - 1];
        (self.0.partition_point(|&reached| reached < at) as u64).min(self.0.len() as u64 - 1)
    }
}
