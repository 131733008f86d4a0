//! [`Engine`]: the one way from a question to a release.
//!
//! ```text
//! question ─► charge ─► execute ─► noise ─► certificate ─► stored ─► shown
//! ```
//!
//! **Guarantee.** Nothing is computed before the charge is on disk, nothing is shown before the answer is. Raw results become public in
//! [`Engine::release`] alone, which consumes the ledger's receipt and checks that what it publishes costs what was charged.
//!
//! **After the charge** every failure is one constant sentence, and the charge stands: a refund, or a reason, would depend on
//! the data.

use std::sync::OnceLock;

use demur_ledger::{Charged, Hash, Ledger, Location, Options, Receipt};
use demur_noise::Entropy;

use crate::EngineError;
use crate::certificate::Certificate;
use crate::key::Key;
use crate::private::Private;
use crate::question::Question;

/// A ledger and the key that signs what is released from it.
pub struct Engine {
    ledger: Ledger,
    key: Key,
    software: String,
    /// Set once the ledger is known to know the key.
    introduced: OnceLock<()>,
}

/// What was released, now or earlier.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// What is promised, with the released values.
    pub certificate: Certificate,
    /// Whether it was released before, and cost nothing now.
    pub replayed: bool,
}

impl Engine {
    /// The engine over the ledger at this place.
    pub fn open(location: &Location, options: Options) -> Result<Self, EngineError> {
        let software = options.software.clone();
        Self::of(Ledger::open(location, options)?, location, software)
    }

    /// Over an open ledger, with the key beside it.
    pub(crate) fn of(ledger: Ledger, location: &Location, software: String) -> Result<Self, EngineError> {
        let key = Key::at(&location.key())?;
        Ok(Self { ledger, key, software, introduced: OnceLock::new() })
    }

    /// Introduces a new signing key, and gives its public half.
    pub fn rotate(location: &Location, reason: &str, options: Options) -> Result<Hash, EngineError> {
        let ledger = Ledger::open(location, options)?;
        let public = Key::rotate(&location.key())?.public();
        ledger.introduce_key(public, reason)?;
        Ok(public)
    }

    /// A name for a text that tells nothing about it: equal texts, equal names.
    pub(crate) fn fingerprint(&self, text: &str) -> String {
        self.key.sign(format!("state of the data\n{text}").as_bytes()).chars().take(32).collect()
    }

    /// The ledger itself.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Charges the question, executes it, and releases the answer with its certificate.
    ///
    /// Asked before under the same id, or about the same state of the data, the stored answer is given again.
    pub fn ask<P: Private, E>(
        &self,
        question: &Question,
        execute: impl FnOnce() -> Result<P, E>,
    ) -> Result<Answer, EngineError> {
        match self.ledger.charge(question.request())? {
            Charged::Before(replay) => {
                let certificate = Certificate::read(&replay.answer)?;
                Ok(Answer { certificate, replayed: true })
            }
            Charged::Now(receipt) => {
                let private = execute().map_err(|_| EngineError::after_the_charge())?;
                let certificate = self.release(private, question, receipt)?;
                Ok(Answer { certificate, replayed: false })
            }
        }
    }

    /// Makes a raw result public: the only function that does.
    ///
    /// The answer is stored with its charge before it is returned.
    fn release<P: Private>(
        &self,
        private: P,
        question: &Question,
        receipt: Receipt,
    ) -> Result<Certificate, EngineError> {
        if private.loss() != *receipt.loss() {
            return Err(EngineError::after_the_charge());
        }
        self.introduce_key()?;
        let published =
            Entropy::from_os().map_err(|_| EngineError::after_the_charge()).and_then(|mut entropy| {
                private.publish(&mut entropy).map_err(|_| EngineError::after_the_charge())
            })?;
        let certificate = Certificate::sign(question, &receipt, published, &self.software, &self.key)?;
        self.ledger.record(receipt, certificate.text()?.as_bytes())?;
        Ok(certificate)
    }

    /// A certificate is worth something when the ledger knows the key that signed it, before it is released.
    fn introduce_key(&self) -> Result<(), EngineError> {
        if self.introduced.get().is_none() {
            if !self.ledger.book()?.keys().contains(&self.key.public()) {
                self.ledger.introduce_key(self.key.public(), "a new key")?;
            }
            let _ = self.introduced.set(());
        }
        Ok(())
    }
}
