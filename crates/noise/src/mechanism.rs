//! Recipes that publish: noise calibrated to a sensitivity, and what it costs.

mod estimate;
mod exponential;
mod gaussian;
mod gaussian_profile;
mod laplace;
mod number;
mod randomized_response;
mod truncated_laplace;
mod unary_encoding;

use demur_core::{Lattice, PrivacyLoss, Release};
use demur_exact::Rational;

pub use estimate::Estimate;
pub use exponential::{Exponential, Method};
pub use gaussian::{Calibration, Gaussian};
pub use gaussian_profile::discrete_gaussian_delta;
pub use laplace::Laplace;
pub use number::Number;
pub use randomized_response::RandomizedResponse;
pub use truncated_laplace::TruncatedLaplace;
pub use unary_encoding::UnaryEncoding;

use crate::{Entropy, NoiseError};

/// How far a published answer is from the true one, at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorBound {
    /// Any one coordinate is off by more with probability at most β.
    pub each: f64,
    /// Some coordinate is off by more with probability at most β.
    pub joint: f64,
}

/// A recipe that adds noise to whole lattice steps.
///
/// The cost ([`loss`](Self::loss)) and the noise ([`fill`](Self::fill)) belong to one
/// value, so they cannot disagree. [`loss`](Self::loss) is the cost of one use on
/// the whole vector.
pub trait Mechanism {
    /// What one release costs.
    fn loss(&self) -> PrivacyLoss;

    /// Where answers live.
    fn lattice(&self) -> Lattice;

    /// How many numbers one release publishes.
    fn dimensions(&self) -> u64;

    /// Draws noise for `out`, in lattice steps.
    fn fill(&self, entropy: &mut Entropy, out: &mut [i128]);

    /// The probability that one coordinate's noise exceeds `steps` lattice steps.
    fn tail(&self, steps: f64) -> f64;

    /// The standard deviation of one coordinate, in the answer's unit.
    fn standard_deviation(&self) -> f64;

    /// Publishes one number of a scalar mechanism, given in lattice steps.
    fn release(&self, answer: i64, entropy: &mut Entropy) -> Result<Release<Number>, NoiseError> {
        if self.dimensions() != 1 {
            return Ok(self.release_all(&[answer], entropy)?.map(|mut numbers| numbers.swap_remove(0)));
        }
        let mut noise = [0];
        self.fill(entropy, &mut noise);
        Ok(Release::new(Number::new(i128::from(answer) + noise[0], self.lattice()), self.loss()))
    }

    /// Publishes a vector given in lattice steps.
    fn release_all(
        &self,
        answers: &[i64],
        entropy: &mut Entropy,
    ) -> Result<Release<Vec<Number>>, NoiseError> {
        self.release_repeatedly(answers, 1, entropy)
    }

    /// Publishes the same vector `count` times, one after the other, at `count` times the cost.
    fn release_repeatedly(
        &self,
        answers: &[i64],
        count: u64,
        entropy: &mut Entropy,
    ) -> Result<Release<Vec<Number>>, NoiseError> {
        if answers.len() as u64 != self.dimensions() {
            let message = format!(
                "this mechanism is calibrated for {} numbers at once, but {} were given",
                self.dimensions(),
                answers.len()
            );
            return Err(NoiseError::new("noise.dimensions", message));
        }
        let mut noise = vec![0; answers.len() * count as usize];
        self.fill(entropy, &mut noise);
        let lattice = self.lattice();
        let noisy = answers.iter().cycle().zip(noise);
        let noisy = noisy.map(|(&answer, noise)| Number::new(i128::from(answer) + noise, lattice));
        Ok(Release::new(noisy.collect(), self.loss().repeat(count)))
    }

    /// Publishes one real number: rounds it to the lattice, then adds noise.
    fn release_real(&self, answer: f64, entropy: &mut Entropy) -> Result<Release<Number>, NoiseError> {
        self.release(self.lattice().quantise(answer)?, entropy)
    }

    /// Publishes a vector of real numbers: rounds them to the lattice, then adds noise.
    fn release_reals(
        &self,
        answers: &[f64],
        entropy: &mut Entropy,
    ) -> Result<Release<Vec<Number>>, NoiseError> {
        let lattice = self.lattice();
        let steps = answers.iter().map(|&x| lattice.quantise(x)).collect::<Result<Vec<_>, _>>()?;
        self.release_all(&steps, entropy)
    }

    /// How large the error is, but for a chance of `beta`.
    ///
    /// Coordinates are independent, so all of them are within e with probability
    /// (1 − tail(e))^k: the joint bound is the single one at 1 − (1 − β)^(1/k).
    fn error(&self, beta: f64) -> Result<ErrorBound, NoiseError> {
        if !(beta > 0.0 && beta < 1.0) {
            let message =
                format!("the chance β of a larger error must lie between 0 and 1, but it is {beta}");
            return Err(NoiseError::new("noise.beta", message));
        }
        let shared = (-(f64::ln_1p(-beta) / self.dimensions() as f64).exp_m1()).min(beta);
        let step = self.lattice().value(1);
        let bound = |beta: f64| least_steps(|steps| self.tail(steps), beta) * step;
        Ok(ErrorBound { each: bound(beta), joint: bound(shared) })
    }
}

/// The least whole number of steps whose tail is at most `beta`.
fn least_steps(tail: impl Fn(f64) -> f64, beta: f64) -> f64 {
    if tail(0.0) <= beta {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while tail(high) > beta {
        (low, high) = (high, high * 2.0);
    }
    while high - low > 1.0 && (low + high) / 2.0 > low && (low + high) / 2.0 < high {
        let middle = ((low + high) / 2.0f64).floor();
        if tail(middle) <= beta {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// Refuses a mechanism that would publish nothing.
fn check_dimensions(dimensions: u64) -> Result<(), NoiseError> {
    if dimensions > 0 {
        return Ok(());
    }
    Err(NoiseError::new(
        "noise.dimensions",
        "a mechanism publishes at least 1 number, but 0 were asked".to_owned(),
    ))
}

/// Refuses a sensitivity that is not above 0.
fn check_sensitivity(sensitivity: &Rational) -> Result<(), NoiseError> {
    if sensitivity.is_positive() {
        return Ok(());
    }
    let message = format!("a sensitivity must be above 0, but it is {sensitivity}");
    Err(NoiseError::new("noise.sensitivity", message))
}
