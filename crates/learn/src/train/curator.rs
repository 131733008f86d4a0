//! [`Curator`]: the only one who sees examples.
//!
//! Training is written against the curator and never holds an example. The curator does one thing, as often as its [`StepNoise`] was charged for and not once more: it draws
//! a batch, adds up the clipped contributions of its examples (`contribution.rs`), and adds discrete Gaussian noise to every weight's sum. Whatever is done with
//! the answer (momentum, averages, predictions) is post-processing.
//!
//! **Guarantee.** Neighbours differ in one example that is there or not. Given the batch of the others, the sums of neighbours are at most 2²⁶ steps apart in ℓ2, so one step is
//! discrete Gaussian noise on a Poisson sample, and all steps are their adaptive composition with fixed parameters.
//!
//! **Exactness.** Sums and noise are whole numbers; they are divided by the *expected* size of a batch, which is public, after they met. A batch without examples yields noise.
//!
//! **References.** \[Abadi2016\], \[Canonne2020\].

use std::sync::atomic::{AtomicUsize, Ordering};

use demur_core::PrivacyLoss;
use demur_exact::{Rational, widest};
use demur_noise::{DiscreteGaussian, Entropy, Words};
use rayon::prelude::*;

use super::contribution::{CLIP_STEPS, CLIP_STEPS_SQUARED, Contributions};
use super::examples::Examples;
use super::matrix::{Matrix, add_product};
use super::network::Network;
use super::passes::{Passes, chunk_rows};
use super::sampler::PoissonSampler;
use crate::LearnError;

/// So many weights get their noise from one source of words; which ones does not depend on the number of threads.
const PART: usize = 1 << 13;

/// Weights whose contributions are added up at once: they stay in the first cache.
const BLOCK: usize = 1024;

/// The sampler and the noise of one step: what is drawn and what it costs come from the same value.
#[derive(Clone, Debug)]
pub(crate) struct StepNoise {
    sampler: PoissonSampler,
    noise: DiscreteGaussian,
    dimensions: u64,
}

impl StepNoise {
    /// Noise of `variance`, in squared steps, on so many weights of a batch at this rate.
    pub(crate) fn new(rate: Rational, variance: Rational, dimensions: u64) -> Result<Self, LearnError> {
        Ok(Self { sampler: PoissonSampler::new(rate)?, noise: DiscreteGaussian::new(variance)?, dimensions })
    }

    /// σ/C.
    pub(crate) fn multiplier(&self) -> f64 {
        self.noise.variance().to_f64().sqrt() / CLIP_STEPS
    }

    pub(crate) fn rate(&self) -> &Rational {
        self.sampler.rate()
    }

    /// What one step costs.
    pub(crate) fn loss(&self) -> PrivacyLoss {
        self.sampler.loss(PrivacyLoss::DiscreteGaussian {
            variance: self.noise.variance().clone(),
            l2_squared: Rational::from(CLIP_STEPS as u64).square(),
            dimensions: self.dimensions,
        })
    }
}

/// A source of words that others can be made from, so that threads draw without waiting for each other.
pub(crate) trait Spring: Words + Send + Sized {
    /// Another source, independent of this one.
    fn branch(&mut self) -> Result<Self, LearnError>;
}

impl Spring for Entropy {
    fn branch(&mut self) -> Result<Self, LearnError> {
        Ok(Self::from_os()?)
    }
}

/// One thread's buffers and sums.
struct Worker<'a> {
    passes: Passes<'a>,
    contributions: Contributions,
}

impl Worker<'_> {
    /// Adds up what some examples contribute, a chunk at a time.
    fn contribute<'i>(
        &mut self,
        chunks: impl Iterator<Item = &'i [u32]>,
        examples: &Examples,
        weights: &[Vec<f32>],
        clip: f64,
    ) {
        self.contributions.clear();
        for indices in chunks {
            self.passes.forward(indices.iter().map(|&index| examples.features(index as usize)), weights);
            self.passes.backward(examples, indices, weights);
            self.contributions.add(&self.passes, clip);
        }
    }
}

/// See the module text.
pub(crate) struct Curator<'a, W> {
    examples: &'a Examples,
    step: &'a StepNoise,
    clip: f64,
    /// Steps that may still be made.
    left: u64,
    /// Who takes part.
    words: &'a mut W,
    workers: Vec<Worker<'a>>,
    batch: Vec<u32>,
    chunk: usize,
    /// What a step yields, layer by layer, in whole steps.
    sums: Vec<Vec<i64>>,
}

impl<'a, W: Spring> Curator<'a, W> {
    pub(crate) fn new(
        network: &'a Network,
        examples: &'a Examples,
        step: &'a StepNoise,
        clip: f64,
        left: u64,
        words: &'a mut W,
    ) -> Self {
        let chunk = chunk_rows(network);
        let worker =
            |_| Worker { passes: Passes::new(network), contributions: Contributions::new(network, chunk) };
        let workers = (0..rayon::current_num_threads().max(1)).map(worker).collect();
        let sums = network.matrices().map(|(rows, columns)| vec![0; rows * columns]).collect();
        Self { examples, step, clip, left, words, workers, batch: Vec::new(), chunk, sums }
    }

    /// The noisy sum of a batch's contributions, in steps of C/2²⁶.
    pub(crate) fn noisy_sum(&mut self, weights: &[Vec<f32>]) -> Result<&[Vec<i64>], LearnError> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or_else(|| LearnError::ours("a run asked for more steps than were paid for"))?;
        let mut batch = std::mem::take(&mut self.batch);
        self.step.sampler.draw(self.examples.len(), self.words, &mut batch);
        let noise = &self.step.noise;
        self.add_up(&batch, weights, |sums, words| noise.fill_wrapping(words, sums))?;
        self.batch = batch;
        Ok(&self.sums)
    }

    /// The exact sum over a batch, in steps. It is private.
    #[cfg(test)]
    pub(super) fn sum(&mut self, batch: &[u32], weights: &[Vec<f32>]) -> Vec<Vec<i64>> {
        self.add_up(batch, weights, |sums, _| sums.fill(0)).unwrap();
        self.sums.clone()
    }

    /// What `begin` puts down for some weights at a time, and to it what a batch contributes.
    fn add_up(
        &mut self,
        batch: &[u32],
        weights: &[Vec<f32>],
        begin: impl Fn(&mut [i64], &mut W) + Sync,
    ) -> Result<(), LearnError> {
        let parts = self.sums.iter_mut().flat_map(|sums| sums.chunks_mut(PART));
        let parts =
            parts.map(|sums| Ok((sums, self.words.branch()?))).collect::<Result<Vec<_>, LearnError>>()?;
        // Every thread takes the next chunk of the batch; who finds none left draws noise until all are done.
        let (examples, clip, chunk) = (self.examples, self.clip, self.chunk);
        let (next, begin) = (&AtomicUsize::new(0), &begin);
        let take = move || batch.chunks(chunk).nth(next.fetch_add(1, Ordering::Relaxed));
        rayon::scope_fifo(|scope| {
            for worker in &mut self.workers {
                scope.spawn_fifo(move |_| {
                    worker.contribute(std::iter::from_fn(take), examples, weights, clip);
                });
            }
            for (sums, mut words) in parts {
                scope.spawn_fifo(move |_| begin(sums, &mut words));
            }
        });
        let workers = &self.workers;
        self.sums.par_iter_mut().enumerate().for_each(|(layer, sums)| {
            sums.par_chunks_mut(BLOCK).enumerate().with_min_len(PART / BLOCK).for_each(|(index, sums)| {
                let mut exact = [0.0; BLOCK];
                let exact = &mut exact[..sums.len()];
                // Whole numbers below 2⁵², in any order.
                workers.iter().for_each(|worker| worker.contributions.add_to(layer, index * BLOCK, exact));
                add_whole(sums, exact);
            });
        });
        Ok(())
    }
}

/// Adds whole numbers below 2⁵².
fn add_whole(sums: &mut [i64], exact: &[f64]) {
    debug_assert!(exact.iter().all(|sum| sum.fract() == 0.0 && sum.abs() < CLIP_STEPS_SQUARED));
    widest!(for (sum, exact) in sums.iter_mut().zip(exact) {
        *sum = sum.wrapping_add(*exact as i64);
    });
}

/// Rows whose moments are added up at once.
const MOMENT_ROWS: usize = 256;

/// Σ(x, 1)(x, 1)ᵀ over all examples, rows longer than R shortened, in units of R², with noise; symmetric and row-major.
///
/// See `regression.rs` for why it moves by at most 2²⁶ steps.
pub(super) fn noisy_moments<W: Words>(
    examples: &Examples,
    reach_squared: f64,
    noise: &StepNoise,
    words: &mut W,
) -> Vec<f64> {
    let side = examples.shape().size() + 1;
    let mut sums = exact_moments(examples, reach_squared);
    for i in 0..side {
        let row = &mut sums[i * side + i..(i + 1) * side];
        let mut draws = vec![0; row.len()];
        noise.noise.fill_wrapping(words, &mut draws);
        add_whole(&mut draws, row);
        row.iter_mut().zip(draws).for_each(|(sum, steps)| *sum = steps as f64 / CLIP_STEPS);
        (i..side).for_each(|j| sums[j * side + i] = sums[i * side + j]);
    }
    sums
}

/// The same without noise, in steps.
fn exact_moments(examples: &Examples, reach_squared: f64) -> Vec<f64> {
    let side = examples.shape().size() + 1;
    let starts: Vec<usize> = (0..examples.len()).step_by(MOMENT_ROWS).collect();
    let part = starts.len().div_ceil(rayon::current_num_threads().max(1)).max(1);
    let sum = |starts: &[usize]| {
        let (mut rows, mut sums) = (vec![0.0; MOMENT_ROWS * side], vec![0.0; side * side]);
        for &start in starts {
            for (place, row) in rows.chunks_exact_mut(side).enumerate() {
                match start + place < examples.len() {
                    true => shorten_row(examples.features(start + place), reach_squared, row),
                    false => row.fill(0.0),
                }
            }
            let rows = Matrix::new(&rows, MOMENT_ROWS, side);
            add_product(rows.transposed(), rows, &mut sums);
        }
        sums
    };
    let add = |mut a: Vec<f64>, b: Vec<f64>| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    };
    starts.par_chunks(part).map(sum).reduce(|| vec![0.0; side * side], add)
}

/// (x, 1) in steps of R/2¹³, towards zero; zeros where an entry is no finite number or the check fails.
fn shorten_row(features: &[f32], reach_squared: f64, row: &mut [f64]) {
    let length_squared: f64 = 1.0 + features.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
    let factor = (CLIP_STEPS / length_squared.max(reach_squared)).sqrt();
    let entries = features.iter().map(|&x| f64::from(x)).chain([1.0]);
    row.iter_mut().zip(entries).for_each(|(row, x)| *row = f64::from((x * factor) as i32));
    // Whole numbers: the sum is exact, or far too large.
    let steps: f64 = row.iter().map(|x| x * x).sum();
    if !(length_squared.is_finite() && steps <= CLIP_STEPS) {
        row.fill(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::{Shape, Targets};

    /// Adding a row, however long or odd, moves the entries on and above the diagonal by at most 2²⁶ steps in ℓ2, and each by what it yields alone.
    #[test]
    fn moments_of_neighbours_are_at_most_the_bound_apart_in_exact_steps() {
        let words = &mut demur_testkit::Seeded::new(21);
        let mut number = |scale: f32| scale * ((words.word() >> 40) as f32 / 8_388_608.0 - 1.0);
        let mut rows: Vec<Vec<f32>> =
            (0..300).map(|i| (0..4).map(|_| number([0.3, 1.0, 50.0][i % 3])).collect()).collect();
        rows.extend([
            vec![1.0; 4],
            vec![f32::NAN; 4],
            vec![f32::INFINITY, 0.0, 0.0, 0.0],
            vec![f32::MAX; 4],
            vec![0.0; 4],
        ]);
        let of = |rows: &[Vec<f32>]| {
            let labels = Targets::Classes(vec![0; rows.len()]);
            exact_moments(&Examples::new(Shape::row(4), rows.concat(), labels).unwrap(), 5.0)
        };
        let with = of(&rows);
        let mut longest = 0;
        for index in 0..rows.len() {
            let mut others = rows.clone();
            let alone = of(&[others.remove(index)]);
            let moved: Vec<f64> = with.iter().zip(of(&others)).map(|(a, b)| a - b).collect();
            assert_eq!(moved, alone);
            let upper =
                (0..25).filter(|at| at / 5 <= at % 5).map(|at| (moved[at] as i128).pow(2)).sum::<i128>();
            assert!(upper <= (CLIP_STEPS as i128).pow(2));
            longest = longest.max(upper);
        }
        assert!(longest as f64 > 0.5 * CLIP_STEPS * CLIP_STEPS, "the test must come near the bound");
    }
}
