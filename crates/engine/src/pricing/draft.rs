//! [`Draft`]: a design as numbers, before any table of noise is made.

use demur_exact::{Rational, gaussian_sigma_rough};

use super::profile::{Profile, largest_step};
use super::{Item, Preference, Pricing, Wish};
use crate::EngineError;
use crate::keys::{KeyRule, gaussian_threshold};
use crate::noise::Noise;

/// By what the discrete Gaussian on several numbers falls behind the continuous one, in variance.
fn smoothing() -> Rational {
    Rational::new(9, 4)
}

/// Variances computed in doubles are raised by this factor.
const ROUNDING: f64 = 1.0 + 1e-12;

/// The noise of one item.
#[derive(Clone, Debug)]
enum Part {
    Laplace { scale: Rational },
    Truncated { scale: Rational, delta: Rational },
    Gaussian { variance: Rational },
}

/// The rule for keys: noise on unit counts, and a threshold where the noise has no bound.
#[derive(Clone, Debug)]
struct Rule {
    part: Part,
    threshold: u64,
    delta: Option<Rational>,
}

/// A design; see `pricing.rs`.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    parts: Vec<Part>,
    rule: Option<Rule>,
    design: &'static str,
}

impl Draft {
    /// Every design that applies.
    pub(super) fn all(wish: &Wish) -> Result<Vec<Self>, EngineError> {
        let approximate = !wish.guarantee.is_pure();
        let positive = wish.guarantee.epsilon.value() > 0.0;
        let laplace = wish.preference != Preference::Gaussian && positive;
        let gaussian = wish.preference != Preference::Laplace && approximate;
        let mut drafts = Vec::new();
        if laplace {
            drafts.push(Self::pure(wish)?);
            if approximate {
                drafts.push(Self::signs(wish)?);
            }
        }
        if gaussian {
            drafts.push(Self::gaussian(wish)?);
            // Keys of truncated noise need an ε, items of their own, and may not be an item that is to be Gaussian.
            let spoken_for = wish.preference == Preference::Gaussian && wish.reused().is_some();
            let left = wish.items.len() > usize::from(wish.reused().is_some());
            if positive && left && !spoken_for && wish.keys.is_some() {
                drafts.extend(Self::mixed(wish)?);
            }
        }
        Ok(drafts)
    }

    /// Σ ln sd, plus ln of the half point of the rule.
    pub(super) fn cost(&self, wish: &Wish) -> f64 {
        let parts: f64 = self.parts.iter().map(|part| libm::log(part.standard_deviation())).sum();
        let weight = if wish.keys.is_some() { 1.0 } else { 0.0 };
        parts + weight * self.rule.as_ref().map_or(0.0, |rule| libm::log(rule.half_point()))
    }

    /// ε in equal shares, two of them for an item that also chooses keys; all of δ for the keys.
    fn pure(wish: &Wish) -> Result<Self, EngineError> {
        let shares = Rational::from(wish.items.len() as u64 + u64::from(wish.keys.is_some()));
        let share = &wish.guarantee.epsilon.exact() / &shares;
        let mut draft = Self { parts: Vec::new(), rule: None, design: "pure" };
        for item in &wish.items {
            draft.parts.push(Part::Laplace { scale: &in_l1(item)? / &share });
        }
        if let Some(keys) = wish.keys {
            let moved = Rational::from(keys.moved);
            let both = if keys.reuse.is_some() { &share + &share } else { share };
            draft.choose_keys(wish, &moved / &both, wish.guarantee.delta.exact())?;
        }
        Ok(draft)
    }

    /// One e for every group of every item and for every key, as large as all of them together allow.
    fn signs(wish: &Wish) -> Result<Self, EngineError> {
        let (epsilon, delta) = target(wish);
        let lost = wish.keys.map_or(0.0, |_| delta * share_of_keys(wish.items.len()));
        let mut signs = wish.keys.filter(|keys| keys.reuse.is_none()).map_or(0, |keys| keys.moved);
        for item in &wish.items {
            signs += item.blocks()?;
        }
        let scale = short_up(1.0 / largest_step(signs, lost, epsilon, delta))?;
        let mut draft = Self { parts: Vec::new(), rule: None, design: "signs" };
        for item in &wish.items {
            draft.parts.push(Part::Laplace { scale: item.sensitivity.l1() * &scale });
        }
        if wish.keys.is_some() {
            draft.choose_keys(wish, scale, short_down(lost)?)?;
        }
        Ok(draft)
    }

    /// μ² in equal shares, one of them for keys that have noise of their own.
    fn gaussian(wish: &Wish) -> Result<Self, EngineError> {
        let delta = wish.guarantee.delta.exact();
        let own_keys = wish.keys.filter(|keys| keys.reuse.is_none());
        let shares = wish.items.len() + usize::from(own_keys.is_some());
        let for_keys = match wish.keys {
            Some(_) => {
                &delta * &Rational::try_from(share_of_keys(shares)).unwrap_or_else(|_| Rational::zero())
            }
            None => Rational::zero(),
        };
        let sigma = gaussian_sigma_rough(&wish.guarantee.epsilon.exact(), &(&delta - &for_keys));
        let spread = sigma * sigma * shares as f64;
        let mut draft = Self { parts: Vec::new(), rule: None, design: "gaussian" };
        for item in &wish.items {
            draft.parts.push(Part::Gaussian { variance: variance(item, spread)? });
        }
        if let Some(keys) = wish.keys {
            let variance = match keys.reuse.and_then(|index| draft.parts.get(index)) {
                Some(Part::Gaussian { variance }) => variance.clone(),
                _ => &short_up(spread * keys.moved as f64 * ROUNDING)? + &smoothing(),
            };
            let (threshold, lost) = gaussian_threshold(variance.to_f64(), keys.moved, for_keys.to_f64_down());
            let delta = Some(short_up(lost)?.min(for_keys));
            draft.rule = Some(Rule { part: Part::Gaussian { variance }, threshold, delta });
        }
        Ok(draft)
    }

    /// Gaussian items, and keys of truncated noise whose scale is searched for.
    fn mixed(wish: &Wish) -> Result<Option<Self>, EngineError> {
        let Some(keys) = wish.keys else { return Ok(None) };
        let (epsilon, delta) = target(wish);
        let items = wish.items.len() - usize::from(keys.reuse.is_some());
        let lost = delta * share_of_keys(items);
        let mu = |scale: f64, precision: f64| {
            Profile::new(keys.moved, 1.0 / scale, lost).largest_mu(epsilon, delta, precision)
        };
        let weight = if keys.reuse.is_some() { 2.0 } else { 1.0 };
        // Items have standard deviations in proportion to 1/μ, keys in proportion to the scale.
        let cost = |log_scale: f64| {
            let scale = libm::exp(log_scale);
            mu(scale, 1e-4).map_or(f64::INFINITY, |mu| weight * log_scale - items as f64 * libm::log(mu))
        };
        let narrow = libm::log(1.0 / epsilon);
        let log_scale = least(cost, narrow, narrow + libm::log(keys.moved as f64) + 5.0);
        let scale = short_up(libm::exp(log_scale))?;
        let Some(mu) = mu(scale.to_f64_down(), 1e-9) else { return Ok(None) };
        let spread = items as f64 / (mu * mu);
        let mut draft = Self { parts: Vec::new(), rule: None, design: "mixed" };
        for item in &wish.items {
            draft.parts.push(Part::Gaussian { variance: variance(item, spread)? });
        }
        draft.choose_keys(wish, scale, short_down(lost)?)?;
        Ok(Some(draft))
    }

    /// Truncated noise for keys, and for the item that counts them.
    fn choose_keys(&mut self, wish: &Wish, scale: Rational, delta: Rational) -> Result<(), EngineError> {
        let Some(keys) = wish.keys else { return Ok(()) };
        let part = Part::Truncated { scale, delta: &delta / &Rational::from(keys.moved) };
        if let Some(reused) = keys.reuse.and_then(|index| self.parts.get_mut(index)) {
            *reused = part.clone();
        }
        self.rule = Some(Rule { part, threshold: 0, delta: None });
        Ok(())
    }

    /// Which design it is.
    #[cfg(test)]
    pub(super) fn name(&self) -> &'static str {
        self.design
    }

    /// The noise itself.
    pub(super) fn build(self, wish: &Wish) -> Result<Pricing, EngineError> {
        let moved = wish.keys.map_or(0, |keys| keys.moved);
        let build = |(part, item): (&Part, &Item)| part.build(item, moved);
        let noises = self.parts.iter().zip(&wish.items).map(build).collect::<Result<Vec<_>, _>>()?;
        let rule = match self.rule {
            Some(rule) => Some(rule.build(wish.reused(), &noises, moved)?),
            None => None,
        };
        Ok(Pricing { noises, rule, design: self.design })
    }
}

impl Part {
    fn build(&self, item: &Item, moved: u64) -> Result<Noise, EngineError> {
        match self {
            Self::Laplace { scale } => Noise::laplace(item, scale.clone()),
            Self::Truncated { scale, delta } => Noise::truncated(moved, scale.clone(), delta),
            Self::Gaussian { variance } => Noise::gaussian(item, variance.clone()),
        }
    }

    fn standard_deviation(&self) -> f64 {
        match self {
            // √(2r)/(1 − r) with r = e^(−1/t)
            Self::Laplace { scale } | Self::Truncated { scale, .. } => {
                let rate = 1.0 / scale.to_f64();
                (2.0 * libm::exp(-rate)).sqrt() / -libm::expm1(-rate)
            }
            Self::Gaussian { variance } => variance.to_f64().sqrt(),
        }
    }
}

impl Rule {
    fn build(self, reuse: Option<usize>, noises: &[Noise], moved: u64) -> Result<KeyRule, EngineError> {
        let noise = match reuse.and_then(|index| noises.get(index)) {
            Some(noise) => noise.clone(),
            None => self.part.build(&unit_count(moved)?, moved)?,
        };
        Ok(match self.delta {
            Some(delta) => KeyRule::threshold(noise, self.threshold, delta, reuse),
            None => KeyRule::truncated(noise, reuse),
        })
    }

    /// The half point, to a fraction of a unit.
    fn half_point(&self) -> f64 {
        match &self.part {
            // r^−(τ+1) = 1 + (e^(1/t) − 1 + δ(1 − r))/(δ(1 + r))
            Part::Truncated { scale, delta } => {
                let (rate, delta) = (1.0 / scale.to_f64(), delta.to_f64());
                let ratio = libm::exp(-rate);
                let excess = (libm::expm1(rate) + delta * (1.0 - ratio)) / (delta * (1.0 + ratio));
                1.0 + libm::log1p(excess) / rate
            }
            _ => self.threshold as f64 + 1.0,
        }
    }
}

/// The number of units of a group.
fn unit_count(moved: u64) -> Result<Item, EngineError> {
    Ok(Item::new("units", moved, demur_core::Sensitivity::scalar(Rational::one())?))
}

/// Δ₁ over all groups and copies.
fn in_l1(item: &Item) -> Result<Rational, EngineError> {
    Ok(&Rational::from(item.blocks()?) * item.sensitivity.l1())
}

/// The variance that gives all copies of an item a share of 1/`spread` of μ².
fn variance(item: &Item, spread: f64) -> Result<Rational, EngineError> {
    let together = &item.l2_squared() * &Rational::from(item.copies);
    Ok(&short_up(spread * together.to_f64_up() * ROUNDING)? + &smoothing())
}

fn target(wish: &Wish) -> (f64, f64) {
    (wish.guarantee.epsilon.exact().to_f64_down(), wish.guarantee.delta.exact().to_f64_down())
}

/// Which part of δ goes to the keys.
///
/// The half point grows with ln(1/δ), a standard deviation with its root: so for k items −ln x − (k/2)·ln(1 − x) is about least.
fn share_of_keys(items: usize) -> f64 {
    2.0 / (2.0 + items as f64)
}

/// The place of the least value of a function with one valley, by golden section.
fn least(f: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    let golden = (5.0f64.sqrt() - 1.0) / 2.0;
    let (mut a, mut b) = (high - golden * (high - low), low + golden * (high - low));
    let (mut at_a, mut at_b) = (f(a), f(b));
    for _ in 0..10 {
        // Where nothing is private on either side, wider is better.
        if at_a < at_b {
            (high, b, at_b) = (b, a, at_a);
            a = high - golden * (high - low);
            at_a = f(a);
        } else {
            (low, a, at_a) = (a, b, at_b);
            b = low + golden * (high - low);
            at_b = f(b);
        }
    }
    if at_a < at_b { a } else { b }
}

/// Up to seven digits, not below `value`.
fn short_up(value: f64) -> Result<Rational, EngineError> {
    short(value, 1)
}

/// Up to seven digits, not above `value`.
fn short_down(value: f64) -> Result<Rational, EngineError> {
    short(value, 0)
}

fn short(value: f64, above: u64) -> Result<Rational, EngineError> {
    let overflow =
        || EngineError::new("engine.price.range", format!("a noise of size {value} cannot be made"));
    if !(value > 0.0 && value.is_finite()) {
        return Err(overflow());
    }
    let places = 6 - libm::log10(value).floor() as i32;
    let ten = |power: i32| format!("1e{power}").parse::<Rational>().map_err(|_| overflow());
    let exact = Rational::try_from(value).map_err(|_| overflow())?;
    let scaled = &exact * &ten(places)?;
    let whole = if above == 1 { scaled.ceil() } else { scaled.floor() };
    Ok(&Rational::from(whole) * &ten(-places)?)
}
