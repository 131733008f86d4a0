//! [`Columns`]: the public description of a table's features, and how its rows become numbers.
//!
//! A number is bounded by what was declared and mapped to −1…1. A curve lets the prediction bend: its number becomes weights of the two knots next to it, which add up to 1. An amount is a curve of
//! ln(1 + x), for what is small for most and large for few. A category becomes one 1 among zeros, at the place of its value among those that were declared. What is missing,
//! not a number or not declared becomes 0 everywhere. So each column adds at most 1 to the square of a row's length, whatever stands in the table: nothing here is
//! learned from rows.

use crate::LearnError;
use crate::error::require;

/// The most values of a category.
pub const MAX_CATEGORY: u32 = 1 << 16;

/// One feature, as its owner declared it.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// A number; what lies outside the bounds counts as the nearer one.
    Number {
        /// Nothing is smaller.
        low: f64,
        /// Nothing is larger.
        high: f64,
    },
    /// A number whose effect may bend at evenly spaced knots.
    Curve {
        /// Nothing is smaller.
        low: f64,
        /// Nothing is larger.
        high: f64,
        /// How many knots there are, the bounds among them.
        knots: u32,
    },
    /// A number from 0 on of which most are small, as incomes are.
    Amount {
        /// Nothing is larger.
        high: f64,
        /// How many knots there are, the bounds among them.
        knots: u32,
    },
    /// One of so many declared values.
    Category {
        /// How many there are.
        values: u32,
    },
}

/// One private cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell {
    /// Of a number column.
    Number(f64),
    /// The place of the value among those declared.
    Category(u32),
    /// Nothing is known.
    Missing,
}

/// See the module text.
///
/// ```
/// use demur_learn::train::{Cell, Column, Columns};
/// let columns = Columns::new(vec![Column::Number { low: 0.0, high: 100.0 }, Column::Category { values: 3 }])?;
/// let mut features = Vec::new();
/// columns.encode(&[Cell::Number(75.0), Cell::Category(1)], &mut features);
/// columns.encode(&[Cell::Number(f64::NAN), Cell::Category(9)], &mut features);
/// assert_eq!(features, [0.5, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
/// # Ok::<(), demur_learn::LearnError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    columns: Vec<Column>,
}

impl Columns {
    /// Columns in the order of the cells.
    pub fn new(columns: Vec<Column>) -> Result<Self, LearnError> {
        require(!columns.is_empty(), "learn.columns.none", || {
            "a model needs at least one feature, but none was named".into()
        })?;
        for column in &columns {
            match *column {
                Column::Number { low, high } => check_bounds(low, high)?,
                Column::Curve { low, high, knots } => check_bounds(low, high).and(check_knots(knots))?,
                Column::Amount { high, knots } => check_bounds(0.0, high).and(check_knots(knots))?,
                Column::Category { values } => {
                    require((1..=MAX_CATEGORY).contains(&values), "learn.columns.values", || {
                        format!(
                            "a category has from 1 to {MAX_CATEGORY} declared values, but {values} were declared"
                        )
                    })?
                }
            }
        }
        Ok(Self { columns })
    }

    /// How many features a row becomes.
    pub fn width(&self) -> usize {
        let width = |column: &Column| match column {
            Column::Number { .. } => 1,
            Column::Curve { knots, .. } | Column::Amount { knots, .. } => *knots as usize,
            Column::Category { values } => *values as usize,
        };
        self.columns.iter().map(width).sum()
    }

    /// The square of a row's length is at most this.
    pub fn reach_squared(&self) -> f64 {
        self.columns.len() as f64
    }

    /// Adds one row to `features`. Cells that are missing at the end, or of another kind, count as missing.
    pub fn encode(&self, cells: &[Cell], features: &mut Vec<f32>) {
        let cells = cells.iter().copied().chain(std::iter::repeat(Cell::Missing));
        for (column, cell) in self.columns.iter().zip(cells) {
            match (column, cell) {
                (Column::Number { low, high }, Cell::Number(number)) if !number.is_nan() => {
                    features.push((2.0 * part(number, *low, *high) - 1.0) as f32);
                }
                (Column::Curve { low, high, knots }, Cell::Number(number)) if !number.is_nan() => {
                    hats(part(number, *low, *high), *knots, features);
                }
                (Column::Amount { high, knots }, Cell::Number(number)) if !number.is_nan() => {
                    let logarithm = number.clamp(0.0, *high).ln_1p();
                    hats(part(logarithm, 0.0, high.ln_1p()), *knots, features);
                }
                (Column::Curve { knots, .. } | Column::Amount { knots, .. }, _) => {
                    features.extend((0..*knots).map(|_| 0.0));
                }
                (Column::Number { .. }, _) => features.push(0.0),
                (Column::Category { values }, cell) => {
                    let hit = |value| if cell == Cell::Category(value) { 1.0 } else { 0.0 };
                    features.extend((0..*values).map(hit));
                }
            }
        }
    }
}

fn check_bounds(low: f64, high: f64) -> Result<(), LearnError> {
    require((high - low).is_finite() && low < high, "learn.columns.bounds", || {
        format!("a number must lie between two bounds, the lower one first, but they are {low} and {high}")
    })
}

fn check_knots(knots: u32) -> Result<(), LearnError> {
    require((2..=MAX_CATEGORY).contains(&knots), "learn.columns.knots", || {
        format!("a curve has from 2 to {MAX_CATEGORY} knots, but {knots} were asked for")
    })
}

/// Where a number lies between its bounds, from 0 to 1.
fn part(number: f64, low: f64, high: f64) -> f64 {
    ((number.clamp(low, high) - low) / (high - low)).clamp(0.0, 1.0)
}

/// Weights of the knots at 0, 1/(k − 1), …, 1: two of them, which add up to 1, and zeros.
fn hats(part: f64, knots: u32, features: &mut Vec<f32>) {
    let place = part * f64::from(knots - 1);
    let left = place.floor().min(f64::from(knots - 2));
    let weight = |knot: u32| (1.0 - (place - f64::from(knot)).abs()).max(0.0) as f32;
    features.extend((0..knots).map(|knot| {
        if f64::from(knot) == left || f64::from(knot) == left + 1.0 { weight(knot) } else { 0.0 }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_never_longer_than_promised() {
        let columns = Columns::new(vec![
            Column::Number { low: -3.0, high: 1e9 },
            Column::Category { values: 4 },
            Column::Number { low: -f64::MIN_POSITIVE, high: 0.0 },
            Column::Curve { low: -1.0, high: 1e9, knots: 2 },
            Column::Amount { high: 1e5, knots: 9 },
        ])
        .unwrap();
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1e300, -3.0, 5e-324];
        for number in odd {
            for other in odd {
                for category in [0, 3, 4, u32::MAX] {
                    let mut row = Vec::new();
                    let (number, other) = (Cell::Number(number), Cell::Number(other));
                    columns.encode(&[number, Cell::Category(category), other, number, other], &mut row);
                    assert_eq!(row.len(), columns.width());
                    let square: f32 = row.iter().map(|x| x * x).sum();
                    assert!(f64::from(square) <= columns.reach_squared(), "{row:?}");
                }
            }
        }
    }

    #[test]
    fn knots_share_a_number_between_neighbours() {
        let columns = Columns::new(vec![Column::Curve { low: 0.0, high: 4.0, knots: 5 }]).unwrap();
        for (number, expected) in [
            (0.0, [1.0, 0.0, 0.0, 0.0, 0.0]),
            (1.25, [0.0, 0.75, 0.25, 0.0, 0.0]),
            (4.0, [0.0, 0.0, 0.0, 0.0, 1.0]),
            (9.0, [0.0, 0.0, 0.0, 0.0, 1.0]),
        ] {
            let mut row = Vec::new();
            columns.encode(&[Cell::Number(number)], &mut row);
            assert_eq!(row, expected);
        }
    }

    #[test]
    fn missing_cells_and_cells_of_another_kind_are_zeros() {
        let columns =
            Columns::new(vec![Column::Category { values: 2 }, Column::Number { low: 0.0, high: 1.0 }])
                .unwrap();
        for cells in [&[][..], &[Cell::Missing, Cell::Missing], &[Cell::Number(1.0), Cell::Category(0)]] {
            let mut row = Vec::new();
            columns.encode(cells, &mut row);
            assert_eq!(row, [0.0; 3]);
        }
    }

    #[test]
    fn bounds_that_bound_nothing_are_refused() {
        let code = |column| Columns::new(vec![column]).unwrap_err().code();
        for (low, high) in
            [(1.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY), (-f64::MAX, f64::MAX)]
        {
            assert_eq!(code(Column::Number { low, high }), "learn.columns.bounds");
        }
        assert_eq!(code(Column::Category { values: 0 }), "learn.columns.values");
        assert_eq!(code(Column::Amount { high: 0.0, knots: 3 }), "learn.columns.bounds");
        assert_eq!(code(Column::Curve { low: 0.0, high: 1.0, knots: 1 }), "learn.columns.knots");
        assert_eq!(Columns::new(Vec::new()).unwrap_err().code(), "learn.columns.none");
    }
}
