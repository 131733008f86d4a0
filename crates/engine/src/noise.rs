//! [`Noise`]: the noise of one item, with what it costs.
//!
//! **Definition.** One number is drawn for each cell of each group, all independent and by one law on whole numbers:
//! discrete Laplace, discrete Gaussian, or discrete Laplace conditioned to stay within a bound.
//!
//! **Guarantee.** [`Noise::loss`] is the cost of all of an item's cells together, when one unit comes or goes. With
//! G groups moved, by at most Δ₁ in ℓ1 each, and c copies, Laplace noise costs c·G times what one group costs: cells
//! of different groups have their own noise, so that the loss is a sum over the groups. Gaussian noise costs c times what all
//! the cells that move cost together.
//!
//! **Why not fewer dimensions.** Gaussian noise on a single number is entered as noise on two. That is never less, and
//! it lets an accountant add up items by a formula (the continuous law of variance v − 9/4) instead of term by term.
//!
//! **References.** \[Ghosh2012\], \[Canonne2020\], \[Geng2020\].

use demur_core::PrivacyLoss;
use demur_exact::Rational;
use demur_noise::{Entropy, Gaussian, Laplace, Mechanism, TruncatedLaplace};

use crate::EngineError;
use crate::pricing::Item;

/// The noise of one item; see the module text.
#[derive(Clone, Debug)]
pub enum Noise {
    /// Discrete Laplace noise.
    Laplace {
        /// The noise on one group.
        mechanism: Laplace,
        /// How many groups move, times how many copies there are.
        uses: u64,
    },
    /// Discrete Laplace noise within a bound, for counts that also select keys.
    Truncated {
        /// The noise on one group.
        mechanism: TruncatedLaplace,
        /// How many groups move.
        uses: u64,
    },
    /// Discrete Gaussian noise.
    Gaussian {
        /// The noise on all groups that move.
        mechanism: Gaussian,
        /// How many copies there are.
        uses: u64,
    },
}

impl Noise {
    /// Laplace noise of scale t for this item.
    pub(crate) fn laplace(item: &Item, scale: Rational) -> Result<Self, EngineError> {
        let mechanism =
            Laplace::of_scale(item.sensitivity.l0().max(1), item.sensitivity.l1().clone(), scale)?;
        Ok(Self::Laplace { mechanism, uses: item.blocks()? })
    }

    /// Gaussian noise of variance σ² for this item.
    pub(crate) fn gaussian(item: &Item, variance: Rational) -> Result<Self, EngineError> {
        let mechanism = Gaussian::of_variance(item.dimensions()?, item.l2_squared(), variance)?;
        Ok(Self::Gaussian { mechanism, uses: item.copies })
    }

    /// Truncated noise for `moved` unit counts, each of which exceeds its bound alone with probability at most δ₁.
    pub(crate) fn truncated(moved: u64, scale: Rational, delta: &Rational) -> Result<Self, EngineError> {
        let mechanism = TruncatedLaplace::of_scale(Rational::one(), scale, delta)?;
        Ok(Self::Truncated { mechanism, uses: moved })
    }

    /// What publishing the item costs.
    pub fn loss(&self) -> PrivacyLoss {
        self.mechanism().loss().repeat(self.uses())
    }

    /// Draws noise for `out`, in whole steps.
    pub fn fill(&self, entropy: &mut Entropy, out: &mut [i128]) {
        self.mechanism().fill(entropy, out);
    }

    /// The standard deviation of one number, in steps.
    pub fn standard_deviation(&self) -> f64 {
        self.mechanism().standard_deviation()
    }

    /// The probability that one number is off by more than `steps`.
    pub fn tail(&self, steps: f64) -> f64 {
        self.mechanism().tail(steps)
    }

    /// By how many steps one number is off at most, but for a chance of `beta`.
    pub fn quantile(&self, beta: f64) -> Result<f64, EngineError> {
        Ok(self.mechanism().error(beta)?.each)
    }

    /// The family of the law, for people.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Laplace { .. } => "Laplace noise",
            Self::Truncated { .. } => "Laplace noise within a bound",
            Self::Gaussian { .. } => "Gaussian noise",
        }
    }

    /// The law, for people.
    pub fn describe(&self) -> String {
        match self {
            Self::Laplace { mechanism, .. } => {
                format!("Laplace noise of scale {}", short(mechanism.noise().scale()))
            }
            Self::Truncated { mechanism, .. } => {
                let (scale, bound) = (short(mechanism.noise().scale()), mechanism.noise().bound());
                format!("Laplace noise of scale {scale}, never above {bound}")
            }
            Self::Gaussian { .. } => {
                format!("Gaussian noise of standard deviation {:.4}", self.standard_deviation())
            }
        }
    }

    fn mechanism(&self) -> &dyn Mechanism {
        match self {
            Self::Laplace { mechanism, .. } => mechanism,
            Self::Truncated { mechanism, .. } => mechanism,
            Self::Gaussian { mechanism, .. } => mechanism,
        }
    }

    fn uses(&self) -> u64 {
        match self {
            Self::Laplace { uses, .. } | Self::Truncated { uses, .. } | Self::Gaussian { uses, .. } => *uses,
        }
    }
}

/// A number as people like to read it.
fn short(value: &Rational) -> String {
    match value.to_decimal(4) {
        Some(text) if text.len() <= 12 => text,
        _ => format!("{:.4}", value.to_f64()),
    }
}
