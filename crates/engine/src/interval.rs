//! [`Interval`]s: where the true answer lies, but for a chance of β.
//!
//! **One number.** The noise Z exceeds q(β) with probability at most β, so the truth is within q(β) of what is published. q is exact:
//! the least whole number with Pr\[|Z| > q\] ≤ β.
//!
//! **Sums.** For X = Σ aⱼ·Zⱼ of independent noises there is a bound that is never too small:
//!
//! ```text
//! Pr[|X| > Σ|aⱼ|/2 + q] ≤ Pr[|Y| > q],   Y = Σ aⱼ·Yⱼ,
//! Yⱼ Laplace of scale 1/(2·tanh(1/2t)) for Zⱼ of scale t,   Yⱼ normal of variance v + 1/4 for Zⱼ of variance v.
//! ```
//!
//! *Why.* With U uniform on ±½ and independent, |X| ≤ |Σ aⱼ(Zⱼ + Uⱼ)| + Σ|aⱼ|/2. Each Zⱼ + Uⱼ is symmetric with one peak, and more
//! peaked than Yⱼ: Pr\[|Z + U| > s\] ≤ Pr\[|Y| > s\] for all s. For Laplace noise the left side is r^k·(1 − 2u·tanh(1/2t)) at
//! s = k + u, |u| ≤ ½, and 1 − x ≤ e^(−x). For Gaussian noise it is tested, from the middle to where nothing is left. Sums of
//! symmetric variables with one peak keep that order \[Birnbaum1948\].
//!
//! *Formula.* The characteristic function of Laplace terms of scales b₁, …, b_k is ∏ 1/(1 + bⱼ²t²) = Σ wⱼ/(1 + bⱼ²t²) with
//! wⱼ = ∏_{i≠j} bⱼ²/(bⱼ² − bᵢ²): that of one Laplace term, chosen with "probability" wⱼ. So Pr\[|Y| > q\] = Σ wⱼ·Pr\[|Yⱼ + N| > q\] with the normal
//! term N. Scales that are nearly equal are first moved apart, upwards. Beyond six terms the smallest count as normal ones of their
//! variance.
//!
//! **Ratios.** The true ratio r of sum S and count N satisfies |Ŝ − r·N̂| ≤ q(r) but for a chance of β, where q(r) belongs to the noise
//! of S − r·N: so r is in the set of all that do \[Fieller1954\]. q grows by at most its value q∞ for N's noise alone per unit of r. If
//! N̂ > q∞ the set is an interval, since r·N̂ ∓ q(r) grows with r; else nothing is known but the bounds.
//!
//! **Exactness.** Doubles: intervals are about answers, not about privacy.
//!
//! **References.** \[Birnbaum1948\], \[Fieller1954\].

use crate::EngineError;
use crate::noise::Noise;

/// From `low` to `high`, both included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
}

impl Interval {
    /// From a reach below the middle to one above it.
    pub fn around(middle: f64, reach: f64) -> Self {
        Self { low: middle - reach, high: middle + reach }
    }

    /// What of it lies between bounds that are known; where nothing does, the nearer bound.
    #[must_use]
    pub fn within(self, low: f64, high: f64) -> Self {
        Self { low: self.low.clamp(low, high), high: self.high.clamp(low, high) }
    }

    /// high − low.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }
}

/// By how much Σ aⱼ·yⱼ is off at most, but for a chance of β, for noisy whole numbers yⱼ whose noises are independent.
///
/// ```
/// # use demur_core::{Epsilon, Guarantee, Sensitivity};
/// # use demur_engine::{Interval, Item, Preference, Wish, reach};
/// # let one = Item::new("x", 1, Sensitivity::scalar("1".parse()?)?);
/// # let guarantee = Guarantee::pure(Epsilon::new(1.0)?);
/// # let wish = Wish { items: vec![one.clone(), one], keys: None, guarantee, preference: Preference::Any };
/// # let priced = wish.price()?;
/// # let (sum, count) = (&priced.noises()[0], &priced.noises()[1]);
/// // A sum that was published as deviations from 40, and a count: 200 + 40·10.
/// let interval = Interval::around(600.0, reach(&[(1.0, sum), (40.0, count)], 0.05)?);
/// assert!(interval.low < 600.0 && interval.high > 600.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn reach(terms: &[(f64, &Noise)], beta: f64) -> Result<f64, EngineError> {
    if let [(factor, noise)] = terms {
        return Ok(factor.abs() * noise.quantile(beta)?);
    }
    let mut spread = Spread::default();
    terms.iter().for_each(|(factor, noise)| spread.add(*factor, noise));
    spread.quantile(beta)
}

/// Intervals for averages: centre + S/N, where S is a noisy sum of deviations from the centre and N a noisy count.
#[derive(Clone, Debug)]
pub struct Ratio {
    centre: f64,
    /// r from the lower bound to the upper, both seen from the centre, with q(r).
    reach: Vec<(f64, f64)>,
    /// q∞.
    count: f64,
}

/// Between so many places q(r) is interpolated; it is convex, so that the chord is never below it.
const PLACES: usize = 128;

impl Ratio {
    /// For values between `low` and `high`, deviations from `centre`; all in steps.
    pub fn new(
        sum: &Noise,
        count: &Noise,
        [low, centre, high]: [f64; 3],
        beta: f64,
    ) -> Result<Self, EngineError> {
        Self::of_spreads(&Spread::of(sum), &Spread::of(count), [low, centre, high], beta)
    }

    /// The same for sums and counts that were made of several noisy numbers.
    pub(crate) fn of_spreads(
        sum: &Spread,
        count: &Spread,
        [low, centre, high]: [f64; 3],
        beta: f64,
    ) -> Result<Self, EngineError> {
        let place = |i: usize| low - centre + (high - low) * i as f64 / PLACES as f64;
        let at = |r: f64| Ok((r, Spread::sum(&[(1.0, sum), (r, count)]).quantile(beta)?));
        let reach = (0..=PLACES).map(place).map(at).collect::<Result<_, EngineError>>()?;
        Ok(Self { centre, reach, count: count.quantile(beta)? })
    }

    /// The average, within its bounds.
    pub fn value(&self, sum: i128, count: i128) -> f64 {
        let [low, high] = self.ends();
        (sum as f64 / (count as f64).max(1.0)).clamp(low, high) + self.centre
    }

    /// Where the true average lies.
    pub fn interval(&self, sum: i128, count: i128) -> Interval {
        let [low, high] = self.ends();
        let (s, n) = (sum as f64, count as f64);
        if n <= self.count {
            return Interval { low: low + self.centre, high: high + self.centre };
        }
        // The largest r with r·N − S ≤ q(r), and the least with S − r·N ≤ q(r): both sides grow with r.
        let above = self.zero(|r, reach| r * n - s - reach);
        let below = self.zero(|r, reach| r * n - s + reach);
        Interval { low: below.min(above) + self.centre, high: below.max(above) + self.centre }
    }

    /// Where a growing function of r and q(r) is 0, or the end that is nearer to it; q(r) on chords is never less than q(r).
    fn zero(&self, value: impl Fn(f64, f64) -> f64) -> f64 {
        let at = |(r, reach): (f64, f64)| value(r, reach);
        let next = self.reach.partition_point(|place| at(*place) < 0.0);
        let [low, high] = self.ends();
        if next == 0 || next > PLACES {
            return if next == 0 { low } else { high };
        }
        let (left, right) = (self.reach[next - 1], self.reach[next]);
        let (a, b) = (at(left), at(right));
        if b > a { left.0 + (right.0 - left.0) * (-a / (b - a)) } else { right.0 }
    }

    fn ends(&self) -> [f64; 2] {
        let end = |place: Option<&(f64, f64)>| place.map_or(0.0, |place| place.0);
        [end(self.reach.first()), end(self.reach.last())]
    }
}

/// Y of the module text, and Σ|aⱼ|/2: the law of a weighted sum of independent noises, from above.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spread {
    /// Largest first.
    scales: Vec<f64>,
    variance: f64,
    rounding: f64,
}

/// So many Laplace terms are told apart.
const APART: usize = 6;
/// Their scales differ by at least this factor, so that few digits cancel among the weights.
const GAP: f64 = 1.01;

impl Spread {
    /// The law of one noise.
    pub(crate) fn of(noise: &Noise) -> Self {
        let mut spread = Self::default();
        spread.add(1.0, noise);
        spread
    }

    /// The law of Σ aⱼ·Xⱼ for independent Xⱼ.
    pub(crate) fn sum(terms: &[(f64, &Self)]) -> Self {
        let mut sum = Self::default();
        for (factor, term) in terms.iter().filter(|term| term.0 != 0.0) {
            sum.rounding += factor.abs() * term.rounding;
            sum.variance += factor * factor * term.variance;
            sum.scales.extend(term.scales.iter().map(|scale| factor.abs() * scale));
        }
        sum.scales.sort_by(|a, b| b.total_cmp(a));
        sum
    }

    /// The law of a weighted sum of many noises, rounded once, as if they were continuous.
    pub(crate) fn blend(terms: &[(f64, &Noise)]) -> Self {
        let mut blend = Self { rounding: 0.5, ..Self::default() };
        let most = terms.iter().map(|(factor, _)| factor.abs()).fold(0.0, f64::max);
        // Weights that are nothing but rounding.
        for (factor, noise) in terms.iter().filter(|(factor, _)| factor.abs() > 1e-9 * most) {
            match noise {
                Noise::Gaussian { .. } => blend.variance += (factor * noise.standard_deviation()).powi(2),
                _ => blend
                    .scales
                    .push(factor.abs() * noise.standard_deviation() * std::f64::consts::FRAC_1_SQRT_2),
            }
        }
        blend.scales.sort_by(|a, b| b.total_cmp(a));
        blend
    }

    /// Adds a term.
    pub(crate) fn add(&mut self, factor: f64, noise: &Noise) {
        if factor == 0.0 {
            return;
        }
        self.rounding += factor.abs() / 2.0;
        match noise {
            Noise::Laplace { mechanism, .. } => self.add_laplace(factor, mechanism.noise().scale().to_f64()),
            Noise::Truncated { mechanism, .. } => {
                self.add_laplace(factor, mechanism.noise().scale().to_f64())
            }
            Noise::Gaussian { mechanism, .. } => {
                self.variance += factor * factor * (mechanism.noise().variance().to_f64() + 0.25);
            }
        }
    }

    fn add_laplace(&mut self, factor: f64, scale: f64) {
        self.scales.push(factor.abs() * peaked_scale(scale));
        self.scales.sort_by(|a, b| b.total_cmp(a));
    }

    /// Where Y is with a chance of (i + ½)/n to lie further left, for i = 0, …, n − 1.
    pub(crate) fn places(&self, n: usize) -> Result<Vec<f64>, EngineError> {
        let mut places = vec![0.0; n];
        for i in 0..n / 2 {
            let outside = (2 * i + 1) as f64 / n as f64;
            let far = self.quantile(outside)? - self.rounding;
            (places[i], places[n - 1 - i]) = (-far, far);
        }
        Ok(places)
    }

    /// By how much X is off, but for a chance of β.
    pub(crate) fn quantile(&self, beta: f64) -> Result<f64, EngineError> {
        if !(beta > 0.0 && beta < 1.0) {
            let text = format!("the chance of a larger error must lie between 0 and 1, but it is {beta}");
            return Err(EngineError::new("engine.interval.beta", text));
        }
        let apart = self.scales.len().min(APART);
        let small = self.scales[apart..].iter().map(|scale| 2.0 * scale * scale).sum::<f64>();
        let deviation = (self.variance + small).sqrt();
        let terms = weights(&self.scales[..apart]);
        let size = deviation + terms.iter().map(|term| term.0).sum::<f64>();
        let reach = match terms.as_slice() {
            [] if deviation == 0.0 => 0.0,
            [] => least(beta, size, |q| normal(q / deviation)),
            [(b, _)] if deviation == 0.0 => b * libm::log(1.0 / beta),
            _ if deviation == 0.0 => {
                least(beta, size, |q| terms.iter().map(|(b, weight)| weight * libm::exp(-q / b)).sum())
            }
            _ => least(beta, size, |q| {
                terms.iter().map(|(b, weight)| weight * laplace_and_normal(q, *b, deviation)).sum()
            }),
        };
        Ok(self.rounding + reach)
    }
}

/// Scales, moved apart, with the weights of the module text.
fn weights(scales: &[f64]) -> Vec<(f64, f64)> {
    let mut apart: Vec<f64> = scales.to_vec();
    for at in (0..apart.len().saturating_sub(1)).rev() {
        apart[at] = apart[at].max(apart[at + 1] * GAP);
    }
    let weight = |at: usize| {
        let factor = |(other, scale): (usize, &f64)| {
            // b²/(b² − c²), by the ratio of scales.
            if other == at { 1.0 } else { 1.0 / (1.0 - (scale / apart[at]).powi(2)) }
        };
        apart.iter().enumerate().map(factor).product()
    };
    (0..apart.len()).map(|at| (apart[at], weight(at))).collect()
}

/// The scale of the continuous law that Z + U is more peaked than.
fn peaked_scale(scale: f64) -> f64 {
    0.5 / libm::tanh(0.5 / scale)
}

/// The least q with tail(q) ≤ β, or a little more: at most a share of 10⁻¹⁰.
///
/// By chords of ln tail, which is nearly straight; the end that stays is given half its weight, so that both come nearer (the Illinois rule).
fn least(beta: f64, size: f64, tail: impl Fn(f64) -> f64) -> f64 {
    let excess = |q: f64| {
        let tail = tail(q);
        let is_more = tail > beta;
        // Where digits cancel, what is left of a tail may not be above 0.
        (!is_more, libm::log(tail.max(f64::MIN_POSITIVE) / beta))
    };
    let (mut low, mut high) = (0.0, size.max(f64::MIN_POSITIVE));
    let (mut at_low, mut at_high) = (excess(low).1, excess(high));
    while !at_high.0 && high < 1e300 {
        (low, high, at_low) = (high, high * 2.0, at_high.1);
        at_high = excess(high);
    }
    let mut at_high = at_high.1;
    let mut last = None;
    for step in 0..100 {
        if high - low <= 1e-10 * high {
            break;
        }
        let chord = low + (high - low) * at_low / (at_low - at_high);
        let inside = chord > low && chord < high && step < 30;
        let next = if inside { chord } else { (low + high) / 2.0 };
        let (is_enough, value) = excess(next);
        let stayed = last == Some(is_enough);
        if is_enough {
            (high, at_high) = (next, value);
            at_low /= if stayed { 2.0 } else { 1.0 };
        } else {
            (low, at_low) = (next, value);
            at_high /= if stayed { 2.0 } else { 1.0 };
        }
        last = Some(is_enough);
    }
    high
}

/// Pr[|N| > x].
fn normal(x: f64) -> f64 {
    libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2)
}

/// Pr[|L + N| > q] for Laplace L of scale b and normal N of deviation s.
///
/// With x = q/s and y = s/b it is 2Φ(−x) + e^(y²/2 − q/b)·Φ(x − y) − e^(y²/2 + q/b)·Φ(−x − y).
fn laplace_and_normal(q: f64, b: f64, s: f64) -> f64 {
    let (x, y) = (q / s, s / b);
    let height = libm::exp(-x * x / 2.0) / 2.0;
    let near = match x > y {
        true => libm::exp(y * y / 2.0 - q / b) * (1.0 - normal(x - y) / 2.0),
        false => height * scaled_erfc((y - x) * std::f64::consts::FRAC_1_SQRT_2),
    };
    normal(x) + near - height * scaled_erfc((x + y) * std::f64::consts::FRAC_1_SQRT_2)
}

/// e^(x²)·erfc(x) for x ≥ 0.
fn scaled_erfc(x: f64) -> f64 {
    if x < 4.0 {
        return libm::exp(x * x) * libm::erfc(x);
    }
    let fraction = (1..30).rev().fold(x, |rest, k| x + f64::from(k) / 2.0 / rest);
    1.0 / (fraction * std::f64::consts::PI.sqrt())
}

#[cfg(test)]
mod tests;
