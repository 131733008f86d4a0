//! [`RowSums`]: sums over rows where each row is a unit of its own.
//!
//! **Guarantee.** A row is in one group, so taking it away changes one group; its values were bounded when they were read.
//!
//! **Exactness.** A lane is an `i64` while (rows read) · (the furthest a row moves a lane) fits, and an `i128` from then on.
//!
//! Memory: groups × lanes, and the cells and values that occur, once for each feed.

use crate::error::TallyError;
use crate::hash::Secret;
use crate::layout::{Lane, Layout, Recipe};
use crate::steps::ABSENT;
use crate::totals::{Pairs, Part, Spread, Totals};
use crate::{bound, wide::Number, wide::fits};

/// Sums of one feed.
pub(crate) struct RowSums {
    rows: u64,
    lanes: Lanes,
    spreads: Vec<Spread>,
    pairs: Vec<Pairs>,
}

enum Lanes {
    Narrow(Vec<Vec<i64>>),
    Wide(Vec<Vec<i128>>),
}

impl RowSums {
    pub(crate) fn new(layout: &Layout) -> Self {
        let cells = layout.recipes.iter().filter_map(|recipe| match recipe {
            Recipe::Histogram { cells, .. } => Some(*cells),
            _ => None,
        });
        Self {
            rows: 0,
            lanes: Lanes::Narrow(vec![Vec::new(); layout.lanes.len()]),
            spreads: cells.map(Spread::new).collect(),
            pairs: layout.picks.iter().map(|_| Pairs::new()).collect(),
        }
    }

    /// Adds rows, given their groups and what was read of them.
    pub(crate) fn add(
        &mut self,
        layout: &Layout,
        groups: &[u32],
        sources: &[Vec<i64>],
        secret: &Secret,
    ) -> Result<(), TallyError> {
        self.rows += groups.len() as u64;
        if !fits(self.rows, layout.reach) {
            self.widen();
        }
        match &mut self.lanes {
            Lanes::Narrow(lanes) => add_lanes(lanes, layout, groups, sources),
            Lanes::Wide(lanes) => add_lanes(lanes, layout, groups, sources),
        }
        for (spread, &source) in self.spreads.iter_mut().zip(&layout.spreads) {
            for (&group, &cell) in groups.iter().zip(&sources[source]) {
                if cell != ABSENT {
                    spread.add(group, cell as u32, 1, secret)?;
                }
            }
        }
        for (pairs, pick) in self.pairs.iter_mut().zip(&layout.picks) {
            for (&group, &value) in groups.iter().zip(&sources[pick.source]) {
                if value != ABSENT {
                    pairs.add(group, value as u32, secret)?;
                }
            }
        }
        Ok(())
    }

    fn widen(&mut self) {
        if let Lanes::Narrow(lanes) = &mut self.lanes {
            let wide = |lane: Vec<i64>| lane.into_iter().map(i128::from).collect();
            self.lanes = Lanes::Wide(std::mem::take(lanes).into_iter().map(wide).collect());
        }
    }

    /// The sums as totals: every row was a unit.
    pub(crate) fn finish(mut self, layout: &Layout) -> Totals {
        self.widen();
        let Lanes::Wide(lanes) = &self.lanes else { return Totals::new(layout, 0) };
        let mut totals = Totals::new(layout, lanes.first().map_or(0, Vec::len));
        for (lane, kind) in lanes.iter().zip(&layout.lanes) {
            if *kind == Lane::Rows {
                totals.units = lane.iter().map(|&rows| rows as u64).collect();
            }
        }
        for (part, recipe) in totals.parts.iter_mut().zip(&layout.recipes) {
            match (part, recipe) {
                (Part::Number(numbers), recipe) => {
                    numbers.set(|group| number_of(recipe, |lane| lanes[lane][group]));
                }
                (Part::Cells(cells), Recipe::Histogram { spread, most: 1.., .. }) => {
                    std::mem::swap(cells, &mut self.spreads[*spread]);
                }
                (Part::Values(values), Recipe::Distinct { picks }) if layout.picks[*picks].most > 0 => {
                    std::mem::swap(values, &mut self.pairs[*picks]);
                }
                (Part::Cells(_) | Part::Values(_) | Part::Edges(..), _) => {}
            }
        }
        totals
    }
}

/// A measure of one group, every row of which counts for itself.
fn number_of(recipe: &Recipe, lane: impl Fn(usize) -> i128) -> i128 {
    match *recipe {
        Recipe::Count { lane: rows, most } => lane(rows) * bound::count(1i64, most),
        Recipe::Sum { lane: sum, .. } => lane(sum),
        Recipe::Deviation { sum, there, centre, most } => {
            (lane(sum) - lane(there) * i128::from(centre)) * bound::count(1i64, most)
        }
        Recipe::Distinct { .. } | Recipe::Matched { .. } | Recipe::Histogram { .. } => 0,
    }
}

fn add_lanes<N: Number>(lanes: &mut [Vec<N>], layout: &Layout, groups: &[u32], sources: &[Vec<i64>]) {
    let reached = groups.iter().max().map_or(0, |&group| group as usize + 1);
    for (lane, kind) in lanes.iter_mut().zip(&layout.lanes) {
        if lane.len() < reached {
            lane.resize(reached.next_power_of_two(), N::default());
        }
        let lane = &mut lane[..];
        match *kind {
            Lane::Rows => groups.iter().for_each(|&group| lane[group as usize].add(1)),
            Lane::There(source) => {
                for (&group, &value) in groups.iter().zip(&sources[source]) {
                    lane[group as usize].add(i64::from(value != ABSENT));
                }
            }
            Lane::Sum(source) => {
                for (&group, &value) in groups.iter().zip(&sources[source]) {
                    lane[group as usize].add(if value == ABSENT { 0 } else { value });
                }
            }
        }
    }
}
