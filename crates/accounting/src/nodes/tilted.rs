//! [`Tilted`]: the moments of a law along a line Re z = c.

use super::moments::{LogMoment, Moments};
use super::trigonometry::{Weighted, sum_of_waves};
use super::{Block, Nodes, UNIT};

/// The moments of a law on a line Re z = c.
#[derive(Clone, Debug)]
pub(crate) struct Tilted {
    moments: Moments,
    /// Losses, and their weights times e^(cL).
    blocks: Vec<Weighted>,
}

impl Nodes {
    /// Nodes seen from Re z = c.
    pub(crate) fn tilted(&self, tilt: f64) -> Tilted {
        let weighted = |block: &Block| Weighted { losses: block.losses, weights: block.weights };
        let mut blocks: Vec<_> = self.blocks.iter().map(weighted).collect();
        let moments = self.moments_with(tilt, |index, weights| blocks[index].weights = weights);
        Tilted { moments, blocks }
    }
}

impl Tilted {
    /// ln K(c).
    pub(crate) fn log_moment(&self) -> f64 {
        self.moments.log_moment()
    }

    /// The standard deviation of the tilted loss is at most this.
    pub(crate) fn deviation(&self) -> f64 {
        self.moments.deviation()
    }

    /// ln K(c + iy).
    pub(crate) fn at(&self, frequency: f64) -> LogMoment {
        self.moments.at(frequency, sum_of_waves(&self.blocks, frequency))
    }

    /// |K(c + iy)|/K(c) is at most the cosine of this.
    pub(crate) fn angle(&self, frequency: f64) -> f64 {
        let modulus = self.moments.modulus(frequency, sum_of_waves(&self.blocks, frequency));
        (modulus * (1.0 + 8.0 * UNIT)).min(1.0).acos()
    }
}
