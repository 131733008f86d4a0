//! What has been spent, as one ε that people can compare with the budget's.
//!
//! **Definition.** The least ε for which a filter of the same rule, with the same δ and the same orders, would have admitted all that
//! was spent, rounded up; 0 when nothing was. With t = α − 1, δ′ the part of δ for the conversion, shared among m orders:
//!
//! ```text
//! pure      Σε, exactly
//! zcdp      min over t > 0 of  (1 + t)·ρ + (ln(1/δ′) − (1 + t)·ln(1 + t) + t·ln t)/t
//! gaussian  the least ε with  δ(ε; μ) ≤ δ′
//! renyi     min over the orders of  D_α + (ln(m/δ′) − (1 + t)·ln(1 + t) + t·ln t)/t
//! ```
//!
//! **What it is not.** The guarantee of all answers is the filter's [`guarantee`](super::Filter::guarantee), whatever has been
//! spent. Somebody who stops because this number is small has no right to it as a promise: that would need an
//! odometer, which costs more. It never exceeds the ε of the budget, which holds anyway.
//!
//! **Exactness.** The derivative of the zcdp line is (ρt² + ln(1 + t) − ln(1/δ′))/t², so bisection finds the best order; any other
//! would be valid too. Rounding errors are covered as for capacities, the Gaussian profile is certified.

use demur_exact::Rational;
use demur_exact::float::{add_up, div_up, sqrt_up};

use super::Rule;
use super::capacity::{READ, gain, ln_down};
use crate::law;
use crate::solve::least_epsilon;

/// The ε of these amounts, one for each measure of the rule.
pub(super) fn epsilon(rule: &Rule, spent: &[Rational]) -> Rational {
    if spent.iter().all(Rational::is_zero) {
        return Rational::zero();
    }
    let budget = rule.epsilon().clone();
    let found = match (rule, spent) {
        (Rule::Pure { .. }, [epsilon]) => return epsilon.clone().min(budget),
        (Rule::Zcdp { .. }, [rho]) => of_rho(rho.to_f64_up(), ln_down(&rule.delta_for_capacity())),
        (Rule::Gaussian { .. }, [mu_squared]) => of_mu_squared(mu_squared, &rule.delta_for_capacity()),
        (Rule::Renyi { orders, .. }, spent) => {
            let log_delta = ln_down(&rule.delta_for_each_order());
            let of = |(order, divergence): (&u32, &Rational)| {
                of_divergence(divergence.to_f64_up(), f64::from(*order) - 1.0, log_delta)
            };
            orders.iter().zip(spent).map(of).fold(f64::INFINITY, f64::min)
        }
        _ => f64::INFINITY,
    };
    Rational::try_from(found.max(0.0)).map_or(budget.clone(), |found| found.min(budget))
}

/// ε at the order 1 + t, where the divergence is given.
fn of_divergence(divergence: f64, t: f64, log_delta: f64) -> f64 {
    let gain = gain(t);
    let rest = (-log_delta - gain) / t;
    let error = (divergence + (log_delta.abs() + gain) / t) * READ;
    add_up(add_up(divergence, rest), error)
}

fn of_rho(rho: f64, log_delta: f64) -> f64 {
    let (mut low, mut high) = (-60.0, 90.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        let t = libm::exp(middle);
        if rho * t * t + libm::log1p(t) + log_delta > 0.0 {
            high = middle;
        } else {
            low = middle;
        }
    }
    let t = libm::exp(low);
    // A divergence a little too large: 1 + t and the product are rounded.
    of_divergence(div_up(rho * (1.0 + t), 1.0 - READ), t, log_delta)
}

fn of_mu_squared(mu_squared: &Rational, delta: &Rational) -> f64 {
    let mu = sqrt_up(mu_squared.to_f64_up());
    let profile = |epsilon: &Rational| law::gaussian_delta(epsilon.to_f64_down(), mu);
    let guess = mu * mu / 2.0 + 5.0 * mu;
    least_epsilon(profile, delta, guess, 1e9).map_or(f64::INFINITY, |bounds| bounds.upper)
}

#[cfg(test)]
mod tests {
    use super::super::Filter;
    use super::*;
    use demur_core::PrivacyLoss;

    fn q(text: &str) -> Rational {
        text.parse().unwrap()
    }

    fn budgets() -> Vec<Filter> {
        let mut filters = vec![Filter::pure(q("1")).unwrap()];
        for (epsilon, delta) in [("1", "1e-6"), ("0.1", "1e-9"), ("8", "1e-5"), ("100", "1e-300")] {
            for make in [Filter::zcdp, Filter::gaussian, Filter::renyi] {
                filters.push(make(q(epsilon), q(delta)).unwrap());
            }
        }
        filters
    }

    #[test]
    fn ten_tenths_are_one() {
        let filter = Filter::pure(q("1")).unwrap();
        let loss: PrivacyLoss = "pure(0.1)".parse().unwrap();
        let mut state = filter.start();
        for tenths in 1..=10u32 {
            state = filter.admit(&state, &loss).unwrap();
            assert_eq!(filter.spent_epsilon(&state).unwrap(), &Rational::from(tenths) / &q("10"));
        }
        assert_eq!(filter.remaining_epsilon(&state).unwrap(), q("0"));
    }

    #[test]
    fn nothing_spent_is_nothing_and_more_is_more_up_to_the_budget() {
        for filter in budgets() {
            let mut state = filter.start();
            assert!(filter.spent_epsilon(&state).unwrap().is_zero());
            assert_eq!(filter.remaining_epsilon(&state).unwrap(), filter.guarantee().0);
            let each = &filter.guarantee().0 / &q("50");
            let loss = PrivacyLoss::Pure { epsilon: each };
            let mut before = Rational::zero();
            while let Ok(next) = filter.admit(&state, &loss) {
                state = next;
                let spent = filter.spent_epsilon(&state).unwrap();
                assert!(before <= spent && spent <= filter.guarantee().0, "{:?}", filter.rule());
                before = spent;
            }
        }
    }

    /// The definition itself: a budget of that ε admits what was spent, and one a little smaller does not.
    #[test]
    fn it_is_the_least_budget_that_would_have_sufficed() {
        for filter in budgets() {
            let full: Vec<Rational> = filter.capacity().values.into_iter().map(|(_, value)| value).collect();
            for part in ["0.9", "0.5", "0.01"] {
                let spent: Vec<Rational> = full.iter().map(|value| value * &q(part)).collect();
                let found = epsilon(filter.rule(), &spent);
                let rule = |epsilon: Rational| match filter.rule().clone() {
                    Rule::Pure { .. } => Rule::Pure { epsilon },
                    Rule::Zcdp { delta, delta_for_losses, .. } => {
                        Rule::Zcdp { epsilon, delta, delta_for_losses }
                    }
                    Rule::Gaussian { delta, delta_for_losses, .. } => {
                        Rule::Gaussian { epsilon, delta, delta_for_losses }
                    }
                    Rule::Renyi { delta, delta_for_losses, orders, .. } => {
                        Rule::Renyi { epsilon, delta, delta_for_losses, orders }
                    }
                };
                let holds = |epsilon: Rational| {
                    Filter::new(rule(epsilon)).is_ok_and(|smaller| {
                        let capacity = smaller.capacity().values;
                        capacity.iter().zip(&spent).any(|((_, capacity), spent)| spent <= capacity)
                    })
                };
                assert!(holds(&found * &q("1.000000001")), "{:?} {part} {found:?}", filter.rule());
                assert!(!holds(&found * &q("0.999999")), "{:?} {part} {found:?}", filter.rule());
            }
        }
    }

    #[test]
    fn a_full_budget_is_all_of_its_epsilon() {
        for filter in budgets() {
            let full: Vec<Rational> = filter.capacity().values.into_iter().map(|(_, value)| value).collect();
            let (found, epsilon) = (epsilon(filter.rule(), &full), filter.guarantee().0);
            assert!(found <= epsilon && &epsilon * &q("0.999999999") <= found, "{found:?}");
        }
    }

    #[test]
    fn gaussian_noise_has_its_known_epsilon() {
        let rule = Rule::Gaussian { epsilon: q("8"), delta: q("1e-5"), delta_for_losses: q("0") };
        let found = epsilon(&rule, &[q("1")]).to_f64();
        assert!((found - GAUSSIAN_EPSILON).abs() < 1e-9, "{found}");
    }

    /// ε of Gaussian noise with σ = 1 at δ = 10⁻⁵, from its profile in 40 digits with mpmath.
    const GAUSSIAN_EPSILON: f64 = 4.377_178_095_681_225;

    #[test]
    fn a_state_of_another_filter_has_no_epsilon() {
        let filters = budgets();
        let error = filters[0].spent_epsilon(&filters[3].start());
        assert_eq!(error.unwrap_err().code(), "accounting.filter.state");
    }
}
