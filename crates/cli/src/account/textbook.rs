//! The textbook formulas for groups and samples, beside the tight values.

use demur_accounting::{Account, textbook};
use demur_core::PrivacyLoss;
use demur_exact::Rational;

use super::losses::shown;
use super::question::Question;
use crate::words::up;

/// At most so many groups and samples are looked at.
const SHOWN: usize = 5;

/// A row for every group and sample among the losses, each as if it were used once.
pub(crate) fn beside(question: &Question, losses: &PrivacyLoss) -> Vec<(String, String)> {
    let mut found = Vec::new();
    collect(losses, &mut found);
    found.into_iter().filter_map(|loss| Some((shown(loss), row(question, loss)?))).collect()
}

/// The first different groups and samples, outermost only.
fn collect<'a>(loss: &'a PrivacyLoss, found: &mut Vec<&'a PrivacyLoss>) {
    match loss {
        _ if found.len() == SHOWN => {}
        PrivacyLoss::Composed { parts } => parts.iter().for_each(|part| collect(&part.loss, found)),
        PrivacyLoss::Group { .. } | PrivacyLoss::Subsampled { .. } if !found.contains(&loss) => {
            found.push(loss);
        }
        _ => {}
    }
}

/// The textbook's pair and the tight value, as a sentence.
fn row(question: &Question, loss: &PrivacyLoss) -> Option<String> {
    let (epsilon, delta) = match loss {
        PrivacyLoss::Group { size, inner } => group(question, *size, inner)?,
        PrivacyLoss::Subsampled { rate, inner } => sample(question, rate, inner)?,
        _ => return None,
    };
    let tight = Account::of(loss).ok()?;
    let (symbol, given, said, tight) = match (question, loss) {
        (Question::Epsilon { delta }, PrivacyLoss::Subsampled { .. }) => {
            ("ε", question.given(), epsilon, tight.epsilon(&delta.value).ok()?)
        }
        (Question::Delta { epsilon }, _) => ("δ", question.given(), delta, tight.delta(&epsilon.value).ok()?),
        _ => ("δ", format!("ε = {}", up(epsilon, 5)), delta, tight.delta(&exactly(epsilon)?).ok()?),
    };
    let (said, tight) = (up(said, 5), up(tight.bounds.upper, 5));
    Some(format!("at {given} the formula says {symbol} = {said}, tight is {symbol} = {tight}"))
}

/// (kε, δ·(e^(kε) − 1)/(e^ε − 1)).
fn group(question: &Question, size: u64, inner: &PrivacyLoss) -> Option<(f64, f64)> {
    let one = Account::of(inner).ok()?;
    let (epsilon, delta) = match question {
        Question::Epsilon { delta } => {
            (one.epsilon(&delta.value).ok()?.bounds.upper, delta.value.to_f64_up())
        }
        Question::Delta { epsilon } => {
            let share = &epsilon.value / &Rational::from(size);
            (share.to_f64_up(), one.delta(&share).ok()?.bounds.upper)
        }
    };
    Some(textbook::group(size, epsilon, delta))
}

/// (ln(1 + q·(e^ε − 1)), qδ).
fn sample(question: &Question, rate: &Rational, inner: &PrivacyLoss) -> Option<(f64, f64)> {
    let everybody = Account::of(inner).ok()?;
    if rate.is_zero() {
        return None;
    }
    let q = rate.to_f64();
    let (epsilon, delta) = match question {
        Question::Epsilon { delta } => {
            let before = Some(&delta.value / rate).filter(|before| *before < Rational::one())?;
            (everybody.epsilon(&before).ok()?.bounds.upper, before.to_f64_up())
        }
        Question::Delta { epsilon } => {
            let before = textbook::before_sampling(q, epsilon.value.to_f64());
            (before, everybody.delta(&exactly(before)?).ok()?.bounds.upper)
        }
    };
    Some(textbook::sample(q, epsilon, delta))
}

fn exactly(value: f64) -> Option<Rational> {
    Rational::try_from(value).ok()
}
