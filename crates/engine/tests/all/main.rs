//! The engine from outside: one program, because each would hold all of DataFusion.
//!
//! `cargo test -p demur-engine --test all relations` runs one of them.

#![expect(clippy::unwrap_used, reason = "tests say what they expect")]

mod aggregates;
mod audit;
mod batches;
mod certificates;
mod coverage;
mod files;
mod folder;
mod golden;
mod near;
mod neighbours;
mod opening;
mod pages;
mod queries;
mod relations;
mod synth;
mod two_units;
