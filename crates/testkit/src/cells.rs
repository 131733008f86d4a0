//! [`Cells`]: whole numbers sorted by where they fall.
//!
//! A law over a huge range cannot be compared value by value. Its range is cut into
//! cells whose probabilities follow from the distribution function, and the counts are
//! compared with those.

use crate::fit::chi_square;

/// Cells of consecutive whole numbers, and how many draws fell into each.
///
/// ```
/// use demur_testkit::Cells;
///
/// let mut cells = Cells::new(vec![-1, 1]); // …, −1 | 0, 1 | 2, …
/// [-5, 0, 1, 7].into_iter().for_each(|draw| cells.count(draw));
/// assert_eq!(cells.seen(), [1, 2, 1]);
/// ```
#[derive(Clone, Debug)]
pub struct Cells {
    /// Cell i holds the values above `ends[i − 1]` and up to `ends[i]`; one more holds the rest.
    ends: Vec<i128>,
    seen: Vec<u64>,
}

impl Cells {
    /// Cells that end with these values, which rise; and one for everything above.
    pub fn new(ends: Vec<i128>) -> Self {
        debug_assert!(ends.is_sorted_by(|a, b| a < b), "the ends of cells must rise");
        let seen = vec![0; ends.len() + 1];
        Self { ends, seen }
    }

    /// About `count` cells of equal probability between `low` and `high`, and finer ones
    /// towards both tails, for the law with this distribution function Pr[Z ≤ k].
    ///
    /// A law with few values gets one cell for each of them.
    pub fn of_law(cdf: impl Fn(i128) -> f64, low: i128, high: i128, count: u32) -> Self {
        let inner = (1..count).map(|i| f64::from(i) / f64::from(count));
        let tails = [1e-6, 1e-5, 1e-4, 1e-3];
        let levels = tails.into_iter().chain(inner).chain(tails.into_iter().rev().map(|p| 1.0 - p));
        let mut ends: Vec<i128> = levels.map(|level| first_at(&cdf, level, low, high)).collect();
        ends.sort_unstable();
        ends.dedup();
        Self::new(ends)
    }

    /// Adds a draw.
    pub fn count(&mut self, draw: i128) {
        self.seen[self.ends.partition_point(|&end| end < draw)] += 1;
    }

    /// How many draws fell into each cell.
    pub fn seen(&self) -> &[u64] {
        &self.seen
    }

    /// The probability of so bad a fit if the draws had this distribution function.
    pub fn fit(&self, cdf: impl Fn(i128) -> f64) -> f64 {
        let mut below = 0.0;
        let ends = self.ends.iter().map(|&end| cdf(end)).chain([1.0]);
        let probabilities: Vec<f64> = ends.map(|end| end - std::mem::replace(&mut below, end)).collect();
        chi_square(&self.seen, &probabilities)
    }
}

/// The least k with cdf(k) ≥ level, between two values.
fn first_at(cdf: impl Fn(i128) -> f64, level: f64, mut low: i128, mut high: i128) -> i128 {
    while low < high {
        let middle = low + (high - low).div_euclid(2);
        if cdf(middle) >= level {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seeded;
    use demur_noise::Words;

    fn uniform(k: i128) -> f64 {
        ((k + 1) as f64 / 1000.0).clamp(0.0, 1.0)
    }

    #[test]
    fn values_fall_where_the_cells_end() {
        let mut cells = Cells::new(vec![-2, 5]);
        for (value, cell) in [(-3, 0), (-2, 0), (-1, 1), (5, 1), (6, 2), (i128::MAX, 2), (i128::MIN, 0)] {
            let before = cells.seen()[cell];
            cells.count(value);
            assert_eq!(cells.seen()[cell], before + 1, "{value}");
        }
    }

    #[test]
    fn cells_of_a_law_have_equal_probability() {
        let cells = Cells::of_law(uniform, 0, 999, 10);
        assert!(cells.ends.starts_with(&[0]));
        for end in [99, 199, 299, 399, 499, 599, 699, 799, 899] {
            assert!(cells.ends.contains(&end), "{:?}", cells.ends);
        }
    }

    #[test]
    fn a_law_of_few_values_gets_a_cell_for_each() {
        let coin = |k: i128| if k < 0 { 0.0 } else { [0.5, 1.0][k.min(1) as usize] };
        assert_eq!(Cells::of_law(coin, -10, 10, 50).ends, [0, 1]);
    }

    /// False alarm 1e-9 for the right law; a shift by 1 % of the range is caught.
    #[test]
    fn uniform_draws_fit_and_shifted_ones_do_not() {
        let mut words = Seeded::new(1);
        let mut right = Cells::of_law(uniform, 0, 999, 50);
        let mut shifted = right.clone();
        for _ in 0..100_000 {
            let draw = i128::from(words.word() % 1000);
            right.count(draw);
            shifted.count(draw + 10);
        }
        assert!(right.fit(uniform) > 1e-9);
        assert!(shifted.fit(uniform) < 1e-9);
    }
}
