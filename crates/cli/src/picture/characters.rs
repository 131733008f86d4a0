//! Pictures made of characters, for the terminal: no colour is needed to read them.

use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::bars::{Grouped, grouped};
use super::{Picture, label};
use crate::output::short;
use crate::table::one_line;

/// The narrowest terminal that is drawn for.
const NARROWEST: usize = 40;
/// From light to dark.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

/// Bars of blocks from 0; `├` and `┤` are the ends of the interval.
pub(super) fn bars(picture: &Picture, width: usize) -> String {
    let (low, high) = picture.range();
    rows(picture, width, (low.min(0.0), high.max(0.0)), |line, [zero, value, from, to]| {
        line[from..=to].fill('─');
        line[zero.min(value)..=zero.max(value)].fill('█');
        (line[from], line[to]) = ('├', '┤');
    })
}

/// A dot for each point, one below the other; `├` and `┤` are the ends of the interval.
pub(super) fn lines(picture: &Picture, width: usize) -> String {
    rows(picture, width, picture.range(), |line, [_, value, from, to]| {
        line[from..=to].fill('─');
        (line[from], line[to]) = ('├', '┤');
        line[value] = '●';
    })
}

/// A line for each value, drawn by a function that is given where 0, the value and the ends of its interval stand.
fn rows(
    picture: &Picture,
    width: usize,
    (low, high): (f64, f64),
    draw: impl Fn(&mut [char], [usize; 4]),
) -> String {
    let Grouped { groups, inks, left_out } = grouped(picture);
    let width = width.max(NARROWEST);
    let points = groups.iter().flat_map(|group| {
        group.points.iter().enumerate().filter_map(|(ink, point)| {
            let name = match inks.get(ink) {
                Some(value) => format!("{}, {}", group.name, label(value)),
                None => group.name.clone(),
            };
            Some((name, (*point)?))
        })
    });
    let points: Vec<_> = points.collect();
    let values: Vec<_> = points.iter().map(|(_, point)| short(point.value)).collect();
    let names = points.iter().map(|(name, _)| name.width()).max().unwrap_or(0).min(width / 3);
    let numbers = values.iter().map(|value| value.width()).max().unwrap_or(0);
    let room = width.saturating_sub(names + numbers + 3).max(8);
    let at = |value: f64| {
        let share = if high > low { (value - low) / (high - low) } else { 0.5 };
        (share.clamp(0.0, 1.0) * (room - 1) as f64).round() as usize
    };
    let mut text = format!("{}\n", picture.title());
    for ((name, point), value) in points.iter().zip(&values) {
        let mut line = vec![' '; room];
        draw(&mut line, [at(0.0), at(point.value), at(point.low()), at(point.high())]);
        let name = one_line(name, names.max(1));
        let pad = names.saturating_sub(name.width());
        let line: String = line.into_iter().collect();
        text.push_str(&format!("{:pad$}{name} {value:>numbers$} {}\n", "", line.trim_end()));
    }
    let note = picture.note(&left_out).replace("whiskers:", "├─┤:");
    if note.is_empty() { text } else { text + &note + "\n" }
}

/// Cells of shades, with the numbers beside them where there is room.
pub(super) fn heat(picture: &Picture, width: usize) -> String {
    let width = width.max(NARROWEST);
    let (rows, columns) = (picture.values_of(0), picture.values_of(1));
    let row_names: Vec<_> = rows.iter().map(|value| label(value)).collect();
    let names = row_names.iter().map(|name| name.width()).max().unwrap_or(0).min(width / 3);
    let values = || picture.points.iter().map(|point| point.value);
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let numbers = values().map(|value| short(value).width()).max().unwrap_or(1);
    let heads = columns.iter().map(|value| label(value).width()).max().unwrap_or(1).min(12);
    let cell = (numbers + 2).max(heads) + 1;
    let shown = columns.len().min(width.saturating_sub(names + 1) / cell).max(1);
    let mut text = format!("{}\n{:names$} ", picture.title(), "");
    for value in columns.iter().take(shown) {
        let name = one_line(&label(value), cell - 1);
        text.push_str(&format!("{:>pad$}{name}", "", pad = cell.saturating_sub(name.width())));
    }
    text.push('\n');
    for (row, name) in rows.iter().zip(&row_names) {
        let name = one_line(name, names.max(1));
        text.push_str(&format!("{:pad$}{name} ", "", pad = names.saturating_sub(name.width())));
        for column in columns.iter().take(shown) {
            let is_here = |keys: &[Value]| keys[0] == **row && keys[1] == **column;
            match picture.points.iter().find(|point| is_here(&point.keys)) {
                Some(point) => {
                    let share = if high > low { (point.value - low) / (high - low) } else { 0.0 };
                    let shade = SHADES[((share * SHADES.len() as f64) as usize).min(SHADES.len() - 1)];
                    let value = short(point.value);
                    text.push_str(&format!(
                        "{:>pad$}{value}{shade}{shade}",
                        "",
                        pad = cell.saturating_sub(value.width() + 2)
                    ));
                }
                None => text.push_str(&" ".repeat(cell)),
            }
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    let hidden = columns.len() - shown.min(columns.len());
    let more = if hidden > 0 { format!("{hidden} columns have no room here") } else { String::new() };
    let notes: Vec<_> = [picture.widths(), more].into_iter().filter(|note| !note.is_empty()).collect();
    if notes.is_empty() { text } else { format!("{text}{}\n", notes.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::super::tests::picture;
    use crate::args::query::Plot;

    #[test]
    fn bars_carry_their_intervals() {
        let text = super::bars(&picture(Plot::Bar, &[("north", "", 10.0), ("south", "", 4.0)]), 40);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "n by region and age");
        assert!(lines[1].starts_with("north,  10 ██") && lines[1].ends_with("─┤"), "{text}");
        let dots = super::lines(&picture(Plot::Line, &[("north", "", 10.0)]), 40);
        assert!(dots.lines().nth(1).is_some_and(|line| line.contains("├─") && line.contains('●')), "{dots}");
        assert!(lines[2].contains('├') && lines[2].chars().count() < lines[1].chars().count(), "{text}");
        assert_eq!(lines[3], "├─┤: 95 % intervals");
    }

    #[test]
    fn columns_without_room_are_counted() {
        let columns: Vec<String> = (0..30).map(|column| format!("column {column}")).collect();
        let rows: Vec<_> = columns.iter().map(|column| ("north", column.as_str(), 5.0)).collect();
        let text = super::heat(&picture(Plot::Heat, &rows), 60);
        assert!(text.contains("columns have no room here"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    }
}
