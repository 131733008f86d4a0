//! Randomized response and its estimator from the command line.

use std::io::Write;

use demur_core::Epsilon;
use demur_noise::{Entropy, RandomizedResponse, UnaryEncoding};
use serde_json::json;

use crate::args::{self, Format, ResponseCost, Truth};
use crate::failure::Failure;
use crate::output::{Facts, first_few, short};

pub(crate) fn perturb(args: &args::RandomizedResponse, out: &mut impl Write) -> Result<(), Failure> {
    let (truth, answers) = match args.truth {
        Truth::No => (0, 2),
        Truth::Yes => (1, 2),
        Truth::OneOf { answer, answers } => (answer - 1, answers),
    };
    let response = mechanism(&args.cost, answers)?;
    let mut entropy = Entropy::from_os()?;
    let name = |answer: u64| match args.truth {
        Truth::OneOf { .. } => (answer + 1).to_string(),
        Truth::Yes | Truth::No => if answer == 1 { "yes" } else { "no" }.to_owned(),
    };
    args.printing.check(1)?;
    let count = args.printing.count;
    let mut draw = || response.respond(truth, &mut entropy).map(|answer| name(answer.into_value()));
    match args.printing.format {
        Format::Lines | Format::Csv => {
            if args.printing.format == Format::Csv {
                writeln!(out, "answer")?;
            }
            (0..count).try_for_each(|_| Ok(writeln!(out, "{}", draw()?)?))
        }
        Format::Json => {
            let answers = (0..count).map(|_| draw()).collect::<Result<Vec<_>, _>>()?;
            let kept = response.truth_probability().to_f64();
            let loss = response.loss().repeat(count);
            let answer = json!({
                "mechanism": "randomized-response", "answers": answers, "categories": response.categories(),
                "truth_probability": kept, "count": count, "loss": loss,
            });
            Ok(writeln!(out, "{answer:#}")?)
        }
        Format::Table => {
            let answers = (0..count).map(|_| draw()).collect::<Result<Vec<_>, _>>()?;
            let mut facts = Facts::default();
            facts.add("answer", first_few(&answers));
            describe(&response, &args.cost, count, &mut facts);
            Ok(facts.print(out)?)
        }
    }
}

fn mechanism(cost: &ResponseCost, answers: u64) -> Result<RandomizedResponse, Failure> {
    match cost.epsilon {
        Some(epsilon) => Ok(RandomizedResponse::new(answers, epsilon)?),
        None if answers == 2 => Ok(RandomizedResponse::two_coins()),
        None => {
            let message =
                format!("the game with two coins knows yes and no, but {answers} answers were named");
            Err(Failure::new("cli.two-coins", message).hint("use --epsilon"))
        }
    }
}

fn describe(response: &RandomizedResponse, cost: &ResponseCost, count: u64, facts: &mut Facts) {
    let kept = response.truth_probability().to_f64();
    facts.add("mechanism", format!("randomized response, the truth with probability {}", short(kept)));
    let epsilon = cost.epsilon.map_or(3f64.ln(), Epsilon::value);
    facts.add("loss", format!("ε = {}", short(epsilon)));
    if count > 1 {
        facts.add(
            "total",
            format!("{count} answers of one person cost ε = {}", short(epsilon * count as f64)),
        );
    }
}

pub(crate) fn estimate(args: &args::Estimate, out: &mut impl Write) -> Result<(), Failure> {
    let estimate = match (args.unary, args.cost.epsilon) {
        (true, Some(epsilon)) => {
            UnaryEncoding::new(args.categories, epsilon)?.estimate(args.seen, args.total, args.beta)?
        }
        _ => mechanism(&args.cost, args.categories)?.estimate(args.seen, args.total, args.beta)?,
    };
    let (value, low, high) = (estimate.value, estimate.low, estimate.high);
    match args.format {
        Format::Json => {
            let answer = json!({"estimate": value, "low": low, "high": high, "beta": args.beta});
            Ok(writeln!(out, "{answer:#}")?)
        }
        Format::Csv => Ok(writeln!(out, "estimate,low,high\n{value},{low},{high}")?),
        Format::Lines => Ok(writeln!(out, "{value}")?),
        Format::Table => {
            let mut facts = Facts::default();
            let sure = short(100.0 * (1.0 - args.beta));
            facts.add("estimate", format!("{} of all people", short(value)));
            facts.add(
                "interval",
                format!("{} to {}, right in at least {sure} of 100 cases", short(low), short(high)),
            );
            facts.add("loss", "none: this only looks at answers already given");
            Ok(facts.print(out)?)
        }
    }
}
