//! Perfect privacy and perfect accuracy, as more and more people take part.
//!
//! **Statement.** The mean of n values in \[0, 1\] moves by 1/n when one person changes. With
//! ε = 1/√n, Laplace noise has scale 1/(nε) = 1/√n: the cost and the error both go to 0.

use demur_core::Epsilon;
use demur_exact::Rational;
use demur_noise::{Laplace, Mechanism};

use crate::args::account::Plot;
use crate::failure::Failure;
use crate::plot::{Axis, Chart, Curve, INKS, Stroke};

/// n goes from 10 to 10⁷.
const DECADES: std::ops::RangeInclusive<u32> = 1..=7;

pub(crate) fn chart(args: &Plot) -> Result<Chart<'static>, Failure> {
    if args.losses.text.is_some() || args.losses.file.is_some() {
        let message = "this picture is of a mean of n values and takes no losses";
        return Err(Failure::new("cli.losses", message).hint("type `demur account plot size`"));
    }
    let sizes: Vec<u64> = DECADES.map(|decade| 10u64.pow(decade)).collect();
    let errors = sizes.iter().map(|&people| error(people)).collect::<Result<Vec<_>, _>>()?;
    let curve = |name, color, stroke, value: fn(f64) -> f64| {
        let points = sizes.iter().map(|&people| (people as f64, value(people as f64))).collect();
        Curve { name, color, stroke, points }
    };
    let widest = sizes.iter().zip(errors).map(|(&people, error)| (people as f64, error)).collect();
    Ok(Chart {
        title: "Privacy and accuracy by size".to_owned(),
        subject: "a mean of n values in [0, 1], ε = 1/√n, Laplace noise of scale 1/(nε)".to_owned(),
        x: Axis::logarithmic("people n"),
        y: Axis::logarithmic("ε, and the error of the mean"),
        curves: vec![
            Curve { name: "error, 95 %", color: INKS[2], stroke: Stroke::Solid, points: widest },
            curve("mean error", INKS[1], Stroke::Solid, |people| people.powf(-0.5)),
            curve("ε", INKS[0], Stroke::Dashed, |people| people.powf(-0.5)),
        ],
    })
}

/// The error that the noise stays within in 95 of 100 cases.
fn error(people: u64) -> Result<f64, Failure> {
    let epsilon = Epsilon::new((people as f64).powf(-0.5))
        .map_err(|error| Failure::new(error.code(), error.to_string()))?;
    let sensitivity = Rational::new(1, people.into());
    Ok(Laplace::real(sensitivity, epsilon)?.error(0.05)?.each)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_goes_to_zero_like_one_over_the_root() {
        for people in [100u64, 10_000, 1_000_000] {
            let scaled = error(people).unwrap() * (people as f64).sqrt();
            assert!((scaled - 20f64.ln()).abs() < 0.01, "{people}: {scaled}");
        }
    }
}
