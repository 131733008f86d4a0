//! [`Both`]: what is counted when two kinds of units are hidden at once, such as patients and hospitals.
//!
//! **Definition.** Each row belongs to a first unit (or is one of its own) and to a second unit. A measure adds up a number per row, within its bounds. Of each group the
//! positive parts of these numbers are added up by pairs of units, and so are the negative parts; then as much is taken from all pairs as both kinds of units may give
//! ([`flow`](crate::flow)). The group's number is the one less the other.
//!
//! **Guarantee.** With all rows of one unit of either kind taken away, every number of every group moves by at most what a unit of its kind may give; groups of other keys as
//! well, since nobody has to choose among them. Nothing else changes.
//!
//! **Why.** What a pair has depends on the pair's own rows. Each part falls by 0 to what the unit may give of it, so their difference moves by at most the larger of the two.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef};
use arrow::compute::{partition, take};
use arrow::datatypes::DataType;

use crate::error::TallyError;
use crate::flow::{Pair, greatest};
use crate::groups::row_converter;
use crate::numbers::Numbers;
use crate::spec::{Bounds, Measure, Spec};
use crate::tally::Tally;
use crate::words::small;

/// How rows of two kinds of units are counted.
#[derive(Clone, Debug)]
pub struct Both {
    /// What rows are added up by: the keys, the first unit if there is one, the second unit; then the inputs.
    pub spec: Spec,
    keys: usize,
    measures: Vec<Signed>,
}

/// A measure as the difference of two parts.
#[derive(Clone, Debug)]
struct Signed {
    plus: Limit,
    minus: Option<Limit>,
}

/// One part: which measure adds it up, and what units of each kind may give of it.
#[derive(Clone, Copy, Debug)]
struct Limit {
    part: usize,
    of_first: i128,
    of_second: i128,
}

impl Both {
    /// Counts what `spec` does for the first units, with at most `most` rows of each second unit in a group.
    ///
    /// Different values and histograms are refused.
    pub fn new(spec: &Spec, most: u64) -> Result<Self, TallyError> {
        let (mut parts, mut measures) = (Vec::new(), Vec::new());
        for measure in &spec.measures {
            let (low, high) = measure.reach();
            let Some((row_low, row_high)) = measure.one_row() else {
                let text = "different values and histograms cannot be shared out among two kinds of units";
                return Err(TallyError::spec(text));
            };
            let mut add = |part: Measure, of_first: i128, of_row: i128| {
                parts.push(part);
                Limit { part: parts.len() - 1, of_first, of_second: of_row * i128::from(most) }
            };
            let plus = add(side(measure, true), high, row_high);
            let minus = (row_low < 0).then(|| add(side(measure, false), -low, -row_low));
            measures.push(Signed { plus, minus });
        }
        let keys = spec.keys + usize::from(spec.has_unit) + 1;
        let spec_of_pairs =
            Spec { has_unit: false, keys, inputs: spec.inputs, groups_per_unit: 1, measures: parts };
        Ok(Self { spec: spec_of_pairs, keys: spec.keys, measures })
    }

    /// From sums of pairs to numbers of groups.
    pub fn settle(&self, pairs: Tally) -> Result<Tally, TallyError> {
        let rows = pairs.units.len();
        let alike = |columns: usize| match (rows, columns) {
            (0, _) => Ok(Vec::new()),
            (_, 0) => Ok(std::iter::once(0..rows).collect()),
            _ => partition(&pairs.keys[..columns])
                .map(|found| found.ranges())
                .map_err(|_| TallyError::ours("keys cannot be compared")),
        };
        let mut groups = alike(self.keys)?;
        if groups.is_empty() && self.keys == 0 {
            groups.push(0..0);
        }
        let mut first = vec![0u32; rows];
        if self.spec.keys == self.keys + 2 {
            for (number, range) in alike(self.keys + 1)?.into_iter().enumerate() {
                first[range].fill(small(number, "units")?);
            }
        } else {
            // Rows are units of their own, and were held to their limits one by one.
            first = (0..small(rows, "pairs of units")?).collect();
        }
        let second = pairs.keys.last().map(numbered).transpose()?.unwrap_or_default();
        let number = |limit: Limit, range: std::ops::Range<usize>| {
            let (start, mut known) = (first.get(range.start).copied().unwrap_or(0), HashMap::new());
            let pair = |row: usize| {
                let next = known.len() as u32;
                let second = *known.entry(second[row]).or_insert(next);
                Pair {
                    first: first[row] - start,
                    second,
                    amount: pairs.measures[limit.part].of(row)[0].abs(),
                }
            };
            let of_first = if self.spec.keys == self.keys + 2 { limit.of_first } else { i128::MAX };
            greatest(&range.map(pair).collect::<Vec<_>>(), of_first, limit.of_second)
        };
        let of_measure = |measure: &Signed| {
            let value = |range: &std::ops::Range<usize>| {
                let minus = measure.minus.map_or(0, |minus| number(minus, range.clone()));
                number(measure.plus, range.clone()) - minus
            };
            Numbers::One(groups.iter().map(value).collect())
        };
        let places: Vec<u32> = groups.iter().map(|range| range.start as u32).collect();
        let places = arrow::array::UInt32Array::from(places);
        let key =
            |key: &ArrayRef| take(key, &places, None).map_err(|_| TallyError::ours("keys cannot be taken"));
        Ok(Tally {
            keys: pairs.keys[..self.keys].iter().map(key).collect::<Result<_, _>>()?,
            units: groups.iter().map(|range| range.len() as u64).collect(),
            measures: self.measures.iter().map(of_measure).collect(),
            rows_read: pairs.rows_read,
        })
    }
}

/// The measure of the parts above 0, or below, row by row.
fn side(measure: &Measure, above: bool) -> Measure {
    let half = |row: Bounds, middle: i64| match above {
        true => Bounds { low: row.low.max(middle), high: row.high.max(middle) },
        false => Bounds { low: row.low.min(middle), high: row.high.min(middle) },
    };
    match *measure {
        Measure::Sum { input, step, row, unit } => {
            // A row that lies wholly on the other side adds nothing.
            Measure::Sum { input, step, row: half(row, 0), unit: half(unit, 0) }
        }
        Measure::Deviation { input, step, row, centre, .. } => {
            Measure::Deviation { input, step, row: half(row, centre), centre, most: 1 }
        }
        Measure::Count { input, .. } => Measure::Count { input, most: 1 },
        ref other => other.clone(),
    }
}

/// A number for each value, the same for the same.
fn numbered(column: &ArrayRef) -> Result<Vec<u32>, TallyError> {
    let wrong = |_| TallyError::ours("units have no row format");
    let types: [DataType; 1] = [column.data_type().clone()];
    let rows = row_converter(&types)?.convert_columns(std::slice::from_ref(column)).map_err(wrong)?;
    let mut known: HashMap<Vec<u8>, u32> = HashMap::new();
    let mut numbers = Vec::with_capacity(column.len());
    for row in &rows {
        let next = small(known.len(), "units")?;
        numbers.push(*known.entry(row.data().to_vec()).or_insert(next));
    }
    Ok(numbers)
}
