//! [`Moment`]: M(w) in one panel of the path, by the trapezoid rule on one [`Line`].
//!
//! **Error.** On lines whose β₀ is larger and smaller by Δ, the same integral is at most B₊ and B₋; these are the sides of a
//! strip of half-width d = Δ/(μ(1 + k²)) in s, in which the integrand is analytic, so the rule with step η is off by at
//! most (B₊ + B₋)/(e^(2πd/η) − 1). All bounds are taken at the corners of the panel's rectangle, and hold inside.
//!
//! **Rounding.** A place is off by units of |s|, and v by units of |ln|v|| and of μ|s₀|; e^(wΛ) by those of |wΛ| as often.
//!
//! **References.** \[Trefethen2014\] for the trapezoid rule.

use std::f64::consts::PI;

use num_complex::Complex64;

use super::line::{Line, Noise, Place};
use crate::nodes::UNIT;

/// By how much less than the integral what is cut off shall be, as a power of e.
const DEPTH: f64 = 36.0;
/// The largest β₀, which leaves room for the strip, and the largest slope.
const MOST: (f64, f64) = (2.2, 0.48);
/// Terms below e^(−45) of the largest are not computed.
const NEGLIGIBLE: f64 = -45.0;

/// See the module text.
pub(super) struct Moment {
    noise: Noise,
    places: Vec<Place>,
    /// (1 + ik)·η/√(2π).
    unit: Complex64,
    /// What the rule misses and what is cut off.
    missing: f64,
}

impl Moment {
    /// For w in the polygon with the given corners.
    pub(super) fn new(noise: Noise, line: &Line, corners: &[Complex64]) -> Option<Self> {
        let level = level(&noise, line, corners);
        let room = 2.85 - 0.7 * line.slope - line.angle;
        let strip = (0.4 * PI).min(room).min(2.5 * noise.mu);
        let side = |sign: f64| {
            let line = Line { angle: line.angle + sign * strip, ..*line };
            Some(line.log_bounds(&noise, corners, level)?.into_iter().fold(f64::NEG_INFINITY, f64::max))
        };
        let sides = side(1.0)?.max(side(-1.0)?) + std::f64::consts::LN_2;
        let width = strip / noise.mu / (1.0 + line.slope.powi(2));
        let step = 2.0 * PI * width / (sides - level + 1.0).max(5.0);
        let places = line.places(&noise, step, corners, level)?;
        let missed = 1.01 * libm::exp(sides - 2.0 * PI * width / step);
        let missing = missed + 2.0 * (1.0 + step) * libm::exp(level);
        let unit = Complex64::new(1.0, line.slope) / (1.0 + line.slope.powi(2)).sqrt();
        Some(Self { noise, places, unit: unit * libm::exp(line.log_constant()) * step, missing })
    }

    /// ln of (1 − q)^w·M(w), and by how much it may be off.
    pub(super) fn at(&self, w: Complex64) -> (Complex64, f64) {
        let peak = self.places.iter().map(|place| place.height(w)).fold(f64::NEG_INFINITY, f64::max);
        let (mut sum, mut units) = (Complex64::ZERO, 0.0);
        let centre = self.noise.mu * self.noise.centre().abs();
        for place in self.places.iter().filter(|place| place.height(w) - peak > NEGLIGIBLE) {
            let exponent = w * place.log + place.bell - peak;
            let (sin, cos) = libm::sincos(exponent.im);
            let size = libm::exp(exponent.re);
            sum += Complex64::new(size * cos, size * sin);
            let turns = w.norm() * place.log.norm() * (8.0 + 4.0 * (place.size.0.abs() + centre));
            units += size * (16.0 + 0.25 * self.places.len() as f64 + turns + 4.0 * place.bell.norm());
        }
        let skipped = self.places.len() as f64 * libm::exp(NEGLIGIBLE);
        let error = (units * UNIT + skipped) * self.unit.norm() + self.missing * libm::exp(-peak);
        let sum = sum * self.unit;
        let share = error / sum.norm();
        let rate = w * libm::log1p(-self.noise.rate);
        let log = sum.ln() + peak;
        let rounding = 8.0 * UNIT * (2.0 + log.norm() + rate.norm());
        (log + rate, if share < 0.1 { 1.1 * share + rounding } else { f64::INFINITY })
    }

    /// The mean of Λ, and its variance, with weights e^(wΛ)φ; about.
    pub(super) fn mean_and_variance(&self, w: Complex64) -> (Complex64, Complex64) {
        let peak = self.places.iter().map(|place| place.height(w)).fold(f64::NEG_INFINITY, f64::max);
        let mut sums = [Complex64::ZERO; 3];
        for place in &self.places {
            let term = (w * place.log + place.bell - peak).exp();
            sums[0] += term;
            sums[1] += term * place.log;
            sums[2] += term * place.log * place.log;
        }
        let mean = sums[1] / sums[0];
        (mean, sums[2] / sums[0] - mean * mean)
    }
}

/// ln of what may be cut off.
pub(super) fn level(noise: &Noise, line: &Line, corners: &[Complex64]) -> f64 {
    let middle = corners.iter().sum::<Complex64>() / corners.len() as f64;
    line.abouts(noise, &[middle])[0] - DEPTH
}

/// A line with a small bound at the corners of a panel, `fall` for how the rest of the integrand falls in Re w.
///
/// Every line is valid, so nothing about the search must be proven. A line that is not steep enough has to be followed
/// far to the right, which costs time.
pub(super) fn best_line(noise: &Noise, before: &Line, corners: &[Complex64], fall: f64) -> Line {
    let cost = |line: &Line| {
        let push = corners.iter().map(|w| w.re - line.slope * w.im).fold(0.0, f64::max);
        let heights = corners.iter().zip(line.abouts(noise, corners)).map(|(w, about)| about - w.re * fall);
        heights.fold(f64::NEG_INFINITY, f64::max) + 0.05 * push * noise.mu
    };
    let farthest = corners.iter().map(|w| w.norm()).fold(1.0, f64::max);
    let steepest = corners.iter().map(|w| w.re / w.im.max(1e-9)).fold(0.0, f64::max);
    let slope = if steepest > 1.0 { 0.0 } else { (1.1 * steepest).min(MOST.1) };
    let guess = Line::new((0.8 + slope * farthest.ln()).min(MOST.0), slope);
    let mut best = (cost(before), *before);
    let mut try_line = |line: Line| {
        let value = cost(&line);
        if value < best.0 {
            best = (value, line);
        }
        best.1
    };
    let (mut here, mut scale) = (try_line(guess), 1.0);
    for _ in 0..8 {
        let start = here;
        for (angle, slope) in [(0.3, 0.0), (-0.3, 0.0), (0.0, 0.06), (0.0, -0.06)] {
            let angle = (start.angle + scale * angle).clamp(0.0, MOST.0);
            here = try_line(Line::new(angle, (start.slope + scale * slope).clamp(0.0, MOST.1)));
        }
        match (here == start, scale < 1.0) {
            (true, true) => break,
            (true, false) => scale = 0.5,
            _ => {}
        }
    }
    here
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOISES: [Noise; 3] = [
        Noise { mu: 1.0, rate: 0.01, count: 1.0 },
        Noise { mu: 0.25, rate: 0.3, count: 1.0 },
        Noise { mu: 2.0, rate: 0.1, count: 1.0 },
    ];

    /// M is one function, whichever line it is integrated along.
    #[test]
    fn the_moment_does_not_depend_on_the_line() {
        let lines = [Line::new(0.0, 0.0), Line::new(0.6, 0.0), Line::new(1.0, 0.2), Line::new(1.8, 0.3)];
        for noise in NOISES {
            for w in [Complex64::new(5.0, 0.0), Complex64::new(3.0, 12.0), Complex64::new(-2.0, 7.0)] {
                let found: Vec<_> =
                    lines.iter().filter_map(|line| Some(Moment::new(noise, line, &[w])?.at(w))).collect();
                let known: Vec<_> = found.iter().filter(|(_, error)| *error < 1e-6).collect();
                assert!(known.len() >= 2, "{noise:?} {w}");
                for (log, error) in &known {
                    let off = (log - known[0].0).exp() - 1.0;
                    assert!(off.norm() <= error + known[0].1, "{noise:?} {w}: {log} {error}, {:?}", known[0]);
                }
            }
        }
    }

    /// M(1) = 1/(1 − q), as r has the mean 1.
    #[test]
    fn the_first_moment_is_known() {
        for noise in NOISES {
            for line in [Line::new(0.0, 0.0), Line::new(0.9, 0.1)] {
                let (log, error) = Moment::new(noise, &line, &[Complex64::ONE]).unwrap().at(Complex64::ONE);
                assert!(log.norm() <= error && error < 1e-11, "{noise:?} {line:?}: {log} {error}");
            }
        }
    }

    #[test]
    fn bounds_are_above_the_moment_and_convex() {
        for noise in NOISES {
            for line in [Line::new(0.0, 0.0), Line::new(1.2, 0.2), Line { kept: true, ..Line::new(1.2, 0.2) }]
            {
                let ws = [2.0, 6.0, 10.0].map(|x| Complex64::new(x / 2.0, x));
                let level = level(&noise, &line, &ws);
                let bounds = line.log_bounds(&noise, &ws, level).unwrap();
                for (w, bound) in ws.iter().zip(&bounds) {
                    let (log, _) = Moment::new(noise, &Line::new(0.6, 0.0), &[*w]).unwrap().at(*w);
                    let log = log.re - w.re * libm::log1p(-noise.rate);
                    assert!(log <= *bound, "{noise:?} {line:?} {w}: {log} {bound}");
                }
                // upper sums are a little above
                assert!(bounds[1] <= (bounds[0] + bounds[2]) / 2.0 + 0.1, "{bounds:?}");
            }
        }
    }

    /// What the ray needs.
    #[test]
    fn a_line_kept_above_the_axis_has_a_bound_that_falls() {
        for noise in NOISES {
            let line = Line { kept: true, ..Line::new(1.5, 0.3) };
            for index in -400..400 {
                assert!(line.at(&noise, f64::from(index) / 20.0).log.im >= 0.0, "{noise:?} {index}");
            }
            let at = |b: f64| {
                let w = Complex64::new(4.0, b);
                line.log_bounds(&noise, &[w], level(&noise, &line, &[w])).unwrap()[0]
            };
            assert!(at(10.0) > at(20.0) && at(20.0) > at(50.0));
        }
    }
}
