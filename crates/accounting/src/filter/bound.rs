//! Upper bounds on what a loss costs, in doubles that are never too small.
//!
//! **Exactness.** Every function is a short chain of operations without cancellation: all terms are positive,
//! and no step multiplies a relative error by more than the size of its exponent. The functions of `libm` used
//! here err by less than two units in the last place; each result is enlarged by [`SLACK`] = 2⁻⁴⁰, which covers
//! more than a thousand such errors. Where a number leaves the range of doubles the answer is +∞, or a
//! simpler bound that holds everywhere.
//!
//! **Why each bound holds** is proved in `docs/accounting-filters.md`, section 7.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_2};

use demur_exact::float::{add_up, div_up, mul_up};

/// By how much results are enlarged, relatively.
const SLACK: f64 = 1.0 / (1u64 << 40) as f64;

/// The result of a chain of operations, enlarged beyond its rounding errors.
fn enlarged(value: f64) -> f64 {
    // NaN arises only from ∞ − ∞ or 0·∞: no bound is known.
    if value.is_nan() { f64::INFINITY } else { mul_up(value, 1.0 + SLACK).next_up() }
}

/// ρ of anything ε-private: ε·tanh(ε/2), below both ε²/2 and ε.
pub(super) fn rho_of_pure(epsilon: f64) -> f64 {
    enlarged(epsilon * libm::tanh(epsilon / 2.0)).min(mul_up(epsilon, epsilon) / 2.0).min(epsilon)
}

/// ρ of Laplace noise: ε − (1 − e^−ε)·h/sinh h, where h = 1/scale for whole numbers and 0 for reals.
pub(super) fn rho_of_laplace(epsilon: f64, step: f64) -> f64 {
    enlarged(exp_remainder(epsilon) - libm::expm1(-epsilon) * sinh_deficit(step))
}

/// e^−x − 1 + x for x ≥ 0, without its cancellation.
fn exp_remainder(x: f64) -> f64 {
    if x > 0.5 {
        return libm::expm1(-x) + x;
    }
    // x²/2·(1 − x/3·(1 − x/4·(…))), alternating and cut after a positive term.
    (3..=16).rev().fold(1.0, |inner, n| 1.0 - x / f64::from(n) * inner) * x * x / 2.0
}

/// 1 − h/sinh h for h ≥ 0, without its cancellation.
fn sinh_deficit(h: f64) -> f64 {
    if h > 1.0 {
        return 1.0 - h / libm::sinh(h);
    }
    if h == 0.0 {
        return 0.0;
    }
    // sinh h − h = h³/6·(1 + h²/20·(1 + h²/42·(…))); what is cut is below 10⁻¹⁵ of it.
    let factor = |k: i32| h * h / f64::from(2 * k * (2 * k + 1));
    let series = (2..=9).rev().fold(1.0, |inner, k| 1.0 + factor(k) * inner);
    h * h * h / 6.0 * series / libm::sinh(h)
}

/// D_α of anything ε-private: ln(cosh((α−½)ε)/cosh(ε/2))/(α−1), below ε.
pub(super) fn renyi_of_pure(epsilon: f64, order: u32) -> f64 {
    let (alpha, half) = (f64::from(order), epsilon / 2.0);
    // cosh a − cosh b = 2·sinh((a+b)/2)·sinh((a−b)/2) keeps the digits of small losses.
    let excess = 2.0 * libm::sinh(alpha * half) * libm::sinh((alpha - 1.0) * half) / libm::cosh(half);
    enlarged(libm::log1p(excess) / (alpha - 1.0)).min(epsilon)
}

/// μ² of anything ε-private: (2Φ⁻¹(e^ε/(1 + e^ε)))², below both (π/2)ε² and 8ε.
pub(super) fn mu_squared_of_pure(epsilon: f64) -> f64 {
    let simple = enlarged(FRAC_PI_2 * epsilon * epsilon).min(mul_up(8.0, epsilon));
    if !(1e-3..600.0).contains(&epsilon) {
        return simple; // here (π/2)ε² is within 10⁻⁷ of the truth, or 8ε within a few percent
    }
    let start = (simple / 4.0).sqrt();
    let quantile = if epsilon < 1.0 { by_centre(epsilon, start) } else { by_tail(epsilon, start) };
    quantile.map_or(simple, |x| mul_up(4.0, mul_up(x, x)).min(simple))
}

/// A number x with Φ(x) − ½ = erf(x/√2)/2 at least tanh(ε/2)/2, if the check succeeds.
fn by_centre(epsilon: f64, start: f64) -> Option<f64> {
    let target = libm::tanh(epsilon / 2.0);
    let centre = |x: f64| libm::erf(x * FRAC_1_SQRT_2);
    let x = newton(start, |x| (target - centre(x)) / (2.0 * density(x))) * (1.0 + 8.0 * SLACK);
    (centre(x) * (1.0 - SLACK) >= target).then_some(x)
}

/// A number x with 1 − Φ(x) = erfc(x/√2)/2 at most 1/(1 + e^ε), if the check succeeds.
fn by_tail(epsilon: f64, start: f64) -> Option<f64> {
    let target = 1.0 / (1.0 + libm::exp(epsilon));
    let tail = |x: f64| libm::erfc(x * FRAC_1_SQRT_2) / 2.0;
    // The logarithm of the tail is nearly a parabola.
    let x = newton(start, |x| libm::log(tail(x) / target) * tail(x) / density(x)) * (1.0 + 8.0 * SLACK);
    (tail(x) * (1.0 + SLACK) <= target).then_some(x)
}

fn newton(start: f64, step: impl Fn(f64) -> f64) -> f64 {
    let mut x = start;
    for _ in 0..12 {
        let by = step(x);
        x += by;
        if by.abs() < 1e-13 * x {
            break;
        }
    }
    x
}

fn density(x: f64) -> f64 {
    libm::exp(-x * x / 2.0) * 0.398_942_280_401_432_7
}

/// ε on a Poisson sample: ln(1 + q(e^ε − 1)), below ε.
pub(super) fn sampled_epsilon(rate: f64, epsilon: f64) -> f64 {
    enlarged(libm::log1p(rate * libm::expm1(epsilon))).min(epsilon)
}

/// The chance 1 − (1 − q)^k that a sample has one of k people.
pub(super) fn rate_of_group(rate: f64, size: f64) -> f64 {
    enlarged(-libm::expm1(size * libm::log1p(-rate))).min(1.0)
}

/// D_α of Gaussian noise on a Poisson sample, in the worse direction; +∞ where doubles do not reach.
///
/// ```text
/// (α − 1)·D_α = ln(1 + Σₖ C(α, k)·(1 − q)^(α−k)·q^k·(e^(k(k−1)μ²/2) − 1))
/// ```
///
/// The terms come from one another by sums and products of positive numbers: the step to k adds at most 4k + 8
/// units in the last place to the error, 4α² + 64 in all.
pub(super) fn renyi_of_sampled_gaussian(rate: f64, mu_squared: f64, order: u32) -> f64 {
    let alpha = f64::from(order);
    let (odds, growth) = (rate / (1.0 - rate), libm::expm1(mu_squared));
    let mut weight = libm::exp((alpha - 1.0) * libm::log1p(-rate)) * alpha * rate;
    if weight < f64::MIN_POSITIVE {
        return f64::INFINITY; // no digits to start with
    }
    // With k: `step` is e^(kμ²) − 1 and `above` is e^(k(k+1)μ²/2) − 1. The weights rise and then fall; what
    // those that leave the range of doubles lose is at most half of the smallest double at each step.
    let (mut above, mut step, mut sum) = (0.0, 0.0, 0.0);
    let lost = alpha * f64::from_bits(1);
    for k in 1..order {
        weight *= f64::from(order - k) / f64::from(k + 1) * odds;
        step += growth + step * growth;
        above += step + above * step;
        sum += (weight + lost) * above;
    }
    enlarged(libm::log1p(sum) / (alpha - 1.0) * (1.0 + (4.0 * alpha * alpha + 64.0) * f64::EPSILON))
}

/// δ of a group: δ·(e^(kε) − 1)/(e^ε − 1), for k people.
pub(super) fn delta_of_group(epsilon: f64, delta: f64, size: f64) -> f64 {
    let factor = libm::expm1(size * epsilon) / libm::expm1(epsilon);
    enlarged(factor * delta).max(f64::MIN_POSITIVE)
}

/// δ of truncated Laplace noise of scale 1 on [−bound, bound], for a move of at most `bound`.
///
/// `inner` is bound − move, rounded down; `bound` and `shift` are rounded so that δ only grows.
pub(super) fn delta_of_truncated(inner: f64, bound: f64, shift: f64) -> f64 {
    let mass = libm::exp(-inner) * -libm::expm1(-shift) / (-2.0 * libm::expm1(-bound));
    // The exponent is exact to half a unit: 2⁻⁵³·745, far below the slack.
    enlarged(mass).max(f64::MIN_POSITIVE)
}

/// δ of truncated discrete Laplace noise: (r^(τ+1−Δ) − r^(τ+1))/(1 + r − 2r^(τ+1)), r = e^(−1/t).
///
/// The arguments are (τ + 1 − Δ)/t, (τ + 1)/t, Δ/t and 1/t.
pub(super) fn delta_of_truncated_discrete(inner: f64, outer: f64, shift: f64, step: f64) -> f64 {
    let above = libm::exp(-inner) * -libm::expm1(-shift);
    // 1 + r − 2r^(τ+1) = (1 − r^(τ+1)) + r(1 − r^τ)
    let total = -libm::expm1(-outer) - libm::exp(-step) * libm::expm1(step - outer);
    enlarged(above / total).max(f64::MIN_POSITIVE)
}

/// a + b·c, rounded up.
pub(super) fn add_product_up(a: f64, b: f64, c: f64) -> f64 {
    add_up(a, mul_up(b, c))
}

/// 1/√a, rounded up, for what would fit.
pub(super) fn inverse_root_up(a: f64) -> f64 {
    div_up(1.0, a.sqrt().next_down())
}

#[cfg(test)]
mod tests {
    use super::*;
    use demur_exact::{Enclosure, Rational, exp_neg, normal_tail};

    const EPSILONS: [f64; 12] = [1e-12, 1e-6, 1e-3, 0.01, 0.1, 0.5, 0.999, 1.0, 2.5, 8.0, 40.0, 550.0];
    const BITS: usize = 1_200;

    fn exact(x: f64) -> Rational {
        Rational::try_from(x).unwrap()
    }

    fn lower(x: &Enclosure) -> Rational {
        Rational::dyadic(x.lower().clone(), -(x.bits() as i64))
    }

    fn upper(x: &Enclosure) -> Rational {
        Rational::dyadic(x.upper().clone(), -(x.bits() as i64))
    }

    fn exp_minus(x: f64) -> Enclosure {
        exp_neg(&exact(x), BITS)
    }

    /// a ≥ b but not by much.
    fn assert_just_above(a: &Rational, b: &Rational, what: &str) {
        assert!(a >= b, "{what}: {} is below {}", a.to_f64(), b.to_f64());
        assert!(*a <= b * &exact(1.0 + 1e-9), "{what}: {} is far above {}", a.to_f64(), b.to_f64());
    }

    #[test]
    fn rho_of_what_is_pure_is_above_the_exact_value() {
        for epsilon in EPSILONS {
            // ε·tanh(ε/2) = ε·(1 − e^−ε)/(1 + e^−ε)
            let (low, one) = (exp_minus(epsilon), Rational::one());
            let at_least = &exact(epsilon) * &(&(&one - &upper(&low)) / &(&one + &upper(&low)));
            assert_just_above(&exact(rho_of_pure(epsilon)), &at_least, "ρ");
            assert!(rho_of_pure(epsilon) <= epsilon.min(mul_up(epsilon, epsilon) / 2.0));
        }
        assert_eq!(rho_of_pure(0.0), 0.0);
    }

    /// In exact arithmetic, with h/sinh h = 2h·e^−h/(1 − e^−2h).
    #[test]
    fn rho_of_laplace_noise_is_above_the_exact_value() {
        for epsilon in EPSILONS {
            for step in [0.0, 1e-9, 0.01, 0.5, 0.99, 1.01, 7.0] {
                let one = Rational::one();
                let ratio = match step == 0.0 {
                    true => one.clone(),
                    false => {
                        let (once, twice) = (exp_minus(step), exp_minus(2.0 * step));
                        &(&(&exact(2.0) * &exact(step)) * &upper(&once)) / &(&one - &upper(&twice))
                    }
                };
                let truth = &exact(epsilon) - &(&(&one - &lower(&exp_minus(epsilon))) * &ratio);
                assert_just_above(&exact(rho_of_laplace(epsilon, step)), &truth, "ρ");
            }
            // One step of discrete noise is randomized response.
            let (laplace, response) = (rho_of_laplace(epsilon, epsilon), rho_of_pure(epsilon));
            assert!((laplace / response - 1.0).abs() < 1e-11, "ε = {epsilon}: {laplace} and {response}");
        }
    }

    /// D_α ≤ α·ρ for Laplace noise at many orders, from the closed form of D_α.
    #[test]
    fn no_order_of_laplace_noise_exceeds_its_rho() {
        for epsilon in [0.01f64, 0.3, 1.0, 4.0, 20.0] {
            for alpha in [1.01f64, 1.5, 2.0, 3.0, 10.0, 30.0] {
                let first = (alpha / (2.0 * alpha - 1.0)) * ((alpha - 1.0) * epsilon).exp();
                let second = ((alpha - 1.0) / (2.0 * alpha - 1.0)) * (-alpha * epsilon).exp();
                let divergence = (first + second).ln() / (alpha - 1.0);
                let bound = alpha * rho_of_laplace(epsilon, 0.0);
                assert!(
                    divergence <= bound * (1.0 + 1e-9),
                    "ε = {epsilon}, α = {alpha}: {divergence} {bound}"
                );
            }
        }
    }

    /// D_α ≤ α·ρ for discrete Laplace noise at many orders, by summing over all outputs.
    #[test]
    fn no_order_of_discrete_laplace_noise_exceeds_its_rho() {
        for (scale, shift) in [(1.0f64, 1i32), (1.0, 3), (5.0, 2), (0.4, 2), (10.0, 10)] {
            let weight = |k: i32| (-f64::from(k.abs()) / scale).exp();
            let range = -400..=400 + shift;
            let total: f64 = range.clone().map(weight).sum();
            for alpha in [1.001f64, 1.5, 2.0, 5.0, 20.0] {
                let ratio = |k: i32| f64::from((k - shift).abs() - k.abs()) / scale;
                let moment: f64 =
                    range.clone().map(|k| weight(k) / total * ((alpha - 1.0) * ratio(k)).exp()).sum();
                let bound = alpha * rho_of_laplace(f64::from(shift) / scale, 1.0 / scale);
                let divergence = moment.ln() / (alpha - 1.0);
                assert!(divergence <= bound * (1.0 + 1e-9), "t = {scale}, Δ = {shift}, α = {alpha}");
            }
        }
    }

    /// e^((α−1)·D) against cosh((α−½)ε)/cosh(ε/2), in exact arithmetic.
    #[test]
    fn divergences_of_what_is_pure_are_above_the_exact_value() {
        for epsilon in [1e-6, 1e-3, 0.1, 1.0, 3.0, 20.0] {
            for order in [2, 3, 7, 19] {
                let divergence = renyi_of_pure(epsilon, order);
                let minus = |times: u32| exp_neg(&(&exact(epsilon) * &Rational::from(times)), BITS);
                let (outer, inner) = (minus(2 * order - 1), minus(order - 1));
                // e^(−(α−1)D)·(e^((α−1)ε) + e^(−αε)) ≤ 1 + e^−ε, all multiplied by e^(−(α−1)ε).
                let spent = &exact(divergence) * &Rational::from(order - 1);
                let one = Rational::one();
                let left = &upper(&exp_neg(&spent, BITS)) * &(&one + &upper(&outer));
                let right = &lower(&inner) * &(&one + &lower(&exp_minus(epsilon)));
                assert!(left <= right, "ε = {epsilon}, α = {order}");
                // A little below it the inequality fails.
                let left = &lower(&exp_neg(&(&spent * &exact(0.999_999)), BITS)) * &(&one + &lower(&outer));
                assert!(left > right || divergence == epsilon, "ε = {epsilon}, α = {order}");
            }
        }
    }

    #[test]
    fn mu_of_what_is_pure_is_above_the_exact_quantile() {
        for epsilon in EPSILONS.into_iter().filter(|epsilon| *epsilon >= 1e-6) {
            // 1 − Φ(μ/2) ≤ 1/(1 + e^ε) = e^−ε/(1 + e^−ε)
            let low = exp_minus(epsilon);
            let target = &lower(&low) / &(&Rational::one() + &lower(&low));
            let half = |factor: f64| exact((mu_squared_of_pure(epsilon) / 4.0).sqrt() * factor);
            let bits = if epsilon > 100.0 { 1_000 } else { 200 };
            assert!(upper(&normal_tail(&half(1.0 - 1e-15), bits)) <= target, "ε = {epsilon}");
            assert!(lower(&normal_tail(&half(1.0 - 1e-6), bits)) > target, "ε = {epsilon}");
        }
        assert!(mu_squared_of_pure(1e5) <= 8e5 && mu_squared_of_pure(0.0) < 1e-300);
    }

    #[test]
    fn epsilon_on_a_sample_is_above_the_exact_value() {
        for epsilon in EPSILONS.into_iter().filter(|epsilon| *epsilon < 100.0) {
            for rate in [1e-9, 0.01, 0.5, 0.999] {
                let sampled = sampled_epsilon(rate, epsilon);
                // e^−ε′ ≤ 1/(1 + q(e^ε − 1)) = e^−ε/(e^−ε + q(1 − e^−ε))
                let (whole, part) = (exp_minus(epsilon), exp_minus(sampled));
                let below = &lower(&whole) + &(&exact(rate) * &(&Rational::one() - &lower(&whole)));
                assert!(upper(&part) <= &lower(&whole) / &below, "ε = {epsilon}, q = {rate}");
                let value = (rate * epsilon.exp_m1()).ln_1p();
                assert!(sampled <= value * (1.0 + 1e-11) && sampled <= epsilon);
            }
        }
    }

    #[test]
    fn the_sample_of_a_group_has_somebody_more_often() {
        for (rate, size) in [(0.01, 3.0), (0.5, 2.0), (1e-12, 5.0), (0.9, 100.0)] {
            let missed = &Rational::one() - &exact(rate);
            let nobody = (0..size as u32).fold(Rational::one(), |all, _| &all * &missed);
            assert_just_above(&exact(rate_of_group(rate, size)), &(&Rational::one() - &nobody), "q′");
        }
    }

    /// Both directions of D_α for q·N(μ, 1) + (1 − q)·N(0, 1) against N(0, 1), by summing many thin slices.
    fn by_slices(rate: f64, mu: f64, alpha: f64) -> (f64, f64) {
        let (mut removed, mut added) = (0.0, 0.0);
        for i in -60_000..=60_000 {
            let x = f64::from(i) * 1e-3;
            let ratio = 1.0 - rate + rate * (x * mu - mu * mu / 2.0).exp();
            let weight = density(x) * 1e-3;
            removed += weight * ratio.powf(alpha);
            added += weight * ratio.powf(1.0 - alpha);
        }
        (removed.ln() / (alpha - 1.0), added.ln() / (alpha - 1.0))
    }

    #[test]
    fn divergences_of_sampled_gaussian_noise_are_above_both_directions() {
        for (rate, mu, order) in
            [(0.1, 1.0, 2), (0.01, 1.0, 8), (0.3, 0.5, 20), (0.9, 0.7, 12), (0.02, 0.2, 64)]
        {
            let bound = renyi_of_sampled_gaussian(rate, mu * mu, order);
            let (removed, added) = by_slices(rate, mu, f64::from(order));
            assert!(
                bound >= removed * (1.0 - 1e-8) && bound >= added * (1.0 - 1e-8),
                "{bound} {removed} {added}"
            );
            assert!(bound <= removed * (1.0 + 1e-7), "{bound} {removed}");
        }
        // A small loss keeps its digits: D₂ = ln(1 + q²(e^μ² − 1)).
        let tiny = renyi_of_sampled_gaussian(1e-6, 1e-6, 2);
        assert!((1e-18..1.000_001e-18).contains(&tiny));
        // The last weight is 10⁻³²³, and its term counts: e^(α(α−1)μ²/2) is nearly 10³⁰⁸.
        let (rate, mu_squared) = (9e-6f64, 307.9 * std::f64::consts::LN_10 / 2016.0);
        let log_term = |k: f64| {
            let choices = libm::lgamma(65.0) - libm::lgamma(k + 1.0) - libm::lgamma(65.0 - k);
            choices + (64.0 - k) * (-rate).ln_1p() + k * rate.ln() + k * (k - 1.0) / 2.0 * mu_squared
        };
        let minus = |k: f64| -(-k * (k - 1.0) / 2.0 * mu_squared).exp_m1();
        let sum: f64 = (2..=64).map(|k| log_term(f64::from(k)).exp() * minus(f64::from(k))).sum();
        let found = renyi_of_sampled_gaussian(rate, mu_squared, 64) * 63.0;
        assert!(found >= sum.ln_1p() * (1.0 - 2e-10) && found < sum.ln_1p() * 1.001, "{found} for {sum}");
        assert_eq!(renyi_of_sampled_gaussian(0.5, 1e4, 64), f64::INFINITY);
        assert_eq!(renyi_of_sampled_gaussian(0.999_999, 0.1, 128), f64::INFINITY);
    }

    #[test]
    fn delta_of_truncated_noise_is_the_mass_that_gives_it_away() {
        for (scale, bound, shift) in [(2.0, 30u32, 1u32), (0.5, 4, 4), (10.0, 12, 5), (1.0, 300, 2)] {
            let weight = |k: u32| (-f64::from(k) / scale).exp();
            let total = 1.0 + 2.0 * (1..=bound).map(weight).sum::<f64>();
            let mass = (bound - shift + 1..=bound).map(weight).sum::<f64>() / total;
            let over = |k: u32| f64::from(k) / scale;
            let found = delta_of_truncated_discrete(
                over(bound + 1 - shift),
                over(bound + 1),
                over(shift),
                1.0 / scale,
            );
            assert!(mass * (1.0 - 1e-13) <= found && found <= mass * (1.0 + 1e-11), "{found} for {mass}");
            // The continuous law, by its distribution function.
            let below = |x: f64| -(-x / scale).exp_m1() / 2.0;
            let (b, s) = (f64::from(bound), f64::from(shift));
            let mass = (below(b) - below(b - s)) / (2.0 * below(b));
            let found = delta_of_truncated(over(bound - shift), over(bound), over(shift));
            assert!(
                mass * (1.0 - 1e-9) - 1e-16 <= found && found <= mass * (1.0 + 1e-9) + 1e-16,
                "{found} for {mass}"
            );
        }
        assert_eq!(delta_of_truncated(800.0, 801.0, 1.0), f64::MIN_POSITIVE);
    }

    #[test]
    fn delta_of_a_group_is_a_geometric_sum() {
        for (epsilon, size) in [(0.1f64, 3u32), (1.0, 5), (1e-9, 4)] {
            let sum: f64 = (0..size).map(|i| (epsilon * f64::from(i)).exp()).sum::<f64>() * 1e-9;
            let found = delta_of_group(epsilon, 1e-9, f64::from(size));
            assert!(sum <= found && found <= sum * (1.0 + 1e-11));
        }
        assert_eq!(delta_of_group(1.0, 1e-300, 1e6), f64::INFINITY);
    }
}
