//! [`Ladder`]: δ of a list of losses, looked up in one step.
//!
//! **Definition.** For losses b₁ < b₂ < … with probabilities pᵢ let Tᵢ = Σ_{j ≥ i} pⱼ and Dᵢ = Σ_{j ≥ i} pⱼ(1 − e^(bᵢ − bⱼ)). Then
//! δ(t) = (1 − ρ)·Tᵢ + ρ·Dᵢ for the first bᵢ > t, with ρ = e^(t − bᵢ).
//!
//! **Why.** 1 − e^(t − bⱼ) = (1 − ρ) + ρ·(1 − e^(bᵢ − bⱼ)). With t = bᵢ₋₁ the same says how D is worked out from the top down.
//!
//! **Exactness.** No term is negative, so nothing cancels.

use super::Sums;
use crate::nodes::UNIT;

/// See the module text.
#[derive(Debug)]
pub(super) struct Ladder {
    /// bᵢ, Tᵢ and Dᵢ.
    rungs: Vec<(f64, f64, f64)>,
    share: f64,
    off: f64,
    left_out: f64,
}

impl Ladder {
    pub(super) fn new(sums: Sums) -> Self {
        let mut rungs = vec![(0.0, 0.0, 0.0); sums.points.len()];
        let (mut above, mut tail, mut payoff) = (f64::INFINITY, 0.0, 0.0);
        for (rung, (loss, probability)) in rungs.iter_mut().zip(&sums.points).rev() {
            if tail > 0.0 {
                let gap = loss - above;
                payoff = -libm::expm1(gap) * tail + libm::exp(gap) * payoff;
            }
            tail += probability;
            (above, *rung) = (*loss, (*loss, tail, payoff));
        }
        // a sum for T, and a product and a sum for D, at every rung; the functions are off by 4 units
        let share = sums.share + 12.0 * UNIT * (rungs.len() as f64 + 1.0);
        Self { rungs, share, off: sums.off, left_out: sums.left_out }
    }

    pub(super) fn left_out(&self) -> f64 {
        self.left_out
    }

    /// For questions about ever smaller t.
    pub(super) fn downwards(&self) -> Steps<'_> {
        Steps { ladder: self, next: self.rungs.len() }
    }
}

/// Where the last question led.
pub(super) struct Steps<'a> {
    ladder: &'a Ladder,
    /// The first loss that was above t.
    next: usize,
}

impl Steps<'_> {
    /// An upper bound on δ(t).
    pub(super) fn up(&mut self, t: f64) -> f64 {
        self.at(t - self.ladder.off) * (1.0 + self.ladder.share)
    }

    /// A lower bound on δ(t).
    pub(super) fn down(&mut self, t: f64) -> f64 {
        self.at(t + self.ladder.off) * (1.0 - self.ladder.share).max(0.0)
    }

    fn at(&mut self, t: f64) -> f64 {
        let rungs = &self.ladder.rungs;
        while self.next > 0 && rungs[self.next - 1].0 > t {
            self.next -= 1;
        }
        let Some((loss, tail, payoff)) = rungs.get(self.next) else { return 0.0 };
        let gap = t - loss;
        -libm::expm1(gap) * tail + libm::exp(gap) * payoff
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recurrence against the sum it stands for, also where all losses are nearly equal.
    #[test]
    fn looking_up_is_adding_up() {
        for width in [1.0, 1e-7] {
            let points: Vec<_> = (0..50).map(|i| (width * f64::from(i * i) / 100.0, 0.02)).collect();
            let sums = Sums { points: points.clone(), share: 0.0, off: 0.0, left_out: 0.0 };
            let ladder = Ladder::new(sums);
            let mut steps = ladder.downwards();
            for index in (-20..260).rev() {
                let t = width * f64::from(index) / 10.0;
                let exact: f64 = points.iter().map(|(b, p)| p * -f64::exp_m1((t - b).min(0.0))).sum();
                let found = steps.at(t);
                assert!((found - exact).abs() <= 1e-13 * exact, "{t}: {found} for {exact}");
            }
        }
    }
}
