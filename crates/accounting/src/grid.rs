//! Composition on a grid: discretised losses, convolved by Fourier transforms.
//!
//! **Definition.** Each law is replaced by one that lives on multiples of h and is *worse*: the P- and
//! Q-masses p, w of a cell [a, a + h] are moved to its two ends so that both are kept,
//!
//! ```text
//! p_right = (p − w·e^a)/(1 − e^(−h)),    p_left = p − p_right,
//! ```
//!
//! which joins the profile's values at the grid by straight lines in e^ε, from above
//! (\[Doroshenko2022\]). What lies beyond the last cell counts as infinite loss.
//!
//! **Composition.** The laws are tilted by e^(cL), so that the losses that matter are the likely ones,
//! transformed, multiplied and transformed back on a circle of N points. What wraps around the circle
//! is positive, and counted from the first point above ε it can only add to δ: an upper bound.
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

use demur_exact::Rational;
use num_complex::Complex64;
use rustfft::FftPlanner;

use crate::inversion::Sum;
use crate::law::{Atom, Base, Direction, Law, Pieces, Sampling};
use crate::nodes::{UNIT, ratio};

/// The largest and the smallest circle.
const SIZES: std::ops::RangeInclusive<u32> = 12..=22;
/// The most cells from 0 to the largest loss.
const MOST_CELLS: f64 = 4e6;
/// How much discretising may add, relatively.
const GOAL: f64 = 1e-10;

/// A composition on a circle of grid points.
pub(crate) struct Grid {
    step: f64,
    tilt: f64,
    /// ln of the tilted total, by which the circle is divided.
    log_scale: f64,
    /// The tilted probabilities; the value for index m is at m mod N.
    circle: Vec<f64>,
    /// Bound on the Euclidean norm of their errors.
    error: f64,
    /// Probability that was counted as infinite loss.
    infinite: f64,
}

impl Grid {
    /// For δ of about e^`log_delta`, with the line of the [inversion](crate::inversion) at `tilt`.
    pub(crate) fn new(sum: &Sum, tilt: f64, log_delta: f64) -> Option<Self> {
        let tilt = 0.6 * tilt;
        let distance = (25.0 - log_delta) / tilt;
        let uses = sum.uses() + f64::from(u8::from(sum.mu_squared > 0.0));
        let wanted = (12.0 * GOAL / (uses * tilt * (tilt + 1.0))).sqrt();
        let size = (distance / wanted).log2().ceil().clamp(f64::from(*SIZES.start()), f64::from(*SIZES.end()))
            as u32;
        let cells = sum.terms.iter().filter_map(|(law, _)| law.top()).fold(80.0 / tilt, f64::max);
        let step = align(sum, (distance / f64::from(1u32 << size)).max(cells / MOST_CELLS));
        let goal = (log_delta - 28.0 - uses.ln()).exp();
        Self::compose(sum, Shape { step, tilt, size, goal, floor: -80.0 / tilt })
    }

    /// The law itself, untilted, on a circle around its mean; for pictures.
    pub(crate) fn plain(sum: &Sum, low: f64, high: f64) -> Option<Self> {
        let size = 16;
        let step = align(sum, (high - low) / f64::from(1u32 << size));
        Self::compose(sum, Shape { step, tilt: 0.0, size, goal: 1e-12, floor: low.min(0.0) * 2.0 - 1.0 })
    }

    /// Grid points from one loss to another with their probabilities, when there is no tilt.
    pub(crate) fn probabilities(&self, low: f64, high: f64) -> impl Iterator<Item = (f64, f64)> {
        let n = self.circle.len() as i64;
        let ends = ((low / self.step).ceil() as i64, (high / self.step).floor() as i64);
        (ends.0..=ends.1.min(ends.0 + n - 1))
            .map(move |index| (index as f64 * self.step, self.circle[index.rem_euclid(n) as usize]))
    }

    /// `None` when that would take more cells than there should be.
    fn compose(sum: &Sum, shape: Shape) -> Option<Self> {
        let Shape { step, tilt, size, goal, floor } = shape;
        let n = 1usize << size;
        let mut planner = FftPlanner::new();
        let (forward, backward) = (planner.plan_fft_forward(n), planner.plan_fft_inverse(n));
        let mut product = vec![Complex64::ONE; n];
        let mut grid = Self { step, tilt, log_scale: 0.0, circle: vec![], error: 0.0, infinite: 0.0 };
        for (law, count) in sum.all() {
            let mut cells = Cells::of(&law, step, goal, floor)?;
            if law.is_mirrored() {
                cells.mirror();
            }
            grid.infinite += cells.beyond * count;
            let (mut circle, log_total) = cells.tilted(tilt, n);
            let norm = circle.iter().map(Complex64::norm_sqr).sum::<f64>().sqrt();
            grid.log_scale += count * log_total;
            forward.process(&mut circle);
            for (sum, one) in product.iter_mut().zip(&circle) {
                *sum *= if count < 64.0 { one.powu(count as u32) } else { one.powf(count) };
            }
            grid.error += count * 8.0 * UNIT * f64::from(size) * (norm + UNIT);
        }
        backward.process(&mut product);
        grid.circle = product.iter().map(|value| (value.re / n as f64).max(0.0)).collect();
        let norm = grid.circle.iter().map(|p| p * p).sum::<f64>().sqrt();
        grid.error += 16.0 * UNIT * f64::from(size) * (norm + 1.0 / (n as f64).sqrt());
        Some(grid)
    }

    /// An upper bound on δ(ε).
    pub(crate) fn delta_up(&self, epsilon: f64) -> f64 {
        let n = self.circle.len() as i64;
        if epsilon / self.step > 1e15 {
            return 1.0; // too far out to be told apart on this grid
        }
        let first = (epsilon / self.step).floor() as i64 + 1;
        let reach = ((60.0 / self.tilt / self.step) as i64).min(n);
        // e^(−c·gap) and 1 − e^(−gap) by steps, started anew now and then
        let (fall, slow, rise) =
            (libm::exp(-self.tilt * self.step), libm::exp(-self.step), -libm::expm1(-self.step));
        let (mut sum, mut square, mut tilted, mut gain) = (0.0, 0.0, 0.0, 0.0);
        for index in first..first + reach {
            if (index - first) % 256 == 0 {
                let gap = (index as f64 * self.step - epsilon).max(0.0) + 4.0 * UNIT * epsilon;
                (tilted, gain) = (libm::exp(-self.tilt * gap), -libm::expm1(-gap));
            }
            let payoff = tilted * gain;
            sum += self.circle[index.rem_euclid(n) as usize] * payoff;
            square += payoff * payoff;
            tilted *= fall;
            gain = gain * slow + rise;
        }
        // A loss that comes around the circle to just above ε counts too little: at most for this.
        let around = (-self.tilt * self.step * n as f64).exp();
        let around = around / (1.0 - around);
        let value = sum * (1.0 + 1e-12) + self.error * square.sqrt() + (-60.0f64).exp() + around;
        let spread = 8.0 * UNIT * (1.0 + self.log_scale.abs() + (self.tilt * epsilon).abs());
        let factor = (self.log_scale - self.tilt * epsilon + spread).exp();
        (factor * value + self.infinite).min(1.0)
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
}

/// A step close to the given one of which the largest atom is a multiple.
fn align(sum: &Sum, step: f64) -> f64 {
    let atoms =
        |law: &Law| law.pieces().and_then(|pieces| pieces.atoms.iter().map(|atom| atom.loss.clone()).max());
    let largest =
        sum.terms.iter().filter_map(|(law, _)| atoms(law)).filter(|loss| *loss > Rational::zero()).max();
    largest.map_or(step, |loss| {
        let loss = loss.to_f64();
        loss / (loss / step).round().max(1.0)
    })
}

/// A law on a grid.
struct Cells {
    step: f64,
    /// The grid index of the first value.
    first: i64,
    masses: Vec<f64>,
    /// Finite losses that were counted as infinite.
    beyond: f64,
}

impl Cells {
    /// Losses below `floor`, which the tilt makes negligible, are raised to it.
    fn of(law: &Law, step: f64, goal: f64, floor: f64) -> Option<Self> {
        match (&law.base, &law.sampling) {
            (Base::Gaussian { mu_squared }, sampling) => {
                gaussian(mu_squared.to_f64().sqrt(), sampling.as_ref(), step, goal, floor)
            }
            (Base::Pieces(pieces), sampling) => of_pieces(law, pieces, sampling.as_ref(), step, floor),
        }
    }

    fn empty(step: f64, low: f64, high: f64) -> Option<Self> {
        let first = ((low / step).floor() as i64).saturating_sub(1);
        let last = ((high.max(low) / step).ceil() as i64).saturating_add(1);
        let sensible =
            step > 0.0 && (high - low) / step < 4.0 * MOST_CELLS && (low.abs() + high.abs()) / step < 1e15;
        sensible.then(|| Self { step, first, masses: vec![0.0; (last - first + 1) as usize], beyond: 0.0 })
    }

    /// Adds a cell of masses p under P and w under Q, from index `left` to the next.
    fn add(&mut self, left: i64, p: f64, w: f64) {
        let excess = p - w * libm::exp(left as f64 * self.step);
        // Rounding is a few units of p, and moving it up one step is on the safe side.
        let slack = 8.0 * UNIT * p * (1.0 + (left as f64 * self.step).abs());
        let right = (excess + slack) / -libm::expm1(-self.step);
        // Where e^a is too large for a double, everything goes to the right.
        let right = if right.is_nan() { p } else { right.clamp(0.0, p) };
        let at = (left - self.first) as usize;
        self.masses[at] += p - right;
        self.masses[at + 1] += right;
    }

    /// Adds an atom of probability p at a loss known to a few units.
    fn add_atom(&mut self, loss: f64, p: f64) {
        let nearest = (loss / self.step).round();
        if (nearest * self.step - loss).abs() <= 4.0 * f64::EPSILON * loss.abs() {
            self.masses[(nearest as i64 - self.first) as usize] += p;
        } else {
            let left = (loss / self.step).floor() as i64;
            self.add(left, p, p * libm::exp(-loss));
        }
    }

    /// Keeps the positive losses, gives −ℓ e^(−ℓ) times the probability of ℓ, and puts the rest at 0.
    fn mirror(&mut self) {
        let last = self.first + self.masses.len() as i64 - 1;
        let mut masses = vec![0.0; (2 * last + 1).max(1) as usize];
        for index in 1..=last {
            let mass = self.masses.get((index - self.first) as usize).copied().unwrap_or(0.0);
            masses[(last + index) as usize] = mass;
            masses[(last - index) as usize] = mass * libm::exp(-(index as f64) * self.step);
        }
        let rest = 1.0 - masses.iter().sum::<f64>() - self.beyond;
        masses[last.max(0) as usize] = rest.max(0.0) * (1.0 + 4.0 * UNIT) + 1e-15;
        (self.first, self.masses) = (-last.max(0), masses);
    }

    /// Tilted, divided by the total, laid on a circle; and the ln of the total.
    fn tilted(&self, tilt: f64, n: usize) -> (Vec<Complex64>, f64) {
        let log = |index: usize| tilt * self.step * (self.first + index as i64) as f64;
        let peak = self.masses.iter().enumerate().filter(|(_, p)| **p > 0.0);
        let peak = peak.map(|(index, p)| p.ln() + log(index)).fold(f64::NEG_INFINITY, f64::max);
        let mut circle = vec![Complex64::ZERO; n];
        let mut total = 0.0;
        for (index, p) in self.masses.iter().enumerate().filter(|(_, p)| **p > 0.0) {
            let value = p * libm::exp(log(index) - peak);
            total += value;
            circle[(self.first + index as i64).rem_euclid(n as i64) as usize] += value;
        }
        for value in &mut circle {
            *value /= total;
        }
        (circle, peak + total.ln() + 8.0 * UNIT * (1.0 + peak.abs()))
    }
}

/// Gaussian noise, sampled or not (then the rate is 1).
fn gaussian(mu: f64, sampling: Option<&Sampling>, step: f64, goal: f64, floor: f64) -> Option<Cells> {
    let rate = sampling.map_or(1.0, |sampling| sampling.rate);
    let add = sampling.is_some_and(|sampling| sampling.direction == Direction::Add);
    // x where ln r(x) = ℓ; −∞ where there is none.
    let at = |loss: f64| {
        if loss > 700.0 {
            return (loss - rate.ln()) / mu + mu / 2.0;
        }
        let ratio = (libm::expm1(loss) + rate) / rate;
        if ratio <= 0.0 { f64::NEG_INFINITY } else { ratio.ln() / mu + mu / 2.0 }
    };
    // Both tails to the right and to the left of x: without the person, and with.
    let tail = |x: f64| 0.5 * libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2);
    let reach = (-2.0 * goal.ln()).sqrt() + 1.0;
    let loss_at = |x: f64| ratio(mu, rate, x).0;
    let (low, high) = match add {
        false => (loss_at(-reach), loss_at(mu + reach)),
        true => (-loss_at(reach), -loss_at(-reach)),
    };
    let mut cells = Cells::empty(step, low.max(floor), high)?;
    let count = cells.masses.len() as i64;
    let edge = |index: i64| {
        let loss = index as f64 * step;
        if add { at(-loss) } else { at(loss) }
    };
    // Masses between two x under N(0, 1) and N(μ, 1), each by the smaller tail, with what they may be off.
    let between = |a: f64, b: f64| {
        let part = |a: f64, b: f64| {
            let (near, far) = if a > 0.0 { (tail(a), tail(b)) } else { (tail(-b), tail(-a)) };
            (near - far, 4.0 * UNIT * near)
        };
        let (here, there) = (part(a, b), part(a - mu, b - mu));
        let mix = |x: f64, y: f64| (1.0 - rate) * x + rate * y;
        ((here.0, mix(here.0, there.0)), (here.1, mix(here.1, there.1)))
    };
    let mut left = edge(cells.first);
    for index in cells.first..cells.first + count - 1 {
        let right = edge(index + 1);
        let ((without, with), (off, off_with)) =
            if add { between(right, left) } else { between(left, right) };
        match add {
            true => cells.add(index, without + off, (with - off_with).max(0.0)),
            false => cells.add(index, with + off_with, (without - off).max(0.0)),
        }
        left = right;
    }
    // What is left of the grid goes to its first point, what is right of it is infinite.
    let (first, last) = (edge(cells.first), edge(cells.first + count - 1));
    let (below, above) = match add {
        false => (between(f64::NEG_INFINITY, first).0.1, between(last, f64::INFINITY).0.1),
        true => (between(first, f64::INFINITY).0.0, between(f64::NEG_INFINITY, last).0.0),
    };
    cells.masses[0] += below;
    cells.beyond = above;
    // Differences of tails are off by units of the tails.
    for mass in &mut cells.masses {
        *mass *= 1.0 + 4.0 * UNIT;
    }
    Some(cells)
}

/// Atoms and stretches, sampled or not.
fn of_pieces(
    law: &Law,
    pieces: &Pieces,
    sampling: Option<&Sampling>,
    step: f64,
    floor: f64,
) -> Option<Cells> {
    let sampled = |loss: f64| sampling.map_or(loss, |sampling| sampling.loss(loss));
    let mass = |atom: &Atom| {
        sampling.map_or(atom.probability, |sampling| sampling.probability(atom.probability, atom.other))
    };
    let mut atoms: Vec<_> =
        pieces.atoms.iter().map(|atom| (sampled(atom.loss.to_f64()), mass(atom))).collect();
    if let Some(sampling) = sampling.filter(|_| pieces.infinite > 0.0) {
        atoms.push(sampling.vanishing(pieces.infinite));
    }
    let ends = pieces.flats.iter().flat_map(|flat| [sampled(flat.low), sampled(flat.high)]);
    let all: Vec<f64> = atoms.iter().map(|atom| atom.0).chain(ends).collect();
    let (low, high) =
        all.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)));
    let mut cells = Cells::empty(step, low.max(floor), high)?;
    let lowest = cells.first as f64 * step;
    let finite = 1.0 - law.infinite();
    for (loss, p) in atoms {
        if loss <= lowest { cells.masses[0] += p / finite } else { cells.add_atom(loss, p / finite) }
    }
    // The loss without sampling at which the sampled loss is x.
    let base = |x: f64| match sampling {
        None => x,
        Some(Sampling { rate, direction }) => {
            let x = if *direction == Direction::Add { -x } else { x };
            libm::log1p((libm::expm1(x) / rate).max(-1.0))
        }
    };
    for flat in &pieces.flats {
        let (a, b) = (sampled(flat.low), sampled(flat.high));
        let (from, to) = ((a.min(b) / step).floor() as i64, (a.max(b) / step).ceil() as i64);
        for index in from.max(cells.first - 1)..to {
            // One cell stands for all that is below the grid.
            let below = index < cells.first;
            let left = if below { from } else { index };
            let (x, y) = (base(left as f64 * step), base((index + 1) as f64 * step));
            let (x, y) = (x.min(y).clamp(flat.low, flat.high), x.max(y).clamp(flat.low, flat.high));
            // ∫ g·e^(±ℓ/2) from x to y
            let (middle, half) = ((x + y) / 2.0, (y - x) / 2.0);
            let height = 4.0 * flat.density * libm::sinh(half / 2.0);
            let (p, q) = (height * libm::exp(middle / 2.0), height * libm::exp(-middle / 2.0));
            let (p, w) = match sampling {
                None => (p, q),
                Some(Sampling { rate, direction: Direction::Remove | Direction::Replace }) => {
                    ((1.0 - rate) * q + rate * p, q)
                }
                Some(Sampling { rate, direction: Direction::Add }) => (q, (1.0 - rate) * q + rate * p),
            };
            if below { cells.masses[0] += p / finite } else { cells.add(index, p / finite, w / finite) }
        }
    }
    Some(cells)
}
