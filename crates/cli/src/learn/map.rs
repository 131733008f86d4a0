//! A map of hot spots as a picture: the hotter a cell, the brighter; counts are shown on a logarithmic scale.

use std::path::Path;

use demur_engine::learn::HotSpots;
use kuva::backend::svg::SvgBackend;
use kuva::plot::Heatmap;
use kuva::plot::heatmap::ColorMap;
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use kuva::render::render::render_multiple;

use crate::failure::Failure;

/// A picture has no more cells a side than this; neighbours are put together.
const MOST_CELLS: usize = 256;

/// A name that no picture can have is better known before anything is charged.
pub(super) fn check(path: &Path) -> Result<(), Failure> {
    match ending(path).as_str() {
        "svg" | "png" => Ok(()),
        _ => {
            let text = format!("cannot draw to `{}`: its ending is neither .svg nor .png", path.display());
            Err(Failure::new("cli.plot", text))
        }
    }
}

fn ending(path: &Path) -> String {
    path.extension().and_then(|text| text.to_str()).unwrap_or("").to_lowercase()
}

pub(super) fn draw(map: &HotSpots, names: [&str; 2], path: &Path) -> Result<(), Failure> {
    let (plots, layout) = picture(map, names);
    let picture = match ending(path).as_str() {
        "svg" => SvgBackend.render_scene(&render_multiple(plots, layout)).into_bytes(),
        _ => kuva::render_to_png(plots, layout, 2.0).map_err(|error| Failure::new("cli.plot", error))?,
    };
    super::write_file(path, picture)
}

fn picture(map: &HotSpots, names: [&str; 2]) -> (Vec<Plot>, Layout) {
    let [west, south, east, north] = map.edges;
    let heatmap = Heatmap::new()
        .with_data(rows(map))
        .with_x_range(west, east)
        .with_y_range(south, north)
        // No gaps between cells.
        .with_cell_size(1.0)
        .with_color_map(ColorMap::Inferno)
        .with_legend("log10(1 + count)");
    let plots = vec![Plot::Heatmap(heatmap)];
    let layout =
        Layout::auto_from_plots(&plots).with_title("Hot spots").with_x_label(names[0]).with_y_label(names[1]);
    (plots, layout)
}

/// Cells from the south up, as they are drawn, put together where there are too many.
fn rows(map: &HotSpots) -> Vec<Vec<f64>> {
    let factor = map.side.div_ceil(MOST_CELLS);
    let side = map.side / factor;
    let sum = |row: usize, column: usize| {
        let cells = (0..factor).flat_map(|down| {
            let from = (row * factor + down) * map.side + column * factor;
            &map.counts[from..from + factor]
        });
        (1.0 + cells.sum::<f64>().max(0.0)).log10()
    };
    (0..side).map(|row| (0..side).map(|column| sum(row, column)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A map that is hot in its north-east.
    fn map(side: usize) -> HotSpots {
        HotSpots {
            edges: [0.0, 0.0, 1.0, 1.0],
            side,
            counts: (0..side * side).map(|cell| if cell == side * side - 1 { 9.0 } else { 0.0 }).collect(),
            spots: Vec::new(),
            geojson: String::new(),
        }
    }

    #[test]
    fn large_maps_are_put_together() {
        for side in [2, 512] {
            let rows = rows(&map(side));
            assert_eq!(rows.len(), side.min(256));
            assert_eq!(rows.last().and_then(|row| row.last()), Some(&1.0), "the north-east comes last");
            assert_eq!(rows.iter().flatten().sum::<f64>(), 1.0);
        }
    }

    /// In the picture itself: whoever draws may begin at the top or at the bottom.
    #[test]
    fn north_is_up_and_east_is_right() {
        let (plots, layout) = picture(&map(2), ["lon", "lat"]);
        let svg = SvgBackend.render_scene(&render_multiple(plots, layout));
        let number = |rect: &str, name: &str| -> f64 {
            let value = rect.split(&format!(" {name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
            value.and_then(|value| value.parse().ok()).unwrap_or(f64::NAN)
        };
        let rects: Vec<&str> = svg.split("<rect").skip(1).collect();
        let fill = |rect: &str| {
            rect.split("fill=\"").nth(1).and_then(|rest| rest.split('"').next().map(str::to_owned))
        };
        // Three cells are alike, and the fourth is not.
        let size = |rect: &str| (number(rect, "width"), number(rect, "height"));
        let cells: Vec<&str> = rects
            .iter()
            .copied()
            .filter(|rect| rects.iter().filter(|other| size(other) == size(rect)).count() == 4)
            .collect();
        assert_eq!(cells.len(), 4, "{svg}");
        let hot = |cell: &&&str| cells.iter().filter(|other| fill(other) == fill(cell)).count() == 1;
        let hot = cells.iter().find(hot).unwrap();
        let others = || cells.iter().filter(|cell| *cell != hot);
        assert!(others().all(|cell| number(cell, "y") >= number(hot, "y")), "{svg}");
        assert!(others().all(|cell| number(cell, "x") <= number(hot, "x")), "{svg}");
    }
}
