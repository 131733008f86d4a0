//! [`Lesson`]: rows on their way to something that may be shown, by a plan that was paid for.

use std::ops::ControlFlow;

use demur_core::PrivacyLoss;
use demur_ledger::Hash;
use demur_noise::Entropy;
use demur_plan::catalog::Table;

use crate::backend::Backend;
use crate::private::Private;
use crate::{Answer, Certificate, Engine, EngineError, Project, Question, Term};

/// Hears how far a run is: what is done, how many steps are done, and of how many.
pub type Pace<'a> = dyn FnMut(&str, u64, Option<u64>) + 'a;

/// What was released, now or earlier.
pub struct Learned<T> {
    /// The thing itself.
    pub value: T,
    /// What is promised about it.
    pub certificate: Certificate,
    /// Whether it was released before, and cost nothing now.
    pub replayed: bool,
}

impl<T> Learned<T> {
    /// Reads the released texts of an answer.
    pub(crate) fn of(
        answer: Answer,
        read: impl FnOnce(&[String]) -> Result<T, EngineError>,
    ) -> Result<Self, EngineError> {
        let value = read(&answer.certificate.released)?;
        Ok(Self { value, certificate: answer.certificate, replayed: answer.replayed })
    }
}

/// See the module text.
pub(crate) struct Lesson<F> {
    loss: PrivacyLoss,
    run: F,
}

impl<F: FnOnce(&mut Entropy) -> Result<Vec<String>, EngineError>> Private for Lesson<F> {
    fn loss(&self) -> PrivacyLoss {
        self.loss.clone()
    }

    fn publish(self, entropy: &mut Entropy) -> Result<Vec<String>, EngineError> {
        (self.run)(entropy)
    }
}

/// What is learned from a table, and what it costs: all of it public.
pub(crate) struct Asked<'a> {
    pub(crate) project: &'a Project,
    pub(crate) table: &'a Table,
    pub(crate) requester: &'a str,
    /// What comes out, in words.
    pub(crate) what: &'static str,
    /// Everything that was asked for, so that equal texts mean equal wishes.
    pub(crate) wish: String,
    pub(crate) bounds: String,
    pub(crate) sensitivity: &'static str,
    pub(crate) loss: PrivacyLoss,
}

impl Engine {
    /// Charges, reads the rows, and releases what is made of them.
    pub(crate) fn learn<F>(
        &self,
        asked: Asked<'_>,
        backend: &dyn Backend,
        read: impl FnOnce() -> Result<F, EngineError>,
    ) -> Result<Answer, EngineError>
    where
        F: FnOnce(&mut Entropy) -> Result<Vec<String>, EngineError>,
    {
        let Asked { project, table, requester, what, wish, bounds, sensitivity, loss } = asked;
        backend.check(table)?;
        let question = Question {
            budget: project.catalog.budget.name.clone(),
            requester: requester.to_owned(),
            id: None,
            data_version: Some(self.fingerprint(&backend.version(table)?)),
            text: format!("{what} of `{}`, as described by {}", table.name, Hash::of(wish.as_bytes())),
            adjacency: table.adjacency,
            terms: vec![Term {
                what: format!("{what} of the table `{}`", table.name),
                bounds: Some(bounds),
                sensitivity: sensitivity.to_owned(),
                mechanism: loss.clone(),
                count: 1,
            }],
            columns: Vec::new(),
        };
        self.ask(&question, || Ok::<_, EngineError>(Lesson { loss: loss.clone(), run: read()? }))
    }
}

/// Passes progress on.
pub(crate) fn told<'a>(pace: &'a mut Pace<'_>) -> impl FnMut(&demur_learn::Progress) -> ControlFlow<()> + 'a {
    |progress| {
        pace(progress.stage, progress.step as u64, progress.steps.map(|steps| steps as u64));
        ControlFlow::Continue(())
    }
}
