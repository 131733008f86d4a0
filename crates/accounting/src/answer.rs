//! [`Answer`]: a number with its bounds, and the [`Method`] that found it.

use std::fmt;
use std::str::FromStr;

use crate::{AccountingError, Bounds};

/// A proven answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Between which numbers the true one lies.
    pub bounds: Bounds,
    /// How it was found.
    pub method: Method,
    /// Why this method.
    pub reason: String,
}

/// A way to compose losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Method {
    /// A formula for a single loss, or for Gaussian noise alone.
    Closed,
    /// Sums over losses that are multiples of one step.
    Lattice,
    /// The inversion integral.
    Inversion,
    /// Discretised laws and fast convolution.
    Grid,
    /// Rényi divergences of all orders.
    Renyi,
    /// Zero-concentrated privacy: one number ρ for all.
    ZeroConcentrated,
    /// Gaussian privacy: one number μ for all.
    Gaussian,
    /// What is optimal when only each ε and δ is known.
    Optimal,
    /// The advanced composition theorem.
    Advanced,
    /// Σε and Σδ.
    Basic,
}

impl Method {
    /// Every method, from the sharpest to the plainest.
    pub const ALL: [Self; 10] = [
        Self::Closed,
        Self::Lattice,
        Self::Inversion,
        Self::Grid,
        Self::Renyi,
        Self::ZeroConcentrated,
        Self::Gaussian,
        Self::Optimal,
        Self::Advanced,
        Self::Basic,
    ];

    /// Its name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed-form",
            Self::Lattice => "lattice",
            Self::Inversion => "inversion",
            Self::Grid => "grid",
            Self::Renyi => "renyi",
            Self::ZeroConcentrated => "zcdp",
            Self::Gaussian => "gaussian",
            Self::Optimal => "optimal",
            Self::Advanced => "advanced",
            Self::Basic => "basic",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Method {
    type Err = AccountingError;

    fn from_str(text: &str) -> Result<Self, AccountingError> {
        Self::ALL.into_iter().find(|method| method.name() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|method| method.name()).collect();
            AccountingError::new(
                "accounting.method",
                format!("there is no method called `{text}`; there are {}", names.join(", ")),
            )
        })
    }
}
