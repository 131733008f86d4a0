//! Tests: whatever is printed is read back as the very same loss, and nothing read ever panics.

use PrivacyLoss::*;
use demur_exact::Rational;
use proptest::prelude::*;

use crate::privacy_loss::{Part, PrivacyLoss, RenyiPoint};

/// Fractions at least 0: short decimals, ordinary ones, doubles, and thousands of digits.
fn number() -> impl Strategy<Value = Rational> {
    let huge = |(n, power): (u128, u32)| {
        let grown = (0..power).fold(Rational::from(n), |product, _| &product * &Rational::from(n | 1));
        if power % 2 == 0 { grown } else { &grown / &Rational::from(u128::MAX) }
    };
    prop_oneof![
        (0i128..1_000, 0u32..9).prop_map(|(n, places)| Rational::new(n, 10u128.pow(places))),
        (0i128..i128::MAX, 1u128..u128::MAX).prop_map(|(n, d)| Rational::new(n, d)),
        (0.0f64..1e300).prop_map(|value| Rational::try_from(value).unwrap()),
        (-1_000i64..1_000).prop_map(Rational::power_of_two),
        (any::<u128>(), 0u32..120).prop_map(huge),
    ]
}

/// Fractions above 0.
fn positive() -> impl Strategy<Value = Rational> {
    number().prop_map(|value| if value.is_zero() { Rational::one() } else { value })
}

/// Fractions from 0 to below 1.
fn share() -> impl Strategy<Value = Rational> {
    number().prop_map(|value| &value / &(&value + &Rational::one()))
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1), 1u64..9, 1..=u64::MAX]
}

/// How often something was paid, never among them.
fn uses() -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(0), 9 => count()]
}

/// Bounds by increasing order.
fn points() -> impl Strategy<Value = Vec<RenyiPoint>> {
    proptest::collection::vec((positive(), number()), 1..5).prop_map(|pairs| {
        let mut last = Rational::one();
        let point = |(step, epsilon)| {
            last = &last + &step;
            RenyiPoint { order: last.clone(), epsilon }
        };
        pairs.into_iter().map(point).collect()
    })
}

fn simple_loss() -> impl Strategy<Value = PrivacyLoss> {
    let three = || (positive(), positive(), number());
    prop_oneof![
        number().prop_map(|epsilon| Pure { epsilon }),
        (number(), share()).prop_map(|(epsilon, delta)| Approximate { epsilon, delta }),
        number().prop_map(|rho| ZeroConcentrated { rho }),
        (positive(), number()).prop_map(|(scale, sensitivity)| Laplace { scale, sensitivity }),
        (positive(), number()).prop_map(|(scale, sensitivity)| DiscreteLaplace { scale, sensitivity }),
        three().prop_map(|(scale, bound, sensitivity)| TruncatedLaplace { scale, bound, sensitivity }),
        three().prop_map(|(scale, bound, sensitivity)| TruncatedDiscreteLaplace {
            scale,
            bound,
            sensitivity
        }),
        (positive(), number()).prop_map(|(variance, l2_squared)| Gaussian { variance, l2_squared }),
        (positive(), number(), count()).prop_map(|(variance, root, dimensions)| {
            // Short, so that the square can be read again too.
            let root = Rational::from(root.floor()).min(Rational::from(u128::MAX));
            DiscreteGaussian { variance, l2_squared: root.square(), dimensions }
        }),
        (number(), 2..=u64::MAX).prop_map(|(epsilon, categories)| RandomizedResponse { epsilon, categories }),
        number().prop_map(|epsilon| UnaryEncoding { epsilon }),
        number().prop_map(|epsilon| Exponential { epsilon }),
        number().prop_map(|epsilon| PermuteAndFlip { epsilon }),
        points().prop_map(|points| Renyi { points }),
    ]
}

/// Any loss, also those that only hands can build: sums of nothing, of one, of equal losses, of
/// what was never paid.
fn loss() -> impl Strategy<Value = PrivacyLoss> {
    simple_loss().prop_recursive(6, 24, 4, |inner| {
        let part = (inner.clone(), uses()).prop_map(|(loss, count)| Part { loss, count });
        prop_oneof![
            (count(), inner.clone()).prop_map(|(size, loss)| Group { size, inner: Box::new(loss) }),
            (share(), inner.clone()).prop_map(|(rate, loss)| Subsampled { rate, inner: Box::new(loss) }),
            (share(), inner.clone()).prop_map(|(delta, loss)| Threshold { delta, inner: Box::new(loss) }),
            (count(), any::<u64>(), inner).prop_map(|(population, drawn, loss)| WithoutReplacement {
                sample: drawn.min(population),
                population,
                inner: Box::new(loss)
            }),
            proptest::collection::vec(part, 0..4).prop_map(|parts| Composed { parts }),
        ]
    })
}

/// Texts that people could write, for mistakes to be made in.
const TEXTS: &[&str] = &[
    "gaussian(sigma=5, sensitivity=2)*100 + 3*pure(0.1)",
    "(discrete_laplace(epsilon=1/3) + zcdp(1e-6))*2 + approx(1, 1e-9)",
    "truncated_laplace(epsilon=1, delta=1e-6, sensitivity=2)",
    "subsampled(rate=0.01, group(3, randomized_response(1, categories=4)))",
    "composed() + composed(discrete_gaussian(variance=4, sensitivity_squared=2, dimensions=7))",
    "threshold(delta=1e-6, laplace(scale=2))*0 + without_replacement(100, population=10000, pure(1))",
    "renyi(2: 0.1, 8: 1/2)*3",
];

/// A text with some characters left out, doubled or put in.
fn mistaken() -> impl Strategy<Value = String> {
    let sign = prop::sample::select("()*+-/=:,.019eE_ \n\tazµ٣−∞".chars().collect::<Vec<_>>());
    let mistake = (any::<prop::sample::Index>(), 0..3u8, sign);
    let mistakes = proptest::collection::vec(mistake, 1..6);
    (prop::sample::select(TEXTS), mistakes).prop_map(|(text, mistakes)| {
        let mut signs: Vec<char> = text.chars().collect();
        for (index, kind, sign) in mistakes {
            let at = index.index(signs.len());
            match kind {
                0 => drop(signs.remove(at)),
                1 => signs.insert(at, signs[at]),
                _ => signs.insert(at, sign),
            }
        }
        signs.into_iter().collect()
    })
}

/// Reads a text that may be anything; what is read must survive being printed.
fn read_anything(text: &str) -> Result<(), TestCaseError> {
    match text.parse::<PrivacyLoss>() {
        Ok(loss) => {
            prop_assert_eq!(loss.to_string().parse(), Ok(loss.clone()));
            let json = serde_json::to_string(&loss).unwrap();
            prop_assert_eq!(serde_json::from_str::<PrivacyLoss>(&json).unwrap(), loss);
        }
        Err(error) => {
            prop_assert!(error.code().starts_with("core.loss."));
            prop_assert!(error.to_string().lines().count() >= 3, "no picture: {}", error);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn what_is_printed_is_read_as_the_same_loss(loss in loss()) {
        prop_assert_eq!(loss.check(), Ok(()));
        prop_assert_eq!(loss.to_string().parse::<PrivacyLoss>(), Ok(loss));
    }

    #[test]
    fn spaces_change_nothing(loss in loss()) {
        let signs = ["(", ")", "*", "+", "=", ":", ",", "/"];
        let wide = signs.iter().fold(loss.to_string(), |text, sign| text.replace(sign, &format!(" {sign}\n")));
        prop_assert_eq!(wide.parse::<PrivacyLoss>(), Ok(loss));
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".*") {
        read_anything(&text)?;
    }

    #[test]
    fn any_text_of_our_signs_is_read_or_refused(text in "[a-e()*+=:,./0-9 \n-]{0,60}") {
        read_anything(&text)?;
    }

    #[test]
    fn any_mistake_is_read_or_refused(text in mistaken()) {
        read_anything(&text)?;
    }
}

#[test]
fn the_texts_are_right_before_mistakes_are_made() {
    for text in TEXTS {
        assert!(text.parse::<PrivacyLoss>().is_ok(), "{text}");
    }
}
