//! [`Beliefs`]: a law on a junction tree, as conditional and marginal tables of its cliques.
//!
//! **Message passing.** Given log-potentials θ on the cliques, p(x) ∝ exp Σ θ_C(x_C). From the leaves to the root, clique C
//! adds the messages of its children to θ_C, and with the separator S to its parent
//!
//! ```text
//! message(s) = ln Σ exp t(c),     p(c | s) = exp(t(c) − message(s)),     the sum over all c that agree with s.
//! ```
//!
//! From the root to the leaves p(c) = p(s)·p(c | s). The largest t of each s is taken out before the exponential, so nothing overflows,
//! and every row of a conditional table sums to 1 however small its weight.
//!
//! Cliques at the same distance from the root do not depend on each other: they are worked on by all cores.

use rayon::prelude::*;

use crate::ColumnSet;
use crate::exponential::exponentials;
use crate::junction_tree::JunctionTree;
use crate::runs::Runs;

/// Below so many cells one core is done before others have begun.
const WORTH_SHARING: usize = 1 << 13;

/// A junction tree with what is needed to walk it again and again.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    pub(crate) tree: JunctionTree,
    pub(crate) sizes: Vec<usize>,
    /// Each clique over its separator, and its parent over the same.
    below: Vec<Runs>,
    above: Vec<Option<Runs>>,
}

/// Tables of every clique; see the module text.
#[derive(Clone, Debug)]
pub(crate) struct Beliefs {
    /// p(C).
    pub(crate) marginals: Vec<Vec<f64>>,
    /// p(S) of the separator to the parent.
    pub(crate) separators: Vec<Vec<f64>>,
}

impl Walk {
    pub(crate) fn new(tree: JunctionTree, sizes: Vec<usize>) -> Self {
        let below = tree.nodes.iter().map(|node| Runs::new(&node.clique, &node.separator, &sizes)).collect();
        let above = tree.nodes.iter().map(|node| {
            node.parent.map(|parent| Runs::new(&tree.nodes[parent].clique, &node.separator, &sizes))
        });
        let above = above.collect();
        Self { tree, sizes, below, above }
    }

    /// How a clique lies over a set of its columns.
    pub(crate) fn runs(&self, node: usize, set: &ColumnSet) -> Runs {
        Runs::new(&self.tree.nodes[node].clique, set, &self.sizes)
    }

    pub(crate) fn cells(&self, node: usize) -> usize {
        self.tree.nodes[node].clique.cells(&self.sizes) as usize
    }

    /// The law with the log-potentials that `fill` adds up for each clique, starting from 0.
    ///
    /// None when no record has a weight above 0. Tables of `spare` are used again: fresh memory is slow.
    pub(crate) fn calibrate(
        &self,
        spare: Option<Beliefs>,
        fill: impl Fn(usize, &mut [f64]) + Sync,
    ) -> Option<Beliefs> {
        let nodes = self.tree.nodes.len();
        let mut tables: Vec<Vec<f64>> = spare.map_or_else(|| vec![vec![]; nodes], |spare| spare.marginals);
        let mut messages: Vec<Vec<f64>> = vec![vec![]; nodes];
        for level in self.tree.levels.iter().rev() {
            let up = |(node, mut table): (usize, Vec<f64>)| {
                table.clear();
                table.resize(self.cells(node), 0.0);
                fill(node, &mut table);
                for &child in &self.tree.nodes[node].children {
                    if let Some(runs) = &self.above[child] {
                        runs.spread(&mut table, &messages[child], |t, message| t + message);
                    }
                }
                let message = self.condition(node, &mut table);
                (node, table, message)
            };
            let work: Vec<_> = level.iter().map(|&node| (node, std::mem::take(&mut tables[node]))).collect();
            let done: Vec<_> = if self.is_wide(level) {
                work.into_par_iter().map(up).collect()
            } else {
                work.into_iter().map(up).collect()
            };
            for (node, table, message) in done {
                tables[node] = table;
                messages[node] = message;
            }
        }
        let log_total = messages.first().and_then(|root| root.first()).copied()?;
        (log_total > f64::NEG_INFINITY).then(|| self.descend(tables, messages))
    }

    /// Whether there is enough work for several cores.
    fn is_wide(&self, level: &[usize]) -> bool {
        level.len() > 1 && level.iter().map(|&node| self.cells(node)).sum::<usize>() > WORTH_SHARING
    }

    /// Turns t into p(C | S) and returns the message.
    fn condition(&self, node: usize, table: &mut [f64]) -> Vec<f64> {
        let runs = &self.below[node];
        let separator = self.tree.nodes[node].separator.cells(&self.sizes) as usize;
        let mut largest = vec![0.0; separator];
        runs.max(table, &mut largest);
        // A separator value without any weight keeps it: everything there is e^(−∞) = 0.
        let origin: Vec<f64> = largest.iter().map(|&t| if t > f64::NEG_INFINITY { t } else { 0.0 }).collect();
        runs.spread(table, &origin, |t, origin| t - origin);
        exponentials(table);
        let mut sums = vec![0.0; separator];
        runs.sum(table, &mut sums);
        let inverse: Vec<f64> = sums.iter().map(|&sum| if sum > 0.0 { 1.0 / sum } else { 0.0 }).collect();
        runs.spread(table, &inverse, |weight, inverse| weight * inverse);
        largest.iter().zip(&sums).map(|(&t, &sum)| t + sum.ln()).collect()
    }

    /// p(S) of every separator, from the marginals of the cliques.
    pub(crate) fn separators(&self, marginals: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let of_node = |node: usize| {
            let mut share = vec![1.0; self.tree.nodes[node].separator.cells(&self.sizes) as usize];
            if node > 0 {
                self.below[node].sum(&marginals[node], &mut share);
            }
            share
        };
        (0..self.tree.nodes.len()).map(of_node).collect()
    }

    /// From conditional tables to marginals; `separators` is overwritten.
    fn descend(&self, mut tables: Vec<Vec<f64>>, mut separators: Vec<Vec<f64>>) -> Beliefs {
        for root in separators.iter_mut().take(1) {
            root.fill(1.0);
        }
        for level in self.tree.levels.iter().skip(1) {
            let down = |&node: &usize| {
                let mut share = vec![0.0; separators[node].len()];
                if let (Some(runs), Some(parent)) = (&self.above[node], self.tree.nodes[node].parent) {
                    runs.sum(&tables[parent], &mut share);
                }
                share
            };
            let shares: Vec<Vec<f64>> = level.iter().map(down).collect();
            let mut taken: Vec<(usize, Vec<f64>, Vec<f64>)> = level
                .iter()
                .zip(shares)
                .map(|(&node, share)| (node, std::mem::take(&mut tables[node]), share))
                .collect();
            let multiply = |(node, table, share): &mut (usize, Vec<f64>, Vec<f64>)| {
                self.below[*node].spread(table, share, |conditional, share| conditional * share);
            };
            if self.is_wide(level) {
                taken.par_iter_mut().for_each(multiply)
            } else {
                taken.iter_mut().for_each(multiply)
            }
            for (node, table, share) in taken {
                tables[node] = table;
                separators[node] = share;
            }
        }
        Beliefs { marginals: tables, separators }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::junction_tree::JunctionTree;
    use proptest::prelude::*;

    /// p over all columns, by multiplying everything out.
    pub(crate) fn brute_force(sets: &[(ColumnSet, Vec<f64>)], sizes: &[usize]) -> Vec<f64> {
        let all = ColumnSet::new(0..sizes.len());
        let mut joint = vec![0.0; all.cells(sizes) as usize];
        for (set, potential) in sets {
            Runs::new(&all, set, sizes).spread(&mut joint, potential, |t, theta| t + theta);
        }
        let largest = joint.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = joint.iter().map(|t| (t - largest).exp()).sum();
        joint.iter().map(|t| (t - largest).exp() / total).collect()
    }

    pub(crate) fn marginal(joint: &[f64], set: &ColumnSet, sizes: &[usize]) -> Vec<f64> {
        let mut sums = vec![0.0; set.cells(sizes) as usize];
        Runs::new(&ColumnSet::new(0..sizes.len()), set, sizes).sum(joint, &mut sums);
        sums
    }

    /// A walk and its beliefs for potentials on sets.
    pub(crate) fn believe(sets: &[(ColumnSet, Vec<f64>)], sizes: &[usize]) -> (Walk, Option<Beliefs>) {
        let names: Vec<ColumnSet> = sets.iter().map(|(set, _)| set.clone()).collect();
        let walk = Walk::new(JunctionTree::new(&names, sizes), sizes.to_vec());
        let beliefs = walk.calibrate(None, |node, table| {
            for (set, potential) in sets {
                if walk.tree.home(set, sizes) == Some(node) {
                    walk.runs(node, set).spread(table, potential, |t, theta| t + theta);
                }
            }
        });
        (walk, beliefs)
    }

    /// Random sets of up to three of six columns with random potentials; some cells impossible.
    pub(crate) fn models(spread: f64) -> impl Strategy<Value = (Vec<usize>, Vec<(ColumnSet, Vec<f64>)>)> {
        let sizes = proptest::collection::vec(1usize..4, 2..7);
        sizes.prop_flat_map(move |sizes| {
            let columns = sizes.len();
            let set = proptest::collection::vec(0..columns, 1..4).prop_map(ColumnSet::new);
            let sets = proptest::collection::vec(set, 1..8);
            (Just(sizes), sets).prop_flat_map(move |(sizes, sets)| {
                let potentials: Vec<_> = sets
                    .iter()
                    .map(|set| proptest::collection::vec(-spread..spread, set.cells(&sizes) as usize))
                    .collect();
                (Just(sizes), Just(sets), potentials)
                    .prop_map(|(sizes, sets, potentials)| (sizes, sets.into_iter().zip(potentials).collect()))
            })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn marginals_are_those_of_brute_force((sizes, mut sets) in models(30.0), impossible in any::<bool>()) {
            if impossible {
                for (_, potential) in &mut sets {
                    if let Some(cell) = potential.iter_mut().find(|theta| **theta < -20.0) {
                        *cell = f64::NEG_INFINITY;
                    }
                }
            }
            let joint = brute_force(&sets, &sizes);
            let (walk, beliefs) = believe(&sets, &sizes);
            let Some(beliefs) = beliefs else {
                prop_assert!(joint.iter().all(|p| p.is_nan()));
                return Ok(());
            };
            for (node, found) in walk.tree.nodes.iter().zip(&beliefs.marginals) {
                for (found, expected) in found.iter().zip(marginal(&joint, &node.clique, &sizes)) {
                    prop_assert!((found - expected).abs() < 1e-10, "{found} {expected}");
                }
            }
        }
    }

    /// Weights too far apart for doubles still give the right law: 0 against e^1000·e^−1000.
    #[test]
    fn weights_far_apart_do_not_get_lost() {
        let sets = [
            (ColumnSet::new([0, 1]), vec![-1000.0, -1000.0, 0.0, 0.0]),
            (ColumnSet::new([0]), vec![1000.0, 0.0]),
        ];
        let (_, beliefs) = believe(&sets, &[2, 2]);
        for p in &beliefs.unwrap().marginals[0] {
            assert!((p - 0.25).abs() < 1e-12);
        }
    }

    #[test]
    fn a_contradiction_is_noticed() {
        let never = f64::NEG_INFINITY;
        let sets =
            [(ColumnSet::new([0]), vec![never, 0.0]), (ColumnSet::new([0, 1]), vec![0.0, 0.0, never, never])];
        assert!(believe(&sets, &[2, 2]).1.is_none());
    }
}
