//! [`least_epsilon`]: from a proven profile δ(ε) to a proven ε(δ).

use demur_exact::Rational;

use crate::Bounds;

/// From so large a share of ε on it is worth the time to look how far a step must be.
const LONG: f64 = 1e-11;

/// Bounds on the least ε ≥ 0 with δ(ε) ≤ δ, for a profile that falls with ε.
///
/// The upper bound is an ε where the profile's upper bound was seen to be at most δ, the lower one an ε
/// where its lower bound was seen to be at least δ: whatever path leads there, both are true.
/// `None` when no ε up to `highest` will do.
///
/// **Method.** A bracket that grows around the guess, then the secant of ln δ kept inside it, and at last
/// small steps outward until both bounds hold. A good guess saves most of the work.
pub(crate) fn least_epsilon(
    profile: impl Fn(&Rational) -> Bounds,
    delta: &Rational,
    guess: f64,
    highest: f64,
) -> Option<Bounds> {
    let (at_most, at_least) = (delta.to_f64_down(), delta.to_f64_up());
    let at =
        |epsilon: f64| Rational::try_from(epsilon).map_or(Bounds::new(0.0, 1.0), |exact| profile(&exact));
    // ln δ(ε) − ln δ, falling
    let miss = |epsilon: f64| {
        let Bounds { lower, upper } = at(epsilon);
        ((lower + upper) / 2.0).max(f64::MIN_POSITIVE).ln() - at_most.ln()
    };
    let guess = guess.max(1e-12).min(highest);
    let (mut low, mut high) = bracket(&miss, guess, highest)?;
    if low.0 == 0.0 && at(0.0).upper <= at_most {
        return Some(Bounds::new(0.0, 0.0));
    }
    for round in 0..100 {
        let secant = low.0 + (high.0 - low.0) * low.1 / (low.1 - high.1);
        let tried = if round % 4 == 3 || !(secant > low.0 && secant < high.0) {
            (low.0 + high.0) / 2.0
        } else {
            secant
        };
        if high.0 - low.0 <= 8.0 * f64::EPSILON * high.0 || tried <= low.0 || tried >= high.0 {
            break;
        }
        let value = miss(tried);
        if value > 0.0 {
            low = (tried, value)
        } else {
            high = (tried, value)
        }
        if value.abs() < 1e-14 {
            (low.0, high.0) = (tried, tried);
            break;
        }
    }
    let (low, high) = (low.0, high.0);
    let outward = |start: f64, sign: f64, holds: &dyn Fn(Bounds) -> bool| {
        let (mut epsilon, mut step, mut before) = (start, f64::EPSILON * start, start);
        while !holds(at(epsilon)) {
            before = epsilon;
            epsilon = (start + sign * step).max(0.0);
            step *= 2.0;
            if epsilon == 0.0 || epsilon > highest {
                return (epsilon == 0.0).then_some(0.0);
            }
        }
        // a long last step is made shorter
        for _ in 0..if step > LONG * start { 3 } else { 0 } {
            let middle = (before + epsilon) / 2.0;
            if holds(at(middle)) { epsilon = middle } else { before = middle }
        }
        Some(epsilon)
    };
    let upper = outward(high, 1.0, &|bounds| bounds.upper <= at_most)?;
    let lower = outward(low, -1.0, &|bounds| bounds.lower >= at_least).unwrap_or(0.0);
    Some(Bounds::new(lower.min(upper), upper))
}

/// An ε where the profile is too large and one where it is not, each with its miss.
fn bracket(miss: &impl Fn(f64) -> f64, guess: f64, highest: f64) -> Option<((f64, f64), (f64, f64))> {
    let here = (guess, miss(guess));
    let mut step = 1e-9 * guess;
    let mut inner = here;
    loop {
        let tried = if here.1 > 0.0 { (guess + step).min(highest) } else { (guess - step).max(0.0) };
        let outer = (tried, miss(tried));
        match (here.1 > 0.0, outer.1 > 0.0) {
            (true, false) => return Some((inner, outer)),
            (false, true) => return Some((outer, inner)),
            (true, true) if tried >= highest => return None,
            (false, false) if tried == 0.0 => return Some((outer, inner)),
            _ => inner = outer,
        }
        step *= 30.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However wide the profile's bounds are, both answers are places where they were seen to hold.
    #[test]
    fn answers_hold_where_bounds_are_wide() {
        let delta = Rational::new(1, 1000);
        for share in [0.0, 1e-13, 1e-9, 1e-4] {
            let profile = |epsilon: &Rational| {
                let middle = libm::exp(-epsilon.to_f64());
                Bounds::new(middle * (1.0 - share), middle * (1.0 + share))
            };
            let found = least_epsilon(profile, &delta, 5.0, 1e3).unwrap();
            let at = |epsilon: f64| profile(&Rational::try_from(epsilon).unwrap());
            assert!(at(found.upper).upper <= 1e-3 && at(found.lower).lower >= 1e-3, "{share}: {found:?}");
            let truth = -libm::log(1e-3);
            assert!(
                found.upper - truth <= 2.0 * share + 1e-13 && truth - found.lower <= 2.0 * share + 1e-13,
                "{share}: {found:?}"
            );
        }
    }
}
