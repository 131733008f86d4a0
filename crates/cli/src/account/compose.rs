//! `demur account compose`: one guarantee for many losses.

use std::io::Write;

use demur_accounting::{Account, Answer, Method};
use demur_core::PrivacyLoss;

use super::figure::unwritable;
use super::losses::shown;
use super::question::{Question, Reply, tightness};
use crate::args::account::{Compose, Form};
use crate::failure::Failure;
use crate::output::Facts;

pub(crate) fn compose(args: &Compose, out: &mut impl Write) -> Result<(), Failure> {
    let question = Question::of(&args.asked)?;
    let method = args.method.as_deref().map(method).transpose()?;
    let losses = args.losses.read()?;
    let answer = question.ask(&Account::of(&losses)?, method)?;
    match args.format {
        Form::Table => Ok(facts(&question, &answer, &losses).print(out)?),
        Form::Json => {
            let reply = Reply::new(&question, &answer, &losses)?;
            Ok(writeln!(out, "{}", serde_json::to_string_pretty(&reply).map_err(unwritable)?)?)
        }
    }
}

/// A method by its name.
pub(crate) fn method(name: &str) -> Result<Method, Failure> {
    let refuse = |error| Failure::from(error).hint("leave --method away to get the best one");
    name.parse().map_err(refuse)
}

fn facts(question: &Question, answer: &Answer, losses: &PrivacyLoss) -> Facts {
    let mut facts = Facts::default();
    for (name, number) in question.rows(answer.bounds) {
        facts.add(name, number);
    }
    facts.add("method", by(answer));
    facts.add("proven", format!("{} {}", question.symbol(), tightness(answer.bounds)));
    facts.add("losses", shown(losses));
    facts
}

/// The method, and why it where that is known.
pub(crate) fn by(answer: &Answer) -> String {
    match answer.reason.is_empty() {
        true => answer.method.to_string(),
        false => format!("{}: {}", answer.method, answer.reason),
    }
}
