//! Synthetic data: tables that look like the real one in every marginal that matters, and like nobody in particular.
//!
//! ```
//! use std::ops::ControlFlow;
//! use demur_core::{Adjacency, Guarantee};
//! use demur_noise::Entropy;
//! use demur_synth::{ColumnSet, Columns, DEFAULT_CELLS, Marginals, Plan, Rounding, Table};
//!
//! // Public: what columns there are, what shall be right, what it may cost.
//! let columns = Columns::new([("smoker", 2), ("ill", 2), ("region", 4)])?;
//! let pairs = Marginals::all(&columns, 2)?;
//! let guarantee = Guarantee::new("1".parse()?, "1e-6".parse()?);
//! let plan = Plan::aim(&columns, Adjacency::AddRemove, guarantee, &pairs, DEFAULT_CELLS)?;
//!
//! // Charge `plan.loss()`; then, and only then, rows are read.
//! let codes = vec![vec![0; 500], vec![1; 500], (0..500).map(|i| i % 4).collect()];
//! let table = Table::new(columns, codes)?;
//! let entropy = &mut Entropy::from_os()?;
//! let model = plan.fit(&table, entropy, &mut |_| ControlFlow::Continue(()))?.into_value();
//!
//! // Everything below is free.
//! let shares = model.marginal(&ColumnSet::new([0, 1]))?;
//! let rows = model.sample(1000, Rounding::Systematic, entropy)?;
//! let bytes = model.to_bytes();
//! # assert_eq!((shares.len(), rows.len()), (4, 3));
//! # assert_eq!(demur_synth::Model::from_bytes(&bytes)?.columns().len(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | what | type |
//! |---|---|
//! | a discretised private table, its public columns, some of them | [`Table`], [`Columns`], [`ColumnSet`] |
//! | which marginals matter; what cannot occur | [`Marginals`], [`Zeros`] |
//! | how it is done and what it costs, before a row is read | [`Plan`]: [`mst`](Plan::mst), [`aim`](Plan::aim), [`mwem`](Plan::mwem), [`blr`](Plan::blr) |
//! | how far it is, and a way to stop it | [`Progress`], [`Watch`] |
//! | what comes out: marginals, rows, bytes | [`Model`], [`Rounding`] |
//! | exactly, over small universes | [`Blr`], [`MultiplicativeWeights`] |
//! | how their errors fall as tables grow | [`Growth`] |
//!
//! **Where privacy is decided.** One type sees rows, the curator (`curator.rs`). It adds noise or selects, and pays beforehand from an allowance
//! that was charged before the run. All the rest, which is most of the code, is post-processing.
//!
//! Never here: noise or accounting of its own, files, SQL, the choice of a budget.

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
mod growth;
mod inference;
mod junction_tree;
mod least_noise;
mod marginals;
mod model;
mod mst;
mod multiplicative_weights;
mod mwem;
mod neighbours;
#[cfg(test)]
mod pipeline_tests;
mod plan;
mod progress;
mod projections;
mod runs;
mod sample;
mod singles;
mod table;
mod zeros;

pub use blr::{Blr, MAX_STATES};
pub use columns::{Column, ColumnSet, Columns, MAX_COLUMNS, MAX_VALUES};
pub use error::SynthError;
pub use growth::{Growth, MOST_RECORDS};
pub use marginals::{MAX_SETS, MAX_WAYS, Marginals};
pub use model::{MAX_QUERY_CELLS, Model};
pub use multiplicative_weights::MultiplicativeWeights;
pub use neighbours::{MAX_ROWS_PER_UNIT, Neighbours};
pub use plan::{DEFAULT_CELLS, MOST_MODEL_CELLS, Plan, Stage};
pub use progress::{Progress, Watch};
pub use sample::{MAX_ROWS, Rounding};
pub use table::Table;
pub use zeros::Zeros;
