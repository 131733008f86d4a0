//! AIM: select what the model gets most wrong, measure it, estimate anew, until the budget is spent.

use demur_accounting::{Filter, Measure, Rule};
use demur_core::{Adjacency, Guarantee, PrivacyLoss};
use demur_exact::Rational;
use demur_noise::Words;
use rayon::prelude::*;

use crate::curator::{Candidate, Curator, Noise, moved};
use crate::estimator::{Effort, Estimator, Fitted};
use crate::junction_tree::total_cells;
use crate::model::Model;
use crate::mst::{decimal, singles};
use crate::progress::{Progress, Watch, tell};
use crate::zeros::Zeros;
use crate::{ColumnSet, Columns, SynthError, Marginals};

/// The parameters of a run; public, and fixed before a row is read.
#[derive(Clone, Debug)]
pub(crate) struct Aim {
    pub(crate) filter: Filter,
    /// b: the most μ² that all looks may have together.
    budget: f64,
    workload: Marginals,
    pub(crate) max_cells: u64,
}

/// Part of each round's μ² that goes to the selection.
const SELECTION: f64 = 0.1;
/// The first rounds are planned as if there were so many for each column.
const ROUNDS_PER_COLUMN: f64 = 16.0;
/// The part of δ set aside for discrete noise.
const DISCRETE: i128 = 10;

fn env(name: &str, default: f64) -> f64 {
    std::env::var(name).ok().and_then(|x| x.parse().ok()).unwrap_or(default)
}

impl Aim {
    pub(crate) fn plan(guarantee: Guarantee, workload: Marginals, max_cells: u64) -> Result<(Self, PrivacyLoss), SynthError> {
        let (epsilon, delta) = (guarantee.epsilon.exact(), guarantee.delta.exact());
        let delta_for_losses = &delta / &Rational::new(DISCRETE, 1);
        let filter = Filter::new(Rule::Gaussian { epsilon, delta, delta_for_losses: delta_for_losses.clone() })?;
        let capacity = filter.capacity().values.into_iter().find(|(measure, _)| *measure == Measure::MuSquared);
        let (_, budget) = capacity.ok_or_else(|| SynthError::ours("a Gaussian filter without a capacity"))?;
        let loss = PrivacyLoss::Gaussian { variance: Rational::one(), l2_squared: budget.clone() };
        let loss = loss.compose(PrivacyLoss::Approximate { epsilon: Rational::zero(), delta: delta_for_losses });
        Ok((Self { filter, budget: budget.to_f64_down(), workload, max_cells }, loss))
    }

    pub(crate) fn run<W: Words>(
        &self,
        columns: &Columns,
        zeros: &Zeros,
        curator: &mut Curator<'_, W>,
        watch: &mut Watch<'_>,
    ) -> Result<Model, SynthError> {
        let adjacency = curator.adjacency();
        let rounds = env("ROUNDS", ROUNDS_PER_COLUMN) * columns.len() as f64;
        let sel = env("SEL", SELECTION);
        let share = self.budget / rounds;
        let mut spent = 0.0;
        let init = env("INIT", 5.93);
        let one = noise_for((1.0 - sel) * share * init, adjacency);
        let (compression, mut evidence) = singles(columns, zeros, curator, &one, watch)?;
        spent += (1.0 - sel) * share * init * columns.len() as f64;
        let sizes = compression.sizes.clone();
        let mut estimator = Estimator::new(sizes.clone(), zeros.potentials(&sizes));
        let round_effort = Effort { steps: env("STEPS", 200.0) as usize, tolerance: env("TOL", 1e-2) };
        let mut rows = curator.public_rows().unwrap_or(evidence.total());
        let mut fitted = estimator.fit(&evidence, rows, round_effort)?;
        let wanted: Vec<(ColumnSet, f64)> = self.workload.candidates();
        let mut share = share;
        let mut round = 0;
        let start = std::time::Instant::now();
        loop {
            round += 1;
            let left = self.budget - spent;
            let last = left < 2.0 * share;
            if last {
                share = left * (1.0 - 1e-9);
            }
            if share <= 0.0 { break; }
            let noise = noise_for((1.0 - sel) * share, adjacency);
            let epsilon = selection_for(sel * share);
            let deviation = noise.variance().sqrt() * (2.0 / std::f64::consts::PI).sqrt();
            let sets: Vec<ColumnSet> = estimator.sets(&evidence).cloned().collect();
            let room = (self.max_cells as f64 * (spent + share) / self.budget) as u64;
            let fits = |set: &ColumnSet| {
                fitted.walk.tree.home(set, &sizes).is_some() || {
                    let mut sets = sets.clone();
                    sets.push(set.clone());
                    total_cells(&sets, &sizes) <= room
                }
            };
            let open: Vec<&(ColumnSet, f64)> = wanted.par_iter().filter(|(set, _)| set.cells(&sizes) <= room && fits(set)).collect();
            let candidate = |(set, weight): &&(ColumnSet, f64)| {
                let expected = expected(&fitted, set, rows)?;
                let penalty = deviation * expected.len() as f64 * env("PEN", 1.0);
                Ok(Candidate { set: set.clone(), expected, weight: *weight, penalty })
            };
            let candidates: Vec<Candidate> = open.par_iter().map(candidate).collect::<Result<_, SynthError>>()?;
            if candidates.is_empty() { break; }
            let chosen = curator.select(&epsilon, &candidates)?;
            let Candidate { set, expected: before, .. } = &candidates[chosen];
            let noisy = curator.measure(set, &noise)?;
            evidence.add(set.clone(), noisy, noise.variance());
            spent += share;
            rows = curator.public_rows().unwrap_or(evidence.total());
            fitted = estimator.fit(&evidence, rows, round_effort)?;
            let after = expected(&fitted, set, rows)?;
            let change: f64 = before.iter().zip(&after).map(|(a, b)| (a - b).abs()).sum();
            if std::env::var("SHOW").is_ok() {
                let cells: usize = evidence.observations().iter().map(|o| o.counts.len()).sum();
                eprintln!("{round} {set} cells {} sigma {:.1} change {change:.0} against {:.0} spent {:.3} model {} chi2 {:.2} steps {} {:?}", before.len(), noise.variance().sqrt(), deviation * before.len() as f64, spent / self.budget, fitted.beliefs.marginals.iter().map(Vec::len).sum::<usize>(), fitted.chi_squared / cells as f64, fitted.steps, start.elapsed());
            }
            tell(watch, Progress { stage: "measuring marginals", step: round, steps: None, spent: spent / self.budget, set: Some(set.clone()), expected_error: None })?;
            if last { break; }
            if change <= deviation * before.len() as f64 {
                share *= 4.0;
            }
        }
        let fitted = estimator.fit(&evidence, rows, Effort { steps: env("FINAL", 1000.0) as usize, tolerance: env("FTOL", 1e-3) })?;
        if std::env::var("SHOW").is_ok() {
                eprintln!("final steps {} chi2 {} {:?}", fitted.steps, fitted.chi_squared, start.elapsed());
        }
        Ok(Model { columns: columns.clone(), compression, walk: fitted.walk, beliefs: fitted.beliefs, rows })
    }
}

fn expected(fitted: &Fitted, set: &ColumnSet, rows: f64) -> Result<Vec<f64>, SynthError> {
    let shares = fitted.walk.marginal(&fitted.beliefs, set, 1 << 26)?;
    Ok(shares.into_iter().map(|p| p * rows).collect())
}

/// Gaussian noise that costs this μ².
fn noise_for(mu_squared: f64, adjacency: Adjacency) -> Noise {
    Noise::Gaussian { variance: decimal(f64::from(moved(adjacency)) / mu_squared * (1.0 + 1e-5)) }
}

/// ε of a selection that costs no more than this μ²: the price is at most (π/8)·ε².
fn selection_for(mu_squared: f64) -> Rational {
    decimal((mu_squared * 8.0 / std::f64::consts::PI).sqrt() * (1.0 - 1e-9))
}
