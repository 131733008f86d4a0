//! [`Private`]: a result nobody may see before it was paid for and made noisy.

use demur_core::PrivacyLoss;
use demur_noise::{Entropy, Exponential, Mechanism, RandomizedResponse};

use crate::EngineError;

/// A raw result together with the mechanism that makes it public.
///
/// Cost and noise belong to one value, so they cannot disagree; the engine checks that the cost
/// is what was charged. Types of other rooms cannot be private: this one alone decides what becomes public.
pub trait Private: sealed::Sealed {
    /// What publishing it costs.
    fn loss(&self) -> PrivacyLoss;

    /// Adds the noise; the texts that result are public.
    fn publish(self, entropy: &mut Entropy) -> Result<Vec<String>, EngineError>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Numbers<'_> {}
    impl Sealed for super::Choices<'_> {}
    impl Sealed for super::Responses<'_> {}
    impl<F> Sealed for crate::learn::Lesson<F> {}
    impl Sealed for crate::synth::Distances<'_> {}
    impl Sealed for crate::synth::Modelled<'_, '_> {}
    impl Sealed for crate::tallied::Tallied<'_> {}
    impl Sealed for crate::batch::Together<'_> {}
}

/// Numbers in lattice steps, to be published a number of times.
pub struct Numbers<'a> {
    /// The noise.
    pub mechanism: &'a dyn Mechanism,
    /// The true numbers.
    pub steps: Vec<i64>,
    /// How often.
    pub count: u64,
}

impl Private for Numbers<'_> {
    fn loss(&self) -> PrivacyLoss {
        self.mechanism.loss().repeat(self.count)
    }

    fn publish(self, entropy: &mut Entropy) -> Result<Vec<String>, EngineError> {
        let release = self.mechanism.release_repeatedly(&self.steps, self.count, entropy)?;
        Ok(release.into_value().iter().map(ToString::to_string).collect())
    }
}

/// A choice among named candidates by their scores, to be made a number of times.
pub struct Choices<'a> {
    /// The rule.
    pub mechanism: &'a Exponential,
    /// The candidates, which are public.
    pub names: &'a [String],
    /// Their true scores.
    pub scores: Vec<f64>,
    /// How often.
    pub count: u64,
}

impl Private for Choices<'_> {
    fn loss(&self) -> PrivacyLoss {
        self.mechanism.loss().repeat(self.count)
    }

    fn publish(self, entropy: &mut Entropy) -> Result<Vec<String>, EngineError> {
        let release = self.mechanism.choose_many(&self.scores, self.count as usize, entropy)?;
        let name = |index: usize| self.names.get(index).cloned().unwrap_or_else(|| index.to_string());
        Ok(release.into_value().into_iter().map(name).collect())
    }
}

/// An answer of one person, to be given a number of times.
pub struct Responses<'a> {
    /// The rule.
    pub mechanism: &'a RandomizedResponse,
    /// What the answers are called, which is public.
    pub name: &'a dyn Fn(u64) -> String,
    /// The true answer.
    pub truth: u64,
    /// How often.
    pub count: u64,
}

impl Private for Responses<'_> {
    fn loss(&self) -> PrivacyLoss {
        self.mechanism.loss().repeat(self.count)
    }

    fn publish(self, entropy: &mut Entropy) -> Result<Vec<String>, EngineError> {
        let one = |_| Ok((self.name)(self.mechanism.respond(self.truth, entropy)?.into_value()));
        (0..self.count).map(one).collect()
    }
}
