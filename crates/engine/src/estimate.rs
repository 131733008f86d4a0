//! [`Estimates`]: statistics made from noisy numbers, each with its interval.
//!
//! Nothing here has seen a true number; intervals follow from the law of the noise.

use std::sync::OnceLock;

use demur_exact::Rational;
use demur_plan::{Recipe, step_size};

use crate::EngineError;
use crate::interval::{Interval, Ratio, Spread, reach};
use crate::moments::Moments;
use crate::noise::Noise;
use crate::quantile::{Fit, Quantile, Tree};

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
    /// In its own unit; NaN where there is none.
    pub(crate) value: f64,
    /// Several values, where a list was asked for; none where there is no list.
    pub(crate) list: Vec<f64>,
    /// Where the truth lies.
    pub(crate) interval: Option<Interval>,
}

/// Noisy numbers of one subject: a fixed number of them for each group.
#[derive(Clone, Copy)]
pub(crate) struct Noisy<'a> {
    pub(crate) numbers: &'a [i128],
    pub(crate) noise: &'a Noise,
    /// The law of that noise, for sums.
    pub(crate) law: &'a Spread,
    /// Whether numbers were made of several noisy ones: then only their law counts.
    pub(crate) blended: bool,
    pub(crate) tree: Option<&'a Tree>,
    /// For each group of a tree, what its nodes come to, once somebody has asked: several statistics may be made of it.
    pub(crate) fits: &'a [OnceLock<Fit>],
}

/// How a statistic is made, for all groups.
pub(crate) struct Estimates<'a> {
    recipe: &'a Recipe,
    inputs: Vec<Noisy<'a>>,
    ratio: Option<&'a Ratio>,
    moments: Option<Moments>,
    /// The chance that the truth lies outside of an interval.
    beta: f64,
    /// By how many steps a whole number may be off.
    reach: f64,
    step: f64,
}

/// How averages of a recipe are estimated, if it is one, with intervals that hold but for a chance of β.
pub(crate) fn ratio(recipe: &Recipe, laws: &[&Spread], beta: f64) -> Result<Option<Ratio>, EngineError> {
    match (recipe, laws) {
        (Recipe::Mean { centre, row, .. }, [deviation, count]) => {
            let bounds = [row.low as f64, *centre as f64, row.high as f64];
            Ratio::of_spreads(deviation, count, bounds, beta).map(Some)
        }
        _ => Ok(None),
    }
}

/// By how many steps a whole number may be off but for a chance of β, if the recipe is of one.
pub(crate) fn error(recipe: &Recipe, inputs: &[Noisy<'_>], beta: f64) -> Result<Option<f64>, EngineError> {
    let found = match (recipe, inputs) {
        (Recipe::Units | Recipe::Plain { .. }, [noisy]) => match noisy.blended {
            true => noisy.law.quantile(beta),
            false => reach(&[(1.0, noisy.noise)], beta),
        },
        (Recipe::Sum { centre, .. }, [deviation, count]) => {
            Spread::sum(&[(1.0, deviation.law), (*centre as f64, count.law)]).quantile(beta)
        }
        _ => return Ok(None),
    };
    found.map(Some)
}

impl<'a> Estimates<'a> {
    /// For a recipe, the noisy numbers it names, its [`ratio`], and the chance of an error.
    pub(crate) fn new(
        recipe: &'a Recipe,
        inputs: Vec<Noisy<'a>>,
        ratio: Option<&'a Ratio>,
        beta: f64,
    ) -> Result<Self, EngineError> {
        let reach = error(recipe, &inputs, beta)?.unwrap_or(0.0);
        let moments = match recipe {
            Recipe::Moments { .. } => {
                let laws: Vec<&Spread> = inputs.iter().map(|input| input.law).collect();
                Some(Moments::new(recipe, &laws, beta)?)
            }
            _ => None,
        };
        Ok(Self { recipe, inputs, ratio, moments, beta, reach, step: step(recipe).to_f64() })
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
                let interval = self.scaled(ratio.interval(sum, number));
                Ok(Estimate::number(ratio.value(sum, number) * self.step, Some(interval)))
            }
            (Recipe::Moments { .. }, inputs) => {
                let moments = self.moments.as_ref().ok_or_else(EngineError::after_the_charge)?;
                let numbers =
                    inputs.iter().map(|input| input.number(group)).collect::<Result<Vec<_>, _>>()?;
                let found = moments.of(&numbers)?;
                Ok(found.map_or_else(Estimate::nothing, |(value, ends)| Estimate::number(value, Some(ends))))
            }
            (Recipe::Quantiles { at, .. }, [nodes]) => self.quantiles(nodes, at, group),
            (Recipe::Extreme { largest, .. }, [nodes]) => {
                let (tree, numbers) = nodes.tree(group)?;
                let found = tree.extreme(numbers, nodes.noise, *largest, self.beta)?;
                let scaled = |found: Quantile| {
                    Estimate::number(found.value * self.step, Some(self.scaled(found.interval)))
                };
                Ok(found.map_or_else(Estimate::nothing, scaled))
            }
            (Recipe::Buckets { cumulative, .. }, [nodes]) => {
                let (tree, numbers) = nodes.tree(group)?;
                let buckets = tree.buckets(numbers)?;
                let list = if *cumulative { shares(&buckets) } else { buckets };
                Ok(Estimate { list, ..Estimate::nothing() })
            }
            _ => Err(EngineError::after_the_charge()),
        }
    }

    fn whole(&self, steps: i128) -> Estimate {
        let (value, interval) = (steps as f64 * self.step, Interval::around(steps as f64, self.reach));
        Estimate { steps, value, list: Vec::new(), interval: Some(self.scaled(interval)) }
    }

    fn quantiles(&self, nodes: &Noisy<'_>, at: &[f64], group: usize) -> Result<Estimate, EngineError> {
        let (tree, of_group) = nodes.tree(group)?;
        let place = nodes.fits.get(group).ok_or_else(EngineError::after_the_charge)?;
        let fit = match place.get() {
            Some(fit) => fit,
            None => {
                let fit = tree.fit(of_group)?;
                place.get_or_init(|| fit)
            }
        };
        let found = tree.quantiles_of(fit, nodes.noise, at, self.beta)?;
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

impl Estimate {
    fn number(value: f64, interval: Option<Interval>) -> Self {
        Self { steps: 0, value, list: Vec::new(), interval }
    }

    /// What is said of nothing: NULL.
    fn nothing() -> Self {
        Self::number(f64::NAN, None)
    }
}

/// Which share of all lies in each cell and those before it; nothing where there is nothing.
fn shares(cells: &[f64]) -> Vec<f64> {
    let whole: f64 = cells.iter().sum();
    let share = |sum: &mut f64, cell: &f64| {
        *sum += cell;
        Some(*sum / whole)
    };
    if whole > 0.0 { cells.iter().scan(0.0, share).collect() } else { Vec::new() }
}

impl<'a> Noisy<'a> {
    /// The tree of a histogram and its noisy nodes.
    fn tree(&self, group: usize) -> Result<(&'a Tree, &'a [i128]), EngineError> {
        let tree = self.tree.ok_or_else(EngineError::after_the_charge)?;
        let width = tree.nodes();
        let nodes = self.numbers.get(group * width..(group + 1) * width);
        Ok((tree, nodes.ok_or_else(EngineError::after_the_charge)?))
    }

    fn number(&self, group: usize) -> Result<i128, EngineError> {
        self.numbers.get(group).copied().ok_or_else(EngineError::after_the_charge)
    }
}

/// The size of a step of a recipe's numbers.
pub(crate) fn step(recipe: &Recipe) -> Rational {
    match recipe {
        // Counts, and moments, which have steps of their own.
        Recipe::Units | Recipe::Buckets { .. } | Recipe::Moments { .. } => Rational::one(),
        Recipe::Plain { step, .. }
        | Recipe::Sum { step, .. }
        | Recipe::Mean { step, .. }
        | Recipe::Quantiles { step, .. }
        | Recipe::Extreme { step, .. } => step_size(*step),
    }
}
