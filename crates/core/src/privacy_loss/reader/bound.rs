//! The bound of truncated Laplace noise that promises (ε, δ).
//!
//! **Definition.** Laplace noise of scale Δ/ε, conditioned to stay within τ, is (ε, δ)-private for
//!
//! ```text
//! τ = (Δ/ε) · ln(1 + (e^ε − 1)/2δ) = Δ + (Δ/ε) · ln(1 + (1 − e^(−ε)) · (1 − 2δ)/2δ),   δ ≤ ½
//! ```
//!
//! **Exactness.** τ is irrational unless δ = ½, where it is Δ. The second form has neither an
//! overflow nor a cancellation, and every operand can be rounded upward. Two steps, e^x − 1 and
//! ln(1 + x), are functions of the platform, correct to one unit in the last place
//! (2.3·10⁻¹⁶); each is raised by 4·10⁻¹⁶. The rest is directed or exact. So the result
//! is never below τ, which is the private side, and above it by less than 3·10⁻¹⁵ of its size.
//!
//! **References.** \[Geng2020\].

use demur_exact::Rational;
use demur_exact::float::mul_up;

/// How much a function of the platform may be below the truth, with room to spare.
const MARGIN: f64 = 4e-16;

/// τ for Δ > 0, ε > 0 and 0 < δ ≤ ½, as a double that is not below it.
///
/// `None` where doubles end: an ε or a δ near 10⁻³⁰⁸ or less, or a bound above 10³⁰⁸.
pub(super) fn truncation_bound(
    sensitivity: &Rational,
    epsilon: &Rational,
    delta: &Rational,
) -> Option<Rational> {
    let rounded = epsilon.to_f64_up();
    if rounded < f64::MIN_POSITIVE {
        return None; // too few digits are left
    }
    let twice = delta + delta;
    let odds = &(&Rational::one() - &twice) / &twice;
    let complement = raised(-(-rounded).exp_m1());
    let logarithm = raised(mul_up(complement, odds.to_f64_up()).ln_1p());
    let logarithm = Rational::try_from(logarithm).ok()?;
    let bound = sensitivity + &(&(sensitivity / epsilon) * &logarithm);
    Rational::try_from(bound.to_f64_up()).ok()
}

fn raised(value: f64) -> f64 {
    mul_up(value, 1.0 + MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use demur_exact::{Enclosure, exp_neg};
    use proptest::prelude::*;

    fn q(text: &str) -> Rational {
        text.parse().unwrap()
    }

    /// Whether noise within `bound` keeps the promise, decided with enough bits to be certain:
    /// e^(−z) · (1 − (1 − 2δ)·e^(−ε)) ≤ 2δ for z = bound·ε/Δ − ε.
    fn keeps(bound: &Rational, sensitivity: &Rational, epsilon: &Rational, delta: &Rational) -> bool {
        let z = &(&(bound * epsilon) / sensitivity) - epsilon;
        if z.is_negative() {
            return false;
        }
        let twice = delta + delta;
        [256, 1_024, 4_096]
            .into_iter()
            .find_map(|bits| {
                let of = |value: &Rational| Enclosure::of(value, bits);
                let overlap = of(&(&Rational::one() - &twice)).mul(&exp_neg(epsilon, bits));
                let left = exp_neg(&z, bits).mul(&Enclosure::integer(1, bits).sub(&overlap));
                let right = of(&twice);
                let (holds, fails) = (left.upper() <= right.lower(), left.lower() > right.upper());
                (holds || fails).then_some(holds)
            })
            .expect("4096 bits decide")
    }

    proptest! {
        #[test]
        fn the_bound_is_never_below_and_hardly_above(
            sensitivity in (1i128..1_000_000, 1u128..1_000_000, -60i64..60),
            epsilon in (1i128..1_000_000, 1u128..1_000_000, -200i64..10),
            delta in (1i128..1_000_000, -250i64..0),
        ) {
            let scaled = |n, d, power| &Rational::new(n, d) * &Rational::power_of_two(power);
            let sensitivity = scaled(sensitivity.0, sensitivity.1, sensitivity.2);
            let epsilon = scaled(epsilon.0, epsilon.1, epsilon.2);
            let delta = scaled(delta.0, 1_000_001, delta.1);
            let bound = truncation_bound(&sensitivity, &epsilon, &delta).unwrap();
            prop_assert!(keeps(&bound, &sensitivity, &epsilon, &delta));
            let less = &bound * &(&Rational::one() - &q("3e-15"));
            prop_assert!(!keeps(&less, &sensitivity, &epsilon, &delta));
        }
    }

    #[test]
    fn half_of_everything_needs_only_the_sensitivity() {
        assert_eq!(truncation_bound(&q("1.5"), &q("1/3"), &q("0.5")), Some(q("1.5")));
    }

    #[test]
    fn extreme_parameters_have_a_bound_or_none() {
        let bound = |epsilon, delta| truncation_bound(&q("1"), &q(epsilon), &q(delta));
        let huge = bound("1e400", "1e-6").unwrap();
        assert!(huge > q("1") && huge < q("1.000000000000001"), "{huge}");
        for (epsilon, delta) in [("1e-300", "1e-300"), ("3e-308", "0.4999999999"), ("300", "1e-308")] {
            let (epsilon, delta, bound) = (q(epsilon), q(delta), bound(epsilon, delta).unwrap());
            assert!(keeps(&bound, &q("1"), &epsilon, &delta));
            assert!(!keeps(&(&bound * &q("0.999999999999997")), &q("1"), &epsilon, &delta));
        }
        assert_eq!(bound("1", "1e-400"), None);
        assert_eq!(bound("1e-400", "1e-6"), None);
        let near = &q("0.5") - &q("1e-350");
        assert!(truncation_bound(&q("1"), &q("1"), &near).unwrap() > q("1"));
    }
}
