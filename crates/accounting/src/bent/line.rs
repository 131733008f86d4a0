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
//! The same holds for N(w) = ∫ |Λ|·(2 + |r^w| + |r|)·|φ dx|, and |∫ (r^w − 1 − w(r − 1))φ dx| ≤ |w|·N(w). S = ∫ |r − 1|²|φ dx| does
//! not depend on w. Here r = (1 − q)(1 + v) and, but for the constant ln(1 − q), Λ = ln r.
//!
//! **Upper sums.** The integrand is e^h with |h″| ≤ (1 + k²)·(1 + |w|μ²·|v/(1 + v)²|) and |v/(1 + v)²| = 1/(2(cosh ln|v| + cos β)).
//! In a cell of width η it is at most e^(max of the ends + η²/8·sup|h″|), with η/4 times the jump of h′ where there is one.
//! |Λ| grows by a factor of at most e^(½ημ√(1 + k²)·(1 + |v|)/|1 + v|) from the nearer end, since |Λ| ≥ |v|/(1 + |v|).
//! Beyond both ends h falls at least like |s|. There |Λ| ≤ 2|v| + |ln(1 − q)| on the left, where |v| < ½, and |Λ′| ≤ 8μ on the
//! right.
//!
//! **Rounding.** v = q/(1 − q)·e^(μx − μ²/2) is off by units of μ|s| and μ², Λ by |v/(1 + v)| of that; and where x is off, Λ
//! moves by μ|v/(1 + v)| of it. Each place carries the sum of its errors.

use std::f64::consts::{FRAC_PI_2, LN_2};

use num_complex::Complex64;

use super::log_add;
use super::near_one::{exp_m1, ln_1p, modulus};
use crate::nodes::UNIT;

/// Gaussian noise on a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    pub(super) mu: f64,
    pub(super) mu_squared: f64,
    pub(super) rate: f64,
    pub(super) count: f64,
    /// q/(1 − q), and its logarithm.
    odds: (f64, f64),
    /// s₀, where |v| = 1.
    pub(super) centre: f64,
}

impl Noise {
    pub(super) fn new(mu_squared: f64, rate: f64, count: f64) -> Self {
        let mu = mu_squared.sqrt();
        let log_odds = rate.ln() - libm::log1p(-rate);
        Self {
            mu,
            mu_squared,
            rate,
            count,
            odds: (rate / (1.0 - rate), log_odds),
            centre: mu / 2.0 - log_odds / mu,
        }
    }

    /// The x at which ln r is some ε; about.
    pub(super) fn place_of(&self, epsilon: f64) -> f64 {
        (libm::expm1(epsilon) / self.rate).ln_1p() / self.mu + self.mu / 2.0
    }

    /// E[(r − 1)²] = q²·(e^(μ²) − 1).
    pub(super) fn square(&self) -> f64 {
        self.rate * self.rate * libm::expm1(self.mu_squared)
    }

    /// By which share of itself that may be off: rate and μ² are off by half a unit, the square of the one by 3 halves, e^(μ²) − 1 by
    /// 4 and what an error of μ² is multiplied by, μ²e^(μ²)/(e^(μ²) − 1) ≤ 1 + μ².
    pub(super) fn square_share(&self) -> f64 {
        (7.0 + self.mu_squared) * UNIT
    }

    /// A bound on |r − 1| = q·|e^(a + iβ) − 1| where |v| and β are these.
    fn rise(&self, (size, angle): (f64, f64)) -> f64 {
        let exponent = size - self.odds.1;
        let whole = libm::exp(exponent.min(700.0));
        self.rate * (libm::expm1(exponent.min(700.0)).abs() + whole * angle.abs().min(2.0)) * (1.0 + 1e-9)
    }

    /// ln(1 − q).
    pub(super) fn log_kept(&self) -> f64 {
        libm::log1p(-self.rate)
    }
}

/// See the module text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    /// β₀.
    pub(super) angle: f64,
    /// k, and what it is where |v| > 1; where they differ the line is for bounds alone.
    pub(super) slope: f64,
    pub(super) right: f64,
    /// What β is kept at where it would be below; then the line has a corner, and is for bounds alone.
    pub(super) floor: Option<f64>,
}

/// A place on a line.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) s: f64,
    /// Λ = ln r, and by how much it may be off.
    pub(super) log: Complex64,
    pub(super) log_error: f64,
    /// −x²/2, and by how much it may be off.
    pub(super) bell: Complex64,
    pub(super) bell_error: f64,
    /// ln|v| and β.
    pub(super) size: (f64, f64),
}

impl Place {
    /// ln|r^w·φ|, without constants.
    pub(super) fn height(&self, w: Complex64) -> f64 {
        w.re * self.log.re - w.im * self.log.im + self.bell.re
    }

    /// ln of the largest of |r^w·φ|, |rφ| and |φ|.
    pub(super) fn top(&self, w: Complex64) -> f64 {
        self.height(w).max(self.bell.re + self.log.re.max(0.0))
    }
}

/// How much of a line is meant.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    All,
    /// From this s to the right.
    From(f64),
    /// Up to this s.
    To(f64),
}

/// The most places on a line.
const MOST_PLACES: i64 = 6000;

/// How steep a line is at most.
pub(super) const STEEP: f64 = 0.48;

const LOG_ROOT_TWO_PI: f64 = 0.918_938_533_204_672_8;

/// ln of upper bounds on [B](Line), on N and on S.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogBounds {
    pub(super) whole: f64,
    pub(super) part: f64,
    pub(super) square: f64,
}

impl Line {
    pub(super) fn new(angle: f64, slope: f64) -> Self {
        Self { angle, slope, right: slope, floor: None }
    }

    /// The place at s.
    pub(super) fn at(&self, noise: &Noise, s: f64) -> Place {
        let mu = noise.mu;
        let size = mu * (s - noise.centre);
        let angle = self.angle + if size > 0.0 { self.right } else { self.slope } * size;
        let angle = self.floor.map_or(angle, |floor| angle.max(floor));
        let x = Complex64::new(s, angle / mu);
        // the imaginary part of x is off by this many units, and μx − μ²/2 and the odds by that many
        let moved = (4.0 * self.slope * size.abs() + 2.0 * angle.abs()) / mu;
        let units = 2.0 + noise.odds.0 + 5.0 * mu * s.abs() + 3.0 * mu * mu + 3.0 * angle.abs();
        let exponent = mu * s - mu * mu / 2.0;
        let (log, slope, rounding) = if size <= 0.0 {
            let (grown, rounding) = exp_m1(Complex64::new(exponent, angle));
            let (more, whole) = (noise.rate * grown, 1.0 + noise.rate * grown);
            let slope = noise.rate * modulus(1.0 + grown) / modulus(whole);
            let (log, last) = if modulus(more) < 0.5 { ln_1p(more) } else { (whole.ln(), 8.0 * UNIT) };
            let inner = noise.rate * rounding + UNIT * (2.0 + noise.odds.0) * modulus(more);
            (log, slope, 1.01 * inner / modulus(whole) + last)
        } else {
            let inverse = libm::exp(-exponent) / noise.odds.0;
            let (sin, cos) = libm::sincos(angle);
            let (log, square) = log_one_plus(inverse, -sin, cos);
            let slope = square.sqrt().recip();
            let more = 8.0 * noise.odds.1.abs() + 8.0 * noise.log_kept().abs() + units;
            let log = Complex64::new(exponent + noise.odds.1 + noise.log_kept(), angle) + log;
            (log, slope, UNIT * (2.0 * more + 20.0 * inverse / square + 6.0 * modulus(log)))
        };
        Place {
            s,
            log,
            log_error: rounding + UNIT * slope * (units + mu * moved),
            bell: -x * x / 2.0,
            bell_error: UNIT * (modulus(x) * moved + 3.0 * x.norm_sqr()),
            size: (size, angle),
        }
    }

    /// ln of √(1 + k²)/√(2π).
    pub(super) fn log_constant(&self) -> f64 {
        0.5 * self.slope.powi(2).ln_1p() - LOG_ROOT_TWO_PI
    }

    /// Whether from s on, away from 0, ln|integrand| falls at least like |s|, for |w| ≤ `size` and Re w − k·Im w ≤ `push`.
    ///
    /// h′ = Re((1 + ik)(μw·v/(1 + v) − x)), and Re((1 + ik)x) = s(1 − k²) − kτ with x = s + i(τ + ks).
    fn falls(&self, noise: &Noise, s: f64, size: f64, push: f64) -> bool {
        let k = if s < 0.0 { self.slope } else { self.right };
        let (mu, centre) = (noise.mu, noise.centre);
        let (log_v, size) = (mu * (s - centre), size * mu * (1.0 + k * k).sqrt());
        let v = libm::exp(log_v.min(700.0));
        let bell = s * (1.0 - k * k) - k * (self.angle / mu - k * centre);
        if s < 0.0 {
            // |v/(1 + v)| ≤ |v|/(1 − |v|), and less further left; where β is kept, k is 0
            let kept = if self.floor.is_some() { bell.max(s) } else { bell };
            return v < 0.5 && -kept - size * v / (1.0 - v) >= 1.0;
        }
        // |(r − 1)²φ| falls as well
        if bell - 2.0 * mu < 1.0 {
            return false;
        }
        let slopes = self.floor.is_some() && self.slope != self.right;
        if (slopes && log_v < 0.0) || self.floor.is_some_and(|floor| self.angle + k * log_v < floor) {
            return false;
        }
        // where β lies until |v| = 2
        let (first, last) = (self.angle + k * log_v.min(0.0), self.angle + k * LN_2);
        let turned = if log_v < LN_2 { last.abs().max(first.abs()) } else { 0.0 };
        if turned >= 3.0 {
            return false;
        }
        // |v/(1 + v)| ≤ 2 from |v| = 2 on; before that 1/sin β, or 1 where β is at most a right angle
        let most = if turned > FRAC_PI_2 { f64::max(2.0, 1.0 / turned.sin()) } else { 2.0 };
        // v/(1 + v) = 1 − 1/(1 + v), and less of the second further right
        bell - size * most >= 1.0 || (v >= 2.0 && bell - push * mu - size / (v - 1.0) >= 1.0)
    }

    /// Places from one end to the other with the given step, such that |Λ|·(2 + |r^w| + |r|)|φ| outside is below e^`level` at
    /// each w, and ln of what is outside; or `None` when there would be too many.
    pub(super) fn places(
        &self,
        noise: &Noise,
        step: f64,
        ws: &[Complex64],
        level: f64,
        part: Part,
    ) -> Option<(Vec<Place>, f64)> {
        let size = ws.iter().map(|w| modulus(*w)).fold(1.0, f64::max);
        let push = ws.iter().map(|w| w.re - self.right * w.im).fold(1.0, f64::max);
        let least = if let Part::From(s) = part { s } else { 0.0 };
        let end = |sign: f64| {
            (4..4000).map(|index| (sign * f64::from(index) * 0.25 / step).round() * step).find(|s| {
                (sign > 0.0) == (*s > least)
                    && self.outside(noise, *s, ws) <= level
                    && self.falls(noise, *s, size, push)
            })
        };
        let (low, high, most) = match part {
            Part::From(s) => {
                let high = end(1.0)?;
                ((s / step).floor() * step, high, self.outside(noise, high, ws))
            }
            Part::To(s) => {
                let low = end(-1.0)?;
                (low, (s / step).ceil() * step, self.outside(noise, low, ws))
            }
            Part::All => {
                let (low, high) = (end(-1.0)?, end(1.0)?);
                (low, high, self.outside(noise, low, ws).max(self.outside(noise, high, ws)) + LN_2)
            }
        };
        let (first, last) = ((low / step).round() as i64, (high / step).round() as i64);
        (last - first < MOST_PLACES && last > first).then(|| {
            let places = (first..=last).map(|index| self.at(noise, index as f64 * step)).collect();
            (places, most + step.ln_1p())
        })
    }

    /// ln of a bound on |Λ|·(2 + |r^w| + |r|)|φ| at an end, and on all of it beyond when it falls there.
    pub(super) fn outside(&self, noise: &Noise, s: f64, ws: &[Complex64]) -> f64 {
        let place = self.at(noise, s);
        let largest = self.largest_log(noise, &place, s);
        ws.iter().map(|w| place.top(*w)).fold(f64::NEG_INFINITY, f64::max) + (4.0 * largest).ln()
    }

    /// ln of a bound on |(r − 1)²φ| at an end, and on all of it beyond when it falls there.
    ///
    /// |r − 1| ≤ q(1 + |v|/odds) on the left of a place, and at most (|r − 1| + 2q)·e^(μt) a distance t to the right of it.
    pub(super) fn square_beyond(&self, noise: &Noise, place: &Place) -> f64 {
        place.bell.re + 2.0 * (noise.rise(place.size) + 2.0 * noise.rate).ln()
    }

    /// ∫ |Λ|·e^(−|t|) beyond an end is at most this: |Λ| ≤ |v|/(1 − |v|) + |ln(1 − q)| on the left, and |Λ′| ≤ 8μ on the right.
    fn largest_log(&self, noise: &Noise, place: &Place, s: f64) -> f64 {
        if s < 0.0 {
            2.0 * libm::exp(place.size.0) + noise.log_kept().abs()
        } else {
            modulus(place.log) + 8.0 * noise.mu
        }
    }

    /// ln of upper bounds on B and N at each w, good enough for the given power of B.
    pub(super) fn log_bounds(
        &self,
        noise: &Noise,
        ws: &[Complex64],
        level: f64,
        power: f64,
        extent: Part,
    ) -> Option<Vec<LogBounds>> {
        let step = 0.125 / noise.mu.max(1.0) / (power / 64.0).sqrt().clamp(1.0, 4.0);
        let (places, _) = self.places(noise, step, ws, level, extent)?;
        let (half, steepest) = (noise.mu * step / 2.0, self.slope.max(self.right));
        let tilt = 1.0 + steepest.powi(2);
        // |v/(1 + v)²|, how much h′ jumps where β leaves its floor, and the most of |Λ|
        let cells: Vec<_> = places
            .windows(2)
            .map(|ends| {
                let ((a, from), (b, to)) = (ends[0].size, ends[1].size);
                let near = (((a + b) / 2.0).abs() - half).max(0.0);
                let least = near.cosh() + ((from + to) / 2.0).cos() - half * steepest;
                let bend = if least > 0.0 { 0.5 / least } else { f64::INFINITY };
                let jumps = self.floor.is_some_and(|floor| from <= floor && to > floor);
                let turns = a <= 0.0 && b > 0.0;
                let jump = if turns {
                    steepest
                } else if jumps {
                    self.slope
                } else {
                    0.0
                };
                let push = (bend * libm::exp(b.min(700.0))).sqrt();
                // |Λ′| ≤ μ√(1 + k²)·|v/(1 + v)|
                let growth = half * tilt.sqrt() * push;
                let level = self.floor.is_some_and(|floor| to <= floor);
                let slope = if level {
                    0.0
                } else if b > 0.0 {
                    steepest
                } else {
                    self.slope
                };
                let longer = 0.5 * slope.powi(2).ln_1p();
                let log = modulus(ends[0].log).max(modulus(ends[1].log)) + growth;
                // |(r − 1)′| = μ√(1 + k²)·|r − 1 + q|
                let rise = noise.rise(ends[0].size).max(noise.rise(ends[1].size));
                let rise = rise + half * tilt.sqrt() * (noise.rise(ends[1].size) + noise.rate);
                (bend, (jump * push, jump * to / noise.mu, longer), (log, rise * rise))
            })
            .collect();
        let (first, last) = (places[0], places[places.len() - 1]);
        let (first, last) =
            ((first, self.largest_log(noise, &first, -1.0)), (last, self.largest_log(noise, &last, 1.0)));
        let ends = match extent {
            Part::All => vec![first, last],
            Part::From(_) => vec![last],
            Part::To(_) => vec![first],
        };
        let sums = |w: &Complex64| {
            let heights: Vec<f64> = places.iter().map(|place| place.height(*w)).collect();
            let peak = heights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let (mut whole, mut part, mut square) = (0.0, 0.0, 0.0);
            for (ends, (bend, jump, (log, rise))) in heights.windows(2).zip(&cells) {
                let curved = step * step / 8.0 * tilt * (1.0 + modulus(*w) * noise.mu.powi(2) * bend);
                let corner = step / 4.0 * (modulus(*w) * noise.mu * jump.0 + jump.1) + jump.2;
                let cell = step
                    * libm::exp(ends[0].max(ends[1]) - peak + curved + corner)
                    * mean_fall(ends[0] - ends[1]);
                whole += cell;
                part += cell * log;
                square += cell * rise;
            }
            for (place, log) in &ends {
                let outside = libm::exp(place.height(*w) - peak) * tilt;
                whole += outside;
                part += outside * log;
                square += libm::exp(self.square_beyond(noise, place) - peak) * tilt;
            }
            let constant = peak - LOG_ROOT_TWO_PI + 1e-9;
            (whole.ln() + constant, part.ln() + constant, square.ln() + constant)
        };
        let plain = sums(&Complex64::ZERO);
        let (still, square) = (log_add(LN_2 + plain.1, sums(&Complex64::ONE).1), plain.2);
        let both = |w: &Complex64| {
            let (whole, part, _) = sums(w);
            let part = log_add(part, still);
            (whole.is_finite() && part.is_finite()).then_some(LogBounds { whole, part, square })
        };
        ws.iter().map(both).collect()
    }

    /// About ln B and ln N at each w up to an s, to compare lines.
    pub(super) fn abouts(&self, noise: &Noise, ws: &[Complex64], end: f64) -> Vec<LogBounds> {
        const NEAR: f64 = 11.0;
        let reach = ws.iter().map(|w| w.re).fold(0.0, f64::max) * noise.mu + 8.0;
        let push = ws.iter().map(|w| w.re - self.right * w.im).fold(0.0, f64::max) * noise.mu;
        let risen = (noise.centre + 4.0 / noise.mu).max(push / (1.0 - self.right.powi(2)) + 8.0);
        let reach = if self.right > self.slope { reach.min(risen) } else { reach };
        let step = (NEAR.min(end) + 9.0) / 50.0;
        let far = ((reach.min(end) - NEAR) / 36.0).max(step);
        let near = (0..=50).map(|index| (-9.0 + step * f64::from(index), step));
        let beyond = (1..=36)
            .map(|index| (NEAR + far * f64::from(index), far))
            .take_while(|(s, _)| *s <= reach.min(end));
        let longer = |place: &Place| {
            let slope = if place.size.0 > 0.0 { self.right } else { self.slope };
            let level = self.floor.is_some_and(|floor| place.size.1 <= floor);
            if level { 1.0 } else { (1.0 + slope * slope).sqrt() }
        };
        let places: Vec<_> = near
            .chain(beyond)
            .map(|(s, step)| {
                let place = self.at(noise, s);
                (place, step * longer(&place))
            })
            .collect();
        let about = |w: &Complex64| {
            let peak = places.iter().map(|(place, _)| place.top(*w)).fold(f64::NEG_INFINITY, f64::max);
            let (mut whole, mut part) = (0.0, 0.0);
            for (place, width) in &places {
                let height = libm::exp(place.height(*w) - peak);
                let still = libm::exp(place.bell.re + place.log.re.max(0.0) - peak);
                whole += height * width;
                part += (height + still) * modulus(place.log) * width;
            }
            let constant = peak - LOG_ROOT_TWO_PI;
            LogBounds { whole: whole.ln() + constant, part: part.ln() + constant, square: f64::NAN }
        };
        ws.iter().map(about).collect()
    }
}

/// ∫₀¹ e^(−|t|x)dx, rounded up.
fn mean_fall(t: f64) -> f64 {
    let t = t.abs();
    let mean = if t < 1e-4 { 1.0 - t / 2.0 + t * t / 6.0 } else { -libm::expm1(-t) / t };
    mean * (1.0 + 1e-12)
}

/// ln(1 + v·e^(iβ)) for 0 ≤ v ≤ 1, and |1 + v·e^(iβ)|².
fn log_one_plus(v: f64, sin: f64, cos: f64) -> (Complex64, f64) {
    let grown = v * (2.0 * cos + v);
    (Complex64::new(0.5 * libm::log1p(grown), libm::atan2(v * sin, 1.0 + v * cos)), 1.0 + grown)
}
