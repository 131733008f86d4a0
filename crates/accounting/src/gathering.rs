//! [`Gathering`]: one use of noise on a Poisson sample, for a group of people who are in it each by chance.
//!
//! **Definition.** Of k people j are in the sample with probability bⱼ = C(k, j)·q^j·(1 − q)^(k−j), and then move the answer j times
//! as far as one. Let Nⱼ be the law of noise moved that far: with the group P = Σ bⱼ·Nⱼ, without it Q = N₀.
//!
//! **Guarantee.** At a place t of the line the ratios are rⱼ(t) = dNⱼ/dN₀, and with δⱼ for the profile of (Nⱼ, N₀)
//!
//! ```text
//! removed:  δ(ε) = Σ bⱼ·δⱼ(ln rⱼ(t))                       where Σ bⱼ·rⱼ(t) = e^ε
//! added:    δ(ε) = e^ε·Σ bⱼ·rⱼ(t)·δⱼ(−ln rⱼ(t))             where Σ bⱼ·rⱼ(t) = e^(−ε)
//! ```
//!
//! **Why.** All rⱼ grow along the line, so the best event {P > E·Q} is everything to the right of some t, and so is the best one of
//! each pair (Nⱼ, rⱼ(t)·N₀): one event serves all. docs/accounting.md proves in section 5 that no other group costs more.
//! Between two whole numbers, of which noise may be only one or the other, each ratio is a mixture of both with the same weights.
//!
//! **Exactness.** Every term is positive. A place is searched for at which the sum of ratios is seen to be on the right side of e^ε.
//!
//! **References.** \[Zhu2022\] for samples.

use demur_core::PrivacyLoss;
use demur_exact::Rational;

use crate::account::Question;
use crate::law::{Law, Terms, profile_near};
use crate::solve::least_epsilon;
use crate::{AccountingError, Bounds};

/// The most people for whom all numbers that may be in the sample are added up.
const MOST_PEOPLE: u64 = 64;
/// The largest loss of a group that is always in the sample, where the largest is known.
const LARGEST: f64 = 200.0;
/// The largest ε looked for.
const HIGHEST: f64 = 1e6;
/// What a handful of rounded operations are off by at most, as a share.
const SLACK: f64 = 4e-14;

/// See the module text.
#[derive(Clone, Debug)]
pub(crate) struct Gathering {
    noise: Noise,
    present: Vec<Present>,
}

/// So many people in the sample.
#[derive(Clone, Debug)]
struct Present {
    people: f64,
    probability: f64,
    law: Law,
}

/// Noise, and how far one person moves it.
#[derive(Clone, Copy, Debug)]
enum Noise {
    /// In deviations.
    Gaussian {
        moved: f64,
    },
    /// In scales.
    Laplace {
        moved: f64,
    },
    /// In whole numbers.
    DiscreteLaplace {
        moved: f64,
        scale: f64,
    },
    DiscreteGaussian {
        moved: f64,
        variance: f64,
    },
}

/// A number and by how much it may be off.
type Near = (f64, f64);

impl Gathering {
    /// The group a loss is about, where it is one use of such noise on a sample.
    pub(crate) fn of(loss: &PrivacyLoss) -> Result<Option<Self>, AccountingError> {
        let (mut people, mut inner) = (1u64, once(loss));
        while let PrivacyLoss::Group { size, inner: deeper } = inner {
            people = people.saturating_mul(*size);
            inner = once(deeper);
        }
        let PrivacyLoss::Subsampled { rate, inner } = inner else { return Ok(None) };
        let (inner, sampled) = (once(inner), *rate > Rational::zero() && *rate < Rational::one());
        let Some(noise) = Noise::of(inner, people).filter(|_| sampled && people > 1) else { return Ok(None) };
        let mut present = vec![];
        for (count, probability) in (0..=people).zip(binomial(people, rate)).skip(1) {
            let together = PrivacyLoss::Group { size: count, inner: Box::new(inner.clone()) };
            let terms = Terms::of(&together)?;
            let [(law, 1)] = terms.laws.as_slice() else { return Ok(None) };
            present.push(Present { people: count as f64, probability, law: law.clone() });
        }
        Ok(Some(Self { noise, present }))
    }

    /// δ(ε) or ε(δ), in the worse direction.
    pub(crate) fn bounds(&self, question: Question<'_>) -> Option<Bounds> {
        let both = |epsilon: &Rational| self.removed(epsilon).max(self.added(epsilon));
        match question {
            Question::Delta { epsilon } => Some(both(epsilon)),
            Question::Epsilon { delta } => least_epsilon(both, delta, 1.0, HIGHEST),
        }
    }

    /// δ(ε) with the group removed.
    fn removed(&self, epsilon: &Rational) -> Bounds {
        let least = shrunk(libm::expm1(epsilon.to_f64_down()));
        let most = grown(libm::expm1(epsilon.to_f64_up()));
        let sum = |place: f64, sign: f64| {
            let each = self.present.iter().map(|present| {
                let (log, off) = self.noise.log_ratio(present.people, place);
                let Bounds { lower, upper } = profile_near(&present.law, log, off);
                present.probability * if sign > 0.0 { upper } else { lower }
            });
            each.sum::<f64>() * (1.0 + sign * SLACK)
        };
        let lower = self.at_least(most).map_or(0.0, |place| sum(place, -1.0));
        let (_, last) = self.noise.ends(self.present.len() as f64);
        let upper = match self.at_most(least) {
            Some(place) if place == last && self.noise.ends_there() => 0.0,
            Some(place) => sum(place, 1.0),
            None => 1.0,
        };
        Bounds::new(lower.clamp(0.0, 1.0).min(upper), upper.min(1.0))
    }

    /// δ(ε) with the group added.
    fn added(&self, epsilon: &Rational) -> Bounds {
        let least = -grown(-libm::expm1(-epsilon.to_f64_up()));
        let most = -shrunk(-libm::expm1(-epsilon.to_f64_down()));
        let sum = |place: f64, sign: f64| {
            let (rise, wrong) = self.rise(place);
            let ratio = 1.0 + rise - sign * wrong;
            let each = self.present.iter().map(|present| {
                let (log, off) = self.noise.log_ratio(present.people, place);
                let Bounds { lower, upper } = profile_near(&present.law, -log, off);
                let part = if sign > 0.0 { upper } else { lower };
                present.probability * libm::exp(log + sign * off) / ratio * part
            });
            each.sum::<f64>() * (1.0 + sign * SLACK)
        };
        let lower = self.at_most(least).map_or(0.0, |place| sum(place, -1.0));
        let (first, _) = self.noise.ends(self.present.len() as f64);
        let upper = match self.at_least(most) {
            Some(place) if place == first && self.noise.ends_there() => 0.0,
            Some(place) => sum(place, 1.0),
            None => 1.0,
        };
        Bounds::new(lower.clamp(0.0, 1.0).min(upper), upper.min(1.0))
    }

    /// Σ bⱼ·(rⱼ − 1) at a place.
    fn rise(&self, place: f64) -> Near {
        let each = self.present.iter().map(|present| {
            let (log, off) = self.noise.log_ratio(present.people, place);
            let (rise, ratio) = (libm::expm1(log), libm::exp(log));
            (present.probability * rise, present.probability * (SLACK * rise.abs() + 2.0 * off * ratio))
        });
        each.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// About the last place at which the ratios are seen to rise by no more than this.
    fn at_most(&self, rise: f64) -> Option<f64> {
        let seen = |place: f64| {
            let (found, off) = self.rise(place);
            found + off <= rise
        };
        let (first, last) = self.noise.ends(self.present.len() as f64);
        seen(first).then(|| border(first, last, seen))
    }

    /// About the first place at which they are seen to rise by no less.
    fn at_least(&self, rise: f64) -> Option<f64> {
        let seen = |place: f64| {
            let (found, off) = self.rise(place);
            found - off >= rise
        };
        let (first, last) = self.noise.ends(self.present.len() as f64);
        seen(last).then(|| border(last, first, seen))
    }
}

impl Noise {
    /// Noise that is one number, moved by as many steps as all people together may move it.
    fn of(loss: &PrivacyLoss, people: u64) -> Option<Self> {
        let all = people as f64;
        let noise = match loss {
            PrivacyLoss::Gaussian { variance, l2_squared } => {
                Self::Gaussian { moved: (l2_squared / variance).to_f64().sqrt() }
            }
            PrivacyLoss::Laplace { scale, sensitivity } => {
                Self::Laplace { moved: (sensitivity / scale).to_f64() }
            }
            PrivacyLoss::DiscreteLaplace { scale, sensitivity } if sensitivity.is_integer() => {
                Self::DiscreteLaplace { moved: sensitivity.to_f64(), scale: scale.to_f64() }
            }
            PrivacyLoss::DiscreteGaussian { variance, l2_squared, dimensions: 1 } => {
                let moved = l2_squared.to_f64().sqrt();
                let whole = Rational::try_from(moved)
                    .is_ok_and(|root| root.is_integer() && root.square() == *l2_squared);
                whole.then(|| Self::DiscreteGaussian { moved, variance: variance.to_f64() })?
            }
            _ => return None,
        };
        let (moves, largest) = match noise {
            Self::Gaussian { moved } => (moved > 0.0, moved * all),
            Self::Laplace { moved } => (moved > 0.0, moved * all),
            Self::DiscreteLaplace { moved, scale } => (moved > 0.0, moved * all / scale),
            Self::DiscreteGaussian { moved, variance } => {
                (moved > 0.0 && variance < 1e5, (moved * all).max(1.0) * moved * all / variance)
            }
        };
        (moves && largest < LARGEST && people <= MOST_PEOPLE).then_some(noise)
    }

    /// ln rⱼ at a place.
    fn log_ratio(&self, people: f64, place: f64) -> Near {
        let unit = f64::EPSILON;
        let mixed = |at: &dyn Fn(f64) -> f64| {
            let (low, high) = (at(place.floor()), at(place.floor() + 1.0));
            let log = low + libm::log1p((place - place.floor()) * libm::expm1(high - low));
            (log, 8.0 * unit * (low.abs() + high.abs()))
        };
        match *self {
            Self::Gaussian { moved } => {
                let (first, second) = (people * moved * place, (people * moved).powi(2) / 2.0);
                (first - second, 4.0 * unit * (first.abs() + second))
            }
            Self::Laplace { moved } => {
                let all = people * moved;
                ((2.0 * place - all).clamp(-all, all), 4.0 * unit * (place.abs() + all))
            }
            Self::DiscreteLaplace { moved, scale } => {
                let all = people * moved;
                mixed(&|place| (2.0 * place - all).clamp(-all, all) / scale)
            }
            Self::DiscreteGaussian { moved, variance } => {
                let all = people * moved;
                mixed(&|place| (2.0 * place - all) * all / (2.0 * variance))
            }
        }
    }

    /// Between which places ratios change, or are neither nothing nor too large for a double.
    fn ends(&self, people: f64) -> (f64, f64) {
        match *self {
            Self::Gaussian { moved } => {
                let all = people * moved;
                (-700.0 / moved, 690.0 / all + all / 2.0)
            }
            Self::Laplace { moved } => (0.0, people * moved),
            Self::DiscreteLaplace { moved, .. } => (0.0, people * moved),
            Self::DiscreteGaussian { moved, variance } => {
                let far = (38.0 * variance.sqrt()).floor() + 1.0;
                (-far, far + people * moved)
            }
        }
    }

    /// Whether ratios are the same everywhere beyond.
    fn ends_there(&self) -> bool {
        matches!(self, Self::Laplace { .. } | Self::DiscreteLaplace { .. })
    }
}

/// The place furthest from `inside`, where something was seen, towards `outside`, where it still is.
fn border(mut inside: f64, mut outside: f64, seen: impl Fn(f64) -> bool) -> f64 {
    if seen(outside) {
        return outside;
    }
    for _ in 0..1100 {
        let middle = (inside + outside) / 2.0;
        if middle == inside || middle == outside {
            break;
        }
        if seen(middle) { inside = middle } else { outside = middle }
    }
    inside
}

/// A composition of one is that one.
fn once(loss: &PrivacyLoss) -> &PrivacyLoss {
    match loss {
        PrivacyLoss::Composed { parts } => match parts.as_slice() {
            [part] if part.count == 1 => once(&part.loss),
            _ => loss,
        },
        _ => loss,
    }
}

/// C(k, j)·q^j·(1 − q)^(k−j) for all j.
fn binomial(people: u64, rate: &Rational) -> Vec<f64> {
    let rest = &Rational::one() - rate;
    let power = |base: &Rational, times: u64| (0..times).fold(Rational::one(), |product, _| &product * base);
    let mut ways = Rational::one();
    (0..=people)
        .map(|count| {
            let exact = &ways * &(&power(rate, count) * &power(&rest, people - count));
            ways = &(&ways * &Rational::from(people - count)) / &Rational::from(count + 1);
            exact.to_f64()
        })
        .collect()
}

fn grown(value: f64) -> f64 {
    value * (1.0 + SLACK)
}

fn shrunk(value: f64) -> f64 {
    value * (1.0 - SLACK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathering(loss: &str) -> Gathering {
        Gathering::of(&loss.parse().unwrap()).unwrap().unwrap()
    }

    fn q(value: f64) -> Rational {
        Rational::try_from(value).unwrap()
    }

    /// Σ over all outputs of (P − E·Q)⁺ and (Q − E·P)⁺, from the definition.
    fn by_hand(mass: impl Fn(i32) -> f64, moved: i32, people: i32, rate: f64, epsilon: f64) -> [f64; 2] {
        let mut ways = 1.0;
        let weights: Vec<f64> = (0..=people)
            .map(|count| {
                let here = ways * rate.powi(count) * (1.0 - rate).powi(people - count);
                ways *= f64::from(people - count) / f64::from(count + 1);
                here
            })
            .collect();
        let (mut removed, mut added) = (0.0, 0.0);
        for x in -400..=400 {
            let without = mass(x);
            let with: f64 = (0..=people).map(|count| weights[count as usize] * mass(x - count * moved)).sum();
            removed += (with - epsilon.exp() * without).max(0.0);
            added += (without - epsilon.exp() * with).max(0.0);
        }
        [removed, added]
    }

    #[test]
    fn whole_numbers_are_as_by_hand() {
        for (people, moved, rate) in [(2, 1, 0.1), (3, 2, 0.5), (5, 1, 0.01), (4, 3, 0.9)] {
            let tanh = libm::tanh(0.25);
            let whole: f64 = (-400..=400).map(|x: i32| libm::exp(-f64::from(x).powi(2) / 8.0)).sum();
            let laplace = |x: i32| tanh * libm::exp(-f64::from(x.abs()) / 2.0);
            let gaussian = |x: i32| libm::exp(-f64::from(x).powi(2) / 8.0) / whole;
            let named: [(&str, &dyn Fn(i32) -> f64); 2] =
                [("discrete_laplace(scale=2", &laplace), ("discrete_gaussian(sigma=2", &gaussian)];
            for (name, mass) in named {
                let noise =
                    gathering(&format!("group({people}, subsampled({rate}, {name}, sensitivity={moved})))"));
                for epsilon in [0.0, 0.01, 0.1, 0.7, 1.5] {
                    let found = [noise.removed(&q(epsilon)), noise.added(&q(epsilon))];
                    for (found, truth) in found.into_iter().zip(by_hand(mass, moved, people, rate, epsilon)) {
                        let off = 1e-12 * truth + 1e-15;
                        assert!(
                            found.lower <= truth + off
                                && truth <= found.upper + off
                                && found.upper - found.lower <= 10.0 * off,
                            "{people} {moved} {rate} {name} at {epsilon}: {truth} in {found:?}"
                        );
                    }
                }
            }
        }
    }

    /// Whatever the group does, it costs no more: people who move the answer less, or the other way.
    #[test]
    fn a_group_that_agrees_costs_most() {
        let (rate, moves) = (0.3f64, [[1, 1, -1], [1, 0, 1], [-1, 1, -1], [0, 0, 1], [1, 1, 1]]);
        let tanh = libm::tanh(0.25);
        let mass = |x: i32| tanh * libm::exp(-f64::from(x.abs()) / 2.0);
        let noise = gathering("group(3, subsampled(0.3, discrete_laplace(scale=2)))");
        for epsilon in [0.0, 0.05, 0.2, 0.4, 0.8] {
            let most = [noise.removed(&q(epsilon)).upper, noise.added(&q(epsilon)).upper];
            for moves in moves {
                let (mut removed, mut added) = (0.0, 0.0);
                for x in -200..=200 {
                    let with: f64 = (0..8)
                        .map(|set| {
                            let there = |person: usize| set >> person & 1 == 1;
                            let weight: f64 =
                                (0..3).map(|i| if there(i) { rate } else { 1.0 - rate }).product();
                            let moved: i32 = (0..3).filter(|&i| there(i)).map(|i| moves[i]).sum();
                            weight * mass(x - moved)
                        })
                        .sum();
                    removed += (with - epsilon.exp() * mass(x)).max(0.0);
                    added += (mass(x) - epsilon.exp() * with).max(0.0);
                }
                assert!(removed <= most[0] + 1e-14 && added <= most[1] + 1e-14, "{moves:?} at {epsilon}");
            }
        }
    }

    /// At the largest loss, k·ln(1 + q(e^ε − 1)), nothing is left, and just before it something is.
    #[test]
    fn the_largest_loss_is_the_last() {
        let noise = gathering("group(4, subsampled(0.1, laplace(scale=2)))");
        let top = 4.0 * libm::log1p(0.1 * libm::expm1(0.5));
        assert_eq!(noise.removed(&q(top * (1.0 + 1e-12))).upper, 0.0);
        let before = noise.removed(&q(top * (1.0 - 1e-9)));
        assert!(before.lower > 0.0 && before.upper < 1e-9, "{before:?}");
    }

    #[test]
    fn what_has_no_formula_is_left_to_others() {
        for loss in [
            "subsampled(0.1, gaussian(sigma=1))",
            "group(3, gaussian(sigma=1))",
            "group(3, subsampled(0.1, gaussian(sigma=1))*2)",
            "group(3, subsampled(0.1, pure(1)))",
            "group(3, subsampled(0.1, discrete_gaussian(sigma=5, dimensions=2)))",
            "group(3, subsampled(1, laplace(scale=1)))",
            "group(1000, subsampled(0.1, laplace(scale=1)))",
        ] {
            assert!(Gathering::of(&loss.parse().unwrap()).unwrap().is_none(), "{loss}");
        }
    }
}
