//! [`Shelf`]: the units whose hashes begin alike, and the rows that wait for them.
//!
//! **Definition.** Units are spread over 256 shelves by the first bits of their hash; the NULL unit has the last shelf for itself. Rows wait on their shelf in blocks,
//! until there are many of them or no more will come; then they are settled together with what earlier rows came to.
//!
//! **Why.** The rows that wait on one shelf fit a core's cache, and the shelves are many enough for feeds seldom to meet at one. A shelf settles
//! when its rows take more memory than what they came to before, so that settling costs a few visits per row.
//!
//! **Memory.** 8 bytes for each row that waits (16 if its unit is a word above 2³² or its group has no place), if it has no tail; [a store](crate::store) keeps 4 MB of them in memory and
//! the others, up to 128 MB or what has been settled if that is more, in a file. For each unit that has been settled about 8 bytes of memory, and for each of its kept groups about 2 and what its
//! sums need. Where that is more than it may be on all shelves together, rows wait until the end, and are settled one shelf after the other.

use crate::archive::Archive;
use crate::context::Context;
use crate::error::TallyError;
use crate::names::{NULL, Names, SHELVES};
use crate::settle::{Settlers, Take};
use crate::shared::Shared;
use crate::totals::Totals;
use crate::waiting::{Block, Waiting, Waits};
use crate::words::Strings;

/// Some of the units, with what they count for.
pub(crate) struct Shelf {
    number: usize,
    /// Units that are strings, which are numbered here.
    strings: Option<Strings>,
    waiting: Waiting,
    /// How many rows have come.
    rows: u64,
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
            settled: Archive::default(),
        }
    }

    /// Gives each of these rows the number of its unit, which is a string.
    pub(crate) fn number<'a, H: Waits>(
        &mut self,
        heads: &mut [H],
        units: impl Iterator<Item = (&'a [u8], u64)>,
    ) -> Result<(), TallyError> {
        let Some(strings) = &mut self.strings else {
            return Err(TallyError::ours("a unit that is no string was numbered"));
        };
        for (head, (unit, hash)) in heads.iter_mut().zip(units) {
            *head = head.numbered(strings.number(unit, hash)?);
        }
        if strings.len() > H::NUMBERS {
            return Err(TallyError::too_large("units"));
        }
        Ok(())
    }

    /// Takes rows, and settles if enough of them wait.
    pub(crate) fn add(
        &mut self,
        block: Block,
        (shared, context): (&Shared, &Context),
        settlers: &mut Settlers,
    ) -> Result<(), TallyError> {
        self.rows += block.rows as u64;
        self.waiting.add(block);
        if self.waiting.rows() >= self.most_waiting(shared) && shared.may_settle() {
            self.settle_some((shared, context), settlers)?;
        }
        Ok(())
    }

    /// So many rows may wait before they are settled.
    fn most_waiting(&self, shared: &Shared) -> usize {
        shared.pace.shelf.max(self.settled.size() / 8)
    }

    /// Settles rows that wait, as many as may, and keeps what all came to.
    fn settle_some(
        &mut self,
        (shared, context): (&Shared, &Context),
        settlers: &mut Settlers,
    ) -> Result<(), TallyError> {
        let mut settled = Archive::default();
        self.settle(self.most_waiting(shared), context, settlers, &mut settled)?;
        shared.count_settled(self.settled.size(), settled.size());
        self.settled = settled;
        Ok(())
    }

    /// Settles so many of the rows that wait, with what earlier ones came to.
    fn settle(
        &mut self,
        most: usize,
        context: &Context,
        settlers: &mut Settlers,
        take: &mut impl Take,
    ) -> Result<(), TallyError> {
        let names = names(&self.strings, self.number);
        settlers.settle((&mut self.waiting, most, self.rows), &self.settled, names, context, take)
    }

    /// Adds what the units may count for to the totals, and forgets them.
    pub(crate) fn add_to(
        &mut self,
        totals: &mut Totals,
        (shared, context): (&Shared, &Context),
        settlers: &mut Settlers,
    ) -> Result<(), TallyError> {
        while self.waiting.rows() > self.most_waiting(shared) {
            self.settle_some((shared, context), settlers)?;
        }
        totals.make_room(self.rows, context.layout)?;
        self.settle(usize::MAX, context, settlers, totals)?;
        shared.count_settled(self.settled.size(), 0);
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
