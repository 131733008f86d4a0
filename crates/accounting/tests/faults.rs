//! Questions at the edges, which were once answered badly, each under its own name.

#![expect(clippy::unwrap_used, reason = "a failing test may fail anywhere")]

use demur_accounting::{Account, Bounds, Method};
use demur_exact::Rational;

fn q(text: &str) -> Rational {
    text.parse().unwrap()
}

fn exact(value: f64) -> Rational {
    Rational::try_from(value).unwrap()
}

fn delta(losses: &str, epsilon: &str) -> Bounds {
    Account::of(&losses.parse().unwrap()).unwrap().delta(&q(epsilon)).unwrap().bounds
}

fn epsilon(losses: &str, delta: &str) -> Bounds {
    Account::of(&losses.parse().unwrap()).unwrap().epsilon(&q(delta)).unwrap().bounds
}

/// A ρ-zero-concentrated loss is unbounded, but with δ = 0 it was not counted at all.
#[test]
fn concentrated_losses_count_at_delta_zero() {
    for losses in ["zcdp(0.5)", "zcdp(0.5) + laplace(epsilon=1)"] {
        let account = Account::of(&losses.parse().unwrap()).unwrap();
        assert_eq!(account.epsilon(&Rational::zero()).unwrap_err().code(), "accounting.infinite", "{losses}");
    }
}

/// Two such answers tell everything: δ is nearly 1 well below the largest loss.
#[test]
fn huge_losses_are_not_free() {
    for losses in [
        "laplace(epsilon=800)*2",
        "laplace(epsilon=1000)*2",
        "exponential(1000)*2",
        "laplace(epsilon=1000)*1000",
    ] {
        assert!(delta(losses, "500").upper > 0.999, "{losses}: {:?}", delta(losses, "500"));
        assert!(epsilon(losses, "1e-6").upper > 1500.0, "{losses}: {:?}", epsilon(losses, "1e-6"));
    }
}

/// The same once, and on a sample.
#[test]
fn huge_losses_are_no_panic() {
    let losses = [
        "laplace(epsilon=1500)",
        "exponential(3000)",
        "truncated_laplace(scale=0.001, bound=3, sensitivity=1)",
        "subsampled(0.5, pure(1000))",
        "subsampled(0.5, pure(1000))*2",
        "subsampled(0.5, laplace(epsilon=1000))",
    ];
    for losses in losses {
        assert!(delta(losses, "50").upper > 0.49, "{losses}");
        assert!(epsilon(losses, "1e-6").upper > 900.0, "{losses}");
    }
}

/// What is (ε, δ)-private is (ε, δ)-private.
#[test]
fn an_approximate_loss_has_its_own_epsilon_at_its_own_delta() {
    assert!((epsilon("approx(epsilon=1, delta=1e-6)", "1e-6").upper - 1.0).abs() < 1e-9);
    assert!(
        (epsilon("subsampled(1/2, approx(epsilon=1, delta=1e-6))", "5.0000001e-7").upper - 0.62).abs() < 1e-2
    );
}

/// δ − Σδ cancels, and what is left is uncertain for the lower bound as well.
#[test]
fn lower_bounds_allow_for_what_is_left_of_delta() {
    let with = epsilon("laplace(epsilon=0.1)*1000 + approx(epsilon=0, delta=1e-6)", "1.0000001e-6");
    // (δ − 10⁻⁶)/(1 − 10⁻⁶)
    let alone = epsilon("laplace(epsilon=0.1)*1000", "1000/9999990000000000");
    assert!(with.lower <= alone.upper && alone.lower <= with.upper, "{with:?} and {alone:?}");
}

/// A sample of a concentrated loss costs at most what is sampled: δ ≤ q.
#[test]
fn concentrated_losses_on_a_sample_have_no_lower_bound_of_the_whole() {
    assert!(delta("subsampled(0.01, zcdp(0.5))", "1").lower <= 0.01);
}

/// On a lattice of 10⁶ steps per σ, Gaussian noise is Gaussian noise.
#[test]
fn fine_discrete_gaussian_noise_costs_no_more_than_gaussian_noise() {
    let (discrete, continuous) =
        (delta("discrete_gaussian(sigma=1000000)", "1e-6"), delta("gaussian(sigma=1000000)", "1e-6"));
    assert!(discrete.lower <= continuous.upper, "{discrete:?}, {continuous:?}");
}

/// Of ε-bounded range is ε²/8-zero-concentrated, also when composed.
#[test]
fn exponential_mechanisms_cost_no_more_than_their_rho() {
    let account = Account::of(&"exponential(1)*20".parse().unwrap()).unwrap();
    let best = account.epsilon(&q("1e-6")).unwrap().bounds;
    let concentrated = account.epsilon_by(Method::ZeroConcentrated, &q("1e-6")).unwrap().bounds;
    assert!(best.lower <= concentrated.upper, "{best:?}, {concentrated:?}");
}

/// ε(0) = Σε, and 0.55 as a double is a little more.
#[test]
fn lower_bounds_of_sums_are_rounded_down() {
    for (losses, sum) in [("pure(0.1)*3 + pure(0.25)", "0.55"), ("group(7, pure(0.3))", "2.1")] {
        assert!(exact(epsilon(losses, "0").lower) <= q(sum), "{losses}");
    }
}

/// Σε is where basic composition holds.
#[test]
fn basic_composition_holds_at_the_sum() {
    for (losses, sum) in [("pure(0.1)*3 + pure(0.25)", "0.55"), ("approx(epsilon=0.1, delta=1e-6)*3", "0.3")]
    {
        let account = Account::of(&losses.parse().unwrap()).unwrap();
        assert!(account.delta_by(Method::Basic, &q(sum)).unwrap().bounds.upper < 1e-5, "{losses}");
    }
}

/// Far out, where δ is smaller than every double.
#[test]
fn nothing_is_lost_far_out() {
    for epsilon in ["40", "100", "1000"] {
        assert!(delta("gaussian(sigma=1)", epsilon).upper < 1e-290);
    }
    for epsilon in ["100", "1000"] {
        assert!(delta("subsampled(0.01, gaussian(sigma=1))*1000", epsilon).upper < 1e-290);
    }
    assert!(epsilon("gaussian(sigma=1)", "1e-400").upper < 50.0);
}

/// An everyday question; the lower bound is no number.
#[test]
fn sampled_gaussian_noise_is_answered_at_every_epsilon() {
    for epsilon in ["1", "2", "4", "7", "10"] {
        let answer = delta("subsampled(0.01, gaussian(sigma=9/4))*924", epsilon);
        assert!(answer.lower >= 0.0 && answer.upper < 1e-3, "{epsilon}: {answer:?}");
    }
}

#[test]
fn questions_beyond_every_double_are_answered() {
    for epsilon in ["1e308", "1e400"] {
        assert!(delta("gaussian(sigma=1)", epsilon).upper < 1e-290);
        assert!(delta("subsampled(0.01, gaussian(sigma=1))*1000", epsilon).upper < 1e-290);
    }
    assert!(delta("gaussian(sigma=1e200)", "0").upper < 1e-150);
}

#[test]
fn sizes_beyond_reason_are_no_panic() {
    for losses in
        ["gaussian(sigma=1e-9)", "laplace(epsilon=0.1)*9007199254740992", "pure(1)*9007199254740992"]
    {
        let answer = Account::of(&losses.parse().unwrap()).and_then(|account| account.epsilon(&q("1e-6")));
        assert!(answer.is_ok_and(|answer| answer.bounds.upper > 1e8), "{losses}");
    }
    assert!(epsilon("gaussian(sigma=30)*1000000", "0.999999999999").upper < 1e4);
}

/// Each of these once took minutes, or gave no answer.
#[test]
fn questions_that_once_went_on_for_ever_are_answered() {
    let questions = [
        ("gaussian(sigma=0.001)", "1e-6"),
        ("subsampled(0.5, gaussian(sigma=0.1))*3", "1e-6"),
        ("subsampled(0.5, gaussian(sigma=0.02))", "1e-6"),
        ("subsampled(1e-12, gaussian(sigma=1))*1000000000", "1e-12"),
        ("subsampled(1e-300, gaussian(sigma=1))*1000", "1e-6"),
        ("group(100, subsampled(0.01, gaussian(sigma=5)))*10", "1e-6"),
    ];
    for (losses, delta) in questions {
        assert!(epsilon(losses, delta).upper.is_finite(), "{losses}");
    }
    assert!(delta("zcdp(1e-9)*5 + laplace(scale=3)", "1").upper < 1e-6);
    let account = Account::of(&"subsampled(0.01, gaussian(sigma=1))*10".parse().unwrap()).unwrap();
    assert!(account.renyi(&q("500")).unwrap()[0].upper.is_finite());
    assert_eq!(account.renyi(&q("100000")).unwrap_err().code(), "accounting.order");
}

/// e^ε is no double here, and the loss is there all the same.
#[test]
fn sampled_losses_beyond_every_exponential_are_not_forgotten() {
    assert!(epsilon("subsampled(0.5, pure(1000))", "1e-6").upper > 999.0);
    assert!(epsilon("subsampled(0.5, gaussian(sigma=0.02))", "1e-6").upper > 1250.0);
    assert!(delta("subsampled(0.5, gaussian(sigma=0.02))", "1000").upper > 0.49);
}

/// The moments of rare samples were computed without outputs whose probabilities no double can hold, and
/// ε was said to be at least 0.096.
#[test]
fn rare_samples_are_not_said_to_cost_more_than_they_do() {
    let losses = "subsampled(0.000001, gaussian(sigma=2))*10000";
    assert!(delta(losses, "0.05").upper < 1e-9);
    assert!(epsilon(losses, "1e-9").lower <= 0.05);
}

/// With a person added δ is below every double; the grid overflowed there, and δ was said to be at least 1.
#[test]
fn what_overflows_on_the_grid_is_no_lower_bound() {
    let losses = "subsampled(0.01, gaussian(sigma=4.75))*1561 + subsampled(0.01, gaussian(sigma=0.5))*956";
    let account = Account::of(&losses.parse().unwrap()).unwrap();
    let best = account.delta(&q("13.22")).unwrap().bounds;
    assert!(best.upper < 1e-5 && best.relative_width() < 1e-9, "{best:?}");
    let grid = account.delta_by(Method::Grid, &q("13.22")).unwrap().bounds;
    assert!(grid.lower <= best.upper && best.lower <= grid.upper, "{grid:?} and {best:?}");
}

/// Losses on coarse lattices add up to one on a fine lattice, and F rises again and again along its line.
#[test]
fn lattices_of_different_steps_are_counted_exactly() {
    let questions = [
        (
            "discrete_laplace(scale=2, sensitivity=2)*27 + discrete_laplace(scale=6, sensitivity=3)*8 \
             + randomized_response(epsilon=13/8, categories=2)*27 + randomized_response(epsilon=9/8, categories=8)*13",
            "50.62",
        ),
        (
            "unary_encoding(5/4)*29 + discrete_laplace(scale=2, sensitivity=3)*21 \
             + discrete_laplace(scale=6, sensitivity=1)*25 + randomized_response(epsilon=11/8, categories=5)*11",
            "34.907",
        ),
    ];
    for (losses, epsilon) in questions {
        let bounds = delta(losses, epsilon);
        assert!(bounds.relative_width() < 1e-9, "{losses}: {bounds:?}");
        let account = Account::of(&losses.parse().unwrap()).unwrap();
        let grid = account.delta_by(Method::Grid, &q(epsilon)).unwrap().bounds;
        assert!(
            grid.lower <= bounds.upper && bounds.lower <= grid.upper,
            "{losses}: {grid:?} and {bounds:?}"
        );
    }
}

/// The errors of nodes were counted in full, though what they are multiplied with is no larger than the lattice's step.
#[test]
fn fine_lattices_are_counted_as_exactly_as_coarse_ones() {
    // Sums over thousands of atoms are rounded, ten thousand times.
    for (losses, epsilon, width) in [
        ("discrete_gaussian(sigma=100)*30", "0.2", 1e-9),
        ("discrete_gaussian(sigma=50)*2", "0.14", 1e-9),
        ("discrete_gaussian(sigma=100)*10000", "8", 1e-6),
    ] {
        let bounds = delta(losses, epsilon);
        assert!(bounds.relative_width() < width, "{losses}: {bounds:?}");
        // Noise on whole numbers hides a little better than the continuous law of the same σ.
        let smooth = delta(&losses.replace("discrete_", ""), epsilon);
        assert!(
            bounds.lower > 0.999 * smooth.lower && bounds.upper < 1.001 * smooth.upper,
            "{losses}: {bounds:?} {smooth:?}"
        );
    }
}

/// The moment at −1, which is known, was cut off with the person added: for strong signals on a sample Rényi divergences of that
/// direction were below the truth, by three quarters at σ = 0.1.
#[test]
fn moments_with_the_person_added_are_not_cut_off() {
    for (losses, order, truth) in [
        ("subsampled(0.01, gaussian(sigma=0.1))", "2", 0.010_050_295_124_865_56),
        ("subsampled(0.01, gaussian(sigma=0.2))", "2", 0.009_358_141_614_112_843),
        ("subsampled(0.1, gaussian(sigma=0.3))", "4", 0.090_526_878_123_338_85),
        ("subsampled(0.001, gaussian(sigma=0.5))", "3", 0.000_046_766_585_594_312_03),
        ("subsampled(0.5, gaussian(sigma=0.5))", "1.1", 0.351_836_343_567_005),
    ] {
        let [_, added] = Account::of(&losses.parse().unwrap()).unwrap().renyi(&q(order)).unwrap();
        let digit = 1e-15 * truth;
        assert!(added.lower <= truth + digit && truth - digit <= added.upper, "{losses}: {added:?}");
        assert!(added.relative_width() < 1e-8, "{losses}: {added:?}");
    }
}

/// Noise that was made for a δ was said to have no ε at just that δ.
#[test]
fn what_is_made_for_a_delta_has_its_epsilon() {
    for (losses, delta, top) in [
        ("truncated_laplace(epsilon=1, delta=1e-6)", "1e-6", 1.0),
        ("truncated_laplace(epsilon=0.5, delta=1e-60)", "1e-60", 0.5),
        ("truncated_laplace(epsilon=2, delta=1e-8, sensitivity=3)", "1e-8", 2.0),
        ("truncated_laplace(epsilon=0.1, delta=0.01)", "0.01", 0.1),
        ("approx(1, 1e-6)", "1e-6", 1.0),
        ("threshold(1e-6, laplace(scale=2))", "1e-6", 0.5),
    ] {
        let found = Account::of(&losses.parse().unwrap()).unwrap().epsilon(&q(delta)).unwrap().bounds;
        assert!(found.upper >= top && found.upper < top * (1.0 + 1e-12), "{losses}: {found:?}");
        assert!(found.lower == 0.0 || found.lower > top * (1.0 - 1e-10), "{losses}: {found:?}");
        assert!(found.lower <= top);
    }
    // A little less is not enough.
    let account = Account::of(&"truncated_laplace(epsilon=1, delta=1e-6)".parse().unwrap()).unwrap();
    assert_eq!(account.epsilon(&q("9.99999999999e-7")).unwrap_err().code(), "accounting.infinite");
}

/// A profile with corners was searched by tangents, and the answer given up for the grid's.
#[test]
fn many_coarse_losses_are_answered_by_the_lattice() {
    for (losses, delta) in [
        ("pure(1)*5000", "1e-9"),
        ("pure(1)*10000", "1e-12"),
        ("pure(0.001)*1000000000", "1e-6"),
        ("discrete_gaussian(sigma=50)*1000000", "1e-9"),
    ] {
        let found = Account::of(&losses.parse().unwrap()).unwrap().epsilon(&q(delta)).unwrap();
        assert_eq!(found.method, Method::Lattice, "{losses}");
        assert!(found.bounds.relative_width() < 1e-10, "{losses}: {found:?}");
    }
}

/// At the largest loss itself, which no double is, nothing but infinite losses is left.
#[test]
fn nothing_is_above_the_largest_loss() {
    let found = delta("truncated_laplace(epsilon=0.1, delta=1e-9)*5", "0.5");
    assert!(found.upper < 5.000_000_000_1e-9 && found.relative_width() < 1e-12, "{found:?}");
}

/// Sums on no lattice, or on a very fine one, were left to the grid: 10⁻⁶ to 10⁻² wide. The grid still agrees.
#[test]
fn mixtures_of_different_steps_are_narrow() {
    for (losses, at) in [
        ("discrete_gaussian(sigma=0.461) + pure(0.115)*9 + laplace(epsilon=2.71)", "1.23e-10"),
        ("laplace(epsilon=0.667) + laplace(scale=40.8)*8 + laplace(epsilon=0.0346)*60", "2.85e-8"),
        (
            "randomized_response(epsilon=0.986)*4 + unary_encoding(epsilon=2.18)*39 + discrete_gaussian(sigma=16.2)",
            "4.37e-5",
        ),
        ("subsampled(0.0311, discrete_gaussian(sigma=1.15))*8", "5.57e-9"),
        ("discrete_gaussian(sigma=2.51)*2 + subsampled(0.00699, gaussian(sigma=1.93))", "1.24e-7"),
        ("subsampled(0.00965, randomized_response(epsilon=0.395))*6", "1.03e-12"),
    ] {
        let account = Account::of(&losses.parse().unwrap()).unwrap();
        let found = account.epsilon(&q(at)).unwrap().bounds;
        assert!(found.relative_width() < 1e-9, "{losses}: {found:?}");
        let grid = account.epsilon_by(Method::Grid, &q(at)).unwrap().bounds;
        assert!(grid.lower <= found.upper && found.lower <= grid.upper, "{losses}: {found:?} {grid:?}");
    }
}

/// Few uses of Laplace noise on a sample were left to the grid as well.
#[test]
fn few_laplaces_on_a_sample_are_narrow() {
    for (losses, at) in [
        ("subsampled(0.089, laplace(scale=1.73))*2", "9.61e-6"),
        ("subsampled(0.13, laplace(scale=3.76))*7", "6.13e-6"),
        ("subsampled(0.22, truncated_laplace(scale=1.06, bound=13.9))*3", "1e-5"),
    ] {
        let account = Account::of(&losses.parse().unwrap()).unwrap();
        let found = account.epsilon(&q(at)).unwrap().bounds;
        assert!(found.relative_width() < 5e-9, "{losses}: {found:?}");
        let grid = account.epsilon_by(Method::Grid, &q(at)).unwrap().bounds;
        assert!(grid.lower <= found.upper && found.lower <= grid.upper, "{losses}: {found:?} {grid:?}");
    }
}

/// Where δ is a small part of what cancels along the path, doubles left few of its digits or none.
#[test]
fn rare_samples_keep_their_digits_at_small_delta() {
    for (losses, at) in [
        ("subsampled(0.001, gaussian(sigma=5))*2", "1e-12"),
        ("subsampled(0.0011, gaussian(sigma=1.12))*12", "1e-12"),
        ("subsampled(0.0001, gaussian(sigma=2))*50", "1e-11"),
    ] {
        let found = epsilon(losses, at);
        assert!(found.relative_width() < 2e-9, "{losses}: {found:?}");
    }
    for (losses, at) in [
        ("subsampled(0.0011, gaussian(sigma=1.12))*12", "0.111"),
        ("subsampled(0.0893, gaussian(sigma=2.35))*3", "1.27"),
    ] {
        let found = delta(losses, at);
        assert!(found.relative_width() < 1e-8, "{losses}: {found:?}");
    }
}

/// ε is infinite on one side of the bound that is sought, and secants crept towards it.
#[test]
fn bounds_of_truncated_noise_are_the_least() {
    use demur_accounting::calibrate::{Setting, Target, Unknown, calibrate};
    for (epsilon, delta) in [("1.95", "6.76e-11"), ("0.0969", "3.06e-8"), ("8", "1e-4"), ("1", "1e-6")] {
        let target = Target { epsilon: q(epsilon), delta: q(delta) };
        let setting = Setting { sensitivity: q("1"), steps: 1, rate: q("1"), sigma: None };
        let found = calibrate(Unknown::TruncatedLaplace, &target, &setting).unwrap();
        let (e, d): (f64, f64) = (epsilon.parse().unwrap(), delta.parse().unwrap());
        let least = (e.exp_m1() / (2.0 * d)).ln_1p() / e;
        let above = found.value / least - 1.0;
        assert!((-1e-14..1e-9).contains(&above), "{epsilon} {delta}: {found:?} {least}");
    }
}

/// Everybody may be sampled where that is private; a rate above 1 was tried.
#[test]
fn a_rate_of_one_is_found() {
    use demur_accounting::calibrate::{Setting, Target, Unknown, calibrate};
    let target = Target { epsilon: q("5.22"), delta: q("1.08e-7") };
    let setting = Setting { sensitivity: q("1"), steps: 1, rate: q("1"), sigma: Some(q("1.83")) };
    assert_eq!(calibrate(Unknown::Rate, &target, &setting).unwrap().value, 1.0);
}

/// Heavy atoms beside noise on samples left these to the grid, which knew 3 to 7 digits and is asked here whether it agrees.
#[test]
fn heavy_atoms_beside_sampled_noise_are_known_to_nine_digits() {
    for (losses, at) in [
        ("subsampled(0.001, gaussian(sigma=1))*1000 + randomized_response(epsilon=1.5)", "1e-10"),
        ("subsampled(0.01, gaussian(sigma=3))*3 + discrete_laplace(scale=3, sensitivity=2)*5", "1e-3"),
        ("subsampled(0.05, gaussian(sigma=1))*4 + pure(0.3) + pure(0.47)*2", "1e-8"),
    ] {
        let found = epsilon(losses, at);
        assert!(found.relative_width() < 1e-9, "{losses}: {found:?}");
        let account = Account::of(&losses.parse().unwrap()).unwrap();
        let grid = account.epsilon_by(Method::Grid, &q(at)).unwrap().bounds;
        assert!(grid.lower <= found.upper && found.lower <= grid.upper, "{losses}: {found:?} {grid:?}");
    }
}

/// Rare samples of Laplace noise took half a minute, and small δ of Laplace noise went to the grid.
#[test]
fn laplace_noise_is_inverted_on_rare_samples_and_near_its_largest_loss() {
    for (losses, at) in [
        ("subsampled(0.005, laplace(scale=0.5))*20", "1e-5"),
        ("subsampled(0.000555, laplace(scale=1.62))*568", "1e-7"),
        ("laplace(epsilon=1.3)*2", "1e-15"),
        ("laplace(epsilon=2)*3 + discrete_gaussian(sigma=4)", "1e-20"),
    ] {
        let account = Account::of(&losses.parse().unwrap()).unwrap();
        let found = account.epsilon(&q(at)).unwrap();
        assert_eq!(found.method, Method::Inversion, "{losses}");
        assert!(found.bounds.relative_width() < 5e-9, "{losses}: {found:?}");
    }
}

/// Two uses of bits on samples of one in four: no two mechanisms of a family cost more than the upper bound, and what is said to be paid
/// at least is paid by two of them. The laws of such samples, composed, say more than anybody pays.
#[test]
fn composed_samples_without_replacement_claim_what_some_mechanism_pays() {
    let (rate, most) = (0.25, 1f64.exp());
    let usual = [1.0 / (1.0 + most), most / (1.0 + most)];
    let bits: Vec<f64> = (1..10).map(|tenth| f64::from(tenth) / 10.0).chain(usual).collect();
    let near = |a: f64, b: f64| {
        [a / b, (1.0 - a) / (1.0 - b)]
            .iter()
            .all(|ratio| (-1.0..=1.0).contains(&(ratio.ln() / (1.0 + 1e-12))))
    };
    // with the record, with the other one, and with neither
    let mut pairs = vec![];
    for &a in &bits {
        for &b in &bits {
            for &neither in bits.iter().filter(|r| near(a, **r) && near(b, **r) && near(a, b)) {
                let output = |sampled: f64| (1.0 - rate) * neither + rate * sampled;
                pairs.push((output(a), output(b)));
            }
        }
    }
    let both = "without_replacement(1, 4, randomized_response(epsilon=1))*2";
    for epsilon in ["0", "0.1", "0.3", "0.5", "0.6"] {
        let grown: f64 = epsilon.parse::<f64>().unwrap().exp();
        let paid = |one: &(f64, f64), two: &(f64, f64)| -> f64 {
            let outputs = |bits: [f64; 2]| bits.map(|bit| [bit, 1.0 - bit]);
            let ([p1, p2], [q1, q2]) = (outputs([one.0, two.0]), outputs([one.1, two.1]));
            (0..4).map(|at| (p1[at / 2] * p2[at % 2] - grown * q1[at / 2] * q2[at % 2]).max(0.0)).sum()
        };
        let largest = pairs
            .iter()
            .flat_map(|one| pairs.iter().map(move |two| (one, two)))
            .map(|(one, two)| paid(one, two));
        let largest = largest.fold(0.0, f64::max);
        let found = delta(both, epsilon);
        assert!(largest > 0.0 && largest <= found.upper * (1.0 + 1e-12), "{epsilon}: {largest} {found:?}");
        assert!(
            found.lower > 0.0 && found.lower <= largest * (1.0 + 1e-12),
            "{epsilon}: {largest} {found:?}"
        );
    }
}
