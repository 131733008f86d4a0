//! [`Double`] and [`Wide`]: real and complex numbers of 31 digits, as sums of two doubles.
//!
//! **Why.** Where a path adds up to a millionth of its terms or less, doubles leave too few digits of δ.
//!
//! **Exactness.** Sums are off by 2⁻¹⁰⁴ of themselves, products by 2⁻¹⁰³, and e^z by [`DUST`]·(1 + |z|) of itself: its series is cut
//! below 2⁻¹¹⁰, each of its dozen steps costs 2⁻¹⁰², and doubling the argument eight times keeps the share of e^z − 1 and adds as much
//! again. That leaves a factor of ten.

use std::ops::{Add, Mul, Neg, Sub};
use std::sync::OnceLock;

use num_complex::Complex64;

use crate::nodes::gauss_legendre;

/// 2⁻⁹⁶: what a function of wide numbers is off by at most, as a share.
pub(super) const DUST: f64 = 1.0 / (1u128 << 96) as f64;

/// The sum of two doubles, the second at most half a unit of the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Double {
    high: f64,
    low: f64,
}

/// A complex number of such parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wide {
    pub(super) re: Double,
    pub(super) im: Double,
}

const LN_2: Double = Double { high: std::f64::consts::LN_2, low: 2.319_046_813_846_299_6e-17 };
const RIGHT_ANGLE: Double = Double { high: std::f64::consts::FRAC_PI_2, low: 6.123_233_995_736_766e-17 };
/// How often an argument is halved before the series, and how many terms that has: 0.0034¹³/13! < 2⁻¹⁴⁰.
const HALVED: i32 = 8;
const TERMS: usize = 13;

/// The rounded sum and what was rounded off.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let second = sum - a;
    (sum, (a - (sum - second)) + (b - second))
}

/// The same where |a| ≥ |b|.
fn quick_sum(a: f64, b: f64) -> Double {
    let high = a + b;
    Double { high, low: b - (high - a) }
}

/// The rounded product and what was rounded off.
fn two_product(a: f64, b: f64) -> (f64, f64) {
    const SPLIT: f64 = 134_217_729.0;
    let halves = |x: f64| {
        let shifted = SPLIT * x;
        let high = shifted - (shifted - x);
        (high, x - high)
    };
    let (product, (a, more_a), (b, more_b)) = (a * b, halves(a), halves(b));
    (product, ((a * b - product) + a * more_b + more_a * b) + more_a * more_b)
}

impl Double {
    pub(super) const ZERO: Self = Self { high: 0.0, low: 0.0 };

    pub(super) fn to_f64(self) -> f64 {
        self.high + self.low
    }

    /// 1/x.
    pub(super) fn recip(self) -> Self {
        let first = Self::from(1.0 / self.high);
        let second = first + first * (Self::from(1.0) - self * first);
        second + second * (Self::from(1.0) - self * second)
    }

    /// √x for x > 0.
    pub(super) fn sqrt(self) -> Self {
        let first = Self::from(self.high.sqrt());
        first + (self - first * first) * (first + first).recip()
    }

    /// Times a power of two.
    fn shifted(self, power: i32) -> Self {
        let factor = libm::ldexp(1.0, power);
        Self { high: self.high * factor, low: self.low * factor }
    }
}

impl From<f64> for Double {
    fn from(high: f64) -> Self {
        Self { high, low: 0.0 }
    }
}

impl Add for Double {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let ((sum, rest), (low, dust)) = (two_sum(self.high, other.high), two_sum(self.low, other.low));
        let first = quick_sum(sum, rest + low);
        quick_sum(first.high, first.low + dust)
    }
}

impl Neg for Double {
    type Output = Self;

    fn neg(self) -> Self {
        Self { high: -self.high, low: -self.low }
    }
}

impl Sub for Double {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Double {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let (product, rest) = two_product(self.high, other.high);
        quick_sum(product, rest + (self.high * other.low + self.low * other.high))
    }
}

impl Wide {
    pub(super) const ZERO: Self = Self { re: Double::ZERO, im: Double::ZERO };

    pub(super) fn real(re: Double) -> Self {
        Self { re, im: Double::ZERO }
    }

    pub(super) fn to_complex(self) -> Complex64 {
        Complex64::new(self.re.to_f64(), self.im.to_f64())
    }

    pub(super) fn norm(self) -> f64 {
        self.to_complex().norm()
    }

    pub(super) fn recip(self) -> Self {
        let inverse = (self.re * self.re + self.im * self.im).recip();
        Self { re: self.re * inverse, im: -(self.im * inverse) }
    }

    fn shifted(self, power: i32) -> Self {
        Self { re: self.re.shifted(power), im: self.im.shifted(power) }
    }

    /// e^z − 1, for Re z up to 600.
    pub(super) fn exp_m1(self) -> Self {
        let (rise, doublings, turns) = self.reduced_exp_m1();
        if doublings == 0.0 && turns == 0.0 {
            return rise;
        }
        rise.moved_back(doublings, turns) - Self::from(1.0)
    }

    /// e^z, for Re z up to 600.
    pub(super) fn exp(self) -> Self {
        let (rise, doublings, turns) = self.reduced_exp_m1();
        rise.moved_back(doublings, turns)
    }

    /// e^x − 1 for x = z − a·ln 2 − b·iπ/2, a and b.
    fn reduced_exp_m1(self) -> (Self, f64, f64) {
        let doublings = (self.re.high / std::f64::consts::LN_2).round();
        let turns = (self.im.high / std::f64::consts::FRAC_PI_2).round();
        let rest = Self {
            re: self.re - LN_2 * Double::from(doublings),
            im: self.im - RIGHT_ANGLE * Double::from(turns),
        }
        .shifted(-HALVED);
        let one = Self::from(1.0);
        // x·(1 + x/2·(1 + x/3·(…)))
        let step = |sum: Self, inverse: &Double| one + rest * sum * Self::real(*inverse);
        let mut rise = rest * inverses().iter().rev().fold(one, step);
        for _ in 0..HALVED {
            rise = rise * (rise + Self::from(2.0));
        }
        (rise, doublings, turns)
    }

    /// (1 + x)·2^a·i^b.
    fn moved_back(self, doublings: f64, turns: f64) -> Self {
        let Self { re, im } = self + Self::from(1.0);
        let turned = match turns.rem_euclid(4.0) as u8 {
            0 => Self { re, im },
            1 => Self { re: -im, im: re },
            2 => Self { re: -re, im: -im },
            _ => Self { re: im, im: -re },
        };
        turned.shifted(doublings.max(-1000.0) as i32)
    }

    /// ln of this number, near a logarithm that is right to ten digits.
    pub(super) fn ln_near(self, about: Complex64) -> Self {
        let about = Self::from(about);
        (self * (-about).exp() - Self::from(1.0)).ln_1p_of_little() + about
    }

    /// ln(1 + x) for |x| < 10⁻¹⁰: x − x²/2 + x³/3.
    pub(super) fn ln_1p_of_little(self) -> Self {
        let third = Self::real(Double::from(3.0).recip());
        self - self * self * (Self::from(0.5) - self * third)
    }
}

/// 1/2, 1/3, …
fn inverses() -> &'static [Double; TERMS - 1] {
    static INVERSES: OnceLock<[Double; TERMS - 1]> = OnceLock::new();
    INVERSES.get_or_init(|| std::array::from_fn(|index| Double::from(index as f64 + 2.0).recip()))
}

impl From<f64> for Wide {
    fn from(re: f64) -> Self {
        Self::real(Double::from(re))
    }
}

impl From<Complex64> for Wide {
    fn from(z: Complex64) -> Self {
        Self { re: Double::from(z.re), im: Double::from(z.im) }
    }
}

impl Add for Wide {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { re: self.re + other.re, im: self.im + other.im }
    }
}

impl Neg for Wide {
    type Output = Self;

    fn neg(self) -> Self {
        Self { re: -self.re, im: -self.im }
    }
}

impl Sub for Wide {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Wide {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }
}

/// The Gauss–Legendre rule of 32 points.
pub(super) fn wide_rule() -> &'static [(Double, Double)] {
    static POINTS: OnceLock<Vec<(Double, Double)>> = OnceLock::new();
    POINTS.get_or_init(|| refined(&gauss_legendre::rule(super::RULE).nodes))
}

/// The places and weights of a Gauss–Legendre rule that is known in doubles.
fn refined(about: &[(f64, f64)]) -> Vec<(Double, Double)> {
    let size = about.len();
    let one = Double::from(1.0);
    // P and P′ by the recurrence (k + 1)P_(k+1) = (2k + 1)xP_k − kP_(k−1)
    let legendre = |x: Double| {
        let (mut before, mut here) = (one, x);
        for k in 1..size {
            let k = k as f64;
            let next = (Double::from(2.0 * k + 1.0) * x * here - Double::from(k) * before)
                * Double::from(k + 1.0).recip();
            (before, here) = (here, next);
        }
        let slope = Double::from(size as f64) * (x * here - before) * (x * x - one).recip();
        (here, slope)
    };
    let refine = |(x, _): &(f64, f64)| {
        let mut x = Double::from(*x);
        for _ in 0..2 {
            let (value, slope) = legendre(x);
            x = x - value * slope.recip();
        }
        let slope = legendre(x).1;
        (x, Double::from(2.0) * ((one - x * x) * slope * slope).recip())
    };
    about.iter().map(refine).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide(re: f64, im: f64) -> Wide {
        Wide::from(Complex64::new(re, im))
    }

    /// e^1 and ln 2, π/2 to 34 digits: what is left of the first 32 digits is another double.
    #[test]
    fn constants_have_all_their_digits() {
        let e = wide(1.0, 0.0).exp().re;
        assert_eq!(e.high, std::f64::consts::E);
        // e − its double = 1.4456468917292502e-16
        assert!((e.low - 1.445_646_891_729_250_2e-16).abs() < 1e-31, "{e:?}");
        let root = Double::from(2.0).sqrt();
        // √2 − its double = −9.667293313452913e-17
        assert!((root.low + 9.667_293_313_452_913e-17).abs() < 1e-31, "{root:?}");
        let turn = Wide { re: Double::ZERO, im: RIGHT_ANGLE }.exp();
        assert!(turn.re.to_f64().abs() < 1e-31 && turn.im == Double::from(1.0), "{turn:?}");
        let two = Wide::real(LN_2).exp().re - Double::from(2.0);
        assert!(two.to_f64().abs() < 1e-30, "{two:?}");
    }

    /// e^(a + b) = e^a·e^b, near and far.
    #[test]
    fn exponentials_multiply() {
        for (a, b) in
            [((0.3, 0.2), (1e-9, -2e-9)), ((30.0, 100.0), (-29.5, 2000.5)), ((-200.0, 1.0), (150.25, -77.0))]
        {
            let (a, b) = (wide(a.0, a.1), wide(b.0, b.1));
            let (whole, product) = ((a + b).exp(), a.exp() * b.exp());
            let share = (whole - product).norm() / whole.norm();
            assert!(share < 4.0 * DUST * (1.0 + a.norm() + b.norm()), "{share:e}");
        }
        // small arguments keep their digits
        let x = wide(1e-20, 3e-21);
        let off = (x.exp_m1() - x - x * x * Wide::from(0.5)).norm();
        assert!(off < 1e-50, "{off:e}");
    }

    #[test]
    fn logarithms_undo_them() {
        for (re, im) in [(0.5, 0.25), (-3.0, 2.0), (12.0, 40.0)] {
            let x = wide(re, im);
            let about = Complex64::new(re * (1.0 + 1e-14), im * (1.0 - 1e-14));
            let off = (x.exp().ln_near(about) - x).norm();
            assert!(off < 8.0 * DUST * (1.0 + x.norm()), "{off:e}");
        }
    }

    /// x⁶² is integrated exactly: 2/63.
    #[test]
    fn the_rule_is_exact_for_powers() {
        let rule = wide_rule();
        assert_eq!(rule.len(), 32);
        for power in [0, 2, 10, 62] {
            let raise = |x: Double| (0..power).fold(Double::from(1.0), |y, _| y * x);
            let sum = rule.iter().fold(Double::ZERO, |sum, (x, weight)| sum + *weight * raise(*x));
            let exact = Double::from(2.0) * Double::from(f64::from(power) + 1.0).recip();
            assert!((sum - exact).to_f64().abs() < 64.0 * DUST, "{power}: {:e}", (sum - exact).to_f64());
        }
    }
}
