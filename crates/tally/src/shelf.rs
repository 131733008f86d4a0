//! [`Shelf`]: the units whose hashes begin alike, and the rows that wait for them.
//!
//! **Definition.** Units are spread over 256 shelves by the first bits of their hash; the NULL unit has the last shelf for itself. Rows wait on their shelf in blocks,
//! until there are many of them or no more will come; then they are settled together with what earlier rows came to.
//!
//! **Why.** The rows that wait on one shelf fit a core's cache, and the shelves are many enough for feeds seldom to meet at one. A shelf settles
//! when its rows take more memory than what they came to before, so that settling costs a few visits per row.
//!
//! **Memory.** 8 bytes for each row that waits (16 if its unit is a word above 2³² or its group has no place), if it has no tail: up to 128 MB on all shelves, or what
//! has been settled if that is more. For each unit that has been settled about 8 bytes, and for each of its kept groups about 2 and what its sums need. Where all
//! shelves together hold more than they may, rows wait [on disk](crate::spill) instead, and are settled in the end, one shelf after the other.

use crate::archive::Archive;
use crate::context::Context;
use crate::error::TallyError;
use crate::names::{NULL, Names, SHELVES};
use crate::record::Rows;
use crate::settle::{Settlers, Take};
use crate::spill::Spill;
use crate::totals::Totals;
use crate::waiting::{Waiting, Waits};
use crate::words::Strings;

/// Some of the units, with what they count for.
pub(crate) struct Shelf {
    number: usize,
    /// Units that are strings, which are numbered here.
    strings: Option<Strings>,
    waiting: Waiting,
    /// How many rows have come, and how many of them wait.
    rows: u64,
    late: usize,
    spilled: Spill,
    settled: Archive,
}

impl Shelf {
    /// The shelf with this number, for units that are strings or words.
    pub(crate) fn new(number: usize, strings: bool) -> Self {
        Self {
            number,
            strings: strings.then(Strings::new),
            waiting: Waiting::default(),
            rows: 0,
            late: 0,
            spilled: Spill::default(),
            settled: Archive::default(),
        }
    }

    /// Gives each row of a block the number of its unit, which is a string.
    pub(crate) fn number<'a, H: Waits>(
        &mut self,
        block: &mut Rows<H>,
        units: impl Iterator<Item = (&'a [u8], u64)>,
    ) -> Result<(), TallyError> {
        let Some(strings) = &mut self.strings else {
            return Err(TallyError::ours("a unit that is no string was numbered"));
        };
        for (head, (unit, hash)) in block.heads.iter_mut().zip(units) {
            *head = head.numbered(strings.number(unit, hash)?);
        }
        if strings.len() > H::NUMBERS {
            return Err(TallyError::too_large("units"));
        }
        Ok(())
    }

    /// How much memory it takes.
    pub(crate) fn size(&self) -> usize {
        self.waiting.size() + self.settled.size()
    }

    /// Takes rows, and settles if enough of them wait.
    pub(crate) fn add<H: Waits>(
        &mut self,
        rows: Rows<H>,
        patience: usize,
        context: &Context,
        settlers: &mut Settlers,
    ) -> Result<(), TallyError> {
        self.rows += rows.len() as u64;
        self.late += rows.len();
        H::wait(rows, &mut self.waiting);
        if self.late < self.most_waiting(patience) {
            return Ok(());
        }
        let mut settled = Archive::default();
        self.settle(context, settlers, &mut settled)?;
        self.settled = settled;
        Ok(())
    }

    /// So many rows may wait before they are settled.
    fn most_waiting(&self, patience: usize) -> usize {
        patience.max(self.settled.size() / 8)
    }

    /// Settles all rows that wait, with what earlier ones came to.
    fn settle(
        &mut self,
        context: &Context,
        settlers: &mut Settlers,
        take: &mut impl Take,
    ) -> Result<(), TallyError> {
        let names = names(&self.strings, self.number);
        settlers.settle((&mut self.waiting, self.rows), &self.settled, names, context, take)?;
        self.waiting.clear();
        self.late = 0;
        Ok(())
    }

    /// Puts the rows that wait on disk.
    pub(crate) fn spill(&mut self, context: &Context) -> Result<(), TallyError> {
        self.waiting.widen(names(&self.strings, self.number), &context.layout.packing);
        self.spilled.write(&self.waiting.full)?;
        self.waiting.clear();
        self.late = 0;
        Ok(())
    }

    /// Adds what the units may count for to the totals, and forgets them.
    pub(crate) fn add_to(
        &mut self,
        totals: &mut Totals,
        patience: usize,
        context: &Context,
        settlers: &mut Settlers,
    ) -> Result<(), TallyError> {
        let mut spilled = std::mem::take(&mut self.spilled);
        let most = self.most_waiting(patience);
        spilled.read(&context.layout.packing, most, |rows| self.add(rows, patience, context, settlers))?;
        self.settle(context, settlers, totals)?;
        self.settled = Archive::default();
        Ok(())
    }
}

/// What the units of a shelf go by.
fn names(strings: &Option<Strings>, shelf: usize) -> Names<'_> {
    match strings {
        Some(strings) => Names::Numbers(strings.hashes()),
        None if shelf == SHELVES => Names::Numbers(&[NULL]),
        None => Names::Hashes { shelf },
    }
}
