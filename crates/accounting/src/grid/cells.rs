//! [`Cells`]: a law on multiples of the step, from above and from below.
//!
//! **Masses.** Between two places x < y that are doubles, the mass of N(0, 1) is, with m in the middle and d = y − x,
//!
//! ```text
//! φ(m)·d·(1 + (m² − 1)·d²/24 + (m⁴ − 6m² + 3)·d⁴/1920 + …)
//! ```
//!
//! where the rest is below one unit for (1 + |m|)·d ≤ 0.01, and d is exact: a cell keeps its digits however narrow it is.
//!
//! **Blur.** The places are rounded, so the loss at a cell's end is off from its multiple of the step by a few
//! units. With L′ the loss that has the multiples there, and Q′ = e^(−L′)·P, all of Q is within a factor e^(±κ) of Q′, and
//! H_E(P‖Q) lies between the values of H(P‖Q′) at E·e^κ and at E·e^(−κ). κ is `blur`.

use super::merge::{Cell, OFF, merged};
use crate::Bounds;
use crate::law::{Atom, Base, Direction, Law, Pieces, Sampling};
use crate::nodes::{UNIT, ratio};

/// The most cells from 0 to the largest loss.
pub(super) const MOST_CELLS: f64 = 4e6;

/// Where the points of a grid are.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    pub(super) step: f64,
    pub(super) offset: f64,
}

impl Scale {
    pub(super) fn loss(self, index: i64) -> f64 {
        self.offset + index as f64 * self.step
    }

    /// The index of a loss, as a double that is not whole between points.
    fn index(self, loss: f64) -> f64 {
        (loss - self.offset) / self.step
    }
}

/// A law on a grid.
pub(super) struct Cells {
    scale: Scale,
    /// The grid index of the first value.
    first: i64,
    /// Probabilities of a law that is worse.
    above: Vec<f64>,
    /// Finite losses that were counted as infinite there.
    pub(super) beyond: f64,
    /// Atoms on the grid, and cells, for a law that is better.
    points: Vec<f64>,
    /// Of each cell the mass under P, and that under Q times e^a.
    cells: Vec<(f64, f64)>,
    /// How far losses may be off.
    pub(super) blur: f64,
}

/// Probabilities of grid points from index `first` on.
pub(super) struct Masses {
    pub(super) scale: Scale,
    pub(super) first: i64,
    pub(super) masses: Vec<f64>,
}

impl Cells {
    /// Losses below `floor`, which the tilt makes negligible, are raised to it, or left out.
    pub(super) fn of(law: &Law, scale: Scale, goal: f64, floor: f64) -> Option<Self> {
        match (&law.base, &law.sampling) {
            (Base::Gaussian { mu_squared }, sampling) => {
                gaussian(mu_squared.to_f64().sqrt(), sampling.as_ref(), scale, goal, floor)
            }
            (Base::Pieces(pieces), sampling) => of_pieces(law, pieces, sampling.as_ref(), scale, floor),
        }
    }

    fn empty(scale: Scale, low: f64, high: f64, blur: f64) -> Option<Self> {
        let step = scale.step;
        let first = (scale.index(low).floor() as i64).saturating_sub(1);
        let last = (scale.index(high.max(low)).ceil() as i64).saturating_add(1);
        let sensible =
            step > 0.0 && (high - low) / step < 4.0 * MOST_CELLS && (low.abs() + high.abs()) / step < 1e15;
        sensible.then(|| {
            let count = (last - first + 1) as usize;
            let (above, points) = (vec![0.0; count], vec![0.0; count]);
            let cells = vec![(0.0, 0.0); count - 1];
            Self { scale, first, above, beyond: 0.0, points, cells, blur: blur + OFF * UNIT }
        })
    }

    /// The law that is better, from parts of neighbouring cells.
    pub(super) fn better(&self, mirrored: bool) -> Masses {
        let rise = libm::expm1(self.scale.step);
        let cells: Vec<_> = self.cells.iter().map(|(p, low)| Cell::new(*p, *low, rise)).collect();
        let put = |(point, merged): (&f64, f64)| (point + merged) * (1.0 - OFF * UNIT);
        let masses = self.points.iter().zip(merged(&cells)).map(put).collect();
        let law = Masses { scale: self.scale, first: self.first, masses };
        // The sum of all is known to two units.
        if mirrored { law.mirrored(0.0, -4.0 * UNIT) } else { law }
    }

    /// The law that is worse.
    pub(super) fn worse(self, mirrored: bool) -> Masses {
        let law = Masses { scale: self.scale, first: self.first, masses: self.above };
        if mirrored { law.mirrored(self.beyond, 4.0 * UNIT) } else { law }
    }

    /// Adds a cell from index `left` to the next: masses under P and Q with more of P and less of Q than there is,
    /// and the reverse.
    fn add(&mut self, left: i64, worse: (f64, f64), better: (f64, f64)) {
        let (at, loss) = ((left - self.first) as usize, self.scale.loss(left));
        let (growth, slack) = (libm::exp(loss), 8.0 * UNIT * (1.0 + loss.abs()));
        // Rounding is a few units of p, and moving it up one step is on the safe side.
        let (p, w) = worse;
        let right = (p - w * growth + slack * p) / -libm::expm1(-self.scale.step);
        // Where e^a is too large for a double, everything goes to the right.
        let right = if right.is_nan() { p } else { right.clamp(0.0, p) };
        self.above[at] += p - right;
        self.above[at + 1] += right;
        let (p, w) = better;
        self.cells[at].0 += p;
        self.cells[at].1 += w * growth * (1.0 + slack);
    }

    /// Adds an atom of probability p at a loss known to a few units.
    fn add_atom(&mut self, loss: f64, p: Bounds) {
        let nearest = self.scale.index(loss).round() as i64;
        if (self.scale.loss(nearest) - loss).abs() <= 4.0 * f64::EPSILON * loss.abs() {
            let at = (nearest - self.first) as usize;
            self.above[at] += p.upper;
            self.points[at] += p.lower;
        } else {
            let fall = libm::exp(-loss);
            let left = self.scale.index(loss).floor() as i64;
            self.add(left, (p.upper, p.upper * fall), (p.lower, p.lower * fall));
        }
    }
}

impl Masses {
    /// Keeps the positive losses, gives −ℓ e^(−ℓ) times the probability of ℓ, and puts the rest at 0.
    fn mirrored(self, beyond: f64, slack: f64) -> Self {
        let last = self.first + self.masses.len() as i64 - 1;
        let mut masses = vec![0.0; (2 * last + 1).max(1) as usize];
        for index in 1..=last {
            let mass = self.masses.get((index - self.first) as usize).copied().unwrap_or(0.0);
            masses[(last + index) as usize] = mass;
            masses[(last - index) as usize] = mass * libm::exp(-(index as f64) * self.scale.step);
        }
        masses[last.max(0) as usize] = (1.0 - sum(&masses) - beyond + slack).max(0.0);
        Self { scale: self.scale, first: -last.max(0), masses }
    }
}

/// Σ of positive numbers, to two units.
fn sum(values: &[f64]) -> f64 {
    let (mut sum, mut rest) = (0.0f64, 0.0);
    for value in values {
        let next = sum + value;
        rest += if sum >= *value { (sum - next) + value } else { (value - next) + sum };
        sum = next;
    }
    sum + rest
}

/// The mass of N(0, 1) between a and b, and by how much it may be off.
fn normal(a: f64, b: f64) -> (f64, f64) {
    let (middle, width) = ((a + b) / 2.0, b - a);
    if (1.0 + middle.abs()) * width <= 0.01 {
        let (square, d) = (middle * middle, width * width);
        let shape = 1.0 + (square - 1.0) * d / 24.0 + (square * square - 6.0 * square + 3.0) * d * d / 1920.0;
        let mass = INVERSE_ROOT_TWO_PI * libm::exp(-square / 2.0) * width * shape;
        return (mass, UNIT * (16.0 + 4.0 * square) * mass);
    }
    let tail = |x: f64| 0.5 * libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2);
    let (near, far, x) = if a > 0.0 { (tail(a), tail(b), a) } else { (tail(-b), tail(-a), b) };
    // erfc to 4u, and its argument to 2u: φ(x)·x·2u, with φ(x) ≤ (1 + |x|)·tail
    (near - far, UNIT * (8.0 + 4.0 * x.abs().min(40.0) * (1.0 + x.abs().min(40.0))) * near)
}

const INVERSE_ROOT_TWO_PI: f64 = 0.398_942_280_401_432_7;

/// Gaussian noise, sampled or not (then the rate is 1).
fn gaussian(mu: f64, sampling: Option<&Sampling>, scale: Scale, goal: f64, floor: f64) -> Option<Cells> {
    let rate = sampling.map_or(1.0, |sampling| sampling.rate);
    let add = sampling.is_some_and(|sampling| sampling.direction == Direction::Add);
    // x where ln r(x) = ℓ; −∞ where there is none.
    let at = |loss: f64| {
        if loss > 700.0 || rate == 1.0 {
            return (loss - rate.ln()) / mu + mu / 2.0;
        }
        let ratio = (libm::expm1(loss) + rate) / rate;
        if ratio <= 0.0 { f64::NEG_INFINITY } else { ratio.ln() / mu + mu / 2.0 }
    };
    let reach = (-2.0 * goal.ln()).sqrt() + 1.0;
    let loss_at = |x: f64| ratio(mu, rate, x).0;
    let (low, high) = match add {
        false => (loss_at(-reach), loss_at(mu + reach)),
        true => (-loss_at(reach), -loss_at(-reach)),
    };
    // x is off by a few units of itself and of μ, and where r is near its least by units of q/(1 − q).
    let edge_of_sample = if sampling.is_some() { rate / (1.0 - rate) } else { 0.0 };
    let blur = 8.0 * UNIT * (2.0 + low.abs().max(high.abs()) + mu * (reach + 2.0 * mu) + edge_of_sample);
    let mut cells = Cells::empty(scale, low.max(floor), high, blur)?;
    let count = cells.above.len() as i64;
    let edge = |index: i64| {
        let loss = scale.loss(index);
        if add { at(-loss) } else { at(loss) }
    };
    // Masses between two x without the person and with.
    let between = |a: f64, b: f64| {
        let (here, there) = (normal(a, b), normal(a - mu, b - mu));
        let mix = |x: f64, y: f64| (1.0 - rate) * x + rate * y;
        let with = (mix(here.0, there.0), mix(here.1, there.1));
        if add { [here, with] } else { [with, here] }
    };
    let up = |(mass, off): (f64, f64)| (mass + off) * (1.0 + 4.0 * UNIT);
    let down = |(mass, off): (f64, f64)| (mass - off).max(0.0) * (1.0 - 4.0 * UNIT);
    let mut left = edge(cells.first);
    for index in cells.first..cells.first + count - 1 {
        let right = edge(index + 1);
        let [p, w] = if add { between(right, left) } else { between(left, right) };
        cells.add(index, (up(p), down(w)), (down(p), up(w)));
        left = right;
    }
    // What is left of the grid goes to its first point, what is right of it is infinite; or neither counts.
    let (first, last) = (edge(cells.first), edge(cells.first + count - 1));
    let (below, beyond) = match add {
        false => (between(f64::NEG_INFINITY, first), between(last, f64::INFINITY)),
        true => (between(first, f64::INFINITY), between(f64::NEG_INFINITY, last)),
    };
    cells.above[0] += up(below[0]);
    cells.beyond = up(beyond[0]);
    Some(cells)
}

/// Atoms and stretches, sampled or not.
fn of_pieces(
    law: &Law,
    pieces: &Pieces,
    sampling: Option<&Sampling>,
    scale: Scale,
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
    let flats = || pieces.flats.iter().flat_map(|flat| [flat.low, flat.high]);
    let all: Vec<f64> = atoms.iter().map(|atom| atom.0).chain(flats().map(sampled)).collect();
    let (low, high) =
        all.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)));
    let widest = flats().chain([low, high]).fold(0.0, |widest: f64, loss| widest.max(loss.abs()));
    let edge_of_sample = sampling.map_or(0.0, |sampling| sampling.rate / (1.0 - sampling.rate));
    let mut cells = Cells::empty(scale, low.max(floor), high, 16.0 * UNIT * (2.0 + widest + edge_of_sample))?;
    let lowest = scale.loss(cells.first);
    let finite = 1.0 - law.infinite();
    let off = |p: f64, loss: f64| {
        let slack = 32.0 * UNIT * (1.0 + loss.abs());
        Bounds::new(p / finite * (1.0 - slack).max(0.0), p / finite * (1.0 + slack))
    };
    for (loss, p) in atoms {
        let p = off(p, 0.0);
        if loss <= lowest { cells.above[0] += p.upper } else { cells.add_atom(loss, p) }
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
        let (from, to) = (scale.index(a.min(b)).floor() as i64, scale.index(a.max(b)).ceil() as i64);
        for index in from.max(cells.first - 1)..to {
            // One cell stands for all that is below the grid.
            let below = index < cells.first;
            let left = if below { from } else { index };
            let (x, y) = (base(scale.loss(left)), base(scale.loss(index + 1)));
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
            let (p, w) = (off(p, middle), off(w, middle));
            if below {
                cells.above[0] += p.upper
            } else {
                cells.add(index, (p.upper, w.lower), (p.lower, w.upper))
            }
        }
    }
    Some(cells)
}
