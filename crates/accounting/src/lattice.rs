//! Losses that are all multiples of one step.
//!
//! **Definition.** When every loss has finitely many values and all differences of values are multiples
//! of a step g, so are those of the sum: L = offset + g·m. The parameters are fractions, so g is found
//! exactly, as their greatest common divisor.
//!
//! **Few points.** The probabilities of all m are computed by plain convolution ([`Table`]). Everything is
//! positive, so each product and sum costs one rounding and nothing cancels: with n points
//! and k losses all probabilities are within a factor 1 ± (20k + 2n·log₂k)·2⁻⁵³.
//!
//! **Many points.** The inversion integral over one period 2π/g is a finite sum; see
//! [`inversion`](crate::inversion).

use demur_exact::Rational;

use crate::Bounds;
use crate::inversion::Lattice;
use crate::law::{Base, Law, Pieces, Terms};
use crate::nodes::UNIT;

/// The most points a table has.
pub(crate) const MOST_POINTS: f64 = 4096.0;

/// The points on which a composition lives.
#[derive(Clone, Debug)]
pub(crate) struct Points {
    offset: Rational,
    step: Rational,
    /// How many points there are, or could be.
    pub(crate) count: f64,
}

impl Points {
    /// `None` unless every loss is on one lattice.
    pub(crate) fn of(terms: &Terms) -> Option<Self> {
        let atoms_only = |law: &Law| law.pieces().is_some_and(|pieces| pieces.flats.is_empty());
        terms.laws.iter().all(|(law, _)| atoms_only(law)).then(|| Self::of_atoms(terms))?
    }

    /// The points of the atoms alone, of laws that may have more.
    pub(crate) fn of_atoms(terms: &Terms) -> Option<Self> {
        let mut step = Rational::zero();
        for (law, _) in &terms.laws {
            let (lowest, pieces) = lowest(law)?;
            for atom in &pieces.atoms {
                step = step.gcd(&(&atom.loss - &lowest));
            }
        }
        if step.is_zero() {
            return None;
        }
        let (mut offset, mut count) = (Rational::zero(), 1.0);
        for (law, uses) in &terms.laws {
            let (lowest, pieces) = lowest(law)?;
            let highest = pieces.atoms.iter().map(|atom| &atom.loss).max()?;
            count += (&(highest - &lowest) / &step).to_f64() * *uses as f64;
            offset = &offset + &(&lowest * &Rational::from(*uses));
        }
        Some(Self { offset, step, count })
    }

    pub(crate) fn lattice(&self) -> Lattice {
        Lattice { offset: self.offset.to_f64(), step: self.step.to_f64() }
    }

    /// The probabilities of all points.
    pub(crate) fn table(&self, terms: &Terms) -> Option<Table> {
        let mut probabilities = vec![1.0];
        let mut uses = 0.0;
        for (law, count) in &terms.laws {
            let (lowest, pieces) = lowest(law)?;
            let finite = 1.0 - law.infinite();
            let index = |loss: &Rational| (&(loss - &lowest) / &self.step).to_f64() as usize;
            let size = pieces.atoms.iter().map(|atom| index(&atom.loss)).max()? + 1;
            let mut one = vec![0.0; size];
            for atom in &pieces.atoms {
                one[index(&atom.loss)] += atom.probability / finite;
            }
            probabilities = convolve(&probabilities, &power(one, *count));
            uses += *count as f64;
        }
        let points = probabilities.len() as f64;
        let error = (20.0 * uses + 2.0 * points * (2.0 + uses.log2().max(0.0))) * UNIT;
        Some(Table { points: self.clone(), probabilities, error })
    }
}

impl Terms {
    /// The lattice of one law with two values, whatever they are.
    pub(crate) fn two_points(&self) -> Option<Lattice> {
        let [(law, count)] = self.laws.as_slice() else { return None };
        let (Base::Pieces(pieces), Some(sampling)) = (&law.base, &law.sampling) else { return None };
        let [a, b] = pieces.atoms.as_slice() else { return None };
        if pieces.infinite > 0.0 || !pieces.flats.is_empty() {
            return None;
        }
        let (a, b) = (sampling.loss(a.loss.to_f64()), sampling.loss(b.loss.to_f64()));
        Some(Lattice { offset: a.min(b) * *count as f64, step: (a - b).abs() })
    }
}

/// The lowest atom of an unsampled law, and its pieces.
fn lowest(law: &Law) -> Option<(Rational, &Pieces)> {
    let pieces = law.pieces()?;
    Some((pieces.atoms.iter().map(|atom| atom.loss.clone()).min()?, pieces))
}

fn power(mut base: Vec<f64>, mut count: u64) -> Vec<f64> {
    let mut product = vec![1.0];
    loop {
        if count % 2 == 1 {
            product = convolve(&product, &base);
        }
        count /= 2;
        if count == 0 {
            return product;
        }
        base = convolve(&base, &base);
    }
}

fn convolve(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut product = vec![0.0; a.len() + b.len() - 1];
    for (i, x) in a.iter().enumerate().filter(|(_, x)| **x > 0.0) {
        for (sum, y) in product[i..].iter_mut().zip(b) {
            *sum += x * y;
        }
    }
    product
}

/// The law of a composition, point by point.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    points: Points,
    probabilities: Vec<f64>,
    error: f64,
}

impl Table {
    /// δ(ε), given that the loss is finite.
    pub(crate) fn delta(&self, epsilon: &Rational) -> Bounds {
        let from = (&(epsilon - &self.points.offset) / &self.points.step).floor();
        let from = usize::try_from(from).map_or(0, |below| below + 1);
        // The first point above ε is compared exactly; from there on, steps add up.
        let first = &self.points.offset + &(&self.points.step * &Rational::from(from as u64));
        let gap = &first - epsilon;
        let step = self.points.step.to_f64();
        let sum = |gap: f64, step: f64| -> f64 {
            let above = self.probabilities.iter().skip(from).enumerate();
            above.map(|(index, p)| p * -libm::expm1(-(gap + index as f64 * step))).sum()
        };
        let error = self.error + 8.0 * UNIT + self.probabilities.len() as f64 * UNIT;
        let lower = sum(gap.to_f64_down(), step.next_down()) * (1.0 - error);
        let upper = sum(gap.to_f64_up(), step.next_up()) * (1.0 + error) + f64::MIN_POSITIVE * UNIT * 1e6;
        Bounds::new(lower.max(0.0), upper.min(1.0))
    }

    /// The losses and their probabilities.
    pub(crate) fn losses(&self) -> impl Iterator<Item = (f64, f64)> {
        let Lattice { offset, step } = self.points.lattice();
        self.probabilities.iter().enumerate().map(move |(index, p)| (offset + index as f64 * step, *p))
    }
}
