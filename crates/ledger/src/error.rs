//! [`LedgerError`]: why nothing was released.

use std::fmt;

/// A refusal or a failure of this room: one sentence for people, one stable code for programs.
///
/// A refusal ([`is_refusal`](Self::is_refusal)) is the budget's own word: nothing was written. After a failure that is
/// not merely [busy](Self::is_busy) or a misuse the ledger takes no more charges until it is opened again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerError {
    code: &'static str,
    text: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The budget says no.
    Refusal,
    /// The caller asked for something that makes no sense.
    Misuse,
    /// Somebody else holds the ledger, or it cannot be reached.
    Busy,
    /// A store or a chain that cannot be trusted any more.
    Broken,
}

impl LedgerError {
    pub(crate) fn refusal(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), kind: Kind::Refusal }
    }

    pub(crate) fn misuse(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), kind: Kind::Misuse }
    }

    /// Another program holds the ledger; nothing was written.
    pub fn busy(text: impl Into<String>) -> Self {
        Self { code: "ledger.busy", text: text.into(), kind: Kind::Busy }
    }

    /// The store cannot be reached now; nothing was written.
    #[cfg(feature = "postgres")]
    pub(crate) fn unreachable(text: impl Into<String>) -> Self {
        Self { code: "ledger.unreachable", text: text.into(), kind: Kind::Busy }
    }

    /// The store failed, or holds what cannot be true.
    pub fn broken(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), kind: Kind::Broken }
    }

    pub(crate) fn ours(text: impl fmt::Display) -> Self {
        Self::broken("ledger.bug", format!("{text}; this is a fault of demur, please report it"))
    }

    /// The name of this error; it never changes, the sentence may.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// Whether the budget or its rules said no.
    pub fn is_refusal(&self) -> bool {
        self.kind == Kind::Refusal
    }

    /// Whether trying again later may help.
    pub fn is_busy(&self) -> bool {
        self.kind == Kind::Busy
    }

    /// Whether nothing more may be charged before the ledger has been opened and verified again.
    pub fn is_broken(&self) -> bool {
        self.kind == Kind::Broken
    }
}

impl fmt::Display for LedgerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for LedgerError {}
