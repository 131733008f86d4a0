//! [`Bounds`]: a number that is known to lie between two others.

/// A lower and an upper bound, both proven.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The number is at least this.
    pub lower: f64,
    /// The number is at most this.
    pub upper: f64,
}

impl Bounds {
    /// Both bounds, of which an absent upper bound is +∞.
    pub fn new(lower: f64, upper: f64) -> Self {
        debug_assert!(lower <= upper, "{lower} above {upper}");
        Self { lower, upper }
    }

    /// The larger of two numbers.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self { lower: self.lower.max(other.lower), upper: self.upper.max(other.upper) }
    }

    /// The same number, known from two sources.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { lower: self.lower.max(other.lower), upper: self.upper.min(other.upper) }
    }

    /// (upper − lower) / upper.
    pub fn relative_width(self) -> f64 {
        if self.upper == self.lower { 0.0 } else { (self.upper - self.lower) / self.upper }
    }
}
