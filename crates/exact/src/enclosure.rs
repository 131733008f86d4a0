//! [`Enclosure`]: a real number held between two fixed-point bounds.
//!
//! **Definition.** `lower` and `upper` are integers; the enclosed real x satisfies
//! lower · 2^−bits ≤ x ≤ upper · 2^−bits.
//!
//! **Why it is safe.** Every operation rounds its lower end down and its upper end
//! up, so the result encloses whatever the operands could have been. Nothing
//! here knows how wide an enclosure became: a caller that cannot decide with
//! the bits it has asks again with more.

use dashu_base::{BitTest, Signed};
use dashu_int::{IBig, UBig};

use crate::{Rational, float};

/// A real number held between two fixed-point bounds; see the module text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enclosure {
    lower: IBig,
    upper: IBig,
    bits: usize,
}

impl Enclosure {
    /// The reals between `lower` · 2^−bits and `upper` · 2^−bits.
    pub fn new(lower: IBig, upper: IBig, bits: usize) -> Self {
        debug_assert!(lower <= upper, "an enclosure's lower bound must not exceed its upper bound");
        Self { lower, upper, bits }
    }

    /// The tightest enclosure of a fraction with `bits` places.
    pub fn of(value: &Rational, bits: usize) -> Self {
        let scaled = value * &Rational::power_of_two(bits as i64);
        Self::new(scaled.floor(), scaled.ceil(), bits)
    }

    /// A whole number, exactly.
    pub fn integer(value: impl Into<IBig>, bits: usize) -> Self {
        let value = value.into() << bits;
        Self::new(value.clone(), value, bits)
    }

    /// Places after the binary point.
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// The lower bound, in units of 2^−bits.
    pub fn lower(&self) -> &IBig {
        &self.lower
    }

    /// The upper bound, in units of 2^−bits.
    pub fn upper(&self) -> &IBig {
        &self.upper
    }

    /// A double that is never above the enclosed number.
    pub fn lower_f64(&self) -> f64 {
        directed(&self.lower, self.bits, false)
    }

    /// A double that is never below the enclosed number.
    pub fn upper_f64(&self) -> f64 {
        directed(&self.upper, self.bits, true)
    }

    /// How far the bounds are apart, in units of 2^−bits.
    pub fn width_in_ulps(&self) -> u64 {
        u64::try_from(&self.upper - &self.lower).unwrap_or(u64::MAX)
    }

    /// The same number with other places, rounded outward.
    #[must_use]
    pub fn with_bits(&self, bits: usize) -> Self {
        if bits >= self.bits {
            let shift = bits - self.bits;
            return Self::new(&self.lower << shift, &self.upper << shift, bits);
        }
        let shift = self.bits - bits;
        Self::new(&self.lower >> shift, shift_up(&self.upper, shift), bits)
    }

    /// The sum.
    #[must_use]
    pub fn add(&self, other: &Self) -> Self {
        debug_assert_eq!(self.bits, other.bits);
        Self::new(&self.lower + &other.lower, &self.upper + &other.upper, self.bits)
    }

    /// The difference.
    #[must_use]
    pub fn sub(&self, other: &Self) -> Self {
        debug_assert_eq!(self.bits, other.bits);
        Self::new(&self.lower - &other.upper, &self.upper - &other.lower, self.bits)
    }

    /// The product.
    #[must_use]
    pub fn mul(&self, other: &Self) -> Self {
        debug_assert_eq!(self.bits, other.bits);
        if !self.lower.is_negative() && !other.lower.is_negative() {
            let upper = shift_up(&(&self.upper * &other.upper), self.bits);
            return Self::new((&self.lower * &other.lower) >> self.bits, upper, self.bits);
        }
        let mut corners = [
            &self.lower * &other.lower,
            &self.lower * &other.upper,
            &self.upper * &other.lower,
            &self.upper * &other.upper,
        ];
        corners.sort();
        Self::new(&corners[0] >> self.bits, shift_up(&corners[3], self.bits), self.bits)
    }

    /// The quotient by a number that is certainly above zero.
    #[must_use]
    pub fn div(&self, other: &Self) -> Self {
        debug_assert_eq!(self.bits, other.bits);
        debug_assert!(other.lower > IBig::ZERO, "the divisor must be certainly positive");
        let down = if self.lower.is_negative() { &other.lower } else { &other.upper };
        let up = if self.upper.is_negative() { &other.upper } else { &other.lower };
        let lower = floor_div(&(&self.lower << self.bits), down);
        let upper = -floor_div(&-(&self.upper << self.bits), up);
        Self::new(lower, upper, self.bits)
    }

    /// The quotient by a whole number above zero.
    #[must_use]
    pub fn div_integer(&self, divisor: u64) -> Self {
        let divisor = IBig::from(divisor);
        Self::new(floor_div(&self.lower, &divisor), -floor_div(&-&self.upper, &divisor), self.bits)
    }

    /// The product with a whole number.
    #[must_use]
    pub fn mul_integer(&self, factor: &UBig) -> Self {
        Self::new(&self.lower * factor, &self.upper * factor, self.bits)
    }

    /// The number times 2^−shift.
    #[must_use]
    pub fn halve(&self, shift: usize) -> Self {
        Self::new(&self.lower >> shift, shift_up(&self.upper, shift), self.bits)
    }

    /// The square root of a number that is certainly not negative.
    #[must_use]
    pub fn sqrt(&self) -> Self {
        use dashu_base::SquareRoot;
        let root = |bound: &IBig| bound.clone().into_parts().1 << self.bits;
        let upper = root(&self.upper).sqrt() + UBig::ONE;
        Self::new(root(&self.lower).sqrt().into(), upper.into(), self.bits)
    }

    /// The same number, with `margin` (in units of 2^−bits) allowed on both sides.
    #[must_use]
    pub fn widen(&self, margin: &IBig) -> Self {
        Self::new(&self.lower - margin, &self.upper + margin, self.bits)
    }

    /// Everything between the two.
    #[must_use]
    pub fn hull(&self, other: &Self) -> Self {
        debug_assert_eq!(self.bits, other.bits);
        Self::new(
            self.lower.clone().min(other.lower.clone()),
            self.upper.clone().max(other.upper.clone()),
            self.bits,
        )
    }

    /// What is left when a number known to be at least 0 is cut off below 0.
    #[must_use]
    pub fn at_least_zero(&self) -> Self {
        Self::new(self.lower.clone().max(IBig::ZERO), self.upper.clone().max(IBig::ZERO), self.bits)
    }

    /// Bits that are certain after the leading one: about log2(value / width).
    pub fn certain_bits(&self) -> usize {
        let width = (&self.upper - &self.lower).bit_len();
        self.lower.bit_len().saturating_sub(width)
    }
}

fn directed(bound: &IBig, bits: usize, up: bool) -> f64 {
    let (sign, size) = bound.clone().into_parts();
    let negative = sign == dashu_base::Sign::Negative;
    let size = match up != negative {
        true => float::compose_up(&size, -(bits as i64)),
        false => float::compose_down(&size, -(bits as i64)),
    };
    if negative { -size } else { size }
}

/// a · 2^−shift, rounded up.
fn shift_up(value: &IBig, shift: usize) -> IBig {
    -(-value >> shift)
}

fn floor_div(a: &IBig, b: &IBig) -> IBig {
    // Euclid's remainder is never negative; with b > 0 the quotient is the floor.
    use dashu_base::DivEuclid;
    a.div_euclid(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encloses(enclosure: &Enclosure, value: &Rational) -> bool {
        let unit = Rational::power_of_two(-(enclosure.bits() as i64));
        &Rational::from(enclosure.lower().clone()) * &unit <= *value
            && *value <= &Rational::from(enclosure.upper().clone()) * &unit
    }

    fn fraction() -> impl Strategy<Value = Rational> {
        (-1_000_000i128..1_000_000, 1u128..1_000_000).prop_map(|(n, d)| Rational::new(n, d))
    }

    proptest! {
        #[test]
        fn every_operation_encloses_the_exact_result(a in fraction(), b in fraction(), bits in 1usize..80) {
            let (x, y) = (Enclosure::of(&a, bits), Enclosure::of(&b, bits));
            prop_assert!(encloses(&x.add(&y), &(&a + &b)));
            prop_assert!(encloses(&x.sub(&y), &(&a - &b)));
            prop_assert!(encloses(&x.mul(&y), &(&a * &b)));
            prop_assert!(encloses(&x.div_integer(7), &(&a / &Rational::from(7u32))));
            prop_assert!(encloses(&x.halve(3), &(&a / &Rational::from(8u32))));
            prop_assert!(encloses(&x.with_bits(bits / 2), &a));
            if *y.lower() > IBig::ZERO {
                prop_assert!(encloses(&x.div(&y), &(&a / &b)));
            }
            if *x.lower() > IBig::ZERO {
                prop_assert!(encloses(&x.mul(&x).sqrt(), &a));
            }
            prop_assert!(x.lower_f64() <= x.upper_f64());
        }
    }

    #[test]
    fn a_root_is_tight() {
        let two = Enclosure::integer(2, 100).sqrt();
        assert!(two.width_in_ulps() <= 1);
        assert!((two.lower_f64() - std::f64::consts::SQRT_2).abs() < 1e-15);
    }
}
