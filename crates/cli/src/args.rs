//! What can be typed, and what `--help` says about it.

pub(crate) mod account;
pub(crate) mod budget;
pub(crate) mod certificate;
pub(crate) mod charging;
pub(crate) mod learn;
pub(crate) mod ledger;
pub(crate) mod query;
pub(crate) mod synth;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use demur_core::{Delta, Epsilon};
use demur_exact::Rational;
use demur_noise::{Calibration, Method};

use crate::failure::Failure;

/// Values that a table or JSON may hold.
const MAX_GATHERED: u64 = 10_000_000;

/// Answers questions about everyone and declines to speak about anyone.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, propagate_version = true)]
#[command(after_help = "\
Start here:
  demur init visits.parquet --unit patient_id
  demur query \"SELECT region, COUNT(*) FROM visits GROUP BY region\" --epsilon 0.5
  demur noise laplace --value 42 --sensitivity 1 --epsilon 0.5
  demur account compose 'gaussian(sigma=5)*100' --delta 1e-6
  demur budget create visits --epsilon 1

Exit codes: 0 answered, 1 refused by budget or policy, 2 misuse or failure.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Ask a question in SQL and get a private answer with error bars
    #[command(after_help = query::QUERY_HELP)]
    Query(query::Query),
    /// See what a question would cost and how far off its answer would be, for free
    Explain(query::Explain),
    /// Write a first demur.toml for some files
    #[command(after_help = query::INIT_HELP)]
    Init(query::Init),
    /// Check demur.toml, and say in words what it promises to whom
    Check(query::Check),
    /// Make a table like the private one, about nobody
    #[command(subcommand, after_help = synth::HELP)]
    Synth(synth::Synth),
    /// Train models, find clusters, communities and hot spots, choose what is frequent
    #[command(subcommand, after_help = learn::HELP)]
    Learn(learn::Learn),
    /// Publish a number, a choice or an answer with exact noise
    #[command(subcommand)]
    Noise(Noise),
    /// Find out what losses cost together, and how much noise a budget needs
    #[command(subcommand, after_help = account::HELP)]
    Account(account::Account),
    /// Say how much may be spent on a dataset, and see what was
    #[command(subcommand, after_help = budget::HELP)]
    Budget(budget::Budget),
    /// Read, check and export the record of everything that was charged
    #[command(subcommand, after_help = ledger::HELP)]
    Ledger(ledger::Ledger),
    /// Check what is promised about a release
    #[command(subcommand, after_help = certificate::HELP)]
    Certificate(certificate::Certificate),
    /// Print a completion script for your shell
    #[command(
        after_help = "Example:\n  demur completions bash > ~/.local/share/bash-completion/completions/demur"
    )]
    Completions {
        /// Which shell
        shell: Shell,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Noise {
    /// Pure ε-privacy: two-sided geometric noise of scale sensitivity/ε
    #[command(after_help = "\
Examples:
  demur noise laplace --value 42 --sensitivity 1 --epsilon 0.5
  demur noise laplace --value 3.25 --sensitivity 0.1 --epsilon 1 --format json
  demur noise laplace --values 10,20,30 --sensitivity 2 --epsilon 1
  demur noise laplace --values-file counts.csv --column visits --sensitivity 1 --epsilon 1 --format csv
  demur noise laplace --value 0 --sensitivity 1 --epsilon 1 --count 1000000 --format lines

Whole numbers get whole noise. A decimal is rounded to a lattice of about a millionth
of the scale and gets noise in whole lattice steps; the exact published number is printed.
So write 42.0 where a value could also have been 41.7: which kind of noise is used can be seen.
For several values the sensitivity is the l1 one: how much one person can change them,
summed over all values.")]
    Laplace(Laplace),
    /// (ε, δ)-privacy: discrete Gaussian noise, best for many values at once
    #[command(after_help = "\
Examples:
  demur noise gaussian --value 42 --sensitivity 1 --epsilon 0.5 --delta 1e-6
  demur noise gaussian --values 10,20,30 --sensitivity 1.5 --epsilon 1 --delta 1e-6
  demur noise gaussian --value 42 --sensitivity 1 --epsilon 0.5 --delta 1e-6 --calibration classic

Calibrations: `analytic` is the least noise there is, for every epsilon; `classic` is
sqrt(2 ln(1.25/delta))/epsilon for epsilon below 1; `tail` is sqrt(2 ln(2/delta))/epsilon
and `loose` sqrt(32/9 ln(2/delta))/epsilon, both for epsilon up to 1.
For several values the sensitivity is the l2 one: the length of the change one person can make.")]
    Gaussian(Gaussian),
    /// (ε, δ)-privacy with noise that never exceeds a bound
    #[command(after_help = "\
Example:
  demur noise truncated-laplace --value 42 --sensitivity 1 --epsilon 1 --delta 1e-6

Needs a delta of at most 1/2. The noise is at most about
sensitivity/epsilon * ln(1 + (e^epsilon - 1)/(2 delta)).")]
    TruncatedLaplace(TruncatedLaplace),
    /// Perturb one person's own answer before anybody sees it
    #[command(after_help = "\
Examples:
  demur noise randomized-response --truth yes --epsilon 1
  demur noise randomized-response --truth '3 of 5' --epsilon 2
  demur noise randomized-response --truth no --two-coins

The truth is told with probability e^epsilon/(e^epsilon + K - 1). `--two-coins` is the
classic game: truth on tails, a second coin on heads; it costs ln 3.
Use `demur noise estimate` to undo the perturbation for many answers together.")]
    RandomizedResponse(RandomizedResponse),
    /// Estimate a fraction from many perturbed answers, with an interval
    #[command(after_help = "\
Examples:
  demur noise estimate --seen 400 --total 1000 --two-coins
  demur noise estimate --seen 120 --total 1000 --epsilon 1 --categories 5
  demur noise estimate --seen 300 --total 1000 --epsilon 1 --unary")]
    Estimate(Estimate),
    /// Choose the best of several candidates privately
    #[command(after_help = "\
Examples:
  demur noise exponential --scores votes.csv --sensitivity 1 --epsilon 1
  printf 'red,12\\nblue,9\\n' | demur noise exponential --scores - --sensitivity 1 --epsilon 1
  demur noise exponential --scores votes.csv --sensitivity 1 --epsilon 1 --method permute-and-flip

The file has one `candidate,score` on each line; a first line `candidate,score` is a header.
The sensitivity is how far one person can move any one score.")]
    Exponential(Exponential),
    /// Laplace against Gaussian error, by the number of values published together
    #[command(after_help = "\
Examples:
  demur noise compare --dimensions 1,10,100,1000 --epsilon 1 --delta 1e-6
  demur noise compare --dimensions 1,10,100,1000 --epsilon 1 --delta 1e-6 --plot errors.svg
  demur noise compare --dimensions 1,10,100 --epsilon 1 --delta 1e-6 --plot

One person changes each of the k values by at most the sensitivity, so the l1 sensitivity
grows with k and the l2 one with sqrt(k).")]
    Compare(Compare),
}

/// The numbers to publish.
#[derive(Debug, Args)]
pub(crate) struct Numbers {
    #[command(flatten)]
    pub(crate) source: Source,
    /// The column of --values-file to publish
    #[arg(long, value_name = "NAME", requires = "values_file")]
    pub(crate) column: Option<String>,
}

/// Where the numbers come from.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Source {
    /// The true number: whole numbers get whole noise, decimals lattice noise
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    pub(crate) value: Option<String>,
    /// Several true numbers, published together
    #[arg(long, value_name = "X,Y,…", value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) values: Option<Vec<String>>,
    /// A CSV file with a header, or - for standard input; needs --column
    #[arg(long, value_name = "FILE", requires = "column")]
    pub(crate) values_file: Option<PathBuf>,
}

/// How much one person matters, and how the answer is printed.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// How much one person can change the true answer
    #[arg(long, value_name = "S", allow_hyphen_values = true, value_parser = sensitivity)]
    pub(crate) sensitivity: Rational,
    /// The privacy loss to spend on each release
    #[arg(long, value_name = "E", allow_hyphen_values = true)]
    pub(crate) epsilon: Epsilon,
    #[command(flatten)]
    pub(crate) printing: Printing,
}

#[derive(Debug, Args)]
pub(crate) struct Printing {
    /// Publish this many times; every one of them costs
    #[arg(long, value_name = "N", default_value_t = 1, allow_hyphen_values = true,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    pub(crate) count: u64,
    /// A table for people, one value per line, JSON or CSV for programs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) charging: charging::Charging,
}

impl Printing {
    /// Lines and CSV are streamed without end; tables and JSON have to fit into memory.
    pub(crate) fn check(&self, values_each: u64) -> Result<(), Failure> {
        let total = self.count.saturating_mul(values_each);
        let streamed = matches!(self.format, Format::Lines | Format::Csv);
        if streamed || total <= MAX_GATHERED {
            return Ok(());
        }
        let message = format!("{total} values are too many to gather (at most {MAX_GATHERED})");
        Err(Failure::new("cli.count", message).hint("use --format lines or csv"))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Table,
    Lines,
    Json,
    Csv,
}

#[derive(Debug, Args)]
pub(crate) struct Laplace {
    #[command(flatten)]
    pub(crate) numbers: Numbers,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct Gaussian {
    #[command(flatten)]
    pub(crate) numbers: Numbers,
    #[command(flatten)]
    pub(crate) common: Common,
    /// The chance that the promise of ε does not hold
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) delta: Delta,
    /// Which formula turns (ε, δ) into noise: analytic, classic, tail or loose
    #[arg(long, value_name = "NAME", default_value = "analytic")]
    pub(crate) calibration: Calibration,
}

#[derive(Debug, Args)]
pub(crate) struct TruncatedLaplace {
    #[command(flatten)]
    pub(crate) numbers: Numbers,
    #[command(flatten)]
    pub(crate) common: Common,
    /// The chance that the promise of ε does not hold
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) delta: Delta,
}

#[derive(Debug, Args)]
pub(crate) struct RandomizedResponse {
    /// The true answer: yes, no, or '3 of 5'
    #[arg(long, value_name = "ANSWER")]
    pub(crate) truth: Truth,
    #[command(flatten)]
    pub(crate) cost: ResponseCost,
    #[command(flatten)]
    pub(crate) printing: Printing,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ResponseCost {
    /// The privacy loss of one answer
    #[arg(long, value_name = "E", allow_hyphen_values = true)]
    pub(crate) epsilon: Option<Epsilon>,
    /// The classic game with two coins, at a cost of ln 3
    #[arg(long)]
    pub(crate) two_coins: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Estimate {
    /// How many perturbed answers were the one in question
    #[arg(long, value_name = "N")]
    pub(crate) seen: u64,
    /// How many answers there were
    #[arg(long, value_name = "N")]
    pub(crate) total: u64,
    #[command(flatten)]
    pub(crate) cost: ResponseCost,
    /// How many answers were possible
    #[arg(long, value_name = "K", default_value_t = 2)]
    pub(crate) categories: u64,
    /// The answers were rows of bits (optimised unary encoding)
    #[arg(long, conflicts_with = "two_coins")]
    pub(crate) unary: bool,
    /// The chance that the interval misses the truth
    #[arg(long, value_name = "B", default_value_t = 0.05)]
    pub(crate) beta: f64,
    /// A table for people, JSON or CSV for programs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Exponential {
    /// A file of `candidate,score` lines, or - for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) scores: PathBuf,
    #[command(flatten)]
    pub(crate) common: Common,
    /// How the candidate is drawn
    #[arg(long, value_enum, default_value_t)]
    pub(crate) method: SelectionMethod,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum SelectionMethod {
    #[default]
    Exponential,
    PermuteAndFlip,
}

impl From<SelectionMethod> for Method {
    fn from(method: SelectionMethod) -> Self {
        match method {
            SelectionMethod::Exponential => Self::Exponential,
            SelectionMethod::PermuteAndFlip => Self::PermuteAndFlip,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Numbers of values published together
    #[arg(long, value_name = "K,…", value_delimiter = ',', required = true,
          value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) dimensions: Vec<u64>,
    /// The privacy loss of the whole vector
    #[arg(long, value_name = "E", allow_hyphen_values = true)]
    pub(crate) epsilon: Epsilon,
    /// The chance that the promise of ε does not hold, for the Gaussian
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) delta: Delta,
    /// How much one person can change each value
    #[arg(long, value_name = "S", default_value = "1", allow_hyphen_values = true, value_parser = sensitivity)]
    pub(crate) sensitivity: Rational,
    /// Draw the curves: to an .svg or .png file, or in the terminal
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) plot: Option<PathBuf>,
    /// A table for people, JSON or CSV for programs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// A true answer among several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    Yes,
    No,
    /// 1-based, as people count.
    OneOf {
        answer: u64,
        answers: u64,
    },
}

impl std::str::FromStr for Truth {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().to_lowercase().as_str() {
            "yes" => return Ok(Self::Yes),
            "no" => return Ok(Self::No),
            _ => {}
        }
        let bad = || format!("`{text}` is not an answer; write yes, no, or a choice such as '3 of 5'");
        let (answer, answers) = text.split_once(" of ").ok_or_else(bad)?;
        let (answer, answers) =
            (answer.trim().parse().map_err(|_| bad())?, answers.trim().parse().map_err(|_| bad())?);
        if answers < 2 || answer < 1 || answer > answers {
            return Err(format!(
                "there is no answer {answer} among {answers}; the first is '1 of {answers}'"
            ));
        }
        Ok(Self::OneOf { answer, answers })
    }
}

/// A number above 0 and within reach of a double.
fn sensitivity(text: &str) -> Result<Rational, String> {
    let value: Rational = text.parse().map_err(|error| format!("{error}"))?;
    if !value.is_positive() {
        return Err(format!("a sensitivity must be above 0, but {text} was given"));
    }
    if value > Rational::power_of_two(1000) || value < Rational::power_of_two(-1000) {
        return Err(format!("a sensitivity must lie between 1e-300 and 1e300, but {text} was given"));
    }
    Ok(value)
}
