//! Synthetic data.

mod aim;
mod allowance;
mod beliefs;
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
mod plan;
mod progress;
mod projections;
mod runs;
mod table;
mod marginals;
mod zeros;

pub use columns::{Column, ColumnSet, Columns, MAX_COLUMNS, MAX_VALUES};
pub use error::SynthError;
pub use model::{MAX_QUERY_CELLS, Model};
pub use plan::Plan;
pub use progress::{Progress, Watch};
pub use table::Table;
pub use marginals::{MAX_SETS, MAX_WAYS, Marginals};
pub use zeros::Zeros;
