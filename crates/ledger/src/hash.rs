//! [`struct@Hash`]: 32 bytes that stand for a text and all that came before it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// A SHA-256 hash; people and JSON see 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash([u8; 32]);

impl Hash {
    /// What stands before the first entry.
    pub const START: Self = Self([0; 32]);

    /// The hash of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The hash of an entry: SHA-256 of the hash before it, its sequence number and its body.
    ///
    /// The number is eight bytes, the highest first.
    pub fn of_entry(previous: &Self, sequence: u64, body: &[u8]) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(previous.0);
        hasher.update(sequence.to_be_bytes());
        hasher.update(body);
        Self(hasher.finalize().into())
    }

    /// The bytes themselves.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// A hash read from a store, if it has the right length.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 64];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        f.write_str(std::str::from_utf8(&digits).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Reads 64 lower-case hexadecimal digits and nothing else.
impl FromStr for Hash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<Self, NotAHash> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(NotAHash);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

fn digit(letter: u8) -> Result<u8, NotAHash> {
    match letter {
        b'0'..=b'9' => Ok(letter - b'0'),
        b'a'..=b'f' => Ok(letter - b'a' + 10),
        _ => Err(NotAHash),
    }
}

/// A text that is not a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAHash;

impl fmt::Display for NotAHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a hash has 64 digits, 0 to 9 and a to f")
    }
}

impl std::error::Error for NotAHash {}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of "abc" from FIPS 180-2, appendix B.1.
    #[test]
    fn a_hash_is_sha_256() {
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Hash::of(b"abc").to_string(), text);
        assert_eq!(text.parse(), Ok(Hash::of(b"abc")));
        assert_eq!(serde_json::to_string(&Hash::of(b"abc")).unwrap(), format!("\"{text}\""));
    }

    #[test]
    fn the_hash_of_an_entry_is_that_of_its_parts_in_a_row() {
        let (previous, body) = (Hash::of(b"before"), b"{}");
        let row: Vec<u8> = [previous.bytes().as_slice(), &[0, 0, 0, 0, 0, 0, 1, 2], body].concat();
        assert_eq!(Hash::of_entry(&previous, 258, body), Hash::of(&row));
    }

    #[test]
    fn other_texts_are_not_hashes() {
        let upper = Hash::of(b"abc").to_string().to_uppercase();
        for text in ["", "ba78", &upper, &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(text.parse::<Hash>(), Err(NotAHash), "{text}");
        }
    }
}
