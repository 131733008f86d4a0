//! [`Place`]: where in the text of a query something stands.

use std::fmt;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Span};
use datafusion::logical_expr::Expr;
use datafusion::sql::sqlparser::tokenizer::{Location, Span as ParsedSpan};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The most letters of a line that are shown.
const SHOWN: usize = 100;
/// How many letters of a long line are shown before the place.
const BEFORE: usize = 40;

/// A stretch of letters in a text; lines and letters are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line it begins in.
    pub line: usize,
    /// Its first letter.
    pub column: usize,
    /// The line it ends in.
    pub last_line: usize,
    /// The letter after its last one.
    pub end: usize,
}

impl Place {
    /// What the planner below us says a mistake is about, if it says so.
    pub(crate) fn of_error(error: &DataFusionError) -> Option<Self> {
        error.diagnostic().and_then(|diagnostic| diagnostic.span).and_then(Self::of_span)
    }

    /// From the first to the last column that an expression names.
    pub(crate) fn of_columns(expr: &Expr) -> Option<Self> {
        let mut spans = Vec::new();
        let _ = expr.apply(|node| {
            spans.extend(node.spans().and_then(|spans| spans.first()));
            Ok(TreeNodeRecursion::Continue)
        });
        Span::union_iter(spans).and_then(Self::of_span)
    }

    /// The place of a token, or of a part of the syntax tree.
    pub(crate) fn of_parsed(span: ParsedSpan) -> Option<Self> {
        Span::try_from_sqlparser_span(span).and_then(Self::of_span)
    }

    /// The one letter at which the parser stopped.
    pub(crate) fn of_location(location: Location) -> Option<Self> {
        let (line, column) = (usize::try_from(location.line).ok()?, usize::try_from(location.column).ok()?);
        (line > 0 && column > 0).then_some(Self { line, column, last_line: line, end: column + 1 })
    }

    /// Behind the last letter of a text.
    pub(crate) fn after(text: &str) -> Self {
        let text = text.trim_end();
        let line = text.matches('\n').count() + 1;
        let column = text.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
        Self { line, column, last_line: line, end: column + 1 }
    }

    /// The whole of a word that begins here.
    pub(crate) fn over(self, word: &str, text: &str) -> Self {
        let line = text.split('\n').nth(self.line - 1).unwrap_or_default();
        let begins = line.chars().skip(self.column - 1).take(word.chars().count()).eq(word.chars());
        let wide = if begins { word.chars().count().max(1) } else { 1 };
        Self { end: self.column + wide, ..self }
    }

    fn of_span(span: Span) -> Option<Self> {
        let number = |number: u64| usize::try_from(number).ok().filter(|number| *number > 0);
        let place = Self {
            line: number(span.start.line)?,
            column: number(span.start.column)?,
            last_line: number(span.end.line)?,
            end: number(span.end.column)?,
        };
        ((place.line, place.column) <= (place.last_line, place.end)).then_some(place)
    }

    /// The line of the text with signs under the place: two lines, ready to be printed below an error.
    ///
    /// ```
    /// # let catalog = "[budget]\nname = \"t\"\n[tables.t]\nfiles = \"t.csv\"\nunit = \"row\"\n[tables.t.columns]\nage = { type = \"int64\" }";
    /// # let catalog = demur_plan::Catalog::read(catalog)?;
    /// let sql = "SELECT COUNT(agee) FROM t";
    /// let place = demur_plan::plan(&catalog, sql).err().and_then(|error| error.place());
    /// let shown = place.and_then(|place| place.show(sql)).unwrap_or_default();
    /// assert_eq!(shown, "1 | SELECT COUNT(agee) FROM t\n  |              ^^^^");
    /// # Ok::<_, demur_plan::PlanError>(())
    /// ```
    pub fn show(&self, text: &str) -> Option<String> {
        let line: Vec<char> = text.split('\n').nth(self.line - 1)?.chars().map(plain).collect();
        let first = self.column - 1;
        if first > line.len() {
            return None;
        }
        let last = if self.last_line > self.line { line.len() } else { self.end - 1 };
        let last = last.clamp(first + 1, line.len().max(first + 1));
        let start = if line.len() > SHOWN { first.saturating_sub(BEFORE) } else { 0 };
        let end = line.len().min(start + SHOWN);
        let (cut_before, cut_after) = (start > 0, end < line.len());
        let part = |from: usize, to: usize| line[from.min(end)..to.min(end)].iter().collect::<String>();
        let shown = format!(
            "{}{}{}",
            if cut_before { "…" } else { "" },
            part(start, end),
            if cut_after { "…" } else { "" }
        );
        let before = part(start, first).width() + usize::from(cut_before);
        let signs = part(first, last).width().max(1);
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        let signs = "^".repeat(signs);
        Some(format!("{number} | {}\n{margin} | {:before$}{signs}", shown.trim_end(), ""))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, letter {}", self.line, self.column)
    }
}

/// A letter as it is shown: what would move the cursor, or takes no room, is a space.
fn plain(letter: char) -> char {
    if letter.is_control() || letter.width().unwrap_or(0) == 0 { ' ' } else { letter }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, line: usize, column: usize, end: usize) -> String {
        Place { line, column, last_line: line, end }.show(text).unwrap_or_default()
    }

    #[test]
    fn signs_stand_under_the_place() {
        assert_eq!(shown("SELECT x FROM t", 1, 8, 9), "1 | SELECT x FROM t\n  |        ^");
        assert_eq!(shown("SELECT\n\txy, z", 2, 2, 4), "2 |  xy, z\n  |  ^^");
        assert_eq!(shown("a\nb\nc\nd\ne\nf\ng\nh\ni\nj", 10, 1, 2), "10 | j\n   | ^");
    }

    #[test]
    fn wide_letters_take_two_columns() {
        assert_eq!(shown("SELECT '年齢', x", 1, 14, 15), "1 | SELECT '年齢', x\n  |                ^");
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let text = format!("SELECT {}here{}", "x".repeat(500), "y".repeat(500));
        let shown = shown(&text, 1, 508, 512);
        let lines: Vec<_> = shown.lines().collect();
        assert_eq!(lines[0].chars().count(), 4 + SHOWN + 2);
        let at = lines[1].find('^').unwrap_or_default();
        assert_eq!(lines[0].chars().skip(at).take(4).collect::<String>(), "here");
    }

    #[test]
    fn a_place_over_several_lines_ends_with_the_first() {
        let place = Place { line: 1, column: 8, last_line: 2, end: 3 };
        assert_eq!(place.show("SELECT a +\n b").unwrap_or_default(), "1 | SELECT a +\n  |        ^^^");
    }

    #[test]
    fn the_end_is_behind_the_last_letter() {
        assert_eq!(
            Place::after("SELECT (\n").show("SELECT (\n").unwrap_or_default(),
            "1 | SELECT (\n  |         ^"
        );
        assert_eq!(Place::after("").show("").unwrap_or_default(), "1 | \n  | ^");
    }

    #[test]
    fn places_outside_of_the_text_show_nothing() {
        assert_eq!(Place { line: 7, column: 1, last_line: 7, end: 2 }.show("x"), None);
        assert_eq!(Place { line: 1, column: 9, last_line: 1, end: 12 }.show("x"), None);
    }

    #[test]
    fn what_moves_the_cursor_is_not_repeated() {
        assert_eq!(shown("a\u{1b}[2Jb", 1, 6, 7), "1 | a [2Jb\n  |      ^");
    }
}
