//! [`Error`]: what was asked, what we found, what is allowed.
//!
//! Every sentence speaks of parameters, schemas and limits. Values that may come
//! from rows (a record, a number on its way to the lattice) are never printed.

use std::fmt;

/// A refusal of this room: one sentence for people, one stable code for programs.
///
/// ```
/// use demur_core::Epsilon;
///
/// let error = Epsilon::new(f64::NAN).unwrap_err();
/// assert_eq!(error.code(), "core.epsilon.not-finite");
/// assert_eq!(
///     error.to_string(),
///     "epsilon must be a finite number above 0 and at most 1000000, but NaN was given",
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: &'static str,
    text: String,
}

impl Error {
    pub(crate) fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// The name of this refusal; it never changes, the sentence may.
    pub fn code(&self) -> &'static str {
        self.code
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

/// Refuses with the sentence unless the condition holds.
pub(crate) fn require(
    condition: bool,
    code: &'static str,
    sentence: impl FnOnce() -> String,
) -> Result<(), Error> {
    if condition { Ok(()) } else { Err(Error::new(code, sentence())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_its_sentence_and_its_code() {
        let error = require(false, "core.test", || "no".into()).unwrap_err();
        assert_eq!((error.code(), error.to_string()), ("core.test", "no".to_string()));
        assert_eq!(require(true, "core.test", || "no".into()), Ok(()));
    }

    #[test]
    fn errors_travel_between_threads() {
        fn travels<T: std::error::Error + Send + Sync + 'static>() {}
        travels::<Error>();
    }
}
