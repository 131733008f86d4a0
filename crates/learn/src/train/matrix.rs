//! Products of row-major matrices, by `faer`.
//!
//! **A row does not feel its neighbours.** Row i of A·B depends on row i of A and on B alone, in every bit, wherever it stands and however many rows there are. Every entry is a
//! sum over one inner index, blocks of that index depend on its length alone, and rows go through the kernels four at a time. There is one kind of kernels for products of few
//! numbers and one for all others; so rows are multiplied sixteen at a time where the whole might be few or not, and the last ones are filled up with zeros to
//! sixteen. `a_rows_result_depends_on_neither_its_place_nor_its_company` checks this for the shapes in use and for all small ones.

use faer::linalg::matmul::matmul;
use faer::traits::ComplexField;
use faer::{Accum, MatMut, MatRef, Par};

/// So many rows are multiplied at once, or a multiple of it.
const BLOCK: usize = 16;
/// Products of a block with fewer weights may go through the kernels for few numbers.
const FEW: usize = 1024;

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

    /// Rows and columns, as they are multiplied.
    fn shape(&self) -> (usize, usize) {
        if self.transposed { (self.columns, self.rows) } else { (self.rows, self.columns) }
    }

    fn view(&self) -> MatRef<'a, T> {
        let view = MatRef::from_row_major_slice(self.entries, self.rows, self.columns);
        if self.transposed { view.transpose() } else { view }
    }
}

/// out += a·b, where `out` is row-major.
pub(crate) fn add_product<T: ComplexField + Copy + From<u8>>(
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    out: &mut [T],
) {
    let ((rows, inner), columns) = (a.shape(), b.shape().1);
    if a.transposed || inner * columns == 0 {
        return multiply(a, b, out);
    }
    let whole = rows - rows % BLOCK;
    let at_once = if inner * columns < FEW { BLOCK } else { whole.max(BLOCK) };
    let (entries, rest) = a.entries.split_at(whole * inner);
    let (out, last) = out[..rows * columns].split_at_mut(whole * columns);
    for (entries, out) in entries.chunks(at_once * inner).zip(out.chunks_mut(at_once * columns)) {
        multiply(Matrix::new(entries, out.len() / columns, inner), b, out);
    }
    if !last.is_empty() {
        let (mut filled, mut sums) = (vec![T::from(0); BLOCK * inner], vec![T::from(0); BLOCK * columns]);
        filled[..rest.len()].copy_from_slice(rest);
        sums[..last.len()].copy_from_slice(last);
        multiply(Matrix::new(&filled, BLOCK, inner), b, &mut sums);
        last.copy_from_slice(&sums[..last.len()]);
    }
}

fn multiply<T: ComplexField + Copy + From<u8>>(a: Matrix<'_, T>, b: Matrix<'_, T>, out: &mut [T]) {
    let (rows, columns) = (a.shape().0, b.shape().1);
    let out = MatMut::from_row_major_slice_mut(&mut out[..rows * columns], rows, columns);
    matmul(out, Accum::Add, a.view(), b.view(), T::from(1), Par::Seq);
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
        let in_use =
            [(64, 3969, 10), (128, 784, 256), (16, 300, 33), (32, 9, 1), (3136, 64, 16), (400, 256, 32)];
        let small = (1..=20).flat_map(|inner| (1..=20).map(move |columns| (65, inner, columns)));
        let edges = [(65, 63, 16), (65, 64, 16), (65, 31, 33), (65, 1024, 1), (65, 1, 1030)];
        for (most, inner, columns) in in_use.into_iter().chain(small).chain(edges) {
            let (row, b) = (numbers(words, inner), numbers(words, inner * columns));
            let mut seen: Option<Vec<u32>> = None;
            for rows in [1, 15, 16, 17, 48, 64, most] {
                let some = if rows * inner > 20_000 || inner < 21 && columns < 21 { 13 } else { 1 };
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
