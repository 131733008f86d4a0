//! [`Engine::train`]: a model that tells one column from others.
//!
//! One row of each unit counts: the promise of training is for rows that come or go.
//!
//! **Going on.** A network's training leaves checkpoints beside the ledger. Stopped and asked for again, it goes on from the last one under the same charge. How good the model is on public rows
//! is told only of states that were stored: what is shown is never made a second time.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use demur_core::{Adjacency, Guarantee, PrivacyLoss};
use demur_exact::Rational;
use demur_learn::train::{
    Checkpoint, Examples, Model, Network, Plan, Progress, Recipe, Regression, Scattering, Shape,
};
use demur_noise::Entropy;
use serde::{Deserialize, Serialize};

use super::features::Features;
use super::lesson::{Asked, Learned, Pace, Watch};
use super::numbers::Numbers;
use super::predict::{Predictor, PublicRows};
use super::score::Score;
use crate::backend::Backend;
use crate::{Engine, EngineError, Project};

/// The form of models that this version writes.
pub(crate) const FORMAT: &str = "demur predictor 1";
/// Checkpoints are left this often.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(2);

/// What a model is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Linear, logistic or softmax regression by rule; nothing to choose.
    Regression,
    /// A network of these layers, as in `dense(64), tanh` or `convolution(16, 8, 2, 3), relu, pool(2, 1)`, and how it is trained.
    Network(String, Recipe),
    /// Softmax regression on fixed scattering features of images, and how it is trained.
    Scattering(Recipe),
}

/// Which model somebody wants.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// The table.
    pub table: String,
    /// The column that shall be told.
    pub label: String,
    /// The columns to tell it from; all that are declared unless given.
    pub columns: Option<Vec<String>>,
    /// What it is made of.
    pub body: Body,
    /// If the columns are pixels: rows and columns of the image. They stand row by row from the top.
    pub image: Option<[usize; 2]>,
    /// About how many rows the table has; public.
    pub rows: u64,
    /// What it may cost.
    pub guarantee: Guarantee,
    /// A file of public rows to show progress on.
    pub public: Option<PathBuf>,
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
    /// How it is trained.
    pub(crate) plan: String,
    /// Height and width of images that are scattered first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scattering: Option<[usize; 2]>,
    pub(crate) cost: (f64, f64),
}

impl Header {
    /// What goes into the network, from encoded rows; each row depends on itself alone.
    pub(crate) fn inputs(&self, encoded: Vec<f32>) -> Result<Vec<f32>, EngineError> {
        let Some([height, width]) = self.scattering else { return Ok(encoded) };
        let grey: Vec<f32> = encoded.iter().map(|pixel| (pixel + 1.0) / 2.0).collect();
        Ok(Scattering::new(height, width)?.features(&grey)?)
    }
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
        let (layers, shape, recipe) = match (&wanted.body, wanted.image) {
            (Body::Regression, _) => {
                return Ok(Self::Regression(Box::new(Regression::new(&description, task, rows, guarantee)?)));
            }
            (Body::Network(layers, recipe), None) => {
                (layers.as_str(), Shape::row(description.width()), *recipe)
            }
            (Body::Network(layers, recipe), Some([height, width])) => (
                layers.as_str(),
                Shape::image(height, width, description.width() / (height * width)),
                *recipe,
            ),
            (Body::Scattering(recipe), Some([height, width])) => {
                ("", Scattering::new(height, width)?.shape(), *recipe)
            }
            (Body::Scattering(_), None) => {
                let text = "scattering is for images, but nothing says how large they are";
                return Err(EngineError::new("engine.learn.image", text).hint("say --image HEIGHTxWIDTH"));
            }
        };
        let network = Network::of_layers(shape, layers, task)?;
        Ok(Self::Network(Box::new(Plan::new(network, rows, guarantee, recipe)?)))
    }

    fn loss(&self) -> &PrivacyLoss {
        match self {
            Self::Regression(plan) => plan.loss(),
            Self::Network(plan) => plan.loss(),
        }
    }

    fn input(&self) -> Shape {
        match self {
            Self::Regression(plan) => plan.network().input(),
            Self::Network(plan) => plan.network().input(),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Regression(plan) => format!("{}, by rule", plan.network()),
            Self::Network(plan) => plan.to_string(),
        }
    }
}

/// What may be shown while a network is trained, and where it is kept.
struct Showing<'a, 'w> {
    begun: &'a Path,
    public: Option<&'a PublicRows>,
    /// When the last checkpoint was stored, what it had cost and how good it was.
    last: Option<(Instant, Option<f64>, Option<Score>)>,
    watch: &'a mut Watch<'w>,
}

impl Showing<'_, '_> {
    /// Stores now and then, and tells of what is stored.
    fn show(&mut self, plan: &Plan, delta: &Rational, checkpoint: &Checkpoint) {
        let due = self.last.is_none_or(|(kept, ..)| kept.elapsed() >= CHECKPOINT_EVERY);
        if due && keep(checkpoint, self.begun).is_some() {
            let score = self.public.map(|rows| rows.score(&checkpoint.model()));
            self.last = Some((Instant::now(), plan.epsilon_after(checkpoint.step(), delta).ok(), score));
        }
        let (epsilon, score) = self.last.map_or((None, None), |(_, epsilon, score)| (epsilon, score));
        let (step, steps) = (checkpoint.step(), Some(plan.recipe().steps));
        (self.watch)(&Pace { stage: "training", step, steps, epsilon, score });
    }
}

/// Stores a checkpoint so that it survives whatever comes next; nothing where that fails.
fn keep(checkpoint: &Checkpoint, path: &Path) -> Option<()> {
    let draft = path.with_extension("draft");
    let mut file = std::fs::File::create(&draft).ok()?;
    std::io::Write::write_all(&mut file, &checkpoint.to_bytes().ok()?).ok()?;
    file.sync_all().ok()?;
    std::fs::rename(&draft, path).ok()?;
    sync_folder(path)
}

/// The name is as durable as what it leads to.
#[cfg(unix)]
fn sync_folder(path: &Path) -> Option<()> {
    std::fs::File::open(path.parent()?).ok()?.sync_all().ok()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> Option<()> {
    Some(())
}

/// What an earlier attempt left.
fn left(begun: &Path) -> Option<Checkpoint> {
    Checkpoint::from_bytes(&std::fs::read(begun).ok()?).ok()
}

/// Where training begins: at a checkpoint that an earlier attempt left, or with new weights.
fn begin(method: &Method, begun: &Path) -> Result<Option<Checkpoint>, EngineError> {
    let Method::Network(plan) = method else { return Ok(None) };
    if let Some(checkpoint) = left(begun) {
        return Ok(Some(checkpoint));
    }
    let entropy = &mut Entropy::from_os().map_err(|_| EngineError::after_the_charge())?;
    let checkpoint = plan.begin(entropy);
    // Where it cannot be stored, nothing will be shown either.
    let _ = keep(&checkpoint, begun);
    Ok(Some(checkpoint))
}

fn fit(
    method: &Method,
    begun: Option<Checkpoint>,
    delta: &Rational,
    examples: &Examples,
    entropy: &mut Entropy,
    mut showing: Showing<'_, '_>,
) -> Result<Model, EngineError> {
    match (method, begun) {
        (Method::Network(plan), Some(begun)) => {
            let told = &mut |progress: &Progress<'_>| {
                showing.show(plan, delta, progress.checkpoint);
                ControlFlow::Continue(())
            };
            Ok(plan.resume(begun, examples, entropy, told)?.into_value())
        }
        (Method::Regression(plan), _) => {
            let told = &mut |progress: &Progress<'_>| {
                let (step, steps) = (progress.step, Some(progress.steps));
                (showing.watch)(&Pace { stage: "training", step, steps, epsilon: None, score: None });
                ControlFlow::Continue(())
            };
            Ok(plan.fit(examples, entropy, told)?.into_value())
        }
        (Method::Network(_), None) => Err(EngineError::after_the_charge()),
    }
}

impl Engine {
    /// Charges, reads the rows, and trains the model.
    pub fn train(
        &self,
        project: &Project,
        wanted: &Training,
        backend: &dyn Backend,
        watch: &mut Watch<'_>,
    ) -> Result<Learned<Predictor>, EngineError> {
        let table = project.private_table(&wanted.table, wanted.guarantee)?;
        if table.adjacency == Adjacency::Replace {
            let text =
                format!("rows of `{}` are replaced, but training is for rows that come or go", table.name);
            return Err(EngineError::new("engine.learn.adjacency", text)
                .hint("declare adjacency = \"add-remove\" for the table"));
        }
        let features = Features::of(table, &wanted.label, wanted.columns.as_deref(), wanted.image)?;
        let method = Method::of(&features, wanted)?;
        let scattered = matches!(wanted.body, Body::Scattering(_));
        let header = Header {
            format: FORMAT.to_owned(),
            table: table.name.clone(),
            features,
            rows: wanted.rows,
            plan: method.text(),
            scattering: wanted.image.filter(|_| scattered),
            cost: (wanted.guarantee.epsilon.value(), wanted.guarantee.delta.value()),
        };
        let public = match &wanted.public {
            Some(file) => Some(PublicRows::read(&header, file)?),
            None => None,
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
        // Something of the earlier attempt may have been shown, and then only what was stored before it goes on.
        let shows = matches!(method, Method::Network(_));
        let may_go_on = |begun: &Path| !shows || left(begun).is_some();
        let answer = self.learn_from(asked, backend, may_go_on, |path| {
            let (path, begun) = (path.to_owned(), begin(&method, path)?);
            let features = &header.features;
            let description = features.description()?;
            let numbers = Numbers::read(table, &features.readers(), backend)
                .map_err(|_| EngineError::after_the_charge())?
                .one_each();
            let (width, all) = (numbers.width, &numbers.values);
            let encoded = features.encode(&description, all.chunks(width).map(|row| &row[..width - 1]));
            let targets = features.targets(all.chunks(width).map(|row| row[width - 1]));
            let examples = Examples::new(method.input(), header.inputs(encoded)?, targets)?;
            let public = &public;
            Ok(move |entropy: &mut Entropy| {
                let showing = Showing { begun: &path, public: public.as_ref(), last: None, watch };
                let delta = wanted.guarantee.delta.exact();
                let model = fit(&method, begun, &delta, &examples, entropy, showing)?;
                Ok(vec![text, crate::synth::hexadecimal(&model.to_bytes()?)])
            })
        })?;
        Learned::of(answer, Predictor::read)
    }
}
