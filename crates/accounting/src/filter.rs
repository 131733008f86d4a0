//! [`Filter`]: what may still be spent when every next loss is chosen after seeing all answers.
//!
//! **Definition.** A filter has a capacity and keeps a running total. It admits a loss while the total with it stays
//! within the capacity, and refuses it otherwise. What it counts is its [`Rule`]: ε, ρ, μ², or Rényi
//! divergences of a few orders, and beside them Σδ of the losses that have a δ.
//!
//! **Guarantee.** However the losses, the questions and the moment to stop are chosen from earlier answers, all answers
//! together are (ε, δ)-private with the filter's [`guarantee`](Filter::guarantee), as long as only admitted
//! losses are paid.
//!
//! **Why it needs proof.** Composition theorems fix the sequence of losses beforehand. An analyst who sees answers may
//! stop early when they are harmless and go on when they are telling. Adding up the prices is still right for
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
mod refusal;
mod rule;
mod state;
#[cfg(test)]
mod tests;
mod units;

use demur_core::PrivacyLoss;
use demur_exact::Rational;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use refusal::Refusal;
pub use rule::Rule;
pub use state::{Amounts, Measure, State};

use crate::AccountingError;
use price::{Cost, Prices};
use refusal::four_digits;
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
pub struct Filter {
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

    /// A budget of (ε, δ) counted in Rényi divergences of five orders or fewer around the best one for Gaussian noise.
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
                "a budget of ε = {} and δ = {} admits nothing under this rule; choose a larger ε or δ, or orders above 1 + ln(1/δ)/ε",
                rule.epsilon(),
                rule.delta()
            );
            return Err(AccountingError::new("accounting.filter.budget", text));
        }
        let part = rule.delta_for_losses();
        let deltas = Grid::of_delta(&part);
        Ok(Self { measures: rule.measures(), delta: deltas.down(&part), capacity, amounts, deltas, rule })
    }

    /// The budget and how it is counted.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// The (ε, δ) of all answers together, as long as only admitted losses are paid.
    pub fn guarantee(&self) -> (Rational, Rational) {
        (self.rule.epsilon().clone(), self.rule.delta())
    }

    /// Nothing spent.
    pub fn start(&self) -> State {
        State { spent: vec![Units::NONE; self.capacity.len()], delta: Units::NONE }
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
        let cost = self.cost(loss)?;
        let add = |(spent, asked): (&Units, &Units)| spent.plus(*asked);
        let next = State {
            spent: state.spent.iter().zip(&cost.amounts).map(add).collect(),
            delta: state.delta.plus(cost.delta),
        };
        if next.delta > self.delta {
            return Err(self.refuse_delta(state, &cost));
        }
        if self.holds(&next) { Ok(next) } else { Err(self.refuse(state, &cost)) }
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

    /// What is left to spend; of a Rényi filter's orders one must hold out, and those that are used up have nothing left.
    pub fn remaining(&self, state: &State) -> Amounts {
        let left = |(capacity, spent): (&Units, &Units)| capacity.minus(*spent);
        let amounts: Vec<Units> = self.capacity.iter().zip(&state.spent).map(left).collect();
        self.worth(&amounts, self.delta.minus(state.delta), false)
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
        let larger = self.capacity.iter().zip(&previous.capacity).all(|(new, old)| new >= old);
        if self.measures != previous.measures
            || !larger
            || self.rule.delta_for_losses() < previous.rule.delta_for_losses()
        {
            let text = "a budget can be raised only under the same rule, and no part of it can be lowered";
            return Err(Refusal::new("accounting.filter.state", text));
        }
        let delta = self.deltas.up(Some(&previous.deltas.value(state.delta)));
        let state = State { spent: state.spent.clone(), delta };
        self.check(&state).map(|()| state)
    }

    fn cost(&self, loss: &PrivacyLoss) -> Result<Cost, Refusal> {
        loss.check()?;
        let prices = Prices { measures: &self.measures, amounts: &self.amounts, deltas: &self.deltas };
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
        state.delta <= self.delta && state.spent.iter().zip(&self.capacity).any(within)
    }

    fn check(&self, state: &State) -> Result<(), Refusal> {
        if state.spent.len() == self.capacity.len() && self.holds(state) {
            return Ok(());
        }
        let text = "this state is not one of this filter; nothing can be admitted on top of it";
        Err(Refusal::new("accounting.filter.state", text))
    }

    fn worth(&self, amounts: &[Units], delta: Units, round_up: bool) -> Amounts {
        let value = |(measure, units): (&Measure, &Units)| (*measure, self.amounts.value(*units));
        let values = self.measures.iter().zip(amounts).map(value).collect();
        Amounts { values, delta: self.deltas.value(delta), round_up }
    }

    fn refuse(&self, state: &State, cost: &Cost) -> Refusal {
        let (mut asked, mut left) = self.asked_and_left(state, cost);
        let all = (asked.clone(), left.clone());
        asked.delta = Rational::zero();
        left.delta = Rational::zero();
        let fits = what_fits(&left);
        let text = format!("this costs {asked} but only {left} is left; {fits} would fit");
        Refusal::new("accounting.filter.exhausted", text).with_amounts(all.0, all.1)
    }

    fn refuse_delta(&self, state: &State, cost: &Cost) -> Refusal {
        let (asked, left) = self.asked_and_left(state, cost);
        let (price, rest) =
            (four_digits(asked.delta.to_f64(), true), four_digits(left.delta.to_f64(), false));
        let text = format!(
            "this costs δ = {price:e} but only δ = {rest:e} is left of the part of δ that is kept for such losses; a \
             loss with at most that δ, or without one, would fit"
        );
        Refusal::new("accounting.filter.delta-exhausted", text).with_amounts(asked, left)
    }

    fn asked_and_left(&self, state: &State, cost: &Cost) -> (Amounts, Amounts) {
        (self.worth(&cost.amounts, cost.delta, true), self.remaining(state))
    }
}

/// What can be paid with what is left, in words.
fn what_fits(left: &Amounts) -> String {
    let options = left.values.iter().map(|(measure, value)| {
        let value = value.to_f64_down();
        // Gaussian noise with μ² = 1/σ² per unit of sensitivity, and pure ε by ρ ≤ ε²/2 and μ² ≤ (π/2)·ε².
        let (mu_squared, epsilon) = match measure {
            Measure::Epsilon => (0.0, value),
            Measure::Rho => (2.0 * value, (2.0 * value).sqrt()),
            Measure::MuSquared => (value, (value / std::f64::consts::FRAC_PI_2).sqrt()),
            Measure::Renyi(order) => {
                let rho = value / f64::from(*order);
                (2.0 * rho, (2.0 * rho).sqrt())
            }
        };
        (mu_squared, epsilon)
    });
    let (mu_squared, epsilon) =
        options.fold((0.0f64, 0.0f64), |best, one| (best.0.max(one.0), best.1.max(one.1)));
    if epsilon == 0.0 {
        return "only what costs nothing".to_owned();
    }
    let pure = format!("a loss of at most ε = {}", four_digits(epsilon * (1.0 - 1e-12), false));
    if mu_squared == 0.0 {
        let exact = four_digits(epsilon, false);
        return format!("a loss of at most ε = {exact}");
    }
    let sigma = four_digits(bound::inverse_root_up(mu_squared), true);
    format!("{pure}, or Gaussian noise of at least σ = {sigma} times the sensitivity,")
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
        Stored { rule: self.rule.clone(), capacity: self.capacity.clone() }.serialize(serializer)
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
