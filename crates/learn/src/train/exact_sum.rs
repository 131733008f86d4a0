//! [`ExactSum`]: sums of whole numbers in single precision, for as long as that is exact.
//!
//! **Why it is exact.** Singles hold every whole number up to 2²⁴. While the absolute values of all that is added to an entry sum up to at most that, every partial sum is such a number,
//! in any order of summation, over any number of accumulators and with any fused operation. So whoever adds says first how much an entry can move
//! ([`room`](ExactSum::room)); before there would be too little room, everything goes over into doubles, which are exact up to 2⁵³.

use std::ops::Range;

use super::matrix::{Matrix, add_product};

/// Singles hold every whole number up to here: 2²⁴.
const MOST: f64 = (1u64 << 24) as f64;
/// Fewer rows than this are not divided further.
const FEW_ROWS: usize = 16;

/// See the module text.
pub(crate) struct ExactSum {
    recent: Vec<f32>,
    /// No partial sum in `recent` is larger.
    reach: f64,
    /// What was there before.
    total: Vec<f64>,
}

impl ExactSum {
    pub(crate) fn new(entries: usize) -> Self {
        Self { recent: vec![0.0; entries], reach: 0.0, total: vec![0.0; entries] }
    }

    /// Begins anew with zeros.
    pub(crate) fn clear(&mut self) {
        self.recent.fill(0.0);
        self.total.fill(0.0);
        self.reach = 0.0;
    }

    /// Where to add whole numbers whose absolute values sum up to at most `reach` in each entry; nowhere if singles cannot hold that.
    pub(crate) fn room(&mut self, reach: f64) -> Option<&mut [f32]> {
        if reach.is_nan() || reach > MOST {
            return None;
        }
        if self.reach + reach > MOST {
            self.carry();
        }
        self.reach += reach;
        Some(&mut self.recent)
    }

    fn carry(&mut self) {
        for (total, recent) in self.total.iter_mut().zip(&mut self.recent) {
            *total += f64::from(*recent);
            *recent = 0.0;
        }
        self.reach = 0.0;
    }

    /// All that was added.
    pub(crate) fn total(&mut self) -> &[f64] {
        if self.reach > 0.0 {
            self.carry();
        }
        &self.total
    }

    /// Adds Σ a⊗b over the rows of two matrices of whole numbers. No entry of row r of `a` is larger than `largest_a`, and none of `b` than `largest_b[r]`.
    pub(crate) fn add_outer_products(&mut self, a: Rows<'_>, largest_a: f64, b: Rows<'_>, largest_b: &[f64]) {
        self.add_rows(a, largest_a, b, largest_b, 0..largest_b.len());
    }

    fn add_rows(&mut self, a: Rows<'_>, largest_a: f64, b: Rows<'_>, largest_b: &[f64], rows: Range<usize>) {
        let reach = largest_a * largest_b[rows.clone()].iter().sum::<f64>();
        if reach == 0.0 {
            return;
        }
        if let Some(sums) = self.room(reach) {
            add_product(a.matrix(&rows).transposed(), b.matrix(&rows), sums);
        } else if rows.len() > FEW_ROWS {
            let middle = rows.start + rows.len() / 2;
            self.add_rows(a, largest_a, b, largest_b, rows.start..middle);
            self.add_rows(a, largest_a, b, largest_b, middle..rows.end);
        } else {
            let wide = |matrix: Rows<'_>| -> Vec<f64> {
                matrix.entries(&rows).iter().map(|&entry| f64::from(entry)).collect()
            };
            let (wide_a, wide_b) = (wide(a), wide(b));
            let left = Matrix::new(&wide_a, rows.len(), a.columns).transposed();
            add_product(left, Matrix::new(&wide_b, rows.len(), b.columns), &mut self.total);
        }
    }
}

/// A row-major matrix of which some rows are taken at a time.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) entries: &'a [f32],
    pub(crate) columns: usize,
}

impl<'a> Rows<'a> {
    fn entries(&self, rows: &Range<usize>) -> &'a [f32] {
        &self.entries[rows.start * self.columns..rows.end * self.columns]
    }

    fn matrix(&self, rows: &Range<usize>) -> Matrix<'a, f32> {
        Matrix::new(self.entries(rows), rows.len(), self.columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use demur_noise::Words;
    use demur_testkit::Seeded;

    /// Numbers of all sizes, from such that fit easily to such that fill a double: sums agree with those of integers, to the last digit.
    #[test]
    fn sums_of_outer_products_are_those_of_integers() {
        let words = &mut Seeded::new(51);
        for (largest_a, bits) in [(1i64, 3), (127, 8), (127, 12), (1023, 15), (1023, 24), (32_767, 24)] {
            let (rows, inputs, units) = (64, 5, 3);
            let mut sum = ExactSum::new(inputs * units);
            let mut expected = vec![0i128; inputs * units];
            for round in 0..20 {
                let mut whole = |most: i64| (words.word() % (2 * most as u64 + 1)) as i64 - most;
                let a: Vec<i64> = (0..rows * inputs).map(|_| whole(largest_a)).collect();
                // Some rows are much larger than others, and all have one sign in some rounds.
                let b: Vec<i64> = (0..rows * units)
                    .map(|at| whole(1 << (bits - if at / units % 7 == 0 { 0 } else { 2 })))
                    .map(|b| if round % 3 == 0 { b.abs() } else { b })
                    .collect();
                for (a, b) in a.chunks(inputs).zip(b.chunks(units)) {
                    (0..inputs * units)
                        .for_each(|at| expected[at] += i128::from(a[at / units]) * i128::from(b[at % units]));
                }
                let largest: Vec<f64> =
                    b.chunks(units).map(|row| row.iter().map(|b| b.abs()).max().unwrap() as f64).collect();
                let single = |values: &[i64]| values.iter().map(|&value| value as f32).collect::<Vec<_>>();
                let (a, b) = (single(&a), single(&b));
                sum.add_outer_products(
                    Rows { entries: &a, columns: inputs },
                    largest_a as f64,
                    Rows { entries: &b, columns: units },
                    &largest,
                );
            }
            let found: Vec<i128> = sum.total().iter().map(|&entry| entry as i128).collect();
            assert_eq!(found, expected, "{largest_a} × 2^{bits}");
            sum.clear();
            assert!(sum.total().iter().all(|&entry| entry == 0.0));
        }
    }

    /// 2²⁴ ones and one more: singles would stay at 2²⁴.
    #[test]
    fn what_singles_cannot_hold_goes_over_into_doubles() {
        let mut sum = ExactSum::new(1);
        for part in [1 << 23, 1 << 23, 1, 1, 1] {
            sum.room(f64::from(part)).unwrap()[0] += part as f32;
        }
        assert_eq!(sum.total(), [16_777_219.0]);
        assert!(sum.room(MOST + 1.0).is_none() && sum.room(f64::NAN).is_none());
    }
}
