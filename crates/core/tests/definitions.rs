//! The definitions of differential privacy, checked on mechanisms small enough to enumerate.
//!
//! Probabilities are fractions and e^ε is chosen to be one, so that every comparison here
//! is exact.

use demur_exact::Rational;
use proptest::prelude::*;

/// The law of a mechanism's output on two neighbouring datasets x and x′.
#[derive(Clone, Debug)]
struct Mechanism {
    here: Vec<Rational>,
    there: Vec<Rational>,
}

impl Mechanism {
    /// Probabilities proportional to the weights.
    fn new(here: &[u32], there: &[u32]) -> Self {
        Self { here: normalised(here), there: normalised(there) }
    }

    fn outputs(&self) -> usize {
        self.here.len()
    }

    fn swapped(&self) -> Self {
        Self { here: self.there.clone(), there: self.here.clone() }
    }

    /// (P(E), P′(E)) for the event of the outputs for which `holds`.
    fn probabilities(&self, holds: impl Fn(usize) -> bool) -> (Rational, Rational) {
        let sum = |law: &[Rational]| total(law.iter().enumerate().filter(|(y, _)| holds(*y)).map(|(_, p)| p));
        (sum(&self.here), sum(&self.there))
    }

    /// The definition: the most by which any event exceeds e^ε times its other probability.
    fn delta_over_all_events(&self, exp_epsilon: &Rational) -> Rational {
        let events = (0u32..1 << self.outputs()).map(|event| {
            let (p, q) = self.probabilities(|y| event >> y & 1 == 1);
            &p - &(exp_epsilon * &q)
        });
        events.max().unwrap_or_else(Rational::zero)
    }

    /// The formula: Σ max(0, p − e^ε·q).
    fn delta(&self, exp_epsilon: &Rational) -> Rational {
        let excess = self.here.iter().zip(&self.there).map(|(p, q)| p - &(exp_epsilon * q));
        total(excess.filter(Rational::is_positive).collect::<Vec<_>>().iter())
    }

    /// Whether the privacy loss ln(p/q) of the output is at least ε.
    fn loses(&self, y: usize, exp_epsilon: &Rational) -> bool {
        self.here[y] >= exp_epsilon * &self.there[y]
    }

    /// P[L ≥ ε], which bounds δ from above.
    fn tail(&self, exp_epsilon: &Rational) -> Rational {
        self.probabilities(|y| self.loses(y, exp_epsilon)).0
    }

    /// P[L ≥ ε] − e^ε·P[L′ ≤ −ε], where L′ is the loss seen from x′.
    fn tail_difference(&self, exp_epsilon: &Rational) -> Rational {
        let (p, q) = self.probabilities(|y| self.loses(y, exp_epsilon));
        &p - &(exp_epsilon * &q)
    }

    /// Whether every output has p ≤ e^ε·q and q ≤ e^ε·p.
    fn is_pure_pointwise(&self, exp_epsilon: &Rational) -> bool {
        let within = |a: &Rational, b: &Rational| *a <= exp_epsilon * b;
        self.here.iter().zip(&self.there).all(|(p, q)| within(p, q) && within(q, p))
    }

    /// Whether both directions are (ε, δ)-differentially private, over all events.
    fn is_private(&self, exp_epsilon: &Rational, delta: &Rational) -> bool {
        [self, &self.swapped()].iter().all(|m| m.delta_over_all_events(exp_epsilon) <= *delta)
    }

    /// The largest ratio p/q or q/p, for laws without zeros.
    fn worst_ratio(&self) -> Rational {
        let ratios = self.here.iter().zip(&self.there).filter(|(p, _)| p.is_positive());
        ratios.map(|(p, q)| (p / q).max(q / p)).max().unwrap_or_else(Rational::one)
    }

    /// The mechanism followed by y ↦ map[y].
    fn mapped(&self, map: &[usize]) -> Self {
        let outputs = map.iter().max().map_or(0, |most| most + 1);
        let event = |z: usize| self.probabilities(|y| map[y] == z);
        let (here, there) = (0..outputs).map(event).unzip();
        Self { here, there }
    }
}

fn total<'a>(terms: impl Iterator<Item = &'a Rational>) -> Rational {
    terms.fold(Rational::zero(), |sum, term| &sum + term)
}

fn normalised(weights: &[u32]) -> Vec<Rational> {
    let whole = total(weights.iter().map(|&w| Rational::from(w)).collect::<Vec<_>>().iter());
    weights.iter().map(|&w| &Rational::from(w) / &whole).collect()
}

/// Truth with weight e^ε against 1 for each other category; x and x′ are the first two.
fn randomized_response(exp_epsilon: u32, categories: usize) -> Mechanism {
    let law = |truth| (0..categories).map(|y| if y == truth { exp_epsilon } else { 1 }).collect::<Vec<_>>();
    Mechanism::new(&law(0), &law(1))
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
        assert_eq!(mechanism.worst_ratio(), Rational::from(3u32));
        assert!(mechanism.is_private(&Rational::from(3u32), &Rational::zero()));
        assert!(!mechanism.is_private(&Rational::new(29, 10), &Rational::zero()));
    }
}

/// A coin that tells the truth twice as often as not is (ln 3/2, 1/6)-private. Yet its likely
/// output, of probability 2/3 and not 1/6, loses ln 2, which is more than ln 3/2.
#[test]
fn approximate_privacy_does_not_bound_the_loss_of_a_point() {
    let mechanism = Mechanism::new(&[2, 1], &[1, 2]);
    let (exp_epsilon, delta) = (Rational::new(3, 2), Rational::new(1, 6));
    assert!(mechanism.is_private(&exp_epsilon, &delta));
    assert!(!mechanism.is_pure_pointwise(&exp_epsilon));
    let (more_than_delta, _) = mechanism.probabilities(|y| mechanism.loses(y, &exp_epsilon));
    assert_eq!(more_than_delta, Rational::new(2, 3));
    assert!(more_than_delta > delta);
}

/// An output that only x can give has infinite loss, and δ pays for it.
#[test]
fn an_output_that_gives_everything_away_is_private_with_its_probability_as_delta() {
    let mechanism = Mechanism::new(&[1, 0, 9], &[0, 1, 9]);
    let tenth = Rational::new(1, 10);
    assert!(mechanism.is_private(&Rational::one(), &tenth));
    assert!(!mechanism.is_private(&Rational::from(1_000_000u32), &Rational::new(1, 11)));
}

#[test]
fn the_tail_bound_is_sufficient_and_not_necessary() {
    let mechanism = Mechanism::new(&[2, 1], &[1, 2]);
    let exp_epsilon = Rational::new(3, 2);
    assert_eq!(mechanism.tail(&exp_epsilon), Rational::new(2, 3));
    assert_eq!(mechanism.tail_difference(&exp_epsilon), Rational::new(1, 6));
}

#[test]
fn no_map_of_randomized_response_loses_more() {
    for categories in 2..=5 {
        let mechanism = randomized_response(3, categories);
        let worst = mechanism.worst_ratio();
        for map in all_maps(categories) {
            assert!(mechanism.mapped(&map).worst_ratio() <= worst, "{map:?}");
        }
    }
}

#[test]
fn a_map_that_keeps_outputs_apart_keeps_the_loss() {
    let mechanism = randomized_response(3, 4);
    assert_eq!(mechanism.mapped(&[2, 0, 3, 1]).worst_ratio(), Rational::from(3u32));
    assert_eq!(mechanism.mapped(&[0, 0, 0, 0]).worst_ratio(), Rational::one());
}

/// Two laws on up to six outputs, zeros among them.
fn any_mechanism() -> impl Strategy<Value = Mechanism> {
    let weights = |n| (proptest::collection::vec(0u32..9, n), proptest::collection::vec(0u32..9, n));
    let some = |w: &Vec<u32>| w.iter().any(|&w| w > 0);
    (1usize..7)
        .prop_flat_map(weights)
        .prop_filter("both laws need weight", move |(p, q)| some(p) && some(q))
        .prop_map(|(p, q)| Mechanism::new(&p, &q))
}

fn any_exp_epsilon() -> impl Strategy<Value = Rational> {
    (1i128..12, 1i128..12).prop_map(|(a, b)| Rational::new(a.max(b), a.min(b) as u128))
}

proptest! {
    #[test]
    fn the_formula_for_delta_is_the_definition(m in any_mechanism(), e in any_exp_epsilon()) {
        prop_assert_eq!(m.delta(&e), m.delta_over_all_events(&e));
    }

    #[test]
    fn the_difference_of_tails_is_delta(m in any_mechanism(), e in any_exp_epsilon()) {
        prop_assert_eq!(m.tail_difference(&e), m.delta(&e));
    }

    #[test]
    fn the_tail_is_never_below_delta(m in any_mechanism(), e in any_exp_epsilon()) {
        prop_assert!(m.tail(&e) >= m.delta(&e));
    }

    #[test]
    fn pure_privacy_is_a_bound_on_every_point(m in any_mechanism(), e in any_exp_epsilon()) {
        prop_assert_eq!(m.is_pure_pointwise(&e), m.is_private(&e, &Rational::zero()));
    }

    #[test]
    fn post_processing_never_needs_a_larger_delta(
        m in any_mechanism(),
        e in any_exp_epsilon(),
        map in proptest::collection::vec(0usize..4, 6),
    ) {
        let mapped = m.mapped(&map[..m.outputs()]);
        prop_assert!(mapped.delta(&e) <= m.delta(&e));
        prop_assert!(mapped.swapped().delta(&e) <= m.swapped().delta(&e));
        prop_assert!(!m.is_pure_pointwise(&e) || mapped.is_pure_pointwise(&e));
    }
}
