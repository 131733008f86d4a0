//! [`Rows`]: rows in few bytes, on their way to their units.
//!
//! **Definition.** A row is its unit (8 bytes), its group (4) and its sources. A source whose bounds are less than 2³² − 1 apart takes 4 bytes: how far it lies
//! above the lower bound, or 2³² − 1 where it is not there. Any other takes 8. The first short source travels in the head of the row, the
//! others in its tail, so that rows of most questions are nothing but heads.

use crate::layout::Source;
use crate::steps::ABSENT;

/// What every row has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head {
    pub(crate) unit: u64,
    pub(crate) group: u32,
    value: u32,
}

/// What stands for a short source that is not there.
const NOTHING: u32 = u32::MAX;

/// Where a source is, and how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the head, above a lower bound.
    Head { low: i64 },
    /// In one word of the tail, above a lower bound.
    Short { at: usize, low: i64 },
    /// In two words of the tail.
    Long { at: usize },
}

/// The places of all sources.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packing {
    pub(crate) places: Vec<Place>,
    /// How many words the tail of a row has.
    tail: usize,
}

impl Packing {
    pub(crate) fn new(sources: &[Source]) -> Self {
        let mut packing = Self::default();
        let mut head = true;
        for source in sources {
            let at = packing.tail;
            let place = match least_if_short(source) {
                Some(low) if std::mem::take(&mut head) => Place::Head { low },
                Some(low) => Place::Short { at, low },
                None => Place::Long { at },
            };
            packing.tail += match place {
                Place::Head { .. } => 0,
                Place::Short { .. } => 1,
                Place::Long { .. } => 2,
            };
            packing.places.push(place);
        }
        packing
    }
}

/// The least value of a source that needs no more than 4 bytes.
fn least_if_short(source: &Source) -> Option<i64> {
    match *source {
        Source::Steps { row, .. } => {
            { (row.high.wrapping_sub(row.low) as u64) < u64::from(NOTHING) }.then_some(row.low)
        }
        // Cells and numbers of values are below 2³² − 1.
        Source::There { .. } | Source::Cell { .. } | Source::Value { .. } => Some(0),
    }
}

/// Some rows, all packed alike.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    pub(crate) heads: Vec<Head>,
    tails: Vec<u32>,
}

impl Rows {
    pub(crate) fn with_capacity(rows: usize, packing: &Packing) -> Self {
        Self { heads: Vec::with_capacity(rows), tails: Vec::with_capacity(rows * packing.tail) }
    }

    pub(crate) fn len(&self) -> usize {
        self.heads.len()
    }

    /// Appends the rows with these places in the columns.
    pub(crate) fn append(
        &mut self,
        rows: &[u32],
        units: &[u64],
        groups: &[u32],
        sources: &[Vec<i64>],
        packing: &Packing,
    ) {
        let head = |row: u32, value| Head { unit: units[row as usize], group: groups[row as usize], value };
        let first = packing.places.iter().zip(sources).find_map(|(place, source)| match *place {
            Place::Head { low } => Some((low, source)),
            _ => None,
        });
        match first {
            Some((low, source)) => {
                self.heads.extend(rows.iter().map(|&row| head(row, short(source[row as usize], low))));
            }
            None => self.heads.extend(rows.iter().map(|&row| head(row, 0))),
        }
        if packing.tail == 0 {
            return;
        }
        for &row in rows {
            for (place, source) in packing.places.iter().zip(sources) {
                let value = source[row as usize];
                match *place {
                    Place::Head { .. } => {}
                    Place::Short { low, .. } => self.tails.push(short(value, low)),
                    Place::Long { .. } => self.tails.extend([value as u32, (value >> 32) as u32]),
                }
            }
        }
    }

    /// How much memory they take.
    pub(crate) fn size(&self) -> usize {
        self.heads.capacity() * size_of::<Head>() + self.tails.capacity() * size_of::<u32>()
    }

    /// Each row as words: its unit, its group, its value, its tail.
    pub(crate) fn words(&self) -> impl Iterator<Item = u32> + '_ {
        let tail = self.tails.len().checked_div(self.heads.len()).unwrap_or(0);
        self.heads.iter().enumerate().flat_map(move |(row, head)| {
            let head = [head.unit as u32, (head.unit >> 32) as u32, head.group, head.value];
            head.into_iter().chain(self.tails[row * tail..][..tail].iter().copied())
        })
    }

    /// The rows that such words came from.
    pub(crate) fn of_words<E>(
        mut word: impl FnMut() -> Result<u32, E>,
        rows: usize,
        packing: &Packing,
    ) -> Result<Self, E> {
        let mut read = Self::with_capacity(rows, packing);
        for _ in 0..rows {
            let unit = u64::from(word()?) | u64::from(word()?) << 32;
            read.heads.push(Head { unit, group: word()?, value: word()? });
            for _ in 0..packing.tail {
                read.tails.push(word()?);
            }
        }
        Ok(read)
    }

    /// Makes this the rows of several blocks; `place` says where each row goes, given its unit.
    pub(crate) fn rearrange(
        &mut self,
        blocks: &[Self],
        packing: &Packing,
        mut place: impl FnMut(u64) -> u32,
    ) {
        let rows = blocks.iter().map(Self::len).sum();
        // What was there before is overwritten, so only what is missing is filled.
        self.heads.resize(rows, Head::default());
        self.tails.resize(rows * packing.tail, 0);
        for block in blocks {
            if packing.tail == 0 {
                for head in &block.heads {
                    self.heads[place(head.unit) as usize] = *head;
                }
            } else {
                for (head, tail) in block.heads.iter().zip(block.tails.chunks_exact(packing.tail)) {
                    let to = place(head.unit) as usize;
                    self.heads[to] = *head;
                    self.tails[to * packing.tail..][..packing.tail].copy_from_slice(tail);
                }
            }
        }
    }

    /// What a row has at a place, or [`ABSENT`].
    #[inline]
    pub(crate) fn value(&self, row: usize, place: Place, packing: &Packing) -> i64 {
        match place {
            Place::Head { low } => long(self.heads[row].value, low),
            Place::Short { at, low } => long(self.tails[row * packing.tail + at], low),
            Place::Long { at } => {
                let words = &self.tails[row * packing.tail + at..][..2];
                i64::from(words[0]) | i64::from(words[1]) << 32
            }
        }
    }
}

#[inline]
fn short(value: i64, low: i64) -> u32 {
    if value == ABSENT { NOTHING } else { (value - low) as u32 }
}

#[inline]
fn long(value: u32, low: i64) -> i64 {
    if value == NOTHING { ABSENT } else { low + i64::from(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Bounds, Step};

    fn steps(low: i64, high: i64) -> Source {
        Source::Steps { input: 0, step: Step::One, row: Bounds { low, high } }
    }

    #[test]
    fn rows_are_read_as_they_were_written() {
        let widest = i64::from(u32::MAX) - 6;
        let sources = [
            steps(-(1 << 62), 1 << 62),
            steps(-5, widest),
            steps(-5, widest + 1),
            Source::There { input: 1 },
            steps(1 << 62, 1 << 62),
        ];
        let values = vec![
            vec![-(1 << 62), ABSENT, 1 << 62, -1],
            vec![-5, widest, ABSENT, 0],
            vec![-5, widest + 1, ABSENT, 0],
            vec![0, ABSENT, 0, ABSENT],
            vec![1 << 62, 1 << 62, ABSENT, 1 << 62],
        ];
        let packing = Packing::new(&sources);
        let expected = [
            Place::Long { at: 0 },
            Place::Head { low: -5 },
            Place::Long { at: 2 },
            Place::Short { at: 4, low: 0 },
            Place::Short { at: 5, low: 1 << 62 },
        ];
        assert_eq!(packing.places, expected);
        let mut rows = Rows::default();
        rows.append(&[3, 1], &[10, 11, 12, 13], &[0, 1, 2, 3], &values, &packing);
        rows.append(&[0, 2], &[10, 11, 12, 13], &[0, 1, 2, 3], &values, &packing);
        let mut sorted = Rows::default();
        sorted.rearrange(&[rows.clone(), rows], &packing, {
            let mut next = [0, 2, 4, 6];
            move |unit| {
                let place = &mut next[unit as usize - 10];
                *place += 1;
                *place - 1
            }
        });
        for at in 0..8 {
            let row = at / 2;
            assert_eq!((sorted.heads[at].unit, sorted.heads[at].group), (row as u64 + 10, row as u32));
            for (place, values) in packing.places.iter().zip(&values) {
                assert_eq!(sorted.value(at, *place, &packing), values[row], "{place:?} of row {row}");
            }
        }
    }
}
