//! [`Crowd`]: what a group costs, from what one of its people costs.
//!
//! **Statement.** If δ₁ is the profile for one person, k people together have
//!
//! ```text
//! δₖ(ε) ≤ δ₁(ε/k)·(e^ε − 1)/(e^(ε/k) − 1)
//! ```
//!
//! **Why.** Along the chain of k neighbours each step costs a factor e^(ε/k) and δ₁(ε/k); the δ of step i is multiplied by the
//! factors of the steps before it, and 1 + e^(ε/k) + … + e^((k−1)ε/k) is the fraction above.
//!
//! **What for.** On samples a group has no law of its own here: it is taken to be in the sample together or not at all, which
//! is the better bound at rates near 1 and the worse one at small rates. Both hold, so the smaller counts.
//!
//! **References.** \[Dwork2014\].

use demur_core::PrivacyLoss;
use demur_exact::Rational;
use demur_exact::float::mul_up;

use crate::account::Question;
use crate::{Account, AccountingError};

/// By how much the fraction is enlarged: far more than its four roundings of 2⁻⁵¹ or less.
const SLACK: f64 = 1.0 + 1.0 / (1u64 << 40) as f64;
/// ε is found to this relative accuracy.
const ACCURACY: f64 = 1e-7;

/// A group, and the account of one of them.
#[derive(Clone, Debug)]
pub(crate) struct Crowd {
    size: Rational,
    one: Box<Account>,
}

impl Crowd {
    /// The group that a loss is about, where its people are sampled.
    pub(crate) fn of(loss: &PrivacyLoss) -> Result<Option<Self>, AccountingError> {
        let (mut size, mut inner) = (Rational::one(), loss);
        while let PrivacyLoss::Group { size: more, inner: deeper } = inner {
            size = &size * &Rational::from(*more);
            inner = deeper;
        }
        if size <= Rational::one() || !is_sampled(inner) {
            return Ok(None);
        }
        Ok(Some(Self { size, one: Box::new(Account::of(inner)?) }))
    }

    /// An upper bound on the answer that is below `than`, if there is one.
    pub(crate) fn below(&self, question: Question<'_>, than: f64) -> Option<f64> {
        match question {
            Question::Delta { epsilon } => self.delta(epsilon).filter(|delta| *delta < than),
            Question::Epsilon { delta } => {
                let enough = |epsilon: f64| {
                    let epsilon = Rational::try_from(epsilon).ok()?;
                    let found = Rational::try_from(self.delta(&epsilon)?).ok()?;
                    (found <= *delta).then_some(())
                };
                let mut high = than * (1.0 - ACCURACY);
                enough(high)?;
                let mut low = 0.0;
                while high - low > ACCURACY * high {
                    let middle = (low + high) / 2.0;
                    if enough(middle).is_some() { high = middle } else { low = middle }
                }
                Some(high)
            }
        }
    }

    fn delta(&self, epsilon: &Rational) -> Option<f64> {
        let each = epsilon / &self.size;
        let delta = self.one.delta(&each).ok()?.bounds.upper;
        let (size, step) = (self.size.to_f64_up(), each.to_f64_up());
        let growth = if step == 0.0 { size } else { libm::expm1(mul_up(size, step)) / libm::expm1(step) };
        let bound = mul_up(delta, mul_up(growth, SLACK));
        (bound < 1.0).then_some(bound)
    }
}

fn is_sampled(loss: &PrivacyLoss) -> bool {
    match loss {
        PrivacyLoss::Subsampled { .. } | PrivacyLoss::WithoutReplacement { .. } => true,
        PrivacyLoss::Group { inner, .. } | PrivacyLoss::Threshold { inner, .. } => is_sampled(inner),
        PrivacyLoss::Composed { parts } => parts.iter().any(|part| is_sampled(&part.loss)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(text: &str) -> Account {
        Account::of(&text.parse().unwrap()).unwrap()
    }

    /// Two people, each in the sample with chance q: 0, 1 or 2 of them are in it. Integrated by the midpoint rule.
    fn two_people(rate: f64, sigma: f64, epsilon: f64) -> f64 {
        let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let chances = [(1.0 - rate).powi(2), 2.0 * rate * (1.0 - rate), rate * rate];
        let with = |x: f64| (0..3).map(|j| chances[j] * density(x - j as f64 / sigma)).sum::<f64>();
        let steps = 200_000;
        let width = 24.0 / f64::from(steps);
        let middle = |i: i32| -10.0 + (f64::from(i) + 0.5) * width;
        (0..steps).map(middle).map(|x| (with(x) - epsilon.exp() * density(x)).max(0.0) * width).sum()
    }

    #[test]
    fn a_group_on_a_sample_costs_at_least_what_two_people_do() {
        for (rate, sigma) in [(0.01, 1.0), (0.1, 2.0), (0.3, 0.8)] {
            let account = account(&format!("group(2, subsampled({rate}, gaussian(sigma={sigma})))"));
            for epsilon in [0.01, 0.1, 0.5, 2.0] {
                let bound = account.delta(&Rational::try_from(epsilon).unwrap()).unwrap().bounds.upper;
                let truth = two_people(rate, sigma, epsilon);
                assert!(
                    bound >= truth * (1.0 - 1e-6),
                    "q = {rate}, σ = {sigma}, ε = {epsilon}: {bound} < {truth}"
                );
            }
        }
    }

    /// Each of the two bounds is the better one somewhere, and the answer is never above either.
    #[test]
    fn the_smaller_of_two_bounds_counts() {
        let mut better = [false; 2];
        for (rate, epsilon) in
            [("0.01", "0.001"), ("0.01", "0.1"), ("0.1", "0.01"), ("0.5", "1"), ("0.9", "1"), ("0.99", "4")]
        {
            let loss = format!("subsampled({rate}, gaussian(sigma=1))");
            let group: PrivacyLoss = format!("group(2, {loss})").parse().unwrap();
            let epsilon: Rational = epsilon.parse().unwrap();
            let answer = Account::of(&group).unwrap().delta(&epsilon).unwrap().bounds.upper;
            let together: Rational = rate.parse().unwrap();
            let out = &Rational::one() - &together;
            let once = &Rational::one() - &out.square();
            let nothing = account(&format!("subsampled({once}, gaussian(sigma=1, sensitivity=2))"));
            let nothing = nothing.delta(&epsilon).unwrap().bounds.upper;
            let half = &epsilon / &Rational::from(2u32);
            let one = account(&loss).delta(&half).unwrap().bounds.upper;
            let chain = one * (half.to_f64().exp() + 1.0);
            assert!(answer <= nothing * (1.0 + 1e-9) && answer <= chain * (1.0 + 1e-9), "q = {rate}");
            better[usize::from(chain < nothing)] = true;
        }
        assert_eq!(better, [true; 2]);
    }

    #[test]
    fn epsilon_of_a_group_is_where_its_delta_falls_below() {
        let account = account("group(2, subsampled(0.01, gaussian(sigma=1))*100)");
        let delta: Rational = "1e-6".parse().unwrap();
        let epsilon = account.epsilon(&delta).unwrap().bounds.upper;
        let at =
            |factor: f64| account.delta(&Rational::try_from(epsilon * factor).unwrap()).unwrap().bounds.upper;
        assert!(at(1.0) <= 1e-6 && at(1.0 - 1e-6) > 1e-6, "ε = {epsilon}: {} {}", at(1.0), at(1.0 - 1e-6));
    }
}
