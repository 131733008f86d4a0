//! [`CountingQuery`]: what fraction of the records, and how far one record moves it.
//!
//! **Definition.** For f: X → [0, 1] the query on a dataset D = (x₁, …, xₙ) is
//! q(D) = (1/n)·Σ f(xᵢ), and its count is Σ f(xᵢ).
//!
//! **Sensitivity.** Adding or removing a record moves the count by f of that record, at
//! most max f ≤ 1. Replacing one moves it by f(x) − f(x′), at most max f − min f ≤ 1, and so
//! moves q, whose n is then fixed and public, by at most 1/n.

use demur_exact::Rational;

use crate::error::require;
use crate::histogram::check_cells;
use crate::{Adjacency, Domain, Error, Histogram, Sensitivity};

/// The average over all records of a weight between 0 and 1.
///
/// ```
/// use demur_core::{CountingQuery, Domain, Histogram};
/// use demur_exact::Rational;
///
/// let domain = Domain::new([("smoker", 2), ("region", 3)])?;
/// let smokers = CountingQuery::matching(&domain, |record| record[0] == 1)?;
/// let people = Histogram::from_records(&domain, [[0, 0], [1, 2], [0, 1]])?;
/// assert_eq!(smokers.answer(&people), Some(Rational::new(1, 3)));
/// # Ok::<(), demur_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountingQuery {
    domain: Domain,
    weights: Vec<Rational>,
}

impl CountingQuery {
    /// The query with these values of f, in order of the records' indices.
    pub fn new(domain: &Domain, weights: Vec<Rational>) -> Result<Self, Error> {
        let (cells, found) = (domain.size(), weights.len());
        require(found as u64 == cells, "core.query.length", || {
            format!("a counting query must have one weight for each of {cells} records, but has {found}")
        })?;
        for weight in &weights {
            let legal = !weight.is_negative() && *weight <= Rational::one();
            require(legal, "core.query.weight", || {
                format!("a weight of a counting query must be between 0 and 1, but {weight} was given")
            })?;
        }
        Ok(Self { domain: domain.clone(), weights })
    }

    /// The query that counts the records for which the predicate holds.
    pub fn matching(domain: &Domain, predicate: impl Fn(&[u64]) -> bool) -> Result<Self, Error> {
        check_cells(domain)?;
        let weight = |record: Vec<u64>| Rational::from(u32::from(predicate(&record)));
        Self::new(domain, domain.records().map(weight).collect())
    }

    /// The domain of the records.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The values of f, in order of the records' indices.
    pub fn weights(&self) -> &[Rational] {
        &self.weights
    }

    /// Σ f(xᵢ); `None` for a dataset over another domain.
    pub fn count(&self, data: &Histogram) -> Option<Rational> {
        let same = data.domain() == &self.domain;
        let terms = self.weights.iter().zip(data.counts());
        same.then(|| terms.fold(Rational::zero(), |sum, (f, &n)| &sum + &(f * &Rational::from(n))))
    }

    /// (1/n)·Σ f(xᵢ); `None` for a dataset that is empty or over another domain.
    pub fn answer(&self, data: &Histogram) -> Option<Rational> {
        let size = Rational::from(data.size());
        let count = self.count(data)?;
        (!size.is_zero()).then(|| &count / &size)
    }

    /// How far the count can move between neighbours: never more than 1.
    pub fn count_sensitivity(&self, adjacency: Adjacency) -> Sensitivity {
        let zero = Rational::zero();
        let most = self.weights.iter().max().unwrap_or(&zero);
        let least = self.weights.iter().min().unwrap_or(&zero);
        Sensitivity::of_scalar(match adjacency {
            Adjacency::AddRemove => most.clone(),
            Adjacency::Replace => most - least,
        })
    }

    /// How far the answer over `n` records can move when one is replaced: never more than 1/n.
    ///
    /// There is no such number when a record is added or removed, since n is then secret:
    /// release the count and the size instead.
    ///
    /// ```
    /// use demur_core::{CountingQuery, Domain};
    /// use demur_exact::Rational;
    ///
    /// let query = CountingQuery::matching(&Domain::new([("smoker", 2)])?, |record| record[0] == 1)?;
    /// assert_eq!(query.answer_sensitivity(50)?.l1(), &Rational::new(1, 50));
    /// # Ok::<(), demur_core::Error>(())
    /// ```
    pub fn answer_sensitivity(&self, n: u64) -> Result<Sensitivity, Error> {
        require(n > 0, "core.query.no-records", || {
            "the answer of a counting query needs at least 1 record, but 0 were given".into()
        })?;
        let moved = self.count_sensitivity(Adjacency::Replace);
        Ok(Sensitivity::of_scalar(moved.linf() / &Rational::from(n)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain() -> Domain {
        Domain::new([("a", 3)]).unwrap()
    }

    fn query(weights: [&str; 3]) -> CountingQuery {
        CountingQuery::new(&domain(), weights.map(|text| text.parse().unwrap()).into()).unwrap()
    }

    #[test]
    fn an_answer_is_the_average_weight() {
        let data = Histogram::new(&domain(), vec![1, 2, 1]).unwrap();
        let query = query(["0", "1/3", "1"]);
        assert_eq!(query.count(&data), Some(Rational::new(5, 3)));
        assert_eq!(query.answer(&data), Some(Rational::new(5, 12)));
    }

    #[test]
    fn there_is_no_answer_about_nobody_or_about_others() {
        let query = query(["0", "1", "1"]);
        assert_eq!(query.answer(&Histogram::empty(&domain()).unwrap()), None);
        let other = Domain::new([("b", 3)]).unwrap();
        assert_eq!(query.answer(&Histogram::new(&other, vec![1, 1, 1]).unwrap()), None);
    }

    #[test]
    fn weights_outside_zero_and_one_are_refused() {
        for bad in [Rational::new(-1, 9), Rational::new(10, 9)] {
            let weights = vec![Rational::zero(), bad.clone(), Rational::one()];
            let error = CountingQuery::new(&domain(), weights).unwrap_err();
            assert_eq!(error.code(), "core.query.weight");
            assert_eq!(
                error.to_string(),
                format!("a weight of a counting query must be between 0 and 1, but {bad} was given")
            );
        }
        let error = CountingQuery::new(&domain(), vec![]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a counting query must have one weight for each of 3 records, but has 0"
        );
    }

    #[test]
    fn the_sensitivity_of_a_count_is_what_brute_force_finds() {
        for weights in [["0", "1", "1"], ["0", "1/3", "1/2"], ["1/4", "1/3", "1"], ["1", "1", "1"]] {
            let query = query(weights);
            for adjacency in [Adjacency::AddRemove, Adjacency::Replace] {
                let count = |x: &Histogram| query.count(x).into_iter().collect();
                let found = Sensitivity::brute_force(&domain(), 3, adjacency, count).unwrap();
                assert_eq!(found.linf(), query.count_sensitivity(adjacency).linf());
            }
        }
    }

    #[test]
    fn the_sensitivity_of_an_answer_is_what_brute_force_finds() {
        let query = query(["0", "1/3", "1"]);
        for n in 1..=4 {
            let of_size_n = |x: &Histogram| match x.size() == n {
                true => query.answer(x).into_iter().collect(),
                false => vec![Rational::zero()],
            };
            let found = Sensitivity::brute_force(&domain(), n, Adjacency::Replace, of_size_n).unwrap();
            assert_eq!(found.linf(), &Rational::new(1, n.into()));
            assert_eq!(found, query.answer_sensitivity(n).unwrap());
        }
        assert_eq!(query.answer_sensitivity(0).unwrap_err().code(), "core.query.no-records");
    }
}
