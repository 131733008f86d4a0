//! [`Shelf`]: the units whose hashes begin alike, and the rows that wait for them.
//!
//! **Definition.** Units are spread over 256 shelves by the first bits of their hash; the NULL unit has the last shelf for itself. Rows wait on their shelf in blocks,
//! until there are many of them or no more will come; then they are settled together with what earlier rows came to.
//!
//! **Why.** The rows that wait on one shelf fit a core's cache, and the shelves are many enough for feeds seldom to meet at one. A shelf settles
//! when its rows take more memory than what they came to before, so that settling costs a few visits per row.
//!
//! **Memory.** 16 bytes for each row that waits, if it has no tail: up to 256 MB on all shelves, or twice what has been settled if that is more. For each
//! unit that has been settled about 8 bytes, and for each of its kept groups about 2 and what its sums need. Where all shelves together
//! hold more than they may, rows wait [on disk](crate::spill) instead, and are settled in the end, one shelf after the other.

use crate::archive::Archive;
use crate::context::Context;
use crate::error::TallyError;
use crate::record::{Packing, Rows};
use crate::settle::{Names, Settler};
use crate::spill::Spill;
use crate::totals::Totals;
use crate::words::Strings;

/// How many bits of a hash name the shelf.
const BITS: u32 = 8;

/// How many shelves there are beside that of the NULL unit.
pub(crate) const SHELVES: usize = 1 << BITS;

/// The shelf of a unit with this hash.
#[inline]
pub(crate) fn shelf_of(hash: u64) -> usize {
    (hash >> (64 - BITS)) as usize
}

/// Some of the units, with what they count for.
pub(crate) struct Shelf {
    /// Units that are strings, which are numbered here.
    strings: Option<Strings>,
    blocks: Vec<Rows>,
    /// How many rows wait.
    waiting: usize,
    spilled: Spill,
    settled: Archive,
}

impl Shelf {
    pub(crate) fn new(strings: bool) -> Self {
        Self {
            strings: strings.then(Strings::new),
            blocks: Vec::new(),
            waiting: 0,
            spilled: Spill::default(),
            settled: Archive::default(),
        }
    }

    /// The number of a unit that is a string.
    pub(crate) fn number(&mut self, unit: &[u8], hash: u64) -> Result<u64, TallyError> {
        match &mut self.strings {
            Some(strings) => strings.number(unit, hash).map(u64::from),
            None => Err(TallyError::ours("a unit that is no string was numbered")),
        }
    }

    /// How much memory it takes.
    pub(crate) fn size(&self) -> usize {
        self.blocks.iter().map(Rows::size).sum::<usize>() + self.settled.size()
    }

    /// Takes rows, and settles if enough of them wait.
    pub(crate) fn add(
        &mut self,
        rows: Rows,
        patience: usize,
        context: &Context,
        settler: &mut Settler,
    ) -> Result<(), TallyError> {
        self.waiting += rows.len();
        self.blocks.push(rows);
        if self.waiting < self.most_waiting(patience) {
            return Ok(());
        }
        let mut settled = Archive::default();
        settler.settle(&self.blocks, &self.settled, self.names(), context, |units, entries| {
            settled.append(units, entries);
            Ok(())
        })?;
        self.settled = settled;
        self.blocks.clear();
        self.waiting = 0;
        Ok(())
    }

    /// So many rows may wait before they are settled.
    fn most_waiting(&self, patience: usize) -> usize {
        patience.max(self.settled.size() / 8)
    }

    /// Puts the rows that wait on disk.
    pub(crate) fn spill(&mut self) -> Result<(), TallyError> {
        self.spilled.write(&self.blocks)?;
        self.blocks.clear();
        self.waiting = 0;
        Ok(())
    }

    /// Adds what the units may count for to the totals, and forgets them.
    pub(crate) fn add_to(
        &mut self,
        totals: &mut Totals,
        patience: usize,
        context: &Context,
        settler: &mut Settler,
    ) -> Result<(), TallyError> {
        let mut spilled = std::mem::take(&mut self.spilled);
        let (most, packing): (_, &Packing) = (self.most_waiting(patience), &context.layout.packing);
        spilled.read(packing, most, |rows| self.add(rows, patience, context, settler))?;
        settler.settle(&self.blocks, &self.settled, self.names(), context, |_, entries| {
            totals.add(entries, context)
        })?;
        self.blocks = Vec::new();
        self.settled = Archive::default();
        Ok(())
    }

    fn names(&self) -> Names<'_> {
        match &self.strings {
            None => Names { hashes: None, common: BITS },
            Some(strings) => {
                let bits = usize::BITS - strings.len().leading_zeros();
                Names { hashes: Some(strings.hashes()), common: 64 - bits.max(1) }
            }
        }
    }
}
