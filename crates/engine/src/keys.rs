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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Item, Keys, Preference, Wish};
    use demur_accounting::Account;
    use demur_core::{Delta, Epsilon, Guarantee, Sensitivity};
    use demur_noise::DiscreteGaussian;
    use std::collections::BTreeMap;

    /// What is shown of one key: nothing, or its noisy count.
    type Shown = Option<i128>;

    fn pmf(noise: &Noise, z: i128) -> f64 {
        match noise {
            Noise::Laplace { mechanism, .. } => mechanism.noise().pmf(z),
            Noise::Truncated { mechanism, .. } => mechanism.noise().pmf(z),
            Noise::Gaussian { mechanism, .. } => mechanism.noise().pmf(z),
        }
    }

    /// The law of what is shown of a key with so many units, by the rule itself.
    fn shown(rule: &KeyRule, units: u64, reach: i128) -> BTreeMap<Shown, f64> {
        let mut law = BTreeMap::new();
        for z in -reach..=reach {
            let noisy = i128::from(units) + z;
            let kept = rule.keep_noisy(&[units], &[noisy]) == [true];
            *law.entry(kept.then_some(noisy)).or_insert(0.0) += pmf(&rule.noise, z);
        }
        law
    }

    /// sup P(S) − e^ε·Q(S) over all sets of pairs of outputs, for two keys.
    fn hockey_stick(p: [&BTreeMap<Shown, f64>; 2], q: [&BTreeMap<Shown, f64>; 2], epsilon: f64) -> f64 {
        let mut sum = 0.0;
        for (a, pa) in p[0] {
            for (b, pb) in p[1] {
                let other = q[0].get(a).unwrap_or(&0.0) * q[1].get(b).unwrap_or(&0.0);
                sum += (pa * pb - libm::exp(epsilon) * other).max(0.0);
            }
        }
        sum
    }

    fn rule(preference: Preference, epsilon: f64, delta: f64, moved: u64) -> KeyRule {
        let units = Item::new("units", moved, Sensitivity::scalar(Rational::one()).unwrap());
        let guarantee = Guarantee::new(Epsilon::new(epsilon).unwrap(), Delta::new(delta).unwrap());
        let keys = Some(Keys { moved, reuse: Some(0) });
        let priced = Wish { items: vec![units], keys, guarantee, preference }.price().unwrap();
        priced.rule().unwrap().clone()
    }

    /// Two keys, one unit that is in both or not: what is shown, with its noisy counts, for all counts up to 3 and both ways.
    /// By enumeration of every output.
    #[test]
    fn what_is_shown_is_as_private_as_is_charged() {
        for preference in [Preference::Laplace, Preference::Gaussian] {
            for (epsilon, delta) in [(1.0, 0.01), (2.0, 0.001), (0.5, 0.05)] {
                let rule = rule(preference, epsilon, delta, 2);
                let reach = (rule.noise.standard_deviation() * 12.0) as i128 + 10;
                let laws: Vec<_> = (0..=4).map(|units| shown(&rule, units, reach)).collect();
                assert_eq!(laws[0].keys().collect::<Vec<_>>(), [&None], "no unit, no key");
                let account = Account::of(&rule.loss()).unwrap();
                let mut tightest = f64::INFINITY;
                for at in [0.0, epsilon / 2.0, epsilon, 1.5 * epsilon] {
                    let charged = account.delta(&Rational::try_from(at).unwrap()).unwrap().bounds.upper;
                    for (m, n) in (0..=3).flat_map(|m| (0..=3).map(move |n| (m, n))) {
                        let (with, without) = ([&laws[m + 1], &laws[n + 1]], [&laws[m], &laws[n]]);
                        for found in [hockey_stick(with, without, at), hockey_stick(without, with, at)] {
                            assert!(
                                found <= charged * (1.0 + 1e-9),
                                "{preference:?} {at} {m} {n}: {found} {charged}"
                            );
                            tightest = tightest.min(charged / found.max(1e-300));
                        }
                    }
                    assert!(at < epsilon || charged <= delta);
                }
                // The worst pair of counts is close to what is charged.
                assert!(tightest < 1.6, "{preference:?} {epsilon}: {tightest}");
            }
        }
    }

    /// ≥ in place of > would show a key of one unit more often than was charged for.
    #[test]
    fn a_key_of_one_unit_is_shown_above_the_threshold_and_not_at_it() {
        for preference in [Preference::Laplace, Preference::Gaussian] {
            let rule = rule(preference, 1.0, 1e-3, 3);
            let tau = i128::from(rule.threshold);
            assert_eq!(rule.keep_noisy(&[1, 1, 0], &[tau, tau + 1, tau + 1]), [false, true, false]);
            let alone: f64 = (tau..tau + 400).map(|z| pmf(&rule.noise, z)).sum();
            let at_least: f64 = (tau - 1..tau + 400).map(|z| pmf(&rule.noise, z)).sum();
            assert!(3.0 * alone <= 1e-3 && alone > 0.0);
            assert!(at_least > alone * 1.05);
        }
    }

    /// False alarm below 1e-9: 4000 keys at the half point are kept 2000 ± 32 times, and a little more than half.
    #[test]
    fn keys_at_the_half_point_are_kept_half_of_the_time() {
        for preference in [Preference::Laplace, Preference::Gaussian] {
            let rule = rule(preference, 1.0, 1e-6, 20);
            let half = rule.half_point();
            let mut entropy = Entropy::from_os().unwrap();
            let mut kept =
                |units: u64| rule.keep(&[units; 4000], &mut entropy).iter().filter(|kept| **kept).count();
            assert!(kept(half) > 1800 && kept(half - 1) < 2200);
            assert_eq!((kept(0), kept(100 * half)), (0, 4000));
            assert!(kept(1) <= 2);
        }
    }

    #[test]
    fn the_bound_on_gaussian_tails_is_close_from_above() {
        for (variance, moved, delta) in [(2.5, 1, 1e-6), (30.0, 20, 1e-9), (4000.0, 5, 1e-3), (3.0, 1, 0.3)] {
            let law = DiscreteGaussian::new(Rational::try_from(variance).unwrap()).unwrap();
            let (threshold, lost) = gaussian_threshold(variance, moved, delta);
            let truth = |tau: u64| moved as f64 * law.tail(tau as f64 - 1.0) / 2.0;
            assert!(truth(threshold) <= lost && lost <= delta, "{variance}");
            let spare = (variance.sqrt() / 20.0) as u64 + 2;
            assert!(
                truth(threshold.saturating_sub(spare).max(1)) > delta || threshold <= spare,
                "{variance}"
            );
        }
    }
}
