//! [`Question`]: ε for a δ, or δ for an ε, and its [`Reply`].

use demur_accounting::{Account, AccountingError, Answer, Bounds, Method};
use demur_core::PrivacyLoss;
use serde::Serialize;
use serde_json::value::RawValue;

use super::figure::{Figure, json_double};
use crate::args::account::Asked;
use crate::failure::Failure;
use crate::words::{down, up};

const PURE: &str = "only pure losses have an epsilon at delta = 0: ask with a --delta above 0";

/// What is sought, with what is given.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    /// ε for this δ.
    Epsilon { delta: Figure },
    /// δ for this ε.
    Delta { epsilon: Figure },
}

impl Question {
    /// Exactly one of both must be given.
    pub(crate) fn of(asked: &Asked) -> Result<Self, Failure> {
        match (&asked.delta, &asked.epsilon) {
            (Some(delta), None) => Ok(Self::Epsilon { delta: Figure::delta(delta)? }),
            (None, Some(epsilon)) => Ok(Self::Delta { epsilon: Figure::epsilon(epsilon)? }),
            (Some(_), Some(_)) => {
                let message = "both --delta and --epsilon were given, so nothing is left to find";
                Err(Failure::new("cli.question", message)
                    .hint("give --delta to find epsilon, or --epsilon to find delta"))
            }
            (None, None) => Err(Failure::new("cli.question", "neither --delta nor --epsilon was given")
                .hint("give --delta to find epsilon, or --epsilon to find delta")),
        }
    }

    /// The answer by the best method, or by a chosen one.
    pub(crate) fn ask(&self, account: &Account, method: Option<Method>) -> Result<Answer, Failure> {
        let answer = match (self, method) {
            (Self::Epsilon { delta }, None) => account.epsilon(&delta.value),
            (Self::Epsilon { delta }, Some(method)) => account.epsilon_by(method, &delta.value),
            (Self::Delta { epsilon }, None) => account.delta(&epsilon.value),
            (Self::Delta { epsilon }, Some(method)) => account.delta_by(method, &epsilon.value),
        };
        self.finite(answer.map_err(|error| self.refused(error))?)
    }

    /// Only pure losses have an ε without any δ.
    fn refused(&self, error: AccountingError) -> Failure {
        let failure = Failure::from(error);
        match self {
            Self::Epsilon { delta } if delta.value.is_zero() => failure.hint(PURE),
            _ => failure,
        }
    }

    /// An answer without an upper bound is none.
    fn finite(&self, answer: Answer) -> Result<Answer, Failure> {
        match (answer.bounds.upper.is_finite(), self) {
            (true, _) => Ok(answer),
            (false, Self::Epsilon { delta }) => {
                let message = format!("no finite epsilon holds with delta = {}", delta.text);
                Err(Failure::new("cli.unbounded", message).hint(PURE))
            }
            (false, Self::Delta { epsilon }) => {
                let message = format!("no delta below 1 is proven for epsilon = {}", epsilon.text);
                Err(Failure::new("cli.unbounded", message))
            }
        }
    }

    /// The letter of what is sought.
    pub(crate) fn symbol(&self) -> &'static str {
        match self {
            Self::Epsilon { .. } => "ε",
            Self::Delta { .. } => "δ",
        }
    }

    /// What is given, for people.
    pub(crate) fn given(&self) -> String {
        match self {
            Self::Epsilon { delta } => format!("δ = {}", delta.text),
            Self::Delta { epsilon } => format!("ε = {}", epsilon.text),
        }
    }

    /// The guarantee in two rows: ε and δ, the found one rounded up.
    pub(crate) fn rows(&self, bounds: Bounds) -> [(&'static str, String); 2] {
        let (epsilon, delta) = match self {
            Self::Epsilon { delta } => (up(bounds.upper, 7), delta.text.clone()),
            Self::Delta { epsilon } => (epsilon.text.clone(), up(bounds.upper, 7)),
        };
        [("epsilon", epsilon), ("delta", delta)]
    }
}

/// An answer as JSON.
#[derive(Serialize)]
pub(crate) struct Reply {
    epsilon: Box<RawValue>,
    epsilon_lower: Box<RawValue>,
    delta: Box<RawValue>,
    delta_lower: Box<RawValue>,
    method: &'static str,
    reason: String,
    losses: String,
}

impl Reply {
    pub(crate) fn new(question: &Question, answer: &Answer, losses: &PrivacyLoss) -> Result<Self, Failure> {
        let found = (json_double(answer.bounds.upper)?, json_double(answer.bounds.lower)?);
        let (epsilon, delta) = match question {
            Question::Epsilon { delta } => (found, (delta.json()?, delta.json()?)),
            Question::Delta { epsilon } => ((epsilon.json()?, epsilon.json()?), found),
        };
        Ok(Self {
            epsilon: epsilon.0,
            epsilon_lower: epsilon.1,
            delta: delta.0,
            delta_lower: delta.1,
            method: answer.method.name(),
            reason: answer.reason.clone(),
            losses: losses.to_string(),
        })
    }
}

/// How far apart both bounds are, for people.
pub(crate) fn tightness(bounds: Bounds) -> String {
    if bounds.lower == bounds.upper {
        return "exact to the last digit of a double".to_owned();
    }
    let width = up(bounds.relative_width(), 2);
    format!("between {} and {}, {width} of its size apart", down(bounds.lower, 15), up(bounds.upper, 15))
}
