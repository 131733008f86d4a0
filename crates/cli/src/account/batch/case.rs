//! One question of a batch and its [`Reply`].

use std::io::Write;

use demur_accounting::Account;
use demur_core::PrivacyLoss;
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::account::calibrate::Wanted;
use crate::account::compose::method;
use crate::account::figure::{Figure, exact, unwritable};
use crate::account::losses;
use crate::account::question::Question;
use crate::failure::Failure;

/// A line as it stands; numbers stay text until they are exact.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    losses: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    epsilon: Option<&'a RawValue>,
    #[serde(borrow)]
    order: Option<&'a RawValue>,
    calibrate: Option<String>,
    #[serde(borrow)]
    sensitivity: Option<&'a RawValue>,
    #[serde(borrow)]
    steps: Option<&'a RawValue>,
    #[serde(borrow)]
    sampling_rate: Option<&'a RawValue>,
    #[serde(borrow)]
    sigma: Option<&'a RawValue>,
    method: Option<String>,
}

/// Names with JSON values, in order.
pub(crate) struct Reply(Vec<(String, Box<RawValue>)>);

/// Answers one line.
pub(crate) fn answer(line: &[u8]) -> Reply {
    let case = match serde_json::from_slice::<Case<'_>>(line.trim_ascii_end()) {
        Ok(case) => case,
        Err(error) => {
            return Reply::failed(&Failure::new("cli.json", format!("the line is not a question: {error}")));
        }
    };
    let reply = case.answer().unwrap_or_else(|failure| Reply::failed(&failure));
    reply.with_id(case.id)
}

impl Case<'_> {
    fn answer(&self) -> Result<Reply, Failure> {
        match &self.calibrate {
            Some(unknown) => self.calibrated(unknown),
            None => self.counted(),
        }
    }

    /// ε, δ or a Rényi divergence of losses.
    fn counted(&self) -> Result<Reply, Failure> {
        self.without(&[
            ("sensitivity", self.sensitivity),
            ("steps", self.steps),
            ("sampling_rate", self.sampling_rate),
            ("sigma", self.sigma),
        ])?;
        let question = match (self.delta, self.epsilon, self.order) {
            (Some(delta), None, None) => Question::Epsilon { delta: Figure::delta(&number(delta)?)? },
            (None, Some(epsilon), None) => Question::Delta { epsilon: Figure::epsilon(&number(epsilon)?)? },
            (None, None, Some(order)) => return self.renyi(&Figure::order(&number(order)?)?),
            _ => return Err(Failure::new("cli.question", "give exactly one of delta, epsilon and order")),
        };
        let by = self.method.as_deref().map(method).transpose()?;
        let answer = question.ask(&self.account()?, by)?;
        let name = match question {
            Question::Epsilon { .. } => "epsilon",
            Question::Delta { .. } => "delta",
        };
        Reply::default()
            .with(name, &exact(answer.bounds.upper))?
            .with(&format!("{name}_lower"), &exact(answer.bounds.lower))?
            .with("method", answer.method.name())
    }

    fn renyi(&self, order: &Figure) -> Result<Reply, Failure> {
        if self.method.is_some() {
            return Err(Failure::new(
                "cli.question",
                "a method chooses how to find epsilon or delta, not renyi",
            ));
        }
        let [remove, add] = self.account()?.renyi(&order.value)?;
        let both = remove.max(add);
        Reply::default()
            .with("renyi", &exact(both.upper))?
            .with("renyi_lower", &exact(both.lower))?
            .with("renyi_remove", &exact(remove.upper))?
            .with("renyi_add", &exact(add.upper))
    }

    fn calibrated(&self, unknown: &str) -> Result<Reply, Failure> {
        self.without(&[("losses", self.losses), ("order", self.order)])?;
        let text = |value: Option<&RawValue>| value.map(number).transpose();
        let missing = || Failure::new("cli.question", "a calibration needs an epsilon");
        let (epsilon, delta) = (text(self.epsilon)?.ok_or_else(missing)?, text(self.delta)?);
        let (sensitivity, sigma) = (text(self.sensitivity)?, text(self.sigma)?);
        let (steps, rate) = (text(self.steps)?, text(self.sampling_rate)?);
        let wanted = Wanted {
            unknown,
            epsilon: &epsilon,
            delta: delta.as_deref().unwrap_or("0"),
            sensitivity: sensitivity.as_deref().unwrap_or("1"),
            steps: steps.as_deref(),
            rate: rate.as_deref(),
            sigma: sigma.as_deref(),
        };
        let found = wanted.find()?;
        Reply::default().with(found.parameter, &found.value)?.with(&found.limit_name, &found.limit)
    }

    fn account(&self) -> Result<Account, Failure> {
        let losses = self.losses.ok_or_else(|| Failure::new("cli.question", "no losses were given"))?;
        let loss: PrivacyLoss = match losses.get().starts_with('"') {
            true => losses::parse(&string(losses)?)?,
            false => losses::parse(losses.get())?,
        };
        Ok(Account::of(&loss)?)
    }

    /// Refuses what would be ignored.
    fn without(&self, names: &[(&str, Option<&RawValue>)]) -> Result<(), Failure> {
        match names.iter().find(|(_, value)| value.is_some()) {
            Some((name, _)) => {
                Err(Failure::new("cli.question", format!("`{name}` has no place in this question")))
            }
            None => Ok(()),
        }
    }
}

/// The text of a JSON number or string.
fn number(value: &RawValue) -> Result<String, Failure> {
    match value.get().as_bytes().first() {
        Some(b'"') => string(value),
        _ => Ok(value.get().to_owned()),
    }
}

fn string(value: &RawValue) -> Result<String, Failure> {
    serde_json::from_str(value.get())
        .map_err(|error| Failure::new("cli.json", format!("this is not a text: {error}")))
}

impl Default for Reply {
    fn default() -> Self {
        Self(Vec::with_capacity(5))
    }
}

impl Reply {
    /// What went wrong, with its code.
    pub(crate) fn failed(failure: &Failure) -> Self {
        let reply = Self::default().with("error", failure.message());
        reply.and_then(|reply| reply.with("code", failure.code())).unwrap_or_default()
    }

    fn with(mut self, name: &str, text: &str) -> Result<Self, Failure> {
        self.0.push((name.to_owned(), to_raw_value(text).map_err(unwritable)?));
        Ok(self)
    }

    fn with_id(mut self, id: Option<&RawValue>) -> Self {
        if let Some(id) = id {
            self.0.insert(0, ("id".to_owned(), id.to_owned()));
        }
        self
    }

    pub(crate) fn write(&self, out: &mut impl Write) -> Result<(), Failure> {
        serde_json::to_writer(&mut *out, self).map_err(|error| Failure::from(std::io::Error::from(error)))?;
        Ok(out.write_all(b"\n")?)
    }
}

impl Serialize for Reply {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_never_pass_through_a_double() {
        for text in ["1e-6", "\"1e-6\"", "\"1/3\"", "0.1234567890123456789012345678901234"] {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            let read: demur_exact::Rational = number(raw).unwrap().parse().unwrap();
            assert_eq!(read, text.trim_matches('"').parse().unwrap());
        }
    }

    #[test]
    fn what_would_be_ignored_is_refused() {
        for line in [
            r#"{"losses":"pure(1)","delta":"1e-6","epsilon":"1"}"#,
            r#"{"losses":"pure(1)","delta":"1e-6","steps":3}"#,
            r#"{"losses":"pure(1)","order":2,"method":"grid"}"#,
            r#"{"calibrate":"gaussian","epsilon":1,"delta":"1e-6","losses":"pure(1)"}"#,
            r#"{"calibrate":"gaussian","delta":"1e-6"}"#,
            r#"{"delta":"1e-6"}"#,
        ] {
            let reply = serde_json::to_value(answer(line.as_bytes())).unwrap();
            assert_eq!(reply["code"], "cli.question", "{line}");
        }
    }
}
