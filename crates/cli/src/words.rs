//! Doubles as people read them, rounded in a named direction.

/// The number with so many significant digits, not below it.
pub(crate) fn up(value: f64, digits: usize) -> String {
    rounded(value, digits, true)
}

/// The number with so many significant digits, not above it.
pub(crate) fn down(value: f64, digits: usize) -> String {
    rounded(value, digits, false)
}

fn rounded(value: f64, digits: usize, up: bool) -> String {
    if value <= 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let nearest = format!("{value:.*e}", digits.saturating_sub(1));
    let beyond = nearest.parse::<f64>().is_ok_and(|found| if up { found < value } else { found > value });
    let Some((mantissa, exponent)) = nearest.split_once('e') else { return nearest };
    let (Ok(whole), Ok(exponent)) = (mantissa.replace('.', "").parse::<u64>(), exponent.parse::<i32>())
    else {
        return nearest;
    };
    let power = exponent + 1 - digits as i32;
    match (beyond, up) {
        (false, _) => placed(&whole.to_string(), power),
        (true, true) => placed(&(whole + 1).to_string(), power),
        // Below a power of ten the digits start anew: 10.0 becomes 9.99.
        (true, false) if mantissa.trim_end_matches(['0', '.']) == "1" => {
            placed(&"9".repeat(digits), power - 1)
        }
        (true, false) => placed(&(whole - 1).to_string(), power),
    }
}

/// `digits`·10^`power`, without an exponent where people can read it.
fn placed(digits: &str, power: i32) -> String {
    let first = digits.len() as i32 - 1 + power;
    let digits = digits.trim_end_matches('0');
    match first {
        0..=14 => with_point(digits, first as usize + 1),
        -4..=-1 => format!("0.{}{digits}", "0".repeat((-1 - first) as usize)),
        _ => format!("{}e{first}", with_point(digits, 1)),
    }
}

/// The digits with a point after `whole` of them.
fn with_point(digits: &str, whole: usize) -> String {
    match digits.len() <= whole {
        true => format!("{digits}{}", "0".repeat(whole - digits.len())),
        false => format!("{}.{}", &digits[..whole], &digits[whole..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_in_the_named_direction() {
        assert_eq!([up(2.124515171, 4), down(2.124515171, 4)], ["2.125", "2.124"]);
        assert_eq!([up(9.9999, 3), down(9.9999, 3)], ["10", "9.99"]);
        assert_eq!([up(0.1, 7), down(0.1, 7)], ["0.1", "0.1"]);
        assert_eq!([up(1.234e-9, 2), down(1.234e-9, 2)], ["1.3e-9", "1.2e-9"]);
        assert_eq!([up(1e-300, 3), up(123456.0, 2), up(2e20, 5)], ["1e-300", "130000", "2e20"]);
        assert_eq!([up(0.0, 3), up(f64::INFINITY, 3), up(0.00012345, 2)], ["0", "inf", "0.00013"]);
        assert_eq!([down(2.1246, 4), down(2.9996, 4), down(0.99999, 3)], ["2.124", "2.999", "0.999"]);
        assert_eq!([down(1.0, 1), down(0.999, 1), down(100.5, 3)], ["1", "0.9", "100"]);
    }

    #[test]
    fn rounding_keeps_its_direction_everywhere() {
        for power in -300..300 {
            let value = 1.2345678912345 * 10f64.powi(power);
            for digits in 1..16 {
                let [low, high] =
                    [down(value, digits), up(value, digits)].map(|text| text.parse::<f64>().unwrap());
                assert!(low <= value && value <= high, "{value} {digits}");
            }
        }
    }
}
