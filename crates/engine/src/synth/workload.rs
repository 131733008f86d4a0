//! [`Workload`]: which columns a model shall know together.
//!
//! **Language.** A number n means all sets of n columns. Otherwise sets are separated by `;`, the columns of a set by `,`, and a set may carry a weight after `:`, as in
//! `age,department:5;age,sex,region`. A set without a weight weighs 1.

use std::fmt;
use std::str::FromStr;

use demur_synth::{ColumnSet, Columns, Marginals};

use crate::EngineError;

/// See the module text.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// All sets of so many columns.
    Ways(u32),
    /// These sets of columns, with weights.
    Sets(Vec<(Vec<String>, f64)>),
}

impl Workload {
    /// What the model is measured by.
    pub(crate) fn marginals(&self, columns: &Columns) -> Result<Marginals, EngineError> {
        let sets = match self {
            Self::Ways(0) => return Err(wrong("sets have at least one column, not 0")),
            Self::Ways(ways) => return Ok(Marginals::all(columns, *ways as usize)?),
            Self::Sets(sets) => sets,
        };
        let place = |name: &String| {
            columns.iter().position(|column| column.name == *name).ok_or_else(|| {
                let all: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
                wrong(&format!("there is no column `{name}`")).hint(format!("there are: {}", all.join(", ")))
            })
        };
        let mut named = Vec::new();
        for (names, weight) in sets {
            let places = names.iter().map(place).collect::<Result<Vec<_>, _>>()?;
            named.push((ColumnSet::new(places), *weight));
        }
        Ok(Marginals::new(columns, named)?)
    }

    /// The size of its largest set.
    pub(crate) fn ways(&self) -> usize {
        match self {
            Self::Ways(ways) => *ways as usize,
            Self::Sets(sets) => sets.iter().map(|(names, _)| names.len()).max().unwrap_or(1),
        }
    }
}

fn wrong(text: &str) -> EngineError {
    EngineError::new("engine.synth.workload", format!("this is no workload: {text}"))
        .hint("as in 3 for all sets of three columns, or age,department:5;age,sex,region")
}

impl FromStr for Workload {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self, EngineError> {
        if let Ok(ways) = text.trim().parse() {
            return Ok(Self::Ways(ways));
        }
        let set = |text: &str| {
            let (names, weight) = text.rsplit_once(':').unwrap_or((text, "1"));
            let weight =
                weight.trim().parse::<f64>().map_err(|_| wrong(&format!("`{weight}` is no weight")))?;
            let names: Vec<_> = names.split(',').map(|name| name.trim().to_owned()).collect();
            if names.iter().any(String::is_empty) {
                return Err(wrong("a column has no name"));
            }
            Ok((names, weight))
        };
        Ok(Self::Sets(text.split(';').map(set).collect::<Result<_, _>>()?))
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ways(ways) => write!(f, "{ways}"),
            Self::Sets(sets) => {
                let set = |(names, weight): &(Vec<String>, f64)| format!("{}:{weight}", names.join(","));
                f.write_str(&sets.iter().map(set).collect::<Vec<_>>().join(";"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_lists_are_read_and_written() {
        for (text, written) in [("3", "3"), (" a , b:5 ; c", "a,b:5;c:1"), ("a:0.5", "a:0.5")] {
            let workload: Workload = text.parse().unwrap();
            assert_eq!(workload.to_string(), written);
            assert_eq!(workload.to_string().parse::<Workload>().unwrap(), workload);
        }
        for text in ["", "a,", "a:x", ";", "a:1:2b"] {
            assert!(text.parse::<Workload>().is_err(), "{text}");
        }
    }

    #[test]
    fn sets_must_be_of_the_columns() {
        let columns = Columns::new([("a", 2), ("b", 3), ("c", 4)]).unwrap();
        let sets = |text: &str| text.parse::<Workload>()?.marginals(&columns).map(|all| all.sets().count());
        assert_eq!(sets("2").unwrap(), 3);
        assert_eq!(sets("a,b;c").unwrap(), 2);
        assert!(sets("a,z").unwrap_err().to_string().contains("`z`"));
        for text in ["0", "a:0", "a:-1", "a:NaN"] {
            assert!(sets(text).is_err(), "{text}");
        }
    }
}
