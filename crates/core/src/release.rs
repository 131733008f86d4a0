//! [`Release`]: what is published, with what it cost.
//!
//! **Post-processing.** If A is (ε, δ)-differentially private and f is any function
//! that does not look at the data again, then f ∘ A is (ε, δ)-differentially
//! private.
//!
//! **Why.** Pr[f(A(x)) ∈ E] = Pr[A(x) ∈ f⁻¹(E)]: every event about the new output is an
//! event about the old one, for which the guarantee already holds.
//!
//! **References.** \[Dwork2014\].

use serde::{Deserialize, Serialize};

use crate::PrivacyLoss;

/// A published value and the privacy loss that was paid for it.
///
/// ```
/// use demur_core::{PrivacyLoss, Release};
/// use demur_exact::Rational;
///
/// let loss = PrivacyLoss::Pure { epsilon: Rational::new(1, 2) };
/// let release = Release::new(-3i64, loss.clone());
/// let rounded = release.map(|count| count.max(0));
/// assert_eq!((rounded.value(), rounded.loss()), (&0, &loss));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[must_use = "a release that nobody reads was paid for in vain"]
pub struct Release<T> {
    value: T,
    loss: PrivacyLoss,
}

impl<T> Release<T> {
    /// A value together with the loss of the mechanism that made it.
    pub fn new(value: T, loss: PrivacyLoss) -> Self {
        Self { value, loss }
    }

    /// What is published.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// What it cost.
    pub fn loss(&self) -> &PrivacyLoss {
        &self.loss
    }

    /// What is published, without its price.
    pub fn into_value(self) -> T {
        self.value
    }

    /// Post-processing: a function of what is public anyway costs nothing more.
    ///
    /// The function must not look at the protected data again.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Release<U> {
        Release::new(f(self.value), self.loss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use demur_exact::Rational;

    #[test]
    fn mapping_changes_the_value_and_keeps_the_loss() {
        let loss = PrivacyLoss::Pure { epsilon: Rational::one() };
        let text = Release::new(41, loss.clone()).map(|n| n + 1).map(|n| n.to_string());
        assert_eq!(text.value(), "42");
        assert_eq!(text.loss(), &loss);
        assert_eq!(text.into_value(), "42");
    }
}
