//! [`Haze`]: losses of finitely many values on no lattice, seen through a little Gaussian noise.
//!
//! **Definition.** The moments of such losses do not fall along a line. Beside Gaussian noise of variance v they do. With A(v)
//! for what δ(ε) is beside that noise, and β = e^(−3v/8) above ½,
//!
//! ```text
//! (2β·A(v) − A(4v))/(2β − 1) ≤ δ(ε) ≤ A(v)
//! ```
//!
//! **Why.** H_E = ∫ (r − E)⁺dQ, and noise replaces E by E·V with E\[V\] = 1 and ln V of variance v: every (r − E)⁺ grows by
//! what an option with variance v is worth beyond its payoff. With x = ln(E/r) that is
//!
//! ```text
//! k(v) = ∫₀^v E·φ(x/√s + √s/2)/(2√s) ds,    k(4v) = 2·∫₀^v E·φ(x/√(4s) + √s)/(2√s) ds ≥ 2β·k(v)
//! ```
//!
//! since −x²/8s − x/2 − s/2 ≥ −x²/2s − x/2 − s/8 − 3s/8. So A(4v) − δ ≥ 2β·(A(v) − δ).
//!
//! **How wide.** A(v) − δ is about v/2 of the second derivative of δ by ln E, c(c + 1)·δ near the saddle c; the bounds are three
//! times that apart. Which v is chosen needs no proof.
//!
//! **Far outputs** are taken for one. On a sample the loss has a heavier tail than an exponential, and outputs that are never
//! seen would decide on all moments. Telling them no longer apart lowers δ by at most their probability, which the upper bound
//! adds.
//!
//! **References.** docs/accounting.md, section 12.

use demur_exact::Rational;

use crate::Bounds;
use crate::inversion::{Care, Line, Sum};
use crate::law::{Atom, Base, Law, Pieces};

/// How far apart the bounds shall be, as a share of the answer.
const WIDTH: f64 = 2e-9;
/// A haze so thick is no good approximation any more.
const THICKEST: f64 = 1e-3;
/// How likely outputs may be that are taken for one, as a share of δ.
const UNSEEN: f64 = 1e-11;
/// The first guess of δ.
const GUESS: f64 = 1e-12;

/// The same losses in a thin haze and in one four times as thick.
pub(crate) struct Haze {
    thin: Line,
    thick: Line,
    /// β, rounded down.
    beta: f64,
    /// The probability of outputs that were taken for one, rounded up.
    unseen: f64,
}

impl Haze {
    /// Whether nothing but atoms is there.
    pub(crate) fn suits(sum: &Sum) -> bool {
        let atoms = |(law, _): &(Law, f64)| law.has_atoms_alone() && !law.is_mirrored();
        sum.mu_squared == 0.0 && sum.terms.iter().all(atoms)
    }

    /// Bounds on δ(ε), once more where it is smaller than was guessed, or where the haze was too thick.
    pub(crate) fn delta_at(sum: &Sum, epsilon: f64) -> Option<Bounds> {
        let mut guess = GUESS;
        for _ in 0..3 {
            let (sum, unseen) = seen(sum, UNSEEN * guess);
            let (tilt, log_delta) = sum.saddle_for_epsilon(epsilon)?;
            let variance = WIDTH / (1.5 * tilt * (tilt + 1.0));
            let by = |share: f64| {
                let haze = Self::new(&sum, unseen, share * variance, tilt, (epsilon, log_delta))?;
                Some(haze.delta(epsilon))
            };
            let found = by(1.0)?;
            if guess <= found.upper {
                return Some(narrowed(found, by));
            }
            guess = found.upper.min(1e-6 * guess).max(f64::MIN_POSITIVE / UNSEEN);
        }
        None
    }

    /// Bounds on the least ε ≥ 0 with δ(ε) ≤ δ, which lies between two doubles.
    pub(crate) fn epsilon_at(sum: &Sum, at_least: f64, at_most: f64) -> Option<Bounds> {
        let (sum, unseen) = seen(sum, UNSEEN * at_least);
        let log_delta = at_least.max(f64::MIN_POSITIVE).ln();
        let (tilt, epsilon) = sum.saddle_for_delta(log_delta)?;
        let variance = WIDTH * epsilon.max(0.0) / (1.5 * (tilt + 1.0));
        let variance = variance.min(THICKEST / (tilt * (tilt + 1.0)));
        let by = |share: f64| {
            Self::new(&sum, unseen, share * variance, tilt, (epsilon, log_delta))?.epsilon(at_least, at_most)
        };
        Some(narrowed(by(1.0)?, by))
    }

    fn new(sum: &Sum, unseen: f64, variance: f64, tilt: f64, near: (f64, f64)) -> Option<Self> {
        if !Self::suits(sum) || !(f64::MIN_POSITIVE..=THICKEST).contains(&variance) {
            return None;
        }
        let hazed = |variance: f64| {
            let sum = Sum { mu_squared: variance, terms: sum.terms.clone() };
            sum.line_at(tilt, near, Care::FAR)
        };
        let beta = libm::exp(-0.375 * variance) * (1.0 - 4.0 * f64::EPSILON);
        Some(Self { thin: hazed(variance)?, thick: hazed(4.0 * variance)?, beta, unseen })
    }

    /// Bounds on δ(ε).
    fn delta(&self, epsilon: f64) -> Bounds {
        let (thin, thick) = (self.thin.delta(epsilon), self.thick.delta(epsilon));
        let upper = (thin.upper + self.unseen) * (1.0 + f64::EPSILON);
        Bounds::new(self.clear(thin, thick).clamp(0.0, thin.upper), upper.min(1.0))
    }

    /// The lower bound, less the rounding of its three operations.
    fn clear(&self, thin: Bounds, thick: Bounds) -> f64 {
        let twice = 2.0 * self.beta;
        (twice * thin.lower - thick.upper) / (twice - 1.0) - 16.0 * f64::EPSILON * thick.upper
    }

    /// Bounds on ε(δ).
    fn epsilon(&self, at_least: f64, at_most: f64) -> Option<Bounds> {
        let less = (at_least - self.unseen) * (1.0 - f64::EPSILON);
        let Bounds { lower: start, upper } = self.thin.epsilon(less, at_most)?;
        let mut step = WIDTH / 8.0 * upper;
        while step < upper {
            let tried = (start - step).max(0.0);
            if self.delta(tried).lower >= at_most {
                return Some(Bounds::new(tried, upper));
            }
            step *= 1.5;
        }
        Some(Bounds::new(0.0, upper))
    }
}

/// What is found in a thinner haze, where atoms near ε make the bounds wide.
fn narrowed(found: Bounds, by: impl Fn(f64) -> Option<Bounds>) -> Bounds {
    let share = (WIDTH / found.relative_width()).powi(2);
    if share > 0.1 {
        return found;
    }
    by(share.max(1e-4)).map_or(found, |thinner| found.and(thinner))
}

/// The losses without far outputs, and how likely these are, which is at most `most`.
fn seen(sum: &Sum, most: f64) -> (Sum, f64) {
    let (mut terms, mut unseen) = (vec![], 0.0);
    let share = most / sum.terms.len().max(1) as f64;
    for (law, count) in &sum.terms {
        let (law, rare) = law.without_far(share / count);
        unseen += rare * count / (1.0 - law.infinite());
        terms.push((law, *count));
    }
    (Sum { mu_squared: sum.mu_squared, terms }, unseen * (1.0 + 1e-9))
}

impl Law {
    /// This with its largest losses taken for one, as long as these are less likely than `most`, and how likely they are.
    fn without_far(&self, most: f64) -> (Self, f64) {
        let Base::Pieces(pieces) = &self.base else { return (self.clone(), 0.0) };
        let mut atoms = pieces.atoms.clone();
        atoms.sort_by(|a, b| a.loss.cmp(&b.loss));
        let weight = |atom: &Atom| match &self.sampling {
            None => atom.probability,
            Some(sampling) => sampling.probability(atom.probability, atom.other),
        };
        let (mut rare, mut probability, mut other, mut kept) = (0.0, 0.0, 0.0, atoms.len());
        for atom in atoms.iter().rev() {
            if kept < 3 || rare + weight(atom) > most {
                break;
            }
            rare += weight(atom);
            probability += atom.probability;
            other += atom.other;
            kept -= 1;
        }
        let loss = Rational::try_from(libm::log(probability / other));
        let (Ok(loss), true) = (loss, other > f64::MIN_POSITIVE) else { return (self.clone(), 0.0) };
        atoms.truncate(kept);
        atoms.push(Atom::new(loss, probability, other));
        let base = Base::Pieces(Pieces { atoms, ..pieces.clone() });
        (Self { base, sampling: self.sampling.clone() }, rare)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::Terms;
    use crate::sums::Few;

    fn sum(loss: &str) -> (Sum, Vec<(Law, u64)>) {
        let terms = Terms::of(&loss.parse().unwrap()).unwrap();
        let counted = terms.laws.iter().map(|(law, count)| (law.clone(), *count as f64));
        (Sum { mu_squared: 0.0, terms: counted.collect() }, terms.laws)
    }

    /// Few enough sums to list them all: both bounds hold, in haze thin and thick, and are as wide as was asked for.
    #[test]
    fn what_is_seen_through_a_haze_is_there() {
        for (loss, epsilons) in [
            ("subsampled(0.1, discrete_gaussian(sigma=1))*5", [0.1, 0.4, 1.3]),
            ("subsampled(0.5, discrete_gaussian(sigma=2))*4", [0.05, 0.5, 1.1]),
            ("subsampled(0.3, randomized_response(epsilon=1, categories=4))*12", [0.11, 0.9, 2.0]),
        ] {
            let (sum, laws) = sum(loss);
            let few = Few::new(&laws, 1e-30).unwrap();
            for epsilon in epsilons {
                let truth = few.delta(epsilon);
                let found = Haze::delta_at(&sum, epsilon).unwrap();
                let name = format!("{loss} at {epsilon}: {found:?} for {truth:?}");
                assert!(found.lower <= truth.upper && truth.lower <= found.upper, "{name}");
                assert!(found.relative_width() < 5e-9, "{name}");
                let (tilt, log_delta) = sum.saddle_for_epsilon(epsilon).unwrap();
                for variance in [1e-4, 1e-6] {
                    let haze =
                        Haze::new(&sum, 0.0, variance / (tilt * tilt), tilt, (epsilon, log_delta)).unwrap();
                    let found = haze.delta(epsilon);
                    assert!(
                        found.lower <= truth.upper && truth.lower <= found.upper,
                        "{name}: {found:?} {variance}"
                    );
                    assert!(
                        found.upper > truth.upper,
                        "{name}: what the haze adds must be seen in {found:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn epsilon_is_where_delta_is() {
        let (sum, laws) = sum("subsampled(0.1, discrete_gaussian(sigma=1))*5");
        let few = Few::new(&laws, 1e-30).unwrap();
        let found = Haze::epsilon_at(&sum, 1e-4, 1e-4).unwrap();
        assert!(few.delta(found.upper).lower <= 1e-4 && few.delta(found.lower).upper >= 1e-4, "{found:?}");
        assert!(found.relative_width() < 1e-8, "{found:?}");
    }

    /// What is taken for one output keeps its two masses, and is no more likely than was allowed.
    #[test]
    fn far_outputs_are_taken_for_one() {
        let (sum, _) = sum("subsampled(0.01, discrete_gaussian(sigma=2))*10");
        let (law, count) = &sum.terms[0];
        let (near, rare) = law.without_far(1e-20);
        let masses = |law: &Law| {
            let Base::Pieces(pieces) = &law.base else { return (0.0, 0.0, 0) };
            let all = pieces.atoms.iter();
            (
                all.clone().map(|atom| atom.probability).sum::<f64>(),
                all.map(|atom| atom.other).sum::<f64>(),
                pieces.atoms.len(),
            )
        };
        let ((p, q, many), (p_near, q_near, few)) = (masses(law), masses(&near));
        assert!((p - p_near).abs() < 1e-15 && (q - q_near).abs() < 1e-15 && few < many - 10);
        assert!(rare <= 1e-20 && rare > 1e-24, "{rare}");
        let (_, unseen) = seen(&sum, 1e-20);
        assert!(unseen <= 1.1e-20 && *count == 10.0, "{unseen}");
    }
}
