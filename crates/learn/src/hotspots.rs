//! Hot spots: where something happens often, without saying where anybody was.
//!
//! **Method.** A declared rectangle is divided into 2ᵈ × 2ᵈ cells. Counts are measured with discrete Laplace noise on that grid and on coarser ones, each
//! with blocks of 8 × 8 cells of the one below, as long as a side has four of them. Each coarser grid gets a quarter of the ε of the
//! finer one: most is spent where hot spots are told from their neighbours, and a little is enough to know large areas
//! well. Then, from noisy numbers alone (`hotspots/tree.rs`):
//!
//! 1. *Consistency.* From fine to coarse, a block's own count and the sum of its cells are averaged by their variances.
//! 2. *Pruning.* From coarse to fine, cells get the nearest numbers that are not negative and sum up to their block. A block without people
//!    passes that on to all its cells, so empty land stays empty.
//!
//! Nothing is set to zero before it has been added up: noise that cancels in a sum must have both signs.
//!
//! **Guarantee.** ε, pure. One point is in one cell of each grid, so with at most c points per person a person moves a grid's counts by c in ℓ1
//! (2c when a person is replaced), and the parts of ε add up.
//!
//! **Exactness.** Counts are whole numbers, noise is exact, shares of ε are fractions that sum up to 1. Points outside the rectangle and points
//! that are no numbers count for nothing.
//!
//! **References.** \[Dwork2006\], \[Hay2010\], \[Cormode2012\], \[Condat2016\].

mod map;
#[cfg(test)]
mod tests;
mod tree;

use demur_core::{Adjacency, Epsilon, PrivacyLoss, Release};
use demur_exact::Rational;
use demur_noise::{Entropy, Words};

pub use map::{HotMap, HotSpot, Region};

use crate::curator::{Curator, Look, Noise, Unit, loss_of};
use crate::error::require;
use crate::progress::{Progress, Watch, tell};
use crate::{LearnError, Points};

/// The finest grid has at most 2¹¹ cells a side.
pub const MAX_DEPTH: u32 = 11;
/// No person may count for more points than this.
pub const MAX_POINTS_PER_PERSON: u32 = 1 << 20;

/// A rectangle of the plane, public.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rectangle {
    /// The least first coordinate: the western edge of a map.
    pub west: f64,
    /// The least second coordinate.
    pub south: f64,
    /// The largest first coordinate.
    pub east: f64,
    /// The largest second coordinate.
    pub north: f64,
}

/// What will be measured, and what it costs; see the module text.
///
/// ```
/// use std::ops::ControlFlow;
/// use demur_core::{Adjacency, Epsilon};
/// use demur_learn::{Points, hotspots::{Plan, Rectangle}};
/// use demur_noise::Entropy;
///
/// let town = Rectangle { west: 0.0, south: 0.0, east: 16.0, north: 16.0 };
/// let plan = Plan::new(town, 4, Adjacency::AddRemove, 1, Epsilon::new(1.0)?)?;
/// assert_eq!(plan.loss().pure_epsilon(), Some("1".parse()?));
///
/// // Charge `plan.loss()`; then, and only then, points are read.
/// let points = Points::new(2, [3.5, 7.5].repeat(500))?;
/// let map = plan.run(&points, &mut Entropy::from_os()?, &mut |_| ControlFlow::Continue(()))?;
/// let hottest = &map.value().hot_spots(1, 0.05)[0];
/// assert_eq!((hottest.area.west, hottest.area.south), (3.0, 7.0));
/// assert!(hottest.low > 400.0 && hottest.high < 600.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plan {
    area: Rectangle,
    depth: u32,
    unit: Unit,
    looks: Vec<Look>,
    loss: PrivacyLoss,
}

impl Plan {
    /// A grid of 2^`depth` cells a side over `area`; of each person at most `max_points` points count.
    pub fn new(
        area: Rectangle,
        depth: u32,
        adjacency: Adjacency,
        max_points: u32,
        epsilon: Epsilon,
    ) -> Result<Self, LearnError> {
        let edges = [area.west, area.east, area.south, area.north];
        let sides = [area.east - area.west, area.north - area.south];
        require(
            edges.iter().all(|edge| edge.is_finite())
                && sides.iter().all(|&side| side.is_finite() && side > 0.0),
            "learn.hotspots.area",
            || {
                format!(
                    "the area must be a rectangle with west below east and south below north, but it is {area:?}"
                )
            },
        )?;
        require((1..=MAX_DEPTH).contains(&depth), "learn.hotspots.depth", || {
            format!("the depth of the grid must be between 1 and {MAX_DEPTH}, but it is {depth}")
        })?;
        require((1..=MAX_POINTS_PER_PERSON).contains(&max_points), "learn.points.per_person", || {
            format!(
                "a person may count for 1 to {MAX_POINTS_PER_PERSON} points, but {max_points} were declared"
            )
        })?;
        require(epsilon > Epsilon::ZERO, "learn.epsilon", || {
            "ε = 0 would need infinite noise; ask for more".into()
        })?;
        let unit = Unit { adjacency, max_points };
        let looks: Vec<Look> = levels(depth)
            .zip(shares(levels(depth).count()))
            .map(|(level, share)| {
                let mut look = Look {
                    stage: "measuring a grid",
                    noise: Noise::Laplace { scale: Rational::one() },
                    reach: 0,
                    weight: 1,
                    signed: false,
                    dimensions: 1 << (2 * level),
                };
                look.noise = Noise::Laplace { scale: &look.l1(unit) / &(&epsilon.exact() * &share) };
                look
            })
            .collect();
        let loss = loss_of(&looks, unit);
        loss.check()?;
        Ok(Self { area, depth, unit, looks, loss })
    }

    /// What must be charged before [`run`](Self::run) is called.
    pub fn loss(&self) -> &PrivacyLoss {
        &self.loss
    }

    /// Which datasets must look alike.
    pub fn adjacency(&self) -> Adjacency {
        self.unit.adjacency
    }

    /// Measures, and makes the map. Charge [`loss`](Self::loss) first: it stands whatever happens here.
    pub fn run(
        &self,
        points: &Points,
        entropy: &mut Entropy,
        watch: &mut Watch<'_>,
    ) -> Result<Release<HotMap>, LearnError> {
        let map = self.with_curator(&mut self.curator(points, entropy)?, watch)?;
        Ok(Release::new(map, self.loss.clone()))
    }

    fn curator<'a, W: Words>(
        &self,
        points: &'a Points,
        words: &'a mut W,
    ) -> Result<Curator<'a, W>, LearnError> {
        require(points.dimensions() == 2, "learn.hotspots.points", || {
            format!("a map needs points of 2 coordinates, but these have {}", points.dimensions())
        })?;
        Ok(Curator::new(points, self.unit, self.looks.clone(), words))
    }

    fn with_curator<W: Words>(
        &self,
        curator: &mut Curator<'_, W>,
        watch: &mut Watch<'_>,
    ) -> Result<HotMap, LearnError> {
        let mut grids = Vec::new();
        for (step, (level, look)) in levels(self.depth).zip(&self.looks).enumerate() {
            let sums = curator.sums(1 << (2 * level), 0, |point, _| self.area.cell(point, level))?;
            let Noise::Laplace { scale } = &look.noise else {
                return Err(LearnError::ours("a map was planned with other noise"));
            };
            grids.push(tree::Grid { level, counts: sums.counts, scale: scale.to_f64() });
            tell(watch, Progress { stage: look.stage, step: step + 1, steps: Some(self.looks.len()) })?;
        }
        Ok(HotMap::new(self.area, grids))
    }
}

impl Rectangle {
    /// The cell of a point in the grid of 2^`level` cells a side, row by row from the south; none if it lies outside.
    fn cell(&self, point: &[f64], level: u32) -> Option<usize> {
        let side = 1usize << level;
        let place = |value: f64, low: f64, high: f64| {
            let share = (value - low) / (high - low);
            (0.0..=1.0).contains(&share).then(|| ((share * side as f64) as usize).min(side - 1))
        };
        let (column, row) =
            (place(point[0], self.west, self.east)?, place(point[1], self.south, self.north)?);
        Some(row * side + column)
    }

    /// The part of it that a block of the grid covers.
    fn block(&self, level: u32, row: usize, column: usize) -> Self {
        let side = (1u64 << level) as f64;
        let along = |low: f64, high: f64, place: usize| low + (high - low) * (place as f64 / side);
        Self {
            west: along(self.west, self.east, column),
            south: along(self.south, self.north, row),
            east: along(self.west, self.east, column + 1),
            north: along(self.south, self.north, row + 1),
        }
    }
}

/// The levels that are measured, from the finest on: every third one, down to 4 × 4 blocks or more.
fn levels(depth: u32) -> impl Iterator<Item = u32> + Clone {
    (0..=depth).rev().step_by(3).filter(move |&level| level >= 2 || level == depth)
}

/// 1, 1/4, 1/16 …, scaled so that they sum up to 1.
fn shares(count: usize) -> impl Iterator<Item = Rational> {
    let parts: Vec<u64> = (0..count as u32).rev().map(|power| 4u64.pow(power)).collect();
    let total: u64 = parts.iter().sum();
    parts.into_iter().map(move |part| &Rational::from(part) / &Rational::from(total))
}
