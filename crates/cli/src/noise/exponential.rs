//! Private choice from the command line.

use std::io::Write;
use std::path::Path;

use demur_noise::{Entropy, Exponential};
use serde_json::json;

use super::numbers::open;
use crate::args::{self, Format};
use crate::failure::Failure;
use crate::output::{Facts, first_few, short};

/// Choices made between two writes.
const BATCH: u64 = 1 << 14;

pub(crate) fn choose(args: &args::Exponential, out: &mut impl Write) -> Result<(), Failure> {
    let (names, scores) = read(&args.scores)?;
    let common = &args.common;
    let mechanism = Exponential::new(common.sensitivity.clone(), common.epsilon)?.by(args.method.into());
    common.printing.check(1)?;
    let mut entropy = Entropy::from_os()?;
    let count = common.printing.count;
    match common.printing.format {
        Format::Lines => {
            each(&mechanism, &scores, count, &mut entropy, |index| Ok(writeln!(out, "{}", names[index])?))
        }
        Format::Csv => {
            let mut writer = csv::Writer::from_writer(out);
            let mut write =
                |name: &str| writer.write_record([name]).map_err(|e| std::io::Error::other(e).into());
            write("candidate")?;
            each(&mechanism, &scores, count, &mut entropy, |index| write(&names[index]))
        }
        Format::Json => {
            let mut chosen = Vec::new();
            each(&mechanism, &scores, count, &mut entropy, |index| {
                chosen.push(&names[index]);
                Ok(())
            })?;
            let answer = json!({
                "mechanism": args.method.name(), "chosen": chosen,
                "candidates": names.len(), "epsilon": common.epsilon.value(), "count": count,
                "loss": mechanism.loss().repeat(count),
            });
            Ok(writeln!(out, "{answer:#}")?)
        }
        Format::Table => {
            let mut facts = Facts::default();
            let mut shown = Vec::new();
            each(&mechanism, &scores, count, &mut entropy, |index| {
                shown.push(names[index].as_str());
                Ok(())
            })?;
            facts.add("chosen", first_few(&shown));
            facts.add("mechanism", format!("{} over {} candidates", args.method.name(), names.len()));
            let error = short(mechanism.error(0.05, names.len() as u64, 1));
            facts.add("error", format!("within {error} of the best score in at least 95 of 100 cases"));
            facts.add("loss", format!("ε = {}", common.epsilon.value()));
            if count > 1 {
                let total = short(common.epsilon.value() * count as f64);
                facts.add("total", format!("{count} choices cost ε = {total}"));
            }
            Ok(facts.print(out)?)
        }
    }
}

/// Chooses `count` times, a batch at a time.
fn each(
    mechanism: &Exponential,
    scores: &[f64],
    count: u64,
    entropy: &mut Entropy,
    mut take: impl FnMut(usize) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut left = count;
    while left > 0 {
        let now = left.min(BATCH);
        let release = mechanism.choose_many(scores, now as usize, entropy)?;
        release.value().iter().try_for_each(|&index| take(index))?;
        left -= now;
    }
    Ok(())
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
