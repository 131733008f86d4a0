//! e^x for many x at once: a polynomial that the compiler can spread over lanes.
//!
//! **Accuracy.** x = k·ln 2 + r with |r| ≤ ½·ln 2; e^r is its Taylor polynomial of degree 13, whose remainder is below
//! 2·10⁻¹⁸, and multiplying by 2^k is exact. The relative error is below 10⁻¹⁵ for −700 ≤ x ≤ 0. Below −700 the result is 0.

const MAGIC: f64 = 6_755_399_441_055_744.0; // 1.5·2⁵²: adding it leaves the nearest whole number in the low bits
const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
const COEFFICIENTS: [f64; 12] = [
    1.0 / 6_227_020_800.0,
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
];

/// Replaces each x ≤ 0 by e^x; −∞ becomes 0.
pub(crate) fn exponentials(values: &mut [f64]) {
    for value in values {
        *value = exponential(*value);
    }
}

#[inline(always)]
fn exponential(x: f64) -> f64 {
    // A comparison that is false for NaN: what is no number becomes 0, too.
    let clamped = if x > -700.0 { x } else { -700.0 };
    let shifted = clamped * std::f64::consts::LOG2_E + MAGIC;
    let k = shifted - MAGIC;
    let r = (clamped - k * LN_2_HIGH) - k * LN_2_LOW;
    let mut sum = COEFFICIENTS[0];
    for &coefficient in &COEFFICIENTS[1..] {
        sum = sum * r + coefficient;
    }
    let power = (sum * r + 1.0) * r + 1.0;
    let scaled = f64::from_bits(power.to_bits().wrapping_add(shifted.to_bits() << 52));
    if x > -700.0 { scaled } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_those_of_the_standard_library() {
        let xs: Vec<f64> = (0..70_000).map(|i| -f64::from(i) / 100.0 - 1e-9 * f64::from(i % 7)).collect();
        let mut found = xs.clone();
        exponentials(&mut found);
        for (x, found) in xs.iter().zip(found) {
            assert!((found / x.exp() - 1.0).abs() < 1e-15, "{x}: {found}");
        }
    }

    #[test]
    fn what_is_far_below_zero_is_zero() {
        let mut values = [0.0, -701.0, f64::NEG_INFINITY, f64::NAN, -0.0];
        exponentials(&mut values);
        assert_eq!(values, [1.0, 0.0, 0.0, 0.0, 1.0]);
    }
}
