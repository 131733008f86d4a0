//! [`Scatter`]: the rows of one feed on their way to the shelves of their units.
//!
//! The rows of a batch are sorted by shelf first, so that a shelf gets all of its rows at once. They gather in a block, and leave when it is full.

use arrow::array::{Array, ArrayRef};

use crate::column::{Kind, each_bytes, kind, nulls, plain, words_into};
use crate::error::TallyError;
use crate::groups::lock;
use crate::lists::Lists;
use crate::record::Rows;
use crate::settle::Settler;
use crate::shared::{Hashes, Shared};
use crate::shelf::{SHELVES, shelf_of};
use crate::sources::Reader;

/// One block for each shelf.
pub(crate) struct Scatter {
    blocks: Vec<Block>,
    hashes: Hashes,
    settler: Settler,
    batch: Batch,
}

/// Rows for one shelf.
#[derive(Default)]
struct Block {
    rows: Rows,
    /// The unit of each row, where units are strings.
    strings: Lists<u8>,
}

/// The units of a batch.
#[derive(Default)]
struct Batch {
    /// The unit of each row: its hash.
    units: Vec<u64>,
    /// Its bytes, where units are strings.
    strings: Lists<u8>,
    shelves: Vec<u16>,
    /// The rows sorted by shelf, and where the rows of each shelf end.
    order: Vec<u32>,
    ends: Vec<u32>,
}

impl Scatter {
    pub(crate) fn new(shared: &Shared) -> Self {
        Self {
            blocks: (0..=SHELVES).map(|_| Block::default()).collect(),
            hashes: Hashes::default(),
            settler: Settler::new(&shared.layout),
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
        self.batch.read(&plain(units)?, shared)?;
        self.batch.sort();
        let mut start = 0;
        for shelf in 0..=SHELVES {
            let end = self.batch.ends[shelf] as usize;
            if start < end {
                self.put(shelf, start..end, reader, shared)?;
            }
            start = end;
        }
        Ok(())
    }

    fn put(
        &mut self,
        shelf: usize,
        rows: std::ops::Range<usize>,
        reader: &Reader,
        shared: &Shared,
    ) -> Result<(), TallyError> {
        let full = shared.pace.block;
        if self.blocks[shelf].rows.len() + rows.len() > full && self.blocks[shelf].rows.len() > 0 {
            self.flush(shelf, shared)?;
            // Shelves that get few rows are left with the little room they made.
            self.blocks[shelf].rows = Rows::with_capacity(full, &shared.layout.packing);
        }
        let block = &mut self.blocks[shelf];
        let Batch { units, strings, order, .. } = &self.batch;
        let rows = &order[rows];
        block.rows.append(rows, units, &reader.groups, &reader.sources, &shared.layout.packing);
        if strings.len() > 0 {
            rows.iter().for_each(|&row| block.strings.push(strings.get(row as usize).iter().copied()));
        }
        Ok(())
    }

    fn flush(&mut self, shelf: usize, shared: &Shared) -> Result<(), TallyError> {
        let mut block = std::mem::take(&mut self.blocks[shelf]);
        let mut shelf = lock(&shared.shelves[shelf])?;
        for (head, string) in block.rows.heads.iter_mut().zip(block.strings.iter()) {
            head.unit = shelf.number(string, head.unit)?;
        }
        // With the shelf in hand every group on it is known, whoever brought it.
        let context = shared.context(&mut self.hashes)?;
        let before = shelf.size();
        shelf.add(block.rows, shared.pace.shelf, &context, &mut self.settler)?;
        if shared.hold(before, shelf.size()) > shared.pace.memory {
            let before = shelf.size();
            shelf.spill()?;
            shared.hold(before, shelf.size());
        }
        Ok(())
    }

    /// Hands over what is left.
    pub(crate) fn finish(&mut self, shared: &Shared) -> Result<(), TallyError> {
        (0..=SHELVES).try_for_each(|shelf| match self.blocks[shelf].rows.len() {
            0 => Ok(()),
            _ => self.flush(shelf, shared),
        })
    }
}

impl Batch {
    fn read(&mut self, units: &ArrayRef, shared: &Shared) -> Result<(), TallyError> {
        let secret = &shared.secret;
        self.strings.clear();
        let null = match kind(units.data_type()) {
            Some(Kind::Word(native)) => {
                words_into(units, native, &mut self.units);
                self.units.iter_mut().for_each(|unit| *unit = secret.word(*unit));
                secret.word(0)
            }
            Some(Kind::Nothing) => {
                self.units.clear();
                self.units.resize(units.len(), 0);
                secret.word(0)
            }
            _ => {
                self.read_strings(units, shared)?;
                0
            }
        };
        self.shelves.clear();
        self.shelves.extend(self.units.iter().map(|&unit| shelf_of(unit) as u16));
        if let Some(valid) = nulls(units) {
            for row in (0..units.len()).filter(|&row| valid.is_null(row)) {
                self.shelves[row] = SHELVES as u16;
                self.units[row] = null;
            }
        }
        Ok(())
    }

    fn read_strings(&mut self, units: &ArrayRef, shared: &Shared) -> Result<(), TallyError> {
        let Self { units: hashes, strings, .. } = self;
        hashes.clear();
        hashes.resize(units.len(), 0);
        each_bytes(units, |row, bytes| {
            (strings.len()..row).for_each(|_| strings.push([]));
            strings.push(bytes.iter().copied());
            hashes[row] = shared.secret.bytes(bytes);
            Ok(())
        })?;
        (strings.len()..units.len()).for_each(|_| strings.push([]));
        Ok(())
    }

    fn sort(&mut self) {
        let Self { shelves, order, ends, .. } = self;
        ends.clear();
        ends.resize(SHELVES + 1, 0);
        shelves.iter().for_each(|&shelf| ends[shelf as usize] += 1);
        let mut start = 0;
        for end in &mut *ends {
            start += std::mem::replace(end, start);
        }
        order.resize(shelves.len(), 0);
        for (row, &shelf) in shelves.iter().enumerate() {
            let end = &mut ends[shelf as usize];
            order[*end as usize] = row as u32;
            *end += 1;
        }
    }
}
