//! [`Shared`]: what all feeds of a query have in common.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use arrow::datatypes::{DataType, Schema};

use crate::column::{Kind, kind};
use crate::context::Context;
use crate::error::TallyError;
use crate::groups::Things;
use crate::hash::Secret;
use crate::layout::Layout;
use crate::names::SHELVES;
use crate::shelf::Shelf;
use crate::spec::{Measure, Spec};
use crate::steps::accepts;
use crate::store::Store;
use crate::totals::Totals;

/// How many rows may wait; the result does not depend on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// In a feed, for one shelf.
    pub(crate) block: usize,
    /// On a shelf, before they are settled.
    pub(crate) shelf: usize,
    /// How many bytes rows that wait may take in memory, all together.
    pub(crate) waiting: usize,
    /// How many bytes may be kept of rows that are settled, before others wait until the end.
    pub(crate) settled: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self { block: 1 << 9, shelf: 1 << 16, waiting: 4 << 20, settled: usize::MAX }
    }
}

impl Pace {
    /// The usual pace within so much memory.
    pub(crate) fn within(memory: usize) -> Self {
        let usual = Self::default();
        Self { waiting: usual.waiting.min(memory), settled: memory, ..usual }
    }
}

/// The query, the numberings, and the sums so far.
pub(crate) struct Shared {
    pub(crate) spec: Spec,
    pub(crate) types: Vec<DataType>,
    pub(crate) layout: Layout,
    pub(crate) secret: Secret,
    pub(crate) pace: Pace,
    pub(crate) groups: Things,
    pub(crate) domains: Vec<Things>,
    /// The units, if the spec has any; the last shelf is that of the NULL unit.
    pub(crate) shelves: Vec<Mutex<Shelf>>,
    /// Sums over rows of feeds that have finished, if each row is a unit.
    pub(crate) totals: Mutex<Totals>,
    /// Where rows wait.
    pub(crate) store: Store,
    /// How many bytes there are of what is settled.
    settled: AtomicUsize,
    pub(crate) rows: AtomicU64,
    pub(crate) opened: AtomicU64,
    pub(crate) finished: AtomicU64,
}

impl Shared {
    pub(crate) fn new(spec: Spec, schema: &Schema, secret: Secret, pace: Pace) -> Result<Self, TallyError> {
        spec.check()?;
        let types: Vec<DataType> = schema.fields().iter().map(|field| field.data_type().clone()).collect();
        check_types(&spec, &types)?;
        let layout = Layout::new(&spec);
        let groups = Things::new(secret);
        if spec.keys == 0 {
            groups.number(&[])?;
        }
        let strings = spec.has_unit && !matches!(kind(&types[0]), Some(Kind::Word(_) | Kind::Nothing));
        let shelves = if spec.has_unit { SHELVES + 1 } else { 0 };
        Ok(Self {
            types,
            groups,
            domains: layout.domains.iter().map(|_| Things::new(secret)).collect(),
            shelves: (0..shelves).map(|shelf| Mutex::new(Shelf::new(shelf, strings))).collect(),
            totals: Mutex::new(Totals::new(&layout, 0)),
            store: Store::new(pace.waiting),
            settled: AtomicUsize::new(0),
            rows: AtomicU64::new(0),
            opened: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            spec,
            layout,
            secret,
            pace,
        })
    }

    /// Notes that a shelf has more or less that is settled than before.
    pub(crate) fn count_settled(&self, before: usize, after: usize) {
        self.settled.fetch_add(after.wrapping_sub(before), Relaxed);
    }

    /// Whether there is room for more that is settled.
    pub(crate) fn may_settle(&self) -> bool {
        self.settled.load(Relaxed) <= self.pace.settled
    }

    /// What the units' tables must know, with hashes that reach as far as the numberings do.
    pub(crate) fn context<'a>(&'a self, hashes: &'a mut Hashes) -> Result<Context<'a>, TallyError> {
        let known = hashes.groups.len();
        self.groups.refresh(&mut hashes.groups)?;
        if hashes.groups.len() > known {
            hashes.ranks_differ = differ(&hashes.groups);
        }
        hashes.values.resize(self.domains.len(), Vec::new());
        for (domain, hashes) in self.domains.iter().zip(&mut hashes.values) {
            domain.refresh(hashes)?;
        }
        Ok(Context {
            secret: &self.secret,
            layout: &self.layout,
            groups_per_unit: self.spec.groups_per_unit as usize,
            groups: &self.groups,
            group_hashes: &hashes.groups,
            ranks_differ: hashes.ranks_differ,
            domains: &self.domains,
            value_hashes: &hashes.values,
            store: &self.store,
        })
    }
}

/// One thread's copy of the hashes of groups and values.
#[derive(Default)]
pub(crate) struct Hashes {
    groups: Vec<u64>,
    ranks_differ: bool,
    values: Vec<Vec<u64>>,
}

/// Of more groups two are likely to have the same upper half, and looking for them takes long.
const FEW: usize = 1 << 12;

/// Whether these hashes differ in their upper halves, as far as that is looked at.
fn differ(hashes: &[u64]) -> bool {
    let mut upper: Vec<u32> = hashes.iter().take(FEW + 1).map(|hash| (hash >> 32) as u32).collect();
    upper.sort_unstable();
    upper.len() <= FEW && upper.windows(2).all(|pair| pair[0] != pair[1])
}

fn check_types(spec: &Spec, types: &[DataType]) -> Result<(), TallyError> {
    if types.len() != spec.columns() {
        return Err(TallyError::spec(format!("there are {} columns, not {}", types.len(), spec.columns())));
    }
    let things = if spec.has_unit { 0..spec.key_columns().end } else { spec.key_columns() };
    for index in things {
        let role = if spec.has_unit && index == 0 { "a unit" } else { "a key" };
        is_thing(&types[index], index, role)?;
    }
    for measure in &spec.measures {
        let Some(input) = measure.input() else { continue };
        let index = spec.input_column(input);
        let data_type = &types[index];
        match *measure {
            Measure::Count { .. } | Measure::Distinct { .. } | Measure::Matched { .. } => {
                is_thing(data_type, index, "something to count")?
            }
            Measure::Sum { step, .. } | Measure::Deviation { step, .. } | Measure::Histogram { step, .. } => {
                if !accepts(data_type, step) {
                    return Err(TallyError::column(
                        index,
                        data_type,
                        &format!("a number in steps of {step:?}"),
                    ));
                }
            }
        }
    }
    Ok(())
}

fn is_thing(data_type: &DataType, index: usize, role: &str) -> Result<(), TallyError> {
    match kind(data_type) {
        Some(_) => Ok(()),
        None => Err(TallyError::column(index, data_type, role)),
    }
}
