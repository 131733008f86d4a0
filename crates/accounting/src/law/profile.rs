//! δ(ε) of one use, in closed form.
//!
//! **Definition.** δ(ε) = E_P[(1 − e^(ε − L))⁺], which is, piece by piece,
//!
//! ```text
//! atom of probability p at ℓ       p·(1 − e^(ε − ℓ))                                for ε < ℓ
//! stretch [l, h] of density g      8g·e^(ε/2)·sinh²((h − ε)/4)                       for l ≤ ε < h
//!                                  8g·e^(ε/2)·sinh((h + l − 2ε)/4)·sinh((h − l)/4)   for ε < l
//! infinite loss                    its probability
//! Gaussian                         Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ)
//! on a sample, person removed      q·δ(ln(1 + (e^ε − 1)/q))
//! on a sample, person added        β·δ(ln(q·e^ε/β)) with β = q − (1 − q)(e^ε − 1), or 0 when β ≤ 0
//! ```
//!
//! **Exactness.** Every difference with ε is bounded on both sides and everything is a sum of positive
//! terms, so the bounds are a few units in the last place apart, but near the largest loss, where
//! they still hold.

use demur_exact::{Rational, float, gaussian_delta};

use super::{Atom, Base, Direction, Flat, Law, Pieces, Sampling};
use crate::Bounds;

/// What a handful of rounded operations are off by at most, as a share.
const SLACK: f64 = 1e-14;

/// How narrow δ of Gaussian noise must be in doubles, for one use and as one of many parts.
const QUICK: f64 = 1e-12;
const NEARLY: f64 = 1e-10;

/// Two numbers whose difference is a smaller share of them are subtracted as fractions.
const NEAR: f64 = 1e-9;

/// δ(ε) of one use for ε ≥ 0.
pub(crate) fn profile(law: &Law, epsilon: &Rational) -> Bounds {
    let Some(sampling) = &law.sampling else {
        let Bounds { lower, upper } = unsampled(&law.base, &Distance::exact(epsilon));
        return Bounds::new(lower.min(1.0), upper.min(1.0));
    };
    sampled(&law.base, sampling, epsilon.to_f64(), QUICK)
}

/// δ(ε) of one use without infinite losses, for any ε known up to a spread.
pub(crate) fn profile_near(law: &Law, epsilon: f64, spread: f64) -> Bounds {
    let Some(sampling) = &law.sampling else {
        if let Base::Gaussian { mu_squared } = &law.base
            && let Some(quick) = quick_gaussian((epsilon - spread, epsilon + spread), mu_squared, NEARLY)
        {
            return quick;
        }
        return unsampled(&law.base, &Distance::Between(epsilon - spread, epsilon + spread));
    };
    let at = |epsilon: f64| {
        if epsilon < 0.0 && sampling.direction == Direction::Replace {
            // both directions are the same: δ(−t) = 1 − e^(−t)·(1 − δ(t))
            let Bounds { lower, upper } = sampled(&law.base, sampling, -epsilon, NEARLY);
            let of = |delta: f64| -libm::expm1(epsilon) + libm::exp(epsilon) * delta;
            return Bounds::new(of(lower) * (1.0 - SLACK), (of(upper) * (1.0 + SLACK)).min(1.0));
        }
        sampled(&law.base, sampling, epsilon, NEARLY)
    };
    Bounds::new(at(epsilon + spread).lower, at(epsilon - spread).upper)
}

/// δ(ε) on a sample, for any ε but in samples without replacement, where it must not be negative.
fn sampled(base: &Base, sampling: &Sampling, epsilon: f64, width: f64) -> Bounds {
    let Sampling { rate, direction } = *sampling;
    let rise = libm::expm1(epsilon);
    let unsampled = |inside: f64| {
        if let Base::Gaussian { mu_squared } = base {
            let spread = 8.0 * f64::EPSILON * (1.0 + inside.abs());
            if let Some(quick) = quick_gaussian((inside - spread, inside + spread), mu_squared, width) {
                return quick;
            }
        }
        unsampled(base, &Distance::near(inside))
    };
    match direction {
        Direction::Remove | Direction::Replace if rise <= -rate => {
            // every loss is larger
            Bounds::new(-rise * (1.0 - SLACK), (-rise * (1.0 + SLACK)).min(1.0))
        }
        Direction::Remove | Direction::Replace => {
            // ln(1 + (e^ε − 1)/q), without e^ε where that is too large for a double
            let inside = if epsilon < 700.0 { libm::log1p(rise / rate) } else { epsilon - rate.ln() };
            scale(unsampled(inside), rate)
        }
        Direction::Add => {
            let beta = rate - (1.0 - rate) * rise;
            let spread = 4.0 * f64::EPSILON * (rate + rise);
            let part = |beta: f64| match beta > 0.0 {
                true => scale(unsampled((rate / beta).ln() + epsilon), beta),
                false => Bounds::new(0.0, 0.0),
            };
            Bounds::new(part(beta - spread).lower, part(beta + spread).upper)
        }
    }
}

/// E_P[(1 − e^(ε − L))⁺] over one flat stretch, for any ε known up to a spread.
pub(crate) fn of_flat(flat: &Flat, epsilon: f64, spread: f64) -> Bounds {
    let pieces = Pieces { flats: vec![flat.clone()], ..Pieces::default() };
    of_pieces(&pieces, &Distance::Between(epsilon - spread, epsilon + spread))
}

/// The same on a sample.
pub(crate) fn of_sampled_flat(flat: &Flat, sampling: &Sampling, epsilon: f64, spread: f64) -> Bounds {
    let of = |flat: &Flat, inside: f64| of_flat(flat, inside, 8.0 * f64::EPSILON * (1.0 + inside.abs()));
    let at = |epsilon: f64| {
        let (rate, rise) = (sampling.rate, libm::expm1(epsilon));
        match sampling.direction {
            Direction::Add => {
                let back = Flat { low: -flat.high, high: -flat.low, density: flat.density };
                let spread = 4.0 * f64::EPSILON * (rate + rise.abs());
                let part = |beta: f64| match beta > 0.0 {
                    true => scale(of(&back, (rate / beta).ln() + epsilon), beta),
                    false => Bounds::new(0.0, 0.0),
                };
                let beta = rate - (1.0 - rate) * rise;
                Bounds::new(part(beta - spread).lower, part(beta + spread).upper)
            }
            _ if rise > -rate => scale(of(flat, libm::log1p(rise / rate)), rate),
            _ => {
                // every loss is larger: q·P + (1 − q − E)·Q
                let mass = |sign: f64| {
                    let (low, high) = (sign * flat.low / 2.0, sign * flat.high / 2.0);
                    2.0 * flat.density * libm::exp(low.min(high)) * libm::expm1((high - low).abs())
                };
                let all = rate * mass(1.0) + (-rise - rate).max(0.0) * mass(-1.0);
                Bounds::new(all * (1.0 - SLACK), all * (1.0 + SLACK))
            }
        }
    };
    Bounds::new(at(epsilon + spread).lower, at(epsilon - spread).upper)
}

fn scale(bounds: Bounds, factor: f64) -> Bounds {
    let upper = (bounds.upper * factor * (1.0 + SLACK)).min(1.0);
    Bounds::new(bounds.lower * factor * (1.0 - SLACK), upper)
}

/// ε, known exactly or nearly.
enum Distance {
    /// As a fraction, its double, and what it is above that.
    Exact { epsilon: Rational, double: f64, rest: f64 },
    /// Between two doubles.
    Between(f64, f64),
}

impl Distance {
    fn exact(epsilon: &Rational) -> Self {
        let double = epsilon.to_f64();
        let rest = Rational::try_from(double).map_or(0.0, |rounded| (epsilon - &rounded).to_f64());
        Self::Exact { epsilon: epsilon.clone(), double, rest }
    }

    fn near(epsilon: f64) -> Self {
        let spread = 8.0 * f64::EPSILON * (1.0 + epsilon.abs());
        Self::Between(epsilon - spread, epsilon + spread)
    }

    /// Bounds on ℓ − ε for an atom at ℓ, whose double is given.
    fn to(&self, atom: &Atom, loss: f64) -> (f64, f64) {
        match self {
            Self::Exact { epsilon, double, rest } => {
                // The difference of the doubles and what it is rounded by, exactly; then the rests.
                let gap = loss - double;
                let part = loss - gap;
                let rounded = (part - double) + (loss - (gap + part));
                let gap = gap + (rounded + (atom.rest - rest));
                if gap.abs() > NEAR * (loss.abs() + double.abs()) {
                    let spread = 2.0 * f64::EPSILON * gap.abs();
                    return (gap - spread, gap + spread);
                }
                let gap = &atom.loss - epsilon;
                (gap.to_f64_down(), gap.to_f64_up())
            }
            Self::Between(low, high) => self.to_double(loss, (*low, *high)),
        }
    }

    fn to_double(&self, loss: f64, (low, high): (f64, f64)) -> (f64, f64) {
        let spread = 4.0 * f64::EPSILON * (loss.abs() + high.abs());
        (loss - high - spread, loss - low + spread)
    }

    fn ends(&self) -> (f64, f64) {
        match self {
            Self::Exact { epsilon, .. } => (epsilon.to_f64_down(), epsilon.to_f64_up()),
            Self::Between(low, high) => (*low, *high),
        }
    }
}

fn unsampled(base: &Base, epsilon: &Distance) -> Bounds {
    match base {
        Base::Gaussian { mu_squared } => {
            let (low, high) = epsilon.ends();
            let mu = root(mu_squared);
            Bounds::new(gaussian(high, mu.0).lower, gaussian(low, mu.1).upper)
        }
        Base::Pieces(pieces) => of_pieces(pieces, epsilon),
    }
}

/// Doubles between which μ lies.
pub(crate) fn root(mu_squared: &Rational) -> (f64, f64) {
    (mu_squared.to_f64_down().sqrt().next_down(), float::sqrt_up(mu_squared.to_f64_up()))
}

/// δ(ε) of Gaussian noise, for any ε and for μ > 0.
pub(crate) fn gaussian(epsilon: f64, mu: f64) -> Bounds {
    if mu < 1e-150 && epsilon >= 0.0 {
        return Bounds::new(0.0, mu.max(0.0)); // δ(ε) ≤ δ(0) ≤ μ/√(2π)
    }
    if mu <= 0.0 {
        return Bounds::new(0.0, -libm::expm1(epsilon.min(0.0)) * (1.0 + SLACK));
    }
    let (Ok(size), Ok(mu)) = (Rational::try_from(epsilon.abs()), Rational::try_from(mu)) else {
        return Bounds::new(0.0, 1.0);
    };
    let far = (&(&size / &mu) - &(&mu / &Rational::from(2u32))).to_f64();
    let right = if far > 60.0 {
        Bounds::new(0.0, f64::MIN_POSITIVE) // δ ≤ Φ(−far) < e^(−far²/2)
    } else {
        let profile = gaussian_delta(&size, &mu);
        Bounds::new(profile.lower_f64(), profile.upper_f64())
    };
    if epsilon >= 0.0 {
        return right;
    }
    // δ(−t) = 1 − e^(−t)·(1 − δ(t))
    let (rise, fall) = (-libm::expm1(epsilon), libm::exp(epsilon));
    let at = |delta: f64| rise + fall * delta;
    Bounds::new(at(right.lower) * (1.0 - SLACK), (at(right.upper) * (1.0 + SLACK)).min(1.0))
}

/// δ(ε) of Gaussian noise in doubles, where that is good enough: Φ(−a) − e^ε·Φ(−b) with a, b = ε/μ ∓ μ/2.
///
/// Each term is off by 8 units for its functions and products, by |ε| for e^ε, and by |x|·b for its argument x, a or b, which is
/// off by 4 units of b or less and moves ln Φ(−x) by at most |x| + 1 times that.
fn quick_gaussian((low, high): (f64, f64), mu_squared: &Rational, width: f64) -> Option<Bounds> {
    let mu = mu_squared.to_f64().sqrt();
    let at = |epsilon: f64| {
        let (a, b) = (epsilon / mu - mu / 2.0, epsilon / mu + mu / 2.0);
        let tail = |x: f64| 0.5 * libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2);
        let (first, second) = (tail(a), libm::exp(epsilon) * tail(b));
        let far = epsilon.abs() / mu + mu / 2.0;
        let units = 10.0 + 4.0 * (far + 1.0) * far + 2.0 * epsilon.abs();
        (first - second, f64::EPSILON / 2.0 * units * (first + second))
    };
    let ((most, more), (least, less)) = (at(low), at(high));
    let good = more + less <= width * least && low / mu > -30.0 && high / mu < 30.0 && high < 600.0;
    good.then(|| Bounds::new(least - less, (most + more).min(1.0)))
}

fn of_pieces(pieces: &Pieces, epsilon: &Distance) -> Bounds {
    let (mut lower, mut upper) = (pieces.infinite, pieces.infinite);
    for atom in &pieces.atoms {
        let (near, far) = epsilon.to(atom, atom.loss.to_f64());
        lower += atom.probability * -libm::expm1(-near.max(0.0));
        upper += atom.probability * -libm::expm1(-far.max(0.0));
    }
    let ends = epsilon.ends();
    for flat in &pieces.flats {
        let part = |epsilon: f64, to_high: f64, to_low: f64| {
            let height = 8.0 * flat.density * libm::exp(epsilon / 2.0);
            if to_high <= 0.0 {
                0.0
            } else if to_low <= 0.0 {
                height * libm::sinh(to_high / 4.0).powi(2)
            } else {
                height * libm::sinh((to_high + to_low) / 4.0) * libm::sinh((flat.high - flat.low) / 4.0)
            }
        };
        let (high, low) = (epsilon.to_double(flat.high, ends), epsilon.to_double(flat.low, ends));
        lower += part(ends.0, high.0, low.0);
        upper += part(ends.1, high.1, low.1);
    }
    let slack = SLACK + 2.0 * f64::EPSILON * pieces.atoms.len() as f64;
    Bounds::new((lower * (1.0 - slack)).max(0.0), (upper * (1.0 + slack)).max(0.0))
}
