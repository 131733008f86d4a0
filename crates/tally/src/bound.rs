//! What a unit's own sums may count for: the last step before they meet other units' sums.
//!
//! **Guarantee.** Each function's value lies in the range its [`Measure`](crate::Measure) names, for every input; with nothing there it is 0.

use crate::spec::Bounds;
use crate::wide::Number;

/// Rows, up to `most`.
pub(crate) fn count(rows: impl Number, most: u64) -> i128 {
    rows.within(i128::MIN, i128::from(most))
}

/// A sum, within bounds that hold 0.
pub(crate) fn sum(total: impl Number, bounds: Bounds) -> i128 {
    total.within(i128::from(bounds.low), i128::from(bounds.high))
}

/// The sum of distances from `centre` over `rows` rows, counted as at most `most` rows.
///
/// Each distance is at most D = max(high − centre, centre − low) ≤ 2⁶³, so the sum is at most rows · D and what is left of it at most
/// most · D.
pub(crate) fn deviation(total: i128, rows: i128, centre: i64, most: u64) -> i128 {
    let distance = total - rows * i128::from(centre);
    // As nearly everywhere.
    if rows <= i128::from(most) {
        return distance;
    }
    let scaled = scale(distance.unsigned_abs(), rows.unsigned_abs(), most) as i128;
    if distance < 0 { -scaled } else { scaled }
}

/// ⌊amount · most / all⌋ where all > most, and the amount itself otherwise.
///
/// The amount is split as q · all + r with r < all, so that no product passes 128 bits: q · most is below the amount, and r and `most` are
/// below 2⁶⁴.
pub(crate) fn scale(amount: u128, all: u128, most: u64) -> u128 {
    let most = u128::from(most);
    if all <= most {
        return amount;
    }
    amount / all * most + amount % all * most / all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_unit_with_more_rows_than_allowed_counts_a_share_rounded_towards_zero() {
        assert_eq!(deviation(10 * 7, 10, 0, 4), 28);
        assert_eq!(deviation(7, 3, 0, 2), 4);
        assert_eq!(deviation(-7, 3, 0, 2), -4);
        assert_eq!(deviation(7, 3, 0, 3), 7);
        assert_eq!(deviation(7, 3, 0, 0), 0);
        assert_eq!(deviation(0, 0, 5, 0), 0);
    }

    #[test]
    fn the_furthest_sums_do_not_overflow() {
        let [rows, value] = [i128::from(u64::MAX), 1i128 << 62];
        let most = u64::MAX - 1;
        assert_eq!(deviation(rows * value, rows, -(1 << 62), most), i128::from(most) << 63);
        assert_eq!(deviation(-rows * value, rows, 1 << 62, most), -(i128::from(most) << 63));
    }

    proptest! {
        #[test]
        fn shares_are_the_documented_quotient(values in prop::collection::vec(-1000i64..1000, 0..20), centre in -1000i64..1000, most in 0u64..25) {
            let rows = values.len() as i128;
            let total: i128 = values.iter().map(|&value| i128::from(value)).sum();
            let distance: i128 = values.iter().map(|&value| i128::from(value - centre)).sum();
            let expected = if rows > i128::from(most) { distance * i128::from(most) / rows } else { distance };
            prop_assert_eq!(deviation(total, rows, centre, most), expected);
        }
    }
}
