//! [`Bucket`]: the rows of a few units, which choose their groups.
//!
//! **Definition.** The items of a bucket are put in order by unit, rank and group. A unit's groups are then met in the order of their ranks, and the first k are kept.
//!
//! **Exactness.** Few items are ordered by one small word each: some bits of the unit, some of the rank, and the place among the items. Where that leaves open
//! which of two different units or groups comes first, items are sorted by all they have, and groups of the same rank are told apart
//! by their bytes.

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
pub(crate) struct Bucket {
    pub(crate) items: Vec<Item>,
    few: Few,
    ranked: Vec<Ranked>,
    smallest: Vec<u64>,
}

/// Up to so many items are ordered by their keys.
const FEW: usize = 1 << PLACE;

/// How many bits of a key tell the place, and how many the rank; the others, which are the first ones, tell the unit.
const PLACE: u32 = 5;
const RANK: u32 = 17;

/// What is known of few items.
struct Few {
    keys: [u32; FEW],
    /// The keys in order.
    order: [u32; FEW],
    units: [Unit; FEW],
    groups: [u32; FEW],
    /// Where the places of each group end.
    ends: [u32; FEW],
    places: [u32; FEW],
}

impl Bucket {
    pub(crate) fn new() -> Self {
        let nothing = [0; FEW];
        let few = Few {
            keys: nothing,
            order: nothing,
            units: [Unit { name: 0, entries: 0 }; FEW],
            groups: nothing,
            ends: nothing,
            places: nothing,
        };
        Self { items: Vec::new(), few, ranked: Vec::new(), smallest: Vec::new() }
    }

    /// Chooses the groups of each unit; the first `common` bits are the same in all units.
    pub(crate) fn choose(
        &mut self,
        common: u32,
        context: &Context,
        parts: &mut Parts,
    ) -> Result<(), TallyError> {
        let most = u32::try_from(context.groups_per_unit).unwrap_or(u32::MAX);
        if self.items.len() > FEW {
            self.thin_out(context.groups_per_unit);
        }
        if self.items.len() > FEW || !self.few.choose(&self.items, common, most, parts) {
            self.choose_by_bytes(context, parts)?;
        }
        Ok(())
    }

    /// Drops what surely is not kept of one unit with many rows: ranks above the `most` smallest, of which each belongs to a group at least.
    fn thin_out(&mut self, most: usize) {
        let Self { items, smallest, .. } = self;
        if most > FEW || items.iter().any(|item| item.unit != items[0].unit) {
            return;
        }
        smallest.clear();
        let mut worst = u64::MAX;
        items.retain(|item| {
            if item.rank > worst {
                return false;
            }
            if let Err(at) = smallest.binary_search(&item.rank) {
                smallest.insert(at, item.rank);
                smallest.truncate(most);
                worst = if smallest.len() == most { smallest[most - 1] } else { u64::MAX };
            }
            true
        });
        items.retain(|item| item.rank <= worst);
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

impl Few {
    /// Chooses with no branch that depends on the items; false, and nothing chosen, if their keys leave something open.
    #[inline]
    fn choose(&mut self, items: &[Item], common: u32, most: u32, parts: &mut Parts) -> bool {
        self.sort(items, common);
        let [mut units, mut groups, mut places] = [0; 3];
        let [mut met, mut open] = [0, 0];
        let mut last = Item { unit: 0, rank: 0, group: 0, place: 0 };
        let mut last_key = !self.order[0];
        for &key in &self.order[..items.len()] {
            let item = items[key as usize % FEW];
            let differ = (key ^ last_key) >> PLACE;
            let new_unit = (item.unit != last.unit) | (units == 0);
            let new_group = (item.group != last.group) | new_unit;
            open |= u32::from(new_unit & (differ >> RANK == 0) | new_group & (differ == 0));
            met = if new_unit { 1 } else { met + u32::from(new_group) };
            let kept = met <= most;
            // What is written where the count has not come is overwritten.
            self.places[places % FEW] = item.place;
            places += usize::from(kept);
            self.groups[groups % FEW] = item.group;
            groups += usize::from(new_group & kept);
            self.ends[groups.wrapping_sub(1) % FEW] = places as u32;
            units += usize::from(new_unit);
            self.units[units.wrapping_sub(1) % FEW] = Unit { name: item.unit, entries: met.min(most) };
            (last, last_key) = (item, key);
        }
        if open == 0 {
            parts.units.extend_from_slice(&self.units[..units]);
            parts.groups.extend_from_slice(&self.groups[..groups]);
            parts.places.append(&self.places[..places], &self.ends[..groups]);
        }
        open == 0
    }

    /// Puts the keys of the items in order by comparing all pairs.
    #[inline]
    fn sort(&mut self, items: &[Item], common: u32) {
        for ((place, key), item) in self.keys.iter_mut().enumerate().zip(items) {
            let unit = item.unit.unbounded_shl(common) >> (32 + RANK + PLACE);
            let rank = item.rank >> (64 - RANK);
            *key = (unit << (RANK + PLACE) | rank << PLACE) as u32 | place as u32;
        }
        // Four at a time, where the last are no items.
        let compared = items.len().next_multiple_of(4);
        self.keys[items.len()..compared].fill(u32::MAX);
        for &key in &self.keys[..items.len()] {
            let smaller: u32 = self.keys[..compared].iter().map(|&other| u32::from(other < key)).sum();
            self.order[smaller as usize % FEW] = key;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::Things;
    use crate::hash::Secret;
    use crate::layout::Layout;
    use proptest::prelude::*;

    /// What sorting and counting come to, where no ranks of different groups are equal.
    fn obvious(items: &[Item], most: u32) -> Parts {
        let mut items = items.to_vec();
        items.sort_by_key(|item| (item.unit, item.rank));
        let mut parts = Parts::default();
        for unit in items.chunk_by(|one, two| one.unit == two.unit) {
            let mut entries = 0;
            for group in unit.chunk_by(|one, two| one.group == two.group).take(most as usize) {
                parts.groups.push(group[0].group);
                parts.places.push(group.iter().map(|item| item.place));
                entries += 1;
            }
            parts.units.push(Unit { name: unit[0].unit, entries });
        }
        parts
    }

    proptest! {
        #[test]
        fn keys_choose_what_is_obvious_or_nothing(
            picks in prop::collection::vec((0u64..4, 0u32..6), 0..=FEW), near in 0u32..64, common in 0u32..20, most in 1u32..8,
        ) {
            let items: Vec<Item> = picks.iter().zip(0..).map(|(&(unit, group), place)| {
                // Units and ranks that differ only behind some bits.
                let unit = (unit.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> near) & (u64::MAX >> common);
                let rank = crate::hash::rank(unit, u64::from(group) << 7) >> (near / 2);
                Item { unit, rank, group, place }
            }).collect();
            let mut parts = Parts::default();
            let told = Bucket::new().few.choose(&items, common, most, &mut parts);
            prop_assert_eq!(&parts, &if told { obvious(&items, most) } else { Parts::default() });
            prop_assert!(told || near > 5 || items.len() < 2);
        }

        #[test]
        fn many_items_of_some_units_choose_what_is_obvious(
            picks in prop::collection::vec((0u64..4, 0u32..60), FEW..300), units in 1u64..4, most in 1u32..50,
        ) {
            let items: Vec<Item> = picks.iter().zip(0..).map(|(&(unit, group), place)| {
                let unit = unit % units;
                Item { unit, rank: crate::hash::rank(unit, u64::from(group) << 7), group, place }
            }).collect();
            let secret = Secret::new([1, 2]);
            let context = Context {
                secret: &secret,
                layout: &Layout::default(),
                groups_per_unit: most as usize,
                groups: &Things::new(secret),
                group_hashes: &[],
                domains: &[],
                value_hashes: &[],
            };
            let mut parts = Parts::default();
            let mut bucket = Bucket { items: items.clone(), ..Bucket::new() };
            bucket.choose(0, &context, &mut parts).unwrap();
            prop_assert_eq!(parts, obvious(&items, most));
        }
    }
}
