//! [`Adjacency`]: which datasets must look alike.

use serde::{Deserialize, Serialize};

/// Which pairs of datasets are neighbours, and so must be hard to tell apart.
///
/// A guarantee means nothing without it: replacing one record is removing one and
/// adding another, so what holds with ε for [`AddRemove`](Self::AddRemove) holds only with 2ε for
/// [`Replace`](Self::Replace).
///
/// ```
/// use demur_core::Adjacency;
///
/// assert_eq!(serde_json::to_string(&Adjacency::AddRemove).unwrap(), r#""add-remove""#);
/// assert_eq!(Adjacency::Replace.to_string(), "replace");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Adjacency {
    /// One dataset has one record more than the other: ‖x − y‖₁ = 1.
    ///
    /// Hides whether somebody takes part, so the size of the dataset is secret.
    AddRemove,
    /// One record differs, and the number of records is the same: ‖x − y‖₁ = 2.
    ///
    /// Hides what somebody's data is; that they take part, and n, are public.
    Replace,
}

impl std::fmt::Display for Adjacency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::AddRemove => "add-remove",
            Self::Replace => "replace",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_json_are_the_same_word() {
        for adjacency in [Adjacency::AddRemove, Adjacency::Replace] {
            let json = serde_json::to_string(&adjacency).unwrap();
            assert_eq!(json, format!("\"{adjacency}\""));
            assert_eq!(serde_json::from_str::<Adjacency>(&json).unwrap(), adjacency);
        }
    }
}
