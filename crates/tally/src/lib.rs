//! Exact bounded integer aggregates of Arrow batches: what each group of rows adds up to when no unit counts for more than it may.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow::array::{Int64Array, RecordBatch, StringViewArray};
//! use demur_tally::{Bounds, Limits, Measure, Numbers, Spec, Step, Tallier};
//!
//! let batch = RecordBatch::try_from_iter([
//!     ("user", Arc::new(Int64Array::from(vec![1, 1, 1, 2])) as _),
//!     ("region", Arc::new(StringViewArray::from(vec!["north", "north", "north", "south"])) as _),
//!     ("spend", Arc::new(Int64Array::from(vec![Some(70), Some(900), None, Some(5)])) as _),
//! ])?;
//! let spec = Spec {
//!     has_unit: true,
//!     keys: 1,
//!     inputs: 1,
//!     groups_per_unit: 5,
//!     measures: vec![
//!         Measure::Count { input: None, most: 2 },
//!         Measure::Sum {
//!             input: 0,
//!             step: Step::One,
//!             row: Bounds { low: 0, high: 100 },
//!             unit: Bounds { low: 0, high: 150 },
//!         },
//!     ],
//! };
//! let tallier = Tallier::new(spec, &batch.schema(), [17, 4], Limits::default())?;
//! let mut feed = tallier.feed()?;
//! feed.push(&batch)?;
//! feed.finish()?;
//! let tally = tallier.finish()?;
//! assert_eq!(tally.units, [1, 1]);
//! assert_eq!(tally.measures, [vec![2, 1], vec![150, 5]].map(Numbers::One));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Spec`] says what is counted and what is promised of it, [`Tallier`] counts. There is no noise here and no price: a [`Tally`] is exact, and must
//! not leave the house as it is.

mod archive;
mod both;
mod bound;
mod choose;
mod codes;
mod column;
mod context;
mod entries;
mod error;
mod feed;
mod flow;
mod groups;
mod hash;
#[cfg(test)]
mod joining;
mod keep;
mod layout;
mod lists;
mod matching;
mod names;
mod numbers;
mod order;
#[cfg(test)]
mod properties;
mod record;
#[cfg(test)]
mod reference;
mod rows;
mod scatter;
mod settle;
mod shared;
mod shelf;
mod sources;
mod spec;
mod steps;
mod store;
#[cfg(test)]
mod tables;
mod tallier;
mod tally;
mod totals;
mod waiting;
mod wide;
mod words;

pub use both::Both;
pub use error::TallyError;
pub use feed::Feed;
pub use numbers::{Cells, Numbers};
pub use spec::{Bounds, Measure, Spec, Step};
pub use tallier::{Limits, Tallier};
pub use tally::Tally;
