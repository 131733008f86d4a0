//! [`Tilted`]: the moments of a law along a line Re z = c, and [`Share`]: those of a part of one.

use num_complex::Complex64;

use super::moments::{LogMoment, Moments};
use super::trigonometry::{Weighted, sum_of_waves};
use super::{Block, LANES, Nodes, UNIT};

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

    /// How many waves it is made of.
    pub(crate) fn width(&self) -> f64 {
        (self.blocks.len() * LANES) as f64
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

/// Σ w·e^(zL) on a line Re z = c, of weights that need not add up to 1.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    tilt: f64,
    /// Σ w·e^(cL), Σ w·e^(cL)·L and Σ w·e^(cL)·scale.
    whole: f64,
    drift: f64,
    scale: f64,
    missing: f64,
    blocks: Vec<Weighted>,
}

impl Nodes {
    /// Nodes of a part of a law, seen from Re z = c.
    pub(crate) fn share(&self, tilt: f64) -> Share {
        let heavy = |block: &Block| {
            let logs = std::array::from_fn(|lane| block.logs[lane] + tilt * block.losses[lane]);
            Weighted { losses: block.losses, weights: logs.map(libm::exp) }
        };
        let blocks: Vec<_> = self.blocks.iter().map(heavy).collect();
        let sum = |value: &dyn Fn(&Block, usize) -> f64| {
            let of = |(block, weighted): (&Block, &Weighted)| {
                (0..block.losses.len()).map(|lane| weighted.weights[lane] * value(block, lane)).sum::<f64>()
            };
            self.blocks.iter().zip(&blocks).map(of).sum::<f64>()
        };
        Share {
            tilt,
            whole: sum(&|_, _| 1.0),
            drift: sum(&|block, lane| block.losses[lane]),
            scale: sum(&|block, lane| block.scales[lane]),
            missing: self.missing,
            blocks,
        }
    }
}

impl Share {
    /// The sum at c + iy, and by how much it may be off.
    ///
    /// A loss is off by 16 units of its scale and moves a term by |z| of that; weights, waves and the sum cost 64 and n/4 more.
    pub(crate) fn at(&self, y: f64) -> (Complex64, f64) {
        let (versine, sine) = sum_of_waves(&self.blocks, y);
        let units = (64.0 + self.blocks.len() as f64 * 2.0) * UNIT;
        let rounding = units * (self.whole + (self.tilt + y) * self.scale);
        let value = Complex64::new(self.whole - versine, sine + y * self.drift);
        (value, rounding + self.missing * self.whole.max(1.0))
    }
}
