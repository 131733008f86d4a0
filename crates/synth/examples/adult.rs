//! MST, AIM and MWEM on the discretised Adult table: how far marginals of drawn rows are from the truth.
//!
//! ```text
//! cargo run --release -p demur-synth --example adult -- [--data FOLDER] [--runs 5] [--method mst,aim,mwem] [--epsilon 0.1,1,10] [--rows independent]
//! ```
//!
//! FOLDER holds `adult_discrete.csv.gz` and `adult_discrete-domain.json`. Prints one line per method and ε as CSV: the mean over all runs of the mean total
//! variation over all 2-way and all 3-way marginals, of rows drawn from the model and of the model itself; seconds to plan and fit; the
//! largest memory of the process so far. Nothing is seeded: every run has noise of its own.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a program")]

use std::collections::HashMap;
use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use demur_core::{Adjacency, Delta, Epsilon, Guarantee};
use demur_noise::Entropy;
use demur_synth::{ColumnSet, Columns, DEFAULT_CELLS, Marginals, Model, Plan, Rounding, Table};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let mut options: HashMap<String, String> = HashMap::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        options.insert(name, value);
    }
    let option =
        |name: &str, otherwise: &str| options.get(name).cloned().unwrap_or_else(|| otherwise.to_owned());
    let folder = std::env::var("DEMUR_DATA").unwrap_or_else(|_| "../shared/data".to_owned());
    let (columns, codes) = read(Path::new(&option("--data", &format!("{folder}/adult"))))?;
    let runs: usize = option("--runs", "5").parse()?;
    let rounding = if option("--rows", "systematic") == "independent" {
        Rounding::Independent
    } else {
        Rounding::Systematic
    };

    let table = Table::new(columns.clone(), codes.clone())?;
    println!("method,epsilon,two_way,three_way,model_two_way,model_three_way,seconds,peak_megabytes");
    for method in option("--method", "mst,aim,mwem").split(',') {
        for epsilon in option("--epsilon", "0.1,1,10").split(',') {
            let mut sums = [0.0; 5];
            for run in 0..runs {
                let start = Instant::now();
                let plan = plan(method, &columns, epsilon.parse()?)?;
                let entropy = &mut Entropy::from_os()?;
                let model = plan.fit(&table, entropy, &mut |_| ControlFlow::Continue(()))?.into_value();
                let seconds = start.elapsed().as_secs_f64();
                let rows = model.sample(codes[0].len(), rounding, entropy)?;
                let figures = figures(&columns, &codes, &rows, &model)?;
                eprintln!("{method} ε {epsilon} run {}: {figures:.4?}, {seconds:.2} s", run + 1);
                for (sum, figure) in sums.iter_mut().zip(figures.into_iter().chain([seconds])) {
                    *sum += figure / runs as f64;
                }
            }
            let [two, three, model_two, model_three, seconds] = sums;
            println!(
                "{method},{epsilon},{two:.4},{three:.4},{model_two:.4},{model_three:.4},{seconds:.2},{}",
                peak_megabytes()
            );
        }
    }
    Ok(())
}

fn plan(method: &str, columns: &Columns, epsilon: Epsilon) -> Outcome<Plan> {
    let guarantee = Guarantee::new(epsilon, Delta::new(1e-9)?);
    let pairs = Marginals::all(columns, 2)?;
    Ok(match method {
        "mst" => Plan::mst(columns, Adjacency::AddRemove, guarantee)?,
        "aim" => Plan::aim(columns, Adjacency::AddRemove, guarantee, &pairs, DEFAULT_CELLS)?,
        "mwem" => Plan::mwem(columns, Adjacency::AddRemove, epsilon, &pairs, DEFAULT_CELLS)?,
        other => return Err(format!("there is no method {other}; there are mst, aim and mwem").into()),
    })
}

/// Mean total variation: rows 2-way and 3-way, model 2-way and 3-way.
fn figures(columns: &Columns, truth: &[Vec<u32>], rows: &[Vec<u32>], model: &Model) -> Outcome<[f64; 4]> {
    let mut figures = [0.0; 4];
    for (place, ways) in [2, 3].into_iter().enumerate() {
        let sets: Vec<ColumnSet> =
            Marginals::all(columns, ways)?.sets().map(|(set, _)| set.clone()).collect();
        for set in &sets {
            let real = shares(columns, truth, set);
            figures[place] += distance(&real, &shares(columns, rows, set)) / sets.len() as f64;
            figures[place + 2] += distance(&real, &model.marginal(set)?) / sets.len() as f64;
        }
    }
    Ok(figures)
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0
}

fn shares(columns: &Columns, codes: &[Vec<u32>], set: &ColumnSet) -> Vec<f64> {
    let sizes = columns.sizes();
    let mut counts = vec![0.0; set.cells(&sizes) as usize];
    let rows = codes[0].len();
    for row in 0..rows {
        counts[set.iter().fold(0, |cell, column| cell * sizes[column] + codes[column][row] as usize)] += 1.0;
    }
    counts.iter().map(|count| count / rows as f64).collect()
}

/// The columns in the file's order, and their codes.
fn read(folder: &Path) -> Outcome<(Columns, Vec<Vec<u32>>)> {
    let unpacked = Command::new("gzip").arg("-dc").arg(folder.join("adult_discrete.csv.gz")).output()?;
    if !unpacked.status.success() {
        return Err(format!("adult_discrete.csv.gz could not be read in {}", folder.display()).into());
    }
    let text = String::from_utf8(unpacked.stdout)?;
    let sizes = sizes(&std::fs::read_to_string(folder.join("adult_discrete-domain.json"))?);
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or("").split(',').collect();
    let sized = names.iter().map(|&name| (name, sizes.get(name).copied().unwrap_or(0)));
    let columns = Columns::new(sized)?;
    let mut codes = vec![vec![]; names.len()];
    for line in lines {
        for (column, value) in codes.iter_mut().zip(line.split(',')) {
            column.push(value.parse()?);
        }
    }
    Ok((columns, codes))
}

/// `{"name": size, …}` without names that contain commas or colons.
fn sizes(json: &str) -> HashMap<String, usize> {
    let pairs = json.trim().trim_matches(['{', '}']).split(',').filter_map(|pair| pair.rsplit_once(':'));
    pairs
        .filter_map(|(name, size)| {
            Some((name.trim().trim_matches('"').to_owned(), size.trim().parse().ok()?))
        })
        .collect()
}

/// The most memory this process has had, where the system says so.
fn peak_megabytes() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.map_or_else(String::new, |kilobytes| (kilobytes / 1000).to_string())
}
