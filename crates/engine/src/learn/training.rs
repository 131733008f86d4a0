//! [`Engine::train`]: a model that tells one column from others.
//!
//! One row of each unit counts: the promise of training is for rows that come or go.

use std::ops::ControlFlow;

use demur_core::{Adjacency, Guarantee, PrivacyLoss};
use demur_learn::train::{Examples, Layer, Model, Network, Plan, Recipe, Regression, Shape, Watch};
use demur_noise::Entropy;
use serde::{Deserialize, Serialize};

use super::features::Features;
use super::lesson::{Asked, Learned, Pace};
use super::numbers::Numbers;
use super::predict::Predictor;
use crate::backend::Backend;
use crate::{Engine, EngineError, Project};

/// The form of models that this version writes.
pub(crate) const FORMAT: &str = "demur predictor 1";

/// Which model somebody wants.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// The table.
    pub table: String,
    /// The column that shall be told.
    pub label: String,
    /// The columns to tell it from; all that are declared unless given.
    pub columns: Option<Vec<String>>,
    /// Hidden layers of so many units each; none for a regression.
    pub hidden: Vec<usize>,
    /// About how many rows the table has; public.
    pub rows: u64,
    /// What it may cost.
    pub guarantee: Guarantee,
    /// Who asks.
    pub requester: String,
}

/// What a model is of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    pub(crate) format: String,
    pub(crate) table: String,
    pub(crate) features: Features,
    pub(crate) rows: u64,
    pub(crate) network: String,
    pub(crate) cost: (f64, f64),
}

/// How it is trained.
enum Method {
    Regression(Box<Regression>),
    Network(Box<Plan>),
}

impl Method {
    fn of(features: &Features, wanted: &Training) -> Result<Self, EngineError> {
        let description = features.description()?;
        let (task, rows, guarantee) = (features.task(), wanted.rows, wanted.guarantee);
        if wanted.hidden.is_empty() {
            return Ok(Self::Regression(Box::new(Regression::new(&description, task, rows, guarantee)?)));
        }
        let layers = wanted.hidden.iter().flat_map(|units| [Layer::Dense { units: *units }, Layer::Tanh]);
        let network = Network::new(Shape::row(description.width()), layers.collect(), task)?;
        Ok(Self::Network(Box::new(Plan::new(network, rows, guarantee, Recipe::usual(rows))?)))
    }

    fn loss(&self) -> &PrivacyLoss {
        match self {
            Self::Regression(plan) => plan.loss(),
            Self::Network(plan) => plan.loss(),
        }
    }

    fn fit(
        &self,
        examples: &Examples,
        entropy: &mut Entropy,
        watch: &mut Watch<'_>,
    ) -> Result<Model, EngineError> {
        Ok(match self {
            Self::Regression(plan) => plan.fit(examples, entropy, watch)?.into_value(),
            Self::Network(plan) => plan.fit(examples, entropy, watch)?.into_value(),
        })
    }
}

impl Engine {
    /// Charges, reads the rows, and trains the model.
    pub fn train(
        &self,
        project: &Project,
        wanted: &Training,
        backend: &dyn Backend,
        pace: &mut Pace<'_>,
    ) -> Result<Learned<Predictor>, EngineError> {
        let table = project.private_table(&wanted.table, wanted.guarantee)?;
        if table.adjacency == Adjacency::Replace {
            let text =
                format!("rows of `{}` are replaced, but training is for rows that come or go", table.name);
            return Err(EngineError::new("engine.learn.adjacency", text)
                .hint("declare adjacency = \"add-remove\" for the table"));
        }
        let features = Features::of(table, &wanted.label, wanted.columns.as_deref())?;
        let method = Method::of(&features, wanted)?;
        let header = Header {
            format: FORMAT.to_owned(),
            table: table.name.clone(),
            features,
            rows: wanted.rows,
            network: format!("{:?}", wanted.hidden),
            cost: (wanted.guarantee.epsilon.value(), wanted.guarantee.delta.value()),
        };
        let text = serde_json::to_string(&header)
            .map_err(|error| EngineError::new("engine.learn.model", error.to_string()))?;
        let asked = Asked {
            project,
            table,
            requester: &wanted.requester,
            what: "a trained model",
            wish: text.clone(),
            bounds: "one row of each unit counts; its gradients are clipped".to_owned(),
            sensitivity: "a row moves each sum of gradients by at most the length they are clipped to",
            loss: method.loss().clone(),
        };
        let answer = self.learn(asked, backend, || {
            let features = &header.features;
            let description = features.description()?;
            let numbers = Numbers::read(table, &features.readers(), backend)
                .map_err(|_| EngineError::after_the_charge())?
                .one_each();
            let (width, all) = (numbers.width, &numbers.values);
            let encoded = features.encode(&description, all.chunks(width).map(|row| &row[..width - 1]));
            let targets = features.targets(all.chunks(width).map(|row| row[width - 1]));
            let examples = Examples::new(Shape::row(description.width()), encoded, targets)?;
            Ok(move |entropy: &mut Entropy| {
                let model = method.fit(&examples, entropy, &mut |progress| {
                    pace("training", progress.step, Some(progress.steps));
                    ControlFlow::Continue(())
                })?;
                Ok(vec![text, crate::synth::hexadecimal(&model.to_bytes()?)])
            })
        })?;
        Learned::of(answer, Predictor::read)
    }
}
