//! [`Growth`]: how the error of four methods falls as a table grows, tried on a table that everybody knows.
//!
//! **Setting.** Two yes-or-no columns, so a universe of four records, with shares ½, ⅒, 3⁄20 and ¼; the queries are the cells of the pair. The error is the largest
//! |q(D) − q(answer)|, as a share of the rows; neighbours replace a row. There is nothing private here: it is a lesson.
//!
//! **What is to be seen.** Theorem 12.7 promises α ~ n^(−1/3) for [`Blr`], with m growing like α⁻². A better mechanism has n^(−1/2):
//! [`MultiplicativeWeights`] when its rounds are composed for a δ; AIM, which is given one, measures the pair itself and is
//! better still, and so is a histogram with noise as long as the universe is small: n^(−1).

use std::ops::ControlFlow;

use demur_core::{Adjacency, Domain, Epsilon, Guarantee, Histogram, Workload};
use demur_exact::Rational;
use demur_noise::{DiscreteLaplace, Entropy};

use crate::{
    Blr, ColumnSet, Columns, DEFAULT_CELLS, Marginals, MultiplicativeWeights, Plan, SynthError, Table,
};

/// The shares of the four records, in twentieths.
const TWENTIETHS: [u64; 4] = [10, 2, 3, 5];
/// The chance with which BLR may miss what it is promised.
const BETA: f64 = 0.05;
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
    /// Multiplicative weights as in the textbook, with as many rounds as its theorem likes best.
    pub mwem: f64,
    /// AIM with δ = 10⁻⁹.
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
        let domain = Domain::new([("a", 2), ("b", 2)])?;
        let counts: Vec<u64> = TWENTIETHS.iter().map(|part| (rows * part).div_ceil(20)).collect();
        let trial = Trial {
            workload: Workload::marginals(&domain, 2)?,
            rows: counts.iter().sum(),
            truth: Histogram::new(&domain, counts)?,
            epsilon,
        };
        let promised = trial.promised();
        let records = promised.map_or(1, |(_, records)| records);
        let mut sums = [0.0; 4];
        for _ in 0..runs {
            let blr = if records <= MOST_RECORDS { trial.blr(records, entropy)? } else { 0.0 };
            let errors = [blr, trial.mwem(entropy)?, trial.aim(entropy)?, trial.histogram(entropy)?];
            sums.iter_mut().zip(errors).for_each(|(sum, error)| *sum += error / f64::from(runs));
        }
        let [blr, mwem, aim, histogram] = sums;
        let blr = (records <= MOST_RECORDS).then_some(blr);
        Ok(Self { rows: trial.rows, promised, blr, mwem, aim, histogram })
    }
}

struct Trial {
    workload: Workload,
    truth: Histogram,
    rows: u64,
    epsilon: Epsilon,
}

impl Trial {
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

    fn mwem(&self, entropy: &mut Entropy) -> Result<f64, SynthError> {
        let universe = self.truth.counts().len() as f64;
        let best = self.rows as f64 * self.epsilon.value() * universe.ln().sqrt()
            / (10.0 * (self.queries() as f64).ln());
        let rounds = best.powf(2.0 / 3.0).clamp(1.0, 10_000.0) as u64;
        let law = MultiplicativeWeights::new(&self.workload, rounds, self.epsilon)?;
        Ok(self.worst(law.release(&self.truth, entropy)?.value()))
    }

    fn aim(&self, entropy: &mut Entropy) -> Result<f64, SynthError> {
        let columns = Columns::new([("a", 2), ("b", 2)])?;
        let guarantee = Guarantee::new(self.epsilon, demur_core::Delta::new(1e-9)?);
        let pair = Marginals::all(&columns, 2)?;
        let plan = Plan::aim(&columns, Adjacency::Replace, guarantee, &pair, DEFAULT_CELLS)?;
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

    #[test]
    fn the_promise_falls_like_the_cube_root_and_others_faster() {
        let entropy = &mut Entropy::from_os().unwrap();
        let epsilon = Epsilon::new(1.0).unwrap();
        let [small, large] =
            [1_000, 1_000_000].map(|rows| Growth::measure(rows, epsilon, 20, entropy).unwrap());
        let slope = |small: f64, large: f64| (small / large).ln() / 1000f64.ln();
        let promised = slope(small.promised.unwrap().0, large.promised.unwrap().0);
        assert!((promised - 1.0 / 3.0).abs() < 0.03, "{promised}");
        assert!(large.blr.is_none());
        // Noise of AIM and of the histogram is the same for every n: errors fall like 1/n, here with a deviation below a quarter of their mean.
        for (small, large) in [(small.aim, large.aim), (small.histogram, large.histogram)] {
            assert!((slope(small, large) - 1.0).abs() < 0.25, "{small} {large}");
        }
    }
}
