//! Seeded randomness and statistics for tests, and nothing that ships.
//!
//! [`Seeded`] repeats the same words for ever; [`Rigged`] plays back a script.
//! [`assert_fits`] compares draws with a law and states how often it is wrong; [`Cells`] does so
//! for laws over huge ranges. [`PostgresServer`] is a real server for one test program. [`seed`] and [`long_tests`] read the environment.
//!
//! Never here: anything a shipped room depends on.

mod cells;
mod fit;
#[cfg(unix)]
mod postgres;
mod settings;
mod words;

pub use cells::Cells;
pub use fit::{FalseAlarm, assert_fits, chi_square, fit};
#[cfg(unix)]
pub use postgres::PostgresServer;
pub use settings::{long_tests, seed};
pub use words::{Rigged, Seeded};
