//! Rényi divergences, and the guarantee they give.
//!
//! **Definition.** D_α = ln E_P[e^((α − 1)L)]/(α − 1) for orders α > 1. Composition adds them. Noise known
//! only to be ρ-zero-concentrated has D_α ≤ ρα for every α.
//!
//! **Guarantee.** For every α > 1
//!
//! ```text
//! δ(ε) ≤ e^((α − 1)(D_α − ε))·(1 − 1/α)^α/(α − 1)
//! ε(δ) ≤ D_α + ln(1 − 1/α) − ln(αδ)/(α − 1)
//! ```
//!
//! **Why.** (1 − e^(ε − L))⁺ ≤ e^((α − 1)(L − ε))·c^c/(c + 1)^(c + 1) with c = α − 1, the largest value of
//! (1 − e^(−t))·e^(−ct) (at e^(−t) = c/(c + 1)); take the expectation.
//!
//! **Lower bound.** Gaussian noise with μ² = 2ρ is ρ-zero-concentrated, so a composition that contains
//! it can cost what it costs with that noise.
//!
//! **References.** \[Canonne2020\] Proposition 12, \[Mironov2017\].

use demur_exact::Rational;

use crate::account::Question;
use crate::inversion::Sum;
use crate::way::Way;
use crate::{AccountingError, Bounds};

/// D_α in one direction.
pub(crate) fn divergence(way: &Way, order: &Rational) -> Result<Bounds, AccountingError> {
    way.must_have_moments()?;
    let c = (order - &Rational::one()).to_f64();
    if c.is_nan() || c <= 0.0 || c > 1e6 {
        return Err(AccountingError::new(
            "accounting.order",
            format!(
                "the order of a Rényi divergence must be above 1 and at most 1000001, but {order} was given"
            ),
        ));
    }
    if way.lost().upper > 0.0 {
        return Err(AccountingError::new(
            "accounting.infinite",
            "the Rényi divergence is infinite: some outputs are possible on one side only",
        ));
    }
    let upper = curve(way, c);
    if !upper.is_finite() {
        return Err(AccountingError::new(
            "accounting.order",
            format!(
                "the Rényi divergence of order {order} takes too long to compute here; ask for a smaller order"
            ),
        ));
    }
    let known = way.sum.log_moment(c).lower / c * (1.0 - 1e-15);
    let concentrated = way.terms.rho.to_f64_down() * (1.0 + c) * (1.0 - 1e-15);
    Ok(Bounds::new((known + concentrated).min(upper), upper))
}

/// An upper bound on D_α for α = c + 1, given that the loss is finite.
pub(crate) fn curve(way: &Way, c: f64) -> f64 {
    let known = way.sum.log_moment(c).upper / c;
    let concentrated = way.terms.rho.to_f64_up() * (c + 1.0);
    let points: f64 = way.terms.curves.iter().map(|(points, count)| point(points, c) * *count as f64).sum();
    (known + concentrated + points) * (1.0 + 1e-15)
}

/// D_α ≤ that of the next larger order that is known.
fn point(points: &[(Rational, Rational)], c: f64) -> f64 {
    let known = points.iter().filter(|(order, _)| order.to_f64_down() >= c + 1.0);
    known.map(|(_, bound)| bound.to_f64_up()).fold(f64::INFINITY, f64::min)
}

/// An upper bound on δ(ε) or ε(δ) from one order that is good enough to tell what does not count.
pub(crate) fn rough(way: &Way, question: Question<'_>) -> Option<f64> {
    way.must_have_moments().ok()?;
    match question {
        Question::Delta { epsilon } => {
            let epsilon = epsilon.to_f64_down();
            let saddle = way.sum.saddle_for_epsilon(epsilon).map(|(c, _)| c);
            let inside = of_one_order(saddle, |c| c * (curve(way, c) - epsilon) + log_payoff(c));
            let inside = inside.map_or(1.0, |log| (log.exp() * (1.0 + 1e-12)).min(1.0));
            Some(way.with_infinite(Bounds::new(0.0, inside)).upper)
        }
        Question::Epsilon { delta } => {
            let log_delta = log(delta);
            let saddle = way.sum.saddle_for_delta(log_delta).map(|(c, _)| c);
            let bound = of_one_order(saddle, |c| curve(way, c) + (log_payoff(c) - log_delta) / c)?;
            (way.lost().upper == 0.0).then(|| bound.max(0.0) + f64::MIN_POSITIVE)
        }
    }
}

/// The bound of order c + 1 at the saddle, or the best of a few where no saddle was found.
fn of_one_order(saddle: Option<f64>, bound: impl Fn(f64) -> f64) -> Option<f64> {
    match saddle {
        Some(c) => Some(bound(c)),
        None => (0..6).map(|power| bound(4f64.powi(power))).reduce(f64::min),
    }
    .filter(|bound| bound.is_finite())
}

/// Whether one order shows that this direction costs no more than is known already.
pub(crate) fn is_below(way: &Way, question: Question<'_>, known: Bounds) -> bool {
    known.lower > 0.0 && rough(way, question).is_some_and(|bound| bound <= known.lower)
}

/// Whether δ(ε) is smaller than what anybody would tell, by order 2 or, so many deviations away, by the best one.
pub(crate) fn is_nothing(way: &Way, question: Question<'_>) -> bool {
    const DEVIATIONS: f64 = 30.0;
    let Question::Delta { epsilon: asked } = question else { return false };
    let epsilon = asked.to_f64_down();
    if way.must_have_moments().is_err() || way.lost().upper > 0.0 {
        return false;
    }
    if epsilon > 700.0 && curve(way, 1.0) - epsilon < crate::account::NOTHING.ln() {
        return true;
    }
    let (mean, variance) = way.sum.mean_and_variance();
    let composed = way.must_have_laws().is_ok() && way.single().is_none();
    let far = composed && epsilon > mean + DEVIATIONS * variance.sqrt();
    far && rough(way, question).is_some_and(|bound| bound < crate::account::NOTHING)
}

/// δ(ε) or ε(δ) by the best order.
pub(crate) fn bounds(way: &Way, question: Question<'_>) -> Result<Bounds, AccountingError> {
    way.must_have_moments()?;
    match question {
        Question::Delta { epsilon } => {
            let e = epsilon.to_f64_down();
            let upper =
                least(way, |c, d| c * (d - e) + log_payoff(c)).exp() * (1.0 + 1e-12) + f64::MIN_POSITIVE;
            let inside = Bounds::new(0.0, upper.min(1.0));
            Ok(Bounds::new(floor(way, question), way.with_infinite(inside).upper))
        }
        Question::Epsilon { delta } => {
            let lost = way.lost().upper;
            let within =
                if lost == 0.0 { log(delta) } else { ((delta.to_f64_down() - lost) / (1.0 - lost)).ln() };
            if !within.is_finite() {
                return way.epsilon_of_nothing(delta);
            }
            let upper = least(way, |c, d| d + (log_payoff(c) - within) / c).max(0.0) * (1.0 + 1e-14);
            Ok(Bounds::new(floor(way, question).min(upper), upper))
        }
    }
}

/// ln of a fraction, however small, rounded down.
fn log(value: &Rational) -> f64 {
    if *value <= Rational::zero() {
        return f64::NEG_INFINITY;
    }
    let exponent = value.floor_log2();
    let mantissa = (value * &Rational::power_of_two(-exponent)).to_f64_down();
    mantissa.ln()
        + exponent as f64 * std::f64::consts::LN_2 * if exponent < 0 { 1.0 + 1e-15 } else { 1.0 - 1e-15 }
        - 1e-15
}

/// ln of c^c/(c + 1)^(c + 1).
fn log_payoff(c: f64) -> f64 {
    c * c.ln() - (c + 1.0) * (c + 1.0).ln()
}

/// The least value over all orders; any order is valid, so the search need not be exact.
///
/// ln F and the payoff are convex in c, so δ has one valley and so has ε, a convex function divided
/// by c: walk downhill, then narrow it down.
fn least(way: &Way, value: impl Fn(f64, f64) -> f64) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let at = |log_c: f64| {
        let c = log_c.exp();
        let value = value(c, curve(way, c));
        if value.is_nan() { f64::INFINITY } else { value }
    };
    let orders = way.terms.curves.iter().flat_map(|(points, _)| points);
    let known = orders.map(|(order, _)| at((order.to_f64_down() - 1.0).ln())).fold(f64::INFINITY, f64::min);
    let (mut here, mut step) = (0.0, 0.5);
    let mut best = at(here);
    if at(here + step) >= best {
        step = -step;
    }
    while (-16.0..=14.0).contains(&here) {
        let next = at(here + step);
        here += step;
        if next >= best && best.is_finite() {
            break;
        }
        best = next;
    }
    let (mut low, mut high) = (here - 2.0 * step.abs(), here + 2.0 * step.abs());
    while high - low > 1e-9 {
        let (a, b) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
        let (x, y) = (at(a), at(b));
        best = best.min(x).min(y);
        if x < y { high = b } else { low = a }
    }
    best.min(known)
}

/// What the composition costs when every concentrated loss is Gaussian noise: a lower bound on the worst.
fn floor(way: &Way, question: Question<'_>) -> f64 {
    if !way.terms.curves.is_empty() || way.lost().upper > 0.0 {
        return 0.0;
    }
    let mu_squared = way.sum.mu_squared + 2.0 * way.terms.rho.to_f64_down();
    let sum = Sum { mu_squared: mu_squared * (1.0 - 1e-14), terms: way.sum.terms.clone() };
    match question {
        Question::Delta { epsilon } => {
            let epsilon = epsilon.to_f64_up();
            sum.line_for_epsilon(epsilon, None).map_or(0.0, |line| line.delta(epsilon).lower)
        }
        Question::Epsilon { delta } => {
            let delta = delta.to_f64_up();
            let line = sum.line_for_delta(delta.max(f64::MIN_POSITIVE).ln(), None);
            line.and_then(|line| line.epsilon(delta, delta)).map_or(0.0, |bounds| bounds.lower)
        }
    }
}
