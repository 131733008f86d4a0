//! [`Settlers`]: the rows of some units become entries of the few groups that each of them keeps.
//!
//! **Definition.** Rows are dealt into buckets by the first bits of their unit, so that a bucket holds all rows of a few units. Each bucket is [put in order](crate::order) by unit,
//! rank and group: now the rows of a unit lie together, its groups in the order in which they are [kept](crate::choose), and the rows of each group
//! together. What earlier rows came to is put among them.
//!
//! **Guarantee.** A unit *keeps* the k = `groups_per_unit` smallest of its groups by (rank, bytes), see [`keep`](crate::keep). A group that is not among the k smallest so far will not be
//! among them later, so what is dropped is dropped for good, and a group that is kept in the end was never dropped.
//!
//! **Why.** Nothing is sought in memory: rows are written once to their bucket, which is then in the nearest cache. However units and groups are distributed,
//! n rows take about n steps, and never many more than n · log n.

use std::ops::Range;

use crate::archive::Archive;
use crate::choose::{Item, choose, holds_unit, key};
use crate::context::Context;
use crate::entries::{Chosen, Entries, Joint, Unit};
use crate::error::TallyError;
use crate::hash::rank_of_halves;
use crate::layout::Layout;
use crate::names::Names;
use crate::order::Order;
use crate::record::{Full, Head, Rows, Slim};
use crate::waiting::{Taken, Waiting};
use crate::wide::{Number, fits};
use demur_exact::widest;

/// A bucket has about this many rows.
const ROWS: usize = 4;

/// So many buckets are in hand at a time.
const BUCKETS: usize = 1 << 7;

/// Places among items are told in 31 bits.
const MOST: usize = (1 << 31) - 1;

/// Where units are among buckets.
#[derive(Clone, Copy)]
struct Place {
    /// How far a name must be moved to begin with the bits in which names differ.
    shift: u32,
    /// How many of these bits tell the bucket.
    bits: u32,
}

impl Place {
    #[inline(always)]
    fn bucket(self, name: u64) -> usize {
        (name << self.shift >> (64 - self.bits)) as usize
    }

    /// The bits in which units differ, from the top; those that tell the bucket are among them, since buckets are walked through one after the other.
    #[inline(always)]
    fn bits(self, name: u64) -> u64 {
        name << self.shift
    }
}

/// Whoever takes settled units, in their order, some at a time.
pub(crate) trait Take {
    /// Whether it must know the units.
    const BY_NAME: bool;

    /// The groups, if entries may join them.
    fn joint(&mut self) -> &mut [Joint] {
        &mut []
    }

    /// Takes units, if it must know them, with their entries.
    fn take<N: Number>(
        &mut self,
        units: &[Unit],
        entries: &Entries<N>,
        context: &Context,
    ) -> Result<(), TallyError>;
}

/// Settles one shelf after the other: a settler for each kind of head and of sum.
pub(crate) struct Settlers {
    taken: Taken,
    slim: (Settler<Slim, i64>, Settler<Slim, i128>),
    full: (Settler<Full, i64>, Settler<Full, i128>),
}

impl Settlers {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self {
            taken: Taken::default(),
            slim: (Settler::new(layout), Settler::new(layout)),
            full: (Settler::new(layout), Settler::new(layout)),
        }
    }

    /// Hands out all units of a shelf that has got so many rows in all, once up to about `most` of those that wait are settled.
    pub(crate) fn settle(
        &mut self,
        (waiting, most, rows): (&mut Waiting, usize, u64),
        archive: &Archive,
        names: Names,
        context: &Context,
        take: &mut impl Take,
    ) -> Result<(), TallyError> {
        let Self { taken, slim, full } = self;
        waiting.take(most, names, context, taken)?;
        match (taken.full.len() == 0, is_narrow(rows, context.layout.reach)) {
            (true, true) => slim.0.settle(&taken.slim, archive, names, context, take),
            (true, false) => slim.1.settle(&taken.slim, archive, names, context, take),
            (false, true) => full.0.settle(&taken.full, archive, names, context, take),
            (false, false) => full.1.settle(&taken.full, archive, names, context, take),
        }
    }
}

/// Settles rows with heads of one kind; its sums are numbers of one kind.
struct Settler<H, N> {
    /// Where each bucket ends.
    ends: Vec<u32>,
    rows: Rows<H>,
    /// Of the items in hand, rows first: their keys, and their order by them.
    keys: Vec<u64>,
    order: Order,
    chosen: Chosen,
    units: Vec<Unit>,
    /// What earlier rows came to, and the names of the units.
    earlier: Entries<N>,
    earlier_units: Vec<u64>,
    entries: Entries<N>,
}

impl<H: Head, N: Number> Settler<H, N> {
    fn new(layout: &Layout) -> Self {
        Self {
            ends: Vec::new(),
            rows: Rows::default(),
            keys: Vec::new(),
            order: Order::default(),
            chosen: Chosen::default(),
            units: Vec::new(),
            earlier: Entries::new(layout),
            earlier_units: Vec::new(),
            entries: Entries::new(layout),
        }
    }

    fn settle<T: Take>(
        &mut self,
        rows: &Rows<H>,
        archive: &Archive,
        names: Names,
        context: &Context,
        take: &mut T,
    ) -> Result<(), TallyError> {
        if rows.len() > MOST {
            return Err(TallyError::too_large("rows that wait for their units"));
        }
        let bits = (rows.len() / ROWS).max(2).ilog2();
        let place = Place { shift: names.shift(H::NAME_BITS), bits };
        self.deal(rows, place, context.layout);
        let mut archive = archive.read();
        let mut start = 0;
        for first in (0..1usize << bits).step_by(BUCKETS) {
            let buckets = first..(first + BUCKETS).min(1 << bits);
            let end = self.ends[buckets.end - 1] as usize;
            while let Some(unit) = archive.unit() {
                let name = H::name_of(unit, names);
                if place.bucket(name) >= buckets.end {
                    break;
                }
                archive.take(&mut self.earlier);
                self.earlier_units.resize(self.earlier.groups.len(), name);
            }
            self.choose((buckets, start..end), place, names, context, take.joint())?;
            if T::BY_NAME || !context.layout.picks.is_empty() {
                self.name_units(start..end, names);
            }
            let chosen = (&self.chosen, &self.units[..]);
            self.entries.add_up(chosen, (&self.rows, start), &self.earlier, names, context)?;
            take.take(&self.units, &self.entries, context)?;
            self.earlier.clear();
            self.earlier_units.clear();
            start = end;
        }
        Ok(())
    }

    /// Says which units have chosen among these rows.
    fn name_units(&mut self, rows: Range<usize>, names: Names) {
        self.units.clear();
        let mut start = 0;
        self.units.extend(self.chosen.ends[..self.chosen.units].iter().map(|&end| {
            let item = self.chosen.known[start as usize].item as usize;
            let name = match item.checked_sub(rows.len()) {
                None => self.rows.heads[rows.start + item].name(),
                Some(earlier) => self.earlier_units[earlier],
            };
            let entries = end - std::mem::replace(&mut start, end);
            Unit { name: H::unit_of(name, names), entries }
        }));
    }

    /// Chooses the groups of the units in some buckets, which have these rows.
    fn choose(
        &mut self,
        (buckets, rows): (Range<usize>, Range<usize>),
        place: Place,
        names: Names,
        context: &Context,
        joint: &mut [Joint],
    ) -> Result<(), TallyError> {
        let shares = context.layout.packing.shares;
        let heads = &self.rows.heads[rows.clone()];
        let earlier: Vec<Item> = (self.earlier_units.iter().enumerate())
            .map(|(entry, &unit)| {
                let sums = self.earlier.sums(entry, context.layout);
                Item { unit, group: self.earlier.groups[entry], sums }
            })
            .collect();
        let rank_of = |item: Item| context.rank(names.hash(H::unit_of(item.unit, names)), item.group);
        self.keys.clear();
        match names {
            Names::Hashes { shelf } => {
                self.keys.resize(heads.len(), 0);
                widest!(for (key_of, head) in self.keys.iter_mut().zip(heads) {
                    // There is no group without a hash; that it might be missing would be a branch.
                    let group = context.group_hashes.get(head.group(shares) as usize).copied().unwrap_or(0);
                    let rank = rank_of_halves(H::upper(head.name(), shelf), (group >> 32) as u32);
                    *key_of = key(place.bits(head.name()), rank);
                });
            }
            Names::Numbers(units) => self.keys.extend(heads.iter().map(|head| {
                let rank = context.rank(units[head.name() as usize], head.group(shares));
                key(place.bits(head.name()), rank)
            })),
        }
        self.keys.extend(earlier.iter().map(|&item| key(place.bits(item.unit), rank_of(item))));
        if self.keys.len() > MOST {
            return Err(TallyError::too_large("rows that wait for their units"));
        }
        let ends = self.ends[buckets.clone()].iter().map(|end| end - rows.start as u32);
        match earlier.is_empty() {
            true => self.order.put(&mut self.keys, ends, place.bits),
            false => order_with(&earlier, &self.keys, buckets.zip(ends), place, &mut self.order),
        }
        let by_parts = context.layout.by_parts || !N::NARROW;
        let apart = context.ranks_differ && holds_unit(place.shift);
        let (order, how) = ((&self.order, apart), (context, by_parts));
        if earlier.is_empty() {
            let item = move |at: usize| (heads[at], shares);
            return choose(order, item, rank_of, how, (joint, &mut self.chosen));
        }
        let item = |at: usize| match heads.get(at) {
            Some(&head) => Item::of((head, shares)),
            None => earlier[at - heads.len()],
        };
        // Of earlier rows no more is known than what is asked for, so maybe not how many they were: nothing joins.
        choose(order, item, rank_of, how, (&mut [], &mut self.chosen))
    }

    /// Puts the rows of each bucket together.
    fn deal(&mut self, rows: &Rows<H>, place: Place, layout: &Layout) {
        let ends = &mut self.ends;
        ends.clear();
        ends.resize(1 << place.bits, 0);
        let bucket_of = |head: H| place.bucket(head.name());
        for &head in &rows.heads {
            ends[bucket_of(head)] += 1;
        }
        let mut start = 0;
        for end in &mut *ends {
            start += std::mem::replace(end, start);
        }
        // Each starts where the one before ends, and moves on to its own end.
        self.rows.rearrange(rows, &layout.packing, |head| {
            let end = &mut ends[bucket_of(head)];
            *end += 1;
            *end - 1
        });
    }
}

/// Whether sums over so many rows, none of which moves one further than `reach`, can be made of [`Sums`](crate::entries::Sums).
fn is_narrow(rows: u64, reach: u64) -> bool {
    fits(rows, reach) && u32::try_from(rows).is_ok()
}

/// Puts the items of buckets in order, given where their rows end, and earlier entries, whose keys come last.
fn order_with(
    earlier: &[Item],
    keys: &[u64],
    buckets: impl Iterator<Item = (usize, u32)>,
    place: Place,
    order: &mut Order,
) {
    let rows = keys.len() - earlier.len();
    let mut items: Vec<u32> = Vec::with_capacity(keys.len());
    let mut ends = Vec::new();
    let (mut from, mut early) = (0, 0);
    for (bucket, to) in buckets {
        items.extend(from..to);
        from = to;
        while earlier.get(early).is_some_and(|item| place.bucket(item.unit) == bucket) {
            items.push((rows + early) as u32);
            early += 1;
        }
        ends.push(items.len() as u32);
    }
    let mut together = items.iter().map(|&item| keys[item as usize]).collect();
    order.put(&mut together, ends.into_iter(), place.bits);
    order.places.iter_mut().for_each(|place| *place = items[*place as usize]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_rows_as_32_bits_count_are_too_many_for_narrow_sums() {
        assert!(is_narrow((1 << 32) - 1, 1) && !is_narrow(1 << 32, 1));
        assert!(is_narrow(2, 1 << 61) && !is_narrow(2, 1 << 62));
    }
}
