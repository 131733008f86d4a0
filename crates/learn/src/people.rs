//! [`Points`]: rows of numbers and whose they are.
//!
//! **Contribution bounding.** Of each person at most a declared number of points counts. Which ones is decided by a keyed hash of their place
//! among the person's own points, with a fresh key per run, so that nobody else's rows have a say. A point with a
//! coordinate that is not a finite number counts for nothing.

use std::collections::HashMap;

use demur_noise::Words;

use crate::LearnError;
use crate::error::require;

/// More points than this are refused: sums of all of them must fit.
const MOST_POINTS: usize = 1 << 31;

/// Points in memory, each with as many coordinates, and optionally whose they are.
///
/// ```
/// use demur_learn::Points;
/// let points = Points::new(2, vec![0.5, 1.5, 2.5, 3.5])?.of_people(vec![7, 7])?;
/// assert_eq!((points.len(), points.dimensions()), (2, 2));
/// assert_eq!(Points::new(2, vec![1.0]).unwrap_err().code(), "learn.points.shape");
/// # Ok::<(), demur_learn::LearnError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    dimensions: usize,
    values: Vec<f64>,
    people: Option<Vec<u128>>,
}

impl Points {
    /// Points one after the other, coordinate by coordinate; each point is a person of its own.
    pub fn new(dimensions: usize, values: Vec<f64>) -> Result<Self, LearnError> {
        require(dimensions > 0 && values.len().is_multiple_of(dimensions), "learn.points.shape", || {
            format!(
                "points of {dimensions} coordinates need a whole multiple of that many numbers, but there are {}",
                values.len()
            )
        })?;
        require(values.len() / dimensions <= MOST_POINTS, "learn.points.many", || {
            format!("at most {MOST_POINTS} points can be summed, but there are {}", values.len() / dimensions)
        })?;
        Ok(Self { dimensions, values, people: None })
    }

    /// The same with the person each point belongs to, under a name that no other person's rows change.
    pub fn of_people(mut self, people: Vec<u128>) -> Result<Self, LearnError> {
        require(people.len() == self.len(), "learn.points.people", || {
            format!(
                "each point belongs to one person, but there are {} points and {} names",
                self.len(),
                people.len()
            )
        })?;
        self.people = Some(people);
        Ok(self)
    }

    /// How many points there are; a secret unless neighbours have equally many.
    pub fn len(&self) -> usize {
        self.values.len() / self.dimensions
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// How many coordinates each has.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The coordinates of one point.
    pub(crate) fn row(&self, index: usize) -> &[f64] {
        &self.values[index * self.dimensions..(index + 1) * self.dimensions]
    }

    /// The points that count: finite, and of each person at most `most`.
    pub(crate) fn bounded<W: Words>(&self, most: u32, words: &mut W) -> Vec<u32> {
        let key = words.word();
        let finite = (0..self.len()).filter(|&index| self.row(index).iter().all(|value| value.is_finite()));
        let Some(people) = &self.people else {
            return finite.map(|index| index as u32).collect();
        };
        let mut of_person: HashMap<u128, Vec<u32>> = HashMap::new();
        for index in finite {
            of_person.entry(people[index]).or_default().push(index as u32);
        }
        let mut kept: Vec<u32> = of_person
            .into_iter()
            .flat_map(|(person, points)| {
                let key = mix(mix(key, person as u64), (person >> 64) as u64);
                self.sample(points, key, most as usize)
            })
            .collect();
        kept.sort_unstable();
        kept
    }

    /// At most so many of one person's points, by a keyed hash of their coordinates and how many are like them. Where they stand does not matter: rows come from several
    /// threads, in an order that others have a say in.
    fn sample(&self, points: Vec<u32>, key: u64, most: usize) -> Vec<u32> {
        if points.len() <= most {
            return points;
        }
        let alike =
            |point: u32| self.row(point as usize).iter().fold(key, |hash, value| mix(hash, value.to_bits()));
        let mut order: Vec<(u64, u32)> = points.into_iter().map(|point| (alike(point), point)).collect();
        order.sort_unstable();
        let copies = order.chunk_by(|one, two| one.0 == two.0).flat_map(|same| same.iter().zip(0u64..));
        let mut ranked: Vec<_> = copies.map(|((alike, point), copy)| (mix(*alike, copy), *point)).collect();
        ranked.sort_unstable();
        ranked.into_iter().take(most).map(|(_, point)| point).collect()
    }
}

/// Scrambles two words into one.
pub(crate) fn mix(key: u64, value: u64) -> u64 {
    let mut word = key ^ value.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for shift in [30, 27, 31] {
        word = (word ^ (word >> shift)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    word ^ (word >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use demur_testkit::Seeded;

    #[test]
    fn nobody_counts_for_more_than_declared_and_no_other_row_has_a_say() {
        let values: Vec<f64> = (0..40).map(f64::from).collect();
        let people: Vec<u128> = (0..40).map(|i| if i < 30 { 1 } else { i }).collect();
        let all = Points::new(1, values.clone()).unwrap().of_people(people.clone()).unwrap();
        let kept = all.bounded(3, &mut Seeded::new(1));
        assert_eq!(kept.len(), 3 + 10);
        // Without person 35 everyone else keeps the same points.
        let without: Vec<usize> = (0..40).filter(|&i| i != 35).collect();
        let fewer = Points::new(1, without.iter().map(|&i| values[i]).collect())
            .unwrap()
            .of_people(without.iter().map(|&i| people[i]).collect())
            .unwrap();
        let rows = |points: &Points, kept: &[u32]| -> Vec<f64> {
            kept.iter().map(|&i| points.row(i as usize)[0]).filter(|&x| x != 35.0).collect()
        };
        assert_eq!(rows(&all, &kept), rows(&fewer, &fewer.bounded(3, &mut Seeded::new(1))));
        assert_ne!(kept, all.bounded(3, &mut Seeded::new(2)), "the key is fresh");
        // Nor does it matter where points stand.
        let turned = Points::new(1, values.iter().rev().copied().collect()).unwrap();
        let turned = turned.of_people(people.iter().rev().copied().collect()).unwrap();
        let mut same = rows(&turned, &turned.bounded(3, &mut Seeded::new(1)));
        same.reverse();
        assert_eq!(rows(&all, &kept), same);
    }

    #[test]
    fn points_that_are_not_numbers_count_for_nothing() {
        let points = Points::new(2, vec![1.0, f64::NAN, 1.0, 2.0, f64::INFINITY, 0.0]).unwrap();
        assert_eq!(points.bounded(1, &mut Seeded::new(0)), [1]);
        assert!(Points::new(3, vec![]).unwrap().is_empty());
        assert_eq!(Points::new(0, vec![]).unwrap_err().code(), "learn.points.shape");
        assert_eq!(points.of_people(vec![1]).unwrap_err().code(), "learn.points.people");
    }
}
