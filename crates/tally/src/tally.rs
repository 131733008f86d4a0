//! [`Tally`]: exact counts of groups, which nobody may see before they are noisy.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use crate::error::TallyError;
use crate::groups::row_converter;
use crate::numbers::{Cells, Numbers};
use crate::spec::Spec;
use crate::totals::{Part, Totals};
use crate::words::Strings;

/// What was counted; groups are in the order of their keys, NULL first.
#[derive(Clone, Debug)]
pub struct Tally {
    /// One array per key column, with one value per group; a key that came as a dictionary leaves as its plain type.
    pub keys: Vec<ArrayRef>,
    /// How many units each group has: those that kept it, or its rows where each row is a unit. None is 0, except without keys.
    pub units: Vec<u64>,
    /// What each measure comes to, group by group.
    pub measures: Vec<Numbers>,
    /// How many rows were read.
    pub rows_read: u64,
}

impl Tally {
    /// The totals in the order of their keys, without groups that have no unit.
    pub(crate) fn write(
        spec: &Spec,
        key_types: &[DataType],
        groups: &Strings,
        mut totals: Totals,
        rows_read: u64,
    ) -> Result<Self, TallyError> {
        totals.units.resize(groups.len(), 0);
        let mut order: Vec<(u64, u32)> = (0..groups.len() as u32)
            .filter(|&group| spec.keys == 0 || totals.units[group as usize] > 0)
            .map(|group| (beginning(groups.get(group)), group))
            .collect();
        order.sort_unstable_by(|one, two| {
            one.0.cmp(&two.0).then_with(|| groups.get(one.1).cmp(groups.get(two.1)))
        });
        let mut place = vec![u32::MAX; groups.len()];
        for (at, &(_, group)) in order.iter().enumerate() {
            place[group as usize] = at as u32;
        }
        let measures = totals.parts.iter_mut().zip(&spec.measures);
        let measures = measures.map(|(part, measure)| numbers(part, measure.cells(), &order, &place));
        Ok(Self {
            units: order.iter().map(|&(_, group)| totals.units[group as usize]).collect(),
            measures: measures.collect::<Result<_, _>>()?,
            keys: keys(key_types, groups, &order)?,
            rows_read,
        })
    }
}

/// The first eight bytes, which order most keys.
fn beginning(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    let known = key.len().min(8);
    first[..known].copy_from_slice(&key[..known]);
    u64::from_be_bytes(first)
}

fn keys(types: &[DataType], groups: &Strings, order: &[(u64, u32)]) -> Result<Vec<ArrayRef>, TallyError> {
    if types.is_empty() {
        return Ok(Vec::new());
    }
    let converter = row_converter(types)?;
    let parser = converter.parser();
    let rows = order.iter().map(|&(_, group)| parser.parse(groups.get(group)));
    converter.convert_rows(rows).map_err(|_| TallyError::ours("keys could not be written"))
}

/// One measure, group by group.
fn numbers(
    part: &mut Part,
    width: usize,
    order: &[(u64, u32)],
    place: &[u32],
) -> Result<Numbers, TallyError> {
    let place = |group: u32| place[group as usize] as usize;
    if let Part::Cells(found) = part {
        let found = || found.iter().map(|(group, cell, count)| (place(group), cell, count));
        return Cells::of(order.len(), width, found).map(Numbers::Cells);
    }
    let mut numbers = Vec::new();
    numbers.try_reserve_exact(order.len()).map_err(|_| TallyError::too_large("groups"))?;
    numbers.resize(order.len(), 0);
    match part {
        Part::Number(found) => {
            let found = found.sums();
            for (number, &(_, group)) in numbers.iter_mut().zip(order) {
                *number = found.get(group as usize).copied().unwrap_or(0);
            }
        }
        Part::Values(found) => found.iter().for_each(|(group, _)| numbers[place(group)] += 1),
        Part::Edges(found, most) => {
            for (group, count) in found.matched(*most) {
                numbers[place(group)] = count.into();
            }
        }
        Part::Cells(_) => {}
    }
    Ok(Numbers::One(numbers))
}
