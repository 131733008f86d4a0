//! [`ExactSum`]: sums of whole numbers in single precision, for as long as that is exact.
//!
//! **Why it is exact.** Singles hold every whole number up to 2²⁴. While the absolute values of all that is added to an entry sum up to at most that, every partial sum is such a number,
//! in any order of summation, over any number of accumulators and with any fused operation. So it is known of each column how far its entries can have moved, and
//! before there would be too little room for what comes next, everything goes over into doubles, which are exact up to 2⁵³.

use std::ops::Range;

use demur_exact::widest;

use super::matrix::{Matrix, add_product};

/// Singles hold every whole number up to here: 2²⁴.
const MOST: f64 = (1u64 << 24) as f64;
/// Fewer rows than this are not divided further.
const FEW_ROWS: usize = 16;

/// A matrix of sums; see the module text.
pub(crate) struct ExactSum {
    recent: Vec<f32>,
    /// Of each column: no partial sum in `recent` is larger.
    reach: Vec<f64>,
    /// How far a column would move by what comes next.
    next: Vec<f64>,
    /// What was there before; zeros unless `carried`.
    total: Vec<f64>,
    carried: bool,
}

impl ExactSum {
    pub(crate) fn new(rows: usize, columns: usize) -> Self {
        let (entries, zeros) = (rows * columns, vec![0.0; columns]);
        Self {
            recent: vec![0.0; entries],
            reach: zeros.clone(),
            next: zeros,
            total: vec![0.0; entries],
            carried: false,
        }
    }

    /// Begins anew with zeros.
    pub(crate) fn clear(&mut self) {
        self.recent.fill(0.0);
        self.reach.fill(0.0);
        if self.carried {
            self.total.fill(0.0);
        }
        self.carried = false;
    }

    /// Adds whole numbers, none of which is larger than `largest`; nothing if singles cannot hold that.
    pub(crate) fn add(&mut self, entries: &[f32], largest: f64) {
        self.next.fill(largest);
        if self.make_room() {
            let recent = &mut self.recent;
            widest!({
                for (sum, entry) in recent.iter_mut().zip(entries) {
                    *sum += entry;
                }
            });
        }
    }

    /// Whether singles can hold what comes next, and if so, room for it.
    fn make_room(&mut self) -> bool {
        if !self.next.iter().all(|&next| next <= MOST) {
            return false;
        }
        if self.reach.iter().zip(&self.next).any(|(reach, next)| reach + next > MOST) {
            self.carry();
        }
        self.reach.iter_mut().zip(&self.next).for_each(|(reach, next)| *reach += next);
        true
    }

    fn carry(&mut self) {
        let (total, recent) = (&mut self.total, &mut self.recent);
        widest!({
            for (total, recent) in total.iter_mut().zip(recent) {
                *total += f64::from(*recent);
                *recent = 0.0;
            }
        });
        self.reach.fill(0.0);
        self.carried = true;
    }

    /// Adds all that was added to entries from `start` on, times a power of two.
    #[inline]
    pub(crate) fn add_to(&self, start: usize, factor: f64, out: &mut [f64]) {
        let range = start..start + out.len();
        let (recent, total) = (&self.recent[range.clone()], &self.total[range]);
        widest!(for (out, &recent) in out.iter_mut().zip(recent) {
            *out += factor * f64::from(recent);
        });
        if self.carried {
            widest!(for (out, total) in out.iter_mut().zip(total) {
                *out += factor * total;
            });
        }
    }

    /// Adds Σ a⊗b over the rows of two matrices of whole numbers. No entry of `a` is larger than `largest`.
    pub(crate) fn add_outer_products(&mut self, a: Rows<'_>, largest: f64, b: Rows<'_>, rows: Range<usize>) {
        self.next.fill(0.0);
        for row in b.entries(&rows).chunks_exact(b.columns) {
            self.next.iter_mut().zip(row).for_each(|(next, &entry)| *next += f64::from(entry.abs()));
        }
        self.next.iter_mut().for_each(|next| *next *= largest);
        if self.make_room() {
            add_product(a.matrix(&rows).transposed(), b.matrix(&rows), &mut self.recent);
        } else if rows.len() > FEW_ROWS {
            let middle = rows.start + rows.len() / 2;
            self.add_outer_products(a, largest, b, rows.start..middle);
            self.add_outer_products(a, largest, b, middle..rows.end);
        } else {
            let widened = |matrix: Rows<'_>| -> Vec<f64> {
                matrix.entries(&rows).iter().map(|&entry| f64::from(entry)).collect()
            };
            let (wide_a, wide_b) = (widened(a), widened(b));
            let left = Matrix::new(&wide_a, rows.len(), a.columns).transposed();
            add_product(left, Matrix::new(&wide_b, rows.len(), b.columns), &mut self.total);
            self.carried = true;
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

    fn all(sum: &ExactSum, entries: usize) -> Vec<f64> {
        let mut out = vec![0.0; entries];
        sum.add_to(0, 1.0, &mut out);
        out
    }

    /// Numbers of all sizes, from such that fit easily to such that fill a double: sums agree with those of integers, to the last digit.
    #[test]
    fn sums_of_outer_products_are_those_of_integers() {
        let words = &mut Seeded::new(51);
        for (largest_a, bits) in [(1i64, 3), (127, 8), (127, 12), (1023, 15), (1023, 24), (32_767, 24)] {
            let (rows, inputs, units) = (64, 5, 3);
            let mut sum = ExactSum::new(inputs, units);
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
                let single = |values: &[i64]| values.iter().map(|&value| value as f32).collect::<Vec<_>>();
                let (a, b) = (single(&a), single(&b));
                sum.add_outer_products(
                    Rows { entries: &a, columns: inputs },
                    largest_a as f64,
                    Rows { entries: &b, columns: units },
                    0..rows,
                );
            }
            let found: Vec<i128> = all(&sum, inputs * units).iter().map(|&entry| entry as i128).collect();
            assert_eq!(found, expected, "{largest_a} × 2^{bits}");
            sum.clear();
            assert!(all(&sum, inputs * units).iter().all(|&entry| entry == 0.0));
        }
    }

    /// 2²⁴ ones and one more: singles would stay at 2²⁴.
    #[test]
    fn what_singles_cannot_hold_goes_over_into_doubles() {
        let mut sum = ExactSum::new(1, 1);
        for part in [1 << 23, 1 << 23, 1, 1, 1] {
            sum.add(&[part as f32], f64::from(part));
        }
        assert_eq!(all(&sum, 1), [16_777_219.0]);
        sum.add(&[1.0], MOST + 1.0);
        sum.add(&[1.0], f64::NAN);
        assert_eq!(all(&sum, 1), [16_777_219.0]);
    }
}
