//! [`order`]: many times a few numbers, put in order without a branch that depends on them.
//!
//! **Definition.** A number's place in the order is how many numbers are smaller, where equal ones count as smaller if they come earlier. All pairs are compared, many at a time. Of more than
//! [`FEW`] numbers many are usually equal: then these are found in a table, and different ones put in order once each. Otherwise they are sorted.

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
    let mut many = Many::default();
    widest!({
        let mut start = 0;
        for end in ends {
            order_some(numbers, start..end as usize, order, &mut many);
            start = end as usize;
        }
    });
    numbers.truncate(count);
    order.truncate(count);
}

#[inline(always)]
fn order_some(numbers: &[u64], places: Range<usize>, order: &mut [u32], many: &mut Many) {
    match places.len() {
        0 => {}
        1..=16 => order_few::<16>(numbers, places, order),
        17..=32 => order_few::<32>(numbers, places, order),
        33..=FEW => order_few::<FEW>(numbers, places, order),
        _ => many.order(numbers, places, order),
    }
}

/// Room for putting more than a few in order.
#[derive(Default)]
struct Many {
    /// Different numbers, and how often each was met.
    different: Vec<(u64, u32)>,
    /// Of all numbers: which of the different ones they are.
    kinds: Vec<u32>,
    /// Of each different one: the slot that its hash says, or one behind it, has its kind, counted from 1.
    slots: Vec<u32>,
    sorted: Vec<(u64, u32)>,
}

impl Many {
    #[inline(never)]
    fn order(&mut self, numbers: &[u64], places: Range<usize>, order: &mut [u32]) {
        let first = places.start;
        if !self.tell_apart(&numbers[places.clone()]) {
            self.sort(numbers[places.clone()].iter().copied());
            order[places]
                .iter_mut()
                .zip(&self.sorted)
                .for_each(|(place, sorted)| *place = first as u32 + sorted.1);
            return;
        }
        self.begin(first as u32);
        for (&kind, at) in self.kinds.iter().zip(places) {
            let next = &mut self.different[kind as usize].1;
            order[*next as usize] = at as u32;
            *next += 1;
        }
    }

    fn sort(&mut self, numbers: impl Iterator<Item = u64>) {
        self.sorted.clear();
        self.sorted.extend(numbers.zip(0..));
        self.sorted.sort_unstable();
    }

    /// Finds the different ones; false if most are.
    fn tell_apart(&mut self, numbers: &[u64]) -> bool {
        let Self { different, kinds, slots, .. } = self;
        different.clear();
        kinds.clear();
        slots.clear();
        // Half of them stay empty.
        slots.resize(2 * numbers.len().next_power_of_two(), 0);
        let last = slots.len() - 1;
        for (seen, &number) in numbers.iter().enumerate() {
            // Numbers are made of keyed hashes: nobody can choose many for one slot.
            let mut slot = (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & last;
            let kind = loop {
                match slots[slot] {
                    0 if different.len() > FEW + seen / 2 => return false,
                    0 => {
                        different.push((number, 0));
                        slots[slot] = different.len() as u32;
                        break different.len() - 1;
                    }
                    kind if different[kind as usize - 1].0 == number => break kind as usize - 1,
                    _ => slot = (slot + 1) & last,
                }
            };
            different[kind].1 += 1;
            kinds.push(kind as u32);
        }
        true
    }

    /// Puts in the place of each count where the numbers of that kind begin, if all begin here.
    fn begin(&mut self, mut start: u32) {
        let count = self.different.len();
        let mut few = [0; FEW];
        if count <= FEW {
            let mut numbers = [0; FEW];
            numbers.iter_mut().zip(&self.different).for_each(|(number, different)| *number = different.0);
            order_few::<FEW>(&numbers, 0..count, &mut few);
        } else {
            let different = std::mem::take(&mut self.different);
            self.sort(different.iter().map(|different| different.0));
            self.different = different;
        }
        let sorted = (0..count).map(|place| if count <= FEW { few[place] } else { self.sorted[place].1 });
        for kind in sorted {
            let met = &mut self.different[kind as usize].1;
            start += std::mem::replace(met, start);
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
            lengths in prop::collection::vec(prop_oneof![3 => 0usize..20, 1 => 0usize..6 * FEW], 0..8),
            // Some of them equal, or none.
            numbers in prop_oneof![
                prop::collection::vec(prop_oneof![0u64..5, Just((1 << (64 - PLACE)) - 1), 0u64..1 << (64 - PLACE)], 48 * FEW),
                prop::collection::vec(0u64..1 << (64 - PLACE), 48 * FEW),
            ],
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
