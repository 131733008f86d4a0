//! [`Bucket`]: the rows of a few units, which choose their groups.
//!
//! **Definition.** The items of a bucket are put in order by unit, rank and group. A unit's groups are then met in the order of their ranks, and the first k are kept.
//!
//! **Exactness.** Few items are ordered by one small word each: some bits of the unit, some of the rank, and the place among the items. Where that leaves open
//! which of two different units or groups comes first, or items are many, those of one unit and group are gathered in a small table first; what is left is sorted by all it has, and groups of the same rank are told apart
//! by their bytes.

use crate::context::Context;
use crate::entries::{Chosen, Entry, Sums, Unit};
use crate::error::TallyError;
use crate::keep::{Ranked, keep_smallest};
use crate::names::Names;

/// A row, or what earlier rows came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) unit: u64,
    pub(crate) group: u32,
    pub(crate) sums: Sums,
}

/// Items of a few units, rows first.
pub(crate) struct Bucket {
    pub(crate) items: Vec<Item>,
    few: Few,
    pairs: Pairs,
    ranked: Vec<Ranked>,
    smallest: Vec<u64>,
}

/// Units with their groups, each pair once, of many items.
#[derive(Default)]
struct Pairs {
    sorted: Vec<Placed>,
    /// By their places: what the items of each come to, and its entry.
    sums: Vec<Sums>,
    entries: Vec<u32>,
    /// For each item the place of its pair.
    of_items: Vec<u32>,
    /// A table of pairs: for each slot the place of its pair, counted from 1, or 0.
    slots: Vec<u32>,
}

/// A pair with all it is sorted by, and its place among the pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Placed {
    unit: u64,
    /// Of the group, among the unit's groups.
    rank: u64,
    group: u32,
    place: u32,
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
    entries: [Entry; FEW],
    /// For each item its entry.
    entry_of: [u32; FEW],
}

impl Bucket {
    pub(crate) fn new() -> Self {
        let nothing = [0; FEW];
        let few = Few {
            keys: nothing,
            order: nothing,
            units: [Unit { name: 0, entries: 0 }; FEW],
            entries: [Entry::default(); FEW],
            entry_of: nothing,
        };
        Self { items: Vec::new(), few, pairs: Pairs::default(), ranked: Vec::new(), smallest: Vec::new() }
    }

    /// Chooses the groups of each unit of so many rows; the first `common` bits are the same in all units.
    pub(crate) fn choose_of_rows(
        &mut self,
        rows: usize,
        row: impl Fn(usize) -> Item,
        (names, common): (Names, u32),
        context: &Context,
        chosen: &mut Chosen,
    ) -> Result<(), TallyError> {
        if rows <= FEW && self.few.choose((rows, rows), &row, (names, common), context, chosen) {
            return Ok(());
        }
        self.items.clear();
        self.items.extend((0..rows).map(row));
        self.choose_by_bytes(rows, names, context, chosen)
    }

    /// The same for all items, of which the first `rows` are rows.
    pub(crate) fn choose(
        &mut self,
        rows: usize,
        (names, common): (Names, u32),
        context: &Context,
        chosen: &mut Chosen,
    ) -> Result<(), TallyError> {
        let count = self.items.len();
        let item = |place: usize| self.items[place];
        if count <= FEW && self.few.choose((count, rows), item, (names, common), context, chosen) {
            return Ok(());
        }
        self.choose_by_bytes(rows, names, context, chosen)
    }

    /// Chooses where ranks may be equal, or items many.
    #[cold]
    fn choose_by_bytes(
        &mut self,
        rows: usize,
        names: Names,
        context: &Context,
        chosen: &mut Chosen,
    ) -> Result<(), TallyError> {
        let Self { items, pairs, ranked, .. } = self;
        pairs.gather(items, names, context);
        thin_out(&mut pairs.sorted, context.groups_per_unit, &mut self.smallest);
        pairs.sorted.sort_unstable();
        for unit in pairs.sorted.chunk_by(|one, two| one.unit == two.unit) {
            ranked.clear();
            ranked.extend(unit.iter().map(|pair| (pair.rank, pair.group, pair.place)));
            keep_smallest(ranked, context.groups_per_unit, context.groups)?;
            for &(_, group, place) in &*ranked {
                chosen.entries.push(Entry { group, sums: pairs.sums[place as usize] });
                pairs.entries[place as usize] = chosen.entries.len() as u32;
            }
            chosen.units.push(Unit { name: unit[0].unit, entries: ranked.len() as u32 });
        }
        if chosen.by_parts {
            let mut entries = pairs.of_items.iter().map(|&pair| pairs.entries[pair as usize]);
            chosen.of_rows.extend(entries.by_ref().take(rows));
            chosen.of_earlier.extend(entries);
        }
        Ok(())
    }
}

impl Pairs {
    fn gather(&mut self, items: &[Item], names: Names, context: &Context) {
        self.sorted.clear();
        self.sums.clear();
        self.of_items.clear();
        self.slots.clear();
        self.slots.resize((2 * items.len()).next_power_of_two(), 0);
        let last = self.slots.len() - 1;
        for &Item { unit, group, sums } in items {
            let mixed = (unit ^ u64::from(group) << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mut slot = (mixed >> 32) as usize & last;
            let pair = loop {
                let Some(pair) = self.slots[slot].checked_sub(1) else {
                    let place = self.sums.len() as u32;
                    let rank = context.rank(names.hash(unit), group);
                    self.sorted.push(Placed { unit, rank, group, place });
                    self.sums.push(Sums::default());
                    self.slots[slot] = place + 1;
                    break place;
                };
                let Placed { unit: its_unit, group: its_group, .. } = self.sorted[pair as usize];
                if (its_unit, its_group) == (unit, group) {
                    break pair;
                }
                slot = (slot + 1) & last;
            };
            self.sums[pair as usize] = plus(self.sums[pair as usize], sums);
            self.of_items.push(pair);
        }
        self.entries.clear();
        self.entries.resize(self.sums.len(), 0);
    }
}

#[inline]
fn plus(one: Sums, two: Sums) -> Sums {
    [0, 1, 2].map(|at| one[at].wrapping_add(two[at]))
}

/// Drops what surely is not kept of one unit with many groups: ranks above the `most` smallest.
fn thin_out(items: &mut Vec<Placed>, most: usize, smallest: &mut Vec<u64>) {
    if most > FEW || items.len() <= FEW || items.iter().any(|item| item.unit != items[0].unit) {
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

impl Few {
    /// Chooses with no branch that depends on the items; false, and nothing chosen, if their keys leave something open.
    #[inline]
    fn choose(
        &mut self,
        (count, rows): (usize, usize),
        item: impl Fn(usize) -> Item,
        (names, common): (Names, u32),
        context: &Context,
        chosen: &mut Chosen,
    ) -> bool {
        self.sort(count, &item, (names, common), context);
        let most = u32::try_from(context.groups_per_unit).unwrap_or(u32::MAX);
        let before = chosen.entries.len() as u32;
        let [mut units, mut entries] = [0; 2];
        let [mut met, mut open] = [0, 0];
        let mut last = Item::default();
        let mut last_key = !self.order[0];
        let mut sums = Sums::default();
        for &key in &self.order[..count] {
            let place = key as usize % FEW;
            let item = item(place);
            let differ = (key ^ last_key) >> PLACE;
            let new_unit = (item.unit != last.unit) | (units == 0);
            let new_group = (item.group != last.group) | new_unit;
            open |= u32::from(new_unit & (differ >> RANK == 0) | new_group & (differ == 0));
            met = if new_unit { 1 } else { met + u32::from(new_group) };
            let kept = met <= most;
            entries += usize::from(new_group & kept);
            // What is not kept is written where the next entry will be.
            let entry = entries - usize::from(kept);
            sums = plus(if new_group { Sums::default() } else { sums }, item.sums);
            self.entries[entry % FEW] = Entry { group: item.group, sums };
            self.entry_of[place] = if kept { before + entries as u32 } else { 0 };
            units += usize::from(new_unit);
            self.units[units.wrapping_sub(1) % FEW] = Unit { name: item.unit, entries: met.min(most) };
            (last, last_key) = (item, key);
        }
        if open == 0 {
            chosen.units.extend_from_slice(&self.units[..units]);
            chosen.entries.extend_from_slice(&self.entries[..entries]);
            if chosen.by_parts {
                chosen.of_rows.extend_from_slice(&self.entry_of[..rows]);
                chosen.of_earlier.extend_from_slice(&self.entry_of[rows..count]);
            }
        }
        open == 0
    }

    /// Puts the keys of the items in order by comparing all pairs.
    #[inline]
    fn sort(
        &mut self,
        count: usize,
        item: impl Fn(usize) -> Item,
        (names, common): (Names, u32),
        context: &Context,
    ) {
        for (place, key) in self.keys[..count].iter_mut().enumerate() {
            let Item { unit, group, .. } = item(place);
            let rank = context.rank(names.hash(unit), group) >> (64 - RANK);
            let unit = unit.unbounded_shl(common) >> (32 + RANK + PLACE);
            *key = (unit << (RANK + PLACE) | rank << PLACE) as u32 | place as u32;
        }
        // Four at a time, where the last are no items.
        let compared = count.next_multiple_of(4);
        self.keys[count..compared].fill(u32::MAX);
        for &key in &self.keys[..count] {
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

    const NAMES: Names = Names::Hashes { shelf: 0 };

    /// With groups that have these hashes.
    fn with_context<T>(group_hashes: &[u64], most: u32, f: impl FnOnce(&Context) -> T) -> T {
        let secret = Secret::new([1, 2]);
        let groups = Things::new(secret);
        for group in 0..group_hashes.len() as u32 {
            groups.number(&group.to_be_bytes()).unwrap();
        }
        f(&Context {
            secret: &secret,
            layout: &Layout::default(),
            groups_per_unit: most as usize,
            groups: &groups,
            group_hashes,
            domains: &[],
            value_hashes: &[],
        })
    }

    fn by_parts() -> Chosen {
        Chosen { by_parts: true, ..Chosen::default() }
    }

    /// The sums of some row.
    fn sums(place: usize) -> Sums {
        [1, place as i64 % 2, place as i64 * 1000 - 7]
    }

    /// What sorting and counting come to; the bytes of groups are ordered like their numbers.
    fn obvious(items: &[Item], rows: usize, context: &Context) -> Chosen {
        let mut chosen = by_parts();
        let mut entries = vec![0; items.len()];
        let mut sorted: Vec<_> = items
            .iter()
            .enumerate()
            .map(|(place, item)| (item.unit, context.rank(item.unit, item.group), item.group, place))
            .collect();
        sorted.sort_unstable();
        for unit in sorted.chunk_by(|one, two| one.0 == two.0) {
            let mut kept = 0;
            for group in unit.chunk_by(|one, two| one.2 == two.2).take(context.groups_per_unit) {
                let sums = group.iter().fold(Sums::default(), |sums, item| plus(sums, items[item.3].sums));
                chosen.entries.push(Entry { group: group[0].2, sums });
                kept += 1;
                group.iter().for_each(|item| entries[item.3] = chosen.entries.len() as u32);
            }
            chosen.units.push(Unit { name: unit[0].0, entries: kept });
        }
        chosen.of_earlier = entries.split_off(rows);
        chosen.of_rows = entries;
        chosen
    }

    proptest! {
        #[test]
        fn keys_choose_what_is_obvious_or_nothing(
            picks in prop::collection::vec((0u64..4, 0u32..6), 0..=FEW), near in 0u32..64, common in 0u32..20, most in 1u32..8,
            mask in prop_oneof![Just(u64::MAX), Just(2 << 7)],
        ) {
            let items: Vec<Item> = picks.iter().enumerate().map(|(place, &(unit, group))| {
                // Units that differ only behind some bits.
                let unit = (unit.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> near) & (u64::MAX >> common);
                Item { unit, group, sums: sums(place) }
            }).collect();
            let hashes: Vec<u64> = (0..6).map(|group| group << 7 & mask).collect();
            let rows = items.len() / 2;
            with_context(&hashes, most, |context| {
                let mut chosen = by_parts();
                let item = |place: usize| items[place];
                let told = Bucket::new().few.choose((items.len(), rows), item, (NAMES, common), context, &mut chosen);
                let expected = if told { obvious(&items, rows, context) } else { by_parts() };
                prop_assert_eq!(chosen, expected);
                prop_assert!(told || near > 5 || mask != u64::MAX || items.len() < 2);
                Ok(())
            })?;
        }

        #[test]
        fn items_of_some_units_choose_what_is_obvious(
            picks in prop::collection::vec((0u64..4, 0u32..60), 0..300), units in 1u64..4, most in 1u32..50,
            mask in prop_oneof![Just(u64::MAX), Just(3 << 7), Just(0)],
        ) {
            let items: Vec<Item> = picks
                .iter()
                .enumerate()
                .map(|(place, &(unit, group))| Item { unit: unit % units, group, sums: sums(place) })
                .collect();
            let hashes: Vec<u64> = (0..60).map(|group| group << 7 & mask).collect();
            let rows = items.len() / 3;
            with_context(&hashes, most, |context| {
                let mut chosen = by_parts();
                let mut bucket = Bucket { items: items.clone(), ..Bucket::new() };
                bucket.choose(rows, (NAMES, 0), context, &mut chosen).unwrap();
                let expected = obvious(&items, rows, context);
                // Of a unit that keeps all of its groups none has to come first.
                let entry = |chosen: &Chosen, entry: &u32| entry.checked_sub(1).map(|at| chosen.entries[at as usize]);
                let entries = |chosen: &Chosen| -> Vec<_> {
                    chosen.of_rows.iter().chain(&chosen.of_earlier).map(|at| entry(chosen, at)).collect()
                };
                prop_assert_eq!(&chosen.units, &expected.units);
                prop_assert_eq!(chosen.of_rows.len(), rows);
                prop_assert_eq!(entries(&chosen), entries(&expected));
                Ok(())
            })?;
        }
    }
}
