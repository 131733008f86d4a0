//! [`Start`]: where the path leaves the real axis, and about which ε belongs to a δ.
//!
//! **Definition.** For z = c > 0 let h(c) = ln((F(c) − 1)/(c(c + 1))). That is ln of ∫ e^(cx)·D(x) dx for
//! D(x) = δ(x) − (1 − e^x)⁺, which is not negative; so h is convex. The path for ε starts where h(c) − cε is least, and there
//! δ is about e^(h − cε)/√(2πh″).
//!
//! **Exactness.** None: every start is valid, and guesses are only tried.

use std::f64::consts::{LN_2, PI};

use num_complex::Complex64;

use super::beside::Beside;
use super::line::{Line, Noise};
use super::log_add;
use super::near_one::exp_less_two;

/// The least and the largest c.
const ENDS: (f64, f64) = (0.25, 1e7);
/// What is as good as the lowest, as a power of e.
const FLAT: f64 = 0.3;
const STEP: f64 = 0.125;
/// Room to the right of a start: much, and as little as may do where many digits are worth it.
pub(super) const ROOMY: f64 = 2.0;
pub(super) const TIGHT: f64 = 1.2;
/// How far below what is wanted something must be to be small, as a power of e.
const ROOM: f64 = 6.0;

/// See the module text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) tilt: f64,
    /// h″(c).
    pub(crate) curvature: f64,
    /// About ln δ, and the ε it is for.
    pub(crate) log_delta: f64,
    pub(crate) epsilon: f64,
}

impl Start {
    /// The start for an ε, or where there is more beside the noise, for how much that has moved.
    ///
    /// At `room` times as large a c, losses too rare for everything else must not count yet.
    pub(super) fn for_epsilon(noises: &[Noise], beside: &Beside, epsilon: f64, room: f64) -> Self {
        let add = beside.is_added();
        let part = |tilt: f64, end: f64| {
            part(noises, add, tilt, end) + beside.log(if add { -tilt } else { tilt + 1.0 })
        };
        let lowest_for = |end: f64| {
            let height = |log_c: f64| part(libm::exp(log_c), end) - libm::exp(log_c) * epsilon;
            lowest(height, (ENDS.0.ln(), ENDS.1.ln()))
        };
        let end_for = |epsilon: f64| {
            let place = |noise: &Noise| noise.place_of(epsilon) + 8.0;
            noises.iter().map(place).fold(14.0, f64::max)
        };
        let mut end = end_for(epsilon);
        let mut log_c = lowest_for(end);
        if !beside.is_nothing() {
            let tilt = libm::exp(log_c);
            let usual = beside.mean(Complex64::from(if add { -tilt } else { tilt + 1.0 })).re;
            end = end_for(epsilon + usual);
            log_c = lowest_for(end);
        }
        let height = |log_c: f64| part(libm::exp(log_c), end) - libm::exp(log_c) * epsilon;
        let start = Self::at(|tilt| part(tilt, end), libm::exp(log_c), Some(epsilon));
        // further left where losses would count that are too rare for everything else
        let mut tilt = start.tilt;
        let counts = |tilt: f64| part(tilt, f64::INFINITY) > part(tilt, end) + 0.1;
        while counts(room * tilt) && tilt > ENDS.0 {
            tilt *= 0.7;
        }
        // and as long as that costs nothing
        let most = height(tilt.ln()) + FLAT;
        while tilt > 2.0 * ENDS.0 && tilt > start.tilt / 4.0 && height((tilt / 2.0).ln()) <= most {
            tilt /= 2.0;
        }
        Self { tilt, ..start }
    }

    /// A start further left, where what it is for is small against what is wanted: then the path is good for other ε as well.
    pub(super) fn eased(self, noises: &[Noise], beside: &Beside, goal: f64) -> Self {
        let add = beside.is_added();
        let height = |tilt: f64| {
            part(noises, add, tilt, f64::INFINITY) + beside.log(if add { -tilt } else { tilt + 1.0 })
        };
        let mut tilt = self.tilt;
        while tilt > 2.0 * ENDS.0 && height(tilt / 2.0) < goal - ROOM {
            tilt /= 2.0;
        }
        let eased = Self::at(height, tilt, Some(0.0));
        if tilt < self.tilt && eased.curvature.is_finite() && eased.curvature > 0.0 { eased } else { self }
    }

    /// The start for a δ.
    pub(super) fn for_delta(noises: &[Noise], add: bool, log_delta: f64) -> Self {
        let end = (2.0 * (45.0 - log_delta)).sqrt().max(14.0);
        let (mut low, mut high) = (ENDS.0.ln(), ENDS.1.ln());
        for _ in 0..24 {
            let middle = (low + high) / 2.0;
            let here = Self::at(|tilt| part(noises, add, tilt, end), libm::exp(middle), None);
            if here.log_delta > log_delta { low = middle } else { high = middle }
        }
        Self::at(|tilt| part(noises, add, tilt, end), libm::exp(low), None)
    }

    /// At c, for the ε that belongs to it or for another one, from h.
    fn at(part: impl Fn(f64) -> f64, tilt: f64, epsilon: Option<f64>) -> Self {
        let step = 0.03 * tilt;
        let [before, here, after] = [-step, 0.0, step].map(|moved| part(tilt + moved));
        let epsilon = epsilon.unwrap_or((after - before) / (2.0 * step));
        let curvature = ((after - 2.0 * here + before) / (step * step)).abs();
        let log_delta = here - tilt * epsilon - 0.5 * (2.0 * PI * curvature).ln();
        // what is no number is too far right
        let log_delta = if log_delta.is_finite() { log_delta } else { f64::NEG_INFINITY };
        Self { tilt, curvature, log_delta, epsilon }
    }
}

/// Where a function that falls and then rises is least; about.
fn lowest(height: impl Fn(f64) -> f64, (mut low, mut high): (f64, f64)) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    let inner = |low: f64, high: f64| (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
    let (mut left, mut right) = inner(low, high);
    let (mut at_left, mut at_right) = (height(left), height(right));
    while high - low > 0.05 {
        if at_left < at_right || at_right.is_nan() {
            high = right;
            (right, at_right) = (left, at_left);
            left = inner(low, high).0;
            at_left = height(left);
        } else {
            low = left;
            (left, at_left) = (right, at_right);
            right = inner(low, high).1;
            at_right = height(right);
        }
    }
    (low + high) / 2.0
}

/// About h(c), of outputs up to an end.
fn part(noises: &[Noise], add: bool, tilt: f64, end: f64) -> f64 {
    let w = if add { -tilt } else { tilt + 1.0 };
    let log: f64 = noises.iter().map(|noise| noise.count * log_moment(noise, w, end)).sum();
    // ln(F − 1)
    log + libm::log(-libm::expm1(-log)) - (tilt * (tilt + 1.0)).ln()
}

/// About ln K for real w, from K − 1 = ∫ (r^w − 1 − w(r − 1))·φ dx, in which nothing is negative.
fn log_moment(noise: &Noise, w: f64, end: f64) -> f64 {
    let line = Line::new(0.0, 0.0);
    let height = |x: f64| {
        let log = line.at(noise, x).log.re;
        let rise = if w * log < 300.0 {
            let less = |log: f64| exp_less_two(Complex64::from(log)).0.re;
            (less(w * log) - w * less(log)).max(0.0).ln()
        } else {
            w * log
        };
        rise - x * x / 2.0
    };
    let count = ((end.min(14.0) + 9.0) / STEP) as i32;
    let near = (0..=count).map(|index| height(-9.0 + STEP * f64::from(index)));
    // a second hump, further right
    let far = (w * noise.mu).min(end);
    let beyond = (far > 14.0).then(|| (0..40).map(move |index| far + f64::from(index - 30) * STEP));
    let beyond = beyond.into_iter().flatten().filter(|x| *x > 14.0 && *x <= end).map(height);
    let heights: Vec<f64> = near.chain(beyond).collect();
    let peak = heights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = heights.iter().map(|height| libm::exp(height - peak)).sum();
    let log = peak + (sum * STEP / (2.0 * PI).sqrt()).ln();
    if log > LN_2 { log_add(log, 0.0) } else { libm::log1p(libm::exp(log)) }
}

/// About the ε at which Gaussian noise with the variance of all losses would have this δ, or 0: δ ≈ √V·φ(a)/a² at ε = a√V.
pub(super) fn usual(noises: &[Noise], log_delta: f64) -> f64 {
    let deviation = noises.iter().map(|noise| noise.count * noise.square()).sum::<f64>().sqrt();
    let room = deviation.ln() - log_delta - 0.5 * (2.0 * PI).ln();
    let mut a = 1.0;
    for _ in 0..8 {
        a = (2.0 * (room - 2.0 * f64::ln(a))).max(0.01).sqrt();
    }
    if room > 1.0 { a * deviation } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K(2) = 1 + q²(e^(μ²) − 1).
    #[test]
    fn moments_are_about_right() {
        for (mu_squared, rate) in [(1.0, 1e-4), (4.0, 1e-2), (0.04, 1e-6)] {
            let noise = Noise::new(mu_squared, rate, 1.0);
            let exact = libm::log1p(noise.square());
            assert!(
                (log_moment(&noise, 2.0, f64::INFINITY) / exact - 1.0).abs() < 1e-6,
                "{mu_squared} {rate}"
            );
        }
    }

    /// Where usual losses are all that counts, the guess is that of Gaussian noise.
    #[test]
    fn guesses_are_of_the_right_size() {
        let noises = [Noise::new(0.04, 0.01, 1000.0)];
        let deviation = (1000.0 * noises[0].square()).sqrt();
        for log_delta in [-10.0, -20.0] {
            let guesses = [Start::for_delta(&noises, false, log_delta).epsilon, usual(&noises, log_delta)];
            let start = Start::for_epsilon(&noises, &Beside::nothing(false), guesses[0], ROOMY);
            assert!((start.log_delta - log_delta).abs() < 1.0, "{start:?}");
            assert!(
                guesses.iter().all(|guess| (2.0..8.0).contains(&(guess / deviation))),
                "{guesses:?} {deviation}"
            );
            assert!((guesses[0] / guesses[1] - 1.0).abs() < 0.3, "{guesses:?}");
        }
    }
}
