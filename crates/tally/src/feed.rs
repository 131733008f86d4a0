//! [`Feed`]: one stream of batches on its way into a tally.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use arrow::array::{ArrayRef, RecordBatch};

use crate::column::{Kind, each_bytes, kind, nulls, plain, words_into};
use crate::error::TallyError;
use crate::groups::lock;
use crate::rows::RowSums;
use crate::shared::{Hashes, Shared};
use crate::shelf::{Chunk, SHELVES, row_width, shelf_of};
use crate::sources::Reader;

/// Takes the batches of one partition.
///
/// Feeds of one [`Tallier`](crate::Tallier) work on different threads at the same time. A feed that is dropped without [`finish`](Self::finish), or whose `push` has failed, makes
/// the whole tally fail: half of the rows is not an answer.
#[must_use = "a feed that is not finished makes the tally fail"]
pub struct Feed {
    shared: Arc<Shared>,
    reader: Reader,
    rows: u64,
    failed: bool,
    sums: Sums,
}

enum Sums {
    Rows(RowSums),
    Units(Scatter),
}

impl Feed {
    pub(crate) fn new(shared: Arc<Shared>) -> Result<Self, TallyError> {
        shared.opened.fetch_add(1, Relaxed);
        let sums = if shared.spec.has_unit {
            Sums::Units(Scatter::new())
        } else {
            Sums::Rows(RowSums::new(&shared.layout))
        };
        Ok(Self { reader: Reader::new(&shared)?, shared, rows: 0, failed: false, sums })
    }

    /// Adds the rows of a batch, whose columns have the types the tally was made for.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<(), TallyError> {
        if self.failed {
            return Err(TallyError::unfinished("an earlier batch of this feed has failed"));
        }
        self.failed = true;
        self.check(batch)?;
        self.reader.read(batch, &self.shared)?;
        self.rows += batch.num_rows() as u64;
        match &mut self.sums {
            Sums::Rows(sums) => {
                sums.add(
                    &self.shared.layout,
                    &self.reader.groups,
                    &self.reader.sources,
                    &self.shared.secret,
                )?;
            }
            Sums::Units(scatter) => scatter.add(batch.column(0), &self.reader, &self.shared)?,
        }
        self.failed = false;
        Ok(())
    }

    fn check(&self, batch: &RecordBatch) -> Result<(), TallyError> {
        let types = &self.shared.types;
        if batch.num_columns() != types.len() {
            return Err(TallyError::batch(format!(
                "a batch has {} columns, not {}",
                batch.num_columns(),
                types.len()
            )));
        }
        if u32::try_from(batch.num_rows()).is_err() {
            return Err(TallyError::too_large("rows in a batch"));
        }
        for (index, (column, wanted)) in batch.columns().iter().zip(types).enumerate() {
            if column.data_type() != wanted {
                let found = column.data_type();
                return Err(TallyError::batch(format!(
                    "column {index} of a batch has type {found}, not {wanted}"
                )));
            }
        }
        Ok(())
    }

    /// Hands over what has been gathered.
    pub fn finish(self) -> Result<(), TallyError> {
        if self.failed {
            return Err(TallyError::unfinished("a batch of this feed has failed"));
        }
        match self.sums {
            Sums::Rows(sums) => {
                let found = sums.finish(&self.shared.layout);
                lock(&self.shared.totals)?.merge(found, &self.shared.secret)?;
            }
            Sums::Units(mut scatter) => scatter.flush_all(&self.shared)?,
        }
        self.shared.rows.fetch_add(self.rows, Relaxed);
        self.shared.finished.fetch_add(1, Relaxed);
        Ok(())
    }
}

impl fmt::Debug for Feed {
    /// Neither rows nor the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").finish_non_exhaustive()
    }
}

/// Rows on their way to the shelves of their units.
struct Scatter {
    chunks: Vec<Chunk>,
    hashes: Hashes,
    units: Vec<u64>,
}

/// A chunk is flushed when it has this many words (128 KB; with 256 shelves at most 32 MB for each feed).
const CHUNK_WORDS: usize = 1 << 14;
/// Or this many bytes of strings.
const CHUNK_TEXT: usize = 1 << 17;
/// Few rows need little memory; a chunk that reaches this many words gets room for all.
const FEW_WORDS: usize = 1 << 8;

impl Scatter {
    fn new() -> Self {
        Self {
            chunks: (0..=SHELVES).map(|_| Chunk::new()).collect(),
            hashes: Hashes::default(),
            units: Vec::new(),
        }
    }

    fn add(&mut self, units: &ArrayRef, reader: &Reader, shared: &Shared) -> Result<(), TallyError> {
        let units = plain(units)?;
        let valid = nulls(&units);
        let is_null = |row: usize| valid.as_ref().is_some_and(|valid| valid.is_null(row));
        match kind(units.data_type()) {
            Some(Kind::Word(native)) => {
                let mut words = std::mem::take(&mut self.units);
                words_into(&units, native, &mut words);
                for (row, &unit) in words.iter().enumerate() {
                    let (shelf, unit) =
                        if is_null(row) { (SHELVES, 0) } else { (shelf_of(shared.secret.word(unit)), unit) };
                    self.put(shelf, unit, row, reader, shared)?;
                }
                self.units = words;
            }
            Some(Kind::Nothing) => {
                for row in 0..units.len() {
                    self.put(SHELVES, 0, row, reader, shared)?;
                }
            }
            _ => {
                for row in (0..units.len()).filter(|&row| is_null(row)) {
                    self.put_string(SHELVES, 0, &[], row, reader, shared)?;
                }
                each_bytes(&units, |row, bytes| {
                    let hash = shared.secret.bytes(bytes);
                    self.put_string(shelf_of(hash), hash, bytes, row, reader, shared)
                })?;
            }
        }
        Ok(())
    }

    fn put_string(
        &mut self,
        shelf: usize,
        hash: u64,
        bytes: &[u8],
        row: usize,
        reader: &Reader,
        shared: &Shared,
    ) -> Result<(), TallyError> {
        let chunk = &mut self.chunks[shelf];
        chunk.text.extend_from_slice(bytes);
        chunk.ends.push(chunk.text.len());
        self.put(shelf, hash, row, reader, shared)
    }

    #[inline]
    fn put(
        &mut self,
        shelf: usize,
        unit: u64,
        row: usize,
        reader: &Reader,
        shared: &Shared,
    ) -> Result<(), TallyError> {
        let chunk = &mut self.chunks[shelf];
        if chunk.words.len() >= FEW_WORDS && chunk.words.capacity() < CHUNK_WORDS {
            chunk.words.reserve_exact(CHUNK_WORDS - chunk.words.len());
        }
        let group = u64::from(reader.groups[row]);
        match &reader.sources[..] {
            [] => chunk.words.extend_from_slice(&[unit, group]),
            [one] => chunk.words.extend_from_slice(&[unit, group, one[row] as u64]),
            sources => {
                chunk.words.extend_from_slice(&[unit, group]);
                chunk.words.extend(sources.iter().map(|source| source[row] as u64));
            }
        }
        if chunk.words.len() + row_width(&shared.layout) > CHUNK_WORDS || chunk.text.len() > CHUNK_TEXT {
            self.flush(shelf, shared)?;
        }
        Ok(())
    }

    fn flush(&mut self, shelf: usize, shared: &Shared) -> Result<(), TallyError> {
        let chunk = &mut self.chunks[shelf];
        let mut shelf = lock(&shared.shelves[shelf])?;
        // With the shelf in hand every group on it is known, whoever brought it.
        shelf.add(chunk, &shared.context(&mut self.hashes)?)?;
        chunk.clear();
        Ok(())
    }

    fn flush_all(&mut self, shared: &Shared) -> Result<(), TallyError> {
        (0..=SHELVES).try_for_each(|shelf| {
            if self.chunks[shelf].words.is_empty() { Ok(()) } else { self.flush(shelf, shared) }
        })
    }
}
