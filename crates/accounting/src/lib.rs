//! From privacy losses to guarantees.
#![allow(dead_code)]
mod account;
mod answer;
mod bounds;
mod decay;
mod error;
mod filter;
mod inversion;
mod law;
mod nodes;

pub use account::Account;
pub use answer::{Answer, Method};
pub use bounds::Bounds;
pub use error::AccountingError;
pub use filter::{Amounts, Filter, Measure, Refusal, Rule, State};
