//! The theory once more, in exact arithmetic or by another road than `mechanisms.rs`.

#![expect(clippy::unwrap_used, reason = "a failing test may fail anywhere")]

use dashu_int::IBig;
use demur_core::{Adjacency, Delta, Domain, Epsilon, PrivacyLoss, Sensitivity};
use demur_exact::{Enclosure, Rational, exp_neg};
use demur_noise::{
    Calibration, DiscreteGaussian, DiscreteLaplace, Entropy, Exponential, Gaussian, Laplace, Mechanism,
    Probability, RandomizedResponse, TruncatedLaplace, UnaryEncoding,
};
use demur_testkit::{Cells, Seeded, seed};

const BITS: usize = 300;

fn q(text: &str) -> Rational {
    text.parse().unwrap()
}

fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).unwrap()
}

fn delta(value: f64) -> Delta {
    Delta::new(value).unwrap()
}

/// Whether two enclosures can hold the same number, and are narrow enough to mean it.
fn agree(a: &Enclosure, b: &Enclosure) -> bool {
    a.lower() <= b.upper()
        && b.lower() <= a.upper()
        && a.width_in_ulps() < 1 << 20
        && b.width_in_ulps() < 1 << 20
}

fn one() -> Enclosure {
    Enclosure::integer(1, BITS)
}

/// M1: the truth is told with exactly e^ε times the probability of any other answer.
#[test]
fn an_answer_is_exactly_e_to_the_epsilon_times_likelier_when_it_is_the_truth() {
    for (categories, cost) in [(2, 0.5), (2, 3.0), (3, 1.0), (1000, 7.5)] {
        let response = RandomizedResponse::new(categories, epsilon(cost)).unwrap();
        let truth = response.truth_probability().enclose(BITS);
        let other = one().sub(&truth).div_integer(categories - 1);
        let power = exp_neg(&response.loss().pure_epsilon().unwrap(), BITS);
        assert!(agree(&truth.mul(&power), &other), "k = {categories}, ε = {cost}");
    }
    // Two coins: ¾ against ¼, and the stated cost is at least ln 3.
    let coins = RandomizedResponse::two_coins();
    assert_eq!(*coins.truth_probability(), Probability::ratio(q("3/4")).unwrap());
    let power = exp_neg(&coins.loss().pure_epsilon().unwrap(), BITS);
    let third = Enclosure::of(&q("1/3"), BITS);
    assert!(power.upper() < third.lower());
}

/// M1: of two rows that differ in two bits, one is at most (½/q)·((1 − q)/½) = e^ε times likelier.
#[test]
fn the_odds_of_a_unary_report_multiply_to_e_to_the_epsilon() {
    for cost in [0.1, 1.0, 4.0] {
        let loss = UnaryEncoding::new(9, epsilon(cost)).unwrap().loss();
        let power = exp_neg(&loss.pure_epsilon().unwrap(), BITS);
        let flipped = Probability::logistic(Rational::one(), epsilon(cost).exact()).unwrap().enclose(BITS);
        assert!(agree(&one().sub(&flipped).mul(&power), &flipped));
    }
}

/// The probabilities of 0, 1, …, n successes of independent coins.
fn successes(biases: impl Iterator<Item = f64>) -> Vec<f64> {
    let toss = |law: Vec<f64>, p: f64| {
        let shifted = [0.0].into_iter().chain(law.iter().map(move |x| x * p)).collect::<Vec<_>>();
        law.iter().map(|x| x * (1.0 - p)).chain([0.0]).zip(shifted).map(|(a, b)| a + b).collect()
    };
    biases.fold(vec![1.0], toss)
}

/// M1: for every number of people and of truths, at costs from hardly any answer to nearly all of
/// it, enumerated exactly.
#[test]
fn intervals_cover_at_any_cost() {
    for cost in [0.1, 1.0, 3.0, 8.0f64] {
        let response = RandomizedResponse::new(2, epsilon(cost)).unwrap();
        let p = cost.exp() / (cost.exp() + 1.0);
        for beta in [0.05, 0.2] {
            for n in 1..=20u64 {
                let estimates: Vec<_> =
                    (0..=n).map(|seen| response.estimate(seen, n, beta).unwrap()).collect();
                for truths in 0..=n {
                    let law = successes((0..n).map(|i| if i < truths { p } else { 1.0 - p }));
                    let fraction = truths as f64 / n as f64;
                    let covers = |i: usize| {
                        estimates[i].low <= fraction + 1e-12 && fraction <= estimates[i].high + 1e-12
                    };
                    let covered: f64 = (0..law.len()).filter(|&i| covers(i)).map(|i| law[i]).sum();
                    assert!(covered >= 1.0 - beta - 1e-12, "{covered}: {truths} of {n}, ε {cost}, β {beta}");
                }
            }
        }
    }
}

/// M2: ln of the ratio at an output y is Σ(|yᵢ − bᵢ| − |yᵢ − aᵢ|)/t: over all moves of at most Δ₁
/// and all outputs its maximum is ε, exactly.
#[test]
fn laplace_noise_on_a_vector_costs_exactly_epsilon() {
    let (l1, cost) = (3i64, epsilon(0.7));
    let mechanism = Laplace::integers(2, Rational::from(l1), cost).unwrap();
    let outputs = || (-8..=8i64).flat_map(|x| (-8..=8i64).map(move |y| (x, y)));
    let moves = || outputs().filter(|(x, y)| x.abs() + y.abs() <= l1);
    let gain = |(x, y): (i64, i64), (a, b): (i64, i64)| (x - a).abs() - x.abs() + (y - b).abs() - y.abs();
    let worst = moves().flat_map(|shift| outputs().map(move |output| gain(output, shift))).max().unwrap();
    assert_eq!(&Rational::from(worst) / mechanism.noise().scale(), cost.exact());
    assert_eq!(mechanism.loss().pure_epsilon(), Some(cost.exact()));
}

/// M2: the stated error is the least whole number of steps that does.
#[test]
fn errors_are_as_small_as_their_chance_allows() {
    for beta in [0.5, 0.05, 1e-6] {
        let laplace = Laplace::integers(50, q("3"), epsilon(0.4)).unwrap();
        let truncated = TruncatedLaplace::integer(q("2"), epsilon(0.5), delta(1e-9)).unwrap();
        let gaussian = Gaussian::integer(q("2"), epsilon(0.5), delta(1e-9), Calibration::Analytic).unwrap();
        let mechanisms: [&dyn Mechanism; 3] = [&laplace, &truncated, &gaussian];
        for mechanism in mechanisms {
            let error = mechanism.error(beta).unwrap();
            assert!(mechanism.tail(error.each) <= beta && mechanism.tail(error.each - 1.0) > beta);
            let shared = |steps| 1.0 - (1.0 - mechanism.tail(steps)).powf(mechanism.dimensions() as f64);
            assert!(
                shared(error.joint) <= beta * (1.0 + 1e-6) && shared(error.joint - 1.0) > beta * (1.0 - 1e-6)
            );
        }
    }
}

/// M2, erratum: b is the mean size E|v|, and the standard deviation is √2·b, which is larger.
#[test]
fn the_mean_size_of_laplace_noise_is_its_scale_and_its_deviation_is_not() {
    // 10⁶ seeded draws: the mean size is within 0.7 % of b but for 1e-11 (its deviation is b/10³), the
    // mean square within 2 % of 2b² (deviation √20·b²/10³).
    let noise = DiscreteLaplace::new(q("1000000")).unwrap();
    let mut words = Seeded::new(seed(900));
    let draws: Vec<f64> = (0..1_000_000).map(|_| noise.sample(&mut words) as f64 / 1e6).collect();
    let size = draws.iter().map(|v| v.abs()).sum::<f64>() / 1e6;
    let deviation = (draws.iter().map(|v| v * v).sum::<f64>() / 1e6).sqrt();
    assert!((size - 1.0).abs() < 0.007, "{size}");
    assert!((deviation - 2f64.sqrt()).abs() < 0.02 && deviation > 1.3, "{deviation}");
}

/// M4: (0, δ) for real numbers, with less noise than Δ/2δ.
#[test]
fn real_numbers_can_be_hidden_by_delta_alone() {
    for chance in [0.3, 0.01, 1e-6] {
        for dimensions in [1, 4] {
            let mechanism = Gaussian::reals(
                dimensions,
                Rational::one(),
                Epsilon::ZERO,
                delta(chance),
                Calibration::Analytic,
            );
            let sigma = mechanism.unwrap().sigma();
            let simple = Gaussian::for_delta_alone(Rational::one(), delta(chance)).unwrap();
            let least = Calibration::Analytic.sigma(Epsilon::ZERO, delta(chance)).unwrap();
            // One move is about 2²⁰/σ steps of the lattice, rounded up: that costs up to σ/2²⁰ of the noise.
            let coarse = 1.001 + least / f64::exp2(20.0);
            assert!(sigma >= least && sigma < least * coarse && sigma < simple, "{sigma}, {least}, {simple}");
        }
    }
}

/// M4: on the lattice every calibration gives at least the noise its formula asks for, and hardly more.
#[test]
fn noise_on_a_lattice_is_that_of_the_formula() {
    for calibration in [Calibration::Analytic, Calibration::Classic, Calibration::Tail, Calibration::Loose] {
        let (cost, chance) = (epsilon(0.5), delta(1e-6));
        let formula = 2.0 * calibration.sigma(cost, chance).unwrap();
        let real = Gaussian::real(q("2"), cost, chance, calibration).unwrap().sigma();
        assert!(real >= formula * (1.0 - 1e-12) && real < formula * (1.0 + 1e-4), "{}", calibration.name());
        let whole = Gaussian::integer(q("2"), cost, chance, calibration).unwrap().sigma();
        assert!((whole / formula - 1.0).abs() < 0.02, "{}: {whole} {formula}", calibration.name());
    }
}

/// M5: Z·v is normal with variance ‖v‖²σ²; 200 000 vectors of 8 coordinates.
/// False alarm 1e-9; a variance wrong by 4 % is caught with probability above 1 − 1e-9.
#[test]
fn a_product_with_a_gaussian_vector_is_normal() {
    let sigma = 1000.0;
    let noise = DiscreteGaussian::new(q("1000000")).unwrap();
    let vector = [3i128, -1, 4, 1, -5, 9, 2, -6];
    let length = (vector.iter().map(|v| v * v).sum::<i128>() as f64).sqrt();
    let cdf = |sigma: f64| {
        let scale = sigma * length * std::f64::consts::SQRT_2;
        move |k: i128| 0.5 * statrs::function::erf::erfc(-(k as f64 + 0.5) / scale)
    };
    let mut cells = Cells::of_law(cdf(sigma), -1_000_000, 1_000_000, 100);
    let mut words = Seeded::new(seed(901));
    let mut draw = [0; 8];
    for _ in 0..200_000 {
        noise.fill(&mut words, &mut draw);
        cells.count(draw.iter().zip(vector).map(|(z, v)| z * v).sum());
    }
    assert!(cells.fit(cdf(sigma)) > 1e-9);
    assert!(cells.fit(cdf(sigma * 1.04)) < 1e-9 && cells.fit(cdf(sigma / 1.04)) < 1e-9);
}

/// M6 and the notes on BLR: with Δu = 1/n and σ = 2/(nε) the cost 2Δu/σ is ε.
#[test]
fn the_sigma_of_the_notes_costs_epsilon() {
    for n in [1u32, 10, 12345] {
        let n = Rational::from(n);
        let cost = q("0.3");
        let mechanism = Exponential::with_sigma(n.recip(), &q("2") / &(&n * &cost)).unwrap();
        assert_eq!(mechanism.loss(), PrivacyLoss::Exponential { epsilon: cost });
    }
}

/// M6, erratum: a utility is the error with a minus sign. 20 000 fresh choices among errors 0, 3, 6
/// at ε = 2: the best has probability 0.951, so it is chosen between 94 % and 96.2 % of the time
/// but for 1e-9.
#[test]
fn the_candidate_with_the_least_error_is_the_likeliest() {
    let mechanism = Exponential::new(Rational::one(), epsilon(2.0)).unwrap();
    let utilities = [0.0f64, 3.0, 6.0].map(|error| -error);
    let chosen = mechanism.choose_many(&utilities, 20_000, &mut Entropy::from_os().unwrap()).unwrap();
    let share = chosen.value().iter().filter(|&&i| i == 0).count() as f64 / 20_000.0;
    assert!(share > 0.94 && share < 0.962, "{share}");
    assert_eq!(chosen.loss().pure_epsilon(), Some(q("40000")));
}

/// P1: every event about f(output) is an event about the output, so its probability changes by no
/// more than e^ε; and the release says the same cost after any number of maps.
#[test]
fn no_function_of_a_release_tells_more_than_the_release() {
    let mechanism = Laplace::integer(q("2"), epsilon(0.6)).unwrap();
    let noise = mechanism.noise();
    let functions: [fn(i128) -> i128; 4] =
        [|y| y.max(0), |y| y.rem_euclid(3), |y| y / 5, |y| i128::from(y > 1)];
    for f in functions {
        let law = |answer: i128| {
            let mut law = std::collections::BTreeMap::<i128, f64>::new();
            (-300..=300).for_each(|y| *law.entry(f(y)).or_default() += noise.pmf(y - answer));
            law
        };
        let (p, r) = (law(0), law(2));
        for (value, probability) in &p {
            let ratio = (probability / r[value]).ln().abs();
            assert!(ratio <= 0.6 + 1e-9, "{ratio}");
        }
    }
    let release = mechanism.release(7, &mut Entropy::from_os().unwrap()).unwrap();
    let cost = release.loss().clone();
    assert_eq!(release.map(|n| n.to_f64()).map(|x| x.max(0.0)).map(|x| format!("{x}")).loss(), &cost);
}

/// A known hole: a histogram moves by 1 when a record is added and by 2 when one is replaced.
/// Noise for the first, used for the second, costs twice what it says.
#[test]
fn replacing_a_record_costs_twice_what_adding_one_does() {
    let domain = Domain::new([("region", 3)]).unwrap();
    let counts = |adjacency| {
        let all = |x: &demur_core::Histogram| x.counts().iter().map(|&n| Rational::from(n)).collect();
        Sensitivity::brute_force(&domain, 3, adjacency, all).unwrap().l1().clone()
    };
    let cost = epsilon(1.0);
    let added = Laplace::integers(3, counts(Adjacency::AddRemove), cost).unwrap();
    let replaced = Laplace::integers(3, counts(Adjacency::Replace), cost).unwrap();
    assert_eq!(*replaced.noise().scale(), &q("2") * added.noise().scale());
    let really = &counts(Adjacency::Replace) / added.noise().scale();
    assert_eq!(really, &q("2") * &added.loss().pure_epsilon().unwrap());
}

/// A known hole: digits below the lattice must not survive. Two inputs that round to the same step
/// have the same outputs, and every output is a whole number of steps, also as a double.
#[test]
fn nothing_below_the_lattice_is_published() {
    let mut entropy = Entropy::from_os().unwrap();
    for sensitivity in ["1e-9", "0.1", "1", "12345.678"] {
        let mechanism = Laplace::real(q(sensitivity), epsilon(0.3)).unwrap();
        let lattice = mechanism.lattice();
        let step = lattice.value(1);
        let noise = mechanism.noise().scale().to_f64();
        assert!(noise >= f64::exp2(19.0), "the lattice is coarse: {noise} steps of noise");
        for steps in [0.0, 1e3, -77.0] {
            for inside in [-0.49, 0.0, 0.3, 0.49] {
                let answer = (steps + inside) * step;
                assert_eq!(lattice.quantise(answer).unwrap(), steps as i64);
                let number = mechanism.release_real(answer, &mut entropy).unwrap().into_value();
                assert_eq!(number.to_f64() / step, (number.to_f64() / step).round());
                assert_eq!(number.exact(), &Rational::from(IBig::from(number.steps())) * &lattice.step());
            }
        }
    }
}
