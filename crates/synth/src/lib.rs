//! Synthetic data.

mod beliefs;
mod columns;
mod error;
mod exponential;
mod junction_tree;
mod runs;

pub use columns::{Column, ColumnSet, Columns, MAX_COLUMNS, MAX_VALUES};
pub use error::SynthError;
