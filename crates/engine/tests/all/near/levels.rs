//! How near two tallies are when their groups are added up to totals.

use std::collections::{BTreeMap, BTreeSet};

use super::key;
use demur_core::{Adjacency, Sensitivity};
use demur_exact::Rational;
use demur_plan::Bounded;
use demur_tally::{Measure, Tally};

/// Which keys of a group a level has, and which of these are shown.
type Label<'a> = dyn Fn(&[String]) -> Vec<String> + 'a;

/// For each measure, the cells of all groups with the same label, added up.
fn level(tally: &Tally, label: &Label<'_>) -> Vec<BTreeMap<(Vec<String>, usize), i128>> {
    let mut sums = vec![BTreeMap::new(); tally.measures.len()];
    for group in 0..tally.units.len() {
        let key = key(tally, group);
        for (sums, numbers) in sums.iter_mut().zip(&tally.measures) {
            for (at, number) in numbers.of(group).iter().enumerate() {
                *sums.entry((label(&key), at)).or_insert(0) += number;
            }
        }
    }
    sums
}

/// Checks that a level of totals is as near as the plan says.
fn level_is_near(bounded: &Bounded, tallies: [&Tally; 2], most_parts: u64, label: &Label<'_>, told: &str) {
    let [here, there] = tallies.map(|tally| level(tally, label));
    let sides = if bounded.adjacency() == Adjacency::Replace { 2 } else { 1 };
    for (index, measure) in bounded.spec.measures.iter().enumerate() {
        let keys: BTreeSet<_> = here[index].keys().chain(there[index].keys()).collect();
        let number = |side: &[BTreeMap<_, i128>], key| side[index].get(key).copied().unwrap_or(0);
        let moves: Vec<i128> =
            keys.into_iter().map(|key| (number(&here, key) - number(&there, key)).abs()).collect();
        let one_group = match measure {
            Measure::Distinct { .. } | Measure::Matched { .. } => continue,
            measure => Sensitivity::scalar(bounded.sensitivity(measure).unwrap().linf().clone()).unwrap(),
        };
        let most = bounded.level_sensitivity(&one_group, most_parts).unwrap();
        let within = |found: Rational, most: &Rational, norm: &str| {
            let most = &Rational::from(sides as u64) * most;
            assert!(
                found <= most,
                "{told}\n{measure:?} moved by {found} in {norm}, which is more than {most}"
            );
        };
        let exact = |number: i128| number.to_string().parse::<Rational>().unwrap();
        within(exact(moves.iter().sum()), most.l1(), "ℓ1");
        within(exact(moves.iter().copied().max().unwrap_or(0)), most.linf(), "ℓ∞");
        let squares = moves.iter().fold(Rational::zero(), |sum, moved| &sum + &exact(*moved).square());
        within(squares, most.l2_squared(), "squared ℓ2");
    }
}

/// Checks every level of totals, if there are any; where keys are secret, with any choice of those that are shown.
pub(crate) fn levels_are_near(bounded: &Bounded, tallies: [&Tally; 2], told: &str) {
    let Some(totals) = &bounded.totals else { return };
    let keys = totals.names.len();
    for set in &totals.sets {
        let kept = |key: &[String]| -> Vec<String> {
            (0..keys).filter(|at| set.contains(*at)).map(|at| key[at].clone()).collect()
        };
        match (totals.cells(totals.finest()), totals.cells(*set)) {
            (Some(finest), Some(cells)) => {
                level_is_near(bounded, tallies, (finest / cells) as u64, &kept, told);
            }
            _ => {
                for choice in 0..8u64 {
                    let shown = |beginning: &[String]| {
                        let word: u64 = beginning.iter().flat_map(|text| text.bytes()).map(u64::from).sum();
                        word >> (choice % 3) & 1 == choice & 1
                    };
                    let label = |key: &[String]| -> Vec<String> {
                        let first = (0..=keys).rev().find(|&first| first == 0 || shown(&key[..first]));
                        let known = kept(key).len().min(first.unwrap_or(0));
                        key[..known].to_vec()
                    };
                    level_is_near(bounded, tallies, u64::MAX, &label, told);
                }
            }
        }
    }
}
