//! [`Kernel`]: the few kinds of loss a filter has prices for, and how every loss is made of them.
//!
//! **Definition.** A [`PrivacyLoss`] becomes [`Term`]s: kernels, each with how often it is paid.
//!
//! * *Composition* is flattened and counts are multiplied.
//! * *Groups* of k are pushed down to single mechanisms: sensitivities, ε and √ρ grow by the factor k, and δ by
//!   (e^(kε) − 1)/(e^ε − 1). The composition for a group is the composition of what its parts cost the group.
//! * *Samples.* A term on a Poisson sample carries its price without the sample, which is always valid, and,
//!   where there is a formula, a second kernel to be used if it is cheaper: ln(1 + q(e^ε − 1)) and q·δ for what is
//!   (ε, δ)-private, and the sampled Gaussian. The sample of a group of k has one of them with probability
//!   1 − (1 − q)^k. A group *inside* a sample is priced without the sample.
//! * *Truncated noise* is taken as (ε, δ): the ratio of densities where both neighbours have one, and the mass
//!   where only one has.
//!
//! **Why** each step is valid is proved in `docs/accounting-filters.md`, section 7.

use demur_core::PrivacyLoss;
use demur_exact::Rational;

use super::bound;

/// A loss that filters have prices for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kernel {
    /// ε-private.
    Pure { epsilon: Rational },
    /// ε-private by Laplace noise; discrete noise has a step, 1/scale.
    Laplace { epsilon: Rational, step: Option<Rational> },
    /// The logarithm of the ratio of probabilities lies in an interval of length ε.
    BoundedRange { epsilon: Rational },
    /// (ε, δ)-private.
    Approximate { epsilon: Rational, delta: Rational },
    /// ρ-zero-concentrated.
    Concentrated { rho: Rational },
    /// μ-Gaussian private.
    Gaussian { mu_squared: Rational },
    /// Discrete Gaussian noise in several coordinates.
    DiscreteGaussian { variance: Rational, l2_squared: Rational, dimensions: u64 },
    /// Gaussian noise on a Poisson sample.
    SampledGaussian { rate: f64, mu_squared: f64 },
    /// Anything on a Poisson sample: its terms without the sample, and one kernel that may be cheaper.
    Sampled { whole: Vec<Term>, instead: Option<Box<Kernel>> },
}

/// A kernel and how often it is paid.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Term {
    pub(super) kernel: Kernel,
    pub(super) count: Rational,
}

/// The terms of a loss that was checked; the error is the part that has none.
pub(super) fn terms(loss: &PrivacyLoss) -> Result<Vec<Term>, &PrivacyLoss> {
    let mut found = Vec::new();
    collect(loss, &Rational::one(), &Rational::one(), &mut found)?;
    Ok(found)
}

fn collect<'a>(
    loss: &'a PrivacyLoss,
    size: &Rational,
    count: &Rational,
    found: &mut Vec<Term>,
) -> Result<(), &'a PrivacyLoss> {
    match loss {
        PrivacyLoss::Composed { parts } => {
            for part in parts.iter().filter(|part| part.count > 0) {
                collect(&part.loss, size, &(count * &Rational::from(part.count)), found)?;
            }
        }
        PrivacyLoss::Group { size: more, inner } => {
            collect(inner, &(size * &Rational::from(*more)), count, found)?;
        }
        PrivacyLoss::Subsampled { rate, inner } => sample(rate, inner, size, count, found)?,
        // For several people at once there is no formula.
        PrivacyLoss::Threshold { delta, inner } if *size == Rational::one() => {
            collect(inner, size, count, found)?;
            let kernel = approximate(&Rational::zero(), delta, size);
            if !is_nothing(&kernel) {
                found.push(Term { kernel, count: count.clone() });
            }
        }
        single => {
            let kernel = kernel(single, size).ok_or(single)?;
            if !is_nothing(&kernel) {
                found.push(Term { kernel, count: count.clone() });
            }
        }
    }
    Ok(())
}

/// The kernel of a single mechanism for a group.
fn kernel(loss: &PrivacyLoss, size: &Rational) -> Option<Kernel> {
    let grown = |amount: &Rational| if *size == Rational::one() { amount.clone() } else { amount * size };
    let squared = |amount: &Rational| grown(&grown(amount));
    Some(match loss {
        PrivacyLoss::Pure { epsilon }
        | PrivacyLoss::RandomizedResponse { epsilon, .. }
        | PrivacyLoss::UnaryEncoding { epsilon }
        | PrivacyLoss::PermuteAndFlip { epsilon } => Kernel::Pure { epsilon: grown(epsilon) },
        PrivacyLoss::Laplace { scale, sensitivity } => {
            Kernel::Laplace { epsilon: &grown(sensitivity) / scale, step: None }
        }
        PrivacyLoss::DiscreteLaplace { scale, sensitivity } => {
            Kernel::Laplace { epsilon: &grown(sensitivity) / scale, step: Some(scale.recip()) }
        }
        PrivacyLoss::Exponential { epsilon } => Kernel::BoundedRange { epsilon: grown(epsilon) },
        PrivacyLoss::Approximate { epsilon, delta } => approximate(epsilon, delta, size),
        PrivacyLoss::ZeroConcentrated { rho } => Kernel::Concentrated { rho: squared(rho) },
        PrivacyLoss::Gaussian { variance, l2_squared } => {
            Kernel::Gaussian { mu_squared: &squared(l2_squared) / variance }
        }
        PrivacyLoss::DiscreteGaussian { variance, l2_squared, dimensions } => Kernel::DiscreteGaussian {
            variance: variance.clone(),
            l2_squared: squared(l2_squared),
            dimensions: *dimensions,
        },
        PrivacyLoss::TruncatedLaplace { scale, bound, sensitivity } => {
            truncated(scale, bound, &grown(sensitivity))
        }
        PrivacyLoss::TruncatedDiscreteLaplace { scale, bound, sensitivity } => {
            truncated_discrete(scale, bound, &grown(sensitivity))
        }
        _ => return None,
    })
}

/// Whether the kernel costs nothing under every filter.
fn is_nothing(kernel: &Kernel) -> bool {
    match kernel {
        Kernel::Pure { epsilon } | Kernel::BoundedRange { epsilon } | Kernel::Laplace { epsilon, .. } => {
            epsilon.is_zero()
        }
        Kernel::Approximate { epsilon, delta } => epsilon.is_zero() && delta.is_zero(),
        Kernel::Concentrated { rho } => rho.is_zero(),
        Kernel::Gaussian { mu_squared } => mu_squared.is_zero(),
        Kernel::DiscreteGaussian { l2_squared, .. } => l2_squared.is_zero(),
        Kernel::SampledGaussian { .. } | Kernel::Sampled { .. } => false,
    }
}

fn approximate(epsilon: &Rational, delta: &Rational, size: &Rational) -> Kernel {
    if delta.is_zero() {
        return Kernel::Pure { epsilon: epsilon * size };
    }
    let delta = match () {
        () if *size == Rational::one() => delta.clone(),
        () if epsilon.is_zero() => delta * size,
        () => {
            // (e^(kε) − 1)/(e^ε − 1) grows with ε.
            let grown = bound::delta_of_group(epsilon.to_f64_up(), delta.to_f64_up(), size.to_f64_up());
            at_most_one(grown)
        }
    };
    Kernel::Approximate { epsilon: epsilon * size, delta }
}

/// No event has more than all the probability there is.
fn at_most_one(delta: f64) -> Rational {
    Rational::try_from(delta.min(1.0)).unwrap_or_else(|_| Rational::one())
}

fn truncated(scale: &Rational, bound: &Rational, sensitivity: &Rational) -> Kernel {
    if sensitivity.is_zero() {
        return Kernel::Pure { epsilon: Rational::zero() };
    }
    let epsilon = sensitivity / scale;
    let delta = match sensitivity <= bound {
        true => at_most_one(bound::delta_of_truncated(
            (&(bound - sensitivity) / scale).to_f64_down(),
            (bound / scale).to_f64_down(),
            epsilon.to_f64_up(),
        )),
        false => Rational::one(), // more than half of the outputs give the neighbour away
    };
    Kernel::Approximate { epsilon, delta }
}

fn truncated_discrete(scale: &Rational, bound: &Rational, sensitivity: &Rational) -> Kernel {
    let sensitivity = Rational::from(sensitivity.ceil());
    if sensitivity.is_zero() {
        return Kernel::Pure { epsilon: Rational::zero() };
    }
    let epsilon = &sensitivity / scale;
    let bound = Rational::from(bound.floor());
    let outer = &bound + &Rational::one();
    let delta = match sensitivity <= bound {
        true => at_most_one(bound::delta_of_truncated_discrete(
            (&(&outer - &sensitivity) / scale).to_f64_down(),
            (&outer / scale).to_f64_down(),
            epsilon.to_f64_up(),
            scale.recip().to_f64_up(),
        )),
        false => Rational::one(),
    };
    Kernel::Approximate { epsilon, delta }
}

/// A mechanism on a Poisson sample, for a group.
fn sample<'a>(
    rate: &Rational,
    inner: &'a PrivacyLoss,
    size: &Rational,
    count: &Rational,
    found: &mut Vec<Term>,
) -> Result<(), &'a PrivacyLoss> {
    if rate.is_zero() {
        return Ok(());
    }
    if let PrivacyLoss::Subsampled { rate: again, inner } = inner {
        return sample(&(rate * again), inner, size, count, found);
    }
    if *rate == Rational::one() {
        return collect(inner, size, count, found);
    }
    let mut whole = Vec::new();
    collect(inner, size, &Rational::one(), &mut whole)?;
    if whole.is_empty() {
        return Ok(());
    }
    let instead = match has_group(inner) {
        true => None,
        false => sampled_instead(rate.to_f64_up().min(1.0), &whole, size.to_f64_up()).map(Box::new),
    };
    found.push(Term { kernel: Kernel::Sampled { whole, instead }, count: count.clone() });
    Ok(())
}

fn has_group(loss: &PrivacyLoss) -> bool {
    match loss {
        PrivacyLoss::Group { .. } => true,
        PrivacyLoss::Subsampled { inner, .. } => has_group(inner),
        PrivacyLoss::Composed { parts } => parts.iter().any(|part| has_group(&part.loss)),
        _ => false,
    }
}

/// One kernel for all terms on one sample, if there is a formula; the terms are those of the group.
fn sampled_instead(rate: f64, whole: &[Term], size: f64) -> Option<Kernel> {
    let together = if size > 1.0 { bound::rate_of_group(rate, size) } else { rate };
    let (mut epsilon, mut delta, mut mu_squared) = (0.0, 0.0, 0.0);
    let (mut all_private, mut all_gaussian) = (true, true);
    for Term { kernel, count } in whole {
        let times = count.to_f64_up();
        match kernel {
            Kernel::Pure { epsilon: one }
            | Kernel::BoundedRange { epsilon: one }
            | Kernel::Laplace { epsilon: one, .. } => {
                epsilon = bound::add_product_up(epsilon, times, one.to_f64_up());
                all_gaussian = false;
            }
            Kernel::Approximate { epsilon: one, delta: its } => {
                epsilon = bound::add_product_up(epsilon, times, one.to_f64_up());
                delta = bound::add_product_up(delta, times, its.to_f64_up());
                all_gaussian = false;
            }
            Kernel::Gaussian { mu_squared: one } => {
                mu_squared = bound::add_product_up(mu_squared, times, one.to_f64_up());
                all_private = false;
            }
            _ => return None,
        }
    }
    if all_gaussian {
        return (together < 1.0).then_some(Kernel::SampledGaussian { rate: together, mu_squared });
    }
    if !all_private {
        return None;
    }
    let mut sampled = bound::sampled_epsilon(together, epsilon);
    if size > 1.0 && delta == 0.0 {
        // k people cost at most k times as much as one.
        let alone = bound::sampled_epsilon(rate, epsilon / size * (1.0 + f64::EPSILON));
        sampled = sampled.min(bound::add_product_up(0.0, size, alone.next_up()));
    }
    let epsilon = Rational::try_from(sampled).ok()?;
    match delta == 0.0 {
        true => Some(Kernel::Pure { epsilon }),
        false => {
            let delta = at_most_one(bound::add_product_up(0.0, together, delta));
            Some(Kernel::Approximate { epsilon, delta })
        }
    }
}
