//! The least ε for a wanted error: free, because it asks the price and not the data.

use demur_core::{Epsilon, Guarantee};

use super::Wish;
use crate::EngineError;

/// The ε that are tried.
const LEAST: f64 = 1e-6;
const MOST: f64 = 100.0;

impl Wish {
    /// The least ε with which item `index` is off by at most `error` steps but for a chance of `beta`; δ and all else as wished.
    ///
    /// The price at this ε was seen to have that error; at a thousandth less it was seen not to.
    ///
    /// ```
    /// # use demur_core::{Delta, Epsilon, Guarantee, Sensitivity};
    /// # use demur_engine::{Item, Preference, Wish};
    /// let count = Item::new("COUNT(*)", 1, Sensitivity::scalar("1".parse()?)?);
    /// let guarantee = Guarantee::new(Epsilon::new(1.0)?, Delta::new(1e-6)?);
    /// let wish = Wish { items: vec![count], keys: None, guarantee, preference: Preference::Any };
    /// let epsilon = wish.least_epsilon(0, 50.0, 0.05)?; // ± 50 at 95 %
    /// assert!(epsilon.value() > 0.05 && epsilon.value() < 0.061);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn least_epsilon(&self, index: usize, error: f64, beta: f64) -> Result<Epsilon, EngineError> {
        let error_at = |epsilon: f64| -> Result<f64, EngineError> {
            let guarantee = Guarantee { epsilon: Epsilon::new(epsilon)?, ..self.guarantee };
            let priced = Self { guarantee, ..self.clone() }.price()?;
            let noise = priced.noises().get(index).ok_or_else(|| {
                EngineError::new("engine.price.item", format!("there is no item number {index}"))
            })?;
            noise.quantile(beta)
        };
        let reached = error_at(MOST)?;
        if reached > error {
            let text = format!(
                "an error of {error} steps is not reached even with ε = {MOST}, which gives {reached}"
            );
            return Err(EngineError::new("engine.price.error", text));
        }
        let (mut low, mut high) = (LEAST, MOST);
        while high / low > 1.001 {
            let middle = (low * high).sqrt();
            if error_at(middle)? <= error { high = middle } else { low = middle }
        }
        Ok(Epsilon::new(high)?)
    }
}
