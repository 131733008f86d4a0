//! [`Spill`]: rows that wait on disk, because there is no room for them in memory.
//!
//! **Definition.** A file without a name, which is gone when it is closed or its process ends. It holds the heads and tails of rows, in the order in which they came.
//!
//! **Privacy.** What is written is as private as the table itself and is written where the system keeps its temporary files; nobody can open a file that has no name.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, Write};

use crate::error::TallyError;
use crate::record::{Full, Packing, Rows};

/// So many bytes are written or read at a time.
const BUFFER: usize = 1 << 16;

/// See the module text.
#[derive(Debug, Default)]
pub(crate) struct Spill {
    file: Option<File>,
    rows: usize,
}

impl Spill {
    /// Writes rows behind those that are there.
    pub(crate) fn write(&mut self, blocks: &[Rows<Full>]) -> Result<(), TallyError> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile().map_err(|error| TallyError::disk(&error))?),
        };
        let mut writer = BufWriter::with_capacity(BUFFER, file);
        let write = |writer: &mut BufWriter<&mut File>| -> std::io::Result<()> {
            blocks.iter().try_for_each(|block| block.write(writer))?;
            writer.flush()
        };
        write(&mut writer).map_err(|error| TallyError::disk(&error))?;
        self.rows += blocks.iter().map(Rows::len).sum::<usize>();
        Ok(())
    }

    /// Hands out all rows in blocks of at most so many, and forgets them.
    pub(crate) fn read(
        &mut self,
        packing: &Packing,
        most: usize,
        mut take: impl FnMut(Rows<Full>) -> Result<(), TallyError>,
    ) -> Result<(), TallyError> {
        let Some(mut file) = self.file.take() else { return Ok(()) };
        file.rewind().map_err(|error| TallyError::disk(&error))?;
        let mut reader = BufReader::with_capacity(BUFFER, file);
        let mut left = std::mem::take(&mut self.rows);
        while left > 0 {
            let many = left.min(most.max(1));
            take(Rows::read(&mut reader, many, packing).map_err(|error| TallyError::disk(&error))?)?;
            left -= many;
        }
        Ok(())
    }
}

impl Rows<Full> {
    fn write(&self, to: &mut impl Write) -> std::io::Result<()> {
        self.words().try_for_each(|word| to.write_all(&word.to_le_bytes()))
    }

    fn read(from: &mut impl Read, rows: usize, packing: &Packing) -> std::io::Result<Self> {
        let word = || {
            let mut bytes = [0; 4];
            from.read_exact(&mut bytes)?;
            Ok(u32::from_le_bytes(bytes))
        };
        Self::of_words(word, rows, packing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Source;
    use crate::record::Head;
    use crate::spec::{Bounds, Step};

    #[test]
    fn rows_come_back_as_they_went() {
        let steps = |low, high| Source::Steps { input: 0, step: Step::One, row: Bounds { low, high } };
        let packings =
            [&[][..], &[steps(-5, 5)], &[steps(-5, 5), steps(i64::MIN / 2, i64::MAX / 2), steps(0, 9)]]
                .map(Packing::new);
        for packing in packings {
            let (units, groups) = ([7, u64::MAX, 0, 1 << 40], [3, u32::MAX, 0, 9]);
            let sources = vec![vec![-5, 5, 0, 1]; 3];
            let mut values = Vec::new();
            packing.values_into(&sources, 4, &mut values);
            let mut block: Rows<Full> = Rows::default();
            for row in [0, 1, 2, 3, 2] {
                block.heads.push(Full::new(units[row], groups[row], values[row], packing.shares));
                block.push_tail(row, &sources, &packing);
            }
            let mut spill = Spill::default();
            spill.write(&[block.clone(), block.clone()]).unwrap();
            spill.write(std::slice::from_ref(&block)).unwrap();
            let mut back = Vec::new();
            let take = |rows: Rows<Full>| {
                assert!((1..=4).contains(&rows.len()));
                back.extend(rows.words());
                Ok(())
            };
            spill.read(&packing, 4, take).unwrap();
            assert_eq!(back, block.words().collect::<Vec<_>>().repeat(3));
            spill
                .read(&packing, 4, |_| Err(TallyError::ours("rows that were read are still there")))
                .unwrap();
        }
    }
}
