//! [`Contributions`]: what each example adds to a gradient, clipped, on a lattice, exactly.
//!
//! **Definition.** The gradient of one example's loss by the weights of a dense layer is the outer product a⊗e of what went into the layer (and 1, for the bias)
//! and of the error that came back. Of a convolution it is the sum of a⊗e over its places. An example contributes c·gradient with c = min(1, C/‖gradient‖₂), in whole
//! steps of C/2²⁶, rounded so that its length is at most C. A batch yields the sum.
//!
//! **Guarantee.** Adding or removing an example moves the sum by a vector of whole numbers whose length is at most 2²⁶ steps.
//!
//! **Why.** What an example yields is a function of itself and the weights (`passes.rs`). A dense layer's part is A⊗E, where A = a in steps of 2⁻⁸, rounded and
//! bounded, and E = c·e in the steps that remain, rounded towards zero: whole numbers both. So ‖A⊗E‖² = ‖A‖²·‖E‖² without the product being there: that is the ghost
//! norm. A convolution's part is its gradient, rounded towards zero. Then
//!
//! ```text
//! Σ ‖A‖²·‖E‖² + Σ ‖G‖² ≤ 2⁵²
//! ```
//!
//! is *checked* over all layers, in whole numbers. Where rounding of c broke it, c shrinks; where that does not help, or a number is not finite, the example
//! contributes nothing. So the bound rests on no float.
//!
//! **Exactness.** All this happens in doubles that are whole numbers. Sums of terms ≥ 0 are exact up to 2⁵³, and beyond they stay beyond: the check is decided rightly. Sums over
//! a batch stay below 2²⁶·2²⁶, in any order of summation and with any fused operation; so the matrix product of A and E is exact too.
//!
//! **Memory.** No example's gradient is kept. Of dense layers none is ever made; those of convolutions exist for one example at a time.
//!
//! **References.** \[Abadi2016\] for the method, \[Goodfellow2015\] for norms of outer products.

use super::matrix::{Matrix, add_product};
use super::network::{Layer, Network};
use super::passes::Passes;

/// C in steps: 2²⁶.
pub(crate) const CLIP_STEPS: f64 = (1u64 << 26) as f64;
/// The square of it.
pub(crate) const CLIP_STEPS_SQUARED: f64 = CLIP_STEPS * CLIP_STEPS;
/// A is a in steps of 2⁻⁸, at most 2¹⁵ of them.
const INPUT_STEPS: f32 = 256.0;
const MOST_INPUT: f32 = 128.0;
/// 1.5·2²³: adding and subtracting it rounds to whole numbers.
const ROUND: f32 = 12_582_912.0;
/// How often c may shrink, and by what factor.
const ATTEMPTS: usize = 3;
const SHRINK: f64 = 1.0 - 1.0 / 65_536.0;

/// Buffers for the contributions of one chunk; see the module text.
pub(crate) struct Contributions {
    /// A of each dense layer, a row for each example.
    inputs: Vec<Vec<f64>>,
    /// ‖A‖², for each dense layer and example.
    input_squares: Vec<Vec<f64>>,
    /// E of each dense layer.
    errors: Vec<Vec<f64>>,
    /// One example's gradient of each convolution, and the same in steps.
    gradients: Vec<Vec<f32>>,
    steps: Vec<Vec<f64>>,
}

impl Contributions {
    pub(crate) fn new(network: &Network, rows: usize) -> Self {
        let sized = |dense: usize, convolution: usize| {
            move |layer: usize| -> usize {
                match network.layers()[layer] {
                    Layer::Dense { .. } => dense,
                    Layer::Convolution { .. } => convolution,
                    _ => 0,
                }
            }
        };
        let layers = 0..network.layers().len();
        let matrix = |layer: usize| network.matrix(layer);
        let buffers = |size: &dyn Fn(usize) -> usize| layers.clone().map(size).collect::<Vec<_>>();
        let zeros =
            |sizes: Vec<usize>| sizes.into_iter().map(|size| vec![0.0; size]).collect::<Vec<Vec<f64>>>();
        let (dense, convolution) = (sized(1, 0), sized(0, 1));
        Self {
            inputs: zeros(buffers(&|l| dense(l) * rows * matrix(l).0)),
            input_squares: zeros(buffers(&|l| dense(l) * rows)),
            errors: zeros(buffers(&|l| dense(l) * rows * matrix(l).1)),
            steps: zeros(buffers(&|l| convolution(l) * matrix(l).0 * matrix(l).1)),
            gradients: buffers(&|l| convolution(l) * matrix(l).0 * matrix(l).1)
                .into_iter()
                .map(|size| vec![0.0; size])
                .collect(),
        }
    }

    /// Adds what the examples of a chunk contribute, each clipped to `clip`, in steps.
    pub(crate) fn add(&mut self, passes: &Passes<'_>, clip: f64, sums: &mut [Vec<f64>]) {
        self.round_inputs(passes);
        for example in 0..passes.rows() {
            self.contribute(passes, example, clip, sums);
        }
        for (layer, sum) in sums.iter_mut().enumerate() {
            if let Layer::Dense { .. } = passes.network().layers()[layer] {
                let (inputs, units) = passes.network().matrix(layer);
                let a = Matrix::new(&self.inputs[layer], passes.rows(), inputs).transposed();
                add_product(a, Matrix::new(&self.errors[layer], passes.rows(), units), sum);
            }
        }
    }

    /// A and ‖A‖² of all examples.
    fn round_inputs(&mut self, passes: &Passes<'_>) {
        for (layer, kind) in passes.network().layers().iter().enumerate() {
            if !matches!(kind, Layer::Dense { .. }) {
                continue;
            }
            let inputs = passes.network().matrix(layer).0;
            let rows = self.inputs[layer]
                .chunks_exact_mut(inputs)
                .zip(passes.inputs(layer).chunks_exact(inputs - 1));
            for ((row, values), square) in rows.zip(&mut self.input_squares[layer]) {
                *square = round_row(values, row);
            }
        }
    }

    /// One example: its norm, its factor, its steps, the check. Its parts of dense layers wait in their rows.
    fn contribute(&mut self, passes: &Passes<'_>, example: usize, clip: f64, sums: &mut [Vec<f64>]) {
        if passes.counts(example) {
            let norm = self.norm_squared(passes, example).sqrt();
            let mut factor = CLIP_STEPS / clip.max(norm);
            for _ in 0..ATTEMPTS {
                // Neither side of this is a number where the gradient was not.
                if norm.is_finite() && self.round(passes, example, factor) <= CLIP_STEPS_SQUARED {
                    for (sum, steps) in sums.iter_mut().zip(&self.steps) {
                        sum.iter_mut().zip(steps).for_each(|(sum, steps)| *sum += steps);
                    }
                    return;
                }
                factor *= SHRINK;
            }
        }
        self.forget(passes.network(), example);
    }

    /// ‖gradient‖², as a float.
    fn norm_squared(&mut self, passes: &Passes<'_>, example: usize) -> f64 {
        let step = 1.0 / f64::from(INPUT_STEPS);
        let mut total = 0.0;
        for (layer, kind) in passes.network().layers().iter().enumerate() {
            let (rows, columns) = passes.network().matrix(layer);
            match kind {
                Layer::Dense { .. } => {
                    let errors = &passes.errors(layer)[example * columns..][..columns];
                    let square: f64 = errors.iter().map(|&error| f64::from(error) * f64::from(error)).sum();
                    total += self.input_squares[layer][example] * step * step * square;
                }
                Layer::Convolution { .. } => {
                    let gradient = &mut self.gradients[layer];
                    convolution_gradient(passes, layer, example, (rows, columns), gradient);
                    total += gradient.iter().map(|&entry| f64::from(entry) * f64::from(entry)).sum::<f64>();
                }
                _ => {}
            }
        }
        total
    }

    /// The example in steps, and the square of its length: exact, or beyond all bounds.
    fn round(&mut self, passes: &Passes<'_>, example: usize, factor: f64) -> f64 {
        let mut total = 0.0;
        for (layer, kind) in passes.network().layers().iter().enumerate() {
            match kind {
                Layer::Dense { .. } => {
                    let columns = passes.network().matrix(layer).1;
                    let factor = factor / f64::from(INPUT_STEPS);
                    let errors = &passes.errors(layer)[example * columns..][..columns];
                    let row = &mut self.errors[layer][example * columns..][..columns];
                    let square = shorten(errors, factor, row);
                    total += self.input_squares[layer][example] * square;
                }
                Layer::Convolution { .. } => {
                    total += shorten(&self.gradients[layer], factor, &mut self.steps[layer]);
                }
                _ => {}
            }
        }
        total
    }

    /// The example contributes nothing: zeros on both sides, since 0·NaN is not 0.
    fn forget(&mut self, network: &Network, example: usize) {
        for layer in 0..network.layers().len() {
            if let Layer::Dense { .. } = network.layers()[layer] {
                let (rows, columns) = network.matrix(layer);
                self.inputs[layer][example * rows..][..rows].fill(0.0);
                self.errors[layer][example * columns..][..columns].fill(0.0);
            }
        }
    }
}

/// Whole steps, towards zero, and the sum of their squares.
fn shorten(values: &[f32], factor: f64, out: &mut [f64]) -> f64 {
    let mut lanes = [0.0; 4];
    let (values, last_values) = values.as_chunks::<4>();
    let (out, last_out) = out.as_chunks_mut::<4>();
    for (values, out) in values.iter().zip(out) {
        for lane in 0..4 {
            out[lane] = f64::from((f64::from(values[lane]) * factor) as i32);
            lanes[lane] += out[lane] * out[lane];
        }
    }
    for (value, out) in last_values.iter().zip(last_out) {
        *out = f64::from((f64::from(*value) * factor) as i32);
        lanes[0] += *out * *out;
    }
    lanes.iter().sum()
}

/// A row of A, the bias last, and ‖A‖²; not a number where an entry is not.
fn round_row(values: &[f32], row: &mut [f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let (values, last_values) = values.as_chunks::<8>();
    let (whole, last) = row.as_chunks_mut::<8>();
    // The bias may be the last of a full block.
    let round = |value: f32| f64::from((value.clamp(-MOST_INPUT, MOST_INPUT) * INPUT_STEPS + ROUND) - ROUND);
    for (values, row) in values.iter().zip(whole.iter_mut()) {
        for lane in 0..8 {
            row[lane] = round(values[lane]);
            lanes[lane] += row[lane] * row[lane];
        }
    }
    let rest = whole.get_mut(values.len()).map_or(last, |block| block.as_mut_slice());
    for (row, &value) in rest.iter_mut().zip(last_values) {
        *row = round(value);
        lanes[0] += *row * *row;
    }
    if let Some(bias) = rest.get_mut(last_values.len()) {
        *bias = f64::from(INPUT_STEPS);
        lanes[0] += *bias * *bias;
    }
    lanes.iter().sum()
}

/// patchesᵀ·errors, and the sum of errors for the bias.
fn convolution_gradient(
    passes: &Passes<'_>,
    layer: usize,
    example: usize,
    (rows, columns): (usize, usize),
    gradient: &mut [f32],
) {
    let size = passes.network().after(layer).size();
    let errors = &passes.errors(layer)[example * size..][..size];
    let patches = passes.patches(layer, example);
    let places = size / columns;
    gradient.fill(0.0);
    let a = Matrix::new(patches, places, rows - 1).transposed();
    add_product(a, Matrix::new(errors, places, columns), gradient);
    let bias = &mut gradient[(rows - 1) * columns..];
    errors
        .chunks_exact(columns)
        .for_each(|row| bias.iter_mut().zip(row).for_each(|(bias, error)| *bias += error));
}
