//! [`Units`]: whole numbers that stand for spent amounts, and the [`Grid`] they are counted on.
//!
//! **Definition.** An amount (an ε, a ρ, a μ², a Rényi divergence) is a whole number of units of 1/N with
//! N = 2⁵⁶·3²·5¹⁸·7, about 10⁻³¹. Decimals with up to 18 places, doubles down to 2⁻⁵⁶, thirds, sevenths and
//! ninths are whole numbers of it: ten times 0.1 is 1 and not a hair more. A δ is counted in units of 1/N of the
//! δ there is to spend, so that a δ of 10⁻³⁰⁰ keeps its digits too.
//!
//! **Exactness.** What is charged is rounded up, what may be spent is rounded down, and sums saturate: the
//! largest whole number stands for everything that is too large, and nothing ever returns from there.

use std::fmt;

use demur_exact::Rational;
use demur_exact::float::decompose;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// N = ODD·2^TWOS of the module text.
const PER_ONE: u128 = ODD << TWOS;
const ODD: u128 = 9 * 5u128.pow(18) * 7;
const TWOS: i32 = 56;

/// A whole number of units; JSON has it as text, because readers round large numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Units(pub(super) u128);

impl Units {
    /// Nothing.
    pub(super) const NONE: Self = Self(0);
    /// More than anybody has.
    pub(super) const ENDLESS: Self = Self(u128::MAX);

    /// The sum, or [`ENDLESS`](Self::ENDLESS).
    pub(super) fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// What is left after `spent`.
    pub(super) fn minus(self, spent: Self) -> Self {
        Self(self.0.saturating_sub(spent.0))
    }
}

impl fmt::Display for Units {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Units {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Units {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let units: u128 = text.parse().map_err(serde::de::Error::custom)?;
        if units.to_string() != text {
            return Err(serde::de::Error::custom(format!("`{text}` is not written as a whole number")));
        }
        Ok(Self(units))
    }
}

/// The least number of units of 1/N that is worth a double ≥ 0, which may be +∞.
pub(super) fn amount_up(amount: f64) -> Units {
    // 53 bits times 48 bits fit, and are exact.
    let Some((mantissa, exponent)) = decompose(amount) else { return Units::ENDLESS };
    let product = u128::from(mantissa) * ODD;
    let shift = exponent + TWOS;
    if product == 0 {
        return Units::NONE;
    }
    if shift >= 0 {
        let room = product.leading_zeros() >= shift.unsigned_abs();
        return if room { Units(product << shift) } else { Units::ENDLESS };
    }
    let kept = product.checked_shr(shift.unsigned_abs()).unwrap_or(0);
    let exact = kept.checked_shl(shift.unsigned_abs()).unwrap_or(0) == product;
    Units(if exact { kept } else { kept + 1 })
}

/// How many units make 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grid(Rational);

impl Grid {
    /// The grid of ε, ρ, μ² and Rényi divergences.
    pub(super) fn of_amounts() -> Self {
        Self(Rational::from(PER_ONE))
    }

    /// The grid for spending up to `delta`; where there is none to spend, any grid will do.
    pub(super) fn of_delta(delta: &Rational) -> Self {
        let whole = Rational::from(PER_ONE);
        Self(if delta.is_positive() { &whole / delta } else { whole })
    }

    /// The least number of units that is worth `amount`, which is not negative; `None` is without end.
    pub(super) fn up(&self, amount: Option<&Rational>) -> Units {
        let whole = amount.and_then(|amount| u128::try_from((amount * &self.0).ceil()).ok());
        whole.map_or(Units::ENDLESS, Units)
    }

    /// The largest number of units that is worth at most `amount`, which is not negative.
    pub(super) fn down(&self, amount: &Rational) -> Units {
        u128::try_from((amount * &self.0).floor()).map_or(Units::ENDLESS, Units)
    }

    /// What the units are worth, exactly.
    pub(super) fn value(&self, units: Units) -> Rational {
        &Rational::from(units.0) / &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn q(text: &str) -> Rational {
        text.parse().unwrap()
    }

    #[test]
    fn everyday_fractions_are_whole_numbers_of_units() {
        let grid = Grid::of_amounts();
        for text in ["0.1", "1e-18", "1/3", "2/7", "5/9", "0.3", "1/18014398509481984"] {
            assert_eq!(grid.value(grid.up(Some(&q(text)))), q(text), "{text}");
        }
        assert_eq!(grid.up(Some(&q("0.1"))).0 * 10, PER_ONE);
        // The double called 0.1 is a little more than a tenth, and exact too.
        let double = Rational::try_from(0.1).unwrap();
        assert_eq!(grid.value(grid.up(Some(&double))), double);
    }

    #[test]
    fn the_largest_budget_fits_and_what_does_not_is_endless() {
        let grid = Grid::of_amounts();
        assert!(grid.down(&q("1e7")) < Units::ENDLESS);
        assert_eq!(grid.up(Some(&q("1e30"))), Units::ENDLESS);
        assert_eq!(grid.up(None), Units::ENDLESS);
        assert_eq!(Units(u128::MAX - 1).plus(Units(2)), Units::ENDLESS);
        assert_eq!(Units(3).minus(Units(5)), Units::NONE);
    }

    #[test]
    fn the_smallest_delta_keeps_its_digits() {
        let delta = q("1.5e-300");
        let grid = Grid::of_delta(&delta);
        for parts in ["3", "10", "7000"] {
            let part = &delta / &q(parts);
            assert_eq!(grid.value(grid.up(Some(&part))), part);
        }
        assert_eq!(grid.value(grid.down(&delta)), delta);
    }

    #[test]
    fn units_are_written_as_text_in_one_way() {
        assert_eq!(serde_json::to_string(&Units(u128::MAX)).unwrap(), format!("\"{}\"", u128::MAX));
        assert_eq!(serde_json::from_str::<Units>("\"17\"").unwrap(), Units(17));
        for bad in ["17", "\"017\"", "\"+17\"", "\"-1\"", "\"1.0\"", "\"\""] {
            assert!(serde_json::from_str::<Units>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn doubles_out_of_range_are_endless_or_one_unit() {
        assert_eq!(amount_up(0.0), Units::NONE);
        assert_eq!(amount_up(f64::MIN_POSITIVE), Units(1));
        assert_eq!(amount_up(1e-60), Units(1));
        assert_eq!(amount_up(1.0), Units(PER_ONE));
        assert_eq!(amount_up(f64::MAX), Units::ENDLESS);
        assert_eq!(amount_up(f64::INFINITY), Units::ENDLESS);
    }

    proptest! {
        #[test]
        fn doubles_are_rounded_like_the_fractions_they_are(fraction in 0u64..1 << 52, exponent in -200i32..40) {
            let amount = f64::from_bits(fraction | ((1023 + exponent) as u64) << 52);
            let exact = Rational::try_from(amount).unwrap();
            prop_assert_eq!(amount_up(amount), Grid::of_amounts().up(Some(&exact)));
        }

        #[test]
        fn rounding_goes_where_its_name_says(n in 0i128..1 << 100, d in 1u128..1 << 100, small in any::<bool>()) {
            let amount = &Rational::new(n, d) * &Rational::power_of_two(if small { -90 } else { 0 });
            for grid in [Grid::of_amounts(), Grid::of_delta(&q("3e-9"))] {
                let (up, down) = (grid.up(Some(&amount)), grid.down(&amount));
                prop_assert!(down <= up && up.0 - down.0 <= 1);
                prop_assert!(grid.value(down) <= amount || up == Units::ENDLESS);
                prop_assert!(amount <= grid.value(up) || up == Units::ENDLESS);
            }
        }
    }
}
