//! The trade-off curve: how well anybody can test for one person.
//!
//! **Definition.** A test with type I error α has a type II error of at least
//!
//! ```text
//! f(α) = max over ε of  1 − δ(ε) − e^ε·α  and  e^(−ε)·(1 − δ(ε) − α)
//! ```
//!
//! Every ε with an upper bound on its δ gives a true lower bound on f, so the maximum over a grid does too: no test
//! does better. With lower bounds on δ the same says, up to the grid, what some test does. Where the two are
//! closer than a stroke is wide, one curve stands for both, and says so.

use demur_accounting::Account;
use demur_core::PrivacyLoss;
use demur_exact::Rational;

use super::{Point, Profile, subject};
use crate::failure::Failure;
use crate::plot::{Axis, Chart, Curve, INKS, Stroke};

const POINTS: u32 = 200;
const ERRORS: u32 = 400;
/// Curves that are closer than this are one line.
const VISIBLE: f64 = 0.004;

pub(crate) fn chart(loss: &PrivacyLoss) -> Result<Chart<'static>, Failure> {
    let profile = Profile::of(&Account::of(loss)?, Rational::new(1, 1_000_000), POINTS)?;
    Ok(Chart {
        title: "What any test for one person can do".to_owned(),
        subject: subject(loss),
        x: Axis::linear("type I error: somebody absent is found"),
        y: Axis::linear("type II error: somebody present is missed"),
        curves: curves(&profile),
    })
}

fn curves(profile: &Profile) -> Vec<Curve<'static>> {
    let curve = |name, color, stroke, delta: fn(&Point) -> f64| {
        let errors = (0..=ERRORS).map(|index| f64::from(index) / f64::from(ERRORS));
        let points = errors.map(|alpha| (alpha, type_two(profile, alpha, delta))).collect();
        Curve { name, color, stroke, points }
    };
    let guessing = Curve {
        name: "guessing",
        color: INKS[1],
        stroke: Stroke::Dashed,
        points: vec![(0.0, 1.0), (0.5, 0.5), (1.0, 0.0)],
    };
    let mut least = curve("no test does better", INKS[0], Stroke::Solid, |point| point.upper);
    let most = curve("some test does this", INKS[2], Stroke::Dashed, |point| point.lower);
    let apart = least.points.iter().zip(&most.points).any(|(low, high)| high.1 - low.1 > VISIBLE);
    let known = profile.points.iter().any(|point| point.lower > 0.0);
    match (apart, known) {
        (false, _) => {
            least.name = "best test (both bounds)";
            vec![least, guessing]
        }
        (true, true) => vec![least, most, guessing],
        (true, false) => vec![least, guessing],
    }
}

/// The least type II error at type I error α, by one of the bounds on δ.
fn type_two(profile: &Profile, alpha: f64, delta: fn(&Point) -> f64) -> f64 {
    let at = |point: &Point| {
        let (likely, kept) = (point.epsilon.exp(), 1.0 - delta(point));
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
            assert!((type_two(&profile, alpha, |point| point.upper) - least).abs() < 1e-12, "{alpha}");
        }
    }

    #[test]
    fn both_bounds_are_drawn_where_they_can_be_told_apart() {
        let names = |lower: f64| -> Vec<&str> {
            let profile = Profile { points: vec![Point { epsilon: 0.0, lower, upper: 0.3 }] };
            curves(&profile).iter().map(|curve| curve.name).collect()
        };
        assert_eq!(names(0.299), ["best test (both bounds)", "guessing"]);
        assert_eq!(names(0.2), ["no test does better", "some test does this", "guessing"]);
        assert_eq!(names(0.0), ["no test does better", "guessing"]);
    }
}
