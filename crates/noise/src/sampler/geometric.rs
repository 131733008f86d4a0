//! [`GeometricDigit`]: one digit of a geometric variable.
//!
//! **Definition.** Let G be geometric with ratio r: Pr[G = k] = (1 − r)·rᵏ. For any
//! radix R its lowest digit G mod R and what is above it, G div R, are
//! independent; the digit has Pr(j) = rʲ(1 − r)/(1 − r^R), and G div R is again
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

#[cfg(test)]
mod tests {
    use super::*;
    use dashu_int::IBig;

    /// Two digits and what is above them, put together, are the geometric variable itself.
    #[test]
    fn digits_multiply_to_the_law_they_were_taken_from() {
        let (rate, radix, bits) = (Rational::new(2, 13), 5u64, 128);
        let whole = GeometricDigit { rate: rate.clone(), radix: None, signed: false };
        let low = GeometricDigit { rate: rate.clone(), radix: Some(radix), signed: false };
        let high = GeometricDigit { rate: &rate * &Rational::from(radix), radix: None, signed: false };
        let low: Vec<_> = low.probabilities(bits).collect();
        assert_eq!(low.len(), 5);
        let high: Vec<_> = high.probabilities(bits).take(10).collect();
        for (k, p) in whole.probabilities(bits).take(50).enumerate() {
            let product = low[k % 5].mul(&high[k / 5]);
            assert!(product.lower() <= p.upper() && product.upper() >= p.lower(), "{k}");
            assert!(product.width_in_ulps() <= 8);
        }
    }

    #[test]
    fn enclosures_narrow_when_more_digits_are_asked_for() {
        for rate in ["2", "1/1000", "1/1152921504606846976"] {
            for radix in [None, Some(1023)] {
                for signed in [true, false] {
                    let law = GeometricDigit { rate: rate.parse().unwrap(), radix, signed };
                    for bits in [64, 300, 1000] {
                        assert!(law.probabilities(bits).take(30).all(|p| p.width_in_ulps() <= 2), "{law:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_closed_digit_has_probabilities_that_sum_to_one() {
        for signed in [true, false] {
            let law = GeometricDigit { rate: Rational::new(1, 300), radix: Some(511), signed };
            let sum = law.probabilities(128).fold(Enclosure::integer(0, 128), |sum, p| sum.add(&p));
            assert!(*sum.lower() <= IBig::ONE << 128 && *sum.upper() >= IBig::ONE << 128);
        }
    }
}
