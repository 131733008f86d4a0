//! Randomized response and its estimator from the command line.

use std::io::Write;

use demur_core::Epsilon;
use demur_engine::{Responses, Term};
use demur_exact::float::mul_up;
use demur_noise::{RandomizedResponse, UnaryEncoding};
use serde_json::json;

use super::published::Published;
use crate::args::{self, Format, ResponseCost, Truth};
use crate::failure::Failure;
use crate::output::{Facts, first_few, short};
use crate::words::up;

pub(crate) fn perturb(args: &args::RandomizedResponse, out: &mut impl Write) -> Result<(), Failure> {
    let (truth, answers) = match args.truth {
        Truth::No => (0, 2),
        Truth::Yes => (1, 2),
        Truth::OneOf { answer, answers } => (answer - 1, answers),
    };
    let response = mechanism(&args.cost, answers)?;
    let name = |answer: u64| match args.truth {
        Truth::OneOf { .. } => (answer + 1).to_string(),
        Truth::Yes | Truth::No => if answer == 1 { "yes" } else { "no" }.to_owned(),
    };
    args.printing.check(1)?;
    let count = args.printing.count;
    let text = format!("noise randomized-response: one of {answers} answers, {count} time(s)");
    let what = format!("one of {answers} answers");
    let (sensitivity, mechanism) = ("any".to_owned(), response.loss());
    let term = Term { what, bounds: None, sensitivity, mechanism, count };
    let mut published = Published::open(
        &args.printing.charging,
        text,
        (term, 1),
        || Ok(Responses { mechanism: &response, name: &name, truth, count }),
        |entropy, times| {
            let one = |_| Ok(name(response.respond(truth, entropy)?.into_value()));
            (0..times).map(one).collect()
        },
    )?;
    match args.printing.format {
        Format::Lines | Format::Csv => {
            if args.printing.format == Format::Csv {
                writeln!(out, "answer")?;
            }
            published.each(|_, answer| Ok(writeln!(out, "{answer}")?))
        }
        Format::Json => {
            let kept = response.truth_probability().to_f64();
            let loss = response.loss().repeat(count);
            let mut answer = json!({
                "mechanism": "randomized-response", "answers": published.gather()?,
                "categories": response.categories(), "truth_probability": kept, "count": count, "loss": loss,
            });
            if let Some(charge) = published.json() {
                answer["charge"] = charge;
            }
            Ok(writeln!(out, "{answer:#}")?)
        }
        Format::Table => {
            let mut facts = Facts::default();
            facts.add("answer", first_few(&published.gather()?));
            describe(&response, &args.cost, count, &mut facts);
            published.describe(&mut facts);
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
    facts.add("loss", format!("ε = {}", up(epsilon, 4)));
    if count > 1 {
        facts.add(
            "total",
            format!("{count} answers of one person cost ε = {}", up(mul_up(epsilon, count as f64), 4)),
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
