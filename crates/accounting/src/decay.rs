//! [`Decay`]: how fast the moments of a law fall along a vertical line, proven.
//!
//! **Definition.** For the law tilted by e^(cL), let φ(y) = K(c + iy)/K(c). A decay is a list of parts
//! of the law, each with its share m of the whole and a bound v on the total variation of its density
//! (as a density of L, and of total mass 1).
//!
//! **Guarantee.** For every y′ ≥ y and every whole n with v < ny,
//!
//! ```text
//! |φ(y′)| ≤ 1 − m·(1 − √(1 − (1 − (v/ny)²)/n²))
//! ```
//!
//! **Why.** The rest of the law contributes at most 1 − m in modulus. For the part alone, integration
//! by parts gives |ψ(y)| ≤ v/y. For smaller y, 1 − cos(nt) ≤ n²·(1 − cos t) applied to the difference of
//! two independent copies gives 1 − |ψ(ny)|² ≤ n²·(1 − |ψ(y)|²). The bound falls with y.
//!
//! **Parts.** A flat stretch tilted is an exponential, monotone: v = 2·max. For a sampled Gaussian the
//! density of L at x is f = g/ℓ′ with (ln f)′ = −x − μ + a·μ·s(x), where s is the logistic curve
//! q·e^(…)/r and a = c + 2 or 1 − c. On each cell of a grid f and |(ln f)′| are bounded from their values in the
//! middle, and v = f(x₀) + ∫|f′| is summed over the cells of a half-line x ≥ x₀; beyond the last cell
//! f falls. Half-lines that start further right are thinner but smoother, so several are kept.

use crate::law::{Base, Direction, Flat, Law, Sampling};
use crate::nodes::ratio;

/// See the module text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decay {
    parts: Vec<(f64, f64)>,
}

impl Decay {
    /// Of a law tilted by c; K(c) is `moment`.
    pub(crate) fn of(law: &Law, tilt: f64, moment: f64) -> Self {
        match (&law.base, &law.sampling) {
            (Base::Gaussian { mu_squared }, Some(sampling)) => {
                sampled_gaussian(mu_squared.to_f64().sqrt(), sampling, tilt, moment)
            }
            (Base::Gaussian { .. }, None) => Self::default(),
            (Base::Pieces(pieces), sampling) => {
                let finite = 1.0 - law.infinite();
                let whole = moment * finite * (1.0 + 1e-12);
                let parts = pieces.flats.iter().filter_map(|flat| part(flat, sampling.as_ref(), tilt, whole));
                Self { parts: parts.collect() }
            }
        }
    }

    /// An upper bound on ln |φ| at y and everywhere above.
    pub(crate) fn log_modulus(&self, y: f64) -> f64 {
        let bound = |&(mass, variation): &(f64, f64)| {
            (1..=6)
                .map(|n| {
                    let n = f64::from(n);
                    let wave = variation / (n * y);
                    let gone = if wave < 1.0 { (1.0 - wave * wave) / (n * n) } else { 0.0 };
                    mass * (1.0 - (1.0 - gone).sqrt())
                })
                .fold(0.0, f64::max)
        };
        let gone = self.parts.iter().map(bound).fold(0.0, f64::max);
        // One part in 10⁹ for the rounding of all of this.
        libm::log1p(-gone * (1.0 - 1e-9))
    }
}

/// A flat stretch as a part, of a law whose tilted mass is `whole`.
fn part(flat: &Flat, sampling: Option<&Sampling>, tilt: f64, whole: f64) -> Option<(f64, f64)> {
    let (mass, variation) = variation(flat, sampling, tilt);
    (mass > 0.0).then(|| ((mass / whole).min(1.0) * (1.0 - 1e-12), variation / mass * (1.0 + 1e-12)))
}

/// The mass of a flat stretch tilted by c, rounded down, and a bound on the total variation of its density.
pub(crate) fn variation(flat: &Flat, sampling: Option<&Sampling>, tilt: f64) -> (f64, f64) {
    let Some(sampling) = sampling else {
        // ∫ e^(bℓ)dℓ from low to high, by its larger end
        let rate = tilt + 0.5;
        let peak = flat.density * libm::exp(rate * flat.high);
        let mass = peak * -libm::expm1(-rate * (flat.high - flat.low)) / rate;
        return (mass, 2.0 * peak);
    };
    // In the sampled loss: cells of ℓ, in each of which everything changes by a known factor at most.
    const CELLS: usize = 512;
    let width = (flat.high - flat.low) / CELLS as f64;
    let (mut mass, mut peak) = (0.0, 0.0f64);
    for cell in 0..CELLS {
        let loss = flat.low + width * (cell as f64 + 0.5);
        let ratio = 1.0 + sampling.rate * libm::expm1(loss);
        let slope = sampling.rate * libm::exp(loss) / ratio;
        // s = q·e^ℓ/r, at the end of the cell: it grows with ℓ
        let steepest = 1.0 / (1.0 + (1.0 - sampling.rate) / sampling.rate * libm::exp(-loss - width / 2.0));
        let (here, there) = (libm::exp(loss / 2.0), libm::exp(-loss / 2.0));
        let density = flat.density * sampling.probability(here, there);
        let tilted = density * libm::exp(tilt * sampling.loss(loss));
        let factor = libm::exp(width / 2.0 * (1.5 + (2.0 + tilt) * steepest));
        mass += tilted * width / factor;
        peak = peak.max(tilted / slope * factor);
    }
    (mass, 4.0 * peak)
}

/// Half-lines of a sampled Gaussian.
fn sampled_gaussian(mu: f64, sampling: &Sampling, tilt: f64, moment: f64) -> Decay {
    const ROOT_TWO_PI: f64 = 2.506_628_274_631_000_5;
    let power = match sampling.direction {
        Direction::Remove | Direction::Replace => tilt + 1.0,
        Direction::Add => -tilt,
    };
    // How fast (ln f)′ itself can change, and a cell small enough for that.
    let bend = 1.0 + (power.abs() + 1.0) * mu * mu / 4.0;
    let cell = (0.25f64).min(0.5 / bend.sqrt());
    let right = match sampling.direction {
        Direction::Remove | Direction::Replace => (tilt + 1.0) * mu + 6.0,
        Direction::Add => 6.0,
    };
    let mut decay = Decay::default();
    let (mut mass, mut variation) = (0.0, 0.0);
    let cells = ((right + 6.0) / cell) as usize;
    for index in 0..cells {
        let x = right - cell * (index as f64 + 0.5);
        let (log_ratio, logistic) = ratio(mu, sampling.rate, x);
        let slope = mu * logistic;
        let density = libm::exp(power * log_ratio - x * x / 2.0) / ROOT_TWO_PI;
        let steep_f = (-x - mu + (power + 1.0) * slope).abs() + cell / 2.0 * bend;
        let steep_g = (-x + power * slope).abs() + cell / 2.0 * bend;
        mass += density * cell * libm::exp(-cell / 2.0 * steep_g);
        let peak = density / slope * libm::exp(cell / 2.0 * steep_f);
        if index == 0 {
            variation += peak; // falls to 0 from here
        }
        variation += cell * steep_f * peak;
        if index % 2 == 1 && mass > 0.0 {
            decay.parts.push(((mass / moment).min(1.0), (variation + peak) / mass));
        }
    }
    decay
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The density of the sampled loss tilted by c, at many places: its mass and variation are what is claimed, and not far from it.
    #[test]
    fn the_variation_of_a_stretch_on_a_sample_is_bounded() {
        for direction in [Direction::Remove, Direction::Add] {
            for (rate, half, tilt) in
                [(0.3, 1.0, 2.0), (0.004, 0.35, 1e4), (0.01, 2.0, 300.0), (0.9, 0.5, 0.1)]
            {
                let sampling = Sampling { rate, direction };
                let flat = Flat { low: -half, high: half, density: 0.25 };
                let (mass, bound) = variation(&flat, Some(&sampling), tilt);
                let (mut exact, mut whole, mut before) = (0.0, 0.0, None);
                const PLACES: i32 = 20_000;
                for index in 0..=PLACES {
                    let loss = -half + 2.0 * half * f64::from(index) / f64::from(PLACES);
                    let ratio = 1.0 + rate * libm::expm1(loss);
                    let (here, there) = (libm::exp(loss / 2.0), libm::exp(-loss / 2.0));
                    let height =
                        0.25 * sampling.probability(here, there) * libm::exp(tilt * sampling.loss(loss));
                    whole += height * 2.0 * half / f64::from(PLACES);
                    let density = height * ratio / (rate * libm::exp(loss));
                    exact += (density - before.unwrap_or(0.0)).abs();
                    before = Some(density);
                }
                exact += before.unwrap_or(0.0);
                let name = format!("{rate} {half} {tilt} {direction:?}: {exact} {bound}, {whole} {mass}");
                assert!(exact <= bound && bound <= 4.0 * exact, "{name}");
                assert!(mass <= whole * (1.0 + 1e-3) && whole <= 1.3 * mass, "{name}");
            }
        }
    }
}
