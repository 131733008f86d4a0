//! Nodes of Gaussian noise on a Poisson sample.
//!
//! **Definition.** In units of σ, Q is N(0, 1) and P is (1 − q)·N(0, 1) + q·N(μ, 1). At an output x
//! the ratio is r(x) = 1 + q·(e^(μx − μ²/2) − 1); the loss is ln r under P, or −ln r under Q when
//! the person is added.
//!
//! **Quadrature.** K(z) is ∫ g(x)dx with g = r^(z+1)·φ, or r^(−z)·φ: analytic for
//! |Im x| < π/μ. The trapezoid rule with step η is off by at most 2M/(e^(2πd/η) − 1), where
//! M bounds ∫|g(x + iτ)|dx for |τ| ≤ d. There |φ(x + iτ)| = φ(x)·e^(τ²/2), the argument of r is at most
//! μ|τ|, and r(x)·cos(μτ/2) ≤ |r(x + iτ)| ≤ r(x), so
//!
//! ```text
//! M ≤ K(c)·e^(d²/2 + |y|μd)          times cos(μd/2)^(−c) when the person is added.
//! ```
//!
//! **Ends.** Beyond x > (c + 1)μ the integrand falls at least like a Gaussian around (c + 1)μ, so that
//! what is cut off is at most g(x)/(x − (c + 1)μ); on the left φ alone cuts it off. The sums also stand for the moment at
//! z = −1, which is known ([`moments`](super::moments)): with the person added its integrand is r·φ, and that ends μ further to the right than φ.
//!
//! **References.** \[Trefethen2014\] for the trapezoid rule.

use std::f64::consts::PI;

use super::exponential::{LARGEST, growth};
use super::fused::{Loop, run};
use super::logarithm::log1p;
use super::{LANES, Nodes, Reach};
use crate::law::{Direction, Sampling};

/// The widest strip used, as a part of the one where r has no zero.
const STRIP: f64 = 0.75;

pub(super) fn nodes(mu: f64, sampling: &Sampling, reach: Reach) -> Nodes {
    let step = step(mu, sampling.direction, reach);
    let (low, high) = ends(mu, sampling, reach);
    let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
    run(Places {
        law: Noise { mu, rate: sampling.rate, direction: sampling.direction, step },
        first,
        last,
        reach,
    })
}

/// The integrand, and where it is looked at.
#[derive(Clone, Copy)]
struct Noise {
    mu: f64,
    rate: f64,
    direction: Direction,
    step: f64,
}

/// A node before it is known to count.
#[derive(Clone, Copy)]
struct Place {
    loss: f64,
    weight: f64,
    /// ln of the weight, but for a factor that is the same for all.
    log: f64,
    /// The weight times e^(cL) for the largest c, or times e^(−L) where that is more.
    heavy: f64,
    scale: f64,
    /// The largest power of e that was needed.
    furthest: f64,
}

impl Noise {
    /// What is at x, unless some power of e is out of reach.
    #[inline(always)]
    fn at<const FUSED: bool>(&self, x: f64, tilt: f64) -> Place {
        let exponent = self.mu * x - self.mu * self.mu / 2.0;
        let up = growth::<FUSED>(exponent);
        let excess = self.rate * up.first;
        let log_ratio = log1p::<FUSED>(excess);
        let slope = self.rate * up.whole / (1.0 + excess);
        let (log, loss) = self.seen(x, log_ratio);
        let weight = self.step * INVERSE_ROOT_TWO_PI * growth::<FUSED>(log).whole;
        let furthest = exponent.abs().max(-log).max(tilt.max(1.0) * loss.abs());
        Place {
            loss,
            weight,
            log,
            heavy: weight * growth::<FUSED>((tilt * loss).max(-loss)).whole,
            scale: self.scale(x, loss, slope),
            furthest,
        }
    }

    /// The same for every x.
    fn anywhere(&self, x: f64, tilt: f64) -> Place {
        let (log_ratio, slope) = ratio(self.mu, self.rate, x);
        let (log, loss) = self.seen(x, log_ratio);
        let weight = self.step * INVERSE_ROOT_TWO_PI * libm::exp(log);
        // The weight alone may be too small for a double.
        let heavy = self.step * INVERSE_ROOT_TWO_PI * libm::exp(log + (tilt * loss).max(-loss));
        Place { loss, weight, log, heavy, scale: self.scale(x, loss, slope), furthest: 0.0 }
    }

    /// ln of the density (but for a constant), and the loss.
    #[inline(always)]
    fn seen(&self, x: f64, log_ratio: f64) -> (f64, f64) {
        match self.direction {
            Direction::Remove | Direction::Replace => (log_ratio - x * x / 2.0, log_ratio),
            Direction::Add => (-x * x / 2.0, -log_ratio),
        }
    }

    #[inline(always)]
    fn scale(&self, x: f64, loss: f64, slope: f64) -> f64 {
        loss.abs() * (1.0 + x * x / 4.0) + slope * (1.0 + self.mu * x.abs() + self.mu * self.mu)
    }
}

/// Nodes at x = index·step, several at once.
struct Places {
    law: Noise,
    first: i64,
    last: i64,
    reach: Reach,
}

impl Loop for Places {
    type Output = Nodes;

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> Nodes {
        let Self { law, first, last, reach } = self;
        let mut nodes = Nodes { missing: reach.tolerance, ..Nodes::default() };
        let negligible = 1e-3 * reach.tolerance;
        let factor = libm::log(law.step * INVERSE_ROOT_TWO_PI);
        for begin in (first..=last).step_by(LANES) {
            let place = |lane: usize| (begin as f64 + lane as f64) * law.step;
            let (mut losses, mut weights, mut scales) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
            let (mut logs, mut heavy, mut furthest) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
            for lane in 0..LANES {
                let found = law.at::<FUSED>(place(lane), reach.tilt);
                (losses[lane], weights[lane], scales[lane]) = (found.loss, found.weight, found.scale);
                (logs[lane], heavy[lane], furthest[lane]) = (found.log, found.heavy, found.furthest);
            }
            for lane in 0..LANES.min((last - begin) as usize + 1) {
                let (loss, weight, scale) = (losses[lane], weights[lane], scales[lane]);
                let (log, heavy, furthest) = (logs[lane], heavy[lane], furthest[lane]);
                let found = if furthest <= LARGEST {
                    Place { loss, weight, log, heavy, scale, furthest }
                } else {
                    law.anywhere(place(lane), reach.tilt)
                };
                if found.weight.max(found.heavy) < negligible {
                    nodes.missing += 4.0 * negligible;
                } else {
                    nodes.push_log(found.loss, (found.weight, found.log + factor), found.scale);
                }
            }
        }
        nodes
    }
}

/// About how many nodes there would be.
pub(super) fn expected(mu: f64, sampling: &Sampling, reach: Reach) -> f64 {
    ((reach.tilt + 2.0) * mu + 20.0) / step(mu, sampling.direction, reach)
}

/// ℓ = ln(1 + q(e^a − 1)) for a = μx − μ²/2, and dℓ/da, which turns rounding of a into rounding of ℓ.
pub(crate) fn ratio(mu: f64, rate: f64, x: f64) -> (f64, f64) {
    let exponent = mu * x - mu * mu / 2.0;
    if exponent > 700.0 {
        return (exponent + rate.ln(), 1.0); // e^a alone is too large for a double
    }
    let excess = rate * libm::expm1(exponent);
    (libm::log1p(excess), rate * libm::exp(exponent) / (1.0 + excess))
}

const INVERSE_ROOT_TWO_PI: f64 = 0.398_942_280_401_432_7;

/// The step that leaves out less than half the tolerance.
fn step(mu: f64, direction: Direction, reach: Reach) -> f64 {
    // 2·M/(e^(2πd/η) − 1) for both K(z) and the 1 subtracted from it
    let digits = -(reach.tolerance / 16.0).ln();
    let widest = STRIP * PI / mu;
    let strip = (2.0 * digits).sqrt().min(widest);
    let branch = match direction {
        Direction::Remove | Direction::Replace => 0.0,
        Direction::Add => -reach.tilt * (mu * strip / 2.0).cos().ln() / strip,
    };
    let rate = digits / strip + strip / 2.0 + reach.frequency * mu + branch;
    2.0 * PI / rate
}

/// Between which ends all but half the tolerance lies.
fn ends(mu: f64, sampling: &Sampling, reach: Reach) -> (f64, f64) {
    let digits = -(reach.tolerance / 16.0).ln();
    let plain = (2.0 * digits).sqrt();
    match sampling.direction {
        Direction::Remove | Direction::Replace => (-plain, right_end(mu, sampling.rate, reach)),
        // r^(−c) ≤ (1 − q)^(−c) on the left; on the right r·φ is the last to fall, a mixture of φ(x) and φ(x − μ)
        Direction::Add => {
            let growth = -reach.tilt * libm::log1p(-sampling.rate);
            (-(2.0 * (digits + growth)).sqrt(), plain + mu)
        }
    }
}

/// Where r^(c+1)·φ has fallen below the tolerance and keeps falling.
fn right_end(mu: f64, rate: f64, reach: Reach) -> f64 {
    let centre = (reach.tilt + 1.0) * mu;
    let log_integrand = |x: f64| (reach.tilt + 1.0) * ratio(mu, rate, x).0 - x * x / 2.0;
    let target = (reach.tolerance / 16.0).ln();
    let mut x = centre + 1.0;
    while log_integrand(x) > target {
        x += 0.25;
    }
    x
}
