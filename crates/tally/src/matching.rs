//! [`Edges`]: which units of a group have which values, and how many values can be brought at once.
//!
//! **Definition.** Let each unit u of a group have the set S(u) of its values (of more than `seen`, those with the smallest keyed hash). The group's number is the
//! largest number of values that can be given to units such that each value goes to one unit that has it, and each unit gets
//! at most m: a maximum matching where units have capacity m.
//!
//! **Guarantee.** One unit moves it by 0 to m, whatever the others have.
//!
//! **Why.** S(u) depends on the unit's own rows alone. Without the unit, every matching is still one once its at most m values are taken
//! from it: so the maximum falls by at most m. With it, every matching of the others is still one: so the maximum never falls.
//!
//! **Why matching.** Any rule by which a unit picks m of its values without looking at others gives a matching: give each picked value to one of those that
//! picked it. So the maximum is never below what such a rule counts, has the same reach, and is never above the truth; with few units of many values it is much
//! nearer to it. A matching that is merely maximal depends on the order in which pairs are met; the size of a maximum one does not.
//!
//! **Exactness.** Whole numbers; augmenting paths, shortest first \[Hopcroft1973\]. At most √values rounds, each of which looks at every pair once.
//!
//! **References.** \[Hopcroft1973\], \[Knop2023\].

use crate::error::TallyError;
use crate::words::small;

/// For some units of all groups, the values they have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edges {
    /// The group of each list.
    groups: Vec<u32>,
    ends: Vec<u32>,
    values: Vec<u32>,
}

impl Edges {
    /// Adds the different values of one unit in one group.
    pub(crate) fn add(&mut self, group: u32, values: &[u32]) -> Result<(), TallyError> {
        if !values.is_empty() {
            self.values.extend_from_slice(values);
            self.ends.push(small(self.values.len(), "pairs of units and values")?);
            self.groups.push(group);
        }
        Ok(())
    }

    /// Adds what another thread has found.
    pub(crate) fn merge(&mut self, other: Self) -> Result<(), TallyError> {
        for (list, &group) in other.groups.iter().enumerate() {
            self.add(group, other.list(list))?;
        }
        Ok(())
    }

    /// For each group that has values, the size of its maximum matching.
    pub(crate) fn matched(&self, most: u64) -> Vec<(u32, u64)> {
        let mut order: Vec<usize> = (0..self.groups.len()).collect();
        order.sort_by_key(|&list| self.groups[list]);
        let alike = order.chunk_by(|&one, &two| self.groups[one] == self.groups[two]);
        let of_group = |lists: &[usize]| {
            let units: Vec<&[u32]> = lists.iter().map(|&list| self.list(list)).collect();
            (self.groups[lists[0]], maximum(&units, most))
        };
        alike.map(of_group).collect()
    }

    fn list(&self, at: usize) -> &[u32] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.values[start as usize..self.ends[at] as usize]
    }
}

/// Nobody.
const FREE: u32 = u32::MAX;

/// The size of a maximum matching of units, given as their values, where each unit may have `most`.
fn maximum(units: &[&[u32]], most: u64) -> u64 {
    let mut names: Vec<u32> = units.iter().flat_map(|values| values.iter().copied()).collect();
    names.sort_unstable();
    names.dedup();
    let number = |value: u32| names.partition_point(|&name| name < value) as u32;
    let lists: Vec<Vec<u32>> =
        units.iter().map(|values| values.iter().map(|&value| number(value)).collect()).collect();
    let mut search = Search {
        left: lists.iter().map(|values| most.min(values.len() as u64)).collect(),
        owner: vec![FREE; names.len()],
        depth: Vec::new(),
        next: Vec::new(),
        lists,
    };
    let mut size = 0;
    while search.layers() {
        search.next = vec![0; units.len()];
        for unit in 0..units.len() as u32 {
            while search.left[unit as usize] > 0 && search.depth[unit as usize] == 0 && search.augment(unit) {
                size += 1;
            }
        }
    }
    size
}

/// One round after the other of shortest augmenting paths.
struct Search {
    lists: Vec<Vec<u32>>,
    /// How many values each unit may still get.
    left: Vec<u64>,
    /// Who has each value.
    owner: Vec<u32>,
    /// How many changes of owner lead from a unit with something left to each unit.
    depth: Vec<u32>,
    /// Which of its values each unit tries next.
    next: Vec<usize>,
}

impl Search {
    /// Finds the depth of each unit; whether any path ends at a value without an owner.
    fn layers(&mut self) -> bool {
        self.depth = self.left.iter().map(|&left| if left > 0 { 0 } else { FREE }).collect();
        let mut here: Vec<u32> =
            (0..self.left.len() as u32).filter(|&unit| self.left[unit as usize] > 0).collect();
        let (mut found, mut depth) = (false, 0);
        while !found && !here.is_empty() {
            depth += 1;
            let mut further = Vec::new();
            for unit in here {
                for &value in &self.lists[unit as usize] {
                    let owner = self.owner[value as usize];
                    if owner == FREE {
                        found = true;
                    } else if self.depth[owner as usize] == FREE {
                        self.depth[owner as usize] = depth;
                        further.push(owner);
                    }
                }
            }
            here = further;
        }
        found
    }

    /// Gives one more value to a unit, along a path of growing depth.
    fn augment(&mut self, unit: u32) -> bool {
        // The units of the path; each wants the value its `next` is at.
        let mut path = vec![unit];
        while let Some(&last) = path.last() {
            let wanted = self.lists[last as usize].get(self.next[last as usize]).copied();
            let Some(value) = wanted else {
                // Nothing is to be had here; whoever came here tries its next value.
                path.pop();
                if let Some(&before) = path.last() {
                    self.next[before as usize] += 1;
                }
                continue;
            };
            let owner = self.owner[value as usize];
            if owner == FREE {
                for &taker in path.iter().rev() {
                    let value = self.lists[taker as usize][self.next[taker as usize]];
                    self.owner[value as usize] = taker;
                    self.next[taker as usize] += 1;
                }
                self.left[unit as usize] -= 1;
                return true;
            }
            if self.depth[owner as usize] == self.depth[last as usize].wrapping_add(1) {
                path.push(owner);
            } else {
                self.next[last as usize] += 1;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// By trying every gift of every value.
    fn slow(units: &[Vec<u32>], value: u32, left: &mut Vec<u64>) -> u64 {
        if value == 6 {
            return 0;
        }
        let mut best = slow(units, value + 1, left);
        for unit in 0..units.len() {
            if left[unit] > 0 && units[unit].contains(&value) {
                left[unit] -= 1;
                best = best.max(1 + slow(units, value + 1, left));
                left[unit] += 1;
            }
        }
        best
    }

    fn units() -> impl Strategy<Value = Vec<Vec<u32>>> {
        let set = proptest::collection::btree_set(0u32..6, 0..6);
        proptest::collection::vec(set.prop_map(|set| set.into_iter().collect()), 0..5)
    }

    fn fast(units: &[Vec<u32>], most: u64) -> u64 {
        let units: Vec<&[u32]> = units.iter().map(Vec::as_slice).collect();
        maximum(&units, most)
    }

    proptest! {
        #[test]
        fn the_matching_is_a_maximum(units in units(), most in 0u64..4) {
            let mut left = vec![most; units.len()];
            prop_assert_eq!(fast(&units, most), slow(&units, 0, &mut left));
        }

        #[test]
        fn one_unit_moves_it_by_no_more_than_it_may_bring(units in units(), most in 0u64..4) {
            let all = fast(&units, most);
            for without in 0..units.len() {
                let mut others = units.clone();
                others.remove(without);
                let less = fast(&others, most);
                prop_assert!(less <= all && all <= less + most);
            }
        }

        #[test]
        fn no_pick_finds_more_and_nothing_finds_too_much(units in units(), most in 0u64..4) {
            let mut picked: Vec<u32> =
                units.iter().flat_map(|values| values.iter().copied().take(most as usize)).collect();
            let mut there: Vec<u32> = units.concat();
            for values in [&mut picked, &mut there] {
                values.sort_unstable();
                values.dedup();
            }
            prop_assert!((picked.len()..=there.len()).contains(&(fast(&units, most) as usize)));
        }
    }

    /// Everybody would take the same value first; only paths through others give each its own.
    #[test]
    fn long_paths_are_found() {
        let units: Vec<Vec<u32>> = (0..2000).map(|unit| vec![unit, unit + 1]).collect();
        assert_eq!(fast(&units, 1), 2000);
        assert_eq!(fast(&units, 2), 2001);
        let star: Vec<Vec<u32>> = (0..100).map(|_| (0..50).collect()).collect();
        assert_eq!(fast(&star, 1), 50);
    }

    #[test]
    fn groups_are_matched_apart_in_any_order() {
        let mut edges = Edges::default();
        for (group, values) in [(7, vec![1, 2]), (3, vec![1]), (7, vec![1]), (3, vec![]), (7, vec![1])] {
            edges.add(group, &values).unwrap();
        }
        let mut both = Edges::default();
        both.add(3, &[9]).unwrap();
        both.merge(edges).unwrap();
        assert_eq!(both.matched(1), [(3, 2), (7, 2)]);
        assert_eq!(both.matched(0), [(3, 0), (7, 0)]);
    }
}
