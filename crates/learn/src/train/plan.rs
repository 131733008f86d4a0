//! [`Plan`]: how a model will be trained and what that costs, before an example is seen.
//!
//! **Definition.** With weights w, in each of T steps: every example is drawn with probability q; the clipped gradients of those drawn are added up, and noise, as `curator.rs` says; the sum g, in units of
//! C, moves the weights,
//!
//! ```text
//! v ← m·v + g/(q·n),    w ← w − r·v,
//! ```
//!
//! with the public number of rows n, momentum m and rate r. The model is the mean of w over the second half of the steps; with hidden layers over the last tenth, since
//! weights that lie far apart have no mean of any use there.
//!
//! **Guarantee.** The loss is T times that of one step, whose noise is the least for which the accountant proves the wanted (ε, δ). It is read from the sampler and the noise that run.
//! Neighbours differ in one example that is there or not.
//!
//! **Why n is public.** Batches are drawn at a rate, and sums divided by an expected size, so the number of examples is never used; n is what the owner says or a noisy count said.
//! A wrong one costs accuracy, not privacy.
//!
//! **References.** \[Abadi2016\].

use std::fmt;

use demur_accounting::Account;
use demur_accounting::calibrate::{Target, calibrate_mixture};
use demur_core::{Guarantee, PrivacyLoss, Release};
use demur_exact::{Rational, widest};
use demur_noise::{Entropy, Words};
use rayon::prelude::*;

use super::checkpoint::Checkpoint;
use super::contribution::{CLIP_STEPS, CLIP_STEPS_SQUARED};
use super::curator::{Curator, Spring, StepNoise};
use super::examples::{Examples, MAX_EXAMPLES};
use super::model::Model;
use super::network::Network;
use super::progress::{Progress, Watch, tell};
use crate::LearnError;
use crate::error::require;

/// The most steps a plan may have.
pub const MAX_STEPS: u64 = 1 << 20;

/// So many weights are moved by one thread.
const PART: usize = 8192;

/// How training goes; all of it is public.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recipe {
    /// How many examples a step draws on average: q·n.
    pub batch: u64,
    /// How many steps there are.
    pub steps: u64,
    /// C: the longest gradient that counts in full.
    pub clip: f64,
    /// r: how far a step goes when all examples agree.
    pub rate: f64,
    /// m: how much of the last step is repeated.
    pub momentum: f64,
}

/// See the module text.
///
/// ```
/// use std::ops::ControlFlow;
/// use demur_core::Guarantee;
/// use demur_learn::train::{Examples, Network, Plan, Recipe, Shape, Targets};
/// use demur_noise::Entropy;
///
/// // Public: what the model looks like, how many rows there are about, what it may cost.
/// let network = Network::softmax(2, 2)?;
/// let guarantee = Guarantee::new("1".parse()?, "1e-5".parse()?);
/// let recipe = Recipe { batch: 50, steps: 20, clip: 1.0, rate: 1.0, momentum: 0.0 };
/// let plan = Plan::new(network, 500, guarantee, recipe)?;
/// println!("charge {} first", plan.loss());
///
/// let features = (0..500).flat_map(|i| if i % 2 == 0 { [1.0, 0.5] } else { [-1.0, 0.5] }).collect();
/// let labels = (0..500).map(|i| i % 2).collect();
/// let examples = Examples::new(Shape::row(2), features, Targets::Classes(labels))?;
/// let entropy = &mut Entropy::from_os()?;
/// let model = plan.fit(&examples, entropy, &mut |_| ControlFlow::Continue(()))?.into_value();
/// assert_eq!(model.predict(&[1.0, 0.5])?.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plan {
    network: Network,
    recipe: Recipe,
    step: StepNoise,
    loss: PrivacyLoss,
}

impl Plan {
    /// The plan with the least noise for the guarantee, on about so many rows.
    pub fn new(
        network: Network,
        rows: u64,
        guarantee: Guarantee,
        recipe: Recipe,
    ) -> Result<Self, LearnError> {
        recipe.check(rows)?;
        require(!guarantee.is_pure(), "learn.plan.pure", || {
            format!(
                "training uses Gaussian noise and needs a δ above 0, but {guarantee} was asked for; give a δ"
            )
        })?;
        let rate = Rational::new(recipe.batch.into(), rows.into());
        let dimensions = network.weights() as u64;
        let of = |variance: Rational| StepNoise::new(rate.clone(), variance, dimensions);
        let start = of(Rational::from(CLIP_STEPS_SQUARED as u64))?.loss().repeat(recipe.steps);
        let target = Target { epsilon: guarantee.epsilon.exact(), delta: guarantee.delta.exact() };
        let found = calibrate_mixture(&start, &target)?;
        let factor = Rational::try_from(found.value)
            .map_err(|_| LearnError::ours("noise was calibrated to no number"))?;
        let variance = &factor.square() * &Rational::from(CLIP_STEPS_SQUARED as u64);
        // Whole squared steps, and one more for what the double lost.
        let step = of(&Rational::from(variance.ceil()) * &(&Rational::one() + &Rational::power_of_two(-45)))?;
        let loss = step.loss().repeat(recipe.steps);
        let proven = Account::of(&loss)?.delta(&target.epsilon)?.bounds.upper;
        require(proven <= target.delta.to_f64_up(), "learn.broken", || {
            LearnError::ours("the noise that was found does not give the guarantee").to_string()
        })?;
        Ok(Self { network, recipe, step, loss })
    }

    /// The plan with this very noise.
    pub(super) fn with_noise(network: Network, recipe: Recipe, step: StepNoise) -> Self {
        let loss = step.loss().repeat(recipe.steps);
        Self { network, recipe, step, loss }
    }

    /// What must be charged before [`fit`](Self::fit) is called.
    pub fn loss(&self) -> &PrivacyLoss {
        &self.loss
    }

    /// The least ε with which the loss is (ε, δ)-private, rounded up.
    pub fn epsilon(&self, delta: &Rational) -> Result<f64, LearnError> {
        Ok(Account::of(&self.loss)?.epsilon(delta)?.bounds.upper)
    }

    /// The same of the first `steps` steps.
    pub fn epsilon_after(&self, steps: u64, delta: &Rational) -> Result<f64, LearnError> {
        let loss = self.step.loss().repeat(steps.min(self.recipe.steps));
        Ok(Account::of(&loss)?.epsilon(delta)?.bounds.upper)
    }

    /// The network to be trained.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// How training goes.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// The standard deviation of the noise on each weight's sum, in units of C.
    pub fn noise_multiplier(&self) -> f64 {
        self.step.multiplier()
    }

    /// The probability with which an example is drawn.
    pub fn sampling_rate(&self) -> &Rational {
        self.step.rate()
    }

    /// Trains the model. Charge [`loss`](Self::loss) first: it stands whatever happens here.
    pub fn fit(
        &self,
        examples: &Examples,
        entropy: &mut Entropy,
        watch: &mut Watch<'_>,
    ) -> Result<Release<Model>, LearnError> {
        let beginning = self.begin(entropy);
        self.resume(beginning, examples, entropy, watch)
    }

    /// Goes on from a checkpoint of this very plan, under the charge that was made for it.
    pub fn resume(
        &self,
        checkpoint: Checkpoint,
        examples: &Examples,
        entropy: &mut Entropy,
        watch: &mut Watch<'_>,
    ) -> Result<Release<Model>, LearnError> {
        Ok(Release::new(self.run(checkpoint, examples, entropy, watch)?, self.loss.clone()))
    }

    /// The state before the first step; no example was seen.
    pub fn begin<W: Words>(&self, words: &mut W) -> Checkpoint {
        let weights = self.network.beginning(words);
        Checkpoint {
            network: self.network.clone(),
            plan: self.to_string(),
            step: 0,
            velocity: self.network.zeros(),
            average: weights.clone(),
            weights,
        }
    }

    pub(crate) fn run<W: Spring>(
        &self,
        mut state: Checkpoint,
        examples: &Examples,
        words: &mut W,
        watch: &mut Watch<'_>,
    ) -> Result<Model, LearnError> {
        require(state.plan == self.to_string() && state.network == self.network, "learn.checkpoint", || {
            "this checkpoint belongs to another plan; go on with the plan it was made under".into()
        })?;
        examples.check(&self.network)?;
        let left = self.recipe.steps.checked_sub(state.step).ok_or_else(|| {
            LearnError::new(
                "learn.checkpoint",
                "this checkpoint has more steps than its plan; it was changed",
            )
        })?;
        let mut curator = Curator::new(&self.network, examples, &self.step, self.recipe.clip, left, words);
        while state.step < self.recipe.steps {
            // Among the threads at once: who comes from outside has to wake them at every turn.
            rayon::scope(|_| -> Result<(), LearnError> {
                self.recipe.follow(curator.noisy_sum(&state.weights)?, &mut state);
                Ok(())
            })?;
            tell(watch, &Progress { step: state.step, steps: self.recipe.steps, checkpoint: &state })?;
        }
        Ok(Model::new(state.network, state.average))
    }
}

impl Recipe {
    /// What to begin with where nothing better is known: 200 steps, each on about an eighth of the rows.
    ///
    /// Large batches and few steps suit noise: it is added once a step, whatever the size of the batch.
    pub fn usual(rows: u64) -> Self {
        Self { batch: rows.div_ceil(8).max(1), steps: 200, clip: 1.0, rate: 0.5, momentum: 0.9 }
    }

    fn check(&self, rows: u64) -> Result<(), LearnError> {
        let most = MAX_EXAMPLES as u64;
        require((1..=most).contains(&rows), "learn.plan.rows", || {
            format!("a plan is for 1 to {most} rows, but {rows} were given")
        })?;
        require((1..=rows).contains(&self.batch), "learn.plan.batch", || {
            format!(
                "a batch has from 1 example to all {rows}, but {} were asked for; ask for fewer",
                self.batch
            )
        })?;
        require((1..=MAX_STEPS).contains(&self.steps), "learn.plan.steps", || {
            format!("a plan has from 1 to {MAX_STEPS} steps, but {} were asked for", self.steps)
        })?;
        require((1e-6..=1e6).contains(&self.clip), "learn.plan.clip", || {
            format!("gradients are clipped to a length between 10⁻⁶ and 10⁶, but {} was given", self.clip)
        })?;
        require((1e-9..=1e9).contains(&self.rate), "learn.plan.rate", || {
            format!("the learning rate must lie between 10⁻⁹ and 10⁹, but it is {}", self.rate)
        })?;
        require((0.0..1.0).contains(&self.momentum), "learn.plan.momentum", || {
            format!("momentum lies from 0 to below 1, but {} was given", self.momentum)
        })
    }

    /// One step of the weights. Post-processing: nothing but noisy sums goes in.
    fn follow(&self, sums: &[Vec<i64>], state: &mut Checkpoint) {
        state.step += 1;
        // What a batch of the expected size adds up to, when all of it agrees.
        let steps = CLIP_STEPS * self.batch as f64;
        let last = self.steps.div_ceil(if state.network.layers().len() == 1 { 2 } else { 10 });
        let averaged = state.step.saturating_sub(self.steps - last).max(1);
        let share = 1.0 / averaged as f64;
        let tensors = state.weights.iter_mut().zip(&mut state.velocity).zip(&mut state.average).zip(sums);
        for (((weights, velocity), average), sums) in tensors {
            let parts = weights
                .par_chunks_mut(PART)
                .zip(velocity.par_chunks_mut(PART))
                .zip(average.par_chunks_mut(PART))
                .zip(sums.par_chunks(PART));
            parts.for_each(|(((weights, velocity), average), sums)| {
                let entries = weights.iter_mut().zip(velocity).zip(average).zip(sums);
                widest!(for (((weight, velocity), average), sum) in entries {
                    let moved = self.momentum * f64::from(*velocity) + *sum as f64 / steps;
                    *velocity = moved as f32;
                    *weight = (f64::from(*weight) - self.rate * moved) as f32;
                    *average += ((f64::from(*weight) - f64::from(*average)) * share) as f32;
                });
            });
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Recipe { batch, steps, clip, rate, momentum } = self.recipe;
        write!(
            f,
            "{}, {steps} steps of about {batch} examples, clipped to {clip}, rate {rate}, momentum {momentum}: {}",
            self.network, self.loss
        )
    }
}
