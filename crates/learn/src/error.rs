//! [`LearnError`]: what was asked, what was found, what to do.
//!
//! Sentences speak of shapes, limits and parameters, never of rows.

use std::fmt;

/// A refusal of this room: one sentence for people, one stable code for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearnError {
    code: &'static str,
    text: String,
}

impl LearnError {
    pub(crate) fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// A broken promise of our own; it asks for a report.
    pub(crate) fn ours(text: &str) -> Self {
        Self::new("learn.broken", format!("{text}; this is a mistake in demur, please report it"))
    }

    /// The name of this refusal; it never changes, the sentence may.
    pub fn code(&self) -> &'static str {
        self.code
    }
}

impl fmt::Display for LearnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for LearnError {}

impl From<demur_core::Error> for LearnError {
    fn from(error: demur_core::Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<demur_noise::NoiseError> for LearnError {
    fn from(error: demur_noise::NoiseError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<demur_noise::EntropyError> for LearnError {
    fn from(error: demur_noise::EntropyError) -> Self {
        Self::new("learn.entropy", error.to_string())
    }
}

impl From<demur_accounting::AccountingError> for LearnError {
    fn from(error: demur_accounting::AccountingError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// Refuses with the sentence unless the condition holds.
pub(crate) fn require(
    condition: bool,
    code: &'static str,
    sentence: impl FnOnce() -> String,
) -> Result<(), LearnError> {
    if condition { Ok(()) } else { Err(LearnError::new(code, sentence())) }
}
