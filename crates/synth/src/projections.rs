//! [`Projections`]: many marginals of one clique, by way of common intermediate tables.
//!
//! To sum a large table over many small sets one by one would read it once for each. Instead sets that all lack a column are taken from
//! the table with that column summed out, and so on; of several columns the one with most values goes first. The large table is
//! then read a few times only. Adding functions of the sets to the large table goes the same way back.

use crate::ColumnSet;
use crate::runs::Runs;

/// A tree of tables, from the clique to the sets; see the module text.
#[derive(Clone, Debug)]
pub(crate) struct Projections {
    /// Parents stand before their children; the first is the clique itself.
    tables: Vec<Projected>,
    /// The table of each set.
    places: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Projected {
    cells: usize,
    parent: usize,
    /// The parent over this table; none for the clique.
    runs: Option<Runs>,
}

impl Projections {
    pub(crate) fn new(clique: &ColumnSet, sets: &[&ColumnSet], sizes: &[usize]) -> Self {
        let root = Projected { cells: clique.cells(sizes) as usize, parent: 0, runs: None };
        let mut projections = Self { tables: vec![root], places: vec![0; sets.len()] };
        let wanted: Vec<usize> = (0..sets.len()).collect();
        projections.split(clique, 0, &wanted, sets, sizes);
        projections
    }

    /// Finds places for the wanted sets below the table `here`.
    fn split(
        &mut self,
        table: &ColumnSet,
        here: usize,
        wanted: &[usize],
        sets: &[&ColumnSet],
        sizes: &[usize],
    ) {
        let (done, mut left): (Vec<usize>, Vec<usize>) = wanted.iter().partition(|&&set| sets[set] == table);
        done.iter().for_each(|&set| self.places[set] = here);
        let mut columns: Vec<usize> = table.iter().collect();
        columns.sort_by_key(|&column| std::cmp::Reverse(sizes[column]));
        for column in columns {
            let (lacking, rest): (Vec<usize>, Vec<usize>) =
                left.iter().partition(|&&set| !sets[set].contains(column));
            left = rest;
            if !lacking.is_empty() {
                // Everything that none of them needs goes at once.
                let smaller = lacking.iter().fold(ColumnSet::default(), |union, &set| union.union(sets[set]));
                let runs = Some(Runs::new(table, &smaller, sizes));
                self.tables.push(Projected { cells: smaller.cells(sizes) as usize, parent: here, runs });
                self.split(&smaller, self.tables.len() - 1, &lacking, sets, sizes);
            }
        }
    }

    /// The marginals of all sets, in their order.
    pub(crate) fn gather(&self, table: &[f64]) -> Vec<Vec<f64>> {
        let mut tables: Vec<Vec<f64>> = vec![vec![]; self.tables.len()];
        for (place, projected) in self.tables.iter().enumerate() {
            if let Some(runs) = &projected.runs {
                let mut sums = vec![0.0; projected.cells];
                runs.sum(if projected.parent == 0 { table } else { &tables[projected.parent] }, &mut sums);
                tables[place] = sums;
            }
        }
        self.places
            .iter()
            .map(|&place| if place == 0 { table.to_vec() } else { tables[place].clone() })
            .collect()
    }

    /// Adds a function of each set to the table.
    pub(crate) fn scatter<'a>(&self, table: &mut [f64], functions: impl Iterator<Item = &'a [f64]>) {
        let mut tables: Vec<Vec<f64>> = self.tables.iter().map(|_| vec![]).collect();
        let add = |to: &mut [f64], what: &[f64]| to.iter_mut().zip(what).for_each(|(to, what)| *to += what);
        for (&place, function) in self.places.iter().zip(functions) {
            match place {
                0 => add(table, function),
                _ if tables[place].is_empty() => tables[place] = function.to_vec(),
                _ => add(&mut tables[place], function),
            }
        }
        for (place, projected) in self.tables.iter().enumerate().rev() {
            let Some(runs) = &projected.runs else { continue };
            let own = std::mem::take(&mut tables[place]);
            if own.is_empty() {
                continue;
            }
            let parent = &mut tables[projected.parent];
            if projected.parent == 0 {
                runs.spread(table, &own, |to, what| to + what);
            } else {
                if parent.is_empty() {
                    *parent = vec![0.0; self.tables[projected.parent].cells];
                }
                runs.spread(parent, &own, |to, what| to + what);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn marginals_and_sums_are_those_of_one_set_after_the_other(
            sizes in proptest::collection::vec(1usize..5, 1..6),
            raw in proptest::collection::vec(proptest::collection::vec(0usize..6, 0..5), 0..9),
        ) {
            let clique = ColumnSet::new(0..sizes.len());
            let sets: Vec<_> = raw.into_iter().map(|set| ColumnSet::new(set.into_iter().map(|c| c % sizes.len()))).collect();
            let names: Vec<_> = sets.iter().collect();
            let projections = Projections::new(&clique, &names, &sizes);
            let table: Vec<f64> = (0..clique.cells(&sizes)).map(|i| (i * i % 23) as f64).collect();
            let mut expected = table.clone();
            let mut functions = vec![];
            for (set, found) in sets.iter().zip(projections.gather(&table)) {
                let runs = Runs::new(&clique, set, &sizes);
                let mut sums = vec![0.0; set.cells(&sizes) as usize];
                runs.sum(&table, &mut sums);
                prop_assert_eq!(&found, &sums);
                runs.spread(&mut expected, &sums, |to, what| to + what);
                functions.push(sums);
            }
            let mut added = table;
            projections.scatter(&mut added, functions.iter().map(Vec::as_slice));
            prop_assert_eq!(added, expected);
        }
    }
}
