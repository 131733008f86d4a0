//! Numbers that are exact, or enclosed between bounds that are.
//!
//! Everything demur promises rests on comparisons such as "is this uniform
//! number below e^(−1/3)?" or "is this δ at most 10⁻⁹?". Floating point answers
//! them almost always; this room answers them always.
//!
//! ```
//! use demur_exact::{Rational, exp_neg};
//!
//! let third: Rational = "1/3".parse()?;
//! let value = exp_neg(&third, 200);
//! assert!(value.lower_f64() <= 0.716_531_310_573_789_3);
//! assert!(value.upper_f64() >= 0.716_531_310_573_789_2);
//! assert!(value.width_in_ulps() <= 2);
//! # Ok::<(), demur_exact::ParseRationalError>(())
//! ```
//!
//! [`Rational`] is an exact fraction. [`Enclosure`] is a pair of fixed-point
//! bounds of any precision, rounded outward at every step. On top of them stand
//! the few functions the other rooms need: e^(−x), Mills' ratio of the normal
//! law, and the privacy profile of Gaussian noise. [`float`] rounds ordinary
//! doubles in a named direction, and [`widest!`] runs loops in wide registers without changing a bit.
//!
//! Never here: randomness, or a word about privacy units and budgets.

mod enclosure;
mod exponential;
pub mod float;
mod normal;
mod rational;
mod widest;

pub use enclosure::Enclosure;
pub use exponential::exp_neg;
pub use normal::{
    gaussian_delta, gaussian_sigma, gaussian_sigma_rough, mills, normal_density, normal_tail, pi,
};
#[doc(hidden)]
pub use pulp;
pub use rational::{ParseRationalError, Rational};
#[doc(hidden)]
pub use widest::Once;
