//! Laplace, Gaussian and truncated Laplace noise from the command line.

use std::io::Write;

use demur_engine::{Numbers as Private, Term};
use demur_exact::Rational;
use demur_exact::float::mul_up;
use demur_noise::{Gaussian, Laplace, Mechanism, TruncatedLaplace};
use serde::Serialize;
use serde_json::value::RawValue;

use super::numbers::Numbers;
use super::published::Published;
use crate::args::{self, Common, Format};
use crate::failure::Failure;
use crate::output::{Facts, first_few, short};
use crate::words::up;

/// What is promised for one release, and how the noise is described.
struct Plan {
    mechanism: Box<dyn Mechanism>,
    name: &'static str,
    parameters: Vec<(&'static str, String)>,
    epsilon: f64,
    delta: Option<f64>,
}

pub(crate) fn laplace(args: &args::Laplace, out: &mut impl Write) -> Result<(), Failure> {
    let numbers = Numbers::read(&args.numbers)?;
    let (l1, epsilon) = (args.common.sensitivity.clone(), args.common.epsilon);
    let mechanism = match numbers.whole {
        true => Laplace::integers(numbers.len(), l1, epsilon)?,
        false => Laplace::reals(numbers.len(), l1, epsilon)?,
    };
    let parameters = vec![("scale", show(&mechanism.scale()))];
    let plan = Plan {
        mechanism: Box::new(mechanism),
        name: "laplace",
        parameters,
        epsilon: epsilon.value(),
        delta: None,
    };
    plan.publish(&numbers, &args.common, out)
}

pub(crate) fn gaussian(args: &args::Gaussian, out: &mut impl Write) -> Result<(), Failure> {
    let numbers = Numbers::read(&args.numbers)?;
    let (l2_squared, epsilon) = (args.common.sensitivity.square(), args.common.epsilon);
    let mechanism = match numbers.whole {
        true => Gaussian::integers(numbers.len(), l2_squared, epsilon, args.delta, args.calibration)?,
        false => Gaussian::reals(numbers.len(), l2_squared, epsilon, args.delta, args.calibration)?,
    };
    let parameters =
        vec![("sigma", short(mechanism.sigma())), ("calibration", args.calibration.name().to_owned())];
    let delta = Some(args.delta.value());
    let plan = Plan {
        mechanism: Box::new(mechanism),
        name: "gaussian",
        parameters,
        epsilon: epsilon.value(),
        delta,
    };
    plan.publish(&numbers, &args.common, out)
}

pub(crate) fn truncated_laplace(args: &args::TruncatedLaplace, out: &mut impl Write) -> Result<(), Failure> {
    let numbers = Numbers::read(&args.numbers)?;
    if numbers.len() > 1 {
        let message = format!("truncated Laplace noise is for one number, but {} were given", numbers.len());
        return Err(Failure::new("cli.values", message)
            .hint("publish them one by one, or use `demur noise gaussian`"));
    }
    let (sensitivity, epsilon) = (args.common.sensitivity.clone(), args.common.epsilon);
    let mechanism = match numbers.whole {
        true => TruncatedLaplace::integer(sensitivity, epsilon, args.delta)?,
        false => TruncatedLaplace::real(sensitivity, epsilon, args.delta)?,
    };
    let parameters = vec![("scale", show(&mechanism.scale())), ("bound", show(&mechanism.bound()))];
    let delta = Some(args.delta.value());
    let name = "truncated-laplace";
    let plan = Plan { mechanism: Box::new(mechanism), name, parameters, epsilon: epsilon.value(), delta };
    plan.publish(&numbers, &args.common, out)
}

/// A number that is exact when that is short.
fn show(value: &Rational) -> String {
    match value.to_decimal(6) {
        Some(text) if text.len() <= 12 => text,
        _ => short(value.to_f64()),
    }
}

impl Plan {
    fn publish(&self, numbers: &Numbers, common: &Common, out: &mut impl Write) -> Result<(), Failure> {
        common.printing.check(numbers.len())?;
        let (mechanism, count) = (self.mechanism.as_ref(), common.printing.count);
        let steps = || numbers.on(mechanism.lattice());
        let mut published = Published::open(
            &common.printing.charging,
            self.question(common),
            (self.term(common), numbers.len()),
            || Ok(Private { mechanism, steps: steps()?, count }),
            |entropy, times| {
                let release = mechanism.release_repeatedly(&steps()?, times, entropy)?;
                Ok(release.value().iter().map(ToString::to_string).collect())
            },
        )?;
        match common.printing.format {
            Format::Table => self.table(published, count, out),
            Format::Json => self.json(published, count, out),
            Format::Lines => published.each(|_, number| Ok(writeln!(out, "{number}")?)),
            Format::Csv if numbers.len() == 1 => {
                writeln!(out, "released")?;
                published.each(|_, number| Ok(writeln!(out, "{number}")?))
            }
            Format::Csv => {
                writeln!(out, "index,released")?;
                published.each(|index, number| Ok(writeln!(out, "{},{number}", index + 1)?))
            }
        }
    }

    /// What is asked, without the numbers themselves.
    fn question(&self, common: &Common) -> String {
        let parameters: Vec<String> =
            self.parameters.iter().map(|(name, value)| format!("{name} {value}")).collect();
        format!(
            "noise {}: {} value(s), sensitivity {}, {}, {} time(s)",
            self.name,
            self.mechanism.dimensions(),
            common.sensitivity,
            parameters.join(", "),
            common.printing.count
        )
    }

    fn term(&self, common: &Common) -> Term {
        Term {
            what: format!("{} value(s)", self.mechanism.dimensions()),
            bounds: None,
            sensitivity: common.sensitivity.to_string(),
            mechanism: self.mechanism.loss(),
            count: common.printing.count,
        }
    }

    fn table(&self, mut published: Published<'_>, count: u64, out: &mut impl Write) -> Result<(), Failure> {
        let mut facts = Facts::default();
        facts.add("released", first_few(&published.gather()?));
        self.describe(count, &mut facts)?;
        published.describe(&mut facts);
        Ok(facts.print(out)?)
    }

    fn describe(&self, count: u64, facts: &mut Facts) -> Result<(), Failure> {
        let mechanism = &self.mechanism;
        let parameters: Vec<String> =
            self.parameters.iter().map(|(name, value)| format!("{name} {value}")).collect();
        facts.add("mechanism", format!("{}, {}", self.name, parameters.join(", ")));
        if mechanism.lattice().exponent() != 0 {
            let step = short(mechanism.lattice().value(1));
            facts.add("lattice", format!("multiples of 2^{} (about {step})", mechanism.lattice().exponent()));
        }
        let error = mechanism.error(0.05)?;
        let deviation = short(mechanism.standard_deviation());
        facts.add(
            "error",
            format!("± {} in 95 of 100 cases (standard deviation {deviation})", short(error.each)),
        );
        if mechanism.dimensions() > 1 {
            let all = mechanism.dimensions();
            facts.add(
                "",
                format!("± {} for all {all} values together in 95 of 100 cases", short(error.joint)),
            );
        }
        facts.add("loss", self.loss_of(1));
        if count > 1 {
            facts.add("total", format!("{count} releases cost {}", self.loss_of(count)));
        }
        Ok(())
    }

    fn loss_of(&self, count: u64) -> String {
        let times = count as f64;
        let epsilon = short_cost(mul_up(self.epsilon, times));
        match self.delta {
            None => format!("ε = {epsilon}"),
            Some(delta) => format!("ε = {epsilon}, δ = {}", short_cost(mul_up(delta, times))),
        }
    }

    fn json(&self, mut published: Published<'_>, count: u64, out: &mut impl Write) -> Result<(), Failure> {
        // A decimal number is a JSON number: nothing is rounded.
        let raw = |number: String| RawValue::from_string(number).map_err(json_failure);
        let released = published.gather()?.into_iter().map(raw).collect::<Result<_, _>>()?;
        let error = self.mechanism.error(0.05)?;
        let answer = Answer {
            mechanism: self.name,
            released,
            parameters: self.parameters.iter().cloned().collect(),
            lattice_exponent: self.mechanism.lattice().exponent(),
            standard_deviation: self.mechanism.standard_deviation(),
            error_95: error.each,
            joint_error_95: error.joint,
            epsilon: self.epsilon,
            delta: self.delta.unwrap_or(0.0),
            count,
            total_epsilon: self.epsilon * count as f64,
            total_delta: self.delta.unwrap_or(0.0) * count as f64,
            loss: self.mechanism.loss().repeat(count),
            charge: published.json(),
        };
        serde_json::to_writer_pretty(&mut *out, &answer).map_err(json_failure)?;
        Ok(writeln!(out)?)
    }
}

/// What JSON readers get.
#[derive(Serialize)]
struct Answer {
    mechanism: &'static str,
    released: Vec<Box<RawValue>>,
    parameters: std::collections::BTreeMap<&'static str, String>,
    lattice_exponent: i32,
    standard_deviation: f64,
    error_95: f64,
    joint_error_95: f64,
    epsilon: f64,
    delta: f64,
    count: u64,
    total_epsilon: f64,
    total_delta: f64,
    loss: demur_core::PrivacyLoss,
    #[serde(skip_serializing_if = "Option::is_none")]
    charge: Option<serde_json::Value>,
}

fn json_failure(error: serde_json::Error) -> Failure {
    match error.io_error_kind() {
        Some(kind) => std::io::Error::from(kind).into(),
        None => Failure::new("cli.json", error.to_string()),
    }
}

/// A cost, with all its digits as long as they are few, and never less than it is.
fn short_cost(cost: f64) -> String {
    let text = cost.to_string();
    if text.len() <= 8 { text } else { up(cost, 4) }
}
