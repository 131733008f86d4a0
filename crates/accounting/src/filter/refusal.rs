//! [`Refusal`]: why a loss is not admitted, and what would be.

use std::f64::consts::FRAC_PI_2;
use std::fmt;

use demur_exact::Rational;

use super::{Amounts, Measure, bound};

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

    /// The price is more than what is left.
    pub(super) fn of_amounts(asked: Amounts, left: Amounts) -> Self {
        let bare = |amounts: &Amounts| Amounts { delta: Rational::zero(), ..amounts.clone() };
        let (price, rest, fits) = (bare(&asked), bare(&left), what_fits(&left));
        let text = format!("this costs {price} but only {rest} is left; {fits} would fit");
        Self { code: "accounting.filter.exhausted", text, amounts: Some(Box::new((asked, left))) }
    }

    /// The δ is more than what is left of its part.
    pub(super) fn of_delta(asked: Amounts, left: Amounts) -> Self {
        let digits = |amounts: &Amounts, up| four_digits(amounts.delta.to_f64(), up);
        let (price, rest) = (digits(&asked, true), digits(&left, false));
        let text = format!(
            "this costs δ = {price:e} but only δ = {rest:e} is left of the part of δ that is kept for such losses; \
             a loss with at most that δ, or without one, would fit"
        );
        Self { code: "accounting.filter.delta-exhausted", text, amounts: Some(Box::new((asked, left))) }
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

/// What can be paid with what is left, in words.
fn what_fits(left: &Amounts) -> String {
    let (mut mu_squared, mut epsilon) = (0f64, 0f64);
    for (measure, value) in &left.values {
        let value = value.to_f64_down();
        // Gaussian noise has μ² = 1/σ² per unit of sensitivity; what is pure has ρ ≤ ε²/2 and μ² ≤ (π/2)·ε².
        let (noise, pure) = match measure {
            Measure::Epsilon => (0.0, value),
            Measure::Rho => (2.0 * value, (2.0 * value).sqrt()),
            Measure::MuSquared => (value, (value / FRAC_PI_2).sqrt()),
            Measure::Renyi(order) => {
                (2.0 * value / f64::from(*order), (2.0 * value / f64::from(*order)).sqrt())
            }
        };
        (mu_squared, epsilon) = (mu_squared.max(noise), epsilon.max(pure));
    }
    if epsilon == 0.0 {
        return "only what costs nothing".to_owned();
    }
    if mu_squared == 0.0 {
        return format!("a loss of at most ε = {}", four_digits(epsilon, false));
    }
    // A hair less, since roots are rounded.
    let (epsilon, sigma) = (epsilon * (1.0 - 1e-12), bound::inverse_root_up(mu_squared));
    let (epsilon, sigma) = (four_digits(epsilon, false), four_digits(sigma, true));
    format!(
        "a loss of at most ε = {epsilon}, or Gaussian noise of at least σ = {sigma} times the sensitivity,"
    )
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
