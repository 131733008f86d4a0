//! [`Picture`]: an answer with its error bars, as an SVG or PNG file or in the terminal.
//!
//! **What is drawn.** One answer, over the keys that stand before it. Bars and points carry their 95 % intervals; a heat map has no room for them, so it says how
//! wide they are. Files have a white ground of their own, so that they can be read on any page.

mod bars;
mod canvas;
mod characters;
mod heat;
mod lines;

use std::io::Write;
use std::path::Path;

use demur_engine::{Cell, Heading, Table};
use serde_json::Value;

use crate::args::query::Plot;
use crate::failure::Failure;
use crate::output::short;
use crate::query::print::plain;
use crate::table::one_line;

/// The longest name of a group that is drawn.
const LONGEST: usize = 40;

/// Which columns of an answer are drawn; known before anything is charged.
pub(crate) struct Choice {
    plot: Plot,
    /// The columns that name a group.
    keys: Vec<usize>,
    /// The column that is drawn.
    answer: usize,
}

impl Choice {
    /// The named column, or the first answer, over the keys before it.
    pub(crate) fn of(headings: &[Heading], plot: Plot, column: Option<&str>) -> Result<Self, Failure> {
        let names = |columns: &[usize]| {
            let names: Vec<_> = columns.iter().map(|&column| headings[column].name.as_str()).collect();
            names.join(", ")
        };
        let answers: Vec<usize> = (0..headings.len()).filter(|&index| is_number(&headings[index])).collect();
        let first = answers.iter().copied().find(|&index| headings[index].interval);
        let answer = match column {
            Some(name) => answers.iter().copied().find(|&index| headings[index].name == name),
            None => first.or(answers.last().copied()),
        };
        let Some(answer) = answer else {
            let text = match column {
                Some(name) => format!("there is no column of numbers `{name}` to draw"),
                None => "the answer has no column of numbers to draw".to_owned(),
            };
            return Err(Failure::new("cli.plot", text).hint(format!("there are: {}", names(&answers))));
        };
        let before = first.unwrap_or(answer);
        let is_key = |index: &usize| !headings[*index].interval && !headings[*index].kind.ends_with("[]");
        let mut keys: Vec<usize> = (0..before).filter(is_key).collect();
        if keys.is_empty() {
            keys = (0..headings.len()).filter(is_key).filter(|&index| !is_number(&headings[index])).collect();
        }
        let needed = match plot {
            Plot::Bar => 0,
            Plot::Line => 1,
            Plot::Heat => 2,
        };
        if keys.len() < needed || (plot == Plot::Heat && keys.len() > 2) {
            let text = match plot {
                Plot::Heat => "a heat map needs an answer over two keys",
                _ => "a line needs an answer over a key",
            };
            let hint = match keys.is_empty() {
                true => "group by a column, and select it before the aggregate".to_owned(),
                false => format!("this one is over {}; --plot bar draws it", names(&keys)),
            };
            return Err(Failure::new("cli.plot", text).hint(hint));
        }
        Ok(Self { plot, keys, answer })
    }

    /// The picture of an answer.
    pub(crate) fn picture(&self, table: &Table) -> Picture {
        let name = |index: &usize| table.headings[*index].name.clone();
        let point = |row: &Vec<Cell>| {
            let cell = &row[self.answer];
            let value = number(&cell.value)?;
            let key = |index: &usize| row[*index].value.clone();
            Some(Point { keys: self.keys.iter().map(key).collect(), value, ends: cell.interval })
        };
        let mut points: Vec<Point> = table.rows.iter().filter_map(point).collect();
        for key in 0..self.keys.len() {
            days_alone(points.iter_mut().map(|point| &mut point.keys[key]).collect());
        }
        Picture {
            plot: self.plot,
            keys: self.keys.iter().map(name).collect(),
            answer: name(&self.answer),
            points,
        }
    }
}

/// Moments that are all at midnight are days.
fn days_alone(values: Vec<&mut Value>) {
    const MIDNIGHT: &str = "T00:00:00";
    if values.iter().all(|value| value.as_str().is_some_and(|text| text.ends_with(MIDNIGHT))) {
        for value in values {
            *value = Value::from(value.as_str().unwrap_or_default().trim_end_matches(MIDNIGHT));
        }
    }
}

fn is_number(heading: &Heading) -> bool {
    let kind = heading.kind.as_str();
    kind.ends_with("INT")
        || matches!(kind, "INTEGER" | "UINTEGER" | "REAL" | "DOUBLE")
        || kind.starts_with("DECIMAL")
}

fn number(value: &Value) -> Option<f64> {
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
    number.filter(|number| number.is_finite())
}

/// One answer over its keys.
pub(crate) struct Picture {
    plot: Plot,
    keys: Vec<String>,
    answer: String,
    points: Vec<Point>,
}

/// A value of one group, with the ends of its interval.
struct Point {
    keys: Vec<Value>,
    value: f64,
    ends: Option<(f64, f64)>,
}

impl Point {
    fn low(&self) -> f64 {
        self.ends.map_or(self.value, |ends| ends.0.min(self.value))
    }

    fn high(&self) -> f64 {
        self.ends.map_or(self.value, |ends| ends.1.max(self.value))
    }
}

impl Picture {
    /// Writes it to a file whose ending says how.
    pub(crate) fn bytes(&self, path: &Path) -> Result<Vec<u8>, Failure> {
        let canvas = match self.plot {
            Plot::Bar => bars::draw(self),
            Plot::Line => lines::draw(self),
            Plot::Heat => heat::draw(self),
        };
        canvas.bytes(path)
    }

    /// Draws it in characters, so many columns wide.
    pub(crate) fn print(&self, width: usize, out: &mut impl Write) -> Result<(), Failure> {
        let text = match self.plot {
            Plot::Bar => characters::bars(self, width),
            Plot::Line => characters::lines(self, width),
            Plot::Heat => characters::heat(self, width),
        };
        Ok(out.write_all(text.as_bytes())?)
    }

    fn title(&self) -> String {
        match self.keys.as_slice() {
            [] => self.answer.clone(),
            keys => format!("{} by {}", self.answer, keys.join(" and ")),
        }
    }

    /// The groups by one of their keys, each once, in the order of the answer.
    fn values_of(&self, key: usize) -> Vec<&Value> {
        let mut values: Vec<&Value> = Vec::new();
        for point in &self.points {
            if !values.contains(&&point.keys[key]) {
                values.push(&point.keys[key]);
            }
        }
        values
    }

    /// From the lowest to the highest end of any interval.
    fn range(&self) -> (f64, f64) {
        let low = self.points.iter().map(Point::low).fold(f64::INFINITY, f64::min);
        let high = self.points.iter().map(Point::high).fold(f64::NEG_INFINITY, f64::max);
        if low <= high { (low, high) } else { (0.0, 1.0) }
    }

    /// How wide the intervals are, in words.
    fn widths(&self) -> String {
        let halves: Vec<f64> =
            self.points.iter().filter_map(|point| point.ends.map(|ends| (ends.1 - ends.0) / 2.0)).collect();
        let least = halves.iter().copied().fold(f64::INFINITY, f64::min);
        let most = halves.iter().copied().fold(0.0, f64::max);
        match halves.is_empty() {
            true => String::new(),
            false if short(least) == short(most) => format!("each ± {} (95 % interval)", short(most)),
            false => format!("± {} to ± {} (95 % intervals)", short(least), short(most)),
        }
    }

    /// What is said below the title.
    fn note(&self, left_out: &str) -> String {
        let intervals = if self.points.iter().any(|point| point.ends.is_some()) {
            "whiskers: 95 % intervals"
        } else {
            ""
        };
        let notes: Vec<_> = [intervals, left_out].into_iter().filter(|note| !note.is_empty()).collect();
        notes.join("; ")
    }
}

/// A key as a label.
fn label(value: &Value) -> String {
    one_line(&plain(value), LONGEST)
}

/// Several keys as one label.
fn labels(values: &[Value]) -> String {
    let labels: Vec<_> = values.iter().map(label).collect();
    one_line(&labels.join(", "), LONGEST)
}

/// Whether a file can be drawn to, by its ending; better known before anything is charged.
pub(crate) fn check(path: &Path) -> Result<(), Failure> {
    match canvas::ending(path).as_str() {
        "svg" | "png" => Ok(()),
        _ => {
            let text = format!("cannot draw to `{}`: its ending is neither .svg nor .png", path.display());
            Err(Failure::new("cli.plot", text).hint("leave out -o to draw in the terminal"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    pub(super) fn heading(name: &str, kind: &str, interval: bool) -> Heading {
        Heading { name: name.to_owned(), kind: kind.to_owned(), interval }
    }

    pub(super) fn picture(plot: Plot, rows: &[(&str, &str, f64)]) -> Picture {
        let point = |(first, second, value): &(&str, &str, f64)| Point {
            keys: vec![json!(first), json!(second)],
            value: *value,
            ends: Some((value - 2.0, value + 3.0)),
        };
        Picture {
            plot,
            keys: vec!["region".to_owned(), "age".to_owned()],
            answer: "n".to_owned(),
            points: rows.iter().map(point).collect(),
        }
    }

    #[test]
    fn the_first_answer_is_drawn_over_the_keys_before_it() {
        let headings =
            [heading("region", "VARCHAR", false), heading("n", "BIGINT", true), heading("m", "DOUBLE", true)];
        let choice = Choice::of(&headings, Plot::Bar, None).unwrap();
        assert_eq!((choice.keys, choice.answer), (vec![0], 1));
        let choice = Choice::of(&headings, Plot::Line, Some("m")).unwrap();
        assert_eq!((choice.keys, choice.answer), (vec![0], 2));
        let wrong = |plot, column| Choice::of(&headings, plot, column).err().map(|error| error.code());
        assert_eq!(wrong(Plot::Heat, None), Some("cli.plot"));
        assert_eq!(wrong(Plot::Bar, Some("region")), Some("cli.plot"));
        assert_eq!(
            Choice::of(&headings[1..], Plot::Line, None).err().map(|error| error.code()),
            Some("cli.plot")
        );
    }

    #[test]
    fn every_kind_is_drawn_as_svg_and_png_and_characters() {
        let rows = [("north", "old", 3.0), ("north", "young", -1.0), ("south & <east>", "old", 9.5)];
        for plot in [Plot::Bar, Plot::Line, Plot::Heat] {
            let picture = picture(plot, &rows);
            let svg = String::from_utf8(picture.bytes(Path::new("a.svg")).unwrap()).unwrap();
            assert!(svg.contains("n by region and age") && svg.ends_with("</svg>"), "{svg}");
            assert!(!svg.contains("NaN") && !svg.contains("<east>"), "{svg}");
            assert_eq!(&picture.bytes(Path::new("a.PNG")).unwrap()[1..4], b"PNG");
            for width in [20, 80, 200] {
                let mut text = Vec::new();
                picture.print(width, &mut text).unwrap();
                let text = String::from_utf8(text).unwrap();
                assert!(text.contains("north") && !text.contains('\u{1b}'), "{text}");
                let wide = text.lines().map(|line| line.chars().count()).max();
                assert!(plot == Plot::Line || wide <= Some(width.max(40)), "{wide:?} of {width}:\n{text}");
            }
        }
    }

    #[test]
    fn an_answer_without_rows_is_an_empty_picture() {
        for plot in [Plot::Bar, Plot::Line, Plot::Heat] {
            let svg = String::from_utf8(picture(plot, &[]).bytes(Path::new("a.svg")).unwrap()).unwrap();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
