//! [`NoiseError`]: what can be wrong with the parameters of a mechanism.

use std::fmt;

use demur_exact::Rational;

/// A parameter that was refused, with what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoiseError {
    code: &'static str,
    message: String,
}

impl NoiseError {
    pub(crate) fn new(code: &'static str, message: String) -> Self {
        Self { code, message }
    }

    /// A stable name for this kind of mistake.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// Refuses a value outside of [lowest, highest].
    pub(crate) fn check_range(
        what: &str,
        value: &Rational,
        lowest: &Rational,
        highest: &Rational,
    ) -> Result<(), Self> {
        if value < lowest || value > highest {
            let message = format!(
                "{what} must lie between {} and {}, but it is {}",
                Show(lowest),
                Show(highest),
                Show(value)
            );
            return Err(Self::new("noise.range", message));
        }
        Ok(())
    }
}

/// A number as people like to read it: exact when short, about right otherwise.
struct Show<'a>(&'a Rational);

impl fmt::Display for Show<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.to_decimal(6) {
            Some(text) if text.len() <= 12 => f.write_str(&text),
            _ => write!(f, "{:.4e}", self.0.to_f64()),
        }
    }
}

impl fmt::Display for NoiseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for NoiseError {}

impl From<demur_core::Error> for NoiseError {
    fn from(error: demur_core::Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<demur_exact::ParseRationalError> for NoiseError {
    fn from(error: demur_exact::ParseRationalError) -> Self {
        Self::new("noise.number", error.to_string())
    }
}
