//! [`Account`]: what a composition costs, by the best method there is for it.

use demur_core::PrivacyLoss;
use demur_exact::Rational;

use crate::crowd::Crowd;
use crate::gathering::Gathering;
use crate::law::Terms;
use crate::way::Way;
use crate::{AccountingError, Answer, Bounds, Method, classical, overlap, renyi};

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
    /// ε of pure privacy, where there is one and it is a fraction.
    pure: Option<Rational>,
    /// The group it is about, where its people are sampled.
    crowd: Option<Crowd>,
    /// The same where it is one use of noise, which has a formula.
    gathering: Option<Gathering>,
    /// Another account, which is known to be paid at least.
    floor: Option<Box<Account>>,
}

/// What is asked.
#[derive(Clone, Copy)]
pub(crate) enum Question<'a> {
    Delta { epsilon: &'a Rational },
    Epsilon { delta: &'a Rational },
}

/// The relative width of an interval that needs no second opinion.
const ENOUGH: f64 = 1e-8;

/// A δ that is as good as 0.
pub(crate) const NOTHING: f64 = 1e-300;

impl Account {
    /// The account of a loss.
    pub fn of(loss: &PrivacyLoss) -> Result<Self, AccountingError> {
        let (pure, crowd) = (loss.pure_epsilon(), Crowd::of(loss)?);
        Ok(Self { pure, crowd, gathering: Gathering::of(loss)?, ..Self::of_terms(Terms::of(loss)?) })
    }

    pub(crate) fn of_terms(mut terms: Terms) -> Self {
        let floor = terms.take_floor().map(|terms| Box::new(Self::of_terms(terms)));
        let reversed = (!terms.symmetric()).then(|| Way::new(terms.reversed()));
        Self {
            ways: std::iter::once(Way::new(terms)).chain(reversed).collect(),
            pure: None,
            crowd: None,
            gathering: None,
            floor,
        }
    }

    /// With the person removed.
    pub(crate) fn first(&self) -> &Way {
        &self.ways[0]
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
        Ok(Answer { bounds: self.known(bounds, question), method, reason: "it was asked for".to_owned() })
    }

    /// The answer that follows from Σε alone: δ(ε) = 0 from there on, and ε(0) is just that.
    fn by_pure(&self, question: Question<'_>) -> Option<Answer> {
        let pure = self.pure.as_ref()?;
        let bounds = match question {
            Question::Delta { epsilon } if epsilon >= pure => Bounds::new(0.0, 0.0),
            Question::Epsilon { delta } if delta.is_zero() => {
                Bounds::new(pure.to_f64_down(), pure.to_f64_up())
            }
            _ => return None,
        };
        let reason = "no loss is larger than the sum of the largest".to_owned();
        Some(Answer { bounds, method: Method::Closed, reason })
    }

    fn best(&self, question: Question<'_>) -> Result<Answer, AccountingError> {
        question.check()?;
        if let Some(answer) = self.by_pure(question) {
            return Ok(answer);
        }
        if let Some(bounds) = self.gathering.as_ref().and_then(|gathering| gathering.bounds(question)) {
            let reason = "how many of a group are in a sample has a formula".to_owned();
            return Ok(Answer { bounds, method: Method::Closed, reason });
        }
        let (method, reason) = match question {
            Question::Epsilon { delta } if !delta.is_zero() && delta.to_f64() < NOTHING => {
                (Method::Renyi, "δ is smaller than what doubles can tell apart")
            }
            _ => self.ways[0].choice(),
        };
        let mut worst = Bounds::new(0.0, 0.0);
        let mut used = (method, reason);
        for way in &self.ways {
            if way.is_below(question, worst) || renyi::is_below(way, question, worst) {
                continue;
            }
            if renyi::is_nothing(way, question) {
                worst = worst.max(Bounds::new(0.0, NOTHING));
                continue;
            }
            if let Some(bounds) = overlap::nearly_one(way, question) {
                worst = worst.max(bounds);
                continue;
            }
            let bounds = match ask(way, method, question) {
                Ok(bounds)
                    if bounds.relative_width() < ENOUGH
                        || bounds.upper < NOTHING
                        || matches!(method, Method::Renyi | Method::Grid) =>
                {
                    bounds
                }
                Err(error) if error.code() != "accounting.unproven" => return Err(error),
                _ if matches!(question, Question::Delta { .. })
                    && renyi::rough(way, question).is_some_and(|bound| bound < NOTHING) =>
                {
                    Bounds::new(0.0, NOTHING)
                }
                tried => {
                    let (method, second) = match ask(way, Method::Grid, question) {
                        Ok(grid) => {
                            (Method::Grid, renyi::bounds(way, question).map_or(grid, |other| grid.and(other)))
                        }
                        Err(_) => (Method::Renyi, renyi::bounds(way, question)?),
                    };
                    used = (method, "no decay of the moments can be proven for so few losses");
                    tried.map_or(second, |tried| tried.and(second))
                }
            };
            worst = worst.max(bounds);
        }
        let (method, mut reason) = used;
        if let Some(bound) = self.crowd.as_ref().and_then(|crowd| crowd.below(question, worst.upper)) {
            worst = Bounds::new(0.0, bound);
            reason = "the group costs no more than its people one after the other";
        }
        Ok(Answer { bounds: self.known(worst, question), method, reason: reason.to_owned() })
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

    /// The same, with what is known otherwise to be paid at least.
    fn known(&self, bounds: Bounds, question: Question<'_>) -> Bounds {
        let least = self.floor.as_ref().and_then(|floor| floor.best(question).ok());
        let honest = self.honest(bounds);
        Bounds::new(least.map_or(honest.lower, |least| least.bounds.lower.min(honest.upper)), honest.upper)
    }

    /// The Rényi divergence of the given order above 1, with the person removed and with the person added.
    pub fn renyi(&self, order: &Rational) -> Result<[Bounds; 2], AccountingError> {
        let here = renyi::divergence(&self.ways[0], order)?;
        let there = self.ways.get(1).map_or(Ok(here), |way| renyi::divergence(way, order))?;
        Ok([self.honest(here), self.honest(there)])
    }
}

impl Question<'_> {
    fn check(&self) -> Result<(), AccountingError> {
        match self {
            Self::Delta { epsilon } if epsilon.is_negative() => Err(AccountingError::new(
                "accounting.epsilon",
                format!("ε must be at least 0, but {epsilon} was given"),
            )),
            Self::Epsilon { delta } if delta.is_negative() || **delta >= Rational::one() => {
                Err(AccountingError::new(
                    "accounting.delta",
                    format!("δ must be at least 0 and below 1, but {delta} was given"),
                ))
            }
            _ => Ok(()),
        }
    }
}

fn ask(way: &Way, method: Method, question: Question<'_>) -> Result<Bounds, AccountingError> {
    match method {
        Method::Closed | Method::Lattice | Method::Inversion | Method::Grid => {
            way.must_have_laws()?;
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
