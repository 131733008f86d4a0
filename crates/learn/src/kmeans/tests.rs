use std::ops::ControlFlow;

use demur_noise::Words;
use demur_testkit::Seeded;

use super::coreset::{normal, uniform};
use super::*;
use crate::curator::trace::{Trace, compare};

fn guarantee(epsilon: &str) -> Guarantee {
    Guarantee::new(epsilon.parse().unwrap(), "1e-6".parse().unwrap())
}

fn traced(plan: &Plan, points: &Points, seed: u64, script: Option<Vec<Vec<i128>>>) -> (Clusters, Trace) {
    let words = &mut Seeded::new(seed);
    let mut curator = plan.curator(points, words).unwrap();
    curator.trace.script = script;
    // Draws that are not noise must not depend on how much noise was drawn before.
    let clusters = run::run(plan, &mut curator, &mut |_| ControlFlow::Continue(())).unwrap();
    (clusters, std::mem::take(&mut curator.trace))
}

/// Points around random places; the last number is the loss of these places.
fn blobs(k: usize, d: usize, n: usize, deviation: f64, seed: u64) -> (Points, Vec<Vec<f64>>, f64) {
    let words = &mut Seeded::new(seed);
    let places: Vec<Vec<f64>> =
        (0..k).map(|_| (0..d).map(|_| uniform(words) * 20.0 - 10.0).collect()).collect();
    let mut values = Vec::with_capacity(n * d);
    for i in 0..n {
        values.extend(places[i % k].iter().map(|x| (x + deviation * normal(words)).clamp(-14.0, 14.0)));
    }
    let points = Points::new(d, values).unwrap();
    let cost = loss(&points, &places);
    (points, places, cost)
}

fn loss(points: &Points, centers: &[Vec<f64>]) -> f64 {
    (0..points.len()).map(|i| coreset::nearest(centers, points.row(i)).1).sum()
}

/// The places themselves lose about as little as the best centres. Measured over many seeds the ratio is below 1.1; a run that
/// misses one of the clusters has 1.5 and more.
#[test]
fn clusters_in_the_plane_and_in_ten_dimensions_are_found() {
    for (k, d, n, bound) in [(16, 2, 50_000, 1.15), (8, 10, 20_000, 1.15)] {
        let plan = Plan::new(vec![(-14.0, 14.0); d], k, Adjacency::AddRemove, 1, guarantee("1")).unwrap();
        for seed in 0..3 {
            let (points, _, best) = blobs(k, d, n, 1.0, seed);
            let (clusters, _) = traced(&plan, &points, 100 + seed, None);
            let ratio = loss(&points, &clusters.centers) / best;
            assert!(ratio < bound, "{d} dimensions, seed {seed}: {ratio}");
            assert!((clusters.sizes.iter().sum::<f64>() / n as f64 - 1.0).abs() < 0.1);
        }
    }
}

#[test]
fn no_neighbour_moves_a_sum_by_more_than_declared_and_none_changes_what_is_asked() {
    let (points, _, _) = blobs(3, 4, 60, 1.0, 5);
    let rows: Vec<Vec<f64>> = (0..60).map(|i| points.row(i).to_vec()).collect();
    let people: Vec<u128> = (0..60).map(|i| i / 3).collect();
    let here = Points::new(4, rows.concat()).unwrap().of_people(people.clone()).unwrap();
    let mut most: f64 = 0.0;
    for (adjacency, max_points) in
        [(Adjacency::AddRemove, 1), (Adjacency::AddRemove, 3), (Adjacency::Replace, 2)]
    {
        let plan = Plan::new(vec![(-14.0, 14.0); 4], 3, adjacency, max_points, guarantee("8")).unwrap();
        let (_, before) = traced(&plan, &here, 1, None);
        for person in 0..20 {
            let mut others = Vec::new();
            let mut names = Vec::new();
            for (row, &name) in rows.iter().zip(&people) {
                match (name == person, adjacency) {
                    (true, Adjacency::AddRemove) => continue,
                    (true, Adjacency::Replace) => others.extend(row.iter().map(|x| -2.0 * x)),
                    (false, _) => others.extend(row),
                }
                names.push(name);
            }
            let there = Points::new(4, others).unwrap().of_people(names).unwrap();
            let words = &mut Seeded::new(1);
            let mut first = plan.curator(&here, words).unwrap();
            first.trace.script = Some(before.answers.clone());
            run::run(&plan, &mut first, &mut |_| ControlFlow::Continue(())).unwrap();
            let first = std::mem::take(&mut first.trace);
            let (_, second) = traced(&plan, &there, 1, Some(before.answers.clone()));
            most = most.max(compare(&first, &second, plan.unit).unwrap());
        }
    }
    assert!(most > 0.3, "the comparison sees something: {most}");
}

/// The price is that of the exact composition, within the guarantee and close to it.
#[test]
fn the_loss_is_within_the_guarantee_and_close_to_it() {
    for (d, k, adjacency, max_points) in
        [(2, 16, Adjacency::AddRemove, 1), (64, 10, Adjacency::Replace, 1), (10, 8, Adjacency::AddRemove, 5)]
    {
        let plan = Plan::new(vec![(0.0, 1.0); d], k, adjacency, max_points, guarantee("1")).unwrap();
        let epsilon = Account::of(plan.loss()).unwrap().epsilon(&"1e-6".parse().unwrap()).unwrap();
        assert!(epsilon.bounds.upper <= 1.0 && epsilon.bounds.upper > 0.999, "{:?}", epsilon.bounds);
    }
}

#[test]
fn parts_of_the_budget_sum_up_to_one() {
    let sum: f64 = looks(3, 4).iter().map(|(part, _)| part).sum();
    assert!((sum - 1.0).abs() < 1e-12);
}

#[test]
fn odd_data_gives_centres_within_the_bounds() {
    let plan = Plan::new(vec![(-1.0, 2.0), (5.0, 6.0)], 4, Adjacency::AddRemove, 1, guarantee("1")).unwrap();
    let odd = [
        vec![],
        vec![0.0, 5.5],
        [f64::NAN, 5.5].repeat(100),
        [1e300, -1e300].repeat(100),
        [0.5, 5.5].repeat(5000),
    ];
    for (seed, values) in odd.into_iter().enumerate() {
        let (clusters, _) = traced(&plan, &Points::new(2, values).unwrap(), seed as u64, None);
        assert_eq!(clusters.centers.len(), 4);
        for center in &clusters.centers {
            assert!((-1.0..=2.0).contains(&center[0]) && (5.0..=6.0).contains(&center[1]), "{center:?}");
        }
    }
    let one = Plan::new(vec![(0.0, 1.0)], 1, Adjacency::Replace, 1, guarantee("1")).unwrap();
    let (clusters, _) = traced(&one, &Points::new(1, vec![0.25; 4000]).unwrap(), 1, None);
    assert!((clusters.centers[0][0] - 0.25).abs() < 0.05, "{clusters:?}");
}

#[test]
fn nonsense_is_refused() {
    let code = |bounds: Vec<(f64, f64)>, k, most, guarantee| {
        Plan::new(bounds, k, Adjacency::AddRemove, most, guarantee).unwrap_err().code()
    };
    let fine = guarantee("1");
    assert_eq!(code(vec![], 2, 1, fine), "learn.kmeans.dimensions");
    assert_eq!(code(vec![(0.0, 1.0); 257], 2, 1, fine), "learn.kmeans.dimensions");
    assert_eq!(code(vec![(1.0, 1.0)], 2, 1, fine), "learn.kmeans.bounds");
    assert_eq!(code(vec![(0.0, f64::INFINITY)], 2, 1, fine), "learn.kmeans.bounds");
    assert_eq!(code(vec![(f64::NAN, 1.0)], 2, 1, fine), "learn.kmeans.bounds");
    assert_eq!(code(vec![(0.0, 1.0)], 0, 1, fine), "learn.kmeans.clusters");
    assert_eq!(code(vec![(0.0, 1.0)], 2, 0, fine), "learn.points.per_person");
    assert_eq!(code(vec![(0.0, 1.0)], 2, 1, Guarantee::pure("1".parse().unwrap())), "learn.kmeans.pure");
    let plan = Plan::new(vec![(0.0, 1.0)], 2, Adjacency::AddRemove, 1, fine).unwrap();
    let points = Points::new(2, vec![0.0, 0.0]).unwrap();
    assert_eq!(plan.curator(&points, &mut Seeded::new(0)).err().unwrap().code(), "learn.kmeans.points");
    assert!(Seeded::new(0).word() != 0);
}
