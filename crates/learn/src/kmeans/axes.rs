//! Eigenvalues and eigenvectors of a symmetric matrix, by Jacobi's rotations.
//!
//! **Method.** A rotation in the plane of two coordinates makes their off-diagonal entry zero and moves its square to the diagonal. Going
//! through all pairs again and again makes the matrix diagonal to the last digit, quadratically fast in the end.
//!
//! **References.** \[Golub2013\].

/// Enough for any matrix; a dozen rounds are usual.
const MOST_ROUNDS: usize = 60;

/// Eigenvalues from the largest down, each with its vector of length 1.
pub(crate) fn axes(mut matrix: Vec<Vec<f64>>) -> Vec<(f64, Vec<f64>)> {
    let d = matrix.len();
    // Row i holds the i-th vector.
    let mut vectors: Vec<Vec<f64>> =
        (0..d).map(|i| (0..d).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for _ in 0..MOST_ROUNDS {
        let diagonal: f64 = (0..d).map(|i| matrix[i][i].powi(2)).sum();
        let rest: f64 =
            (0..d).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| matrix[i][j].powi(2)).sum();
        if rest <= 1e-26 * (diagonal + f64::MIN_POSITIVE) {
            break;
        }
        for p in 0..d {
            for q in p + 1..d {
                rotate(&mut matrix, &mut vectors, p, q);
            }
        }
    }
    let mut found: Vec<_> =
        vectors.into_iter().enumerate().map(|(i, vector)| (matrix[i][i], vector)).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found
}

fn rotate(matrix: &mut [Vec<f64>], vectors: &mut [Vec<f64>], p: usize, q: usize) {
    let entry = matrix[p][q];
    if entry == 0.0 {
        return;
    }
    let theta = (matrix[q][q] - matrix[p][p]) / (2.0 * entry);
    let tangent = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let tangent = if theta == 0.0 { 1.0 } else { tangent };
    let cosine = 1.0 / (tangent * tangent + 1.0).sqrt();
    let sine = tangent * cosine;
    let turn = |a: f64, b: f64| (cosine * a - sine * b, sine * a + cosine * b);
    for row in matrix.iter_mut() {
        (row[p], row[q]) = turn(row[p], row[q]);
    }
    turn_rows(matrix, p, q, turn);
    turn_rows(vectors, p, q, turn);
}

fn turn_rows(rows: &mut [Vec<f64>], p: usize, q: usize, turn: impl Fn(f64, f64) -> (f64, f64)) {
    let (before, after) = rows.split_at_mut(q);
    for (a, b) in before[p].iter_mut().zip(after[0].iter_mut()) {
        (*a, *b) = turn(*a, *b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_known_matrix() {
        let found = axes(vec![vec![2.0, 1.0, 0.0], vec![1.0, 2.0, 0.0], vec![0.0, 0.0, -5.0]]);
        let values: Vec<f64> = found.iter().map(|(value, _)| value.round()).collect();
        assert_eq!(values, [3.0, 1.0, -5.0]);
        assert!((found[0].1[0] - found[0].1[1]).abs() < 1e-12);
        assert!(axes(vec![]).is_empty());
    }

    proptest! {
        #[test]
        fn the_matrix_is_the_sum_of_its_axes(entries in proptest::collection::vec(-9.0f64..9.0, 21)) {
            let place = |i: usize, j: usize| entries[i.max(j) * (i.max(j) + 1) / 2 + i.min(j)];
            let matrix: Vec<Vec<f64>> = (0..6).map(|i| (0..6).map(|j| place(i, j)).collect()).collect();
            let found = axes(matrix.clone());
            for i in 0..6 {
                for j in 0..6 {
                    let sum: f64 = found.iter().map(|(value, axis)| value * axis[i] * axis[j]).sum();
                    prop_assert!((sum - matrix[i][j]).abs() < 1e-9);
                }
            }
        }
    }
}
