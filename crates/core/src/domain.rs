//! [`Domain`]: the finite set of records a dataset may hold.
//!
//! **Definition.** A product of named attributes with finitely many values each.
//! A record is one value (0, 1, …) per attribute, and its index is the number
//! written with these values as digits, the last attribute changing fastest.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::error::require;

/// One column of a [`Domain`]: a name and how many values it has.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attribute {
    /// What the attribute is called.
    pub name: String,
    /// How many values it has: 0, 1, …, `size` − 1.
    pub size: u64,
}

/// All records that can exist: a product of named, finite attributes.
///
/// ```
/// use demur_core::Domain;
///
/// let domain = Domain::new([("smoker", 2), ("region", 3)])?;
/// assert_eq!(domain.size(), 6);
/// assert_eq!(domain.index(&[1, 2])?, 5);
/// assert_eq!(domain.record(5)?, [1, 2]);
/// # Ok::<(), demur_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Attribute>", into = "Vec<Attribute>")]
pub struct Domain {
    attributes: Arc<[Attribute]>,
    size: u64,
}

impl Domain {
    /// The product of attributes given as (name, number of values).
    pub fn new<N: Into<String>>(attributes: impl IntoIterator<Item = (N, u64)>) -> Result<Self, Error> {
        let attribute = |(name, size): (N, u64)| Attribute { name: name.into(), size };
        attributes.into_iter().map(attribute).collect::<Vec<_>>().try_into()
    }

    /// The attributes, in order.
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// How many different records there are: |X|.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The place of a record among all records.
    pub fn index(&self, record: &[u64]) -> Result<u64, Error> {
        let (found, expected) = (record.len(), self.attributes.len());
        require(found == expected, "core.domain.record-length", || {
            format!("a record of this domain must have {expected} values, but {found} were given")
        })?;
        record.iter().zip(self.attributes()).try_fold(0, |index, (&value, attribute)| {
            require(value < attribute.size, "core.domain.value", || outside(attribute))?;
            Ok(index * attribute.size + value)
        })
    }

    /// The record at a place.
    pub fn record(&self, index: u64) -> Result<Vec<u64>, Error> {
        let size = self.size;
        require(index < size, "core.domain.index", || {
            format!("a record's index must be below the domain's size {size}, but {index} was given")
        })?;
        Ok(self.digits(index))
    }

    /// Every record, in order of its index.
    pub fn records(&self) -> impl Iterator<Item = Vec<u64>> + '_ {
        (0..self.size).map(|index| self.digits(index))
    }

    /// The values whose number is `index`; `index` is below the size.
    fn digits(&self, mut index: u64) -> Vec<u64> {
        let mut record = vec![0; self.attributes.len()];
        for (value, attribute) in record.iter_mut().zip(self.attributes()).rev() {
            *value = index % attribute.size;
            index /= attribute.size;
        }
        record
    }
}

impl TryFrom<Vec<Attribute>> for Domain {
    type Error = Error;

    fn try_from(attributes: Vec<Attribute>) -> Result<Self, Error> {
        let mut size = 1u64;
        for (place, attribute) in attributes.iter().enumerate() {
            check(attribute, &attributes[..place])?;
            size = size.checked_mul(attribute.size).ok_or_else(too_many_records)?;
        }
        Ok(Self { attributes: attributes.into(), size })
    }
}

impl From<Domain> for Vec<Attribute> {
    fn from(domain: Domain) -> Self {
        domain.attributes.to_vec()
    }
}

fn check(attribute: &Attribute, earlier: &[Attribute]) -> Result<(), Error> {
    let name = &attribute.name;
    require(attribute.size > 0, "core.domain.no-values", || {
        format!("an attribute must have at least one value, but `{name}` has none")
    })?;
    require(earlier.iter().all(|other| other.name != *name), "core.domain.name-twice", || {
        format!("the attributes of a domain must have different names, but `{name}` is there twice")
    })
}

fn too_many_records() -> Error {
    let limit = u64::MAX;
    Error::new(
        "core.domain.too-large",
        format!("a domain must have at most {limit} different records, but this one has more"),
    )
}

/// Names the attribute and never the value, which may come from a row.
fn outside(Attribute { name, size }: &Attribute) -> String {
    format!("a value of `{name}` must be below its size {size}, but a record has one that is not")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_and_indices_are_one_to_one() {
        let domain = Domain::new([("a", 2), ("b", 3), ("c", 1), ("d", 4)]).unwrap();
        let records: Vec<_> = domain.records().collect();
        assert_eq!(records.len(), 24);
        for (index, record) in (0..).zip(&records) {
            assert_eq!(domain.index(record).unwrap(), index);
            assert_eq!(&domain.record(index).unwrap(), record);
        }
        assert!(records.is_sorted());
    }

    #[test]
    fn a_domain_without_attributes_has_one_record() {
        let domain = Domain::new::<String>([]).unwrap();
        assert_eq!((domain.size(), domain.index(&[]).unwrap()), (1, 0));
        assert_eq!(domain.record(0).unwrap(), [0u64; 0]);
    }

    fn assert_refused<T: std::fmt::Debug>(result: Result<T, Error>, code: &str, text: &str) {
        let error = result.unwrap_err();
        assert_eq!((error.code(), error.to_string().as_str()), (code, text));
    }

    #[test]
    fn refusals_name_the_attribute_and_never_the_value() {
        let domain = Domain::new([("age", 10)]).unwrap();
        assert_refused(
            domain.index(&[77]),
            "core.domain.value",
            "a value of `age` must be below its size 10, but a record has one that is not",
        );
        assert_refused(
            domain.index(&[1, 2]),
            "core.domain.record-length",
            "a record of this domain must have 1 values, but 2 were given",
        );
        assert_refused(
            domain.record(10),
            "core.domain.index",
            "a record's index must be below the domain's size 10, but 10 was given",
        );
    }

    #[test]
    fn impossible_domains_are_refused() {
        assert_refused(
            Domain::new([("a", 0)]),
            "core.domain.no-values",
            "an attribute must have at least one value, but `a` has none",
        );
        assert_refused(
            Domain::new([("a", 2), ("b", 2), ("a", 3)]),
            "core.domain.name-twice",
            "the attributes of a domain must have different names, but `a` is there twice",
        );
        assert_refused(
            Domain::new([("a", 1 << 32), ("b", 1 << 32)]),
            "core.domain.too-large",
            "a domain must have at most 18446744073709551615 different records, but this one has more",
        );
        assert_eq!(Domain::new([("a", u64::MAX), ("b", 1)]).unwrap().size(), u64::MAX);
    }

    #[test]
    fn json_is_a_list_of_attributes_and_is_checked() {
        let domain = Domain::new([("a", 2)]).unwrap();
        let json = r#"[{"name":"a","size":2}]"#;
        assert_eq!(serde_json::to_string(&domain).unwrap(), json);
        assert_eq!(serde_json::from_str::<Domain>(json).unwrap(), domain);
        assert!(serde_json::from_str::<Domain>(r#"[{"name":"a","size":0}]"#).is_err());
    }
}
