//! Communities of a network from a file with two user numbers a line: modularity with privacy, against Louvain's method without.
//!
//! ```text
//! cargo run --release -p demur-learn --example communities -- FILE [RUNS]
//! ```
//!
//! Edge adjacency hides one tie; user level hides one user's list, of which at most D ties count. Nothing is seeded.

#![expect(clippy::print_stdout, reason = "this is a program")]

use std::error::Error;
use std::ops::ControlFlow;
use std::time::Instant;

use demur_core::Epsilon;
use demur_learn::communities::{Hidden, Network, Plan, louvain, modularity};
use demur_noise::Entropy;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("give a file of ties")?;
    let runs: usize = std::env::args().nth(2).unwrap_or_else(|| "3".into()).parse()?;
    let mut ties = Vec::new();
    for line in std::fs::read_to_string(file)?.lines() {
        let mut cells = line.split_whitespace().map(str::parse::<u32>);
        if let (Some(from), Some(to)) = (cells.next(), cells.next()) {
            let (from, to) = (from?, to?);
            ties.extend([(from, to), (to, from)]);
        }
    }
    let users = ties.iter().map(|&(from, to)| from.max(to) as usize + 1).max().unwrap_or(1);
    let network = Network::new(users, ties)?;
    println!("{users} users, {} ties", network.ties().count());
    println!("without privacy: {:.4}", modularity(&network, &louvain(&network)));
    let entropy = &mut Entropy::from_os()?;
    let levels = [("edge", Hidden::Tie), ("user, D = 10", Hidden::User { max_ties: 10 })];
    for (name, hidden) in levels {
        for epsilon in [1.0, 2.0, 4.0] {
            let plan = Plan::new(users, hidden, Epsilon::new(epsilon)?)?;
            let started = Instant::now();
            let mut found = Vec::new();
            for _ in 0..runs {
                let labels = plan.run(&network, entropy, &mut |_| ControlFlow::Continue(()))?;
                found.push(modularity(&network, labels.value()));
            }
            let mean = found.iter().sum::<f64>() / runs as f64;
            let lowest = found.iter().copied().fold(f64::INFINITY, f64::min);
            println!(
                "{name} adjacency, epsilon {epsilon}: {mean:.3} (lowest of {runs}: {lowest:.3}), {:.1?} a run",
                started.elapsed() / runs as u32
            );
        }
    }
    Ok(())
}
