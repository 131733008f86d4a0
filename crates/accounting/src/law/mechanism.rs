//! The law of one use of each mechanism, for a group that moves its answer together.
//!
//! docs/accounting.md derives each in its section 3.

use std::collections::HashMap;

use demur_core::PrivacyLoss;
use demur_exact::{Enclosure, Rational, exp_neg};

use super::{Atom, Base, Flat, Pieces};
use crate::AccountingError;

/// The largest loss of a stretch; beyond it a law is replaced by the worst with its ε, which is hardly worse.
pub(super) const LARGEST_FLAT: f64 = 256.0;
/// The most atoms one law may have.
pub(super) const MOST_ATOMS: u64 = 1 << 16;

/// The law of one mechanism for a group.
pub(super) fn base(loss: &PrivacyLoss, group: u64) -> Result<Base, AccountingError> {
    let k = Rational::from(group);
    let pieces = match loss {
        PrivacyLoss::Gaussian { variance, l2_squared } => {
            return Ok(Base::Gaussian { mu_squared: &(l2_squared * &k.square()) / variance });
        }
        PrivacyLoss::Pure { epsilon } | PrivacyLoss::PermuteAndFlip { epsilon } => two_points(epsilon * &k),
        PrivacyLoss::Approximate { epsilon, delta } => approximate(epsilon, delta, group),
        PrivacyLoss::RandomizedResponse { epsilon, categories } => {
            randomized_response(&(epsilon * &k), *categories as f64)
        }
        // Several answers on a sample: the worst with their ε.
        PrivacyLoss::UnaryEncoding { epsilon } if group > 1 => two_points(epsilon * &k),
        PrivacyLoss::UnaryEncoding { epsilon } => unary_encoding(epsilon),
        PrivacyLoss::Exponential { epsilon } => exponential(&(epsilon * &k)),
        PrivacyLoss::Laplace { scale, sensitivity } => laplace(&(&(sensitivity * &k) / scale)),
        PrivacyLoss::TruncatedLaplace { scale, bound, sensitivity } => {
            truncated_laplace(&(bound / scale), &(&(sensitivity * &k) / scale))
        }
        PrivacyLoss::DiscreteLaplace { scale, sensitivity } => {
            let moved = sensitivity * &k;
            match many_steps(&moved) {
                true => two_points(&Rational::from(moved.floor()) / scale),
                false => discrete_laplace(scale, whole(&moved, "discrete_laplace")?),
            }
        }
        PrivacyLoss::TruncatedDiscreteLaplace { scale, bound, sensitivity } if many_steps(bound) => {
            widely_truncated(scale, bound, &(sensitivity * &k))
        }
        PrivacyLoss::TruncatedDiscreteLaplace { scale, bound, sensitivity } => {
            let shift = whole(&(sensitivity * &k), "truncated_discrete_laplace")?;
            truncated_discrete_laplace(scale, whole(bound, "truncated_discrete_laplace")?, shift)
        }
        PrivacyLoss::DiscreteGaussian { variance, l2_squared, dimensions } => {
            return discrete_gaussian(variance, &(l2_squared * &k.square()), *dimensions);
        }
        _ => {
            return Err(AccountingError::new(
                "accounting.unknown-loss",
                format!("there is no law for {loss} yet"),
            ));
        }
    };
    Ok(Base::Pieces(pieces))
}

/// Whether an answer moves so far that its law is replaced by the worst with its ε.
pub(super) fn many_steps(moved: &Rational) -> bool {
    *moved >= Rational::from(MOST_ATOMS)
}

/// A whole number of steps, rounded down: whole-number answers move by whole numbers.
fn whole(value: &Rational, mechanism: &str) -> Result<u64, AccountingError> {
    u64::try_from(value.floor()).ok().filter(|&steps| steps < MOST_ATOMS).ok_or_else(|| {
        AccountingError::new(
            "accounting.steps",
            format!("{mechanism} can be accounted for up to {MOST_ATOMS} steps of the lattice, but {value} was given"),
        )
    })
}

fn atom(loss: Rational, probability: f64) -> (Rational, f64) {
    (loss, probability)
}

/// Atoms from their losses and P. What Q has at a loss, P has at the opposite one.
fn atoms(atoms: Vec<(Rational, f64)>) -> Pieces {
    let known: HashMap<Rational, f64> = atoms.iter().cloned().collect();
    let other = |loss: &Rational, p: f64| {
        known.get(&negative(loss)).copied().unwrap_or_else(|| p * libm::exp(-loss.to_f64()))
    };
    let all = atoms.iter().map(|(loss, p)| Atom::new(loss.clone(), *p, other(loss, *p)));
    Pieces {
        atoms: all.filter(|atom| atom.probability > 0.0 || atom.other > 0.0).collect(),
        ..Pieces::default()
    }
}

fn negative(value: &Rational) -> Rational {
    &Rational::zero() - value
}

/// ±ε: the worst that is ε-private.
fn two_points(epsilon: Rational) -> Pieces {
    let odds = libm::exp(-epsilon.to_f64());
    let low = negative(&epsilon);
    atoms(vec![atom(epsilon, 1.0 / (1.0 + odds)), atom(low, odds / (1.0 + odds))])
}

/// The worst that is (ε, δ)-private, and of a group.
fn approximate(epsilon: &Rational, delta: &Rational, group: u64) -> Pieces {
    let e = epsilon.to_f64();
    let k = group as f64;
    let copies = if e == 0.0 || group == 1 { k } else { libm::expm1(k * e) / libm::expm1(e) };
    let infinite = (delta.to_f64() * copies).min(1.0);
    let mut pieces = two_points(epsilon * &Rational::from(group));
    for atom in &mut pieces.atoms {
        atom.probability *= 1.0 - infinite;
        atom.other *= 1.0 - infinite;
    }
    pieces.infinite = infinite;
    pieces.infinite_at_most = (group == 1).then(|| delta.clone());
    pieces
}

fn randomized_response(epsilon: &Rational, categories: f64) -> Pieces {
    let odds = libm::exp(-epsilon.to_f64());
    let total = 1.0 + (categories - 1.0) * odds;
    atoms(vec![
        atom(epsilon.clone(), 1.0 / total),
        atom(Rational::zero(), (categories - 2.0) * odds / total),
        atom(negative(epsilon), odds / total),
    ])
}

fn unary_encoding(epsilon: &Rational) -> Pieces {
    let odds = libm::exp(-epsilon.to_f64());
    let half = 0.5 / (1.0 + odds);
    atoms(vec![
        atom(epsilon.clone(), half),
        atom(Rational::zero(), 0.5),
        atom(negative(epsilon), odds * half),
    ])
}

/// The worst of bounded range ε: √(dP·dQ) is flat on [−ε, ε].
fn exponential(epsilon: &Rational) -> Pieces {
    let e = epsilon.to_f64();
    if e == 0.0 {
        return Pieces::default();
    }
    if e > LARGEST_FLAT {
        return two_points(epsilon.clone());
    }
    let flat = Flat { low: -e, high: e, density: 0.25 / libm::sinh(e / 2.0) };
    Pieces { flats: vec![flat], ..Pieces::default() }
}

fn laplace(epsilon: &Rational) -> Pieces {
    let e = epsilon.to_f64();
    if e > LARGEST_FLAT {
        return two_points(epsilon.clone());
    }
    let mut pieces = atoms(vec![atom(epsilon.clone(), 0.5), atom(negative(epsilon), 0.5 * libm::exp(-e))]);
    pieces.flats.push(Flat { low: -e, high: e, density: 0.25 * libm::exp(-e / 2.0) });
    pieces
}

/// Laplace noise of scale 1 within ±bound, for an answer that moves by `shift`.
fn truncated_laplace(exact_bound: &Rational, shift: &Rational) -> Pieces {
    let (bound, d) = (exact_bound.to_f64(), shift.to_f64());
    let whole = -2.0 * libm::expm1(-bound);
    if d >= 2.0 * bound {
        return Pieces { infinite: 1.0, ..Pieces::default() };
    }
    if d > LARGEST_FLAT {
        // Whatever it is, it is (d, δ)-private with the δ of the outputs that are possible on one side only.
        let outside = (libm::exp(d - bound) * -libm::expm1(-d) / whole).min(1.0);
        let outside = if d > bound || outside.is_nan() { 1.0 } else { outside.max(f64::MIN_POSITIVE) };
        return approximate(shift, &Rational::try_from(outside).unwrap_or_else(|_| Rational::one()), 1);
    }
    let density = 0.5 * libm::exp(-d / 2.0) / whole;
    if d > bound {
        let end = 2.0 * bound - d;
        let finite = libm::exp(-(d - bound)) * -libm::expm1(-end) / whole;
        return Pieces {
            flats: vec![Flat { low: -end, high: end, density }],
            infinite: 1.0 - finite,
            ..Pieces::default()
        };
    }
    let high = -libm::expm1(d - bound) / whole;
    let low = libm::exp(-d) * -libm::expm1(d - bound) / whole;
    let mut pieces = atoms(vec![atom(shift.clone(), high), atom(negative(shift), low)]);
    pieces.flats.push(Flat { low: -d, high: d, density });
    let outside = outside(exact_bound, shift);
    pieces.infinite = outside.to_f64();
    pieces.infinite_at_most = Some(outside);
    pieces
}

/// P[L = ∞] = e^(−B)(e^d − 1)/(2(1 − e^(−B))) of Laplace noise within ±B for a move of d ≤ B, rounded up in the 38th digit or so.
///
/// A bound that was made for a δ meets it in the 15th digit, and whether it does decides if any ε is large enough.
fn outside(bound: &Rational, shift: &Rational) -> Rational {
    let bits = 160 + 2 * (bound - shift).to_f64().max(0.0) as usize;
    let (near, far) = (exp_neg(&(bound - shift), bits), exp_neg(bound, bits));
    let half = Enclosure::integer(1, bits).sub(&far);
    let outside = near.sub(&far).div(&half.add(&half));
    Rational::dyadic(outside.upper().clone(), -(bits as i64)).min(Rational::one())
}

fn discrete_laplace(scale: &Rational, shift: u64) -> Pieces {
    let t = libm::exp(-scale.recip().to_f64());
    let loss = |x: u64| &Rational::new(i128::from(shift) - 2 * i128::from(x), 1) / scale;
    let inside = (1..shift).map(|x| {
        let steps = (&Rational::from(x) / scale).to_f64();
        let mass = -libm::expm1(-scale.recip().to_f64()) / (1.0 + t);
        atom(loss(x), mass * libm::exp(-steps))
    });
    let mut all = vec![atom(loss(0), 1.0 / (1.0 + t))];
    all.extend(inside);
    if shift > 0 {
        all.push(atom(loss(shift), libm::exp(-(&Rational::from(shift) / scale).to_f64()) / (1.0 + t)));
    } else {
        all = vec![atom(Rational::zero(), 1.0)];
    }
    atoms(all)
}

fn truncated_discrete_laplace(scale: &Rational, bound: u64, shift: u64) -> Pieces {
    if shift > 2 * bound {
        return Pieces { infinite: 1.0, ..Pieces::default() };
    }
    let weight = |x: i64| libm::exp(-(&Rational::from(x.unsigned_abs()) / scale).to_f64());
    let (bound, shift) = (bound as i64, shift as i64);
    let whole = careful_sum((-bound..=bound).map(weight));
    let mut pieces = Pieces::default();
    let mut by_loss: std::collections::BTreeMap<i64, f64> = Default::default();
    for x in -bound..=bound {
        let probability = weight(x) / whole;
        if x - shift < -bound {
            pieces.infinite += probability;
        } else {
            *by_loss.entry((x - shift).abs() - x.abs()).or_default() += probability;
        }
    }
    let exact = |steps: i64| &Rational::new(i128::from(steps), 1) / scale;
    let all = by_loss.into_iter().map(|(steps, probability)| atom(exact(steps), probability));
    pieces.atoms = atoms(all.collect()).atoms;
    pieces
}

/// The same with a bound of many steps: the worst that has its ε = Δ/t and the probability δ of its outermost
/// Δ values, r^(τ+1)·(e^ε − 1)/(1 + r − 2r^(τ+1)). An answer that moves by 1 has no other law.
fn widely_truncated(scale: &Rational, bound: &Rational, moved: &Rational) -> Pieces {
    let shift = Rational::from(moved.floor());
    let (tau, t) = (Rational::from(bound.floor()).to_f64(), scale.recip().to_f64());
    let outermost = libm::exp(-(tau + 1.0) * t);
    let outside =
        outermost * libm::expm1((&shift / scale).to_f64()) / (1.0 + libm::exp(-t) - 2.0 * outermost);
    if shift > *bound || outside.is_nan() || outside >= 1.0 {
        return Pieces { infinite: 1.0, ..Pieces::default() };
    }
    let outside = Rational::try_from(outside * (1.0 + 1e-12)).unwrap_or_else(|_| Rational::one());
    approximate(&(&shift / scale), &outside, 1)
}

/// A sum that is off by a unit or two however many terms it has.
fn careful_sum(terms: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0);
    for term in terms {
        let next = sum + term;
        lost += if sum.abs() >= term.abs() { (sum - next) + term } else { (term - next) + sum };
        sum = next;
    }
    sum + lost
}

/// Beyond this many steps discrete Gaussian noise has less probability than any double.
pub(super) fn discrete_reach(variance: &Rational) -> f64 {
    (2.0 * variance.to_f64() * 760.0).sqrt().ceil() + 2.0
}

/// One whole number by its own law; more of them, or one of large variance, by the continuous law of
/// variance v − 9/4, of which they are a rounding up to a share of 2·10⁻¹⁸ per coordinate.
fn discrete_gaussian(
    variance: &Rational,
    l2_squared: &Rational,
    dimensions: u64,
) -> Result<Base, AccountingError> {
    let reach = discrete_reach(variance) as i64;
    let shift = l2_squared.to_f64_down().sqrt().floor();
    if dimensions == 1 && reach < MOST_ATOMS as i64 && shift < MOST_ATOMS as f64 {
        let weight = |x: i64| {
            libm::exp(
                -(&Rational::from(x.unsigned_abs()).square() / &(variance * &Rational::from(2u32))).to_f64(),
            )
        };
        let whole = careful_sum((-reach..=reach).map(weight));
        let shift = Rational::from(shift as u64);
        let half = &shift.square() / &(variance * &Rational::from(2u32));
        let all = (-reach..=reach).map(|x| {
            let moved = &(&Rational::new(i128::from(x), 1) * &shift) / variance;
            atom(&half - &moved, weight(x) / whole)
        });
        return Ok(Base::Pieces(atoms(all.collect())));
    }
    let smoothed = variance - &Rational::new(9, 4);
    if smoothed <= Rational::zero() {
        return Err(AccountingError::new(
            "accounting.discrete-gaussian",
            format!(
                "discrete Gaussian noise on several numbers needs a variance above 9/4, but {variance} was given"
            ),
        ));
    }
    Ok(Base::Gaussian { mu_squared: l2_squared / &smoothed })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn q(text: &str) -> Rational {
        text.parse().unwrap()
    }

    /// An answer that moves by 1 has the same law whichever way it is written.
    #[test]
    fn a_wide_bound_changes_nothing_for_an_answer_that_moves_by_one() {
        for (scale, bound) in [("3", 40), ("1/2", 9), ("250", 3000)] {
            let summed = truncated_discrete_laplace(&q(scale), bound, 1);
            let formula = widely_truncated(&q(scale), &Rational::from(bound), &Rational::one());
            assert!((formula.infinite / summed.infinite - 1.0).abs() < 1e-10, "{scale}");
            assert!(formula.infinite >= summed.infinite);
            let top = |pieces: &Pieces| pieces.atoms.iter().map(|atom| atom.probability).fold(0.0, f64::max);
            assert!((top(&summed) - top(&formula)).abs() < 1e-10, "{scale}");
        }
        assert_eq!(widely_truncated(&q("3"), &q("70000"), &q("70001")).infinite, 1.0);
    }

    #[test]
    fn answers_that_move_far_are_the_worst_with_their_epsilon() {
        let loss = PrivacyLoss::DiscreteLaplace { scale: q("1e6"), sensitivity: q("500000") };
        let account = crate::Account::of(&loss.repeat(3)).unwrap();
        assert_eq!(account.epsilon(&Rational::zero()).unwrap().bounds.upper, 1.5);
        let worst = crate::Account::of(&"pure(0.5)*3".parse().unwrap()).unwrap();
        let delta = |account: &crate::Account| account.delta(&q("1.2")).unwrap().bounds.upper;
        assert_eq!(delta(&account), delta(&worst));
        assert_eq!(account.delta(&q("1.2")).unwrap().bounds.lower, 0.0);
    }
}
