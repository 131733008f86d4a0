//! From privacy losses to guarantees, with bounds that are proven.
//!
//! ```
//! use demur_accounting::Account;
//!
//! let training = "subsampled(0.01, gaussian(sigma=1))*10000 + laplace(scale=10)*3".parse()?;
//! let answer = Account::of(&training)?.epsilon(&"1e-6".parse()?)?;
//! assert!(answer.bounds.lower > 6.9 && answer.bounds.upper < 7.3);
//! assert!(answer.bounds.relative_width() < 1e-9);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | what | where |
//! |---|---|
//! | δ(ε), ε(δ), Rényi divergences of any composition | [`Account`], which picks a [`Method`] and says why |
//! | the loss as a random variable | [`Account::loss_histogram`] |
//! | the least noise for a guarantee | [`calibrate`] |
//! | losses that arrive one by one, each chosen after the answers before it | [`Filter`] |
//!
//! Every number is an interval ([`Bounds`]): the truth is not above the upper end, and where the lower end is
//! not 0, not below it either. How this is proven is told in docs/accounting.md.
//!
//! Never here: state, files, networks, randomness.

mod account;
mod answer;
mod bent;
mod bounds;
pub mod calibrate;
mod classical;
mod crowd;
mod decay;
mod error;
mod filter;
mod gathering;
mod gaussian;
mod grid;
mod haze;
mod histogram;
mod inversion;
mod lattice;
mod law;
mod mixed;
mod nodes;
mod overlap;
mod renyi;
mod solve;
mod split;
mod sums;
pub mod textbook;
mod way;
pub mod worth;

pub use account::Account;
pub use answer::{Answer, Method};
pub use bounds::Bounds;
pub use error::AccountingError;
pub use filter::{Amounts, Filter, Measure, Quote, Refusal, Rule, State};
