//! Marginals of any columns, from a calibrated tree.
//!
//! **Method.** Only the smallest part of the tree that holds the columns matters. Of each of its cliques only the asked
//! columns and those shared with its neighbours are kept. From the leaves of this part to its root, tables p(C | S)
//! are multiplied with what came from below, and what is neither asked nor shared upwards is summed out. A table from below brings asked columns along: they are gone
//! through value by value, so that nothing larger than the clique and the result is stored. No
//! sampling, so no sampling error; a table that would exceed the limit is refused before it is made.

use crate::beliefs::{Beliefs, Walk};
use crate::error::require;
use crate::runs::Runs;
use crate::{ColumnSet, SynthError};

/// A step of more multiplications than this takes minutes.
const MOST_WORK: u64 = 1 << 36;

/// A dense table over some columns.
struct Dense {
    set: ColumnSet,
    values: Vec<f64>,
}

impl Walk {
    /// p over the set; no table on the way has more cells than `limit`.
    pub(crate) fn marginal(
        &self,
        beliefs: &Beliefs,
        set: &ColumnSet,
        limit: u64,
    ) -> Result<Vec<f64>, SynthError> {
        check_cells(set, &self.sizes, limit)?;
        if let Some(home) = self.tree.home(set, &self.sizes) {
            return Ok(self.project(beliefs, home, set).values);
        }
        let needed = self.needed(set);
        let mut from_below: Vec<Vec<Dense>> = self.tree.nodes.iter().map(|_| vec![]).collect();
        for node in (0..self.tree.nodes.len()).rev().filter(|&node| needed[node]) {
            let parent = self.tree.nodes[node].parent.filter(|&parent| needed[parent]);
            let mut message =
                self.sum_up(beliefs, node, parent.is_some(), set, &needed, &from_below[node], limit)?;
            from_below[node].clear();
            match parent {
                Some(parent) => from_below[parent].push(message),
                None => {
                    let total: f64 = message.values.iter().sum();
                    if total > 0.0 {
                        message.values.iter_mut().for_each(|p| *p /= total);
                    }
                    return Ok(message.values);
                }
            }
        }
        Err(SynthError::ours("a model without a clique was asked"))
    }

    /// The smallest connected part of the tree that holds the set.
    fn needed(&self, set: &ColumnSet) -> Vec<bool> {
        let nodes = &self.tree.nodes;
        let mut needed = vec![true; nodes.len()];
        let mut degree: Vec<usize> =
            nodes.iter().map(|node| node.children.len() + usize::from(node.parent.is_some())).collect();
        let mut look: Vec<usize> = (0..nodes.len()).collect();
        while let Some(node) = look.pop() {
            if !needed[node] || degree[node] > 1 {
                continue;
            }
            // The one neighbour that is left.
            let up = nodes[node].parent.filter(|&parent| needed[parent]);
            let down = nodes[node].children.iter().copied().find(|&child| needed[child]);
            let Some(neighbour) = up.or(down) else { continue };
            let shared = if up.is_some() { &nodes[node].separator } else { &nodes[neighbour].separator };
            if nodes[node].clique.intersection(set).is_subset(shared) {
                needed[node] = false;
                degree[neighbour] -= 1;
                look.push(neighbour);
            }
        }
        needed
    }

    fn project(&self, beliefs: &Beliefs, node: usize, set: &ColumnSet) -> Dense {
        let mut values = vec![0.0; set.cells(&self.sizes) as usize];
        self.runs(node, set).sum(&beliefs.marginals[node], &mut values);
        Dense { set: set.clone(), values }
    }

    /// p(asked columns below, separator upwards | separator) of one clique and what came from below.
    #[expect(clippy::too_many_arguments, reason = "one step of one algorithm")]
    fn sum_up(
        &self,
        beliefs: &Beliefs,
        node: usize,
        conditional: bool,
        asked: &ColumnSet,
        needed: &[bool],
        from_below: &[Dense],
        limit: u64,
    ) -> Result<Dense, SynthError> {
        let here = &self.tree.nodes[node];
        let up = if conditional { here.separator.clone() } else { ColumnSet::default() };
        let mut kept = here.clique.intersection(asked).union(&up);
        for &child in here.children.iter().filter(|&&child| needed[child]) {
            kept = kept.union(&self.tree.nodes[child].separator);
        }
        let mut own = self.project(beliefs, node, &kept);
        if conditional {
            let inverse: Vec<f64> =
                beliefs.separators[node].iter().map(|&p| if p > 0.0 { 1.0 / p } else { 0.0 }).collect();
            Runs::new(&own.set, &up, &self.sizes).spread(&mut own.values, &inverse, |p, inverse| p * inverse);
        }
        let keep = up.union(asked);
        if from_below.is_empty() {
            return Ok(reduce(own, &keep, &self.sizes));
        }
        Ok(Product::new(&own.set, from_below, &keep, &self.sizes, limit)?.of(&own.values))
    }
}

/// A table times those from below, summed over what is not kept; see the module text.
struct Product<'a> {
    steps: Vec<Step<'a>>,
    /// Places in the result of what is left at the end.
    places: Vec<usize>,
    result: ColumnSet,
    cells: usize,
}

/// One table from below.
struct Step<'a> {
    message: &'a Dense,
    /// What was left before it, over the columns they share.
    over_shared: Runs,
    /// The same over what is needed afterwards, and how many cells that has.
    over_kept: Runs,
    kept: usize,
    /// Places in the message: of what is shared, and of what it brings along; the latter with its place in the result.
    shared: Vec<usize>,
    brought: Vec<(usize, usize)>,
}

impl<'a> Product<'a> {
    fn new(
        own: &ColumnSet,
        messages: &'a [Dense],
        keep: &ColumnSet,
        sizes: &[usize],
        limit: u64,
    ) -> Result<Self, SynthError> {
        let brought = |message: &Dense| message.set.difference(own);
        let result =
            messages.iter().fold(own.intersection(keep), |set, message| set.union(&brought(message)));
        check_cells(&result, sizes, limit)?;
        let (mut left, mut times) = (own.clone(), 1u64);
        let mut steps = vec![];
        for (place, message) in messages.iter().enumerate() {
            let shared = message.set.intersection(&left);
            let brought = brought(message);
            times = times.saturating_mul(brought.cells(sizes));
            check_work(left.cells(sizes), times)?;
            let later = messages[place + 1..].iter().fold(keep.clone(), |set, next| set.union(&next.set));
            let kept = left.intersection(&later);
            let from = offsets(&message.set, &brought, sizes).into_iter();
            steps.push(Step {
                message,
                over_shared: Runs::new(&left, &shared, sizes),
                over_kept: Runs::new(&left, &kept, sizes),
                kept: kept.cells(sizes) as usize,
                shared: offsets(&message.set, &shared, sizes),
                brought: from.zip(offsets(&result, &brought, sizes)).collect(),
            });
            left = kept;
        }
        let places = offsets(&result, &left, sizes);
        Ok(Self { steps, places, cells: result.cells(sizes) as usize, result })
    }

    fn of(self, own: &[f64]) -> Dense {
        let mut values = vec![0.0; self.cells];
        self.add(own, &self.steps, 0, &mut values);
        Dense { set: self.result, values }
    }

    /// The product with these steps, for one value of all columns that were brought before.
    fn add(&self, left: &[f64], steps: &[Step<'_>], place: usize, out: &mut [f64]) {
        let Some((step, later)) = steps.split_first() else {
            self.places.iter().zip(left).for_each(|(at, sum)| out[place + at] = *sum);
            return;
        };
        let mut product = vec![0.0; left.len()];
        let mut sums = vec![0.0; step.kept];
        for (from, to) in &step.brought {
            let slice: Vec<f64> =
                step.shared.iter().map(|shared| step.message.values[shared + from]).collect();
            product.copy_from_slice(left);
            step.over_shared.spread(&mut product, &slice, |a, b| a * b);
            step.over_kept.sum(&product, &mut sums);
            self.add(&sums, later, place + to, out);
        }
    }
}

/// For every cell over the small set, its place in a table over the large one where all other columns are 0.
fn offsets(large: &ColumnSet, small: &ColumnSet, sizes: &[usize]) -> Vec<usize> {
    let mut offsets = vec![0];
    for column in large.iter() {
        let (size, kept) = (sizes[column], small.contains(column));
        if kept {
            offsets = offsets.iter().flat_map(|&at| (0..size).map(move |value| at * size + value)).collect();
        } else {
            offsets.iter_mut().for_each(|at| *at *= size);
        }
    }
    offsets
}

fn check_work(cells: u64, times: u64) -> Result<(), SynthError> {
    let work = cells.saturating_mul(times);
    require(work <= MOST_WORK, "synth.query.too-long", || {
        format!(
            "this marginal needs {work} multiplications, but at most {MOST_WORK} are allowed; ask for fewer columns"
        )
    })
}

/// Sums out all columns that are not in `keep`.
fn reduce(table: Dense, keep: &ColumnSet, sizes: &[usize]) -> Dense {
    let set = table.set.intersection(keep);
    if set == table.set {
        return table;
    }
    let mut values = vec![0.0; set.cells(sizes) as usize];
    Runs::new(&table.set, &set, sizes).sum(&table.values, &mut values);
    Dense { set, values }
}

fn check_cells(set: &ColumnSet, sizes: &[usize], limit: u64) -> Result<(), SynthError> {
    let cells = set.cells(sizes);
    require(cells <= limit, "synth.query.too-large", || {
        format!(
            "this marginal needs a table of {cells} cells, but at most {limit} are allowed; ask for fewer columns"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beliefs::tests::{believe, brute_force, marginal, models};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn every_marginal_is_that_of_brute_force((sizes, sets) in models(4.0)) {
            let joint = brute_force(&sets, &sizes);
            let (walk, beliefs) = believe(&sets, &sizes);
            let beliefs = beliefs.unwrap();
            for asked in ColumnSet::new(0..sizes.len()).subsets() {
                let found = walk.marginal(&beliefs, &asked, 1 << 20).unwrap();
                for (found, expected) in found.iter().zip(marginal(&joint, &asked, &sizes)) {
                    prop_assert!((found - expected).abs() < 1e-10, "{asked}: {found} {expected}");
                }
            }
        }
    }

    #[test]
    fn a_table_beyond_the_limit_is_refused_before_it_is_made() {
        let (walk, beliefs) = believe(&[], &[1000, 1000, 1000, 1000]);
        let error = walk.marginal(&beliefs.unwrap(), &ColumnSet::new(0..4), 1 << 24).unwrap_err();
        assert_eq!(error.code(), "synth.query.too-large");
        assert!(error.to_string().contains("1000000000000 cells"));
    }
}
