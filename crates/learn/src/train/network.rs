//! [`Network`]: the public shape of a model, from its features to its prediction.
//!
//! A network is a list of layers; a last dense layer to the classes, or to the one number, is always there and not listed. Without any
//! layer it is softmax (for two classes: logistic) or linear regression. It reads and prints as text:
//!
//! ```text
//! 28x28x1: convolution(16, 8, 2, 3), tanh, pool(2, 1), dense(32), tanh -> 10 classes
//! ```
//!
//! **Weights** of a dense layer or a convolution are one matrix with a row for each input of the layer (of a patch of it) and a last row for the bias,
//! and a column for each output.

use std::fmt;
use std::str::FromStr;

use demur_noise::Words;

use crate::LearnError;
use crate::error::require;

/// No network has more weights than this.
pub const MAX_WEIGHTS: usize = 1 << 24;
const MAX_SIDE: usize = 1 << 20;

/// Height × width × channels of what flows between layers; rows of a table have only channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows of pixels.
    pub height: usize,
    /// Pixels in a row.
    pub width: usize,
    /// Numbers in a pixel.
    pub channels: usize,
}

impl Shape {
    /// A row of a table with so many features.
    pub fn row(features: usize) -> Self {
        Self { height: 1, width: 1, channels: features }
    }

    /// An image; channels of a pixel stand side by side.
    pub fn image(height: usize, width: usize, channels: usize) -> Self {
        Self { height, width, channels }
    }

    /// How many numbers it has.
    pub fn size(self) -> usize {
        self.height * self.width * self.channels
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}", self.height, self.width, self.channels)
    }
}

/// One step from features to prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Every output is a weighted sum of all inputs.
    Dense {
        /// How many outputs there are.
        units: usize,
    },
    /// Every output is a weighted sum of a square patch of the image.
    Convolution {
        /// Outputs at each place.
        channels: usize,
        /// Side of the patch.
        kernel: usize,
        /// From one patch to the next.
        stride: usize,
        /// Zeros around the image.
        padding: usize,
    },
    /// The largest number of each square patch, channel by channel.
    Pool {
        /// Side of the patch.
        size: usize,
        /// From one patch to the next.
        stride: usize,
    },
    /// max(x, 0).
    Relu,
    /// tanh(x).
    Tanh,
}

/// What is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// One of so many classes, by softmax and cross-entropy.
    Classes(usize),
    /// A number, by squared error.
    Number,
}

/// See the module text.
///
/// ```
/// use demur_learn::train::{Layer, Network, Shape, Task};
/// let network = Network::new(Shape::row(64), vec![Layer::Dense { units: 32 }, Layer::Tanh], Task::Classes(10))?;
/// assert_eq!(network.to_string(), "1x1x64: dense(32), tanh -> 10 classes");
/// assert_eq!("1x1x64: dense(32), tanh -> 10 classes".parse(), Ok(network.clone()));
/// assert_eq!(network.weights(), 65 * 32 + 33 * 10);
/// # Ok::<(), demur_learn::LearnError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    input: Shape,
    /// With the last dense layer.
    layers: Vec<Layer>,
    /// What comes out of each layer.
    shapes: Vec<Shape>,
    task: Task,
}

impl Network {
    /// A network of these layers and the last one, which its task asks for.
    pub fn new(input: Shape, mut layers: Vec<Layer>, task: Task) -> Result<Self, LearnError> {
        let outputs = match task {
            Task::Classes(classes) => classes,
            Task::Number => 1,
        };
        require(task == Task::Number || (2..=1 << 16).contains(&outputs), "learn.network.classes", || {
            format!("a network tells from 2 to 65536 classes apart, but {outputs} were asked for")
        })?;
        require(layers.len() <= 64, "learn.network.layers", || {
            format!("a network has at most 64 layers, but {} were asked for", layers.len())
        })?;
        layers.push(Layer::Dense { units: outputs });
        check_shape(input)?;
        let mut shapes = Vec::with_capacity(layers.len());
        for layer in &layers {
            shapes.push(layer.output(shapes.last().copied().unwrap_or(input))?);
        }
        let network = Self { input, layers, shapes, task };
        let weights = network.weights();
        require(weights <= MAX_WEIGHTS, "learn.network.weights", || {
            format!("a network has at most {MAX_WEIGHTS} weights, but this one has {weights}")
        })?;
        Ok(network)
    }

    /// Softmax regression.
    pub fn softmax(features: usize, classes: usize) -> Result<Self, LearnError> {
        Self::new(Shape::row(features), Vec::new(), Task::Classes(classes))
    }

    /// What goes in.
    pub fn input(&self) -> Shape {
        self.input
    }

    /// What is predicted.
    pub fn task(&self) -> Task {
        self.task
    }

    /// How many numbers come out.
    pub fn outputs(&self) -> usize {
        self.shapes.last().map_or(0, |shape| shape.size())
    }

    /// How many weights there are, biases among them.
    pub fn weights(&self) -> usize {
        self.matrices().map(|(rows, columns)| rows.saturating_mul(columns)).fold(0, usize::saturating_add)
    }

    pub(crate) fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// What goes into a layer.
    pub(crate) fn before(&self, layer: usize) -> Shape {
        if layer == 0 { self.input } else { self.shapes[layer - 1] }
    }

    /// What comes out of it.
    pub(crate) fn after(&self, layer: usize) -> Shape {
        self.shapes[layer]
    }

    /// The weights of a layer: rows with the bias, and columns; 0 × 0 where there are none.
    pub(crate) fn matrix(&self, layer: usize) -> (usize, usize) {
        let before = self.before(layer);
        match self.layers[layer] {
            Layer::Dense { units } => (before.size() + 1, units),
            Layer::Convolution { channels, kernel, .. } => (kernel * kernel * before.channels + 1, channels),
            _ => (0, 0),
        }
    }

    pub(crate) fn matrices(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.layers.len()).map(|layer| self.matrix(layer))
    }

    /// All weights 0.
    pub(crate) fn zeros<T: Clone + Default>(&self) -> Vec<Vec<T>> {
        self.matrices().map(|(rows, columns)| vec![T::default(); rows * columns]).collect()
    }

    /// Where training begins: uniform weights of variance 1/inputs, or 2/inputs where relu will drop half of what comes out, so that signals and gradients are as
    /// large in deep layers as in the first; the last layer is no exception, since errors shall reach the others from the first step on. Biases are 0, and all
    /// weights where there is but one layer.
    pub(crate) fn beginning<W: Words>(&self, words: &mut W) -> Vec<Vec<f32>> {
        let mut weights = self.zeros::<f32>();
        if self.layers.len() == 1 {
            return weights;
        }
        for (layer, (tensor, (rows, columns))) in weights.iter_mut().zip(self.matrices()).enumerate() {
            let gain = if self.is_rectified(layer) { 2.0 } else { 1.0 };
            let reach = (3.0 * gain / rows.max(2).saturating_sub(1) as f64).sqrt();
            let inputs = tensor.len().saturating_sub(columns);
            for weight in &mut tensor[..inputs] {
                let uniform = (words.word() >> 11) as f64 / (1u64 << 53) as f64;
                *weight = (reach * (2.0 * uniform - 1.0)) as f32;
            }
        }
        weights
    }

    /// Whether relu is what next happens to the outputs of a layer, pools aside.
    fn is_rectified(&self, layer: usize) -> bool {
        let mut after = self.layers[layer + 1..].iter().filter(|after| !matches!(after, Layer::Pool { .. }));
        after.next() == Some(&Layer::Relu)
    }
}

impl Layer {
    /// What comes out when this goes in.
    fn output(self, before: Shape) -> Result<Shape, LearnError> {
        let after = match self {
            Self::Dense { units } => Shape::row(units),
            Self::Relu | Self::Tanh => before,
            Self::Convolution { channels, kernel, stride, padding } => {
                require(padding < kernel.max(1), "learn.network.padding", || {
                    format!(
                        "a convolution's padding must be smaller than its kernel, but in {self} it is not"
                    )
                })?;
                let side = |side: usize| self.places(side + 2 * padding, kernel, stride);
                Shape { height: side(before.height)?, width: side(before.width)?, channels }
            }
            Self::Pool { size, stride } => {
                let side = |side: usize| self.places(side, size, stride);
                Shape { height: side(before.height)?, width: side(before.width)?, ..before }
            }
        };
        check_shape(after)?;
        Ok(after)
    }

    /// How many patches fit into a side.
    fn places(self, side: usize, patch: usize, stride: usize) -> Result<usize, LearnError> {
        require((1..=side).contains(&patch) && stride >= 1, "learn.network.patch", || {
            format!(
                "{self} does not fit: the side is {side}; patches must fit into it and strides be 1 or more"
            )
        })?;
        Ok((side - patch) / stride + 1)
    }
}

fn check_shape(shape: Shape) -> Result<(), LearnError> {
    let sides = [shape.height, shape.width, shape.channels];
    let fits = sides.iter().all(|side| (1..=MAX_SIDE).contains(side));
    let size = sides.iter().fold(1usize, |product, &side| product.saturating_mul(side));
    require(fits && size <= MAX_WEIGHTS, "learn.network.shape", || {
        format!(
            "what flows through a network must have from 1 to {MAX_WEIGHTS} numbers, but {shape} was asked for"
        )
    })
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dense { units } => write!(f, "dense({units})"),
            Self::Convolution { channels, kernel, stride, padding } => {
                write!(f, "convolution({channels}, {kernel}, {stride}, {padding})")
            }
            Self::Pool { size, stride } => write!(f, "pool({size}, {stride})"),
            Self::Relu => f.write_str("relu"),
            Self::Tanh => f.write_str("tanh"),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.input)?;
        for (index, layer) in self.layers.iter().rev().skip(1).rev().enumerate() {
            write!(f, "{} {layer}", if index == 0 { "" } else { "," })?;
        }
        match self.task {
            Task::Classes(classes) => write!(f, " -> {classes} classes"),
            Task::Number => f.write_str(" -> number"),
        }
    }
}

impl FromStr for Network {
    type Err = LearnError;

    fn from_str(text: &str) -> Result<Self, LearnError> {
        let (shape, rest) = text.split_once(':').ok_or_else(|| unreadable(text))?;
        let (layers, task) = rest.rsplit_once("->").ok_or_else(|| unreadable(text))?;
        let sides: Option<Vec<usize>> = shape.trim().split('x').map(|side| side.parse().ok()).collect();
        let input = match sides.as_deref() {
            Some(&[height, width, channels]) => Shape { height, width, channels },
            _ => return Err(unreadable(shape)),
        };
        let task = match task.trim().strip_suffix("classes") {
            Some(classes) => Task::Classes(classes.trim().parse().map_err(|_| unreadable(task))?),
            None if task.trim() == "number" => Task::Number,
            None => return Err(unreadable(task)),
        };
        Self::of_layers(input, layers, task)
    }
}

impl Network {
    /// A network of layers as in `dense(64), relu`; none is softmax or linear regression.
    pub fn of_layers(input: Shape, layers: &str, task: Task) -> Result<Self, LearnError> {
        let mut parsed = Vec::new();
        let mut rest = layers.trim();
        while !rest.is_empty() {
            let end = match (rest.find('('), rest.find(',')) {
                (Some(open), comma) if comma.is_none_or(|comma| open < comma) => {
                    rest.find(')').ok_or_else(|| unreadable(rest))? + 1
                }
                (_, comma) => comma.unwrap_or(rest.len()),
            };
            let (layer, after) = rest.split_at(end);
            parsed.push(read_layer(layer.trim()).ok_or_else(|| unreadable(layer))?);
            let after = after.trim_start();
            rest = match after.strip_prefix(',') {
                Some(next) => next.trim_start(),
                None if after.is_empty() => after,
                None => return Err(unreadable(after)),
            };
        }
        Self::new(input, parsed, task)
    }
}

fn unreadable(what: &str) -> LearnError {
    let example = "28x28x1: convolution(16, 8, 2, 3), tanh, pool(2, 1), dense(32), relu -> 10 classes";
    LearnError::new(
        "learn.network.text",
        format!("`{what}` is no part of a network; one reads like `{example}`"),
    )
}

fn read_layer(text: &str) -> Option<Layer> {
    let (name, numbers) = match text.split_once('(') {
        Some((name, rest)) => {
            let numbers: Option<Vec<usize>> =
                rest.strip_suffix(')')?.split(',').map(|number| number.trim().parse().ok()).collect();
            (name.trim(), numbers?)
        }
        None => (text, Vec::new()),
    };
    Some(match (name, numbers.as_slice()) {
        ("dense", &[units]) => Layer::Dense { units },
        ("convolution", &[channels, kernel, stride, padding]) => {
            if [channels, kernel, stride, padding].iter().any(|&number| number > MAX_SIDE) {
                return None;
            }
            Layer::Convolution { channels, kernel, stride, padding }
        }
        ("pool", &[size, stride]) => Layer::Pool { size, stride },
        ("relu", &[]) => Layer::Relu,
        ("tanh", &[]) => Layer::Tanh,
        _ => return None,
    })
}
