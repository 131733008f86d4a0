//! [`Arguments`]: what stands between the parentheses of a loss.

use demur_exact::Rational;

use super::bound::truncation_bound;
use super::cursor::{Cursor, MAX_NUMBER, short, too_long};
use super::forms::{Form, LOSS};
use crate::privacy_loss::PrivacyLoss;
use crate::privacy_loss::language::{Limit, Parameter, parameter};
use crate::{Error, error::require};

/// The arguments of one loss, as far as they have been read.
pub(super) struct Arguments<'a> {
    form: &'static Form,
    /// Where the loss begins, and the text for pictures of places in it.
    at: usize,
    source: Cursor<'a>,
    numbers: Vec<Number>,
    loss: Option<PrivacyLoss>,
    /// How many there are, and whether one of them had a name.
    count: usize,
    named: bool,
}

struct Number {
    name: &'static str,
    at: usize,
    value: Rational,
}

/// Reading: which argument comes next, and keeping it.
impl<'a> Arguments<'a> {
    pub(super) fn new(form: &'static Form, at: usize, source: Cursor<'a>) -> Self {
        Self { form, at, source, numbers: vec![], loss: None, count: 0, named: false }
    }

    /// The name of the next argument, from its key or else from its place.
    pub(super) fn next(&mut self, key: Option<&str>, at: usize) -> Result<&'static str, Error> {
        let name = match key {
            Some(key) => self.form.argument(key).ok_or_else(|| {
                self.misuse(at, &format!("{} has no argument `{}`", self.form.name(), short(key)))
            })?,
            None => self.place(at)?,
        };
        let known = self.numbers.iter().any(|number| number.name == name);
        if known || (name == LOSS && self.loss.is_some()) {
            return Err(self.misuse(at, &format!("{name} is given twice")));
        }
        self.count += 1;
        self.named |= key.is_some();
        Ok(name)
    }

    fn place(&self, at: usize) -> Result<&'static str, Error> {
        let Some(name) = self.form.places.get(self.count) else {
            return Err(self.misuse(at, &format!("{} has no argument in this place", self.form.name())));
        };
        if self.named && *name != LOSS {
            return Err(self.misuse(at, "an argument after a named one needs its name"));
        }
        Ok(name)
    }

    pub(super) fn give_number(&mut self, name: &'static str, at: usize, value: Rational) {
        self.numbers.push(Number { name, at, value });
    }

    pub(super) fn give_loss(&mut self, loss: PrivacyLoss) {
        self.loss = Some(loss);
    }

    /// The loss, with every parameter one that it can have and one that can be read again.
    pub(super) fn into_loss(mut self) -> Result<PrivacyLoss, Error> {
        let loss = (self.form.build)(&mut self)?;
        for parameter in loss.parameters() {
            accept(&self.source, self.place_of(parameter.name), self.form.name(), &parameter)?;
        }
        Ok(loss)
    }
}

/// Building: what the forms ask for.
impl Arguments<'_> {
    pub(super) fn required(&self, name: &'static str) -> Result<Rational, Error> {
        self.get(name).ok_or_else(|| self.needs(name))
    }

    /// A whole number of at most 64 bits.
    pub(super) fn whole(&self, name: &'static str) -> Result<Option<u64>, Error> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let number = whole(&value);
        let sentence = || {
            let (loss, most) = (self.form.name(), u64::MAX);
            let sentence =
                format!("the {name} of {loss} must be a whole number up to {most}, but {value} was given");
            self.source.point(self.place_of(name), &sentence)
        };
        require(number.is_some(), "core.loss.parameter", sentence)?;
        Ok(number)
    }

    pub(super) fn required_whole(&self, name: &'static str) -> Result<u64, Error> {
        self.whole(name)?.ok_or_else(|| self.needs(name))
    }

    pub(super) fn inner(&mut self) -> Result<Box<PrivacyLoss>, Error> {
        self.loss.take().map(Box::new).ok_or_else(|| self.needs("a loss"))
    }

    pub(super) fn sensitivity(&self) -> Rational {
        self.get("sensitivity").unwrap_or_else(Rational::one)
    }

    /// `scale`, or what `epsilon` makes of the sensitivity.
    pub(super) fn scale(&self) -> Result<Rational, Error> {
        match self.either("scale", "epsilon")? {
            (Some(scale), _) => Ok(scale),
            (_, Some(epsilon)) => self.scale_for(&epsilon),
            _ => Err(self.needs("scale or epsilon")),
        }
    }

    fn scale_for(&self, epsilon: &Rational) -> Result<Rational, Error> {
        let sensitivity = self.sensitivity();
        self.check(&parameter("epsilon", epsilon, Limit::AboveZero))?;
        self.check(&parameter("sensitivity", &sensitivity, Limit::AboveZero))?;
        Ok(&sensitivity / epsilon)
    }

    /// `variance`, or the square of `sigma`.
    pub(super) fn variance(&self) -> Result<Rational, Error> {
        match self.either("sigma", "variance")? {
            (Some(sigma), _) => {
                self.check(&parameter("sigma", &sigma, Limit::AboveZero))?;
                Ok(sigma.square())
            }
            (_, Some(variance)) => Ok(variance),
            _ => Err(self.needs("sigma or variance")),
        }
    }

    /// `sensitivity_squared`, or the square of `sensitivity`.
    pub(super) fn sensitivity_squared(&self) -> Result<Rational, Error> {
        match self.either("sensitivity", "sensitivity_squared")? {
            (_, Some(squared)) => Ok(squared),
            _ => {
                let sensitivity = self.sensitivity();
                self.check(&parameter("sensitivity", &sensitivity, Limit::FromZero))?;
                Ok(sensitivity.square())
            }
        }
    }

    /// `scale` and `bound`, or what `epsilon` and `delta` make of the sensitivity.
    pub(super) fn scale_and_bound(&self) -> Result<(Rational, Rational), Error> {
        for noise in ["scale", "bound"] {
            for promise in ["epsilon", "delta"] {
                self.either(noise, promise)?;
            }
        }
        if self.get("epsilon").is_none() && self.get("delta").is_none() {
            return Ok((self.required("scale")?, self.required("bound")?));
        }
        let (epsilon, delta) = (self.required("epsilon")?, self.required("delta")?);
        let scale = self.scale_for(&epsilon)?;
        self.check(&parameter("delta", &delta, Limit::AtMostHalf))?;
        let bound = truncation_bound(&self.sensitivity(), &epsilon, &delta);
        let too_far = || self.misuse(self.at, "doubles cannot hold the bound for this epsilon and delta");
        Ok((scale, bound.ok_or_else(too_far)?))
    }

    fn get(&self, name: &str) -> Option<Rational> {
        self.numbers.iter().find(|number| number.name == name).map(|number| number.value.clone())
    }

    /// Two arguments of which only one may be given.
    fn either(&self, one: &str, other: &str) -> Result<(Option<Rational>, Option<Rational>), Error> {
        match (self.get(one), self.get(other)) {
            (Some(_), Some(_)) => {
                let what = format!("{} takes {one} or {other}, not both", self.form.name());
                Err(self.misuse(self.place_of(one).max(self.place_of(other)), &what))
            }
            pair => Ok(pair),
        }
    }

    fn check(&self, parameter: &Parameter) -> Result<(), Error> {
        check(&self.source, self.place_of(parameter.name), self.form.name(), parameter)
    }

    /// Where an argument stands, or the loss when it is left out.
    fn place_of(&self, name: &str) -> usize {
        self.numbers.iter().find(|number| number.name == name).map_or(self.at, |number| number.at)
    }

    fn needs(&self, what: &str) -> Error {
        self.misuse(self.at, &format!("{} needs {what}", self.form.name()))
    }

    fn misuse(&self, at: usize, what: &str) -> Error {
        self.source.refuse(at, what, self.form.usage)
    }
}

/// Whether the number at this place is one that the loss can have and one that can be read again.
pub(super) fn accept(
    source: &Cursor<'_>,
    place: usize,
    loss: &str,
    parameter: &Parameter,
) -> Result<(), Error> {
    check(source, place, loss, parameter)?;
    if can_be_read_again(&parameter.value) { Ok(()) } else { Err(too_long(source, place)) }
}

fn check(source: &Cursor<'_>, place: usize, loss: &str, parameter: &Parameter) -> Result<(), Error> {
    let pointed = |error: Error| Error::new(error.code(), source.point(place, &error.to_string()));
    parameter.check(loss).map_err(pointed)
}

/// The number itself when it is whole and has at most 64 bits.
pub(super) fn whole(value: &Rational) -> Option<u64> {
    if value.is_integer() { u64::try_from(value.numerator()).ok() } else { None }
}

/// Whether the number, when printed, is short enough to be read.
fn can_be_read_again(value: &Rational) -> bool {
    let bits = |part: Rational| part.abs().floor_log2();
    let (above, below) = (value.numerator().clone(), value.denominator().clone());
    // A digit has more than three bits: these are fewer than 9 000 digits.
    bits(above.into()) + bits(below.into()) < 27_000 || value.to_string().len() <= MAX_NUMBER
}
