//! How much a filter may admit: capacities found by search, and certified one by one.
//!
//! **Definition.** With c = e^ε and δ′ the part of δ that is not kept for losses with a δ of their own:
//!
//! ```text
//! pure      ε
//! zcdp      the largest ρ with  min over α > 1 of  e^((α−1)(αρ−ε))·(α−1)^(α−1)/α^α  ≤ δ′
//! gaussian  the largest μ² with  δ(ε; μ) ≤ δ′,  the profile of Gaussian noise
//! renyi     for each of m orders the largest r with  e^((α−1)(r−ε))·(α−1)^(α−1)/α^α  ≤ δ′/m
//! ```
//!
//! **Exactness.** A capacity is stored as a whole number of units, rounded down to twelve digits. It was found with a
//! margin of about 10⁻¹², and [`holds`] checks it with a smaller one: whoever reads a stored capacity does not
//! have to trust the search, nor to repeat it to the last digit. The Gaussian profile is certified in exact arithmetic; the
//! other two need logarithms only, whose errors are bounded by [`READ`] times the sum of all sizes.
//!
//! **Why** these capacities give (ε, δ): `docs/accounting-filters.md`, sections 3 to 6. For zcdp the exponent
//! is convex in t = α − 1, with derivative ρ(2t + 1) − ε − ln(1 + 1/t), so bisection finds the best order; any
//! other would be valid too.
//!
//! **References.** \[Bun2016\], \[Canonne2020\], \[Balle2018\].

use demur_exact::{Rational, gaussian_delta, gaussian_sigma};

use super::Rule;
use super::units::{Grid, Units};

/// Rounding errors of a sum of logarithms, relative to the sum of their sizes, are far below this.
pub(super) const READ: f64 = 1.0 / (1u64 << 46) as f64;
/// The margin with which capacities are made.
const MADE: f64 = 1.0 / (1u64 << 42) as f64;

/// The capacities of a rule whose parameters were checked, one for each measure.
pub(super) fn capacities(rule: &Rule, grid: &Grid) -> Vec<Units> {
    match rule {
        Rule::Pure { epsilon } => vec![grid.down(epsilon)],
        Rule::Zcdp { epsilon, .. } => {
            let rho = largest_rho(epsilon.to_f64_down(), ln_down(&rule.delta_for_capacity()));
            vec![floor(grid, rho)]
        }
        Rule::Gaussian { epsilon, .. } => {
            let sigma = gaussian_sigma(epsilon, &rule.delta_for_capacity()) * (1.0 + MADE);
            vec![floor(grid, 1.0 / (sigma * sigma) * (1.0 - MADE))]
        }
        Rule::Renyi { epsilon, orders, .. } => {
            let log_delta = ln_down(&rule.delta_for_each_order());
            let capacity = |order: &u32| divergence(epsilon.to_f64_down(), log_delta, *order, MADE);
            orders.iter().map(|order| floor(grid, capacity(order))).collect()
        }
    }
}

/// Whether the rule keeps its promise with these capacities.
pub(super) fn holds(rule: &Rule, grid: &Grid, capacities: &[Units]) -> bool {
    let values: Vec<Rational> = capacities.iter().map(|units| grid.value(*units)).collect();
    match (rule, values.as_slice()) {
        (Rule::Pure { epsilon }, [capacity]) => capacity <= epsilon,
        (Rule::Zcdp { epsilon, .. }, [rho]) => {
            rho_holds(rho.to_f64_up(), epsilon.to_f64_down(), ln_down(&rule.delta_for_capacity()), READ)
        }
        (Rule::Gaussian { epsilon, .. }, [mu_squared]) => {
            mu_squared_holds(mu_squared, epsilon, &rule.delta_for_capacity())
        }
        (Rule::Renyi { epsilon, orders, .. }, values) => {
            let log_delta = ln_down(&rule.delta_for_each_order());
            let below = |(order, value): (&u32, &Rational)| {
                let most = divergence(epsilon.to_f64_down(), log_delta, *order, READ);
                value.to_f64_up() <= most.max(0.0)
            };
            orders.len() == values.len() && orders.iter().zip(values).all(below)
        }
        _ => false,
    }
}

/// Twelve digits of an amount, rounded down: what a search on another machine finds as well.
fn floor(grid: &Grid, amount: f64) -> Units {
    if amount <= 1e-40 {
        return Units::NONE;
    }
    let exponent = libm::floor(libm::log10(amount)) as i32 - 11;
    let digits = libm::floor(amount / libm::pow(10.0, f64::from(exponent)));
    let short: Result<Rational, _> = format!("{digits}e{exponent}").parse();
    short.map_or(Units::NONE, |amount| grid.down(&amount))
}

/// ln δ, a little too small; δ is at least the smallest normal double.
pub(super) fn ln_down(delta: &Rational) -> f64 {
    let log = libm::log(delta.to_f64_down());
    log - log.abs() * READ / 16.0
}

/// (1 + t)·ln(1 + t) − t·ln t, by positive terms: how much better the conversion is than e^((α−1)(D−ε)).
pub(super) fn gain(t: f64) -> f64 {
    libm::log1p(t) + t * libm::log1p(1.0 / t)
}

/// The largest Rényi divergence of an order that still gives (ε, δ).
fn divergence(epsilon: f64, log_delta: f64, order: u32, margin: f64) -> f64 {
    let t = f64::from(order) - 1.0;
    let gain = gain(t);
    let error = (epsilon.abs() * t + log_delta.abs() + gain) * margin;
    epsilon + (log_delta + gain - error) / t
}

/// Whether the best order certifies that ρ gives (ε, δ).
fn rho_holds(rho: f64, epsilon: f64, log_delta: f64, margin: f64) -> bool {
    let t = best_order(rho, epsilon);
    let gain = gain(t);
    let (spread, shift) = (t * (1.0 + t) * rho, t * epsilon);
    let error = (spread + shift + gain + log_delta.abs()) * margin;
    spread - shift - gain + error <= log_delta
}

/// t = α − 1 where ρ(2t + 1) − ε − ln(1 + 1/t) changes its sign.
fn best_order(rho: f64, epsilon: f64) -> f64 {
    let (mut low, mut high) = (-60.0, 90.0);
    for _ in 0..64 {
        let middle = (low + high) / 2.0;
        let t = libm::exp(middle);
        if rho * (2.0 * t + 1.0) - epsilon - libm::log1p(1.0 / t) > 0.0 {
            high = middle;
        } else {
            low = middle;
        }
    }
    libm::exp(low)
}

/// Bisection between a ρ that holds and one that does not; 0 when no ρ above 10⁻⁴⁰ holds.
fn largest_rho(epsilon: f64, log_delta: f64) -> f64 {
    let good = |rho: f64| rho_holds(rho, epsilon, log_delta, MADE);
    let mut low = 1.0;
    while !good(low) {
        low /= 2.0;
        if low < 1e-40 {
            return 0.0;
        }
    }
    let mut high = low * 2.0;
    while good(high) && high < 1e12 {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..52 {
        let middle = (low + high) / 2.0;
        if good(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

fn mu_squared_holds(mu_squared: &Rational, epsilon: &Rational, delta: &Rational) -> bool {
    if mu_squared.is_zero() {
        return true;
    }
    let Ok(mu) = Rational::try_from(demur_exact::float::sqrt_up(mu_squared.to_f64_up())) else {
        return false;
    };
    let profile = gaussian_delta(epsilon, &mu);
    Rational::dyadic(profile.upper().clone(), -(profile.bits() as i64)) <= *delta
}

/// The orders a Rényi filter takes when nobody names any: around 1 + 2·ln(1/δ)/ε, where ρ would be best.
pub(super) fn default_orders(epsilon: f64, delta: f64, largest: u32) -> Vec<u32> {
    let centre = 2.0 * -libm::log(delta) / epsilon;
    let near = |factor: f64| (1.0 + centre * factor).round().clamp(2.0, f64::from(largest)) as u32;
    let mut orders: Vec<u32> = [0.6, 0.8, 1.0, 1.5, 2.5].map(near).to_vec();
    orders.dedup();
    orders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn q(text: &str) -> Rational {
        text.parse().unwrap()
    }

    fn of(rule: &Rule) -> Vec<Rational> {
        let grid = Grid::of_amounts();
        let capacities = capacities(rule, &grid);
        assert!(holds(rule, &grid, &capacities), "{rule:?}");
        let more = |units: &Units| Units(units.0 + units.0 / 1_000_000 + 1);
        assert!(!holds(rule, &grid, &capacities.iter().map(more).collect::<Vec<_>>()), "{rule:?}");
        capacities.into_iter().map(|units| grid.value(units)).collect()
    }

    /// ρ + 2√(ρ·ln(1/δ)) = ε is the classic conversion.
    #[test]
    fn a_filter_of_rho_holds_more_than_the_classic_conversion_allows() {
        for epsilon in ["0.001", "0.1", "1", "8", "100", "100000"] {
            for delta in ["1e-3", "1e-6", "1e-12", "1e-300"] {
                let rule = Rule::Zcdp { epsilon: q(epsilon), delta: q(delta), delta_for_losses: q("0") };
                let rho = of(&rule)[0].to_f64();
                let (e, log) = (q(epsilon).to_f64(), -libm::log(q(delta).to_f64()));
                let root = (log + e).sqrt() - log.sqrt();
                assert!(root * root < rho * (1.0 + 1e-7), "ε = {epsilon}, δ = {delta}: {rho}");
            }
        }
    }

    /// From a search in 50 digits with mpmath.
    const REFERENCE_RHO: [(&str, &str, f64); 6] = [
        ("1", "1e-6", 0.024_355_970_359_538_372),
        ("0.1", "1e-9", 0.000_177_138_447_185_020_86),
        ("8", "1e-5", 1.229_714_525_761_431_2),
        ("0.001", "1e-12", 1.540_464_262_434_346e-8),
        ("30", "0.01", 15.146_495_299_822_26),
        ("1", "1e-300", 0.000_366_002_551_438_920_75),
    ];

    #[test]
    fn a_filter_of_rho_holds_the_best_there_is() {
        for (epsilon, delta, rho) in REFERENCE_RHO {
            let rule = Rule::Zcdp { epsilon: q(epsilon), delta: q(delta), delta_for_losses: q("0") };
            let found = of(&rule)[0].to_f64();
            assert!(
                found <= rho && rho * (1.0 - 1e-9) < found,
                "ε = {epsilon}, δ = {delta}: {found} of {rho}"
            );
        }
    }

    #[test]
    fn a_gaussian_filter_holds_what_the_exact_profile_allows() {
        let rule = Rule::Gaussian { epsilon: q("1"), delta: q("1e-5"), delta_for_losses: q("0") };
        let mu_squared = of(&rule)[0].to_f64();
        let exact = 1.0 / (3.730_631_634_816_f64 * 3.730_631_634_816);
        assert!(mu_squared < exact && exact * (1.0 - 2e-11) < mu_squared);
    }

    #[test]
    fn a_renyi_filter_shares_its_delta_among_its_orders() {
        let one =
            Rule::Renyi { epsilon: q("2"), delta: q("1e-6"), delta_for_losses: q("0"), orders: vec![20] };
        let two =
            Rule::Renyi { epsilon: q("2"), delta: q("1e-6"), delta_for_losses: q("0"), orders: vec![20, 40] };
        let (one, two) = (of(&one)[0].to_f64(), of(&two)[0].to_f64());
        assert!((one - two - 2f64.ln() / 19.0).abs() < 1e-9);
        // ε + (ln δ + 20·ln 20 − 19·ln 19)/19
        assert!((one - 1.482_3).abs() < 1e-3, "{one}");
    }

    #[test]
    fn orders_are_chosen_near_the_best() {
        assert_eq!(default_orders(1.0, 1e-6, 1024), [18, 23, 29, 42, 70]);
        assert_eq!(default_orders(1000.0, 1e-6, 1024), [2]);
        assert_eq!(default_orders(1e-6, 1e-6, 1024), [1024]);
    }
}
