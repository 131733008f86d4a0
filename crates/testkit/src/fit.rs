//! Does a sample follow a law?
//!
//! **Test.** Pearson's χ²: values are gathered in cells of at least [`LEAST_EXPECTED`]
//! expected draws (neighbouring values share a cell, both tails are cells), and
//! Σ (seen − expected)²/expected is compared with the χ² law.
//!
//! **Errors.** A false alarm happens with about the stated probability. A law that is
//! wrong by relative amounts dᵢ in cells of probability pᵢ shifts the statistic by
//! n·Σ pᵢdᵢ²; for a scale wrong by 1 % (dᵢ ≈ 0.01·(|k|/t − 1), Σ pᵢdᵢ² = 10⁻⁴) and n = 10⁷ that is
//! 1000, against a standard deviation of √(2·cells) ≈ 20 for 200 cells: it is missed
//! with probability below 10⁻⁹.

/// Cells with fewer expected draws are merged with their neighbours.
const LEAST_EXPECTED: f64 = 50.0;

/// How often a correct sampler may fail the test.
#[derive(Clone, Copy, Debug)]
pub struct FalseAlarm(pub f64);

/// The probability of so bad a fit if the draws followed `pmf`.
///
/// `pmf` is asked for every whole number within the range of the draws.
pub fn fit(draws: &[i128], pmf: impl Fn(i128) -> f64) -> f64 {
    let total = draws.len() as f64;
    let mut sorted = draws.to_vec();
    sorted.sort_unstable();
    let (Some(&low), Some(&high)) = (sorted.first(), sorted.last()) else { return 1.0 };

    let (mut statistic, mut cells) = (0.0, 0u32);
    let (mut seen, mut expected) = (0.0, 0.0);
    let (mut all_seen, mut all_expected) = (0.0, 0.0);
    let mut position = 0;
    for k in low..=high {
        let start = position;
        while position < sorted.len() && sorted[position] == k {
            position += 1;
        }
        seen += (position - start) as f64;
        expected += pmf(k) * total;
        // Leave enough for the last cell, which also holds both unseen tails.
        if expected >= LEAST_EXPECTED && total - all_expected - expected >= LEAST_EXPECTED {
            statistic += (seen - expected).powi(2) / expected;
            cells += 1;
            all_seen += seen;
            all_expected += expected;
            (seen, expected) = (0.0, 0.0);
        }
    }
    let (rest_seen, rest_expected) = (total - all_seen, total - all_expected);
    if rest_expected > 0.0 {
        statistic += (rest_seen - rest_expected).powi(2) / rest_expected;
    } else if rest_seen > 0.0 {
        return 0.0;
    }
    if cells == 0 {
        return 1.0;
    }
    // Pr[χ² with `cells` degrees of freedom ≥ statistic]
    statrs::function::gamma::gamma_ur(f64::from(cells) / 2.0, statistic / 2.0)
}

/// Fails when draws fit the law so badly that a correct sampler would rarely do it.
///
/// # Panics
/// When the fit is worse than the false-alarm rate allows.
#[expect(clippy::panic, reason = "this is an assertion")]
pub fn assert_fits(draws: &[i128], pmf: impl Fn(i128) -> f64, FalseAlarm(alpha): FalseAlarm) {
    let p = fit(draws, pmf);
    if p < alpha {
        panic!(
            "{} draws do not follow the law: such a fit has probability {p:e}, below {alpha:e}",
            draws.len()
        );
    }
}
