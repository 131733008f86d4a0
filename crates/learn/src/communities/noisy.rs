//! [`NoisyNetwork`]: a bit per pair under randomized response, and what it says about ties.
//!
//! **Definition.** Bit b of a pair is published as b with probability 1 − p and as 1 − b with probability p = 1/(1 + e^ε₀). Then (b̃ − p)/(1 − 2p) is an
//! unbiased estimate of b with standard deviation σ = √(p(1 − p))/(1 − 2p) = e^(ε₀/2)/(e^ε₀ − 1).
//!
//! **References.** \[Warner1965\].

use demur_exact::Rational;
use demur_noise::{Bernoulli, Probability, Words};

use crate::LearnError;

/// Rows of bits, 64 to a word; symmetric, with zeros on the diagonal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bits {
    words_per_row: usize,
    words: Vec<u64>,
}

impl Bits {
    fn new(users: usize) -> Self {
        let words_per_row = users.div_ceil(64);
        Self { words_per_row, words: vec![0; users * words_per_row] }
    }

    fn row(&self, user: usize) -> &[u64] {
        &self.words[user * self.words_per_row..(user + 1) * self.words_per_row]
    }

    /// How many bits differ.
    #[cfg(test)]
    pub(super) fn differing(&self, other: &Self) -> u32 {
        self.words.iter().zip(&other.words).map(|(a, b)| (a ^ b).count_ones()).sum()
    }

    fn set(&mut self, user: usize, other: usize) {
        self.words[user * self.words_per_row + other / 64] |= 1 << (other % 64);
    }
}

/// The pairs that are tied, in the upper triangle.
pub(super) fn bits(users: usize, lists: &[Vec<u32>]) -> Bits {
    let mut bits = Bits::new(users);
    for (user, list) in lists.iter().enumerate() {
        for &other in list {
            bits.set(user.min(other as usize), user.max(other as usize));
        }
    }
    bits
}

/// Flips every pair's bit with probability 1/(1 + e^ε). Words are drawn for whole rows, whatever the bits are.
pub(super) fn respond<W: Words>(
    users: usize,
    mut bits: Bits,
    epsilon: &Rational,
    words: &mut W,
) -> Result<NoisyNetwork, LearnError> {
    let flip = Probability::logistic(Rational::one(), epsilon.clone())?;
    let p = flip.to_f64();
    let coin = Bernoulli::new(flip);
    for user in 0..users {
        for place in user / 64..bits.words_per_row {
            // Pairs with a later user, and no others.
            let later = mask_from(user + 1, place) & !mask_from(users, place);
            bits.words[user * bits.words_per_row + place] ^= coin.sample_64(words) & later;
        }
    }
    for user in 0..users {
        for place in user / 64..bits.words_per_row {
            let mut word = bits.words[user * bits.words_per_row + place] & mask_from(user + 1, place);
            while word != 0 {
                bits.set(place * 64 + word.trailing_zeros() as usize, user);
                word &= word - 1;
            }
        }
    }
    Ok(NoisyNetwork::new(users, bits, p))
}

/// The bits of a word that stand for users from this one on.
fn mask_from(user: usize, place: usize) -> u64 {
    match user.checked_sub(place * 64) {
        None | Some(0) => u64::MAX,
        Some(skipped) if skipped < 64 => u64::MAX << skipped,
        Some(_) => 0,
    }
}

/// What was published, and estimates from it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NoisyNetwork {
    users: usize,
    bits: Bits,
    /// How often a bit is wrong.
    p: f64,
    /// Estimated ties of each user.
    pub(super) degrees: Vec<f64>,
    /// Their sum: twice the number of ties, at least 1.
    pub(super) total: f64,
}

impl NoisyNetwork {
    fn new(users: usize, bits: Bits, p: f64) -> Self {
        let mut network = Self { users, bits, p, degrees: vec![], total: 1.0 };
        network.degrees = (0..users)
            .map(|user| network.unbiased(network.others(user).count() as f64, users as f64 - 1.0))
            .collect();
        network.total = network.degrees.iter().sum::<f64>().max(1.0);
        network
    }

    pub(super) fn users(&self) -> usize {
        self.users
    }

    /// σ of one estimated tie.
    pub(super) fn deviation(&self) -> f64 {
        (self.p * (1.0 - self.p)).sqrt() / (1.0 - 2.0 * self.p)
    }

    /// Those whose bit with this user is set.
    pub(super) fn others(&self, user: usize) -> impl Iterator<Item = usize> {
        self.bits.row(user).iter().enumerate().flat_map(|(place, &word)| {
            let mut word = word;
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| place * 64 + word.trailing_zeros() as usize);
                word &= word.wrapping_sub(1);
                bit
            })
        })
    }

    /// From a sum of published bits (each times some weight) and the sum of the weights: an estimate of the same sum of true bits.
    pub(super) fn unbiased(&self, set: f64, all: f64) -> f64 {
        (set - self.p * all) / (1.0 - 2.0 * self.p)
    }
}
