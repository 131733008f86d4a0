//! Whatever is asked, the answer is a value or a sentence, never a panic.

#![expect(clippy::unwrap_used, reason = "a failing test may fail anywhere")]

use demur_core::{Delta, Epsilon};
use demur_exact::Rational;
use demur_noise::{
    Bernoulli, Calibration, DiscreteGaussian, DiscreteLaplace, Entropy, Exponential, Gaussian, Laplace,
    Mechanism, Method, NoiseError, Probability, RandomizedResponse, Selection, TruncatedDiscreteLaplace,
    TruncatedLaplace, UnaryEncoding,
};
use proptest::prelude::*;

/// Any double: not a number, infinite, subnormal, huge, zero, negative.
fn double() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => (-7f64..6.0).prop_map(|e| 10f64.powf(e)),
        2 => any::<f64>(),
        2 => (-350f64..310.0, any::<bool>()).prop_map(|(e, minus)| if minus { -10f64.powf(e) } else { 10f64.powf(e) }),
        1 => prop::sample::select(vec![
            0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE, f64::MAX, f64::MIN, 5e-324,
            1.0, 0.5, -1.0,
        ]),
    ]
}

/// Any fraction: of any double, or beyond every double.
fn fraction() -> impl Strategy<Value = Rational> {
    prop_oneof![
        4 => double().prop_map(|x| Rational::try_from(x).unwrap_or_else(|_| Rational::zero())),
        1 => (-3000i64..3000, -9i64..9).prop_map(|(e, n)| &Rational::from(n) * &Rational::power_of_two(e)),
        1 => (any::<i64>(), 1u64..).prop_map(|(n, d)| &Rational::from(n) / &Rational::from(d)),
    ]
}

fn calibration() -> impl Strategy<Value = Calibration> {
    prop::sample::select(vec![
        Calibration::Analytic,
        Calibration::Classic,
        Calibration::Tail,
        Calibration::Loose,
    ])
}

/// A refusal says something, in a short sentence and under a code.
fn check<T>(result: Result<T, NoiseError>) -> Option<T> {
    result
        .inspect_err(|error| {
            assert!(!error.to_string().is_empty() && !error.code().is_empty());
        })
        .ok()
}

fn exercise(mechanism: &dyn Mechanism, x: f64, y: f64) {
    let mut entropy = Entropy::from_os().unwrap();
    let dimensions = mechanism.dimensions() as usize;
    let real = check(mechanism.release_real(x, &mut entropy));
    assert!(x.is_finite() || real.is_none(), "{x} was released");
    check(mechanism.release(x as i64, &mut entropy));
    if dimensions < 100 {
        check(mechanism.release_reals(&vec![y; dimensions], &mut entropy));
        check(mechanism.release_all(&vec![i64::MIN; dimensions], &mut entropy));
        check(mechanism.release_repeatedly(&vec![i64::MAX; dimensions], 3, &mut entropy));
    }
    if let Some(error) = check(mechanism.error(x)) {
        assert!(error.each >= 0.0 && error.joint >= error.each);
    }
    let tail = mechanism.tail(y);
    assert!(y.is_nan() || (0.0..=1.0 + 1e-9).contains(&tail), "tail {tail} of {y}");
    assert!(mechanism.standard_deviation() >= 0.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn additive_mechanisms(
        sensitivity in fraction(), cost in double(), chance in double(), dimensions in 0u64..40,
        calibration in calibration(), x in double(), y in double(),
    ) {
        let cost = Epsilon::new(cost).unwrap_or(Epsilon::ZERO);
        let chance = Delta::new(chance).unwrap_or(Delta::ZERO);
        let s = || sensitivity.clone();
        let built: Vec<Option<Box<dyn Mechanism>>> = vec![
            check(Laplace::integer(s(), cost)).map(|m| Box::new(m) as _),
            check(Laplace::real(s(), cost)).map(|m| Box::new(m) as _),
            check(Laplace::integers(dimensions, s(), cost)).map(|m| Box::new(m) as _),
            check(Laplace::reals(dimensions, s(), cost)).map(|m| Box::new(m) as _),
            check(TruncatedLaplace::integer(s(), cost, chance)).map(|m| Box::new(m) as _),
            check(TruncatedLaplace::real(s(), cost, chance)).map(|m| Box::new(m) as _),
            check(Gaussian::integer(s(), cost, chance, calibration)).map(|m| Box::new(m) as _),
            check(Gaussian::real(s(), cost, chance, calibration)).map(|m| Box::new(m) as _),
            check(Gaussian::integers(dimensions, s(), cost, chance, calibration)).map(|m| Box::new(m) as _),
            check(Gaussian::reals(dimensions, s(), cost, chance, calibration)).map(|m| Box::new(m) as _),
        ];
        built.iter().flatten().for_each(|mechanism| exercise(mechanism.as_ref(), x, y));
        check(calibration.sigma(cost, chance));
        check(Gaussian::for_delta_alone(s(), chance));
        Gaussian::lower_bound(x, cost, chance);
    }

    #[test]
    fn choices(
        sensitivity in fraction(), sigma in fraction(), cost in double(), flip in any::<bool>(),
        scores in prop::collection::vec(double(), 0..6), beta in double(), candidates in any::<u64>(),
    ) {
        let method = if flip { Method::PermuteAndFlip } else { Method::Exponential };
        let cost = Epsilon::new(cost).unwrap_or(Epsilon::ZERO);
        let by_cost = check(Exponential::new(sensitivity.clone(), cost));
        let by_sigma = check(Exponential::with_sigma(sensitivity, sigma));
        for mechanism in [by_cost, by_sigma].into_iter().flatten() {
            let mechanism = mechanism.by(method);
            let chosen = check(mechanism.choose(&scores, &mut Entropy::from_os().unwrap()));
            prop_assert!(chosen.is_none_or(|chosen| *chosen.value() < scores.len()));
            mechanism.error(beta, candidates, candidates / 2);
        }
    }

    #[test]
    fn answers(
        categories in any::<u64>(), few in 0u64..100, cost in double(), truth in any::<u64>(),
        seen in any::<u64>(), total in any::<u64>(), beta in double(),
    ) {
        let cost = Epsilon::new(cost).unwrap_or(Epsilon::ZERO);
        let mut entropy = Entropy::from_os().unwrap();
        for categories in [categories, few] {
            if let Some(response) = check(RandomizedResponse::new(categories, cost)) {
                check(response.respond(truth, &mut entropy));
                check(response.respond(categories - 1, &mut entropy));
                check(response.estimate(seen, total, beta));
            }
            // A report has a bit for every category.
            if categories < 1000 && let Some(encoding) = check(UnaryEncoding::new(categories, cost)) {
                check(encoding.encode(truth, &mut entropy));
                check(encoding.encode(categories - 1, &mut entropy));
                check(encoding.estimate(seen, total, beta));
            }
        }
        check(RandomizedResponse::two_coins().estimate(seen % 1000, total % 1000, beta));
    }

    #[test]
    fn samplers(
        parameter in fraction(), other in fraction(), bound in any::<u64>(), k in any::<i128>(),
        scores in prop::collection::vec(any::<i64>(), 0..6), steps in double(),
    ) {
        let mut entropy = Entropy::from_os().unwrap();
        if let Some(noise) = check(DiscreteLaplace::new(parameter.clone())) {
            noise.sample(&mut entropy);
            prop_assert!(noise.pmf(k) >= 0.0 && (steps.is_nan() || noise.tail(steps) >= 0.0));
        }
        if let Some(noise) = check(DiscreteGaussian::new(parameter.clone())) {
            noise.sample(&mut entropy);
            prop_assert!(noise.pmf(k) >= 0.0 && (steps.is_nan() || noise.tail(steps) >= 0.0));
        }
        if let Some(noise) = check(TruncatedDiscreteLaplace::new(parameter.clone(), bound)) {
            prop_assert!(noise.sample(&mut entropy).unsigned_abs() <= u128::from(bound));
            prop_assert!(noise.pmf(k) >= 0.0 && (steps.is_nan() || noise.tail(steps) >= 0.0));
        }
        let coins = [
            check(Probability::ratio(parameter.clone())),
            check(Probability::exp_neg(parameter.clone())),
            check(Probability::logistic(parameter.clone(), other)),
        ];
        for coin in coins.into_iter().flatten() {
            prop_assert!((0.0..=1.0).contains(&coin.to_f64()));
            Bernoulli::new(coin).sample(&mut entropy);
        }
        if let Some(selection) = check(Selection::new(&scores, parameter)) {
            prop_assert!(selection.exponential(&mut entropy) < scores.len());
            prop_assert!(selection.permute_and_flip(&mut entropy) < scores.len());
        }
    }
}
