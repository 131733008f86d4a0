//! A [`Way`] asked by inversion: along a straight line, along a path that bends, or with its atoms apart.

use demur_exact::Rational;

use super::{HIGHEST, Way, unproven};
use crate::bent::{Bent, Digits};
use crate::haze::Haze;
use crate::inversion::Lattice;
use crate::law::{Base, Direction, Law};
use crate::mixed::Mixed;
use crate::solve::least_epsilon;
use crate::split::Split;
use crate::sums::Few;
use crate::{AccountingError, Bounds};

/// The relative width with which a path that bends is good enough.
const NARROW: f64 = 1e-10;

/// The relative width from which on more digits are worth their time.
const CAREFUL: f64 = 1e-9;

/// How near the ε a path was made for must be to the one it finds.
const NEAR: f64 = 0.02;

/// What a short list may leave out, as a share of δ.
const SHORT: f64 = 1e-10;

/// Up to so many uses on samples the path that bends is faster than the straight one.
const FEW: f64 = 64.0;

impl Way {
    pub(super) fn line_delta(
        &self,
        epsilon: f64,
        lattice: Option<Lattice>,
    ) -> Result<Bounds, AccountingError> {
        if self.mirrored() {
            return Err(unproven());
        }
        let line = || self.sum.line_for_epsilon(epsilon, lattice).map(|line| line.delta(epsilon));
        if self.few_with_flats(lattice) {
            if let Some(found) = self.quick(line) {
                return Ok(found);
            }
            let saddle = self.sum.saddle_for_epsilon(epsilon).map(|(c, log_delta)| (c, epsilon, log_delta));
            if let (Some(split), Ok(exact)) = (self.split(saddle), Rational::try_from(epsilon)) {
                return Ok(split.delta(&exact));
            }
        }
        let bent = || if self.mixed { self.mixed_delta(epsilon) } else { self.bent_delta(epsilon) };
        let found = self.or_listed(self.either(bent, line), || self.few_delta(epsilon));
        let hazed = || self.short_delta(epsilon).or_else(|| Haze::delta_at(&self.sum, epsilon));
        self.or_hazed(found, lattice, hazed).ok_or_else(unproven)
    }

    /// Whether the atoms should be taken apart: their moments do not fall.
    fn few_with_flats(&self, lattice: Option<Lattice>) -> bool {
        let flat = |law: &Law| matches!(&law.base, Base::Pieces(pieces) if !pieces.flats.is_empty());
        let atoms = |law: &Law| law.atoms().map_or(0.0, |atoms| atoms.iter().map(|atom| atom.1).sum());
        let suits =
            lattice.is_none() && Split::suits(&self.sum) && self.sum.terms.iter().any(|(law, _)| flat(law));
        let log_heavy = || self.sum.terms.iter().map(|(law, count)| count * f64::ln(atoms(law))).sum::<f64>();
        suits && (self.sum.uses() < 200.0 || log_heavy() > -40.0)
    }

    /// On samples the straight line is much faster, where it is narrow.
    fn quick(&self, line: impl Fn() -> Option<Bounds>) -> Option<Bounds> {
        let sampled = self.sum.terms.iter().any(|(law, _)| law.sampling.is_some());
        sampled.then(line).flatten().filter(|found| found.relative_width() < NARROW)
    }

    /// The composition with its atoms apart.
    fn split(&self, saddle: Option<(f64, f64, f64)>) -> Option<Split> {
        // Near the largest loss there is no saddle: any tilt of the right size will do.
        let top = self.top()?;
        let highest = self.highest_tilt() / 3.0;
        let sound = |tilt: f64| tilt < highest || !self.sum.is_all_at_the_top(tilt);
        let saddle = saddle.filter(|saddle| sound(saddle.0)).unwrap_or((highest, top, -20.0));
        Split::new(&self.terms, &self.sum, saddle, top)
    }

    /// `delta` lies between `within` and `at_most` given that the loss is finite.
    pub(super) fn line_epsilon(
        &self,
        delta: &Rational,
        [within, at_most]: [&Rational; 2],
        lattice: Option<Lattice>,
    ) -> Result<Bounds, AccountingError> {
        if self.mirrored() {
            return Err(unproven());
        }
        let log_delta = within.to_f64_down().max(f64::MIN_POSITIVE).ln();
        let line = || {
            let line = self.sum.line_for_delta(log_delta, lattice)?;
            if lattice.is_some() {
                // The profile has a corner at every point of the lattice, where tangents lead astray.
                let profile = |tried: &Rational| self.with_infinite(line.delta(tried.to_f64()));
                return least_epsilon(profile, delta, line.centre(), self.top().unwrap_or(HIGHEST));
            }
            line.epsilon(within.to_f64_down(), at_most.to_f64_up() * (1.0 + 1e-15))
        };
        if self.few_with_flats(lattice) {
            if let Some(found) = self.quick(line) {
                return Ok(found);
            }
            let saddle = self.sum.saddle_for_delta(log_delta);
            let highest = self.top().unwrap_or(HIGHEST);
            let guess = saddle.map_or(highest, |saddle| saddle.1).max(1e-9);
            if let Some(split) = self.split(saddle.map(|(c, epsilon)| (c, epsilon, log_delta))) {
                let profile = |tried: &Rational| self.below_top(tried, || split.delta(tried));
                return least_epsilon(profile, delta, guess, highest).ok_or_else(unproven);
            }
        }
        let bent =
            || if self.mixed { self.mixed_epsilon(delta, within) } else { self.bent_epsilon(delta, within) };
        let found = self.or_listed(self.either(bent, line), || self.few_epsilon(delta, within));
        let hazed = || {
            let (at_least, at_most) = (within.to_f64_down(), at_most.to_f64_up() * (1.0 + 1e-15));
            self.short_epsilon(delta, within).or_else(|| Haze::epsilon_at(&self.sum, at_least, at_most))
        };
        self.or_hazed(found, lattice, hazed).ok_or_else(unproven)
    }

    /// δ(ε) from a list that is short because it leaves out what no nine digits would show.
    fn short_delta(&self, epsilon: f64) -> Option<Bounds> {
        let mut floor = 1e-16;
        while self.sum.uses() <= FEW && floor > 1e-100 {
            let few = Few::new(&self.terms.laws, floor)?;
            let found = few.delta(epsilon);
            if few.left_out() <= SHORT * found.lower {
                return Some(found);
            }
            floor = (1e-6 * floor).min(SHORT / 4.0 * found.lower).max(1e-12 * floor);
        }
        None
    }

    /// The same for ε(δ).
    fn short_epsilon(&self, delta: &Rational, within: &Rational) -> Option<Bounds> {
        if self.sum.uses() > FEW {
            return None;
        }
        let few = Few::new(&self.terms.laws, SHORT * within.to_f64_down())?;
        let (_, guess) = self.sum.saddle_for_delta(within.to_f64_down().max(f64::MIN_POSITIVE).ln())?;
        let profile = |tried: &Rational| self.below_top(tried, || few.delta(tried.to_f64()));
        least_epsilon(profile, delta, guess.max(1e-9), self.top().unwrap_or(HIGHEST))
    }

    /// What is seen through a haze where that can be had and nothing else is narrow.
    fn or_hazed(
        &self,
        found: Option<Bounds>,
        lattice: Option<Lattice>,
        hazed: impl Fn() -> Option<Bounds>,
    ) -> Option<Bounds> {
        let wide = found.is_none_or(|found| found.relative_width() >= CAREFUL && found.upper > 0.0);
        let hazed = if wide && lattice.is_none() && Haze::suits(&self.sum) { hazed() } else { None };
        match (found, hazed) {
            (Some(found), Some(hazed)) => Some(found.and(hazed)),
            (found, hazed) => found.or(hazed),
        }
    }

    /// What a list of all sums says where that can be had and the line is not narrow.
    fn or_listed(&self, found: Option<Bounds>, listed: impl Fn() -> Option<Bounds>) -> Option<Bounds> {
        let wide = found.is_none_or(|found| found.relative_width() >= NARROW && found.upper > 0.0);
        let listed = if wide && self.few { listed() } else { None };
        match (found, listed) {
            (Some(found), Some(listed)) => Some(found.and(listed)),
            (found, listed) => found.or(listed),
        }
    }

    /// Along the straight line or a path that bends, the faster one first, and the other where that is not narrow.
    fn either(&self, bent: impl Fn() -> Option<Bounds>, line: impl Fn() -> Option<Bounds>) -> Option<Bounds> {
        // beside atoms the line is quick, or quickly given up
        let few = !self.mixed && self.sum.uses() <= FEW;
        let first = if few { bent() } else { line() };
        match first {
            Some(first) if first.relative_width() < CAREFUL || first.upper == 0.0 => Some(first),
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

    /// δ(ε) along a path that bends; once more where its size was guessed badly, and with more digits where terms cancel.
    fn bent_delta(&self, epsilon: f64) -> Option<Bounds> {
        let mut found: Option<Bounds> = None;
        let tries = [
            (Digits::Usual, NARROW),
            (Digits::Usual, NARROW),
            (Digits::Many, CAREFUL),
            (Digits::Many, CAREFUL),
            (Digits::Many, CAREFUL),
        ];
        for (digits, enough) in tries {
            if found.is_some_and(|found| found.relative_width() < enough || found.upper < f64::MIN_POSITIVE) {
                break;
            }
            let log_delta = found.map(|found| found.upper.ln());
            let Some(bent) = Bent::new(&self.sum, epsilon, log_delta, digits) else { continue };
            let now = bent.delta(epsilon);
            found = Some(found.map_or(now, |before| before.and(now)));
        }
        found
    }

    /// ε(δ) along a path that bends, made anew where it is found to be for another ε, or where terms cancel.
    fn bent_epsilon(&self, delta: &Rational, within: &Rational) -> Option<Bounds> {
        let log_delta = within.to_f64_down().max(f64::MIN_POSITIVE).ln();
        if Bent::most(&self.sum)? <= within.to_f64_down() {
            return Some(Bounds::new(0.0, 0.0));
        }
        let highest = self.top().unwrap_or(HIGHEST);
        let mut guess = Bent::guess(&self.sum, log_delta, self.largest_alone(log_delta)?)?;
        let mut found: Option<Bounds> = None;
        for _ in 0..4 {
            let Some(bent) = Bent::new(&self.sum, guess, Some(log_delta), Digits::Usual) else { break };
            let about = bent.epsilon(log_delta.exp(), highest);
            let profile = |tried: &Rational| self.with_infinite(bent.delta(tried.to_f64()));
            let Some(now) = least_epsilon(profile, delta, about.max(1e-12), highest) else { break };
            let both = found.map_or(now, |before| before.and(now));
            found = Some(both);
            let near = (about / guess - 1.0).abs() < NEAR;
            guess = about;
            if both.relative_width() < NARROW || near {
                break;
            }
        }
        for _ in 0..2 {
            if found.is_some_and(|found| found.relative_width() < CAREFUL) {
                break;
            }
            let Some(bent) = Bent::new(&self.sum, guess, Some(log_delta), Digits::Many) else { break };
            let profile = |tried: &Rational| self.with_infinite(bent.delta(tried.to_f64()));
            let Some(now) = least_epsilon(profile, delta, guess.max(1e-12), highest) else { break };
            found = Some(found.map_or(now, |before| before.and(now)));
            guess = now.upper;
        }
        found
    }

    /// δ(ε) of few uses on samples beside losses of finitely many values.
    fn mixed_delta(&self, epsilon: f64) -> Option<Bounds> {
        let mut found: Option<Bounds> = None;
        let mut digits = Digits::Usual;
        for round in 0..4 {
            if found.is_some_and(|found| found.relative_width() < CAREFUL) {
                break;
            }
            let log_delta = found.map(|found| found.upper.ln());
            if round == 2 {
                digits = Digits::Many;
            }
            match Mixed::new(&self.terms.laws, epsilon, log_delta, digits) {
                Some(mixed) => {
                    let now = mixed.delta(epsilon);
                    found = Some(found.map_or(now, |before| before.and(now)));
                }
                None if digits == Digits::Many => break,
                None => digits = Digits::Many,
            }
        }
        found
    }

    /// The same for ε(δ), anew where it is found far from where it was looked for.
    fn mixed_epsilon(&self, delta: &Rational, within: &Rational) -> Option<Bounds> {
        let log_delta = within.to_f64_down().max(f64::MIN_POSITIVE).ln();
        let highest = self.top().unwrap_or(HIGHEST);
        // near the largest loss there is no saddle; and noise only makes ε larger
        let saddle = self.sum.saddle_for_delta(log_delta).map(|saddle| saddle.1);
        let near_top = || Some(self.top()? - 0.5 * Mixed::noise_top(&self.terms.laws)?);
        let without = Mixed::without_noise(&self.terms.laws, within, highest);
        let mut guess = saddle.or_else(near_top)?.max(without.unwrap_or(0.0)).clamp(1e-9, highest);
        let mut found: Option<Bounds> = None;
        let mut digits = Digits::Usual;
        for round in 0..6 {
            if found.is_some_and(|found| found.relative_width() < CAREFUL) {
                break;
            }
            if round == 4 {
                digits = Digits::Many;
            }
            let Some(mixed) = Mixed::new(&self.terms.laws, guess, Some(log_delta), digits) else {
                if digits == Digits::Many {
                    break;
                }
                digits = Digits::Many;
                continue;
            };
            let profile = |tried: &Rational| self.below_top(tried, || mixed.delta(tried.to_f64()));
            match least_epsilon(profile, delta, guess, highest) {
                Some(now) => {
                    found = Some(found.map_or(now, |before| before.and(now)));
                    guess = now.upper;
                }
                // too far for this path: where the tangent leads
                None => {
                    guess = tangent(&mixed, guess, log_delta).clamp(0.5 * guess, 2.0 * guess).min(highest)
                }
            }
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
}

/// About the ε at which ln δ is this, from where a path was made for.
fn tangent(mixed: &Mixed, epsilon: f64, log_delta: f64) -> f64 {
    let log = |epsilon: f64| {
        let Bounds { lower, upper } = mixed.delta(epsilon);
        ((lower + upper) / 2.0).max(f64::MIN_POSITIVE).ln()
    };
    let step = 1e-7 * epsilon;
    let (here, there) = (log(epsilon), log(epsilon + step));
    let next = epsilon + step * (log_delta - here) / (there - here);
    if next.is_finite() { next } else { epsilon }
}

/// ε(δ) of a single Gaussian on a sample, to a few digits.
pub(super) fn rough_epsilon(law: &Law, delta: f64) -> Option<f64> {
    let Base::Gaussian { mu_squared } = &law.base else { return None };
    let (mu, sampling) = (mu_squared.to_f64().sqrt(), law.sampling.as_ref()?);
    let tail = |x: f64| 0.5 * libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2);
    let inner =
        |epsilon: f64| tail(epsilon / mu - mu / 2.0) - libm::exp(epsilon) * tail(epsilon / mu + mu / 2.0);
    let outer = |epsilon: f64| {
        let rise = libm::expm1(epsilon);
        match sampling.direction {
            Direction::Remove | Direction::Replace => {
                sampling.rate * inner(libm::log1p(rise / sampling.rate))
            }
            Direction::Add => {
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
