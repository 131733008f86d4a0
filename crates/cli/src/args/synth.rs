//! Flags of `demur synth`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::query::Shape;

pub(crate) const HELP: &str = "\
Examples:
  demur synth fit visits --epsilon 1 -o visits.model
  demur synth sample visits.model -n 50000 -o synthetic.parquet
  demur synth query visits.model \"SELECT department, COUNT(*) FROM visits GROUP BY department\"
  demur synth report visits.model -o report.html

`fit` is charged to the project's budget before it reads a row. Everything that is made of a model afterwards is free: its rows are
about nobody. A model file is a certificate; `demur certificate verify` checks it.";

const FIT_HELP: &str = "\
Methods:
  aim   rounds that measure what the model knows least; the most accurate
  mst   one tree of pairs; the fastest
  mwem  rounds as aim with Laplace noise; for those who have no δ
  blr   the exponential mechanism over all small tables; for tiny universes, to learn from

Columns: truth values and listed values are taken as they are; numbers, dates and moments need low and
high in demur.toml and are cut into ranges; texts without a list are looked for by a private question, which is
charged as well. NULL is a value like any other. --dry-run shows what each stage would cost.";

#[derive(Debug, Subcommand)]
pub(crate) enum Synth {
    /// Fit a model to a table: charged, and public afterwards
    #[command(after_help = FIT_HELP)]
    Fit(Fit),
    /// Draw rows from a model
    Sample(Sample),
    /// Ask a model in SQL, for free and without sampling error
    Query(Query),
    /// Show what a model knows, and how far it is from the table
    Report(Report),
    /// Show how the error of each method falls as a table grows, on a table that everybody knows
    Growth(Growth),
}

/// How a model is fitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Method {
    #[default]
    Aim,
    Mst,
    Mwem,
    Blr,
}

#[derive(Debug, Args)]
pub(crate) struct Fit {
    /// The table, as demur.toml calls it
    pub(crate) table: String,
    /// What all of it may cost
    #[arg(long, value_name = "E")]
    pub(crate) epsilon: f64,
    /// The probability with which the promise may fail; demur.toml's unless given
    #[arg(long, value_name = "D")]
    pub(crate) delta: Option<f64>,
    /// How the model is fitted
    #[arg(long, value_enum, default_value_t)]
    pub(crate) method: Method,
    /// The columns to imitate; all but the one that names the person unless given
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) columns: Option<Vec<String>>,
    /// Into how many ranges numbers are cut
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub(crate) bins: u32,
    /// Cut numbers into ranges that hold about equally many rows; a private question for each, which is charged
    #[arg(long)]
    pub(crate) quantile_bins: bool,
    /// For how many rows one person may count, where the unit is a column
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) rows_per_unit: u32,
    /// Which columns the model shall know together: all sets of so many, or sets with weights as in "age,sex:5;age,region";
    /// all triples of up to 20 columns, all pairs of more unless given
    #[arg(long, value_name = "SETS")]
    pub(crate) workload: Option<String>,
    /// How many records the table has that BLR draws; more say more and take longer
    #[arg(long, value_name = "M", default_value_t = 16)]
    pub(crate) records: u64,
    /// A condition that no row fulfils, which everybody may know, as in "age < 15 AND married"; may be given several times
    #[arg(long, value_name = "CONDITION")]
    pub(crate) impossible: Vec<String>,
    /// Where to write the model
    #[arg(short, long, value_name = "FILE", required_unless_present = "dry_run")]
    pub(crate) output: Option<PathBuf>,
    /// Show what each stage would cost, and charge nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The folder with demur.toml; the nearest one above this folder unless given
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
    /// Where the ledger is: sqlite:PATH or postgres://…; see `demur ledger --help` for the default
    #[arg(long, value_name = "URL")]
    pub(crate) ledger: Option<String>,
    /// Who asks; your user name unless given
    #[arg(long, value_name = "NAME")]
    pub(crate) requester: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Sample {
    /// The model
    pub(crate) model: PathBuf,
    /// How many rows; about as many as the table has unless given
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) rows: Option<u64>,
    /// Where to write them: a .parquet or .csv file, or - for CSV on standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Query {
    /// The model
    pub(crate) model: PathBuf,
    /// The question: COUNT, SUM and AVG, with WHERE, GROUP BY, HAVING, ORDER BY
    pub(crate) sql: String,
    /// A table for people; JSON, CSV or one line per row for programs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Shape,
    /// Write the answer to a .parquet or .csv file instead
    #[arg(short, long, value_name = "FILE", conflicts_with = "format")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The model
    pub(crate) model: PathBuf,
    /// Where to write the report
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub(crate) output: PathBuf,
    /// Compare with the table, and spend so much on that; without, the report shows the model alone and is free
    #[arg(long, value_name = "E")]
    pub(crate) epsilon: Option<f64>,
    /// Also say how many of the table's rows the model guesses right in this column from all others
    #[arg(long, value_name = "COLUMN", requires = "epsilon")]
    pub(crate) guess: Option<String>,
    /// The probability with which the promise may fail; demur.toml's unless given
    #[arg(long, value_name = "D", requires = "epsilon")]
    pub(crate) delta: Option<f64>,
    /// The folder with demur.toml; the nearest one above this folder unless given
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
    /// Where the ledger is: sqlite:PATH or postgres://…; see `demur ledger --help` for the default
    #[arg(long, value_name = "URL")]
    pub(crate) ledger: Option<String>,
    /// Who asks; your user name unless given
    #[arg(long, value_name = "NAME")]
    pub(crate) requester: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Growth {
    /// What each method may cost
    #[arg(long, value_name = "E", default_value_t = 1.0)]
    pub(crate) epsilon: f64,
    /// Sizes of the table
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_values_t = [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000],
        value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) rows: Vec<u64>,
    /// How often each is tried; the mean is shown
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: u32,
    /// Draw it: an .svg or .png file, or - for the terminal
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
}
