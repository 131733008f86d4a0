//! [`PrivacyLoss`]: what one use of a mechanism costs, as data.
//!
//! A loss names the mechanism and its exact parameters; it does not say how much
//! that is in ε. Accountants turn losses into guarantees, and a better one may
//! find a smaller guarantee for a loss that was written down long ago.
//!
//! **Stability.** Losses live in ledgers and certificates. Variants and their fields are
//! added, never removed, never renamed and never given a new meaning.

mod language;
mod reader;

use demur_exact::Rational;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What one use of a mechanism costs, as data; see the module text.
///
/// Parameters are exact, and written as text so that no reader rounds them. What is
/// read is checked; what is built by hand can be, with [`check`](Self::check).
/// People write a loss in the [loss language](#impl-FromStr-for-PrivacyLoss).
///
/// ```
/// use demur_core::PrivacyLoss;
/// use demur_exact::Rational;
///
/// let sum = PrivacyLoss::Gaussian { variance: Rational::from(25u32), l2_squared: Rational::one() };
/// let count = PrivacyLoss::Pure { epsilon: Rational::new(1, 10) };
/// let both = sum.repeat(100).compose(count.repeat(3));
/// assert_eq!(
///     both.to_string(),
///     "gaussian(variance=25, sensitivity=1)*100 + pure(0.1)*3",
/// );
/// assert_eq!("gaussian(sigma=5)*100 + 3*pure(0.1)".parse(), Ok(both));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "mechanism", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum PrivacyLoss {
    /// Anything that is ε-differentially private.
    Pure {
        /// ε ≥ 0.
        epsilon: Rational,
    },
    /// Anything that is (ε, δ)-differentially private.
    Approximate {
        /// ε ≥ 0.
        epsilon: Rational,
        /// δ from 0 to below 1.
        delta: Rational,
    },
    /// Anything that is ρ-zero-concentrated differentially private.
    ZeroConcentrated {
        /// ρ ≥ 0.
        rho: Rational,
    },
    /// Laplace noise on real numbers, independent in each coordinate.
    Laplace {
        /// The noise is x with density ∝ exp(−|x| / scale).
        scale: Rational,
        /// The ℓ1 sensitivity Δ₁.
        sensitivity: Rational,
    },
    /// Discrete Laplace noise on whole numbers, independent in each coordinate.
    DiscreteLaplace {
        /// The noise is k with probability ∝ exp(−|k| / scale).
        scale: Rational,
        /// The ℓ1 sensitivity Δ₁.
        sensitivity: Rational,
    },
    /// Laplace noise on one real number, conditioned to stay within a bound.
    TruncatedLaplace {
        /// The noise is x with density ∝ exp(−|x| / scale).
        scale: Rational,
        /// The noise is never larger than this.
        bound: Rational,
        /// How far the number can move.
        sensitivity: Rational,
    },
    /// Discrete Laplace noise on one whole number, conditioned to stay within a bound.
    TruncatedDiscreteLaplace {
        /// The noise is k with probability ∝ exp(−|k| / scale).
        scale: Rational,
        /// The noise is never larger than this.
        bound: Rational,
        /// How far the number can move.
        sensitivity: Rational,
    },
    /// Gaussian noise on real numbers, independent in each coordinate.
    Gaussian {
        /// σ².
        variance: Rational,
        /// The square of the ℓ2 sensitivity Δ₂.
        l2_squared: Rational,
    },
    /// Discrete Gaussian noise on whole numbers, independent in each coordinate.
    DiscreteGaussian {
        /// σ²: the noise is k with probability ∝ exp(−k² / 2σ²).
        variance: Rational,
        /// The square of the ℓ2 sensitivity Δ₂.
        l2_squared: Rational,
        /// How many coordinates there are.
        dimensions: u64,
    },
    /// The truth with probability e^ε / (e^ε + k − 1), else one of the other k − 1 categories.
    RandomizedResponse {
        /// ε ≥ 0.
        epsilon: Rational,
        /// k ≥ 2.
        categories: u64,
    },
    /// A category as a row of bits, each flipped independently, for ε together.
    UnaryEncoding {
        /// ε ≥ 0, for the whole row.
        epsilon: Rational,
    },
    /// The exponential mechanism, ∝ exp(ε·u / 2Δu).
    Exponential {
        /// ε ≥ 0.
        epsilon: Rational,
    },
    /// The permute-and-flip mechanism.
    PermuteAndFlip {
        /// ε ≥ 0.
        epsilon: Rational,
    },
    /// A mechanism on a Poisson sample: each record is in it with probability `rate`.
    Subsampled {
        /// From 0 to 1.
        rate: Rational,
        /// The loss of the mechanism on the sample.
        inner: Box<PrivacyLoss>,
    },
    /// What a mechanism costs a group of people that shall be hidden together.
    Group {
        /// How many people there are.
        size: u64,
        /// The loss for one person.
        inner: Box<PrivacyLoss>,
    },
    /// Several mechanisms on the same data.
    Composed {
        /// The losses and how often each was paid; none at all costs nothing.
        parts: Vec<Part>,
    },
    /// Keys chosen by a threshold: noisy counts, of which only those above it are shown.
    Threshold {
        /// From 0 to below 1: the probability that a key which only one unit has is shown.
        delta: Rational,
        /// The loss of the noise on the counts.
        inner: Box<PrivacyLoss>,
    },
    /// A mechanism on a sample of a fixed size, drawn without replacement; neighbours are
    /// datasets in which one record is replaced.
    WithoutReplacement {
        /// How many records are drawn, at most the population; a sample of none costs nothing.
        sample: u64,
        /// How many records there are, at least 1.
        population: u64,
        /// The loss of the mechanism when one record of the sample is replaced.
        inner: Box<PrivacyLoss>,
    },
    /// Anything whose Rényi divergences between neighbours, either way, are bounded at these orders.
    Renyi {
        /// From 1 to 1000 bounds, by strictly increasing order.
        points: Vec<RenyiPoint>,
    },
}

/// A loss and how often it was paid.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// What was paid.
    pub loss: PrivacyLoss,
    /// How often; what was never paid costs nothing.
    pub count: u64,
}

/// A bound on one Rényi divergence: that of this order is at most ε.
///
/// ```
/// use demur_core::{PrivacyLoss, RenyiPoint};
/// use demur_exact::Rational;
///
/// let point = RenyiPoint { order: Rational::from(2u32), epsilon: Rational::new(1, 10) };
/// let loss = PrivacyLoss::Renyi { points: vec![point] };
/// assert_eq!(loss.to_string(), "renyi(2: 0.1)");
/// assert_eq!("renyi(2: 0.1)".parse(), Ok(loss));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenyiPoint {
    /// α > 1.
    pub order: Rational,
    /// ε ≥ 0, for D_α(P ‖ Q) = ln(E_Q\[(P/Q)^α\]) / (α − 1).
    pub epsilon: Rational,
}

impl PrivacyLoss {
    /// The loss of both mechanisms on the same data; equal losses are counted together.
    #[must_use]
    pub fn compose(self, other: Self) -> Self {
        let mut parts = self.into_parts();
        for part in other.into_parts() {
            add(&mut parts, part);
        }
        Self::of_parts(parts)
    }

    /// The loss of the same mechanism used `count` times on the same data.
    ///
    /// ```
    /// use demur_core::PrivacyLoss;
    /// use demur_exact::Rational;
    ///
    /// let week = PrivacyLoss::Exponential { epsilon: Rational::new(1, 2) }.repeat(7);
    /// assert_eq!(week.clone().repeat(52).to_string(), "exponential(0.5)*364");
    /// assert_eq!(week.repeat(0).to_string(), "composed()");
    /// ```
    #[must_use]
    pub fn repeat(self, count: u64) -> Self {
        if count == 0 {
            return Self::of_parts(vec![]);
        }
        let parts = self.clone().into_parts();
        let times = |part: Part| Some(Part { count: part.count.checked_mul(count)?, ..part });
        let repeated: Option<Vec<_>> = parts.into_iter().map(times).collect();
        Self::of_parts(repeated.unwrap_or_else(|| vec![Part { loss: self, count }]))
    }

    /// The ε of pure differential privacy, exactly; `None` when the loss is not pure.
    ///
    /// A sampled loss is pure, but its ε = ln(1 + rate·(e^ε − 1)) is no fraction: `None`
    /// too, unless the sample is everybody or nobody. So is a loss known by its Rényi
    /// divergences, and one that fails its [`check`](Self::check).
    ///
    /// ```
    /// use demur_core::PrivacyLoss;
    /// use demur_exact::Rational;
    ///
    /// let [scale, sensitivity] = [20u32, 3].map(Rational::from);
    /// let loss = PrivacyLoss::Laplace { scale, sensitivity };
    /// assert_eq!(loss.repeat(2).pure_epsilon(), Some(Rational::new(6, 20)));
    /// ```
    pub fn pure_epsilon(&self) -> Option<Rational> {
        self.check().ok()?;
        self.pure_epsilon_of_checked()
    }

    fn pure_epsilon_of_checked(&self) -> Option<Rational> {
        let zero_when = |free: &Rational| free.is_zero().then(Rational::zero);
        match self {
            Self::Pure { epsilon }
            | Self::RandomizedResponse { epsilon, .. }
            | Self::UnaryEncoding { epsilon }
            | Self::Exponential { epsilon }
            | Self::PermuteAndFlip { epsilon } => Some(epsilon.clone()),
            Self::Approximate { epsilon, delta } => delta.is_zero().then(|| epsilon.clone()),
            Self::Laplace { scale, sensitivity } | Self::DiscreteLaplace { scale, sensitivity } => {
                Some(sensitivity / scale)
            }
            Self::TruncatedLaplace { sensitivity, .. }
            | Self::TruncatedDiscreteLaplace { sensitivity, .. } => zero_when(sensitivity),
            Self::Gaussian { l2_squared, .. } | Self::DiscreteGaussian { l2_squared, .. } => {
                zero_when(l2_squared)
            }
            Self::ZeroConcentrated { rho } => zero_when(rho),
            Self::Subsampled { rate, inner } => pure_on_a_sample(rate, inner),
            Self::Group { size, inner } => Some(&Rational::from(*size) * &inner.pure_epsilon_of_checked()?),
            Self::Composed { parts } => sum_of_pure(parts),
            Self::Threshold { delta, inner } if delta.is_zero() => inner.pure_epsilon_of_checked(),
            Self::WithoutReplacement { sample, population, inner } => {
                pure_on_a_sample(&(&Rational::from(*sample) / &Rational::from(*population)), inner)
            }
            Self::Threshold { .. } | Self::Renyi { .. } => None,
        }
    }

    fn into_parts(self) -> Vec<Part> {
        match self {
            Self::Composed { parts } => parts,
            loss => vec![Part { loss, count: 1 }],
        }
    }

    /// The composition of the parts, or the only part itself.
    fn of_parts(mut parts: Vec<Part>) -> Self {
        match parts.pop() {
            Some(Part { loss, count: 1 }) if parts.is_empty() => loss,
            last => Self::Composed { parts: parts.into_iter().chain(last).collect() },
        }
    }
}

/// Adds a part, to an equal one where there is one with room in its count.
fn add(parts: &mut Vec<Part>, part: Part) {
    let room = |known: &&mut Part| known.loss == part.loss && known.count.checked_add(part.count).is_some();
    match parts.iter_mut().find(room) {
        Some(known) => known.count += part.count,
        None => parts.push(part),
    }
}

/// The ε on a sample of everybody or of nobody.
fn pure_on_a_sample(rate: &Rational, inner: &PrivacyLoss) -> Option<Rational> {
    match rate {
        rate if rate.is_zero() => Some(Rational::zero()),
        rate if *rate == Rational::one() => inner.pure_epsilon_of_checked(),
        _ => None,
    }
}

fn sum_of_pure(parts: &[Part]) -> Option<Rational> {
    let mut paid = parts.iter().filter(|part| part.count > 0);
    paid.try_fold(Rational::zero(), |sum, Part { loss, count }| {
        Some(&sum + &(&Rational::from(*count) * &loss.pure_epsilon_of_checked()?))
    })
}

impl Serialize for PrivacyLoss {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

/// Reads a loss and checks it.
impl<'de> Deserialize<'de> for PrivacyLoss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The derived function of the same name, which only reads.
        let loss = Self::deserialize(deserializer)?;
        loss.check().map_err(serde::de::Error::custom)?;
        Ok(loss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PrivacyLoss::*;
    use proptest::prelude::*;

    fn q(text: &str) -> Rational {
        text.parse().unwrap()
    }

    fn pure(epsilon: &str) -> PrivacyLoss {
        Pure { epsilon: q(epsilon) }
    }

    fn gaussian() -> PrivacyLoss {
        Gaussian { variance: q("25"), l2_squared: q("1") }
    }

    fn renyi(points: &[(&str, &str)]) -> PrivacyLoss {
        let point = |&(order, epsilon): &(&str, &str)| RenyiPoint { order: q(order), epsilon: q(epsilon) };
        Renyi { points: points.iter().map(point).collect() }
    }

    /// Every variant with its JSON, its text and its pure ε.
    fn golden() -> Vec<(PrivacyLoss, &'static str, &'static str, Option<&'static str>)> {
        vec![
            (pure("0.1"), r#"{"mechanism":"pure","epsilon":"0.1"}"#, "pure(0.1)", Some("0.1")),
            (
                Approximate { epsilon: q("1/3"), delta: q("1e-6") },
                r#"{"mechanism":"approximate","epsilon":"1/3","delta":"0.000001"}"#,
                "approx(epsilon=1/3, delta=0.000001)",
                None,
            ),
            (
                ZeroConcentrated { rho: q("0.5") },
                r#"{"mechanism":"zero-concentrated","rho":"0.5"}"#,
                "zcdp(0.5)",
                None,
            ),
            (
                Laplace { scale: q("20"), sensitivity: q("0.5") },
                r#"{"mechanism":"laplace","scale":"20","sensitivity":"0.5"}"#,
                "laplace(scale=20, sensitivity=0.5)",
                Some("0.025"),
            ),
            (
                DiscreteLaplace { scale: q("20"), sensitivity: q("1") },
                r#"{"mechanism":"discrete-laplace","scale":"20","sensitivity":"1"}"#,
                "discrete_laplace(scale=20, sensitivity=1)",
                Some("0.05"),
            ),
            (
                TruncatedLaplace { scale: q("2"), bound: q("30.5"), sensitivity: q("1") },
                r#"{"mechanism":"truncated-laplace","scale":"2","bound":"30.5","sensitivity":"1"}"#,
                "truncated_laplace(scale=2, bound=30.5, sensitivity=1)",
                None,
            ),
            (
                TruncatedDiscreteLaplace { scale: q("2"), bound: q("30"), sensitivity: q("1") },
                r#"{"mechanism":"truncated-discrete-laplace","scale":"2","bound":"30","sensitivity":"1"}"#,
                "truncated_discrete_laplace(scale=2, bound=30, sensitivity=1)",
                None,
            ),
            (
                gaussian(),
                r#"{"mechanism":"gaussian","variance":"25","l2_squared":"1"}"#,
                "gaussian(variance=25, sensitivity=1)",
                None,
            ),
            (
                DiscreteGaussian { variance: q("25"), l2_squared: q("4"), dimensions: 4 },
                r#"{"mechanism":"discrete-gaussian","variance":"25","l2_squared":"4","dimensions":4}"#,
                "discrete_gaussian(variance=25, sensitivity=2, dimensions=4)",
                None,
            ),
            (
                RandomizedResponse { epsilon: q("1"), categories: 4 },
                r#"{"mechanism":"randomized-response","epsilon":"1","categories":4}"#,
                "randomized_response(epsilon=1, categories=4)",
                Some("1"),
            ),
            (
                UnaryEncoding { epsilon: q("2") },
                r#"{"mechanism":"unary-encoding","epsilon":"2"}"#,
                "unary_encoding(2)",
                Some("2"),
            ),
            (
                Exponential { epsilon: q("0.25") },
                r#"{"mechanism":"exponential","epsilon":"0.25"}"#,
                "exponential(0.25)",
                Some("0.25"),
            ),
            (
                PermuteAndFlip { epsilon: q("0.25") },
                r#"{"mechanism":"permute-and-flip","epsilon":"0.25"}"#,
                "permute_and_flip(0.25)",
                Some("0.25"),
            ),
            (
                Subsampled { rate: q("0.01"), inner: Box::new(gaussian()) },
                r#"{"mechanism":"subsampled","rate":"0.01","inner":{"mechanism":"gaussian","variance":"25","l2_squared":"1"}}"#,
                "subsampled(rate=0.01, gaussian(variance=25, sensitivity=1))",
                None,
            ),
            (
                Group { size: 3, inner: Box::new(pure("0.1")) },
                r#"{"mechanism":"group","size":3,"inner":{"mechanism":"pure","epsilon":"0.1"}}"#,
                "group(size=3, pure(0.1))",
                Some("0.3"),
            ),
            (
                Composed {
                    parts: vec![Part { loss: pure("1"), count: 2 }, Part { loss: pure("0.5"), count: 1 }],
                },
                r#"{"mechanism":"composed","parts":[{"loss":{"mechanism":"pure","epsilon":"1"},"count":2},{"loss":{"mechanism":"pure","epsilon":"0.5"},"count":1}]}"#,
                "pure(1)*2 + pure(0.5)",
                Some("2.5"),
            ),
            (
                Threshold { delta: q("1e-6"), inner: Box::new(pure("0.1")) },
                r#"{"mechanism":"threshold","delta":"0.000001","inner":{"mechanism":"pure","epsilon":"0.1"}}"#,
                "threshold(delta=0.000001, pure(0.1))",
                None,
            ),
            (
                WithoutReplacement { sample: 100, population: 10_000, inner: Box::new(gaussian()) },
                r#"{"mechanism":"without-replacement","sample":100,"population":10000,"inner":{"mechanism":"gaussian","variance":"25","l2_squared":"1"}}"#,
                "without_replacement(sample=100, population=10000, gaussian(variance=25, sensitivity=1))",
                None,
            ),
            (
                renyi(&[("4/3", "0.1"), ("8", "0.5")]),
                r#"{"mechanism":"renyi","points":[{"order":"4/3","epsilon":"0.1"},{"order":"8","epsilon":"0.5"}]}"#,
                "renyi(4/3: 0.1, 8: 0.5)",
                None,
            ),
        ]
    }

    #[test]
    fn json_of_every_variant_is_pinned() {
        for (loss, json, _, _) in golden() {
            assert_eq!(serde_json::to_string(&loss).unwrap(), json);
            assert_eq!(serde_json::from_str::<PrivacyLoss>(json).unwrap(), loss);
        }
    }

    #[test]
    fn text_of_every_variant_is_pinned() {
        for (loss, _, text, _) in golden() {
            assert_eq!(loss.to_string(), text);
        }
    }

    #[test]
    fn pure_epsilon_of_every_variant_is_pinned() {
        for (loss, _, text, epsilon) in golden() {
            assert_eq!(loss.pure_epsilon(), epsilon.map(q), "{text}");
        }
    }

    #[test]
    fn every_variant_has_a_golden_row() {
        let variants: std::collections::HashSet<_> =
            golden().iter().map(|(loss, ..)| std::mem::discriminant(loss)).collect();
        assert_eq!(variants.len(), 19);
    }

    #[test]
    fn what_moves_nothing_costs_nothing() {
        let zero = q("0");
        for loss in [
            Gaussian { variance: q("1"), l2_squared: zero.clone() },
            TruncatedLaplace { scale: q("1"), bound: q("1"), sensitivity: zero.clone() },
            ZeroConcentrated { rho: zero.clone() },
            Subsampled { rate: zero.clone(), inner: Box::new(pure("3")) },
            Subsampled { rate: zero.clone(), inner: Box::new(gaussian()) },
            WithoutReplacement { sample: 0, population: 1, inner: Box::new(gaussian()) },
            Composed { parts: vec![] },
            Composed { parts: vec![Part { loss: gaussian(), count: 0 }] },
        ] {
            assert_eq!(loss.pure_epsilon(), Some(zero.clone()), "{loss}");
        }
    }

    #[test]
    fn only_a_whole_sample_has_a_rational_epsilon() {
        let sampled = |rate| Subsampled { rate: q(rate), inner: Box::new(pure("3")) };
        assert_eq!(sampled("1").pure_epsilon(), Some(q("3")));
        assert_eq!(sampled("0.5").pure_epsilon(), None);
        let drawn = |sample| WithoutReplacement { sample, population: u64::MAX, inner: Box::new(pure("3")) };
        assert_eq!(drawn(u64::MAX).pure_epsilon(), Some(q("3")));
        assert_eq!(drawn(u64::MAX - 1).pure_epsilon(), None);
        assert_eq!(drawn(1).pure_epsilon(), None);
    }

    #[test]
    fn only_a_threshold_that_never_fails_is_pure() {
        let threshold = |delta, inner| Threshold { delta: q(delta), inner: Box::new(inner) };
        assert_eq!(threshold("0", pure("3")).pure_epsilon(), Some(q("3")));
        assert_eq!(threshold("0", gaussian()).pure_epsilon(), None);
        assert_eq!(threshold("1e-300", pure("3")).pure_epsilon(), None);
    }

    #[test]
    fn bounded_divergences_are_not_pure() {
        assert_eq!(renyi(&[("2", "0")]).pure_epsilon(), None);
    }

    /// Nothing is paid for what was never used, yet it must be something that could be used.
    #[test]
    fn what_was_never_paid_is_checked_and_costs_nothing() {
        let never = |loss| Composed { parts: vec![Part { loss, count: 0 }] };
        let free = never(gaussian());
        assert_eq!(free.check(), Ok(()));
        assert_eq!(free.to_string(), "gaussian(variance=25, sensitivity=1)*0");
        assert_eq!(free.to_string().parse(), Ok(free.clone()));
        let json = serde_json::to_string(&free).unwrap();
        assert_eq!(serde_json::from_str::<PrivacyLoss>(&json).unwrap(), free);
        assert_eq!(free.clone().compose(pure("1")).pure_epsilon(), Some(q("1")));
        assert_eq!(free.clone().compose(gaussian()), gaussian());
        assert_eq!(free.repeat(3).pure_epsilon(), Some(q("0")));
        assert_eq!(never(pure("-1")).check().unwrap_err().code(), "core.loss.parameter");
    }

    #[test]
    fn one_impure_part_makes_the_whole_impure() {
        assert_eq!(pure("1").compose(gaussian()).pure_epsilon(), None);
        assert_eq!(Group { size: 2, inner: Box::new(gaussian()) }.pure_epsilon(), None);
        let approximate = |delta| Approximate { epsilon: q("1"), delta: q(delta) };
        assert_eq!(approximate("0").pure_epsilon(), Some(q("1")));
        assert_eq!(approximate("1e-300").pure_epsilon(), None);
    }

    #[test]
    fn equal_losses_are_counted_together() {
        let loss = gaussian().repeat(2).compose(pure("1")).compose(gaussian());
        assert_eq!(loss.to_string(), "gaussian(variance=25, sensitivity=1)*3 + pure(1)");
        assert_eq!(pure("1").repeat(1), pure("1"));
        assert_eq!(pure("1").compose(pure("2").repeat(0)), pure("1"));
    }

    #[test]
    fn counts_that_would_overflow_stay_apart() {
        let full = pure("1").repeat(u64::MAX);
        let more = full.clone().compose(pure("1"));
        assert_eq!(more.to_string(), "pure(1)*18446744073709551615 + pure(1)");
        assert_eq!(more.pure_epsilon(), Some(Rational::from(1u128 << 64)));
        let nested = full.repeat(2);
        assert_eq!(nested.to_string(), "(pure(1)*18446744073709551615)*2");
        assert_eq!(nested.pure_epsilon(), Some(Rational::from(2 * u128::from(u64::MAX))));
    }

    #[test]
    fn json_that_says_more_or_less_than_a_loss_is_refused() {
        for json in [
            r#"{"mechanism":"pure"}"#,
            r#"{"mechanism":"pure","epsilon":"1","discount":"0.5"}"#,
            r#"{"mechanism":"pure","epsilon":1}"#,
            r#"{"mechanism":"unheard-of","epsilon":"1"}"#,
            r#"{"mechanism":"composed","parts":[{"loss":{"mechanism":"pure","epsilon":"1"},"count":-1}]}"#,
            r#"{"mechanism":"threshold","delta":"0"}"#,
            r#"{"mechanism":"without-replacement","sample":"1","population":2,"inner":{"mechanism":"pure","epsilon":"1"}}"#,
            r#"{"mechanism":"renyi"}"#,
            r#"{"mechanism":"renyi","points":[{"order":"2"}]}"#,
            r#"{"mechanism":"renyi","points":[{"order":"2","epsilon":"1","delta":"0"}]}"#,
            r#"{"mechanism":"renyi","points":[{"order":2,"epsilon":"1"}]}"#,
            r#"{"epsilon":"1"}"#,
        ] {
            assert!(serde_json::from_str::<PrivacyLoss>(json).is_err(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn composing_and_repeating_add_up(
            losses in proptest::collection::vec((0i128..100, 1u128..9, 0u64..50), 0..6),
            times in 0u64..9,
        ) {
            let start = Composed { parts: vec![] };
            let total = losses.iter().fold(start, |sum, &(n, d, count)| {
                sum.compose(Pure { epsilon: Rational::new(n, d) }.repeat(count))
            });
            let expected = losses.iter().fold(Rational::zero(), |sum, &(n, d, count)| {
                &sum + &(&Rational::new(n, d) * &Rational::from(count))
            });
            let expected = &expected * &Rational::from(times);
            let repeated = total.repeat(times);
            prop_assert_eq!(repeated.pure_epsilon(), Some(expected));
            let json = serde_json::to_string(&repeated).unwrap();
            prop_assert_eq!(serde_json::from_str::<PrivacyLoss>(&json).unwrap(), repeated);
        }
    }
}
