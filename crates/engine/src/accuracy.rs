//! [`Accuracy`]: how far off answers may be, from which the least ε follows.
//!
//! The search asks the price and not the data, so it is free and tells nothing.

use std::str::FromStr;

use demur_core::Epsilon;

use crate::EngineError;
use crate::quote::Quote;

/// The ε that are tried.
const LEAST: f64 = 1e-6;
const MOST: f64 = 1000.0;
/// What is found is at most this much more than the least.
const CLOSE: f64 = 1.001;

/// `50@95%`: off by at most 50, with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Accuracy {
    error: f64,
    /// The chance of a larger error.
    beta: f64,
}

impl FromStr for Accuracy {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self, EngineError> {
        let (error, confidence) = text.split_once('@').unwrap_or((text, "95%"));
        let share = match confidence.trim().strip_suffix('%') {
            Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
            None => confidence.trim().parse(),
        };
        match (error.trim().parse::<f64>(), share) {
            (Ok(error), Ok(share))
                if error.is_finite() && error > 0.0 && (0.5..=0.999_999).contains(&share) =>
            {
                Ok(Self { error, beta: 1.0 - share })
            }
            _ => Err(EngineError::new(
                "engine.accuracy",
                format!(
                    "an error should read like 50@95%, with a confidence from 50% to 99.9999%, but it is `{text}`"
                ),
            )),
        }
    }
}

impl Accuracy {
    /// The quote at the least ε with which every answer is as close as wanted, or at most a thousandth more.
    pub(crate) fn least(
        self,
        at: impl Fn(Epsilon) -> Result<Quote, EngineError>,
    ) -> Result<Quote, EngineError> {
        let priced = |epsilon: f64| at(Epsilon::new(epsilon)?);
        let best = priced(MOST)?;
        let reached = self.worst(&best)?;
        if reached > self.error {
            let text =
                format!("an error of {} is out of reach: even ε = {MOST} gives {reached:.4}", self.error);
            return Err(EngineError::new("engine.accuracy", text));
        }
        let (mut low, mut high, mut found) = (LEAST.ln(), MOST.ln(), best);
        while high - low > f64::ln(CLOSE) / 2.0 {
            let middle = (low + high) / 2.0;
            let quote = priced(round_up(middle.exp()))?;
            if self.worst(&quote)? <= self.error {
                (high, found) = (middle, quote);
            } else {
                low = middle;
            }
        }
        Ok(found)
    }

    /// The largest error of any answer.
    fn worst(self, quote: &Quote) -> Result<f64, EngineError> {
        let statistics = &quote.bounded.statistics;
        let errors = statistics.iter().map(|statistic| quote.error(statistic, self.beta));
        errors.collect::<Option<Vec<_>>>().map(|errors| errors.into_iter().fold(0.0, f64::max)).ok_or_else(
            || {
                EngineError::new(
                    "engine.accuracy",
                    "how far off a mean or a quantile is depends on the data, so no ε can be found for it",
                )
                .hint("ask for counts and sums with --error, or give --epsilon")
            },
        )
    }
}

/// The next number with four digits.
fn round_up(value: f64) -> f64 {
    let digits = 3.0 - value.log10().floor();
    let text =
        format!("{:.*}", digits.max(0.0) as usize, (value * 10f64.powf(digits)).ceil() / 10f64.powf(digits));
    text.parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_and_a_confidence_are_read() {
        let read = |text: &str| text.parse::<Accuracy>().ok();
        assert_eq!(read("50@95%").map(|found| found.error), Some(50.0));
        assert_eq!(read("50").map(|found| (found.beta * 100.0).round()), Some(5.0));
        assert_eq!(read("0.5 @ 0.99").map(|found| (found.beta * 100.0).round()), Some(1.0));
        for wrong in ["", "@", "-1@95%", "50@", "50@100%", "50@20%", "nan@95%", "inf", "50@95%%"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn four_digits_are_never_less() {
        for (value, rounded) in
            [(0.059_871_2, 0.05988), (1.0, 1.0), (123.41, 123.5), (0.000_123_45, 0.000_123_5)]
        {
            assert!(
                (round_up(value) - rounded).abs() < 1e-12 && round_up(value) >= value,
                "{value}: {}",
                round_up(value)
            );
        }
    }
}
