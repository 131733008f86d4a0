//! [`HotMap`]: what is published, as a grid, as a list, and as regions for GeoJSON.

use std::fmt::Write;

use super::Rectangle;
use super::tree::{self, Grid};

/// A private map: counts that are not negative and add up on all scales.
#[derive(Clone, Debug, PartialEq)]
pub struct HotMap {
    area: Rectangle,
    /// As measured, finest first.
    grids: Vec<Grid>,
    /// The estimates of the same levels.
    estimates: Vec<Vec<f64>>,
}

/// A cell of the map and how many points it has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HotSpot {
    /// Where it is.
    pub area: Rectangle,
    /// Its row from the south, and its column from the west.
    pub cell: (usize, usize),
    /// About how many points it has.
    pub estimate: f64,
    /// Not fewer than this.
    pub low: f64,
    /// Not more than this.
    pub high: f64,
}

/// A part of the map in which no smaller parts can be told apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    /// Where it is.
    pub area: Rectangle,
    /// About how many points it has.
    pub estimate: f64,
    /// Points per unit of area.
    pub density: f64,
}

impl HotMap {
    pub(super) fn new(area: Rectangle, grids: Vec<Grid>) -> Self {
        let estimates = tree::estimate(&grids);
        Self { area, grids, estimates }
    }

    /// The mapped area.
    pub fn area(&self) -> Rectangle {
        self.area
    }

    /// Cells a side.
    pub fn side(&self) -> usize {
        1 << self.grids.first().map_or(0, |grid| grid.level)
    }

    /// Estimated counts, row by row from the south; for a picture, or to add up over any range.
    pub fn counts(&self) -> &[f64] {
        self.estimates.first().map_or(&[], Vec::as_slice)
    }

    /// About how many points there are.
    pub fn total(&self) -> f64 {
        self.counts().iter().sum()
    }

    /// About how many points lie in a range of whole cells.
    pub fn range(&self, rows: std::ops::Range<usize>, columns: std::ops::Range<usize>) -> f64 {
        let side = self.side();
        let columns = columns.start.min(side)..columns.end.min(side);
        let row = |row: usize| self.counts()[row * side..][columns.clone()].iter().sum::<f64>();
        if columns.is_empty() { 0.0 } else { (rows.start.min(side)..rows.end.min(side)).map(row).sum() }
    }

    /// The hottest cells, hottest first.
    ///
    /// All intervals of all cells hold together but for a chance of `beta`, so they also hold for those picked here.
    pub fn hot_spots(&self, count: usize, beta: f64) -> Vec<HotSpot> {
        let Some(grid) = self.grids.first() else { return Vec::new() };
        let (estimates, side) = (self.counts(), self.side());
        let mut order: Vec<usize> = (0..estimates.len()).filter(|&place| estimates[place] > 0.0).collect();
        order.sort_by(|&a, &b| estimates[b].total_cmp(&estimates[a]).then(a.cmp(&b)));
        let error = error(grid, beta);
        let spot = |&place: &usize| {
            let (row, column) = (place / side, place % side);
            HotSpot {
                area: self.area.block(grid.level, row, column),
                cell: (row, column),
                estimate: estimates[place],
                low: (grid.counts[place] - error).max(0.0),
                high: (grid.counts[place] + error).max(0.0),
            }
        };
        order.iter().take(count).map(spot).collect()
    }

    /// The map as rectangles that are as small as the noise allows: a block is divided while it has more points
    /// than twice the noise of its cells. Blocks without points are left out.
    pub fn regions(&self) -> Vec<Region> {
        let mut regions = Vec::new();
        let Some(top) = self.grids.len().checked_sub(1) else { return regions };
        for place in 0..self.estimates[top].len() {
            self.divide(top, place, &mut regions);
        }
        regions
    }

    fn divide(&self, at: usize, place: usize, regions: &mut Vec<Region>) {
        let (level, estimate) = (self.grids[at].level, self.estimates[at][place]);
        let side = 1usize << level;
        let (row, column) = (place / side, place % side);
        if estimate <= 0.0 {
            return;
        }
        let finer = at.checked_sub(1).map(|below| &self.grids[below]);
        match finer {
            Some(grid) if estimate > 2.0 * std::f64::consts::SQRT_2 * grid.scale => {
                let factor = 1usize << (grid.level - level);
                for cell in 0..factor * factor {
                    let (row, column) = (row * factor + cell / factor, column * factor + cell % factor);
                    self.divide(at - 1, row * side * factor + column, regions);
                }
            }
            _ => {
                let area = self.area.block(level, row, column);
                let size = (area.east - area.west) * (area.north - area.south);
                regions.push(Region { area, estimate, density: estimate / size });
            }
        }
    }

    /// The regions as a GeoJSON feature collection; for areas in degrees of longitude and latitude.
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # use demur_core::{Adjacency, Epsilon};
    /// # use demur_learn::{Points, hotspots::{Plan, Rectangle}};
    /// # let world = Rectangle { west: -180.0, south: -90.0, east: 180.0, north: 90.0 };
    /// # let plan = Plan::new(world, 3, Adjacency::AddRemove, 1, Epsilon::new(1.0)?)?;
    /// # let points = Points::new(2, [13.4, 52.5].repeat(500))?;
    /// # let map = plan.run(&points, &mut demur_noise::Entropy::from_os()?, &mut |_| ControlFlow::Continue(()))?;
    /// let text = map.value().to_geojson();
    /// assert!(text.starts_with(r#"{"type":"FeatureCollection","features":["#));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_geojson(&self) -> String {
        let mut text = String::from(r#"{"type":"FeatureCollection","features":["#);
        for (index, region) in self.regions().iter().enumerate() {
            let Rectangle { west, south, east, north } = region.area;
            let comma = if index > 0 { "," } else { "" };
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                r#"{comma}{{"type":"Feature","geometry":{{"type":"Polygon","coordinates":[[[{west},{south}],[{east},{south}],[{east},{north}],[{west},{north}],[{west},{south}]]]}},"properties":{{"count":{:.1},"density":{}}}}}"#,
                region.estimate, region.density
            );
        }
        text.push_str("]}");
        text
    }
}

/// All cells of the grid are within this of the truth but for a chance of β: 2·r^(s+1)/(1 + r) ≤ β/cells.
fn error(grid: &Grid, beta: f64) -> f64 {
    let each = beta.clamp(f64::MIN_POSITIVE, 1.0) / grid.counts.len().max(1) as f64;
    let ratio = (-1.0 / grid.scale).exp();
    (grid.scale * (2.0 / (each * (1.0 + ratio))).ln() - 1.0).ceil().max(0.0)
}
