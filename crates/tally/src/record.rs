//! [`Rows`]: rows in few bytes, on their way to their units.
//!
//! **Definition.** A row is its unit, its group and its sources. A source whose bounds are less than 2³² − 1 apart is *short*: how far it lies
//! above the lower bound, or one more than the furthest where it is not there (the least 2ⁿ − 1 that is). Any other takes 8 bytes. The first short source
//! travels in the head of the row, the others in its tail, so that rows of most questions are nothing but heads.
//!
//! A head is [`Full`], 16 bytes, or [`Slim`], 8 bytes, if its unit has a short name and its group a small number.

use crate::entries::Sums;
use crate::layout::Source;
use crate::names::{BITS, Names};
use crate::steps::ABSENT;

/// What every row has: its unit, its group, its first short source.
pub(crate) trait Head: Copy + Default {
    /// A row of the unit with this hash.
    fn new(hash: u64, group: u32, value: u32, shares: Shares) -> Self;

    /// The same row, if its unit goes by a number.
    fn numbered(self, number: u32) -> Self;

    fn unit(self, names: Names) -> u64 {
        Self::unit_of(self.name(), names)
    }

    /// What tells its unit from the others of its shelf.
    fn name(self) -> u64;

    /// How many bits a name has that is made of a hash.
    const NAME_BITS: u32;

    /// The name of a unit.
    fn name_of(unit: u64, names: Names) -> u64;

    /// The unit with this name.
    fn unit_of(name: u64, names: Names) -> u64;

    /// The upper half of the hash of a unit that is named by it.
    fn upper(name: u64, shelf: usize) -> u32;

    fn group(self, shares: Shares) -> u32;

    fn value(self, shares: Shares) -> u32;

    /// How many bytes it is written in.
    const BYTES: usize;

    fn write(self, bytes: &mut [u8]);

    fn read(bytes: &[u8]) -> Self;
}

/// A head for every row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Full {
    unit: u64,
    group: u32,
    value: u32,
}

impl Head for Full {
    #[inline]
    fn new(hash: u64, group: u32, value: u32, _: Shares) -> Self {
        Self { unit: hash, group, value }
    }

    fn numbered(self, number: u32) -> Self {
        Self { unit: u64::from(number), ..self }
    }

    #[inline(always)]
    fn name(self) -> u64 {
        self.unit
    }

    const NAME_BITS: u32 = 64 - BITS;

    #[inline(always)]
    fn name_of(unit: u64, _: Names) -> u64 {
        unit
    }

    #[inline(always)]
    fn unit_of(name: u64, _: Names) -> u64 {
        name
    }

    #[inline(always)]
    fn upper(name: u64, _: usize) -> u32 {
        (name >> 32) as u32
    }

    #[inline(always)]
    fn group(self, _: Shares) -> u32 {
        self.group
    }

    #[inline(always)]
    fn value(self, _: Shares) -> u32 {
        self.value
    }

    const BYTES: usize = 16;

    #[inline(always)]
    fn write(self, bytes: &mut [u8]) {
        let rest = u64::from(self.group) << 32 | u64::from(self.value);
        bytes[..8].copy_from_slice(&self.unit.to_le_bytes());
        bytes[8..].copy_from_slice(&rest.to_le_bytes());
    }

    #[inline(always)]
    fn read(bytes: &[u8]) -> Self {
        let (unit, rest) = (word(&bytes[..8]), word(&bytes[8..]));
        Self { unit, group: (rest >> 32) as u32, value: rest as u32 }
    }
}

impl Full {
    /// The head of the same row.
    pub(crate) fn of<H: Head>(head: H, names: Names, shares: Shares) -> Self {
        Self { unit: head.unit(names), group: head.group(shares), value: head.value(shares) }
    }
}

/// From the top: the short name of a unit, the group, the value in as many bits as it needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slim(u64);

/// How many bits a short name has.
const SHORT_NAME: u32 = 32 - BITS;

/// How many are left for group and value.
const REST: u32 = 64 - SHORT_NAME;

/// Short names are below.
pub(crate) const SHORT_NAMES: usize = 1 << SHORT_NAME;

impl Head for Slim {
    #[inline]
    fn new(hash: u64, group: u32, value: u32, shares: Shares) -> Self {
        Self(hash << BITS >> REST << REST | u64::from(group) << shares.value_bits | u64::from(value))
    }

    fn numbered(self, number: u32) -> Self {
        Self(self.0 << SHORT_NAME >> SHORT_NAME | u64::from(number) << REST)
    }

    #[inline(always)]
    fn name(self) -> u64 {
        self.0 >> REST
    }

    const NAME_BITS: u32 = SHORT_NAME;

    #[inline(always)]
    fn name_of(unit: u64, names: Names) -> u64 {
        match names {
            Names::Hashes { .. } => unit << BITS >> REST,
            Names::Numbers(_) => unit,
        }
    }

    #[inline(always)]
    fn unit_of(name: u64, names: Names) -> u64 {
        names.of_short(name as u32)
    }

    #[inline(always)]
    fn upper(name: u64, shelf: usize) -> u32 {
        (shelf as u32) << SHORT_NAME | name as u32
    }

    #[inline(always)]
    fn group(self, shares: Shares) -> u32 {
        (self.0 << SHORT_NAME >> SHORT_NAME >> shares.value_bits) as u32
    }

    #[inline(always)]
    fn value(self, shares: Shares) -> u32 {
        self.0 as u32 & shares.nothing
    }

    const BYTES: usize = 8;

    #[inline(always)]
    fn write(self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.0.to_le_bytes());
    }

    #[inline(always)]
    fn read(bytes: &[u8]) -> Self {
        Self(word(bytes))
    }
}

#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

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
    pub(crate) tail: usize,
    pub(crate) shares: Shares,
    /// The lower bound of the values in heads.
    pub(crate) low: i64,
}

/// How group and value share what the unit leaves of a head.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shares {
    /// How many bits the value needs.
    value_bits: u32,
    /// What stands for a value that is not there: so many ones.
    nothing: u32,
}

impl Shares {
    fn new(value_bits: u32) -> Self {
        Self { value_bits, nothing: ((1u64 << value_bits) - 1) as u32 }
    }

    /// What a row with this value in its head adds to the sums over heads.
    #[inline(always)]
    pub(crate) fn sums(self, value: u32) -> Sums {
        Sums::of_row((value != self.nothing).then_some(value))
    }
}

/// What stands for a short source in the tail that is not there.
const NOTHING: u32 = u32::MAX;

impl Packing {
    pub(crate) fn new(sources: &[Source]) -> Self {
        let mut packing = Self::default();
        let mut head = true;
        for source in sources {
            let at = packing.tail;
            let place = match range_if_short(source) {
                Some((low, furthest)) if std::mem::take(&mut head) => {
                    packing.shares = Shares::new((u64::from(furthest) + 2).next_power_of_two().ilog2());
                    packing.low = low;
                    Place::Head { low }
                }
                Some((low, _)) => Place::Short { at, low },
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

    /// Whether all groups up to this one have a place in slim heads.
    pub(crate) fn is_slim(&self, group: u32) -> bool {
        u64::from(group) >> (REST - self.shares.value_bits) == 0
    }

    /// Appends the tail of the row with this place in the columns.
    pub(crate) fn push_tail(&self, row: usize, sources: &[Vec<i64>], tails: &mut Vec<u32>) {
        for (place, source) in self.places.iter().zip(sources) {
            match *place {
                Place::Head { .. } => {}
                Place::Short { low, .. } => tails.push(short(source[row], low, NOTHING)),
                Place::Long { .. } => tails.extend([source[row] as u32, (source[row] >> 32) as u32]),
            }
        }
    }

    /// The values that travel in the heads of these rows.
    pub(crate) fn values_into(&self, sources: &[Vec<i64>], rows: usize, values: &mut Vec<u32>) {
        values.clear();
        let mut places = self.places.iter().zip(sources);
        match places.find_map(|(place, source)| match *place {
            Place::Head { low } => Some((low, source)),
            _ => None,
        }) {
            Some((low, source)) => {
                values.extend(source.iter().map(|&value| short(value, low, self.shares.nothing)));
            }
            None => values.resize(rows, 0),
        }
    }
}

/// The least value of a source that needs no more than 4 bytes, and how far from it the greatest lies.
fn range_if_short(source: &Source) -> Option<(i64, u32)> {
    match *source {
        Source::Steps { row, .. } => {
            let furthest = row.high.wrapping_sub(row.low) as u64;
            (furthest < u64::from(NOTHING)).then_some((row.low, furthest as u32))
        }
        Source::There { .. } => Some((0, 0)),
        Source::Cell { cells, .. } => Some((0, cells - 1)),
        // Numbers of values are below 2³² − 1.
        Source::Value { .. } => Some((0, NOTHING - 1)),
    }
}

/// Writes rows over what stands there from a place on: their heads, then their tails. Says where they end.
pub(crate) fn write<H: Head>(heads: &[H], tails: &[u32], bytes: &mut Vec<u8>, start: usize) -> usize {
    let end = start + heads.len() * H::BYTES + size_of_val(tails);
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    let (to_heads, to_tails) = bytes[start..end].split_at_mut(heads.len() * H::BYTES);
    to_heads.chunks_exact_mut(H::BYTES).zip(heads).for_each(|(to, head)| head.write(to));
    to_tails.chunks_exact_mut(4).zip(tails).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
    end
}

/// Some rows, all packed alike.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows<H> {
    pub(crate) heads: Vec<H>,
    tails: Vec<u32>,
}

impl<H: Head> Rows<H> {
    pub(crate) fn len(&self) -> usize {
        self.heads.len()
    }

    pub(crate) fn clear(&mut self) {
        self.heads.clear();
        self.tails.clear();
    }

    /// Appends so many rows that were written.
    pub(crate) fn read(&mut self, bytes: &[u8], rows: usize) {
        let (heads, tails) = bytes.split_at(rows * H::BYTES);
        self.heads.extend(heads.chunks_exact(H::BYTES).map(H::read));
        self.tails.extend(
            tails.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])),
        );
    }

    /// Appends other rows, which get heads of this kind.
    pub(crate) fn append<O: Head>(&mut self, other: &Rows<O>, mut head: impl FnMut(O) -> H) {
        self.heads.extend(other.heads.iter().map(|&other| head(other)));
        self.tails.extend_from_slice(&other.tails);
    }

    /// Makes this the same rows in another order; `place` says where each row goes, given its head.
    pub(crate) fn rearrange(&mut self, rows: &Self, packing: &Packing, mut place: impl FnMut(H) -> u32) {
        // What was there before is overwritten, so only what is missing is filled.
        self.heads.resize(rows.len(), H::default());
        self.tails.resize(rows.len() * packing.tail, 0);
        if packing.tail == 0 {
            for &head in &rows.heads {
                self.heads[place(head) as usize] = head;
            }
        } else {
            for (&head, tail) in rows.heads.iter().zip(rows.tails.chunks_exact(packing.tail)) {
                let to = place(head) as usize;
                self.heads[to] = head;
                self.tails[to * packing.tail..][..packing.tail].copy_from_slice(tail);
            }
        }
    }

    /// What a row has at a place, or [`ABSENT`].
    #[inline]
    pub(crate) fn value(&self, row: usize, place: Place, packing: &Packing) -> i64 {
        match place {
            Place::Head { low } => long(self.heads[row].value(packing.shares), low, packing.shares.nothing),
            Place::Short { at, low } => long(self.tails[row * packing.tail + at], low, NOTHING),
            Place::Long { at } => {
                let words = &self.tails[row * packing.tail + at..][..2];
                i64::from(words[0]) | i64::from(words[1]) << 32
            }
        }
    }
}

#[inline]
fn short(value: i64, low: i64, nothing: u32) -> u32 {
    if value == ABSENT { nothing } else { value.wrapping_sub(low) as u32 }
}

#[inline]
fn long(value: u32, low: i64, nothing: u32) -> i64 {
    if value == nothing { ABSENT } else { low + i64::from(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Secret;
    use crate::spec::{Bounds, Step};

    fn steps(low: i64, high: i64) -> Source {
        Source::Steps { input: 0, step: Step::One, row: Bounds { low, high } }
    }

    fn rows<H: Head>(hashes: &[u64], groups: &[u32], sources: &[Vec<i64>], packing: &Packing) -> Rows<H> {
        let mut values = Vec::new();
        packing.values_into(sources, hashes.len(), &mut values);
        let mut rows = Rows::default();
        for row in 0..hashes.len() {
            rows.heads.push(H::new(hashes[row], groups[row], values[row], packing.shares));
            packing.push_tail(row, sources, &mut rows.tails);
        }
        rows
    }

    /// Reads rows that were turned around, as they are and widened.
    fn assert_read<H: Head>(hashes: &[u64], groups: &[u32], sources: &[Source], values: &[Vec<i64>]) {
        let packing = Packing::new(sources);
        let names = Names::Hashes { shelf: 0x5A };
        let block: Rows<H> = rows(hashes, groups, values, &packing);
        let mut bytes = vec![7; 3];
        let end = write(&block.heads, &block.tails, &mut bytes, 2);
        let (mut twice, mut turned, mut full): (Rows<H>, _, _) = Default::default();
        (0..2).for_each(|_| twice.read(&bytes[2..end], block.len()));
        let mut next = 2 * hashes.len() as u32;
        Rows::rearrange(&mut turned, &twice, &packing, |_| {
            next -= 1;
            next
        });
        Rows::append(&mut full, &turned, |head| Full::of(head, names, packing.shares));
        for at in 0..2 * hashes.len() {
            let row = hashes.len() - 1 - at % hashes.len();
            let head = turned.heads[at];
            assert_eq!((head.unit(names), head.group(packing.shares)), (hashes[row], groups[row]));
            for (place, values) in packing.places.iter().zip(values) {
                assert_eq!(turned.value(at, *place, &packing), values[row], "{place:?} of row {row}");
                assert_eq!(full.value(at, *place, &packing), values[row], "{place:?} of row {row}, widened");
            }
        }
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
        let values = [
            vec![-(1 << 62), ABSENT, 1 << 62, -1],
            vec![-5, widest, ABSENT, 0],
            vec![-5, widest + 1, ABSENT, 0],
            vec![0, ABSENT, 0, ABSENT],
            vec![1 << 62, 1 << 62, ABSENT, 1 << 62],
        ];
        let expected = [
            Place::Long { at: 0 },
            Place::Head { low: -5 },
            Place::Long { at: 2 },
            Place::Short { at: 4, low: 0 },
            Place::Short { at: 5, low: 1 << 62 },
        ];
        assert_eq!(Packing::new(&sources).places, expected);
        let small = [0x5A00_0000, 0x5AFF_FFFF, 0x5A12_3456, 0x5A00_0001].map(crate::hash::small_unit);
        assert_read::<Full>(&[10, u64::MAX, 12, 13], &[0, u32::MAX, 2, 3], &sources, &values);
        assert_read::<Full>(&small, &[0, 1, 2, 255], &sources, &values);
        assert_read::<Slim>(&small, &[0, 1, 2, 255], &sources, &values);
    }

    /// The more bits a value needs, the fewer are left for groups; what is not there is never a value.
    #[test]
    fn group_and_value_share_what_the_unit_leaves() {
        let most = |furthest: i64, bits: u32| {
            let sources = [steps(7, 7 + furthest)];
            let packing = Packing::new(&sources);
            let last = u32::try_from((1u64 << bits) - 1).unwrap();
            assert_eq!(
                (packing.shares.value_bits, packing.shares.nothing),
                (40 - bits, (1u64 << (40 - bits)) as u32 - 1)
            );
            assert!(packing.is_slim(last) && (last == u32::MAX || !packing.is_slim(last + 1)));
            let small = [0x5A00_0000, 0x5AFF_FFFF, 0x5A12_3456].map(crate::hash::small_unit);
            assert_read::<Slim>(&small, &[last, 0, last], &sources, &[vec![7 + furthest, ABSENT, 7]]);
        };
        most(254, 32);
        most(255, 31);
        most((1 << 30) - 2, 10);
        most((1 << 30) - 1, 9);
        assert!(Packing::new(&[Source::Value { input: 0, domain: 0 }]).is_slim(255));
        assert!(!Packing::new(&[Source::Value { input: 0, domain: 0 }]).is_slim(256));
        assert!(Packing::new(&[]).is_slim(u32::MAX));
    }

    #[test]
    fn a_numbered_row_keeps_all_but_its_unit() {
        let packing = Packing::new(&[steps(0, 1 << 30)]);
        let names = Names::Numbers(&[]);
        let hash = Secret::new([1, 2]).bytes(b"somebody");
        let last = SHORT_NAMES as u32 - 1;
        let slim = Slim::new(hash, 300, 77, packing.shares).numbered(last);
        assert_eq!(
            (slim.unit(names), slim.group(packing.shares), slim.value(packing.shares)),
            (last.into(), 300, 77)
        );
        let full = Full::new(hash, 300, 77, packing.shares).numbered(u32::MAX);
        assert_eq!(
            (full.unit(names), full.group(packing.shares), full.value(packing.shares)),
            (u32::MAX.into(), 300, 77)
        );
    }
}
