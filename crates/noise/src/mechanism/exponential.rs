//! [`Exponential`]: private choice of a candidate with a high score.
//!
//! **Definition.** Candidate r is chosen with probability ∝ exp(ε·u(r)/2Δ), where Δ bounds how
//! far one person moves any score; or, in the other parametrisation, ∝ exp(u(r)/σ) with
//! ε = 2Δ/σ. Permute-and-flip is offered beside it: the same cost, and an expected
//! score that is never lower.
//!
//! **Guarantee.** ε. A score moves the weight of its candidate by a factor of at most e^(ε/2), and
//! the sum of all weights by at most the same.
//!
//! **On the lattice.** Scores are rounded to multiples of a step about 2⁻²⁰ of 2Δ/ε, and Δ up
//! to whole steps, so the guarantee is exact.
//!
//! **Utility.** With R candidates of which R_opt are best,
//! Pr[u ≤ best − (2Δ/ε)(ln(R/R_opt) + t)] ≤ e^(−t).
//!
//! **References.** \[McSherry2007\], \[McKenna2020\].

use demur_core::{Epsilon, Lattice, PrivacyLoss, Release};
use demur_exact::Rational;

use super::check_sensitivity;
use super::laplace::positive;
use crate::{Entropy, NoiseError, Selection};

/// How the candidate is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Probability ∝ exp(ε·u/2Δ).
    #[default]
    Exponential,
    /// Random order, one biased coin each, first success wins.
    PermuteAndFlip,
}

/// A private choice; see the module text.
///
/// ```
/// use demur_core::Epsilon;
/// use demur_noise::{Entropy, Exponential, Method};
/// let mechanism = Exponential::new("1".parse()?, Epsilon::new(2.0)?)?.by(Method::PermuteAndFlip);
/// let votes = [120.0, 80.5, 119.0];
/// let winner = mechanism.choose(&votes, &mut Entropy::from_os()?)?;
/// assert!(*winner.value() < 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Exponential {
    epsilon: Rational,
    sensitivity: Rational,
    lattice: Lattice,
    method: Method,
}

impl Exponential {
    /// For scores that move by at most `sensitivity`, at cost ε.
    pub fn new(sensitivity: Rational, epsilon: Epsilon) -> Result<Self, NoiseError> {
        Self::at_cost(sensitivity, positive(epsilon)?)
    }

    /// Weights ∝ exp(u/σ): the cost is ε = 2Δ/σ.
    pub fn with_sigma(sensitivity: Rational, sigma: Rational) -> Result<Self, NoiseError> {
        if !sigma.is_positive() {
            return Err(NoiseError::new("noise.sigma", format!("σ must be above 0, but it is {sigma}")));
        }
        let epsilon = &(&Rational::from(2u32) * &sensitivity) / &sigma;
        Self::at_cost(sensitivity, epsilon)
    }

    fn at_cost(sensitivity: Rational, epsilon: Rational) -> Result<Self, NoiseError> {
        check_sensitivity(&sensitivity)?;
        let scale = &(&Rational::from(2u32) * &sensitivity) / &epsilon;
        let lattice = Lattice::for_scale(&scale, 1)?;
        Ok(Self { epsilon, sensitivity, lattice, method: Method::default() })
    }

    /// The same choice drawn by another method.
    #[must_use]
    pub fn by(self, method: Method) -> Self {
        Self { method, ..self }
    }

    /// What one choice costs.
    pub fn loss(&self) -> PrivacyLoss {
        let epsilon = self.epsilon.clone();
        match self.method {
            Method::Exponential => PrivacyLoss::Exponential { epsilon },
            Method::PermuteAndFlip => PrivacyLoss::PermuteAndFlip { epsilon },
        }
    }

    /// Chooses one of the candidates with these scores.
    pub fn choose(&self, scores: &[f64], entropy: &mut Entropy) -> Result<Release<usize>, NoiseError> {
        Ok(self.choose_many(scores, 1, entropy)?.map(|chosen| chosen[0]))
    }

    /// Chooses `count` times, independently; the loss is that of all choices.
    pub fn choose_many(
        &self,
        scores: &[f64],
        count: usize,
        entropy: &mut Entropy,
    ) -> Result<Release<Vec<usize>>, NoiseError> {
        let selection = self.prepare(scores)?;
        let chosen = match self.method {
            Method::Exponential => selection.exponential_many(entropy, count),
            Method::PermuteAndFlip => (0..count).map(|_| selection.permute_and_flip(entropy)).collect(),
        };
        Ok(Release::new(chosen, self.loss().repeat(count as u64)))
    }

    /// The candidates on their lattice.
    fn prepare(&self, scores: &[f64]) -> Result<Selection, NoiseError> {
        let steps =
            scores.iter().map(|&score| self.lattice.quantise(score)).collect::<Result<Vec<_>, _>>()?;
        let sensitivity = self.lattice.sensitivity(&self.sensitivity);
        let rate = &self.epsilon / &(&Rational::from(2u32) * &sensitivity);
        Selection::new(&steps, rate)
    }

    /// How far below the best score the chosen one is, but for a chance of `beta`.
    ///
    /// ```
    /// # use demur_core::Epsilon;
    /// # use demur_noise::Exponential;
    /// let mechanism = Exponential::new("1".parse()?, Epsilon::new(1.0)?)?;
    /// // 2·(ln(100/1) + ln 20)
    /// assert!((mechanism.error(0.05, 100, 1) - 15.2018).abs() < 1e-4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn error(&self, beta: f64, candidates: u64, best: u64) -> f64 {
        let scale = 2.0 * self.sensitivity.to_f64() / self.epsilon.to_f64();
        scale * ((candidates as f64 / best.max(1) as f64).ln() - beta.ln())
    }
}
