//! [`CellBag`] and [`PickBag`]: what a unit brings to a histogram or to a count of distinct values.
//!
//! Both take things as they come and tidy up when they have doubled, so that each thing costs a few comparisons and the memory is at most
//! twice what must be remembered (and never below eight things, once there is one).

use crate::error::TallyError;
use crate::groups::Things;
use crate::hash::rank;
use crate::keep::keep_smallest;

/// Nothing is tidied up before it has grown to this.
const SMALL: usize = 8;

/// How many of a unit's values lie in which cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct CellBag {
    counts: Vec<(u32, u64)>,
    tidy: usize,
}

impl CellBag {
    pub(crate) fn add(&mut self, cell: u32) {
        if let Some(last) = self.counts.last_mut().filter(|last| last.0 == cell) {
            last.1 += 1;
            return;
        }
        if self.counts.len() >= SMALL.max(self.tidy * 2) {
            self.tidy_up();
        }
        self.counts.push((cell, 1));
    }

    fn tidy_up(&mut self) {
        self.counts.sort_unstable_by_key(|count| count.0);
        self.counts.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
        self.tidy = self.counts.len();
    }

    /// Every cell in use, once, with its count.
    pub(crate) fn cells(&mut self) -> &[(u32, u64)] {
        self.tidy_up();
        &self.counts
    }
}

/// The values a unit brings: the `most` with the smallest rank.
#[derive(Clone, Debug, Default)]
pub(crate) struct PickBag {
    values: Vec<u32>,
    tidy: usize,
}

/// How values of one input are ranked for one unit.
pub(crate) struct Picking<'a> {
    pub(crate) unit: u64,
    pub(crate) most: u64,
    pub(crate) hashes: &'a [u64],
    pub(crate) things: &'a Things,
}

impl PickBag {
    pub(crate) fn add(&mut self, value: u32, picking: &Picking) -> Result<(), TallyError> {
        if self.values.last() == Some(&value) {
            return Ok(());
        }
        if self.values.len() >= SMALL.max(self.tidy * 2) {
            self.tidy_up(picking)?;
        }
        self.values.push(value);
        Ok(())
    }

    fn tidy_up(&mut self, picking: &Picking) -> Result<(), TallyError> {
        self.values.sort_unstable();
        self.values.dedup();
        let most = usize::try_from(picking.most).unwrap_or(usize::MAX);
        if self.values.len() > most {
            let ranked = |&value: &u32| (rank(picking.unit, picking.hashes[value as usize]), value, 0);
            let mut things: Vec<_> = self.values.iter().map(ranked).collect();
            keep_smallest(&mut things, most, picking.things)?;
            self.values.clear();
            self.values.extend(things.iter().map(|thing| thing.1));
        }
        self.tidy = self.values.len();
        Ok(())
    }

    /// The picked values, each once.
    pub(crate) fn values(&mut self, picking: &Picking) -> Result<&[u32], TallyError> {
        self.tidy_up(picking)?;
        Ok(&self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Secret;
    use std::collections::BTreeMap;

    #[test]
    fn cells_are_counted_whatever_their_order() {
        let mut bag = CellBag::default();
        let mut expected = BTreeMap::new();
        for at in 0..5000u32 {
            let cell = at * at % 101;
            bag.add(cell);
            *expected.entry(cell).or_insert(0) += 1;
        }
        assert!(bag.counts.len() <= 2 * 101 + SMALL);
        assert_eq!(bag.cells().iter().copied().collect::<BTreeMap<_, _>>(), expected);
    }

    #[test]
    fn picks_are_the_smallest_ranks_and_the_bag_stays_small() {
        let secret = Secret::new([1, 2]);
        let things = Things::new(secret);
        for value in 0..1000u32 {
            things.number(&value.to_le_bytes()).unwrap();
        }
        let mut hashes = Vec::new();
        things.refresh(&mut hashes).unwrap();
        let picking = Picking { unit: 5, most: 10, hashes: &hashes, things: &things };
        let mut bag = PickBag::default();
        for at in 0..5000u32 {
            bag.add(at * 7 % 1000, &picking).unwrap();
        }
        assert!(bag.values.len() <= 21);
        let mut expected: Vec<u32> = (0..1000).collect();
        expected.sort_by_key(|&value| rank(5, hashes[value as usize]));
        expected.truncate(10);
        expected.sort_unstable();
        let mut picked = bag.values(&picking).unwrap().to_vec();
        picked.sort_unstable();
        assert_eq!(picked, expected);
    }
}
