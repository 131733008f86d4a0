//! [`Number`]: 64 bits while sums provably fit, 128 bits after.

/// An integer that sums are kept in.
pub(crate) trait Number: Copy + Default + Into<i128> {
    /// Adds; the caller knows that it [`fits`].
    fn add(&mut self, value: i64);
}

impl Number for i64 {
    #[inline]
    fn add(&mut self, value: i64) {
        // Checked in tests; in a release no bit is lost even if the caller were wrong twice in opposite directions.
        debug_assert!(self.checked_add(value).is_some());
        *self = self.wrapping_add(value);
    }
}

impl Number for i128 {
    #[inline]
    fn add(&mut self, value: i64) {
        *self += Self::from(value);
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
