//! ln(1 + x), without branches, so that the compiler computes several at once.
//!
//! With 1 + x = 2^k·m and √½ ≤ m < √2, ln m = 2f + f³·S(f²) for f = (m − 1)/(m + 1), by the series of artanh to where it
//! ends in double precision. For k = 0 f is x/(2 + x), which has all digits of x; else what 1 + x lost in
//! rounding is added as a share of it. Either way the result is right to two units in the last place.

use super::exponential::{LN_2_HIGH, LN_2_LOW, ROUND};
use super::fused::fused;

/// ln(1 + x) for x > −1.
#[inline(always)]
pub(super) fn log1p<const FUSED: bool>(x: f64) -> f64 {
    const ROOT_HALF: u64 = 0x3FE6_A09E_667F_3BCD;
    let y = 1.0 + x;
    let lost = if x < 1.0 { x - (y - 1.0) } else { 1.0 - (y - x) };
    let exponent = (y.to_bits().wrapping_sub(ROOT_HALF) as i64 >> 52) as u64;
    let k = f64::from_bits(ROUND.to_bits().wrapping_add(exponent)) - ROUND;
    let m = f64::from_bits(y.to_bits().wrapping_sub(exponent << 52));
    let (above, below, share) = if exponent == 0 { (x, 2.0 + x, 0.0) } else { (m - 1.0, m + 1.0, lost / y) };
    let f = above / below;
    let s = f * f;
    let mut series = 0.0;
    for coefficient in SERIES {
        series = fused::<FUSED>(series, s, coefficient);
    }
    let log = fused::<FUSED>(f * s, series, 2.0 * f);
    fused::<FUSED>(k, LN_2_HIGH, log + fused::<FUSED>(k, LN_2_LOW, share))
}

/// 2/3, 2/5, … from the last to the first.
const SERIES: [f64; 11] = {
    let mut table = [0.0; 11];
    let mut n = 0;
    while n < 11 {
        table[10 - n] = 2.0 / (2 * n + 3) as f64;
        n += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::UNIT;
    use proptest::prelude::*;

    fn check<const FUSED: bool>(x: f64) -> Result<(), TestCaseError> {
        let (found, expected) = (log1p::<FUSED>(x), libm::log1p(x));
        prop_assert!((found - expected).abs() <= 6.0 * UNIT * expected.abs(), "{x}: {found} for {expected}");
        Ok(())
    }

    proptest! {
        #[test]
        fn logarithms_are_those_of_the_library(x in -1.0f64..1.0, exponent in -60i32..1000) {
            let x = x * 2f64.powi(exponent);
            let x = if x > -1.0 { x } else { -x };
            check::<true>(x)?;
            check::<false>(x)?;
        }

        #[test]
        fn logarithms_are_right_where_the_reduction_turns(k in -20i32..20, off in -1e-3f64..1e-3) {
            let x = 2f64.powi(k) * std::f64::consts::SQRT_2 * (1.0 + off) - 1.0;
            check::<true>(x)?;
            check::<false>(x)?;
        }

        #[test]
        fn logarithms_near_the_pole_are_right(exponent in -52i32..-1, part in 1.0f64..2.0) {
            let x = part * 2f64.powi(exponent) - 1.0;
            check::<true>(x)?;
            check::<false>(x)?;
        }
    }
}
