//! The privacy profile: δ against ε.

use demur_accounting::Account;
use demur_core::PrivacyLoss;
use demur_exact::Rational;

use super::{Point, Profile, subject};
use crate::failure::Failure;
use crate::plot::{Axis, Chart, Curve, INKS, Stroke};

/// The curve ends near this δ.
const LEAST: (i128, u128) = (1, 1_000_000_000_000);
const POINTS: u32 = 120;
/// Bounds that are closer than this are one line.
const VISIBLE: f64 = 0.01;

pub(crate) fn chart(loss: &PrivacyLoss) -> Result<Chart<'static>, Failure> {
    let profile = Profile::of(&Account::of(loss)?, Rational::new(LEAST.0, LEAST.1), POINTS)?;
    let shown = |value: f64| value > (LEAST.0 as f64 / LEAST.1 as f64) / 100.0;
    let line = |of: fn(&Point) -> f64| -> Vec<(f64, f64)> {
        let points = profile.points.iter().map(|point| (point.epsilon, of(point)));
        points.filter(|(_, delta)| shown(*delta)).collect()
    };
    if !profile.points.iter().any(|point| shown(point.upper)) {
        return Err(Failure::new("cli.plot", "there is nothing to draw: these losses cost nothing"));
    }
    let apart =
        profile.points.iter().any(|point| point.upper * (1.0 - VISIBLE) > point.lower && shown(point.upper));
    let name = if apart { "proven δ" } else { "δ(ε)" };
    let mut curves =
        vec![Curve { name, color: INKS[0], stroke: Stroke::Solid, points: line(|point| point.upper) }];
    if apart {
        let points = line(|point| point.lower);
        curves.push(Curve { name: "no δ below", color: INKS[1], stroke: Stroke::Dashed, points });
    }
    Ok(Chart {
        title: "Privacy profile".to_owned(),
        subject: subject(loss),
        x: Axis::linear("ε"),
        y: Axis::decades("δ"),
        curves,
    })
}
