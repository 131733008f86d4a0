//! The promises of this room, tried on small tables of every type.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;
use proptest::prelude::*;

use crate::column::plain_type;
use crate::groups::row_converter;
use crate::hash::Secret;
use crate::reference::{self, batch};
use crate::shared::Pace;
use crate::spec::{Bounds, Measure, Spec, Step};
use crate::steps::accepts;
use crate::tables::{Column, Value, any_column};
use crate::tallier::Tallier;
use crate::tally::Tally;

/// A table and a question about it.
#[derive(Clone, Debug)]
struct Case {
    spec: Spec,
    columns: Vec<Column>,
    rows: usize,
    key: [u64; 2],
    /// Which bits of the hashes of groups and values are used: with few, ranks are often equal.
    mask: u64,
    pace: Pace,
}

impl Case {
    fn secret(&self) -> Secret {
        let mut secret = Secret::new(self.key);
        secret.thing_mask = self.mask;
        secret
    }

    /// The same question without some rows.
    fn without(&self, gone: impl Fn(usize) -> bool) -> Self {
        let rows: Vec<usize> = (0..self.rows).filter(|&row| !gone(row)).collect();
        let columns = self.columns.iter().map(|column| column.rows(&rows)).collect();
        Self { columns, rows: rows.len(), ..self.clone() }
    }

    fn tally(&self) -> Tally {
        tally(self, &[self.rows], 1)
    }
}

/// Counts the table cut at some places, the pieces taken by feeds in turn, the last piece first.
fn tally(case: &Case, cuts: &[usize], feeds: usize) -> Tally {
    let whole = batch(&case.columns, case.rows);
    let tallier =
        Tallier::with_secret(case.spec.clone(), whole.schema_ref(), case.secret(), 2, case.pace).unwrap();
    let mut feeds: Vec<_> = (0..feeds).map(|_| tallier.feed().unwrap()).collect();
    let count = feeds.len();
    let mut cuts: Vec<usize> = cuts.iter().map(|&cut| cut.min(case.rows)).chain([0, case.rows]).collect();
    cuts.sort_unstable();
    let pieces: Vec<RecordBatch> = cuts.windows(2).map(|cut| whole.slice(cut[0], cut[1] - cut[0])).collect();
    for (at, piece) in pieces.iter().rev().enumerate() {
        feeds[at % count].push(piece).unwrap();
    }
    feeds.into_iter().for_each(|feed| feed.finish().unwrap());
    tallier.finish().unwrap()
}

fn assert_same(found: &Tally, expected: &Tally) -> Result<(), TestCaseError> {
    prop_assert_eq!(&found.keys, &expected.keys);
    prop_assert_eq!(&found.units, &expected.units);
    prop_assert_eq!(&found.measures, &expected.measures);
    prop_assert_eq!(found.rows_read, expected.rows_read);
    Ok(())
}

fn any_bounds() -> impl Strategy<Value = Bounds> {
    let end = prop_oneof![-20i64..=20, Just(-(1 << 62)), Just(1 << 62), Just(0)];
    (end.clone(), end).prop_map(|(one, two)| Bounds { low: one.min(two), high: one.max(two) })
}

fn any_most() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..6, Just(u64::MAX)]
}

/// A measure, were its input fit for it.
fn any_measure() -> impl Strategy<Value = Measure> {
    let sum = (any_bounds(), any_bounds()).prop_map(|(row, unit)| Measure::Sum {
        input: 0,
        step: Step::One,
        row,
        unit: Bounds { low: unit.low.min(0), high: unit.high.max(0) },
    });
    let deviation = (any_bounds(), any_most(), any::<u32>()).prop_map(|(row, most, at)| Measure::Deviation {
        input: 0,
        step: Step::One,
        row,
        centre: row.low + (i128::from(at) * (i128::from(row.high) - i128::from(row.low)) / (1 << 32)) as i64,
        most,
    });
    let histogram = (any_bounds(), 1u32..40, any_most()).prop_map(|(row, cells, most)| Measure::Histogram {
        input: 0,
        step: Step::One,
        row,
        cells,
        most,
    });
    prop_oneof![
        any_most().prop_map(|most| Measure::Count { input: None, most }),
        any_most().prop_map(|most| Measure::Count { input: Some(0), most }),
        any_most().prop_map(|most| Measure::Distinct { input: 0, most }),
        (any_most(), any_most()).prop_map(|(most, seen)| Measure::Matched { input: 0, most, seen }),
        sum,
        deviation,
        histogram,
    ]
}

/// Gives a measure its input, and the step of that input's type; without one that fits, it counts what is there.
fn aim(measure: Measure, at: usize, exponent: i32, inputs: &[Column]) -> Measure {
    if inputs.is_empty() {
        return Measure::Count { input: None, most: 3 };
    }
    let input = at % inputs.len();
    let data_type = plain_type(&inputs[input].data_type);
    let steps = [Step::One, Step::Binary(exponent), Step::Decimal(2)];
    let step = steps.into_iter().find(|&step| accepts(data_type, step));
    match (measure, step) {
        (Measure::Count { input: None, most }, _) => Measure::Count { input: None, most },
        (Measure::Distinct { most, .. }, _) => Measure::Distinct { input, most },
        (Measure::Matched { most, seen, .. }, _) => Measure::Matched { input, most, seen },
        (Measure::Sum { row, unit, .. }, Some(step)) => Measure::Sum { input, step, row, unit },
        (Measure::Deviation { row, centre, most, .. }, Some(step)) => {
            Measure::Deviation { input, step, row, centre, most }
        }
        (Measure::Histogram { row, cells, most, .. }, Some(step)) => {
            Measure::Histogram { input, step, row, cells, most }
        }
        (
            Measure::Count { most, .. } | Measure::Deviation { most, .. } | Measure::Histogram { most, .. },
            _,
        ) => Measure::Count { input: Some(input), most },
        (Measure::Sum { .. }, None) => Measure::Count { input: Some(input), most: 2 },
    }
}

/// Often so impatient that few rows are settled many times.
fn any_pace() -> impl Strategy<Value = Pace> {
    let bytes = prop_oneof![Just(usize::MAX), 0usize..2000];
    let hasty = (1usize..6, 1usize..20, [bytes.clone(), bytes])
        .prop_map(|(block, shelf, [waiting, settled])| Pace { block, shelf, waiting, settled });
    prop_oneof![3 => hasty, 1 => Just(Pace::default())]
}

fn any_case() -> impl Strategy<Value = Case> {
    (any::<bool>(), 0usize..4, 0usize..4, 0usize..40).prop_flat_map(any_case_of)
}

/// Few units with many groups each.
fn any_case_of_many_groups() -> impl Strategy<Value = Case> {
    let case = (Just(true), Just(3usize), 0usize..3, 300usize..900).prop_flat_map(any_case_of);
    (case, 1usize..3, prop_oneof![1u32..8, 28u32..44]).prop_map(|(mut case, units, groups_per_unit)| {
        case.columns[0].picks.iter_mut().for_each(|pick| *pick = pick.map(|pick| pick % units));
        case.spec.groups_per_unit = groups_per_unit;
        case
    })
}

fn any_case_of(shape: (bool, usize, usize, usize)) -> impl Strategy<Value = Case> {
    let case = Just(shape).prop_flat_map(|(has_unit, keys, inputs, rows)| {
        let columns = prop::collection::vec(any_column(rows), usize::from(has_unit) + keys + inputs);
        let measures = prop::collection::vec((any_measure(), 0usize..8, -3i32..4), 0..5);
        let mask = prop_oneof![Just(u64::MAX), Just(1), Just(0)];
        let groups_per_unit = prop_oneof![4 => 1u32..6, 1 => 30u32..40, 1 => Just(u32::MAX)];
        (columns, measures, any::<[u64; 2]>(), mask, groups_per_unit, any_pace()).prop_map(
            move |(columns, measures, key, mask, groups_per_unit, pace)| {
                let given = &columns[columns.len() - inputs..];
                let aimed =
                    measures.into_iter().map(|(measure, at, exponent)| aim(measure, at, exponent, given));
                let spec = Spec { has_unit, keys, inputs, groups_per_unit, measures: aimed.collect() };
                Case { spec, columns, rows, key, mask, pace }
            },
        )
    });
    case.boxed()
}

/// How far a measure may move when a unit comes, cell by cell; and in all cells together.
fn range(measure: &Measure) -> (i128, i128) {
    match *measure {
        Measure::Count { most, .. }
        | Measure::Distinct { most, .. }
        | Measure::Matched { most, .. }
        | Measure::Histogram { most, .. } => (0, most.into()),
        Measure::Sum { unit, .. } => (unit.low.into(), unit.high.into()),
        Measure::Deviation { row, centre, most, .. } => {
            let [low, centre, high] = [row.low, centre, row.high].map(i128::from);
            let reach = i128::from(most).saturating_mul((high - centre).max(centre - low));
            (-reach, reach)
        }
    }
}

type Group = (u64, Vec<Vec<i128>>);

/// The groups of a tally by the bytes of their keys.
fn by_key(tally: &Tally, spec: &Spec) -> BTreeMap<Vec<u8>, Group> {
    let types: Vec<_> = tally.keys.iter().map(|key| key.data_type().clone()).collect();
    let rows = (spec.keys > 0).then(|| row_converter(&types).unwrap().convert_columns(&tally.keys).unwrap());
    let key = |group: usize| rows.as_ref().map_or(Vec::new(), |rows| rows.row(group).data().to_vec());
    let numbers =
        |group: usize| tally.measures.iter().map(|numbers| numbers.of(group).into_owned()).collect();
    (0..tally.units.len()).map(|group| (key(group), (tally.units[group], numbers(group)))).collect()
}

/// Checks what the spec's own text promises of a table and the same table without one unit.
fn assert_neighbours(case: &Case, with: &Tally, without: &Tally) -> Result<(), TestCaseError> {
    let [with, without] = [with, without].map(|tally| by_key(tally, &case.spec));
    let nothing = (0, case.spec.measures.iter().map(|measure| vec![0; measure.cells()]).collect::<Vec<_>>());
    let mut changed = 0;
    for key in with.keys().chain(without.keys().filter(|key| !with.contains_key(*key))) {
        let [one, two] = [&with, &without].map(|groups| groups.get(key).unwrap_or(&nothing));
        changed += u64::from(one != two);
        prop_assert!(one.0 == two.0 || one.0 == two.0 + 1, "units of {:?}: {} and {}", key, one.0, two.0);
        prop_assert!(one.0 != two.0 || one == two, "{:?} changed without its units", key);
        for ((one, two), measure) in one.1.iter().zip(&two.1).zip(&case.spec.measures) {
            let (low, high) = range(measure);
            let moves = one.iter().zip(two).map(|(one, two)| one - two);
            let total: i128 = moves.clone().map(i128::abs).sum();
            prop_assert!(
                moves.clone().all(|moved| moved == 0 || (low..=high).contains(&moved)),
                "{:?}",
                measure
            );
            prop_assert!(total <= high.max(-low), "{:?} moved by {}", measure, total);
        }
    }
    let most = if case.spec.has_unit { u64::from(case.spec.groups_per_unit) } else { 1 };
    prop_assert!(changed <= most, "{} groups changed, not {}", changed, most);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn a_tally_is_what_the_slow_and_obvious_one_says(
        case in any_case(), cuts in prop::collection::vec(0usize..40, 0..6), feeds in 1usize..4,
    ) {
        let expected = reference::tally(&case.spec, &case.columns, case.rows, &case.secret());
        assert_same(&tally(&case, &cuts, feeds), &expected)?;
    }

    #[test]
    fn rows_in_another_order_give_the_same_tally(case in any_case(), by in 1usize..40, feeds in 1usize..4) {
        let turned: Vec<usize> = (0..case.rows).rev().map(|row| (row + by) % case.rows).collect();
        let columns = case.columns.iter().map(|column| column.rows(&turned)).collect();
        assert_same(&tally(&Case { columns, ..case.clone() }, &[7, 21], feeds), &case.tally())?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn units_with_many_groups_keep_the_smallest(case in any_case_of_many_groups(), feeds in 1usize..4) {
        let expected = reference::tally(&case.spec, &case.columns, case.rows, &case.secret());
        assert_same(&tally(&case, &[50, 200, 400], feeds), &expected)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn one_unit_changes_few_groups_and_each_by_little(case in any_case()) {
        let whole = case.tally();
        if !case.spec.has_unit {
            for gone in 0..case.rows {
                assert_neighbours(&case, &whole, &case.without(|row| row == gone).tally())?;
            }
            return Ok(());
        }
        let units: BTreeMap<Value, usize> = (0..case.rows).map(|row| (case.columns[0].value(row), row)).collect();
        for unit in units.into_keys() {
            let rest = case.without(|row| case.columns[0].value(row) == unit);
            assert_neighbours(&case, &whole, &rest.tally())?;
        }
    }
}
