//! [`Rule`]: which budget, counted how.

use demur_exact::Rational;
use serde::{Deserialize, Serialize};

use super::state::Measure;
use crate::AccountingError;

/// The largest order of a Rényi filter: a sampled loss is priced in as many steps.
pub(super) const LARGEST_ORDER: u32 = 1024;

/// A budget and how it is counted; the owner chooses it once, before the first answer.
///
/// `delta_for_losses` is the part of δ kept for losses that have a δ of their own. The rest is what the
/// conversion from ρ, μ² or Rényi divergences to ε needs. The two cannot be pooled: a filter that lets the
/// analyst decide late which of them to use up promises too little by a factor of up to two
/// (`docs/accounting-filters.md`, section 2).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "filter", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Rule {
    /// Σε ≤ ε.
    Pure {
        /// The ε that is promised.
        epsilon: Rational,
    },
    /// Σρ, good for every order at once: the rule for most budgets of ε and δ.
    Zcdp {
        /// The ε that is promised.
        epsilon: Rational,
        /// The δ that is promised.
        delta: Rational,
        /// The part of it for Σδ.
        delta_for_losses: Rational,
    },
    /// Σμ²: the tightest when all noise is Gaussian.
    Gaussian {
        /// The ε that is promised.
        epsilon: Rational,
        /// The δ that is promised.
        delta: Rational,
        /// The part of it for Σδ.
        delta_for_losses: Rational,
    },
    /// Rényi divergences of a few orders, of which one must hold out: for Gaussian noise on samples.
    Renyi {
        /// The ε that is promised.
        epsilon: Rational,
        /// The δ that is promised.
        delta: Rational,
        /// The part of it for Σδ.
        delta_for_losses: Rational,
        /// Whole numbers from 2 to 1024, ascending.
        orders: Vec<u32>,
    },
}

impl Rule {
    /// Its name, as JSON and the command line have it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Pure { .. } => "pure",
            Self::Zcdp { .. } => "zcdp",
            Self::Gaussian { .. } => "gaussian",
            Self::Renyi { .. } => "renyi",
        }
    }

    /// The ε that is promised.
    pub fn epsilon(&self) -> &Rational {
        match self {
            Self::Pure { epsilon }
            | Self::Zcdp { epsilon, .. }
            | Self::Gaussian { epsilon, .. }
            | Self::Renyi { epsilon, .. } => epsilon,
        }
    }

    /// The δ that is promised.
    pub fn delta(&self) -> Rational {
        self.deltas().map_or_else(Rational::zero, |(delta, _)| delta.clone())
    }

    /// The part of δ for losses that have one.
    pub fn delta_for_losses(&self) -> Rational {
        self.deltas().map_or_else(Rational::zero, |(_, part)| part.clone())
    }

    fn deltas(&self) -> Option<(&Rational, &Rational)> {
        match self {
            Self::Pure { .. } => None,
            Self::Zcdp { delta, delta_for_losses, .. }
            | Self::Gaussian { delta, delta_for_losses, .. }
            | Self::Renyi { delta, delta_for_losses, .. } => Some((delta, delta_for_losses)),
        }
    }

    /// The same rule with other numbers: orders stay, and so does the share of δ for losses.
    pub(super) fn with_budget(
        &self,
        epsilon: Rational,
        delta: Option<Rational>,
    ) -> Result<Self, AccountingError> {
        if self.deltas().is_none() && delta.is_some() {
            let text = "a pure budget has no δ, but one was given";
            return Err(AccountingError::new("accounting.filter.budget", text));
        }
        let old = self.delta();
        let delta = delta.unwrap_or_else(|| old.clone());
        let part = |part: &Rational| &delta * &(part / &old);
        Ok(match self {
            Self::Pure { .. } => Self::Pure { epsilon },
            Self::Zcdp { delta_for_losses, .. } => {
                Self::Zcdp { epsilon, delta_for_losses: part(delta_for_losses), delta }
            }
            Self::Gaussian { delta_for_losses, .. } => {
                Self::Gaussian { epsilon, delta_for_losses: part(delta_for_losses), delta }
            }
            Self::Renyi { delta_for_losses, orders, .. } => {
                let orders = orders.clone();
                Self::Renyi { epsilon, delta_for_losses: part(delta_for_losses), delta, orders }
            }
        })
    }

    /// The part of δ for the conversion.
    pub(super) fn delta_for_capacity(&self) -> Rational {
        &self.delta() - &self.delta_for_losses()
    }

    /// The part of δ for the conversion at one order.
    pub(super) fn delta_for_each_order(&self) -> Rational {
        let orders = self.measures().len().max(1);
        &self.delta_for_capacity() / &Rational::from(orders as u64)
    }

    /// In what the rule counts.
    pub(super) fn measures(&self) -> Vec<Measure> {
        match self {
            Self::Pure { .. } => vec![Measure::Epsilon],
            Self::Zcdp { .. } => vec![Measure::Rho],
            Self::Gaussian { .. } => vec![Measure::MuSquared],
            Self::Renyi { orders, .. } => orders.iter().copied().map(Measure::Renyi).collect(),
        }
    }

    /// Whether the parameters are ones a budget can have.
    pub(super) fn check(&self) -> Result<(), AccountingError> {
        let epsilon = self.epsilon();
        require(epsilon.is_positive() && *epsilon <= Rational::from(1_000_000u32), || {
            format!("the ε of a budget must be above 0 and at most 1000000, but {epsilon} was given")
        })?;
        let Some((delta, part)) = self.deltas() else { return Ok(()) };
        require(delta.is_positive() && *delta < Rational::one(), || {
            format!(
                "the δ of a budget must be above 0 and below 1, but {delta} was given; without a δ use the rule \
                 `pure`"
            )
        })?;
        require(!part.is_negative() && part < delta, || {
            format!("the part of δ for losses must be at least 0 and below δ = {delta}, but {part} was given")
        })?;
        require(self.delta_for_each_order().to_f64_down() >= f64::MIN_POSITIVE, || {
            format!(
                "the δ of a budget must be at least 2.3e-308 for each order, without its part for losses, but δ = \
                 {delta} was given"
            )
        })?;
        let Self::Renyi { orders, .. } = self else { return Ok(()) };
        let ascending = !orders.is_empty() && orders.windows(2).all(|pair| pair[0] < pair[1]);
        let in_range = orders.iter().all(|order| (2..=LARGEST_ORDER).contains(order));
        require(ascending && in_range && orders.len() <= 16, || {
            format!(
                "the orders of a Rényi filter are up to 16 whole numbers from 2 to {LARGEST_ORDER}, ascending, but \
                 {orders:?} was given"
            )
        })
    }
}

fn require(condition: bool, sentence: impl FnOnce() -> String) -> Result<(), AccountingError> {
    if condition { Ok(()) } else { Err(AccountingError::new("accounting.filter.budget", sentence())) }
}
