//! [`Names`]: which charge carries a client's name for its request.
//!
//! They are in memory only, and come from the chain whenever a ledger is opened: an index on disk would be one more page to
//! sync with every charge, and one more thing that can disagree with the entries.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use crate::LedgerError;
use crate::entry::{Charge, Event, Sealed};

/// The charges that have a name.
///
/// A name is kept as 128 bits of a keyed hash: a million of them take little room, and that two of them agree has a chance of 10⁻²⁷, which
/// nobody can better without the keys.
#[derive(Default)]
pub(crate) struct Names {
    charges: HashMap<u128, u64, BuildHasherDefault<LowBits>>,
    keys: [RandomState; 2],
}

impl Names {
    /// Notes an entry, if it is a charge with a name.
    pub(crate) fn add(&mut self, sealed: &Sealed) -> Result<(), LedgerError> {
        let Some(charge) = sealed.body.strip_prefix(br#"{"event":{"charge":"#) else { return Ok(()) };
        match first_fields(charge) {
            Some((requester, Some(id))) => self.note(&requester, &id, sealed.position.sequence),
            Some((_, None)) => {}
            // The same in another order, or with spaces.
            None => {
                if let Event::Charge(charge) = sealed.read()?.event {
                    self.add_charge(&charge, sealed.position.sequence);
                }
            }
        }
        Ok(())
    }

    /// Notes a charge that was just written.
    pub(crate) fn add_charge(&mut self, charge: &Charge, sequence: u64) {
        if let Some(id) = &charge.id {
            self.note(&charge.requester, id, sequence);
        }
    }

    /// The number of the charge that this requester named so.
    pub(crate) fn charge(&self, requester: &str, id: &str) -> Option<u64> {
        self.charges.get(&self.key(requester, id)).copied()
    }

    /// The first charge of a name counts.
    fn note(&mut self, requester: &str, id: &str, sequence: u64) {
        self.charges.entry(self.key(requester, id)).or_insert(sequence);
    }

    fn key(&self, requester: &str, id: &str) -> u128 {
        let [high, low] = self.keys.each_ref().map(|key| u128::from(key.hash_one((requester, id))));
        high << 64 | low
    }
}

/// What is a hash already is not hashed again.
#[derive(Default)]
struct LowBits(u64);

impl Hasher for LowBits {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0 << 8 | u64::from(*byte));
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
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
    let plain = text.strip_prefix(b"\"")?;
    let end = plain.iter().position(|letter| matches!(letter, b'"' | b'\\'))?;
    if plain[end] == b'"' {
        return Some((Cow::Borrowed(str::from_utf8(&plain[..end]).ok()?), &plain[end + 1..]));
    }
    // JSON had to mark a letter.
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<String>();
    let value = values.next()?.ok()?;
    Some((Cow::Owned(value), &text[values.byte_offset()..]))
}

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
