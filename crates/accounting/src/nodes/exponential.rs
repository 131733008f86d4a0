//! e^t, e^t − 1 and e^t − 1 − t, without branches, so that the compiler computes several at once.
//!
//! With t = k·ln 2 + r and |r| ≤ ½·ln 2 (ln 2 in two parts, the first of 33 bits, so that k times it is exact),
//! e^r − 1 − r = r²·R(r) by its series to where it ends in double precision, and
//!
//! ```text
//! e^t = 2^k + 2^k·(r + r²R),    e^t − 1 = (2^k − 1 + 2^k·r) + 2^k·r²R,    e^t − 1 − t = r²R when k = 0
//! ```
//!
//! For k = 0 nothing cancels. Otherwise e^t − 1 is at least 0.29, and both it and e^t are right to two units in the
//! last place; subtracting t then loses at most a factor 7.

use super::fused::fused;

/// ln 2 in two parts.
pub(super) const LN_2_HIGH: f64 = f64::from_bits(0x3FE6_2E42_FEE0_0000);
pub(super) const LN_2_LOW: f64 = f64::from_bits(0x3DEA_39EF_3579_3C76);
/// Adding it rounds to a whole number, which then stands in the last bits.
pub(super) const ROUND: f64 = 6_755_399_441_055_744.0;
/// The largest |t| whose e^t is a double of full precision.
pub(super) const LARGEST: f64 = 700.0;

/// What e^t is made of.
#[derive(Clone, Copy)]
pub(super) struct Growth {
    /// e^t.
    pub(super) whole: f64,
    /// e^t − 1.
    pub(super) first: f64,
    /// e^t − 1 − t.
    pub(super) second: f64,
}

/// For |t| ≤ 700; beyond, e^t and e^t − 1 are those of ±700.
#[inline(always)]
pub(super) fn growth<const FUSED: bool>(t: f64) -> Growth {
    let clamped = t.clamp(-LARGEST, LARGEST);
    let shifted = fused::<FUSED>(clamped, std::f64::consts::LOG2_E, ROUND);
    let k = shifted - ROUND;
    let r = fused::<FUSED>(k, -LN_2_LOW, fused::<FUSED>(k, -LN_2_HIGH, clamped));
    let mut series = 0.0;
    for coefficient in SERIES {
        series = fused::<FUSED>(series, r, coefficient);
    }
    let bend = r * r * series;
    let power = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52));
    let first = fused::<FUSED>(power, bend, fused::<FUSED>(power, r, power - 1.0));
    let whole = fused::<FUSED>(power, r + bend, power);
    Growth { whole, first, second: if k == 0.0 { bend } else { first - t } }
}

/// The same for every t: infinite where it is too large for a double.
pub(super) fn growth_anywhere(t: f64) -> Growth {
    if t.abs() <= LARGEST {
        return growth::<false>(t);
    }
    let first = libm::expm1(t);
    Growth { whole: libm::exp(t), first, second: first - t }
}

/// 1/2!, 1/3!, … from the last to the first.
const SERIES: [f64; 13] = {
    let mut table = [0.0; 13];
    let (mut term, mut n) = (1.0, 0);
    while n < 13 {
        term /= (n + 2) as f64;
        table[12 - n] = term;
        n += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::UNIT;
    use proptest::prelude::*;

    fn check<const FUSED: bool>(t: f64) -> Result<(), TestCaseError> {
        let Growth { whole, first, second } = growth::<FUSED>(t);
        prop_assert!((whole - libm::exp(t)).abs() <= 6.0 * UNIT * libm::exp(t), "e^{t}");
        prop_assert!((first - libm::expm1(t)).abs() <= 6.0 * UNIT * libm::expm1(t).abs(), "e^{t} − 1");
        if t.abs() < 1.0 {
            // Σ tⁿ/n!, the smallest terms first
            let exact = (2..24).rev().fold(0.0, |sum, n| (1.0 + sum) * t / f64::from(n)) * t;
            prop_assert!(
                (second - exact).abs() <= 40.0 * UNIT * exact,
                "e^{t} − 1 − t: {second} for {exact}"
            );
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn growth_is_that_of_the_library(t in -1.0f64..1.0, exponent in -40i32..10) {
            let t = (t * 2f64.powi(exponent)).clamp(-700.0, 700.0);
            check::<true>(t)?;
            check::<false>(t)?;
        }

        #[test]
        fn growth_is_right_where_the_reduction_turns(halves in -9i32..9, off in -1e-3f64..1e-3) {
            let t = f64::from(halves) * std::f64::consts::LN_2 / 2.0 + off;
            check::<true>(t)?;
            check::<false>(t)?;
        }
    }

    #[test]
    fn what_falls_to_nothing_is_nothing() {
        let Growth { whole, first, second } = growth::<true>(-1e6);
        assert!((0.0..1e-300).contains(&whole) && first == -1.0 && second == 1e6 - 1.0);
        assert!(growth_anywhere(-1e6).whole == 0.0 && growth_anywhere(1e6).second.is_infinite());
    }
}
