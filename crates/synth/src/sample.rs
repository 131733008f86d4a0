//! Rows from a model.
//!
//! **Method.** The root clique's cells get their numbers of rows; then, clique by clique away from the root, the rows that agree on the separator S get
//! values of the new columns by p(C | S). Rows are *shuffled within each such group* before they get values: rows of one group differ in
//! columns drawn earlier, and whoever hands out values in order makes columns dependent that the model says are independent given S.
//! At the end all rows are shuffled, so that their order says nothing.
//!
//! **[`Rounding::Systematic`].** A group of g rows and probabilities p gets ⌊g·P_i + U⌋ − ⌊g·P_(i−1) + U⌋ rows of value i, with running sums P and one uniform U. Each number
//! is g·p_i rounded up or down, with mean g·p_i: less error than drawing each row by itself.
//!
//! **[`Rounding::Independent`].** Every row is drawn by itself: given the model, rows are independent and follow it exactly.
//!
//! Compressed values come back in the same way: rows with the common rare value are a group.

use demur_noise::{Entropy, Words};

use crate::error::require;
use crate::runs::Runs;
use crate::{ColumnSet, Model, SynthError};

/// More rows than this are refused; draw them in parts.
pub const MAX_ROWS: usize = 1 << 31;

/// How shares become whole numbers of rows; see the module text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rounding {
    /// As close to the model as whole numbers can be.
    #[default]
    Systematic,
    /// Every row for itself.
    Independent,
}

impl Model {
    /// Draws rows, column by column.
    ///
    /// The number is yours to choose; [`rows`](Self::rows) is about that of the table.
    pub fn sample(
        &self,
        rows: usize,
        rounding: Rounding,
        entropy: &mut Entropy,
    ) -> Result<Vec<Vec<u32>>, SynthError> {
        self.draw(rows, rounding, entropy)
    }

    pub(crate) fn draw<W: Words>(
        &self,
        rows: usize,
        rounding: Rounding,
        words: &mut W,
    ) -> Result<Vec<Vec<u32>>, SynthError> {
        require(rows <= MAX_ROWS, "synth.sample.rows", || {
            format!(
                "at most {MAX_ROWS} rows can be drawn at once, but {rows} were asked for; draw them in parts"
            )
        })?;
        let mut drawer = Drawer { words, rounding };
        let mut values = vec![vec![0u32; rows]; self.columns.len()];
        for node in 0..self.walk.tree.nodes.len() {
            self.draw_clique(node, &mut values, &mut drawer);
        }
        for (column, values) in values.iter_mut().enumerate() {
            self.expand_values(column, values, &mut drawer);
        }
        let order = drawer.permutation(rows);
        let shuffled = |column: Vec<u32>| order.iter().map(|&row| column[row as usize]).collect();
        Ok(values.into_iter().map(shuffled).collect())
    }

    /// Gives every row values of the clique's new columns.
    fn draw_clique<W: Words>(&self, node: usize, values: &mut [Vec<u32>], drawer: &mut Drawer<'_, W>) {
        let place = &self.walk.tree.nodes[node];
        let sizes = &self.walk.sizes;
        let new = place.clique.difference(&place.separator);
        let conditional = by_separator(&self.beliefs.marginals[node], &place.clique, &place.separator, sizes);
        let cells = new.cells(sizes) as usize;
        let groups = grouped(values, &place.separator, sizes);
        for (group, mut members) in groups.into_iter().enumerate().filter(|(_, members)| !members.is_empty())
        {
            drawer.shuffle(&mut members);
            let chosen = drawer.choose(&conditional[group * cells..(group + 1) * cells], members.len());
            for (&row, mut cell) in members.iter().zip(chosen) {
                for column in new.iter().rev() {
                    values[column][row as usize] = (cell % sizes[column]) as u32;
                    cell /= sizes[column];
                }
            }
        }
    }

    /// Gives a column its own values back.
    fn expand_values<W: Words>(&self, column: usize, values: &mut [u32], drawer: &mut Drawer<'_, W>) {
        let (map, shares) = (&self.compression.maps[column], &self.compression.shares[column]);
        let size = self.compression.sizes[column];
        let mut originals: Vec<Vec<usize>> = vec![vec![]; size];
        map.iter().enumerate().for_each(|(value, &new)| originals[new as usize].push(value));
        let groups = grouped(&[values.to_vec()], &ColumnSet::new([0]), &[size]);
        for (mut members, originals) in groups.into_iter().zip(originals) {
            if let [only] = originals[..] {
                members.iter().for_each(|&row| values[row as usize] = only as u32);
                continue;
            }
            drawer.shuffle(&mut members);
            let weights: Vec<f64> = originals.iter().map(|&value| shares[value]).collect();
            for (&row, chosen) in members.iter().zip(drawer.choose(&weights, members.len())) {
                values[row as usize] = originals[chosen] as u32;
            }
        }
    }
}

/// p(C) with the separator's columns first, one stretch of new columns for each of its values.
fn by_separator(table: &[f64], clique: &ColumnSet, separator: &ColumnSet, sizes: &[usize]) -> Vec<f64> {
    let new = clique.difference(separator);
    let (groups, cells) = (separator.cells(sizes) as usize, new.cells(sizes) as usize);
    let mut places = vec![0.0; table.len()];
    let number = |set: &ColumnSet| -> Vec<f64> { (0..set.cells(sizes)).map(|cell| cell as f64).collect() };
    Runs::new(clique, separator, sizes)
        .spread(&mut places, &number(separator), |_, group| group * cells as f64);
    Runs::new(clique, &new, sizes).spread(&mut places, &number(&new), |place, cell| place + cell);
    let mut ordered = vec![0.0; groups * cells];
    for (&place, &p) in places.iter().zip(table) {
        ordered[place as usize] = p;
    }
    ordered
}

/// The rows of each combination of the set's values.
fn grouped(values: &[Vec<u32>], set: &ColumnSet, sizes: &[usize]) -> Vec<Vec<u32>> {
    let rows = values.first().map_or(0, Vec::len);
    let mut places = vec![0usize; rows];
    for column in set.iter() {
        for (place, &value) in places.iter_mut().zip(&values[column]) {
            *place = *place * sizes[column] + value as usize;
        }
    }
    let mut groups: Vec<Vec<u32>> = vec![vec![]; set.cells(sizes) as usize];
    for (row, place) in places.into_iter().enumerate() {
        groups[place].push(row as u32);
    }
    groups
}

/// Random choices; none of them needs to be exact, as all of it is post-processing.
struct Drawer<'a, W> {
    words: &'a mut W,
    rounding: Rounding,
}

impl<W: Words> Drawer<'_, W> {
    /// Uniform in [0, 1).
    fn uniform(&mut self) -> f64 {
        (self.words.word() >> 11) as f64 * (0.5f64).powi(53)
    }

    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.words.word()) * bound as u128) >> 64) as usize
    }

    fn shuffle(&mut self, items: &mut [u32]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    fn permutation(&mut self, rows: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..rows as u32).collect();
        self.shuffle(&mut order);
        order
    }

    /// `count` cells by these weights, in increasing order if systematic; the weights need not sum to 1.
    fn choose(&mut self, weights: &[f64], count: usize) -> Vec<usize> {
        let total: f64 = weights.iter().sum();
        if total <= 0.0 || !total.is_finite() {
            // Nothing is known here: every cell is as good.
            return (0..count).map(|_| self.below(weights.len())).collect();
        }
        match self.rounding {
            Rounding::Systematic => systematic(weights, total, count, self.uniform()),
            Rounding::Independent => self.independent(weights, total, count),
        }
    }

    fn independent(&mut self, weights: &[f64], total: f64, count: usize) -> Vec<usize> {
        let mut sums: Vec<f64> = Vec::with_capacity(weights.len());
        let mut sum = 0.0;
        for weight in weights {
            sum += weight;
            sums.push(sum);
        }
        let last = weights.iter().rposition(|&weight| weight > 0.0).unwrap_or(0);
        (0..count)
            .map(|_| {
                let at = self.uniform() * total;
                sums.partition_point(|&sum| sum <= at).min(last)
            })
            .collect()
    }
}

/// ⌊count·P_i + U⌋ − ⌊count·P_(i−1) + U⌋ times cell i.
fn systematic(weights: &[f64], total: f64, count: usize, offset: f64) -> Vec<usize> {
    let mut chosen = Vec::with_capacity(count);
    let mut sum = 0.0;
    let mut last = 0;
    for (cell, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        sum += weight;
        let until = (sum / total * count as f64 + offset).floor() as usize;
        while chosen.len() < until.min(count) {
            chosen.push(cell);
        }
        last = cell;
    }
    chosen.resize(count, last);
    chosen
}

#[cfg(test)]
mod tests;
