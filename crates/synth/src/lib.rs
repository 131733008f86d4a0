//! Synthetic data.

mod aim;
mod allowance;
mod beliefs;
mod blr;
mod bytes;
mod columns;
mod compression;
mod curator;
mod error;
mod estimator;
mod evidence;
mod exponential;
mod inference;
mod junction_tree;
mod model;
mod mst;
mod mwem;
mod plan;
mod progress;
mod projections;
mod runs;
mod sample;
mod singles;
mod table;
mod marginals;
mod zeros;

pub use blr::{Blr, MAX_STATES};
pub use columns::{Column, ColumnSet, Columns, MAX_COLUMNS, MAX_VALUES};
pub use error::SynthError;
pub use model::{MAX_QUERY_CELLS, Model};
pub use plan::{DEFAULT_CELLS, MOST_MODEL_CELLS, Plan, Stage};
pub use progress::{Progress, Watch};
pub use sample::{MAX_ROWS, Rounding};
pub use table::Table;
pub use marginals::{MAX_SETS, MAX_WAYS, Marginals};
pub use zeros::Zeros;

#[cfg(test)]
mod pipeline_tests;
