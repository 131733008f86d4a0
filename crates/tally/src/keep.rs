//! [`keep_smallest`]: the few things of a unit that count.
//!
//! **Definition.** Of a unit's things those with the smallest (rank, bytes) are kept. The rank is a keyed hash of the unit and the thing.
//!
//! **Guarantee.** What is kept depends on the unit's own things and the key, and on nothing else: neither on the order in which they came nor on
//! the numbers they go by here, which other units' rows have a hand in. A thing once dropped for k smaller ones can never return.

use crate::error::TallyError;
use crate::groups::Things;

/// A thing of a unit: its rank, its number, and where the unit has it.
pub(crate) type Ranked = (u32, u32, u32);

/// Keeps the `most` smallest; the things are different.
#[inline]
pub(crate) fn keep_smallest(things: &mut Vec<Ranked>, most: usize, all: &Things) -> Result<(), TallyError> {
    if things.len() <= most {
        return Ok(());
    }
    things.sort_unstable();
    if most == 0 {
        things.clear();
        return Ok(());
    }
    let last = things[most - 1].0;
    if things[most].0 == last {
        let start = things.partition_point(|thing| thing.0 < last);
        let end = things.partition_point(|thing| thing.0 <= last);
        let strings = all.lock()?;
        things[start..end].sort_by(|one, two| strings.get(one.1).cmp(strings.get(two.1)));
    }
    things.truncate(most);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Secret;

    #[test]
    fn equal_ranks_are_ordered_by_bytes_not_by_arrival() {
        let things = Things::new(Secret::new([1, 2]));
        let numbers: Vec<u32> =
            ["d", "a", "c", "b"].iter().map(|name| things.number(name.as_bytes()).unwrap()).collect();
        let mut ranked = vec![(7, numbers[0], 0), (7, numbers[1], 1), (7, numbers[2], 2), (3, numbers[3], 3)];
        keep_smallest(&mut ranked, 3, &things).unwrap();
        let mut kept: Vec<u32> = ranked.iter().map(|thing| thing.2).collect();
        kept.sort_unstable();
        assert_eq!(kept, [1, 2, 3]);
    }
}
