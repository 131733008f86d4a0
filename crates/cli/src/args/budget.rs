//! `demur budget`: what can be typed, and what `--help` says about it.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::account::Form;
use super::ledger::{At, Listing};

/// What a budget is and where it is kept.
pub(crate) const HELP: &str = "\
A budget says how much may ever be learned about one person in a dataset: whatever is charged to
it, all answers together are (epsilon, delta)-private. It never refills, not with time and not
with a restart. The owner can raise it or close it, and both stay in the ledger for good.

Start here:
  demur budget create visits --epsilon 1
  demur budget show visits

Filters, which say how charges add up when every question may depend on earlier answers:
  pure      epsilons add up; exact, and all there is without a delta
  zcdp      rho adds up: many answers cost about the root of their number; for most budgets
            with a delta
  gaussian  mu squared adds up: the most answers when all noise is Gaussian
  renyi     Renyi divergences of a few orders: for training on samples

The ledger is the one of --ledger, or of the variable DEMUR_LEDGER, or .demur/ledger.db beside
the nearest demur.toml in this folder or above it, or .demur/ledger.db in this folder.";

#[derive(Debug, Subcommand)]
pub(crate) enum Budget {
    /// Create a budget, and the ledger if there is none yet
    #[command(after_help = "\
Examples:
  demur budget create visits --epsilon 1
  demur budget create visits --epsilon 1 --delta 1e-6 --unit user_id --reason 'approved by the board'
  demur budget create visits --epsilon 0.2 --delta 1e-6 --requester alice
  demur budget create images --epsilon 8 --delta 1e-5 --filter renyi --ledger sqlite:/srv/ledger.db

Without --delta the filter is pure, with it zcdp: `demur budget --help` explains them. With
--requester the budget is a part: what alice asks is charged to the whole budget and to her
part, and both must allow it. The whole budget comes first.

Numbers are decimals (0.5, 1e-6) or fractions (1/3) and stay exact. With zcdp, gaussian and renyi
a quarter of delta is kept for mechanisms that have a delta of their own.")]
    Create(Create),
    /// Show what was spent and what is left
    #[command(after_help = "\
Examples:
  demur budget show
  demur budget show visits
  demur budget show visits --format json
  demur budget show visits --plot
  demur budget show visits --plot=spending.svg

Spent epsilon is the epsilon at the budget's delta that all charges so far amount to, rounded up;
what remains is rounded down. For a pure budget both are exact. Otherwise epsilon grows like
the root of what is counted, so the second half of it pays for three times the answers of the
first: the row `counted` has the amounts that decide.

JSON has one object, or a list of them when no NAME is given: name, requester, dataset, unit,
filter, epsilon, delta, spent_epsilon, remaining_epsilon, spent and remaining (in the measure of
the filter), charges, releases, closed, parts, ledger, entry and head (the number and the hash of
the last entry). CSV has a line for each budget and each part.")]
    Show(Show),
    /// Raise a budget
    #[command(after_help = "\
Examples:
  demur budget raise visits --epsilon 2 --reason 'second study, approved on 2 May'
  demur budget raise visits --epsilon 2 --delta 1e-5 --reason 'second study'
  demur budget raise visits --epsilon 0.5 --requester alice --reason 'more questions'

Epsilon is the new total, not what is added. Without --delta the delta stays. What was spent
stays spent, the filter stays the same, and no part can be lowered. The reason is kept.")]
    Raise(Raise),
    /// Close a budget for good
    #[command(after_help = "\
Examples:
  demur budget close visits --reason 'the study is over'
  demur budget close visits --requester alice --reason 'left the team'

Nothing can be charged to a closed budget, and it cannot be opened again. Without --requester
the budget is closed for everybody.")]
    Close(Close),
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// The name of the budget
    pub(crate) name: String,
    /// The ε of all answers together
    #[arg(long, value_name = "E", allow_hyphen_values = true)]
    pub(crate) epsilon: String,
    /// The δ of all answers together
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) delta: Option<String>,
    /// How charges add up; pure without --delta, zcdp with it
    #[arg(long, value_enum)]
    pub(crate) filter: Option<Kind>,
    /// The data it protects; if left out, the tables of the project here whose budget it is, or the budget's name
    #[arg(long, value_name = "NAME")]
    pub(crate) dataset: Option<String>,
    /// Whose data is hidden: a column that names a person, or row; if left out, as the project's demur.toml says
    #[arg(long, value_name = "COLUMN")]
    pub(crate) unit: Option<String>,
    /// For tests alone: answers may be repeated without end, and nothing is protected
    #[arg(long, conflicts_with_all = ["requester", "dataset"])]
    pub(crate) scratch: bool,
    /// Create a part of the budget for this requester
    #[arg(long, value_name = "WHO")]
    pub(crate) requester: Option<String>,
    /// Why; kept in the ledger
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) at: At,
    /// A table for people, JSON for programs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    Pure,
    Zcdp,
    Gaussian,
    Renyi,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Which budget; all of them if left out
    pub(crate) name: Option<String>,
    /// Only the part of this requester
    #[arg(long, value_name = "WHO", requires = "name")]
    pub(crate) requester: Option<String>,
    /// Draw the spending: to an .svg or .png file (--plot=FILE), or in the terminal
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub(crate) plot: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) at: At,
    /// A table for people, JSON or CSV for programs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Listing,
}

#[derive(Debug, Args)]
pub(crate) struct Raise {
    /// The name of the budget
    pub(crate) name: String,
    /// The new ε of all answers together
    #[arg(long, value_name = "E", allow_hyphen_values = true)]
    pub(crate) epsilon: String,
    /// The new δ of all answers together; it stays if left out
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) delta: Option<String>,
    /// Raise the part of this requester
    #[arg(long, value_name = "WHO")]
    pub(crate) requester: Option<String>,
    /// Why; kept in the ledger
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) at: At,
    /// A table for people, JSON for programs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Form,
}

#[derive(Debug, Args)]
pub(crate) struct Close {
    /// The name of the budget
    pub(crate) name: String,
    /// Close only the part of this requester
    #[arg(long, value_name = "WHO")]
    pub(crate) requester: Option<String>,
    /// Why; kept in the ledger
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) at: At,
    /// A table for people, JSON for programs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Form,
}
