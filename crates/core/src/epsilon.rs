//! [`Epsilon`]: how much more likely one person can make any outcome.

use demur_exact::Rational;

use crate::Error;
use crate::range::{self, Range, checked_number, codes};

const RANGE: Range = Range {
    name: "epsilon",
    allowed: "a finite number above 0 and at most 1000000",
    max: 1e6,
    too_large: ", which is above 1000000",
    zero: "; only a guarantee with a δ can have epsilon 0",
    codes: codes!("epsilon"),
};

/// The ε of differential privacy: no outcome gets more than e^ε times as likely
/// because one person's data is there or is different.
///
/// ```
/// use demur_core::Epsilon;
///
/// let epsilon = Epsilon::new(0.5)?;
/// assert_eq!(epsilon.value(), 0.5);
/// assert_eq!("0.5".parse::<Epsilon>()?, epsilon);
/// assert!(Epsilon::new(-1.0).is_err());
/// # Ok::<(), demur_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epsilon(f64);

impl Epsilon {
    /// Perfect privacy, or the ε of a (0, δ) guarantee.
    ///
    /// [`Epsilon::new`] refuses 0, so that nobody asks for it by accident.
    pub const ZERO: Self = Self(0.0);

    /// An ε above 0 and at most 1000000.
    pub fn new(value: f64) -> Result<Self, Error> {
        RANGE.check(value).map(Self)
    }

    /// The number as a double.
    pub fn value(self) -> f64 {
        self.0
    }

    /// The fraction that its shortest decimal stands for: 0.1 is a tenth, and ten of them are 1.
    pub fn exact(self) -> Rational {
        range::exact(self.0)
    }
}

checked_number!(Epsilon);

#[cfg(test)]
mod tests {
    use super::*;

    const MUST: &str = "epsilon must be a finite number above 0 and at most 1000000, but ";

    fn assert_refused(result: Result<Epsilon, Error>, code: &str, rest: &str) {
        let error = result.unwrap_err();
        assert_eq!(error.code(), format!("core.epsilon.{code}"));
        assert_eq!(error.to_string(), format!("{MUST}{rest}"));
    }

    #[test]
    fn every_refusal_has_its_own_sentence() {
        let new = Epsilon::new;
        assert_refused(new(f64::NAN), "not-finite", "NaN was given");
        assert_refused(new(f64::INFINITY), "not-finite", "infinity was given");
        assert_refused(new(f64::NEG_INFINITY), "not-finite", "minus infinity was given");
        assert_refused(new(-1.5), "negative", "-1.5 was given, which is below 0");
        assert_refused(new(-0.0), "zero", "0 was given; only a guarantee with a δ can have epsilon 0");
        let tiny = "5e-324 was given, which is too close to 0 to keep its digits";
        assert_refused(new(5e-324), "subnormal", tiny);
        assert_refused(new(2e6), "too-large", "2000000 was given, which is above 1000000");
    }

    #[test]
    fn refused_text_is_quoted() {
        let parse = |text: &str| text.parse::<Epsilon>();
        assert_refused(parse("one"), "not-a-number", "`one` was given, which is not a decimal number");
        assert_refused(parse(""), "not-a-number", "`` was given, which is not a decimal number");
        assert_refused(parse("nan"), "not-finite", "`nan` was given");
        assert_refused(parse("-0.1"), "negative", "`-0.1` was given, which is below 0");
        assert_refused(
            parse("0.0e5"),
            "zero",
            "`0.0e5` was given; only a guarantee with a δ can have epsilon 0",
        );
        let tiny = "`1e-400` was given, which is too close to 0 to keep its digits";
        assert_refused(parse("1e-400"), "subnormal", tiny);
        assert_refused(parse("1e20"), "too-large", "`1e20` was given, which is above 1000000");
    }

    #[test]
    fn the_ends_of_the_range_are_allowed_and_their_neighbours_are_not() {
        assert!(Epsilon::new(1e6).is_ok());
        assert!(Epsilon::new(1e6_f64.next_up()).is_err());
        assert!(Epsilon::new(f64::MIN_POSITIVE).is_ok());
        assert!(Epsilon::new(f64::MIN_POSITIVE.next_down()).is_err());
    }

    #[test]
    fn the_exact_value_is_that_of_the_shortest_decimal() {
        assert_eq!(Epsilon::new(0.75).unwrap().exact(), Rational::new(3, 4));
        assert_eq!(Epsilon::new(0.1).unwrap().exact(), Rational::new(1, 10));
        assert_eq!(Epsilon::new(1e6).unwrap().exact(), Rational::new(1_000_000, 1));
        let smallest = Epsilon::new(f64::MIN_POSITIVE).unwrap().exact();
        assert_eq!(smallest, "2.2250738585072014e-308".parse().unwrap());
        assert!(Epsilon::ZERO.exact().is_zero());
    }

    #[test]
    fn epsilons_are_ordered() {
        assert!(Epsilon::ZERO < Epsilon::new(0.1).unwrap());
        assert!(Epsilon::new(0.1).unwrap() < Epsilon::new(2.0).unwrap());
    }

    #[test]
    fn json_is_a_number_that_is_checked_when_read() {
        let epsilon = Epsilon::new(0.1).unwrap();
        assert_eq!(serde_json::to_string(&epsilon).unwrap(), "0.1");
        assert_eq!(serde_json::from_str::<Epsilon>("0.1").unwrap(), epsilon);
        assert_eq!(serde_json::from_str::<Epsilon>("0").unwrap(), Epsilon::ZERO);
        let error = serde_json::from_str::<Epsilon>("-1").unwrap_err().to_string();
        assert!(error.starts_with(MUST), "{error}");
    }
}
