//! Points with their intervals, joined by lines: one line for each value of the other keys.

use kuva::render::render::TextAnchor;
use serde_json::Value;

use super::canvas::{BLACK, Canvas, GREY, GRID, MEDIUM, SMALL, Scale, TOP, widest, width};
use super::{Picture, Point, label, labels};
use crate::plot::INKS;
use crate::table::one_line;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
/// The longest name below, where names stand aslant.
const ASLANT: usize = 24;

/// A line with its name.
struct Series<'a> {
    name: String,
    /// Where each point stands from left to right.
    points: Vec<(f64, &'a Point)>,
}

/// Where the values of the first key stand.
enum Along<'a> {
    /// At their numbers.
    Numbers,
    /// At their days, or moments.
    Times,
    /// One after the other.
    Names(Vec<&'a Value>),
}

impl Along<'_> {
    fn of(picture: &Picture) -> Along<'_> {
        let values = picture.values_of(0);
        if !values.is_empty() && values.iter().all(|value| value.is_number()) {
            Along::Numbers
        } else if !values.is_empty() && values.iter().all(|value| days(value).is_some()) {
            Along::Times
        } else {
            Along::Names(values)
        }
    }

    fn place(&self, value: &Value) -> Option<f64> {
        match self {
            Self::Numbers => value.as_f64(),
            Self::Times => days(value),
            Self::Names(names) => names.iter().position(|name| *name == value).map(|place| place as f64),
        }
    }
}

/// The days of a date or moment since the year 0.
fn days(value: &Value) -> Option<f64> {
    let text = value.as_str()?;
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "0:0:0"));
    let mut parts = date.splitn(3, '-').map(str::parse::<i64>);
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let clock: Vec<f64> = time.splitn(3, ':').map(str::parse).collect::<Result<_, _>>().ok()?;
    let seconds = clock.iter().fold(0.0, |sum, part| sum * 60.0 + part) * 60f64.powi(3 - clock.len() as i32);
    // The year begins in March, so that a leap day is its last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let whole = year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some((whole + (month * 153 + 2) / 5 + day - 1) as f64 + seconds / 86_400.0)
}

/// The lines, and what is said of those that are left out.
fn series<'a>(picture: &'a Picture, along: &Along<'_>) -> (Vec<Series<'a>>, String) {
    let mut all: Vec<(&[Value], Series<'_>)> = Vec::new();
    for point in &picture.points {
        let Some(x) = point.keys.first().and_then(|key| along.place(key)) else { continue };
        let key = &point.keys[1..];
        let place = all.iter().position(|(found, _)| *found == key).unwrap_or_else(|| {
            all.push((key, Series { name: labels(key), points: Vec::new() }));
            all.len() - 1
        });
        all[place].1.points.push((x, point));
    }
    let mut all: Vec<Series<'_>> = all.into_iter().map(|(_, series)| series).collect();
    for series in &mut all {
        series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let count = all.len();
    if count <= INKS.len() {
        return (all, String::new());
    }
    let size = |series: &Series<'_>| series.points.iter().map(|(_, point)| point.value.abs()).sum::<f64>();
    all.sort_by(|a, b| size(b).total_cmp(&size(a)));
    all.truncate(INKS.len());
    (all, format!("the {} largest of {count} lines", INKS.len()))
}

pub(super) fn draw(picture: &Picture) -> Canvas {
    let along = Along::of(picture);
    let (series, left_out) = series(picture, &along);
    let several = picture.keys.len() > 1 && !series.is_empty();
    let top = TOP + if several { 18.0 } else { 0.0 };
    let bottom = top + HEIGHT;
    let upright = Scale::rounded(around(picture.range()), bottom, top);
    let marks = upright.marks();
    let first = picture.values_of(0).first().map(|value| one_line(&label(value), ASLANT)).unwrap_or_default();
    let left = (52.0 + widest(marks.iter().map(|(_, text)| text), SMALL)).max(0.72 * width(&first, SMALL));
    let places = || series.iter().flat_map(|series| series.points.iter().map(|(x, _)| *x));
    let ends = (places().fold(f64::INFINITY, f64::min), places().fold(f64::NEG_INFINITY, f64::max));
    let ends = if ends.0 < ends.1 { ends } else { (ends.0.min(0.0) - 1.0, ends.0.max(0.0) + 1.0) };
    let ends = if ends.0.is_finite() && ends.1.is_finite() { ends } else { (0.0, 1.0) };
    let flat = Scale { low: ends.0, high: ends.1, from: left + 14.0, to: left + WIDTH - 14.0 };
    let note = picture.note(&left_out);
    let below = ticks(picture, &along, &flat);
    let slanted = is_crowded(&below, &flat);
    let room = if slanted { 0.72 * widest(below.iter().map(|(_, text)| text), SMALL) + 14.0 } else { 18.0 };
    let mut canvas = Canvas::new(left + WIDTH + 24.0, bottom + room + 40.0, &picture.title(), &note);
    if several {
        let legend: Vec<_> =
            series.iter().zip(INKS).map(|(series, ink)| (series.name.clone(), ink)).collect();
        canvas.legend(&picture.keys[1..].join(", "), &legend);
    }
    for (value, text) in &marks {
        let y = upright.at(*value);
        canvas.line((left, y), (left + WIDTH, y), GRID, 1.0);
        canvas.words((left - 8.0, y + 4.0), text, SMALL, GREY, TextAnchor::End);
    }
    canvas.line((left, bottom), (left + WIDTH, bottom), GREY, 1.2);
    for (value, text) in &below {
        let x = flat.at(*value);
        canvas.line((x, bottom), (x, bottom + 5.0), GREY, 1.2);
        match slanted {
            true => canvas.turned((x + 4.0, bottom + 16.0), text, SMALL, GREY, TextAnchor::End, Some(-45.0)),
            false => canvas.words((x, bottom + 19.0), text, SMALL, GREY, TextAnchor::Middle),
        }
    }
    for (series, ink) in series.iter().zip(INKS) {
        let spot = |(x, point): &(f64, &Point)| (flat.at(*x), upright.at(point.value));
        canvas.path(series.points.iter().map(spot).collect(), ink);
        for (x, point) in &series.points {
            if point.ends.is_some() {
                let x = flat.at(*x);
                canvas.whisker((x, upright.at(point.low())), (x, upright.at(point.high())), 3.0);
            }
            canvas.dot((flat.at(*x), upright.at(point.value)), ink);
        }
    }
    canvas.words(
        (left + WIDTH / 2.0, bottom + room + 26.0),
        &picture.keys[0],
        MEDIUM,
        BLACK,
        TextAnchor::Middle,
    );
    let middle = (20.0, (top + bottom) / 2.0);
    canvas.turned(middle, &picture.answer, MEDIUM, BLACK, TextAnchor::Middle, Some(-90.0));
    canvas
}

/// With 0 where it is close.
fn around((low, high): (f64, f64)) -> (f64, f64) {
    match (low, high) {
        (low, high) if low > 0.0 && low < high / 2.0 => (0.0, high),
        (low, high) if high < 0.0 && high > low / 2.0 => (low, 0.0),
        ends => ends,
    }
}

/// Where marks stand below, with their texts: round numbers, or values of the key, as many as have room.
fn ticks(picture: &Picture, along: &Along<'_>, flat: &Scale) -> Vec<(f64, String)> {
    if matches!(along, Along::Numbers) {
        return flat.marks();
    }
    let values = picture.values_of(0);
    let text = |value: &Value| one_line(&label(value), ASLANT);
    let all: Vec<(f64, String)> =
        values.into_iter().filter_map(|value| Some((along.place(value)?, text(value)))).collect();
    let every = all.len().div_ceil(40);
    all.into_iter().step_by(every.max(1)).collect()
}

/// Whether labels side by side would touch.
fn is_crowded(below: &[(f64, String)], flat: &Scale) -> bool {
    let mut places: Vec<_> =
        below.iter().map(|(value, text)| (flat.at(*value), width(text, SMALL))).collect();
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    places.windows(2).any(|two| two[1].0 - two[0].0 < (two[0].1 + two[1].1) / 2.0 + 6.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn days_follow_each_other() {
        let day = |text: &str| days(&json!(text));
        let between = |a: &str, b: &str| day(b).zip(day(a)).map(|(b, a)| b - a);
        assert_eq!(between("2024-02-28", "2024-03-01"), Some(2.0));
        assert_eq!(between("2023-12-31", "2024-01-01"), Some(1.0));
        assert_eq!(between("2025-01-01", "2026-01-01"), Some(365.0));
        assert_eq!(between("2025-01-01T00:00:00", "2025-01-01T12:00:00"), Some(0.5));
        assert_eq!([day("2025-13-01"), day("north"), day("1-2")], [None; 3]);
    }
}
