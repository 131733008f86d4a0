//! How answers are printed: facts for people, rows for programs.

use std::io::{self, Write};

/// A table shows at most this many values side by side.
const SHOWN: usize = 20;

/// Two columns of text: what, and the answer.
#[derive(Default)]
pub(crate) struct Facts {
    rows: Vec<(String, String)>,
}

impl Facts {
    pub(crate) fn add(&mut self, what: impl Into<String>, answer: impl Into<String>) -> &mut Self {
        self.rows.push((what.into(), answer.into()));
        self
    }

    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let width = self.rows.iter().map(|(what, _)| what.chars().count()).max().unwrap_or(0);
        for (what, answer) in &self.rows {
            let pad = width - what.chars().count();
            writeln!(out, "{what}{:pad$}  {answer}", "")?;
        }
        Ok(())
    }
}

/// Rows under a header, every column as wide as it needs to be, numbers to the right.
pub(crate) fn print_columns(out: &mut impl Write, header: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let mut line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| {
            let pad = width - cell.chars().count();
            format!("{:pad$}{cell}", "")
        });
        let text = padded.collect::<Vec<_>>().join("  ");
        writeln!(out, "{text}")
    };
    line(header.to_vec())?;
    rows.iter().try_for_each(|row| line(row.iter().map(String::as_str).collect()))
}

/// Values side by side, and how many more there are.
pub(crate) fn first_few(values: &[impl AsRef<str>]) -> String {
    let shown: Vec<&str> = values.iter().take(SHOWN).map(AsRef::as_ref).collect();
    let hidden = values.len() - shown.len();
    match hidden {
        0 => shown.join(", "),
        _ => format!("{} … and {hidden} more (--format lines shows all)", shown.join(", ")),
    }
}

/// A double with four significant digits, without an exponent where people can read it.
pub(crate) fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let magnitude = value.abs().log10().floor() as i32;
    if !(-4..9).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    let places = (3 - magnitude).max(0) as usize;
    let text = format!("{value:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_readable() {
        let texts = [0.0, 2.0, 1.0 / 3.0, 1234.5678, 1e-7, 3.5e12, 0.05, 123_456_789.0].map(short);
        assert_eq!(texts, ["0", "2", "0.3333", "1235", "1.000e-7", "3.500e12", "0.05", "123456789"]);
    }
}
