//! Exact bounded integer aggregates of Arrow batches: what each group of rows adds up to when no unit counts for more than it may.

mod spec;
mod tally;

pub use spec::{Bounds, Measure, Spec, Step};
pub use tally::Tally;
