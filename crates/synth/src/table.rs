//! [`Table`]: private rows as columns of small whole numbers.

use rayon::prelude::*;

use crate::error::require;
use crate::{ColumnSet, Columns, SynthError};

/// A discretised table. Its values are private; its [`Columns`] are not.
///
/// ```
/// use demur_synth::{Columns, Table};
///
/// let columns = Columns::new([("smoker", 2), ("region", 3)])?;
/// let table = Table::new(columns, vec![vec![0, 1, 1], vec![2, 2, 0]])?;
/// assert_eq!(table.columns().len(), 2);
/// # Ok::<(), demur_synth::SynthError>(())
/// ```
#[derive(Clone)]
pub struct Table {
    columns: Columns,
    codes: Vec<Vec<u32>>,
    rows: usize,
}

impl Table {
    /// A table given column by column; every value must be below its column's size.
    pub fn new(columns: Columns, codes: Vec<Vec<u32>>) -> Result<Self, SynthError> {
        require(codes.len() == columns.len(), "synth.table.columns", || {
            format!("a table of {} columns was described, but {} were given", columns.len(), codes.len())
        })?;
        let rows = codes.first().map_or(0, Vec::len);
        for (column, values) in columns.iter().zip(&codes) {
            require(values.len() == rows, "synth.table.lengths", || {
                format!("all columns must be equally long, but `{}` is not as long as the first", column.name)
            })?;
            require(values.iter().all(|&value| (value as usize) < column.size), "synth.table.value", || {
                format!("every value of `{}` must be below {}, but one is not", column.name, column.size)
            })?;
        }
        Ok(Self { columns, codes, rows })
    }

    /// What is public about it.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// How many rows there are; private unless neighbours replace a row.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// How often each combination of values of the set occurs; private.
    pub(crate) fn counts(&self, set: &ColumnSet) -> Vec<u32> {
        let sizes = self.columns.sizes();
        let mut counts = vec![0u32; set.cells(&sizes) as usize];
        let mut places = [0u32; 1024];
        let mut start = 0;
        while start < self.rows {
            let end = (start + places.len()).min(self.rows);
            let block = &mut places[..end - start];
            block.fill(0);
            for column in set.iter() {
                let size = sizes[column] as u32;
                for (place, &code) in block.iter_mut().zip(&self.codes[column][start..end]) {
                    *place = *place * size + code;
                }
            }
            for &place in &*block {
                counts[place as usize] += 1;
            }
            start = end;
        }
        counts
    }

    /// The same rows with values renamed: `maps[column][value]` is the new value.
    pub(crate) fn renamed(&self, columns: Columns, maps: &[Vec<u32>]) -> Self {
        let rename =
            |(codes, map): (&Vec<u32>, &Vec<u32>)| codes.iter().map(|&code| map[code as usize]).collect();
        let codes = self.codes.par_iter().zip(maps).map(rename).collect();
        Self { columns, codes, rows: self.rows }
    }
}

/// Says nothing about the rows.
impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Table of {} columns", self.columns.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_its_columns_is_refused_without_a_word_about_rows() {
        let columns = || Columns::new([("a", 2), ("b", 3)]).unwrap();
        let text = |codes| Table::new(columns(), codes).unwrap_err().to_string();
        assert_eq!(text(vec![vec![0]]), "a table of 2 columns was described, but 1 were given");
        assert_eq!(
            text(vec![vec![0], vec![]]),
            "all columns must be equally long, but `b` is not as long as the first"
        );
        assert_eq!(text(vec![vec![0], vec![3]]), "every value of `b` must be below 3, but one is not");
        let table = Table::new(columns(), vec![vec![1; 77], vec![2; 77]]).unwrap();
        assert_eq!(format!("{table:?}"), "Table of 2 columns");
    }

    #[test]
    fn counts_are_over_the_set_with_the_last_column_fastest() {
        let columns = Columns::new([("a", 2), ("b", 3), ("c", 2)]).unwrap();
        let codes =
            vec![vec![1; 3000], (0..3000).map(|i| i % 3).collect(), (0..3000).map(|i| i % 2).collect()];
        let table = Table::new(columns, codes).unwrap();
        assert_eq!(table.counts(&ColumnSet::new([0, 1])), [0, 0, 0, 1000, 1000, 1000]);
        assert_eq!(table.counts(&ColumnSet::new([1, 2])), [500; 6]);
        assert_eq!(table.counts(&ColumnSet::default()), [3000]);
    }
}
