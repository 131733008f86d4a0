//! [`Spec`]: what to count, and how far one unit may reach.
//!
//! **Definition.** Rows arrive as Arrow batches whose columns are, in this order: the unit (if the spec has one), the keys, the
//! inputs. A *group* is a combination of key values. What leaves is, for each group, whole numbers: one per cell of each
//! [`Measure`].
//!
//! **Guarantee.** With all rows of one unit taken away, at most [`Spec::groups_per_unit`] groups change, the number of units of each
//! of them by at most 1, and each measure of each of them as its own text says. This holds for any input: nothing is
//! assumed of the rows. It is what every sensitivity in the house rests on.
//!
//! **Why.** All rows of a unit and a group are added up first; that sum is forced into its bounds; of the unit's groups those
//! with the smallest keyed hash are kept. None of these steps looks at another unit's rows.

/// What to tally.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Whether the first column names the unit; without it each row is a unit of its own.
    pub has_unit: bool,
    /// How many key columns follow; with none, all rows are one group, which exists even when there are no rows.
    pub keys: usize,
    /// How many input columns follow.
    pub inputs: usize,
    /// In how many groups a unit may appear; a row has one group.
    pub groups_per_unit: u32,
    /// What is counted of each group.
    pub measures: Vec<Measure>,
}

/// A number, or several, about one group.
///
/// A value that is not there (NULL, NaN) counts nowhere. Values below the lower bound count as the lower bound, values above the
/// upper as the upper, infinities too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Rows (whose input is there), up to `most` of a unit.
    ///
    /// One unit moves it by 0 to `most`.
    Count {
        /// Which input must be there; without one, every row counts.
        input: Option<usize>,
        /// The most a unit counts for.
        most: u64,
    },
    /// The sum of the input, each row's value within `row`, each unit's sum within `unit`.
    ///
    /// One unit moves it by `unit.low` to `unit.high`, or not at all. Where each row is a unit, `unit` is applied to the row.
    Sum {
        /// Which input.
        input: usize,
        /// How values become whole steps.
        step: Step,
        /// Bounds of a row's value, in steps.
        row: Bounds,
        /// Bounds of the sum over a unit's rows, in steps; they hold 0.
        unit: Bounds,
    },
    /// The sum of input − centre; a unit with n > `most` rows counts `most`/n of its sum, rounded towards 0.
    ///
    /// One unit moves it by at most `most` · max(high − centre, centre − low), either way.
    Deviation {
        /// Which input.
        input: usize,
        /// How values become whole steps.
        step: Step,
        /// Bounds of a row's value, in steps.
        row: Bounds,
        /// Where distances are measured from, in steps, within `row`.
        centre: i64,
        /// For how many rows a unit counts at most.
        most: u64,
    },
    /// Distinct values of the input, of which each unit brings at most `most` (those with the smallest keyed hash).
    ///
    /// One unit moves it by 0 to `most`.
    Distinct {
        /// Which input; any type.
        input: usize,
        /// How many values a unit may bring.
        most: u64,
    },
    /// How many values lie in each of `cells` cells of equal width between the bounds.
    ///
    /// Cell i holds the values v with ⌊(v − low) · cells / (high − low + 1)⌋ = i. Of a unit's values `most` count: a unit with more has each of
    /// its cells scaled by `most`/n, rounded towards 0. One unit moves the cells by at most `most` in total (ℓ1).
    Histogram {
        /// Which input.
        input: usize,
        /// How values become whole steps.
        step: Step,
        /// Bounds of a value, in steps.
        row: Bounds,
        /// How many cells.
        cells: u32,
        /// For how many values a unit counts at most.
        most: u64,
    },
}

/// How a value becomes a whole number of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Whole numbers (and dates, times, booleans) as they are.
    One,
    /// Doubles in steps of 2^exponent, halves up.
    Binary(i32),
    /// Decimals with this many places, in their own last place.
    Decimal(i8),
}

/// From `low` to `high`, both included; `low` ≤ `high`, and no further from 0 than 2⁶².
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The least.
    pub low: i64,
    /// The most.
    pub high: i64,
}
