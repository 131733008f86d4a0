//! [`Entries`]: what units count for in their groups.
//!
//! **Definition.** An *entry* is one unit in one of its groups: the sum of each lane over the unit's rows there, how many of these rows lie in which cell, and which
//! values they have. It is made of *parts*: rows, and what earlier rows came to.

use crate::context::Context;
use crate::error::TallyError;
use crate::layout::{Lane, Layout};
use crate::lists::Lists;
use crate::record::Rows;
use crate::settle::Names;
use crate::steps::ABSENT;

/// Entries column by column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entries {
    pub(crate) groups: Vec<u32>,
    /// One column for each lane.
    pub(crate) lanes: Vec<Vec<i128>>,
    /// For each spread, the cells in use and their counts.
    pub(crate) cells: Vec<Lists<(u32, u64)>>,
    /// For each pick, the picked values.
    pub(crate) values: Vec<Lists<u32>>,
}

/// Which entries there will be, and what they are made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// The units in order.
    pub(crate) units: Vec<Unit>,
    pub(crate) groups: Vec<u32>,
    /// For each entry the places of its parts: rows, or earlier entries where [`EARLIER`] is set.
    pub(crate) places: Lists<u32>,
}

/// A unit, and how many entries it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) name: u64,
    pub(crate) entries: u32,
}

/// Marks the place of an earlier entry.
pub(crate) const EARLIER: u32 = 1 << 31;

impl Parts {
    pub(crate) fn clear(&mut self) {
        self.units.clear();
        self.groups.clear();
        self.places.clear();
    }

    /// The unit of each entry.
    fn names(&self) -> impl Iterator<Item = u64> {
        self.units.iter().flat_map(|unit| std::iter::repeat_n(unit.name, unit.entries as usize))
    }
}

impl Entries {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self {
            groups: Vec::new(),
            lanes: vec![Vec::new(); layout.lanes.len()],
            cells: vec![Lists::default(); layout.spreads.len()],
            values: vec![Lists::default(); layout.picks.len()],
        }
    }

    pub(crate) fn clear(&mut self) {
        self.groups.clear();
        self.lanes.iter_mut().for_each(Vec::clear);
        self.cells.iter_mut().for_each(Lists::clear);
        self.values.iter_mut().for_each(Lists::clear);
    }

    /// Becomes what the parts come to.
    pub(crate) fn add_up(
        &mut self,
        parts: &Parts,
        rows: &Rows,
        earlier: &Self,
        names: Names,
        context: &Context,
    ) -> Result<(), TallyError> {
        self.clear();
        self.groups.extend_from_slice(&parts.groups);
        let Layout { lanes, spreads, picks, packing, .. } = context.layout;
        let value = |row: usize, source: usize| rows.value(row, packing.places[source], packing);
        for ((sums, before), lane) in self.lanes.iter_mut().zip(&earlier.lanes).zip(lanes) {
            match *lane {
                Lane::Rows if before.is_empty() => {
                    sums.extend(parts.places.iter().map(|places| places.len() as i128));
                }
                Lane::Rows => add_lane(sums, parts, before, |_| 1),
                Lane::There(source) => {
                    add_lane(sums, parts, before, |row| i64::from(value(row, source) != ABSENT));
                }
                Lane::Sum(source) => add_lane(sums, parts, before, |row| match value(row, source) {
                    ABSENT => 0,
                    value => value,
                }),
            }
        }
        for ((cells, before), &source) in self.cells.iter_mut().zip(&earlier.cells).zip(spreads) {
            add_cells(cells, parts, before, |row| value(row, source));
        }
        for ((values, before), pick) in self.values.iter_mut().zip(&earlier.values).zip(picks) {
            let choose = |values: &mut Vec<u32>, unit| context.pick(values, names.hash(unit), pick);
            add_values(values, parts, before, |row| value(row, pick.source), choose)?;
        }
        Ok(())
    }
}

/// Adds up one lane of each entry.
#[inline]
fn add_lane(sums: &mut Vec<i128>, parts: &Parts, before: &[i128], of_row: impl Fn(usize) -> i64) {
    sums.extend(parts.places.iter().map(|places| {
        let part = |&place: &u32| match place & EARLIER {
            0 => i128::from(of_row(place as usize)),
            _ => before[(place ^ EARLIER) as usize],
        };
        places.iter().map(part).sum::<i128>()
    }));
}

/// Counts the cells of each entry.
fn add_cells(
    cells: &mut Lists<(u32, u64)>,
    parts: &Parts,
    before: &Lists<(u32, u64)>,
    of_row: impl Fn(usize) -> i64,
) {
    let mut open: Vec<(u32, u64)> = Vec::new();
    for places in parts.places.iter() {
        for &place in places {
            match place & EARLIER {
                0 => open.extend(there(of_row(place as usize)).map(|cell| (cell, 1))),
                _ => open.extend_from_slice(before.get((place ^ EARLIER) as usize)),
            }
        }
        open.sort_unstable_by_key(|count| count.0);
        open.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
        cells.push(open.drain(..));
    }
}

/// Picks the values of each entry.
fn add_values(
    values: &mut Lists<u32>,
    parts: &Parts,
    before: &Lists<u32>,
    of_row: impl Fn(usize) -> i64,
    mut pick: impl FnMut(&mut Vec<u32>, u64) -> Result<(), TallyError>,
) -> Result<(), TallyError> {
    let mut open = Vec::new();
    for (places, unit) in parts.places.iter().zip(parts.names()) {
        for &place in places {
            match place & EARLIER {
                0 => open.extend(there(of_row(place as usize))),
                _ => open.extend_from_slice(before.get((place ^ EARLIER) as usize)),
            }
        }
        pick(&mut open, unit)?;
        values.push(open.drain(..));
    }
    Ok(())
}

/// A cell or the number of a value, unless it is [`ABSENT`].
fn there(word: i64) -> Option<u32> {
    (word != ABSENT).then_some(word as u32)
}
