//! From privacy losses to guarantees.
#![allow(dead_code)]
mod account;
mod answer;
mod bounds;
mod calibrate;
mod classical;
mod decay;
mod error;
mod grid;
mod inversion;
mod lattice;
mod law;
mod nodes;
mod renyi;
mod solve;
mod way;

pub use account::Account;
pub use answer::{Answer, Method};
pub use bounds::Bounds;
pub use calibrate::{Calibrated, Setting, Target, Unknown, calibrate, calibrate_mixture};
pub use error::AccountingError;
