//! Values as whole numbers of steps.
//!
//! **Definition.** A whole number (date, time, boolean) is itself; a decimal is its count of last places; a float x with step 2^e is
//! ⌊x · 2⁻ᵉ + ½⌋. What results is forced into the bounds. NULL and NaN give [`ABSENT`].
//!
//! **Exactness.** x · 2⁻ᵉ is exact unless it leaves the range of doubles: above, it becomes an infinity, which the bounds catch; below, it is
//! nearer to 0 than ½ and stays so. Truncation to an integer and the fraction that is cut off are exact, so halves are seen
//! exactly. Nothing else is done in floating point.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, i256};

use crate::column::{Kind, floats, integers, kind, nulls, plain, plain_type, there};
use crate::error::TallyError;
use crate::spec::{Bounds, Step};
use demur_exact::widest;

/// The steps of a value that is not there; no bounds reach so far.
pub(crate) const ABSENT: i64 = i64::MIN;

/// No bound lies further from 0.
const FURTHEST: f64 = 4_611_686_018_427_387_904.0; // 2⁶²

/// Whether values of this type are counted in this step.
pub(crate) fn accepts(data_type: &DataType, step: Step) -> bool {
    match (plain_type(data_type), step) {
        (DataType::Null, _) => true,
        (
            DataType::Decimal32(_, scale)
            | DataType::Decimal64(_, scale)
            | DataType::Decimal128(_, scale)
            | DataType::Decimal256(_, scale),
            Step::Decimal(places),
        ) => *scale == places,
        (DataType::Decimal32(..) | DataType::Decimal64(..), _) => false,
        (plain, Step::One) => matches!(kind(plain), Some(Kind::Word(native)) if !native.is_float()),
        (plain, Step::Binary(_)) => matches!(kind(plain), Some(Kind::Word(native)) if native.is_float()),
        _ => false,
    }
}

/// Makes these the steps of each value of a column.
pub(crate) fn steps_into(
    array: &ArrayRef,
    step: Step,
    bounds: Bounds,
    steps: &mut Vec<i64>,
) -> Result<(), TallyError> {
    let array = plain(array)?;
    let data = array.to_data();
    match (kind(array.data_type()), array.data_type(), step) {
        (Some(Kind::Nothing), ..) => fill(steps, array.len(), ABSENT),
        (Some(Kind::Word(native)), _, Step::Binary(exponent)) => {
            let scale = power_of_two(-exponent);
            match Near::new(bounds) {
                Some(near) => widest!(floats(&data, native, steps, |value| near.steps(value, scale))),
                None => floats(&data, native, steps, |value| float_steps(value, scale, bounds)),
            }
        }
        (Some(Kind::Word(native)), ..) => {
            widest!(integers(&array, &data, native, steps, |value| value.clamp(bounds.low, bounds.high)));
        }
        (_, DataType::Decimal128(..), _) => {
            let [low, high] = [i128::from(bounds.low), i128::from(bounds.high)];
            let values = array.as_primitive::<Decimal128Type>().values();
            steps.clear();
            steps.extend(values.iter().map(|&value| value.clamp(low, high) as i64));
        }
        (_, DataType::Decimal256(..), _) => {
            let [low, high] = [i256::from(bounds.low), i256::from(bounds.high)];
            let values = array.as_primitive::<Decimal256Type>().values();
            steps.clear();
            steps.extend(values.iter().map(|&value| value.clamp(low, high).as_i128() as i64));
        }
        _ => return Err(TallyError::ours("a column without numbers was summed")),
    }
    strike_nulls(&array, steps);
    Ok(())
}

/// Makes these 0 for each value that is there and [`ABSENT`] for the others.
pub(crate) fn there_into(array: &ArrayRef, steps: &mut Vec<i64>) -> Result<(), TallyError> {
    fill(steps, array.len(), 0);
    strike_absent(&plain(array)?, steps);
    Ok(())
}

fn fill(steps: &mut Vec<i64>, rows: usize, with: i64) {
    steps.clear();
    steps.resize(rows, with);
}

/// Makes the steps of each NULL and each NaN [`ABSENT`].
pub(crate) fn strike_absent(array: &ArrayRef, steps: &mut [i64]) {
    if let Some(there) = there(array) {
        strike(&there, steps);
    }
}

fn strike_nulls(array: &ArrayRef, steps: &mut [i64]) {
    if let Some(valid) = nulls(array) {
        strike(&valid, steps);
    }
}

fn strike(valid: &NullBuffer, steps: &mut [i64]) {
    widest!({
        for (steps, bits) in steps.chunks_mut(64).zip(valid.inner().bit_chunks().iter_padded()) {
            for (at, steps) in steps.iter_mut().enumerate() {
                *steps = if bits >> at & 1 == 1 { *steps } else { ABSENT };
            }
        }
    });
}

fn float_steps(value: f64, scale: f64, bounds: Bounds) -> i64 {
    if value.is_nan() {
        return ABSENT;
    }
    let scaled = (value * scale).clamp(-FURTHEST, FURTHEST);
    let whole = scaled as i64;
    let rest = scaled - whole as f64;
    let rounded = whole + i64::from(rest >= 0.5) - i64::from(rest < -0.5);
    rounded.clamp(bounds.low, bounds.high)
}

/// Bounds that are no further than 2⁵¹ from 0, for which many values can be counted at once.
///
/// **Exactness.** Forcing into whole bounds first and rounding then is the same as the other way round. For |x| ≤ 2⁵¹ the sum x + 3 · 2⁵¹ lies between 2⁵² and 2⁵³, where doubles are the
/// whole numbers: it is x rounded to one of its neighbours, the last bits of the sum count it, and x minus the neighbour is exact.
#[derive(Clone, Copy)]
struct Near {
    low: f64,
    high: f64,
}

impl Near {
    /// 3 · 2⁵¹.
    const AWAY: f64 = 6_755_399_441_055_744.0;

    fn new(bounds: Bounds) -> Option<Self> {
        let near = |bound: i64| bound.unsigned_abs() <= 1 << 51;
        (near(bounds.low) && near(bounds.high))
            .then_some(Self { low: bounds.low as f64, high: bounds.high as f64 })
    }

    #[inline(always)]
    fn steps(self, value: f64, scale: f64) -> i64 {
        let scaled = value * scale;
        let scaled = if scaled < self.low { self.low } else { scaled };
        let scaled = if scaled > self.high { self.high } else { scaled };
        let neighbour = (scaled + Self::AWAY) - Self::AWAY;
        let rest = scaled - neighbour; // between −½ and ½
        let rounded = neighbour + if rest == 0.5 { 1.0 } else { 0.0 };
        let steps = ((rounded + Self::AWAY).to_bits() as i64).wrapping_sub(Self::AWAY.to_bits() as i64);
        if value.is_nan() { ABSENT } else { steps }
    }
}

/// 2^exponent for −1022 ≤ exponent ≤ 1023.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// Cells of equal width between bounds.
///
/// **Exactness.** With w = high − low + 1, c cells and m = ⌊2⁶⁴ · c / w⌋, the estimate ⌊x · m / 2⁶⁴⌋ of ⌊x · c / w⌋ for 0 ≤ x < w is right or one
/// too small, since x < 2⁶⁴; one comparison of products tells which.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cells {
    low: i64,
    width: u64,
    cells: u64,
    /// None where there are at least as many cells as steps; products are small there.
    factor: Option<u64>,
}

impl Cells {
    pub(crate) fn new(bounds: Bounds, cells: u32) -> Self {
        let width = bounds.high.wrapping_sub(bounds.low) as u64 + 1;
        let cells = u64::from(cells);
        let factor = (cells < width).then(|| ((u128::from(cells) << 64) / u128::from(width)) as u64);
        Self { low: bounds.low, width, cells, factor }
    }

    /// The cell of a value within the bounds.
    #[inline]
    pub(crate) fn cell(&self, steps: i64) -> i64 {
        let offset = steps.wrapping_sub(self.low) as u64;
        let Some(factor) = self.factor else { return (offset * self.cells / self.width) as i64 };
        let estimate = ((u128::from(offset) * u128::from(factor)) >> 64) as u64;
        let reached =
            u128::from(estimate + 1) * u128::from(self.width) <= u128::from(offset) * u128::from(self.cells);
        (estimate + u64::from(reached)) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Decimal256Array, Float64Array, UInt64Array};
    use proptest::prelude::*;
    use std::sync::Arc;

    const WIDE: Bounds = Bounds { low: -(1 << 62), high: 1 << 62 };

    fn steps(array: impl Array + 'static, step: Step, bounds: Bounds) -> Vec<i64> {
        // What stood there before must not matter.
        let mut steps = vec![7; 3];
        steps_into(&(Arc::new(array) as ArrayRef), step, bounds, &mut steps).unwrap();
        steps
    }

    #[test]
    fn only_bounds_beyond_two_to_the_51_are_far() {
        let near = |low, high| Near::new(Bounds { low, high }).is_some();
        assert!(near(-(1 << 51), 1 << 51) && !near(-(1 << 51) - 1, 0) && !near(0, (1 << 51) + 1));
    }

    #[test]
    fn halves_go_up() {
        let halves = Float64Array::from(vec![0.5, 1.5, -0.5, -1.5, 0.49999999999999994, -0.0]);
        assert_eq!(steps(halves.clone(), Step::Binary(0), WIDE), [1, 2, 0, -1, 0, 0]);
        assert_eq!(steps(halves, Step::Binary(0), Bounds { low: -9, high: 9 }), [1, 2, 0, -1, 0, 0]);
        let quarters = Float64Array::from(vec![0.125, -0.125, 0.25]);
        assert_eq!(steps(quarters, Step::Binary(-2), WIDE), [1, 0, 1]);
    }

    #[test]
    fn what_is_no_number_is_absent_and_what_is_infinite_is_the_bound() {
        let odd =
            Float64Array::from(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 5e-324, -5e-324]);
        assert_eq!(
            steps(odd.clone(), Step::Binary(0), Bounds { low: -7, high: 9 }),
            [ABSENT, 9, -7, 9, 0, 0]
        );
        assert_eq!(steps(odd.clone(), Step::Binary(-1022), WIDE)[1..4], [1 << 62, -(1 << 62), 1 << 62]);
        assert_eq!(steps(odd, Step::Binary(1022), WIDE)[3..], [4, 0, 0]);
    }

    #[test]
    fn numbers_beyond_sixty_four_bits_are_the_bound() {
        assert_eq!(
            steps(UInt64Array::from(vec![u64::MAX, 3]), Step::One, Bounds { low: 0, high: 5 }),
            [5, 3]
        );
        let huge =
            Decimal256Array::from(vec![Some(i256::MAX), Some(i256::MIN), Some(i256::from(-2i64)), None]);
        let huge = huge.with_precision_and_scale(76, 2).unwrap();
        assert_eq!(steps(huge, Step::Decimal(2), Bounds { low: -4, high: 6 }), [6, -4, -2, ABSENT]);
    }

    proptest! {
        #[test]
        fn floats_round_like_exact_fractions(mantissa in -(1i64 << 53)..1 << 53, places in 0i32..70) {
            let value = mantissa as f64 * power_of_two(-places);
            let exact = (i128::from(mantissa) * 2 + (1 << places)) >> (places + 1); // ⌊m / 2^p + ½⌋
            prop_assert_eq!(i128::from(float_steps(value, 1.0, WIDE)), exact);
        }

        #[test]
        fn near_bounds_give_the_same(
            mantissa in -(1i64 << 53)..1 << 53, places in prop_oneof![-20i32..70, 1i32..3],
            odd in prop::sample::select(vec![None, Some(f64::NAN), Some(-f64::NAN), Some(f64::INFINITY), Some(f64::NEG_INFINITY), Some(-0.0)]),
            ends in prop::array::uniform2(prop_oneof![-9i64..9, Just(1 << 51), Just(-(1 << 51)), -(1i64 << 51)..1 << 51]),
        ) {
            let bounds = Bounds { low: ends[0].min(ends[1]), high: ends[0].max(ends[1]) };
            let near = Near::new(bounds).unwrap();
            let value = odd.unwrap_or(mantissa as f64 * power_of_two(-places));
            let neighbours = [value, value.next_up(), value.next_down(), bounds.low as f64 + 0.5, bounds.high as f64 - 0.5];
            for value in neighbours {
                prop_assert_eq!(near.steps(value, 1.0), float_steps(value, 1.0, bounds));
            }
        }

        #[test]
        fn cells_are_the_documented_quotient(
            low in -(1i64 << 62)..=1 << 62, width in prop_oneof![1u64..5000, 1..=u64::MAX >> 1],
            cells in prop_oneof![1u32..5000, 1..=u32::MAX], at in any::<u64>(), edge in any::<bool>(),
        ) {
            let high = low.saturating_add_unsigned(width - 1).min(1 << 62);
            let width = (high - low) as u64 + 1;
            let mut offset = at % width;
            if edge {
                // The first value of some cell, where an error by one would show.
                let cell = at % u64::from(cells);
                offset = ((u128::from(cell) * u128::from(width)).div_ceil(u128::from(cells)) as u64).min(width - 1);
            }
            let exact = u128::from(offset) * u128::from(cells) / u128::from(width);
            let cell = Cells::new(Bounds { low, high }, cells).cell(low.wrapping_add_unsigned(offset));
            prop_assert_eq!(cell as u128, exact);
        }
    }
}
