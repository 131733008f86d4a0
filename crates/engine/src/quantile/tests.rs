//! Quantiles are near the truth, and their intervals hold as often as they say.

use demur_core::{Delta, Epsilon, Guarantee};
use demur_noise::Entropy;

use super::*;
use crate::Wish;

fn noise(tree: &Tree, epsilon: f64, preference: Preference) -> Noise {
    let items = vec![tree.item("x", 1, 1).unwrap()];
    let guarantee = Guarantee::new(Epsilon::new(epsilon).unwrap(), Delta::new(1e-6).unwrap());
    let priced = Wish { items, keys: None, guarantee, preference }.price().unwrap();
    priced.noises()[0].clone()
}

/// Values 0 ≤ v ≤ `high` at the quantiles (i + ½)/n of a law given by its inverse.
fn sample(n: usize, high: f64, inverse: impl Fn(f64) -> f64) -> Vec<f64> {
    (0..n).map(|i| (inverse((i as f64 + 0.5) / n as f64) * high).clamp(0.0, high).floor()).collect()
}

fn cells(tree: &Tree, values: &[f64]) -> Vec<i128> {
    let mut cells = vec![0; tree.cells()];
    for value in values {
        let range = (tree.high - tree.low + 1) as f64;
        cells[((value - tree.low as f64) * tree.cells() as f64 / range) as usize] += 1;
    }
    cells
}

/// The least value with at least q of all at or below it.
fn truth(values: &[f64], q: f64) -> f64 {
    values[((q * values.len() as f64).ceil() as usize).clamp(1, values.len()) - 1]
}

fn noisy(tree: &Tree, values: &[f64], noise: &Noise, entropy: &mut Entropy) -> Vec<i128> {
    let nodes = tree.sums(&cells(tree, values)).unwrap();
    let mut added = vec![0; nodes.len()];
    noise.fill(entropy, &mut added);
    nodes.iter().zip(added).map(|(node, noise)| node + noise).collect()
}

#[test]
fn sums_are_made_of_their_cells() {
    let tree = Tree::new(0, 15, Preference::Gaussian).unwrap();
    assert_eq!((tree.cells(), tree.nodes(), tree.levels()), (16, 20, 2));
    let cells: Vec<i128> = (0..16).collect();
    let nodes = tree.sums(&cells).unwrap();
    assert_eq!(nodes[..4], [6, 22, 38, 54]);
    assert_eq!(nodes[4..], cells);
    assert_eq!(tree.sums(&[1]).unwrap_err().code(), "engine.quantile.length");
    assert_eq!(Tree::new(3, 3, Preference::Any).unwrap_err().code(), "engine.quantile.bounds");
}

/// One value more moves every level by 1, whatever the value.
#[test]
fn the_item_says_how_far_a_unit_moves_the_nodes() {
    let tree = Tree::new(0, 255, Preference::Gaussian).unwrap();
    let item = tree.item("x", 3, 2).unwrap();
    let zero = vec![0; tree.cells()];
    for moved in [[0, 0], [0, 255], [7, 8], [100, 101]] {
        let mut cells = zero.clone();
        moved.iter().for_each(|&cell| cells[cell] += 1);
        let nodes = tree.sums(&cells).unwrap();
        let (l1, l2): (i128, i128) = (nodes.iter().sum(), nodes.iter().map(|n| n * n).sum());
        let copies = Rational::from(item.copies);
        assert!(Rational::from(l1 as u64) <= item.sensitivity.l1() * &copies);
        assert!(Rational::from(l2 as u64) <= item.sensitivity.l2_squared() * &copies);
    }
    assert_eq!((item.groups, item.copies), (3, 4));
}

/// Without noise nothing is changed by fitting, and quantiles are exact up to a cell.
#[test]
fn what_fits_already_is_left_alone() {
    let tree = Tree::new(0, 999, Preference::Laplace).unwrap();
    let values = sample(2000, 999.0, |u| u * u);
    let counts = cells(&tree, &values);
    let fitted = tree.fitted(&tree.sums(&counts).unwrap());
    assert!(fitted.iter().zip(&counts).all(|(a, b)| (a - *b as f64).abs() < 1e-9));
    let blocks = blocks(&running(&fitted));
    for q in [0.0, 0.1, 0.5, 0.99, 1.0] {
        assert!((tree.value(&blocks, q) - truth(&values, q)).abs() <= 2.0, "{q}");
    }
}

/// Least squares: the residual of the fit is orthogonal to every tree of cells.
#[test]
fn the_fit_is_the_least_squares_fit() {
    let tree = Tree::new(0, 15, Preference::Gaussian).unwrap();
    let nodes: Vec<i128> = (0..20).map(|i| (i * i * 7 + 3 * i) % 23).collect();
    let fitted = tree.fitted(&nodes);
    for cell in 0..16 {
        let top = cell / 4;
        let parent: f64 = fitted[4 * top..4 * top + 4].iter().sum();
        let residual = (nodes[top] as f64 - parent) + (nodes[4 + cell] as f64 - fitted[cell]);
        assert!(residual.abs() < 1e-9, "{cell}: {residual}");
    }
}

#[test]
fn sums_that_fall_are_made_to_grow() {
    let grown = |sums: &[f64]| -> Vec<f64> {
        let blocks = blocks(sums);
        (0..sums.len()).map(|boundary| sum_at(&blocks, boundary)).collect()
    };
    assert_eq!(grown(&[0.0, 3.0, 1.0, 2.0, 5.0]), [0.0, 2.0, 2.0, 2.0, 5.0]);
    assert_eq!(grown(&[0.0, -1.0, -2.0]), [0.0, 0.0, 0.0]);
}

/// Misses of 1000 runs are binomial: if the true rate is between 3 % and 6 %, fewer than 8 or more than 93 are seen by chance with probability below 2e-5 in each of
/// 12 cases; a rate of 15 % is caught with probability above 0.9999. Quantiles at the edge of large nodes (the median of even values) are among them.
#[test]
fn intervals_hold_as_often_as_they_say() {
    let mut entropy = Entropy::from_os().unwrap();
    for (preference, n) in
        [(Preference::Laplace, 3000), (Preference::Gaussian, 3000), (Preference::Laplace, 30)]
    {
        for skew in [1, 4] {
            let tree = Tree::new(0, 9999, preference).unwrap();
            let noise = noise(&tree, 1.0, preference);
            let values = sample(n, 9999.0, |u| u.powi(skew));
            let wanted = [0.5, 0.95];
            let mut missed = [0; 2];
            for _ in 0..1000 {
                let nodes = noisy(&tree, &values, &noise, &mut entropy);
                let found = tree.quantiles(&nodes, &noise, &wanted, 0.05).unwrap();
                for ((found, q), missed) in found.iter().zip(wanted).zip(&mut missed) {
                    let truth = truth(&values, q);
                    let Interval { low, high } = found.interval;
                    assert!(0.0 <= low && low <= found.value && found.value <= high && high <= 9999.0);
                    *missed += usize::from(truth < low.floor() || truth > high);
                    assert!(n < 100 || q != 0.5 || found.interval.width() < 2500.0);
                }
            }
            println!("{preference:?} {n} {skew}: missed {missed:?} of 1000");
            // Few values leave whole ranges open.
            let least = if n < 100 { 0 } else { 8 };
            assert!(
                missed.iter().all(|missed| (least..=93).contains(missed)),
                "{preference:?} {n} {skew}: {missed:?}"
            );
        }
    }
}

/// A quantile that is the last value before a wide gap is the hardest: of 1000 more than 130 misses are seen by chance with probability below 1e-6 if the rate is 9 %.
#[test]
fn intervals_beside_gaps_hold_nearly_as_often() {
    let mut entropy = Entropy::from_os().unwrap();
    for preference in [Preference::Laplace, Preference::Gaussian] {
        let tree = Tree::new(0, 9999, preference).unwrap();
        let noise = noise(&tree, 1.0, preference);
        let values = sample(3000, 9999.0, |u| (u * 20.0).floor() / 25.0 + 0.013);
        let truth = truth(&values, 0.5);
        let missed = (0..1000)
            .filter(|_| {
                let nodes = noisy(&tree, &values, &noise, &mut entropy);
                let Interval { low, high } =
                    tree.quantiles(&nodes, &noise, &[0.5], 0.05).unwrap()[0].interval;
                truth < low.floor() || truth > high
            })
            .count();
        println!("{preference:?}: missed {missed} of 1000");
        assert!(missed <= 130, "{preference:?}: {missed}");
    }
}

/// Nobody's values have a quantile anywhere between the bounds.
#[test]
fn an_empty_group_gets_the_whole_range() {
    let tree = Tree::new(-50, 49, Preference::Laplace).unwrap();
    let noise = noise(&tree, 1.0, Preference::Laplace);
    let nodes = vec![0; tree.nodes()];
    let found = tree.quantiles(&nodes, &noise, &[0.5], 0.05).unwrap();
    assert_eq!(found[0].interval, Interval { low: -50.0, high: 49.0 });
    assert!((-50.0..=49.0).contains(&found[0].value));
    assert_eq!(tree.quantiles(&nodes, &noise, &[1.5], 0.05).unwrap_err().code(), "engine.quantile.range");
}

/// Prints the mean error in rank, as a share of all values, to compare with other mechanisms.
#[test]
#[ignore = "prints figures"]
fn errors_in_rank() {
    let mut entropy = Entropy::from_os().unwrap();
    for (name, skew) in [("uniform", 1), ("skewed", 6)] {
        for preference in [Preference::Laplace, Preference::Gaussian] {
            for n in [1000, 10_000] {
                let tree = Tree::new(0, 99_999, preference).unwrap();
                let noise = noise(&tree, 1.0, preference);
                let values = sample(n, 99_999.0, |u| u.powi(skew));
                let wanted = [0.25, 0.5, 0.95];
                println!("before fitting {:.1}", tree.rank_deviation(&noise));
                let mut errors = [0.0; 3];
                for _ in 0..200 {
                    let nodes = noisy(&tree, &values, &noise, &mut entropy);
                    let found = tree.quantiles(&nodes, &noise, &wanted, 0.05).unwrap();
                    for ((found, q), error) in found.iter().zip(wanted).zip(&mut errors) {
                        let rank = values.partition_point(|value| *value <= found.value) as f64;
                        *error += (rank - q * n as f64).abs() / 200.0;
                    }
                }
                println!("{name} {preference:?} n = {n}: mean error in rank {errors:.1?} at {wanted:?}");
            }
        }
    }
}

/// The true extreme is beyond the one that is shown but for β = 5 %: of 2000 releases more than 160 miss by chance with probability below 1e-8.
/// And what is shown is near: fewer values lie beyond than four times what noise hides.
#[test]
fn extremes_are_reached_and_near() {
    let mut entropy = Entropy::from_os().unwrap();
    for (preference, n) in
        [(Preference::Laplace, 3000), (Preference::Gaussian, 3000), (Preference::Laplace, 300)]
    {
        let tree = Tree::new(0, 9999, preference).unwrap();
        let noise = noise(&tree, 1.0, preference);
        let values = sample(n, 8000.0, |u| 0.1 + 0.8 * u * u);
        let (least, largest) = (values[0], values[n - 1]);
        let mut missed = [0, 0];
        let mut beyond = [0.0, 0.0];
        let runs = 2000;
        for _ in 0..runs {
            let nodes = noisy(&tree, &values, &noise, &mut entropy);
            let high = tree.extreme(&nodes, &noise, true, 0.05).unwrap().unwrap();
            let low = tree.extreme(&nodes, &noise, false, 0.05).unwrap().unwrap();
            missed[0] += usize::from(high.value > largest);
            missed[1] += usize::from(low.value < least);
            assert_eq!((high.interval.low, high.interval.high), (high.value, 9999.0));
            assert_eq!((low.interval.low, low.interval.high), (0.0, low.value));
            beyond[0] += values.iter().filter(|value| **value > high.value).count() as f64 / f64::from(runs);
            beyond[1] += values.iter().filter(|value| **value < low.value).count() as f64 / f64::from(runs);
        }
        println!("{preference:?} {n}: missed {missed:?} of {runs}, beyond {beyond:?}");
        assert!(missed.iter().all(|missed| *missed <= 160), "{preference:?}: {missed:?}");
        let hidden =
            4.0 * noise.standard_deviation() * (f64::from(tree.levels()) * tree.branching as f64).sqrt();
        assert!(beyond.iter().all(|beyond| *beyond < hidden), "{preference:?}: {beyond:?} {hidden}");
    }
}

/// False alarm: without values the largest is shown but for chances of 5 % at each of many boundaries, of which few are independent.
#[test]
fn extremes_of_nothing_are_not_shown() {
    let tree = Tree::new(0, 99, Preference::Laplace).unwrap();
    let noise = noise(&tree, 1.0, Preference::Laplace);
    let nothing = vec![0; tree.nodes()];
    for largest in [false, true] {
        assert_eq!(tree.extreme(&nothing, &noise, largest, 0.05).unwrap(), None);
    }
    let mut one = vec![0; tree.cells()];
    one[0] = 100_000;
    let found = tree.extreme(&tree.sums(&one).unwrap(), &noise, true, 0.05).unwrap().unwrap();
    assert_eq!(found.value, 0.0);
    let found = tree.extreme(&tree.sums(&one).unwrap(), &noise, false, 0.05).unwrap().unwrap();
    assert_eq!(found.value, 0.0);
}

#[test]
fn cells_that_are_shown_are_whole_and_add_up() {
    let mut entropy = Entropy::from_os().unwrap();
    for (cells, preference, levels) in [
        (10, Preference::Laplace, 1),
        (100, Preference::Laplace, 2),
        (20, Preference::Gaussian, 2),
        (1, Preference::Laplace, 1),
    ] {
        let tree = Tree::of_cells(0, 999, cells, preference).unwrap();
        assert_eq!((tree.cells(), tree.levels()), (cells as usize, levels));
        let noise = noise(&tree, 0.2, preference);
        let values = sample(500, 999.0, |u| u * u * u);
        for _ in 0..200 {
            let nodes = noisy(&tree, &values, &noise, &mut entropy);
            let shown = tree.buckets(&nodes).unwrap();
            assert_eq!(shown.len(), cells as usize);
            assert!(shown.iter().all(|cell| *cell >= 0.0 && cell.fract() == 0.0));
            let whole: f64 = tree.fitted(&nodes).iter().sum();
            assert!((shown.iter().sum::<f64>() - whole.max(0.0)).abs() <= 0.51);
        }
    }
}

#[test]
fn the_nearest_that_are_not_negative_keep_their_sum() {
    assert_eq!(not_negative(&[3.0, -1.0, 1.0], 3.0), [2.5, 0.0, 0.5]);
    assert_eq!(not_negative(&[-5.0, -7.0], 0.0), [0.0, 0.0]);
    assert_eq!(not_negative(&[-5.0, -7.0], 4.0), [3.0, 1.0]);
    assert_eq!(not_negative(&[1.0, 2.0], 9.0), [4.0, 5.0]);
    assert!(not_negative(&[], 1.0).is_empty());
}

/// The formula against the fit itself, which is linear: the squares of what each node adds.
#[test]
fn variances_are_those_of_the_fit() {
    for (branching, levels) in [(2, 1), (2, 3), (4, 3), (16, 2)] {
        let leaves = usize::pow(branching, levels);
        let tree = Tree { branching, levels, used: leaves, low: 0, high: leaves as i64 - 1 };
        let answers: Vec<Vec<f64>> = (0..tree.nodes())
            .map(|node| {
                let mut noisy = vec![0; tree.nodes()];
                noisy[node] = 1;
                running(&tree.fitted(&noisy))
            })
            .collect();
        for (left, right) in [(1.0, 0.0), (0.0, 1.0), (0.5, -0.5), (0.1, -0.9), (1.0, 1.0)] {
            for (first, more) in (0..=leaves).flat_map(|first| [0, 1, 2, 7, leaves].map(|more| (first, more)))
            {
                let last = (first + more).min(leaves);
                let of = |sums: &Vec<f64>| {
                    let mean = sums[first..=last].iter().sum::<f64>() / (last - first + 1) as f64;
                    left * mean + right * (sums[leaves] - mean)
                };
                let exact: f64 = answers.iter().map(|sums| of(sums).powi(2)).sum();
                let formula = tree.variance([first, last], left, right);
                assert!(
                    (exact - formula).abs() <= 1e-9 * exact,
                    "{branching}^{levels}, {first} to {last}: {exact} {formula}"
                );
            }
        }
    }
}
