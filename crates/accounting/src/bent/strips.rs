//! The strip around a line in which the trapezoid rule is analytic, how it is closed at its end, and what is beyond that.

use std::f64::consts::PI;

use num_complex::Complex64;

use super::line::{Line, LogBounds, Noise, Part, STEEP};
use super::near_one::modulus;

/// By how much less than the integral what is cut off shall be, as a power of e.
pub(super) const DEPTH: f64 = 48.0;

/// The strips around a line there may be.
pub(super) struct Strips<'a> {
    noise: &'a Noise,
    line: &'a Line,
    ends: &'a [Complex64],
    /// The first s from which on all is small, and about ln N up to there.
    pub(super) end: f64,
    pub(super) part: f64,
}

impl<'a> Strips<'a> {
    pub(super) fn new(noise: &'a Noise, line: &'a Line, ends: &'a [Complex64]) -> Option<Self> {
        const STEP: f64 = 0.25;
        let (mut peak, mut sum, mut next) = (f64::NEG_INFINITY, 0.0, 1.0);
        for index in -36..240 {
            let s = f64::from(index) * STEP;
            let place = line.at(noise, s);
            let height = ends.iter().map(|w| place.top(*w)).fold(f64::NEG_INFINITY, f64::max)
                + modulus(place.log).ln();
            if height > peak {
                (sum, peak) = (sum * libm::exp(peak - height), height);
            }
            sum += STEP * libm::exp(height - peak);
            let part = peak + sum.ln();
            if s >= next && line.outside(noise, s, ends) <= part - DEPTH {
                let rising = rising(noise, line, s, ends);
                let low = |more: i32| rising.outside(noise, s + f64::from(more), ends) <= part - DEPTH;
                if (1..40).all(low) {
                    return Some(Self { noise, line, ends, end: s, part });
                }
                next = s + 1.0;
            }
        }
        None
    }

    /// The half-width in β of the one with fewest places, and about how many a unit of s needs.
    pub(super) fn best(&self) -> Option<(f64, f64)> {
        let (line, level) = (self.line, self.part - DEPTH);
        let room = 2.85 - 0.7 * line.slope - line.angle;
        let widest = (0.4 * PI).min(room).min(2.5 * self.noise.mu);
        let most = |side: &Line| {
            let abouts = side.abouts(self.noise, self.ends, self.end);
            abouts.iter().map(|about| about.part).fold(f64::NEG_INFINITY, f64::max)
        };
        let strip = |share: f64| {
            let strip = share * widest;
            let sides = [1.0, -1.0].map(|sign| Line { angle: line.angle + sign * strip, ..*line });
            let low = sides.iter().all(|side| side.outside(self.noise, self.end + 1.0, self.ends) <= level);
            let most = sides.iter().map(most).fold(f64::NEG_INFINITY, f64::max);
            low.then(|| (strip, (most - level) * self.noise.mu / strip))
        };
        // narrower is better only where the sides are high
        let mut best: Option<(f64, f64)> = None;
        for found in [1.0, 0.5, 0.25, 0.12, 0.06].into_iter().filter_map(strip) {
            if best.is_some_and(|best| found.1 >= best.1) {
                break;
            }
            best = Some(found);
        }
        best
    }
}

/// Leaves a line at s, and rises where that makes e^(wΛ) smaller.
fn rising(noise: &Noise, line: &Line, s: f64, corners: &[Complex64]) -> Line {
    let (size, angle) = line.at(noise, s).size;
    if corners.iter().all(|w| w.re <= 0.0) {
        return Line { floor: Some(f64::NEG_INFINITY), ..Line::new(angle, 0.0) };
    }
    let slope = if size < 0.0 { ((2.4 - angle) / -size).clamp(0.0, STEEP) } else { STEEP };
    Line { right: STEEP, floor: Some(f64::NEG_INFINITY), ..Line::new(angle - slope * size, slope) }
}

/// ln of the largest N, and of S.
pub(super) fn largest(bounds: &[LogBounds]) -> (f64, f64) {
    let most = |of: fn(&LogBounds) -> f64| bounds.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
    (most(|bound| bound.part), most(|bound| bound.square))
}

/// ln of N and S of the path that leaves a line at s and rises, so that they are small there.
pub(super) fn tail(
    noise: &Noise,
    line: &Line,
    s: f64,
    corners: &[Complex64],
    level: f64,
) -> Option<(f64, f64)> {
    let bounds = rising(noise, line, s, corners).log_bounds(noise, corners, level, 1.0, Part::From(s))?;
    Some(largest(&bounds))
}

/// ln of bounds on ½·∫ |Λ|·(2 + |r^w| + |r|)|φ| and on ½·∫ |r − 1|²|φ| across the strip at s.
pub(super) fn edge(noise: &Noise, line: &Line, s: f64, width: f64, corners: &[Complex64]) -> (f64, f64) {
    const PIECES: i32 = 48;
    let (k, half) = (line.slope, width / f64::from(PIECES));
    let tilt = 1.0 + k * k;
    let size = noise.mu * (s - noise.centre);
    let turn = |sign: f64| (line.angle + k * size + sign * noise.mu * width * (1.0 + 2.0 * k * k)).abs();
    let near = (size.abs() - noise.mu * k * width).max(0.0);
    // the most of |v/(1 + v)²| and of |v/(1 + v)|
    let least = near.cosh() + turn(1.0).max(turn(-1.0)).min(PI).cos();
    let bend = if least > 0.0 { 0.5 / least } else { f64::INFINITY };
    let slope = (bend * libm::exp((size + noise.mu * k * width).min(700.0))).sqrt();
    let farthest = corners.iter().map(|w| modulus(*w)).fold(1.0, f64::max);
    let curved = half * half / 8.0 * tilt * (1.0 + farthest * noise.mu.powi(2) * bend);
    let place = |index: i32| {
        let moved = f64::from(index) * half;
        let across = Line::new(line.angle + noise.mu * moved * tilt, k);
        let place = across.at(noise, s - k * moved);
        let top = corners.iter().map(|w| place.top(*w)).fold(f64::NEG_INFINITY, f64::max);
        let rise = across.square_beyond(noise, &place) + 2.0 * half * tilt.sqrt() * noise.mu;
        (top + (4.0 * (modulus(place.log) + half * tilt.sqrt() * noise.mu * slope)).ln(), rise)
    };
    let most = (-PIECES..=PIECES)
        .map(place)
        .fold((f64::NEG_INFINITY, f64::NEG_INFINITY), |most, here| (most.0.max(here.0), most.1.max(here.1)));
    let all = curved + (2.0 * width).ln();
    (most.0 + all, most.1 + all)
}
