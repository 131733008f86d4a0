//! [`Checkpoint`]: where a training stands, so that it can go on later.
//!
//! **Paying once.** A plan is charged once and releases one model. A checkpoint is made of noisy sums that the charge covers, and it knows how many steps were made, so
//! who goes on makes only those that remain. After a crash the steps since the last checkpoint are made again with fresh noise: what they yielded before was
//! never seen, so it cost nothing. That is why a checkpoint is stored before anything computed from it is shown, and why it is used up when
//! training goes on: two models that grew from one checkpoint would have to be paid for twice.

use super::model::Model;
use super::network::Network;
use super::tensors;
use crate::LearnError;

/// See the module text. It cannot be cloned.
#[derive(Debug)]
pub struct Checkpoint {
    pub(crate) network: Network,
    /// The text of the plan it belongs to.
    pub(crate) plan: String,
    pub(crate) step: u64,
    pub(crate) weights: Vec<Vec<f32>>,
    pub(crate) velocity: Vec<Vec<f32>>,
    pub(crate) average: Vec<Vec<f32>>,
}

impl Checkpoint {
    /// How many steps were made.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The model as it stands; see [`Progress::checkpoint`](super::Progress::checkpoint) for when it may be looked at.
    pub fn model(&self) -> Model {
        Model::new(self.network.clone(), self.average.clone())
    }

    /// As a safetensors file. Keep it where the data is kept.
    pub fn to_bytes(&self) -> Result<Vec<u8>, LearnError> {
        let groups: [(&str, &[Vec<f32>]); 3] =
            [("weights", &self.weights), ("velocity", &self.velocity), ("average", &self.average)];
        tensors::write(
            &self.network,
            &groups,
            &[("plan", self.plan.clone()), ("step", self.step.to_string())],
        )
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, LearnError> {
        let file = tensors::File::read(bytes)?;
        let step = file.fact("step")?.parse().map_err(|_| {
            LearnError::new(
                "learn.file",
                "the checkpoint does not say at which step it was made; use another",
            )
        })?;
        Ok(Self {
            plan: file.fact("plan")?.to_owned(),
            step,
            weights: file.tensors("weights")?,
            velocity: file.tensors("velocity")?,
            average: file.tensors("average")?,
            network: file.network,
        })
    }
}
