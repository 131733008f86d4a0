//! Whatever is asked, the answer is an interval or a sentence under a code, never a panic.

#![expect(clippy::unwrap_used, reason = "a failing test may fail anywhere")]

use demur_accounting::{Account, AccountingError, Answer, Method};
use demur_exact::Rational;

fn q(text: &str) -> Rational {
    text.parse().unwrap()
}

fn account(losses: &str) -> Result<Account, AccountingError> {
    Account::of(&losses.parse().unwrap())
}

fn code<T: std::fmt::Debug>(result: Result<T, AccountingError>) -> &'static str {
    let error = result.unwrap_err();
    let text = error.to_string();
    assert!(!text.is_empty() && text.chars().count() < 250 && !text.ends_with('.'), "{text}");
    error.code()
}

#[test]
fn an_epsilon_below_zero_is_refused() {
    let account = account("laplace(scale=1)").unwrap();
    for epsilon in ["-1", "-1e-30", "-1e30"] {
        assert_eq!(code(account.delta(&q(epsilon))), "accounting.epsilon");
        for method in Method::ALL {
            assert_eq!(code(account.delta_by(method, &q(epsilon))), "accounting.epsilon");
        }
    }
}

#[test]
fn a_delta_that_is_no_probability_below_one_is_refused() {
    let account = account("laplace(scale=1)").unwrap();
    for delta in ["-1e-9", "1", "1.5", "1e30"] {
        assert_eq!(code(account.epsilon(&q(delta))), "accounting.delta");
        for method in Method::ALL {
            assert_eq!(code(account.epsilon_by(method, &q(delta))), "accounting.delta");
        }
    }
}

#[test]
fn no_epsilon_is_large_enough_for_unbounded_losses_without_delta() {
    let unbounded = [
        "gaussian(sigma=1)",
        "gaussian(sigma=1)*10 + laplace(scale=1)",
        "subsampled(0.01, gaussian(sigma=1))*100",
        "approx(epsilon=1, delta=1e-9)",
        "truncated_laplace(scale=1, bound=10, sensitivity=1)",
    ];
    for losses in unbounded {
        assert_eq!(code(account(losses).unwrap().epsilon(&q("0"))), "accounting.infinite", "{losses}");
    }
    // Nor for less than what is lost for sure.
    let leaky = account("approx(epsilon=1, delta=1e-6)*10").unwrap();
    assert_eq!(code(leaky.epsilon(&q("9e-6"))), "accounting.infinite");
    assert!(leaky.epsilon(&q("1.1e-5")).is_ok());
}

#[test]
fn orders_of_renyi_divergences_are_above_one() {
    let account = account("gaussian(sigma=1)").unwrap();
    for order in ["1", "0.5", "0", "-3", "1e9", "1e40"] {
        assert_eq!(code(account.renyi(&q(order))), "accounting.order", "{order}");
    }
    assert!(account.renyi(&q("1.000001")).is_ok());
}

#[test]
fn a_certain_leak_has_no_renyi_divergence() {
    assert_eq!(code(account("approx(epsilon=1, delta=1e-9)").unwrap().renyi(&q("2"))), "accounting.infinite");
}

#[test]
fn counts_that_no_double_holds_are_refused() {
    let many = "1000000000000000000";
    let counts = [
        format!("pure(1)*{many}"),
        format!("(pure(1)*{many} + pure(2))*{many}"),
        format!("group({many}, randomized_response(epsilon=1)*{many})"),
        format!("gaussian(sigma=1)*{many}"),
    ];
    for losses in counts {
        assert_eq!(code(account(&losses)), "accounting.count", "{losses}");
    }
}

#[test]
fn theorems_about_bounded_losses_refuse_unbounded_ones() {
    let unbounded = ["gaussian(sigma=1)", "laplace(scale=1) + gaussian(sigma=1)*3", "zcdp(0.1)"];
    for losses in unbounded {
        let account = account(losses).unwrap();
        for method in [Method::Basic, Method::Advanced, Method::Optimal] {
            assert_eq!(code(account.delta_by(method, &q("1"))), "accounting.not-pure", "{losses}, {method}");
            assert_eq!(
                code(account.epsilon_by(method, &q("1e-6"))),
                "accounting.not-pure",
                "{losses}, {method}"
            );
        }
    }
}

#[test]
fn formulas_and_lattices_refuse_what_they_do_not_cover() {
    let mixed = account("laplace(scale=1)*2 + gaussian(sigma=1)").unwrap();
    assert_eq!(code(mixed.delta_by(Method::Closed, &q("1"))), "accounting.no-formula");
    assert_eq!(code(mixed.delta_by(Method::Lattice, &q("1"))), "accounting.no-lattice");
    assert_eq!(code(mixed.epsilon_by(Method::Lattice, &q("1e-6"))), "accounting.no-lattice");
    let concentrated = account("zcdp(0.1)").unwrap();
    for method in [Method::Closed, Method::Lattice, Method::Inversion, Method::Grid] {
        assert_eq!(code(concentrated.delta_by(method, &q("1"))), "accounting.no-law");
    }
    assert_eq!(code(concentrated.delta_by(Method::Gaussian, &q("1"))), "accounting.not-gaussian");
}

#[test]
fn a_method_is_called_by_its_name() {
    for method in Method::ALL {
        assert_eq!(method.name().parse(), Ok(method));
    }
    assert_eq!(code("moments".parse::<Method>()), "accounting.method");
}

#[test]
fn several_mechanisms_on_one_sample_are_all_gaussian_or_all_pure() {
    assert_eq!(
        code(account("subsampled(0.1, gaussian(sigma=1) + laplace(scale=1))")),
        "accounting.shared-sample"
    );
    assert!(account("subsampled(0.1, gaussian(sigma=1) + gaussian(sigma=2)*3)").is_ok());
    assert!(account("subsampled(0.1, pure(1) + laplace(scale=1))").is_ok());
}

/// An answer means something: no NaN, in order, δ at most 1.
fn sound(answer: &Answer, most: f64) -> bool {
    let (lower, upper) = (answer.bounds.lower, answer.bounds.upper);
    0.0 <= lower && lower <= upper && upper <= most
}

fn nasty(losses: &str) {
    let Ok(account) = account(losses) else { return };
    for epsilon in ["0", "1e-400", "1e-30", "1", "17/3"] {
        if let Ok(answer) = account.delta(&q(epsilon)) {
            assert!(sound(&answer, 1.0), "{losses} at ε = {epsilon}: {answer:?}");
        }
    }
    for delta in ["0", "1e-30", "1e-6", "1/3", "0.999999999999"] {
        if let Ok(answer) = account.epsilon(&q(delta)) {
            assert!(sound(&answer, f64::MAX), "{losses} at δ = {delta}: {answer:?}");
        }
    }
    for order in ["1.0000000001", "2", "20"] {
        if let Ok(both) = account.renyi(&q(order)) {
            assert!(
                both.iter().all(|bounds| 0.0 <= bounds.lower && bounds.lower <= bounds.upper),
                "{losses}: {both:?}"
            );
        }
    }
}

#[test]
fn nothing_panics() {
    let losses = [
        "composed()",
        "pure(0)*10",
        "laplace(scale=1, sensitivity=0)*10",
        "gaussian(sigma=1, sensitivity=0)*10",
        "subsampled(0, gaussian(sigma=1))*10",
        "subsampled(1, gaussian(sigma=1))*10",
        "gaussian(sigma=0.1)",
        "pure(1e-30)",
        "pure(600)",
        "laplace(scale=1e-2)",
        "laplace(epsilon=0.1)*1000000",
        "approx(epsilon=0, delta=0.999999999)*3",
        "approx(epsilon=1e-9, delta=1e-300)",
        "truncated_laplace(scale=1, bound=0.1, sensitivity=1)",
        "truncated_discrete_laplace(scale=1, bound=3, sensitivity=7)*2",
        "truncated_discrete_laplace(scale=1, bound=3, sensitivity=6)",
        "randomized_response(epsilon=5, categories=18446744073709551615)",
        "randomized_response(epsilon=1, categories=1000000)*5",
        "unary_encoding(1/3)*17",
        "discrete_laplace(scale=1000, sensitivity=999)",
        "discrete_gaussian(variance=1/100)*2",
        "discrete_gaussian(sigma=10, sensitivity=3, dimensions=9)*100",
        "zcdp(0)",
        "zcdp(100)",
        "zcdp(0.01)*5 + laplace(scale=3)",
        "group(100, gaussian(sigma=500))",
        "gaussian(sigma=30)*10000",
        "group(3, subsampled(0.01, randomized_response(epsilon=1, categories=4)))",
        "subsampled(0.01, gaussian(sigma=1))*1000",
        "subsampled(0.5, pure(1))",
        "exponential(20)",
    ];
    losses.into_iter().for_each(nasty);
}
