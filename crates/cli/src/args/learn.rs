//! Flags of `demur learn`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::query::Shape;

pub(crate) const HELP: &str = "\
Examples:
  demur learn train patients --label died --rows 8000 --epsilon 1 -o died.model
  demur learn train digits --label digit --image 28x28 --scattering --rows 60000 --epsilon 3 -o digits.model
  demur learn predict died.model new_patients.csv -o risks.csv
  demur learn cluster visits --columns age,cost -k 4 --epsilon 1
  demur learn hotspots cases --x longitude --y latitude --epsilon 0.1 --plot map.png --geojson map.geojson
  demur learn communities friends --from a --to b --users 4039 --epsilon 4
  demur learn select visits --column region --epsilon 0.1

Each is charged to the project's budget before it reads a row. What it makes is public afterwards and can be used for ever at no
further cost. A run that was stopped goes on under the same charge when the same command is given again. What columns can hold is declared in demur.toml: low and high of numbers, values of categories.";

#[derive(Debug, Subcommand)]
pub(crate) enum Learn {
    /// Train a model that tells one column from others
    Train(Train),
    /// Ask a model about rows of any file, for free
    Predict(Predict),
    /// Find centres of groups of similar rows
    Cluster(Cluster),
    /// Find communities among the users of a network
    Communities(Communities),
    /// Draw a map of places where something happens often
    Hotspots(Hotspots),
    /// Choose the most frequent values of a column
    Select(Select),
}

/// Whose table, whose budget, who asks.
#[derive(Debug, Args)]
pub(crate) struct House {
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
pub(crate) struct Train {
    /// The table, as demur.toml calls it
    pub(crate) table: String,
    /// The column that shall be told: a category, a truth value or a number
    #[arg(long, value_name = "COLUMN")]
    pub(crate) label: String,
    /// The columns to tell it from; all that are declared unless given
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) columns: Option<Vec<String>>,
    /// About how many rows the table has; public, a wrong number costs accuracy and no privacy
    #[arg(long, value_name = "N")]
    pub(crate) rows: u64,
    /// Hidden layers of so many units each, as in 64,32; a regression unless given
    #[arg(long, value_name = "UNITS", value_delimiter = ',')]
    pub(crate) hidden: Vec<usize>,
    /// A network of any layers: dense(UNITS), convolution(CHANNELS, KERNEL, STRIDE, PADDING), pool(SIZE, STRIDE), relu, tanh
    #[arg(long, value_name = "LAYERS", conflicts_with = "hidden")]
    pub(crate) network: Option<String>,
    /// The columns are the pixels of an image, row by row from the top
    #[arg(long, value_name = "HEIGHTxWIDTH")]
    pub(crate) image: Option<String>,
    /// Regression on fixed scattering features of the image: the best at small ε
    #[arg(long, requires = "image", conflicts_with_all = ["hidden", "network"])]
    pub(crate) scattering: bool,
    #[command(flatten)]
    pub(crate) descent: Descent,
    /// A .csv or .parquet file of public rows with the label: progress shows how good the model is on them
    #[arg(long, value_name = "FILE")]
    pub(crate) public: Option<PathBuf>,
    /// What it may cost
    #[arg(long, value_name = "E")]
    pub(crate) epsilon: f64,
    /// The probability with which the promise may fail; demur.toml's unless given
    #[arg(long, value_name = "D")]
    pub(crate) delta: Option<f64>,
    /// Where to write the model
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Also write its weights as a safetensors file
    #[arg(long, value_name = "FILE")]
    pub(crate) safetensors: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) house: House,
}

/// How networks are trained; a regression follows a rule of its own.
#[derive(Debug, Args)]
#[command(next_help_heading = "How networks are trained")]
pub(crate) struct Descent {
    /// About how many rows a step looks at; an eighth of them unless given
    #[arg(long, value_name = "N")]
    pub(crate) batch: Option<u64>,
    /// How many steps there are; 200 unless given
    #[arg(long, value_name = "N")]
    pub(crate) steps: Option<u64>,
    /// How far a step goes; 0.5 unless given
    #[arg(long, value_name = "R")]
    pub(crate) rate: Option<f64>,
    /// How much of the last step is repeated; 0.9 unless given
    #[arg(long, value_name = "M")]
    pub(crate) momentum: Option<f64>,
    /// The longest gradient of a row that counts in full; 1 unless given
    #[arg(long, value_name = "C")]
    pub(crate) clip: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct Predict {
    /// The model
    pub(crate) model: PathBuf,
    /// A .csv or .parquet file with the columns the model was trained on
    pub(crate) file: PathBuf,
    /// Where to write what the model says: a .csv or .parquet file, or - for CSV on standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
    /// Say how good the model is on these rows instead, which must have the label and be public
    #[arg(long, conflicts_with = "output")]
    pub(crate) score: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Cluster {
    /// The table, as demur.toml calls it
    pub(crate) table: String,
    /// Columns with low and high in demur.toml; each matters equally between them
    #[arg(long, value_name = "NAMES", value_delimiter = ',', required = true)]
    pub(crate) columns: Vec<String>,
    /// How many clusters
    #[arg(short = 'k', long, value_name = "K")]
    pub(crate) clusters: usize,
    /// For how many rows one person may count, where the unit is a column
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) points_per_unit: u32,
    /// What it may cost
    #[arg(long, value_name = "E")]
    pub(crate) epsilon: f64,
    /// The probability with which the promise may fail; demur.toml's unless given
    #[arg(long, value_name = "D")]
    pub(crate) delta: Option<f64>,
    /// A table for people; JSON, CSV or one line per row for programs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Shape,
    /// Write the certificate of the release to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) house: House,
}

#[derive(Debug, Args)]
pub(crate) struct Communities {
    /// The table of ties, as demur.toml calls it. With unit = "row" one tie is hidden; with the column of --from as unit, all that a user says
    pub(crate) table: String,
    /// The column of who says to be tied: whole numbers from 0 on
    #[arg(long, value_name = "COLUMN")]
    pub(crate) from: String,
    /// The column of with whom
    #[arg(long, value_name = "COLUMN")]
    pub(crate) to: String,
    /// How many users there are; public
    #[arg(long, value_name = "N")]
    pub(crate) users: usize,
    /// How many ties of one user count, where users are hidden
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub(crate) max_ties: u32,
    /// What it may cost
    #[arg(long, value_name = "E")]
    pub(crate) epsilon: f64,
    /// A table for people; JSON, CSV or one line per row for programs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Shape,
    /// Write the certificate of the release to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) house: House,
}

#[derive(Debug, Args)]
pub(crate) struct Hotspots {
    /// The table of places, as demur.toml calls it
    pub(crate) table: String,
    /// The column of the first coordinate, as longitude; its low and high are edges of the map
    #[arg(long, value_name = "COLUMN")]
    pub(crate) x: String,
    /// The column of the second coordinate, as latitude
    #[arg(long, value_name = "COLUMN")]
    pub(crate) y: String,
    /// Cells a side: 2, 4, 8 … 2048
    #[arg(long, value_name = "CELLS", default_value_t = 256)]
    pub(crate) grid: u32,
    /// For how many places one person may count, where the unit is a column
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) points_per_unit: u32,
    /// How many hot spots to list
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,
    /// What it may cost
    #[arg(long, value_name = "E")]
    pub(crate) epsilon: f64,
    /// Draw the map to an .svg or .png file
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Write regions as GeoJSON
    #[arg(long, value_name = "FILE")]
    pub(crate) geojson: Option<PathBuf>,
    /// A table for people; JSON, CSV or one line per row for programs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Shape,
    /// Write the certificate of the release to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) house: House,
}

#[derive(Debug, Args)]
pub(crate) struct Select {
    /// The table, as demur.toml calls it
    pub(crate) table: String,
    /// The column
    #[arg(long, value_name = "COLUMN")]
    pub(crate) column: String,
    /// A file of values to choose from, one a line; those of demur.toml unless given
    #[arg(long, value_name = "FILE")]
    pub(crate) candidates: Option<PathBuf>,
    /// How many to choose, the best first
    #[arg(short = 'k', long, value_name = "K", default_value_t = 1)]
    pub(crate) top: usize,
    /// What it may cost
    #[arg(long, value_name = "E")]
    pub(crate) epsilon: f64,
    /// The probability with which the promise may fail; 0 unless given
    #[arg(long, value_name = "D", default_value_t = 0.0)]
    pub(crate) delta: f64,
    /// Write the certificate of the release to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) house: House,
}
