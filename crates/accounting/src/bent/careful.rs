//! [`Careful`]: the moments of one panel to 28 digits.
//!
//! **Why.** On rare samples the usual losses and the rare, large ones want different paths, and along either one δ is a small part of
//! what cancels. The places, lines and proven errors of the rule are those of [`Moment`], which miss less than the roundings of doubles;
//! here all sums are formed again in [wide](super::double_double) numbers.
//!
//! **Definition.** K − 1 = Σ (e^(wΛ) − 1 − wρ)·φ(x)·(1 + ik)η over places x = s + i(τ + ks), with ρ = q(e^(μx − μ²/2) − 1) and
//! Λ = ln(1 + ρ), which is found from its double by one step of Newton's.
//!
//! **Rounding.** With D = [`DUST`]: Λ and ρ are off by D·(2 + |μx − μ²/2|)(1 + |Λ|) and as much of 1 + |ρ|, which moves a term by |w|
//! of that, and e^(wΛ) by D·(1 + |wΛ|) of itself; φ is off by D·(1 + |x|²) of itself. Each is counted twice.

use super::double_double::{DUST, Double, Wide};
use super::line::{Line, Noise};
use super::moment::Moment;
use num_complex::Complex64;

/// By how much less than the integral what is cut off shall be, as a power of e.
const DEPTH: f64 = 66.0;
/// The largest power of e.
const LARGE: f64 = 500.0;

/// See the module text.
pub(super) struct Careful {
    places: Vec<Place>,
    /// ln of what the rule misses and what is cut off, divided by |w|.
    log_missing: f64,
}

struct Place {
    log: Wide,
    rise: Wide,
    weight: Wide,
    /// |Λ|, |ρ|, and |φ| times what belongs to the rule.
    sizes: (f64, f64, f64),
    /// 2 + |μx − μ²/2|, and by which share φ is off.
    exponent: f64,
    off: f64,
}

impl Careful {
    /// For w in the polygon with the given corners; `None` where numbers get too large.
    pub(super) fn new(noise: &Noise, line: &Line, corners: &[Complex64]) -> Option<Self> {
        let moment = Moment::to_depth(*noise, line, corners, DEPTH)?;
        let mu = Double::from(noise.mu_squared).sqrt();
        let rate = Wide::from(noise.rate);
        let kept = Wide::real(Double::from(1.0) - Double::from(noise.rate));
        let half = Wide::real(Double::from(noise.mu_squared) * Double::from(0.5));
        let tangent = Double::from(line.slope);
        // the line as it is: two doubles say where it lies
        let start = Double::from(line.angle / noise.mu - line.slope * noise.centre);
        let root = (two_pi().sqrt()).recip();
        let unit = Wide { re: Double::from(1.0), im: tangent } * Wide::real(root * Double::from(moment.step));
        let place = |s: f64, about: Complex64| {
            let x = Wide { re: Double::from(s), im: start + tangent * Double::from(s) };
            let exponent = Wide::real(mu) * x - half;
            let near = exponent.to_complex();
            if near.re > LARGE {
                return None;
            }
            let rise = rate * exponent.exp_m1();
            // (1 + ρ)·e^(−Λ₀) − 1, without 1 + ρ where that is large
            let from = -Wide::from(about);
            let rest = rate * (exponent + from).exp() + kept * from.exp() - Wide::from(1.0);
            let log = Wide::from(about) + rest.ln_1p_of_little();
            let weight = (-(x * x) * Wide::from(0.5)).exp() * unit;
            let sizes = (log.norm(), rise.norm(), weight.norm());
            let small = rest.norm() < 1e-10;
            let off = 2.0 * DUST * (2.0 + x.norm() * x.norm());
            small.then_some(Place { log, rise, weight, sizes, exponent: 2.0 + near.norm(), off })
        };
        let places = moment.places.iter().map(|(known, _)| place(known.s, known.log));
        Some(Self { places: places.collect::<Option<_>>()?, log_missing: moment.log_missing.0 })
    }

    /// ln K(w), and by how much it may be off; `None` where numbers get too large.
    pub(super) fn log(&self, w: Wide) -> Option<(Wide, f64)> {
        let (mut sum, mut error, size) = (Wide::ZERO, 0.0, w.norm());
        for place in &self.places {
            let exponent = w * place.log;
            let near = exponent.to_complex();
            if near.re > LARGE {
                return None;
            }
            let (log, rise, weight) = place.sizes;
            let power = libm::exp(near.re);
            let term = exponent.exp_m1() - w * place.rise;
            sum = sum + term * place.weight;
            let moved = size * place.exponent * (1.0 + log) * (power + 1.0 + rise);
            let rounding = DUST * (moved + (1.0 + near.norm()) * (power + 1.0) + size * rise);
            error += weight * (2.0 * rounding + place.off * (power + 1.0 + size * rise));
        }
        let (whole, missing) = (Wide::from(1.0) + sum, size * libm::exp(self.log_missing));
        let modulus = whole.norm();
        let log = whole.ln_near(whole.to_complex().ln());
        let share = (1.01 * error + missing) / modulus + 8.0 * DUST * (2.0 + log.norm());
        (share < 0.01).then_some((log, 1.1 * share))
    }
}

/// 2π.
fn two_pi() -> Double {
    Double::from(2.0 * std::f64::consts::PI) + Double::from(2.449_293_598_294_706_4e-16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K(2) = 1 + q²(e^(μ²) − 1), K(3) = 1 + 3q²(e^(μ²) − 1) + q³(e^(μ²) − 1)²(e^(μ²) + 2), in wide numbers too.
    #[test]
    fn moments_of_whole_order_are_known_to_26_digits() {
        for (mu_squared, rate) in [(1.0, 0.25), (0.04, 1e-3), (2.25, 1e-5), (0.25, 0.5)] {
            let noise = Noise::new(mu_squared, rate, 1.0);
            let grown = Wide::from(mu_squared).exp_m1();
            let q = Wide::from(rate);
            let square = q * q * grown;
            let third = Wide::from(3.0) * square + q * q * q * grown * grown * (grown + Wide::from(3.0));
            for line in [Line::new(0.0, 0.0), Line::new(0.2, 0.05)] {
                for (w, excess) in [(1.0, Wide::ZERO), (2.0, square), (3.0, third)] {
                    let corner = Complex64::from(w);
                    let careful = Careful::new(&noise, &line, &[corner]).unwrap();
                    let (log, error) = careful.log(Wide::from(corner)).unwrap();
                    let exact = Wide::from(1.0) + excess;
                    let exact = exact.ln_near(exact.to_complex().ln());
                    let off = (log - exact).norm();
                    assert!(
                        off <= error && error < 1e-24,
                        "{mu_squared} {rate} {line:?} {w}: {off:e} {error:e}"
                    );
                }
            }
        }
    }
}
