//! [`Path`]: the path of [`Bent`] while it is made, panel by panel.
//!
//! Every path is valid, so nothing about where it goes must be proven: a panel whose rule cannot be proven to be good enough is made
//! shorter and steeper.

use std::f64::consts::PI;

use num_complex::Complex64;

use super::beside::Beside;
use super::careful::Careful;
use super::choice::{bounding_line, level, straight_line};
use super::double_double::{DUST, Double, Wide, wide_rule};
use super::ellipse::Ellipse;
use super::line::{Line, Noise, Part, STEEP};
use super::moment::{LogMoment, Moment};
use super::near_one::exp_m1;
use super::start::Start;
use super::twin::Twin;
use super::{Bent, Bound, Digits, Panel, Point, RULE, linear, log_add};
use crate::nodes::{UNIT, gauss_legendre};

/// The most tries of a panel in all, and for one.
const MOST_TRIES: u32 = 150;
const MOST_SHORTER: i32 = 10;
/// π less its double.
const PI_REST: f64 = 1.224_646_799_147_353_2e-16;
/// By which share of all so far a panel may be off, unless that is negligible.
const LARGEST_SHARE: f64 = 1e-11;
/// The path's angle is at least this, and at the second try that: further right the moments of Gaussian noise grow.
const LEAST_ANGLES: (f64, f64) = (1.25, 1.45);
/// ρ of the [ellipse](Ellipse) in which a rule's error is bounded, and the largest one.
const RHO: f64 = 2.5;
const MOST_RHO: f64 = 12.0;
/// By how much a panel is made shorter.
const SHORTER: f64 = 0.6;
/// What a larger ρ can make up for, as a power of e.
const ENOUGH: f64 = 60.0;

/// Why there is no panel.
enum Fault {
    /// The rule's error is too large, as a power of e.
    Rule(f64),
    Other,
}

/// The path while it is made.
pub(super) struct Path {
    noises: Vec<Noise>,
    beside: Beside,
    twin: Twin,
    /// For each law in the panel before, the line of its bound and the one it is integrated along.
    lines: Vec<Line>,
    straight: Vec<Line>,
    add: bool,
    epsilon: f64,
    /// ln of the error that is wanted.
    goal: f64,
    digits: Digits,
    /// All panels begin, end and have their middle at multiples of this: so they are doubles, and nothing is between them.
    grain: f64,
    /// Whether lines are looked for everywhere, and not only near those before.
    thorough: bool,
    /// ρ of the ellipse of the panel before.
    rho: f64,
    tries: u32,
    /// Σ|terms| so far.
    total: f64,
}

impl Path {
    pub(super) fn new(
        (noises, beside): (&[Noise], &Beside),
        epsilon: f64,
        start: Start,
        (goal, digits): (f64, Digits),
        thorough: bool,
    ) -> Self {
        let (lines, add) = (vec![Line::new(0.0, 0.0); noises.len()], beside.is_added());
        let grain = libm::exp2(libm::floor(libm::log2(start.tilt)) - 20.0);
        let (noises, twin) = (noises.to_vec(), Twin::new(noises, add, start.tilt));
        Self {
            noises,
            beside: beside.clone(),
            twin,
            straight: lines.clone(),
            lines,
            add,
            epsilon,
            goal,
            digits,
            grain,
            thorough,
            rho: RHO,
            tries: 0,
            total: 0.0,
        }
    }

    /// From the real axis to where what is left is negligible.
    pub(super) fn walk(mut self, start: Start) -> Option<Bent> {
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
                    let shift = if self.digits == Digits::Many { self.shift() } else { 0.0 };
                    let Self { add, twin, beside, epsilon, .. } = self;
                    return Some(Bent { add, twin, beside, epsilon, panels, ray, shift });
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

    /// By how much ε may be off for that rates and μ² are rounded.
    ///
    /// δ(ε) = ∫ (∏r − e^ε)⁺φ dx with the person removed, and alike when added: where each ln r moves by no more than η, δ is at most
    /// e^(Σnη)·δ(ε − Σnη). A rate that is a unit larger makes r at most a unit larger, and μ moves ln r by (x − μ)·q·e^(…)/r of that;
    /// outputs beyond 40 are too rare to count.
    fn shift(&self) -> f64 {
        let of = |noise: &Noise| {
            let slope = (noise.rate * libm::exp(40.0 * noise.mu)).min(1.0);
            noise.count * (2.0 + 2.0 * slope * noise.mu * (40.0 + noise.mu))
        };
        UNIT * self.noises.iter().map(of).sum::<f64>()
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
        let slope = slope - w.inv() - (w - 1.0).inv() - sign * (self.beside.mean(w) + self.epsilon);
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
        let all = log_add(log, self.twin.log_bound(&[w])) + self.beside.log(w.re);
        Some((all - (PI * w.im).ln(), w.re))
    }

    /// A panel that starts at a point, and where it leads; shorter and steeper than wished where it has to be.
    fn panel(&mut self, start: Complex64, angle: f64, length: f64) -> Option<(Panel, Complex64)> {
        let mut rho = self.rho;
        for tried in 0..MOST_SHORTER {
            let steep = PI / 2.0 - (PI / 2.0 - angle) * SHORTER.powi(tried);
            let half = Complex64::from_polar(length * SHORTER.powi(tried) / 2.0, steep);
            let half =
                Complex64::new((half.re / self.grain).round(), (half.im / self.grain).round()) * self.grain;
            match self.try_panel(start, half, rho, self.thorough || tried > 0) {
                Ok(panel) => {
                    self.rho = if tried == 0 { (rho * SHORTER).max(RHO) } else { rho };
                    return Some((panel, half * 2.0));
                }
                // in the same ellipse a shorter panel has a better rule
                Err(Fault::Rule(over)) if over < ENOUGH => rho = (rho / SHORTER).min(MOST_RHO),
                Err(Fault::Rule(_)) => rho = RHO,
                Err(Fault::Other) => {}
            }
        }
        None
    }

    /// Fails when the rule's error could not be proven to be small.
    fn try_panel(&mut self, start: Complex64, half: Complex64, rho: f64, anew: bool) -> Result<Panel, Fault> {
        self.tries += 1;
        let centre = start + half;
        let ellipse = Ellipse { centre, half, rho };
        let (corners, log_rule) = (ellipse.corners(), ellipse.log_rule());
        let uses: f64 = self.noises.iter().map(|noise| noise.count).sum();
        let epsilon = self.epsilon + self.beside.mean(Complex64::from(centre.re)).re;
        let epsilon = if self.add { -epsilon } else { epsilon };
        let mut bounds = corners.map(|w| (w.re, 0.0, self.beside.log(w.re)));
        let mut lines = vec![];
        for (noise, before) in self.noises.iter().zip(&self.lines) {
            let line = bounding_line(noise, before, &corners, epsilon / uses, anew);
            let level = level(noise, &line, &corners);
            let logs = line.log_bounds(noise, &corners, level, noise.count, Part::All).ok_or(Fault::Other)?;
            for (bound, log) in bounds.iter_mut().zip(&logs) {
                bound.1 += noise.count * log.whole;
            }
            lines.push(line);
        }
        let bound = Bound { corners: bounds, twin: self.twin.log_bound(&corners) };
        let over = bound.log(self.add, self.epsilon) + log_rule - (self.goal - 2.0);
        if over.is_nan() || over >= 0.0 {
            return Err(Fault::Rule(over));
        }
        let mut logs = vec![LogMoment::ZERO; gauss_legendre::SIZES[RULE]];
        let nodes = &gauss_legendre::rule(RULE).nodes;
        let ends = [start, start + 2.0 * half];
        let mut straight = vec![];
        let many = self.digits == Digits::Many;
        let mut careful = vec![];
        for (noise, before) in self.noises.iter().zip(&self.straight) {
            let line = straight_line(noise, before, &ends, anew);
            straight.push(line);
            if many {
                careful.push(Careful::new(noise, &line, &ends).ok_or(Fault::Other)?);
                continue;
            }
            let moment = Moment::new(*noise, &line, &ends).ok_or(Fault::Other)?;
            for ((x, _), log) in nodes.iter().zip(&mut logs) {
                log.add(&moment.at(centre + half * x), noise.count);
            }
        }
        let points = nodes.iter().zip(logs).map(|((x, weight), log)| {
            let w = centre + half * x;
            self.point(w, half * *weight / (w * (w - 1.0)) / PI, log)
        });
        let points: Vec<Point> = match many {
            true => self.wide_points(&careful, centre, half).ok_or(Fault::Other)?,
            false => points.collect(),
        };
        let factor = |point: &Point| libm::exp(linear(self.add, point.w, self.epsilon).re + point.scale);
        let error: f64 = points.iter().map(|point| factor(point) * point.error).sum();
        let value: f64 = points.iter().map(|point| factor(point) * point.value.norm()).sum();
        let most = LARGEST_SHARE * (self.total + value) + 1e3 * libm::exp(self.goal);
        if error.is_nan() || error > most {
            return Err(Fault::Other);
        }
        self.total += value;
        (self.lines, self.straight) = (lines, straight);
        Ok(Panel { points, bound, log_rule })
    }

    /// The points of a panel to 28 digits.
    fn wide_points(&self, moments: &[Careful], centre: Complex64, half: Complex64) -> Option<Vec<Point>> {
        let (centre, half, one) = (Wide::from(centre), Wide::from(half), Wide::from(1.0));
        let over_pi = Wide::real((Double::from(PI) + Double::from(PI_REST)).recip());
        let point = |&(x, weight): &(Double, Double)| {
            let w = centre + half * Wide::real(x);
            let (mut log, mut off) = (Wide::ZERO, 0.0);
            for (noise, moment) in self.noises.iter().zip(moments) {
                let (one, error) = moment.log(w)?;
                log = log + one * Wide::from(noise.count);
                off += noise.count * (error + 4.0 * DUST * one.norm());
            }
            let twin = self.twin.wide_log(w);
            let scale = log.re.to_f64().max(twin.re.to_f64()).max(0.0);
            let fall = Wide::from(-scale);
            let (whole, other) = ((log + fall).exp(), (twin + fall).exp());
            let rounding = |log: Wide| 8.0 * DUST * (2.0 + log.norm() + scale);
            let off = if off < 0.1 { off } else { return None };
            let error = whole.norm() * (1.06 * off + rounding(log)) + other.norm() * rounding(twin);
            let weight = half * Wide::real(weight) * over_pi * (w * (w - one)).recip();
            let part = whole - other;
            let height = self.beside.log(w.re.to_f64());
            let (beside, off) = self.beside.wide(w, height);
            let value = part * beside * weight;
            let error =
                1.01 * error * beside.norm() + part.norm() * (1.01 * off + 64.0 * DUST * beside.norm());
            let (error, scale) = (weight.norm() * error, scale + height);
            Some(Point { w: w.to_complex(), value: value.to_complex(), error, scale, wide: Some((w, value)) })
        };
        wide_rule().iter().map(point).collect()
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
        let height = self.beside.log(w.re);
        let (beside, off) = self.beside.at(w, height);
        let error = error * beside.norm() + value.norm() * (off + 4.0 * UNIT * beside.norm());
        let scale = scale + height;
        Point { w, value: value * beside * weight, error: weight.norm() * error * 1.01, scale, wide: None }
    }
}
