//! [`Whitening`]: coordinates in which no direction of the features is longer than another, from noisy second moments.
//!
//! **Definition.** With M the noisy second moments of (x, 1) and λ > 0 above the noise of M, let L·Lᵀ = M + λ. A row x becomes z = 4·L⁻¹·(x, 1). A linear function of z is one of x: its weights and its
//! bias are 4·L⁻ᵀ·w. (The 4 keeps z longer than the 1 that a dense layer adds for a bias of its own.)
//!
//! **Why.** Gradient descent is slow along directions in which features hardly vary, and noise is paid for by the step. In z all directions that rise above the noise have
//! equal length, and those below are kept short: they could teach nothing.
//!
//! All of this is post-processing of one noisy matrix.

use super::matrix::{Matrix, add_product};

/// How much longer z is than a row of unit moments.
pub(crate) const LENGTH: f64 = 4.0;

/// See the module text.
pub(crate) struct Whitening {
    /// d + 1.
    side: usize,
    /// 4·L⁻¹, row-major, lower triangular.
    inverse: Vec<f64>,
    /// How many directions rise above the noise: the trace of M·(M + λ)⁻¹.
    directions: f64,
}

impl Whitening {
    /// From Σ(x, 1)(x, 1)ᵀ over about so many rows, noisy, row-major and symmetric; `noise` is the standard deviation of an entry.
    pub(crate) fn new(moments: &[f64], side: usize, rows: f64, noise: f64) -> Self {
        // A symmetric matrix of noise has its eigenvalues within 2σ√d, nearly surely: with three of them none comes near 0.
        let mut floor = (3.0 * noise * (side as f64).sqrt() / rows).max(1e-6);
        loop {
            let entry = |i: usize, j: usize| moments[i * side + j] / rows + if i == j { floor } else { 0.0 };
            if let Some(factor) = cholesky(entry, side, floor * 0.1) {
                let mut inverse = invert(&factor, side);
                let short: f64 = inverse.iter().map(|entry| entry * entry).sum::<f64>() * floor;
                inverse.iter_mut().for_each(|entry| *entry *= LENGTH);
                return Self { side, inverse, directions: (side as f64 - short).clamp(1.0, side as f64) };
            }
            floor *= 2.0;
        }
    }

    pub(crate) fn directions(&self) -> f64 {
        self.directions
    }

    /// z of each row; `rows` is their fixed number.
    pub(crate) fn apply(&self, features: &[f32], rows: usize) -> Vec<f32> {
        let size = self.side - 1;
        let mut extended = vec![0.0; rows * self.side];
        for (to, from) in extended.chunks_exact_mut(self.side).zip(features.chunks_exact(size)) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = f64::from(*from));
            to[size] = 1.0;
        }
        let mut out = vec![0.0; rows * self.side];
        let turned = Matrix::new(&self.inverse, self.side, self.side).transposed();
        add_product(Matrix::new(&extended, rows, self.side), turned, &mut out);
        out.truncate(features.len() / size * self.side);
        out.into_iter().map(|z| z as f32).collect()
    }

    /// Weights of x, and last the biases, from those of z and the biases beside them.
    pub(crate) fn weights(&self, whitened: &[f32], outputs: usize) -> Vec<f32> {
        let given: Vec<f64> = whitened.iter().map(|&weight| f64::from(weight)).collect();
        let mut weights = vec![0.0; self.side * outputs];
        let turned = Matrix::new(&self.inverse, self.side, self.side).transposed();
        add_product(turned, Matrix::new(&given, self.side, outputs), &mut weights);
        let bias = weights.iter_mut().skip((self.side - 1) * outputs);
        bias.zip(&given[self.side * outputs..]).for_each(|(bias, own)| *bias += own);
        weights.into_iter().map(|weight| weight as f32).collect()
    }
}

/// L with L·Lᵀ = the matrix, unless a pivot is below `least`.
fn cholesky(entry: impl Fn(usize, usize) -> f64, size: usize, least: f64) -> Option<Vec<f64>> {
    let mut factor = vec![0.0; size * size];
    for i in 0..size {
        for j in 0..=i {
            let (row, other) = (&factor[i * size..][..j], &factor[j * size..][..j]);
            let rest = entry(i, j) - row.iter().zip(other).map(|(a, b)| a * b).sum::<f64>();
            factor[i * size + j] = match i == j {
                true if rest > least => rest.sqrt(),
                true => return None,
                false => rest / factor[j * size + j],
            };
        }
    }
    Some(factor)
}

/// The inverse of a lower triangular matrix.
fn invert(factor: &[f64], size: usize) -> Vec<f64> {
    let mut inverse = vec![0.0; size * size];
    for column in 0..size {
        for row in column..size {
            let unit = if row == column { 1.0 } else { 0.0 };
            let known: f64 = (column..row).map(|k| factor[row * size + k] * inverse[k * size + column]).sum();
            inverse[row * size + column] = (unit - known) / factor[row * size + row];
        }
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;
    use demur_noise::Words;
    use demur_testkit::Seeded;

    #[test]
    fn whitened_rows_have_equal_moments_and_weights_mean_the_same() {
        let (words, size, rows) = (&mut Seeded::new(3), 5, 4096);
        let uniform = |words: &mut Seeded| (words.word() >> 40) as f32 / 8_388_608.0 - 1.0;
        let mut features = Vec::new();
        for _ in 0..rows {
            let base: Vec<f32> = (0..size).map(|_| 0.5 * uniform(words)).collect();
            features.extend((0..size).map(|j| 0.2 + base[j] * 0.5 + base[0] * 0.4));
        }
        let mut moments = vec![0.0; 36];
        for row in features.chunks(size) {
            let row: Vec<f64> = row.iter().map(|&x| f64::from(x)).chain([1.0]).collect();
            (0..36).for_each(|at| moments[at] += row[at / 6] * row[at % 6]);
        }
        let whitening = Whitening::new(&moments, 6, rows as f64, 0.0);
        let z = whitening.apply(&features, rows);
        for i in 0..6 {
            for j in 0..6 {
                let mean: f64 = z.chunks(6).map(|z| f64::from(z[i] * z[j])).sum::<f64>() / rows as f64;
                let expected = if i == j { LENGTH * LENGTH } else { 0.0 };
                assert!((mean - expected).abs() < 0.05, "{i} {j}: {mean}");
            }
        }
        assert!((whitening.directions() - 6.0).abs() < 0.01);
        let given: Vec<f32> = (0..14).map(|_| uniform(words)).collect();
        let weights = whitening.weights(&given, 2);
        let value = |row: &[f32], weights: &[f32], output: usize| {
            let bias = weights[2 * row.len() + output];
            row.iter().enumerate().map(|(i, x)| x * weights[2 * i + output]).sum::<f32>() + bias
        };
        for (x, z) in features.chunks(size).zip(z.chunks(6)).take(50) {
            for output in 0..2 {
                assert!((value(x, &weights, output) - value(z, &given, output)).abs() < 1e-2);
            }
        }
    }

    #[test]
    fn noise_alone_is_whitened_too() {
        let words = &mut Seeded::new(4);
        let mut moments = vec![0.0; 400];
        for i in 0..20 {
            for j in 0..=i {
                let noise = ((words.word() >> 40) as f64 / 8_388_608.0 - 1.0) * 1e6;
                (moments[i * 20 + j], moments[j * 20 + i]) = (noise, noise);
            }
        }
        let whitening = Whitening::new(&moments, 20, 10.0, 6e5);
        assert!(whitening.apply(&[0.5; 19], 16).iter().all(|z| z.abs() < 10.0));
        assert!(whitening.directions() >= 1.0);
    }
}
