//! [`Scatter`]: the rows of one feed on their way to the shelves of their units.
//!
//! The rows for one shelf gather in a block. Full blocks go to a tray, and leave together when it is full. A batch goes with slim heads if all of its rows can.

use arrow::array::{Array, ArrayRef};
use arrow::buffer::NullBuffer;

use crate::column::{Kind, each_bytes, kind, nulls, plain, words_into};
use crate::error::TallyError;
use crate::groups::lock;
use crate::lists::Lists;
use crate::names::{NULL, SHELVES, shelf_of};
use crate::record::{Full, Packing, Slim, write};
use crate::settle::Settlers;
use crate::shared::{Hashes, Shared};
use crate::sources::Reader;
use crate::waiting::{Block, Waits};
use demur_exact::widest;

/// A block begins with room for so many rows.
const FEW: usize = 16;

/// So many bytes leave together: a system takes them much faster than one block after the other.
const TRAY: usize = 1 << 17;

/// Blocks of slim and of full rows.
pub(crate) struct Scatter {
    slim: Blocks<Slim>,
    full: Blocks<Full>,
    desk: Desk,
    batch: Batch,
}

/// One block for each shelf.
struct Blocks<H> {
    /// How many rows a block has room for, and how many each has.
    room: usize,
    rows: [usize; SHELVES + 1],
    /// The heads of one block after the other.
    heads: Vec<H>,
    tails: Vec<Vec<u32>>,
    /// The unit of each row, where units are strings.
    strings: Vec<Named>,
}

/// Units that are strings, with their hashes.
#[derive(Default)]
struct Named {
    bytes: Lists<u8>,
    hashes: Vec<u64>,
}

/// Blocks that leave next, and what is needed to settle the rows of a shelf.
struct Desk {
    /// May be longer than it is used.
    tray: Vec<u8>,
    /// Where each block in the tray ends, its shelf, its rows, whether it is slim.
    ends: Vec<usize>,
    blocks: Vec<(usize, usize, bool)>,
    hashes: Hashes,
    settlers: Settlers,
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
                tray: Vec::new(),
                ends: Vec::new(),
                blocks: Vec::new(),
                hashes: Hashes::default(),
                settlers: Settlers::new(&shared.layout),
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
        self.full.finish(shared, &mut self.desk)?;
        self.desk.hand_over(shared)
    }
}

impl<H: Waits> Blocks<H> {
    fn new() -> Self {
        Self {
            room: 0,
            rows: [0; SHELVES + 1],
            heads: Vec::new(),
            tails: vec![Vec::new(); SHELVES + 1],
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
        let mut first = 0;
        while let Some((next, shelf)) = self.fill::<PLAIN>(first, batch, reader, &shared.layout.packing) {
            self.make_room(shelf, shared, desk)?;
            first = next;
        }
        Ok(())
    }

    /// Adds rows from this one on, up to one whose shelf has no room left, which is told.
    fn fill<const PLAIN: bool>(
        &mut self,
        first: usize,
        batch: &Batch,
        reader: &Reader,
        packing: &Packing,
    ) -> Option<(usize, usize)> {
        let Self { room, rows, heads, tails, strings } = self;
        let (room, shares, heads) = (*room, packing.shares, &mut heads[..]);
        let units = batch.units[first..].iter();
        for (row, (&unit, (&group, &value))) in
            (first..).zip(units.zip(reader.groups[first..].iter().zip(&batch.values[first..])))
        {
            let shelf = match &batch.valid {
                Some(valid) if !PLAIN && valid.is_null(row) => SHELVES,
                _ => shelf_of(unit),
            };
            if rows[shelf] == room {
                return Some((row, shelf));
            }
            heads[shelf * room + rows[shelf]] = H::new(unit, group, value, shares);
            rows[shelf] += 1;
            if !PLAIN {
                packing.push_tail(row, &reader.sources, &mut tails[shelf]);
                if batch.strings.len() > 0 {
                    strings[shelf].bytes.push_slice(batch.strings.get(row));
                    strings[shelf].hashes.push(unit);
                }
            }
        }
        None
    }

    /// Empties a block, or lets all of them grow: few rows need little room.
    #[cold]
    fn make_room(&mut self, shelf: usize, shared: &Shared, desk: &mut Desk) -> Result<(), TallyError> {
        if self.room == shared.pace.block {
            return self.flush(shelf, shared, desk);
        }
        let before = self.room;
        self.room = (before * 4).max(FEW).min(shared.pace.block);
        let mut heads = vec![H::default(); self.room * self.rows.len()];
        for (shelf, &rows) in self.rows.iter().enumerate() {
            heads[shelf * self.room..][..rows].copy_from_slice(&self.heads[shelf * before..][..rows]);
        }
        self.heads = heads;
        Ok(())
    }

    /// Puts a block into the tray.
    fn flush(&mut self, shelf: usize, shared: &Shared, desk: &mut Desk) -> Result<(), TallyError> {
        let rows = std::mem::take(&mut self.rows[shelf]);
        let heads = &mut self.heads[shelf * self.room..][..rows];
        let (named, tails) = (&mut self.strings[shelf], &mut self.tails[shelf]);
        if named.bytes.len() > 0 {
            let units = named.bytes.iter().zip(named.hashes.iter().copied());
            lock(&shared.shelves[shelf])?.number(heads, units)?;
            named.bytes.clear();
            named.hashes.clear();
        }
        let start = desk.used();
        let end = write(heads, tails, &mut desk.tray, start);
        tails.clear();
        desk.ends.push(end);
        desk.blocks.push((shelf, rows, H::IS_SLIM));
        match end < TRAY {
            true => Ok(()),
            false => desk.hand_over(shared),
        }
    }

    fn finish(&mut self, shared: &Shared, desk: &mut Desk) -> Result<(), TallyError> {
        (0..=SHELVES).try_for_each(|shelf| match self.rows[shelf] {
            0 => Ok(()),
            _ => self.flush(shelf, shared, desk),
        })
    }
}

impl Desk {
    /// How much of the tray is used.
    fn used(&self) -> usize {
        self.ends.last().map_or(0, |&end| end)
    }

    /// Hands the blocks in the tray to their shelves.
    fn hand_over(&mut self, shared: &Shared) -> Result<(), TallyError> {
        let kept = shared.store.keep(&self.tray[..self.used()], &self.ends)?;
        for (kept, (shelf, rows, is_slim)) in kept.into_iter().zip(self.blocks.drain(..)) {
            let mut shelf = lock(&shared.shelves[shelf])?;
            // With the shelf in hand every group on it is known, whoever brought it.
            let context = shared.context(&mut self.hashes)?;
            shelf.add(Block { kept, rows, is_slim }, (shared, &context), &mut self.settlers)?;
        }
        self.ends.clear();
        Ok(())
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
