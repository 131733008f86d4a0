//! [`Coded`]: the rows of a table as codes, of which no unit has more than its share.
//!
//! **Guarantee.** One unit has at most `rows_per_unit` rows here. Which ones is decided by a keyed hash of the row itself, so that it depends on no other unit.
//!
//! **Why a hash of 128 bits.** Units are told apart by it. Were two units taken for one, one of them could displace rows of the other; among 10⁹ units that
//! happens with a probability of 10⁻²¹.

use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use demur_plan::catalog::Table;

use super::coding::{CodedColumn, Coder};
use crate::backend::{Backend, Failed};

/// Rows as codes, column by column.
pub(crate) struct Coded {
    pub(crate) codes: Vec<Vec<u32>>,
}

/// Some rows, with the units they belong to where these matter.
#[derive(Default)]
struct Chunk {
    codes: Vec<Vec<u32>>,
    units: Vec<u128>,
}

impl Coded {
    /// Reads a table.
    pub(crate) fn read(
        table: &Table,
        columns: &[CodedColumn],
        rows_per_unit: u32,
        backend: &dyn Backend,
    ) -> Result<Self, Failed> {
        let unit = table.unit_column().map_err(|_| Failed)?;
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).chain(unit).collect();
        let coders = columns.iter().map(CodedColumn::coder).collect::<Result<Vec<_>, _>>();
        let coders = coders.map_err(|_| Failed)?;
        let keys = [RandomState::new(), RandomState::new()];
        let chunks = Mutex::new(Vec::new());
        backend.rows(table, &names, &|batch| {
            let chunk = Chunk::of(batch, &coders, unit.map(|_| &keys))?;
            chunks.lock().map_err(|_| Failed)?.push(chunk);
            Ok(())
        })?;
        let chunks = chunks.into_inner().map_err(|_| Failed)?;
        let all = Chunk::joined(chunks, columns.len());
        Ok(match unit {
            None => Self { codes: all.codes },
            Some(_) => Self { codes: all.bounded(rows_per_unit as usize, &keys[0]) },
        })
    }
}

impl Chunk {
    fn of(
        batch: &RecordBatch,
        coders: &[Coder<'_>],
        keys: Option<&[RandomState; 2]>,
    ) -> Result<Self, Failed> {
        let mut chunk = Self::default();
        for (coder, values) in coders.iter().zip(batch.columns()) {
            let mut codes = Vec::with_capacity(batch.num_rows());
            coder.encode(values, &mut codes).map_err(|_| Failed)?;
            chunk.codes.push(codes);
        }
        if let Some(keys) = keys {
            chunk.units = unit_hashes(batch.column(coders.len()), keys)?;
        }
        Ok(chunk)
    }

    fn joined(chunks: Vec<Self>, columns: usize) -> Self {
        let mut all = Self { codes: vec![Vec::new(); columns], units: Vec::new() };
        for chunk in chunks {
            all.codes.iter_mut().zip(chunk.codes).for_each(|(all, codes)| all.extend(codes));
            all.units.extend(chunk.units);
        }
        all
    }

    /// Keeps so many rows of each unit.
    fn bounded(self, most: usize, key: &RandomState) -> Vec<Vec<u32>> {
        let rank = |row: usize| key.hash_one(self.codes.iter().map(|codes| codes[row]).collect::<Vec<_>>());
        let mut order: Vec<(u128, u64, usize)> =
            self.units.iter().enumerate().map(|(row, unit)| (*unit, rank(row), row)).collect();
        order.sort_unstable();
        let kept: Vec<usize> = order
            .chunk_by(|one, two| one.0 == two.0)
            .flat_map(|unit| unit.iter().take(most).map(|(_, _, row)| *row))
            .collect();
        self.codes.iter().map(|codes| kept.iter().map(|&row| codes[row]).collect()).collect()
    }
}

/// A hash of each value; NULL is a unit of its own.
pub(crate) fn unit_hashes(units: &ArrayRef, keys: &[RandomState; 2]) -> Result<Vec<u128>, Failed> {
    let texts = cast(units, &DataType::Utf8).map_err(|_| Failed)?;
    let hash =
        |text: Option<&str>| u128::from(keys[0].hash_one(text)) << 64 | u128::from(keys[1].hash_one(text));
    Ok(texts.as_string::<i32>().iter().map(hash).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_keeps_its_share_of_rows_whoever_else_is_there() {
        let rows: Vec<(u32, u128)> = (0..200).map(|row| (row * 7 % 50, u128::from(row % 17))).collect();
        let key = RandomState::new();
        let bounded = |rows: &[(u32, u128)]| {
            let codes =
                vec![rows.iter().map(|row| row.0).collect(), rows.iter().map(|row| row.1 as u32).collect()];
            let chunk = Chunk { codes, units: rows.iter().map(|row| row.1).collect() };
            let kept = chunk.bounded(3, &key);
            let mut kept: Vec<_> = kept[0].iter().copied().zip(kept[1].iter().copied()).collect();
            kept.sort_unstable();
            kept
        };
        let all = bounded(&rows);
        assert_eq!(all.len(), 17 * 3);
        let reversed: Vec<_> = rows.iter().rev().copied().collect();
        assert_eq!(bounded(&reversed), all);
        for gone in 0..17 {
            let others: Vec<_> = rows.iter().copied().filter(|row| row.1 != gone).collect();
            let expected: Vec<_> = all.iter().copied().filter(|row| u128::from(row.1) != gone).collect();
            assert_eq!(bounded(&others), expected);
        }
    }
}
