//! Totals on their way to a released table.
//!
//! **Public keys.** Every combination is a finest cell, with rows or without.
//!
//! **Secret keys.** Beginnings of keys (the first, the first two, …) are shown by the rule of [`KeyRule`](crate::KeyRule), each length with noise of its own, and so
//! is what a shown one begins with. A row whose keys are not shown counts under the longest beginning that is, as one of its *others*: the remaining keys are
//! NULL there, and GROUPING says 0 of them. So every row is in one finest cell, and totals are about all rows. NULL itself is never shown as a
//! key; it counts among the others.
//!
//! *Units of a beginning.* The tally has units of finest groups: n₁, n₂, … of one beginning. max(max nᵢ, ⌈Σ nᵢ/M⌉) is at most the number of different units, moves by at most
//! 1 with one of them (each nᵢ by 1, their sum by M), is 0 without any and 1 with one alone: so the rule for keys holds for it as for units.
//!
//! *Reach.* Which cells there are is known once keys are chosen; whichever they are, a unit moves cells that are sums of its at most M groups.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, UInt32Array, UInt64Array};
use datafusion::arrow::compute::{cast, partition, take};
use datafusion::common::ScalarValue;
use demur_noise::Entropy;
use demur_plan::{Groupings, KeySet, Keys};
use demur_tally::Measure;

use super::{Level, Levels, round, variance};
use crate::EngineError;
use crate::quote::Subject;
use crate::tallied::{Shown, Tallied};

/// The finest cells of a question with totals.
struct Finest {
    /// The cell of each group of the tally; a group that is no public key has none.
    cell_of: Vec<Option<u32>>,
    cells: usize,
    /// The keys of each cell, NULL for others.
    keys: Vec<ArrayRef>,
    /// For the first 0, 1, … keys, the level of them.
    firsts: Vec<Level>,
    /// How many values each key has, if they are public.
    sizes: Option<Vec<usize>>,
}

impl Finest {
    /// The level of some keys.
    fn level(&self, set: KeySet) -> Result<Level, EngineError> {
        let first = (0..self.firsts.len()).find(|&keys| KeySet::first(keys) == set);
        match (first, &self.sizes) {
            (Some(first), _) => Ok(self.firsts[first].clone()),
            (None, Some(sizes)) => Ok(Level::over(sizes, set)),
            (None, None) => Err(EngineError::after_the_charge()),
        }
    }
}

impl Tallied<'_> {
    /// Chooses keys, adds noise to levels, and makes them fit together.
    pub(crate) fn add_up(
        &self,
        totals: &Groupings,
        entropy: &mut Entropy,
    ) -> Result<(Vec<ArrayRef>, Shown), EngineError> {
        let finest = match &self.quote.bounded.keys {
            Keys::Public(keys) => self.all_cells(totals, keys)?,
            _ => self.chosen_cells(totals, entropy)?,
        };
        let shown = totals.sets.iter().map(|set| finest.level(*set)).collect::<Result<Vec<_>, _>>()?;
        let mut noisy = vec![Vec::new(); self.quote.subjects.len()];
        for (first, subject) in self.quote.subjects.iter().enumerate() {
            // What is known of a subject stands with its first level.
            if self.quote.subjects.iter().position(|other| other == subject) == Some(first) {
                noisy[first] = self.fitted(*subject, &finest, &shown, entropy)?;
            }
        }
        let groups = shown.iter().map(|level| level.cells).collect();
        Ok((self.total_keys(totals, &finest, &shown)?, Shown::new(groups, noisy)))
    }

    /// The numbers of a subject at all shown levels, one level after the other.
    fn fitted(
        &self,
        subject: Subject,
        finest: &Finest,
        shown: &[Level],
        entropy: &mut Entropy,
    ) -> Result<Vec<i128>, EngineError> {
        let items = self.quote.items_of(subject);
        let cells = self.cells(subject, finest);
        let mut levels = Vec::new();
        let mut noisy = Vec::new();
        for &(item, set) in &items {
            let level = finest.level(set)?;
            let mut numbers = match &self.quote.trees[item] {
                None => level.sums(&cells[0]),
                Some(tree) => {
                    let of_cell: Vec<_> = cells.iter().map(|cells| level.sums(cells)).collect();
                    let mut nodes = Vec::new();
                    for group in 0..level.cells {
                        let own: Vec<i128> = of_cell.iter().map(|sums| sums[group]).collect();
                        tree.append_sums(&own, &mut nodes)?;
                    }
                    nodes
                }
            };
            self.disturb(item, &mut numbers, entropy);
            levels.push(level);
            noisy.push(numbers);
        }
        if items.first().is_some_and(|(item, _)| self.quote.trees[*item].is_some()) {
            // Quantiles are found at each shown level by itself.
            return Ok(noisy.concat());
        }
        let noises = items.iter().map(|(item, _)| &self.quote.pricing.noises()[*item]);
        let measured = levels.iter().zip(noises.map(variance));
        let system = Levels::new(measured.collect());
        let counts = match subject {
            Subject::Units => true,
            Subject::Measure(index) => {
                matches!(self.quote.bounded.spec.measures[index], Measure::Count { .. })
            }
        };
        let fitted = if counts { system.fit_counts(&noisy) } else { system.fit(&noisy) };
        let whole = round(&fitted, &finest.firsts.iter().collect::<Vec<_>>(), counts);
        Ok(shown.iter().flat_map(|level| level.sums(&whole)).collect())
    }

    /// The true numbers of the finest cells, for each cell of a histogram.
    fn cells(&self, subject: Subject, finest: &Finest) -> Vec<Vec<i128>> {
        let width = match subject {
            Subject::Units => 1,
            Subject::Measure(index) => self.quote.bounded.spec.measures[index].cells(),
        };
        let numbers = |group: usize| match subject {
            Subject::Units => vec![i128::from(self.tally.units[group])].into(),
            Subject::Measure(index) => self.tally.measures[index].of(group),
        };
        let mut cells = vec![vec![0; finest.cells]; width];
        for (group, cell) in finest.cell_of.iter().enumerate() {
            let Some(cell) = *cell else { continue };
            for (cells, number) in cells.iter_mut().zip(numbers(group).iter()) {
                cells[cell as usize] += number;
            }
        }
        cells
    }

    fn all_cells(&self, totals: &Groupings, keys: &[Vec<ScalarValue>]) -> Result<Finest, EngineError> {
        let failed = EngineError::after_the_charge;
        let sizes = totals.sizes.clone().ok_or_else(failed)?;
        let mut cell_of = vec![None; self.tally.units.len()];
        for (cell, place) in self.places(keys)?.into_iter().enumerate() {
            if let Some(group) = place {
                cell_of[group] = Some(u32::try_from(cell).map_err(|_| failed())?);
            }
        }
        let column = |key: usize| {
            ScalarValue::iter_to_array(keys.iter().map(|row| row[key].clone())).map_err(|_| failed())
        };
        let firsts = (0..=sizes.len()).map(|first| Level::over(&sizes, KeySet::first(first))).collect();
        let columns = (0..sizes.len()).map(column).collect::<Result<_, _>>()?;
        Ok(Finest { cell_of, cells: keys.len(), keys: columns, firsts, sizes: Some(sizes) })
    }

    fn chosen_cells(&self, totals: &Groupings, entropy: &mut Entropy) -> Result<Finest, EngineError> {
        let failed = EngineError::after_the_charge;
        let rule = self.quote.pricing.rule().ok_or_else(failed)?;
        let (keys, groups) = (totals.names.len(), self.tally.units.len());
        // For each group the number of its beginning, by length; groups with the same beginning lie together.
        let mut runs = vec![vec![0u32; groups]];
        let mut shown = vec![vec![true]];
        for length in 1..=keys {
            let ranges = match groups {
                0 => Vec::new(),
                _ => partition(&self.tally.keys[..length]).map_err(|_| failed())?.ranges(),
            };
            let mut run = vec![0; groups];
            let mut units = Vec::new();
            for (number, range) in ranges.iter().enumerate() {
                run[range.clone()].fill(u32::try_from(number).map_err(|_| failed())?);
                units.push(units_of(&self.tally.units[range.clone()], self.quote.bounded.groups_per_unit()));
            }
            let mut kept = rule.keep(&units, entropy);
            for (kept, range) in kept.iter_mut().zip(&ranges) {
                *kept &= self.tally.keys[..length].iter().all(|key| key.is_valid(range.start));
            }
            runs.push(run);
            shown.push(kept);
        }
        // What a shown one begins with is shown.
        for length in (1..=keys).rev() {
            for group in 0..groups {
                if shown[length][runs[length][group] as usize] {
                    shown[length - 1][runs[length - 1][group] as usize] = true;
                }
            }
        }
        Ok(self.labelled(&runs, &shown))
    }

    /// The cells that shown beginnings make: each, and its others.
    fn labelled(&self, runs: &[Vec<u32>], shown: &[Vec<bool>]) -> Finest {
        let (keys, groups) = (runs.len() - 1, self.tally.units.len());
        let longest = |group: usize| {
            (0..=keys).rev().find(|&length| shown[length][runs[length][group] as usize]).unwrap_or(0)
        };
        // (length, run), with the last group it has; others come after what they are others of.
        let mut last: HashMap<(usize, u32), usize> = HashMap::from([((0, 0), groups)]);
        for (length, (runs, shown)) in runs.iter().zip(shown).enumerate().skip(1) {
            for (group, &run) in runs.iter().enumerate() {
                if shown[run as usize] {
                    last.insert((length, run), group);
                }
            }
        }
        let mut cells: Vec<((usize, u32), usize)> = last.into_iter().collect();
        cells.sort_by_key(|((length, _), end)| (*end, keys - length));
        let place: HashMap<(usize, u32), u32> =
            cells.iter().enumerate().map(|(cell, (name, _))| (*name, cell as u32)).collect();
        let label = |group: usize| {
            let length = longest(group);
            place[&(length, runs[length][group])]
        };
        let level = |first: usize| {
            let mut numbers: HashMap<(usize, u32), u32> = HashMap::new();
            let part_of = cells.iter().map(|((length, run), end)| {
                let name = if *length > first { (first, runs[first][*end]) } else { (*length, *run) };
                let next = numbers.len() as u32;
                *numbers.entry(name).or_insert(next)
            });
            let part_of = part_of.collect();
            Level { part_of, cells: numbers.len() }
        };
        let column = |key: usize| {
            let place = |((length, _), end): &((usize, u32), usize)| (*length > key).then_some(*end as u32);
            let places = cells.iter().map(place).collect::<UInt32Array>();
            take(&self.tally.keys[key], &places, None)
        };
        Finest {
            cell_of: (0..groups).map(|group| Some(label(group))).collect(),
            cells: cells.len(),
            keys: (0..keys).filter_map(|key| column(key).ok()).collect(),
            firsts: (0..=keys).map(level).collect(),
            sizes: None,
        }
    }

    /// The key columns of all levels, and what each total runs over.
    fn total_keys(
        &self,
        totals: &Groupings,
        finest: &Finest,
        shown: &[Level],
    ) -> Result<Vec<ArrayRef>, EngineError> {
        let failed = |_| EngineError::after_the_charge();
        let fields = self.quote.bounded.after.released.fields();
        let mut columns = Vec::new();
        for (key, values) in finest.keys.iter().enumerate() {
            let mut places: Vec<Option<u32>> = Vec::new();
            for (set, level) in totals.sets.iter().zip(shown) {
                let mut of_level = vec![None; level.cells];
                for (cell, &part) in level.part_of.iter().enumerate().rev() {
                    of_level[part as usize] = set.contains(key).then_some(cell as u32);
                }
                places.append(&mut of_level);
            }
            let column = take(values, &UInt32Array::from(places), None).map_err(failed)?;
            columns.push(cast(&column, fields[key].data_type()).map_err(failed)?);
        }
        let keys = totals.names.len();
        let ids = totals.sets.iter().zip(shown);
        let ids = ids.flat_map(|(set, level)| std::iter::repeat_n(set.grouping_id(keys), level.cells));
        let ids: ArrayRef = Arc::new(UInt64Array::from_iter_values(ids));
        columns.push(cast(&ids, fields[keys].data_type()).map_err(failed)?);
        Ok(columns)
    }
}

/// At most the number of different units of some groups, moved by at most 1 with one of them; see the module text.
fn units_of(groups: &[u64], groups_per_unit: u64) -> u64 {
    let most = groups.iter().copied().max().unwrap_or(0);
    most.max(groups.iter().sum::<u64>().div_ceil(groups_per_unit))
}

#[cfg(test)]
mod tests {
    use super::units_of;

    /// Every way in which one unit with M groups can be added to some groups.
    #[test]
    fn the_units_of_a_beginning_move_by_one() {
        for most in 1u64..=3 {
            for counts in 0..256u64 {
                let before: Vec<u64> = (0..4).map(|group| counts >> (2 * group) & 3).collect();
                for joined in 0..16u64 {
                    if u64::from(joined.count_ones()) > most {
                        continue;
                    }
                    let after: Vec<u64> =
                        before.iter().enumerate().map(|(at, n)| n + (joined >> at & 1)).collect();
                    let (few, many) = (units_of(&before, most), units_of(&after, most));
                    assert!(few <= many && many <= few + 1, "{before:?} {after:?} {most}");
                }
            }
            assert_eq!(units_of(&[1; 2][..most.min(2) as usize], most), 1);
            assert_eq!(units_of(&[0, 0], most), 0);
        }
    }
}
