//! [`UnaryEncoding`]: one of many answers as a perturbed row of bits.
//!
//! **Definition.** Answer v of k is the row of k bits with a single 1 at v. The 1 is
//! kept with probability ½, and each 0 becomes 1 with q = 1/(e^ε + 1), all
//! independently ("optimised" unary encoding: of all bit-wise schemes at cost ε it
//! has the least error for rare answers).
//!
//! **Guarantee.** ε: two rows differ in two bits, whose odds multiply to
//! (½/q)·((1 − q)/½) = e^ε.
//!
//! **Estimate.** If n people report and bit v is 1 in a fraction f, the fraction whose
//! answer is v is estimated by (f − q)/(½ − q), unbiased.
//!
//! **References.** \[Wang2017\].

#![deny(clippy::float_arithmetic)]

use demur_core::{Epsilon, PrivacyLoss, Release};
use demur_exact::Rational;

use super::laplace::positive;
use crate::mechanism::estimate::{Debias, Estimate};
use crate::sampler::Bernoulli;
use crate::sampler::Probability;
use crate::sampler::Words;
use crate::{Entropy, NoiseError};

/// Reports one of k answers as bits; see the module text.
///
/// ```
/// use demur_core::Epsilon;
/// use demur_noise::{Entropy, UnaryEncoding};
/// let encoding = UnaryEncoding::new(100, Epsilon::new(2.0)?)?;
/// let report = encoding.encode(7, &mut Entropy::from_os()?)?;
/// assert_eq!(report.value().len(), 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct UnaryEncoding {
    categories: u64,
    noise: Bernoulli,
    epsilon: Rational,
}

impl UnaryEncoding {
    /// For `categories` ≥ 2 possible answers, at cost ε.
    pub fn new(categories: u64, epsilon: Epsilon) -> Result<Self, NoiseError> {
        if !(2..1 << 32).contains(&categories) {
            let message = format!(
                "unary encoding needs between 2 and 2^32 possible answers, but {categories} was given"
            );
            return Err(NoiseError::new("noise.categories", message));
        }
        let exact = positive(epsilon)?;
        let noise = Bernoulli::new(Probability::logistic(Rational::one(), exact.clone())?);
        Ok(Self { categories, noise, epsilon: exact })
    }

    /// What one report costs.
    pub fn loss(&self) -> PrivacyLoss {
        PrivacyLoss::UnaryEncoding { epsilon: self.epsilon.clone() }
    }

    /// Publishes the perturbed row of someone whose truth is one of 0, 1, …, k − 1.
    pub fn encode(&self, truth: u64, entropy: &mut Entropy) -> Result<Release<Vec<bool>>, NoiseError> {
        Ok(Release::new(self.sample(truth, entropy)?, self.loss()))
    }

    /// Draws a row of bits.
    pub fn sample<W: Words>(&self, truth: u64, words: &mut W) -> Result<Vec<bool>, NoiseError> {
        if truth >= self.categories {
            let message =
                format!("the true answer must be one of 0 to {}, but it is not", self.categories - 1);
            return Err(NoiseError::new("noise.categories", message));
        }
        let fair = words.word() & 1 == 1;
        let mut report = Vec::with_capacity(self.categories as usize);
        while report.len() < self.categories as usize {
            let tosses = self.noise.sample_64(words);
            let room = (self.categories as usize - report.len()).min(64);
            report.extend((0..room).map(|i| tosses >> i & 1 == 1));
        }
        report[truth as usize] = fair;
        Ok(report)
    }

    /// The fraction of people whose answer has its bit set in `seen` of `total` reports.
    ///
    /// The interval misses the true fraction with probability at most `beta`.
    pub fn estimate(&self, seen: u64, total: u64, beta: f64) -> Result<Estimate, NoiseError> {
        let other = self.noise.probability().to_f64();
        Debias::half_against(other).estimate(seen, total, beta)
    }
}
