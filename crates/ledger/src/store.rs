//! [`Store`]: where entries and answers are kept.

mod lock;
#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;

use std::ops::Range;

use crate::entry::{Position, Sealed};
use crate::{Hash, LedgerError};

pub use lock::OnWait;
#[cfg(feature = "postgres")]
pub use postgres::{Postgres, PostgresUrl};
pub use sqlite::Sqlite;
pub(crate) use sqlite::beside;

/// A place that keeps entries: an append-only list of them, and the answers that were paid for.
///
/// A writer calls [`begin`](Self::begin), then reads and appends, then [`commit`](Self::commit) or
/// [`abandon`](Self::abandon). From `begin` on nobody else writes. When `commit` returns, all that was appended
/// will survive a crash of the program and of the machine; if it does not return in peace, all of it or nothing
/// is there. A store decides nothing: what may be written is the [`Book`](crate::Book)'s word.
pub trait Store: Send {
    /// Waits until no one else writes, and says what the last entry is.
    fn begin(&mut self) -> Result<Option<Position>, LedgerError>;

    /// Shows every entry from `sequence` on, in order.
    fn read(&mut self, sequence: u64, visit: &mut VisitEntry<'_>) -> Result<(), LedgerError>;

    /// Looks up what is already known about each request, in the same order.
    fn find(&mut self, wanted: &[Wanted<'_>]) -> Result<Vec<Found>, LedgerError>;

    /// Shows every stored answer that was paid for by one of these entries, in order.
    fn answers(&mut self, charges: Range<u64>, visit: &mut VisitAnswer<'_>) -> Result<(), LedgerError>;

    /// Appends entries.
    fn append(&mut self, rows: &[Row]) -> Result<(), LedgerError>;

    /// Makes what was appended durable, and lets others write.
    fn commit(&mut self) -> Result<(), LedgerError>;

    /// Forgets what was appended, and lets others write.
    fn abandon(&mut self) -> Result<(), LedgerError>;
}

/// Told each entry; its error ends the reading.
pub type VisitEntry<'a> = dyn FnMut(Sealed) -> Result<(), LedgerError> + 'a;

/// Told each stored answer and its charge; its error ends the reading.
pub type VisitAnswer<'a> = dyn FnMut(u64, &[u8]) -> Result<(), LedgerError> + 'a;

/// What is asked about a request.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// Who asks.
    pub requester: &'a str,
    /// The charge that carries their name for the request.
    pub charge: Option<u64>,
    /// The hash of the request, if an answer to an equal one would do.
    pub request: Option<Hash>,
    /// Whether the answer must have been given to the same requester.
    pub only_own: bool,
}

/// What is known about a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The charge that was asked for.
    pub charge: Option<Sealed>,
    /// The answer to that charge; without one, the first answer to an equal request.
    pub answer: Option<StoredAnswer>,
}

/// An answer and the entry that vouches for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAnswer {
    /// The entry that releases it.
    pub release: Sealed,
    /// The answer itself.
    pub bytes: Vec<u8>,
}

/// An entry with what it is found by.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The entry.
    pub sealed: Sealed,
    /// For a release: the answer.
    pub answer: Option<AnswerRow>,
}

/// An answer with what it is found by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerRow {
    /// The entry that paid for it.
    pub charge: u64,
    /// Who asked.
    pub requester: String,
    /// The hash of the request, if equal ones may have the answer too.
    pub request: Option<Hash>,
    /// The answer itself.
    pub bytes: Vec<u8>,
}
