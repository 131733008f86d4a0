//! [`Line`]: the moments of Gaussian noise on a sample, integrated along a line in the complex plane.
//!
//! **Definition.** With v(x) = q/(1 − q)·e^(μx − μ²/2) and Λ = ln(1 + v),
//!
//! ```text
//! ∫ r(x)^w·φ(x) dx = (1 − q)^w·M(w),    M(w) = ∫ e^(wΛ(x))·φ(x) dx
//! ```
//!
//! 1 + v is zero only at Re x = s₀, where |v| = 1, and μ·Im x an odd multiple of π. So the integral may be taken along any
//! line x = s + i·β(s)/μ with β(s) = β₀ + kμ(s − s₀), |β₀| < π and |k| < 1; Λ is continued along it.
//!
//! **Bound.** |M(w)| ≤ B(w) = ∫ e^(Re w·Re Λ − Im w·Im Λ)·|φ|·√(1 + k²) ds: an integral of exponentials that are linear in
//! (Re w, Im w), so ln B is convex, and the largest value in a polygon is at one of its corners.
//!
//! **Upper sums.** The integrand is e^h with |h″| ≤ (1 + k²)·(1 + |w|μ²·|v/(1 + v)²|) and |v/(1 + v)²| = 1/(2(cosh ln|v| + cos β)).
//! In a cell of width η it is at most e^(max of the ends + η²/8·sup|h″|), with η/4 times the jump of h′ where there is one.
//! Beyond both ends h falls at least like |s|.

use std::f64::consts::{FRAC_PI_2, LN_2};

use num_complex::Complex64;

/// Gaussian noise on a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    pub(super) mu: f64,
    pub(super) rate: f64,
    pub(super) count: f64,
}

impl Noise {
    /// Where |v| = 1.
    pub(super) fn centre(&self) -> f64 {
        (libm::log1p(-self.rate) - self.rate.ln()) / self.mu + self.mu / 2.0
    }
}

/// See the module text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    /// β₀.
    pub(super) angle: f64,
    /// k.
    pub(super) slope: f64,
    /// Whether β is kept at 0 where it would be below; then the line has a corner, and is for bounds alone.
    pub(super) kept: bool,
}

/// A place on a line.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Λ.
    pub(super) log: Complex64,
    /// −x²/2.
    pub(super) bell: Complex64,
    /// ln|v| and β.
    pub(super) size: (f64, f64),
}

impl Place {
    /// ln|integrand|, without its constants.
    pub(super) fn height(&self, w: Complex64) -> f64 {
        w.re * self.log.re - w.im * self.log.im + self.bell.re
    }
}

/// The most places on a line.
const MOST_PLACES: i64 = 3000;

const LOG_ROOT_TWO_PI: f64 = 0.918_938_533_204_672_8;

impl Line {
    pub(super) fn new(angle: f64, slope: f64) -> Self {
        Self { angle, slope, kept: false }
    }

    pub(super) fn at(&self, noise: &Noise, s: f64) -> Place {
        let size = noise.mu * (s - noise.centre());
        let angle = self.angle + self.slope * size;
        let angle = if self.kept { angle.max(0.0) } else { angle };
        let log = if size <= 0.0 {
            log_one_plus(size, angle)
        } else {
            Complex64::new(size, angle) + log_one_plus(-size, -angle)
        };
        let x = Complex64::new(s, angle / noise.mu);
        Place { log, bell: -x * x / 2.0, size: (size, angle) }
    }

    /// ln of √(1 + k²)/√(2π).
    pub(super) fn log_constant(&self) -> f64 {
        0.5 * self.slope.powi(2).ln_1p() - LOG_ROOT_TWO_PI
    }

    /// Whether from s on, away from 0, ln|integrand| falls at least like |s|, for |w| ≤ `size` and Re w − k·Im w ≤ `push`.
    ///
    /// h′ = Re((1 + ik)(μw·v/(1 + v) − x)), and Re((1 + ik)x) = s(1 − k²) − kτ with x = s + i(τ + ks).
    fn falls(&self, noise: &Noise, s: f64, size: f64, push: f64) -> bool {
        let (mu, k, centre) = (noise.mu, self.slope, noise.centre());
        let (log_v, size) = (mu * (s - centre), size * mu * (1.0 + k * k).sqrt());
        let v = libm::exp(log_v.min(700.0));
        let bell = s * (1.0 - k * k) - k * (self.angle / mu - k * centre);
        if s < 0.0 {
            // |v/(1 + v)| ≤ |v|/(1 − |v|), and less further left; where β is kept at 0, k is 0
            let kept = if self.kept { bell.max(s) } else { bell };
            return v < 0.5 && -kept - size * v / (1.0 - v) >= 1.0;
        }
        // where β lies until |v| = 2
        let (first, last) = (self.angle + k * log_v.min(0.0), self.angle + k * LN_2);
        let turned = last.abs().max(first.abs());
        if turned >= 3.0 || (self.kept && first < 0.0) {
            return false;
        }
        // |v/(1 + v)| ≤ 2 from |v| = 2 on; before that 1/sin β, or 1 where β is at most a right angle
        let most = if turned > FRAC_PI_2 { f64::max(2.0, 1.0 / turned.sin()) } else { 2.0 };
        // v/(1 + v) = 1 − 1/(1 + v), and less of the second further right
        bell - size * most >= 1.0 || (v >= 2.0 && bell - push * mu - size / (v - 1.0) >= 1.0)
    }

    /// Places from one end to the other with the given step, such that what is outside is below e^`level` at each w,
    /// or `None` when there would be too many.
    pub(super) fn places(
        &self,
        noise: &Noise,
        step: f64,
        ws: &[Complex64],
        level: f64,
    ) -> Option<Vec<Place>> {
        let size = ws.iter().map(|w| w.norm()).fold(0.0, f64::max);
        let push = ws.iter().map(|w| w.re - self.slope * w.im).fold(f64::NEG_INFINITY, f64::max);
        let end = |sign: f64| {
            (4..4000).map(|index| (sign * f64::from(index) * 0.25 / step).round() * step).find(|s| {
                (sign > 0.0) == (*s > 0.0)
                    && ws.iter().all(|w| self.at(noise, *s).height(*w) <= level)
                    && self.falls(noise, *s, size, push)
            })
        };
        let (first, last) = ((end(-1.0)? / step).round() as i64, (end(1.0)? / step).round() as i64);
        (last - first < MOST_PLACES)
            .then(|| (first..=last).map(|index| self.at(noise, index as f64 * step)).collect())
    }

    /// ln of an upper bound on B at each w.
    pub(super) fn log_bounds(&self, noise: &Noise, ws: &[Complex64], level: f64) -> Option<Vec<f64>> {
        let step = 0.125 / noise.mu.max(1.0);
        let places = self.places(noise, step, ws, level)?;
        let (half, tilt) = (noise.mu * step / 2.0, 1.0 + self.slope.powi(2));
        // |v/(1 + v)²|, and how much h′ jumps where β leaves 0
        let bends: Vec<_> = places
            .windows(2)
            .map(|ends| {
                let ((a, from), (b, to)) = (ends[0].size, ends[1].size);
                let near = (((a + b) / 2.0).abs() - half).max(0.0);
                let least = near.cosh() + ((from + to) / 2.0).cos() - half * self.slope;
                let jump = if self.kept && from <= 0.0 && to > 0.0 { self.slope * libm::exp(b) } else { 0.0 };
                (if least > 0.0 { 0.5 / least } else { f64::INFINITY }, jump)
            })
            .collect();
        let bound = |w: &Complex64| {
            let heights: Vec<f64> = places.iter().map(|place| place.height(*w)).collect();
            let peak = heights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let cells = heights.windows(2).zip(&bends).map(|(ends, (bend, jump))| {
                let curved = step * step / 8.0 * tilt * (1.0 + w.norm() * noise.mu.powi(2) * bend);
                let corner = step / 4.0 * w.norm() * noise.mu * jump;
                step * libm::exp(ends[0].max(ends[1]) - peak + curved + corner)
            });
            let outside = libm::exp(heights[0] - peak) + libm::exp(heights[heights.len() - 1] - peak);
            peak + (cells.sum::<f64>() + outside).ln() + self.log_constant() + 1e-9
        };
        ws.iter().map(bound).map(|bound| bound.is_finite().then_some(bound)).collect()
    }

    /// About ln B at each w, to compare lines.
    pub(super) fn abouts(&self, noise: &Noise, ws: &[Complex64]) -> Vec<f64> {
        let reach = ws.iter().map(|w| w.re.abs()).fold(0.0, f64::max) * noise.mu;
        let step = (18.0 + reach.min(30.0)) / 63.0;
        let places: Vec<_> = (0..64).map(|index| self.at(noise, -9.0 + step * f64::from(index))).collect();
        let about = |w: &Complex64| {
            let heights = || places.iter().map(|place| place.height(*w));
            let peak = heights().fold(f64::NEG_INFINITY, f64::max);
            peak + (step * heights().map(|h| libm::exp(h - peak)).sum::<f64>()).ln()
        };
        ws.iter().map(about).collect()
    }
}

/// ln(1 + e^(ℓ + iβ)) for ℓ ≤ 0.
fn log_one_plus(size: f64, angle: f64) -> Complex64 {
    let v = libm::exp(size);
    let (sin, cos) = libm::sincos(angle);
    Complex64::new(0.5 * libm::log1p(v * (2.0 * cos + v)), libm::atan2(v * sin, 1.0 + v * cos))
}
