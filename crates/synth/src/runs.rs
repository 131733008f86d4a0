//! [`Runs`]: how a dense table lies over a table of some of its columns.
//!
//! Tables are stored with the last column changing fastest. Neighbouring columns that are all kept, or all
//! summed out, act as one long axis; so a table is a few alternating *runs*, and every operation between the
//! two tables is a pair of plain loops over the last two of them, repeated for each place in the others.

use crate::ColumnSet;

/// The shape of a table relative to a smaller one; see the module text.
#[derive(Clone, Debug)]
pub(crate) struct Runs {
    /// Axes before the last two: length, and the stride in the small table (0 where summed out).
    outer: Vec<(usize, usize)>,
    /// How often the last two axes repeat in the large table.
    blocks: usize,
    rows: usize,
    row_length: usize,
    /// Whether the last axis is kept; the one before it then is not, and conversely.
    last_kept: bool,
}

impl Runs {
    /// `small` is a subset of `large`.
    pub(crate) fn new(large: &ColumnSet, small: &ColumnSet, sizes: &[usize]) -> Self {
        let mut runs: Vec<(usize, bool)> = Vec::new();
        for place in large.iter().filter(|&place| sizes[place] > 1) {
            let kept = small.contains(place);
            match runs.last_mut() {
                Some((length, same)) if *same == kept => *length *= sizes[place],
                _ => runs.push((sizes[place], kept)),
            }
        }
        let (row_length, last_kept) = runs.pop().unwrap_or((1, true));
        let (rows, _) = runs.pop().unwrap_or((1, !last_kept));
        let mut stride = if last_kept { row_length } else { rows };
        let mut outer: Vec<(usize, usize)> = Vec::with_capacity(runs.len());
        for &(length, kept) in runs.iter().rev() {
            outer.push((length, if kept { stride } else { 0 }));
            stride *= if kept { length } else { 1 };
        }
        outer.reverse();
        let blocks = outer.iter().map(|(length, _)| length).product();
        Self { outer, blocks, rows, row_length, last_kept }
    }

    /// Calls `f` with the start of each block in the large and in the small table.
    fn each_block(&self, mut f: impl FnMut(usize, usize)) {
        let mut digits = vec![0usize; self.outer.len()];
        let (mut large, mut small) = (0, 0);
        for _ in 0..self.blocks {
            f(large, small);
            large += self.rows * self.row_length;
            for (digit, &(length, stride)) in digits.iter_mut().zip(&self.outer).rev() {
                *digit += 1;
                small += stride;
                if *digit < length {
                    break;
                }
                small -= stride * length;
                *digit = 0;
            }
        }
    }

    /// Sums the large table into the small one, which is overwritten.
    pub(crate) fn sum(&self, large: &[f64], small: &mut [f64]) {
        small.fill(0.0);
        self.gather(large, small, |sum, x| sum + x, |row| row.iter().sum());
    }

    /// The largest entries of the large table, into the small one, which is overwritten.
    pub(crate) fn max(&self, large: &[f64], small: &mut [f64]) {
        small.fill(f64::NEG_INFINITY);
        let largest = |row: &[f64]| row.iter().fold(f64::NEG_INFINITY, |a, &b| if b > a { b } else { a });
        self.gather(large, small, |a, b| if b > a { b } else { a }, largest);
    }

    fn gather(
        &self,
        large: &[f64],
        small: &mut [f64],
        join: impl Fn(f64, f64) -> f64,
        fold: impl Fn(&[f64]) -> f64,
    ) {
        let (rows, length) = (self.rows, self.row_length);
        self.each_block(|from, to| {
            let block = &large[from..from + rows * length];
            if self.last_kept {
                let target = &mut small[to..to + length];
                for row in block.chunks_exact(length) {
                    for (target, &x) in target.iter_mut().zip(row) {
                        *target = join(*target, x);
                    }
                }
            } else {
                for (target, row) in small[to..to + rows].iter_mut().zip(block.chunks_exact(length)) {
                    *target = join(*target, fold(row));
                }
            }
        });
    }

    /// Replaces each entry of the large table by `f` of it and of its entry in the small table.
    pub(crate) fn spread(&self, large: &mut [f64], small: &[f64], f: impl Fn(f64, f64) -> f64) {
        let (rows, length) = (self.rows, self.row_length);
        self.each_block(|from, to| {
            let block = &mut large[from..from + rows * length];
            if self.last_kept {
                let source = &small[to..to + length];
                for row in block.chunks_exact_mut(length) {
                    for (x, &y) in row.iter_mut().zip(source) {
                        *x = f(*x, y);
                    }
                }
            } else {
                for (&y, row) in small[to..to + rows].iter().zip(block.chunks_exact_mut(length)) {
                    for x in row {
                        *x = f(*x, y);
                    }
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The place in the small table of every cell of the large one, digit by digit.
    fn places(large: &ColumnSet, small: &ColumnSet, sizes: &[usize]) -> Vec<usize> {
        let mut places = vec![0];
        for column in large.iter() {
            let (size, kept) = (sizes[column], small.contains(column));
            let next =
                |&place: &usize| (0..size).map(move |value| if kept { place * size + value } else { place });
            places = places.iter().flat_map(next).collect();
        }
        places
    }

    proptest! {
        #[test]
        fn runs_agree_with_indices_computed_digit_by_digit(
            sizes in proptest::collection::vec(1usize..5, 1..6), kept in any::<u8>(),
        ) {
            let large = ColumnSet::new(0..sizes.len());
            let small = ColumnSet::new((0..sizes.len()).filter(|place| kept >> place & 1 == 1));
            let runs = Runs::new(&large, &small, &sizes);
            let cells = large.cells(&sizes) as usize;
            let values: Vec<f64> = (0..cells).map(|i| (i * i % 17) as f64).collect();
            let places = places(&large, &small, &sizes);
            let mut expected = vec![0.0; small.cells(&sizes) as usize];
            let mut largest = vec![f64::NEG_INFINITY; expected.len()];
            for (&place, &value) in places.iter().zip(&values) {
                expected[place] += value;
                largest[place] = largest[place].max(value);
            }
            let mut found = vec![7.0; expected.len()];
            runs.sum(&values, &mut found);
            prop_assert_eq!(&found, &expected);
            runs.max(&values, &mut found);
            prop_assert_eq!(&found, &largest);
            let mut spread = values.clone();
            runs.spread(&mut spread, &expected, |x, y| 2.0 * x - y);
            for ((&place, &value), &now) in places.iter().zip(&values).zip(&spread) {
                prop_assert_eq!(now, 2.0 * value - expected[place]);
            }
        }
    }
}
