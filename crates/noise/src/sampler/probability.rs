//! [`Probability`]: a number in (0, 1) whose binary digits never run out.

use dashu_int::IBig;
use demur_exact::{Enclosure, Rational, exp_neg};

use crate::NoiseError;

/// An exact probability, as a formula that can be computed to any precision.
///
/// ```
/// use demur_noise::Probability;
/// let p = Probability::exp_neg("1/3".parse()?)?; // e^(−1/3)
/// assert!((p.to_f64() - 0.7165313105737893).abs() < 1e-15);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probability(Formula);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Formula {
    Ratio(Rational),
    /// e^(−x), x > 0.
    ExpNeg(Rational),
    /// 1 / (1 + factor · e^exponent), factor > 0.
    Logistic {
        factor: Rational,
        exponent: Rational,
    },
}

impl Probability {
    /// A fraction strictly between 0 and 1.
    pub fn ratio(value: Rational) -> Result<Self, NoiseError> {
        if !value.is_positive() || value >= Rational::one() {
            let message = format!("a probability must lie strictly between 0 and 1, but it is {value}");
            return Err(NoiseError::new("noise.probability", message));
        }
        Ok(Self(Formula::Ratio(value)))
    }

    /// Two tosses of a fair coin, not both heads.
    pub(crate) fn three_quarters() -> Self {
        Self(Formula::Ratio(Rational::new(3, 4)))
    }

    /// e^(−x) for x > 0.
    pub fn exp_neg(x: Rational) -> Result<Self, NoiseError> {
        if !x.is_positive() {
            let message = format!("e^(−x) is a probability below 1 only for x above 0, but x is {x}");
            return Err(NoiseError::new("noise.probability", message));
        }
        Ok(Self(Formula::ExpNeg(x)))
    }

    /// 1 / (1 + factor · e^exponent) for factor > 0.
    pub fn logistic(factor: Rational, exponent: Rational) -> Result<Self, NoiseError> {
        if !factor.is_positive() {
            let message = format!("the factor in 1/(1 + factor·e^x) must be above 0, but it is {factor}");
            return Err(NoiseError::new("noise.probability", message));
        }
        if exponent.is_zero() {
            // A fraction, whose digits may end; those of the formula below never do.
            return Self::ratio((&Rational::one() + &factor).recip());
        }
        Ok(Self(Formula::Logistic { factor, exponent }))
    }

    /// The probability with `bits` places after the binary point.
    pub fn enclose(&self, bits: usize) -> Enclosure {
        match &self.0 {
            Formula::Ratio(value) => Enclosure::of(value, bits),
            Formula::ExpNeg(x) => exp_neg(x, bits),
            Formula::Logistic { factor, exponent } => logistic(factor, exponent, bits),
        }
    }

    /// The nearest double, or nearly: for people, estimators and plots.
    pub fn to_f64(&self) -> f64 {
        self.enclose(1_200).lower_f64()
    }

    /// The first 128 binary digits after the point.
    pub(crate) fn first_digits(&self) -> u128 {
        let mut bits = 192;
        loop {
            let value = self.enclose(bits);
            // The number is below 1, even where its upper bound is not.
            let highest = (IBig::ONE << 128) - IBig::ONE;
            let cut = |bound: &IBig| (bound >> (bits - 128)).min(highest.clone());
            let (low, high) = (cut(value.lower()), cut(value.upper()));
            if low == high {
                return u128::try_from(low).unwrap_or(u128::MAX);
            }
            bits *= 2;
        }
    }
}

/// Both forms keep the exponential at most 1, whatever the sign of its exponent.
fn logistic(factor: &Rational, exponent: &Rational, bits: usize) -> Enclosure {
    let size = (factor.floor_log2().abs() + 8) as usize;
    let work = bits + size;
    let one = Enclosure::integer(1, work);
    let power = exp_neg(&exponent.abs(), work);
    let factor = Enclosure::of(factor, work);
    let value = if exponent.is_positive() {
        power.div(&power.add(&factor)) // e^(−x) / (e^(−x) + factor)
    } else {
        one.div(&one.add(&factor.mul(&power)))
    };
    value.with_bits(bits)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::sampler::table::tests::{hexadecimal, rows};
    use dashu_int::UBig;
    use proptest::prelude::*;

    /// Probabilities with their first 512 binary digits, independently computed.
    pub(crate) fn references() -> Vec<(Probability, Vec<u64>)> {
        let number = |text: &str| text.parse::<Rational>().unwrap();
        let read = |row: Vec<&str>| {
            let p = match row[0] {
                "exp_neg" => Probability::exp_neg(number(row[1])),
                "logistic" => Probability::logistic(number(row[1]), number(row[2])),
                _ => Probability::ratio(number(row[1])),
            };
            (p.unwrap(), hexadecimal(row[3]))
        };
        rows(include_str!("../../tests/data/coins.csv")).map(read).collect()
    }

    #[test]
    fn digits_agree_with_an_independent_computation() {
        for (p, words) in references() {
            let first = u128::from(words[0]) << 64 | u128::from(words[1]);
            assert_eq!(p.first_digits(), first, "{p:?}");
            let exact = words.iter().fold(UBig::ZERO, |digits, &word| (digits << 64) | UBig::from(word));
            let enclosed = p.enclose(512);
            // The digits are cut, so the probability is between them and one unit more.
            assert!(*enclosed.lower() <= IBig::from(exact.clone() + UBig::ONE), "{p:?}");
            assert!(*enclosed.upper() >= IBig::from(exact), "{p:?}");
            assert!(enclosed.width_in_ulps() <= 4, "{p:?} is {} wide", enclosed.width_in_ulps());
        }
    }

    /// Its digits end, and looking for the 129th among enclosures of the formula never did.
    #[test]
    fn a_logistic_without_exponent_is_a_fraction() {
        let p = Probability::logistic(Rational::new(1, 3), Rational::zero()).unwrap();
        assert_eq!(p, Probability::three_quarters());
        assert_eq!(p.first_digits(), 3 << 126);
    }

    #[test]
    fn what_is_no_probability_is_refused() {
        let number = |text: &str| text.parse::<Rational>().unwrap();
        for text in ["0", "1", "-1/2", "3/2"] {
            assert_eq!(Probability::ratio(number(text)).unwrap_err().code(), "noise.probability");
        }
        for text in ["0", "-1"] {
            assert_eq!(Probability::exp_neg(number(text)).unwrap_err().code(), "noise.probability");
            let error = Probability::logistic(number(text), Rational::one()).unwrap_err();
            assert_eq!(error.code(), "noise.probability");
        }
    }

    proptest! {
        /// 1/(1 + f·e^x) and 1/(1 + e^(−x)/f) are the two sides of one coin.
        #[test]
        fn logistic_sides_sum_to_one(above in 1u64..10_000, below in 1u64..10_000, x in -200i128..200) {
            let factor = &Rational::from(above) / &Rational::from(below);
            let exponent = Rational::new(2 * x + 1, 7);
            let p = Probability::logistic(factor.clone(), exponent.clone()).unwrap().enclose(200);
            let q = Probability::logistic(factor.recip(), -&exponent).unwrap().enclose(200);
            let sum = p.add(&q);
            prop_assert!(*sum.lower() <= IBig::ONE << 200 && *sum.upper() >= IBig::ONE << 200);
            prop_assert!(sum.width_in_ulps() <= 8);
        }
    }
}
