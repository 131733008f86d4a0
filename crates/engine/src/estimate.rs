//! [`Estimate`]: a statistic made from noisy numbers, with its interval.

use demur_exact::Rational;
use demur_tally::Bounds;

use crate::EngineError;
use crate::noise::Noise;

/// The chance that the truth lies outside of an interval.
const OUTSIDE: f64 = 0.05;

/// A noisy number and the law of its noise.
#[derive(Clone, Copy)]
pub(crate) struct Noisy<'a> {
    pub(crate) value: i128,
    pub(crate) noise: &'a Noise,
}

/// What is known of a true number once noise was added.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Estimate {
    /// In whole steps.
    pub(crate) steps: i128,
    /// In its own unit.
    pub(crate) value: f64,
    /// Several values, where a list was asked for.
    pub(crate) list: Vec<f64>,
    /// Where the truth lies.
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

impl Estimate {
    /// A noisy number as it is.
    pub(crate) fn plain(noisy: Noisy<'_>, step: &Rational) -> Result<Self, EngineError> {
        let step = step.to_f64();
        let (value, off) = (noisy.value as f64 * step, noisy.noise.quantile(OUTSIDE)? * step);
        Ok(Self { steps: noisy.value, value, low: Some(value - off), high: Some(value + off), list: Vec::new() })
    }

    /// Deviations from a centre and their number make a sum.
    pub(crate) fn sum(deviation: Noisy<'_>, count: Noisy<'_>, centre: i64, step: &Rational) -> Result<Self, EngineError> {
        let steps = deviation.value.saturating_add(count.value.saturating_mul(centre.into()));
        let off = deviation.noise.quantile(OUTSIDE / 2.0)? + (centre as f64).abs() * count.noise.quantile(OUTSIDE / 2.0)?;
        let step = step.to_f64();
        let (value, off) = (steps as f64 * step, off * step);
        Ok(Self { steps, value, low: Some(value - off), high: Some(value + off), list: Vec::new() })
    }

    /// Deviations from a centre, divided by their number, make a mean; it lies where values lie.
    pub(crate) fn mean(
        deviation: Noisy<'_>,
        count: Noisy<'_>,
        centre: i64,
        row: Bounds,
        step: &Rational,
    ) -> Result<Self, EngineError> {
        let (s, n) = (deviation.value as f64, count.value as f64);
        let (off_s, off_n) = (deviation.noise.quantile(OUTSIDE / 2.0)?, count.noise.quantile(OUTSIDE / 2.0)?);
        let (centre, low, high) = (centre as f64, row.low as f64, row.high as f64);
        let inside = |mean: f64| (centre + mean).clamp(low, high);
        let corners = [s - off_s, s + off_s].map(|s| [n - off_n, n + off_n].map(|n| inside(s / n)));
        let all = corners.as_flattened().iter();
        let (least, most) = match n - off_n >= 1.0 {
            true => (all.clone().copied().fold(f64::INFINITY, f64::min), all.copied().fold(f64::NEG_INFINITY, f64::max)),
            false => (low, high),
        };
        let step = step.to_f64();
        let value = inside(s / n.max(1.0)) * step;
        Ok(Self { steps: 0, value, low: Some(least * step), high: Some(most * step), list: Vec::new() })
    }
}
