//! [`Neighbours`]: which tables must look alike, and how far a marginal moves between them.
//!
//! A unit has at most r rows. When it comes or goes, at most r rows do, which all may lie in one cell: a marginal moves by at most r in ℓ1 and in ℓ2. When it is replaced, r
//! rows go and r come: by at most 2r in ℓ1, and by at most r·√2 in ℓ2 where the rows lie in two cells. That is the furthest: rows in more cells are nearer, and in one
//! cell nothing moves.

use demur_core::Adjacency;

use crate::SynthError;
use crate::error::require;

/// The most rows that one unit may have.
pub const MAX_ROWS_PER_UNIT: u32 = 1 << 12;

/// See the module text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbours {
    adjacency: Adjacency,
    rows: u32,
}

impl From<Adjacency> for Neighbours {
    /// Every row is a unit of its own.
    fn from(adjacency: Adjacency) -> Self {
        Self { adjacency, rows: 1 }
    }
}

impl Neighbours {
    /// Units of at most so many rows.
    pub fn new(adjacency: Adjacency, rows_per_unit: u32) -> Result<Self, SynthError> {
        require((1..=MAX_ROWS_PER_UNIT).contains(&rows_per_unit), "synth.plan.rows-per-unit", || {
            format!(
                "one unit may have from 1 to {MAX_ROWS_PER_UNIT} rows, but {rows_per_unit} were asked for"
            )
        })?;
        Ok(Self { adjacency, rows: rows_per_unit })
    }

    /// Which units come, go or are replaced.
    pub fn adjacency(self) -> Adjacency {
        self.adjacency
    }

    /// Whether the number of rows is public: a row takes the place of a row.
    pub(crate) fn keep_the_number_of_rows(self) -> bool {
        self.adjacency == Adjacency::Replace && self.rows == 1
    }

    /// How far a marginal moves in ℓ1.
    pub fn l1(self) -> u32 {
        self.units() * self.rows
    }

    /// The square of how far it moves in ℓ2.
    pub fn l2_squared(self) -> u32 {
        self.units() * self.rows * self.rows
    }

    /// How many units differ: one that comes or goes, or one that goes and one that comes.
    fn units(self) -> u32 {
        match self.adjacency {
            Adjacency::AddRemove => 1,
            Adjacency::Replace => 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All ways to put the rows that go and those that come into three cells.
    #[test]
    fn nothing_moves_further_and_something_moves_as_far() {
        for rows in 1..4u32 {
            for adjacency in [Adjacency::AddRemove, Adjacency::Replace] {
                let neighbours = Neighbours::new(adjacency, rows).unwrap();
                let spread = |code: u32| [code % 4, code / 4 % 4, code / 16 % 4];
                let allowed = |cells: &[u32; 3]| cells.iter().sum::<u32>() <= rows;
                let comes: Vec<_> = (0..64).map(spread).filter(allowed).collect();
                let goes = if adjacency == Adjacency::Replace { comes.clone() } else { vec![[0; 3]] };
                let (mut l1, mut l2) = (0, 0);
                for come in &comes {
                    for go in &goes {
                        let moved = [0, 1, 2].map(|cell| come[cell].abs_diff(go[cell]));
                        l1 = l1.max(moved.iter().sum());
                        l2 = l2.max(moved.iter().map(|by| by * by).sum());
                    }
                }
                assert_eq!((l1, l2), (neighbours.l1(), neighbours.l2_squared()));
            }
        }
        assert!(Neighbours::new(Adjacency::AddRemove, 0).is_err());
        assert!(Neighbours::new(Adjacency::AddRemove, MAX_ROWS_PER_UNIT + 1).is_err());
    }
}
