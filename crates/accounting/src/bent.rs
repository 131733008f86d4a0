//! Few uses of Gaussian noise on a sample: the inversion integral along a path that bends to the right.
//!
//! **Why.** The loss has a sharp edge at ln(1 − q), so the moments fall slowly along a vertical line. But F(z)·e^(−zε) is
//! entire: the path may leave the line, for where e^(−zε) falls.
//!
//! **Definition.** With w = z + 1 when the person is removed and w = −z when the person is added, K = ∫ r^w·φ dx in both
//! cases, and with the moments G of [Gaussian noise](mod@twin) whose δ_G is known
//!
//! ```text
//! δ(ε) = δ_G(ε) + 1/π · Im ∫ (∏Kᵢ(w)^nᵢ − G(w)) · e^((1−w)ε)/(w(w − 1)) dw        (removed; e^(wε) when added)
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

mod beside;
mod careful;
mod choice;
mod double_double;
mod ellipse;
mod line;
mod moment;
mod near_one;
mod path;
mod start;
mod strips;
mod twin;

use num_complex::Complex64;

use crate::Bounds;
use crate::inversion::Sum;
use crate::law::{Base, Direction};
use crate::nodes::UNIT;
use beside::Beside;
use double_double::{DUST, Wide};
use line::Noise;
use moment::Kept;
use path::Path;
use start::{ROOMY, Start, TIGHT};
use twin::Twin;

/// What the certified errors of rules and ray shall be below, relatively.
const GOAL: f64 = 1e-12;
/// 32 points.
const RULE: usize = 6;

/// With how many digits the terms of a path are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digits {
    Usual,
    /// 28 of them, in ten times the time.
    Many,
}

/// ∏K^n − G along the path.
pub(crate) struct Bent {
    add: bool,
    twin: Twin,
    beside: Beside,
    /// The ε the path was made for.
    epsilon: f64,
    panels: Vec<Panel>,
    /// ln of the bound on what the ray has, without ε, and Re w there.
    ray: (f64, f64),
    /// By how much ε may be off for that rates and μ² are doubles, where nothing else says so.
    shift: f64,
}

struct Panel {
    points: Vec<Point>,
    bound: Bound,
    /// ln of the rule's error where that bound is 1.
    log_rule: f64,
}

struct Point {
    w: Complex64,
    /// (∏K^n − G)·M, divided by e^`scale`, times the rule's weight over πw(w − 1); and by how much it may be off.
    value: Complex64,
    error: f64,
    scale: f64,
    /// w and the value to 28 digits, where they were asked for.
    wide: Option<(Wide, Wide)>,
}

/// What bounds |∏K^n − G|·|M| in a rectangle.
struct Bound {
    /// Re w, ln of the bound on ∏|K|^n, and ln M(Re w) at the corners.
    corners: [(f64, f64, f64); 4],
    /// ln of the bound on |G|.
    twin: f64,
}

impl Bound {
    /// ln of the bound on |∏K^n − G|·|M|·|e^(−zε)|.
    fn log(&self, add: bool, epsilon: f64) -> f64 {
        let linear = |re: f64| linear(add, Complex64::from(re), epsilon).re;
        let most = |height: &dyn Fn(&(f64, f64, f64)) -> f64| {
            self.corners.iter().map(height).fold(f64::NEG_INFINITY, f64::max)
        };
        let flat = most(&|(re, _, beside)| beside + linear(*re));
        log_add(most(&|(re, log, beside)| log + beside + linear(*re)), self.twin + flat)
    }
}

/// ln of e^((1−w)ε) or e^(wε).
fn linear(add: bool, w: Complex64, epsilon: f64) -> Complex64 {
    if add { w * epsilon } else { (1.0 - w) * epsilon }
}

/// ln(e^a + e^b).
fn log_add(a: f64, b: f64) -> f64 {
    if a == b { a + std::f64::consts::LN_2 } else { a.max(b) + libm::log1p(libm::exp(-(a - b).abs())) }
}

impl Bent {
    /// About which ε belongs to a δ, where a single large loss would have `alone`. `None` when the losses are of another kind.
    pub(crate) fn guess(sum: &Sum, log_delta: f64, alone: f64) -> Option<f64> {
        let (noises, add) = noises(sum)?;
        let known = Start::for_delta(&noises, add, log_delta).epsilon;
        if known > 0.0 && (add || known < 3.0 * alone) {
            return Some(known);
        }
        Some(alone.max(start::usual(&noises, log_delta)))
    }

    /// An upper bound on δ(0).
    ///
    /// That is the distance in total variation, at most the sum of those of the single uses, which are q(2Φ(μ/2) − 1), and at
    /// most ½√(E\[R²\] − 1) for the product R of all ratios r, where E\[R²\] = ∏(1 + E[(r − 1)²])^n.
    pub(crate) fn most(sum: &Sum) -> Option<f64> {
        let (noises, _) = noises(sum)?;
        let one = |noise: &Noise| noise.count * noise.rate * libm::erf(noise.mu / 8f64.sqrt());
        let log = |noise: &Noise| noise.count * libm::log1p(noise.square() * (1.0 + noise.square_share()));
        let all = 0.5 * libm::expm1(noises.iter().map(log).sum()).sqrt();
        Some(all.min(noises.iter().map(one).sum()) * (1.0 + 1e-12))
    }

    /// For ε, where δ is about e^`log_delta` when that is known. `None` when the losses are of another kind, or it would take
    /// too long.
    pub(crate) fn new(sum: &Sum, epsilon: f64, log_delta: Option<f64>, digits: Digits) -> Option<Self> {
        let (noises, add) = noises(sum)?;
        Self::along(&noises, &Beside::nothing(add), epsilon, log_delta, digits)
    }

    /// For Σ p·δ(t + ε) over (t, p), near ε = 0; what is asked of it is how much ε has moved.
    pub(crate) fn beside(
        sum: &Sum,
        points: &[(f64, f64)],
        log_delta: Option<f64>,
        digits: Digits,
    ) -> Option<Self> {
        let (noises, add) = noises(sum)?;
        Self::along(&noises, &Beside::new(add, points.to_vec()), 0.0, log_delta, digits)
    }

    /// About ln of Σ p·δ(t).
    pub(crate) fn log_about(sum: &Sum, points: &[(f64, f64)]) -> Option<f64> {
        let (noises, add) = noises(sum)?;
        Some(Start::for_epsilon(&noises, &Beside::new(add, points.to_vec()), 0.0, ROOMY).log_delta)
    }

    fn along(
        noises: &[Noise],
        beside: &Beside,
        epsilon: f64,
        log_delta: Option<f64>,
        digits: Digits,
    ) -> Option<Self> {
        let ways = match digits {
            Digits::Usual => &[(ROOMY, false), (ROOMY, true)][..],
            Digits::Many => &[(TIGHT, false), (ROOMY, false), (ROOMY, true)],
        };
        ways.iter().find_map(|&(room, thorough)| {
            let start = Start::for_epsilon(noises, beside, epsilon, room);
            let goal = log_delta.unwrap_or(start.log_delta) + GOAL.ln();
            let start = if beside.is_nothing() { start } else { start.eased(noises, beside, goal) };
            Path::new((noises, beside), epsilon, start, (goal, digits), thorough).walk(start)
        })
    }

    /// About δ(ε).
    fn value(&self, epsilon: f64) -> f64 {
        let points = self.panels.iter().flat_map(|panel| &panel.points);
        let sum: f64 = points
            .map(|point| (point.value * (linear(self.add, point.w, epsilon) + point.scale).exp()).im)
            .sum();
        sum + self.twin_delta(epsilon).upper
    }

    /// Σ p·δ_G(t + ε).
    fn twin_delta(&self, epsilon: f64) -> Bounds {
        if self.beside.is_nothing() {
            return self.twin.delta(epsilon);
        }
        let points = self.beside.points();
        let (mut lower, mut upper) = (0.0, 0.0);
        for (t, p) in points {
            // t + ε is rounded
            let (at, off) = (t + epsilon, UNIT * (t.abs() + epsilon.abs()));
            lower += p * self.twin.delta(at + off).lower;
            upper += p * self.twin.delta(at - off).upper;
        }
        let slack = (points.len() as f64 + 4.0) * UNIT;
        Bounds::new(lower * (1.0 - slack), upper * (1.0 + slack))
    }

    /// About ε(δ), at most `highest`.
    pub(crate) fn epsilon(&self, delta: f64, highest: f64) -> f64 {
        if self.value(0.0) <= delta {
            return 0.0;
        }
        let (mut low, mut high) = (0.0, self.epsilon.max(1e-300));
        while self.value(high) > delta && high < highest {
            (low, high) = (high, 1.5 * high);
        }
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if self.value(middle) > delta { low = middle } else { high = middle }
        }
        high.min(highest)
    }

    /// A term to 28 digits, and by how much it may be off.
    fn wide_term(&self, point: &Point, epsilon: f64) -> Option<(Wide, f64)> {
        let (w, value) = point.wide?;
        let exact = Wide::from(epsilon);
        let linear = if self.add { w * exact } else { (Wide::from(1.0) - w) * exact };
        let factor = (linear + Wide::from(point.scale)).exp();
        let (term, size) = (value * factor, factor.norm());
        let rounding = DUST * (16.0 + 4.0 * (point.scale.abs() + linear.norm() + w.norm() * epsilon.abs()));
        Some((term, size * point.error + term.norm() * rounding))
    }

    /// δ(ε), best near the ε the path was made for.
    pub(crate) fn delta(&self, epsilon: f64) -> Bounds {
        if self.shift == 0.0 {
            return self.around(epsilon);
        }
        let (low, high) = (epsilon - self.shift, epsilon + self.shift);
        let (lower, upper) = (self.around(high).lower, self.around(low).upper);
        Bounds::new(lower * (1.0 - 2.0 * self.shift), (upper * (1.0 + 2.0 * self.shift)).min(1.0))
    }

    /// δ(ε) of these very doubles.
    ///
    /// A term is off by 64 units for the weight of the rule, by 48 for w in 1/(w(w − 1)) and by 24 for products.
    fn around(&self, epsilon: f64) -> Bounds {
        let (mut kept, mut error, mut wide) = (Kept::default(), 0.0, Wide::ZERO);
        for panel in &self.panels {
            for point in &panel.points {
                if let Some((term, off)) = self.wide_term(point, epsilon) {
                    (wide, error) = (wide + term, error + off);
                    continue;
                }
                let linear = linear(self.add, point.w, epsilon);
                let factor = (linear + point.scale).exp();
                let term = point.value * factor;
                kept.add(Complex64::from(term.im));
                let rounding = UNIT * (136.0 + 16.0 * (point.scale.abs() + linear.norm() + epsilon.abs()));
                error += factor.norm() * point.error + term.norm() * rounding;
            }
            error += libm::exp(panel.bound.log(self.add, epsilon) + panel.log_rule);
        }
        let (log, re) = self.ray;
        error += libm::exp(log + linear(self.add, Complex64::from(re), epsilon).re);
        let (sum, rounding) = kept.total();
        let wide = wide.im.to_f64();
        let value = sum.re + wide;
        let error = error * (1.0 + 1e-9) + rounding + 2.0 * UNIT * (wide.abs() + value.abs());
        let twin = self.twin_delta(epsilon);
        let (lower, upper) = (twin.lower + (value - error), twin.upper + (value + error));
        Bounds::new(
            (lower * (1.0 - 2.0 * UNIT)).clamp(0.0, 1.0),
            (upper * (1.0 + 2.0 * UNIT)).clamp(0.0, 1.0),
        )
    }
}

/// The laws, when all are Gaussian noise on samples and in one direction, and whether that is the one with the person added.
fn noises(sum: &Sum) -> Option<(Vec<Noise>, bool)> {
    let noise = |(law, count): &(crate::law::Law, f64)| {
        let (Base::Gaussian { mu_squared }, Some(sampling)) = (&law.base, &law.sampling) else { return None };
        Some((Noise::new(mu_squared.to_f64(), sampling.rate, *count), sampling.direction))
    };
    let noises: Vec<_> = sum.terms.iter().map(noise).collect::<Option<_>>()?;
    let direction = noises.first()?.1;
    let alike = noises.iter().all(|noise| noise.1 == direction) && direction != Direction::Replace;
    (alike && sum.mu_squared == 0.0)
        .then(|| (noises.into_iter().map(|noise| noise.0).collect(), direction == Direction::Add))
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

    fn truth(sum: &Sum, epsilon: f64) -> Bounds {
        profile(&sum.terms[0].0, &epsilon.try_into().unwrap())
    }

    /// One use has a formula, which knows nothing of any path.
    #[test]
    fn one_use_is_what_the_formula_says() {
        let cases = [
            ("1", 0.01),
            ("0.5", 0.1),
            ("2", 0.3),
            ("0.25", 0.5),
            ("3", 0.002),
            ("1", 0.9),
            ("1", 1e-4),
            ("2", 1e-6),
        ];
        let mut found_any = 0;
        for (mu, rate) in cases {
            for direction in [Direction::Remove, Direction::Add] {
                let top = -f64::ln_1p(-rate);
                let epsilons = match direction {
                    Direction::Add => [0.1, 0.5, 0.8].map(|x| x * top),
                    _ if rate < 0.001 => [0.5, 5.0, 50.0].map(|x| x * rate),
                    _ => [0.05, 0.5, 2.0],
                };
                for epsilon in epsilons {
                    let sum = sum(mu, rate, direction, 1.0);
                    let Some(bent) = Bent::new(&sum, epsilon, None, Digits::Usual) else { continue };
                    let (found, truth) = (bent.delta(epsilon), truth(&sum, epsilon));
                    let name = format!("{mu} {rate} {direction:?} {epsilon}: {found:?} {truth:?}");
                    assert!(found.lower <= truth.upper && truth.lower <= found.upper, "{name}");
                    assert!(found.upper - found.lower < 1e-9 * truth.upper + 1e-15, "{name}");
                    found_any += 1;
                }
            }
        }
        assert!(found_any >= 20, "{found_any}");
    }

    /// Beside the ε a path was made for it is wider, and still true.
    #[test]
    fn a_path_for_another_epsilon_is_true_as_well() {
        for (mu, rate, for_epsilon) in [("1", 0.1, 1.0), ("1", 1e-4, 3e-3), ("0.25", 1e-3, 2e-4)] {
            let sum = sum(mu, rate, Direction::Remove, 1.0);
            let bent = Bent::new(&sum, for_epsilon, None, Digits::Usual).unwrap();
            let width = |epsilon: f64| bent.delta(epsilon).upper - bent.delta(epsilon).lower;
            for epsilon in [0.01, 0.3, 0.9, 1.1, 2.0, 4.0].map(|factor| factor * for_epsilon) {
                let (found, truth) = (bent.delta(epsilon), truth(&sum, epsilon));
                assert!(
                    found.lower <= truth.upper && truth.lower <= found.upper,
                    "{epsilon}: {found:?} {truth:?}"
                );
            }
            assert!(width(for_epsilon) <= width(0.01 * for_epsilon));
        }
    }

    /// What the rule of a panel may miss is counted, whatever ε is asked for.
    #[test]
    fn the_error_of_every_panel_counts() {
        let sum = sum("1", 1e-3, Direction::Remove, 2.0);
        let mut bent = Bent::new(&sum, 0.05, None, Digits::Usual).unwrap();
        for index in 0..bent.panels.len() {
            let (before, known) = (bent.delta(0.04), bent.panels[index].log_rule);
            let size = bent.panels[index].bound.log(false, 0.04);
            bent.panels[index].log_rule = (0.1 * before.upper).ln() - size;
            let after = bent.delta(0.04);
            let wider = [after.upper - before.upper, before.lower - after.lower];
            assert!(
                wider.iter().all(|more| (more / before.upper - 0.1).abs() < 1e-6),
                "{index}: {before:?} {after:?}"
            );
            bent.panels[index].log_rule = known;
        }
    }

    /// A law counted twice is two laws.
    #[test]
    fn several_laws_are_composed() {
        for (rate, epsilon) in [(0.1, 1.0), (1e-4, 3e-3)] {
            let twice = sum("1", rate, Direction::Remove, 2.0);
            let mut both = sum("1", rate, Direction::Remove, 1.0);
            both.terms.push(both.terms[0].clone());
            let at = |sum: &Sum| Bent::new(sum, epsilon, None, Digits::Usual).unwrap().delta(epsilon);
            let (twice, both) = (at(&twice), at(&both));
            assert!(twice.lower <= both.upper && both.lower <= twice.upper, "{twice:?} {both:?}");
            assert!(twice.relative_width() < 1e-8 && both.relative_width() < 1e-8, "{twice:?} {both:?}");
        }
    }

    /// δ(0) of one use is q(2Φ(μ/2) − 1).
    #[test]
    fn nothing_exceeds_the_bound_on_delta_at_zero() {
        for (mu, rate) in [("0.2", 1e-3), ("1", 1e-5), ("2", 0.3)] {
            let one = sum(mu, rate, Direction::Remove, 1.0);
            let (most, truth) = (Bent::most(&one).unwrap(), truth(&one, 0.0));
            assert!(
                truth.upper <= most * (1.0 + 1e-9) && most < 1.3 * truth.upper,
                "{mu} {rate}: {most} {truth:?}"
            );
            let many = Bent::most(&sum(mu, rate, Direction::Remove, 100.0)).unwrap();
            assert!(many <= 100.0 * most * (1.0 + 1e-9), "{many} {most}");
        }
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
