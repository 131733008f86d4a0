//! Sums of waves: Σ wⱼ·(1 − cos yLⱼ) and Σ wⱼ·(sin yLⱼ − yLⱼ).
//!
//! This is where an accountant spends its time, so sine and cosine are computed here, without
//! branches, and the compiler runs several at once. With x = yL/2 the two terms are 2w·sin²x and
//! 2w·(sin x·cos x − x). x is reduced by multiples of π to r (two parts of π, exact products up to 2²⁰
//! multiples), then both series are summed to where they end in double precision: sin r = r + r³·S and
//! cos r = 1 + r²·C, so that sin r·cos r − r = r³·(S + C + r²·S·C) keeps all its digits for small r.

use super::LANES;
use super::fused::{Loop, fused, run};

/// π in two parts, the first of 24 bits.
const PI_HIGH: f64 = f64::from_bits(0x4009_21FB_4000_0000);
const PI_LOW: f64 = 1.509_957_990_978_376_5e-7;
/// Adding and subtracting it rounds to a whole number.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// [`LANES`] losses with their weights.
#[derive(Clone, Debug)]
pub(super) struct Weighted {
    pub(super) losses: [f64; LANES],
    pub(super) weights: [f64; LANES],
}

/// (Σ w·(1 − cos yL), Σ w·(sin yL − yL)).
pub(super) fn sum_of_waves(blocks: &[Weighted], y: f64) -> (f64, f64) {
    run(Waves { blocks, y })
}

struct Waves<'a> {
    blocks: &'a [Weighted],
    y: f64,
}

impl Loop for Waves<'_> {
    type Output = (f64, f64);

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> (f64, f64) {
        let half = self.y / 2.0;
        let (mut versines, mut sines) = ([0.0; LANES], [0.0; LANES]);
        for block in self.blocks {
            for lane in 0..LANES {
                let (square, bend) = wave::<FUSED>(half * block.losses[lane]);
                versines[lane] += block.weights[lane] * square;
                sines[lane] += block.weights[lane] * bend;
            }
        }
        (2.0 * versines.iter().sum::<f64>(), 2.0 * sines.iter().sum::<f64>())
    }
}

/// sin²x and sin x·cos x − x, for |x| up to about 3·10⁶.
#[inline(always)]
fn wave<const FUSED: bool>(x: f64) -> (f64, f64) {
    let turns = fused::<FUSED>(x, std::f64::consts::FRAC_1_PI, ROUND) - ROUND;
    let r = fused::<FUSED>(turns, -PI_LOW, fused::<FUSED>(turns, -PI_HIGH, x));
    let s = r * r;
    let (sine, cosine) = (polynomial::<FUSED, _>(s, &SINE), polynomial::<FUSED, _>(s, &COSINE));
    let root = r * fused::<FUSED>(s, sine, 1.0);
    let bend = r * s * fused::<FUSED>(s * sine, cosine, sine + cosine) - turns * std::f64::consts::PI;
    (root * root, bend)
}

#[inline(always)]
fn polynomial<const FUSED: bool, const N: usize>(s: f64, coefficients: &[f64; N]) -> f64 {
    let mut sum = 0.0;
    for coefficient in coefficients {
        sum = fused::<FUSED>(sum, s, *coefficient);
    }
    sum
}

/// −1/3!, 1/5!, … from the last to the first.
const SINE: [f64; 11] = {
    let mut table = [0.0; 11];
    let (mut term, mut k) = (1.0, 0);
    while k < 11 {
        term = -term / (((2 * k + 2) * (2 * k + 3)) as f64);
        table[10 - k] = term;
        k += 1;
    }
    table
};

/// −1/2!, 1/4!, … from the last to the first.
const COSINE: [f64; 12] = {
    let mut table = [0.0; 12];
    let (mut term, mut k) = (1.0, 0);
    while k < 12 {
        term = -term / (((2 * k + 1) * (2 * k + 2)) as f64);
        table[11 - k] = term;
        k += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UNIT: f64 = f64::EPSILON / 2.0;

    proptest! {
        #[test]
        fn waves_are_those_of_the_library(x in -4.0f64..4.0, exponent in -30i32..19) {
            let x = x * 2f64.powi(exponent);
            check(x, wave::<true>(x))?;
            check(x, wave::<false>(x))?;
        }

        #[test]
        fn sums_are_sums(values in prop::collection::vec((-3.0f64..3.0, 0.0f64..1.0), 0..30), y in -50.0f64..50.0) {
            let blocks: Vec<_> = values
                .chunks(LANES)
                .map(|chunk| {
                    let mut block = Weighted { losses: [0.0; LANES], weights: [0.0; LANES] };
                    for (lane, (loss, weight)) in chunk.iter().enumerate() {
                        (block.losses[lane], block.weights[lane]) = (*loss, *weight);
                    }
                    block
                })
                .collect();
            let (versine, sine) = sum_of_waves(&blocks, y);
            let expected: f64 = values.iter().map(|(l, w)| w * (1.0 - libm::cos(y * l))).sum();
            prop_assert!((versine - expected).abs() < 1e-12);
            let expected: f64 = values.iter().map(|(l, w)| w * (libm::sin(y * l) - y * l)).sum();
            prop_assert!((sine - expected).abs() < 1e-11);
        }
    }

    fn check(x: f64, (square, bend): (f64, f64)) -> Result<(), TestCaseError> {
        let (sine, cosine) = libm::sincos(x);
        let allowed = 8.0 * UNIT * (1.0 + x.abs());
        prop_assert!((square - sine * sine).abs() <= allowed, "sin² {x}");
        prop_assert!((bend - (sine * cosine - x)).abs() <= allowed, "bend {x}");
        prop_assert!((square - sine * sine).abs() <= 8.0 * UNIT * sine * sine || x.abs() > 1.5);
        if x.abs() < 1e-2 {
            // −(2/3)x³ + (2/15)x⁵ − …
            let series = -x * x * x * (2.0 / 3.0 - x * x * (2.0 / 15.0 - x * x * 4.0 / 315.0));
            prop_assert!((bend - series).abs() <= 1e-14 * series.abs());
        }
        Ok(())
    }
}
