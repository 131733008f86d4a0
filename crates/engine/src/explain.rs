//! A [`Quote`] in words: what will be done, and how far off the answer will be. All of it is public.

use demur_exact::Rational;
use demur_plan::catalog::PrivacyUnit;
use demur_plan::{Bounded, Keys, Recipe, Statistic, step_size};
use demur_tally::Measure;

use crate::estimate::{OUTSIDE, step};
use crate::interval::reach;
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
            Keys::Public(keys) => format!("public: {} groups, each answered", keys.len()),
            Keys::Private => self.pricing.rule().map_or_else(String::new, |rule| rule.describe()),
        };
        let items = self.subjects.iter().zip(self.pricing.noises()).map(|(subject, noise)| {
            let (what, bounds) = self.describe(*subject);
            let standard_deviation = noise.standard_deviation() * self.counted_step(*subject).to_f64();
            let noise = format!("{}, standard deviation {}", noise.kind(), short(standard_deviation));
            ExplainedItem { what, bounds, sensitivity: self.sensitivity(*subject), noise, standard_deviation }
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
        let made_from = self.inputs(&statistic.recipe);
        let error = self.error(statistic, OUTSIDE);
        let error_text = match error {
            Some(error) => format!("± {} with 95 % confidence", short(error)),
            None => "depends on the group; each answer carries its own interval".to_owned(),
        };
        ExplainedStatistic { name: statistic.name.clone(), error, error_text, made_from }
    }

    /// How far off a statistic is but for a chance of `beta`, where that does not depend on the data.
    pub(crate) fn error(&self, statistic: &Statistic, beta: f64) -> Option<f64> {
        let inputs = self.inputs(&statistic.recipe);
        let noise = |place: usize| inputs.get(place).map(|index| &self.pricing.noises()[*index]);
        let reach = match &statistic.recipe {
            Recipe::Units | Recipe::Plain { .. } => reach(&[(1.0, noise(0)?)], beta),
            Recipe::Sum { centre, .. } => reach(&[(1.0, noise(0)?), (*centre as f64, noise(1)?)], beta),
            Recipe::Mean { .. } | Recipe::Quantiles { .. } => return None,
        };
        Some(reach.ok()? * step(&statistic.recipe).to_f64())
    }

    /// What a subject is, and what is enforced on each unit, in words.
    pub(crate) fn describe(&self, subject: Subject) -> (String, String) {
        let groups = self.bounded.groups_per_unit();
        let within = |text: String| match self.bounded.spec.has_unit {
            false => text,
            true if groups == 1 => format!("{text}, in one group"),
            true => format!("{text}, in at most {groups} groups"),
        };
        let Subject::Measure(index) = subject else {
            return ("number of units".to_owned(), within("a unit counts once".to_owned()));
        };
        let names: Vec<_> = self.asked_of(index);
        let what = match &self.bounded.spec.measures[index] {
            Measure::Count { .. } => "count",
            Measure::Sum { .. } => "sum",
            Measure::Deviation { centre: 0, .. } => "sum",
            Measure::Deviation { .. } => "sum of deviations",
            Measure::Distinct { .. } => "number of distinct values",
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
        let uses = |recipe: &Recipe| match recipe {
            Recipe::Units => false,
            Recipe::Plain { measure, .. } => *measure == index,
            Recipe::Sum { deviation, count, .. } | Recipe::Mean { deviation, count, .. } => {
                *deviation == index || *count == index
            }
            Recipe::Quantiles { histogram, .. } => *histogram == index,
        };
        self.bounded
            .statistics
            .iter()
            .filter(|statistic| uses(&statistic.recipe))
            .map(|statistic| statistic.name.as_str())
            .collect()
    }

    /// How large a step of a subject is.
    fn step(&self, subject: Subject) -> Rational {
        let Subject::Measure(index) = subject else { return Rational::one() };
        match &self.bounded.spec.measures[index] {
            Measure::Sum { step, .. } | Measure::Deviation { step, .. } => step_size(*step),
            Measure::Histogram { step, .. } => step_size(*step),
            Measure::Count { .. } | Measure::Distinct { .. } => Rational::one(),
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
    match private.as_slice() {
        [table] => match &table.unit {
            PrivacyUnit::Column(column) => format!("all rows with the same `{column}`"),
            _ => "each row".to_owned(),
        },
        [first, ..] if bounded.spec.has_unit => {
            let names: Vec<_> = private.iter().map(|table| format!("`{}`", table.name)).collect();
            format!("all that {} have about one of `{}`", names.join(" and "), first.people)
        }
        _ => "each row".to_owned(),
    }
}
