//! Which levels of a question are measured, and how well each is then known; by the formula of the module above.

use demur_plan::{Bounded, Groupings, KeySet};

use super::{Level, Levels, variance};
use crate::interval::Spread;
use crate::quote::{Quote, Subject};
use crate::{EngineError, Preference};

/// The most finest groups of a question with totals.
const CELLS: usize = 1 << 17;

/// How many finest groups make up a cell at most.
pub(crate) fn parts(totals: &Groupings, level: KeySet) -> u64 {
    match (totals.cells(totals.finest()), totals.cells(level)) {
        (Some(finest), Some(cells)) if cells > 0 => (finest / cells) as u64,
        (Some(_), _) => 1,
        // What is not shown of secret keys becomes one cell.
        (None, _) => u64::MAX,
    }
}

/// The levels at which a number is measured; what does not add up is, wherever it is shown.
pub(crate) fn measured(bounded: &Bounded, totals: &Groupings, noise: Preference, apart: bool) -> Vec<KeySet> {
    let Some(sizes) = &totals.sizes else {
        let mut sets = totals.sets.clone();
        if !apart && !sets.contains(&totals.finest()) {
            sets.push(totals.finest());
        }
        return sets;
    };
    if apart {
        return totals.sets.clone();
    }
    let most = bounded.groups_per_unit();
    let variance = |level: KeySet, measured: usize| match noise {
        // In proportion to the square of what all of them move in ℓ1, which is the same at each.
        Preference::Laplace => (measured * measured) as f64,
        // In proportion to what all of them move in squared ℓ2.
        _ => measured as f64 * parts(totals, level).min(most) as f64,
    };
    Cube { sizes }.choose(&totals.sets, totals.finest(), variance)
}

impl Quote {
    /// How many groups are shown at all levels together, if that is known.
    pub(crate) fn total_groups(&self) -> Option<usize> {
        let totals = self.bounded.totals.as_ref()?;
        totals.sets.iter().map(|set| totals.cells(*set)).sum()
    }

    /// The law of every item's numbers at every grouping that is shown.
    pub(crate) fn all_laws(&self) -> Result<Vec<Vec<Spread>>, EngineError> {
        let noises = self.pricing.noises();
        let own = || noises.iter().map(Spread::of).collect::<Vec<_>>();
        let Some(totals) = &self.bounded.totals else { return Ok(vec![own()]) };
        if let Some(cells) = totals.cells(totals.finest()).filter(|cells| *cells > CELLS) {
            let text = format!(
                "totals of {cells} groups are asked for, and {CELLS} are the most that are made to add up"
            );
            return Err(EngineError::refused("engine.totals", text).hint("group by fewer columns"));
        }
        let mut laws = Vec::new();
        for set in &totals.sets {
            let mut of_set = own();
            for (first, subject) in self.subjects.iter().enumerate() {
                if self.subjects.iter().position(|other| other == subject) == Some(first) {
                    of_set[first] = self.law(totals, *subject, *set);
                }
            }
            laws.push(of_set);
        }
        Ok(laws)
    }

    /// The law of a subject's numbers at a grouping.
    fn law(&self, totals: &Groupings, subject: Subject, set: KeySet) -> Spread {
        let items = self.items_of(subject);
        let noise = |item: usize| &self.pricing.noises()[item];
        let own = items.iter().find(|(_, level)| *level == set).or(items.first());
        let apart = items.first().is_some_and(|(item, _)| self.trees[*item].is_some());
        let (Some(sizes), false) = (&totals.sizes, apart) else {
            return own.map_or_else(Spread::default, |(item, _)| Spread::blend(&[(1.0, noise(*item))]));
        };
        let levels: Vec<Level> = items.iter().map(|(_, level)| Level::over(sizes, *level)).collect();
        let noises: Vec<_> = items.iter().map(|(item, _)| noise(*item)).collect();
        let variances = noises.iter().map(|noise| variance(noise));
        let system = Levels::new(levels.iter().zip(variances).collect());
        system.law(&Level::over(sizes, set), 0, &noises).0
    }

    /// Σ ln of the errors of all that adds up, at all levels that are shown.
    pub(crate) fn total_cost(&self) -> f64 {
        let Some(totals) = &self.bounded.totals else { return 0.0 };
        let log = |item: usize| libm::log(self.pricing.noises()[item].standard_deviation());
        let mut cost = 0.0;
        for (first, subject) in self.subjects.iter().enumerate() {
            if self.subjects.iter().position(|other| other == subject) != Some(first) {
                continue;
            }
            let items = self.items_of(*subject);
            cost += match (&totals.sizes, self.trees[first].is_some()) {
                (Some(sizes), false) => {
                    let noises = self.pricing.noises();
                    let measured: Vec<_> =
                        items.iter().map(|(item, level)| (*level, variance(&noises[*item]))).collect();
                    Cube { sizes }.cost(&totals.sets, &measured) / 2.0
                }
                _ => items.iter().map(|(item, _)| log(*item)).sum(),
            };
        }
        let half_point = self.pricing.rule().map_or(0.0, |rule| libm::log(rule.half_point() as f64));
        cost + half_point
    }
}

/// Levels over public keys.
pub(crate) struct Cube<'a> {
    /// How many values each key has.
    pub(crate) sizes: &'a [usize],
}

impl Cube<'_> {
    /// F_S: how many cells a level has.
    fn cells(&self, set: KeySet) -> f64 {
        let of_set = self.sizes.iter().enumerate().filter(|(key, _)| set.contains(*key));
        of_set.map(|(_, &size)| size as f64).product()
    }

    /// V_T, when these levels were measured with these variances; infinite where it does not follow from them.
    pub(crate) fn variance(&self, shown: KeySet, measured: &[(KeySet, f64)]) -> f64 {
        let mut variance = 0.0;
        // All subsets U of T.
        let mut subset = shown.0;
        loop {
            let u = KeySet(subset);
            let seen: f64 = measured
                .iter()
                .filter(|(level, _)| level.covers(u))
                .map(|(level, variance)| 1.0 / (self.cells(KeySet(level.0 & !u.0)) * variance))
                .sum();
            // The sum of nothing is −0.
            if seen <= 0.0 {
                return f64::INFINITY;
            }
            let rest = self.cells(KeySet(shown.0 & !u.0));
            let varying: f64 = self
                .sizes
                .iter()
                .enumerate()
                .filter(|(key, _)| u.contains(*key))
                .map(|(_, &size)| 1.0 - 1.0 / size as f64)
                .product();
            if varying > 0.0 {
                variance += varying / (seen * rest * rest);
            }
            if subset == 0 {
                return variance;
            }
            subset = (subset - 1) & shown.0;
        }
    }

    /// Σ ln V_T over the shown levels.
    pub(crate) fn cost(&self, shown: &[KeySet], measured: &[(KeySet, f64)]) -> f64 {
        shown.iter().map(|set| libm::log(self.variance(*set, measured))).sum()
    }

    /// The levels to measure: `variance(level, n)` is that of a level when n of them are.
    pub(crate) fn choose(
        &self,
        shown: &[KeySet],
        finest: KeySet,
        variance: impl Fn(KeySet, usize) -> f64,
    ) -> Vec<KeySet> {
        let mut candidates = shown.to_vec();
        if !candidates.contains(&finest) {
            candidates.push(finest);
        }
        // No level may err more than if all that are shown were published by themselves.
        let allowed = |level: &KeySet| variance(*level, shown.len()) * (1.0 + 1e-9);
        let cost = |chosen: &[KeySet]| {
            let measured: Vec<_> =
                chosen.iter().map(|level| (*level, variance(*level, chosen.len()))).collect();
            match shown.iter().all(|level| self.variance(*level, &measured) <= allowed(level)) {
                true => self.cost(shown, &measured),
                false => f64::INFINITY,
            }
        };
        let improved = |mut best: Vec<KeySet>| {
            loop {
                let mut next = (cost(&best), None);
                for candidate in &candidates {
                    let mut tried: Vec<KeySet> =
                        best.iter().copied().filter(|level| level != candidate).collect();
                    if tried.len() == best.len() {
                        tried.push(*candidate);
                    }
                    let found = cost(&tried);
                    // Not for the sake of rounding.
                    if found < next.0 - 1e-9 {
                        next = (found, Some(tried));
                    }
                }
                match next.1 {
                    Some(tried) => best = tried,
                    None => return best,
                }
            }
        };
        let starts = [shown.to_vec(), vec![finest]].map(improved);
        let mut chosen = starts.into_iter().min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap_or_default();
        chosen.sort_by(|a, b| b.cmp(a));
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::totals::{Level, Levels};

    /// The formula against the inverse of the normal equations.
    #[test]
    fn variances_are_those_of_least_squares() {
        let sizes = [3, 4, 2];
        let cube = Cube { sizes: &sizes };
        for measured in [
            vec![(KeySet(7), 1.0)],
            vec![(KeySet(7), 1.0), (KeySet(0), 1.0)],
            vec![(KeySet(7), 2.0), (KeySet(3), 0.5), (KeySet(1), 3.0), (KeySet(0), 0.1)],
            (0..8).map(|set| (KeySet(set), 1.0 + f64::from(set))).collect(),
        ] {
            let levels: Vec<Level> = measured.iter().map(|(set, _)| Level::over(&sizes, *set)).collect();
            let system =
                Levels::new(levels.iter().zip(measured.iter().map(|(_, variance)| *variance)).collect());
            for set in (0..8).map(KeySet) {
                let shown = Level::over(&sizes, set);
                let solved = system.law(&shown, 0, &[]).1;
                let formula = cube.variance(set, &measured);
                assert!((solved / formula - 1.0).abs() < 1e-9, "{set:?}: {solved} {formula}");
            }
        }
        assert_eq!(cube.variance(KeySet(1), &[(KeySet(2), 1.0)]), f64::INFINITY);
    }

    /// With few parts their sum is better than a share of the budget; with many it is not.
    #[test]
    fn levels_are_measured_where_it_pays() {
        let laplace = |_: KeySet, n: usize| (n * n) as f64;
        let choose =
            |size: usize| Cube { sizes: &[size] }.choose(&[KeySet(1), KeySet(0)], KeySet(1), laplace);
        assert_eq!(choose(3), [KeySet(1)]);
        // The sum of five would err more than a total that has half of the budget.
        assert_eq!(choose(5), [KeySet(1), KeySet(0)]);
        assert_eq!(choose(1000), [KeySet(1), KeySet(0)]);
        // Nobody asked for the finest level, and it is not needed.
        let apart = Cube { sizes: &[50, 50] }.choose(&[KeySet(1), KeySet(2)], KeySet(3), laplace);
        assert_eq!(apart, [KeySet(2), KeySet(1)]);
    }
}
