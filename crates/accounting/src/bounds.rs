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
    /// Both bounds. What is no number bounds nothing: as an upper bound it becomes +∞, as a lower one 0.
    pub fn new(lower: f64, upper: f64) -> Self {
        let lower = if lower.is_nan() { 0.0 } else { lower };
        let upper = if upper.is_nan() { f64::INFINITY } else { upper };
        debug_assert!(lower <= upper, "{lower} above {upper}");
        Self { lower, upper }
    }

    /// The larger of two numbers.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self::new(self.lower.max(other.lower), self.upper.max(other.upper))
    }

    /// The same number, known from two sources. Where they contradict each other the larger upper bound is kept, and no lower one.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let (lower, upper) = (self.lower.max(other.lower), self.upper.min(other.upper));
        debug_assert!(lower <= upper, "{self:?} contradicts {other:?}");
        if lower <= upper { Self { lower, upper } } else { Self::new(0.0, self.upper.max(other.upper)) }
    }

    /// (upper − lower) / upper.
    pub fn relative_width(self) -> f64 {
        if self.upper == self.lower { 0.0 } else { (self.upper - self.lower) / self.upper }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_bounds_nothing() {
        let unknown = Bounds::new(f64::NAN, f64::NAN);
        assert_eq!(unknown, Bounds::new(0.0, f64::INFINITY));
        assert_eq!(Bounds::new(1.0, 2.0).max(unknown), Bounds::new(1.0, f64::INFINITY));
        assert_eq!(Bounds::new(1.0, 2.0).and(unknown), Bounds::new(1.0, 2.0));
    }
}
