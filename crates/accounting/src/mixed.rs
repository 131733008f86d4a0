//! [`Mixed`]: few uses of Gaussian noise on samples beside losses of finitely many values.
//!
//! **Definition.** Let sums a of the other losses have the probabilities p, and let S be the noise and R the noise with its neighbours
//! exchanged. Then for any ε₀
//!
//! ```text
//! δ(ε) = Σ_{a < ε₀} p·δ_S(ε − a) + Σ_{a ≥ ε₀} p·(1 − e^(ε−a)) + e^(ε−ε₀)·Σ_{a ≥ ε₀} p·e^(ε₀−a)·δ_R(a − ε)
//! ```
//!
//! **Why.** δ(ε) = Σ p·δ_S(ε − a), and δ_S(−t) = 1 − e^(−t) + e^(−t)·δ_R(t) for every t. Near ε₀ no distance is negative, so
//! that nothing cancels, and each half is one integral along a [path that bends](crate::bent).
//!
//! **Exactness.** A sum is off by `off`, a probability by a `share` of itself, and `left_out` is the probability of what is not
//! listed; each distance is a rounded difference, which counts as being off as well.

use crate::Bounds;
use crate::bent::{Bent, Digits};
use crate::inversion::Sum;
use crate::law::{Base, Direction, Law};
use crate::nodes::UNIT;
use crate::solve::least_epsilon;
use crate::sums::{Few, Sums};
use demur_exact::Rational;

/// The most uses of noise on samples, and the most sums beside them: many uses take no longer, but are rarely better than a line.
const MOST_USES: u64 = 1_000_000;
const MOST_SUMS: f64 = 3000.0;

/// The most sums for which more digits are worth their time.
const MOST_CAREFUL: usize = 100;

/// See the module text.
pub(crate) struct Mixed {
    /// ε₀.
    at: f64,
    below: Option<Bent>,
    above: Option<Bent>,
    /// (a, p) of the sums from ε₀ on.
    large: Vec<(f64, f64)>,
    share: f64,
    off: f64,
    left_out: f64,
}

impl Mixed {
    /// Whether the losses are of this kind, and few enough.
    pub(crate) fn suits(laws: &[(Law, u64)]) -> bool {
        let [noises, atomic] = apart(laws);
        let uses = noises.iter().map(|(_, count)| *count).fold(0, u64::saturating_add);
        let direction = |law: &Law| law.sampling.as_ref().map(|sampling| sampling.direction);
        let alike = noises.windows(2).all(|pair| direction(&pair[0].0) == direction(&pair[1].0));
        let all = noises.len() + atomic.len() == laws.len() && !noises.is_empty() && !atomic.is_empty();
        all && alike && uses <= MOST_USES && Sums::expected(&atomic).is_some_and(|sums| sums < MOST_SUMS)
    }

    /// The largest loss of the noise alone, where there is one; about.
    pub(crate) fn noise_top(laws: &[(Law, u64)]) -> Option<f64> {
        let [noises, _] = apart(laws);
        noises.iter().map(|(law, count)| Some(law.top()? * *count as f64)).sum()
    }

    /// About ε(δ) without the noise.
    pub(crate) fn without_noise(laws: &[(Law, u64)], delta: &Rational, highest: f64) -> Option<f64> {
        let [_, atomic] = apart(laws);
        let few = Few::new(&atomic, 1e-6 * delta.to_f64())?;
        let found = least_epsilon(|tried| few.delta(tried.to_f64()), delta, highest.min(1.0), highest)?;
        Some(found.upper)
    }

    /// For ε near ε₀, where δ is about e^`log_delta` when that is known.
    pub(crate) fn new(laws: &[(Law, u64)], at: f64, log_delta: Option<f64>, digits: Digits) -> Option<Self> {
        let [noises, atomic] = apart(laws);
        let floor = log_delta.map_or(1e-60, |log| libm::exp(log - 36.0).max(1e-290));
        let Sums { points, share, off, left_out } =
            Sums::of_atoms(&atomic, floor / (atomic.len() as f64 + 1.0), 4 * MOST_SUMS as usize)?;
        if digits == Digits::Many && points.len() > MOST_CAREFUL {
            return None;
        }
        let (small, large): (Vec<_>, Vec<_>) = points.into_iter().partition(|(a, _)| *a < at);
        let sum = |laws: Vec<(Law, u64)>| Sum {
            mu_squared: 0.0,
            terms: laws.into_iter().map(|(law, count)| (law, count as f64)).collect(),
        };
        let reversed = sum(noises.iter().map(|(law, count)| (law.reversed(), *count)).collect());
        let noises = sum(noises);
        let below: Vec<_> = small.iter().map(|(a, p)| (at - a, *p)).collect();
        let above = large.iter().map(|(a, p)| (a - at, p * libm::exp(at - a)));
        let above: Vec<_> = above.filter(|point| point.1 > 0.0).collect();
        // what is known of δ already
        let known: f64 = large.iter().map(|(a, p)| p * -libm::expm1(at - a)).sum();
        let about = |sum: &Sum, points: &[(f64, f64)]| {
            if points.is_empty() { Some(f64::NEG_INFINITY) } else { Bent::log_about(sum, points) }
        };
        let log_delta = match log_delta {
            Some(log_delta) => log_delta,
            None => known.ln().max(about(&noises, &below)?).max(about(&reversed, &above)?),
        };
        let bent = |sum: &Sum, points: &[(f64, f64)]| {
            if points.is_empty() {
                return Some(None);
            }
            Bent::beside(sum, points, Some(log_delta), digits).map(Some)
        };
        let (below, above) = (bent(&noises, &below)?, bent(&reversed, &above)?);
        Some(Self { at, below, above, large, share, off, left_out })
    }

    /// δ(ε), given that the loss is finite; best near ε₀.
    pub(crate) fn delta(&self, epsilon: f64) -> Bounds {
        let largest =
            self.large.iter().map(|point| point.0.abs()).fold(epsilon.abs() + self.at.abs(), f64::max);
        let off = self.off + 8.0 * UNIT * largest;
        let (lower, upper) = (self.around(epsilon + off).lower, self.around(epsilon - off).upper);
        let upper = (upper * (1.0 + self.share + 4.0 * UNIT) + self.left_out + f64::MIN_POSITIVE).min(1.0);
        Bounds::new((lower * (1.0 - self.share - 4.0 * UNIT)).clamp(0.0, upper), upper)
    }

    /// δ(ε) for these very sums.
    fn around(&self, epsilon: f64) -> Bounds {
        let moved = epsilon - self.at;
        let (mut sum, mut size) = (0.0, 0.0);
        for (a, p) in &self.large {
            let payoff = p * -libm::expm1(epsilon - a);
            (sum, size) = (sum + payoff, size + payoff.abs());
        }
        let error = (self.large.len() as f64 + 16.0) * UNIT * size;
        let nothing = Bounds::new(0.0, 0.0);
        let below = self.below.as_ref().map_or(nothing, |bent| bent.delta(moved));
        let above = self.above.as_ref().map_or(nothing, |bent| bent.delta(-moved));
        let (grown, slack) = (libm::exp(moved), 16.0 * UNIT);
        let lower = sum - error + (below.lower + grown * above.lower) * (1.0 - slack);
        let upper = sum + error + (below.upper + grown * above.upper) * (1.0 + slack);
        Bounds::new(lower.min(upper), upper)
    }
}

/// Gaussian noise on samples, and losses of finitely many values.
fn apart(laws: &[(Law, u64)]) -> [Vec<(Law, u64)>; 2] {
    let noise = |law: &Law| {
        let direction = law.sampling.as_ref().map(|sampling| sampling.direction);
        matches!(law.base, Base::Gaussian { .. })
            && direction.is_some_and(|direction| direction != Direction::Replace)
    };
    let some = |keep: &dyn Fn(&Law) -> bool| laws.iter().filter(|(law, _)| keep(law)).cloned().collect();
    [some(&noise), some(&|law: &Law| law.has_atoms_alone())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::{Terms, profile_near};

    fn laws(text: &str) -> Vec<(Law, u64)> {
        Terms::of(&text.parse().unwrap()).unwrap().laws
    }

    /// One use of noise has a formula: a mean of it over the sums beside it. Both directions, at ε₀ and beside it.
    #[test]
    fn one_use_is_a_mean_of_formulas() {
        let mut found_any = 0;
        for (text, epsilons) in [
            ("subsampled(0.1, gaussian(sigma=1)) + pure(0.5)*3 + pure(0.17)", [0.0, 0.3, 1.2, 2.5]),
            (
                "subsampled(0.002, gaussian(sigma=2)) + randomized_response(epsilon=1, categories=4)*2",
                [0.5, 1.0, 1.99, 2.01],
            ),
        ] {
            for laws in [laws(text), Terms::of(&text.parse().unwrap()).unwrap().reversed().laws] {
                let [noises, atomic] = apart(&laws);
                let sums = Sums::of_atoms(&atomic, 1e-60, 10_000).unwrap();
                for epsilon in epsilons {
                    let (mut lower, mut upper) = (0.0, 0.0);
                    for (a, p) in &sums.points {
                        let one = profile_near(&noises[0].0, epsilon - a, 1e-15);
                        (lower, upper) = (lower + p * one.lower, upper + p * one.upper);
                    }
                    for at in [epsilon, epsilon + 1e-3] {
                        let Some(mixed) = Mixed::new(&laws, at, None, Digits::Usual) else { continue };
                        let found = mixed.delta(epsilon);
                        let name = format!("{text} {epsilon} {at}: {found:?} [{lower:e}, {upper:e}]");
                        let slack = 1.0 + 1e-12;
                        assert!(found.lower <= upper * slack && lower <= found.upper * slack, "{name}");
                        found_any += i32::from(found.upper - found.lower < 1e-9 * upper);
                    }
                }
            }
        }
        assert!(found_any >= 16, "{found_any} are narrow");
    }

    #[test]
    fn other_losses_do_not_suit() {
        assert!(Mixed::suits(&laws("subsampled(0.1, gaussian(sigma=1))*3 + pure(1)")));
        for text in [
            "subsampled(0.1, gaussian(sigma=1))*3",
            "subsampled(0.1, gaussian(sigma=1))*3000000 + pure(1)",
            "subsampled(0.1, gaussian(sigma=1)) + laplace(scale=1)",
            "subsampled(0.1, gaussian(sigma=1)) + pure(1) + gaussian(sigma=1)",
            "pure(1)*3",
        ] {
            assert!(!Mixed::suits(&laws(text)), "{text}");
        }
    }
}
