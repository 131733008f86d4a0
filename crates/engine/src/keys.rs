//! [`KeyRule`]: which groups may be shown at all.
//!
//! **Definition.** Of the keys that occur, those are shown whose number of units n satisfies n + Z > τ, with fresh noise
//! Z for each key. Keys that do not occur are never shown.
//!
//! **Guarantee, truncated.** Z is discrete Laplace noise of scale t within ±τ. When one unit comes or goes at most M
//! unit counts move, by 1 each. Showing keys, and the noisy counts of those that are shown, costs M uses of this noise:
//! each is (1/t, δ₁)-private with δ₁ = Pr\[Z = τ\].
//!
//! *Why.* Give noise to every key there could be. One that does not occur has n = 0, and 0 + Z ≤ τ: it is not shown, so
//! it need not be looked at. So the rule is a function of noisy counts, which are independent, and of which M move. A key of one
//! unit is shown when Z = τ: with probability δ₁, exactly. Among all rules with this ε and δ₁ none shows a key with a higher
//! probability, up to the rounding of τ to a whole number \[Desfontaines2022\].
//!
//! **Guarantee, threshold.** Z is discrete Gaussian noise, and τ such that M·Pr\[1 + Z > τ\] ≤ δ. Then it costs what the noise costs on M
//! counts, and δ.
//!
//! *Why.* Let D have the unit that D′ has not, and let E be the event that on D a key is shown that the unit alone has.
//! These are m ≤ M keys, so that Pr\[E\] = 1 − (1 − δ₁)^m ≤ M·δ₁ = δ. Let Q be the noisy counts of all other keys and what is
//! made of them, on D, and Q′ on D′. Noise of different keys is independent, so on D the law is
//! Pr\[E\]·R + (1 − Pr\[E\])·Q for some law R on outputs that E alone can give; on D′ it is Q′. Hence one way
//! sup P(S) − e^ε·P′(S) ≤ δ + (1 − δ)·sup Q(S) − e^ε·Q′(S), and the other way, for S without E,
//! Q′(S) − e^ε·(1 − δ)·Q(S) ≤ δ + (1 − δ)·(Q′(S) − e^ε·Q(S)). Both are what is charged.
//!
//! **> and not ≥.** A key of one unit is shown when Z ≥ τ. With n + Z ≥ τ in its place it would be shown when
//! Z ≥ τ − 1, and more often by a factor of about e^(1/t).
//!
//! **Exactness.** τ of truncated noise is found by certified arithmetic. Of Gaussian noise with variance v
//!
//! ```text
//! Pr[Z ≥ τ] ≤ e^(−τ²/2v) / (√(2πv) · (1 − e^(−(2τ + 1)/2v)))
//! ```
//!
//! because the weights sum to at least √(2πv) (Poisson summation) and each is at most e^(−(2τ+1)/2v) of the one before. This is
//! evaluated in doubles and raised by a share of 10⁻⁹.
//!
//! **References.** \[Desfontaines2022\], \[Korolova2009\], \[Geng2020\].

use demur_core::PrivacyLoss;
use demur_exact::Rational;
use demur_noise::Entropy;

use crate::noise::Noise;

/// By which share a probability computed in doubles is raised.
const RAISED: f64 = 1.0 + 1e-9;

/// Which keys are shown; see the module text.
#[derive(Clone, Debug)]
pub struct KeyRule {
    noise: Noise,
    /// τ.
    threshold: u64,
    /// δ of the threshold; truncated noise has its own.
    delta: Option<Rational>,
    /// The item whose noisy numbers are the noisy unit counts.
    reuse: Option<usize>,
}

impl KeyRule {
    /// The rule for truncated noise, whose bound is the threshold.
    pub(crate) fn truncated(noise: Noise, reuse: Option<usize>) -> Self {
        let threshold = match &noise {
            Noise::Truncated { mechanism, .. } => mechanism.noise().bound(),
            _ => u64::MAX,
        };
        Self { noise, threshold, delta: None, reuse }
    }

    /// The rule for noise without a bound.
    pub(crate) fn threshold(noise: Noise, threshold: u64, delta: Rational, reuse: Option<usize>) -> Self {
        Self { noise, threshold, delta: Some(delta), reuse }
    }

    /// What it costs, the noise included.
    pub fn loss(&self) -> PrivacyLoss {
        let inner = self.noise.loss();
        match &self.delta {
            Some(delta) => PrivacyLoss::Threshold { delta: delta.clone(), inner: Box::new(inner) },
            None => inner,
        }
    }

    /// The item whose noisy numbers decide, if keys have no noise of their own.
    pub fn reuse(&self) -> Option<usize> {
        self.reuse
    }

    /// The noise on unit counts.
    pub fn noise(&self) -> &Noise {
        &self.noise
    }

    /// Decides for each key by the number of its units, with noise of its own.
    pub fn keep(&self, units: &[u64], entropy: &mut Entropy) -> Vec<bool> {
        let mut noise = vec![0; units.len()];
        self.noise.fill(entropy, &mut noise);
        let noisy = units.iter().zip(noise).map(|(&n, z)| i128::from(n) + z);
        units.iter().zip(noisy).map(|(&n, noisy)| n > 0 && self.shows(noisy)).collect()
    }

    /// Decides for each key by a noisy unit count that is published as well.
    pub fn keep_noisy(&self, units: &[u64], noisy: &[i128]) -> Vec<bool> {
        units.iter().zip(noisy).map(|(&n, &noisy)| n > 0 && self.shows(noisy)).collect()
    }

    fn shows(&self, noisy: i128) -> bool {
        noisy > i128::from(self.threshold)
    }

    /// The least number of units with which a key is shown more often than not.
    ///
    /// With n = τ + 1 it is shown when Z ≥ 0, with n = τ when Z ≥ 1; Z is symmetric, and 0 with some probability.
    pub fn half_point(&self) -> u64 {
        self.threshold.saturating_add(1)
    }

    /// The rule, for people.
    pub fn describe(&self) -> String {
        let counts = match self.reuse {
            Some(_) => "the published number of units",
            None => "the number of units",
        };
        let noise = match self.reuse {
            Some(_) => String::new(),
            None => format!(" with {}", self.noise.describe()),
        };
        format!("a key is shown when {counts}{noise} exceeds {}", self.threshold)
    }
}

/// The least τ with `moved`·Pr[Z ≥ τ] ≤ `delta` for Gaussian noise, and what the left side is then at most.
pub(crate) fn gaussian_threshold(variance: f64, moved: u64, delta: f64) -> (u64, f64) {
    let bound = |tau: f64| {
        let weight =
            libm::exp(-tau * tau / (2.0 * variance)) / (2.0 * std::f64::consts::PI * variance).sqrt();
        let rest = -libm::expm1(-(2.0 * tau + 1.0) / (2.0 * variance));
        (moved as f64 * weight / rest * RAISED).min(1.0)
    };
    let (mut low, mut high) = (0u64, 1u64);
    while bound(high as f64) > delta && high < 1 << 62 {
        (low, high) = (high, high * 2);
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if bound(middle as f64) <= delta { high = middle } else { low = middle }
    }
    (high, bound(high as f64))
}
