//! [`Range`]: which doubles a parameter may be, and what is said of the others.

use demur_exact::Rational;

use crate::Error;

/// Text quoted in an error is cut after this many characters.
const QUOTED: usize = 40;

/// The doubles from the smallest normal one up to `max`, with the words for a refusal.
pub(crate) struct Range {
    /// What the parameter is called.
    pub(crate) name: &'static str,
    /// What may be given: "a finite number above 0 and at most 1000000".
    pub(crate) allowed: &'static str,
    /// The largest double that may be given.
    pub(crate) max: f64,
    /// What is said after a number above `max`.
    pub(crate) too_large: &'static str,
    /// What is said after 0.
    pub(crate) zero: &'static str,
    /// One code per kind of refusal; see [`codes`].
    pub(crate) codes: Codes,
}

/// The stable code of each way to miss a [`Range`].
pub(crate) struct Codes {
    pub(crate) not_finite: &'static str,
    pub(crate) negative: &'static str,
    pub(crate) zero: &'static str,
    pub(crate) subnormal: &'static str,
    pub(crate) too_large: &'static str,
    pub(crate) not_a_number: &'static str,
}

impl Range {
    /// The number itself when it lies in the range.
    pub(crate) fn check(&self, value: f64) -> Result<f64, Error> {
        self.check_given(value, || spoken(value))
    }

    /// The double nearest to a decimal text, when it lies in the range.
    pub(crate) fn parse(&self, text: &str) -> Result<f64, Error> {
        let given = || format!("`{}`", quoted(text));
        let Ok(value) = text.trim().parse::<f64>() else {
            let codes = &self.codes;
            return Err(self.refusal(codes.not_a_number, &given(), ", which is not a decimal number"));
        };
        match value == 0.0 && has_digit_above_zero(text) {
            true => self.check_given(f64::from_bits(1), given),
            false => self.check_given(value, given),
        }
    }

    fn check_given(&self, value: f64, given: impl Fn() -> String) -> Result<f64, Error> {
        match self.fault(value) {
            None => Ok(value),
            Some((code, why)) => Err(self.refusal(code, &given(), why)),
        }
    }

    /// The code and the words for a number outside the range.
    fn fault(&self, value: f64) -> Option<(&'static str, &'static str)> {
        let codes = &self.codes;
        if !value.is_finite() {
            Some((codes.not_finite, ""))
        } else if value == 0.0 {
            Some((codes.zero, self.zero))
        } else if value < 0.0 {
            Some((codes.negative, ", which is below 0"))
        } else if value < f64::MIN_POSITIVE {
            Some((codes.subnormal, ", which is too close to 0 to keep its digits"))
        } else if value > self.max {
            Some((codes.too_large, self.too_large))
        } else {
            None
        }
    }

    fn refusal(&self, code: &'static str, given: &str, why: &str) -> Error {
        let (name, allowed) = (self.name, self.allowed);
        Error::new(code, format!("{name} must be {allowed}, but {given} was given{why}"))
    }
}

/// The fraction that the shortest decimal of a double of a [`Range`], or of 0, stands for.
///
/// Whoever says 0.1 means a tenth, not the double next to it: ten of them are 1, and a budget of 1 pays for ten.
pub(crate) fn exact(value: f64) -> Rational {
    debug_assert!(value == 0.0 || (value.is_normal() && value > 0.0));
    format!("{value:e}").parse().unwrap_or_else(|_| dyadic(value))
}

/// The fraction that a double itself is.
fn dyadic(value: f64) -> Rational {
    let bits = value.to_bits();
    let mantissa = (bits & ((1 << 52) - 1)) | (1 << 52);
    Rational::dyadic(mantissa.into(), (bits >> 52) as i64 - 1075)
}

/// A number for people: plain where that is short, else with an exponent.
pub(crate) fn show(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        1e-6..1e16 => value.to_string(),
        _ => format!("{value:e}"),
    }
}

fn spoken(value: f64) -> String {
    match value {
        f64::INFINITY => "infinity".into(),
        f64::NEG_INFINITY => "minus infinity".into(),
        _ if value.is_nan() => "NaN".into(),
        _ => show(value),
    }
}

/// Whether the text, which reads as 0, was meant as something smaller than any double.
fn has_digit_above_zero(text: &str) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    mantissa.bytes().any(|digit| (b'1'..=b'9').contains(&digit))
}

fn quoted(text: &str) -> String {
    let short: String = text.chars().take(QUOTED).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{}{more}", short.escape_debug())
}

/// The codes `core.<name>.<fault>`.
macro_rules! codes {
    ($name:literal) => {
        $crate::range::Codes {
            not_finite: concat!("core.", $name, ".not-finite"),
            negative: concat!("core.", $name, ".negative"),
            zero: concat!("core.", $name, ".zero"),
            subnormal: concat!("core.", $name, ".subnormal"),
            too_large: concat!("core.", $name, ".too-large"),
            not_a_number: concat!("core.", $name, ".not-a-number"),
        }
    };
}

/// Order, text and serde for a newtype over a double with `new`, `ZERO` and a `RANGE`.
macro_rules! checked_number {
    ($type:ident) => {
        impl Eq for $type {}

        impl PartialOrd for $type {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $type {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.0.total_cmp(&other.0)
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&$crate::range::show(self.0))
            }
        }

        /// Reads decimal text; what is refused is quoted.
        impl std::str::FromStr for $type {
            type Err = $crate::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                RANGE.parse(text).map(Self)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_f64(self.0)
            }
        }

        /// Reads a number and checks it; a stored 0 is `ZERO` again.
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                match f64::deserialize(deserializer)? {
                    0.0 => Ok(Self::ZERO),
                    value => Self::new(value).map_err(serde::de::Error::custom),
                }
            }
        }
    };
}

pub(crate) use {checked_number, codes};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_for_people_are_short() {
        for (value, text) in [
            (1.0, "1"),
            (-0.0, "0"),
            (1e-6, "0.000001"),
            (1e-9, "1e-9"),
            (-2.5, "-2.5"),
            (1e300, "1e300"),
            (5e-324, "5e-324"),
        ] {
            assert_eq!(show(value), text);
        }
    }

    #[test]
    fn quoted_text_is_short_and_harmless() {
        assert_eq!(quoted("a\u{1b}[31m"), "a\\u{1b}[31m");
        assert_eq!(quoted(&"é".repeat(50)), format!("{}…", "é".repeat(40)));
    }

    proptest! {
        #[test]
        fn the_fraction_is_nearest_to_the_double(value in proptest::num::f64::POSITIVE | proptest::num::f64::NORMAL) {
            // Nearer than half a unit: the doubles around the fraction are the value and one of its neighbours.
            let fraction = exact(value);
            prop_assert!(fraction.to_f64_down() == value || fraction.to_f64_up() == value);
            let half_unit = |other: f64| &(&dyadic(other) - &dyadic(value)).abs() * &Rational::new(1, 2);
            let nearest = half_unit(value.next_down()).max(half_unit(value.next_up()));
            prop_assert!((&fraction - &dyadic(value)).abs() <= nearest);
            prop_assert_eq!(dyadic(value), Rational::try_from(value).unwrap());
        }

        #[test]
        fn the_fraction_is_the_decimal_that_was_written(digits in 1u64..1_000_000_000_000_000, places in 0i32..20) {
            let text = format!("{digits}e-{places}");
            prop_assert_eq!(exact(text.parse().unwrap()), text.parse::<Rational>().unwrap());
        }
    }

    #[test]
    fn the_fraction_of_zero_is_zero() {
        assert_eq!(exact(0.0), Rational::zero());
    }
}
