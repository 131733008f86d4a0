//! Types by the names SQL has for them, there and back.
//!
//! A certificate states the type of each column by name, so that an answer can be read long after its query.

use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};

/// Types that have one name, and names that mean one type.
static NAMES: [(&str, DataType); 14] = [
    ("BOOLEAN", DataType::Boolean),
    ("TINYINT", DataType::Int8),
    ("SMALLINT", DataType::Int16),
    ("INTEGER", DataType::Int32),
    ("BIGINT", DataType::Int64),
    ("UTINYINT", DataType::UInt8),
    ("USMALLINT", DataType::UInt16),
    ("UINTEGER", DataType::UInt32),
    ("UBIGINT", DataType::UInt64),
    ("REAL", DataType::Float32),
    ("DOUBLE", DataType::Float64),
    ("VARCHAR", DataType::Utf8),
    ("DATE", DataType::Date32),
    ("TIMESTAMP", DataType::Timestamp(TimeUnit::Microsecond, None)),
];

/// The name of a type.
pub(crate) fn name(data_type: &DataType) -> String {
    match data_type {
        DataType::Decimal128(precision, scale) => format!("DECIMAL({precision}, {scale})"),
        DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR".to_owned(),
        DataType::Date64 => "DATE".to_owned(),
        DataType::Timestamp(..) => "TIMESTAMP".to_owned(),
        DataType::List(field) => format!("{}[]", name(field.data_type())),
        other => match NAMES.iter().find(|(_, data_type)| data_type == other) {
            Some((name, _)) => (*name).to_owned(),
            None => other.to_string(),
        },
    }
}

/// The type of a name; what has no name of SQL is a text.
pub(crate) fn of_name(text: &str) -> DataType {
    if let Some(inside) = text.strip_suffix("[]") {
        return DataType::List(Field::new_list_field(of_name(inside), true).into());
    }
    let decimal = || {
        let (precision, scale) = text.strip_prefix("DECIMAL(")?.strip_suffix(')')?.split_once(',')?;
        Some(DataType::Decimal128(precision.trim().parse().ok()?, scale.trim().parse().ok()?))
    };
    let named = NAMES.iter().find(|(name, _)| *name == text).map(|(_, data_type)| data_type.clone());
    named.or_else(decimal).unwrap_or(DataType::Utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_types() {
        let list = DataType::List(Field::new_list_field(DataType::Float64, true).into());
        let others = [DataType::Decimal128(9, 2), DataType::Decimal128(38, 0), list];
        for data_type in NAMES.iter().map(|(_, data_type)| data_type).chain(&others) {
            assert_eq!(of_name(&name(data_type)), *data_type);
        }
        assert_eq!(of_name(&name(&DataType::Utf8View)), DataType::Utf8);
        assert_eq!(of_name("Interval(MonthDayNano)"), DataType::Utf8);
    }
}
