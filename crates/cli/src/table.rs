//! [`Table`]: rows under a header, as they come.

use std::io::{self, Write};

use crate::failure::moves;

/// To which side a column is pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// Columns with their widths so far. Rows may be printed in several portions: a column gets wider when it must.
pub(crate) struct Table<'a> {
    columns: &'a [(&'a str, Side)],
    widths: Vec<usize>,
    begun: bool,
}

impl<'a> Table<'a> {
    pub(crate) fn new(columns: &'a [(&'a str, Side)]) -> Self {
        let widths = columns.iter().map(|(name, _)| name.chars().count()).collect();
        Self { columns, widths, begun: false }
    }

    /// Prints all rows there are, without the columns that say nothing.
    pub(crate) fn print_all(self, out: &mut impl Write, rows: &[Vec<String>]) -> io::Result<()> {
        let used = |column: &usize| rows.is_empty() || rows.iter().any(|row| !row[*column].is_empty());
        let kept: Vec<usize> = (0..self.columns.len()).filter(used).collect();
        let columns: Vec<_> = kept.iter().map(|column| self.columns[*column]).collect();
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| kept.iter().map(|column| row[*column].clone()).collect()).collect();
        Table::new(&columns).print(out, &rows)
    }

    /// Prints rows, and the header before the first of them.
    pub(crate) fn print(&mut self, out: &mut impl Write, rows: &[Vec<String>]) -> io::Result<()> {
        for row in rows {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        if !self.begun {
            self.begun = true;
            let header: Vec<String> = self.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
            self.line(out, &header)?;
        }
        rows.iter().try_for_each(|row| self.line(out, row))
    }

    fn line(&self, out: &mut impl Write, cells: &[String]) -> io::Result<()> {
        let mut text = String::new();
        for ((cell, width), (_, side)) in cells.iter().zip(&self.widths).zip(self.columns) {
            let pad = " ".repeat(width - cell.chars().count());
            match side {
                Side::Left => text.push_str(&format!("{cell}{pad}  ")),
                Side::Right => text.push_str(&format!("{pad}{cell}  ")),
            }
        }
        writeln!(out, "{}", text.trim_end())
    }
}

/// One line of at most so many letters: what would move the cursor is a space.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let clean = |letter: char| if moves(letter) { ' ' } else { letter };
    match text.chars().count() > most {
        true => text.chars().take(most.saturating_sub(1)).map(clean).chain(['…']).collect(),
        false => text.chars().map(clean).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_must_be() {
        let mut table = Table::new(&[("name", Side::Left), ("n", Side::Right)]);
        let mut out = Vec::new();
        let row = |name: &str, n: &str| vec![name.to_owned(), n.to_owned()];
        table.print(&mut out, &[row("a", "1"), row("visits", "12")]).unwrap();
        table.print(&mut out, &[row("ε", "3")]).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "name     n\na        1\nvisits  12\nε        3\n");
    }

    #[test]
    fn columns_that_say_nothing_are_left_out() {
        let table = Table::new(&[("name", Side::Left), ("empty", Side::Left), ("n", Side::Right)]);
        let mut out = Vec::new();
        table.print_all(&mut out, &[["a", "", "1"].map(str::to_owned).to_vec()]).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "name  n\na     1\n");
    }

    #[test]
    fn texts_of_others_stay_on_their_line() {
        assert_eq!(one_line("a\u{1b}[2Jb\nc", 20), "a [2Jb c");
        assert_eq!(one_line("a\u{202e}b", 20), "a b");
        assert_eq!(one_line("abcdef", 4), "abc…");
    }
}
