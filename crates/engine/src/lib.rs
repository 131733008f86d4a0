//! The one pipeline: charge, compute, add noise, release.
//!
//! An [`Engine`] owns a ledger and a signing key. [`Engine::ask`] charges a [`Question`], runs its computation, makes
//! the [`Private`] result public, and stores and returns the [`Certificate`] that says what is promised.
//! [`verify`] checks a certificate without trusting whoever shows it.
//!
//! Never here: networks, the reading of arguments, a price that is not the mechanism's own.

mod accuracy;
pub mod backend;
mod batch;
mod canonical;
mod certificate;
mod engine;
mod error;
mod estimate;
mod explain;
mod export;
mod interval;
mod key;
mod keys;
pub mod learn;
mod moments;
mod noise;
mod opening;
mod postprocess;
mod pricing;
mod private;
mod project;
mod quantile;
mod query;
mod question;
mod quote;
mod sql_type;
pub mod synth;
mod table;
mod tallied;
mod totals;

pub use backend::{Backend, Embedded, Prepared, check_files, stored_columns};
pub use batch::Batch;
pub use certificate::{Certificate, Finding, Promise, Signature, Verdict, verify};
pub use engine::{Answer, Engine};
pub use error::EngineError;
pub use explain::{Explained, ExplainedItem, ExplainedStatistic};
pub use export::Note;
pub use interval::{Interval, Ratio, reach};
pub use key::Key;
pub use keys::KeyRule;
pub use noise::Noise;
pub use opening::{ANY_UNIT, Opening, SCRATCH, check_budget, first_filter, protected, remark, would_pay};
pub use pricing::{Item, Keys, Preference, Pricing, Wish};
pub use private::{Choices, Numbers, Private, Responses};
pub use project::Project;
pub use quantile::{Quantile, Tree};
pub use query::Ready;
pub use question::{Question, Term};
pub use quote::{Ask, Quote};
pub use table::{Cell, Heading, Table};
