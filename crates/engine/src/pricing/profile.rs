//! [`Profile`]: δ(ε) of signs, Gaussian noise and a chance of losing everything, together.
//!
//! **Definition.** N mechanisms that are e-private, Gaussian noise with Σ Δ₂²/σ² = μ², and a probability `lost` that the loss is
//! infinite.
//!
//! **Guarantee.** With p = e^e/(1 + e^e) and the profile H of Gaussian noise,
//!
//! ```text
//! δ(ε) ≤ lost + (1 − lost) · Σⱼ C(N, j)·pʲ·(1 − p)^(N−j) · H(ε − (2j − N)·e; μ)
//! H(x; μ) = Φ(μ/2 − x/μ) − eˣ·Φ(−μ/2 − x/μ),     H(x; 0) = max(0, 1 − eˣ)
//! ```
//!
//! **Why.** Every e-private mechanism is a function of one whose loss is ±e, +e with probability p \[Kairouz2015\]. The sum of
//! N such losses is (2j − N)·e, and j is binomial. Given j, what is left of ε is what Gaussian noise must keep to. For discrete Laplace
//! noise on an answer that moves by 1, truncated or not, the loss is ±e: then the formula is an equality.
//!
//! **Exactness.** Doubles. For small μ the difference is taken as the integral φ(a)·∫(1 − x·M(x)) dx with Mills'
//! ratio M, so that no digits cancel; what is left out of the binomial sum is added as if it were all lost. The relative error
//! stays below 10⁻¹¹ (tested against certified arithmetic); whoever calibrates leaves a share of [`MARGIN`] unused.
//!
//! **References.** \[Kairouz2015\], \[Balle2018\].

/// The share of δ that is left unused because of rounding.
pub(crate) const MARGIN: f64 = 1e-9;

/// Beyond this a the profile is below 10⁻⁵⁶ and need not be known.
const FAR: f64 = 16.0;

/// While (1 + |a|)³ is below so many μ no more than three digits cancel in the difference, those of the tails included.
const DIRECT: f64 = 1e3;

/// Up to this μ three nodes integrate as well as six.
const NARROW: f64 = 0.05;

/// Binomial weights below this share of the largest are counted as lost.
const NEGLIGIBLE: f64 = 1e-40;

/// N signs of size e, and what is lost outright; see the module text.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    /// Σ of signs, with its probability.
    sums: Vec<(f64, f64)>,
    lost: f64,
}

impl Profile {
    pub(crate) fn new(signs: u64, step: f64, lost: f64) -> Self {
        let (weights, rest) = binomial(signs, step);
        let sums = weights.into_iter().map(|(j, weight)| ((2.0 * j - signs as f64) * step, weight)).collect();
        Self { sums, lost: lost + rest }
    }

    /// δ(ε) with Gaussian noise of the given μ besides.
    pub(crate) fn delta(&self, epsilon: f64, mu: f64) -> f64 {
        let kept: f64 = self.sums.iter().map(|(sum, weight)| weight * gaussian(epsilon - sum, mu)).sum();
        self.lost + (1.0 - self.lost).max(0.0) * kept
    }

    /// The largest μ with which δ(ε) is at most δ, to a share of about `precision`; `None` if there is none to speak of.
    pub(crate) fn largest_mu(&self, epsilon: f64, delta: f64, precision: f64) -> Option<f64> {
        let target = delta * (1.0 - MARGIN);
        let excess = |mu: f64| libm::log(self.delta(epsilon, mu) / target);
        // More than Gaussian noise alone allows, for any ε and δ of interest.
        let log = -libm::log(delta);
        let (mut high, mut above) = (2.0 * ((epsilon + log).sqrt() - log.sqrt()) + 1e-3 * delta, f64::NAN);
        let (mut low, mut below) = (high, excess(high));
        for _ in 0..24 {
            if below <= 0.0 {
                break;
            }
            (high, above) = (low, below);
            low /= 2.0;
            below = excess(low);
        }
        if below > 0.0 {
            return None;
        }
        if above.is_nan() {
            return Some(low);
        }
        // False position in ln μ, with the kept end's weight halved.
        let mut side = 0;
        for _ in 0..60 {
            if high / low - 1.0 < precision || below > -precision {
                break;
            }
            let share = if below.is_finite() { (below / (below - above)).clamp(0.02, 0.98) } else { 0.5 };
            let tried = low * libm::pow(high / low, share);
            let value = excess(tried);
            if value <= 0.0 {
                (low, below) = (tried, value);
                above *= if side == -1 { 0.5 } else { 1.0 };
                side = -1;
            } else {
                (high, above) = (tried, value);
                below *= if side == 1 { 0.5 } else { 1.0 };
                side = 1;
            }
        }
        Some(low)
    }
}

/// The largest e with which N signs have δ(ε) ≤ δ, of which `lost` is gone already.
pub(crate) fn largest_step(signs: u64, lost: f64, epsilon: f64, delta: f64) -> f64 {
    let holds = |step: f64| Profile::new(signs, step, lost).delta(epsilon, 0.0) <= delta * (1.0 - MARGIN);
    let (mut low, mut high) = (epsilon / signs as f64, epsilon.max(1.0) * 2.0);
    for _ in 0..40 {
        let middle = (low * high).sqrt();
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}

/// The weights C(N, j)·pʲ·(1 − p)^(N−j) that matter, with their j, and at most the sum of the others.
fn binomial(signs: u64, step: f64) -> (Vec<(f64, f64)>, f64) {
    let n = signs as f64;
    let odds = libm::exp(step);
    let mode = ((n + 1.0) / (1.0 + 1.0 / odds)).floor().min(n);
    let mut weights = vec![(mode, 1.0)];
    let (mut j, mut weight) = (mode, 1.0);
    while j < n && weight > NEGLIGIBLE {
        weight *= (n - j) / (j + 1.0) * odds;
        j += 1.0;
        weights.push((j, weight));
    }
    let mut rest = if j < n { n * weight } else { 0.0 };
    (j, weight) = (mode, 1.0);
    while j > 0.0 && weight > NEGLIGIBLE {
        weight *= j / (n - j + 1.0) / odds;
        j -= 1.0;
        weights.push((j, weight));
    }
    rest += if j > 0.0 { n * weight } else { 0.0 };
    let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
    (weights.into_iter().map(|(j, weight)| (j, weight / total)).collect(), rest / total)
}

/// H(x; μ).
fn gaussian(x: f64, mu: f64) -> f64 {
    if x < 0.0 {
        // H(x) = 1 − eˣ + eˣ·H(−x): the loss one way is that the other way.
        return -libm::expm1(x) + libm::exp(x) * gaussian(-x, mu);
    }
    if mu == 0.0 {
        return 0.0;
    }
    let (a, b) = (x / mu - mu / 2.0, x / mu + mu / 2.0);
    if a > FAR {
        // Φ(−a) ≤ e^(−a²/2): more than enough, and next to nothing.
        return libm::exp(-a * a / 2.0);
    }
    if libm::pow(1.0 + a.abs(), 3.0) < DIRECT * mu {
        return (tail(a) - libm::exp(x) * tail(b)).max(0.0);
    }
    let density = libm::exp(-a * a / 2.0) / (2.0 * std::f64::consts::PI).sqrt();
    let nodes: &[(f64, f64)] = if mu < NARROW { &THREE_NODES } else { &SIX_NODES };
    let value = |(node, weight): &(f64, f64)| weight * slope((a + b) / 2.0 + mu / 2.0 * node);
    density * mu / 2.0 * nodes.iter().map(value).sum::<f64>()
}

/// Gauss–Legendre on [−1, 1].
const THREE_NODES: [(f64, f64); 3] =
    [(-0.774_596_669_241_483_4, 5.0 / 9.0), (0.0, 8.0 / 9.0), (0.774_596_669_241_483_4, 5.0 / 9.0)];

/// Gauss–Legendre on [−1, 1].
const SIX_NODES: [(f64, f64); 6] = [
    (-0.932_469_514_203_152, 0.171_324_492_379_170_35),
    (-0.661_209_386_466_264_5, 0.360_761_573_048_138_6),
    (-0.238_619_186_083_196_9, 0.467_913_934_572_691_04),
    (0.238_619_186_083_196_9, 0.467_913_934_572_691_04),
    (0.661_209_386_466_264_5, 0.360_761_573_048_138_6),
    (0.932_469_514_203_152, 0.171_324_492_379_170_35),
];

fn tail(x: f64) -> f64 {
    0.5 * libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2)
}

/// −M′(x) = 1 − x·M(x) for Mills' ratio M.
fn slope(x: f64) -> f64 {
    if x > 8.0 {
        // M = 1/(x + 1/(x + 2/(x + …))), so that 1 − x·M = (1/(x + 2/(x + …)))·M.
        let inner = (2..24).rev().fold(x, |rest, k| x + f64::from(k) / rest);
        let mills = 1.0 / (x + 1.0 / inner);
        return mills / inner;
    }
    let mills = (std::f64::consts::PI / 2.0).sqrt()
        * libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2)
        * libm::exp(x * x / 2.0);
    1.0 - x * mills
}

#[cfg(test)]
mod tests {
    use super::*;
    use demur_exact::{Rational, gaussian_delta};

    fn exact(value: f64) -> Rational {
        Rational::try_from(value).unwrap()
    }

    /// Against enclosures that share no formula with ours.
    #[test]
    fn the_gaussian_profile_has_eleven_digits() {
        for mu in [1e-9, 1e-5, 0.001, 0.03, 0.2, 0.49, 0.51, 1.0, 3.0] {
            for z in [0.0, 0.01, 0.5, 2.0, 4.7, 8.0, 15.0] {
                let x = z * mu;
                let truth = gaussian_delta(&exact(x), &exact(mu));
                let found = gaussian(x, mu);
                let error = (found - truth.upper_f64()).abs() / truth.upper_f64();
                assert!(error < 1e-11, "{mu} {z}: {found:e} {:e}", truth.upper_f64());
            }
        }
    }

    /// For x < 0, by definition on a fine grid.
    #[test]
    fn the_profile_goes_on_below_zero() {
        for (x, mu) in [(-0.5, 1.0), (-2.0, 0.3), (-0.01, 0.1)] {
            let step = 1e-4;
            let density = |t: f64| libm::exp(-t * t / 2.0) / (2.0 * std::f64::consts::PI).sqrt();
            let sum: f64 = (-120_000..120_000)
                .map(|i| (f64::from(i) + 0.5) * step)
                .map(|t| (density(t - mu) - libm::exp(x) * density(t)).max(0.0) * step)
                .sum();
            assert!((gaussian(x, mu) - sum).abs() < 1e-7, "{x} {mu}");
        }
        assert_eq!(gaussian(-1.0, 0.0), 1.0 - libm::exp(-1.0));
        assert_eq!(gaussian(1.0, 0.0), 0.0);
    }

    #[test]
    fn binomial_weights_are_complete() {
        for (n, step) in [(1, 1.0), (5, 0.1), (100, 0.01), (3000, 0.2), (7, 30.0)] {
            let (weights, rest) = binomial(n, step);
            let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
            assert!((total - 1.0).abs() < 1e-13 && rest < 1e-30, "{n} {step}");
            let mean: f64 = weights.iter().map(|(j, weight)| j * weight).sum();
            assert!((mean - n as f64 / (1.0 + libm::exp(-step))).abs() < 1e-9 * n as f64);
        }
    }

    /// One sign: δ(ε) = (e^e − e^ε)/(1 + e^e).
    #[test]
    fn signs_alone_have_the_profile_of_randomized_response() {
        let found = Profile::new(1, 1.0, 0.0).delta(0.5, 0.0);
        let expected = (libm::exp(1.0) - libm::exp(0.5)) / (1.0 + libm::exp(1.0));
        assert!((found - expected).abs() < 1e-14);
        assert_eq!(Profile::new(4, 0.25, 0.0).delta(1.0, 0.0), 0.0);
    }
}
