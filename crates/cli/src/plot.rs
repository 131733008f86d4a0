//! Pictures: SVG or PNG files, or characters in the terminal.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

use kuva::backend::svg::SvgBackend;
use kuva::backend::terminal::TerminalBackend;
use kuva::plot::LinePlot;
use kuva::plot::line::LineStyle;
use kuva::render::layout::{Layout, TickFormat};
use kuva::render::plots::Plot;
use kuva::render::render::{Scene, render_multiple};

use crate::failure::Failure;

/// Inks that can be told apart, in print and by the colour-blind too.
pub(crate) const INKS: [&str; 6] = ["#1b7fbd", "#d95f02", "#1b9e77", "#7a5fb5", "#c43c7a", "#8a6d1f"];

/// One curve.
pub(crate) struct Curve<'a> {
    pub(crate) name: &'a str,
    pub(crate) color: &'a str,
    pub(crate) stroke: Stroke,
    pub(crate) points: Vec<(f64, f64)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stroke {
    #[default]
    Solid,
    Dashed,
    /// Each value holds until the next point, and the area beneath is filled.
    Cells,
}

/// An axis with its words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis<'a> {
    label: &'a str,
    scale: Scale,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Linear,
    Logarithmic,
    /// Logarithmic for numbers however small, marked in powers of ten.
    Decades,
}

impl<'a> Axis<'a> {
    pub(crate) fn linear(label: &'a str) -> Self {
        Self { label, scale: Scale::Linear }
    }

    pub(crate) fn logarithmic(label: &'a str) -> Self {
        Self { label, scale: Scale::Logarithmic }
    }

    /// Numbers above 0, some of them below what a logarithmic axis shows (1e-10).
    pub(crate) fn decades(label: &'a str) -> Self {
        Self { label, scale: Scale::Decades }
    }

    /// Where a number stands on the axis that is drawn.
    fn place(self, value: f64) -> f64 {
        if self.scale == Scale::Decades { value.log10() } else { value }
    }
}

/// Curves over two axes.
pub(crate) struct Chart<'a> {
    pub(crate) title: String,
    /// What the picture is of; may be empty.
    pub(crate) subject: String,
    pub(crate) x: Axis<'a>,
    pub(crate) y: Axis<'a>,
    pub(crate) curves: Vec<Curve<'a>>,
}

impl Chart<'_> {
    /// Draws to `path`, or in the terminal when it is `-`.
    pub(crate) fn draw(&self, path: &Path, out: &mut impl Write) -> Result<(), Failure> {
        if path == Path::new("-") {
            return Ok(out.write_all(self.terminal().as_bytes())?);
        }
        let extension = path.extension().and_then(|text| text.to_str()).unwrap_or("").to_lowercase();
        let picture = match extension.as_str() {
            "svg" => SvgBackend.render_scene(&self.scene()).into_bytes(),
            "png" => self.png()?,
            _ => {
                let message =
                    format!("cannot draw to `{}`: its ending is neither .svg nor .png", path.display());
                return Err(Failure::new("cli.plot", message).hint("name no file to draw in the terminal"));
            }
        };
        fs::write(path, picture)
            .map_err(|error| Failure::new("cli.plot", format!("cannot write `{}`: {error}", path.display())))
    }

    /// Characters, in colour where a person looks and has not asked for none.
    fn terminal(&self) -> String {
        // A label that runs downward is no pleasure to read, and a legend needs width: both go above.
        let mut layout = self.axes().with_x_label(self.x.label);
        layout.show_legend = false;
        // Steps are drawn with the very characters of a grid.
        layout.show_grid = !self.has_steps();
        let drawn = TerminalBackend::new(76, 22).render_scene(&render_multiple(self.plots(), layout));
        let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let lines = on_any_background(&drawn, colour);
        let legend = if colour { self.inks() } else { self.order() };
        let head = [&self.title, &self.subject, &legend].into_iter().filter(|line| !line.is_empty());
        let head: String = head.map(|line| format!("{line}\n")).collect();
        format!("{head}{}\n{lines}\n", self.y.label)
    }

    /// Whether a curve goes straight up or down somewhere.
    fn has_steps(&self) -> bool {
        let upright = |pair: &[(f64, f64)]| pair[0].0 == pair[1].0 && pair[0].1 != pair[1].1;
        self.curves.iter().any(|curve| curve.points.windows(2).any(upright))
    }

    /// The names of the curves, each behind a stroke of its ink.
    fn inks(&self) -> String {
        let name = |curve: &Curve<'_>| format!("{}━━\u{1b}[0m {}", ink(curve.color), curve.name);
        self.curves.iter().map(name).collect::<Vec<_>>().join("   ")
    }

    /// The names of the curves in the order in which they cross the middle.
    fn order(&self) -> String {
        let middle = |curve: &Curve<'_>| curve.points.get(curve.points.len() / 2).map_or(0.0, |(_, y)| *y);
        let mut curves: Vec<_> = self.curves.iter().collect();
        curves.sort_by(|a, b| middle(b).total_cmp(&middle(a)));
        let names: Vec<_> = curves.iter().map(|curve| curve.name).collect();
        match names.len() {
            0 | 1 => names.concat(),
            _ => format!("curves, from the top down the middle: {}", names.join(", ")),
        }
    }

    fn png(&self) -> Result<Vec<u8>, Failure> {
        kuva::render_to_png(self.plots(), self.layout(), 2.0).map_err(|error| Failure::new("cli.plot", error))
    }

    fn scene(&self) -> Scene {
        render_multiple(self.plots(), self.layout())
    }

    fn plots(&self) -> Vec<Plot> {
        self.curves.iter().map(|curve| self.line(curve)).collect()
    }

    fn line(&self, curve: &Curve<'_>) -> Plot {
        let line = LinePlot::new()
            .with_data(curve.points.iter().map(|(x, y)| (self.x.place(*x), self.y.place(*y))))
            .with_color(curve.color)
            .with_stroke_width(2.5)
            .with_legend(curve.name);
        match curve.stroke {
            Stroke::Solid => line,
            Stroke::Dashed => line.with_line_style(LineStyle::Custom("9 9".to_owned())),
            Stroke::Cells => line.with_step().with_fill(),
        }
        .into()
    }

    fn layout(&self) -> Layout {
        let layout =
            self.axes().with_title(&self.title).with_x_label(self.x.label).with_y_label(self.y.label);
        if self.subject.is_empty() { layout } else { layout.with_subtitle(&self.subject) }
    }

    fn axes(&self) -> Layout {
        let layout = Layout::auto_from_plots(&self.plots());
        let layout = if self.x.scale == Scale::Logarithmic { layout.with_log_x() } else { layout };
        match self.y.scale {
            Scale::Linear => layout,
            Scale::Logarithmic => layout.with_log_y(),
            Scale::Decades => {
                let power =
                    |exponent: f64| if exponent == 0.0 { "1".to_owned() } else { format!("1e{exponent}") };
                layout
                    .with_y_tick_format(TickFormat::Custom(Arc::new(power)))
                    .with_y_tick_step(self.decades())
            }
        }
    }

    /// How many decades lie between two marks, so that there are about ten.
    fn decades(&self) -> f64 {
        let places = self.curves.iter().flat_map(|curve| &curve.points).map(|(_, y)| self.y.place(*y));
        let lowest = places.fold(0.0, f64::min);
        (-lowest / 10.0).ceil().max(1.0)
    }
}

/// The terminal's code for a colour written as `#rrggbb`.
fn ink(color: &str) -> String {
    let part =
        |at: usize| color.get(at..at + 2).and_then(|text| u8::from_str_radix(text, 16).ok()).unwrap_or(128);
    format!("\u{1b}[38;2;{};{};{}m", part(1), part(3), part(5))
}

/// Takes out black ink and white boxes, which suit only one background, or all colour.
fn on_any_background(drawn: &str, colour: bool) -> String {
    let mut text = String::with_capacity(drawn.len());
    for (index, part) in drawn.split("\u{1b}[").enumerate() {
        let Some((code, rest)) = part.split_once('m').filter(|_| index > 0) else {
            text.push_str(part);
            continue;
        };
        let white = code == "38;2;255;255;255";
        if colour {
            let code = if code == "38;2;0;0;0" || white { "0" } else { code };
            text.push_str(&format!("\u{1b}[{code}m"));
        }
        text.push_str(&if white { rest.replace('█', " ") } else { rest.to_owned() });
    }
    let lines = text.lines().map(str::trim_end).collect::<Vec<_>>();
    lines.join("\n").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawings_can_be_read_without_colour() {
        let drawn = "\u{1b}[38;2;0;0;0m10┼\u{1b}[38;2;255;255;255m██\u{1b}[0m  \n";
        assert_eq!(on_any_background(drawn, false), "10┼");
        assert_eq!(on_any_background(drawn, true), "\u{1b}[0m10┼\u{1b}[0m  \u{1b}[0m");
    }

    #[test]
    fn curves_are_named_in_ink_or_in_order() {
        let curve = |name, color, y| Curve { name, color, stroke: Stroke::Solid, points: vec![(1.0, y)] };
        let chart = Chart {
            title: String::new(),
            subject: String::new(),
            x: Axis::linear("x"),
            y: Axis::linear("y"),
            curves: vec![curve("low", "#010203", 1.0), curve("high", "#ff0000", 2.0)],
        };
        assert_eq!(chart.order(), "curves, from the top down the middle: high, low");
        assert_eq!(chart.inks(), "\u{1b}[38;2;1;2;3m━━\u{1b}[0m low   \u{1b}[38;2;255;0;0m━━\u{1b}[0m high");
    }
}
