//! [`Published`]: noisy values, charged to a budget before they are shown, or drawn as they are printed.

use demur_core::Adjacency;
use demur_engine::{Answer, Engine, Private, Question, Term};
use demur_noise::Entropy;
use serde_json::{Value, json};

use crate::args::charging::Charging;
use crate::failure::Failure;
use crate::output::Facts;
use crate::place::{self, Place};

/// Values drawn between two writes.
const BATCH: u64 = 1 << 14;
/// How often one charge may publish: a ledger keeps it all.
const MOST_KEPT: u64 = 100_000;

/// Values on their way to the reader.
pub(super) struct Published<'a> {
    source: Source,
    /// How many values one use of the mechanism gives.
    values: u64,
    /// How often it is used.
    count: u64,
    draw: Draw<'a>,
}

/// Uses the mechanism a number of times.
type Draw<'a> = Box<dyn Fn(&mut Entropy, u64) -> Result<Vec<String>, Failure> + 'a>;

/// Where values come from.
enum Source {
    /// Nobody keeps count of what they cost.
    Uncharged(Entropy),
    /// Paid for and stored.
    Charged(Box<Answer>),
}

impl<'a> Published<'a> {
    /// Charges the budget that the flags name, for `private`; without one, `draw` will be used.
    pub(super) fn open<P: Private>(
        charging: &Charging,
        question: String,
        (term, values): (Term, u64),
        private: impl FnOnce() -> Result<P, Failure>,
        draw: impl Fn(&mut Entropy, u64) -> Result<Vec<String>, Failure> + 'a,
    ) -> Result<Self, Failure> {
        let count = term.count;
        let source = match &charging.budget {
            None => Source::Uncharged(Entropy::from_os()?),
            Some(budget) => Source::Charged(Box::new(charge(charging, budget, question, term, private)?)),
        };
        Ok(Self { source, values, count, draw: Box::new(draw) })
    }

    /// Shows each value with its place in one use; what is not charged is drawn a batch at a time.
    pub(super) fn each(
        &mut self,
        mut take: impl FnMut(usize, &str) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let values = self.values as usize;
        let mut show = |batch: &[String]| {
            batch.iter().enumerate().try_for_each(|(position, value)| take(position % values, value))
        };
        match &mut self.source {
            Source::Charged(answer) => show(&answer.certificate.released),
            Source::Uncharged(entropy) => {
                let (batch, mut left) = ((BATCH / self.values).max(1), self.count);
                while left > 0 {
                    let now = left.min(batch);
                    show(&(self.draw)(entropy, now)?)?;
                    left -= now;
                }
                Ok(())
            }
        }
    }

    /// All values at once.
    pub(super) fn gather(&mut self) -> Result<Vec<String>, Failure> {
        let mut all = Vec::new();
        self.each(|_, value| {
            all.push(value.to_owned());
            Ok(())
        })?;
        Ok(all)
    }

    /// What a table says about the charge.
    pub(super) fn describe(&self, facts: &mut Facts) {
        if let Source::Charged(answer) = &self.source {
            let certificate = &answer.certificate;
            let (entry, name) = (certificate.charge.sequence, &certificate.budget.name);
            let cost = if answer.replayed { "; released before, nothing was charged now" } else { "" };
            facts.add("charged", format!("entry {entry} of the ledger, budget `{name}`{cost}"));
        }
    }

    /// What JSON says about the charge.
    pub(super) fn json(&self) -> Option<Value> {
        let Source::Charged(answer) = &self.source else { return None };
        let certificate = &answer.certificate;
        Some(json!({
            "budget": certificate.budget.name,
            "entry": certificate.charge.sequence,
            "head": certificate.charge.hash,
            "replayed": answer.replayed,
        }))
    }
}

/// Charges, executes, releases, and writes the certificate if that is wanted.
fn charge<P: Private>(
    charging: &Charging,
    budget: &str,
    question: String,
    term: Term,
    private: impl FnOnce() -> Result<P, Failure>,
) -> Result<Answer, Failure> {
    if term.count > MOST_KEPT {
        let message = format!(
            "{} releases are too many for one charge (at most {MOST_KEPT}): the ledger keeps them all",
            term.count
        );
        return Err(Failure::new("cli.count", message));
    }
    let question = Question {
        budget: budget.to_owned(),
        requester: charging.requester.clone().unwrap_or_else(place::user),
        id: charging.request_id.clone(),
        data_version: charging.data_version.clone(),
        text: question,
        adjacency: Adjacency::AddRemove,
        terms: vec![term],
        columns: Vec::new(),
    };
    let place = Place::find(charging.ledger.as_deref())?;
    let answer = Engine::open(&place.location, place::options())?.ask(&question, private)?;
    if let Some(path) = &charging.certificate {
        place::write_certificate(path, &answer)?;
    }
    Ok(answer)
}
