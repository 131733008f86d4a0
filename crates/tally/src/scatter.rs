//! [`Scatter`]: the rows of one feed on their way to the shelves of their units.
//!
//! The rows for one shelf gather in a block, and leave when it is full. A batch goes with slim heads if all of its rows can.

use arrow::array::{Array, ArrayRef};
use arrow::buffer::NullBuffer;

use crate::column::{Kind, each_bytes, kind, nulls, plain, words_into};
use crate::error::TallyError;
use crate::groups::lock;
use crate::lists::Lists;
use crate::names::{NULL, SHELVES, shelf_of};
use crate::record::{Full, Packing, Rows, Slim};
use crate::settle::Settlers;
use crate::shared::{Hashes, Shared};
use crate::sources::Reader;
use crate::waiting::Waits;
use demur_exact::widest;

/// Blocks of slim and of full rows.
pub(crate) struct Scatter {
    slim: Blocks<Slim>,
    full: Blocks<Full>,
    desk: Desk,
    batch: Batch,
}

/// One block for each shelf.
struct Blocks<H> {
    rows: Vec<Rows<H>>,
    /// The unit of each row, where units are strings.
    strings: Vec<Named>,
}

/// Units that are strings, with their hashes.
#[derive(Default)]
struct Named {
    bytes: Lists<u8>,
    hashes: Vec<u64>,
}

/// What is needed to settle the rows of a shelf.
struct Desk {
    hashes: Hashes,
    settlers: Settlers,
    /// Where a block is written.
    bytes: Vec<u8>,
}

/// The units of a batch.
#[derive(Default)]
struct Batch {
    /// The hash of each row's unit.
    units: Vec<u64>,
    /// Which of them are not NULL, if some are.
    valid: Option<NullBuffer>,
    /// Its bytes, where units are strings.
    strings: Lists<u8>,
    /// Whether all units may have short names.
    short: bool,
    /// What each row has in its head.
    values: Vec<u32>,
}

impl Scatter {
    pub(crate) fn new(shared: &Shared) -> Self {
        Self {
            slim: Blocks::new(),
            full: Blocks::new(),
            desk: Desk {
                hashes: Hashes::default(),
                settlers: Settlers::new(&shared.layout),
                bytes: Vec::new(),
            },
            batch: Batch::default(),
        }
    }

    /// Adds the rows of a batch that has been read.
    pub(crate) fn add(
        &mut self,
        units: &ArrayRef,
        reader: &Reader,
        shared: &Shared,
    ) -> Result<(), TallyError> {
        let packing = &shared.layout.packing;
        self.batch.read(&plain(units)?, shared)?;
        packing.values_into(&reader.sources, units.len(), &mut self.batch.values);
        let greatest = reader.groups.iter().copied().max().unwrap_or(0);
        if self.batch.short && packing.is_slim(greatest) {
            self.slim.add(&self.batch, reader, shared, &mut self.desk)
        } else {
            self.full.add(&self.batch, reader, shared, &mut self.desk)
        }
    }

    /// Hands over what is left.
    pub(crate) fn finish(&mut self, shared: &Shared) -> Result<(), TallyError> {
        self.slim.finish(shared, &mut self.desk)?;
        self.full.finish(shared, &mut self.desk)
    }
}

impl<H: Waits> Blocks<H> {
    fn new() -> Self {
        Self {
            rows: (0..=SHELVES).map(|_| Rows::with_capacity(0, &Packing::default())).collect(),
            strings: (0..=SHELVES).map(|_| Named::default()).collect(),
        }
    }

    fn add(
        &mut self,
        batch: &Batch,
        reader: &Reader,
        shared: &Shared,
        desk: &mut Desk,
    ) -> Result<(), TallyError> {
        let plain = batch.valid.is_none() && batch.strings.len() == 0 && shared.layout.packing.tail == 0;
        match plain {
            true => self.add_rows::<true>(batch, reader, shared, desk),
            false => self.add_rows::<false>(batch, reader, shared, desk),
        }
    }

    /// Rows are plain if they are nothing but heads, and none of their units is NULL.
    fn add_rows<const PLAIN: bool>(
        &mut self,
        batch: &Batch,
        reader: &Reader,
        shared: &Shared,
        desk: &mut Desk,
    ) -> Result<(), TallyError> {
        let packing = &shared.layout.packing;
        let rows = batch.units.iter().zip(reader.groups.iter().zip(&batch.values));
        for (row, (&unit, (&group, &value))) in rows.enumerate() {
            let shelf = match &batch.valid {
                Some(valid) if !PLAIN && valid.is_null(row) => SHELVES,
                _ => shelf_of(unit),
            };
            if self.rows[shelf].is_full() {
                self.make_room(shelf, shared, desk)?;
            }
            let block = &mut self.rows[shelf];
            block.heads.push(H::new(unit, group, value, packing.shares));
            if !PLAIN {
                block.push_tail(row, &reader.sources, packing);
                if batch.strings.len() > 0 {
                    self.strings[shelf].bytes.push_slice(batch.strings.get(row));
                    self.strings[shelf].hashes.push(unit);
                }
            }
        }
        Ok(())
    }

    /// Lets a block grow, or empties it; shelves that get few rows are left with the little room they made.
    #[cold]
    fn make_room(&mut self, shelf: usize, shared: &Shared, desk: &mut Desk) -> Result<(), TallyError> {
        let (rows, most) = (self.rows[shelf].len(), shared.pace.block);
        if rows < most {
            self.rows[shelf].heads.reserve_exact(rows.max(4).min(most - rows));
            return Ok(());
        }
        self.flush(shelf, shared, desk)
    }

    fn flush(&mut self, number: usize, shared: &Shared, desk: &mut Desk) -> Result<(), TallyError> {
        let rows = &mut self.rows[number];
        let mut shelf = lock(&shared.shelves[number])?;
        let named = &mut self.strings[number];
        if named.bytes.len() > 0 {
            shelf.number(rows, named.bytes.iter().zip(named.hashes.iter().copied()))?;
            named.bytes.clear();
            named.hashes.clear();
        }
        // With the shelf in hand every group on it is known, whoever brought it.
        let context = shared.context(&mut desk.hashes)?;
        shelf.add(rows, (shared, &context), &mut desk.settlers, &mut desk.bytes)?;
        rows.clear();
        Ok(())
    }

    fn finish(&mut self, shared: &Shared, desk: &mut Desk) -> Result<(), TallyError> {
        (0..=SHELVES).try_for_each(|shelf| match self.rows[shelf].len() {
            0 => Ok(()),
            _ => self.flush(shelf, shared, desk),
        })
    }
}

impl Batch {
    fn read(&mut self, units: &ArrayRef, shared: &Shared) -> Result<(), TallyError> {
        self.strings.clear();
        self.short = true;
        match kind(units.data_type()) {
            Some(Kind::Word(native)) => {
                words_into(units, native, &mut self.units);
                let (units, secret) = (&mut self.units, shared.secret);
                self.short = widest!({
                    let mut all = 0;
                    for unit in units.iter_mut() {
                        all |= *unit;
                        *unit = secret.unit(*unit);
                    }
                    all >> 32 == 0
                });
            }
            Some(Kind::Nothing) => {
                self.units.clear();
                self.units.resize(units.len(), NULL);
            }
            _ => self.read_strings(units, shared)?,
        }
        self.valid = nulls(units);
        if let Some(valid) = &self.valid {
            (0..units.len()).filter(|&row| valid.is_null(row)).for_each(|row| self.units[row] = NULL);
        }
        Ok(())
    }

    fn read_strings(&mut self, units: &ArrayRef, shared: &Shared) -> Result<(), TallyError> {
        let Self { units: hashes, strings, .. } = self;
        hashes.clear();
        hashes.resize(units.len(), NULL);
        each_bytes(units, |row, bytes| {
            (strings.len()..row).for_each(|_| strings.push([]));
            strings.push_slice(bytes);
            hashes[row] = shared.secret.bytes(bytes);
            Ok(())
        })?;
        (strings.len()..units.len()).for_each(|_| strings.push([]));
        Ok(())
    }
}
