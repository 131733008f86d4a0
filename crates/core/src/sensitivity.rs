//! [`Sensitivity`]: the most an answer can move between neighbours.
//!
//! **Definition.** For f with values in ℝᵏ and all neighbouring x, y, the vector f(x) − f(y)
//! has at most `l0` coordinates other than 0, and ℓ1, ℓ2 and ℓ∞ norms of at most `l1`,
//! √`l2_squared` and `linf`.
//!
//! **Relations.** For every vector v with at most l0 coordinates other than 0,
//!
//! ```text
//! ‖v‖∞ ≤ ‖v‖₂ ≤ ‖v‖₁ ≤ √l0·‖v‖₂,   ‖v‖₁ ≤ l0·‖v‖∞,   ‖v‖₂² ≤ ‖v‖₁·‖v‖∞.
//! ```
//!
//! Each right side grows with its norms, so the relations hold between the maxima too:
//! numbers that break one cannot be the sensitivity of anything.

use demur_exact::Rational;
use serde::{Deserialize, Serialize};

use crate::error::require;
use crate::root::sqrt_up;
use crate::{Adjacency, Domain, Error, Histogram};

/// How far neighbouring answers can be apart, in four exact measures.
///
/// ```
/// use demur_core::Sensitivity;
/// use demur_exact::Rational;
///
/// // One person is in at most 4 groups and adds at most 10 to each.
/// let sums = Sensitivity::from_l0_linf(4, Rational::from(10u32))?;
/// assert_eq!(sums.l1(), &Rational::from(40u32));
/// assert_eq!(sums.l2_squared(), &Rational::from(400u32));
/// assert_eq!(sums.l2_up(), 20.0);
/// # Ok::<(), demur_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Sensitivity {
    l0: u64,
    l1: Rational,
    l2_squared: Rational,
    linf: Rational,
}

impl Sensitivity {
    /// Four measures that fit together; see the relations in the module text.
    pub fn new(l0: u64, l1: Rational, l2_squared: Rational, linf: Rational) -> Result<Self, Error> {
        let sensitivity = Self { l0, l1, l2_squared, linf };
        sensitivity.check()?;
        Ok(sensitivity)
    }

    /// One number that moves by at most `distance`.
    pub fn scalar(distance: Rational) -> Result<Self, Error> {
        Self::from_l0_linf(1, distance)
    }

    /// At most `l0` numbers that move by at most `linf` each.
    pub fn from_l0_linf(l0: u64, linf: Rational) -> Result<Self, Error> {
        let moved = Rational::from(l0);
        Self::new(l0, &moved * &linf, &moved * &linf.square(), linf)
    }

    /// The scalar sensitivity of a distance that is known not to be negative.
    pub(crate) fn of_scalar(distance: Rational) -> Self {
        debug_assert!(!distance.is_negative());
        Self { l0: 1, l1: distance.clone(), l2_squared: distance.square(), linf: distance }
    }

    /// The exact sensitivity of `f` on all datasets with at most `max_size` records.
    ///
    /// Looks at every pair of neighbours, so domain and size must be small; a wider
    /// domain can only give more. Every value of `f` must have the same length.
    ///
    /// ```
    /// use demur_core::{Adjacency, Domain, Sensitivity};
    /// use demur_exact::Rational;
    ///
    /// let domain = Domain::new([("region", 3)])?;
    /// let counts = Sensitivity::brute_force(&domain, 4, Adjacency::Replace, |x| {
    ///     x.counts().iter().map(|&n| Rational::from(n)).collect()
    /// })?;
    /// assert_eq!((counts.l0(), counts.l1()), (2, &Rational::from(2u32)));
    /// # Ok::<(), demur_core::Error>(())
    /// ```
    pub fn brute_force(
        domain: &Domain,
        max_size: u64,
        adjacency: Adjacency,
        f: impl Fn(&Histogram) -> Vec<Rational>,
    ) -> Result<Self, Error> {
        let mut most = Self { l0: 0, ..Self::of_scalar(Rational::zero()) };
        for x in Histogram::all(domain, max_size)? {
            let here = f(&x);
            for y in x.neighbours(adjacency).filter(|y| y.size() <= max_size) {
                most = most.max(Self::between(&here, &f(&y))?);
            }
        }
        Ok(most)
    }

    /// How many coordinates can move at once.
    pub fn l0(&self) -> u64 {
        self.l0
    }

    /// How far all coordinates can move together: Δ₁.
    pub fn l1(&self) -> &Rational {
        &self.l1
    }

    /// The square of the Euclidean distance Δ₂; Δ₂ itself is often no fraction.
    pub fn l2_squared(&self) -> &Rational {
        &self.l2_squared
    }

    /// How far one coordinate can move.
    pub fn linf(&self) -> &Rational {
        &self.linf
    }

    /// A double that is never below Δ₂, and exact when Δ₂ is a double.
    pub fn l2_up(&self) -> f64 {
        sqrt_up(&self.l2_squared).to_f64_up()
    }

    fn check(&self) -> Result<(), Error> {
        require(!self.linf.is_negative(), "core.sensitivity.negative", || {
            let linf = &self.linf;
            format!("a sensitivity must be at least 0, but {linf} was given")
        })?;
        for (relation, holds) in self.relations() {
            require(holds, "core.sensitivity.inconsistent", || self.broken(relation))?;
        }
        Ok(())
    }

    /// The relations that the others of the module text follow from.
    fn relations(&self) -> [(&'static str, bool); 3] {
        let Self { l0, l1, l2_squared, linf } = self;
        [
            ("linf² ≤ l2²", linf.square() <= *l2_squared),
            ("l2² ≤ l1·linf", *l2_squared <= l1 * linf),
            ("l1² ≤ l0·l2²", l1.square() <= &Rational::from(*l0) * l2_squared),
        ]
    }

    fn broken(&self, relation: &str) -> String {
        let Self { l0, l1, l2_squared, linf } = self;
        format!(
            "the measures of a sensitivity must satisfy {relation}, but l0 = {l0}, l1 = {l1}, \
             l2² = {l2_squared} and linf = {linf} were given"
        )
    }

    /// The measures of one difference.
    fn between(a: &[Rational], b: &[Rational]) -> Result<Self, Error> {
        let (here, there) = (a.len(), b.len());
        require(here == there, "core.sensitivity.length", || {
            format!("a function must give answers of one length, but gave {here} numbers and then {there}")
        })?;
        let moved = a.iter().zip(b).map(|(a, b)| (a - b).abs()).filter(Rational::is_positive);
        let nothing = Self { l0: 0, ..Self::of_scalar(Rational::zero()) };
        Ok(moved.fold(nothing, |sum, distance| sum.with_coordinate(distance)))
    }

    fn with_coordinate(self, distance: Rational) -> Self {
        Self {
            l0: self.l0 + 1,
            l1: &self.l1 + &distance,
            l2_squared: &self.l2_squared + &distance.square(),
            linf: self.linf.max(distance),
        }
    }

    /// The larger of each measure.
    fn max(self, other: Self) -> Self {
        Self {
            l0: self.l0.max(other.l0),
            l1: self.l1.max(other.l1),
            l2_squared: self.l2_squared.max(other.l2_squared),
            linf: self.linf.max(other.linf),
        }
    }
}

/// What is read before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    l0: u64,
    l1: Rational,
    l2_squared: Rational,
    linf: Rational,
}

impl TryFrom<Unchecked> for Sensitivity {
    type Error = Error;

    fn try_from(read: Unchecked) -> Result<Self, Error> {
        Self::new(read.l0, read.l1, read.l2_squared, read.linf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn q(text: &str) -> Rational {
        text.parse().unwrap()
    }

    fn new(l0: u64, l1: &str, l2_squared: &str, linf: &str) -> Result<Sensitivity, Error> {
        Sensitivity::new(l0, q(l1), q(l2_squared), q(linf))
    }

    /// X = {0, 1}^k and f = Σ xᵢ: one record adds a corner of the cube.
    #[test]
    fn the_sum_of_bit_vectors_moves_by_k_and_by_root_k() {
        for k in 1..=3u64 {
            let domain = Domain::new((0..k).map(|bit| (format!("bit{bit}"), 2))).unwrap();
            let records: Vec<_> = domain.records().collect();
            let sum = |x: &Histogram| -> Vec<Rational> {
                let bit =
                    |i| records.iter().zip(x.counts()).map(move |(record, n)| record[i] * n).sum::<u64>();
                (0..k as usize).map(|i| bit(i).into()).collect()
            };
            for adjacency in [Adjacency::AddRemove, Adjacency::Replace] {
                let found = Sensitivity::brute_force(&domain, 2, adjacency, sum).unwrap();
                assert_eq!(found, Sensitivity::from_l0_linf(k, Rational::one()).unwrap());
                assert_eq!((found.l1(), found.l2_squared()), (&k.into(), &k.into()));
                assert_eq!(found.l2_up(), demur_exact::float::sqrt_up(k as f64));
            }
        }
    }

    #[test]
    fn replacing_a_record_can_move_a_histogram_twice_as_far() {
        let domain = Domain::new([("region", 3)]).unwrap();
        let counts = |x: &Histogram| x.counts().iter().map(|&n| n.into()).collect();
        let found = |adjacency| Sensitivity::brute_force(&domain, 3, adjacency, counts).unwrap();
        assert_eq!(found(Adjacency::AddRemove), new(1, "1", "1", "1").unwrap());
        assert_eq!(found(Adjacency::Replace), new(2, "2", "2", "1").unwrap());
    }

    #[test]
    fn what_never_moves_has_no_sensitivity() {
        let domain = Domain::new([("a", 2)]).unwrap();
        let found = Sensitivity::brute_force(&domain, 3, Adjacency::AddRemove, |_| vec![q("7")]).unwrap();
        assert_eq!(found, new(0, "0", "0", "0").unwrap());
    }

    #[test]
    fn answers_of_changing_length_have_no_sensitivity() {
        let domain = Domain::new([("a", 2)]).unwrap();
        let growing = |x: &Histogram| vec![Rational::zero(); x.size() as usize];
        let error = Sensitivity::brute_force(&domain, 2, Adjacency::AddRemove, growing).unwrap_err();
        assert_eq!(error.code(), "core.sensitivity.length");
        assert_eq!(
            error.to_string(),
            "a function must give answers of one length, but gave 0 numbers and then 1"
        );
    }

    #[test]
    fn each_relation_is_checked() {
        assert!(new(2, "2", "2", "1").is_ok());
        for (sensitivity, relation) in [
            (new(9, "2", "1/2", "1"), "linf² ≤ l2²"),
            (new(9, "2", "3", "1"), "l2² ≤ l1·linf"),
            (new(2, "2", "3/2", "1"), "l1² ≤ l0·l2²"),
            // linf ≤ l1, l2² ≤ l1², l1 ≤ l0·linf and l1 ≥ 0 follow from these.
            (new(9, "1", "4", "2"), "l2² ≤ l1·linf"),
            (new(9, "2", "5", "2"), "l2² ≤ l1·linf"),
            (new(2, "2.5", "2.5", "1"), "l1² ≤ l0·l2²"),
            (new(9, "-1", "0", "0"), "l1² ≤ l0·l2²"),
        ] {
            let error = sensitivity.unwrap_err();
            assert_eq!(error.code(), "core.sensitivity.inconsistent");
            assert!(error.to_string().contains(&format!("must satisfy {relation}, but")), "{error}");
        }
        assert_eq!(
            new(1, "3", "9", "2").unwrap_err().to_string(),
            "the measures of a sensitivity must satisfy l2² ≤ l1·linf, but l0 = 1, l1 = 3, l2² = 9 and \
             linf = 2 were given"
        );
    }

    #[test]
    fn a_negative_distance_is_refused() {
        let error = Sensitivity::scalar(q("-0.5")).unwrap_err();
        assert_eq!(error.code(), "core.sensitivity.negative");
        assert_eq!(error.to_string(), "a sensitivity must be at least 0, but -0.5 was given");
    }

    #[test]
    fn the_root_is_rounded_up() {
        let two = Sensitivity::from_l0_linf(2, Rational::one()).unwrap();
        let root = Rational::try_from(two.l2_up()).unwrap();
        assert!(root.square() >= q("2"));
        assert_eq!(two.l2_up(), std::f64::consts::SQRT_2);
        assert_eq!(Sensitivity::scalar(q("1e200")).unwrap().l2_up(), q("1e200").to_f64_up());
    }

    #[test]
    fn json_is_pinned_and_checked() {
        let sensitivity = new(2, "2", "2", "1").unwrap();
        let json = r#"{"l0":2,"l1":"2","l2_squared":"2","linf":"1"}"#;
        assert_eq!(serde_json::to_string(&sensitivity).unwrap(), json);
        assert_eq!(serde_json::from_str::<Sensitivity>(json).unwrap(), sensitivity);
        assert!(serde_json::from_str::<Sensitivity>(&json.replace("\"2\"", "\"1/2\"")).is_err());
    }

    proptest! {
        /// Δ₂ ≤ Δ₁ ≤ √k·Δ₂ and its companions, for any function on a small domain.
        #[test]
        fn measures_found_by_brute_force_fit_together(
            table in proptest::collection::vec((-20i128..20, 1u128..6), 30),
            adjacency in prop_oneof![Just(Adjacency::AddRemove), Just(Adjacency::Replace)],
        ) {
            let domain = Domain::new([("a", 2)]).unwrap();
            let entry = |x: &Histogram, i: usize| {
                let place = (x.counts()[0] + 4 * x.counts()[1]) as usize;
                let (n, d) = table[(place * 3 + i) % 30];
                Rational::new(n, d)
            };
            let f = |x: &Histogram| (0..3).map(|i| entry(x, i)).collect();
            let found = Sensitivity::brute_force(&domain, 3, adjacency, f).unwrap();
            prop_assert_eq!(found.check(), Ok(()));
            prop_assert!(found.l0() <= 3);
            prop_assert!(*found.l2_squared() <= found.l1().square());
            prop_assert!(found.l1().square() <= &q("3") * found.l2_squared());
        }
    }
}
