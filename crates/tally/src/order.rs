//! [`Order`]: many times a few numbers, put in order without a branch that depends on them.
//!
//! **Definition.** A number's place in the order is how many numbers are smaller, where equal ones count as smaller if they come earlier. All pairs are compared by as many of their bits as a narrow
//! word has room for: then twice as many are compared at a time. Where that leaves numbers out of order, or there are more than [`FEW`], equal ones are found in a table and different ones sorted;
//! if most are different, all of them are.

use std::ops::Range;

use demur_exact::widest;

/// Of up to so many numbers all pairs are compared.
pub(crate) const FEW: usize = 64;

/// Numbers in order.
#[derive(Default)]
pub(crate) struct Order {
    /// Where each of them was.
    pub(crate) places: Vec<u32>,
    pub(crate) numbers: Vec<u64>,
    many: Many,
}

impl Order {
    /// Puts numbers in order, from the smallest to the greatest, between one end and the next; the last end is that of all numbers. Between two ends at least so many of the first bits are alike.
    pub(crate) fn put(&mut self, numbers: &mut Vec<u64>, ends: impl Iterator<Item = u32>, alike: u32) {
        // So much behind them can be looked at, or overwritten.
        let count = numbers.len();
        numbers.resize(count + FEW, 0);
        self.places.resize(count + FEW, 0);
        self.numbers.resize(count + FEW, 0);
        widest!({
            let mut start = 0;
            for end in ends {
                self.put_some(numbers, start..end as usize, alike);
                start = end as usize;
            }
        });
        numbers.truncate(count);
        self.places.truncate(count);
        self.numbers.truncate(count);
    }

    #[inline(always)]
    fn put_some(&mut self, numbers: &[u64], range: Range<usize>, alike: u32) {
        let Self { places, numbers: sorted, many } = self;
        let to = (&mut places[range.start..], &mut sorted[range.start..]);
        let in_order = match range.len() {
            0 => true,
            1..=16 => put_few::<16>(numbers, range.clone(), alike, to),
            17..=32 => put_few::<32>(numbers, range.clone(), alike, to),
            33..=FEW => put_few::<FEW>(numbers, range.clone(), alike, to),
            _ => false,
        };
        if !in_order {
            many.order(numbers, range.clone(), places);
            let sorted = sorted[range.clone()].iter_mut();
            sorted.zip(&places[range]).for_each(|(number, &place)| *number = numbers[place as usize]);
        }
    }
}

/// Puts up to `MOST` numbers in order, always with as many steps; what is behind them is overwritten. False if some of their bits were not enough for it.
#[inline(always)]
fn put_few<const MOST: usize>(
    numbers: &[u64],
    range: Range<usize>,
    alike: u32,
    (places, sorted): (&mut [u32], &mut [u64]),
) -> bool {
    let (start, count) = (range.start, range.len());
    let (places, sorted) = (&mut places[..MOST], &mut sorted[..MOST]);
    let (mut wide, mut narrow) = ([0; MOST], [0; MOST]);
    for (place, number) in numbers[start..][..MOST].iter().enumerate() {
        // All ones, the greatest, if it is not one of them.
        let beyond = (count as i64 - 1 - place as i64) >> 63;
        wide[place] = number | beyond as u64;
        // Its place in the last bits, so that no two are equal.
        narrow[place] = (wide[place] << alike >> 32) as u32 / MOST as u32 * MOST as u32 + place as u32;
    }
    let mut smaller = [0u32; MOST];
    for other in &narrow {
        for (smaller, number) in smaller.iter_mut().zip(&narrow) {
            *smaller += u32::from(other < number);
        }
    }
    for (place, &smaller) in smaller.iter().enumerate() {
        places[smaller as usize % MOST] = (start + place) as u32;
        sorted[smaller as usize % MOST] = wide[place];
    }
    let mut in_order = true;
    for place in 1..MOST {
        in_order &= sorted[place - 1] <= sorted[place];
    }
    in_order
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
    /// The places of some numbers in their order.
    #[cold]
    #[inline(never)]
    fn order(&mut self, numbers: &[u64], range: Range<usize>, places: &mut [u32]) {
        let first = range.start as u32;
        if !self.tell_apart(&numbers[range.clone()]) {
            self.sort(numbers[range.clone()].iter().copied());
            let places = places[range].iter_mut();
            places.zip(&self.sorted).for_each(|(place, sorted)| *place = first + sorted.1);
            return;
        }
        self.begin(first);
        for (&kind, at) in self.kinds.iter().zip(first..) {
            let next = &mut self.different[kind as usize].1;
            places[*next as usize] = at;
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
        let different = std::mem::take(&mut self.different);
        self.sort(different.iter().map(|different| different.0));
        self.different = different;
        for &(_, kind) in &self.sorted {
            let met = &mut self.different[kind as usize].1;
            start += std::mem::replace(met, start);
        }
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
            // Some of them equal, or none, or different in their last bits only.
            numbers in prop_oneof![
                prop::collection::vec(prop_oneof![0u64..5, Just(u64::MAX), any::<u64>()], 48 * FEW),
                prop::collection::vec(any::<u64>(), 48 * FEW),
                prop::collection::vec((1u64 << 40)..(1 << 40) + 5, 48 * FEW),
            ],
            alike in 0u32..40,
        ) {
            let ends = lengths.iter().scan(0, |end, length| { *end += length; Some(*end) });
            let ends: Vec<usize> = ends.collect();
            let count = ends.last().map_or(0, |&end| end);
            // The same first bits between two ends.
            let first = |at: usize| ends.partition_point(|&end| end <= at) as u64;
            let numbers: Vec<u64> = numbers[..count].iter().enumerate()
                .map(|(at, number)| number & (u64::MAX >> alike) | first(at).checked_shl(64 - alike).unwrap_or(0))
                .collect();
            let mut before = numbers.clone();
            let mut order = Order { places: vec![7; 3], numbers: vec![7; 3], ..Order::default() };
            order.put(&mut before, ends.iter().map(|&end| end as u32), alike);
            let mut expected: Vec<u32> = (0..count as u32).collect();
            let mut start = 0;
            for &end in &ends {
                expected[start..end].sort_by_key(|&at| numbers[at as usize]);
                start = end;
            }
            let sorted: Vec<u64> = expected.iter().map(|&at| numbers[at as usize]).collect();
            prop_assert_eq!(before, numbers);
            prop_assert_eq!(order.places, expected);
            prop_assert_eq!(order.numbers, sorted);
        }
    }
}
