//! [`Workload`]: several counting queries over one domain.

use std::iter;

use demur_exact::Rational;

use crate::error::require;
use crate::{CountingQuery, Domain, Error, Histogram};

/// Weights of all queries together beyond this do not fit into memory.
const MAX_WEIGHTS: u64 = 1 << 24;

/// Counting queries that are asked, and judged, together.
///
/// ```
/// use demur_core::{Domain, Histogram, Workload};
/// use demur_exact::Rational;
///
/// let domain = Domain::new([("smoker", 2), ("region", 3)])?;
/// let workload = Workload::marginals(&domain, 1)?;
/// assert_eq!(workload.queries().len(), 2 + 3);
///
/// let truth = Histogram::from_records(&domain, [[0, 0], [1, 2]])?;
/// let synthetic = Histogram::from_records(&domain, [[1, 2]])?;
/// assert_eq!(workload.max_error(&truth, &synthetic), Some(Rational::new(1, 2)));
/// # Ok::<(), demur_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    domain: Domain,
    queries: Vec<CountingQuery>,
}

impl Workload {
    /// These queries, all of them over the domain.
    pub fn new(domain: &Domain, queries: Vec<CountingQuery>) -> Result<Self, Error> {
        let same = queries.iter().all(|query| query.domain() == domain);
        require(same, "core.workload.domain", || {
            "the queries of a workload must be over its domain, but one is over another".into()
        })?;
        Ok(Self { domain: domain.clone(), queries })
    }

    /// All k-way marginals: for every k attributes and every choice of their values, the
    /// fraction of records that have these values.
    pub fn marginals(domain: &Domain, k: usize) -> Result<Self, Error> {
        let attributes = domain.attributes().len();
        require(k <= attributes, "core.workload.marginals", || {
            format!("a marginal must be over at most {attributes} attributes, but {k} were asked for")
        })?;
        let mut queries = vec![];
        for chosen in subsets(attributes, k) {
            check_room(domain, queries.len() as u64, cells(domain, &chosen))?;
            queries.extend(marginal(domain, &chosen)?);
        }
        Self::new(domain, queries)
    }

    /// The domain of the records.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The queries, in order.
    pub fn queries(&self) -> &[CountingQuery] {
        &self.queries
    }

    /// Every answer; `None` for a dataset that is empty or over another domain.
    pub fn answers(&self, data: &Histogram) -> Option<Vec<Rational>> {
        let usable = data.size() > 0 && data.domain() == &self.domain;
        let answers = self.queries.iter().map(|query| query.answer(data));
        if usable { answers.collect() } else { None }
    }

    /// The largest difference between two datasets' answers: max |qᵢ(D) − qᵢ(D′)|.
    ///
    /// `None` when either is empty or over another domain.
    pub fn max_error(&self, truth: &Histogram, other: &Histogram) -> Option<Rational> {
        let (truth, other) = (self.answers(truth)?, self.answers(other)?);
        let errors = truth.iter().zip(&other).map(|(a, b)| (a - b).abs());
        Some(errors.max().unwrap_or_else(Rational::zero))
    }
}

/// One query for each choice of values of the chosen attributes.
fn marginal(domain: &Domain, chosen: &[usize]) -> Result<Vec<CountingQuery>, Error> {
    let attributes = chosen.iter().map(|&place| domain.attributes()[place].clone());
    let part = Domain::try_from(attributes.collect::<Vec<_>>())?;
    let query = |values: Vec<u64>| {
        let fits = |record: &[u64]| iter::zip(chosen, &values).all(|(&place, value)| record[place] == *value);
        CountingQuery::matching(domain, fits)
    };
    part.records().map(query).collect()
}

/// How many choices of values the chosen attributes have; never more than the domain.
fn cells(domain: &Domain, chosen: &[usize]) -> u64 {
    chosen.iter().map(|&place| domain.attributes()[place].size).product()
}

fn check_room(domain: &Domain, queries: u64, more: u64) -> Result<(), Error> {
    let weights = queries.saturating_add(more).saturating_mul(domain.size());
    require(weights <= MAX_WEIGHTS, "core.workload.too-large", || {
        format!(
            "the marginals of a workload must have at most {MAX_WEIGHTS} weights together, but these have more"
        )
    })
}

/// Every way to choose `k` of the numbers below `n`, in order; k ≤ n.
fn subsets(n: usize, k: usize) -> impl Iterator<Item = Vec<usize>> {
    let first: Vec<usize> = (0..k).collect();
    iter::successors(Some(first), move |last| next_subset(last, n))
}

fn next_subset(chosen: &[usize], n: usize) -> Option<Vec<usize>> {
    let k = chosen.len();
    let place = (0..k).rev().find(|&place| chosen[place] < n - k + place)?;
    let restart = (chosen[place] + 1..).take(k - place);
    Some(chosen[..place].iter().copied().chain(restart).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain() -> Domain {
        Domain::new([("a", 2), ("b", 3), ("c", 2)]).unwrap()
    }

    #[test]
    fn subsets_are_all_there_once() {
        let pairs: Vec<_> = subsets(4, 2).collect();
        assert_eq!(pairs, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]);
        assert_eq!(subsets(3, 0).collect::<Vec<_>>(), [[0usize; 0]]);
        assert_eq!(subsets(3, 3).count(), 1);
        assert_eq!(subsets(10, 4).count(), 210);
    }

    #[test]
    fn marginals_are_counted_and_each_sums_to_one() {
        let data = Histogram::from_records(&domain(), [[0, 0, 0], [1, 2, 0], [1, 2, 1]]).unwrap();
        for (k, queries, marginals) in [(0, 1, 1), (1, 7, 3), (2, 16, 3), (3, 12, 1)] {
            let workload = Workload::marginals(&domain(), k).unwrap();
            assert_eq!(workload.queries().len(), queries);
            let answers = workload.answers(&data).unwrap();
            let total = answers.iter().fold(Rational::zero(), |sum, answer| &sum + answer);
            assert_eq!(total, Rational::from(marginals as u32));
        }
    }

    #[test]
    fn a_two_way_marginal_is_the_joint_fraction() {
        let data = Histogram::from_records(&domain(), [[0, 0, 0], [1, 2, 0], [1, 2, 1]]).unwrap();
        let answers = Workload::marginals(&domain(), 2).unwrap().answers(&data).unwrap();
        // The first pair is (a, b): values (0, 0) and (1, 2) are its first and last query.
        assert_eq!((&answers[0], &answers[5]), (&Rational::new(1, 3), &Rational::new(2, 3)));
    }

    #[test]
    fn equal_marginals_are_no_error_and_others_are() {
        let workload = Workload::marginals(&domain(), 1).unwrap();
        let x = Histogram::from_records(&domain(), [[0, 0, 0], [1, 1, 1]]).unwrap();
        let y = Histogram::from_records(&domain(), [[0, 1, 0], [1, 0, 1]]).unwrap();
        assert_eq!(workload.max_error(&x, &y), Some(Rational::zero()));
        let pairs = Workload::marginals(&domain(), 2).unwrap();
        assert_eq!(pairs.max_error(&x, &y), Some(Rational::new(1, 2)));
        assert_eq!(pairs.max_error(&x, &Histogram::empty(&domain()).unwrap()), None);
    }

    #[test]
    fn impossible_workloads_are_refused() {
        let error = Workload::marginals(&domain(), 4).unwrap_err();
        assert_eq!(error.code(), "core.workload.marginals");
        assert_eq!(error.to_string(), "a marginal must be over at most 3 attributes, but 4 were asked for");
        let wide = Domain::new([("a", 1 << 13), ("b", 1)]).unwrap();
        let error = Workload::marginals(&wide, 1).unwrap_err();
        assert_eq!(error.code(), "core.workload.too-large");
        assert_eq!(
            error.to_string(),
            "the marginals of a workload must have at most 16777216 weights together, but these have more"
        );
        let other = CountingQuery::matching(&wide, |_| true).unwrap();
        let error = Workload::new(&domain(), vec![other]).unwrap_err();
        assert_eq!(error.code(), "core.workload.domain");
        assert_eq!(
            error.to_string(),
            "the queries of a workload must be over its domain, but one is over another"
        );
    }

    #[test]
    fn a_workload_without_queries_still_needs_a_dataset() {
        let workload = Workload::new(&domain(), vec![]).unwrap();
        assert_eq!(workload.answers(&Histogram::empty(&domain()).unwrap()), None);
    }
}
