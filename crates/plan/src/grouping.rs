//! [`Groupings`]: which totals are asked for, by GROUPING SETS, ROLLUP or CUBE.
//!
//! **Definition.** Rows are counted by all keys that occur in any set: that is the *finest* level. A set of keys asks for sums of finest groups, so that
//! totals are sums of their parts before any noise is added, and can be made so again after it. A unit counts in at most M groups of the
//! finest level, and with these in every total.
//!
//! **Reach.** At the level of some keys a unit moves cells that are sums of at most M of its groups, each by at most s, and at most k = min(M, f) of
//! them in one cell, if f finest groups make up a cell. So a level moves by M·s in ℓ1, by k·s in one cell, and hence by at most k·M·s² in squared ℓ2.
//!
//! **Replacing a unit.** Let one group move by −e to d, e ≤ d, r = d + e and s ≥ max(d, r/√2), and let a cell hold p ≤ k groups of the unit that goes and
//! q ≤ k of the one that comes. It moves by at most x = max(p·d + q·e, p·e + q·d), say with p ≥ q. As a function of q, x² is convex, and
//! s²·p·(p + q) is a straight line that lies above it at q = 0 (p²d²) and at q = p (p²r²). So x² ≤ s²·k·(p + q), and over all cells at most
//! 2·k·M·s²: twice as much as for a unit that comes or goes. In ℓ1 it is at most 2·M·d.
//!
//! **What adds up.** Counts, sums, and what is made of them. Different values and quantiles of a total are no sums: quantiles are found at each level by itself, different values are
//! refused, units too unless each has one group.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, GroupingSet};
use demur_core::Sensitivity;
use demur_exact::Rational;
use demur_tally::Measure;

use crate::PlanError;
use crate::bounded::{Bounded, Keys, Recipe, Statistic};

/// The most keys of one question with totals.
const KEYS: usize = 8;

/// Which totals are shown; see the module text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groupings {
    /// The keys of each, in the order of the query.
    pub sets: Vec<KeySet>,
    /// How many values each key has, if all of them are public.
    pub sizes: Option<Vec<usize>>,
    /// The names of the keys.
    pub names: Vec<String>,
}

/// Some of the keys: bit k for key k.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeySet(pub u32);

impl KeySet {
    /// The first so many keys.
    pub fn first(keys: usize) -> Self {
        Self((1 << keys) - 1)
    }

    /// Whether a key is in it.
    pub fn contains(self, key: usize) -> bool {
        self.0 >> key & 1 == 1
    }

    /// Whether all keys of another are in it.
    pub fn covers(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// What GROUPING makes of it: a bit for each key that a total runs over, the first key highest.
    pub fn grouping_id(self, keys: usize) -> u64 {
        (0..keys).filter(|&key| !self.contains(key)).map(|key| 1u64 << (keys - 1 - key)).sum()
    }
}

impl Groupings {
    /// The level of all keys.
    pub fn finest(&self) -> KeySet {
        KeySet::first(self.names.len())
    }

    /// How many groups of a level there are, if keys are public.
    pub fn cells(&self, set: KeySet) -> Option<usize> {
        let sizes = self.sizes.as_ref()?;
        Some(sizes.iter().enumerate().filter(|(key, _)| set.contains(*key)).map(|(_, size)| size).product())
    }

    /// The keys of a set, for people.
    pub fn describe(&self, set: KeySet) -> String {
        let named = self.names.iter().enumerate().filter(|(key, _)| set.contains(*key));
        let names: Vec<_> = named.map(|(_, name)| name.as_str()).collect();
        if names.is_empty() { "all rows".to_owned() } else { format!("by {}", names.join(", ")) }
    }
}

/// The keys of a GROUP BY, and the sets of them that are asked for, if there are several.
pub(crate) fn read(group_by: &[Expr]) -> Result<(Vec<Expr>, Option<Vec<KeySet>>), PlanError> {
    let [Expr::GroupingSet(asked)] = group_by else {
        return match group_by.iter().enumerate().find(|(at, key)| group_by[..*at].contains(key)) {
            Some((_, key)) => {
                let text = format!("{} is a key of GROUP BY twice", key.human_display());
                Err(PlanError::mistake("plan.grouping", text).hint("each key may stand there once"))
            }
            None => Ok((group_by.to_vec(), None)),
        };
    };
    let keys: Vec<Expr> = asked.distinct_expr().into_iter().cloned().collect();
    if keys.is_empty() || keys.len() > KEYS {
        let text =
            format!("GROUPING SETS, ROLLUP and CUBE take 1 to {KEYS} keys, but there are {}", keys.len());
        return Err(PlanError::refused("plan.grouping", text).hint("group by fewer columns"));
    }
    let set = |exprs: &[Expr]| {
        let place = |expr: &Expr| keys.iter().position(|key| key == expr).unwrap_or(0);
        KeySet(exprs.iter().fold(0, |set, expr| set | 1 << place(expr)))
    };
    let sets: Vec<KeySet> = match asked {
        GroupingSet::Rollup(exprs) => (0..=exprs.len()).rev().map(|first| set(&exprs[..first])).collect(),
        // The first keys stay longest.
        GroupingSet::Cube(exprs) => {
            let chosen = |skip: u32| {
                let kept = exprs.iter().enumerate().filter(|(at, _)| skip >> (exprs.len() - 1 - at) & 1 == 0);
                set(&kept.map(|(_, expr)| expr.clone()).collect::<Vec<_>>())
            };
            (0..1 << exprs.len()).map(chosen).collect()
        }
        GroupingSet::GroupingSets(sets) => sets.iter().map(|exprs| set(exprs)).collect(),
    };
    let mut seen = std::collections::HashSet::new();
    if !sets.iter().all(|set| seen.insert(*set)) {
        return Err(PlanError::refused("plan.grouping", "the same grouping is asked for twice")
            .hint("each set of keys may stand once in GROUPING SETS"));
    }
    Ok((keys, Some(sets)))
}

/// What is known of the totals of a question.
pub(crate) fn groupings(
    keys: &[Expr],
    sets: Vec<KeySet>,
    shown: &Keys,
    statistics: &[Statistic],
    measures: &[Measure],
    groups_per_unit: u32,
) -> Result<Groupings, PlanError> {
    let names = keys.iter().map(|key| key.human_display().to_string()).collect();
    let sizes = match shown {
        Keys::Public(product) => Some(sizes(product, keys.len())),
        _ => None,
    };
    if matches!(shown, Keys::Public(product) if product.is_empty()) {
        return Err(PlanError::refused(
            "plan.grouping",
            "a key has no public values, so there is nothing to add up",
        ));
    }
    let is_first = |set: &KeySet| (0..=keys.len()).any(|first| KeySet::first(first) == *set);
    if sizes.is_none() && !sets.iter().all(is_first) {
        let text = "totals over keys that are secret add up only where each grouping is the beginning of the next, as in ROLLUP";
        return Err(PlanError::refused("plan.grouping", text)
            .hint("use ROLLUP, or write values = [...] for the keys in demur.toml"));
    }
    for statistic in statistics {
        let counts_values =
            statistic.recipe.measures().into_iter().any(|measure| {
                matches!(measures[measure], Measure::Distinct { .. } | Measure::Matched { .. })
            });
        let counts_units = statistic.recipe == Recipe::Units && groups_per_unit > 1;
        if counts_values || counts_units {
            let text = format!(
                "{}: different values of parts do not add up to those of their total",
                statistic.name
            );
            return Err(PlanError::refused("plan.grouping", text)
                .hint("ask for it in a question of its own, with GROUP BY alone; or set max_groups_contributed to 1 to count units"));
        }
    }
    Ok(Groupings { sets, sizes, names })
}

/// How many different values each key has in a product of values.
fn sizes(product: &[Vec<ScalarValue>], keys: usize) -> Vec<usize> {
    let different =
        |key: usize| product.iter().map(|row| &row[key]).collect::<std::collections::HashSet<_>>().len();
    (0..keys).map(different).collect()
}

impl Bounded {
    /// How far a measure of all groups of a level can move together, when a unit comes or goes; replaced, twice as far.
    ///
    /// `cells` says how many finest groups make up a cell at most.
    pub fn level_sensitivity(
        &self,
        one_group: &Sensitivity,
        most_parts: u64,
    ) -> Result<Sensitivity, PlanError> {
        let groups = self.groups_per_unit();
        let parts = most_parts.clamp(1, groups);
        let (all, one) = (Rational::from(groups), Rational::from(parts));
        let l0 = groups.saturating_mul(one_group.l0().max(1));
        let squared = &(&all * &one) * &one_group.l1().square();
        Sensitivity::new(l0, &all * one_group.l1(), squared, &one * one_group.l1())
            .map_err(|error| PlanError::mistake("plan.sensitivity", error.to_string()))
    }
}
