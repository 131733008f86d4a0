//! Private selection: the exponential mechanism for anything.
//!
//! **Definition.** A [`Utility`] gives each candidate a score on the data: a whole number of public steps that moves by at most Δ between neighbours. The
//! exponential mechanism picks a candidate with probability ∝ e^(ε·score/2Δ); permute-and-flip visits the candidates in random
//! order and takes the first whose coin, of bias e^(−ε·(best − score)/2Δ), succeeds.
//!
//! **Several.** The best k are picked one after the other, each from those that are left: k uses, each chosen after the answers before it.
//!
//! **Guarantee.** One use costs ε. k uses cost what k adaptively composed choices cost: kε, or for a δ > 0 the (ε, δ) of k mechanisms of bounded range, which is
//! less.
//!
//! **Utility.** With R candidates of which R_opt have the best score, a choice has a score below best − (2Δ/ε)(ln(R/R_opt) + t) with probability at most
//! e^(−t). For several, each pick is compared with the best that is left.
//!
//! **Exactness.** Scores are integers and Δ is a fraction, so probabilities are exact (`Selection` in the noise room).
//!
//! Beside it: [`BestOf`], the best of many private runs, and [`AboveThreshold`], the first questions whose answer is high.
//!
//! **References.** \[McSherry2007\], \[McKenna2020\], \[Durfee2019\], \[Dong2020\].

mod above_threshold;
mod best_of;

pub use above_threshold::{AboveThreshold, MAX_HITS, Sentinel};
pub use best_of::BestOf;

use demur_accounting::calibrate::{Setting, Target, Unknown, calibrate};
use demur_core::{Adjacency, Guarantee, PrivacyLoss, Release};
use demur_exact::Rational;
use demur_noise::{Entropy, Method, Selection, Words};

use crate::LearnError;
use crate::curator::exactly;
use crate::error::require;
use crate::progress::{Progress, Watch, tell};

/// Candidates are scored in groups of so many between two words of progress.
const GROUP: usize = 1 << 14;
/// The most candidates there can be.
pub const MAX_CANDIDATES: usize = 1 << 31;
/// The most that can be picked.
pub const MAX_PICKS: usize = 1 << 16;

/// How good a candidate is, as far as the data says.
///
/// What [`sensitivity`](Self::sensitivity) and [`adjacency`](Self::adjacency) promise is the caller's proof to give: no score may move by more than that between
/// neighbours, whatever the data. Clamp what could, and round before scores meet each other.
pub trait Utility {
    /// What is chosen.
    type Candidate;

    /// The score in whole steps; higher is better. It may be slow: it is asked for once per candidate.
    fn score(&self, candidate: &Self::Candidate) -> i64;

    /// How many steps one person moves a score, at most.
    fn sensitivity(&self) -> Rational;

    /// Which datasets are neighbours.
    fn adjacency(&self) -> Adjacency;
}

/// How many are chosen and what that costs, before a score is seen; see the module text.
///
/// ```
/// use std::ops::ControlFlow;
/// use demur_core::{Adjacency, Guarantee};
/// use demur_exact::Rational;
/// use demur_learn::select::{Plan, Utility};
/// use demur_noise::Entropy;
///
/// /// Which price sells to most: each person buys below what they would pay.
/// struct Demand(Vec<u32>);
/// impl Utility for Demand {
///     type Candidate = u32;
///     fn score(&self, price: &u32) -> i64 {
///         self.0.iter().filter(|&limit| limit >= price).count() as i64 * i64::from(*price)
///     }
///     fn sensitivity(&self) -> Rational { Rational::from(20u32) } // the highest price there is
///     fn adjacency(&self) -> Adjacency { Adjacency::AddRemove }
/// }
///
/// let guarantee = Guarantee::pure("1".parse()?);
/// let plan = Plan::one(Rational::from(20u32), Adjacency::AddRemove, guarantee.epsilon)?;
/// assert_eq!(plan.loss().to_string(), "exponential(1)");
/// // Charge `plan.loss()`; then, and only then, scores are computed.
/// let demand = Demand([3, 12, 12, 13, 19].repeat(1000));
/// let price = plan.run(&demand, 1..=20, &mut Entropy::from_os()?, &mut |_| ControlFlow::Continue(()))?;
/// assert_eq!(price.value(), &[12]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    sensitivity: Rational,
    adjacency: Adjacency,
    /// Of each pick.
    epsilon: Rational,
    picks: usize,
    method: Method,
}

impl Plan {
    /// One candidate, at a cost of ε.
    pub fn one(
        sensitivity: Rational,
        adjacency: Adjacency,
        epsilon: demur_core::Epsilon,
    ) -> Result<Self, LearnError> {
        Self::top(1, sensitivity, adjacency, Guarantee::pure(epsilon))
    }

    /// The best `picks` candidates, one after the other, at this cost together.
    pub fn top(
        picks: usize,
        sensitivity: Rational,
        adjacency: Adjacency,
        guarantee: Guarantee,
    ) -> Result<Self, LearnError> {
        require((1..=MAX_PICKS).contains(&picks), "learn.select.picks", || {
            format!("1 to {MAX_PICKS} candidates can be picked, but {picks} were asked for")
        })?;
        require(sensitivity.is_positive(), "learn.select.sensitivity", || {
            format!("the sensitivity of a score must be above 0, but it is {sensitivity}")
        })?;
        let whole = guarantee.epsilon.exact();
        require(whole.is_positive(), "learn.epsilon", || {
            "ε = 0 would need infinite noise; ask for more".into()
        })?;
        let mut epsilon = &whole / &Rational::from(picks as u64);
        if !guarantee.is_pure() && picks > 1 {
            let target = Target { epsilon: whole, delta: guarantee.delta.exact() };
            let setting = Setting {
                sensitivity: Rational::one(),
                steps: picks as u64,
                rate: Rational::one(),
                sigma: None,
            };
            let found = exactly(calibrate(Unknown::Exponential, &target, &setting)?.value)?;
            epsilon = epsilon.max(found);
        }
        Ok(Self { sensitivity, adjacency, epsilon, picks, method: Method::default() })
    }

    /// The same with another way to draw; [`loss`](Self::loss) names it.
    ///
    /// Several picks with a δ were calibrated for the exponential mechanism. Permute-and-flip composes worse: ask its loss.
    #[must_use]
    pub fn by(self, method: Method) -> Self {
        Self { method, ..self }
    }

    /// What must be charged before [`run`](Self::run) is called.
    pub fn loss(&self) -> PrivacyLoss {
        let epsilon = self.epsilon.clone();
        let one = match self.method {
            Method::Exponential => PrivacyLoss::Exponential { epsilon },
            Method::PermuteAndFlip => PrivacyLoss::PermuteAndFlip { epsilon },
        };
        one.repeat(self.picks as u64)
    }

    /// How far, in steps, any pick's score is below the best that was left, but for a chance of `beta`; with so many candidates of which `best` are best.
    ///
    /// ```
    /// # use demur_core::{Adjacency, Epsilon};
    /// # use demur_learn::select::Plan;
    /// let plan = Plan::one("1".parse()?, Adjacency::AddRemove, Epsilon::new(1.0)?)?;
    /// // 2·(ln(100/1) + ln 20)
    /// assert!((plan.error(0.05, 100, 1) - 15.2018).abs() < 1e-4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn error(&self, beta: f64, candidates: u64, best: u64) -> f64 {
        let scale = 2.0 * self.sensitivity.to_f64() / self.epsilon.to_f64();
        scale * ((candidates as f64 / best.max(1) as f64).ln() + (self.picks as f64 / beta).ln())
    }

    /// Scores all candidates and picks. Charge [`loss`](Self::loss) first: it stands whatever happens here.
    ///
    /// Candidates are public and may be made as they are asked for: they are gone through twice, and only scores are kept.
    pub fn run<U: Utility, C>(
        &self,
        utility: &U,
        candidates: C,
        entropy: &mut Entropy,
        watch: &mut Watch<'_>,
    ) -> Result<Release<Vec<U::Candidate>>, LearnError>
    where
        C: IntoIterator<Item = U::Candidate> + Clone,
    {
        require(
            utility.adjacency() == self.adjacency && utility.sensitivity() <= self.sensitivity,
            "learn.select.utility",
            || {
                format!(
                    "the plan is for scores that move by at most {} between {} neighbours, but these move by {} between {} \
                     neighbours",
                    self.sensitivity,
                    self.adjacency,
                    utility.sensitivity(),
                    utility.adjacency()
                )
            },
        )?;
        let mut scores = Vec::new();
        for candidate in candidates.clone() {
            scores.push(utility.score(&candidate));
            if scores.len().is_multiple_of(GROUP) {
                tell(watch, Progress { stage: "scoring", step: scores.len(), steps: None })?;
            }
        }
        let picked = self.pick(scores, entropy)?;
        let mut order: Vec<(usize, usize)> =
            picked.iter().copied().enumerate().map(|(rank, at)| (at, rank)).collect();
        order.sort_unstable();
        let mut chosen: Vec<(usize, U::Candidate)> = Vec::with_capacity(order.len());
        let mut order = order.into_iter().peekable();
        for (place, candidate) in candidates.into_iter().enumerate() {
            if let Some((_, rank)) = order.next_if(|&(at, _)| at == place) {
                chosen.push((rank, candidate));
            }
        }
        chosen.sort_by_key(|&(rank, _)| rank);
        Ok(Release::new(chosen.into_iter().map(|(_, candidate)| candidate).collect(), self.loss()))
    }

    /// The places of the picked scores, in the order they were picked.
    fn pick<W: Words>(&self, mut scores: Vec<i64>, words: &mut W) -> Result<Vec<usize>, LearnError> {
        let candidates = scores.len();
        require((self.picks..=MAX_CANDIDATES).contains(&candidates), "learn.select.candidates", || {
            format!(
                "to pick {} there must be {} to {MAX_CANDIDATES} candidates, but there are {candidates}",
                self.picks, self.picks
            )
        })?;
        let rate = &self.epsilon / &(&Rational::from(2u32) * &self.sensitivity);
        let mut places: Vec<usize> = (0..candidates).collect();
        let mut picked = Vec::with_capacity(self.picks);
        for _ in 0..self.picks {
            let selection = Selection::new(&scores, rate.clone())?;
            let chosen = match self.method {
                Method::Exponential => selection.exponential(words),
                Method::PermuteAndFlip => selection.permute_and_flip(words),
            };
            scores.swap_remove(chosen);
            picked.push(places.swap_remove(chosen));
        }
        Ok(picked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use demur_testkit::{FalseAlarm, Seeded, assert_fits};
    use std::ops::ControlFlow;

    struct Table(Vec<i64>, u32);

    impl Utility for Table {
        type Candidate = usize;
        fn score(&self, candidate: &usize) -> i64 {
            self.0[*candidate]
        }
        fn sensitivity(&self) -> Rational {
            Rational::from(self.1)
        }
        fn adjacency(&self) -> Adjacency {
            Adjacency::AddRemove
        }
    }

    fn plan(picks: usize, epsilon: &str) -> Plan {
        let guarantee = Guarantee::pure(epsilon.parse().unwrap());
        Plan::top(picks, Rational::from(2u32), Adjacency::AddRemove, guarantee).unwrap()
    }

    /// The law of an ordered pick of two, by the definition.
    fn law(scores: &[i64], epsilon_each: f64) -> Vec<(usize, usize, f64)> {
        let weight = |i: usize| (epsilon_each * scores[i] as f64 / 4.0).exp();
        let total: f64 = (0..scores.len()).map(weight).sum();
        let mut law = Vec::new();
        for i in 0..scores.len() {
            for j in (0..scores.len()).filter(|&j| j != i) {
                law.push((i, j, weight(i) / total * weight(j) / (total - weight(i))));
            }
        }
        law
    }

    /// False alarm 1e-9; 6 000 draws find a law that is off by 20 % on average almost surely.
    #[test]
    fn the_best_two_are_picked_by_the_law_of_the_definition() {
        let scores = [3, 0, 5, 4];
        let law = law(&scores, 0.75);
        let plan = plan(2, "1.5");
        let words = &mut Seeded::new(demur_testkit::seed(73));
        let draws: Vec<i128> = (0..6_000)
            .map(|_| {
                let picked = plan.pick(scores.to_vec(), words).unwrap();
                law.iter().position(|&(i, j, _)| [i, j] == picked[..]).unwrap() as i128
            })
            .collect();
        assert_fits(
            &draws,
            |k| usize::try_from(k).ok().and_then(|k| law.get(k)).map_or(0.0, |row| row.2),
            FalseAlarm(1e-9),
        );
    }

    /// The largest |ln| of a ratio between scores and any whose every score is Δ = 2 away.
    fn cost(here: &[i64], epsilon_each: f64) -> f64 {
        let mut most: f64 = 0.0;
        for change in 0..1u32 << here.len() {
            let moved = |(place, score): (usize, &i64)| score - 2 + 4 * i64::from(change >> place & 1);
            let there: Vec<i64> = here.iter().enumerate().map(moved).collect();
            for (a, b) in law(here, epsilon_each).iter().zip(law(&there, epsilon_each)) {
                most = most.max((a.2 / b.2).ln().abs());
            }
        }
        most
    }

    #[test]
    fn picking_two_costs_what_it_says() {
        let scores: [&[i64]; 3] = [&[3, 0, 5, 4], &[0; 6], &[-9, -9, 0, 0, 0, 0]];
        let most = scores.iter().map(|scores| cost(scores, 0.75)).fold(0.0, f64::max);
        assert!(most <= 1.5 + 1e-12 && most > 1.35, "{most}");
        assert!(cost(&[-9, -9, 0, 0, 0, 0], 1.5) > 2.5, "the whole ε for each pick costs more than ε");
    }

    #[test]
    fn a_delta_buys_more_than_adding_up() {
        let guarantee = Guarantee::new("1".parse().unwrap(), "1e-6".parse().unwrap());
        let plan = Plan::top(100, Rational::one(), Adjacency::AddRemove, guarantee).unwrap();
        assert!(plan.epsilon > Rational::new(2, 100));
        let account = demur_accounting::Account::of(&plan.loss()).unwrap();
        assert!(account.epsilon(&"1e-6".parse().unwrap()).unwrap().bounds.upper <= 1.0);
        let few = Plan::top(2, Rational::one(), Adjacency::AddRemove, guarantee).unwrap();
        assert!(few.epsilon >= Rational::new(1, 2));
    }

    #[test]
    fn candidates_come_back_in_the_order_they_were_picked() {
        let table = Table(vec![0, 900, 10, 5000, 300], 2);
        let entropy = &mut Entropy::from_os().unwrap();
        let watch: &mut Watch<'_> = &mut |_| ControlFlow::Continue(());
        let best = plan(3, "30").run(&table, 0..5, entropy, watch).unwrap();
        assert_eq!(best.value(), &[3, 1, 4]);
        assert_eq!(best.loss().to_string(), "exponential(10)*3");
        let flipped = plan(1, "30").by(Method::PermuteAndFlip).run(&table, 0..5, entropy, watch).unwrap();
        assert_eq!(
            (flipped.value().as_slice(), flipped.loss().to_string().as_str()),
            (&[3][..], "permute_and_flip(30)")
        );
    }

    #[test]
    fn nonsense_is_refused() {
        let entropy = &mut Entropy::from_os().unwrap();
        let watch: &mut Watch<'_> = &mut |_| ControlFlow::Continue(());
        let code = |plan: &Plan, table: &Table, entropy: &mut Entropy, watch: &mut Watch<'_>| {
            plan.run(table, 0..table.0.len(), entropy, watch).unwrap_err().code()
        };
        assert_eq!(code(&plan(1, "1"), &Table(vec![], 2), entropy, watch), "learn.select.candidates");
        assert_eq!(code(&plan(3, "1"), &Table(vec![1, 2], 2), entropy, watch), "learn.select.candidates");
        assert_eq!(code(&plan(1, "1"), &Table(vec![1, 2], 3), entropy, watch), "learn.select.utility");
        let pure = Guarantee::pure("1".parse().unwrap());
        let refused = |picks, sensitivity: &str, guarantee| {
            Plan::top(picks, sensitivity.parse().unwrap(), Adjacency::AddRemove, guarantee)
                .unwrap_err()
                .code()
        };
        assert_eq!(refused(0, "1", pure), "learn.select.picks");
        assert_eq!(refused(1, "0", pure), "learn.select.sensitivity");
        assert_eq!(refused(1, "1", Guarantee::pure(demur_core::Epsilon::ZERO)), "learn.epsilon");
    }
}
