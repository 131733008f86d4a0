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

use crate::error::TallyError;

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
    /// The most different values of the input that can be brought at once, if each unit brings at most `most` of its own; see
    /// `matching.rs`.
    ///
    /// One unit moves it by 0 to `most`.
    Matched {
        /// Which input; any type.
        input: usize,
        /// How many values a unit may bring.
        most: u64,
        /// Of how many of its values (those with the smallest keyed hash) it is looked which it brings.
        seen: u64,
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

/// No bound lies further from 0.
const FURTHEST: i64 = 1 << 62;

/// Steps of doubles are 2^−1022 to 2^1022, so that both they and their inverses are doubles.
const EXPONENTS: std::ops::RangeInclusive<i32> = -1022..=1022;

impl Spec {
    /// How many columns a batch has.
    pub fn columns(&self) -> usize {
        usize::from(self.has_unit) + self.keys + self.inputs
    }

    /// Which columns are keys.
    pub(crate) fn key_columns(&self) -> std::ops::Range<usize> {
        let first = usize::from(self.has_unit);
        first..first + self.keys
    }

    /// Which column an input is.
    pub(crate) fn input_column(&self, input: usize) -> usize {
        self.key_columns().end + input
    }

    /// Refuses what makes no sense.
    pub(crate) fn check(&self) -> Result<(), TallyError> {
        if self.groups_per_unit == 0 {
            return Err(TallyError::spec("groups_per_unit is 0, so nothing would be counted"));
        }
        self.measures.iter().enumerate().try_for_each(|(index, measure)| {
            let refuse = |text: &str| Err(TallyError::spec(format!("measure {index}: {text}")));
            if measure.input().is_some_and(|input| input >= self.inputs) {
                return refuse("its input is not among the inputs");
            }
            match *measure {
                Measure::Count { .. } | Measure::Distinct { .. } | Measure::Matched { .. } => Ok(()),
                Measure::Sum { step, row, unit, .. } => match () {
                    () if !(row.is_sound() && unit.is_sound()) => refuse(UNSOUND),
                    () if !unit.contains(0) => refuse("the bounds of a unit's sum do not hold 0"),
                    () if !step.is_sound() => refuse(STEP),
                    () => Ok(()),
                },
                Measure::Deviation { step, row, centre, .. } => match () {
                    () if !row.is_sound() => refuse(UNSOUND),
                    () if !row.contains(centre) => refuse("the centre is not within the bounds"),
                    () if !step.is_sound() => refuse(STEP),
                    () => Ok(()),
                },
                Measure::Histogram { step, row, cells, .. } => match () {
                    () if !row.is_sound() => refuse(UNSOUND),
                    () if cells == 0 => refuse("it has no cells"),
                    () if !step.is_sound() => refuse(STEP),
                    () => Ok(()),
                },
            }
        })
    }
}

const UNSOUND: &str = "its bounds are not in order, or further from 0 than 2^62";
const STEP: &str = "its step is beyond 2^±1022";

impl Measure {
    /// Which input is read, if any.
    pub(crate) fn input(&self) -> Option<usize> {
        match *self {
            Self::Count { input, .. } => input,
            Self::Sum { input, .. }
            | Self::Deviation { input, .. }
            | Self::Distinct { input, .. }
            | Self::Matched { input, .. }
            | Self::Histogram { input, .. } => Some(input),
        }
    }

    /// What one unit adds to a number of one group: from where to where.
    pub fn reach(&self) -> (i128, i128) {
        match *self {
            Self::Count { most, .. }
            | Self::Distinct { most, .. }
            | Self::Matched { most, .. }
            | Self::Histogram { most, .. } => (0, i128::from(most)),
            Self::Sum { unit, .. } => (i128::from(unit.low).min(0), i128::from(unit.high).max(0)),
            Self::Deviation { row, centre, most, .. } => {
                let [low, high, centre] = [row.low, row.high, centre].map(i128::from);
                let most = i128::from(most);
                (((low - centre) * most).min(0), ((high - centre) * most).max(0))
            }
        }
    }

    /// What one row adds, where rows add numbers.
    pub fn one_row(&self) -> Option<(i128, i128)> {
        match *self {
            Self::Count { .. } => Some((0, 1)),
            // A row is no more than all of a unit's rows may be.
            Self::Sum { row, unit, .. } => {
                let [low, high] = [row.low.max(unit.low), row.high.min(unit.high)].map(i128::from);
                Some((low.min(0), high.max(0)))
            }
            Self::Deviation { row, centre, .. } => {
                let [low, high, centre] = [row.low, row.high, centre].map(i128::from);
                Some(((low - centre).min(0), (high - centre).max(0)))
            }
            Self::Distinct { .. } | Self::Matched { .. } | Self::Histogram { .. } => None,
        }
    }

    /// How many numbers there are for each group.
    pub fn cells(&self) -> usize {
        match self {
            Self::Histogram { cells, .. } => *cells as usize,
            _ => 1,
        }
    }
}

impl Step {
    fn is_sound(self) -> bool {
        !matches!(self, Self::Binary(exponent) if !EXPONENTS.contains(&exponent))
    }
}

impl Bounds {
    fn is_sound(self) -> bool {
        -FURTHEST <= self.low && self.low <= self.high && self.high <= FURTHEST
    }

    fn contains(self, value: i64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}
