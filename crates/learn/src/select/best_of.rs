//! [`BestOf`]: the best of several private runs, for little more than one.
//!
//! **Definition.** A base mechanism (training with hyper-parameters drawn at random, say) gives a result with a score; both are part of its private output.
//! It is run K times with fresh randomness, K drawn from the truncated negative binomial law with parameters η > −1 and 0 < γ < 1,
//!
//! ```text
//! Pr[K = k] ∝ (1 − γ)^k · Π_{1 ≤ l < k} (l + η)/(l + 1),     k = 1, 2, …
//! ```
//!
//! and only the result with the highest score is published. η = 1 is the geometric law with mean 1/γ, η = 0 the logarithmic law.
//!
//! **Guarantee** \[Papernot2022\] Theorem 2. If a run has Rényi divergences ε at order λ > 1 and ε̂ at order λ̂ ≥ 1, the whole has at order λ at most
//!
//! ```text
//! ε + (1 + η)(1 − 1/λ̂)·ε̂ + (1 + η)·ln(1/γ)/λ̂ + ln E(K)/(λ − 1)
//! ```
//!
//! At λ, λ̂ → ∞: if a run is ε-private, the whole is (2 + η)ε-private, however many runs are expected. (For η = 1 this is 3ε
//! of \[Liu2019\].) A fixed number of runs has no such bound: publishing the best of k costs up to kε.
//!
//! **Sampling.** A geometric number is drawn with coins of bias γ, and kept if a coin of bias (l + η)/(l + 1) succeeds for each l below it; else another is
//! drawn. For −1 < η ≤ 1 these are probabilities, and what is kept has the law above. Coins are exact, so is K. It never depends on data.
//!
//! **References.** \[Papernot2022\], \[Liu2019\].

use demur_accounting::Account;
use demur_core::{PrivacyLoss, Release, RenyiPoint};
use demur_exact::Rational;
use demur_noise::{Bernoulli, Entropy, Probability, Words};

use crate::LearnError;
use crate::curator::exactly;
use crate::error::require;

/// Orders at which the whole is bounded, and which a run is asked at.
const ORDERS: [(i128, u128); 20] = [
    (5, 4),
    (3, 2),
    (7, 4),
    (2, 1),
    (5, 2),
    (3, 1),
    (4, 1),
    (5, 1),
    (6, 1),
    (8, 1),
    (10, 1),
    (12, 1),
    (16, 1),
    (20, 1),
    (24, 1),
    (32, 1),
    (48, 1),
    (64, 1),
    (128, 1),
    (256, 1),
];
/// Formulas in doubles are raised by this factor to cover their rounding.
const ROUNDING: f64 = 1.0 + 1e-12;

/// How often a mechanism will be run and what that costs together; see the module text.
///
/// ```
/// use demur_core::PrivacyLoss;
/// use demur_learn::select::BestOf;
/// use demur_noise::Entropy;
///
/// let one_run: PrivacyLoss = "laplace(scale=10)".parse()?; // ε = 0.1
/// let plan = BestOf::new(&one_run, "0".parse()?, "1/20".parse()?)?;
/// assert_eq!(plan.loss().to_string(), "pure(0.2)");
/// // Charge it; then run. `train` must cost no more than one run, whatever happens.
/// let train = |_entropy: &mut Entropy, run: u64| Ok((run as f64, format!("model {run}")));
/// let best = plan.run(&mut Entropy::from_os()?, train)?;
/// assert!(best.value().starts_with("model"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BestOf {
    eta: Rational,
    gamma: Rational,
    loss: PrivacyLoss,
}

impl BestOf {
    /// Runs that cost `run` each, as often as the law with these parameters says.
    pub fn new(run: &PrivacyLoss, eta: Rational, gamma: Rational) -> Result<Self, LearnError> {
        require(eta > Rational::from(-1i32) && eta <= Rational::one(), "learn.best_of.eta", || {
            format!("η must be above −1 and at most 1, but it is {eta}")
        })?;
        require(
            gamma >= Rational::power_of_two(-20) && gamma < Rational::one(),
            "learn.best_of.gamma",
            || format!("γ must be at least 2^−20 and below 1, but it is {gamma}"),
        )?;
        run.check()?;
        let loss = match run.pure_epsilon() {
            Some(epsilon) => PrivacyLoss::Pure { epsilon: &epsilon * &(&Rational::from(2u32) + &eta) },
            None => PrivacyLoss::Renyi { points: points(run, &eta, &gamma)? },
        };
        loss.check()?;
        Ok(Self { eta, gamma, loss })
    }

    /// What must be charged before [`run`](Self::run) is called.
    pub fn loss(&self) -> &PrivacyLoss {
        &self.loss
    }

    /// How many runs are expected.
    pub fn expected_runs(&self) -> f64 {
        expected_runs(self.eta.to_f64(), self.gamma.to_f64())
    }

    /// Runs the mechanism K times, and publishes the result with the highest score. Charge [`loss`](Self::loss) first.
    ///
    /// Nobody hears how many runs there were: whoever knows K learns from the best of K more than is paid for. So there is nobody who could be told of each run, and a
    /// mechanism that shows what it does breaks the promise.
    ///
    /// ```compile_fail,E0061
    /// # use std::ops::ControlFlow;
    /// # use demur_learn::select::BestOf;
    /// # use demur_noise::Entropy;
    /// # fn watched(plan: &BestOf, entropy: &mut Entropy) {
    /// let _ = plan.run(entropy, &mut |_| ControlFlow::Continue(()), |_, run| Ok((run as f64, run)));
    /// # }
    /// ```
    ///
    /// It is told the number of the run, from 0 on, and must draw whatever else differs between runs itself, by the same law each time. A score
    /// that is not a number loses to every other.
    pub fn run<T>(
        &self,
        entropy: &mut Entropy,
        mut mechanism: impl FnMut(&mut Entropy, u64) -> Result<(f64, T), LearnError>,
    ) -> Result<Release<T>, LearnError> {
        let runs = self.draw(entropy)?;
        let mut best: Option<(f64, T)> = None;
        for run in 0..runs {
            let (score, result) = mechanism(entropy, run)?;
            let score = if score.is_nan() { f64::NEG_INFINITY } else { score };
            if best.as_ref().is_none_or(|(highest, _)| score > *highest) {
                best = Some((score, result));
            }
        }
        let best = best.ok_or_else(|| LearnError::ours("no run was drawn"))?;
        Ok(Release::new(best.1, self.loss.clone()))
    }

    /// K.
    fn draw<W: Words>(&self, words: &mut W) -> Result<u64, LearnError> {
        let stop = Bernoulli::new(Probability::ratio(self.gamma.clone())?);
        loop {
            let mut count = 1u64;
            while !stop.sample(words) {
                count += 1;
            }
            if self.keeps(count, words)? {
                return Ok(count);
            }
        }
    }

    /// Whether all coins of bias (l + η)/(l + 1), l < count, succeed.
    fn keeps<W: Words>(&self, count: u64, words: &mut W) -> Result<bool, LearnError> {
        if self.eta == Rational::one() {
            return Ok(true);
        }
        for l in 1..count {
            let bias = &(&Rational::from(l) + &self.eta) / &Rational::from(l + 1);
            if !Bernoulli::new(Probability::ratio(bias)?).sample(words) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn expected_runs(eta: f64, gamma: f64) -> f64 {
    match eta == 0.0 {
        true => (1.0 / gamma - 1.0) / -gamma.ln(),
        false => eta * (1.0 - gamma) / (gamma * -(eta * gamma.ln()).exp_m1()),
    }
}

/// The bound of the module text at each order, with the best λ̂.
fn points(run: &PrivacyLoss, eta: &Rational, gamma: &Rational) -> Result<Vec<RenyiPoint>, LearnError> {
    let account = Account::of(run)?;
    let mut orders: Vec<(Rational, f64)> = Vec::new();
    for (numerator, denominator) in ORDERS {
        let order = Rational::new(numerator, denominator);
        let bounds = account.renyi(&order)?;
        let divergence = bounds.iter().map(|bounds| bounds.upper).fold(0.0, f64::max);
        if divergence.is_finite() {
            orders.push((order, divergence));
        }
    }
    let (eta, gamma) = (eta.to_f64(), gamma.to_f64());
    let log_expected = expected_runs(eta, gamma).ln();
    let extra = |(order, divergence): &(Rational, f64)| {
        let order = order.to_f64();
        (1.0 + eta) * ((1.0 - 1.0 / order) * divergence - gamma.ln() / order)
    };
    let extra = orders.iter().map(extra).fold(f64::INFINITY, f64::min);
    let point = |(order, divergence): &(Rational, f64)| {
        let whole = divergence + extra + log_expected / (order.to_f64() - 1.0);
        Ok(RenyiPoint { order: order.clone(), epsilon: exactly(whole * ROUNDING)? })
    };
    let points = orders.iter().map(point).collect::<Result<Vec<_>, LearnError>>()?;
    require(!points.is_empty(), "learn.best_of.run", || {
        "a run must have Rényi divergences, but this one's loss has none".into()
    })?;
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use demur_testkit::{FalseAlarm, Seeded, assert_fits};

    fn plan(run: &str, eta: &str, gamma: &str) -> BestOf {
        BestOf::new(&run.parse().unwrap(), eta.parse().unwrap(), gamma.parse().unwrap()).unwrap()
    }

    /// Pr[K = k] from the definition, normalised by its sum.
    fn law(eta: f64, gamma: f64) -> Vec<f64> {
        let mut weights = vec![0.0];
        let mut weight = 1.0 - gamma;
        for k in 1..4000 {
            weights.push(weight);
            weight *= (1.0 - gamma) * (f64::from(k) + eta) / (f64::from(k) + 1.0);
        }
        let total: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / total).collect()
    }

    /// False alarm 1e-9 each. Catches a law with η off by 0.1 almost surely (50 000 draws).
    #[test]
    fn the_number_of_runs_follows_its_law() {
        for (eta, gamma) in [("1", "1/10"), ("0", "1/10"), ("1/2", "1/5"), ("-1/2", "1/20")] {
            let plan = plan("pure(1)", eta, gamma);
            let words = &mut Seeded::new(demur_testkit::seed(72));
            let draws: Vec<i128> = (0..50_000).map(|_| i128::from(plan.draw(words).unwrap())).collect();
            let law = law(plan.eta.to_f64(), plan.gamma.to_f64());
            assert_fits(
                &draws,
                |k| usize::try_from(k).ok().and_then(|k| law.get(k)).copied().unwrap_or(0.0),
                FalseAlarm(1e-9),
            );
            let mean: f64 = law.iter().enumerate().map(|(k, p)| k as f64 * p).sum();
            assert!((plan.expected_runs() / mean - 1.0).abs() < 1e-6, "{eta} {gamma}");
        }
    }

    /// The law of the best of K runs, from that of one run over outcomes in order of their scores.
    fn best_of_law(one: &[f64], runs: &[f64]) -> Vec<f64> {
        let power = |x: f64| runs.iter().enumerate().map(|(k, p)| p * x.powi(k as i32)).sum::<f64>();
        let mut below = 0.0;
        let outcome = |p: &f64| {
            let before = below;
            below += p;
            power(below) - power(before)
        };
        one.iter().map(outcome).collect()
    }

    /// By brute force over an ε-private run with many outcomes: the whole is within (2 + η)ε, and comes close to 2ε; a fixed number of runs is
    /// not.
    #[test]
    fn the_pure_bound_holds_and_a_fixed_number_of_runs_breaks_it() {
        let epsilon: f64 = 0.5;
        let normal = |weights: Vec<f64>| {
            let total: f64 = weights.iter().sum();
            weights.into_iter().map(|weight| weight / total).collect::<Vec<f64>>()
        };
        for split in 1..40 {
            let here = normal(vec![1.0; 40]);
            let there = normal((0..40).map(|i| if i < split { 1.0 } else { epsilon.exp() }).collect());
            let one: f64 = here.iter().zip(&there).map(|(a, b)| (a / b).ln().abs()).fold(0.0, f64::max);
            assert!(one <= epsilon + 1e-12);
            for (eta, gamma) in [(1.0, 0.1), (0.0, 0.1), (-0.5, 0.05), (0.5, 0.02)] {
                let runs = law(eta, gamma);
                let (a, b) = (best_of_law(&here, &runs), best_of_law(&there, &runs));
                let whole: f64 = a.iter().zip(&b).map(|(a, b)| (a / b).ln().abs()).fold(0.0, f64::max);
                assert!(whole <= (2.0 + eta) * epsilon + 1e-9, "{split} {eta} {gamma}: {whole}");
            }
        }
        let mut ten = vec![0.0; 11];
        ten[10] = 1.0;
        let (a, b) = (best_of_law(&[0.5, 0.5], &ten), best_of_law(&[0.62, 0.38], &ten));
        assert!((a[0] / b[0]).ln().abs() > 3.0 * (0.62f64 / 0.5).ln().max((0.5f64 / 0.38).ln()));
    }

    #[test]
    fn the_loss_is_data_that_accountants_understand() {
        assert_eq!(plan("pure(0.5)", "1", "1/100").loss().to_string(), "pure(1.5)");
        let gaussian = plan("gaussian(sigma=10)", "0", "1/100");
        let account = Account::of(gaussian.loss()).unwrap();
        let epsilon = account.epsilon(&"1e-6".parse().unwrap()).unwrap().bounds.upper;
        let one = Account::of(&"gaussian(sigma=10)".parse().unwrap()).unwrap();
        let one = one.epsilon(&"1e-6".parse().unwrap()).unwrap().bounds.upper;
        assert!(epsilon > one && epsilon < 3.5 * one, "{epsilon} for one of {one}");
        let sampled = plan("subsampled(0.01, gaussian(sigma=2))*500", "0", "1/20");
        assert!(matches!(sampled.loss(), PrivacyLoss::Renyi { points } if points.len() > 5));
    }

    #[test]
    fn the_highest_score_wins_and_failures_are_passed_on() {
        let plan = plan("pure(1)", "1", "1/50");
        let entropy = &mut Entropy::from_os().unwrap();
        let mut seen: Vec<f64> = Vec::new();
        let best = plan.run(entropy, |_, run| {
            let score = if run == 0 { f64::NAN } else { ((run * 37) % 11) as f64 };
            seen.push(score);
            Ok((score, score))
        });
        let highest = seen.iter().copied().filter(|score| !score.is_nan()).fold(f64::NAN, f64::max);
        let best = best.unwrap().into_value();
        assert!(best == highest || (best.is_nan() && seen.len() == 1));
        let failed = plan.run(entropy, |_, _| Err::<(f64, ()), _>(LearnError::new("learn.test", "no")));
        assert_eq!(failed.unwrap_err().code(), "learn.test");
    }

    #[test]
    fn nonsense_is_refused() {
        let code = |eta: &str, gamma: &str| {
            BestOf::new(&"pure(1)".parse().unwrap(), eta.parse().unwrap(), gamma.parse().unwrap())
                .unwrap_err()
                .code()
        };
        assert_eq!(code("-1", "1/2"), "learn.best_of.eta");
        assert_eq!(code("2", "1/2"), "learn.best_of.eta");
        assert_eq!(code("1", "1"), "learn.best_of.gamma");
        assert_eq!(code("1", "0"), "learn.best_of.gamma");
        assert!(
            BestOf::new(&"approximate(1, 1e-6)".parse().unwrap(), Rational::one(), Rational::new(1, 2))
                .is_err()
        );
    }
}
