//! Exact composition by inverting the moment function.
//!
//! **Definition.** Composed losses add, so their moments multiply: F(z) = ∏ Kᵢ(z)^nᵢ. For every c > 0
//!
//! ```text
//! δ(ε) = 1/2πi · ∫_{Re z = c} F(z)·e^(−zε)/(z(z + 1)) dz
//! ```
//!
//! **Discretisation.** The trapezoid rule with step h gives
//! T(ε) = Σₙ e^(2πcn/h)·δ(ε + 2πn/h) over all whole n: every term is positive, so
//! T ≥ δ(ε) *whatever h is*. How much it is above is bounded with s = 2π/h:
//!
//! ```text
//! n < 0:  Σ e^(−c|n|s)                                          since δ ≤ 1
//! n > 0:  Σ e^(−(c′ − c)ns) · F(c′)·e^(−c′ε)·c′^c′/(c′ + 1)^(c′ + 1)    for any c′ > c
//! ```
//!
//! the second by (1 − e^(ε − L))⁺ ≤ e^(c′(L − ε))·c′^c′/(c′ + 1)^(c′ + 1).
//!
//! **Truncation.** The sum stops at the first y where the [decay](crate::decay) of the laws proves
//! that the rest is negligible; what it proves is added.
//!
//! **Rounding.** Every node carries a bound on its error, from [`Nodes`] and the products here.
//!
//! **Where.** c is the saddle point: there the sum has least cancellation, and δ keeps its relative
//! accuracy however small it is.
//!
//! **References.** docs/accounting.md; \[Trefethen2014\] for the trapezoid rule.

mod fill;
mod line;
mod saddle;

use demur_exact::Rational;

use crate::Bounds;
use crate::law::{Base, Law};
use crate::nodes::{Moments, Nodes, Reach, UNIT};
pub(crate) use line::Line;
use saddle::{RealMoments, Saddle};

/// What the certified errors shall be below, relatively.
const GOAL: f64 = 1e-13;

/// How far a line is followed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Care {
    /// What may be left out, relatively.
    goal: f64,
    /// How many nodes are tried at most.
    most_nodes: f64,
    /// How many evaluations of single waves are tried at most.
    most_waves: f64,
}

impl Care {
    const USUAL: Self = Self { goal: GOAL, most_nodes: 4e5, most_waves: 3e7 };
    /// Where waves fade late and all but a few of them cancel.
    pub(crate) const FAR: Self = Self { goal: 1e-11, most_nodes: 1e8, most_waves: 2e8 };
}
/// How many nodes the laws may have together.
const MOST_WIDTH: f64 = 3e5;

/// Independent losses with finite values, and how often each was paid.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum {
    /// Σ μ² of plain Gaussian noise.
    pub(crate) mu_squared: f64,
    /// Everything else.
    pub(crate) terms: Vec<(Law, f64)>,
}

/// All finite losses are `offset` plus multiples of `step`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lattice {
    pub(crate) offset: f64,
    pub(crate) step: f64,
}

impl Sum {
    /// The line for δ near `epsilon`; `None` when no decay can be proven with affordable effort.
    pub(crate) fn line_for_epsilon(&self, epsilon: f64, lattice: Option<Lattice>) -> Option<Line> {
        let mut real = RealMoments::new(self);
        let saddle = real.saddle(|saddle| saddle.epsilon - epsilon)?;
        Line::new(self, &mut real, saddle, lattice, Care::USUAL)
    }

    /// The line for ε near δ.
    pub(crate) fn line_for_delta(&self, log_delta: f64, lattice: Option<Lattice>) -> Option<Line> {
        let mut real = RealMoments::new(self);
        let saddle = real.saddle(|saddle| log_delta - saddle.log_delta)?;
        Line::new(self, &mut real, saddle, lattice, Care::USUAL)
    }

    /// The line at a given c, for δ near `epsilon`.
    pub(crate) fn line_at(&self, tilt: f64, (epsilon, log_delta): (f64, f64), care: Care) -> Option<Line> {
        let mut real = RealMoments::new(self);
        let saddle = Saddle { epsilon, log_delta, ..real.at(tilt) };
        Line::new(self, &mut real, saddle, None, care)
    }

    /// Whether the moments at real c can be had in good time.
    fn affordable(&self, tilt: f64) -> bool {
        let reach = Reach { tilt, frequency: 0.0, tolerance: 1e-18 };
        self.terms.iter().map(|(law, _)| Nodes::expected(law, reach)).sum::<f64>() < MOST_WIDTH
    }

    /// ln F(c) for real c; without an upper bound where it would take too long.
    pub(crate) fn log_moment(&self, tilt: f64) -> Bounds {
        if !self.affordable(tilt) {
            return Bounds::new(0.0, f64::INFINITY);
        }
        let tolerance = (1e-15 / self.uses().max(1.0)).max(1e-19);
        let gaussian = tilt * (tilt + 1.0) / 2.0 * self.mu_squared;
        let (mut lower, mut upper) = (gaussian * (1.0 - 8.0 * UNIT), gaussian * (1.0 + 8.0 * UNIT));
        for (law, count) in &self.terms {
            let one = law.log_moment_of_whole_order(tilt).unwrap_or_else(|| log_moment(law, tilt, tolerance));
            lower = (lower + count * one.lower) * (1.0 - 4.0 * UNIT);
            upper = (upper + count * one.upper) * (1.0 + 4.0 * UNIT);
        }
        Bounds::new(lower.max(0.0), upper)
    }

    /// ln F(c), as the lines are scaled by.
    pub(crate) fn log_scale(&self, tilt: f64) -> f64 {
        RealMoments::new(self).at(tilt).log_moment
    }

    /// Beyond this tilt only the largest loss is left of a bounded law.
    pub(crate) fn highest_tilt(&self) -> f64 {
        let each = self.terms.iter().map(|(law, _)| law.highest_tilt(300.0)).collect::<Option<Vec<_>>>();
        let bounded = each.filter(|_| self.mu_squared == 0.0);
        bounded.map_or(1e7, |tilts| tilts.into_iter().fold(1e7, f64::min))
    }

    /// Mean and variance of the loss.
    pub(crate) fn mean_and_variance(&self) -> (f64, f64) {
        let mut real = RealMoments::new(self);
        let laws = real.moments(0.0);
        let of = |value: fn(&Moments) -> f64| {
            laws.iter().zip(&self.terms).map(|(law, (_, n))| n * value(law)).sum::<f64>()
        };
        (of(|law| law.mean) + self.mu_squared / 2.0, of(|law| law.variance) + self.mu_squared)
    }

    /// Where the line would be placed for δ, and the ε expected there.
    pub(crate) fn saddle_for_delta(&self, log_delta: f64) -> Option<(f64, f64)> {
        let saddle = RealMoments::new(self).saddle(|saddle| log_delta - saddle.log_delta)?;
        Some((saddle.tilt, saddle.epsilon))
    }

    /// Whether the law tilted by e^(cL) is nearly one loss, the largest: its deviation is a small share of 1/c.
    pub(crate) fn is_all_at_the_top(&self, tilt: f64) -> bool {
        const SHARE: f64 = 0.5;
        let laws = RealMoments::new(self).moments(tilt);
        let each = laws.iter().zip(&self.terms).map(|(law, (_, count))| count * law.variance);
        tilt * (each.sum::<f64>() + self.mu_squared).sqrt() < SHARE
    }

    /// Where the line would be placed for ε, and the ln δ expected there.
    pub(crate) fn saddle_for_epsilon(&self, epsilon: f64) -> Option<(f64, f64)> {
        let saddle = RealMoments::new(self).saddle(|saddle| saddle.epsilon - epsilon)?;
        Some((saddle.tilt, saddle.log_delta))
    }

    /// Every law with how often it was paid, all Gaussian noise as one.
    pub(crate) fn all(&self) -> Vec<(Law, f64)> {
        let gaussian = Rational::try_from(self.mu_squared).ok().filter(|mu_squared| !mu_squared.is_zero());
        let gaussian =
            gaussian.map(|mu_squared| (Law { base: Base::Gaussian { mu_squared }, sampling: None }, 1.0));
        self.terms.iter().cloned().chain(gaussian).collect()
    }

    /// How many losses there are, without Gaussian noise.
    pub(crate) fn uses(&self) -> f64 {
        self.terms.iter().map(|(_, count)| count).sum()
    }
}

/// ln K(c) of one law, by nodes that miss a negligible share of it.
fn log_moment(law: &Law, tilt: f64, tolerance: f64) -> Bounds {
    let by = |tolerance: f64| {
        let found = Nodes::of(law, Reach { tilt, frequency: 0.0, tolerance }).moments(tilt).real();
        Bounds::new((found.value.re - found.error).max(0.0), found.value.re + found.error)
    };
    let first = by(tolerance);
    // On rare samples ln K is tiny itself.
    let needed = 1e-14 * first.upper;
    if needed < tolerance && needed > 1e-40 { by(needed / (1.0 + tilt)).and(first) } else { first }
}

/// ln of c^c/(c + 1)^(c + 1), the factor between (1 − e^(−t))⁺ and e^(ct).
fn log_payoff(c: f64) -> f64 {
    c * c.ln() - (c + 1.0) * (c + 1.0).ln()
}
