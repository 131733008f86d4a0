//! [`Quote`]: a question, what will be done to answer it, and what that costs. Made without reading a row.

use demur_core::{Delta, Epsilon, Guarantee, Sensitivity};
use demur_exact::Rational;
use demur_plan::catalog::NoisePreference;
use demur_plan::{Bounded, KeySet, Keys as PlannedKeys, Recipe, Statistic};
use demur_tally::Measure;

use crate::EngineError;
use crate::accuracy::Accuracy;
use crate::estimate::{self, Noisy};
use crate::interval::{Ratio, Spread};
use crate::postprocess::Postprocess;
use crate::pricing::{Item, Keys, Preference, Pricing, Wish};
use crate::project::Project;
use crate::quantile::Tree;
use crate::question::{Question, Term};
use crate::table::Heading;
use crate::totals;

/// So many numbers are shown for all public groups together; as texts, and on their way to them, they take half a gigabyte.
const ROOM: usize = 1 << 23;
/// An answer with its interval and its place in a table takes as much as so many numbers of a list.
const ANSWER: usize = 5;

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
    /// For each item, the level it is measured at, where totals are asked for.
    pub(crate) levels: Vec<Option<KeySet>>,
    /// For each item, the tree of its histogram, if it is one.
    pub(crate) trees: Vec<Option<Tree>>,
    /// For each grouping that is shown and each item, the law of its numbers, for intervals.
    pub(crate) laws: Vec<Vec<Spread>>,
    /// For each width of intervals, each grouping and each statistic, how its averages are estimated, if it is one.
    pub(crate) ratios: Vec<Vec<Vec<Option<Ratio>>>>,
}

/// An item that a statistic is made from, at one grouping.
pub(crate) struct Input<'a> {
    /// Which item's noise it has.
    pub(crate) index: usize,
    /// With which item its numbers stand.
    pub(crate) numbers: usize,
    /// Its noise, without numbers.
    pub(crate) noise: Noisy<'a>,
}

/// What an item of a pricing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The number of units of each group.
    Units,
    /// A measure of the tally.
    Measure(usize),
}

/// A planned question, and what it says of its price.
pub(crate) struct Wanted {
    bounded: Bounded,
    price: Price,
    delta: Option<Delta>,
    noise: Option<NoisePreference>,
}

/// What a question may cost.
enum Price {
    Epsilon(Epsilon),
    /// The least that makes answers so close.
    Error(Accuracy),
    /// It does not say.
    Open,
}

impl Wanted {
    /// Plans a question; what it says itself goes before what is said beside it.
    pub(crate) fn read(project: &Project, ask: &Ask) -> Result<Self, EngineError> {
        let bounded = demur_plan::plan(&project.catalog, &ask.sql)?;
        let options = &bounded.options;
        let error = options.max_error.as_ref().or(ask.error.as_ref());
        let price = match (error, options.epsilon.as_ref().or(ask.epsilon.as_ref())) {
            (None, Some(text)) => Price::Epsilon(epsilon(text)?),
            (Some(text), None) => Price::Error(text.parse()?),
            (None, None) => Price::Open,
            (Some(_), Some(_)) => {
                let text = "the question says both what it may cost and how far off it may be";
                return Err(EngineError::new("engine.guarantee", text)
                    .hint("leave out ε: the least that suffices is found, and shown by `demur explain`"));
            }
        };
        let named = options.delta.as_ref().or(ask.delta.as_ref());
        let delta = named.map(|text| delta(text)).transpose()?;
        let noise = options.noise.or(ask.noise);
        Ok(Self { bounded, price, delta, noise })
    }

    /// Whether it does not say what it may cost.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.price, Price::Open)
    }

    /// Prices it: with this ε and this δ where it names none, and this noise.
    pub(crate) fn price(
        &self,
        open: Epsilon,
        delta: Delta,
        noise: Option<NoisePreference>,
    ) -> Result<Quote, EngineError> {
        let delta = self.delta.unwrap_or(delta);
        let noise = self.noise.or(noise);
        let at = |epsilon| Quote::price(&self.bounded, Guarantee::new(epsilon, delta), noise);
        match self.price {
            Price::Epsilon(epsilon) => at(epsilon),
            Price::Error(accuracy) => accuracy.least(at),
            Price::Open => at(open),
        }
    }
}

impl Quote {
    /// Plans and prices a question.
    pub fn make(project: &Project, ask: &Ask) -> Result<Self, EngineError> {
        let wanted = Wanted::read(project, ask)?;
        if wanted.is_open() {
            return Err(unpriced("the question does not say what it may cost"));
        }
        let quote = wanted.price(Epsilon::ZERO, project.delta(), None)?;
        quote.is_within(project)?;
        Ok(quote)
    }

    /// Prices a planned question.
    fn price(
        bounded: &Bounded,
        guarantee: Guarantee,
        noise: Option<NoisePreference>,
    ) -> Result<Self, EngineError> {
        let preference = match noise.unwrap_or(bounded.noise) {
            NoisePreference::Any => Preference::Any,
            NoisePreference::Laplace => Preference::Laplace,
            NoisePreference::Gaussian => Preference::Gaussian,
        };
        if bounded.totals.is_none() || guarantee.is_pure() || preference != Preference::Any {
            return Self::price_with(bounded, guarantee, preference);
        }
        // Which levels are worth their price depends on the noise.
        let both = [Preference::Laplace, Preference::Gaussian];
        let [laplace, gaussian] = both.map(|noise| Self::price_with(bounded, guarantee, noise));
        match (laplace, gaussian) {
            (Ok(laplace), Ok(gaussian)) if gaussian.total_cost() < laplace.total_cost() => Ok(gaussian),
            (Err(_), gaussian) => gaussian,
            (laplace, _) => laplace,
        }
    }

    fn price_with(
        bounded: &Bounded,
        guarantee: Guarantee,
        preference: Preference,
    ) -> Result<Self, EngineError> {
        let mut bounded = bounded.clone();
        let shape = if guarantee.is_pure() { Preference::Laplace } else { preference };
        let Items { subjects, levels, items, trees } = items(&mut bounded, shape)?;
        let keys = match bounded.keys {
            PlannedKeys::Private => {
                let reuse = subjects.iter().position(|subject| *subject == Subject::Units);
                // With totals, keys of every length are chosen, by numbers of their own.
                let (lengths, reuse) =
                    bounded.totals.as_ref().map_or((1, reuse), |totals| (totals.names.len() as u64, None));
                Some(Keys { moved: bounded.groups_moved() * lengths, reuse })
            }
            _ => None,
        };
        let pricing = Wish { items, keys, guarantee, preference }.price()?;
        let mut quote = Self {
            bounded,
            guarantee,
            pricing,
            subjects,
            levels,
            trees,
            laws: Vec::new(),
            ratios: Vec::new(),
        };
        quote.afterwards()?;
        quote.has_room()?;
        quote.laws = quote.all_laws()?;
        let ratio = |statistic: &Statistic, set: usize, width: usize| {
            let inputs = quote.inputs(&statistic.recipe, set);
            let laws: Vec<_> = inputs.iter().map(|input| input.noise.law).collect();
            estimate::ratio(&statistic.recipe, &laws, estimate::outside(width))
        };
        let mut ratios = Vec::new();
        for width in 0..quote.bounded.after.widths {
            let mut of_width = Vec::new();
            for set in 0..quote.laws.len() {
                let of_set = quote.bounded.statistics.iter().map(|statistic| ratio(statistic, set, width));
                of_width.push(of_set.collect::<Result<Vec<_>, _>>()?);
            }
            ratios.push(of_width);
        }
        quote.ratios = ratios;
        Ok(quote)
    }

    /// Refuses what costs more than one question may.
    pub(crate) fn is_within(&self, project: &Project) -> Result<(), EngineError> {
        project.allows(self.guarantee)?;
        project.allows_loss(&self.pricing.loss())
    }

    /// Refuses what would take gigabytes to answer. How many groups there will be of private keys is nobody's to know.
    fn has_room(&self) -> Result<(), EngineError> {
        let PlannedKeys::Public(keys) = &self.bounded.keys else { return Ok(()) };
        let answers = self.bounded.statistics.iter().map(|statistic| match &statistic.recipe {
            Recipe::Buckets { histogram, .. } => self.bounded.spec.measures[*histogram].cells(),
            Recipe::Quantiles { at, .. } => at.len().max(ANSWER),
            _ => ANSWER + self.bounded.after.widths,
        });
        // Totals hold all nodes at once.
        let (groupings, nodes) = match &self.bounded.totals {
            Some(totals) => (totals.sets.len(), self.trees.iter().flatten().map(Tree::nodes).sum()),
            None => (1, 0),
        };
        let each = answers.sum::<usize>().saturating_add(nodes);
        if keys.len().saturating_mul(groupings).saturating_mul(each) <= ROOM {
            return Ok(());
        }
        let text = format!(
            "{} groups with so many answers each, histograms above all, would take too much memory",
            keys.len()
        );
        Err(EngineError::refused("engine.size", text)
            .hint("group by fewer columns, or ask for fewer answers at once"))
    }

    /// Σ ln of the errors of all that is published, by which noise is compared.
    pub(crate) fn noise_level(&self) -> f64 {
        let noises = self.pricing.noises().iter().map(|noise| libm::log(noise.standard_deviation()));
        let keys = self.pricing.rule().map_or(0.0, |rule| libm::log(rule.half_point() as f64));
        noises.sum::<f64>() + keys
    }

    /// What will be done with noisy answers.
    pub(crate) fn afterwards(&self) -> Result<Postprocess<'_>, EngineError> {
        // Depends on the query alone, so its words may be told.
        Postprocess::new(&self.bounded.after)
            .map_err(|error| EngineError::new("engine.afterwards", error.strip_backtrace()))
    }

    /// Which items a recipe is made from, at one of the groupings that are shown.
    pub(crate) fn inputs(&self, recipe: &Recipe, set: usize) -> Vec<Input<'_>> {
        let subjects: Vec<_> = match recipe {
            Recipe::Units => vec![Subject::Units],
            made => made.measures().into_iter().map(Subject::Measure).collect(),
        };
        let shown = self.bounded.totals.as_ref().map(|totals| totals.sets[set]);
        let input = |subject: &Subject| {
            let numbers = self.subjects.iter().position(|found| found == subject)?;
            let own = (0..self.subjects.len())
                .find(|&item| self.subjects[item] == *subject && self.levels[item] == shown);
            let index = own.unwrap_or(numbers);
            let noise = Noisy {
                numbers: &[],
                noise: &self.pricing.noises()[index],
                law: &self.laws[set][numbers],
                blended: shown.is_some(),
                tree: None,
                fits: &[],
            };
            Some(Input { index, numbers, noise })
        };
        subjects.iter().filter_map(input).collect()
    }

    /// The items of a subject, with the level each is measured at.
    pub(crate) fn items_of(&self, subject: Subject) -> Vec<(usize, KeySet)> {
        let levels = self.levels.iter().enumerate().filter(|(item, _)| self.subjects[*item] == subject);
        levels.filter_map(|(item, level)| level.map(|level| (item, level))).collect()
    }

    /// The columns the answer will have.
    pub fn headings(&self) -> Vec<Heading> {
        crate::postprocess::headings(&self.bounded.after)
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
            columns: self.headings(),
        }
    }

    /// The question in one spelling, with everything that decides its answer.
    fn text(&self) -> String {
        let (epsilon, delta) = (self.guarantee.epsilon.value(), self.guarantee.delta.value());
        let bounds: Vec<_> = (0..self.subjects.len()).map(|item| self.describe_item(item)).collect();
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
            let (what, bounds) = self.describe_item(index);
            let sensitivity = self.item_sensitivity(index);
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

/// A number that was typed. A fraction is rounded down, so that it never costs more than was said.
fn number(text: &str, what: &str) -> Result<f64, EngineError> {
    let fraction = || text.contains('/').then(|| text.parse::<Rational>().ok()).flatten();
    let number = text.trim().parse().ok().or_else(|| Some(fraction()?.to_f64_down()));
    number.ok_or_else(|| {
        EngineError::new("engine.guarantee", format!("{what} must be a number, but it is `{text}`"))
            .hint("write it as in 0.5, 1e-6 or 1/3")
    })
}

fn wrong(error: demur_core::Error) -> EngineError {
    EngineError::new("engine.guarantee", error.to_string())
}

/// An ε that was typed.
pub(crate) fn epsilon(text: &str) -> Result<Epsilon, EngineError> {
    let number = number(text, "ε")?;
    if number == 0.0 {
        let text = "ε = 0 allows no answer at all; ask for a little more";
        return Err(EngineError::new("engine.guarantee", text));
    }
    Epsilon::new(number).map_err(wrong)
}

/// A δ that was typed.
pub(crate) fn delta(text: &str) -> Result<Delta, EngineError> {
    match number(text, "δ")? {
        0.0 => Ok(Delta::ZERO),
        delta => Delta::new(delta).map_err(wrong),
    }
}

/// What is said of a question without a price.
pub(crate) fn unpriced(text: &str) -> EngineError {
    EngineError::new("engine.guarantee", text).hint(
        "write --epsilon 0.5, or --error 50@95%, or OPTIONS(epsilon = 0.5) after SELECT WITH DIFFERENTIAL_PRIVACY",
    )
}

/// What is published, and what each is.
#[derive(Default)]
struct Items {
    subjects: Vec<Subject>,
    levels: Vec<Option<KeySet>>,
    items: Vec<Item>,
    trees: Vec<Option<Tree>>,
}

impl Items {
    fn add(&mut self, subject: Subject, level: Option<KeySet>, item: Item, tree: Option<Tree>) {
        self.subjects.push(subject);
        self.levels.push(level);
        self.items.push(item);
        self.trees.push(tree);
    }
}

/// The items of a question; the cells of its histograms become those of trees.
fn items(bounded: &mut Bounded, shape: Preference) -> Result<Items, EngineError> {
    let groups = bounded.groups_moved();
    let mut all = Items::default();
    let mut subjects = Vec::new();
    if bounded.statistics.iter().any(|statistic| statistic.recipe == Recipe::Units) {
        subjects.push(Subject::Units);
    }
    subjects.extend((0..bounded.spec.measures.len()).map(Subject::Measure));
    let shown: Vec<usize> = bounded.statistics.iter().filter_map(shown_cells).collect();
    for subject in subjects {
        let tree = match subject {
            Subject::Measure(index) => {
                tree(&mut bounded.spec.measures[index], shown.contains(&index), shape)?
            }
            Subject::Units => None,
        };
        let item = match (tree, subject) {
            (_, Subject::Units) => {
                Item::new("number of units", groups, Sensitivity::scalar(Rational::one())?)
            }
            (Some(tree), Subject::Measure(index)) => {
                tree.item(format!("measure {index}"), groups, most(&bounded.spec.measures[index]))?
            }
            (None, Subject::Measure(index)) => {
                let sensitivity = bounded.sensitivity(&bounded.spec.measures[index])?;
                Item::new(format!("measure {index}"), groups, sensitivity)
            }
        };
        let Some(totals) = &bounded.totals else {
            all.add(subject, None, item, tree);
            continue;
        };
        for level in totals::plan::measured(bounded, totals, shape, tree.is_some()) {
            let item = match totals::plan::parts(totals, level) {
                1 => item.clone(),
                parts => {
                    let sensitivity = bounded.level_sensitivity(&item.sensitivity, parts)?;
                    Item { groups: sides(bounded), sensitivity, ..item.clone() }
                }
            };
            all.add(subject, Some(level), item, tree);
        }
    }
    Ok(all)
}

/// A unit that is replaced goes and comes.
fn sides(bounded: &Bounded) -> u64 {
    bounded.groups_moved() / bounded.groups_per_unit()
}

/// The tree of a histogram, whose cells then are the tree's.
fn tree(measure: &mut Measure, shown: bool, shape: Preference) -> Result<Option<Tree>, EngineError> {
    let Measure::Histogram { row, cells, .. } = measure else { return Ok(None) };
    let tree = match shown {
        true => Tree::of_cells(row.low, row.high, *cells, shape)?,
        false => Tree::new(row.low, row.high, shape)?,
    };
    *cells = u32::try_from(tree.cells())
        .map_err(|_| EngineError::new("engine.quantile", "a histogram has too many cells"))?;
    Ok(Some(tree))
}

fn most(measure: &Measure) -> u64 {
    match measure {
        Measure::Histogram { most, .. } => *most,
        _ => 1,
    }
}

/// The histogram of a statistic that shows its cells.
fn shown_cells(statistic: &Statistic) -> Option<usize> {
    match statistic.recipe {
        Recipe::Buckets { histogram, .. } => Some(histogram),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_rounded_down() {
        assert!(
            epsilon("1/3")
                .is_ok_and(|found| found.exact() <= "1/3".parse().unwrap() && found.value() > 0.3333)
        );
        assert_eq!(epsilon(" 1/2 ").unwrap(), epsilon("0.5").unwrap());
        assert_eq!(delta("1/1000000").unwrap(), delta("1e-6").unwrap());
        for wrong in ["1/0", "0/3", "-1/3", "1/", "/3", "1/3/2", "a/b", "NaN/1"] {
            assert_eq!(epsilon(wrong).map(|_| ()).unwrap_err().code(), "engine.guarantee", "{wrong}");
        }
    }
}
