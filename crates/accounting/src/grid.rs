//! Composition on a grid: discretised losses, convolved by Fourier transforms.
//!
//! **Definition.** Each law is replaced by two that live on multiples of h. One is *worse*: the P- and
//! Q-masses p, w of a cell [a, a + h] are moved to its two ends so that both are kept,
//!
//! ```text
//! p_right = (p − w·e^a)/(1 − e^(−h)),    p_left = p − p_right,
//! ```
//!
//! which joins the profile's values at the grid by straight lines in e^ε, from above
//! (\[Doroshenko2022\]). What lies beyond the last cell counts as infinite loss. The other is *better*: parts of
//! neighbouring cells are [merged](merge) on the point between them, which joins tangents of the profile.
//!
//! **Composition.** The laws are tilted by e^(cL), so that the losses that matter are the likely ones,
//! transformed, multiplied and transformed back on a circle of N points. What wraps around the circle is the sum of copies that Theorem 3 in docs/accounting.md has, Nh apart:
//! positive, so the upper bound stands, and bounded, so the lower one can be freed of it.
//!
//! **Rounding.** A transform of N points is off by at most 8u·log₂N in the Euclidean norm; so is
//! the product of all of them by the sum of that over all uses, and δ by that times the norm of what it
//! is multiplied with.
//!
//! This is the independent second opinion on [`inversion`](crate::inversion), and takes over where
//! that cannot prove a decay: few losses with heavy atoms or sharp peaks.
//!
//! **References.** \[Doroshenko2022\] for joining the dots, \[Koskela2021\] for composing with Fourier
//! transforms.

mod cells;
mod merge;

use num_complex::Complex64;
use rustfft::{Fft, FftPlanner};

use crate::Bounds;
use crate::inversion::Sum;
use crate::law::{Base, Law};
use crate::nodes::UNIT;
use cells::{Cells, MOST_CELLS, Masses, Scale};

/// The largest and the smallest circle.
const SIZES: std::ops::RangeInclusive<u32> = 12..=22;
/// How much discretising may add, relatively.
const GOAL: f64 = 1e-10;

/// A composition on circles of grid points: worse, and better.
pub(crate) struct Grid {
    above: Circle,
    /// Where a lower bound was asked for.
    below: Option<Circle>,
    /// Probability that was counted as infinite loss above.
    infinite: f64,
    /// How far the losses may be off.
    blur: f64,
}

/// A law on a circle.
struct Circle {
    step: f64,
    /// The loss at index 0.
    offset: f64,
    tilt: f64,
    /// ln of the tilted total, by which the circle is divided.
    log_scale: f64,
    /// ln of the total when tilted twice as much.
    log_twice: f64,
    /// The product of transforms, while laws are added.
    spectrum: Vec<Complex64>,
    /// The tilted probabilities; the value for index m is at m mod N.
    values: Vec<f64>,
    /// Bound on the Euclidean norm of their errors.
    error: f64,
}

impl Grid {
    /// For δ of about e^`log_delta`, with the line of the [inversion](crate::inversion) at `tilt`; with a lower bound too
    /// where that is wanted.
    pub(crate) fn new(sum: &Sum, tilt: f64, log_delta: f64, both: bool) -> Option<Self> {
        let tilt = 0.6 * tilt;
        let distance = (25.0 - log_delta) / tilt;
        let uses = sum.uses() + f64::from(u8::from(sum.mu_squared > 0.0));
        let wanted = (12.0 * GOAL / (uses * tilt * (tilt + 1.0))).sqrt();
        let size = (distance / wanted).log2().ceil().clamp(f64::from(*SIZES.start()), f64::from(*SIZES.end()))
            as u32;
        let cells = sum.terms.iter().filter_map(|(law, _)| law.top()).fold(80.0 / tilt, f64::max);
        let step = align(sum, (distance / f64::from(1u32 << size)).max(cells / MOST_CELLS));
        let goal = (log_delta - 28.0 - uses.ln()).exp();
        Self::compose(sum, Shape { step, tilt, size, goal, floor: -80.0 / tilt, both })
    }

    /// The law itself, untilted, on a circle around its mean; for pictures.
    pub(crate) fn plain(sum: &Sum, low: f64, high: f64) -> Option<Self> {
        let size = 16;
        let (step, floor) = (align(sum, (high - low) / f64::from(1u32 << size)), low.min(0.0) * 2.0 - 1.0);
        Self::compose(sum, Shape { step, tilt: 0.0, size, goal: 1e-12, floor, both: false })
    }

    /// Grid points from one loss to another with their probabilities, when there is no tilt.
    pub(crate) fn probabilities(&self, low: f64, high: f64) -> impl Iterator<Item = (f64, f64)> {
        let Circle { step, offset, values, .. } = &self.above;
        let n = values.len() as i64;
        let ends = (((low - offset) / step).ceil() as i64, ((high - offset) / step).floor() as i64);
        (ends.0..=ends.1.min(ends.0 + n - 1))
            .map(move |index| (offset + index as f64 * step, values[index.rem_euclid(n) as usize]))
    }

    /// `None` when that would take more cells than there should be.
    fn compose(sum: &Sum, shape: Shape) -> Option<Self> {
        let Shape { step, tilt, size, goal, floor, both } = shape;
        let mut grid = Self {
            above: Circle::new(step, tilt, size),
            below: both.then(|| Circle::new(step, tilt, size)),
            infinite: 0.0,
            blur: 0.0,
        };
        let mut planner = FftPlanner::new();
        let (forward, backward) = (planner.plan_fft_forward(1 << size), planner.plan_fft_inverse(1 << size));
        for (law, count) in sum.all() {
            let cells = Cells::of(&law, Scale { step, offset: offset(&law, step) }, goal, floor)?;
            grid.infinite += cells.beyond * count;
            grid.blur += cells.blur * count;
            let mirrored = law.is_mirrored();
            if let Some(below) = &mut grid.below {
                below.add(&cells.better(mirrored), count, forward.as_ref());
            }
            grid.above.add(&cells.worse(mirrored), count, forward.as_ref());
        }
        for circle in [Some(&mut grid.above), grid.below.as_mut()].into_iter().flatten() {
            circle.finish(backward.as_ref());
        }
        Some(grid)
    }

    /// δ(ε), between what the better law and the worse one have.
    pub(crate) fn delta(&self, epsilon: f64) -> Bounds {
        Bounds::new(self.delta_down(epsilon), self.delta_up(epsilon))
    }

    /// An upper bound on δ(ε).
    pub(crate) fn delta_up(&self, epsilon: f64) -> f64 {
        (self.above.delta_up((epsilon - self.off(epsilon)).max(0.0)) + self.infinite).min(1.0)
    }

    /// A lower bound on δ(ε), or 0.
    pub(crate) fn delta_down(&self, epsilon: f64) -> f64 {
        let below = |below: &Circle| below.delta_down(epsilon + self.off(epsilon));
        // Where the tilt is far from the saddle, what comes out is too large or no number, and bounds nothing.
        self.below.as_ref().map(below).filter(|delta| (0.0..=1.0).contains(delta)).unwrap_or(0.0)
    }

    /// How far losses may be off, and ε itself, which was rounded.
    fn off(&self, epsilon: f64) -> f64 {
        self.blur + 4.0 * UNIT * epsilon
    }
}

impl Circle {
    fn new(step: f64, tilt: f64, size: u32) -> Self {
        let spectrum = vec![Complex64::ONE; 1 << size];
        Self { step, offset: 0.0, tilt, log_scale: 0.0, log_twice: 0.0, spectrum, values: vec![], error: 0.0 }
    }

    /// Composes with a law, so many times.
    fn add(&mut self, law: &Masses, count: f64, forward: &dyn Fft<f64>) {
        let mut circle = vec![Complex64::ZERO; self.spectrum.len()];
        let off = self.lay(law, count, &mut circle);
        let norm = circle.iter().map(|value| value.re * value.re).sum::<f64>().sqrt();
        forward.process(&mut circle);
        for (product, one) in self.spectrum.iter_mut().zip(&circle) {
            *product *= if count < 64.0 { one.powu(count as u32) } else { one.powf(count) };
        }
        self.error += count * (8.0 * UNIT * self.log_size() * (norm + UNIT) + off);
    }

    /// From the transform back to the circle.
    fn finish(&mut self, backward: &dyn Fft<f64>) {
        let mut product = std::mem::take(&mut self.spectrum);
        backward.process(&mut product);
        let n = product.len() as f64;
        self.values = product.iter().map(|value| (value.re / n).max(0.0)).collect();
        let norm = self.values.iter().map(|p| p * p).sum::<f64>().sqrt();
        self.error += 16.0 * UNIT * n.log2() * (norm + 1.0 / n.sqrt());
    }

    fn log_size(&self) -> f64 {
        (self.spectrum.len() as f64).log2()
    }

    /// Lays a tilted law on a circle; by how much it may be off, in the Euclidean norm.
    fn lay(&mut self, law: &Masses, count: f64, circle: &mut [Complex64]) -> f64 {
        let Masses { scale, first, masses } = law;
        let n = circle.len() as i64;
        let loss = |index: usize| scale.loss(first + index as i64);
        let some = || masses.iter().enumerate().filter(|(_, p)| **p > 0.0);
        let log_total = |tilt: f64| {
            let peak = some().map(|(index, p)| p.ln() + tilt * loss(index)).fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = some().map(|(index, p)| p * libm::exp(tilt * loss(index) - peak)).sum();
            peak + total.ln()
        };
        let log = log_total(self.tilt);
        let mut off = 0.0;
        for (index, p) in some() {
            let exponent = self.tilt * loss(index);
            let value = p * libm::exp(exponent - log);
            circle[(first + index as i64).rem_euclid(n) as usize].re += value;
            off += (value * (8.0 + 2.0 * exponent.abs() + 2.0 * log.abs())).powi(2);
        }
        self.offset += count * scale.offset;
        self.log_scale += count * log;
        self.log_twice += count * log_total(2.0 * self.tilt);
        UNIT * off.sqrt()
    }

    /// Σ of the tilted probabilities with their payoffs above ε, moved by a few units of ε, and the norm of the payoffs.
    fn payoff(&self, epsilon: f64, units: f64) -> (f64, f64) {
        let n = self.values.len() as i64;
        let loss = |index: i64| self.offset + index as f64 * self.step;
        let first = ((epsilon - self.offset) / self.step).floor() as i64 + 1;
        let reach = ((60.0 / self.tilt / self.step) as i64).min(n);
        // e^(−c·gap) and 1 − e^(−gap) by steps, started anew now and then
        let (fall, slow, rise) =
            (libm::exp(-self.tilt * self.step), libm::exp(-self.step), -libm::expm1(-self.step));
        let (mut sum, mut square, mut tilted, mut gain) = (0.0, 0.0, 0.0, 0.0);
        for index in first..first + reach {
            if (index - first) % 256 == 0 {
                let off = units * UNIT * (epsilon + 2.0 * self.offset.abs());
                let gap = ((loss(index) - epsilon).max(0.0) + off).max(0.0);
                (tilted, gain) = (libm::exp(-self.tilt * gap), -libm::expm1(-gap));
            }
            let payoff = tilted * gain;
            sum += self.values[index.rem_euclid(n) as usize] * payoff;
            square += payoff * payoff;
            tilted *= fall;
            gain = gain * slow + rise;
        }
        (sum, square.sqrt())
    }

    /// F(c)·e^(−cε), and how far it may be off, as a share.
    fn factor(&self, epsilon: f64) -> (f64, f64) {
        let spread = 8.0 * UNIT * (1.0 + self.log_scale.abs() + (self.tilt * epsilon).abs());
        ((self.log_scale - self.tilt * epsilon).exp(), spread)
    }

    /// What copies at a distance of whole turns below ε add to δ at most, as δ ≤ 1.
    fn around(&self) -> f64 {
        let around = (-self.tilt * self.step * self.values.len() as f64).exp();
        around / (1.0 - around)
    }

    /// An upper bound on δ(ε) of this law.
    fn delta_up(&self, epsilon: f64) -> f64 {
        if epsilon / self.step > 1e15 {
            return 1.0; // too far out to be told apart on this grid
        }
        let (sum, norm) = self.payoff(epsilon, 4.0);
        // A loss that comes around the circle to just above ε counts too little: at most for this.
        let value = sum * (1.0 + 1e-12) + self.error * norm + (-60.0f64).exp() + self.around();
        let (factor, spread) = self.factor(epsilon);
        factor * (1.0 + spread) * value
    }

    /// A lower bound on δ(ε) of this law.
    fn delta_down(&self, epsilon: f64) -> f64 {
        if epsilon / self.step > 1e15 {
            return 0.0;
        }
        let (sum, norm) = self.payoff(epsilon, -4.0);
        let value = sum * (1.0 - 1e-12) - self.error * norm;
        let (factor, spread) = self.factor(epsilon);
        // Copies from whole turns above ε, by the moment at c′ = 2c: c′^c′/(c′ + 1)^(c′ + 1) ≤ 1
        let turn = (-self.tilt * self.step * self.values.len() as f64).exp();
        let above = (self.log_twice - 2.0 * self.tilt * epsilon).exp() * turn / (1.0 - turn);
        factor * (1.0 - spread) * value - (self.around() + above) * (1.0 + 1e-9)
    }
}

/// What a circle is made for.
#[derive(Clone, Copy)]
struct Shape {
    step: f64,
    tilt: f64,
    /// log₂ of the number of points.
    size: u32,
    /// The probability that may be counted as infinite loss.
    goal: f64,
    /// Losses below are raised to it.
    floor: f64,
    /// Whether a lower bound is wanted.
    both: bool,
}

/// The least and the largest atom of a law, where it has any.
fn atoms(law: &Law) -> Option<(f64, f64)> {
    let Base::Pieces(pieces) = &law.base else { return None };
    let sampled = |loss: f64| law.sampling.as_ref().map_or(loss, |sampling| sampling.loss(loss));
    let losses = || pieces.atoms.iter().map(|atom| sampled(atom.loss.to_f64()));
    let least = losses().fold(f64::INFINITY, f64::min);
    (least < f64::INFINITY).then(|| (least, losses().fold(least, f64::max)))
}

/// A step close to the given one of which the largest distance of two atoms of one law is a multiple.
fn align(sum: &Sum, step: f64) -> f64 {
    let distance = |(law, _): &(Law, f64)| match (atoms(law), law.is_mirrored()) {
        // Its mirror image counts too.
        (Some((_, largest)), true) => largest,
        (Some((least, largest)), false) => largest - least,
        (None, _) => 0.0,
    };
    let longest = sum.terms.iter().map(distance).fold(0.0, f64::max);
    // A number with many divisors has atoms in simple proportions on the grid as well.
    let wanted = longest / step;
    let divisors = [5040.0, 60.0, 1.0].into_iter().find(|divisors| wanted > 8.0 * divisors).unwrap_or(1.0);
    if longest > 0.0 { longest / ((wanted / divisors).round() * divisors).max(1.0) } else { step }
}

/// Where the grid of a law starts, so that its largest atom is on it.
fn offset(law: &Law, step: f64) -> f64 {
    match atoms(law) {
        Some((_, largest)) if !law.is_mirrored() => largest - (largest / step).round() * step,
        _ => 0.0,
    }
}
