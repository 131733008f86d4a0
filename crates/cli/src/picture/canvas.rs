//! [`Canvas`]: lines, areas and words on a white ground, and the axes they stand on.

use std::path::Path;

use kuva::backend::png::PngBackend;
use kuva::backend::svg::SvgBackend;
use kuva::render::color::Color;
use kuva::render::render::{Primitive, Scene, TextAnchor};
use unicode_width::UnicodeWidthStr;

use crate::failure::Failure;

pub(super) const BLACK: &str = "#222222";
pub(super) const GREY: &str = "#5f6368";
pub(super) const GRID: &str = "#e2e4e8";
/// The size of labels.
pub(super) const SMALL: u32 = 12;
/// The size of names of axes.
pub(super) const MEDIUM: u32 = 14;
const LARGE: u32 = 17;
/// Where the title and what is said below it end.
pub(super) const TOP: f64 = 66.0;

pub(super) struct Canvas {
    scene: Scene,
}

impl Canvas {
    /// A white page with a title.
    pub(super) fn new(width: f64, height: f64, title: &str, note: &str) -> Self {
        let mut scene = Scene::new(width, height);
        scene.font_family = Some("DejaVu Sans, Verdana, sans-serif".to_owned());
        let mut canvas = Self { scene };
        canvas.words((16.0, 28.0), title, LARGE, BLACK, TextAnchor::Start);
        canvas.words((16.0, 48.0), note, SMALL, GREY, TextAnchor::Start);
        canvas
    }

    pub(super) fn words(&mut self, at: (f64, f64), text: &str, size: u32, ink: &str, anchor: TextAnchor) {
        self.turned(at, text, size, ink, anchor, None);
    }

    pub(super) fn turned(
        &mut self,
        (x, y): (f64, f64),
        text: &str,
        size: u32,
        ink: &str,
        anchor: TextAnchor,
        rotate: Option<f64>,
    ) {
        if !text.is_empty() {
            let (content, color) = (text.to_owned(), Some(Color::from(ink)));
            self.scene.add(Primitive::Text { x, y, content, size, anchor, rotate, bold: false, color });
        }
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), ink: &str, width: f64) {
        self.scene.add(Primitive::Line {
            x1: from.0,
            y1: from.1,
            x2: to.0,
            y2: to.1,
            stroke: Color::from(ink),
            stroke_width: width,
            stroke_dasharray: None,
        });
    }

    pub(super) fn path(&mut self, points: Vec<(f64, f64)>, ink: &str) {
        let stroke = Color::from(ink);
        self.scene.add(Primitive::PolyLine { points, stroke, stroke_width: 2.2, stroke_dasharray: None });
    }

    pub(super) fn dot(&mut self, (cx, cy): (f64, f64), ink: &str) {
        let fill = Color::from(ink);
        self.scene.add(Primitive::Circle {
            cx,
            cy,
            r: 3.4,
            fill,
            fill_opacity: None,
            stroke: None,
            stroke_width: None,
        });
    }

    pub(super) fn area(&mut self, from: (f64, f64), to: (f64, f64), ink: &str) {
        self.scene.add(Primitive::Rect {
            x: from.0.min(to.0),
            y: from.1.min(to.1),
            width: (to.0 - from.0).abs(),
            height: (to.1 - from.1).abs(),
            fill: Color::from(ink),
            stroke: None,
            stroke_width: None,
            opacity: None,
        });
    }

    /// An interval from one point to another, with feet.
    pub(super) fn whisker(&mut self, from: (f64, f64), to: (f64, f64), foot: f64) {
        self.line(from, to, BLACK, 1.4);
        let upright = from.0 == to.0;
        for end in [from, to] {
            let (dx, dy) = if upright { (foot, 0.0) } else { (0.0, foot) };
            self.line((end.0 - dx, end.1 - dy), (end.0 + dx, end.1 + dy), BLACK, 1.4);
        }
    }

    /// Inks and what they stand for, side by side below the title.
    pub(super) fn legend(&mut self, name: &str, entries: &[(String, &str)]) {
        let (mut x, y) = (16.0, TOP - 2.0);
        self.words((x, y), &format!("{name}:"), SMALL, GREY, TextAnchor::Start);
        x += width(name, SMALL) + 16.0;
        for (label, ink) in entries {
            self.area((x, y - 9.0), (x + 12.0, y + 1.0), ink);
            self.words((x + 17.0, y), label, SMALL, BLACK, TextAnchor::Start);
            x += width(label, SMALL) + 34.0;
        }
    }

    /// The picture as a file of the path's ending.
    pub(super) fn bytes(&self, path: &Path) -> Result<Vec<u8>, Failure> {
        match ending(path).as_str() {
            "png" => {
                PngBackend::new().render_scene(&self.scene).map_err(|error| Failure::new("cli.plot", error))
            }
            _ => Ok(SvgBackend.render_scene(&self.scene).into_bytes()),
        }
    }
}

pub(super) fn ending(path: &Path) -> String {
    path.extension().and_then(|text| text.to_str()).unwrap_or("").to_lowercase()
}

/// About how wide a text is.
pub(super) fn width(text: &str, size: u32) -> f64 {
    text.width() as f64 * f64::from(size) * 0.62
}

/// The width of the widest of some texts.
pub(super) fn widest<'a>(texts: impl IntoIterator<Item = &'a String>, size: u32) -> f64 {
    texts.into_iter().map(|text| width(text, size)).fold(0.0, f64::max)
}

/// Numbers along a stretch of the page.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) from: f64,
    pub(super) to: f64,
}

impl Scale {
    /// A scale that ends with whole marks.
    pub(super) fn rounded((low, high): (f64, f64), from: f64, to: f64) -> Self {
        let step = step(low, high);
        Self { low: (low / step).floor() * step, high: (high / step).ceil() * step, from, to }
    }

    /// Where a number stands.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = if self.high > self.low { (value - self.low) / (self.high - self.low) } else { 0.5 };
        self.from + share * (self.to - self.from)
    }

    /// Round numbers along the scale, with their texts.
    pub(super) fn marks(&self) -> Vec<(f64, String)> {
        let step = step(self.low, self.high);
        let places = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        let mark = |index: i64| {
            let value = index as f64 * step;
            (value, format!("{value:.places$}"))
        };
        (first..=last).map(mark).collect()
    }
}

/// The round number that divides a stretch into about six.
fn step(low: f64, high: f64) -> f64 {
    let wide = high - low;
    if !(wide > 0.0 && wide.is_finite()) {
        return 1.0;
    }
    let power = 10f64.powf((wide / 6.0).log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| wide / step <= 7.0)
        .unwrap_or(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_enclose_the_data() {
        for (low, high) in
            [(0.0, 1203.0), (-20.0, 7.0), (0.001, 0.0042), (5.0, 5.0), (-1e9, 1e12), (0.0, 1e-9)]
        {
            let scale = Scale::rounded((low, high), 0.0, 100.0);
            let marks = scale.marks();
            assert!(scale.low <= low && high <= scale.high);
            assert!((1..=10).contains(&marks.len()), "{low} {high} {marks:?}");
            assert!(marks.iter().all(|(value, _)| (-1e-6..=100.0 + 1e-6).contains(&scale.at(*value))));
        }
        let texts: Vec<_> =
            Scale::rounded((0.0, 0.5), 0.0, 1.0).marks().into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["0.0", "0.1", "0.2", "0.3", "0.4", "0.5"]);
    }
}
