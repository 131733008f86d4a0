//! From privacy losses to guarantees.
#![allow(dead_code)]
mod account;
mod answer;
mod bounds;
mod decay;
mod error;
mod inversion;
mod law;
mod nodes;

pub use account::Account;
pub use answer::{Answer, Method};
pub use bounds::Bounds;
pub use error::AccountingError;

pub mod calibrate;
mod histogram;
pub mod textbook;
pub mod worth;
