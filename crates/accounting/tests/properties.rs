//! What must hold between answers, whatever the losses are.
//!
//! Losses are drawn so that exact methods answer in milliseconds: on lattices, beside Gaussian noise, or many at
//! once. What is left to the grid has a test of its own.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failing test may fail anywhere")]

use demur_accounting::{Account, Bounds, Method};
use demur_core::{OutputPair, PrivacyLoss};
use demur_exact::{Enclosure, Rational, exp_neg};
use proptest::prelude::*;

fn q(text: &str) -> Rational {
    text.parse().unwrap()
}

fn exact(value: f64) -> Rational {
    Rational::try_from(value).unwrap()
}

fn loss(text: &str) -> PrivacyLoss {
    text.parse().unwrap()
}

fn account(losses: &PrivacyLoss) -> Account {
    Account::of(losses).unwrap()
}

fn sum(parts: &[PrivacyLoss]) -> PrivacyLoss {
    parts.iter().cloned().fold(loss("composed()"), PrivacyLoss::compose)
}

fn delta(losses: &PrivacyLoss, epsilon: &Rational) -> Bounds {
    account(losses).delta(epsilon).unwrap().bounds
}

/// ε(δ), or infinity where δ is less than what is lost for sure.
fn epsilon(losses: &PrivacyLoss, delta: &Rational) -> Bounds {
    match account(losses).epsilon(delta) {
        Ok(answer) => answer.bounds,
        Err(error) if error.code() == "accounting.infinite" => Bounds::new(f64::INFINITY, f64::INFINITY),
        Err(error) => panic!("{losses}: {error}"),
    }
}

/// Losses that are multiples of 1/8.
fn on_a_lattice() -> impl Strategy<Value = PrivacyLoss> {
    let one = prop_oneof![
        (1u32..16).prop_map(|k| format!("pure({k}/8)")),
        (1u32..16, 2u32..9).prop_map(|(k, n)| format!("randomized_response(epsilon={k}/8, categories={n})")),
        (1u32..5, 1u32..4).prop_map(|(s, d)| format!("discrete_laplace(scale={}, sensitivity={d})", 2 * s)),
        (1u32..16).prop_map(|k| format!("unary_encoding({k}/8)")),
        (1u32..9).prop_map(|k| format!("approx(epsilon={k}/8, delta=1e-14)")),
        (60u32..80).prop_map(|b| format!("truncated_discrete_laplace(scale=2, bound={b}, sensitivity=1)")),
    ];
    (one, 1u64..30).prop_map(|(text, count)| loss(&text).repeat(count))
}

/// Gaussian noise strong enough for a quick decay of the moments.
fn gaussian() -> impl Strategy<Value = PrivacyLoss> {
    (4u32..12, 10u64..30).prop_map(|(sigma, count)| loss(&format!("gaussian(sigma={sigma}/4)")).repeat(count))
}

/// Losses with densities, which do not answer quickly when alone.
fn dense() -> impl Strategy<Value = PrivacyLoss> {
    let one = prop_oneof![
        (1u32..40).prop_map(|k| format!("laplace(epsilon={k}/20)")),
        (1u32..20).prop_map(|k| format!("subsampled(0.1, laplace(epsilon={k}/20))")),
        (1u32..20).prop_map(|k| format!("subsampled({k}/100, gaussian(sigma=1))")),
        (60u32..80).prop_map(|k| format!("truncated_laplace(scale=2, bound={k}, sensitivity=1)")),
    ];
    (one, 1u64..30).prop_map(|(text, count)| loss(&text).repeat(count))
}

/// Many small losses.
fn many() -> impl Strategy<Value = PrivacyLoss> {
    let one = prop_oneof![
        (2u32..10).prop_map(|k| format!("laplace(epsilon={k}/20)")),
        (2u32..20).prop_map(|k| format!("subsampled(1/100, gaussian(sigma={k}/4))")),
    ];
    (one, 400u64..2000).prop_map(|(text, count)| loss(&text).repeat(count))
}

/// Parts of a composition that is answered quickly and exactly.
fn losses() -> impl Strategy<Value = Vec<PrivacyLoss>> {
    use prop::collection::vec;
    prop_oneof![
        vec(on_a_lattice(), 1..5),
        vec(gaussian(), 1..3),
        (gaussian(), vec(prop_oneof![on_a_lattice(), dense()], 1..5)).prop_map(|(first, mut rest)| {
            rest.push(first);
            rest
        }),
        vec(many(), 1..3),
    ]
}

/// Where to ask for δ, as a share of the ε at δ = 10⁻⁹.
fn share() -> impl Strategy<Value = Rational> {
    (8u32..16).prop_map(|k| Rational::new(i128::from(k), 16))
}

/// An ε where δ is no smaller than anybody asks for.
fn typical(losses: &PrivacyLoss, share: &Rational) -> Rational {
    let most = epsilon(losses, &q("1e-9")).upper;
    if most.is_finite() { &exact(most) * share } else { share.clone() }
}

/// A δ to ask for.
fn small() -> impl Strategy<Value = Rational> {
    (5u32..=12, 1u32..10).prop_map(|(places, digit)| q(&format!("{digit}e-{places}")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn composition_is_order_free((parts, shuffled) in losses().prop_flat_map(|parts| {
        (Just(parts.clone()), Just(parts).prop_shuffle())
    }), cut in 0usize..5, share in share(), d in small()) {
        let (front, back) = shuffled.split_at(cut.min(shuffled.len()));
        let (one, other) = (sum(&parts), sum(back).compose(sum(front)));
        let e = typical(&one, &share);
        prop_assert_eq!(delta(&one, &e), delta(&other, &e));
        prop_assert_eq!(epsilon(&one, &d), epsilon(&other, &d));
        // Nested sums are sums.
        let nested = PrivacyLoss::Composed {
            parts: shuffled.into_iter().map(|loss| demur_core::Part { loss, count: 1 }).collect(),
        };
        prop_assert_eq!(delta(&one, &e), delta(&nested, &e));
    }

    #[test]
    fn composition_is_monotone(parts in losses(), extra in prop_oneof![on_a_lattice(), gaussian()], share in share(), d in small()) {
        // One loss more on the lattice, or beside Gaussian noise.
        let without = sum(&parts);
        let with = without.clone().compose(extra);
        let e = typical(&without, &share);
        prop_assert!(delta(&with, &e).upper >= delta(&without, &e).lower);
        prop_assert!(epsilon(&with, &d).upper >= epsilon(&without, &d).lower);
    }

    #[test]
    fn more_noise_never_costs_more(k in 1u32..40, more in 1u32..40, n in 400u64..2000, share in share(), d in small()) {
        let forms: [&dyn Fn(u32) -> PrivacyLoss; 6] = [
            &|s| loss(&format!("gaussian(sigma={s}/4)")).repeat(n % 50 + 1),
            &|s| loss(&format!("laplace(scale={s}/8)")).repeat(n),
            &|s| loss(&format!("laplace(scale={s}/2)")),
            &|s| loss(&format!("discrete_laplace(scale={s}, sensitivity=2)")).repeat(n % 50 + 1),
            &|s| loss(&format!("subsampled(0.01, gaussian(sigma={}/4))", s + 1)).repeat(n),
            &|s| loss(&format!("randomized_response(epsilon=5/{s})")).repeat(n % 50 + 1),
        ];
        for form in forms {
            let (less, more) = (form(k), form(k + more));
            let e = typical(&more, &share);
            prop_assert!(delta(&more, &e).lower <= delta(&less, &e).upper, "{more} and {less}");
            prop_assert!(epsilon(&more, &d).lower <= epsilon(&less, &d).upper, "{more} and {less}");
        }
    }

    #[test]
    fn sampling_never_costs_more(rate in 1u32..100, less in 1u32..100, k in 2u32..20, n in 400u64..2000, share in share(), d in small()) {
        let inner = [
            (format!("gaussian(sigma={k}/4)"), 1),
            (format!("gaussian(sigma={k}/4)"), n),
            (format!("laplace(epsilon={k}/10)"), 1),
            (format!("pure({k}/10)"), 1),
            (format!("randomized_response(epsilon={k}/10, categories=5)"), 1),
            (format!("approx(epsilon={k}/10, delta=1e-7)"), 1),
        ];
        let rates = [rate.max(less), rate.min(less)];
        for (inner, count) in inner {
            let whole = loss(&inner).repeat(count);
            let [larger, smaller] = rates.map(|rate| loss(&format!("subsampled({rate}/100, {inner})")).repeat(count));
            for (less, more) in [(&larger, &whole), (&smaller, &larger)] {
                let e = typical(less, &share);
                prop_assert!(delta(less, &e).lower <= delta(more, &e).upper, "{less} and {more}");
                prop_assert!(epsilon(less, &d).lower <= epsilon(more, &d).upper, "{less} and {more}");
            }
        }
    }

    #[test]
    fn a_group_of_one_is_the_identity(parts in losses(), share in share(), d in small()) {
        let alone = sum(&parts);
        let e = typical(&alone, &share);
        let group = PrivacyLoss::Group { size: 1, inner: Box::new(alone.clone()) };
        prop_assert_eq!(delta(&group, &e), delta(&alone, &e));
        prop_assert_eq!(epsilon(&group, &d), epsilon(&alone, &d));
        let everybody = PrivacyLoss::Subsampled { rate: Rational::one(), inner: Box::new(alone.clone()) };
        prop_assert_eq!(delta(&everybody, &e), delta(&alone, &e));
    }

    #[test]
    fn delta_falls_with_epsilon(parts in losses(), share in share(), step in 1u32..50) {
        let e = typical(&sum(&parts), &share);
        let account = account(&sum(&parts));
        let further = &e * &Rational::new(i128::from(100 + step), 100);
        let (near, far) = (account.delta(&e).unwrap().bounds, account.delta(&further).unwrap().bounds);
        prop_assert!(far.lower <= near.upper, "{near:?}, {far:?}");
    }

    #[test]
    fn delta_and_epsilon_are_inverse(parts in losses(), share in share()) {
        let e = typical(&sum(&parts), &share);
        let account = account(&sum(&parts));
        let there = account.delta(&e).unwrap().bounds;
        prop_assume!(there.lower > 1e-50 && there.upper < 0.5 && e.is_positive());
        // Where nothing but infinite loss is left, many ε have one δ.
        prop_assume!(account.delta(&(&e + &q("0.001"))).unwrap().bounds.upper < there.lower * 0.9999);
        let Ok(back) = account.epsilon(&exact(there.upper)) else { return Ok(()) };
        prop_assert!(exact(back.bounds.lower) <= e, "{:?}", back);
        prop_assert!((back.bounds.upper / e.to_f64() - 1.0).abs() < 1e-7, "{back:?}, {there:?}");
        let back = account.epsilon(&exact(there.lower)).unwrap().bounds;
        prop_assert!(exact(back.upper) >= e, "{:?}", back);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn approximate_methods_are_never_below_the_exact_one(
        parts in losses(),
        extra in prop::option::of((1u32..10, 1u32..20)),
        share in share(),
        d in small(),
    ) {
        // One sampled (ε, δ) beside, where both directions differ and each has a δ of its own.
        let extra = extra.map(|(rate, k)| loss(&format!("subsampled({rate}/10, approx(epsilon={k}/10, delta=1e-13))")));
        let gaussian = extra.as_ref().map(|_| loss("gaussian(sigma=2)*10"));
        let losses = extra.into_iter().chain(gaussian).fold(sum(&parts), PrivacyLoss::compose);
        let e = typical(&losses, &share);
        let account = account(&losses);
        let exact_delta = account.delta(&e).unwrap().bounds;
        let exact_epsilon = epsilon(&losses, &d);
        let mut answers = 0;
        for method in Method::ALL.into_iter().filter(|method| *method != Method::Grid) {
            if let Ok(answer) = account.delta_by(method, &e) {
                prop_assert!(answer.bounds.upper >= exact_delta.lower, "δ by {method}: {answer:?}, {exact_delta:?}");
                answers += 1;
            }
            if let Ok(answer) = account.epsilon_by(method, &d) {
                prop_assert!(answer.bounds.upper >= exact_epsilon.lower, "ε by {method}: {answer:?}, {exact_epsilon:?}");
            }
        }
        prop_assert!(answers >= 3, "{answers} methods answered for {losses}");
    }
}

/// A mechanism small enough to write down: the laws of its outputs on two neighbours.
#[derive(Clone, Debug)]
struct Small {
    loss: String,
    here: Vec<Rational>,
    there: Vec<Rational>,
}

/// The middle of a narrow enclosure, as a fraction.
fn middle(value: &Enclosure) -> Rational {
    let ends =
        [value.lower(), value.upper()].map(|end| Rational::dyadic(end.clone(), -(value.bits() as i64)));
    &(&ends[0] + &ends[1]) / &q("2")
}

/// e^(−x), to 40 digits.
fn fall(x: &Rational) -> Rational {
    middle(&exp_neg(x, 140))
}

fn law(weights: Vec<Rational>) -> Vec<Rational> {
    let total = weights.iter().fold(Rational::zero(), |sum, weight| &sum + weight);
    weights.iter().map(|weight| weight / &total).collect()
}

/// k-ary randomized response, of which all answers that are nobody's are alike.
fn response(epsilon: &Rational, categories: u64) -> Small {
    let lie = fall(epsilon);
    let mut here = vec![Rational::one(), lie.clone()];
    let mut there = vec![lie.clone(), Rational::one()];
    if categories > 2 {
        let others = &lie * &Rational::from(categories - 2);
        here.push(others.clone());
        there.push(others);
    }
    let loss = format!("randomized_response(epsilon={epsilon}, categories={categories})");
    Small { loss, here: law(here), there: law(there) }
}

/// Discrete Laplace noise within ±bound on an answer that is 0 or 1.
fn truncated(scale: &Rational, bound: i64) -> Small {
    let weight = |x: i64| match x.abs() > bound {
        true => Rational::zero(),
        false => fall(&(&Rational::from(x.unsigned_abs()) / scale)),
    };
    let outputs = -bound..=bound + 1;
    Small {
        loss: format!("truncated_discrete_laplace(scale={scale}, bound={bound}, sensitivity=1)"),
        here: law(outputs.clone().map(weight).collect()),
        there: law(outputs.map(|x| weight(x - 1)).collect()),
    }
}

/// Discrete Laplace noise on an answer that is 0 or `shift`; beyond both, outputs are alike.
fn discrete_laplace(scale: &Rational, shift: u64) -> Small {
    let t = fall(&scale.recip());
    let tail = (&Rational::one() - &t).recip(); // Σ tⁿ
    let power = |n: u64| (0..n).fold(Rational::one(), |power, _| &power * &t);
    let near: Vec<_> = (0..=shift).map(|x| if x == 0 { tail.clone() } else { power(x) }).collect();
    let here: Vec<_> = (0..=shift)
        .map(|x| if x == shift { &power(shift) * &tail } else { near[x as usize].clone() })
        .collect();
    let there = here.iter().rev().cloned().collect();
    let loss = format!("discrete_laplace(scale={scale}, sensitivity={shift})");
    Small { loss, here: law(here), there: law(there) }
}

/// The mechanism on a sample.
fn sampled(inner: Small, rate: &Rational) -> Small {
    let stay = &Rational::one() - rate;
    let mix = |(p, q): (&Rational, &Rational)| &(rate * p) + &(&stay * q);
    let here = inner.here.iter().zip(&inner.there).map(mix).collect();
    Small { loss: format!("subsampled({rate}, {})", inner.loss), here, there: inner.there }
}

fn small_mechanism() -> impl Strategy<Value = Small> {
    let eighths = |range: std::ops::Range<i128>| range.prop_map(|k| Rational::new(k, 8));
    prop_oneof![
        (eighths(1..20), 2u64..6).prop_map(|(e, k)| response(&e, k)),
        (1u32..5, 1i64..2).prop_map(|(s, b)| truncated(&Rational::from(2 * s), b)),
        (1u32..5, 1u64..4).prop_map(|(s, d)| discrete_laplace(&Rational::from(2 * s), d)),
    ]
}

/// Up to three uses of mechanisms with at most 12 transcripts, sampled ones all alike.
fn few_uses() -> impl Strategy<Value = Vec<Small>> {
    let sampling = (small_mechanism(), 1i128..10, 1usize..3)
        .prop_map(|(inner, tenths, uses)| vec![sampled(inner, &Rational::new(tenths, 10)); uses]);
    let fits = |uses: &Vec<Small>| uses.iter().map(|one| one.here.len()).product::<usize>() <= 12;
    prop_oneof![3 => prop::collection::vec(small_mechanism(), 1..4), 1 => sampling]
        .prop_filter("too many", fits)
}

fn transcripts(uses: &[Small]) -> OutputPair {
    let product = |law: fn(&Small) -> &Vec<Rational>| {
        uses.iter().fold(vec![Rational::one()], |joint, one| {
            joint.iter().flat_map(|p| law(one).iter().map(move |q| p * q)).collect()
        })
    };
    OutputPair::new(product(|one| &one.here), product(|one| &one.there)).unwrap()
}

/// The definition: the largest P(E) − e^ε·P′(E) over all 2ⁿ events.
fn over_all_events(pair: &OutputPair, exp_epsilon: &Rational) -> Rational {
    let terms: Vec<_> = (0..pair.outputs())
        .map(|output| {
            let (p, q) = pair.probabilities(|other| other == output);
            &p - &(exp_epsilon * &q)
        })
        .collect();
    // All events of the first n outputs, from those of the first n − 1: each with and without the last one.
    let events = terms.iter().fold(vec![Rational::zero()], |mut events, term| {
        let with: Vec<_> = events.iter().map(|event| event + term).collect();
        events.extend(with);
        events
    });
    events.into_iter().max().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn delta_is_brute_force_over_all_events(uses in few_uses(), e in (0i128..40).prop_map(|k| Rational::new(k, 10))) {
        let losses = uses.iter().map(|one| loss(&one.loss)).fold(loss("composed()"), PrivacyLoss::compose);
        let pair = transcripts(&uses);
        let exp_epsilon = fall(&e).recip();
        let truth = over_all_events(&pair, &exp_epsilon).max(over_all_events(&pair.swapped(), &exp_epsilon));
        prop_assert_eq!(&truth, &pair.delta(&exp_epsilon).max(pair.swapped().delta(&exp_epsilon)));
        let found = account(&losses).delta(&e).unwrap();
        let hair = q("1e-30");
        prop_assert!(exact(found.bounds.lower) <= &truth + &hair, "{losses} at {e}: {found:?}, {}", truth.to_f64());
        prop_assert!(&exact(found.bounds.upper) + &hair >= truth, "{losses} at {e}: {found:?}, {}", truth.to_f64());
        // On a sample losses are logarithms: two of them are no exact lattice, and three are left to the grid.
        let sampled = uses.iter().any(|one| one.loss.starts_with("subsampled"));
        let limit = if sampled { 1e-7 } else { 1e-12 };
        prop_assert!(found.bounds.upper <= truth.to_f64() * (1.0 + limit) + 1e-13, "{losses} at {e}: {found:?}, {}", truth.to_f64());
    }
}

/// Two roads with nothing in common but the laws.
#[test]
fn grid_and_inversion_agree() {
    let questions = [
        ("laplace(epsilon=0.1)*1000", "10", "1e-6"),
        ("gaussian(sigma=5)*100 + laplace(epsilon=0.1)*100", "3", "1e-8"),
        ("subsampled(0.01, gaussian(sigma=1))*1000", "1", "1e-6"),
        ("subsampled(0.1, laplace(epsilon=0.5))*500", "1", "1e-6"),
        ("exponential(0.2)*100 + gaussian(sigma=10)*10", "1", "1e-6"),
        ("pure(0.1)*200 + gaussian(sigma=4)*5 + approx(epsilon=0.2, delta=1e-9)*3", "4", "1e-6"),
    ];
    let agree = |inversion: Bounds, grid: Bounds| {
        // An exponential mechanism has no lower bound beside others.
        (inversion.relative_width() < 1e-9 || inversion.lower == 0.0)
            && grid.upper >= inversion.lower
            && grid.upper <= inversion.upper * (1.0 + 2e-7)
            && grid.lower <= inversion.upper
            && grid.lower >= inversion.lower * (1.0 - 5e-7)
    };
    for (losses, epsilon, delta) in questions {
        let account = account(&loss(losses));
        let by = |method: Method| account.delta_by(method, &q(epsilon)).unwrap().bounds;
        let (inversion, grid) = (by(Method::Inversion), by(Method::Grid));
        assert!(agree(inversion, grid), "δ of {losses}: {inversion:?}, {grid:?}");
        let by = |method: Method| account.epsilon_by(method, &q(delta)).unwrap().bounds;
        let (inversion, grid) = (by(Method::Inversion), by(Method::Grid));
        assert!(agree(inversion, grid), "ε of {losses}: {inversion:?}, {grid:?}");
    }
}

/// With a person removed the loss is not what it is with the person added; the answer is about the worse.
#[test]
fn both_directions_count() {
    for losses in [
        "subsampled(0.01, gaussian(sigma=1))",
        "subsampled(0.3, laplace(epsilon=1))*5",
        "subsampled(0.5, pure(1))",
    ] {
        for order in ["1.5", "2", "8"] {
            let [removed, added] = account(&loss(losses)).renyi(&q(order)).unwrap();
            assert!(removed.lower > added.upper * 1.001, "{losses} at {order}: {removed:?}, {added:?}");
        }
    }
    for losses in ["gaussian(sigma=1)*3", "laplace(epsilon=1)*5", "pure(1) + exponential(2)"] {
        let [removed, added] = account(&loss(losses)).renyi(&q("2")).unwrap();
        assert_eq!(removed, added);
    }
    // Half a sample of a coin with odds e is a fair coin, so both are known: D₃ = ½·ln Σ p³/p′².
    let e = std::f64::consts::E;
    let coin = [1.0 / (1.0 + e), e / (1.0 + e)];
    let removed = coin.iter().map(|p| 0.125 / (p * p)).sum::<f64>().ln() / 2.0;
    let added = coin.iter().map(|p| p * p * p / 0.25).sum::<f64>().ln() / 2.0;
    let found = account(&loss("subsampled(0.5, pure(1))")).renyi(&q("3")).unwrap();
    for (bounds, truth) in found.into_iter().zip([removed, added]) {
        assert!((bounds.lower - truth).abs() < 1e-12 && (bounds.upper - truth).abs() < 1e-12, "{found:?}");
    }
    // ln(1 + q(e^ε − 1)) when removed, −ln(1 − q(1 − e^(−ε))) when added: the larger one is told.
    let told = epsilon(&loss("subsampled(0.5, pure(1))"), &Rational::zero());
    assert!((told.upper - libm::log1p(0.5 * libm::expm1(1.0))).abs() < 1e-12, "{told:?}");
}
