//! [`Columns`]: the names and sizes of a discretised table; [`ColumnSet`]: some of them.

use std::fmt;

use crate::SynthError;
use crate::error::require;

/// More columns than this are refused: the structure of a model is searched in all pairs.
pub const MAX_COLUMNS: usize = 1000;
/// A column with more values than this is refused; bin it, or select its frequent values first.
pub const MAX_VALUES: usize = 1 << 20;

/// One column: what it is called, and how many values it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its values are 0, 1, …, `size` − 1.
    pub size: usize,
}

/// The columns of a discretised table, in order. All of it is public.
///
/// ```
/// use demur_synth::Columns;
///
/// let columns = Columns::new([("smoker", 2), ("region", 16)])?;
/// assert_eq!(columns.len(), 2);
/// assert_eq!(columns.place("region"), Some(1));
/// assert!(Columns::new([("nothing", 0)]).is_err());
/// # Ok::<(), demur_synth::SynthError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns(Vec<Column>);

impl Columns {
    /// Columns given as (name, number of values).
    pub fn new<N: Into<String>>(columns: impl IntoIterator<Item = (N, usize)>) -> Result<Self, SynthError> {
        let columns: Vec<Column> =
            columns.into_iter().map(|(name, size)| Column { name: name.into(), size }).collect();
        require((1..=MAX_COLUMNS).contains(&columns.len()), "synth.columns.count", || {
            format!(
                "a table must have between 1 and {MAX_COLUMNS} columns, but {} were given; leave some out",
                columns.len()
            )
        })?;
        let mut names: Vec<&str> = Vec::new();
        for Column { name, size } in &columns {
            require((1..=MAX_VALUES).contains(size), "synth.columns.size", || {
                format!(
                    "a column must have between 1 and {MAX_VALUES} values, but `{name}` has {size}; bin it or \
                     group its rare values"
                )
            })?;
            names.push(name);
        }
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let text = format!("columns must have different names, but `{}` is there twice", twice[0]);
            return Err(SynthError::new("synth.columns.name-twice", text));
        }
        Ok(Self(columns))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Never: a table has at least one column.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Column> {
        self.0.iter()
    }

    /// How many values each has.
    pub fn sizes(&self) -> Vec<usize> {
        self.0.iter().map(|column| column.size).collect()
    }

    /// The place of the column with this name.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|column| column.name == name)
    }

    /// The same names with other sizes.
    pub(crate) fn resized(&self, sizes: &[usize]) -> Self {
        let resized = |(column, &size): (&Column, &usize)| Column { name: column.name.clone(), size };
        Self(self.0.iter().zip(sizes).map(resized).collect())
    }

    /// The columns with these names, which must exist.
    pub fn set(&self, names: &[&str]) -> Result<ColumnSet, SynthError> {
        let place = |name: &&str| {
            self.place(name).ok_or_else(|| {
                let known: Vec<&str> = self.0.iter().map(|column| column.name.as_str()).collect();
                let text = format!("there is no column `{name}`; there are {}", known.join(", "));
                SynthError::new("synth.columns.unknown", text)
            })
        };
        Ok(ColumnSet::new(names.iter().map(place).collect::<Result<Vec<_>, _>>()?))
    }

    /// Refuses a set with a column that does not exist.
    pub(crate) fn check(&self, set: &ColumnSet) -> Result<(), SynthError> {
        let last = set.iter().last();
        require(last.is_none_or(|last| last < self.len()), "synth.columns.unknown", || {
            format!("there are {} columns, numbered from 0, but the set {set} names another", self.len())
        })
    }
}

/// Some columns, by their places, in increasing order.
///
/// ```
/// use demur_synth::ColumnSet;
///
/// let (left, right) = (ColumnSet::new([3, 1]), ColumnSet::new([1, 2]));
/// assert_eq!(left.union(&right), ColumnSet::new([1, 2, 3]));
/// assert_eq!(left.intersection(&right).to_string(), "{1}");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnSet(Vec<usize>);

impl ColumnSet {
    /// The set of these places; order and repetitions do not matter.
    pub fn new(places: impl IntoIterator<Item = usize>) -> Self {
        let mut places: Vec<usize> = places.into_iter().collect();
        places.sort_unstable();
        places.dedup();
        Self(places)
    }

    /// The places, in increasing order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    /// How many columns there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the column is in it.
    pub fn contains(&self, place: usize) -> bool {
        self.0.binary_search(&place).is_ok()
    }

    /// Whether all its columns are in the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.iter().all(|place| other.contains(place))
    }

    /// Columns of either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self::new(self.iter().chain(other.iter()))
    }

    /// Columns of both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.iter().filter(|place| other.contains(*place)).collect())
    }

    /// Columns of this one alone.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        Self(self.iter().filter(|place| !other.contains(*place)).collect())
    }

    /// How many cells a table over these columns has; saturates.
    pub fn cells(&self, sizes: &[usize]) -> u64 {
        self.iter().fold(1u64, |cells, place| cells.saturating_mul(sizes[place] as u64))
    }

    /// Every subset with at least one column.
    pub(crate) fn subsets(&self) -> impl Iterator<Item = Self> + '_ {
        let places = &self.0;
        (1u64..1 << places.len().min(20)).map(move |mask| {
            Self(places.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1).map(|(_, &p)| p).collect())
        })
    }
}

impl fmt::Display for ColumnSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places: Vec<String> = self.0.iter().map(usize::to_string).collect();
        write!(f, "{{{}}}", places.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_make_no_sense_are_refused_with_advice() {
        let code = |columns: Vec<(&str, usize)>| Columns::new(columns).unwrap_err().code();
        assert_eq!(code(vec![]), "synth.columns.count");
        assert_eq!(code(vec![("a", 0)]), "synth.columns.size");
        assert_eq!(code(vec![("a", MAX_VALUES + 1)]), "synth.columns.size");
        assert_eq!(code(vec![("a", 1), ("b", 2), ("a", 3)]), "synth.columns.name-twice");
        let columns = Columns::new([("a", 1), ("b", 2)]).unwrap();
        assert_eq!(columns.set(&["c"]).unwrap_err().to_string(), "there is no column `c`; there are a, b");
        assert!(columns.check(&ColumnSet::new([2])).is_err());
    }

    #[test]
    fn sets_are_sets() {
        let set = ColumnSet::new([5, 1, 5, 3]);
        assert_eq!(set.iter().collect::<Vec<_>>(), [1, 3, 5]);
        assert_eq!(set.difference(&ColumnSet::new([3])), ColumnSet::new([1, 5]));
        assert!(ColumnSet::new([1, 5]).is_subset(&set) && !set.is_subset(&ColumnSet::new([1, 5])));
        assert_eq!(set.subsets().count(), 7);
        assert_eq!(ColumnSet::default().cells(&[]), 1);
        assert_eq!(ColumnSet::new([0, 1]).cells(&[usize::MAX, 3]), u64::MAX);
    }
}
