//! [`Entries`]: what units count for in their groups.
//!
//! **Definition.** An *entry* is one unit in one of its groups: the sum of each lane over the unit's rows there, how many of these rows lie in which cell, and which
//! values they have. It is made of *parts*: rows, and what earlier rows came to. [`Chosen`] says which parts make which entry.

use crate::context::Context;
use crate::error::TallyError;
use crate::layout::{Lane, Layout};
use crate::lists::Lists;
use crate::names::Names;
use crate::record::{Head, Rows};
use crate::steps::ABSENT;
use crate::wide::Number;

/// Entries column by column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entries<N> {
    pub(crate) groups: Vec<u32>,
    /// One column for each lane.
    pub(crate) lanes: Vec<Vec<N>>,
    /// For each spread, the cells in use and their counts.
    pub(crate) cells: Vec<Lists<(u32, u64)>>,
    /// For each pick, the picked values.
    pub(crate) values: Vec<Lists<u32>>,
}

/// Which entries there will be, and what they are made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// The units in order.
    pub(crate) units: Vec<Unit>,
    pub(crate) entries: Vec<Entry>,
    /// Whether it must be known which parts make an entry, because the sums are not enough.
    pub(crate) by_parts: bool,
    /// For each row the entry it belongs to, counted from 1; 0 if its unit does not keep its group.
    pub(crate) of_rows: Vec<u32>,
    /// The same for each earlier entry.
    pub(crate) of_earlier: Vec<u32>,
}

/// A unit, and how many entries it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) name: u64,
    pub(crate) entries: u32,
}

/// A group of a unit, with the sums that can be made while groups are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) group: u32,
    pub(crate) sums: Sums,
}

/// Of rows, of rows whose head has a value, and of these values: right where they fit 64 bits.
pub(crate) type Sums = [i64; 3];

impl Chosen {
    pub(crate) fn clear(&mut self) {
        self.units.clear();
        self.entries.clear();
        self.of_rows.clear();
        self.of_earlier.clear();
    }

    /// The parts of each entry: the places of its rows, then, behind all rows, those of its earlier entries.
    fn parts(&self) -> Lists<u32> {
        let mut ends = vec![0; self.entries.len() + 1];
        let places = || self.of_rows.iter().chain(&self.of_earlier).zip(0..).filter(|(entry, _)| **entry > 0);
        places().for_each(|(&entry, _)| ends[entry as usize] += 1);
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        let mut parts = vec![0; start as usize];
        for (&entry, place) in places() {
            let end = &mut ends[entry as usize];
            parts[*end as usize] = place;
            *end += 1;
        }
        let mut lists = Lists::default();
        lists.append(&parts, &ends[1..]);
        lists
    }

    /// The unit of each entry.
    fn names(&self) -> impl Iterator<Item = u64> {
        self.units.iter().flat_map(|unit| std::iter::repeat_n(unit.name, unit.entries as usize))
    }
}

impl<N: Number> Entries<N> {
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

    /// What an entry adds to the sums over heads, as far as they are kept.
    pub(crate) fn sums(&self, entry: usize, layout: &Layout) -> Sums {
        let mut sums = Sums::default();
        for (column, lane) in self.lanes.iter().zip(&layout.lanes) {
            if let Some(at) = layout.sum_of(lane) {
                let sum: i128 = column[entry].into();
                sums[at] = sum as i64;
            }
        }
        sums
    }

    /// Becomes what was chosen of the rows from the first on, and of the earlier entries.
    pub(crate) fn add_up<H: Head>(
        &mut self,
        chosen: &Chosen,
        (rows, first): (&Rows<H>, usize),
        earlier: &Self,
        names: Names,
        context: &Context,
    ) -> Result<(), TallyError> {
        self.clear();
        self.groups.extend(chosen.entries.iter().map(|entry| entry.group));
        let Layout { lanes, spreads, picks, packing, .. } = context.layout;
        let value = |row: usize, source: usize| rows.value(first + row, packing.places[source], packing);
        for ((sums, before), lane) in self.lanes.iter_mut().zip(&earlier.lanes).zip(lanes) {
            if let Some(at) = context.layout.sum_of(lane).filter(|_| N::NARROW) {
                sums.extend(chosen.entries.iter().map(|entry| N::of(entry.sums[at].into())));
                continue;
            }
            match *lane {
                Lane::Rows => add_lane(sums, chosen, before, |_| 1),
                Lane::There(source) => {
                    add_lane(sums, chosen, before, |row| i64::from(value(row, source) != ABSENT));
                }
                Lane::Sum(source) => add_lane(sums, chosen, before, |row| match value(row, source) {
                    ABSENT => 0,
                    value => value,
                }),
            }
        }
        if spreads.is_empty() && picks.is_empty() {
            return Ok(());
        }
        let parts = chosen.parts();
        let rows = chosen.of_rows.len();
        for ((cells, before), &source) in self.cells.iter_mut().zip(&earlier.cells).zip(spreads) {
            add_cells(cells, &parts, rows, before, |row| value(row, source));
        }
        for ((values, before), pick) in self.values.iter_mut().zip(&earlier.values).zip(picks) {
            let mut units = chosen.names();
            let choose = |values: &mut Vec<u32>| match units.next() {
                Some(unit) => context.pick(values, names.hash(unit), pick),
                None => Err(TallyError::ours("an entry has no unit")),
            };
            add_values(values, &parts, rows, before, |row| value(row, pick.source), choose)?;
        }
        Ok(())
    }
}

/// Adds up one lane of each entry.
#[inline]
fn add_lane<N: Number>(sums: &mut Vec<N>, chosen: &Chosen, before: &[N], of_row: impl Fn(usize) -> i64) {
    // What belongs to no entry goes to the first place, which is given up in the end.
    sums.resize(chosen.entries.len() + 1, N::default());
    for (row, &entry) in chosen.of_rows.iter().enumerate() {
        sums[entry as usize].add(of_row(row));
    }
    for (&before, &entry) in before.iter().zip(&chosen.of_earlier) {
        sums[entry as usize].merge(before);
    }
    sums.remove(0);
}

/// Counts the cells of each entry.
fn add_cells(
    cells: &mut Lists<(u32, u64)>,
    parts: &Lists<u32>,
    rows: usize,
    before: &Lists<(u32, u64)>,
    of_row: impl Fn(usize) -> i64,
) {
    let mut open: Vec<(u32, u64)> = Vec::new();
    for places in parts.iter() {
        for place in places.iter().map(|&place| place as usize) {
            match place.checked_sub(rows) {
                None => open.extend(there(of_row(place)).map(|cell| (cell, 1))),
                Some(earlier) => open.extend_from_slice(before.get(earlier)),
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
    parts: &Lists<u32>,
    rows: usize,
    before: &Lists<u32>,
    of_row: impl Fn(usize) -> i64,
    mut pick: impl FnMut(&mut Vec<u32>) -> Result<(), TallyError>,
) -> Result<(), TallyError> {
    let mut open = Vec::new();
    for places in parts.iter() {
        for place in places.iter().map(|&place| place as usize) {
            match place.checked_sub(rows) {
                None => open.extend(there(of_row(place))),
                Some(earlier) => open.extend_from_slice(before.get(earlier)),
            }
        }
        pick(&mut open)?;
        values.push(open.drain(..));
    }
    Ok(())
}

/// A cell or the number of a value, unless it is [`ABSENT`].
fn there(word: i64) -> Option<u32> {
    (word != ABSENT).then_some(word as u32)
}
