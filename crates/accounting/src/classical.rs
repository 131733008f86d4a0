//! The classical composition theorems, to compare with and to check against.
//!
//! | method | what it knows of a loss | guarantee |
//! |---|---|---|
//! | basic | ε, δ | (Σε, Σδ) |
//! | advanced | ε, δ | ε′ = √(2·ln(1/δ′)·Σε²) + Σε(e^ε − 1), at δ′ + Σδ |
//! | optimal | ε, δ | exactly what the worst (ε, δ)-private mechanisms compose to |
//! | zcdp | ρ | Σρ, converted as in [`renyi`] |
//! | gaussian | μ, δ | μ² = Σμ², at the Gaussian δ(ε) + Σδ |
//!
//! A pure ε counts as ρ = ε²/2, one of bounded range as ρ = ε²/8, and as μ = 2Φ⁻¹(e^ε/(1 + e^ε)). Loss
//! on a sample counts as ln(1 + q(e^ε − 1)) where it is pure, and as without sampling otherwise.
//!
//! **References.** \[DworkRoth2014\] Theorem 3.20, \[Kairouz2017\], \[Murtagh2016\], \[BunSteinke2016\],
//! \[Dong2022\].

use demur_exact::{Rational, gaussian_sigma};

use crate::account::{Account, Question};
use crate::law::{Atom, Base, Law, Pieces, Terms, profile};
use crate::solve::least_epsilon;
use crate::way::Way;
use crate::{AccountingError, Bounds, Method, renyi};

/// δ(ε) or ε(δ) by a classical theorem. Lower bounds are 0: these are no exact values.
pub(crate) fn bounds(way: &Way, method: Method, question: Question<'_>) -> Result<Bounds, AccountingError> {
    let upper = match method {
        Method::Basic => basic(way, question)?,
        Method::Advanced => advanced(way, question)?,
        Method::Optimal => Account::of_terms(worst(way)?).bounds_of_best(question)?.upper,
        Method::ZeroConcentrated => {
            let way = Way::new(concentrated(way)?);
            return Ok(Bounds::new(0.0, renyi::bounds(&way, question)?.upper));
        }
        _ => gaussian(way, question)?,
    };
    Ok(Bounds::new(0.0, upper))
}

fn not_pure(method: Method) -> AccountingError {
    AccountingError::new(
        "accounting.not-pure",
        format!("{method} composition needs losses with an ε of their own, but some loss here is unbounded"),
    )
}

/// ε, δ and count of each loss.
fn pairs(way: &Way, method: Method) -> Result<Vec<(f64, f64, f64)>, AccountingError> {
    if way.terms.rho > Rational::zero() || !way.terms.curves.is_empty() {
        return Err(not_pure(method));
    }
    let pair = |(law, count): &(Law, u64)| Some((law.top()? * (1.0 + 1e-14), law.infinite(), *count as f64));
    way.terms.laws.iter().map(|term| pair(term).ok_or_else(|| not_pure(method))).collect()
}

fn basic(way: &Way, question: Question<'_>) -> Result<f64, AccountingError> {
    let pairs = pairs(way, Method::Basic)?;
    let epsilon: f64 = pairs.iter().map(|(epsilon, _, count)| epsilon * count).sum::<f64>() * (1.0 + 1e-14);
    let delta: f64 = pairs.iter().map(|(_, delta, count)| delta * count).sum::<f64>() * (1.0 + 1e-14);
    let exact = way.exact_top();
    let reached =
        |asked: &Rational| exact.as_ref().map_or(asked.to_f64_down() >= epsilon, |top| asked >= top);
    match question {
        Question::Delta { epsilon: asked } => Ok(if reached(asked) { delta.min(1.0) } else { 1.0 }),
        Question::Epsilon { delta: asked } if covers(way, asked, delta) => Ok(epsilon),
        Question::Epsilon { .. } => Err(too_small(delta)),
    }
}

/// Whether δ is at least Σδ, exactly where that is known.
fn covers(way: &Way, asked: &Rational, rounded: f64) -> bool {
    let exact = way.terms.laws.iter().try_fold(Rational::zero(), |sum, (law, count)| {
        let pieces = law.pieces()?;
        let one = if pieces.infinite == 0.0 { Rational::zero() } else { pieces.infinite_at_most.clone()? };
        Some(&sum + &(&one * &Rational::from(*count)))
    });
    exact.map_or(asked.to_f64_down() >= rounded, |exact| *asked >= exact)
}

fn too_small(delta: f64) -> AccountingError {
    AccountingError::new(
        "accounting.infinite",
        format!("the δ of the losses alone add up to {delta}: ask for a larger δ"),
    )
}

fn advanced(way: &Way, question: Question<'_>) -> Result<f64, AccountingError> {
    let pairs = pairs(way, Method::Advanced)?;
    let squares: f64 = pairs.iter().map(|(e, _, count)| e * e * count).sum();
    let drift: f64 = pairs.iter().map(|(e, _, count)| e * libm::expm1(*e) * count).sum();
    let own: f64 = pairs.iter().map(|(_, delta, count)| delta * count).sum();
    let slack = 1.0 + 1e-13;
    match question {
        Question::Delta { epsilon } => {
            let above = epsilon.to_f64_down() - drift * slack;
            let rest = if above > 0.0 { (-above * above / (2.0 * squares)).exp() } else { 1.0 };
            Ok(((own + rest) * slack).min(1.0))
        }
        Question::Epsilon { delta } => {
            let rest = delta.to_f64_down() - own * slack;
            if rest <= 0.0 {
                Err(too_small(own))
            } else {
                Ok(((-2.0 * rest.ln() * squares).sqrt() + drift) * slack)
            }
        }
    }
}

/// Every loss as the worst with its ε and δ.
fn worst(way: &Way) -> Result<Terms, AccountingError> {
    let mut laws = vec![];
    for (epsilon, delta, count) in pairs(way, Method::Optimal)? {
        let loss = Rational::try_from(epsilon / (1.0 + 1e-14)).unwrap_or_else(|_| Rational::zero());
        let odds = libm::exp(-epsilon);
        let high = (1.0 - delta) / (1.0 + odds);
        let atoms = vec![
            Atom::new(loss.clone(), high, high * odds),
            Atom::new(&Rational::zero() - &loss, high * odds, high),
        ];
        let pieces = Pieces { atoms, infinite: delta, ..Pieces::default() };
        laws.push((Law { base: Base::Pieces(pieces), sampling: None }, count as u64));
    }
    Ok(Terms { laws, rho: Rational::zero(), curves: vec![], tight: true })
}

/// Σρ, and the δ of losses that have one.
fn concentrated(way: &Way) -> Result<Terms, AccountingError> {
    let mut terms =
        Terms { laws: vec![], rho: way.terms.rho.clone(), curves: way.terms.curves.clone(), tight: false };
    for (law, count) in &way.terms.laws {
        let rho = match &law.base {
            Base::Gaussian { mu_squared } => mu_squared / &Rational::from(2u32),
            Base::Pieces(pieces) => {
                let top = Rational::try_from(law.top().unwrap_or(f64::INFINITY) * (1.0 + 1e-14))
                    .map_err(|_| not_pure(Method::ZeroConcentrated))?;
                let bounded_range =
                    pieces.atoms.is_empty() && pieces.infinite == 0.0 && law.sampling.is_none();
                &top.square() / &Rational::from(if bounded_range { 8u32 } else { 2 })
            }
        };
        terms.rho = &terms.rho + &(&rho * &Rational::from(*count));
        if law.infinite() > 0.0 {
            let kept = 1.0 - law.infinite();
            let atoms = vec![Atom::new(Rational::zero(), kept, kept)];
            let pieces = Pieces { atoms, infinite: law.infinite(), ..Pieces::default() };
            terms.laws.push((Law { base: Base::Pieces(pieces), sampling: None }, *count));
        }
    }
    Ok(terms)
}

fn gaussian(way: &Way, question: Question<'_>) -> Result<f64, AccountingError> {
    if way.terms.rho > Rational::zero() || !way.terms.curves.is_empty() {
        return Err(AccountingError::new(
            "accounting.not-gaussian",
            "a loss known only by Rényi divergences has no μ of its own",
        ));
    }
    let (mut mu_squared, mut own) = (0.0, 0.0);
    for (law, count) in &way.terms.laws {
        let one = match &law.base {
            Base::Gaussian { mu_squared } => mu_squared.to_f64_up(),
            Base::Pieces(_) => mu_of_pure(law.top().unwrap_or(f64::INFINITY)).powi(2),
        };
        mu_squared += one * *count as f64;
        own += law.infinite() * *count as f64;
    }
    let mu_squared =
        Rational::try_from(mu_squared * (1.0 + 1e-13)).map_err(|_| not_pure(Method::Gaussian))?;
    let law = Law { base: Base::Gaussian { mu_squared: mu_squared.clone() }, sampling: None };
    let shape = |epsilon: &Rational| {
        let Bounds { lower, upper } = profile(&law, epsilon);
        Bounds::new(lower + own, (upper + own) * (1.0 + 1e-14))
    };
    match question {
        Question::Delta { epsilon } => Ok(shape(epsilon).upper.min(1.0)),
        Question::Epsilon { delta } => {
            let guess = mu_squared.to_f64() / 2.0 + 5.0 * mu_squared.to_f64().sqrt();
            least_epsilon(shape, delta, guess, 1e9).map(|found| found.upper).ok_or_else(|| too_small(own))
        }
    }
}

/// The least μ such that everything ε-private is μ-Gaussian private, rounded up.
pub(crate) fn mu_of_pure(epsilon: f64) -> f64 {
    // Gaussian noise with μ has δ(0) = 2Φ(μ/2) − 1, and the worst ε-private mechanism tanh(ε/2).
    let delta = Rational::try_from(libm::tanh(epsilon / 2.0) * (1.0 + 4.0 * f64::EPSILON));
    match delta {
        Ok(delta) if delta.is_zero() => 0.0,
        Ok(delta) if delta < Rational::one() => {
            gaussian_sigma(&Rational::zero(), &delta).recip() * (1.0 + 1e-12)
        }
        _ => f64::INFINITY,
    }
}
