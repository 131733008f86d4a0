//! What joins its group at once comes to what it comes to when it is bounded first.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use proptest::prelude::*;

use crate::hash::Secret;
use crate::layout::Layout;
use crate::numbers::Numbers;
use crate::shared::Pace;
use crate::spec::{Bounds, Measure, Spec, Step};
use crate::tallier::Tallier;

/// A unit, a group, a number.
type Row = (Option<i64>, i64, Option<i64>);

/// Some units with more rows than others, in few or in many groups.
fn any_rows() -> impl Strategy<Value = Vec<Row>> {
    (prop_oneof![1i64..6, 1i64..200], prop_oneof![Just(1i64), 1i64..70]).prop_flat_map(|(units, groups)| {
        let some = (0..units, 0..units).prop_map(|(one, two)| Some(one.min(two)));
        let unit = prop_oneof![1 => Just(None), 9 => some];
        let number = proptest::option::weighted(0.8, -3i64..8);
        proptest::collection::vec((unit, 0..groups, number), 0..800)
    })
}

/// All of one column within the same bounds, so that it travels in the heads of rows.
fn any_measures() -> impl Strategy<Value = Vec<Measure>> {
    (-2i64..3, 0i64..5).prop_flat_map(|(low, more)| {
        let (row, step) = (Bounds { low, high: low + more }, Step::One);
        let most = || prop_oneof![0u64..8, Just(u64::MAX)];
        let count = (most(), proptest::option::of(Just(0)));
        let count = count.prop_map(|(most, input)| Measure::Count { input, most });
        let unit = (-30i64..=0, 0i64..=30).prop_map(|(low, high)| Bounds { low, high });
        let sum = unit.prop_map(move |unit| Measure::Sum { input: 0, step, row, unit });
        let deviation = (most(), 0..=more).prop_map(move |(most, above)| {
            let centre = row.low + above;
            Measure::Deviation { input: 0, step, row, centre, most }
        });
        proptest::collection::vec(prop_oneof![count, sum, deviation], 0..4)
    })
}

fn any_pace() -> impl Strategy<Value = Pace> {
    let hasty = (1usize..20, 1usize..60).prop_map(|(block, shelf)| Pace { block, shelf, ..Pace::default() });
    prop_oneof![Just(Pace::default()), hasty]
}

fn spec(groups_per_unit: u32, measures: Vec<Measure>) -> Spec {
    Spec { has_unit: true, keys: 1, inputs: 1, groups_per_unit, measures }
}

/// Units and numbers of all groups. Entries join theirs if they have so many rows, given how many they may have.
fn tally(
    rows: &[Row],
    spec: &Spec,
    (key, strings, pace): (u64, bool, Pace),
    free_rows: impl Fn(u64) -> u64,
) -> (Vec<u64>, Vec<Vec<i128>>) {
    let units = rows.iter().map(|row| row.0);
    let units: ArrayRef = match strings {
        true => Arc::new(units.map(|unit| unit.map(|unit| unit.to_string())).collect::<StringArray>()),
        false => Arc::new(units.collect::<Int64Array>()),
    };
    let groups: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.1)));
    let numbers: ArrayRef = Arc::new(rows.iter().map(|row| row.2).collect::<Int64Array>());
    let batch = RecordBatch::try_from_iter([("unit", units), ("group", groups), ("number", numbers)]);
    let batch = batch.unwrap();
    let secret = Secret::new([key, 9]);
    let mut tallier = Tallier::with_secret(spec.clone(), batch.schema_ref(), secret, 2, pace).unwrap();
    let layout = &mut Arc::get_mut(&mut tallier.shared).unwrap().layout;
    assert!(!layout.by_parts);
    layout.free_rows = free_rows(layout.free_rows);
    let mut feed = tallier.feed().unwrap();
    (0..rows.len()).step_by(100).for_each(|start| {
        feed.push(&batch.slice(start, 100.min(rows.len() - start))).unwrap();
    });
    feed.finish().unwrap();
    let tally = tallier.finish().unwrap();
    (tally.units, tally.measures.iter().map(Numbers::all).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn what_joins_comes_to_what_it_comes_to_when_bounded(
        rows in any_rows(), measures in any_measures(), most in prop_oneof![1u32..8, 14u32..40],
        how in (any::<u64>(), any::<bool>(), any_pace()),
    ) {
        let spec = spec(most, measures);
        prop_assert_eq!(tally(&rows, &spec, how, |rows| rows), tally(&rows, &spec, how, |_| 0));
    }
}

/// With one row more, all that a bound is for would be lost.
#[test]
fn the_last_row_that_may_join_is_the_last_that_no_bound_changes() {
    let bounds = |low, high| Bounds { low, high };
    let step = Step::One;
    let sum = |row, unit| Measure::Sum { input: 0, step, row, unit };
    let how = (1, false, Pace::default());
    for (measure, free, value) in [
        (Measure::Count { input: None, most: 3 }, 3, 0),
        (Measure::Count { input: Some(0), most: 2 }, 2, 0),
        (sum(bounds(0, 3), bounds(0, 10)), 3, 9),
        (sum(bounds(-2, 1), bounds(-9, 10)), 4, -9),
        (sum(bounds(-2, -1), bounds(-9, 0)), 4, -9),
        (sum(bounds(2, 3), bounds(-9, 12)), 4, 9),
        (sum(bounds(5, 6), bounds(0, 0)), 0, 5),
        (Measure::Deviation { input: 0, step, row: bounds(0, 3), centre: 1, most: 4 }, 4, 3),
    ] {
        let rows = |many: u64| vec![(Some(1), 0, Some(value)); many as usize];
        let spec = spec(1, vec![Measure::Count { input: None, most: 9 }, measure.clone()]);
        assert_eq!(Layout::new(&spec).free_rows, free, "{measure:?}");
        let [more, fitting] = [rows(free + 1), rows(free)];
        let bounded = tally(&more, &spec, how, |_| 0);
        assert_eq!(tally(&more, &spec, how, |rows| rows), bounded, "{measure:?}");
        assert_ne!(
            tally(&more, &spec, how, |rows| rows + 1),
            bounded,
            "{measure:?}: a planted fault was not seen"
        );
        assert_eq!(tally(&fitting, &spec, how, |rows| rows), tally(&fitting, &spec, how, |_| 0));
    }
    let nothing = sum(bounds(0, 0), bounds(0, 0));
    assert_eq!(Layout::new(&spec(1, vec![nothing])).free_rows, u64::MAX);
    assert_eq!(Layout::new(&spec(1, Vec::new())).free_rows, u64::MAX);
}
