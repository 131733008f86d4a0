//! From a [`PrivacyLoss`] to the laws it is made of.
//!
//! Composition is flattened, groups and samples are pushed down to single mechanisms, and equal ones are
//! counted together.
//!
//! **Groups.** A group of k people moves an answer k times as far: sensitivities of noise and of scores
//! are multiplied by k. Randomized answers are given by each person, so k of them are k answers. Anything
//! that is (ε, δ)-private is (kε, δ·(e^(kε) − 1)/(e^ε − 1))-private for the group, and ρ becomes k²ρ.
//!
//! **Groups in a sample,** `subsampled(q, group(k, …))`, are in it together or not at all: rate q, and k times as far.
//!
//! **Groups on a sample,** `group(k, subsampled(q, …))`: of k people a sample has some with probability q′ = 1 − (1 − q)^k, and
//! then at most all k. Where all k count at most k times as much, the loss is at most that of a
//! sample of rate q′ in which they appear together: N(kμ, 1) is carried to N(jμ, 1), and N(0, 1) to
//! itself, by X ↦ (j/k)·X + √(1 − j²/k²)·Z.

use std::collections::HashMap;

use demur_core::PrivacyLoss;
use demur_exact::Rational;

use super::mechanism::{LARGEST_FLAT, MOST_ATOMS, base, discrete_reach, many_steps};
use super::{Atom, Base, Direction, Flat, Law, Pieces, Sampling};
use crate::AccountingError;

/// A composition as laws, each with how often it was paid.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// In the direction in which a person is removed.
    pub(crate) laws: Vec<(Law, u64)>,
    /// Σρ of what is known only to be zero-concentrated.
    pub(crate) rho: Rational,
    /// What is known only by points of its Rényi curve, and how often.
    pub(crate) curves: Vec<(Vec<(Rational, Rational)>, u64)>,
    /// Whether every law is the worst there is, so that lower bounds mean something.
    pub(crate) tight: bool,
}

impl Terms {
    pub(crate) fn of(loss: &PrivacyLoss) -> Result<Self, AccountingError> {
        loss.check()?;
        let mut leaves = Leaves::default();
        leaves.add(loss, &Paid { count: 1, group: 1, together: 1, rate: Rational::one() })?;
        let uses: f64 = leaves.counts.values().map(|count| *count as f64).sum();
        let envelope = leaves.order.iter().any(|leaf| matches!(leaf.loss, PrivacyLoss::Exponential { .. }));
        if envelope && uses > 1.0 {
            // Each choice has a worst pair for every ε, but no choice is all of them.
            leaves.tight = Some(false);
        }
        let mut terms =
            Self { laws: vec![], rho: Rational::zero(), curves: vec![], tight: leaves.tight.unwrap_or(true) };
        // In one order, whichever they came in: then sums are the same to the last bit.
        leaves.order.sort_by_cached_key(|leaf| {
            (leaf.loss.to_string(), leaf.group, leaf.rate.clone(), leaf.fixed_size)
        });
        for leaf in leaves.order {
            let count = leaves.counts.get(&leaf).copied().unwrap_or(0);
            terms.add(&leaf, count)?;
        }
        terms.merge_leaks();
        Ok(terms)
    }

    /// A loss that is 0 or infinite, beside one other use that is not on a sample, is a part of that use: then there is a
    /// formula for both.
    fn merge_leaks(&mut self) {
        let leaks = |(law, _): &(Law, u64)| law.pieces().is_some_and(Pieces::only_leaks);
        let [first, second] = self.laws.as_slice() else { return };
        let (leak, other) = if leaks(first) { (first, second) } else { (second, first) };
        let (Some(leak), Some(pieces)) =
            (leak.0.pieces().filter(|_| leaks(leak) && leak.1 == 1), other.0.pieces())
        else {
            return;
        };
        if other.1 == 1 {
            self.laws = vec![(Law { base: Base::Pieces(pieces.with_leak(leak)), sampling: None }, 1)];
        }
    }

    fn add(&mut self, leaf: &Leaf, count: u64) -> Result<(), AccountingError> {
        let base = match &leaf.loss {
            // A sample never costs more than everybody.
            PrivacyLoss::ZeroConcentrated { rho } => {
                let group = Rational::from(leaf.group);
                self.rho = &self.rho + &(&(rho * &group.square()) * &Rational::from(count));
                return Ok(());
            }
            PrivacyLoss::Renyi { points } => {
                let points =
                    points.iter().map(|point| (point.order.clone(), point.epsilon.clone())).collect();
                self.curves.push((points, count));
                return Ok(());
            }
            loss => base(loss, leaf.group)?,
        };
        let rate = leaf.rate.to_f64();
        let direction = if leaf.fixed_size { Direction::Replace } else { Direction::Remove };
        let sampling = (rate < 1.0).then_some(Sampling { rate, direction });
        let law = Law { base, sampling };
        if !law.is_nothing() {
            self.laws.push((law, count));
        }
        Ok(())
    }

    /// Composed, no mechanism need have the laws of samples without replacement, which are worst for every ε by another pair. These terms then say nothing
    /// about what is paid at least; what is returned does: a mechanism that does the same with every sample without the person has Poisson's pair.
    pub(crate) fn take_floor(&mut self) -> Option<Self> {
        let mirrored = |(law, _): &(Law, u64)| law.is_mirrored();
        let alone = self.laws.len() == 1 && self.laws[0].1 == 1;
        if alone || !self.laws.iter().any(mirrored) {
            return None;
        }
        let tight = std::mem::replace(&mut self.tight, false);
        let known = self.laws.iter().all(|both| mirrored(both) || both.0.sampling.is_none());
        let removed = |(law, count): &(Law, u64)| {
            let rate = law.sampling.as_ref().map(|sampling| sampling.rate);
            let sampling = rate.map(|rate| Sampling { rate, direction: Direction::Remove });
            (Law { sampling, ..law.clone() }, *count)
        };
        (tight && known).then(|| Self {
            laws: self.laws.iter().map(removed).collect(),
            tight,
            ..self.clone()
        })
    }

    /// Whether both directions are the same.
    pub(crate) fn symmetric(&self) -> bool {
        self.laws.iter().all(|(law, _)| law.sampling.is_none() || law.is_mirrored())
    }

    /// The same with the person added instead of removed.
    pub(crate) fn reversed(&self) -> Self {
        let laws = self.laws.iter().map(|(law, count)| (law.reversed(), *count)).collect();
        Self { laws, ..self.clone() }
    }
}

impl Law {
    /// Whether the loss is always 0.
    fn is_nothing(&self) -> bool {
        let idle = self.sampling.as_ref().is_some_and(|sampling| sampling.rate == 0.0);
        idle || match &self.base {
            Base::Gaussian { mu_squared } => mu_squared.is_zero(),
            Base::Pieces(pieces) => {
                pieces.infinite == 0.0
                    && pieces.flats.iter().all(|flat| flat.high == flat.low)
                    && pieces.atoms.iter().all(|atom| atom.loss.is_zero())
            }
        }
    }
}

impl Pieces {
    /// Whether every finite loss is 0.
    fn only_leaks(&self) -> bool {
        self.flats.is_empty() && self.atoms.iter().all(|atom| atom.loss.is_zero())
    }

    /// This beside a loss that is 0 or infinite.
    fn with_leak(&self, leak: &Self) -> Self {
        let kept = 1.0 - leak.infinite;
        let atoms = self.atoms.iter().map(|atom| Atom {
            probability: atom.probability * kept,
            other: atom.other * kept,
            ..atom.clone()
        });
        let flats = self.flats.iter().map(|flat| Flat { density: flat.density * kept, ..flat.clone() });
        let infinite_at_most = match (&self.infinite_at_most, &leak.infinite_at_most) {
            (None, Some(leaked)) if self.infinite == 0.0 => Some(leaked.clone()),
            (Some(own), Some(leaked)) => Some(&(own + leaked) - &(own * leaked)),
            _ => None,
        };
        Self {
            atoms: atoms.collect(),
            flats: flats.collect(),
            infinite: self.infinite * kept + leak.infinite,
            infinite_at_most,
        }
    }
}

/// A single mechanism for a group of people, on a sample.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Leaf {
    loss: PrivacyLoss,
    group: u64,
    rate: Rational,
    /// Whether the sample is drawn without replacement.
    fixed_size: bool,
}

/// How often a loss is paid, for how many people, and how likely each is in the sample.
#[derive(Clone)]
struct Paid {
    count: u64,
    group: u64,
    /// How many are in the sample together or not at all, for each of the group.
    together: u64,
    rate: Rational,
}

impl Paid {
    fn on_sample(&self) -> bool {
        self.rate < Rational::one()
    }
}

#[derive(Default)]
struct Leaves {
    counts: HashMap<Leaf, u64>,
    order: Vec<Leaf>,
    tight: Option<bool>,
}

impl Leaves {
    fn add(&mut self, loss: &PrivacyLoss, paid: &Paid) -> Result<(), AccountingError> {
        match loss {
            PrivacyLoss::Composed { parts } => {
                if paid.on_sample() {
                    return self.shared_sample(loss, paid);
                }
                for part in parts {
                    let count = times(paid.count, part.count)?;
                    if count > 0 {
                        self.add(&part.loss, &Paid { count, ..paid.clone() })?;
                    }
                }
                Ok(())
            }
            PrivacyLoss::Threshold { delta, inner } => {
                let shown = PrivacyLoss::Approximate { epsilon: Rational::zero(), delta: delta.clone() };
                self.tight = Some(false);
                self.add(inner, paid)?;
                self.add(&shown, paid)
            }
            PrivacyLoss::Renyi { .. } if paid.group > 1 || paid.together > 1 => Err(AccountingError::new(
                "accounting.group",
                "a Rényi curve says nothing tight about groups; state the curve of the group itself",
            )),
            PrivacyLoss::WithoutReplacement { .. } => self.without_replacement(loss, paid),
            PrivacyLoss::Group { size, inner } if paid.on_sample() => {
                self.add(inner, &Paid { together: times(paid.together, *size)?, ..paid.clone() })
            }
            PrivacyLoss::Group { size, inner } => {
                self.add(inner, &Paid { group: times(paid.group, *size)?, ..paid.clone() })
            }
            PrivacyLoss::Subsampled { rate, inner } => {
                self.add(inner, &Paid { rate: &paid.rate * rate, ..paid.clone() })
            }
            PrivacyLoss::RandomizedResponse { .. } | PrivacyLoss::UnaryEncoding { .. }
                if !paid.on_sample() =>
            {
                let count = times(paid.count, paid.group)?;
                self.leaf(loss, Paid { count, group: 1, ..paid.clone() })
            }
            _ if paid.group > 1 && paid.on_sample() => {
                self.tight = Some(false);
                let group = times(paid.group, paid.together)?;
                let rate = sampled_together(&paid.rate, paid.group);
                self.leaf(loss, Paid { group, rate, ..paid.clone() })
            }
            PrivacyLoss::RandomizedResponse { .. } | PrivacyLoss::UnaryEncoding { .. }
                if paid.together > 1 =>
            {
                self.tight = Some(false);
                self.leaf(loss, Paid { group: paid.together, ..paid.clone() })
            }
            _ => self.leaf(loss, Paid { group: times(paid.group, paid.together)?, ..paid.clone() }),
        }
    }

    fn leaf(&mut self, loss: &PrivacyLoss, paid: Paid) -> Result<(), AccountingError> {
        let group = paid.group;
        let curve = matches!(loss, PrivacyLoss::ZeroConcentrated { .. } | PrivacyLoss::Renyi { .. });
        let widened = match loss {
            PrivacyLoss::DiscreteGaussian { dimensions, variance, .. } => {
                *dimensions > 1 || discrete_reach(variance) >= MOST_ATOMS as f64
            }
            PrivacyLoss::Laplace { scale, sensitivity }
            | PrivacyLoss::TruncatedLaplace { scale, sensitivity, .. } => {
                (&(sensitivity * &Rational::from(group)) / scale).to_f64() > LARGEST_FLAT
            }
            PrivacyLoss::DiscreteLaplace { sensitivity, .. } => {
                many_steps(&(sensitivity * &Rational::from(group)))
            }
            PrivacyLoss::TruncatedDiscreteLaplace { bound, .. } => many_steps(bound),
            PrivacyLoss::Exponential { epsilon } => {
                (epsilon * &Rational::from(group)).to_f64() > LARGEST_FLAT
            }
            PrivacyLoss::PermuteAndFlip { .. } => true,
            PrivacyLoss::Pure { .. } | PrivacyLoss::Approximate { .. } => group > 1,
            _ => false,
        };
        if widened || (curve && paid.on_sample()) {
            self.tight = Some(false);
        }
        self.count(Leaf { loss: loss.clone(), group, rate: paid.rate, fixed_size: false }, paid.count)
    }

    fn count(&mut self, leaf: Leaf, count: u64) -> Result<(), AccountingError> {
        match self.counts.get_mut(&leaf) {
            Some(known) => *known = known.checked_add(count).ok_or_else(too_many)?,
            None => {
                self.order.push(leaf.clone());
                self.counts.insert(leaf, count);
            }
        }
        Ok(())
    }

    fn without_replacement(&mut self, loss: &PrivacyLoss, paid: &Paid) -> Result<(), AccountingError> {
        let PrivacyLoss::WithoutReplacement { sample, population, inner } = loss else { return Ok(()) };
        let alone = paid.group == 1 && !paid.on_sample();
        let one = match all_gaussian(inner) {
            Some(l2_squared) => PrivacyLoss::Gaussian { variance: Rational::one(), l2_squared },
            None => inner.as_ref().clone(),
        };
        let nested = is_single(&one);
        if !(alone && nested) {
            return Err(AccountingError::new(
                "accounting.shared-sample",
                "a sample without replacement is accounted for around one mechanism, for one person, and in no other sample",
            ));
        }
        let share = &Rational::from(*sample) / &Rational::from(*population);
        self.count(Leaf { loss: one, group: 1, rate: share, fixed_size: true }, paid.count)
    }

    /// Several mechanisms on one sample: one mechanism, if they can be said as one.
    fn shared_sample(&mut self, loss: &PrivacyLoss, paid: &Paid) -> Result<(), AccountingError> {
        if let Some(mu_squared) = all_gaussian(loss) {
            let one = PrivacyLoss::Gaussian { variance: Rational::one(), l2_squared: mu_squared };
            return self.add(&one, paid);
        }
        if let Some(epsilon) = loss.pure_epsilon() {
            self.tight = Some(false);
            return self.add(&PrivacyLoss::Pure { epsilon }, paid);
        }
        Err(AccountingError::new(
            "accounting.shared-sample",
            "several mechanisms on one and the same sample can be accounted for when all are Gaussian or all are pure, \
             but these are neither; write a sample of its own for each",
        ))
    }
}

/// Whether a loss is one mechanism for one person on all data.
fn is_single(loss: &PrivacyLoss) -> bool {
    use PrivacyLoss::{Composed, Group, Renyi, Subsampled, Threshold, WithoutReplacement, ZeroConcentrated};
    !matches!(
        loss,
        Composed { .. }
            | Group { .. }
            | Renyi { .. }
            | Subsampled { .. }
            | Threshold { .. }
            | WithoutReplacement { .. }
            | ZeroConcentrated { .. }
    )
}

/// Σ Δ²/σ² when a composition consists of Gaussian noise only.
fn all_gaussian(loss: &PrivacyLoss) -> Option<Rational> {
    match loss {
        PrivacyLoss::Gaussian { variance, l2_squared } => Some(l2_squared / variance),
        PrivacyLoss::Composed { parts } => parts.iter().try_fold(Rational::zero(), |sum, part| {
            Some(&sum + &(&all_gaussian(&part.loss)? * &Rational::from(part.count)))
        }),
        _ => None,
    }
}

/// 1 − (1 − q)^k, rounded up to a double.
fn sampled_together(rate: &Rational, group: u64) -> Rational {
    let together = -libm::expm1(group as f64 * libm::log1p(-rate.to_f64_up()));
    Rational::try_from((together * (1.0 + 1e-14)).min(1.0)).unwrap_or_else(|_| Rational::one())
}

fn times(a: u64, b: u64) -> Result<u64, AccountingError> {
    a.checked_mul(b).filter(|&product| product <= 1 << 53).ok_or_else(too_many)
}

fn too_many() -> AccountingError {
    AccountingError::new(
        "accounting.count",
        "a loss may be paid at most 2^53 times, but these counts multiply to more",
    )
}
