//! [`Model`]: a trained network. All that is done with it is post-processing and costs nothing.

use rayon::prelude::*;

use super::network::{Network, Task};
use super::passes::{Passes, chunk_rows, softmax};
use super::tensors;
use crate::LearnError;
use crate::error::require;

/// A network and its weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    network: Network,
    weights: Vec<Vec<f32>>,
}

impl Model {
    pub(crate) fn new(network: Network, weights: Vec<Vec<f32>>) -> Self {
        Self { network, weights }
    }

    /// Its shape.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The weights of each layer that has some: rows for inputs and last for the bias, columns for outputs.
    pub fn weights(&self) -> impl Iterator<Item = &[f32]> {
        self.weights.iter().filter(|tensor| !tensor.is_empty()).map(Vec::as_slice)
    }

    /// What comes out for rows of features: for classes the probability of each, for numbers the number.
    pub fn predict(&self, features: &[f32]) -> Result<Vec<f32>, LearnError> {
        let (size, outputs) = (self.network.input().size(), self.network.outputs());
        require(features.len().is_multiple_of(size), "learn.predict.shape", || {
            format!("every row must have {size} features, but {} is no multiple of that", features.len())
        })?;
        let rows = chunk_rows(&self.network);
        let predict = |chunk: &[f32]| {
            let mut passes = Passes::new(&self.network);
            passes.forward(chunk.chunks_exact(size), &self.weights);
            let mut out = passes.outputs()[..chunk.len() / size * outputs].to_vec();
            if let Task::Classes(_) = self.network.task() {
                let values = out.clone();
                values
                    .chunks(outputs)
                    .zip(out.chunks_mut(outputs))
                    .for_each(|(values, out)| softmax(values, out));
            }
            out
        };
        Ok(features.par_chunks(rows * size).map(predict).collect::<Vec<_>>().concat())
    }

    /// The most probable class of each row.
    pub fn classify(&self, features: &[f32]) -> Result<Vec<u32>, LearnError> {
        require(self.network.task() != Task::Number, "learn.predict.task", || {
            "this model predicts a number, it knows no classes".into()
        })?;
        let best = |row: &[f32]| {
            let better = |(best, top): (usize, f32), (class, &p): (usize, &f32)| {
                if p > top { (class, p) } else { (best, top) }
            };
            row.iter().enumerate().fold((0, f32::NEG_INFINITY), better).0 as u32
        };
        Ok(self.predict(features)?.chunks(self.network.outputs()).map(best).collect())
    }

    /// As a safetensors file; the network stands in its metadata.
    pub fn to_bytes(&self) -> Result<Vec<u8>, LearnError> {
        tensors::write(&self.network, &[("weights", &self.weights)], &[])
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, LearnError> {
        let file = tensors::File::read(bytes)?;
        let weights = file.tensors("weights")?;
        Ok(Self { network: file.network, weights })
    }
}
