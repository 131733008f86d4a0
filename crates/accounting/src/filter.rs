//! [`Filter`]: what may still be spent when every next loss is chosen after seeing all answers.
//!
//! **Definition.** A filter has a capacity and keeps a running total. It admits a loss while the total with it stays
//! within the capacity, and refuses it otherwise. What it counts is its [`Rule`]: ε, ρ, μ², or Rényi
//! divergences of a few orders, and beside them Σδ of the losses that have a δ.
//!
//! **Guarantee.** However the losses, the questions and the moment to stop are chosen from earlier answers, all
//! answers together are (ε, δ)-private with the filter's [`guarantee`](Filter::guarantee), as long as only
//! admitted losses are paid.
//!
//! **Why it needs proof.** Composition theorems fix the sequence of losses beforehand. An analyst who sees
//! answers may stop early when they are harmless and go on when they are telling. Adding up the prices is still right for
//! these four measures, because each has a supermartingale that the choice of the next loss cannot push up;
//! for many other ways of accounting it is wrong. `docs/accounting-filters.md` has the proofs.
//!
//! **Exactness.** Totals are whole numbers ([`State`]): prices are rounded up, capacities down, and what overflows
//! is refused.
//!
//! **References.** \[Rogers2016\], \[Feldman2021\], \[Lecuyer2021\], \[Smith2022\], \[Koskela2023\],
//! \[Whitehouse2023\].

mod bound;
mod capacity;
mod kernel;
mod price;
mod quote;
mod refusal;
mod rule;
mod spent;
mod state;
#[cfg(test)]
mod tests;
mod units;

use std::sync::Arc;

use demur_core::PrivacyLoss;
use demur_exact::Rational;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use quote::Quote;
pub use refusal::Refusal;
pub use rule::Rule;
pub use state::{Amounts, Measure, State};

use crate::AccountingError;
use price::{Cost, Prices};
use units::{Grid, Units};

/// A budget under adaptive use; see the module text.
///
/// ```
/// use demur_accounting::Filter;
///
/// let filter = Filter::zcdp("1".parse()?, "1e-6".parse()?)?;
/// let mut state = filter.start();
/// let mut answers = 0;
/// while let Ok(next) = filter.admit(&state, &"gaussian(sigma=50)".parse()?) {
///     state = next;
///     answers += 1;
/// }
/// assert_eq!(answers, 118);
/// assert_eq!(filter.spent(&state).to_string(), "ρ = 0.0236");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter(Arc<Parts>);

/// What a filter is made of; all who copy it share one.
#[derive(Debug, PartialEq, Eq)]
struct Parts {
    rule: Rule,
    measures: Vec<Measure>,
    capacity: Vec<Units>,
    delta: Units,
    amounts: Grid,
    deltas: Grid,
}

impl Filter {
    /// The filter of a rule; its capacity is computed here, once.
    pub fn new(rule: Rule) -> Result<Self, AccountingError> {
        rule.check()?;
        let capacity = capacity::capacities(&rule, &Grid::of_amounts());
        Self::with_capacity(rule, capacity)
    }

    /// A budget of ε alone.
    pub fn pure(epsilon: Rational) -> Result<Self, AccountingError> {
        Self::new(Rule::Pure { epsilon })
    }

    /// A budget of (ε, δ) counted in ρ; a quarter of δ is kept for losses that have a δ.
    ///
    /// The quarter costs about 2 % of ρ at δ = 10⁻⁶. [`Rule`] takes any other part.
    pub fn zcdp(epsilon: Rational, delta: Rational) -> Result<Self, AccountingError> {
        let delta_for_losses = quarter(&delta);
        Self::new(Rule::Zcdp { epsilon, delta, delta_for_losses })
    }

    /// A budget of (ε, δ) counted in μ²; a quarter of δ is kept for losses that have a δ.
    pub fn gaussian(epsilon: Rational, delta: Rational) -> Result<Self, AccountingError> {
        let delta_for_losses = quarter(&delta);
        Self::new(Rule::Gaussian { epsilon, delta, delta_for_losses })
    }

    /// A budget of (ε, δ) counted in Rényi divergences of up to five orders around the best for Gaussian noise.
    ///
    /// A quarter of δ is kept for losses that have a δ.
    pub fn renyi(epsilon: Rational, delta: Rational) -> Result<Self, AccountingError> {
        let delta_for_losses = quarter(&delta);
        let orders = capacity::default_orders(epsilon.to_f64(), delta.to_f64(), rule::LARGEST_ORDER);
        Self::new(Rule::Renyi { epsilon, delta, delta_for_losses, orders })
    }

    fn with_capacity(rule: Rule, capacity: Vec<Units>) -> Result<Self, AccountingError> {
        let amounts = Grid::of_amounts();
        if !capacity::holds(&rule, &amounts, &capacity) {
            let text = "the stored capacity of this filter is more than its budget allows";
            return Err(AccountingError::new("accounting.filter.capacity", text));
        }
        if capacity.iter().all(|units| *units == Units::NONE) {
            let text = format!(
                "a budget of ε = {} and δ = {} admits nothing under this rule; choose a larger ε or δ, or orders \
                 above 1 + ln(1/δ)/ε",
                rule.epsilon(),
                rule.delta()
            );
            return Err(AccountingError::new("accounting.filter.budget", text));
        }
        let part = rule.delta_for_losses();
        let deltas = Grid::of_delta(&part);
        let (measures, delta) = (rule.measures(), deltas.down(&part));
        Ok(Self(Arc::new(Parts { rule, measures, capacity, delta, amounts, deltas })))
    }

    /// The budget and how it is counted.
    pub fn rule(&self) -> &Rule {
        &self.0.rule
    }

    /// The (ε, δ) of all answers together, as long as only admitted losses are paid.
    pub fn guarantee(&self) -> (Rational, Rational) {
        (self.0.rule.epsilon().clone(), self.0.rule.delta())
    }

    /// Nothing spent.
    pub fn start(&self) -> State {
        State { spent: vec![Units::NONE; self.0.capacity.len()], delta: Units::NONE }
    }

    /// The state after paying the loss, or why it cannot be paid.
    ///
    /// ```
    /// use demur_accounting::Filter;
    ///
    /// let filter = Filter::pure("1".parse()?)?;
    /// let refusal = filter.admit(&filter.start(), &"gaussian(sigma=9)".parse()?).unwrap_err();
    /// assert_eq!(refusal.code(), "accounting.filter.unpriced");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn admit(&self, state: &State, loss: &PrivacyLoss) -> Result<State, Refusal> {
        self.check(state)?;
        self.pay(state, &self.cost(loss)?)
    }

    /// The price of a loss, to be paid later with [`admit_quoted`](Self::admit_quoted).
    pub fn quote(&self, loss: &PrivacyLoss) -> Result<Quote, Refusal> {
        Ok(Quote { filter: self.clone(), loss: loss.clone(), cost: self.cost(loss)? })
    }

    /// What [`admit`](Self::admit) says to the quoted loss; a quote of another filter is worth nothing here.
    ///
    /// ```
    /// use demur_accounting::Filter;
    ///
    /// let filter = Filter::zcdp("1".parse()?, "1e-6".parse()?)?;
    /// let (loss, start) = ("gaussian(sigma=50)".parse()?, filter.start());
    /// let quote = filter.quote(&loss)?;
    /// assert_eq!(filter.admit_quoted(&start, &quote), filter.admit(&start, &loss));
    /// let other = Filter::zcdp("2".parse()?, "1e-6".parse()?)?;
    /// assert_eq!(other.admit_quoted(&start, &quote).unwrap_err().code(), "accounting.filter.quote");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn admit_quoted(&self, state: &State, quote: &Quote) -> Result<State, Refusal> {
        self.check(state)?;
        if quote.filter != *self {
            let text = "this price was made under another filter; ask this one";
            return Err(Refusal::new("accounting.filter.quote", text));
        }
        self.pay(state, &quote.cost)
    }

    /// The state with this cost on top, if that is within the capacity.
    fn pay(&self, state: &State, cost: &Cost) -> Result<State, Refusal> {
        let add = |(spent, asked): (&Units, &Units)| spent.plus(*asked);
        let next = State {
            spent: state.spent.iter().zip(&cost.amounts).map(add).collect(),
            delta: state.delta.plus(cost.delta),
        };
        if self.holds(&next) {
            return Ok(next);
        }
        let (asked, left) = (self.worth(&cost.amounts, cost.delta, true), self.remaining(state));
        Err(if next.delta > self.0.delta {
            Refusal::of_delta(asked, left)
        } else {
            Refusal::of_amounts(asked, left)
        })
    }

    /// What the loss would cost, rounded up.
    pub fn price(&self, loss: &PrivacyLoss) -> Result<Amounts, Refusal> {
        let cost = self.cost(loss)?;
        Ok(self.worth(&cost.amounts, cost.delta, true))
    }

    /// What has been spent.
    pub fn spent(&self, state: &State) -> Amounts {
        self.worth(&state.spent, state.delta, true)
    }

    /// What is left to spend; orders of a Rényi filter that are used up have nothing left.
    pub fn remaining(&self, state: &State) -> Amounts {
        let left = |(capacity, spent): (&Units, &Units)| capacity.minus(*spent);
        let amounts: Vec<Units> = self.0.capacity.iter().zip(&state.spent).map(left).collect();
        self.worth(&amounts, self.0.delta.minus(state.delta), false)
    }

    /// What has been spent, as the least ε of a budget of this kind that would have sufficed, rounded up.
    ///
    /// For a pure budget this is Σε, exactly. It is a figure to read, not a promise: the promise is the
    /// [`guarantee`](Self::guarantee), which this never exceeds.
    ///
    /// ```
    /// use demur_accounting::Filter;
    ///
    /// let filter = Filter::zcdp("1".parse()?, "1e-6".parse()?)?;
    /// let state = filter.admit(&filter.start(), &"gaussian(sigma=20)".parse()?)?;
    /// let spent = filter.spent_epsilon(&state)?.to_f64();
    /// assert!(0.2 < spent && spent < 0.21);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spent_epsilon(&self, state: &State) -> Result<Rational, Refusal> {
        self.check(state)?;
        let spent: Vec<Rational> = state.spent.iter().map(|units| self.0.amounts.value(*units)).collect();
        Ok(spent::epsilon(&self.0.rule, &spent))
    }

    /// The ε of the budget without [what has been spent](Self::spent_epsilon).
    ///
    /// Whether a loss fits is not decided by it: ask [`admit`](Self::admit).
    pub fn remaining_epsilon(&self, state: &State) -> Result<Rational, Refusal> {
        Ok(self.0.rule.epsilon() - &self.spent_epsilon(state)?)
    }

    /// What could be spent at the start.
    pub fn capacity(&self) -> Amounts {
        self.remaining(&self.start())
    }

    /// The state of `previous` as a state of this filter, when an owner raises a budget.
    ///
    /// Both must count in the same measures. All answers, before and after, then have this filter's guarantee:
    /// the earlier ones were within it too.
    pub fn take_over(&self, previous: &Self, state: &State) -> Result<State, Refusal> {
        previous.check(state)?;
        let larger = self.0.capacity.iter().zip(&previous.0.capacity).all(|(new, old)| new >= old);
        if self.0.measures != previous.0.measures
            || !larger
            || self.0.rule.delta_for_losses() < previous.0.rule.delta_for_losses()
        {
            let text = "a budget can be raised only under the same rule, and no part of it can be lowered";
            return Err(Refusal::new("accounting.filter.state", text));
        }
        let delta = self.0.deltas.up(Some(&previous.0.deltas.value(state.delta)));
        let state = State { spent: state.spent.clone(), delta };
        self.check(&state).map(|()| state)
    }

    /// The filter of the same kind with another ε and, if one is given, another δ; the part of δ for losses grows with it.
    ///
    /// Whether it can take over from this one, [`take_over`](Self::take_over) says.
    pub fn with_budget(&self, epsilon: Rational, delta: Option<Rational>) -> Result<Self, AccountingError> {
        Self::new(self.0.rule.with_budget(epsilon, delta)?)
    }

    /// Whether `after` is within the capacity and has no less spent than `before`.
    ///
    /// What a chain of stored states must show, whichever version priced the losses between them.
    pub fn follows(&self, before: &State, after: &State) -> bool {
        let grown = |(before, after): (&Units, &Units)| before <= after;
        self.check(after).is_ok()
            && before.spent.len() == after.spent.len()
            && before.delta <= after.delta
            && before.spent.iter().zip(&after.spent).all(grown)
    }

    fn cost(&self, loss: &PrivacyLoss) -> Result<Cost, Refusal> {
        loss.check()?;
        let prices = Prices { measures: &self.0.measures, amounts: &self.0.amounts, deltas: &self.0.deltas };
        let unknown = |part: &PrivacyLoss| (part.to_string(), "no filter knows this loss");
        let cost = kernel::terms(loss)
            .map_err(unknown)
            .and_then(|terms| prices.of(&terms).map_err(|advice| (loss.to_string(), advice)));
        cost.map_err(|(name, advice)| {
            let text = format!("`{name}` has no price under this filter: {advice}");
            Refusal::new("accounting.filter.unpriced", text)
        })
    }

    /// Whether at least one measure, and δ, are within their capacity.
    fn holds(&self, state: &State) -> bool {
        let within = |(spent, capacity): (&Units, &Units)| spent <= capacity;
        state.delta <= self.0.delta && state.spent.iter().zip(&self.0.capacity).any(within)
    }

    fn check(&self, state: &State) -> Result<(), Refusal> {
        if state.spent.len() == self.0.capacity.len() && self.holds(state) {
            return Ok(());
        }
        let text = "this state is not one of this filter; nothing can be admitted on top of it";
        Err(Refusal::new("accounting.filter.state", text))
    }

    fn worth(&self, amounts: &[Units], delta: Units, round_up: bool) -> Amounts {
        let value = |(measure, units): (&Measure, &Units)| (*measure, self.0.amounts.value(*units));
        let values = self.0.measures.iter().zip(amounts).map(value).collect();
        Amounts { values, delta: self.0.deltas.value(delta), round_up }
    }
}

fn quarter(delta: &Rational) -> Rational {
    delta / &Rational::from(4u32)
}

/// How a filter is written: its rule, and the capacities computed from it in units.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    rule: Rule,
    capacity: Vec<Units>,
}

impl Serialize for Filter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Stored { rule: self.0.rule.clone(), capacity: self.0.capacity.clone() }.serialize(serializer)
    }
}

/// Reads a filter and checks that its capacity keeps its promise; a capacity need not be the largest.
impl<'de> Deserialize<'de> for Filter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Stored { rule, capacity } = Stored::deserialize(deserializer)?;
        rule.check().map_err(serde::de::Error::custom)?;
        Self::with_capacity(rule, capacity).map_err(serde::de::Error::custom)
    }
}
