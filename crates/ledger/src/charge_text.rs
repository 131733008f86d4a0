//! [`ChargeText`]: the body of a charge, most of it written before it is the charge's turn.
//!
//! All but what is spent, the software and the time is known to whoever asks, so they write it while others are at the
//! ledger. The text is the one that `Entry` is written as, byte for byte.

use demur_accounting::State;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::entry::{Charge, USUAL};
use crate::request::Request;
use crate::{Hash, LedgerError};

/// The text of a charge up to what is spent.
pub(crate) struct ChargeText(Vec<u8>);

/// The fields of a [`Charge`] that come before what is spent, under the same names and in the same order.
#[derive(Serialize)]
struct Known<'a> {
    budget: &'a str,
    requester: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    question: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_version: Option<&'a str>,
    loss: &'a RawValue,
    request: Hash,
}

impl ChargeText {
    /// What is known when it is asked for; the loss as it is written.
    pub(crate) fn begin(request: &Request, loss: &RawValue, hash: Hash) -> Result<Self, LedgerError> {
        let Request { budget, requester, id, question, data_version, .. } = request;
        let (id, data_version) = (id.as_deref(), data_version.as_deref());
        let known = Known { budget, requester, id, question, data_version, loss, request: hash };
        let mut text = Vec::with_capacity(USUAL);
        text.extend_from_slice(br#"{"event":{"charge":"#);
        add(&mut text, &known)?;
        // More fields follow.
        text.pop();
        Ok(Self(text))
    }

    /// The body of the entry.
    pub(crate) fn finish(
        self,
        charge: &Charge,
        software: &str,
        time: Timestamp,
    ) -> Result<Vec<u8>, LedgerError> {
        let Self(mut text) = self;
        let mut field = |name: &[u8], state: &State| {
            text.extend_from_slice(name);
            add(&mut text, state)
        };
        field(br#","after":"#, &charge.after)?;
        charge.part_after.iter().try_for_each(|after| field(br#","part_after":"#, after))?;
        text.extend_from_slice(br#"}},"software":"#);
        add(&mut text, &software)?;
        text.extend_from_slice(br#","time":"#);
        add(&mut text, &time)?;
        text.push(b'}');
        Ok(text)
    }
}

fn add(text: &mut Vec<u8>, value: &impl Serialize) -> Result<(), LedgerError> {
    serde_json::to_writer(text, value)
        .map_err(|error| LedgerError::ours(format!("an entry could not be written: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Entry, Event};
    use demur_accounting::Filter;
    use demur_core::PrivacyLoss;

    /// With and without each field that may be absent, and with letters that JSON has to mark.
    #[test]
    fn the_text_of_a_charge_is_the_text_of_its_entry() {
        let filter = Filter::renyi("10".parse().unwrap(), "1e-6".parse().unwrap()).unwrap();
        let loss: PrivacyLoss = "laplace(epsilon=0.1)*3 + gaussian(sigma=7/3)".parse().unwrap();
        let after = filter.admit(&filter.start(), &loss).unwrap();
        let time: Timestamp = "2026-11-16T03:00:00.123456789Z".parse().unwrap();
        for (id, version, part) in
            [(false, false, false), (true, false, true), (false, true, true), (true, true, false)]
        {
            let mut request = Request::new("visits", "ann \"ä\"", "SELECT\n\\ \u{1}", loss.clone());
            request.id = id.then(|| "monday".to_owned());
            request.data_version = version.then(|| "2026\u{7f}".to_owned());
            let hash = request.hash();
            let written = serde_json::value::to_raw_value(&request.loss).unwrap();
            let text = ChargeText::begin(&request, &written, hash).unwrap();
            let Request { budget, requester, id, question, data_version, loss } = request;
            let part_after = part.then(|| after.clone());
            let after = after.clone();
            let charge = Charge {
                budget,
                requester,
                id,
                question,
                data_version,
                loss,
                request: hash,
                after,
                part_after,
            };
            let body = text.finish(&charge, "demur \"0\"", time).unwrap();
            let entry = Entry { event: Event::Charge(charge), software: "demur \"0\"".to_owned(), time };
            assert_eq!(String::from_utf8(body), String::from_utf8(entry.seal(None).unwrap().body));
        }
    }
}
