//! [`TruncatedLaplace`]: noise that never exceeds a bound, for a little δ.
//!
//! **Definition.** A whole number of lattice steps that moves by at most Δ is published
//! with truncated discrete Laplace noise of scale t = Δ/ε and bound τ.
//!
//! **Guarantee.** (ε, δ) with r = e^(−1/t) and
//!
//! ```text
//! δ = r^(τ+1) · (e^ε − 1) / (1 + r − 2·r^(τ+1))
//! ```
//!
//! **Why.** Where both neighbours can produce an output the ratio is at most e^(Δ/t).
//! What only one of them can produce are the Δ outermost values on one side,
//! of weight r^(τ−Δ+1) + … + r^τ against a total of (1 + r − 2r^(τ+1))/(1 − r). The
//! constructor takes the least τ whose δ is at most the one asked, by certified
//! arithmetic. On a fine lattice this is the continuous
//! τ = (Δ/ε)·ln(1 + (e^ε − 1)/2δ), which needs τ ≥ Δ, that is δ ≤ ½.
//!
//! **References.** \[Geng2020\].

use dashu_int::UBig;
use demur_core::{Delta, Epsilon, Lattice, PrivacyLoss};
use demur_exact::{Enclosure, Rational, exp_neg};

use super::laplace::positive;
use super::{Mechanism, check_sensitivity};
use crate::{Entropy, NoiseError, TruncatedDiscreteLaplace};

/// Bounded Laplace noise on a lattice; see the module text.
///
/// ```
/// use demur_core::{Delta, Epsilon};
/// use demur_noise::TruncatedLaplace;
/// let mechanism = TruncatedLaplace::integer("1".parse()?, Epsilon::new(1.0)?, Delta::new(1e-6)?)?;
/// assert_eq!(mechanism.bound().to_string(), "14");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TruncatedLaplace {
    noise: TruncatedDiscreteLaplace,
    lattice: Lattice,
    sensitivity: Rational,
}

impl TruncatedLaplace {
    /// For one whole number that moves by at most `sensitivity`.
    pub fn integer(sensitivity: Rational, epsilon: Epsilon, delta: Delta) -> Result<Self, NoiseError> {
        check_sensitivity(&sensitivity)?;
        Self::on(Lattice::INTEGER, Rational::from(sensitivity.ceil()), epsilon, delta)
    }

    /// For one real number that moves by at most `sensitivity`.
    pub fn real(sensitivity: Rational, epsilon: Epsilon, delta: Delta) -> Result<Self, NoiseError> {
        check_sensitivity(&sensitivity)?;
        let lattice = Lattice::for_scale(&(&sensitivity / &positive(epsilon)?), 1)?;
        Self::on(lattice, lattice.sensitivity(&sensitivity), epsilon, delta)
    }

    /// For one whole number that moves by at most `sensitivity`, with the scale itself and the least bound for δ.
    ///
    /// ```
    /// use demur_noise::TruncatedLaplace;
    /// let mechanism = TruncatedLaplace::of_scale("1".parse()?, "1".parse()?, &"1e-6".parse()?)?;
    /// assert_eq!(mechanism.bound().to_string(), "14");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_scale(sensitivity: Rational, scale: Rational, delta: &Rational) -> Result<Self, NoiseError> {
        check_sensitivity(&sensitivity)?;
        if !delta.is_positive() || *delta > Rational::new(1, 2) {
            let message =
                format!("truncated Laplace noise needs a δ above 0 and at most 1/2, but it is {delta}");
            return Err(NoiseError::new("noise.truncated-delta", message));
        }
        let sensitivity = Rational::from(sensitivity.ceil());
        let bound = least_bound(&scale, &sensitivity, delta)?;
        let noise = TruncatedDiscreteLaplace::new(scale, bound)?;
        Ok(Self { noise, lattice: Lattice::INTEGER, sensitivity })
    }

    /// The noise itself.
    pub fn noise(&self) -> &TruncatedDiscreteLaplace {
        &self.noise
    }

    fn on(
        lattice: Lattice,
        sensitivity: Rational,
        epsilon: Epsilon,
        delta: Delta,
    ) -> Result<Self, NoiseError> {
        if delta == Delta::ZERO || delta.value() > 0.5 {
            let message = format!(
                "truncated Laplace noise needs a δ above 0 and at most 1/2, but it is {}",
                delta.value()
            );
            return Err(NoiseError::new("noise.truncated-delta", message));
        }
        let scale = &sensitivity / &positive(epsilon)?;
        let bound = least_bound(&scale, &sensitivity, &delta.exact())?;
        let noise = TruncatedDiscreteLaplace::new(scale, bound)?;
        Ok(Self { noise, lattice, sensitivity })
    }

    /// The bound τ in the answer's unit.
    pub fn bound(&self) -> Rational {
        self.lattice.exact(self.noise.bound().into())
    }

    /// The scale t in the answer's unit.
    pub fn scale(&self) -> Rational {
        self.noise.scale() * &self.lattice.step()
    }
}

/// The least τ whose certified δ is at most `delta`.
fn least_bound(scale: &Rational, sensitivity: &Rational, delta: &Rational) -> Result<u64, NoiseError> {
    TruncatedDiscreteLaplace::check_scale(scale)?;
    // Doubles find the neighbourhood, certified arithmetic the place:
    // r^−(τ+1) = (e^ε − 1 + 2δ)/(δ(1 + r)) = 1 + (e^ε − 1 + δ(1 − r))/(δ(1 + r)).
    let (t, epsilon, delta_near) = (scale.to_f64(), (sensitivity / scale).to_f64(), delta.to_f64());
    let complement = -(-1.0 / t).exp_m1();
    let above = epsilon.exp_m1() + delta_near * complement;
    let excess = above / (delta_near * (2.0 - complement));
    let logarithm = match excess.is_finite() {
        true => excess.ln_1p(),
        false => {
            (if above.is_finite() { above.ln() } else { epsilon }) - delta_near.ln() - (2.0 - complement).ln()
        }
    };
    let guess = t * logarithm;
    if !guess.is_finite() || guess > (1u64 << 61) as f64 {
        let message = format!("the bound of this noise would exceed 2^61 lattice steps (about {guess:.3e})");
        return Err(NoiseError::new("noise.range", message));
    }
    let mut margin = 2 + (guess * 1e-12) as u64;
    let lowest = u64::try_from(sensitivity.ceil()).unwrap_or(u64::MAX).max(1);
    let (mut low, mut high) =
        ((guess as u64).saturating_sub(margin).max(lowest), (guess as u64 + margin).max(lowest));
    while !is_private(scale, sensitivity, high, delta) {
        margin *= 2;
        high += margin;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if is_private(scale, sensitivity, middle, delta) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(high)
}

/// Whether r^(τ+1)·(e^ε − 1) ≤ δ·(1 + r − 2r^(τ+1)), for certain; τ ≥ Δ.
fn is_private(scale: &Rational, sensitivity: &Rational, bound: u64, delta: &Rational) -> bool {
    // e^ε = r^(−Δ), so nothing grows; digits for the smallest term.
    let bits = 192 + (-delta.floor_log2()).max(0) as usize;
    let steps = &Rational::from(bound) + &Rational::one();
    let outer = exp_neg(&(&steps / scale), bits);
    let left = exp_neg(&(&(&steps - sensitivity) / scale), bits).sub(&outer);
    let ratio = exp_neg(&scale.recip(), bits);
    let room = Enclosure::integer(1, bits).add(&ratio).sub(&outer.mul_integer(&UBig::from(2u8)));
    let right = Enclosure::of(delta, bits).mul(&room);
    left.upper() <= right.lower()
}

impl Mechanism for TruncatedLaplace {
    fn loss(&self) -> PrivacyLoss {
        PrivacyLoss::TruncatedDiscreteLaplace {
            scale: self.noise.scale().clone(),
            bound: Rational::from(self.noise.bound()),
            sensitivity: self.sensitivity.clone(),
        }
    }

    fn lattice(&self) -> Lattice {
        self.lattice
    }

    fn dimensions(&self) -> u64 {
        1
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

#[cfg(test)]
mod tests {
    use super::*;
    use dashu_int::IBig;

    fn q(text: &str) -> Rational {
        text.parse().unwrap()
    }

    /// The largest δ over all moves of at most Δ, summed over all outputs in exact arithmetic:
    /// Σ max(0, p(y) − e^ε·p(y − move)), enclosed.
    fn by_definition(scale: &Rational, bound: u64, sensitivity: u64, epsilon: &Rational) -> Enclosure {
        let bits = 400;
        let bound = bound as i64;
        let height = |y: i64| match y.abs() <= bound {
            true => exp_neg(&(&Rational::from(y.abs()) / scale), bits),
            false => Enclosure::integer(0, bits),
        };
        let total = (-bound..=bound).fold(Enclosure::integer(0, bits), |sum, y| sum.add(&height(y)));
        let grown = Enclosure::integer(1, bits).div(&exp_neg(epsilon, bits));
        let delta = |shift: i64| {
            let terms =
                (-bound..=bound).map(|y| height(y).sub(&grown.mul(&height(y - shift))).at_least_zero());
            terms.fold(Enclosure::integer(0, bits), |sum, term| sum.add(&term)).div(&total)
        };
        let moves = (-(sensitivity as i64)..=sensitivity as i64).filter(|&shift| shift != 0);
        moves.map(delta).max_by(|a, b| a.upper().cmp(b.upper())).unwrap()
    }

    /// M3: the constructor's τ is private by the definition, and τ − 1 is not.
    #[test]
    fn the_bound_is_the_least_that_is_private_by_the_definition() {
        for (sensitivity, epsilon, delta) in [
            (1u64, 1.0, 1e-6),
            (1, 0.1, 0.01),
            (3, 0.5, 1e-3),
            (5, 2.0, 0.1),
            (2, 0.1, 0.5),
            (7, 3.0, 0.5),
            (1, 4.0, 1e-12),
        ] {
            let (epsilon, delta) = (Epsilon::new(epsilon).unwrap(), Delta::new(delta).unwrap());
            let mechanism = TruncatedLaplace::integer(Rational::from(sensitivity), epsilon, delta).unwrap();
            let (scale, bound) = (mechanism.noise.scale(), mechanism.noise.bound());
            let allowed = Enclosure::of(&delta.exact(), 400);
            let at = |bound: u64| by_definition(scale, bound, sensitivity, &epsilon.exact());
            assert!(at(bound).upper() <= allowed.upper(), "{sensitivity} {epsilon} {delta}: τ = {bound}");
            assert!(
                at(bound - 1).lower() > allowed.upper(),
                "{sensitivity} {epsilon} {delta}: τ = {bound} − 1"
            );
            assert!(bound >= sensitivity);
        }
    }

    /// The formula of the module text is the sum over the outermost values.
    #[test]
    fn the_formula_for_delta_is_the_definition() {
        for (sensitivity, epsilon, bound) in [(1u64, "1", 5u64), (4, "1/3", 9), (3, "2", 3)] {
            let scale = &Rational::from(sensitivity) / &q(epsilon);
            let exact = by_definition(&scale, bound, sensitivity, &q(epsilon));
            for (delta, private) in
                [(exact.upper() + (IBig::ONE << 250), true), (exact.lower() - (IBig::ONE << 250), false)]
            {
                let delta = Rational::dyadic(delta, -400);
                assert_eq!(is_private(&scale, &Rational::from(sensitivity), bound, &delta), private);
            }
        }
    }

    /// The search once began at 0 when ε was far below δ, and would have taken hours.
    #[test]
    fn a_tiny_epsilon_is_answered_at_once() {
        for (epsilon, delta) in [(1e-15, 0.5), (1e-15, 1e-3), (1e-9, 0.4), (50.0, 1e-300)] {
            let (e, d) = (Epsilon::new(epsilon).unwrap(), Delta::new(delta).unwrap());
            let mechanism = TruncatedLaplace::integer(Rational::one(), e, d).unwrap();
            // τ is near (Δ/ε)·ln(1 + (e^ε − 1)/2δ), written without overflow.
            let excess = epsilon.exp_m1() / (2.0 * delta);
            let log = if excess.is_finite() { excess.ln_1p() } else { epsilon - (2.0 * delta).ln() };
            let expected = log / epsilon;
            let bound = mechanism.bound().to_f64();
            assert!((bound - expected).abs() <= 1.0 + 1e-6 * expected, "{bound} against {expected}");
        }
        let far = TruncatedLaplace::integer(
            Rational::one(),
            Epsilon::new(1e-300).unwrap(),
            Delta::new(1e-9).unwrap(),
        );
        assert_eq!(far.unwrap_err().code(), "noise.range");
    }
}
