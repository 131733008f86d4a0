//! `demur account calibrate`: the least noise for a guarantee, or the most uses of given noise.

use std::collections::BTreeMap;
use std::io::Write;

use demur_accounting::calibrate::{self as accounting, Calibrated, Setting, Target, Unknown};
use demur_exact::Rational;
use serde_json::value::{RawValue, to_raw_value};

use super::figure::{Figure, exact, unwritable};
use super::losses::shown;
use crate::args::account::{Calibrate, Form};
use crate::failure::Failure;
use crate::output::Facts;

/// A calibration as text, from flags or a line of JSON.
pub(crate) struct Wanted<'a> {
    pub(crate) unknown: &'a str,
    pub(crate) epsilon: &'a str,
    pub(crate) delta: &'a str,
    pub(crate) sensitivity: &'a str,
    pub(crate) steps: Option<&'a str>,
    pub(crate) rate: Option<&'a str>,
    pub(crate) sigma: Option<&'a str>,
}

/// What was found, ready to be printed.
pub(crate) struct Found {
    pub(crate) parameter: &'static str,
    /// The value to use.
    pub(crate) value: String,
    /// `sigma_lower` and the like: no value beyond this one would do.
    pub(crate) limit_name: String,
    pub(crate) limit: String,
    pub(crate) losses: String,
}

pub(crate) fn calibrate(args: &Calibrate, out: &mut impl Write) -> Result<(), Failure> {
    let wanted = Wanted {
        unknown: &args.unknown,
        epsilon: &args.epsilon,
        delta: &args.delta,
        sensitivity: &args.sensitivity,
        steps: args.steps.as_deref(),
        rate: args.sampling_rate.as_deref(),
        sigma: args.sigma.as_deref(),
    };
    let found = wanted.find()?;
    match args.format {
        Form::Table => Ok(facts(&wanted, &found).print(out)?),
        Form::Json => Ok(writeln!(out, "{}", object(&wanted, &found)?)?),
    }
}

impl Wanted<'_> {
    /// Checks every figure and asks the accountant.
    pub(crate) fn find(&self) -> Result<Found, Failure> {
        let unknown = self.unknown()?;
        let target =
            Target { epsilon: Figure::epsilon(self.epsilon)?.value, delta: Figure::delta(self.delta)?.value };
        let setting = self.setting(unknown)?;
        Ok(Found::of(accounting::calibrate(unknown, &target, &setting)?))
    }

    fn unknown(&self) -> Result<Unknown, Failure> {
        let refuse = |error| {
            Failure::from(error).hint("for a composition of other losses use `demur account compose`")
        };
        self.unknown.replace('-', "_").parse().map_err(refuse)
    }

    fn setting(&self, unknown: Unknown) -> Result<Setting, Failure> {
        self.only_what_is_needed(unknown)?;
        Ok(Setting {
            sensitivity: Figure::sensitivity(self.sensitivity)?.value,
            steps: self.steps.map_or(Ok(1), Figure::steps)?,
            rate: self.rate.map_or(Ok(Rational::one()), |text| Figure::rate(text).map(|rate| rate.value))?,
            sigma: self.sigma.map(Figure::sigma).transpose()?.map(|sigma| sigma.value),
        })
    }

    /// A flag that would be ignored is a mistake.
    fn only_what_is_needed(&self, unknown: Unknown) -> Result<(), Failure> {
        let seeks_noise = !matches!(unknown, Unknown::Steps | Unknown::Rate);
        let refuse = |what: &str, hint: &str| Err(Failure::new("cli.calibrate", what).hint(hint));
        match (seeks_noise, self.sigma) {
            (true, Some(_)) => refuse(
                "sigma is for finding steps or rate; this calibration finds the noise",
                "leave sigma away",
            ),
            (false, None) => {
                refuse("to find steps or rate, sigma must be given", "add sigma, such as --sigma 5")
            }
            _ if unknown == Unknown::Steps && self.steps.is_some() => {
                refuse("steps were given, and steps are sought", "leave steps away")
            }
            _ if unknown == Unknown::Rate && self.rate.is_some() => {
                refuse("a sampling rate was given, and the rate is sought", "leave the sampling rate away")
            }
            _ => Ok(()),
        }
    }
}

impl Found {
    fn of(calibrated: Calibrated) -> Self {
        let parameter = calibrated.parameter;
        let text = |value: f64| match parameter {
            "steps" => format!("{value:.0}"),
            _ => exact(value),
        };
        let side = if least(parameter) { "lower" } else { "upper" };
        Self {
            parameter,
            value: text(calibrated.value),
            limit_name: format!("{parameter}_{side}"),
            limit: text(calibrated.lower),
            losses: calibrated.loss.to_string(),
        }
    }
}

/// Of noise the least is sought, of everything else the most.
fn least(parameter: &str) -> bool {
    matches!(parameter, "sigma" | "scale" | "bound")
}

fn facts(wanted: &Wanted<'_>, found: &Found) -> Facts {
    let mut facts = Facts::default();
    facts.add(found.parameter, &found.value);
    let (no, than) = if least(found.parameter) { ("no less", "below") } else { ("no more", "above") };
    facts.add("proven", format!("{no} will do: nothing {than} {} is private enough", found.limit));
    facts.add("target", format!("ε = {}, δ = {}", wanted.epsilon.trim(), wanted.delta.trim()));
    let losses = found.losses.parse().map_or_else(|_| found.losses.clone(), |loss| shown(&loss));
    facts.add("losses", losses);
    facts
}

/// The target has names of its own: `epsilon` may be what was found.
fn object(wanted: &Wanted<'_>, found: &Found) -> Result<String, Failure> {
    let raw = |text: &str| RawValue::from_string(text.to_owned()).map_err(unwritable);
    let text = |text: &str| to_raw_value(text).map_err(unwritable);
    let object = BTreeMap::from([
        ("calibrate", text(wanted.unknown)?),
        ("parameter", text(found.parameter)?),
        (found.parameter, raw(&found.value)?),
        (found.limit_name.as_str(), raw(&found.limit)?),
        ("losses", text(&found.losses)?),
        ("target_epsilon", Figure::epsilon(wanted.epsilon)?.json()?),
        ("target_delta", Figure::delta(wanted.delta)?.json()?),
    ]);
    serde_json::to_string_pretty(&object).map_err(unwritable)
}
