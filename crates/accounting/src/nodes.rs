//! [`Nodes`]: a privacy loss as finitely many weighted values, good for its moments.
//!
//! **Definition.** The moment function of a law is K(z) = E_P[e^(zL) | L < ∞]. Nodes are losses Lⱼ and
//! weights wⱼ with
//!
//! ```text
//! |K(z) − 1 − Σ wⱼ·(e^(zLⱼ) − 1)| ≤ missing·max(1, K(Re z))    for 0 ≤ Re z ≤ c_max and |Im z| ≤ y_max
//! ```
//!
//! Atoms are their own nodes; densities give the nodes of a quadrature rule, with its proven error.
//!
//! **Rounding.** A tiny loss composed a billion times must keep its digits, so the sum is rearranged until
//! every term is of second order in L. Since E_P[e^(−L)] is the mass `balance` that Q has on finite losses,
//! z·(1 − e^(−L)) can be taken out of each term for z·(1 − balance). With A = e^(cL) and θ = yL
//!
//! ```text
//! K − 1 = z·(1 − balance) + Σ w·(e^(cL) − 1 + c·(e^(−L) − 1))
//!       − Σ wA·2sin²(θ/2) + i·Σ wA·(sin θ − θ) + i·y·Σ w·(L·(A − 1) + L + e^(−L) − 1)
//! ```
//!
//! and each bracket is computed by a series where its parts nearly cancel. A node also carries a `scale`
//! ≥ |Lⱼ| such that its loss is off by at most 16u·scale and its weight by a factor 1 ± 16u·scale/|Lⱼ|
//! (u = 2⁻⁵³). The derivative of a term by L is at most |z||z + 1||L|·max(A, 1, e^(−L)), so with summation in eight lanes
//!
//! ```text
//! rounding error ≤ (64 + n/4)·u·|z|·|z + 1|·Σ wⱼ·max(A, 1, e^(−Lⱼ))·|Lⱼ|·scaleⱼ
//! ```

pub(crate) mod gauss_legendre;
mod pieces;
mod sampled_gaussian;
mod trigonometry;

use num_complex::Complex64;

use crate::law::{Base, Law};
pub(crate) use sampled_gaussian::ratio;
use trigonometry::sum_of_waves;

/// 2⁻⁵³, by which a rounded operation is off at most.
pub(crate) const UNIT: f64 = f64::EPSILON / 2.0;

/// Where and how well nodes shall represent the moments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// The largest Re z.
    pub(crate) tilt: f64,
    /// The largest |Im z|.
    pub(crate) frequency: f64,
    /// What may be missing.
    pub(crate) tolerance: f64,
}

/// See the module text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes {
    losses: Vec<f64>,
    weights: Vec<f64>,
    scales: Vec<f64>,
    missing: f64,
    /// 1 − E[e^(−L)].
    imbalance: f64,
}

impl Nodes {
    /// Nodes of a law that is no plain Gaussian; for that there is a closed form.
    pub(crate) fn of(law: &Law, reach: Reach) -> Self {
        match (&law.base, &law.sampling) {
            (Base::Gaussian { mu_squared }, Some(sampling)) => {
                sampled_gaussian::nodes(mu_squared.to_f64().sqrt(), sampling, reach)
            }
            (Base::Pieces(pieces), sampling) => pieces::nodes(pieces, sampling.as_ref(), reach),
            (Base::Gaussian { .. }, None) => Self::default(),
        }
    }

    /// About how many nodes there would be.
    pub(crate) fn expected(law: &Law, reach: Reach) -> f64 {
        match (&law.base, &law.sampling) {
            (Base::Gaussian { mu_squared }, Some(sampling)) => {
                sampled_gaussian::expected(mu_squared.to_f64().sqrt(), sampling, reach)
            }
            (Base::Pieces(pieces), _) => pieces::expected(pieces, reach),
            (Base::Gaussian { .. }, None) => 0.0,
        }
    }

    fn push(&mut self, loss: f64, weight: f64, scale: f64) {
        self.losses.push(loss);
        self.weights.push(weight);
        self.scales.push(scale);
    }

    /// Nodes seen from Re z = c.
    pub(crate) fn tilted(&self, tilt: f64) -> Tilted {
        let log_scale = self.log_scale(tilt);
        let mut tilted = Tilted { tilt, log_scale, losses: self.losses.clone(), ..Tilted::default() };
        tilted.weights.reserve(self.weights.len());
        let (mut excess, mut drift) = (Lanes::default(), Lanes::default());
        let (mut slope, mut curvature, mut scale) = (Lanes::default(), Lanes::default(), 0.0);
        for (index, ((&loss, &weight), &size)) in
            self.losses.iter().zip(&self.weights).zip(&self.scales).enumerate()
        {
            // e^(cL) − 1 and e^(−L) − 1
            let (growth, fall) = (libm::expm1(tilt * loss), libm::expm1(-loss));
            let heavy = if tilt * loss > 300.0 || log_scale > 0.0 {
                // e^(cL) alone could be too large for a double
                libm::exp(weight.ln() + tilt * loss - log_scale)
            } else {
                weight * (1.0 + growth)
            };
            if log_scale > 0.0 {
                excess.add(index, heavy);
                drift.add(index, heavy * loss);
            } else if tilt * loss > 300.0 {
                excess.add(index, heavy + weight * (tilt * fall - 1.0));
                drift.add(index, heavy * loss + weight * fall);
            } else {
                excess.add(index, weight * second_order(tilt, loss, growth + tilt * fall));
                drift.add(index, weight * (loss * growth + second_order(0.0, loss, loss + fall)));
            }
            tilted.weights.push(heavy);
            slope.add(index, heavy * loss);
            curvature.add(index, heavy * loss * loss);
            let other = weight * (1.0 + fall);
            // Where e^(cL) is huge, terms are summed as they are: their errors are of first order.
            scale +=
                if log_scale > 0.0 { heavy * size } else { heavy.max(weight).max(other) * loss.abs() * size };
        }
        (tilted.excess, tilted.drift) = (excess.sum(), drift.sum());
        if log_scale > 0.0 {
            tilted.excess -= 1.0;
        } else {
            tilted.excess += tilt * self.imbalance;
            tilted.drift += self.imbalance;
        }
        let moment = 1.0 + tilted.excess;
        tilted.missing = self.missing * moment.max(1.0) * (1.0 + 1e-9);
        tilted.mean = slope.sum() / moment;
        tilted.variance = curvature.sum() / moment - tilted.mean * tilted.mean;
        tilted.rounding = (64.0 + self.losses.len() as f64 / 4.0) * UNIT * scale;
        tilted
    }

    /// ln of a number to divide by where e^(cL) is too large for a double; else 0.
    fn log_scale(&self, tilt: f64) -> f64 {
        if self.losses.iter().all(|loss| tilt * loss < 200.0) {
            return 0.0;
        }
        let logs = self.losses.iter().zip(&self.weights).map(|(loss, weight)| weight.ln() + tilt * loss);
        let largest = logs.fold(f64::NEG_INFINITY, f64::max);
        if largest > 200.0 { largest } else { 0.0 }
    }
}

/// e^(cL) − 1 + c·(e^(−L) − 1), and for c = 0 its derivative by c there, L + e^(−L) − 1; `plain` is the same
/// added up as it stands, which is good enough where nothing cancels.
fn second_order(c: f64, loss: f64, plain: f64) -> f64 {
    const TERMS: i32 = 18;
    if (c + 1.0) * loss.abs() > 0.25 {
        return plain;
    }
    // Σ Lⁿ/n!·(cⁿ + c·(−1)ⁿ) from n = 2; for c = 0 without the c in front
    let (mut power, mut tilted, mut sum) = (loss, c, 0.0);
    for n in 2..TERMS {
        power *= loss / f64::from(n);
        tilted *= c;
        let sign = if n % 2 == 0 { 1.0 } else { -1.0 };
        sum += power * if c == 0.0 { sign } else { tilted + c * sign };
    }
    sum
}

/// Eight running sums, which lose fewer digits than one.
#[derive(Default)]
struct Lanes([f64; 8]);

impl Lanes {
    fn add(&mut self, index: usize, value: f64) {
        self.0[index % 8] += value;
    }

    fn sum(&self) -> f64 {
        self.0.iter().sum()
    }
}

/// The moments of a law on a line Re z = c.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tilted {
    tilt: f64,
    /// All moments here are divided by e^`log_scale`.
    log_scale: f64,
    losses: Vec<f64>,
    weights: Vec<f64>,
    /// K(c) − 1.
    pub(crate) excess: f64,
    /// What multiplies iy in K(c + iy).
    drift: f64,
    /// The mean loss under the tilted law, (ln K)′(c).
    pub(crate) mean: f64,
    /// Its variance, (ln K)″(c).
    pub(crate) variance: f64,
    rounding: f64,
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

impl LogMoment {
    /// An upper bound on ln K(c), for real c.
    pub(crate) fn up(&self) -> f64 {
        self.value.re + self.error
    }
}

impl Tilted {
    /// ln K(c).
    pub(crate) fn log_moment(&self) -> f64 {
        libm::log1p(self.excess) + self.log_scale
    }

    /// K(c).
    pub(crate) fn moment(&self) -> f64 {
        (1.0 + self.excess) * libm::exp(self.log_scale)
    }

    /// |K(c + iy)|/K(c) is at most this.
    pub(crate) fn modulus(&self, frequency: f64) -> f64 {
        let (versine, sine) = sum_of_waves(&self.losses, &self.weights, frequency);
        let moment = 1.0 + self.excess;
        let modulus = (moment - versine).hypot(sine + frequency * self.drift);
        (modulus + self.error(frequency)) / (moment - self.error(0.0))
    }

    /// The standard deviation of the tilted loss is at most this.
    pub(crate) fn deviation(&self) -> f64 {
        self.variance.max(0.0).sqrt() * 1.1 + self.missing.sqrt()
    }

    /// A bound on the error of K(c + iy).
    fn error(&self, frequency: f64) -> f64 {
        let (c, y) = (self.tilt, frequency);
        let order = if self.log_scale > 0.0 { c.hypot(y) } else { c.hypot(y) * (c + 1.0).hypot(y) };
        self.missing * (1.0 + c.hypot(y)) + self.rounding * order
    }

    /// ln K(c + iy).
    pub(crate) fn at(&self, frequency: f64) -> LogMoment {
        let (versine, sine) = sum_of_waves(&self.losses, &self.weights, frequency);
        let (re, im) = (self.excess - versine, sine + frequency * self.drift);
        let modulus = (1.0 + re).hypot(im);
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::{Direction, Sampling};
    use demur_exact::Rational;

    /// K(1) = E_Q[r²] = 1 + q²(e^(μ²) − 1), and with few nodes the error is seen and covered.
    #[test]
    fn what_a_coarse_rule_misses_is_covered() {
        let (rate, mu_squared) = (0.3, 4.0f64);
        let exact = rate * rate * mu_squared.exp_m1();
        let base = Base::Gaussian { mu_squared: Rational::from(4u32) };
        let law = Law { base, sampling: Some(Sampling { rate, direction: Direction::Remove }) };
        let mut seen = 0.0f64;
        for tolerance in [0.3, 1e-1, 1e-2, 1e-4, 1e-8, 1e-14] {
            let tilted = Nodes::of(&law, Reach { tilt: 1.0, frequency: 0.0, tolerance }).tilted(1.0);
            let missed = (tilted.excess - exact).abs();
            assert!(missed <= tilted.error(0.0), "{tolerance}: {missed} above {}", tilted.error(0.0));
            seen = seen.max(missed);
        }
        assert!(seen > 1e-9, "a coarse rule must miss something, but missed {seen}");
    }
}
