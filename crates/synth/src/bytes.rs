//! A model as bytes, to be saved and read again.
//!
//! **Format**, version 1; whole numbers are 64 bits, little-endian; numbers are IEEE doubles.
//!
//! ```text
//! "demur model\n"  version
//! rows                                             the estimated number of rows
//! columns          for each: length of its name, name, size, compressed size,
//!                  and if these differ: for each value its compressed value and its share
//! cliques          for each: number of columns, their places, and p(C), the last column changing fastest
//! checksum         FNV-1a of everything before
//! ```
//!
//! Lengths are compared with what is left of the bytes before anything is reserved, so a damaged file gives a sentence and no large
//! allocation. The tree is built again from the cliques and checked to be the one they came from.

use crate::beliefs::{Beliefs, Walk};
use crate::compression::Compression;
use crate::error::require;
use crate::junction_tree::JunctionTree;
use crate::{ColumnSet, Columns, Model, SynthError};

const MAGIC: &[u8] = b"demur model\n";
const VERSION: u64 = 1;
/// Shares may be off by this much: they were added up in another order.
const SLACK: f64 = 1e-6;

impl Model {
    /// The model as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64 + 8 * self.cells());
        bytes.extend_from_slice(MAGIC);
        put(&mut bytes, VERSION);
        bytes.extend_from_slice(&self.rows.to_le_bytes());
        put(&mut bytes, self.columns.len() as u64);
        for (place, column) in self.columns.iter().enumerate() {
            put(&mut bytes, column.name.len() as u64);
            bytes.extend_from_slice(column.name.as_bytes());
            put(&mut bytes, column.size as u64);
            let compressed = self.compression.sizes[place];
            put(&mut bytes, compressed as u64);
            if compressed != column.size {
                let (maps, shares) = (&self.compression.maps[place], &self.compression.shares[place]);
                for (&new, share) in maps.iter().zip(shares) {
                    put(&mut bytes, u64::from(new));
                    bytes.extend_from_slice(&share.to_le_bytes());
                }
            }
        }
        put(&mut bytes, self.walk.tree.nodes.len() as u64);
        for (node, table) in self.walk.tree.nodes.iter().zip(&self.beliefs.marginals) {
            put(&mut bytes, node.clique.len() as u64);
            node.clique.iter().for_each(|column| put(&mut bytes, column as u64));
            table.iter().for_each(|p| bytes.extend_from_slice(&p.to_le_bytes()));
        }
        let sum = checksum(&bytes);
        put(&mut bytes, sum);
        bytes
    }

    /// The model that was written as these bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SynthError> {
        let body = bytes.len().checked_sub(8).filter(|_| bytes.starts_with(MAGIC));
        let Some(body) = body else {
            return Err(damaged("they do not begin like a model of demur"));
        };
        let mut reader = Reader { left: &bytes[MAGIC.len()..] };
        let version = reader.number()?;
        require(version == VERSION, "synth.model.version", || {
            format!(
                "this model has format {version}, but this version of demur reads format {VERSION}; use another version"
            )
        })?;
        let stored = Reader { left: &bytes[body..] }.number()?;
        if checksum(&bytes[..body]) != stored {
            return Err(damaged("their checksum is wrong"));
        }
        reader.left = &reader.left[..reader.left.len() - 8];
        reader.model()
    }
}

fn put(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn damaged(how: &str) -> SynthError {
    SynthError::new(
        "synth.model.damaged",
        format!("these bytes are not a whole model: {how}; save or copy it again"),
    )
}

struct Reader<'a> {
    left: &'a [u8],
}

impl Reader<'_> {
    fn take(&mut self, length: usize) -> Result<&[u8], SynthError> {
        if length > self.left.len() {
            return Err(damaged("they end too early"));
        }
        let (taken, left) = self.left.split_at(length);
        self.left = left;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64, SynthError> {
        let bytes = self.take(8)?;
        bytes.try_into().map(u64::from_le_bytes).map_err(|_| damaged("they end too early"))
    }

    /// A number of things that take at least `each` bytes.
    fn length(&mut self, each: usize) -> Result<usize, SynthError> {
        let number = self.number()?;
        let fits = number.saturating_mul(each as u64) <= self.left.len() as u64;
        if fits { Ok(number as usize) } else { Err(damaged("a length is larger than the file")) }
    }

    /// A number that is finite and not negative.
    fn share(&mut self) -> Result<f64, SynthError> {
        let value = f64::from_bits(self.number()?);
        if value.is_finite() && value >= 0.0 { Ok(value) } else { Err(damaged("a share is no share")) }
    }

    fn model(mut self) -> Result<Model, SynthError> {
        let rows = self.share()?;
        let mut named = vec![];
        let (mut maps, mut shares, mut sizes) = (vec![], vec![], vec![]);
        for _ in 0..self.length(24)? {
            let length = self.length(1)?;
            let name =
                std::str::from_utf8(self.take(length)?).map_err(|_| damaged("a name is no text"))?.to_owned();
            let (size, compressed) = (self.number()?, self.number()?);
            if compressed > size || compressed == 0 || size > crate::MAX_VALUES as u64 {
                return Err(damaged("a column has an impossible size"));
            }
            let (map, share) = self.compressed(size as usize, compressed as usize)?;
            named.push((name, size as usize));
            maps.push(map);
            shares.push(share);
            sizes.push(compressed as usize);
        }
        let columns = Columns::new(named)?;
        let mut cliques = vec![];
        for _ in 0..self.length(8)? {
            cliques.push(self.clique(&columns, &sizes)?);
        }
        if !self.left.is_empty() {
            return Err(damaged("there is more than a model"));
        }
        let (walk, beliefs) = tree(cliques, &sizes)?;
        Ok(Model { columns, compression: Compression { maps, shares, sizes }, walk, beliefs, rows })
    }

    fn compressed(&mut self, size: usize, compressed: usize) -> Result<(Vec<u32>, Vec<f64>), SynthError> {
        if size == compressed {
            return Ok(((0..size as u32).collect(), vec![1.0; size]));
        }
        let (mut map, mut share) = (vec![], vec![]);
        for _ in 0..size {
            map.push(self.number()?);
            share.push(self.share()?);
        }
        let mut named = vec![false; compressed];
        for &new in &map {
            *named.get_mut(new as usize).ok_or_else(|| damaged("a value has an impossible name"))? = true;
        }
        if named.contains(&false) {
            return Err(damaged("a name has no value"));
        }
        Ok((map.into_iter().map(|new| new as u32).collect(), share))
    }

    fn clique(&mut self, columns: &Columns, sizes: &[usize]) -> Result<(ColumnSet, Vec<f64>), SynthError> {
        let places = (0..self.length(8)?).map(|_| self.number()).collect::<Result<Vec<_>, _>>()?;
        let set = ColumnSet::new(places.iter().map(|&place| place as usize));
        if set.len() != places.len() || set.iter().any(|place| place >= columns.len()) {
            return Err(damaged("a clique has impossible columns"));
        }
        let cells = set.cells(sizes);
        if cells.saturating_mul(8) > self.left.len() as u64 {
            return Err(damaged("they end too early"));
        }
        let table = (0..cells).map(|_| self.share()).collect::<Result<Vec<f64>, _>>()?;
        if (table.iter().sum::<f64>() - 1.0).abs() > SLACK {
            return Err(damaged("the shares of a clique do not sum to 1"));
        }
        Ok((set, table))
    }
}

/// The tree of these cliques with their tables; it must have exactly these cliques.
fn tree(cliques: Vec<(ColumnSet, Vec<f64>)>, sizes: &[usize]) -> Result<(Walk, Beliefs), SynthError> {
    let sets: Vec<ColumnSet> = cliques.iter().map(|(set, _)| set.clone()).collect();
    let tree = JunctionTree::new(&sets, sizes);
    let mut tables: std::collections::HashMap<ColumnSet, Vec<f64>> = cliques.into_iter().collect();
    let mut marginals = vec![];
    for node in &tree.nodes {
        marginals
            .push(tables.remove(&node.clique).ok_or_else(|| damaged("its cliques are not those of a tree"))?);
    }
    if !tables.is_empty() {
        return Err(damaged("its cliques are not those of a tree"));
    }
    let walk = Walk::new(tree, sizes.to_vec());
    let separators = walk.separators(&marginals);
    Ok((walk, Beliefs { marginals, separators }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beliefs::tests::{believe, models};
    use demur_noise::Words;
    use demur_testkit::Seeded;
    use proptest::prelude::*;

    fn model(sizes: &[usize], sets: &[(ColumnSet, Vec<f64>)]) -> Model {
        let (walk, beliefs) = believe(sets, sizes);
        let mut compression = Compression::none(sizes);
        // The first column had one value more, which shares a name.
        compression.maps[0].push(0);
        compression.shares[0].push(0.25);
        compression.shares[0][0] = 0.75;
        let mut own = sizes.to_vec();
        own[0] += 1;
        let columns = Columns::new(own.iter().enumerate().map(|(i, &size)| (format!("c{i}"), size))).unwrap();
        Model { columns, compression, walk, beliefs: beliefs.unwrap(), rows: 77.5 }
    }

    fn example() -> Model {
        let sets = [
            (ColumnSet::new([0, 1]), vec![0.5, 1.0, 0.0, -1.0]),
            (ColumnSet::new([1, 2]), vec![0.0, 2.0, 1.0, 0.3, 0.2, 0.1]),
        ];
        model(&[2, 2, 3], &sets)
    }

    proptest! {
        #[test]
        fn a_model_read_again_answers_the_same((sizes, sets) in models(4.0)) {
            let model = model(&sizes, &sets);
            let again = Model::from_bytes(&model.to_bytes()).unwrap();
            prop_assert_eq!(again.columns(), model.columns());
            prop_assert_eq!(again.rows(), model.rows());
            for set in ColumnSet::new(0..sizes.len()).subsets() {
                let (a, b) = (model.marginal(&set).unwrap(), again.marginal(&set).unwrap());
                prop_assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-12));
            }
        }
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_noticed() {
        let bytes = example().to_bytes();
        for end in 0..bytes.len() {
            assert!(Model::from_bytes(&bytes[..end]).is_err());
        }
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 0x41;
            let error = Model::from_bytes(&changed).unwrap_err();
            assert!(
                ["synth.model.damaged", "synth.model.version"].contains(&error.code()),
                "{place}: {error}"
            );
        }
    }

    /// Whoever forges the checksum, too, gets a sentence: no panic and no memory without bytes behind it.
    #[test]
    fn forged_files_are_refused_or_harmless() {
        let bytes = example().to_bytes();
        let mut words = Seeded::new(9);
        for _ in 0..20_000 {
            let mut forged = bytes.clone();
            for _ in 0..1 + words.word() % 3 {
                let place = 20 + words.word() as usize % (forged.len() - 28);
                forged[place] = [0, 1, 2, 0x7f, 0xff, words.word() as u8][words.word() as usize % 6];
            }
            let body = forged.len() - 8;
            let sum = checksum(&forged[..body]);
            forged[body..].copy_from_slice(&sum.to_le_bytes());
            if let Ok(model) = Model::from_bytes(&forged) {
                let all = ColumnSet::new(0..model.columns().len());
                let _ = model.marginal(&all);
                let _ = model.draw(10, crate::Rounding::Systematic, &mut words);
            }
        }
    }

    #[test]
    fn another_version_is_named() {
        let mut bytes = example().to_bytes();
        bytes[12] = 2;
        let text = Model::from_bytes(&bytes).unwrap_err().to_string();
        assert_eq!(
            text,
            "this model has format 2, but this version of demur reads format 1; use another version"
        );
    }
}
