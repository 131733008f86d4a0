//! [`Laplace`]: the mechanism for pure privacy.
//!
//! **Definition.** A vector of answers that moves by at most Δ₁ in ℓ1 is published with
//! discrete Laplace noise of scale t = Δ₁/ε lattice steps on every coordinate.
//!
//! **Guarantee.** ε, exactly: the probabilities of an output under neighbouring answers
//! a, b differ by a factor of at most Πᵢ e^(|aᵢ − bᵢ|/t) ≤ e^(Δ₁/t).
//!
//! **Error.** For one coordinate Pr[|Z| > s] = 2·r^(s+1)/(1 + r) with r = e^(−1/t) and whole s. The
//! textbook bound for k coordinates, (Δ₁/ε)·ln(k/β), is never smaller than ours on a
//! fine lattice.
//!
//! **References.** \[Dwork2006\], \[Ghosh2012\].

use demur_core::{Epsilon, Lattice, PrivacyLoss};
use demur_exact::Rational;

use super::{Mechanism, check_dimensions, check_sensitivity};
use crate::{DiscreteLaplace, Entropy, NoiseError};

/// Laplace noise on a lattice; see the module text.
///
/// ```
/// use demur_core::Epsilon;
/// use demur_noise::{Entropy, Laplace, Mechanism};
/// // An average of incomes in thousands that one person moves by at most 0.25.
/// let mechanism = Laplace::real("0.25".parse()?, Epsilon::new(1.0)?)?;
/// let release = mechanism.release_real(41.3, &mut Entropy::from_os()?)?;
/// println!("{}", release.value());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Laplace {
    noise: DiscreteLaplace,
    lattice: Lattice,
    dimensions: u64,
    /// Δ₁ in lattice steps.
    sensitivity: Rational,
}

impl Laplace {
    /// For one whole number that moves by at most `sensitivity`.
    pub fn integer(sensitivity: Rational, epsilon: Epsilon) -> Result<Self, NoiseError> {
        Self::integers(1, sensitivity, epsilon)
    }

    /// For `dimensions` whole numbers that together move by at most `l1`.
    pub fn integers(dimensions: u64, l1: Rational, epsilon: Epsilon) -> Result<Self, NoiseError> {
        check_sensitivity(&l1)?;
        Self::on(Lattice::INTEGER, dimensions, l1, epsilon)
    }

    /// For one real number that moves by at most `sensitivity`.
    pub fn real(sensitivity: Rational, epsilon: Epsilon) -> Result<Self, NoiseError> {
        Self::reals(1, sensitivity, epsilon)
    }

    /// For `dimensions` real numbers that together move by at most `l1`.
    ///
    /// Rounding to the lattice may add a step to each coordinate. The lattice has 2²⁰ steps
    /// per coordinate in the scale Δ₁/ε, so the noise grows by a share of about 2⁻²⁰/ε: a
    /// millionth at ε = 1, a thousandth at ε = 0.001.
    pub fn reals(dimensions: u64, l1: Rational, epsilon: Epsilon) -> Result<Self, NoiseError> {
        check_sensitivity(&l1)?;
        let lattice = Lattice::for_scale(&(&l1 / &positive(epsilon)?), dimensions)?;
        let steps = match dimensions {
            1 => lattice.sensitivity(&l1),
            _ => lattice.vector_l1(&l1, dimensions),
        };
        Self::on(lattice, dimensions, steps, epsilon)
    }

    /// For `dimensions` whole numbers that together move by at most `l1`, with the scale t itself.
    ///
    /// ```
    /// use demur_noise::{Laplace, Mechanism};
    /// let mechanism = Laplace::of_scale(1, "3".parse()?, "12".parse()?)?;
    /// assert_eq!(mechanism.loss().to_string(), "discrete_laplace(scale=12, sensitivity=3)");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_scale(dimensions: u64, l1: Rational, scale: Rational) -> Result<Self, NoiseError> {
        check_sensitivity(&l1)?;
        check_dimensions(dimensions)?;
        let noise = DiscreteLaplace::new(scale)?;
        Ok(Self { noise, lattice: Lattice::INTEGER, dimensions, sensitivity: l1 })
    }

    fn on(
        lattice: Lattice,
        dimensions: u64,
        sensitivity: Rational,
        epsilon: Epsilon,
    ) -> Result<Self, NoiseError> {
        check_dimensions(dimensions)?;
        let noise = DiscreteLaplace::new(&sensitivity / &positive(epsilon)?)?;
        Ok(Self { noise, lattice, dimensions, sensitivity })
    }

    /// The scale t in the answer's unit.
    pub fn scale(&self) -> Rational {
        self.noise.scale() * &self.lattice.step()
    }

    /// The noise itself.
    pub fn noise(&self) -> &DiscreteLaplace {
        &self.noise
    }
}

/// ε as a divisor.
pub(super) fn positive(epsilon: Epsilon) -> Result<Rational, NoiseError> {
    if epsilon == Epsilon::ZERO {
        let message = "ε = 0 would need infinite noise; ask for an ε above 0".to_owned();
        return Err(NoiseError::new("noise.epsilon", message));
    }
    Ok(epsilon.exact())
}

impl Mechanism for Laplace {
    fn loss(&self) -> PrivacyLoss {
        PrivacyLoss::DiscreteLaplace {
            scale: self.noise.scale().clone(),
            sensitivity: self.sensitivity.clone(),
        }
    }

    fn lattice(&self) -> Lattice {
        self.lattice
    }

    fn dimensions(&self) -> u64 {
        self.dimensions
    }

    fn fill(&self, entropy: &mut Entropy, out: &mut [i128]) {
        self.noise.fill(entropy, out);
    }

    fn tail(&self, steps: f64) -> f64 {
        self.noise.tail(steps)
    }

    fn standard_deviation(&self) -> f64 {
        self.noise.standard_deviation() * self.lattice.value(1)
    }
}
