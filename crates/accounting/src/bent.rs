//! Few uses of Gaussian noise on a sample: the inversion integral along a path that bends to the right.
//!
//! **Why.** The loss has a sharp edge at ln(1 − q), so the moments fall slowly along a vertical line. But F(z)·e^(−zε) is
//! entire: the path may leave the line, for where e^(−zε) falls.
//!
//! **Definition.** With w = z + 1 when the person is removed and w = −z when the person is added, K = ∫ r^w·φ dx in both
//! cases, and
//!
//! ```text
//! δ(ε) = 1/π · Im ∫ ∏Kᵢ(w)^nᵢ · e^((1−w)ε)/(w(w − 1)) dw        (removed; e^(wε) when added)
//! ```
//!
//! along a path from a point of the real axis (right of 1; left of 0 when added) to infinity in the upper half-plane. It consists of
//! straight panels and ends with a vertical ray.
//!
//! **Panels.** A Gauss–Legendre rule on each. Its error needs a bound on the integrand in an ellipse; that lies in a
//! rectangle, and ln of the [bound on |K|](mod@line) is convex, so the four corners of the rectangle have it.
//!
//! **Ray.** On a line where Im Λ ≥ 0 the bound on |K(w)| falls as Im w grows, and 1/|w(w − 1)| ≤ 1/(Im w)²: what is
//! beyond b is at most the bound there, over πb.
//!
//! **References.** docs/accounting.md; \[Trefethen2019\] for Gauss–Legendre rules.

mod line;
mod moment;

use std::f64::consts::PI;

use num_complex::Complex64;

use crate::Bounds;
use crate::inversion::Sum;
use crate::law::{Base, Direction};
use crate::nodes::{UNIT, gauss_legendre};
use line::{Line, Noise};
use moment::{Moment, best_line, level};

/// What the certified errors of rules and ray shall be below, relatively.
const GOAL: f64 = 1e-12;
/// The most tries of a panel in all, and for one.
const MOST_TRIES: u32 = 150;
const MOST_SHORTER: i32 = 10;
/// 24 points, in the ellipse of ρ = 5/2.
const RULE: usize = 5;
const RHO: f64 = 2.5;
/// The path's angle is at least this: further right the moments of Gaussian noise grow.
const LEAST_ANGLE: f64 = 1.4;

/// ∏K^n along the path.
pub(crate) struct Bent {
    add: bool,
    panels: Vec<Panel>,
    /// ln of the bound on what the ray has, without ε, and Re w there.
    ray: (f64, f64),
}

struct Panel {
    points: Vec<Point>,
    /// Re w and ln of the bound on ∏|K|^n.
    corners: Vec<(f64, f64)>,
    /// ln of the rule's error where that bound is 1.
    log_rule: f64,
}

struct Point {
    w: Complex64,
    /// ln ∏K^n, and by how much it may be off.
    log: Complex64,
    error: f64,
    /// The rule's weight, over w(w − 1).
    weight: Complex64,
}

/// ln of e^((1−w)ε) or e^(wε).
fn linear(add: bool, w: Complex64, epsilon: f64) -> Complex64 {
    if add { w * epsilon } else { (1.0 - w) * epsilon }
}

impl Bent {
    /// With the line of the [inversion](crate::inversion) at `tilt`, for δ of about e^`log_delta` at ε. `None` when the
    /// losses are of another kind, or it would take too long.
    pub(crate) fn new(sum: &Sum, tilt: f64, epsilon: f64, log_delta: f64) -> Option<Self> {
        let (noises, add) = noises(sum)?;
        let lines = vec![Line::new(0.0, 0.0); noises.len()];
        let mut path = Path { noises, lines, add, epsilon, goal: log_delta + GOAL.ln(), tries: 0 };
        let mut bent = Self { add, panels: vec![], ray: (f64::INFINITY, 0.0) };
        let mut w = Complex64::new(if add { -tilt } else { tilt + 1.0 }, 0.0);
        let (_, curvature) = path.slope_and_curvature(w)?;
        let (mut length, mut angle) = (2.0 / curvature.re.abs().sqrt(), PI / 2.0);
        while path.tries < MOST_TRIES {
            let (panel, taken) = path.panel(w, Complex64::from_polar(1.0, angle), length)?;
            bent.panels.push(panel);
            w += Complex64::from_polar(taken, angle);
            if let Some(ray) = path.ray(w) {
                bent.ray = ray;
                if ray.0 + linear(add, w, epsilon).re < path.goal {
                    return Some(bent);
                }
            }
            // the way down, as far as it leads upward
            let down = (-path.slope_and_curvature(w)?.0.conj()).arg();
            angle = if down < 0.0 { PI / 2.0 } else { down.clamp(LEAST_ANGLE, PI / 2.0) };
            length = 1.5 * taken;
        }
        None
    }

    /// δ(ε), best near the ε the path was made for.
    pub(crate) fn delta(&self, epsilon: f64) -> Bounds {
        let (mut value, mut error) = (0.0, 0.0);
        for panel in &self.panels {
            for point in &panel.points {
                let linear = linear(self.add, point.w, epsilon);
                let term = point.weight * (point.log + linear).exp() / PI;
                value += term.im;
                let rounding = 8.0 * UNIT * (16.0 + point.log.norm() + linear.norm());
                error += term.norm() * (point.error + rounding);
            }
            let corner = |(re, log): &(f64, f64)| log + linear(self.add, Complex64::from(*re), epsilon).re;
            let most = panel.corners.iter().map(corner).fold(f64::NEG_INFINITY, f64::max);
            error += libm::exp(most + panel.log_rule);
        }
        let (log, re) = self.ray;
        error += libm::exp(log + linear(self.add, Complex64::from(re), epsilon).re);
        error *= 1.0 + 1e-9;
        Bounds::new((value - error).clamp(0.0, 1.0), (value + error).clamp(0.0, 1.0))
    }
}

/// The laws, when all are Gaussian noise on samples and in one direction, and whether that is the one with the person added.
fn noises(sum: &Sum) -> Option<(Vec<Noise>, bool)> {
    let noise = |(law, count): &(crate::law::Law, f64)| {
        let (Base::Gaussian { mu_squared }, Some(sampling)) = (&law.base, &law.sampling) else { return None };
        let noise = Noise { mu: mu_squared.to_f64().sqrt(), rate: sampling.rate, count: *count };
        Some((noise, sampling.direction))
    };
    let noises: Vec<_> = sum.terms.iter().map(noise).collect::<Option<_>>()?;
    let direction = noises.first()?.1;
    let alike = noises.iter().all(|noise| noise.1 == direction) && direction != Direction::Replace;
    (alike && sum.mu_squared == 0.0)
        .then(|| (noises.into_iter().map(|noise| noise.0).collect(), direction == Direction::Add))
}

/// The path while it is made.
struct Path {
    noises: Vec<Noise>,
    /// The line of each law in the panel before.
    lines: Vec<Line>,
    add: bool,
    epsilon: f64,
    /// ln of the error that is wanted.
    goal: f64,
    tries: u32,
}

impl Path {
    /// The first two derivatives of ln of the integrand, about.
    fn slope_and_curvature(&self, w: Complex64) -> Option<(Complex64, Complex64)> {
        let mut slope = Complex64::from(if self.add { self.epsilon } else { -self.epsilon });
        slope -= w.inv() + (w - 1.0).inv();
        let mut curvature = w.powi(-2) + (w - 1.0).powi(-2);
        for (noise, line) in self.noises.iter().zip(&self.lines) {
            let (mean, variance) = Moment::new(*noise, line, &[w])?.mean_and_variance(w);
            slope += noise.count * (mean + libm::log1p(-noise.rate));
            curvature += noise.count * variance;
        }
        (slope.is_finite() && curvature.re > 0.0 || w.im > 0.0).then_some((slope, curvature))
    }

    /// ln of the bound on the ray upward from w, without ε, and Re w.
    fn ray(&self, w: Complex64) -> Option<(f64, f64)> {
        let mut log = -(PI * w.im).ln();
        for (noise, line) in self.noises.iter().zip(&self.lines) {
            let line = Line { kept: true, angle: line.angle.max(0.3), ..*line };
            let bound = line.log_bounds(noise, &[w], level(noise, &line, &[w]))?;
            log += noise.count * (bound[0] + w.re * libm::log1p(-noise.rate));
        }
        Some((log, w.re))
    }

    /// A panel that starts at a point, and how long it became.
    fn panel(&mut self, start: Complex64, direction: Complex64, length: f64) -> Option<(Panel, f64)> {
        (0..MOST_SHORTER).find_map(|tried| {
            let length = length * 0.6f64.powi(tried);
            Some((self.try_panel(start, direction * (length / 2.0))?, length))
        })
    }

    /// `None` when the rule's error could not be proven to be small.
    fn try_panel(&mut self, start: Complex64, half: Complex64) -> Option<Panel> {
        self.tries += 1;
        let centre = start + half;
        let (wide, high) = ((RHO + 1.0 / RHO) / 2.0, (RHO - 1.0 / RHO) / 2.0);
        let corner = |(x, y): (f64, f64)| centre + half * Complex64::new(x * wide, y * high);
        let corners = [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)].map(corner);
        let distance = |pole: f64| {
            let at = (pole - centre) / half;
            (at.re.abs() - wide).max(0.0).hypot((at.im.abs() - high).max(0.0)) * half.norm()
        };
        let log_size = (half.norm() / (distance(0.0) * distance(1.0) * PI)).ln();
        let log_rule = gauss_legendre::log_error(gauss_legendre::SIZES[RULE], RHO, log_size);
        let uses: f64 = self.noises.iter().map(|noise| noise.count).sum();
        let epsilon = if self.add { -self.epsilon } else { self.epsilon };
        let mut bounds = corners.map(|w| (w.re, 0.0));
        let mut lines = vec![];
        for (noise, before) in self.noises.iter().zip(&self.lines) {
            let kept = libm::log1p(-noise.rate);
            let line = best_line(noise, before, &corners, epsilon / uses - kept);
            let logs = line.log_bounds(noise, &corners, level(noise, &line, &corners))?;
            for (bound, log) in bounds.iter_mut().zip(logs) {
                bound.1 += noise.count * (log + bound.0 * kept);
            }
            lines.push(line);
        }
        let small = |(re, log): &(f64, f64)| {
            log + linear(self.add, Complex64::from(*re), self.epsilon).re + log_rule < self.goal - 2.0
        };
        if !bounds.iter().all(small) {
            return None;
        }
        let mut points: Vec<_> = gauss_legendre::rule(RULE)
            .nodes
            .iter()
            .map(|(x, weight)| {
                let w = centre + half * x;
                Point { w, log: Complex64::ZERO, error: 0.0, weight: half * *weight / (w * (w - 1.0)) }
            })
            .collect();
        for (noise, line) in self.noises.iter().zip(&lines) {
            let moment = Moment::new(*noise, line, &corners)?;
            for point in &mut points {
                let (log, error) = moment.at(point.w);
                point.log += noise.count * log;
                point.error += noise.count * error;
            }
        }
        self.lines = lines;
        Some(Panel { points, corners: bounds.to_vec(), log_rule })
    }
}

#[cfg(test)]
mod tests {
    use demur_exact::Rational;

    use super::*;
    use crate::law::{Law, Sampling, profile};

    fn sum(mu: &str, rate: f64, direction: Direction, count: f64) -> Sum {
        let mu: Rational = mu.parse().unwrap();
        let base = Base::Gaussian { mu_squared: mu.square() };
        let law = Law { base, sampling: Some(Sampling { rate, direction }) };
        Sum { mu_squared: 0.0, terms: vec![(law, count)] }
    }

    /// One use has a formula, which knows nothing of any path.
    #[test]
    fn one_use_is_what_the_formula_says() {
        let cases = [("1", 0.01), ("0.5", 0.1), ("2", 0.3), ("0.25", 0.5), ("3", 0.002), ("1", 0.9)];
        for (mu, rate) in cases {
            for direction in [Direction::Remove, Direction::Add] {
                let top = -f64::ln_1p(-rate);
                let epsilons = if direction == Direction::Add {
                    [0.1, 0.5, 0.8].map(|x| x * top)
                } else {
                    [0.05, 0.5, 2.0]
                };
                for epsilon in epsilons {
                    let sum = sum(mu, rate, direction, 1.0);
                    let Some((tilt, log_delta)) = sum.saddle_for_epsilon(epsilon) else { continue };
                    let Some(bent) = Bent::new(&sum, tilt, epsilon, log_delta) else { continue };
                    let (found, truth) =
                        (bent.delta(epsilon), profile(&sum.terms[0].0, &epsilon.try_into().unwrap()));
                    let name = format!("{mu} {rate} {direction:?} {epsilon}: {found:?} {truth:?}");
                    assert!(found.lower <= truth.upper && truth.lower <= found.upper, "{name}");
                    assert!(found.upper - found.lower < 1e-9 * truth.upper + 1e-15, "{name}");
                }
            }
        }
    }

    /// Beside the ε a path was made for it is wider, and still true.
    #[test]
    fn a_path_for_another_epsilon_is_true_as_well() {
        let sum = sum("1", 0.1, Direction::Remove, 1.0);
        let (tilt, log_delta) = sum.saddle_for_epsilon(1.0).unwrap();
        let bent = Bent::new(&sum, tilt, 1.0, log_delta).unwrap();
        let width = |epsilon: f64| bent.delta(epsilon).upper - bent.delta(epsilon).lower;
        for epsilon in [0.01, 0.3, 0.9, 1.1, 2.0, 4.0] {
            let (found, truth) =
                (bent.delta(epsilon), profile(&sum.terms[0].0, &epsilon.try_into().unwrap()));
            assert!(
                found.lower <= truth.upper && truth.lower <= found.upper,
                "{epsilon}: {found:?} {truth:?}"
            );
        }
        assert!(width(1.0) < width(0.01));
    }

    /// A law counted twice is two laws.
    #[test]
    fn several_laws_are_composed() {
        let twice = sum("1", 0.1, Direction::Remove, 2.0);
        let mut both = sum("1", 0.1, Direction::Remove, 1.0);
        both.terms.push(both.terms[0].clone());
        let at = |sum: &Sum| {
            let (tilt, log_delta) = sum.saddle_for_epsilon(1.0).unwrap();
            Bent::new(sum, tilt, 1.0, log_delta).unwrap().delta(1.0)
        };
        let (twice, both) = (at(&twice), at(&both));
        assert!(twice.lower <= both.upper && both.lower <= twice.upper, "{twice:?} {both:?}");
    }

    #[test]
    fn other_losses_are_refused() {
        let mixed = Sum { mu_squared: 1.0, ..sum("1", 0.1, Direction::Remove, 2.0) };
        assert!(noises(&mixed).is_none() && noises(&Sum::default()).is_none());
        assert!(noises(&sum("1", 0.1, Direction::Replace, 2.0)).is_none());
        let mut turned = sum("1", 0.1, Direction::Remove, 2.0);
        turned.terms.extend(sum("1", 0.1, Direction::Add, 2.0).terms);
        assert!(noises(&turned).is_none());
    }
}
