//! [`Quote`]: a price that is computed once and paid often.

use demur_core::PrivacyLoss;

use super::Filter;
use super::price::Cost;

/// What one loss costs under one filter; see [`Filter::quote`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    pub(super) filter: Filter,
    pub(super) loss: PrivacyLoss,
    pub(super) cost: Cost,
}

impl Quote {
    /// Whether this is the price of that loss under that filter.
    pub fn is_for(&self, filter: &Filter, loss: &PrivacyLoss) -> bool {
        self.filter == *filter && self.loss == *loss
    }
}
