//! [`Archive`]: what units have come to so far, in few bytes.
//!
//! **Definition.** Numbers one after the other, each in groups of seven bits with the lowest first, a sign folded into the lowest bit where there can be one. For
//! each unit, in increasing order: its distance from the unit before, its number of entries, and the entries as [`Entries`] has them.
//!
//! **Exactness.** A number takes as many bytes as it needs, up to 128 bits; none is cut.

use crate::context::Context;
use crate::entries::{Entries, Unit};
use crate::error::TallyError;
use crate::settle::Take;
use crate::wide::Number;

/// Entries of units, to be read in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    last: u64,
}

impl Archive {
    /// How many bytes there are.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Appends units that are greater than those before, and their entries.
    pub(crate) fn append<N: Number>(&mut self, units: &[Unit], entries: &Entries<N>) {
        let mut entry = 0;
        for unit in units {
            self.put(u128::from(unit.name - self.last));
            self.put(u128::from(unit.entries));
            self.last = unit.name;
            for _ in 0..unit.entries {
                self.put_entry(entry, entries);
                entry += 1;
            }
        }
    }

    fn put_entry<N: Number>(&mut self, entry: usize, entries: &Entries<N>) {
        self.put(u128::from(entries.groups[entry]));
        for lane in &entries.lanes {
            let sum: i128 = lane[entry].into();
            self.put((sum << 1 ^ sum >> 127) as u128);
        }
        for cells in entries.cells.iter().map(|cells| cells.get(entry)) {
            self.put(cells.len() as u128);
            for &(cell, count) in cells {
                self.put(u128::from(cell));
                self.put(u128::from(count));
            }
        }
        for values in entries.values.iter().map(|values| values.get(entry)) {
            self.put(values.len() as u128);
            values.iter().for_each(|&value| self.put(u128::from(value)));
        }
    }

    #[inline]
    fn put(&mut self, mut number: u128) {
        while number > 127 {
            self.bytes.push(number as u8 | 128);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// From the first unit on.
    pub(crate) fn read(&self) -> Reading<'_> {
        let mut reading = Reading { bytes: &self.bytes, unit: None };
        reading.advance(0);
        reading
    }
}

impl Take for Archive {
    const BY_NAME: bool = true;

    fn take<N: Number>(
        &mut self,
        units: &[Unit],
        entries: &Entries<N>,
        _: &Context,
    ) -> Result<(), TallyError> {
        self.append(units, entries);
        Ok(())
    }
}

/// A place in an archive.
pub(crate) struct Reading<'a> {
    bytes: &'a [u8],
    unit: Option<u64>,
}

impl Reading<'_> {
    /// The unit that comes next.
    #[inline]
    pub(crate) fn unit(&self) -> Option<u64> {
        self.unit
    }

    /// Appends the entries of the unit that comes next, and goes on to the one after it.
    pub(crate) fn take<N: Number>(&mut self, entries: &mut Entries<N>) {
        let Some(unit) = self.unit else { return };
        for _ in 0..self.next() {
            entries.groups.push(self.next() as u32);
            for lane in &mut entries.lanes {
                let folded = self.next();
                lane.push(N::of((folded >> 1) as i128 ^ -((folded & 1) as i128)));
            }
            for cells in &mut entries.cells {
                let many = self.next();
                cells.push((0..many).map(|_| (self.next() as u32, self.next() as u64)));
            }
            for values in &mut entries.values {
                let many = self.next();
                values.push((0..many).map(|_| self.next() as u32));
            }
        }
        self.advance(unit);
    }

    fn advance(&mut self, last: u64) {
        self.unit = (!self.bytes.is_empty()).then(|| last + self.next() as u64);
    }

    #[inline]
    fn next(&mut self) -> u128 {
        let mut number = 0;
        let mut shift = 0;
        while let Some((&byte, rest)) = self.bytes.split_first() {
            self.bytes = rest;
            number |= u128::from(byte & 127) << shift;
            shift += 7;
            if byte < 128 {
                break;
            }
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lists::Lists;

    #[test]
    fn what_was_written_is_read() {
        let lanes = [vec![0, -1, i128::MAX], vec![i128::MIN, 63, -64]];
        let mut cells = [Lists::default(), Lists::default()];
        cells[0].append(&[(0, 1), (u32::MAX, u64::MAX), (7, 128)], &[0, 2, 3]);
        cells[1].append(&[(5, 5)], &[1, 1, 1]);
        let mut values = [Lists::default(), Lists::default()];
        values[0].append(&[1, 127, 128, u32::MAX], &[1, 4, 4]);
        values[1].append(&[], &[0, 0, 0]);
        let written = Entries {
            groups: vec![0, u32::MAX - 1, 300],
            lanes: lanes.to_vec(),
            cells: cells.to_vec(),
            values: values.to_vec(),
        };
        let units = [(0, 2), (17, 0), (u64::MAX, 1)].map(|(name, entries)| Unit { name, entries });
        let mut archive = Archive::default();
        archive.append(&units, &written);
        let mut read = Entries {
            lanes: vec![Vec::new(); 2],
            cells: vec![Lists::default(); 2],
            values: vec![Lists::default(); 2],
            ..Entries::default()
        };
        let mut reading = archive.read();
        for unit in units {
            assert_eq!(reading.unit(), Some(unit.name));
            let before = read.groups.len();
            reading.take(&mut read);
            assert_eq!(read.groups.len() - before, unit.entries as usize);
        }
        assert_eq!(reading.unit(), None);
        assert_eq!(read, written);
    }
}
