//! ln K(c) of Gaussian noise on a sample for a whole order α = c + 1, by a sum.
//!
//! **Definition.** With the person removed K(α − 1) = E_Q[(1 − q + q·r)^α], where E_Q[r^k] = e^(k(k − 1)μ²/2). The binomial
//! theorem makes this a sum, and since its weights C(α, k)(1 − q)^(α − k)q^k add up to 1,
//!
//! ```text
//! K − 1 = Σ_{k ≥ 2} C(α, k)·(1 − q)^(α − k)·q^k·(e^(k(k − 1)μ²/2) − 1)
//! ```
//!
//! **Exactness.** Every term is positive, so nothing cancels, however small q is. Terms are added by their logarithms. Each
//! logarithm is off by at most 4 units of the sum of what was added up for it, by α units for q and by (1 + g)·3 for
//! g = k(k − 1)μ²/2; the sum by as many units as it has terms.
//!
//! **References.** \[Mironov2019\].

use super::{Base, Direction, Law};
use crate::Bounds;
use crate::nodes::UNIT;

/// Beyond this order there would be too many terms.
const MOST_TERMS: f64 = 10_000.0;

impl Law {
    /// ln K(c) where the formula holds.
    pub(crate) fn log_moment_of_whole_order(&self, tilt: f64) -> Option<Bounds> {
        let (Base::Gaussian { mu_squared }, Some(sampling)) = (&self.base, &self.sampling) else {
            return None;
        };
        let order = tilt + 1.0;
        let whole = order.fract() == 0.0 && (2.0..=MOST_TERMS).contains(&order);
        if !whole || sampling.direction != Direction::Remove {
            return None;
        }
        let (mu_squared, rate) = (mu_squared.to_f64(), sampling.rate);
        let log_odds = rate.ln() - libm::log1p(-rate);
        // ln of the binomial weight, and all that was added up for it in absolute value.
        let mut weight = order * libm::log1p(-rate);
        let mut size = weight.abs();
        let (mut logs, mut error) = (vec![], 0.0f64);
        for k in 1..=order as u64 {
            let k = k as f64;
            let factor = ((order - k + 1.0) / k).ln();
            weight += factor + log_odds;
            size += factor.abs() + rate.ln().abs() + libm::log1p(-rate).abs() + weight.abs();
            let growth = k * (k - 1.0) / 2.0 * mu_squared;
            if growth > 0.0 {
                // ln(e^g − 1)
                let shrunk = (-libm::expm1(-growth)).ln();
                logs.push(weight + growth + shrunk);
                error = error.max(4.0 * (size + growth + shrunk.abs() + 2.0) + 3.0 * (1.0 + growth));
            }
        }
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = logs.iter().map(|log| libm::exp(log - most)).sum();
        let (excess, error) = (most + sum.ln(), (error + 2.0 * order + 8.0) * UNIT);
        // ln(1 + e^x)
        let log = |x: f64| if x < 30.0 { libm::log1p(libm::exp(x)) } else { x + libm::exp(-x) };
        let rounding = 8.0 * UNIT * (1.0 - excess.min(0.0));
        Some(Bounds::new(log(excess - error) * (1.0 - rounding), log(excess + error) * (1.0 + rounding)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Sampling;
    use super::*;
    use demur_exact::Rational;

    fn law(mu_squared: &str, rate: f64) -> Law {
        let base = Base::Gaussian { mu_squared: mu_squared.parse().unwrap() };
        Law { base, sampling: Some(Sampling { rate, direction: Direction::Remove }) }
    }

    /// Order 2 is ln(1 + q²(e^(μ²) − 1)), whatever q is.
    #[test]
    fn order_two_is_known() {
        for (mu_squared, rate) in [("1", 0.01), ("0.04", 1e-3), ("0.0004", 1e-9), ("4", 0.5), ("0.25", 0.999)]
        {
            let mu: f64 = mu_squared.parse::<Rational>().unwrap().to_f64();
            let truth = libm::log1p(rate * rate * libm::expm1(mu));
            let found = law(mu_squared, rate).log_moment_of_whole_order(1.0).unwrap();
            assert!(found.lower <= truth && truth <= found.upper, "{found:?} for {truth}");
            assert!(found.relative_width() < 1e-12, "{found:?}");
        }
    }

    #[test]
    fn only_whole_orders_of_this_direction_have_the_formula() {
        let law = law("1", 0.1);
        assert!(law.log_moment_of_whole_order(1.5).is_none() && law.log_moment_of_whole_order(0.0).is_none());
        assert!(law.reversed().log_moment_of_whole_order(1.0).is_none());
        assert!(law.log_moment_of_whole_order(255.0).unwrap().relative_width() < 1e-11);
    }
}
