//! What a loss is worth in one number: ρ of zero-concentrated privacy, μ of Gaussian privacy.
//!
//! **Statement.** Gaussian noise of variance σ² on an answer of ℓ2 sensitivity Δ has ρ = Δ²/2σ² and
//! μ = Δ/σ; so has discrete Gaussian noise for ρ. Anything ε-private has ρ = ε²/2, the exponential
//! mechanism ρ = ε²/8. Losses in composition add up in ρ and in μ²; a group of k people has k²ρ
//! and kμ. A sample never costs more than everybody.
//!
//! **References.** \[Bun2016\].

use demur_core::PrivacyLoss;
use demur_exact::Rational;

/// ρ with which the loss is ρ-zero-concentrated private; `None` when no finite one is known.
///
/// ```
/// use demur_accounting::worth;
/// let rho = worth::rho(&"gaussian(sigma=5)*100 + pure(0.1)".parse()?);
/// assert_eq!(rho, Some("2.005".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn rho(loss: &PrivacyLoss) -> Option<Rational> {
    let half = Rational::new(1, 2);
    match loss {
        PrivacyLoss::ZeroConcentrated { rho } => Some(rho.clone()),
        PrivacyLoss::Gaussian { variance, l2_squared }
        | PrivacyLoss::DiscreteGaussian { variance, l2_squared, .. } => {
            Some(&half * &(l2_squared / variance))
        }
        PrivacyLoss::Exponential { epsilon } => Some(&epsilon.square() * &Rational::new(1, 8)),
        PrivacyLoss::Subsampled { inner, .. } => rho(inner),
        PrivacyLoss::Group { size, inner } => Some(&Rational::from(*size).square() * &rho(inner)?),
        PrivacyLoss::Composed { .. } => sum(loss, rho),
        _ => Some(&half * &loss.pure_epsilon()?.square()),
    }
}

/// μ, rounded up, with which the loss is μ-Gaussian private; `None` when it is not made of Gaussian noise.
///
/// ```
/// use demur_accounting::worth;
/// assert_eq!(worth::mu(&"gaussian(sigma=5)*100".parse()?), Some(2.0));
/// assert_eq!(worth::mu(&"zcdp(1)".parse()?), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn mu(loss: &PrivacyLoss) -> Option<f64> {
    let squared = mu_squared(loss)?;
    let root = f64::sqrt(squared.to_f64());
    let enough = Rational::try_from(root).is_ok_and(|root| root.square() >= squared);
    Some(if enough { root } else { root.next_up() })
}

fn mu_squared(loss: &PrivacyLoss) -> Option<Rational> {
    match loss {
        PrivacyLoss::Gaussian { variance, l2_squared } => Some(l2_squared / variance),
        PrivacyLoss::Subsampled { inner, .. } => mu_squared(inner),
        PrivacyLoss::Group { size, inner } => Some(&Rational::from(*size).square() * &mu_squared(inner)?),
        PrivacyLoss::Composed { .. } => sum(loss, mu_squared),
        _ => None,
    }
}

fn sum(loss: &PrivacyLoss, worth: fn(&PrivacyLoss) -> Option<Rational>) -> Option<Rational> {
    let PrivacyLoss::Composed { parts } = loss else { return None };
    parts.iter().try_fold(Rational::zero(), |sum, part| {
        Some(&sum + &(&Rational::from(part.count) * &worth(&part.loss)?))
    })
}
