//! [`Quotes`]: prices that were asked for lately.
//!
//! A price depends on the filter and the loss alone, and the same few losses are asked for again and again.

use demur_accounting::{Filter, Quote, Refusal, State};
use demur_core::PrivacyLoss;

/// How many are remembered.
const MOST: usize = 16;

/// Prices, the latest last.
#[derive(Default)]
pub(crate) struct Quotes(Vec<Quote>);

impl Quotes {
    /// What [`Filter::admit`] says.
    pub(crate) fn admit(
        &mut self,
        filter: &Filter,
        state: &State,
        loss: &PrivacyLoss,
    ) -> Result<State, Refusal> {
        if let Some(quote) = self.0.iter().find(|quote| quote.is_for(filter, loss)) {
            return filter.admit_quoted(state, quote);
        }
        let quote = filter.quote(loss)?;
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        let admitted = filter.admit_quoted(state, &quote);
        self.0.push(quote);
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever was asked before, under whichever filter.
    #[test]
    fn a_quoted_price_is_the_price() {
        let filters = ["1", "2"].map(|epsilon| {
            let (epsilon, delta) = (epsilon.parse().unwrap(), "1e-6".parse().unwrap());
            (Filter::zcdp(epsilon, delta).unwrap(), Filter::pure("3".parse().unwrap()).unwrap())
        });
        let mut quotes = Quotes::default();
        for round in 0..3 {
            for (zcdp, pure) in &filters {
                for filter in [zcdp, pure] {
                    let mut state = filter.start();
                    for step in 0..40 {
                        let loss = format!("laplace(scale={})", 5 + (step * 7 + round) % 20).parse().unwrap();
                        let admitted = quotes.admit(filter, &state, &loss);
                        assert_eq!(admitted, filter.admit(&state, &loss));
                        state = admitted.unwrap_or(state);
                    }
                    let unpriced = "gaussian(sigma=3)".parse().unwrap();
                    assert_eq!(quotes.admit(filter, &state, &unpriced), filter.admit(&state, &unpriced));
                }
            }
        }
        assert_eq!(quotes.0.len(), MOST);
    }
}
