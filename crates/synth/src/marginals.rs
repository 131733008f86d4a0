//! [`Marginals`]: which marginals matter, and how much.

use std::collections::BTreeMap;

use crate::error::require;
use crate::{ColumnSet, Columns, SynthError};

/// More sets than this are refused.
pub const MAX_SETS: usize = 100_000;
/// A set of more columns than this is refused: all its subsets may be measured.
pub const MAX_WAYS: usize = 8;

/// Sets of columns whose joint counts shall be right, with weights.
///
/// ```
/// use demur_synth::{Columns, ColumnSet, Marginals};
///
/// let columns = Columns::new([("a", 2), ("b", 3), ("c", 4)])?;
/// assert_eq!(Marginals::all(&columns, 2)?.sets().count(), 3);
/// let mine = Marginals::new(&columns, [(ColumnSet::new([0, 2]), 5.0), (ColumnSet::new([1]), 1.0)])?;
/// assert_eq!(mine.sets().count(), 2);
/// # Ok::<(), demur_synth::SynthError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Marginals(BTreeMap<ColumnSet, f64>);

impl Marginals {
    /// These sets; weights of a set that is named twice are added.
    pub fn new(
        columns: &Columns,
        sets: impl IntoIterator<Item = (ColumnSet, f64)>,
    ) -> Result<Self, SynthError> {
        let mut weights = BTreeMap::new();
        for (set, weight) in sets {
            columns.check(&set)?;
            require((1..=MAX_WAYS).contains(&set.len()), "synth.marginals.ways", || {
                format!("a set of a workload must have 1 to {MAX_WAYS} columns, but {set} has {}", set.len())
            })?;
            require(weight.is_finite() && weight > 0.0, "synth.marginals.weight", || {
                format!("the weight of a set must be a finite number above 0, but {set} has {weight}")
            })?;
            *weights.entry(set).or_insert(0.0) += weight;
        }
        let found = weights.len();
        require((1..=MAX_SETS).contains(&found), "synth.marginals.sets", || {
            format!("a workload must have between 1 and {MAX_SETS} sets, but {found} were given")
        })?;
        Ok(Self(weights))
    }

    /// All sets of `ways` columns, equally important; all columns together where there are fewer.
    pub fn all(columns: &Columns, ways: usize) -> Result<Self, SynthError> {
        let ways = ways.min(columns.len());
        let mut sets = vec![ColumnSet::default()];
        for _ in 0..ways.min(MAX_WAYS + 1) {
            let longer = |set: &ColumnSet| {
                let from = set.iter().last().map_or(0, |last| last + 1);
                let set = set.clone();
                (from..columns.len()).map(move |next| ColumnSet::new(set.iter().chain([next])))
            };
            sets = sets.iter().flat_map(longer).take(MAX_SETS + 1).collect();
        }
        Self::new(columns, sets.into_iter().map(|set| (set, 1.0)))
    }

    /// Refuses columns for which it was not made.
    pub(crate) fn check(&self, columns: &Columns) -> Result<(), SynthError> {
        self.0.keys().try_for_each(|set| columns.check(set))
    }

    /// The sets and their weights.
    pub fn sets(&self) -> impl Iterator<Item = (&ColumnSet, f64)> {
        self.0.iter().map(|(set, &weight)| (set, weight))
    }

    /// Every set that is part of one in the workload, with w_r = Σ_s weight_s·|r ∩ s| scaled to a maximum of 1.
    ///
    /// A marginal is worth measuring for all the columns it shares with what is asked. The sum is one over r's columns, of the weights of all sets that hold each.
    pub(crate) fn candidates(&self) -> Vec<(ColumnSet, f64)> {
        let mut of_column: BTreeMap<usize, f64> = BTreeMap::new();
        let mut found: BTreeMap<ColumnSet, f64> = BTreeMap::new();
        for (set, weight) in &self.0 {
            set.iter().for_each(|column| *of_column.entry(column).or_insert(0.0) += weight);
            found.extend(set.subsets().map(|part| (part, 0.0)));
        }
        for (part, weight) in &mut found {
            *weight = part.iter().map(|column| of_column[&column]).sum();
        }
        let largest = found.values().copied().fold(0.0, f64::max);
        found.into_iter().map(|(set, weight)| (set, weight / largest)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Columns {
        Columns::new([("a", 2), ("b", 3), ("c", 4), ("d", 5)]).unwrap()
    }

    #[test]
    fn all_sets_of_some_columns_are_there_once() {
        assert_eq!(Marginals::all(&columns(), 2).unwrap().sets().count(), 6);
        assert_eq!(Marginals::all(&columns(), 3).unwrap().sets().count(), 4);
        assert_eq!(Marginals::all(&columns(), 9).unwrap().sets().count(), 1);
        assert_eq!(Marginals::all(&columns(), 0).unwrap_err().code(), "synth.marginals.ways");
    }

    #[test]
    fn candidates_are_all_parts_weighted_by_what_they_share() {
        let pairs =
            Marginals::new(&columns(), [(ColumnSet::new([0, 1]), 1.0), (ColumnSet::new([1, 2]), 3.0)])
                .unwrap();
        let candidates: BTreeMap<_, _> = pairs.candidates().into_iter().collect();
        assert_eq!(candidates.len(), 5);
        // {1,2}: 1·1 + 3·2 = 7 is the largest; {0,1}: 2 + 3 = 5; {0}: 1.
        assert_eq!(candidates[&ColumnSet::new([1, 2])], 1.0);
        assert_eq!(candidates[&ColumnSet::new([0, 1])], 5.0 / 7.0);
        assert_eq!(candidates[&ColumnSet::new([0])], 1.0 / 7.0);
    }

    #[test]
    fn nonsense_is_refused() {
        let code = |sets| Marginals::new(&columns(), sets).unwrap_err().code();
        assert_eq!(code(vec![]), "synth.marginals.sets");
        assert_eq!(code(vec![(ColumnSet::new([4]), 1.0)]), "synth.columns.unknown");
        assert_eq!(code(vec![(ColumnSet::new([1]), f64::NAN)]), "synth.marginals.weight");
        assert_eq!(code(vec![(ColumnSet::default(), 1.0)]), "synth.marginals.ways");
    }
}
