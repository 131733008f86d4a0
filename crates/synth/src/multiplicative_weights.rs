//! [`MultiplicativeWeights`]: MWEM as in the textbook, over a whole small universe.
//!
//! **Method** \[Hardt2012\]. Start from the uniform law A₀ on the universe, scaled to the n rows. T times: select the query with the largest
//! |q(D) − q(A)| by the exponential mechanism, measure it with Laplace noise, and move
//!
//! ```text
//! A(x) ∝ A(x)·exp(q(x)·(measured − q(A))/2n).
//! ```
//!
//! The answer is the average of A₁ … A_T.
//!
//! **Guarantee.** ε: each round spends ε/2T on its choice and ε/2T on its measurement. Counts move by at most 1 when a row is replaced, which is
//! what neighbours do here; n is public.
//!
//! **Accuracy.** maxᵢ |qᵢ(A) − qᵢ(D)| ≤ 2n·√(ln N/T) + 10·T·ln k/ε but for a chance of 2T/k \[Hardt2012\]; as a share of n, with the best T, this falls like n^(−1/3) for
//! pure ε, and like n^(−1/2) when the rounds are composed for a δ. It is there to be compared with [`Blr`](crate::Blr); for real tables see
//! [`Plan::mwem`](crate::Plan::mwem).
//!
//! **Exactness.** Weights are rounded to multiples of 2⁻¹⁶ beforehand, so true answers are whole numbers of steps; so are expected answers when they
//! meet them.

use demur_core::{Domain, Epsilon, Histogram, PrivacyLoss, Release, Workload};
use demur_exact::Rational;
use demur_noise::{DiscreteLaplace, Entropy, Selection, Words};

use crate::SynthError;
use crate::error::require;

/// Weights and answers are multiples of 2⁻¹⁶.
const STEPS_LOG2: i64 = 16;
const STEPS: f64 = (1u64 << STEPS_LOG2) as f64;

/// The textbook's MWEM; see the module text.
///
/// ```
/// use demur_core::{Domain, Epsilon, Histogram, Workload};
/// use demur_noise::Entropy;
/// use demur_synth::MultiplicativeWeights;
///
/// let domain = Domain::new([("smoker", 2), ("ill", 2)])?;
/// let mwem = MultiplicativeWeights::new(&Workload::marginals(&domain, 2)?, 5, Epsilon::new(1.0)?)?;
/// let people = Histogram::new(&domain, vec![400, 100, 200, 300])?;
/// let law = mwem.release(&people, &mut Entropy::from_os()?)?;
/// assert!((law.value().iter().sum::<f64>() - 1.0).abs() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MultiplicativeWeights {
    domain: Domain,
    /// For each query, the weight of every record in steps.
    queries: Vec<Vec<i64>>,
    rounds: u64,
    epsilon: Rational,
}

impl MultiplicativeWeights {
    /// For these queries, in so many rounds, at a cost of ε.
    pub fn new(workload: &Workload, rounds: u64, epsilon: Epsilon) -> Result<Self, SynthError> {
        require((1..=10_000).contains(&rounds), "synth.mwem.rounds", || {
            format!("there must be between 1 and 10000 rounds, but {rounds} were asked for")
        })?;
        require(!workload.queries().is_empty(), "synth.mwem.queries", || {
            "there must be at least 1 query, but there is none".into()
        })?;
        let steps = |weight: &Rational| (weight.to_f64() * STEPS).round() as i64;
        let queries =
            workload.queries().iter().map(|query| query.weights().iter().map(steps).collect()).collect();
        Ok(Self { domain: workload.domain().clone(), queries, rounds, epsilon: epsilon.exact() })
    }

    /// What one release costs; neighbours replace a row.
    pub fn loss(&self) -> PrivacyLoss {
        PrivacyLoss::Pure { epsilon: self.epsilon.clone() }
    }

    /// The law over the universe, as shares in order of the records' indices.
    pub fn release(&self, data: &Histogram, entropy: &mut Entropy) -> Result<Release<Vec<f64>>, SynthError> {
        Ok(Release::new(self.run(data, entropy)?, self.loss()))
    }

    pub(crate) fn run<W: Words>(&self, data: &Histogram, words: &mut W) -> Result<Vec<f64>, SynthError> {
        require(data.domain() == &self.domain, "synth.mwem.domain", || {
            "the dataset must be over the domain of the queries, but it is over another".into()
        })?;
        require((1..1 << 40).contains(&data.size()), "synth.mwem.rows", || {
            "the dataset must have between 1 and 2^40 − 1 rows, but it has not".into()
        })?;
        let rows = data.size() as f64;
        let share = &self.epsilon / &Rational::from(2 * self.rounds);
        let sensitivity = Rational::power_of_two(STEPS_LOG2);
        let noise = DiscreteLaplace::new(&sensitivity / &share)?;
        let rate = &share / &(&Rational::from(2u32) * &sensitivity);
        let truth: Vec<i64> = self.queries.iter().map(|query| count(query, data)).collect();
        let mut law = vec![1.0 / self.domain.size() as f64; self.domain.size() as usize];
        let mut average = vec![0.0; law.len()];
        for _ in 0..self.rounds {
            let expected: Vec<f64> = self.queries.iter().map(|query| answer(query, &law) * rows).collect();
            let error = |(truth, expected): (&i64, &f64)| (truth - (expected * STEPS).round() as i64).abs();
            let scores: Vec<i64> = truth.iter().zip(&expected).map(error).collect();
            let chosen = Selection::new(&scores, rate.clone())?.exponential(words);
            let measured = (i128::from(truth[chosen]) + noise.sample(words)) as f64 / STEPS;
            let push = (measured - expected[chosen]) / (2.0 * rows);
            for (p, &weight) in law.iter_mut().zip(&self.queries[chosen]) {
                *p *= (weight as f64 / STEPS * push).clamp(-300.0, 300.0).exp();
            }
            let total: f64 = law.iter().sum();
            law.iter_mut().for_each(|p| *p /= total);
            average.iter_mut().zip(&law).for_each(|(sum, p)| *sum += p / self.rounds as f64);
        }
        Ok(average)
    }
}

/// Σ f(x) over the rows, in steps.
fn count(query: &[i64], data: &Histogram) -> i64 {
    query.iter().zip(data.counts()).map(|(weight, &rows)| weight * rows as i64).sum()
}

/// The mean weight under a law.
fn answer(query: &[i64], law: &[f64]) -> f64 {
    query.iter().zip(law).map(|(&weight, p)| weight as f64 * p).sum::<f64>() / STEPS
}

#[cfg(test)]
mod tests {
    use super::*;
    use demur_testkit::Seeded;

    fn setting() -> (Workload, Histogram) {
        let domain = Domain::new([("a", 2), ("b", 2), ("c", 2)]).unwrap();
        let data = Histogram::new(&domain, vec![400, 10, 50, 40, 30, 270, 100, 100]).unwrap();
        (Workload::marginals(&domain, 2).unwrap(), data)
    }

    /// With hardly any noise the errors go down to those of the method itself.
    #[test]
    fn many_rounds_without_much_noise_explain_all_queries() {
        let (workload, data) = setting();
        let worst = |rounds: u64| {
            let mwem = MultiplicativeWeights::new(&workload, rounds, Epsilon::new(1e5).unwrap()).unwrap();
            let law = mwem.run(&data, &mut Seeded::new(1)).unwrap();
            let error =
                |query: &Vec<i64>| (answer(query, &law) - count(query, &data) as f64 / STEPS / 1000.0).abs();
            mwem.queries.iter().map(error).fold(0.0, f64::max)
        };
        assert!(worst(5) > worst(50) && worst(300) < 0.02, "{} {} {}", worst(5), worst(50), worst(300));
    }

    #[test]
    fn nonsense_is_refused() {
        let (workload, _) = setting();
        let code = |rounds| {
            MultiplicativeWeights::new(&workload, rounds, Epsilon::new(1.0).unwrap())
                .map(|_| ())
                .unwrap_err()
                .code()
        };
        assert_eq!([code(0), code(10_001)], ["synth.mwem.rounds"; 2]);
        let mwem = MultiplicativeWeights::new(&workload, 3, Epsilon::new(1.0).unwrap()).unwrap();
        assert_eq!(mwem.loss().to_string(), "pure(1)");
        let empty = Histogram::empty(workload.domain()).unwrap();
        assert_eq!(mwem.run(&empty, &mut Seeded::new(1)).unwrap_err().code(), "synth.mwem.rows");
    }
}
