//! [`Entry`]: one line of the ledger, as data that outlives us.
//!
//! An entry is a JSON text, the *body*, and a [`Hash`](struct@Hash) over the hash before it, its sequence number and that text. The body
//! is kept byte for byte as it was first written; nothing is ever written anew. `docs/ledger-format.md` is the
//! specification. Events are added, never removed, renamed or given a new meaning; one that is not known was
//! written by a later version and is refused.

use demur_accounting::{Filter, State};
use demur_core::PrivacyLoss;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::request::check_name;
use crate::{Hash, LedgerError};

/// The version of the format that this software writes.
pub const FORMAT: u32 = 1;

/// Bytes that nearly every entry fits in.
pub(crate) const USUAL: usize = 768;

/// What was written, when and by which software.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// What happened.
    pub event: Event,
    /// Which software wrote it.
    pub software: String,
    /// When, by the clock of the writer, but never before the entry before it. Nothing is decided by it.
    pub time: Timestamp,
}

/// What can happen to a ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[expect(clippy::large_enum_variant, reason = "nearly every event is a charge")]
pub enum Event {
    /// The first entry.
    Open(Open),
    /// A budget is created.
    Create(Create),
    /// A budget is raised.
    Raise(Raise),
    /// A budget is closed for good.
    Close(Close),
    /// A loss is charged.
    Charge(Charge),
    /// What was paid for has been released.
    Release(Release),
    /// A key that signs certificates from here on.
    Key(Key),
    /// The ledger is taken over after its anchor was lost.
    Adopt(Adopt),
    /// Where all budgets stand; it changes nothing.
    Checkpoint(Checkpoint),
}

/// A ledger begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// The version of the format.
    pub format: u32,
    /// A random name that no other ledger has.
    pub ledger: Hash,
}

/// Which budget: that of everybody together, or the part of one requester.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetName {
    /// The name its owner gave it.
    pub budget: String,
    /// Whose part of it; nobody's for the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requester: Option<String>,
}

impl BudgetName {
    /// The budget of everybody together.
    pub fn whole(budget: &str) -> Self {
        Self { budget: budget.to_owned(), requester: None }
    }

    /// The part of one requester.
    pub fn part(budget: &str, requester: &str) -> Self {
        Self { budget: budget.to_owned(), requester: Some(requester.to_owned()) }
    }

    /// Whether a budget may have this name.
    pub fn check(&self) -> Result<(), LedgerError> {
        check_name("budget name", &self.budget)?;
        self.requester.iter().try_for_each(|requester| check_name("requester", requester))
    }
}

impl std::fmt::Display for BudgetName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.requester {
            None => write!(f, "`{}`", self.budget),
            Some(requester) => write!(f, "`{}` for {requester}", self.budget),
        }
    }
}

/// A budget is created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// Its name.
    pub name: BudgetName,
    /// The data it protects.
    pub dataset: String,
    /// Whose data is hidden: a column, or `row`.
    pub unit: String,
    /// How much, and how it is counted.
    pub filter: Filter,
    /// Why.
    pub reason: String,
}

/// A budget is raised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raise {
    /// Which.
    pub name: BudgetName,
    /// The larger budget.
    pub filter: Filter,
    /// What was spent so far, in its units.
    pub after: State,
    /// Why.
    pub reason: String,
}

/// A budget is closed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Close {
    /// Which.
    pub name: BudgetName,
    /// Why.
    pub reason: String,
}

/// A loss is charged to a budget, and to the part of its requester if there is one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Charge {
    /// Which budget pays.
    pub budget: String,
    /// Who asked.
    pub requester: String,
    /// The name the client gave to the request, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What was asked, as its canonical text.
    pub question: String,
    /// Of which state of the data, if that has a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_version: Option<String>,
    /// What it costs.
    pub loss: PrivacyLoss,
    /// The hash of budget, question, data version and loss.
    pub request: Hash,
    /// What has been spent of the budget, with this.
    pub after: State,
    /// What has been spent of the requester's part, with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_after: Option<State>,
}

/// An answer was stored and may be shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// The entry that paid for it.
    pub charge: u64,
    /// Which budget paid.
    pub budget: String,
    /// Who asked.
    pub requester: String,
    /// The hash of the answer.
    pub answer: Hash,
}

/// A public key, whose owner signs certificates from here on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// The 32 bytes of an ed25519 key.
    pub public: Hash,
    /// Why.
    pub reason: String,
}

/// The owner accepts the ledger as it is, though its anchor says otherwise or is missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adopt {
    /// The entry the anchor remembers, if it is not in this chain: then all budgets are closed here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Position>,
    /// Why.
    pub reason: String,
}

/// Where everything stands, so that a reader need not count from the beginning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// Every budget ever created.
    pub budgets: Vec<Budget>,
    /// Keys in the order they were introduced.
    pub keys: Vec<Hash>,
    /// The name of the ledger.
    pub ledger: Hash,
}

/// Where one budget stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Its name.
    pub name: BudgetName,
    /// The data it protects.
    pub dataset: String,
    /// Whose data is hidden.
    pub unit: String,
    /// How much, and how it is counted.
    pub filter: Filter,
    /// What has been spent.
    pub spent: State,
    /// How often it was charged.
    pub charges: u64,
    /// How many answers were released for that.
    pub releases: u64,
    /// Whether it is closed.
    pub closed: bool,
}

/// An entry's place in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Its number; the first is 0.
    pub sequence: u64,
    /// Its hash.
    pub hash: Hash,
}

/// An entry as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Its number and hash.
    pub position: Position,
    /// Its JSON text.
    pub body: Vec<u8>,
}

impl Entry {
    /// The entry as it is stored after `previous`, or as the first one.
    pub fn seal(&self, previous: Option<Position>) -> Result<Sealed, LedgerError> {
        let mut body = Vec::with_capacity(USUAL);
        serde_json::to_writer(&mut body, self)
            .map_err(|error| LedgerError::ours(format!("an entry could not be written: {error}")))?;
        Ok(Sealed::after(previous, body))
    }
}

impl Sealed {
    /// This text as what stands after `previous`, or as the first entry.
    pub(crate) fn after(previous: Option<Position>, body: Vec<u8>) -> Self {
        let (sequence, before) = follow(previous);
        let hash = Hash::of_entry(&before, sequence, &body);
        Self { position: Position { sequence, hash }, body }
    }

    /// Whether it is what stands after `previous`, unchanged.
    pub fn follows(&self, previous: Option<Position>) -> bool {
        let (sequence, before) = follow(previous);
        self.position.sequence == sequence
            && Hash::of_entry(&before, sequence, &self.body) == self.position.hash
    }

    /// Whether it is a checkpoint; known from its first letters.
    pub fn is_checkpoint(&self) -> bool {
        self.body.starts_with(br#"{"event":{"checkpoint":"#)
    }

    /// What it says.
    pub fn read(&self) -> Result<Entry, LedgerError> {
        serde_json::from_slice(&self.body).map_err(|error| {
            let sequence = self.position.sequence;
            let text =
                format!("entry {sequence} cannot be read: {error}; a later version may have written it");
            LedgerError::broken("ledger.entry", text)
        })
    }
}

fn follow(previous: Option<Position>) -> (u64, Hash) {
    previous.map_or((0, Hash::START), |previous| (previous.sequence + 1, previous.hash))
}
