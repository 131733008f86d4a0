//! The least noise for a wanted guarantee.

use std::str::FromStr;

use demur_core::PrivacyLoss;
use demur_exact::Rational;

use crate::{Account, AccountingError};

/// The guarantee that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// ε.
    pub epsilon: Rational,
    /// δ.
    pub delta: Rational,
}

/// What is fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// How far one person can move the answer.
    pub sensitivity: Rational,
    /// How often the mechanism is used.
    pub steps: u64,
    /// Each person is in the sample with this probability; 1 is everybody.
    pub rate: Rational,
    /// σ, to find steps or rate.
    pub sigma: Option<Rational>,
}

/// What is sought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unknown {
    /// σ of Gaussian noise.
    Gaussian,
    /// σ of discrete Gaussian noise.
    DiscreteGaussian,
    /// Scale of Laplace noise.
    Laplace,
    /// Scale of discrete Laplace noise.
    DiscreteLaplace,
    /// Bound of truncated Laplace noise.
    TruncatedLaplace,
    /// Bound of truncated discrete Laplace noise.
    TruncatedDiscreteLaplace,
    /// ε of one randomized answer.
    RandomizedResponse,
    /// ε of one choice.
    Exponential,
    /// How often Gaussian noise may be used.
    Steps,
    /// How large a sample may be.
    Rate,
}

impl Unknown {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Gaussian,
        Self::DiscreteGaussian,
        Self::Laplace,
        Self::DiscreteLaplace,
        Self::TruncatedLaplace,
        Self::TruncatedDiscreteLaplace,
        Self::RandomizedResponse,
        Self::Exponential,
        Self::Steps,
        Self::Rate,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gaussian => "gaussian",
            Self::DiscreteGaussian => "discrete_gaussian",
            Self::Laplace => "laplace",
            Self::DiscreteLaplace => "discrete_laplace",
            Self::TruncatedLaplace => "truncated_laplace",
            Self::TruncatedDiscreteLaplace => "truncated_discrete_laplace",
            Self::RandomizedResponse => "randomized_response",
            Self::Exponential => "exponential",
            Self::Steps => "steps",
            Self::Rate => "rate",
        }
    }
}

impl FromStr for Unknown {
    type Err = AccountingError;

    fn from_str(text: &str) -> Result<Self, AccountingError> {
        Self::ALL.into_iter().find(|unknown| unknown.name() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|unknown| unknown.name()).collect();
            let text =
                format!("there is nothing called `{text}` to calibrate; there are {}", names.join(", "));
            AccountingError::new("accounting.calibrate", text)
        })
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibrated {
    /// The calibrated composition.
    pub loss: PrivacyLoss,
    /// What the value is: sigma, scale, bound, epsilon, steps or rate.
    pub parameter: &'static str,
    /// The value to use.
    pub value: f64,
    /// No value beyond this one is private: below it for noise, above it for ε, steps and rate.
    pub lower: f64,
}

/// The least noise (or the largest ε, steps or rate) with which the composition has the guarantee.
pub fn calibrate(
    unknown: Unknown,
    target: &Target,
    setting: &Setting,
) -> Result<Calibrated, AccountingError> {
    let parameter = match unknown {
        Unknown::Gaussian | Unknown::DiscreteGaussian => "sigma",
        Unknown::Laplace | Unknown::DiscreteLaplace => "scale",
        _ => return Err(AccountingError::new("accounting.calibrate", "this calibration is not there yet")),
    };
    let (mut low, mut high) = (1e-6, 1e12);
    let private = |value: f64| -> Result<bool, AccountingError> {
        let account = Account::of(&composed(unknown, value, setting))?;
        Ok(account.delta(&target.epsilon)?.bounds.upper <= target.delta.to_f64_down())
    };
    for _ in 0..60 {
        let middle = f64::sqrt(low * high);
        match private(middle) {
            Ok(true) => high = middle,
            Ok(false) => low = middle,
            Err(_) if middle < 1.0 => low = middle,
            Err(_) => high = middle,
        }
    }
    Ok(Calibrated { loss: composed(unknown, high, setting), parameter, value: high, lower: low })
}

fn composed(unknown: Unknown, value: f64, setting: &Setting) -> PrivacyLoss {
    // What people type: the shortest decimal of the double.
    let value: Rational = format!("{value:?}").parse().unwrap_or_else(|_| Rational::one());
    let sensitivity = setting.sensitivity.clone();
    let once = match unknown {
        Unknown::Laplace => PrivacyLoss::Laplace { scale: value, sensitivity },
        Unknown::DiscreteLaplace => PrivacyLoss::DiscreteLaplace { scale: value, sensitivity },
        Unknown::DiscreteGaussian => PrivacyLoss::DiscreteGaussian {
            variance: value.square(),
            l2_squared: sensitivity.square(),
            dimensions: 1,
        },
        _ => PrivacyLoss::Gaussian { variance: value.square(), l2_squared: sensitivity.square() },
    };
    let sampled = match setting.rate == Rational::one() {
        true => once,
        false => PrivacyLoss::Subsampled { rate: setting.rate.clone(), inner: Box::new(once) },
    };
    sampled.repeat(setting.steps)
}
