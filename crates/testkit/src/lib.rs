//! Seeded randomness, statistics and faulty disks for tests, and nothing that ships.
//!
//! [`Seeded`] repeats the same words for ever; [`Rigged`] plays back a script.
//! [`assert_fits`] compares draws with a law and states how often it is wrong; [`Cells`] does so
//! for laws over huge ranges. [`seed`] and [`long_tests`] read the environment. [`FaultyStore`] fails at a chosen
//! operation; a [`Worker`] uses a ledger until it is killed, and a [`Witness`] holds the ledger to its word.
//! [`PostgresServer`] is a real server for one test program.
//!
//! Never here: anything a shipped room depends on.

mod cells;
mod faulty_store;
mod fit;
mod ledger_worker;
#[cfg(unix)]
mod postgres;
mod settings;
mod witness;
mod words;

pub use cells::Cells;
pub use faulty_store::{Faults, FaultyStore, Mode};
pub use fit::{FalseAlarm, assert_fits, chi_square, fit};
pub use ledger_worker::{Worker, budget_of, create_or_open, options, request};
#[cfg(unix)]
pub use postgres::PostgresServer;
pub use settings::{long_tests, seed};
pub use witness::{BUDGET, Tally, Witness};
pub use words::{Rigged, Seeded};
