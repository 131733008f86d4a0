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
//! **Interval.** Let D(c) be (1 − q) times the number of values left of boundary c, less q times the number right of it: it grows with c, and the q-quantile lies where it passes 0. Boundary c is surely left
//! of the quantile if D̂(c) < −k·sd(c), and so are then all before it; it is surely right of it if D̂(c) > k·sd(c). D̂(c) is the growing sum
//! less q times the whole. Such a sum is the mean of a *block* of neighbouring sums, so sd(c) is that of the mean of D over the block: it is less than that of D(c) alone, because
//! noise of small nodes is averaged. For Gaussian noise k is the normal quantile. For Laplace noise it lies between that and
//! the quantile of one Laplace variable, nearer to the first the more nodes a sum is made of. (Tested, not proved: blocks follow noise. An interval holds a little
//! less often than it says, 91 to 95 times of 100, where a quantile is exactly the last value before a wide gap; and more often where a cell holds more values than noise can hide, since it is never less than one cell.)
//!
//! **Variance.** Least squares on the tree separates: weights w of cells that are constant on the nodes of level ℓ and add up to 0 in each node above are known with variance
//! σ²·‖w‖²/λ_ℓ, λ_ℓ = 1 + b + … + b^(L−ℓ), because each level from ℓ on sees them, b^(L−j) times at level j, and none above does. What is constant everywhere is seen by all L levels. The variance of a
//! weighted sum is that of its parts. The mean of D over a block has a weight for each cell: 1 − q left of the block, −q right of it, and a straight line between.
//!
//! **Extremes.** Who is the largest is one person, so nobody may learn it. What can be told is the largest boundary that is *surely reached*: the last before the first, from
//! the left, with no more values right of it than noise can hide, k·sd with one-sided k. What lies right of a boundary is averaged over a few boundaries from there on, about as many as have two deviations of a node in values between them if all
//! cells were alike. Beyond the largest value all of these are noise alone, so with probability 1 − β some value lies at
//! least as far as is told; and noise of small nodes, which would end the walk too early, is averaged. The interval goes from there to the upper bound, since a single value further out would be hidden. Where even all values together could be noise
//! nothing is said. The least value likewise, from the other side.
//!
//! **Cells that are shown.** A tree may have fewer cells than b^L; the others are empty. Fitted cells are replaced by the nearest that are not negative and have
//! the same sum, and their running sums are rounded: so they are whole, not negative, and add up to the rounded whole. Shares are made of these.
//! With n cells the shape is that of b = ⌈n^(1/L)⌉ with the least (b − 1)·L³, or (b − 1)·L²: for few cells one level.
//!
//! **References.** \[Hay2010\], \[Cornish1938\].

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
    /// How many of the b^L cells lie between the bounds.
    used: usize,
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
        check_bounds(low, high)?;
        let branching: u64 = if noise == Preference::Laplace { 16 } else { 4 };
        let wanted = high.abs_diff(low).saturating_add(1).min(MOST_CELLS);
        let mut levels = 1;
        while branching.pow(levels) < wanted {
            levels += 1;
        }
        let used = branching.pow(levels) as usize;
        Ok(Self { branching: branching as usize, levels, used, low, high })
    }

    /// The tree with exactly so many cells, to be shown.
    ///
    /// ```
    /// use demur_engine::{Preference, Tree};
    /// let tree = Tree::of_cells(0, 99, 10, Preference::Laplace)?;
    /// assert_eq!((tree.cells(), tree.levels()), (10, 1));
    /// # Ok::<(), demur_engine::EngineError>(())
    /// ```
    pub fn of_cells(low: i64, high: i64, cells: u32, noise: Preference) -> Result<Self, EngineError> {
        check_bounds(low, high)?;
        let used = cells.max(1) as usize;
        let power = if noise == Preference::Laplace { 3 } else { 2 };
        let shape = |levels: u32| {
            let enough = (1..).find(|b: &usize| b.saturating_pow(levels) >= used).unwrap_or(used);
            let branching = enough.max(2);
            ((branching - 1) * (levels as usize).pow(power), branching, levels)
        };
        let (_, branching, levels) = (1..=6).map(shape).min().unwrap_or((0, used.max(2), 1));
        Ok(Self { branching, levels, used, low, high })
    }

    /// How many cells there are between the bounds.
    pub fn cells(&self) -> usize {
        self.used
    }

    /// The cells of the lowest level, those beyond the bounds included.
    fn leaves(&self) -> usize {
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
        let mut nodes = Vec::with_capacity(self.nodes());
        self.append_sums(cells, &mut nodes)?;
        Ok(nodes)
    }

    /// The same, behind what is there.
    pub(crate) fn append_sums(&self, cells: &[i128], nodes: &mut Vec<i128>) -> Result<(), EngineError> {
        self.check(cells.len(), self.cells())?;
        let (start, mut above) = (nodes.len(), self.nodes() - self.leaves());
        nodes.resize(start + above, 0);
        nodes.extend_from_slice(cells);
        nodes.resize(start + self.nodes(), 0);
        for level in (1..self.levels).rev() {
            let (upper, lower) = nodes[start..].split_at_mut(above);
            above -= self.branching.pow(level);
            for (node, below) in upper[above..].iter_mut().zip(lower.chunks_exact(self.branching)) {
                *node = below.iter().sum();
            }
        }
        Ok(())
    }

    /// Quantiles from noisy nodes, each with its interval at 1 − `beta`.
    pub fn quantiles(
        &self,
        noisy: &[i128],
        noise: &Noise,
        wanted: &[f64],
        beta: f64,
    ) -> Result<Vec<Quantile>, EngineError> {
        self.quantiles_of(&self.fit(noisy)?, noise, wanted, beta)
    }

    /// What all quantiles are made of.
    pub(crate) fn fit(&self, noisy: &[i128]) -> Result<Fit, EngineError> {
        self.check(noisy.len(), self.nodes())?;
        let sums = running(&self.fitted(noisy));
        Ok(Fit { whole: sums.last().copied().unwrap_or(0.0), blocks: blocks(&sums) })
    }

    /// Quantiles of nodes that have been fitted.
    pub(crate) fn quantiles_of(
        &self,
        fit: &Fit,
        noise: &Noise,
        wanted: &[f64],
        beta: f64,
    ) -> Result<Vec<Quantile>, EngineError> {
        if wanted.iter().any(|q| !(0.0..=1.0).contains(q)) || !(beta > 0.0 && beta < 1.0) {
            let text = "quantiles lie between 0 and 1, and so does the chance of a larger error";
            return Err(EngineError::new("engine.quantile.range", text));
        }
        let reach = Reach::of(noise, beta);
        let quantile = |&q: &f64| {
            let interval = self.interval(&fit.blocks, fit.whole, q, &reach);
            Quantile { value: self.value(&fit.blocks, q).clamp(interval.low, interval.high), interval }
        };
        Ok(wanted.iter().map(quantile).collect())
    }

    /// The largest or the least value that is surely reached, with the interval of the true one; `None` where there may be no values.
    pub fn extreme(
        &self,
        noisy: &[i128],
        noise: &Noise,
        largest: bool,
        beta: f64,
    ) -> Result<Option<Quantile>, EngineError> {
        self.check(noisy.len(), self.nodes())?;
        if !(beta > 0.0 && beta < 0.5) {
            let text = format!("the chance of a larger error lies between 0 and 1/2, but it is {beta}");
            return Err(EngineError::new("engine.quantile.range", text));
        }
        let sums = running(&self.fitted(noisy));
        let whole = sums.last().copied().unwrap_or(0.0);
        let totals = running(&sums);
        let reach = Reach::of(noise, 2.0 * beta);
        let cells = self.cells();
        let hidden = 2.0 * noise.standard_deviation() * cells as f64 / whole.max(1.0);
        let more = (hidden as usize).clamp(1, (cells / 64).max(1)) - 1;
        // Whether more values lie beyond boundary c and those next to it than noise can hide.
        let beyond = |c: usize| {
            let [first, last] =
                if largest { [c, (c + more).min(cells)] } else { [c.saturating_sub(more), c] };
            let mean = (totals[last + 1] - totals[first]) / (last - first + 1) as f64;
            let (values, weights) = if largest { (whole - mean, [0.0, 1.0]) } else { (mean, [1.0, 0.0]) };
            self.exceeds(values, [first, last], weights, &reach)
        };
        let (low, high) = (self.low as f64, self.high as f64);
        if largest {
            let reached = (0..=cells).find(|&c| !beyond(c)).unwrap_or(cells);
            let value = self.boundary(reached.saturating_sub(1) as f64).ceil();
            return Ok((reached > 0).then_some(Quantile { value, interval: Interval { low: value, high } }));
        }
        let reached = (0..=cells).rev().find(|&c| !beyond(c)).unwrap_or(0);
        // The last whole step below the next boundary.
        let next = low + (high - low + 1.0) * (reached + 1).min(cells) as f64 / cells as f64;
        let value = (next.ceil() - 1.0).clamp(low, high);
        Ok((reached < cells).then_some(Quantile { value, interval: Interval { low, high: value } }))
    }

    /// How many values lie in each cell: whole, not negative, and adding up.
    pub fn buckets(&self, noisy: &[i128]) -> Result<Vec<f64>, EngineError> {
        self.check(noisy.len(), self.nodes())?;
        let fitted = self.fitted(noisy);
        let cells = not_negative(&fitted, fitted.iter().sum::<f64>().max(0.0));
        let rounded: Vec<f64> = running(&cells).into_iter().map(f64::round).collect();
        Ok(rounded.windows(2).map(|pair| pair[1] - pair[0]).collect())
    }

    /// By how much one cell is off at most, but for a chance of β.
    pub fn cell_reach(&self, noise: &Noise, beta: f64) -> f64 {
        // Fitting knows more than the cell alone.
        Reach::of(noise, beta).alone()
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
        let mut cells = nodes.split_off(starts[self.levels as usize - 1]);
        cells.truncate(self.used);
        cells
    }

    /// The value at boundary `c`, which may be a fraction.
    fn boundary(&self, c: f64) -> f64 {
        let (low, high) = (self.low as f64, self.high as f64);
        (low + (high - low + 1.0) * c / self.cells() as f64).clamp(low, high)
    }

    fn value(&self, blocks: &[Block], q: f64) -> f64 {
        let whole = blocks.last().map_or(0.0, Block::sum);
        if whole <= 0.0 {
            return self.boundary(self.cells() as f64 / 2.0);
        }
        let target = q * whole;
        let next = blocks.partition_point(|block| block.sum() < target);
        let next = blocks.get(next).map_or(self.cells(), |block| block.first()).max(1);
        let [before, after] = [next - 1, next].map(|boundary| sum_at(blocks, boundary));
        let part = if after > before { ((target - before) / (after - before)).clamp(0.0, 1.0) } else { 0.5 };
        self.boundary(next as f64 - 1.0 + part)
    }

    /// From the last boundary that is surely left of the quantile to the first that is surely right of it.
    fn interval(&self, blocks: &[Block], whole: f64, q: f64, reach: &Reach) -> Interval {
        let surely = |block: &Block, values: f64| {
            self.exceeds(values, [block.first(), block.last()], [1.0 - q, -q], reach)
        };
        let [left, right] = [
            blocks.partition_point(|block| block.sum() < q * whole),
            blocks.partition_point(|block| block.sum() <= q * whole),
        ];
        let left = blocks[..left].iter().rev().find(|block| surely(block, q * whole - block.sum()));
        let right = blocks[right..].iter().find(|block| surely(block, block.sum() - q * whole));
        Interval {
            low: self.boundary(left.map_or(0, Block::last) as f64),
            high: self.boundary(right.map_or(self.cells(), Block::first) as f64),
        }
    }

    /// Whether so many values are more than noise can hide in the mean over the boundaries from `first` to `last`, with these weights left and right of them.
    fn exceeds(&self, values: f64, boundaries: [usize; 2], [left, right]: [f64; 2], reach: &Reach) -> bool {
        // At most so many nodes cover what lies on one side of a boundary: more than that needs no closer look.
        let most = f64::from(self.levels) * (self.branching as f64 - 1.0) + 1.0;
        let widest = reach.alone() * ((left * left + right * right) * most).sqrt();
        let reached = || reach.of_sum(self.variance(boundaries, left, right), left.abs().max(right.abs()));
        values > widest || (values > 0.0 && values > reached())
    }

    /// The variance of `left` times what lies left of a boundary plus `right` times what lies right of it, in the mean over the boundaries from `first` to `last`; in variances of one node.
    fn variance(&self, [first, last]: [usize; 2], left: f64, right: f64) -> f64 {
        let count = last - first + 1;
        // For how many pairs of a boundary and one of the first `cells` cells the cell lies left.
        let lefts = |cells: usize| match cells {
            _ if cells <= first => count * cells,
            _ if cells <= last => count * first + (cells - first) * (2 * last + 1 - cells - first) / 2,
            _ => count * first + (last - first) * count / 2,
        };
        // The mean weight of cells.
        let mean = |start: usize, size: usize| {
            let share = (lefts(start + size) - lefts(start)) as f64 / (count * size) as f64;
            right + (left - right) * share
        };
        // How often a level with nodes of so many cells sees its differences.
        let seen = |size: usize| ((size - 1) / (self.branching - 1)) as f64;
        let leaves = self.leaves();
        let whole = mean(0, leaves);
        let mut variance = leaves as f64 * whole * whole / seen(leaves);
        // Nodes in which weights differ: their starts, and how many cells each has.
        let (mut nodes, mut size) = (vec![0], leaves);
        while size > 1 {
            let part = size / self.branching;
            let mut below = Vec::new();
            for start in nodes {
                let around = mean(start, size);
                for child in (start..start + size).step_by(part) {
                    variance += part as f64 * (mean(child, part) - around).powi(2) / seen(size);
                    if child + part > first && child < last {
                        below.push(child);
                    }
                }
            }
            (nodes, size) = (below, part);
        }
        variance
    }
}

fn check_bounds(low: i64, high: i64) -> Result<(), EngineError> {
    if low >= high || low < -(1 << 62) || high > 1 << 62 {
        let text = format!("quantiles need bounds that are apart, but these are {low} and {high}");
        return Err(EngineError::new("engine.quantile.bounds", text));
    }
    Ok(())
}

/// The nearest numbers that are not negative and add up to `whole`: all are lowered by the same, and what falls below 0 is 0.
pub(crate) fn not_negative(numbers: &[f64], whole: f64) -> Vec<f64> {
    let mut largest: Vec<f64> = numbers.to_vec();
    largest.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut lowered) = (0.0, 0.0);
    for (count, number) in largest.iter().enumerate() {
        sum += number;
        let by = (sum - whole) / (count + 1) as f64;
        if *number <= by && count > 0 {
            break;
        }
        lowered = by;
    }
    numbers.iter().map(|number| (number - lowered).max(0.0)).collect()
}

/// The number as a double; small ones at once.
fn double(number: i128) -> f64 {
    i64::try_from(number).map_or_else(|_| number as f64, |small| small as f64)
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

/// The counts that fit the noisy nodes of one group best, as sums from the left that never fall.
pub(crate) struct Fit {
    blocks: Vec<Block>,
    /// The number of all values, as the nodes have it.
    whole: f64,
}

/// Neighbouring boundaries with one sum: the mean of theirs, which come to `total`.
struct Block {
    first: u32,
    last: u32,
    total: f64,
}

impl Block {
    fn first(&self) -> usize {
        self.first as usize
    }

    fn last(&self) -> usize {
        self.last as usize
    }

    fn boundaries(&self) -> f64 {
        f64::from(self.last - self.first + 1)
    }

    /// Nobody is counted less than never.
    fn sum(&self) -> f64 {
        (self.total / self.boundaries()).max(0.0)
    }

    /// Whether its sum is greater, which is asked too often to divide.
    fn is_above(&self, other: &Self) -> bool {
        self.total * other.boundaries() > other.total * self.boundaries()
    }
}

/// The nearest sums that never fall: neighbours that do are replaced by their mean.
fn blocks(sums: &[f64]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for (place, &sum) in (0..).zip(sums) {
        let mut block = Block { first: place, last: place, total: sum };
        while let Some(before) = blocks.pop_if(|before| before.is_above(&block)) {
            block = Block { first: before.first, last: block.last, total: before.total + block.total };
        }
        blocks.push(block);
    }
    blocks
}

/// The sum of a boundary.
fn sum_at(blocks: &[Block], boundary: usize) -> f64 {
    blocks.get(blocks.partition_point(|block| block.last() < boundary)).map_or(0.0, Block::sum)
}

/// How far sums of nodes reach but for β.
struct Reach {
    /// The deviation of one node.
    deviation: f64,
    /// The normal quantile.
    normal: f64,
    /// How much further one node's own law reaches, in its deviations.
    further: f64,
}

impl Reach {
    fn of(noise: &Noise, beta: f64) -> Self {
        let (mut low, mut high) = (0.0, 40.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if libm::erfc(middle * std::f64::consts::FRAC_1_SQRT_2) <= beta {
                high = middle
            } else {
                low = middle
            }
        }
        let further = match noise {
            Noise::Gaussian { .. } => 0.0,
            // Pr[|L| > q] = e^(−q/b), and the deviation is √2·b.
            _ => (libm::log(1.0 / beta) * std::f64::consts::FRAC_1_SQRT_2 - high).max(0.0),
        };
        Self { deviation: noise.standard_deviation(), normal: high, further }
    }

    /// Of one node.
    fn alone(&self) -> f64 {
        self.deviation * (self.normal + self.further)
    }

    /// Of a sum with this variance, in variances of one node, in which no node has a larger weight than `heaviest`.
    ///
    /// The fourth cumulant of a sum is Σ w⁴ times that of one, at most the heaviest w² times Σ w²; tails reach further in proportion to
    /// it \[Cornish1938\].
    fn of_sum(&self, variance: f64, heaviest: f64) -> f64 {
        let alike = (heaviest * heaviest / variance).min(1.0);
        self.deviation * variance.sqrt() * (self.normal + self.further * alike)
    }
}

#[cfg(test)]
mod tests;
