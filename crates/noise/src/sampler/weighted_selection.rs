//! [`WeightedSelection`]: private choice among candidates that stand for many.
//!
//! **Definition.** Group i has a whole-number score sᵢ and stands for mᵢ candidates, all of that score. The exponential mechanism on the candidates
//! picks group i with probability mᵢ·e^(−γᵢ) / Σⱼ mⱼ·e^(−γⱼ), γᵢ = rate · (max s − sᵢ), and each of its candidates equally
//! often.
//!
//! **Guarantee.** That of the exponential mechanism on the candidates: if every candidate's score moves by at most Δ steps between
//! neighbours, ε = 2Δ·rate. The groups may be others on a neighbouring dataset.
//!
//! **Sampling.** A uniform number is stretched over the sum of all weights, which is known between certified bounds; when the running sums do not decide, both are
//! computed with twice as many digits.
//!
//! **Exactness.** No float is touched.
//!
//! **References.** \[McSherry2007\].

use dashu_int::{IBig, UBig};
use demur_exact::{Enclosure, Rational, exp_neg};

use crate::NoiseError;
use crate::sampler::words::{Uniform, Words};

/// Digits of the first attempt.
const FIRST_BITS: usize = 128;

/// Groups of candidates ready to be chosen from; see the module text.
///
/// ```
/// use demur_noise::{Entropy, WeightedSelection};
/// // One candidate of score 10, a thousand of score 3.
/// let groups = [(10, 1u32.into()), (3, 1000u32.into())];
/// let selection = WeightedSelection::new(&groups, "1/2".parse()?)?;
/// let group = selection.choose(&mut Entropy::from_os()?);
/// let member = selection.member(group, &mut Entropy::from_os()?);
/// assert!(member < groups[group].1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct WeightedSelection {
    groups: Vec<(Rational, UBig)>,
}

impl WeightedSelection {
    /// Groups given as (score, number of candidates), and the rate at which weights fall per step of score.
    pub fn new(groups: &[(i64, UBig)], rate: Rational) -> Result<Self, NoiseError> {
        let (lowest, highest) = (Rational::power_of_two(-60), Rational::power_of_two(40));
        NoiseError::check_range("the rate of a private choice", &rate, &lowest, &highest)?;
        let some = groups.iter().filter(|(_, count)| *count > UBig::ZERO);
        let Some(best) = some.map(|(score, _)| *score).max() else {
            let message = "a choice needs at least 1 candidate, but there is none".to_owned();
            return Err(NoiseError::new("noise.candidates", message));
        };
        let exponent = |score: i64| &rate * &Rational::from(best.abs_diff(score));
        Ok(Self { groups: groups.iter().map(|(score, count)| (exponent(*score), count.clone())).collect() })
    }

    /// The index of a group.
    pub fn choose<W: Words>(&self, words: &mut W) -> usize {
        let mut uniform = Uniform::with_prefix(words, UBig::ZERO, 0);
        let mut bits = FIRST_BITS;
        loop {
            let (prefix, drawn) = uniform.prefix(bits);
            if let Some(chosen) = self.locate(prefix, drawn) {
                return chosen;
            }
            bits *= 2;
        }
    }

    /// One of the group's candidates, by its number from 0, each equally likely.
    pub fn member<W: Words>(&self, group: usize, words: &mut W) -> UBig {
        let count = &self.groups[group].1;
        let bits = dashu_int::ops::BitTest::bit_len(count);
        loop {
            let drawn =
                (0..bits.div_ceil(64)).fold(UBig::ZERO, |sum, _| (sum << 64) | UBig::from(words.word()));
            let number = drawn >> (bits.div_ceil(64) * 64 - bits);
            if number < *count {
                return number;
            }
        }
    }

    /// The group that every number with this prefix falls on, if the bounds leave no doubt.
    fn locate(&self, prefix: &UBig, bits: usize) -> Option<usize> {
        let weight = |(exponent, count): &(Rational, UBig)| exp_neg(exponent, bits).mul_integer(count);
        let weights: Vec<Enclosure> = self.groups.iter().map(weight).collect();
        let sum = |bound: fn(&Enclosure) -> &IBig| weights.iter().map(bound).sum::<IBig>();
        let prefix = IBig::from(prefix.clone());
        let from = (&prefix * sum(Enclosure::lower)) >> bits;
        let to = (((prefix + IBig::ONE) * sum(Enclosure::upper)) >> bits) + IBig::ONE;
        let (mut low, mut high) = (IBig::ZERO, IBig::ZERO);
        for (index, weight) in weights.iter().enumerate() {
            low += weight.lower();
            high += weight.upper();
            if to <= low {
                return Some(index);
            }
            if from < high {
                return None;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;
    use crate::sampler::table::tests::Script;
    use proptest::prelude::*;

    fn words(seed: u64) -> Script {
        Script((1..40u64).map(|i| (i + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect())
    }

    #[test]
    fn nonsense_is_refused() {
        let one = Rational::one();
        assert_eq!(WeightedSelection::new(&[], one.clone()).unwrap_err().code(), "noise.candidates");
        assert_eq!(WeightedSelection::new(&[(1, UBig::ZERO)], one).unwrap_err().code(), "noise.candidates");
        assert_eq!(
            WeightedSelection::new(&[(1, UBig::ONE)], Rational::zero()).unwrap_err().code(),
            "noise.range"
        );
    }

    /// Weights 1 and 3: a number below ¼ falls on the first group.
    #[test]
    fn equal_scores_share_by_their_numbers() {
        let selection =
            WeightedSelection::new(&[(5, 1u32.into()), (5, 3u32.into())], Rational::one()).unwrap();
        let at = |share: f64| selection.choose(&mut Script(vec![(share * 2f64.powi(64)) as u64, 0]));
        assert_eq!([at(0.0), at(0.2499), at(0.2501), at(0.99)], [0, 0, 1, 1]);
    }

    #[test]
    fn members_are_below_their_number_and_all_occur() {
        let selection = WeightedSelection::new(&[(0, 5u32.into())], Rational::one()).unwrap();
        let mut seen = [0; 5];
        for word in 0..8u64 {
            // The first three bits decide; 5, 6 and 7 are drawn again.
            let member = selection.member(0, &mut Script(vec![word << 61, 0]));
            seen[usize::try_from(member).unwrap()] += 1;
        }
        assert_eq!(seen, [4, 1, 1, 1, 1]);
    }

    proptest! {
        /// A group of m is chosen exactly when one of its m candidates would be.
        #[test]
        fn groups_are_chosen_as_their_candidates_would_be(
            groups in proptest::collection::vec((-9i64..0, 1u32..5), 1..12), seed in any::<u64>(),
        ) {
            let rate = Rational::new(2, 3);
            let weighted: Vec<(i64, UBig)> = groups.iter().map(|&(score, count)| (score, count.into())).collect();
            let group = WeightedSelection::new(&weighted, rate.clone()).unwrap().choose(&mut words(seed));
            let scores: Vec<i64> = groups.iter().flat_map(|&(score, count)| vec![score; count as usize]).collect();
            let one = Selection::new(&scores, rate).unwrap().exponential(&mut words(seed));
            let before: u32 = groups[..group].iter().map(|(_, count)| count).sum();
            prop_assert!((before..before + groups[group].1).contains(&(one as u32)));
        }
    }
}
