//! What holds for every filter and any losses.

use proptest::prelude::*;

use super::*;

/// A loss of any kind, small enough that several fit.
fn any_loss() -> impl Strategy<Value = PrivacyLoss> {
    let amount = (1i128..1000, 1u128..1000).prop_map(|(n, d)| &Rational::new(n, d * 100_000) * &q("1.37"));
    let scale = (1u32..1000).prop_map(|n| &Rational::from(n) * &q("97/3"));
    let tiny = (1i128..1000).prop_map(|n| Rational::new(n, 1_000_000_000_000));
    let single = prop_oneof![
        amount.clone().prop_map(|epsilon| PrivacyLoss::Pure { epsilon }),
        amount.clone().prop_map(|epsilon| PrivacyLoss::Exponential { epsilon }),
        (amount, tiny).prop_map(|(epsilon, delta)| PrivacyLoss::Approximate { epsilon, delta }),
        scale.clone().prop_map(|scale| PrivacyLoss::Laplace { scale, sensitivity: q("0.01") }),
        scale.prop_map(|variance| PrivacyLoss::Gaussian { variance, l2_squared: q("0.001") }),
    ];
    (single, 1u64..4, 1u64..3, 1u32..4).prop_map(|(loss, size, count, sampled)| {
        let loss = if size > 2 { PrivacyLoss::Group { size, inner: Box::new(loss) } } else { loss };
        let rate = Rational::new(1, u128::from(sampled));
        PrivacyLoss::Subsampled { rate, inner: Box::new(loss) }.repeat(count)
    })
}

proptest! {
    #[test]
    fn an_admitted_total_never_exceeds_the_capacity(losses in proptest::collection::vec(any_loss(), 0..40)) {
        for filter in filters() {
            let mut state = filter.start();
            for loss in &losses {
                let Ok(next) = filter.admit(&state, loss) else { continue };
                prop_assert!(next.spent.iter().zip(&state.spent).all(|(new, old)| new >= old));
                prop_assert!(next.delta >= state.delta);
                state = next;
            }
            let within = |(spent, capacity): (&(Measure, Rational), &(Measure, Rational))| spent.1 <= capacity.1;
            prop_assert!(filter.spent(&state).values.iter().zip(&filter.capacity().values).any(within));
            prop_assert!(filter.spent(&state).delta <= filter.rule().delta_for_losses());
        }
    }

    #[test]
    fn the_order_of_payments_does_not_matter(losses in proptest::collection::vec(any_loss(), 0..12), by in 0usize..12) {
        let mut turned = losses.clone();
        turned.rotate_left(by.min(losses.len()));
        turned.reverse();
        for filter in filters() {
            prop_assert_eq!(spend(&filter, &losses).ok(), spend(&filter, &turned).ok());
        }
    }

    /// A composition costs what its parts cost, up to one unit for each payment and the rounding of a product:
    /// equal parts are counted together, and three times a double is rounded up once.
    #[test]
    fn paying_together_costs_what_paying_apart_costs(losses in proptest::collection::vec(any_loss(), 1..8)) {
        let together = losses.iter().cloned().reduce(PrivacyLoss::compose).unwrap();
        for filter in filters() {
            let (Ok(once), Ok(apart)) = (filter.cost(&together), losses.iter().map(|loss| filter.cost(loss)).collect::<Result<Vec<_>, _>>()) else { continue };
            for index in 0..once.amounts.len() {
                let sum: u128 = apart.iter().map(|cost| cost.amounts[index].0).sum();
                prop_assert!(once.amounts[index].0.abs_diff(sum) <= 64 + (sum >> 50));
            }
            prop_assert!(once.delta.0.abs_diff(apart.iter().map(|cost| cost.delta.0).sum()) <= 64);
        }
    }

    /// More of the same never fits where less does not.
    #[test]
    fn more_never_fits_where_less_does_not(loss in any_loss(), spent in 0u64..400, count in 1u64..200, more in 1u64..50) {
        for filter in filters() {
            let Ok(state) = filter.admit(&filter.start(), &self::loss("pure(0.001)").repeat(spent)) else { continue };
            let less = filter.admit(&state, &loss.clone().repeat(count));
            let much = filter.admit(&state, &loss.clone().repeat(count + more));
            prop_assert!(less.is_ok() || much.is_err());
        }
    }

    #[test]
    fn prices_grow_with_epsilon(a in 1u64..1_000_000, b in 1u64..1_000_000) {
        let (low, high) = (a.min(b), a.max(b));
        let of = |n: u64| PrivacyLoss::Pure { epsilon: Rational::new(i128::from(n), 100_000) };
        for filter in filters() {
            let (low, high) = (filter.cost(&of(low)).unwrap(), filter.cost(&of(high)).unwrap());
            // Up to the margin of the bounds, 2⁻³⁷.
            let grows = |(low, high): (&Units, &Units)| low.0 - (low.0 >> 37) <= high.0;
            prop_assert!(low.amounts.iter().zip(&high.amounts).all(grows));
        }
    }

    #[test]
    fn states_survive_being_stored(losses in proptest::collection::vec(any_loss(), 0..6)) {
        for filter in filters() {
            let Ok(state) = spend(&filter, &losses) else { continue };
            let json = serde_json::to_string(&state).unwrap();
            prop_assert_eq!(serde_json::from_str::<State>(&json).unwrap(), state);
        }
    }
}
