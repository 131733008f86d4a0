//! Private learning: the exponential mechanism for anything, models trained under noise, clusters and hot spots.
//!
//! | what | where |
//! |---|---|
//! | one candidate, several, the best of many runs, the first above a threshold | [`select`] |
//! | models: regression, networks | [`train`] |
//! | centres of points | [`kmeans`] |
//! | communities of a network's users | [`communities`] |
//! | a map and a list of hot spots | [`hotspots`] |
//!
//! Each has a `Plan` that knows its loss before a row is read; whoever runs it charges that loss first.
//! Points meet noise in one place, the curator (`curator.rs`), examples in that of `train`, and ties in one function (`communities.rs`); the rest is
//! post-processing.
//!
//! Never here: noise or accounting of its own, files, SQL, the choice of a budget.

pub mod communities;
mod curator;
mod error;
pub mod hotspots;
pub mod kmeans;
mod people;
mod progress;
pub mod select;
pub mod train;

pub use error::LearnError;
pub use people::Points;
pub use progress::{Progress, Watch};
