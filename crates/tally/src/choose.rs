//! [`choose`]: the rows of some units choose the few groups that each unit keeps.
//!
//! **Definition.** Items are put in order by unit, rank and group. A unit's groups are then met in the order of their ranks, and the first k are kept.
//!
//! **Exactness.** The order is that of one *key* for each item: some bits of the unit, then the rank. Where that leaves open which of two different units or groups
//! comes first, items are sorted by all they have, and groups of the same rank are told apart by their bytes. It leaves nothing open where keys have all bits of short names, and the
//! groups' hashes differ in their upper halves: for one unit, [different halves have different ranks](crate::hash::rank_of_halves).
//!
//! **Joining.** Where sums over units are wanted and nothing else, an entry of so few rows that no bound can change it joins its group at once: it is added to what other units
//! came to there, and not written down.

use crate::context::Context;
use crate::entries::{Chosen, Joint, Known, Sums};
use crate::error::TallyError;
use crate::keep::{Ranked, keep_smallest};
use crate::order::Order;
use crate::record::{Head, Shares};

/// What is asked of a row, or of what earlier rows came to.
pub(crate) trait Part: Copy {
    /// The name of its unit.
    fn unit(self) -> u64;

    fn group(self) -> u32;

    fn sums(self) -> Sums;
}

/// A row.
impl<H: Head> Part for (H, Shares) {
    #[inline(always)]
    fn unit(self) -> u64 {
        self.0.name()
    }

    #[inline(always)]
    fn group(self) -> u32 {
        self.0.group(self.1)
    }

    #[inline(always)]
    fn sums(self) -> Sums {
        self.1.sums(self.0.value(self.1))
    }
}

/// A row, or what earlier rows came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Item {
    /// The name of its unit.
    pub(crate) unit: u64,
    pub(crate) group: u32,
    pub(crate) sums: Sums,
}

impl Item {
    #[inline(always)]
    pub(crate) fn of(part: impl Part) -> Self {
        Self { unit: part.unit(), group: part.group(), sums: part.sums() }
    }
}

impl Part for Item {
    #[inline(always)]
    fn unit(self) -> u64 {
        self.unit
    }

    #[inline(always)]
    fn group(self) -> u32 {
        self.group
    }

    #[inline(always)]
    fn sums(self) -> Sums {
        self.sums
    }
}

/// How many bits of a key tell the unit. Those of the rank follow at once, since numbers are put in order by few of their first bits.
const UNIT: u32 = 26;

/// How many come behind those of the unit.
const BEHIND: u32 = 64 - UNIT;

/// The key of an item, given the first bits in which its unit may differ from those it is put in order with.
#[inline(always)]
pub(crate) fn key(unit: u64, rank: u32) -> u64 {
    unit >> BEHIND << BEHIND | u64::from(rank) << (BEHIND - 32)
}

/// Whether the keys of items have all bits in which their units differ, if these begin so far from the left.
pub(crate) fn holds_unit(shift: u32) -> bool {
    shift >= BEHIND
}

/// Chooses among items, given their order by their keys, and whether keys are known to tell units and groups apart. By parts: if it must be known which items make an entry;
/// otherwise entries that are free to do so join their groups, if these are given.
pub(crate) fn choose<P: Part>(
    (order, apart): (&Order, bool),
    item: impl Fn(usize) -> P,
    rank: impl Fn(Item) -> u32,
    (context, by_parts): (&Context, bool),
    (joint, chosen): (&mut [Joint], &mut Chosen),
) -> Result<(), TallyError> {
    let items = order.places.len();
    chosen.make_room(items, by_parts);
    debug_assert!(!apart || told_apart(order, &item));
    if !apart && !told_apart(order, &item) {
        let items: Vec<Item> = (0..items).map(|at| Item::of(item(at))).collect();
        return choose_by_bytes(&items, rank, context, chosen);
    }
    let free_rows = if joint.is_empty() { 0 } else { context.layout.free_rows };
    let most = context.groups_per_unit;
    match by_parts {
        true => walk::<true, _>(order, item, most, (joint, 0), chosen),
        false => walk::<false, _>(order, item, most, (joint, free_rows), chosen),
    }
    Ok(())
}

/// Whether keys say which of two items comes first, wherever they are not of the same unit and group.
#[inline(never)]
fn told_apart<P: Part>(order: &Order, item: impl Fn(usize) -> P) -> bool {
    let mut open = false;
    for (places, keys) in order.places.windows(2).zip(order.numbers.windows(2)) {
        let (one, two, differ) = (item(places[0] as usize), item(places[1] as usize), keys[0] ^ keys[1]);
        let new_unit = one.unit() != two.unit();
        let new_group = (one.group() != two.group()) | new_unit;
        open |= new_unit & (differ >> BEHIND == 0) | new_group & (differ == 0);
    }
    !open
}

/// Keeps the first groups of each unit; keys tell units and groups apart. Entries of no more than `free_rows` rows join their groups.
#[inline(never)]
fn walk<const BY_PARTS: bool, P: Part>(
    order: &Order,
    item: impl Fn(usize) -> P,
    most: usize,
    (joint, free_rows): (&mut [Joint], u64),
    chosen: &mut Chosen,
) {
    let Chosen { known, ends, of_items, .. } = chosen;
    let keys = &order.numbers[..];
    let places = &order.places[..keys.len()];
    let (mut units, mut entries, mut at) = (0, 0, 0);
    while at < keys.len() {
        let (unit, mut left) = (keys[at] >> BEHIND, most);
        let is_mine = |at: usize| at < keys.len() && keys[at] >> BEHIND == unit;
        while left > 0 && is_mine(at) {
            let (key, first) = (keys[at], places[at]);
            let one = item(first as usize);
            let mut sums = one.sums();
            left -= 1;
            if BY_PARTS {
                of_items[first as usize] = entries as u32 + 1;
            }
            at += 1;
            while at < keys.len() && keys[at] == key {
                let more = places[at] as usize;
                sums = sums.plus(item(more).sums());
                if BY_PARTS {
                    of_items[more] = entries as u32 + 1;
                }
                at += 1;
            }
            if !BY_PARTS && (1..=free_rows).contains(&sums.rows()) {
                joint[one.group() as usize].join(sums);
                continue;
            }
            known[entries] = Known { group: one.group(), item: first, sums };
            entries += 1;
        }
        // What is not kept.
        while is_mine(at) {
            at += 1;
        }
        ends[units] = entries as u32;
        units += 1;
    }
    (chosen.entries, chosen.units) = (entries, units);
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
            let item = unit[first as usize].3 as u32;
            chosen.known[chosen.entries] = Known { group, item, sums };
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
    use crate::store::Store;
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
                    let Known { group, item, sums } = chosen.known[entry];
                    assert!(of.contains(&(item as usize)));
                    (group, sums, of)
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
                ranks_differ: false,
                domains: &[],
                value_hashes: &[],
                store: &Store::new(0),
            };
            let items: Vec<Item> = picks.iter().enumerate().map(|(at, &(unit, group))| Item {
                unit: unit.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> near,
                group,
                sums: Sums::of_row((at % 3 > 0).then_some(at as u32)),
            }).collect();
            let rank = |item: Item| context.rank(item.unit, item.group);
            let mut keys: Vec<u64> = items.iter().map(|&item| key(item.unit, rank(item))).collect();
            let mut order = Order::default();
            order.put(&mut keys, [items.len() as u32].into_iter(), 0);
            let mut chosen = Chosen::default();
            choose((&order, false), |at| items[at], rank, (&context, true), (&mut [], &mut chosen)).unwrap();
            prop_assert_eq!(plain(&chosen), obvious(&items, most, rank));
            let known = told_apart(&order, |at| items[at]);
            prop_assert!(known || near > 20 || mask != u64::MAX);
        }
    }
}
