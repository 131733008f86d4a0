//! [`Moment`]: M(w) in one panel of the path, by the trapezoid rule on one [`Line`].
//!
//! **Error.** On lines whose β₀ is larger and smaller by Δ, the same integral is at most B₊ and B₋; these are the sides of a
//! strip of half-width d = Δ/(μ(1 + k²)) in s, in which the integrand is analytic, so the rule with step η is off by at
//! most (B₊ + B₋)/(e^(2πd/η) − 1). All bounds are taken at the corners of the panel's rectangle, and hold inside.
//!
//! The rule ends at an s between two places, where the [strip](super::strips) is closed ([`edge`]); what is to the right of it is
//! bounded along a path that leaves the line there ([`tail`]).
//!
//! What is integrated is r^w − 1 − w(r − 1), for r has the mean 1, and where w is small also without w(w − 1)(r − 1)²/2, of which
//! the mean is known too. So errors are shares of small numbers, and not of 1.
//!
//! **Rounding.** Places carry their errors; here those of e^(wΛ) and its like and of a compensated sum are added.
//!
//! **References.** \[Trefethen2014\] for the trapezoid rule.

use std::f64::consts::{LN_2, PI};

use num_complex::Complex64;

use super::line::{Line, Noise, Part, Place};
use super::log_add;
use super::near_one::{exp_less_three, exp_less_two, exp_m1, ln_1p, ln_1p_less, modulus};
use super::strips::{DEPTH, Strips, edge, largest, tail};
use crate::nodes::UNIT;

/// Where e to this or more occurs, M is divided by something.
const LARGE: f64 = 300.0;
/// Up to so large a |w(w − 1)|·E[(r − 1)²] it is taken out of K.
const SMALL: f64 = 0.8;
/// By how many units of itself w may be off.
const MOVED: f64 = 4.0;

/// See the module text.
pub(super) struct Moment {
    pub(super) places: Vec<(Place, Weight)>,
    pub(super) step: f64,
    /// (1 + ik)·η/√(2π).
    unit: Complex64,
    /// ln of what the rule misses and what is cut off of r^w − 1 − w(r − 1), divided by |w|, and of (r − 1)².
    pub(super) log_missing: (f64, f64),
    /// E[(r − 1)²], and by which share of itself it may be off.
    square: (f64, f64),
}

/// φ at a place, times what belongs to the rule.
#[derive(Clone, Copy)]
pub(super) struct Weight {
    value: Complex64,
    size: f64,
    /// By which share of itself it is off.
    error: f64,
    /// r − 1 − Λ and r − 1 − Λ − Λ²/2, with their roundings.
    less: (Complex64, f64),
    least: (Complex64, f64),
    /// r − 1.
    rise: Complex64,
}

/// ln K.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogMoment {
    pub(super) value: Complex64,
    pub(super) error: f64,
    /// ln|K| is at most this, even where the error is as large as K itself.
    pub(super) modulus: f64,
    /// ln K − w(w − 1)·E[(r − 1)²]/2 and its error, which is infinite where that is not known.
    pub(super) less: (Complex64, f64),
}

impl LogMoment {
    pub(super) const ZERO: Self =
        Self { value: Complex64::ZERO, error: 0.0, modulus: 0.0, less: (Complex64::ZERO, 0.0) };

    /// Where K is off by a share of itself, and its logarithm by some rounding.
    fn new(value: Complex64, share: f64, rounding: f64) -> Self {
        let error = if share < 0.1 { 1.1 * share + rounding } else { f64::INFINITY };
        let modulus = value.re + libm::log1p(share) + rounding;
        Self { value, error, modulus, less: (Complex64::ZERO, f64::INFINITY) }
    }

    /// Adds another one, n times.
    pub(super) fn add(&mut self, other: &Self, count: f64) {
        self.value += count * other.value;
        self.error += count * (other.error + 2.0 * UNIT * modulus(other.value));
        self.modulus += count * other.modulus;
        self.less.0 += count * other.less.0;
        self.less.1 += count * (other.less.1 + 2.0 * UNIT * modulus(other.less.0));
    }
}

/// A sum that keeps what is rounded off.
#[derive(Default)]
pub(super) struct Kept {
    sum: Complex64,
    lost: Complex64,
    /// Σ|terms|.
    size: f64,
}

impl Kept {
    /// The sum, and by how much it may be off: the terms were rounded when they were multiplied by their weights, and what was
    /// rounded off is a small number.
    pub(super) fn total(&self) -> (Complex64, f64) {
        let sum = self.sum + self.lost;
        (sum, 2.0 * UNIT * modulus(sum) + 1e-3 * UNIT * self.size)
    }

    pub(super) fn add(&mut self, term: Complex64) {
        self.size += modulus(term);
        self.sum = Complex64::new(
            two_sum(self.sum.re, term.re, &mut self.lost.re),
            two_sum(self.sum.im, term.im, &mut self.lost.im),
        );
    }
}

/// The rounded sum; what was rounded off is added to `lost`.
fn two_sum(a: f64, b: f64, lost: &mut f64) -> f64 {
    let sum = a + b;
    let second = sum - a;
    *lost += (a - (sum - second)) + (b - second);
    sum
}

impl Moment {
    /// For w in the polygon with the given corners.
    pub(super) fn new(noise: Noise, line: &Line, corners: &[Complex64]) -> Option<Self> {
        Self::to_depth(noise, line, corners, DEPTH)
    }

    /// The rule misses about e^(−depth) of the integral.
    pub(super) fn to_depth(noise: Noise, line: &Line, corners: &[Complex64], depth: f64) -> Option<Self> {
        let strips = Strips::new(&noise, line, corners)?;
        let (level, right, (strip, _)) = (strips.part - depth, strips.end, strips.best()?);
        let taken = corners.iter().any(|w| modulus(*w * (*w - 1.0)) * noise.square() < SMALL);
        let square_level = if taken { noise.square().ln() - depth } else { f64::INFINITY };
        // d, by which s is moved to get from the line to the sides of the strip, and where the rule ends
        let ends = |s: f64, width: f64| {
            let (edge, edge_square) = edge(&noise, line, s, width, corners);
            let small = edge <= level + 3.0 && edge_square <= square_level + 3.0;
            let (tail, tail_square) = small.then(|| tail(&noise, line, s, corners, level)).flatten()?;
            let small = tail <= level + 3.0 && tail_square <= square_level + 3.0;
            small.then(|| (log_add(tail, edge), log_add(tail_square, edge_square)))
        };
        let (width, end) = [1.0, 0.5, 0.25, 0.12, 0.06, 0.03].into_iter().find_map(|share| {
            let width = share * strip / noise.mu / (1.0 + line.slope.powi(2));
            let mores = [0.0, 0.5, 1.0, 2.0, 3.0, 4.5, 6.0, 8.0, 11.0, 15.0, 20.0, 27.0, 35.0];
            mores.into_iter().map(|more| right + more).find_map(|s| ends(s, width).map(|_| (width, s)))
        })?;
        let side = |sign: f64| {
            let angle = line.angle + sign * width * noise.mu * (1.0 + line.slope.powi(2));
            let extent = Part::To(end + 0.5 + line.slope * width);
            let bounds = Line { angle, ..*line }.log_bounds(&noise, corners, level, 1.0, extent)?;
            Some(largest(&bounds))
        };
        let (above, below) = (side(1.0)?, side(-1.0)?);
        let (sides, square_sides) = (above.0.max(below.0) + LN_2, above.1.max(below.1) + LN_2);
        // half a step beyond the last place is the end, and multiples of a step of few digits are doubles
        let step = 2.0 * PI * width / (sides - level + 1.0).max(square_sides - square_level + 1.0).max(5.0);
        let count = (end / step).ceil();
        let step = short(end / (count + 0.5));
        let end = (count + 0.5) * step;
        let tail = ends(end, width)?;
        let (places, outside) = line.places(&noise, step, corners, level, Part::To(end - 0.75 * step))?;
        // 1/(e^(2πd/η) − 1), of which the exponent is at least 5
        let share = -2.0 * PI * width / step + 0.01;
        let square_outside = line.square_beyond(&noise, &places[0]) + step.ln_1p();
        let log_missing = (
            log_add(sides + share, log_add(outside, tail.0)),
            log_add(square_sides + share, log_add(square_outside, tail.1)),
        );
        let unit = Complex64::new(1.0, line.slope) / (1.0 + line.slope.powi(2)).sqrt();
        let unit = unit * libm::exp(line.log_constant()) * step;
        let weigh = |place: Place| {
            let value = place.bell.exp() * unit;
            let (less, least, rise) =
                (exp_less_two(place.log), exp_less_three(place.log), exp_m1(place.log).0);
            let error = place.bell_error + 24.0 * UNIT;
            (place, Weight { value, size: modulus(value), error, less, least, rise })
        };
        let square = (noise.square(), noise.square_share());
        Some(Self { places: places.into_iter().map(weigh).collect(), step, unit, log_missing, square })
    }

    /// ln K(w), and by how much it may be off.
    pub(super) fn at(&self, w: Complex64) -> LogMoment {
        let small = modulus(w * (w - 1.0)) * self.square.0 < SMALL;
        let peak = self.places.iter().map(|(place, _)| place.height(w)).fold(0.0, f64::max);
        if peak > LARGE {
            self.large(w, peak)
        } else if small && peak < 1.0 {
            self.third(w)
        } else {
            self.second(w)
        }
    }

    /// From r^w − 1 − w(r − 1) − w(w − 1)(r − 1)²/2, as the means of r and of (r − 1)² are known.
    ///
    /// With ρ = r − 1, λ = ρ − Λ and e₃ for e^x − 1 − x − x²/2 this is e₃(wΛ) − w·e₃(Λ) − w(w − 1)·(Λλ + λ²/2). Its derivative
    /// by Λ is w(t − (w − 1)ρ²) for t = r^w − 1 − wρ, and the one by w is Λt − (λ − ρ²/2) − wρλ, where λ − ρ²/2 =
    /// e₃(Λ) − (Λλ + λ²/2).
    fn third(&self, w: Complex64) -> LogMoment {
        let (mut kept, mut error, size, product) = (Kept::default(), 0.0, modulus(w), w * (w - 1.0));
        for (place, weight) in &self.places {
            let exponent = w * place.log;
            if exponent.re > 2.0 * LARGE {
                return self.second(w);
            }
            let (log, (less, second), (least, third)) = (modulus(place.log), weight.less, weight.least);
            let (grown, first) = exp_less_three(exponent);
            let mixed = (place.log + less * 0.5) * less;
            let term = grown - w * least - product * mixed;
            let square = weight.rise * weight.rise;
            let tangent = term + product * square * 0.5;
            let off = size * place.log_error;
            let steep = modulus(tangent - (w - 1.0) * square);
            let (less, square) = (modulus(less), modulus(square));
            let moved = log * modulus(tangent) + modulus(least - mixed) + size * square.sqrt() * less;
            let exponents = 3.0 * size * log * (modulus(grown) + size * size * log * log / 2.0);
            let sums = modulus(grown) + size * modulus(least) + modulus(product) * modulus(mixed);
            let rounding =
                first + size * third + modulus(product) * (log + less) * (second + 6.0 * UNIT * less);
            let share = modulus(term) * weight.error
                + off * (steep + off * (2.0 + modulus(tangent) + size * square.sqrt()))
                + rounding
                + UNIT * (exponents + MOVED * size * moved + 4.0 * sums);
            kept.add(term * weight.value);
            error += weight.size * share;
        }
        let (sum, rounding) = kept.total();
        let missing =
            size * libm::exp(self.log_missing.0) + modulus(product) / 2.0 * libm::exp(self.log_missing.1);
        let error = 1.01 * error + rounding + missing;
        // K = 1 + x for x = w(w − 1)·E[ρ²]/2 + the sum
        let known = product * (self.square.0 / 2.0);
        let moved = MOVED * UNIT * size * (size + modulus(w - 1.0)) * self.square.0 / 2.0;
        let known_error = modulus(known) * (self.square.1 + 6.0 * UNIT) + moved;
        let x = known + sum;
        let (log, last) = ln_1p_less(x);
        let off = error + known_error + UNIT * modulus(x);
        // (ln(1 + x) − x)′ = −x/(1 + x)
        let less_error = error + 2.2 * modulus(x) * off + last + UNIT * (modulus(sum) + modulus(log));
        let less = sum + log;
        let value = known + less;
        let all = less_error + known_error + UNIT * modulus(value);
        if modulus(x) + off > 0.5 {
            return self.second(w);
        }
        LogMoment { value, error: all, modulus: value.re + all, less: (less, less_error) }
    }

    /// From r^w − 1 − w(r − 1), as the mean of r is known.
    ///
    /// Its derivative by Λ is w(r^w − r), and the one by w is Λt − λ + wΛρ.
    fn second(&self, w: Complex64) -> LogMoment {
        let (mut kept, mut error, size) = (Kept::default(), 0.0, modulus(w));
        for (place, weight) in &self.places {
            let exponent = w * place.log;
            let (log, (less, second), rise) = (modulus(place.log), weight.less, modulus(weight.rise));
            let off = size * place.log_error;
            let off = if off < 0.02 { off } else { f64::INFINITY };
            if exponent.re > 2.0 * LARGE {
                // all else is less than 10⁻¹⁰⁰ of r^w
                let term = (exponent + place.bell).exp() * self.unit;
                kept.add(term);
                error += modulus(term) * (off + place.bell_error + far(exponent, place, 0.0));
                continue;
            }
            let (grown, first) = exp_less_two(exponent);
            let term = grown - w * less;
            let growth = modulus(grown + exponent);
            let moved = log * modulus(term) + modulus(less) + size * log * rise;
            let rounding = first + size * second;
            let share = modulus(term) * weight.error
                + off * (growth + rise + off * (1.0 + growth))
                + rounding
                + UNIT
                    * (3.0 * size * log * growth
                        + MOVED * size * moved
                        + 4.0 * (modulus(grown) + size * modulus(less)));
            kept.add(term * weight.value);
            error += weight.size * share;
        }
        let (sum, rounding) = kept.total();
        let error = 1.01 * error + rounding + size * libm::exp(self.log_missing.0);
        let (log, rounding) = if modulus(sum) < 0.5 {
            ln_1p(sum)
        } else {
            let log = (1.0 + sum).ln();
            (log, UNIT * (2.0 + 2.0 * (1.0 + modulus(sum)) / modulus(1.0 + sum) + 8.0 * modulus(log)))
        };
        LogMoment::new(log, error / modulus(1.0 + sum), rounding)
    }

    /// Where e to large powers occurs: from r^w alone, all divided by e^`peak`.
    fn large(&self, w: Complex64, peak: f64) -> LogMoment {
        let (mut kept, mut error, mut rest, size) = (Kept::default(), 0.0, 1.0, modulus(w));
        for (place, weight) in &self.places {
            let exponent = w * place.log;
            let off = size * place.log_error;
            let off = if off < 0.02 { off } else { f64::INFINITY };
            let term = (exponent + place.bell - peak).exp() * self.unit;
            kept.add(term);
            error += modulus(term) * (off + place.bell_error + far(exponent, place, peak));
            // the rule's 1 + w(r − 1), which are not 1 and 0 exactly
            rest += weight.size * (1.0 + size * modulus(weight.rise));
        }
        let (sum, rounding) = kept.total();
        let missing = (size * libm::exp(self.log_missing.0 - LARGE) + 1.01 * rest * libm::exp(-LARGE))
            * libm::exp(LARGE - peak);
        let log = sum.ln() + peak;
        LogMoment::new(
            log,
            (1.01 * error + rounding + missing) / modulus(sum),
            8.0 * UNIT * (2.0 + modulus(log)),
        )
    }

    /// The mean of Λ with weights e^(wΛ)φ; about.
    pub(super) fn mean(&self, w: Complex64) -> Complex64 {
        let peak = self.places.iter().map(|(place, _)| place.height(w)).fold(f64::NEG_INFINITY, f64::max);
        let (mut whole, mut first) = (Complex64::ZERO, Complex64::ZERO);
        for (place, _) in &self.places {
            let term = (w * place.log + place.bell - peak).exp();
            whole += term;
            first += term * place.log;
        }
        first / whole
    }
}

/// The nearest number of 24 digits.
fn short(x: f64) -> f64 {
    f64::from(x as f32)
}

/// By which share e^(exponent + bell − peak) is off, where 1 and w(r − 1) do not count.
fn far(exponent: Complex64, place: &Place, peak: f64) -> f64 {
    UNIT * (24.0 + (4.0 + MOVED) * (modulus(exponent) + modulus(place.bell) + peak)) + 1e-100
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bent::choice::level;

    fn noises() -> [Noise; 5] {
        [(1.0, 0.01), (0.0625, 0.3), (4.0, 0.1), (1.0, 1e-4), (0.04, 1e-6)]
            .map(|(mu_squared, rate)| Noise::new(mu_squared, rate, 1.0))
    }

    fn at(noise: Noise, line: &Line, w: Complex64) -> Option<LogMoment> {
        Some(Moment::new(noise, line, &[w])?.at(w))
    }

    /// M is one function, whichever line it is integrated along.
    #[test]
    fn the_moment_does_not_depend_on_the_line() {
        let lines = [
            Line::new(0.0, 0.0),
            Line::new(0.3, 0.0),
            Line::new(0.6, 0.0),
            Line::new(1.0, 0.2),
            Line::new(1.8, 0.3),
        ];
        for noise in noises() {
            for w in [Complex64::new(5.0, 0.0), Complex64::new(3.0, 12.0), Complex64::new(-2.0, 7.0)] {
                let found: Vec<_> = lines.iter().filter_map(|line| at(noise, line, w)).collect();
                let known: Vec<_> = found.iter().filter(|moment| moment.error < 1e-6).collect();
                assert!(known.len() >= 2, "{noise:?} {w}");
                for moment in &known {
                    let off = (moment.value - known[0].value).norm();
                    assert!(off <= moment.error + known[0].error, "{noise:?} {w}: {moment:?} {:?}", known[0]);
                }
            }
        }
    }

    /// r has the mean 1, (r − 1)² the mean s = q²(e^(μ²) − 1) and (r − 1)³ the mean q³(e^(3μ²) − 3e^(μ²) + 2): so K(1) = 1,
    /// K(2) = 1 + s and K(3) = 1 + 3s + that, which is known to so many digits that the last ones count.
    #[test]
    fn the_first_moments_are_known() {
        for noise in noises() {
            let (square, rise) = (noise.square(), libm::expm1(noise.mu * noise.mu));
            // e^(3x) − 3e^x + 2 = (e^x − 1)²·(e^x + 2)
            let cube = noise.rate.powi(3) * rise * rise * (rise + 3.0);
            for line in [Line::new(0.0, 0.0), Line::new(0.3, 0.05), Line::new(0.9, 0.1)] {
                let exact = [(1.0, 0.0), (2.0, square), (3.0, 3.0 * square + cube)];
                for (w, excess) in exact {
                    let w = Complex64::from(w);
                    let Some(moment) = at(noise, &line, w) else { continue };
                    let exact = libm::log1p(excess);
                    let off = (moment.value - exact).norm();
                    assert!(
                        off <= moment.error + 8.0 * UNIT * exact,
                        "{noise:?} {line:?} {w}: {off} {moment:?}"
                    );
                    if moment.less.1.is_finite() {
                        let less =
                            if w.re == 3.0 { cube } else { 0.0 } + ln_1p_less(Complex64::from(excess)).0.re;
                        let off = (moment.less.0 - less).norm();
                        let rounding = 16.0 * UNIT * (less.abs() + excess * excess);
                        assert!(
                            off <= moment.less.1 + rounding,
                            "{noise:?} {line:?} {w}: {off} {moment:?} {less}"
                        );
                    }
                    if line.angle == 0.0 {
                        assert!(moment.error < 1e-11, "{noise:?} {w}: {moment:?}");
                    }
                }
            }
        }
    }

    /// Whether the second order is integrated or known, K is the same.
    #[test]
    fn both_orders_agree() {
        for noise in noises() {
            for w in [Complex64::new(2.5, 0.0), Complex64::new(-3.0, 4.0), Complex64::new(2.0, 30.0)] {
                let moment = Moment::new(noise, &Line::new(0.0, 0.0), &[w]).unwrap();
                let (second, third) = (moment.second(w), moment.third(w));
                let off = (second.value - third.value).norm();
                assert!(off <= second.error + third.error, "{noise:?} {w}: {off} {second:?} {third:?}");
                assert!(second.error < 1e-12 * second.value.norm() + 1e-20, "{noise:?} {w}: {second:?}");
            }
        }
    }

    /// With few places the rule misses something that is seen, and covered.
    #[test]
    fn what_a_coarse_rule_misses_is_covered() {
        let mut seen = 0;
        for noise in noises() {
            for line in [Line::new(0.0, 0.0), Line::new(0.3, 0.05), Line::new(0.9, 0.1)] {
                for w in [Complex64::new(3.0, 1.0), Complex64::new(4.0, 9.0), Complex64::new(30.0, 50.0)] {
                    let Some(fine) = at(noise, &line, w) else { continue };
                    for depth in [3.0, 6.0, 9.0, 14.0, 20.0] {
                        let Some(rule) = Moment::to_depth(noise, &line, &[w], depth) else { continue };
                        let found = rule.at(w);
                        let rounding = fine.error + fine.less.1.min(fine.error);
                        let off = (found.value - fine.value).norm();
                        assert!(
                            off <= found.error + fine.error,
                            "{noise:?} {line:?} {w} {depth}: {off} {found:?} {fine:?}"
                        );
                        if found.less.1.is_finite() {
                            let off = (found.less.0 - fine.less.0).norm();
                            assert!(
                                off <= found.less.1 + fine.less.1,
                                "{noise:?} {line:?} {w} {depth}: {off} {found:?}"
                            );
                        }
                        seen += usize::from(off > 100.0 * rounding);
                    }
                }
            }
        }
        assert!(seen > 20, "{seen}");
    }

    /// For rare samples what is left of ln K without its second order is known far better than ln K itself.
    #[test]
    fn the_third_order_keeps_its_digits() {
        let noise = Noise::new(1.0, 1e-5, 1.0);
        let moment = at(noise, &Line::new(0.0, 0.0), Complex64::new(3.0, 40.0)).unwrap();
        assert!(moment.less.1 < 0.02 * moment.error, "{moment:?}");
        assert!(moment.less.1 < 1e-11 * moment.less.0.norm(), "{moment:?}");
    }

    #[test]
    fn bounds_are_above_the_moment_and_convex() {
        for noise in noises() {
            for line in
                [Line::new(0.0, 0.0), Line::new(1.2, 0.2), Line { floor: Some(0.0), ..Line::new(1.2, 0.2) }]
            {
                let ws = [2.0, 6.0, 10.0].map(|x| Complex64::new(x / 2.0, x));
                let level = level(&noise, &line, &ws);
                let bounds = line.log_bounds(&noise, &ws, level, 1.0, Part::All).unwrap();
                for (w, bound) in ws.iter().zip(&bounds) {
                    let moment = at(noise, &Line::new(0.3, 0.0), *w).unwrap();
                    assert!(moment.value.re <= bound.whole, "{noise:?} {line:?} {w}: {moment:?} {bound:?}");
                    let part = exp_m1(moment.value).0.norm() / w.norm();
                    assert!(part.ln() <= bound.part, "{noise:?} {line:?} {w}: {part} {bound:?}");
                    assert!(noise.square().ln() <= bound.square, "{noise:?} {line:?}: {bound:?}");
                }
                // upper sums are a little above
                assert!(bounds[1].whole <= (bounds[0].whole + bounds[2].whole) / 2.0 + 0.1, "{bounds:?}");
            }
        }
    }

    /// Upper sums are above the integral, and not by much.
    #[test]
    fn bounds_are_those_of_the_integral() {
        for noise in noises() {
            let line = Line::new(0.4, 0.1);
            let w = Complex64::new(2.5, 6.0);
            let bound = line.log_bounds(&noise, &[w], level(&noise, &line, &[w]), 1.0, Part::All).unwrap()[0];
            let (step, mut sums) = (1e-3, [0.0; 3]);
            for index in -12_000..40_000 {
                let place = line.at(&noise, f64::from(index) * step);
                let (size, wave, plain) =
                    (place.log.norm(), libm::exp(place.height(w)), libm::exp(place.bell.re));
                let rise = exp_m1(place.log).0.norm();
                sums[0] += wave;
                sums[1] += size * (wave + plain * (2.0 + libm::exp(place.log.re)));
                sums[2] += plain * rise * rise;
            }
            let exact = sums.map(|sum| f64::ln(sum * step) + line.log_constant());
            for (bound, exact) in [bound.whole, bound.part, bound.square].into_iter().zip(exact) {
                assert!(bound >= exact && bound < exact + 1.5, "{noise:?}: {bound} {exact}");
            }
        }
    }

    /// What the ray needs.
    #[test]
    fn a_line_kept_above_the_axis_has_a_bound_that_falls() {
        for noise in noises() {
            let line = Line { floor: Some(0.0), ..Line::new(1.5, 0.3) };
            for index in -400..400 {
                assert!(line.at(&noise, f64::from(index) / 20.0).log.im >= 0.0, "{noise:?} {index}");
            }
            let at = |b: f64| {
                let w = Complex64::new(4.0, b);
                line.log_bounds(&noise, &[w], level(&noise, &line, &[w]), 1.0, Part::All).unwrap()[0].whole
            };
            assert!(at(10.0) >= at(20.0) - 1e-3 && at(20.0) >= at(50.0) - 1e-3);
        }
    }
}
