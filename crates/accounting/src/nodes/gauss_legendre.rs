//! Gauss–Legendre quadrature, with a bound on its error.
//!
//! **Definition.** The n-point rule on [−1, 1] has its nodes at the zeros of the Legendre
//! polynomial Pₙ and the weights 2/((1 − x²)·Pₙ′(x)²).
//!
//! **Error.** If f is analytic inside the ellipse with foci ±1 and half-axes (ρ ± 1/ρ)/2, and |f| ≤ M
//! there, the rule is off by at most (64/15)·M·ρ^(2 − 2n)/(1 − ρ^(−2)).
//!
//! **References.** \[Trefethen2019\].

use std::sync::OnceLock;

/// The numbers of points there are rules for.
pub(crate) const SIZES: [usize; 14] = [4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384];

static RULES: [OnceLock<Rule>; SIZES.len()] = [const { OnceLock::new() }; SIZES.len()];

/// Nodes in [−1, 1] and their weights.
pub(crate) struct Rule {
    pub(crate) nodes: Vec<(f64, f64)>,
}

/// The rule with `SIZES[index]` points.
pub(crate) fn rule(index: usize) -> &'static Rule {
    let index = index.min(SIZES.len() - 1);
    RULES[index].get_or_init(|| Rule::new(SIZES[index]))
}

impl Rule {
    fn new(n: usize) -> Self {
        let node = |i: usize| {
            let mut x = (std::f64::consts::PI * (i as f64 + 0.75) / (n as f64 + 0.5)).cos();
            for _ in 0..100 {
                let (p, slope) = legendre(n, x);
                let step = p / slope;
                x -= step;
                if step.abs() < 1e-15 {
                    break;
                }
            }
            let (_, slope) = legendre(n, x);
            (x, 2.0 / ((1.0 - x * x) * slope * slope))
        };
        Self { nodes: (0..n).map(node).collect() }
    }
}

/// Pₙ(x) and its derivative.
fn legendre(n: usize, x: f64) -> (f64, f64) {
    let (mut before, mut here) = (1.0, x);
    for k in 2..=n {
        let k = k as f64;
        (before, here) = (here, ((2.0 * k - 1.0) * x * here - (k - 1.0) * before) / k);
    }
    (here, n as f64 * (before - x * here) / (1.0 - x * x))
}

/// ln of the error of an n-point rule for an integrand below e^`log_bound` on the ellipse of ρ.
pub(crate) fn log_error(n: usize, rho: f64, log_bound: f64) -> f64 {
    (64.0f64 / 15.0).ln() + log_bound - (2 * n - 2) as f64 * rho.ln() - (-rho.powi(-2)).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_integrate_polynomials_of_their_degree_exactly() {
        for (index, n) in SIZES.into_iter().enumerate() {
            for degree in [0, 1, 2, 2 * n - 2, 2 * n - 1] {
                let sum: f64 = rule(index).nodes.iter().map(|(x, w)| w * x.powi(degree as i32)).sum();
                let exact = if degree % 2 == 1 { 0.0 } else { 2.0 / (degree as f64 + 1.0) };
                assert!((sum - exact).abs() < 4e-14, "{n} points, degree {degree}: {sum} for {exact}");
            }
        }
    }

    #[test]
    fn the_error_bound_holds_and_is_not_idle() {
        // e^(kx) is entire: every ellipse will do.
        let (k, exact) = (6.0f64, 2.0 * 6.0f64.sinh() / 6.0);
        for (index, n) in SIZES.into_iter().enumerate().take(4) {
            let sum: f64 = rule(index).nodes.iter().map(|(x, w)| w * (k * x).exp()).sum();
            let bound = (1..60)
                .map(|i| 1.0 + f64::from(i) / 3.0)
                .map(|rho| log_error(n, rho, k * (rho + 1.0 / rho) / 2.0).exp())
                .fold(f64::INFINITY, f64::min);
            let error = (sum - exact).abs();
            assert!(error <= bound + 1e-13 && bound < 1e6 * error + 1e-10, "{n}: {error} {bound}");
        }
    }

    /// The positive nodes and weights of 32 points, by Arb, rounded.
    const THIRTY_TWO: [(f64, f64); 16] = [
        (0.9972638618494816, 0.007018610009470096),
        (0.9856115115452684, 0.01627439473090567),
        (0.9647622555875064, 0.02539206530926206),
        (0.9349060759377397, 0.03427386291302143),
        (0.8963211557660521, 0.04283589802222668),
        (0.84936761373257, 0.050998059262376175),
        (0.7944837959679424, 0.058684093478535544),
        (0.7321821187402897, 0.06582222277636185),
        (0.6630442669302152, 0.0723457941088485),
        (0.5877157572407623, 0.07819389578707031),
        (0.5068999089322294, 0.08331192422694675),
        (0.42135127613063533, 0.08765209300440381),
        (0.33186860228212767, 0.09117387869576389),
        (0.23928736225213706, 0.09384439908080457),
        (0.1444719615827965, 0.09563872007927486),
        (0.04830766568773832, 0.0965400885147278),
    ];

    /// What the path that bends charges: 64 units for a weight, and less than two of 1 for a node.
    #[test]
    fn nodes_and_weights_are_known_to_the_last_digits() {
        let nodes = &rule(6).nodes;
        assert_eq!(nodes.len(), 32);
        for (index, (x, weight)) in THIRTY_TWO.into_iter().enumerate() {
            for ((near, its), sign) in [(nodes[index], 1.0), (nodes[31 - index], -1.0)] {
                assert!((near - sign * x).abs() <= 1.5 * f64::EPSILON / 2.0, "{x}: {near}");
                assert!((its / weight - 1.0).abs() <= 60.0 * f64::EPSILON / 2.0, "{x}: {its} for {weight}");
            }
        }
    }
}
