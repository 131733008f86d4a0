//! Checking a [`Certificate`] without believing it.

use std::fmt;

use demur_accounting::Account;
use demur_exact::Rational;
use demur_ledger::entry::{Charge, Event, Sealed};
use demur_ledger::{Hash, Ledger, LedgerError, Location};

use super::{Certificate, Promise};
use crate::EngineError;
use crate::key::verifies;
use crate::question::loss_of;

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether it holds; nothing when it could not be checked.
    pub holds: Option<bool>,
    /// What, in a sentence.
    pub text: String,
}

/// What is left of a certificate after it was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The certificate.
    pub certificate: Certificate,
    /// Everything that was checked, in order.
    pub findings: Vec<Finding>,
}

impl Verdict {
    /// Whether nothing was found wrong.
    pub fn is_good(&self) -> bool {
        self.findings.iter().all(|finding| finding.holds != Some(false))
    }
}

/// Checks everything that can be checked: without a ledger the signature and the arithmetic, with it the chain.
pub fn verify(bytes: &[u8], ledger: Option<&Location>, key: Option<&Hash>) -> Result<Verdict, EngineError> {
    let certificate = Certificate::read(bytes)?;
    let mut findings = Findings(Vec::new());
    signature(&certificate, key, &mut findings)?;
    arithmetic(&certificate, &mut findings);
    match ledger {
        Some(location) => chain(&certificate, location, &mut findings)?,
        None => {
            findings.open("the ledger was not asked: name it with --ledger to check the charge and the key")
        }
    }
    Ok(Verdict { certificate, findings: findings.0 })
}

struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, holds: bool, good: impl fmt::Display, bad: impl fmt::Display) {
        let text = if holds { good.to_string() } else { bad.to_string() };
        self.0.push(Finding { holds: Some(holds), text });
    }

    fn open(&mut self, text: &str) {
        self.0.push(Finding { holds: None, text: text.to_owned() });
    }
}

fn signature(
    certificate: &Certificate,
    key: Option<&Hash>,
    findings: &mut Findings,
) -> Result<(), EngineError> {
    let unsigned = Certificate { signature: None, ..certificate.clone() }.text()?;
    let Some(signature) = &certificate.signature else {
        findings.add(false, "", "it is not signed");
        return Ok(());
    };
    let valid =
        signature.algorithm == "ed25519" && verifies(&signature.key, unsigned.as_bytes(), &signature.value);
    findings.add(
        valid,
        format_args!("the signature is that of the key {}", short(&signature.key)),
        "the signature does not fit: something in the certificate was changed",
    );
    if let Some(key) = key {
        findings.add(
            *key == signature.key,
            "the key is the one you named",
            format_args!("it was signed by the key {}, not by the one you named", signature.key),
        );
    }
    Ok(())
}

/// The numbers follow from the mechanisms.
fn arithmetic(certificate: &Certificate, findings: &mut Findings) {
    let Certificate { terms, loss, guarantee, budget, .. } = certificate;
    findings.add(
        loss_of(terms) == *loss,
        format_args!("its mechanisms cost {loss} together"),
        format_args!("its mechanisms cost {} together, but {loss} is stated", loss_of(terms)),
    );
    let Promise { epsilon, delta } = guarantee;
    let stated = format!("ε = {}, δ = {}", shown(epsilon), shown(delta));
    match least_epsilon(certificate) {
        Ok(least) => findings.add(
            *epsilon >= least,
            format_args!("{stated} follows from that (recomputed: ε ≥ {})", shown(&least)),
            format_args!("{stated} is stated, but at this δ it is at least ε = {}", shown(&least)),
        ),
        Err(error) => findings.add(false, "", format_args!("{stated} cannot be recomputed: {error}")),
    }
    findings.add(
        *delta <= budget.rule.delta(),
        format_args!("its δ is within that of the budget `{}`", budget.name),
        format_args!("its δ is above that of the budget `{}`", budget.name),
    );
}

/// The ε below which the promise is false: a proven lower bound.
fn least_epsilon(certificate: &Certificate) -> Result<Rational, EngineError> {
    if certificate.guarantee.delta.is_zero() {
        let none = || EngineError::new("engine.guarantee", "these mechanisms have no finite ε at δ = 0");
        return certificate.loss.pure_epsilon().ok_or_else(none);
    }
    let answer = Account::of(&certificate.loss)?.epsilon(&certificate.guarantee.delta)?;
    Rational::try_from(answer.bounds.lower)
        .map_err(|_| EngineError::new("engine.guarantee", "these mechanisms have no finite ε at this δ"))
}

/// What the ledger says.
fn chain(certificate: &Certificate, location: &Location, findings: &mut Findings) -> Result<(), EngineError> {
    let book = match Ledger::look(location) {
        Ok(book) => book,
        Err(error) => {
            findings.add(false, "", format_args!("the ledger cannot vouch for it: {error}"));
            return Ok(());
        }
    };
    findings.add(
        book.ledger() == certificate.ledger,
        format_args!("the ledger is {}, and its chain is whole", short(&certificate.ledger)),
        format_args!("it is about the ledger {}, not about this one", short(&certificate.ledger)),
    );
    let mut seen = Seen { certificate, head: None, charge: None, rule: None, key: false, release: false };
    Ledger::entries(location, 0, &mut |sealed| seen.look(&sealed))?;
    let sequence = certificate.charge.sequence;
    findings.add(
        seen.head == Some(certificate.charge.hash),
        format_args!("entry {sequence} has the head it names"),
        format_args!(
            "entry {sequence} is not in this ledger: it is an older copy, or the certificate is false"
        ),
    );
    findings.add(
        seen.charge.as_ref().is_some_and(|charge| same(charge, certificate)),
        "that entry charged this question at this price",
        "that entry is not the charge for this question at this price",
    );
    findings.add(
        seen.rule.as_ref() == Some(&certificate.budget.rule),
        "the budget was what it says when it was charged",
        "the budget was another one when it was charged",
    );
    findings.add(
        seen.key,
        "its key stood in the ledger when it was released",
        "its key did not stand in the ledger when it was released",
    );
    findings.add(
        seen.release,
        "the ledger released exactly this certificate for it",
        "the ledger has not released this certificate",
    );
    Ok(())
}

/// What is found on the way through the chain.
struct Seen<'a> {
    certificate: &'a Certificate,
    head: Option<Hash>,
    charge: Option<Charge>,
    rule: Option<demur_accounting::Rule>,
    key: bool,
    release: bool,
}

impl Seen<'_> {
    fn look(&mut self, sealed: &Sealed) -> Result<(), LedgerError> {
        let (certificate, sequence) = (self.certificate, sealed.position.sequence);
        let before = sequence < certificate.charge.sequence;
        let whole = |name: &demur_ledger::BudgetName| {
            before && name.requester.is_none() && name.budget == certificate.budget.name
        };
        if sequence == certificate.charge.sequence {
            self.head = Some(sealed.position.hash);
        }
        match sealed.read()?.event {
            Event::Create(create) if whole(&create.name) => self.rule = Some(create.filter.rule().clone()),
            Event::Raise(raise) if whole(&raise.name) => self.rule = Some(raise.filter.rule().clone()),
            Event::Key(key) => {
                self.key |= !self.release
                    && certificate.signature.as_ref().is_some_and(|signature| signature.key == key.public);
            }
            Event::Charge(charge) if sequence == certificate.charge.sequence => self.charge = Some(charge),
            Event::Release(release) if release.charge == certificate.charge.sequence => {
                let text = certificate.text().unwrap_or_default();
                self.release |= release.answer == Hash::of(text.as_bytes());
            }
            _ => {}
        }
        Ok(())
    }
}

fn same(charge: &Charge, certificate: &Certificate) -> bool {
    charge.budget == certificate.budget.name
        && charge.requester == certificate.requester
        && charge.question == certificate.question
        && charge.data_version == certificate.data_version
        && charge.loss == certificate.loss
}

fn short(hash: &Hash) -> String {
    hash.to_string()[..16].to_owned()
}

fn shown(value: &Rational) -> String {
    value.to_decimal(12).unwrap_or_else(|| value.to_f64().to_string())
}
