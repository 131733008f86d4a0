//! Models trained under noise: regression, multi-layer and convolutional networks.
//!
//! | what | type |
//! |---|---|
//! | the shape of a model | [`Network`], [`Layer`], [`Shape`], [`Task`] |
//! | how it is trained and what that costs, before an example is seen | [`Plan`], [`Recipe`] |
//! | regression on tables, by rule | [`Regression`], [`Columns`], [`Column`], [`Cell`] |
//! | features of images that are not learned | [`Scattering`] |
//! | private rows as numbers | [`Examples`], [`Targets`] |
//! | how far it is, a way to stop it and to go on | [`Progress`], [`Watch`], [`Checkpoint`] |
//! | what comes out | [`Model`] |
//!
//! **Where privacy is decided.** One type sees examples, the curator (`curator.rs`): it clips, adds up and adds noise, exactly (`contribution.rs`). All the rest is post-processing.

mod checkpoint;
mod columns;
mod contribution;
mod curator;
mod exact_sum;
mod examples;
mod matrix;
mod model;
mod network;
mod passes;
mod plan;
mod progress;
mod regression;
mod sampler;
mod scattering;
mod tensors;
#[cfg(test)]
mod tests;
mod whitening;

pub use checkpoint::Checkpoint;
pub use columns::{Cell, Column, Columns, MAX_CATEGORY};
pub use examples::{Examples, MAX_EXAMPLES, Targets};
pub use model::Model;
pub use network::{Layer, MAX_WEIGHTS, Network, Shape, Task};
pub use plan::{MAX_STEPS, Plan, Recipe};
pub use progress::{Progress, Watch};
pub use regression::Regression;
pub use scattering::Scattering;
