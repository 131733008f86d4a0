//! The least noise for a wanted guarantee.
//!
//! **Guarantee.** The value found is private: the proven upper bound of δ(ε) was seen to be at most δ there, or that of ε(δ) at
//! most ε. It is at most a share of 10⁻⁹ from the best one: at `lower`, which is that close, the proven *lower* bound was
//! seen to be above, wherever the laws have one.
//!
//! **Method.** Both fall as noise grows, so the secant of their logarithm against that of the parameter, kept
//! inside a bracket, finds the crossing in a dozen evaluations; then both sides are certified.

use std::str::FromStr;

use demur_core::{Part, PrivacyLoss};
use demur_exact::{Rational, float, gaussian_sigma};

use crate::{Account, AccountingError, Method};

/// The guarantee that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// ε.
    pub epsilon: Rational,
    /// δ.
    pub delta: Rational,
}

/// What is fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// How far one person can move the answer.
    pub sensitivity: Rational,
    /// How often the mechanism is used.
    pub steps: u64,
    /// Each person is in the sample with this probability; 1 is everybody.
    pub rate: Rational,
    /// σ, to find steps or rate.
    pub sigma: Option<Rational>,
}

/// What is sought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unknown {
    /// σ of Gaussian noise.
    Gaussian,
    /// σ of discrete Gaussian noise.
    DiscreteGaussian,
    /// Scale of Laplace noise.
    Laplace,
    /// Scale of discrete Laplace noise.
    DiscreteLaplace,
    /// Bound of truncated Laplace noise.
    TruncatedLaplace,
    /// Bound of truncated discrete Laplace noise.
    TruncatedDiscreteLaplace,
    /// ε of one randomized answer.
    RandomizedResponse,
    /// ε of one answer in unary encoding.
    UnaryEncoding,
    /// ε of one choice.
    Exponential,
    /// ε of one choice by permuting and flipping.
    PermuteAndFlip,
    /// How often Gaussian noise may be used.
    Steps,
    /// How large a sample may be.
    Rate,
}

impl Unknown {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Gaussian,
        Self::DiscreteGaussian,
        Self::Laplace,
        Self::DiscreteLaplace,
        Self::TruncatedLaplace,
        Self::TruncatedDiscreteLaplace,
        Self::RandomizedResponse,
        Self::UnaryEncoding,
        Self::Exponential,
        Self::PermuteAndFlip,
        Self::Steps,
        Self::Rate,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gaussian => "gaussian",
            Self::DiscreteGaussian => "discrete_gaussian",
            Self::Laplace => "laplace",
            Self::DiscreteLaplace => "discrete_laplace",
            Self::TruncatedLaplace => "truncated_laplace",
            Self::TruncatedDiscreteLaplace => "truncated_discrete_laplace",
            Self::RandomizedResponse => "randomized_response",
            Self::UnaryEncoding => "unary_encoding",
            Self::Exponential => "exponential",
            Self::PermuteAndFlip => "permute_and_flip",
            Self::Steps => "steps",
            Self::Rate => "rate",
        }
    }
}

impl FromStr for Unknown {
    type Err = AccountingError;

    fn from_str(text: &str) -> Result<Self, AccountingError> {
        Self::ALL.into_iter().find(|unknown| unknown.name() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|unknown| unknown.name()).collect();
            let text =
                format!("there is nothing called `{text}` to calibrate; there are {}", names.join(", "));
            AccountingError::new("accounting.calibrate", text)
        })
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibrated {
    /// The calibrated composition.
    pub loss: PrivacyLoss,
    /// What the value is: sigma, scale, bound, epsilon, steps or rate.
    pub parameter: &'static str,
    /// The value to use.
    pub value: f64,
    /// No value beyond this one is private: below it for noise, above it for ε, steps and rate.
    pub lower: f64,
}

/// The least noise (or the largest ε, steps or rate) with which the composition has the guarantee.
///
/// ```
/// use demur_accounting::calibrate::{Setting, Target, Unknown, calibrate};
/// use demur_exact::Rational;
/// let target = Target { epsilon: Rational::from(8u32), delta: "1e-5".parse()? };
/// let training = Setting { sensitivity: Rational::one(), steps: 10_000, rate: "0.01".parse()?, sigma: None };
/// let found = calibrate(Unknown::Gaussian, &target, &training)?;
/// assert!(found.value > found.lower && found.value < found.lower * (1.0 + 1e-9));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn calibrate(
    unknown: Unknown,
    target: &Target,
    setting: &Setting,
) -> Result<Calibrated, AccountingError> {
    check(target, setting)?;
    if unknown == Unknown::Steps {
        return most_steps(target, setting);
    }
    let search = Search {
        target,
        make: &|value| composed(unknown, value, target, setting),
        falling: unknown.is_noise(),
        by_delta: unknown.is_told_by_delta() && !target.delta.is_zero(),
    };
    let (value, lower) = match closed_form(unknown, target, setting) {
        Some(sigma) => (sigma, sigma * (1.0 - 1e-12)),
        None => search.run(first_guess(unknown, target, setting), unknown.highest())?,
    };
    let parameter = unknown.parameter();
    Ok(Calibrated { loss: composed(unknown, value, target, setting)?, parameter, value, lower })
}

/// By what factor all noise of a composition must grow (or may shrink) to have the guarantee, each
/// mechanism keeping its weight among the others.
///
/// ```
/// use demur_accounting::Account;
/// use demur_accounting::calibrate::{Target, calibrate_mixture};
/// let mixture = "gaussian(sigma=10)*5 + laplace(scale=3, sensitivity=2)*2".parse()?;
/// let target = Target { epsilon: "1".parse()?, delta: "1e-6".parse()? };
/// let found = calibrate_mixture(&mixture, &target)?;
/// assert!(Account::of(&found.loss)?.delta(&target.epsilon)?.bounds.upper <= 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn calibrate_mixture(loss: &PrivacyLoss, target: &Target) -> Result<Calibrated, AccountingError> {
    loss.check()?;
    let make = |factor: f64| Ok(noisier(loss, &decimal(factor)));
    let search = Search { target, make: &make, falling: true, by_delta: false };
    let (value, lower) = search.run(1.0, f64::MAX)?;
    Ok(Calibrated { loss: make(value)?, parameter: "factor", value, lower })
}

impl Unknown {
    /// Whether more of it is more private.
    fn is_noise(self) -> bool {
        self.parameter() != "epsilon" && !matches!(self, Self::Steps | Self::Rate)
    }

    /// Whether δ(ε) is the quicker thing to ask for: it is not where losses are bounded, since it is 0 from the largest on.
    fn is_told_by_delta(self) -> bool {
        use Unknown::{DiscreteGaussian, Gaussian, Rate, TruncatedDiscreteLaplace, TruncatedLaplace};
        matches!(self, Gaussian | DiscreteGaussian | TruncatedLaplace | TruncatedDiscreteLaplace | Rate)
    }

    fn parameter(self) -> &'static str {
        match self {
            Self::Gaussian | Self::DiscreteGaussian => "sigma",
            Self::Laplace | Self::DiscreteLaplace => "scale",
            Self::TruncatedLaplace | Self::TruncatedDiscreteLaplace => "bound",
            Self::RandomizedResponse | Self::UnaryEncoding | Self::Exponential | Self::PermuteAndFlip => {
                "epsilon"
            }
            Self::Steps => "steps",
            Self::Rate => "rate",
        }
    }

    fn highest(self) -> f64 {
        if self == Self::Rate { 1.0 } else { f64::MAX }
    }
}

fn check(target: &Target, setting: &Setting) -> Result<(), AccountingError> {
    let refuse = |text: String| Err(AccountingError::new("accounting.calibrate", text));
    if target.epsilon.is_negative() {
        return refuse(format!("ε must be at least 0, but {} was given", target.epsilon));
    }
    if target.delta.is_negative() || target.delta >= Rational::one() {
        return refuse(format!("δ must be at least 0 and below 1, but {} was given", target.delta));
    }
    if target.epsilon.is_zero() && target.delta.is_zero() {
        return refuse("ε and δ are both 0, which only an answer without any data can promise".to_owned());
    }
    if setting.sensitivity <= Rational::zero() {
        return refuse(format!("the sensitivity must be above 0, but {} was given", setting.sensitivity));
    }
    if setting.steps == 0 {
        return refuse("the number of steps must be at least 1, but 0 was given".to_owned());
    }
    if setting.rate <= Rational::zero() || setting.rate > Rational::one() {
        return refuse(format!(
            "the sampling rate must be above 0 and at most 1, but {} was given",
            setting.rate
        ));
    }
    Ok(())
}

/// σ = Δ·√k times the least for one use, where nothing is sampled.
fn closed_form(unknown: Unknown, target: &Target, setting: &Setting) -> Option<f64> {
    let plain =
        unknown == Unknown::Gaussian && setting.rate == Rational::one() && target.delta > Rational::zero();
    plain.then(|| {
        let one = gaussian_sigma(&target.epsilon, &target.delta);
        one * setting.sensitivity.to_f64_up() * (setting.steps as f64).sqrt() * (1.0 + 1e-15)
    })
}

/// The bound of truncated noise by the formula, else what Gaussian noise would need.
fn first_guess(unknown: Unknown, target: &Target, setting: &Setting) -> f64 {
    let (epsilon, delta) = (target.epsilon.to_f64().max(1e-9), target.delta.to_f64().max(1e-300));
    let (sensitivity, steps) = (setting.sensitivity.to_f64(), setting.steps as f64);
    match unknown {
        Unknown::TruncatedLaplace | Unknown::TruncatedDiscreteLaplace => {
            let scale = sensitivity * steps / epsilon;
            scale * (libm::expm1(epsilon) * steps / (2.0 * delta)).ln_1p()
        }
        _ if unknown.parameter() == "epsilon" => epsilon / steps.sqrt(),
        Unknown::Rate => 0.01,
        _ => {
            sensitivity * steps.sqrt() * setting.rate.to_f64().sqrt() * (2.0 * (1.25 / delta).ln()).sqrt()
                / epsilon
        }
    }
}

/// The loss of all uses with the parameter at a value.
fn composed(
    unknown: Unknown,
    value: f64,
    target: &Target,
    setting: &Setting,
) -> Result<PrivacyLoss, AccountingError> {
    let sensitivity = setting.sensitivity.clone();
    let value = decimal(value);
    let rate = if unknown == Unknown::Rate { value.clone() } else { setting.rate.clone() };
    let sigma = || {
        setting.sigma.clone().ok_or_else(|| {
            AccountingError::new("accounting.calibrate", "to find steps or a rate, σ must be given")
        })
    };
    // Truncated noise has the scale of the pure noise that would do, and only its bound is sought.
    let scale = || &(&sensitivity * &Rational::from(setting.steps)) / &target.epsilon;
    let truncated = matches!(unknown, Unknown::TruncatedLaplace | Unknown::TruncatedDiscreteLaplace);
    if truncated && target.epsilon.is_zero() {
        return Err(AccountingError::new("accounting.calibrate", "truncated noise needs an ε above 0"));
    }
    let once = match unknown {
        Unknown::Gaussian => {
            PrivacyLoss::Gaussian { variance: value.square(), l2_squared: sensitivity.square() }
        }
        Unknown::Steps | Unknown::Rate => {
            PrivacyLoss::Gaussian { variance: sigma()?.square(), l2_squared: sensitivity.square() }
        }
        Unknown::DiscreteGaussian => PrivacyLoss::DiscreteGaussian {
            variance: value.square(),
            l2_squared: sensitivity.square(),
            dimensions: 1,
        },
        Unknown::Laplace => PrivacyLoss::Laplace { scale: value, sensitivity },
        Unknown::DiscreteLaplace => PrivacyLoss::DiscreteLaplace { scale: value, sensitivity },
        Unknown::TruncatedLaplace => {
            PrivacyLoss::TruncatedLaplace { scale: scale(), bound: value, sensitivity }
        }
        Unknown::TruncatedDiscreteLaplace => PrivacyLoss::TruncatedDiscreteLaplace {
            scale: scale(),
            bound: Rational::from(value.ceil()),
            sensitivity,
        },
        Unknown::RandomizedResponse => PrivacyLoss::RandomizedResponse { epsilon: value, categories: 2 },
        Unknown::UnaryEncoding => PrivacyLoss::UnaryEncoding { epsilon: value },
        Unknown::Exponential => PrivacyLoss::Exponential { epsilon: value },
        Unknown::PermuteAndFlip => PrivacyLoss::PermuteAndFlip { epsilon: value },
    };
    let sampled = match rate == Rational::one() {
        true => once,
        false => PrivacyLoss::Subsampled { rate, inner: Box::new(once) },
    };
    Ok(sampled.repeat(setting.steps))
}

/// The largest number of uses that is private.
fn most_steps(target: &Target, setting: &Setting) -> Result<Calibrated, AccountingError> {
    let make = |steps: u64| composed(Unknown::Steps, 1.0, target, &Setting { steps, ..setting.clone() });
    let search = Search { target, make: &|steps| make(steps as u64), falling: false, by_delta: true };
    let miss = |steps: u64| search.miss(steps as f64);
    let first = (1, miss(1)?);
    if first.1 > 0.0 {
        return Err(AccountingError::new(
            "accounting.calibrate",
            "already a single use costs more than the guarantee allows; use more noise or a smaller sample",
        ));
    }
    let point = |steps: u64| Ok::<_, AccountingError>((steps, miss(steps)?));
    // Few uses take longest to account for: look for the bracket from above.
    let (mut low, mut high) = (first, point(1 << 12)?);
    while high.1 <= 0.0 && high.0 < 1 << 50 {
        (low, high) = (high, point(high.0 * 8)?);
    }
    let mut slow = false;
    while high.0 - low.0 > 1 {
        let as_reals = |(steps, miss): (u64, f64)| (steps as f64, miss);
        let secant = interpolate(as_reals(low), as_reals(high)).round();
        let middle = (low.0 as f64 * high.0 as f64).sqrt().round();
        let tried = if slow || !secant.is_finite() { middle } else { secant };
        let tried = (tried as u64).clamp(low.0 + 1, high.0 - 1);
        let (before, found) = (high.0 - low.0, point(tried)?);
        if found.1 <= 0.0 {
            low = found
        } else {
            high = found
        }
        // a secant that leaves most of the bracket is followed by a step to its middle
        slow = !slow && (high.0 - low.0) * 4 > before;
    }
    Ok(Calibrated { loss: make(low.0)?, parameter: "steps", value: low.0 as f64, lower: high.0 as f64 })
}

/// The same mechanisms, each with `factor` times its noise.
fn noisier(loss: &PrivacyLoss, factor: &Rational) -> PrivacyLoss {
    use PrivacyLoss::*;
    let inside = |inner: &PrivacyLoss| Box::new(noisier(inner, factor));
    match loss.clone() {
        Pure { epsilon } => Pure { epsilon: &epsilon / factor },
        Approximate { epsilon, delta } => Approximate { epsilon: &epsilon / factor, delta },
        ZeroConcentrated { rho } => ZeroConcentrated { rho: &rho / &factor.square() },
        Laplace { scale, sensitivity } => Laplace { scale: &scale * factor, sensitivity },
        DiscreteLaplace { scale, sensitivity } => DiscreteLaplace { scale: &scale * factor, sensitivity },
        TruncatedLaplace { scale, bound, sensitivity } => {
            TruncatedLaplace { scale: &scale * factor, bound: &bound * factor, sensitivity }
        }
        TruncatedDiscreteLaplace { scale, bound, sensitivity } => {
            let bound = Rational::from((&bound * factor).ceil());
            TruncatedDiscreteLaplace { scale: &scale * factor, bound, sensitivity }
        }
        Gaussian { variance, l2_squared } => Gaussian { variance: &variance * &factor.square(), l2_squared },
        DiscreteGaussian { variance, l2_squared, dimensions } => {
            DiscreteGaussian { variance: &variance * &factor.square(), l2_squared, dimensions }
        }
        RandomizedResponse { epsilon, categories } => {
            RandomizedResponse { epsilon: &epsilon / factor, categories }
        }
        UnaryEncoding { epsilon } => UnaryEncoding { epsilon: &epsilon / factor },
        Exponential { epsilon } => Exponential { epsilon: &epsilon / factor },
        PermuteAndFlip { epsilon } => PermuteAndFlip { epsilon: &epsilon / factor },
        Subsampled { rate, inner } => Subsampled { rate, inner: inside(&inner) },
        WithoutReplacement { sample, population, inner } => {
            WithoutReplacement { sample, population, inner: inside(&inner) }
        }
        Group { size, inner } => Group { size, inner: inside(&inner) },
        Composed { parts } => Composed {
            parts: parts
                .iter()
                .map(|part| Part { loss: noisier(&part.loss, factor), count: part.count })
                .collect(),
        },
        other => other,
    }
}

/// The shortest decimal of a double, exactly: what people would type.
fn decimal(value: f64) -> Rational {
    format!("{value:?}").parse().unwrap_or_else(|_| Rational::one())
}

/// How near to each other, as a share, the value found and one that is not private shall be.
const CLOSE: f64 = 1e-10;

/// A share of δ that is far below it.
const NOTHING: f64 = 1e-6;

/// A value of the parameter, and its miss.
type Point = (f64, f64);

/// A parameter on which δ(ε) depends monotonically.
struct Search<'a> {
    target: &'a Target,
    make: &'a dyn Fn(f64) -> Result<PrivacyLoss, AccountingError>,
    /// Whether δ(ε) falls as the parameter grows.
    falling: bool,
    /// Whether δ(ε) is compared with δ, or ε(δ) with ε.
    by_delta: bool,
}

impl Search<'_> {
    /// The best private value, and one beyond it that is not.
    fn run(&self, guess: f64, highest: f64) -> Result<(f64, f64), AccountingError> {
        let (mut good, bad) = self.bracket(guess.min(highest), highest)?;
        let Some(mut bad) = bad else { return Ok((good.0, good.0)) };
        let width = |good: Point, bad: Point| (good.0 / bad.0).ln().abs();
        let mut slow = false;
        for _ in 0..100 {
            let before = width(good, bad);
            if before < CLOSE {
                break;
            }
            let secant = interpolate(good, bad);
            let within = secant > good.0.min(bad.0) && secant < good.0.max(bad.0);
            let tried = if within && !slow { secant } else { (good.0 * bad.0).sqrt() };
            let point = (tried, self.miss(tried)?);
            // From the side that is now close, look just across.
            let steepness = (good.1 - bad.1).abs() / before;
            if point.1.abs() < 1e3 * CLOSE * steepness {
                let across = if (point.1 <= 0.0) == self.falling { -CLOSE / 2.0 } else { CLOSE / 2.0 };
                let near = tried * (1.0 + across);
                let there = (near, self.miss(near)?);
                if better(there.0, good.0, self.falling) && there.1 <= 0.0 {
                    good = there;
                } else if better(bad.0, there.0, self.falling) && there.1 > 0.0 {
                    bad = there;
                }
            }
            if point.1 <= 0.0 && better(point.0, good.0, self.falling) {
                good = point;
            } else if point.1 > 0.0 && better(bad.0, point.0, self.falling) {
                bad = point;
            }
            // a secant that leaves most of the bracket is followed by a step to its middle
            slow = !slow && width(good, bad) > before / 4.0;
        }
        Ok((good.0, self.proven(bad.0)?))
    }

    /// The nearest value beyond which the loss is proven to be too large.
    fn proven(&self, bad: f64) -> Result<f64, AccountingError> {
        let mut step = 1e-13;
        while step < 0.5 {
            let tried = bad * if self.falling { 1.0 - step } else { 1.0 + step };
            if self.ratio(tried)?.0 > 1.0 {
                return Ok(tried);
            }
            step *= 8.0;
        }
        Ok(if self.falling { 0.0 } else { f64::INFINITY })
    }

    /// Bounds on what is paid over what is allowed: δ over δ, or ε over ε.
    fn ratio(&self, value: f64) -> Result<(f64, f64), AccountingError> {
        let account = Account::of(&(self.make)(value)?)?;
        let Target { epsilon, delta } = self.target;
        let (found, allowed) = if self.by_delta || (epsilon.is_zero() && !delta.is_zero()) {
            (account.delta(epsilon)?.bounds, delta)
        } else {
            match account.epsilon(delta) {
                Err(error) if error.code() == "accounting.infinite" => {
                    return Ok((f64::INFINITY, f64::INFINITY));
                }
                answer => (answer?.bounds, epsilon),
            }
        };
        Ok((
            float::div_down(found.lower, allowed.to_f64_up()),
            float::div_up(found.upper, allowed.to_f64_down()),
        ))
    }

    /// ln of what is paid over what is allowed: private when at most 0.
    fn miss(&self, value: f64) -> Result<f64, AccountingError> {
        let upper = self.ratio(value)?.1.clamp(1e-30, 1e30);
        Ok(if upper <= 1.0 { upper.ln() } else { upper.ln().max(f64::MIN_POSITIVE) })
    }

    /// The same where it may be far from 0: then one order tells enough, and the digits of a δ that is nothing are not waited for.
    fn rough_miss(&self, value: f64) -> Result<f64, AccountingError> {
        let Target { epsilon, delta } = self.target;
        let account = Account::of(&(self.make)(value)?)?;
        match account.delta_by(Method::Renyi, epsilon) {
            Ok(answer) if self.by_delta && answer.bounds.upper < NOTHING * delta.to_f64_down() => {
                Ok(float::div_up(answer.bounds.upper, delta.to_f64_down()).max(1e-30).ln())
            }
            _ => self.miss(value),
        }
    }

    /// A private value and one that is not, unless everything up to the highest value is private.
    fn bracket(&self, guess: f64, highest: f64) -> Result<(Point, Option<Point>), AccountingError> {
        let start = (guess, self.rough_miss(guess)?);
        let (mut here, mut factor) = (start, 1.1);
        for _ in 0..60 {
            let up = (start.1 > 0.0) == self.falling;
            let next = (if up { here.0 * factor } else { here.0 / factor }).min(highest);
            if next == here.0 {
                break;
            }
            let there = (next, self.rough_miss(next)?);
            if (there.1 > 0.0) != (start.1 > 0.0) {
                return Ok(if start.1 > 0.0 { (there, Some(here)) } else { (here, Some(there)) });
            }
            (here, factor) = (there, factor * factor.min(4.0));
        }
        if start.1 <= 0.0 {
            // Private however far one goes: the end of the range is the answer.
            return Ok((here, None));
        }
        Err(AccountingError::new(
            "accounting.calibrate",
            "no amount of noise reaches this guarantee with these settings; allow a larger δ or ε, or fewer steps",
        ))
    }
}

/// Whether `a` is at least as little noise as `b`.
fn better(a: f64, b: f64, falling: bool) -> bool {
    if falling { a <= b } else { a >= b }
}

/// Where the line through two points (ln value, miss) is 0.
fn interpolate(a: Point, b: Point) -> f64 {
    (a.0.ln() + (b.0 / a.0).ln() * a.1 / (a.1 - b.1)).exp()
}
