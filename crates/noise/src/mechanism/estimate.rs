//! [`Estimate`]: what perturbed answers say about the truth, with an interval.
//!
//! **Interval.** The number of people seen with an answer is a sum of independent coins
//! of two kinds. Its tails are no heavier than those of a binomial variable with
//! the same mean (\[Hoeffding1956\], Theorem 4), so the Clopper–Pearson interval for that
//! mean covers it with probability at least 1 − β, for every n; being
//! monotone, the debiasing map carries it over to the fraction of truths.

use crate::NoiseError;

/// A fraction between 0 and 1, estimated from perturbed answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The unbiased estimate; it may lie outside of [0, 1].
    pub value: f64,
    /// The interval's lower end, cut off at 0.
    pub low: f64,
    /// The interval's upper end, cut off at 1.
    pub high: f64,
}

/// Seen with probability `truth` when it is the truth, else with `other`.
pub(crate) struct Debias {
    truth: f64,
    other: f64,
}

impl Debias {
    /// k-ary randomized response: what is not kept is shared by the others.
    pub(crate) fn between_others(truth: f64, categories: u64) -> Self {
        Self { truth, other: (1.0 - truth) / (categories - 1) as f64 }
    }

    /// Unary encoding: the truth shows with probability ½.
    pub(crate) fn half_against(other: f64) -> Self {
        Self { truth: 0.5, other }
    }

    pub(crate) fn estimate(&self, seen: u64, total: u64, beta: f64) -> Result<Estimate, NoiseError> {
        if total == 0 || seen > total {
            let message = format!("{seen} answers out of {total} make no fraction");
            return Err(NoiseError::new("noise.estimate", message));
        }
        if !(beta > 0.0 && beta < 1.0) {
            let message =
                format!("the chance β of missing the truth must lie between 0 and 1, but it is {beta}");
            return Err(NoiseError::new("noise.beta", message));
        }
        let (low, high) = clopper_pearson(seen, total, beta);
        Ok(Estimate {
            value: self.invert(seen as f64 / total as f64),
            low: self.invert(low).clamp(0.0, 1.0),
            high: self.invert(high).clamp(0.0, 1.0),
        })
    }

    fn invert(&self, seen: f64) -> f64 {
        (seen - self.other) / (self.truth - self.other)
    }
}

/// The interval of biases under which `seen` or more extreme is not too rare.
fn clopper_pearson(seen: u64, total: u64, beta: f64) -> (f64, f64) {
    let (k, n) = (seen as f64, total as f64);
    let low = if seen == 0 { 0.0 } else { bisect(|p| beta_cdf(p, k, n - k + 1.0) < beta / 2.0).0 };
    let high = if seen == total { 1.0 } else { bisect(|p| beta_cdf(p, k + 1.0, n - k) < 1.0 - beta / 2.0).1 };
    (low, high)
}

/// The last p that is below and the first that is not.
fn bisect(below: impl Fn(f64) -> bool) -> (f64, f64) {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low, high)
}

/// The regularised incomplete beta function.
fn beta_cdf(p: f64, a: f64, b: f64) -> f64 {
    statrs::function::beta::beta_reg(a, b, p.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_coins_are_undone_as_the_formula_says() {
        let debias = Debias::between_others(0.75, 2);
        let estimate = debias.estimate(40, 100, 0.05).unwrap();
        assert!((estimate.value - 2.0 * (0.4 - 0.25)).abs() < 1e-15);
        assert!(estimate.low < estimate.value && estimate.value < estimate.high);
    }

    /// Known interval for 10 of 100 at 95 %: 0.0490 to 0.1762 (\[Clopper1934\] tables).
    #[test]
    fn intervals_match_known_values() {
        let (low, high) = clopper_pearson(10, 100, 0.05);
        assert!((low - 0.049_005).abs() < 1e-5 && (high - 0.176_223).abs() < 1e-5, "{low} {high}");
        assert_eq!(clopper_pearson(0, 10, 0.05).0, 0.0);
        assert_eq!(clopper_pearson(10, 10, 0.05).1, 1.0);
    }

    #[test]
    fn nonsense_is_refused() {
        let debias = Debias::half_against(0.1);
        for (seen, total, beta) in [(1, 0, 0.05), (5, 3, 0.05), (1, 2, 0.0), (1, 2, 1.0), (1, 2, f64::NAN)] {
            assert!(debias.estimate(seen, total, beta).is_err());
        }
    }
}
