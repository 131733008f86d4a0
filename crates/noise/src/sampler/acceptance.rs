//! [`Acceptance`]: whether a lazy uniform number lies below e^(−x).
//!
//! **Definition.** x = gap · rate for a whole number `gap` and an exact `rate`, with
//! x < 1. Answers "V < e^(−x)?" for a uniform V of which some leading digits are
//! already drawn.
//!
//! **Method.** Three tests, each settling what the one before left open:
//! V < 1 − x ≤ e^(−x) in one multiplication; e^(−x) in 64-bit fixed point within
//! [`EXP_ERROR`] units; and both sides with ever more digits.

use dashu_int::UBig;
use demur_exact::{Rational, exp_neg};

use crate::sampler::words::{Uniform, Words};

/// |[`exp_fixed`] − e^(−x)| in units of 2⁻⁶⁴, with x too large by up to 8 units.
const EXP_ERROR: u64 = 128;

/// Decides V < e^(−gap·rate); see the module text.
#[derive(Clone, Debug)]
pub(crate) struct Acceptance {
    rate: Rational,
    /// The rate in units of 2^−inverse_shift, rounded up to 64 bits.
    inverse: u64,
    inverse_shift: u32,
    /// Gaps are cut to 63 bits by this shift.
    gap_shift: u32,
}

impl Acceptance {
    /// For gaps below 2^`gap_bits`, and such that gap · rate < 1.
    pub(crate) fn new(rate: Rational, gap_bits: u32) -> Self {
        let inverse_shift = (63 - rate.floor_log2()) as u32;
        let scaled = &rate * &Rational::power_of_two(i64::from(inverse_shift));
        let inverse = u64::try_from(scaled.ceil()).unwrap_or(u64::MAX);
        Self { rate, inverse, inverse_shift, gap_shift: gap_bits.saturating_sub(63) }
    }

    /// Whether V < e^(−x), where V begins with the low `known` bits of `prefix`.
    #[inline]
    pub(crate) fn keeps<W: Words>(&self, gap: u128, prefix: u64, known: u32, words: &mut W) -> bool {
        let open = 64 - known;
        let highest = prefix << open | ((1 << open) - 1);
        highest < self.sure_below(gap) || self.keeps_slowly(gap, prefix, known, words)
    }

    /// Where every number that begins with some digits is below this, in units of 2⁻⁶⁴, it is below e^(−x), for this gap and for all
    /// that are smaller.
    #[inline]
    pub(crate) fn sure_below(&self, gap: u128) -> u64 {
        !self.exponent_above(gap)
    }

    /// x in units of 2⁻⁶⁴: at least x, and above it by less than 8 units.
    ///
    /// Cutting the gap adds at most 2^gap_shift · rate to x. With gap < 2^(63 +
    /// gap_shift) and 2^(62 + gap_shift) · rate < 1 that is below 4 units; the
    /// rounded inverse adds a factor 1 + 2⁻⁶³, below 2 units, and the last
    /// rounding one more.
    #[inline]
    fn exponent_above(&self, gap: u128) -> u64 {
        let round_up = (1u128 << self.gap_shift) - 1;
        let cut = ((gap + round_up) >> self.gap_shift) as u64;
        let product = u128::from(cut) * u128::from(self.inverse);
        let shift = self.inverse_shift - self.gap_shift - 64;
        u64::try_from((product >> shift) + 1).unwrap_or(u64::MAX)
    }

    #[cold]
    #[inline(never)]
    fn keeps_slowly<W: Words>(&self, gap: u128, prefix: u64, known: u32, words: &mut W) -> bool {
        let word = words.word();
        let first = prefix << (64 - known) | word.checked_shr(known).unwrap_or(0);
        let x = self.exponent_above(gap);
        if u128::from(first) >= parabola_above(x) {
            return false;
        }
        let power = exp_fixed(x);
        if first < power.saturating_sub(EXP_ERROR) {
            return true;
        }
        if first > power.saturating_add(EXP_ERROR) {
            return false;
        }
        let digits = UBig::from(prefix) << 64 | UBig::from(word);
        self.keeps_exactly(gap, &mut Uniform::with_prefix(words, digits, known as usize + 64))
    }

    /// The same question, answered with as many digits as it takes.
    pub(crate) fn keeps_exactly<W: Words>(&self, gap: u128, uniform: &mut Uniform<'_, W>) -> bool {
        let x = &Rational::from(gap) * &self.rate;
        uniform.is_below(|bits| exp_neg(&x, bits))
    }
}

/// At least e^(−y) in units of 2⁻⁶⁴, for any y above x − 8 units.
///
/// e^(−y) ≤ 1 − y + y²/2, which falls with y in [0, 1].
fn parabola_above(x: u64) -> u128 {
    let least = u128::from(x.saturating_sub(8));
    (1 << 64) - least + ((least * least) >> 65) + 1
}

/// e^(−x) in units of 2⁻⁶⁴ for x in units of 2⁻⁶⁴, within 64 units.
///
/// The alternating series Σ (−x)ⁿ/n!. Two floors cut each term by less than 2
/// units, and the next term inherits at most x/n of that: over the 21 terms that
/// are not zero the errors sum to less than 2·21 + 2e units. Terms beyond the
/// 24th are below one unit.
fn exp_fixed(x: u64) -> u64 {
    let mut term = 1u128 << 64;
    let (mut plus, mut minus) = (term, 0u128);
    for n in 1u128..=24 {
        // term ≤ 2⁶⁴ and x < 2⁶⁴: at n = 1 the product is x · 2⁶⁴ exactly.
        term = mul_high(term, x) / n;
        if term == 0 {
            break;
        }
        if n % 2 == 1 {
            minus += term;
        } else {
            plus += term;
        }
    }
    u64::try_from(plus - minus).unwrap_or(u64::MAX)
}

fn mul_high(term: u128, x: u64) -> u128 {
    match u64::try_from(term) {
        Ok(term) => (u128::from(term) * u128::from(x)) >> 64,
        Err(_) => x.into(), // term = 2⁶⁴
    }
}

#[cfg(test)]
#[expect(clippy::float_arithmetic, reason = "tests choose their cases with doubles")]
mod tests {
    use super::*;
    use crate::sampler::table::tests::Script;
    use dashu_int::IBig;
    use proptest::prelude::*;

    fn two_to(exponent: i64) -> Rational {
        Rational::power_of_two(exponent)
    }

    proptest! {
        #[test]
        fn exponents_are_above_by_less_than_eight_units(
            log_rate in 0u32..110, fraction in 1u64..1 << 40, position in 0.0..0.99f64
        ) {
            // A rate a little below 2^−log_rate, and a gap with gap·rate < 1.
            let rate = &(&Rational::from(fraction) / &two_to(40)) * &two_to(-i64::from(log_rate));
            prop_assume!(rate.floor_log2() > -115);
            let largest = u128::try_from(rate.recip().floor()).unwrap();
            let gap = (largest as f64 * position) as u128;
            let gap_bits = 128 - largest.leading_zeros();
            let acceptance = Acceptance::new(rate.clone(), gap_bits);
            let exact = &(&Rational::from(gap) * &rate) * &two_to(64);
            let above = Rational::from(acceptance.exponent_above(gap));
            prop_assert!(above >= exact, "{above} < {exact}");
            prop_assert!(above < &exact + &Rational::from(8u32), "{above} ≥ {exact} + 8");
        }

        #[test]
        fn fixed_point_exponentials_are_within_their_stated_error(x in any::<u64>()) {
            let exact = exp_neg(&(&Rational::from(x) / &two_to(64)), 64);
            let computed = IBig::from(exp_fixed(x));
            prop_assert!(computed >= exact.lower() - IBig::from(64u8));
            prop_assert!(computed <= exact.upper() + IBig::from(64u8));
        }

        /// All three tests give the answer of the exact one.
        #[test]
        fn quick_answers_agree_with_the_exact_one(gap in 0u128..1000, first in any::<u64>(), near in -400i64..400) {
            let acceptance = Acceptance::new(Rational::new(1, 1009), 10);
            let power = exp_fixed(acceptance.exponent_above(gap));
            for word in [first, power.saturating_add_signed(near)] {
                let quick = acceptance.keeps(gap, word, 64, &mut Script(vec![7, 7]));
                let mut rest = Script(vec![7, 7]);
                let mut uniform = Uniform::with_prefix(&mut rest, UBig::from(word), 64);
                prop_assert_eq!(quick, acceptance.keeps_exactly(gap, &mut uniform));
            }
        }
    }
}
