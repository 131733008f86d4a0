//! [`Selection`]: private choice of one candidate by its score.
//!
//! **Definition.** Candidate i has a whole-number score sᵢ; with γᵢ = rate · (max s − sᵢ),
//!
//! * the *exponential mechanism* picks i with probability e^(−γᵢ) / Σⱼ e^(−γⱼ);
//! * *permute-and-flip* visits the candidates in random order, tosses a coin
//!   with bias e^(−γᵢ) for each, and takes the first that succeeds.
//!
//! **Guarantee.** If every score moves by at most Δ steps between neighbours, both
//! cost ε = 2Δ·rate.
//!
//! **Why one pass serves permute-and-flip.** A candidate's coin does not depend on when
//! it is tossed. Tossing all coins first, the first success in a random order
//! is a uniformly random success; the best candidate always succeeds.
//!
//! **Sampling.** Weights are 63-bit lower bounds with a proven error. A uniform number
//! stretched over their total falls between two running sums; if it comes so
//! close to one that the errors matter, all weights are computed with more
//! digits. Likewise each coin.
//!
//! **Exactness.** No float is touched; the scores, the rate and so the law are exact.
//!
//! **References.** \[McSherry2007\], \[McKenna2020\].

use dashu_int::{IBig, UBig};
use demur_exact::{Rational, exp_neg};

use crate::NoiseError;
use crate::sampler::powers::Powers;
use crate::sampler::words::{Uniform, Words, below};

/// Candidates between two stored running sums.
const BLOCK: usize = 256;

/// Candidates ready to be chosen from; see the module text.
///
/// ```
/// use demur_noise::{Entropy, Selection};
/// // Three candidates; one step of score is worth a factor e^(−1/2).
/// let selection = Selection::new(&[10, 12, 3], "1/2".parse()?)?;
/// let mut entropy = Entropy::from_os()?;
/// let chosen = selection.exponential(&mut entropy);
/// assert!(chosen < 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Selection {
    gaps: Vec<u64>,
    powers: Powers,
}

impl Selection {
    /// Candidates with these scores, and the rate at which weights fall per step.
    pub fn new(scores: &[i64], rate: Rational) -> Result<Self, NoiseError> {
        let (Some(&best), true) = (scores.iter().max(), scores.len() < 1 << 32) else {
            let message =
                format!("a choice needs between 1 and 2^32 candidates, but there are {}", scores.len());
            return Err(NoiseError::new("noise.candidates", message));
        };
        let (lowest, highest) = (Rational::power_of_two(-60), Rational::power_of_two(40));
        NoiseError::check_range("the rate of a private choice", &rate, &lowest, &highest)?;
        let gaps = scores.iter().map(|&score| best.abs_diff(score)).collect();
        Ok(Self { gaps, powers: Powers::new(rate) })
    }

    /// The number of candidates.
    pub fn len(&self) -> usize {
        self.gaps.len()
    }

    /// Never: a choice has at least one candidate.
    pub fn is_empty(&self) -> bool {
        self.gaps.is_empty()
    }

    /// Chooses by the exponential mechanism: the index of a candidate.
    pub fn exponential<W: Words>(&self, words: &mut W) -> usize {
        self.exponential_many(words, 1)[0]
    }

    /// Chooses `count` times, independently, by the exponential mechanism.
    pub fn exponential_many<W: Words>(&self, words: &mut W, count: usize) -> Vec<usize> {
        let sums = RunningSums::new(self);
        (0..count).map(|_| self.exponential_once(words, &sums)).collect()
    }

    fn exponential_once<W: Words>(&self, words: &mut W, sums: &RunningSums) -> usize {
        let mut uniform = Uniform::with_prefix(words, UBig::ZERO, 0);
        let (prefix, bits) = uniform.prefix(128);
        if let Some(chosen) = sums.locate(self, prefix, bits) {
            return chosen;
        }
        self.exponential_slowly(&mut uniform)
    }

    /// The same with as many digits as it takes.
    #[cold]
    #[inline(never)]
    fn exponential_slowly<W: Words>(&self, uniform: &mut Uniform<'_, W>) -> usize {
        let mut bits = 256;
        loop {
            let (prefix, drawn) = uniform.prefix(bits);
            if let Some(chosen) = self.locate_exactly(prefix, drawn) {
                return chosen;
            }
            bits *= 2;
        }
    }

    fn locate_exactly(&self, prefix: &UBig, bits: usize) -> Option<usize> {
        let weights: Vec<_> =
            self.gaps.iter().map(|&gap| exp_neg(&self.powers.exponent(gap), bits)).collect();
        let sum = |bound: fn(&demur_exact::Enclosure) -> &IBig| weights.iter().map(bound).sum::<IBig>();
        let prefix = IBig::from(prefix.clone());
        let from = (&prefix * sum(demur_exact::Enclosure::lower)) >> bits;
        let to = (((prefix + IBig::ONE) * sum(demur_exact::Enclosure::upper)) >> bits) + IBig::ONE;
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

    /// Chooses by permute-and-flip: the index of a candidate.
    ///
    /// Every candidate costs one word whatever its score, and the choice among the
    /// successes one more.
    pub fn permute_and_flip<W: Words>(&self, words: &mut W) -> usize {
        let success: Vec<bool> = self.gaps.iter().map(|&gap| self.flip(gap, words)).collect();
        let successes = success.iter().map(|&won| u64::from(won)).sum::<u64>();
        // The best candidate always succeeds, so there is one to choose.
        let rank = below(words, successes.max(1));
        let mut before = 0;
        let mut chosen = 0;
        for (index, &won) in success.iter().enumerate() {
            if won && before == rank {
                chosen = index;
            }
            before += u64::from(won);
        }
        chosen
    }

    /// A coin with bias e^(−rate·gap).
    #[inline]
    fn flip<W: Words>(&self, gap: u64, words: &mut W) -> bool {
        let word = words.word();
        if gap == 0 {
            return true;
        }
        let weight = self.powers.weight(gap);
        // V lies in [word, word + 1) and the bias in [2·weight, 2·(weight + error)), in units of 2⁻⁶⁴.
        if word / 2 < weight {
            return true;
        }
        if word / 2 >= weight + self.powers.error() {
            return false;
        }
        self.flip_slowly(gap, word, words)
    }

    #[cold]
    #[inline(never)]
    fn flip_slowly<W: Words>(&self, gap: u64, word: u64, words: &mut W) -> bool {
        let exponent = self.powers.exponent(gap);
        Uniform::with_prefix(words, UBig::from(word), 64).is_below(|bits| exp_neg(&exponent, bits))
    }
}

/// Running sums of the weights, stored once per block.
struct RunningSums {
    /// The sum of all weights before each block.
    before: Vec<u128>,
    total: u128,
}

impl RunningSums {
    fn new(selection: &Selection) -> Self {
        let mut total = 0u128;
        let mut before = Vec::with_capacity(selection.gaps.len() / BLOCK + 1);
        for block in selection.gaps.chunks(BLOCK) {
            before.push(total);
            total += block.iter().map(|&gap| u128::from(selection.powers.weight(gap))).sum::<u128>();
        }
        Self { before, total }
    }

    /// The candidate that every number with this prefix falls on, if the errors of
    /// the weights leave no doubt.
    fn locate(&self, selection: &Selection, prefix: &UBig, bits: usize) -> Option<usize> {
        let error = u128::from(selection.powers.error());
        let slack = error * selection.gaps.len() as u128;
        // The stretched number lies in [from, to).
        let from = u128::try_from((prefix * UBig::from(self.total)) >> bits).ok()?;
        let above = ((prefix + UBig::ONE) * UBig::from(self.total + slack)) >> bits;
        let to = u128::try_from(above).ok()? + 1;

        let block = self.before.partition_point(|&sum| sum < to).saturating_sub(1);
        let mut sum = self.before[block];
        let start = block * BLOCK;
        for (offset, &gap) in selection.gaps[start..].iter().take(BLOCK).enumerate() {
            let index = start + offset;
            // True sums exceed stored ones by less than `error` for each candidate before.
            let previous_high = sum + error * index as u128;
            sum += u128::from(selection.powers.weight(gap));
            if to <= sum {
                return (previous_high <= from).then_some(index);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::table::tests::{Script, hexadecimal, rows};
    use proptest::prelude::*;

    fn scores(text: &str) -> Vec<i64> {
        match text.split_once("..") {
            Some((from, to)) => (from.parse().unwrap()..to.parse().unwrap()).collect(),
            None => text.split(' ').map(|score| score.parse().unwrap()).collect(),
        }
    }

    /// V follows the boundary between two candidates for up to 384 digits.
    #[test]
    fn choices_agree_with_an_independent_computation() {
        let mut count = 0;
        for row in rows(include_str!("../../tests/data/choices.csv")) {
            let selection = Selection::new(&scores(row[1]), row[0].parse().unwrap()).unwrap();
            let chosen = selection.exponential(&mut Script(hexadecimal(row[2])));
            assert_eq!(chosen.to_string(), row[3], "{row:?}");
            count += 1;
        }
        assert!(count > 100);
    }

    /// e^(−x) to 512 digits, for gaps whose exponents are the references' own.
    #[test]
    fn coins_that_follow_their_bias_are_decided_where_they_leave() {
        let mut count = 0;
        for row in rows(include_str!("../../tests/data/coins.csv")).filter(|row| row[0] == "exp_neg") {
            let exponent: Rational = row[1].parse().unwrap();
            let words = hexadecimal(row[3]);
            for gap in [1u64, 3, 1000] {
                let Ok(selection) = Selection::new(&[0, -1], &exponent / &Rational::from(gap)) else {
                    continue;
                };
                for followed in 0..8 {
                    let flip =
                        |next: u64| selection.flip(gap, &mut Script([&words[..followed], &[next]].concat()));
                    let next = words[followed];
                    let (below, above) = (next.saturating_sub(1), next.saturating_add(1));
                    assert!(below == next || flip(below), "{row:?}, gap {gap}, {followed}");
                    assert!(above == next || !flip(above), "{row:?}, gap {gap}, {followed}");
                    assert!(next == u64::MAX || !flip(u64::MAX), "{row:?}, gap {gap}, {followed}");
                    count += 1;
                }
            }
        }
        assert!(count > 100);
    }

    /// Every candidate takes one word and the choice among the successes one more.
    #[test]
    fn permute_and_flip_takes_a_uniform_one_of_the_successes() {
        let selection = Selection::new(&[5, 3, 5, -400], Rational::one()).unwrap();
        // Coins: sure, V = 0 succeeds, sure, e^−405 fails all but never.
        for (choice, chosen) in [(0, 0), (1, 1), (2, 2)] {
            let word = ((choice << 64) / 3u128) as u64 + 9;
            let mut words = Script(vec![u64::MAX, 0, u64::MAX, u64::MAX, word, 7]);
            assert_eq!(selection.permute_and_flip(&mut words), chosen);
            assert_eq!(words.0, [7]);
        }
        // The second coin fails: the two best share.
        for (word, chosen) in [(9, 0), (u64::MAX / 2 + 9, 2)] {
            let mut words = Script(vec![0, u64::MAX, 0, u64::MAX, word]);
            assert_eq!(selection.permute_and_flip(&mut words), chosen);
        }
    }

    #[test]
    fn many_choices_are_those_of_one_after_another() {
        let selection = Selection::new(&[1, 2, 3, 4], Rational::new(1, 2)).unwrap();
        let words: Vec<u64> = (1..41u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let many = selection.exponential_many(&mut Script(words.clone()), 20);
        let mut source = Script(words);
        let single: Vec<_> = (0..20).map(|_| selection.exponential(&mut source)).collect();
        assert_eq!(many, single);
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(Selection::new(&[], Rational::one()).unwrap_err().code(), "noise.candidates");
        for rate in ["0", "-1", "1e-30", "1e30"] {
            assert_eq!(Selection::new(&[1], rate.parse().unwrap()).unwrap_err().code(), "noise.range");
        }
    }

    proptest! {
        /// The quick answer, where there is one, is that of the exact computation.
        #[test]
        fn quick_choices_agree_with_exact_ones(
            scores in proptest::collection::vec(-60i64..0, 1..600), rate in 1u128..50,
            first in any::<u64>(), second in any::<u64>(),
        ) {
            let selection = Selection::new(&scores, Rational::new(rate as i128, 40)).unwrap();
            let sums = RunningSums::new(&selection);
            let prefix = (UBig::from(first) << 64) | UBig::from(second);
            if let Some(chosen) = sums.locate(&selection, &prefix, 128) {
                prop_assert_eq!(selection.locate_exactly(&prefix, 128), Some(chosen));
            }
        }

        /// Likewise right around the stored sums, where the errors of the weights matter.
        #[test]
        fn choices_near_a_boundary_agree_with_exact_ones(
            scores in proptest::collection::vec(-60i64..0, 2..300), place in any::<prop::sample::Index>(),
            near in -400i128..400,
        ) {
            let selection = Selection::new(&scores, Rational::new(1, 3)).unwrap();
            let sums = RunningSums::new(&selection);
            let end = place.index(scores.len() - 1) + 1;
            let weight = |gap: &u64| u128::from(selection.powers.weight(*gap));
            let sum: u128 = selection.gaps[..end].iter().map(weight).sum();
            let stretched = UBig::from(sum.saturating_add_signed(near).min(sums.total - 1));
            let prefix = (stretched << 128) / UBig::from(sums.total);
            if let Some(chosen) = sums.locate(&selection, &prefix, 128) {
                let exact = selection.locate_exactly(&(prefix << 128), 256);
                prop_assert_eq!(exact, Some(chosen));
            }
        }
    }
}
