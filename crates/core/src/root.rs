//! Square roots of fractions, rounded upward.

use demur_exact::{Enclosure, Rational};

/// Places after the binary point to which an irrational root is found.
const BITS: usize = 64;

/// √value for value ≥ 0: exact when it is a fraction, else above by less than 1 in 2⁶³.
///
/// √(a/b) = √(a·b)/b, and a·b is a whole number: its root is a fraction only when it is
/// whole, and otherwise at least 1, so that 64 places are a relative precision.
pub(crate) fn sqrt_up(value: &Rational) -> Rational {
    debug_assert!(!value.is_negative(), "only numbers from 0 up have a root");
    let denominator = Rational::from(value.denominator().clone());
    let whole = Enclosure::integer(value.numerator() * value.denominator(), BITS).sqrt();
    let root = |bound: &_| &Rational::dyadic(Clone::clone(bound), -(BITS as i64)) / &denominator;
    let below = root(whole.lower());
    if below.square() == *value { below } else { root(whole.upper()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fraction() -> impl Strategy<Value = Rational> {
        (0i128..1_000_000_000_000, 1u128..1_000_000_000_000).prop_map(|(n, d)| Rational::new(n, d))
    }

    proptest! {
        #[test]
        fn a_root_is_never_below_and_hardly_above(value in fraction(), power in -400i64..400) {
            let value = &value * &Rational::power_of_two(power);
            let root = sqrt_up(&value);
            prop_assert!(root.square() >= value);
            let slack = &Rational::one() + &Rational::power_of_two(-62);
            prop_assert!(root.square() <= &value * &slack);
        }

        #[test]
        fn the_root_of_a_square_is_exact(value in fraction()) {
            prop_assert_eq!(sqrt_up(&value.square()), value);
        }
    }

    #[test]
    fn the_root_of_zero_is_zero() {
        assert!(sqrt_up(&Rational::zero()).is_zero());
    }
}
