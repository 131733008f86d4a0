//! [`choose`]: the rows of some units choose the few groups that each unit keeps.
//!
//! **Definition.** Items are put in order by unit, rank and group. A unit's groups are then met in the order of their ranks, and the first k are kept.
//!
//! **Exactness.** The order is that of one *key* for each item: some bits of the unit, then the rank. Where that leaves open which of two different units or groups
//! comes first, items are sorted by all they have, and groups of the same rank are told apart by their bytes.

use crate::context::Context;
use crate::entries::{Chosen, Sums};
use crate::error::TallyError;
use crate::keep::{Ranked, keep_smallest};
use crate::order::PLACE;

/// A row, or what earlier rows came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Item {
    /// The name of its unit.
    pub(crate) unit: u64,
    pub(crate) group: u32,
    pub(crate) sums: Sums,
}

/// How many bits of a key tell the rank; those before tell the unit, and those behind are left to [`order`](crate::order::order).
const RANK: u32 = 32;

/// The key of an item, given the first bits in which its unit may differ from those it is put in order with.
#[inline(always)]
pub(crate) fn key(unit: u64, rank: u32) -> u64 {
    unit >> (RANK + PLACE) << (RANK + PLACE) | u64::from(rank) << PLACE
}

/// Items in order, as far as one must look at them again.
#[derive(Default)]
pub(crate) struct Sorted {
    /// Where each new pair of unit and group begins, and, in the last bit, whether the unit is new too.
    pairs: Vec<u32>,
    /// By their places in the order: the group of each, and the sums of all before it.
    groups: Vec<u32>,
    before: Vec<Sums>,
}

/// Chooses among items, given their order by their keys. By parts: if it must be known which items make an entry.
pub(crate) fn choose(
    (order, keys): (&[u32], &[u64]),
    item: impl Fn(usize) -> Item,
    rank: impl Fn(Item) -> u32,
    (context, by_parts): (&Context, bool),
    (sorted, chosen): (&mut Sorted, &mut Chosen),
) -> Result<(), TallyError> {
    chosen.make_room(order.len(), by_parts);
    if !sorted.walk((order, keys), &item) {
        let items: Vec<Item> = (0..order.len()).map(item).collect();
        return choose_by_bytes(&items, rank, context, chosen);
    }
    let most = u32::try_from(context.groups_per_unit).unwrap_or(u32::MAX);
    sorted.keep(order, most, chosen);
    if by_parts {
        sorted.say_of_items(order, most, chosen);
    }
    Ok(())
}

impl Sorted {
    /// Finds the pairs; false if keys leave something open.
    #[inline(never)]
    fn walk(&mut self, (order, keys): (&[u32], &[u64]), item: impl Fn(usize) -> Item) -> bool {
        let Self { pairs, groups, before } = self;
        pairs.resize(pairs.len().max(order.len() + 1), 0);
        groups.resize(groups.len().max(order.len()), 0);
        before.resize(before.len().max(order.len() + 1), Sums::default());
        let (pairs, groups, before) =
            (&mut pairs[..], &mut groups[..order.len()], &mut before[1..=order.len()]);
        let mut found = 0;
        let mut open = false;
        let mut sums = Sums::default();
        let (mut last_unit, mut last_group, mut last_key) = match order.first() {
            Some(&first) => (!item(first as usize).unit, 0, !keys[first as usize]),
            None => (0, 0, 0),
        };
        for (place, ((&at, group), before)) in order.iter().zip(groups).zip(before).enumerate() {
            let (item, key) = (item(at as usize), keys[at as usize]);
            let differ = key ^ last_key;
            let new_unit = item.unit != last_unit;
            let new_group = (item.group != last_group) | new_unit;
            open |= new_unit & (differ >> (RANK + PLACE) == 0) | new_group & (differ == 0);
            pairs[found] = (place as u32) << 1 | u32::from(new_unit);
            found += usize::from(new_group);
            *group = item.group;
            sums = sums.plus(item.sums);
            *before = sums;
            (last_unit, last_group, last_key) = (item.unit, item.group, key);
        }
        pairs[found] = (order.len() as u32) << 1;
        self.pairs.truncate(found + 1);
        !open
    }

    /// Keeps the first pairs of each unit.
    #[inline(never)]
    fn keep(&self, order: &[u32], most: u32, chosen: &mut Chosen) {
        let Chosen { groups, items, sums, ends, .. } = chosen;
        let (groups, items, sums, ends) = (&mut groups[..], &mut items[..], &mut sums[..], &mut ends[..]);
        let [mut units, mut entries] = [0; 2];
        let mut met = 0;
        for pair in self.pairs.windows(2) {
            let [start, end] = [(pair[0] >> 1) as usize, (pair[1] >> 1) as usize];
            let new_unit = pair[0] & 1;
            met = if new_unit == 1 { 1 } else { met + 1 };
            groups[entries] = self.groups[start];
            items[entries] = order[start];
            sums[entries] = self.before[end].minus(self.before[start]);
            entries += usize::from(met <= most);
            units += new_unit as usize;
            ends[units - 1] = entries as u32;
        }
        (chosen.entries, chosen.units) = (entries, units);
    }

    /// Says of each item which entry it belongs to.
    fn say_of_items(&self, order: &[u32], most: u32, chosen: &mut Chosen) {
        let [mut met, mut entries] = [0; 2];
        for pair in self.pairs.windows(2) {
            met = if pair[0] & 1 == 1 { 1 } else { met + 1 };
            let kept = met <= most;
            entries += u32::from(kept);
            for &at in &order[(pair[0] >> 1) as usize..(pair[1] >> 1) as usize] {
                chosen.of_items[at as usize] = if kept { entries } else { 0 };
            }
        }
    }
}

/// Chooses where two keys are equal that should not be.
#[cold]
fn choose_by_bytes(
    items: &[Item],
    rank: impl Fn(Item) -> u32,
    context: &Context,
    chosen: &mut Chosen,
) -> Result<(), TallyError> {
    [chosen.entries, chosen.units] = [0; 2];
    chosen.of_items.fill(0);
    let mut sorted: Vec<_> =
        items.iter().enumerate().map(|(at, &item)| (item.unit, rank(item), item.group, at)).collect();
    sorted.sort_unstable();
    for unit in sorted.chunk_by(|one, two| one.0 == two.0) {
        let mut first = 0;
        let mut groups: Vec<Ranked> = Vec::new();
        for group in unit.chunk_by(|one, two| one.2 == two.2) {
            groups.push((group[0].1, group[0].2, first));
            first += group.len() as u32;
        }
        keep_smallest(&mut groups, context.groups_per_unit, context.groups)?;
        for &(_, group, first) in &groups {
            let mut sums = Sums::default();
            for item in unit[first as usize..].iter().take_while(|item| item.2 == group) {
                sums = sums.plus(items[item.3].sums);
                if let Some(entry) = chosen.of_items.get_mut(item.3) {
                    *entry = chosen.entries as u32 + 1;
                }
            }
            chosen.groups[chosen.entries] = group;
            chosen.items[chosen.entries] = unit[first as usize].3 as u32;
            chosen.sums[chosen.entries] = sums;
            chosen.entries += 1;
        }
        chosen.ends[chosen.units] = chosen.entries as u32;
        chosen.units += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::Things;
    use crate::hash::Secret;
    use crate::layout::Layout;
    use proptest::prelude::*;

    /// What was chosen, in full: the group, the sums and the items of each entry, unit after unit.
    type Plain = Vec<Vec<(u32, Sums, Vec<usize>)>>;

    /// What sorting and counting come to; the bytes of groups are ordered like their numbers.
    fn obvious(items: &[Item], most: usize, rank: impl Fn(Item) -> u32) -> Plain {
        let mut sorted: Vec<_> =
            items.iter().enumerate().map(|(at, &item)| (item.unit, rank(item), item.group, at)).collect();
        sorted.sort_unstable();
        let unit = |unit: &[(u64, u32, u32, usize)]| {
            let groups = unit.chunk_by(|one, two| one.2 == two.2).take(most);
            let mut groups: Vec<_> = groups
                .map(|group| {
                    let of: Vec<usize> = group.iter().map(|item| item.3).collect();
                    let sums = of.iter().fold(Sums::default(), |sums, &at| sums.plus(items[at].sums));
                    (group[0].2, sums, of)
                })
                .collect();
            groups.sort_by_key(|group| group.0);
            groups
        };
        sorted.chunk_by(|one, two| one.0 == two.0).map(unit).collect()
    }

    fn plain(chosen: &Chosen) -> Plain {
        let mut start = 0;
        let unit = |&end: &u32| {
            let entries = std::mem::replace(&mut start, end as usize)..end as usize;
            let mut entries: Vec<_> = entries
                .map(|entry| {
                    let of = chosen.of_items.iter().enumerate().filter(|(_, of)| **of == entry as u32 + 1);
                    let of: Vec<usize> = of.map(|(at, _)| at).collect();
                    assert!(of.contains(&(chosen.items[entry] as usize)));
                    (chosen.groups[entry], chosen.sums[entry], of)
                })
                .collect();
            entries.sort_by_key(|entry| entry.0);
            entries
        };
        chosen.ends[..chosen.units].iter().map(unit).collect()
    }

    proptest! {
        /// Units may differ in bits that keys do not have, and groups may have the same rank.
        #[test]
        fn units_choose_what_is_obvious(
            picks in prop::collection::vec((0u64..4, 0u32..9), 0..60), near in 0u32..64, most in 1usize..8,
            mask in prop_oneof![Just(u64::MAX), Just(3 << 40), Just(0)],
        ) {
            let groups = Things::new(Secret::new([1, 2]));
            (0..9u32).for_each(|group| { groups.number(&group.to_be_bytes()).unwrap(); });
            let hashes: Vec<u64> = (0..9).map(|group| group << 40 & mask).collect();
            let context = Context {
                secret: &Secret::new([1, 2]),
                layout: &Layout::default(),
                groups_per_unit: most,
                groups: &groups,
                group_hashes: &hashes,
                domains: &[],
                value_hashes: &[],
            };
            let items: Vec<Item> = picks.iter().enumerate().map(|(at, &(unit, group))| Item {
                unit: unit.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> near,
                group,
                sums: Sums::of_row((at % 3 > 0).then_some(at as u32)),
            }).collect();
            let rank = |item: Item| context.rank(item.unit, item.group);
            let mut keys: Vec<u64> = items.iter().map(|&item| key(item.unit, rank(item))).collect();
            let mut order = Vec::new();
            crate::order::order(&mut keys, [items.len() as u32].into_iter(), &mut order);
            let (mut sorted, mut chosen) = (Sorted::default(), Chosen::default());
            let into = (&mut sorted, &mut chosen);
            choose((&order, &keys), |at| items[at], rank, (&context, true), into).unwrap();
            prop_assert_eq!(plain(&chosen), obvious(&items, most, rank));
            let known = sorted.walk((&order, &keys), |at| items[at]);
            prop_assert!(known || near > 20 || mask != u64::MAX);
        }
    }
}
