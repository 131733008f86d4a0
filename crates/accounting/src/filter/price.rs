//! [`Cost`]: the price of a loss under a filter, in units, rounded up.
//!
//! | kernel | ε | ρ | μ² | D_α |
//! |---|---|---|---|---|
//! | pure | ε | ε·tanh(ε/2) | (2Φ⁻¹(e^ε/(1+e^ε)))² | ln(cosh((α−½)ε)/cosh(ε/2))/(α−1) |
//! | Laplace | ε | ε − (1 − e^−ε)·h/sinh h, h = 1/scale or 0 | as pure | α times that ρ or as pure |
//! | bounded range | ε | ε²/8 or as pure | as pure at ε/2 | αε²/8 or as pure |
//! | (ε, δ) | – | as pure, and δ | as pure, and δ | as pure, and δ |
//! | threshold | – | as its noise, and δ | as its noise, and δ | as its noise, and δ |
//! | zero-concentrated | – | ρ | – | αρ |
//! | Gaussian | – | μ²/2 | μ² | αμ²/2 |
//! | discrete Gaussian | – | Δ²/2v | Δ²/(v − 9/4), and δ = 2·10⁻¹⁸ per coordinate | αΔ²/2v |
//! | sampled Gaussian | – | as unsampled | as unsampled | the formula for whole orders |
//!
//! **Why** each price is valid is proved in `docs/accounting-filters.md`, section 7.

use demur_exact::Rational;
use demur_exact::float::mul_up;

use super::bound;
use super::kernel::{Kernel, Term};
use super::state::Measure;
use super::units::{Grid, Units, amount_up};

/// What a loss costs in each measure, and its δ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) amounts: Vec<Units>,
    pub(super) delta: Units,
}

/// Why there is no price, as advice.
pub(super) type Advice = &'static str;

const PURE_ONLY: Advice = "a budget of ε alone pays for mechanisms without a δ and without Gaussian noise; use \
                           Laplace noise, or a budget of ε and δ with the filter `zcdp`";
const NOT_GAUSSIAN: Advice =
    "a bound on ρ does not bound μ; name the mechanism itself, or use the filter `zcdp` or `renyi`";
const NARROW: Advice = "under the filter `gaussian` discrete Gaussian noise needs a variance above 9/4; add more \
                        noise, or use the filter `zcdp`";

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
        let size = size_up(kernel);
        let amount = |measure: &Measure| Ok(self.units(amount(kernel, size, *measure)?, count));
        let amounts: Vec<Units> = self.measures.iter().map(amount).collect::<Result<_, Advice>>()?;
        let delta = match delta(kernel, self.measures) {
            Some(once) => self.deltas.up(Some(&times(once, count))),
            None => Units::NONE,
        };
        Ok(Cost { amounts, delta })
    }

    /// What is not free costs at least one unit, even where a double is too small to say so.
    fn units(&self, once: Price, count: &Rational) -> Units {
        match once {
            Price::Exact(once) => self.amounts.up(Some(&times(once, count))),
            Price::Double(once) if *count == Rational::one() => amount_up(once).max(Units(1)),
            Price::Double(once) => amount_up(mul_up(once, count.to_f64_up())).max(Units(1)),
        }
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

fn times(once: Rational, count: &Rational) -> Rational {
    if *count == Rational::one() { once } else { &once * count }
}

/// The price of a kernel paid once.
enum Price {
    Exact(Rational),
    /// Rounded up; +∞ when no price is known.
    Double(f64),
}

/// The ε of what is private, else the ρ of what is concentrated, rounded up to a double.
fn size_up(kernel: &Kernel) -> f64 {
    match kernel {
        Kernel::Pure { epsilon }
        | Kernel::Laplace { epsilon, .. }
        | Kernel::BoundedRange { epsilon }
        | Kernel::Approximate { epsilon, .. } => epsilon.to_f64_up(),
        Kernel::Concentrated { rho } => rho.to_f64_up(),
        Kernel::Gaussian { mu_squared } => mu_squared.to_f64_up() / 2.0,
        Kernel::DiscreteGaussian { variance, l2_squared, .. } => (l2_squared / variance).to_f64_up() / 2.0,
        Kernel::SampledGaussian { .. } | Kernel::Sampled { .. } => f64::INFINITY,
    }
}

/// The price of a kernel paid once, given its [`size_up`].
fn amount(kernel: &Kernel, size: f64, measure: Measure) -> Result<Price, Advice> {
    use Kernel::{
        Approximate, BoundedRange, Concentrated, DiscreteGaussian, Gaussian, Laplace, Pure, Sampled,
        SampledGaussian,
    };
    use Price::{Double, Exact};
    let half = |value: &Rational| value * &Rational::new(1, 2);
    if size == 0.0 && measure != Measure::Epsilon {
        return Ok(Exact(Rational::zero())); // nothing but its δ
    }
    Ok(match (measure, kernel) {
        (Measure::Epsilon, Pure { epsilon } | Laplace { epsilon, .. } | BoundedRange { epsilon }) => {
            Exact(epsilon.clone())
        }
        (Measure::Epsilon, _) => return Err(PURE_ONLY),

        (Measure::Rho, Pure { .. } | Approximate { .. }) => Double(bound::rho_of_pure(size)),
        (Measure::Rho, Laplace { step, .. }) => Double(rho_of_laplace(size, step.as_ref())),
        (Measure::Rho, BoundedRange { .. }) => {
            Double((mul_up(size, size) / 8.0).min(bound::rho_of_pure(size)))
        }
        (Measure::Rho, Concentrated { rho }) => Exact(rho.clone()),
        (Measure::Rho, Gaussian { mu_squared }) => Exact(half(mu_squared)),
        (Measure::Rho, DiscreteGaussian { variance, l2_squared, .. }) => Exact(&half(l2_squared) / variance),

        (Measure::MuSquared, Pure { .. } | Laplace { .. } | Approximate { .. }) => {
            Double(bound::mu_squared_of_pure(size))
        }
        (Measure::MuSquared, BoundedRange { .. }) => Double(bound::mu_squared_of_pure(size / 2.0)),
        (Measure::MuSquared, Gaussian { mu_squared }) => Exact(mu_squared.clone()),
        (Measure::MuSquared, DiscreteGaussian { variance, l2_squared, .. }) => {
            let smoothed = variance - &Rational::new(9, 4);
            if !smoothed.is_positive() {
                return Err(NARROW);
            }
            Exact(l2_squared / &smoothed)
        }
        (Measure::MuSquared, Concentrated { .. }) => return Err(NOT_GAUSSIAN),

        (Measure::Renyi(order), Pure { .. } | Approximate { .. }) => {
            Double(bound::renyi_of_pure(size, order))
        }
        (Measure::Renyi(order), Laplace { step, .. }) => {
            let by_rho = mul_up(rho_of_laplace(size, step.as_ref()), f64::from(order));
            Double(by_rho.min(bound::renyi_of_pure(size, order)))
        }
        (Measure::Renyi(order), BoundedRange { .. }) => {
            let by_range = mul_up(mul_up(size, size) / 8.0, f64::from(order));
            Double(by_range.min(bound::renyi_of_pure(size, order)))
        }
        (Measure::Renyi(order), Concentrated { .. } | Gaussian { .. } | DiscreteGaussian { .. }) => {
            Double(mul_up(size, f64::from(order)))
        }
        (Measure::Renyi(order), SampledGaussian { rate, mu_squared }) => {
            Double(bound::renyi_of_sampled_gaussian(*rate, *mu_squared, order))
        }

        // Never alone: beside it stands the price without the sample.
        (Measure::Rho | Measure::MuSquared, SampledGaussian { .. }) | (_, Sampled { .. }) => {
            Double(f64::INFINITY)
        }
    })
}

/// ρ of Laplace noise: the smaller of its own bound and that of anything pure.
fn rho_of_laplace(epsilon: f64, step: Option<&Rational>) -> f64 {
    let step = step.map_or(0.0, Rational::to_f64_up);
    bound::rho_of_laplace(epsilon, step).min(bound::rho_of_pure(epsilon))
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
