//! The loss language: how a [`PrivacyLoss`] is written for people, and what its numbers may be.
//!
//! ```text
//! loss  = term + term + …          term = name(key=value, …) or (loss), then *count
//! ```
//!
//! A lone parameter is written without its key, and a loss inside another comes last:
//! `group(size=3, pure(0.1))*2 + exponential(0.5)`. Bounds on Rényi divergences are pairs of
//! an order and an ε: `renyi(2: 0.1, 8: 0.5)`. A sum that addition cannot show, of
//! nothing or of one loss paid once, is `composed()` or `composed(pure(1))`. So no two losses
//! are written alike, and the [`reader`](super::reader) gives back the very loss.

use std::borrow::Cow;
use std::fmt;

use demur_exact::Rational;

use super::{Part, PrivacyLoss, RenyiPoint};
use crate::Error;
use crate::error::require;
use crate::root::sqrt_up;

/// The most orders for which one loss bounds the Rényi divergence.
pub(super) const MAX_POINTS: usize = 1_000;

/// The loss language: `name(key=value, …)`, a lone parameter without its key, `+` and `*count`.
impl fmt::Display for PrivacyLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Composed { parts } => write_sum(f, parts),
            Self::Renyi { points } => write!(f, "{}({})", self.name(), joined(points, ", ")),
            Self::Subsampled { inner, .. }
            | Self::Group { inner, .. }
            | Self::Threshold { inner, .. }
            | Self::WithoutReplacement { inner, .. } => {
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
    let sum = joined(parts, " + ");
    if looks_like_a_sum(parts) { f.write_str(&sum) } else { write!(f, "composed({sum})") }
}

fn joined(items: &[impl fmt::Display], between: &str) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
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

/// `order: epsilon`
impl fmt::Display for RenyiPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.order, self.epsilon)
    }
}

impl PrivacyLoss {
    /// Whether every parameter is one the mechanism can have.
    ///
    /// A part that was never paid, of count 0, may be in a composition; its loss is checked too.
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
            Self::Threshold { .. } => "threshold",
            Self::WithoutReplacement { .. } => "without_replacement",
            Self::Renyi { .. } => "renyi",
        }
    }

    /// The parameters in the order they are written, each with what it may be.
    pub(super) fn parameters(&self) -> Vec<Parameter> {
        use Limit::{AboveZero, AtLeastTwo, AtMostOne, AtMostPopulation, BelowOne, FromZero};
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
            Self::Threshold { delta, .. } => vec![parameter("delta", delta, BelowOne)],
            Self::WithoutReplacement { sample, population, .. } => vec![
                parameter("sample", &Rational::from(*sample), AtMostPopulation(*population)),
                parameter("population", &Rational::from(*population), AboveZero),
            ],
            Self::Renyi { points } => parameters_of_points(points),
        }
    }

    /// The losses this one is made of.
    fn inside(&self) -> impl Iterator<Item = &Self> {
        let (inner, parts): (Option<&Self>, &[Part]) = match self {
            Self::Subsampled { inner, .. }
            | Self::Group { inner, .. }
            | Self::Threshold { inner, .. }
            | Self::WithoutReplacement { inner, .. } => (Some(inner), &[]),
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

/// How many points there are, then the order and the epsilon of each.
fn parameters_of_points(points: &[RenyiPoint]) -> Vec<Parameter> {
    let count = Rational::from(points.len() as u64);
    let mut parameters = vec![parameter("number of points", &count, Limit::FromOneToMaxPoints)];
    let mut above = Limit::AboveOne;
    for RenyiPoint { order, epsilon } in points {
        let limit = std::mem::replace(&mut above, Limit::AbovePrevious(order.clone()));
        parameters.push(parameter("order", order, limit));
        parameters.push(parameter("epsilon", epsilon, Limit::FromZero));
    }
    parameters
}

/// One number of a loss, under its name in the loss language.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) value: Rational,
    limit: Limit,
}

pub(super) enum Limit {
    AboveZero,
    FromZero,
    AtMostHalf,
    AtMostOne,
    BelowOne,
    AtLeastTwo,
    AtMostPopulation(u64),
    FromOneToMaxPoints,
    AboveOne,
    AbovePrevious(Rational),
}

pub(super) fn parameter(name: &'static str, value: &Rational, limit: Limit) -> Parameter {
    Parameter { name, value: value.clone(), limit }
}

impl Parameter {
    pub(super) fn check(&self, mechanism: &str) -> Result<(), Error> {
        let (name, value) = (self.name, &self.value);
        require(self.limit.holds(value), "core.loss.parameter", || {
            let allowed = self.limit.allowed();
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
    fn holds(&self, value: &Rational) -> bool {
        match self {
            Self::AboveZero => value.is_positive(),
            Self::FromZero => !value.is_negative(),
            Self::AtMostHalf => value.is_positive() && *value <= Rational::new(1, 2),
            Self::AtMostOne => !value.is_negative() && *value <= Rational::one(),
            Self::BelowOne => !value.is_negative() && *value < Rational::one(),
            Self::AtLeastTwo => *value >= Rational::from(2u32),
            Self::AtMostPopulation(population) => *value <= Rational::from(*population),
            Self::FromOneToMaxPoints => value.is_positive() && *value <= Rational::from(MAX_POINTS as u64),
            Self::AboveOne => *value > Rational::one(),
            Self::AbovePrevious(previous) => value > previous,
        }
    }

    fn allowed(&self) -> Cow<'static, str> {
        match self {
            Self::AboveZero => "above 0".into(),
            Self::FromZero => "at least 0".into(),
            Self::AtMostHalf => "above 0 and at most 0.5".into(),
            Self::AtMostOne => "between 0 and 1".into(),
            Self::BelowOne => "at least 0 and below 1".into(),
            Self::AtLeastTwo => "at least 2".into(),
            Self::AtMostPopulation(population) => format!("at most {population}, the population").into(),
            Self::FromOneToMaxPoints => format!("between 1 and {MAX_POINTS}").into(),
            Self::AboveOne => "above 1".into(),
            Self::AbovePrevious(previous) => format!("above {previous}, the one before it").into(),
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

    fn renyi(points: &[(&str, &str)]) -> PrivacyLoss {
        let point = |&(order, epsilon): &(&str, &str)| RenyiPoint { order: q(order), epsilon: q(epsilon) };
        Renyi { points: points.iter().map(point).collect() }
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
                Threshold { delta: q("1"), inner: Box::new(pure("1")) },
                "the delta of threshold must be at least 0 and below 1, but 1 was given",
            ),
            (
                Threshold { delta: q("0"), inner: Box::new(pure("-1")) },
                "the epsilon of pure must be at least 0, but -1 was given",
            ),
            (
                WithoutReplacement { sample: 3, population: 2, inner: Box::new(pure("1")) },
                "the sample of without_replacement must be at most 2, the population, but 3 was given",
            ),
            (
                WithoutReplacement { sample: 0, population: 0, inner: Box::new(pure("1")) },
                "the population of without_replacement must be above 0, but 0 was given",
            ),
            (
                WithoutReplacement { sample: 0, population: 1, inner: Box::new(pure("-1")) },
                "the epsilon of pure must be at least 0, but -1 was given",
            ),
            (renyi(&[]), "the number of points of renyi must be between 1 and 1000, but 0 was given"),
            (renyi(&[("1", "1")]), "the order of renyi must be above 1, but 1 was given"),
            (renyi(&[("2", "-1")]), "the epsilon of renyi must be at least 0, but -1 was given"),
            (
                renyi(&[("2", "1"), ("3", "1"), ("3", "1")]),
                "the order of renyi must be above 3, the one before it, but 3 was given",
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

    #[test]
    fn what_barely_fits_is_allowed() {
        let one = || Box::new(pure("1"));
        let up_to = |last: u64| Renyi {
            points: (2..=last)
                .map(|order| RenyiPoint { order: Rational::from(order), epsilon: q("0") })
                .collect(),
        };
        for loss in [
            Threshold { delta: q("0"), inner: one() },
            Threshold { delta: q("0.999999"), inner: one() },
            WithoutReplacement { sample: 0, population: 1, inner: one() },
            WithoutReplacement { sample: u64::MAX, population: u64::MAX, inner: one() },
            renyi(&[("1.000001", "0")]),
            up_to(1_001),
        ] {
            assert_eq!(loss.check(), Ok(()), "{loss}");
        }
        assert_eq!(
            up_to(1_002).check().unwrap_err().to_string(),
            "the number of points of renyi must be between 1 and 1000, but 1001 was given",
        );
    }
}
