//! Flags of commands that can charge a budget.

use std::path::PathBuf;

use clap::Args;

/// Who pays.
#[derive(Debug, Args)]
#[command(next_help_heading = "Charging a budget")]
pub(crate) struct Charging {
    /// Charge this budget before anything is printed
    #[arg(long, value_name = "NAME")]
    pub(crate) budget: Option<String>,
    /// Where its ledger is: sqlite:PATH or postgres://…; see `demur ledger --help` for the default
    #[arg(long, value_name = "URL", requires = "budget")]
    pub(crate) ledger: Option<String>,
    /// Who asks; your user name unless given
    #[arg(long, value_name = "NAME", requires = "budget")]
    pub(crate) requester: Option<String>,
    /// Your name for this request: asked again under it, the stored answer is printed at no cost
    #[arg(long, value_name = "ID", requires = "budget")]
    pub(crate) request_id: Option<String>,
    /// A name for the state of the data: the same question about it is answered from the ledger
    #[arg(long, value_name = "NAME", requires = "budget")]
    pub(crate) data_version: Option<String>,
    /// Write the certificate of the release to this file
    #[arg(long, value_name = "FILE", requires = "budget")]
    pub(crate) certificate: Option<PathBuf>,
}
