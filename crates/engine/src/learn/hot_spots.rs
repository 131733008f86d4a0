//! [`Engine::map`]: where something happens often.

use demur_core::{Epsilon, Guarantee};
use demur_learn::hotspots::{HotMap, Plan, Rectangle};
use serde::{Deserialize, Serialize};

use super::lesson::{Asked, Learned, Watch, told};
use super::numbers::{Numbers, Reader, bounds};
use crate::backend::Backend;
use crate::{Engine, EngineError, Project};

/// Which map somebody wants.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    /// The table of places.
    pub table: String,
    /// The columns of the first and the second coordinate: longitude and latitude, say. Their declared bounds are the edges of the map.
    pub columns: [String; 2],
    /// The map has 2ᵈ × 2ᵈ cells.
    pub depth: u32,
    /// For how many places one unit may count.
    pub points_per_unit: u32,
    /// What it may cost.
    pub epsilon: Epsilon,
    /// Who asks.
    pub requester: String,
}

/// So many hot spots are listed, at most.
pub const MOST_SPOTS: usize = 1000;

/// A cell with many places.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spot {
    /// Its western edge.
    pub west: f64,
    /// Its southern edge.
    pub south: f64,
    /// Its eastern edge.
    pub east: f64,
    /// Its northern edge.
    pub north: f64,
    /// About how many places it has.
    pub estimate: f64,
    /// Not fewer than this, for all cells at once but for a chance of 5 %.
    pub low: f64,
    /// Not more than this.
    pub high: f64,
}

/// A map that may be shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HotSpots {
    /// West, south, east, north.
    pub edges: [f64; 4],
    /// Cells a side.
    pub side: usize,
    /// Estimated places of each cell, row by row from the south.
    pub counts: Vec<f64>,
    /// The hottest cells, hottest first, at most [`MOST_SPOTS`].
    pub spots: Vec<Spot>,
    /// Regions as small as the noise allows, as GeoJSON.
    pub geojson: String,
}

impl HotSpots {
    fn of(map: &HotMap) -> Self {
        let Rectangle { west, south, east, north } = map.area();
        let spot = |spot: &demur_learn::hotspots::HotSpot| {
            let Rectangle { west, south, east, north } = spot.area;
            Spot { west, south, east, north, estimate: spot.estimate, low: spot.low, high: spot.high }
        };
        Self {
            edges: [west, south, east, north],
            side: map.side(),
            // Thousandths are finer than any noise here.
            counts: map.counts().iter().map(|count| (count * 1e3).round() / 1e3).collect(),
            spots: map.hot_spots(MOST_SPOTS, 0.05).iter().map(spot).collect(),
            geojson: map.to_geojson(),
        }
    }

    fn read(released: &[String]) -> Result<Self, EngineError> {
        let wrong =
            |error: &str| EngineError::new("engine.learn.map", format!("this is no map of demur: {error}"));
        let [text] = released else { return Err(wrong("it has not one part")) };
        let map: Self = serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))?;
        match map.counts.len() == map.side * map.side {
            true => Ok(map),
            false => Err(wrong("its cells make no square")),
        }
    }
}

impl Engine {
    /// Charges, reads the places, and draws the map.
    pub fn map(
        &self,
        project: &Project,
        wanted: &Mapping,
        backend: &dyn Backend,
        watch: &mut Watch<'_>,
    ) -> Result<Learned<HotSpots>, EngineError> {
        let table = project.private_table(&wanted.table, Guarantee::pure(wanted.epsilon))?;
        let [x, y] = &wanted.columns;
        let ((west, east), (south, north)) = (bounds(table, x)?, bounds(table, y)?);
        let area = Rectangle { west, south, east, north };
        let plan = Plan::new(area, wanted.depth, table.adjacency, wanted.points_per_unit, wanted.epsilon)?;
        let asked = Asked {
            project,
            table,
            requester: &wanted.requester,
            what: "a map of hot spots",
            wish: format!(
                "{:?} {} {} {:?} {area:?}",
                wanted.columns, wanted.depth, wanted.points_per_unit, wanted.epsilon
            ),
            bounds: format!("a unit counts for at most {} places", wanted.points_per_unit),
            sensitivity: "a place is in one cell of each grid",
            loss: plan.loss().clone(),
        };
        let answer = self.learn(asked, backend, || {
            let readers = [x, y].map(|name| Reader::Number(name.clone()));
            let points = Numbers::read(table, &readers, backend)
                .map_err(|_| EngineError::after_the_charge())?
                .points()?;
            Ok(move |entropy: &mut demur_noise::Entropy| {
                let map = plan.run(&points, entropy, &mut told(watch))?;
                let text = serde_json::to_string(&HotSpots::of(map.value()));
                Ok(vec![text.map_err(|_| EngineError::after_the_charge())?])
            })
        })?;
        Learned::of(answer, HotSpots::read)
    }
}
