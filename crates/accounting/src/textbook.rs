//! What textbooks say about groups and samples, from ε and δ alone.
//!
//! **Statement.** Let one use for one person be (ε, δ)-private. For k people together it is
//! (kε, δ·(e^(kε) − 1)/(e^ε − 1))-private; on a Poisson sample of rate q it is
//! (ln(1 + q·(e^ε − 1)), qδ)-private.
//!
//! **Exactness.** Doubles, rounded to nearest: to be shown beside the tight value, which knows the
//! mechanism. No promise rests on them.

/// (kε, δ·(e^(kε) − 1)/(e^ε − 1)) for k people that one person's (ε, δ) becomes.
///
/// ```
/// use demur_accounting::textbook;
/// let (epsilon, delta) = textbook::group(3, 0.5, 1e-9);
/// assert_eq!(epsilon, 1.5);
/// assert!(5.366e-9 < delta && delta < 5.368e-9);
/// ```
pub fn group(size: u64, epsilon: f64, delta: f64) -> (f64, f64) {
    let size = size as f64;
    let growth = match epsilon == 0.0 {
        true => size,
        false => libm::expm1(size * epsilon) / libm::expm1(epsilon),
    };
    let group_delta = if delta == 0.0 { 0.0 } else { f64::min(delta * growth, 1.0) };
    (size * epsilon, group_delta)
}

/// (ln(1 + q·(e^ε − 1)), qδ) on a Poisson sample of rate q that (ε, δ) becomes.
///
/// ```
/// use demur_accounting::textbook;
/// let (epsilon, delta) = textbook::sample(0.01, 1.0, 1e-6);
/// assert!(0.01703 < epsilon && epsilon < 0.01704);
/// assert!((delta - 1e-8).abs() < 1e-20);
/// ```
pub fn sample(rate: f64, epsilon: f64, delta: f64) -> (f64, f64) {
    (amplified(rate, epsilon), rate * delta)
}

/// ln(1 + q·(e^ε − 1)), without overflow for large ε.
fn amplified(rate: f64, epsilon: f64) -> f64 {
    match epsilon < 700.0 {
        true => libm::log1p(rate * libm::expm1(epsilon)),
        false => {
            let size = epsilon + libm::log(rate);
            f64::max(size, 0.0) + libm::log1p(libm::exp(-size.abs()))
        }
    }
}

/// The ε without sampling that a sample of rate q turns into `epsilon`.
pub fn before_sampling(rate: f64, epsilon: f64) -> f64 {
    match epsilon < 700.0 {
        true => libm::log1p(libm::expm1(epsilon) / rate),
        false => epsilon - libm::log(rate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_person_and_a_full_sample_change_nothing() {
        for epsilon in [0.0, 1e-9, 0.5, 30.0, 800.0] {
            for (found, delta) in [group(1, epsilon, 1e-6), sample(1.0, epsilon, 1e-6)] {
                assert!((found - epsilon).abs() <= 1e-14 * epsilon);
                assert!((delta / 1e-6 - 1.0).abs() < 1e-14 || epsilon > 700.0, "{delta}");
            }
        }
    }

    #[test]
    fn sampling_can_be_undone() {
        for (rate, epsilon) in [(0.01, 0.1), (0.5, 3.0), (1e-6, 20.0), (0.1, 750.0)] {
            let back = amplified(rate, before_sampling(rate, epsilon));
            assert!((back / epsilon - 1.0).abs() < 1e-12, "{rate} {epsilon} {back}");
        }
    }

    #[test]
    fn a_large_group_is_promised_nothing() {
        assert_eq!(group(1_000_000, 1.0, 1e-9).1, 1.0);
        assert_eq!(group(1_000_000, 1.0, 0.0).1, 0.0);
    }
}
