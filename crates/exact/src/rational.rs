//! [`Rational`]: an exact fraction.

use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::str::FromStr;

use dashu_base::{Abs, Gcd, Signed};
use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::float;

/// Decimal exponents beyond this are refused: no double reaches them.
const MAX_EXPONENT: u64 = 5_000;
/// Digits of one number beyond this are refused.
const MAX_DIGITS: usize = 10_000;

/// An exact fraction of two whole numbers of any size.
///
/// Reads decimals (`0.1`, `1e-6`) and fractions (`1/3`) without rounding, and
/// doubles as the number they are.
///
/// ```
/// use demur_exact::Rational;
///
/// let tenth: Rational = "0.1".parse()?;
/// assert_eq!(tenth, Rational::new(1, 10));
/// assert_ne!(tenth, Rational::try_from(0.1)?); // a double is not a tenth
/// assert_eq!((&tenth + &tenth).to_string(), "0.2");
/// # Ok::<(), demur_exact::ParseRationalError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rational(RBig);

impl Rational {
    /// `numerator` / `denominator`.
    ///
    /// # Panics
    /// When the denominator is zero.
    pub fn new(numerator: i128, denominator: u128) -> Self {
        assert!(denominator != 0, "a fraction needs a denominator other than zero");
        Self::from_parts(numerator.into(), denominator.into())
    }

    /// `numerator` / `denominator`, of any size; the denominator is not zero.
    pub fn from_parts(numerator: IBig, denominator: UBig) -> Self {
        Self(RBig::from_parts(numerator, denominator))
    }

    /// `mantissa` · 2^`exponent`.
    pub fn dyadic(mantissa: IBig, exponent: i64) -> Self {
        let shift = exponent.unsigned_abs() as usize;
        if exponent >= 0 {
            Self::from_parts(mantissa << shift, UBig::ONE)
        } else {
            Self::from_parts(mantissa, UBig::ONE << shift)
        }
    }

    /// 2^`exponent`.
    pub fn power_of_two(exponent: i64) -> Self {
        Self::dyadic(IBig::ONE, exponent)
    }

    /// The number 0.
    pub fn zero() -> Self {
        Self(RBig::ZERO)
    }

    /// The number 1.
    pub fn one() -> Self {
        Self(RBig::ONE)
    }

    /// What stands above the line, in lowest terms.
    pub fn numerator(&self) -> &IBig {
        self.0.numerator()
    }

    /// What stands below the line, in lowest terms.
    pub fn denominator(&self) -> &UBig {
        self.0.denominator()
    }

    /// Whether this is a whole number.
    pub fn is_integer(&self) -> bool {
        self.0.is_int()
    }

    /// Whether this is 0.
    pub fn is_zero(&self) -> bool {
        self.0.is_zero()
    }

    /// Whether this is above 0.
    pub fn is_positive(&self) -> bool {
        self.0 > RBig::ZERO
    }

    /// Whether this is below 0.
    pub fn is_negative(&self) -> bool {
        Signed::is_negative(&self.0)
    }

    /// The size without the sign.
    #[must_use]
    pub fn abs(&self) -> Self {
        Self(self.0.clone().abs())
    }

    /// This number times itself.
    #[must_use]
    pub fn square(&self) -> Self {
        self * self
    }

    /// The largest fraction of which both are whole multiples; 0 of two zeros.
    ///
    /// ```
    /// use demur_exact::Rational;
    /// assert_eq!(Rational::new(3, 10).gcd(&Rational::new(1, 4)), Rational::new(1, 20));
    /// ```
    #[must_use]
    pub fn gcd(&self, other: &Self) -> Self {
        if self.is_zero() || other.is_zero() {
            return &self.abs() + &other.abs();
        }
        let (a, b) = (self.numerator() * other.denominator(), other.numerator() * self.denominator());
        Self::from_parts(IBig::from(a.gcd(&b)), self.denominator() * other.denominator())
    }

    /// The reciprocal; the number is not 0.
    #[must_use]
    pub fn recip(&self) -> Self {
        &Self::one() / self
    }

    /// The largest whole number that is not above.
    pub fn floor(&self) -> IBig {
        self.0.floor()
    }

    /// The smallest whole number that is not below.
    pub fn ceil(&self) -> IBig {
        self.0.ceil()
    }

    /// The largest e with 2^e ≤ the number; the number is above 0.
    ///
    /// ```
    /// use demur_exact::Rational;
    /// assert_eq!(Rational::new(1, 3).floor_log2(), -2);
    /// assert_eq!(Rational::new(8, 1).floor_log2(), 3);
    /// ```
    pub fn floor_log2(&self) -> i64 {
        use dashu_base::BitTest;
        let guess = self.numerator().bit_len() as i64 - self.denominator().bit_len() as i64;
        if *self >= Self::power_of_two(guess) { guess } else { guess - 1 }
    }

    /// The nearest double at or above.
    pub fn to_f64_up(&self) -> f64 {
        self.directed(true)
    }

    /// The nearest double at or below.
    pub fn to_f64_down(&self) -> f64 {
        self.directed(false)
    }

    /// A double next to it, for people and plots.
    pub fn to_f64(&self) -> f64 {
        self.0.to_f64_fast()
    }

    fn directed(&self, up: bool) -> f64 {
        if self.is_negative() {
            return -(-self).directed(!up);
        }
        if self.is_zero() {
            return 0.0;
        }
        // 64 significant bits of quotient, and one sticky bit for the rest.
        let shift = 64 - self.floor_log2();
        let scaled = self * &Self::power_of_two(shift);
        let whole = scaled.floor().unsigned_abs_value();
        let sticky = if scaled.is_integer() { 0u8 } else { 1 };
        let mantissa = (whole << 1) + UBig::from(sticky);
        match up {
            true => float::compose_up(&mantissa, -shift - 1),
            false => float::compose_down(&mantissa, -shift - 1),
        }
    }

    /// The decimal digits when they end within `places`, else `None`.
    pub fn to_decimal(&self, places: usize) -> Option<String> {
        let mut denominator = self.denominator().clone();
        let mut scale = 0usize;
        let ten = UBig::from(10u8);
        let mut numerator = self.numerator().clone();
        while !denominator.is_one() {
            if scale == places {
                return None;
            }
            scale += 1;
            numerator *= IBig::from(10u8);
            let shared = dashu_base::Gcd::gcd(&denominator, &ten);
            if shared.is_one() {
                return None;
            }
            numerator /= IBig::from(shared.clone());
            denominator /= shared;
        }
        Some(place_point(&numerator, scale))
    }
}

/// Digits of `numerator` · 10^−scale.
fn place_point(numerator: &IBig, scale: usize) -> String {
    let sign = if Signed::is_negative(numerator) { "-" } else { "" };
    let mut digits = numerator.clone().unsigned_abs_value().to_string();
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    while digits.len() <= scale {
        digits.insert(0, '0');
    }
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let fraction = fraction.trim_end_matches('0');
    match fraction {
        "" => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{fraction}"),
    }
}

trait UnsignedAbs {
    fn unsigned_abs_value(self) -> UBig;
}

impl UnsignedAbs for IBig {
    fn unsigned_abs_value(self) -> UBig {
        self.into_parts().1
    }
}

/// The decimal where it is short, the fraction where it is not.
impl fmt::Display for Rational {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_decimal(40) {
            Some(decimal) => f.write_str(&decimal),
            None => write!(f, "{}/{}", self.numerator(), self.denominator()),
        }
    }
}

impl fmt::Debug for Rational {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Text that is not a number we can hold exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseRationalError(String);

impl fmt::Display for ParseRationalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseRationalError {}

impl FromStr for Rational {
    type Err = ParseRationalError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || ParseRationalError(format!("`{text}` is not a number (write 42, 0.5, 1e-6 or 1/3)"));
        let text = text.trim();
        if text.len() > MAX_DIGITS {
            return Err(ParseRationalError(format!("a number of {} characters is too long", text.len())));
        }
        if let Some((above, below)) = text.split_once('/') {
            let (above, below) = (decimal(above).ok_or_else(bad)?, decimal(below).ok_or_else(bad)?);
            return if below.is_zero() { Err(bad()) } else { Ok(&above / &below) };
        }
        decimal(text).ok_or_else(bad)
    }
}

/// `[+-]digits[.digits][e[+-]digits]`, exactly.
fn decimal(text: &str) -> Option<Rational> {
    let text = text.trim();
    let (negative, text) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: String = [whole, fraction].concat().replace('_', "");
    if digits.is_empty()
        || !digits.bytes().all(|b| b.is_ascii_digit())
        || exponent.unsigned_abs() > MAX_EXPONENT
    {
        return None;
    }
    let mantissa = UBig::from_str_radix(&digits, 10).ok()?;
    let places = exponent - fraction.replace('_', "").len() as i64;
    let power = UBig::from(10u8).pow(places.unsigned_abs() as usize);
    let value = match places >= 0 {
        true => Rational::from_parts((mantissa * power).into(), UBig::ONE),
        false => Rational::from_parts(mantissa.into(), power),
    };
    Some(if negative { -&value } else { value })
}

/// Exact: 0.1_f64 becomes the fraction the double stands for.
impl TryFrom<f64> for Rational {
    type Error = ParseRationalError;

    fn try_from(value: f64) -> Result<Self, Self::Error> {
        let (mantissa, exponent) = float::decompose(value)
            .ok_or_else(|| ParseRationalError(format!("{value} is not a finite number")))?;
        let size = Self::dyadic(mantissa.into(), exponent.into());
        Ok(if value < 0.0 { -&size } else { size })
    }
}

macro_rules! from_integers {
    ($($integer:ty)*) => {$(
        impl From<$integer> for Rational {
            fn from(value: $integer) -> Self {
                Self(RBig::from(IBig::from(value)))
            }
        }
    )*};
}
from_integers!(u32 u64 u128 i32 i64 i128 UBig IBig);

macro_rules! arithmetic {
    ($($operation:ident $method:ident)*) => {$(
        impl $operation for &Rational {
            type Output = Rational;
            fn $method(self, other: Self) -> Rational {
                Rational($operation::$method(&self.0, &other.0))
            }
        }
    )*};
}
arithmetic!(Add add Sub sub Mul mul Div div);

impl Neg for &Rational {
    type Output = Rational;
    fn neg(self) -> Rational {
        Rational(-self.0.clone())
    }
}

/// Written as text, so that no reader rounds it.
impl Serialize for Rational {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rational {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Rational {
        text.parse().unwrap()
    }

    #[test]
    fn decimals_and_fractions_are_read_exactly() {
        assert_eq!(parse("0.1"), Rational::new(1, 10));
        assert_eq!(parse("-2.50"), Rational::new(-5, 2));
        assert_eq!(parse("1e-6"), Rational::new(1, 1_000_000));
        assert_eq!(parse("1_000.5E2"), Rational::new(100_050, 1));
        assert_eq!(parse("1/3"), Rational::new(1, 3));
        assert_eq!(parse(".5"), Rational::new(1, 2));
    }

    #[test]
    fn what_is_not_a_number_is_refused() {
        for text in [
            "",
            "-",
            "nan",
            "inf",
            "1/0",
            "1e",
            "1e99999",
            "1e-9223372036854775808",
            "0x10",
            "1,5",
            "1.2.3",
            "--1",
            "e5",
        ] {
            assert!(text.parse::<Rational>().is_err(), "{text}");
        }
    }

    #[test]
    fn printing_and_reading_again_gives_the_same_number() {
        for text in ["0.1", "1/3", "-7/22", "123456789.125", "0"] {
            assert_eq!(parse(text).to_string(), text);
        }
        let odd = Rational::try_from(0.1).unwrap();
        assert_eq!(parse(&odd.to_string()), odd);
    }

    #[test]
    fn rounding_to_doubles_keeps_its_direction() {
        let third = parse("1/3");
        assert!(Rational::try_from(third.to_f64_up()).unwrap() > third);
        assert!(Rational::try_from(third.to_f64_down()).unwrap() < third);
        assert_eq!(third.to_f64_up(), third.to_f64_down().next_up());
        assert_eq!(parse("-1/3").to_f64_up(), -third.to_f64_down());
        assert_eq!(parse("0.5").to_f64_up(), 0.5);
        assert_eq!(parse("1e400").to_f64_up(), f64::INFINITY);
        assert_eq!(parse("1e400").to_f64_down(), f64::MAX);
        assert_eq!(parse("1e-400").to_f64_down(), 0.0);
        assert!(parse("1e-400").to_f64_up() > 0.0);
    }

    #[test]
    fn json_keeps_every_digit() {
        let value = parse("1/3");
        let json = serde_json::to_string(&value).unwrap();
        assert_eq!(json, r#""1/3""#);
        assert_eq!(serde_json::from_str::<Rational>(&json).unwrap(), value);
    }
}
