//! The trade-off curve: how well anybody can test for one person.
//!
//! **Definition.** A test with type I error α has a type II error of at least
//!
//! ```text
//! f(α) = max over ε of  1 − δ(ε) − e^ε·α  and  e^(−ε)·(1 − δ(ε) − α)
//! ```
//!
//! Every ε gives a true lower bound, so the maximum over a grid does too.

use demur_accounting::Account;
use demur_core::PrivacyLoss;
use demur_exact::Rational;

use super::{Point, Profile, subject};
use crate::failure::Failure;
use crate::plot::{Axis, Chart, Curve, INKS, Stroke};

const POINTS: u32 = 200;
const ERRORS: u32 = 400;

pub(crate) fn chart(loss: &PrivacyLoss) -> Result<Chart<'static>, Failure> {
    let profile = Profile::of(&Account::of(loss)?, Rational::new(1, 1_000_000), POINTS)?;
    let errors = (0..=ERRORS).map(|index| f64::from(index) / f64::from(ERRORS));
    let points = errors.map(|alpha| (alpha, type_two(&profile, alpha))).collect();
    Ok(Chart {
        title: "What any test for one person can do".to_owned(),
        subject: subject(loss),
        x: Axis::linear("type I error: somebody absent is found"),
        y: Axis::linear("type II error: somebody present is missed"),
        curves: vec![
            Curve { name: "best test", color: INKS[0], stroke: Stroke::Solid, points },
            Curve {
                name: "guessing",
                color: INKS[1],
                stroke: Stroke::Dashed,
                points: vec![(0.0, 1.0), (0.5, 0.5), (1.0, 0.0)],
            },
        ],
    })
}

/// The least type II error at type I error α.
fn type_two(profile: &Profile, alpha: f64) -> f64 {
    let at = |point: &Point| {
        let (likely, kept) = (point.epsilon.exp(), 1.0 - point.upper);
        f64::max(kept - likely * alpha, (kept - alpha) / likely)
    };
    profile.points.iter().map(at).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_point_gives_the_two_lines_of_its_guarantee() {
        let profile = Profile { points: vec![Point { epsilon: 2f64.ln(), lower: 0.1, upper: 0.1 }] };
        for (alpha, least) in [(0.0, 0.9), (0.3, 0.3), (0.1, 0.7), (0.7, 0.1), (1.0, 0.0)] {
            assert!((type_two(&profile, alpha) - least).abs() < 1e-12, "{alpha}");
        }
    }
}
