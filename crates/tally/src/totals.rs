//! [`Totals`]: sums over units for each group, from one thread or from all of them.

use crate::bound;
use crate::context::Context;
use crate::entries::{Entries, Joint, Unit};
use crate::error::TallyError;
use crate::hash::Secret;
use crate::layout::{Layout, Recipe};
use crate::matching::Edges;
use crate::settle::Take;
use crate::wide::{Number, Wide};
use crate::words::{Words, small};

/// For each group (by its shared number) its units and its measures.
pub(crate) struct Totals {
    pub(crate) units: Vec<u64>,
    pub(crate) parts: Vec<Part>,
    /// If entries may join their groups: what did and is not in units and parts yet, and of how many rows it can be.
    joint: Vec<Joint>,
    joint_rows: u64,
}

/// One measure of all groups.
pub(crate) enum Part {
    /// One number for each group.
    Number(Wide),
    /// Cells of each group.
    Cells(Spread),
    /// Different values of each group.
    Values(Pairs),
    /// Which units have which values, and how many each may bring.
    Edges(Edges, u64),
}

impl Totals {
    pub(crate) fn new(layout: &Layout, groups: usize) -> Self {
        let part = |recipe: &Recipe| match *recipe {
            Recipe::Histogram { cells, .. } => Part::Cells(Spread::new(cells)),
            Recipe::Distinct { .. } => Part::Values(Pairs::new()),
            Recipe::Matched { most, .. } => Part::Edges(Edges::default(), most),
            Recipe::Count { most, .. } => Part::Number(Wide::new(groups, most.into())),
            Recipe::Sum { unit, .. } => {
                let furthest = unit.low.unsigned_abs().max(unit.high.unsigned_abs());
                Part::Number(Wide::new(groups, furthest.into()))
            }
            Recipe::Deviation { centre, most, .. } => {
                let furthest = u128::from(layout.reach) + u128::from(centre.unsigned_abs());
                Part::Number(Wide::new(groups, furthest.saturating_mul(most.into())))
            }
        };
        let may_join = layout.free_rows > 0 && !layout.by_parts;
        let joint = vec![Joint::default(); if may_join { groups } else { 0 }];
        let parts = layout.recipes.iter().map(part).collect();
        Self { units: vec![0; groups], parts, joint, joint_rows: 0 }
    }

    /// Has room for what entries of so many rows may add to a group they join.
    pub(crate) fn make_room(&mut self, rows: u64, layout: &Layout) -> Result<(), TallyError> {
        self.joint_rows = self.joint_rows.saturating_add(rows);
        if self.joint_rows > u64::from(u32::MAX) {
            self.gather(layout)?;
            self.joint_rows = rows;
        }
        Ok(())
    }

    /// Adds what joined the groups to their units and parts.
    pub(crate) fn gather(&mut self, layout: &Layout) -> Result<(), TallyError> {
        if self.joint.iter().all(|joint| joint.units == 0) {
            return Ok(());
        }
        let joint = std::mem::take(&mut self.joint);
        self.joint.resize(joint.len(), Joint::default());
        self.units.iter_mut().zip(&joint).for_each(|(units, joint)| *units += joint.units);
        let numbers = |lane: usize| {
            let at = layout.sum_of(&layout.lanes[lane]).ok_or_else(not_joint)?;
            Ok(joint.iter().map(move |joint| joint.sums.wide_numbers(layout.packing.low)[at]))
        };
        for (part, recipe) in self.parts.iter_mut().zip(&layout.recipes) {
            match (part, *recipe) {
                (Part::Number(total), Recipe::Count { lane, .. } | Recipe::Sum { lane, .. }) => {
                    total.add_all(numbers(lane)?);
                }
                (Part::Number(total), Recipe::Deviation { sum, there, centre, .. }) => {
                    let distance = |(sum, there)| sum - i128::from(centre) * there;
                    total.add_all(numbers(sum)?.zip(numbers(there)?).map(distance));
                }
                _ => return Err(not_joint()),
            }
        }
        Ok(())
    }

    /// Adds what units may count for.
    fn add<N: Number>(&mut self, entries: &Entries<N>, context: &Context) -> Result<(), TallyError> {
        let Entries { groups, lanes, cells, values } = entries;
        groups.iter().for_each(|&group| self.units[group as usize] += 1);
        for (part, recipe) in self.parts.iter_mut().zip(&context.layout.recipes) {
            match (part, *recipe) {
                (Part::Number(total), Recipe::Count { lane, most }) => {
                    total.add_each(groups, lanes[lane].iter().map(|&rows| bound::count(rows, most)));
                }
                (Part::Number(total), Recipe::Sum { lane, unit }) => {
                    total.add_each(groups, lanes[lane].iter().map(|&sum| bound::sum(sum, unit)));
                }
                (Part::Number(total), Recipe::Deviation { sum, there, centre, most }) => {
                    let sums = lanes[sum].iter().zip(&lanes[there]);
                    let deviation =
                        |(&sum, &there): (&N, &N)| bound::deviation(sum.into(), there.into(), centre, most);
                    total.add_each(groups, sums.map(deviation));
                }
                (Part::Cells(total), Recipe::Histogram { spread, most, .. }) => {
                    for (&group, counts) in groups.iter().zip(cells[spread].iter()) {
                        let all = counts.iter().map(|count| u128::from(count.1)).sum();
                        for &(cell, count) in counts {
                            let share = bound::scale(u128::from(count), all, most) as u64;
                            if share > 0 {
                                total.add(group, cell, share, context.secret)?;
                            }
                        }
                    }
                }
                (Part::Values(total), Recipe::Distinct { picks }) => {
                    for (&group, values) in groups.iter().zip(values[picks].iter()) {
                        values.iter().try_for_each(|&value| total.add(group, value, context.secret))?;
                    }
                }
                (Part::Edges(total, _), Recipe::Matched { picks, .. }) => {
                    for (&group, values) in groups.iter().zip(values[picks].iter()) {
                        total.add(group, values)?;
                    }
                }
                _ => return Err(TallyError::ours("totals do not fit their recipe")),
            }
        }
        Ok(())
    }

    /// Adds what another thread has found.
    pub(crate) fn merge(&mut self, other: Self, secret: &Secret) -> Result<(), TallyError> {
        let groups = self.units.len().max(other.units.len());
        self.units.resize(groups, 0);
        add(&mut self.units, &other.units);
        for (mine, other) in self.parts.iter_mut().zip(other.parts) {
            match (mine, other) {
                (Part::Number(mine), Part::Number(other)) => mine.merge(other),
                (Part::Cells(mine), Part::Cells(other)) => mine.merge(other, secret)?,
                (Part::Values(mine), Part::Values(other)) => {
                    for (group, value) in other.iter() {
                        mine.add(group, value, secret)?;
                    }
                }
                (Part::Edges(mine, _), Part::Edges(other, _)) => mine.merge(other)?,
                _ => return Err(TallyError::ours("totals of different measures met")),
            }
        }
        Ok(())
    }
}

fn not_joint() -> TallyError {
    TallyError::ours("entries joined their groups that could not")
}

impl Take for Totals {
    const BY_NAME: bool = false;

    fn joint(&mut self) -> &mut [Joint] {
        &mut self.joint
    }

    fn take<N: Number>(
        &mut self,
        _: &[Unit],
        entries: &Entries<N>,
        context: &Context,
    ) -> Result<(), TallyError> {
        self.add(entries, context)
    }
}

fn add<T: Copy + std::ops::AddAssign>(mine: &mut [T], other: &[T]) {
    for (mine, other) in mine.iter_mut().zip(other) {
        *mine += *other;
    }
}

/// Counts for (group, cell): a plain array for the first groups, a table for the others, and for what passes 32 bits: small counts stay in the nearest caches.
pub(crate) struct Spread {
    cells: usize,
    dense: Vec<u32>,
    sparse: Words<u64>,
    counts: Vec<u64>,
}

/// The array has at most this many cells (16 MB).
const DENSE: usize = 1 << 22;

impl Spread {
    pub(crate) fn new(cells: u32) -> Self {
        Self { cells: cells as usize, dense: Vec::new(), sparse: Words::new(), counts: Vec::new() }
    }

    /// Adds to one cell.
    #[inline]
    pub(crate) fn add(
        &mut self,
        group: u32,
        cell: u32,
        count: u64,
        secret: &Secret,
    ) -> Result<(), TallyError> {
        let at = group as usize * self.cells + cell as usize;
        let total = self.dense.get(at).map(|&total| u64::from(total).saturating_add(count));
        match total.map(u32::try_from) {
            Some(Ok(total)) => self.dense[at] = total,
            _ => self.add_slow(group, cell, count, secret)?,
        }
        Ok(())
    }

    #[cold]
    fn add_slow(&mut self, group: u32, cell: u32, count: u64, secret: &Secret) -> Result<(), TallyError> {
        let wanted = (group as usize + 1).next_power_of_two().saturating_mul(self.cells);
        if self.dense.len() < wanted && wanted <= DENSE {
            self.dense.resize(wanted, 0);
            return self.add(group, cell, count, secret);
        }
        let next = small(self.counts.len(), "cells in use")?;
        let number = self.sparse.number(u64::from(group) << 32 | u64::from(cell), next, secret);
        if number == next {
            self.counts.push(0);
        }
        self.counts[number as usize] += count;
        Ok(())
    }

    /// Adds what another one has counted.
    pub(crate) fn merge(&mut self, mut other: Self, secret: &Secret) -> Result<(), TallyError> {
        if self.dense.len() < other.dense.len() {
            std::mem::swap(self, &mut other);
        }
        for (mine, other) in self.dense.iter_mut().zip(&mut other.dense) {
            let (sum, passes) = mine.overflowing_add(*other);
            (*mine, *other) = if passes { (*mine, *other) } else { (sum, 0) };
        }
        // What is left has no place in the array, or passes 32 bits there.
        other.iter().try_for_each(|(group, cell, count)| self.add(group, cell, count, secret))
    }

    /// All cells that are not 0, in no order; one that passes 32 bits may come twice, with a part of its count each time.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32, u64)> + '_ {
        let dense = (0..).zip(self.dense.chunks(self.cells)).flat_map(|(group, cells)| {
            let cells = (0..).zip(cells).filter(|(_, count)| **count > 0);
            cells.map(move |(cell, &count)| (group, cell, u64::from(count)))
        });
        let sparse = self.sparse.iter();
        let sparse =
            sparse.map(|(key, number)| ((key >> 32) as u32, key as u32, self.counts[number as usize]));
        dense.chain(sparse)
    }
}

/// A set of (group, value).
pub(crate) struct Pairs(Words<u64>);

impl Pairs {
    pub(crate) fn new() -> Self {
        Self(Words::new())
    }

    #[inline]
    pub(crate) fn add(&mut self, group: u32, value: u32, secret: &Secret) -> Result<(), TallyError> {
        let next = small(self.0.len(), "different values")?;
        self.0.number(u64::from(group) << 32 | u64::from(value), next, secret);
        Ok(())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.0.iter().map(|(key, _)| ((key >> 32) as u32, key as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::Sums;
    use crate::spec::{Bounds, Measure, Spec, Step};
    use std::collections::BTreeMap;

    /// Up to 32 bits and beyond, at once and by and by, in the array and in the table.
    fn many_counts() -> Vec<(u32, u32, u64)> {
        let small = (0..30_000u64).map(|at| ((at * at % 10_007) as u32, (at * 31 % 1000) as u32, at));
        let large = [u64::from(u32::MAX) - 1, 1, 1, 1 << 32, 7, u64::from(u32::MAX), 1 << 50];
        let large = large
            .into_iter()
            .flat_map(|count| [(0, 0), (3, 999), (10_006, 5)].map(|(group, cell)| (group, cell, count)));
        small.chain(large).collect()
    }

    fn counted<'a>(
        counts: impl Iterator<Item = &'a (u32, u32, u64)>,
        secret: &Secret,
    ) -> (Spread, BTreeMap<(u32, u32), u64>) {
        let (mut spread, mut expected) = (Spread::new(1000), BTreeMap::new());
        for &(group, cell, count) in counts {
            spread.add(group, cell, count, secret).unwrap();
            *expected.entry((group, cell)).or_insert(0) += count;
        }
        expected.retain(|_, count| *count > 0);
        (spread, expected)
    }

    fn found(spread: &Spread) -> BTreeMap<(u32, u32), u64> {
        let mut found = BTreeMap::new();
        for (group, cell, count) in spread.iter() {
            *found.entry((group, cell)).or_insert(0) += count;
        }
        found
    }

    #[test]
    fn few_groups_and_many_groups_count_alike() {
        let (spread, expected) = counted(many_counts().iter(), &Secret::new([1, 2]));
        assert_eq!(found(&spread), expected);
        assert!(!spread.dense.is_empty() && !spread.counts.is_empty());
    }

    /// Whether the first, the second or both have an array, a table, counts that pass 32 bits, or nothing at all.
    #[test]
    fn two_that_were_counted_apart_come_to_what_one_counts() {
        let (secret, counts) = (Secret::new([1, 2]), many_counts());
        let (_, expected) = counted(counts.iter(), &secret);
        for cut in [0, 1, 100, 9000, 30_000, 30_003, 30_006, 30_010, counts.len()] {
            let (one, two) = counts.split_at(cut);
            for (one, two) in [(one, two), (two, one)] {
                let [(mut one, _), (two, _)] = [one, two].map(|counts| counted(counts.iter(), &secret));
                one.merge(two, &secret).unwrap();
                assert_eq!(found(&one), expected, "{cut}");
            }
        }
        let every = |parity| counts.iter().skip(parity).step_by(2);
        let [(mut even, _), (odd, _)] = [0, 1].map(|parity| counted(every(parity), &secret));
        even.merge(odd, &secret).unwrap();
        assert_eq!(found(&even), expected);
    }

    /// Sums over so many rows as joined are right in 32 bits for each of their counts, and no longer.
    #[test]
    fn what_joined_is_gathered_before_its_counts_could_overflow() {
        let row = Bounds { low: 5, high: 9 };
        let count = Measure::Count { input: None, most: 3 };
        let sum = Measure::Deviation { input: 0, step: Step::One, row, centre: 7, most: 3 };
        let spec =
            Spec { has_unit: true, keys: 1, inputs: 1, groups_per_unit: 1, measures: vec![count, sum] };
        let layout = Layout::new(&spec);
        let mut totals = Totals::new(&layout, 2);
        for _ in 0..3 {
            totals.make_room(u32::MAX.into(), &layout).unwrap();
            let all = Sums::new([u32::MAX.into(), u32::MAX.into(), 9 * i64::from(u32::MAX)], 5);
            totals.joint()[1].join(all);
        }
        totals.gather(&layout).unwrap();
        assert_eq!(totals.units, [0, 3]);
        let rows = 3 * i128::from(u32::MAX);
        let sums = totals.parts.iter_mut().map(|part| match part {
            Part::Number(number) => number.sums().to_vec(),
            _ => Vec::new(),
        });
        assert_eq!(sums.collect::<Vec<_>>(), [[0, rows], [0, 2 * rows]]);
        totals.gather(&layout).unwrap();
        assert_eq!(totals.units, [0, 3]);
    }
}
