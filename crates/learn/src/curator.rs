//! [`Curator`]: the only one who sees points.
//!
//! A method (k-means, hot spots) names all its looks beforehand as [`Look`]s; their composition is the loss that is charged. During the run the
//! method never holds the points: it hands the curator a function from one point to a place and a vector, and gets noisy sums.
//!
//! **Definition.** In a look every counted point adds to one of several cells a vector q of whole numbers with ‖q‖ ≤ reach, and
//! a whole number `weight`. The sums of all cells are published with discrete Gaussian or discrete Laplace noise.
//!
//! **Guarantee.** With at most c points per person, adding or removing a person moves the sums by at most c·√(reach² + weight²) in ℓ2 and
//! by at most c·(reach + weight) in ℓ1 (where reach bounds the norm that is meant). Replacing a person moves them by a
//! person removed and another added: twice as much, or √2 times in ℓ2 if no coordinate is ever negative.
//!
//! **Why.** Norms of sums are at most sums of norms. Without negative coordinates ‖a − b‖₂² ≤ ‖a‖₂² + ‖b‖₂².
//!
//! **Exactness.** Vectors are computed in doubles from one point and public numbers, rounded, and then made to fit *as whole numbers*:
//! one that is too long is shortened by integer arithmetic. So the bound holds to the last digit whatever
//! the doubles did. Sums are integers: no order, no overflow.
//!
//! **References.** \[Dwork2006\], \[Canonne2020\].

use demur_core::{Adjacency, PrivacyLoss};
use demur_exact::Rational;
use demur_noise::{DiscreteGaussian, DiscreteLaplace, Words};
use rayon::prelude::*;

use crate::{LearnError, Points};

/// Points that one task sums before its sums join the others'.
const CHUNK: usize = 4096;

/// The noise on every coordinate of a look, in whole steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Noise {
    Gaussian { variance: Rational },
    Laplace { scale: Rational },
}

/// One look at the points, named before any is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) stage: &'static str,
    pub(crate) noise: Noise,
    /// The longest vector of one point: in ℓ2 for Gaussian noise, in ℓ1 for Laplace noise.
    pub(crate) reach: u64,
    /// What a point adds to its cell's count.
    pub(crate) weight: u64,
    /// Whether a vector may have negative coordinates.
    pub(crate) signed: bool,
    /// How many numbers are published, at most.
    pub(crate) dimensions: u64,
}

/// Who is hidden: neighbours, and how many points a person may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) adjacency: Adjacency,
    pub(crate) max_points: u32,
}

impl Look {
    /// The square of how far one person moves the sums, in ℓ2.
    pub(crate) fn l2_squared(&self, unit: Unit) -> Rational {
        let [reach, weight, points] =
            [self.reach, self.weight, u64::from(unit.max_points)].map(Rational::from);
        let change = match (unit.adjacency, self.signed) {
            (Adjacency::AddRemove, _) => 1u32,
            (Adjacency::Replace, false) => 2,
            (Adjacency::Replace, true) => 4,
        };
        &(&Rational::from(change) * &points.square()) * &(&reach.square() + &weight.square())
    }

    /// How far one person moves the sums, in ℓ1.
    pub(crate) fn l1(&self, unit: Unit) -> Rational {
        let change = match unit.adjacency {
            Adjacency::AddRemove => 1u64,
            Adjacency::Replace => 2,
        };
        &Rational::from(change * u64::from(unit.max_points)) * &Rational::from(self.reach + self.weight)
    }

    pub(crate) fn loss(&self, unit: Unit) -> PrivacyLoss {
        match &self.noise {
            Noise::Gaussian { variance } => PrivacyLoss::DiscreteGaussian {
                variance: variance.clone(),
                l2_squared: self.l2_squared(unit),
                dimensions: self.dimensions,
            },
            Noise::Laplace { scale } => {
                PrivacyLoss::DiscreteLaplace { scale: scale.clone(), sensitivity: self.l1(unit) }
            }
        }
    }
}

/// The fraction that a double stands for.
pub(crate) fn exactly(value: f64) -> Result<Rational, LearnError> {
    Rational::try_from(value).map_err(|_| LearnError::ours("a number was not finite"))
}

/// What all looks cost together.
pub(crate) fn loss_of(looks: &[Look], unit: Unit) -> PrivacyLoss {
    looks.iter().fold(PrivacyLoss::Composed { parts: vec![] }, |sum, look| sum.compose(look.loss(unit)))
}

/// Noisy sums: of each cell a vector, and its count times the look's weight.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sums {
    pub(crate) width: usize,
    pub(crate) vectors: Vec<f64>,
    pub(crate) counts: Vec<f64>,
}

impl Sums {
    pub(crate) fn vector(&self, cell: usize) -> &[f64] {
        &self.vectors[cell * self.width..(cell + 1) * self.width]
    }
}

/// See the module text.
pub(crate) struct Curator<'a, W> {
    points: &'a Points,
    /// The points that count.
    kept: Vec<u32>,
    looks: std::vec::IntoIter<Look>,
    pub(crate) words: &'a mut W,
    #[cfg(test)]
    pub(crate) trace: trace::Trace,
}

impl<'a, W: Words> Curator<'a, W> {
    pub(crate) fn new(points: &'a Points, unit: Unit, looks: Vec<Look>, words: &'a mut W) -> Self {
        let kept = points.bounded(unit.max_points, words);
        Self {
            points,
            kept,
            looks: looks.into_iter(),
            words,
            #[cfg(test)]
            trace: trace::Trace::default(),
        }
    }

    /// The next look: noisy sums of what `contribution` says of each point, over so many cells.
    ///
    /// It is given a point and a vector of zeros to fill, and returns the point's cell, or nothing if the point shall not count.
    /// It must not know anything of the points but what was published.
    pub(crate) fn sums(
        &mut self,
        cells: usize,
        width: usize,
        contribution: impl Fn(&[f64], &mut [i64]) -> Option<usize> + Sync,
    ) -> Result<Sums, LearnError> {
        let Some(look) = self.looks.next() else {
            return Err(LearnError::ours("a run looked more often than its plan names"));
        };
        let per_cell = width + usize::from(look.weight > 0);
        if (cells * per_cell) as u64 > look.dimensions {
            return Err(LearnError::ours("a run asked for more numbers than its plan names"));
        }
        let mut steps = self.totals(&look, cells, width, contribution);
        #[cfg(test)]
        if let Some(said) = self.trace.said(&look, &steps) {
            return Ok(published(&said, width, look.weight));
        }
        match &look.noise {
            Noise::Gaussian { variance } => {
                add(&DiscreteGaussian::new(variance.clone())?, &mut steps, self.words)
            }
            Noise::Laplace { scale } => add(&DiscreteLaplace::new(scale.clone())?, &mut steps, self.words),
        }
        #[cfg(test)]
        self.trace.remember(&steps);
        Ok(published(&steps, width, look.weight))
    }

    /// The sums without noise; each cell's count stands behind its vector.
    fn totals(
        &self,
        look: &Look,
        cells: usize,
        width: usize,
        contribution: impl Fn(&[f64], &mut [i64]) -> Option<usize> + Sync,
    ) -> Vec<i128> {
        let per_cell = width + usize::from(look.weight > 0);
        let sum = |points: &[u32]| {
            let mut sums = vec![0i64; cells * per_cell];
            let mut vector = vec![0i64; width];
            for &index in points {
                vector.fill(0);
                let Some(cell) = contribution(self.points.row(index as usize), &mut vector) else { continue };
                if cell >= cells {
                    continue;
                }
                fit(&mut vector, look);
                let sums = &mut sums[cell * per_cell..(cell + 1) * per_cell];
                sums.iter_mut().zip(&vector).for_each(|(sum, &part)| *sum += part);
                if look.weight > 0 {
                    sums[width] += look.weight as i64;
                }
            }
            sums
        };
        let zeros = || vec![0i128; cells * per_cell];
        let join = |mut all: Vec<i128>, one: Vec<i64>| {
            all.iter_mut().zip(one).for_each(|(all, one)| *all += i128::from(one));
            all
        };
        let both = |mut all: Vec<i128>, other: Vec<i128>| {
            all.iter_mut().zip(other).for_each(|(all, other)| *all += other);
            all
        };
        // Long sums are few: each task holds its own.
        let chunk = CHUNK.max(self.kept.len().div_ceil(16));
        self.kept.par_chunks(chunk).map(sum).fold(zeros, join).reduce(zeros, both)
    }
}

trait Law {
    fn draw<W: Words>(&self, words: &mut W) -> i128;
}

impl Law for DiscreteGaussian {
    fn draw<W: Words>(&self, words: &mut W) -> i128 {
        self.sample(words)
    }
}

impl Law for DiscreteLaplace {
    fn draw<W: Words>(&self, words: &mut W) -> i128 {
        self.sample(words)
    }
}

fn add<W: Words>(law: &impl Law, steps: &mut [i128], words: &mut W) {
    steps.iter_mut().for_each(|step| *step += law.draw(words));
}

fn published(steps: &[i128], width: usize, weight: u64) -> Sums {
    let per_cell = width + usize::from(weight > 0);
    let mut sums = Sums { width, vectors: Vec::new(), counts: Vec::new() };
    for cell in steps.chunks(per_cell.max(1)) {
        sums.vectors.extend(cell[..width].iter().map(|&step| step as f64));
        sums.counts.extend(cell[width..].iter().map(|&step| step as f64 / weight as f64));
    }
    sums
}

/// Makes a point's vector as short as was declared.
fn fit(vector: &mut [i64], look: &Look) {
    if !look.signed {
        vector.iter_mut().for_each(|part| *part = (*part).max(0));
    }
    let reach = u128::from(look.reach);
    let size = match look.noise {
        Noise::Gaussian { .. } => {
            let squares: u128 = vector
                .iter()
                .map(|&part| u128::from(part.unsigned_abs()).pow(2))
                .fold(0, u128::saturating_add);
            if squares <= reach * reach {
                return;
            }
            let root = squares.isqrt();
            root + u128::from(root * root < squares)
        }
        Noise::Laplace { .. } => {
            let size: u128 = vector.iter().map(|&part| u128::from(part.unsigned_abs())).sum();
            if size <= reach {
                return;
            }
            size
        }
    };
    // Quotients are rounded towards zero, so no coordinate is longer than its share.
    vector.iter_mut().for_each(|part| *part = (i128::from(*part) * reach as i128 / size as i128) as i64);
}

#[cfg(test)]
pub(crate) mod trace {
    //! What a curator saw, to be compared between neighbouring datasets with equal answers.

    use super::{LearnError, Look, Unit};

    /// All looks so far; when `script` is given its answers are repeated.
    #[derive(Default)]
    pub(crate) struct Trace {
        pub(crate) looks: Vec<(Look, Vec<i128>)>,
        pub(crate) answers: Vec<Vec<i128>>,
        pub(crate) script: Option<Vec<Vec<i128>>>,
    }

    impl Trace {
        pub(crate) fn said(&mut self, look: &Look, steps: &[i128]) -> Option<Vec<i128>> {
            let said = self.script.as_ref().and_then(|script| script.get(self.looks.len()).cloned());
            self.looks.push((look.clone(), steps.to_vec()));
            said
        }

        pub(crate) fn remember(&mut self, steps: &[i128]) {
            self.answers.push(steps.to_vec());
        }
    }

    /// Whether two runs asked the same, and no sum moved by more than its look declares; with the largest part used of any.
    pub(crate) fn compare(one: &Trace, other: &Trace, unit: Unit) -> Result<f64, LearnError> {
        let broken = |text: &str| LearnError::new("test", text);
        if one.looks.len() != other.looks.len() {
            return Err(broken("another number of looks"));
        }
        let mut most: f64 = 0.0;
        for ((look, here), (its_look, there)) in one.looks.iter().zip(&other.looks) {
            if look != its_look || here.len() != there.len() {
                return Err(broken("another look"));
            }
            let moved = here.iter().zip(there).map(|(a, b)| (a - b).unsigned_abs());
            let part = match look.noise {
                super::Noise::Gaussian { .. } => {
                    moved.map(|step| step.pow(2)).sum::<u128>() as f64 / look.l2_squared(unit).to_f64()
                }
                super::Noise::Laplace { .. } => moved.sum::<u128>() as f64 / look.l1(unit).to_f64(),
            };
            if part > 1.0 {
                return Err(broken(look.stage));
            }
            most = most.max(part);
        }
        Ok(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn look(noise: Noise, reach: u64, signed: bool) -> Look {
        Look { stage: "test", noise, reach, weight: 3, signed, dimensions: 100 }
    }

    proptest! {
        /// Every neighbour, any vectors: no sum moves by more than the look declares.
        #[test]
        fn no_person_moves_a_sum_by_more_than_declared(
            values in proptest::collection::vec(-500i64..500, 24),
            person in 0u128..4, gaussian: bool, signed: bool, replace: bool, max_points in 1u32..4,
        ) {
            let noise = match gaussian {
                true => Noise::Gaussian { variance: Rational::one() },
                false => Noise::Laplace { scale: Rational::one() },
            };
            let look = look(noise, 100, signed);
            let adjacency = if replace { Adjacency::Replace } else { Adjacency::AddRemove };
            let unit = Unit { adjacency, max_points };
            let people: Vec<u128> = (0..12).map(|i| i / 3).collect();
            let coordinates: Vec<f64> = values.iter().map(|&v| v as f64).collect();
            let here = Points::new(2, coordinates.clone()).unwrap().of_people(people.clone()).unwrap();
            let mut others = Vec::new();
            let mut names = Vec::new();
            for (row, &name) in coordinates.chunks(2).zip(&people) {
                match (name == person, replace) {
                    (true, true) => { others.extend([-row[1], -row[0]]); names.push(name); }
                    (true, false) => {}
                    (false, _) => { others.extend(row); names.push(name); }
                }
            }
            let there = Points::new(2, others).unwrap().of_people(names).unwrap();
            let totals = |points: &Points| {
                let words = &mut demur_testkit::Seeded::new(3);
                let curator = Curator::new(points, unit, vec![look.clone()], words);
                curator.totals(&look, 2, 2, |row, out| {
                    out[0] = row[0] as i64;
                    out[1] = row[1] as i64;
                    Some(usize::from(row[0] > 0.0))
                })
            };
            let moved: Vec<u128> =
                totals(&here).iter().zip(totals(&there)).map(|(a, b)| (a - b).unsigned_abs()).collect();
            match gaussian {
                true => prop_assert!(
                    Rational::from(moved.iter().map(|m| m * m).sum::<u128>() as u64) <= look.l2_squared(unit)
                ),
                false => prop_assert!(Rational::from(moved.iter().sum::<u128>() as u64) <= look.l1(unit)),
            }
        }
    }

    #[test]
    fn the_declared_bound_is_reached() {
        let look = look(Noise::Gaussian { variance: Rational::one() }, 5, true);
        let mut vector = [3, 4];
        fit(&mut vector, &look);
        assert_eq!(vector, [3, 4]);
        let mut vector = [4, 4];
        fit(&mut vector, &look);
        assert_eq!(vector, [3, 3], "a little too long is too long");
        let mut vector = [300, -401];
        fit(&mut vector, &look);
        assert!(vector[0] > 0 && vector[1] < 0 && vector.iter().map(|v| v * v).sum::<i64>() <= 25);
        let mut long = [i64::MAX, i64::MIN];
        fit(&mut long, &look);
        assert!(long.iter().map(|v| v * v).sum::<i64>() <= 25);
    }

    #[test]
    fn a_run_cannot_look_more_often_or_at_more_than_its_plan_names() {
        let points = Points::new(1, vec![1.0]).unwrap();
        let unit = Unit { adjacency: Adjacency::AddRemove, max_points: 1 };
        let words = &mut demur_testkit::Seeded::new(0);
        let named = look(Noise::Laplace { scale: Rational::one() }, 0, false);
        let mut curator = Curator::new(&points, unit, vec![named.clone(), named], words);
        assert_eq!(curator.sums(101, 0, |_, _| Some(0)).unwrap_err().code(), "learn.broken");
        assert!(curator.sums(100, 0, |_, _| Some(0)).is_ok());
        assert_eq!(curator.sums(1, 0, |_, _| Some(0)).unwrap_err().code(), "learn.broken");
    }
}
