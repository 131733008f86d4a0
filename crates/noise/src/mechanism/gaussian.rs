//! [`Gaussian`]: the mechanism for many answers at once.
//!
//! **Definition.** A vector of answers that moves by at most Δ₂ in ℓ2 is published with
//! discrete Gaussian noise on every coordinate of its lattice.
//!
//! **Calibrations.** σ/Δ₂ for a target (ε, δ):
//!
//! | name | σ²/Δ₂² | holds for |
//! |---|---|---|
//! | analytic | the least for which Φ(1/2σ − εσ) − e^ε·Φ(−1/2σ − εσ) ≤ δ | ε ≥ 0 |
//! | classic | 2·ln(1.25/δ)/ε² | 0 < ε < 1 |
//! | tail | 2·ln(2/δ)/ε² | 0 < ε ≤ 1, δ ≤ ½ |
//! | loose | (32/9)·ln(2/δ)/ε² | 0 < ε ≤ 1 |
//!
//! **Guarantee.** These speak of continuous noise. What is published is discrete, so the
//! constructor certifies the discrete law's own δ(ε) (`gaussian_profile.rs`) and
//! raises the variance where the continuous figure does not suffice.
//!
//! **References.** \[Dwork2014\] Theorem A.1, \[Balle2018\] Theorem 8, \[Canonne2020\].

use std::str::FromStr;

use demur_core::{Delta, Epsilon, Lattice, PrivacyLoss};
use demur_exact::{Rational, gaussian_sigma};

use super::gaussian_profile::{discrete_gaussian_delta, smooth_certifies, smoothing};
use super::{Mechanism, check_dimensions, check_sensitivity};
use crate::{DiscreteGaussian, Entropy, NoiseError};

/// Up to this variance, and up to this ε, the discrete δ(ε) is summed term by term. Beyond, the
/// rounding argument costs a thousandth of the noise or ε has stopped to mean much.
const SUMMED_VARIANCE: u64 = 1 << 10;
const SUMMED_EPSILON: u64 = 64;
/// Formulas evaluated in doubles are raised by this factor to cover their rounding.
const ROUNDING: f64 = 1.0 + 1e-14;

/// Which formula turns (ε, δ) into σ; see the module text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Calibration {
    /// The least σ there is.
    #[default]
    Analytic,
    /// √(2·ln(1.25/δ))/ε.
    Classic,
    /// √(2·ln(2/δ))/ε.
    Tail,
    /// √((32/9)·ln(2/δ))/ε.
    Loose,
}

impl Calibration {
    /// σ for sensitivity 1, or why this formula does not apply.
    ///
    /// ```
    /// use demur_core::{Delta, Epsilon};
    /// use demur_noise::Calibration;
    /// let (epsilon, delta) = (Epsilon::new(0.5)?, Delta::new(1e-5)?);
    /// let analytic = Calibration::Analytic.sigma(epsilon, delta)?;
    /// let classic = Calibration::Classic.sigma(epsilon, delta)?;
    /// assert!(analytic < 0.8 * classic);
    /// assert!(Calibration::Classic.sigma(Epsilon::new(2.0)?, delta).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sigma(self, epsilon: Epsilon, delta: Delta) -> Result<f64, NoiseError> {
        self.check(epsilon.value(), delta.value())?;
        let (e, d) = (epsilon.value(), delta.value());
        Ok(match self {
            Self::Analytic => gaussian_sigma(&epsilon.exact(), &delta.exact()),
            Self::Classic => (2.0 * (1.25 / d).ln()).sqrt() / e * ROUNDING,
            Self::Tail => (2.0 * (2.0 / d).ln()).sqrt() / e * ROUNDING,
            Self::Loose => (32.0 / 9.0 * (2.0 / d).ln()).sqrt() / e * ROUNDING,
        })
    }

    fn check(self, epsilon: f64, delta: f64) -> Result<(), NoiseError> {
        let holds = match self {
            Self::Analytic => (0.0..=0.999).contains(&delta) && delta > 0.0,
            Self::Classic => epsilon > 0.0 && epsilon < 1.0 && delta > 0.0,
            Self::Tail => epsilon > 0.0 && epsilon <= 1.0 && delta > 0.0 && delta <= 0.5,
            Self::Loose => epsilon > 0.0 && epsilon <= 1.0 && delta > 0.0,
        };
        if holds {
            return Ok(());
        }
        let message = format!(
            "the {} calibration holds only for {}, but ε = {epsilon} and δ = {delta} were asked; \
             the analytic one holds for every ε",
            self.name(),
            self.range()
        );
        Err(NoiseError::new("noise.calibration", message))
    }

    /// The name by which it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Self::Analytic => "analytic",
            Self::Classic => "classic",
            Self::Tail => "tail",
            Self::Loose => "loose",
        }
    }

    fn range(self) -> &'static str {
        match self {
            Self::Analytic => "0 < δ ≤ 0.999",
            Self::Classic => "0 < ε < 1 and δ > 0",
            Self::Tail => "0 < ε ≤ 1 and 0 < δ ≤ 1/2",
            Self::Loose => "0 < ε ≤ 1 and δ > 0",
        }
    }
}

impl FromStr for Calibration {
    type Err = NoiseError;

    fn from_str(text: &str) -> Result<Self, NoiseError> {
        let all = [Self::Analytic, Self::Classic, Self::Tail, Self::Loose];
        all.into_iter().find(|calibration| calibration.name() == text).ok_or_else(|| {
            let message = format!("`{text}` is no calibration; there are analytic, classic, tail and loose");
            NoiseError::new("noise.calibration", message)
        })
    }
}

/// Gaussian noise on a lattice; see the module text.
///
/// ```
/// use demur_core::{Delta, Epsilon, Sensitivity};
/// use demur_noise::{Calibration, Entropy, Gaussian, Mechanism};
/// // 100 counts, of which one person changes at most 3, each by at most 1.
/// let sensitivity = Sensitivity::from_l0_linf(3, "1".parse()?)?;
/// let l2_squared = sensitivity.l2_squared().clone(); // 3
/// let mechanism = Gaussian::integers(
///     100, l2_squared, Epsilon::new(1.0)?, Delta::new(1e-6)?, Calibration::Analytic,
/// )?;
/// let release = mechanism.release_all(&[10; 100], &mut Entropy::from_os()?)?;
/// assert_eq!(release.value().len(), 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Gaussian {
    noise: DiscreteGaussian,
    lattice: Lattice,
    dimensions: u64,
    /// Δ₂² in lattice steps.
    l2_squared: Rational,
}

impl Gaussian {
    /// For one whole number that moves by at most `sensitivity`.
    pub fn integer(
        sensitivity: Rational,
        epsilon: Epsilon,
        delta: Delta,
        calibration: Calibration,
    ) -> Result<Self, NoiseError> {
        check_sensitivity(&sensitivity)?;
        Self::integers(1, sensitivity.square(), epsilon, delta, calibration)
    }

    /// For `dimensions` whole numbers that together move by at most √`l2_squared` in ℓ2.
    pub fn integers(
        dimensions: u64,
        l2_squared: Rational,
        epsilon: Epsilon,
        delta: Delta,
        calibration: Calibration,
    ) -> Result<Self, NoiseError> {
        let sigma = calibration.sigma(epsilon, delta)?;
        check_sensitivity(&l2_squared)?;
        // Whole numbers that move at all move by 1 or more.
        let l2_squared = l2_squared.max(Rational::one());
        let target = Target { epsilon: epsilon.exact(), delta: delta.exact() };
        let variance = target.variance(sigma, &l2_squared, dimensions, calibration)?;
        Self::with_variance(Lattice::INTEGER, dimensions, l2_squared, variance)
    }

    /// For one real number that moves by at most `sensitivity`.
    pub fn real(
        sensitivity: Rational,
        epsilon: Epsilon,
        delta: Delta,
        calibration: Calibration,
    ) -> Result<Self, NoiseError> {
        check_sensitivity(&sensitivity)?;
        Self::reals(1, sensitivity.square(), epsilon, delta, calibration)
    }

    /// For `dimensions` real numbers that together move by at most √`l2_squared` in ℓ2.
    pub fn reals(
        dimensions: u64,
        l2_squared: Rational,
        epsilon: Epsilon,
        delta: Delta,
        calibration: Calibration,
    ) -> Result<Self, NoiseError> {
        let sigma = calibration.sigma(epsilon, delta)?;
        check_sensitivity(&l2_squared)?;
        let scale = Rational::try_from(sigma * l2_squared.to_f64().sqrt())?;
        let lattice = Lattice::for_scale(&scale, dimensions)?;
        let steps_squared = lattice.vector_l2_squared(&l2_squared, dimensions);
        let target = Target { epsilon: epsilon.exact(), delta: delta.exact() };
        let variance = target.variance(sigma, &steps_squared, dimensions, calibration)?;
        Self::with_variance(lattice, dimensions, steps_squared, variance)
    }

    /// For `dimensions` whole numbers that together move by at most √`l2_squared` in ℓ2, with the variance itself.
    ///
    /// What it hides is for an accountant to say. Numbers that never move need not be counted in `dimensions`.
    ///
    /// ```
    /// use demur_noise::{Gaussian, Mechanism};
    /// let mechanism = Gaussian::of_variance(3, "3".parse()?, "60".parse()?)?;
    /// let loss = "discrete_gaussian(variance=60, sensitivity_squared=3, dimensions=3)";
    /// assert_eq!(mechanism.loss().to_string(), loss);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_variance(
        dimensions: u64,
        l2_squared: Rational,
        variance: Rational,
    ) -> Result<Self, NoiseError> {
        check_sensitivity(&l2_squared)?;
        Self::with_variance(Lattice::INTEGER, dimensions, l2_squared, variance)
    }

    /// σ = Δ/2δ, which gives (0, δ): differences are hidden outright but for δ.
    ///
    /// The analytic calibration at ε = 0 needs a little less noise.
    pub fn for_delta_alone(sensitivity: Rational, delta: Delta) -> Result<f64, NoiseError> {
        check_sensitivity(&sensitivity)?;
        if delta == Delta::ZERO {
            return Err(NoiseError::new("noise.calibration", "σ = Δ/2δ needs a δ above 0".to_owned()));
        }
        Ok((&sensitivity / &(&Rational::from(2u32) * &delta.exact())).to_f64_up())
    }

    /// Δ/√(2ε), below which no Gaussian is (ε, δ)-private, where that is known.
    ///
    /// At σ = Δ/√(2ε) the profile is δ(ε) = ½ − e^ε·Φ(−√(2ε)), and it falls as σ grows: so the
    /// bound holds when 0 < δ is at most that, and `None` is returned otherwise.
    pub fn lower_bound(sensitivity: f64, epsilon: Epsilon, delta: Delta) -> Option<f64> {
        let (e, d) = (epsilon.value(), delta.value());
        // √(2ε)/√2 = √ε
        let limit = 0.5 - 0.5 * e.exp() * statrs::function::erf::erfc(e.sqrt());
        (d > 0.0 && d < limit).then(|| sensitivity / (2.0 * e).sqrt())
    }

    fn with_variance(
        lattice: Lattice,
        dimensions: u64,
        l2_squared: Rational,
        variance: Rational,
    ) -> Result<Self, NoiseError> {
        check_dimensions(dimensions)?;
        Ok(Self { noise: DiscreteGaussian::new(variance)?, lattice, dimensions, l2_squared })
    }

    /// The parameter σ in the answer's unit, as a double.
    pub fn sigma(&self) -> f64 {
        self.noise.variance().to_f64().sqrt() * self.lattice.value(1)
    }

    /// The noise itself.
    pub fn noise(&self) -> &DiscreteGaussian {
        &self.noise
    }
}

/// What the noise must achieve.
struct Target {
    epsilon: Rational,
    delta: Rational,
}

impl Target {
    /// A variance near σ²Δ₂² whose discrete law is certified.
    fn variance(
        &self,
        sigma: f64,
        l2_squared: &Rational,
        dimensions: u64,
        calibration: Calibration,
    ) -> Result<Rational, NoiseError> {
        let sigma = Rational::try_from(sigma)?;
        let continuous = &sigma.square() * l2_squared;
        DiscreteGaussian::check_variance(&continuous)?;
        let few_terms = continuous <= Rational::from(SUMMED_VARIANCE);
        if dimensions == 1 && few_terms && self.epsilon <= Rational::from(SUMMED_EPSILON) {
            return Ok(self.summed_variance(&continuous, l2_squared, calibration));
        }
        self.smoothed_variance(&continuous, l2_squared, dimensions)
    }

    /// For any number of coordinates: σ²Δ₂² + s², raised until it is certified.
    fn smoothed_variance(
        &self,
        continuous: &Rational,
        l2_squared: &Rational,
        dimensions: u64,
    ) -> Result<Rational, NoiseError> {
        for log_growth in -44..4 {
            let growth = &Rational::one() + &Rational::power_of_two(log_growth);
            let variance = &(continuous * &growth) + &smoothing();
            if smooth_certifies(&variance, l2_squared, dimensions, &self.epsilon, &self.delta) {
                return Ok(variance);
            }
        }
        let message = format!("no noise could be certified for ε = {} and δ = {}", self.epsilon, self.delta);
        Err(NoiseError::new("noise.calibration", message))
    }

    /// For one whole number: a variance close to the least by the discrete law's own
    /// δ(ε), or the formula's where a looser calibration was asked for.
    fn summed_variance(
        &self,
        continuous: &Rational,
        l2_squared: &Rational,
        calibration: Calibration,
    ) -> Rational {
        // A whole number that moves by at most Δ moves by at most ⌊Δ⌋.
        let shift = floor_root(l2_squared);
        let private = |variance: &Rational| {
            let delta = discrete_gaussian_delta(variance, shift, &self.epsilon);
            Rational::dyadic(delta.upper().clone(), -(delta.bits() as i64)) <= self.delta
        };
        if calibration != Calibration::Analytic && private(continuous) {
            return continuous.clone();
        }
        let mut high = continuous + &smoothing();
        while !private(&high) {
            high = &high * &Rational::from(2u32);
        }
        let mut low = continuous / &Rational::from(4u32);
        for _ in 0..24 {
            let middle = &(&low + &high) / &Rational::from(2u32);
            if private(&middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        high
    }
}

/// ⌊√x⌋.
fn floor_root(square: &Rational) -> u64 {
    let whole = u128::try_from(square.floor()).unwrap_or(u128::MAX);
    u64::try_from(whole.isqrt()).unwrap_or(u64::MAX)
}

impl Mechanism for Gaussian {
    fn loss(&self) -> PrivacyLoss {
        PrivacyLoss::DiscreteGaussian {
            variance: self.noise.variance().clone(),
            l2_squared: self.l2_squared.clone(),
            dimensions: self.dimensions,
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
