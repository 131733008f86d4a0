//! [`Number`], [`Wide`]: 64 bits while sums provably fit, 128 bits after.

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

/// Sums of 128 bits, one for each group. What is added last is held in 64 bits, as long as it fits there.
pub(crate) struct Wide {
    sums: Vec<i128>,
    held: Vec<i64>,
    /// What is added is no further from 0.
    furthest: u128,
    /// How far those that are held may still move.
    left: u128,
}

impl Wide {
    pub(crate) fn new(groups: usize, furthest: u128) -> Self {
        Self { sums: vec![0; groups], held: vec![0; groups], furthest, left: i64::MAX as u128 }
    }

    /// Adds a number to each of these groups' sums.
    pub(crate) fn add_each(&mut self, groups: &[u32], numbers: impl Iterator<Item = i128>) {
        let numbers = groups.iter().map(|&group| group as usize).zip(numbers);
        let way = self.furthest.saturating_mul(groups.len() as u128);
        if way > self.left {
            self.gather();
        }
        if way > self.left {
            return numbers.for_each(|(group, number)| self.sums[group] += number);
        }
        self.left -= way;
        for (group, number) in numbers {
            debug_assert!(number.unsigned_abs() <= self.furthest);
            self.held[group] += number as i64;
        }
    }

    /// Adds numbers to the first sums, however far from 0.
    pub(crate) fn add_all(&mut self, numbers: impl Iterator<Item = i128>) {
        self.sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
    }

    /// Sets the sums.
    pub(crate) fn set(&mut self, sum: impl Fn(usize) -> i128) {
        self.gather();
        self.sums.iter_mut().enumerate().for_each(|(group, to)| *to = sum(group));
    }

    /// The sums.
    pub(crate) fn sums(&mut self) -> &[i128] {
        self.gather();
        &self.sums
    }

    /// Adds the sums of others, who may know more groups.
    pub(crate) fn merge(&mut self, mut other: Self) {
        self.gather();
        let groups = self.sums.len().max(other.sums.len());
        self.sums.resize(groups, 0);
        self.held.resize(groups, 0);
        self.sums.iter_mut().zip(other.sums()).for_each(|(mine, other)| *mine += other);
    }

    fn gather(&mut self) {
        for (sum, held) in self.sums.iter_mut().zip(&mut self.held) {
            *sum += i128::from(std::mem::take(held));
        }
        self.left = i64::MAX as u128;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_of_the_furthest_values_do_not_fit() {
        assert!(fits(1, 1 << 62) && !fits(2, 1 << 62));
        assert!(fits(i64::MAX as u64, 1) && !fits(1 << 63, 1));
        assert!(!fits(u64::MAX, u64::MAX));
    }

    proptest! {
        /// However few of the furthest numbers 64 bits hold.
        #[test]
        fn sums_are_those_of_128_bits(
            // Often such that a few of them have room in 64 bits, and a few more do not.
            shift in prop_oneof![0u32..120, 58u32..63],
            pushes in prop::collection::vec(
                prop::collection::vec((0u32..3, prop_oneof![3 => Just(1), 1 => -1i128..=1]), 0..20), 0..20),
        ) {
            let furthest = (1u128 << shift) + 5;
            let [mut one, mut two] = [2, 3].map(|groups| Wide::new(groups, furthest));
            let mut expected = [0i128; 3];
            for (at, push) in pushes.iter().enumerate() {
                let wide = if at % 2 == 0 { &mut one } else { &mut two };
                let most = wide.sums.len() as u32 - 1;
                let groups: Vec<u32> = push.iter().map(|(group, _)| *group.min(&most)).collect();
                let numbers = || push.iter().map(|(_, number)| number * furthest as i128);
                groups.iter().zip(numbers()).for_each(|(&group, number)| expected[group as usize] += number);
                wide.add_each(&groups, numbers());
            }
            one.merge(two);
            prop_assert_eq!(one.sums(), &expected);
        }
    }
}
