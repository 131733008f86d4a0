//! [`Way`]: a composition in one direction, asked by one method.

mod inverted;

use demur_exact::Rational;

use crate::account::Question;
use crate::grid::Grid;
use crate::inversion::{Lattice, Sum};
use crate::lattice::{MOST_POINTS, Points};
use crate::law::{Base, Law, Terms, profile};
use crate::mixed::Mixed;
use crate::solve::least_epsilon;
use crate::sums::Few;
use crate::{AccountingError, Bounds, Method, gaussian};
use inverted::rough_epsilon;

/// The largest ε anybody is told.
const HIGHEST: f64 = 1e300;

/// A δ that is no further from the probability of an infinite loss is as good as that.
const SAME: f64 = 1e-12;

/// The largest μ² for which the formula is fast: it takes as many digits as e^(−μ²/2) has.
const LARGE_MU: f64 = 2500.0;

/// Whether a sampled Gaussian is too strong a signal for the formula.
fn is_large(law: &Law) -> bool {
    matches!(&law.base, Base::Gaussian { mu_squared } if mu_squared.to_f64() > LARGE_MU)
}

/// Neighbours in one direction: with the person removed, or added.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) terms: Terms,
    pub(crate) sum: Sum,
    points: Option<Points>,
    two_points: Option<Lattice>,
    /// Whether all sums can be listed, though they are on no lattice or on a very fine one.
    few: bool,
    /// Whether they are few uses of Gaussian noise on samples beside losses of finitely many values.
    mixed: bool,
}

impl Way {
    pub(crate) fn new(terms: Terms) -> Self {
        let mut sum = Sum::default();
        for (law, count) in &terms.laws {
            match law.gaussian() {
                Some(mu) => sum.mu_squared += mu.to_f64() * *count as f64,
                None => sum.terms.push((law.clone(), *count as f64)),
            }
        }
        let points = Points::of(&terms);
        let two_points = terms.two_points();
        let one_lattice = terms.laws.len() < 2 && points.is_some();
        let few = !one_lattice && Few::suits(&terms.laws);
        let mixed = Mixed::suits(&terms.laws);
        Self { terms, sum, points, two_points, few, mixed }
    }

    /// Refuses losses whose Rényi divergences are not computed.
    pub(crate) fn must_have_moments(&self) -> Result<(), AccountingError> {
        if !self.mirrored() {
            return Ok(());
        }
        Err(AccountingError::new(
            "accounting.no-moments",
            "losses in samples without replacement are known by their profiles; there is no Rényi divergence for them here",
        ))
    }

    /// Refuses losses of which only Rényi divergences are known.
    pub(crate) fn must_have_laws(&self) -> Result<(), AccountingError> {
        if self.terms.rho.is_zero() && self.terms.curves.is_empty() {
            return Ok(());
        }
        Err(AccountingError::new(
            "accounting.no-law",
            "some losses are known only by their Rényi divergences, which have no exact law; use renyi or zcdp",
        ))
    }

    /// The method that is exact and fastest, and why.
    pub(crate) fn choice(&self) -> (Method, &'static str) {
        if self.terms.rho > Rational::zero() || !self.terms.curves.is_empty() {
            return (Method::Renyi, "some losses are known only by their Rényi divergences");
        }
        let large = self.sum.mu_squared > LARGE_MU || self.single().is_some_and(is_large);
        if self.single().is_some() && !large {
            return (Method::Closed, "a single loss has a formula");
        }
        if self.sum.terms.is_empty() && !large {
            return (Method::Closed, "Gaussian noise composes to Gaussian noise");
        }
        if self.few && self.sum.mu_squared > 0.0 {
            return (Method::Inversion, "the moments of Gaussian noise fall fast");
        }
        if self.few && self.points.as_ref().is_none_or(|points| points.count > MOST_POINTS) {
            return (Method::Lattice, "the sums of these losses are few enough to add up one by one");
        }
        if self.mirrored() {
            return (Method::Grid, "losses in samples without replacement are known by their profiles");
        }
        match &self.points {
            Some(points) if points.count <= MOST_POINTS => {
                (Method::Lattice, "all losses are multiples of one step, few enough to add up one by one")
            }
            Some(_) => (Method::Lattice, "all losses are multiples of one step"),
            None if self.two_points.is_some() => {
                (Method::Lattice, "each loss has two values, so that sums are multiples of one step")
            }
            None => (Method::Inversion, "the moments of these losses can be inverted"),
        }
    }

    /// Whether no ε of this direction can exceed what is known already, for it has no larger loss.
    pub(crate) fn is_below(&self, question: Question<'_>, known: Bounds) -> bool {
        let by_laws = self.terms.rho.is_zero() && self.terms.curves.is_empty() && self.lost().upper == 0.0;
        let bounded = by_laws && self.top().is_some_and(|top| top <= known.lower);
        bounded && matches!(question, Question::Epsilon { .. })
    }

    fn mirrored(&self) -> bool {
        self.terms.laws.iter().any(|(law, _)| law.is_mirrored())
    }

    /// δ(ε), by a method that composes laws.
    pub(crate) fn delta(&self, method: Method, epsilon: &Rational) -> Result<Bounds, AccountingError> {
        let reached = || {
            self.top().is_some_and(|top| epsilon.to_f64_down() >= top)
                || self.exact_top().is_some_and(|top| *epsilon >= top)
        };
        let inside = if self.terms.laws.is_empty() || reached() {
            Bounds::new(0.0, 0.0)
        } else {
            match method {
                Method::Closed => return self.closed(epsilon),
                Method::Lattice => match self.table() {
                    Some(table) => table.delta(epsilon),
                    None if self.few => match self.few_delta(epsilon.to_f64()) {
                        Some(bounds) => bounds,
                        None => self.line_delta(epsilon.to_f64(), self.lattice().ok())?,
                    },
                    None => self.line_delta(epsilon.to_f64(), Some(self.lattice()?))?,
                },
                Method::Inversion => self.line_delta(epsilon.to_f64(), None)?,
                _ => self.grid_delta(epsilon)?,
            }
        };
        Ok(self.with_infinite(inside))
    }

    /// ε(δ), by a method that composes laws.
    pub(crate) fn epsilon(&self, method: Method, delta: &Rational) -> Result<Bounds, AccountingError> {
        if self.terms.laws.is_empty() {
            return Ok(Bounds::new(0.0, 0.0));
        }
        let lost = self.lost();
        if lost.upper >= 1.0 {
            return self.epsilon_of_nothing(delta);
        }
        let within = &(delta - &exact(lost.upper)) / &exact((1.0 - lost.upper).max(f64::MIN_POSITIVE));
        let at_most = &(delta - &exact(lost.lower)) / &exact((1.0 - lost.lower).max(f64::MIN_POSITIVE));
        if within.to_f64() <= SAME * delta.to_f64() {
            if let Some(bounds) = self.epsilon_of_own(delta) {
                return Ok(bounds);
            }
            if within <= Rational::zero() {
                return self.epsilon_of_nothing(delta);
            }
        }
        if method == Method::Closed {
            self.must_have_formula()?;
        }
        let highest = self.top().unwrap_or(HIGHEST);
        let profile = |tried: &Rational| self.delta(method, tried).unwrap_or(Bounds::new(0.0, 1.0));
        let found = match method {
            Method::Closed => {
                let guess = self.guess(delta);
                let gaussian = self.gaussian().and_then(|mu| gaussian::epsilon(&mu, delta, guess));
                gaussian.or_else(|| least_epsilon(profile, delta, guess, highest))
            }
            Method::Lattice => match self.table() {
                Some(table) => {
                    let profile = |tried: &Rational| self.with_infinite(table.delta(tried));
                    least_epsilon(profile, delta, self.guess(delta), highest)
                }
                None if self.few => match self.few_epsilon(delta, &within) {
                    Some(bounds) => Some(bounds),
                    None => Some(self.line_epsilon(delta, [&within, &at_most], self.lattice().ok())?),
                },
                None => Some(self.line_epsilon(delta, [&within, &at_most], Some(self.lattice()?))?),
            },
            Method::Inversion => Some(self.line_epsilon(delta, [&within, &at_most], None)?),
            _ => Some(self.grid_epsilon(&within, delta)?),
        };
        let bounds = found.unwrap_or(Bounds::new(0.0, self.top().unwrap_or(f64::INFINITY)));
        Ok(match self.top() {
            Some(top) => Bounds::new(bounds.lower.min(top), bounds.upper.min(top)),
            None => bounds,
        })
    }

    /// ε(δ) when δ is the probability of an infinite loss to twelve digits, and not below it: the largest finite loss.
    ///
    /// δ(ε) is at least that probability and p·(1 − e^(ε − top)), for p the probability of the largest loss. So ε is at
    /// least top − 2(δ − P[L = ∞])/p where that is above top − ½.
    fn epsilon_of_own(&self, delta: &Rational) -> Option<Bounds> {
        let (top, law) = (self.top()?, self.single()?);
        let pieces = law.pieces()?;
        if pieces.infinite_at_most.as_ref()? > delta {
            return None;
        }
        let most = pieces.atoms.iter().max_by(|a, b| a.loss.cmp(&b.loss))?;
        let spread = 4.0 * SAME * delta.to_f64() / most.probability + 1e-13 * top;
        Some(Bounds::new(if spread < 0.5 { (top - spread).max(0.0) } else { 0.0 }, top))
    }

    /// ε(δ) when δ is no more than the probability of an infinite loss.
    pub(crate) fn epsilon_of_nothing(&self, delta: &Rational) -> Result<Bounds, AccountingError> {
        let by_laws = self.must_have_laws().is_ok() && self.lost().upper == 0.0;
        match self.top() {
            Some(top) if by_laws => Ok(Bounds::new(top * (1.0 - 3e-14), top)),
            _ => Err(AccountingError::new(
                "accounting.infinite",
                format!(
                    "no ε is large enough for δ = {delta}: the loss exceeds every bound with a probability above that; \
                     ask for a larger δ"
                ),
            )),
        }
    }

    /// The only law, when it was paid once.
    pub(crate) fn single(&self) -> Option<&Law> {
        match self.terms.laws.as_slice() {
            [(law, 1)] => Some(law),
            _ => None,
        }
    }

    fn closed(&self, epsilon: &Rational) -> Result<Bounds, AccountingError> {
        if let Some(law) = self.single() {
            return Ok(profile(law, epsilon));
        }
        self.must_have_formula()?;
        let mu_squared = self.gaussian().unwrap_or_else(Rational::zero);
        Ok(profile(&Law { base: Base::Gaussian { mu_squared }, sampling: None }, epsilon))
    }

    /// Σμ² when all losses are Gaussian noise.
    fn gaussian(&self) -> Option<Rational> {
        let each = |(law, count): &(Law, u64)| Some(law.gaussian()? * &Rational::from(*count));
        self.terms.laws.iter().map(each).try_fold(Rational::zero(), |sum, part| Some(&sum + &part?))
    }

    /// Refuses compositions of several losses that are not all Gaussian noise.
    fn must_have_formula(&self) -> Result<(), AccountingError> {
        if self.single().is_some() || self.sum.terms.is_empty() {
            return Ok(());
        }
        Err(AccountingError::new(
            "accounting.no-formula",
            "there is a formula for one loss, or for Gaussian noise alone, but this is a composition of others",
        ))
    }

    pub(crate) fn table(&self) -> Option<crate::lattice::Table> {
        let points = self.points.as_ref().filter(|points| points.count <= MOST_POINTS)?;
        points.table(&self.terms)
    }

    fn lattice(&self) -> Result<Lattice, AccountingError> {
        self.points.as_ref().map(Points::lattice).or(self.two_points).ok_or_else(|| {
            AccountingError::new("accounting.no-lattice", "these losses are not all multiples of one step")
        })
    }

    /// δ(ε) from a list of all sums, longer where what was left out would be seen.
    fn few_delta(&self, epsilon: f64) -> Option<Bounds> {
        let mut floor = 1e-30;
        loop {
            let few = Few::new(&self.terms.laws, floor)?;
            let found = few.delta(epsilon);
            let seen = 1e-13 * (found.upper - few.left_out());
            if few.left_out() <= seen || floor < 1e-280 {
                return Some(found);
            }
            floor = (floor * 1e-30).min(1e-4 * seen.max(f64::MIN_POSITIVE));
        }
    }

    /// ε(δ) from a list of all sums.
    fn few_epsilon(&self, delta: &Rational, within: &Rational) -> Option<Bounds> {
        let few = Few::new(&self.terms.laws, 1e-15 * within.to_f64_down())?;
        let profile = |tried: &Rational| self.below_top(tried, || few.delta(tried.to_f64()));
        least_epsilon(profile, delta, self.guess(delta), self.top().unwrap_or(HIGHEST))
    }

    fn grid_delta(&self, epsilon: &Rational) -> Result<Bounds, AccountingError> {
        let epsilon = epsilon.to_f64_down();
        let saddle = self.sum.saddle_for_epsilon(epsilon);
        let (tilt, log_delta) = saddle.or(self.top().map(|_| (f64::INFINITY, -30.0))).ok_or_else(unproven)?;
        let tilt = tilt.min(self.highest_tilt());
        let grid = Grid::new(&self.sum, tilt, log_delta, self.terms.tight).ok_or_else(unproven)?;
        Ok(grid.delta(epsilon))
    }

    fn grid_epsilon(&self, within: &Rational, delta: &Rational) -> Result<Bounds, AccountingError> {
        let log_delta = within.to_f64_down().max(f64::MIN_POSITIVE).ln();
        let saddle = self.sum.saddle_for_delta(log_delta);
        let (tilt, guess) = saddle.or(self.top().map(|top| (f64::INFINITY, top))).ok_or_else(unproven)?;
        let tilt = tilt.min(self.highest_tilt());
        let grid = Grid::new(&self.sum, tilt, log_delta, self.terms.tight).ok_or_else(unproven)?;
        let highest = self.top().unwrap_or(HIGHEST);
        let solve = |one_sided: &dyn Fn(f64) -> f64, guess: f64| {
            let profile = |tried: &Rational| {
                let delta = one_sided(tried.to_f64());
                self.with_infinite(Bounds::new(delta, delta))
            };
            least_epsilon(profile, delta, guess.max(1e-9), highest)
        };
        let upper = solve(&|epsilon| grid.delta_up(epsilon), guess);
        let upper = upper.map_or(self.top().unwrap_or(f64::INFINITY), |found| found.upper);
        if !self.terms.tight {
            return Ok(Bounds::new(0.0, upper));
        }
        let lower = solve(&|epsilon| grid.delta_down(epsilon), upper).map_or(0.0, |found| found.lower);
        Ok(Bounds::new(lower.min(upper), upper))
    }

    /// Where losses end, a tilt beyond this only makes the last one likelier.
    fn highest_tilt(&self) -> f64 {
        let each = self.terms.laws.iter().map(|(law, _)| law.highest_tilt(60.0));
        each.collect::<Option<Vec<_>>>()
            .map_or(f64::INFINITY, |tilts| tilts.into_iter().fold(f64::INFINITY, f64::min))
    }

    /// A first guess of ε(δ), good or bad.
    fn guess(&self, delta: &Rational) -> f64 {
        let log_delta = delta.to_f64().max(f64::MIN_POSITIVE).ln();
        let top = self.top().unwrap_or(f64::INFINITY);
        if self.sum.terms.is_empty() {
            let line = self.sum.line_for_delta(log_delta, None);
            if let Some(found) = line.and_then(|line| line.epsilon(log_delta.exp(), log_delta.exp())) {
                return found.upper;
            }
        }
        if let Some(rough) = self.single().and_then(|law| rough_epsilon(law, log_delta.exp())) {
            return rough;
        }
        let (mean, variance) = self.sum.mean_and_variance();
        (mean + (-2.0 * log_delta * variance).sqrt()).min(top).max(1e-9)
    }

    /// The largest loss, rounded up; `None` when there is none.
    pub(crate) fn top(&self) -> Option<f64> {
        let each = self.terms.laws.iter().map(|(law, count)| Some(law.top()? * *count as f64));
        each.sum::<Option<f64>>().map(|top| top * (1.0 + 1e-14))
    }

    /// The largest loss as a fraction, where it is one: no law is sampled and the largest loss of each is an atom.
    pub(crate) fn exact_top(&self) -> Option<Rational> {
        self.terms.laws.iter().try_fold(Rational::zero(), |sum, (law, count)| {
            let pieces = law.pieces()?;
            let top = pieces.atoms.iter().map(|atom| &atom.loss).max()?;
            let reaches = pieces.flats.iter().all(|flat| flat.high <= top.to_f64_up());
            reaches.then(|| &sum + &(top * &Rational::from(*count)))
        })
    }

    /// The probability that some loss is infinite.
    pub(crate) fn lost(&self) -> Bounds {
        let log_kept: f64 =
            self.terms.laws.iter().map(|(law, count)| *count as f64 * libm::log1p(-law.infinite())).sum();
        let lost = -libm::expm1(log_kept);
        Bounds::new(lost * (1.0 - 1e-14), (lost * (1.0 + 1e-14)).min(1.0))
    }

    /// δ of everything from that of finite losses, which is 0 from the largest of them on.
    fn below_top(&self, epsilon: &Rational, inside: impl FnOnce() -> Bounds) -> Bounds {
        let beyond = self.top().is_some_and(|top| epsilon.to_f64_down() >= top);
        self.with_infinite(if beyond { Bounds::new(0.0, 0.0) } else { inside() })
    }

    /// δ of everything, from that of finite losses.
    pub(crate) fn with_infinite(&self, inside: Bounds) -> Bounds {
        let lost = self.lost();
        if lost.upper == 0.0 {
            return inside;
        }
        let lower = lost.lower + (1.0 - lost.upper) * inside.lower * (1.0 - 1e-15);
        let upper = (lost.upper + (1.0 - lost.lower) * inside.upper) * (1.0 + 1e-15);
        Bounds::new(lower, upper.min(1.0))
    }
}

impl Law {
    /// About the tilt c from which on e^(cL) is the largest loss's, by so many powers of e; `None` where there is no largest.
    ///
    /// A loss with Gaussian tails up to some end, of probability p, has its mean there when c·L = 2·ln(1/p).
    pub(crate) fn highest_tilt(&self, powers: f64) -> Option<f64> {
        let top = self.top()?;
        let last = self.atoms().and_then(|atoms| atoms.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)));
        let rare =
            last.filter(|(loss, _)| *loss >= top * (1.0 - 1e-9)).map_or(1.0, |(_, probability)| probability);
        Some((powers - 2.0 * rare.ln()) / top)
    }

    /// The largest finite loss.
    pub(crate) fn top(&self) -> Option<f64> {
        let Base::Pieces(pieces) = &self.base else {
            let add = self
                .reversed()
                .sampling
                .is_some_and(|sampling| sampling.direction == crate::law::Direction::Remove);
            return self.sampling.as_ref().filter(|_| add).map(|sampling| -libm::log1p(-sampling.rate));
        };
        let atoms = pieces.atoms.iter().map(|atom| atom.loss.to_f64());
        let flats = pieces.flats.iter().flat_map(|flat| [flat.low, flat.high]);
        let sampled = |loss: f64| self.sampling.as_ref().map_or(loss, |sampling| sampling.loss(loss));
        let vanishing = self.sampling.as_ref().filter(|_| pieces.infinite > 0.0).map(|s| s.vanishing(1.0).0);
        Some(atoms.chain(flats).map(sampled).chain(vanishing).fold(0.0, f64::max))
    }
}

pub(crate) fn unproven() -> AccountingError {
    AccountingError::new(
        "accounting.unproven",
        "this method can prove no bound for these losses; leave the choice of the method to demur",
    )
}

fn exact(value: f64) -> Rational {
    Rational::try_from(value).unwrap_or_else(|_| Rational::zero())
}
