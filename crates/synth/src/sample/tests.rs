//! What rows must look like.

use demur_testkit::{Seeded, chi_square};

use super::*;
use crate::Columns;
use crate::beliefs::tests::{believe, brute_force, marginal};
use crate::compression::Compression;

/// a — b — c: a and c are independent given b, and both depend on it.
fn chain(sizes: &[usize]) -> (Model, Vec<f64>) {
    let table = |rows: usize, columns: usize| {
        (0..rows * columns).map(|i| if i / columns % columns == i % columns { 1.5 } else { 0.0 }).collect()
    };
    let sets = vec![
        (ColumnSet::new([0, 1]), table(sizes[0], sizes[1])),
        (ColumnSet::new([1, 2]), table(sizes[1], sizes[2])),
    ];
    let (walk, beliefs) = believe(&sets, sizes);
    let columns = Columns::new([("a", sizes[0]), ("b", sizes[1]), ("c", sizes[2])]).unwrap();
    let compression = Compression::none(sizes);
    let model = Model { columns, compression, walk, beliefs: beliefs.unwrap(), rows: 100.0 };
    (model, brute_force(&sets, sizes))
}

fn counts(values: &[Vec<u32>], set: &ColumnSet, sizes: &[usize]) -> Vec<u64> {
    grouped(values, set, sizes).iter().map(|group| group.len() as u64).collect()
}

/// False alarm about 1e-9. The sampler that hands out values in order within groups is caught below.
#[test]
fn independent_rows_follow_the_law_of_all_columns() {
    let sizes = [3, 2, 3];
    let (model, joint) = chain(&sizes);
    let values = model.draw(200_000, Rounding::Independent, &mut Seeded::new(7)).unwrap();
    assert!(chi_square(&counts(&values, &ColumnSet::new(0..3), &sizes), &joint) > 1e-9);
}

/// Every clique's counts are within a row of their mean for each group; so pairs that are cliques are nearly exact.
#[test]
fn systematic_rows_are_as_close_as_whole_numbers_can_be() {
    let sizes = [3, 2, 3];
    let (model, joint) = chain(&sizes);
    let rows = 1000;
    let values = model.draw(rows, Rounding::Systematic, &mut Seeded::new(3)).unwrap();
    for set in [ColumnSet::new([0, 1]), ColumnSet::new([1, 2])] {
        for (&seen, p) in counts(&values, &set, &sizes).iter().zip(marginal(&joint, &set, &sizes)) {
            assert!((seen as f64 - rows as f64 * p).abs() <= 3.0, "{set}: {seen} {p}");
        }
    }
}

/// a and c must be independent given b. False alarm below 1e-9: the share of rows where both agree has a standard deviation below 0.004 here; without the shuffle
/// in each group it is off by more than 0.1 (the second half of the test does without).
#[test]
fn columns_that_are_independent_given_a_third_stay_so() {
    let sizes = [3, 2, 3];
    let (model, joint) = chain(&sizes);
    let share = |values: &[Vec<u32>]| {
        let agree = (0..values[0].len()).filter(|&row| values[0][row] == values[2][row]).count();
        agree as f64 / values[0].len() as f64
    };
    let expected: f64 = (0..18).filter(|cell| cell / 6 == cell % 3).map(|cell| joint[cell]).sum();
    let values = model.draw(20_000, Rounding::Systematic, &mut Seeded::new(5)).unwrap();
    assert!((share(&values) - expected).abs() < 6.1 * 0.004, "{} {expected}", share(&values));

    // Rows sorted by b and then a; c handed out in order within b.
    let mut rows: Vec<(u32, u32)> = (0..20_000).map(|row| (values[1][row], values[0][row])).collect();
    rows.sort_unstable();
    let mut c: Vec<(u32, u32)> = (0..20_000).map(|row| (values[1][row], values[2][row])).collect();
    c.sort_unstable();
    let naive = vec![
        rows.iter().map(|row| row.1).collect::<Vec<u32>>(),
        vec![],
        c.iter().map(|row| row.1).collect::<Vec<u32>>(),
    ];
    assert!((share(&naive) - expected).abs() > 0.1, "{} {expected}", share(&naive));
}

/// With g·p = 2.5 the number is 2 or 3, each half of the time: among 4000 draws the mean is within 0.05 but for a chance below 1e-9.
#[test]
fn systematic_numbers_are_rounded_without_bias() {
    let mut words = Seeded::new(11);
    let mut drawer = Drawer { words: &mut words, rounding: Rounding::Systematic };
    let mut sum = 0;
    for _ in 0..4000 {
        let chosen = drawer.choose(&[0.25, 0.0, 0.55, 0.2], 10);
        let firsts = chosen.iter().filter(|&&cell| cell == 0).count();
        assert!((2..=3).contains(&firsts) && chosen.len() == 10 && !chosen.contains(&1));
        sum += firsts;
    }
    assert!((f64::from(sum as u32) / 4000.0 - 2.5).abs() < 0.05);
}

#[test]
fn any_number_of_rows_can_be_drawn() {
    let (model, _) = chain(&[3, 2, 3]);
    for rows in [0, 1, 2, 17] {
        for rounding in [Rounding::Systematic, Rounding::Independent] {
            let values = model.draw(rows, rounding, &mut Seeded::new(rows as u64)).unwrap();
            assert!(values.len() == 3 && values.iter().all(|column| column.len() == rows));
        }
    }
    assert_eq!(
        model.draw(usize::MAX, Rounding::Systematic, &mut Seeded::new(0)).unwrap_err().code(),
        "synth.sample.rows"
    );
}

#[test]
fn rare_values_come_back_by_their_shares() {
    let sizes = [2];
    let (walk, beliefs) = believe(&[(ColumnSet::new([0]), vec![0.0, 0.0])], &sizes);
    let compression = Compression {
        maps: vec![vec![1, 0, 1, 1]],
        shares: vec![vec![0.5, 1.0, 0.25, 0.25]],
        sizes: vec![2],
    };
    let columns = Columns::new([("a", 4)]).unwrap();
    let model = Model { columns, compression, walk, beliefs: beliefs.unwrap(), rows: 1.0 };
    let values = model.draw(800, Rounding::Systematic, &mut Seeded::new(2)).unwrap();
    assert_eq!(counts(&values, &ColumnSet::new([0]), &[4]), [200, 400, 100, 100]);
    let shares = model.marginal(&ColumnSet::new([0])).unwrap();
    assert!(shares.iter().zip([0.25, 0.5, 0.125, 0.125]).all(|(a, b)| (a - b).abs() < 1e-12));
}
