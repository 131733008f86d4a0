//! From noisy grids to one map that agrees with itself; all of it is post-processing.
//!
//! **Consistency.** Let a block have been counted as y with variance v, and let its cells' estimates sum up to s with variance w. The estimate of
//! least variance is (w·y + v·s)/(v + w), with variance v·w/(v + w). Applied from the finest grid upwards this is what all
//! measurements at and below a block say about it.
//!
//! **Pruning.** From the coarsest grid downwards the cells z of a block with the final count t become the nearest x (in ℓ2) with x ≥ 0 and Σx = t: there
//! is a number τ with xᵢ = max(zᵢ − τ, 0). Where few cells matter τ is large and takes away the noise of all others; what
//! it takes away from one cell it gives to its neighbours in the block, so sums stay right.
//!
//! **References.** \[Hay2010\], \[Condat2016\].

/// A measured grid of 2^level cells a side, row by row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Grid {
    pub(super) level: u32,
    pub(super) counts: Vec<f64>,
    /// Of its Laplace noise.
    pub(super) scale: f64,
}

impl Grid {
    fn variance(&self) -> f64 {
        2.0 * self.scale * self.scale
    }
}

/// Estimates of every measured level, finest first, that are not negative and add up.
pub(super) fn estimate(grids: &[Grid]) -> Vec<Vec<f64>> {
    let combined = combine(grids);
    let mut estimates: Vec<Vec<f64>> = Vec::with_capacity(grids.len());
    for (grid, counts) in grids.iter().zip(combined).rev() {
        let level = match estimates.last() {
            None => counts.iter().map(|&count| count.max(0.0)).collect(),
            Some(above) => divide(above, counts, grid.level),
        };
        estimates.push(level);
    }
    estimates.reverse();
    estimates
}

/// What is said about each block by itself and by all below it.
fn combine(grids: &[Grid]) -> Vec<Vec<f64>> {
    let mut combined: Vec<Vec<f64>> = Vec::with_capacity(grids.len());
    let mut variance_below = 0.0;
    for grid in grids {
        let variance = grid.variance();
        let Some(below) = combined.last() else {
            combined.push(grid.counts.clone());
            variance_below = variance;
            continue;
        };
        let cells = below.len() / grid.counts.len();
        let variance_of_sum = variance_below * cells as f64;
        let trust = variance_of_sum / (variance_of_sum + variance);
        let side = 1usize << grid.level;
        let mut sums = vec![0.0; grid.counts.len()];
        let factor = (cells as f64).sqrt().round() as usize;
        for (place, count) in below.iter().enumerate() {
            let (row, column) = (place / (side * factor), place % (side * factor));
            sums[row / factor * side + column / factor] += count;
        }
        combined.push(grid.counts.iter().zip(sums).map(|(&own, sum)| sum + trust * (own - sum)).collect());
        variance_below = variance * trust;
    }
    combined
}

/// Divides the counts of the level above among its cells.
fn divide(above: &[f64], mut counts: Vec<f64>, level: u32) -> Vec<f64> {
    let side = 1usize << level;
    let factor = ((counts.len() / above.len()) as f64).sqrt().round() as usize;
    let blocks = side / factor;
    let mut cells = Vec::with_capacity(factor * factor);
    for (block, &total) in above.iter().enumerate() {
        let place = |cell: usize| {
            (block / blocks * factor + cell / factor) * side + block % blocks * factor + cell % factor
        };
        cells.clear();
        cells.extend((0..factor * factor).map(|cell| counts[place(cell)]));
        let threshold = threshold(&mut cells.clone(), total);
        for (cell, count) in cells.iter().enumerate() {
            counts[place(cell)] = if total > 0.0 { (count - threshold).max(0.0) } else { 0.0 };
        }
    }
    counts
}

/// τ with Σ max(xᵢ − τ, 0) = total.
fn threshold(values: &mut [f64], total: f64) -> f64 {
    values.sort_unstable_by(|a, b| b.total_cmp(a));
    let mut sum = -total;
    let mut threshold = f64::NEG_INFINITY;
    for (before, &value) in values.iter().enumerate() {
        sum += value;
        let candidate = sum / (before + 1) as f64;
        if value <= candidate && before > 0 {
            break;
        }
        threshold = candidate;
    }
    threshold
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The projection is on the simplex, and no nearby point of it is nearer.
        #[test]
        fn shares_of_a_block_are_the_nearest_that_add_up(
            values in proptest::collection::vec(-50.0f64..50.0, 16), total in 0.01f64..200.0,
            from in 0usize..16, to in 0usize..16,
        ) {
            let shares = divide(&[total], values.clone(), 2);
            prop_assert!((shares.iter().sum::<f64>() - total).abs() < 1e-9 * (1.0 + total));
            prop_assert!(shares.iter().all(|&share| share >= 0.0));
            let distance = |x: &[f64]| x.iter().zip(&values).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
            let mut other = shares.clone();
            let step = other[from].min(0.01);
            other[from] -= step;
            other[to] += step;
            prop_assert!(distance(&other) >= distance(&shares) - 1e-9);
        }
    }

    #[test]
    fn levels_add_up_and_empty_blocks_stay_empty() {
        let fine = Grid { level: 4, counts: (0..256).map(|i| f64::from(i % 7) - 3.0).collect(), scale: 1.0 };
        let mut coarse = Grid { level: 2, counts: vec![50.0; 16], scale: 0.1 };
        coarse.counts[5] = -40.0;
        let estimates = estimate(&[fine, coarse]);
        for block in 0..16usize {
            let cells = (0..16).map(|cell| (block / 4 * 4 + cell / 4) * 16 + block % 4 * 4 + cell % 4);
            let sum: f64 = cells.map(|place| estimates[0][place]).sum();
            assert!((sum - estimates[1][block]).abs() < 1e-9);
        }
        assert_eq!(estimates[1][5], 0.0);
        assert!(estimates[1][4] > 40.0);
    }

    #[test]
    fn a_measurement_counts_by_its_precision() {
        // A block counted as 16 with variance 2, its 16 cells as 0 with variance 2 each: (32·16 + 2·0)/34.
        let fine = Grid { level: 2, counts: vec![0.0; 16], scale: 1.0 };
        let coarse = Grid { level: 0, counts: vec![16.0], scale: 1.0 };
        let combined = combine(&[fine, coarse]);
        assert!((combined[1][0] - 16.0 * 32.0 / 34.0).abs() < 1e-12);
    }
}
