//! [`Batch`]: questions that are declared together and paid for by one charge.
//!
//! **Problem.** Questions asked one after the other may depend on earlier answers, and their budget adds them up by a filter. Questions that are all
//! known beforehand are one release: what they cost together follows from their mechanisms exactly.
//!
//! **Shares.** A question that names its own ε has it, and one that names its own error has the least ε that keeps it. The others have one ε each: the largest with
//! which all together keep the guarantee, by the exact accountant. That is never less than an equal part of what the named ones leave, because parts that add
//! up are always enough; with many questions it is several times as much. δ is shared equally. Noise of one kind for
//! all is tried beside the kind that is best for each alone, since many small losses of Gaussian noise add up more slowly.
//!
//! **Guarantee.** One charge with the loss of all mechanisms; nothing is executed before it, and nothing is shown before everything is released.

use demur_accounting::Account;
use demur_core::{Delta, Epsilon, Guarantee, PrivacyLoss};
use demur_exact::Rational;
use demur_noise::Entropy;
use demur_plan::catalog::NoisePreference;
use serde::{Deserialize, Serialize};

use crate::EngineError;
use crate::backend::Backend;
use crate::engine::{Answer, Engine};
use crate::private::Private;
use crate::project::Project;
use crate::query::Ready;
use crate::question::{Question, Term};
use crate::quote::{self, Ask, Quote, Wanted};
use crate::table::{Heading, Table};
use crate::tallied::Tallied;

/// The most questions of a batch.
const MOST: usize = 100;
/// The interval in which the shared ε lies is halved so often, in its logarithm.
const HALVINGS: usize = 10;

/// Questions with their prices.
pub struct Batch {
    /// Each with what it got.
    pub quotes: Vec<Quote>,
    /// What all of them cost together at most.
    pub guarantee: Guarantee,
}

/// A released table as it stands in a certificate.
#[derive(Serialize, Deserialize)]
struct Released {
    columns: Vec<Heading>,
    values: Vec<String>,
}

impl Batch {
    /// Plans and prices questions; `ask` says what they cost together, and its own SQL is not looked at.
    pub fn make(project: &Project, questions: &[&str], ask: &Ask) -> Result<Self, EngineError> {
        if questions.is_empty() || questions.len() > MOST {
            return Err(wrong(format!(
                "a batch has 1 to {MOST} questions, but there are {}",
                questions.len()
            )));
        }
        let epsilon = ask.epsilon.as_deref();
        let epsilon = epsilon.ok_or_else(|| wrong("a batch needs --epsilon: what all of it may cost"))?;
        let delta = ask.delta.as_deref().map(quote::delta).transpose()?.unwrap_or(project.delta());
        let guarantee = Guarantee::new(quote::epsilon(epsilon)?, delta);
        let read = |(index, sql): (usize, &&str)| {
            let own = Ask { sql: (*sql).to_owned(), epsilon: None, error: None, delta: None, ..ask.clone() };
            Wanted::read(project, &own).map_err(|error| error.about(index + 1))
        };
        let wanted = questions.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
        let quotes = Shares { wanted, guarantee }.best()?;
        let batch = Self { quotes, guarantee };
        batch.check(project)?;
        Ok(batch)
    }

    /// What is charged for all of it.
    pub fn loss(&self) -> PrivacyLoss {
        together(&self.quotes)
    }

    fn check(&self, project: &Project) -> Result<(), EngineError> {
        for (index, quote) in self.quotes.iter().enumerate() {
            quote.is_within(project).map_err(|error| error.about(index + 1))?;
            if quote.bounded.explain {
                return Err(wrong("a batch answers questions, and this asks for a plan").about(index + 1));
            }
        }
        let mut adjacencies = self.quotes.iter().map(|quote| quote.bounded.adjacency());
        let first = adjacencies.next();
        if adjacencies.any(|other| Some(other) != first) {
            return Err(wrong("the questions of a batch must be about tables with one adjacency"));
        }
        Ok(())
    }

    fn question(&self, project: &Project, ask: &Ask, version: &str) -> Result<Question, EngineError> {
        let mut all: Option<Question> = None;
        for (index, quote) in self.quotes.iter().enumerate() {
            let mut one = quote.question(project, ask, version.to_owned());
            one.text = format!("{}: {}", index + 1, one.text);
            let named = |term: Term| Term { what: format!("{}: {}", index + 1, term.what), ..term };
            one.terms = one.terms.into_iter().map(named).collect();
            match &mut all {
                None => all = Some(Question { columns: Vec::new(), ..one }),
                Some(all) => {
                    all.text = format!("{}\n{}", all.text, one.text);
                    all.terms.append(&mut one.terms);
                }
            }
        }
        all.ok_or_else(|| wrong("a batch is empty"))
    }
}

/// Questions that share a guarantee.
struct Shares {
    wanted: Vec<Wanted>,
    guarantee: Guarantee,
}

impl Shares {
    /// The quotes with the least noise of those tried.
    fn best(&self) -> Result<Vec<Quote>, EngineError> {
        let own = self.with(None)?;
        if self.guarantee.is_pure() || self.wanted.len() == 1 {
            return Ok(own);
        }
        // What one kind of noise cannot do is done by the other.
        let gaussian = self.with(Some(NoisePreference::Gaussian));
        let noise = |quotes: &[Quote]| quotes.iter().map(Quote::noise_level).sum::<f64>();
        Ok(gaussian.ok().filter(|quotes| noise(quotes) < noise(&own)).unwrap_or(own))
    }

    /// The quotes at the largest ε for all that name none.
    fn with(&self, noise: Option<NoisePreference>) -> Result<Vec<Quote>, EngineError> {
        let delta = self.guarantee.delta.value() / self.wanted.len() as f64;
        let delta = if delta > 0.0 { Delta::new(delta)? } else { Delta::ZERO };
        let priced = |epsilon: f64| {
            let epsilon = Epsilon::new(epsilon)?;
            let price = |(index, wanted): (usize, &Wanted)| {
                wanted.price(epsilon, delta, noise).map_err(|error| error.about(index + 1))
            };
            self.wanted.iter().enumerate().map(price).collect::<Result<Vec<_>, _>>()
        };
        let all = self.guarantee.epsilon.value();
        let open = self.wanted.iter().filter(|wanted| wanted.is_open()).count();
        let sum = |quotes: &[Quote]| -> f64 {
            let named = quotes.iter().zip(&self.wanted).filter(|(_, wanted)| !wanted.is_open());
            named.map(|(quote, _)| quote.guarantee.epsilon.value()).sum()
        };
        // A first price, to see what the named ones take.
        let mut best = priced(short(all / self.wanted.len() as f64))?;
        let named = sum(&best);
        if open == 0 {
            return match self.keep(&best) {
                true => Ok(best),
                false => Err(wrong(format!(
                    "what these questions name is more than {} together; one by one it is ε = {named}",
                    self.guarantee
                ))),
            };
        }
        let least = (all - named) / open as f64;
        let (mut low, mut high) = (least, all);
        match least > 0.0 {
            true => best = priced(short(least))?,
            // By the accountant something may be left where by the sum nothing is.
            false => low = all / 1000.0,
        }
        let mut kept = self.keep(&best);
        for _ in 0..if self.guarantee.is_pure() { 0 } else { HALVINGS } {
            let middle = (low * high).sqrt();
            let quotes = priced(short(middle))?;
            if self.keep(&quotes) {
                (low, best, kept) = (middle, quotes, true);
            } else {
                high = middle;
            }
        }
        match kept {
            true => Ok(best),
            false => Err(wrong(format!(
                "questions that name their own price take ε = {named} of {all}, and nothing is left for the other {open}"
            ))),
        }
    }

    /// Whether all quotes together are certain to keep the guarantee: by the accountant, or because their parts add up.
    fn keep(&self, quotes: &[Quote]) -> bool {
        let (epsilon, delta) = (self.guarantee.epsilon, self.guarantee.delta.exact());
        let sum = |part: fn(&Guarantee) -> Rational| {
            quotes.iter().fold(Rational::zero(), |sum, quote| &sum + &part(&quote.guarantee))
        };
        let adds_up =
            sum(|part| part.epsilon.exact()) <= epsilon.exact() && sum(|part| part.delta.exact()) <= delta;
        let account = || Account::of(&together(quotes)).and_then(|account| account.epsilon(&delta));
        adds_up || account().is_ok_and(|found| found.bounds.upper <= epsilon.value())
    }
}

impl Engine {
    /// Charges a batch, reads the rows of each question, releases all answers.
    pub fn query_batch(
        &self,
        project: &Project,
        ask: &Ask,
        batch: &Batch,
        backend: &dyn Backend,
    ) -> Result<(Answer, Vec<Table>), EngineError> {
        let ready = batch.quotes.iter().map(|quote| quote.prepare(backend));
        let ready = ready.collect::<Result<Vec<_>, _>>()?;
        let versions: Vec<_> = ready.iter().map(Ready::version).collect();
        let question = batch.question(project, ask, &self.fingerprint(&versions.join("\n")))?;
        let answer = self.ask(&question, || {
            let tallied = ready.into_iter().map(Ready::read).collect::<Result<_, _>>()?;
            Ok::<_, EngineError>(Together { tallied })
        })?;
        let read = |text: &String| {
            let table: Released = serde_json::from_str(text)
                .map_err(|_| EngineError::new("engine.table", "the released values are no table"))?;
            Table::read(&table.columns, &table.values)
        };
        let tables = answer.certificate.released.iter().map(read).collect::<Result<_, _>>()?;
        Ok((answer, tables))
    }
}

/// What was counted for all questions.
pub(crate) struct Together<'a> {
    tallied: Vec<Tallied<'a>>,
}

impl Private for Together<'_> {
    fn loss(&self) -> PrivacyLoss {
        let losses = self.tallied.iter().map(Tallied::loss);
        losses.reduce(PrivacyLoss::compose).unwrap_or(PrivacyLoss::Composed { parts: Vec::new() })
    }

    fn publish(self, entropy: &mut Entropy) -> Result<Vec<String>, EngineError> {
        let publish = |tallied: Tallied<'_>| {
            let columns = tallied.quote.headings();
            let table = Released { columns, values: tallied.publish(entropy)? };
            serde_json::to_string(&table).map_err(|_| EngineError::after_the_charge())
        };
        self.tallied.into_iter().map(publish).collect()
    }
}

/// The loss of all mechanisms of all quotes.
fn together(quotes: &[Quote]) -> PrivacyLoss {
    let losses = quotes.iter().map(|quote| quote.pricing.loss());
    losses.reduce(PrivacyLoss::compose).unwrap_or(PrivacyLoss::Composed { parts: Vec::new() })
}

/// Four digits of a positive number, not above it.
fn short(value: f64) -> f64 {
    let text = format!("{:.3e}", value * (1.0 - 5e-4));
    text.parse::<f64>().ok().filter(|short| *short <= value && *short > 0.0).unwrap_or(value)
}

fn wrong(text: impl Into<String>) -> EngineError {
    EngineError::new("engine.batch", text)
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn four_digits_are_never_more() {
        for value in [0.1, 0.123_46, 1.0, 0.333_333, 1e-6, 99.999, 0.059_871_2] {
            assert!(short(value) <= value && short(value) > value * 0.998, "{value}: {}", short(value));
        }
    }
}
