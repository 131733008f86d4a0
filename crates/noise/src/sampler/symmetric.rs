//! [`Symmetric`]: laws with weights e^(−c·|m|) or e^(−c·m²), cut off or not.

use dashu_int::IBig;
use demur_exact::{Enclosure, Rational, exp_neg, pi};

use crate::sampler::table::{Fraction, Law};

/// How weights fall off on both sides of zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// e^(−rate·|m|).
    Tent,
    /// e^(−rate·m²).
    Bell,
}

/// A law on the whole numbers, or on those that are not negative.
///
/// Signed, outcome 2m stands for m and outcome 2m + 1 for −1 − m; otherwise
/// outcome m stands for m ≥ 0.
#[derive(Clone, Debug)]
pub(crate) struct Symmetric {
    pub(crate) rate: Rational,
    pub(crate) shape: Shape,
    pub(crate) signed: bool,
    /// No value is further from zero than this.
    pub(crate) limit: Option<u64>,
}

/// A term this small (in units of the last place) ends an endless sum.
const NEGLIGIBLE_LOG2: usize = 24;

impl Law for Symmetric {
    fn probabilities(&self, bits: usize) -> Box<dyn Iterator<Item = Enclosure> + '_> {
        let work = bits + 48;
        let total = self.total(work);
        let heights = self.heights(work).map(move |f| f.div(&total).with_bits(bits));
        Box::new(self.fold(heights))
    }

    fn lower_bounds(&self) -> Box<dyn Iterator<Item = Fraction> + '_> {
        let bits = 192;
        let (slope, bend) = self.steps(bits);
        let height = Fraction::below(&Enclosure::integer(1, bits).div(&self.total(bits)));
        let start = (height, Fraction::below(&slope));
        let heights = match bend.map(|bend| Fraction::below(&bend)) {
            Some(bend) => self.limited(move |(f, g): (Fraction, Fraction)| (f.mul(g), g.mul(bend)), start),
            None => self.limited(|(f, g): (Fraction, Fraction)| (f.mul(g), g), start),
        };
        Box::new(self.fold(heights.map(|(f, _)| f)))
    }
}

impl Symmetric {
    /// The ratio of the first two weights, and by what it shrinks at each step.
    fn steps(&self, bits: usize) -> (Enclosure, Option<Enclosure>) {
        let slope = exp_neg(&self.rate, bits);
        let bend = || exp_neg(&(&self.rate * &Rational::from(2u32)), bits);
        (slope, (self.shape == Shape::Bell).then(bend))
    }

    /// The weights at 0, 1, 2, …: each is the one before times a ratio, and for a
    /// bell that ratio is itself geometric.
    fn heights(&self, bits: usize) -> impl Iterator<Item = Enclosure> + use<> {
        let (slope, bend) = self.steps(bits);
        let next = move |(f, g): (Enclosure, Enclosure)| {
            let height = f.mul(&g);
            let slope = bend.as_ref().map_or_else(|| g.clone(), |bend| g.mul(bend));
            (height, slope)
        };
        self.limited(next, (Enclosure::integer(1, bits), slope)).map(|(f, _)| f)
    }

    /// start, next(start), … as far as the law goes.
    fn limited<'a, T: Clone + 'a>(
        &self,
        next: impl Fn(T) -> T + 'a,
        start: T,
    ) -> Box<dyn Iterator<Item = T> + 'a> {
        let steps = std::iter::successors(Some(start), move |last| Some(next(last.clone())));
        let values = self.limit.map_or(usize::MAX, |limit| (limit as usize).saturating_add(1));
        Box::new(steps.take(values))
    }

    /// The sum of all weights.
    fn total(&self, bits: usize) -> Enclosure {
        self.total_of_wide_bell(bits).unwrap_or_else(|| self.total_by_adding(bits))
    }

    /// The sum of all weights of a bell that is wide for so many digits.
    ///
    /// **Why.** With c the rate, Poisson's sum is Σₖ e^(−ck²) = √(π/c) · Σₙ e^(−π²n²/c) over all whole numbers. What n ≠ 0 adds to √(π/c) is less than
    /// √(π/c) · 4e^(−9/c), and with x = 9/c ≥ 2 · (bits + 2) that is at most 4x · e^(−x) < 3e^(−x/2) < 2^(−bits).
    fn total_of_wide_bell(&self, bits: usize) -> Option<Enclosure> {
        let wide = &self.rate * &Rational::from(2 * (bits as u64 + 2)) <= Rational::from(9u32);
        if self.shape != Shape::Bell || self.limit.is_some() || !wide {
            return None;
        }
        // Digits enough for a root as great as √(π/c) to have `bits` places.
        let work = bits + 8 + self.rate.recip().floor_log2().max(0) as usize;
        let root = pi(work).mul(&Enclosure::of(&self.rate.recip(), work)).sqrt();
        let tiny = IBig::ONE << (work - bits);
        let line = Enclosure::new(root.lower().clone(), root.upper() + tiny, work).with_bits(bits);
        Some(if self.signed { line } else { line.add(&Enclosure::integer(1, bits)).halve(1) })
    }

    fn total_by_adding(&self, bits: usize) -> Enclosure {
        let one = Enclosure::integer(1, bits);
        let mut side = Enclosure::integer(0, bits);
        let mut previous = one.clone();
        for height in self.heights(bits).skip(1) {
            side = side.add(&height);
            // From here on no ratio of neighbours exceeds height/previous, so what
            // follows is at most height²/(previous − height), less than:
            let gap = previous.sub(&height);
            if *height.upper() <= (IBig::ONE << NEGLIGIBLE_LOG2) && *gap.lower() > IBig::ZERO {
                // (The quotient first: a product of two such small numbers has no digits left.)
                let rest = height.mul(&previous.div(&gap));
                side = Enclosure::new(side.lower().clone(), side.upper() + rest.upper(), bits);
                break;
            }
            previous = height;
        }
        if self.signed { one.add(&side).add(&side) } else { one.add(&side) }
    }

    /// From the values at 0, 1, 2, … to the values of the outcomes.
    fn fold<T: Clone>(&self, heights: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        let signed = self.signed;
        heights.enumerate().flat_map(move |(m, value)| {
            // Signed, the value at m > 0 serves −m (outcome 2m − 1) and m (outcome 2m).
            let copies = if signed && m > 0 { 2 } else { 1 };
            std::iter::repeat_n(value, copies)
        })
    }
}

/// The whole number that a signed outcome stands for: 0, −1, 1, −2, 2, …
#[inline]
pub(crate) fn unfold(outcome: u64) -> i64 {
    // −1 − m is the bitwise complement of m.
    (outcome >> 1) as i64 ^ -((outcome & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laws() -> Vec<Symmetric> {
        let mut laws = vec![];
        for (rate, limit) in
            [("1/2", None), ("3", None), ("1/4000", None), ("7", Some(3)), ("1/1000", Some(900))]
        {
            for signed in [true, false] {
                for shape in [Shape::Bell, Shape::Tent] {
                    if shape == Shape::Bell || limit.is_some() {
                        laws.push(Symmetric { rate: rate.parse().unwrap(), shape, signed, limit });
                    }
                }
            }
        }
        laws
    }

    /// The end of an endless sum was once bounded by a product of two numbers so small that
    /// rounding it up left 2⁻²³ in every enclosure, whatever the digits asked for: one draw
    /// in 2²⁴ fell on the remainder, and none of those could be decided.
    #[test]
    fn enclosures_narrow_when_more_digits_are_asked_for() {
        for law in laws() {
            for bits in [64, 192, 500, 1000] {
                for p in law.probabilities(bits).take(20) {
                    assert!(p.width_in_ulps() <= 2, "{law:?} with {bits} bits: {p:?}");
                }
            }
        }
    }

    #[test]
    fn wide_bells_have_the_same_total_without_adding() {
        for (rate, bits) in
            [("1/100", 192), ("9/400", 198), ("1/4000", 64), ("3/123456", 240), ("1/70000", 500)]
        {
            for signed in [true, false] {
                let rate = rate.parse().unwrap();
                let bell = Symmetric { rate, shape: Shape::Bell, signed, limit: None };
                let (quick, slow) = (bell.total_of_wide_bell(bits).unwrap(), bell.total_by_adding(bits + 64));
                let slow = slow.with_bits(bits);
                assert!(quick.lower() <= slow.upper() && slow.lower() <= quick.upper(), "{bell:?}");
                assert!(quick.width_in_ulps() <= 4 && slow.width_in_ulps() <= 4, "{bell:?}: {quick:?}");
            }
        }
        let narrow =
            Symmetric { rate: "9/400".parse().unwrap(), shape: Shape::Bell, signed: true, limit: None };
        assert!(narrow.total_of_wide_bell(199).is_none());
        let cut = Symmetric { limit: Some(9), ..narrow };
        assert!(cut.total_of_wide_bell(64).is_none());
    }

    #[test]
    fn probabilities_sum_to_one() {
        for law in laws() {
            let sum =
                law.probabilities(128).take(3000).fold(Enclosure::integer(0, 128), |sum, p| sum.add(&p));
            let one = IBig::ONE << 128;
            // What 3000 terms leave out is far below a unit of 2⁻⁶⁴.
            assert!(*sum.upper() >= &one - (IBig::ONE << 64) && *sum.lower() <= one, "{law:?}");
        }
    }

    #[test]
    fn outcomes_unfold_to_both_sides_of_zero() {
        assert_eq!([0, 1, 2, 3, 4, 5].map(unfold), [0, -1, 1, -2, 2, -3]);
        let law = Symmetric { rate: Rational::one(), shape: Shape::Tent, signed: true, limit: Some(2) };
        let p: Vec<_> = law.probabilities(64).collect();
        assert_eq!(p.len(), 5);
        assert!(p[1] == p[2] && p[3] == p[4] && p[0].lower() > p[1].upper() && p[2].lower() > p[3].upper());
    }
}
