//! Private k-means of the numbers in a CSV file without a header; prints the centres as CSV.
//!
//! ```text
//! cargo run --release -p demur-learn --example clusters -- FILE CLUSTERS LOW HIGH EPSILON DELTA
//! ```
//!
//! Every row is a person, every coordinate lies between LOW and HIGH. Nothing is seeded: every run has noise of its own.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a program")]

use std::error::Error;
use std::ops::ControlFlow;
use std::time::Instant;

use demur_core::{Adjacency, Guarantee};
use demur_learn::{Points, kmeans::Plan};
use demur_noise::Entropy;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, clusters, low, high, epsilon, delta] = &arguments[..] else {
        return Err("give FILE CLUSTERS LOW HIGH EPSILON DELTA".into());
    };
    let mut values = Vec::new();
    let mut dimensions = 0;
    for line in std::fs::read_to_string(file)?.lines() {
        let before = values.len();
        for cell in line.split(',') {
            values.push(cell.parse()?);
        }
        dimensions = values.len() - before;
    }
    let points = Points::new(dimensions, values)?;
    let guarantee = Guarantee::new(epsilon.parse()?, delta.parse()?);
    let bounds = vec![(low.parse()?, high.parse()?); dimensions];
    let started = Instant::now();
    let plan = Plan::new(bounds, clusters.parse()?, Adjacency::AddRemove, 1, guarantee)?;
    let planned = started.elapsed();
    let found = plan.run(&points, &mut Entropy::from_os()?, &mut |_| ControlFlow::Continue(()))?;
    eprintln!("planned in {planned:.2?}, ran in {:.2?}", started.elapsed() - planned);
    for center in &found.value().centers {
        let cells: Vec<String> = center.iter().map(f64::to_string).collect();
        println!("{}", cells.join(","));
    }
    Ok(())
}
