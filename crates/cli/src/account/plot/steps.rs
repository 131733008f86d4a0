//! ε against the number of uses, by several methods.

use demur_accounting::{Account, Method};
use demur_core::PrivacyLoss;
use demur_exact::Rational;

use super::subject;
use crate::account::figure::Figure;
use crate::args::account::Plot;
use crate::failure::Failure;
use crate::plot::{Axis, Chart, Curve, INKS, Stroke};

/// Numbers of uses that are looked at.
const POINTS: u32 = 24;
/// The methods beside the best one, with their names in the picture.
const OTHERS: [(Method, &str); 4] = [
    (Method::Renyi, "Rényi"),
    (Method::ZeroConcentrated, "zCDP"),
    (Method::Advanced, "advanced"),
    (Method::Basic, "basic"),
];

pub(crate) fn chart(args: &Plot) -> Result<Chart<'static>, Failure> {
    let loss = args.losses.read()?;
    let delta = Figure::delta(&args.delta)?;
    let counts = counts(Figure::steps(&args.steps)?);
    let best = curve("tight", INKS[0], &counts, |uses| epsilon(&loss, uses, None, &delta.value))?;
    let mut curves = vec![best];
    for ((method, name), color) in OTHERS.into_iter().zip(&INKS[1..]) {
        let found = curve(name, color, &counts, |uses| epsilon(&loss, uses, Some(method), &delta.value));
        curves.extend(found.ok().map(|curve| Curve { stroke: Stroke::Dashed, ..curve }));
    }
    Ok(Chart {
        title: format!("Cost of k uses at δ = {}", delta.text),
        subject: subject(&loss),
        x: Axis::logarithmic("uses k"),
        y: Axis::logarithmic("ε"),
        curves,
    })
}

/// Whole numbers from 1 to `most`, evenly spread on a logarithmic axis.
fn counts(most: u64) -> Vec<u64> {
    let spread = |index: u32| (most as f64).powf(f64::from(index) / f64::from(POINTS)).round() as u64;
    let mut counts: Vec<u64> = (0..=POINTS).map(spread).collect();
    counts.dedup();
    counts
}

/// The points that have an answer; the first failure when there are none.
fn curve<'a>(
    name: &'a str,
    color: &'a str,
    counts: &[u64],
    epsilon: impl Fn(u64) -> Result<f64, Failure>,
) -> Result<Curve<'a>, Failure> {
    let (mut points, mut first) = (Vec::new(), None);
    for &uses in counts {
        match epsilon(uses) {
            Ok(value) => points.push((uses as f64, value)),
            Err(failure) => first = first.or(Some(failure)),
        }
    }
    match (points.is_empty(), first) {
        (true, Some(failure)) => Err(failure),
        _ => Ok(Curve { name, color, stroke: Stroke::Solid, points }),
    }
}

fn epsilon(loss: &PrivacyLoss, uses: u64, method: Option<Method>, delta: &Rational) -> Result<f64, Failure> {
    let account = Account::of(&loss.clone().repeat(uses))?;
    let answer = match method {
        None => account.epsilon(delta)?,
        Some(method) => account.epsilon_by(method, delta)?,
    };
    match answer.bounds.upper {
        upper if upper.is_finite() && upper > 0.0 => Ok(upper),
        _ => Err(Failure::new("cli.unbounded", format!("{uses} uses have no finite epsilon above 0"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_start_at_one_and_end_at_the_most() {
        for most in [1, 2, 10, 1000, 1_000_000_000_000] {
            let counts = counts(most);
            assert_eq!((counts[0], counts[counts.len() - 1]), (1, most));
            assert!(counts.is_sorted());
        }
    }
}
