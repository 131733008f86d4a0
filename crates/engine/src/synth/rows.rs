//! [`Coded`]: the rows of a table as codes, of which no unit has more than its share.
//!
//! **Guarantee.** One unit has at most `rows_per_unit` rows here. Which ones depends on no other unit: every row has a rank, a keyed hash of its unit, its codes and
//! how many rows of that unit are like it, and the smallest ranks stay. So each subset of a unit's rows is as likely as any other of its size, units choose independently of each
//! other, and where rows lie in their files does not matter.
//!
//! **Why a hash of 128 bits.** Units are told apart by it. Were two units taken for one, one of them could displace rows of the other; among 10⁹ units that
//! happens with a probability of 10⁻²¹.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
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
        Self::read_by(&[RandomState::new(), RandomState::new()], table, columns, rows_per_unit, backend)
    }

    fn read_by(
        keys: &[RandomState; 2],
        table: &Table,
        columns: &[CodedColumn],
        rows_per_unit: u32,
        backend: &dyn Backend,
    ) -> Result<Self, Failed> {
        let unit = table.unit_column().map_err(|_| Failed)?;
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).chain(unit).collect();
        let coders = columns.iter().map(CodedColumn::coder).collect::<Result<Vec<_>, _>>();
        let coders = coders.map_err(|_| Failed)?;
        let chunks = Mutex::new(Vec::new());
        backend.rows(table, &names, &|batch| {
            let chunk = Chunk::of(batch, &coders, unit.map(|_| keys))?;
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
        let alike = |row: usize| {
            let mut hasher = key.build_hasher();
            self.units[row].hash(&mut hasher);
            self.codes.iter().for_each(|codes| codes[row].hash(&mut hasher));
            hasher.finish()
        };
        let mut order: Vec<(u128, u64, usize)> =
            (0..self.units.len()).map(|row| (self.units[row], alike(row), row)).collect();
        order.sort_unstable();
        let mut kept = Vec::new();
        for unit in order.chunk_by(|one, two| one.0 == two.0) {
            let mut ranks: Vec<(u64, usize)> = unit
                .chunk_by(|one, two| one.1 == two.1)
                .flat_map(|same| same.iter().enumerate())
                .map(|(copy, (_, alike, row))| (key.hash_one((alike, copy)), *row))
                .collect();
            ranks.sort_unstable();
            kept.extend(ranks.into_iter().take(most).map(|(_, row)| row));
        }
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
    use crate::Embedded;
    use crate::synth::Coding;
    use demur_core::Adjacency;
    use demur_plan::Catalog;
    use demur_synth::Neighbours;

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

    /// 3000 units with two rows of one kind and one of another: which one stays is each unit's own choice, by the number of rows. The number of units that keep the rare
    /// kind has mean 1000 and deviation 25.9; a false alarm beyond 6 deviations has a chance of 2·10⁻⁹. Were rows ranked by their codes alone, all units would agree.
    #[test]
    fn units_choose_independently_and_by_the_number_of_rows() {
        let units: Vec<u128> = (0..9000).map(|row| row / 3).collect();
        let codes = vec![(0..9000).map(|row| u32::from(row % 3 == 0)).collect()];
        let kept = Chunk { codes, units }.bounded(1, &RandomState::new());
        let rare: u32 = kept[0].iter().sum();
        assert!(kept[0].len() == 3000 && rare.abs_diff(1000) < 156, "{rare}");
    }

    const UNITS: u64 = 9;
    const CATALOG: &str = "[budget]\nname = \"t\"\n[tables.t]\nfiles = \"t.csv\"\nunit = \"who\"\n[tables.t.columns]\n\
        who = { type = \"int64\" }\nsex = { type = \"string\", values = [\"f\", \"m\"] }\nage = { type = \"int64\", low = 0, high = 99 }\n";

    /// The rows of each unit; the last unit has no name. `other` makes different rows.
    fn rows_of(unit: u64, other: u64) -> String {
        let who = if unit + 1 == UNITS { String::new() } else { unit.to_string() };
        let row = |row: u64| {
            let mixed = (unit * 31 + row * 17 + other * 101).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let sex = ["f", "m", "", "x"][(mixed % 4) as usize];
            format!("{who},{sex},{}\n", mixed / 4 % 130)
        };
        // Some rows of a unit are alike, which moves a cell furthest.
        (0..1 + unit % 5).map(|index| row(index / 2)).collect()
    }

    /// From files to counts with equal keys: no unit that comes, goes or is replaced moves a marginal by more than [`Neighbours`] says, and some reach it.
    #[test]
    fn one_unit_moves_no_marginal_further_than_its_sensitivity() {
        let catalog = Catalog::read(CATALOG).unwrap();
        let table = &catalog.tables["t"];
        let coded =
            |name: &str, kind: &str, coding| CodedColumn { name: name.into(), kind: kind.into(), coding };
        let columns = [
            coded("sex", "string", Coding::Values { values: vec!["f".into(), "m".into()], others: true }),
            coded("age", "int64", Coding::Whole { cuts: vec![0, 30, 60, 100] }),
        ];
        let keys = [RandomState::new(), RandomState::new()];
        let folder = tempfile::tempdir().unwrap();
        let marginals = |units: &[(u64, u64)], most: u32| {
            let rows: String = units.iter().map(|(unit, other)| rows_of(*unit, *other)).collect();
            std::fs::write(folder.path().join("t.csv"), format!("who,sex,age\n{rows}")).unwrap();
            let backend = Embedded::new(folder.path()).unwrap();
            let codes = Coded::read_by(&keys, table, &columns, most, &backend).unwrap().codes;
            let (mut sex, mut age, mut both) = ([0i64; 4], [0i64; 4], [0i64; 16]);
            for (a, b) in codes[0].iter().zip(&codes[1]) {
                sex[*a as usize] += 1;
                age[*b as usize] += 1;
                both[(a * 4 + b) as usize] += 1;
            }
            [sex.to_vec(), age.to_vec(), both.to_vec()]
        };
        let mut reached = [0; 2];
        for most in 1..4 {
            let all: Vec<(u64, u64)> = (0..UNITS).map(|unit| (unit, 0)).collect();
            let here = marginals(&all, most);
            for unit in 0..UNITS as usize {
                let mut without = all.clone();
                without.remove(unit);
                let mut replaced = all.clone();
                replaced[unit].1 = 1;
                let kinds = [(Adjacency::AddRemove, without), (Adjacency::Replace, replaced)];
                for (kind, (adjacency, there)) in kinds.into_iter().enumerate() {
                    let limit = Neighbours::new(adjacency, most).unwrap();
                    for (a, b) in here.iter().zip(marginals(&there, most)) {
                        let far = a.iter().zip(&b).map(|(a, b)| a.abs_diff(*b));
                        let (l1, l2) = far.fold((0, 0), |(l1, l2), far| (l1 + far, l2 + far * far));
                        let (most_l1, most_l2) = (u64::from(limit.l1()), u64::from(limit.l2_squared()));
                        assert!(l1 <= most_l1 && l2 <= most_l2, "{most}: {l1} {l2}");
                        reached[kind] += u32::from(l1 == most_l1 && l2 == most_l2);
                    }
                }
            }
        }
        assert!(reached.iter().all(|reached| *reached > 5), "{reached:?}");
    }
}
