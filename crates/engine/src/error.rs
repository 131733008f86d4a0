//! [`EngineError`]: why nothing was released.

use std::fmt;

use demur_ledger::LedgerError;
use demur_plan::Place;

/// A refusal or a failure: one sentence for people, one stable code for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineError {
    code: &'static str,
    text: String,
    hint: Option<String>,
    refusal: bool,
    uncharged: bool,
    place: Option<Place>,
    question: Option<u8>,
}

impl EngineError {
    pub(crate) fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
            hint: None,
            refusal: false,
            uncharged: false,
            place: None,
            question: None,
        }
    }

    /// Something that the policy does not allow.
    pub(crate) fn refused(code: &'static str, text: impl Into<String>) -> Self {
        Self { refusal: true, ..Self::new(code, text) }
    }

    /// What to do instead.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// For what goes wrong before a charge.
    pub(crate) fn before_the_charge(self) -> Self {
        Self { uncharged: true, ..self }
    }

    /// What is said of any failure after the charge: always the same, because why it failed may depend on the data.
    pub(crate) fn after_the_charge() -> Self {
        let text = "the question was charged, but answering it failed; the charge stands, because a refund would \
                    depend on the data";
        Self::new("engine.failed", text)
    }

    /// The name of this error; it never changes, the sentence may.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// What to do instead, if we know.
    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Where in the question it is, if that is known.
    pub fn place(&self) -> Option<Place> {
        self.place
    }

    /// Says which of several questions it is about, counted from 1.
    pub(crate) fn about(self, question: usize) -> Self {
        Self { question: u8::try_from(question).ok(), ..self }
    }

    /// Which of several questions it is about, counted from 1.
    pub fn question(&self) -> Option<usize> {
        self.question.map(usize::from)
    }

    /// Whether the budget or its rules said no; then nothing was charged.
    pub fn is_refusal(&self) -> bool {
        self.refusal
    }

    /// Whether it is certain that nothing was charged.
    pub fn is_uncharged(&self) -> bool {
        self.uncharged || self.refusal
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.question {
            Some(question) => write!(f, "question {question}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

impl std::error::Error for EngineError {}

impl From<LedgerError> for EngineError {
    fn from(error: LedgerError) -> Self {
        Self { refusal: error.is_refusal(), ..Self::new(error.code(), error.to_string()) }
    }
}

impl From<demur_accounting::AccountingError> for EngineError {
    fn from(error: demur_accounting::AccountingError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<demur_plan::PlanError> for EngineError {
    fn from(error: demur_plan::PlanError) -> Self {
        let (hint, place) = (error.advice().map(str::to_owned), error.place());
        Self { refusal: error.is_refusal(), hint, place, ..Self::new(error.code(), error.to_string()) }
    }
}

impl From<demur_noise::NoiseError> for EngineError {
    fn from(error: demur_noise::NoiseError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<demur_core::Error> for EngineError {
    fn from(error: demur_core::Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<demur_learn::LearnError> for EngineError {
    fn from(error: demur_learn::LearnError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<demur_synth::SynthError> for EngineError {
    fn from(error: demur_synth::SynthError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}
