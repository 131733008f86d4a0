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

/// Which entries there will be, and what they are made of. Columns may be longer than they are used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chosen {
    /// How many entries there are, and how many units they belong to.
    pub(crate) entries: usize,
    pub(crate) units: usize,
    /// Of each entry, unit after unit, what is known while groups are chosen.
    pub(crate) known: Vec<Known>,
    /// Where the entries of each unit end.
    pub(crate) ends: Vec<u32>,
    /// For each row, and then for each earlier entry, the entry it belongs to, counted from 1; 0 if its unit does not keep its group.
    pub(crate) of_items: Vec<u32>,
}

/// What is known of an entry while groups are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) group: u32,
    /// One of the items it is made of.
    pub(crate) item: u32,
    pub(crate) sums: Sums,
}

/// What entries have come to that joined their group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Joint {
    pub(crate) units: u64,
    pub(crate) sums: Sums,
}

impl Joint {
    #[inline(always)]
    pub(crate) fn join(&mut self, sums: Sums) {
        self.units += 1;
        self.sums = self.sums.plus(sums);
    }
}

/// A unit, and how many entries it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) name: u64,
    pub(crate) entries: u32,
}

/// Sums over the heads of up to 2³² − 1 rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    /// How many there are, and, 2³² for each, how many of them have a value.
    counts: u64,
    /// How far these values lie above the lower bound, in all.
    above: u64,
}

impl Sums {
    /// Of one row, whose head has this value.
    #[inline(always)]
    pub(crate) fn of_row(value: Option<u32>) -> Self {
        Self { counts: 1 | u64::from(value.is_some()) << 32, above: value.map_or(0, u64::from) }
    }

    /// Of so many rows, so many of which have a value; the sum of the values is right where it fits 64 bits.
    pub(crate) fn new([rows, there, sum]: [i64; 3], low: i64) -> Self {
        let counts = rows as u64 | (there as u64) << 32;
        Self { counts, above: sum.wrapping_sub(low.wrapping_mul(there)) as u64 }
    }

    /// The three numbers.
    #[inline(always)]
    pub(crate) fn numbers(self, low: i64) -> [i64; 3] {
        let there = (self.counts >> 32) as i64;
        [self.counts as u32 as i64, there, low.wrapping_mul(there).wrapping_add(self.above as i64)]
    }

    /// The three numbers, however many rows there are.
    pub(crate) fn wide_numbers(self, low: i64) -> [i128; 3] {
        let there = i128::from(self.counts >> 32);
        [i128::from(self.rows()), there, i128::from(low) * there + i128::from(self.above)]
    }

    /// How many rows there are.
    #[inline(always)]
    pub(crate) fn rows(self) -> u64 {
        self.counts & u64::from(u32::MAX)
    }

    #[inline(always)]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { counts: self.counts.wrapping_add(other.counts), above: self.above.wrapping_add(other.above) }
    }
}

impl Chosen {
    /// Has room for what so many items come to. By parts: for each of them as well.
    pub(crate) fn make_room(&mut self, items: usize, by_parts: bool) {
        [self.entries, self.units] = [0; 2];
        if self.known.len() <= items {
            // One more than there can be, for what is not kept.
            self.known.resize(items + 1, Known::default());
            self.ends.resize(items + 1, 0);
        }
        self.of_items.clear();
        self.of_items.resize(if by_parts { items } else { 0 }, 0);
    }

    /// The parts of each entry: the places of its rows, then, behind all rows, those of its earlier entries.
    fn parts(&self) -> Lists<u32> {
        let mut ends = vec![0; self.entries + 1];
        let places = || self.of_items.iter().zip(0..).filter(|(entry, _)| **entry > 0);
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
        let mut sums = [0; 3];
        for (column, lane) in self.lanes.iter().zip(&layout.lanes) {
            if let Some(at) = layout.sum_of(lane) {
                let sum: i128 = column[entry].into();
                sums[at] = sum as i64;
            }
        }
        Sums::new(sums, layout.packing.low)
    }

    /// Becomes what was chosen of the rows from the first on, and of the earlier entries.
    pub(crate) fn add_up<H: Head>(
        &mut self,
        (chosen, units): (&Chosen, &[Unit]),
        (rows, first): (&Rows<H>, usize),
        earlier: &Self,
        names: Names,
        context: &Context,
    ) -> Result<(), TallyError> {
        self.clear();
        let known = &chosen.known[..chosen.entries];
        self.groups.extend(known.iter().map(|known| known.group));
        let Layout { lanes, spreads, picks, packing, .. } = context.layout;
        let value = |row: usize, source: usize| rows.value(first + row, packing.places[source], packing);
        for ((sums, before), lane) in self.lanes.iter_mut().zip(&earlier.lanes).zip(lanes) {
            if let Some(at) = context.layout.sum_of(lane).filter(|_| N::NARROW) {
                let numbers = known.iter().map(|known| known.sums.numbers(packing.low));
                // A loop for each, so that nothing is decided within it.
                match at {
                    0 => sums.extend(numbers.map(|numbers| N::of(numbers[0].into()))),
                    1 => sums.extend(numbers.map(|numbers| N::of(numbers[1].into()))),
                    _ => sums.extend(numbers.map(|numbers| N::of(numbers[2].into()))),
                }
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
        let rows = chosen.of_items.len() - earlier.groups.len();
        for ((cells, before), &source) in self.cells.iter_mut().zip(&earlier.cells).zip(spreads) {
            add_cells(cells, &parts, rows, before, |row| value(row, source));
        }
        for ((values, before), pick) in self.values.iter_mut().zip(&earlier.values).zip(picks) {
            let mut units =
                units.iter().flat_map(|unit| std::iter::repeat_n(unit.name, unit.entries as usize));
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
    sums.resize(chosen.entries + 1, N::default());
    let (of_rows, of_earlier) = chosen.of_items.split_at(chosen.of_items.len() - before.len());
    for (row, &entry) in of_rows.iter().enumerate() {
        sums[entry as usize].add(of_row(row));
    }
    for (&before, &entry) in before.iter().zip(of_earlier) {
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
