//! The losses, from the command line, a file or a line of JSON.

use std::io::Read;
use std::path::Path;

use demur_core::PrivacyLoss;
use demur_exact::Rational;

use crate::args::account::Losses;
use crate::failure::Failure;
use crate::noise::open;

/// The most that is read of a file.
const MAX_FILE: u64 = 64 << 20;
const LANGUAGE: &str =
    "write losses like 'gaussian(sigma=5)*100 + pure(0.1)'; `demur account --help` lists them";

impl Losses {
    /// Reads them from wherever the flags say.
    pub(crate) fn read(&self) -> Result<PrivacyLoss, Failure> {
        match (&self.text, &self.file) {
            (Some(text), None) => parse(text),
            (None, Some(file)) => parse(&contents(file)?),
            (Some(_), Some(_)) => {
                let message = "losses were given both as text and as a file";
                Err(Failure::new("cli.losses", message).hint("give one of them"))
            }
            (None, None) => Err(Failure::new("cli.losses", "no losses were given").hint(LANGUAGE)),
        }
    }
}

/// JSON if it looks like it, else the loss language.
pub(crate) fn parse(text: &str) -> Result<PrivacyLoss, Failure> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|error| {
            let message = format!("the JSON is not a loss: {error}");
            Failure::new("cli.losses", message).hint("releases print their loss in this form")
        });
    }
    text.parse::<PrivacyLoss>().map_err(|error| {
        let failure = Failure::new(error.code(), error.to_string());
        if error.code() == "core.loss.language" { failure.hint(LANGUAGE) } else { failure }
    })
}

/// The same, where `gdp(mu)` stands for Gaussian privacy too.
pub(crate) fn parse_or_gdp(losses: &Losses) -> Result<PrivacyLoss, Failure> {
    let number = losses.text.as_deref().and_then(|text| text.trim().strip_prefix("gdp(")?.strip_suffix(')'));
    let Some(number) = number.filter(|_| losses.file.is_none()) else {
        return losses.read();
    };
    let mu: Rational = number.parse().map_err(|error| Failure::new("cli.losses", format!("{error}")))?;
    let loss = PrivacyLoss::Gaussian { variance: Rational::one(), l2_squared: mu.square() };
    match mu.is_negative() {
        true => Err(Failure::new("cli.losses", format!("gdp: mu must be from 0 up, but {mu} was given"))),
        false => Ok(loss),
    }
}

fn contents(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let unreadable = |error| Failure::new("cli.file", format!("cannot read `{}`: {error}", path.display()));
    open(path)?.take(MAX_FILE + 1).read_to_string(&mut text).map_err(unreadable)?;
    match text.len() as u64 > MAX_FILE {
        true => {
            Err(Failure::new("cli.file", format!("`{}` is longer than {MAX_FILE} bytes", path.display())))
        }
        false => Ok(text),
    }
}

/// A loss in the loss language, not longer than people read.
pub(crate) fn shown(loss: &PrivacyLoss) -> String {
    const SHOWN: usize = 160;
    let text = loss.to_string();
    match text.chars().count() > SHOWN {
        true => format!("{} …", text.chars().take(SHOWN).collect::<String>()),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_json_mean_the_same() {
        let loss = parse("gaussian(sigma=5)*100").unwrap();
        assert_eq!(parse(&serde_json::to_string(&loss).unwrap()).unwrap(), loss);
        assert_eq!(parse("{").unwrap_err().code(), "cli.losses");
        assert_eq!(parse("gaussian(").unwrap_err().code(), "core.loss.language");
    }

    #[test]
    fn gaussian_privacy_is_gaussian_noise() {
        let given = |text: &str| Losses { text: Some(text.to_owned()), file: None };
        let loss = parse_or_gdp(&given("gdp(0.5)")).unwrap();
        assert_eq!(loss, parse_or_gdp(&given("gaussian(variance=1, sensitivity=0.5)")).unwrap());
        assert!(parse_or_gdp(&given("gdp(-1)")).is_err());
        assert!(parse_or_gdp(&given("gdp(x)")).is_err());
    }
}
