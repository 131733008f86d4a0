//! The leading eigenvectors of the estimated modularity matrix.
//!
//! **Definition.** M = Â − d̂d̂ᵀ/2m̂. Communities are large positive eigenvalues. The noise of Â alone has a spectrum that ends at 2σ√n, so only eigenvalues
//! beyond that say something.
//!
//! **Method.** Orthogonal iteration with M + 2σ√n·1, which turns none of the wanted eigenvalues round; then the small matrix of M on the space that was
//! found is made diagonal.
//!
//! **References.** \[Newman2006\], \[Baik2005\], \[Golub2013\].

use demur_noise::Words;
use rayon::prelude::*;

use super::noisy::NoisyNetwork;
use crate::kmeans::{axes, normal};

/// Directions that are looked for, at most.
const DIRECTIONS: usize = 32;
/// Rounds of the iteration.
const ROUNDS: usize = 40;

/// Each user's place along the eigenvectors beyond the noise, at least one.
pub(super) fn places<W: Words>(network: &NoisyNetwork, words: &mut W) -> Vec<Vec<f64>> {
    let users = network.users();
    let width = DIRECTIONS.min(users);
    let edge = 2.0 * network.deviation() * (users as f64).sqrt();
    let mut space: Vec<Vec<f64>> = (0..users).map(|_| (0..width).map(|_| normal(words)).collect()).collect();
    orthogonal(&mut space, width);
    for _ in 0..ROUNDS {
        let image = times(network, &space, width);
        for (row, image) in space.iter_mut().zip(image) {
            row.iter_mut().zip(image).for_each(|(x, y)| *x = y + edge * *x);
        }
        orthogonal(&mut space, width);
    }
    let image = times(network, &space, width);
    let entry = |i: usize, j: usize| -> f64 {
        space.iter().zip(&image).map(|(x, y)| (x[i] * y[j] + x[j] * y[i]) / 2.0).sum()
    };
    let found = axes((0..width).map(|i| (0..width).map(|j| entry(i, j)).collect()).collect());
    let kept = found.iter().filter(|(value, _)| *value > edge).count().clamp(1, width);
    let along = |row: &Vec<f64>| {
        let place = |(value, axis): &(f64, Vec<f64>)| {
            axis.iter().zip(row).map(|(a, x)| a * x).sum::<f64>() * value.max(0.0).sqrt()
        };
        found[..kept].iter().map(place).collect()
    };
    space.iter().map(along).collect()
}

/// M times each column.
fn times(network: &NoisyNetwork, space: &[Vec<f64>], width: usize) -> Vec<Vec<f64>> {
    let mut sums = vec![0.0; width];
    let mut by_degree = vec![0.0; width];
    for (row, degree) in space.iter().zip(&network.degrees) {
        for (column, x) in row.iter().enumerate() {
            sums[column] += x;
            by_degree[column] += degree * x;
        }
    }
    let row = |user: usize| {
        let mut set = vec![0.0; width];
        for other in network.others(user) {
            set.iter_mut().zip(&space[other]).for_each(|(sum, x)| *sum += x);
        }
        let expected = network.degrees[user] / network.total;
        let value = |column: usize| {
            network.unbiased(set[column], sums[column] - space[user][column]) - expected * by_degree[column]
        };
        (0..width).map(value).collect()
    };
    (0..space.len()).into_par_iter().map(row).collect()
}

/// Makes columns orthogonal and of length 1 (Gram–Schmidt, twice).
fn orthogonal(space: &mut [Vec<f64>], width: usize) {
    for column in 0..width {
        for _ in 0..2 {
            for before in 0..column {
                let dot: f64 = space.iter().map(|row| row[before] * row[column]).sum();
                space.iter_mut().for_each(|row| row[column] -= dot * row[before]);
            }
        }
        let norm = space.iter().map(|row| row[column].powi(2)).sum::<f64>().sqrt();
        let scale = if norm > 0.0 { 1.0 / norm } else { 0.0 };
        space.iter_mut().for_each(|row| row[column] *= scale);
    }
}
