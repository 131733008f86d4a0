//! Regression on three public tables at (ε, 10⁻⁵).
//!
//! `cargo run --release -p demur-learn --example tables -- 0.1 1 10` prints, for each table and ε, the area under the curve (AUC) on rows that were not trained on, the mean of several runs. Adult has a test set; of the other two every
//! fifth row is left out in turn. Bounds and values are what the tables' descriptions say, rounded outwards. The constants of the regression were settled while looking at these tables.

#![expect(clippy::print_stdout, reason = "this is a program")]

use std::error::Error;
use std::fs::{self, File};
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use demur_core::Guarantee;
use demur_learn::train::{Cell, Column, Columns, Examples, Regression, Shape, Targets, Task};
use demur_noise::Entropy;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name)
}

fn unzip(name: &str) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(File::open(data(name))?).read_to_string(&mut text)?;
    Ok(text)
}

/// How a column of text becomes cells.
enum Reader {
    Number(Column),
    Words(Vec<String>),
}

impl Reader {
    fn words(words: &str) -> Self {
        Self::Words(words.split(',').map(|word| word.trim().trim_end_matches('.').to_owned()).collect())
    }

    fn column(&self) -> Column {
        match self {
            Self::Number(column) => column.clone(),
            Self::Words(words) => Column::Category { values: words.len() as u32 },
        }
    }

    fn cell(&self, text: &str) -> Cell {
        match self {
            Self::Number(_) => text.parse().map_or(Cell::Missing, Cell::Number),
            Self::Words(words) => words
                .iter()
                .position(|word| word == text)
                .map_or(Cell::Missing, |place| Cell::Category(place as u32)),
        }
    }
}

/// A table: rows with their label, and which of them are for testing in each round.
struct Table {
    name: &'static str,
    readers: Vec<(usize, Reader)>,
    rows: Vec<Vec<String>>,
    label: fn(&[String]) -> u32,
    rounds: Vec<Vec<bool>>,
}

fn fields(text: &str) -> Vec<Vec<String>> {
    let field = |field: &str| field.trim().trim_matches('"').to_owned();
    text.lines()
        .map(|line| line.split(',').map(field).collect::<Vec<_>>())
        .filter(|row| row.len() > 1)
        .collect()
}

fn every_fifth(rows: usize) -> Vec<Vec<bool>> {
    (0..5).map(|fold| (0..rows).map(|row| row % 5 == fold).collect()).collect()
}

fn adult() -> Result<Table, Box<dyn Error>> {
    let names = fs::read_to_string(data("adult/adult.names"))?;
    let words = |column: &str| {
        let line = names.lines().rev().find_map(|line| line.strip_prefix(column)?.strip_prefix(':'));
        line.map(Reader::words).ok_or(format!("{column} is not described"))
    };
    let curve = |low, high| Reader::Number(Column::Curve { low, high, knots: 8 });
    let amount = |high| Reader::Number(Column::Amount { high, knots: 8 });
    let readers = vec![
        (0, curve(15.0, 95.0)),
        (1, words("workclass")?),
        (2, Reader::Number(Column::Number { low: 0.0, high: 1.5e6 })),
        (3, words("education")?),
        (4, Reader::Number(Column::Number { low: 1.0, high: 16.0 })),
        (5, words("marital-status")?),
        (6, words("occupation")?),
        (7, words("relationship")?),
        (8, words("race")?),
        (9, words("sex")?),
        (10, amount(1e5)),
        (11, amount(5e3)),
        (12, curve(0.0, 100.0)),
        (13, words("native-country")?),
    ];
    let mut rows = fields(&unzip("adult/adult.data.gz")?);
    let train = rows.len();
    rows.extend(fields(&unzip("adult/adult.test.gz")?));
    let test: Vec<bool> = (0..rows.len()).map(|row| row >= train).collect();
    let label = |row: &[String]| u32::from(row[14].starts_with('>'));
    Ok(Table { name: "adult", readers, rows, label, rounds: vec![test; 3] })
}

fn wdbc() -> Result<Table, Box<dyn Error>> {
    let bounds = [
        (5.0, 30.0),
        (5.0, 40.0),
        (40.0, 200.0),
        (100.0, 2600.0),
        (0.05, 0.2),
        (0.0, 0.4),
        (0.0, 0.5),
        (0.0, 0.25),
        (0.1, 0.35),
        (0.04, 0.1),
        (0.0, 3.0),
        (0.0, 5.0),
        (0.0, 25.0),
        (0.0, 550.0),
        (0.0, 0.035),
        (0.0, 0.14),
        (0.0, 0.4),
        (0.0, 0.055),
        (0.0, 0.08),
        (0.0, 0.03),
        (5.0, 40.0),
        (10.0, 50.0),
        (50.0, 260.0),
        (150.0, 4300.0),
        (0.05, 0.25),
        (0.0, 1.1),
        (0.0, 1.3),
        (0.0, 0.3),
        (0.1, 0.7),
        (0.05, 0.21),
    ];
    let reader = |&(low, high): &(f64, f64)| Reader::Number(Column::Number { low, high });
    let readers = bounds.iter().map(reader).enumerate().collect();
    let rows = fields(&fs::read_to_string(data("medical/breast_cancer_wdbc.csv"))?).split_off(1);
    let rounds = every_fifth(rows.len());
    Ok(Table { name: "wdbc", readers, rows, label: |row| u32::from(row[30] == "0"), rounds })
}

fn flchain() -> Result<Table, Box<dyn Error>> {
    let number = |low, high| Reader::Number(Column::Number { low, high });
    let readers = vec![
        (0, number(50.0, 105.0)),
        (1, Reader::words("F,M")),
        (2, number(1995.0, 2003.0)),
        (3, number(0.0, 20.0)),
        (4, number(0.0, 20.0)),
        (5, Reader::words("1,2,3,4,5,6,7,8,9,10")),
        (6, number(0.0, 10.0)),
        (7, Reader::words("0,1")),
    ];
    let rows = fields(&unzip("medical/flchain.csv.gz")?).split_off(1);
    let rounds = every_fifth(rows.len());
    Ok(Table { name: "flchain", readers, rows, label: |row| u32::from(row[9] == "1"), rounds })
}

/// The probability that a row of class 1 gets the higher score than one of class 0.
fn auc(scores: &[f32], labels: &[u32]) -> f64 {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    let (mut below, mut wins) = (0.0, 0.0);
    for ties in order.chunk_by(|&a, &b| scores[a] == scores[b]) {
        let ones = ties.iter().filter(|&&row| labels[row] == 1).count() as f64;
        let zeros = ties.len() as f64 - ones;
        wins += ones * (below + zeros / 2.0);
        below += zeros;
    }
    let ones = labels.iter().filter(|&&label| label == 1).count() as f64;
    wins / (ones * (labels.len() as f64 - ones))
}

fn main() -> Result<(), Box<dyn Error>> {
    let epsilons: Vec<String> = std::env::args().skip(1).collect();
    let entropy = &mut Entropy::from_os()?;
    for table in [adult()?, wdbc()?, flchain()?] {
        let columns = Columns::new(table.readers.iter().map(|(_, reader)| reader.column()).collect())?;
        let part = |round: &[bool], test: bool| {
            let (mut features, mut labels) = (Vec::new(), Vec::new());
            for (row, _) in table.rows.iter().zip(round).filter(|(_, held)| **held == test) {
                let cells: Vec<Cell> =
                    table.readers.iter().map(|(place, reader)| reader.cell(&row[*place])).collect();
                columns.encode(&cells, &mut features);
                labels.push((table.label)(row));
            }
            (features, labels)
        };
        for epsilon in &epsilons {
            let mut total = 0.0;
            for round in &table.rounds {
                let (features, labels) = part(round, false);
                let guarantee = Guarantee::new(epsilon.parse()?, "1e-5".parse()?);
                // Here the number of rows is public; a noisy count would do as well.
                let plan = Regression::new(&columns, Task::Classes(2), labels.len() as u64, guarantee)?;
                let examples =
                    Examples::new(Shape::row(columns.width()), features, Targets::Classes(labels))?;
                let model = plan.fit(&examples, entropy, &mut |_| ControlFlow::Continue(()))?.into_value();
                let (features, labels) = part(round, true);
                let scores: Vec<f32> = model.predict(&features)?.chunks(2).map(|p| p[1]).collect();
                total += auc(&scores, &labels);
            }
            println!("{} {epsilon} {:.4}", table.name, total / table.rounds.len() as f64);
        }
    }
    Ok(())
}
