//! Hot spots of 10⁵ records drawn from a table of cases by county, against the truth and against a flat histogram.
//!
//! ```text
//! zcat jhu_covid_daily_2020-12-31.csv.gz | cargo run --release -p demur-learn --example hotspots -- [EPSILON] [RUNS] [SPREAD] [PICTURE]
//! ```
//!
//! Reads a table with the columns Country_Region, Lat, Long_ and Confirmed, takes the counties of the contiguous United States, draws 10⁵ records by the
//! number of cases, and moves each by a normal step of SPREAD degrees (0.15 unless given). Prints, for a grid of 256 × 256 cells
//! over 24–50 °N, 125–66 °W and the mean over all runs:
//!
//! * *recall@50*: how many of the 50 cells with most records are among the 50 with the highest estimates;
//! * *range error* at 4 × 4, 16 × 16 and 64 × 64 cells: over all squares of that size, the mean of |estimate − truth|/max(truth, n/1000);
//! * *TV*: total variation between the shares of the estimates (those below 0 taken as 0) and the true shares.
//!
//! PICTURE is written as a portable pixmap: the truth on the left, the private map on the right, on a logarithmic scale. Nothing is seeded.

#![expect(clippy::print_stdout, reason = "this is a program")]

use std::error::Error;
use std::io::Read;
use std::ops::ControlFlow;

use demur_core::{Adjacency, Epsilon};
use demur_learn::Points;
use demur_learn::hotspots::{HotMap, Plan, Rectangle};
use demur_noise::{DiscreteLaplace, Entropy, Words};

const AREA: Rectangle = Rectangle { west: -125.0, south: 24.0, east: -66.0, north: 50.0 };
const RECORDS: usize = 100_000;
const SIDE: usize = 256;

fn main() -> Result<(), Box<dyn Error>> {
    let argument =
        |place: usize, default: &str| std::env::args().nth(place).unwrap_or_else(|| default.into());
    let epsilon: f64 = argument(1, "0.1").parse()?;
    let runs: usize = argument(2, "10").parse()?;
    let spread: f64 = argument(3, "0.15").parse()?;
    let mut table = String::new();
    std::io::stdin().read_to_string(&mut table)?;
    let counties = counties(&table);
    if counties.is_empty() {
        return Err(
            "there are no counties in standard input; give the table that the text of this example names"
                .into(),
        );
    }
    let entropy = &mut Entropy::from_os()?;
    let plan = Plan::new(AREA, 8, Adjacency::AddRemove, 1, Epsilon::new(epsilon)?)?;
    let flat = DiscreteLaplace::new(Epsilon::new(epsilon)?.exact().recip())?;

    let (mut ours, mut raw, mut clamped) = (vec![], vec![], vec![]);
    for run in 0..runs {
        let points = records(&counties, spread, entropy);
        let truth = counts(&points);
        let map = plan.run(&Points::new(2, points.concat())?, entropy, &mut |_| ControlFlow::Continue(()))?;
        ours.push(figures(&truth, map.value().counts()));
        let noisy: Vec<f64> = truth.iter().map(|count| count + flat.sample(entropy) as f64).collect();
        raw.push(figures(&truth, &noisy));
        clamped.push(figures(&truth, &noisy.iter().map(|count| count.max(0.0)).collect::<Vec<_>>()));
        if let (true, Some(file)) = (run + 1 == runs, std::env::args().nth(4)) {
            std::fs::write(file, picture(&truth, map.value()))?;
            for spot in map.value().hot_spots(10, 0.05) {
                let (x, y) =
                    ((spot.area.west + spot.area.east) / 2.0, (spot.area.south + spot.area.north) / 2.0);
                let true_count = truth[spot.cell.0 * SIDE + spot.cell.1];
                println!(
                    "{y:.2} N {x:.2} E: {:.0} [{:.0}, {:.0}], truth {true_count}",
                    spot.estimate, spot.low, spot.high
                );
            }
            println!("{} regions", map.value().regions().len());
        }
    }
    println!(
        "epsilon {epsilon}, spread {spread}, {runs} runs: recall@50; range error at 4x4, 16x16, 64x64; TV"
    );
    for (name, rows) in [("demur", ours), ("flat, clamped to 0 before adding up", clamped), ("flat", raw)] {
        let mean = |column: usize| rows.iter().map(|row| row[column]).sum::<f64>() / rows.len() as f64;
        let worst = rows.iter().map(|row| row[0]).fold(f64::INFINITY, f64::min);
        let figures: Vec<String> = (0..5).map(|column| format!("{:.3}", mean(column))).collect();
        println!("{name}: {}; lowest recall {worst:.2}", figures.join(" "));
    }
    Ok(())
}

/// Latitude, longitude and cases of each county.
fn counties(table: &str) -> Vec<(f64, f64, f64)> {
    let mut lines = table.lines().map(cells);
    let head = lines.next().unwrap_or_default();
    let column = |name: &str| head.iter().position(|cell| cell == name).unwrap_or(usize::MAX);
    let [country, latitude, longitude, cases] = ["Country_Region", "Lat", "Long_", "Confirmed"].map(column);
    let county = |row: Vec<String>| {
        let number = |column: usize| row.get(column)?.parse::<f64>().ok();
        let (y, x, cases) = (number(latitude)?, number(longitude)?, number(cases)?);
        let inside = (AREA.south..=AREA.north).contains(&y) && (AREA.west..=AREA.east).contains(&x);
        (row.get(country)? == "US" && inside).then_some((y, x, cases.max(0.0)))
    };
    lines.filter_map(county).collect()
}

/// The cells of a line, some of them in quotes.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            letter => cells.last_mut().into_iter().for_each(|cell| cell.push(letter)),
        }
    }
    cells
}

fn uniform(entropy: &mut Entropy) -> f64 {
    (entropy.word() >> 11) as f64 / (1u64 << 53) as f64
}

fn records(counties: &[(f64, f64, f64)], spread: f64, entropy: &mut Entropy) -> Vec<[f64; 2]> {
    let mut sums = Vec::with_capacity(counties.len());
    let mut total = 0.0;
    for county in counties {
        total += county.2;
        sums.push(total);
    }
    let mut record = || {
        let place = uniform(entropy) * total;
        let (y, x, _) = counties[sums.partition_point(|&sum| sum <= place).min(counties.len() - 1)];
        let (radius, angle) =
            ((-2.0 * (1.0 - uniform(entropy)).ln()).sqrt(), uniform(entropy) * std::f64::consts::TAU);
        // Those moved out of the area stay on its edge, so that all methods have the same records.
        let (x, y) = (x + spread * radius * angle.cos(), y + spread * radius * angle.sin());
        [x.clamp(AREA.west, AREA.east), y.clamp(AREA.south, AREA.north)]
    };
    (0..RECORDS).map(|_| record()).collect()
}

fn counts(points: &[[f64; 2]]) -> Vec<f64> {
    let mut counts = vec![0.0; SIDE * SIDE];
    let place =
        |x: f64, low: f64, high: f64| (((x - low) / (high - low) * SIDE as f64) as usize).min(SIDE - 1);
    for [x, y] in points {
        counts[place(*y, AREA.south, AREA.north) * SIDE + place(*x, AREA.west, AREA.east)] += 1.0;
    }
    counts
}

fn figures(truth: &[f64], estimate: &[f64]) -> [f64; 5] {
    let top = |values: &[f64]| {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
        order.truncate(50);
        order
    };
    let best = top(truth);
    let recall = top(estimate).iter().filter(|place| best.contains(place)).count() as f64 / 50.0;
    let ranges = [4, 16, 64].map(|size| range_error(truth, estimate, size));
    let share = |values: &[f64]| {
        let total: f64 = values.iter().map(|value| value.max(0.0)).sum();
        values.iter().map(|value| value.max(0.0) / total).collect::<Vec<f64>>()
    };
    let variation = share(truth).iter().zip(share(estimate)).map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0;
    [recall, ranges[0], ranges[1], ranges[2], variation]
}

fn range_error(truth: &[f64], estimate: &[f64], size: usize) -> f64 {
    let sums = |values: &[f64]| {
        let mut sums = vec![0.0; (SIDE + 1) * (SIDE + 1)];
        for row in 0..SIDE {
            let mut line = 0.0;
            for column in 0..SIDE {
                line += values[row * SIDE + column];
                sums[(row + 1) * (SIDE + 1) + column + 1] = sums[row * (SIDE + 1) + column + 1] + line;
            }
        }
        sums
    };
    let (truth, estimate) = (sums(truth), sums(estimate));
    let square = |sums: &[f64], row: usize, column: usize| {
        let at = |row: usize, column: usize| sums[row * (SIDE + 1) + column];
        at(row + size, column + size) - at(row, column + size) - at(row + size, column) + at(row, column)
    };
    let mut total = 0.0;
    for row in 0..=SIDE - size {
        for column in 0..=SIDE - size {
            let (true_count, count) = (square(&truth, row, column), square(&estimate, row, column));
            total += (count - true_count).abs() / true_count.max(RECORDS as f64 / 1000.0);
        }
    }
    total / ((SIDE - size + 1) * (SIDE - size + 1)) as f64
}

/// Two maps side by side, north up, dark where there is nothing.
fn picture(truth: &[f64], map: &HotMap) -> Vec<u8> {
    let mut bytes = format!("P6 {} {} 255\n", 4 * SIDE + 8, 2 * SIDE).into_bytes();
    for row in (0..SIDE).rev().flat_map(|row| [row, row]) {
        for (index, values) in [truth, map.counts()].into_iter().enumerate() {
            for column in (0..SIDE).flat_map(|column| [column, column]) {
                let heat = (values[row * SIDE + column].max(0.0).ln_1p() / 8.0).min(1.0);
                let shade = |from: f64| ((heat * 3.0 - from).clamp(0.0, 1.0) * 255.0) as u8;
                bytes.extend([shade(0.0), shade(1.0), shade(2.0)]);
            }
            if index == 0 {
                bytes.extend([128; 24]);
            }
        }
    }
    bytes
}
