//! [`Shelf`] and [`Chunk`]: the units whose hashes begin alike, and rows on their way to them.
//!
//! **Definition.** Units are spread over 256 shelves by the first bits of their hash; the NULL unit has the last shelf for itself. A feed gathers
//! rows for each shelf in a chunk; when the chunk is full, the feed takes the shelf and puts the rows where they belong.
//!
//! **Why.** One shelf is small enough for a core's cache, where the next rows find it; the shelves are many enough for feeds seldom to meet at one.
//! Nobody waits for a worker, no row is buffered beyond a chunk, and since sums do not depend on order, neither does the result.

use crate::error::TallyError;
use crate::layout::Layout;
use crate::totals::Totals;
use crate::units::{Context, UnitTable};
use crate::wide::fits;
use crate::words::{Strings, Words, small};

/// How many shelves there are beside that of the NULL unit.
pub(crate) const SHELVES: usize = 256;

/// The shelf of a unit with this hash.
#[inline]
pub(crate) fn shelf_of(hash: u64) -> usize {
    (hash >> 56) as usize
}

/// So many units are brought into the cache before they are sought.
const BLOCK: usize = 128;

/// Words in a row before those of its sources: its unit and its group.
pub(crate) const HEAD: usize = 2;

/// Rows of units of one shelf.
pub(crate) struct Chunk {
    /// For each row the unit, the group, and one word for each source.
    pub(crate) words: Vec<u64>,
    /// Where the unit is a string, the word is its hash and the string is here.
    pub(crate) text: Vec<u8>,
    pub(crate) ends: Vec<usize>,
}

impl Chunk {
    pub(crate) fn new() -> Self {
        Self { words: Vec::new(), text: Vec::new(), ends: Vec::new() }
    }

    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.text.clear();
        self.ends.clear();
    }
}

/// Some of the units, with what they count for.
pub(crate) struct Shelf {
    names: Names,
    rows: u64,
    table: Table,
    found: Vec<u32>,
}

/// Numbers for units.
enum Names {
    Words(Words<u64>),
    Strings(Strings),
}

enum Table {
    Narrow(UnitTable<i64>),
    Wide(UnitTable<i128>),
}

impl Shelf {
    pub(crate) fn new(strings: bool) -> Self {
        let names = if strings { Names::Strings(Strings::new()) } else { Names::Words(Words::new()) };
        Self { names, rows: 0, table: Table::Narrow(UnitTable::new()), found: Vec::new() }
    }

    /// Adds the rows of a chunk.
    pub(crate) fn add(&mut self, chunk: &Chunk, context: &Context) -> Result<(), TallyError> {
        let width = row_width(context.layout);
        self.rows += (chunk.words.len() / width) as u64;
        if !fits(self.rows, context.layout.reach) {
            self.widen();
        }
        match &mut self.table {
            Table::Narrow(table) => {
                self.names.find(chunk, width, context, &mut self.found, |hash| table.add_unit(hash))?;
                table.add_rows(&self.found, &chunk.words, context)
            }
            Table::Wide(table) => {
                self.names.find(chunk, width, context, &mut self.found, |hash| table.add_unit(hash))?;
                table.add_rows(&self.found, &chunk.words, context)
            }
        }
    }

    fn widen(&mut self) {
        if let Table::Narrow(table) = &mut self.table {
            self.table = Table::Wide(std::mem::replace(table, UnitTable::new()).widen());
        }
    }

    /// Adds what the units may count for to the totals.
    pub(crate) fn add_to(&mut self, totals: &mut Totals, context: &Context) -> Result<(), TallyError> {
        match &mut self.table {
            Table::Narrow(table) => table.add_to(totals, context),
            Table::Wide(table) => table.add_to(totals, context),
        }
    }
}

/// How many words a row has.
pub(crate) fn row_width(layout: &Layout) -> usize {
    HEAD + layout.sources.len()
}

impl Names {
    /// Finds the number of each row's unit; new ones are made known by their hash.
    fn find(
        &mut self,
        chunk: &Chunk,
        width: usize,
        context: &Context,
        found: &mut Vec<u32>,
        mut add_unit: impl FnMut(u64),
    ) -> Result<(), TallyError> {
        found.clear();
        let units = chunk.words.iter().step_by(width);
        match self {
            Self::Words(words) => {
                small(words.len() + units.len(), "units")?;
                for rows in chunk.words.chunks(BLOCK * width) {
                    let mut hashes = [0; BLOCK];
                    let mut seen = 0;
                    for (hash, row) in hashes.iter_mut().zip(rows.chunks_exact(width)) {
                        *hash = context.secret.word(row[0]);
                        seen ^= words.touch(*hash);
                    }
                    std::hint::black_box(seen);
                    for (&hash, row) in hashes.iter().zip(rows.chunks_exact(width)) {
                        let next = words.len() as u32;
                        let number = words.number_hashed(row[0], hash, next, context.secret);
                        if number == next {
                            add_unit(hash);
                        }
                        found.push(number);
                    }
                }
            }
            Self::Strings(strings) => {
                let mut start = 0;
                for (&hash, &end) in units.zip(&chunk.ends) {
                    let next = strings.len();
                    let number = strings.number(&chunk.text[start..end], hash)?;
                    if number as usize == next {
                        add_unit(hash);
                    }
                    found.push(number);
                    start = end;
                }
            }
        }
        Ok(())
    }
}
