//! [`Figure`]: a number as it was given, exactly, and numbers as programs read them.

use demur_exact::Rational;
use serde_json::value::{RawValue, to_raw_value};

use crate::failure::Failure;

/// A number with its text, which is given back unchanged.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    pub(crate) text: String,
    pub(crate) value: Rational,
}

/// Which numbers a figure may be.
#[derive(Clone, Copy)]
struct Allowed {
    name: &'static str,
    code: &'static str,
    range: &'static str,
    holds: fn(&Rational) -> bool,
}

const EPSILON: Allowed = Allowed {
    name: "epsilon",
    code: "cli.epsilon",
    range: "a number from 0 to 1000000",
    holds: |value| !value.is_negative() && *value <= Rational::from(1_000_000u32),
};
const DELTA: Allowed = Allowed {
    name: "delta",
    code: "cli.delta",
    range: "a number from 0 to below 1",
    holds: |value| !value.is_negative() && *value < Rational::one(),
};
const ORDER: Allowed = Allowed {
    name: "the order",
    code: "cli.order",
    range: "a number above 1 and at most 1000000",
    holds: |value| *value > Rational::one() && *value <= Rational::from(1_000_000u32),
};
const SENSITIVITY: Allowed = Allowed {
    name: "the sensitivity",
    code: "cli.sensitivity",
    range: "a number above 0, from 1e-300 to 1e300",
    holds: within_doubles,
};
const SIGMA: Allowed = Allowed {
    name: "sigma",
    code: "cli.sigma",
    range: "a number above 0, from 1e-300 to 1e300",
    holds: within_doubles,
};
const RATE: Allowed = Allowed {
    name: "the sampling rate",
    code: "cli.rate",
    range: "a number above 0 and at most 1",
    holds: |value| within_doubles(value) && *value <= Rational::one(),
};
const STEPS: Allowed = Allowed {
    name: "the number of steps",
    code: "cli.steps",
    range: "a whole number from 1 to 1000000000000",
    holds: |value| {
        value.is_integer() && value.is_positive() && *value <= Rational::from(1_000_000_000_000u64)
    },
};

impl Figure {
    pub(crate) fn epsilon(text: &str) -> Result<Self, Failure> {
        Self::read(text, EPSILON)
    }

    pub(crate) fn delta(text: &str) -> Result<Self, Failure> {
        Self::read(text, DELTA)
    }

    pub(crate) fn order(text: &str) -> Result<Self, Failure> {
        Self::read(text, ORDER)
    }

    pub(crate) fn sensitivity(text: &str) -> Result<Self, Failure> {
        Self::read(text, SENSITIVITY)
    }

    pub(crate) fn sigma(text: &str) -> Result<Self, Failure> {
        Self::read(text, SIGMA)
    }

    pub(crate) fn rate(text: &str) -> Result<Self, Failure> {
        Self::read(text, RATE)
    }

    pub(crate) fn steps(text: &str) -> Result<u64, Failure> {
        let steps = Self::read(text, STEPS)?.value;
        // Whole and within the range: the double is exact.
        Ok(steps.to_f64() as u64)
    }

    fn read(text: &str, allowed: Allowed) -> Result<Self, Failure> {
        let value = text.parse().map_err(|error| Failure::new(allowed.code, format!("{error}")))?;
        if (allowed.holds)(&value) {
            return Ok(Self { text: text.trim().to_owned(), value });
        }
        let shown: String = text.chars().take(40).collect();
        let message = format!("{} must be {}, but {shown} was given", allowed.name, allowed.range);
        Err(Failure::new(allowed.code, message))
    }

    /// A JSON number as it was typed, or text where a double would lose it or JSON has no such form.
    pub(crate) fn json(&self) -> Result<Box<RawValue>, Failure> {
        let double = self.value.to_f64();
        let lost = !self.value.is_zero() && (double == 0.0 || !double.is_finite());
        let forms = [self.text.clone(), self.value.to_string()];
        let number = forms.into_iter().find(|form| !lost && is_json_number(form));
        match number {
            Some(number) => RawValue::from_string(number).map_err(unwritable),
            None => to_raw_value(&self.text).map_err(unwritable),
        }
    }
}

fn is_json_number(text: &str) -> bool {
    serde_json::from_str::<serde_json::Number>(text).is_ok()
}

fn within_doubles(value: &Rational) -> bool {
    *value >= Rational::power_of_two(-997) && *value <= Rational::power_of_two(997)
}

/// A double as a JSON number with all its digits.
pub(crate) fn json_double(value: f64) -> Result<Box<RawValue>, Failure> {
    to_raw_value(&value).map_err(unwritable)
}

/// A double as text that reads back to the very same double.
pub(crate) fn exact(value: f64) -> String {
    format!("{value:?}")
}

pub(crate) fn unwritable(error: serde_json::Error) -> Failure {
    Failure::new("cli.write", format!("the answer could not be written: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> String {
        Figure::delta(text).unwrap().json().unwrap().get().to_owned()
    }

    #[test]
    fn what_was_given_is_given_back() {
        for text in ["1e-6", "0", "0.10", "1e-300", "1E-6", "0.1234567890123456789012345678901"] {
            assert_eq!(json(text), text);
        }
        assert_eq!(json(".5"), "0.5");
        assert_eq!(json(" 1e-6 "), "1e-6");
        assert_eq!(json("1/3"), "\"1/3\"");
        assert_eq!(json("1e-400"), "\"1e-400\"");
    }

    #[test]
    fn figures_out_of_range_are_refused() {
        let code = |figure: Result<Figure, Failure>| figure.unwrap_err().code();
        for text in ["1", "-1e-9", "1.5", "many", ""] {
            assert_eq!(code(Figure::delta(text)), "cli.delta");
        }
        for text in ["-1", "1e7", "nan", "inf"] {
            assert_eq!(code(Figure::epsilon(text)), "cli.epsilon");
        }
        assert_eq!(code(Figure::order("1")), "cli.order");
        assert_eq!(code(Figure::rate("0")), "cli.rate");
        assert_eq!(code(Figure::sensitivity("1e400")), "cli.sensitivity");
        assert_eq!(Figure::steps("1e3").unwrap(), 1000);
        for text in ["0", "1.5", "1e30", "-1"] {
            assert_eq!(Figure::steps(text).unwrap_err().code(), "cli.steps");
        }
    }

    #[test]
    fn texts_of_doubles_read_back() {
        for value in [1.0, 0.1, 1e-300, 1e22, 5e-324, 10.997151214227] {
            assert_eq!(exact(value).parse::<f64>().unwrap(), value);
        }
        assert_eq!(exact(1e-300), "1e-300");
    }
}
