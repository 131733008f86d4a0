//! Private choice from the command line.

use std::io::Write;
use std::path::Path;

use demur_engine::{Choices, Term};
use demur_exact::float::mul_up;
use demur_noise::Exponential;
use serde_json::json;

use super::numbers::open;
use super::published::Published;
use crate::args::{self, Format};
use crate::failure::Failure;
use crate::output::{Facts, first_few, short};
use crate::words::up;

pub(crate) fn choose(args: &args::Exponential, out: &mut impl Write) -> Result<(), Failure> {
    let (names, scores) = read(&args.scores)?;
    let common = &args.common;
    let mechanism = Exponential::new(common.sensitivity.clone(), common.epsilon)?.by(args.method.into());
    common.printing.check(1)?;
    let count = common.printing.count;
    let text = format!(
        "noise {}: choice among {} candidates, sensitivity {}, epsilon {}, {count} time(s)",
        args.method.name(),
        names.len(),
        common.sensitivity,
        common.epsilon.value()
    );
    let term = Term {
        what: format!("choice among {} candidates", names.len()),
        bounds: None,
        sensitivity: common.sensitivity.to_string(),
        mechanism: mechanism.loss(),
        count,
    };
    let mut published = Published::open(
        &common.printing.charging,
        text,
        (term, 1),
        || Ok(Choices { mechanism: &mechanism, names: &names, scores: scores.clone(), count }),
        |entropy, times| {
            let release = mechanism.choose_many(&scores, times as usize, entropy)?;
            Ok(release.value().iter().map(|&index| names[index].clone()).collect())
        },
    )?;
    match common.printing.format {
        Format::Lines => published.each(|_, name| Ok(writeln!(out, "{name}")?)),
        Format::Csv => {
            let mut writer = csv::Writer::from_writer(out);
            let mut write =
                |name: &str| writer.write_record([name]).map_err(|e| std::io::Error::other(e).into());
            write("candidate")?;
            published.each(|_, name| write(name))
        }
        Format::Json => {
            let chosen = published.gather()?;
            let mut answer = json!({
                "mechanism": args.method.name(), "chosen": chosen,
                "candidates": names.len(), "epsilon": common.epsilon.value(), "count": count,
                "loss": mechanism.loss().repeat(count),
            });
            if let Some(charge) = published.json() {
                answer["charge"] = charge;
            }
            Ok(writeln!(out, "{answer:#}")?)
        }
        Format::Table => {
            let mut facts = Facts::default();
            facts.add("chosen", first_few(&published.gather()?));
            facts.add("mechanism", format!("{} over {} candidates", args.method.name(), names.len()));
            let error = short(mechanism.error(0.05, names.len() as u64, 1));
            facts.add("error", format!("within {error} of the best score in at least 95 of 100 cases"));
            facts.add("loss", format!("ε = {}", common.epsilon.value()));
            if count > 1 {
                let total = up(mul_up(common.epsilon.value(), count as f64), 4);
                facts.add("total", format!("{count} choices cost ε = {total}"));
            }
            published.describe(&mut facts);
            Ok(facts.print(out)?)
        }
    }
}

impl args::SelectionMethod {
    fn name(self) -> &'static str {
        match self {
            Self::Exponential => "exponential",
            Self::PermuteAndFlip => "permute-and-flip",
        }
    }
}

/// Candidates and their scores.
fn read(path: &Path) -> Result<(Vec<String>, Vec<f64>), Failure> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(open(path)?);
    let (mut names, mut scores) = (Vec::new(), Vec::new());
    for (index, record) in reader.records().enumerate() {
        let bad = |found: &str| {
            let message = format!("line {} of `{}` {found}", index + 1, path.display());
            Failure::new("cli.scores", message).hint("write one `candidate,score` on each line")
        };
        let record = record.map_err(|error| bad(&format!("cannot be read: {error}")))?;
        if record.len() != 2 {
            return Err(bad(&format!("has {} fields instead of 2", record.len())));
        }
        if index == 0 && record[1].eq_ignore_ascii_case("score") {
            continue;
        }
        let score: f64 = record[1].parse().map_err(|_| bad("has a score that is not a number"))?;
        if !score.is_finite() {
            return Err(bad("has a score that is not finite"));
        }
        names.push(record[0].to_owned());
        scores.push(score);
    }
    if names.is_empty() {
        return Err(Failure::new("cli.scores", format!("`{}` names no candidate", path.display())));
    }
    Ok((names, scores))
}
