//! [`Bernoulli`]: a coin with an exact bias, tossed one at a time or 64 at once.
//!
//! **Definition.** True with probability p, for any [`Probability`].
//!
//! **Sampling.** Toss = "V < p" for a uniform V whose digits are drawn as needed. One
//! toss compares 64 digits at a time. 64 tosses walk p's digits from the top
//! with one word per digit, one bit of it for each toss: a toss is decided at the
//! first digit where V and p differ, true if p has the 1. After d digits a toss
//! is open with probability 2^−d, so about 8 words decide 64 tosses. How
//! long that takes depends on where V left p, never on which way.
//!
//! **Exactness.** 128 digits are stored; when a V follows p further, more are computed.

use dashu_int::{IBig, UBig};

use crate::sampler::probability::Probability;
use crate::sampler::words::{Uniform, Words};

/// Digits of p kept ready.
const STORED: usize = 128;

/// An exactly biased coin; see the module text.
///
/// ```
/// use demur_noise::{Bernoulli, Entropy, Probability};
/// let coin = Bernoulli::new(Probability::ratio("1/3".parse()?)?);
/// let mut entropy = Entropy::from_os()?;
/// let one: bool = coin.sample(&mut entropy);
/// let sixty_four: u64 = coin.sample_64(&mut entropy);
/// # let _ = (one, sixty_four);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bernoulli {
    probability: Probability,
    digits: u128,
}

impl Bernoulli {
    /// A coin that is true with this probability.
    pub fn new(probability: Probability) -> Self {
        let digits = probability.first_digits();
        Self { probability, digits }
    }

    /// The bias.
    pub fn probability(&self) -> &Probability {
        &self.probability
    }

    /// Tosses once.
    #[inline]
    pub fn sample<W: Words>(&self, words: &mut W) -> bool {
        let word = words.word();
        let digits = (self.digits >> 64) as u64;
        if word != digits { word < digits } else { self.sample_slowly(words) }
    }

    /// Goes on after the first 64 digits of V and p were found equal.
    #[cold]
    #[inline(never)]
    fn sample_slowly<W: Words>(&self, words: &mut W) -> bool {
        let first = UBig::from((self.digits >> 64) as u64);
        Uniform::with_prefix(words, first, 64).is_below(|bits| self.probability.enclose(bits))
    }

    /// Tosses 64 times; bit i of the result is the i-th toss.
    #[inline]
    pub fn sample_64<W: Words>(&self, words: &mut W) -> u64 {
        let mut outcome = 0;
        let mut open = u64::MAX;
        let mut index = 0;
        while open != 0 {
            let digit = if self.digit(index) { u64::MAX } else { 0 };
            let word = words.word();
            // Decided now: true where p has the 1.
            outcome |= open & digit & !word;
            open &= !(digit ^ word);
            index += 1;
        }
        outcome
    }

    /// The digit of p at 2^−(index + 1).
    #[inline]
    fn digit(&self, index: usize) -> bool {
        if index < STORED { self.digits >> (STORED - 1 - index) & 1 == 1 } else { self.later_digit(index) }
    }

    #[cold]
    #[inline(never)]
    fn later_digit(&self, index: usize) -> bool {
        let mut extra = 64;
        loop {
            let p = self.probability.enclose(index + 1 + extra);
            // p is below 1, even where its upper bound is not.
            let highest = (IBig::ONE << (index + 1)) - IBig::ONE;
            let (low, high) = (p.lower() >> extra, (p.upper() >> extra).min(highest));
            if low == high {
                return low & IBig::ONE == IBig::ONE;
            }
            extra *= 2;
        }
    }

    /// Tosses 64 times for each word of `out`.
    pub fn fill<W: Words>(&self, words: &mut W, out: &mut [u64]) {
        out.iter_mut().for_each(|tosses| *tosses = self.sample_64(words));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::probability::tests::references;
    use crate::sampler::table::tests::Script;

    /// V follows p for up to 448 digits, then goes on with zeros (below) or ones (above).
    #[test]
    fn a_toss_that_follows_its_bias_is_decided_where_it_leaves() {
        for (p, words) in references() {
            let coin = Bernoulli::new(p.clone());
            for followed in 0..8 {
                let toss = |next: u64| {
                    let script = [&words[..followed], &[next]].concat();
                    (words[followed] != next).then(|| coin.sample(&mut Script(script)))
                };
                // Zeros to the end can only be told from p if p goes on with something else.
                if words[followed..].iter().any(|&word| word != 0) {
                    assert_ne!(toss(0), Some(false), "{p:?} after {followed} words");
                }
                assert_ne!(toss(u64::MAX), Some(true), "{p:?} after {followed} words");
                // Right below and right above.
                if let Some(below) = words[followed].checked_sub(1) {
                    assert_eq!(toss(below), Some(true), "{p:?} after {followed} words");
                }
                if let Some(above) = words[followed].checked_add(1) {
                    assert_eq!(toss(above), Some(false), "{p:?} after {followed} words");
                }
            }
        }
    }

    /// Lane i follows p for 7·i digits, up to 441, and then does the opposite.
    #[test]
    fn each_of_sixty_four_tosses_is_decided_where_it_leaves() {
        for (p, words) in references() {
            let digit = |index: usize| words[index / 64] >> (63 - index % 64) & 1;
            let coin = Bernoulli::new(p.clone());
            let script: Vec<u64> = (0..512)
                .map(|index| {
                    let lane = |i: usize| digit(index) ^ u64::from(index == 7 * i);
                    (0..64).map(|i| lane(i) << i).sum()
                })
                .collect();
            let mut source = Script(script);
            let tosses = coin.sample_64(&mut source);
            for i in 0..64 {
                // Where p has a 1, V has the 0 and is below.
                assert_eq!(tosses >> i & 1, digit(7 * i), "{p:?}, toss {i}");
            }
            assert_eq!(source.0.len(), 512 - 442, "no more words than it takes");
        }
    }

    #[test]
    fn digits_beyond_the_stored_ones_are_those_of_the_bias() {
        for (p, words) in references() {
            let coin = Bernoulli::new(p);
            for index in 0..512 {
                assert_eq!(coin.digit(index), words[index / 64] >> (63 - index % 64) & 1 == 1);
            }
        }
    }
}
