//! The loss language: how a [`PrivacyLoss`] is written for people, and what its numbers may be.
//!
//! ```text
//! loss  = term + term + …          term = name(key=value, …) or (loss), then *count
//! ```
//!
//! A lone parameter is written without its key, and a loss inside another comes last:
//! `group(size=3, pure(0.1))*2 + exponential(0.5)`. A sum that addition cannot show, of
//! nothing or of one loss paid once, is `composed()` or `composed(pure(1))`. So no two losses
//! are written alike, and the [`reader`](super::reader) gives back the very loss.

use std::fmt;

use demur_exact::Rational;

use super::{Part, PrivacyLoss};
use crate::Error;
use crate::error::require;
use crate::root::sqrt_up;

/// The loss language: `name(key=value, …)`, a lone parameter without its key, `+` and `*count`.
impl fmt::Display for PrivacyLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Composed { parts } => write_sum(f, parts),
            Self::Subsampled { inner, .. } | Self::Group { inner, .. } => {
                write!(f, "{}({}, {inner})", self.name(), self.keys_and_values())
            }
            _ => match self.parameters().as_slice() {
                [only] => write!(f, "{}({})", self.name(), only.value),
                _ => write!(f, "{}({})", self.name(), self.keys_and_values()),
            },
        }
    }
}

fn write_sum(f: &mut fmt::Formatter<'_>, parts: &[Part]) -> fmt::Result {
    let terms: Vec<_> = parts.iter().map(Part::to_string).collect();
    let sum = terms.join(" + ");
    if looks_like_a_sum(parts) { f.write_str(&sum) } else { write!(f, "composed({sum})") }
}

/// Whether the parts alone show that they are a composition.
fn looks_like_a_sum(parts: &[Part]) -> bool {
    !matches!(parts, [] | [Part { count: 1, .. }])
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.loss {
            PrivacyLoss::Composed { parts } if looks_like_a_sum(parts) => write!(f, "({})", self.loss)?,
            loss => write!(f, "{loss}")?,
        }
        if self.count == 1 { Ok(()) } else { write!(f, "*{}", self.count) }
    }
}

impl PrivacyLoss {
    /// Whether every parameter is one the mechanism can have.
    pub fn check(&self) -> Result<(), Error> {
        for parameter in self.parameters() {
            parameter.check(self.name())?;
        }
        self.inside().try_for_each(Self::check)
    }

    /// What the loss is called in the loss language.
    fn name(&self) -> &'static str {
        match self {
            Self::Pure { .. } => "pure",
            Self::Approximate { .. } => "approx",
            Self::ZeroConcentrated { .. } => "zcdp",
            Self::Laplace { .. } => "laplace",
            Self::DiscreteLaplace { .. } => "discrete_laplace",
            Self::TruncatedLaplace { .. } => "truncated_laplace",
            Self::TruncatedDiscreteLaplace { .. } => "truncated_discrete_laplace",
            Self::Gaussian { .. } => "gaussian",
            Self::DiscreteGaussian { .. } => "discrete_gaussian",
            Self::RandomizedResponse { .. } => "randomized_response",
            Self::UnaryEncoding { .. } => "unary_encoding",
            Self::Exponential { .. } => "exponential",
            Self::PermuteAndFlip { .. } => "permute_and_flip",
            Self::Subsampled { .. } => "subsampled",
            Self::Group { .. } => "group",
            Self::Composed { .. } => "composed",
        }
    }

    /// The parameters in the order they are written, each with what it may be.
    pub(super) fn parameters(&self) -> Vec<Parameter> {
        use Limit::{AboveZero, AtLeastTwo, AtMostOne, BelowOne, FromZero};
        match self {
            Self::Pure { epsilon }
            | Self::UnaryEncoding { epsilon }
            | Self::Exponential { epsilon }
            | Self::PermuteAndFlip { epsilon } => vec![parameter("epsilon", epsilon, FromZero)],
            Self::Approximate { epsilon, delta } => {
                vec![parameter("epsilon", epsilon, FromZero), parameter("delta", delta, BelowOne)]
            }
            Self::ZeroConcentrated { rho } => vec![parameter("rho", rho, FromZero)],
            Self::Laplace { scale, sensitivity } | Self::DiscreteLaplace { scale, sensitivity } => {
                vec![parameter("scale", scale, AboveZero), parameter("sensitivity", sensitivity, FromZero)]
            }
            Self::TruncatedLaplace { scale, bound, sensitivity }
            | Self::TruncatedDiscreteLaplace { scale, bound, sensitivity } => vec![
                parameter("scale", scale, AboveZero),
                parameter("bound", bound, AboveZero),
                parameter("sensitivity", sensitivity, FromZero),
            ],
            Self::Gaussian { variance, l2_squared } => vec![
                parameter("variance", variance, AboveZero),
                parameter("sensitivity_squared", l2_squared, FromZero),
            ],
            Self::DiscreteGaussian { variance, l2_squared, dimensions } => vec![
                parameter("variance", variance, AboveZero),
                parameter("sensitivity_squared", l2_squared, FromZero),
                parameter("dimensions", &Rational::from(*dimensions), AboveZero),
            ],
            Self::RandomizedResponse { epsilon, categories } => vec![
                parameter("epsilon", epsilon, FromZero),
                parameter("categories", &Rational::from(*categories), AtLeastTwo),
            ],
            Self::Subsampled { rate, .. } => vec![parameter("rate", rate, AtMostOne)],
            Self::Group { size, .. } => vec![parameter("size", &Rational::from(*size), AboveZero)],
            Self::Composed { .. } => vec![],
        }
    }

    /// The losses this one is made of.
    fn inside(&self) -> impl Iterator<Item = &Self> {
        let (inner, parts): (Option<&Self>, &[Part]) = match self {
            Self::Subsampled { inner, .. } | Self::Group { inner, .. } => (Some(inner), &[]),
            Self::Composed { parts } => (None, parts),
            _ => (None, &[]),
        };
        inner.into_iter().chain(parts.iter().map(|part| &part.loss))
    }

    fn keys_and_values(&self) -> String {
        let written = self.parameters().into_iter().map(Parameter::written);
        written.collect::<Vec<_>>().join(", ")
    }
}

/// One number of a loss, under its name in the loss language.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) value: Rational,
    limit: Limit,
}

#[derive(Clone, Copy)]
pub(super) enum Limit {
    AboveZero,
    FromZero,
    AtMostHalf,
    AtMostOne,
    BelowOne,
    AtLeastTwo,
}

pub(super) fn parameter(name: &'static str, value: &Rational, limit: Limit) -> Parameter {
    Parameter { name, value: value.clone(), limit }
}

impl Parameter {
    pub(super) fn check(&self, mechanism: &str) -> Result<(), Error> {
        let (name, value, allowed) = (self.name, &self.value, self.limit.allowed());
        require(self.limit.holds(value), "core.loss.parameter", || {
            format!("the {name} of {mechanism} must be {allowed}, but {value} was given")
        })
    }

    /// `key=value`, and a squared sensitivity by its root where that is a fraction.
    fn written(self) -> String {
        if self.name == "sensitivity_squared" && !self.value.is_negative() {
            let root = sqrt_up(&self.value);
            if root.square() == self.value {
                return format!("sensitivity={root}");
            }
        }
        format!("{}={}", self.name, self.value)
    }
}

impl Limit {
    fn holds(self, value: &Rational) -> bool {
        match self {
            Self::AboveZero => value.is_positive(),
            Self::FromZero => !value.is_negative(),
            Self::AtMostHalf => value.is_positive() && *value <= Rational::new(1, 2),
            Self::AtMostOne => !value.is_negative() && *value <= Rational::one(),
            Self::BelowOne => !value.is_negative() && *value < Rational::one(),
            Self::AtLeastTwo => *value >= Rational::from(2u32),
        }
    }

    fn allowed(self) -> &'static str {
        match self {
            Self::AboveZero => "above 0",
            Self::FromZero => "at least 0",
            Self::AtMostHalf => "above 0 and at most 0.5",
            Self::AtMostOne => "between 0 and 1",
            Self::BelowOne => "at least 0 and below 1",
            Self::AtLeastTwo => "at least 2",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PrivacyLoss::*;

    fn q(text: &str) -> Rational {
        text.parse().unwrap()
    }

    fn pure(epsilon: &str) -> PrivacyLoss {
        Pure { epsilon: q(epsilon) }
    }

    fn gaussian() -> PrivacyLoss {
        Gaussian { variance: q("25"), l2_squared: q("1") }
    }

    #[test]
    fn sums_and_counts_read_as_arithmetic() {
        let sum = gaussian().repeat(100).compose(pure("0.1").repeat(3));
        assert_eq!(sum.to_string(), "gaussian(variance=25, sensitivity=1)*100 + pure(0.1)*3");
        let part = Part { loss: pure("1").compose(pure("2")), count: 2 };
        assert_eq!(part.to_string(), "(pure(1) + pure(2))*2");
        let group = Group { size: 3, inner: Box::new(pure("1").compose(pure("2"))) };
        assert_eq!(group.to_string(), "group(size=3, pure(1) + pure(2))");
    }

    #[test]
    fn compositions_that_are_no_sums_say_so() {
        let of = |parts| Composed { parts };
        let once = of(vec![Part { loss: pure("1"), count: 1 }]);
        assert_eq!(of(vec![]).to_string(), "composed()");
        assert_eq!(once.to_string(), "composed(pure(1))");
        assert_eq!(once.compose(of(vec![])).repeat(2).to_string(), "pure(1)*2");
        let nested = of(vec![Part { loss: of(vec![]), count: 2 }, Part { loss: gaussian(), count: 1 }]);
        assert_eq!(nested.to_string(), "composed()*2 + gaussian(variance=25, sensitivity=1)");
    }

    #[test]
    fn a_sensitivity_without_a_root_is_written_squared() {
        let gaussian = |l2_squared| Gaussian { variance: q("1/3"), l2_squared: q(l2_squared) };
        assert_eq!(gaussian("4/9").to_string(), "gaussian(variance=1/3, sensitivity=2/3)");
        assert_eq!(gaussian("2").to_string(), "gaussian(variance=1/3, sensitivity_squared=2)");
        assert_eq!(gaussian("-4").to_string(), "gaussian(variance=1/3, sensitivity_squared=-4)");
    }

    #[test]
    fn impossible_parameters_are_refused_by_name() {
        for (loss, text) in [
            (pure("-1"), "the epsilon of pure must be at least 0, but -1 was given"),
            (
                Laplace { scale: q("0"), sensitivity: q("1") },
                "the scale of laplace must be above 0, but 0 was given",
            ),
            (
                Approximate { epsilon: q("1"), delta: q("1") },
                "the delta of approx must be at least 0 and below 1, but 1 was given",
            ),
            (
                RandomizedResponse { epsilon: q("1"), categories: 1 },
                "the categories of randomized_response must be at least 2, but 1 was given",
            ),
            (
                Subsampled { rate: q("1.01"), inner: Box::new(gaussian()) },
                "the rate of subsampled must be between 0 and 1, but 1.01 was given",
            ),
            (
                Group { size: 2, inner: Box::new(pure("-1")) }.repeat(2),
                "the epsilon of pure must be at least 0, but -1 was given",
            ),
        ] {
            let error = loss.check().unwrap_err();
            assert_eq!((error.code(), error.to_string().as_str()), ("core.loss.parameter", text));
            assert_eq!(loss.pure_epsilon(), None);
            let json = serde_json::to_string(&loss).unwrap();
            let refusal = serde_json::from_str::<PrivacyLoss>(&json).unwrap_err();
            assert!(refusal.to_string().contains(text), "{refusal}");
        }
    }
}
