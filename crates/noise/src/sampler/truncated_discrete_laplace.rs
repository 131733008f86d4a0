//! [`TruncatedDiscreteLaplace`]: two-sided geometric noise with a hard bound.
//!
//! **Definition.** For scale t and bound τ the noise Z is the integer k with probability
//!
//! ```text
//! Pr[Z = k] ∝ exp(−|k| / t)   for |k| ≤ τ,   and 0 beyond
//! ```
//!
//! **Guarantee.** If neighbouring answers are whole numbers at most Δ ≤ 2τ apart,
//! publishing `answer + Z` is (ε, δ)-private with ε = Δ/t and δ the probability of
//! the Δ outermost values on one side, which the neighbour can never produce.
//!
//! **Sampling.** A small support is one [`Table`]. Otherwise values are proposed until
//! one is accepted: discrete Laplace draws that lie within τ when τ ≥ t, or
//! uniform values kept with probability e^(−|k|/t) when τ < t. At least three in
//! eight proposals are accepted, and how many were not says nothing about the
//! one that was.
//!
//! **References.** \[Geng2020\].

use demur_exact::Rational;

use crate::NoiseError;
use crate::sampler::acceptance::Acceptance;
use crate::sampler::discrete_laplace::DiscreteLaplace;
use crate::sampler::symmetric::{Shape, Symmetric, unfold};
use crate::sampler::table::Table;
use crate::sampler::words::{Words, below};

/// Supports of up to 2τ + 1 = 2¹¹ − 1 values are drawn from one table.
const TABLE_BITS: u32 = 11;
/// τ up to 2⁶².
const MAX_BOUND: u64 = 1 << 62;

/// Truncated discrete Laplace noise; see the module text.
///
/// ```
/// use demur_noise::{Entropy, TruncatedDiscreteLaplace};
/// let noise = TruncatedDiscreteLaplace::new("2".parse()?, 10)?;
/// let mut entropy = Entropy::from_os()?;
/// assert!((0..100).all(|_| noise.sample(&mut entropy).abs() <= 10));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TruncatedDiscreteLaplace {
    scale: Rational,
    bound: u64,
    method: Method,
}

#[derive(Clone, Debug)]
enum Method {
    Table(Table<Symmetric>),
    FromLaplace(DiscreteLaplace),
    FromUniform(Acceptance),
}

impl TruncatedDiscreteLaplace {
    /// Noise of scale `scale`, between 2⁻²⁰ and 2⁶⁰, never larger than `bound`.
    pub fn new(scale: Rational, bound: u64) -> Result<Self, NoiseError> {
        Self::check_scale(&scale)?;
        NoiseError::check_range(
            "the bound of truncated Laplace noise",
            &bound.into(),
            &Rational::one(),
            &MAX_BOUND.into(),
        )?;
        let rate = scale.recip();
        let method = if 2 * bound + 1 < 1 << TABLE_BITS {
            let index_bits = (2 * bound + 2).next_power_of_two().trailing_zeros();
            let tent = Symmetric { rate, shape: Shape::Tent, signed: true, limit: Some(bound) };
            Method::Table(Table::new(tent, index_bits))
        } else if Rational::from(bound) >= scale {
            Method::FromLaplace(DiscreteLaplace::new(scale.clone())?)
        } else {
            Method::FromUniform(Acceptance::new(rate, 64 - bound.leading_zeros()))
        };
        Ok(Self { scale, bound, method })
    }

    /// Refuses a scale that cannot be sampled.
    pub(crate) fn check_scale(scale: &Rational) -> Result<(), NoiseError> {
        let what = "the scale of truncated Laplace noise";
        NoiseError::check_range(what, scale, &DiscreteLaplace::min_scale(), &DiscreteLaplace::max_scale())
    }

    /// The scale t.
    pub fn scale(&self) -> &Rational {
        &self.scale
    }

    /// The bound τ.
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// Draws one value.
    pub fn sample<W: Words>(&self, words: &mut W) -> i128 {
        match &self.method {
            Method::Table(table) => unfold(table.sample(words)).into(),
            Method::FromLaplace(laplace) => loop {
                let value = laplace.sample(words);
                if value.unsigned_abs() <= u128::from(self.bound) {
                    return value;
                }
            },
            Method::FromUniform(acceptance) => loop {
                let value = unfold(below(words, 2 * self.bound + 1));
                let word = words.word();
                if acceptance.keeps(value.unsigned_abs().into(), word >> 1, 63, words) {
                    return value.into();
                }
            },
        }
    }

    /// Draws as many values as `out` holds.
    pub fn fill<W: Words>(&self, words: &mut W, out: &mut [i128]) {
        out.iter_mut().for_each(|value| *value = self.sample(words));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::table::tests::{Script, hexadecimal, reference_parameters, rows};
    use proptest::prelude::*;

    const TABLES: &str = include_str!("../../tests/data/tables.csv");
    const ACCEPTANCE: &str = include_str!("../../tests/data/acceptance.csv");

    fn truncated(scale: &str, bound: &str) -> TruncatedDiscreteLaplace {
        TruncatedDiscreteLaplace::new(scale.parse().unwrap(), bound.parse().unwrap()).unwrap()
    }

    fn table(noise: &TruncatedDiscreteLaplace) -> &Table<Symmetric> {
        match &noise.method {
            Method::Table(table) => table,
            _ => unreachable!(),
        }
    }

    /// The word from which `below` makes this number.
    fn word_below(number: u64, bound: u64) -> u64 {
        let word = (u128::from(number) << 64).div_ceil(u128::from(bound)) as u64 + 1;
        assert_eq!(below(&mut Script(vec![word]), bound), number);
        word
    }

    #[test]
    fn every_table_agrees_with_an_independent_computation() {
        for scale in reference_parameters("truncated") {
            let bound = rows(TABLES).find(|row| row[..2] == ["truncated", scale]).unwrap()[2];
            let noise = truncated(scale, bound);
            let (weights, outcomes) = table(&noise).check_against_reference(["truncated", scale, bound, ""]);
            assert!(weights > 0 && outcomes > 0, "{scale}");
        }
    }

    #[test]
    fn a_draw_can_come_from_the_remainder() {
        let noise = truncated("2", "10");
        for words in [2, 3, 7] {
            let (script, outcome) = table(&noise).reference_outcome(["truncated", "2", "10", ""], words);
            assert_eq!(noise.sample(&mut Script(script)), i128::from(unfold(outcome)));
        }
    }

    /// V follows e^(−|k|/t) for up to 384 digits and leaves it below or above.
    #[test]
    fn uniform_proposals_are_kept_as_an_independent_computation_says() {
        let (mut kept, mut dropped) = (0, 0);
        for row in rows(ACCEPTANCE).filter(|row| row[0] == "truncated") {
            let noise = truncated(row[1], row[2]);
            assert!(matches!(noise.method, Method::FromUniform(_)));
            let value: i64 = row[3].parse().unwrap();
            let index = if value < 0 { 2 * value.unsigned_abs() - 1 } else { 2 * value as u64 };
            assert_eq!(unfold(index), value);
            let place = word_below(index, 2 * noise.bound + 1);
            // What comes after a proposal that was dropped is kept.
            let script = [vec![place], hexadecimal(row[4]), vec![0x0123_4567_89ab_cdef; 20]].concat();
            let drawn = noise.sample(&mut Script(script));
            assert_eq!(drawn == i128::from(value), row[5] == "1", "{row:?}");
            *(if row[5] == "1" { &mut kept } else { &mut dropped }) += 1;
        }
        assert!(kept >= 20 && dropped >= 20);
    }

    /// A discrete Laplace value at the bound is kept and one step beyond is not.
    #[test]
    fn laplace_proposals_are_kept_up_to_the_bound() {
        let scale = || Rational::from(1000u32);
        let laplace = DiscreteLaplace::new(scale()).unwrap();
        let words =
            |i: u64| vec![i.wrapping_mul(0x9e37_79b9_7f4a_7c15), i.wrapping_mul(0xd1b5_4a32_d192_ed03)];
        let far = |i: &u64| laplace.sample(&mut Script(words(*i))).unsigned_abs() > 1024;
        for i in (1..100).filter(far) {
            let value = laplace.sample(&mut Script(words(i)));
            let bound = value.unsigned_abs() as u64;
            let within = TruncatedDiscreteLaplace::new(scale(), bound).unwrap();
            assert!(matches!(within.method, Method::FromLaplace(_)));
            assert_eq!(within.sample(&mut Script(words(i))), value);
            let beyond = TruncatedDiscreteLaplace::new(scale(), bound - 1).unwrap();
            assert_ne!(beyond.sample(&mut Script(words(i))), value);
        }
    }

    #[test]
    fn scales_and_bounds_outside_the_range_are_refused() {
        for (scale, bound) in [("0", 1), ("1/1048577", 5), ("1", 0), ("1", MAX_BOUND + 1), ("1", u64::MAX)] {
            let error = TruncatedDiscreteLaplace::new(scale.parse().unwrap(), bound).unwrap_err();
            assert_eq!(error.code(), "noise.range");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn tables_of_any_scale_and_bound_are_consistent(
            above in 1u64..1 << 40, log in -60i64..20, bound in 1u64..1023
        ) {
            let scale = &Rational::from(above) * &Rational::power_of_two(log);
            if let Ok(noise) = TruncatedDiscreteLaplace::new(scale, bound) {
                table(&noise).check_consistency();
            }
        }
    }
}
