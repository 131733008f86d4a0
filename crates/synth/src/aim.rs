//! AIM: select what the model gets most wrong, measure it, estimate anew, until the budget is spent.
//!
//! **Method** \[McKenna2022\].
//!
//! 1. Measure every column's counts with a third of the budget; group rare values ([`Compression`](crate::compression::Compression)). Every marginal is
//!    made of columns, so what is wrong about a column is wrong everywhere.
//! 2. In each round: of all parts of the workload that the model can still take in, select one by the exponential mechanism with the score
//!
//!    ```text
//!    w_r·(‖counts_r − expected_r‖₁ − √(2/π)·σ·cells_r)
//!    ```
//!
//!    which is how much the model errs about r beyond what noise would make of it if it were measured now. Measure it with Gaussian noise σ, and estimate the law that
//!    explains everything measured so far.
//! 3. *Annealing.* If the estimate of r moved by no more than its noise, σ was too large for what is left to be learned: from now on a round
//!    costs four times as much, with half the noise and twice the ε of the selection. What would be left for less than two rounds goes to the last one.
//!
//! *Turns.* Where the candidates have more cells than a round can look at, every k-th is looked at in a round, the next ones in the next. Which ones is decided by public sizes.
//!
//! *Size.* A set is a candidate only if the junction tree with it has at most the fraction of `max_cells` cells that has been spent of the budget. So the limit is
//! never exceeded, and early rounds, with much noise, do not use it up.
//!
//! **Cost.** σ and ε of a round depend on noisy answers, so composition theorems for fixed parameters do not apply. A Gaussian filter does: as long as Σμ² of all
//! looks stays within b on every path, the whole run is √b-Gaussian private, exactly as one Gaussian answer with μ² = b, however the parameters were
//! chosen. b is the largest for the wanted (ε, δ) by the exact profile of Gaussian noise, and that one answer is what is charged. A selection with ε costs
//! μ² = (2Φ⁻¹(e^(ε/2)/(1 + e^(ε/2))))² ≤ (π/8)·ε², because its loss lies in an interval of length ε; see docs/accounting-filters.md.

use demur_accounting::{Filter, Measure, Rule};
use demur_core::{Guarantee, PrivacyLoss};
use demur_exact::Rational;
use demur_noise::Words;
use rayon::prelude::*;

use crate::curator::{Candidate, Curator, Noise};
use crate::estimator::{Effort, Estimator, Fitted};
use crate::evidence::Evidence;
use crate::junction_tree::total_cells;
use crate::model::Model;
use crate::progress::{Progress, Watch, tell};
use crate::singles::{decimal, singles};
use crate::{ColumnSet, Columns, Marginals, Neighbours, SynthError, Zeros};

/// The part of the budget for columns alone.
pub(crate) const SINGLES: f64 = 1.0 / 3.0;
/// The part of a round that goes to its selection.
pub(crate) const SELECTION: f64 = 0.1;
/// The first rounds are so small that this many of them could be made for each column.
const ROUNDS_PER_COLUMN: f64 = 16.0;
/// A round looks at candidates with about so many cells, where every candidate is as much work as so many cells more.
const CELLS_PER_ROUND: u64 = 1 << 24;
const CELLS_PER_SET: u64 = 1 << 13;
/// δ is divided by this for the difference between discrete and continuous noise.
const DISCRETE: u32 = 10;
/// How well the law is fitted after each round, and at the end.
const ROUND: Effort = Effort { steps: 200, tolerance: 2e-2 };
const FINAL: Effort = Effort { steps: 500, tolerance: 3e-3 };
/// What is asked to be spent is this much below what may be spent: prices are rounded up.
const ROUNDING: f64 = 1e-5;

/// The parameters of a run; public, and fixed before a row is read.
#[derive(Clone, Debug)]
pub(crate) struct Aim {
    pub(crate) filter: Filter,
    /// b: the most μ² that all looks may have together.
    budget: f64,
    wanted: Vec<(ColumnSet, f64)>,
    max_cells: u64,
}

/// What one round may cost and what follows from it.
struct Round {
    share: f64,
    noise: Noise,
    epsilon: Rational,
    /// What noise adds to ‖·‖₁ for each cell: E|N(0, σ²)| = √(2/π)·σ.
    per_cell: f64,
}

impl Round {
    fn new(share: f64, neighbours: Neighbours) -> Self {
        let noise = noise_for((1.0 - SELECTION) * share, neighbours);
        // The price of a selection is at most (π/8)·ε².
        let epsilon = decimal((SELECTION * share * 8.0 / std::f64::consts::PI).sqrt() * (1.0 - ROUNDING));
        let per_cell = (noise.variance() * 2.0 / std::f64::consts::PI).sqrt();
        Self { share, noise, epsilon, per_cell }
    }
}

impl Aim {
    /// The largest budget for the guarantee, and the loss of using it up.
    pub(crate) fn plan(
        guarantee: Guarantee,
        marginals: &Marginals,
        max_cells: u64,
    ) -> Result<(Self, PrivacyLoss), SynthError> {
        let (epsilon, delta) = (guarantee.epsilon.exact(), guarantee.delta.exact());
        let delta_for_losses = &delta / &Rational::from(DISCRETE);
        let filter =
            Filter::new(Rule::Gaussian { epsilon, delta, delta_for_losses: delta_for_losses.clone() })?;
        let capacity =
            filter.capacity().values.into_iter().find(|(measure, _)| *measure == Measure::MuSquared);
        let (_, budget) = capacity.ok_or_else(|| SynthError::ours("a Gaussian filter has no capacity"))?;
        let gaussian = PrivacyLoss::Gaussian { variance: Rational::one(), l2_squared: budget.clone() };
        let discrete = PrivacyLoss::Approximate { epsilon: Rational::zero(), delta: delta_for_losses };
        let aim = Self { filter, budget: budget.to_f64_down(), wanted: marginals.candidates(), max_cells };
        Ok((aim, gaussian.compose(discrete)))
    }

    pub(crate) fn run<W: Words>(
        &self,
        columns: &Columns,
        zeros: &Zeros,
        curator: &mut Curator<'_, W>,
        watch: &mut Watch<'_>,
    ) -> Result<Model, SynthError> {
        let one = noise_for(SINGLES * self.budget / columns.len() as f64, curator.neighbours());
        let (compression, mut evidence) = singles(columns, zeros, curator, &one, watch)?;
        let sizes = compression.sizes.clone();
        let mut estimator = Estimator::new(sizes.clone(), zeros.potentials(&sizes));
        let mut rows = curator.public_rows().unwrap_or(evidence.total());
        let mut fitted = estimator.fit(&evidence, rows, ROUND)?;

        let mut spent = SINGLES * self.budget;
        let mut share = (self.budget - spent) / (ROUNDS_PER_COLUMN * columns.len() as f64);
        for number in 1.. {
            let left = self.budget - spent;
            let last = left < 2.0 * share;
            let round = Round::new(if last { left } else { share }, curator.neighbours());
            let room = (self.max_cells as f64 * ((spent + round.share) / self.budget).min(1.0)) as u64;
            let open = self.open(&fitted, &estimator, &evidence, (number, &round), room, curator);
            let candidates = candidates(&open, &fitted, &round, rows)?;
            if candidates.is_empty() {
                break;
            }
            let chosen = curator.select(&round.epsilon, &candidates)?;
            let Candidate { set, expected: before, penalty, .. } = &candidates[chosen];
            evidence.add(set.clone(), curator.measure(set, &round.noise)?, round.noise.variance());
            spent += round.share;
            rows = curator.public_rows().unwrap_or(evidence.total());
            fitted = estimator.fit(&evidence, rows, ROUND)?;
            tell(watch, progress(number, spent / self.budget, set, penalty / rows / 2.0))?;
            if last {
                break;
            }
            let after = expected(&fitted, set, rows)?;
            let change: f64 = before.iter().zip(&after).map(|(before, after)| (before - after).abs()).sum();
            if change <= *penalty {
                share *= 4.0;
            }
        }
        let fitted = estimator.fit(&evidence, rows, FINAL)?;
        Ok(Model { columns: columns.clone(), compression, walk: fitted.walk, beliefs: fitted.beliefs, rows })
    }

    /// What the model can still take in, and the budget can still pay for.
    fn open<W: Words>(
        &self,
        fitted: &Fitted,
        estimator: &Estimator,
        evidence: &Evidence,
        (number, round): (usize, &Round),
        room: u64,
        curator: &Curator<'_, W>,
    ) -> Vec<&(ColumnSet, f64)> {
        let sizes = &fitted.walk.sizes;
        let sets: Vec<ColumnSet> = estimator.sets(evidence).cloned().collect();
        let fits = |set: &ColumnSet| {
            fitted.walk.tree.home(set, sizes).is_some() || {
                let with: Vec<ColumnSet> = sets.iter().chain([set]).cloned().collect();
                total_cells(&with, sizes) <= room
            }
        };
        let selection = PrivacyLoss::Exponential { epsilon: round.epsilon.clone() };
        let mut most = room;
        while most > 0 && !curator.affords(&[selection.clone(), round.noise.loss(most, curator.neighbours())])
        {
            most /= 2; // the δ of discrete noise grows with the number of cells
        }
        let small: Vec<_> = self.wanted.iter().filter(|(set, _)| set.cells(sizes) <= most).collect();
        turn(small, sizes, number).into_par_iter().filter(|(set, _)| fits(set)).collect()
    }
}

/// Those whose turn it is in this round.
pub(crate) fn turn<'a>(
    all: Vec<&'a (ColumnSet, f64)>,
    sizes: &[usize],
    number: usize,
) -> Vec<&'a (ColumnSet, f64)> {
    let work = |(set, _): &&(ColumnSet, f64)| set.cells(sizes).saturating_add(CELLS_PER_SET);
    let work = all.iter().map(work).fold(0, u64::saturating_add);
    let turns = work.div_ceil(CELLS_PER_ROUND).clamp(1, all.len().max(1) as u64) as usize;
    all.into_iter().skip(number % turns).step_by(turns).collect()
}

fn candidates(
    open: &[&(ColumnSet, f64)],
    fitted: &Fitted,
    round: &Round,
    rows: f64,
) -> Result<Vec<Candidate>, SynthError> {
    let candidate = |(set, weight): &&(ColumnSet, f64)| {
        let expected = expected(fitted, set, rows)?;
        let penalty = round.per_cell * expected.len() as f64;
        Ok(Candidate { set: set.clone(), expected, weight: *weight, penalty })
    };
    open.par_iter().map(candidate).collect()
}

/// The counts that the law expects.
pub(crate) fn expected(fitted: &Fitted, set: &ColumnSet, rows: f64) -> Result<Vec<f64>, SynthError> {
    let shares = fitted.walk.marginal(&fitted.beliefs, set, crate::MAX_QUERY_CELLS)?;
    Ok(shares.into_iter().map(|share| share * rows).collect())
}

/// Gaussian noise that costs a little less than this μ².
fn noise_for(mu_squared: f64, neighbours: Neighbours) -> Noise {
    Noise::Gaussian { variance: decimal(f64::from(neighbours.l2_squared()) / mu_squared * (1.0 + ROUNDING)) }
}

fn progress(step: usize, spent: f64, set: &ColumnSet, error: f64) -> Progress {
    Progress {
        stage: "measuring marginals",
        step,
        steps: None,
        spent: spent.min(1.0),
        set: Some(set.clone()),
        expected_error: Some(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_has_its_turn_and_small_workloads_have_it_always() {
        let sizes = [100; 30];
        let sets = |ways: usize| -> Vec<(ColumnSet, f64)> {
            let columns = Columns::new((0..30).map(|i| (format!("c{i}"), 100))).unwrap();
            Marginals::all(&columns, ways).unwrap().candidates()
        };
        let pairs = sets(2);
        assert_eq!(turn(pairs.iter().collect(), &sizes, 7).len(), pairs.len());
        // 4060 triples of 10⁶ cells.
        let triples = sets(3);
        let work: u64 = triples.iter().map(|(set, _)| set.cells(&sizes)).sum();
        let turns = work.div_ceil(CELLS_PER_ROUND) as usize + 10;
        let mut seen: Vec<&ColumnSet> = Vec::new();
        for number in 1..=turns {
            let now = turn(triples.iter().collect(), &sizes, number);
            assert!(!now.is_empty() && now.len() < 30, "{}", now.len());
            seen.extend(now.into_iter().map(|(set, _)| set));
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), triples.len());
        assert!(turn(vec![], &sizes, 3).is_empty());
    }
}
