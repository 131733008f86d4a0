//! Exact draws from discrete laws: integers in, integers out.
//!
//! Every law here is drawn without rounding error. Uniform words are compared with
//! stored integers; when a comparison is too close to call, both sides are
//! computed to more digits. The lint below keeps floats out of this folder.

#![deny(clippy::float_arithmetic)]

mod acceptance;
mod bernoulli;
mod discrete_gaussian;
mod discrete_laplace;
mod geometric;
mod powers;
mod probability;
mod selection;
mod symmetric;
mod table;
mod truncated_discrete_laplace;
mod weighted_selection;
pub(crate) mod words;

pub use bernoulli::Bernoulli;
pub use discrete_gaussian::DiscreteGaussian;
pub use discrete_laplace::DiscreteLaplace;
pub use probability::Probability;
pub use selection::Selection;
pub use truncated_discrete_laplace::TruncatedDiscreteLaplace;
pub use weighted_selection::WeightedSelection;
pub use words::Words;
