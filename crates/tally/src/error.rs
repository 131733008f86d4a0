//! [`TallyError`]: why there is no tally.

use std::fmt;

use arrow::datatypes::DataType;

/// A refusal before any row was read, or a failure while rows were read: one sentence for people, one stable code for programs.
///
/// The sentence speaks of the spec and of column types, never of values. No failure depends on what a value is; that there are too
/// many of them ([`tally.too_large`](Self::code)) can be seen in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TallyError {
    code: &'static str,
    text: String,
}

impl TallyError {
    /// The name of this error; it never changes, the sentence may.
    pub fn code(&self) -> &'static str {
        self.code
    }

    pub(crate) fn spec(text: impl Into<String>) -> Self {
        Self { code: "tally.spec", text: text.into() }
    }

    pub(crate) fn column(index: usize, found: &DataType, wanted: &str) -> Self {
        Self {
            code: "tally.type",
            text: format!("column {index} has type {found}, which cannot serve as {wanted}"),
        }
    }

    pub(crate) fn batch(text: impl Into<String>) -> Self {
        Self { code: "tally.batch", text: text.into() }
    }

    pub(crate) fn too_large(what: &str) -> Self {
        Self { code: "tally.too_large", text: format!("there are too many {what} for this machine") }
    }

    pub(crate) fn disk(error: &std::io::Error) -> Self {
        Self { code: "tally.disk", text: format!("rows could not be kept on disk: {error}") }
    }

    pub(crate) fn unfinished(text: &str) -> Self {
        Self { code: "tally.unfinished", text: text.into() }
    }

    pub(crate) fn ours(text: &str) -> Self {
        Self { code: "tally.bug", text: format!("{text}; this is a fault of demur, please report it") }
    }
}

impl fmt::Display for TallyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for TallyError {}
