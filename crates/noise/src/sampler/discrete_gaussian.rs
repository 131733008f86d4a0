//! [`DiscreteGaussian`]: bell-shaped noise on the whole numbers.
//!
//! **Definition.** For σ > 0 the noise Z is the integer k with probability
//!
//! ```text
//! Pr[Z = k] = exp(−k² / 2σ²) / Σⱼ exp(−j² / 2σ²)
//! ```
//!
//! **Guarantee.** Added to every coordinate of a vector of whole numbers that moves by
//! at most Δ₂ in ℓ2, it costs ρ = Δ₂²/2σ² of zero-concentrated privacy; the
//! (ε, δ) it gives is computed in [`crate::Gaussian`].
//!
//! **Sampling.** Small σ: one [`Table`] over 0, −1, 1, −2, 2, … Large σ: with a
//! power of two w ≤ σ/32, draw a bucket B ≥ 0 from the table with weights
//! e^(−(wB)²/2σ²), a place L uniform in [0, w) and a fair sign. The candidate is
//! Z = wB + L, or −1 − wB − L when the sign is set; it is kept with probability
//! e^(−x), x = (Z² − (wB)²)/2σ². Every candidate was proposed with weight
//! e^(−(wB)²/2σ²), so kept ones have weight e^(−Z²/2σ²). About 99 in 100 are kept,
//! and how many were not says nothing about the one that was.
//!
//! **Exactness.** One word holds the table's column, L, the sign, and the first digits of two uniform numbers: the height at which the
//! word falls in its column, and V, which decides whether the candidate is kept. Both are drawn lazily. Nearly always these digits settle it: they are not those of
//! the column's threshold, and V lies below 1 − x for the largest x of the bucket, which is stored. Otherwise more digits of the height follow, and V < 1 − x is
//! asked of the candidate's own x; then e^(−x) is computed in 64-bit fixed point with a proven error; then, about once in 10¹⁶ draws, with
//! as many digits as it takes.
//!
//! **References.** \[Canonne2020\].

use std::sync::OnceLock;

use demur_exact::{Rational, widest};

use crate::NoiseError;
use crate::sampler::acceptance::Acceptance;
use crate::sampler::symmetric::{Shape, Symmetric, unfold};
use crate::sampler::table::{MAX_INDEX_BITS, Table};
use crate::sampler::words::{Uniform, Words};

/// σ = 2⁵⁰ is the greatest; buckets are then 2⁴⁵ wide.
const MAX_SIGMA_LOG2: i64 = 50;
/// Buckets are between σ/64 and σ/32 wide.
const BUCKETS_PER_SIGMA_LOG2: i64 = 5;
/// Buckets below this have x < 1; the law gives the others less than 2⁻⁶⁴.
const USUAL_BUCKETS: u64 = 1000;
/// The table has 2¹⁰ columns.
const INDEX_BITS: u32 = 10;
const COLUMNS: usize = 1 << INDEX_BITS;
/// Values drawn at once.
const BLOCK: usize = 128;

/// Discrete Gaussian noise; see the module text.
///
/// ```
/// use demur_noise::{DiscreteGaussian, Entropy};
/// let noise = DiscreteGaussian::new("12.25".parse()?)?; // σ² = 12.25, σ = 3.5
/// let draw: i128 = noise.sample(&mut Entropy::from_os()?);
/// assert!(draw.abs() < 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DiscreteGaussian {
    variance: Rational,
    /// Made when the first value is drawn: a price needs none.
    method: OnceLock<Method>,
}

#[derive(Clone, Debug)]
enum Method {
    /// Outcomes 0, −1, 1, −2, … straight from a table.
    Direct(Table<Symmetric>),
    /// A bucket from a table, a place in it, and a lazy comparison.
    Buckets(Buckets),
}

impl DiscreteGaussian {
    /// The least variance that can be sampled: 2⁻⁴⁰.
    pub fn min_variance() -> Rational {
        Rational::power_of_two(-40)
    }

    /// The greatest variance that can be sampled: 2¹⁰⁰, σ = 2⁵⁰.
    pub fn max_variance() -> Rational {
        Rational::power_of_two(2 * MAX_SIGMA_LOG2)
    }

    /// Noise with parameter σ² = `variance`, between 2⁻⁴⁰ and 2¹⁰⁰.
    pub fn new(variance: Rational) -> Result<Self, NoiseError> {
        Self::check_variance(&variance)?;
        Ok(Self { variance, method: OnceLock::new() })
    }

    fn method(&self) -> &Method {
        self.method.get_or_init(|| Method::new(&self.variance))
    }

    /// Refuses a variance that cannot be sampled.
    pub(crate) fn check_variance(variance: &Rational) -> Result<(), NoiseError> {
        let what = "the variance of discrete Gaussian noise";
        NoiseError::check_range(what, variance, &Self::min_variance(), &Self::max_variance())
    }

    /// The parameter σ²: the variance of the continuous law of the same shape.
    pub fn variance(&self) -> &Rational {
        &self.variance
    }

    /// Draws one value.
    #[inline]
    pub fn sample<W: Words>(&self, words: &mut W) -> i128 {
        match self.method() {
            Method::Direct(table) => unfold(table.sample(words)).into(),
            Method::Buckets(buckets) => buckets.sample(words),
        }
    }

    /// Draws as many values as `out` holds.
    pub fn fill<W: Words>(&self, words: &mut W, out: &mut [i128]) {
        self.fill_with(words, out, |value| value);
    }

    /// The same modulo 2⁶⁴. Added with [`i64::wrapping_add`] it makes the noisy sum modulo 2⁶⁴, which is less than the noisy sum.
    pub fn fill_wrapping<W: Words>(&self, words: &mut W, out: &mut [i64]) {
        self.fill_with(words, out, |value| value as i64);
    }

    fn fill_with<W: Words, T: From<i64>>(&self, words: &mut W, out: &mut [T], of: impl Fn(i128) -> T) {
        match self.method() {
            Method::Direct(table) => out.iter_mut().for_each(|z| *z = unfold(table.sample(words)).into()),
            Method::Buckets(buckets) => {
                let block = &mut Block::default();
                out.chunks_mut(BLOCK).for_each(|out| buckets.fill(words, block, out, &of));
            }
        }
    }
}

impl Method {
    fn new(variance: &Rational) -> Self {
        let rate = (variance * &Rational::from(2u32)).recip();
        // 9.5σ on both sides hold all but 2^−64 of the law: 19σ outcomes, and 19² < 2^9.
        let reach_log2 = (variance.floor_log2() + 1 + 9).max(2) as u32;
        let index_bits = reach_log2.div_ceil(2);
        let bell = Symmetric { rate: rate.clone(), shape: Shape::Bell, signed: true, limit: None };
        if index_bits <= MAX_INDEX_BITS {
            return Self::Direct(Table::new(bell, index_bits));
        }
        Self::Buckets(Buckets::new(variance, rate))
    }
}

/// The sampler for large σ.
///
/// One word proposes a value. From its lowest bits upward:
///
/// ```text
/// column of the table | place  | sign | first digits of the height in the column | first digits of V
///         10          | log₂ w |  1   |               height_bits                |     the rest
/// ```
#[derive(Clone, Debug)]
struct Buckets {
    table: Table<Symmetric>,
    /// w = 2^width_log2.
    width_log2: u32,
    height_bits: u32,
    acceptance: Acceptance,
    /// For each usual bucket: V below this, in units of 2⁻⁶⁴, keeps every candidate in it. For the others 0: nothing is sure.
    sure: Box<[u64; COLUMNS]>,
}

impl Buckets {
    fn new(variance: &Rational, rate: Rational) -> Self {
        let sigma_log2 = variance.floor_log2().div_euclid(2);
        let width_log2 = (sigma_log2 - BUCKETS_PER_SIGMA_LOG2) as u32;
        // At least 8 digits are left.
        let height_bits = (63 - INDEX_BITS - width_log2) / 2;
        let bucket_rate = &rate * &Rational::power_of_two(2 * i64::from(width_log2));
        // σ/w ≤ 64 and 9.5σ of reach: fewer than 2¹⁰ buckets.
        let bell = Symmetric { rate: bucket_rate, shape: Shape::Bell, signed: false, limit: None };
        // Z² − (wB)² ≤ w²(2B + 1) < 2^(2·width_log2 + 11), and w²/2σ² ≤ 2⁻¹¹: x < 1.
        let acceptance = Acceptance::new(rate, 2 * width_log2 + 11);
        // |Z| ≤ w(B + 1), so that no gap in the bucket is larger.
        let largest = |bucket: u64| u128::from(2 * bucket + 1) << (2 * width_log2);
        let mut sure = Box::new([0; COLUMNS]);
        for (sure, bucket) in sure.iter_mut().zip(0..USUAL_BUCKETS) {
            *sure = acceptance.sure_below(largest(bucket));
        }
        Self { table: Table::new(bell, INDEX_BITS), width_log2, height_bits, acceptance, sure }
    }

    #[inline]
    fn sample<W: Words>(&self, words: &mut W) -> i128 {
        let word = words.word();
        let column = word as usize % COLUMNS;
        match self.table.entries::<COLUMNS>() {
            Some(entries) => {
                let (bucket, open) = self.bucket(word, entries[column]);
                let (value, doubt) = self.value(word, bucket, self.sure[bucket as usize % COLUMNS]);
                if open | doubt { self.finish(word, words) } else { value.into() }
            }
            None => self.finish(word, words),
        }
    }

    /// At most [`BLOCK`] values: all at once, and then one by one those that their word alone does not decide.
    fn fill<W: Words, T: From<i64>>(
        &self,
        words: &mut W,
        block: &mut Block,
        out: &mut [T],
        of: impl Fn(i128) -> T,
    ) {
        let Block { drawn, loaded, buckets, values, open } = block;
        words.fill(&mut drawn[..out.len()]);
        match self.table.entries::<COLUMNS>() {
            Some(entries) => widest!({
                for at in 0..BLOCK {
                    loaded[at] = entries[drawn[at] as usize % COLUMNS];
                }
                for at in 0..BLOCK {
                    (buckets[at], open[at]) = self.bucket(drawn[at], loaded[at]);
                }
                for at in 0..BLOCK {
                    loaded[at] = self.sure[buckets[at] as usize % COLUMNS];
                }
                for at in 0..BLOCK {
                    let (value, doubt) = self.value(drawn[at], buckets[at], loaded[at]);
                    values[at] = value;
                    open[at] |= doubt;
                }
                for (out, value) in out.iter_mut().zip(&*values) {
                    *out = (*value).into();
                }
            }),
            None => open.fill(true),
        }
        for (few, first) in open[..out.len()].chunks(16).zip((0..).step_by(16)) {
            if few.contains(&true) {
                for (place, _) in (first..).zip(few).filter(|(_, open)| **open) {
                    out[place] = of(self.finish(drawn[place], words));
                }
            }
        }
    }

    /// The bucket of a word that falls on a column with this entry, unless its height is not known well enough.
    #[inline(always)]
    fn bucket(&self, word: u64, entry: u64) -> (u64, bool) {
        let (height, threshold) = (self.height(word), entry >> (64 - self.height_bits));
        let mask = COLUMNS as u64 - 1;
        ((if height < threshold { word } else { entry }) & mask, height == threshold)
    }

    /// The value that a word proposes in a usual bucket, where it has fewer than 56 bits; and whether V is not surely below this.
    #[inline(always)]
    fn value(&self, word: u64, bucket: u64, sure: u64) -> (i64, bool) {
        let first_of_v = self.width_log2 + self.height_bits + INDEX_BITS + 1;
        let highest_v = word | ((1 << first_of_v) - 1);
        let value = (bucket << self.width_log2) + self.place(word);
        (value as i64 ^ -(self.sign(word) as i64), highest_v >= sure)
    }

    /// The value that comes of a word which does not decide by itself.
    #[cold]
    #[inline(never)]
    fn finish<W: Words>(&self, mut word: u64, words: &mut W) -> i128 {
        loop {
            if let Some(value) = self.attempt(word, words) {
                return value;
            }
            word = words.word();
        }
    }

    #[inline(always)]
    fn place(&self, word: u64) -> u64 {
        word >> INDEX_BITS & ((1 << self.width_log2) - 1)
    }

    #[inline(always)]
    fn sign(&self, word: u64) -> u64 {
        word >> (INDEX_BITS + self.width_log2) & 1
    }

    /// The first digits of the height in the column.
    #[inline(always)]
    fn height(&self, word: u64) -> u64 {
        word >> (INDEX_BITS + self.width_log2 + 1) & ((1 << self.height_bits) - 1)
    }

    /// The value that a word and what follows it propose, if it is kept.
    fn attempt<W: Words>(&self, word: u64, words: &mut W) -> Option<i128> {
        let column = word % COLUMNS as u64;
        let bucket = self.table.outcome(column, self.height(word), self.height_bits, words);
        let (place, sign) = (self.place(word), self.sign(word));
        let candidate = Candidate { base: u128::from(bucket) << self.width_log2, place, sign };
        // The bits left over begin V.
        let known = 63 - INDEX_BITS - self.width_log2 - self.height_bits;
        let prefix = word >> (64 - known);
        let is_kept = if bucket < USUAL_BUCKETS {
            self.acceptance.keeps(candidate.gap(), prefix, known, words)
        } else {
            // x may exceed 1.
            let mut uniform = Uniform::with_prefix(words, prefix.into(), known as usize);
            self.acceptance.keeps_exactly(candidate.gap(), &mut uniform)
        };
        is_kept.then(|| candidate.value())
    }
}

/// Room for what is drawn at once.
struct Block {
    drawn: [u64; BLOCK],
    /// What is stored for their columns, and then for their buckets.
    loaded: [u64; BLOCK],
    buckets: [u64; BLOCK],
    values: [i64; BLOCK],
    /// Which are not decided by their word.
    open: [bool; BLOCK],
}

impl Default for Block {
    fn default() -> Self {
        Self {
            drawn: [0; BLOCK],
            loaded: [0; BLOCK],
            buckets: [0; BLOCK],
            values: [0; BLOCK],
            open: [false; BLOCK],
        }
    }
}

/// A value proposed by the bucket sampler.
struct Candidate {
    base: u128,
    place: u64,
    sign: u64,
}

impl Candidate {
    #[inline]
    fn value(&self) -> i128 {
        (self.base as i128 + i128::from(self.place)) ^ -i128::from(self.sign)
    }

    /// Z² − (wB)², where |Z| = wB + L + sign.
    #[inline]
    fn gap(&self) -> u128 {
        let step = u128::from(self.place + self.sign);
        step * (2 * self.base + step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::table::tests::{Script, hexadecimal, reference_parameters, rows};
    use proptest::prelude::*;

    const ACCEPTANCE: &str = include_str!("../../tests/data/acceptance.csv");

    /// Words that look like chance: SplitMix64.
    #[derive(Clone)]
    struct Mixed(u64);

    impl Words for Mixed {
        fn word(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let a = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let b = (a ^ a >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            b ^ b >> 31
        }
    }

    impl DiscreteGaussian {
        /// The one table, and the width of its buckets.
        fn table(&self) -> (&Table<Symmetric>, Option<u32>) {
            match self.method() {
                Method::Direct(table) => (table, None),
                Method::Buckets(buckets) => (&buckets.table, Some(buckets.width_log2)),
            }
        }

        fn buckets(&self) -> &Buckets {
            match self.method() {
                Method::Buckets(buckets) => buckets,
                Method::Direct(_) => unreachable!(),
            }
        }
    }

    impl Buckets {
        /// The words that propose a value: the column and height of `fall`, then, if they are given, the words of a remainder, then the place, the sign and
        /// V's digits, which `words` begin with from their lowest bits upward, as the reference values do.
        fn script(&self, fall: u64, remainder: Vec<u64>, words: &[u64]) -> Vec<u64> {
            let (column, height) = (fall % COLUMNS as u64, fall >> INDEX_BITS);
            let placed = self.width_log2 + 1;
            let height_open = 64 - INDEX_BITS - self.height_bits;
            let v_known = 63 - INDEX_BITS - self.width_log2 - self.height_bits;
            let mut digits: Vec<u64> =
                (0..64 - placed).rev().map(|at| words[0] >> placed >> at & 1).collect();
            digits.extend(words[1..].iter().flat_map(|word| (0..64).rev().map(move |at| word >> at & 1)));
            let number = |digits: &[u64]| digits.iter().fold(0, |number, digit| number << 1 | digit);
            let (first, later) = digits.split_at(v_known as usize);
            let word = number(first) << (64 - v_known)
                | height >> height_open << (INDEX_BITS + placed)
                | (words[0] & ((1 << placed) - 1)) << INDEX_BITS
                | column;
            let mut script = [vec![word, height << (64 - height_open)], remainder].concat();
            script.extend(later.chunks(64).map(|chunk| number(chunk) << (64 - chunk.len())));
            script
        }

        fn at_once(&self, word: u64) -> Option<i64> {
            let entries = self.table.entries::<COLUMNS>().unwrap();
            let (bucket, open) = self.bucket(word, entries[word as usize % COLUMNS]);
            let (value, doubt) = self.value(word, bucket, self.sure[bucket as usize]);
            (!open && !doubt).then_some(value)
        }
    }

    fn gaussian(variance: &str) -> DiscreteGaussian {
        DiscreteGaussian::new(variance.parse().unwrap()).unwrap()
    }

    /// Variances from 2⁻⁴⁰ to 2¹⁰⁰: weights, remainders and slow paths.
    #[test]
    fn every_table_agrees_with_an_independent_computation() {
        for variance in reference_parameters("gaussian") {
            let noise = gaussian(variance);
            let (table, width) = noise.table();
            let width = width.map_or("direct".to_owned(), |width| width.to_string());
            let (weights, outcomes) = table.check_against_reference(["gaussian", variance, &width, ""]);
            assert!(weights > 0 && outcomes > 0, "{variance}");
        }
    }

    #[test]
    fn a_direct_draw_can_come_from_the_remainder() {
        for words in [2, 3, 7] {
            let noise = gaussian("49/4");
            let law = ["gaussian", "49/4", "direct", ""];
            let (script, outcome) = noise.table().0.reference_outcome(law, words);
            assert_eq!(noise.sample(&mut Script(script)), i128::from(unfold(outcome)));
        }
    }

    /// V follows e^(−x) for up to 384 digits and leaves it below or above.
    #[test]
    fn proposed_values_are_kept_as_an_independent_computation_says() {
        let (mut kept, mut dropped) = (0, 0);
        for row in rows(ACCEPTANCE).filter(|row| row[0] == "gaussian") {
            let noise = gaussian(row[1]);
            let (bucket, value): (u64, i128) = (row[2].parse().unwrap(), row[3].parse().unwrap());
            let fall = noise.buckets().table.word_for(bucket).unwrap();
            let script = noise.buckets().script(fall, vec![], &hexadecimal(row[4]));
            let drawn = noise.sample(&mut Script(script));
            if row[5] == "1" {
                assert_eq!(drawn, value, "{row:?}");
                kept += 1;
            } else {
                assert_ne!(drawn, value, "{row:?}");
                dropped += 1;
            }
        }
        assert!(kept >= 40 && dropped >= 40);
    }

    /// Bucket 1000 has a probability of 2⁻¹⁷⁶; the remainder leads to it all the same.
    #[test]
    fn buckets_beyond_the_usual_ones_are_drawn_and_compared() {
        let variance = "119683656141848288295911424/25";
        let noise = gaussian(variance);
        let buckets = noise.buckets();
        let row = rows(include_str!("../../tests/data/remainders.csv"))
            .find(|row| row[1] == variance && row[6] == "1000")
            .unwrap();
        let remainder = [hexadecimal(row[5]), vec![0]].concat();
        let (place, sign) = (123u64, 1u64);
        let placed = place | sign << buckets.width_log2;
        let script = |words: &[u64]| buckets.script(buckets.table.remainder_word(), remainder.clone(), words);
        let expected = -1 - ((1000i128 << buckets.width_log2) + i128::from(place));
        assert_eq!(noise.sample(&mut Script(script(&[placed]))), expected);
        // The same candidate with V all but 1 is dropped, and the next draw is an ordinary one.
        let far = !((2 << buckets.width_log2) - 1) | placed;
        assert_ne!(noise.sample(&mut Script(script(&[far, u64::MAX, u64::MAX]))), expected);
    }

    /// Whatever follows a word that decides by itself, digit by digit the same value would have come; and words in all columns do decide.
    #[test]
    fn what_a_word_decides_no_digit_that_follows_can_change() {
        let words = &mut Mixed(77);
        for (variance, least) in
            [("1000000", 0.97), ("2251799813685248.5", 0.97), ("1e26", 0.9), ("1e30", 0.8)]
        {
            let variance: Rational = variance.parse().unwrap();
            let noise = DiscreteGaussian::new(variance).unwrap();
            let buckets = noise.buckets();
            let (mut decided, mut columns) = (0, vec![false; COLUMNS]);
            for _ in 0..40_000 {
                let word = words.word();
                let Some(value) = buckets.at_once(word) else { continue };
                for next in [0, u64::MAX, words.word()] {
                    assert_eq!(buckets.attempt(word, &mut Script(vec![next; 20])), Some(value.into()));
                }
                decided += 1;
                columns[word as usize % COLUMNS] = true;
            }
            assert!(f64::from(decided) > least * 40_000.0, "{decided} of 40000 at {}", noise.variance());
            assert!(columns.iter().filter(|column| **column).count() > COLUMNS - 30);
        }
    }

    /// The height in a column is compared with its threshold to the last digit.
    #[test]
    fn words_at_a_threshold_fall_on_the_right_side_of_it() {
        for variance in ["1000000", "1e26", "1e30"] {
            let noise = gaussian(variance);
            let buckets = noise.buckets();
            let entries = buckets.table.entries::<COLUMNS>().unwrap();
            let of = |fall: u64| {
                let script = buckets.script(fall, vec![], &[5]);
                assert_eq!(buckets.at_once(script[0]), None, "the first digits leave it open");
                noise.sample(&mut Script(script))
            };
            let mut seen = 0;
            for (column, entry) in entries.iter().enumerate().take(300) {
                let (threshold, alias) = (entry >> INDEX_BITS, entry % COLUMNS as u64);
                // Both sides of it begin with the same digits, unless these are all that differ.
                if alias == column as u64 || threshold % (1 << (64 - INDEX_BITS - buckets.height_bits)) == 0 {
                    continue;
                }
                let fall = |height: u64| height << INDEX_BITS | column as u64;
                let value = |bucket: u64| (i128::from(bucket) << buckets.width_log2) + 5;
                assert_eq!(of(fall(threshold - 1)), value(column as u64));
                assert_eq!(of(fall(threshold)), value(alias));
                seen += 1;
            }
            assert!(seen > 100, "{seen}");
        }
    }

    /// Many at once are the same as one by one, if all take their first word before any takes a second.
    #[test]
    fn blocks_are_made_of_single_draws() {
        for variance in ["1000000", "1e26", "1e30"] {
            let noise = gaussian(variance);
            let buckets = noise.buckets();
            let (mut many, mut single) = (Mixed(5), Mixed(5));
            for count in [1, 2, 63, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7] {
                let mut expected = Vec::new();
                for start in (0..count).step_by(BLOCK) {
                    let drawn: Vec<u64> = (start..count.min(start + BLOCK)).map(|_| single.word()).collect();
                    let one = |&word: &u64| {
                        let value = buckets.at_once(word).map(i128::from);
                        value.unwrap_or_else(|| buckets.finish(word, &mut single))
                    };
                    expected.extend(drawn.iter().map(one).collect::<Vec<_>>());
                }
                let (mut wide, mut narrow) = (vec![0; count], vec![0; count]);
                let again = &mut many.clone();
                noise.fill(&mut many, &mut wide);
                noise.fill_wrapping(again, &mut narrow);
                assert_eq!(wide, expected);
                assert_eq!(narrow.iter().map(|&value| i128::from(value)).collect::<Vec<_>>(), expected);
            }
        }
    }

    /// |Z| is wB + L on one side and wB + L + 1 on the other.
    #[test]
    fn candidates_know_their_distance_from_zero() {
        for (base, place, sign, value) in [(0, 0, 0, 0), (0, 0, 1, -1), (64, 5, 0, 69), (64, 5, 1, -70)] {
            let candidate = Candidate { base, place, sign };
            assert_eq!(candidate.value(), value);
            assert_eq!(candidate.gap(), (value * value) as u128 - base * base);
        }
    }

    #[test]
    fn variances_outside_the_range_are_refused() {
        for variance in ["0", "-1", "1/1099511627777", "1267650600228229401496703205377"] {
            assert_eq!(DiscreteGaussian::new(variance.parse().unwrap()).unwrap_err().code(), "noise.range");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn tables_of_any_variance_are_consistent(above in 1u64..1 << 40, log in -80i64..60) {
            let variance = &Rational::from(above) * &Rational::power_of_two(log);
            if let Ok(noise) = DiscreteGaussian::new(variance) {
                noise.table().0.check_consistency();
            }
        }
    }
}
