//! A privacy budget that survives everything.
//!
//! A [`Ledger`] is an append-only chain of [entries](entry::Entry), each with the hash of all before it. [`Ledger::charge`] decides
//! by the budget's [`Filter`](demur_accounting::Filter) whether a loss may be paid, makes the charge durable, and
//! only then gives a [`Receipt`], without which nothing can be released.
//!
//! | what | where |
//! |---|---|
//! | who asks what at which price | [`Request`] |
//! | where all budgets stand | [`Book`] |
//! | where entries are kept | [`store`], chosen by a [`Location`] |
//! | an older copy put back | [`anchor`] |
//! | how entries are written | [`entry`], `docs/ledger-format.md` |
//!
//! Never here: queries, rows, noise, the choice of a price.

pub mod anchor;
mod book;
mod chain;
mod charge_text;
mod desk;
mod entries;
pub mod entry;
mod error;
mod file;
mod folder;
mod hash;
mod ledger;
mod location;
mod names;
mod quotes;
mod receipt;
mod request;
pub mod store;
mod verify;
mod writer;

pub use book::Book;
pub use entry::{Budget, BudgetName, Position};
pub use error::LedgerError;
pub use hash::{Hash, NotAHash};
pub use ledger::{Ledger, Options};
pub use location::Location;
pub use receipt::{Charged, Receipt, Replay};
pub use request::Request;
pub use verify::{Report, verify};
