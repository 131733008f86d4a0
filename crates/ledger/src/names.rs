//! [`Names`]: which charge carries a client's name for its request.
//!
//! They are in memory only, and come from the chain whenever a ledger is opened: an index on disk would be one more page to
//! sync with every charge, and one more thing that can disagree with the entries.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::LedgerError;
use crate::entry::{Charge, Event, Sealed};

/// The charges that have a name, by who gave it and the name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Names(HashMap<String, u64>);

impl Names {
    /// Notes an entry, if it is a charge with a name.
    pub(crate) fn add(&mut self, sealed: &Sealed) -> Result<(), LedgerError> {
        if let Some(name) = name_of(sealed)? {
            self.0.entry(name).or_insert(sealed.position.sequence);
        }
        Ok(())
    }

    /// Notes a charge that was just written.
    pub(crate) fn add_charge(&mut self, charge: &Charge, sequence: u64) {
        if let Some(id) = &charge.id {
            self.0.entry(key(&charge.requester, id)).or_insert(sequence);
        }
    }

    /// The number of the charge that this requester named so.
    pub(crate) fn charge(&self, requester: &str, id: &str) -> Option<u64> {
        self.0.get(&key(requester, id)).copied()
    }
}

/// Neither of the two has control characters.
fn key(requester: &str, id: &str) -> String {
    [requester, "\n", id].concat()
}

fn name_of(sealed: &Sealed) -> Result<Option<String>, LedgerError> {
    let Some(charge) = sealed.body.strip_prefix(br#"{"event":{"charge":"#) else { return Ok(None) };
    if let Some((requester, id)) = first_fields(charge) {
        return Ok(id.map(|id| key(&requester, &id)));
    }
    // The same in another order, or with spaces.
    Ok(match sealed.read()?.event {
        Event::Charge(Charge { requester, id, .. }) => id.map(|id| key(&requester, &id)),
        _ => None,
    })
}

/// Requester and id, when the text begins with them as we write it: millions of charges are not read whole for two words each.
fn first_fields(charge: &[u8]) -> Option<(Cow<'_, str>, Option<Cow<'_, str>>)> {
    let (_, rest) = field(charge, br#"{"budget":"#)?;
    let (requester, rest) = field(rest, br#","requester":"#)?;
    if rest.starts_with(br#","question":"#) {
        return Some((requester, None));
    }
    let (id, _) = field(rest, br#","id":"#)?;
    Some((requester, Some(id)))
}

/// The text that follows these letters, and what is behind it.
fn field<'a>(text: &'a [u8], name: &[u8]) -> Option<(Cow<'a, str>, &'a [u8])> {
    let text = text.strip_prefix(name)?;
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<Text<'a>>();
    let Text(value) = values.next()?.ok()?;
    Some((value, &text[values.byte_offset()..]))
}

/// A text that is copied only where JSON had to mark a letter.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Entry;
    use crate::request::Request;
    use demur_accounting::Filter;
    use proptest::prelude::*;

    fn charge(requester: &str, id: Option<&str>, question: &str) -> Sealed {
        let loss: demur_core::PrivacyLoss = "pure(0.5)".parse().unwrap();
        let filter = Filter::pure("1".parse().unwrap()).unwrap();
        let after = filter.admit(&filter.start(), &loss).unwrap();
        let request = Request::new("visits", requester, question, loss);
        let hash = request.hash();
        let Request { budget, requester, question, data_version, loss, .. } = request;
        let id = id.map(str::to_owned);
        let charge = Charge {
            budget,
            requester,
            id,
            question,
            data_version,
            loss,
            request: hash,
            after,
            part_after: None,
        };
        let time = "2026-11-16T03:00:00Z".parse().unwrap();
        Entry { event: Event::Charge(charge), software: "demur 0".to_owned(), time }.seal(None).unwrap()
    }

    proptest! {
        /// Whatever stands in the texts, the short way finds what the whole entry says.
        #[test]
        fn a_name_is_found_without_reading_the_entry(requester in ".{1,9}", id in proptest::option::of(".{1,9}"), question in ".*") {
            let sealed = charge(&requester, id.as_deref(), &question);
            let body = sealed.body.strip_prefix(br#"{"event":{"charge":"#).unwrap();
            let found = first_fields(body).unwrap();
            prop_assert_eq!((found.0.as_ref(), found.1.as_deref()), (requester.as_str(), id.as_deref()));
        }
    }

    #[test]
    fn an_entry_in_another_order_has_its_name_too() {
        let Sealed { position, body } = charge("ann", Some("monday"), "how many?");
        let text = String::from_utf8(body).unwrap();
        let spaced = text.replacen(r#""budget":"visits","#, "", 1).replacen(
            r#""question":"#,
            r#""budget" : "visits", "question":"#,
            1,
        );
        assert_ne!(spaced, text);
        let mut names = Names::default();
        names.add(&Sealed { position, body: spaced.into_bytes() }).unwrap();
        assert_eq!(names.charge("ann", "monday"), Some(0));
        assert_eq!(names.charge("ann", "tuesday"), None);
        assert_eq!(names.charge("an", "nmonday"), None);
    }
}
