//! [`Bucket`]: the rows of a few units, which choose their groups.
//!
//! **Definition.** The items of a bucket are put in order by unit, rank and group. A unit's groups are then met in the order of their ranks, and the first k are kept.
//!
//! **Exactness.** Few items are ordered by one word each: 16 bits of the unit, 38 bits of the rank, and the place among the items. Where that leaves open
//! which of two different units or groups comes first, all items are sorted by all they have, and groups of the same rank are told
//! apart by their bytes.

use crate::context::Context;
use crate::entries::{Parts, Unit};
use crate::error::TallyError;
use crate::keep::{Ranked, keep_smallest};

/// A row, or what earlier rows came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Item {
    pub(crate) unit: u64,
    /// Of the group, among the unit's groups.
    pub(crate) rank: u64,
    pub(crate) group: u32,
    /// Where it is.
    pub(crate) place: u32,
}

/// Items of a few units.
#[derive(Default)]
pub(crate) struct Bucket {
    pub(crate) items: Vec<Item>,
    keys: Vec<u64>,
    sorted: Vec<Item>,
    ranked: Vec<Ranked>,
}

/// So many bits of a key tell the place.
const PLACE: u32 = 10;
/// And so many the unit, which are the first ones.
const UNIT: u32 = 16;

/// Up to so many keys are ordered by comparing all pairs, which needs no branches.
const PAIRS: usize = 24;

impl Bucket {
    /// Chooses the groups of each unit; the first `common` bits are the same in all units.
    pub(crate) fn choose(
        &mut self,
        common: u32,
        context: &Context,
        parts: &mut Parts,
    ) -> Result<(), TallyError> {
        if self.items.len() <= 1 << PLACE && self.sort(common) {
            let k = context.groups_per_unit;
            for unit in self.sorted.chunk_by(|one, two| one.unit == two.unit) {
                let first = parts.groups.len();
                for group in unit.chunk_by(|one, two| one.group == two.group).take(k) {
                    parts.groups.push(group[0].group);
                    parts.places.push(group.iter().map(|item| item.place));
                }
                let entries = (parts.groups.len() - first) as u32;
                parts.units.push(Unit { name: unit[0].unit, entries });
            }
            return Ok(());
        }
        self.choose_by_bytes(context, parts)
    }

    /// Puts the items in order; false if their keys do not tell it.
    fn sort(&mut self, common: u32) -> bool {
        let Self { items, keys, sorted, .. } = self;
        keys.clear();
        keys.extend(items.iter().enumerate().map(|(place, item)| {
            let unit = item.unit.unbounded_shl(common) >> (64 - UNIT);
            let rank = item.rank >> (UNIT + PLACE);
            unit << (64 - UNIT) | rank << PLACE | place as u64
        }));
        let item = |key: u64| items[key as usize & ((1 << PLACE) - 1)];
        sorted.clear();
        if keys.len() <= PAIRS {
            sorted.resize(keys.len(), Item { unit: 0, rank: 0, group: 0, place: 0 });
            for &key in &*keys {
                let at = keys.iter().map(|&other| usize::from(other < key)).sum::<usize>();
                sorted[at] = item(key);
            }
        } else {
            keys.sort_unstable();
            sorted.extend(keys.iter().map(|&key| item(key)));
        }
        let told = |one: &Item, two: &Item| {
            let unit = |item: &Item| item.unit.unbounded_shl(common) >> (64 - UNIT);
            let rank = |item: &Item| item.rank >> (UNIT + PLACE);
            (one.unit == two.unit || unit(one) != unit(two))
                && (one.group == two.group || rank(one) != rank(two))
        };
        sorted.windows(2).all(|pair| told(&pair[0], &pair[1]))
    }

    /// Chooses where ranks may be equal, or items many.
    #[cold]
    fn choose_by_bytes(&mut self, context: &Context, parts: &mut Parts) -> Result<(), TallyError> {
        self.items.sort_unstable();
        for unit in self.items.chunk_by(|one, two| one.unit == two.unit) {
            self.ranked.clear();
            let mut first = 0;
            for group in unit.chunk_by(|one, two| one.group == two.group) {
                self.ranked.push((group[0].rank, group[0].group, first));
                first += group.len() as u32;
            }
            keep_smallest(&mut self.ranked, context.groups_per_unit, context.groups)?;
            for &(_, group, first) in &self.ranked {
                let items = unit[first as usize..].iter().take_while(|item| item.group == group);
                parts.groups.push(group);
                parts.places.push(items.map(|item| item.place));
            }
            parts.units.push(Unit { name: unit[0].unit, entries: self.ranked.len() as u32 });
        }
        Ok(())
    }
}
