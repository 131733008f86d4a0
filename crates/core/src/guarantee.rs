//! [`Guarantee`]: the pair (ε, δ) that is promised.
//!
//! **Definition.** A mechanism A is (ε, δ)-differentially private when for all
//! neighbouring datasets x, x′ and every set E of outputs
//!
//! ```text
//! Pr[A(x) ∈ E] ≤ e^ε · Pr[A(x′) ∈ E] + δ
//! ```
//!
//! With δ = 0 the guarantee is pure, and it is the same to ask that no single output
//! gets more than e^ε times as likely. For δ > 0 it is not the same.
//!
//! **References.** \[Dwork2014\].

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Delta, Epsilon};

/// The (ε, δ) of differential privacy; see the module text.
///
/// ```
/// use demur_core::{Delta, Epsilon, Guarantee};
///
/// let pure = Guarantee::pure(Epsilon::new(1.0)?);
/// assert_eq!(pure.to_string(), "ε = 1");
/// let approximate = Guarantee::new(pure.epsilon, Delta::new(1e-6)?);
/// assert_eq!(approximate.to_string(), "(ε = 1, δ = 0.000001)");
/// # Ok::<(), demur_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guarantee {
    /// How much more likely one person can make any event.
    pub epsilon: Epsilon,
    /// By how much an event may exceed that.
    pub delta: Delta,
}

impl Guarantee {
    /// (ε, δ)-differential privacy.
    pub fn new(epsilon: Epsilon, delta: Delta) -> Self {
        Self { epsilon, delta }
    }

    /// ε-differential privacy: δ is 0.
    pub fn pure(epsilon: Epsilon) -> Self {
        Self::new(epsilon, Delta::ZERO)
    }

    /// Whether δ is 0.
    pub fn is_pure(&self) -> bool {
        self.delta == Delta::ZERO
    }
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_pure() {
            true => write!(f, "ε = {}", self.epsilon),
            false => write!(f, "(ε = {}, δ = {})", self.epsilon, self.delta),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_delta_zero_is_pure() {
        let epsilon = Epsilon::new(0.1).unwrap();
        assert!(Guarantee::pure(epsilon).is_pure());
        assert!(!Guarantee::new(epsilon, Delta::new(1e-300).unwrap()).is_pure());
    }

    #[test]
    fn text_keeps_small_numbers_readable() {
        let guarantee = Guarantee::new(Epsilon::ZERO, Delta::new(1e-9).unwrap());
        assert_eq!(guarantee.to_string(), "(ε = 0, δ = 1e-9)");
    }

    #[test]
    fn json_is_pinned_and_checked() {
        let guarantee = Guarantee::pure(Epsilon::new(0.5).unwrap());
        let json = r#"{"epsilon":0.5,"delta":0.0}"#;
        assert_eq!(serde_json::to_string(&guarantee).unwrap(), json);
        assert_eq!(serde_json::from_str::<Guarantee>(json).unwrap(), guarantee);
        assert!(serde_json::from_str::<Guarantee>(r#"{"epsilon":0.5,"delta":1.5}"#).is_err());
        assert!(serde_json::from_str::<Guarantee>(r#"{"epsilon":0.5}"#).is_err());
    }
}
