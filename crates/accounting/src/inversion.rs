//! Exact composition by inverting the moment function.
//!
//! **Definition.** Composed losses add, so their moments multiply: F(z) = ∏ Kᵢ(z)^nᵢ. For every c > 0
//!
//! ```text
//! δ(ε) = 1/2πi · ∫_{Re z = c} F(z)·e^(−zε)/(z(z + 1)) dz
//! ```
//!
//! **Discretisation.** The trapezoid rule with step h gives
//! T(ε) = Σₙ e^(2πcn/h)·δ(ε + 2πn/h) over all whole n: every term is positive, so
//! T ≥ δ(ε) *whatever h is*. How much it is above is bounded with s = 2π/h:
//!
//! ```text
//! n < 0:  Σ e^(−c|n|s)                                          since δ ≤ 1
//! n > 0:  Σ e^(−(c′ − c)ns) · F(c′)·e^(−c′ε)·c′^c′/(c′ + 1)^(c′ + 1)    for any c′ > c
//! ```
//!
//! the second by (1 − e^(ε − L))⁺ ≤ e^(c′(L − ε))·c′^c′/(c′ + 1)^(c′ + 1).
//!
//! **Truncation.** The sum stops at the first y where the [decay](crate::decay) of the laws proves
//! that the rest is negligible; what it proves is added.
//!
//! **Rounding.** Every node carries a bound on its error, from [`Nodes`] and the products here.
//!
//! **Where.** c is the saddle point: there the sum has least cancellation, and δ keeps its relative
//! accuracy however small it is.
//!
//! **References.** docs/accounting.md; \[Trefethen2014\] for the trapezoid rule.

use std::f64::consts::PI;

use demur_exact::Rational;
use num_complex::Complex64;

use crate::Bounds;
use crate::decay::Decay;
use crate::law::{Base, Law};
use crate::nodes::{Moments, Nodes, Reach, Tilted, UNIT};

/// What the certified errors shall be below, relatively.
const GOAL: f64 = 1e-13;
/// How many nodes are tried at most.
const MOST_NODES: f64 = 400_000.0;
/// How many evaluations of single waves are tried at most.
const MOST_WAVES: f64 = 3e7;
/// How many nodes the laws may have together.
const MOST_WIDTH: f64 = 3e5;

/// Independent losses with finite values, and how often each was paid.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum {
    /// Σ μ² of plain Gaussian noise.
    pub(crate) mu_squared: f64,
    /// Everything else.
    pub(crate) terms: Vec<(Law, f64)>,
}

/// All finite losses are `offset` plus multiples of `step`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lattice {
    pub(crate) offset: f64,
    pub(crate) step: f64,
}

/// F on the line Re z = c.
pub(crate) struct Line {
    tilt: f64,
    step: f64,
    lattice: Option<Lattice>,
    /// ln F(c).
    log_scale: f64,
    /// The ε for which the line was placed.
    centre: f64,
    nodes: Vec<Node>,
    /// Σ |F(z)/F(c)|/|z(z + 1)| beyond the last node, times h/π.
    tail: f64,
    /// ln F(c′) and c′ for the bound on what T is above δ.
    beyond: (f64, f64),
}

struct Node {
    y: f64,
    /// F(z)/F(c)/(z(z + 1)), or on a lattice F(z)/F(c)·g/((1 − e^(−zg))(1 − e^(−(z+1)g))).
    value: Complex64,
    error: f64,
}

/// Where to put the line, and what is expected there.
#[derive(Clone, Copy, Debug)]
struct Saddle {
    tilt: f64,
    epsilon: f64,
    /// ln F(c).
    log_moment: f64,
    /// ln δ, roughly.
    log_delta: f64,
    /// How curved the integrand is: its width in y is 1/√curvature.
    curvature: f64,
}

impl Sum {
    /// The line for δ near `epsilon`; `None` when no decay can be proven with affordable effort.
    pub(crate) fn line_for_epsilon(&self, epsilon: f64, lattice: Option<Lattice>) -> Option<Line> {
        let mut real = RealMoments::new(self);
        let saddle = real.saddle(|saddle| saddle.epsilon - epsilon)?;
        Line::new(self, &mut real, saddle, lattice)
    }

    /// The line for ε near δ.
    pub(crate) fn line_for_delta(&self, log_delta: f64, lattice: Option<Lattice>) -> Option<Line> {
        let mut real = RealMoments::new(self);
        let saddle = real.saddle(|saddle| log_delta - saddle.log_delta)?;
        Line::new(self, &mut real, saddle, lattice)
    }

    /// Whether the moments at real c can be had in good time.
    fn affordable(&self, tilt: f64) -> bool {
        let reach = Reach { tilt, frequency: 0.0, tolerance: 1e-18 };
        self.terms.iter().map(|(law, _)| Nodes::expected(law, reach)).sum::<f64>() < MOST_WIDTH
    }

    /// ln F(c) for real c; without an upper bound where it would take too long.
    pub(crate) fn log_moment(&self, tilt: f64) -> Bounds {
        if !self.affordable(tilt) {
            return Bounds::new(0.0, f64::INFINITY);
        }
        let tolerance = (1e-15 / self.uses().max(1.0)).max(1e-19);
        let reach = Reach { tilt, frequency: 0.0, tolerance };
        let gaussian = tilt * (tilt + 1.0) / 2.0 * self.mu_squared;
        let (mut value, mut error) = (gaussian, 8.0 * UNIT * gaussian);
        for (law, count) in &self.terms {
            let moment = Nodes::of(law, reach).moments(tilt).real();
            value += count * moment.value.re;
            error += count * moment.error + 4.0 * UNIT * value;
        }
        Bounds::new((value - error).max(0.0), value + error)
    }

    /// ln F(c), as the lines are scaled by.
    pub(crate) fn log_scale(&self, tilt: f64) -> f64 {
        RealMoments::new(self).at(tilt).log_moment
    }

    /// Beyond this tilt only the largest loss is left of a bounded law.
    pub(crate) fn highest_tilt(&self) -> f64 {
        let tops = self.terms.iter().map(|(law, _)| law.top()).collect::<Option<Vec<_>>>();
        let bounded = tops.filter(|_| self.mu_squared == 0.0);
        bounded.map_or(1e7, |tops| (300.0 / tops.into_iter().fold(0.0, f64::max)).min(1e7))
    }

    /// Mean and variance of the loss.
    pub(crate) fn mean_and_variance(&self) -> (f64, f64) {
        let mut real = RealMoments::new(self);
        let laws = real.moments(0.0);
        let of = |value: fn(&Moments) -> f64| {
            laws.iter().zip(&self.terms).map(|(law, (_, n))| n * value(law)).sum::<f64>()
        };
        (of(|law| law.mean) + self.mu_squared / 2.0, of(|law| law.variance) + self.mu_squared)
    }

    /// Where the line would be placed for δ, and the ε expected there.
    pub(crate) fn saddle_for_delta(&self, log_delta: f64) -> Option<(f64, f64)> {
        let saddle = RealMoments::new(self).saddle(|saddle| log_delta - saddle.log_delta)?;
        Some((saddle.tilt, saddle.epsilon))
    }

    /// Where the line would be placed for ε, and the ln δ expected there.
    pub(crate) fn saddle_for_epsilon(&self, epsilon: f64) -> Option<(f64, f64)> {
        let saddle = RealMoments::new(self).saddle(|saddle| saddle.epsilon - epsilon)?;
        Some((saddle.tilt, saddle.log_delta))
    }

    /// Every law with how often it was paid, all Gaussian noise as one.
    pub(crate) fn all(&self) -> Vec<(Law, f64)> {
        let gaussian = Rational::try_from(self.mu_squared).ok().filter(|mu_squared| !mu_squared.is_zero());
        let gaussian =
            gaussian.map(|mu_squared| (Law { base: Base::Gaussian { mu_squared }, sampling: None }, 1.0));
        self.terms.iter().cloned().chain(gaussian).collect()
    }

    /// How many losses there are, without Gaussian noise.
    pub(crate) fn uses(&self) -> f64 {
        self.terms.iter().map(|(_, count)| count).sum()
    }
}

/// Moments for real z, with nodes that are kept from one c to the next.
struct RealMoments<'a> {
    sum: &'a Sum,
    cap: f64,
    nodes: Vec<Nodes>,
}

impl<'a> RealMoments<'a> {
    fn new(sum: &'a Sum) -> Self {
        Self { sum, cap: 0.0, nodes: vec![] }
    }

    fn moments(&mut self, tilt: f64) -> Vec<Moments> {
        if tilt > self.cap || self.nodes.is_empty() {
            self.cap = tilt * 2.0;
            let tolerance = (1e-4 / self.sum.uses().max(1.0)).max(1e-18);
            let reach = Reach { tilt: self.cap, frequency: 0.0, tolerance };
            self.nodes = self.sum.terms.iter().map(|(law, _)| Nodes::of(law, reach)).collect();
        }
        self.nodes.iter().map(|nodes| nodes.moments(tilt)).collect()
    }

    fn at(&mut self, c: f64) -> Saddle {
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
    fn saddle(&mut self, excess: impl Fn(Saddle) -> f64) -> Option<Saddle> {
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

impl Line {
    fn new(sum: &Sum, real: &mut RealMoments<'_>, saddle: Saddle, lattice: Option<Lattice>) -> Option<Self> {
        let (tilt, distance, beyond) = place(real, saddle)?;
        let goal = GOAL / (tilt * (tilt + 1.0) * (2.0 * PI * saddle.curvature).sqrt());
        let mut line = Self { lattice, ..Self::empty(tilt, 2.0 * PI / distance, saddle, beyond) };
        let mut kernel = 1.0;
        let (step, end, goal) = match lattice {
            Some(lattice) => {
                // An odd number of nodes in the period 2π/g: F is real at the first alone.
                let half = (distance / lattice.step / 2.0).ceil().max(8.0);
                line.step = 2.0 * PI / lattice.step / (2.0 * half + 1.0);
                // |kernel| ≤ (π²/4)·e^((c + ½)g)/y²
                kernel = 2.5 * ((tilt + 0.5) * lattice.step).exp();
                (line.step, half * line.step, goal / kernel)
            }
            None => {
                let step = line.step;
                let modulus = Modulus::new(sum, real, tilt);
                let end = modulus.end(step, goal)?;
                line.tail = modulus.log(end).exp() / (PI * (end - step).max(step / 2.0));
                (step, end, goal)
            }
        };
        let mut fill =
            Fill { sum, line: &mut line, last: (end / step).round() as usize, goal, kernel, waves: 0.0 };
        let first = (8.0 * saddle.curvature.sqrt().recip()).max(step);
        (fill.near(first)? && fill.far()?).then_some(line)
    }

    fn node(&self, sum: &Sum, tilted: &[(Tilted, f64)], y: f64) -> Node {
        let c = self.tilt;
        let mut log = Complex64::new((c * (c + 1.0) - y * y) / 2.0, (c + 0.5) * y) * sum.mu_squared;
        let mut error = 4.0 * UNIT * (c * (c + 1.0) + y * y + (c + 1.0) * y) * sum.mu_squared;
        let mut modulus = log.re;
        for (law, count) in tilted {
            let moment = law.at(y);
            log += moment.value * count;
            error += moment.error * count + 2.0 * UNIT * count * moment.value.norm();
            modulus += count * moment.log_modulus;
        }
        error += 8.0 * UNIT * (1.0 + log.norm() + self.log_scale.abs());
        let z = Complex64::new(c, y);
        let kernel = match self.lattice {
            None => (z * (z + 1.0)).inv(),
            Some(Lattice { step, .. }) => {
                let fall = |z: Complex64| 1.0 - (-z * step).exp();
                step / (fall(z) * fall(z + 1.0))
            }
        };
        if error > 0.1 {
            let bound = (modulus - self.log_scale + 1e-12).exp() * kernel.norm();
            return Node { y, value: Complex64::ZERO, error: bound };
        }
        let value = (log - self.log_scale).exp() * kernel;
        Node { y, value, error: value.norm() * 1.1 * error }
    }

    /// ln(F(c)·e^(−cε)).
    fn log_factor(&self, epsilon: f64) -> f64 {
        self.log_scale - self.tilt * epsilon
    }

    /// T(ε)·e^(cε)/F(c), its derivative by ε, and a bound on the error of the first.
    fn sum(&self, epsilon: f64) -> (f64, f64, f64) {
        let (mut value, mut slope, mut error) = (0.0, 0.0, 0.0);
        let (here, numerator) = self.numerator(epsilon);
        // On a lattice the first loss above ε is known to a few units of where the lattice starts.
        let offset = self.lattice.map_or(0.0, |lattice| lattice.offset.abs());
        // From the far end, so that the large terms are rounded least often.
        for (index, node) in self.nodes.iter().enumerate().rev() {
            let half = if index == 0 { 0.5 } else { 1.0 };
            let (sine, cosine) = libm::sincos(node.y * here);
            let term = node.value * numerator(node.y) * Complex64::new(cosine, -sine) * half;
            value += term.re;
            slope -= term.re * self.tilt - term.im * node.y;
            error += node.error * half
                + size(term) * UNIT * (8.0 + 4.0 * node.y * (epsilon.abs() + offset) + index as f64)
                + size(node.value) * 8.0 * UNIT * offset;
        }
        let factor = self.step / PI;
        (value * factor, slope * factor, error * factor * (1.0 + 1e-6) + self.tail)
    }

    /// The loss up to which waves have travelled, and what multiplies each: on a lattice the sum over
    /// losses ℓ > ε starts at the first one, r = ℓ − ε above, and is a geometric series,
    ///
    /// ```text
    /// Σ e^(−zℓ)·(1 − e^(ε − ℓ)) = e^(−zℓ)·((1 − e^(−r)) + e^(−zg)·(e^(−r) − e^(−g)))/((1 − e^(−zg))(1 − e^(−(z+1)g)))
    /// ```
    fn numerator(&self, epsilon: f64) -> (f64, impl Fn(f64) -> Complex64) {
        let tilt = self.tilt;
        let (here, above, step) = match self.lattice {
            None => (epsilon, None, 0.0),
            Some(Lattice { offset, step }) => {
                let here = offset + ((epsilon - offset) / step).ceil() * step;
                (here, Some((here - epsilon).clamp(0.0, step)), step)
            }
        };
        let numerator = move |y: f64| match above {
            None => Complex64::ONE,
            Some(r) => {
                let wave = Complex64::new(-tilt * step, -y * step).exp();
                // e^(−c·r): the factor in front is e^(−cε), not e^(−cℓ)
                (-libm::expm1(-r) + wave * (libm::exp(-r) * -libm::expm1(r - step))) * libm::exp(-tilt * r)
            }
        };
        (here, numerator)
    }

    /// Bounds on δ(ε).
    pub(crate) fn delta(&self, epsilon: f64) -> Bounds {
        let (value, _, error) = self.sum(epsilon);
        let log_factor = self.log_factor(epsilon);
        let rounding = 4.0 * UNIT * (2.0 + self.log_scale.abs() + (self.tilt * epsilon).abs());
        let factor = log_factor.exp();
        let upper = factor * (value + error) * (1.0 + rounding) + f64::MIN_POSITIVE * f64::EPSILON;
        let lower = factor * (value - error) * (1.0 - rounding) - self.alias(epsilon);
        Bounds::new(lower.clamp(0.0, 1.0), upper.clamp(0.0, 1.0))
    }

    /// What T may be above δ.
    fn alias(&self, epsilon: f64) -> f64 {
        let distance = 2.0 * PI / self.step;
        let geometric = |log_ratio: f64| {
            let ratio = log_ratio.exp();
            ratio / (1.0 - ratio)
        };
        let before = geometric(-self.tilt * distance);
        let (log_moment, c) = self.beyond;
        let after = geometric(-(c - self.tilt) * distance) * (log_moment - c * epsilon + log_payoff(c)).exp();
        (before + after) * (1.0 + 1e-9)
    }

    /// Bounds on the least ε ≥ 0 with δ(ε) ≤ δ.
    ///
    /// δ is known to lie between two doubles.
    pub(crate) fn epsilon(&self, at_least: f64, at_most: f64) -> Option<Bounds> {
        let target = at_least.ln();
        let mut epsilon = self.centre;
        for _ in 0..50 {
            let (value, slope, _) = self.sum(epsilon);
            // d ln T/dε = slope/value, since `slope` includes the factor's own −c
            let step = (value.ln() + self.log_factor(epsilon) - target) / (slope / value);
            let step =
                if step.is_finite() { step.clamp(-1.0 - epsilon.abs(), 1.0 + epsilon.abs()) } else { break };
            epsilon -= step;
            if step.abs() <= 4.0 * f64::EPSILON * epsilon.abs() {
                break;
            }
        }
        let search = |sign: f64, holds: &dyn Fn(Bounds) -> bool| {
            let mut step = 4.0 * f64::EPSILON * epsilon.abs().max(1e-10);
            loop {
                let tried = (epsilon + sign * step).max(0.0);
                if (sign < 0.0 && tried == 0.0) || holds(self.delta(tried)) {
                    return Some(tried);
                }
                if step > 1e6 {
                    return None;
                }
                step *= 1.5;
            }
        };
        let upper = search(1.0, &|bounds| bounds.upper <= at_least)?;
        let lower = search(-1.0, &|bounds| bounds.lower >= at_most).unwrap_or(0.0);
        Some(Bounds::new(lower.min(upper), upper))
    }
}

impl Line {
    /// A line for a part of F that falls at least like 1/y², whose values `part` gives with their errors.
    ///
    /// `bound` is at least |part| at y, and falls at least like 1/y². All are divided by F(c).
    pub(crate) fn of_part(
        sum: &Sum,
        saddle: (f64, f64, f64),
        part: impl Fn(Complex64) -> (Complex64, f64),
        bound: impl Fn(f64) -> f64,
    ) -> Option<Self> {
        let mut real = RealMoments::new(sum);
        let (tilt, epsilon, log_delta) = saddle;
        let saddle = Saddle { epsilon, log_delta, ..real.at(tilt) };
        let (distance, beyond) = spacing(&bounds_beyond(&mut real, tilt), tilt, saddle)?;
        let step = 2.0 * PI / distance;
        let goal = GOAL / (tilt * (tilt + 1.0) * (2.0 * PI * saddle.curvature).sqrt());
        // Σ h/π·B(Y)·Y²/y⁴ over y > Y is at most B(Y)/(3πY), but for one step.
        let rest = |y: f64| bound(y) * y * y / (3.0 * PI * (y - step).powi(3));
        let mut last = 16.0;
        while rest(last * step) > goal {
            last *= 1.3;
            if last > MOST_NODES {
                return None;
            }
        }
        let last = last.ceil();
        let (mut line, tail) = (Self::empty(tilt, step, saddle, beyond), rest(last * step));
        line.tail = tail;
        line.log_scale = saddle.log_moment;
        for index in 0..=last as usize {
            let y = index as f64 * step;
            let z = Complex64::new(tilt, y);
            let ((value, error), kernel) = (part(z), (z * (z + 1.0)).inv());
            line.nodes.push(Node { y, value: value * kernel, error: error * kernel.norm() });
        }
        Some(line)
    }

    fn empty(tilt: f64, step: f64, saddle: Saddle, beyond: (f64, f64)) -> Self {
        let (log_scale, centre) = (0.0, saddle.epsilon);
        Self { tilt, step, lattice: None, log_scale, centre, nodes: vec![], tail: 0.0, beyond }
    }
}

/// Evaluates F along a line, as far as needed.
struct Fill<'a> {
    sum: &'a Sum,
    line: &'a mut Line,
    /// The number of the last node.
    last: usize,
    /// What may be left out.
    goal: f64,
    /// By what factor the kernel may exceed 1/y².
    kernel: f64,
    waves: f64,
}

impl Fill<'_> {
    /// Tilted laws for frequencies up to some y, and what the tolerance is.
    fn laws(&mut self, frequency: f64, tolerance: f64, nodes: f64) -> Option<Vec<(Tilted, f64)>> {
        let reach = Reach { tilt: self.line.tilt, frequency, tolerance };
        let width: f64 = self.sum.terms.iter().map(|(law, _)| Nodes::expected(law, reach)).sum();
        self.waves += (nodes + 1.0) * (width + 1.0);
        if self.waves > MOST_WAVES || width > MOST_WIDTH {
            return None;
        }
        let tilted = |(law, count): &(Law, f64)| (Nodes::of(law, reach).tilted(self.line.tilt), *count);
        Some(self.sum.terms.iter().map(tilted).collect())
    }

    /// The nodes that matter, in blocks of doubling frequency and falling precision; true when all
    /// further ones seem negligible.
    fn near(&mut self, first: f64) -> Option<bool> {
        let uses = self.sum.uses().max(1.0) * self.sum.terms.len().max(1) as f64;
        let (mut frequency, mut log_fallen) = (first, 0.0f64);
        loop {
            let tolerance = (1e-15 / uses * (-log_fallen).exp()).clamp(1e-19, 1e-3 / uses);
            let begin = self.line.nodes.len();
            let last = ((frequency / self.line.step) as usize + 1).min(self.last);
            let laws = self.laws(frequency, tolerance, last.saturating_sub(begin) as f64)?;
            if begin == 0 {
                let c = self.line.tilt;
                self.line.log_scale = self.sum.mu_squared * c * (c + 1.0) / 2.0
                    + laws.iter().map(|(law, n)| n * law.log_moment()).sum::<f64>();
            }
            for index in begin..=last {
                let y = index as f64 * self.line.step;
                let node = self.line.node(self.sum, &laws, y);
                let z = Complex64::new(self.line.tilt, y);
                log_fallen = ((node.value.norm() + node.error) * (z * (z + 1.0)).norm()).ln();
                self.line.nodes.push(node);
                if index == self.last || log_fallen < (self.goal * y).ln() {
                    return Some(true);
                }
            }
            if self.line.nodes.len() as f64 > MOST_NODES {
                return None;
            }
            frequency *= 2.0;
        }
    }

    /// Shows that nothing up to the end of the line is above the goal, or adds what is.
    ///
    /// arccos |φ(y)| of one law moves by at most its standard deviation per unit of y, so a value well
    /// below what is needed speaks for its neighbours too.
    fn far(&mut self) -> Option<bool> {
        let (step, uses) = (self.line.step, self.sum.uses().max(1.0));
        let (mut index, last) = (self.line.nodes.len(), self.last);
        // Σ h/π·B/y² over all nodes from y on is at most B/(π(y − h)).
        let from = (index.max(2) - 1) as f64 * step;
        let enough = (self.goal * PI * from).ln();
        let slack = 1e-9 + 16.0 * UNIT * uses;
        self.line.tail += self.goal * self.kernel * (1.0 + 1e-9);
        let mut frequency = index as f64 * step;
        while index <= last {
            frequency = (2.0 * frequency).min(last as f64 * step);
            let block = ((frequency / step) as usize).clamp(index, last);
            let laws = self.laws(frequency, 1e-2 / uses, (block - index) as f64 / 4.0)?;
            while index <= block {
                let y = index as f64 * step;
                let angles: Vec<_> =
                    laws.iter().map(|(law, count)| (law.angle(y), law.deviation(), *count)).collect();
                let bound = |nodes: usize| {
                    let moved = |(angle, deviation, count): &(f64, f64, f64)| {
                        count * (angle - deviation * nodes as f64 * step).max(0.0).cos().ln()
                    };
                    angles.iter().map(moved).sum::<f64>() - self.sum.mu_squared * y * y / 2.0 + slack
                };
                if bound(0) > enough {
                    self.line.tail += self.kernel * step / PI * bound(0).exp() / (y * y);
                }
                let mut skipped = 0;
                while bound(2 * skipped + 1) <= enough {
                    skipped = 2 * skipped + 1;
                    if index + skipped > last {
                        break;
                    }
                }
                index += skipped + 1;
            }
        }
        Some(true)
    }
}

/// At least |z|, and at most √2 times that.
fn size(z: Complex64) -> f64 {
    z.re.abs() + z.im.abs()
}

/// ln of c^c/(c + 1)^(c + 1), the factor between (1 − e^(−t))⁺ and e^(ct).
fn log_payoff(c: f64) -> f64 {
    c * c.ln() - (c + 1.0) * (c + 1.0).ln()
}

/// Where to put the line and how far apart the copies of δ in T shall be, with (ln F(c′), c′) to bound them.
///
/// At the saddle the sum is largest against its terms. When one loss in a while is large, the copies
/// fade sooner a little to the left of it, at the price of a digit.
fn place(real: &mut RealMoments<'_>, saddle: Saddle) -> Option<(f64, f64, (f64, f64))> {
    const PRICE: f64 = 3.0;
    let height = |at: Saddle| at.log_moment - at.tilt * saddle.epsilon - (at.tilt * (at.tilt + 1.0)).ln();
    let bounds = bounds_beyond(real, saddle.tilt);
    let mut best: Option<(f64, f64, (f64, f64))> = None;
    for factor in [1.0, 0.85, 0.7, 0.6, 0.5] {
        let here = if factor == 1.0 { saddle } else { real.at(factor * saddle.tilt) };
        if height(here) > height(saddle) + PRICE {
            break;
        }
        let Some((distance, beyond)) = spacing(&bounds, here.tilt, saddle) else { continue };
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
fn bounds_beyond(real: &mut RealMoments<'_>, tilt: f64) -> [(f64, f64); 7] {
    [3.0, 2.3, 1.8, 1.5, 1.3, 1.2, 1.1].map(|factor| (real.log_moment_up(factor * tilt), factor * tilt))
}

/// The distance s = 2π/h that the best of the bounds allows, with that bound.
fn spacing(bounds: &[(f64, f64)], tilt: f64, saddle: Saddle) -> Option<(f64, (f64, f64))> {
    let goal = saddle.log_delta + (GOAL / 4.0).ln();
    let distances = bounds.iter().map(|&(log_moment, c)| {
        ((log_moment - c * saddle.epsilon + log_payoff(c) - goal) / (c - tilt), (log_moment, c))
    });
    let finite = distances.filter(|(distance, _)| distance.is_finite());
    let (after, beyond) = finite.min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some((after.max(-goal / tilt), beyond))
}

/// The proven decay of |F| along the line.
struct Modulus {
    mu_squared: f64,
    decays: Vec<(Decay, f64)>,
}

impl Modulus {
    fn new(sum: &Sum, real: &mut RealMoments<'_>, tilt: f64) -> Self {
        let moments = real.moments(tilt);
        let decays = sum
            .terms
            .iter()
            .zip(moments)
            .map(|((law, count), moments)| (Decay::of(law, tilt, moments.moment()), *count));
        Self { mu_squared: sum.mu_squared, decays: decays.collect() }
    }

    /// ln |F(c + iy)/F(c)| is at most this at y and above.
    fn log(&self, y: f64) -> f64 {
        let laws: f64 = self.decays.iter().map(|(decay, count)| count * decay.log_modulus(y)).sum();
        // K(c) is known to a share of 10⁻⁴ in all.
        laws + 1e-3 - self.mu_squared * y * y / 2.0 * (1.0 - 1e-14)
    }

    /// The least y (roughly) beyond which less than `goal` is left.
    fn end(&self, step: f64, goal: f64) -> Option<f64> {
        let done = |y: f64| self.log(y) - (PI * (y - step).max(step / 2.0)).ln() <= goal.ln();
        let (mut low, mut high) = (step, step * 2.0);
        while !done(high) {
            (low, high) = (high, high * 2.0);
            if high > step * MOST_NODES {
                return None;
            }
        }
        for _ in 0..6 {
            let middle = (low * high).sqrt();
            if done(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With copies of δ too close together, the sum is well above δ, and the bounds know it.
    #[test]
    fn a_coarse_line_still_encloses_delta() {
        let truth = 0.126_936_737_506_643_94; // μ = 1, ε = 1
        let sum = Sum { mu_squared: 1.0, terms: vec![] };
        let (tilt, beyond) = (2.0, 4.0);
        let saddle = RealMoments::new(&sum).at(tilt);
        for distance in [3.0, 4.0, 6.0] {
            let reached = (beyond * (beyond + 1.0) / 2.0, beyond);
            let mut line = Line::empty(tilt, 2.0 * PI / distance, saddle, reached);
            line.log_scale = saddle.log_moment;
            line.nodes = (0..40).map(|index| line.node(&sum, &[], f64::from(index) * line.step)).collect();
            let bounds = line.delta(1.0);
            assert!(bounds.lower <= truth && truth <= bounds.upper, "{distance}: {bounds:?}");
            assert!(bounds.upper > truth * (1.0 + 1e-6), "{distance}: the copies must be seen in {bounds:?}");
        }
    }
}
