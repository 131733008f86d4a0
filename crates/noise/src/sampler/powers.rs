//! [`Powers`]: e^(−rate·gap) for many whole gaps, fast, as certified lower bounds.

use demur_exact::{Rational, exp_neg};

/// The number 1 in the units of a weight.
const ONE: u64 = 1 << 63;
const DIGIT_BITS: u32 = 8;

/// Tables of e^(−rate·d·256ʲ): a gap's weight is the product over its digits.
#[derive(Clone, Debug)]
pub(crate) struct Powers {
    rate: Rational,
    tables: Vec<[u64; 1 << DIGIT_BITS]>,
}

impl Powers {
    /// Prepares the tables for one rate above 0.
    pub(crate) fn new(rate: Rational) -> Self {
        // 45·(1/rate) steps bring the weight below one unit.
        let steps = &Rational::from(45u32) / &rate;
        let digits = (steps.floor_log2().max(0) as u32 / DIGIT_BITS + 1).min(64 / DIGIT_BITS);
        let tables = (0..digits).map(|digit| table(&rate, digit)).collect();
        Self { rate, tables }
    }

    /// A whole number w with w ≤ 2⁶³·e^(−rate·gap) < w + [`Self::error`].
    #[inline]
    pub(crate) fn weight(&self, gap: u64) -> u64 {
        let mut rest = gap;
        let mut weight = ONE;
        for table in &self.tables {
            let factor = table[(rest & 0xff) as usize];
            weight = ((u128::from(weight) * u128::from(factor)) >> 63) as u64;
            rest >>= DIGIT_BITS;
        }
        if rest == 0 { weight } else { 0 }
    }

    /// How far a weight may lie below the truth.
    ///
    /// Each factor is at most 1 and too small by at most two units, each product is cut
    /// by less than one: three units a table. A gap with digits beyond the tables
    /// has a weight below one unit.
    pub(crate) fn error(&self) -> u64 {
        3 * self.tables.len() as u64 + 1
    }

    /// The exponent rate · gap.
    pub(crate) fn exponent(&self, gap: u64) -> Rational {
        &self.rate * &Rational::from(gap)
    }
}

fn table(rate: &Rational, digit: u32) -> [u64; 1 << DIGIT_BITS] {
    let step = rate * &Rational::power_of_two(i64::from(DIGIT_BITS * digit));
    std::array::from_fn(|d| {
        let power = exp_neg(&(&step * &Rational::from(d as u64)), 63);
        u64::try_from(power.lower().clone()).unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dashu_int::IBig;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn weights_are_lower_bounds_within_the_stated_error(
            above in 1u64..1000, log_rate in -50i64..4, gap in any::<u64>(), shift in 0u32..64
        ) {
            let powers = Powers::new(&Rational::from(above) * &Rational::power_of_two(log_rate));
            let gap = gap >> shift;
            let exact = exp_neg(&powers.exponent(gap), 63);
            let weight = IBig::from(powers.weight(gap));
            prop_assert!(weight <= *exact.upper());
            prop_assert!(weight + IBig::from(powers.error()) >= *exact.upper());
        }
    }
}
