//! [`Moments`]: K(c) for real c, and the first terms of everything else on the line Re z = c.
//!
//! **Rounding.** A tiny loss composed a billion times must keep its digits, so the sum is rearranged until
//! every term is of second order in L. Since E_P[e^(−L)] is the mass `balance` that Q has on finite losses,
//! z·(1 − e^(−L)) can be taken out of each term for z·(1 − balance). With A = e^(cL) and θ = yL
//!
//! ```text
//! K − 1 = z·(1 − balance) + Σ w·((A − 1 − cL) + c·(e^(−L) − 1 + L))
//!       − Σ wA·2sin²(θ/2) + i·Σ wA·(sin θ − θ) + i·y·Σ w·(L·(A − 1) + (e^(−L) − 1 + L))
//! ```
//!
//! and no bracket is negative, so that nothing cancels but what [`growth`] knows of. A node also carries a `scale`
//! ≥ |Lⱼ| such that its loss is off by at most 16u·scale and its weight by a factor 1 ± 16u·scale/|Lⱼ|
//! (u = 2⁻⁵³). The derivative of a term by L is at most |z||z + 1||L|·max(A, 1, e^(−L)), so with summation in eight lanes
//!
//! ```text
//! rounding error ≤ (64 + n/4)·u·|z|·|z + 1|·Σ wⱼ·max(A, 1, e^(−Lⱼ))·|Lⱼ|·scaleⱼ
//! ```
//!
//! and also, since it is at most |z|·(A + e^(−L)) and scale ≥ 2|L|, far up the line, where waves turn often,
//!
//! ```text
//! rounding error ≤ (64 + n/4)·u·2|z + 1|·Σ wⱼ·max(A, 1, e^(−Lⱼ))·scaleⱼ
//! ```

use num_complex::Complex64;

use super::exponential::{Growth, growth, growth_anywhere};
use super::fused::{Loop, run};
use super::{Block, LANES, Nodes, UNIT};

/// The moments of a law near the real axis.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moments {
    tilt: f64,
    /// All moments here are divided by e^`log_scale`.
    log_scale: f64,
    /// K(c) − 1.
    pub(crate) excess: f64,
    /// What multiplies iy in K(c + iy).
    drift: f64,
    /// The mean loss under the tilted law, (ln K)′(c).
    pub(crate) mean: f64,
    /// Its variance, (ln K)″(c).
    pub(crate) variance: f64,
    /// What multiplies |z||z + 1| in the error, and what multiplies |z + 1|.
    rounding: f64,
    turning: f64,
    missing: f64,
}

/// ln K(z) and a bound on its error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogMoment {
    pub(crate) value: Complex64,
    pub(crate) error: f64,
    /// ln |K| is at most this, even where the error is as large as K itself.
    pub(crate) log_modulus: f64,
}

impl Nodes {
    /// The moments near Re z = c.
    pub(crate) fn moments(&self, tilt: f64) -> Moments {
        self.moments_with(tilt, |_, _| ())
    }

    /// The same, telling what the weights of each block become when multiplied by e^(cL).
    pub(super) fn moments_with(&self, tilt: f64, heavy: impl FnMut(usize, [f64; LANES])) -> Moments {
        let (log_scale, sums) = self.sums(tilt, heavy);
        let [mut excess, mut drift, slope, curvature, scale, reach] = sums;
        if log_scale > 0.0 {
            excess -= 1.0;
        } else {
            excess += tilt * self.imbalance;
            drift += self.imbalance;
        }
        let moment = 1.0 + excess;
        let (mean, units) = (slope / moment, (64.0 + self.count as f64 / 4.0) * UNIT);
        Moments {
            tilt,
            log_scale,
            excess,
            drift,
            mean,
            variance: curvature / moment - mean * mean,
            rounding: units * scale,
            turning: 2.0 * units * reach,
            missing: self.missing * moment.max(1.0) * (1.0 + 1e-9),
        }
    }

    /// What [`add_up`] says, and ln of what it is divided by.
    fn sums(&self, tilt: f64, mut heavy: impl FnMut(usize, [f64; LANES])) -> (f64, [f64; 6]) {
        let losses = self.blocks.iter().flat_map(|block| block.losses);
        let largest = losses.fold(0.0, |most, loss| loss.abs().max(most));
        if largest * tilt.max(1.0) < PLAIN {
            let sums = run(Plain { blocks: &self.blocks, tilt, heavy: &mut heavy });
            if sums[0] < LARGE.exp() {
                return (0.0, sums);
            }
        }
        let log_scale = self.log_scale(tilt);
        let large = |loss: f64, weight: (f64, f64)| Term::large(tilt, log_scale, loss, weight);
        (log_scale, add_up(&self.blocks, large, heavy))
    }

    /// ln of a number to divide by where e^(cL) is too large for a double; else 0.
    fn log_scale(&self, tilt: f64) -> f64 {
        let nodes = self.blocks.iter().flat_map(|block| block.losses.into_iter().zip(block.logs));
        let logs = nodes.map(|(loss, log)| log + tilt * loss);
        let largest = logs.fold(f64::NEG_INFINITY, f64::max);
        if largest > LARGE { largest } else { 0.0 }
    }
}

/// Up to this |cL| a weight that is no full double stays negligible.
const PLAIN: f64 = 600.0;

/// Where K(c) is above e to this, it is divided by something.
const LARGE: f64 = 200.0;

/// What one node adds.
struct Term {
    /// w·e^(cL), divided by e^`log_scale`.
    heavy: f64,
    excess: f64,
    drift: f64,
    /// What an error of its loss is multiplied by, and what a wave that has turned is.
    steepness: f64,
    height: f64,
}

impl Term {
    #[inline(always)]
    fn new(tilt: f64, loss: f64, weight: f64, up: Growth, down: Growth) -> Self {
        let heavy = weight * up.whole;
        let height = heavy.max(weight).max(weight * down.whole);
        Self {
            heavy,
            excess: weight * (up.second + tilt * down.second),
            drift: weight * (loss * up.first + down.second),
            steepness: height * loss.abs(),
            height,
        }
    }

    /// Where e^(cL) may be too large for a double.
    fn large(tilt: f64, log_scale: f64, loss: f64, (weight, log): (f64, f64)) -> Self {
        let (t, down) = (tilt * loss, growth_anywhere(-loss));
        if t <= 300.0 && log_scale == 0.0 {
            return Self::new(tilt, loss, weight, growth_anywhere(t), down);
        }
        let heavy = libm::exp(log + t - log_scale);
        if log_scale > 0.0 {
            // Terms are summed as they are: their errors are of first order.
            return Self { heavy, excess: heavy, drift: heavy * loss, steepness: heavy, height: heavy };
        }
        let height = heavy.max(weight * down.whole);
        Self {
            heavy,
            excess: heavy + weight * (tilt * down.first - 1.0),
            drift: heavy * loss + weight * down.first,
            steepness: height * loss.abs(),
            height,
        }
    }
}

/// The usual case: no power of e is too large.
struct Plain<'a, F> {
    blocks: &'a [Block],
    tilt: f64,
    heavy: F,
}

impl<F: FnMut(usize, [f64; LANES])> Loop for Plain<'_, F> {
    type Output = [f64; 6];

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> [f64; 6] {
        let Self { blocks, tilt, heavy } = self;
        let term = |loss: f64, (weight, _): (f64, f64)| {
            Term::new(tilt, loss, weight, growth::<FUSED>(tilt * loss), growth::<FUSED>(-loss))
        };
        add_up(blocks, term, heavy)
    }
}

/// Σ of excess, drift, heavy·L, heavy·L², steepness·scale, and height·scale.
#[inline(always)]
fn add_up(
    blocks: &[Block],
    term: impl Fn(f64, (f64, f64)) -> Term,
    mut heavy: impl FnMut(usize, [f64; LANES]),
) -> [f64; 6] {
    let mut sums = [[0.0; LANES]; 6];
    for (index, block) in blocks.iter().enumerate() {
        let mut weights = [0.0; LANES];
        for lane in 0..LANES {
            let loss = block.losses[lane];
            let term = term(loss, (block.weights[lane], block.logs[lane]));
            weights[lane] = term.heavy;
            sums[0][lane] += term.excess;
            sums[1][lane] += term.drift;
            sums[2][lane] += term.heavy * loss;
            sums[3][lane] += term.heavy * loss * loss;
            sums[4][lane] += term.steepness * block.scales[lane];
            sums[5][lane] += term.height * block.scales[lane];
        }
        heavy(index, weights);
    }
    sums.map(|lanes| lanes.iter().sum())
}

impl Moments {
    /// ln K(c).
    pub(crate) fn log_moment(&self) -> f64 {
        libm::log1p(self.excess) + self.log_scale
    }

    /// K(c).
    pub(crate) fn moment(&self) -> f64 {
        (1.0 + self.excess) * libm::exp(self.log_scale)
    }

    /// ln K(c) with its error.
    pub(crate) fn real(&self) -> LogMoment {
        self.at(0.0, (0.0, 0.0))
    }

    /// ln K(c + iy) with its error, given ΣwA·(1 − cos yL) and ΣwA·(sin yL − yL).
    pub(super) fn at(&self, frequency: f64, (versine, sine): (f64, f64)) -> LogMoment {
        let (re, im) = (self.excess - versine, sine + frequency * self.drift);
        let modulus = ((1.0 + re) * (1.0 + re) + im * im).sqrt();
        let near_one = 2.0 * re + re * re + im * im;
        let log = if near_one > -0.5 { 0.5 * libm::log1p(near_one) } else { modulus.ln() };
        let value = Complex64::new(log + self.log_scale, libm::atan2(im, 1.0 + re));
        let error = self.error(frequency);
        // |ln(K + e) − ln K| ≤ −ln(1 − |e|/|K|)
        let relative = error / modulus;
        let error_of_log = if relative < 0.5 { relative * (1.0 + relative) } else { f64::INFINITY };
        LogMoment {
            value,
            error: error_of_log + 8.0 * UNIT * (value.re.abs() + value.im.abs()),
            log_modulus: (modulus + error).ln() + self.log_scale + 4.0 * UNIT * (1.0 + self.log_scale),
        }
    }

    /// |K(c + iy)|/K(c) is at most this, given the same.
    pub(super) fn modulus(&self, frequency: f64, (versine, sine): (f64, f64)) -> f64 {
        let moment = 1.0 + self.excess;
        let (re, im) = (moment - versine, sine + frequency * self.drift);
        let modulus = (re * re + im * im).sqrt();
        let least = moment - self.error(0.0);
        if least > 0.0 { (modulus + self.error(frequency)) / least } else { 1.0 }
    }

    /// The standard deviation of the tilted loss is at most this.
    pub(crate) fn deviation(&self) -> f64 {
        self.variance.max(0.0).sqrt() * 1.1 + self.missing.sqrt()
    }

    /// A bound on the error of K(c + iy).
    pub(super) fn error(&self, frequency: f64) -> f64 {
        let (c, y) = (self.tilt, frequency);
        let (size, next) = (c.hypot(y), (c + 1.0).hypot(y));
        let order = if self.log_scale > 0.0 { size } else { size * next };
        self.missing * (1.0 + size) + (self.rounding * order).min(self.turning * next)
    }
}

impl LogMoment {
    /// An upper bound on ln K(c), for real c.
    pub(crate) fn up(&self) -> f64 {
        self.value.re + self.error
    }
}
