//! [`Histogram`]: a dataset as how often each record occurs.
//!
//! **Definition.** A multiset of records over a domain X is a vector x ∈ ℕ^|X|. Its size is
//! ‖x‖₁, and ‖x − y‖₁ is how many records must be added or removed to turn x
//! into y. Neighbours differ by one record: see [`Adjacency`].

use std::iter;

use crate::error::require;
use crate::{Adjacency, Domain, Error};

/// Cells beyond this do not fit into memory.
pub(crate) const MAX_CELLS: u64 = 1 << 28;
/// Records beyond this nobody has; below it, sizes and distances cannot overflow.
const MAX_RECORDS: u64 = 1 << 62;

/// A dataset as a count for every record of its [`Domain`].
///
/// ```
/// use demur_core::{Adjacency, Domain, Histogram};
///
/// let domain = Domain::new([("smoker", 2)])?;
/// let x = Histogram::from_records(&domain, [[0], [1], [1]])?;
/// let y = Histogram::from_records(&domain, [[0], [0], [1]])?;
/// assert_eq!(x.counts(), [1, 2]);
/// assert_eq!(x.size(), 3);
/// assert_eq!(x.distance(&y)?, 2);
/// assert!(Histogram::are_neighbours(&x, &y, Adjacency::Replace));
/// # Ok::<(), demur_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    domain: Domain,
    counts: Vec<u64>,
}

impl Histogram {
    /// The dataset with these counts, in order of the records' indices.
    pub fn new(domain: &Domain, counts: Vec<u64>) -> Result<Self, Error> {
        let (cells, found) = (domain.size(), counts.len());
        require(found as u64 == cells, "core.histogram.length", || {
            format!("a histogram must have one count for each of {cells} records, but has {found}")
        })?;
        let size: u128 = counts.iter().map(|&count| u128::from(count)).sum();
        require(size <= MAX_RECORDS.into(), "core.histogram.too-many-records", too_many_records)?;
        Ok(Self { domain: domain.clone(), counts })
    }

    /// The dataset without records.
    pub fn empty(domain: &Domain) -> Result<Self, Error> {
        check_cells(domain)?;
        Self::new(domain, vec![0; domain.size() as usize])
    }

    /// The dataset of these records; their order does not matter.
    pub fn from_records<R: AsRef<[u64]>>(
        domain: &Domain,
        records: impl IntoIterator<Item = R>,
    ) -> Result<Self, Error> {
        let mut counts = Self::empty(domain)?.counts;
        for record in records {
            counts[domain.index(record.as_ref())? as usize] += 1;
        }
        Self::new(domain, counts)
    }

    /// Every dataset over a small domain with at most `max_size` records.
    ///
    /// There are (max_size + |X|)! / (max_size! · |X|!) of them.
    ///
    /// ```
    /// use demur_core::{Domain, Histogram};
    ///
    /// let domain = Domain::new([("bit", 2)])?;
    /// assert_eq!(Histogram::all(&domain, 3)?.count(), 10);
    /// # Ok::<(), demur_core::Error>(())
    /// ```
    pub fn all(domain: &Domain, max_size: u64) -> Result<impl Iterator<Item = Self>, Error> {
        require(max_size <= MAX_RECORDS, "core.histogram.too-many-records", too_many_records)?;
        let first = Self::empty(domain)?;
        Ok(iter::successors(Some(first), move |last| last.successor(max_size)))
    }

    /// The domain of the records.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// How often each record occurs, in order of the records' indices.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// How many records there are: ‖x‖₁.
    pub fn size(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How many records must be added or removed to reach the other dataset: ‖x − y‖₁.
    pub fn distance(&self, other: &Self) -> Result<u64, Error> {
        require(self.domain == other.domain, "core.histogram.domain", || {
            "two histograms can only be compared over one domain, but these have two".into()
        })?;
        let cells = self.counts.iter().zip(&other.counts);
        Ok(cells.map(|(a, b)| a.abs_diff(*b)).sum())
    }

    /// Every neighbour, each once; never the dataset itself.
    ///
    /// ```
    /// use demur_core::{Adjacency, Domain, Histogram};
    ///
    /// let x = Histogram::new(&Domain::new([("region", 3)])?, vec![4, 0, 1])?;
    /// assert_eq!(x.neighbours(Adjacency::AddRemove).count(), 3 + 2);
    /// assert_eq!(x.neighbours(Adjacency::Replace).count(), 2 * 2);
    /// # Ok::<(), demur_core::Error>(())
    /// ```
    pub fn neighbours(&self, adjacency: Adjacency) -> impl Iterator<Item = Self> + '_ {
        moves(self.counts.len(), adjacency).filter_map(|(from, to)| self.moved(from, to))
    }

    /// Whether two datasets differ by exactly one record.
    ///
    /// Datasets over different domains are never neighbours.
    pub fn are_neighbours(x: &Self, y: &Self, adjacency: Adjacency) -> bool {
        let distance = x.distance(y).ok();
        match adjacency {
            Adjacency::AddRemove => distance == Some(1),
            Adjacency::Replace => distance == Some(2) && x.size() == y.size(),
        }
    }

    /// The dataset with one record less of `from` and one more of `to`, if there is one.
    fn moved(&self, from: Option<usize>, to: Option<usize>) -> Option<Self> {
        let mut counts = self.counts.clone();
        if let Some(cell) = from {
            counts[cell] = counts[cell].checked_sub(1)?;
        }
        if let Some(cell) = to {
            counts[cell] += 1;
        }
        Self::new(&self.domain, counts).ok()
    }

    /// The next dataset in the order of [`Histogram::all`]: an odometer that carries when full.
    fn successor(&self, max_size: u64) -> Option<Self> {
        let mut next = self.clone();
        let mut size = self.size();
        for count in &mut next.counts {
            if size < max_size {
                *count += 1;
                return Some(next);
            }
            size -= *count;
            *count = 0;
        }
        None
    }
}

type Move = (Option<usize>, Option<usize>);

/// The records that may go and come between neighbours.
fn moves(cells: usize, adjacency: Adjacency) -> Box<dyn Iterator<Item = Move>> {
    let add = (0..cells).map(|to| (None, Some(to)));
    let remove = (0..cells).map(|from| (Some(from), None));
    let replace = move |from| (0..cells).filter(move |to| *to != from).map(move |to| (Some(from), Some(to)));
    match adjacency {
        Adjacency::AddRemove => Box::new(add.chain(remove)),
        Adjacency::Replace => Box::new((0..cells).flat_map(replace)),
    }
}

/// Refuses a domain whose records cannot be listed in memory.
pub(crate) fn check_cells(domain: &Domain) -> Result<(), Error> {
    let size = domain.size();
    require(size <= MAX_CELLS, "core.histogram.too-large", || {
        format!("a domain that is listed must have at most {MAX_CELLS} records, but this one has {size}")
    })
}

fn too_many_records() -> String {
    format!("a dataset must have at most {MAX_RECORDS} records, but this one has more")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain() -> Domain {
        Domain::new([("a", 2), ("b", 2)]).unwrap()
    }

    fn all(max_size: u64) -> Vec<Histogram> {
        Histogram::all(&domain(), max_size).unwrap().collect()
    }

    #[test]
    fn records_are_counted() {
        let x = Histogram::from_records(&domain(), [[0, 1], [1, 1], [0, 1]]).unwrap();
        assert_eq!((x.counts(), x.size()), (&[0, 2, 0, 1][..], 3));
        let error = Histogram::from_records(&domain(), [[0, 2]]).unwrap_err();
        assert_eq!(error.code(), "core.domain.value");
    }

    #[test]
    fn enumeration_meets_every_dataset_once() {
        let found = all(4);
        assert_eq!(found.len(), 70); // 8! / (4! · 4!)
        assert!(found.iter().all(|x| x.size() <= 4));
        let mut distinct: Vec<_> = found.iter().map(Histogram::counts).collect();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), 70);
    }

    #[test]
    fn distance_is_a_metric() {
        let found = all(3);
        for x in &found {
            for y in &found {
                let there = x.distance(y).unwrap();
                assert_eq!(there, y.distance(x).unwrap());
                assert_eq!(there == 0, x == y);
                for z in &found {
                    assert!(x.distance(z).unwrap() <= there + y.distance(z).unwrap());
                }
            }
        }
    }

    #[test]
    fn neighbours_are_exactly_the_neighbouring_datasets() {
        let found = all(4);
        for adjacency in [Adjacency::AddRemove, Adjacency::Replace] {
            for x in found.iter().filter(|x| x.size() < 4) {
                let by_moves: Vec<_> = x.neighbours(adjacency).collect();
                let by_distance = found.iter().filter(|y| Histogram::are_neighbours(x, y, adjacency));
                assert_eq!(by_distance.clone().count(), by_moves.len());
                assert!(by_distance.into_iter().all(|y| by_moves.contains(y)));
            }
        }
    }

    #[test]
    fn replacing_keeps_the_size_and_moves_two() {
        for x in all(3) {
            for y in x.neighbours(Adjacency::Replace) {
                assert_eq!((y.size(), x.distance(&y).unwrap()), (x.size(), 2));
            }
        }
    }

    #[test]
    fn two_added_records_are_not_a_replacement() {
        let x = Histogram::new(&domain(), vec![1, 0, 0, 0]).unwrap();
        let y = Histogram::new(&domain(), vec![1, 1, 1, 0]).unwrap();
        assert_eq!(x.distance(&y).unwrap(), 2);
        assert!(!Histogram::are_neighbours(&x, &y, Adjacency::Replace));
    }

    #[test]
    fn impossible_histograms_are_refused() {
        let refused = |counts| Histogram::new(&domain(), counts).unwrap_err();
        let error = refused(vec![1, 2]);
        assert_eq!(error.code(), "core.histogram.length");
        assert_eq!(error.to_string(), "a histogram must have one count for each of 4 records, but has 2");
        let error = refused(vec![u64::MAX, u64::MAX, 0, 0]);
        assert_eq!(error.code(), "core.histogram.too-many-records");
        assert_eq!(
            error.to_string(),
            "a dataset must have at most 4611686018427387904 records, but this one has more"
        );
        let error = Histogram::empty(&Domain::new([("a", 1 << 40)]).unwrap()).unwrap_err();
        assert_eq!(error.code(), "core.histogram.too-large");
        assert_eq!(
            error.to_string(),
            "a domain that is listed must have at most 268435456 records, but this one has 1099511627776"
        );
    }

    #[test]
    fn histograms_of_two_domains_are_not_compared() {
        let other = Domain::new([("a", 4)]).unwrap();
        let (x, y) = (Histogram::empty(&domain()).unwrap(), Histogram::empty(&other).unwrap());
        let error = x.distance(&y).unwrap_err();
        assert_eq!(error.code(), "core.histogram.domain");
        assert_eq!(
            error.to_string(),
            "two histograms can only be compared over one domain, but these have two"
        );
        assert!(!Histogram::are_neighbours(&x, &y, Adjacency::AddRemove));
    }

    #[test]
    fn the_largest_dataset_has_no_larger_neighbour() {
        let domain = Domain::new([("a", 1)]).unwrap();
        let full = Histogram::new(&domain, vec![MAX_RECORDS]).unwrap();
        assert_eq!(full.neighbours(Adjacency::AddRemove).count(), 1);
    }
}
