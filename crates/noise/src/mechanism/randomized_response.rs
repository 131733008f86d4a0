//! [`RandomizedResponse`]: each person perturbs their own answer.
//!
//! **Definition.** With k possible answers, the truth is told with probability
//! p = e^ε / (e^ε + k − 1), and each other answer with q = 1 / (e^ε + k − 1). For
//! k = 2 and ε = ln 3 this is the game with two coins: tell the truth on tails,
//! else answer by a second coin.
//!
//! **Guarantee.** ε: any answer's probability is p or q, and p/q = e^ε.
//!
//! **Estimate.** If a fraction f of n answers is v, the fraction of people whose truth
//! is v is estimated by (f − q)/(p − q), unbiased since E f = q + (p − q)·truth. For
//! two coins that is 2(f − ¼).
//!
//! **References.** \[Warner1965\], \[Kairouz2014\].

#![deny(clippy::float_arithmetic)]

use demur_core::{Epsilon, PrivacyLoss, Release};
use demur_exact::Rational;

use super::laplace::positive;
use crate::mechanism::estimate::{Debias, Estimate};
use crate::sampler::Bernoulli;
use crate::sampler::Probability;
use crate::sampler::words::{Words, below};
use crate::{Entropy, NoiseError};

/// Perturbs one of k answers; see the module text.
///
/// ```
/// use demur_core::Epsilon;
/// use demur_noise::{Entropy, RandomizedResponse};
/// let response = RandomizedResponse::new(3, Epsilon::new(1.0)?)?;
/// let mut entropy = Entropy::from_os()?;
/// let answer = response.respond(2, &mut entropy)?;
/// assert!(*answer.value() < 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct RandomizedResponse {
    categories: u64,
    truth: Bernoulli,
    epsilon: Rational,
}

impl RandomizedResponse {
    /// For `categories` ≥ 2 possible answers, at cost ε.
    pub fn new(categories: u64, epsilon: Epsilon) -> Result<Self, NoiseError> {
        if categories < 2 {
            let message =
                format!("randomized response needs at least 2 possible answers, but {categories} was given");
            return Err(NoiseError::new("noise.categories", message));
        }
        let exact = positive(epsilon)?;
        let truth = Probability::logistic(Rational::from(categories - 1), -&exact)?;
        Ok(Self { categories, truth: Bernoulli::new(truth), epsilon: exact })
    }

    /// The classic game: truth on tails, a second coin on heads. It costs ln 3.
    pub fn two_coins() -> Self {
        // ln 3 = 1.09861228866810969139…, rounded up.
        let epsilon = Rational::new(1_098_612_288_668_109_692, 1_000_000_000_000_000_000);
        let truth = Probability::three_quarters();
        Self { categories: 2, truth: Bernoulli::new(truth), epsilon }
    }

    /// The number of possible answers.
    pub fn categories(&self) -> u64 {
        self.categories
    }

    /// The probability of telling the truth.
    pub fn truth_probability(&self) -> &Probability {
        self.truth.probability()
    }

    /// What one answer costs.
    pub fn loss(&self) -> PrivacyLoss {
        PrivacyLoss::RandomizedResponse { epsilon: self.epsilon.clone(), categories: self.categories }
    }

    /// Publishes the perturbed answer of someone whose truth is one of 0, 1, …, k − 1.
    pub fn respond(&self, truth: u64, entropy: &mut Entropy) -> Result<Release<u64>, NoiseError> {
        Ok(Release::new(self.sample(truth, entropy)?, self.loss()))
    }

    /// Draws an answer: the coin and the other answer are both drawn whatever happens.
    pub fn sample<W: Words>(&self, truth: u64, words: &mut W) -> Result<u64, NoiseError> {
        if truth >= self.categories {
            let message =
                format!("the true answer must be one of 0 to {}, but it is not", self.categories - 1);
            return Err(NoiseError::new("noise.categories", message));
        }
        let honest = self.truth.sample(words);
        let other = below(words, self.categories - 1);
        // The others are 0 … k − 2 with the truth skipped.
        let other = other + u64::from(other >= truth);
        Ok(if honest { truth } else { other })
    }

    /// The fraction of people whose truth is an answer that `seen` of `total` gave.
    ///
    /// The interval misses the true fraction with probability at most `beta`.
    pub fn estimate(&self, seen: u64, total: u64, beta: f64) -> Result<Estimate, NoiseError> {
        let keep = self.truth_probability().to_f64();
        Debias::between_others(keep, self.categories).estimate(seen, total, beta)
    }
}
