//! [`AccountingError`]: why there is no answer.

use std::fmt;

/// A refusal of this room: one sentence for people, one stable code for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountingError {
    code: &'static str,
    text: String,
}

impl AccountingError {
    pub(crate) fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// The name of this refusal; it never changes, the sentence may.
    pub fn code(&self) -> &'static str {
        self.code
    }
}

impl fmt::Display for AccountingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for AccountingError {}

impl From<demur_core::Error> for AccountingError {
    fn from(error: demur_core::Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}
