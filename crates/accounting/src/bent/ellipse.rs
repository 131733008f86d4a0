//! [`Ellipse`]: where the integrand is bounded, to know what the rule of a panel misses.
//!
//! With foci at both ends of the panel and half-axes (ρ ± 1/ρ)/2 times half its length. It lies in a rectangle, and of that four corners
//! and the distances of the two poles are all that is needed.

use std::f64::consts::PI;

use num_complex::Complex64;

use super::RULE;
use crate::nodes::gauss_legendre;

/// See the module text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ellipse {
    /// The middle of the panel, and from there to its end.
    pub(super) centre: Complex64,
    pub(super) half: Complex64,
    pub(super) rho: f64,
}

impl Ellipse {
    fn axes(&self) -> (f64, f64) {
        ((self.rho + 1.0 / self.rho) / 2.0, (self.rho - 1.0 / self.rho) / 2.0)
    }

    /// Of the rectangle around it.
    pub(super) fn corners(&self) -> [Complex64; 4] {
        let (wide, high) = self.axes();
        [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)]
            .map(|(x, y)| self.centre + self.half * Complex64::new(x * wide, y * high))
    }

    /// ln of the rule's error for ∫ f/(πw(w − 1)) dw, where |f| is at most 1 in the rectangle.
    pub(super) fn log_rule(&self) -> f64 {
        let (wide, high) = self.axes();
        let distance = |pole: f64| {
            let at = (pole - self.centre) / self.half;
            (at.re.abs() - wide).max(0.0).hypot((at.im.abs() - high).max(0.0)) * self.half.norm()
        };
        let log_size = (self.half.norm() / (distance(0.0) * distance(1.0) * PI)).ln();
        gauss_legendre::log_error(gauss_legendre::SIZES[RULE], self.rho, log_size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panels() -> impl Iterator<Item = Ellipse> {
        let half = Complex64::from_polar(1.0, 1.3);
        [1.2, 2.5, 4.0, 9.0].into_iter().map(move |rho| Ellipse {
            centre: Complex64::new(20.0, 3.0),
            half,
            rho,
        })
    }

    /// Every point of the ellipse is in the rectangle, and each axis ends at its border.
    #[test]
    fn the_rectangle_holds_the_ellipse() {
        for ellipse in panels() {
            let within = |w: Complex64| (w - ellipse.centre) / ellipse.half;
            let corner = within(ellipse.corners()[0]);
            let (mut right, mut top) = (0f64, 0f64);
            for index in 0..400 {
                let u = Complex64::from_polar(ellipse.rho, f64::from(index) * PI / 200.0);
                let at = (u + u.inv()) / 2.0;
                assert!(at.re.abs() <= corner.re * (1.0 + 1e-12) && at.im.abs() <= corner.im * (1.0 + 1e-12));
                (right, top) = (right.max(at.re), top.max(at.im));
            }
            assert!((right / corner.re - 1.0).abs() < 1e-12 && (top / corner.im - 1.0).abs() < 1e-12);
        }
    }

    /// f = e^((w − centre)·t), with waves so fast that the rule misses something.
    #[test]
    fn the_rule_misses_no_more_than_is_said() {
        for ellipse in panels() {
            for turns in [20.0, 60.0, 120.0] {
                let t = Complex64::new(0.0, turns) / ellipse.half;
                let f = |w: Complex64| ((w - ellipse.centre) * t).exp() / (w * (w - 1.0) * PI);
                let rule: Complex64 = gauss_legendre::rule(RULE)
                    .nodes
                    .iter()
                    .map(|(x, weight)| f(ellipse.centre + ellipse.half * *x) * ellipse.half * *weight)
                    .sum();
                // the same in 64 pieces
                let exact: Complex64 = (0..64)
                    .flat_map(|piece| {
                        gauss_legendre::rule(RULE).nodes.iter().map(move |(x, weight)| {
                            let at = (2.0 * f64::from(piece) + 1.0 + x) / 64.0 - 1.0;
                            (at, weight / 64.0)
                        })
                    })
                    .map(|(x, weight)| f(ellipse.centre + ellipse.half * x) * ellipse.half * weight)
                    .sum();
                let bound = ellipse
                    .corners()
                    .iter()
                    .map(|w| ((w - ellipse.centre) * t).re)
                    .fold(f64::NEG_INFINITY, f64::max);
                let missed = (rule - exact).norm();
                assert!(
                    missed <= (bound + ellipse.log_rule()).exp() + 1e-16,
                    "{ellipse:?} {turns}: {missed:e}, said e^{}",
                    bound + ellipse.log_rule()
                );
            }
        }
    }
}
