//! Intervals hold as often as they say, and are not absurdly wide.

use demur_core::Sensitivity;
use demur_exact::Rational;
use demur_noise::{DiscreteGaussian, DiscreteLaplace, Entropy};

use super::*;
use crate::Item;

fn one() -> Item {
    Item::new("x", 1, Sensitivity::scalar(Rational::one()).unwrap())
}

fn laplace(scale: &str) -> Noise {
    Noise::laplace(&one(), scale.parse().unwrap()).unwrap()
}

fn gaussian(variance: &str) -> Noise {
    Noise::gaussian(&one(), variance.parse().unwrap()).unwrap()
}

fn draws(noise: &Noise, count: usize) -> Vec<i128> {
    let mut out = vec![0; count];
    noise.fill(&mut Entropy::from_os().unwrap(), &mut out);
    out
}

/// Pr[|Z + U| > s]: beyond the cell of s, and the part of it that is.
fn smoothed(s: f64, pmf: impl Fn(i128) -> f64, tail: impl Fn(f64) -> f64) -> f64 {
    let cell = (s + 0.5).floor();
    let inside = (cell + 0.5 - s).min(1.0);
    match cell as i128 {
        0 => 1.0 - 2.0 * s * pmf(0),
        k => tail(k as f64) + 2.0 * pmf(k) * inside,
    }
}

#[test]
fn noise_with_a_uniform_half_is_more_peaked_than_its_likeness() {
    for scale in ["1/20", "1/3", "1", "3", "40", "1000"] {
        let law = DiscreteLaplace::new(scale.parse().unwrap()).unwrap();
        let b = peaked_scale(law.scale().to_f64());
        for i in 1..4000 {
            let s = f64::from(i) * (b + 0.2) / 100.0;
            let bound = libm::exp(-s / b);
            assert!(
                smoothed(s, |k| law.pmf(k), |s| law.tail(s)) <= bound * (1.0 + 1e-9) + 1e-300,
                "{scale} {s}"
            );
        }
    }
    for variance in ["1/4", "1/2", "1", "9/4", "5", "20", "400"] {
        let law = DiscreteGaussian::new(variance.parse().unwrap()).unwrap();
        let deviation = (law.variance().to_f64() + 0.25).sqrt();
        for i in 1..2000 {
            let s = f64::from(i) * deviation / 100.0;
            let bound = normal(s / deviation);
            let here = smoothed(s, |k| law.pmf(k), |s| law.tail(s));
            assert!(here <= bound * (1.0 + 1e-9) + 1e-300, "{variance} {s}: {here:e} {bound:e}");
        }
    }
}

/// Against sums over a fine grid.
#[test]
fn formulas_for_two_terms_are_convolutions() {
    let integral = |q: f64, b: f64, other: &dyn Fn(f64) -> f64| -> f64 {
        let step = b / 500.0;
        let beyond = |x: f64| (other((q - x).abs()) / 2.0, q - x);
        let tail = |x: f64| if beyond(x).1 > 0.0 { beyond(x).0 } else { 1.0 - beyond(x).0 };
        let density = |x: f64| libm::exp(-x.abs() / b) / (2.0 * b);
        2.0 * (-20_000..20_000)
            .map(|i| (f64::from(i) + 0.5) * step)
            .map(|x| density(x) * tail(x) * step)
            .sum::<f64>()
    };
    for (q, a, b) in [(3.0, 1.0, 0.5), (10.0, 2.0, 1.98), (0.5, 4.0, 0.1), (20.0, 3.0, 2.9)] {
        let expected = integral(q, a, &|x| libm::exp(-x / b));
        let found: f64 = weights(&[a, b]).iter().map(|(b, weight)| weight * libm::exp(-q / b)).sum();
        assert!((found - expected).abs() < 1e-4 * expected.max(1e-3), "{q} {a} {b}");
    }
    for (q, b, s) in [(3.0, 1.0, 1.0), (3.0, 1.0, 0.05), (10.0, 0.1, 4.0), (2.0, 0.01, 1.0), (30.0, 5.0, 2.0)]
    {
        let expected = integral(q, b, &|x| normal(x / s));
        let found = laplace_and_normal(q, b, s);
        assert!((found - expected).abs() < 1e-4 * expected.max(1e-3), "{q} {b} {s}: {found} {expected}");
    }
}

/// Misses of 40 000 at β = 0.05 are binomial: 2000 ± 44. More than 2300 are seen by chance with probability below 1e-10,
/// fewer than 600 only where intervals are a fifth too wide. (Noise of scale ½ is nearly always 0 or ±1, and its rounding counts.)
#[test]
fn sums_are_covered() {
    let (count, beta) = (40_000, 0.05);
    let noises = [laplace("3"), laplace("1/2"), gaussian("40"), gaussian("3")];
    for (i, j, a, b) in
        [(0, 1, 1.0, 7.0), (0, 2, 1.0, 2.0), (2, 3, 1.0, -5.0), (1, 1, 1.0, 40.0), (0, 0, 1.0, 1.0)]
    {
        let (left, right) = (draws(&noises[i], count), draws(&noises[j], count));
        let reach = reach(&[(a, &noises[i]), (b, &noises[j])], beta).unwrap();
        let missed = left.iter().zip(&right).filter(|(x, y)| {
            let interval = Interval::around(a * **x as f64 + b * **y as f64, reach);
            interval.low > 0.0 || interval.high < 0.0
        });
        let missed = missed.count();
        assert!(missed <= 2300, "{i} {j}: {missed}");
        assert!(missed >= 600 || i == 1 || j == 1, "{i} {j}: {missed}");
    }
}

/// Misses of 40 000 at β = 0.05, as above: more than 2300 by chance with probability below 1e-10, fewer than 1400 too.
#[test]
fn sums_of_many_terms_are_covered_and_narrow() {
    let count = 40_000;
    let laplace = [laplace("30"), laplace("50"), laplace("30"), laplace("80")];
    let mixed = [self::laplace("30"), self::laplace("50"), gaussian("4000")];
    let many: Vec<Noise> = (0..20).map(|_| self::laplace("40")).collect();
    for noises in [&laplace[..2], &laplace[..3], &laplace[..], &mixed[..], &many[..]] {
        let terms: Vec<_> = noises.iter().map(|noise| (1.0, noise)).collect();
        let far = reach(&terms, 0.05).unwrap();
        let drawn: Vec<_> = noises.iter().map(|noise| draws(noise, count)).collect();
        let missed =
            (0..count).filter(|&i| drawn.iter().map(|z| z[i]).sum::<i128>().abs() as f64 > far).count();
        assert!((1400..=2300).contains(&missed), "{} terms: {missed}", noises.len());
    }
}

/// False alarm below 1e-9, as above.
#[test]
fn averages_are_covered_and_narrow() {
    let runs = 40_000;
    for (sum, count, [low, centre, high], n, mean) in [
        (laplace("200"), laplace("4"), [0.0, 50.0, 100.0], 300, 71),
        (gaussian("90000"), gaussian("40"), [0.0, 0.0, 1000.0], 200, 640),
        (gaussian("90000"), laplace("3"), [-500.0, 0.0, 500.0], 40, -490),
        (laplace("100"), laplace("2"), [0.0, 50.0, 100.0], 5, 99),
    ] {
        let ratio = Ratio::new(&sum, &count, [low, centre, high], 0.05).unwrap();
        let (s, c) = (draws(&sum, runs), draws(&count, runs));
        let truth = i128::from(n) * (i128::from(mean) - centre as i128);
        let mut missed = 0;
        let mut width = 0.0;
        for (s, c) in s.iter().zip(&c) {
            let interval = ratio.interval(truth + s, i128::from(n) + c);
            let middle = ratio.value(truth + s, i128::from(n) + c);
            assert!(low <= interval.low && interval.low <= interval.high && interval.high <= high);
            assert!((low..=high).contains(&middle));
            let covered = interval.low <= f64::from(mean) && f64::from(mean) <= interval.high;
            missed += usize::from(!covered);
            width += interval.width() / runs as f64;
        }
        assert!(missed <= 2300, "{mean}: {missed}");
        // About what linearising gives, where the count is well above its noise.
        let slope = f64::from(mean) - centre;
        let linear = (sum.standard_deviation().powi(2) + (slope * count.standard_deviation()).powi(2)).sqrt();
        assert!(n < 100 || width < 1.35 * 4.0 * linear / f64::from(n), "{mean}: {width}");
    }
}

#[test]
fn a_group_of_nobody_says_nothing() {
    let ratio = Ratio::new(&laplace("100"), &laplace("2"), [-5.0, 10.0, 90.0], 0.05).unwrap();
    for (sum, count) in [(0, 0), (500, -3), (-40, 2), (1_000_000, 1)] {
        assert_eq!(ratio.interval(sum, count), Interval { low: -5.0, high: 90.0 });
        assert!((-5.0..=90.0).contains(&ratio.value(sum, count)));
    }
}

/// Chords lie above q(r), so that interpolation is safe.
#[test]
fn the_reach_of_a_ratio_is_convex() {
    for (sum, count) in [
        (laplace("20"), laplace("2")),
        (gaussian("400"), gaussian("4")),
        (gaussian("400"), laplace("2")),
        (laplace("20"), gaussian("9")),
    ] {
        let ratio = Ratio::new(&sum, &count, [-60.0, 0.0, 100.0], 0.05).unwrap();
        for three in ratio.reach.windows(3) {
            assert!(three[1].1 <= (three[0].1 + three[2].1) / 2.0 + 1e-6, "{three:?}");
        }
        let steepest = ratio.reach.windows(2).map(|two| (two[1].1 - two[0].1) / (two[1].0 - two[0].0));
        assert!(steepest.fold(0.0, |a: f64, b| a.max(b.abs())) <= ratio.count * (1.0 + 1e-9));
    }
}

#[test]
fn known_bounds_cut_an_interval() {
    let interval = Interval { low: -3.0, high: 8.0 };
    assert_eq!(interval.within(0.0, 5.0), Interval { low: 0.0, high: 5.0 });
    assert_eq!(interval.within(9.0, 10.0), Interval { low: 9.0, high: 9.0 });
    assert!(reach(&[(1.0, &laplace("1"))], 1.0).is_err());
}

/// Of noise that is none, and where nothing can be computed.
#[test]
fn the_least_reach_is_found_where_there_is_nothing_to_find() {
    assert!(least(0.05, 0.0, |_| 0.0) <= f64::MIN_POSITIVE);
    assert!(least(0.05, 0.0, |_| f64::NAN) <= f64::MIN_POSITIVE);
    assert!(least(0.05, 1.0, |_| 1.0) >= 1e300);
    let nothing = Spread { scales: vec![0.0], variance: 0.0, rounding: 0.0 };
    assert!(nothing.quantile(0.05).is_ok_and(|reach| reach.abs() < 1e-300));
}

#[test]
fn the_least_reach_is_enough_and_nothing_less_is() {
    use std::cell::Cell;
    let laws: [fn(f64) -> f64; 5] = [
        |q| libm::exp(-q),
        normal,
        |q| laplace_and_normal(q, 0.3, 1.0),
        |q| laplace_and_normal(q, 40.0, 1.0),
        // Two Laplace terms of nearly one scale.
        |q| weights(&[1.01, 1.0]).iter().map(|(b, weight)| weight * libm::exp(-q / b)).sum(),
    ];
    for (index, law) in laws.into_iter().enumerate() {
        for beta in [0.999, 0.5, 0.05, 1e-3, 1e-6, 1e-12] {
            for size in [1e-3, 1.0, 1e4] {
                let asked = Cell::new(0);
                let tail = |q| {
                    asked.set(asked.get() + 1);
                    law(q)
                };
                let found = least(beta, size, tail);
                assert!(law(found) <= beta, "{index} {beta} {size}: {found}");
                // Doubles keep so many digits of what cancels.
                assert!(law(found * (1.0 - 1e-9)) >= beta * (1.0 - 1e-10), "{index} {beta} {size}: {found}");
                assert!(asked.get() < 60, "{index} {beta} {size}: {} looks", asked.get());
            }
        }
    }
}
