//! MWEM in the form that works: whole marginals, all measurements, pure ε.
//!
//! **Method.** As \[Hardt2012\], with what has made it useful since \[McKenna2019\]:
//!
//! 1. Measure every column's counts with a third of ε; group rare values.
//! 2. T times: select the set the model gets most wrong by the exponential mechanism, measure its *whole* marginal with Laplace noise, and estimate
//!    the law that explains *all* measurements so far. Selection and measurement get half of a round's ε each.
//!
//! **Rounds.** More rounds learn more and are noisier. T is the largest number for which a marginal of middling size (K cells, the median of the workload) is measured with an
//! expected error Σ|noise| of at most a tenth of the rows: T = n·ε₂/(20·s·K), where ε₂ = ⅔·ε; at least 1, at most the number of sets. n is public when neighbours replace a row. When
//! they add or remove one it is secret, and the sum of the noisy column counts of step 1 is used instead, at no further cost.
//!
//! **Cost.** ε in total: d measurements with ε/3d each, then T rounds with ε₂/T each. T depends on noisy answers, so a filter on Σε watches.

use demur_accounting::Filter;
use demur_core::{Epsilon, PrivacyLoss};
use demur_exact::Rational;
use demur_noise::Words;
use rayon::prelude::*;

use crate::aim::{expected, turn};
use crate::curator::{Candidate, Curator, Noise};
use crate::estimator::{Effort, Estimator};
use crate::junction_tree::total_cells;
use crate::model::Model;
use crate::progress::{Progress, Watch, tell};
use crate::singles::singles;
use crate::{ColumnSet, Columns, Marginals, Neighbours, SynthError, Zeros};

/// How well the law is fitted after each round, and at the end.
const ROUND: Effort = Effort { steps: 200, tolerance: 2e-2 };
const FINAL: Effort = Effort { steps: 500, tolerance: 3e-3 };
/// Noise of a marginal may reach the rows divided by this.
const NOISE_PART: f64 = 10.0;

/// The parameters of a run; public, and fixed before a row is read.
#[derive(Clone, Debug)]
pub(crate) struct Mwem {
    pub(crate) filter: Filter,
    epsilon: Rational,
    wanted: Vec<(ColumnSet, f64)>,
    max_cells: u64,
}

impl Mwem {
    pub(crate) fn plan(
        epsilon: Epsilon,
        marginals: &Marginals,
        max_cells: u64,
    ) -> Result<(Self, PrivacyLoss), SynthError> {
        let epsilon = epsilon.exact();
        let largest = marginals.sets().map(|(_, weight)| weight).fold(0.0, f64::max);
        let wanted = marginals.sets().map(|(set, weight)| (set.clone(), weight / largest)).collect();
        let loss = PrivacyLoss::Pure { epsilon: epsilon.clone() };
        Ok((Self { filter: Filter::pure(epsilon.clone())?, epsilon, wanted, max_cells }, loss))
    }

    pub(crate) fn run<W: Words>(
        &self,
        columns: &Columns,
        zeros: &Zeros,
        curator: &mut Curator<'_, W>,
        watch: &mut Watch<'_>,
    ) -> Result<Model, SynthError> {
        let neighbours = curator.neighbours();
        // Prices are rounded up: what is asked for is a millionth below what is there.
        let whole = &self.epsilon * &Rational::new(999_999, 1_000_000);
        let third = &whole / &Rational::from(3u32);
        let one = laplace(&(&third / &Rational::from(columns.len() as u64)), neighbours);
        let (compression, mut evidence) = singles(columns, zeros, curator, &one, watch)?;
        let sizes = compression.sizes.clone();
        let mut estimator = Estimator::new(sizes.clone(), zeros.potentials(&sizes));
        let mut rows = curator.public_rows().unwrap_or(evidence.total());
        let mut fitted = estimator.fit(&evidence, rows, ROUND)?;

        let left = &whole - &third;
        let rounds = self.rounds(rows, left.to_f64(), &sizes, neighbours);
        let half = &(&left / &Rational::from(rounds as u64)) * &Rational::new(1, 2);
        let noise = laplace(&half, neighbours);
        for round in 1..=rounds {
            let sets: Vec<ColumnSet> = estimator.sets(&evidence).cloned().collect();
            let fits = |set: &ColumnSet| {
                fitted.walk.tree.home(set, &sizes).is_some() || {
                    let with: Vec<ColumnSet> = sets.iter().chain([set]).cloned().collect();
                    total_cells(&with, &sizes) <= self.max_cells
                }
            };
            let now = turn(self.wanted.iter().collect(), &sizes, round);
            let open: Vec<&(ColumnSet, f64)> = now.into_par_iter().filter(|(set, _)| fits(set)).collect();
            let candidate = |(set, weight): &&(ColumnSet, f64)| {
                let expected = expected(&fitted, set, rows)?;
                // E|Laplace| is its scale.
                let penalty = (noise.variance() / 2.0).sqrt() * expected.len() as f64;
                Ok(Candidate { set: set.clone(), expected, weight: *weight, penalty })
            };
            let candidates: Vec<Candidate> =
                open.par_iter().map(candidate).collect::<Result<_, SynthError>>()?;
            if candidates.is_empty() {
                break;
            }
            let Candidate { set, penalty, .. } = &candidates[curator.select(&half, &candidates)?];
            evidence.add(set.clone(), curator.measure(set, &noise)?, noise.variance());
            rows = curator.public_rows().unwrap_or(evidence.total());
            fitted = estimator.fit(&evidence, rows, ROUND)?;
            tell(
                watch,
                Progress {
                    stage: "measuring marginals",
                    step: round,
                    steps: Some(rounds),
                    spent: 1.0 / 3.0 + 2.0 / 3.0 * round as f64 / rounds as f64,
                    set: Some(set.clone()),
                    expected_error: Some(penalty / rows / 2.0),
                },
            )?;
        }
        let fitted = estimator.fit(&evidence, rows, FINAL)?;
        Ok(Model { columns: columns.clone(), compression, walk: fitted.walk, beliefs: fitted.beliefs, rows })
    }

    /// T; see the module text.
    fn rounds(&self, rows: f64, epsilon: f64, sizes: &[usize], neighbours: Neighbours) -> usize {
        let mut cells: Vec<u64> = self.wanted.iter().map(|(set, _)| set.cells(sizes)).collect();
        cells.sort_unstable();
        let median = cells.get(cells.len() / 2).map_or(1.0, |&cells| cells as f64);
        let rounds = rows * epsilon / (2.0 * NOISE_PART * f64::from(neighbours.l1()) * median);
        (rounds as usize).clamp(1, self.wanted.len())
    }
}

/// Laplace noise that costs ε.
fn laplace(epsilon: &Rational, neighbours: Neighbours) -> Noise {
    Noise::Laplace { scale: &Rational::from(neighbours.l1()) / epsilon }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_grow_with_rows_and_epsilon_and_fall_with_cells() {
        let columns = Columns::new([("a", 4), ("b", 5), ("c", 6), ("d", 7)]).unwrap();
        let marginals = Marginals::all(&columns, 2).unwrap();
        let (mwem, loss) = Mwem::plan(Epsilon::new(1.0).unwrap(), &marginals, 1000).unwrap();
        assert_eq!(loss.to_string(), "pure(1)");
        let rounds = |rows, epsilon| {
            mwem.rounds(rows, epsilon, &columns.sizes(), demur_core::Adjacency::AddRemove.into())
        };
        // The median of 20, 24, 28, 30, 35, 42 is taken as 30: n·ε/600.
        assert_eq!(
            [rounds(10.0, 1.0), rounds(1800.0, 1.0), rounds(900.0, 2.0), rounds(1e9, 1.0)],
            [1, 3, 3, 6]
        );
        assert_eq!(mwem.rounds(3600.0, 1.0, &columns.sizes(), demur_core::Adjacency::Replace.into()), 3);
    }
}
