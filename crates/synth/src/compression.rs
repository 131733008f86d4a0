//! [`Compression`]: rare values of a column as one value, and back.
//!
//! **Rule.** From the noisy counts of a column with standard deviation σ, values whose noisy count is below 3σ become one value.
//! Their counts are mostly noise, and every cell less in a joint marginal is noise less. A value that nobody has is kept by mistake with
//! probability 0.0013. At least two values must be rare, else nothing changes.
//!
//! **Undone** when rows are drawn: a rare row gets one of the rare values with probability proportional to what is known about
//! them, the mean of N(y, σ²) given that counts are not negative, y + σ·φ(y/σ)/Φ(y/σ).
//!
//! It costs nothing: only noisy counts are used.

use crate::evidence::Observation;
use crate::{ColumnSet, Columns};

/// Noisy counts below so many standard deviations are rare.
const RARE: f64 = 3.0;

/// For each column: new names of its values, and how likely each old value is given its new name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Compression {
    pub(crate) maps: Vec<Vec<u32>>,
    pub(crate) shares: Vec<Vec<f64>>,
    pub(crate) sizes: Vec<usize>,
}

impl Compression {
    /// Every value keeps its name.
    pub(crate) fn none(sizes: &[usize]) -> Self {
        Self {
            maps: sizes.iter().map(|&size| (0..size as u32).collect()).collect(),
            shares: sizes.iter().map(|&size| vec![1.0; size]).collect(),
            sizes: sizes.to_vec(),
        }
    }

    /// By the noisy counts of each column that has some; columns in `keep` stay as they are.
    pub(crate) fn new(columns: &Columns, ones: &[Observation], keep: &ColumnSet) -> Self {
        let mut compression = Self::none(&columns.sizes());
        for one in ones {
            if let Some(column) = one.set.iter().next().filter(|&column| !keep.contains(column)) {
                compression.compress(column, one);
            }
        }
        compression
    }

    fn compress(&mut self, column: usize, one: &Observation) {
        let deviation = |precision: &f64| precision.sqrt().recip();
        let rare: Vec<bool> =
            one.counts.iter().zip(&one.precisions).map(|(&y, w)| y < RARE * deviation(w)).collect();
        let frequent = rare.iter().filter(|&&rare| !rare).count() as u32;
        if rare.len() as u32 - frequent < 2 {
            return;
        }
        let mut next = 0;
        for (value, &rare) in rare.iter().enumerate() {
            self.maps[column][value] = if rare { frequent } else { next };
            next += u32::from(!rare);
        }
        let likely: Vec<f64> =
            one.counts.iter().zip(&one.precisions).map(|(&y, w)| mean_above_zero(y, deviation(w))).collect();
        let total: f64 = likely.iter().zip(&rare).filter(|(_, rare)| **rare).map(|(likely, _)| likely).sum();
        for (share, (likely, _)) in
            self.shares[column].iter_mut().zip(likely.iter().zip(&rare)).filter(|(_, (_, r))| **r)
        {
            *share = likely / total;
        }
        self.sizes[column] = frequent as usize + 1;
    }

    /// The observation of one column, over its new values.
    pub(crate) fn observation(&self, one: &Observation) -> Observation {
        let Some(column) = one.set.iter().next() else { return one.clone() };
        let size = self.sizes[column];
        let (mut counts, mut variances) = (vec![0.0; size], vec![0.0; size]);
        for ((&new, count), precision) in self.maps[column].iter().zip(&one.counts).zip(&one.precisions) {
            counts[new as usize] += count;
            variances[new as usize] += 1.0 / precision;
        }
        let precisions = variances.iter().map(|variance| 1.0 / variance).collect();
        Observation { set: one.set.clone(), counts, precisions }
    }
}

/// The mean of N(y, σ²) given that it is above 0.
fn mean_above_zero(y: f64, sigma: f64) -> f64 {
    let z = y / sigma;
    if z < -5.0 {
        return sigma / (-z + 2.0 / -z); // φ/Φ from its continued fraction
    }
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    // Φ(z) by Simpson's rule on [z − 9, z] would be slower than this series is long.
    let (mut term, mut sum, mut odd) = (z, z, 1.0);
    while term.abs() > 1e-17 * sum.abs() && odd < 400.0 {
        odd += 2.0;
        term *= z * z / odd;
        sum += term;
    }
    let below = 0.5 + density * sum;
    y + sigma * density / below.max(1e-300)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(counts: &[f64], variance: f64) -> Observation {
        Observation {
            set: ColumnSet::new([0]),
            counts: counts.to_vec(),
            precisions: vec![1.0 / variance; counts.len()],
        }
    }

    #[test]
    fn values_below_three_deviations_become_one() {
        let columns = Columns::new([("a", 5)]).unwrap();
        let seen = one(&[100.0, 5.0, 6.1, -3.0, 5.9], 4.0);
        let compression = Compression::new(&columns, std::slice::from_ref(&seen), &ColumnSet::default());
        assert_eq!(compression.maps, [[0, 2, 1, 2, 2]]);
        assert_eq!(compression.sizes, [3]);
        let shares = &compression.shares[0];
        assert!((shares[1] + shares[3] + shares[4] - 1.0).abs() < 1e-12);
        assert!(shares[0] == 1.0 && shares[2] == 1.0 && shares[4] > shares[1] && shares[1] > shares[3]);
        let new = compression.observation(&seen);
        assert!((new.counts[2] - 7.9).abs() < 1e-12);
        assert!((new.precisions[2] - 1.0 / 12.0).abs() < 1e-15);
        let kept = Compression::new(&columns, &[seen], &ColumnSet::new([0]));
        assert_eq!(kept, Compression::none(&[5]));
    }

    #[test]
    fn a_single_rare_value_keeps_its_name() {
        let columns = Columns::new([("a", 3)]).unwrap();
        let seen = one(&[100.0, 1.0, 90.0], 1.0);
        assert_eq!(Compression::new(&columns, &[seen], &ColumnSet::default()), Compression::none(&[3]));
    }

    /// Against numerical integration.
    #[test]
    fn means_above_zero_are_those_of_the_truncated_law() {
        for z in [-8.0, -5.01, -4.99, -2.0, 0.0, 1.5, 3.0] {
            let weight = |x: f64| (-(x - z) * (x - z) / 2.0 + if z < 0.0 { z * z / 2.0 } else { 0.0 }).exp();
            let grid = (0..400_000).map(|i| (f64::from(i) + 0.5) * 5e-5);
            let (sum, mass) = grid.fold((0.0, 0.0), |(s, m), x| (s + x * weight(x), m + weight(x)));
            let found = mean_above_zero(z * 3.0, 3.0);
            assert!((found / (3.0 * sum / mass) - 1.0).abs() < 0.02, "{z}: {found} {}", 3.0 * sum / mass);
        }
    }
}
