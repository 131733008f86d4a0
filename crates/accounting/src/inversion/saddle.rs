//! [`Saddle`]: where the line is put, and how far apart its nodes may be.

use std::f64::consts::PI;

use super::{GOAL, Sum, log_payoff};
use crate::nodes::{Moments, Nodes, Reach};

/// Where to put the line, and what is expected there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saddle {
    pub(super) tilt: f64,
    pub(super) epsilon: f64,
    /// ln F(c).
    pub(super) log_moment: f64,
    /// ln δ, roughly.
    pub(super) log_delta: f64,
    /// How curved the integrand is: its width in y is 1/√curvature.
    pub(super) curvature: f64,
}

/// Moments for real z, with nodes that are kept from one c to the next.
pub(super) struct RealMoments<'a> {
    sum: &'a Sum,
    cap: f64,
    nodes: Vec<Nodes>,
}

impl<'a> RealMoments<'a> {
    pub(super) fn new(sum: &'a Sum) -> Self {
        Self { sum, cap: 0.0, nodes: vec![] }
    }

    pub(super) fn moments(&mut self, tilt: f64) -> Vec<Moments> {
        if tilt > self.cap || self.nodes.is_empty() {
            self.cap = tilt * 2.0;
            let tolerance = (1e-4 / self.sum.uses().max(1.0)).max(1e-18);
            let reach = Reach { tilt: self.cap, frequency: 0.0, tolerance };
            self.nodes = self.sum.terms.iter().map(|(law, _)| Nodes::of(law, reach)).collect();
        }
        self.nodes.iter().map(|nodes| nodes.moments(tilt)).collect()
    }

    pub(super) fn at(&mut self, c: f64) -> Saddle {
        if !self.sum.affordable(2.0 * c) {
            let nothing = f64::NAN;
            return Saddle {
                tilt: c,
                epsilon: nothing,
                log_moment: nothing,
                log_delta: nothing,
                curvature: nothing,
            };
        }
        let mu_squared = self.sum.mu_squared;
        let (mut log, mut mean, mut variance) =
            (c * (c + 1.0) / 2.0 * mu_squared, (c + 0.5) * mu_squared, mu_squared);
        for (law, (_, count)) in self.moments(c).iter().zip(&self.sum.terms) {
            log += count * law.log_moment();
            mean += count * law.mean;
            variance += count * law.variance;
        }
        let d = c + 1.0;
        let epsilon = mean - 1.0 / c - 1.0 / d;
        let curvature = variance + 1.0 / (c * c) + 1.0 / (d * d);
        let log_delta = log - c * epsilon - (c * d).ln() - 0.5 * (2.0 * PI * curvature).ln();
        Saddle { tilt: c, epsilon, log_moment: log, log_delta, curvature }
    }

    fn log_moment_up(&mut self, c: f64) -> f64 {
        if !self.sum.affordable(2.0 * c) {
            return f64::INFINITY;
        }
        let terms: f64 = self
            .moments(c)
            .iter()
            .zip(&self.sum.terms)
            .map(|(law, (_, count))| count * law.real().up())
            .sum();
        (terms + c * (c + 1.0) / 2.0 * self.sum.mu_squared) * (1.0 + 1e-14) + 1e-14
    }

    /// The saddle where an increasing function of c is zero, to within a factor e of δ.
    pub(super) fn saddle(&mut self, excess: impl Fn(Saddle) -> f64) -> Option<Saddle> {
        let (mut low, mut high) = (1e-6f64.ln(), self.sum.highest_tilt().ln());
        let mut log_c = 0.5f64.min(high - 1.0);
        for _ in 0..40 {
            let saddle = self.at(f64::exp(log_c));
            let miss = excess(saddle);
            if !miss.is_finite() {
                high = log_c;
                log_c = (low + high) / 2.0;
                continue;
            }
            if miss > 0.0 {
                high = log_c
            } else {
                low = log_c
            }
            // ε moves by c·curvature per step of ln c, and ln δ by c times that.
            let (c, curvature) = (saddle.tilt, saddle.curvature);
            let probe = Saddle {
                epsilon: saddle.epsilon + c * curvature * 1e-3,
                log_delta: saddle.log_delta - c * c * curvature * 1e-3,
                ..saddle
            };
            let slope = (excess(probe) - miss) / 1e-3;
            if (miss / slope * c * c * curvature).abs() < 1.0 {
                return saddle.log_delta.is_finite().then_some(saddle);
            }
            let newton = log_c - miss / slope;
            let next = if newton > low && newton < high { newton } else { (low + high) / 2.0 };
            log_c = next.clamp(log_c - 2.0, log_c + 2.0);
        }
        None
    }
}

/// Where to put the line and how far apart the copies of δ in T shall be, with (ln F(c′), c′) to bound them.
///
/// At the saddle the sum is largest against its terms. When one loss in a while is large, the copies
/// fade sooner a little to the left of it, at the price of a digit.
pub(super) fn place(real: &mut RealMoments<'_>, saddle: Saddle) -> Option<(f64, f64, (f64, f64))> {
    const PRICE: f64 = 3.0;
    let height = |at: Saddle| at.log_moment - at.tilt * saddle.epsilon - (at.tilt * (at.tilt + 1.0)).ln();
    let mut bounds = bounds_beyond(real, saddle.tilt).to_vec();
    let mut best: Option<(f64, f64, (f64, f64))> = None;
    for factor in [1.0, 0.85, 0.7, 0.6, 0.5] {
        let here = if factor == 1.0 { saddle } else { real.at(factor * saddle.tilt) };
        if height(here) > height(saddle) + PRICE {
            break;
        }
        let found = spacing(&bounds, here.tilt, saddle);
        // Further to the left this place is one to look from.
        bounds.push((real.log_moment_up(here.tilt), here.tilt));
        let Some((distance, beyond)) = found else { continue };
        // No line can do with less than this; where little more is needed, look no further.
        let least = -(saddle.log_delta + (GOAL / 4.0).ln()) / here.tilt;
        if factor == 1.0 && distance <= 1.5 * least {
            return Some((here.tilt, distance, beyond));
        }
        if best.is_none_or(|(_, known, _)| distance < known) {
            best = Some((here.tilt, distance, beyond));
        }
    }
    best
}

/// (ln F(c′), c′) for some c′ to the right of c, the bound rounded up.
pub(super) fn bounds_beyond(real: &mut RealMoments<'_>, tilt: f64) -> [(f64, f64); 7] {
    [3.0, 2.3, 1.8, 1.5, 1.3, 1.2, 1.1].map(|factor| (real.log_moment_up(factor * tilt), factor * tilt))
}

/// The distance s = 2π/h that the best of the bounds allows, with that bound.
pub(super) fn spacing(bounds: &[(f64, f64)], tilt: f64, saddle: Saddle) -> Option<(f64, (f64, f64))> {
    let goal = saddle.log_delta + (GOAL / 4.0).ln();
    let distances = bounds.iter().map(|&(log_moment, c)| {
        ((log_moment - c * saddle.epsilon + log_payoff(c) - goal) / (c - tilt), (log_moment, c))
    });
    let finite = distances.filter(|(distance, _)| distance.is_finite());
    let (after, beyond) = finite.min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some((after.max(-goal / tilt), beyond))
}
