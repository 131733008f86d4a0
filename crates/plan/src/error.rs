//! [`PlanError`]: why a question was not understood, or is not allowed.

use std::fmt;

use crate::place::Place;

/// A sentence for people, a stable code for programs, and often what to do instead.
///
/// It speaks of the query and the catalog alone; the room that makes it has never seen a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    code: &'static str,
    text: String,
    hint: Option<String>,
    refusal: bool,
    place: Option<Place>,
}

impl PlanError {
    /// Something that was asked or written wrongly.
    pub(crate) fn mistake(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), hint: None, refusal: false, place: None }
    }

    /// Something that is understood and not allowed.
    pub(crate) fn refused(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), hint: None, refusal: true, place: None }
    }

    /// What to do instead.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Where in the query it is, unless that is known already.
    pub(crate) fn at(mut self, place: Option<Place>) -> Self {
        self.place = self.place.or(place);
        self
    }

    /// Where in the query it is, if that is known.
    pub fn place(&self) -> Option<Place> {
        self.place
    }

    /// The name of this error; it never changes, the sentence may.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// Whether the policy said no, rather than that the question was malformed.
    pub fn is_refusal(&self) -> bool {
        self.refusal
    }

    /// What to do instead, if we know.
    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for PlanError {}
