//! [`Accuracy`]: how wrong an answer may be, and how often.

use std::fmt;

use crate::Error;
use crate::range::{Range, codes, show};

const ALPHA: Range = Range {
    name: "alpha",
    allowed: "a finite number above 0",
    max: f64::MAX,
    too_large: "",
    zero: "; no private answer is always exact",
    codes: codes!("alpha"),
};

const BETA: Range = Range {
    name: "beta",
    allowed: "a number above 0 and below 1",
    max: 1.0 - f64::EPSILON / 2.0,
    too_large: ", which is not below 1",
    zero: "; some error is always possible",
    codes: codes!("beta"),
};

/// (α, β)-accuracy: with probability at least 1 − β no answer is wrong by more than α.
///
/// We write β for this probability, to keep δ for privacy.
///
/// ```
/// use demur_core::Accuracy;
///
/// let accuracy = Accuracy::new(50.0, 0.05)?;
/// assert_eq!(accuracy.to_string(), "error above 50 with probability at most 0.05");
/// # Ok::<(), demur_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    alpha: f64,
    beta: f64,
}

impl Accuracy {
    /// An error of at most `alpha`, except with probability `beta`.
    pub fn new(alpha: f64, beta: f64) -> Result<Self, Error> {
        Ok(Self { alpha: ALPHA.check(alpha)?, beta: BETA.check(beta)? })
    }

    /// The largest error that counts as right.
    pub fn alpha(self) -> f64 {
        self.alpha
    }

    /// The probability of a larger error.
    pub fn beta(self) -> f64 {
        self.beta
    }
}

impl fmt::Display for Accuracy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (alpha, beta) = (show(self.alpha), show(self.beta));
        write!(f, "error above {alpha} with probability at most {beta}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_numbers_are_checked() {
        let accuracy = Accuracy::new(0.01, 0.05).unwrap();
        assert_eq!((accuracy.alpha(), accuracy.beta()), (0.01, 0.05));
        for (alpha, beta, code, text) in [
            (
                0.0,
                0.5,
                "core.alpha.zero",
                "alpha must be a finite number above 0, but 0 was given; no private answer is always exact",
            ),
            (
                1.0,
                1.0,
                "core.beta.too-large",
                "beta must be a number above 0 and below 1, but 1 was given, which is not below 1",
            ),
        ] {
            let error = Accuracy::new(alpha, beta).unwrap_err();
            assert_eq!((error.code(), error.to_string().as_str()), (code, text));
        }
    }
}
