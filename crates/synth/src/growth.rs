//! [`Growth`]: how the error of four methods falls as a table grows, tried on a table that everybody knows.
//!
//! **Setting.** Two yes-or-no columns, so a universe of four records, with shares ½, ⅒, 3⁄20 and ¼; the queries are the cells of the pair. The error is the largest
//! |q(D) − q(answer)|, as a share of the rows; neighbours replace a row. There is nothing private here: it is a lesson.
//!
//! **What is to be seen.** Theorem 12.7 promises α ~ n^(−1/3) for [`Blr`], with m growing like α⁻². [`MultiplicativeWeights`] with rounds composed for a δ promise
//! n^(−1/2), up to logarithms: worse for small tables, better from some size on. Both do better than they promise. AIM, which has the same δ, measures the pair itself and falls like
//! n^(−1), as a histogram with noise does as long as the universe is small.

use std::ops::ControlFlow;

use demur_core::{Adjacency, Delta, Domain, Epsilon, Guarantee, Histogram, Workload};
use demur_exact::Rational;
use demur_noise::{DiscreteLaplace, Entropy};

use crate::{
    Blr, ColumnSet, Columns, DEFAULT_CELLS, Marginals, MultiplicativeWeights, Plan, SynthError, Table,
};

/// The shares of the four records, in twentieths.
const TWENTIETHS: [u64; 4] = [10, 2, 3, 5];
/// The chance with which an error may be larger than promised.
const BETA: f64 = 0.05;
/// For methods that need one.
const DELTA: f64 = 1e-9;
/// With more records than this, walking all multisets takes too long for a lesson.
pub const MOST_RECORDS: u64 = 250;

/// The mean error of each method on a table of some size; see the module text.
#[derive(Clone, Debug, PartialEq)]
pub struct Growth {
    /// The number of rows.
    pub rows: u64,
    /// What Theorem 12.7 promises but for a probability of 0.05, and the records BLR needs for it; `None` where it promises nothing.
    pub promised: Option<(f64, u64)>,
    /// The exponential mechanism over datasets of so many records; `None` if they are more than [`MOST_RECORDS`].
    pub blr: Option<f64>,
    /// What multiplicative weights promise but for a probability of 0.05; `None` where that is nothing.
    pub mwem_promised: Option<f64>,
    /// Multiplicative weights as in the textbook with δ = 10⁻⁹, with as many rounds as their theorem likes best.
    pub mwem: f64,
    /// AIM with the same δ.
    pub aim: f64,
    /// Laplace noise on every cell.
    pub histogram: f64,
}

impl Growth {
    /// Tries all methods so many times on a table of about so many rows.
    pub fn measure(
        rows: u64,
        epsilon: Epsilon,
        runs: u32,
        entropy: &mut Entropy,
    ) -> Result<Self, SynthError> {
        let trial = Trial::new(rows, epsilon)?;
        let promised = trial.promised();
        let records = promised.map_or(1, |(_, records)| records);
        let weights = trial.weights()?;
        let mwem_promised = Some(weights.alpha(trial.rows, BETA)).filter(|alpha| *alpha < 1.0);
        let mut sums = [0.0; 4];
        for _ in 0..runs {
            let blr = if records <= MOST_RECORDS { trial.blr(records, entropy)? } else { 0.0 };
            let mwem = trial.worst(weights.release(&trial.truth, entropy)?.value());
            let errors = [blr, mwem, trial.aim(entropy)?, trial.histogram(entropy)?];
            sums.iter_mut().zip(errors).for_each(|(sum, error)| *sum += error / f64::from(runs));
        }
        let [blr, mwem, aim, histogram] = sums;
        let blr = (records <= MOST_RECORDS).then_some(blr);
        Ok(Self { rows: trial.rows, promised, blr, mwem_promised, mwem, aim, histogram })
    }
}

struct Trial {
    workload: Workload,
    truth: Histogram,
    rows: u64,
    epsilon: Epsilon,
}

impl Trial {
    fn new(rows: u64, epsilon: Epsilon) -> Result<Self, SynthError> {
        let domain = Domain::new([("a", 2), ("b", 2)])?;
        let counts: Vec<u64> = TWENTIETHS.iter().map(|part| (rows * part).div_ceil(20)).collect();
        Ok(Self {
            workload: Workload::marginals(&domain, 2)?,
            rows: counts.iter().sum(),
            truth: Histogram::new(&domain, counts)?,
            epsilon,
        })
    }

    fn queries(&self) -> u64 {
        self.workload.queries().len() as u64
    }

    fn promised(&self) -> Option<(f64, u64)> {
        let universe = self.truth.counts().len() as u64;
        let alpha = Blr::alpha(self.rows, self.epsilon.value(), self.queries(), universe, BETA)?;
        Some((alpha, Blr::records_for(alpha, self.queries())))
    }

    /// The queries are the cells, so the largest error is that of a cell.
    fn worst(&self, shares: &[f64]) -> f64 {
        let error = |(count, share): (&u64, &f64)| (*count as f64 / self.rows as f64 - share).abs();
        self.truth.counts().iter().zip(shares).map(error).fold(0.0, f64::max)
    }

    fn blr(&self, records: u64, entropy: &mut Entropy) -> Result<f64, SynthError> {
        let drawn = Blr::new(self.workload.clone(), records, self.epsilon)?.release(&self.truth, entropy)?;
        let share = |count: &u64| *count as f64 / records as f64;
        Ok(self.worst(&drawn.value().counts().iter().map(share).collect::<Vec<_>>()))
    }

    fn guarantee(&self) -> Result<Guarantee, SynthError> {
        Ok(Guarantee::new(self.epsilon, Delta::new(DELTA)?))
    }

    fn weights(&self) -> Result<MultiplicativeWeights, SynthError> {
        let universe = self.truth.counts().len() as u64;
        let rounds =
            MultiplicativeWeights::best_rounds(self.rows, self.guarantee()?, self.queries(), universe, BETA);
        MultiplicativeWeights::new(&self.workload, rounds, self.guarantee()?)
    }

    fn aim(&self, entropy: &mut Entropy) -> Result<f64, SynthError> {
        let columns = Columns::new([("a", 2), ("b", 2)])?;
        let pair = Marginals::all(&columns, 2)?;
        let plan = Plan::aim(&columns, Adjacency::Replace, self.guarantee()?, &pair, DEFAULT_CELLS)?;
        let records = |digit: fn(usize) -> u32| {
            let each = self.truth.counts().iter().enumerate();
            each.flat_map(|(record, count)| std::iter::repeat_n(digit(record), *count as usize)).collect()
        };
        let table = Table::new(
            columns,
            vec![records(|record| (record / 2) as u32), records(|record| (record % 2) as u32)],
        )?;
        let model = plan.fit(&table, entropy, &mut |_| ControlFlow::Continue(()))?.into_value();
        Ok(self.worst(&model.marginal(&ColumnSet::new([0, 1]))?))
    }

    fn histogram(&self, entropy: &mut Entropy) -> Result<f64, SynthError> {
        let noise = DiscreteLaplace::new(&Rational::from(2u32) / &self.epsilon.exact())?;
        let noisy: Vec<f64> = self
            .truth
            .counts()
            .iter()
            .map(|&count| (i128::from(count) + noise.sample(entropy)).max(0) as f64)
            .collect();
        let total = noisy.iter().sum::<f64>().max(1.0);
        Ok(self.worst(&noisy.iter().map(|count| count / total).collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Theorem 12.7 leaves a chance of 0.05 for each draw; 40 draws of which 12 or more miss it have a chance below 10⁻⁶.
    #[test]
    fn blr_keeps_its_promise() {
        let entropy = &mut Entropy::from_os().unwrap();
        for rows in [200, 2000] {
            let (mut missed, mut alpha) = (0, 0.0);
            for _ in 0..40 {
                let growth = Growth::measure(rows, Epsilon::new(1.0).unwrap(), 1, entropy).unwrap();
                let promised = growth.promised.unwrap();
                alpha = promised.0;
                missed += u32::from(growth.blr.unwrap() > alpha);
            }
            assert!(missed < 12, "{rows} rows: {missed} of 40 are beyond {alpha}");
        }
    }

    /// Promises are formulas, and their slopes those of the theorems.
    #[test]
    fn promises_fall_like_the_cube_root_and_the_square_root() {
        let epsilon = Epsilon::new(1.0).unwrap();
        let [small, large] = [10_000, 1_000_000].map(|rows| Trial::new(rows, epsilon).unwrap());
        let slope = |small: f64, large: f64| (small / large).ln() / 100f64.ln();
        let blr = slope(small.promised().unwrap().0, large.promised().unwrap().0);
        assert!((blr - 1.0 / 3.0).abs() < 0.03, "{blr}");
        let alpha = |trial: &Trial| trial.weights().unwrap().alpha(trial.rows, BETA);
        let mwem = slope(alpha(&small), alpha(&large));
        assert!((mwem - 1.0 / 2.0).abs() < 0.07, "{mwem}");
    }

    /// Noise of AIM and of the histogram is the same for every n: errors fall like 1/n, here with a deviation below a quarter of their mean. Multiplicative weights do better
    /// than they promise.
    #[test]
    fn measured_errors_fall_faster_than_promises() {
        let entropy = &mut Entropy::from_os().unwrap();
        let epsilon = Epsilon::new(1.0).unwrap();
        let [small, large] = [1_000, 30_000].map(|rows| Growth::measure(rows, epsilon, 20, entropy).unwrap());
        let slope = |small: f64, large: f64| (small / large).ln() / 30f64.ln();
        for (small, large) in [(small.aim, large.aim), (small.histogram, large.histogram)] {
            assert!((slope(small, large) - 1.0).abs() < 0.4, "{small} {large}");
        }
        assert!(large.mwem < large.mwem_promised.unwrap() / 2.0 && large.mwem < small.mwem, "{large:?}");
    }
}
