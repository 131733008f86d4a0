//! [`Entropy`]: the operating system's randomness, stretched and buffered.
//!
//! **Definition.** A 32-byte key from the operating system drives ChaCha20. Each
//! refill writes a pool of key stream; its first 32 bytes become the next key
//! and are erased, so nobody who reads the memory later can compute words
//! already used. After [`REFILLS_PER_SEED`] refills fresh bytes from the system
//! are mixed into the key.
//!
//! **Forks.** A child process starts with a copy of its parent's memory, and would
//! draw the parent's noise. Every word first asks whether a fork has happened
//! since the last one, and if so the pool is thrown away and seeded anew.
//!
//! **Erased on drop.** Key and pool are overwritten when the value goes away.

use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher};
use forkguard::Guard;
use zeroize::Zeroize;

use crate::sampler::Words;

const POOL_BYTES: usize = 4096;
const KEY_BYTES: usize = 32;
/// Fresh bytes from the operating system are mixed in after this many refills (16 MiB).
pub const REFILLS_PER_SEED: u32 = 4096;

/// A cryptographically secure source of random words, one per thread of work.
///
/// ```
/// use demur_noise::{Entropy, Words};
/// let mut entropy = Entropy::from_os()?;
/// assert_ne!(entropy.word(), entropy.word());
/// # Ok::<(), demur_noise::EntropyError>(())
/// ```
///
/// It cannot be seeded, copied or printed.
pub struct Entropy {
    pool: Box<[u8; POOL_BYTES]>,
    /// Where the next word begins; a multiple of 8.
    next: usize,
    key: [u8; KEY_BYTES],
    refills: u32,
    fork: Guard,
}

/// The operating system would not give random bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntropyError(String);

impl std::fmt::Display for EntropyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the operating system gave no random bytes ({}); nothing can be released without them",
            self.0
        )
    }
}

impl std::error::Error for EntropyError {}

impl Entropy {
    /// A source seeded by the operating system.
    pub fn from_os() -> Result<Self, EntropyError> {
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).map_err(|error| EntropyError(error.to_string()))?;
        Ok(Self {
            pool: Box::new([0; POOL_BYTES]),
            next: POOL_BYTES,
            key,
            refills: 0,
            fork: forkguard::new(),
        })
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self, forked: bool) {
        if forked || self.refills == REFILLS_PER_SEED {
            self.reseed();
        }
        self.refills += 1;
        // Straight into the pool: a copy would have to be erased again, byte by byte.
        ChaCha20::new(&self.key.into(), &[0; 12].into()).write_keystream(&mut *self.pool);
        let next_key = &mut self.pool[..KEY_BYTES];
        self.key.copy_from_slice(next_key);
        next_key.zeroize();
        self.next = KEY_BYTES;
    }

    /// Mixes fresh bytes into the key.
    ///
    /// The system gave bytes when this source was made; if it now refuses,
    /// there is no noise to be had and no answer that could be given.
    #[expect(clippy::panic, reason = "going on without fresh randomness would publish predictable noise")]
    fn reseed(&mut self) {
        let mut fresh = [0; KEY_BYTES];
        if let Err(error) = getrandom::fill(&mut fresh) {
            panic!("{}", EntropyError(error.to_string()));
        }
        for (key, byte) in self.key.iter_mut().zip(&fresh) {
            *key ^= byte;
        }
        fresh.zeroize();
        self.refills = 0;
    }
}

impl Words for Entropy {
    #[inline]
    fn word(&mut self) -> u64 {
        let forked = self.fork.detected_fork();
        if forked || self.next >= POOL_BYTES {
            self.refill(forked);
        }
        let (words, _) = self.pool.as_chunks();
        let word = u64::from_le_bytes(words[self.next / 8]);
        self.next += 8;
        word
    }

    fn fill(&mut self, mut out: &mut [u64]) {
        while let Some((first, rest)) = out.split_first_mut() {
            *first = self.word();
            let (words, _) = self.pool[self.next..].as_chunks();
            let count = words.len().min(rest.len());
            let (now, later) = rest.split_at_mut(count);
            now.iter_mut().zip(words).for_each(|(word, bytes)| *word = u64::from_le_bytes(*bytes));
            self.next += 8 * count;
            out = later;
        }
    }
}

impl Drop for Entropy {
    fn drop(&mut self) {
        self.pool.zeroize();
        self.key.zeroize();
    }
}

impl std::fmt::Debug for Entropy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Entropy")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_words_are_the_same_as_one_by_one() {
        let (mut many, mut single) = (Entropy::from_os().unwrap(), Entropy::from_os().unwrap());
        single.key = many.key;
        // Within a pool, to its end, from its end, and over several.
        for count in [0, 1, 7, 500, 8, 508, 508, 2000] {
            let mut words = vec![0; count];
            many.fill(&mut words);
            assert!(words.iter().all(|&word| word == single.word()), "{count} words");
        }
    }

    #[test]
    fn the_pool_is_chacha20_with_its_key_replaced_at_each_refill() {
        let mut entropy = Entropy::from_os().unwrap();
        let key = entropy.key;
        let mut expected = [0u8; 64];
        ChaCha20::new(&key.into(), &[0; 12].into()).write_keystream(&mut expected);
        let first = entropy.word();
        assert_eq!(first.to_le_bytes(), expected[32..40]);
        assert_eq!(entropy.key, expected[..32]);
        assert_eq!(entropy.pool[..32], [0; 32], "the next key must not stay in the pool");
    }

    #[test]
    fn fresh_bytes_are_mixed_in_after_the_stated_number_of_refills() {
        let mut entropy = Entropy::from_os().unwrap();
        for _ in 0..REFILLS_PER_SEED {
            entropy.refill(false);
        }
        let before = entropy.key;
        let mut unmixed = [0u8; 32];
        ChaCha20::new(&before.into(), &[0; 12].into()).write_keystream(&mut unmixed);
        entropy.refill(false);
        assert_ne!(entropy.key, unmixed);
        assert_eq!(entropy.refills, 1);
    }

    #[test]
    fn two_sources_never_agree() {
        let (mut a, mut b) = (Entropy::from_os().unwrap(), Entropy::from_os().unwrap());
        assert!((0..64).all(|_| a.word() != b.word()));
    }
}
