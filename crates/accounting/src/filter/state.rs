//! [`State`]: what has been spent, as whole numbers; and [`Amounts`], what they are worth.

use std::fmt;

use demur_exact::Rational;
use serde::{Deserialize, Serialize};

use super::refusal::four_digits;
use super::units::Units;

/// What has been spent under one filter, to be stored beside it.
///
/// JSON has whole numbers as text: one amount for each capacity of the filter, and the δ. What a unit is worth,
/// the filter says ([`spent`](super::Filter::spent)); a state is of no use without the filter it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    pub(super) spent: Vec<Units>,
    pub(super) delta: Units,
}

/// In what a filter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Measure {
    /// ε of pure privacy.
    Epsilon,
    /// ρ of zero-concentrated privacy.
    Rho,
    /// μ² of Gaussian privacy.
    MuSquared,
    /// The Rényi divergence of this order.
    Renyi(u32),
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Epsilon => f.write_str("ε"),
            Self::Rho => f.write_str("ρ"),
            Self::MuSquared => f.write_str("μ²"),
            Self::Renyi(order) => write!(f, "D{order}"),
        }
    }
}

/// Amounts in the measures of a filter, and a δ beside them, exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amounts {
    /// One amount in each measure; a Rényi filter has as many as it has orders.
    pub values: Vec<(Measure, Rational)>,
    /// Σδ of losses that have one.
    pub delta: Rational,
    /// Whether people should read these numbers rounded up.
    pub(super) round_up: bool,
}

/// Four digits of each number, prices and what was spent rounded up, what is left rounded down.
impl fmt::Display for Amounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = |value: &Rational| match value.to_f64() {
            // What an endless price is worth in units is nothing to show.
            large if large > 1e7 => "∞".to_owned(),
            value => four_digits(value, self.round_up).to_string(),
        };
        for (index, (measure, value)) in self.values.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{measure} = {}", digits(value))?;
        }
        if self.delta.is_zero() { Ok(()) } else { write!(f, ", δ = {}", short(&self.delta, self.round_up)) }
    }
}

/// A δ in the form `1e-9`.
fn short(delta: &Rational, up: bool) -> String {
    format!("{:e}", four_digits(delta.to_f64(), up))
}
