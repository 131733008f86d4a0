//! Flags of `demur init`, `check`, `query` and `explain`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub(crate) const INIT_HELP: &str = "\
Examples:
  demur init visits.parquet --unit patient_id
  demur init readings.csv --unit row
  demur init --private-bounds 0.5
  demur init --private-limits 0.5
  demur init --smartnoise-yaml metadata.yaml

Writes demur.toml with the names and types that the file states about itself; no row is read.
Review it: a column that is summed or averaged needs low and high, a column that is grouped by may
have public values. Then `demur check` says in words what will be promised, and to whom.
With --smartnoise-yaml names, types, bounds and limits come from metadata of SmartNoise SQL; what could not be carried
over stands in demur.toml as comments.";

pub(crate) const QUERY_HELP: &str = "\
Examples:
  demur query \"SELECT region, COUNT(*) AS n, AVG(age) FROM visits GROUP BY region\" --epsilon 0.5
  demur query \"SELECT MEDIAN(cost) FROM visits\" --epsilon 1 --format json
  demur query --sql-file monthly.sql --epsilon 1 --certificate monthly.json
  demur query \"SELECT COUNT(*) FROM visits\" --error 50@95%
  demur query --batch questions.sql --epsilon 1
  demur query \"SELECT region, COUNT(*) AS n FROM visits GROUP BY region\" --epsilon 0.5 -o regions.parquet
  demur query \"SELECT region, COUNT(*) AS n FROM visits GROUP BY region\" --epsilon 0.5 --plot bar -o regions.svg
  demur query

Without a question, at a terminal, a prompt opens; \\? in it lists what it knows.

Questions that are all known beforehand are asked in a --batch: one charge, counted exactly, and more for each than
when they are asked one by one. A question in it may name its own price: SELECT WITH DIFFERENTIAL_PRIVACY
OPTIONS(max_error = 50) …; the others share what is left.

The question is charged to the project's budget before any row is read. The same question about unchanged
data is answered from the ledger, at no cost. `demur explain` shows the price and the expected error first,
for free.

Exit codes: 0 answered, 1 refused by budget or policy, 2 misuse or failure.";

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Parquet or CSV files; each becomes a table named after it
    #[arg(required_unless_present_any = ["private_bounds", "private_limits", "smartnoise_yaml"], value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The column that names whose data a row is, or `row` if every row is somebody of its own
    #[arg(long, value_name = "COLUMN")]
    pub(crate) unit: Option<String>,
    /// Metadata of SmartNoise SQL to take tables, columns, bounds and limits from; a FILE is then where a table's rows are,
    /// named after it
    #[arg(long, value_name = "YAML", conflicts_with = "unit")]
    pub(crate) smartnoise_yaml: Option<PathBuf>,
    /// Find low and high of columns that have none by private questions, and spend so much on them; without FILE,
    /// for the demur.toml that is there
    #[arg(long, value_name = "EPSILON")]
    pub(crate) private_bounds: Option<f64>,
    /// Find how many rows and groups of a person count by private questions, and spend so much on them; without FILE,
    /// for the demur.toml that is there
    #[arg(long, value_name = "EPSILON", allow_hyphen_values = true)]
    pub(crate) private_limits: Option<f64>,
    /// Where the ledger is, for --private-bounds and --private-limits: sqlite:PATH or postgres://…
    #[arg(long, value_name = "URL")]
    pub(crate) ledger: Option<String>,
    /// Where to write demur.toml
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) project: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The folder with demur.toml; the nearest one above this folder unless given
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
}

/// What is asked, and where.
#[derive(Debug, Args)]
pub(crate) struct Asked {
    /// The question, in SQL
    #[arg(value_name = "SQL", conflicts_with = "sql_file")]
    pub(crate) sql: Option<String>,
    /// Read the question from this file, or from standard input if it is -
    #[arg(long, value_name = "FILE")]
    pub(crate) sql_file: Option<PathBuf>,
    /// Answer all questions of this file, each ended by `;`, for one price: --epsilon is what they cost together
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sql", "sql_file", "error"])]
    pub(crate) batch: Option<PathBuf>,
    /// The folder with demur.toml; the nearest one above this folder unless given
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
    /// Where the ledger is: sqlite:PATH or postgres://…; see `demur ledger --help` for the default
    #[arg(long, value_name = "URL")]
    pub(crate) ledger: Option<String>,
    /// The privacy loss to spend; the query's own OPTIONS may say it instead
    #[arg(long, value_name = "E", allow_hyphen_values = true)]
    pub(crate) epsilon: Option<String>,
    /// How far off counts and sums may be, as in 50@95%: the least ε that suffices is found and spent
    #[arg(long, value_name = "ERROR@CONFIDENCE", conflicts_with = "epsilon")]
    pub(crate) error: Option<String>,
    /// The probability with which the promise may fail; demur.toml's unless given
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) delta: Option<String>,
    /// Which noise to use; whichever errs least unless given
    #[arg(long, value_name = "KIND", value_parser = ["any", "laplace", "gaussian"])]
    pub(crate) noise: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Query {
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// How the answer is written; by the ending of -o unless given, else a table for people
    #[arg(long, value_enum)]
    pub(crate) format: Option<Form>,
    /// Write the answer to this file, or the picture if there is --plot
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Draw the answer with its error bars: to -o FILE.svg or FILE.png, or in the terminal
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) plot: Option<Plot>,
    /// Which answer to draw; the first unless given
    #[arg(long, value_name = "NAME", requires = "plot")]
    pub(crate) plot_column: Option<String>,
    /// Show the plan and the price, and charge nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Who asks; your user name unless given
    #[arg(long, value_name = "NAME")]
    pub(crate) requester: Option<String>,
    /// Your name for this request: asked again under it, the stored answer is printed at no cost
    #[arg(long, value_name = "ID")]
    pub(crate) request_id: Option<String>,
    /// Write the certificate of the release to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate: Option<PathBuf>,
    /// How much memory people and their rows may take, in MiB; more of them wait in a temporary file
    #[arg(long, value_name = "MIB", default_value_t = 2048, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    pub(crate) memory: u64,
    /// For auditors, on a ledger made with `demur budget create --scratch`: answer so many times
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) repeat: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// A table for people, JSON for programs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Shape,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Aligned columns for people
    #[default]
    Table,
    /// One document, with what it cost
    Json,
    /// Comma-separated values
    Csv,
    /// One line per row: the value itself, or a JSON object
    Lines,
    /// A Parquet file, every column in its own type
    Parquet,
    /// A file in Arrow's own format (IPC, Feather)
    Arrow,
}

impl Form {
    /// Whether it is for programs alone.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Self::Parquet | Self::Arrow)
    }
}

/// How an answer is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Plot {
    /// A bar for each group
    Bar,
    /// Points over the first key, joined by lines
    Line,
    /// Cells over two keys, the darker the larger
    Heat,
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    #[default]
    Table,
    Json,
    Csv,
    Lines,
}
