//! [`Layout`]: which numbers must be kept so that every measure can be made of them.
//!
//! **Definition.** A *source* is what is read of each row: one 64-bit word, or nothing ([`ABSENT`](crate::steps::ABSENT)). A *lane* is a sum over rows, kept for each group and
//! (where there are units) each unit. A *heap* is what is kept beside lanes: cells of a histogram, or picked values. A *recipe* makes
//! a measure of lanes and heaps. Measures share what they can: COUNT, SUM and AVG of one column have one source and two lanes.

use crate::record::{Packing, Place};
use crate::spec::{Bounds, Measure, Spec, Step};

/// What is read of each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The steps of an input.
    Steps { input: usize, step: Step, row: Bounds },
    /// Whether an input is there.
    There { input: usize },
    /// The cell of an input's steps.
    Cell { input: usize, step: Step, row: Bounds, cells: u32 },
    /// The number of an input's value, in the numbering `domain`.
    Value { input: usize, domain: usize },
}

/// A sum over rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Of 1 for each row.
    Rows,
    /// Of 1 for each row where a source is there.
    There(usize),
    /// Of a source.
    Sum(usize),
}

/// How a measure is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recipe {
    Count { lane: usize, most: u64 },
    Sum { lane: usize, unit: Bounds },
    Deviation { sum: usize, there: usize, centre: i64, most: u64 },
    Distinct { picks: usize },
    Matched { picks: usize, most: u64 },
    Histogram { spread: usize, cells: u32, most: u64 },
}

/// Values of which a unit brings some.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick {
    pub(crate) source: usize,
    pub(crate) domain: usize,
    pub(crate) most: u64,
}

/// Everything kept for the measures of a spec.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub(crate) sources: Vec<Source>,
    pub(crate) lanes: Vec<Lane>,
    /// Sources of picked values, one for each [`Measure::Distinct`] and [`Measure::Matched`].
    pub(crate) picks: Vec<Pick>,
    /// Sources of cells, one for each [`Measure::Histogram`].
    pub(crate) spreads: Vec<usize>,
    /// The input of each numbering of values.
    pub(crate) domains: Vec<usize>,
    /// One for each measure.
    pub(crate) recipes: Vec<Recipe>,
    /// How sources travel to their units.
    pub(crate) packing: Packing,
    /// No row moves a lane further.
    pub(crate) reach: u64,
    /// No bound changes what a unit has in a group, if it has no more rows there.
    pub(crate) free_rows: u64,
    /// Whether some of it is made of rows one by one, not of the sums over their heads.
    pub(crate) by_parts: bool,
}

impl Layout {
    pub(crate) fn new(spec: &Spec) -> Self {
        let mut layout = Self { reach: 1, ..Self::default() };
        if !spec.has_unit {
            layout.lane(Lane::Rows);
        }
        // Steps first: whoever only asks whether an input is there can then ask them.
        for measure in &spec.measures {
            if let Measure::Sum { input, step, .. } | Measure::Deviation { input, step, .. } = *measure {
                layout.source(Source::Steps { input, step, row: row_bounds(spec, measure) });
            }
        }
        for measure in &spec.measures {
            let recipe = layout.recipe(spec, measure);
            layout.recipes.push(recipe);
        }
        layout.packing = Packing::new(&layout.sources);
        layout.free_rows = spec.measures.iter().map(free_rows).min().unwrap_or(u64::MAX);
        layout.by_parts = !layout.spreads.is_empty()
            || !layout.picks.is_empty()
            || layout.lanes.iter().any(|lane| layout.sum_of(lane).is_none());
        layout
    }

    /// Which of the [`Sums`](crate::entries::Sums) over heads a lane is.
    pub(crate) fn sum_of(&self, lane: &Lane) -> Option<usize> {
        let in_head = |source: usize| matches!(self.packing.places[source], Place::Head { .. });
        match *lane {
            Lane::Rows => Some(0),
            Lane::There(source) => in_head(source).then_some(1),
            Lane::Sum(source) => in_head(source).then_some(2),
        }
    }

    fn recipe(&mut self, spec: &Spec, measure: &Measure) -> Recipe {
        let row = row_bounds(spec, measure);
        match *measure {
            Measure::Count { input: None, most } => Recipe::Count { lane: self.lane(Lane::Rows), most },
            Measure::Count { input: Some(input), most } => Recipe::Count { lane: self.there(input), most },
            Measure::Sum { input, step, unit, .. } => Recipe::Sum { lane: self.sum(input, step, row), unit },
            Measure::Deviation { input, step, centre, most, .. } => {
                Recipe::Deviation { sum: self.sum(input, step, row), there: self.there(input), centre, most }
            }
            Measure::Distinct { input, most } => Recipe::Distinct { picks: self.pick(input, most) },
            Measure::Matched { input, most, seen } if spec.has_unit => {
                Recipe::Matched { picks: self.pick(input, seen), most }
            }
            // A row has one value and brings it.
            Measure::Matched { input, most, .. } => Recipe::Distinct { picks: self.pick(input, most) },
            Measure::Histogram { input, step, cells, most, .. } => {
                let source = self.source(Source::Cell { input, step, row, cells });
                self.spreads.push(source);
                Recipe::Histogram { spread: self.spreads.len() - 1, cells, most }
            }
        }
    }

    fn pick(&mut self, input: usize, most: u64) -> usize {
        let domain = place(&mut self.domains, input);
        let source = self.source(Source::Value { input, domain });
        self.picks.push(Pick { source, domain, most });
        self.picks.len() - 1
    }

    fn source(&mut self, source: Source) -> usize {
        place(&mut self.sources, source)
    }

    fn lane(&mut self, lane: Lane) -> usize {
        place(&mut self.lanes, lane)
    }

    fn sum(&mut self, input: usize, step: Step, row: Bounds) -> usize {
        self.reach = self.reach.max(row.low.unsigned_abs()).max(row.high.unsigned_abs());
        let source = self.source(Source::Steps { input, step, row });
        self.lane(Lane::Sum(source))
    }

    fn there(&mut self, wanted: usize) -> usize {
        let known = self.sources.iter().position(|source| {
            matches!(source, Source::Steps { input, .. } | Source::There { input } if *input == wanted)
        });
        let source = known.unwrap_or_else(|| self.source(Source::There { input: wanted }));
        self.lane(Lane::There(source))
    }
}

/// The bounds of a row's steps: where each row is a unit, its unit's bounds are its own too.
///
/// First into [a, b], then into [c, d], is the same as into [a, b] with both ends forced into [c, d].
fn row_bounds(spec: &Spec, measure: &Measure) -> Bounds {
    match *measure {
        Measure::Sum { row, unit, .. } if !spec.has_unit => {
            Bounds { low: row.low.clamp(unit.low, unit.high), high: row.high.clamp(unit.low, unit.high) }
        }
        Measure::Sum { row, .. } | Measure::Deviation { row, .. } | Measure::Histogram { row, .. } => row,
        Measure::Count { .. } | Measure::Distinct { .. } | Measure::Matched { .. } => {
            Bounds { low: 0, high: 0 }
        }
    }
}

/// So many rows of a unit come to something that no bound of this measure changes, whatever they are.
fn free_rows(measure: &Measure) -> u64 {
    match *measure {
        Measure::Count { most, .. } | Measure::Deviation { most, .. } => most,
        Measure::Sum { row, unit, .. } => {
            let rows = |row: i64, unit: i64| unit.unsigned_abs().checked_div(row.unsigned_abs());
            let [up, down] = [rows(row.high.max(0), unit.high), rows(row.low.min(0), unit.low)];
            up.into_iter().chain(down).min().unwrap_or(u64::MAX)
        }
        Measure::Distinct { .. } | Measure::Matched { .. } | Measure::Histogram { .. } => 0,
    }
}

/// Where an item is, after it has been added if it was not there.
fn place<T: PartialEq>(items: &mut Vec<T>, item: T) -> usize {
    items.iter().position(|known| *known == item).unwrap_or_else(|| {
        items.push(item);
        items.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_sum_and_average_of_a_column_read_it_once() {
        let row = Bounds { low: 0, high: 100 };
        let spec = Spec {
            has_unit: true,
            keys: 1,
            inputs: 1,
            groups_per_unit: 5,
            measures: vec![
                Measure::Count { input: None, most: 10 },
                Measure::Count { input: Some(0), most: 10 },
                Measure::Sum { input: 0, step: Step::One, row, unit: Bounds { low: 0, high: 500 } },
                Measure::Deviation { input: 0, step: Step::One, row, centre: 50, most: 10 },
            ],
        };
        let layout = Layout::new(&spec);
        assert_eq!(layout.sources, [Source::Steps { input: 0, step: Step::One, row }]);
        assert_eq!(layout.lanes, [Lane::Rows, Lane::There(0), Lane::Sum(0)]);
        assert_eq!(layout.reach, 100);
    }
}
