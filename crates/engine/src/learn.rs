//! Learning from a private table: choices, hot spots, clusters, communities, models.
//!
//! ```text
//! catalog ─► plan ─► charge ─► rows ─► noise ─► certificate
//! ```
//!
//! **Guarantee.** What the columns can hold comes from the catalog alone. A plan of [`demur_learn`] knows what it costs before a row is read; that is charged, then rows are
//! read, and what the plan makes of them is released. All that is done with it afterwards is free.

mod clusters;
mod communities;
mod features;
mod hot_spots;
mod lesson;
mod numbers;
mod predict;
mod score;
mod selection;
mod training;

pub use clusters::{Clustering, Clusters};
pub use communities::{Communities, Ties};
pub use hot_spots::{HotSpots, MOST_SPOTS, Mapping, Spot};
pub use lesson::{Learned, Pace, Watch};
pub use predict::Predictor;
pub use score::Score;
pub use selection::Choosing;
pub use training::{Body, Training};

pub use demur_learn::train::Recipe;
pub(crate) use lesson::Lesson;
