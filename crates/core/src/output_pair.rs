//! [`OutputPair`]: a mechanism small enough to write down, on two neighbouring datasets.
//!
//! **Definition.** P and P′ are the laws of the output on datasets x and x′. The *privacy loss*
//! of output y is L(y) = ln(P(y)/P′(y)); drawn y ~ P it is a random variable.
//!
//! **Facts.** For every ε,
//!
//! ```text
//! δ(ε) = max over events E of P(E) − e^ε·P′(E)      the definition of (ε, δ)-privacy
//!      = Σ max(0, P(y) − e^ε·P′(y))
//!      = P[L ≥ ε] − e^ε·P′[L ≥ ε]                    exact, and computable
//!      ≤ P[L ≥ ε]                                    sufficient, not necessary
//! ```
//!
//! With δ = 0 the condition is that no output has a loss above ε; for δ > 0 no condition on
//! single outputs is equivalent.
//!
//! **Exactness.** Probabilities are fractions, and callers give e^ε as one, so nothing is rounded.

use demur_exact::Rational;

use crate::Error;
use crate::error::require;

/// The law of a mechanism's output on two neighbouring datasets.
///
/// ```
/// use demur_core::OutputPair;
/// use demur_exact::Rational;
///
/// // Two coins: the truth with probability 3/4.
/// let (three, one) = (Rational::new(3, 4), Rational::new(1, 4));
/// let pair = OutputPair::new(vec![three.clone(), one.clone()], vec![one, three])?;
/// assert!(pair.is_pure(&Rational::from(3u32))); // ε = ln 3
/// assert_eq!(pair.delta(&Rational::from(2u32)), Rational::new(1, 4)); // at ε = ln 2
/// # Ok::<(), demur_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputPair {
    here: Vec<Rational>,
    there: Vec<Rational>,
}

impl OutputPair {
    /// Two laws over the same outputs: probabilities that are not negative and sum to 1.
    pub fn new(here: Vec<Rational>, there: Vec<Rational>) -> Result<Self, Error> {
        require(here.len() == there.len(), "core.output-pair.outputs", || {
            format!(
                "both laws must speak of the same outputs, but one has {} and the other {}",
                here.len(),
                there.len()
            )
        })?;
        for law in [&here, &there] {
            let legal = !law.iter().any(Rational::is_negative) && total(law) == Rational::one();
            require(legal, "core.output-pair.law", || {
                "the probabilities of a law must not be negative and must sum to 1, but these do not"
                    .to_owned()
            })?;
        }
        Ok(Self { here, there })
    }

    /// How many outputs there are.
    pub fn outputs(&self) -> usize {
        self.here.len()
    }

    /// The same with x and x′ exchanged.
    #[must_use]
    pub fn swapped(&self) -> Self {
        Self { here: self.there.clone(), there: self.here.clone() }
    }

    /// (P(E), P′(E)) for the event of the outputs for which `holds`.
    pub fn probabilities(&self, holds: impl Fn(usize) -> bool) -> (Rational, Rational) {
        let sum = |law: &[Rational]| {
            let held = law.iter().enumerate().filter(|(output, _)| holds(*output));
            held.fold(Rational::zero(), |sum, (_, p)| &sum + p)
        };
        (sum(&self.here), sum(&self.there))
    }

    /// δ(ε) = Σ max(0, P(y) − e^ε·P′(y)), with e^ε = `exp_epsilon`.
    pub fn delta(&self, exp_epsilon: &Rational) -> Rational {
        let excess = self.here.iter().zip(&self.there).map(|(p, q)| p - &(exp_epsilon * q));
        excess.filter(Rational::is_positive).fold(Rational::zero(), |sum, term| &sum + &term)
    }

    /// P[L ≥ ε], which bounds δ(ε) from above.
    pub fn delta_tail_bound(&self, exp_epsilon: &Rational) -> Rational {
        self.probabilities(|output| self.loses(output, exp_epsilon)).0
    }

    /// P[L ≥ ε] − e^ε·P′[L ≥ ε], which is δ(ε).
    pub fn delta_by_tails(&self, exp_epsilon: &Rational) -> Rational {
        let (here, there) = self.probabilities(|output| self.loses(output, exp_epsilon));
        &here - &(exp_epsilon * &there)
    }

    /// Whether the privacy loss of an output is at least ε.
    pub fn loses(&self, output: usize, exp_epsilon: &Rational) -> bool {
        let law = |law: &[Rational]| law.get(output).cloned().unwrap_or_else(Rational::zero);
        law(&self.here) >= exp_epsilon * &law(&self.there)
    }

    /// Whether no output has a loss above ε, in either direction: pure privacy.
    pub fn is_pure(&self, exp_epsilon: &Rational) -> bool {
        let within = |a: &Rational, b: &Rational| *a <= exp_epsilon * b;
        self.here.iter().zip(&self.there).all(|(p, q)| within(p, q) && within(q, p))
    }

    /// Whether (ε, δ) holds in both directions.
    pub fn is_private(&self, exp_epsilon: &Rational, delta: &Rational) -> bool {
        self.delta(exp_epsilon) <= *delta && self.swapped().delta(exp_epsilon) <= *delta
    }

    /// ln(P(y)/P′(y)) of an output, as a double; ±∞ where one side is impossible.
    pub fn loss(&self, output: usize) -> f64 {
        let law = |law: &[Rational]| law.get(output).map_or(0.0, Rational::to_f64);
        (law(&self.here) / law(&self.there)).ln()
    }

    /// The mechanism followed by output ↦ map\[output\].
    #[must_use]
    pub fn map(&self, map: &[usize]) -> Self {
        let outputs = map.iter().max().map_or(0, |most| most + 1);
        let event = |z: usize| self.probabilities(|output| map.get(output) == Some(&z));
        let (here, there) = (0..outputs).map(event).unzip();
        Self { here, there }
    }
}

fn total(law: &[Rational]) -> Rational {
    law.iter().fold(Rational::zero(), |sum, p| &sum + p)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half() -> Rational {
        Rational::new(1, 2)
    }

    #[test]
    fn what_is_no_law_is_refused() {
        let fair = vec![half(), half()];
        let cases = [
            vec![Rational::one()],
            vec![half(), Rational::one()],
            vec![Rational::new(-1, 2), Rational::new(3, 2)],
        ];
        for law in cases {
            assert!(OutputPair::new(fair.clone(), law).is_err());
        }
    }

    #[test]
    fn losses_are_logarithms_of_ratios() {
        let pair = OutputPair::new(
            vec![half(), half(), Rational::zero()],
            vec![Rational::new(1, 4), Rational::zero(), Rational::new(3, 4)],
        )
        .unwrap();
        assert!((pair.loss(0) - 2f64.ln()).abs() < 1e-15);
        assert_eq!((pair.loss(1), pair.loss(2)), (f64::INFINITY, f64::NEG_INFINITY));
    }
}
