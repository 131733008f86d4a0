//! Seeded randomness and statistics for tests, and nothing that ships.
//!
//! [`Seeded`] repeats the same words for ever; [`Rigged`] plays back a script.
//! [`assert_fits`] compares draws with a law and states how often it is wrong.
//!
//! Never here: anything a shipped room depends on.

mod fit;
mod words;

pub use fit::{FalseAlarm, assert_fits, fit};
pub use words::{Rigged, Seeded};
