//! [`Allowance`]: what a run may still spend of what was charged before it began.
//!
//! Everything is charged before a row is read, so a run must never spend more, whatever its own random choices lead it to.
//! There are two ways to make sure, and the [`Curator`](crate::curator::Curator) asks before each look at the rows:
//!
//! * *a list*: every use was named beforehand with its parameters; each may happen once. What is looked at may depend on earlier
//!   answers, the parameters may not, so the composition theorems for fixed parameters apply and the list is accounted for exactly.
//! * *a filter*: parameters may depend on earlier answers, and the filter's rule bounds all of them together.

use demur_accounting::{Filter, State};
use demur_core::{Part, PrivacyLoss};

use crate::SynthError;

/// See the module text.
#[derive(Clone, Debug)]
pub(crate) enum Allowance {
    List(Vec<Part>),
    Filter { filter: Filter, state: State },
}

impl Allowance {
    /// The parts of the loss, each as often as it says.
    pub(crate) fn list(loss: &PrivacyLoss) -> Self {
        Self::List(match loss {
            PrivacyLoss::Composed { parts } => parts.clone(),
            single => vec![Part { loss: single.clone(), count: 1 }],
        })
    }

    pub(crate) fn filter(filter: Filter) -> Self {
        let state = filter.start();
        Self::Filter { filter, state }
    }

    /// Takes the loss out of what is left, or says that nothing may be looked at.
    pub(crate) fn pay(&mut self, loss: &PrivacyLoss) -> Result<(), SynthError> {
        match self {
            Self::List(parts) => {
                let part = parts.iter_mut().find(|part| part.count > 0 && covers(&part.loss, loss));
                let part =
                    part.ok_or_else(|| SynthError::ours("a run asked for more than its plan names"))?;
                part.count -= 1;
            }
            Self::Filter { filter, state } => {
                let next = filter.admit(state, loss);
                *state = next.map_err(|_| SynthError::ours("a run asked for more than its plan allows"))?;
            }
        }
        Ok(())
    }
}

/// Whether the named use stands for this one: the same, or the same noise on fewer coordinates.
fn covers(named: &PrivacyLoss, asked: &PrivacyLoss) -> bool {
    use PrivacyLoss::DiscreteGaussian;
    match (named, asked) {
        (
            DiscreteGaussian { variance, l2_squared, dimensions },
            DiscreteGaussian { variance: its_variance, l2_squared: its_l2, dimensions: its_dimensions },
        ) => variance == its_variance && l2_squared == its_l2 && its_dimensions <= dimensions,
        _ => named == asked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(text: &str) -> PrivacyLoss {
        text.parse().unwrap()
    }

    #[test]
    fn a_list_pays_for_what_it_names_and_no_more() {
        let named =
            "discrete_gaussian(variance=60, sensitivity_squared=3, dimensions=9)*2 + exponential(0.5)";
        let mut allowance = Allowance::list(&loss(named));
        let fewer = loss("discrete_gaussian(variance=60, sensitivity_squared=3, dimensions=4)");
        assert!(
            allowance
                .pay(&loss("discrete_gaussian(variance=59, sensitivity_squared=3, dimensions=4)"))
                .is_err()
        );
        assert!(
            allowance
                .pay(&loss("discrete_gaussian(variance=60, sensitivity_squared=3, dimensions=10)"))
                .is_err()
        );
        assert!(allowance.pay(&loss("exponential(0.6)")).is_err());
        assert!(
            allowance.pay(&fewer).is_ok()
                && allowance.pay(&fewer).is_ok()
                && allowance.clone().pay(&fewer).is_err()
        );
        assert!(allowance.pay(&loss("exponential(0.5)")).is_ok());
        assert!(allowance.pay(&loss("exponential(0.5)")).is_err());
    }

    #[test]
    fn a_filter_pays_until_its_capacity() {
        let mut allowance = Allowance::filter(Filter::pure("1".parse().unwrap()).unwrap());
        assert!(allowance.pay(&loss("pure(0.7)")).is_ok());
        assert!(allowance.pay(&loss("pure(0.31)")).is_err());
        assert!(allowance.pay(&loss("pure(0.3)")).is_ok());
    }
}
