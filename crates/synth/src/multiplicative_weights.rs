//! [`MultiplicativeWeights`]: MWEM as in the textbook, over a whole small universe.
//!
//! **Method** \[Hardt2012\]. Start from the uniform law A₀ on the universe, scaled to the n rows. T times: select the query with the largest
//! |q(D) − q(A)| by the exponential mechanism, measure it with Laplace noise, and move
//!
//! ```text
//! A(x) ∝ A(x)·exp(q(x)·(measured − q(A))/2n).
//! ```
//!
//! The answer is the average of A₁ … A_T. Measurements are moved into [0, n] first, where the truth is.
//!
//! **Guarantee.** Neighbours replace a row: n is public, and a count moves by at most 1. Every round chooses with some ε₀ and measures with noise.
//!
//! * ε alone: Laplace noise of scale 1/ε₀, where ε₀ = ε/2T. The 2T uses add up to ε.
//! * (ε, δ): Gaussian noise of σ = 2/ε₀, which costs as much as the choice, and ε₀ is the largest with which the exact composition of all 2T uses is (ε, δ)-private. It is
//!   about 2·√(ρ/T) with ρ ≈ (√(ε + ln 1/δ) − √(ln 1/δ))²: falling like 1/√T, not like 1/T.
//!
//! **Accuracy.** With N records in the universe and k queries, but for a probability β,
//!
//! ```text
//! maxᵢ |qᵢ(A) − qᵢ(D)|/n ≤ 2·√(ln N/T) + (ν + (2/ε₀)·ln(2kT/β))/n,
//! ν = ln(4T/β)/ε₀ (Laplace), σ·√(2·ln(4T/β)) (Gaussian).
//! ```
//!
//! *Proof* (after \[Hardt2012\]). In shares, let a be the law before a round, d that of the table, e = q(d) − q(a) the chosen query's error, ν the error of its measurement, and η = (e + ν)/2. The distance
//! Σ d·ln(d/a) falls by η·q(d) − ln Σ a·e^(ηq) ≥ η·e − η² = (e² − ν²)/4, since e^y ≤ 1 + y + y² for |y| ≤ 1. It starts at or below ln N and is never negative, so the mean of e² over the rounds is at most
//! 4·ln N/T plus the largest ν². A choice misses the largest error by more than (2/ε₀)·ln(2kT/β) with probability β/2T, noise exceeds ν with probability β/2T; and the largest error of an average is at
//! most the average of the largest errors. ∎
//!
//! With the best T this is α ~ n^(−1/3) for ε alone, like [`Blr`](crate::Blr) and without its walk; and α ~ n^(−1/2), up to logarithms, with a δ. For real tables see
//! [`Plan::mwem`](crate::Plan::mwem).
//!
//! **Exactness.** Weights are rounded to multiples of 2⁻¹⁶ beforehand, so true answers are whole numbers of steps; so are expected answers when they
//! meet them.

use demur_core::{Domain, Guarantee, Histogram, PrivacyLoss, Release, Workload};
use demur_exact::Rational;
use demur_noise::{DiscreteGaussian, DiscreteLaplace, Entropy, Selection, Words};

use crate::SynthError;
use crate::error::require;
use crate::least_noise::least_noise;
use crate::singles::decimal;

/// Weights and answers are multiples of 2⁻¹⁶.
const STEPS_LOG2: i64 = 16;
const STEPS: f64 = (1u64 << STEPS_LOG2) as f64;
/// More rounds are refused.
const MOST_ROUNDS: u64 = 10_000;

/// The textbook's MWEM; see the module text.
///
/// ```
/// use demur_core::{Domain, Epsilon, Guarantee, Histogram, Workload};
/// use demur_noise::Entropy;
/// use demur_synth::MultiplicativeWeights;
///
/// let domain = Domain::new([("smoker", 2), ("ill", 2)])?;
/// let guarantee = Guarantee::pure(Epsilon::new(1.0)?);
/// let mwem = MultiplicativeWeights::new(&Workload::marginals(&domain, 2)?, 5, guarantee)?;
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
    uses: Uses,
    loss: PrivacyLoss,
}

/// What every round does; scale and variance are in steps.
#[derive(Clone, Debug)]
struct Uses {
    choice: Rational,
    noise: Noise,
}

#[derive(Clone, Debug)]
enum Noise {
    Laplace(DiscreteLaplace),
    Gaussian(DiscreteGaussian),
}

impl MultiplicativeWeights {
    /// For these queries, in so many rounds, at this cost.
    pub fn new(workload: &Workload, rounds: u64, guarantee: Guarantee) -> Result<Self, SynthError> {
        require((1..=MOST_ROUNDS).contains(&rounds), "synth.mwem.rounds", || {
            format!("there must be between 1 and {MOST_ROUNDS} rounds, but {rounds} were asked for")
        })?;
        require(!workload.queries().is_empty(), "synth.mwem.queries", || {
            "there must be at least 1 query, but there is none".into()
        })?;
        let steps = |weight: &Rational| (weight.to_f64() * STEPS).round() as i64;
        let queries =
            workload.queries().iter().map(|query| query.weights().iter().map(steps).collect()).collect();
        let (uses, loss) = if guarantee.is_pure() {
            Uses::pure(guarantee, rounds)?
        } else {
            Uses::approximate(guarantee, rounds)?
        };
        Ok(Self { domain: workload.domain().clone(), queries, rounds, uses, loss })
    }

    /// What one release costs; neighbours replace a row.
    pub fn loss(&self) -> &PrivacyLoss {
        &self.loss
    }

    /// How far the worst answer is from the truth, as a share of the rows, but for a probability β; see the module text.
    pub fn alpha(&self, rows: u64, beta: f64) -> f64 {
        let setting =
            Setting { rows, queries: self.queries.len() as u64, universe: self.domain.size(), beta };
        setting.alpha(self.rounds, self.uses.choice.to_f64(), matches!(self.uses.noise, Noise::Gaussian(_)))
    }

    /// The number of rounds for which the theorem promises least error, about.
    pub fn best_rounds(rows: u64, guarantee: Guarantee, queries: u64, universe: u64, beta: f64) -> u64 {
        let setting = Setting { rows, queries, universe, beta };
        let alpha = |rounds: u64| {
            let choice = about_choice(guarantee, rounds);
            setting.alpha(rounds, choice, !guarantee.is_pure())
        };
        // α falls and then rises, on a grid of ratios below 1.1.
        let grid =
            (0..).map(|step| 1.1f64.powi(step).ceil() as u64).take_while(|rounds| *rounds <= MOST_ROUNDS);
        grid.min_by(|a, b| alpha(*a).total_cmp(&alpha(*b))).unwrap_or(1)
    }

    /// The law over the universe, as shares in order of the records' indices.
    pub fn release(&self, data: &Histogram, entropy: &mut Entropy) -> Result<Release<Vec<f64>>, SynthError> {
        Ok(Release::new(self.run(data, entropy)?, self.loss.clone()))
    }

    pub(crate) fn run<W: Words>(&self, data: &Histogram, words: &mut W) -> Result<Vec<f64>, SynthError> {
        require(data.domain() == &self.domain, "synth.mwem.domain", || {
            "the dataset must be over the domain of the queries, but it is over another".into()
        })?;
        require((1..1 << 40).contains(&data.size()), "synth.mwem.rows", || {
            "the dataset must have between 1 and 2^40 − 1 rows, but it has not".into()
        })?;
        let rows = data.size() as f64;
        let rate = &self.uses.choice / &Rational::power_of_two(STEPS_LOG2 + 1);
        let truth: Vec<i64> = self.queries.iter().map(|query| count(query, data)).collect();
        let mut law = vec![1.0 / self.domain.size() as f64; self.domain.size() as usize];
        let mut average = vec![0.0; law.len()];
        for _ in 0..self.rounds {
            let expected: Vec<f64> = self.queries.iter().map(|query| answer(query, &law) * rows).collect();
            let error = |(truth, expected): (&i64, &f64)| (truth - (expected * STEPS).round() as i64).abs();
            let scores: Vec<i64> = truth.iter().zip(&expected).map(error).collect();
            let chosen = Selection::new(&scores, rate.clone())?.exponential(words);
            let measured = (i128::from(truth[chosen]) + self.uses.noise.sample(words)) as f64 / STEPS;
            let push = (measured.clamp(0.0, rows) - expected[chosen]) / (2.0 * rows);
            for (p, &weight) in law.iter_mut().zip(&self.queries[chosen]) {
                *p *= (weight as f64 / STEPS * push).exp();
            }
            let total: f64 = law.iter().sum();
            law.iter_mut().for_each(|p| *p /= total);
            average.iter_mut().zip(&law).for_each(|(sum, p)| *sum += p / self.rounds as f64);
        }
        Ok(average)
    }
}

impl Uses {
    fn pure(guarantee: Guarantee, rounds: u64) -> Result<(Self, PrivacyLoss), SynthError> {
        let epsilon = guarantee.epsilon.exact();
        let choice = &epsilon / &Rational::from(2 * rounds);
        let noise = Noise::Laplace(DiscreteLaplace::new(&Rational::power_of_two(STEPS_LOG2) / &choice)?);
        Ok((Self { choice, noise }, PrivacyLoss::Pure { epsilon }))
    }

    fn approximate(guarantee: Guarantee, rounds: u64) -> Result<(Self, PrivacyLoss), SynthError> {
        let all = |epsilon: Rational, measurement: PrivacyLoss| {
            PrivacyLoss::Exponential { epsilon }.repeat(rounds).compose(measurement.repeat(rounds))
        };
        let continuous = PrivacyLoss::Gaussian { variance: Rational::one(), l2_squared: Rational::one() };
        let one_step = Rational::power_of_two(2 * STEPS_LOG2);
        let ((choice, variance), loss) =
            least_noise(&all(Rational::from(2u32), continuous), guarantee, |factor| {
                let choice = decimal(2.0 / factor);
                let variance = &decimal(factor * factor) * &one_step;
                let measurement = PrivacyLoss::DiscreteGaussian {
                    variance: variance.clone(),
                    l2_squared: one_step.clone(),
                    dimensions: 1,
                };
                let loss = all(choice.clone(), measurement);
                ((choice, variance), loss)
            })?;
        Ok((Self { choice, noise: Noise::Gaussian(DiscreteGaussian::new(variance)?) }, loss))
    }
}

impl Noise {
    fn sample<W: Words>(&self, words: &mut W) -> i128 {
        match self {
            Self::Laplace(law) => law.sample(words),
            Self::Gaussian(law) => law.sample(words),
        }
    }
}

/// What the theorem speaks of.
struct Setting {
    rows: u64,
    queries: u64,
    universe: u64,
    beta: f64,
}

impl Setting {
    fn alpha(&self, rounds: u64, choice: f64, gaussian: bool) -> f64 {
        let rounds = rounds as f64;
        let noise = (4.0 * rounds / self.beta).ln();
        let noise = if gaussian { 2.0 / choice * (2.0 * noise).sqrt() } else { noise / choice };
        let missed = 2.0 / choice * (2.0 * self.queries as f64 * rounds / self.beta).ln();
        2.0 * ((self.universe as f64).ln() / rounds).sqrt() + (noise + missed) / self.rows as f64
    }
}

/// About the ε₀ of every choice.
fn about_choice(guarantee: Guarantee, rounds: u64) -> f64 {
    let (epsilon, delta) = (guarantee.epsilon.value(), guarantee.delta.value());
    if guarantee.is_pure() {
        return epsilon / (2.0 * rounds as f64);
    }
    let log = (1.0 / delta).ln();
    let rho = ((epsilon + log).sqrt() - log.sqrt()).powi(2);
    2.0 * (rho / rounds as f64).sqrt()
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
    use demur_accounting::Account;
    use demur_core::{Adjacency, Delta, Epsilon};
    use demur_testkit::Seeded;

    fn setting() -> (Workload, Histogram) {
        let domain = Domain::new([("a", 2), ("b", 2), ("c", 2)]).unwrap();
        let data = Histogram::new(&domain, vec![400, 10, 50, 40, 30, 270, 100, 100]).unwrap();
        (Workload::marginals(&domain, 2).unwrap(), data)
    }

    fn guarantees(epsilon: f64) -> [Guarantee; 2] {
        let epsilon = Epsilon::new(epsilon).unwrap();
        [Guarantee::pure(epsilon), Guarantee::new(epsilon, Delta::new(1e-9).unwrap())]
    }

    fn worst(mwem: &MultiplicativeWeights, law: &[f64], data: &Histogram) -> f64 {
        let share = |query: &[i64]| count(query, data) as f64 / STEPS / data.size() as f64;
        mwem.queries.iter().map(|query| (answer(query, law) - share(query)).abs()).fold(0.0, f64::max)
    }

    /// With hardly any noise the errors are those of the method itself, which a few lines of another language, without noise, have found as well.
    #[test]
    fn many_rounds_without_much_noise_explain_all_queries() {
        let (workload, data) = setting();
        for guarantee in guarantees(1e5) {
            let error = |rounds: u64| {
                let mwem = MultiplicativeWeights::new(&workload, rounds, guarantee).unwrap();
                worst(&mwem, &mwem.run(&data, &mut Seeded::new(1)).unwrap(), &data)
            };
            for (rounds, expected) in [(5, 0.1678), (50, 0.1005), (300, 0.0327)] {
                assert!((error(rounds) - expected).abs() < 0.004, "{rounds}: {}", error(rounds));
            }
        }
    }

    /// The theorem allows one run in ten to be beyond α; 20 runs of which 12 or more are have a chance below 10⁻⁶.
    #[test]
    fn errors_are_as_promised() {
        let (workload, data) = setting();
        for guarantee in guarantees(20.0) {
            let rounds = MultiplicativeWeights::best_rounds(1000, guarantee, 12, 8, 0.1).min(40);
            let mwem = MultiplicativeWeights::new(&workload, rounds, guarantee).unwrap();
            let alpha = mwem.alpha(1000, 0.1);
            assert!(alpha < 0.9, "{alpha} promises nothing");
            let missed = (0..20).filter(|&seed| {
                worst(&mwem, &mwem.run(&data, &mut Seeded::new(seed)).unwrap(), &data) > alpha
            });
            assert!(missed.count() < 12, "{guarantee}");
        }
    }

    /// What is charged is what is drawn: T choices and T measurements whose composition has the guarantee, and hardly better.
    #[test]
    fn rounds_cost_what_was_asked_for() {
        let (workload, _) = setting();
        for rounds in [1, 30, 3000] {
            let [pure, approximate] = guarantees(1.0)
                .map(|guarantee| MultiplicativeWeights::new(&workload, rounds, guarantee).unwrap());
            assert_eq!(pure.loss().to_string(), "pure(1)");
            assert!((pure.uses.choice.to_f64() * 2.0 * rounds as f64 - 1.0).abs() < 1e-12);
            let delta = "1e-9".parse().unwrap();
            let epsilon = Account::of(approximate.loss()).unwrap().epsilon(&delta).unwrap().bounds.upper;
            assert!(epsilon <= 1.0 + 1e-9 && epsilon > 0.999, "{rounds}: {epsilon}");
            let PrivacyLoss::Composed { parts } = approximate.loss() else { unreachable!() };
            assert!(parts.iter().all(|part| part.count == rounds) && parts.len() == 2, "{parts:?}");
        }
        // Rounds for a δ cost √T, not T.
        let choice = |rounds| about_choice(guarantees(1.0)[1], rounds);
        assert!((choice(100) / choice(10_000) - 10.0).abs() < 1e-9);
    }

    /// Every neighbour of a small table, every query: no count moves by more than the steps that choice and noise are made for.
    #[test]
    fn counts_move_by_at_most_one_row() {
        let domain = Domain::new([("a", 2), ("b", 2)]).unwrap();
        let data = Histogram::new(&domain, vec![3, 1, 0, 2]).unwrap();
        let mwem =
            MultiplicativeWeights::new(&Workload::marginals(&domain, 1).unwrap(), 1, guarantees(1.0)[0])
                .unwrap();
        let mut most = 0;
        for neighbour in data.neighbours(Adjacency::Replace) {
            for query in &mwem.queries {
                most = most.max(count(query, &data).abs_diff(count(query, &neighbour)));
            }
        }
        assert_eq!(most, 1 << STEPS_LOG2);
    }

    #[test]
    fn nonsense_is_refused() {
        let (workload, _) = setting();
        let code = |rounds| {
            MultiplicativeWeights::new(&workload, rounds, guarantees(1.0)[0]).map(|_| ()).unwrap_err().code()
        };
        assert_eq!([code(0), code(10_001)], ["synth.mwem.rounds"; 2]);
        let mwem = MultiplicativeWeights::new(&workload, 3, guarantees(1.0)[0]).unwrap();
        let empty = Histogram::empty(workload.domain()).unwrap();
        assert_eq!(mwem.run(&empty, &mut Seeded::new(1)).unwrap_err().code(), "synth.mwem.rows");
    }
}
