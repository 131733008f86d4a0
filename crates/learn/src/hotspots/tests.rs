use std::ops::ControlFlow;

use demur_testkit::Seeded;

use super::*;
use crate::curator::trace::{Trace, compare};

const TOWN: Rectangle = Rectangle { west: -2.0, south: 10.0, east: 6.0, north: 14.0 };

fn plan(adjacency: Adjacency, max_points: u32, epsilon: f64) -> Plan {
    Plan::new(TOWN, 5, adjacency, max_points, Epsilon::new(epsilon).unwrap()).unwrap()
}

fn traced(plan: &Plan, points: &Points, script: Option<Vec<Vec<i128>>>) -> (HotMap, Trace) {
    let words = &mut Seeded::new(1);
    let mut curator = plan.curator(points, words).unwrap();
    curator.trace.script = script;
    let map = plan.with_curator(&mut curator, &mut |_| ControlFlow::Continue(())).unwrap();
    (map, std::mem::take(&mut curator.trace))
}

fn crowd(people: u128, points_each: usize) -> (Vec<f64>, Vec<u128>) {
    let mut words = Seeded::new(9);
    let mut uniform = move || words.word() as f64 / 2f64.powi(64);
    let values = (0..people as usize * points_each)
        .flat_map(|_| [uniform() * 9.0 - 2.5, uniform() * 5.0 + 9.5])
        .collect();
    (values, (0..people).flat_map(|person| vec![person; points_each]).collect())
}

#[test]
fn no_neighbour_moves_a_grid_by_more_than_declared() {
    let (values, people) = crowd(30, 4);
    let here = Points::new(2, values.clone()).unwrap().of_people(people.clone()).unwrap();
    for max_points in [1, 3, 4] {
        for adjacency in [Adjacency::AddRemove, Adjacency::Replace] {
            let plan = plan(adjacency, max_points, 1.0);
            let (_, before) = traced(&plan, &here, None);
            for person in 0..30 {
                let mut others = Vec::new();
                let mut names = Vec::new();
                for (row, &name) in values.chunks(2).zip(&people) {
                    match (name == person, adjacency) {
                        (true, Adjacency::AddRemove) => continue,
                        (true, Adjacency::Replace) => others.extend([4.0 - row[0], 24.0 - row[1]]),
                        (false, _) => others.extend(row),
                    }
                    names.push(name);
                }
                let there = Points::new(2, others).unwrap().of_people(names).unwrap();
                let (_, after) = traced(&plan, &there, Some(before.answers.clone()));
                compare(&before, &after, plan.unit).unwrap();
            }
        }
    }
}

/// A planted bug: a person with more points than declared must be found by the comparison above.
#[test]
fn a_person_who_counts_too_often_is_noticed() {
    let (values, people) = crowd(3, 6);
    let honest = plan(Adjacency::AddRemove, 1, 1.0);
    let mut careless = honest.clone();
    careless.unit.max_points = 6; // keeps six points, with noise for one
    let here = Points::new(2, values.clone()).unwrap().of_people(people).unwrap();
    let there = Points::new(2, values[..24].to_vec()).unwrap().of_people(vec![0; 12]).unwrap();
    let (_, before) = traced(&careless, &here, None);
    let (_, after) = traced(&careless, &there, Some(before.answers.clone()));
    assert!(compare(&before, &after, honest.unit).is_err());
}

#[test]
fn the_loss_is_the_epsilon_that_was_asked_for_whatever_the_grid() {
    for depth in 1..=MAX_DEPTH {
        for adjacency in [Adjacency::AddRemove, Adjacency::Replace] {
            let plan = Plan::new(TOWN, depth, adjacency, 7, Epsilon::new(0.3).unwrap()).unwrap();
            assert_eq!(plan.loss().pure_epsilon(), Some(Epsilon::new(0.3).unwrap().exact()), "{depth}");
        }
    }
}

#[test]
fn the_measured_levels_go_from_the_cells_to_a_few_blocks() {
    assert_eq!(levels(8).collect::<Vec<_>>(), [8, 5, 2]);
    assert_eq!(levels(5).collect::<Vec<_>>(), [5, 2]);
    assert_eq!(levels(1).collect::<Vec<_>>(), [1]);
    assert_eq!(shares(3).collect::<Vec<_>>(), ["16/21", "4/21", "1/21"].map(|part| part.parse().unwrap()));
}

#[test]
fn points_go_to_their_cells_and_outsiders_nowhere() {
    assert_eq!(TOWN.cell(&[-2.0, 10.0], 5), Some(0));
    assert_eq!(TOWN.cell(&[6.0, 14.0], 5), Some(1023));
    assert_eq!(TOWN.cell(&[5.99, 10.0], 5), Some(31));
    for outside in [[-2.01, 12.0], [6.01, 12.0], [0.0, 9.9], [0.0, 14.1], [f64::NAN, 12.0]] {
        assert_eq!(TOWN.cell(&outside, 5), None);
    }
    assert_eq!(TOWN.block(5, 31, 31).north, 14.0);
}

#[test]
fn nobody_and_one_person_give_maps() {
    for points in [vec![], vec![1.0, 12.0]] {
        let points = Points::new(2, points).unwrap();
        let (map, _) = traced(&plan(Adjacency::AddRemove, 1, 0.5), &points, None);
        assert_eq!((map.counts().len(), map.side()), (1024, 32));
        assert!(map.counts().iter().all(|count| *count >= 0.0 && count.is_finite()));
    }
}

#[test]
fn grid_list_and_regions_tell_the_same() {
    let points =
        Points::new(2, [[0.3, 11.1].repeat(4000), [5.0, 13.5].repeat(2500), crowd(500, 1).0].concat())
            .unwrap();
    let (map, _) = traced(&plan(Adjacency::AddRemove, 1, 1.0), &points, None);
    let regions = map.regions();
    let total: f64 = regions.iter().map(|region| region.estimate).sum();
    assert!((total - map.total()).abs() < 1e-6 * total);
    assert!((map.range(0..32, 0..32) - map.total()).abs() < 1e-6 * total);
    assert_eq!(map.range(0..4, 40..90), 0.0);
    let spots = map.hot_spots(2, 0.05);
    assert!((spots[0].low..=spots[0].high).contains(&4000.0) && spots[0].high - spots[0].low < 60.0);
    let inside = |spot: &HotSpot, x: f64, y: f64| {
        (spot.area.west..=spot.area.east).contains(&x) && (spot.area.south..=spot.area.north).contains(&y)
    };
    assert!(inside(&spots[0], 0.3, 11.1) && inside(&spots[1], 5.0, 13.5));
    assert_eq!(map.to_geojson().matches("Feature\"").count(), regions.len());
}

/// Intervals of all 1024 cells hold together in at least 95 of 100 maps.
///
/// False alarm below 1e-9: the chance of a miss is at most 0.05, and more than 22 of 100 would have to miss.
#[test]
fn intervals_hold_for_all_cells_together() {
    let points = Points::new(2, [0.3, 11.1].repeat(200)).unwrap();
    let plan = plan(Adjacency::AddRemove, 1, 1.0);
    let hot = TOWN.cell(&[0.3, 11.1], 5).unwrap();
    let mut missed = 0;
    for seed in 0..100 {
        let words = &mut Seeded::new(seed);
        let mut curator = plan.curator(&points, words).unwrap();
        let map = plan.with_curator(&mut curator, &mut |_| ControlFlow::Continue(())).unwrap();
        let wrong = |spot: &HotSpot| {
            let truth = if spot.cell == (hot / 32, hot % 32) { 200.0 } else { 0.0 };
            !(spot.low..=spot.high).contains(&truth)
        };
        missed += usize::from(map.hot_spots(1024, 0.05).iter().any(wrong));
    }
    assert!(missed <= 22, "{missed}");
}

#[test]
fn nonsense_is_refused() {
    let epsilon = Epsilon::new(1.0).unwrap();
    let code = |area, depth, most, epsilon| {
        Plan::new(area, depth, Adjacency::AddRemove, most, epsilon).unwrap_err().code()
    };
    assert_eq!(code(Rectangle { east: -3.0, ..TOWN }, 4, 1, epsilon), "learn.hotspots.area");
    assert_eq!(code(Rectangle { north: f64::NAN, ..TOWN }, 4, 1, epsilon), "learn.hotspots.area");
    assert_eq!(
        code(Rectangle { north: f64::MAX, south: f64::MIN, ..TOWN }, 4, 1, epsilon),
        "learn.hotspots.area"
    );
    assert_eq!(code(TOWN, 0, 1, epsilon), "learn.hotspots.depth");
    assert_eq!(code(TOWN, 12, 1, epsilon), "learn.hotspots.depth");
    assert_eq!(code(TOWN, 4, 0, epsilon), "learn.points.per_person");
    assert_eq!(code(TOWN, 4, 1, Epsilon::ZERO), "learn.epsilon");
    let flat = Points::new(1, vec![1.0]).unwrap();
    assert_eq!(
        plan(Adjacency::AddRemove, 1, 1.0).curator(&flat, &mut Seeded::new(0)).err().unwrap().code(),
        "learn.hotspots.points"
    );
}

#[test]
fn who_watches_can_stop_it() {
    let points = Points::new(2, vec![0.0, 12.0]).unwrap();
    let plan = plan(Adjacency::AddRemove, 1, 1.0);
    let stopped = plan.run(&points, &mut Entropy::from_os().unwrap(), &mut |_| ControlFlow::Break(()));
    assert_eq!(stopped.unwrap_err().code(), "learn.stopped");
}
