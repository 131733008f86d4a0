//! What filters do, case by case.

mod properties;

use std::sync::OnceLock;

use super::*;
use demur_core::Part;

fn q(text: &str) -> Rational {
    text.parse().unwrap()
}

fn loss(text: &str) -> PrivacyLoss {
    text.parse().unwrap()
}

fn filters() -> Vec<Filter> {
    static FILTERS: OnceLock<Vec<Filter>> = OnceLock::new();
    let make = || {
        vec![
            Filter::pure(q("1")).unwrap(),
            Filter::zcdp(q("1"), q("1e-6")).unwrap(),
            Filter::gaussian(q("1"), q("1e-6")).unwrap(),
            Filter::renyi(q("1"), q("1e-6")).unwrap(),
        ]
    };
    FILTERS.get_or_init(make).clone()
}

/// Admits all losses in turn.
fn spend(filter: &Filter, losses: &[PrivacyLoss]) -> Result<State, Refusal> {
    losses.iter().try_fold(filter.start(), |state, loss| filter.admit(&state, loss))
}

#[test]
fn json_of_every_filter_and_state_is_pinned() {
    let filters = [
        (
            Filter::pure(q("1.5")).unwrap(),
            r#"{"rule":{"filter":"pure","epsilon":"1.5"},"capacity":["25975962206208000000000000000000"]}"#,
        ),
        (Filter::zcdp(q("1"), q("1e-6")).unwrap(), ZCDP),
        (Filter::gaussian(q("1"), q("1e-6")).unwrap(), GAUSSIAN),
        (Filter::renyi(q("1"), q("1e-6")).unwrap(), RENYI),
    ];
    for (filter, json) in filters {
        assert_eq!(serde_json::to_string(&filter).unwrap(), json);
        assert!(json.contains(&format!(r#""filter":"{}""#, filter.rule().name())));
        assert_eq!(serde_json::from_str::<Filter>(json).unwrap(), filter);
    }
    let filter: Filter = serde_json::from_str(ZCDP).unwrap();
    let state = spend(&filter, &[loss("zcdp(0.001)"), loss("approx(epsilon=0.001, delta=1e-9)")]).unwrap();
    let json = r#"{"spent":["17325966790819189444553805516"],"delta":"69269232549888000000000000000"}"#;
    assert_eq!(serde_json::to_string(&state).unwrap(), json);
    assert_eq!(serde_json::from_str::<State>(json).unwrap(), state);
}

const ZCDP: &str = r#"{"rule":{"filter":"zcdp","epsilon":"1","delta":"0.000001","delta_for_losses":"0.00000025"},"capacity":["411239696093255441999462400000"]}"#;
const GAUSSIAN: &str = r#"{"rule":{"filter":"gaussian","epsilon":"1","delta":"0.000001","delta_for_losses":"0.00000025"},"capacity":["943847647476203933348659200000"]}"#;
const RENYI: &str = r#"{"rule":{"filter":"renyi","epsilon":"1","delta":"0.000001","delta_for_losses":"0.00000025","orders":[18,23,29,42,70]},"capacity":["5245549390956063142969344000000","8186995495320142605189120000000","10289710861195596911345664000000","12676708271686031750725632000000","14689265474820783942402048000000"]}"#;

#[test]
fn a_stored_capacity_that_is_too_large_is_refused_and_a_smaller_one_is_not() {
    for filter in filters() {
        let mut stored: serde_json::Value = serde_json::to_value(&filter).unwrap();
        let capacity: u128 = stored["capacity"][0].as_str().unwrap().parse().unwrap();
        stored["capacity"][0] = (capacity + capacity / 1_000_000).to_string().into();
        let error = serde_json::from_value::<Filter>(stored.clone()).unwrap_err().to_string();
        assert!(error.contains("more than its budget allows"), "{error}");
        stored["capacity"][0] = (capacity - capacity / 10).to_string().into();
        assert!(serde_json::from_value::<Filter>(stored.clone()).is_ok());
        stored["capacity"] = serde_json::json!([]);
        assert!(serde_json::from_value::<Filter>(stored).is_err());
    }
}

#[test]
fn json_that_says_more_or_less_is_refused() {
    for json in [
        r#"{"rule":{"filter":"pure","epsilon":"0"},"capacity":["0"]}"#,
        r#"{"rule":{"filter":"pure","epsilon":"-1"},"capacity":["0"]}"#,
        r#"{"rule":{"filter":"pure","epsilon":"1","delta":"0.1"},"capacity":["1"]}"#,
        r#"{"rule":{"filter":"pure","epsilon":"1"},"capacity":["1"],"note":""}"#,
        r#"{"rule":{"filter":"zcdp","epsilon":"1","delta":"1e-6"},"capacity":["1"]}"#,
        r#"{"rule":{"filter":"zcdp","epsilon":"1","delta":"1e-6","delta_for_losses":"1e-6"},"capacity":["1"]}"#,
        r#"{"rule":{"filter":"renyi","epsilon":"1","delta":"1e-6","delta_for_losses":"0","orders":[9,9]},"capacity":["1","1"]}"#,
        r#"{"rule":{"filter":"renyi","epsilon":"1","delta":"1e-6","delta_for_losses":"0","orders":[]},"capacity":[]}"#,
    ] {
        assert!(serde_json::from_str::<Filter>(json).is_err(), "{json}");
    }
}

#[test]
fn a_budget_can_be_spent_to_the_last_bit_in_decimal_parts() {
    let filter = Filter::pure(q("1")).unwrap();
    for (part, count) in [("0.1", 10), ("1/3", 3), ("0.001", 1000), ("1/7", 7), ("0.25", 4)] {
        let losses = vec![PrivacyLoss::Pure { epsilon: q(part) }; count];
        let full = spend(&filter, &losses).unwrap();
        assert!(filter.remaining(&full).values[0].1.is_zero(), "{part}");
        assert_eq!(
            filter.admit(&full, &loss("pure(1e-100)")).unwrap_err().code(),
            "accounting.filter.exhausted"
        );
        assert_eq!(filter.admit(&full, &loss("pure(0)")).unwrap(), full);
    }
}

#[test]
fn prices_are_the_ones_in_the_table() {
    let price = |filter: &Filter, text: &str| filter.price(&loss(text)).unwrap();
    let one = |filter: &Filter, text: &str| price(filter, text).values[0].1.to_f64();
    let [pure, zcdp, gaussian, renyi] = filters().try_into().unwrap();
    let near = |a: f64, b: f64| assert!(b * (1.0 - 1e-15) <= a && a <= b * (1.0 + 3e-11), "{a} for {b}");
    near(one(&pure, "laplace(scale=20, sensitivity=3)"), 0.15);
    near(one(&pure, "subsampled(rate=0.01, pure(1))"), (0.01 * 1f64.exp_m1()).ln_1p());
    near(one(&pure, "group(size=3, pure(0.1))*2"), 0.6);
    near(one(&zcdp, "pure(0.1)"), 0.1 * 0.05f64.tanh());
    near(one(&zcdp, "laplace(scale=4, sensitivity=2)"), 0.5 + (-0.5f64).exp_m1());
    near(one(&zcdp, "discrete_laplace(scale=2, sensitivity=1)"), 0.5 * 0.25f64.tanh());
    near(one(&zcdp, "group(size=2, laplace(scale=4, sensitivity=1))"), 0.5 + (-0.5f64).exp_m1());
    near(one(&zcdp, "exponential(0.1)"), 0.00125);
    near(one(&zcdp, "group(size=3, exponential(0.1))"), 0.01125);
    near(one(&zcdp, "gaussian(variance=25, sensitivity=1)*3"), 0.06);
    near(one(&zcdp, "discrete_gaussian(variance=25, sensitivity=2, dimensions=4)"), 0.08);
    near(one(&zcdp, "subsampled(rate=0.01, gaussian(variance=25, sensitivity=1))"), 0.02);
    near(one(&gaussian, "gaussian(variance=25, sensitivity=1)"), 0.04);
    near(one(&gaussian, "pure(1)"), 1.5179111907419587); // from mpmath
    near(one(&gaussian, "laplace(scale=1, sensitivity=1)*2"), 2.0 * 1.5179111907419587);
    near(one(&gaussian, "exponential(2)"), 1.5179111907419587); // of bounded range 2: as pure 1
    near(one(&gaussian, "discrete_gaussian(variance=25, sensitivity=1, dimensions=4)"), 1.0 / 22.75);
    assert_eq!(
        price(&gaussian, "discrete_gaussian(variance=25, sensitivity=1, dimensions=4)").delta.to_f64(),
        8e-18
    );
    let threshold = "threshold(delta=1e-9, gaussian(variance=25, sensitivity=1))*2";
    near(one(&zcdp, threshold), 0.04);
    assert_eq!(price(&zcdp, threshold).delta.to_f64(), 2e-9);
    let Measure::Renyi(order) = price(&renyi, "zcdp(0.01)").values[2].0 else { panic!() };
    near(price(&renyi, "zcdp(0.01)").values[2].1.to_f64(), 0.01 * f64::from(order));
}

/// Every pair whose loss takes the two values t and t − ε, at every c: H_c is at most that of Gaussian noise with the price of the exponential mechanism,
/// and a price 1 % lower would be caught.
#[test]
fn choices_are_as_private_as_the_gaussian_noise_they_are_priced_as() {
    let gaussian = &filters()[2];
    let tail = |x: f64| libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2) / 2.0;
    for epsilon in [0.05, 0.5, 2.0, 8.0] {
        let price = gaussian.price(&loss(&format!("exponential({epsilon})"))).unwrap().values[0].1.to_f64();
        let profile = |mu: f64, c: f64| tail(c.ln() / mu - mu / 2.0) - c * tail(c.ln() / mu + mu / 2.0);
        let (mut worst, mut caught) = (f64::NEG_INFINITY, false);
        for step in 1..200 {
            let t = epsilon * f64::from(step) / 200.0;
            let x = (epsilon.exp() - t.exp()) / epsilon.exp_m1();
            for place in -60..60 {
                let c = (t + f64::from(place) * epsilon / 40.0).exp();
                let here = (x - c * x * (-t).exp()).max(0.0)
                    + ((1.0 - x) - c * (1.0 - x) * (epsilon - t).exp()).max(0.0);
                worst = worst.max(here - profile(price.sqrt(), c));
                caught |= here > profile((0.99 * price).sqrt(), c) + 1e-12;
            }
        }
        assert!(worst <= 1e-12 && caught, "ε = {epsilon}: {worst}, {caught}");
    }
}

#[test]
fn paying_often_costs_often() {
    for filter in filters() {
        for text in ["pure(0.001)", "laplace(scale=1000, sensitivity=1)", "exponential(0.001)"] {
            let (once, often) =
                (filter.cost(&loss(text)).unwrap(), filter.cost(&loss(text).repeat(1000)).unwrap());
            for (once, often) in once.amounts.iter().zip(&often.amounts) {
                let ratio = often.0 as f64 / once.0 as f64;
                assert!((ratio - 1000.0).abs() < 1e-6, "{text}: {ratio}");
            }
        }
    }
}

#[test]
fn a_group_is_in_a_sample_more_often_and_moves_more() {
    let [pure, zcdp, _, renyi] = filters().try_into().unwrap();
    let near = |a: f64, b: f64| assert!(b * (1.0 - 1e-15) <= a && a <= b * (1.0 + 1e-11), "{a} for {b}");
    let price = |filter: &Filter, text: &str| filter.price(&loss(text)).unwrap();
    // Twice what one person pays is less than what the pair pays as one person of twice the ε.
    let pair = price(&pure, "group(size=2, subsampled(rate=0.5, pure(1)))");
    near(pair.values[0].1.to_f64(), 2.0 * (0.5 * 1f64.exp_m1()).ln_1p());
    // δ: 1 − 0.99² of the samples, and δ of two people.
    let pair = price(&zcdp, "group(size=2, subsampled(rate=0.01, approx(epsilon=0.5, delta=1e-9)))");
    near(pair.delta.to_f64(), 0.0199 * 1e-9 * (1.0 + 0.5f64.exp()));
    let pair = price(&renyi, "group(size=2, subsampled(rate=0.01, gaussian(sigma=10)))");
    for (measure, value) in pair.values {
        let Measure::Renyi(order) = measure else { panic!() };
        near(value.to_f64(), bound::renyi_of_sampled_gaussian(0.0199, 0.04, order));
    }
    // A group inside a sample is priced as if there were no sample.
    let inside = price(&pure, "subsampled(rate=0.5, group(size=2, pure(1)))");
    near(inside.values[0].1.to_f64(), 2.0);
}

#[test]
fn what_moves_nothing_costs_nothing_under_every_filter() {
    for filter in filters() {
        for free in [
            "pure(0)",
            "gaussian(variance=1, sensitivity=0)",
            "subsampled(rate=0, gaussian(sigma=1))",
            "zcdp(0)",
            "composed()",
            "truncated_laplace(scale=1, bound=1, sensitivity=0)",
            "approx(epsilon=0, delta=0)",
        ] {
            assert_eq!(filter.admit(&filter.start(), &loss(free)).unwrap(), filter.start(), "{free}");
        }
    }
}

#[test]
fn nothing_is_free_because_it_is_small() {
    for filter in filters() {
        for small in [
            "pure(1e-200)",
            "laplace(scale=1e200, sensitivity=1)",
            "exponential(1e-300)",
            "subsampled(rate=1e-300, pure(1e-100))",
            "pure(1e-400)",
        ] {
            let cost = filter.cost(&loss(small)).unwrap();
            assert!(cost.amounts.iter().all(|amount| *amount >= Units(1)), "{small}");
        }
    }
    let filter = Filter::zcdp(q("1"), q("1e-6")).unwrap();
    for leak in ["approx(epsilon=0, delta=1e-400)", "truncated_laplace(scale=1, bound=1e6, sensitivity=1)"] {
        assert!(filter.cost(&loss(leak)).unwrap().delta >= Units(1), "{leak}");
    }
}

#[test]
fn budgets_at_the_ends_of_their_range_have_a_filter() {
    for (epsilon, delta) in [
        ("1e-9", "1e-12"),
        ("1e-3", "1e-300"),
        ("1000", "1e-6"),
        ("1000000", "1e-9"),
        ("1", "0.9"),
        ("20", "1e-100"),
    ] {
        let (epsilon, delta) = (q(epsilon), q(delta));
        for (index, make) in [Filter::zcdp, Filter::gaussian, Filter::renyi].into_iter().enumerate() {
            if let Err(refusal) = make(epsilon.clone(), delta.clone()) {
                // No order up to the largest is high enough.
                assert_eq!(refusal.code(), "accounting.filter.budget");
                assert!(index == 2 && epsilon < q("0.1"), "{epsilon} {delta}: {refusal}");
            }
        }
    }
}

#[test]
fn impossible_losses_are_refused_before_they_are_priced() {
    for filter in filters() {
        let refund = PrivacyLoss::Pure { epsilon: q("-1") };
        let nested = PrivacyLoss::Composed { parts: vec![Part { loss: refund.clone(), count: 1 }] };
        for bad in [refund, nested] {
            assert_eq!(filter.admit(&filter.start(), &bad).unwrap_err().code(), "core.loss.parameter");
        }
    }
}

#[test]
fn what_a_filter_cannot_price_is_refused_by_name() {
    let [pure, zcdp, gaussian, renyi] = filters().try_into().unwrap();
    let code = |filter: &Filter, text: &str| filter.price(&loss(text)).map_err(|refusal| refusal.code());
    for text in [
        "gaussian(sigma=10)",
        "zcdp(0.1)",
        "approx(epsilon=0.1, delta=1e-9)",
        "discrete_gaussian(variance=25, sensitivity=1, dimensions=4)",
        "subsampled(rate=0.01, gaussian(sigma=10))",
        "truncated_laplace(scale=1, bound=10, sensitivity=1)",
        "pure(0.1) + gaussian(sigma=10)",
    ] {
        assert_eq!(code(&pure, text), Err("accounting.filter.unpriced"), "{text}");
        assert!(code(&zcdp, text).is_ok() && code(&renyi, text).is_ok(), "{text}");
    }
    assert_eq!(code(&gaussian, "zcdp(0.1)"), Err("accounting.filter.unpriced"));
    let several = "group(size=2, threshold(delta=1e-9, gaussian(sigma=10)))";
    assert_eq!(code(&zcdp, several), Err("accounting.filter.unpriced"));
    let narrow = "discrete_gaussian(variance=2, sensitivity=1, dimensions=4)";
    let refusal = gaussian.price(&loss(narrow)).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        format!(
            "`{narrow}` has no price under this filter: under the filter `gaussian` discrete Gaussian noise needs a \
             variance above 9/4; add more noise, or use the filter `zcdp`"
        )
    );
}

#[test]
fn refusals_say_what_was_asked_what_is_left_and_what_would_fit() {
    let [pure, zcdp, gaussian, renyi] = filters().try_into().unwrap();
    let text =
        |filter: &Filter, text: &str| filter.admit(&filter.start(), &loss(text)).unwrap_err().to_string();
    assert_eq!(
        text(&pure, "pure(0.25)*5"),
        "this costs ε = 1.25 but only ε = 1 is left; a loss of at most ε = 1 would fit"
    );
    let rest = "a loss of at most ε = 0.2179, or Gaussian noise of at least σ = 4.589 times the sensitivity, would fit";
    assert_eq!(
        text(&zcdp, "gaussian(sigma=2)"),
        format!("this costs ρ = 0.125 but only ρ = 0.02374 is left; {rest}")
    );
    assert_eq!(
        text(&zcdp, "pure(1e300)*1000000"),
        format!("this costs ρ = ∞ but only ρ = 0.02374 is left; {rest}")
    );
    assert_eq!(
        text(&gaussian, "gaussian(sigma=2)"),
        "this costs μ² = 0.25 but only μ² = 0.0545 is left; a loss of at most ε = 0.1862, or Gaussian noise of at \
         least σ = 4.284 times the sensitivity, would fit"
    );
    assert_eq!(
        text(&renyi, "gaussian(sigma=2)"),
        "this costs D18 = 2.25, D23 = 2.875, D29 = 3.625, D42 = 5.25, D70 = 8.75 but only D18 = 0.3029, D23 = 0.4727, \
         D29 = 0.5941, D42 = 0.732, D70 = 0.8482 is left; a loss of at most ε = 0.2027, or Gaussian noise of at least \
         σ = 4.933 times the sensitivity, would fit"
    );
    assert_eq!(
        text(&zcdp, "approx(epsilon=0.01, delta=1e-6)"),
        "this costs δ = 1e-6 but only δ = 2.5e-7 is left of the part of δ that is kept for such losses; a loss with at \
         most that δ, or without one, would fit"
    );
    let refusal = zcdp.admit(&zcdp.start(), &loss("zcdp(0.5)")).unwrap_err();
    assert_eq!(refusal.asked().unwrap().values, [(Measure::Rho, q("0.5"))]);
    assert_eq!(refusal.left(), Some(&zcdp.capacity()));
}

#[test]
fn what_a_refusal_says_would_fit_does_fit() {
    for filter in filters() {
        let refusal = filter.admit(&filter.start(), &loss("pure(100)")).unwrap_err().to_string();
        let number = |before: &str| {
            let (_, rest) = refusal.split_once(before)?;
            Some(rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect::<String>())
        };
        let epsilon = number("at most ε = ").unwrap();
        assert!(filter.admit(&filter.start(), &loss(&format!("pure({epsilon})"))).is_ok(), "{refusal}");
        if let Some(sigma) = number("at least σ = ") {
            assert!(
                filter.admit(&filter.start(), &loss(&format!("gaussian(sigma={sigma})"))).is_ok(),
                "{refusal}"
            );
        }
    }
}

#[test]
fn sums_of_delta_have_a_part_of_their_own() {
    for rule in ["zcdp", "gaussian", "renyi"] {
        let filter = filters()
            .into_iter()
            .find(|filter| serde_json::to_value(filter.rule()).unwrap()["filter"] == rule);
        let filter = filter.unwrap();
        let leak = loss("approx(epsilon=0, delta=2.5e-8)");
        let full = spend(&filter, &vec![leak.clone(); 10]).unwrap();
        assert_eq!(filter.remaining(&full).delta.to_f64(), 0.0, "{rule}");
        assert_eq!(filter.remaining(&full).values, filter.capacity().values);
        assert_eq!(filter.admit(&full, &leak).unwrap_err().code(), "accounting.filter.delta-exhausted");
        assert!(filter.admit(&full, &loss("pure(0.01)")).is_ok());
    }
}

#[test]
fn overflow_is_refused_and_never_wraps() {
    for filter in filters() {
        let state = filter.admit(&filter.start(), &loss("pure(0.01)")).unwrap();
        for text in [
            "pure(1e300)",
            "pure(1)*18446744073709551615",
            "(pure(1e18)*18446744073709551615)*18446744073709551615",
        ] {
            let refusal = filter.admit(&state, &loss(text)).unwrap_err();
            assert_eq!(refusal.code(), "accounting.filter.exhausted", "{text}");
        }
    }
    let zcdp = Filter::zcdp(q("1"), q("1e-6")).unwrap();
    let refusal =
        zcdp.admit(&zcdp.start(), &loss("group(size=1000000, approx(epsilon=1, delta=1e-300))")).unwrap_err();
    assert_eq!(refusal.code(), "accounting.filter.delta-exhausted");
}

#[test]
fn a_state_that_is_not_of_this_filter_is_refused() {
    let filters = filters();
    let code = |filter: &Filter, state: &State| filter.admit(state, &loss("pure(0)")).unwrap_err().code();
    assert_eq!(code(&filters[0], &filters[3].start()), "accounting.filter.state");
    let beyond: State =
        serde_json::from_str(&format!(r#"{{"spent":["{}"],"delta":"0"}}"#, u128::MAX)).unwrap();
    assert_eq!(code(&filters[1], &beyond), "accounting.filter.state");
    let beyond: State = serde_json::from_str(r#"{"spent":["0"],"delta":"1"}"#).unwrap();
    assert_eq!(code(&filters[0], &beyond), "accounting.filter.state");
}

#[test]
fn an_order_that_is_used_up_stays_used_up_and_one_is_enough() {
    let orders = vec![2, 64];
    let rule = Rule::Renyi { epsilon: q("15"), delta: q("1e-6"), delta_for_losses: q("0"), orders };
    let filter = Filter::new(rule).unwrap();
    // A large pure loss costs both orders about ε, which order 64 has and order 2 does not.
    let state = filter.admit(&filter.start(), &loss("pure(9)")).unwrap();
    assert!(filter.remaining(&state).values[0].1.is_zero());
    assert!(!filter.remaining(&state).values[1].1.is_zero());
    assert!(filter.admit(&state, &loss("pure(0.1)")).is_ok());
    assert_eq!(filter.admit(&state, &loss("pure(9)")).unwrap_err().code(), "accounting.filter.exhausted");
}

#[test]
fn a_raised_budget_takes_over_what_was_spent() {
    let small = Filter::zcdp(q("1"), q("1e-9")).unwrap();
    let large = Filter::zcdp(q("2"), q("1e-6")).unwrap();
    let state =
        spend(&small, &[loss("gaussian(sigma=20)"), loss("approx(epsilon=0.01, delta=1e-10)")]).unwrap();
    let raised = large.take_over(&small, &state).unwrap();
    assert_eq!(large.spent(&raised).values, small.spent(&state).values);
    let (before, after) = (small.spent(&state).delta, large.spent(&raised).delta);
    assert!(before <= after && after <= &before * &q("1.00000000000000000001"));
    assert_eq!(small.take_over(&large, &raised).unwrap_err().code(), "accounting.filter.state");
    let pure = Filter::pure(q("5")).unwrap();
    assert_eq!(pure.take_over(&small, &state).unwrap_err().code(), "accounting.filter.state");
}

#[test]
fn a_raised_filter_keeps_its_kind_and_its_shares() {
    for filter in filters() {
        let delta = (filter.rule().name() != "pure").then(|| q("4e-6"));
        let raised = filter.with_budget(q("2"), delta.clone()).unwrap();
        assert_eq!(raised.guarantee(), (q("2"), delta.unwrap_or_else(|| q("0"))));
        assert_eq!(raised.rule().delta_for_losses(), &raised.rule().delta() * &q("0.25"));
        assert_eq!(raised.0.measures, filter.0.measures);
        let state = filter.admit(&filter.start(), &loss("pure(0.01)")).unwrap();
        assert!(raised.take_over(&filter, &state).is_ok());
        let same_delta = filter.with_budget(q("2"), None).unwrap();
        assert_eq!(same_delta.guarantee().1, filter.guarantee().1);
    }
    let refusal = filters()[0].with_budget(q("2"), Some(q("1e-6"))).unwrap_err();
    assert_eq!(refusal.code(), "accounting.filter.budget");
}

#[test]
fn budgets_nobody_can_mean_are_refused() {
    let code = |filter: Result<Filter, AccountingError>| filter.unwrap_err().code();
    assert_eq!(code(Filter::pure(q("0"))), "accounting.filter.budget");
    assert_eq!(code(Filter::pure(q("1e7"))), "accounting.filter.budget");
    assert_eq!(code(Filter::zcdp(q("1"), q("0"))), "accounting.filter.budget");
    assert_eq!(code(Filter::zcdp(q("1"), q("1"))), "accounting.filter.budget");
    assert_eq!(code(Filter::zcdp(q("1"), q("1e-308"))), "accounting.filter.budget");
    let orders = vec![2];
    let rule = Rule::Renyi { epsilon: q("1"), delta: q("1e-6"), delta_for_losses: q("0"), orders };
    assert_eq!(code(Filter::new(rule)), "accounting.filter.budget");
}

/// Not a test of anything but time: `cargo test --release -p demur-accounting filter_speed -- --ignored --nocapture`.
#[test]
#[ignore = "prints times"]
fn filter_speed() {
    let texts = [
        "pure(0.0001)",
        "laplace(scale=20000, sensitivity=0.37)",
        "exponential(0.0001)",
        "approx(epsilon=0.0001, delta=1e-15)",
        "gaussian(variance=1234567.25, sensitivity=0.1)",
        "discrete_gaussian(variance=1099511627776, sensitivity=1025, dimensions=100)",
        "truncated_discrete_laplace(scale=1000, bound=40000, sensitivity=1)",
        "subsampled(rate=0.01, pure(0.0001))",
        "subsampled(rate=0.01, gaussian(sigma=200))",
        "group(size=3, pure(0.0001))",
        "gaussian(sigma=1000)*2 + pure(0.00001)*3 + exponential(0.0001) + zcdp(0.0000001)",
    ];
    for filter in filters() {
        for text in texts {
            let loss = loss(text);
            let (state, start) = (filter.start(), std::time::Instant::now());
            let admitted = (0..20_000).filter(|_| filter.admit(&state, &loss).is_ok()).count();
            let each = start.elapsed().as_nanos() as f64 / 20_000.0;
            println!(
                "{:>6} ns  {:?}  {text}  {}",
                each,
                filter.0.measures[0],
                if admitted == 0 { "(refused)" } else { "" }
            );
        }
    }
    for make in [Filter::zcdp, Filter::gaussian, Filter::renyi] {
        let start = std::time::Instant::now();
        let filter = make(q("1"), q("1e-6")).unwrap();
        println!("{:?} to make a filter of {:?}", start.elapsed(), filter.0.measures[0]);
        let (json, start) = (serde_json::to_string(&filter).unwrap(), std::time::Instant::now());
        serde_json::from_str::<Filter>(&json).unwrap();
        println!("{:?} to read it", start.elapsed());
    }
}
