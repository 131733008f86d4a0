//! [`Lattice`]: the multiples of a public power of two, where every answer lives.
//!
//! **Definition.** g = 2^exponent; a value x is put on the lattice as the whole number
//! of steps R(x) = ⌊x/g + ½⌋.
//!
//! **Guarantee.** If |a − b| ≤ n·g for a whole n, then |R(a) − R(b)| ≤ n.
//!
//! **Why.** R(x + n·g) = R(x) + n, because whole numbers pass through the floor, and R never
//! falls when x grows. So for b ≤ a ≤ b + n·g we have R(b) ≤ R(a) ≤ R(b) + n. Rounding half to
//! even breaks the first step: 0.5 goes to 0 and 1.5 to 2, two steps for a distance of one.
//!
//! **Exactness.** Integers and fractions only, apart from the one conversion of a finished
//! answer to a double.

#![deny(clippy::float_arithmetic)]

use demur_exact::{Rational, float};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::error::require;
use crate::root::sqrt_up;

const MIN_EXPONENT: i32 = -1000;
const MAX_EXPONENT: i32 = 900;
/// Up to this many places all digits of a fraction fit into 128 bits: 10³⁸ < 2¹²⁷.
const MAX_SHORT_PLACES: i32 = 38;
/// A lattice for a noise scale has about 2^20 steps in it.
const STEPS_IN_SCALE_LOG2: i64 = 20;

/// The multiples of g = 2^exponent.
///
/// ```
/// use demur_core::Lattice;
///
/// let quarters = Lattice::new(-2)?;
/// assert_eq!(quarters.quantise(1.1)?, 4);
/// assert_eq!(quarters.quantise(1.125)?, 5); // halves go up
/// assert_eq!(quarters.quantise(-1.125)?, -4);
/// assert_eq!(quarters.value(5), 1.25);
/// assert_eq!(quarters.decimal(-1), "-0.25");
/// # Ok::<(), demur_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Lattice {
    exponent: i32,
}

impl Lattice {
    /// The whole numbers.
    pub const INTEGER: Self = Self { exponent: 0 };

    /// The multiples of 2^`exponent`, for exponents from −1000 to 900.
    pub fn new(exponent: i32) -> Result<Self, Error> {
        let legal = (MIN_EXPONENT..=MAX_EXPONENT).contains(&exponent);
        require(legal, "core.lattice.exponent", || {
            format!(
                "a lattice's exponent must be between {MIN_EXPONENT} and {MAX_EXPONENT}, \
                 but {exponent} was given"
            )
        })?;
        Ok(Self { exponent })
    }

    /// The lattice whose rounding is lost in noise of this scale: the largest power of two
    /// that is at most scale · 2⁻²⁰ / dimensions.
    ///
    /// ```
    /// use demur_core::Lattice;
    /// use demur_exact::Rational;
    ///
    /// let lattice = Lattice::for_scale(&Rational::from(10u32), 1)?;
    /// assert_eq!(lattice.exponent(), 3 - 20);
    /// # Ok::<(), demur_core::Error>(())
    /// ```
    pub fn for_scale(scale: &Rational, dimensions: u64) -> Result<Self, Error> {
        require(scale.is_positive(), "core.lattice.scale", || {
            format!("the noise scale of a lattice must be above 0, but {scale} was given")
        })?;
        require(dimensions > 0, "core.lattice.dimensions", || {
            "the dimensions of a lattice must be at least 1, but 0 were given".into()
        })?;
        let share = scale / &Rational::from(dimensions);
        let exponent = (share.floor_log2() - STEPS_IN_SCALE_LOG2).min(MAX_EXPONENT.into());
        // Below every i32 is below the range all the more.
        Self::new(i32::try_from(exponent).unwrap_or(i32::MIN))
    }

    /// The power of two: g = 2^exponent.
    pub fn exponent(self) -> i32 {
        self.exponent
    }

    /// The distance between neighbouring multiples: g.
    pub fn step(self) -> Rational {
        self.exact(1)
    }

    /// The whole number of steps nearest to a double, halves going up: ⌊x/g + ½⌋, exactly.
    #[inline]
    pub fn quantise(self, value: f64) -> Result<i64, Error> {
        let (mantissa, exponent) = float::decompose(value).ok_or_else(not_finite)?;
        // 53 bits and a shift that stays within 62: no need for wider numbers.
        let small = if value.is_sign_negative() { -(mantissa as i64) } else { mantissa as i64 };
        match exponent - self.exponent {
            shift @ -61..0 => return Ok((small + (1 << (-shift - 1))) >> -shift),
            shift @ 0..=9 => return Ok(small << shift),
            _ => {}
        }
        let mantissa = i128::from(small);
        let steps = match exponent - self.exponent {
            shift if mantissa == 0 || shift < -64 => Some(0), // less than half a step
            shift @ ..0 => Some((mantissa + (1 << (-shift - 1))) >> -shift),
            shift @ 0..=64 => Some(mantissa << shift),
            _ => None,
        };
        steps.and_then(|steps| i64::try_from(steps).ok()).ok_or_else(|| self.overflow())
    }

    /// The whole number of steps nearest to a fraction, halves going up: ⌊x/g + ½⌋.
    pub fn quantise_exact(self, value: &Rational) -> Result<i64, Error> {
        let shifted = &(value / &self.step()) + &Rational::new(1, 2);
        i64::try_from(shifted.floor()).map_err(|_| self.overflow())
    }

    /// The double nearest to `steps` · g, ties to even; infinite beyond the largest double.
    ///
    /// The conversion of a whole number rounds correctly, and a power of two changes no digit:
    /// no multiple of g other than 0 is below 2⁻¹⁰⁰⁰.
    #[expect(clippy::float_arithmetic, reason = "the one conversion of a finished answer")]
    #[inline]
    pub fn value(self, steps: i128) -> f64 {
        let step = f64::from_bits(((1023 + self.exponent) as u64) << 52);
        // Most answers fit 64 bits, which the machine converts by itself.
        let number = match i64::try_from(steps) {
            Ok(steps) => steps as f64,
            Err(_) => wide_to_f64(steps),
        };
        number * step
    }

    /// `steps` · g as a fraction.
    pub fn exact(self, steps: i128) -> Rational {
        Rational::dyadic(steps.into(), self.exponent.into())
    }

    /// All decimal digits of `steps` · g.
    pub fn decimal(self, steps: i128) -> String {
        if (-MAX_SHORT_PLACES..=0).contains(&self.exponent) {
            return short_decimal(steps, self.exponent.unsigned_abs());
        }
        let value = self.exact(steps);
        let places = self.exponent.min(0).unsigned_abs() as usize; // 2^−p ends after p places
        value.to_decimal(places).unwrap_or_else(|| value.to_string())
    }

    /// How many steps a number can move on the lattice when it moves by at most `distance`:
    /// ⌈Δ/g⌉.
    ///
    /// Putting a value on the lattice commutes with adding whole steps, R(x + n·g) = R(x) + n, and
    /// never falls when x grows. With n = ⌈Δ/g⌉ and b ≤ a ≤ b + Δ ≤ b + n·g this gives
    /// R(b) ≤ R(a) ≤ R(b) + n. Rounding halves to even would not do: 0.5 would go to 0 and 1.5 to 2.
    ///
    /// ```
    /// use demur_core::Lattice;
    /// use demur_exact::Rational;
    ///
    /// let quarters = Lattice::new(-2)?;
    /// assert_eq!(quarters.sensitivity(&Rational::one()), Rational::from(4u32));
    /// assert_eq!(quarters.sensitivity(&Rational::new(1, 10)), Rational::one());
    /// # Ok::<(), demur_core::Error>(())
    /// ```
    pub fn sensitivity(self, distance: &Rational) -> Rational {
        self.steps(&distance.abs()).ceil().into()
    }

    /// How many steps a vector can move on the lattice in ℓ1, when at most `l0` of its
    /// coordinates move, by at most `l1` together: ⌈l1/g⌉ + l0 − 1.
    ///
    /// R(a) − R(b) differs from (a − b)/g by a difference of two fractional parts, so by less
    /// than 1. Over l0 ≥ 1 coordinates the whole number Σ|R(aᵢ) − R(bᵢ)| is below l1/g + l0.
    pub fn vector_l1(self, l1: &Rational, l0: u64) -> Rational {
        if l0 == 0 || l1.is_zero() {
            return Rational::zero();
        }
        let whole = self.sensitivity(l1);
        &whole + &Rational::from(l0 - 1)
    }

    /// The square of the steps a vector can move on the lattice in ℓ2, when at most `l0` of its
    /// coordinates move, by at most √`l2_squared` together.
    ///
    /// The smaller of two bounds. Each coordinate moves by at most n = ⌈√l2²/g⌉ steps, so the square
    /// is at most l0·n². And the differences of fractional parts are below 1 in each of l0
    /// coordinates, so the distance is below √l2²/g + √l0, and its square, a whole number, below
    /// l2²/g² + 2·√(l0·l2²)/g + l0.
    pub fn vector_l2_squared(self, l2_squared: &Rational, l0: u64) -> Rational {
        if l0 == 0 || l2_squared.is_zero() {
            return Rational::zero();
        }
        let moved = Rational::from(l0);
        let squared = self.steps(&self.steps(l2_squared));
        let each = Rational::from(sqrt_up(&squared).ceil());
        let mixed = &Rational::from(2u32) * &sqrt_up(&(&squared * &moved));
        let together = &(&squared + &mixed) + &moved;
        let below = &Rational::from(together.ceil()) - &Rational::one();
        below.min(&moved * &each.square())
    }

    /// A length in steps: Δ/g.
    fn steps(self, length: &Rational) -> Rational {
        length * &Rational::power_of_two(-i64::from(self.exponent))
    }

    /// Speaks of the lattice and never of the value, which may come from a row.
    fn overflow(self) -> Error {
        let exponent = self.exponent;
        let text = format!(
            "a value on the lattice with step 2^{exponent} must be within 2^63 steps of 0, \
             but one beyond was given"
        );
        Error::new("core.lattice.overflow", text)
    }
}

/// The digits of `steps` · 2^−places for up to [`MAX_SHORT_PLACES`] places, in one integer.
///
/// A fraction f/2^p is f·5^p/10^p: its p decimal digits are those of f·5^p < 10^p.
fn short_decimal(steps: i128, places: u32) -> String {
    let sign = if steps < 0 { "-" } else { "" };
    let (whole, fraction) = (steps.unsigned_abs() >> places, steps.unsigned_abs() & ((1 << places) - 1));
    if fraction == 0 {
        return format!("{sign}{whole}");
    }
    let (digits, width) = (fraction * 5u128.pow(places), places as usize);
    let text = format!("{sign}{whole}.{digits:0width$}");
    text.trim_end_matches('0').to_owned()
}

fn not_finite() -> Error {
    let text = "a value on a lattice must be a finite number, but one that is not was given";
    Error::new("core.lattice.not-finite", text)
}

/// What is read before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    exponent: i32,
}

impl TryFrom<Unchecked> for Lattice {
    type Error = Error;

    fn try_from(read: Unchecked) -> Result<Self, Error> {
        Self::new(read.exponent)
    }
}

/// Kept apart, or both conversions would run for every number.
#[cold]
#[inline(never)]
fn wide_to_f64(steps: i128) -> f64 {
    steps as f64
}

#[cfg(test)]
#[expect(clippy::float_arithmetic, reason = "tests compare with ordinary arithmetic")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn q(text: &str) -> Rational {
        text.parse().unwrap()
    }

    fn lattice(exponent: i32) -> Lattice {
        Lattice::new(exponent).unwrap()
    }

    #[test]
    fn halves_go_up() {
        for (value, steps) in [
            (0.5, 1),
            (1.5, 2),
            (2.5, 3),
            (-0.5, 0),
            (-1.5, -1),
            (-2.5, -2),
            (0.49999999999999994, 0),
            (-0.0, 0),
        ] {
            assert_eq!(Lattice::INTEGER.quantise(value).unwrap(), steps, "{value}");
            let exact = Rational::try_from(value).unwrap();
            assert_eq!(Lattice::INTEGER.quantise_exact(&exact).unwrap(), steps, "{value}");
        }
    }

    /// 0.5 and 1.5 are one step apart; to even they would land on 0 and 2.
    #[test]
    fn rounding_half_to_even_would_break_the_sensitivity() {
        let (a, b) = (0.5f64, 1.5f64);
        let one = Lattice::INTEGER.sensitivity(&Rational::one());
        let even = b.round_ties_even() - a.round_ties_even();
        assert!(Rational::try_from(even).unwrap() > one);
        let up = Lattice::INTEGER.quantise(b).unwrap() - Lattice::INTEGER.quantise(a).unwrap();
        assert_eq!(Rational::from(up), one);
    }

    #[test]
    fn exponents_outside_the_range_are_refused() {
        assert!(Lattice::new(-1000).is_ok() && Lattice::new(900).is_ok());
        for exponent in [-1001, 901, i32::MIN, i32::MAX] {
            let error = Lattice::new(exponent).unwrap_err();
            assert_eq!(error.code(), "core.lattice.exponent");
            assert_eq!(
                error.to_string(),
                format!("a lattice's exponent must be between -1000 and 900, but {exponent} was given")
            );
        }
    }

    #[test]
    fn values_that_are_not_numbers_are_refused_without_naming_them() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let error = Lattice::INTEGER.quantise(value).unwrap_err();
            assert_eq!(error.code(), "core.lattice.not-finite");
            assert_eq!(
                error.to_string(),
                "a value on a lattice must be a finite number, but one that is not was given"
            );
        }
    }

    #[test]
    fn values_beyond_the_counter_are_refused_without_naming_them() {
        let error = lattice(-10).quantise(1e17).unwrap_err();
        assert_eq!(error.code(), "core.lattice.overflow");
        assert_eq!(
            error.to_string(),
            "a value on the lattice with step 2^-10 must be within 2^63 steps of 0, but one beyond was given"
        );
        let edge = 2f64.powi(63);
        assert_eq!(Lattice::INTEGER.quantise(-edge).unwrap(), i64::MIN);
        assert!(Lattice::INTEGER.quantise(edge).is_err());
        assert!(Lattice::INTEGER.quantise(edge.next_down()).is_ok());
        assert!(Lattice::INTEGER.quantise(f64::MAX).is_err());
        assert!(lattice(-1000).quantise(f64::MAX).is_err());
        assert!(Lattice::INTEGER.quantise_exact(&q("9223372036854775807.5")).is_err());
        assert_eq!(Lattice::INTEGER.quantise_exact(&q("9223372036854775807.4")), Ok(i64::MAX));
    }

    #[test]
    fn a_lattice_for_noise_is_the_coarsest_that_is_fine_enough() {
        for (scale, dimensions) in [("1", 1), ("1.999", 1), ("1/3", 7), ("1e9", 1000), ("1e-100", 3)] {
            let lattice = Lattice::for_scale(&q(scale), dimensions).unwrap();
            let share = &q(scale) / &Rational::from(dimensions << 20);
            assert!(lattice.step() <= share, "{scale}");
            assert!(&lattice.step() * &q("2") > share, "{scale}");
        }
        assert_eq!(Lattice::for_scale(&q("1e400"), 1).unwrap(), lattice(900));
        assert_eq!(Lattice::for_scale(&q("1e-400"), 1).unwrap_err().code(), "core.lattice.exponent");
        assert_eq!(
            Lattice::for_scale(&q("0"), 1).unwrap_err().to_string(),
            "the noise scale of a lattice must be above 0, but 0 was given"
        );
        assert_eq!(
            Lattice::for_scale(&q("1"), 0).unwrap_err().to_string(),
            "the dimensions of a lattice must be at least 1, but 0 were given"
        );
    }

    #[test]
    fn decimals_have_every_digit() {
        assert_eq!(lattice(-3).decimal(-7), "-0.875");
        assert_eq!(lattice(2).decimal(3), "12");
        assert_eq!(lattice(-20).decimal(1), "0.00000095367431640625");
        assert_eq!(lattice(-1000).decimal(0), "0");
        assert_eq!(lattice(-1000).decimal(1).len(), 2 + 1000);
    }

    #[test]
    fn values_at_the_ends_are_right() {
        assert_eq!(lattice(-1000).value(1), 2f64.powi(-1000));
        assert_eq!(lattice(900).value(i128::MAX), f64::INFINITY);
        assert_eq!(lattice(-60).value(i128::from(i64::MIN)), -8.0);
        assert_eq!(Lattice::INTEGER.value((1 << 53) + 1), 2f64.powi(53)); // tie, to even
    }

    #[test]
    fn what_does_not_move_stays() {
        let zero = Rational::zero();
        assert_eq!(lattice(-2).sensitivity(&zero), zero);
        assert_eq!(lattice(-2).vector_l1(&zero, 5), zero);
        assert_eq!(lattice(-2).vector_l2_squared(&zero, 5), zero);
        assert_eq!(lattice(-2).vector_l1(&q("1"), 0), zero);
        assert_eq!(lattice(-2).vector_l2_squared(&q("1"), 0), zero);
    }

    #[test]
    fn for_one_coordinate_the_vector_bounds_are_the_scalar_one() {
        for distance in ["1", "1/3", "5.25", "1e-9"] {
            let (distance, lattice) = (q(distance), lattice(-2));
            let scalar = lattice.sensitivity(&distance);
            assert_eq!(lattice.vector_l1(&distance, 1), scalar);
            assert_eq!(lattice.vector_l2_squared(&distance.square(), 1), scalar.square());
        }
    }

    /// Every vector on a fine grid: how far can it really move on the coarse one?
    #[test]
    fn vector_bounds_hold_and_the_l1_bound_is_reached() {
        let coarse = Lattice::INTEGER;
        let place = |eighths: i64| coarse.quantise_exact(&Rational::new(eighths.into(), 8)).unwrap();
        for l1 in 1..=24i64 {
            let mut most = 0;
            for first in 1..l1 {
                let second = l1 - first;
                for (a, b) in (0..8).flat_map(|a| (0..8).map(move |b| (a, b))) {
                    let moved = [place(a + first) - place(a), place(b + second) - place(b)];
                    most = most.max(moved[0] + moved[1]);
                    let l2_squared = Rational::new((first * first + second * second).into(), 64);
                    let squares = Rational::from(moved[0] * moved[0] + moved[1] * moved[1]);
                    assert!(squares <= coarse.vector_l2_squared(&l2_squared, 2));
                }
            }
            let bound = coarse.vector_l1(&Rational::new(l1.into(), 8), 2);
            assert!(Rational::from(most) <= bound);
            if l1 > 1 && l1 % 8 != 1 {
                assert_eq!(Rational::from(most), bound, "l1 = {l1}/8");
            }
        }
    }

    #[test]
    fn json_is_pinned_and_checked() {
        assert_eq!(serde_json::to_string(&lattice(-20)).unwrap(), r#"{"exponent":-20}"#);
        assert_eq!(serde_json::from_str::<Lattice>(r#"{"exponent":-20}"#).unwrap(), lattice(-20));
        assert!(serde_json::from_str::<Lattice>(r#"{"exponent":901}"#).is_err());
    }

    /// Doubles of every size, halves of steps among them.
    fn any_double() -> impl Strategy<Value = f64> {
        prop_oneof![
            proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL | proptest::num::f64::ZERO,
            (-1_000_000i32..1_000_000, -12i32..12).prop_map(|(m, e)| f64::from(m) * 2f64.powi(e)),
            -1e6f64..1e6,
        ]
    }

    proptest! {
        #[test]
        fn doubles_and_fractions_are_put_on_the_same_place(value in any_double(), exponent in -1000i32..=900) {
            for lattice in [lattice(exponent), lattice(exponent.rem_euclid(16) - 8)] {
                let exact = Rational::try_from(value).unwrap();
                prop_assert_eq!(lattice.quantise(value), lattice.quantise_exact(&exact));
            }
        }

        #[test]
        fn a_quantised_value_is_within_half_a_step(value in any_double(), exponent in -8i32..8) {
            let lattice = lattice(exponent);
            if let Ok(steps) = lattice.quantise(value) {
                let error = &lattice.exact(steps.into()) - &Rational::try_from(value).unwrap();
                let half = &lattice.step() / &q("2");
                prop_assert!(-&half < error && error <= half);
            }
        }

        #[test]
        fn quantised_pairs_never_differ_by_more_than_the_sensitivity(
            a in any_double(), b in any_double(), exponent in -8i32..8,
        ) {
            let lattice = lattice(exponent);
            if let (Ok(p), Ok(r)) = (lattice.quantise(a), lattice.quantise(b)) {
                let distance = &Rational::try_from(a).unwrap() - &Rational::try_from(b).unwrap();
                let moved = Rational::from((i128::from(p) - i128::from(r)).abs());
                prop_assert!(moved <= lattice.sensitivity(&distance));
            }
        }

        #[test]
        fn quantised_vectors_never_differ_by_more_than_the_vector_bounds(
            pairs in proptest::collection::vec((-50f64..50.0, -50f64..50.0), 1..6), exponent in -8i32..8,
        ) {
            let lattice = lattice(exponent);
            let moved = |&(a, b): &(f64, f64)| {
                Rational::from((lattice.quantise(a).unwrap() - lattice.quantise(b).unwrap()).abs())
            };
            let distance = |&(a, b): &(f64, f64)| {
                (&Rational::try_from(a).unwrap() - &Rational::try_from(b).unwrap()).abs()
            };
            let sum = |terms: Vec<Rational>| terms.iter().fold(Rational::zero(), |sum, term| &sum + term);
            let l0 = pairs.len() as u64;
            let l1 = sum(pairs.iter().map(distance).collect());
            prop_assert!(sum(pairs.iter().map(moved).collect()) <= lattice.vector_l1(&l1, l0));
            let l2_squared = sum(pairs.iter().map(|pair| distance(pair).square()).collect());
            let squares = sum(pairs.iter().map(|pair| moved(pair).square()).collect());
            prop_assert!(squares <= lattice.vector_l2_squared(&l2_squared, l0));
        }

        #[test]
        fn values_are_correctly_rounded(steps in any::<i128>(), cut in 0u32..127, exponent in -1000i32..=890) {
            let (lattice, steps) = (lattice(exponent), steps >> cut);
            let (value, exact) = (lattice.value(steps), lattice.exact(steps));
            let error = |double: f64| (&Rational::try_from(double).unwrap() - &exact).abs();
            prop_assert!(error(value) <= error(value.next_up()));
            prop_assert!(error(value) <= error(value.next_down()));
        }

        #[test]
        fn decimals_read_back_as_the_exact_value(steps in any::<i64>(), exponent in -200i32..200) {
            let lattice = lattice(exponent);
            prop_assert_eq!(q(&lattice.decimal(steps.into())), lattice.exact(steps.into()));
        }
    }
}
