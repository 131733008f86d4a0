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
//! how often the slow path runs, never the law. So Pr(n) = wₙ/2⁶⁴ + (remainder/2⁶⁴)·
//! (2⁶⁴pₙ − wₙ)/remainder = pₙ.
//!
//! **Work.** One word and one load, whatever the outcome; the slow path is reached
//! with a probability below 2⁻⁵⁰.
//!
//! **References.** \[Walker1977\], \[Vose1991\].

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
        let halves = |x: u128| (x >> 64, x & u128::from(u64::MAX));
        let ((a, b), (c, d)) = (halves(self.0), halves(other.0));
        let ((ad, ad_low), (bc, bc_low), (bd, _)) = (halves(a * d), halves(b * c), halves(b * d));
        let carry = (ad_low + bc_low + bd) >> 64;
        Self(a * c + ad + bc + carry)
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

    /// Threshold and alias of each column, if there are so many columns.
    pub(crate) fn entries<const N: usize>(&self) -> Option<&[u64; N]> {
        self.entries.as_array()
    }

    /// The outcome of a word that falls on this column at a height whose first `known` digits these are: at least one, and not all.
    pub(crate) fn outcome<W: Words>(&self, column: u64, height: u64, known: u32, words: &mut W) -> u64 {
        let open = 64 - self.index_bits - known;
        let rest = words.word() >> (64 - open);
        let word = (height << open | rest) << self.index_bits | column;
        let outcome = look_up(&self.entries, self.index_bits, word);
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
    use demur_exact::Rational;

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

    /// The lines of a file of reference values, split into their columns.
    pub(crate) fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
        text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(',').collect())
    }

    /// Words written in hexadecimal.
    pub(crate) fn hexadecimal(text: &str) -> Vec<u64> {
        text.split(' ').map(|word| u64::from_str_radix(word, 16).unwrap()).collect()
    }

    const TABLES: &str = include_str!("../../tests/data/tables.csv");
    const REMAINDERS: &str = include_str!("../../tests/data/remainders.csv");

    /// The parameters for which there are reference values of a law, each once.
    pub(crate) fn reference_parameters(law: &str) -> Vec<&'static str> {
        let mut found: Vec<_> = rows(TABLES).filter(|row| row[0] == law).map(|row| row[1]).collect();
        found.dedup();
        assert!(!found.is_empty());
        found
    }

    /// How many words of V a table asks for when V is given as so many: 128 digits at first, then
    /// twice as many each time, and the given ones leave the boundary with the last word.
    pub(crate) fn padded(mut words: Vec<u64>) -> Vec<u64> {
        words.resize(words.len().next_power_of_two(), 0);
        words
    }

    impl<L: Law> Table<L> {
        /// A word that falls on this outcome; the last one is the remainder.
        pub(crate) fn word_for(&self, outcome: u64) -> Option<u64> {
            let mask = (1 << self.index_bits) - 1;
            let column = |column: usize, entry: u64| {
                let threshold = entry >> self.index_bits;
                let high = if column as u64 == outcome && threshold > 0 {
                    0
                } else if entry & mask == outcome && threshold < 1 << (64 - self.index_bits) {
                    threshold
                } else {
                    return None;
                };
                Some(high << self.index_bits | column as u64)
            };
            let word = self.entries.iter().enumerate().find_map(|(i, &entry)| column(i, entry));
            word.inspect(|&word| assert_eq!(look_up(&self.entries, self.index_bits, word), outcome))
        }

        /// A word that falls on the remainder.
        pub(crate) fn remainder_word(&self) -> u64 {
            self.word_for((1 << self.index_bits) - 1).unwrap()
        }

        /// The table is what its law says, by the law's own certified probabilities.
        pub(crate) fn check_consistency(&self) {
            let counts = words_per_outcome(&self.entries, self.index_bits);
            let (&rest, stored) = counts.split_last().unwrap();
            assert_eq!(rest, u128::from(self.remainder));
            assert_eq!(counts.iter().sum::<u128>(), 1 << 64);
            assert!(stored[self.weights.len()..].iter().all(|&count| count == 0));
            for (outcome, p) in self.law.probabilities(192).take(self.weights.len()).enumerate() {
                let weight = self.weights[outcome];
                assert_eq!(stored[outcome], u128::from(weight), "words that fall on outcome {outcome}");
                let scaled = IBig::from(weight) << 128;
                assert!(scaled <= *p.lower(), "outcome {outcome}: weight {weight} is above {p:?}");
                let above = scaled + (IBig::from(2u8) << 128);
                assert!(*p.upper() < above, "outcome {outcome}: weight {weight} is too far below {p:?}");
            }
            // The words on both sides of every threshold.
            for (column, entry) in self.entries.iter().enumerate() {
                let (threshold, alias) = (entry >> self.index_bits, entry & ((1 << self.index_bits) - 1));
                let outcome = |high: u64| {
                    look_up(&self.entries, self.index_bits, high << self.index_bits | column as u64)
                };
                assert!(threshold == 0 || outcome(threshold - 1) == column as u64);
                assert_eq!(outcome(threshold), alias);
            }
            assert!(self.remainder <= 2 * self.weights.len() as u64 + 2, "remainder {}", self.remainder);
        }

        /// The table is what an independent computation says: selected weights, the
        /// remainder, and outcomes of the slow path. Returns the numbers of comparisons.
        pub(crate) fn check_against_reference(&self, law: [&str; 4]) -> (usize, usize) {
            self.check_consistency();
            let [mut weights, mut outcomes] = [0; 2];
            for row in rows(TABLES).filter(|row| row[..4] == law) {
                assert_eq!(row[4], self.index_bits.to_string(), "{law:?}");
                let outcome: usize = row[5].parse().unwrap();
                let p: Rational = row[6].parse().unwrap();
                let missing = &(&p * &Rational::power_of_two(64)) - &Rational::from(self.weights[outcome]);
                let small = !missing.is_negative() && missing < Rational::from(2u32);
                assert!(small, "{law:?}: outcome {outcome} lacks {}", missing.to_f64());
                weights += 1;
            }
            for row in rows(REMAINDERS).filter(|row| row[..4] == law) {
                // With every weight at most ⌊2⁶⁴p⌋, an equal sum makes all of them equal.
                assert_eq!(row[4], self.remainder.to_string(), "{law:?}");
                let script = [vec![self.remainder_word()], hexadecimal(row[5])].concat();
                let outcome = self.sample(&mut Script(script));
                assert_eq!(outcome.to_string(), row[6], "{law:?} at {}", row[5]);
                outcomes += 1;
            }
            (weights, outcomes)
        }

        /// A number that has left a boundary of this law after so many words, and its outcome.
        pub(crate) fn reference_outcome(&self, law: [&str; 4], words: usize) -> (Vec<u64>, u64) {
            let row = rows(REMAINDERS)
                .filter(|row| row[..4] == law)
                .find(|row| row[5].split(' ').count() == words)
                .unwrap();
            let script = [vec![self.remainder_word()], padded(hexadecimal(row[5]))].concat();
            (script, row[6].parse().unwrap())
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
