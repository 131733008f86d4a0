//! [`Tree`]: several quantiles of one column from one noisy histogram.
//!
//! **Definition.** Between public bounds there are b^L cells of equal width. A *node* of level ℓ counts the values in b^(L−ℓ) neighbouring
//! cells, for ℓ = 1, …, L. All nodes are published, with noise of one law.
//!
//! **Sensitivity.** A unit with at most `most` values moves each level by at most `most` in ℓ1, so by at most `most` in ℓ2, in each of
//! its groups. The levels are L copies of such an item.
//!
//! **Shape.** A sum of cells from the left takes at most b − 1 nodes of each level. With L levels Laplace noise has variance in
//! proportion to L², Gaussian noise to L. So the variance of the sum grows with (b − 1)·L³, or (b − 1)·L²: for a fixed number of cells
//! these are least near b = 16, and between b = 4 and 5.
//!
//! **Estimate.** Counts that fit together best: least squares on the tree, in two passes \[Hay2010\]. Of all unbiased estimates that
//! are linear in the nodes it has the least variance for every sum of cells at once. Sums from the left are then made to grow
//! (the nearest that do), and the q-quantile is where they reach q of the whole, on a straight line within its cell.
//!
//! **Interval.** Let D(c) be (1 − q) times the number of values left of boundary c, less q times the number right of it. The
//! q-quantile lies in cell c with D(c) ≤ 0 ≤ D(c + 1). The estimates of D have variance at most
//! σ²·((1 − q)²·l + q²·r), where l and r nodes cover what is left and right of the boundary: that is an unbiased estimate, and ours is
//! no worse. So cell c is ruled out if D̂(c) > k·sd(c) or D̂(c + 1) < −k·sd(c + 1); the true cell is, with probability at most β. For Gaussian
//! noise k is the normal quantile. For Laplace noise it is that of one Laplace variable of this variance, if that is larger: sums
//! of several have lighter tails. (Tested, not proved.)
//!
//! **References.** \[Hay2010\].

use demur_core::Sensitivity;
use demur_exact::Rational;

use crate::interval::Interval;
use crate::noise::Noise;
use crate::pricing::Item;
use crate::{EngineError, Preference};

/// Cells between bounds, and the nodes above them; see the module text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    branching: usize,
    levels: u32,
    low: i64,
    high: i64,
}

/// A quantile, with where the true one lies; in steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantile {
    /// The estimate.
    pub value: f64,
    /// Where the true quantile lies.
    pub interval: Interval,
}

/// The most cells: finer than that noise hardly ever allows to tell apart.
const MOST_CELLS: u64 = 4096;

impl Tree {
    /// The tree for values from `low` to `high` steps, for the noise it will get.
    ///
    /// It has no more cells than there are values, but for filling its last level.
    ///
    /// ```
    /// use demur_engine::{Preference, Tree};
    /// assert_eq!(Tree::new(0, 1_000_000, Preference::Laplace)?.cells(), 4096);
    /// assert_eq!(Tree::new(0, 99, Preference::Gaussian)?.cells(), 256);
    /// # Ok::<(), demur_engine::EngineError>(())
    /// ```
    pub fn new(low: i64, high: i64, noise: Preference) -> Result<Self, EngineError> {
        if low >= high || low < -(1 << 62) || high > 1 << 62 {
            let text = format!("quantiles need bounds that are apart, but these are {low} and {high}");
            return Err(EngineError::new("engine.quantile.bounds", text));
        }
        let branching: u64 = if noise == Preference::Laplace { 16 } else { 4 };
        let wanted = high.abs_diff(low).saturating_add(1).min(MOST_CELLS);
        let mut levels = 1;
        while branching.pow(levels) < wanted {
            levels += 1;
        }
        Ok(Self { branching: branching as usize, levels, low, high })
    }

    /// How many cells there are.
    pub fn cells(&self) -> usize {
        self.branching.pow(self.levels)
    }

    /// How many levels there are.
    pub fn levels(&self) -> u32 {
        self.levels
    }

    /// How many nodes there are: b + b² + … + b^L.
    pub fn nodes(&self) -> usize {
        (1..=self.levels).map(|level| self.branching.pow(level)).sum()
    }

    /// What is published of it, when one unit has at most `most` values in each of `groups` groups.
    pub fn item(&self, what: impl Into<String>, groups: u64, most: u64) -> Result<Item, EngineError> {
        let by = Rational::from(most);
        let sensitivity = Sensitivity::new(most, by.clone(), by.square(), by)?;
        Ok(Item { what: what.into(), groups, sensitivity, copies: self.levels.into() })
    }

    /// The nodes above these cells, level by level from the top, the cells themselves last.
    pub fn sums(&self, cells: &[i128]) -> Result<Vec<i128>, EngineError> {
        self.check(cells.len(), self.cells())?;
        let mut levels = vec![cells.to_vec()];
        for _ in 1..self.levels {
            let below = levels.last().map_or(&[][..], Vec::as_slice);
            levels.push(below.chunks(self.branching).map(|nodes| nodes.iter().sum()).collect());
        }
        Ok(levels.into_iter().rev().flatten().collect())
    }

    /// Quantiles from noisy nodes, each with its interval at 1 − `beta`.
    pub fn quantiles(
        &self,
        noisy: &[i128],
        noise: &Noise,
        wanted: &[f64],
        beta: f64,
    ) -> Result<Vec<Quantile>, EngineError> {
        self.check(noisy.len(), self.nodes())?;
        if wanted.iter().any(|q| !(0.0..=1.0).contains(q)) || !(beta > 0.0 && beta < 1.0) {
            let text = "quantiles lie between 0 and 1, and so does the chance of a larger error";
            return Err(EngineError::new("engine.quantile.range", text));
        }
        let sums = running(&self.fitted(noisy));
        let growing = growing(&sums);
        let reach = noise.standard_deviation() * deviations(noise, beta);
        Ok(wanted
            .iter()
            .map(|&q| Quantile { value: self.value(&growing, q), interval: self.interval(&sums, q, reach) })
            .collect())
    }

    /// About how far the rank of a median is off, before fitting: to compare trees that got different noise.
    ///
    /// Half of b − 1 nodes per level on either side, each counted half.
    pub fn rank_deviation(&self, noise: &Noise) -> f64 {
        let nodes = f64::from(self.levels) * (self.branching as f64 - 1.0);
        noise.standard_deviation() * nodes.sqrt() / 2.0
    }

    fn check(&self, found: usize, expected: usize) -> Result<(), EngineError> {
        if found == expected {
            return Ok(());
        }
        let text = format!("a histogram for quantiles has {expected} numbers, but {found} were given");
        Err(EngineError::new("engine.quantile.length", text))
    }

    /// The cells that fit all nodes best.
    fn fitted(&self, noisy: &[i128]) -> Vec<f64> {
        let b = self.branching;
        let mut nodes: Vec<f64> = noisy.iter().map(|&node| double(node)).collect();
        // Where each level starts; its nodes' children are in the next.
        let starts: Vec<usize> = (0..=self.levels)
            .scan(0, |start, level| {
                let here = *start;
                *start += b.pow(level + 1);
                Some(here)
            })
            .collect();
        // Upward: each node together with what is below it, weighed by how much each knows.
        for level in (1..self.levels as usize).rev() {
            let height = self.levels as i32 - level as i32 + 1;
            let (whole, below) = ((b as f64).powi(height), (b as f64).powi(height - 1));
            let (own, others) = ((whole - below) / (whole - 1.0), (below - 1.0) / (whole - 1.0));
            let (upper, lower) = nodes.split_at_mut(starts[level]);
            for (node, children) in upper[starts[level - 1]..].iter_mut().zip(lower.chunks_exact(b)) {
                *node = own * *node + others * children.iter().sum::<f64>();
            }
        }
        // Downward: what a node has more than its children is shared among them.
        for level in 1..self.levels as usize {
            let (upper, lower) = nodes.split_at_mut(starts[level]);
            for (node, children) in upper[starts[level - 1]..].iter().zip(lower.chunks_exact_mut(b)) {
                let more = (node - children.iter().sum::<f64>()) / b as f64;
                children.iter_mut().for_each(|child| *child += more);
            }
        }
        nodes.split_off(starts[self.levels as usize - 1])
    }

    /// The value at boundary `c`, which may be a fraction.
    fn boundary(&self, c: f64) -> f64 {
        let (low, high) = (self.low as f64, self.high as f64);
        (low + (high - low + 1.0) * c / self.cells() as f64).clamp(low, high)
    }

    fn value(&self, growing: &[f64], q: f64) -> f64 {
        let whole = growing.last().copied().unwrap_or(0.0);
        if whole <= 0.0 {
            return self.boundary(self.cells() as f64 / 2.0);
        }
        let target = q * whole;
        let next = growing.partition_point(|sum| *sum < target).clamp(1, self.cells());
        let (before, after) = (growing[next - 1], growing[next]);
        let part = if after > before { ((target - before) / (after - before)).clamp(0.0, 1.0) } else { 0.5 };
        self.boundary(next as f64 - 1.0 + part)
    }

    /// From the first cell that is not ruled out to the last.
    fn interval(&self, sums: &[f64], q: f64, reach: f64) -> Interval {
        let whole = sums.last().copied().unwrap_or(0.0);
        let off = |c: usize| {
            let [left, right] = self.cover(c);
            (
                (1.0 - q) * sums[c] - q * (whole - sums[c]),
                reach * ((1.0 - q).powi(2) * left + q * q * right).sqrt(),
            )
        };
        let cells = self.cells();
        // No boundary is covered by more nodes than this: most cells are ruled out without counting theirs.
        let most = f64::from(self.levels) * (self.branching as f64 - 1.0) + 1.0;
        let widest = reach * (((1.0 - q).powi(2) + q * q) * most).sqrt();
        let distance = |c: usize| (1.0 - q) * sums[c] - q * (whole - sums[c]);
        let may_be_after = |c: usize| distance(c) >= -widest && off(c).0 >= -off(c).1;
        let may_be_before = |c: usize| distance(c) <= widest && off(c).0 <= off(c).1;
        let first = (0..cells).find(|&c| may_be_after(c + 1)).unwrap_or(cells - 1);
        let last = (0..cells).rev().find(|&c| may_be_before(c)).unwrap_or(0);
        Interval {
            low: self.boundary(first.min(last) as f64),
            high: self.boundary(first.max(last) as f64 + 1.0),
        }
    }

    /// How many nodes cover what is left of a boundary, and what is right of it.
    fn cover(&self, boundary: usize) -> [f64; 2] {
        let digits = |mut rest: usize| {
            let mut sum = 0;
            for _ in 1..self.levels {
                sum += rest % self.branching;
                rest /= self.branching;
            }
            (sum + rest) as f64
        };
        [digits(boundary), digits(self.cells() - boundary)]
    }
}

/// The number as a double; small ones at once.
fn double(number: i128) -> f64 {
    i64::try_from(number).map_or(number as f64, |small| small as f64)
}

/// 0, and the sums from the left.
fn running(cells: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    let sums = cells.iter().map(|cell| {
        sum += cell;
        sum
    });
    std::iter::once(0.0).chain(sums).collect()
}

/// The nearest sums that never fall, from 0 on: neighbours that do are replaced by their mean.
fn growing(sums: &[f64]) -> Vec<f64> {
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for &sum in sums {
        let mut block = (sum, 1);
        while let Some(&(mean, count)) = blocks.last().filter(|last| last.0 > block.0) {
            let both = count + block.1;
            block = ((mean * count as f64 + block.0 * block.1 as f64) / both as f64, both);
            blocks.pop();
        }
        blocks.push(block);
    }
    blocks.into_iter().flat_map(|(mean, count)| std::iter::repeat_n(mean.max(0.0), count)).collect()
}

/// How many standard deviations hold all but β.
fn deviations(noise: &Noise, beta: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if libm::erfc(middle * std::f64::consts::FRAC_1_SQRT_2) <= beta {
            high = middle
        } else {
            low = middle
        }
    }
    match noise {
        Noise::Gaussian { .. } => high,
        // Pr[|L| > q] = e^(−q/b), and the deviation is √2·b.
        _ => high.max(libm::log(1.0 / beta) * std::f64::consts::FRAC_1_SQRT_2),
    }
}

#[cfg(test)]
mod tests;
