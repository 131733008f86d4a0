//! Columns as what they mean: which values are there, and which are the same.
//!
//! **Definition.** A *thing* is a value made canonical, so that equal values have equal bytes: −0.0 is 0.0, every NaN is one NaN, a dictionary is
//! read through. A thing is a 64-bit word (integers, floats, booleans, dates, times), a 128-bit word (wide decimals), or a
//! string of bytes; NULL is none of them.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BooleanArray, PrimitiveArray, downcast_dictionary_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::datatypes::{
    ArrowNativeType, ArrowPrimitiveType, DataType, Float16Type, Float32Type, Float64Type, TimeUnit,
};

use crate::error::TallyError;

/// How the things of a column are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing but NULL.
    Nothing,
    /// 64 bits.
    Word(Native),
    /// 128 bits.
    Wide,
    /// Any number of bytes.
    Bytes,
}

/// What the machine sees of a [`Kind::Word`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Native {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
}

impl Native {
    pub(crate) fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }
}

/// The kind of a type, read through a dictionary; none for nested types and intervals.
pub(crate) fn kind(data_type: &DataType) -> Option<Kind> {
    Some(match plain_type(data_type) {
        DataType::Null => Kind::Nothing,
        DataType::Boolean => Kind::Word(Native::Bool),
        DataType::Int8 => Kind::Word(Native::I8),
        DataType::Int16 => Kind::Word(Native::I16),
        DataType::Int32 | DataType::Date32 | DataType::Decimal32(..) => Kind::Word(Native::I32),
        DataType::Time32(TimeUnit::Second | TimeUnit::Millisecond) => Kind::Word(Native::I32),
        DataType::Int64 | DataType::Date64 | DataType::Decimal64(..) => Kind::Word(Native::I64),
        DataType::Time64(TimeUnit::Microsecond | TimeUnit::Nanosecond) => Kind::Word(Native::I64),
        DataType::Timestamp(..) | DataType::Duration(_) => Kind::Word(Native::I64),
        DataType::UInt8 => Kind::Word(Native::U8),
        DataType::UInt16 => Kind::Word(Native::U16),
        DataType::UInt32 => Kind::Word(Native::U32),
        DataType::UInt64 => Kind::Word(Native::U64),
        DataType::Float16 => Kind::Word(Native::F16),
        DataType::Float32 => Kind::Word(Native::F32),
        DataType::Float64 => Kind::Word(Native::F64),
        DataType::Decimal128(..) => Kind::Wide,
        DataType::Decimal256(..) | DataType::FixedSizeBinary(_) => Kind::Bytes,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Kind::Bytes,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Kind::Bytes,
        _ => return None,
    })
}

/// The type without a dictionary around it.
pub(crate) fn plain_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values,
        plain => plain,
    }
}

/// The column without a dictionary around it.
pub(crate) fn plain(array: &ArrayRef) -> Result<ArrayRef, TallyError> {
    let array = array.as_ref();
    downcast_dictionary_array!(
        array => take(array.values(), array.keys(), None).map_err(|_| TallyError::ours("a dictionary could not be read")),
        _ => Ok(array.slice(0, array.len()))
    )
}

/// The column without a dictionary, with one zero and one NaN.
pub(crate) fn canonical(array: &ArrayRef) -> Result<ArrayRef, TallyError> {
    let array = plain(array)?;
    Ok(match array.data_type() {
        DataType::Float16 => one_zero::<Float16Type>(&array, |v| v.is_nan(), |v| v.to_f32() == 0.0),
        DataType::Float32 => one_zero::<Float32Type>(&array, |v| v.is_nan(), |v| v == 0.0),
        DataType::Float64 => one_zero::<Float64Type>(&array, |v| v.is_nan(), |v| v == 0.0),
        _ => array,
    })
}

fn one_zero<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    nan: impl Fn(T::Native) -> bool,
    zero: impl Fn(T::Native) -> bool,
) -> ArrayRef {
    let array: PrimitiveArray<T> = array.as_primitive::<T>().unary(|value| {
        if nan(value) {
            canonical_nan::<T>()
        } else if zero(value) {
            T::Native::default()
        } else {
            value
        }
    });
    Arc::new(array)
}

/// The positive quiet NaN without payload.
fn canonical_nan<T: ArrowPrimitiveType>() -> T::Native {
    let bits: [u8; 8] = match size_of::<T::Native>() {
        2 => [0x00, 0x7E, 0, 0, 0, 0, 0, 0],
        4 => [0, 0, 0xC0, 0x7F, 0, 0, 0, 0],
        _ => [0, 0, 0, 0, 0, 0, 0xF8, 0x7F],
    };
    arrow::buffer::Buffer::from(&bits[..]).typed_data::<T::Native>()[0]
}

/// Which values are there: neither NULL nor NaN. None means all.
pub(crate) fn there(array: &ArrayRef) -> Option<NullBuffer> {
    let nulls = nulls(array);
    let Some(Kind::Word(native)) = kind(array.data_type()) else { return nulls };
    if !native.is_float() {
        return nulls;
    }
    let mut numbers = Vec::with_capacity(array.len());
    floats(&array.to_data(), native, &mut numbers, |value| !value.is_nan());
    NullBuffer::union(nulls.as_ref(), Some(&NullBuffer::from(numbers)))
}

/// Which values are not NULL. None means all.
pub(crate) fn nulls(array: &ArrayRef) -> Option<NullBuffer> {
    array.logical_nulls().filter(|nulls| nulls.null_count() > 0)
}

/// Makes these the things of a [`Kind::Word`] column without dictionary; those of NULL rows mean nothing.
pub(crate) fn words_into(array: &ArrayRef, native: Native, words: &mut Vec<u64>) {
    let data = array.to_data();
    match native {
        Native::F16 | Native::F32 | Native::F64 => {
            floats(&data, native, words, |value| {
                if value.is_nan() {
                    f64::NAN.to_bits() & !(1 << 63)
                } else if value == 0.0 {
                    0
                } else {
                    value.to_bits()
                }
            });
        }
        Native::U64 => replace(words, values::<u64>(&data), |value| value),
        _ => integers(array, &data, native, words, |value| value as u64),
    }
}

/// Makes these something of each value of an integer column; those beyond the range count as the end of the range.
#[inline(always)]
pub(crate) fn integers<T: Copy + Default>(
    array: &ArrayRef,
    data: &ArrayData,
    native: Native,
    found: &mut Vec<T>,
    of: impl Fn(i64) -> T,
) {
    match native {
        Native::Bool => {
            let array: &BooleanArray = array.as_boolean();
            found.clear();
            found.extend(array.values().iter().map(|value| of(i64::from(value))));
        }
        Native::I8 => replace(found, values::<i8>(data), |value| of(i64::from(value))),
        Native::I16 => replace(found, values::<i16>(data), |value| of(i64::from(value))),
        Native::I32 => replace(found, values::<i32>(data), |value| of(i64::from(value))),
        Native::I64 => replace(found, values::<i64>(data), of),
        Native::U8 => replace(found, values::<u8>(data), |value| of(i64::from(value))),
        Native::U16 => replace(found, values::<u16>(data), |value| of(i64::from(value))),
        Native::U32 => replace(found, values::<u32>(data), |value| of(i64::from(value))),
        Native::U64 => {
            replace(found, values::<u64>(data), |value| of(i64::try_from(value).unwrap_or(i64::MAX)));
        }
        Native::F16 | Native::F32 | Native::F64 => {}
    }
}

/// Makes these something of each value of a float column.
#[inline(always)]
pub(crate) fn floats<T: Copy + Default>(
    data: &ArrayData,
    native: Native,
    found: &mut Vec<T>,
    of: impl Fn(f64) -> T,
) {
    type Half = <Float16Type as ArrowPrimitiveType>::Native;
    match native {
        Native::F16 => replace(found, values::<Half>(data), |value| of(value.to_f64())),
        Native::F32 => replace(found, values::<f32>(data), |value| of(f64::from(value))),
        Native::F64 => replace(found, values::<f64>(data), of),
        _ => {}
    }
}

/// A plain loop, which is compiled as a part of its caller. What stood there is written over, so that batches of one length need no room made for them.
#[inline(always)]
fn replace<V: Copy, T: Copy + Default>(found: &mut Vec<T>, values: &[V], of: impl Fn(V) -> T) {
    found.resize(values.len(), T::default());
    for (found, &value) in found.iter_mut().zip(values) {
        *found = of(value);
    }
}

fn values<T: ArrowNativeType>(data: &ArrayData) -> &[T] {
    &data.buffer::<T>(0)[..data.len()]
}

/// Hands out the bytes of each value of a [`Kind::Bytes`] or [`Kind::Wide`] column without dictionary, with its row.
pub(crate) fn each_bytes(
    array: &ArrayRef,
    mut take: impl FnMut(usize, &[u8]) -> Result<(), TallyError>,
) -> Result<(), TallyError> {
    macro_rules! each {
        ($values:expr) => {{
            let values = $values;
            for row in 0..values.len() {
                if values.is_valid(row) {
                    take(row, values.value(row).as_ref())?;
                }
            }
        }};
    }
    match array.data_type() {
        DataType::Utf8 => each!(array.as_string::<i32>()),
        DataType::LargeUtf8 => each!(array.as_string::<i64>()),
        DataType::Utf8View => each!(array.as_string_view()),
        DataType::Binary => each!(array.as_binary::<i32>()),
        DataType::LargeBinary => each!(array.as_binary::<i64>()),
        DataType::BinaryView => each!(array.as_binary_view()),
        DataType::FixedSizeBinary(_) => each!(array.as_fixed_size_binary()),
        DataType::Decimal128(..) | DataType::Decimal256(..) => {
            let data = array.to_data();
            let width = if matches!(array.data_type(), DataType::Decimal128(..)) { 16 } else { 32 };
            let bytes = &data.buffers()[0].as_slice()[data.offset() * width..];
            for (row, value) in bytes.chunks_exact(width).take(array.len()).enumerate() {
                if array.is_valid(row) {
                    take(row, value)?;
                }
            }
        }
        _ => return Err(TallyError::ours("a column of numbers was read as bytes")),
    }
    Ok(())
}
