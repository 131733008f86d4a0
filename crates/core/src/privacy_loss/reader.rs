//! Reads the loss language: text becomes a [`PrivacyLoss`], or a refusal that points at the place.
//!
//! A recursive descent: [`Reader`] knows sums, counts and parentheses, `forms` the losses,
//! `arguments` what stands between their parentheses, `points` the pairs of `renyi`, and
//! `cursor` characters and refusals.
//!
//! The structure of the text is the structure of the loss: nothing is merged or
//! multiplied out, so that reading undoes printing. Every limit is checked before the
//! work it limits, and recursion is no deeper than the nesting.

mod arguments;
mod bound;
mod cursor;
mod forms;
mod points;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod round_trip;

use std::str::FromStr;

use arguments::{Arguments, whole};
use cursor::{Cursor, short};
use forms::{Form, LOSS};

use super::{Part, PrivacyLoss};
use crate::Error;
use crate::error::require;

/// The longest text that is read, in bytes.
const MAX_TEXT: usize = 1 << 20;
/// The most losses one within another.
const MAX_DEPTH: usize = 64;
/// The most losses in one text.
const MAX_TERMS: usize = 100_000;

/// Reads a loss in the loss language and [checks](Self::check) it.
///
/// ```
/// use demur_core::PrivacyLoss;
///
/// let year: PrivacyLoss = "(gaussian(sigma=5) + laplace(epsilon=1/3, sensitivity=2)*3)*365".parse()?;
/// assert_eq!(
///     year.to_string(),
///     "(gaussian(variance=25, sensitivity=1) + laplace(scale=6, sensitivity=2)*3)*365",
/// );
/// let error = "pure(1) + gausian(5)".parse::<PrivacyLoss>().unwrap_err();
/// assert!(error.to_string().starts_with("\
/// there is no loss called `gausian` (column 11)
///   pure(1) + gausian(5)
///             ^
///   allowed: gaussian, laplace, "));
/// # Ok::<(), demur_core::Error>(())
/// ```
///
/// | loss | means |
/// |---|---|
/// | `a + b`, `a*3`, `3*a`, `(a + b)*3` | both; three times; both three times |
/// | `gaussian(sigma, sensitivity)` | Gaussian noise; `variance=` instead of `sigma` |
/// | `discrete_gaussian(sigma, sensitivity, dimensions)` | the same on whole numbers |
/// | `laplace(scale, sensitivity)` | Laplace noise; `epsilon=` for a scale of sensitivity/epsilon |
/// | `discrete_laplace(scale, sensitivity)` | the same on whole numbers |
/// | `truncated_laplace(scale, bound, sensitivity)` | bounded Laplace noise; see below |
/// | `truncated_discrete_laplace(scale, bound, sensitivity)` | the same on whole numbers |
/// | `randomized_response(epsilon, categories)` | the truth or one of the other categories |
/// | `unary_encoding(epsilon)` | a row of bits, each flipped |
/// | `exponential(epsilon)`, `permute_and_flip(epsilon)` | a choice by score |
/// | `pure(epsilon)`, `approx(epsilon, delta)`, `zcdp(rho)` | anything with this guarantee |
/// | `subsampled(rate, loss)` | the loss on a Poisson sample |
/// | `group(size, loss)` | the loss of a group of people together |
/// | `threshold(delta, loss)` | keys shown when a noisy count is above a threshold; see below |
/// | `without_replacement(sample, population, loss)` | the loss on a sample of fixed size |
/// | `renyi(order: epsilon, …)` | anything with these Rényi divergences, by increasing order |
/// | `composed()`, `composed(loss)` | nothing; a sum of one |
///
/// Arguments are given in this order or as `name=value`. A sensitivity or a number of dimensions
/// that is left out is 1, a number of categories 2; `sensitivity_squared=` is for a
/// Gaussian sensitivity whose square alone is a fraction. Numbers are decimals (`0.5`, `1e-6`) or
/// fractions (`1/3`), and exact. Spaces may stand between all of them. `truncated_laplace(epsilon=E,
/// delta=D)` has scale Δ/ε and for its bound a double not below (Δ/ε)·ln(1 + (e^ε − 1)/2δ),
/// for δ up to ½. `threshold(delta=1e-6, laplace(scale=2))` is the noise with its loss, and δ the
/// probability that a key which only one unit has is shown.
///
/// A text has at most 1 MiB, 100 000 losses, 64 of them one within another, 1000 orders in one loss,
/// numbers of 10 000 characters with exponents up to 400, and counts below 2⁶⁴, 0 for what was
/// never paid.
impl FromStr for PrivacyLoss {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        require(text.len() <= MAX_TEXT, "core.loss.language", || {
            format!("a loss may be at most {MAX_TEXT} bytes of text, but {} were given", text.len())
        })?;
        let mut reader = Reader { cursor: Cursor::new(text), depth: 0, terms: 0 };
        let loss = Self::of_parts(reader.sum()?);
        if reader.cursor.peek().is_some() {
            return Err(reader.cursor.unexpected("`+`, `*` or the end of the text"));
        }
        loss.check()?;
        Ok(loss)
    }
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    depth: usize,
    terms: usize,
}

impl Reader<'_> {
    /// `term + term + …`
    fn sum(&mut self) -> Result<Vec<Part>, Error> {
        let mut parts = vec![self.term()?];
        while self.cursor.eat('+') {
            parts.push(self.term()?);
        }
        Ok(parts)
    }

    /// A loss with counts before or behind.
    fn term(&mut self) -> Result<Part, Error> {
        let at = self.cursor.here();
        if self.terms == MAX_TERMS {
            return Err(self.cursor.refuse(at, "there are too many losses", &format!("up to {MAX_TERMS}")));
        }
        self.terms += 1;
        let mut count = 1;
        while self.cursor.peek().is_some_and(|c| c.is_ascii_digit() || c == '.') {
            count = self.count(count)?;
            self.cursor.expect('*', "`*` between a count and its loss")?;
        }
        let loss = self.loss()?;
        while self.cursor.eat('*') {
            count = self.count(count)?;
        }
        Ok(Part { loss, count })
    }

    /// A whole number, times what was counted before.
    fn count(&mut self, before: u64) -> Result<u64, Error> {
        let at = self.cursor.here();
        let number = whole(&self.cursor.number()?);
        let product = number.map(|count| before.checked_mul(count));
        let what = match product {
            Some(Some(product)) => return Ok(product),
            Some(None) => "the counts of this loss multiply to too many".to_owned(),
            None => format!("`{}` is not a count", self.cursor.since(at)),
        };
        Err(self.cursor.refuse(at, &what, &format!("whole numbers from 0 to {}", u64::MAX)))
    }

    /// A sum in parentheses, or a loss by its name.
    fn loss(&mut self) -> Result<PrivacyLoss, Error> {
        if self.cursor.eat('(') {
            let parts = self.nested()?;
            self.close()?;
            return Ok(PrivacyLoss::of_parts(parts));
        }
        let at = self.cursor.here();
        match self.cursor.word() {
            "" => Err(self.cursor.unexpected("a loss such as gaussian(sigma=5), or `(`")),
            "composed" => self.composed(),
            "renyi" => self.renyi(at),
            name => match Form::called(name) {
                Some(form) => self.call(form, at),
                None => {
                    let what = format!("there is no loss called `{}`", short(name));
                    Err(self.cursor.refuse(at, &what, &Form::all()))
                }
            },
        }
    }

    /// `composed()` or `composed(sum)`, after the name.
    fn composed(&mut self) -> Result<PrivacyLoss, Error> {
        self.cursor.expect('(', "`(` after the name of a loss")?;
        if self.cursor.eat(')') {
            return Ok(PrivacyLoss::Composed { parts: vec![] });
        }
        let parts = self.nested()?;
        self.close()?;
        Ok(PrivacyLoss::Composed { parts })
    }

    /// `(argument, …)`, after the name.
    fn call(&mut self, form: &'static Form, at: usize) -> Result<PrivacyLoss, Error> {
        self.cursor.expect('(', "`(` after the name of a loss")?;
        let mut arguments = Arguments::new(form, at, self.cursor);
        if !self.cursor.eat(')') {
            self.argument(&mut arguments)?;
            while self.cursor.eat(',') {
                self.argument(&mut arguments)?;
            }
            self.cursor.expect(')', &format!("`,` or `)` in {}", form.usage))?;
        }
        arguments.into_loss()
    }

    fn argument(&mut self, arguments: &mut Arguments<'_>) -> Result<(), Error> {
        let at = self.cursor.here();
        let key = self.cursor.key();
        let name = arguments.next(key, at)?;
        if name == LOSS {
            arguments.give_loss(PrivacyLoss::of_parts(self.nested()?));
        } else {
            arguments.give_number(name, at, self.cursor.number()?);
        }
        Ok(())
    }

    /// A sum inside parentheses, which are counted.
    fn nested(&mut self) -> Result<Vec<Part>, Error> {
        let at = self.cursor.here();
        if self.depth == MAX_DEPTH {
            let allowed = format!("up to {MAX_DEPTH} losses one within another");
            return Err(self.cursor.refuse(at, "the losses are nested too deeply", &allowed));
        }
        self.depth += 1;
        let parts = self.sum();
        self.depth -= 1;
        parts
    }

    fn close(&mut self) -> Result<(), Error> {
        self.cursor.expect(')', "`+`, `*` or `)`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// What the text means, in the words of the writer.
    fn read(text: &str) -> String {
        text.parse::<PrivacyLoss>().unwrap_or_else(|error| panic!("{text}: {error}")).to_string()
    }

    #[test]
    fn every_way_to_write_a_loss_is_read() {
        for (text, meaning) in [
            ("gaussian(5)", "gaussian(variance=25, sensitivity=1)"),
            ("gaussian(5, 2)", "gaussian(variance=25, sensitivity=2)"),
            ("gaussian(variance=5, sensitivity=2)", "gaussian(variance=5, sensitivity=2)"),
            ("gaussian(sensitivity_squared=3, sigma=2)", "gaussian(variance=4, sensitivity_squared=3)"),
            ("laplace(20, sensitivity=1/3)", "laplace(scale=20, sensitivity=1/3)"),
            ("laplace(epsilon=0.1, sensitivity=1/3)", "laplace(scale=10/3, sensitivity=1/3)"),
            ("discrete_laplace(epsilon=3)", "discrete_laplace(scale=1/3, sensitivity=1)"),
            ("discrete_gaussian(2)", "discrete_gaussian(variance=4, sensitivity=1, dimensions=1)"),
            ("discrete_gaussian(2, 3, 4)", "discrete_gaussian(variance=4, sensitivity=3, dimensions=4)"),
            ("truncated_laplace(2, 30)", "truncated_laplace(scale=2, bound=30, sensitivity=1)"),
            (
                "truncated_laplace(epsilon=2, delta=0.5, sensitivity=3)",
                "truncated_laplace(scale=1.5, bound=3, sensitivity=3)",
            ),
            (
                "truncated_discrete_laplace(2, bound=30)",
                "truncated_discrete_laplace(scale=2, bound=30, sensitivity=1)",
            ),
            ("randomized_response(1)", "randomized_response(epsilon=1, categories=2)"),
            ("randomized_response(1, 1e3)", "randomized_response(epsilon=1, categories=1000)"),
            ("unary_encoding(epsilon=1)", "unary_encoding(1)"),
            ("exponential(1) + permute_and_flip(2)", "exponential(1) + permute_and_flip(2)"),
            (
                "approx(1, 1e-6) + approximate(1, delta=0)",
                "approx(epsilon=1, delta=0.000001) + approx(epsilon=1, delta=0)",
            ),
            ("zcdp(1/2) + zero_concentrated(rho=1)", "zcdp(0.5) + zcdp(1)"),
            ("subsampled(0.1, pure(1) + pure(2))", "subsampled(rate=0.1, pure(1) + pure(2))"),
            ("group(loss=3*pure(1), size=2)", "group(size=2, pure(1)*3)"),
            (
                "threshold(delta=1e-6, laplace(scale=2))",
                "threshold(delta=0.000001, laplace(scale=2, sensitivity=1))",
            ),
            ("threshold(1e-6, laplace(2))", "threshold(delta=0.000001, laplace(scale=2, sensitivity=1))"),
            ("threshold(loss=pure(1) + pure(2), delta=0)", "threshold(delta=0, pure(1) + pure(2))"),
            (
                "without_replacement(sample=100, population=10000, gaussian(sigma=1))",
                "without_replacement(sample=100, population=10000, gaussian(variance=1, sensitivity=1))",
            ),
            (
                "without_replacement(0, 1e3, pure(1))",
                "without_replacement(sample=0, population=1000, pure(1))",
            ),
            ("renyi(2: 0.1, 8: 0.5)", "renyi(2: 0.1, 8: 0.5)"),
            ("2*renyi ( 4/3:1/3,1e1 : 0 )", "renyi(4/3: 1/3, 10: 0)*2"),
        ] {
            assert_eq!(read(text), meaning);
        }
    }

    #[test]
    fn counts_and_parentheses_read_as_arithmetic() {
        for (text, meaning) in [
            (" 3 * pure ( 1 )\n+\tpure(2) * 2 ", "pure(1)*3 + pure(2)*2"),
            ("2*pure(1)*3", "pure(1)*6"),
            ("((pure(1)))", "pure(1)"),
            ("(pure(1) + pure(2))", "pure(1) + pure(2)"),
            ("(pure(1) + pure(2))*1", "pure(1) + pure(2)"),
            ("2*(pure(1) + pure(2)) + pure(3)", "(pure(1) + pure(2))*2 + pure(3)"),
            ("(pure(1)*2)*3", "(pure(1)*2)*3"),
            ("pure(1)+pure(1)", "pure(1) + pure(1)"),
            ("composed() + composed(pure(1) + pure(2))", "composed() + (pure(1) + pure(2))"),
            ("pure(1)*0", "pure(1)*0"),
            ("0*pure(1)*5 + gaussian(5)", "pure(1)*0 + gaussian(variance=25, sensitivity=1)"),
            ("pure(1)*1000000000*1e9", "pure(1)*1000000000000000000"),
            ("(pure(1)*18446744073709551615)*2", "(pure(1)*18446744073709551615)*2"),
        ] {
            assert_eq!(read(text), meaning);
        }
    }

    #[test]
    fn the_largest_texts_are_read_or_refused_in_good_time() {
        let nested = |depth| format!("{}pure(1){}", "(".repeat(depth), ")".repeat(depth));
        let terms = |count| vec!["pure(1)"; count].join("+");
        let long = |characters| format!("pure({})", "7".repeat(characters));
        let fitting = |term: &str| vec![term; (MAX_TEXT / (term.len() + 1)).min(MAX_TERMS)].join("+");
        let orders = |last: usize| {
            let points: Vec<_> = (2..=last).map(|order| format!("{order}:1")).collect();
            format!("renyi({})", points.join(","))
        };
        let start = Instant::now();
        for (text, fits) in [
            (nested(MAX_DEPTH), true),
            (nested(MAX_DEPTH + 1), false),
            (format!("{}pure(1){}", "group(2,".repeat(MAX_DEPTH), ")".repeat(MAX_DEPTH)), true),
            (format!("{}pure(1){}", "threshold(0,".repeat(MAX_DEPTH), ")".repeat(MAX_DEPTH)), true),
            (orders(1_001), true),
            (orders(1_002), false),
            (fitting(&orders(1_001)), true),
            (fitting("renyi(2:3e-400)"), true),
            (format!("renyi({}", "2:1,".repeat(MAX_TEXT / 5)), false),
            (format!("renyi(2:{}e-1)", "7".repeat(9_997)), true),
            // What is short when read may be long when printed.
            (format!("renyi(2:{}e9)", "7".repeat(9_991)), true),
            (format!("renyi(2:{}e9)", "7".repeat(9_992)), false),
            ("(".repeat(MAX_TEXT), false),
            ("group(2,".repeat(MAX_TEXT / 8), false),
            ("composed(".repeat(MAX_TEXT / 9), false),
            (terms(MAX_TERMS), true),
            (terms(MAX_TERMS + 1), false),
            (long(10_000), true),
            (long(10_001), false),
            (format!("{}pure(1)", " ".repeat(MAX_TEXT - 7)), true),
            (format!("{}pure(1)", " ".repeat(MAX_TEXT - 6)), false),
            (fitting("gaussian(3e-400)"), true),
            (fitting("laplace(epsilon=7e-400)"), true),
            (fitting("truncated_laplace(epsilon=1,delta=1e-6)"), true),
            (fitting(&long(9_999)), true),
            (format!("{}pure(1)", "2*".repeat(MAX_TEXT / 3)), false),
            (format!("{}pure(1)", "1*".repeat(MAX_TEXT / 3)), true),
            (format!("gaussian({})", "7".repeat(5_001)), false),
        ] {
            let loss = text.parse::<PrivacyLoss>();
            assert_eq!(loss.is_ok(), fits, "{}", short(&text));
        }
        assert!(start.elapsed() < Duration::from_secs(60), "took {:?}", start.elapsed());
    }
}
