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

mod line;
mod moment;
mod near_one;
mod start;
mod twin;

use std::f64::consts::PI;

use num_complex::Complex64;

use crate::Bounds;
use crate::inversion::Sum;
use crate::law::{Base, Direction};
use crate::nodes::{UNIT, gauss_legendre};
use line::{Line, Noise, Part, STEEP};
use moment::{Kept, LogMoment, Moment, bounding_line, level, straight_line};
use near_one::exp_m1;
use start::Start;
use twin::Twin;

/// What the certified errors of rules and ray shall be below, relatively.
const GOAL: f64 = 1e-12;
/// The most tries of a panel in all, and for one.
const MOST_TRIES: u32 = 150;
const MOST_SHORTER: i32 = 10;
/// 32 points, in the ellipse of ρ = 5/2.
const RULE: usize = 6;
const RHO: f64 = 2.5;
/// By which share of all so far a panel may be off, unless that is negligible.
const LARGEST_SHARE: f64 = 1e-11;
/// The path's angle is at least this, and at the second try that: further right the moments of Gaussian noise grow.
const LEAST_ANGLES: (f64, f64) = (1.25, 1.45);

/// ∏K^n − G along the path.
pub(crate) struct Bent {
    add: bool,
    twin: Twin,
    /// The ε the path was made for.
    epsilon: f64,
    panels: Vec<Panel>,
    /// ln of the bound on what the ray has, without ε, and Re w there.
    ray: (f64, f64),
}

struct Panel {
    points: Vec<Point>,
    bound: Bound,
    /// ln of the rule's error where that bound is 1.
    log_rule: f64,
}

struct Point {
    w: Complex64,
    /// ∏K^n − G, divided by e^`scale`, times the rule's weight over πw(w − 1); and by how much it may be off.
    value: Complex64,
    error: f64,
    scale: f64,
}

/// What bounds |∏K^n − G| in a rectangle.
struct Bound {
    /// Re w and ln of the bound on ∏|K|^n at the corners.
    corners: [(f64, f64); 4],
    /// ln of the bound on |G|.
    twin: f64,
}

impl Bound {
    /// ln of the bound on |∏K^n − G|·|e^(−zε)|.
    fn log(&self, add: bool, epsilon: f64) -> f64 {
        let linear = |re: f64| linear(add, Complex64::from(re), epsilon).re;
        let most = |height: &dyn Fn(&(f64, f64)) -> f64| {
            self.corners.iter().map(height).fold(f64::NEG_INFINITY, f64::max)
        };
        let flat = most(&|(re, _)| linear(*re));
        log_add(most(&|(re, log)| log + linear(*re)), self.twin + flat)
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
    pub(crate) fn new(sum: &Sum, epsilon: f64, log_delta: Option<f64>) -> Option<Self> {
        let (noises, add) = noises(sum)?;
        let start = Start::for_epsilon(&noises, add, epsilon);
        let goal = log_delta.unwrap_or(start.log_delta) + GOAL.ln();
        [false, true]
            .into_iter()
            .find_map(|thorough| Path::new(&noises, add, epsilon, start, goal, thorough).walk(start))
    }

    /// About δ(ε).
    fn value(&self, epsilon: f64) -> f64 {
        let points = self.panels.iter().flat_map(|panel| &panel.points);
        let sum: f64 = points
            .map(|point| (point.value * (linear(self.add, point.w, epsilon) + point.scale).exp()).im)
            .sum();
        sum + self.twin.delta(epsilon).upper
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

    /// δ(ε), best near the ε the path was made for.
    ///
    /// A term is off by 64 units for the weight of the rule, by 48 for w in 1/(w(w − 1)) and by 24 for products.
    pub(crate) fn delta(&self, epsilon: f64) -> Bounds {
        let (mut kept, mut error) = (Kept::default(), 0.0);
        for panel in &self.panels {
            for point in &panel.points {
                let linear = linear(self.add, point.w, epsilon);
                let factor = (linear + point.scale).exp();
                let term = point.value * factor;
                kept.add(Complex64::from(term.im));
                let rounding = UNIT * (136.0 + 16.0 * (point.scale + linear.norm() + epsilon));
                error += factor.norm() * point.error + term.norm() * rounding;
            }
            error += libm::exp(panel.bound.log(self.add, epsilon) + panel.log_rule);
        }
        let (log, re) = self.ray;
        error += libm::exp(log + linear(self.add, Complex64::from(re), epsilon).re);
        let (sum, rounding) = kept.total();
        let (value, error) = (sum.re, error * (1.0 + 1e-9) + rounding);
        let twin = self.twin.delta(epsilon);
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

/// The path while it is made.
struct Path {
    noises: Vec<Noise>,
    twin: Twin,
    /// For each law in the panel before, the line of its bound and the one it is integrated along.
    lines: Vec<Line>,
    straight: Vec<Line>,
    add: bool,
    epsilon: f64,
    /// ln of the error that is wanted.
    goal: f64,
    /// All panels begin, end and have their middle at multiples of this: so they are doubles, and nothing is between them.
    grain: f64,
    /// Whether lines are looked for everywhere, and not only near those before.
    thorough: bool,
    tries: u32,
    /// Σ|terms| so far.
    total: f64,
}

impl Path {
    fn new(noises: &[Noise], add: bool, epsilon: f64, start: Start, goal: f64, thorough: bool) -> Self {
        let lines = vec![Line::new(0.0, 0.0); noises.len()];
        let grain = libm::exp2(libm::floor(libm::log2(start.tilt)) - 20.0);
        let (noises, twin) = (noises.to_vec(), Twin::new(noises, add, start.tilt));
        Self {
            noises,
            twin,
            straight: lines.clone(),
            lines,
            add,
            epsilon,
            goal,
            grain,
            thorough,
            tries: 0,
            total: 0.0,
        }
    }

    /// From the real axis to where what is left is negligible.
    fn walk(mut self, start: Start) -> Option<Bent> {
        let mut panels = vec![];
        let tilt = (start.tilt / self.grain).round() * self.grain;
        let mut w = Complex64::new(
            if self.add { -tilt } else { (tilt / self.grain + (1.0 / self.grain).ceil()) * self.grain },
            0.0,
        );
        let (mut length, mut angle) = ((2.0 / start.curvature.sqrt()).min(1.5 * start.tilt), PI / 2.0);
        while self.tries < MOST_TRIES {
            let (panel, taken) = self.panel(w, angle, length)?;
            panels.push(panel);
            (angle, length) = (taken.arg(), taken.norm());
            w += taken;
            if w.im > self.grain * 2f64.powi(50) {
                return None;
            }
            // a ray that is nearly good enough may be proven to be so by a better line
            for (best, short) in [(false, 30.0), (true, 0.0)] {
                let Some(ray) = self.ray(w, best) else { break };
                let over = ray.0 + linear(self.add, w, self.epsilon).re - self.goal;
                if over < 0.0 {
                    return Some(Bent { add: self.add, twin: self.twin, epsilon: self.epsilon, panels, ray });
                }
                if over > short {
                    break;
                }
            }
            // the way down, as far as it leads upward
            let down = self.slope(w).map_or(PI / 2.0, |slope| (-slope.conj()).arg());
            let least = if self.thorough { LEAST_ANGLES.1 } else { LEAST_ANGLES.0 };
            let least = least.max(angle - 0.1);
            angle = if self.add || down < 0.0 { PI / 2.0 } else { down.clamp(least, PI / 2.0) };
            length *= 1.6;
        }
        None
    }

    /// The derivative of ln of the integrand, about.
    fn slope(&self, w: Complex64) -> Option<Complex64> {
        let (mut log, mut rise) = (Complex64::ZERO, Complex64::ZERO);
        for (noise, line) in self.noises.iter().zip(&self.straight) {
            let moment = Moment::new(*noise, line, &[w])?;
            log += noise.count * moment.at(w).value;
            rise += noise.count * moment.mean(w);
        }
        let sign = if self.add { -1.0 } else { 1.0 };
        let fall = log.re.max(0.0);
        let whole = (log - fall).exp();
        let twin = self.twin.log(w).0;
        let part = whole - (twin - fall).exp();
        let slope = (whole * rise - (twin - fall).exp() * (w - 0.5) * self.twin.variance()) / part;
        let slope = slope - w.inv() - (w - 1.0).inv() - sign * self.epsilon;
        slope.is_finite().then_some(slope)
    }

    /// ln of the bound on the ray upward from w, without ε, and Re w.
    fn ray(&self, w: Complex64, best: bool) -> Option<(f64, f64)> {
        let mut log = 0.0;
        for (noise, line) in self.noises.iter().zip(&self.lines) {
            let before =
                Line { floor: line.floor.or(Some(0.0)), angle: line.angle.max(0.3), right: STEEP, ..*line };
            let line = if best { bounding_line(noise, &before, &[w], 0.0, true) } else { before };
            let bound = line.log_bounds(noise, &[w], level(noise, &line, &[w]), noise.count, Part::All)?;
            log += noise.count * bound[0].whole;
        }
        Some((log_add(log, self.twin.log_bound(&[w])) - (PI * w.im).ln(), w.re))
    }

    /// A panel that starts at a point, and where it leads; shorter and steeper than wished where it has to be.
    fn panel(&mut self, start: Complex64, angle: f64, length: f64) -> Option<(Panel, Complex64)> {
        (0..MOST_SHORTER).find_map(|tried| {
            let steep = PI / 2.0 - (PI / 2.0 - angle) * 0.6f64.powi(tried);
            let half = Complex64::from_polar(length * 0.6f64.powi(tried) / 2.0, steep);
            let half =
                Complex64::new((half.re / self.grain).round(), (half.im / self.grain).round()) * self.grain;
            Some((self.try_panel(start, half, self.thorough || tried > 0)?, half * 2.0))
        })
    }

    /// `None` when the rule's error could not be proven to be small.
    fn try_panel(&mut self, start: Complex64, half: Complex64, anew: bool) -> Option<Panel> {
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
            let line = bounding_line(noise, before, &corners, epsilon / uses, anew);
            let logs =
                line.log_bounds(noise, &corners, level(noise, &line, &corners), noise.count, Part::All);
            let logs = logs?;
            for (bound, log) in bounds.iter_mut().zip(&logs) {
                bound.1 += noise.count * log.whole;
            }
            lines.push(line);
        }
        let bound = Bound { corners: bounds, twin: self.twin.log_bound(&corners) };
        if bound.log(self.add, self.epsilon) + log_rule >= self.goal - 2.0 {
            return None;
        }
        let mut logs = vec![LogMoment::ZERO; gauss_legendre::SIZES[RULE]];
        let nodes = &gauss_legendre::rule(RULE).nodes;
        let ends = [start, start + 2.0 * half];
        let mut straight = vec![];
        for (noise, before) in self.noises.iter().zip(&self.straight) {
            let line = straight_line(noise, before, &ends, anew);
            straight.push(line);
            let moment = Moment::new(*noise, &line, &ends);
            let moment = moment?;
            for ((x, _), log) in nodes.iter().zip(&mut logs) {
                log.add(&moment.at(centre + half * x), noise.count);
            }
        }
        let points = nodes.iter().zip(logs).map(|((x, weight), log)| {
            let w = centre + half * x;
            self.point(w, half * *weight / (w * (w - 1.0)) / PI, log)
        });
        let points: Vec<Point> = points.collect();
        let factor = |point: &Point| libm::exp(linear(self.add, point.w, self.epsilon).re + point.scale);
        let error: f64 = points.iter().map(|point| factor(point) * point.error).sum();
        let value: f64 = points.iter().map(|point| factor(point) * point.value.norm()).sum();
        let most = LARGEST_SHARE * (self.total + value) + 1e3 * libm::exp(self.goal);
        if error.is_nan() || error > most {
            return None;
        }
        self.total += value;
        (self.lines, self.straight) = (lines, straight);
        Some(Panel { points, bound, log_rule })
    }

    /// The integrand, from ln ∏K^n.
    fn point(&self, w: Complex64, weight: Complex64, log: LogMoment) -> Point {
        let (twin, twin_error) = self.twin.log(w);
        let known = log.error < 0.1;
        let scale = f64::max(if known { log.value.re } else { log.modulus }, twin.re).max(0.0);
        let whole = |log: Complex64| (log - scale).exp();
        let rounding = |log: Complex64| 8.0 * UNIT * (2.0 + log.norm() + scale);
        let matched =
            self.twin.mismatch(w).map(|mismatch| log.less.1 + mismatch).filter(|error| *error < 0.1);
        let (value, error) = match matched {
            // G·(F/G − 1)
            Some(error) if known && log.less.0.re.abs() < 100.0 => {
                let (part, last) = exp_m1(log.less.0);
                let off = last
                    + 1.06 * error * libm::exp(log.less.0.re)
                    + part.norm() * (twin_error + rounding(twin));
                (whole(twin) * part, whole(twin).norm() * off)
            }
            // (F − 1) − (G − 1)
            _ if known && scale < 100.0 => {
                let ((part, first), (other, second)) = (exp_m1(log.value), exp_m1(twin));
                let off = first + second + 4.0 * UNIT * (part.norm() + other.norm());
                let off =
                    off + 1.06 * (log.error * libm::exp(log.value.re) + twin_error * libm::exp(twin.re));
                let fall = libm::exp(-scale);
                ((part - other) * fall, off * fall * (1.0 + 8.0 * UNIT * (2.0 + scale)))
            }
            _ if known => {
                let off = whole(log.value).norm() * (1.06 * log.error + rounding(log.value));
                (
                    whole(log.value) - whole(twin),
                    off + whole(twin).norm() * (1.06 * twin_error + rounding(twin)),
                )
            }
            // as if F were 0
            _ => {
                let off = whole(twin).norm() * (1.06 * twin_error + rounding(twin));
                (-whole(twin), off + libm::exp(log.modulus - scale) * 1.01)
            }
        };
        let error = error + value.norm() * UNIT * (16.0 + 8.0 * scale);
        Point { w, value: value * weight, error: weight.norm() * error * 1.01, scale }
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
                    let Some(bent) = Bent::new(&sum, epsilon, None) else { continue };
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
            let bent = Bent::new(&sum, for_epsilon, None).unwrap();
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
        let mut bent = Bent::new(&sum, 0.05, None).unwrap();
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
            let at = |sum: &Sum| Bent::new(sum, epsilon, None).unwrap().delta(epsilon);
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
