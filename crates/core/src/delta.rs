//! [`Delta`]: the probability that the promise of ε fails, and why it must be tiny.
//!
//! **Name and shame.** A mechanism that publishes each of n records with
//! probability δ satisfies (0, δ)-differential privacy: two datasets that differ
//! in one record look the same unless that record is drawn. Yet it exposes
//! about δ·n people. A δ protects everyone only when it is far below 1/n.

use std::fmt;

use demur_exact::Rational;

use crate::Error;
use crate::range::{self, Range, checked_number, codes};

const RANGE: Range = Range {
    name: "delta",
    allowed: "a number above 0 and below 1",
    max: 1.0 - f64::EPSILON / 2.0,
    too_large: ", which is not below 1",
    zero: "; pure privacy, where ε alone holds, takes no δ: leave it out",
    codes: codes!("delta"),
};

/// The δ of differential privacy: how much any event may exceed what e^ε allows.
///
/// ```
/// use demur_core::Delta;
///
/// let delta = Delta::new(1e-6)?;
/// assert_eq!(delta.value(), 1e-6);
/// assert!(delta.warning_for(1_000).is_none());
/// assert!(delta.warning_for(5_000_000).is_some());
/// # Ok::<(), demur_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delta(f64);

impl Delta {
    /// Pure privacy: ε holds for every event.
    ///
    /// [`Delta::new`] refuses 0, so that nobody asks for it by accident.
    pub const ZERO: Self = Self(0.0);

    /// A δ above 0 and below 1.
    pub fn new(value: f64) -> Result<Self, Error> {
        RANGE.check(value).map(Self)
    }

    /// The number as a double.
    pub fn value(self) -> f64 {
        self.0
    }

    /// The fraction that its shortest decimal stands for.
    pub fn exact(self) -> Rational {
        range::exact(self.0)
    }

    /// A warning when δ ≥ 1/n for a dataset of `people`; the count must be public.
    ///
    /// ```
    /// use demur_core::Delta;
    ///
    /// let warning = Delta::new(0.001)?.warning_for(5_000).unwrap();
    /// assert!(warning.to_string().contains("exposes about 5 of the 5000 people"));
    /// # Ok::<(), demur_core::Error>(())
    /// ```
    pub fn warning_for(self, people: u64) -> Option<DeltaWarning> {
        let exposed = &self.exact() * &Rational::from(people);
        (exposed >= Rational::one()).then_some(DeltaWarning { delta: self, people })
    }
}

checked_number!(Delta);

/// A δ that promises too little: at 1/n or above, some person may simply be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaWarning {
    delta: Delta,
    people: u64,
}

impl DeltaWarning {
    /// The name of this warning; it never changes, the sentence may.
    pub fn code(&self) -> &'static str {
        "core.delta.not-below-one-in-n"
    }

    /// How many people name-and-shame would expose on average: δ · n.
    pub fn exposed(&self) -> Rational {
        &self.delta.exact() * &Rational::from(self.people)
    }
}

impl fmt::Display for DeltaWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (delta, people, exposed) = (self.delta, self.people, self.exposed().to_f64());
        write!(
            f,
            "δ = {delta} is not below 1/n for n = {people}: a mechanism that publishes each record \
             with probability δ satisfies (0, δ) and exposes about {exposed:.0} of the {people} \
             people; choose δ far below 1/{people}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUST: &str = "delta must be a number above 0 and below 1, but ";

    fn assert_refused(result: Result<Delta, Error>, code: &str, rest: &str) {
        let error = result.unwrap_err();
        assert_eq!(error.code(), format!("core.delta.{code}"));
        assert_eq!(error.to_string(), format!("{MUST}{rest}"));
    }

    #[test]
    fn every_refusal_has_its_own_sentence() {
        let new = Delta::new;
        assert_refused(new(f64::NAN), "not-finite", "NaN was given");
        assert_refused(new(f64::INFINITY), "not-finite", "infinity was given");
        assert_refused(new(-1e-6), "negative", "-0.000001 was given, which is below 0");
        let zero = "0 was given; pure privacy, where ε alone holds, takes no δ: leave it out";
        assert_refused(new(0.0), "zero", zero);
        let tiny = "1e-310 was given, which is too close to 0 to keep its digits";
        assert_refused(new(1e-310), "subnormal", tiny);
        assert_refused(new(1.0), "too-large", "1 was given, which is not below 1");
        assert_refused("1/2".parse(), "not-a-number", "`1/2` was given, which is not a decimal number");
        // Nearer to 1 than any double: it would be read as 1.
        let text = "0.99999999999999999999";
        assert_refused(text.parse(), "too-large", &format!("`{text}` was given, which is not below 1"));
    }

    #[test]
    fn the_ends_of_the_range_are_allowed() {
        assert!(Delta::new(1f64.next_down()).is_ok());
        assert!(Delta::new(f64::MIN_POSITIVE).is_ok());
    }

    #[test]
    fn a_warning_starts_exactly_at_one_in_n() {
        let delta = Delta::new(1.0 / 1024.0).unwrap();
        assert_eq!(delta.warning_for(1_023), None);
        assert!(delta.warning_for(1_024).is_some());
        assert_eq!(Delta::ZERO.warning_for(u64::MAX), None);
        assert_eq!(delta.warning_for(0), None);
    }

    #[test]
    fn a_warning_gives_its_reason() {
        let warning = Delta::new(0.001).unwrap().warning_for(5_000).unwrap();
        assert_eq!(warning.code(), "core.delta.not-below-one-in-n");
        assert_eq!(
            warning.to_string(),
            "δ = 0.001 is not below 1/n for n = 5000: a mechanism that publishes each record with \
             probability δ satisfies (0, δ) and exposes about 5 of the 5000 people; choose δ far \
             below 1/5000"
        );
    }

    #[test]
    fn json_is_a_number_that_is_checked_when_read() {
        assert_eq!(serde_json::to_string(&Delta::new(1e-6).unwrap()).unwrap(), "1e-6");
        assert_eq!(serde_json::from_str::<Delta>("0.0").unwrap(), Delta::ZERO);
        assert!(serde_json::from_str::<Delta>("1").is_err());
    }

    /// Publishes each record with probability δ; a record left out shows as `None`.
    ///
    /// Returns every output with its probability.
    fn name_and_shame(records: &[bool], delta: &Rational) -> Vec<(Vec<Option<bool>>, Rational)> {
        let mut outputs = vec![(vec![], Rational::one())];
        for &record in records {
            let hidden = &Rational::one() - delta;
            let extend = |(output, probability): (Vec<_>, Rational)| {
                let with = |last, p| ([&output[..], &[last]].concat(), &probability * p);
                [with(Some(record), delta), with(None, &hidden)]
            };
            outputs = outputs.into_iter().flat_map(extend).collect();
        }
        outputs
    }

    fn datasets(n: u32) -> impl Iterator<Item = Vec<bool>> {
        (0..1u32 << n).map(move |bits| (0..n).map(|i| bits >> i & 1 == 1).collect())
    }

    /// max over events E of P(E) − Q(E): what e^0 leaves to δ.
    fn excess(p: &[(Vec<Option<bool>>, Rational)], q: &[(Vec<Option<bool>>, Rational)]) -> Rational {
        let of = |y: &Vec<Option<bool>>| {
            q.iter().find(|(output, _)| output == y).map_or(Rational::zero(), |(_, p)| p.clone())
        };
        let gains = p.iter().map(|(y, p)| p - &of(y)).filter(Rational::is_positive);
        gains.fold(Rational::zero(), |sum, gain| &sum + &gain)
    }

    #[test]
    fn name_and_shame_is_private_with_epsilon_zero_and_that_delta() {
        let delta = Rational::new(1, 7);
        for n in 1..=4 {
            for x in datasets(n) {
                for person in 0..n as usize {
                    let mut y = x.clone();
                    y[person] = !y[person];
                    let (p, q) = (name_and_shame(&x, &delta), name_and_shame(&y, &delta));
                    assert_eq!(excess(&p, &q), delta);
                }
            }
        }
    }

    #[test]
    fn name_and_shame_exposes_somebody_with_probability_one_minus_one_minus_delta_to_the_n() {
        let delta = Rational::new(1, 7);
        for n in 1..=6 {
            let outputs = name_and_shame(&vec![true; n], &delta);
            let exposed = outputs.iter().filter(|(y, _)| y.iter().any(Option::is_some));
            let probability = exposed.fold(Rational::zero(), |sum, (_, p)| &sum + p);
            let nobody = (0..n).fold(Rational::one(), |q, _| &q * &(&Rational::one() - &delta));
            assert_eq!(probability, &Rational::one() - &nobody);
        }
    }
}
