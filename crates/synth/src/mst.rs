//! MST: a spanning tree of the strongest pairs, measured and put together.
//!
//! **Method** \[McKenna2021\].
//!
//! 1. Measure every column's counts; group rare values ([`Compression`](crate::compression::Compression)).
//! 2. d − 1 times: of all pairs that connect two trees of the forest so far, select one by the exponential mechanism, with the
//!    score ‖counts − what independent columns would have‖₁. Pairs that would take the model beyond its size are left out, by their (noisy, public) sizes.
//! 3. Measure the counts of each selected pair.
//! 4. Estimate the law that explains all measurements.
//!
//! **Cost.** d Gaussian measurements, d − 1 selections and d − 1 Gaussian measurements, with parameters that are fixed beforehand. Each third
//! gets the same ρ; then all noise is scaled by one factor so that the exact composition has the wanted (ε, δ).

use demur_core::{Guarantee, PrivacyLoss};
use demur_exact::Rational;
use demur_noise::Words;

use crate::aim::expected;
use crate::curator::{Candidate, Curator, Noise};
use crate::estimator::{Effort, Estimator};
use crate::evidence::Evidence;
use crate::least_noise::least_noise;
use crate::model::Model;
use crate::progress::{Progress, Watch, tell};
use crate::singles::{decimal, singles};
use crate::{ColumnSet, Columns, Neighbours, SynthError, Zeros};

/// The parameters of a run; public, and fixed before a row is read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mst {
    pub(crate) singles: Noise,
    pub(crate) selection: Rational,
    pub(crate) pairs: Noise,
    /// A pair with more cells is never measured.
    most_cells: u64,
}

impl Mst {
    /// The least noise for the guarantee, and the loss of all of it.
    pub(crate) fn plan(
        columns: &Columns,
        neighbours: Neighbours,
        guarantee: Guarantee,
    ) -> Result<(Self, PrivacyLoss), SynthError> {
        let rough = Self::nominal(columns, neighbours, guarantee.delta.value());
        least_noise(&rough.continuous(columns, neighbours), guarantee, |factor| {
            let plan = rough.noisier(factor);
            let loss = plan.loss(columns, neighbours);
            (plan, loss)
        })
    }

    /// A third of ρ = 1/2 for each stage.
    fn nominal(columns: &Columns, neighbours: Neighbours, delta: f64) -> Self {
        let (d, s) = (columns.len() as u32, Rational::from(neighbours.l2_squared()));
        let variance = |uses: u32| Noise::Gaussian { variance: &s * &Rational::from(3 * uses.max(1)) };
        // ρ of one selection is ε²/8 = 1/(6·(d − 1)).
        let epsilon = (8.0 / (6.0 * f64::from(d.saturating_sub(1).max(1)))).sqrt();
        // Discrete noise costs a δ of 2·10⁻¹⁸ per cell; all pairs together shall use at most a tenth.
        let most_cells = MOST_CELLS.min((delta / (2e-17 * f64::from(d))) as u64).max(1);
        Self {
            singles: variance(d),
            selection: decimal(epsilon),
            pairs: variance(d.saturating_sub(1)),
            most_cells,
        }
    }

    fn noisier(&self, factor: f64) -> Self {
        let factor = decimal(factor);
        let scale = |noise: &Noise| match noise {
            Noise::Gaussian { variance } => {
                Noise::Gaussian { variance: decimal((variance * &factor.square()).to_f64()) }
            }
            Noise::Laplace { scale } => Noise::Laplace { scale: scale * &factor },
        };
        let selection = decimal((&self.selection / &factor).to_f64());
        Self {
            singles: scale(&self.singles),
            selection,
            pairs: scale(&self.pairs),
            most_cells: self.most_cells,
        }
    }

    /// As if noise were continuous.
    fn continuous(&self, columns: &Columns, neighbours: Neighbours) -> PrivacyLoss {
        let gaussian = |noise: &Noise| PrivacyLoss::Gaussian {
            variance: decimal(noise.variance()),
            l2_squared: Rational::from(neighbours.l2_squared()),
        };
        self.composed(columns, gaussian(&self.singles), gaussian(&self.pairs))
    }

    /// What all of it costs.
    fn loss(&self, columns: &Columns, neighbours: Neighbours) -> PrivacyLoss {
        let mut sizes = columns.sizes();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let single = sizes.first().map_or(1, |&size| size as u64);
        let pair = single.saturating_mul(sizes.get(1).map_or(1, |&size| size as u64)).min(self.most_cells);
        self.composed(columns, self.singles.loss(single, neighbours), self.pairs.loss(pair, neighbours))
    }

    fn composed(&self, columns: &Columns, single: PrivacyLoss, pair: PrivacyLoss) -> PrivacyLoss {
        let d = columns.len() as u64;
        let selection = PrivacyLoss::Exponential { epsilon: self.selection.clone() };
        let rounds = d - 1;
        match rounds {
            0 => single,
            _ => single.repeat(d).compose(selection.repeat(rounds)).compose(pair.repeat(rounds)),
        }
    }

    pub(crate) fn run<W: Words>(
        &self,
        columns: &Columns,
        zeros: &Zeros,
        curator: &mut Curator<'_, W>,
        watch: &mut Watch<'_>,
    ) -> Result<Model, SynthError> {
        let (compression, mut evidence) = singles(columns, zeros, curator, &self.singles, watch)?;
        let sizes = compression.sizes.clone();
        let d = columns.len();
        let total =
            |evidence: &Evidence, curator: &Curator<'_, W>| curator.public_rows().unwrap_or(evidence.total());
        let mut estimator = Estimator::new(sizes.clone(), zeros.potentials(&sizes));

        let rows = total(&evidence, curator);
        let alone = estimator.fit(&evidence, rows, ROUND)?;
        let mut trees: Vec<usize> = (0..d).collect();
        let mut pairs: Vec<ColumnSet> = vec![];
        for round in 1..d {
            let room = MOST_CELLS - pairs.iter().map(|pair| pair.cells(&sizes)).sum::<u64>();
            let open: Vec<ColumnSet> = open_pairs(&trees, &sizes, room.min(self.most_cells));
            let candidate = |set: &ColumnSet| {
                let expected = expected(&alone, set, rows)?;
                Ok(Candidate { set: set.clone(), expected, weight: 1.0, penalty: 0.0 })
            };
            let candidates: Vec<Candidate> = open.iter().map(candidate).collect::<Result<_, SynthError>>()?;
            if candidates.is_empty() {
                break;
            }
            let chosen = open[curator.select(&self.selection, &candidates)?].clone();
            merge(&mut trees, &chosen);
            tell(
                watch,
                progress("selecting pairs", round, d - 1, 1.0 / 3.0 + round as f64 / d as f64 / 3.0, &chosen),
            )?;
            pairs.push(chosen);
        }
        for (place, pair) in pairs.iter().enumerate() {
            let noisy = curator.measure(pair, &self.pairs)?;
            evidence.add(pair.clone(), noisy, self.pairs.variance());
            tell(
                watch,
                progress(
                    "measuring pairs",
                    place + 1,
                    d - 1,
                    2.0 / 3.0 + place as f64 / d as f64 / 3.0,
                    pair,
                ),
            )?;
        }
        let rows = total(&evidence, curator);
        let fitted = estimator.fit(&evidence, rows, FINAL)?;
        Ok(Model { columns: columns.clone(), compression, walk: fitted.walk, beliefs: fitted.beliefs, rows })
    }
}

/// All measured pairs together have at most so many cells.
pub(crate) const MOST_CELLS: u64 = 1 << 22;
/// Steps before the tree is known: columns alone need few.
const ROUND: Effort = Effort { steps: 300, tolerance: 1e-6 };
/// Steps at the end.
const FINAL: Effort = Effort { steps: 3000, tolerance: 1e-5 };

fn progress(stage: &'static str, step: usize, steps: usize, spent: f64, set: &ColumnSet) -> Progress {
    Progress { stage, step, steps: Some(steps), spent, set: Some(set.clone()), expected_error: None }
}

/// Pairs of columns in different trees that are small enough to be measured.
fn open_pairs(trees: &[usize], sizes: &[usize], most_cells: u64) -> Vec<ColumnSet> {
    let d = trees.len();
    let pairs = (0..d).flat_map(|a| (a + 1..d).map(move |b| (a, b)));
    let open = pairs.filter(|&(a, b)| trees[a] != trees[b]).map(|(a, b)| ColumnSet::new([a, b]));
    open.filter(|pair| pair.cells(sizes) <= most_cells).collect()
}

fn merge(trees: &mut [usize], pair: &ColumnSet) {
    let names: Vec<usize> = pair.iter().map(|place| trees[place]).collect();
    for tree in trees {
        if names.contains(tree) {
            *tree = names[0];
        }
    }
}
