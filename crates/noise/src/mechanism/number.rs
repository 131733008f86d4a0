//! [`Number`]: a published number, exactly.

use std::fmt;

use demur_core::Lattice;
use demur_exact::Rational;

/// A whole number of lattice steps that has left the mechanism.
///
/// Prints as an exact decimal: a power of two always has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    steps: i128,
    lattice: Lattice,
}

impl Number {
    pub(crate) fn new(steps: i128, lattice: Lattice) -> Self {
        Self { steps, lattice }
    }

    /// How many lattice steps it is from zero.
    pub fn steps(&self) -> i128 {
        self.steps
    }

    /// The exact value.
    pub fn exact(&self) -> Rational {
        self.lattice.exact(self.steps)
    }

    /// The nearest double.
    #[inline]
    pub fn to_f64(&self) -> f64 {
        self.lattice.value(self.steps)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lattice == Lattice::INTEGER {
            return write!(f, "{}", self.steps);
        }
        f.write_str(&self.lattice.decimal(self.steps))
    }
}
