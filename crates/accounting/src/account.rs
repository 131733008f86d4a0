//! [`Account`]: what a composition costs, by the best method there is for it.

use demur_core::PrivacyLoss;
use demur_exact::Rational;

use crate::law::Terms;
use crate::way::Way;
use crate::{AccountingError, Answer, Bounds, Method, classical, renyi};

/// A composition of losses, ready to be asked.
///
/// ```
/// use demur_accounting::Account;
/// let account = Account::of(&"subsampled(0.01, gaussian(sigma=1))*1000".parse()?)?;
/// let answer = account.epsilon(&"1e-6".parse()?)?;
/// assert!(answer.bounds.lower < 2.124515171120122 && 2.124515171120121 < answer.bounds.upper);
/// assert!(answer.bounds.relative_width() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Where neighbours in one direction lose more than in the other, as on samples, both are composed and
/// the worse one counts.
#[derive(Clone, Debug)]
pub struct Account {
    ways: Vec<Way>,
}

/// What is asked.
#[derive(Clone, Copy)]
pub(crate) enum Question<'a> {
    Delta { epsilon: &'a Rational },
    Epsilon { delta: &'a Rational },
}

/// The relative width of an interval that needs no second opinion.
const ENOUGH: f64 = 1e-9;

impl Account {
    /// The account of a loss.
    pub fn of(loss: &PrivacyLoss) -> Result<Self, AccountingError> {
        Ok(Self::of_terms(Terms::of(loss)?))
    }

    pub(crate) fn of_terms(terms: Terms) -> Self {
        let reversed = (!terms.symmetric()).then(|| Way::new(terms.reversed()));
        Self { ways: std::iter::once(Way::new(terms)).chain(reversed).collect() }
    }

    /// The least δ with which the composition is (ε, δ)-private.
    pub fn delta(&self, epsilon: &Rational) -> Result<Answer, AccountingError> {
        self.best(Question::Delta { epsilon })
    }

    /// The least ε ≥ 0 with which the composition is (ε, δ)-private.
    pub fn epsilon(&self, delta: &Rational) -> Result<Answer, AccountingError> {
        self.best(Question::Epsilon { delta })
    }

    /// δ(ε) by a method of your choice.
    pub fn delta_by(&self, method: Method, epsilon: &Rational) -> Result<Answer, AccountingError> {
        self.by(method, Question::Delta { epsilon })
    }

    /// ε(δ) by a method of your choice.
    pub fn epsilon_by(&self, method: Method, delta: &Rational) -> Result<Answer, AccountingError> {
        self.by(method, Question::Epsilon { delta })
    }

    fn by(&self, method: Method, question: Question<'_>) -> Result<Answer, AccountingError> {
        question.check()?;
        let bounds = self.bounds(method, question)?;
        Ok(Answer { bounds: self.honest(bounds), method, reason: "it was asked for".to_owned() })
    }

    fn best(&self, question: Question<'_>) -> Result<Answer, AccountingError> {
        question.check()?;
        let (method, reason) = self.ways[0].choice();
        let mut worst = Bounds::new(0.0, 0.0);
        let mut used = (method, reason);
        for way in &self.ways {
            if way.is_below(question, worst) {
                continue;
            }
            let bounds = match ask(way, method, question) {
                Ok(bounds) if bounds.relative_width() < ENOUGH || method == Method::Renyi => bounds,
                Err(error) if error.code() != "accounting.unproven" => return Err(error),
                // A rough bound will do for the direction that does not count.
                _ if worst.lower > 0.0 && renyi::rough(way, question).is_some_and(|bound| bound <= worst.lower) => {
                    continue;
                }
                tried => {
                    used = (Method::Grid, "no decay of the moments can be proven for so few losses");
                    let grid = ask(way, Method::Grid, question)?;
                    tried.map_or(grid, |tried| tried.and(grid))
                }
            };
            worst = worst.max(bounds);
        }
        let (method, reason) = used;
        Ok(Answer { bounds: self.honest(worst), method, reason: reason.to_owned() })
    }

    /// By the best method, the bounds alone.
    pub(crate) fn bounds_of_best(&self, question: Question<'_>) -> Result<Bounds, AccountingError> {
        self.best(question).map(|answer| answer.bounds)
    }

    /// By one method, in the worse direction.
    pub(crate) fn bounds(&self, method: Method, question: Question<'_>) -> Result<Bounds, AccountingError> {
        let mut worst = Bounds::new(0.0, 0.0);
        for way in &self.ways {
            if !way.is_below(question, worst) {
                worst = worst.max(ask(way, method, question)?);
            }
        }
        Ok(worst)
    }

    /// A lower bound means something only where every law is the worst there is.
    fn honest(&self, bounds: Bounds) -> Bounds {
        if self.ways[0].terms.tight { bounds } else { Bounds::new(0.0, bounds.upper) }
    }

    /// The Rényi divergence of the given order above 1, with the person removed and with the person added.
    pub fn renyi(&self, order: &Rational) -> Result<[Bounds; 2], AccountingError> {
        let here = renyi::divergence(&self.ways[0], order)?;
        let there = self.ways.get(1).map_or(Ok(here), |way| renyi::divergence(way, order))?;
        Ok([here, there])
    }
}

impl Question<'_> {
    fn check(&self) -> Result<(), AccountingError> {
        match self {
            Self::Delta { epsilon } if epsilon.is_negative() => Err(AccountingError::new(
                "accounting.epsilon",
                format!("ε must be at least 0, but {epsilon} was given"),
            )),
            Self::Epsilon { delta } if delta.is_negative() || **delta >= Rational::one() => Err(AccountingError::new(
                "accounting.delta",
                format!("δ must be at least 0 and below 1, but {delta} was given"),
            )),
            _ => Ok(()),
        }
    }
}

fn ask(way: &Way, method: Method, question: Question<'_>) -> Result<Bounds, AccountingError> {
    match method {
        Method::Closed | Method::Lattice | Method::Inversion | Method::Grid => {
            if way.terms.rho > Rational::zero() || !way.terms.curves.is_empty() {
                return Err(AccountingError::new(
                    "accounting.no-law",
                    "some losses are known only by their Rényi divergences, which have no exact law; use renyi or zcdp",
                ));
            }
            match question {
                Question::Delta { epsilon } => way.delta(method, epsilon),
                Question::Epsilon { delta } => way.epsilon(method, delta),
            }
        }
        Method::Renyi => renyi::bounds(way, question),
        Method::ZeroConcentrated | Method::Gaussian | Method::Optimal | Method::Advanced | Method::Basic => {
            classical::bounds(way, method, question)
        }
    }
}
