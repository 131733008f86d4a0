//! [`Line`]: F on a vertical line, and what it says of δ and ε.

use std::f64::consts::PI;

use num_complex::Complex64;

use super::fill::{Fill, Modulus};
use super::saddle::{RealMoments, Saddle, bounds_beyond, place, spacing};
use super::{Care, Lattice, Sum, log_payoff};
use crate::Bounds;
use crate::nodes::{Tilted, UNIT};

/// F on the line Re z = c.
pub(crate) struct Line {
    pub(super) tilt: f64,
    pub(super) step: f64,
    lattice: Option<Lattice>,
    /// ln F(c).
    pub(super) log_scale: f64,
    /// The ε for which the line was placed.
    centre: f64,
    pub(super) nodes: Vec<Node>,
    /// Σ |F(z)/F(c)|/|z(z + 1)| beyond the last node, times h/π.
    pub(super) tail: f64,
    /// ln F(c′) and c′ for the bound on what T is above δ.
    beyond: (f64, f64),
}

pub(super) struct Node {
    pub(super) y: f64,
    /// F(z)/F(c)/(z(z + 1)), or on a lattice F(z)/F(c)·g/((1 − e^(−zg))(1 − e^(−(z+1)g))).
    pub(super) value: Complex64,
    pub(super) error: f64,
}

impl Line {
    pub(super) fn new(
        sum: &Sum,
        real: &mut RealMoments<'_>,
        saddle: Saddle,
        lattice: Option<Lattice>,
        care: Care,
    ) -> Option<Self> {
        let (tilt, distance, beyond) = place(real, saddle)?;
        let goal = care.goal / (tilt * (tilt + 1.0) * (2.0 * PI * saddle.curvature).sqrt());
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
                let end = modulus.end(step, goal, care.most_nodes)?;
                line.tail = modulus.log(end).exp() / (PI * (end - step).max(step / 2.0));
                (step, end, goal)
            }
        };
        let mut fill = Fill {
            sum,
            line: &mut line,
            last: (end / step).round() as usize,
            goal,
            care,
            kernel,
            waves: 0.0,
            width: 0.0,
        };
        let first = (8.0 * saddle.curvature.sqrt().recip()).max(step);
        (fill.near(first)? && fill.far()?).then_some(line)
    }

    pub(super) fn node(&self, sum: &Sum, tilted: &[(Tilted, f64)], y: f64) -> Node {
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
            Some(Lattice { step, .. }) => step / (fall(z * step) * fall((z + 1.0) * step)),
        };
        if error > 0.1 {
            let bound = (modulus - self.log_scale + 1e-12).exp() * kernel.norm();
            return Node { y, value: Complex64::ZERO, error: bound };
        }
        let value = (log - self.log_scale).exp() * kernel;
        Node { y, value, error: value.norm() * 1.1 * error }
    }

    /// About the ε for which the line was placed.
    pub(crate) fn centre(&self) -> f64 {
        self.centre
    }

    /// ln(F(c)·e^(−cε)).
    fn log_factor(&self, epsilon: f64) -> f64 {
        self.log_scale - self.tilt * epsilon
    }

    /// T(ε)·e^(cε)/F(c), its derivative by ε, and a bound on the error of the first.
    fn sum(&self, epsilon: f64) -> (f64, f64, f64) {
        let (mut value, mut slope, mut error) = (0.0, 0.0, 0.0);
        let (here, most, numerator) = self.numerator(epsilon);
        // On a lattice the first loss above ε is known to a few units of where the lattice starts.
        // That moves a term by |z| of itself, and its factor by |1 − e^(−zg)| ≤ |z|g.
        let (offset, gap) = self.lattice.map_or((0.0, 0.0), |lattice| (lattice.offset.abs(), lattice.step));
        // From the far end, so that the large terms are rounded least often.
        for (index, node) in self.nodes.iter().enumerate().rev() {
            let half = if index == 0 { 0.5 } else { 1.0 };
            let (sine, cosine) = libm::sincos(node.y * here);
            let term = node.value * numerator(node.y) * Complex64::new(cosine, -sine) * half;
            value += term.re;
            slope -= term.re * self.tilt - term.im * node.y;
            let order = self.tilt + node.y;
            error += (node.error + size(node.value) * 32.0 * UNIT) * most * half
                + size(term)
                    * UNIT
                    * (8.0 + 4.0 * node.y * epsilon.abs() + 8.0 * order * offset + index as f64)
                + size(node.value) * 8.0 * UNIT * offset * (order * gap).min(2.0);
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
    ///
    /// Between them the most that this factor can be, since both its terms are positive for real z: 1 on a line, 1 − e^(−g)
    /// on a lattice.
    fn numerator(&self, epsilon: f64) -> (f64, f64, impl Fn(f64) -> Complex64) {
        let tilt = self.tilt;
        let (here, above, step, most) = match self.lattice {
            None => (epsilon, None, 0.0, 1.0),
            Some(Lattice { offset, step }) => {
                let here = offset + ((epsilon - offset) / step).ceil() * step;
                (here, Some((here - epsilon).clamp(0.0, step)), step, -libm::expm1(-step) * (1.0 + 1e-12))
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
        (here, most, numerator)
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
    /// `bound` is at least |part| at y, and falls at least like 1/y². All are divided by F(c). What is left out shall be below
    /// `goal`, relatively; `None` where that would take more than `most` nodes.
    pub(crate) fn of_part(
        sum: &Sum,
        saddle: (f64, f64, f64),
        mut part: impl FnMut(Complex64) -> (Complex64, f64),
        bound: impl Fn(f64) -> f64,
        (goal, most): (f64, f64),
    ) -> Option<Self> {
        let mut real = RealMoments::new(sum);
        let (tilt, epsilon, log_delta) = saddle;
        let saddle = Saddle { epsilon, log_delta, ..real.at(tilt) };
        let (distance, beyond) = spacing(&bounds_beyond(&mut real, tilt), tilt, saddle)?;
        let step = 2.0 * PI / distance;
        let goal = goal / (tilt * (tilt + 1.0) * (2.0 * PI * saddle.curvature).sqrt());
        // Σ h/π·B(Y)·Y²/y⁴ over y > Y is at most B(Y)/(3πY), but for one step.
        let rest = |y: f64| bound(y) * y * y / (3.0 * PI * (y - step).powi(3));
        let mut last = 16.0;
        while rest(last * step) > goal {
            last *= 1.3;
            if last > most {
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

    pub(super) fn empty(tilt: f64, step: f64, saddle: Saddle, beyond: (f64, f64)) -> Self {
        let (log_scale, centre) = (0.0, saddle.epsilon);
        Self { tilt, step, lattice: None, log_scale, centre, nodes: vec![], tail: 0.0, beyond }
    }
}

/// 1 − e^(−z) for Re z > 0. Neither part cancels: 1 − e^(−a)·cos b = (1 − e^(−a))·cos b + 2sin²(b/2), where cos b < 0
/// makes the whole at least 1.
fn fall(z: Complex64) -> Complex64 {
    let (sine, cosine) = libm::sincos(z.im);
    let (half, shrunk) = (libm::sin(z.im / 2.0), libm::expm1(-z.re));
    Complex64::new(2.0 * half * half - shrunk * cosine, (1.0 + shrunk) * sine)
}

/// At least |z|, and at most √2 times that.
fn size(z: Complex64) -> f64 {
    z.re.abs() + z.im.abs()
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
