//! [`order`]: many times a few numbers, put in order without a branch that depends on them.
//!
//! **Definition.** A number's place in the order is how many numbers are smaller, where equal ones count as smaller if they come earlier. All pairs are compared, many at a time; more than
//! [`FEW`] numbers are sorted instead.

use std::ops::Range;

use demur_exact::widest;

/// Of up to so many numbers all pairs are compared.
pub(crate) const FEW: usize = 1 << PLACE;

/// How many of a number's last bits are not looked at: they are 0, and its place is written there.
pub(crate) const PLACE: u32 = 6;

/// Puts the places of numbers in order, from the smallest to the greatest, between one end and the next; the last end is that of all numbers.
pub(crate) fn order(numbers: &mut Vec<u64>, ends: impl Iterator<Item = u32>, order: &mut Vec<u32>) {
    // So much behind them can be looked at, or overwritten.
    let count = numbers.len();
    numbers.resize(count + FEW, 0);
    order.resize(count + FEW, 0);
    widest!({
        let mut start = 0;
        for end in ends {
            order_some(numbers, start..end as usize, order);
            start = end as usize;
        }
    });
    numbers.truncate(count);
    order.truncate(count);
}

#[inline(always)]
fn order_some(numbers: &[u64], places: Range<usize>, order: &mut [u32]) {
    match places.len() {
        0 => {}
        1..=16 => order_few::<16>(numbers, places, order),
        17..=32 => order_few::<32>(numbers, places, order),
        33..=FEW => order_few::<FEW>(numbers, places, order),
        _ => {
            let mut sorted: Vec<(u64, u32)> = places.clone().map(|at| (numbers[at], at as u32)).collect();
            sorted.sort_unstable();
            order[places].iter_mut().zip(sorted).for_each(|(place, (_, at))| *place = at);
        }
    }
}

/// The same for up to `MOST`, always with as many steps. What is behind them in the order is overwritten.
#[inline(always)]
fn order_few<const MOST: usize>(numbers: &[u64], places: Range<usize>, order: &mut [u32]) {
    let count = places.len() as i64;
    let mut different = [0; MOST];
    for (place, (different, number)) in different.iter_mut().zip(&numbers[places.start..][..MOST]).enumerate()
    {
        // All ones, the greatest, if it is not one of them.
        let beyond = (count - 1 - place as i64) >> 63;
        *different = (number | (beyond << PLACE) as u64) | place as u64;
    }
    let mut smaller = [0u64; MOST];
    for other in &different {
        for (smaller, number) in smaller.iter_mut().zip(&different) {
            *smaller += u64::from(other < number);
        }
    }
    let order = &mut order[places.start..][..MOST];
    for (place, &smaller) in smaller.iter().enumerate() {
        order[smaller as usize % MOST] = (places.start + place) as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_in_order_and_equal_ones_as_they_were(
            lengths in prop::collection::vec(prop_oneof![3 => 0usize..20, 1 => 0usize..2 * FEW], 0..8),
            numbers in prop::collection::vec(prop_oneof![0u64..5, Just((1 << (64 - PLACE)) - 1), 0u64..1 << (64 - PLACE)], 16 * FEW),
        ) {
            let ends = lengths.iter().scan(0, |end, length| { *end += length; Some(*end) });
            let ends: Vec<usize> = ends.collect();
            let count = ends.last().map_or(0, |&end| end);
            let numbers: Vec<u64> = numbers[..count].iter().map(|number| number << PLACE).collect();
            let (mut before, mut found) = (numbers.clone(), vec![7; 3]);
            order(&mut before, ends.iter().map(|&end| end as u32), &mut found);
            let mut expected: Vec<u32> = (0..count as u32).collect();
            let mut start = 0;
            for &end in &ends {
                expected[start..end].sort_by_key(|&at| numbers[at as usize]);
                start = end;
            }
            prop_assert_eq!(before, numbers);
            prop_assert_eq!(found, expected);
        }
    }
}
