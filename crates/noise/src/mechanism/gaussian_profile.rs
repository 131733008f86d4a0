//! δ(ε) of the discrete Gaussian itself, not of its continuous likeness.
//!
//! **One number.** Let p be the discrete Gaussian with variance parameter v and let a
//! whole-number answer move by Δ. The likelihood ratio p(k)/p(k + Δ) = e^((2kΔ + Δ²)/2v) grows
//! with k, so with m the least k where it exceeds e^ε
//!
//! ```text
//! δ(ε) = Σ_{k ≥ m} p(k) − e^ε · Σ_{k ≥ m + Δ} p(k)
//! ```
//!
//! Smaller moves give a smaller δ, because p is log-concave.
//!
//! **Any number of coordinates.** Fix s² < v and let X be *continuous* Gaussian around the
//! true vector with variance v − s². Round X at random: Y is the integer y with
//! probability proportional to e^(−|y − X|²/2s²). Y costs what X costs. Its law at
//! y is ∫ N(x)·e^(−|y − x|²/2s²)/W(x) dx, where W(x) = Πᵢ Σⱼ e^(−(j − xᵢ)²/2s²) lies within a
//! factor 1 ± η of (s√2π) per coordinate, η = 2Σ_{j≥1} e^(−2π²s²j²) (Poisson summation). So the
//! law of Y and the discrete Gaussian with parameter (v − s²) + s² = v agree within a
//! factor ((1 + η)/(1 − η))^k, and publishing with the discrete Gaussian is
//! (ε + 2kλ, e^(kλ)·δ)-private with λ = ln((1 + η)/(1 − η)), where δ is the continuous profile of
//! variance v − s² at ε. With s = 3/2, η < 10⁻¹⁸·0.2.
//!
//! **References.** \[Canonne2020\] Theorem 7 for one number; the rounding argument is
//! that of \[Peikert2010\] for lattices.

use dashu_int::{IBig, UBig};
use demur_exact::{Enclosure, Rational, exp_neg, gaussian_delta};

/// s² of the module text.
pub(super) fn smoothing() -> Rational {
    Rational::new(9, 4)
}

/// 4kλ is below this for k coordinates: by what ε and ln δ are tightened.
pub(super) fn slack(dimensions: u64) -> Rational {
    // η = 2e^(−4.5π²)·(1 + 10⁻³⁰) < 1.03·10⁻¹⁹, so λ < 3η < 3.1·10⁻¹⁹ and 4λ < 2·10⁻¹⁸.
    &Rational::new(2, 1_000_000_000_000_000_000) * &Rational::from(dimensions)
}

/// δ(ε) for one whole number that moves by `sensitivity`, certified.
///
/// ```
/// use demur_noise::discrete_gaussian_delta;
/// let delta = discrete_gaussian_delta(&"9".parse()?, 1, &"1".parse()?);
/// // The continuous law of the same variance has 2.08e-4; this is the discrete law's own.
/// assert!((delta.upper_f64() - 2.18e-4).abs() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn discrete_gaussian_delta(variance: &Rational, sensitivity: u64, epsilon: &Rational) -> Enclosure {
    let shift = Rational::from(sensitivity);
    // (2kΔ + Δ²)/2v > ε  ⇔  k > (2vε − Δ²)/2Δ
    let two = Rational::from(2u32);
    let crossing = &(&(&(&two * variance) * epsilon) - &shift.square()) / &(&two * &shift);
    let first = Rational::from(crossing.floor() + IBig::ONE);
    let rate = (&two * variance).recip();
    let depth = (&first.square() * &rate).to_f64();
    if first.is_positive() && depth > FAR_OUT {
        // Pr[Z ≥ m] ≤ e^(−m²/2v) says enough: no double is as small.
        return Enclosure::new(IBig::ZERO, IBig::ONE, FAR_OUT as usize);
    }
    // p(first) may be as small as 2^(−1.45·depth): keep digits below it.
    let bits = 192 + (depth * 1.45) as usize;
    let bell = Bell { rate, bits };
    let total =
        Enclosure::integer(1, bits).add(&bell.sum_from(&Rational::one()).mul_integer(&UBig::from(2u8)));
    let near = match first.is_positive() {
        true => bell.sum_from(&first),
        // Everything but the mirror image of what lies to the right of −first.
        false => total.sub(&bell.sum_from(&(&Rational::one() - &first))),
    };
    let far = bell.raised_sum_from(&(&first + &shift), epsilon);
    near.sub(&far).div(&total).at_least_zero()
}

/// An exponent so large that e^(−x) is below every double, and below 2⁻ˣ all the more.
const FAR_OUT: f64 = 1400.0;

/// The weights e^(−rate·k²).
struct Bell {
    rate: Rational,
    bits: usize,
}

impl Bell {
    /// Σ_{k ≥ first} e^(−rate·k²) for first > 0.
    fn sum_from(&self, first: &Rational) -> Enclosure {
        self.raised_sum_from(first, &Rational::zero())
    }

    /// Σ_{k ≥ first} e^(ε − rate·k²) for first > 0 and rate·first² ≥ ε.
    ///
    /// ε goes into the exponents, so that nothing grows.
    fn raised_sum_from(&self, first: &Rational, epsilon: &Rational) -> Enclosure {
        let two = Rational::from(2u32);
        let mut height = exp_neg(&(&(&self.rate * &first.square()) - epsilon), self.bits);
        let mut slope = exp_neg(&(&self.rate * &(&(&two * first) + &Rational::one())), self.bits);
        let bend = exp_neg(&(&self.rate * &two), self.bits);
        let mut sum = Enclosure::integer(0, self.bits);
        while *height.upper() > IBig::ONE << 16 {
            sum = sum.add(&height);
            height = height.mul(&slope);
            slope = slope.mul(&bend);
        }
        // Beyond, neighbours shrink by at least `slope` < 1.
        let rest = height.div(&Enclosure::integer(1, self.bits).sub(&slope));
        Enclosure::new(sum.lower().clone(), sum.upper() + rest.upper(), self.bits)
    }
}

/// Whether variance v hides `l2_squared` at (ε, δ), for any number of coordinates.
pub(super) fn smooth_certifies(
    variance: &Rational,
    l2_squared: &Rational,
    dimensions: u64,
    epsilon: &Rational,
    delta: &Rational,
) -> bool {
    let left = variance - &smoothing();
    let slack = slack(dimensions);
    if !left.is_positive() || slack > Rational::new(1, 4) {
        return false;
    }
    // 2kλ is taken from ε where there is enough of it. Where there is not, δ pays:
    // e^(ε + s)·q ≤ e^ε·q + e^ε·(e^s − 1), and e^ε·(e^s − 1) ≤ 2s for ε < s ≤ ¼.
    let (epsilon, paid) = match *epsilon >= slack {
        true => (epsilon - &slack, Rational::zero()),
        false => (epsilon.clone(), &slack + &slack),
    };
    if paid >= *delta {
        return false;
    }
    // μ² = Δ₂²/(v − s²); a root rounded up only makes δ larger.
    let mu_squared = l2_squared / &left;
    let mu = Enclosure::of(&mu_squared, 256 + 2 * mu_squared.floor_log2().unsigned_abs() as usize).sqrt();
    let mu = Rational::dyadic(mu.upper().clone(), -(mu.bits() as i64));
    let profile = gaussian_delta(&epsilon, &mu);
    let upper = Rational::dyadic(profile.upper().clone(), -(profile.bits() as i64));
    // e^(kλ) ≤ 1 + slack
    &(&upper * &(&Rational::one() + &slack)) + &paid <= *delta
}

#[cfg(test)]
mod tests {
    use super::*;
    use demur_exact::pi;

    fn q(text: &str) -> Rational {
        text.parse().unwrap()
    }

    /// 4λ = 4·ln((1 + η)/(1 − η)) with η = 2Σ e^(−2π²s²j²): η < 1.1·e^(−2π²s²)·2, and λ ≤ 2η/(1 − η).
    #[test]
    fn the_slack_covers_what_randomised_rounding_loses() {
        let pi = pi(200);
        let low = Rational::dyadic(pi.lower().clone(), -200);
        let exponent = &(&q("2") * &low.square()) * &smoothing();
        let first = exp_neg(&exponent, 300);
        let eta = &Rational::dyadic(first.upper().clone(), -300) * &q("2.2");
        let lambda = &(&q("2") * &eta) / &(&Rational::one() - &eta);
        assert!(&q("4") * &lambda <= slack(1));
        // And it is no larger than it need be, by more than a few times.
        assert!(&q("10") * &lambda > slack(1));
        assert_eq!(slack(1000), &slack(1) * &q("1000"));
    }

    /// Σ max(0, p(k) − e^ε·p(k + Δ)), term by term with certified exponentials.
    fn by_definition(
        variance: &Rational,
        shift: i64,
        epsilon: &Rational,
        reach: i64,
    ) -> (Rational, Rational) {
        let bits = 400;
        let rate = (&q("2") * variance).recip();
        let height = |k: i64| exp_neg(&(&rate * &Rational::from(k).square()), bits);
        let total = (-reach..=reach).fold(Enclosure::integer(0, bits), |sum, k| sum.add(&height(k)));
        let grown = Enclosure::integer(1, bits).div(&exp_neg(epsilon, bits));
        let mut sum = Enclosure::integer(0, bits);
        for k in -reach..=reach {
            sum = sum.add(&height(k).sub(&grown.mul(&height(k + shift))).at_least_zero());
        }
        let delta = sum.div(&total);
        (Rational::dyadic(delta.lower().clone(), -400), Rational::dyadic(delta.upper().clone(), -400))
    }

    #[test]
    fn the_formula_for_delta_is_the_definition() {
        for (variance, shift, epsilon) in [
            ("9", 1, "1"),
            ("9", 3, "1/2"),
            ("1/4", 1, "2"),
            ("100", 7, "1/10"),
            ("2", 1, "0"),
            ("1/100", 2, "0.3"),
        ] {
            let (variance, epsilon) = (q(variance), q(epsilon));
            let found = discrete_gaussian_delta(&variance, shift, &epsilon);
            let found =
                [found.lower(), found.upper()].map(|b| Rational::dyadic(b.clone(), -(found.bits() as i64)));
            let reach = 30 * (variance.to_f64().sqrt() as i64 + 1);
            let (low, high) = by_definition(&variance, shift as i64, &epsilon, reach);
            // The sum leaves out less than 10⁻⁵⁰; both enclosures hold the same number.
            let margin = q("1e-50");
            assert!(
                found[0] <= &high + &margin && found[1] >= &low - &margin,
                "{variance} {shift} {epsilon}"
            );
            assert!(&found[1] - &found[0] < q("1e-40"));
        }
    }

    #[test]
    fn a_smaller_move_is_safer() {
        for variance in ["1/2", "3", "40"] {
            let delta = |shift| discrete_gaussian_delta(&q(variance), shift, &q("0.7")).upper_f64();
            assert!((1..12).all(|shift| delta(shift) <= delta(shift + 1)), "{variance}");
        }
    }

    /// Far out the answer is a bound, so far below every δ that nothing depends on it.
    #[test]
    fn a_delta_below_every_double_is_bounded_at_once() {
        let delta = discrete_gaussian_delta(&q("2.25"), 1, &q("1e6"));
        assert!(delta.upper_f64() < 1e-300 && delta.lower_f64() == 0.0);
    }

    /// Where ε is smaller than the slack, δ pays for it.
    #[test]
    fn vectors_are_certified_without_any_epsilon() {
        let certified = |variance: &str, delta: &str| {
            smooth_certifies(&q(variance), &Rational::one(), 1, &Rational::zero(), &q(delta))
        };
        // δ(0) ≈ μ/√2π: σ = 40 gives a little less than 0.01.
        assert!(certified("1600", "0.01") && !certified("1580", "0.01"));
        // Of a δ below the slack nothing is left.
        assert!(!certified("1e60", "1e-18") && certified("1e60", "1e-17"));
    }
}
