//! [`Engine::select`]: which values of a column are the most frequent, without saying how frequent.
//!
//! One row of each unit counts, so one unit moves every score by at most 1, whether it comes, goes or is replaced.

use std::collections::HashMap;

use demur_core::{Adjacency, Guarantee};
use demur_exact::Rational;
use demur_learn::select::{Plan, Utility};

use super::lesson::{Asked, Learned, Watch, told};
use super::numbers::{Numbers, Reader, declared};
use crate::backend::Backend;
use crate::synth::{CodedColumn, Coding};
use crate::{Engine, EngineError, Project};

/// What somebody wants chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Choosing {
    /// The table.
    pub table: String,
    /// The column.
    pub column: String,
    /// The values to choose from; those of the catalog unless given. Public.
    pub candidates: Option<Vec<String>>,
    /// How many are chosen.
    pub picks: usize,
    /// What it may cost.
    pub guarantee: Guarantee,
    /// Who asks.
    pub requester: String,
}

/// How many rows have each candidate.
struct Frequency {
    counts: HashMap<u32, i64>,
    adjacency: Adjacency,
}

impl Utility for Frequency {
    type Candidate = u32;

    fn score(&self, candidate: &u32) -> i64 {
        self.counts.get(candidate).copied().unwrap_or(0)
    }

    fn sensitivity(&self) -> Rational {
        Rational::one()
    }

    fn adjacency(&self) -> Adjacency {
        self.adjacency
    }
}

impl Engine {
    /// Charges, counts, and chooses.
    pub fn select(
        &self,
        project: &Project,
        wanted: &Choosing,
        backend: &dyn Backend,
        watch: &mut Watch<'_>,
    ) -> Result<Learned<Vec<String>>, EngineError> {
        let table = project.private_table(&wanted.table, wanted.guarantee)?;
        let column = declared(table, &wanted.column)?;
        let listed = column.values.as_ref().map(|values| values.iter().map(ToString::to_string).collect());
        let Some(mut values) = wanted.candidates.clone().or(listed) else {
            let text = format!("the catalog does not say which values `{}` has", wanted.column);
            return Err(EngineError::new("engine.learn.values", text)
                .hint("name candidates in a file with --candidates, one a line"));
        };
        values.sort();
        values.dedup();
        if values.len() < wanted.picks.max(1) {
            let text = format!("{} shall be chosen, but there are {} candidates", wanted.picks, values.len());
            return Err(EngineError::new("engine.learn.candidates", text));
        }
        let plan = Plan::top(wanted.picks, Rational::one(), table.adjacency, wanted.guarantee)?;
        let asked = Asked {
            project,
            table,
            requester: &wanted.requester,
            what: "the most frequent values",
            wish: format!("{:?} {} {:?} {values:?}", wanted.column, wanted.picks, wanted.guarantee),
            bounds: "one row of each unit counts".to_owned(),
            sensitivity: "a unit moves the count of each candidate by at most 1",
            loss: plan.loss(),
        };
        let answer = self.learn(asked, backend, || {
            let kind = column.column_type.to_string();
            let coding = Coding::Values { values: values.clone(), others: true };
            let reader = Reader::Code(CodedColumn { name: wanted.column.clone(), kind, coding });
            let numbers =
                Numbers::read(table, &[reader], backend).map_err(|_| EngineError::after_the_charge())?;
            let mut counts = HashMap::new();
            for code in numbers.one_each().values.iter().filter(|code| !code.is_nan()) {
                *counts.entry(*code as u32).or_insert(0i64) += 1;
            }
            let frequency = Frequency { counts, adjacency: table.adjacency };
            let candidates = 0..values.len() as u32;
            Ok(move |entropy: &mut demur_noise::Entropy| {
                let chosen = plan.run(&frequency, candidates, entropy, &mut told(watch))?;
                Ok(chosen.into_value().into_iter().map(|code| values[code as usize].clone()).collect())
            })
        })?;
        Learned::of(answer, |released| Ok(released.to_vec()))
    }
}
