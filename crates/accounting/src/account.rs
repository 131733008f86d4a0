//! [`Account`]: what a composition costs, by the best method there is for it.

use demur_core::PrivacyLoss;
use demur_exact::Rational;

use crate::inversion::Sum;
use crate::law::Terms;
use crate::{AccountingError, Answer, Bounds, Method};

/// A composition of losses, ready to be asked.
///
/// ```
/// use demur_accounting::Account;
/// let account = Account::of(&"subsampled(0.01, gaussian(sigma=1))*1000".parse()?)?;
/// let answer = account.epsilon(&"1e-6".parse()?)?;
/// assert!(answer.bounds.lower < 2.124515171120122 && 2.124515171120121 < answer.bounds.upper);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Account {
    terms: Vec<Terms>,
}

impl Account {
    /// The account of a loss.
    pub fn of(loss: &PrivacyLoss) -> Result<Self, AccountingError> {
        let terms = Terms::of(loss)?;
        let reversed = (!terms.symmetric()).then(|| terms.reversed());
        Ok(Self { terms: std::iter::once(terms).chain(reversed).collect() })
    }

    /// The least δ with which the composition is (ε, δ)-private.
    pub fn delta(&self, epsilon: &Rational) -> Result<Answer, AccountingError> {
        self.delta_by(Method::Inversion, epsilon)
    }

    /// The least ε ≥ 0 with which the composition is (ε, δ)-private.
    pub fn epsilon(&self, delta: &Rational) -> Result<Answer, AccountingError> {
        self.epsilon_by(Method::Inversion, delta)
    }

    /// δ(ε) by a method of your choice.
    pub fn delta_by(&self, method: Method, epsilon: &Rational) -> Result<Answer, AccountingError> {
        let epsilon = epsilon.to_f64();
        let mut bounds = Bounds::new(0.0, 0.0);
        for terms in &self.terms {
            let line = sum(terms).line_for_epsilon(epsilon).ok_or_else(unproven)?;
            bounds = bounds.max(line.delta(epsilon));
        }
        Ok(Answer { bounds, method, reason: String::new() })
    }

    /// ε(δ) by a method of your choice.
    pub fn epsilon_by(&self, method: Method, delta: &Rational) -> Result<Answer, AccountingError> {
        let delta = delta.to_f64();
        let mut bounds = Bounds::new(0.0, 0.0);
        for terms in &self.terms {
            let line = sum(terms).line_for_delta(delta.ln()).ok_or_else(unproven)?;
            bounds = bounds.max(line.epsilon(delta, 1.0));
        }
        Ok(Answer { bounds, method, reason: String::new() })
    }

    /// The Rényi divergence of the given order above 1, with the person removed and with the person added.
    pub fn renyi(&self, order: &Rational) -> Result<[Bounds; 2], AccountingError> {
        let tilt = (order - &Rational::one()).to_f64();
        let of = |terms: &Terms| {
            let value = sum(terms).log_moment_up(tilt) / tilt;
            Bounds::new(value, value)
        };
        let here = of(&self.terms[0]);
        Ok([here, self.terms.get(1).map_or(here, of)])
    }
}

fn unproven() -> AccountingError {
    AccountingError::new("accounting.unproven", "no bound could be proven")
}

fn sum(terms: &Terms) -> Sum {
    let mut sum = Sum::default();
    for (law, count) in &terms.laws {
        match law.gaussian() {
            Some(mu) => sum.mu_squared += mu.to_f64() * *count as f64,
            None => sum.terms.push((law.clone(), *count as f64)),
        }
    }
    sum
}
