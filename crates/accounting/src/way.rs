//! [`Way`]: a composition in one direction, asked by one method.

use demur_exact::Rational;

use crate::account::Question;
use crate::bent::Bent;
use crate::grid::Grid;
use crate::inversion::{Lattice, Sum};
use crate::lattice::{MOST_POINTS, Points};
use crate::law::{Base, Law, Terms, profile};
use crate::solve::least_epsilon;
use crate::split::Split;
use crate::{AccountingError, Bounds, Method, gaussian};

/// The largest ε anybody is told.
const HIGHEST: f64 = 1e300;

/// A δ that is no further from the probability of an infinite loss is as good as that.
const SAME: f64 = 1e-12;

/// The relative width with which a path that bends is good enough.
const NARROW: f64 = 1e-10;

/// How near the ε a path was made for must be to the one it finds.
const NEAR: f64 = 0.02;

/// Up to so many uses on samples the path that bends is faster than the straight one.
const FEW: f64 = 64.0;

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
        Self { terms, sum, points, two_points }
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

    fn line_delta(&self, epsilon: f64, lattice: Option<Lattice>) -> Result<Bounds, AccountingError> {
        if self.mirrored() {
            return Err(unproven());
        }
        if self.few_with_flats(lattice) {
            let saddle = self.sum.saddle_for_epsilon(epsilon).map(|(c, log_delta)| (c, epsilon, log_delta));
            if let (Some(split), Ok(exact)) = (self.split(saddle), Rational::try_from(epsilon)) {
                return Ok(split.delta(&exact));
            }
        }
        let line = || self.sum.line_for_epsilon(epsilon, lattice).map(|line| line.delta(epsilon));
        let bent = || self.bent_delta(epsilon);
        let found = self.either(bent, line);
        found.ok_or_else(unproven)
    }

    /// Whether the atoms should be taken apart: their moments do not fall.
    fn few_with_flats(&self, lattice: Option<Lattice>) -> bool {
        let flat = |law: &Law| law.pieces().is_some_and(|pieces| !pieces.flats.is_empty());
        let atoms = |law: &Law| {
            law.pieces().map_or(0.0, |pieces| pieces.atoms.iter().map(|atom| atom.probability).sum())
        };
        let log_heavy: f64 = self.sum.terms.iter().map(|(law, count)| count * f64::ln(atoms(law))).sum();
        lattice.is_none()
            && Split::suits(&self.sum)
            && self.sum.terms.iter().any(|(law, _)| flat(law))
            && (self.sum.uses() < 200.0 || log_heavy > -40.0)
    }

    /// The composition with its atoms apart.
    fn split(&self, saddle: Option<(f64, f64, f64)>) -> Option<Split> {
        // Near the largest loss there is no saddle: any tilt of the right size will do.
        let top = self.top()?;
        let highest = self.highest_tilt() / 3.0;
        let saddle = saddle.filter(|saddle| saddle.0 < highest).unwrap_or((highest, top, -20.0));
        Split::new(&self.terms, &self.sum, saddle)
    }

    /// `delta` lies between `within` and `at_most` given that the loss is finite.
    fn line_epsilon(
        &self,
        delta: &Rational,
        [within, at_most]: [&Rational; 2],
        lattice: Option<Lattice>,
    ) -> Result<Bounds, AccountingError> {
        if self.mirrored() {
            return Err(unproven());
        }
        let log_delta = within.to_f64_down().max(f64::MIN_POSITIVE).ln();
        if self.few_with_flats(lattice) {
            let saddle = self.sum.saddle_for_delta(log_delta);
            let highest = self.top().unwrap_or(HIGHEST);
            let guess = saddle.map_or(highest, |saddle| saddle.1).max(1e-9);
            if let Some(split) = self.split(saddle.map(|(c, epsilon)| (c, epsilon, log_delta))) {
                let profile = |tried: &Rational| self.with_infinite(split.delta(tried));
                return least_epsilon(profile, delta, guess, highest).ok_or_else(unproven);
            }
        }
        let bent = || self.bent_epsilon(delta, within);
        let line = || {
            let line = self.sum.line_for_delta(log_delta, lattice)?;
            if lattice.is_some() {
                // The profile has a corner at every point of the lattice, where tangents lead astray.
                let profile = |tried: &Rational| self.with_infinite(line.delta(tried.to_f64()));
                return least_epsilon(profile, delta, line.centre(), self.top().unwrap_or(HIGHEST));
            }
            line.epsilon(within.to_f64_down(), at_most.to_f64_up() * (1.0 + 1e-15))
        };
        let found = self.either(bent, line);
        found.ok_or_else(unproven)
    }

    /// Along the straight line or a path that bends, the faster one first, and the other where that is not narrow.
    fn either(&self, bent: impl Fn() -> Option<Bounds>, line: impl Fn() -> Option<Bounds>) -> Option<Bounds> {
        let few = self.sum.uses() <= FEW;
        let first = if few { bent() } else { line() };
        match first {
            Some(first) if first.relative_width() < NARROW || first.upper == 0.0 => Some(first),
            Some(first) => {
                let second = if few { line() } else { bent() };
                Some(second.map_or(first, |second| first.and(second)))
            }
            None => {
                if few {
                    line()
                } else {
                    bent()
                }
            }
        }
    }

    /// δ(ε) along a path that bends; once more where its size was guessed badly.
    fn bent_delta(&self, epsilon: f64) -> Option<Bounds> {
        let at = |log_delta: Option<f64>| Some(Bent::new(&self.sum, epsilon, log_delta)?.delta(epsilon));
        let found = at(None)?;
        if found.relative_width() < NARROW || found.upper == 0.0 {
            return Some(found);
        }
        Some(at(Some(found.upper.ln())).map_or(found, |again| found.and(again)))
    }

    /// ε(δ) along a path that bends, made anew where it is found to be for another ε.
    fn bent_epsilon(&self, delta: &Rational, within: &Rational) -> Option<Bounds> {
        let log_delta = within.to_f64_down().max(f64::MIN_POSITIVE).ln();
        if Bent::most(&self.sum)? <= within.to_f64_down() {
            return Some(Bounds::new(0.0, 0.0));
        }
        let highest = self.top().unwrap_or(HIGHEST);
        let mut guess = Bent::guess(&self.sum, log_delta, self.largest_alone(log_delta)?)?;
        let mut found: Option<Bounds> = None;
        for _ in 0..4 {
            let Some(bent) = Bent::new(&self.sum, guess, Some(log_delta)) else { break };
            let about = bent.epsilon(log_delta.exp(), highest);
            let profile = |tried: &Rational| self.with_infinite(bent.delta(tried.to_f64()));
            let now = least_epsilon(profile, delta, about.max(1e-12), highest)?;
            let both = found.map_or(now, |before| before.and(now));
            found = Some(both);
            if both.relative_width() < NARROW || (about / guess - 1.0).abs() < NEAR {
                break;
            }
            guess = about;
        }
        found
    }

    /// About ε(δ) when a single loss makes the sum large: δ(ε) ≈ Σ nᵢδᵢ(ε).
    fn largest_alone(&self, log_delta: f64) -> Option<f64> {
        let each = |(law, count): &(Law, f64)| rough_epsilon(law, log_delta.exp() / count);
        self.sum
            .terms
            .iter()
            .map(each)
            .collect::<Option<Vec<_>>>()
            .map(|all| all.into_iter().fold(0.0, f64::max))
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
        let tops = self.terms.laws.iter().map(|(law, _)| law.top());
        tops.collect::<Option<Vec<_>>>()
            .map_or(f64::INFINITY, |tops| 60.0 / tops.into_iter().fold(0.0, f64::max))
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

/// ε(δ) of a single Gaussian on a sample, to a few digits.
fn rough_epsilon(law: &Law, delta: f64) -> Option<f64> {
    let Base::Gaussian { mu_squared } = &law.base else { return None };
    let (mu, sampling) = (mu_squared.to_f64().sqrt(), law.sampling.as_ref()?);
    let tail = |x: f64| 0.5 * libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2);
    let inner =
        |epsilon: f64| tail(epsilon / mu - mu / 2.0) - libm::exp(epsilon) * tail(epsilon / mu + mu / 2.0);
    let outer = |epsilon: f64| {
        let rise = libm::expm1(epsilon);
        match sampling.direction {
            crate::law::Direction::Remove | crate::law::Direction::Replace => {
                sampling.rate * inner(libm::log1p(rise / sampling.rate))
            }
            crate::law::Direction::Add => {
                let beta = sampling.rate - (1.0 - sampling.rate) * rise;
                if beta > 0.0 { beta * inner((sampling.rate / beta).ln() + epsilon) } else { 0.0 }
            }
        }
    };
    let (mut low, mut high) = (0.0, 1.0);
    while outer(high) > delta {
        high *= 2.0;
    }
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if outer(middle) > delta { low = middle } else { high = middle }
    }
    Some(high)
}

fn exact(value: f64) -> Rational {
    Rational::try_from(value).unwrap_or_else(|_| Rational::zero())
}
