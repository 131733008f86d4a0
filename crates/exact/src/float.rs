//! Doubles taken apart, put together and rounded in a named direction.
//!
//! The functions ending in `_up` (`_down`) return a double that is never below
//! (never above) the real result, and at most one step away from it. They use
//! error-free transformations: the rounding error of a sum or a product is
//! itself a double, and its sign tells which way the result was rounded.

use dashu_base::BitTest;
use dashu_int::UBig;

/// Products smaller than this may have a rounding error too small to be seen.
const ERROR_VISIBLE: f64 = f64::MIN_POSITIVE * (1u64 << 60) as f64;

/// `value` = `mantissa` · 2^`exponent`, exactly; `None` for infinities and NaN.
///
/// ```
/// use demur_exact::float::decompose;
/// assert_eq!(decompose(0.75), Some((0.75_f64.to_bits() & ((1 << 52) - 1) | 1 << 52, -53)));
/// assert_eq!(decompose(f64::NAN), None);
/// ```
///
/// The sign is dropped: callers that accept negative numbers read it themselves.
#[inline]
pub fn decompose(value: f64) -> Option<(u64, i32)> {
    if !value.is_finite() {
        return None;
    }
    let bits = value.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let biased = ((bits >> 52) & 0x7ff) as i32;
    Some(match biased {
        0 => (fraction, -1074),
        _ => (fraction | (1 << 52), biased - 1075),
    })
}

/// The largest double that is at most `mantissa` · 2^`exponent`.
pub fn compose_down(mantissa: &UBig, exponent: i64) -> f64 {
    compose(mantissa, exponent, false)
}

/// The smallest double that is at least `mantissa` · 2^`exponent`.
pub fn compose_up(mantissa: &UBig, exponent: i64) -> f64 {
    compose(mantissa, exponent, true)
}

fn compose(mantissa: &UBig, exponent: i64, up: bool) -> f64 {
    if mantissa.is_zero() {
        return 0.0;
    }
    let length = mantissa.bit_len() as i64;
    // Drop what does not fit into 53 bits, or lies below the smallest step.
    let drop = (length - 53).max(-1074 - exponent).max(0);
    let kept: UBig = if drop >= length { UBig::ZERO } else { mantissa >> drop as usize };
    let exact = drop == 0 || (&kept << drop as usize) == *mantissa;
    let mut kept = u64::try_from(&kept).unwrap_or(u64::MAX);
    let mut exponent = exponent + drop;
    if up && !exact {
        kept += 1;
    }
    if kept == 0 {
        return 0.0;
    }
    // Normalise to 53 bits where the exponent allows it.
    let room = kept.leading_zeros() as i64 - 11;
    if room < 0 {
        kept >>= -room; // only after 2^53 − 1 was rounded up: the low bit is 0
        exponent -= room;
    } else {
        let shift = room.min(exponent + 1074).max(0);
        kept <<= shift;
        exponent -= shift;
    }
    if exponent > 971 {
        return if up { f64::INFINITY } else { f64::MAX };
    }
    if kept < 1 << 52 {
        return f64::from_bits(kept); // subnormal: the exponent is −1074
    }
    f64::from_bits((kept & ((1 << 52) - 1)) | (((exponent + 1075) as u64) << 52))
}

/// a + b, rounded upward.
///
/// ```
/// use demur_exact::float::add_up;
/// assert!(add_up(0.1, 0.2) >= 0.3);
/// assert_eq!(add_up(1.0, 2.0), 3.0);
/// assert!(add_up(1.0, 1e-300) > 1.0);
/// ```
pub fn add_up(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if add_error(a, b, sum) > 0.0 { sum.next_up() } else { sum }
}

/// a + b, rounded downward.
pub fn add_down(a: f64, b: f64) -> f64 {
    -add_up(-a, -b)
}

/// Knuth's two-sum: the exact difference between a + b and its rounding.
fn add_error(a: f64, b: f64, sum: f64) -> f64 {
    let part = sum - a;
    (a - (sum - part)) + (b - part)
}

/// a · b, rounded upward.
///
/// ```
/// use demur_exact::float::mul_up;
/// assert!(mul_up(0.1, 3.0) >= 0.3);
/// assert_eq!(mul_up(0.5, 3.0), 1.5);
/// assert!(mul_up(1e-200, 1e-200) > 0.0);
/// ```
pub fn mul_up(a: f64, b: f64) -> f64 {
    let product = a * b;
    if a == 0.0 || b == 0.0 || !product.is_finite() {
        return product;
    }
    if product.abs() < ERROR_VISIBLE || libm::fma(a, b, -product) > 0.0 { product.next_up() } else { product }
}

/// a · b, rounded downward.
pub fn mul_down(a: f64, b: f64) -> f64 {
    -mul_up(-a, b)
}

/// a / b, rounded upward, for b > 0.
///
/// ```
/// use demur_exact::float::{div_up, mul_up};
/// assert!(mul_up(div_up(1.0, 3.0), 3.0) >= 1.0);
/// assert_eq!(div_up(1.0, 4.0), 0.25);
/// ```
pub fn div_up(a: f64, b: f64) -> f64 {
    let quotient = a / b;
    if a == 0.0 || !quotient.is_finite() {
        return quotient;
    }
    // a − quotient · b is exact in a fused multiply-add when it is visible.
    if a.abs() < ERROR_VISIBLE || quotient.abs() < ERROR_VISIBLE || libm::fma(-quotient, b, a) > 0.0 {
        quotient.next_up()
    } else {
        quotient
    }
}

/// a / b, rounded downward, for b > 0.
pub fn div_down(a: f64, b: f64) -> f64 {
    -div_up(-a, b)
}

/// √a, rounded upward, for a ≥ 0.
///
/// ```
/// use demur_exact::float::{mul_up, sqrt_up};
/// assert_eq!(sqrt_up(9.0), 3.0);
/// assert!(mul_up(sqrt_up(2.0), sqrt_up(2.0)) >= 2.0);
/// ```
pub fn sqrt_up(a: f64) -> f64 {
    let root = a.sqrt();
    if a == 0.0 || !root.is_finite() {
        return root;
    }
    if a < ERROR_VISIBLE || libm::fma(-root, root, a) > 0.0 { root.next_up() } else { root }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rational;
    use proptest::prelude::*;

    fn rational(x: f64) -> Rational {
        Rational::try_from(x).unwrap()
    }

    fn any_double() -> impl Strategy<Value = f64> {
        (any::<bool>(), 0u64..1 << 52, -300i32..300).prop_map(|(negative, fraction, exponent)| {
            let x = f64::from_bits(fraction | ((1023 + exponent) as u64) << 52);
            if negative { -x } else { x }
        })
    }

    proptest! {
        #[test]
        fn directed_operations_bracket_the_exact_result(a in any_double(), b in any_double()) {
            let (x, y) = (rational(a), rational(b));
            let sum = &x + &y;
            prop_assert!(rational(add_down(a, b)) <= sum && sum <= rational(add_up(a, b)));
            prop_assert!(add_up(a, b) <= add_down(a, b).next_up().next_up());
            let product = &x * &y;
            prop_assert!(rational(mul_down(a, b)) <= product && product <= rational(mul_up(a, b)));
            prop_assert!(mul_up(a, b) <= mul_down(a, b).next_up().next_up());
            let b = b.abs();
            let quotient = &x / &rational(b);
            prop_assert!(rational(div_down(a, b)) <= quotient && quotient <= rational(div_up(a, b)));
            let root = rational(sqrt_up(b));
            prop_assert!(&root * &root >= rational(b));
            let below = rational(sqrt_up(b).next_down());
            prop_assert!(&below * &below <= rational(b));
        }

        #[test]
        fn composing_brackets_and_keeps_what_is_exact(mantissa in any::<u128>(), exponent in -1250i64..800) {
            let big = UBig::from(mantissa);
            let (down, up) = (compose_down(&big, exponent), compose_up(&big, exponent));
            let exact = Rational::dyadic(big.into(), exponent);
            prop_assert!(rational(down) <= exact && exact <= rational(up));
            prop_assert!(up == down || up == down.next_up());
        }

        #[test]
        fn doubles_survive_being_taken_apart(bits in 0u64..0x7ff0_0000_0000_0000) {
            let value = f64::from_bits(bits);
            let (mantissa, exponent) = decompose(value).unwrap();
            prop_assert_eq!(compose_down(&mantissa.into(), exponent.into()), value);
            prop_assert_eq!(compose_up(&mantissa.into(), exponent.into()), value);
        }
    }

    #[test]
    fn composing_too_much_saturates_in_the_named_direction() {
        assert_eq!(compose_up(&UBig::ONE, 1024), f64::INFINITY);
        assert_eq!(compose_down(&UBig::ONE, 1024), f64::MAX);
        assert_eq!(compose_up(&UBig::ONE, -5000), f64::from_bits(1));
        assert_eq!(compose_down(&UBig::ONE, -5000), 0.0);
    }
}
