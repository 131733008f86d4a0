//! `demur account`: what can be typed, and what `--help` says about it.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// The loss language and where to go from here.
pub(crate) const HELP: &str = "\
Losses are written as a sum, each with how often it was paid:
  'gaussian(sigma=5)*100 + subsampled(0.01, laplace(scale=2))*1000'

  gaussian(sigma, sensitivity)               also discrete_gaussian
  laplace(scale, sensitivity)                also discrete_laplace; epsilon= instead of scale
  truncated_laplace(epsilon=E, delta=D)      or scale, bound and sensitivity
  randomized_response(epsilon, categories)   also unary_encoding(epsilon)
  exponential(epsilon)                       also permute_and_flip(epsilon)
  pure(epsilon), approx(epsilon, delta), zcdp(rho)   anything with this guarantee
  subsampled(rate, loss)                     the loss on a Poisson sample
  group(size, loss)                          the loss of several people together

Numbers are decimals (0.5, 1e-6) or fractions (1/3) and stay exact; a sensitivity that is left
out is 1. Neighbours differ by one person, added or removed.

Every answer is proven: no composition costs more than what is printed.";

#[derive(Debug, Subcommand)]
pub(crate) enum Account {
    /// What several losses cost together: ε for a δ, or δ for an ε
    #[command(after_help = "\
Examples:
  demur account compose 'gaussian(sigma=5)*100' --delta 1e-6
  demur account compose 'subsampled(0.01, gaussian(sigma=1))*1000' --delta 1e-6 --format json
  demur account compose 'laplace(scale=10)*50 + exponential(0.1)*3' --epsilon 2
  demur account compose 'gaussian(sigma=5)*100' --delta 1e-6 --method renyi
  demur account compose --file losses.json --delta 1e-6

A file holds a loss as JSON, as releases print it, or as text in the loss language.
`demur account --help` shows the loss language.

JSON has epsilon, epsilon_lower, delta, delta_lower, method, reason and losses: the true value
lies between the lower one and the one without a suffix. What was given is given back unchanged;
a number that no double can hold is written as text.")]
    Compose(Compose),
    /// The least noise for a wanted (ε, δ), or the most uses of given noise
    #[command(after_help = "\
Examples:
  demur account calibrate gaussian --epsilon 1 --delta 1e-6
  demur account calibrate gaussian --epsilon 1 --delta 1e-6 --steps 1000 --sampling-rate 0.01
  demur account calibrate laplace --epsilon 1 --delta 1e-6 --steps 100 --sensitivity 2
  demur account calibrate truncated_laplace --epsilon 1 --delta 1e-9
  demur account calibrate steps --sigma 5 --epsilon 1 --delta 1e-6
  demur account calibrate rate --sigma 1 --steps 1000 --epsilon 1 --delta 1e-6

What is found:
  gaussian, discrete_gaussian                    the least sigma
  laplace, discrete_laplace                      the least scale
  truncated_laplace, truncated_discrete_laplace  the least bound, at scale sensitivity/epsilon
  randomized_response, exponential               the largest epsilon of one use
  steps                                          how often noise of --sigma may be used
  rate                                           how large the sample of every step may be")]
    Calibrate(Calibrate),
    /// What a loss is worth in pure ε, (ε, δ), ρ, μ and Rényi divergences
    #[command(after_help = "\
Examples:
  demur account convert 'zcdp(0.5)' --delta 1e-6
  demur account convert 'gaussian(sigma=2)' --delta 1e-6 --format json
  demur account convert 'gdp(1)' --delta 1e-6
  demur account convert 'approx(1, 1e-9)*10' --delta 1e-6

gdp(mu) is Gaussian privacy, the same as gaussian(sigma=1/mu). What has no finite
value is left out.")]
    Convert(Convert),
    /// Which method answered and why, and what the others would have said
    #[command(after_help = "\
Examples:
  demur account explain 'subsampled(0.01, gaussian(sigma=1))*1000' --delta 1e-6
  demur account explain 'group(3, gaussian(sigma=5))' --epsilon 1

Losses of groups and on samples are shown beside the textbook formulas, which know only ε and δ:
a group of k pays (k ε, δ (e^(k ε) - 1)/(e^ε - 1)), a sample of rate q pays
(ln(1 + q (e^ε - 1)), q δ).")]
    Explain(Explain),
    /// Draw a privacy profile, trade-off curve, loss histogram, or growth by steps or size
    #[command(after_help = "\
Examples:
  demur account plot profile 'gaussian(sigma=5)*100' --out profile.svg
  demur account plot tradeoff 'laplace(scale=2)' --out tradeoff.png
  demur account plot loss 'subsampled(0.1, gaussian(sigma=1))*100'
  demur account plot steps 'subsampled(0.01, gaussian(sigma=1))' --steps 10000 --delta 1e-6
  demur account plot size --out size.svg

Pictures:
  profile   δ against ε
  tradeoff  the least type II error of any test for a person, against its type I error
  loss      the privacy loss as a random variable, in cells
  steps     ε against the number of uses, by several methods
  size      ε and error of a mean of n values in [0, 1], when ε = 1/√n: both go to 0

Without --out the picture is drawn in the terminal.")]
    Plot(Plot),
    /// Answer questions line by line: JSON in, JSON out
    #[command(after_help = "\
Examples:
  echo '{\"losses\":\"gaussian(sigma=5)*100\",\"delta\":\"1e-6\"}' | demur account batch
  demur account batch < questions.jsonl > answers.jsonl

Questions, one on each line:
  {\"losses\": \"gaussian(sigma=5)*100\", \"delta\": \"1e-6\"}   epsilon, epsilon_lower, method
  {\"losses\": \"gaussian(sigma=5)*100\", \"epsilon\": \"1\"}    delta, delta_lower, method
  {\"losses\": \"gaussian(sigma=5)*100\", \"order\": \"8\"}      renyi, renyi_lower, renyi_remove, renyi_add
  {\"calibrate\": \"gaussian\", \"epsilon\": \"1\", \"delta\": \"1e-9\", \"sensitivity\": \"1\"}
                                                         sigma, sigma_lower

A calibration may have steps, sampling_rate and sigma. Losses are text or JSON. Numbers are
JSON numbers or text, read exactly; answers are text that reads back to the very double.
`method` chooses a method, `id` is given back. A line that cannot be answered gets an `error`
and its `code`, and the next one is read. A line has at most 1 MiB.")]
    Batch,
}

/// Where the losses come from.
#[derive(Debug, Args)]
pub(crate) struct Losses {
    /// What was paid, such as 'gaussian(sigma=5)*100 + pure(0.1)'
    #[arg(value_name = "LOSSES")]
    pub(crate) text: Option<String>,
    /// A file with the losses, as JSON or as text, or - for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// What is given; the other one is sought.
#[derive(Debug, Args)]
pub(crate) struct Asked {
    /// Find ε for this δ
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) delta: Option<String>,
    /// Find δ for this ε
    #[arg(long, value_name = "E", allow_hyphen_values = true)]
    pub(crate) epsilon: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    #[default]
    Table,
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct Compose {
    #[command(flatten)]
    pub(crate) losses: Losses,
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// closed-form, lattice, inversion, grid, renyi, zcdp, gaussian, optimal, advanced or basic
    #[arg(long, value_name = "NAME")]
    pub(crate) method: Option<String>,
    /// A table for people, JSON for programs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Form,
}

#[derive(Debug, Args)]
pub(crate) struct Calibrate {
    /// What is sought: a mechanism, steps or rate
    #[arg(value_name = "MECHANISM")]
    pub(crate) unknown: String,
    /// The ε of the whole composition
    #[arg(long, value_name = "E", allow_hyphen_values = true)]
    pub(crate) epsilon: String,
    /// The δ of the whole composition
    #[arg(long, value_name = "D", default_value = "0", allow_hyphen_values = true)]
    pub(crate) delta: String,
    /// How much one person can change the true answer of one step
    #[arg(long, value_name = "S", default_value = "1", allow_hyphen_values = true)]
    pub(crate) sensitivity: String,
    /// How often the mechanism is used; 1 if left out
    #[arg(long, value_name = "K", allow_hyphen_values = true)]
    pub(crate) steps: Option<String>,
    /// Each person is in the sample of a step with this probability; 1 if left out
    #[arg(long, value_name = "Q", allow_hyphen_values = true)]
    pub(crate) sampling_rate: Option<String>,
    /// The σ of the noise, to find steps or rate
    #[arg(long, value_name = "SIGMA", allow_hyphen_values = true)]
    pub(crate) sigma: Option<String>,
    /// A table for people, JSON for programs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Form,
}

#[derive(Debug, Args)]
pub(crate) struct Convert {
    #[command(flatten)]
    pub(crate) losses: Losses,
    /// The δ at which ε is found
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) delta: String,
    /// A table for people, JSON for programs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Form,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) losses: Losses,
    #[command(flatten)]
    pub(crate) asked: Asked,
}

#[derive(Debug, Args)]
pub(crate) struct Plot {
    /// Which picture
    #[arg(value_enum)]
    pub(crate) picture: Picture,
    #[command(flatten)]
    pub(crate) losses: Losses,
    /// The δ of the curves, for steps
    #[arg(long, value_name = "D", default_value = "1e-6", allow_hyphen_values = true)]
    pub(crate) delta: String,
    /// The most uses, for steps
    #[arg(long, value_name = "K", default_value = "1000", allow_hyphen_values = true)]
    pub(crate) steps: String,
    /// Draw to this .svg or .png file instead of the terminal
    #[arg(long, value_name = "FILE", default_value = "-", hide_default_value = true)]
    pub(crate) out: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Picture {
    Profile,
    Tradeoff,
    Loss,
    Steps,
    Size,
}
