//! [`Quote`]: a question, what will be done to answer it, and what that costs. Made without reading a row.

use demur_core::{Delta, Epsilon, Guarantee};
use demur_exact::Rational;
use demur_plan::catalog::NoisePreference;
use demur_plan::{Bounded, Keys as PlannedKeys, Recipe, Statistic};
use demur_tally::Measure;

use crate::EngineError;
use crate::accuracy::Accuracy;
use crate::estimate;
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
    /// How far off answers may be, as in `50@95%`, instead of ε.
    pub error: Option<String>,
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
    /// For each width of intervals and each statistic, how its averages are estimated, if it is one.
    pub(crate) ratios: Vec<Vec<Option<Ratio>>>,
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
        let bounded = demur_plan::plan(&project.catalog, &ask.sql)?;
        let delta = delta(project, ask, &bounded)?;
        let quote = match (&ask.error, epsilon(ask, &bounded)?) {
            (None, Some(epsilon)) => Self::price(&bounded, Guarantee::new(epsilon, delta), ask.noise)?,
            (Some(error), None) => {
                let at = |epsilon| Self::price(&bounded, Guarantee::new(epsilon, delta), ask.noise);
                error.parse::<Accuracy>()?.least(at)?
            }
            (None, None) => {
                let text = "the question does not say what it may cost";
                return Err(EngineError::new("engine.guarantee", text).hint(
                    "write --epsilon 0.5, or --error 50@95%, or OPTIONS(epsilon = 0.5) after SELECT WITH DIFFERENTIAL_PRIVACY",
                ));
            }
            (Some(_), Some(_)) => {
                let text = "the question says both what it may cost and how far off it may be";
                return Err(EngineError::new("engine.guarantee", text)
                    .hint("leave out ε: the least that suffices is found, and shown by `demur explain`"));
            }
        };
        quote.is_within(project)?;
        Ok(quote)
    }

    /// Prices a planned question.
    fn price(
        bounded: &Bounded,
        guarantee: Guarantee,
        noise: Option<NoisePreference>,
    ) -> Result<Self, EngineError> {
        let mut bounded = bounded.clone();
        let preference = match bounded.options.noise.or(noise).unwrap_or(bounded.noise) {
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
        let ratio = |statistic: &Statistic, width: usize| {
            let noises: Vec<_> = quote
                .inputs(&statistic.recipe)
                .into_iter()
                .map(|index| &quote.pricing.noises()[index])
                .collect();
            estimate::ratio(&statistic.recipe, &noises, estimate::outside(width))
        };
        let ratios = (0..quote.bounded.after.widths)
            .map(|width| quote.bounded.statistics.iter().map(|statistic| ratio(statistic, width)).collect())
            .collect::<Result<_, _>>()?;
        quote.ratios = ratios;
        Ok(quote)
    }

    /// Refuses what costs more than one question may.
    fn is_within(&self, project: &Project) -> Result<(), EngineError> {
        let asked = self.guarantee.epsilon;
        match project.catalog.budget.most_per_question {
            Some(most) if asked > most => {
                let (asked, most) = (asked.value(), most.value());
                let text = format!("this takes ε = {asked}, but one question may cost at most ε = {most}");
                Err(EngineError::refused("engine.policy", text)
                    .hint("the owner's limit is max_epsilon_per_question in demur.toml"))
            }
            _ => Ok(()),
        }
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
}

/// A number that was typed.
fn number(text: &str, what: &str) -> Result<f64, EngineError> {
    text.trim().parse().map_err(|_| {
        EngineError::new("engine.guarantee", format!("{what} must be a number, but it is `{text}`"))
    })
}

fn wrong(error: demur_core::Error) -> EngineError {
    EngineError::new("engine.guarantee", error.to_string())
}

/// The ε that the question names itself, or else the flags.
fn epsilon(ask: &Ask, bounded: &Bounded) -> Result<Option<Epsilon>, EngineError> {
    let Some(text) = bounded.options.epsilon.as_ref().or(ask.epsilon.as_ref()) else { return Ok(None) };
    let epsilon = Epsilon::new(number(text, "ε")?).map_err(wrong)?;
    if epsilon == Epsilon::ZERO {
        let text = "ε = 0 allows no answer at all; ask for a little more";
        return Err(EngineError::new("engine.guarantee", text));
    }
    Ok(Some(epsilon))
}

/// The δ that the question names itself, or else the flags, or else the catalog.
fn delta(project: &Project, ask: &Ask, bounded: &Bounded) -> Result<Delta, EngineError> {
    match bounded.options.delta.as_ref().or(ask.delta.as_ref()) {
        Some(text) => match number(text, "δ")? {
            0.0 => Ok(Delta::ZERO),
            delta => Delta::new(delta).map_err(wrong),
        },
        None => Ok(project.catalog.budget.delta.unwrap_or(Delta::ZERO)),
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
