//! [`PoissonSampler`]: who takes part in a step.
//!
//! **Definition.** Each example is in the batch with probability q, independently of all others and of all other steps. Sizes follow the binomial law; a batch may be empty.
//!
//! **Exactness.** q is a fraction, and coins are exact ([`Bernoulli`]).

use demur_core::PrivacyLoss;
use demur_exact::Rational;
use demur_noise::{Bernoulli, NoiseError, Probability, Words};

/// See the module text.
#[derive(Clone, Debug)]
pub(crate) struct PoissonSampler {
    rate: Rational,
    /// None where everybody takes part.
    coin: Option<Bernoulli>,
}

impl PoissonSampler {
    /// A sampler with this rate, above 0 and at most 1.
    pub(crate) fn new(rate: Rational) -> Result<Self, NoiseError> {
        let coin = match rate == Rational::one() {
            true => None,
            false => Some(Bernoulli::new(Probability::ratio(rate.clone())?)),
        };
        Ok(Self { rate, coin })
    }

    pub(crate) fn rate(&self) -> &Rational {
        &self.rate
    }

    /// The loss of a mechanism on such a batch.
    pub(crate) fn loss(&self, of: PrivacyLoss) -> PrivacyLoss {
        match &self.coin {
            None => of,
            Some(_) => PrivacyLoss::Subsampled { rate: self.rate.clone(), inner: Box::new(of) },
        }
    }

    /// The places of a batch among `count` examples, in order.
    pub(crate) fn draw<W: Words>(&self, count: usize, words: &mut W, batch: &mut Vec<u32>) {
        batch.clear();
        let Some(coin) = &self.coin else {
            batch.extend(0..count as u32);
            return;
        };
        for start in (0..count).step_by(64) {
            let mut tosses = coin.sample_64(words);
            if count - start < 64 {
                tosses &= (1 << (count - start)) - 1;
            }
            while tosses != 0 {
                batch.push(start as u32 + tosses.trailing_zeros());
                tosses &= tosses - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use demur_testkit::{FalseAlarm, Seeded, assert_fits};

    /// ln n! by the gamma function of a library.
    fn binomial(n: u64, k: u64, q: f64) -> f64 {
        statrs::function::factorial::ln_binomial(n, k).exp()
            * q.powi(k as i32)
            * (1.0 - q).powi((n - k) as i32)
    }

    /// False alarm 1e-9. 200 000 batches of 100 at q = 1/8 have a mean size with standard deviation 0.0074: a rate wrong by 1 % (0.125 in the
    /// mean, 17 deviations), a forgotten last block or a size that is fixed are found with probability > 0.999.
    #[test]
    fn batch_sizes_follow_the_binomial_law() {
        let sampler = PoissonSampler::new(Rational::new(1, 8)).unwrap();
        let (words, mut batch) = (&mut Seeded::new(demur_testkit::seed(31)), Vec::new());
        let sizes: Vec<i128> = (0..200_000)
            .map(|_| {
                sampler.draw(100, words, &mut batch);
                batch.len() as i128
            })
            .collect();
        assert_fits(
            &sizes,
            |k| if (0..=100).contains(&k) { binomial(100, k as u64, 0.125) } else { 0.0 },
            FalseAlarm(1e-9),
        );
    }

    /// False alarm 1e-9 in all by a union bound: each of 100 counts has deviation √(200 000·7/64) = 148, and 7 of them are allowed.
    #[test]
    fn everybody_is_equally_likely_and_the_first_place_is_0() {
        let sampler = PoissonSampler::new(Rational::new(1, 8)).unwrap();
        let (words, mut batch, mut seen) =
            (&mut Seeded::new(demur_testkit::seed(31)), Vec::new(), [0i64; 100]);
        for _ in 0..200_000 {
            sampler.draw(100, words, &mut batch);
            assert!(batch.is_sorted_by(|a, b| a < b));
            batch.iter().for_each(|&place| seen[place as usize] += 1);
        }
        assert!(seen.iter().all(|&count| (count - 25_000).abs() < 7 * 148), "{seen:?}");
    }

    #[test]
    fn a_rate_of_1_takes_everybody_and_is_no_sample() {
        let sampler = PoissonSampler::new(Rational::one()).unwrap();
        let mut batch = Vec::new();
        sampler.draw(3, &mut Seeded::new(1), &mut batch);
        assert_eq!(batch, [0, 1, 2]);
        let loss: PrivacyLoss = "pure(1)".parse().unwrap();
        assert_eq!(sampler.loss(loss.clone()), loss);
        let sampler = PoissonSampler::new(Rational::new(1, 8)).unwrap();
        assert_eq!(Ok(sampler.loss(loss)), "subsampled(0.125, pure(1))".parse());
    }
}
