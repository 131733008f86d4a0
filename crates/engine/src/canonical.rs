//! Canonical JSON: one text for one value, so that it can be hashed and signed.
//!
//! **Definition.** Keys in the order of their bytes, no spaces, strings with as few escapes as JSON allows, whole numbers as
//! their digits. Fractions are texts: a number that is not whole is refused, because readers round it. For such values
//! this is the canonical form of RFC 8785.

use serde_json::Value;

use crate::EngineError;

/// The canonical text of a value.
pub(crate) fn text(value: &Value) -> Result<String, EngineError> {
    let mut out = String::new();
    write(value, &mut out)?;
    Ok(out)
}

fn write(value: &Value, out: &mut String) -> Result<(), EngineError> {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => out.push_str(&value.to_string()),
        Value::Number(number) if number.is_u64() || number.is_i64() => out.push_str(&number.to_string()),
        Value::Number(_) => {
            let text = "a canonical text has whole numbers only; fractions are written as texts";
            return Err(EngineError::new("engine.canonical", text));
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out)?;
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| key.as_bytes());
            out.push('{');
            for (index, (key, item)) in fields.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                write(item, out)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_sorted_and_nothing_is_spaced() {
        let value = json!({"b": [1, -2, null, true], "a": {"z": "é\n\"\u{1f}", "y": {}}, "B": []});
        let canonical = r#"{"B":[],"a":{"y":{},"z":"é\n\"\u001f"},"b":[1,-2,null,true]}"#;
        assert_eq!(text(&value).unwrap(), canonical);
        assert_eq!(text(&serde_json::from_str(canonical).unwrap()).unwrap(), canonical);
    }

    #[test]
    fn fractions_are_refused() {
        assert_eq!(text(&json!([0.5])).unwrap_err().code(), "engine.canonical");
    }
}
