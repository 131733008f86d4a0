//! [`Estimator`]: the law of largest entropy that explains noisy marginals.
//!
//! **Problem.** Observations y_r (as shares of the total N) with precisions w_r: find the law p on the records that minimises
//!
//! ```text
//! f(p) = ½ Σ_r Σ_cells w_r·N²·(p_r − y_r)²
//! ```
//!
//! which is half the χ² of the residuals, and under Gaussian noise the negative log-likelihood. Of all minimisers it has the form
//! p ∝ exp Σ_r θ_r, one table θ_r for each measured set \[McKenna2019\].
//!
//! **Method.** Mirror descent in the entropy's geometry: θ_r ← θ_r − η·∂f/∂p_r, one message passing per step, with Nesterov's
//! extrapolation of the θ_r, which is dropped whenever f rises \[ODonoghue2015\]. η doubles its way up while f falls and is
//! halved when it does not. The tables θ_r survive from one call to the next, so a call starts where the last one ended
//! although its junction tree is another one.
//!
//! **Stopping.** When f hardly falls any more, or after a number of steps.

use crate::beliefs::{Beliefs, Walk};
use crate::evidence::Evidence;
use crate::junction_tree::JunctionTree;
use crate::runs::Runs;
use crate::{ColumnSet, SynthError};

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Effort {
    /// At most so many steps.
    pub(crate) steps: usize,
    /// Stop when f has fallen by less than this share over a window of steps.
    pub(crate) tolerance: f64,
}

/// The steps over which progress is judged.
const WINDOW: usize = 10;

/// A law over all records, on its junction tree.
#[derive(Clone, Debug)]
pub(crate) struct Fitted {
    pub(crate) walk: Walk,
    pub(crate) beliefs: Beliefs,
    /// f at the end.
    pub(crate) loss: f64,
    /// How many steps were made.
    pub(crate) steps: usize,
}

/// Potentials that survive from call to call; see the module text.
#[derive(Clone, Debug)]
pub(crate) struct Estimator {
    sizes: Vec<usize>,
    /// Combinations that cannot occur: 0, or −∞.
    zeros: Vec<(ColumnSet, Vec<f64>)>,
    potentials: Vec<Vec<f64>>,
    step: Option<f64>,
}

/// One observed set at its place in the tree.
struct Term<'a> {
    node: usize,
    runs: Runs,
    shares: Vec<f64>,
    precisions: &'a [f64],
    /// Precisions are times this: N².
    scale: f64,
}

/// The state of the descent.
struct Iterate {
    beliefs: Beliefs,
    gradients: Vec<Vec<f64>>,
    loss: f64,
}

impl Estimator {
    pub(crate) fn new(sizes: Vec<usize>, zeros: Vec<(ColumnSet, Vec<f64>)>) -> Self {
        Self { sizes, zeros, potentials: vec![], step: None }
    }

    /// All sets that a tree must cover.
    pub(crate) fn sets<'a>(&'a self, evidence: &'a Evidence) -> impl Iterator<Item = &'a ColumnSet> {
        let observed = evidence.observations().iter().map(|observation| &observation.set);
        observed.chain(self.zeros.iter().map(|(set, _)| set))
    }

    /// The law that explains the evidence about `total` rows.
    pub(crate) fn fit(&mut self, evidence: &Evidence, total: f64, effort: Effort) -> Result<Fitted, SynthError> {
        let sets: Vec<ColumnSet> = self.sets(evidence).cloned().collect();
        let walk = Walk::new(JunctionTree::new(&sets, &self.sizes), self.sizes.clone());
        for observation in &evidence.observations()[self.potentials.len()..] {
            self.potentials.push(vec![0.0; observation.counts.len()]);
        }
        let terms = self.terms(&walk, evidence, total)?;
        let zeros = self.zero_runs(&walk)?;
        let evaluate = |potentials: &[Vec<f64>]| evaluate(&walk, &terms, &zeros, potentials);

        let mut here = evaluate(&self.potentials)?;
        let steepest = terms.iter().flat_map(|term| term.precisions.iter().map(|w| w * term.scale)).fold(0.0, f64::max);
        let mut step = self.step.unwrap_or(1.0 / steepest.max(f64::MIN_POSITIVE));
        let mut momentum = 0.0f64;
        let mut before = self.potentials.clone();
        let mut point = self.potentials.clone();
        let mut history = vec![here.loss];
        let mut steps = 0;
        while steps < effort.steps && !terms.is_empty() {
            steps += 1;
            let next: Vec<Vec<f64>> = descend(&point, &here.gradients, step);
            let next_momentum = (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt()) / 2.0;
            let push = if momentum > 0.0 { (momentum - 1.0) / next_momentum } else { 0.0 };
            let extrapolated = extrapolate(&next, &before, push);
            let there = evaluate(&extrapolated)?;
            if there.loss <= here.loss {
                (before, point, here, momentum) = (next, extrapolated, there, next_momentum);
                step *= 1.1;
                history.push(here.loss);
                if settled(&history, effort.tolerance) {
                    break;
                }
            } else if push > 0.0 {
                // Begin anew from here, without the push.
                (before, momentum) = (point.clone(), 0.0);
            } else {
                step /= 2.0;
                if step * steepest < 1e-9 {
                    break;
                }
            }
        }
        self.step = Some(step);
        self.potentials = point;
        Ok(Fitted { beliefs: here.beliefs, loss: here.loss, steps, walk })
    }

    fn terms<'a>(&self, walk: &Walk, evidence: &'a Evidence, total: f64) -> Result<Vec<Term<'a>>, SynthError> {
        let term = |observation: &'a crate::evidence::Observation| {
            let node = home(walk, &observation.set)?;
            Ok(Term {
                node,
                runs: walk.runs(node, &observation.set),
                shares: observation.counts.iter().map(|count| count / total).collect(),
                precisions: &observation.precisions,
                scale: total * total,
            })
        };
        evidence.observations().iter().map(term).collect()
    }

    fn zero_runs<'a>(&'a self, walk: &Walk) -> Result<Vec<(usize, Runs, &'a [f64])>, SynthError> {
        let place = |(set, zeros): &'a (ColumnSet, Vec<f64>)| {
            let node = home(walk, set)?;
            Ok((node, walk.runs(node, set), zeros.as_slice()))
        };
        self.zeros.iter().map(place).collect()
    }
}

fn home(walk: &Walk, set: &ColumnSet) -> Result<usize, SynthError> {
    walk.tree.home(set, &walk.sizes).ok_or_else(|| SynthError::ours("a measured set has no clique"))
}

/// Beliefs, gradients and f at these potentials.
fn evaluate(
    walk: &Walk,
    terms: &[Term<'_>],
    zeros: &[(usize, Runs, &[f64])],
    potentials: &[Vec<f64>],
) -> Result<Iterate, SynthError> {
    let beliefs = walk.calibrate(|node, table| {
        for (term, potential) in terms.iter().zip(potentials).filter(|(term, _)| term.node == node) {
            term.runs.spread(table, potential, |t, theta| t + theta);
        }
        for (_, runs, zeros) in zeros.iter().filter(|(home, ..)| *home == node) {
            runs.spread(table, zeros, |t, zero| t + zero);
        }
    });
    let beliefs = beliefs.ok_or_else(|| {
        let text = "the combinations declared impossible leave no possible record; take some of them back";
        SynthError::new("synth.zeros.contradiction", text)
    })?;
    let mut loss = 0.0;
    let mut gradients = Vec::with_capacity(terms.len());
    for term in terms {
        let mut gradient = vec![0.0; term.shares.len()];
        term.runs.sum(&beliefs.marginals[term.node], &mut gradient);
        for ((slope, &share), &precision) in gradient.iter_mut().zip(&term.shares).zip(term.precisions) {
            let (residual, weight) = (*slope - share, precision * term.scale);
            loss += 0.5 * weight * residual * residual;
            *slope = weight * residual;
        }
        gradients.push(gradient);
    }
    Ok(Iterate { beliefs, gradients, loss })
}

fn descend(point: &[Vec<f64>], gradients: &[Vec<f64>], step: f64) -> Vec<Vec<f64>> {
    let moved = |(theta, slope): (&Vec<f64>, &Vec<f64>)| {
        theta.iter().zip(slope).map(|(theta, slope)| theta - step * slope).collect()
    };
    point.iter().zip(gradients).map(moved).collect()
}

fn extrapolate(next: &[Vec<f64>], before: &[Vec<f64>], push: f64) -> Vec<Vec<f64>> {
    let moved = |(next, before): (&Vec<f64>, &Vec<f64>)| {
        next.iter().zip(before).map(|(next, before)| next + push * (next - before)).collect()
    };
    next.iter().zip(before).map(moved).collect()
}

fn settled(history: &[f64], tolerance: f64) -> bool {
    let Some(earlier) = history.len().checked_sub(1 + WINDOW).map(|place| history[place]) else { return false };
    let now = history[history.len() - 1];
    earlier - now <= tolerance * earlier
}
