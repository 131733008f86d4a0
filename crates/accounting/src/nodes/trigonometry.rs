//! Sums of waves: Σ wⱼ·(1 − cos yLⱼ) and Σ wⱼ·sin yLⱼ.
//!
//! This is where an accountant spends its time, so sine and cosine are computed here, without
//! branches, and the compiler runs several at once. With x = yL/2 the two terms are 2w·sin²x and
//! 2w·sin x·cos x. x is reduced by multiples of π (two parts of π, exact products up to 2²⁰
//! multiples), then both series are summed to where they end in double precision. sin x
//! and cos x are off by at most 4u·(1 + |x|), and sin x by a *factor* 1 ± 4u for |x| ≤ π/2.

/// π in two parts, the first of 24 bits.
const PI_HIGH: f64 = f64::from_bits(0x4009_21FB_4000_0000);
const PI_LOW: f64 = 1.509_957_990_978_376_5e-7;
/// Adding and subtracting it rounds to a whole number.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// (Σ w·(1 − cos yL), Σ w·sin yL).
pub(super) fn sum_of_waves(losses: &[f64], weights: &[f64], y: f64) -> (f64, f64) {
    pulp::Arch::new().dispatch(#[inline(always)] || sum(losses, weights, y))
}

#[inline(always)]
fn sum(losses: &[f64], weights: &[f64], y: f64) -> (f64, f64) {
    const LANES: usize = 8;
    let half = y / 2.0;
    let (mut versines, mut sines) = ([0.0; LANES], [0.0; LANES]);
    let chunks = losses.chunks_exact(LANES).zip(weights.chunks_exact(LANES));
    for (losses, weights) in chunks {
        for lane in 0..LANES {
            let (sine, cosine) = sin_cos(half * losses[lane]);
            versines[lane] += weights[lane] * (sine * sine);
            sines[lane] += weights[lane] * (sine * cosine);
        }
    }
    let rest = losses.len() / LANES * LANES;
    for (loss, weight) in losses[rest..].iter().zip(&weights[rest..]) {
        let (sine, cosine) = sin_cos(half * loss);
        versines[0] += weight * (sine * sine);
        sines[0] += weight * (sine * cosine);
    }
    (2.0 * versines.iter().sum::<f64>(), 2.0 * sines.iter().sum::<f64>())
}

/// sin x and cos x up to a common sign, for |x| up to about 3·10⁶.
#[inline(always)]
fn sin_cos(x: f64) -> (f64, f64) {
    let turns = (x * std::f64::consts::FRAC_1_PI + ROUND) - ROUND;
    let r = (x - turns * PI_HIGH) - turns * PI_LOW;
    let s = r * r;
    let sine = r * (1.0 + s * polynomial(s, &SINE));
    let cosine = 1.0 + s * polynomial(s, &COSINE);
    (sine, cosine)
}

#[inline(always)]
fn polynomial<const N: usize>(s: f64, coefficients: &[f64; N]) -> f64 {
    let mut sum = 0.0;
    for coefficient in coefficients {
        sum = sum * s + coefficient;
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
        fn sine_and_cosine_are_those_of_the_library(x in -4.0f64..4.0, exponent in -30i32..20) {
            let x = x * 2f64.powi(exponent);
            let (sine, cosine) = sin_cos(x);
            let sign = if libm::cos(x) * cosine < 0.0 { -1.0 } else { 1.0 };
            let allowed = 4.0 * UNIT * (1.0 + x.abs()) + 2.0 * UNIT;
            prop_assert!((sign * sine - libm::sin(x)).abs() <= allowed, "sin {x}");
            prop_assert!((sign * cosine - libm::cos(x)).abs() <= allowed, "cos {x}");
            if x.abs() <= 1.5 {
                prop_assert!((sine - libm::sin(x)).abs() <= 6.0 * UNIT * libm::sin(x).abs());
            }
        }

        #[test]
        fn sums_are_sums(values in prop::collection::vec((-3.0f64..3.0, 0.0f64..1.0), 0..30), y in -50.0f64..50.0) {
            let (losses, weights): (Vec<_>, Vec<_>) = values.into_iter().unzip();
            let (versine, sine) = sum_of_waves(&losses, &weights, y);
            let terms = || losses.iter().zip(&weights);
            let expected: f64 = terms().map(|(l, w)| w * (1.0 - libm::cos(y * l))).sum();
            prop_assert!((versine - expected).abs() < 1e-12);
            let expected: f64 = terms().map(|(l, w)| w * libm::sin(y * l)).sum();
            prop_assert!((sine - expected).abs() < 1e-12);
        }
    }
}
