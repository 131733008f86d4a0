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

use std::path::{Path, PathBuf};
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
    /// Where the key is, and what was begun.
    folder: PathBuf,
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
        let path = location.key();
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        Ok(Self { ledger, key: Key::at(&path)?, software, folder, introduced: OnceLock::new() })
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

    /// Where work that was paid for is kept until it is done.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
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
        self.answer(question, self.ledger.charge(question.request())?, execute)
    }

    /// Charges the question under the first of its ids that is free, or goes on under one that was charged and never answered, if `may_go_on` says so of that id.
    ///
    /// Going on is sound where nothing of the earlier work was seen: nothing is shown before it is stored, so whatever it was going to say was said to nobody.
    pub(crate) fn ask_or_go_on<P: Private, E>(
        &self,
        question: &mut Question,
        ids: impl Iterator<Item = String>,
        may_go_on: impl Fn(&str) -> bool,
        execute: impl FnOnce(&str) -> Result<P, E>,
    ) -> Result<Answer, EngineError> {
        for id in ids {
            question.id = Some(id.clone());
            let charged = match self.ledger.charge(question.request()) {
                Err(error) if error.code() == "ledger.request.unanswered" => match may_go_on(&id) {
                    true => self.ledger.resume(question.request())?,
                    false => continue,
                },
                charged => charged?,
            };
            return self.answer(question, charged, || execute(&id));
        }
        let text = "this was charged and left unfinished too many times; nothing was charged now";
        Err(EngineError::refused("engine.unfinished", text))
    }

    fn answer<P: Private, E>(
        &self,
        question: &Question,
        charged: Charged,
        execute: impl FnOnce() -> Result<P, E>,
    ) -> Result<Answer, EngineError> {
        match charged {
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
