//! SQL and a catalog to a bounded plan with its sensitivity; never reads a row.
//!
//! [`Catalog::read`] takes the owner's `demur.toml`, [`plan`] a query; what comes out is a [`Bounded`] question.
//!
//! Never here: rows, files, randomness, noise, a price.

mod after;
mod aggregate;
mod allow;
mod bounded;
mod bounding;
pub mod catalog;
mod concat;
mod enclosure;
mod error;
mod facts;
mod functions;
mod grouping;
mod interval;
mod names;
mod order_free;
mod partners;
mod place;
mod planner;
mod relation;
mod sql;
mod total;
mod unfolded;

pub use after::{After, RELEASED, Shown};
pub use bounded::{Axis, Bounded, Keys, Moment, Product, Recipe, Rules, Statistic};
pub use bounding::size as step_size;
pub use catalog::Catalog;
pub use error::PlanError;
pub use grouping::{Groupings, KeySet};
pub use names::{Declared, function_names, schema as declared_schema};
pub use partners::Partners;
pub use place::Place;
pub use planner::plan;
pub use sql::{GroupSelection, Options};

use planner::error_of;
