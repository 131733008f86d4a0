//! [`Regression`]: softmax, logistic and linear regression on tables, with nothing left to choose.
//!
//! **Definition.** Rows are described by public [`Columns`](super::Columns), so that their length is bounded by a public R. Two things are asked of them:
//!
//! 1. the second moments Σ(x, 1)(x, 1)ᵀ, with noise, once;
//! 2. the clipped gradients of all rows, with noise, T times, in the coordinates that [`Whitening`] makes of the moments.
//!
//! **Guarantee.** The loss is that of one discrete Gaussian answer and T others; noise is the least for which the accountant proves the wanted (ε, δ), three tenths of it (in µ²) for the moments.
//! Neighbours differ in one row that is there or not.
//!
//! **Why.** A row in whole steps is a vector A with ‖A‖ ≤ 2¹³, which is checked in whole numbers. Its part of the moments is A·Aᵀ; the entries on and above the diagonal are a vector no longer
//! than ‖A·Aᵀ‖ = ‖A‖² ≤ 2²⁶. Gradients are those of `contribution.rs`.
//!
//! **Choices.** They follow from public numbers by rule. With d features, n rows and σ₁ the noise that a single answer of sensitivity 1 would need, s = n/(σ₁·d) says how strong the signal is. Descent goes on for
//! a time of 4·s, when noise has grown to a length of about 1, in steps that the curvature of the loss allows. Gradients are clipped to half the usual length of a whitened row, and later as the
//! signal gets stronger, when noise matters less than bias.
//!
//! **References.** \[Bohning1988\] for the curvature.

use demur_accounting::Account;
use demur_accounting::calibrate::{Target, calibrate_mixture};
use demur_core::{Guarantee, PrivacyLoss, Release};
use demur_exact::{Rational, gaussian_sigma};
use demur_noise::Entropy;

use super::contribution::CLIP_STEPS_SQUARED;
use super::curator::{Spring, StepNoise, noisy_moments};
use super::examples::{Examples, MAX_EXAMPLES};
use super::model::Model;
use super::network::{Network, Shape, Task};
use super::passes::chunk_rows;
use super::plan::{Plan, Recipe};
use super::progress::Watch;
use super::whitening::{LENGTH, Whitening};
use crate::LearnError;
use crate::error::require;

/// The part of the loss, in µ², that the moments get.
const MOMENTS: (u32, u32) = (3, 10);
/// How long descent goes on, in units of the signal.
const TIME: f64 = 4.0;
/// Steps there are, at least and at most.
const STEPS: (f64, f64) = (5.0, 200.0);
/// The signal from which clipping gets looser.
const STRONG: f64 = 40.0;
/// Moments have d² entries.
const MAX_FEATURES: usize = 4096;

/// See the module text.
///
/// ```
/// use std::ops::ControlFlow;
/// use demur_core::Guarantee;
/// use demur_learn::train::{Cell, Column, Columns, Examples, Regression, Shape, Targets, Task};
/// use demur_noise::Entropy;
///
/// let columns = Columns::new(vec![Column::Number { low: 0.0, high: 100.0 }, Column::Category { values: 2 }])?;
/// let guarantee = Guarantee::new("1".parse()?, "1e-5".parse()?);
/// let plan = Regression::new(&columns, Task::Classes(2), 1000, guarantee)?;
/// println!("charge {} first", plan.loss());
///
/// let mut features = Vec::new();
/// (0..1000).for_each(|i| columns.encode(&[Cell::Number(f64::from(i % 100)), Cell::Category(i % 2)], &mut features));
/// let labels = (0..1000).map(|i| u32::from(i % 100 > 50)).collect();
/// let examples = Examples::new(Shape::row(columns.width()), features, Targets::Classes(labels))?;
/// let model = plan.fit(&examples, &mut Entropy::from_os()?, &mut |_| ControlFlow::Continue(()))?.into_value();
/// assert_eq!(model.predict(&[0.5, 1.0, 0.0])?.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Regression {
    network: Network,
    /// R² of a row with its 1 for the bias.
    reach_squared: f64,
    rows: u64,
    recipe: Recipe,
    moments: StepNoise,
    gradients: StepNoise,
    loss: PrivacyLoss,
}

impl Regression {
    /// A plan for rows of such columns, of which there are about so many.
    pub fn new(
        columns: &super::Columns,
        task: Task,
        rows: u64,
        guarantee: Guarantee,
    ) -> Result<Self, LearnError> {
        let size = columns.width();
        require((1..=MAX_FEATURES).contains(&size), "learn.regression.features", || {
            format!(
                "regression works with 1 to {MAX_FEATURES} features, but the columns have {size}; declare fewer values, or train a network"
            )
        })?;
        let most = MAX_EXAMPLES as u64;
        require((1..=most).contains(&rows), "learn.plan.rows", || {
            format!("a plan is for 1 to {most} rows, but {rows} were given")
        })?;
        require(!guarantee.is_pure(), "learn.plan.pure", || {
            format!(
                "training uses Gaussian noise and needs a δ above 0, but {guarantee} was asked for; give a δ"
            )
        })?;
        let network = Network::new(Shape::row(size), Vec::new(), task)?;
        let target = Target { epsilon: guarantee.epsilon.exact(), delta: guarantee.delta.exact() };
        let signal = rows as f64 / (gaussian_sigma(&target.epsilon, &target.delta) * size as f64);
        let recipe = recipe(task, rows, signal);
        let unit = Rational::from(CLIP_STEPS_SQUARED as u64);
        let (part, whole) = (Rational::from(MOMENTS.0), Rational::from(MOMENTS.1));
        let side = size as u64 + 1;
        let step =
            |variance: Rational, dimensions: u64| StepNoise::new(Rational::one(), variance, dimensions);
        let make = |factor: &Rational| -> Result<(StepNoise, StepNoise, PrivacyLoss), LearnError> {
            let scale = &factor.square() * &unit;
            let moments = &(&scale * &whole) / &part;
            let gradients = &(&(&scale * &whole) / &(&whole - &part)) * &Rational::from(recipe.steps);
            let moments = step(Rational::from(moments.ceil()), side * (side + 1) / 2)?;
            // z has one feature more than x, and the layer its own bias.
            let gradients = step(Rational::from(gradients.ceil()), (side + 1) * network.outputs() as u64)?;
            let loss = moments.loss().compose(gradients.loss().repeat(recipe.steps));
            Ok((moments, gradients, loss))
        };
        let found = calibrate_mixture(&make(&Rational::one())?.2, &target)?;
        let factor = Rational::try_from(found.value)
            .map_err(|_| LearnError::ours("noise was calibrated to no number"))?;
        let factor = &factor * &(&Rational::one() + &Rational::power_of_two(-40));
        let (moments, gradients, loss) = make(&factor)?;
        let proven = Account::of(&loss)?.delta(&target.epsilon)?.bounds.upper;
        require(proven <= target.delta.to_f64_up(), "learn.broken", || {
            LearnError::ours("the noise that was found does not give the guarantee").to_string()
        })?;
        Ok(Self {
            network,
            reach_squared: columns.reach_squared() + 1.0,
            rows,
            recipe,
            moments,
            gradients,
            loss,
        })
    }

    /// What must be charged before [`fit`](Self::fit) is called.
    pub fn loss(&self) -> &PrivacyLoss {
        &self.loss
    }

    /// What is trained.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The least ε with which the loss is (ε, δ)-private, rounded up.
    pub fn epsilon(&self, delta: &Rational) -> Result<f64, LearnError> {
        Ok(Account::of(&self.loss)?.epsilon(delta)?.bounds.upper)
    }

    /// Trains the model. Charge [`loss`](Self::loss) first: it stands whatever happens here.
    pub fn fit(
        &self,
        examples: &Examples,
        entropy: &mut Entropy,
        watch: &mut Watch<'_>,
    ) -> Result<Release<Model>, LearnError> {
        Ok(Release::new(self.run(examples, entropy, watch)?, self.loss.clone()))
    }

    pub(crate) fn run<W: Spring>(
        &self,
        examples: &Examples,
        words: &mut W,
        watch: &mut Watch<'_>,
    ) -> Result<Model, LearnError> {
        examples.check(&self.network)?;
        let rows = self.rows as f64;
        let moments = noisy_moments(examples, self.reach_squared, &self.moments, words);
        // Moments are in units of R².
        let moments: Vec<f64> = moments.into_iter().map(|entry| entry * self.reach_squared).collect();
        let noise = self.moments.multiplier() * self.reach_squared;
        let side = self.network.input().size() + 1;
        let whitening = Whitening::new(&moments, side, rows, noise);
        let mut recipe = self.recipe;
        recipe.clip *= LENGTH * whitening.directions().sqrt();
        // Sums are in units of C, and z is longer than the rule assumes.
        recipe.rate *= recipe.clip / (LENGTH * LENGTH);
        let network = self.whitened_network()?;
        let plan = Plan::with_noise(network.clone(), recipe, self.gradients.clone());
        let chunk = chunk_rows(&network);
        let whitened = examples.map(network.input(), chunk, |features| whitening.apply(features, chunk));
        let begun = plan.begin(words);
        let model = plan.run(begun, &whitened, words, watch)?;
        let weights =
            model.weights().next().map(|weights| whitening.weights(weights, self.network.outputs()));
        Ok(Model::new(self.network.clone(), weights.into_iter().collect()))
    }

    /// z has one feature more than x.
    fn whitened_network(&self) -> Result<Network, LearnError> {
        Network::new(Shape::row(self.network.input().size() + 1), Vec::new(), self.network.task())
    }
}

/// Steps, their length and where gradients are clipped, from how strong the signal is; see the module text.
fn recipe(task: Task, rows: u64, signal: f64) -> Recipe {
    // 1/curvature: cross-entropy of two classes that share a sum bends by at most 1/2 along whitened directions, squared error by 1.
    let (longest, usual_error) = match task {
        Task::Classes(_) => (2.0, std::f64::consts::SQRT_2 / 2.0),
        Task::Number => (1.0, 0.5),
    };
    let time = TIME * signal * longest / 4.0;
    let steps = (time / longest).ceil().clamp(STEPS.0, STEPS.1);
    let looser = (signal / STRONG).sqrt().clamp(1.0, 16.0);
    let clip = usual_error * looser;
    Recipe {
        batch: rows,
        steps: steps as u64,
        clip,
        rate: (time / steps).clamp(1e-6, longest),
        momentum: 0.0,
    }
}
