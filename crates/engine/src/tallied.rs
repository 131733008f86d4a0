//! [`Tallied`]: exact counts of groups on their way to a released table.
//!
//! **Way.** Keys are chosen, noise is added to the numbers of the kept groups, statistics and their intervals are made of noisy numbers, and the upper part of
//! the query is run over them. Nothing after the noise sees a true number.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::{
    Array, ArrayRef, Decimal128Array, Float64Array, Float64Builder, Int64Array, Int64Builder, ListBuilder,
    UInt32Array, new_empty_array,
};
use datafusion::arrow::compute::{cast, concat, take};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use demur_core::PrivacyLoss;
use demur_noise::Entropy;
use demur_plan::{Keys, Recipe, Statistic};
use demur_tally::Tally;

use crate::EngineError;
use crate::estimate::{Estimate, Estimates, Noisy, outside};
use crate::interval::Interval;
use crate::postprocess::Postprocess;
use crate::private::Private;
use crate::quantile::{Fit, Tree};
use crate::quote::{Quote, Subject};
use crate::table::Table;

/// What was counted for a question.
pub(crate) struct Tallied<'a> {
    pub(crate) quote: &'a Quote,
    pub(crate) tally: Tally,
}

impl Private for Tallied<'_> {
    fn loss(&self) -> PrivacyLoss {
        self.quote.pricing.loss()
    }

    fn publish(self, entropy: &mut Entropy) -> Result<Vec<String>, EngineError> {
        let afterwards = self.quote.afterwards()?;
        Ok(self.table(&afterwards, entropy)?.texts())
    }
}

/// So many nodes are held at once: 64 MB of them.
const AT_ONCE: usize = 1 << 22;
/// So many groups keep all cores busy.
const FEWEST: usize = 64;

/// An item and its noisy numbers.
type Reused = (usize, Vec<i128>);

/// Groups that are shown.
pub(crate) struct Shown {
    /// How many there are of each grouping; without totals there is one.
    pub(crate) groups: Vec<usize>,
    /// For each item its noisy numbers, group by group.
    pub(crate) noisy: Vec<Vec<i128>>,
    /// For each item a place for what the nodes of each group come to.
    fits: Vec<Vec<OnceLock<Fit>>>,
}

impl Shown {
    pub(crate) fn new(groups: Vec<usize>, noisy: Vec<Vec<i128>>) -> Self {
        let all = groups.iter().sum();
        let fits = noisy.iter().map(|_| (0..all).map(|_| OnceLock::new()).collect()).collect();
        Self { groups, noisy, fits }
    }
}

impl Tallied<'_> {
    /// Draws noise and makes the table that is shown.
    pub(crate) fn table(
        &self,
        afterwards: &Postprocess<'_>,
        entropy: &mut Entropy,
    ) -> Result<Table, EngineError> {
        let columns = match &self.quote.bounded.totals {
            Some(totals) => {
                let (keys, shown) = self.add_up(totals, entropy)?;
                [keys, self.answers(&shown)?].concat()
            }
            None => self.add_noise(entropy)?,
        };
        afterwards.run(columns).map_err(|_| EngineError::after_the_charge())
    }

    /// The statistics of what is shown, and the ends of their intervals.
    fn answers(&self, shown: &Shown) -> Result<Vec<ArrayRef>, EngineError> {
        let mut columns = Vec::new();
        let mut all_ends = Vec::new();
        for width in 0..self.quote.bounded.after.widths {
            let mut ends = [Vec::new(), Vec::new()];
            for (index, statistic) in self.quote.bounded.statistics.iter().enumerate() {
                let (values, low, high) = self.statistic(index, statistic, width, shown)?;
                if width == 0 {
                    columns.push(values);
                }
                ends[0].push(low);
                ends[1].push(high);
            }
            all_ends.extend(ends.into_iter().flatten());
        }
        columns.append(&mut all_ends);
        Ok(columns)
    }

    /// Chooses keys, adds noise to what is kept, and makes answers of it: some groups at once, since the nodes of a group take a thousand times the room of its answers.
    fn add_noise(&self, entropy: &mut Entropy) -> Result<Vec<ArrayRef>, EngineError> {
        let (groups, reused) = self.choose(entropy)?;
        let nodes: usize = self.quote.trees.iter().flatten().map(Tree::nodes).sum();
        let at_once = AT_ONCE.checked_div(nodes).map_or(groups.len(), |groups| groups.max(FEWEST));
        let mut parts = Vec::new();
        let mut start = 0;
        while start < groups.len() || parts.is_empty() {
            let end = (start + at_once).min(groups.len());
            let numbers = |index: usize| match &reused {
                Some((reused, numbers)) if *reused == index => Ok(numbers[start..end].to_vec()),
                _ => self.noisy(index, &groups[start..end], entropy),
            };
            let noisy = (0..self.quote.subjects.len()).map(numbers).collect::<Result<Vec<_>, _>>()?;
            parts.push(self.answers(&Shown::new(vec![end - start], noisy))?);
            start = end;
        }
        let whole = |column: usize| {
            let parts: Vec<&dyn Array> = parts.iter().map(|part| part[column].as_ref()).collect();
            concat(&parts).map_err(|_| EngineError::after_the_charge())
        };
        let answers = (0..parts[0].len()).map(whole).collect::<Result<Vec<_>, _>>()?;
        Ok([self.keys(&groups)?, answers].concat())
    }

    /// Where the groups that are shown are in the tally, `None` for a public key without rows; and the noisy numbers that told which, if they are an answer too.
    fn choose(&self, entropy: &mut Entropy) -> Result<(Vec<Option<usize>>, Option<Reused>), EngineError> {
        let pricing = &self.quote.pricing;
        Ok(match &self.quote.bounded.keys {
            Keys::None => (vec![(!self.tally.units.is_empty()).then_some(0)], None),
            Keys::Public(keys) => (self.places(keys)?, None),
            Keys::Private => {
                let rule = pricing.rule().ok_or_else(EngineError::after_the_charge)?;
                let (kept, reused) = match rule.reuse() {
                    None => (rule.keep(&self.tally.units, entropy), None),
                    Some(index) => {
                        let all: Vec<_> = (0..self.tally.units.len()).map(Some).collect();
                        let mut numbers = self.noisy(index, &all, entropy)?;
                        let kept = rule.keep_noisy(&self.tally.units, &numbers);
                        let mut keep = kept.iter();
                        numbers.retain(|_| keep.next().copied().unwrap_or(false));
                        (kept, Some((index, numbers)))
                    }
                };
                let kept = kept.iter().enumerate().filter(|(_, kept)| **kept);
                (kept.map(|(group, _)| Some(group)).collect(), reused)
            }
        })
    }

    /// The noisy numbers of a subject for these groups.
    fn noisy(
        &self,
        index: usize,
        groups: &[Option<usize>],
        entropy: &mut Entropy,
    ) -> Result<Vec<i128>, EngineError> {
        let width = self.quote.trees[index].as_ref().map_or(1, Tree::nodes);
        let mut numbers = Vec::with_capacity(groups.len() * width);
        for group in groups {
            match (self.quote.subjects[index], &self.quote.trees[index]) {
                (Subject::Units, _) => {
                    numbers.push(group.map_or(0, |group| i128::from(self.tally.units[group])))
                }
                (Subject::Measure(measure), None) => {
                    numbers.push(group.map_or(0, |group| self.tally.measures[measure].of(group)[0]))
                }
                (Subject::Measure(measure), Some(tree)) => match group {
                    Some(group) => {
                        tree.append_sums(&self.tally.measures[measure].of(*group), &mut numbers)?
                    }
                    None => numbers.resize(numbers.len() + width, 0),
                },
            }
        }
        self.disturb(index, &mut numbers, entropy);
        Ok(numbers)
    }

    /// Adds the noise of an item.
    pub(crate) fn disturb(&self, index: usize, numbers: &mut [i128], entropy: &mut Entropy) {
        let mut drawn = [0; 256];
        for numbers in numbers.chunks_mut(drawn.len()) {
            let drawn = &mut drawn[..numbers.len()];
            self.quote.pricing.noises()[index].fill(entropy, drawn);
            for (number, drawn) in numbers.iter_mut().zip(drawn) {
                *number = number.saturating_add(*drawn);
            }
        }
    }

    /// Where public keys are in the tally.
    pub(crate) fn places(&self, keys: &[Vec<ScalarValue>]) -> Result<Vec<Option<usize>>, EngineError> {
        let failed = |_| EngineError::after_the_charge();
        let mut found = HashMap::new();
        for group in 0..self.tally.units.len() {
            let key = self.tally.keys.iter().map(|array| ScalarValue::try_from_array(array, group));
            found.insert(key.collect::<Result<Vec<_>, _>>().map_err(failed)?, group);
        }
        Ok(keys.iter().map(|key| found.get(key).copied()).collect())
    }

    /// The key columns of what is shown.
    fn keys(&self, groups: &[Option<usize>]) -> Result<Vec<ArrayRef>, EngineError> {
        let failed = |_| EngineError::after_the_charge();
        let fields = self.quote.bounded.after.released.fields();
        let kinds = fields.iter().take(self.quote.bounded.spec.keys).map(|field| field.data_type());
        let column = |(index, kind): (usize, &DataType)| match &self.quote.bounded.keys {
            Keys::Public(keys) if keys.is_empty() => Ok(new_empty_array(kind)),
            Keys::Public(keys) => {
                let values =
                    ScalarValue::iter_to_array(keys.iter().map(|key| key[index].clone())).map_err(failed)?;
                cast(&values, kind).map_err(|_| EngineError::after_the_charge())
            }
            _ => {
                let places = groups.iter().flatten().map(|group| *group as u32);
                let places = UInt32Array::from_iter_values(places);
                let values = take(&self.tally.keys[index], &places, None)
                    .map_err(|_| EngineError::after_the_charge())?;
                cast(&values, kind).map_err(|_| EngineError::after_the_charge())
            }
        };
        kinds.enumerate().map(column).collect()
    }

    /// A statistic of every shown group, with the ends of its interval of this width.
    fn statistic(
        &self,
        index: usize,
        statistic: &Statistic,
        width: usize,
        shown: &Shown,
    ) -> Result<(ArrayRef, ArrayRef, ArrayRef), EngineError> {
        // A tree is work for a fifth of a millisecond, a sum for nothing.
        let least = match statistic.recipe {
            Recipe::Quantiles { .. } | Recipe::Extreme { .. } | Recipe::Buckets { .. } => 8,
            Recipe::Moments { .. } => 64,
            _ => 8192,
        };
        let mut estimates = Vec::new();
        let mut start = 0;
        for (set, &groups) in shown.groups.iter().enumerate() {
            let inputs = self.quote.inputs(&statistic.recipe, set).into_iter().map(|item| {
                let tree = self.quote.trees[item.index].as_ref();
                let width = tree.map_or(1, Tree::nodes);
                let numbers = shown.noisy[item.numbers].get(start * width..(start + groups) * width);
                let numbers = numbers.ok_or_else(EngineError::after_the_charge)?;
                let fits = &shown.fits[item.numbers][start..start + groups];
                Ok(Noisy { numbers, tree, fits, ..item.noise })
            });
            let inputs = inputs.collect::<Result<Vec<_>, EngineError>>()?;
            let ratio = self.quote.ratios[width][set][index].as_ref();
            let of_set = Estimates::new(&statistic.recipe, inputs, ratio, outside(width))?;
            estimates.extend(on_all_cores(groups, least, |group| of_set.of(group))?);
            start += groups;
        }
        let end = |pick: fn(Interval) -> f64| -> ArrayRef {
            Arc::new(estimates.iter().map(|estimate| estimate.interval.map(pick)).collect::<Float64Array>())
        };
        Ok((values(&estimates, statistic), end(|interval| interval.low), end(|interval| interval.high)))
    }
}

/// f(0), f(1), … in order, on all cores where each has at least so many to do.
fn on_all_cores<T: Send>(
    count: usize,
    least: usize,
    f: impl Fn(usize) -> Result<T, EngineError> + Sync,
) -> Result<Vec<T>, EngineError> {
    // Who has little to do does not even ask how many cores there are.
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let share = if count <= least { count } else { count.div_ceil(cores()).max(least) };
    if count <= share {
        return (0..count).map(f).collect();
    }
    std::thread::scope(|scope| {
        let part = |start: usize| {
            let (f, end) = (&f, (start + share).min(count));
            scope.spawn(move || (start..end).map(f).collect::<Result<Vec<_>, _>>())
        };
        let parts: Vec<_> = (0..count).step_by(share).map(part).collect();
        let mut all = Vec::with_capacity(count);
        for part in parts {
            all.extend(part.join().map_err(|_| EngineError::after_the_charge())??);
        }
        Ok(all)
    })
}

/// The values of a statistic in its own type.
fn values(estimates: &[Estimate], statistic: &Statistic) -> ArrayRef {
    match &statistic.data_type {
        DataType::Int64 => {
            let whole = |estimate: &Estimate| estimate.steps.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
            Arc::new(Int64Array::from_iter_values(estimates.iter().map(whole)))
        }
        DataType::Decimal128(precision, scale) => {
            let most = 10i128.pow(38) - 1;
            let digits = Decimal128Array::from_iter_values(
                estimates.iter().map(|estimate| estimate.steps.clamp(-most, most)),
            );
            match digits.with_precision_and_scale(*precision, *scale) {
                Ok(array) => Arc::new(array),
                Err(_) => {
                    Arc::new(Float64Array::from_iter_values(estimates.iter().map(|estimate| estimate.value)))
                }
            }
        }
        DataType::List(field) if field.data_type().is_integer() => {
            let mut lists = ListBuilder::new(Int64Builder::new());
            for estimate in estimates {
                lists.append_value(estimate.list.iter().map(|value| Some(*value as i64)));
            }
            Arc::new(lists.finish())
        }
        DataType::List(_) => {
            let mut lists = ListBuilder::new(Float64Builder::new());
            for estimate in estimates {
                match estimate.list.as_slice() {
                    [] => lists.append_null(),
                    list => lists.append_value(list.iter().copied().map(Some)),
                }
            }
            Arc::new(lists.finish())
        }
        _ => {
            let value = |estimate: &Estimate| (!estimate.value.is_nan()).then_some(estimate.value);
            Arc::new(Float64Array::from_iter(estimates.iter().map(value)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cores_keep_the_order_and_the_first_failure() {
        for (count, least) in [(0, 1), (1, 1), (7, 8), (100, 1), (101, 3), (5, 1)] {
            let doubled = on_all_cores(count, least, |i| Ok(2 * i));
            assert_eq!(doubled.ok(), Some((0..count).map(|i| 2 * i).collect()));
            let fails =
                on_all_cores(
                    count,
                    least,
                    |i| if i == 4 { Err(EngineError::after_the_charge()) } else { Ok(i) },
                );
            assert_eq!(fails.is_err(), count > 4);
        }
    }
}
