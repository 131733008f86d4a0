//! [`Numbers`]: what one measure comes to in each group.
//!
//! **Room.** A histogram has thousands of cells, and a group of few units has values in few of them. Only these are held: how many groups there are follows from the rows, and memory
//! would follow with it.

use std::borrow::Cow;

use crate::error::TallyError;

/// The numbers of one measure, group by group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// One for each group.
    One(Vec<i128>),
    /// The cells of each group.
    Cells(Cells),
}

/// The cells of all groups that are not 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells {
    /// How many cells each group has.
    width: usize,
    /// Where the cells of each group begin among all that are held; the last is their number.
    starts: Vec<usize>,
    /// Which cell of its group it is, and what it counts.
    held: Vec<(u32, u64)>,
}

impl Numbers {
    /// The numbers of a group, cell by cell.
    pub fn of(&self, group: usize) -> Cow<'_, [i128]> {
        match self {
            Self::One(numbers) => Cow::Borrowed(&numbers[group..=group]),
            Self::Cells(cells) => {
                let mut numbers = vec![0; cells.width];
                for &(cell, count) in &cells.held[cells.starts[group]..cells.starts[group + 1]] {
                    numbers[cell as usize] = count.into();
                }
                Cow::Owned(numbers)
            }
        }
    }

    /// All numbers of all groups.
    #[cfg(test)]
    pub(crate) fn all(&self) -> Vec<i128> {
        let groups = match self {
            Self::One(numbers) => numbers.len(),
            Self::Cells(cells) => cells.starts.len() - 1,
        };
        (0..groups).flat_map(|group| self.of(group).into_owned()).collect()
    }
}

impl Cells {
    /// Cells of so many groups, from `(group, cell, count)` in any order; what comes twice is added up.
    pub(crate) fn of<I: Iterator<Item = (usize, u32, u64)>>(
        groups: usize,
        width: usize,
        found: impl Fn() -> I,
    ) -> Result<Self, TallyError> {
        let mut starts = vec![0usize; groups + 1];
        found().for_each(|(group, _, _)| starts[group + 1] += 1);
        for group in 0..groups {
            starts[group + 1] += starts[group];
        }
        let mut held = Vec::new();
        held.try_reserve_exact(starts[groups]).map_err(|_| TallyError::too_large("cells"))?;
        held.resize(starts[groups], (0, 0));
        let mut next = starts.clone();
        for (group, cell, count) in found() {
            held[next[group]] = (cell, count);
            next[group] += 1;
        }
        // In order, each cell once.
        let mut kept = 0;
        for group in 0..groups {
            let (start, end) = (starts[group], starts[group + 1]);
            held[start..end].sort_unstable();
            starts[group] = kept;
            for at in start..end {
                let (cell, count) = held[at];
                if kept > starts[group] && held[kept - 1].0 == cell {
                    held[kept - 1].1 += count;
                } else {
                    held[kept] = (cell, count);
                    kept += 1;
                }
            }
        }
        starts[groups] = kept;
        held.truncate(kept);
        Ok(Self { width, starts, held })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_those_of_their_group_and_add_up() {
        let found = [(2, 3, 5), (0, 1, 7), (2, 0, 1), (2, 3, 4), (0, 1, 1), (3, 2, u64::MAX)];
        let cells = Cells::of(4, 4, || found.into_iter()).unwrap();
        assert_eq!(cells.held.len(), 4, "what comes twice is held once");
        let numbers = Numbers::Cells(cells);
        let most = i128::from(u64::MAX);
        assert_eq!(numbers.all(), [0, 8, 0, 0, 0, 0, 0, 0, 1, 0, 0, 9, 0, 0, most, 0]);
        assert_eq!(Numbers::Cells(Cells::of(0, 9, std::iter::empty).unwrap()).all(), []);
        assert_eq!(*Numbers::One(vec![3, -4]).of(1), [-4]);
    }
}
