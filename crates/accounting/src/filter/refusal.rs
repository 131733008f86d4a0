//! [`Refusal`]: why a loss is not admitted, and what would be.

use std::fmt;

use super::Amounts;

/// A loss that was not admitted: nothing was charged.
///
/// ```
/// use demur_accounting::Filter;
///
/// let filter = Filter::pure("1".parse()?)?;
/// let refusal = filter.admit(&filter.start(), &"pure(1.5)".parse()?).unwrap_err();
/// assert_eq!(refusal.code(), "accounting.filter.exhausted");
/// assert_eq!(
///     refusal.to_string(),
///     "this costs ε = 1.5 but only ε = 1 is left; a loss of at most ε = 1 would fit",
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    code: &'static str,
    text: String,
    /// What was asked and what is left.
    amounts: Option<Box<(Amounts, Amounts)>>,
}

impl Refusal {
    pub(super) fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), amounts: None }
    }

    /// The same with the price that was asked and what is left to pay it.
    pub(super) fn with_amounts(self, asked: Amounts, left: Amounts) -> Self {
        Self { amounts: Some(Box::new((asked, left))), ..self }
    }

    /// The name of this refusal; it never changes, the sentence may.
    ///
    /// `accounting.filter.exhausted` and `accounting.filter.delta-exhausted` say that the price is known and
    /// not there any more, `accounting.filter.unpriced` that this filter has no price for the loss,
    /// `accounting.filter.state` that the state is not one of this filter. A loss with impossible parameters is
    /// refused with the code of the room that checks them.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// What the loss costs, rounded up; `None` when there is no price.
    pub fn asked(&self) -> Option<&Amounts> {
        self.amounts.as_deref().map(|(asked, _)| asked)
    }

    /// What is left, rounded down; `None` when there is no price.
    pub fn left(&self) -> Option<&Amounts> {
        self.amounts.as_deref().map(|(_, left)| left)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Refusal {}

impl From<demur_core::Error> for Refusal {
    fn from(error: demur_core::Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// A number for people with four digits, rounded in the direction that promises less.
pub(super) fn four_digits(value: f64, up: bool) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return value;
    }
    let exponent = libm::floor(libm::log10(value)) as i32 - 3;
    let digits = value / libm::pow(10.0, f64::from(exponent));
    // What is a short number already stays what it is.
    let near = digits.round();
    let whole = match (digits - near).abs() < 1e-9 {
        true => near,
        false if up => digits.ceil(),
        false => digits.floor(),
    };
    format!("{whole}e{exponent}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people_are_short_and_rounded_against_us() {
        assert_eq!(four_digits(0.123456, true), 0.1235);
        assert_eq!(four_digits(0.123456, false), 0.1234);
        assert_eq!(four_digits(0.1, true), 0.1);
        assert_eq!(four_digits(0.1, false), 0.1);
        assert_eq!(four_digits(123456.0, true), 123500.0);
        assert_eq!(four_digits(1e-300, false), 1e-300);
        assert_eq!(four_digits(0.0, true), 0.0);
        assert_eq!(four_digits(f64::INFINITY, true), f64::INFINITY);
    }
}
