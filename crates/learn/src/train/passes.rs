//! [`Passes`]: a few examples on their way through a network, forwards and backwards.
//!
//! Examples go through in chunks. Missing rows up to a multiple of 16 are zeros, so each example meets the same kernels whoever else is in its batch and however many, and
//! what it yields is a function of itself and the weights (see `matrix.rs`).

use demur_exact::widest;

use super::examples::Examples;
use super::matrix::{Matrix, add_product};
use super::network::{Layer, Network, Shape, Task};

/// Numbers of a layer that a chunk holds, about: they shall stay in the cache of a core.
const CHUNK_NUMBERS: usize = 1 << 18;
/// Chunks have a multiple of so many rows, and at most so many multiples.
const ROW_BLOCK: usize = 16;
const MOST_BLOCKS: usize = 4;

/// Buffers for one chunk; see the module text.
pub(crate) struct Passes<'a> {
    network: &'a Network,
    /// The most rows of a chunk, and those of this one.
    most: usize,
    rows: usize,
    /// What goes into each layer, and last what comes out.
    values: Vec<Vec<f32>>,
    /// Of a convolution: the patches of its input, one per row.
    patches: Vec<Vec<f32>>,
    /// Of a pool: which pixel of its patch the output was.
    origins: Vec<Vec<u32>>,
    /// The derivative of the loss by what comes out of each layer.
    errors: Vec<Vec<f32>>,
    scratch: Vec<f32>,
    /// Whether the example has a target.
    counts: Vec<bool>,
}

/// How many examples go through at once, at most.
pub(crate) fn chunk_rows(network: &Network) -> usize {
    let size = |layer: usize| {
        let patches = match network.layers()[layer] {
            Layer::Convolution { .. } => places(network, layer) * (network.matrix(layer).0 - 1),
            _ => 0,
        };
        patches.max(network.before(layer).size())
    };
    let largest = (0..network.layers().len()).map(size).max().unwrap_or(1);
    (CHUNK_NUMBERS / largest.max(1) / ROW_BLOCK).clamp(1, MOST_BLOCKS) * ROW_BLOCK
}

/// How many patches a convolution looks at.
fn places(network: &Network, layer: usize) -> usize {
    network.after(layer).height * network.after(layer).width
}

impl<'a> Passes<'a> {
    pub(crate) fn new(network: &'a Network) -> Self {
        let (rows, count) = (chunk_rows(network), network.layers().len());
        let mut values: Vec<Vec<f32>> =
            (0..count).map(|layer| vec![0.0; rows * network.before(layer).size()]).collect();
        values.push(vec![0.0; rows * network.outputs()]);
        let errors = (0..count).map(|layer| vec![0.0; rows * network.after(layer).size()]).collect();
        let patch_numbers = |layer: usize| match network.layers()[layer] {
            Layer::Convolution { .. } => rows * places(network, layer) * (network.matrix(layer).0 - 1),
            _ => 0,
        };
        let patches: Vec<Vec<f32>> = (0..count).map(|layer| vec![0.0; patch_numbers(layer)]).collect();
        let origins = (0..count)
            .map(|layer| match network.layers()[layer] {
                Layer::Pool { .. } => vec![0; rows * network.after(layer).size()],
                _ => Vec::new(),
            })
            .collect();
        let scratch = vec![0.0; patches.iter().skip(1).map(Vec::len).max().unwrap_or(0)];
        let counts = vec![false; rows];
        Self { network, most: rows, rows, values, patches, origins, errors, scratch, counts }
    }

    pub(crate) fn network(&self) -> &'a Network {
        self.network
    }

    /// Rows of this chunk, with those that are zeros.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// What went into a layer.
    pub(crate) fn inputs(&self, layer: usize) -> &[f32] {
        &self.values[layer]
    }

    /// What comes out of the network, row by row.
    pub(crate) fn outputs(&self) -> &[f32] {
        self.values.last().map_or(&[], Vec::as_slice)
    }

    /// The derivative of the loss by what came out of a layer.
    pub(crate) fn errors(&self, layer: usize) -> &[f32] {
        &self.errors[layer]
    }

    /// The patches of one example, one per row.
    pub(crate) fn patches(&self, layer: usize, example: usize) -> &[f32] {
        let size = self.patches[layer].len() / self.most;
        &self.patches[layer][example * size..][..size]
    }

    /// The patches of all examples.
    #[cfg(test)]
    pub(crate) fn all_patches(&self, layer: usize) -> &[f32] {
        &self.patches[layer]
    }

    /// Whether an example has a target that was declared.
    pub(crate) fn counts(&self, example: usize) -> bool {
        self.counts[example]
    }

    /// Takes up to [`chunk_rows`] rows of features, and computes what comes out.
    pub(crate) fn forward<'f>(&mut self, features: impl Iterator<Item = &'f [f32]>, weights: &[Vec<f32>]) {
        let size = self.network.input().size();
        let mut count = 0usize;
        for (place, row) in self.values[0].chunks_exact_mut(size).zip(features) {
            place.copy_from_slice(row);
            count += 1;
        }
        self.rows = count.next_multiple_of(ROW_BLOCK);
        self.values[0][count * size..self.rows * size].fill(0.0);
        for (layer, weights) in weights.iter().enumerate() {
            self.forward_layer(layer, weights);
        }
    }

    fn forward_layer(&mut self, layer: usize, weights: &[f32]) {
        let (before, after) = (self.network.before(layer), self.network.after(layer));
        let (left, right) = self.values.split_at_mut(layer + 1);
        let input = &left[layer][..self.rows * before.size()];
        let output = &mut right[0][..self.rows * after.size()];
        match self.network.layers()[layer] {
            Layer::Dense { .. } => weigh(input, self.rows, self.network.matrix(layer), weights, output),
            Layer::Convolution { kernel, stride, padding, .. } => {
                let window = Window { before, after, kernel, stride, padding };
                let size = self.patches[layer].len() / self.most;
                let patches = &mut self.patches[layer][..self.rows * size];
                for (patches, image) in patches.chunks_exact_mut(size).zip(input.chunks_exact(before.size()))
                {
                    window.cut(image, patches);
                }
                let rows = self.rows * after.height * after.width;
                weigh(patches, rows, self.network.matrix(layer), weights, output);
            }
            Layer::Pool { size, stride } => {
                let window = Window { before, after, kernel: size, stride, padding: 0 };
                let origins = self.origins[layer].chunks_exact_mut(after.size());
                let images = input.chunks_exact(before.size()).zip(output.chunks_exact_mut(after.size()));
                widest!({
                    for ((image, out), origins) in images.zip(origins) {
                        window.pool(image, out, origins);
                    }
                });
            }
            Layer::Relu => widest!({
                for (&x, y) in input.iter().zip(output) {
                    *y = only(x, x > 0.0);
                }
            }),
            Layer::Tanh => widest!({
                for (&x, y) in input.iter().zip(output) {
                    *y = tanh(x);
                }
            }),
        }
    }

    /// The derivative of each example's own loss, through all layers.
    pub(crate) fn backward(&mut self, examples: &Examples, indices: &[u32], weights: &[Vec<f32>]) {
        self.blame_outputs(examples, indices);
        for layer in (1..self.network.layers().len()).rev() {
            self.backward_layer(layer, &weights[layer]);
        }
    }

    /// Prediction minus truth: the derivative of cross-entropy after softmax, and of half the squared error.
    fn blame_outputs(&mut self, examples: &Examples, indices: &[u32]) {
        let outputs = self.network.outputs();
        let (Some(values), Some(errors)) = (self.values.last(), self.errors.last_mut()) else { return };
        let rows = values.chunks_exact(outputs).zip(errors.chunks_exact_mut(outputs)).take(self.rows);
        for (place, (values, errors)) in rows.enumerate() {
            self.counts[place] = false;
            errors.fill(0.0);
            let Some(index) = indices.get(place).map(|&index| index as usize) else { continue };
            match self.network.task() {
                Task::Classes(classes) => {
                    let Some(class) = examples.class(index).map(|class| class as usize) else { continue };
                    if class >= classes {
                        continue;
                    }
                    softmax(values, errors);
                    errors[class] -= 1.0;
                }
                Task::Number => {
                    let Some(number) = examples.number(index) else { continue };
                    errors[0] = values[0] - number;
                }
            }
            self.counts[place] = true;
        }
    }

    fn backward_layer(&mut self, layer: usize, weights: &[f32]) {
        let (before, after) = (self.network.before(layer), self.network.after(layer));
        let (left, right) = self.errors.split_at_mut(layer);
        let to = &mut left[layer - 1][..self.rows * before.size()];
        let from = &right[0][..self.rows * after.size()];
        let output = &self.values[layer + 1][..self.rows * after.size()];
        match self.network.layers()[layer] {
            Layer::Dense { .. } => {
                to.fill(0.0);
                unweigh(from, self.rows, self.network.matrix(layer), weights, to);
            }
            Layer::Convolution { kernel, stride, padding, .. } => {
                let window = Window { before, after, kernel, stride, padding };
                let size = self.patches[layer].len() / self.most;
                let scratch = &mut self.scratch[..self.rows * size];
                scratch.fill(0.0);
                let rows = self.rows * after.height * after.width;
                unweigh(from, rows, self.network.matrix(layer), weights, scratch);
                for (patches, image) in scratch.chunks_exact(size).zip(to.chunks_exact_mut(before.size())) {
                    image.fill(0.0);
                    window.add_back(patches, image);
                }
            }
            Layer::Pool { size, stride } => {
                let window = Window { before, after, kernel: size, stride, padding: 0 };
                let origins = self.origins[layer].chunks_exact(after.size());
                let images = from.chunks_exact(after.size()).zip(to.chunks_exact_mut(before.size()));
                widest!({
                    for ((errors, image), origins) in images.zip(origins) {
                        window.unpool(errors, origins, image);
                    }
                });
            }
            Layer::Relu => widest!({
                for (to, (&error, &y)) in to.iter_mut().zip(from.iter().zip(output)) {
                    *to = only(error, y > 0.0);
                }
            }),
            Layer::Tanh => widest!({
                for (to, (error, y)) in to.iter_mut().zip(from.iter().zip(output)) {
                    *to = error * (1.0 - y * y);
                }
            }),
        }
    }
}

/// output = input·weights + bias.
fn weigh(input: &[f32], rows: usize, matrix: (usize, usize), weights: &[f32], output: &mut [f32]) {
    let (inputs, units) = (matrix.0 - 1, matrix.1);
    let (weights, bias) = weights.split_at(inputs * units);
    output.chunks_exact_mut(units).for_each(|row| row.copy_from_slice(bias));
    add_product(Matrix::new(input, rows, inputs), Matrix::new(weights, inputs, units), output);
}

/// to += from·weightsᵀ.
fn unweigh(from: &[f32], rows: usize, matrix: (usize, usize), weights: &[f32], to: &mut [f32]) {
    let (inputs, units) = (matrix.0 - 1, matrix.1);
    add_product(Matrix::new(from, rows, units), Matrix::new(weights, inputs, units).transposed(), to);
}

/// e^x / Σ e^x.
pub(crate) fn softmax(values: &[f32], out: &mut [f32]) {
    let largest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    out.iter_mut().zip(values).for_each(|(out, value)| *out = (value - largest).exp());
    let total: f32 = out.iter().sum();
    out.iter_mut().for_each(|out| *out /= total);
}

/// 1 − 2/(e^(2x) + 1), to about seven digits, without a call: a layer asks for thousands.
///
/// e^(2x) = 2^(k + f) with k whole and |f| ≤ ½; 2^f by the first eight terms of its series, 2^k by its exponent.
#[inline(always)]
fn tanh(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5·2²³: adding it leaves no place for a fraction
    const TERMS: [f32; 7] = [
        1.525_273_4e-5,
        1.540_353e-4,
        1.333_355_8e-3,
        9.618_129e-3,
        5.550_411e-2,
        0.240_226_5,
        std::f32::consts::LN_2,
    ];
    let exponent = (x * (2.0 * std::f32::consts::LOG2_E)).clamp(-30.0, 30.0);
    let rounded = exponent + ROUND;
    let fraction = exponent - (rounded - ROUND);
    let series = TERMS.iter().fold(0.0, |sum, term| (sum + term) * fraction) + 1.0;
    let whole = rounded.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
    1.0 - 2.0 / (series * f32::from_bits(whole) + 1.0)
}

/// How patches lie in an image.
struct Window {
    before: Shape,
    after: Shape,
    kernel: usize,
    stride: usize,
    padding: usize,
}

impl Window {
    /// Calls with (place in the patches, place in the image, length) of every stretch that lies within the image.
    #[inline(always)]
    fn stretches(&self, mut each: impl FnMut(usize, usize, usize)) {
        let Shape { height, width, channels } = self.before;
        let patch = self.kernel * self.kernel * channels;
        for y in 0..self.after.height {
            for x in 0..self.after.width {
                let start = (y * self.after.width + x) * patch;
                let left = x * self.stride;
                // Columns of the padded image, as far as they are not padding.
                let first = left.max(self.padding);
                let last = (left + self.kernel).min(width + self.padding);
                if first >= last {
                    continue;
                }
                for row in 0..self.kernel {
                    let line = y * self.stride + row;
                    if line < self.padding || line >= height + self.padding {
                        continue;
                    }
                    let to = start + (row * self.kernel + first - left) * channels;
                    let from = ((line - self.padding) * width + first - self.padding) * channels;
                    each(to, from, (last - first) * channels);
                }
            }
        }
    }

    fn cut(&self, image: &[f32], patches: &mut [f32]) {
        if self.padding > 0 {
            patches.fill(0.0);
        }
        widest!(self.stretches(
            #[inline(always)]
            |to, from, length| copy(&image[from..][..length], &mut patches[to..][..length])
        ));
    }

    fn add_back(&self, patches: &[f32], image: &mut [f32]) {
        widest!(self.stretches(
            #[inline(always)]
            |to, from, length| {
                for (pixel, error) in image[from..][..length].iter_mut().zip(&patches[to..][..length]) {
                    *pixel += error;
                }
            }
        ));
    }

    /// Calls with (number of the pixel within its patch, where it begins, where the places it is pooled into begin, length) of stretches that lie side by side in both; the pixels of a place
    /// come in order.
    #[inline(always)]
    fn pixels(&self, mut each: impl FnMut(u32, usize, usize, usize)) {
        let Shape { width, channels, .. } = self.before;
        // Where patches begin at every pixel, what is pooled into a whole line stands in a line.
        let (lines, length) = match self.stride {
            1 => (1, self.after.width * channels),
            _ => (self.after.width, channels),
        };
        for y in 0..self.after.height {
            for offset in 0..self.kernel * self.kernel {
                let row = y * self.stride + offset / self.kernel;
                for x in 0..lines {
                    let column = x * self.stride + offset % self.kernel;
                    let from = (row * width + column) * channels;
                    each(offset as u32, from, (y * self.after.width + x) * channels, length);
                }
            }
        }
    }

    /// The largest of each patch, the first where several are, and which pixel of the patch it was.
    #[inline(always)]
    fn pool(&self, image: &[f32], out: &mut [f32], origins: &mut [u32]) {
        self.pixels(|offset, from, to, length| {
            let (pixels, out) = (&image[from..][..length], &mut out[to..][..length]);
            let origins = &mut origins[to..][..length];
            if offset == 0 {
                out.copy_from_slice(pixels);
                origins.fill(0);
                return;
            }
            for ((&value, out), origin) in pixels.iter().zip(out).zip(origins) {
                // What is no number stays, so that it is seen at the end.
                let larger = mask((value > *out) | value.is_nan());
                *out = f32::from_bits((value.to_bits() & larger) | (out.to_bits() & !larger));
                *origin = (offset & larger) | (*origin & !larger);
            }
        });
    }

    /// Errors go back to where the largest stood.
    #[inline(always)]
    fn unpool(&self, errors: &[f32], origins: &[u32], image: &mut [f32]) {
        image.fill(0.0);
        self.pixels(|offset, from, to, length| {
            let places = errors[to..][..length].iter().zip(&origins[to..][..length]);
            for (pixel, (error, &origin)) in image[from..][..length].iter_mut().zip(places) {
                *pixel += only(*error, origin == offset);
            }
        });
    }
}

/// Copies a line of a patch. Those of the usual kernels are so short that a call would take longer than the copy.
#[inline(always)]
fn copy(from: &[f32], to: &mut [f32]) {
    #[inline(always)]
    fn whole<const N: usize>(from: &[f32], to: &mut [f32]) -> bool {
        match (from.as_array::<N>(), to.as_mut_array::<N>()) {
            (Some(from), Some(to)) => {
                *to = *from;
                true
            }
            _ => false,
        }
    }
    if !(whole::<8>(from, to) || whole::<16>(from, to) || whole::<64>(from, to)) {
        to.copy_from_slice(from);
    }
}

/// All bits, or none. Branches that depend on numbers would be guessed wrongly half of the time.
#[inline(always)]
fn mask(yes: bool) -> u32 {
    0u32.wrapping_sub(u32::from(yes))
}

/// The number, or 0.
#[inline(always)]
fn only(number: f32, yes: bool) -> f32 {
    f32::from_bits(number.to_bits() & mask(yes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tanh_is_right_to_six_digits_and_keeps_what_is_no_number() {
        for i in -40_000..40_000 {
            let x = i as f32 / 2000.0;
            assert!((f64::from(tanh(x)) - f64::from(x).tanh()).abs() < 4e-7, "{x}");
        }
        assert!(tanh(f32::NAN).is_nan());
        assert_eq!((tanh(f32::INFINITY), tanh(f32::NEG_INFINITY)), (1.0, -1.0));
    }
}
