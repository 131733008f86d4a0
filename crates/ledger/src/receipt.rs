//! [`Receipt`]: proof that a charge is on disk.

use std::sync::Arc;

use demur_core::PrivacyLoss;

use crate::Hash;
use crate::entry::{Budget, Charge, Position};

/// Proof that a charge is on disk. Only [`Ledger::charge`](crate::Ledger::charge) makes one, and [`Ledger::resume`](crate::Ledger::resume) while nothing was
/// released for it.
///
/// It cannot be copied: one charge pays for one release.
///
/// ```compile_fail,E0382
/// # use demur_ledger::{Ledger, Receipt};
/// fn twice(ledger: &Ledger, receipt: Receipt) {
///     let _ = ledger.record(receipt, b"one answer");
///     let _ = ledger.record(receipt, b"another answer");
/// }
/// ```
///
/// ```compile_fail,E0451
/// # use demur_ledger::Receipt;
/// let forged = Receipt { ledger: todo!(), position: todo!(), charge: todo!(), budget: todo!() };
/// ```
#[derive(Debug, PartialEq)]
#[must_use = "a charge without a release wastes budget"]
pub struct Receipt {
    ledger: Hash,
    position: Position,
    charge: Box<Charge>,
    budget: Arc<Budget>,
}

impl Receipt {
    pub(crate) fn new(ledger: Hash, position: Position, charge: Charge, budget: Arc<Budget>) -> Self {
        Self { ledger, position, charge: Box::new(charge), budget }
    }

    pub(crate) fn into_charge(self) -> Charge {
        *self.charge
    }

    /// The name of the ledger that was charged.
    pub fn ledger(&self) -> Hash {
        self.ledger
    }

    /// The entry of the charge: its number, and the head of the chain when it was written.
    pub fn position(&self) -> Position {
        self.position
    }

    /// What was paid.
    pub fn loss(&self) -> &PrivacyLoss {
        &self.charge.loss
    }

    /// The budget that paid. Others may share the commit: what is spent with this charge, [`charge`](Self::charge) says.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The charge as it stands in the ledger.
    pub fn charge(&self) -> &Charge {
        &self.charge
    }
}

/// What a request leads to when it is not refused.
#[derive(Debug, PartialEq)]
#[must_use = "a charge without a release wastes budget"]
pub enum Charged {
    /// It was charged just now.
    Now(Receipt),
    /// It was charged and answered before; this is the answer, at no further cost.
    Before(Replay),
}

/// An answer that was released before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The entry that paid for it.
    pub charge: u64,
    /// The entry that released it.
    pub release: Position,
    /// The answer, byte for byte.
    pub answer: Vec<u8>,
}
