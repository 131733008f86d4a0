//! [`GeometricDigit`]: one digit of a geometric variable.
//!
//! **Definition.** Let G be geometric with ratio r: Pr[G = k] = (1 − r)·rᵏ. For any
//! radix R its lowest digit G mod R and what is above it, G div R, are
//! independent; the digit has Pr[j] = rʲ(1 − r)/(1 − r^R), and G div R is again
//! geometric, with ratio r^R.
//!
//! **Why.** r^(j + R·q) = rʲ · (r^R)^q is a product of a function of j and one of q.

use dashu_int::UBig;
use demur_exact::{Enclosure, Rational, exp_neg};

use crate::sampler::table::{Fraction, Law};

/// The law of one digit; outcome n is (digit, sign) = (n div 2, n mod 2) when signed.
#[derive(Clone, Debug)]
pub(crate) struct GeometricDigit {
    /// r = e^(−rate).
    pub(crate) rate: Rational,
    /// The digit is below this, or unbounded for the highest one.
    pub(crate) radix: Option<u64>,
    /// Whether outcomes carry a sign, negative with probability r/(1 + r).
    pub(crate) signed: bool,
}

impl Law for GeometricDigit {
    fn probabilities(&self, bits: usize) -> Box<dyn Iterator<Item = Enclosure> + '_> {
        let work = bits + 32;
        let one = Enclosure::integer(1, work);
        let ratio = exp_neg(&self.rate, work);
        let first = self.first(&one, &ratio);
        let digits = powers(first, ratio.clone()).take(self.radix.unwrap_or(u64::MAX) as usize);
        if !self.signed {
            return Box::new(digits.map(move |p| p.with_bits(bits)));
        }
        let plus = one.div(&one.add(&ratio));
        let minus = ratio.div(&one.add(&ratio));
        Box::new(digits.flat_map(move |p| [p.mul(&plus), p.mul(&minus)]).map(move |p| p.with_bits(bits)))
    }

    fn lower_bounds(&self) -> Box<dyn Iterator<Item = Fraction> + '_> {
        let one = Enclosure::integer(1, 160);
        let ratio = exp_neg(&self.rate, 160);
        let first = Fraction::below(&self.first(&one, &ratio));
        let plus = Fraction::below(&one.div(&one.add(&ratio)));
        let minus = Fraction::below(&ratio.div(&one.add(&ratio)));
        let ratio = Fraction::below(&ratio);
        let digits = std::iter::successors(Some(first), move |p| Some(p.mul(ratio)));
        let digits = digits.take(self.radix.unwrap_or(u64::MAX) as usize);
        match self.signed {
            true => Box::new(digits.flat_map(move |p| [p.mul(plus), p.mul(minus)])),
            false => Box::new(digits),
        }
    }
}

impl GeometricDigit {
    /// The probability of digit 0: (1 − r) / (1 − r^R).
    fn first(&self, one: &Enclosure, ratio: &Enclosure) -> Enclosure {
        let bits = one.bits();
        let Some(radix) = self.radix else { return one.sub(ratio) };
        // When r is close to 1 both differences are small: take digits for that.
        let lost = (-self.rate.floor_log2()).max(0) as usize + 2;
        let one = one.with_bits(bits + lost);
        let above = one.sub(&exp_neg(&self.rate, bits + lost));
        let rate = &self.rate * &Rational::from(radix);
        let below = one.sub(&exp_neg(&rate, bits + lost));
        above.div(&below).with_bits(bits)
    }
}

/// first, first·ratio, first·ratio², …
fn powers(first: Enclosure, ratio: Enclosure) -> impl Iterator<Item = Enclosure> {
    std::iter::successors(Some(first), move |p| Some(p.mul(&ratio)))
}

/// 1 / n for a scale of n steps.
pub(crate) fn rate_of_digit(scale: &Rational, step: &UBig) -> Rational {
    &Rational::from(step.clone()) / scale
}
