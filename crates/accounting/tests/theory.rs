//! What the course notes say about composition, groups, samples and Gaussian noise, against the account.

#![expect(clippy::unwrap_used, reason = "a failing test may fail anywhere")]

use demur_accounting::{Account, Bounds, Method};
use demur_core::OutputPair;
use demur_exact::{Enclosure, Rational, exp_neg, normal_tail};

const BITS: usize = 300;

fn q(text: &str) -> Rational {
    text.parse().unwrap()
}

fn exact(value: f64) -> Rational {
    Rational::try_from(value).unwrap()
}

fn account(losses: &str) -> Account {
    Account::of(&losses.parse().unwrap()).unwrap()
}

fn delta(losses: &str, epsilon: &Rational) -> Bounds {
    account(losses).delta(epsilon).unwrap().bounds
}

fn epsilon(losses: &str, delta: &str) -> Bounds {
    account(losses).epsilon(&q(delta)).unwrap().bounds
}

/// The middle of a narrow enclosure, as a fraction.
fn middle(value: &Enclosure) -> Rational {
    let ends =
        [value.lower(), value.upper()].map(|end| Rational::dyadic(end.clone(), -(value.bits() as i64)));
    &(&ends[0] + &ends[1]) / &q("2")
}

/// e^x, to 80 digits.
fn exp(x: &Rational) -> Rational {
    let size = middle(&exp_neg(&x.abs(), BITS));
    if x.is_negative() { size } else { size.recip() }
}

/// Whether the interval holds the number and ends at most that far from it, relatively.
fn is(bounds: Bounds, truth: &Rational, tolerance: f64) -> bool {
    // The truths of this file have 80 digits.
    let slack = truth * &q("1e-70");
    let far = truth * &exact(tolerance);
    let (lower, upper) = (exact(bounds.lower), exact(bounds.upper));
    lower <= truth + &slack && &upper + &slack >= *truth && &upper - truth <= far && truth - &lower <= far
}

/// The same for ε(0), whose lower bound is a sum of doubles rounded to nearest.
fn is_rounded(bounds: Bounds, truth: &Rational) -> bool {
    is(Bounds::new(bounds.lower * (1.0 - 1e-15), bounds.upper), truth, 1e-12)
}

/// P5: L is N(η, 2η) with η = Δ²/2σ². Its Rényi divergences are those of a normal law with twice its mean as
/// variance, αη, and δ(ε) = P[L > ε] − e^ε·Q[L > ε], where L is N(−η, 2η) under Q.
#[test]
fn the_gaussian_loss_is_normal_with_twice_its_mean_as_variance() {
    // √(2η) = Δ/σ stays a fraction.
    for (sigma, sensitivity) in [("1", "1"), ("5", "1"), ("0.5", "1"), ("20", "3"), ("0.3", "0.7")] {
        let losses = format!("gaussian(sigma={sigma}, sensitivity={sensitivity})");
        let deviation = &q(sensitivity) / &q(sigma);
        let eta = &deviation.square() / &q("2");
        for order in ["1.001", "1.5", "2", "17", "500"] {
            for bounds in account(&losses).renyi(&q(order)).unwrap() {
                assert!(is(bounds, &(&q(order) * &eta), 1e-11), "{losses} at order {order}: {bounds:?}");
            }
        }
        for asked in ["0", "0.001", "0.5", "1", "4"] {
            let e = q(asked);
            let tail = |mean: &Rational| middle(&normal_tail(&(&(&e - mean) / &deviation), BITS));
            let here = tail(&eta);
            let there = tail(&(&Rational::zero() - &eta));
            let truth = &here - &(&exp(&e) * &there);
            // beside 10⁻⁶⁰ the tails of 300 bits would run out
            if truth > q("1e-60") {
                assert!(is(delta(&losses, &e), &truth, 1e-12), "{losses} at {asked}");
            }
            assert!(exact(delta(&losses, &e).lower) <= here, "P[L > ε] is enough, {losses} at {asked}");
        }
    }
}

/// P5, composed: means and variances add, so k uses are one use with √k times the sensitivity.
#[test]
fn gaussian_losses_add_up_to_a_gaussian_loss() {
    let parts = "gaussian(sigma=2)*3 + gaussian(sigma=4, sensitivity=3)*4 + gaussian(variance=1/3)";
    let one = "gaussian(variance=1, sensitivity=1)*6"; // 3/4 + 9/4 + 3
    for asked in ["0", "1", "10"] {
        assert_eq!(delta(parts, &q(asked)), delta(one, &q(asked)));
    }
}

/// P3: a group of k pays (kε, δ·(e^(kε) − 1)/(e^ε − 1)).
#[test]
fn groups_cost_what_the_notes_say_or_less() {
    let growth = |k: u64, e: &Rational| {
        let rise = |x: &Rational| &exp(x) - &Rational::one();
        &rise(&(&Rational::from(k) * e)) / &rise(e)
    };
    for (e, d) in [("0.1", "1e-6"), ("1", "1e-9"), ("2", "1e-5")] {
        for k in [1, 2, 3, 5] {
            let together = &Rational::from(k) * &q(e);
            let truth = &q(d) * &growth(k, &q(e));
            // Nothing more is known of an approximate loss, so the notes' price is the price.
            let found = delta(&format!("group({k}, approx(epsilon={e}, delta={d}))"), &together);
            let above = (&(&exact(found.upper) - &truth) / &truth).to_f64();
            assert!(
                (0.0..1e-12).contains(&above) && exact(found.lower) <= truth,
                "{k} with ({e}, {d}): {found:?}"
            );
            // Of a mechanism more is known: the price is at most that of all (ε, δ) it fulfils.
            for loss in ["gaussian(sigma=1)", "gaussian(sigma=3)", "gaussian(sigma=0.7, sensitivity=2)"] {
                let alone = delta(loss, &q(e));
                let notes = &exact(alone.upper) * &growth(k, &q(e));
                let found = delta(&format!("group({k}, {loss})"), &together);
                assert!(exact(found.upper) <= &notes * &exact(1.0 + 1e-10), "{k} with {loss} at {e}");
            }
        }
    }
    for k in [1, 2, 7] {
        let together = &Rational::from(k) * &q("0.3");
        for loss in [
            "pure(0.3)",
            "laplace(epsilon=0.3)",
            "discrete_laplace(scale=10, sensitivity=3)",
            "exponential(0.3)",
        ] {
            let group = format!("group({k}, {loss})");
            assert!(is_rounded(epsilon(&group, "0"), &together), "{group}");
            for share in ["0", "0.2", "0.6", "0.9"] {
                let asked = &together * &q(share);
                let notes = delta(&format!("pure({together})"), &asked).upper;
                assert!(delta(&group, &asked).upper <= notes * (1.0 + 1e-12), "{group} at {asked}");
            }
        }
    }
}

/// P4: on a sample (ε, δ) becomes (ln(1 + q(e^ε − 1)), qδ).
#[test]
fn sampling_costs_what_the_notes_say_or_less() {
    let cheaper =
        |rate: &str, e: &Rational| libm::log1p(q(rate).to_f64() * (&exp(e) - &Rational::one()).to_f64());
    for rate in ["0.001", "0.1", "1/3", "0.9"] {
        for e in ["0.01", "0.5", "1", "4"] {
            let sampled = cheaper(rate, &q(e));
            let truth = exact(sampled);
            let near = |bounds: Bounds| {
                (bounds.lower - sampled).abs() <= 1e-12 * sampled
                    && (bounds.upper - sampled).abs() <= 1e-12 * sampled
            };
            // Exactly so for all that is known only to be ε-private, and where the loss reaches ε.
            for loss in [
                format!("pure({e})"),
                format!("laplace(epsilon={e})"),
                format!("randomized_response(epsilon={e})"),
            ] {
                let found = epsilon(&format!("subsampled({rate}, {loss})"), "0");
                assert!(near(found), "{loss} at {rate}: {found:?}");
            }
            let approximate = format!("subsampled({rate}, approx(epsilon={e}, delta=1e-5))");
            let found = delta(&approximate, &(&truth * &exact(1.0 + 1e-13)));
            assert!(is(found, &(&q(rate) * &q("1e-5")), 1e-12), "{approximate}: {found:?}");
            // Mechanisms meet the notes' price with each of their own (ε, δ), and not more.
            for loss in ["gaussian(sigma=1)", "gaussian(sigma=0.4)", "laplace(epsilon=2)", "exponential(3)"] {
                let notes = delta(loss, &q(e)).upper * q(rate).to_f64();
                let found = delta(&format!("subsampled({rate}, {loss})"), &(&truth * &exact(1.0 + 1e-13)));
                assert!(found.upper <= notes * (1.0 + 1e-9), "{loss} at {rate}, {e}: {found:?}, {notes}");
            }
        }
    }
}

/// P6: the mean of n numbers from 0 to 1 moves by Δ = 1/n. With ε = 1/√n the Laplace noise has scale Δ/ε = 1/√n
/// as well: privacy and accuracy become perfect together.
#[test]
fn privacy_and_accuracy_both_become_perfect_as_n_grows() {
    let (mut last_epsilon, mut last_delta, mut last_error) = (f64::INFINITY, 1.0, f64::INFINITY);
    for power in 1..=8 {
        let n = 10f64.powi(power);
        let scale = exact(n.sqrt().recip());
        let losses = format!(
            "laplace(scale={scale}, sensitivity={})",
            Rational::from(10u64.pow(power as u32)).recip()
        );
        let found = epsilon(&losses, "0");
        assert!((found.upper * n.sqrt() - 1.0).abs() < 1e-12 && (found.lower * n.sqrt() - 1.0).abs() < 1e-12);
        // δ(0), the most by which any event's probability moves, is 1 − e^(−ε/2).
        let moved = delta(&losses, &Rational::zero()).upper;
        assert!((moved / -libm::expm1(-0.5 / n.sqrt()) - 1.0).abs() < 1e-12);
        // 95 % of Laplace noise is within scale·ln 20.
        let error = scale.to_f64() * 20f64.ln();
        assert!(found.upper < last_epsilon && moved < last_delta && error < last_error, "n = {n}");
        (last_epsilon, last_delta, last_error) = (found.upper, moved, error);
    }
    assert!(last_epsilon < 1.01e-4 && last_delta < 1e-4 && last_error < 1e-3);
}

/// P2: ε of pure losses add up, and no bound without δ is better.
#[test]
fn pure_losses_add_up() {
    let sums = [
        ("pure(0.1)*3 + pure(0.25)", "0.55"),
        ("laplace(scale=10)*20", "2"),
        ("pure(1/3)*3 + pure(1/7)*7 + randomized_response(epsilon=0.5)*2", "3"),
        (
            "laplace(epsilon=0.01)*50 + exponential(0.1)*5 + discrete_laplace(scale=4)*2 + permute_and_flip(0.3)",
            "1.8",
        ),
    ];
    for (losses, sum) in sums {
        assert!(is_rounded(epsilon(losses, "0"), &q(sum)), "{losses}: {:?}", epsilon(losses, "0"));
        let basic = account(losses).epsilon_by(Method::Basic, &Rational::zero()).unwrap().bounds.upper;
        assert!(exact(basic) >= q(sum) && (basic / q(sum).to_f64() - 1.0).abs() < 1e-12, "{losses}: {basic}");
    }
}

/// P2: (ε, δ) of approximate losses add up to something that holds.
#[test]
fn approximate_losses_add_up_to_no_less_than_the_truth() {
    let losses = "approx(epsilon=0.1, delta=1e-6)*3 + approx(epsilon=0.25, delta=1e-7)*2";
    let truth = delta(losses, &q("0.8"));
    let basic = account(losses).delta_by(Method::Basic, &q("0.8000000000001")).unwrap().bounds.upper;
    // 1 − (1 − δ)³(1 − δ′)² is a little less than 3δ + 2δ′
    assert!(truth.upper <= basic && basic < 3.2e-6 * (1.0 + 1e-12) && truth.lower > 3.2e-6 * (1.0 - 1e-5));
}

/// P2, by exhaustion: the second question may depend on the first answer, and still nothing is lost beyond the
/// dearest path.
#[test]
fn adaptive_composition_adds_up() {
    let costs = ["0", "1/2", "3/4", "2"].map(q);
    // The probability to say the truth, or not.
    let answer = |cost: &Rational, right: bool| {
        let odds = exp(cost);
        let total = &odds + &Rational::one();
        if right { &odds / &total } else { total.recip() }
    };
    for first in &costs {
        for after_yes in &costs {
            for after_no in &costs {
                let transcript = |truth: bool| -> Vec<Rational> {
                    let paths = [(true, true), (true, false), (false, true), (false, false)];
                    let second = |one: bool| if one { after_yes } else { after_no };
                    let path = |(one, two)| &answer(first, one == truth) * &answer(second(one), two == truth);
                    paths.map(path).to_vec()
                };
                let pair = OutputPair::new(transcript(true), transcript(false)).unwrap();
                let dearest = after_yes.max(after_no);
                let sum = first + dearest;
                let hair = q("1e-60");
                assert!(pair.is_pure(&exp(&(&sum + &hair))));
                assert!(sum.is_zero() || !pair.is_pure(&exp(&(&sum - &hair))));
                // Neither is δ above that of the two dearest questions chosen beforehand, at any ε.
                let losses = format!("pure({first}) + pure({dearest})");
                for share in ["0", "0.3", "0.7", "0.95"] {
                    let asked = &sum * &q(share);
                    let odds = exp(&asked);
                    let adaptive = pair.delta(&odds).max(pair.swapped().delta(&odds));
                    let fixed = delta(&losses, &asked);
                    assert!(
                        adaptive <= &exact(fixed.upper) + &hair,
                        "{first}, {after_yes}, {after_no} at {asked}"
                    );
                    // … and where the answer does not matter, it is that.
                    let same = after_yes == after_no;
                    assert!(!same || exact(fixed.lower) <= &adaptive + &hair, "{losses} at {asked}");
                }
            }
        }
    }
}
