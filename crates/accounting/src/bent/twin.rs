//! [`Twin`]: plain Gaussian noise, whose δ(ε) is known, taken away from the composition.
//!
//! **Definition.** G(z) = e^(z(z + 1)V/2) = e^(w(w − 1)V/2) are the moments of Gaussian noise with μ² = V.
//!
//! **Why.** δ(ε) = δ_G(ε) + what F − G says. F is near 1 along most of the path, which adds nothing to δ but is all there is to
//! round; F − G is small there, and unlike F − 1 it is also small far away. With V = Σn·E[(r − 1)²] both agree to second
//! order. Where that is due to a few large losses, V is what the usual ones have.
//!
//! **Exactness.** V is the square of a double, so that it is the same in both places.

use num_complex::Complex64;

use super::double_double::{Double, Wide};
use super::line::{Line, Noise};
use crate::Bounds;
use crate::nodes::UNIT;
use demur_exact::{Rational, gaussian_delta};

/// See the module text.
#[derive(Clone, Debug)]
pub(super) struct Twin {
    mu: f64,
    exact: Rational,
    /// By which share V may differ from Σn·E[(r − 1)²], where they are meant to agree.
    matched: Option<f64>,
}

/// Which part of all variance usual losses must have, for all of it to be taken.
const USUAL: f64 = 0.3;
/// From so many standard deviations on a bound will do instead of δ_G.
const NEGLIGIBLE: f64 = 30.0;

impl Twin {
    /// For a path that starts at z = c.
    pub(super) fn new(noises: &[Noise], add: bool, tilt: f64) -> Self {
        let all: f64 = noises.iter().map(|noise| noise.count * noise.square()).sum();
        let usual = spread(noises).powi(2);
        // with the person added large losses are rarer than those of Gaussian noise, and G would be larger than F
        let most = if add { 1.0 / (tilt * (tilt + 1.0)) } else { f64::INFINITY };
        let share = noises.iter().map(Noise::square_share).fold(0.0, f64::max);
        // products, the sum, and twice what its root is off
        let share = share + (noises.len() as f64 + 3.0) * UNIT;
        let matched = (usual > USUAL * all && all <= most).then_some(share);
        let mu = if matched.is_some() { all.sqrt() } else { usual.min(most).sqrt() };
        Self { mu, exact: Rational::try_from(mu).unwrap_or_else(|_| Rational::zero()), matched }
    }

    /// V.
    pub(super) fn variance(&self) -> f64 {
        self.mu * self.mu
    }

    /// ln G at w, and by how much it may be off: w and V by 8 units, and the products by 6.
    pub(super) fn log(&self, w: Complex64) -> (Complex64, f64) {
        let log = w * (w - 1.0) * (self.variance() / 2.0);
        (log, 32.0 * UNIT * w.norm() * (1.0 + w.norm()) * self.variance() / 2.0)
    }

    /// ln G at w, to 28 digits.
    pub(super) fn wide_log(&self, w: Wide) -> Wide {
        let mu = Double::from(self.mu);
        w * (w - Wide::from(1.0)) * Wide::real(mu * mu * Double::from(0.5))
    }

    /// By how much w(w − 1)/2·(Σn·E[(r − 1)²] − V) may differ from 0, where it should not.
    pub(super) fn mismatch(&self, w: Complex64) -> Option<f64> {
        self.matched.map(|share| share * (w * (w - 1.0)).norm() * self.variance() / 2.0 * 1.01)
    }

    /// ln of a bound on |G| in the polygon with the given corners: Re w(w − 1) = x² − x − y², each part where it is largest.
    pub(super) fn log_bound(&self, corners: &[Complex64]) -> f64 {
        let most = |of: &dyn Fn(&Complex64) -> f64| corners.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
        let wide = most(&|w| w.re * (w.re - 1.0));
        let (top, bottom) = (most(&|w| w.im), -most(&|w| -w.im));
        let least = if bottom <= 0.0 && top >= 0.0 { 0.0 } else { top.abs().min(bottom.abs()) };
        (wide - least * least) * self.variance() / 2.0 + 1e-9 * (1.0 + wide.abs() * self.variance())
    }

    /// δ_G(ε).
    pub(super) fn delta(&self, epsilon: f64) -> Bounds {
        // δ_G ≤ P[L > ε] ≤ e^(−a²/2)
        let a = epsilon / self.mu - self.mu / 2.0;
        if a > NEGLIGIBLE {
            return Bounds::new(0.0, libm::exp(-a * a / 2.0 * (1.0 - 1e-12)));
        }
        if epsilon < 0.0 {
            return crate::law::gaussian_delta(epsilon, self.mu);
        }
        let Ok(epsilon) = Rational::try_from(epsilon) else { return Bounds::new(0.0, 1.0) };
        let delta = gaussian_delta(&epsilon, &self.exact);
        Bounds::new(delta.lower_f64(), delta.upper_f64())
    }
}

/// About how large the sum of the losses is where it is usual: E[min(1, (L/a)²)] adds up to 1 for this a.
fn spread(noises: &[Noise]) -> f64 {
    let line = Line::new(0.0, 0.0);
    let usual = |scale: f64| {
        let of = |noise: &Noise| {
            let square = |index: i32| {
                let x = f64::from(index) / 4.0;
                let loss = line.at(noise, x).log.re;
                libm::exp(-x * x / 2.0) * (loss / scale).powi(2).min(1.0)
            };
            noise.count * (-24..=24).map(square).sum::<f64>() / 10.0
        };
        noises.iter().map(of).sum::<f64>()
    };
    let (mut low, mut high) = (-700.0, 50.0);
    for _ in 0..30 {
        let middle = (low + high) / 2.0;
        if usual(libm::exp(middle)) > 1.0 { low = middle } else { high = middle }
    }
    libm::exp(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::{Base, Law, profile};

    fn twin(mu_squared: f64, rate: f64, count: f64) -> Twin {
        Twin::new(&[Noise::new(mu_squared, rate, count)], false, 1.0)
    }

    /// G says what the formula of Gaussian noise says, near and far.
    #[test]
    fn the_twin_is_gaussian_noise() {
        let twin = twin(1.0, 0.01, 50.0);
        let base = Base::Gaussian { mu_squared: twin.exact.square() };
        let law = Law { base, sampling: None };
        for factor in [0.0, 0.5, 3.0, 20.0, 29.0, 31.0, 40.0] {
            let epsilon = factor * twin.mu;
            let (found, truth) = (twin.delta(epsilon), profile(&law, &epsilon.try_into().unwrap()));
            assert!(
                found.lower <= truth.upper && truth.lower <= found.upper,
                "{factor}: {found:?} {truth:?}"
            );
        }
    }

    #[test]
    fn it_has_the_variance_of_all_losses_unless_few_have_most_of_it() {
        let (usual, rare) = (twin(0.25, 1e-3, 100.0), twin(9.0, 1e-3, 100.0));
        assert!((usual.variance() / (100.0 * 1e-6 * libm::expm1(0.25)) - 1.0).abs() < 1e-14);
        // both are rounded several times, and that is charged
        let w = Complex64::new(2.0, 3.0);
        let whole = (w * (w - 1.0)).norm() * usual.variance() / 2.0;
        assert!(usual.mismatch(w).is_some_and(|off| off > 6.0 * UNIT * whole && off < 40.0 * UNIT * whole));
        assert!(rare.variance() < 0.3 * 100.0 * 1e-6 * libm::expm1(9.0));
        assert!(rare.mismatch(Complex64::new(2.0, 3.0)).is_none());
        // with the person added it must not be larger than F
        let added = Twin::new(&[Noise::new(0.25, 1e-3, 100.0)], true, 1e4);
        assert!(
            added.log(Complex64::from(-1e4)).0.re <= 0.5 + 1e-9 && added.mismatch(Complex64::ONE).is_none()
        );
    }

    #[test]
    fn no_place_in_a_polygon_is_above_its_bound() {
        let twin = twin(1.0, 0.1, 10.0);
        for (centre, half) in
            [((3.0, 1.0), (0.5, 2.0)), ((2.0, 40.0), (1.0, 7.0)), ((-4.0, 9.0), (-0.3, 3.0))]
        {
            let (centre, half) = (Complex64::new(centre.0, centre.1), Complex64::new(half.0, half.1));
            let corners = [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)]
                .map(|(x, y)| centre + half * Complex64::new(x, y));
            let bound = twin.log_bound(&corners);
            for index in 0..121 {
                let (x, y) = (f64::from(index % 11) / 5.0 - 1.0, f64::from(index / 11) / 5.0 - 1.0);
                assert!(
                    twin.log(centre + half * Complex64::new(x, y)).0.re <= bound,
                    "{centre} {half} {x} {y}"
                );
            }
        }
    }
}
