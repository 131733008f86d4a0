//! `demur certificate`: what can be typed, and what `--help` says about it.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use demur_ledger::Hash;

use super::account::Form;
use super::ledger::At;

/// What a certificate is.
pub(crate) const HELP: &str = "\
A certificate says what is promised about one release: what was asked, which noise was added,
what that costs, which entry of which ledger paid for it, and what was released. It is signed, and
anybody can recompute its promise without the data.

Start here:
  demur noise laplace --value 42 --sensitivity 1 --epsilon 0.1 --budget visits --certificate release.json
  demur certificate verify release.json";

#[derive(Debug, Subcommand)]
pub(crate) enum Certificate {
    /// Check a certificate without believing it
    #[command(after_help = "\
Examples:
  demur certificate verify release.json
  demur certificate verify release.json --ledger sqlite:.demur/ledger.db
  demur certificate verify release.json --key 3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29

Without a ledger: the signature, and whether the promise follows from the mechanisms. With it also: that
the chain is whole, that the charge stands where the certificate says, that the key is the ledger's,
and that exactly this answer was released. Exit code 0 means that nothing is wrong, 2 that something is.")]
    Verify(Verify),
    /// Print the certificate of a release that is in the ledger
    #[command(after_help = "\
Example:
  demur certificate show 12 > release.json

The number is that of the entry that was charged; `demur ledger log` lists them.")]
    Show(Show),
    /// Print the public key that signs certificates, or introduce a new one
    #[command(after_help = "\
Examples:
  demur certificate key
  demur certificate key --rotate --reason 'the laptop it was on is gone'

The secret is in a file beside the ledger that only you can read. When it is rotated the old one is kept
beside it, and what it signed stays valid.")]
    Key(Key),
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The certificate, or - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The ledger it names: sqlite:PATH, or just a path
    #[arg(long, value_name = "URL")]
    pub(crate) ledger: Option<String>,
    /// The key that must have signed it
    #[arg(long, value_name = "HEX")]
    pub(crate) key: Option<Hash>,
    /// A table for people, JSON for programs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Form,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The entry that was charged
    #[arg(value_name = "ENTRY")]
    pub(crate) entry: u64,
    #[command(flatten)]
    pub(crate) at: At,
}

#[derive(Debug, Args)]
pub(crate) struct Key {
    /// Make a new key
    #[arg(long, requires = "reason")]
    pub(crate) rotate: bool,
    /// Why; kept in the ledger
    #[arg(long, value_name = "TEXT", requires = "rotate")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) at: At,
}
