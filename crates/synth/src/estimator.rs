//! [`Estimator`]: the law of largest entropy that explains noisy marginals.
//!
//! **Problem.** Observations y_r (as shares of the total N) with weights w_r = N²·precision: find the law p on the records that minimises
//!
//! ```text
//! f(p) = ½ Σ_r Σ_cells w_r·(p_r − y_r)²
//! ```
//!
//! which is half the χ² of the residuals, and under Gaussian noise the negative log-likelihood. Of all minimisers the one of largest entropy
//! has the form p ∝ exp Σ_r θ_r, one table θ_r for each measured set \[McKenna2019\].
//!
//! **Method.** Mirror descent in the entropy's geometry: θ_r ← θ_r − η·∂f/∂p_r, one message passing per step, with Nesterov's
//! extrapolation of the θ_r, which is dropped whenever f rises \[ODonoghue2015\]. η grows while f falls and is halved when it does not.
//! Cells of small probability move slowly, so a descent that is stopped early has not fitted their noise.
//!
//! **Warm start.** The tables θ_r survive from one call to the next, so a call starts where the last one ended although its junction tree
//! is another one. A set that is new starts from θ = ln((y⁺ + σ)/(p_r + σ)), with σ = 1/√w: where counts stand out of their noise this is the step of
//! iterative proportional fitting, which is exact when nothing else was measured (so independent columns and the first pair need no
//! iteration), and where they do not it is next to nothing.
//!
//! **Stopping.** When f has fallen by less than a given share over ten steps, or after a number of steps.

use crate::beliefs::{Beliefs, Walk};
use crate::evidence::Evidence;
use crate::junction_tree::JunctionTree;
use crate::projections::Projections;
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
/// How much η grows after a step that went well.
const GROWTH: f64 = 1.1;

/// A law over all records, on its junction tree.
#[derive(Clone, Debug)]
pub(crate) struct Fitted {
    pub(crate) walk: Walk,
    pub(crate) beliefs: Beliefs,
    /// The sum of squared residuals in standard deviations: 2·f.
    #[cfg(test)]
    pub(crate) chi_squared: f64,
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
    pub(crate) fn fit(
        &mut self,
        evidence: &Evidence,
        total: f64,
        effort: Effort,
    ) -> Result<Fitted, SynthError> {
        let sets: Vec<ColumnSet> = self.sets(evidence).cloned().collect();
        let walk = Walk::new(JunctionTree::new(&sets, &self.sizes), self.sizes.clone());
        let known = self.potentials.len();
        for observation in &evidence.observations()[known..] {
            self.potentials.push(vec![0.0; observation.counts.len()]);
        }
        let problem = Problem::new(&walk, evidence, &self.zeros, total)?;
        problem.first_guesses(&mut self.potentials, known)?;
        let steepest = problem.steepest();
        let mut descent = Descent {
            step: self.step.unwrap_or(1.0 / steepest),
            least_step: 1e-9 / steepest,
            momentum: 0.0,
            before: self.potentials.clone(),
            here: problem.evaluate(std::mem::take(&mut self.potentials), None)?,
            spare: None,
        };
        let mut history = vec![descent.here.loss];
        let mut steps = 0;
        while steps < effort.steps && !settled(&history, effort.tolerance) {
            steps += 1;
            match descent.advance(&problem)? {
                Advance::Down => history.push(descent.here.loss),
                Advance::Retry => {}
                Advance::Stuck => break,
            }
        }
        self.step = Some(descent.step);
        self.potentials = descent.here.potentials;
        Ok(Fitted {
            #[cfg(test)]
            chi_squared: 2.0 * descent.here.loss,
            beliefs: descent.here.beliefs,
            walk,
        })
    }
}

/// A place of the descent.
struct Iterate {
    potentials: Vec<Vec<f64>>,
    beliefs: Beliefs,
    gradients: Vec<Vec<f64>>,
    loss: f64,
}

struct Descent {
    step: f64,
    least_step: f64,
    momentum: f64,
    /// Where the last step without its extrapolation led.
    before: Vec<Vec<f64>>,
    here: Iterate,
    /// Tables to be used again.
    spare: Option<Beliefs>,
}

enum Advance {
    Down,
    Retry,
    Stuck,
}

impl Descent {
    fn advance(&mut self, problem: &Problem<'_>) -> Result<Advance, SynthError> {
        let next = combine(&self.here.potentials, &self.here.gradients, -self.step);
        let next_momentum = (1.0 + (1.0 + 4.0 * self.momentum * self.momentum).sqrt()) / 2.0;
        let push = if self.momentum > 0.0 { (self.momentum - 1.0) / next_momentum } else { 0.0 };
        let ahead = combine(&next, &combine(&next, &self.before, -1.0), push);
        let there = problem.evaluate(ahead, self.spare.take())?;
        if there.loss <= self.here.loss {
            let left = std::mem::replace(&mut self.here, there);
            (self.before, self.momentum, self.spare) = (next, next_momentum, Some(left.beliefs));
            self.step *= GROWTH;
            return Ok(Advance::Down);
        }
        self.spare = Some(there.beliefs);
        if push > 0.0 {
            // Begin anew from here, without the push.
            (self.before, self.momentum) = (self.here.potentials.clone(), 0.0);
            return Ok(Advance::Retry);
        }
        self.step /= 2.0;
        Ok(if self.step < self.least_step { Advance::Stuck } else { Advance::Retry })
    }
}

/// One observed set.
struct Term {
    node: usize,
    shares: Vec<f64>,
    weights: Vec<f64>,
}

/// What is to be explained, on one tree.
struct Problem<'a> {
    walk: &'a Walk,
    terms: Vec<Term>,
    /// For each clique, which terms live there and how they lie in it.
    homes: Vec<(Vec<usize>, Projections)>,
    zeros: Vec<(usize, Runs, &'a [f64])>,
}

impl<'a> Problem<'a> {
    fn new(
        walk: &'a Walk,
        evidence: &Evidence,
        zeros: &'a [(ColumnSet, Vec<f64>)],
        total: f64,
    ) -> Result<Self, SynthError> {
        let mut terms = vec![];
        for observation in evidence.observations() {
            let node = home(walk, &observation.set)?;
            let shares = observation.counts.iter().map(|count| count / total).collect();
            let weights = observation.precisions.iter().map(|precision| precision * total * total).collect();
            terms.push(Term { node, shares, weights });
        }
        let of_node = |(node, place): (usize, &crate::junction_tree::Node)| {
            let here: Vec<usize> = (0..terms.len()).filter(|&term| terms[term].node == node).collect();
            let sets: Vec<&ColumnSet> = here.iter().map(|&term| &evidence.observations()[term].set).collect();
            let projections = Projections::new(&place.clique, &sets, &walk.sizes);
            (here, projections)
        };
        let homes = walk.tree.nodes.iter().enumerate().map(of_node).collect();
        let place = |(set, zeros): &'a (ColumnSet, Vec<f64>)| {
            let node = home(walk, set)?;
            Ok((node, walk.runs(node, set), zeros.as_slice()))
        };
        let zeros = zeros.iter().map(place).collect::<Result<_, SynthError>>()?;
        Ok(Self { walk, terms, homes, zeros })
    }

    /// The largest weight.
    fn steepest(&self) -> f64 {
        let weights = self.terms.iter().flat_map(|term| term.weights.iter().copied());
        weights.fold(f64::MIN_POSITIVE, f64::max)
    }

    /// New sets start from where proportional fitting would put them, as far as their noise lets them be seen.
    fn first_guesses(&self, potentials: &mut [Vec<f64>], known: usize) -> Result<(), SynthError> {
        for new in known..self.terms.len() {
            let here = self.evaluate(potentials.to_vec(), None)?;
            let Term { shares, weights, .. } = &self.terms[new];
            for (place, theta) in potentials[new].iter_mut().enumerate() {
                let expected = here.gradients[new][place] / weights[place] + shares[place];
                let noise = weights[place].sqrt().recip();
                *theta = ((shares[place].max(0.0) + noise) / (expected.max(0.0) + noise)).ln();
            }
        }
        Ok(())
    }

    /// The law of these potentials, f and its gradient.
    fn evaluate(&self, potentials: Vec<Vec<f64>>, spare: Option<Beliefs>) -> Result<Iterate, SynthError> {
        let fill = |node: usize, table: &mut [f64]| {
            let (terms, projections) = &self.homes[node];
            projections.scatter(table, terms.iter().map(|&term| potentials[term].as_slice()));
            for (_, runs, zeros) in self.zeros.iter().filter(|(home, ..)| *home == node) {
                runs.spread(table, zeros, |t, zero| t + zero);
            }
        };
        let beliefs = self.walk.calibrate(spare, fill).ok_or_else(|| {
            let text =
                "the combinations declared impossible leave no possible record; take some of them back";
            SynthError::new("synth.zeros.contradiction", text)
        })?;
        let mut gradients: Vec<Vec<f64>> = vec![vec![]; self.terms.len()];
        for ((terms, projections), marginal) in self.homes.iter().zip(&beliefs.marginals) {
            for (&term, found) in terms.iter().zip(projections.gather(marginal)) {
                gradients[term] = found;
            }
        }
        let mut loss = 0.0;
        for (term, gradient) in self.terms.iter().zip(&mut gradients) {
            for ((slope, &share), &weight) in gradient.iter_mut().zip(&term.shares).zip(&term.weights) {
                let residual = *slope - share;
                loss += 0.5 * weight * residual * residual;
                *slope = weight * residual;
            }
        }
        Ok(Iterate { potentials, beliefs, gradients, loss })
    }
}

fn home(walk: &Walk, set: &ColumnSet) -> Result<usize, SynthError> {
    walk.tree.home(set, &walk.sizes).ok_or_else(|| SynthError::ours("a measured set has no clique"))
}

/// a + times·b.
fn combine(a: &[Vec<f64>], b: &[Vec<f64>], times: f64) -> Vec<Vec<f64>> {
    let sum = |(a, b): (&Vec<f64>, &Vec<f64>)| a.iter().zip(b).map(|(a, b)| a + times * b).collect();
    a.iter().zip(b).map(sum).collect()
}

fn settled(history: &[f64], tolerance: f64) -> bool {
    let Some(earlier) = history.len().checked_sub(1 + WINDOW).map(|place| history[place]) else {
        return false;
    };
    let now = history[history.len() - 1];
    earlier - now <= tolerance * earlier
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beliefs::tests::{brute_force, marginal, models};
    use proptest::prelude::*;

    const EXACT: Effort = Effort { steps: 20_000, tolerance: 1e-13 };

    /// Marginals of a law, measured without noise but with this deviation on paper.
    fn observe(joint: &[f64], sets: &[ColumnSet], sizes: &[usize], rows: f64, variance: f64) -> Evidence {
        let mut evidence = Evidence::default();
        for set in sets {
            let counts = marginal(joint, set, sizes).iter().map(|p| p * rows).collect();
            evidence.add(set.clone(), counts, variance);
        }
        evidence
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        /// What was measured exactly is reproduced, and all marginals after estimation are those of brute force with the same potentials.
        #[test]
        fn estimates_agree_with_brute_force((sizes, sets) in models(1.5)) {
            let joint = brute_force(&sets, &sizes);
            let names: Vec<ColumnSet> = sets.iter().map(|(set, _)| set.clone()).collect();
            let evidence = observe(&joint, &names, &sizes, 1000.0, 4.0);
            let mut estimator = Estimator::new(sizes.clone(), vec![]);
            let fitted = estimator.fit(&evidence, 1000.0, EXACT).unwrap();
            prop_assert!(fitted.chi_squared < 1e-3, "{}", fitted.chi_squared);
            let potentials: Vec<_> = evidence.observations().iter().map(|o| o.set.clone()).zip(estimator.potentials.clone()).collect();
            let own = brute_force(&potentials, &sizes);
            for set in ColumnSet::new(0..sizes.len()).subsets() {
                let found = fitted.walk.marginal(&fitted.beliefs, &set, 1 << 20).unwrap();
                for (found, expected) in found.iter().zip(marginal(&own, &set, &sizes)) {
                    prop_assert!((found - expected).abs() < 1e-10, "{set}: {found} {expected}");
                }
            }
        }
    }

    #[test]
    fn independent_columns_and_one_pair_need_no_iteration() {
        let sizes = [3, 4];
        let joint = brute_force(
            &[(ColumnSet::new([0, 1]), (0..12).map(|i| f64::from(i * i % 7) / 3.0).collect())],
            &sizes,
        );
        for sets in [vec![ColumnSet::new([0]), ColumnSet::new([1])], vec![ColumnSet::new([0, 1])]] {
            let evidence = observe(&joint, &sets, &sizes, 1e6, 1e-9);
            let fitted = Estimator::new(sizes.to_vec(), vec![])
                .fit(&evidence, 1e6, Effort { steps: 0, tolerance: 0.0 })
                .unwrap();
            for set in &sets {
                let found = fitted.walk.marginal(&fitted.beliefs, set, 100).unwrap();
                for (found, expected) in found.iter().zip(marginal(&joint, set, &sizes)) {
                    assert!((found - expected).abs() < 1e-9, "{set}: {found} {expected}");
                }
            }
        }
    }

    /// Two measurements of a column that disagree: the precise one counts a hundred times as much.
    #[test]
    fn precise_measurements_count_for_more() {
        let mut evidence = Evidence::default();
        evidence.add(ColumnSet::new([0]), vec![400.0, 600.0], 100.0);
        evidence.add(ColumnSet::new([0, 1]), vec![250.0, 250.0, 250.0, 250.0], 0.5);
        let fitted = Estimator::new(vec![2, 2], vec![]).fit(&evidence, 1000.0, EXACT).unwrap();
        let found = fitted.walk.marginal(&fitted.beliefs, &ColumnSet::new([0]), 100).unwrap();
        // The pair's sums have variance 1: (400/100 + 500/1)/(1/100 + 1) = 499.01.
        assert!((found[0] * 1000.0 - 499.01).abs() < 0.02, "{found:?}");
    }

    #[test]
    fn impossible_combinations_get_nothing_whatever_was_measured() {
        let mut evidence = Evidence::default();
        evidence.add(ColumnSet::new([0]), vec![500.0, 500.0], 1.0);
        evidence.add(ColumnSet::new([0, 1]), vec![200.0, 300.0, 100.0, 400.0], 1.0);
        let zeros = vec![(ColumnSet::new([0, 1]), vec![0.0, 0.0, f64::NEG_INFINITY, 0.0])];
        let fitted = Estimator::new(vec![2, 2], zeros).fit(&evidence, 1000.0, EXACT).unwrap();
        let found = fitted.walk.marginal(&fitted.beliefs, &ColumnSet::new([0, 1]), 100).unwrap();
        assert_eq!(found[2], 0.0);
        assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-12 && found[3] > 0.4);
    }

    /// Noisy counts below 0 are explained by nothing at all, not by a failure.
    #[test]
    fn negative_counts_are_explained_as_well_as_can_be() {
        let mut evidence = Evidence::default();
        evidence.add(ColumnSet::new([0]), vec![-50.0, 120.0, 30.0], 1.0);
        let fitted = Estimator::new(vec![3], vec![]).fit(&evidence, 100.0, EXACT).unwrap();
        let found = fitted.walk.marginal(&fitted.beliefs, &ColumnSet::new([0]), 10).unwrap();
        // The nearest point of the simplex: 95 and 5, none below 0.
        assert!(
            found[0] < 1e-6 && (found[1] - 0.95).abs() < 1e-3 && (found[2] - 0.05).abs() < 1e-3,
            "{found:?}"
        );
    }
}
