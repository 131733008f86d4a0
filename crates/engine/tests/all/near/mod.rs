//! What tests of neighbouring tables share: dice, and how near two tallies are.

mod dice;
mod levels;

use std::collections::{BTreeMap, BTreeSet};

use datafusion::arrow::array::ArrayRef;
use datafusion::common::ScalarValue;
use demur_core::Adjacency;
use demur_plan::Bounded;
use demur_tally::Tally;
pub(crate) use dice::Dice;
use levels::levels_are_near;

/// How many random questions are asked: `DEMUR_CASES` says, or the test.
pub(crate) fn cases(usually: u64) -> u64 {
    std::env::var("DEMUR_CASES").ok().and_then(|many| many.parse().ok()).unwrap_or(usually)
}

/// Numbers of a group, by its key.
pub(crate) type Groups = BTreeMap<String, (u64, Vec<Vec<i128>>)>;

/// The key of a group, part by part.
fn key(tally: &Tally, group: usize) -> Vec<String> {
    let part = |array: &ArrayRef| ScalarValue::try_from_array(array, group).unwrap().to_string();
    tally.keys.iter().map(part).collect()
}

pub(crate) fn groups(tally: &Tally) -> Groups {
    let mut groups = Groups::new();
    for group in 0..tally.units.len() {
        let key = key(tally, group);
        let cells = tally.measures.iter().map(|numbers| numbers.of(group).into_owned());
        groups.insert(format!("{key:?}"), (tally.units[group], cells.collect()));
    }
    groups
}

/// Checks that two tallies, and all totals of theirs, are as near as the plan says.
pub(crate) fn near(bounded: &Bounded, here: &Tally, there: &Tally, told: &str) {
    levels_are_near(bounded, [here, there], told);
    let (here, there) = (groups(here), groups(there));
    let nothing = (0, vec![vec![0]; bounded.spec.measures.len()]);
    let keys: BTreeSet<_> = here.keys().chain(there.keys()).collect();
    let mut moved = 0;
    for key in keys {
        let (a, b) = (here.get(key).unwrap_or(&nothing), there.get(key).unwrap_or(&nothing));
        moved += u64::from(a != b);
        assert!(a.0.abs_diff(b.0) <= 1, "{told}\nunits of {key}: {} against {}", a.0, b.0);
        for (index, measure) in bounded.spec.measures.iter().enumerate() {
            let cell = |cells: &[i128], at: usize| cells.get(at).copied().unwrap_or(0);
            let width = a.1[index].len().max(b.1[index].len());
            let distance: i128 =
                (0..width).map(|at| (cell(&a.1[index], at) - cell(&b.1[index], at)).abs()).sum();
            let most = bounded.sensitivity(measure).unwrap();
            let most = most.linf().to_string().parse::<i128>().unwrap();
            // What is replaced within one group moves it twice at most.
            let most = if bounded.adjacency() == Adjacency::Replace { 2 * most } else { most };
            assert!(
                distance <= most,
                "{told}\n{measure:?} of {key} moved by {distance}, which is more than {most}"
            );
        }
    }
    assert!(
        moved <= bounded.groups_moved(),
        "{told}\n{moved} groups moved, at most {} may",
        bounded.groups_moved()
    );
}
