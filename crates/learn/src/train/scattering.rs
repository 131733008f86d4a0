//! [`Scattering`]: features of images that nobody has to learn.
//!
//! **Definition.** With Morlet wavelets ψ of two scales and eight angles and a Gaussian φ, an image x becomes
//!
//! ```text
//! x∗φ,    |x∗ψ₁|∗φ,    ||x∗ψ₁|∗ψ₂|∗φ    (ψ₂ of the larger scale, ψ₁ of the smaller),
//! ```
//!
//! each at every fourth pixel: 1 + 16 + 64 = 81 numbers per place, 7 × 7 places for 28 × 28 pixels. ψ of scale 2ʲ at angle θ is
//!
//! ```text
//! ψ(u) = g(u)·(e^(iξ·u_θ) − κ),    g(u) ∝ exp(−(u_θ² + s²·u_⊥²)/2σ²),    σ = 0.8·2ʲ,  ξ = (3π/4)/2ʲ,  s = ½,
//! ```
//!
//! with κ such that ψ has mean 0; φ is g with σ = 1.6 and s = 1. Images are continued by reflection.
//!
//! **Normalisation.** The 81 channels of an example form 27 groups of three; each group is shifted and scaled to mean 0 and variance 1 *within the example*. It needs
//! no statistics of the data and so costs nothing.
//!
//! **Why.** Few weights and features that are stable under small deformations are what noisy training needs: linear models on them beat networks that learn their own features at equal privacy.
//!
//! **Exactness.** Features of an image are a function of that image alone. That is all that privacy asks of them.
//!
//! **References.** \[Bruna2013\], \[Tramer2021\].

use std::f64::consts::PI;
use std::sync::Arc;

use rayon::prelude::*;
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};

use super::matrix::{Matrix, add_product};
use super::network::Shape;
use crate::LearnError;
use crate::error::require;

const ANGLES: usize = 8;
const SCALES: usize = 2;
/// Pixels per place.
const STRIDE: usize = 4;
/// 1 + 16 + 64.
const CHANNELS: usize = 1 + SCALES * ANGLES + ANGLES * ANGLES;
const GROUP: usize = 3;
/// Added to the variance of a group, for groups without any.
const LEAST_VARIANCE: f32 = 1e-5;
const LARGEST_SIDE: usize = 512;

/// Filters for images of one size; see the module text.
///
/// ```
/// use demur_learn::train::{Scattering, Shape};
/// let scattering = Scattering::new(28, 28)?;
/// let features = scattering.features(&vec![0.5; 2 * 28 * 28])?;
/// assert_eq!(scattering.shape(), Shape::image(7, 7, 81));
/// assert_eq!(features.len(), 2 * 81 * 7 * 7);
/// # Ok::<(), demur_learn::LearnError>(())
/// ```
pub struct Scattering {
    height: usize,
    width: usize,
    full: Grid,
    half: Grid,
    /// Spectra of ψ, of the smaller and of the larger scale.
    small: Vec<Vec<f32>>,
    large: Vec<Vec<f32>>,
    /// φ along rows and columns, from pixels of the full and of the half grid to places.
    smooth: [Smoother; 2],
}

impl Scattering {
    /// Filters for grey images of height × width pixels, both from 8 to 512.
    pub fn new(height: usize, width: usize) -> Result<Self, LearnError> {
        let fits = |side: usize| (8..=LARGEST_SIDE).contains(&side);
        require(fits(height) && fits(width), "learn.scattering.size", || {
            format!(
                "scattering works on images of 8 to {LARGEST_SIDE} pixels a side, but {height}x{width} was asked for"
            )
        })?;
        let padded = |side: usize| (side.div_ceil(STRIDE) + 1) * STRIDE;
        let full = Grid::new(padded(height), padded(width));
        let half = Grid::new(full.height / 2, full.width / 2);
        let bank =
            |scale: u32| -> Vec<Vec<f32>> { (0..ANGLES).map(|angle| full.wavelet(scale, angle)).collect() };
        let (small, large) = (bank(0), bank(1));
        let smooth = [Smoother::new(&full, 1, height, width), Smoother::new(&half, 2, height, width)];
        Ok(Self { height, width, full, half, small, large, smooth })
    }

    /// What an image becomes.
    pub fn shape(&self) -> Shape {
        Shape::image(self.height.div_ceil(STRIDE), self.width.div_ceil(STRIDE), CHANNELS)
    }

    /// The features of grey images, one after the other.
    pub fn features(&self, images: &[f32]) -> Result<Vec<f32>, LearnError> {
        let (pixels, size) = (self.height * self.width, self.shape().size());
        require(images.len().is_multiple_of(pixels), "learn.scattering.size", || {
            format!("every image must have {pixels} pixels, but {} is no multiple of that", images.len())
        })?;
        let mut features = vec![0.0; images.len() / pixels * size];
        let rows = features.par_chunks_mut(size).zip(images.par_chunks(pixels));
        rows.for_each_init(Buffers::default, |buffers, (row, image)| self.scatter(image, row, buffers));
        Ok(features)
    }

    fn scatter(&self, image: &[f32], out: &mut [f32], buffers: &mut Buffers) {
        self.channels(image, buffers);
        let places = out.len() / CHANNELS;
        buffers.channels.chunks_exact_mut(places * GROUP).for_each(normalise);
        for (channel, map) in buffers.channels.chunks_exact(places).enumerate() {
            map.iter().enumerate().for_each(|(place, value)| out[place * CHANNELS + channel] = *value);
        }
    }

    /// The 81 maps of an image, one after the other.
    fn channels(&self, image: &[f32], buffers: &mut Buffers) {
        let places = self.shape().size() / CHANNELS;
        let Buffers { pixels, spectrum, inner, field, channels } = buffers;
        channels.resize(CHANNELS * places, 0.0);
        let [smooth_full, smooth_half] = &self.smooth;
        let mut put = |channel: usize, map: &[f32], smooth: &Smoother| {
            smooth.apply(map, &mut channels[channel * places..][..places]);
        };
        self.pad(image, pixels);
        put(0, pixels, smooth_full);
        self.full.spectrum(pixels, spectrum);
        for (angle, filter) in self.large.iter().enumerate() {
            self.full.product_folded(spectrum, filter, field);
            self.half.invert_modulus(field, pixels);
            put(1 + ANGLES + angle, pixels, smooth_half);
        }
        for (angle, filter) in self.small.iter().enumerate() {
            product(spectrum, filter, field);
            self.full.invert_modulus(field, pixels);
            put(1 + angle, pixels, smooth_full);
            self.full.spectrum(pixels, inner);
            // ψ₂ has little above half the highest frequency: its maps need every other pixel.
            for (second, filter) in self.large.iter().enumerate() {
                self.full.product_folded(inner, filter, field);
                self.half.invert_modulus(field, pixels);
                put(1 + (2 + angle) * ANGLES + second, pixels, smooth_half);
            }
        }
    }

    /// The image in the middle of the grid, continued by reflection.
    fn pad(&self, image: &[f32], pixels: &mut Vec<f32>) {
        let reflect = |at: usize, before: usize, side: usize| {
            let (at, last) = (at as isize - before as isize, side as isize - 1);
            let at = at.abs();
            (if at > last { (2 * last - at).max(0) } else { at }) as usize
        };
        let (top, left) = self.full.margins(self.height, self.width);
        pixels.clear();
        for y in 0..self.full.height {
            let row = reflect(y, top, self.height) * self.width;
            pixels.extend((0..self.full.width).map(|x| image[row + reflect(x, left, self.width)]));
        }
    }
}

/// Mean 0, variance 1.
fn normalise(group: &mut [f32]) {
    let count = group.len() as f32;
    let mean = group.iter().sum::<f32>() / count;
    let variance = group.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / count;
    let scale = 1.0 / (variance + LEAST_VARIANCE).sqrt();
    group.iter_mut().for_each(|x| *x = (*x - mean) * scale);
}

/// What one thread needs.
#[derive(Default)]
struct Buffers {
    pixels: Vec<f32>,
    spectrum: Vec<Complex<f32>>,
    inner: Vec<Complex<f32>>,
    field: Vec<Complex<f32>>,
    channels: Vec<f32>,
}

/// A torus of pixels and its Fourier transform. Spectra are stored transposed.
struct Grid {
    height: usize,
    width: usize,
    rows: Transform,
    columns: Transform,
}

/// Forwards and backwards along one side.
struct Transform {
    forwards: Arc<dyn Fft<f32>>,
    backwards: Arc<dyn Fft<f32>>,
}

impl Transform {
    fn new(length: usize) -> Self {
        let mut planner = FftPlanner::new();
        Self { forwards: planner.plan_fft_forward(length), backwards: planner.plan_fft_inverse(length) }
    }
}

impl Grid {
    fn new(height: usize, width: usize) -> Self {
        Self { height, width, rows: Transform::new(width), columns: Transform::new(height) }
    }

    fn margins(&self, height: usize, width: usize) -> (usize, usize) {
        ((self.height - height) / 2, (self.width - width) / 2)
    }

    /// The spectrum of ψ with scale 2ʲ at an angle; real, since ψ(−u) is the conjugate of ψ(u).
    fn wavelet(&self, scale: u32, angle: usize) -> Vec<f32> {
        let (theta, spread) = (PI * angle as f64 / ANGLES as f64, f64::from(1u32 << scale));
        let (sigma, frequency, slant) = (0.8 * spread, 0.75 * PI / spread, 4.0 / ANGLES as f64);
        let mut bell = vec![0.0; self.height * self.width];
        let mut wave = vec![Complex::default(); bell.len()];
        for (at, (bell, wave)) in bell.iter_mut().zip(&mut wave).enumerate() {
            for turn in 0..25 {
                // The filter goes on beyond the edges of the torus.
                let y = (at / self.width) as f64 + (turn / 5 - 2) as f64 * self.height as f64;
                let x = (at % self.width) as f64 + (turn % 5 - 2) as f64 * self.width as f64;
                let (along, across) = (x * theta.cos() + y * theta.sin(), y * theta.cos() - x * theta.sin());
                let height =
                    (-(along * along + slant * slant * across * across) / (2.0 * sigma * sigma)).exp();
                *bell += height;
                *wave += Complex::from_polar(height, frequency * along);
            }
        }
        let mean = wave.iter().sum::<Complex<f64>>() / bell.iter().sum::<f64>();
        let norm = slant / (2.0 * PI * sigma * sigma);
        let single = |(wave, bell): (&Complex<f64>, &f64)| {
            let value = (wave - mean * bell) * norm;
            Complex::new(value.re as f32, value.im as f32)
        };
        let mut spectrum = Vec::new();
        self.transform(wave.iter().zip(&bell).map(single).collect(), &mut spectrum);
        spectrum.iter().map(|value| value.re).collect()
    }

    /// The transform of real pixels.
    fn spectrum(&self, pixels: &[f32], out: &mut Vec<Complex<f32>>) {
        self.transform(pixels.iter().map(|&x| Complex::new(x, 0.0)).collect(), out);
    }

    fn transform(&self, mut field: Vec<Complex<f32>>, out: &mut Vec<Complex<f32>>) {
        self.rows.forwards.process(&mut field);
        out.resize(field.len(), Complex::default());
        transpose(&field, out, self.width);
        self.columns.forwards.process(out);
    }

    /// |inverse of a spectrum|, which is used up.
    fn invert_modulus(&self, field: &mut [Complex<f32>], out: &mut Vec<f32>) {
        self.columns.backwards.process(field);
        let mut turned = vec![Complex::default(); field.len()];
        transpose(field, &mut turned, self.height);
        self.rows.backwards.process(&mut turned);
        let scale = 1.0 / field.len() as f32;
        out.clear();
        out.extend(turned.iter().map(|z| z.norm_sqr().sqrt() * scale));
    }

    /// The spectrum, on half the grid, of every other pixel of spectrum·filter: its four quarters added up.
    fn product_folded(&self, spectrum: &[Complex<f32>], filter: &[f32], out: &mut Vec<Complex<f32>>) {
        let (rows, columns) = (self.width / 2, self.height / 2);
        out.clear();
        for x in 0..rows {
            for y in 0..columns {
                let at = |x: usize, y: usize| spectrum[x * self.height + y] * filter[x * self.height + y];
                let sum = at(x, y) + at(x + rows, y) + at(x, y + columns) + at(x + rows, y + columns);
                out.push(sum * 0.25);
            }
        }
    }
}

fn product(spectrum: &[Complex<f32>], filter: &[f32], out: &mut Vec<Complex<f32>>) {
    out.clear();
    out.extend(spectrum.iter().zip(filter).map(|(s, f)| s * f));
}

fn transpose(from: &[Complex<f32>], to: &mut [Complex<f32>], width: usize) {
    let height = from.len() / width;
    for (y, row) in from.chunks_exact(width).enumerate() {
        row.iter().enumerate().for_each(|(x, value)| to[x * height + y] = *value);
    }
}

/// φ and every fourth pixel, along columns and then along rows.
struct Smoother {
    height: usize,
    width: usize,
    places: (usize, usize),
    vertical: Vec<f32>,
    horizontal: Vec<f32>,
}

impl Smoother {
    /// From a grid that holds every `spacing`-th pixel of the padded image.
    fn new(grid: &Grid, spacing: usize, height: usize, width: usize) -> Self {
        let places = (height.div_ceil(STRIDE), width.div_ceil(STRIDE));
        let (top, left) = ((grid.height * spacing - height) / 2, (grid.width * spacing - width) / 2);
        Self {
            height: grid.height,
            width: grid.width,
            places,
            vertical: bells(places.0, top, grid.height, spacing),
            horizontal: bells(places.1, left, grid.width, spacing),
        }
    }

    fn apply(&self, map: &[f32], out: &mut [f32]) {
        let mut narrow = vec![0.0; self.height * self.places.1];
        let across = Matrix::new(&self.horizontal, self.places.1, self.width).transposed();
        add_product(Matrix::new(map, self.height, self.width), across, &mut narrow);
        out.fill(0.0);
        let down = Matrix::new(&self.vertical, self.places.0, self.height);
        add_product(down, Matrix::new(&narrow, self.height, self.places.1), out);
    }
}

/// For each place the weights of the pixels along a side; they add up to 1.
fn bells(places: usize, margin: usize, side: usize, spacing: usize) -> Vec<f32> {
    let sigma = 0.8 * f64::from(1u32 << (SCALES - 1));
    let row = |place: usize| {
        let centre = (margin + place * STRIDE) as f64;
        let weight = |at: usize| (-((at * spacing) as f64 - centre).powi(2) / (2.0 * sigma * sigma)).exp();
        let total: f64 = (0..side).map(weight).sum();
        (0..side).map(move |at| (weight(at) / total) as f32).collect::<Vec<_>>()
    };
    (0..places).flat_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use demur_noise::Words;
    use demur_testkit::Seeded;

    fn noise(count: usize) -> Vec<f32> {
        let words = &mut Seeded::new(9);
        (0..count).map(|_| (words.word() >> 40) as f32 / 16_777_216.0).collect()
    }

    #[test]
    fn an_image_without_edges_has_no_waves() {
        let scattering = Scattering::new(28, 28).unwrap();
        let mut buffers = Buffers::default();
        scattering.channels(&[0.7; 784], &mut buffers);
        let (smooth, waves) = buffers.channels.split_at(49);
        assert!(smooth.iter().all(|x| (x - 0.7).abs() < 1e-4), "{smooth:?}");
        assert!(waves.iter().all(|x| x.abs() < 1e-4));
    }

    /// Stripes of the frequency of a wavelet, 3π/4 or half of it, along its angle, wake that wavelet more than all others.
    #[test]
    fn stripes_wake_the_wavelet_of_their_angle_and_scale() {
        let scattering = Scattering::new(32, 32).unwrap();
        for scale in 0..2 {
            for angle in 0..ANGLES {
                let theta = PI * angle as f64 / ANGLES as f64;
                let frequency = 0.75 * PI / f64::from(1 << scale);
                let stripe = |at: usize| {
                    let (y, x) = ((at / 32) as f64, (at % 32) as f64);
                    (frequency * (x * theta.cos() + y * theta.sin())).cos() as f32
                };
                let mut buffers = Buffers::default();
                scattering.channels(&(0..1024).map(stripe).collect::<Vec<_>>(), &mut buffers);
                // In the middle, where nothing was reflected.
                let middle = |channel: usize| buffers.channels[channel * 64 + 3 * 8 + 3];
                let loudest = (1..=2 * ANGLES).max_by(|&a, &b| middle(a).total_cmp(&middle(b)));
                assert_eq!(loudest, Some(1 + scale * ANGLES + angle));
            }
        }
    }

    #[test]
    fn half_the_grid_shows_every_other_pixel() {
        let scattering = Scattering::new(28, 20).unwrap();
        let (full, half) = (&scattering.full, &scattering.half);
        let (mut spectrum, mut field) = (Vec::new(), Vec::new());
        full.spectrum(&noise(full.height * full.width), &mut spectrum);
        let (mut fine, mut coarse) = (Vec::new(), Vec::new());
        product(&spectrum, &scattering.large[3], &mut field);
        full.invert_modulus(&mut field, &mut fine);
        full.product_folded(&spectrum, &scattering.large[3], &mut field);
        half.invert_modulus(&mut field, &mut coarse);
        for y in 0..half.height {
            for x in 0..half.width {
                assert!((coarse[y * half.width + x] - fine[2 * y * full.width + 2 * x]).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn features_of_an_image_depend_on_it_alone() {
        let scattering = Scattering::new(12, 9).unwrap();
        let (images, size) = (noise(5 * 108), scattering.shape().size());
        let together = scattering.features(&images).unwrap();
        for (image, row) in images.chunks(108).zip(together.chunks(size)) {
            assert_eq!(scattering.features(image).unwrap(), row);
        }
        assert!(together.iter().all(|x| x.is_finite()));
        assert_eq!(scattering.features(&images[1..]).unwrap_err().code(), "learn.scattering.size");
        assert_eq!(Scattering::new(7, 28).err().map(|error| error.code()), Some("learn.scattering.size"));
    }
}
