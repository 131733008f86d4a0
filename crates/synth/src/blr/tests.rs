//! What the draws of BLR must be, by enumeration of sequences.

use demur_core::{Adjacency, CountingQuery};
use demur_testkit::{Seeded, chi_square};

use super::*;

/// Pr[D̂] for every multiset, from all N^m sequences.
fn exact_law(workload: &Workload, size: usize, epsilon: f64, data: &Histogram) -> BTreeMap<Vec<u64>, f64> {
    let (domain, rows) = (workload.domain(), data.size() as f64);
    let universe = domain.size() as usize;
    let mut law: BTreeMap<Vec<u64>, f64> = BTreeMap::new();
    for sequence in 0..universe.pow(size as u32) {
        let mut counts = vec![0u64; universe];
        (0..size).fold(sequence, |rest, _| {
            counts[rest % universe] += 1;
            rest / universe
        });
        let synthetic = Histogram::new(domain, counts.clone()).unwrap();
        let error = workload.max_error(data, &synthetic).unwrap().to_f64();
        *law.entry(counts).or_insert(0.0) += (-epsilon * rows * error / 2.0).exp();
    }
    let total: f64 = law.values().sum();
    law.values_mut().for_each(|p| *p /= total);
    law
}

/// The law that the groups and their members amount to.
fn own_law(blr: &Blr, data: &Histogram) -> BTreeMap<Vec<u64>, f64> {
    let truth = blr.truth(data).unwrap();
    let mut law = BTreeMap::new();
    let rate = blr.epsilon.to_f64() / (2 * blr.size * blr.denominator as u64) as f64;
    blr.walk(&truth, data.size(), &mut |score, number, counts| {
        law.insert(counts.to_vec(), number.to_f64().value() * (rate * score as f64).exp());
        true
    });
    let total: f64 = law.values().sum();
    law.values_mut().for_each(|p| *p /= total);
    law
}

fn cases() -> Vec<(Workload, Histogram, usize)> {
    let pair = Domain::new([("a", 2), ("b", 2)]).unwrap();
    let triple = Domain::new([("c", 3)]).unwrap();
    let third = |x: i128| Rational::new(x, 3);
    let soft = CountingQuery::new(&triple, vec![third(0), third(1), third(3)]).unwrap();
    let sharp = CountingQuery::matching(&triple, |record| record[0] == 2).unwrap();
    vec![
        (Workload::marginals(&pair, 2).unwrap(), Histogram::new(&pair, vec![5, 1, 2, 3]).unwrap(), 5),
        (Workload::marginals(&pair, 1).unwrap(), Histogram::new(&pair, vec![0, 0, 9, 0]).unwrap(), 4),
        (
            Workload::new(&triple, vec![soft, sharp]).unwrap(),
            Histogram::new(&triple, vec![1, 4, 2]).unwrap(),
            6,
        ),
    ]
}

#[test]
fn every_probability_is_that_of_all_sequences_enumerated() {
    for (workload, data, size) in cases() {
        for epsilon in [0.1, 1.0, 3.0] {
            let blr = Blr::new(workload.clone(), size as u64, Epsilon::new(epsilon).unwrap()).unwrap();
            let (own, exact) = (own_law(&blr, &data), exact_law(&workload, size, epsilon, &data));
            assert_eq!(own.len(), exact.len());
            for (counts, p) in &exact {
                assert!((own[counts] - p).abs() < 1e-12, "{counts:?}: {} {p}", own[counts]);
            }
        }
    }
}

/// False alarm about 1e-9 in each of three cases. With 20 000 draws a law whose weights fall twice as fast is missed with probability below 1e-9: its χ² is
/// above 1000 for fewer than 60 cells in each case.
#[test]
fn draws_follow_the_exact_law() {
    for (place, (workload, data, size)) in cases().into_iter().enumerate() {
        let blr = Blr::new(workload.clone(), size as u64, Epsilon::new(1.0).unwrap()).unwrap();
        let mut words = Seeded::new(100 + place as u64);
        let mut seen: BTreeMap<Vec<u64>, u64> = BTreeMap::new();
        for _ in 0..20_000 {
            *seen.entry(blr.draw(&data, &mut words).unwrap().counts().to_vec()).or_insert(0) += 1;
        }
        let fits = |epsilon: f64| {
            let law = exact_law(&workload, size, epsilon, &data);
            let counts: Vec<u64> = law.keys().map(|key| seen.get(key).copied().unwrap_or(0)).collect();
            chi_square(&counts, &law.into_values().collect::<Vec<_>>())
        };
        assert!(fits(1.0) > 1e-9, "case {place}: {}", fits(1.0));
        assert!(fits(2.0) < 1e-9, "case {place} cannot tell ε = 2 from 1");
    }
}

/// Every neighbour of every case, every output: no probability changes by more than e^ε.
#[test]
fn replacing_a_record_changes_no_probability_by_more_than_epsilon() {
    let mut largest = 0.0f64;
    for (workload, data, size) in cases() {
        let blr = Blr::new(workload, size as u64, Epsilon::new(1.0).unwrap()).unwrap();
        let here = own_law(&blr, &data);
        for neighbour in data.neighbours(Adjacency::Replace) {
            let there = own_law(&blr, &neighbour);
            for (counts, p) in &here {
                largest = largest.max((p / there[counts]).ln().abs());
            }
        }
    }
    assert!(largest <= 1.0 + 1e-12 && largest > 0.5, "{largest}");
}

/// The union bound is exactly 1 at the notes' m = 2·ln(2k)/α², and below 1 from the next whole number on.
#[test]
fn the_notes_m_proves_nothing_and_one_more_record_does() {
    for (alpha, k) in [(0.1, 64u64), (0.37, 5), (0.02, 1000)] {
        let union = |m: f64| 2.0 * k as f64 * (-m * alpha * alpha / 2.0f64).exp();
        let notes = 2.0 * (2.0 * k as f64).ln() / (alpha * alpha);
        assert!((union(notes) - 1.0).abs() < 1e-9);
        assert!(union(Blr::records_for(alpha, k) as f64) < 1.0);
        assert!(Blr::records_for(alpha, k) as f64 - notes <= 1.0);
    }
}

/// α of the theorem against the law itself: the probability of an error above α is far below β (the theorem is loose), and never above it.
#[test]
fn the_exact_law_is_as_accurate_as_the_theorem_promises() {
    let domain = Domain::new([("a", 2)]).unwrap();
    let workload = Workload::marginals(&domain, 1).unwrap();
    let beta = 0.1;
    for rows in [4_000u64, 20_000] {
        let alpha = Blr::alpha(rows, 1.0, 2, 2, beta).unwrap();
        let m = Blr::records_for(alpha, 2);
        let blr = Blr::new(workload.clone(), m, Epsilon::new(1.0).unwrap()).unwrap();
        for ones in [0, rows / 3, rows / 2] {
            let data = Histogram::new(&domain, vec![rows - ones, ones]).unwrap();
            let truth = ones as f64 / rows as f64;
            let wrong = |counts: &[u64]| (counts[1] as f64 / m as f64 - truth).abs() > alpha;
            let bad: f64 =
                own_law(&blr, &data).iter().filter(|(counts, _)| wrong(counts)).map(|(_, p)| p).sum();
            assert!(bad <= beta, "{rows} {ones}: {bad}");
        }
    }
}

#[test]
fn what_cannot_be_walked_is_refused_with_the_count_and_advice() {
    let domain = Domain::new([("a", 16), ("b", 16)]).unwrap();
    let workload = Workload::marginals(&domain, 2).unwrap();
    let error = Blr::new(workload.clone(), 10, Epsilon::new(1.0).unwrap()).unwrap_err();
    assert_eq!(error.code(), "synth.blr.states");
    assert!(error.to_string().contains("MWEM or AIM"), "{error}");
    assert!(
        error
            .to_string()
            .starts_with("there are 396323862426048128 multisets of 10 records over 256 different ones"),
        "{error}"
    );
    assert_eq!(Blr::new(workload, 0, Epsilon::new(1.0).unwrap()).unwrap_err().code(), "synth.blr.size");
    let huge = Blr::new(
        Workload::marginals(&Domain::new([("a", 20_000)]).unwrap(), 0).unwrap(),
        1 << 40,
        Epsilon::new(1.0).unwrap(),
    );
    assert_eq!(huge.unwrap_err().code(), "synth.blr.states");
}

#[test]
fn empty_and_foreign_datasets_are_refused() {
    let domain = Domain::new([("a", 2)]).unwrap();
    let blr = Blr::new(Workload::marginals(&domain, 1).unwrap(), 3, Epsilon::new(1.0).unwrap()).unwrap();
    let draw = |data: &Histogram| blr.draw(data, &mut Seeded::new(1)).map(|_| ()).unwrap_err();
    assert_eq!(draw(&Histogram::empty(&domain).unwrap()).code(), "synth.blr.rows");
    let other = Domain::new([("b", 2)]).unwrap();
    assert_eq!(draw(&Histogram::new(&other, vec![1, 1]).unwrap()).code(), "synth.blr.domain");
}
