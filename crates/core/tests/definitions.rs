//! The definitions of differential privacy, checked on mechanisms small enough to enumerate.
//!
//! Probabilities are fractions and e^ε is chosen to be one, so that every comparison here
//! is exact.

#![expect(clippy::unwrap_used, reason = "a failing test may fail anywhere")]

use demur_core::OutputPair;
use demur_exact::Rational;
use proptest::prelude::*;

/// Probabilities proportional to the weights, on x and on x′.
fn mechanism_of(here: &[u32], there: &[u32]) -> OutputPair {
    OutputPair::new(normalised(here), normalised(there)).unwrap()
}

fn normalised(weights: &[u32]) -> Vec<Rational> {
    let whole = Rational::from(weights.iter().sum::<u32>());
    weights.iter().map(|&weight| &Rational::from(weight) / &whole).collect()
}

/// The definition: the most by which any event exceeds e^ε times its other probability.
fn delta_over_all_events(mechanism: &OutputPair, exp_epsilon: &Rational) -> Rational {
    let events = (0u32..1 << mechanism.outputs()).map(|event| {
        let (p, q) = mechanism.probabilities(|y| event >> y & 1 == 1);
        &p - &(exp_epsilon * &q)
    });
    events.max().unwrap_or_else(Rational::zero)
}

/// The largest ratio of the two probabilities of an output, either way.
fn worst_ratio(mechanism: &OutputPair) -> Rational {
    let ratio = |y: usize| {
        let (p, q) = mechanism.probabilities(|output| output == y);
        if p.is_zero() && q.is_zero() { Rational::one() } else { (&p / &q).max(&q / &p) }
    };
    (0..mechanism.outputs()).map(ratio).max().unwrap_or_else(Rational::one)
}

/// Truth with weight e^ε against 1 for each other category; x and x′ are the first two.
fn randomized_response(exp_epsilon: u32, categories: usize) -> OutputPair {
    let law = |truth| (0..categories).map(|y| if y == truth { exp_epsilon } else { 1 }).collect::<Vec<_>>();
    mechanism_of(&law(0), &law(1))
}

/// Every map from `outputs` outputs to at most as many.
fn all_maps(outputs: usize) -> impl Iterator<Item = Vec<usize>> {
    let count = outputs.pow(outputs as u32);
    (0..count).map(move |code| (0..outputs).map(|y| code / outputs.pow(y as u32) % outputs).collect())
}

#[test]
fn randomized_response_loses_exactly_its_epsilon() {
    for categories in 2..=5 {
        let mechanism = randomized_response(3, categories);
        assert_eq!(worst_ratio(&mechanism), Rational::from(3u32));
        assert!(mechanism.is_private(&Rational::from(3u32), &Rational::zero()));
        assert!(!mechanism.is_private(&Rational::new(29, 10), &Rational::zero()));
    }
}

/// A coin that tells the truth twice as often as not is (ln 3/2, 1/6)-private. Yet its likely
/// output, of probability 2/3 and not 1/6, loses ln 2, which is more than ln 3/2.
#[test]
fn approximate_privacy_does_not_bound_the_loss_of_a_point() {
    let mechanism = mechanism_of(&[2, 1], &[1, 2]);
    let (exp_epsilon, delta) = (Rational::new(3, 2), Rational::new(1, 6));
    assert!(mechanism.is_private(&exp_epsilon, &delta));
    assert!(!mechanism.is_pure(&exp_epsilon));
    let (more_than_delta, _) = mechanism.probabilities(|y| mechanism.loses(y, &exp_epsilon));
    assert_eq!(more_than_delta, Rational::new(2, 3));
    assert!(more_than_delta > delta);
}

/// An output that only x can give has infinite loss, and δ pays for it.
#[test]
fn an_output_that_gives_everything_away_is_private_with_its_probability_as_delta() {
    let mechanism = mechanism_of(&[1, 0, 9], &[0, 1, 9]);
    let tenth = Rational::new(1, 10);
    assert!(mechanism.is_private(&Rational::one(), &tenth));
    assert!(!mechanism.is_private(&Rational::from(1_000_000u32), &Rational::new(1, 11)));
}

#[test]
fn the_tail_bound_is_sufficient_and_not_necessary() {
    let mechanism = mechanism_of(&[2, 1], &[1, 2]);
    let exp_epsilon = Rational::new(3, 2);
    assert_eq!(mechanism.delta_tail_bound(&exp_epsilon), Rational::new(2, 3));
    assert_eq!(mechanism.delta_by_tails(&exp_epsilon), Rational::new(1, 6));
}

#[test]
fn no_map_of_randomized_response_loses_more() {
    for categories in 2..=5 {
        let mechanism = randomized_response(3, categories);
        let worst = worst_ratio(&mechanism);
        for map in all_maps(categories) {
            assert!(worst_ratio(&mechanism.map(&map)) <= worst, "{map:?}");
        }
    }
}

#[test]
fn a_map_that_keeps_outputs_apart_keeps_the_loss() {
    let mechanism = randomized_response(3, 4);
    assert_eq!(worst_ratio(&mechanism.map(&[2, 0, 3, 1])), Rational::from(3u32));
    assert_eq!(worst_ratio(&mechanism.map(&[0, 0, 0, 0])), Rational::one());
}

/// Two laws on up to six outputs, zeros among them.
fn any_mechanism() -> impl Strategy<Value = OutputPair> {
    let weights = |n| (proptest::collection::vec(0u32..9, n), proptest::collection::vec(0u32..9, n));
    let some = |w: &Vec<u32>| w.iter().any(|&w| w > 0);
    (1usize..7)
        .prop_flat_map(weights)
        .prop_filter("both laws need weight", move |(p, q)| some(p) && some(q))
        .prop_map(|(p, q)| mechanism_of(&p, &q))
}

fn any_exp_epsilon() -> impl Strategy<Value = Rational> {
    (1i128..12, 1i128..12).prop_map(|(a, b)| Rational::new(a.max(b), a.min(b) as u128))
}

proptest! {
    #[test]
    fn the_formula_for_delta_is_the_definition(m in any_mechanism(), e in any_exp_epsilon()) {
        prop_assert_eq!(m.delta(&e), delta_over_all_events(&m, &e));
    }

    #[test]
    fn the_difference_of_tails_is_delta(m in any_mechanism(), e in any_exp_epsilon()) {
        prop_assert_eq!(m.delta_by_tails(&e), m.delta(&e));
    }

    #[test]
    fn the_tail_is_never_below_delta(m in any_mechanism(), e in any_exp_epsilon()) {
        prop_assert!(m.delta_tail_bound(&e) >= m.delta(&e));
    }

    #[test]
    fn pure_privacy_is_a_bound_on_every_point(m in any_mechanism(), e in any_exp_epsilon()) {
        let over_all_events = [m.clone(), m.swapped()].iter().all(|m| delta_over_all_events(m, &e).is_zero());
        prop_assert_eq!(m.is_pure(&e), over_all_events);
    }

    #[test]
    fn post_processing_never_needs_a_larger_delta(
        m in any_mechanism(),
        e in any_exp_epsilon(),
        map in proptest::collection::vec(0usize..4, 6),
    ) {
        let mapped = m.map(&map[..m.outputs()]);
        prop_assert!(mapped.delta(&e) <= m.delta(&e));
        prop_assert!(mapped.swapped().delta(&e) <= m.swapped().delta(&e));
        prop_assert!(!m.is_pure(&e) || mapped.is_pure(&e));
    }
}
