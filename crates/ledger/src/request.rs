//! [`Request`]: who asks what of which budget, and what it costs.

use demur_core::PrivacyLoss;
use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::charge_text::ChargeText;
use crate::{Hash, LedgerError};

/// Letters in the name of a budget, a requester, a request or a version of the data.
const LONGEST_NAME: usize = 200;
/// Bytes in a question.
const LONGEST_QUESTION: usize = 1 << 16;

/// What is to be charged. Everything in it is public: it will stand in the ledger.
///
/// ```
/// use demur_ledger::Request;
///
/// let request = Request::new("visits", "analyst", "count of all rows", "discrete_laplace(scale=10)".parse()?)
///     .id("monday-1")
///     .data_version("2026-11");
/// assert_eq!(request.hash(), request.clone().id("tuesday").hash());
/// assert_ne!(request.hash(), request.clone().data_version("2026-12").hash());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Which budget pays.
    pub budget: String,
    /// Who asks.
    pub requester: String,
    /// The client's own name for the request: asked twice under one name, it is charged once.
    pub id: Option<String>,
    /// What is asked, as a canonical text. It must not depend on the data.
    pub question: String,
    /// A name for the state of the data: the same question about the same state is answered from the ledger.
    pub data_version: Option<String>,
    /// What it costs.
    pub loss: PrivacyLoss,
}

impl Request {
    /// A request without a name, about data without versions.
    pub fn new(budget: &str, requester: &str, question: &str, loss: PrivacyLoss) -> Self {
        let (budget, requester, question) = (budget.to_owned(), requester.to_owned(), question.to_owned());
        Self { budget, requester, id: None, question, data_version: None, loss }
    }

    /// With the client's own name for it.
    pub fn id(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }

    /// About this state of the data.
    pub fn data_version(mut self, version: &str) -> Self {
        self.data_version = Some(version.to_owned());
        self
    }

    /// SHA-256 of the JSON list `["demur request 1", budget, question, data version, loss]`, without spaces.
    pub fn hash(&self) -> Hash {
        self.hash_with(&self.loss)
    }

    /// The same, with the loss or its text.
    fn hash_with(&self, loss: &impl Serialize) -> Hash {
        let parts = ("demur request 1", &self.budget, &self.question, &self.data_version, loss);
        // Texts and fractions always have a JSON form.
        Hash::of(&serde_json::to_vec(&parts).unwrap_or_default())
    }

    fn check(&self) -> Result<(), LedgerError> {
        check_name("budget name", &self.budget)?;
        check_name("requester", &self.requester)?;
        self.id.iter().try_for_each(|id| check_name("request id", id))?;
        self.data_version.iter().try_for_each(|version| check_name("data version", version))?;
        check_text("question", &self.question)?;
        self.loss.check().map_err(|error| LedgerError::misuse(error.code(), error.to_string()))
    }
}

/// A request that was checked, its hash, and the beginning of its charge: what can be done before it is the request's turn.
pub(crate) struct Asked {
    pub(crate) request: Request,
    pub(crate) hash: Hash,
    pub(crate) text: ChargeText,
}

impl Asked {
    pub(crate) fn new(request: Request) -> Result<Self, LedgerError> {
        request.check()?;
        // A loss is made of long fractions, so that its text is made once.
        let loss = to_raw_value(&request.loss)
            .map_err(|error| LedgerError::ours(format!("a loss could not be written: {error}")))?;
        let hash = request.hash_with(&loss);
        let text = ChargeText::begin(&request, &loss, hash)?;
        Ok(Self { request, hash, text })
    }
}

/// A name is short, not empty, and has no control characters.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), LedgerError> {
    let found = if name.is_empty() {
        "an empty one"
    } else if name.len() > LONGEST_NAME {
        "a longer one"
    } else if name.chars().any(char::is_control) {
        "one with control characters"
    } else {
        return Ok(());
    };
    let text =
        format!("a {what} has 1 to {LONGEST_NAME} bytes and no control characters, but {found} was given");
    Err(LedgerError::misuse("ledger.name", text))
}

/// A question or a reason may be long, but not without end.
pub(crate) fn check_text(what: &str, text: &str) -> Result<(), LedgerError> {
    if text.len() <= LONGEST_QUESTION {
        return Ok(());
    }
    let text = format!("a {what} may have {LONGEST_QUESTION} bytes, but one of {} was given", text.len());
    Err(LedgerError::misuse("ledger.text", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request::new("visits", "analyst", "how many?", "pure(0.5)".parse().unwrap())
    }

    /// Replays are found by this hash in ledgers of any age: it must not change. From `sha256sum`.
    #[test]
    fn the_hash_of_a_request_is_pinned() {
        let text = "c3680e1d8cfac4f8c1bc810238c3fb48313706a38099f6400c3cb8e7659ff2a4";
        assert_eq!(request().hash().to_string(), text);
    }

    #[test]
    fn the_hash_covers_all_but_who_asks_and_under_which_name() {
        let hash = request().hash();
        assert_eq!(Request { requester: "other".into(), ..request() }.hash(), hash);
        assert_eq!(request().id("1").hash(), hash);
        for other in [
            Request { budget: "other".into(), ..request() },
            Request { question: "how many".into(), ..request() },
            Request { loss: "pure(0.25)".parse().unwrap(), ..request() },
            request().data_version("1"),
            request().data_version("null"),
        ] {
            assert_ne!(other.hash(), hash);
        }
    }

    #[test]
    fn names_have_limits() {
        let long = "x".repeat(201);
        for name in ["", "a\nb", long.as_str()] {
            let error = Request { budget: name.into(), ..request() }.check().unwrap_err();
            assert_eq!(error.code(), "ledger.name");
            assert_eq!(request().id(name).check().unwrap_err().code(), "ledger.name");
        }
        let question = "x".repeat((1 << 16) + 1);
        assert_eq!(Request { question, ..request() }.check().unwrap_err().code(), "ledger.text");
        assert!(request().id(&"é".repeat(100)).check().is_ok());
    }
}
