//! How answers are printed: aligned columns with ± for people, full precision for programs.

use std::io::Write;

use demur_engine::{Answer, Cell, Quote, Table};
use serde_json::{Map, Value, json};

use crate::args::query::Shape;
use crate::failure::Failure;
use crate::table::{Side, Table as Columns, one_line};

/// The widest a text is shown in a table.
const WIDEST: usize = 60;

pub(super) fn answer(
    table: &Table,
    answer: &Answer,
    quote: &Quote,
    shape: Shape,
    out: &mut impl Write,
) -> Result<(), Failure> {
    match shape {
        Shape::Table => {
            people(table, out)?;
            told(answer, quote);
            Ok(())
        }
        Shape::Json => {
            let certificate = &answer.certificate;
            let document = json!({
                "columns": certificate.columns,
                "rows": table.rows.iter().map(|row| object(table, row)).collect::<Vec<_>>(),
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
        Shape::Csv => comma_separated(table, out),
        Shape::Lines => lines(table, out),
    }
}

/// A table that has no error, and nothing to be said beside it.
pub(crate) fn table(table: &Table, shape: Shape, out: &mut impl Write) -> Result<(), Failure> {
    match shape {
        Shape::Table => people(table, out),
        Shape::Json => {
            let rows: Vec<_> = table.rows.iter().map(|row| object(table, row)).collect();
            Ok(writeln!(out, "{:#}", json!({ "columns": table.headings, "rows": rows }))?)
        }
        Shape::Csv => comma_separated(table, out),
        Shape::Lines => lines(table, out),
    }
}

/// What is said beside the answer.
fn told(answer: &Answer, quote: &Quote) {
    let certificate = &answer.certificate;
    let (epsilon, delta) = (quote.guarantee.epsilon.value(), quote.guarantee.delta.value());
    let cost = match answer.replayed {
        true => "answered from the ledger, nothing was charged".to_owned(),
        false => format!(
            "charged ε = {epsilon}, δ = {delta} to `{}`, entry {}",
            certificate.budget.name, certificate.charge.sequence
        ),
    };
    let _ = writeln!(std::io::stderr(), "± is a 95 % interval; {cost}");
}

/// Aligned columns; the half-width of an interval stands beside its number.
pub(super) fn people(table: &Table, out: &mut impl Write) -> Result<(), Failure> {
    let mut columns = Vec::new();
    for heading in &table.headings {
        let number = !matches!(heading.kind.as_str(), "VARCHAR" | "DATE" | "TIMESTAMP" | "BOOLEAN");
        columns.push((heading.name.as_str(), if number { Side::Right } else { Side::Left }));
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
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "NULL".to_owned(),
        other => other.to_string(),
    }
}

/// A row by the names of its columns; an interval has columns of its own.
fn object(table: &Table, row: &[Cell]) -> Value {
    let mut object = Map::new();
    for (cell, heading) in row.iter().zip(&table.headings) {
        object.insert(heading.name.clone(), cell.value.clone());
        if heading.interval {
            let end = |pick: fn((f64, f64)) -> f64| {
                cell.interval.map_or(Value::Null, |ends| Value::from(pick(ends)))
            };
            object.insert(format!("{}_low", heading.name), end(|ends| ends.0));
            object.insert(format!("{}_high", heading.name), end(|ends| ends.1));
        }
    }
    Value::Object(object)
}

fn comma_separated(table: &Table, out: &mut impl Write) -> Result<(), Failure> {
    let mut writer = csv::Writer::from_writer(out);
    let wrong =
        |error: csv::Error| Failure::new("cli.write", format!("the answer could not be written: {error}"));
    let mut names = Vec::new();
    for heading in &table.headings {
        names.push(heading.name.clone());
        if heading.interval {
            names.extend([format!("{}_low", heading.name), format!("{}_high", heading.name)]);
        }
    }
    writer.write_record(&names).map_err(wrong)?;
    for row in &table.rows {
        let mut texts = Vec::new();
        for (cell, heading) in row.iter().zip(&table.headings) {
            texts.push(if cell.value.is_null() { String::new() } else { plain(&cell.value) });
            if heading.interval {
                let ends = cell.interval.map_or([String::new(), String::new()], |(low, high)| {
                    [low.to_string(), high.to_string()]
                });
                texts.extend(ends);
            }
        }
        writer.write_record(&texts).map_err(wrong)?;
    }
    Ok(writer.flush()?)
}

/// One line per row: the value itself if a row is one value, else JSON.
pub(super) fn lines(table: &Table, out: &mut impl Write) -> Result<(), Failure> {
    for row in &table.rows {
        match row.as_slice() {
            [only] => writeln!(out, "{}", plain(&only.value))?,
            _ => writeln!(out, "{}", object(table, row))?,
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
