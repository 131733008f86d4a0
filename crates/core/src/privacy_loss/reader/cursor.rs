//! [`Cursor`]: a place in the text of a loss, and the refusals that point at places.

use demur_exact::Rational;

use crate::Error;

/// The longest number that is read, in characters; [`Rational`] reads no longer one.
pub(super) const MAX_NUMBER: usize = 10_000;
/// Exponents beyond this are refused, so that a few letters cannot fill the memory.
const MAX_EXPONENT: u64 = 400;
/// How many characters of a long line are shown around the place in question.
const SHOWN: usize = 72;

/// A place in the text of a loss; every method but [`here`](Self::here) moves it on.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Goes past spaces and says where that is, in bytes.
    pub(super) fn here(&mut self) -> usize {
        self.at = self.text.len() - self.rest().trim_start().len();
        self.at
    }

    pub(super) fn peek(&mut self) -> Option<char> {
        self.here();
        self.rest().chars().next()
    }

    /// Goes past the sign if it is next.
    pub(super) fn eat(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(sign);
        if found {
            self.at += sign.len_utf8();
        }
        found
    }

    /// Goes past the sign, or says what could have been here.
    pub(super) fn expect(&mut self, sign: char, allowed: &str) -> Result<(), Error> {
        if self.eat(sign) { Ok(()) } else { Err(self.unexpected(allowed)) }
    }

    /// Letters, digits and underscores, beginning with a letter; empty when there are none.
    pub(super) fn word(&mut self) -> &'a str {
        self.here();
        let letters = self.rest().find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let word = &self.rest()[..letters.unwrap_or(self.rest().len())];
        if !word.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return "";
        }
        self.at += word.len();
        word
    }

    /// The key of `key=value`, if that is what comes next.
    pub(super) fn key(&mut self) -> Option<&'a str> {
        let mut ahead = *self;
        let word = ahead.word();
        (!word.is_empty() && ahead.eat('=')).then(|| {
            *self = ahead;
            word
        })
    }

    /// A decimal or a fraction of two, exactly.
    pub(super) fn number(&mut self) -> Result<Rational, Error> {
        let start = self.here();
        self.decimal();
        if self.at > start && self.eat('/') {
            self.here();
            self.decimal();
        }
        let written = self.text[start..self.at].trim_end();
        self.at = start + written.len();
        let allowed = "numbers like 42, 0.5, 1e-6 or 1/3";
        if written.is_empty() {
            return Err(self.unexpected(allowed));
        }
        if written.len() > MAX_NUMBER {
            return Err(too_long(self, start));
        }
        if written.split('/').any(|decimal| exponent(decimal) > MAX_EXPONENT) {
            let what = format!("the exponent of `{}` is too large", short(written));
            return Err(self.refuse(
                start,
                &what,
                &format!("exponents from -{MAX_EXPONENT} to {MAX_EXPONENT}"),
            ));
        }
        let what = || format!("`{}` is not a number", short(written));
        written.parse().map_err(|_| self.refuse(start, &what(), allowed))
    }

    /// Goes past whatever looks like a decimal: a sign, digits, letters, points, `e-`.
    fn decimal(&mut self) {
        let mut before = ' ';
        let end = self.rest().find(|c: char| {
            let sign = matches!(c, '+' | '-') && matches!(before, ' ' | 'e' | 'E');
            before = c;
            !sign && !c.is_ascii_alphanumeric() && c != '_' && c != '.'
        });
        self.at += end.unwrap_or(self.rest().len());
    }

    /// What was read since a place, for a sentence about it.
    pub(super) fn since(&self, at: usize) -> String {
        short(self.text[at..self.at].trim_end())
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The refusal of whatever comes next.
    pub(super) fn unexpected(mut self, allowed: &str) -> Error {
        let (at, next) = (self.here(), self.peek());
        let found = match (next, self.word()) {
            (None, _) => "the text ends too early".to_owned(),
            (Some(sign), "") => format!("`{}` is not expected here", sign.escape_debug()),
            (_, word) => format!("`{}` is not expected here", short(word)),
        };
        self.refuse(at, &found, allowed)
    }

    /// What is wrong at a place, a picture of the place, and what is allowed there.
    pub(super) fn refuse(&self, at: usize, what: &str, allowed: &str) -> Error {
        let pointed = self.point(at, what);
        Error::new("core.loss.language", format!("{pointed}\n  allowed: {allowed}"))
    }

    /// The sentence with its place, and the line with a caret beneath.
    pub(super) fn point(&self, at: usize, what: &str) -> String {
        let before = &self.text[..at];
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = self.text[start..].lines().next().unwrap_or("");
        let column = before[start..].chars().count();
        let place = match before.matches('\n').count() {
            0 if !self.text.contains('\n') => format!("column {}", column + 1),
            above => format!("line {}, column {}", above + 1, column + 1),
        };
        let (shown, caret) = window(line, column);
        format!("{what} ({place})\n  {shown}\n  {}^", " ".repeat(caret))
    }
}

/// The part of a line around a column, and the column's place in that part.
fn window(line: &str, column: usize) -> (String, usize) {
    let skipped = if line.chars().count() <= SHOWN { 0 } else { column.saturating_sub(SHOWN / 2) };
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let mut shown: String = line.chars().skip(skipped).take(SHOWN).map(printable).collect();
    if line.chars().count() > skipped + SHOWN {
        shown.push('…');
    }
    if skipped > 0 { (format!("…{shown}"), column - skipped + 1) } else { (shown, column) }
}

/// The size of the exponent; 0 where there is none, or none that a number could have.
fn exponent(decimal: &str) -> u64 {
    let written = decimal.trim().split_once(['e', 'E']);
    written.and_then(|(_, exponent)| exponent.parse::<i64>().ok()).map_or(0, i64::unsigned_abs)
}

/// The refusal of a number that could be printed but not be read again.
pub(super) fn too_long(cursor: &Cursor<'_>, at: usize) -> Error {
    cursor.refuse(at, "the number is too long", &format!("numbers of up to {MAX_NUMBER} characters"))
}

/// The beginning of a word, for a sentence about it.
pub(super) fn short(word: &str) -> String {
    match word.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &word[..end]),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_where_arithmetic_begins() {
        for (text, number, rest) in [
            ("3+2*pure(1)", "3", "+2*pure(1)"),
            (" 1 / 3 )", "1/3", " )"),
            ("1e+2+1", "100", "+1"),
            ("-1E-2, 5", "-0.01", ", 5"),
            ("+.5*2", "0.5", "*2"),
            ("1_000.25 +", "1000.25", " +"),
        ] {
            let mut cursor = Cursor::new(text);
            assert_eq!((cursor.number().unwrap().to_string().as_str(), cursor.rest()), (number, rest));
        }
    }

    #[test]
    fn what_is_not_a_number_is_refused() {
        let huge = "7".repeat(MAX_NUMBER + 1);
        // The least exponent of 64 bits has no opposite.
        for text in [
            "",
            "-",
            "1/",
            "/3",
            "1/0",
            "1e",
            "0x10",
            "1.2.3",
            "nan",
            "--1",
            "1e401",
            "1e-401",
            "1/1e401",
            "1e99999999999999999999",
            "1e-9223372036854775808",
            "٣",
            huge.as_str(),
        ] {
            assert_eq!(Cursor::new(text).number().unwrap_err().code(), "core.loss.language", "{text}");
        }
    }

    #[test]
    fn a_long_line_is_shown_around_the_caret() {
        let text = format!("{}\n{}ö!{}", "x".repeat(90), "a".repeat(100), "b".repeat(100));
        let error = Cursor::new(&text).point(91 + 102, "no");
        let lines: Vec<_> = error.lines().collect();
        assert_eq!(lines[0], "no (line 2, column 102)");
        let caret = lines[2].chars().position(|c| c == '^').unwrap();
        assert_eq!(lines[1].chars().nth(caret), Some('!'));
        assert_eq!(lines[1].chars().count(), 2 + 1 + SHOWN + 1);
    }
}
