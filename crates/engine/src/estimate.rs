//! [`Estimates`]: statistics made from noisy numbers, each with its interval.
//!
//! Nothing here has seen a true number; intervals follow from the law of the noise.

use demur_exact::Rational;
use demur_plan::{Recipe, step_size};

use crate::EngineError;
use crate::interval::{Interval, Ratio, reach};
use crate::noise::Noise;
use crate::quantile::Tree;

/// The chance that the truth lies outside of an interval.
pub(crate) const OUTSIDE: f64 = 0.05;

/// The same for intervals of the k-th width, counted from 0: so many more answers share the chance.
pub(crate) fn outside(width: usize) -> f64 {
    OUTSIDE / (width + 1) as f64
}

/// What is known of a true number once noise was added.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Estimate {
    /// In whole steps, where it is whole.
    pub(crate) steps: i128,
    /// In its own unit.
    pub(crate) value: f64,
    /// Several values, where a list was asked for.
    pub(crate) list: Vec<f64>,
    /// Where the truth lies.
    pub(crate) interval: Option<Interval>,
}

/// Noisy numbers of one subject: a fixed number of them for each group.
#[derive(Clone, Copy)]
pub(crate) struct Noisy<'a> {
    pub(crate) numbers: &'a [i128],
    pub(crate) noise: &'a Noise,
    pub(crate) tree: Option<&'a Tree>,
}

/// How a statistic is made, for all groups.
pub(crate) struct Estimates<'a> {
    recipe: &'a Recipe,
    inputs: Vec<Noisy<'a>>,
    ratio: Option<&'a Ratio>,
    /// The chance that the truth lies outside of an interval.
    beta: f64,
    /// By how many steps a whole number may be off.
    reach: f64,
    step: f64,
}

/// How averages of a recipe are estimated, if it is one, with intervals that hold but for a chance of β.
pub(crate) fn ratio(recipe: &Recipe, noises: &[&Noise], beta: f64) -> Result<Option<Ratio>, EngineError> {
    match (recipe, noises) {
        (Recipe::Mean { centre, row, .. }, [deviation, count]) => {
            let bounds = [row.low as f64, *centre as f64, row.high as f64];
            Ratio::new(deviation, count, bounds, beta).map(Some)
        }
        _ => Ok(None),
    }
}

impl<'a> Estimates<'a> {
    /// For a recipe, the noisy numbers it names, its [`ratio`], and the chance of an error.
    pub(crate) fn new(
        recipe: &'a Recipe,
        inputs: Vec<Noisy<'a>>,
        ratio: Option<&'a Ratio>,
        beta: f64,
    ) -> Result<Self, EngineError> {
        let reach = match (recipe, inputs.as_slice()) {
            (Recipe::Units | Recipe::Plain { .. }, [noisy]) => reach(&[(1.0, noisy.noise)], beta)?,
            (Recipe::Sum { centre, .. }, [deviation, count]) => {
                reach(&[(1.0, deviation.noise), (*centre as f64, count.noise)], beta)?
            }
            _ => 0.0,
        };
        Ok(Self { recipe, inputs, ratio, beta, reach, step: step(recipe).to_f64() })
    }

    /// The statistic of one group.
    pub(crate) fn of(&self, group: usize) -> Result<Estimate, EngineError> {
        match (self.recipe, self.inputs.as_slice()) {
            (Recipe::Units | Recipe::Plain { .. }, [noisy]) => Ok(self.whole(noisy.number(group)?)),
            (Recipe::Sum { centre, .. }, [deviation, count]) => {
                let (sum, number) = (deviation.number(group)?, count.number(group)?);
                Ok(self.whole(sum.saturating_add(number.saturating_mul((*centre).into()))))
            }
            (Recipe::Mean { .. }, [deviation, count]) => {
                let ratio = self.ratio.ok_or_else(EngineError::after_the_charge)?;
                let (sum, number) = (deviation.number(group)?, count.number(group)?);
                let interval = Some(self.scaled(ratio.interval(sum, number)));
                Ok(Estimate {
                    steps: 0,
                    value: ratio.value(sum, number) * self.step,
                    list: Vec::new(),
                    interval,
                })
            }
            (Recipe::Quantiles { at, .. }, [nodes]) => self.quantiles(nodes, at, group),
            _ => Err(EngineError::after_the_charge()),
        }
    }

    fn whole(&self, steps: i128) -> Estimate {
        let (value, interval) = (steps as f64 * self.step, Interval::around(steps as f64, self.reach));
        Estimate { steps, value, list: Vec::new(), interval: Some(self.scaled(interval)) }
    }

    fn quantiles(&self, nodes: &Noisy<'_>, at: &[f64], group: usize) -> Result<Estimate, EngineError> {
        let tree = nodes.tree.ok_or_else(EngineError::after_the_charge)?;
        let width = tree.nodes();
        let of_group = nodes
            .numbers
            .get(group * width..(group + 1) * width)
            .ok_or_else(EngineError::after_the_charge)?;
        let found = tree.quantiles(of_group, nodes.noise, at, self.beta)?;
        let list: Vec<f64> = found.iter().map(|quantile| quantile.value * self.step).collect();
        let one = match found.as_slice() {
            [only] => Some(self.scaled(only.interval)),
            _ => None,
        };
        Ok(Estimate { steps: 0, value: list.first().copied().unwrap_or(f64::NAN), list, interval: one })
    }

    fn scaled(&self, interval: Interval) -> Interval {
        Interval { low: interval.low * self.step, high: interval.high * self.step }
    }
}

impl Noisy<'_> {
    fn number(&self, group: usize) -> Result<i128, EngineError> {
        self.numbers.get(group).copied().ok_or_else(EngineError::after_the_charge)
    }
}

/// The size of a step of a recipe's numbers.
pub(crate) fn step(recipe: &Recipe) -> Rational {
    match recipe {
        Recipe::Units => Rational::one(),
        Recipe::Plain { step, .. }
        | Recipe::Sum { step, .. }
        | Recipe::Mean { step, .. }
        | Recipe::Quantiles { step, .. } => step_size(*step),
    }
}
