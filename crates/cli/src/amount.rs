//! Exact amounts as programs and people read them: in their own digits where these are few, else rounded in a named
//! direction.

use demur_exact::Rational;
use serde_json::value::RawValue;

use crate::account::figure::unwritable;
use crate::failure::Failure;
use crate::words;

/// What was spent is rounded up, what is left down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    Up,
    Down,
}

/// The longest number that a table shows in its own digits.
const LONGEST: usize = 7;

/// The amount as a number that a program reads.
pub(crate) fn number(value: &Rational, round: Round) -> String {
    short(value).unwrap_or_else(|| digits(directed(value, round)))
}

/// The amount as a JSON number.
pub(crate) fn json(value: &Rational, round: Round) -> Result<Box<RawValue>, Failure> {
    RawValue::from_string(number(value, round)).map_err(unwritable)
}

/// The amount for people, in at most four digits unless it has few more.
pub(crate) fn shown(value: &Rational, round: Round) -> String {
    match (short(value).filter(|text| text.len() <= LONGEST), round) {
        (Some(text), _) => text,
        (None, Round::Up) => words::up(directed(value, round), 4),
        (None, Round::Down) => words::down(directed(value, round), 4),
    }
}

/// `spent` as a part of `whole`, from 0 to 1, for pictures.
pub(crate) fn part(spent: &Rational, whole: &Rational) -> f64 {
    if whole.is_positive() { (spent / whole).to_f64().clamp(0.0, 1.0) } else { 0.0 }
}

/// The digits of the nearest double, when they are the amount itself.
fn short(value: &Rational) -> Option<String> {
    let text = digits(value.to_f64());
    text.parse::<Rational>().is_ok_and(|read| read == *value).then_some(text)
}

fn directed(value: &Rational, round: Round) -> f64 {
    match round {
        Round::Up => value.to_f64_up(),
        Round::Down => value.to_f64_down(),
    }
}

fn digits(value: f64) -> String {
    let text = format!("{value:?}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn q(text: &str) -> Rational {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_short_keeps_its_digits() {
        for text in ["0", "1", "0.1", "0.3", "1e-6", "1e-300", "0.7", "1000000"] {
            assert_eq!(number(&q(text), Round::Up), number(&q(text), Round::Down));
            assert_eq!(number(&q(text), Round::Up).parse::<Rational>().unwrap(), q(text));
            assert_eq!(shown(&q(text), Round::Up).parse::<Rational>().unwrap(), q(text));
        }
        assert_eq!([number(&q("1"), Round::Up), number(&q("0.1"), Round::Up)], ["1", "0.1"]);
    }

    #[test]
    fn what_is_long_is_rounded_in_the_named_direction() {
        let third = q("1/3");
        assert_eq!(number(&third, Round::Down), "0.3333333333333333");
        assert_eq!(number(&third, Round::Up), "0.33333333333333337");
        assert_eq!([shown(&third, Round::Down), shown(&third, Round::Up)], ["0.3333", "0.3334"]);
    }

    #[test]
    fn parts_lie_between_nothing_and_all() {
        assert_eq!(part(&q("0.25"), &q("1")), 0.25);
        assert_eq!([part(&q("2"), &q("1")), part(&q("1"), &q("0"))], [1.0, 0.0]);
    }
}
