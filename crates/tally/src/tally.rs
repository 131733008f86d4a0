//! [`Tally`]: exact counts of groups, which nobody may see before they are noisy.

use arrow::array::ArrayRef;

/// What was counted; groups are in the order of their keys, NULL first.
#[derive(Clone, Debug)]
pub struct Tally {
    /// One array per key column, with one value per group; a key that came as a dictionary leaves as its plain type.
    pub keys: Vec<ArrayRef>,
    /// How many units each group has: those that kept it, or its rows where each row is a unit. None is 0, except without keys.
    pub units: Vec<u64>,
    /// For each measure, its cells group by group: one per group, or as many as its histogram has.
    pub measures: Vec<Vec<i128>>,
    /// How many rows were read.
    pub rows_read: u64,
}
