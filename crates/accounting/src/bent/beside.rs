//! [`Beside`]: losses of finitely many values beside Gaussian noise on samples.
//!
//! **Definition.** Where sums a of other losses have the probabilities p, and t = ε − a, the composition has
//! δ(ε) = Σ p·δ(t) with δ of the noise. So the integrand of a single t is multiplied by
//!
//! ```text
//! M(w) = Σ p·e^((1−w)t)        (removed; Σ p·e^(wt) when added)
//! ```
//!
//! **Why.** |M(w)| ≤ M(Re w), whose logarithm is convex: the corners of a rectangle have its bound, and on a vertical ray it is one
//! number. All t are meant to be positive, so that M falls where the path leads.
//!
//! **Rounding.** w is off by 4 units; a term by that times t|w|, by as much for the product, and by 8 units for the rest.

use num_complex::Complex64;

use super::double_double::{DUST, Wide};
use super::linear;
use crate::nodes::UNIT;

/// See the module text.
#[derive(Clone, Debug)]
pub(crate) struct Beside {
    add: bool,
    /// (t, p).
    points: Vec<(f64, f64)>,
}

impl Beside {
    /// No other losses.
    pub(super) fn nothing(add: bool) -> Self {
        Self { add, points: vec![(0.0, 1.0)] }
    }

    pub(super) fn new(add: bool, points: Vec<(f64, f64)>) -> Self {
        Self { add, points }
    }

    pub(super) fn is_added(&self) -> bool {
        self.add
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.points == [(0.0, 1.0)]
    }

    /// The distances and their probabilities.
    pub(super) fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// ln M(Re w), rounded up.
    pub(super) fn log(&self, re: f64) -> f64 {
        if self.is_nothing() {
            return 0.0;
        }
        let exponent = |(t, p): &(f64, f64)| linear(self.add, Complex64::from(re), *t).re + p.ln();
        let most = self.points.iter().map(exponent).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = self.points.iter().map(|point| libm::exp(exponent(point) - most)).sum();
        most + sum.ln() + 1e-12 * (1.0 + most.abs())
    }

    /// M(w) divided by e^`scale`, and by how much that may be off.
    pub(super) fn at(&self, w: Complex64, scale: f64) -> (Complex64, f64) {
        if self.is_nothing() {
            return (Complex64::ONE, 0.0);
        }
        let (mut sum, mut error) = (Complex64::ZERO, 0.0);
        let count = self.points.len() as f64;
        for (t, p) in &self.points {
            let exponent = linear(self.add, w, *t);
            let term = (exponent - scale).exp() * p;
            sum += term;
            error += term.norm() * (8.0 + count + 8.0 * t * (1.0 + w.norm()) + 4.0 * scale.abs());
        }
        (sum, error * UNIT)
    }

    /// The same to 28 digits.
    pub(super) fn wide(&self, w: Wide, scale: f64) -> (Wide, f64) {
        if self.is_nothing() {
            return (Wide::from(1.0), 0.0);
        }
        let (mut sum, mut error) = (Wide::ZERO, 0.0);
        let (size, count, fall) = (w.norm(), self.points.len() as f64, Wide::from(-scale));
        let order = if self.add { w } else { Wide::from(1.0) - w };
        for (t, p) in &self.points {
            let term = (order * Wide::from(*t) + fall).exp() * Wide::from(*p);
            sum = sum + term;
            error += term.norm() * (16.0 + count + 16.0 * t * (1.0 + size) + 4.0 * scale.abs());
        }
        (sum, error * DUST)
    }

    /// The mean of t, weighted as in M(w).
    pub(super) fn mean(&self, w: Complex64) -> Complex64 {
        if self.is_nothing() {
            return Complex64::ZERO;
        }
        let scale = self.log(w.re);
        let term = |(t, p): &(f64, f64)| ((linear(self.add, w, *t) - scale).exp() * p, *t);
        let sum: Complex64 = self.points.iter().map(|point| term(point).0).sum();
        let first: Complex64 = self.points.iter().map(|point| term(point).0 * term(point).1).sum();
        let mean = first / sum;
        if mean.is_finite() { mean } else { Complex64::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M is what it says, in doubles and in wide numbers, and never above its bound.
    #[test]
    fn what_is_beside_is_added_up() {
        for add in [false, true] {
            let beside = Beside::new(add, vec![(0.1, 0.25), (0.5, 0.5), (2.0, 0.125)]);
            for (x, y) in [(3.0, 0.0), (10.0, 40.0), (200.0, 3.0)] {
                let w = Complex64::new(if add { 1.0 - x } else { x }, y);
                let scale = beside.log(w.re);
                let exact: Complex64 = beside
                    .points()
                    .iter()
                    .map(|(t, p)| {
                        (Complex64::new((1.0 - x) * t - scale, if add { y * t } else { -y * t })).exp() * p
                    })
                    .sum();
                let (found, off) = beside.at(w, scale);
                let (wide, dust) = beside.wide(Wide::from(w), scale);
                assert!((found - exact).norm() <= 2.0 * off + 1e-15 && off < 1e-11, "{w}: {found} {exact}");
                assert!((wide.to_complex() - found).norm() <= off + 1e-15 && dust < 1e-24, "{w}");
                assert!(found.norm() <= 1.0 && (y > 0.0 || found.re > 1.0 - 1e-9), "{w}: {found}");
            }
        }
    }
}
