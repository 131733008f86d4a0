//! [`Rho`]: the one number of zero-concentrated differential privacy.
//!
//! **Definition.** A mechanism is ρ-zCDP when for neighbouring datasets its Rényi
//! divergence of every order α > 1 is at most ρ·α.
//!
//! **Why.** ρ adds up under composition, and Gaussian noise of variance σ² for an
//! ℓ2 sensitivity Δ has ρ = Δ² / 2σ² exactly.
//!
//! **References.** \[Bun2016\].

use demur_exact::Rational;

use crate::Error;
use crate::range::{self, Range, checked_number, codes};

const RANGE: Range = Range {
    name: "rho",
    allowed: "a finite number above 0 and at most 1000000",
    max: 1e6,
    too_large: ", which is above 1000000",
    zero: "; only perfect privacy has rho 0",
    codes: codes!("rho"),
};

/// The ρ of zero-concentrated differential privacy.
///
/// ```
/// use demur_core::Rho;
///
/// assert_eq!(Rho::new(0.125)?.value(), 0.125);
/// assert!(Rho::new(f64::INFINITY).is_err());
/// # Ok::<(), demur_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rho(f64);

impl Rho {
    /// Perfect privacy.
    ///
    /// [`Rho::new`] refuses 0, so that nobody asks for it by accident.
    pub const ZERO: Self = Self(0.0);

    /// A ρ above 0 and at most 1000000.
    pub fn new(value: f64) -> Result<Self, Error> {
        RANGE.check(value).map(Self)
    }

    /// The number as a double.
    pub fn value(self) -> f64 {
        self.0
    }

    /// The fraction that its shortest decimal stands for.
    pub fn exact(self) -> Rational {
        range::exact(self.0)
    }
}

checked_number!(Rho);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_speak_of_rho() {
        let error = Rho::new(0.0).unwrap_err();
        assert_eq!(error.code(), "core.rho.zero");
        assert_eq!(
            error.to_string(),
            "rho must be a finite number above 0 and at most 1000000, but 0 was given; only perfect \
             privacy has rho 0"
        );
        assert_eq!("2e6".parse::<Rho>().unwrap_err().code(), "core.rho.too-large");
    }

    #[test]
    fn json_and_text_give_the_same_number_back() {
        let rho = Rho::new(0.1).unwrap();
        assert_eq!(serde_json::from_str::<Rho>(&serde_json::to_string(&rho).unwrap()).unwrap(), rho);
        assert_eq!(rho.to_string().parse::<Rho>().unwrap(), rho);
    }
}
