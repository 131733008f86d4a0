//! [`Things`] and [`Finder`]: rows by the number of their group.
//!
//! **Definition.** All feeds share one numbering of groups, [`Things`], which knows each group by its canonical bytes: Arrow's row format of
//! its key values, where bytes compare as keys do and NULL comes first. A [`Finder`] belongs to one feed; it remembers what it has
//! asked, so that the shared numbering is asked once per group and feed.
//!
//! **Guarantee.** The numbers depend on who came first, and nothing that leaves this crate may depend on them: order and ties are settled by
//! their bytes.

use std::sync::atomic::{AtomicUsize, Ordering::Acquire, Ordering::Release};
use std::sync::{Mutex, MutexGuard};

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, Rows, SortField};

use crate::codes::Coder;
use crate::column::{Kind, canonical, plain_type};
use crate::error::TallyError;
use crate::hash::Secret;
use crate::words::{NONE, Strings, Words};

/// Numbers for groups (or for values that are counted once), shared by all feeds.
pub(crate) struct Things {
    secret: Secret,
    strings: Mutex<Strings>,
    len: AtomicUsize,
}

impl Things {
    pub(crate) fn new(secret: Secret) -> Self {
        Self { secret, strings: Mutex::new(Strings::new()), len: AtomicUsize::new(0) }
    }

    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, Strings>, TallyError> {
        lock(&self.strings)
    }

    pub(crate) fn into_strings(self) -> Result<Strings, TallyError> {
        self.strings.into_inner().map_err(|_| poisoned())
    }

    /// The number of the thing with these canonical bytes.
    pub(crate) fn number(&self, bytes: &[u8]) -> Result<u32, TallyError> {
        let mut strings = self.lock()?;
        let number = strings.number(bytes, self.secret.thing(bytes))?;
        self.len.store(strings.len(), Release);
        Ok(number)
    }

    fn numbers(&self, rows: &Rows) -> Result<Vec<u32>, TallyError> {
        let mut strings = self.lock()?;
        let numbers =
            rows.iter().map(|row| strings.number(row.data(), self.secret.thing(row.data()))).collect();
        self.len.store(strings.len(), Release);
        numbers
    }

    /// Makes `hashes` reach as far as the numbering does.
    #[inline]
    pub(crate) fn refresh(&self, hashes: &mut Vec<u64>) -> Result<(), TallyError> {
        if self.len.load(Acquire) > hashes.len() {
            let strings = self.lock()?;
            hashes.extend_from_slice(&strings.hashes()[hashes.len()..]);
        }
        Ok(())
    }
}

/// Locks, unless a thread that held it has panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> Result<MutexGuard<'_, T>, TallyError> {
    mutex.lock().map_err(|_| poisoned())
}

pub(crate) fn poisoned() -> TallyError {
    TallyError::ours("a thread that was counting has panicked")
}

/// The row format of key columns; dictionaries are read through.
pub(crate) fn row_converter(types: &[DataType]) -> Result<RowConverter, TallyError> {
    let fields = types.iter().map(|data_type| SortField::new(plain_type(data_type).clone())).collect();
    RowConverter::new(fields).map_err(|_| TallyError::ours("the keys have no row format"))
}

/// Finds the group of each row.
pub(crate) struct Finder {
    secret: Secret,
    coders: Vec<Coder>,
    /// For each key after the first, numbers for pairs of what came before and this key.
    pairs: Vec<Words<u64>>,
    converter: RowConverter,
    /// The shared number for each number of this feed, or [`NONE`].
    shared: Vec<u32>,
    codes: Vec<u32>,
    more: Vec<u32>,
}

impl Finder {
    /// For at least one key column.
    pub(crate) fn new(types: &[DataType], kinds: &[Kind], secret: Secret) -> Result<Self, TallyError> {
        Ok(Self {
            secret,
            coders: kinds.iter().map(|&kind| Coder::new(kind, secret)).collect(),
            pairs: kinds.iter().skip(1).map(|_| Words::new()).collect(),
            converter: row_converter(types)?,
            shared: Vec::new(),
            codes: Vec::new(),
            more: Vec::new(),
        })
    }

    /// Writes the shared number of each row's group.
    pub(crate) fn find(
        &mut self,
        columns: &[ArrayRef],
        things: &Things,
        found: &mut Vec<u32>,
    ) -> Result<(), TallyError> {
        let known = self.encode(columns)?;
        self.shared.resize(known.max(self.shared.len()), NONE);
        if !self.translate(found) {
            self.ask(columns, things)?;
            if !self.translate(found) {
                return Err(TallyError::ours("a group has no number"));
            }
        }
        Ok(())
    }

    /// Numbers each row within this feed; returns a number above all of them.
    fn encode(&mut self, columns: &[ArrayRef]) -> Result<usize, TallyError> {
        let (Some((first, rest)), Some(column)) = (self.coders.split_first_mut(), columns.first()) else {
            return Err(TallyError::ours("a group without keys was sought"));
        };
        first.encode(column, &mut self.codes)?;
        let mut known = first.len();
        for ((coder, pairs), column) in rest.iter_mut().zip(&mut self.pairs).zip(&columns[1..]) {
            coder.encode(column, &mut self.more)?;
            crate::words::small(pairs.len() + self.codes.len(), "groups")?;
            for (code, &more) in self.codes.iter_mut().zip(&self.more) {
                let next = pairs.len() as u32;
                *code = pairs.number(u64::from(*code) << 32 | u64::from(more), next, &self.secret);
            }
            known = pairs.len();
        }
        Ok(known)
    }

    /// From this feed's numbers to the shared ones; false if some are missing.
    fn translate(&self, found: &mut Vec<u32>) -> bool {
        found.clear();
        let mut most = 0;
        found.extend(self.codes.iter().map(|&code| {
            let number = self.shared[code as usize];
            most = most.max(number);
            number
        }));
        most != NONE
    }

    /// Asks for the shared numbers of groups this feed has not met before.
    #[cold]
    fn ask(&mut self, columns: &[ArrayRef], things: &Things) -> Result<(), TallyError> {
        let mut fresh = Vec::new();
        for (row, &code) in self.codes.iter().enumerate() {
            if self.shared[code as usize] == NONE {
                self.shared[code as usize] = NONE - 1;
                fresh.push(row as u32);
            }
        }
        let failed = |_| TallyError::ours("keys could not be read");
        let rows = UInt32Array::from(fresh.clone());
        let columns = columns
            .iter()
            .map(|column| canonical(&take(column.as_ref(), &rows, None).map_err(failed)?))
            .collect::<Result<Vec<_>, _>>()?;
        let numbers = things.numbers(&self.converter.convert_columns(&columns).map_err(failed)?)?;
        for (row, number) in fresh.into_iter().zip(numbers) {
            self.shared[self.codes[row as usize] as usize] = number;
        }
        Ok(())
    }
}
