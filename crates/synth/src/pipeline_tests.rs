//! Whole runs: neighbouring tables with equal answers, odd tables, and what a run may spend.

use std::ops::ControlFlow;

use demur_accounting::Account;
use demur_core::{Adjacency, Epsilon, Guarantee};
use demur_exact::Rational;
use demur_noise::Words;
use demur_testkit::Seeded;

use crate::curator::Noise;
use crate::curator::trace::Look;
use crate::{ColumnSet, Columns, Marginals, Model, Neighbours, Plan, Progress, SynthError, Table, Zeros};

fn guarantee(epsilon: f64, delta: f64) -> Guarantee {
    Guarantee::new(Epsilon::new(epsilon).unwrap(), demur_core::Delta::new(delta).unwrap())
}

fn plans(columns: &Columns, neighbours: impl Into<Neighbours>, epsilon: f64) -> Vec<Plan> {
    let neighbours = neighbours.into();
    let marginals = Marginals::all(columns, 2).unwrap();
    vec![
        Plan::mst(columns, neighbours, guarantee(epsilon, 1e-6)).unwrap(),
        Plan::aim(columns, neighbours, guarantee(epsilon, 1e-6), &marginals, 1 << 12).unwrap(),
        Plan::mwem(columns, neighbours, Epsilon::new(epsilon).unwrap(), &marginals, 1 << 12).unwrap(),
    ]
}

fn random_codes(columns: &Columns, rows: usize, words: &mut Seeded) -> Vec<Vec<u32>> {
    let mut codes = vec![vec![]; columns.len()];
    for _ in 0..rows {
        // Columns that depend on a common number.
        let common = words.word() % 5;
        for (column, codes) in columns.iter().zip(&mut codes) {
            let own = words.word() % 3;
            codes.push(((common + own) % column.size as u64) as u32);
        }
    }
    codes
}

/// Runs a plan on a table; with a script its answers are repeated.
fn looks(plan: &Plan, table: &Table, seed: u64, script: Option<Vec<Look>>) -> Vec<Look> {
    let mut words = Seeded::new(seed);
    let mut curator = plan.curator(table, &mut words).unwrap();
    curator.trace.script = script;
    plan.run(&mut curator, &mut |_| ControlFlow::Continue(())).unwrap();
    std::mem::take(&mut curator.trace.looks)
}

fn distances(a: &[u32], b: &[u32]) -> (u64, u64) {
    let far = a.iter().zip(b).map(|(a, b)| u64::from(a.abs_diff(*b)));
    far.fold((0, 0), |(l1, l2), far| (l1 + far, l2 + far * far))
}

/// The same answers on neighbouring tables: each count vector within its sensitivity, each score within its own. Every kind of look must also
/// reach its bound, or the test would not notice a bound that is too small.
#[test]
fn no_look_moves_by_more_than_its_sensitivity() {
    let columns = Columns::new([("a", 4), ("b", 3), ("c", 5), ("d", 2)]).unwrap();
    let (mut reached_counts, mut reached_scores) = (0, 0);
    let kinds = [
        (Adjacency::AddRemove, 1),
        (Adjacency::Replace, 1),
        (Adjacency::AddRemove, 3),
        (Adjacency::Replace, 2),
    ];
    for (adjacency, many) in kinds {
        let neighbours = Neighbours::new(adjacency, many).unwrap();
        for seed in 0..12 {
            let mut words = Seeded::new(1000 + seed);
            let rows = 30 + (words.word() % 200) as usize;
            let mut codes = random_codes(&columns, rows, &mut words);
            let row = words.word() as usize % (rows - 3);
            let unit = row..row + many as usize;
            let mut other = codes.clone();
            for (column, (codes, other)) in columns.iter().zip(codes.iter_mut().zip(&mut other)) {
                // All rows of the unit are alike, which moves the most.
                codes[unit.clone()].fill((words.word() % column.size as u64) as u32);
                match adjacency {
                    Adjacency::AddRemove => drop(other.drain(unit.clone())),
                    Adjacency::Replace => {
                        other[unit.clone()].fill((words.word() % column.size as u64) as u32)
                    }
                }
            }
            let (table, neighbour) =
                (Table::new(columns.clone(), codes).unwrap(), Table::new(columns.clone(), other).unwrap());
            for plan in plans(&columns, neighbours, 2.0) {
                let here = looks(&plan, &table, seed, None);
                let there = looks(&plan, &neighbour, seed + 50, Some(here.clone()));
                assert_eq!(here.len(), there.len(), "{plan}: equal answers lead to equal questions");
                for pair in here.iter().zip(&there) {
                    match pair {
                        (
                            Look::Measured { counts: a, noise, .. },
                            Look::Measured { counts: b, noise: same, .. },
                        ) => {
                            assert_eq!(noise, same);
                            let (l1, l2) = distances(a, b);
                            let most = (neighbours.l1(), neighbours.l2_squared());
                            assert!(l1 <= most.0.into() && l2 <= most.1.into(), "{plan}: {l1} {l2}");
                            reached_counts += u64::from((l1, l2) == (most.0.into(), most.1.into()));
                        }
                        (
                            Look::Selected { scores: a, sensitivity, .. },
                            Look::Selected { scores: b, sensitivity: same, .. },
                        ) => {
                            assert_eq!(sensitivity, same);
                            let most = sensitivity.to_f64() as u64;
                            let far = a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
                            assert!(far <= most, "{plan}: {far} {most}");
                            reached_scores += u64::from(far == most);
                        }
                        _ => panic!("{plan}: one measured, the other selected"),
                    }
                }
            }
        }
    }
    assert!(reached_counts > 100 && reached_scores > 100, "{reached_counts} {reached_scores}");
}

/// What the looks of real runs cost together, by an account that shares nothing with the allowance.
#[test]
fn runs_spend_no_more_than_was_charged() {
    let columns = Columns::new([("a", 4), ("b", 3), ("c", 5), ("d", 2)]).unwrap();
    for adjacency in [Adjacency::AddRemove, Adjacency::Replace] {
        let table = Table::new(columns.clone(), random_codes(&columns, 500, &mut Seeded::new(4))).unwrap();
        for (place, plan) in plans(&columns, adjacency, 1.0).iter().enumerate() {
            let (zero, delta) = (Rational::zero(), Rational::new(1, 1_000_000));
            let charged = plan.epsilon(if place == 2 { &zero } else { &delta });
            let charged = charged.unwrap();
            assert!(charged <= 1.0 && charged > 0.99, "{plan}: {charged}");
            for seed in 0..5 {
                let looks = looks(plan, &table, seed, None);
                let mut gaussian = 0.0;
                let (mut pure, mut chosen) = (0.0, 0.0f64);
                for look in &looks {
                    match look {
                        Look::Measured { noise: Noise::Gaussian { variance }, .. } => {
                            gaussian +=
                                f64::from(Neighbours::from(adjacency).l2_squared()) / variance.to_f64();
                        }
                        Look::Measured { noise: Noise::Laplace { scale }, .. } => {
                            pure += f64::from(Neighbours::from(adjacency).l1()) / scale.to_f64();
                        }
                        Look::Selected { .. } => chosen += 1.0,
                    }
                }
                if place == 2 {
                    assert!(pure < 1.0 && chosen >= 1.0, "{pure}");
                } else {
                    // Measurements alone must already be within the guarantee.
                    let loss = demur_core::PrivacyLoss::Gaussian {
                        variance: Rational::one(),
                        l2_squared: Rational::try_from(gaussian).unwrap(),
                    };
                    let epsilon = Account::of(&loss).unwrap().epsilon(&delta).unwrap().bounds.upper;
                    assert!(epsilon < 1.0 && epsilon > 0.7, "{plan}: {epsilon}");
                }
            }
        }
    }
}

fn fit(plan: &Plan, table: &Table, seed: u64) -> Result<Model, SynthError> {
    let mut words = Seeded::new(seed);
    plan.run(&mut plan.curator(table, &mut words)?, &mut |_| ControlFlow::Continue(()))
}

/// Sums to 1, is nowhere negative, and rows can be drawn.
fn is_sound(model: &Model) {
    for place in 0..model.columns().len() {
        let shares = model.marginal(&ColumnSet::new([place])).unwrap();
        assert!(shares.iter().all(|&share| (0.0..=1.0 + 1e-9).contains(&share)));
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }
    let rows = model.draw(25, crate::Rounding::Systematic, &mut Seeded::new(1)).unwrap();
    for (column, values) in model.columns().iter().zip(rows) {
        assert!(values.len() == 25 && values.iter().all(|&value| (value as usize) < column.size));
    }
    assert!(model.rows().is_finite() && model.rows() >= 0.0);
}

#[test]
fn odd_tables_give_sensible_models() {
    let odd = [
        (vec![("a", 3), ("b", 4), ("c", 2)], 0, false),   // no row
        (vec![("a", 3), ("b", 4), ("c", 2)], 1, false),   // one row
        (vec![("a", 3), ("b", 4), ("c", 2)], 400, true),  // every row the same
        (vec![("a", 1), ("b", 1), ("c", 4)], 400, false), // columns that say nothing
        (vec![("a", 1)], 10, false),
        (vec![("a", 7)], 300, false), // one column
    ];
    for (columns, rows, constant) in odd {
        let columns = Columns::new(columns).unwrap();
        let mut codes = random_codes(&columns, rows, &mut Seeded::new(8));
        if constant {
            codes.iter_mut().for_each(|codes| codes.fill(1));
        }
        let table = Table::new(columns.clone(), codes).unwrap();
        for adjacency in [Adjacency::AddRemove, Adjacency::Replace] {
            for plan in plans(&columns, adjacency, 1.0) {
                is_sound(&fit(&plan, &table, 3).unwrap());
            }
        }
    }
}

#[test]
fn a_constant_column_is_found_to_be_constant() {
    let columns = Columns::new([("a", 5), ("b", 3)]).unwrap();
    let table = Table::new(columns.clone(), vec![vec![2; 5000], (0..5000).map(|i| i % 3).collect()]).unwrap();
    for plan in plans(&columns, Adjacency::AddRemove, 2.0) {
        let model = fit(&plan, &table, 6).unwrap();
        assert!(model.marginal(&ColumnSet::new([0])).unwrap()[2] > 0.97, "{plan}");
        assert!((model.rows() - 5000.0).abs() < 200.0, "{plan}: {}", model.rows());
    }
}

#[test]
fn a_very_large_column_is_taken_in_and_one_beyond_the_limit_refused() {
    let columns = Columns::new([("id", 100_000), ("b", 3), ("c", 2)]).unwrap();
    let mut words = Seeded::new(12);
    let mut codes = random_codes(&columns, 3000, &mut words);
    codes[0].iter_mut().for_each(|code| *code = (words.word() % 100_000) as u32);
    let table = Table::new(columns.clone(), codes).unwrap();
    let marginals = Marginals::all(&columns, 2).unwrap();
    let mst = Plan::mst(&columns, Adjacency::AddRemove, guarantee(1.0, 1e-9)).unwrap();
    let aim = Plan::aim(&columns, Adjacency::AddRemove, guarantee(1.0, 1e-9), &marginals, 1 << 18).unwrap();
    for plan in [mst, aim] {
        is_sound(&fit(&plan, &table, 1).unwrap());
    }
    let small =
        Plan::aim(&columns, Adjacency::AddRemove, guarantee(1.0, 1e-9), &marginals, 1 << 16).unwrap_err();
    assert_eq!(small.code(), "synth.plan.cells");
    assert!(small.to_string().contains("100005 cells, but its limit is 65536"), "{small}");
}

#[test]
fn a_model_never_has_more_cells_than_its_limit() {
    let columns = Columns::new((0..9).map(|i| (format!("c{i}"), 6))).unwrap();
    let table = Table::new(columns.clone(), random_codes(&columns, 4000, &mut Seeded::new(2))).unwrap();
    let marginals = Marginals::all(&columns, 3).unwrap();
    let mut largest = 0;
    for limit in [60, 300, 2000, 10_000] {
        let aim =
            Plan::aim(&columns, Adjacency::AddRemove, guarantee(20.0, 1e-6), &marginals, limit).unwrap();
        let mwem = Plan::mwem(&columns, Adjacency::AddRemove, Epsilon::new(20.0).unwrap(), &marginals, limit)
            .unwrap();
        for plan in [aim, mwem] {
            let cells = fit(&plan, &table, 2).unwrap().cells() as u64;
            assert!(cells <= limit, "{plan}: {cells} of {limit}");
            largest = largest.max(cells);
        }
    }
    assert!(largest > 1000, "{largest}: the limit is hardly used");
}

#[test]
fn zeros_hold_in_every_method() {
    let columns = Columns::new([("a", 3), ("b", 3), ("c", 3)]).unwrap();
    let table = Table::new(columns.clone(), random_codes(&columns, 800, &mut Seeded::new(5))).unwrap();
    let mut zeros = Zeros::none();
    zeros.add(&columns, ColumnSet::new([0, 2]), &[vec![0, 2], vec![1, 1]]).unwrap();
    for plan in plans(&columns, Adjacency::AddRemove, 1.0) {
        let model = fit(&plan.with_zeros(zeros.clone()).unwrap(), &table, 4).unwrap();
        let shares = model.marginal(&ColumnSet::new([0, 2])).unwrap();
        assert_eq!([shares[2], shares[4]], [0.0, 0.0]);
        let rows = model.draw(500, crate::Rounding::Independent, &mut Seeded::new(3)).unwrap();
        let never = |row: usize| matches!((rows[0][row], rows[2][row]), (0, 2) | (1, 1));
        assert!(!(0..500).any(never));
    }
    let mut all = Zeros::none();
    let every: Vec<Vec<usize>> = (0..3).map(|value| vec![value]).collect();
    all.add(&columns, ColumnSet::new([1]), &every).unwrap();
    let plan =
        Plan::mst(&columns, Adjacency::AddRemove, guarantee(1.0, 1e-6)).unwrap().with_zeros(all).unwrap();
    assert_eq!(fit(&plan, &table, 4).unwrap_err().code(), "synth.zeros.contradiction");
}

#[test]
fn a_run_can_be_stopped_at_any_time() {
    let columns = Columns::new([("a", 3), ("b", 3), ("c", 3)]).unwrap();
    let table = Table::new(columns.clone(), random_codes(&columns, 300, &mut Seeded::new(5))).unwrap();
    for plan in plans(&columns, Adjacency::AddRemove, 1.0) {
        for stop in [1, 3, 4] {
            let (mut heard, mut words) = (0, Seeded::new(1));
            let mut spent = 0.0;
            let watch = &mut |progress: &Progress| {
                heard += 1;
                assert!(progress.spent >= spent && progress.spent <= 1.0);
                spent = progress.spent;
                if heard == stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let stopped = plan.run(&mut plan.curator(&table, &mut words).unwrap(), watch);
            assert_eq!(stopped.unwrap_err().code(), "synth.stopped");
        }
    }
}

#[test]
fn what_cannot_be_planned_is_refused_with_advice() {
    let columns = Columns::new([("a", 3), ("b", 3)]).unwrap();
    let pure = Guarantee::pure(Epsilon::new(1.0).unwrap());
    let marginals = Marginals::all(&columns, 2).unwrap();
    let error = Plan::mst(&columns, Adjacency::AddRemove, pure).unwrap_err();
    assert_eq!(
        error.to_string(),
        "MST and AIM use Gaussian noise and need a δ above 0, but ε = 1 was asked for; give a δ, or use MWEM"
    );
    for limit in [0, u64::MAX] {
        let plan = Plan::aim(&columns, Adjacency::AddRemove, guarantee(1.0, 1e-6), &marginals, limit);
        assert_eq!(plan.unwrap_err().code(), "synth.plan.cells");
    }
    let other = Columns::new([("a", 3), ("c", 3)]).unwrap();
    let plan = Plan::mst(&columns, Adjacency::AddRemove, guarantee(1.0, 1e-6)).unwrap();
    let table = Table::new(other, vec![vec![0], vec![0]]).unwrap();
    assert_eq!(fit(&plan, &table, 1).unwrap_err().code(), "synth.fit.columns");
}
