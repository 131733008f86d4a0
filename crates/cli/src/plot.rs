//! Pictures: SVG or PNG files, or characters in the terminal.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use kuva::backend::svg::SvgBackend;
use kuva::backend::terminal::TerminalBackend;
use kuva::plot::LinePlot;
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use kuva::render::render::{Scene, render_multiple};

use crate::failure::Failure;

/// One curve.
pub(crate) struct Curve<'a> {
    pub(crate) name: &'a str,
    pub(crate) color: &'a str,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Curves over logarithmic axes.
pub(crate) struct Chart<'a> {
    pub(crate) title: String,
    pub(crate) x: &'a str,
    pub(crate) y: &'a str,
    pub(crate) curves: Vec<Curve<'a>>,
}

impl Chart<'_> {
    /// Draws to `path`, or in the terminal when it is `-`.
    pub(crate) fn draw(&self, path: &Path, out: &mut impl Write) -> Result<(), Failure> {
        if path == Path::new("-") {
            return Ok(write!(out, "\n{}", self.terminal())?);
        }
        let extension = path.extension().and_then(|text| text.to_str()).unwrap_or("").to_lowercase();
        let picture = match extension.as_str() {
            "svg" => SvgBackend.render_scene(&self.scene()).into_bytes(),
            "png" => self.png()?,
            _ => {
                let message =
                    format!("cannot draw to `{}`: its ending is neither .svg nor .png", path.display());
                return Err(
                    Failure::new("cli.plot", message).hint("use --plot alone to draw in the terminal")
                );
            }
        };
        fs::write(path, picture)
            .map_err(|error| Failure::new("cli.plot", format!("cannot write `{}`: {error}", path.display())))
    }

    /// Characters, in colour where a person looks and has not asked for none.
    fn terminal(&self) -> String {
        // A label that runs downward is no pleasure to read: it goes above instead.
        let layout = Layout::auto_from_plots(&self.plots()).with_x_label(self.x).with_log_x().with_log_y();
        let drawn = TerminalBackend::new(76, 22).render_scene(&render_multiple(self.plots(), layout));
        let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let lines = on_any_background(&drawn, colour);
        format!("{}\n{}\n{lines}\n", self.title, self.y)
    }

    fn png(&self) -> Result<Vec<u8>, Failure> {
        kuva::render_to_png(self.plots(), self.layout(), 2.0).map_err(|error| Failure::new("cli.plot", error))
    }

    fn scene(&self) -> Scene {
        render_multiple(self.plots(), self.layout())
    }

    fn plots(&self) -> Vec<Plot> {
        let line = |curve: &Curve<'_>| {
            LinePlot::new()
                .with_data(curve.points.iter().copied())
                .with_color(curve.color)
                .with_stroke_width(2.5)
                .with_legend(curve.name)
                .into()
        };
        self.curves.iter().map(line).collect()
    }

    fn layout(&self) -> Layout {
        Layout::auto_from_plots(&self.plots())
            .with_title(&self.title)
            .with_x_label(self.x)
            .with_y_label(self.y)
            .with_log_x()
            .with_log_y()
    }
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
}
