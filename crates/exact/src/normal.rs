//! The normal law between certified bounds, and the noise it takes to hide Δ in it.
//!
//! **Definitions.** φ(x) = e^(−x²/2)/√(2π), Φ its integral, and Mills' ratio
//! M(x) = (1 − Φ(x)) / φ(x). A Gaussian answer with standard deviation σ to a
//! question of sensitivity Δ has, with μ = Δ/σ, the privacy profile
//!
//! ```text
//! δ(ε) = Φ(μ/2 − ε/μ) − e^ε · Φ(−μ/2 − ε/μ)
//!      = φ(a) · (M(a) − M(b)),   a = ε/μ − μ/2,   b = ε/μ + μ/2
//! ```
//!
//! **Why the second form.** b² − a² = 2ε, so e^ε·φ(b) = φ(a): the two terms share a
//! factor, and what is left is a difference of two numbers of ordinary size.
//! A δ of 10⁻³⁰⁰ keeps all its digits.
//!
//! **Exactness.** All arithmetic is on [`Enclosure`]s. For large x, M is the
//! continued fraction 1/(x + 1/(x + 2/(x + 3/(x + …)))), whose elements are
//! positive, so two neighbouring convergents enclose it. For small x,
//! M(x) = √(π/2)·e^(x²/2) − Σ x^(2n+1)/(2n+1)!!, whose tail is geometric.
//!
//! **References.** \[Balle2018\] Theorem 8 for the profile, and \[Abramowitz1964\]
//! 26.2.14 for the continued fraction.

use std::sync::OnceLock;

use dashu_int::{IBig, UBig};

use crate::{Enclosure, Rational, exp_neg};

/// Digits a profile is computed to before anybody asks for more: the 70 that shall be certain, and a few to lose.
const FIRST_BITS: usize = 84;
/// σ found by [`gaussian_sigma`] exceeds the optimum by less than this, relatively.
const SIGMA_STEP: f64 = 1.0 / (1u64 << 45) as f64;
/// By how much [`gaussian_sigma_rough`] goes at first beyond what doubles find.
const ROUGH_STEP: f64 = 1e-9;

/// π, by Machin's formula 16·arctan(1/5) − 4·arctan(1/239).
///
/// Most ask for few digits, and only once: they do not wait for many.
pub fn pi(bits: usize) -> Enclosure {
    static KEPT: [(usize, OnceLock<Enclosure>); 2] = [(256, OnceLock::new()), (1024, OnceLock::new())];
    match KEPT.iter().find(|(kept, _)| bits <= *kept) {
        Some((kept, pi)) => pi.get_or_init(|| machin(*kept)).with_bits(bits),
        None => machin(bits),
    }
}

fn machin(bits: usize) -> Enclosure {
    let work = bits + 24;
    let sixteen = arctan_inverse(5, work).mul_integer(&UBig::from(16u8));
    let four = arctan_inverse(239, work).mul_integer(&UBig::from(4u8));
    sixteen.sub(&four).with_bits(bits)
}

/// arctan(1/n): an alternating series, cut at the first term below one unit.
fn arctan_inverse(n: u64, bits: usize) -> Enclosure {
    let mut power = Enclosure::integer(1, bits).div_integer(n);
    let mut sum = power.clone();
    for k in 1u64.. {
        power = power.div_integer(n * n);
        let term = power.div_integer(2 * k + 1);
        if *term.upper() <= IBig::ONE {
            return sum.widen(term.upper());
        }
        sum = if k % 2 == 1 { sum.sub(&term) } else { sum.add(&term) };
    }
    sum
}

/// φ(x) with `bits` places.
pub fn normal_density(x: &Rational, bits: usize) -> Enclosure {
    let half_square = &x.square() / &Rational::from(2u32);
    let root = pi(bits).mul_integer(&UBig::from(2u8)).sqrt();
    exp_neg(&half_square, bits).div(&root)
}

/// Mills' ratio M(x) = (1 − Φ(x)) / φ(x) for x ≥ 0, with `bits` places.
///
/// ```
/// use demur_exact::{Rational, mills};
/// let at_zero = mills(&Rational::zero(), 100); // √(π/2)
/// assert!((at_zero.lower_f64() - 1.2533141373155003).abs() < 1e-15);
/// ```
pub fn mills(x: &Rational, bits: usize) -> Enclosure {
    debug_assert!(!x.is_negative(), "Mills' ratio is taken on the right half");
    // The fraction needs about (bits·ln 2)² / 8x² steps, twice, with a long division each; the
    // series about x² + bits short ones with e^(x²/2) extra digits.
    let steps = |x: f64| (bits as f64 * 0.7 / x).powi(2) / 8.0 + 16.0;
    let size = x.to_f64();
    if size > 1.0 && 4.0 * steps(size) < size * size + bits as f64 {
        mills_by_fraction(x, bits, steps(size) as u64)
    } else {
        mills_by_series(x, bits)
    }
}

fn mills_by_fraction(x: &Rational, bits: usize, steps: u64) -> Enclosure {
    let work = bits + 16;
    let x = Enclosure::of(x, work);
    let mut steps = steps;
    loop {
        let (even, odd) = (convergent(&x, steps), convergent(&x, steps + 1));
        let value = even.hull(&odd);
        if value.width_in_ulps() < 1 << 16 {
            return value.with_bits(bits);
        }
        steps *= 2;
    }
}

/// 1/(x + 1/(x + 2/(x + … n/x))).
fn convergent(x: &Enclosure, steps: u64) -> Enclosure {
    let mut tail = x.clone();
    for k in (1..=steps).rev() {
        tail = x.add(&Enclosure::integer(k, x.bits()).div(&tail));
    }
    Enclosure::integer(1, x.bits()).div(&tail)
}

fn mills_by_series(x: &Rational, bits: usize) -> Enclosure {
    let half_square = &x.square() / &Rational::from(2u32);
    // e^(x²/2) has this many digits before the point: the difference loses them.
    let growth = (half_square.to_f64() * std::f64::consts::LOG2_E) as usize + 2;
    let work = bits + growth + 16;
    let root = pi(work).halve(1).sqrt();
    let one = Enclosure::integer(1, work);
    // 1/e^(−h) has relative error 2^(−work+growth): take the digits for it.
    let shrunk = exp_neg(&half_square, work + growth);
    let grown = one.with_bits(work + growth).div(&shrunk).with_bits(work);
    root.mul(&grown).sub(&odd_series(x, work)).with_bits(bits)
}

/// Σ x^(2n+1) / (2n+1)!! for x ≥ 0.
fn odd_series(x: &Rational, bits: usize) -> Enclosure {
    let square = Enclosure::of(&x.square(), bits);
    let mut term = Enclosure::of(x, bits);
    let mut sum = term.clone();
    let needed = x.square().to_f64();
    for n in 1u64.. {
        term = term.mul(&square).div_integer(2 * n + 1);
        sum = sum.add(&term);
        // Past 2n+1 ≥ 2x² every term is at most half the one before: the rest
        // is at most one more such term.
        if *term.upper() <= IBig::ONE && (2 * n) as f64 > 2.0 * needed + 2.0 {
            return Enclosure::new(sum.lower().clone(), sum.upper() + IBig::from(2u8), bits);
        }
    }
    sum
}

/// 1 − Φ(x) for any x, with `bits` places.
pub fn normal_tail(x: &Rational, bits: usize) -> Enclosure {
    let work = bits + 8;
    let right = normal_density(x, work).mul(&mills(&x.abs(), work));
    let value = match x.is_negative() {
        true => Enclosure::integer(1, work).sub(&right),
        false => right,
    };
    value.with_bits(bits)
}

/// δ(ε) of Gaussian noise with μ = Δ/σ; both bounds agree to about 20 digits.
///
/// ```
/// use demur_exact::{Rational, gaussian_delta};
/// let delta = gaussian_delta(&Rational::one(), &Rational::one());
/// assert!((delta.lower_f64() - 0.126936737506645).abs() < 1e-14);
/// ```
///
/// The result has as many places as a δ of that size needs.
pub fn gaussian_delta(epsilon: &Rational, mu: &Rational) -> Enclosure {
    debug_assert!(mu.is_positive() && !epsilon.is_negative());
    let ratio = epsilon / mu;
    let half = mu / &Rational::from(2u32);
    let (a, b) = (&ratio - &half, &ratio + &half);
    // φ(a) may be tiny, and so may M(a) − M(b): give the digits both lose.
    let small = (a.square().to_f64() * 0.7214) as usize + 2;
    let close = (-mu.floor_log2()).max(0) as usize + 2 * b.to_f64().log2().max(0.0) as usize;
    let mut bits = FIRST_BITS + close;
    loop {
        // For a < 0, M(a) = 1/φ(a) − M(−a) loses as many digits again.
        let lost = if a.is_negative() { 2 * small } else { 0 };
        let difference = mills_difference(&a, &b, bits + lost);
        let density = normal_density(&a, bits + small + lost);
        let delta = density.mul(&difference.with_bits(bits + small + lost));
        if delta.certain_bits() >= 70 {
            return delta;
        }
        bits *= 2;
    }
}

/// M(a) − M(b) for b > 0 and a < b, where a may be negative.
fn mills_difference(a: &Rational, b: &Rational, bits: usize) -> Enclosure {
    let right = mills(b, bits);
    if !a.is_negative() {
        return mills(a, bits).sub(&right).at_least_zero();
    }
    // M(a) = 1/φ(a) − M(−a)
    let whole = Enclosure::integer(1, bits).div(&normal_density(a, bits));
    whole.sub(&mills(&a.abs(), bits)).sub(&right).at_least_zero()
}

/// The least σ/Δ, as a double, whose Gaussian noise is (ε, δ)-private.
///
/// Never below the true optimum, and at most 10⁻¹³ (relatively) above it.
///
/// ```
/// use demur_exact::{Rational, gaussian_sigma};
/// let sigma = gaussian_sigma(&Rational::one(), &"1e-5".parse()?);
/// assert!((sigma - 3.730631634816).abs() < 1e-11);
/// # Ok::<(), demur_exact::ParseRationalError>(())
/// ```
///
/// **Method.** Newton's iteration on ln δ against ln μ, where dδ/dμ = φ(a), kept
/// inside a bracket, in doubles; a few more steps on δ itself, with all its digits; then σ is
/// stepped up until the *upper* bound of δ(ε) is at most δ. Only this last part has to be right.
pub fn gaussian_sigma(epsilon: &Rational, delta: &Rational) -> f64 {
    let mut mu = mu_about(epsilon, delta);
    for _ in 0..20 {
        let next = refine(epsilon, delta, mu);
        let step = (next / mu - 1.0).abs();
        mu = next;
        // The next step would be about the square of this one.
        if step < 1e-8 {
            break;
        }
    }
    let mut sigma = 1.0 / mu * (1.0 - 2.0 * SIGMA_STEP);
    while !holds(epsilon, delta, sigma) {
        sigma *= 1.0 + SIGMA_STEP;
    }
    sigma
}

/// The same in a part of the time, for noise that is rounded to fewer digits afterwards.
///
/// Never below the true optimum, and at most 10⁻⁸ (relatively) above it where doubles find their way.
pub fn gaussian_sigma_rough(epsilon: &Rational, delta: &Rational) -> f64 {
    let about = 1.0 / mu_about(epsilon, delta);
    let mut above = ROUGH_STEP;
    while !holds(epsilon, delta, about * (1.0 + above)) {
        above *= 2.0;
    }
    about * (1.0 + above)
}

/// About the largest μ with δ(ε) at most `delta`, by Newton's iteration in doubles.
fn mu_about(epsilon: &Rational, delta: &Rational) -> f64 {
    let target = ln(delta);
    // μ = δ/e² is too little, since δ(ε) ≤ δ(0) ≤ μ/√(2π); at √(2ε) + 12, a is below
    // −5 and δ(ε) all but 1.
    let (mut low, mut high) = (target - 2.0, ((2.0 * epsilon.to_f64()).sqrt() + 12.0).ln());
    let mut guess = first_guess(epsilon.to_f64(), target).clamp(low, high);
    for _ in 0..200 {
        let (value, slope) = log_profile_about(epsilon.to_f64(), guess);
        if value > target {
            high = high.min(guess);
        } else {
            low = low.max(guess);
        }
        let newton = guess - (value - target) / slope;
        // So near, rounding decides on which side of the root the bracket ends.
        if (newton - guess).abs() < 1e-9 {
            return newton.exp();
        }
        let next = if newton > low && newton < high { newton } else { (low + high) / 2.0 };
        let step = (next - guess).abs();
        guess = next;
        if step < 1e-6 {
            break;
        }
    }
    guess.exp()
}

/// One more step of Newton's, on δ itself: a relative error of e becomes one of about e².
fn refine(epsilon: &Rational, delta: &Rational, mu: f64) -> f64 {
    let Ok(exact) = Rational::try_from(mu) else { return mu };
    let profile = gaussian_delta(epsilon, &exact);
    let value = Rational::dyadic(profile.lower().clone(), -(profile.bits() as i64));
    if value.is_zero() {
        return mu;
    }
    let excess = (&(&value - delta) / delta).to_f64();
    let a = epsilon.to_f64() / mu - mu / 2.0;
    let slope = (log_density(a) + mu.ln() - ln(&value)).exp();
    let next = mu * (1.0 - excess / slope);
    if next.is_normal() && next > 0.0 { next } else { mu }
}

/// Whether noise with this σ is certainly (ε, δ)-private.
fn holds(epsilon: &Rational, delta: &Rational, sigma: f64) -> bool {
    Rational::try_from(sigma).is_ok_and(|exact| {
        let profile = gaussian_delta(epsilon, &exact.recip());
        let bound = Rational::dyadic(profile.upper().clone(), -(profile.bits() as i64));
        bound <= *delta
    })
}

/// About ln δ(ε), and its derivative by ln μ, in plain doubles.
fn log_profile_about(epsilon: f64, log_mu: f64) -> (f64, f64) {
    let mu = log_mu.exp();
    let (a, b) = (epsilon / mu - mu / 2.0, epsilon / mu + mu / 2.0);
    if a > 50.0 {
        return (-a * a / 2.0, a * b); // far below any δ a double can hold
    }
    let difference = match mu < 1e-4 {
        // M′(x) = x·M(x) − 1 in the middle: the difference itself would have few digits.
        true => mu * (1.0 - epsilon / mu * mills_about(epsilon / mu)),
        false => mills_about(a) - mills_about(b),
    };
    let value = log_density(a) + difference.ln();
    (value, (log_density(a) + log_mu - value).exp())
}

/// ln φ(x).
fn log_density(x: f64) -> f64 {
    -x * x / 2.0 - 0.918_938_533_204_672_7
}

/// About Mills' ratio.
fn mills_about(x: f64) -> f64 {
    if x < 10.0 {
        return (std::f64::consts::PI / 2.0).sqrt()
            * (x * x / 2.0).exp()
            * libm::erfc(x / std::f64::consts::SQRT_2);
    }
    let rest = (1..=30).rev().fold(0.0, |rest, n| f64::from(n) / (x + rest));
    1.0 / (x + rest)
}

/// A starting point within a factor of a few: δ ≈ μ/√(2π) when ε is small
/// beside μ, and δ ≈ e^(−a²/2) when it is not.
fn first_guess(epsilon: f64, log_delta: f64) -> f64 {
    let flat = log_delta + 0.92;
    let root = (-2.0 * log_delta).sqrt();
    // √(root² + 2ε) − root, without its cancellation.
    let steep = (2.0 * epsilon / (root.mul_add(root, 2.0 * epsilon).sqrt() + root)).ln();
    flat.max(steep)
}

fn ln(value: &Rational) -> f64 {
    let shift = value.floor_log2();
    let scaled = value * &Rational::power_of_two(-shift);
    scaled.to_f64().ln() + shift as f64 * std::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn q(text: &str) -> Rational {
        text.parse().unwrap()
    }

    /// Rows of `x y value`, computed by `tools/reference.py` with mpmath.
    fn reference(name: &str) -> Vec<Vec<String>> {
        let text = match name {
            "mills" => include_str!("../tests/data/mills.csv"),
            "delta" => include_str!("../tests/data/gaussian_delta.csv"),
            _ => include_str!("../tests/data/gaussian_sigma.csv"),
        };
        let rows: Vec<Vec<String>> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.split(',').map(str::to_owned).collect())
            .collect();
        assert!(rows.len() > 10);
        rows
    }

    fn value(bound: &IBig, bits: usize) -> Rational {
        Rational::dyadic(bound.clone(), -(bits as i64))
    }

    #[test]
    fn pi_has_its_digits() {
        let digits = q(
            "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534",
        );
        let pi = pi(280);
        assert!(value(pi.lower(), 280) <= digits && digits <= value(pi.upper(), 280));
        assert!(pi.width_in_ulps() <= 2);
    }

    #[test]
    fn mills_ratio_encloses_the_reference() {
        for row in reference("mills") {
            let (x, truth) = (q(&row[0]), q(&row[1]));
            for bits in [64, 160, 400] {
                let m = mills(&x, bits);
                // The reference is rounded to 150 digits: allow it that much.
                let slack = q("1e-140");
                assert!(value(m.lower(), bits) <= &truth + &slack, "M({x}) at {bits}");
                assert!(value(m.upper(), bits) >= &truth - &slack, "M({x}) at {bits}");
                assert!(m.width_in_ulps() <= 16, "M({x}) at {bits}: {}", m.width_in_ulps());
            }
        }
    }

    #[test]
    fn mills_ratio_in_doubles_is_about_right() {
        for row in reference("mills") {
            let (x, truth) = (q(&row[0]).to_f64(), q(&row[1]).to_f64());
            assert!((mills_about(x) / truth - 1.0).abs() < 1e-12, "M({x})");
        }
    }

    #[test]
    fn profiles_enclose_the_reference() {
        for row in reference("delta") {
            let (epsilon, mu, truth) = (q(&row[0]), q(&row[1]), q(&row[2]));
            let delta = gaussian_delta(&epsilon, &mu);
            let slack = &truth * &q("1e-50");
            let (low, high) = (value(delta.lower(), delta.bits()), value(delta.upper(), delta.bits()));
            assert!(low <= &truth + &slack && &truth - &slack <= high, "δ({epsilon}; {mu})");
            assert!(&high - &low <= &truth * &q("1e-20"));
        }
    }

    #[test]
    fn a_shift_of_many_deviations_hides_nothing() {
        let delta = gaussian_delta(&Rational::zero(), &q("100"));
        assert!(delta.lower_f64() > 0.999_999 && delta.upper_f64() <= 1.0 + 1e-15);
    }

    #[test]
    fn sigma_is_never_below_the_optimum_and_at_most_a_hair_above() {
        for row in reference("sigma") {
            let (epsilon, delta, truth) = (q(&row[0]), q(&row[1]), q(&row[2]));
            let sigma = Rational::try_from(gaussian_sigma(&epsilon, &delta)).unwrap();
            assert!(sigma >= truth, "σ({epsilon}, {delta}) is too small");
            assert!(sigma <= &truth * &q("1.0000000000001"), "σ({epsilon}, {delta}) is too large");
            let rough = Rational::try_from(gaussian_sigma_rough(&epsilon, &delta)).unwrap();
            assert!(rough >= truth, "roughly, σ({epsilon}, {delta}) is too small");
            assert!(rough <= &truth * &q("1.00000001"), "roughly, σ({epsilon}, {delta}) is too large");
        }
    }
}
