//! [`Engine::compare`]: how far a model is from its table, told privately.
//!
//! **Definition.** For a set of columns with counts c in the table and c̃ expected by the model, D = Σ|c − c̃| over all cells, with c̃ rounded to whole numbers. D/2N is about
//! the total variation distance, where N is the model's number of rows. Published are D of every column and of every pair, the mean of D over up to [`TRIPLES`] triples, and, if a
//! column is named, how many rows the model guesses right in it from all others.
//!
//! **Sensitivity.** A row that comes or goes moves one cell of each set by 1, so each D by at most 1, and their mean too, also after rounding down; and the number of right guesses by at
//! most 1. With r rows of a unit everything moves by at most r, and by 2r where units are replaced. All of it has noise of its own, priced together.
//!
//! **Guesses.** Naive Bayes with the model's own pair marginals: public, so that nothing but the count of right guesses is private.

use demur_core::{Adjacency, Guarantee, PrivacyLoss, Sensitivity};
use demur_exact::Rational;
use demur_noise::Entropy;
use demur_synth::ColumnSet;

use super::made::Synthetic;
use super::rows::Coded;
use super::wanted::check_rows_per_unit;
use crate::backend::Backend;
use crate::pricing::{Item, Preference, Pricing, Wish};
use crate::private::Private;
use crate::{Answer, Certificate, Engine, EngineError, Project, Question, Term};

/// So many triples are looked at.
pub const TRIPLES: usize = 200;
/// A set with more cells than this is left out: most of them are empty.
const MOST_CELLS: u64 = 1 << 20;
/// No cell is expected to hold more rows.
const MOST_EXPECTED: f64 = (1u64 << 60) as f64;

/// What is compared; all of it public.
#[derive(Clone, Debug)]
struct Sets {
    ones: Vec<ColumnSet>,
    pairs: Vec<ColumnSet>,
    triples: Vec<ColumnSet>,
}

/// How far a model is from its table, with noise: a distance may be below 0 where it is smaller than its noise, so that means have no bias.
#[derive(Clone, Debug)]
pub struct Compared {
    /// About the total variation distance of each column.
    pub ones: Vec<f64>,
    /// Two columns, and about the distance of the pair.
    pub pairs: Vec<((usize, usize), f64)>,
    /// About the mean distance of triples, if there are any.
    pub triples: Option<f64>,
    /// About the share of rows that the model guesses right in a column.
    pub right: Option<f64>,
    /// The standard deviation of the noise in each distance.
    pub deviation: f64,
    /// That in the share of right guesses.
    pub right_deviation: Option<f64>,
    /// What is promised about it.
    pub certificate: Certificate,
    /// Whether it was told before, and cost nothing now.
    pub replayed: bool,
}

impl Sets {
    fn of(synthetic: &Synthetic) -> Self {
        let sizes = synthetic.model.columns().sizes();
        let all = sizes.len();
        let small = |set: &ColumnSet| set.cells(&sizes) <= MOST_CELLS;
        let pairs = (0..all).flat_map(|a| (a + 1..all).map(move |b| ColumnSet::new([a, b])));
        let triples = (0..all).flat_map(|a| {
            (a + 1..all).flat_map(move |b| (b + 1..all).map(move |c| ColumnSet::new([a, b, c])))
        });
        let triples: Vec<_> = triples.filter(small).collect();
        // Evenly from first to last.
        let step = triples.len().div_ceil(TRIPLES).max(1);
        Self {
            ones: (0..all).map(|a| ColumnSet::new([a])).filter(small).collect(),
            pairs: pairs.filter(small).collect(),
            triples: triples.into_iter().step_by(step).collect(),
        }
    }
}

/// True distances on their way out.
pub(crate) struct Distances<'a> {
    pricing: &'a Pricing,
    /// For each item of the pricing, its numbers.
    numbers: Vec<Vec<i128>>,
}

impl Private for Distances<'_> {
    fn loss(&self) -> PrivacyLoss {
        self.pricing.loss()
    }

    fn publish(self, entropy: &mut Entropy) -> Result<Vec<String>, EngineError> {
        let mut texts = Vec::new();
        for (noise, numbers) in self.pricing.noises().iter().zip(self.numbers) {
            let mut drawn = vec![0; numbers.len()];
            noise.fill(entropy, &mut drawn);
            texts.extend(
                numbers.iter().zip(drawn).map(|(number, drawn)| number.saturating_add(drawn).to_string()),
            );
        }
        Ok(texts)
    }
}

impl Engine {
    /// Charges, reads the table a model is of, and says how far apart they are.
    pub fn compare(
        &self,
        project: &Project,
        synthetic: &Synthetic,
        guarantee: Guarantee,
        target: Option<usize>,
        requester: &str,
        backend: &dyn Backend,
    ) -> Result<Compared, EngineError> {
        let header = &synthetic.header;
        let table = project.private_table(&header.table, guarantee)?;
        // A model comes from a file, and a file may say anything: without rows nothing would move, and nothing would be noisy.
        check_rows_per_unit(table, header.rows_per_unit)?;
        let sets = Sets::of(synthetic);
        let moved =
            u64::from(header.rows_per_unit) * if table.adjacency == Adjacency::Replace { 2 } else { 1 };
        let sensitivity = Sensitivity::scalar(Rational::from(moved))?;
        let count = sets.ones.len() + sets.pairs.len() + usize::from(!sets.triples.is_empty());
        let mut distances = Item::new("distances of the model from the table", 1, sensitivity.clone());
        distances.copies = count as u64;
        let mut items = vec![distances];
        items.extend(target.map(|_| Item::new("rows that the model guesses right", 1, sensitivity)));
        let pricing =
            Wish { items: items.clone(), keys: None, guarantee, preference: Preference::Any }.price()?;
        let term = |(item, noise): (&Item, &crate::Noise)| Term {
            what: item.what.clone(),
            bounds: Some(format!("a unit counts for at most {} rows", header.rows_per_unit)),
            sensitivity: format!("each number moves by at most {moved}"),
            mechanism: noise.loss(),
            count: 1,
        };
        backend.check(table)?;
        let question = Question {
            budget: project.catalog.budget.name.clone(),
            requester: requester.to_owned(),
            id: None,
            data_version: Some(self.fingerprint(&backend.version(table)?)),
            text: format!(
                "how far {} is from its table, for (ε = {}, δ = {}), guessing {target:?}",
                demur_ledger::Hash::of(synthetic.texts()?.join("\n").as_bytes()),
                guarantee.epsilon.value(),
                guarantee.delta.value()
            ),
            adjacency: table.adjacency,
            terms: items.iter().zip(pricing.noises()).map(term).collect(),
            columns: Vec::new(),
        };
        let answer = self.ask(&question, || {
            let coded = Coded::read(table, &header.columns, header.rows_per_unit, backend)
                .map_err(|_| EngineError::after_the_charge())?;
            let mut numbers = vec![numbers(synthetic, &sets, &coded)?];
            if let Some(target) = target {
                numbers.push(vec![right(synthetic, target, &coded)?]);
            }
            Ok::<_, EngineError>(Distances { pricing: &pricing, numbers })
        })?;
        read(synthetic, &sets, target, &pricing, answer)
    }
}

/// The released numbers as distances.
fn read(
    synthetic: &Synthetic,
    sets: &Sets,
    target: Option<usize>,
    pricing: &Pricing,
    answer: Answer,
) -> Result<Compared, EngineError> {
    let rows = synthetic.model.rows().max(1.0);
    let mut next = answer.certificate.released.iter().filter_map(|text| text.parse::<f64>().ok());
    let mut number =
        || next.next().ok_or_else(|| EngineError::new("engine.synth.compare", "numbers are missing"));
    let distance = |number: f64| number / (2.0 * rows);
    let ones = sets.ones.iter().map(|_| Ok(distance(number()?))).collect::<Result<_, EngineError>>()?;
    let mut pairs = Vec::new();
    for set in &sets.pairs {
        let columns: Vec<usize> = set.iter().collect();
        pairs.push(((columns[0], columns[1]), distance(number()?)));
    }
    let triples = (!sets.triples.is_empty()).then(&mut number).transpose()?.map(distance);
    let right = target.map(|_| number()).transpose()?.map(|right| (right / rows).clamp(0.0, 1.0));
    let deviation = |index: usize| pricing.noises().get(index).map(|noise| noise.standard_deviation() / rows);
    Ok(Compared {
        ones,
        pairs,
        triples,
        right,
        deviation: deviation(0).unwrap_or_default() / 2.0,
        right_deviation: deviation(1),
        certificate: answer.certificate,
        replayed: answer.replayed,
    })
}

/// D of every column and pair, and the mean of triples.
fn numbers(synthetic: &Synthetic, sets: &Sets, coded: &Coded) -> Result<Vec<i128>, EngineError> {
    let mut numbers = Vec::new();
    for set in sets.ones.iter().chain(&sets.pairs) {
        numbers.push(distance(synthetic, set, coded)?);
    }
    if !sets.triples.is_empty() {
        let all = sets.triples.iter().map(|set| distance(synthetic, set, coded));
        let sum: i128 = all.sum::<Result<i128, EngineError>>()?;
        numbers.push(sum.div_euclid(sets.triples.len() as i128));
    }
    Ok(numbers)
}

/// Σ|c − c̃|.
fn distance(synthetic: &Synthetic, set: &ColumnSet, coded: &Coded) -> Result<i128, EngineError> {
    let sizes = synthetic.model.columns().sizes();
    let shares = synthetic.model.marginal(set)?;
    let mut counts = vec![0i128; shares.len()];
    let columns: Vec<usize> = set.iter().collect();
    let rows = coded.codes.first().map_or(0, Vec::len);
    for row in 0..rows {
        let cell =
            columns.iter().fold(0, |cell, &column| cell * sizes[column] + coded.codes[column][row] as usize);
        counts[cell] += 1;
    }
    // Clamped, so that sums of a million cells cannot overflow whatever a file says.
    let expected = |share: f64| (share * synthetic.model.rows()).clamp(0.0, MOST_EXPECTED).round() as i128;
    Ok(counts.iter().zip(shares).map(|(count, share)| (count - expected(share)).abs()).sum())
}

/// How many rows naive Bayes guesses right in a column.
fn right(synthetic: &Synthetic, target: usize, coded: &Coded) -> Result<i128, EngineError> {
    let sizes = synthetic.model.columns().sizes();
    let classes = sizes[target];
    let prior = synthetic.model.marginal(&ColumnSet::new([target]))?;
    // ln of the share of each value of a column among the rows of each class; a little more than nothing where there is none.
    let mut logs: Vec<Vec<f64>> = Vec::new();
    for column in 0..sizes.len() {
        if column == target || ColumnSet::new([column, target]).cells(&sizes) > MOST_CELLS {
            logs.push(Vec::new());
            continue;
        }
        let pair = synthetic.model.marginal(&ColumnSet::new([column, target]))?;
        let least = 1.0 / synthetic.model.rows().max(1.0);
        let log = |value: usize, class: usize| {
            let cell = if column < target { value * classes + class } else { class * sizes[column] + value };
            ((pair[cell] + least) / (prior[class] + least * sizes[column] as f64)).ln()
        };
        logs.push(
            (0..sizes[column])
                .flat_map(|value| (0..classes).map(move |class| (value, class)))
                .map(|(value, class)| log(value, class))
                .collect(),
        );
    }
    let rows = coded.codes.first().map_or(0, Vec::len);
    let guess = |row: usize| {
        let score = |class: usize| {
            let about = |(column, logs): (usize, &Vec<f64>)| {
                logs.get(coded.codes[column][row] as usize * classes + class).copied().unwrap_or(0.0)
            };
            prior[class].max(f64::MIN_POSITIVE).ln() + logs.iter().enumerate().map(about).sum::<f64>()
        };
        (0..classes).max_by(|a, b| score(*a).total_cmp(&score(*b))).unwrap_or(0)
    };
    Ok((0..rows).filter(|&row| guess(row) == coded.codes[target][row] as usize).count() as i128)
}
