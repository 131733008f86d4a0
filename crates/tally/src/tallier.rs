//! [`Tallier`]: from batches to a [`Tally`].
//!
//! **Guarantee.** The tally is a function of the spec, the key and the multiset of rows: how rows are cut into batches, which feed takes them and
//! when changes nothing. Everything in it is a sum of integers, a set, or chosen by [`keep`](crate::keep), whose choice is each unit's own.
//!
//! **Memory.** With units, what [`UnitTable`](crate::units::UnitTable) says for each unit, and up to 32 MB for each feed; without, groups × lanes for each feed.
//! Beside it, each group's key once and once more for each feed that met it, and the answer: groups × cells × 16 bytes.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;

use arrow::datatypes::Schema;

use crate::error::TallyError;
use crate::feed::Feed;
use crate::groups::{lock, poisoned, row_converter};
use crate::hash::Secret;
use crate::shared::{Hashes, Shared};
use crate::spec::Spec;
use crate::tally::Tally;
use crate::totals::{Part, Totals};
use crate::words::Strings;

/// Counts the rows of a query.
pub struct Tallier {
    shared: Arc<Shared>,
    workers: usize,
}

impl Tallier {
    /// Prepares to count rows with these columns: the unit if there is one, the keys, the inputs.
    ///
    /// `key` decides which groups a unit keeps; it must be drawn anew for each query and stay secret. `workers` is how many threads
    /// [`finish`](Self::finish) may use; the result does not depend on it.
    pub fn new(spec: Spec, schema: &Schema, key: [u64; 2], workers: usize) -> Result<Self, TallyError> {
        Self::with_secret(spec, schema, Secret::new(key), workers)
    }

    pub(crate) fn with_secret(
        spec: Spec,
        schema: &Schema,
        secret: Secret,
        workers: usize,
    ) -> Result<Self, TallyError> {
        Ok(Self { shared: Arc::new(Shared::new(spec, schema, secret)?), workers })
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
        write(
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
        while let Some(shelf) = shared.shelves.get(next.fetch_add(1, Relaxed)) {
            lock(shelf)?.add_to(&mut totals, &context)?;
        }
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

/// The totals in the order of their keys, without groups that have no unit.
fn write(
    spec: &Spec,
    key_types: &[arrow::datatypes::DataType],
    groups: &Strings,
    mut totals: Totals,
    rows_read: u64,
) -> Result<Tally, TallyError> {
    totals.units.resize(groups.len(), 0);
    let mut order: Vec<(u64, u32)> = (0..groups.len() as u32)
        .filter(|&group| spec.keys == 0 || totals.units[group as usize] > 0)
        .map(|group| (beginning(groups.get(group)), group))
        .collect();
    order.sort_unstable_by(|one, two| {
        one.0.cmp(&two.0).then_with(|| groups.get(one.1).cmp(groups.get(two.1)))
    });
    let mut place = vec![u32::MAX; groups.len()];
    for (at, &(_, group)) in order.iter().enumerate() {
        place[group as usize] = at as u32;
    }
    let measures = totals.parts.iter().zip(&spec.measures);
    let measures = measures.map(|(part, measure)| cells(part, measure.cells(), &order, &place));
    Ok(Tally {
        units: order.iter().map(|&(_, group)| totals.units[group as usize]).collect(),
        measures: measures.collect::<Result<_, _>>()?,
        keys: keys(key_types, groups, &order)?,
        rows_read,
    })
}

/// The first eight bytes, which order most keys.
fn beginning(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    let known = key.len().min(8);
    first[..known].copy_from_slice(&key[..known]);
    u64::from_be_bytes(first)
}

fn keys(
    types: &[arrow::datatypes::DataType],
    groups: &Strings,
    order: &[(u64, u32)],
) -> Result<Vec<arrow::array::ArrayRef>, TallyError> {
    if types.is_empty() {
        return Ok(Vec::new());
    }
    let converter = row_converter(types)?;
    let parser = converter.parser();
    let rows = order.iter().map(|&(_, group)| parser.parse(groups.get(group)));
    converter.convert_rows(rows).map_err(|_| TallyError::ours("keys could not be written"))
}

/// One measure, group by group.
fn cells(part: &Part, width: usize, order: &[(u64, u32)], place: &[u32]) -> Result<Vec<i128>, TallyError> {
    let size = order.len().checked_mul(width).ok_or_else(|| TallyError::too_large("cells"))?;
    let mut numbers = Vec::new();
    numbers.try_reserve_exact(size).map_err(|_| TallyError::too_large("cells"))?;
    numbers.resize(size, 0);
    match part {
        Part::Number(found) => {
            for (number, &(_, group)) in numbers.iter_mut().zip(order) {
                *number = found.get(group as usize).copied().unwrap_or(0);
            }
        }
        Part::Cells(found) => {
            for (group, cell, count) in found.iter() {
                numbers[place[group as usize] as usize * width + cell as usize] = i128::from(count);
            }
        }
        Part::Values(found) => {
            for (group, _) in found.iter() {
                numbers[place[group as usize] as usize] += 1;
            }
        }
    }
    Ok(numbers)
}
