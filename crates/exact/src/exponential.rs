//! e^(−x) for an exact x, to as many bits as asked.
//!
//! **Method.** With y = x / 2^j small, the alternating series Σ (−y)ⁿ/n! is summed
//! until a term is below one unit; since the terms shrink, the rest is smaller
//! than the first term left out. Squaring j times gives e^(−x).
//!
//! **Exactness.** Every step is an [`Enclosure`], and the cut tail widens it by one
//! term. Each squaring at most doubles the width (the number is below 1) and adds
//! one unit, so j + 8 extra bits leave a final width of a unit or two.

use dashu_int::IBig;

use crate::{Enclosure, Rational};

/// e^(−x) for x ≥ 0 with `bits` places after the binary point.
///
/// ```
/// use demur_exact::{Rational, exp_neg};
/// let value = exp_neg(&Rational::one(), 64);
/// assert!((value.lower_f64() - (-1f64).exp()).abs() < 1e-15);
/// assert!(value.width_in_ulps() <= 2);
/// ```
pub fn exp_neg(x: &Rational, bits: usize) -> Enclosure {
    debug_assert!(!x.is_negative(), "exp_neg takes the size of a negative exponent");
    if x.is_zero() {
        return Enclosure::integer(1, bits);
    }
    if *x >= Rational::from(bits as u64 + 1) {
        // e^(−x) < 2^−bits: between nothing and one unit.
        return Enclosure::new(IBig::ZERO, IBig::ONE, bits);
    }
    // Smaller steps need more squarings but fewer terms; √bits balances them.
    let headroom = (bits as f64).sqrt() as i64 / 2 + 4;
    let squarings = (x.floor_log2() + headroom).max(0) as usize;
    let work = bits + squarings + 8;
    let y = Enclosure::of(&(x * &Rational::power_of_two(-(squarings as i64))), work);

    let mut value = series(&y, work);
    for _ in 0..squarings {
        value = value.mul(&value);
    }
    let value = value.with_bits(bits);
    // e^(−x) lies in (0, 1]: a rounding past either end can be cut off.
    let one = IBig::ONE << bits;
    Enclosure::new(value.lower().clone().max(IBig::ZERO), value.upper().clone().min(one), bits)
}

/// Σ (−y)ⁿ / n! for 0 ≤ y < 1.
fn series(y: &Enclosure, bits: usize) -> Enclosure {
    let mut sum = Enclosure::integer(1, bits);
    let mut term = sum.clone();
    for n in 1u64.. {
        term = term.mul(y).div_integer(n);
        if *term.upper() <= IBig::ONE {
            break;
        }
        sum = if n % 2 == 1 { sum.sub(&term) } else { sum.add(&term) };
    }
    sum.widen(term.upper())
}

#[cfg(test)]
mod tests {
    use super::*;
    use astro_float::{BigFloat, Consts, RoundingMode};

    /// An independent value: another library, another algorithm.
    fn reference(x: &Rational, bits: usize) -> (BigFloat, Consts) {
        let precision = bits + 128;
        let round = RoundingMode::ToEven;
        let mut constants = Consts::new().unwrap();
        let mut part = |text: String| {
            BigFloat::parse(&text, astro_float::Radix::Dec, precision + 2_000, round, &mut constants)
        };
        let above = part(x.numerator().to_string());
        let below = part(x.denominator().to_string());
        let quotient = above.div(&below, precision + 64, round);
        (quotient.neg().exp(precision, round, &mut constants), constants)
    }

    fn assert_encloses(x: &Rational, bits: usize) {
        let value = exp_neg(x, bits);
        let (truth, mut constants) = reference(x, bits);
        let (precision, round) = (bits + 128, RoundingMode::ToEven);
        let mut bound = |units: &IBig| {
            let unit = BigFloat::from_i8(2, precision).powi(bits, precision, round);
            let text = units.to_string();
            BigFloat::parse(&text, astro_float::Radix::Dec, precision, round, &mut constants)
                .div(&unit, precision, round)
        };
        assert!(bound(value.lower()) <= truth, "e^-{x} at {bits} bits: lower bound too high");
        assert!(bound(value.upper()) >= truth, "e^-{x} at {bits} bits: upper bound too low");
        assert!(value.width_in_ulps() <= 2, "e^-{x} at {bits} bits is {} wide", value.width_in_ulps());
    }

    #[test]
    fn agrees_with_an_independent_library() {
        for text in ["1", "1/3", "0.1", "1e-12", "17.25", "88.7", "1e-40", "2/7", "355/113", "700.5"] {
            for bits in [64, 128, 300, 1_100] {
                assert_encloses(&text.parse().unwrap(), bits);
            }
        }
    }

    #[test]
    fn huge_arguments_are_between_nothing_and_one_unit() {
        let value = exp_neg(&Rational::from(1_000_000u64), 128);
        assert_eq!((value.lower().clone(), value.upper().clone()), (IBig::ZERO, IBig::ONE));
    }

    #[test]
    fn e_to_the_minus_zero_is_one() {
        assert_eq!(exp_neg(&Rational::zero(), 64), Enclosure::integer(1, 64));
    }
}
