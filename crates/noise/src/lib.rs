//! Exact samplers and the mechanisms made of them.
//!
//! ```
//! use demur_core::Epsilon;
//! use demur_noise::{Entropy, Laplace, Mechanism};
//!
//! let mechanism = Laplace::integer("1".parse()?, Epsilon::new(0.5)?)?;
//! let release = mechanism.release(42, &mut Entropy::from_os()?)?;
//! println!("about {}, at a cost of {}", release.value(), release.loss());
//! assert!(mechanism.error(0.05)?.each < 8.0); // 95 % of answers are this close
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Mechanism`] knows both halves of its truth: what a use costs and how the noise
//! is drawn. [`Laplace`], [`TruncatedLaplace`] and [`Gaussian`] add noise to numbers;
//! [`Exponential`] chooses a candidate; [`RandomizedResponse`] and
//! [`UnaryEncoding`] let each person perturb their own answer.
//!
//! Answers live on a [`Lattice`](demur_core::Lattice): noise is a whole number of its
//! steps, drawn exactly by the samplers ([`DiscreteLaplace`],
//! [`DiscreteGaussian`], …) from operating-system [`Entropy`]. No rounding error, so
//! none of the attacks that need one.
//!
//! Never here: a seed, a switch that turns noise off, or float arithmetic in a sampler.

mod density;
mod entropy;
mod mechanism;
mod noise_error;
mod sampler;

pub use entropy::{Entropy, EntropyError, REFILLS_PER_SEED};
pub use mechanism::{
    Calibration, ErrorBound, Estimate, Exponential, Gaussian, Laplace, Mechanism, Method, Number,
    RandomizedResponse, TruncatedLaplace, UnaryEncoding, discrete_gaussian_delta,
};
pub use noise_error::NoiseError;
pub use sampler::{
    Bernoulli, DiscreteGaussian, DiscreteLaplace, Probability, Selection, TruncatedDiscreteLaplace,
    WeightedSelection, Words,
};
