//! `demur ledger`: what can be typed, and what `--help` says about it.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::account::Form;

/// What a ledger is.
pub(crate) const HELP: &str = "\
A ledger is a chain of entries: budgets that were created, raised and closed, charges, and what
was released for them. Every entry carries a hash over all before it, so none can be changed or
taken out unnoticed. Beside the ledger lies its anchor, a small file that remembers the last
entry, so that an older copy put in its place is noticed too. Keep both.

Start here:
  demur ledger log --last 20
  demur ledger verify

The ledger is the one of --ledger, or of the variable DEMUR_LEDGER, or .demur/ledger.db beside
the nearest demur.toml in this folder or above it, or .demur/ledger.db in this folder.";

#[derive(Debug, Subcommand)]
pub(crate) enum Ledger {
    /// List what happened, entry by entry
    #[command(after_help = "\
Examples:
  demur ledger log
  demur ledger log --last 20
  demur ledger log --budget visits --format json

Every entry has its number, its time, what happened, the budget, who asked and under which request
id, the loss or what else there is to say, and what was spent after it. Entries are checked
as they are read; if the chain breaks, the log ends there with an error.

JSON is a list of objects with entry, time, event, hash, and where they apply budget, requester,
request_id, question, data_version, loss, spent_epsilon, part_spent_epsilon, spent, epsilon,
delta, filter, charge, answer and reason. CSV has the same columns as the table.")]
    Log(Log),
    /// Check the whole chain
    #[command(after_help = "\
Examples:
  demur ledger verify
  demur ledger verify --ledger sqlite:/srv/ledger.db --format json

Every hash is computed again, the anchor is compared, and all budgets are counted anew. Exit code 0
means that all is well, 2 that something is not. Nothing is written.")]
    Verify(Verify),
    /// Write out all entries, for safe keeping or for another program
    #[command(after_help = "\
Examples:
  demur ledger export > ledger.jsonl
  demur ledger export --out ledger.jsonl
  demur ledger export --format csv --out ledger.csv

JSON is one object on each line: sequence, previous, hash and entry. The hash is SHA-256 of the
previous hash (32 bytes), the sequence number (8 bytes, the highest first) and the text of the
entry, exactly as it is written there. An existing file is not overwritten.")]
    Export(Export),
    /// Accept a ledger whose anchor was lost or does not agree
    #[command(after_help = "\
Example:
  demur ledger adopt --reason 'restored from the backup of 3 May after a disk failure'

Use this only when the right ledger and its anchor cannot be brought back. If only the anchor is
missing, the budgets go on. If the anchor remembers entries that the ledger does not have,
nobody knows what they spent: every budget is closed, and new ones have to be created. The
reason is kept in the ledger.")]
    Adopt(Adopt),
}

/// Which ledger.
#[derive(Debug, Args)]
pub(crate) struct At {
    /// Where the ledger is: sqlite:PATH, or just a path
    #[arg(long, value_name = "URL")]
    pub(crate) ledger: Option<String>,
}

/// How a list is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Listing {
    #[default]
    Table,
    Json,
    Csv,
}

#[derive(Debug, Args)]
pub(crate) struct Log {
    /// Only entries about this budget
    #[arg(long, value_name = "NAME")]
    pub(crate) budget: Option<String>,
    /// Only the last N of them
    #[arg(long, value_name = "N")]
    pub(crate) last: Option<usize>,
    #[command(flatten)]
    pub(crate) at: At,
    /// A table for people, JSON or CSV for programs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Listing,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) at: At,
    /// A table for people, JSON for programs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Form,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Write to this new file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) at: At,
    /// One JSON object on each line, or CSV
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Lines,
}

/// How entries are written out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Lines {
    #[default]
    Json,
    Csv,
}

#[derive(Debug, Args)]
pub(crate) struct Adopt {
    /// Why; kept in the ledger
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) at: At,
    /// A table for people, JSON for programs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Form,
}
