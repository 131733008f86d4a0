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
//! **Exactness.** The uniform number V that decides is drawn lazily. V < 1 − x settles
//! nearly all cases, most of them for the largest x of the bucket, which is stored; otherwise e^(−x) is computed in 64-bit fixed point with a
//! proven error; otherwise, about once in 10¹⁶ draws, with as many digits
//! as it takes.
//!
//! **References.** \[Canonne2020\].

use std::sync::OnceLock;

use dashu_int::UBig;
use demur_exact::Rational;

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
        match self.method() {
            Method::Direct(table) => out.iter_mut().for_each(|z| *z = unfold(table.sample(words)).into()),
            Method::Buckets(buckets) => out.iter_mut().for_each(|z| *z = buckets.sample(words)),
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
#[derive(Clone, Debug)]
struct Buckets {
    table: Table<Symmetric>,
    /// w = 2^width_log2.
    width_log2: u32,
    acceptance: Acceptance,
    /// For each usual bucket: V below this, in units of 2⁻⁶⁴, keeps every candidate in it.
    sure: Box<[u64]>,
}

impl Buckets {
    fn new(variance: &Rational, rate: Rational) -> Self {
        let sigma_log2 = variance.floor_log2().div_euclid(2);
        let width_log2 = (sigma_log2 - BUCKETS_PER_SIGMA_LOG2) as u32;
        let bucket_rate = &rate * &Rational::power_of_two(2 * i64::from(width_log2));
        // σ/w ≤ 64 and 9.5σ of reach: fewer than 2¹⁰ buckets.
        let bell = Symmetric { rate: bucket_rate, shape: Shape::Bell, signed: false, limit: None };
        // Z² − (wB)² ≤ w²(2B + 1) < 2^(2·width_log2 + 11), and w²/2σ² ≤ 2⁻¹¹: x < 1.
        let acceptance = Acceptance::new(rate, 2 * width_log2 + 11);
        // |Z| ≤ w(B + 1), so that no gap in the bucket is larger.
        let largest = |bucket: u64| u128::from(2 * bucket + 1) << (2 * width_log2);
        let sure = (0..USUAL_BUCKETS).map(|bucket| acceptance.sure_below(largest(bucket))).collect();
        Self { table: Table::new(bell, 10), width_log2, acceptance, sure }
    }

    #[inline]
    fn sample<W: Words>(&self, words: &mut W) -> i128 {
        loop {
            let bucket = self.table.sample(words);
            if let Some(&sure) = self.sure.get(bucket as usize) {
                let word = words.word();
                if word | ((2 << self.width_log2) - 1) < sure {
                    return self.kept(bucket, word).into();
                }
                if let Some(value) = self.compare(bucket, word, words) {
                    return value;
                }
            } else if let Some(value) = self.sample_far_out(bucket, words) {
                return value;
            }
        }
    }

    /// The value of the candidate in a usual bucket, where it has fewer than 56 bits.
    #[inline]
    fn kept(&self, bucket: u64, word: u64) -> i64 {
        let place = word & ((1 << self.width_log2) - 1);
        let sign = (word >> self.width_log2) & 1;
        ((bucket << self.width_log2) + place) as i64 ^ -(sign as i64)
    }

    /// The candidate, if it is kept.
    #[cold]
    #[inline(never)]
    fn compare<W: Words>(&self, bucket: u64, word: u64, words: &mut W) -> Option<i128> {
        let candidate = self.candidate(bucket, word);
        // The bits left over begin V.
        let (prefix, known) = (word >> (self.width_log2 + 1), 63 - self.width_log2);
        self.acceptance.keeps(candidate.gap(), prefix, known, words).then(|| candidate.value())
    }

    fn candidate(&self, bucket: u64, word: u64) -> Candidate {
        Candidate {
            base: u128::from(bucket) << self.width_log2,
            place: word & ((1 << self.width_log2) - 1),
            sign: (word >> self.width_log2) & 1,
        }
    }

    /// The same for a bucket beyond the table, where x may exceed 1.
    #[cold]
    #[inline(never)]
    fn sample_far_out<W: Words>(&self, bucket: u64, words: &mut W) -> Option<i128> {
        let candidate = self.candidate(bucket, words.word());
        let mut uniform = Uniform::with_prefix(words, UBig::ZERO, 0);
        self.acceptance.keeps_exactly(candidate.gap(), &mut uniform).then(|| candidate.value())
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
            let place = noise.buckets().table.word_for(bucket).unwrap();
            let script = [vec![place], hexadecimal(row[4])].concat();
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
        let mut script = [vec![buckets.table.remainder_word()], hexadecimal(row[5]), vec![0]].concat();
        let (place, sign) = (123u64, 1u64);
        script.push(place | sign << buckets.width_log2);
        let expected = -1 - ((1000i128 << buckets.width_log2) + i128::from(place));
        assert_eq!(noise.sample(&mut Script(script.clone())), expected);
        // The same candidate with V all but 1 is dropped, and the next draw is an ordinary one.
        script.extend([u64::MAX, u64::MAX]);
        assert_ne!(noise.sample(&mut Script(script)), expected);
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
