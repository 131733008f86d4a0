//! [`Words`]: where samplers get their random bits.

use dashu_int::UBig;

/// A source of independent, uniform 64-bit words.
///
/// Samplers are mathematics: they turn uniform words into draws from a law,
/// whatever the words come from. What publishes numbers (the mechanisms) takes an
/// [`Entropy`](crate::Entropy) and nothing else; other sources exist only to
/// test the samplers.
pub trait Words {
    /// The next 64 random bits.
    fn word(&mut self) -> u64;
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
