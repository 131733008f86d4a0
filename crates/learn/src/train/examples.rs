//! [`Examples`]: the private rows a model learns from, as numbers.
//!
//! Everything about a single row is settled row by row, in silence: a refusal would speak of it. An example with a feature that is not a finite
//! number, or with a label that was not declared, counts nothing.

use rayon::prelude::*;

use super::network::{Network, Shape, Task};
use crate::LearnError;
use crate::error::require;

/// No more examples than this: sums of what they contribute stay below 2⁵³ (see `contribution.rs`).
pub const MAX_EXAMPLES: usize = 1 << 26;

/// What shall be predicted, one per example.
#[derive(Clone, Debug, PartialEq)]
pub enum Targets {
    /// A class from 0 on; a number that is not declared by the plan stands for none.
    Classes(Vec<u32>),
    /// A number.
    Numbers(Vec<f32>),
}

impl Targets {
    fn len(&self) -> usize {
        match self {
            Self::Classes(labels) => labels.len(),
            Self::Numbers(numbers) => numbers.len(),
        }
    }
}

/// Private rows in memory: n × (height × width × channels) features, row by row, and n targets.
///
/// ```
/// use demur_learn::train::{Examples, Shape, Targets};
/// let examples = Examples::new(Shape::row(2), vec![0.5, 1.0, -0.5, 0.0], Targets::Classes(vec![1, 0]))?;
/// assert_eq!(examples.len(), 2);
/// # Ok::<(), demur_learn::LearnError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Examples {
    shape: Shape,
    features: Vec<f32>,
    targets: Targets,
}

impl Examples {
    /// Features and targets of the same examples.
    pub fn new(shape: Shape, features: Vec<f32>, targets: Targets) -> Result<Self, LearnError> {
        let (size, count) = (shape.size(), targets.len());
        require(count <= MAX_EXAMPLES, "learn.examples.many", || {
            format!(
                "there may be at most {MAX_EXAMPLES} examples, but there are more; train on a part of them"
            )
        })?;
        require(features.len() == size * count, "learn.examples.shape", || {
            format!(
                "every example must have {size} features ({shape}), but features and targets do not match"
            )
        })?;
        Ok(Self { shape, features, targets })
    }

    /// How many there are; not public.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What one example looks like.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    pub(crate) fn features(&self, index: usize) -> &[f32] {
        &self.features[index * self.shape.size()..][..self.shape.size()]
    }

    /// The same targets with features of another shape, made of so many rows at once; each row must depend on itself alone.
    pub(crate) fn map(
        &self,
        shape: Shape,
        rows: usize,
        make: impl Fn(&[f32]) -> Vec<f32> + Send + Sync,
    ) -> Self {
        let features: Vec<Vec<f32>> = self.features.par_chunks(rows * self.shape.size()).map(make).collect();
        Self { shape, features: features.concat(), targets: self.targets.clone() }
    }

    pub(crate) fn class(&self, index: usize) -> Option<u32> {
        match &self.targets {
            Targets::Classes(labels) => labels.get(index).copied(),
            Targets::Numbers(_) => None,
        }
    }

    pub(crate) fn number(&self, index: usize) -> Option<f32> {
        match &self.targets {
            Targets::Numbers(numbers) => numbers.get(index).copied(),
            Targets::Classes(_) => None,
        }
    }

    /// Whether these are examples for such a network.
    pub(crate) fn check(&self, network: &Network) -> Result<(), LearnError> {
        let (asked, found) = (network.input(), self.shape);
        require(asked == found, "learn.examples.shape", || {
            format!("the plan is for examples of {asked} features, but these have {found}")
        })?;
        let fits = matches!(
            (network.task(), &self.targets),
            (Task::Classes(_), Targets::Classes(_)) | (Task::Number, Targets::Numbers(_))
        );
        require(fits, "learn.examples.targets", || {
            "the plan predicts classes and the targets are numbers, or the other way round".into()
        })
    }
}
