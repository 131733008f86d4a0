//! [`Quote`]: a question, what will be done to answer it, and what that costs. Made without reading a row.

use demur_core::{Delta, Epsilon, Guarantee};
use demur_exact::Rational;
use demur_plan::catalog::{NoisePreference, PrivacyUnit};
use demur_plan::{Bounded, Keys as PlannedKeys, Recipe, Statistic, step_size};
use demur_tally::Measure;

use crate::EngineError;
use crate::estimate::{self, Estimates, Noisy};
use crate::interval::Ratio;
use crate::postprocess::Postprocess;
use crate::pricing::{Item, Keys, Preference, Pricing, Wish};
use crate::project::Project;
use crate::quantile::Tree;
use crate::question::{Question, Term};

/// What is asked, as it was typed.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// The question.
    pub sql: String,
    /// ε, unless the question says it.
    pub epsilon: Option<String>,
    /// δ, unless the question or the catalog says it.
    pub delta: Option<String>,
    /// Which noise, unless the question says it.
    pub noise: Option<NoisePreference>,
    /// Who asks.
    pub requester: String,
    /// The asker's name for the request.
    pub id: Option<String>,
}

/// A question with its price.
pub struct Quote {
    /// What is asked, with bounds.
    pub bounded: Bounded,
    /// What all of it may cost.
    pub guarantee: Guarantee,
    /// The noise.
    pub pricing: Pricing,
    /// For each item of the pricing, what it is the noise of.
    pub(crate) subjects: Vec<Subject>,
    /// For each item, the tree of its histogram, if it is one.
    pub(crate) trees: Vec<Option<Tree>>,
    /// For each statistic, how its averages are estimated, if it is one.
    pub(crate) ratios: Vec<Option<Ratio>>,
}

/// What an item of a pricing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The number of units of each group.
    Units,
    /// A measure of the tally.
    Measure(usize),
}

impl Quote {
    /// Plans and prices a question.
    pub fn make(project: &Project, ask: &Ask) -> Result<Self, EngineError> {
        let mut bounded = demur_plan::plan(&project.catalog, &ask.sql)?;
        let guarantee = guarantee(project, ask, &bounded)?;
        let preference = match bounded.options.noise.or(ask.noise).unwrap_or(bounded.noise) {
            NoisePreference::Any => Preference::Any,
            NoisePreference::Laplace => Preference::Laplace,
            NoisePreference::Gaussian => Preference::Gaussian,
        };
        let shape = if guarantee.is_pure() { Preference::Laplace } else { preference };
        let Items { subjects, items, trees } = items(&mut bounded, shape)?;
        let keys = match bounded.keys {
            PlannedKeys::Private => {
                let reuse = subjects.iter().position(|subject| *subject == Subject::Units);
                Some(Keys { moved: bounded.groups_moved(), reuse })
            }
            _ => None,
        };
        let pricing = Wish { items, keys, guarantee, preference }.price()?;
        let mut quote = Self { bounded, guarantee, pricing, subjects, trees, ratios: Vec::new() };
        quote.afterwards()?;
        let ratio = |statistic: &Statistic| {
            let noises: Vec<_> = quote
                .inputs(&statistic.recipe)
                .into_iter()
                .map(|index| &quote.pricing.noises()[index])
                .collect();
            estimate::ratio(&statistic.recipe, &noises)
        };
        quote.ratios = quote.bounded.statistics.iter().map(ratio).collect::<Result<_, _>>()?;
        Ok(quote)
    }

    /// What will be done with noisy answers.
    pub(crate) fn afterwards(&self) -> Result<Postprocess<'_>, EngineError> {
        // Depends on the query alone, so its words may be told.
        Postprocess::new(&self.bounded.after)
            .map_err(|error| EngineError::new("engine.afterwards", error.strip_backtrace()))
    }

    /// Which items a recipe is made from.
    pub(crate) fn inputs(&self, recipe: &Recipe) -> Vec<usize> {
        let subjects = match *recipe {
            Recipe::Units => vec![Subject::Units],
            Recipe::Plain { measure, .. } => vec![Subject::Measure(measure)],
            Recipe::Sum { deviation, count, .. } | Recipe::Mean { deviation, count, .. } => {
                vec![Subject::Measure(deviation), Subject::Measure(count)]
            }
            Recipe::Quantiles { histogram, .. } => vec![Subject::Measure(histogram)],
        };
        subjects
            .iter()
            .filter_map(|subject| self.subjects.iter().position(|found| found == subject))
            .collect()
    }

    /// The question for the ledger and the certificate.
    pub fn question(&self, project: &Project, ask: &Ask, data_version: String) -> Question {
        Question {
            budget: project.catalog.budget.name.clone(),
            requester: ask.requester.clone(),
            id: ask.id.clone(),
            data_version: Some(data_version),
            text: self.text(),
            adjacency: self.bounded.adjacency(),
            terms: self.terms(),
            columns: crate::postprocess::headings(&self.bounded.after),
        }
    }

    /// The question in one spelling, with everything that decides its answer.
    fn text(&self) -> String {
        let (epsilon, delta) = (self.guarantee.epsilon.value(), self.guarantee.delta.value());
        let bounds: Vec<_> = self.subjects.iter().map(|subject| self.describe(*subject)).collect();
        let bounds: Vec<_> = bounds.iter().map(|(what, bounds)| format!("{what}: {bounds}")).collect();
        format!(
            "{} -- for (ε = {epsilon}, δ = {delta}); {}; {}",
            self.bounded.text,
            self.pricing.design(),
            bounds.join("; ")
        )
    }

    fn terms(&self) -> Vec<Term> {
        let rule = self.pricing.rule();
        let reused = rule.and_then(|rule| rule.reuse());
        let mut terms = Vec::new();
        for (index, noise) in self.pricing.noises().iter().enumerate() {
            if Some(index) == reused {
                continue;
            }
            let (what, bounds) = self.describe(self.subjects[index]);
            let sensitivity = self.sensitivity(self.subjects[index]);
            terms.push(Term { what, bounds: Some(bounds), sensitivity, mechanism: noise.loss(), count: 1 });
        }
        if let Some(rule) = rule {
            let what = match reused {
                Some(_) => "which keys are shown, and the number of units of each".to_owned(),
                None => "which keys are shown".to_owned(),
            };
            let bounds = Some(format!("a unit counts in at most {} groups", self.bounded.groups_per_unit()));
            let sensitivity = self.sensitivity(Subject::Units);
            terms.push(Term { what, bounds, sensitivity, mechanism: rule.loss(), count: 1 });
        }
        terms
    }

    /// What a subject is, and what is enforced on each unit, in words.
    pub(crate) fn describe(&self, subject: Subject) -> (String, String) {
        let groups = self.bounded.groups_per_unit();
        let within = |text: String| match self.bounded.table.unit {
            PrivacyUnit::Row => text,
            PrivacyUnit::Column(_) if groups == 1 => format!("{text}, in one group"),
            PrivacyUnit::Column(_) => format!("{text}, in at most {groups} groups"),
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

/// What the question may cost: what it says itself, else the flags, else the catalog.
fn guarantee(project: &Project, ask: &Ask, bounded: &Bounded) -> Result<Guarantee, EngineError> {
    let budget = &project.catalog.budget;
    let wrong = |error: demur_core::Error| EngineError::new("engine.guarantee", error.to_string());
    let number = |text: &str, what: &str| {
        text.trim().parse::<f64>().map_err(|_| {
            EngineError::new("engine.guarantee", format!("{what} must be a number, but it is `{text}`"))
        })
    };
    let Some(epsilon) = bounded.options.epsilon.as_ref().or(ask.epsilon.as_ref()) else {
        let text = "the question does not say what it may cost";
        return Err(EngineError::new("engine.guarantee", text)
            .hint("write --epsilon 0.5, or OPTIONS(epsilon = 0.5) after SELECT WITH DIFFERENTIAL_PRIVACY"));
    };
    let epsilon = Epsilon::new(number(epsilon, "ε")?).map_err(wrong)?;
    let delta = match bounded.options.delta.as_ref().or(ask.delta.as_ref()) {
        Some(delta) => Delta::new(number(delta, "δ")?).map_err(wrong)?,
        None => budget.delta.unwrap_or(Delta::ZERO),
    };
    if epsilon == Epsilon::ZERO {
        return Err(EngineError::new(
            "engine.guarantee",
            "ε = 0 allows no answer at all; ask for a little more",
        ));
    }
    match budget.most_per_question {
        Some(most) if epsilon > most => {
            let text = format!(
                "ε = {} was asked for, but one question may cost at most ε = {}",
                epsilon.value(),
                most.value()
            );
            Err(EngineError::refused("engine.policy", text)
                .hint("the owner's limit is max_epsilon_per_question in demur.toml"))
        }
        _ => Ok(Guarantee::new(epsilon, delta)),
    }
}

/// What is published, and what each is.
struct Items {
    subjects: Vec<Subject>,
    items: Vec<Item>,
    trees: Vec<Option<Tree>>,
}

/// The items of a question; the cells of its histograms become those of trees.
fn items(bounded: &mut Bounded, shape: Preference) -> Result<Items, EngineError> {
    let groups = bounded.groups_moved();
    let mut all = Items { subjects: Vec::new(), items: Vec::new(), trees: Vec::new() };
    let mut add = |subject, item, tree| {
        all.subjects.push(subject);
        all.items.push(item);
        all.trees.push(tree);
    };
    if bounded.statistics.iter().any(|statistic| statistic.recipe == Recipe::Units) {
        let one = demur_core::Sensitivity::scalar(Rational::one())?;
        add(Subject::Units, Item::new("number of units", groups, one), None);
    }
    for index in 0..bounded.spec.measures.len() {
        let what = format!("measure {index}");
        if let Measure::Histogram { row, cells, most, .. } = &mut bounded.spec.measures[index] {
            let tree = Tree::new(row.low, row.high, shape)?;
            *cells = u32::try_from(tree.cells())
                .map_err(|_| EngineError::new("engine.quantile", "a histogram has too many cells"))?;
            let item = tree.item(what, groups, *most)?;
            add(Subject::Measure(index), item, Some(tree));
        } else {
            let sensitivity = bounded.sensitivity(&bounded.spec.measures[index])?;
            add(Subject::Measure(index), Item::new(what, groups, sensitivity), None);
        }
    }
    Ok(all)
}

/// What a quote says to people: all of it public.
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
        let unit = match &bounded.table.unit {
            PrivacyUnit::Row => "each row".to_owned(),
            PrivacyUnit::Column(column) => format!("all rows with the same `{column}`"),
        };
        let keys = match &bounded.keys {
            PlannedKeys::None => "none: one group".to_owned(),
            PlannedKeys::Public(keys) => format!("public: {} groups, each answered", keys.len()),
            PlannedKeys::Private => self.pricing.rule().map_or_else(String::new, |rule| rule.describe()),
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
            table: bounded.table.name.clone(),
            unit,
            adjacency: bounded.adjacency().to_string(),
            keys,
            items,
            statistics,
        }
    }

    fn explain_statistic(&self, statistic: &Statistic) -> ExplainedStatistic {
        let made_from = self.inputs(&statistic.recipe);
        let zero = [0];
        let noisy =
            |index: &usize| Noisy { numbers: &zero, noise: &self.pricing.noises()[*index], tree: None };
        let error = match statistic.recipe {
            Recipe::Mean { .. } | Recipe::Quantiles { .. } => None,
            _ => {
                let inputs = made_from.iter().map(noisy).collect();
                let estimate = Estimates::new(&statistic.recipe, inputs, None).and_then(|all| all.of(0));
                estimate.ok().and_then(|estimate| estimate.interval).map(|interval| interval.high)
            }
        };
        let error_text = match error {
            Some(error) => format!("± {} with 95 % confidence", short(error)),
            None => "depends on the group; each answer carries its own interval".to_owned(),
        };
        ExplainedStatistic { name: statistic.name.clone(), error, error_text, made_from }
    }
}
