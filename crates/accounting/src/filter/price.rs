//! [`Cost`]: the price of a loss under a filter, in units, rounded up.
//!
//! | kernel | ε | ρ | μ² | D_α |
//! |---|---|---|---|---|
//! | pure | ε | ε·tanh(ε/2) | (2Φ⁻¹(e^ε/(1+e^ε)))² | ln(cosh((α−½)ε)/cosh(ε/2))/(α−1) |
//! | bounded range | ε | ε²/8 or as pure | as pure | αε²/8 or as pure |
//! | (ε, δ) | – | as pure, and δ | as pure, and δ | as pure, and δ |
//! | zero-concentrated | – | ρ | – | αρ |
//! | Gaussian | – | μ²/2 | μ² | αμ²/2 |
//! | discrete Gaussian | – | Δ²/2v | Δ²/(v − 9/4), and δ = 2·10⁻¹⁸ per coordinate | αΔ²/2v |
//! | sampled Gaussian | – | as unsampled | as unsampled | the formula for whole orders |
//!
//! **Why** each price is valid is proved in `docs/accounting-filters.md`, section 7.

use demur_exact::Rational;

use super::bound;
use super::kernel::{Kernel, Term};
use super::state::Measure;
use super::units::{Grid, Units};

/// What a loss costs in each measure, and its δ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) amounts: Vec<Units>,
    pub(super) delta: Units,
}

/// Why there is no price, as advice.
pub(super) type Advice = &'static str;

const PURE_ONLY: Advice = "a budget of ε alone pays for mechanisms without a δ and without Gaussian noise; use Laplace noise, or \
     a budget of ε and δ with the filter `zcdp`";
const NOT_GAUSSIAN: Advice =
    "a bound on ρ does not bound μ; name the mechanism itself, or use the filter `zcdp` or `renyi`";
const NARROW: Advice = "under the filter `gaussian` discrete Gaussian noise needs a variance above 9/4; add more noise, or use the \
     filter `zcdp`";

/// The measures and grids prices are told in.
pub(super) struct Prices<'a> {
    pub(super) measures: &'a [Measure],
    pub(super) amounts: &'a Grid,
    pub(super) deltas: &'a Grid,
}

impl Prices<'_> {
    /// The price of all terms together.
    pub(super) fn of(&self, terms: &[Term]) -> Result<Cost, Advice> {
        let mut total = Cost { amounts: vec![Units::NONE; self.measures.len()], delta: Units::NONE };
        for Term { kernel, count } in terms {
            let cost = match kernel {
                Kernel::Sampled { whole, instead } => self.sampled(whole, instead.as_deref(), count)?,
                kernel => self.single(kernel, count)?,
            };
            total.delta = total.delta.plus(cost.delta);
            for (sum, amount) in total.amounts.iter_mut().zip(cost.amounts) {
                *sum = sum.plus(amount);
            }
        }
        Ok(total)
    }

    fn single(&self, kernel: &Kernel, count: &Rational) -> Result<Cost, Advice> {
        let amount = |measure: &Measure| {
            let once = amount(kernel, *measure)?;
            Ok(self.amounts.up(times(once, count).as_ref()))
        };
        let amounts: Vec<Units> = self.measures.iter().map(amount).collect::<Result<_, Advice>>()?;
        let delta = match delta(kernel, self.measures) {
            Some(once) => self.deltas.up(times(Some(once), count).as_ref()),
            None => Units::NONE,
        };
        Ok(Cost { amounts, delta })
    }

    /// The cheaper of two valid prices; in each measure by itself when there is no δ in either.
    fn sampled(&self, whole: &[Term], instead: Option<&Kernel>, count: &Rational) -> Result<Cost, Advice> {
        let repeated: Vec<Term>;
        let whole = match *count == Rational::one() {
            true => whole,
            false => {
                let times = |term: &Term| Term { kernel: term.kernel.clone(), count: &term.count * count };
                repeated = whole.iter().map(times).collect();
                &repeated
            }
        };
        let whole = self.of(whole);
        let instead = instead.map(|kernel| self.single(kernel, count));
        match (whole, instead) {
            (Ok(whole), Some(Ok(instead))) => Ok(cheaper(whole, instead)),
            (Err(_), Some(Ok(instead))) => Ok(instead),
            (whole, _) => whole,
        }
    }
}

fn cheaper(a: Cost, b: Cost) -> Cost {
    if a.delta == Units::NONE && b.delta == Units::NONE {
        let amounts = a.amounts.iter().zip(&b.amounts).map(|(a, b)| *a.min(b)).collect();
        return Cost { amounts, delta: Units::NONE };
    }
    let below = b.delta <= a.delta && b.amounts.iter().zip(&a.amounts).all(|(b, a)| b <= a);
    if below { b } else { a }
}

fn times(once: Option<Rational>, count: &Rational) -> Option<Rational> {
    if *count == Rational::one() { once } else { once.map(|once| &once * count) }
}

/// The price of a kernel paid once; `None` when it is without end.
fn amount(kernel: &Kernel, measure: Measure) -> Result<Option<Rational>, Advice> {
    let half = |value: &Rational| value * &Rational::new(1, 2);
    Ok(match (kernel, measure) {
        (Kernel::Pure { epsilon } | Kernel::BoundedRange { epsilon }, Measure::Epsilon) => {
            Some(epsilon.clone())
        }
        (Kernel::Pure { epsilon } | Kernel::Approximate { epsilon, .. }, Measure::Rho) => {
            exact(bound::rho_of_pure(epsilon.to_f64_up()))
        }
        (Kernel::Pure { epsilon } | Kernel::Approximate { epsilon, .. }, Measure::Renyi(order)) => {
            exact(bound::renyi_of_pure(epsilon.to_f64_up(), order))
        }
        (
            Kernel::Pure { epsilon } | Kernel::Approximate { epsilon, .. } | Kernel::BoundedRange { epsilon },
            Measure::MuSquared,
        ) => exact(bound::mu_squared_of_pure(epsilon.to_f64_up())),
        (Kernel::BoundedRange { epsilon }, Measure::Rho) => {
            let rho = &epsilon.square() / &Rational::from(8u32);
            at_most(rho, bound::rho_of_pure(epsilon.to_f64_up()))
        }
        (Kernel::BoundedRange { epsilon }, Measure::Renyi(order)) => {
            let divergence = &epsilon.square() * &Rational::new(i128::from(order), 8);
            at_most(divergence, bound::renyi_of_pure(epsilon.to_f64_up(), order))
        }
        (Kernel::Concentrated { rho }, Measure::Rho) => Some(rho.clone()),
        (Kernel::Concentrated { rho }, Measure::Renyi(order)) => Some(rho * &Rational::from(order)),
        (Kernel::Gaussian { mu_squared }, Measure::MuSquared) => Some(mu_squared.clone()),
        (Kernel::Gaussian { mu_squared }, Measure::Rho) => Some(half(mu_squared)),
        (Kernel::Gaussian { mu_squared }, Measure::Renyi(order)) => {
            Some(&half(mu_squared) * &Rational::from(order))
        }
        (Kernel::DiscreteGaussian { variance, l2_squared, .. }, Measure::Rho) => {
            Some(&half(l2_squared) / variance)
        }
        (Kernel::DiscreteGaussian { variance, l2_squared, .. }, Measure::Renyi(order)) => {
            Some(&(&half(l2_squared) / variance) * &Rational::from(order))
        }
        (Kernel::DiscreteGaussian { variance, l2_squared, .. }, Measure::MuSquared) => {
            let smoothed = variance - &Rational::new(9, 4);
            if !smoothed.is_positive() {
                return Err(NARROW);
            }
            Some(l2_squared / &smoothed)
        }
        (Kernel::SampledGaussian { rate, mu_squared }, Measure::Renyi(order)) => {
            exact(bound::renyi_of_sampled_gaussian(*rate, *mu_squared, order))
        }
        // Never alone: beside it stands the price without the sample.
        (Kernel::SampledGaussian { .. }, Measure::Rho | Measure::MuSquared) => None,
        (Kernel::Sampled { .. }, Measure::Rho | Measure::MuSquared | Measure::Renyi(_)) => None,
        (Kernel::Concentrated { .. }, Measure::MuSquared) => return Err(NOT_GAUSSIAN),
        (_, Measure::Epsilon) => return Err(PURE_ONLY),
    })
}

/// The δ of a kernel paid once, if it has one.
fn delta(kernel: &Kernel, measures: &[Measure]) -> Option<Rational> {
    match kernel {
        Kernel::Approximate { delta, .. } => Some(delta.clone()),
        Kernel::DiscreteGaussian { dimensions, .. } if measures == [Measure::MuSquared] => {
            Some(&Rational::new(2, 1_000_000_000_000_000_000) * &Rational::from(*dimensions))
        }
        _ => None,
    }
}

/// The double as the fraction it is; `None` for +∞.
fn exact(bound: f64) -> Option<Rational> {
    Rational::try_from(bound).ok()
}

fn at_most(value: Rational, bound: f64) -> Option<Rational> {
    match exact(bound) {
        Some(bound) if bound < value => Some(bound),
        _ => Some(value),
    }
}
