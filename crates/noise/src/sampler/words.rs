//! [`Words`]: where samplers get their random bits.

use dashu_int::{IBig, UBig};
use demur_exact::Enclosure;

/// A source of independent, uniform 64-bit words.
///
/// Samplers are mathematics: they turn uniform words into draws from a law,
/// whatever the words come from. What publishes numbers (the mechanisms) takes an
/// [`Entropy`](crate::Entropy) and nothing else; other sources exist only to
/// test the samplers.
pub trait Words {
    /// The next 64 random bits.
    fn word(&mut self) -> u64;

    /// As many words as `out` holds: the next ones, in their order.
    fn fill(&mut self, out: &mut [u64]) {
        out.iter_mut().for_each(|word| *word = self.word());
    }
}

/// A uniform real number in [0, 1) of which only a prefix has been drawn.
pub(crate) struct Uniform<'a, W> {
    words: &'a mut W,
    digits: UBig,
    bits: usize,
}

impl<'a, W: Words> Uniform<'a, W> {
    /// A number whose first `bits` binary digits are already known.
    pub(crate) fn with_prefix(words: &'a mut W, digits: UBig, bits: usize) -> Self {
        Self { words, digits, bits }
    }

    /// The first digits, at least `bits` of them, and how many there are.
    pub(crate) fn prefix(&mut self, bits: usize) -> (&UBig, usize) {
        while self.bits < bits {
            self.digits = (&self.digits << 64) | UBig::from(self.words.word());
            self.bits += 64;
        }
        (&self.digits, self.bits)
    }

    /// Whether the number lies below a bound that can be computed with any number of places.
    ///
    /// Draws and computes twice as many digits until the answer is certain.
    pub(crate) fn is_below(&mut self, bound: impl Fn(usize) -> Enclosure) -> bool {
        let mut bits = 128;
        loop {
            let (digits, drawn) = self.prefix(bits);
            let digits = IBig::from(digits.clone());
            let bound = bound(drawn);
            if digits < *bound.lower() {
                return true;
            }
            if digits >= *bound.upper() {
                return false;
            }
            bits *= 2;
        }
    }
}

/// A whole number below `bound`, each equally likely; `bound` is not zero.
///
/// Lemire's method: the high half of a product is the answer, and the low half
/// tells when a word must be thrown away to keep all answers equally likely.
pub(crate) fn below<W: Words>(words: &mut W, bound: u64) -> u64 {
    let mut product = u128::from(words.word()) * u128::from(bound);
    if (product as u64) < bound {
        let excess = bound.wrapping_neg() % bound;
        while (product as u64) < excess {
            product = u128::from(words.word()) * u128::from(bound);
        }
    }
    (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::table::tests::Script;

    #[test]
    fn a_uniform_number_draws_only_the_digits_it_is_asked_for() {
        let mut words = Script(vec![1, 2, 3]);
        let mut uniform = Uniform::with_prefix(&mut words, UBig::from(5u8), 3);
        assert_eq!(uniform.prefix(3), (&UBig::from(5u8), 3));
        assert_eq!(uniform.prefix(10), (&((UBig::from(5u8) << 64) | UBig::ONE), 67));
        assert_eq!(uniform.prefix(67).1, 67);
        assert_eq!(words.0, [2, 3]);
    }

    /// With words of 64 bits every answer of a small bound owns ⌊2⁶⁴/bound⌋ of them: the first
    /// and last of these give it, and words that would be one too many are thrown away.
    #[test]
    fn numbers_below_a_bound_are_equally_likely() {
        for bound in [1u64, 2, 3, 10, 1 << 32, (1 << 63) + 1, u64::MAX] {
            let excess = (1u128 << 64) % u128::from(bound);
            for answer in [0, bound / 2, bound - 1] {
                // Words w with answer·2⁶⁴ + excess ≤ w·bound < (answer + 1)·2⁶⁴ count.
                let first = ((u128::from(answer) << 64) + excess).div_ceil(u128::from(bound));
                let last = ((u128::from(answer) + 1) << 64).div_ceil(u128::from(bound)) - 1;
                assert_eq!(last - first + 1, (1u128 << 64) / u128::from(bound), "{answer} of {bound}");
                for word in [first, last] {
                    let mut words = Script(vec![word as u64, 77]);
                    assert_eq!(below(&mut words, bound), answer);
                    assert_eq!(words.0, [77]);
                }
                let wasted = (u128::from(answer) << 64).div_ceil(u128::from(bound));
                if wasted < first {
                    let mut words = Script(vec![wasted as u64, last as u64]);
                    assert_eq!(below(&mut words, bound), answer);
                    assert_eq!(words.0, [0u64; 0]);
                }
            }
        }
    }
}
