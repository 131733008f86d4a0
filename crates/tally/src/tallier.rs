//! [`Tallier`]: from batches to a [`Tally`].
//!
//! **Guarantee.** The tally is a function of the spec, the key and the multiset of rows: how rows are cut into batches, which feed takes them and
//! when changes nothing. Everything in it is a sum of integers, a set, or chosen by [`keep`](crate::keep), whose choice is each unit's own.
//!
//! **Memory.** With units, what [`shelf`](crate::shelf) says, and up to 3 MB for each feed; without, groups × lanes for each feed.
//! Beside it, each group's key once and once more for each feed that met it, and the answer: groups × cells × 16 bytes.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;

use arrow::datatypes::Schema;

use crate::error::TallyError;
use crate::feed::Feed;
use crate::groups::{lock, poisoned};
use crate::hash::Secret;
use crate::settle::Settlers;
use crate::shared::{Hashes, Pace, Shared};
use crate::spec::Spec;
use crate::tally::Tally;
use crate::totals::Totals;

/// What a tally may use of this machine; its result does not depend on it.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many threads may add up units in the end.
    pub workers: usize,
    /// How many bytes units may take, before their rows wait in a file until the end.
    pub memory: usize,
}

impl Default for Limits {
    /// All cores, and all memory.
    fn default() -> Self {
        Self { workers: thread::available_parallelism().map_or(1, usize::from), memory: usize::MAX }
    }
}

/// Counts the rows of a query.
pub struct Tallier {
    pub(crate) shared: Arc<Shared>,
    workers: usize,
}

impl Tallier {
    /// Prepares to count rows with these columns: the unit if there is one, the keys, the inputs.
    ///
    /// `key` decides which groups a unit keeps; it must be drawn anew for each query and stay secret.
    pub fn new(spec: Spec, schema: &Schema, key: [u64; 2], limits: Limits) -> Result<Self, TallyError> {
        Self::with_secret(spec, schema, Secret::new(key), limits.workers, Pace::within(limits.memory))
    }

    pub(crate) fn with_secret(
        spec: Spec,
        schema: &Schema,
        secret: Secret,
        workers: usize,
        pace: Pace,
    ) -> Result<Self, TallyError> {
        Ok(Self { shared: Arc::new(Shared::new(spec, schema, secret, pace)?), workers })
    }

    /// A way in for one stream of batches; it may go to another thread.
    pub fn feed(&self) -> Result<Feed, TallyError> {
        Feed::new(self.shared.clone())
    }

    /// Adds everything up, once all feeds have finished.
    pub fn finish(self) -> Result<Tally, TallyError> {
        let open = || TallyError::unfinished("a feed of this tally has not been finished");
        if self.shared.opened.load(Relaxed) != self.shared.finished.load(Relaxed) {
            return Err(open());
        }
        let rows_read = self.shared.rows.load(Relaxed);
        let totals = if self.shared.spec.has_unit {
            add_up(&self.shared, self.workers)?
        } else {
            take_totals(&self.shared)?
        };
        let shared = Arc::try_unwrap(self.shared).map_err(|_| open())?;
        Tally::write(
            &shared.spec,
            &shared.types[shared.spec.key_columns()],
            &shared.groups.into_strings()?,
            totals,
            rows_read,
        )
    }
}

impl fmt::Debug for Tallier {
    /// Neither rows nor the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tallier").finish_non_exhaustive()
    }
}

fn take_totals(shared: &Shared) -> Result<Totals, TallyError> {
    Ok(std::mem::replace(&mut *lock(&shared.totals)?, Totals::new(&shared.layout, 0)))
}

/// Adds up the units of all shelves, on several threads if there are many.
fn add_up(shared: &Shared, workers: usize) -> Result<Totals, TallyError> {
    let next = AtomicUsize::new(0);
    let merged: Mutex<Option<Totals>> = Mutex::new(None);
    let work = || -> Result<(), TallyError> {
        let mut hashes = Hashes::default();
        let context = shared.context(&mut hashes)?;
        let mut totals = Totals::new(&shared.layout, context.group_hashes.len());
        let mut settlers = Settlers::new(&shared.layout);
        while let Some(shelf) = shared.shelves.get(next.fetch_add(1, Relaxed)) {
            lock(shelf)?.add_to(&mut totals, (shared, &context), &mut settlers)?;
        }
        totals.gather(&shared.layout)?;
        let mut merged = lock(&merged)?;
        match &mut *merged {
            Some(merged) => merged.merge(totals, &shared.secret),
            none => {
                *none = Some(totals);
                Ok(())
            }
        }
    };
    // Few rows are added up before a thread has started.
    let helpers = if shared.rows.load(Relaxed) < 50_000 { 0 } else { workers.clamp(1, 64) - 1 };
    thread::scope(|scope| {
        let started: Vec<_> =
            (0..helpers).map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok()).collect();
        let mine = work();
        let theirs: Result<(), TallyError> =
            started.into_iter().try_for_each(|helper| helper.join().map_err(|_| poisoned())?);
        mine.and(theirs)
    })?;
    merged.into_inner().map_err(|_| poisoned())?.ok_or_else(|| TallyError::ours("nobody added up"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::Numbers;
    use crate::spec::{Bounds, Measure, Step};
    use arrow::array::{
        ArrayRef, AsArray, DictionaryArray, Int64Array, NullArray, RecordBatch, StringArray, StringViewArray,
        UInt8Array,
    };
    use arrow::datatypes::{DataType, Field, Int64Type};

    const ROW: Bounds = Bounds { low: -10, high: 10 };
    const UNIT: Bounds = Bounds { low: -100, high: 100 };

    fn spec(has_unit: bool, keys: usize, measures: Vec<Measure>) -> Spec {
        let inputs = usize::from(measures.iter().any(|measure| measure.input().is_some()));
        Spec { has_unit, keys, inputs, groups_per_unit: 3, measures }
    }

    fn sum() -> Measure {
        Measure::Sum { input: 0, step: Step::One, row: ROW, unit: UNIT }
    }

    fn count() -> Measure {
        Measure::Count { input: None, most: 1000 }
    }

    fn limits(workers: usize) -> Limits {
        Limits { workers, ..Limits::default() }
    }

    fn batch(columns: Vec<ArrayRef>) -> RecordBatch {
        RecordBatch::try_from_iter(
            columns.into_iter().enumerate().map(|(at, column)| (at.to_string(), column)),
        )
        .unwrap()
    }

    fn integers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(values))
    }

    /// Each batch goes to the next of several feeds on threads of their own.
    fn tally(spec: Spec, batches: &[RecordBatch], feeds: usize) -> Tally {
        let tallier = Tallier::new(spec, batches[0].schema_ref(), [3, 4], limits(feeds)).unwrap();
        thread::scope(|scope| {
            for first in 0..feeds {
                let mut feed = tallier.feed().unwrap();
                scope.spawn(move || {
                    batches.iter().skip(first).step_by(feeds).for_each(|batch| feed.push(batch).unwrap());
                    feed.finish().unwrap();
                });
            }
        });
        tallier.finish().unwrap()
    }

    #[test]
    fn without_rows_there_is_no_group_unless_there_are_no_keys() {
        for (has_unit, keys) in [(false, 0), (false, 1), (true, 0), (true, 1)] {
            let spec = spec(has_unit, keys, vec![count(), sum()]);
            let fields: Vec<_> =
                (0..spec.columns()).map(|at| Field::new(at.to_string(), DataType::Int64, true)).collect();
            let schema = Arc::new(Schema::new(fields));
            for push in [false, true] {
                let tallier = Tallier::new(spec.clone(), &schema, [1, 2], limits(1)).unwrap();
                let mut feed = tallier.feed().unwrap();
                if push {
                    feed.push(&RecordBatch::new_empty(schema.clone())).unwrap();
                }
                feed.finish().unwrap();
                let tally = tallier.finish().unwrap();
                assert_eq!(tally.units, vec![0; 1 - keys]);
                assert_eq!(tally.measures, vec![Numbers::One(vec![0; 1 - keys]); 2]);
                assert_eq!((tally.keys.len(), tally.rows_read), (keys, 0));
            }
        }
    }

    #[test]
    fn a_tally_without_feeds_is_that_of_no_rows() {
        let schema = Schema::new(vec![Field::new("unit", DataType::Utf8, true)]);
        let tally =
            Tallier::new(spec(true, 0, vec![count()]), &schema, [1, 2], limits(4)).unwrap().finish().unwrap();
        assert_eq!((tally.units, tally.measures), (vec![0], vec![Numbers::One(vec![0])]));
    }

    #[test]
    fn a_hundred_thousand_rows_of_one_unit_count_as_one_unit() {
        let rows = 100_000;
        let columns =
            vec![integers((0..rows).map(|_| 7)), integers((0..rows).map(|row| row % 50)), integers(0..rows)];
        let whole = batch(columns);
        let batches: Vec<_> =
            (0..rows as usize).step_by(1000).map(|start| whole.slice(start, 1000)).collect();
        let tally = tally(spec(true, 1, vec![count(), sum()]), &batches, 3);
        assert_eq!(tally.units, [1, 1, 1]);
        assert_eq!(tally.measures, [1000, 100].map(|each| Numbers::One(vec![each; 3])));
        assert_eq!(tally.rows_read, 100_000);
    }

    /// Rows of many units, with and without tails, that find no room.
    #[test]
    fn rows_that_wait_on_disk_count_as_well() {
        let rows = 60_000i64;
        let names: ArrayRef = Arc::new(StringArray::from_iter_values(
            (0..rows).map(|row| format!("unit {}", row * row % 7001)),
        ));
        let numbers = integers((0..rows).map(|row| row * row % 7001));
        for units in [names, numbers] {
            let columns = vec![
                units,
                integers((0..rows).map(|row| row % 50)),
                integers((0..rows).map(|row| row % 23 - 11)),
            ];
            let whole = batch(columns);
            let spec = spec(true, 1, vec![count(), sum(), Measure::Distinct { input: 0, most: 4 }]);
            let counted = |memory: usize| {
                let limits = Limits { workers: 2, memory };
                let tallier = Tallier::new(spec.clone(), whole.schema_ref(), [5, 6], limits).unwrap();
                let mut feed = tallier.feed().unwrap();
                (0..60).for_each(|part| feed.push(&whole.slice(part * 1000, 1000)).unwrap());
                feed.finish().unwrap();
                let tally = tallier.finish().unwrap();
                (tally.units, tally.measures, tally.rows_read)
            };
            let expected = counted(usize::MAX);
            for memory in [0, 10_000, 500_000] {
                assert_eq!(counted(memory), expected, "{memory} bytes");
            }
        }
    }

    #[test]
    fn a_million_groups_on_four_threads() {
        let rows = 1_000_000i64;
        let columns = vec![integers((0..rows).map(|row| row * 7 % rows)), integers(0..rows)];
        let whole = batch(columns);
        let batches: Vec<_> = (0..rows as usize)
            .step_by(8192)
            .map(|start| whole.slice(start, 8192.min(rows as usize - start)))
            .collect();
        for has_unit in [false, true] {
            let mut spec = spec(has_unit, 1, vec![Measure::Count { input: None, most: 5 }]);
            spec.inputs = usize::from(!has_unit);
            let tally = tally(spec, &batches, 4);
            assert_eq!(tally.units, vec![1; rows as usize]);
            assert!(tally.keys[0].as_primitive::<Int64Type>().values().iter().copied().eq(0..rows));
        }
    }

    #[test]
    fn dictionaries_that_change_between_batches_mean_their_values() {
        let coded = |names: &[&str], picks: Vec<u8>| -> RecordBatch {
            let values: ArrayRef = Arc::new(StringArray::from(names.to_vec()));
            batch(vec![Arc::new(DictionaryArray::new(UInt8Array::from(picks), values))])
        };
        let many: Vec<String> = (0..200).map(|name| format!("unused {name}")).chain(["b".into()]).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let batches = [
            coded(&["a", "b"], vec![0, 1, 1]),
            coded(&["b", "a", "a"], vec![0, 1, 2]),
            coded(&many, vec![200]),
        ];
        let tally = tally(spec(false, 1, vec![count()]), &batches, 1);
        assert_eq!(tally.keys[0].as_string::<i32>(), &StringArray::from(vec!["a", "b"]));
        assert_eq!(tally.units, [3, 4]);
    }

    /// Their views are the same: length, first bytes and place in the buffer.
    #[test]
    fn long_strings_of_different_batches_are_told_apart() {
        let batches = ["a long string, first", "a long string, other"]
            .map(|text| batch(vec![Arc::new(StringViewArray::from(vec![text, text])) as ArrayRef]));
        let tally = tally(spec(false, 1, vec![count()]), &batches, 1);
        assert_eq!(tally.units, [2, 2]);
    }

    #[test]
    fn columns_of_nothing_but_null_are_one_unit_one_group_and_no_value() {
        let nothing: ArrayRef = Arc::new(NullArray::new(5));
        let measures = vec![
            count(),
            sum(),
            Measure::Count { input: Some(0), most: 9 },
            Measure::Distinct { input: 0, most: 9 },
        ];
        let tally =
            tally(spec(true, 1, measures), &[batch(vec![nothing.clone(), nothing.clone(), nothing])], 1);
        assert_eq!(tally.units, [1]);
        assert_eq!(tally.measures, [5, 0, 0, 0].map(|each| Numbers::One(vec![each])));
    }

    #[test]
    fn a_unit_that_is_null_is_not_the_unit_zero() {
        let units: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(0), None, Some(0)]));
        let tally =
            tally(spec(true, 0, vec![Measure::Count { input: None, most: 1 }]), &[batch(vec![units])], 1);
        assert_eq!((tally.units, tally.measures), (vec![2], vec![Numbers::One(vec![2])]));
    }

    #[test]
    fn a_feed_that_was_not_finished_leaves_no_tally() {
        let whole = batch(vec![integers(0..3)]);
        let tallier =
            || Tallier::new(spec(false, 1, Vec::new()), whole.schema_ref(), [1, 2], limits(1)).unwrap();
        let dropped = tallier();
        drop(dropped.feed().unwrap());
        assert_eq!(dropped.finish().unwrap_err().code(), "tally.unfinished");
        let open = tallier();
        let mut feed = open.feed().unwrap();
        assert_eq!(open.finish().unwrap_err().code(), "tally.unfinished");
        let wrong = batch(vec![Arc::new(StringArray::from(vec!["x"]))]);
        let text = feed.push(&wrong).unwrap_err().to_string();
        assert_eq!(text, "column 0 of a batch has type Utf8, not Int64");
        assert_eq!(feed.push(&whole).unwrap_err().code(), "tally.unfinished");
        assert_eq!(feed.finish().unwrap_err().code(), "tally.unfinished");
    }

    #[test]
    fn what_cannot_be_counted_is_refused_before_any_row() {
        let refuse = |spec: Spec, data_type: DataType| {
            let fields: Vec<_> =
                (0..spec.columns()).map(|at| Field::new(at.to_string(), data_type.clone(), true)).collect();
            Tallier::new(spec, &Schema::new(fields), [1, 2], limits(1)).unwrap_err().to_string()
        };
        let binary = Measure::Sum { input: 0, step: Step::Binary(0), row: ROW, unit: UNIT };
        let list = DataType::new_list(DataType::Int64, true);
        assert_eq!(
            refuse(spec(false, 0, vec![sum()]), DataType::Utf8),
            "column 0 has type Utf8, which cannot serve as a number in steps of One"
        );
        assert_eq!(
            refuse(spec(true, 1, vec![binary]), DataType::Int64),
            "column 2 has type Int64, which cannot serve as a number in steps of Binary(0)"
        );
        assert_eq!(
            refuse(spec(true, 0, Vec::new()), list.clone()),
            "column 0 has type List(Int64), which cannot serve as a unit"
        );
        assert_eq!(
            refuse(spec(false, 1, Vec::new()), list),
            "column 0 has type List(Int64), which cannot serve as a key"
        );
        let above = Measure::Sum { input: 0, step: Step::One, row: ROW, unit: Bounds { low: 1, high: 2 } };
        assert_eq!(
            refuse(spec(false, 0, vec![above]), DataType::Int64),
            "measure 0: the bounds of a unit's sum do not hold 0"
        );
        let none = Spec { groups_per_unit: 0, ..spec(true, 1, Vec::new()) };
        assert_eq!(refuse(none, DataType::Int64), "groups_per_unit is 0, so nothing would be counted");
    }
}
