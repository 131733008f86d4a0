//! ε(δ) of Gaussian noise: a guess, one step of Newton's, and exact arithmetic to certify what was found.
//!
//! **Method.** δ(ε) = φ(a)·(M(a) − M(b)) with a, b = ε/μ ∓ μ/2 and Mills' ratio M, and dδ/dε = −φ(a)·M(b). The slope
//! in doubles is good enough for a step from a guess that is right to ten digits. Then ε is an upper bound when the
//! certified upper bound of δ(ε) is seen to be at most δ, and a lower bound when the lower one is seen to be at
//! least δ, each for the μ that makes it worse. How ε was found does not matter.

use demur_exact::Rational;

use crate::Bounds;
use crate::law::{gaussian_delta, root};

/// How far from the guess, in units in the last place, an end is looked for; else the guess was bad.
const FURTHEST: f64 = 64.0;

/// Bounds on the least ε ≥ 0 with δ(ε) ≤ δ; `None` when the guess was too bad to tell.
pub(crate) fn epsilon(mu_squared: &Rational, delta: &Rational, guess: f64) -> Option<Bounds> {
    let (low_mu, high_mu) = root(mu_squared);
    let (at_most, at_least) = (delta.to_f64_down(), delta.to_f64_up());
    let excess = (gaussian_delta(guess, high_mu).upper / at_most).ln();
    let found = guess + excess / slope(guess, high_mu);
    let near = guess > 0.0 && found > 0.0 && (found - guess).abs() <= 1e-6 * guess;
    let outward = |sign: f64, holds: &dyn Fn(f64) -> bool| {
        let mut steps = 1.0;
        loop {
            let tried = found * (1.0 + sign * steps * f64::EPSILON);
            if holds(tried) {
                return Some(tried);
            }
            steps *= 2.0;
            if steps > FURTHEST {
                return None;
            }
        }
    };
    if !near {
        return None;
    }
    let upper = outward(1.0, &|tried| gaussian_delta(tried, high_mu).upper <= at_most)?;
    let lower = outward(-1.0, &|tried| gaussian_delta(tried, low_mu).lower >= at_least)?;
    Some(Bounds::new(lower, upper))
}

/// −d ln δ/dε, to a few digits.
fn slope(epsilon: f64, mu: f64) -> f64 {
    let (a, b) = (mills(epsilon / mu - mu / 2.0), mills(epsilon / mu + mu / 2.0));
    b / (a - b)
}

/// M(x) = (1 − Φ(x))/φ(x), to a few digits.
fn mills(x: f64) -> f64 {
    if x > 30.0 {
        return 1.0 / (x + 1.0 / (x + 2.0 / (x + 3.0 / x)));
    }
    (std::f64::consts::PI / 2.0).sqrt()
        * libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2)
        * libm::exp(x * x / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A good guess is certified to a few units in the last place, a bad one is not used.
    #[test]
    fn a_good_guess_is_certified_and_a_bad_one_refused() {
        let (mu_squared, delta) = (Rational::from(400u32), "1e-6".parse().unwrap());
        let truth = 294.171_786_257_644_47;
        let bounds = epsilon(&mu_squared, &delta, truth * (1.0 + 1e-10)).unwrap();
        assert!(bounds.lower < truth && truth < bounds.upper, "{bounds:?}");
        assert!(bounds.relative_width() < 2e-15, "{bounds:?}");
        for bad in [0.0, 1.0, truth * 1.01, f64::NAN, f64::INFINITY] {
            assert_eq!(epsilon(&mu_squared, &delta, bad), None, "{bad}");
        }
    }

    /// The slope is that of δ itself, near and far.
    #[test]
    fn the_slope_is_that_of_the_profile() {
        for (at, mu) in [(1.0, 1.0), (0.1, 0.01), (294.0, 20.0), (25.0, 1.0), (600.0, 20.0), (2.0, 3.0)] {
            let log = |epsilon: f64| gaussian_delta(epsilon, mu).upper.ln();
            let measured = (log(at * (1.0 - 1e-5)) - log(at * (1.0 + 1e-5))) / (2e-5 * at);
            let found = slope(at, mu);
            assert!((found / measured - 1.0).abs() < 1e-4, "{at}, {mu}: {found} for {measured}");
        }
    }
}
