//! [`Zeros`]: combinations that cannot occur.

use crate::error::require;
use crate::{ColumnSet, Columns, SynthError};

/// Public knowledge that some combinations of values never occur, such as a pregnant man.
///
/// Models give them no weight. Columns with such knowledge keep all their values.
///
/// ```
/// use demur_synth::{Columns, ColumnSet, Zeros};
///
/// let columns = Columns::new([("sex", 2), ("pregnant", 2)])?;
/// let mut zeros = Zeros::none();
/// zeros.add(&columns, ColumnSet::new([0, 1]), &[vec![1, 1]])?;
/// assert!(zeros.add(&columns, ColumnSet::new([0, 1]), &[vec![2, 1]]).is_err());
/// # Ok::<(), demur_synth::SynthError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Zeros(Vec<(ColumnSet, Vec<usize>)>);

impl Zeros {
    /// Everything can occur.
    pub fn none() -> Self {
        Self::default()
    }

    /// These combinations of values of the columns cannot occur, values in the order of the columns' places.
    pub fn add(
        &mut self,
        columns: &Columns,
        set: ColumnSet,
        combinations: &[Vec<usize>],
    ) -> Result<(), SynthError> {
        columns.check(&set)?;
        let sizes = columns.sizes();
        require(set.cells(&sizes) <= crate::mst::MOST_CELLS, "synth.zeros.too-large", || {
            format!(
                "combinations of {set} cannot be excluded: there are {} of them, too many",
                set.cells(&sizes)
            )
        })?;
        let mut cells = vec![];
        for combination in combinations {
            let fits = combination.len() == set.len()
                && combination.iter().zip(set.iter()).all(|(&value, column)| value < sizes[column]);
            require(fits, "synth.zeros.value", || {
                format!("a combination of {set} must have a value of each of its columns, but one has not")
            })?;
            cells.push(
                combination
                    .iter()
                    .zip(set.iter())
                    .fold(0, |cell, (&value, column)| cell * sizes[column] + value),
            );
        }
        self.0.push((set, cells));
        Ok(())
    }

    /// Columns that are spoken of.
    pub(crate) fn columns(&self) -> ColumnSet {
        ColumnSet::new(self.0.iter().flat_map(|(set, _)| set.iter()))
    }

    /// The sets that are spoken of.
    pub(crate) fn sets(&self) -> impl Iterator<Item = &ColumnSet> {
        self.0.iter().map(|(set, _)| set)
    }

    /// 0 for what can occur, −∞ for what cannot.
    pub(crate) fn potentials(&self, sizes: &[usize]) -> Vec<(ColumnSet, Vec<f64>)> {
        let potential = |(set, cells): &(ColumnSet, Vec<usize>)| {
            let mut values = vec![0.0; set.cells(sizes) as usize];
            cells.iter().for_each(|&cell| values[cell] = f64::NEG_INFINITY);
            (set.clone(), values)
        };
        self.0.iter().map(potential).collect()
    }
}
