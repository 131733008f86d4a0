//! [`Number`]: 64 bits while sums provably fit, 128 bits after.

/// An integer that sums are kept in.
pub(crate) trait Number: Copy + Default + Into<i128> {
    /// Whether it has no more than 64 bits.
    const NARROW: bool;

    /// Adds; the caller knows that it [`fits`].
    fn add(&mut self, value: i64);

    /// Adds another sum; the caller knows that it [`fits`].
    fn merge(&mut self, other: Self);

    /// Forced between two numbers.
    fn within(self, low: i128, high: i128) -> i128;

    /// The same number; the caller knows that it [`fits`].
    fn of(wide: i128) -> Self;
}

impl Number for i64 {
    const NARROW: bool = true;

    #[inline]
    fn add(&mut self, value: i64) {
        // Checked in tests; in a release no bit is lost even if the caller were wrong twice in opposite directions.
        debug_assert!(self.checked_add(value).is_some());
        *self = self.wrapping_add(value);
    }

    #[inline]
    fn merge(&mut self, other: Self) {
        self.add(other);
    }

    #[inline]
    fn within(self, low: i128, high: i128) -> i128 {
        let narrow = |bound: i128| bound.clamp(Self::MIN.into(), Self::MAX.into()) as Self;
        i128::from(self.clamp(narrow(low), narrow(high)))
    }

    #[inline]
    fn of(wide: i128) -> Self {
        debug_assert!(Self::try_from(wide).is_ok());
        wide as Self
    }
}

impl Number for i128 {
    const NARROW: bool = false;

    #[inline]
    fn add(&mut self, value: i64) {
        *self += Self::from(value);
    }

    #[inline]
    fn merge(&mut self, other: Self) {
        *self += other;
    }

    #[inline]
    fn within(self, low: i128, high: i128) -> i128 {
        self.clamp(low, high)
    }

    #[inline]
    fn of(wide: i128) -> Self {
        wide
    }
}

/// Whether no sum of `rows` numbers, none further from 0 than `reach`, leaves an `i64`.
pub(crate) fn fits(rows: u64, reach: u64) -> bool {
    u128::from(rows) * u128::from(reach) <= i64::MAX as u128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_of_the_furthest_values_do_not_fit() {
        assert!(fits(1, 1 << 62) && !fits(2, 1 << 62));
        assert!(fits(i64::MAX as u64, 1) && !fits(1 << 63, 1));
        assert!(!fits(u64::MAX, u64::MAX));
    }
}
