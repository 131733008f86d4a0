//! A δ that is almost 1, from how little P and Q overlap.
//!
//! **Statement.** δ(ε) ≥ 1 − e^(ε/2)·∏ρᵢ^nᵢ, with ρ = ∫ √(dP·dQ) of one use.
//!
//! **Why.** 1 − δ(ε) = E_P\[min(1, e^(ε − L))\] ≤ E_P\[e^((ε − L)/2)\], since min(1, x) ≤ √x, and E_P\[e^(−L/2)\] is ρ; an infinite
//! loss adds nothing to either.
//!
//! **What for.** Long compositions at a small ε: they hide nothing, and to say so in every digit needs no integral.

use crate::Bounds;
use crate::account::Question;
use crate::law::{Base, Direction, Law};
use crate::way::Way;

/// How near to 1 a δ must be.
const NEARLY: f64 = 1e-10;
/// By how much ln ρ of one use may be off.
const ROUNDING: f64 = 1e-13;

/// δ(ε), where this shows that it is 1 but for ten digits.
pub(crate) fn nearly_one(way: &Way, question: Question<'_>) -> Option<Bounds> {
    let Question::Delta { epsilon } = question else { return None };
    way.must_have_laws().ok()?;
    let each = |(law, count): &(Law, u64)| Some(*count as f64 * (log_overlap(law)? + ROUNDING));
    let log = way.terms.laws.iter().map(each).sum::<Option<f64>>()? + epsilon.to_f64_up() / 2.0;
    let hidden = libm::exp(log) * (1.0 + 1e-9) + f64::EPSILON;
    (hidden < NEARLY).then(|| Bounds::new(1.0 - hidden, 1.0))
}

/// ln ρ, where it has a formula.
fn log_overlap(law: &Law) -> Option<f64> {
    let pieces = match (&law.base, &law.sampling) {
        (Base::Gaussian { mu_squared }, None) => return Some(-mu_squared.to_f64() / 8.0 * (1.0 - 1e-14)),
        (Base::Gaussian { .. }, Some(_)) => return None,
        (Base::Pieces(pieces), _) => pieces,
    };
    let atoms = pieces.atoms.iter();
    let whole: f64 = match &law.sampling {
        // √(dP·dQ) is the density of a stretch
        None => {
            let flats = pieces.flats.iter().map(|flat| flat.density * (flat.high - flat.low));
            atoms.map(|atom| (atom.probability * atom.other).sqrt()).sum::<f64>() + flats.sum::<f64>()
        }
        Some(sampling) if pieces.flats.is_empty() && sampling.direction != Direction::Replace => {
            let mixed = |p: f64, q: f64| (((1.0 - sampling.rate) * q + sampling.rate * p) * q).sqrt();
            atoms.map(|atom| mixed(atom.probability, atom.other)).sum::<f64>() + mixed(0.0, pieces.infinite)
        }
        Some(_) => return None,
    };
    Some(whole.ln())
}

#[cfg(test)]
mod tests {
    use crate::Account;

    /// What is nearly certain is known at once, and agrees with what is computed where that can be had.
    #[test]
    fn what_hides_nothing_is_known_to_hide_nothing() {
        for (loss, epsilon) in [
            ("pure(1)*1000000000", "10"),
            ("exponential(1)*1000000", "0.5"),
            ("laplace(scale=1)*1000", "1"),
            ("subsampled(0.5, discrete_gaussian(sigma=1))*10000", "0.1"),
            ("gaussian(sigma=1)*1000", "2"),
            ("approx(0.1, 1e-5)*1000000 + randomized_response(epsilon=1, categories=5)*1000", "3"),
        ] {
            let found = super::nearly_one(
                Account::of(&loss.parse().unwrap()).unwrap().first(),
                crate::account::Question::Delta { epsilon: &epsilon.parse().unwrap() },
            );
            let found = found.unwrap();
            assert!(found.lower >= 1.0 - 1e-10 && found.upper == 1.0, "{loss}: {found:?}");
        }
    }

    /// Just where it begins to speak, the truth is above what it says.
    #[test]
    fn the_bound_is_below_the_truth() {
        for (loss, epsilon) in
            [("pure(1)*250", "1"), ("gaussian(sigma=1)*200", "0.5"), ("laplace(scale=1)*330", "1")]
        {
            let account = Account::of(&loss.parse().unwrap()).unwrap();
            let question = crate::account::Question::Delta { epsilon: &epsilon.parse().unwrap() };
            let overlap = super::nearly_one(account.first(), question).unwrap();
            let exact = account.first().delta(account.first().choice().0, &epsilon.parse().unwrap()).unwrap();
            assert!(overlap.lower <= exact.upper, "{loss}: {overlap:?} {exact:?}");
        }
    }
}
