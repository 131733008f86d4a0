//! e^x − 1, e^x − 1 − x, e^x − 1 − x − x²/2, ln(1 + x) and ln(1 + x) − x for complex x, with bounds on their rounding.
//!
//! **Why.** Moments of rare samples are 1 and a small part, and only that part is of interest.

use num_complex::Complex64;

use crate::nodes::UNIT;

/// |x|, to two units.
pub(super) fn modulus(x: Complex64) -> f64 {
    let square = x.norm_sqr();
    if (1e-290..1e290).contains(&square) { square.sqrt() } else { x.norm() }
}

/// e^x − 1, and a bound on its rounding for this very x.
///
/// With x = a + ib: (e^a − 1)·cos b − 2sin²(b/2) + i·e^a·sin b. In units: e^a − 1 is off by 4 of itself, 2sin²(b/2) by 9,
/// cos b by that and 1, and sin b by 9 of itself; products and sums by 1.
pub(super) fn exp_m1(x: Complex64) -> (Complex64, f64) {
    let rise = libm::expm1(x.re);
    let (sin, cos) = libm::sincos(x.im / 2.0);
    let versine = 2.0 * sin * sin;
    let turn = 2.0 * sin * cos;
    let im = (1.0 + rise) * turn;
    let units = rise.abs() * (7.0 + 9.0 * versine + 4.0 * turn.abs()) + 11.0 * versine + 12.0 * im.abs();
    let rounding = UNIT * units * 1.01;
    (Complex64::new(rise * (1.0 - versine) - versine, im), rounding)
}

/// 1/k! for k = 2 … 17.
const INVERSE_FACTORIALS: [f64; 16] = [
    0.5,
    1.666_666_666_666_666_6e-1,
    4.166_666_666_666_666_4e-2,
    8.333_333_333_333_333e-3,
    1.388_888_888_888_889e-3,
    1.984_126_984_126_984e-4,
    2.480_158_730_158_73e-5,
    2.755_731_922_398_589_3e-6,
    2.755_731_922_398_589e-7,
    2.505_210_838_544_172e-8,
    2.087_675_698_786_81e-9,
    1.605_904_383_682_161_3e-10,
    1.147_074_559_772_972_5e-11,
    7.647_163_731_819_816e-13,
    4.779_477_332_387_385e-14,
    2.811_457_254_345_520_6e-15,
];

/// e^x − 1 − x, and a bound on its rounding for this very x.
pub(super) fn exp_less_two(x: Complex64) -> (Complex64, f64) {
    let size = modulus(x);
    if size > 0.5 {
        let (rise, rounding) = exp_m1(x);
        return (rise - x, rounding + 2.0 * UNIT * (modulus(rise) + size));
    }
    (series(x, size, 0) * x * x, 8.0 * UNIT * size * size)
}

/// e^x − 1 − x − x²/2, and a bound on its rounding for this very x.
pub(super) fn exp_less_three(x: Complex64) -> (Complex64, f64) {
    let size = modulus(x);
    if size > 0.5 {
        let (less, rounding) = exp_less_two(x);
        let square = x * x * 0.5;
        return (less - square, rounding + 4.0 * UNIT * (modulus(less) + size * size));
    }
    (series(x, size, 1) * x * x * x, 4.0 * UNIT * size * size * size)
}

/// Σ x^k/(k + 2 + from)! for |x| ≤ ½, by Horner's rule.
///
/// Each step is off by 5 units of what follows: by 5·(½ + ⅙·½·2 + …) < 5 in all when the first coefficient is ½, and by a third
/// of that when it is ⅙. What is left out is below 10⁻¹⁶ of an eighth.
fn series(x: Complex64, size: f64, from: usize) -> Complex64 {
    let terms = if size < 0.01 { 8 } else { 16 };
    let (last, before) = (INVERSE_FACTORIALS[terms - 1], &INVERSE_FACTORIALS[from..terms - 1]);
    before.iter().rev().fold(Complex64::from(last), |sum, term| sum * x + term)
}

/// ln(1 + x) for |x| ≤ ½, and a bound on its rounding for this very x.
///
/// In units: |1 + x|² − 1 is off by at most 8|Re x| + 2|Im x|², and the angle by |Im x|/|1 + x|; the functions by 4 of themselves.
pub(super) fn ln_1p(x: Complex64) -> (Complex64, f64) {
    let grown = x.re * (2.0 + x.re) + x.im * x.im;
    let log = Complex64::new(0.5 * libm::log1p(grown), libm::atan2(x.im, 1.0 + x.re));
    (log, UNIT * (5.0 * modulus(x) / (1.0 + grown) + 4.0 * modulus(log)) * 1.01)
}

/// ln(1 + x) − x for |x| ≤ ½, and a bound on its rounding for this very x.
///
/// The series −x²/2 + x³/3 − … where |x| ≤ ¹⁄₁₆: each step is off by 6 units of what follows, and what is left out of 13 terms is
/// below |x|¹⁵ < u|x|²/4.
pub(super) fn ln_1p_less(x: Complex64) -> (Complex64, f64) {
    let size = modulus(x);
    if size > 0.0625 {
        let (log, rounding) = ln_1p(x);
        return (log - x, rounding + 2.0 * UNIT * (modulus(log) + size));
    }
    let series = (2..15).rev().fold(Complex64::ZERO, |sum, k| 1.0 / f64::from(k) - sum * x);
    (-series * x * x, 8.0 * UNIT * size * size)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each undoes the other.
    #[test]
    fn small_numbers_keep_their_digits() {
        for size in [1e-300, 1e-30, 1e-9, 1e-3, 0.3] {
            for turn in 0..12 {
                let x = Complex64::from_polar(size, f64::from(turn) / 2.0);
                let ((log, first), (back, second)) = (ln_1p(x), exp_m1(ln_1p(x).0));
                let off = (back - x).norm();
                assert!(off <= 1.5 * first + second && off < 1e-13 * size, "{x}: {log} {back}");
            }
        }
    }

    #[test]
    fn large_numbers_are_those_of_the_library() {
        for x in [(3.0, 2.0), (-40.0, 1.0), (1.0, 300.0), (500.0, 3.1)] {
            let x = Complex64::new(x.0, x.1);
            let ((found, rounding), known) = (exp_m1(x), x.exp() - 1.0);
            assert!((found - known).norm() <= rounding + 16.0 * UNIT * known.norm(), "{x}: {found} {known}");
        }
    }

    /// e^(2x) − 1 − 2x = (e^x − 1)² + 2(e^x − 1 − x).
    #[test]
    fn what_is_left_doubles_as_it_should() {
        for size in [1e-150, 1e-9, 9.9e-3, 1.01e-2, 0.2, 0.249, 0.26, 0.5, 3.0, 40.0] {
            for turn in 0..12 {
                let x = Complex64::from_polar(size, f64::from(turn) / 2.0);
                let ((twice, first), (once, second), (rise, third)) =
                    (exp_less_two(2.0 * x), exp_less_two(x), exp_m1(x));
                let off = (rise * rise + 2.0 * once - twice).norm();
                let more = 8.0 * UNIT * (rise.norm_sqr() + once.norm());
                assert!(
                    off <= first + 2.0 * second + 2.0 * rise.norm() * third + more,
                    "{x}: {off} {first} {second}"
                );
            }
        }
    }

    /// e₃(2x) = 2e₃(x) + (e^x − 1)² − x², where e₃ is known from e₂ for large x and from its series for small ones.
    #[test]
    fn what_is_left_of_the_third_order_is_a_sixth_of_the_cube() {
        for size in [1e-90, 1e-9, 9.9e-3, 1.01e-2, 0.2, 0.499, 0.51, 3.0] {
            for turn in 0..12 {
                let x = Complex64::from_polar(size, f64::from(turn) / 2.0);
                let (found, rounding) = exp_less_three(x);
                let (less, second) = exp_less_two(x);
                let off = (found - (less - x * x * 0.5)).norm();
                assert!(off <= rounding + second + 4.0 * UNIT * size * size, "{x}: {off}");
                if size < 0.02 {
                    let next = x * x * x / 6.0
                        * (1.0 + x / 4.0 * (1.0 + x / 5.0 * (1.0 + x / 6.0 * (1.0 + x / 7.0))));
                    assert!(
                        (found - next).norm() <= 2.0 * rounding + size.powi(8) / 20_000.0,
                        "{x}: {found} {next}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_logarithm_without_its_first_order_is_half_the_square() {
        for size in [1e-150, 1e-9, 1e-3, 0.06, 0.0626, 0.3] {
            for turn in 0..12 {
                let x = Complex64::from_polar(size, f64::from(turn) / 2.0);
                let ((found, rounding), (log, second)) = (ln_1p_less(x), ln_1p(x));
                assert!((found - (log - x)).norm() <= rounding + second + 4.0 * UNIT * size, "{x}: {found}");
                if size < 2e-3 {
                    let next = -x * x / 2.0 * (1.0 - x * (2.0 / 3.0) * (1.0 - x * 0.75 * (1.0 - x * 0.8)));
                    assert!(
                        (found - next).norm() <= rounding + 1e-14 * size * size + size.powi(6),
                        "{x}: {found} {next}"
                    );
                }
            }
        }
    }
}
