//! What the discrete laws look like, in doubles: for tests, error bars and plots only.

use crate::{DiscreteGaussian, DiscreteLaplace, TruncatedDiscreteLaplace};

/// Up to this σ sums over the discrete Gaussian are taken term by term.
const SUMMED_SIGMA: f64 = 1000.0;

impl DiscreteLaplace {
    /// Probability that the noise equals `k`.
    ///
    /// ```
    /// use demur_noise::DiscreteLaplace;
    /// let noise = DiscreteLaplace::new("3".parse()?)?;
    /// let total: f64 = (-200..=200).map(|k| noise.pmf(k)).sum();
    /// assert!((total - 1.0).abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pmf(&self, k: i128) -> f64 {
        let t = self.scale().to_f64();
        (0.5 / t).tanh() * (-(k.unsigned_abs() as f64) / t).exp()
    }

    /// Probability that the noise is further than `steps` from zero.
    pub fn tail(&self, steps: f64) -> f64 {
        if steps < 0.0 {
            return 1.0;
        }
        let t = self.scale().to_f64();
        let ratio = (-1.0 / t).exp();
        2.0 * (-(steps.floor() + 1.0) / t).exp() / (1.0 + ratio)
    }

    /// √(2r)/(1 − r) with r = e^(−1/t): close to √2·t, not t.
    pub fn standard_deviation(&self) -> f64 {
        let t = self.scale().to_f64();
        let ratio = (-1.0 / t).exp();
        (2.0 * ratio).sqrt() / -(-1.0 / t).exp_m1()
    }
}

impl TruncatedDiscreteLaplace {
    /// Probability that the noise equals `k`.
    pub fn pmf(&self, k: i128) -> f64 {
        if k.unsigned_abs() > u128::from(self.bound()) {
            return 0.0;
        }
        let t = self.scale().to_f64();
        (-(k.unsigned_abs() as f64) / t).exp() / self.total()
    }

    /// Probability that the noise is further than `steps` from zero.
    pub fn tail(&self, steps: f64) -> f64 {
        let (t, bound) = (self.scale().to_f64(), self.bound() as f64);
        if steps < 0.0 {
            return 1.0;
        }
        if steps >= bound {
            return 0.0;
        }
        let first = steps.floor() + 1.0;
        // r^first + … + r^bound, twice.
        let sum = (-first / t).exp() * ((first - bound - 1.0) / t).exp_m1() / (-1.0 / t).exp_m1();
        2.0 * sum / self.total()
    }

    /// The sum of all weights e^(−|k|/t).
    fn total(&self) -> f64 {
        let (t, bound) = (self.scale().to_f64(), self.bound() as f64);
        let ratio = (-1.0 / t).exp();
        1.0 + 2.0 * ratio * (-bound / t).exp_m1() / (-1.0 / t).exp_m1()
    }

    /// The standard deviation: summed where the support is short, and otherwise that
    /// of the continuous law, from which it then differs in no visible digit.
    pub fn standard_deviation(&self) -> f64 {
        if self.bound() <= 1 << 16 {
            let square = |k: u64| (k as f64).powi(2) * self.pmf(k.into());
            return (2.0 * (1..=self.bound()).map(square).sum::<f64>()).sqrt();
        }
        let (t, b) = (self.scale().to_f64(), self.bound() as f64 / self.scale().to_f64());
        // ∫₀ᵇ x²e^(−x) dx / ∫₀ᵇ e^(−x) dx
        let above = 2.0 - (-b).exp() * (b * b + 2.0 * b + 2.0);
        t * (above / -(-b).exp_m1()).sqrt()
    }
}

impl DiscreteGaussian {
    /// Probability that the noise equals `k`.
    pub fn pmf(&self, k: i128) -> f64 {
        let variance = self.variance().to_f64();
        let square = (k.unsigned_abs() as f64).powi(2);
        (-square / (2.0 * variance)).exp() / self.total()
    }

    /// The sum of all weights e^(−k²/2σ²); above σ = 1 it is σ√2π·(1 + 2e^(−2π²σ²)).
    fn total(&self) -> f64 {
        let variance = self.variance().to_f64();
        if variance > 1.0 {
            let ripple = (-2.0 * std::f64::consts::PI.powi(2) * variance).exp();
            return (2.0 * std::f64::consts::PI * variance).sqrt() * (1.0 + 2.0 * ripple);
        }
        1.0 + 2.0 * (1..20).map(|k: i32| (-f64::from(k * k) / (2.0 * variance)).exp()).sum::<f64>()
    }

    /// Probability that the noise is further than `steps` from zero.
    ///
    /// For σ above 1000 that of the continuous law beyond `steps`, which is larger:
    /// each term of the sum is at most the integral over the step before it.
    pub fn tail(&self, steps: f64) -> f64 {
        if steps < 0.0 {
            return 1.0;
        }
        let sigma = self.variance().to_f64().sqrt();
        if sigma > SUMMED_SIGMA {
            return statrs::function::erf::erfc(steps.floor() / (sigma * std::f64::consts::SQRT_2));
        }
        // e^(−(k + 1)²/2v) = e^(−k²/2v)·e^(−(2k + 1)/2v), and that ratio falls by e^(−1/v) each time.
        let (variance, first) = (sigma * sigma, steps.floor() + 1.0);
        let mut term = (-first * first / (2.0 * variance)).exp();
        let mut ratio = (-(2.0 * first + 1.0) / (2.0 * variance)).exp();
        let (slower, mut sum) = ((-1.0 / variance).exp(), 0.0);
        while term > sum * f64::EPSILON / 8.0 {
            sum += term;
            term *= ratio;
            ratio *= slower;
        }
        2.0 * sum / self.total()
    }

    /// The standard deviation; for σ above 1 indistinguishable from σ.
    pub fn standard_deviation(&self) -> f64 {
        let sigma = self.variance().to_f64().sqrt();
        if sigma > 10.0 {
            return sigma;
        }
        let square = |k: i128| (k as f64).powi(2) * self.pmf(k);
        (2.0 * (1..500).map(square).sum::<f64>()).sqrt()
    }
}
