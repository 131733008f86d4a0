//! Private k-means: k centres such that every point has one nearby.
//!
//! **Method.** Points are clamped to declared bounds. Then eight looks at them, each a vector of noisy sums (`curator.rs`), every one used by those that follow:
//!
//! | look | part of μ² | what for |
//! |---|---|---|
//! | the number of points and their mean | 0.05 | where the data is in its box |
//! | a histogram of distances from that mean | 0.05 | a radius that leaves 2 % outside; from now on points further away count as if on the sphere |
//! | second moments | 0.15 | the directions in which points differ by more than noise: at most k − 1 of them |
//! | three rounds of means of up to 8k cells, in these directions | 0.35 | a coreset: few points with weights that stand for all |
//! | means of k cells, in these directions | 0.10 | a Lloyd step |
//! | means of k cells, in all directions | 0.30 | the centres |
//!
//! Cells are the nearest of a few public points, drawn at first from a normal law with the noisy mean and second moments, then the noisy means of the
//! round before. Clustering the coreset with many restarts is post-processing, and so is the last step: what a centre has outside the
//! leading directions is shrunk by as much as it looks like noise (James–Stein).
//!
//! **Why.** Lloyd steps lose little to noise; what goes wrong is where they start. A coreset has many more cells than there are clusters, so
//! no cluster is missed, and to search it costs nothing. In many dimensions noise grows with √d but clusters
//! span at most k − 1: all but the last look are made there. Nothing is tuned to data: sizes follow from k, d, the noise, and the noisy n.
//!
//! **Guarantee.** (ε, δ): the looks are Gaussian with fixed parameters and Σ μᵢ² = μ²; what is looked at depends on earlier answers only. The loss is
//! the exact composition of the discrete laws.
//!
//! **Exactness.** See `curator.rs`: whatever doubles compute about a point is rounded and then bounded in whole numbers.
//!
//! **References.** \[Canonne2020\], \[Dong2022\], \[Lloyd1982\], \[Arthur2007\], \[James1961\].

mod axes;
mod coreset;
mod run;
#[cfg(test)]
mod tests;

pub(crate) use axes::axes;
pub(crate) use coreset::{Weighted, centers, nearest, normal};

use demur_accounting::Account;
use demur_core::{Adjacency, Guarantee, PrivacyLoss, Release};
use demur_exact::{Rational, gaussian_sigma};
use demur_noise::Entropy;

use crate::curator::{Curator, Look, Noise, Unit, exactly, loss_of};
use crate::error::require;
use crate::progress::Watch;
use crate::{LearnError, Points};

/// The most coordinates a point may have. Project longer ones first, in a way that does not depend on the data.
pub const MAX_DIMENSIONS: usize = 256;
/// The most clusters.
pub const MAX_CLUSTERS: usize = 1000;
/// The most points a person may count for.
pub const MAX_POINTS_PER_PERSON: u32 = 1 << 10;

/// Steps in the radius of all points that are summed.
const REACH: u64 = 1 << 12;
/// Steps in the radius of points whose products are summed.
const MOMENT_REACH: u64 = 1 << 10;
/// Cells of the coreset for each cluster, at most.
const CELLS_PER_CLUSTER: usize = 8;
/// How often the coreset's cells move.
const ROUNDS: usize = 3;
/// Distances are told apart by a factor of 2^(1/4), down to 1/32 of the largest.
const DISTANCES: usize = 20;

/// What will be done, and what it costs; see the module text.
///
/// ```
/// use std::ops::ControlFlow;
/// use demur_core::{Adjacency, Guarantee};
/// use demur_learn::{Points, kmeans::Plan};
/// use demur_noise::Entropy;
///
/// let guarantee = Guarantee::new("1".parse()?, "1e-6".parse()?);
/// let plan = Plan::new(vec![(0.0, 10.0); 2], 2, Adjacency::AddRemove, 1, guarantee)?;
///
/// // Charge `plan.loss()`; then, and only then, points are read.
/// let points = Points::new(2, [2.0, 2.0, 2.5, 2.0, 8.0, 7.0, 8.0, 7.5].repeat(2000))?;
/// let clusters = plan.run(&points, &mut Entropy::from_os()?, &mut |_| ControlFlow::Continue(()))?;
/// assert_ne!(clusters.value().nearest(&[2.0, 2.0]), clusters.value().nearest(&[8.0, 7.0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plan {
    bounds: Vec<(f64, f64)>,
    clusters: usize,
    unit: Unit,
    looks: Vec<Look>,
    loss: PrivacyLoss,
}

/// What is published: centres and about how many points each has.
#[derive(Clone, Debug, PartialEq)]
pub struct Clusters {
    /// One centre per cluster, within the bounds.
    pub centers: Vec<Vec<f64>>,
    /// About how many points are nearest to it.
    pub sizes: Vec<f64>,
}

impl Clusters {
    /// The nearest centre.
    pub fn nearest(&self, point: &[f64]) -> usize {
        let distance =
            |center: &Vec<f64>| center.iter().zip(point).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        let distances = self.centers.iter().map(distance).enumerate();
        distances.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(index, _)| index)
    }
}

impl Plan {
    /// So many clusters of points whose coordinates lie in the bounds; of each person at most `max_points` points count.
    pub fn new(
        bounds: Vec<(f64, f64)>,
        clusters: usize,
        adjacency: Adjacency,
        max_points: u32,
        guarantee: Guarantee,
    ) -> Result<Self, LearnError> {
        require((1..=MAX_DIMENSIONS).contains(&bounds.len()), "learn.kmeans.dimensions", || {
            format!(
                "points must have 1 to {MAX_DIMENSIONS} coordinates, but bounds for {} were declared; project longer ones first",
                bounds.len()
            )
        })?;
        let fine = |&(low, high): &(f64, f64)| low.is_finite() && (high - low).is_finite() && low < high;
        require(bounds.iter().all(fine), "learn.kmeans.bounds", || {
            "each coordinate needs a lower bound below its upper bound, both finite".into()
        })?;
        require((1..=MAX_CLUSTERS).contains(&clusters), "learn.kmeans.clusters", || {
            format!("there can be 1 to {MAX_CLUSTERS} clusters, but {clusters} were asked for")
        })?;
        require((1..=MAX_POINTS_PER_PERSON).contains(&max_points), "learn.points.per_person", || {
            format!(
                "a person may count for 1 to {MAX_POINTS_PER_PERSON} points, but {max_points} were declared"
            )
        })?;
        require(!guarantee.is_pure(), "learn.kmeans.pure", || {
            format!("k-means uses Gaussian noise and needs a δ above 0, but {guarantee} was asked for")
        })?;
        let unit = Unit { adjacency, max_points };
        let (looks, loss) = priced(looks(bounds.len(), clusters), unit, guarantee)?;
        Ok(Self { bounds, clusters, unit, looks, loss })
    }

    /// What must be charged before [`run`](Self::run) is called.
    pub fn loss(&self) -> &PrivacyLoss {
        &self.loss
    }

    /// Which datasets must look alike.
    pub fn adjacency(&self) -> Adjacency {
        self.unit.adjacency
    }

    /// Finds the centres. Charge [`loss`](Self::loss) first: it stands whatever happens here.
    pub fn run(
        &self,
        points: &Points,
        entropy: &mut Entropy,
        watch: &mut Watch<'_>,
    ) -> Result<Release<Clusters>, LearnError> {
        let clusters = run::run(self, &mut self.curator(points, entropy)?, watch)?;
        Ok(Release::new(clusters, self.loss.clone()))
    }

    fn curator<'a, W: demur_noise::Words>(
        &self,
        points: &'a Points,
        words: &'a mut W,
    ) -> Result<Curator<'a, W>, LearnError> {
        require(points.dimensions() == self.bounds.len(), "learn.kmeans.points", || {
            format!(
                "the plan is for points of {} coordinates, but these have {}",
                self.bounds.len(),
                points.dimensions()
            )
        })?;
        Ok(Curator::new(points, self.unit, self.looks.clone(), words))
    }

    /// The most directions that clusters are told apart in.
    fn max_axes(&self) -> usize {
        max_axes(self.bounds.len(), self.clusters)
    }
}

/// k centres span k − 1 directions; two cost nothing.
fn max_axes(dimensions: usize, clusters: usize) -> usize {
    dimensions.min(clusters.saturating_sub(1).max(2))
}

/// All looks in order, each with its part of μ² and without its noise.
fn looks(dimensions: usize, clusters: usize) -> Vec<(f64, Look)> {
    let (d, k) = (dimensions as u64, clusters as u64);
    let axes = max_axes(dimensions, clusters) as u64;
    let cells = k * CELLS_PER_CLUSTER as u64;
    let look = |part: f64, stage, reach, weight, signed, dimensions| {
        (
            part,
            Look {
                stage,
                noise: Noise::Gaussian { variance: Rational::one() },
                reach,
                weight,
                signed,
                dimensions,
            },
        )
    };
    let mut looks = vec![
        look(0.05, "finding the middle", REACH, REACH / 3, true, d + 1),
        look(0.05, "measuring distances", 0, 1, false, DISTANCES as u64),
        look(0.15, "measuring directions", MOMENT_REACH * MOMENT_REACH, 0, true, d * (d + 1) / 2),
    ];
    for _ in 0..ROUNDS {
        let part = 0.35 / ROUNDS as f64;
        looks.push(look(part, "moving cells", REACH, REACH / 2, true, cells * (axes + 1)));
    }
    looks.push(look(0.10, "moving centres", REACH, REACH / 2, true, k * (axes + 1)));
    looks.push(look(0.30, "measuring centres", REACH, REACH / 3, true, k * (d + 1)));
    looks
}

/// The least noise with which all looks together have the guarantee.
fn priced(
    looks: Vec<(f64, Look)>,
    unit: Unit,
    guarantee: Guarantee,
) -> Result<(Vec<Look>, PrivacyLoss), LearnError> {
    let (epsilon, delta) = (guarantee.epsilon.exact(), guarantee.delta.exact());
    let sigma = gaussian_sigma(&epsilon, &delta);
    // Discrete noise needs a trifle more than continuous noise.
    for extra in [0.0, 1e-9, 1e-7, 1e-5, 1e-3, 1e-2, 1e-1] {
        let noisy = looks.iter().map(|(part, look)| {
            let variance = look.l2_squared(unit).to_f64() * sigma * sigma * (1.0 + extra) / part;
            Ok(Look { noise: Noise::Gaussian { variance: exactly(variance)? }, ..look.clone() })
        });
        let noisy = noisy.collect::<Result<Vec<Look>, LearnError>>();
        let Ok(noisy) = noisy else { break };
        let loss = loss_of(&noisy, unit);
        loss.check()?;
        if Account::of(&loss)?.delta(&epsilon)?.bounds.upper <= delta.to_f64_down() {
            return Ok((noisy, loss));
        }
    }
    let text = format!("no noise was found that gives {guarantee}; allow a larger ε or δ");
    Err(LearnError::new("learn.kmeans.guarantee", text))
}
