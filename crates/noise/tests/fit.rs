//! Draws follow the laws they are documented to follow.
//!
//! Every test comes in two lengths. The short one always runs: 10⁶ draws per law, and a
//! parameter wrong by 3 % must be noticed. The long one runs when `DEMUR_LONG_TESTS` is set:
//! 10⁷ draws, and 1 % must be noticed. "Noticed" is tested too: the same draws are compared
//! with the law of the wrong parameter, and that comparison has to fail.
//!
//! **False alarm.** 1e-9 for each of about 200 comparisons.
//!
//! **Power.** A parameter wrong by a share d moves the statistic by n·d²·I, where I ≈ 1 is the
//! law's information about its scale: by about 1000 in both lengths, more than 20 times the
//! statistic's standard deviation √(2·cells). It is missed with a probability far below 1e-9.
//!
//! Seeds are fixed; `DEMUR_SEED` changes them.

#![expect(clippy::unwrap_used, reason = "a failing test may fail anywhere")]

use demur_core::{Delta, Epsilon};
use demur_exact::Rational;
use demur_noise::{
    Bernoulli, Calibration, DiscreteGaussian, DiscreteLaplace, Entropy, Gaussian, Laplace, Mechanism,
    Probability, RandomizedResponse, Selection, TruncatedDiscreteLaplace, TruncatedLaplace, UnaryEncoding,
};
use demur_testkit::{Cells, Seeded, chi_square, long_tests, seed};

const ALARM: f64 = 1e-9;

/// How many draws, and by what factor a parameter is off when it must be noticed.
#[derive(Clone, Copy)]
struct Length {
    draws: usize,
    wrong: f64,
}

const SHORT: Length = Length { draws: 1_000_000, wrong: 1.03 };
const LONG: Length = Length { draws: 10_000_000, wrong: 1.01 };

macro_rules! in_both_lengths {
    ($($(#[$doc:meta])* $short:ident, $long:ident: $check:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// 10⁶ draws; false alarm 1e-9; a parameter wrong by 3 % is caught with probability
        /// above 1 − 1e-9.
        #[test]
        fn $short() {
            $check(SHORT);
        }

        $(#[$doc])*
        ///
        /// 10⁷ draws; false alarm 1e-9; a parameter wrong by 1 % is caught with probability
        /// above 1 − 1e-9. Runs only when `DEMUR_LONG_TESTS` is set, and says so otherwise.
        #[test]
        fn $long() {
            if long_tests(stringify!($long)) {
                $check(LONG);
            }
        }
    )*};
}

in_both_lengths! {
    /// Scales from 2⁻²⁰ to 2⁶⁰.
    discrete_laplace_draws_follow_their_law, discrete_laplace_draws_follow_their_law_at_length: laplace;
    /// σ from 2⁻²⁰ to 2⁵⁰.
    discrete_gaussian_draws_follow_their_law, discrete_gaussian_draws_follow_their_law_at_length: gaussian;
    /// All three methods: table, Laplace proposals, uniform proposals.
    truncated_laplace_draws_follow_their_law, truncated_laplace_draws_follow_their_law_at_length: truncated;
    /// One at a time and 64 at once.
    coins_follow_their_bias, coins_follow_their_bias_at_length: coins;
    /// Two coins, two answers, many answers.
    randomized_responses_follow_their_law, randomized_responses_follow_their_law_at_length: responses;
    /// All bits of a report together.
    unary_reports_follow_their_law, unary_reports_follow_their_law_at_length: reports;
    /// Against e^(−γ)/Σe^(−γ).
    exponential_choices_follow_their_law, exponential_choices_follow_their_law_at_length: exponential;
    /// Against the sum over all orders of the candidates.
    permute_and_flip_follows_its_law, permute_and_flip_follows_its_law_at_length: permute_and_flip;
}

fn q(text: &str) -> Rational {
    text.parse().unwrap()
}

fn assert_fits(what: &str, fit: f64) {
    assert!(fit >= ALARM, "{what}: such a fit has probability {fit:e}");
}

fn assert_noticed(what: &str, fit: f64) {
    assert!(fit < ALARM, "{what}: the wrong parameter was not noticed (probability {fit:e})");
}

/// Draws fit the distribution function of `parameter`, and not that of `wrong · parameter`.
fn check_cdf<F: Fn(i128) -> f64>(
    what: &str,
    length: Length,
    parameter: f64,
    law: impl Fn(f64) -> F,
    reach: i128,
    mut draw: impl FnMut() -> i128,
) {
    let right = law(parameter);
    let mut cells = Cells::of_law(&right, -reach, reach, 200);
    (0..length.draws).for_each(|_| cells.count(draw()));
    assert_fits(what, cells.fit(&right));
    for wrong in [parameter * length.wrong, parameter / length.wrong] {
        assert_noticed(what, cells.fit(law(wrong)));
    }
}

/// Pr[Z ≤ k] of the discrete Laplace law.
fn laplace_cdf(t: f64) -> impl Fn(i128) -> f64 {
    let both = 1.0 + (-1.0 / t).exp();
    move |k| match k {
        ..0 => (k as f64 / t).exp() / both,
        0.. => 1.0 - (-(k as f64 + 1.0) / t).exp() / both,
    }
}

fn laplace(length: Length) {
    // So small a scale that a draw other than 0 would be a miracle.
    for scale in ["1/1048576", "0.01"] {
        let noise = DiscreteLaplace::new(q(scale)).unwrap();
        let mut words = Seeded::new(seed(100));
        assert!((0..length.draws).all(|_| noise.sample(&mut words) == 0));
    }
    for (i, scale) in
        ["0.5", "1", "7/3", "10", "1000", "1048576", "1e9", "1099511627776", "1152921504606846976"]
            .into_iter()
            .enumerate()
    {
        let noise = DiscreteLaplace::new(q(scale)).unwrap();
        let t = noise.scale().to_f64();
        let mut words = Seeded::new(seed(101 + i as u64));
        let mut digits = Digits::new(t);
        let draw = || {
            let value = noise.sample(&mut words);
            digits.count(value);
            value
        };
        check_cdf(&format!("scale {scale}"), length, t, laplace_cdf, (t * 60.0) as i128 + 60, draw);
        digits.check(scale);
    }
}

/// Eight bits at a time of G, where the draw is G or −1 − G.
struct Digits {
    scale: f64,
    seen: Vec<(u32, Vec<u64>)>,
    signs: [u64; 2],
}

impl Digits {
    fn new(scale: f64) -> Self {
        let places = (0..64).step_by(8).filter(|&place| f64::powi(2.0, place) < 64.0 * scale);
        let seen = places.map(|place| (place as u32, vec![0; 256])).collect();
        Self { scale, seen, signs: [0; 2] }
    }

    fn count(&mut self, value: i128) {
        let magnitude = if value < 0 { -1 - value } else { value };
        self.signs[usize::from(value < 0)] += 1;
        for (place, seen) in &mut self.seen {
            seen[(magnitude >> *place & 255) as usize] += 1;
        }
    }

    /// A digit of a geometric variable has Pr[j] ∝ r^j with r = e^(−2^place/t).
    fn check(&self, name: &str) {
        for (place, seen) in &self.seen {
            let rate = f64::from(*place).exp2() / self.scale;
            let total = (-256.0 * rate).exp_m1() / (-rate).exp_m1();
            let law: Vec<f64> = (0..256).map(|j| (-f64::from(j) * rate).exp() / total).collect();
            assert_fits(&format!("scale {name}, bits from {place} on"), chi_square(seen, &law));
        }
        let ratio = (-1.0 / self.scale).exp();
        let law = [1.0 / (1.0 + ratio), ratio / (1.0 + ratio)];
        assert_fits(&format!("scale {name}, signs"), chi_square(&self.signs, &law));
    }
}

/// Pr[Z ≤ k] of the discrete Gaussian law: summed for small σ; above, the continuous law at
/// k + ½, which differs by less than 1/24σ².
fn gaussian_cdf(sigma: f64) -> Box<dyn Fn(i128) -> f64> {
    if sigma > 2000.0 {
        let scale = sigma * std::f64::consts::SQRT_2;
        return Box::new(move |k| 0.5 * statrs::function::erf::erfc(-(k as f64 + 0.5) / scale));
    }
    let reach = (sigma * 15.0) as i128 + 15;
    let weights: Vec<f64> = (-reach..=reach).map(|k| (-0.5 * (k as f64 / sigma).powi(2)).exp()).collect();
    let total: f64 = weights.iter().sum();
    let mut sum = 0.0;
    let sums: Vec<f64> = weights
        .iter()
        .map(|w| {
            sum += w / total;
            sum
        })
        .collect();
    Box::new(move |k| match k + reach {
        ..0 => 0.0,
        place => sums.get(place as usize).copied().unwrap_or(1.0),
    })
}

fn gaussian(length: Length) {
    for variance in ["9.094947017729282379150390625e-13", "0.01"] {
        let noise = DiscreteGaussian::new(q(variance)).unwrap();
        let mut words = Seeded::new(seed(200));
        assert!((0..length.draws).all(|_| noise.sample(&mut words) == 0));
    }
    for (i, variance) in [
        "0.25",
        "1",
        "12.25",
        "100",
        "5000",
        "40000",
        "2000000",
        "1e12",
        "1e20",
        "1267650600228229401496703205376",
    ]
    .into_iter()
    .enumerate()
    {
        let noise = DiscreteGaussian::new(q(variance)).unwrap();
        let sigma = noise.variance().to_f64().sqrt();
        let mut words = Seeded::new(seed(201 + i as u64));
        // Bytes of the draw so far below σ that each value is equally likely.
        let places: Vec<u32> = (0..48).step_by(8).filter(|&p| f64::from(p + 12).exp2() < sigma).collect();
        let mut low = vec![[0u64; 256]; places.len()];
        let draw = || {
            let value = noise.sample(&mut words);
            for (place, seen) in places.iter().zip(&mut low) {
                seen[(value >> place & 255) as usize] += 1;
            }
            value
        };
        check_cdf(
            &format!("variance {variance}"),
            length,
            sigma,
            gaussian_cdf,
            (sigma * 30.0) as i128 + 30,
            draw,
        );
        for (place, seen) in places.iter().zip(&low) {
            assert_fits(
                &format!("variance {variance}, bits from {place}"),
                chi_square(seen, &[1.0 / 256.0; 256]),
            );
        }
    }
}

/// Pr[Z ≤ k] of the truncated discrete Laplace law.
fn truncated_cdf(t: f64, bound: f64) -> impl Fn(i128) -> f64 {
    // r^a + … + r^(b − 1)
    let sum = move |a: f64, b: f64| (-a / t).exp() * (-(b - a) / t).exp_m1() / (-1.0 / t).exp_m1();
    let total = sum(0.0, bound + 1.0) + sum(1.0, bound + 1.0);
    move |k| {
        let k = k as f64;
        if k < -bound {
            0.0
        } else if k < 0.0 {
            sum(-k, bound + 1.0) / total
        } else {
            1.0 - sum(k.min(bound) + 1.0, bound + 1.0) / total
        }
    }
}

fn truncated(length: Length) {
    let cases = [
        ("2", 10u64),
        ("0.5", 1),
        ("300", 900),
        ("1000", 5000),
        ("1e9", 2_000_000_000),
        ("1e6", 900_000),
        ("1152921504606846976", 1 << 60),
        ("1152921504606846976", (1 << 60) - 1),
    ];
    for (i, (scale, bound)) in cases.into_iter().enumerate() {
        let noise = TruncatedDiscreteLaplace::new(q(scale), bound).unwrap();
        let mut words = Seeded::new(seed(300 + i as u64));
        let what = format!("scale {scale}, bound {bound}");
        let (t, reach) = (noise.scale().to_f64(), i128::from(bound));
        let draw = || {
            let value = noise.sample(&mut words);
            assert!(value.abs() <= reach);
            value
        };
        // A law cut off near its scale says little about the scale: look for more.
        let flat = Length { wrong: length.wrong.powi(5), ..length };
        let length = if bound as f64 > 2.5 * t { length } else { flat };
        check_cdf(&what, length, t, |t| truncated_cdf(t, bound as f64), reach, draw);
    }
    // Almost flat: every value is as good as equally likely.
    let noise = TruncatedDiscreteLaplace::new(q("1e15"), 1023).unwrap();
    let mut words = Seeded::new(seed(350));
    let mut seen = vec![0; 2047];
    (0..length.draws).for_each(|_| seen[(noise.sample(&mut words) + 1023) as usize] += 1);
    assert_fits("flat", chi_square(&seen, &[1.0 / 2047.0; 2047]));
}

fn coins(length: Length) {
    let third = Probability::ratio(q("1/3")).unwrap();
    let rare = Probability::ratio(q("1/500")).unwrap();
    let power = Probability::exp_neg(q("1/3")).unwrap();
    let logistic = Probability::logistic(q("9"), q("-0.5")).unwrap();
    for (i, (p, expected)) in [
        (third, 1.0 / 3.0),
        (rare, 0.002),
        (power, (-1.0f64 / 3.0).exp()),
        (logistic, 1.0 / (1.0 + 9.0 * (-0.5f64).exp())),
    ]
    .into_iter()
    .enumerate()
    {
        let coin = Bernoulli::new(p.clone());
        let mut words = Seeded::new(seed(400 + i as u64));
        let trues = (0..length.draws).filter(|_| coin.sample(&mut words)).count() as u64;
        let tosses = length.draws as u64;
        check_coin(&format!("{p:?}"), length, trues, tosses, expected);

        // 64 at once: the lanes together, and each lane beside the others.
        let mut lanes = [0u64; 64];
        let mut pairs = 0;
        let mut out = vec![0; length.draws / 64];
        coin.fill(&mut words, &mut out);
        for tosses in &out {
            (0..64).for_each(|lane| lanes[lane] += tosses >> lane & 1);
            pairs += u64::from((tosses & tosses >> 1 & 0x5555_5555_5555_5555).count_ones());
        }
        let tosses = 64 * out.len() as u64;
        let trues = lanes.iter().sum();
        check_coin(&format!("{p:?}, 64 at once"), length, trues, tosses, expected);
        assert_fits("each lane", chi_square(&lanes, &[1.0 / 64.0; 64]));
        let both = [pairs, tosses / 2 - pairs];
        let law = [expected * expected, 1.0 - expected * expected];
        assert_fits("neighbouring lanes", chi_square(&both, &law));
    }
}

/// A share of so many trues is p, and not a p whose odds are off.
fn check_coin(what: &str, length: Length, trues: u64, tosses: u64, p: f64) {
    let seen = [trues, tosses - trues];
    assert_fits(what, chi_square(&seen, &[p, 1.0 - p]));
    // A rare coin is seen less often; let it be wrong by more.
    let wrong = if p < 0.1 { length.wrong.powi(10) } else { length.wrong };
    for wrong in [p * wrong, p / wrong] {
        assert_noticed(what, chi_square(&seen, &[wrong, 1.0 - wrong]));
    }
}

fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).unwrap()
}

/// The truth with e^ε/(e^ε + k − 1), any other answer with 1/(e^ε + k − 1).
fn response_law(epsilon: f64, categories: u64, truth: u64) -> Vec<f64> {
    let total = epsilon.exp() + categories as f64 - 1.0;
    (0..categories).map(|v| if v == truth { epsilon.exp() / total } else { 1.0 / total }).collect()
}

fn responses(length: Length) {
    let cases = [
        (RandomizedResponse::two_coins(), 3f64.ln()),
        (RandomizedResponse::new(2, epsilon(1.0)).unwrap(), 1.0),
        (RandomizedResponse::new(5, epsilon(2.0)).unwrap(), 2.0),
        (RandomizedResponse::new(100, epsilon(3.0)).unwrap(), 3.0),
    ];
    for (i, (response, e)) in cases.into_iter().enumerate() {
        let k = response.categories();
        for truth in [0, k - 1] {
            let mut words = Seeded::new(seed(500 + 2 * i as u64 + truth.min(1)));
            let mut seen = vec![0; k as usize];
            for _ in 0..length.draws {
                seen[response.sample(truth, &mut words).unwrap() as usize] += 1;
            }
            let what = format!("{k} answers, truth {truth}");
            assert_fits(&what, chi_square(&seen, &response_law(e, k, truth)));
            for wrong in [e * length.wrong, e / length.wrong] {
                assert_noticed(&what, chi_square(&seen, &response_law(wrong, k, truth)));
            }
        }
    }
}

fn reports(length: Length) {
    let (k, truth, e) = (5u64, 3u64, 1.5f64);
    let encoding = UnaryEncoding::new(k, epsilon(e)).unwrap();
    let mut words = Seeded::new(seed(600));
    let mut seen = vec![0u64; 1 << k];
    for _ in 0..length.draws {
        let report = encoding.sample(truth, &mut words).unwrap();
        seen[report.iter().rev().fold(0, |bits, &bit| bits << 1 | usize::from(bit))] += 1;
    }
    let law = |e: f64| -> Vec<f64> {
        let flipped = 1.0 / (e.exp() + 1.0);
        let bit = |v: u64, on: bool| match (v == truth, on) {
            (true, _) => 0.5,
            (false, true) => flipped,
            (false, false) => 1.0 - flipped,
        };
        (0..1u64 << k).map(|row| (0..k).map(|v| bit(v, row >> v & 1 == 1)).product()).collect()
    };
    assert_fits("reports", chi_square(&seen, &law(e)));
    for wrong in [e * length.wrong, e / length.wrong] {
        assert_noticed("reports", chi_square(&seen, &law(wrong)));
    }
}

const SCORES: [&[i64]; 5] =
    [&[10, 12, 3], &[0, 0, 0, 0], &[-3, 0, -1, 0, -2, -7], &[5, 4, 3, 2, 1, 0, -1], &[100, 0]];

fn check_choices(
    length: Length,
    chosen: impl Fn(&Selection, &mut Seeded) -> usize,
    law: fn(&[f64]) -> Vec<f64>,
) {
    for (i, scores) in SCORES.into_iter().enumerate() {
        let selection = Selection::new(scores, q("2/5")).unwrap();
        let mut words = Seeded::new(seed(700 + i as u64));
        let mut seen = vec![0; scores.len()];
        (0..length.draws).for_each(|_| seen[chosen(&selection, &mut words)] += 1);
        let at_rate = |rate: f64| {
            let best = *scores.iter().max().unwrap();
            let weights: Vec<f64> = scores.iter().map(|s| (-rate * (best - s) as f64).exp()).collect();
            law(&weights)
        };
        assert_fits(&format!("{scores:?}"), chi_square(&seen, &at_rate(0.4)));
        // Equal scores, or one so low that it is never chosen, say nothing about the rate.
        if scores.len() > 2 && scores != [0; 4] {
            for wrong in [0.4 * length.wrong, 0.4 / length.wrong] {
                assert_noticed(&format!("{scores:?}"), chi_square(&seen, &at_rate(wrong)));
            }
        }
    }
}

fn exponential(length: Length) {
    let law = |weights: &[f64]| {
        let total: f64 = weights.iter().sum();
        weights.iter().map(|w| w / total).collect()
    };
    check_choices(length, |selection, words| selection.exponential(words), law);

    // 1000 candidates, in several blocks of running sums.
    let scores: Vec<i64> = (0..1000).map(|i| -((i * 7919) % 1000)).collect();
    let selection = Selection::new(&scores, q("1/300")).unwrap();
    let mut words = Seeded::new(seed(710));
    let mut seen = vec![0; 1000];
    selection.exponential_many(&mut words, length.draws).into_iter().for_each(|chosen| seen[chosen] += 1);
    let weights: Vec<f64> = scores.iter().map(|&s| (s as f64 / 300.0).exp()).collect();
    assert_fits("1000 candidates", chi_square(&seen, &law(&weights)));
}

/// Permute-and-flip from its definition: in every order of the candidates, each with the same
/// probability, the first whose coin succeeds.
fn permute_and_flip_law(biases: &[f64]) -> Vec<f64> {
    let mut law = vec![0.0; biases.len()];
    let mut orders = 0.0;
    let mut visit = |order: &[usize]| {
        orders += 1.0;
        let mut none = 1.0;
        for &candidate in order {
            law[candidate] += none * biases[candidate];
            none *= 1.0 - biases[candidate];
        }
    };
    permutations(&mut (0..biases.len()).collect::<Vec<_>>(), 0, &mut visit);
    law.iter().map(|p| p / orders).collect()
}

fn permutations(items: &mut [usize], from: usize, visit: &mut impl FnMut(&[usize])) {
    if from == items.len() {
        return visit(items);
    }
    for i in from..items.len() {
        items.swap(from, i);
        permutations(items, from + 1, visit);
        items.swap(from, i);
    }
}

/// Mechanisms take their noise from the operating system alone, so these draws are fresh each
/// time: a false alarm once in 10⁸ runs. 200 000 releases of each; a scale wrong by 10 % is
/// caught with probability above 1 − 1e-9.
#[test]
fn releases_are_the_answer_plus_the_stated_noise() {
    let draws = 200_000;
    let mut entropy = Entropy::from_os().unwrap();
    let delta = Delta::new(1e-3).unwrap();
    let integer: [(&str, &dyn Mechanism, f64); 3] = [
        ("Laplace", &Laplace::integer(q("2"), epsilon(0.5)).unwrap(), 4.0),
        ("truncated", &TruncatedLaplace::integer(q("2"), epsilon(0.5), delta).unwrap(), 4.0),
        ("Gaussian", &gaussian_mechanism(), gaussian_mechanism().sigma()),
    ];
    for (name, mechanism, scale) in integer {
        let law = |scale: f64| -> Box<dyn Fn(i128) -> f64> {
            match name {
                "Laplace" => Box::new(laplace_cdf(scale)),
                // τ = ⌈4·ln((e^½ − 1 + 2δ)/(δ(1 + r)))⌉ − 1, from the definition.
                "truncated" => Box::new(truncated_cdf(scale, 23.0)),
                _ => gaussian_cdf(scale),
            }
        };
        let length = Length { draws, wrong: 1.1 };
        let release = || mechanism.release(1_000_000, &mut entropy).unwrap().value().steps() - 1_000_000;
        check_cdf(name, length, scale, law, 200, release);
    }

    // Real numbers: 0.1 moved by at most 0.1 at ε = 1, in steps of 2⁻²⁴.
    let mechanism = Laplace::real(q("0.1"), epsilon(1.0)).unwrap();
    assert_eq!(mechanism.lattice().exponent(), -24);
    let answer = mechanism.lattice().quantise(41.3).unwrap();
    let steps = || mechanism.release_real(41.3, &mut entropy).unwrap().value().steps() - i128::from(answer);
    let scale = 0.1 * f64::exp2(24.0);
    check_cdf("real", Length { draws, wrong: 1.1 }, scale, laplace_cdf, (60.0 * scale) as i128, steps);
}

fn gaussian_mechanism() -> Gaussian {
    Gaussian::integer(q("2"), epsilon(0.5), Delta::new(1e-3).unwrap(), Calibration::Analytic).unwrap()
}

fn permute_and_flip(length: Length) {
    check_choices(length, |selection, words| selection.permute_and_flip(words), permute_and_flip_law);
}
