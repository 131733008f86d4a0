//! A slow and obvious tally, for tests: one map after the other, one value at a time.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::DataType;

use crate::column::{Kind, canonical, kind, plain_type};
use crate::hash::{Secret, rank};
use crate::numbers::{Cells, Numbers};
use crate::spec::{Bounds, Measure, Spec, Step};
use crate::tables::{Column, Value};
use crate::tally::Tally;

/// The rows of a group of a unit.
type Rows = Vec<usize>;

/// The units of a group, its measures, and one of its rows.
type Group = (u64, Vec<Vec<i128>>, usize);

/// Tallies the columns of a table.
pub(crate) fn tally(spec: &Spec, columns: &[Column], rows: usize, secret: &Secret) -> Tally {
    let reference = Reference { spec, columns, secret };
    let mut units: BTreeMap<Value, BTreeMap<Vec<Value>, Rows>> = BTreeMap::new();
    for row in 0..rows {
        let unit = if spec.has_unit { columns[0].value(row) } else { Value::Int(row as i128) };
        units.entry(unit).or_default().entry(reference.group(row)).or_default().push(row);
    }
    let mut groups: BTreeMap<Vec<Value>, Group> = BTreeMap::new();
    if spec.keys == 0 {
        groups.insert(Vec::new(), (0, reference.nothing(), 0));
    }
    let mut distinct: BTreeMap<(Vec<Value>, usize), BTreeSet<Value>> = BTreeMap::new();
    let mut matched: BTreeMap<(Vec<Value>, usize), Vec<Vec<Value>>> = BTreeMap::new();
    for (unit, mut found) in units {
        reference.keep(&unit, &mut found);
        for (group, rows) in found {
            let total = groups.entry(group.clone()).or_insert_with(|| (0, reference.nothing(), rows[0]));
            total.0 += 1;
            for (index, measure) in spec.measures.iter().enumerate() {
                if let Measure::Distinct { input, most } = *measure {
                    let picked = reference.pick(&unit, input, most, &rows);
                    distinct.entry((group.clone(), index)).or_default().extend(picked);
                } else if let Measure::Matched { input, most, seen } = *measure {
                    let seen = if spec.has_unit { seen } else { most };
                    let picked = reference.pick(&unit, input, seen, &rows);
                    matched.entry((group.clone(), index)).or_default().push(picked);
                } else {
                    let moved = reference.measure(measure, &rows);
                    total.1[index].iter_mut().zip(moved).for_each(|(total, moved)| *total += moved);
                }
            }
        }
    }
    for ((group, index), values) in distinct {
        groups.get_mut(&group).unwrap().1[index][0] = values.len() as i128;
    }
    for ((group, index), units) in matched {
        let Measure::Matched { most, .. } = spec.measures[index] else { continue };
        groups.get_mut(&group).unwrap().1[index][0] = brought(&units, most);
    }
    reference.write(groups, rows)
}

/// How many values units can bring, `most` each: one value after the other, moving others where that helps.
fn brought(units: &[Vec<Value>], most: u64) -> i128 {
    let mut gifts: Vec<BTreeSet<&Value>> = vec![BTreeSet::new(); units.len()];
    let values: BTreeSet<&Value> = units.iter().flatten().collect();
    values.into_iter().filter(|&value| give(value, units, most, &mut gifts, &mut BTreeSet::new())).count()
        as i128
}

/// Gives a value to a unit that has it, if need be by giving one of that unit's to another.
fn give<'a>(
    value: &'a Value,
    units: &'a [Vec<Value>],
    most: u64,
    gifts: &mut [BTreeSet<&'a Value>],
    tried: &mut BTreeSet<usize>,
) -> bool {
    for unit in (0..units.len()).filter(|&unit| units[unit].contains(value)) {
        if most == 0 || !tried.insert(unit) {
            continue;
        }
        if (gifts[unit].len() as u64) < most {
            return gifts[unit].insert(value);
        }
        for other in gifts[unit].clone() {
            if give(other, units, most, gifts, tried) {
                gifts[unit].remove(other);
                return gifts[unit].insert(value);
            }
        }
    }
    false
}

struct Reference<'a> {
    spec: &'a Spec,
    columns: &'a [Column],
    secret: &'a Secret,
}

impl Reference<'_> {
    fn keys(&self) -> &[Column] {
        &self.columns[self.spec.key_columns()]
    }

    fn group(&self, row: usize) -> Vec<Value> {
        self.keys().iter().map(|key| key.value(row)).collect()
    }

    fn nothing(&self) -> Vec<Vec<i128>> {
        self.spec.measures.iter().map(|measure| vec![0; measure.cells()]).collect()
    }

    fn write(&self, groups: BTreeMap<Vec<Value>, Group>, rows: usize) -> Tally {
        let firsts: Vec<usize> = groups.values().map(|group| group.2).collect();
        let groups: Vec<_> = groups.into_values().collect();
        let measures = 0..self.spec.measures.len();
        Tally {
            keys: self
                .keys()
                .iter()
                .map(|key| canonical(&key.rows(&firsts).plain_array()).unwrap())
                .collect(),
            units: groups.iter().map(|group| group.0).collect(),
            measures: measures
                .map(|at| match self.spec.measures[at] {
                    Measure::Histogram { cells, .. } => {
                        let found = || {
                            let all = groups.iter().enumerate().flat_map(|(group, numbers)| {
                                (0..)
                                    .zip(&numbers.1[at])
                                    .map(move |(cell, count)| (group, cell, *count as u64))
                            });
                            all.filter(|found| found.2 > 0)
                        };
                        Numbers::Cells(Cells::of(groups.len(), cells as usize, found).unwrap())
                    }
                    _ => Numbers::One(groups.iter().map(|group| group.1[at][0]).collect()),
                })
                .collect(),
            rows_read: rows as u64,
        }
    }

    /// Leaves the groups with the smallest (rank, bytes).
    fn keep(&self, unit: &Value, found: &mut BTreeMap<Vec<Value>, Rows>) {
        let most = self.spec.groups_per_unit as usize;
        if !self.spec.has_unit || self.spec.keys == 0 || found.len() <= most {
            return;
        }
        let hash = self.unit_hash(unit);
        let mut order: Vec<(u32, Vec<Value>)> = found
            .iter()
            .map(|(group, rows)| (rank(hash, self.secret.thing(&bytes(self.keys(), rows[0]))), group.clone()))
            .collect();
        order.sort();
        for (_, group) in &order[most..] {
            found.remove(group);
        }
    }

    fn unit_hash(&self, unit: &Value) -> u64 {
        let word = matches!(kind(&self.columns[0].data_type), Some(Kind::Word(_) | Kind::Nothing));
        match unit {
            Value::Null => 0,
            Value::Int(value) if word => self.secret.unit(*value as u64),
            Value::Int(value) => self.secret.bytes(&value.to_le_bytes()),
            Value::Float(_) => self.secret.unit(unit.float().to_bits()),
            Value::Big(value) => self.secret.bytes(&value.to_le_bytes()),
            Value::Bytes(value) => self.secret.bytes(value),
        }
    }

    fn pick(&self, unit: &Value, input: usize, most: u64, rows: &[usize]) -> Vec<Value> {
        let column = &self.columns[self.spec.input_column(input)];
        let values: BTreeMap<Value, usize> =
            rows.iter().map(|&row| (column.value(row), row)).filter(|(value, _)| value.is_there()).collect();
        if !self.spec.has_unit {
            return values.into_keys().take(most as usize).collect();
        }
        let hash = self.unit_hash(unit);
        let ranked = |(value, row): (Value, usize)| {
            (rank(hash, self.secret.thing(&bytes(std::slice::from_ref(column), row))), value)
        };
        let mut order: Vec<(u32, Value)> = values.into_iter().map(ranked).collect();
        order.sort();
        order.into_iter().take(most.min(1000) as usize).map(|(_, value)| value).collect()
    }

    /// What a unit counts for with these rows, cell by cell.
    fn measure(&self, measure: &Measure, rows: &[usize]) -> Vec<i128> {
        let values: Vec<Value> = measure.input().map_or(Vec::new(), |input| {
            let column = &self.columns[self.spec.input_column(input)];
            rows.iter().map(|&row| column.value(row)).filter(Value::is_there).collect()
        });
        let steps = |step, row| values.iter().map(|value| steps(value, step, row)).collect::<Vec<i128>>();
        match *measure {
            Measure::Count { input: None, most } => vec![(rows.len() as i128).min(most.into())],
            Measure::Count { input: Some(_), most } => vec![(values.len() as i128).min(most.into())],
            Measure::Sum { step, row, unit, .. } => {
                let sum: i128 = steps(step, row).iter().sum();
                vec![sum.max(unit.low.into()).min(unit.high.into())]
            }
            Measure::Deviation { step, row, centre, most, .. } => {
                let sum: i128 = steps(step, row).iter().map(|value| value - i128::from(centre)).sum();
                vec![share(sum, values.len(), most)]
            }
            Measure::Histogram { step, row, cells, most, .. } => {
                let mut counts = vec![0; cells as usize];
                for value in steps(step, row) {
                    let width = i128::from(row.high) - i128::from(row.low) + 1;
                    counts[((value - i128::from(row.low)) * i128::from(cells) / width) as usize] += 1;
                }
                counts.into_iter().map(|count| share(count, values.len(), most)).collect()
            }
            Measure::Distinct { .. } | Measure::Matched { .. } => vec![0],
        }
    }
}

/// amount · most / all, towards 0, if all > most.
fn share(amount: i128, all: usize, most: u64) -> i128 {
    if all as u64 > most { amount * i128::from(most) / all as i128 } else { amount }
}

/// The canonical bytes of a row's things.
fn bytes(columns: &[Column], row: usize) -> Vec<u8> {
    let types: Vec<DataType> = columns.iter().map(|column| plain_type(&column.data_type).clone()).collect();
    let arrays: Vec<ArrayRef> =
        columns.iter().map(|column| canonical(&column.rows(&[row]).plain_array()).unwrap()).collect();
    let rows = crate::groups::row_converter(&types).unwrap().convert_columns(&arrays).unwrap();
    rows.row(0).data().to_vec()
}

fn steps(value: &Value, step: Step, row: Bounds) -> i128 {
    let whole = match (value, step) {
        (Value::Float(_), Step::Binary(exponent)) => float_steps(value.float(), exponent),
        (Value::Int(value), _) => *value,
        (Value::Big(value), _) => {
            let ends = [i128::MIN, i128::MAX].map(arrow::datatypes::i256::from_i128);
            (*value).max(ends[0]).min(ends[1]).as_i128()
        }
        _ => panic!("{value:?} is no number"),
    };
    whole.max(row.low.into()).min(row.high.into())
}

/// ⌊x / 2^exponent + ½⌋, or something beyond every bound.
fn float_steps(value: f64, exponent: i32) -> i128 {
    if value.is_infinite() {
        return if value > 0.0 { i128::MAX } else { i128::MIN };
    }
    let bits = value.abs().to_bits();
    let biased = (bits >> 52) as i32;
    let fraction = (bits & ((1 << 52) - 1)) as i128;
    let (mantissa, power) = if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) };
    let mantissa = if value < 0.0 { -mantissa } else { mantissa };
    match power - exponent {
        _ if mantissa == 0 => 0,
        shift @ 0..=62 => mantissa << shift,
        63.. => mantissa.signum() << 120,
        shift @ -120..=-1 => (mantissa * 2 + (1 << -shift)) >> (1 - shift),
        _ => 0,
    }
}

/// The table as one batch.
pub(crate) fn batch(columns: &[Column], rows: usize) -> RecordBatch {
    let fields: Vec<_> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| arrow::datatypes::Field::new(format!("c{at}"), column.data_type.clone(), true))
        .collect();
    let schema = std::sync::Arc::new(arrow::datatypes::Schema::new(fields));
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows));
    let arrays = columns.iter().map(Column::array).collect();
    RecordBatch::try_new_with_options(schema, arrays, &options).unwrap()
}
