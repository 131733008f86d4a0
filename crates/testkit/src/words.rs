//! Sources of words for tests.

use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher};
use demur_noise::Words;

/// The same random words every time, one sequence per seed.
pub struct Seeded {
    cipher: ChaCha20,
    pool: Vec<u64>,
}

impl Seeded {
    /// The sequence number `seed`.
    pub fn new(seed: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Self { cipher: ChaCha20::new(&key.into(), &[0; 12].into()), pool: Vec::new() }
    }

    fn refill(&mut self) {
        let mut bytes = [0; 4096];
        self.cipher.write_keystream(&mut bytes);
        self.pool.extend(bytes.as_chunks().0.iter().rev().map(|chunk| u64::from_le_bytes(*chunk)));
    }
}

impl Words for Seeded {
    fn word(&mut self) -> u64 {
        loop {
            if let Some(word) = self.pool.pop() {
                return word;
            }
            self.refill();
        }
    }
}

/// Words from a script, then from a seed.
pub struct Rigged {
    script: std::vec::IntoIter<u64>,
    rest: Seeded,
}

impl Rigged {
    /// First these words, in order.
    pub fn new(script: Vec<u64>) -> Self {
        Self { script: script.into_iter(), rest: Seeded::new(0) }
    }

    /// How many words of the script have not been asked for.
    pub fn left(&self) -> usize {
        self.script.len()
    }
}

impl Words for Rigged {
    fn word(&mut self) -> u64 {
        self.script.next().unwrap_or_else(|| self.rest.word())
    }
}
