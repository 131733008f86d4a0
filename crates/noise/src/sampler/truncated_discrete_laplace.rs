//! [`TruncatedDiscreteLaplace`]: two-sided geometric noise with a hard bound.
//!
//! **Definition.** For scale t and bound τ the noise Z is the integer k with probability
//!
//! ```text
//! Pr[Z = k] ∝ exp(−|k| / t)   for |k| ≤ τ,   and 0 beyond
//! ```
//!
//! **Guarantee.** If neighbouring answers are whole numbers at most Δ ≤ 2τ apart,
//! publishing `answer + Z` is (ε, δ)-private with ε = Δ/t and δ the probability of
//! the Δ outermost values on one side, which the neighbour can never produce.
//!
//! **Sampling.** A small support is one [`Table`]. Otherwise values are proposed until
//! one is accepted: discrete Laplace draws that lie within τ when τ ≥ t, or
//! uniform values kept with probability e^(−|k|/t) when τ < t. At least three in
//! eight proposals are accepted, and how many were not says nothing about the
//! one that was.
//!
//! **References.** [Geng2020].

use demur_exact::Rational;

use crate::NoiseError;
use crate::sampler::acceptance::Acceptance;
use crate::sampler::discrete_laplace::DiscreteLaplace;
use crate::sampler::symmetric::{Shape, Symmetric, unfold};
use crate::sampler::table::Table;
use crate::sampler::words::{Words, below};

/// Supports of up to 2τ + 1 = 2¹¹ − 1 values are drawn from one table.
const TABLE_BITS: u32 = 11;
/// τ up to 2⁶².
const MAX_BOUND: u64 = 1 << 62;

/// Truncated discrete Laplace noise; see the module text.
///
/// ```
/// use demur_noise::{Entropy, TruncatedDiscreteLaplace};
/// let noise = TruncatedDiscreteLaplace::new("2".parse()?, 10)?;
/// let mut entropy = Entropy::from_os()?;
/// assert!((0..100).all(|_| noise.sample(&mut entropy).abs() <= 10));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TruncatedDiscreteLaplace {
    scale: Rational,
    bound: u64,
    method: Method,
}

#[derive(Clone, Debug)]
enum Method {
    Table(Table<Symmetric>),
    FromLaplace(DiscreteLaplace),
    FromUniform(Acceptance),
}

impl TruncatedDiscreteLaplace {
    /// Noise of scale `scale`, between 2⁻²⁰ and 2⁶⁰, never larger than `bound`.
    pub fn new(scale: Rational, bound: u64) -> Result<Self, NoiseError> {
        let what = "the scale of truncated Laplace noise";
        NoiseError::check_range(what, &scale, &DiscreteLaplace::min_scale(), &DiscreteLaplace::max_scale())?;
        NoiseError::check_range(
            "the bound of truncated Laplace noise",
            &bound.into(),
            &Rational::one(),
            &MAX_BOUND.into(),
        )?;
        let rate = scale.recip();
        let method = if 2 * bound + 1 < 1 << TABLE_BITS {
            let index_bits = (2 * bound + 2).next_power_of_two().trailing_zeros();
            let tent = Symmetric { rate, shape: Shape::Tent, signed: true, limit: Some(bound) };
            Method::Table(Table::new(tent, index_bits))
        } else if Rational::from(bound) >= scale {
            Method::FromLaplace(DiscreteLaplace::new(scale.clone())?)
        } else {
            Method::FromUniform(Acceptance::new(rate, 64 - bound.leading_zeros()))
        };
        Ok(Self { scale, bound, method })
    }

    /// The scale t.
    pub fn scale(&self) -> &Rational {
        &self.scale
    }

    /// The bound τ.
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// Draws one value.
    pub fn sample<W: Words>(&self, words: &mut W) -> i128 {
        match &self.method {
            Method::Table(table) => unfold(table.sample(words)).into(),
            Method::FromLaplace(laplace) => loop {
                let value = laplace.sample(words);
                if value.unsigned_abs() <= u128::from(self.bound) {
                    return value;
                }
            },
            Method::FromUniform(acceptance) => loop {
                let value = unfold(below(words, 2 * self.bound + 1));
                let word = words.word();
                if acceptance.keeps(value.unsigned_abs().into(), word >> 1, 63, words) {
                    return value.into();
                }
            },
        }
    }

    /// Draws as many values as `out` holds.
    pub fn fill<W: Words>(&self, words: &mut W, out: &mut [i128]) {
        out.iter_mut().for_each(|value| *value = self.sample(words));
    }
}
