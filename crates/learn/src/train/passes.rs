//! [`Passes`]: a few examples on their way through a network, forwards and backwards.
//!
//! Examples go through in chunks of a fixed number of rows, a function of the network alone; missing ones are zeros. So each example meets the same kernels
//! whoever else is in its batch, and what it yields is a function of itself and the weights (see `matrix.rs`).

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
    rows: usize,
    /// What goes into each layer, and last what comes out.
    values: Vec<Vec<f32>>,
    /// Of a convolution: the patches of its input, one per row.
    patches: Vec<Vec<f32>>,
    /// Of a pool: where in the input its output stood.
    origins: Vec<Vec<u32>>,
    /// The derivative of the loss by what comes out of each layer.
    errors: Vec<Vec<f32>>,
    scratch: Vec<f32>,
    /// Whether the example has a target.
    counts: Vec<bool>,
}

/// How many examples go through at once.
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
        Self { network, rows, values, patches, origins, errors, scratch, counts: vec![false; rows] }
    }

    pub(crate) fn network(&self) -> &'a Network {
        self.network
    }

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
        let size = self.patches[layer].len() / self.rows;
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

    /// Takes up to [`rows`](Self::rows) rows of features, and computes what comes out.
    pub(crate) fn forward<'f>(&mut self, features: impl Iterator<Item = &'f [f32]>, weights: &[Vec<f32>]) {
        let size = self.network.input().size();
        let mut places = self.values[0].chunks_exact_mut(size);
        for (place, row) in (&mut places).zip(features) {
            place.copy_from_slice(row);
        }
        places.for_each(|place| place.fill(0.0));
        for (layer, weights) in weights.iter().enumerate() {
            self.forward_layer(layer, weights);
        }
    }

    fn forward_layer(&mut self, layer: usize, weights: &[f32]) {
        let (before, after) = (self.network.before(layer), self.network.after(layer));
        let (left, right) = self.values.split_at_mut(layer + 1);
        let (input, output) = (&left[layer], &mut right[0]);
        match self.network.layers()[layer] {
            Layer::Dense { .. } => weigh(input, self.rows, self.network.matrix(layer), weights, output),
            Layer::Convolution { kernel, stride, padding, .. } => {
                let window = Window { before, after, kernel, stride, padding };
                let patches = &mut self.patches[layer];
                let size = patches.len() / self.rows;
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
                images.zip(origins).for_each(|((image, out), origins)| window.pool(image, out, origins));
            }
            Layer::Relu => input.iter().zip(output).for_each(|(&x, y)| *y = if x > 0.0 { x } else { 0.0 }),
            Layer::Tanh => input.iter().zip(output).for_each(|(&x, y)| *y = tanh(x)),
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
        let rows = values.chunks_exact(outputs).zip(errors.chunks_exact_mut(outputs));
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
        let (to, from) = (&mut left[layer - 1], &right[0]);
        let output = &self.values[layer + 1];
        match self.network.layers()[layer] {
            Layer::Dense { .. } => {
                to.fill(0.0);
                unweigh(from, self.rows, self.network.matrix(layer), weights, to);
            }
            Layer::Convolution { kernel, stride, padding, .. } => {
                let window = Window { before, after, kernel, stride, padding };
                let scratch = &mut self.scratch[..self.patches[layer].len()];
                scratch.fill(0.0);
                let rows = self.rows * after.height * after.width;
                unweigh(from, rows, self.network.matrix(layer), weights, scratch);
                let size = scratch.len() / self.rows;
                for (patches, image) in scratch.chunks_exact(size).zip(to.chunks_exact_mut(before.size())) {
                    image.fill(0.0);
                    window.add_back(patches, image);
                }
            }
            Layer::Pool { size, stride } => {
                let window = Window { before, after, kernel: size, stride, padding: 0 };
                let origins = self.origins[layer].chunks_exact(after.size());
                let images = from.chunks_exact(after.size()).zip(to.chunks_exact_mut(before.size()));
                images
                    .zip(origins)
                    .for_each(|((errors, image), origins)| window.unpool(errors, origins, image));
            }
            Layer::Relu => {
                let errors = from.iter().zip(output);
                to.iter_mut()
                    .zip(errors)
                    .for_each(|(to, (error, &y))| *to = if y > 0.0 { *error } else { 0.0 });
            }
            Layer::Tanh => {
                let errors = from.iter().zip(output);
                to.iter_mut().zip(errors).for_each(|(to, (error, y))| *to = error * (1.0 - y * y));
            }
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
#[inline]
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
    #[inline]
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
        self.stretches(|to, from, length| patches[to..][..length].copy_from_slice(&image[from..][..length]));
    }

    fn add_back(&self, patches: &[f32], image: &mut [f32]) {
        self.stretches(|to, from, length| {
            let pairs = image[from..][..length].iter_mut().zip(&patches[to..][..length]);
            pairs.for_each(|(pixel, error)| *pixel += error);
        });
    }

    /// Calls with (where the pixel begins, where the place it is pooled into begins), pixels of a place in order.
    #[inline]
    fn pixels(&self, mut each: impl FnMut(usize, usize)) {
        let Shape { width, channels, .. } = self.before;
        for y in 0..self.after.height {
            for x in 0..self.after.width {
                let to = (y * self.after.width + x) * channels;
                for offset in 0..self.kernel * self.kernel {
                    let (row, column) =
                        (y * self.stride + offset / self.kernel, x * self.stride + offset % self.kernel);
                    each((row * width + column) * channels, to);
                }
            }
        }
    }

    /// The largest of each patch, the first where several are, and where it stood.
    fn pool(&self, image: &[f32], out: &mut [f32], origins: &mut [u32]) {
        let channels = self.before.channels;
        out.fill(f32::NEG_INFINITY);
        origins.fill(0);
        self.pixels(|from, to| {
            let pixel = &image[from..][..channels];
            let places = out[to..][..channels].iter_mut().zip(&mut origins[to..][..channels]);
            for ((&value, (out, origin)), channel) in pixel.iter().zip(places).zip(0u32..) {
                // What is no number stays, so that it is seen at the end. Without a branch: this is asked of every pixel.
                let larger = (value > *out) | value.is_nan();
                *out = if larger { value } else { *out };
                *origin = if larger { from as u32 + channel } else { *origin };
            }
        });
    }

    /// Errors go back to where the largest stood.
    fn unpool(&self, errors: &[f32], origins: &[u32], image: &mut [f32]) {
        let channels = self.before.channels;
        image.fill(0.0);
        self.pixels(|from, to| {
            let places = errors[to..][..channels].iter().zip(&origins[to..][..channels]);
            for ((pixel, (error, &origin)), channel) in
                image[from..][..channels].iter_mut().zip(places).zip(0u32..)
            {
                *pixel += if origin == from as u32 + channel { *error } else { 0.0 };
            }
        });
    }
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
