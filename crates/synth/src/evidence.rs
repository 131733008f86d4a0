//! [`Evidence`]: noisy marginals, with how noisy they are.
//!
//! Several measurements of one set are one measurement: the average weighted by precision (one over the variance)
//! is the best linear estimate, and all that a Gaussian likelihood keeps of them.

use crate::ColumnSet;

/// A noisy marginal in counts; every cell has its own precision.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Observation {
    pub(crate) set: ColumnSet,
    pub(crate) counts: Vec<f64>,
    pub(crate) precisions: Vec<f64>,
}

/// Everything that was measured. It is public: noise has been added to all of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    observations: Vec<Observation>,
}

impl Evidence {
    /// Adds a measurement whose cells all have this variance.
    pub(crate) fn add(&mut self, set: ColumnSet, counts: Vec<f64>, variance: f64) {
        let precisions = vec![1.0 / variance; counts.len()];
        self.add_observation(Observation { set, counts, precisions });
    }

    pub(crate) fn add_observation(&mut self, new: Observation) {
        let Some(known) = self.observations.iter_mut().find(|known| known.set == new.set) else {
            self.observations.push(new);
            return;
        };
        for (place, (&count, &precision)) in new.counts.iter().zip(&new.precisions).enumerate() {
            let sum = known.precisions[place] + precision;
            let weighted = known.counts[place] * known.precisions[place] + count * precision;
            known.counts[place] = weighted / sum;
            known.precisions[place] = sum;
        }
    }

    pub(crate) fn observations(&self) -> &[Observation] {
        &self.observations
    }

    /// The number of rows that the sums of all marginals suggest, each weighted by its precision; at least 1.
    pub(crate) fn total(&self) -> f64 {
        let (mut sum, mut weight) = (0.0, 0.0);
        for observation in &self.observations {
            let variance: f64 = observation.precisions.iter().map(|precision| 1.0 / precision).sum();
            sum += observation.counts.iter().sum::<f64>() / variance;
            weight += 1.0 / variance;
        }
        if weight > 0.0 { (sum / weight).max(1.0) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_measurements_are_one_with_both_precisions() {
        let mut evidence = Evidence::default();
        evidence.add(ColumnSet::new([0]), vec![10.0, 20.0], 4.0);
        evidence.add(ColumnSet::new([0]), vec![16.0, 20.0], 2.0);
        let known = &evidence.observations()[0];
        assert_eq!(known.counts, [14.0, 20.0]);
        assert_eq!(known.precisions, [0.75, 0.75]);
    }

    #[test]
    fn totals_weigh_small_marginals_more() {
        let mut evidence = Evidence::default();
        evidence.add(ColumnSet::new([0]), vec![50.0, 50.0], 1.0); // variance 2
        evidence.add(ColumnSet::new([1]), vec![26.0; 5], 1.0); // 130, variance 5
        assert!((evidence.total() - (100.0 / 2.0 + 130.0 / 5.0) / (1.0 / 2.0 + 1.0 / 5.0)).abs() < 1e-12);
        evidence.add(ColumnSet::new([2]), vec![-1e9], 1e-6);
        assert_eq!(evidence.total(), 1.0);
    }
}
