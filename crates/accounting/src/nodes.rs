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

mod exponential;
mod fused;
pub(crate) mod gauss_legendre;
mod logarithm;
mod moments;
mod pieces;
mod sampled_gaussian;
mod tilted;
mod trigonometry;

use crate::law::{Base, Law};
pub(crate) use moments::Moments;
pub(crate) use sampled_gaussian::ratio;
pub(crate) use tilted::{Share, Tilted};

/// 2⁻⁵³, by which a rounded operation is off at most.
pub(crate) const UNIT: f64 = f64::EPSILON / 2.0;

/// How many nodes are worked on at once.
const LANES: usize = 8;

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
    blocks: Vec<Block>,
    count: usize,
    missing: f64,
    /// 1 − E[e^(−L)].
    imbalance: f64,
}

/// Some nodes; where there are fewer, the rest have weight 0.
#[derive(Clone, Debug)]
struct Block {
    losses: [f64; LANES],
    weights: [f64; LANES],
    /// ln of each weight, for those that are too small for a double until they are multiplied by e^(cL).
    logs: [f64; LANES],
    scales: [f64; LANES],
}

impl Block {
    const NOTHING: Self = Self {
        losses: [0.0; LANES],
        weights: [0.0; LANES],
        logs: [f64::NEG_INFINITY; LANES],
        scales: [0.0; LANES],
    };
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
            (Base::Pieces(pieces), sampling) => pieces::expected(pieces, sampling.as_ref(), reach),
            (Base::Gaussian { .. }, None) => 0.0,
        }
    }

    fn push(&mut self, loss: f64, weight: f64, scale: f64) {
        self.push_log(loss, (weight, libm::log(weight)), scale);
    }

    /// A node whose weight is known by its logarithm too.
    fn push_log(&mut self, loss: f64, (weight, log): (f64, f64), scale: f64) {
        let lane = self.count % LANES;
        if lane == 0 {
            self.blocks.push(Block::NOTHING);
        }
        if let Some(block) = self.blocks.last_mut() {
            (block.losses[lane], block.weights[lane]) = (loss, weight);
            (block.logs[lane], block.scales[lane]) = (log, scale);
        }
        self.count += 1;
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
            let tilted = Nodes::of(&law, Reach { tilt: 1.0, frequency: 0.0, tolerance }).moments(1.0);
            let missed = (tilted.excess - exact).abs();
            assert!(missed <= tilted.error(0.0), "{tolerance}: {missed} above {}", tilted.error(0.0));
            seen = seen.max(missed);
        }
        assert!(seen > 1e-9, "a coarse rule must miss something, but missed {seen}");
    }

    /// K(c) = E_Q[r^(c+1)] = Σ C(n, k)·q^k·(1 − q)^(n−k)·e^(k(k−1)μ²/2) for n = c + 1: a few far outputs, of probabilities
    /// no double can hold, are all that counts.
    #[test]
    fn what_is_likely_only_when_tilted_is_not_lost() {
        let (rate, n) = (1e-6f64, 117u32);
        let base = Base::Gaussian { mu_squared: Rational::new(1, 4) };
        let law = Law { base, sampling: Some(Sampling { rate, direction: Direction::Remove }) };
        let (mut log_choices, mut logs) = (0.0, vec![]);
        for k in 0..=n {
            let (k, n) = (f64::from(k), f64::from(n));
            logs.push(log_choices + k * rate.ln() + (n - k) * (-rate).ln_1p() + k * (k - 1.0) / 8.0);
            log_choices += ((n - k) / (k + 1.0)).ln();
        }
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let exact = largest + logs.iter().map(|log| (log - largest).exp()).sum::<f64>().ln();
        let tilt = f64::from(n - 1);
        for most in [tilt, 2.0 * tilt] {
            let reach = Reach { tilt: most, frequency: 0.0, tolerance: 1e-12 };
            let found = Nodes::of(&law, reach).moments(tilt).log_moment();
            assert!(exact > 60.0 && (found / exact - 1.0).abs() < 1e-9, "{found} for {exact}");
        }
    }
}
