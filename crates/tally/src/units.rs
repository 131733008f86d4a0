//! [`UnitTable`]: for each unit the few groups it counts in, with its sums there.
//!
//! **Definition.** A unit's groups are those of its rows; it *keeps* the k = `groups_per_unit` smallest of them by (rank, bytes), see [`keep`](crate::keep). For each kept
//! group the table has one *entry*: the lanes and bags of the unit's rows in that group.
//!
//! **Guarantee.** When all rows have come, the entries are the kept groups and each holds all of its rows: a group that is not among the k smallest
//! so far will not be among them later, so what is dropped is dropped for good, and a group that is kept in the end was never dropped.
//!
//! **Memory.** A unit costs about 50 bytes, and 4 + 8 × lanes for each entry; there are at most k entries per unit, or 2k where k > 32, since
//! many groups are thinned out by halves instead of one by one.

use std::collections::HashMap;

use crate::bags::{CellBag, PickBag, Picking};
use crate::bound;
use crate::error::TallyError;
use crate::groups::Things;
use crate::hash::{Secret, rank};
use crate::keep::{Ranked, keep_smallest};
use crate::layout::{Lane, Layout, Recipe};
use crate::shelf::{HEAD, row_width};
use crate::steps::ABSENT;
use crate::totals::{Part, Totals};
use crate::wide::Number;
use crate::words::{NONE, small};

/// Up to this many groups of a unit are searched one by one.
const FEW: usize = 32;

/// So many rows are looked at before they are added.
const BLOCK: usize = 128;

/// What the table must know of the query.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) secret: &'a Secret,
    pub(crate) layout: &'a Layout,
    pub(crate) groups_per_unit: usize,
    pub(crate) groups: &'a Things,
    pub(crate) group_hashes: &'a [u64],
    pub(crate) domains: &'a [Things],
    pub(crate) value_hashes: &'a [Vec<u64>],
}

impl Context<'_> {
    /// How many entries a unit may have at a time.
    fn limit(&self) -> usize {
        if self.groups_per_unit <= FEW {
            self.groups_per_unit
        } else {
            self.groups_per_unit.saturating_mul(2)
        }
    }

    #[inline]
    fn rank(&self, unit: &Unit, group: u32) -> u64 {
        rank(unit.hash, self.group_hashes[group as usize])
    }

    fn picking(&self, unit: &Unit, pick: usize) -> Picking<'_> {
        let pick = &self.layout.picks[pick];
        Picking {
            unit: unit.hash,
            most: pick.most,
            hashes: &self.value_hashes[pick.domain],
            things: &self.domains[pick.domain],
        }
    }
}

#[derive(Clone, Copy)]
struct Unit {
    hash: u64,
    /// No group with a greater rank can be kept any more.
    worst: u64,
    /// The first entry.
    start: u32,
    len: u32,
    /// There is room for this many entries.
    room: u32,
}

/// Units by their numbers, and their entries.
pub(crate) struct UnitTable<N> {
    units: Vec<Unit>,
    groups: Vec<u32>,
    lanes: Vec<N>,
    cells: Vec<CellBag>,
    picks: Vec<PickBag>,
    /// Starts of abandoned rooms, by [`class`].
    free: Vec<Vec<u32>>,
    /// Where the groups of units with many groups are.
    places: HashMap<u32, HashMap<u32, u32>>,
}

impl<N: Number> UnitTable<N> {
    pub(crate) fn new() -> Self {
        Self {
            units: Vec::new(),
            groups: Vec::new(),
            lanes: Vec::new(),
            cells: Vec::new(),
            picks: Vec::new(),
            free: vec![Vec::new(); 64],
            places: HashMap::new(),
        }
    }

    pub(crate) fn add_unit(&mut self, hash: u64) {
        self.units.push(Unit { hash, worst: u64::MAX, start: 0, len: 0, room: 0 });
    }

    /// Adds rows: the number of each row's unit, and its words.
    ///
    /// First those rows are found whose group may still be kept, then what they will need is brought into the cache. Both loops have no branches
    /// that wait for memory, so that many loads are under way at a time.
    pub(crate) fn add_rows(
        &mut self,
        numbers: &[u32],
        words: &[u64],
        context: &Context,
    ) -> Result<(), TallyError> {
        let width = row_width(context.layout);
        for (numbers, words) in numbers.chunks(BLOCK).zip(words.chunks(BLOCK * width)) {
            let mut open = [0u8; BLOCK];
            let mut many = 0;
            for (row, (&number, words)) in numbers.iter().zip(words.chunks_exact(width)).enumerate() {
                let unit = &self.units[number as usize];
                open[many] = row as u8;
                many += usize::from(context.rank(unit, words[1] as u32) <= unit.worst);
            }
            let open = &open[..many];
            self.touch(open.iter().map(|&row| numbers[row as usize]), context);
            for &row in open {
                let words = &words[row as usize * width..][..width];
                self.add_row(numbers[row as usize], words[1] as u32, &words[HEAD..], context)?;
            }
        }
        Ok(())
    }

    fn touch(&self, numbers: impl Iterator<Item = u32>, context: &Context) {
        let lanes = context.layout.lanes.len();
        let mut seen = 0;
        for number in numbers {
            let unit = &self.units[number as usize];
            let [start, end] = [unit.start as usize, (unit.start + unit.len) as usize];
            seen ^= self.groups.get(start).map_or(0, |&group| i128::from(group));
            seen ^= self.lanes.get(start * lanes).map_or(0, |&sum| sum.into());
            seen ^= self.lanes.get((end * lanes).saturating_sub(1)).map_or(0, |&sum| sum.into());
        }
        std::hint::black_box(seen);
    }

    fn add_row(
        &mut self,
        number: u32,
        group: u32,
        sources: &[u64],
        context: &Context,
    ) -> Result<(), TallyError> {
        let unit = self.units[number as usize];
        if context.rank(&unit, group) > unit.worst {
            return Ok(());
        }
        let known = self.find(number, &unit, group);
        let Some(entry) = (if known.is_some() { known } else { self.enter(number, group, context)? }) else {
            return Ok(());
        };
        let lanes = context.layout.lanes.len();
        for (sum, lane) in self.lanes[entry * lanes..][..lanes].iter_mut().zip(&context.layout.lanes) {
            sum.add(match *lane {
                Lane::Rows => 1,
                Lane::There(source) => i64::from(sources[source] as i64 != ABSENT),
                Lane::Sum(source) if sources[source] as i64 == ABSENT => 0,
                Lane::Sum(source) => sources[source] as i64,
            });
        }
        let bags = !(self.cells.is_empty() && self.picks.is_empty());
        if bags { self.add_to_bags(entry, &unit, sources, context) } else { Ok(()) }
    }

    fn add_to_bags(
        &mut self,
        entry: usize,
        unit: &Unit,
        sources: &[u64],
        context: &Context,
    ) -> Result<(), TallyError> {
        let spreads = &context.layout.spreads;
        for (bag, &source) in self.cells[entry * spreads.len()..].iter_mut().zip(spreads) {
            if sources[source] as i64 != ABSENT {
                bag.add(sources[source] as u32);
            }
        }
        let picks = &context.layout.picks;
        for (at, pick) in picks.iter().enumerate() {
            if sources[pick.source] as i64 != ABSENT {
                let bag = &mut self.picks[entry * picks.len() + at];
                bag.add(sources[pick.source] as u32, &context.picking(unit, at))?;
            }
        }
        Ok(())
    }

    #[inline]
    fn find(&self, number: u32, unit: &Unit, group: u32) -> Option<usize> {
        let start = unit.start as usize;
        if unit.len as usize > FEW {
            return self.places.get(&number)?.get(&group).map(|&place| start + place as usize);
        }
        self.groups[start..start + unit.len as usize]
            .iter()
            .position(|&known| known == group)
            .map(|place| start + place)
    }

    /// Makes an entry for a group that the unit does not have, if it is among its smallest.
    fn enter(&mut self, number: u32, group: u32, context: &Context) -> Result<Option<usize>, TallyError> {
        let unit = self.units[number as usize];
        if (unit.len as usize) < context.limit() {
            return self.append(number, group, context).map(Some);
        }
        if context.limit() == context.groups_per_unit {
            return self.replace(number, group, context);
        }
        self.thin_out(number, context)?;
        if context.rank(&unit, group) > self.units[number as usize].worst {
            return Ok(None);
        }
        self.append(number, group, context).map(Some)
    }

    fn append(&mut self, number: u32, group: u32, context: &Context) -> Result<usize, TallyError> {
        if self.units[number as usize].len == self.units[number as usize].room {
            self.make_room(number, context)?;
        }
        let unit = &mut self.units[number as usize];
        let place = unit.len;
        let entry = (unit.start + place) as usize;
        unit.len += 1;
        let unit = *unit;
        self.clear(entry, group, context);
        if unit.len as usize == context.groups_per_unit && context.groups_per_unit <= FEW {
            self.units[number as usize].worst = self.greatest(&unit, context).1;
        }
        if unit.len as usize == FEW + 1 {
            self.index(number, &unit);
        } else if unit.len as usize > FEW {
            self.places.entry(number).or_default().insert(group, place);
        }
        Ok(entry)
    }

    /// The two greatest ranks of a unit's groups, and which entry has the first.
    fn greatest(&self, unit: &Unit, context: &Context) -> (usize, u64, u64) {
        let [mut first, mut second, mut place] = [0, 0, 0];
        for (at, &group) in self.groups[unit.start as usize..][..unit.len as usize].iter().enumerate() {
            let rank = context.rank(unit, group);
            if rank > first || at == 0 {
                [first, second, place] = [rank, first, at as u64];
            } else {
                second = second.max(rank);
            }
        }
        (unit.start as usize + place as usize, first, second)
    }

    /// Puts a group in the place of the greatest, if that is greater.
    fn replace(&mut self, number: u32, group: u32, context: &Context) -> Result<Option<usize>, TallyError> {
        let unit = self.units[number as usize];
        let rank = context.rank(&unit, group);
        let (mut entry, first, second) = self.greatest(&unit, context);
        if rank == first || second == first {
            match self.greatest_by_bytes(&unit, first, context)? {
                worst if rank == first && context.groups.compare(self.groups[worst], group)?.is_lt() => {
                    return Ok(None);
                }
                worst => entry = worst,
            }
        }
        self.clear(entry, group, context);
        self.units[number as usize].worst = second.max(rank);
        Ok(Some(entry))
    }

    /// Of the entries with this rank, that whose group has the greatest bytes.
    #[cold]
    fn greatest_by_bytes(&self, unit: &Unit, worst: u64, context: &Context) -> Result<usize, TallyError> {
        let strings = context.groups.lock()?;
        (unit.start as usize..(unit.start + unit.len) as usize)
            .filter(|&entry| context.rank(unit, self.groups[entry]) == worst)
            .max_by_key(|&entry| strings.get(self.groups[entry]))
            .ok_or_else(|| TallyError::ours("a unit has no greatest group"))
    }

    /// Leaves a unit its `groups_per_unit` smallest groups.
    fn thin_out(&mut self, number: u32, context: &Context) -> Result<(), TallyError> {
        let unit = self.units[number as usize];
        let start = unit.start as usize;
        let ranked = |(place, &group): (usize, &u32)| (context.rank(&unit, group), group, place as u32);
        let groups = &self.groups[start..start + unit.len as usize];
        let mut kept: Vec<Ranked> = groups.iter().enumerate().map(ranked).collect();
        keep_smallest(&mut kept, context.groups_per_unit, context.groups)?;
        let worst = kept.last().map_or(u64::MAX, |last| last.0);
        kept.sort_unstable_by_key(|thing| thing.2);
        for (place, thing) in kept.iter().enumerate() {
            self.relocate(start + thing.2 as usize, start + place, context);
        }
        let unit = Unit { worst, len: kept.len() as u32, ..unit };
        self.units[number as usize] = unit;
        if kept.len() > FEW {
            self.index(number, &unit);
        }
        Ok(())
    }

    fn index(&mut self, number: u32, unit: &Unit) {
        let groups = &self.groups[unit.start as usize..][..unit.len as usize];
        self.places.insert(number, groups.iter().copied().zip(0..).collect());
    }

    /// Makes room for at least one more entry.
    fn make_room(&mut self, number: u32, context: &Context) -> Result<(), TallyError> {
        let unit = self.units[number as usize];
        let first = if context.limit() <= 8 { context.limit() } else { 4 };
        let room = (unit.room as usize * 2).max(first).min(context.limit());
        let start = match self.free[class(room, context)].pop() {
            Some(start) => start as usize,
            None => self.new_room(room, context)?,
        };
        for place in 0..unit.len as usize {
            self.relocate(unit.start as usize + place, start + place, context);
        }
        if unit.room > 0 {
            self.free[class(unit.room as usize, context)].push(unit.start);
        }
        self.units[number as usize] = Unit { start: start as u32, room: room as u32, ..unit };
        Ok(())
    }

    fn new_room(&mut self, room: usize, context: &Context) -> Result<usize, TallyError> {
        let start = self.groups.len();
        let end = small(start.saturating_add(room), "groups of units")? as usize;
        self.groups.resize(end, NONE);
        self.lanes.resize(end * context.layout.lanes.len(), N::default());
        self.cells.resize(end * context.layout.spreads.len(), CellBag::default());
        self.picks.resize(end * context.layout.picks.len(), PickBag::default());
        Ok(start)
    }

    /// Makes an entry empty and gives it to a group.
    fn clear(&mut self, entry: usize, group: u32, context: &Context) {
        self.groups[entry] = group;
        let [lanes, cells, picks] = sizes(context.layout);
        // Filling nothing is not free: some processors need hundreds of cycles for a store of no bytes to an empty vector.
        if lanes > 0 {
            self.lanes[entry * lanes..][..lanes].fill(N::default());
        }
        self.cells[entry * cells..][..cells].fill(CellBag::default());
        self.picks[entry * picks..][..picks].fill(PickBag::default());
    }

    /// Moves an entry; what was there is lost.
    fn relocate(&mut self, from: usize, to: usize, context: &Context) {
        if from == to {
            return;
        }
        let [lanes, cells, picks] = sizes(context.layout);
        self.groups[to] = self.groups[from];
        self.lanes.copy_within(from * lanes..(from + 1) * lanes, to * lanes);
        (0..cells)
            .for_each(|at| self.cells[to * cells + at] = std::mem::take(&mut self.cells[from * cells + at]));
        (0..picks)
            .for_each(|at| self.picks[to * picks + at] = std::mem::take(&mut self.picks[from * picks + at]));
    }

    /// Adds what each unit may count for to the totals of its groups.
    pub(crate) fn add_to(&mut self, totals: &mut Totals, context: &Context) -> Result<(), TallyError> {
        for number in 0..self.units.len() as u32 {
            if self.units[number as usize].len as usize > context.groups_per_unit {
                self.thin_out(number, context)?;
            }
            let unit = self.units[number as usize];
            for entry in unit.start as usize..(unit.start + unit.len) as usize {
                self.add_entry(entry, &unit, totals, context)?;
            }
        }
        Ok(())
    }

    fn add_entry(
        &mut self,
        entry: usize,
        unit: &Unit,
        totals: &mut Totals,
        context: &Context,
    ) -> Result<(), TallyError> {
        let group = self.groups[entry];
        let [lanes, cells, picks] = sizes(context.layout);
        let sums = &self.lanes[entry * lanes..][..lanes];
        totals.units[group as usize] += 1;
        for (part, recipe) in totals.parts.iter_mut().zip(&context.layout.recipes) {
            match (part, *recipe) {
                (Part::Cells(total), Recipe::Histogram { spread, most, .. }) => {
                    let counts = self.cells[entry * cells + spread].cells();
                    let all = counts.iter().map(|count| u128::from(count.1)).sum();
                    for &(cell, count) in counts {
                        let share = bound::scale(u128::from(count), all, most) as u64;
                        if share > 0 {
                            total.add(group, cell, share, context.secret)?;
                        }
                    }
                }
                (Part::Values(total), Recipe::Distinct { picks: pick }) => {
                    for &value in self.picks[entry * picks + pick].values(&context.picking(unit, pick))? {
                        total.add(group, value, context.secret)?;
                    }
                }
                (Part::Number(total), recipe) => {
                    total[group as usize] += number_of(&recipe, |lane| sums[lane].into());
                }
                _ => return Err(TallyError::ours("totals do not fit their recipe")),
            }
        }
        Ok(())
    }
}

impl UnitTable<i64> {
    pub(crate) fn widen(self) -> UnitTable<i128> {
        UnitTable {
            units: self.units,
            groups: self.groups,
            lanes: self.lanes.into_iter().map(i128::from).collect(),
            cells: self.cells,
            picks: self.picks,
            free: self.free,
            places: self.places,
        }
    }
}

/// What a unit counts for in one group.
fn number_of(recipe: &Recipe, lane: impl Fn(usize) -> i128) -> i128 {
    match *recipe {
        Recipe::Count { lane: rows, most } => bound::count(lane(rows), most),
        Recipe::Sum { lane: sum, unit } => bound::sum(lane(sum), unit),
        Recipe::Deviation { sum, there, centre, most } => {
            bound::deviation(lane(sum), lane(there), centre, most)
        }
        Recipe::Distinct { .. } | Recipe::Histogram { .. } => 0,
    }
}

fn sizes(layout: &Layout) -> [usize; 3] {
    [layout.lanes.len(), layout.spreads.len(), layout.picks.len()]
}

/// Rooms of the same class have the same size: they double until they reach the limit, which need not be a power of two.
fn class(room: usize, context: &Context) -> usize {
    if room == context.limit() { 63 } else { room.ilog2() as usize }
}
