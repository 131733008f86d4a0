//! Cells, the darker the larger: rows by the first key, columns by the second.

use kuva::render::render::TextAnchor;

use super::canvas::{BLACK, Canvas, GREY, MEDIUM, SMALL, Scale, TOP, widest, width};
use super::{Picture, Point, label};
use crate::output::short;
use crate::table::one_line;

/// The most values of a key that are drawn.
const MOST: usize = 100;
/// The longest name of a row or column.
const ASLANT: usize = 24;
/// From the lightest to the darkest ink, told apart by the colour-blind and in print.
const INKS: [(f64, f64, f64); 5] = [
    (253.0, 246.0, 227.0),
    (250.0, 200.0, 120.0),
    (226.0, 118.0, 86.0),
    (150.0, 46.0, 100.0),
    (48.0, 18.0, 78.0),
];

/// The colour of a share from 0 to 1, and an ink that can be read on it.
fn ink(share: f64) -> (String, &'static str) {
    let place = share.clamp(0.0, 1.0) * (INKS.len() - 1) as f64;
    let below = (place.floor() as usize).min(INKS.len() - 2);
    let part = place - below as f64;
    let mix = |low: f64, high: f64| (low + (high - low) * part).round() as u8;
    let ((r, g, b), (s, h, c)) = (INKS[below], INKS[below + 1]);
    let colour = format!("#{:02x}{:02x}{:02x}", mix(r, s), mix(g, h), mix(b, c));
    (colour, if share > 0.55 { "#ffffff" } else { BLACK })
}

pub(super) fn draw(picture: &Picture) -> Canvas {
    let (mut rows, mut columns) = (picture.values_of(0), picture.values_of(1));
    let all = (rows.len(), columns.len());
    rows.truncate(MOST);
    columns.truncate(MOST);
    let name = |value: &&serde_json::Value| one_line(&label(value), ASLANT);
    let names = [&rows, &columns].map(|values| values.iter().map(name).collect::<Vec<_>>());
    let longest = picture.points.iter().map(|point| short(point.value)).collect::<Vec<_>>();
    let wide = widest(&longest, SMALL).max(widest(&names[1], SMALL).min(110.0)).max(30.0) + 12.0;
    let wide = if columns.len() > 20 { 18.0 } else { wide };
    let high = if rows.len() > 40 { 15.0 } else { 26.0 };
    let numbers = columns.len() <= 20 && rows.len() <= 40;
    let slanted = names[1].iter().any(|name| width(name, SMALL) + 6.0 > wide);
    let room = if slanted { 0.72 * widest(&names[1], SMALL) + 14.0 } else { 18.0 };
    let left = 56.0 + widest(&names[0], SMALL);
    let (right, bottom) = (left + wide * columns.len().max(1) as f64, TOP + high * rows.len().max(1) as f64);
    let mut notes = vec![picture.widths()];
    if all != (rows.len(), columns.len()) {
        notes.push(format!("the first {} by {} of {} by {} cells", rows.len(), columns.len(), all.0, all.1));
    }
    notes.retain(|note| !note.is_empty());
    let title = picture.title();
    let page = (right + 110.0).max(width(&title, 18) + 32.0).max(420.0);
    let mut canvas = Canvas::new(page, bottom.max(TOP + 150.0) + room + 40.0, &title, &notes.join("; "));
    let values = || picture.points.iter().map(|point| point.value);
    let (low, most) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let scale = Scale { low, high: most, from: 0.0, to: 1.0 };
    for point in &picture.points {
        let place = |values: &[&serde_json::Value], key: usize| {
            values.iter().position(|value| **value == point.keys[key])
        };
        let (Some(row), Some(column)) = (place(&rows, 0), place(&columns, 1)) else { continue };
        let (colour, on_it) = ink(scale.at(point.value));
        let (x, y) = (left + wide * column as f64, TOP + high * row as f64);
        canvas.area((x, y), (x + wide - 1.0, y + high - 1.0), &colour);
        if numbers {
            let middle = (x + wide / 2.0, y + high / 2.0 + 4.0);
            canvas.words(middle, &short(point.value), SMALL, on_it, TextAnchor::Middle);
        }
    }
    for (row, name) in names[0].iter().enumerate() {
        let y = TOP + high * (row as f64 + 0.5) + 4.0;
        canvas.words((left - 8.0, y), name, SMALL, BLACK, TextAnchor::End);
    }
    for (column, name) in names[1].iter().enumerate() {
        let x = left + wide * (column as f64 + 0.5);
        match slanted {
            true => canvas.turned((x + 4.0, bottom + 14.0), name, SMALL, BLACK, TextAnchor::End, Some(-45.0)),
            false => canvas.words((x, bottom + 17.0), name, SMALL, BLACK, TextAnchor::Middle),
        }
    }
    canvas.words(
        ((left + right) / 2.0, bottom + room + 24.0),
        &picture.keys[1],
        MEDIUM,
        BLACK,
        TextAnchor::Middle,
    );
    let middle = (20.0, (TOP + bottom) / 2.0);
    canvas.turned(middle, &picture.keys[0], MEDIUM, BLACK, TextAnchor::Middle, Some(-90.0));
    if picture.points.iter().map(Point::low).any(f64::is_finite) {
        bar(&mut canvas, right + 22.0, &picture.answer, (low, most));
    }
    canvas
}

/// What the inks stand for.
fn bar(canvas: &mut Canvas, x: f64, name: &str, (low, most): (f64, f64)) {
    let (top, steps) = (TOP + 16.0, 24);
    canvas.words((x, TOP + 4.0), name, SMALL, BLACK, TextAnchor::Start);
    for step in 0..steps {
        let share = 1.0 - f64::from(step) / f64::from(steps - 1);
        let y = top + 5.0 * f64::from(step);
        canvas.area((x, y), (x + 14.0, y + 5.2), &ink(share).0);
    }
    for (share, value) in [(0.0, most), (0.5, (low + most) / 2.0), (1.0, low)] {
        let y = top + share * 5.0 * f64::from(steps) + 4.0;
        canvas.words((x + 19.0, y), &short(value), SMALL, GREY, TextAnchor::Start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inks_go_from_light_to_dark() {
        assert_eq!(ink(0.0), ("#fdf6e3".to_owned(), BLACK));
        assert_eq!(ink(1.0), ("#30124e".to_owned(), "#ffffff"));
        assert_eq!(ink(7.0), ink(1.0));
    }
}
