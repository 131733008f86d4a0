//! [`DiscreteLaplace`]: two-sided geometric noise, the ε-DP noise for whole numbers.
//!
//! **Definition.** For scale t > 0 the noise Z is the integer k with probability
//!
//! ```text
//! Pr[Z = k] = tanh(1 / 2t) · exp(−|k| / t)
//! ```
//!
//! **Guarantee.** If neighbouring answers are whole numbers at most Δ apart,
//! publishing `answer + Z` costs exactly ε = Δ / t.
//!
//! **Why.** For each output y the distances |y − a| and |y − b| differ by at most
//! |a − b| ≤ Δ, so the two probabilities differ by at most e^(Δ/t).
//!
//! **Sampling.** With r = e^(−1/t), let G be geometric with ratio r and let S be 1 with
//! probability r/(1 + r). Then Z = G if S = 0 and Z = −1 − G if S = 1: both sides
//! give (1 − r)/(1 + r) · r^|k|. G is drawn digit by digit
//! (`geometric.rs`), each digit and the sign from one [`Table`], so the
//! number of words and loads is the same for every outcome.
//!
//! **Exactness.** Every table is exact; the scale is an exact fraction; no float is
//! touched.
//!
//! **References.** \[Ghosh2012\], \[Canonne2020\].

use dashu_int::UBig;
use demur_exact::Rational;

use crate::NoiseError;
use crate::sampler::geometric::{GeometricDigit, rate_of_digit};
use crate::sampler::symmetric::unfold;
use crate::sampler::table::Table;
use crate::sampler::words::Words;

/// Index bits of a table when several share the work: 2¹⁰ entries, 8 KiB.
const DIGIT_BITS: u32 = 10;
/// A single table up to this size serves small scales alone.
const SINGLE_BITS: u32 = 11;

/// Discrete Laplace noise; see the module text.
///
/// ```
/// use demur_noise::{DiscreteLaplace, Entropy};
/// let noise = DiscreteLaplace::new("7/2".parse()?)?;
/// let mut entropy = Entropy::from_os()?;
/// let draw: i128 = noise.sample(&mut entropy);
/// assert!(draw.abs() < 1000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DiscreteLaplace {
    scale: Rational,
    /// The lowest digit and the sign.
    lowest: Table<GeometricDigit>,
    /// Higher digits, from low to high.
    higher: Vec<Table<GeometricDigit>>,
    lowest_radix: u64,
    higher_radix: u64,
}

impl DiscreteLaplace {
    /// The least scale that can be sampled: 2⁻²⁰.
    pub fn min_scale() -> Rational {
        Rational::power_of_two(-20)
    }

    /// The greatest scale that can be sampled: 2⁶⁰.
    pub fn max_scale() -> Rational {
        Rational::power_of_two(60)
    }

    /// Noise of scale `scale`, between 2⁻²⁰ and 2⁶⁰.
    pub fn new(scale: Rational) -> Result<Self, NoiseError> {
        NoiseError::check_range(
            "the scale of discrete Laplace noise",
            &scale,
            &Self::min_scale(),
            &Self::max_scale(),
        )?;
        // 46 scales hold all but e^−46 < 2^−64 of the law; the rest is remainder.
        let reach = &scale * &Rational::from(46u32);
        let bits = reach.floor_log2().max(1) as u32 + 1;
        let plan = Digits::for_reach(bits);
        let lowest_radix = (1 << (plan.index_bits - 1)) - 1;
        let higher_radix = (1 << plan.index_bits) - 1;
        let mut step = UBig::ONE;
        let mut digit = |index: u32| {
            let rate = rate_of_digit(&scale, &step);
            let radix = if index == 0 { lowest_radix } else { higher_radix };
            step *= UBig::from(radix);
            let closed = (index + 1 < plan.count).then_some(radix);
            Table::new(GeometricDigit { rate, radix: closed, signed: index == 0 }, plan.index_bits)
        };
        let lowest = digit(0);
        let higher = (1..plan.count).map(digit).collect();
        Ok(Self { scale, lowest, higher, lowest_radix, higher_radix })
    }

    /// The scale t.
    pub fn scale(&self) -> &Rational {
        &self.scale
    }

    /// Draws one value.
    #[inline]
    pub fn sample<W: Words>(&self, words: &mut W) -> i128 {
        let outcome = self.lowest.sample(words);
        let (digit, sign) = (outcome >> 1, outcome & 1);
        let magnitude = if self.higher.is_empty() {
            u128::from(digit)
        } else {
            u128::from(digit) + u128::from(self.lowest_radix) * self.sample_higher(words)
        };
        // −1 − G is the bitwise complement of G.
        magnitude as i128 ^ -i128::from(sign)
    }

    /// What stands above the lowest digit.
    #[inline]
    fn sample_higher<W: Words>(&self, words: &mut W) -> u128 {
        let mut value = 0u128;
        let mut place = 1u128;
        for table in &self.higher {
            value += place * u128::from(table.sample(words));
            place *= u128::from(self.higher_radix);
        }
        value
    }

    /// Draws as many values as `out` holds.
    pub fn fill<W: Words>(&self, words: &mut W, out: &mut [i128]) {
        if self.higher.is_empty() {
            for value in out {
                *value = unfold(self.lowest.sample(words)).into();
            }
            return;
        }
        for value in out {
            *value = self.sample(words);
        }
    }
}

/// How many tables of which size hold a number of so many bits and a sign.
struct Digits {
    count: u32,
    index_bits: u32,
}

impl Digits {
    fn for_reach(bits: u32) -> Self {
        // A signed table of 2^b entries holds 2^(b−1) − 1 digits.
        if bits + 2 <= SINGLE_BITS {
            return Self { count: 1, index_bits: bits + 2 };
        }
        // The sign costs one bit of the lowest digit, radix 2^b − 1 a little more.
        let count = (bits + 2).div_ceil(DIGIT_BITS);
        Self { count, index_bits: (bits + 2).div_ceil(count).max(3) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::table::tests::{Script, reference_parameters};
    use proptest::prelude::*;

    impl DiscreteLaplace {
        /// Every table with what its digit counts and its radix, 0 for none.
        fn tables(&self) -> Vec<(u128, u64, &Table<GeometricDigit>)> {
            let mut step = 1u128;
            let mut all = vec![];
            for (index, table) in std::iter::once(&self.lowest).chain(&self.higher).enumerate() {
                let radix = if index == 0 { self.lowest_radix } else { self.higher_radix };
                let last = index == self.higher.len();
                all.push((step, if last { 0 } else { radix }, table));
                step *= u128::from(radix);
            }
            all
        }
    }

    fn laplace(scale: &str) -> DiscreteLaplace {
        DiscreteLaplace::new(scale.parse().unwrap()).unwrap()
    }

    /// Scales from 2⁻²⁰ to 2⁶⁰: weights, remainders and slow paths of every digit.
    #[test]
    fn every_digit_table_agrees_with_an_independent_computation() {
        for scale in reference_parameters("laplace") {
            for (step, radix, table) in laplace(scale).tables() {
                let names = [step.to_string(), radix.to_string()];
                let law = ["laplace", scale, &names[0], &names[1]];
                let (weights, outcomes) = table.check_against_reference(law);
                assert!(weights > 0 && outcomes > 0, "{law:?}");
            }
        }
    }

    /// All digits of one draw take the slow path, with more than 300 digits each.
    #[test]
    fn every_digit_can_come_from_its_remainder() {
        for scale in ["7/3", "1000", "1152921504606846976"] {
            let noise = laplace(scale);
            let (mut script, mut magnitude, mut sign) = (vec![], 0, 0);
            for (step, radix, table) in noise.tables() {
                let names = [step.to_string(), radix.to_string()];
                let (words, outcome) = table.reference_outcome(["laplace", scale, &names[0], &names[1]], 7);
                script.extend(words);
                if step == 1 {
                    (magnitude, sign) = (i128::from(outcome / 2), outcome % 2);
                } else {
                    magnitude += i128::from(outcome) * step as i128;
                }
            }
            let expected = if sign == 0 { magnitude } else { -1 - magnitude };
            let mut filled = [0];
            noise.fill(&mut Script(script.clone()), &mut filled);
            assert_eq!(filled, [expected]);
            assert_eq!(noise.sample(&mut Script(script)), expected);
        }
    }

    #[test]
    fn scales_outside_the_range_are_refused() {
        for scale in ["0", "-1", "1/1048577", "1152921504606846977"] {
            assert_eq!(DiscreteLaplace::new(scale.parse().unwrap()).unwrap_err().code(), "noise.range");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn tables_of_any_scale_are_consistent(above in 1u64..1 << 40, log in -60i64..20) {
            let scale = &Rational::from(above) * &Rational::power_of_two(log);
            if let Ok(noise) = DiscreteLaplace::new(scale) {
                noise.tables().iter().for_each(|(_, _, table)| table.check_consistency());
            }
        }
    }
}
