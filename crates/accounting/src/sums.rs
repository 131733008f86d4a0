//! [`Sums`]: the sums of losses that have finitely many values each, one by one.
//!
//! **Definition.** Where every loss is one of a few values, so is their sum, whether or not the values are multiples of one
//! step. All sums are listed with their probabilities, in two halves: δ(ε) = Σ over sums a of the one half of P\[a\]·δ_B(ε − a), and
//! δ_B of the other half is a [`Ladder`] that is looked up in one step. So a list of m sums in each half stands for m² of them.
//!
//! **Many uses of one law.** Values that are equally far apart are convolved as they are; others are counted by how often each
//! came, Pr = n!/∏kᵢ!·∏pᵢ^kᵢ. A branch of that tree has the probability n!/(∏kᵢ!·r!)·∏pᵢ^kᵢ·S^r when r uses are left for values of
//! probability S together, so what a cut leaves out is known.
//!
//! **Exactness.** Everything is a sum of positive terms. `share` bounds by how much a probability is off relatively, `off`
//! by how much a sum is, and `left_out` is the probability of sums that are not listed: δ is taken at ε ∓ off, and the upper bound
//! counts what was left out as infinite loss.

mod ladder;
mod uses;

use crate::Bounds;
use crate::law::{Law, profile_near};
use crate::nodes::UNIT;
use ladder::Ladder;
use uses::Atoms;

/// The most sums in one half.
const MOST_SUMS: usize = 400_000;
/// From so many on the uses of one law are shared between both halves.
const MANY: usize = 2000;
/// The most sums beside a law that has a density, as a formula is worked out for each.
const MOST_FORMULAS: usize = 3000;

/// Sums of losses with their probabilities, in rising order.
#[derive(Clone, Debug)]
pub(crate) struct Sums {
    /// (sum, probability).
    pub(crate) points: Vec<(f64, f64)>,
    /// By which share of itself a probability may be off.
    pub(crate) share: f64,
    /// By how much a sum may be off.
    pub(crate) off: f64,
    /// The probability of what is not listed.
    pub(crate) left_out: f64,
}

impl Sums {
    /// The loss that is always 0.
    pub(crate) fn nothing() -> Self {
        Self { points: vec![(0.0, 1.0)], share: 0.0, off: 0.0, left_out: 0.0 }
    }

    /// All sums of the atoms that laws have, in one list; without those that together are less likely than `floor`.
    pub(crate) fn of_atoms(laws: &[(Law, u64)], floor: f64, most: usize) -> Option<Self> {
        let mut all = Self::nothing();
        for (law, count) in laws {
            all = all.plus(&Atoms::of(law)?.uses(*count, floor)?, floor, most)?;
        }
        Some(all)
    }

    /// About how many sums the values of such laws have; `None` where one has none.
    pub(crate) fn expected(laws: &[(Law, u64)]) -> Option<f64> {
        laws.iter().map(|(law, count)| Some(Atoms::of(law)?.expected(*count))).product()
    }

    /// Of two independent losses.
    fn plus(&self, other: &Self, floor: f64, most: usize) -> Option<Self> {
        let size = self.points.len() * other.points.len();
        if size > most {
            return None;
        }
        let (negligible, mut left_out) = (floor / (8.0 * size as f64), self.left_out + other.left_out);
        let mut points = Vec::with_capacity(size);
        for (a, p) in &self.points {
            for (b, q) in &other.points {
                if p * q < negligible {
                    left_out += p * q * (1.0 + 1e-9);
                } else {
                    points.push((a + b, p * q));
                }
            }
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let largest = points.iter().map(|point| point.0.abs()).fold(0.0, f64::max);
        Some(Self {
            points,
            share: self.share + other.share + 2.0 * UNIT,
            off: self.off + other.off + 2.0 * UNIT * largest,
            left_out,
        })
    }
}

/// A composition of losses with finitely many values each, and perhaps one that has a density.
pub(crate) struct Few {
    outer: Sums,
    rest: Rest,
}

enum Rest {
    Sums(Ladder),
    Law(Box<Law>),
}

impl Few {
    /// Whether the losses are of this kind, and few enough.
    pub(crate) fn suits(laws: &[(Law, u64)]) -> bool {
        let [atomic, rest] = apart(laws);
        let sizes = atomic.iter().map(|(law, count)| Some(Atoms::of(law)?.expected(*count)));
        let Some(sizes) = sizes.collect::<Option<Vec<f64>>>() else { return false };
        let all: f64 = sizes.iter().product();
        match rest.as_slice() {
            [] => all.sqrt() < MOST_SUMS as f64 / 4.0,
            [(law, 1)] => law.infinite() == 0.0 && all < MOST_FORMULAS as f64 && !atomic.is_empty(),
            _ => false,
        }
    }

    /// Without sums that together are less likely than `floor`.
    pub(crate) fn new(laws: &[(Law, u64)], floor: f64) -> Option<Self> {
        let [atomic, rest] = apart(laws);
        let floor = floor.max(1e-290) / (atomic.len() as f64 + 1.0);
        if let [(law, 1)] = rest.as_slice() {
            let outer = Sums::of_atoms(&atomic, floor, MOST_FORMULAS * 4)?;
            return Some(Self { outer, rest: Rest::Law(Box::new(law.clone())) });
        }
        let mut parts = vec![];
        for (law, count) in &atomic {
            let atoms = Atoms::of(law)?;
            if *count > 1 && !atoms.is_lattice() && atoms.expected(*count) > MANY as f64 {
                parts.push(atoms.uses(count / 2, floor)?);
                parts.push(atoms.uses(count - count / 2, floor)?);
            } else {
                parts.push(atoms.uses(*count, floor)?);
            }
        }
        parts.sort_by_key(|part| std::cmp::Reverse(part.points.len()));
        let mut halves = [Sums::nothing(), Sums::nothing()];
        for part in parts {
            let smaller = usize::from(halves[1].points.len() < halves[0].points.len());
            halves[smaller] = halves[smaller].plus(&part, floor, MOST_SUMS)?;
        }
        let [outer, inner] = halves;
        Some(Self { outer, rest: Rest::Sums(Ladder::new(inner)) })
    }

    /// δ(ε), given that the loss is finite.
    pub(crate) fn delta(&self, epsilon: f64) -> Bounds {
        let off = self.outer.off + 4.0 * UNIT * epsilon.abs();
        let (mut lower, mut upper) = (0.0, 0.0);
        let mut add = |probability: f64, part: Bounds| {
            lower += probability * part.lower;
            upper += probability * part.upper;
        };
        let mut missing = self.outer.left_out;
        match &self.rest {
            Rest::Sums(ladder) => {
                let mut steps = (ladder.downwards(), ladder.downwards());
                for (sum, probability) in &self.outer.points {
                    let at = epsilon - sum;
                    add(*probability, Bounds::new(steps.0.down(at + off), steps.1.up(at - off)));
                }
                missing += ladder.left_out();
            }
            Rest::Law(law) => {
                for (sum, probability) in &self.outer.points {
                    add(*probability, profile_near(law, epsilon - sum, off + 2.0 * UNIT * sum.abs()));
                }
            }
        }
        let slack = self.outer.share + (self.outer.points.len() as f64 + 8.0) * UNIT;
        let upper = (upper * (1.0 + slack) + missing).min(1.0);
        Bounds::new((lower * (1.0 - slack)).min(upper), upper)
    }

    /// The probability of sums that are not listed.
    pub(crate) fn left_out(&self) -> f64 {
        self.outer.left_out + if let Rest::Sums(ladder) = &self.rest { ladder.left_out() } else { 0.0 }
    }
}

/// Laws of finitely many values, and the others.
fn apart(laws: &[(Law, u64)]) -> [Vec<(Law, u64)>; 2] {
    let (atomic, rest) = laws.iter().cloned().partition(|(law, _)| law.has_atoms_alone());
    [atomic, rest]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::Terms;

    fn laws(text: &str) -> Vec<(Law, u64)> {
        Terms::of(&text.parse().unwrap()).unwrap().laws
    }

    /// All sums of all values, one after the other.
    fn plainly(laws: &[(Law, u64)], epsilon: f64) -> f64 {
        let mut all = vec![(0.0, 1.0)];
        for (law, count) in laws {
            let atoms = law.atoms().unwrap();
            for _ in 0..*count {
                let each =
                    |(a, p): &(f64, f64)| atoms.iter().map(move |(b, q)| (a + b, p * q)).collect::<Vec<_>>();
                all = all.iter().flat_map(each).collect();
            }
        }
        all.iter().map(|(loss, p)| p * -libm::expm1((epsilon - loss).min(0.0))).sum()
    }

    #[test]
    fn lists_say_what_adding_up_says() {
        for text in [
            "pure(0.3)*3 + randomized_response(epsilon=1.1, categories=7)*2 + unary_encoding(0.7)",
            "subsampled(0.2, randomized_response(epsilon=1, categories=5))*5 + pure(0.17)",
            "subsampled(0.3, approx(1, 0.01))*4 + discrete_laplace(scale=2, sensitivity=3)*2",
            "without_replacement(1, 4, randomized_response(epsilon=1, categories=4))*4",
        ] {
            let laws = laws(text);
            let few = Few::new(&laws, 1e-30).unwrap();
            for epsilon in [-0.5, 0.0, 0.2, 0.7, 1.3] {
                let (found, truth) = (few.delta(epsilon), plainly(&laws, epsilon));
                assert!(
                    found.lower <= truth * (1.0 + 1e-12) && truth <= found.upper * (1.0 + 1e-12),
                    "{text} {epsilon}: {found:?} {truth}"
                );
                assert!(found.upper - found.lower <= 1e-11 * truth, "{text} {epsilon}: {found:?}");
            }
        }
    }

    /// What is cut off is seen, and counted on the right side.
    #[test]
    fn what_is_left_out_is_covered() {
        let mut seen = false;
        for text in [
            "discrete_gaussian(sigma=2)*3 + pure(0.3)",
            "subsampled(0.2, discrete_laplace(scale=1, sensitivity=4))*3",
        ] {
            let laws = laws(text);
            let whole = Few::new(&laws, 1e-40).unwrap().delta(0.4);
            for floor in [1e-3, 1e-6, 1e-9] {
                let cut = Few::new(&laws, floor).unwrap();
                let found = cut.delta(0.4);
                assert!(
                    found.lower <= whole.upper && whole.lower <= found.upper,
                    "{text}: {found:?} {whole:?}"
                );
                assert!(cut.left_out() <= floor, "{text} {floor}: {}", cut.left_out());
                seen |= cut.left_out() > 1e-12;
            }
        }
        assert!(seen);
    }
}
