//! Intervals of moments hold as often as they say.
//!
//! Misses of 4000 are binomial. If the true rate is between 4.5 % and 5.6 %, fewer than 3 % or more than 7.3 % are seen by chance with probability below 2e-6;
//! an interval that misses in 10 of 100 cases is caught with probability above 0.9999.

use demur_core::Sensitivity;
use demur_exact::Rational;
use demur_noise::Entropy;
use demur_plan::{Axis, Product};
use demur_tally::Step;

use super::*;
use crate::Item;
use crate::noise::Noise;

const RUNS: usize = 4000;
const MOST: usize = RUNS * 73 / 1000;

fn laplace(scale: u32) -> Noise {
    let one = Item::new("x", 1, Sensitivity::scalar(Rational::one()).unwrap());
    Noise::laplace(&one, Rational::from(scale)).unwrap()
}

fn gaussian(deviation: u32) -> Noise {
    let one = Item::new("x", 1, Sensitivity::scalar(Rational::one()).unwrap());
    Noise::gaussian(&one, Rational::from(deviation).square()).unwrap()
}

/// Columns within ±50 of their middle and ±20 of theirs, in whole steps.
fn recipe(which: Moment) -> Recipe {
    let axes = [50, 20].map(|reach| Axis { deviation: 0, step: Step::One, reach });
    let product = |middle| Product { measure: 0, step: Step::One, middle };
    let (axes, products) = match which {
        Moment::CovarPop | Moment::CovarSamp => (axes.to_vec(), vec![product(0)]),
        Moment::Corr => (axes.to_vec(), vec![product(1250), product(200), product(0)]),
        _ => (vec![axes[0]], vec![product(1250)]),
    };
    Recipe::Moments { which, count: 0, axes, products }
}

/// A group: its count, the means of both columns, their variances and their covariance.
#[derive(Clone, Copy)]
struct Group {
    count: f64,
    means: [f64; 2],
    variances: [f64; 2],
    covariance: f64,
}

impl Group {
    fn sums(&self, which: Moment) -> Vec<i128> {
        let n = self.count;
        let [x, y] = self.means.map(|mean| n * mean);
        let square = |at: usize, middle: f64| n * (self.variances[at] + self.means[at].powi(2) - middle);
        let both = n * (self.covariance + self.means[0] * self.means[1]);
        let sums = match which {
            Moment::CovarPop | Moment::CovarSamp => vec![n, x, y, both],
            Moment::Corr => vec![n, x, y, square(0, 1250.0), square(1, 200.0), both],
            _ => vec![n, x, square(0, 1250.0)],
        };
        sums.into_iter().map(|sum| sum.round() as i128).collect()
    }

    fn truth(&self, which: Moment) -> f64 {
        let sample = self.count / (self.count - 1.0);
        match which {
            Moment::VarPop => self.variances[0],
            Moment::VarSamp => self.variances[0] * sample,
            Moment::StddevPop => self.variances[0].sqrt(),
            Moment::StddevSamp => (self.variances[0] * sample).sqrt(),
            Moment::CovarPop => self.covariance,
            Moment::CovarSamp => self.covariance * sample,
            Moment::Corr => self.covariance / (self.variances[0] * self.variances[1]).sqrt(),
        }
    }
}

/// The noise of a question at ε = 1 in equal shares, where a unit brings one row.
fn noises(which: Moment, normal: bool) -> Vec<Noise> {
    let scales = match which {
        Moment::CovarPop | Moment::CovarSamp => vec![4, 200, 80, 4000],
        Moment::Corr => vec![6, 300, 120, 7500, 1200, 6000],
        _ => vec![3, 150, 3750],
    };
    scales.into_iter().map(|scale| if normal { gaussian(2 * scale) } else { laplace(scale) }).collect()
}

/// How often the truth lies outside, and how wide intervals are on average.
fn missed(group: Group, which: Moment, normal: bool) -> (usize, f64) {
    let noises = noises(which, normal);
    let laws: Vec<Spread> = noises.iter().map(Spread::of).collect();
    let recipe = recipe(which);
    let moments = Moments::new(&recipe, &laws.iter().collect::<Vec<_>>(), 0.05).unwrap();
    let mut entropy = Entropy::from_os().unwrap();
    let mut drawn = Vec::new();
    for noise in &noises {
        let mut out = vec![0; RUNS];
        noise.fill(&mut entropy, &mut out);
        drawn.push(out);
    }
    let (sums, truth) = (group.sums(which), group.truth(which));
    let (mut missed, mut width, mut said) = (0, 0.0, 0);
    for run in 0..RUNS {
        let noisy: Vec<i128> = sums.iter().zip(&drawn).map(|(sum, drawn)| sum + drawn[run]).collect();
        let Some((value, interval)) = moments.of(&noisy).unwrap() else { continue };
        said += 1;
        assert!(interval.low <= interval.high && value.is_finite());
        missed += usize::from(truth < interval.low - 1e-9 || truth > interval.high + 1e-9);
        width += interval.width();
    }
    (missed, width / f64::from(said.max(1)))
}

const LARGE: Group =
    Group { count: 20_000.0, means: [12.0, -4.0], variances: [200.0, 60.0], covariance: 70.0 };

const ALL: [Moment; 7] = [
    Moment::VarPop,
    Moment::VarSamp,
    Moment::StddevPop,
    Moment::StddevSamp,
    Moment::CovarPop,
    Moment::CovarSamp,
    Moment::Corr,
];

#[test]
fn intervals_of_large_groups_hold_as_often_as_they_say() {
    for which in ALL {
        for normal in [false, true] {
            for count in [1000.0, 20_000.0] {
                let (missed, _) = missed(Group { count, ..LARGE }, which, normal);
                println!("{which:?} {normal} {count}: covered {:.4}", 1.0 - missed as f64 / RUNS as f64);
                assert!((RUNS * 3 / 100..=MOST).contains(&missed), "{which:?} {normal} {count}: {missed}");
            }
        }
    }
}

/// Where noise dominates, intervals are wide and hold.
#[test]
fn intervals_of_small_groups_hold_at_least_as_often() {
    for which in ALL {
        for normal in [false, true] {
            for count in [3.0, 40.0, 200.0] {
                let (missed, _) = missed(Group { count, ..LARGE }, which, normal);
                println!("{which:?} {normal} {count}: covered {:.4}", 1.0 - missed as f64 / RUNS as f64);
                assert!(missed <= MOST, "{which:?} {normal} {count}: {missed}");
            }
        }
    }
}

/// About 2·1.96 standard deviations of the linear terms, for normal noise.
#[test]
fn intervals_are_no_wider_than_they_must_be() {
    let (_, width) = missed(LARGE, Moment::VarPop, true);
    let [r, v] = [LARGE.means[0], LARGE.variances[0]];
    let linear: f64 = 7500f64.powi(2) + (2.0 * r * 300.0).powi(2) + ((1250.0 - v + r * r) * 6.0).powi(2);
    let expected = 2.0 * 1.96 * linear.sqrt() / LARGE.count;
    assert!((0.98..1.02).contains(&(width / expected)), "{width} {expected}");
}

#[test]
fn estimates_without_noise_are_the_textbook_s() {
    for which in ALL {
        let quiet: Vec<Noise> = noises(which, false).iter().map(|_| laplace(1)).collect();
        let laws: Vec<Spread> = quiet.iter().map(Spread::of).collect();
        let recipe = recipe(which);
        let moments = Moments::new(&recipe, &laws.iter().collect::<Vec<_>>(), 0.05).unwrap();
        let (value, _) = moments.of(&LARGE.sums(which)).unwrap().unwrap();
        assert!((value / LARGE.truth(which) - 1.0).abs() < 1e-4, "{which:?}: {value} {}", LARGE.truth(which));
    }
}

#[test]
fn nothing_is_said_of_too_few() {
    for (which, numbers, said) in [
        (Moment::VarPop, vec![0, 5, 5], false),
        (Moment::VarPop, vec![1, 5, 5], true),
        (Moment::VarSamp, vec![1, 5, 5], false),
        (Moment::VarSamp, vec![2, 5, 5], true),
        (Moment::Corr, vec![1, 0, 0, 0, 0, 0], false),
        // A variance that is not above 0.
        (Moment::Corr, vec![100, 0, 0, -1250 * 100, 0, 0], false),
    ] {
        let noises = noises(which, false);
        let laws: Vec<Spread> = noises.iter().map(Spread::of).collect();
        let recipe = recipe(which);
        let moments = Moments::new(&recipe, &laws.iter().collect::<Vec<_>>(), 0.05).unwrap();
        let found = moments.of(&numbers).unwrap();
        assert_eq!(found.is_some(), said, "{which:?} {numbers:?}");
        if let Some((_, interval)) = found {
            // So small a group can have any variance there is.
            assert_eq!(interval, Interval { low: 0.0, high: 2500.0 });
        }
    }
}
