//! [`Model`]: a law over records, made of noisy answers alone.
//!
//! Everything done with a model (rows, marginals, saving it) is post-processing and costs nothing.

use demur_core::Histogram;

use crate::beliefs::{Beliefs, Walk};
use crate::compression::Compression;
use crate::error::require;
use crate::junction_tree::JunctionTree;
use crate::{ColumnSet, Columns, SynthError};

/// Tables of more cells than this are not made when a model is asked.
pub const MAX_QUERY_CELLS: u64 = 1 << 26;

/// A law over the records of a table, and about how many there are; see the module text.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) columns: Columns,
    pub(crate) compression: Compression,
    pub(crate) walk: Walk,
    pub(crate) beliefs: Beliefs,
    pub(crate) rows: f64,
}

impl Model {
    /// The law that these public records follow, for a table of so many rows.
    pub(crate) fn of_records(columns: &Columns, records: &Histogram, rows: f64) -> Self {
        let sizes = columns.sizes();
        let tree = JunctionTree::new(&[ColumnSet::new(0..columns.len())], &sizes);
        let walk = Walk::new(tree, sizes.clone());
        let share = |&count: &u64| count as f64 / records.size().max(1) as f64;
        let marginals = vec![records.counts().iter().map(share).collect()];
        let separators = walk.separators(&marginals);
        let beliefs = Beliefs { marginals, separators };
        Self { columns: columns.clone(), compression: Compression::none(&sizes), walk, beliefs, rows }
    }

    /// What the records look like.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// About how many rows the table has: public, or estimated from noisy counts.
    pub fn rows(&self) -> f64 {
        self.rows
    }

    /// The sets of columns between which the model knows everything it knows.
    pub fn cliques(&self) -> impl Iterator<Item = &ColumnSet> {
        self.walk.tree.nodes.iter().map(|node| &node.clique)
    }

    /// How many numbers the model is made of.
    pub fn cells(&self) -> usize {
        self.beliefs.marginals.iter().map(Vec::len).sum()
    }

    /// The share of each combination of values, the last column changing fastest: exactly what infinitely many rows would show.
    pub fn marginal(&self, set: &ColumnSet) -> Result<Vec<f64>, SynthError> {
        self.columns.check(set)?;
        let sizes = self.columns.sizes();
        let cells = set.cells(&sizes);
        require(cells <= MAX_QUERY_CELLS, "synth.query.too-large", || {
            format!(
                "this marginal has {cells} cells, but at most {MAX_QUERY_CELLS} can be answered; ask for fewer columns"
            )
        })?;
        let mut table = self.walk.marginal(&self.beliefs, set, MAX_QUERY_CELLS)?;
        // Undo the compression one column after the other, the last first: their places do not change.
        let mut now = self.compression.sizes.clone();
        for column in set.iter() {
            if now[column] != sizes[column] {
                table = self.expand(&table, set, column, &now);
                now[column] = sizes[column];
            }
        }
        Ok(table)
    }

    /// Gives one column its own values back.
    fn expand(&self, table: &[f64], set: &ColumnSet, column: usize, now: &[usize]) -> Vec<f64> {
        let inner: usize = set.iter().filter(|&other| other > column).map(|other| now[other]).product();
        let (map, shares) = (&self.compression.maps[column], &self.compression.shares[column]);
        let block = |block: &[f64]| {
            let value = |(&new, &share): (&u32, &f64)| {
                let from = new as usize * inner;
                block[from..from + inner].iter().map(|p| p * share).collect::<Vec<f64>>()
            };
            map.iter().zip(shares).flat_map(value).collect::<Vec<f64>>()
        };
        table.chunks_exact(inner * now[column]).flat_map(block).collect()
    }
}
