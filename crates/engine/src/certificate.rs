//! [`Certificate`]: what is promised about one release, for anyone to check.
//!
//! **Definition.** A JSON object with the question, its mechanisms, what they cost, the promise that follows, the place in
//! the ledger, the released values, and an ed25519 signature over the canonical text of all the rest.
//!
//! **What it depends on.** The question, the policy and the ledger; of the data, the released values alone.
//!
//! **How it is checked.** [`verify()`] recomputes the promise from the mechanisms, without believing the numbers that stand in it.

mod verify;

use demur_accounting::{Account, Rule};
use demur_core::{Adjacency, PrivacyLoss};
use demur_exact::Rational;
use demur_ledger::{Hash, Position, Receipt};
use serde::{Deserialize, Serialize};

use crate::EngineError;
use crate::canonical;
use crate::key::Key;
use crate::question::{Question, Term};
use crate::table::Heading;

pub use verify::{Finding, Verdict, verify};

/// The form of certificates that this version writes.
const FORMAT: &str = "demur certificate 1";

/// A checkable statement about a release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// Which form of certificate this is.
    pub format: String,
    /// What was asked.
    pub question: String,
    /// Who asked.
    pub requester: String,
    /// The data that is protected.
    pub dataset: String,
    /// The state of the data, if it has a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_version: Option<String>,
    /// Whose data is hidden.
    pub unit: String,
    /// Which datasets must look alike.
    pub adjacency: Adjacency,
    /// The mechanisms that were used.
    pub terms: Vec<Term>,
    /// What they cost together.
    pub loss: PrivacyLoss,
    /// What follows for this release alone.
    pub guarantee: Promise,
    /// What follows for all releases of the budget together.
    pub budget: BudgetPromise,
    /// The ledger's name.
    pub ledger: Hash,
    /// The entry that was charged, and the head of the chain at that moment.
    pub charge: Position,
    /// How the released values are to be read, if they are a table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Heading>,
    /// What was released.
    pub released: Vec<String>,
    /// Which software made it.
    pub software: String,
    /// Who vouches for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
}

/// An (ε, δ) that holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promise {
    /// Rounded up.
    pub epsilon: Rational,
    /// Exactly.
    pub delta: Rational,
}

/// What all releases of a budget together are held to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetPromise {
    /// The budget's name.
    pub name: String,
    /// The ε and δ, and how they are counted.
    pub rule: Rule,
}

/// A key and what it signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// Always `ed25519`.
    pub algorithm: String,
    /// The public key.
    pub key: Hash,
    /// The signature, in 128 hexadecimal digits.
    pub value: String,
}

impl Certificate {
    /// The certificate of what was paid for with the receipt.
    pub(crate) fn sign(
        question: &Question,
        receipt: &Receipt,
        released: Vec<String>,
        software: &str,
        key: &Key,
    ) -> Result<Self, EngineError> {
        let budget = receipt.budget();
        let rule = budget.filter.rule().clone();
        let mut certificate = Self {
            format: FORMAT.to_owned(),
            question: question.text.clone(),
            requester: question.requester.clone(),
            dataset: budget.dataset.clone(),
            data_version: question.data_version.clone(),
            unit: budget.unit.clone(),
            adjacency: question.adjacency,
            terms: question.terms.clone(),
            loss: receipt.loss().clone(),
            guarantee: promise(receipt.loss(), &rule.delta())?,
            budget: BudgetPromise { name: budget.name.budget.clone(), rule },
            ledger: receipt.ledger(),
            charge: receipt.position(),
            columns: question.columns.clone(),
            released,
            software: software.to_owned(),
            signature: None,
        };
        let value = key.sign(certificate.text()?.as_bytes());
        certificate.signature = Some(Signature { algorithm: "ed25519".to_owned(), key: key.public(), value });
        Ok(certificate)
    }

    /// The canonical text, which is what is stored, hashed and, without the signature, signed.
    pub fn text(&self) -> Result<String, EngineError> {
        let value = serde_json::to_value(self);
        let value = value.map_err(|error| EngineError::new("engine.certificate", error.to_string()))?;
        canonical::text(&value)
    }

    /// Reads a certificate, however it is spaced; nothing in it is believed yet.
    pub fn read(bytes: &[u8]) -> Result<Self, EngineError> {
        let certificate: Self = serde_json::from_slice(bytes).map_err(|error| {
            EngineError::new("engine.certificate", format!("this is not a certificate of demur: {error}"))
        })?;
        if certificate.format != FORMAT {
            let text = format!(
                "this certificate has the form `{}`, and this version reads `{FORMAT}`",
                certificate.format
            );
            return Err(EngineError::new("engine.certificate", text));
        }
        Ok(certificate)
    }
}

/// (ε, 0) where there is one; else the least ε at the budget's δ, rounded up.
fn promise(loss: &PrivacyLoss, delta: &Rational) -> Result<Promise, EngineError> {
    if let Some(epsilon) = loss.pure_epsilon() {
        return Ok(Promise { epsilon, delta: Rational::zero() });
    }
    let answer = Account::of(loss)?.epsilon(delta)?;
    let epsilon = Rational::try_from(answer.bounds.upper)
        .map_err(|_| EngineError::new("engine.guarantee", "this loss has no finite ε at the budget's δ"))?;
    Ok(Promise { epsilon, delta: delta.clone() })
}
