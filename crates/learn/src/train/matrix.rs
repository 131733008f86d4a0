//! Products of row-major matrices, by `ndarray` and `matrixmultiply`.
//!
//! **A row does not feel its neighbours.** Row i of A·B depends on row i of A and on B alone, in every bit, wherever it stands and however many rows there are: every entry is a
//! sum over one inner index, blocks of that index depend on its length alone, and edge tiles are padded with zeros and go
//! through the same kernel. `a_rows_result_depends_on_neither_its_place_nor_its_company` checks this for the shapes in use. Callers pad their
//! rows to a multiple of 16, so that no row ever stands in an edge tile.

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, LinalgScalar};

/// A row-major matrix, or its transpose.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a, T> {
    entries: &'a [T],
    rows: usize,
    columns: usize,
    transposed: bool,
}

impl<'a, T> Matrix<'a, T> {
    /// `entries` may be longer; what follows the matrix is not looked at.
    pub(crate) fn new(entries: &'a [T], rows: usize, columns: usize) -> Self {
        Self { entries: &entries[..rows * columns], rows, columns, transposed: false }
    }

    pub(crate) fn transposed(self) -> Self {
        Self { transposed: !self.transposed, ..self }
    }

    fn view(&self) -> Option<ArrayView2<'a, T>> {
        let view = ArrayView2::from_shape((self.rows, self.columns), self.entries).ok()?;
        Some(if self.transposed { view.reversed_axes() } else { view })
    }
}

/// out += a·b, where `out` is row-major.
pub(crate) fn add_product<T: LinalgScalar>(a: Matrix<'_, T>, b: Matrix<'_, T>, out: &mut [T]) {
    let (Some(a), Some(b)) = (a.view(), b.view()) else { return };
    let shape = (a.nrows(), b.ncols());
    if let Ok(mut out) = ArrayViewMut2::from_shape(shape, &mut out[..shape.0 * shape.1]) {
        general_mat_mul(T::one(), &a, &b, T::one(), &mut out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use demur_noise::Words;
    use demur_testkit::Seeded;

    fn numbers(words: &mut Seeded, count: usize) -> Vec<f32> {
        (0..count).map(|_| (words.word() >> 40) as f32 / 8388608.0 - 1.0).collect()
    }

    /// The promise of the module text, bit by bit: the same row in every place, in small and large company, among zeros and among strangers, NaN among them.
    #[test]
    fn a_rows_result_depends_on_neither_its_place_nor_its_company() {
        let words = &mut Seeded::new(7);
        for (most, inner, columns) in
            [(64, 3969, 10), (128, 784, 256), (16, 300, 33), (32, 9, 1), (3136, 64, 16), (400, 256, 32)]
        {
            let (row, b) = (numbers(words, inner), numbers(words, inner * columns));
            let mut seen: Option<Vec<u32>> = None;
            for rows in [16, 32, 48, 64, most] {
                let some = if rows * inner > 20_000 { 13 } else { 1 };
                for (place, company) in
                    (0..rows).step_by(some).flat_map(|place| [(place, 0), (place, 1), (place, 2)])
                {
                    let mut a = match company {
                        0 => vec![0.0; rows * inner],
                        1 => vec![f32::NAN; rows * inner],
                        _ => numbers(words, rows * inner),
                    };
                    a[place * inner..][..inner].copy_from_slice(&row);
                    let mut out = vec![0.5; rows * columns];
                    add_product(Matrix::new(&a, rows, inner), Matrix::new(&b, inner, columns), &mut out);
                    let bits = out[place * columns..][..columns].iter().map(|x| x.to_bits()).collect();
                    let first = seen.get_or_insert_with(|| Clone::clone(&bits));
                    assert_eq!(*first, bits, "row {place} of {rows}×{inner}×{columns}");
                }
            }
        }
    }

    #[test]
    fn products_of_all_four_layouts_agree_with_the_definition() {
        let (m, k, n) = (5, 7, 3);
        let entry = |i: usize, j: usize, seed: usize| ((i * 31 + j * 17 + seed * 13) % 11) as f64 - 5.0;
        let a: Vec<f64> = (0..m * k).map(|i| entry(i / k, i % k, 1)).collect();
        let at: Vec<f64> = (0..m * k).map(|i| entry(i % m, i / m, 1)).collect();
        let b: Vec<f64> = (0..k * n).map(|i| entry(i / n, i % n, 2)).collect();
        let bt: Vec<f64> = (0..k * n).map(|i| entry(i % k, i / k, 2)).collect();
        let expected: Vec<f64> = (0..m * n)
            .map(|i| 1.0 + (0..k).map(|j| entry(i / n, j, 1) * entry(j, i % n, 2)).sum::<f64>())
            .collect();
        let lefts = [Matrix::new(&a, m, k), Matrix::new(&at, k, m).transposed()];
        let rights = [Matrix::new(&b, k, n), Matrix::new(&bt, n, k).transposed()];
        for left in lefts {
            for right in rights {
                let mut out = vec![1.0; m * n];
                add_product(left, right, &mut out);
                assert_eq!(out, expected);
            }
        }
    }
}
