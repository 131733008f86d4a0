//! [`Question`]: what is asked, in terms that do not depend on the data.

use demur_core::{Adjacency, PrivacyLoss};
use demur_ledger::Request;
use serde::{Deserialize, Serialize};

use crate::table::Heading;

/// One mechanism that a question uses, with why it costs what it costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// What it publishes, in words or SQL.
    pub what: String,
    /// Limits that are enforced on each unit's contribution, if any are stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<String>,
    /// How far the answer can move when one unit comes or goes.
    pub sensitivity: String,
    /// The law of the noise, as the loss of one use.
    pub mechanism: PrivacyLoss,
    /// How often it is used.
    pub count: u64,
}

/// What is asked, of which budget, and what it will cost: all of it known before a row is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Which budget pays.
    pub budget: String,
    /// Who asks.
    pub requester: String,
    /// The client's name for the request.
    pub id: Option<String>,
    /// A name for the state of the data.
    pub data_version: Option<String>,
    /// The question as a canonical text.
    pub text: String,
    /// Which datasets must look alike.
    pub adjacency: Adjacency,
    /// What is used to answer it.
    pub terms: Vec<Term>,
    /// The columns of the answer, if it is a table.
    pub columns: Vec<Heading>,
}

impl Question {
    /// What it costs: all terms together.
    pub fn loss(&self) -> PrivacyLoss {
        loss_of(&self.terms)
    }

    pub(crate) fn request(&self) -> Request {
        let mut request = Request::new(&self.budget, &self.requester, &self.text, self.loss());
        request.id.clone_from(&self.id);
        request.data_version.clone_from(&self.data_version);
        request
    }
}

/// The loss of all terms together.
pub(crate) fn loss_of(terms: &[Term]) -> PrivacyLoss {
    let losses = terms.iter().map(|term| term.mechanism.clone().repeat(term.count));
    losses.reduce(PrivacyLoss::compose).unwrap_or(PrivacyLoss::Composed { parts: Vec::new() })
}
