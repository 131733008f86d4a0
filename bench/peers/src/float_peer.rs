//! rand_distr on ChaCha20: floating-point noise, fast and not private.

use chacha20::ChaCha20Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Exp1, Gumbel, StandardNormal};

use crate::Law;

/// The same generator as ours, which also holds words ready in a buffer.
pub fn generator() -> ChaCha20Rng {
    ChaCha20Rng::from_seed([7; 32])
}

/// One draw. rand_distr has no Laplace law: an exponential one with a random sign.
#[inline]
pub fn draw(law: Law, scale: f64, words: &mut ChaCha20Rng) -> f64 {
    match law {
        Law::Laplace => {
            let size: f64 = words.sample(Exp1);
            scale * if words.random::<bool>() { size } else { -size }
        }
        Law::Gaussian => scale * words.sample::<f64, _>(StandardNormal),
    }
}

/// The index of the highest score after Gumbel noise: the exponential mechanism in floats.
pub fn gumbel_max(scores: &[f64], scale: f64, words: &mut ChaCha20Rng) -> usize {
    let noise = Gumbel::new(0.0, scale).expect("a legal scale");
    let noisy = scores.iter().map(|score| score + words.sample(noise));
    let best = noisy.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
    best.map_or(0, |(index, _)| index)
}
