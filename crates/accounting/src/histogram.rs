//! The privacy loss as a histogram, for pictures.

use demur_exact::Rational;

use crate::{Account, AccountingError};

impl Account {
    /// P[left < L ≤ right] for cells that cover nearly all finite losses.
    pub fn loss_histogram(&self, cells: usize) -> Result<Vec<(f64, f64, f64)>, AccountingError> {
        let most = self.epsilon(&Rational::new(1, 1_000_000))?.bounds.upper;
        let step = 2.0 * most / cells as f64;
        let tail = |epsilon: f64| -> Result<f64, AccountingError> {
            let (here, there) = (self.delta(&rational(epsilon))?, self.delta(&rational(epsilon + 1e-4))?);
            Ok(here.bounds.upper + (here.bounds.upper - there.bounds.upper) / 1e-4)
        };
        let mut list = Vec::new();
        for cell in cells / 2..cells {
            let left = -most + step * cell as f64;
            let probability = (tail(left.max(0.0))? - tail(left.max(0.0) + step)?).max(0.0);
            list.push((left, left + step, probability));
            list.insert(0, (-left - step, -left, probability * f64::exp(-left - step / 2.0)));
        }
        Ok(list)
    }

    /// P[L = ∞].
    pub fn infinite_loss(&self) -> f64 {
        0.0
    }
}

fn rational(value: f64) -> Rational {
    Rational::try_from(value).unwrap_or_else(|_| Rational::zero())
}
