//! [`Contributions`]: what each example adds to a gradient, clipped, on a lattice, exactly.
//!
//! **Definition.** The gradient of one example's loss by the weights of a dense layer is the outer product a⊗e of what went into the layer (and 1, for the bias)
//! and of the error that came back. Of a convolution it is the sum of a⊗e over its places. An example contributes c·gradient with c = min(1, C/‖gradient‖₂), in whole
//! steps of C/2²⁶, rounded so that its length is at most C. A batch yields the sum.
//!
//! **Guarantee.** Adding or removing an example moves the sum by a vector of whole numbers whose length is at most 2²⁶ steps.
//!
//! **Why.** What an example yields is a function of itself and the weights (`passes.rs`). A dense layer's part is A⊗E, where A = a in steps of its own largest entry/Q, and E = c·e in
//! the steps that remain, rounded: whole numbers both. So ‖A⊗E‖² = ‖A‖²·‖E‖² without the product being there: that is the ghost
//! norm. A convolution's part is its gradient, rounded. Layers have a [`Grain`] g, a power of two: their numbers stand for g steps each. Then
//!
//! ```text
//! Σ g²·‖A‖²·‖E‖² + Σ g²·‖G‖² ≤ 2⁵²
//! ```
//!
//! is *checked* over all layers, in whole numbers. Where rounding broke it, c shrinks; where that does not help, or a number is not finite, the example
//! contributes nothing. So the bound rests on no float.
//!
//! **Exactness.** Entries of A, E and G are whole numbers in singles: adding 1.5·2²³ and taking it away again leaves whole numbers up to 2²², and an entry that large fails the
//! check. Squares are added up in doubles: sums of terms ≥ 0 are exact up to 2⁵³, and beyond they stay beyond, so the check is decided rightly. Sums over
//! a batch are those of `exact_sum.rs`, and stay below 2²⁶·2²⁶ steps.
//!
//! **Memory.** No example's gradient is kept. Of dense layers none is ever made; those of convolutions exist for one example at a time.
//!
//! **References.** \[Abadi2016\] for the method, \[Goodfellow2015\] for norms of outer products.

use demur_exact::widest;

use super::exact_sum::{ExactSum, Rows};
use super::matrix::{Matrix, add_product};
use super::network::{Layer, Network};
use super::passes::Passes;

/// C in steps: 2²⁶.
pub(crate) const CLIP_STEPS: f64 = (1u64 << 26) as f64;
/// The square of it.
pub(crate) const CLIP_STEPS_SQUARED: f64 = CLIP_STEPS * CLIP_STEPS;
/// 1.5·2²³: adding and subtracting it rounds to whole numbers.
const ROUND: f32 = 12_582_912.0;
/// What c is multiplied with, one after the other, until the rounded example is short enough.
const SHRINK: [f64; 4] = [1.0 - 1.0 / 16_384.0, 1.0 - 1.0 / 256.0, 15.0 / 16.0, 0.5];
/// Layers with fewer weights are so quick that they get finer numbers.
const SMALL: usize = 1 << 14;

/// Numbers that are added up side by side: enough that none waits for the one before.
const LANES: usize = 32;

/// How coarse the numbers of a layer are.
#[derive(Clone, Copy)]
struct Grain {
    /// Steps that 1 stands for: a power of two.
    steps: f64,
    /// Q: the largest entry of A.
    largest: f32,
    /// So many squares of entries of A add up to at most 2²⁴.
    block: usize,
}

/// For layers with few weights.
const FINE: Grain = Grain { steps: 1.0, largest: 1023.0, block: 16 };
/// For those with many: seven digits for A leave enough for E that a few hundred rows add up in singles.
const COARSE: Grain = Grain { steps: 32.0, largest: 127.0, block: 1024 };
/// For gradients of convolutions.
const CONVOLUTION: Grain = Grain { steps: 64.0, largest: 0.0, block: 1 };

impl Grain {
    fn of(network: &Network, layer: usize) -> Self {
        let (rows, columns) = network.matrix(layer);
        match network.layers()[layer] {
            Layer::Convolution { .. } => CONVOLUTION,
            _ if rows * columns < SMALL => FINE,
            _ => COARSE,
        }
    }
}

/// One layer's numbers for the examples of a chunk.
enum Part {
    None,
    Dense {
        /// A, a row for each example.
        inputs: Vec<f32>,
        /// ‖A‖² of each example.
        squares: Vec<f64>,
        /// What 1 in A stands for.
        units: Vec<f64>,
        /// E, a row for each example.
        errors: Vec<f32>,
    },
    Convolution {
        /// One example's gradient, and the same in steps.
        gradient: Vec<f32>,
        steps: Vec<f32>,
        /// The largest of those steps.
        largest: f64,
    },
}

/// Buffers for the contributions of one chunk, and the sums of all chunks so far; see the module text.
pub(crate) struct Contributions {
    parts: Vec<(Part, Grain)>,
    sums: Vec<ExactSum>,
}

impl Contributions {
    pub(crate) fn new(network: &Network, rows: usize) -> Self {
        let part = |layer: usize| {
            let (inputs, units) = network.matrix(layer);
            let part = match network.layers()[layer] {
                Layer::Dense { .. } => Part::Dense {
                    inputs: vec![0.0; rows * inputs],
                    squares: vec![0.0; rows],
                    units: vec![0.0; rows],
                    errors: vec![0.0; rows * units],
                },
                Layer::Convolution { .. } => Part::Convolution {
                    gradient: vec![0.0; inputs * units],
                    steps: vec![0.0; inputs * units],
                    largest: 0.0,
                },
                _ => Part::None,
            };
            (part, Grain::of(network, layer))
        };
        Self {
            parts: (0..network.layers().len()).map(part).collect(),
            sums: network.matrices().map(|(rows, columns)| ExactSum::new(rows, columns)).collect(),
        }
    }

    /// Begins a new batch.
    pub(crate) fn clear(&mut self) {
        self.sums.iter_mut().for_each(ExactSum::clear);
    }

    /// Adds what was added since then to a layer's weights from `start` on, in steps.
    pub(crate) fn add_to(&self, layer: usize, start: usize, out: &mut [f64]) {
        self.sums[layer].add_to(start, self.parts[layer].1.steps, out);
    }

    /// Adds what the examples of a chunk contribute, each clipped to `clip`.
    pub(crate) fn add(&mut self, passes: &Passes<'_>, clip: f64) {
        self.round_inputs(passes);
        for example in 0..passes.rows() {
            self.contribute(passes, example, clip);
        }
        for (layer, ((part, grain), sum)) in self.parts.iter().zip(&mut self.sums).enumerate() {
            if let Part::Dense { inputs, errors, .. } = part {
                let (rows, columns) = passes.network().matrix(layer);
                let (a, e) = (Rows { entries: inputs, columns: rows }, Rows { entries: errors, columns });
                sum.add_outer_products(a, f64::from(grain.largest), e, 0..passes.rows());
            }
        }
    }

    /// A of all examples.
    fn round_inputs(&mut self, passes: &Passes<'_>) {
        for (layer, (part, grain)) in self.parts.iter_mut().enumerate() {
            let Part::Dense { inputs, squares, units, .. } = part else { continue };
            let width = passes.network().matrix(layer).0;
            let rows = inputs.chunks_exact_mut(width).zip(passes.inputs(layer).chunks_exact(width - 1));
            let examples = rows.zip(squares.iter_mut().zip(units)).take(passes.rows());
            widest!({
                for ((row, values), (square, unit)) in examples {
                    (*square, *unit) = round_row(values, *grain, row);
                }
            });
        }
    }

    /// One example: its norm, its factor, its steps, the check. Its parts of dense layers wait in their rows.
    fn contribute(&mut self, passes: &Passes<'_>, example: usize, clip: f64) {
        if passes.counts(example) {
            let norm = self.norm_squared(passes, example).sqrt();
            for shrink in SHRINK {
                let factor = shrink * CLIP_STEPS / clip.max(norm);
                // Neither side of this is a number where the gradient was not.
                if norm.is_finite() && self.round(passes, example, factor) <= CLIP_STEPS_SQUARED {
                    return self.add_convolutions();
                }
            }
        }
        self.forget(passes.network(), example);
    }

    /// ‖gradient‖², as a float.
    fn norm_squared(&mut self, passes: &Passes<'_>, example: usize) -> f64 {
        let mut total = 0.0;
        for (layer, (part, _)) in self.parts.iter_mut().enumerate() {
            match part {
                Part::Dense { squares, units, .. } => {
                    let columns = passes.network().matrix(layer).1;
                    let errors = &passes.errors(layer)[example * columns..][..columns];
                    total += squares[example] * units[example] * units[example] * square_about(errors);
                }
                Part::Convolution { gradient, .. } => {
                    convolution_gradient(passes, layer, example, gradient);
                    total += widest!(square_about(gradient));
                }
                Part::None => {}
            }
        }
        total
    }

    /// The example in steps, and the square of its length: exact, or beyond all bounds.
    fn round(&mut self, passes: &Passes<'_>, example: usize, factor: f64) -> f64 {
        let mut total = 0.0;
        for (layer, (part, grain)) in self.parts.iter_mut().enumerate() {
            let factor = factor / grain.steps;
            let square = match part {
                Part::Dense { squares, units, errors, .. } => {
                    let columns = passes.network().matrix(layer).1;
                    let from = &passes.errors(layer)[example * columns..][..columns];
                    let row = &mut errors[example * columns..][..columns];
                    squares[example] * widest!(round_all(from, (factor * units[example]) as f32, row)).0
                }
                Part::Convolution { gradient, steps, largest } => {
                    let square;
                    (square, *largest) = widest!(round_all(gradient, factor as f32, steps));
                    square
                }
                Part::None => 0.0,
            };
            total += grain.steps * grain.steps * square;
        }
        total
    }

    fn add_convolutions(&mut self) {
        for ((part, _), sum) in self.parts.iter().zip(&mut self.sums) {
            if let Part::Convolution { steps, largest, .. } = part {
                // None is longer than the whole, which is at most 2²⁰.
                sum.add(steps, *largest);
            }
        }
    }

    /// The example contributes nothing: zeros on both sides, since 0·NaN is not 0.
    fn forget(&mut self, network: &Network, example: usize) {
        for (layer, (part, _)) in self.parts.iter_mut().enumerate() {
            if let Part::Dense { inputs, errors, .. } = part {
                let (rows, columns) = network.matrix(layer);
                inputs[example * rows..][..rows].fill(0.0);
                errors[example * columns..][..columns].fill(0.0);
            }
        }
    }
}

/// Σ x², added up in singles: exact if it is a sum of whole numbers up to 2²⁴.
#[inline(always)]
fn square_about(values: &[f32]) -> f64 {
    let mut lanes = [0.0f32; LANES];
    let (blocks, rest) = values.as_chunks::<LANES>();
    for block in blocks {
        for lane in 0..LANES {
            lanes[lane] += block[lane] * block[lane];
        }
    }
    lanes.iter().map(|&lane| f64::from(lane)).chain(rest.iter().map(|&value| square(value))).sum()
}

/// The nearest whole numbers, the sum of their squares, and the largest of them.
#[inline(always)]
fn round_all(values: &[f32], factor: f32, out: &mut [f32]) -> (f64, f64) {
    // Plain loops, one after the other: a closure in a closure would not be compiled for the widest registers, nor would all of it at once.
    for (value, out) in values.iter().zip(out.iter_mut()) {
        *out = (value * factor + ROUND) - ROUND;
    }
    let (mut squares, mut most) = ([0.0; LANES], [0.0; LANES]);
    let (blocks, rest) = out.as_chunks::<LANES>();
    for block in blocks {
        for lane in 0..LANES {
            squares[lane] += square(block[lane]);
            most[lane] = larger(block[lane], most[lane]);
        }
    }
    let squares = squares.iter().copied().chain(rest.iter().map(|&value| square(value))).sum();
    (squares, rest.iter().chain(&most).fold(0.0, |most, &value| larger(value, most)).into())
}

/// In doubles, where it is exact.
#[inline(always)]
fn square(value: f32) -> f64 {
    f64::from(value) * f64::from(value)
}

/// The larger size; not of what is not a number.
#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if a.abs() > b { a.abs() } else { b }
}

/// A row of A, the bias last; ‖A‖², not a number where an entry is not; and what 1 stands for.
#[inline(always)]
fn round_row(values: &[f32], grain: Grain, row: &mut [f32]) -> (f64, f64) {
    let mut lanes = [1.0f32; LANES];
    let (blocks, rest) = values.as_chunks::<LANES>();
    for block in blocks {
        for lane in 0..LANES {
            lanes[lane] = larger(block[lane], lanes[lane]);
        }
    }
    let most = rest.iter().chain(&lanes).fold(1.0, |most, &value| larger(value, most));
    let scale = grain.largest / most;
    let mut squares = 0.0;
    if let Some((bias, row)) = row.split_last_mut() {
        for (values, row) in values.chunks(grain.block).zip(row.chunks_mut(grain.block)) {
            for (value, row) in values.iter().zip(row.iter_mut()) {
                *row = (value * scale + ROUND) - ROUND;
            }
            // No entry is above Q, so a block's squares are whole numbers up to 2²⁴, in any order.
            squares += square_about(row);
        }
        *bias = (scale + ROUND) - ROUND;
        squares += f64::from(*bias * *bias);
    }
    (squares, f64::from(most) / f64::from(grain.largest))
}

/// patchesᵀ·errors, and the sum of errors for the bias.
fn convolution_gradient(passes: &Passes<'_>, layer: usize, example: usize, gradient: &mut [f32]) {
    let (rows, columns) = passes.network().matrix(layer);
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
