//! The worst analyst against each filter, by exhaustion.
//!
//! The game: two neighbouring datasets, mechanisms with a few outputs each, and an analyst who picks the next
//! mechanism, or stops, after seeing all earlier outputs. The hockey-stick divergence of the whole transcript,
//! H_c = Σ (p − c·q)⁺, obeys a recursion over transcripts: after an output of probabilities p and q what remains
//! is worth p·H_(c·q/p). Taking the largest value at every node is the worst adaptive analyst there is; it is
//! compared with the promise of the filter.

use demur_accounting::{Filter, Rule, State};
use demur_core::PrivacyLoss;
use demur_exact::Rational;

/// A mechanism: what it costs, and the probabilities of its outputs on both datasets.
struct Move {
    loss: PrivacyLoss,
    outputs: Vec<(f64, f64)>,
}

/// A number of this file.
#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn q(text: &str) -> Rational {
    text.parse().unwrap()
}

fn randomized_response(epsilon: &str) -> Move {
    let odds = q(epsilon).to_f64().exp();
    let (truth, lie) = (odds / (1.0 + odds), 1.0 / (1.0 + odds));
    Move { loss: PrivacyLoss::Pure { epsilon: q(epsilon) }, outputs: vec![(truth, lie), (lie, truth)] }
}

/// Reveals everything with probability δ, and is randomized response otherwise.
fn leaky_response(epsilon: &str, delta: &str) -> Move {
    let d = q(delta).to_f64();
    let mut outputs: Vec<_> = randomized_response(epsilon)
        .outputs
        .into_iter()
        .map(|(p, q)| ((1.0 - d) * p, (1.0 - d) * q))
        .collect();
    outputs.extend([(d, 0.0), (0.0, d)]);
    Move { loss: PrivacyLoss::Approximate { epsilon: q(epsilon), delta: q(delta) }, outputs }
}

fn tail(x: f64) -> f64 {
    libm::erfc(x / 2f64.sqrt()) / 2.0
}

/// Gaussian noise around 0 or μ, of which only the bin is seen.
fn binned_gaussian(mu_squared: &str, bins: usize) -> Move {
    let mu = q(mu_squared).to_f64().sqrt();
    let edge = |i: usize| mu / 2.0 - 2.5 + 5.0 * i as f64 / (bins - 2) as f64;
    let mass = |i: usize, centre: f64| {
        let above = if i == 0 { 1.0 } else { tail(edge(i - 1) - centre) };
        above - if i == bins - 1 { 0.0 } else { tail(edge(i) - centre) }
    };
    let outputs = (0..bins).map(|i| (mass(i, mu), mass(i, 0.0))).collect();
    Move { loss: PrivacyLoss::Gaussian { variance: q("1"), l2_squared: q(mu_squared) }, outputs }
}

/// The largest H_c over all analysts with at most `depth` questions left.
fn worst(filter: &Filter, state: &State, moves: &[Move], depth: usize, c: f64) -> f64 {
    let stop = (1.0 - c).max(0.0);
    if depth == 0 || c == 0.0 {
        return stop;
    }
    let value = |choice: &Move| match filter.admit(state, &choice.loss) {
        Ok(next) => choice
            .outputs
            .iter()
            .filter(|(p, _)| *p > 0.0)
            .map(|(p, q)| p * worst(filter, &next, moves, depth - 1, c * q / p))
            .sum(),
        Err(_) => 0.0,
    };
    moves.iter().map(value).fold(stop, f64::max)
}

fn delta_of(filter: &Filter, moves: &[Move], depth: usize, epsilon: f64) -> f64 {
    worst(filter, &filter.start(), moves, depth, epsilon.exp())
}

#[test]
fn no_analyst_gets_more_than_epsilon_out_of_a_pure_filter() {
    let filter = Filter::pure(q("1")).unwrap();
    let moves = ["0.1", "0.3", "0.35", "0.7"].map(randomized_response);
    assert!(delta_of(&filter, &moves, 6, 1.0) < 1e-14);
    // Every bit of it can be had, and no more: at a smaller ε there is something to see.
    assert!(delta_of(&filter, &moves, 6, 0.999) > 1e-6);
}

#[test]
fn no_analyst_gets_more_than_delta_out_of_a_zcdp_filter() {
    for (epsilon, delta, part) in [("1", "0.05", "0.02"), ("2", "0.01", "0.0025"), ("0.5", "0.2", "0.1")] {
        let rule = Rule::Zcdp { epsilon: q(epsilon), delta: q(delta), delta_for_losses: q(part) };
        let filter = Filter::new(rule).unwrap();
        let whole = leaky_response("0", part);
        let half = leaky_response("0.1", &(&q(part) / &q("2")).to_string());
        let moves = [
            randomized_response("0.2"),
            randomized_response("0.45"),
            randomized_response("0.9"),
            whole,
            half,
        ];
        let found = delta_of(&filter, &moves, 5, q(epsilon).to_f64());
        assert!(found <= q(delta).to_f64(), "δ = {found} of {delta}");
        // The part of δ for losses is all used, and more than that is.
        assert!(found >= q(part).to_f64(), "δ = {found} of {part}");
    }
}

#[test]
fn no_analyst_gets_more_than_delta_out_of_a_gaussian_filter() {
    for (epsilon, delta) in [("1", "0.05"), ("0.5", "0.1")] {
        let rule = Rule::Gaussian { epsilon: q(epsilon), delta: q(delta), delta_for_losses: q("0.01") };
        let filter = Filter::new(rule).unwrap();
        let capacity = filter.capacity().values[0].1.clone();
        let share = |part: u32| {
            let amount = (&capacity / &Rational::from(part)).to_f64_down();
            Rational::try_from(amount).unwrap().to_string()
        };
        let moves = [
            binned_gaussian(&share(1), 12),
            binned_gaussian(&share(2), 12),
            binned_gaussian(&share(4), 12),
            leaky_response("0", "0.01"),
            randomized_response("0.2"),
        ];
        let found = delta_of(&filter, &moves, 4, q(epsilon).to_f64());
        assert!(found <= q(delta).to_f64(), "δ = {found} of {delta}");
        // The profile is exact, so the analyst comes close; bins and the limited depth are what is missing.
        assert!(found >= 0.9 * q(delta).to_f64(), "δ = {found} of {delta}");
    }
}

#[test]
fn no_analyst_gets_more_than_delta_out_of_a_renyi_filter() {
    let orders = vec![3, 5, 9];
    let rule = Rule::Renyi { epsilon: q("1.5"), delta: q("0.03"), delta_for_losses: q("0.01"), orders };
    let filter = Filter::new(rule).unwrap();
    let moves = [
        randomized_response("0.3"),
        randomized_response("0.9"),
        randomized_response("1.4"),
        leaky_response("0", "0.01"),
        binned_gaussian("0.2", 6),
    ];
    let found = delta_of(&filter, &moves, 4, 1.5);
    assert!(found <= 0.03, "δ = {found}");
    assert!(found >= 0.01, "δ = {found}");
}

/// H_c of N(√b, 1) against N(0, 1).
fn gaussian_profile(b: f64, c: f64) -> f64 {
    if b <= 0.0 || c <= 0.0 {
        return (1.0 - c).max(0.0);
    }
    let (root, log) = (b.sqrt(), c.ln());
    tail(log / root - root / 2.0) - c * tail(log / root + root / 2.0)
}

/// Why filters do not let Σδ and the conversion share one δ: an analyst who decides late which of the two to use
/// up gets nearly twice as much as a rule that checks Σδ + δ(ε; Σμ²) ≤ δ after every loss would promise.
#[test]
fn a_filter_that_pooled_its_delta_would_break_its_promise() {
    let (c, delta) = (1f64.exp(), 0.01);
    let (mut low, mut high) = (0.0, 4.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if gaussian_profile(middle, c) <= delta { low = middle } else { high = middle }
    }
    let capacity = low;
    let mut most = 0f64;
    for first in [0.1, 0.2, 0.3, 0.4, 0.5] {
        // One Gaussian answer; where it was harmless use up δ by a leak, where it was not use up μ².
        let (spent, mu) = (first * capacity, (first * capacity).sqrt());
        let leak = delta - gaussian_profile(spent, c);
        let step = 1e-3;
        let found: f64 = (-10_000..10_000)
            .map(|i| {
                let y = mu + f64::from(i) * step;
                let density = (-(y - mu) * (y - mu) / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
                let now = c * (mu * mu / 2.0 - y * mu).exp();
                let by_leak = leak + (1.0 - leak) * (1.0 - now).max(0.0);
                step * density * by_leak.max(gaussian_profile(capacity - spent, now))
            })
            .sum();
        most = most.max(found);
    }
    assert!(most > 1.5 * delta, "{most}");
    assert!(most < 2.0 * delta, "{most}");
}
