//! The words of differential privacy as plain, checked data.
//!
//! ```
//! use demur_core::{Delta, Epsilon, Guarantee, PrivacyLoss};
//! use demur_exact::Rational;
//!
//! let guarantee = Guarantee::new(Epsilon::new(1.0)?, Delta::new(1e-6)?);
//! assert_eq!(guarantee.to_string(), "(ε = 1, δ = 0.000001)");
//!
//! let count = PrivacyLoss::DiscreteLaplace {
//!     scale: Rational::from(20u32),
//!     sensitivity: Rational::one(),
//! };
//! let week = count.repeat(7);
//! assert_eq!(week.to_string(), "discrete_laplace(scale=20, sensitivity=1)*7");
//! assert_eq!(week.pure_epsilon(), Some(Rational::new(7, 20)));
//! # Ok::<(), demur_core::Error>(())
//! ```
//!
//! | what | type |
//! |---|---|
//! | how much may leak | [`Epsilon`], [`Delta`], [`Rho`], and [`Guarantee`] for the pair |
//! | what one use costs, as data | [`PrivacyLoss`], made of [`Part`]s when composed, or of [`RenyiPoint`]s |
//! | the same as a line of text | `"gaussian(sigma=5)*100 + pure(0.1)".parse::<PrivacyLoss>()` and `to_string()` |
//! | what is published | [`Release`] |
//! | a mechanism small enough to check by hand | [`OutputPair`] |
//! | which datasets must look alike | [`Adjacency`] of [`Histogram`]s over a [`Domain`] |
//! | how far an answer can move | [`Sensitivity`] |
//! | where answers live | [`Lattice`], the multiples of a power of two |
//! | what is asked | [`CountingQuery`], a [`Workload`] of them, and its [`Accuracy`] |
//!
//! A parameter with a legal range is a type that checks it once, and every
//! refusal is an [`Error`] with a stable code. Numbers a promise rests on are
//! exact [`Rational`](demur_exact::Rational)s.
//!
//! Never here: files, networks, randomness, waiting, or the choice of a mechanism.

mod accuracy;
mod adjacency;
mod counting_query;
mod delta;
mod domain;
mod epsilon;
mod error;
mod guarantee;
mod histogram;
mod lattice;
mod output_pair;
mod privacy_loss;
mod range;
mod release;
mod rho;
mod root;
mod sensitivity;
mod workload;

pub use accuracy::Accuracy;
pub use adjacency::Adjacency;
pub use counting_query::CountingQuery;
pub use delta::{Delta, DeltaWarning};
pub use domain::{Attribute, Domain};
pub use epsilon::Epsilon;
pub use error::Error;
pub use guarantee::Guarantee;
pub use histogram::Histogram;
pub use lattice::Lattice;
pub use output_pair::OutputPair;
pub use privacy_loss::{Part, PrivacyLoss, RenyiPoint};
pub use release::Release;
pub use rho::Rho;
pub use sensitivity::Sensitivity;
pub use workload::Workload;
