//! [`Table`]: one draw from any law over 0, 1, 2, …, exactly, for one word.
//!
//! **Definition.** A law gives outcome n the probability pₙ. Whole numbers wₙ with
//! wₙ ≤ 2⁶⁴·pₙ are stored for the first outcomes, and the rest of 2⁶⁴ is the weight
//! of a *remainder*:
//!
//! ```text
//! 2⁶⁴·pₙ = wₙ + (2⁶⁴·pₙ − wₙ)        remainder = 2⁶⁴ − Σ wₙ
//!           stored    remainder's share of n, n = 0, 1, 2, … without end
//! ```
//!
//! A uniform word falls on outcome n in exactly wₙ of its 2⁶⁴ values (Walker's
//! alias table, in integers: one load, one comparison). In the remaining
//! values, fewer than one in 2⁵⁰, an outcome is drawn from the remainder's own
//! law: a lazy uniform number is compared with running sums of 2⁶⁴·pₙ − wₙ, both
//! computed to as many digits as the comparison needs.
//!
//! **Exactness.** The wₙ only have to be *at most* 2⁶⁴·pₙ; how close they are decides
//! how often the slow path runs, never the law. So Pr[n] = wₙ/2⁶⁴ + (remainder/2⁶⁴)·
//! (2⁶⁴pₙ − wₙ)/remainder = pₙ.
//!
//! **Work.** One word and one load, whatever the outcome; the slow path is reached
//! with a probability below 2⁻⁵⁰.
//!
//! **References.** [Walker1977], [Vose1991].

use dashu_int::{IBig, UBig};
use demur_exact::Enclosure;

use crate::sampler::words::{Uniform, Words};

/// Tables have at most 2¹² entries (32 KiB).
pub(crate) const MAX_INDEX_BITS: u32 = 12;

/// A law over the outcomes 0, 1, 2, …
pub(crate) trait Law {
    /// The probabilities of the outcomes in order, enclosed with `bits` places.
    ///
    /// Ends when the law does; an endless law gives an endless iterator.
    fn probabilities(&self, bits: usize) -> Box<dyn Iterator<Item = Enclosure> + '_>;

    /// Lower bounds of the probabilities of the first outcomes.
    ///
    /// These only have to be bounds: what they miss is left to the remainder.
    fn lower_bounds(&self) -> Box<dyn Iterator<Item = Fraction> + '_>;
}

/// A number in [0, 1), in units of 2⁻¹²⁸, that is never above what it stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fraction(pub(crate) u128);

impl Fraction {
    /// The lower end of an enclosure of a number in [0, 1].
    pub(crate) fn below(value: &Enclosure) -> Self {
        let bound = value.with_bits(128).lower().clone().max(IBig::ZERO);
        Self(u128::try_from(bound).unwrap_or(u128::MAX))
    }

    /// The product, rounded down.
    pub(crate) fn mul(self, other: Self) -> Self {
        let (a, b) = (self.0 >> 64, self.0 & u128::from(u64::MAX));
        let (c, d) = (other.0 >> 64, other.0 & u128::from(u64::MAX));
        // What the two middle products and the low one carry into the high half,
        // less at most one unit.
        let middle = (a * d >> 64) + (b * c >> 64);
        let carry = ((a * d & u128::from(u64::MAX)) + (b * c & u128::from(u64::MAX)) + (b * d >> 64)) >> 64;
        Self(a * c + middle + carry)
    }
}

/// Draws from a [`Law`]; see the module text.
#[derive(Clone, Debug)]
pub(crate) struct Table<L> {
    law: L,
    /// threshold in the high bits, alias in the low `index_bits`.
    entries: Box<[u64]>,
    index_bits: u32,
    weights: Box<[u64]>,
    remainder: u64,
}

impl<L: Law> Table<L> {
    /// A table that holds the first 2^`index_bits` − 1 outcomes.
    pub(crate) fn new(law: L, index_bits: u32) -> Self {
        let capacity = (1usize << index_bits) - 1;
        let weights: Box<[u64]> =
            law.lower_bounds().take(capacity).map(|Fraction(bound)| (bound >> 64) as u64).collect();
        // Every p is below 1, and they sum to at most 1: this cannot wrap to 0
        // unless all weights are 0, which the first outcomes prevent.
        let remainder = weights.iter().fold(0u64, |rest, w| rest.wrapping_sub(*w));
        let entries = alias_table(&weights, remainder, index_bits);
        Self { law, entries, index_bits, weights, remainder }
    }

    /// Draws an outcome.
    #[inline]
    pub(crate) fn sample<W: Words>(&self, words: &mut W) -> u64 {
        let outcome = look_up(&self.entries, self.index_bits, words.word());
        if outcome == (1 << self.index_bits) - 1 { self.sample_remainder(words) } else { outcome }
    }

    /// An outcome from the remainder's own law.
    #[cold]
    #[inline(never)]
    fn sample_remainder<W: Words>(&self, words: &mut W) -> u64 {
        let mut uniform = Uniform::with_prefix(words, UBig::ZERO, 0);
        let mut bits = 128;
        loop {
            let (prefix, drawn) = uniform.prefix(bits);
            if let Some(outcome) = self.locate(prefix, drawn) {
                return outcome;
            }
            bits *= 2;
        }
    }

    /// The outcome whose share of the remainder holds every number with this
    /// prefix, or `None` when more digits are needed to tell.
    fn locate(&self, prefix: &UBig, bits: usize) -> Option<u64> {
        // In units of 2^−(64+bits): the uniform number, stretched over the remainder …
        let remainder = UBig::from(self.remainder);
        let from = IBig::from(prefix * &remainder);
        let to = &from + IBig::from(remainder);
        // … and the running sum of the shares.
        let (mut low, mut high) = (IBig::ZERO, IBig::ZERO);
        for (outcome, probability) in self.law.probabilities(64 + bits).enumerate() {
            let stored = IBig::from(self.weights.get(outcome).copied().unwrap_or(0)) << bits;
            low += probability.lower() - &stored;
            high += probability.upper() - &stored;
            if to <= low {
                return Some(outcome as u64);
            }
            if from < high {
                return None;
            }
        }
        None
    }

    /// Every outcome with a stored weight, and that weight in units of 2⁻⁶⁴.
    pub(crate) fn weights(&self) -> &[u64] {
        &self.weights
    }
}

#[inline]
fn look_up(entries: &[u64], index_bits: u32, word: u64) -> u64 {
    let column = word & ((1 << index_bits) - 1);
    let entry = entries[column as usize];
    let alias = entry & ((1 << index_bits) - 1);
    if word >> index_bits < entry >> index_bits { column } else { alias }
}

/// Walker's table by Vose's method, in whole numbers.
///
/// Column i gives i to the words whose high bits are below its threshold, and
/// its alias to the others. The last column stands for the remainder.
fn alias_table(weights: &[u64], remainder: u64, index_bits: u32) -> Box<[u64]> {
    let columns = 1usize << index_bits;
    let capacity = 1u64 << (64 - index_bits);
    let mut left = vec![0u64; columns];
    left[..weights.len()].copy_from_slice(weights);
    left[columns - 1] = remainder;

    let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..columns).partition(|&i| left[i] < capacity);
    // A full column is its own alias; its threshold no longer matters.
    let mut entries: Box<[u64]> = (0..columns as u64).collect();
    while let (Some(poor), Some(&rich)) = (small.pop(), large.last()) {
        entries[poor] = left[poor] << index_bits | rich as u64;
        left[rich] -= capacity - left[poor];
        if left[rich] < capacity {
            large.pop();
            small.push(rich);
        }
    }
    entries
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// How many of the 2⁶⁴ words lead to each outcome, read off the entries.
    pub(crate) fn words_per_outcome(entries: &[u64], index_bits: u32) -> Vec<u128> {
        let capacity = 1u128 << (64 - index_bits);
        let mask = (1u64 << index_bits) - 1;
        let mut counts = vec![0; entries.len()];
        for (column, entry) in entries.iter().enumerate() {
            let threshold = u128::from(entry >> index_bits);
            counts[column] += threshold;
            counts[(entry & mask) as usize] += capacity - threshold;
        }
        counts
    }

    fn check(weights: &[u64], index_bits: u32) {
        let remainder = weights.iter().fold(0u64, |rest, w| rest.wrapping_sub(*w));
        let entries = alias_table(weights, remainder, index_bits);
        let counts = words_per_outcome(&entries, index_bits);
        for (outcome, &weight) in weights.iter().enumerate() {
            assert_eq!(counts[outcome], u128::from(weight));
        }
        assert_eq!(counts[entries.len() - 1], u128::from(remainder));
    }

    #[test]
    fn every_weight_is_met_by_exactly_that_many_words() {
        check(&[1 << 63, 1 << 62, 1 << 61], 2);
        check(&[u64::MAX], 1);
        check(&[1, 2, 3, u64::MAX - 100, 5], 4);
        let uneven: Vec<u64> = (0..1000u64).map(|i| i * i * 50_000_000_000 + 7).collect();
        check(&uneven, 10);
    }

    /// A law with awkward fractions: 1/3, 1/7, and the rest.
    #[derive(Clone, Debug)]
    struct Thirds;

    impl Law for Thirds {
        fn probabilities(&self, bits: usize) -> Box<dyn Iterator<Item = Enclosure> + '_> {
            let fractions = ["1/3", "1/7", "11/21"];
            Box::new(fractions.into_iter().map(move |f| Enclosure::of(&f.parse().unwrap(), bits)))
        }

        fn lower_bounds(&self) -> Box<dyn Iterator<Item = Fraction> + '_> {
            Box::new(self.probabilities(128).map(|p| Fraction::below(&p)))
        }
    }

    /// Words from a list, then zeros.
    pub(crate) struct Script(pub(crate) Vec<u64>);

    impl Words for Script {
        fn word(&mut self) -> u64 {
            if self.0.is_empty() { 0 } else { self.0.remove(0) }
        }
    }

    #[test]
    fn the_remainder_is_shared_as_the_fractions_say() {
        let table = Table::new(Thirds, 2);
        // 2⁶⁴ ≡ 1 (mod 3), ≡ 2 (mod 7), and 11·2⁶⁴ ≡ 8 (mod 21): the shares of the
        // remainder are 1/3, 2/7 and 8/21, which sum to 1.
        assert_eq!(table.remainder, 1);
        let at = |fraction: f64| {
            let word = (fraction * 18446744073709551616.0) as u64;
            table.sample_remainder(&mut Script(vec![word, 0]))
        };
        assert_eq!([at(0.0), at(0.33333), at(0.33334)], [0, 0, 1]);
        assert_eq!([at(0.61904), at(0.61905), at(0.9999)], [1, 2, 2]);
    }

    #[test]
    fn a_prefix_on_a_boundary_asks_for_more_digits_until_it_can_tell() {
        let table = Table::new(Thirds, 2);
        // 0.0101…: the digits of 1/3. After 256 of them the script ends in zeros
        // (below 1/3: outcome 0) or continues with ones (above: outcome 1).
        let third = 0x5555_5555_5555_5555;
        let below = vec![third; 5];
        let mut above = below.clone();
        above.push(u64::MAX);
        assert_eq!(table.sample_remainder(&mut Script(below)), 0);
        assert_eq!(table.sample_remainder(&mut Script(above)), 1);
    }
}
