//! [`Curator`]: the only one who sees rows.
//!
//! A method (MST, AIM, MWEM) is written against the curator and never holds the table. The curator does three things, and pays
//! for each from the run's [`Allowance`] before it looks:
//!
//! * **measure**: the counts of a marginal plus discrete Gaussian or discrete Laplace noise;
//! * **select**: one of several candidate sets by the exponential mechanism;
//! * **draw**: one of all small datasets, by [`Blr`].
//!
//! So whatever else a method computes is post-processing of noisy answers, and its privacy is that of the allowance.
//!
//! **Sensitivities.** How far a marginal moves in ℓ1 and ℓ2 is said by [`Neighbours`]. A candidate's score is
//!
//! ```text
//! weight · (‖counts − expected‖₁ − penalty),     weight ≤ 1,
//! ```
//!
//! where all but the counts is public; by the triangle inequality it moves by at most as much as the marginal does in ℓ1.
//!
//! **Exactness.** Counts are whole numbers of a step 2⁻ᵏ that depends on the noise alone, noise is a whole number of steps.
//! Expected counts, penalties and weights are rounded to fixed fractions *before* they meet the counts, so scores
//! are whole numbers and the stated sensitivity holds to the last digit.

use std::collections::HashMap;

use demur_core::{Histogram, PrivacyLoss};
use demur_exact::Rational;
use demur_noise::{DiscreteGaussian, DiscreteLaplace, Selection, Words};
use rayon::prelude::*;

use crate::allowance::Allowance;
use crate::{Blr, ColumnSet, Columns, Neighbours, SynthError, Table};

/// Steps of the noise per standard deviation, at least: so fine that discrete and continuous noise are as good as one.
const FINENESS_LOG2: i64 = 10;
/// Expected counts and penalties are whole multiples of 2⁻¹⁰, weights of 2⁻¹⁰.
const FRACTION_LOG2: u32 = 10;
/// No table has more rows than this, and no expected count is larger.
const MOST_ROWS: f64 = (1u64 << 40) as f64;
/// Counts are remembered as long as they have no more cells than this together.
const REMEMBERED_CELLS: usize = 1 << 25;

/// The noise on every cell of a marginal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Noise {
    /// Discrete Gaussian noise of this variance.
    Gaussian { variance: Rational },
    /// Discrete Laplace noise of this scale.
    Laplace { scale: Rational },
}

impl Noise {
    /// About the variance of one cell.
    pub(crate) fn variance(&self) -> f64 {
        match self {
            Self::Gaussian { variance } => variance.to_f64(),
            Self::Laplace { scale } => 2.0 * scale.square().to_f64(),
        }
    }

    /// k: noise and counts are multiples of 2⁻ᵏ.
    fn fraction_bits(&self) -> i64 {
        let log2_squared = match self {
            Self::Gaussian { variance } => variance.floor_log2(),
            Self::Laplace { scale } => 2 * scale.floor_log2(),
        };
        (FINENESS_LOG2 - log2_squared.div_euclid(2)).clamp(0, 2 * FINENESS_LOG2)
    }

    /// What a marginal of so many cells costs.
    pub(crate) fn loss(&self, cells: u64, neighbours: Neighbours) -> PrivacyLoss {
        let bits = self.fraction_bits();
        match self {
            Self::Gaussian { variance } => PrivacyLoss::DiscreteGaussian {
                variance: variance * &Rational::power_of_two(2 * bits),
                l2_squared: &Rational::from(neighbours.l2_squared()) * &Rational::power_of_two(2 * bits),
                dimensions: cells,
            },
            Self::Laplace { scale } => PrivacyLoss::DiscreteLaplace {
                scale: scale * &Rational::power_of_two(bits),
                sensitivity: &Rational::from(neighbours.l1()) * &Rational::power_of_two(bits),
            },
        }
    }
}

/// A set that may be selected; all of it is public.
pub(crate) struct Candidate {
    pub(crate) set: ColumnSet,
    /// The counts that the model expects.
    pub(crate) expected: Vec<f64>,
    /// From 0 to 1.
    pub(crate) weight: f64,
    pub(crate) penalty: f64,
}

/// See the module text.
pub(crate) struct Curator<'a, W> {
    table: std::borrow::Cow<'a, Table>,
    neighbours: Neighbours,
    allowance: Allowance,
    words: &'a mut W,
    remembered: HashMap<ColumnSet, Vec<u32>>,
    /// What was seen, for tests that compare neighbouring tables.
    #[cfg(test)]
    pub(crate) trace: trace::Trace,
}

impl<'a, W: Words> Curator<'a, W> {
    pub(crate) fn new(
        table: &'a Table,
        neighbours: Neighbours,
        allowance: Allowance,
        words: &'a mut W,
    ) -> Self {
        Self {
            table: std::borrow::Cow::Borrowed(table),
            neighbours,
            allowance,
            words,
            remembered: HashMap::new(),
            #[cfg(test)]
            trace: trace::Trace::default(),
        }
    }

    pub(crate) fn neighbours(&self) -> Neighbours {
        self.neighbours
    }

    /// How many rows there are, where that is public; at least 1, so that shares have a meaning.
    pub(crate) fn public_rows(&self) -> Option<f64> {
        self.neighbours.keep_the_number_of_rows().then(|| self.table.rows().max(1) as f64)
    }

    /// Whether these could be paid together.
    pub(crate) fn affords(&self, losses: &[PrivacyLoss]) -> bool {
        let mut allowance = self.allowance.clone();
        losses.iter().all(|loss| allowance.pay(loss).is_ok())
    }

    /// The noisy counts of a marginal.
    pub(crate) fn measure(&mut self, set: &ColumnSet, noise: &Noise) -> Result<Vec<f64>, SynthError> {
        let sizes = self.table.columns().sizes();
        self.allowance.pay(&noise.loss(set.cells(&sizes), self.neighbours))?;
        let counts = self.counts(set);
        #[cfg(test)]
        if let Some(said) = self.trace.measured(&counts, noise) {
            return Ok(said);
        }
        let bits = noise.fraction_bits();
        let scale = Rational::power_of_two(bits);
        let mut steps: Vec<i128> = counts.iter().map(|&count| i128::from(count) << bits).collect();
        match noise {
            Noise::Gaussian { variance } => {
                let law = DiscreteGaussian::new(variance * &scale.square())?;
                steps.iter_mut().for_each(|step| *step += law.sample(self.words));
            }
            Noise::Laplace { scale: width } => {
                let law = DiscreteLaplace::new(width * &scale)?;
                steps.iter_mut().for_each(|step| *step += law.sample(self.words));
            }
        }
        let unit = 0.5f64.powi(bits as i32);
        let noisy: Vec<f64> = steps.into_iter().map(|step| step as f64 * unit).collect();
        #[cfg(test)]
        self.trace.remember_measured(&noisy);
        Ok(noisy)
    }

    /// One of the candidates, by the exponential mechanism with this ε.
    pub(crate) fn select(
        &mut self,
        epsilon: &Rational,
        candidates: &[Candidate],
    ) -> Result<usize, SynthError> {
        self.allowance.pay(&PrivacyLoss::Exponential { epsilon: epsilon.clone() })?;
        self.remember(candidates);
        let (table, remembered) = (&*self.table, &self.remembered);
        let score = |candidate: &Candidate| match remembered.get(&candidate.set) {
            Some(counts) => score(counts, candidate),
            None => score(&table.counts(&candidate.set), candidate),
        };
        let scores: Vec<i64> = candidates.par_iter().map(score).collect();
        let sensitivity =
            &Rational::from(self.neighbours.l1()) * &Rational::power_of_two(2 * i64::from(FRACTION_LOG2));
        #[cfg(test)]
        if let Some(said) = self.trace.selected(&scores, &sensitivity) {
            return Ok(said);
        }
        let rate = epsilon / &(&Rational::from(2u32) * &sensitivity);
        let chosen = Selection::new(&scores, rate)?.exponential(self.words);
        #[cfg(test)]
        self.trace.remember_selected(chosen);
        Ok(chosen)
    }

    /// A small dataset like the table, by BLR, and how many rows the table has: BLR is for neighbours that agree on it.
    pub(crate) fn draw(&mut self, blr: &Blr) -> Result<(Histogram, f64), SynthError> {
        let rows = self.public_rows().ok_or_else(|| SynthError::ours("BLR met rows that come and go"))?;
        self.allowance.pay(&blr.loss())?;
        let counts = self.counts(&ColumnSet::new(0..self.table.columns().len()));
        let data = Histogram::new(blr.domain(), counts.into_iter().map(u64::from).collect())?;
        Ok((blr.draw(&data, self.words)?, rows))
    }

    fn counts(&self, set: &ColumnSet) -> Vec<u32> {
        self.remembered.get(set).cloned().unwrap_or_else(|| self.table.counts(set))
    }

    /// Counts that many rounds ask for are kept, as long as there is room.
    fn remember(&mut self, candidates: &[Candidate]) {
        let mut room = REMEMBERED_CELLS.saturating_sub(self.remembered.values().map(Vec::len).sum());
        let fits = |candidate: &&Candidate| {
            let cells = candidate.expected.len();
            let new = !self.remembered.contains_key(&candidate.set) && cells <= room;
            room -= if new { cells } else { 0 };
            new
        };
        let new: Vec<&Candidate> = candidates.iter().filter(fits).collect();
        let table = &*self.table;
        let counted: Vec<_> = new.par_iter().map(|new| (new.set.clone(), table.counts(&new.set))).collect();
        self.remembered.extend(counted);
    }

    /// From now on values are named differently; the names come from noisy answers.
    pub(crate) fn rename(&mut self, columns: Columns, maps: &[Vec<u32>]) {
        self.table = std::borrow::Cow::Owned(self.table.renamed(columns, maps));
        self.remembered.clear();
    }
}

/// weight·(‖counts − expected‖₁ − penalty) in units of 2⁻²⁰, exactly.
fn score(counts: &[u32], candidate: &Candidate) -> i64 {
    let unit = f64::from(1u32 << FRACTION_LOG2);
    let fixed = |value: f64| (value.clamp(0.0, MOST_ROWS) * unit).round() as i64;
    let distance = |(&count, &expected): (&u32, &f64)| {
        ((i64::from(count) << FRACTION_LOG2) - fixed(expected)).unsigned_abs()
    };
    let distances: i128 = counts.iter().zip(&candidate.expected).map(distance).map(i128::from).sum();
    let weight = (candidate.weight.clamp(0.0, 1.0) * unit).round() as i128;
    let score = weight * (distances - i128::from(fixed(candidate.penalty)));
    // A limit moves no two scores further apart.
    score.clamp(i128::from(i64::MIN / 4), i128::from(i64::MAX / 4)) as i64
}

#[cfg(test)]
pub(crate) mod trace {
    //! What a curator saw, to be compared between neighbouring tables with equal answers.

    use super::{Noise, Rational};

    /// One look at the rows, and what was said about it.
    #[derive(Clone, Debug)]
    pub(crate) enum Look {
        Measured { counts: Vec<u32>, noise: Noise, said: Vec<f64> },
        Selected { scores: Vec<i64>, sensitivity: Rational, said: usize },
    }

    /// All looks so far; when `script` is given its answers are repeated.
    #[derive(Default)]
    pub(crate) struct Trace {
        pub(crate) looks: Vec<Look>,
        pub(crate) script: Option<Vec<Look>>,
        open: Option<(Vec<u32>, Noise)>,
        scores: Option<(Vec<i64>, Rational)>,
    }

    impl Trace {
        fn scripted(&self) -> Option<&Look> {
            self.script.as_ref().and_then(|script| script.get(self.looks.len()))
        }

        pub(crate) fn measured(&mut self, counts: &[u32], noise: &Noise) -> Option<Vec<f64>> {
            let said = match self.scripted() {
                Some(Look::Measured { said, .. }) => Some(said.clone()),
                _ => None,
            };
            match &said {
                Some(said) => self.looks.push(Look::Measured {
                    counts: counts.to_vec(),
                    noise: noise.clone(),
                    said: said.clone(),
                }),
                None => self.open = Some((counts.to_vec(), noise.clone())),
            }
            said
        }

        pub(crate) fn remember_measured(&mut self, said: &[f64]) {
            if let Some((counts, noise)) = self.open.take() {
                self.looks.push(Look::Measured { counts, noise, said: said.to_vec() });
            }
        }

        pub(crate) fn selected(&mut self, scores: &[i64], sensitivity: &Rational) -> Option<usize> {
            let said = match self.scripted() {
                Some(Look::Selected { said, .. }) => Some(*said),
                _ => None,
            };
            let (scores, sensitivity) = (scores.to_vec(), sensitivity.clone());
            match said {
                Some(said) => self.looks.push(Look::Selected { scores, sensitivity, said }),
                None => self.scores = Some((scores, sensitivity)),
            }
            said
        }

        pub(crate) fn remember_selected(&mut self, said: usize) {
            if let Some((scores, sensitivity)) = self.scores.take() {
                self.looks.push(Look::Selected { scores, sensitivity, said });
            }
        }
    }
}
