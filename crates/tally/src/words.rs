//! [`Words`] and [`Strings`]: small numbers for things, one for each.
//!
//! **Guarantee.** Two things have the same number exactly if they are equal: hashes only say where to look, things are compared.

use crate::error::TallyError;
use crate::hash::Secret;

/// A thing that fits a register.
pub(crate) trait Word: Copy + Eq + Default {
    fn hash(self, secret: &Secret) -> u64;
}

impl Word for u64 {
    #[inline]
    fn hash(self, secret: &Secret) -> u64 {
        secret.word(self)
    }
}

impl Word for u128 {
    #[inline]
    fn hash(self, secret: &Secret) -> u64 {
        secret.wide(self)
    }
}

/// The number that stands for no number.
pub(crate) const NONE: u32 = u32::MAX;

/// Tables with fewer slots are kept nearly empty.
const ROOMY: usize = 1 << 10;

/// Numbers for words, chosen by the caller (an open table with linear probing).
pub(crate) struct Words<W> {
    slots: Vec<(W, u32)>,
    len: usize,
}

impl<W: Word> Words<W> {
    pub(crate) fn new() -> Self {
        Self { slots: vec![(W::default(), NONE); 16], len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The number of `word`; if it is new, that is `next`.
    #[inline]
    pub(crate) fn number(&mut self, word: W, next: u32, secret: &Secret) -> u32 {
        self.number_hashed(word, word.hash(secret), next, secret)
    }

    /// The number of `word`, whose hash is known.
    #[inline]
    pub(crate) fn number_hashed(&mut self, word: W, hash: u64, next: u32, secret: &Secret) -> u32 {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = &mut self.slots[at];
            if slot.1 == NONE {
                *slot = (word, next);
                self.len += 1;
                if self.is_crowded() {
                    self.grow(secret);
                }
                return next;
            }
            if slot.0 == word {
                return slot.1;
            }
            at = (at + 1) & mask;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (W, u32)> + '_ {
        self.slots.iter().copied().filter(|slot| slot.1 != NONE)
    }

    /// Whether words are too often not found where they are sought first; a small table can afford to be nearly empty.
    fn is_crowded(&self) -> bool {
        let slots = self.slots.len();
        self.len > if slots < ROOMY { slots / 8 } else { slots / 3 * 2 }
    }

    #[cold]
    fn grow(&mut self, secret: &Secret) {
        let doubled = vec![(W::default(), NONE); self.slots.len() * 2];
        let mask = doubled.len() - 1;
        for slot in std::mem::replace(&mut self.slots, doubled).into_iter().filter(|slot| slot.1 != NONE) {
            let mut at = slot.0.hash(secret) as usize & mask;
            while self.slots[at].1 != NONE {
                at = (at + 1) & mask;
            }
            self.slots[at] = slot;
        }
    }
}

/// Numbers for strings of bytes: 0, 1, 2 … in the order of arrival.
pub(crate) struct Strings {
    slots: Vec<u32>,
    hashes: Vec<u64>,
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl Strings {
    pub(crate) fn new() -> Self {
        Self { slots: vec![NONE; 16], hashes: Vec::new(), ends: Vec::new(), bytes: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The string with this number.
    pub(crate) fn get(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.bytes[start..self.ends[number]]
    }

    /// The hashes of all strings, in the order of their numbers.
    pub(crate) fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// The number of a string, which may be new; `hash` is the same for the same string.
    pub(crate) fn number(&mut self, string: &[u8], hash: u64) -> Result<u32, TallyError> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let number = self.slots[at];
            if number == NONE {
                return self.add(at, string, hash);
            }
            if self.hashes[number as usize] == hash && self.get(number) == string {
                return Ok(number);
            }
            at = (at + 1) & mask;
        }
    }

    fn add(&mut self, at: usize, string: &[u8], hash: u64) -> Result<u32, TallyError> {
        let number = small(self.len(), "different values")?;
        self.slots[at] = number;
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len());
        self.hashes.push(hash);
        if self.len() * 3 > self.slots.len() * 2 {
            self.grow();
        }
        Ok(number)
    }

    #[cold]
    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        self.slots = vec![NONE; mask + 1];
        for (number, &hash) in self.hashes.iter().enumerate() {
            let mut at = hash as usize & mask;
            while self.slots[at] != NONE {
                at = (at + 1) & mask;
            }
            self.slots[at] = number as u32;
        }
    }
}

/// A number that has its place in 32 bits, short of [`NONE`].
pub(crate) fn small(number: usize, what: &str) -> Result<u32, TallyError> {
    match u32::try_from(number) {
        Ok(small) if small != NONE => Ok(small),
        _ => Err(TallyError::too_large(what)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_their_numbers_while_the_table_grows() {
        let secret = Secret::new([1, 2]);
        let mut words = Words::new();
        for round in 0..2 {
            for word in 0..10_000u64 {
                let next = if round == 0 { word as u32 } else { 77_777 };
                assert_eq!(words.number(word * word, next, &secret), word as u32);
            }
        }
        assert_eq!(words.len(), 10_000);
    }

    #[test]
    fn strings_with_the_same_hash_are_told_apart() {
        let mut strings = Strings::new();
        for round in 0..2 {
            for number in 0..100u32 {
                let found =
                    strings.number(format!("string {number}").as_bytes(), u64::from(number % 2)).unwrap();
                assert_eq!(found, number, "round {round}");
            }
        }
        assert_eq!(strings.get(42), b"string 42");
    }

    #[test]
    fn the_empty_string_is_a_string() {
        let mut strings = Strings::new();
        assert_eq!(strings.number(b"", 0).unwrap(), 0);
        assert_eq!(strings.number(b"a", 0).unwrap(), 1);
        assert_eq!((strings.get(0), strings.get(1)), (&b""[..], &b"a"[..]));
    }
}
