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
        let mut uniform = Uniform::with_prefix(words, first, 64);
        let mut bits = STORED;
        loop {
            let (digits, drawn) = uniform.prefix(bits);
            let digits = IBig::from(digits.clone());
            let p = self.probability.enclose(drawn);
            if digits < *p.lower() {
                return true;
            }
            if digits >= *p.upper() {
                return false;
            }
            bits *= 2;
        }
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
            let (low, high) = (p.lower() >> extra, p.upper() >> extra);
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
