//! [`Column`]: a name, a type, and what the owner says about its values.

use std::fmt;
use std::str::FromStr;

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use demur_exact::Rational;

use crate::PlanError;

/// What the owner says about a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its type.
    pub column_type: ColumnType,
    /// Values below count as this one.
    pub low: Option<Rational>,
    /// Values above count as this one.
    pub high: Option<Rational>,
    /// The values that everybody may know, if they are all that matter.
    pub values: Option<Vec<ScalarValue>>,
}

/// The types columns have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// true or false.
    Boolean,
    /// Signed whole numbers of 8, 16, 32 or 64 bits.
    Int(u8),
    /// Unsigned whole numbers of 8, 16, 32 or 64 bits.
    UInt(u8),
    /// Floating point numbers of 32 or 64 bits.
    Float(u8),
    /// Decimals of so many digits, so many of them after the point.
    Decimal(u8, i8),
    /// Text.
    String,
    /// Days.
    Date,
    /// Moments, in microseconds.
    Timestamp,
}

impl ColumnType {
    /// The type in which values travel.
    pub fn arrow(self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::Int(8) => DataType::Int8,
            Self::Int(16) => DataType::Int16,
            Self::Int(32) => DataType::Int32,
            Self::Int(_) => DataType::Int64,
            Self::UInt(8) => DataType::UInt8,
            Self::UInt(16) => DataType::UInt16,
            Self::UInt(32) => DataType::UInt32,
            Self::UInt(_) => DataType::UInt64,
            Self::Float(32) => DataType::Float32,
            Self::Float(_) => DataType::Float64,
            Self::Decimal(precision, scale) => DataType::Decimal128(precision, scale),
            Self::String => DataType::Utf8View,
            Self::Date => DataType::Date32,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        }
    }

    /// The type for a column that is stored like this, if there is one.
    pub fn of_arrow(stored: &DataType) -> Option<Self> {
        Some(match stored {
            DataType::Boolean => Self::Boolean,
            DataType::Int8 => Self::Int(8),
            DataType::Int16 => Self::Int(16),
            DataType::Int32 => Self::Int(32),
            DataType::Int64 => Self::Int(64),
            DataType::UInt8 => Self::UInt(8),
            DataType::UInt16 => Self::UInt(16),
            DataType::UInt32 => Self::UInt(32),
            DataType::UInt64 => Self::UInt(64),
            DataType::Float32 => Self::Float(32),
            DataType::Float64 => Self::Float(64),
            DataType::Decimal128(precision, scale) if *scale >= 0 => Self::Decimal(*precision, *scale),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::String,
            DataType::Dictionary(_, values) if Self::of_arrow(values) == Some(Self::String) => Self::String,
            DataType::Date32 => Self::Date,
            DataType::Timestamp(TimeUnit::Microsecond, None) => Self::Timestamp,
            _ => return None,
        })
    }

    /// Whether sums and bounds mean something.
    pub fn is_numeric(self) -> bool {
        matches!(self, Self::Int(_) | Self::UInt(_) | Self::Float(_) | Self::Decimal(..))
    }

    /// Whether values have a place on a line, so that bounds mean something.
    pub fn is_ordered_number(self) -> bool {
        self.is_numeric() || matches!(self, Self::Date | Self::Timestamp)
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean => f.write_str("boolean"),
            Self::Int(bits) => write!(f, "int{bits}"),
            Self::UInt(bits) => write!(f, "uint{bits}"),
            Self::Float(bits) => write!(f, "float{bits}"),
            Self::Decimal(precision, scale) => write!(f, "decimal({precision}, {scale})"),
            Self::String => f.write_str("string"),
            Self::Date => f.write_str("date"),
            Self::Timestamp => f.write_str("timestamp"),
        }
    }
}

impl FromStr for ColumnType {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let plain = text.trim().to_ascii_lowercase();
        let unknown = || {
            PlanError::mistake("catalog.type", format!("`{text}` is no type of a column")).hint(
                "there are: boolean, int8 to int64, uint8 to uint64, float32, float64, decimal(p, s), string, date, timestamp",
            )
        };
        if let Some(inside) = plain.strip_prefix("decimal(").and_then(|rest| rest.strip_suffix(')')) {
            let (precision, scale) = inside.split_once(',').ok_or_else(unknown)?;
            let precision: u8 = precision.trim().parse().map_err(|_| unknown())?;
            let scale: i8 = scale.trim().parse().map_err(|_| unknown())?;
            let holds = (1..=38).contains(&precision) && scale >= 0 && scale as u8 <= precision;
            return if holds { Ok(Self::Decimal(precision, scale)) } else { Err(unknown()) };
        }
        Ok(match plain.as_str() {
            "boolean" => Self::Boolean,
            "int8" => Self::Int(8),
            "int16" => Self::Int(16),
            "int32" => Self::Int(32),
            "int64" => Self::Int(64),
            "uint8" => Self::UInt(8),
            "uint16" => Self::UInt(16),
            "uint32" => Self::UInt(32),
            "uint64" => Self::UInt(64),
            "float32" => Self::Float(32),
            "float64" => Self::Float(64),
            "string" => Self::String,
            "date" => Self::Date,
            "timestamp" => Self::Timestamp,
            _ => return Err(unknown()),
        })
    }
}
