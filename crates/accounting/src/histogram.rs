//! The privacy loss as a random variable: its histogram and its tails.
//!
//! For pictures and intuition: the probabilities are those of the discretised law of [`grid`](crate::grid), good
//! to the width of a cell, and no promise rests on them.

use crate::grid::Grid;
use crate::way::Way;
use crate::{Account, AccountingError};

/// Uses up to which a picture is drawn: each is discretised.
const MOST_USES: f64 = 1e6;

impl Account {
    /// P[left < L ≤ right] for cells that cover nearly all finite losses, with the person removed.
    ///
    /// ```
    /// use demur_accounting::Account;
    /// let cells = Account::of(&"gaussian(sigma=1)".parse()?)?.loss_histogram(40)?;
    /// let total: f64 = cells.iter().map(|(_, _, p)| p).sum();
    /// let mean: f64 = cells.iter().map(|(a, b, p)| (a + b) / 2.0 * p).sum();
    /// assert!((total - 1.0).abs() < 1e-6 && (mean - 0.5).abs() < 0.01); // normal, mean μ²/2
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn loss_histogram(&self, cells: usize) -> Result<Vec<(f64, f64, f64)>, AccountingError> {
        let way = self.first();
        let (low, high, points) = law(way)?;
        let width = (high - low) / cells.max(1) as f64;
        let mut histogram: Vec<_> =
            (0..cells.max(1)).map(|i| (low + width * i as f64, low + width * (i + 1) as f64, 0.0)).collect();
        for (loss, probability) in points {
            let cell = (((loss - low) / width).ceil() as usize).saturating_sub(1).min(histogram.len() - 1);
            histogram[cell].2 += probability;
        }
        Ok(histogram)
    }

    /// P[L ≤ x] with the person removed, about.
    pub fn loss_cdf(&self, x: f64) -> Result<f64, AccountingError> {
        let (_, _, points) = law(self.first())?;
        Ok(points.filter(|(loss, _)| *loss <= x).map(|(_, p)| p).sum::<f64>() * (1.0 - self.infinite_loss()))
    }

    /// The least x with P[L ≤ x] ≥ p, about; +∞ when the loss is infinite more often than that.
    pub fn loss_quantile(&self, p: f64) -> Result<f64, AccountingError> {
        let (_, _, points) = law(self.first())?;
        let mut below = 0.0;
        for (loss, probability) in points {
            below += probability * (1.0 - self.infinite_loss());
            if below >= p * (1.0 - 1e-12) {
                return Ok(loss);
            }
        }
        Ok(f64::INFINITY)
    }

    /// P[L = ∞], rounded up.
    pub fn infinite_loss(&self) -> f64 {
        self.first().lost().upper
    }
}

type Points = Box<dyn Iterator<Item = (f64, f64)>>;

/// Between which losses nearly all probability is, and all losses there with theirs.
fn law(way: &Way) -> Result<(f64, f64, Points), AccountingError> {
    way.must_have_laws()?;
    if let Some(table) = way.table() {
        let points: Vec<_> = table.losses().filter(|(_, p)| *p > 1e-15).collect();
        let (first, last) = (points.first().map_or(0.0, |p| p.0), points.last().map_or(0.0, |p| p.0));
        let margin = (last - first).max(1e-3) / 20.0;
        return Ok((first - margin, last + margin, Box::new(points.into_iter())));
    }
    if way.terms.laws.is_empty() {
        return Ok((-1.0, 1.0, Box::new(std::iter::once((0.0, 1.0)))));
    }
    if way.sum.uses() > MOST_USES {
        return Err(AccountingError::new(
            "accounting.picture",
            format!("the law of the loss is drawn for up to {MOST_USES} uses, but there are more here"),
        ));
    }
    let (mean, variance) = way.sum.mean_and_variance();
    let reach = 7.0 * variance.sqrt();
    let top = way.top().unwrap_or(f64::INFINITY);
    let (low, high) = ((mean - reach).max(-top * 1.001 - 1e-9), (mean + reach).min(top * 1.001 + 1e-9));
    let grid = Grid::plain(&way.sum, low - reach, high + reach).ok_or_else(crate::way::unproven)?;
    let points: Vec<_> = grid.probabilities(low, high).collect();
    Ok((low, high, Box::new(points.into_iter())))
}
