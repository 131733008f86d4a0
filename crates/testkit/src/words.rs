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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_words_for_ever() {
        let words = |seed| {
            std::array::from_fn::<u64, 4, _>({
                let mut source = Seeded::new(seed);
                move |_| source.word()
            })
        };
        assert_eq!(words(1), words(1));
        assert_ne!(words(1), words(2));
        // ChaCha20 with a zero key and nonce: the published first key stream block.
        assert_eq!(words(0)[0].to_le_bytes(), [0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90]);
        assert_eq!(words(0)[1].to_le_bytes(), [0x40, 0x5d, 0x6a, 0xe5, 0x53, 0x86, 0xbd, 0x28]);
    }

    #[test]
    fn a_script_is_played_back_and_then_the_seed_goes_on() {
        let mut rigged = Rigged::new(vec![7, 8]);
        assert_eq!((rigged.word(), rigged.left()), (7, 1));
        assert_eq!((rigged.word(), rigged.left()), (8, 0));
        assert_eq!(rigged.word(), Seeded::new(0).word());
    }
}
