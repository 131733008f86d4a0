//! [`JunctionTree`]: cliques of columns in a tree, such that every column's cliques are connected.
//!
//! **Definition.** Given sets of columns (what was measured), a junction tree has cliques that cover every set, and for
//! every column the cliques that hold it form a connected part of the tree. Then a law that is a product of
//! functions of the sets is known by its marginals on cliques C and separators S: p = Π p(C) / Π p(S).
//!
//! **Construction.** Columns are eliminated one by one; what a column was connected with becomes a clique. Good orders keep
//! cliques small, and the best is hard to find, so two greedy rules are tried (fewest new cells, fewest new
//! connections) and the one with fewer cells in total is kept. The tree is a spanning tree of largest separators, which
//! has the connectedness \[Jensen1994\].

use crate::ColumnSet;

/// See the module text. Every column is in at least one clique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JunctionTree {
    /// Parents stand before their children.
    pub(crate) nodes: Vec<Node>,
    /// The nodes by their distance from the root.
    pub(crate) levels: Vec<Vec<usize>>,
}

/// A clique and its way to the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) clique: ColumnSet,
    /// None for the root alone.
    pub(crate) parent: Option<usize>,
    /// What it shares with its parent; it may be empty.
    pub(crate) separator: ColumnSet,
    pub(crate) children: Vec<usize>,
}

impl JunctionTree {
    /// A tree whose cliques cover these sets.
    pub(crate) fn new(sets: &[ColumnSet], sizes: &[usize]) -> Self {
        Self::of_cliques(cliques(sets, sizes))
    }

    /// A tree of maximal cliques of a chordal graph.
    fn of_cliques(cliques: Vec<ColumnSet>) -> Self {
        let mut nodes: Vec<Node> = Vec::with_capacity(cliques.len());
        // Prim: the next clique is the one that shares most with the tree so far.
        let mut waiting: Vec<(ColumnSet, usize, usize)> = cliques.into_iter().map(|c| (c, 0, 0)).collect();
        let mut next = (!waiting.is_empty()).then_some(0);
        while let Some(place) = next {
            let (clique, parent, _) = waiting.swap_remove(place);
            let parent = (!nodes.is_empty()).then_some(parent);
            let separator = parent.map_or_else(ColumnSet::default, |p| clique.intersection(&nodes[p].clique));
            let here = nodes.len();
            if let Some(parent) = parent {
                nodes[parent].children.push(here);
            }
            for (other, best, shared) in &mut waiting {
                let common = other.intersection(&clique).len();
                if common > *shared || here == 0 {
                    (*best, *shared) = (here, common);
                }
            }
            nodes.push(Node { clique, parent, separator, children: vec![] });
            next = (0..waiting.len()).max_by_key(|&i| (waiting[i].2, std::cmp::Reverse(&waiting[i].0)));
        }
        let levels = levels(&nodes);
        Self { nodes, levels }
    }

    /// The smallest clique that holds the set.
    pub(crate) fn home(&self, set: &ColumnSet, sizes: &[usize]) -> Option<usize> {
        let holds = |&node: &usize| set.is_subset(&self.nodes[node].clique);
        (0..self.nodes.len()).filter(holds).min_by_key(|&node| self.nodes[node].clique.cells(sizes))
    }

    /// How many cells all cliques have together.
    #[cfg(test)]
    pub(crate) fn cells(&self, sizes: &[usize]) -> u64 {
        self.nodes.iter().fold(0u64, |sum, node| sum.saturating_add(node.clique.cells(sizes)))
    }
}

fn levels(nodes: &[Node]) -> Vec<Vec<usize>> {
    let mut depth = vec![0; nodes.len()];
    let mut levels: Vec<Vec<usize>> = Vec::new();
    for (place, node) in nodes.iter().enumerate() {
        depth[place] = node.parent.map_or(0, |parent| depth[parent] + 1);
        if levels.len() <= depth[place] {
            levels.push(vec![]);
        }
        levels[depth[place]].push(place);
    }
    levels
}

/// How many cells the cliques of a tree for these sets have together; saturates.
pub(crate) fn total_cells(sets: &[ColumnSet], sizes: &[usize]) -> u64 {
    cells_of(&cliques(sets, sizes), sizes)
}

fn cells_of(cliques: &[ColumnSet], sizes: &[usize]) -> u64 {
    cliques.iter().fold(0u64, |sum, clique| sum.saturating_add(clique.cells(sizes)))
}

/// The maximal cliques of a chordal graph in which every set is connected.
fn cliques(sets: &[ColumnSet], sizes: &[usize]) -> Vec<ColumnSet> {
    let graph = Graph::new(sets, sizes.len());
    let by_cells = graph.clone().eliminate(|graph, column| {
        let new = graph.neighbours(column).map(|other| (sizes[other] as f64).ln()).sum::<f64>();
        new + (sizes[column] as f64).ln()
    });
    let by_fill = graph.eliminate(|graph, column| graph.fill(column) as f64);
    if cells_of(&by_cells, sizes) <= cells_of(&by_fill, sizes) { by_cells } else { by_fill }
}

/// Which columns are connected, and which are left.
#[derive(Clone)]
struct Graph {
    connected: Vec<Vec<bool>>,
    left: Vec<bool>,
}

impl Graph {
    fn new(sets: &[ColumnSet], columns: usize) -> Self {
        let mut connected = vec![vec![false; columns]; columns];
        for set in sets {
            for a in set.iter() {
                for b in set.iter().filter(|&b| b != a) {
                    connected[a][b] = true;
                }
            }
        }
        Self { connected, left: vec![true; columns] }
    }

    fn neighbours(&self, column: usize) -> impl Iterator<Item = usize> + '_ {
        let row = &self.connected[column];
        (0..row.len()).filter(move |&other| row[other] && self.left[other])
    }

    /// How many connections are missing among the neighbours.
    fn fill(&self, column: usize) -> usize {
        let around: Vec<usize> = self.neighbours(column).collect();
        let missing =
            |(i, &a): (usize, &usize)| around[i + 1..].iter().filter(|&&b| !self.connected[a][b]).count();
        around.iter().enumerate().map(missing).sum()
    }

    /// Removes columns one by one, the cheapest first; only the costs of neighbours' neighbours change.
    fn eliminate(mut self, cost: impl Fn(&Self, usize) -> f64) -> Vec<ColumnSet> {
        let columns = self.left.len();
        let mut costs: Vec<f64> = (0..columns).map(|column| cost(&self, column)).collect();
        let mut found: Vec<ColumnSet> = Vec::new();
        for _ in 0..columns {
            let left = (0..columns).filter(|&column| self.left[column]);
            let Some(column) = left.min_by(|&a, &b| costs[a].total_cmp(&costs[b])) else { break };
            let around: Vec<usize> = self.neighbours(column).collect();
            self.left[column] = false;
            let mut changed = vec![false; columns];
            for &a in &around {
                for &b in &around {
                    self.connected[a][b] |= a != b;
                }
                changed[a] = true;
                self.neighbours(a).for_each(|other| changed[other] = true);
            }
            for other in (0..columns).filter(|&other| changed[other] && self.left[other]) {
                costs[other] = cost(&self, other);
            }
            let clique = ColumnSet::new(around.into_iter().chain([column]));
            if !found.iter().any(|known| clique.is_subset(known)) {
                found.push(clique);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sets(pairs: &[(usize, usize)]) -> Vec<ColumnSet> {
        pairs.iter().map(|&(a, b)| ColumnSet::new([a, b])).collect()
    }

    #[test]
    fn a_tree_of_pairs_is_its_own_junction_tree() {
        let tree = JunctionTree::new(&sets(&[(0, 1), (1, 2), (1, 3), (3, 4)]), &[2; 5]);
        let mut cliques: Vec<_> = tree.nodes.iter().map(|node| node.clique.clone()).collect();
        cliques.sort();
        assert_eq!(cliques, sets(&[(0, 1), (1, 2), (1, 3), (3, 4)]));
    }

    #[test]
    fn a_ring_is_filled_with_as_few_cells_as_possible() {
        // The chord of the ring is best put at the two small columns.
        let tree = JunctionTree::new(&sets(&[(0, 1), (1, 2), (2, 3), (3, 0)]), &[2, 50, 2, 50]);
        assert_eq!(tree.cells(&[2, 50, 2, 50]), 2 * 2 * 50 * 2);
    }

    #[test]
    fn columns_that_nobody_asked_for_stand_alone() {
        let tree = JunctionTree::new(&[], &[3, 4]);
        assert_eq!(tree.nodes.len(), 2);
        assert_eq!(tree.cells(&[3, 4]), 7);
        assert!(tree.nodes.iter().all(|node| node.separator.is_empty()));
    }

    proptest! {
        #[test]
        fn trees_cover_the_sets_and_columns_are_connected(
            raw in proptest::collection::vec(proptest::collection::vec(0usize..8, 1..4), 0..12),
            sizes in proptest::collection::vec(1usize..6, 8),
        ) {
            let sets: Vec<_> = raw.into_iter().map(ColumnSet::new).collect();
            let tree = JunctionTree::new(&sets, &sizes);
            prop_assert!(sets.iter().all(|set| tree.home(set, &sizes).is_some()));
            prop_assert_eq!(tree.cells(&sizes), total_cells(&sets, &sizes));
            for column in 0..sizes.len() {
                // Of the nodes with the column, exactly one has no parent with it.
                let tops = tree.nodes.iter().filter(|node| {
                    node.clique.contains(column) && !node.separator.contains(column)
                });
                prop_assert_eq!(tops.count(), 1);
            }
            for (place, node) in tree.nodes.iter().enumerate() {
                prop_assert!(node.parent.is_none_or(|parent| parent < place));
                prop_assert_eq!(node.parent.is_none(), place == 0);
                if let Some(parent) = node.parent {
                    prop_assert_eq!(&node.separator, &node.clique.intersection(&tree.nodes[parent].clique));
                    prop_assert!(tree.nodes[parent].children.contains(&place));
                }
            }
        }
    }
}
