//! A [`Quote`] in words: what will be done, and how far off the answer will be. All of it is public.

use demur_exact::Rational;
use demur_plan::catalog::PrivacyUnit;
use demur_plan::{Bounded, Keys, Recipe, Statistic, step_size};
use demur_tally::Measure;

use crate::estimate::{self, OUTSIDE, step};
use crate::quote::{Quote, Subject};

/// What a quote says to people.
pub struct Explained {
    /// The table.
    pub table: String,
    /// Whose data is hidden.
    pub unit: String,
    /// Which datasets look alike.
    pub adjacency: String,
    /// Which groups are shown.
    pub keys: String,
    /// What gets noise.
    pub items: Vec<ExplainedItem>,
    /// What is answered.
    pub statistics: Vec<ExplainedStatistic>,
}

/// One number per group that gets noise.
pub struct ExplainedItem {
    /// What it is.
    pub what: String,
    /// What is enforced on each unit.
    pub bounds: String,
    /// How far a unit moves it.
    pub sensitivity: String,
    /// The law of its noise.
    pub noise: String,
    /// Its standard deviation.
    pub standard_deviation: f64,
}

/// One answer per group.
pub struct ExplainedStatistic {
    /// What was asked.
    pub name: String,
    /// How far off it is, with 95 % confidence, where that does not depend on the data.
    pub error: Option<f64>,
    /// The same in words.
    pub error_text: String,
    /// The numbers it is made from.
    pub made_from: Vec<usize>,
}

impl Quote {
    /// What will be done, and how far off the answer will be.
    pub fn explain(&self) -> Explained {
        let bounded = &self.bounded;
        let names: Vec<_> = bounded.tables.iter().map(|table| table.name.as_str()).collect();
        let unit = unit_of(bounded);
        let keys = match &bounded.keys {
            Keys::None => "none: one group".to_owned(),
            Keys::Public(keys) => match self.total_groups() {
                Some(all) => {
                    format!("public: {} groups and their totals, {all} rows, each answered", keys.len())
                }
                None => format!("public: {} groups, each answered", keys.len()),
            },
            Keys::Private => self.pricing.rule().map_or_else(String::new, |rule| rule.describe()),
        };
        let items = self.pricing.noises().iter().enumerate().map(|(index, noise)| {
            let (what, bounds) = self.describe_item(index);
            let step = self.counted_step(self.subjects[index]).to_f64();
            let standard_deviation = noise.standard_deviation() * step;
            let noise = format!("{}, standard deviation {}", noise.kind(), short(standard_deviation));
            let sensitivity = self.item_sensitivity(index);
            ExplainedItem { what, bounds, sensitivity, noise, standard_deviation }
        });
        let items = items.collect();
        let statistics =
            bounded.statistics.iter().map(|statistic| self.explain_statistic(statistic)).collect();
        Explained {
            table: names.join(", "),
            unit,
            adjacency: bounded.adjacency().to_string(),
            keys,
            items,
            statistics,
        }
    }

    fn explain_statistic(&self, statistic: &Statistic) -> ExplainedStatistic {
        let made_from = self.inputs(&statistic.recipe, 0).into_iter().map(|input| input.index).collect();
        let error = self.error(statistic, OUTSIDE);
        let error_text = match error {
            Some(error) => format!("± {} with 95 % confidence", short(error)),
            None => "depends on the group; each answer carries its own interval".to_owned(),
        };
        ExplainedStatistic { name: statistic.name.clone(), error, error_text, made_from }
    }

    /// How far off a statistic is but for a chance of `beta`, where that does not depend on the data.
    pub(crate) fn error(&self, statistic: &Statistic, beta: f64) -> Option<f64> {
        let step = step(&statistic.recipe).to_f64();
        let at = |set: usize| {
            let inputs = self.inputs(&statistic.recipe, set);
            if let (Recipe::Buckets { cumulative: false, .. }, [input]) =
                (&statistic.recipe, inputs.as_slice())
            {
                return Some(self.trees[input.index].as_ref()?.cell_reach(input.noise.noise, beta));
            }
            let noisy: Vec<_> = inputs.into_iter().map(|input| input.noise).collect();
            Some(estimate::error(&statistic.recipe, &noisy, beta).ok()?? * step)
        };
        (0..self.laws.len()).map(at).try_fold(0.0, |most: f64, error| error.map(|error| most.max(error)))
    }

    /// What an item is, at which level, and what is enforced on each unit, in words.
    pub(crate) fn describe_item(&self, index: usize) -> (String, String) {
        let (what, bounds) = self.describe(self.subjects[index]);
        match (&self.bounded.totals, self.levels[index]) {
            (Some(totals), Some(level)) => (format!("{what}, {}", totals.describe(level)), bounds),
            _ => (what, bounds),
        }
    }

    /// How far an item can move, in words.
    pub(crate) fn item_sensitivity(&self, index: usize) -> String {
        let far = self.sensitivity(self.subjects[index]);
        match &self.bounded.totals {
            Some(_) if self.bounded.groups_moved() > 1 => format!("{far}, summed up"),
            _ => far,
        }
    }

    /// What a subject is, and what is enforced on each unit, in words.
    pub(crate) fn describe(&self, subject: Subject) -> (String, String) {
        let groups = self.bounded.groups_per_unit();
        let within = |text: String| match (&self.bounded.rules.second, self.bounded.spec.has_unit) {
            (Some(second), _) => {
                let (column, rows) = (&second.column, second.max_rows_per_group);
                format!("{text}; one `{column}` for at most {rows} rows; both in every group")
            }
            (None, false) => text,
            (None, true) if groups == 1 => format!("{text}, in one group"),
            (None, true) => format!("{text}, in at most {groups} groups"),
        };
        let Subject::Measure(index) = subject else {
            return ("number of units".to_owned(), within("a unit counts once".to_owned()));
        };
        let names: Vec<_> = self.asked_of(index);
        let what = match &self.bounded.spec.measures[index] {
            Measure::Count { .. } => "count",
            Measure::Sum { .. } => "sum",
            Measure::Deviation { .. } if self.is_product(index) => "sum of products of deviations",
            Measure::Deviation { centre: 0, .. } => "sum",
            Measure::Deviation { .. } => "sum of deviations",
            Measure::Distinct { .. } | Measure::Matched { .. } => "number of distinct values",
            Measure::Histogram { .. } => "histogram",
        };
        let step = self.step(subject);
        let shown = |steps: i64| in_units(&Rational::from(steps), &step);
        let bounds = match &self.bounded.spec.measures[index] {
            Measure::Count { most: 1, .. } => "a unit counts once".to_owned(),
            Measure::Count { most, .. } => format!("a unit counts for at most {most} rows"),
            Measure::Sum { unit, .. } => {
                format!("a unit's sum from {} to {}", shown(unit.low), shown(unit.high))
            }
            Measure::Deviation { row, most, .. } => {
                format!("values from {} to {}, {}", shown(row.low), shown(row.high), rows(*most))
            }
            Measure::Distinct { most, .. } => format!("a unit brings at most {most} values"),
            Measure::Matched { most, .. } => {
                format!("a unit brings at most {most} values, as many different ones as can be")
            }
            Measure::Histogram { row, most, cells, .. } => {
                format!(
                    "values from {} to {} in {cells} cells, {}",
                    shown(row.low),
                    shown(row.high),
                    rows(*most)
                )
            }
        };
        (format!("{what} for {}", names.join(", ")), within(bounds))
    }

    /// Which statistics a measure serves.
    fn asked_of(&self, index: usize) -> Vec<&str> {
        self.bounded
            .statistics
            .iter()
            .filter(|statistic| statistic.recipe.measures().contains(&index))
            .map(|statistic| statistic.name.as_str())
            .collect()
    }

    /// Whether a measure adds up squares or products.
    fn is_product(&self, index: usize) -> bool {
        let adds = |statistic: &Statistic| match &statistic.recipe {
            Recipe::Moments { products, .. } => products.iter().any(|product| product.measure == index),
            _ => false,
        };
        self.bounded.statistics.iter().any(adds)
    }

    /// How large a step of a subject is.
    fn step(&self, subject: Subject) -> Rational {
        let Subject::Measure(index) = subject else { return Rational::one() };
        match &self.bounded.spec.measures[index] {
            Measure::Sum { step, .. } | Measure::Deviation { step, .. } => step_size(*step),
            Measure::Histogram { step, .. } => step_size(*step),
            Measure::Count { .. } | Measure::Distinct { .. } | Measure::Matched { .. } => Rational::one(),
        }
    }

    /// How large a step of what a subject counts is: histograms count values, not steps.
    fn counted_step(&self, subject: Subject) -> Rational {
        match subject {
            Subject::Measure(index)
                if matches!(self.bounded.spec.measures[index], Measure::Histogram { .. }) =>
            {
                Rational::one()
            }
            other => self.step(other),
        }
    }

    /// How far a subject can move, in words.
    pub(crate) fn sensitivity(&self, subject: Subject) -> String {
        let groups = self.bounded.groups_moved();
        let far = match subject {
            Subject::Units => "1".to_owned(),
            Subject::Measure(index) => self
                .bounded
                .sensitivity(&self.bounded.spec.measures[index])
                .map_or_else(|_| "?".to_owned(), |most| in_units(most.linf(), &self.counted_step(subject))),
        };
        match groups {
            1 => far,
            _ => format!("{far} in each of {groups} groups"),
        }
    }
}

fn rows(most: u64) -> String {
    match most {
        1 => "one row of a unit".to_owned(),
        most => format!("at most {most} rows of a unit"),
    }
}

/// So many steps, in the unit of the values.
fn in_units(steps: &Rational, step: &Rational) -> String {
    short((steps * step).to_f64())
}

/// A number with at most four digits after the point.
fn short(number: f64) -> String {
    let text = format!("{number:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Whose privacy counts, in words.
fn unit_of(bounded: &Bounded) -> String {
    let private: Vec<_> = bounded.private_tables().collect();
    let second = bounded.rules.second.as_ref();
    let second =
        second.map_or_else(String::new, |second| format!(", and all rows with the same `{}`", second.column));
    let first = match private.as_slice() {
        [table] => match &table.unit {
            PrivacyUnit::Column(column) => format!("all rows with the same `{column}`"),
            _ => "each row".to_owned(),
        },
        [first, ..] if bounded.spec.has_unit => {
            let names: Vec<_> = private.iter().map(|table| format!("`{}`", table.name)).collect();
            format!("all that {} have about one of `{}`", names.join(" and "), first.people)
        }
        _ => "each row".to_owned(),
    };
    format!("{first}{second}")
}
