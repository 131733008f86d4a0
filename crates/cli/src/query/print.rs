//! How answers are printed: aligned columns with ± for people, full precision for programs.

use std::io::Write;

use demur_core::Guarantee;
use demur_engine::{Answer, Cell, Note, Quote, Table};
use serde_json::{Map, Value, json};

use crate::args::query::{Form, Shape};
use crate::failure::Failure;
use crate::table::{Side, Table as Columns, one_line};

/// The widest a text is shown in a table.
const WIDEST: usize = 60;

/// Writes an answer.
pub(super) fn answer(
    table: &Table,
    answer: &Answer,
    quote: &Quote,
    form: Form,
    out: &mut impl Write,
) -> Result<(), Failure> {
    match form {
        Form::Table => people(table, out),
        Form::Json => {
            let certificate = &answer.certificate;
            let document = json!({
                "columns": certificate.columns,
                "rows": objects(table),
                "confidence": 0.95,
                "epsilon": quote.guarantee.epsilon.value(),
                "delta": quote.guarantee.delta.value(),
                "budget": certificate.budget.name,
                "entry": certificate.charge.sequence,
                "head": certificate.charge.hash,
                "replayed": answer.replayed,
            });
            Ok(writeln!(out, "{document:#}")?)
        }
        Form::Csv => comma_separated(table, out),
        Form::Lines => lines(table, out),
        Form::Parquet => Ok(out.write_all(&table.to_parquet(&notes(answer, quote))?)?),
        Form::Arrow => Ok(out.write_all(&table.to_arrow_file(&notes(answer, quote))?)?),
    }
}

/// What a file for programs says about itself.
fn notes(answer: &Answer, quote: &Quote) -> Vec<Note> {
    let certificate = &answer.certificate;
    let note = |name: &str, value: String| (format!("demur.{name}"), value);
    vec![
        note("confidence", "0.95".to_owned()),
        note("epsilon", quote.guarantee.epsilon.value().to_string()),
        note("delta", quote.guarantee.delta.value().to_string()),
        note("budget", certificate.budget.name.clone()),
        note("entry", certificate.charge.sequence.to_string()),
        note("head", certificate.charge.hash.to_string()),
    ]
}

/// A table that has no error, and nothing to be said beside it.
pub(crate) fn table(table: &Table, shape: Shape, out: &mut impl Write) -> Result<(), Failure> {
    match shape {
        Shape::Table => people(table, out),
        Shape::Json => {
            Ok(writeln!(out, "{:#}", json!({ "columns": table.headings, "rows": objects(table) }))?)
        }
        Shape::Csv => comma_separated(table, out),
        Shape::Lines => lines(table, out),
    }
}

/// What is said beside the answer.
pub(super) fn told(answer: &Answer, guarantee: Guarantee) -> String {
    let certificate = &answer.certificate;
    let (epsilon, delta) = (guarantee.epsilon.value(), guarantee.delta.value());
    let cost = match answer.replayed {
        true => "answered from the ledger, nothing was charged".to_owned(),
        false => format!(
            "charged ε = {epsilon}, δ = {delta} to `{}`, entry {}",
            certificate.budget.name, certificate.charge.sequence
        ),
    };
    let without =
        !certificate.columns.is_empty() && certificate.columns.iter().all(|column| !column.interval);
    let intervals = if without { "" } else { "± is a 95 % interval; " };
    format!("{intervals}{cost}")
}

/// Aligned columns; the half-width of an interval stands beside its number.
pub(super) fn people(table: &Table, out: &mut impl Write) -> Result<(), Failure> {
    let names: Vec<String> = table.headings.iter().map(|heading| one_line(&heading.name, WIDEST)).collect();
    let mut columns = Vec::new();
    for (name, heading) in names.iter().zip(&table.headings) {
        let number = !matches!(heading.kind.as_str(), "VARCHAR" | "DATE" | "TIMESTAMP" | "BOOLEAN");
        columns.push((name.as_str(), if number { Side::Right } else { Side::Left }));
        if heading.interval {
            columns.push(("±", Side::Left));
        }
    }
    let row = |cells: &Vec<Cell>| {
        let mut texts = Vec::new();
        for (cell, heading) in cells.iter().zip(&table.headings) {
            let (value, around) = readable(cell);
            texts.push(one_line(&value, WIDEST));
            if heading.interval {
                texts.push(around);
            }
        }
        texts
    };
    let rows: Vec<_> = table.rows.iter().map(row).collect();
    Ok(Columns::new(&columns).print(out, &rows)?)
}

/// A value to the digits its error leaves, and the error.
fn readable(cell: &Cell) -> (String, String) {
    let Some((low, high)) = cell.interval else { return (six_digits(&cell.value), String::new()) };
    let Some(value) = cell.value.as_f64() else { return (plain(&cell.value), format!("{low} … {high}")) };
    let (below, above) = (value - low, high - value);
    let wide = below.max(above);
    let whole = cell.value.is_i64() || cell.value.is_u64();
    let places =
        if wide > 0.0 && !whole { (1 - wide.log10().floor() as i32).clamp(0, 12) as usize } else { 0 };
    let shown = if whole { cell.value.to_string() } else { format!("{value:.places$}") };
    let even = (below - above).abs() <= 0.05 * wide;
    let around =
        if even { format!("± {wide:.places$}") } else { format!("{low:.places$} … {high:.places$}") };
    (shown, around)
}

/// A value as text; of a real number six digits are enough for people.
fn six_digits(value: &Value) -> String {
    match value.as_f64().filter(|_| value.is_f64()) {
        Some(number) if number != 0.0 && number.abs() < 1e15 => {
            let places = (5 - number.abs().log10().floor() as i32).clamp(0, 12) as usize;
            let text = format!("{number:.places$}");
            let text =
                if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
            text.to_owned()
        }
        _ => plain(value),
    }
}

/// A value as text, without quotes.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "NULL".to_owned(),
        other => other.to_string(),
    }
}

/// Rows by the names of their columns; an interval has columns of its own.
pub(super) fn objects(table: &Table) -> Vec<Value> {
    let names = table.names();
    let object = |row: &Vec<Cell>| {
        let fields: Map<_, _> = names.iter().cloned().zip(table.values(row)).collect();
        Value::Object(fields)
    };
    table.rows.iter().map(object).collect()
}

fn comma_separated(table: &Table, out: &mut impl Write) -> Result<(), Failure> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(table.names()).map_err(unwritten)?;
    let text = |value: &Value| if value.is_null() { String::new() } else { plain(value) };
    for row in &table.rows {
        writer.write_record(table.values(row).iter().map(text)).map_err(unwritten)?;
    }
    Ok(writer.flush()?)
}

/// The reader of our output may have gone away, which is no failure.
fn unwritten(error: csv::Error) -> Failure {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error.into(),
        other => Failure::new("cli.write", format!("the answer could not be written: {other:?}")),
    }
}

/// One line per row: the value itself if a row is one value, else JSON.
pub(super) fn lines(table: &Table, out: &mut impl Write) -> Result<(), Failure> {
    for (row, object) in table.rows.iter().zip(objects(table)) {
        match row.as_slice() {
            [only] => writeln!(out, "{}", plain(&only.value))?,
            _ => writeln!(out, "{object}")?,
        }
    }
    Ok(())
}

/// One line for a whole answer: the value itself if it is one value, else a JSON list of its rows.
pub(super) fn line(table: &Table, out: &mut impl Write) -> Result<(), Failure> {
    match table.rows.as_slice() {
        [row] if row.len() == 1 => Ok(writeln!(out, "{}", plain(&row[0].value))?),
        rows => {
            let rows: Vec<Value> = rows.iter().map(|row| values(table, row)).collect();
            Ok(writeln!(out, "{}", Value::Array(rows))?)
        }
    }
}

/// A row by the names of its columns, without intervals.
fn values(table: &Table, row: &[Cell]) -> Value {
    let pairs =
        row.iter().zip(&table.headings).map(|(cell, heading)| (heading.name.clone(), cell.value.clone()));
    Value::Object(pairs.collect())
}
