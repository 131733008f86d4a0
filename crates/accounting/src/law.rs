//! [`Law`]: the privacy loss of one use of a mechanism, as a random variable.
//!
//! **Definition.** A mechanism's worst pair of neighbours gives two laws P and Q of its output. The
//! privacy loss is L = ln(dP/dQ), and everything an accountant asks is about L under P:
//!
//! ```text
//! δ(ε) = E_P[(1 − e^(ε − L))⁺]
//! ```
//!
//! A law here is a Gaussian, or [`Pieces`]: atoms, stretches where √(dP·dQ) is constant in ℓ
//! (Laplace noise and the exponential mechanism have them), and the probability that L is infinite. On a
//! Poisson [`Sampling`] the pair becomes ((1 − q)Q + qP, Q) when the person is removed and the
//! reverse when the person is added.
//!
//! In a sample without replacement, with neighbours by replacement, the profile for ε ≥ 0 is that of the pair
//! with the person removed, and both directions are the same: the law of positive losses is that pair's, and
//! a loss of −ℓ is e^(−ℓ) times as likely as ℓ, for the rest of the probability is at 0.
//!
//! **Symmetry.** Without sampling every law here stays the same when P and Q are exchanged, so
//! the probability under Q that P is zero is also `infinite`.
//!
//! **References.** \[Zhu2022\] for worst pairs, their composition and sampling.

mod mechanism;
mod of_loss;
mod profile;
mod whole_order;

use demur_exact::Rational;

pub(crate) use of_loss::Terms;
pub(crate) use profile::{gaussian as gaussian_delta, of_flat, of_sampled_flat, profile, profile_near, root};

/// One use of a mechanism, in one direction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Law {
    pub(crate) base: Base,
    pub(crate) sampling: Option<Sampling>,
}

/// The law without sampling.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Base {
    /// Gaussian noise: L is normal with mean μ²/2 and variance μ².
    Gaussian {
        mu_squared: Rational,
    },
    Pieces(Pieces),
}

/// Atoms, flat stretches, and infinite loss.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct Pieces {
    pub(crate) atoms: Vec<Atom>,
    pub(crate) flats: Vec<Flat>,
    /// P[L = ∞] = Q[L = −∞].
    pub(crate) infinite: f64,
    /// A fraction it does not exceed: itself where it is a fraction, else one that agrees in 30 digits or more.
    pub(crate) infinite_at_most: Option<Rational>,
}

/// A loss that has a probability of its own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Atom {
    pub(crate) loss: Rational,
    /// What the loss is above its double.
    pub(crate) rest: f64,
    /// P[L = loss].
    pub(crate) probability: f64,
    /// Q[L = loss], e^(−loss) times that, where that can be told in doubles.
    pub(crate) other: f64,
}

/// dP = density·e^(ℓ/2)·dℓ for ℓ from `low` to `high`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Flat {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) density: f64,
}

/// Each person is in the sample with probability `rate`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sampling {
    pub(crate) rate: f64,
    pub(crate) direction: Direction,
}

/// Whose output P is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// P has the person, Q does not.
    Remove,
    /// Q has the person, P does not.
    Add,
    /// One person's record is replaced by another's, in a sample of fixed size.
    Replace,
}

impl Atom {
    pub(crate) fn new(loss: Rational, probability: f64, other: f64) -> Self {
        let double = Rational::try_from(loss.to_f64()).unwrap_or_else(|_| loss.clone());
        Self { rest: (&loss - &double).to_f64(), loss, probability, other }
    }
}

impl Law {
    /// P[L = ∞].
    pub(crate) fn infinite(&self) -> f64 {
        let infinite = match &self.base {
            Base::Gaussian { .. } => 0.0,
            Base::Pieces(pieces) => pieces.infinite,
        };
        match &self.sampling {
            None => infinite,
            Some(Sampling { rate, direction: Direction::Remove | Direction::Replace }) => rate * infinite,
            Some(Sampling { direction: Direction::Add, .. }) => 0.0,
        }
    }

    /// Whether the law is known by its profile for ε ≥ 0 alone.
    pub(crate) fn is_mirrored(&self) -> bool {
        self.sampling.as_ref().is_some_and(|sampling| sampling.direction == Direction::Replace)
    }

    /// μ² when the law is Gaussian and not sampled.
    pub(crate) fn gaussian(&self) -> Option<&Rational> {
        match (&self.base, &self.sampling) {
            (Base::Gaussian { mu_squared }, None) => Some(mu_squared),
            _ => None,
        }
    }

    /// The pieces when the law consists of them and is not sampled.
    pub(crate) fn pieces(&self) -> Option<&Pieces> {
        match (&self.base, &self.sampling) {
            (Base::Pieces(pieces), None) => Some(pieces),
            _ => None,
        }
    }

    /// The same mechanism with the other neighbour first.
    pub(crate) fn reversed(&self) -> Self {
        let sampling = self.sampling.as_ref().map(|sampling| Sampling {
            rate: sampling.rate,
            direction: match sampling.direction {
                Direction::Remove => Direction::Add,
                Direction::Add => Direction::Remove,
                Direction::Replace => Direction::Replace,
            },
        });
        Self { base: self.base.clone(), sampling }
    }
}

impl Sampling {
    /// The loss on a sample, where the loss without sampling is ℓ.
    pub(crate) fn loss(&self, loss: f64) -> f64 {
        let sampled = match loss < 700.0 {
            true => libm::log1p(self.rate * libm::expm1(loss)),
            false => loss + self.rate.ln(),
        };
        match self.direction {
            Direction::Remove | Direction::Replace => sampled,
            Direction::Add => -sampled,
        }
    }

    /// What P becomes at an output where P and Q were these.
    pub(crate) fn probability(&self, probability: f64, other: f64) -> f64 {
        match self.direction {
            Direction::Remove | Direction::Replace => (1.0 - self.rate) * other + self.rate * probability,
            Direction::Add => other,
        }
    }

    /// The loss where only Q is positive, and P there, when Q there was `vanishing`.
    pub(crate) fn vanishing(&self, vanishing: f64) -> (f64, f64) {
        let loss = libm::log1p(-self.rate);
        match self.direction {
            Direction::Remove | Direction::Replace => (loss, (1.0 - self.rate) * vanishing),
            Direction::Add => (-loss, vanishing),
        }
    }
}
