//! Small tables of every type full of awkward values, for tests.

use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::NullBuffer;
use arrow::datatypes::*;
use proptest::prelude::*;

use crate::column::plain_type;

/// A value as a reader of the table would compare it: NULL first, NaN last, one zero.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value {
    Null,
    Int(i128),
    /// Bits whose order is that of the numbers.
    Float(u64),
    Big(i256),
    Bytes(Vec<u8>),
}

const SIGN: u64 = 1 << 63;

impl Value {
    fn of_float(value: f64) -> Self {
        let bits = if value.is_nan() { f64::NAN.abs() } else { value + 0.0 }.to_bits();
        Self::Float(if bits & SIGN == 0 { bits | SIGN } else { !bits })
    }

    pub(crate) fn float(&self) -> f64 {
        let Self::Float(bits) = *self else { panic!("{self:?} is no float") };
        f64::from_bits(if bits & SIGN == 0 { !bits } else { bits & !SIGN })
    }

    /// Neither NULL nor NaN.
    pub(crate) fn is_there(&self) -> bool {
        *self != Self::Null && *self != Self::of_float(f64::NAN)
    }
}

/// How many different values a column is made of; some of them are equal.
const POOL: usize = 8;

const INTEGERS: [i128; POOL] = [0, 1, -1, i64::MIN as i128, i64::MAX as i128, 7, u64::MAX as i128 - 1, 100];
const WIDE: [i128; POOL] = [0, 1, -1, 10i128.pow(38) - 1, 1 - 10i128.pow(38), 1 << 70, 42, i64::MIN as i128];
const FLOATS: [f64; POOL] =
    [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.5, -1.5, f64::from_bits(0xFFF8_0000_0000_0001)];
const STRINGS: [&str; POOL] = [
    "",
    "a",
    "b",
    "twelve bytes",
    "thirteen byte",
    "thirteen bytf",
    "\0",
    "a string of rather many bytes, about fifty of them",
];

/// A column: its type, and for each row which of the pool's values it has.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) data_type: DataType,
    pub(crate) picks: Vec<Option<usize>>,
}

impl Column {
    /// Some of the rows.
    pub(crate) fn rows(&self, rows: &[usize]) -> Self {
        Self {
            data_type: self.data_type.clone(),
            picks: rows.iter().map(|&row| self.picks.get(row).copied().flatten()).collect(),
        }
    }

    pub(crate) fn value(&self, row: usize) -> Value {
        let Some(pick) = self.picks[row] else { return Value::Null };
        match plain_type(&self.data_type) {
            DataType::Null => Value::Null,
            DataType::Boolean => Value::Int((pick % 2) as i128),
            DataType::Int8 => Value::Int((INTEGERS[pick] as i8).into()),
            DataType::Int16 => Value::Int((INTEGERS[pick] as i16).into()),
            DataType::UInt8 => Value::Int((INTEGERS[pick] as u8).into()),
            DataType::UInt16 => Value::Int((INTEGERS[pick] as u16).into()),
            DataType::UInt32 => Value::Int((INTEGERS[pick] as u32).into()),
            DataType::UInt64 => Value::Int((INTEGERS[pick] as u64).into()),
            DataType::Int32 | DataType::Date32 | DataType::Time32(_) | DataType::Decimal32(..) => {
                Value::Int((INTEGERS[pick] as i32).into())
            }
            DataType::Decimal128(..) => Value::Int(WIDE[pick]),
            DataType::Decimal256(..) => Value::Big(big(pick)),
            DataType::Float16 => Value::of_float(half(pick).to_f64()),
            DataType::Float32 => Value::of_float(f64::from(FLOATS[pick] as f32)),
            DataType::Float64 => Value::of_float(FLOATS[pick]),
            DataType::FixedSizeBinary(_) => Value::Bytes(fixed(pick).to_vec()),
            plain if is_text(plain) => Value::Bytes(STRINGS[pick].as_bytes().to_vec()),
            _ => Value::Int((INTEGERS[pick] as i64).into()),
        }
    }

    /// The column, with a dictionary if it has one: some of its values are NULL, some are not used.
    pub(crate) fn array(&self) -> ArrayRef {
        let DataType::Dictionary(keys, values) = &self.data_type else { return self.plain_array() };
        let pool = Self { data_type: (**values).clone(), picks: (0..POOL).map(Some).chain([None]).collect() };
        let pool = pool.plain_array();
        // A NULL is a NULL key or the key of a NULL, by turns.
        let key = |(row, pick): (usize, &Option<usize>)| match pick {
            Some(pick) => Some(*pick),
            None => (row % 2 == 0).then_some(POOL),
        };
        let places = self.picks.iter().enumerate().map(key);
        match **keys {
            DataType::Int8 => {
                let keys = places.map(|place| place.map(|place| place as i8)).collect::<Int8Array>();
                Arc::new(DictionaryArray::new(keys, pool))
            }
            _ => {
                let keys = places.map(|place| place.map(|place| place as u32)).collect::<UInt32Array>();
                Arc::new(DictionaryArray::new(keys, pool))
            }
        }
    }

    /// The column without its dictionary.
    pub(crate) fn plain_array(&self) -> ArrayRef {
        let data_type = plain_type(&self.data_type).clone();
        let strings = || self.picks.iter().map(|pick| pick.map(|pick| STRINGS[pick]));
        let bytes = || self.picks.iter().map(|pick| pick.map(|pick| STRINGS[pick].as_bytes()));
        match &data_type {
            DataType::Null => Arc::new(NullArray::new(self.picks.len())),
            DataType::Boolean => Arc::new(
                self.picks.iter().map(|pick| pick.map(|pick| pick % 2 == 1)).collect::<BooleanArray>(),
            ),
            DataType::Int8 => self.primitive::<Int8Type>(|pick| INTEGERS[pick] as i8),
            DataType::Int16 => self.primitive::<Int16Type>(|pick| INTEGERS[pick] as i16),
            DataType::Int32 => self.primitive::<Int32Type>(|pick| INTEGERS[pick] as i32),
            DataType::UInt8 => self.primitive::<UInt8Type>(|pick| INTEGERS[pick] as u8),
            DataType::UInt16 => self.primitive::<UInt16Type>(|pick| INTEGERS[pick] as u16),
            DataType::UInt32 => self.primitive::<UInt32Type>(|pick| INTEGERS[pick] as u32),
            DataType::UInt64 => self.primitive::<UInt64Type>(|pick| INTEGERS[pick] as u64),
            DataType::Date32 => self.primitive::<Date32Type>(|pick| INTEGERS[pick] as i32),
            DataType::Date64 => self.primitive::<Date64Type>(|pick| INTEGERS[pick] as i64),
            DataType::Time32(_) => self.primitive::<Time32SecondType>(|pick| INTEGERS[pick] as i32),
            DataType::Time64(_) => self.primitive::<Time64NanosecondType>(|pick| INTEGERS[pick] as i64),
            DataType::Timestamp(..) => {
                self.primitive::<TimestampMicrosecondType>(|pick| INTEGERS[pick] as i64)
            }
            DataType::Duration(_) => self.primitive::<DurationSecondType>(|pick| INTEGERS[pick] as i64),
            DataType::Decimal32(..) => self.primitive::<Decimal32Type>(|pick| INTEGERS[pick] as i32),
            DataType::Decimal64(..) => self.primitive::<Decimal64Type>(|pick| INTEGERS[pick] as i64),
            DataType::Decimal128(..) => self.primitive::<Decimal128Type>(|pick| WIDE[pick]),
            DataType::Decimal256(..) => self.primitive::<Decimal256Type>(big),
            DataType::Float16 => self.primitive::<Float16Type>(half),
            DataType::Float32 => self.primitive::<Float32Type>(|pick| FLOATS[pick] as f32),
            DataType::Float64 => self.primitive::<Float64Type>(|pick| FLOATS[pick]),
            DataType::Utf8 => Arc::new(strings().collect::<StringArray>()),
            DataType::LargeUtf8 => Arc::new(strings().collect::<LargeStringArray>()),
            DataType::Utf8View => Arc::new(strings().collect::<StringViewArray>()),
            DataType::Binary => Arc::new(bytes().collect::<BinaryArray>()),
            DataType::LargeBinary => Arc::new(bytes().collect::<LargeBinaryArray>()),
            DataType::BinaryView => Arc::new(bytes().collect::<BinaryViewArray>()),
            DataType::FixedSizeBinary(size) => {
                let values = self.picks.iter().map(|pick| pick.map(fixed));
                Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, *size).unwrap())
            }
            _ => self.primitive::<Int64Type>(|pick| INTEGERS[pick] as i64),
        }
    }

    /// Rows that are NULL hold a value beneath, which must not matter.
    fn primitive<T: ArrowPrimitiveType>(&self, of: impl Fn(usize) -> T::Native) -> ArrayRef {
        let values = self.picks.iter().map(|pick| of(pick.unwrap_or(3))).collect::<Vec<_>>();
        let valid = NullBuffer::from(self.picks.iter().map(Option::is_some).collect::<Vec<_>>());
        let array = PrimitiveArray::<T>::new(values.into(), Some(valid));
        Arc::new(array.with_data_type(plain_type(&self.data_type).clone()))
    }
}

fn big(pick: usize) -> i256 {
    [
        i256::ZERO,
        i256::ONE,
        i256::MINUS_ONE,
        i256::MAX,
        i256::MIN,
        i256::from_i128(i128::MAX),
        i256::from(7i64),
        i256::ZERO,
    ][pick]
}

fn half(pick: usize) -> <Float16Type as ArrowPrimitiveType>::Native {
    type Half = <Float16Type as ArrowPrimitiveType>::Native;
    Half::from_f64(FLOATS[pick])
}

fn fixed(pick: usize) -> [u8; 3] {
    [[0, 0, 0], [0, 0, 1], [1, 0, 0], [255, 255, 255], [0, 0, 0], [7, 7, 7], [0, 1, 0], [1, 1, 1]][pick]
}

fn is_text(data_type: &DataType) -> bool {
    use DataType::*;
    matches!(data_type, Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView)
}

/// Every type that can be a unit, a key, or counted; half of them behind a dictionary.
pub(crate) fn any_type() -> impl Strategy<Value = DataType> {
    use DataType::*;
    let plain = prop::sample::select(vec![
        Null,
        Boolean,
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float16,
        Float32,
        Float64,
        Date32,
        Date64,
        Time32(TimeUnit::Second),
        Time64(TimeUnit::Nanosecond),
        Timestamp(TimeUnit::Microsecond, None),
        Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Duration(TimeUnit::Second),
        Decimal32(9, 2),
        Decimal64(18, 2),
        Decimal128(38, 2),
        Decimal256(76, 2),
        Utf8,
        LargeUtf8,
        Utf8View,
        Utf8View,
        Binary,
        LargeBinary,
        BinaryView,
        FixedSizeBinary(3),
    ]);
    (plain, prop::sample::select(vec![None, None, Some(Int8), Some(UInt32)])).prop_map(|(plain, keys)| {
        match keys {
            Some(keys) if plain != Null => Dictionary(Box::new(keys), Box::new(plain)),
            _ => plain,
        }
    })
}

/// A column of some type.
pub(crate) fn any_column(rows: usize) -> impl Strategy<Value = Column> {
    let picks = prop::collection::vec(prop::option::weighted(0.85, 0..POOL), rows);
    (any_type(), picks).prop_map(|(data_type, picks)| Column { data_type, picks })
}
